//! A host's core: what receiving costs it, and when the next poll can begin (`host.receive-cpu`).
//!
//! A host has one core. A poll takes what waits, up to its budget, and the core works on it: so much for each packet, for
//! each byte of payload, and for each segment that goes up. While it works no poll begins, and what arrives waits in the
//! ring, which has a bound. A poll that took its whole budget is followed by another at once; after any other the interrupt
//! is armed again, and comes the coalescing time after the first packet that waits did, or when the core is free, if
//! that is later: as the kernel's polls do.
//!
//! **When segments go up.** All at the end of the work on their poll, in their order. In the kernel each goes up within the
//! poll, most of them when it ends: the wait that the whole of a poll's work makes is in every segment's delay, and none
//! is acknowledged before it was paid for. What the offload decides is decided when the poll begins, as without costs:
//! the time that its own work takes is not to be taken for reordering. What a segment costs because the transport finds it
//! out of order is known only then; the core stays busy for it, after the answers have left.
//!
//! A timer of the offload that comes while the core works waits until it is free; its segments cost what others do.
//! Acknowledgements are packets and segments like data, without payload. Sending costs nothing.
//!
//! Invariant: the core does one thing at a time; every packet that a poll took goes up once the work on it is done.

use super::offload::{POLL, TIMER, WORKED};
use super::*;
use millpond_scenario::plan::ReceiveCpuParams;

/// What a host's core has done in the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounts {
    /// How long it worked.
    pub busy: Time,
    /// Polls that took something.
    pub polls: u64,
    /// Packets that they took.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// Segments that went up.
    pub segments: u64,
    /// Of them, those that the transport found out of order.
    pub out_of_order: u64,
    /// Packets dropped since the ring was full: these in the whole run.
    pub ring_drops: u64,
}

/// One host's core.
pub(super) struct Core {
    costs: ReceiveCpuParams,
    /// What is done from then on counts.
    measured_from: Time,
    /// Works on a poll: segments are on their way up.
    is_working: bool,
    /// When it was asked to poll or to look after what is held while it worked.
    polls_again: bool,
    /// The end of what it does, as far as that is known.
    free_at: Time,
    counts: CoreCounts,
}

impl Core {
    /// Idle.
    pub(super) fn new(costs: &ReceiveCpuParams, measured_from: Time) -> Core {
        Core {
            costs: costs.clone(),
            measured_from,
            is_working: false,
            polls_again: false,
            free_at: Time::ZERO,
            counts: CoreCounts::default(),
        }
    }

    /// When it is free, as far as that is known.
    pub(super) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Packets that may wait for it.
    pub(super) fn ring(&self) -> usize {
        self.costs.ring as usize
    }

    /// A packet found the ring full.
    pub(super) fn dropped(&mut self) {
        self.counts.ring_drops += 1;
    }

    /// Work from now on; it is idle.
    fn spend(&mut self, now: Time, work: Time) {
        self.free_at = now.saturating_add(work);
        self.counts.busy += self.free_at.saturating_sub(now.max(self.measured_from));
    }

    /// Begins to work on what a poll took, or a timer: on packets, payload, and segments.
    fn begin(&mut self, now: Time, packets: u64, bytes: u64, segments: u64) {
        let costs = &self.costs;
        let work = costs.per_packet * packets + costs.per_byte * bytes + costs.per_segment * segments;
        self.is_working = true;
        self.spend(now, work);
        if now >= self.measured_from {
            self.counts.polls += u64::from(packets > 0);
            self.counts.packets += packets;
            self.counts.bytes += bytes;
            self.counts.segments += segments;
        }
    }

    /// The work is done; so many of its segments were out of order.
    fn end(&mut self, now: Time, out_of_order: u64) {
        self.is_working = false;
        self.spend(now, self.costs.per_out_of_order * out_of_order);
        if now >= self.measured_from {
            self.counts.out_of_order += out_of_order;
        }
    }

    /// What it has done by `now`.
    pub(super) fn counts(&self, now: Time) -> CoreCounts {
        let ahead = self.free_at.saturating_sub(now.max(self.measured_from));
        CoreCounts { busy: self.counts.busy.saturating_sub(ahead), ..self.counts }
    }
}

impl Hosts {
    /// An event of the receive queue of a host whose core has work.
    pub(super) fn on_core(&mut self, now: Time, host: u32, sequence: u32, fabric: &mut Fabric) {
        let queue = &mut self.queues[host as usize];
        let Some(core) = &mut queue.core else { return };
        if sequence == WORKED {
            return self.on_worked(now, host, fabric);
        }
        if sequence == TIMER {
            if queue.timer_at != now {
                return;
            }
            queue.timer_at = Time::MAX;
        }
        if core.is_working {
            // The timer is armed again when it has worked.
            core.polls_again |= sequence == POLL;
            return;
        }
        if now < core.free_at {
            if sequence == TIMER {
                queue.timer_at = core.free_at;
            }
            return fabric.events.push(core.free_at, Key::new(Class::Poll, host, sequence));
        }
        let (packets, bytes, is_whole) = if sequence == POLL { queue.waiting() } else { (0, 0, false) };
        if sequence == POLL {
            queue.poll(now, &mut fabric.packets);
            // Where the interrupt is armed again, what arrives from now on calls the next poll.
            queue.is_called = is_whole;
        } else {
            queue.flush(now, &mut fabric.packets);
        }
        queue.age(now);
        let segments = queue.up.len() as u64;
        if packets == 0 && segments == 0 {
            return queue.arm(host, fabric);
        }
        let Some(core) = &mut queue.core else { return };
        core.polls_again |= is_whole;
        core.begin(now, packets, bytes, segments);
        fabric.events.push(core.free_at, Key::new(Class::Poll, host, WORKED));
    }

    /// The work on a poll is done: its segments go up, and the next one may begin.
    fn on_worked(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let out_of_order = self.hand_up(now, host, fabric);
        let queue = &mut self.queues[host as usize];
        let Some(core) = &mut queue.core else { return };
        core.end(now, out_of_order);
        if std::mem::take(&mut core.polls_again) {
            queue.is_called = !queue.ring.is_empty();
            if queue.is_called {
                fabric.events.push(core.free_at, Key::new(Class::Poll, host, POLL));
            }
        }
        queue.arm(host, fabric);
    }

    /// Whether the transport will find a segment ahead of what it expects. What a buffer below the transport orders is not
    /// asked about: it costs nothing.
    pub(super) fn is_out_of_order(&mut self, packet: &Packet, fabric: &Fabric) -> bool {
        if !packet.is_data() || self.shared.ordering.is_some() {
            return false;
        }
        let slot = if packet.peer != NONE { packet.peer } else { self.receivers.slot_of(packet.flow).unwrap_or(NONE) };
        let mapping = fabric.packets.side(packet).copied();
        self.receivers.get(slot, packet.flow).is_some_and(|it| packet.seq() > it.receiver.expected(mapping))
    }

    /// What the cores of the hosts here have done by `now`; nothing if receiving costs nothing.
    pub fn cores(&self, now: Time) -> impl Iterator<Item = (HostId, CoreCounts)> + '_ {
        let cores = self.hosts.iter().zip(&self.queues);
        cores.filter_map(move |(host, queue)| Some((host.id, queue.core.as_ref()?.counts(now))))
    }
}
