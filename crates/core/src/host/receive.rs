//! The receive rings of a host, and the cores that work on them (`host.receive-cpu`).
//!
//! A packet that comes to an idle ring calls a poll after the coalescing time. A poll takes what
//! the ring holds, up to the budget; while something is left another follows at once, as the
//! kernel's does. Polls that begin are a throttle's time apart at least (`host.nic.interrupts`).
//! Rings are known by number, and flows are spread over them by hash; each ring is
//! worked on by one core. Without cores polls take no time.
//!
//! **With cores.** A poll takes what waits, up to its budget, and the core works on it: so much for
//! each packet, for each byte of payload, and for each segment that goes up. While it works no poll
//! of its rings begins, and what arrives waits in the ring, which has a bound. A poll that took its
//! whole budget is followed by another at once; after any other the interrupt is armed again, and
//! comes the coalescing time after the first packet that waits did, or when the core is free, if
//! that is later: as the kernel's polls do.
//!
//! **When segments go up.** All at the end of the work on their poll, in their order. In the kernel
//! each goes up within the poll, most of them when it ends: the wait that the whole of a poll's
//! work makes is in every segment's delay, and none is acknowledged before it was paid for. The
//! offload decides when the poll begins, as without costs: the time that its own work takes is not
//! to be taken for reordering. The extra cost of a segment that the transport finds out of order is
//! known only then; the core stays busy for it, after the answers have left.
//!
//! A timer of the offload that comes while the core works waits until it is free; its segments cost
//! what others do. Acknowledgements are packets and segments like data, without payload. Sending
//! costs nothing.
//!
//! Invariant: a core does one thing at a time; every packet that a poll took goes up once, when the
//! work on it is done; while something is held a timer is due no later than its deadline, or than
//! the core is free.

mod cores;
mod ring;

use cores::Core;
pub use cores::{CoreCounts, report_cores};
use ring::Ring;

use super::offload::{self, Flow};
use super::received::Received;
use super::{Call, HostWire, passes};
use crate::counters::{Counters as Report, DropReason};
use crate::edge::gro::{Counters, Offload, OffloadParams, Released, StockGroParams};
use crate::packet::{FlowId, HostId, Packet, PacketId};
use crate::random::mix64;
use crate::units::Time;
use std::collections::VecDeque;

crate::params! {
    /// The table host.receive-cpu: what receiving costs a host's cores. Defaults are solved from
    /// published processor shares (docs/reproduce-presto.md has the arithmetic); they are
    /// calibrated, not measured.
    pub struct ReceiveCpuParams {
        /// Work for a packet that a poll takes: descriptor, buffer, headers. Source: calibrated;
        /// its division from the work for a byte is ours.
        #[within(0..=1_000_000_000)]
        pub per_packet: Time = Time::from_ns(400),
        /// Work for a byte of payload: checksum and copy. Source: ours, 4 GB/s.
        #[within(0..=1_000_000)]
        pub per_byte: Time = Time::from_ps(250),
        /// Work for a segment that goes up: the stack, the acknowledgement, the wake-up. Source:
        /// calibrated.
        #[within(0..=1_000_000_000)]
        pub per_segment: Time = Time::from_ns(1_182),
        /// Work on top for a segment that the transport finds out of order: it is queued, and
        /// answered by a duplicate acknowledgement. Source: calibrated.
        #[within(0..=1_000_000_000)]
        pub per_out_of_order: Time = Time::from_ns(3_204),
        /// Packets that may wait for a poll; what comes beyond is dropped (receive-ring). Source: a
        /// common driver's default.
        #[within(1..=1_000_000)]
        pub ring: u32 = 512,
        /// Cores of a host, each with a ring of its own; a hash spreads flows over them. Source:
        /// ours, one.
        #[within(1..=64)]
        pub cores: u32 = 1,
    }
}

/// Idle flows are looked for once in so many polls.
const EVICTION_POLLS: u32 = 64;

/// The settings that a host receives with.
pub struct ReceiveConfig {
    /// The offload that merges.
    pub offload: OffloadParams,
    /// Packets that a poll takes at most.
    pub budget: u32,
    /// From the first packet of an idle ring to its poll.
    pub coalescing: Time,
    /// From a poll to the next one, at least.
    pub throttle: Time,
    /// Rings, at least one.
    pub rings: u16,
    /// Cores, and what they charge; none: polls take no time. Ring r is worked on by core r modulo
    /// their number.
    pub cores: Option<(u16, ReceiveCpuParams)>,
    /// Work that cores do from then on counts.
    pub measured_from: Time,
}

impl ReceiveConfig {
    /// As many rings as cores, or one without; `None`: what arrives goes up as it comes.
    /// `interrupts`: their throttle, if there are any; their polls merge as the kernel's do.
    pub fn new(
        offload: &OffloadParams,
        costs: Option<&ReceiveCpuParams>,
        interrupts: Option<Time>,
        measured_from: Time,
    ) -> Option<ReceiveConfig> {
        let at_once = StockGroParams { coalescing: Time::ZERO, ..StockGroParams::default() };
        let offload = match (offload, interrupts) {
            (OffloadParams::None(_), Some(_)) => OffloadParams::Stock(at_once),
            _ => offload.clone(),
        };
        let polls = costs.is_some() || !matches!(offload, OffloadParams::None(_));
        let cores = costs.map(|costs| (costs.cores as u16, costs.clone()));
        let rings = cores.as_ref().map_or(1, |(count, _)| *count);
        let (budget, coalescing) = match &offload {
            // Polls without merging are the kernel's.
            OffloadParams::None(_) => {
                let p = StockGroParams::default();
                (p.budget, p.coalescing)
            }
            OffloadParams::Stock(p) => (p.budget, p.coalescing),
            OffloadParams::Presto(p) => (p.budget, p.coalescing),
        };
        polls.then(|| ReceiveConfig {
            offload,
            budget,
            coalescing,
            throttle: interrupts.unwrap_or_default(),
            rings,
            cores,
            measured_from,
        })
    }
}

/// A host's rings and cores.
pub struct Receive<K = Flow> {
    rings: Vec<Ring<K>>,
    cores: Vec<Core>,
    /// The core whose segments go up at present.
    finishes: Option<u16>,
}

impl<K: Copy + Eq> Receive<K> {
    /// A receive side with empty rings and idle cores.
    pub fn new(config: &ReceiveConfig) -> Receive<K> {
        let ring = |number| Ring::new(number, config);
        let cores = config.cores.iter();
        let core = |(count, costs): &(u16, ReceiveCpuParams)| {
            let costs = costs.clone();
            (0..*count).map(move |_| Core::new(costs.clone(), config.measured_from))
        };
        Receive {
            rings: (0..config.rings.max(1)).map(ring).collect(),
            cores: cores.flat_map(core).collect(),
            finishes: None,
        }
    }

    /// The offload's counts, by ring.
    pub fn offloads(&self) -> impl Iterator<Item = &Counters> {
        self.rings.iter().map(|ring| ring.offload.counters())
    }

    /// Work that cores have done by `now`, by number; none where receiving costs nothing.
    pub fn cores(&self, now: Time) -> impl Iterator<Item = CoreCounts> {
        self.cores.iter().map(move |core| core.counts(now))
    }

    /// Packets that wait for a poll, in the offload, or for the core's work.
    pub(super) fn kept(&self) -> usize {
        self.rings.iter().map(|ring| ring.waiting.len() + ring.held + ring.up.len()).sum()
    }

    fn ring_of(&self, flow: FlowId) -> usize {
        match self.rings.len() {
            1 => 0,
            rings => (mix64(u64::from(flow)) % rings as u64) as usize,
        }
    }

    /// The number of the core that works on a ring, if any does.
    fn core_of(&self, ring: u16) -> Option<u16> {
        ring.checked_rem(self.cores.len() as u16)
    }

    /// A packet has arrived.
    pub(super) fn on_arrival<W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        id: PacketId,
        wire: &mut W,
    ) {
        let ring = self.ring_of(wire.packets()[id].flow);
        passes!(Ring);
        if let Some(core) = self.core_of(ring as u16) {
            let core = &mut self.cores[core as usize];
            if self.rings[ring].waiting.len() >= core.costs.ring as usize {
                core.counts.ring_drops += 1;
                return wire.discard(id, DropReason::ReceiveRing);
            }
        }
        wire.arrived(id);
        self.wait(now, id, wire);
    }

    /// A packet that has arrived waits for a poll.
    pub(super) fn wait<W: HostWire<Flow = K>>(&mut self, now: Time, id: PacketId, wire: &mut W) {
        let ring = self.ring_of(wire.packets()[id].flow);
        let ring = &mut self.rings[ring];
        ring.waiting.push_back(id);
        if !std::mem::replace(&mut ring.is_called, true) {
            let at = now.saturating_add(ring.coalescing).max(ring.rests_until);
            wire.call(at, Call::Poll(ring.number));
        }
    }

    /// A poll of a ring.
    pub(super) fn on_poll<W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        ring: u16,
        up: &mut VecDeque<Received>,
        wire: &mut W,
    ) {
        if let Some(core) = self.core_of(ring) {
            return self.begin_poll(now, ring, core, wire);
        }
        let ring = &mut self.rings[ring as usize];
        let taken = wire.records_polls().then(|| {
            let pool = wire.packets();
            ring.waiting
                .iter()
                .take(ring.budget as usize)
                .map(|id| pool[*id])
                .collect::<Vec<Packet>>()
        });
        ring.poll(now, wire);
        ring.is_called = !ring.waiting.is_empty();
        if ring.is_called {
            wire.call(now, Call::Poll(ring.number));
        }
        finish(now, ring, taken, up, wire);
    }

    /// The packets that a ring's offload holds have waited long enough.
    pub(super) fn on_held<W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        ring: u16,
        up: &mut VecDeque<Received>,
        wire: &mut W,
    ) {
        if !self.rings[ring as usize].is_due(now) {
            return;
        }
        if let Some(core) = self.core_of(ring) {
            return self.begin_flush(now, ring, core, wire);
        }
        let ring = &mut self.rings[ring as usize];
        let taken = wire.records_polls().then(Vec::new);
        ring.flush(now, wire);
        finish(now, ring, taken, up, wire);
    }

    /// A poll of a ring, whose packets cost a core work.
    fn begin_poll<W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        ring: u16,
        number: u16,
        wire: &mut W,
    ) {
        let (ring, core) = (&mut self.rings[ring as usize], &mut self.cores[number as usize]);
        if core.works_on.is_some() {
            ring.polls_again = true;
            return;
        }
        if now < core.free_at {
            return wire.call(core.free_at, Call::Poll(ring.number));
        }
        passes!(Core);
        let (packets, bytes, is_whole) = ring.next(wire);
        ring.poll(now, wire);
        // Where the interrupt is armed again, what arrives from now on calls the next poll.
        (ring.is_called, ring.polls_again) = (is_whole, is_whole);
        begin(now, ring, core, number, packets, bytes, wire);
    }

    /// The timer of what a ring's offload holds, which costs a core work.
    fn begin_flush<W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        ring: u16,
        number: u16,
        wire: &mut W,
    ) {
        let (ring, core) = (&mut self.rings[ring as usize], &mut self.cores[number as usize]);
        if core.works_on.is_some() {
            return; // the timer is armed again when it has worked
        }
        if now < core.free_at {
            ring.timer_at = core.free_at;
            return wire.call(core.free_at, Call::Held(ring.number));
        }
        passes!(Core);
        ring.flush(now, wire);
        begin(now, ring, core, number, 0, 0, wire);
    }

    /// The work on a poll is done: its segments go up.
    pub(super) fn on_worked(&mut self, core: u16, up: &mut VecDeque<Received>) {
        let Some(ring) = self.cores[core as usize].works_on else { return };
        up.append(&mut self.rings[ring as usize].up);
        self.finishes = Some(core);
    }

    /// The core whose segments go up at present.
    pub(super) fn finishing(&mut self) -> Option<&mut Core> {
        self.finishes.map(|core| &mut self.cores[core as usize])
    }

    /// All segments are handed up: of the core whose they were the work is done, and the next may
    /// begin.
    pub(super) fn taken_up<W: HostWire<Flow = K>>(&mut self, now: Time, wire: &mut W) {
        let Some(number) = self.finishes.take() else { return };
        let count = self.cores.len();
        let core = &mut self.cores[number as usize];
        core.end(now);
        for ring in self.rings.iter_mut().skip(number as usize).step_by(count) {
            if std::mem::take(&mut ring.polls_again) {
                ring.is_called = !ring.waiting.is_empty();
                if ring.is_called {
                    wire.call(core.free_at.max(ring.rests_until), Call::Poll(ring.number));
                }
            }
            ring.arm(core.free_at, wire);
        }
    }

    /// Forgets some of the flows that are idle.
    pub(super) fn age(&mut self, now: Time) {
        self.rings.iter_mut().for_each(|ring| {
            ring.offload.evict(now);
        });
    }

    /// Keeps so many flows at most, of each ring.
    pub(super) fn bound(&mut self, flows: usize) {
        self.rings.iter_mut().for_each(|ring| ring.offload.bound(flows));
    }
    /// A flow is over.
    pub(super) fn over(&mut self, hash: u32, flow: K) {
        self.rings.iter_mut().for_each(|ring| ring.offload.forget(hash, flow));
    }
    /// Flows that are known.
    pub fn flows(&self) -> usize {
        self.rings.iter().map(|ring| ring.offload.flows()).sum()
    }

    /// Lets go all that waits or is held, whatever cores work on.
    pub(super) fn drain<W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        up: &mut VecDeque<Received>,
        wire: &mut W,
    ) {
        for ring in &mut self.rings {
            ring.drain(now, wire);
            up.append(&mut ring.up);
        }
    }
}

impl Receive {
    /// A connection is over: its subflows need not be remembered.
    pub(super) fn forget(&mut self, flow: FlowId, subflows: u8) {
        let ring = self.ring_of(flow);
        for flow in (0..subflows).map(|subflow| (flow, subflow)) {
            self.rings[ring].offload.forget(offload::hash(flow), flow);
        }
    }
}

fn merge<K, W: HostWire<Flow = K>>(released: Released<'_, K, PacketId>, wire: &mut W) -> Received {
    passes!(Offload);
    wire.merge(released)
}

/// The core of this number works on what a ring let through, and on the packets and bytes that it
/// took.
fn begin<K: Copy + Eq, W: HostWire<Flow = K>>(
    now: Time,
    ring: &mut Ring<K>,
    core: &mut Core,
    number: u16,
    packets: u64,
    bytes: u64,
    wire: &mut W,
) {
    ring.age(now);
    let segments = ring.up.len() as u64;
    if packets == 0 && segments == 0 {
        return ring.arm(core.free_at, wire);
    }
    core.begin(now, ring.number, packets, bytes, segments);
    wire.call(core.free_at, Call::Worked(number));
}

/// Ends a poll that costs nothing, or a timer: what was let through goes up.
fn finish<K: Copy + Eq, W: HostWire<Flow = K>>(
    now: Time,
    ring: &mut Ring<K>,
    taken: Option<Vec<Packet>>,
    up: &mut VecDeque<Received>,
    wire: &mut W,
) {
    ring.arm(Time::ZERO, wire);
    ring.age(now);
    if let Some(taken) = taken {
        wire.polled(now, taken, ring.up.make_contiguous(), ring.offload.counters());
    }
    up.append(&mut ring.up);
}
