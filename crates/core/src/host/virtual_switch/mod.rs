//! The virtual switch of a receiving host: between the NIC's receive ring and the applications'
//! rings, and the applications' cores behind them.
//!
//! ```text
//! link ══► receive ring ──► core of the switch ──► queue ──► ring ──► application's core ──► up
//!                                  └────────────► packets without payload ─────────────────► up
//! ```
//!
//! Follows Backdraft (Sanaee, Shahinfar, Antichi, Stephens: Backdraft: a Lossless Virtual Switch
//! that Prevents the Slow Receiver Problem, NSDI 2022) and what it compares with:
//!
//! | kind | the queue | without room |
//! |---|---|---|
//! | `lossy` | none | the packet is dropped |
//! | `backpressure` | one an application's core | no polling from 0.9 of a queue on until 0.15 |
//! | `flow-queues` | one a flow | rings are polled no more, when memory is exhausted |
//! | `backdraft` | one a flow | senders are paused (`pauses`), then as above |
//! | `credits` | one a flow | there is room: senders have in flight what they were granted |
//! | `picnic` | one an application's core | senders get a rate; then the packet is dropped |
//!
//! | file | what |
//! |---|---|
//! | `params` | the kinds and their keys |
//! | `config` | what a switch is made of |
//! | `counts` | what is counted |
//! | `application` | a core of an application: services, stalls |
//! | `queue` | the queue of one core of an application, by kind |
//! | `overlay` | a scheme that holds senders back |
//! | `talk` | the packets of the overlay |
//! | `pauses` | pauses, as of this project |
//! | `generations` | pauses as the authors' release has them |
//! | `credits` | grants before data |
//! | `picnic` | rates |
//! | `measured` | a queue that measures how long packets wait |
//!
//! *A core of the switch* runs to completion: it takes up to a batch from its ring, and what that
//! costs passes before anything becomes of it. A round costs a look at each queue that is polled,
//! so much a packet, and so much a doorbell. A core without work begins with the next packet.
//! Packets from the queue to the ring cost nothing more.
//!
//! *The transport* lies in user space, above the application's ring: its endpoint sees a packet
//! with payload when the application's core has served it. A packet without payload costs the
//! application nothing and goes up when the switch has had it, as does the data of a traffic that
//! no application has. Sending costs nothing.
//!
//! Invariants: what arrives is handed up or dropped once; packets of a flow keep their order, but
//! for those without payload; all times follow from arrivals and random streams alone.

mod application;
mod config;
mod counts;
mod credits;
mod generations;
mod leaving;
mod measured;
mod overlay;
mod params;
mod pauses;
mod picnic;
mod queue;
mod talk;

pub use application::{ApplicationCosts, ApplicationCounts, Per};
pub use config::{ApplicationConfig, VirtualSwitchConfig};
pub use counts::{Counts, FlowCounts, Words};
pub use generations::Language;
pub use params::{
    BackdraftParams, BackpressureParams, CreditsParams, Doorbells, FlowQueuesParams, LossyParams,
    NoVirtualSwitchParams, PicnicParams, Speaking, VirtualSwitchParams,
};

use super::received::Received;
use super::{Call, Flows, HostWire, passes};
use crate::counters::DropReason;
use crate::overlay::Change;
use crate::packet::overlay::Whom;
use crate::packet::{FlowId, HostId, Kind, Packet, PacketId};
use crate::random::mix64;
use crate::units::Time;
use application::ApplicationCore;
use config::Costs;
use overlay::Leaving;
use queue::{Placed, Queue};
use std::collections::VecDeque;
use talk::Talk;

/// A core of the switch, with its receive ring.
#[derive(Default)]
struct Core {
    ring: VecDeque<PacketId>,
    /// Words of other switches, which come before data.
    words: VecDeque<PacketId>,
    /// Packets that its present round has taken.
    taken: VecDeque<PacketId>,
    read: usize,
    is_busy: bool,
    /// A packet of it found no memory.
    is_stopped: bool,
    rounds: u32,
}

/// A core of an application with the queue before its ring.
struct Port {
    queue: Queue,
    core: ApplicationCore,
    is_here: bool,
}

/// The virtual switch of one host.
pub struct VirtualSwitch {
    me: HostId,
    costs: Costs,
    cores: Vec<Core>,
    ports: Vec<Port>,
    /// By class: its application, the first port of that, and how many it has.
    by_class: Vec<Option<(u16, u16, u16)>>,
    applications: Vec<ApplicationConfig>,
    params: VirtualSwitchParams,
    talk: Option<Box<Talk>>,
    counts: Counts,
    /// Scratch: the flows of a round.
    rung: Vec<FlowId>,
    /// Records have come for the overlay, or its time has, since it was last asked for some.
    is_stirred: bool,
}

impl VirtualSwitch {
    /// Idle; `None` of the kind that is none.
    pub fn new(mut config: VirtualSwitchConfig) -> Option<Box<VirtualSwitch>> {
        if matches!(config.params, VirtualSwitchParams::None(_)) {
            return None;
        }
        let (costs, cores) = Costs::new(&config.params);
        let (mut ports, mut first_of) = (Vec::new(), Vec::new());
        for (number, application) in config.applications.clone().into_iter().enumerate() {
            first_of.push((number as u16, ports.len() as u16, application.costs.cores as u16));
            for _ in 0..application.costs.cores {
                let queue = Queue::new(&mut config);
                let core = ApplicationCore::new(&application.costs, config.random.fork());
                ports.push(Port { queue, core, is_here: application.is_at(config.host) });
            }
        }
        let of = |application: &Option<u16>| application.map(|it| first_of[usize::from(it)]);
        Some(Box::new(VirtualSwitch {
            me: config.host,
            costs,
            cores: (0..cores).map(|_| Core::default()).collect(),
            ports,
            by_class: config.by_class.iter().map(of).collect(),
            talk: Talk::new(&mut config),
            applications: config.applications,
            params: config.params,
            counts: Counts::default(),
            rung: Vec::new(),
            is_stirred: false,
        }))
    }

    /// Packets here.
    pub(super) fn kept(&self) -> usize {
        let cores =
            self.cores.iter().map(|core| core.ring.len() + core.words.len() + core.taken.len());
        let ports = self.ports.iter().map(|port| port.queue.len() + port.core.kept());
        cores.sum::<usize>() + ports.sum::<usize>()
    }

    pub fn counts(&self) -> Counts {
        let mut counts = self.counts;
        for Port { queue, core, .. } in &self.ports {
            let ApplicationCounts { packets, bytes, busy } = core.counts;
            counts.served.packets += packets;
            counts.served.bytes += bytes;
            counts.served.busy += busy;
            if let Queue::Flows(queues) = queue {
                let its = queues.counters();
                let flows = counts.flows.get_or_insert_default();
                flows.pauses += its.pauses;
                flows.resumes += its.resumes;
                flows.peak_bytes = flows.peak_bytes.max(its.peak_bytes);
                flows.queued += queues.queued().0;
            }
        }
        let words = |talk: &Talk| Words::new(&self.params, &talk.sent, talk.overlay.late());
        counts.words = self.talk.as_deref().map(words);
        counts
    }

    /// The core of an application that a flow's data goes to.
    fn port_of(&self, class: Option<u16>, flow: FlowId) -> Option<u16> {
        let (_, first, cores) = (*self.by_class.get(usize::from(class?))?)?;
        Some(first + (mix64(u64::from(flow)) >> 32) as u16 % cores)
    }

    fn core_of(&self, flow: FlowId) -> usize {
        match self.cores.len() {
            1 => 0,
            cores => (mix64(u64::from(flow)) % cores as u64) as usize,
        }
    }

    /// A packet has arrived.
    pub(super) fn on_arrival<W: HostWire>(&mut self, now: Time, id: PacketId, wire: &mut W) {
        let packet = wire.packets()[id];
        passes!(Ring);
        if packet.kind() == Kind::Overlay {
            return self.on_word(now, id, packet.src, wire);
        }
        let number = self.core_of(packet.flow);
        let core = &mut self.cores[number];
        if core.ring.len() >= self.costs.ring {
            self.counts.ring_drops += 1;
            self.counts.wasted += u64::from(packet.payload);
            return wire.discard(id, DropReason::ReceiveRing);
        }
        wire.arrived(id);
        core.ring.push_back(id);
        self.begin(now, number, wire);
    }

    /// A packet of another switch's records has come, if it is not lost.
    fn on_word<W: HostWire>(&mut self, now: Time, id: PacketId, from: HostId, wire: &mut W) {
        let Some(talk) = &mut self.talk else { return wire.discard(id, DropReason::VirtualSwitch) };
        if talk.loses(from) {
            return wire.discard(id, DropReason::Injected);
        }
        wire.arrived(id);
        self.cores[0].words.push_back(id);
        self.begin(now, 0, wire);
    }

    /// Begins a round, if the core has nothing to do and something to take.
    fn begin<W: HostWire>(&mut self, now: Time, number: usize, wire: &mut W) {
        let core = &mut self.cores[number];
        if core.is_busy || (core.ring.is_empty() && core.words.is_empty()) {
            return;
        }
        let stands = core.is_stopped || self.ports.iter().any(|port| port.queue.is_overloaded());
        if !stands {
            take(&mut core.ring, &mut core.taken, self.costs.batch);
        }
        core.read = core.words.len().min(self.costs.batch);
        let packets = (core.taken.len() + core.read) as u64;
        if packets == 0 {
            return;
        }
        core.is_busy = true;
        let (polls, doorbells) = self.looks(number, wire);
        self.counts.rounds += 1;
        self.counts.polls += polls;
        self.counts.packets += packets;
        self.counts.doorbells += doorbells;
        let messages = if self.costs.doorbells == Some(Doorbells::Counted) { doorbells } else { 0 };
        let work = self.costs.poll * polls
            + self.costs.per_packet * (packets + messages)
            + self.costs.doorbell * doorbells;
        wire.call(now.saturating_add(work), Call::Switch(number as u16));
    }

    /// How many queues a round looks at, and how many doorbells it rings: one a flow that it has
    /// something for.
    fn looks<W: HostWire>(&mut self, number: usize, wire: &mut W) -> (u64, u64) {
        let flows = || self.ports.iter().map(|port| port.queue.flow_count() as u64).sum::<u64>();
        match self.costs.doorbells {
            None => (1 + self.ports.iter().filter(|port| port.is_here).count() as u64, 0),
            Some(Doorbells::Polled) => (1 + flows(), 0),
            Some(Doorbells::Armed | Doorbells::Counted) => {
                let taken = &self.cores[number].taken;
                if taken.len() <= 1 {
                    return (2, taken.len() as u64);
                }
                let pool = wire.packets();
                self.rung.clear();
                self.rung.extend(taken.iter().map(|id| pool[*id].flow));
                self.rung.sort_unstable();
                self.rung.dedup();
                (2, self.rung.len() as u64)
            }
        }
    }

    /// A round ends: what it took goes on.
    pub(super) fn on_round<F: Flows, W: HostWire>(
        &mut self,
        now: Time,
        number: u16,
        up: &mut VecDeque<Received>,
        flows: &mut F,
        wire: &mut W,
    ) {
        let number = usize::from(number);
        passes!(Core);
        self.cores[number].is_busy = false;
        self.cores[number].rounds += 1;
        self.is_stirred |= self.cores[number].read > 0;
        for _ in 0..std::mem::take(&mut self.cores[number].read) {
            let Some(id) = self.cores[number].words.pop_front() else { break };
            if let Some(talk) = &mut self.talk {
                let packets = wire.packets();
                let packet = packets[id];
                if let Some(words) = packets.side(&packet).copied() {
                    talk.on_record(now, self.me, packet.src, &words);
                }
            }
            wire.packets().remove(id);
        }
        while let Some(id) = self.cores[number].taken.pop_front() {
            let packet = wire.packets()[id];
            let port = match packet.payload {
                0 => None,
                _ => self.port_of(flows.class(&packet), packet.flow),
            };
            let Some(port) = port.filter(|port| self.ports[usize::from(*port)].is_here) else {
                up.push_back(Received::one(id, &packet));
                continue;
            };
            if !self.place(now, usize::from(port), id, flows, wire) {
                let core = &mut self.cores[number];
                self.counts.stops += u64::from(!std::mem::replace(&mut core.is_stopped, true));
                core.ring.push_front(id);
                while let Some(rest) = core.taken.pop_back() {
                    core.ring.insert(1, rest);
                }
                break;
            }
        }
        if self.cores[number].rounds.is_multiple_of(EXPIRY_ROUNDS) {
            self.ports.iter_mut().for_each(|port| port.queue.expire(now));
            self.talk.iter_mut().for_each(|talk| talk.overlay.age(now));
        }
        self.begin(now, number, wire);
    }

    /// Gives a packet to a core of an application; `false`: there is no memory, it stays here.
    fn place<F: Flows, W: HostWire>(
        &mut self,
        now: Time,
        port: usize,
        id: PacketId,
        flows: &mut F,
        wire: &mut W,
    ) -> bool {
        let packet = wire.packets()[id];
        let Port { queue, core, .. } = &mut self.ports[port];
        let was_overloaded = queue.is_overloaded();
        match queue.place(now, id, &packet, core) {
            Placed::Taken(verdict) => {
                if let Some(talk) = &mut self.talk {
                    talk.overlay.arrived(now, port as u16, &packet, queue, verdict.as_ref());
                }
            }
            Placed::Dropped => {
                self.counts.drops += 1;
                self.counts.wasted += u64::from(packet.payload);
                wire.discard_received(Received::one(id, &packet), DropReason::VirtualSwitch);
                return true;
            }
            Placed::Held(verdict) => {
                if let Some(talk) = &mut self.talk {
                    talk.overlay.arrived(now, port as u16, &packet, queue, Some(&verdict));
                }
                self.take_signals(now, port);
                return false;
            }
        }
        self.counts.stops += u64::from(!was_overloaded && self.ports[port].queue.is_overloaded());
        self.serve(now, port, flows, wire);
        self.take_signals(now, port);
        true
    }

    /// Moves packets from a queue to its ring, and lets the application's core begin, if it has
    /// nothing to do.
    fn serve<F: Flows, W: HostWire>(
        &mut self,
        now: Time,
        port: usize,
        flows: &mut F,
        wire: &mut W,
    ) {
        let Port { queue, core, .. } = &mut self.ports[port];
        queue.fill(now, core);
        if !core.is_ready() {
            return;
        }
        core.poll();
        queue.fill(now, core);
        self.next_service(now, port, flows, wire);
    }

    fn next_service<F: Flows, W: HostWire>(
        &mut self,
        now: Time,
        port: usize,
        flows: &mut F,
        wire: &mut W,
    ) {
        let core = &mut self.ports[port].core;
        let Some(id) = core.first() else { return };
        let packet = wire.packets()[id];
        let is_service = !core.asks_for_ends() || flows.ends_message(&packet);
        let ends = core.serve(now, packet.payload, is_service);
        wire.call(ends, Call::Application(port as u16));
    }

    /// The core of an application has served a packet, which goes up.
    pub(super) fn on_application<F: Flows, W: HostWire>(
        &mut self,
        now: Time,
        port: u16,
        up: &mut VecDeque<Received>,
        flows: &mut F,
        wire: &mut W,
    ) {
        let port = usize::from(port);
        let Some(id) = self.ports[port].core.served() else { return };
        up.push_back(Received::one(id, &wire.packets()[id]));
        if self.ports[port].core.first().is_some() {
            return self.next_service(now, port, flows, wire);
        }
        self.serve(now, port, flows, wire);
        self.take_signals(now, port);
        // There may be room again for what was not taken.
        for number in 0..self.cores.len() {
            self.cores[number].is_stopped = false;
            self.begin(now, number, wire);
        }
    }

    /// Passes a port's signals on to the other switches.
    fn take_signals(&mut self, now: Time, port: usize) {
        let queue = &mut self.ports[port].queue;
        match &mut self.talk {
            Some(talk) => talk.overlay.take_signals(now, port as u16, queue),
            None => queue.ignore_signals(),
        }
    }

    /// The next packet for another switch.
    pub(super) fn next_word<W: HostWire>(&mut self, now: Time, wire: &mut W) -> Option<Packet> {
        let (mut packet, words) = self.talk.as_mut()?.next(now, self.me, &mut self.ports)?;
        wire.packets().attach(&mut packet, words);
        Some(packet)
    }

    /// The overlay's time has come; `false`: that was taken back.
    pub(super) fn on_overlay(&mut self, now: Time) -> bool {
        self.is_stirred = true;
        self.talk.as_mut().is_some_and(|talk| talk.expire(now, &mut self.ports))
    }

    /// Whether the overlay may have records to send, or changes for flows here.
    pub(super) fn has_news(&mut self, now: Time) -> bool {
        let is_stirred = std::mem::take(&mut self.is_stirred);
        self.talk.as_ref().is_some_and(|talk| is_stirred || !talk.overlay.is_quiet(now))
    }

    /// Keeps the overlay's timer no later than it has something to do.
    pub(super) fn arm<W: HostWire>(&mut self, now: Time, wire: &mut W) {
        if let Some(talk) = &mut self.talk {
            talk.arm(now, wire);
        }
    }

    /// A target that may no longer, or may again, send.
    pub(super) fn next_change(&mut self, now: Time) -> Option<Change> {
        self.talk.as_mut()?.overlay.next_change(now)
    }
}

/// Takes up to `count` from the front of a ring; the whole of it at no cost.
fn take(ring: &mut VecDeque<PacketId>, into: &mut VecDeque<PacketId>, count: usize) {
    match into.is_empty() && ring.len() <= count {
        true => std::mem::swap(ring, into),
        false => into.extend(ring.drain(..ring.len().min(count))),
    }
}

/// Queues of silent flows are looked for once in so many rounds.
const EXPIRY_ROUNDS: u32 = 1024;
