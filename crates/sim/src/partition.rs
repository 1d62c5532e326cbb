//! One partition: its nodes, its links, its events. It runs a window at a time and touches nothing
//! outside itself.

use crate::audit::{Audit, Tally};
use crate::event::{Class, Due};
use crate::fabric::{Fabric, Ports, Receiver};
use crate::hosts::Hosts;
use crate::mail::{Mail, Note};
use crate::samples::Samplers;
use crate::switch_node::SwitchNode;
use millpond_core::packet::Telemetry;
use millpond_core::{PacketId, Time};
use millpond_scenario::traffic::{Arrival, Query};
use std::collections::VecDeque;

pub struct Partition {
    /// Links, packets, events.
    pub fabric: Fabric,
    pub switches: Vec<SwitchNode>,
    pub hosts: Hosts,
    pub samplers: Samplers,
    pub owners: Vec<Receiver>,
    /// By cell: open-loop flows to come, in their order; the first one's start is an event.
    starts: Vec<VecDeque<Arrival>>,
    /// Closed loops: (when, source, host here).
    loops: Vec<(Time, u16, u32)>,
    /// The notes being read; empty between edges.
    notes: Vec<Note>,
    completes_telemetry: bool,
    now: Time,
    /// When the last event was served.
    last_event: Time,
}

impl Partition {
    pub fn new(
        fabric: Fabric,
        switches: Vec<SwitchNode>,
        hosts: Hosts,
        owners: Vec<Receiver>,
        loops: Vec<(Time, u16, u32)>,
    ) -> Partition {
        let completes_telemetry = switches.iter().any(|node| node.switch.writes_late());
        let mut partition = Partition {
            samplers: Samplers::new(&hosts.shared.plan.capture, &switches, &hosts),
            starts: vec![VecDeque::new(); fabric.events.count() as usize],
            fabric,
            switches,
            hosts,
            owners,
            loops,
            notes: Vec::new(),
            completes_telemetry,
            now: Time::ZERO,
            last_event: Time::ZERO,
        };
        for (i, (at, _, host)) in partition.loops.iter().enumerate() {
            let events = &mut partition.fabric.events;
            events.push_to(events.of_host(*host), *at, Due::StartLoop(i as u32).into());
        }
        partition
    }

    pub fn schedule(&mut self, arrival: Arrival) {
        let cell = self.fabric.events.of_host(self.hosts.shared.local_host(arrival.src));
        let starts = &mut self.starts[cell as usize];
        if starts.is_empty() {
            self.fabric.events.push_to(cell, arrival.at, Due::Start.into());
        }
        starts.push_back(arrival);
    }

    /// A query will be asked here.
    pub fn expect(&mut self, query: Query) {
        self.hosts.expect(query);
    }

    /// Takes in what all partitions, itself among them, left for it in the window before. Notes are
    /// read in the order of flows: the order in which they were written depends on which
    /// hosts share a partition.
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
        let packets = &self.fabric.packets;
        self.samplers.sample(at, &mut self.switches, &mut self.hosts, packets);
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
            if key.is(Class::Arrival) {
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
                        if self.completes_telemetry {
                            self.complete_telemetry(id);
                        }
                        self.hosts.on_arrival(now, host, id, &mut self.fabric)
                    }
                    Receiver::Failing(_) => unreachable!("a link ends at a node"),
                }
            } else if key.is(Class::PortReady) {
                match self.owners[key.source() as usize] {
                    Receiver::Switch(switch, port) => {
                        let node = &mut self.switches[switch as usize];
                        let mut ports = Ports { fabric: &mut self.fabric, first: node.first };
                        node.switch.on_ready(now, port, &mut ports);
                    }
                    Receiver::Host(host) => self.hosts.on_nic_ready(now, host, &mut self.fabric),
                    Receiver::Failing(_) => unreachable!("an owner is a node"),
                }
            } else {
                self.serve_rare(now, key.due());
            }
        }
        self.fabric.audit.events += served;
        if served > 0 {
            self.last_event = self.last_event.max(self.now);
        }
    }

    /// A packet has reached its host: the ports on its way write what is still missing.
    #[inline(never)]
    fn complete_telemetry(&mut self, id: PacketId) {
        let packets = &mut self.fabric.packets;
        let Some(slot) = packets.slot_of::<Telemetry>(packets[id].side) else { return };
        while let Some(late) = packets.record_at_mut::<Telemetry>(slot).first_late() {
            let Receiver::Switch(switch, port) = self.owners[late.number as usize] else {
                unreachable!("switches write telemetry")
            };
            self.switches[switch as usize].switch.complete_telemetry(late.at, port, packets);
        }
    }

    /// The node at an out-link's beginning learns that the link is down, or up again. A host with
    /// several NICs moves its connections.
    fn notice(&mut self, now: Time, out: u32, down: bool) {
        let Receiver::Switch(switch, port) = self.owners[out as usize] else {
            let Receiver::Host(host) = self.owners[out as usize] else { return };
            return self.hosts.move_connections(now, Some(host), &mut self.fabric);
        };
        self.switches[switch as usize].switch.set_alive(port, !down);
    }

    /// The routes of the network change, and so those of some switches of this cell.
    fn reroute(&mut self, now: Time, epoch: u32) {
        let shared = self.hosts.shared.clone();
        let here = self.fabric.events.here();
        for node in self.switches.iter_mut().filter(|node| node.cell == here) {
            if let Some(changes) = shared.epochs[epoch as usize].changed.get(&node.index) {
                node.switch
                    .set_routes(shared.plan.topology.routes[node.index as usize].amended(changes));
            }
        }
        self.hosts.move_connections(now, None, &mut self.fabric);
    }

    #[inline(never)] // keeps the loop above small
    fn serve_rare(&mut self, now: Time, due: Due) {
        match due {
            Due::Host(host, event) => {
                self.hosts.on_event(now, host, event, &mut self.fabric);
            }
            Due::Start => {
                let starts = &mut self.starts[self.fabric.events.here() as usize];
                let arrival = starts.pop_front().expect("a start is scheduled only for an arrival");
                if let Some(next) = starts.front() {
                    self.fabric.events.push_here(next.at, Due::Start.into());
                }
                self.hosts.start(now, &arrival, &mut self.fabric);
            }
            Due::StartLoop(number) => {
                let (_, source, host) = self.loops[number as usize];
                self.hosts.start_loops(now, source, host, &mut self.fabric);
            }
            Due::StartWaited(flow) => self.hosts.start_waited(now, flow, &mut self.fabric),
            Due::Routes(epoch) => self.reroute(now, epoch),
            Due::Link { out, is_down } => self.notice(now, out, is_down),
            Due::Pause(inbound) => match self.fabric.land_pause(inbound) {
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
            Due::PauseCheck { out, target } => {
                let Receiver::Switch(switch, port) = self.owners[out as usize] else {
                    return;
                };
                let node = &mut self.switches[switch as usize];
                let mut ports = Ports { fabric: &mut self.fabric, first: node.first };
                node.switch.on_pause_check(now, port, target, &mut ports);
            }
            Due::Arrival { .. } | Due::PortReady(_) => unreachable!("served in the loop"),
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
