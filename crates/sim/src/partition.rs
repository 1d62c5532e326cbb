//! One partition: its nodes, its links, its events. It runs a window at a time and touches nothing
//! outside itself.

use crate::audit::{Audit, Tally};
use crate::events::{Class, Key};
use crate::fabric::{Fabric, Ports, Receiver};
use crate::hosts::{Hosts, PULL, WAITED};
use crate::mail::{Mail, Note};
use crate::samples::Samplers;
use millpond_core::Time;
use millpond_core::packet::NONE;
use millpond_core::switch::Switch;
use millpond_core::switch::pause::PauseTarget;
use millpond_scenario::traffic::{Arrival, Query};
use std::collections::VecDeque;

/// Of events of [`Class::Link`], the sequence from which on routes change: to those of the epoch
/// with that number. Below it are a link's own.
pub const REROUTE: u32 = 2;

/// A switch, and where its ports' out-links begin.
pub struct SwitchNode {
    /// The node.
    pub switch: Switch,
    /// Its first out-link.
    pub first: u32,
    /// Its number in the whole network.
    pub index: u32,
    /// Its cell.
    pub cell: u32,
}

/// A partition.
pub struct Partition {
    /// Links, packets, events.
    pub fabric: Fabric,
    /// Switches.
    pub switches: Vec<SwitchNode>,
    /// Hosts.
    pub hosts: Hosts,
    /// What is sampled of them.
    pub samplers: Samplers,
    /// Who sends on an out-link.
    pub owners: Vec<Receiver>,
    /// By cell: open-loop flows to come, in their order; the first one's start is an event.
    starts: Vec<VecDeque<Arrival>>,
    /// Closed loops: (when, source, host here).
    loops: Vec<(Time, u16, u32)>,
    /// What is being read; empty between edges.
    notes: Vec<Note>,
    now: Time,
    /// When the last event was served.
    last_event: Time,
}

impl Partition {
    /// With nothing under way.
    pub fn new(
        fabric: Fabric,
        switches: Vec<SwitchNode>,
        hosts: Hosts,
        owners: Vec<Receiver>,
        loops: Vec<(Time, u16, u32)>,
    ) -> Partition {
        let mut partition = Partition {
            samplers: Samplers::new(&hosts.shared.plan.capture, &switches, &hosts),
            starts: vec![VecDeque::new(); fabric.events.count() as usize],
            fabric,
            switches,
            hosts,
            owners,
            loops,
            notes: Vec::new(),
            now: Time::ZERO,
            last_event: Time::ZERO,
        };
        for (i, (at, _, host)) in partition.loops.iter().enumerate() {
            let events = &mut partition.fabric.events;
            events.push_to(events.of_host(*host), *at, Key::new(Class::Start, 0, 1 + i as u32));
        }
        partition
    }

    /// A flow will start here.
    pub fn schedule(&mut self, arrival: Arrival) {
        let cell = self.fabric.events.of_host(self.hosts.shared.local_host(arrival.src));
        let starts = &mut self.starts[cell as usize];
        if starts.is_empty() {
            self.fabric.events.push_to(cell, arrival.at, Key::new(Class::Start, 0, 0));
        }
        starts.push_back(arrival);
    }

    /// A query will be asked here.
    pub fn expect(&mut self, query: Query) {
        self.hosts.expect(query);
    }

    /// Takes in what all partitions, itself among them, left for it in the window before. Notes are
    /// read in the order of flows: the order in which they were written would tell which hosts
    /// share a partition.
    pub fn take_in(&mut self, inbox: &mut [Mail]) {
        for mail in inbox.iter_mut().filter(|mail| !mail.is_empty()) {
            self.fabric.take_in(mail);
            self.notes.append(&mut mail.notes);
        }
        // Stable: the notes of one flow stay in the order in which its other end wrote them.
        self.notes.sort_by_key(Note::flow);
        for note in self.notes.drain(..) {
            self.hosts.read(self.now, note, &mut self.fabric);
        }
    }

    /// Whether no flow waits to start here from `edge` on.
    pub fn nothing_to_start(&self, edge: Time) -> bool {
        self.starts.iter().all(VecDeque::is_empty) && self.loops.iter().all(|(at, _, _)| *at < edge)
    }

    /// When the next event is due.
    pub fn next_time(&self) -> Option<Time> {
        self.fabric.events.next_time()
    }

    /// When the last event was served, zero before the first.
    pub fn last_event(&self) -> Time {
        self.last_event
    }

    /// Serves all events before `end`, and takes the samples that are due before it.
    pub fn run_until(&mut self, end: Time) {
        while let Some(at) = self.samplers.next(end) {
            self.serve_until(at);
            self.sample(at);
        }
        self.serve_until(end);
    }

    fn sample(&mut self, at: Time) {
        self.samplers.sample(at, &mut self.switches, &mut self.hosts);
    }

    /// Ends the run at `end`, with the samples that are due by then: its last events may have been
    /// long before. A run without an end takes no more of them.
    pub fn finish(&mut self, end: Time) {
        if end < Time::END {
            while let Some(at) = self.samplers.next(end) {
                self.sample(at);
            }
            self.samplers.finish(end, &self.hosts);
        }
        self.hosts.finish(end, &mut self.fabric);
    }

    /// Serves all events before `end`, cell by cell.
    fn serve_until(&mut self, end: Time) {
        for cell in 0..self.fabric.events.count() {
            if self.fabric.events.enter(cell, end) {
                self.serve_cell(end);
                self.fabric.events.leave();
            }
        }
        self.now = self.now.max(end);
    }

    /// Serves all events before `end` of one cell.
    fn serve_cell(&mut self, end: Time) {
        let mut served = 0;
        while let Some((now, key)) = self.fabric.events.pop_before(end) {
            self.now = now;
            served += 1;
            match key.class() {
                Class::Arrival => {
                    let (mut to, id) = self.fabric.land(key.source());
                    // One place that calls the nodes, so that they are compiled into this loop.
                    if let Receiver::Failing(failing) = to {
                        match self.fabric.land_failing(failing, id) {
                            Some(receiver) => to = receiver,
                            None => continue,
                        }
                    }
                    match to {
                        Receiver::Switch(switch, port) => {
                            let node = &mut self.switches[switch as usize];
                            let mut ports = Ports { fabric: &mut self.fabric, first: node.first };
                            node.switch.on_arrival(now, port, id, &mut ports);
                        }
                        Receiver::Host(host) => {
                            self.hosts.on_arrival(now, host, id, &mut self.fabric)
                        }
                        Receiver::Failing(_) => unreachable!("a link ends at a node"),
                    }
                }
                Class::PortReady => match self.owners[key.source() as usize] {
                    Receiver::Switch(switch, port) => {
                        let node = &mut self.switches[switch as usize];
                        let mut ports = Ports { fabric: &mut self.fabric, first: node.first };
                        node.switch.on_ready(now, port, &mut ports);
                    }
                    Receiver::Host(host) => self.hosts.on_nic_ready(now, host, &mut self.fabric),
                    Receiver::Failing(_) => unreachable!("an owner is a node"),
                },
                _ => self.serve_rare(now, key),
            }
        }
        self.fabric.audit.events += served;
        if served > 0 {
            self.last_event = self.last_event.max(self.now);
        }
    }

    /// The node at an out-link's beginning learns that the link is down, or up again. Hosts have no
    /// other.
    fn notice(&mut self, out: u32, down: bool) {
        let Receiver::Switch(switch, port) = self.owners[out as usize] else { return };
        self.switches[switch as usize].switch.set_alive(port, !down);
    }

    /// The routes of the network change, and so those of some switches of this cell.
    fn reroute(&mut self, epoch: u32) {
        let shared = self.hosts.shared.clone();
        let here = self.fabric.events.here();
        for node in self.switches.iter_mut().filter(|node| node.cell == here) {
            if let Some(changes) = shared.epochs[epoch as usize].changed.get(&node.index) {
                node.switch
                    .set_routes(shared.plan.topology.routes[node.index as usize].amended(changes));
            }
        }
    }

    fn serve_rare(&mut self, now: Time, key: Key) {
        match key.class() {
            Class::Start if key.source() == WAITED => {
                self.hosts.start_waited(now, key.sequence(), &mut self.fabric)
            }
            Class::Start if key.sequence() == 0 => {
                let starts = &mut self.starts[self.fabric.events.here() as usize];
                let arrival = starts.pop_front().expect("a start is scheduled only for an arrival");
                if let Some(next) = starts.front() {
                    self.fabric.events.push_here(next.at, Key::new(Class::Start, 0, 0));
                }
                self.hosts.start(now, &arrival, &mut self.fabric);
            }
            Class::Start => {
                let (_, source, host) = self.loops[key.sequence() as usize - 1];
                self.hosts.start_loops(now, source, host, &mut self.fabric);
            }
            Class::Link if key.sequence() >= REROUTE => self.reroute(key.sequence() - REROUTE),
            Class::Link => self.notice(key.source(), key.sequence() != 0),
            Class::NicRoom if key.sequence() == NONE => {
                self.hosts.on_room_for_messages(now, key.source(), &mut self.fabric);
            }
            Class::NicRoom if key.sequence() == PULL => {
                self.hosts.on_pull(now, key.source(), &mut self.fabric)
            }
            Class::NicRoom => self.hosts.on_nic_room(now, key.sequence(), &mut self.fabric),
            Class::SenderTimer => self.hosts.on_sender_timer(now, key.sequence(), &mut self.fabric),
            Class::ReceiverTimer => {
                self.hosts.on_receiver_timer(now, key.sequence(), &mut self.fabric)
            }
            Class::OrderingTimer => {
                self.hosts.on_ordering_timer(now, key.source(), key.sequence(), &mut self.fabric);
            }
            Class::Answer => self.hosts.on_answer(now, key.sequence(), &mut self.fabric),
            Class::Release => {
                self.hosts.on_release(now, key.source(), key.sequence(), &mut self.fabric)
            }
            Class::Poll => self.hosts.on_poll(now, key.source(), key.sequence(), &mut self.fabric),
            Class::Pause => match self.fabric.land_pause(key.source()) {
                (Receiver::Switch(switch, port), frame) => {
                    let node = &mut self.switches[switch as usize];
                    let mut ports = Ports { fabric: &mut self.fabric, first: node.first };
                    node.switch.on_pause(now, port, frame, &mut ports);
                }
                (Receiver::Host(host), frame) => {
                    self.hosts.on_pause(now, host, frame, &mut self.fabric)
                }
                (Receiver::Failing(_), _) => unreachable!("a link ends at a node"),
            },
            Class::PauseCheck => {
                let Receiver::Switch(switch, port) = self.owners[key.source() as usize] else {
                    return;
                };
                let node = &mut self.switches[switch as usize];
                let mut ports = Ports { fabric: &mut self.fabric, first: node.first };
                let target = PauseTarget::of_number(key.sequence());
                node.switch.on_pause_check(now, port, target, &mut ports);
            }
            Class::Probe => self.hosts.on_probe(now, key.sequence(), &mut self.fabric),
            Class::Arrival | Class::PortReady => unreachable!("served in the loop"),
        }
    }

    /// The counts of this partition, with what is still in flight.
    pub fn audit(&self) -> Audit {
        let mut audit = self.fabric.audit.clone();
        let mut in_flight = Tally::default();
        let ids = self
            .fabric
            .in_flight()
            .chain(self.switches.iter().flat_map(|node| node.switch.queued()));
        for id in ids.chain(self.hosts.queued()) {
            in_flight.add(self.fabric.packets[id].size);
        }
        let known = in_flight.packets + self.hosts.kept() as u64;
        audit.lost = (self.fabric.packets.live() as u64).saturating_sub(known);
        audit.in_flight = in_flight;
        audit
    }
}
