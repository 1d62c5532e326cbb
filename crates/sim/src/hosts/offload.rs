//! Receive offload of a host: packets wait in a ring for the next poll, are merged there, and go to the transport as
//! segments.
//!
//! A packet that comes to an idle ring calls a poll after the coalescing time. A poll takes what the ring holds, up to the
//! budget; while something is left another follows at once, as the kernel's does. Polls take no time of their own, unless
//! hosts have a core that works on them (`cpu`); then hosts without offload poll, too. What a segment's packets are to the
//! transport is one packet as large as all of them: one acknowledgement answers it, and order is counted in segments. As
//! elsewhere, what waits here has arrived as far as the network and its audit are concerned.
//!
//! Packets merge if ECN, importance, priority, TTL and the millisecond in which they were handed down are the same: TOS,
//! TTL and the timestamp option of a real one. A subflow of an MPTCP is a flow here, and its packets
//! merge if they continue one another in the stream, too.
//!
//! Invariant: every packet goes up once; while something is held a timer event is due no later than its deadline.

use super::cpu::Core;
use super::*;
use millpond_core::counters::DropReason;
use millpond_core::edge::gro::{self, Arrival, Counters, Offload, OffloadParams, Released, StockGroParams, tcp};
use millpond_core::packet::Kind;
use millpond_core::{Packets, Pool};
use millpond_scenario::plan::Plan;
use std::collections::VecDeque;

/// What the sequence of a poll's event says: it polls, looks after what is held, or has worked on either.
pub(super) const POLL: u32 = 0;
pub(super) const TIMER: u32 = 1;
pub(super) const WORKED: u32 = 2;

/// Idle flows are looked for once in so many polls.
const EVICTION_POLLS: u32 = 64;

/// What one poll of a receive queue did, or its timer.
#[derive(Clone, Debug)]
pub struct PollRecord {
    /// When.
    pub at: Time,
    /// Whose queue.
    pub host: HostId,
    /// The packets that it took, in the order of their arrival; none if it was the timer.
    pub taken: Vec<Packet>,
    /// The segments that went up, each as one packet.
    pub up: Vec<Packet>,
    /// What the queue has counted by now.
    pub counters: Counters,
}

/// A connection's flow, and which of its subflows.
type Flow = (FlowId, u8);

/// One host's receive queue.
pub(super) struct Queue {
    offload: Offload<Flow, u32>,
    budget: u32,
    coalescing: Time,
    pub(super) ring: VecDeque<Packet>,
    /// What the offload holds.
    held: Pool<Packet>,
    /// A poll is scheduled, or follows the one that is worked on.
    pub(super) is_called: bool,
    /// When a timer event is scheduled; `Time::MAX`: none is.
    pub(super) timer_at: Time,
    polls: u32,
    /// What goes up, in order.
    pub(super) up: Vec<Packet>,
    /// What works on it, if that costs something.
    pub(super) core: Option<Box<Core>>,
}

impl Queue {
    /// Of a host, if it merges, or has a core.
    fn new(plan: &Plan) -> Option<Queue> {
        let core = plan.host.receive_cpu.as_ref().map(|costs| Box::new(Core::new(costs, plan.warm_up)));
        let params = &plan.host.receive_offload;
        let (budget, coalescing) = match params {
            // Polls without merging are the kernel's.
            OffloadParams::None(_) => {
                core.as_ref()?;
                let p = StockGroParams::default();
                (p.budget, p.coalescing)
            }
            OffloadParams::Stock(p) => (p.budget, p.coalescing),
            OffloadParams::Presto(p) => (p.budget, p.coalescing),
        };
        Some(Queue {
            offload: Offload::new(params),
            budget,
            coalescing,
            ring: VecDeque::new(),
            held: Pool::default(),
            is_called: false,
            timer_at: Time::MAX,
            polls: 0,
            up: Vec::new(),
            core,
        })
    }

    /// Of all hosts of a partition; none if what arrives goes to the transport at once.
    pub(super) fn all(plan: &Plan, hosts: usize) -> Vec<Queue> {
        (0..hosts).map_while(|_| Queue::new(plan)).collect()
    }

    /// What was counted.
    pub(super) fn counters(&self) -> &Counters {
        self.offload.counters()
    }

    /// What a poll would take out of the ring.
    #[cold]
    fn next(&self, sequence: u32) -> Vec<Packet> {
        let budget = if sequence == POLL { self.budget as usize } else { 0 };
        self.ring.iter().take(budget).copied().collect()
    }

    /// Takes packets out of the ring and ends the poll.
    pub(super) fn poll(&mut self, now: Time, packets: &mut Packets) {
        let Queue { offload, ring, held, up, .. } = self;
        for packet in ring.drain(..ring.len().min(self.budget as usize)) {
            let arrival = arrival(&packet, packets.side(&packet).copied());
            let handle = held.insert(packet);
            offload.receive(now, &arrival, handle, &mut |released| up.push(merged(released, held, packets)));
            // A handle that has come back is free from now on: the offload has forgotten it.
        }
        self.flush(now, packets);
    }

    pub(super) fn flush(&mut self, now: Time, packets: &mut Packets) {
        let Queue { offload, held, up, .. } = self;
        offload.flush(now, &mut |released| up.push(merged(released, held, packets)));
    }

    /// What the next poll will take: packets, their payload, and whether that is its budget.
    pub(super) fn waiting(&self) -> (u64, u64, bool) {
        let packets = self.ring.len().min(self.budget as usize);
        let bytes = self.ring.iter().take(packets).map(|packet| u64::from(packet.payload)).sum();
        (packets as u64, bytes, packets == self.budget as usize)
    }

    /// Looks for idle flows now and then.
    pub(super) fn age(&mut self, now: Time) {
        self.polls += 1;
        if self.polls.is_multiple_of(EVICTION_POLLS) {
            self.offload.evict(now);
        }
    }

    /// Keeps the timer no later than what is held can wait, and than the core is free.
    pub(super) fn arm(&mut self, host: u32, fabric: &mut Fabric) {
        let mut deadline = self.offload.deadline().unwrap_or(Time::MAX);
        if let Some(core) = &self.core {
            deadline = deadline.max(core.free_at());
        }
        if deadline < self.timer_at {
            let key = Key::new(Class::Poll, host, TIMER);
            fabric.events.cancel(self.timer_at, key);
            self.timer_at = deadline;
            fabric.events.push(deadline, key);
        }
    }
}

/// What a packet's headers say to the offload.
fn arrival(packet: &Packet, mapping: Option<Mapping>) -> Arrival<Flow> {
    let is_syn = matches!(packet.kind(), Kind::Syn | Kind::SynAck);
    let same = [u64::from(packet.class.bits()), u64::from(packet.ttl)];
    let ms = packet.stamp.as_ps() / 1_000_000_000;
    let place = mapping.map_or(0, |mapping| mix64(mapping.data.wrapping_sub(packet.seq())));
    let flow = (packet.flow, mapping.map_or(0, |mapping| mapping.subflow));
    Arrival {
        flow,
        hash: hash_of(flow),
        path: packet.entropy,
        // A SYN takes no sequence space here, and one number there.
        seq: (packet.seq() as u32).wrapping_sub(is_syn as u32),
        len: u32::from(packet.payload),
        merge: same.iter().fold(ms, |digest, field| digest << 8 | field) ^ place,
        headers: HEADER as u16,
        flowcell: packet.flowcell(),
        flags: tcp::ACK
            | if is_syn { tcp::SYN } else { 0 }
            | if packet.has(flags::CWR) { tcp::CWR } else { 0 }
            | if packet.has(flags::ECE) { tcp::ECE } else { 0 },
        is_whole: false,
    }
}

fn hash_of((flow, subflow): Flow) -> u32 {
    flow.wrapping_mul(0x9E37_79B9).wrapping_add(u32::from(subflow).wrapping_mul(0x85EB_CA6B))
}

/// A segment as one packet, out of the pool, with the side records of its first.
fn merged(released: Released<'_, Flow, u32>, held: &mut Pool<Packet>, packets: &mut Packets) -> Packet {
    let mut whole = held[released.packets[0]];
    for (n, handle) in released.packets.iter().enumerate() {
        whole.flags |= held[*handle].flags;
        if n > 0 {
            packets.release(held[*handle].side);
        }
        held.remove(*handle);
    }
    whole.payload = released.bytes as u16;
    whole
}

impl Hosts {
    /// A packet has arrived at a host that polls.
    #[inline(never)]
    pub(super) fn enqueue(&mut self, now: Time, host: u32, id: PacketId, fabric: &mut Fabric) {
        let queue = &mut self.queues[host as usize];
        if let Some(core) = &mut queue.core
            && queue.ring.len() >= core.ring()
        {
            core.dropped();
            return fabric.discard(id, DropReason::ReceiveRing);
        }
        queue.ring.push_back(fabric.deliver(id));
        if !std::mem::replace(&mut queue.is_called, true) {
            fabric.events.push(now.saturating_add(queue.coalescing), Key::new(Class::Poll, host, POLL));
        }
    }

    /// A poll, or the timer of what is held.
    pub fn on_poll(&mut self, now: Time, host: u32, sequence: u32, fabric: &mut Fabric) {
        let queue = &mut self.queues[host as usize];
        if queue.core.is_some() {
            return self.on_core(now, host, sequence, fabric);
        }
        let taken = self.shared.plan.capture.polls.then(|| queue.next(sequence));
        if sequence == TIMER {
            if queue.timer_at != now {
                return;
            }
            queue.timer_at = Time::MAX;
            queue.flush(now, &mut fabric.packets);
        } else {
            queue.poll(now, &mut fabric.packets);
            queue.is_called = !queue.ring.is_empty();
            if queue.is_called {
                fabric.events.push(now, Key::new(Class::Poll, host, POLL));
            }
        }
        queue.arm(host, fabric);
        queue.age(now);
        if let Some(taken) = taken {
            let (host, counters) = (self.hosts[host as usize].id, *queue.counters());
            self.poll_records.push(PollRecord { at: now, host, taken, up: queue.up.clone(), counters });
        }
        self.hand_up(now, host, fabric);
    }

    /// Gives the transport what a poll let through. Returns how many segments it found out of order, where a core works for
    /// that.
    pub(super) fn hand_up(&mut self, now: Time, host: u32, fabric: &mut Fabric) -> u64 {
        let queue = &mut self.queues[host as usize];
        let (mut up, is_counted) = (std::mem::take(&mut queue.up), queue.core.is_some());
        let mut out_of_order = 0;
        for packet in up.drain(..) {
            out_of_order += u64::from(is_counted && self.is_out_of_order(&packet, fabric));
            self.take_up(now, host, &packet, fabric);
        }
        self.queues[host as usize].up = up;
        out_of_order
    }

    /// A connection is over: its flow need not be remembered.
    pub(super) fn forget(&mut self, host: u32, flow: FlowId) {
        if let Some(queue) = self.queues.get_mut(host as usize) {
            for flow in (0..self.shared.transport.subflows()).map(|subflow| (flow, subflow)) {
                queue.offload.forget(hash_of(flow), flow);
            }
        }
    }

    /// What all queues have counted; `None` if there are none.
    pub fn offload_counters(&self) -> Option<gro::Counters> {
        let mut all = None;
        for queue in &self.queues {
            all.get_or_insert_with(gro::Counters::default).merge(queue.counters());
        }
        all
    }
}
