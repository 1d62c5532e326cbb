//! Dynamic per-flow queues: a queue a flow, made when its first packet comes, with memory by what
//! waits in it, and served in turn.
//!
//! Backdraft (Sanaee, Shahinfar, Antichi, Stephens: Backdraft: a Lossless Virtual Switch that
//! Prevents the Slow Receiver Problem, NSDI 2022) puts them between a virtual switch and what is
//! slower than the network. This module is one egress port's. It decides and counts; packets stay
//! with the driver, who gives handles. `millpond switch` drives it for applications, and the
//! simulator's hosts do in their virtual switch.
//!
//! | file | what |
//! |---|---|
//! | `pool` | segments of 64 slots, FIFOs made of them, shared memory and headroom |
//! | `flows` | which queue a flow has; who was asked to pause; who may not send |
//! | `list` | the lists of queues: backlogged, idle |
//! | `terms` | what goes in and comes out |
//! | `headroom` | how much memory is needed for what still comes after a pause |
//!
//! *Memory.* Slots and bytes are two budgets of the same form: what anybody may take, and headroom
//! for flows that were asked to pause. A flow is asked when its queue reaches `Xoff`, which follows
//! the shared bytes that are left (Choudhury, Hahne: Dynamic queue length thresholds for
//! shared-memory packet switches, 1998), or when shared memory has no place for its packet: always
//! before it takes headroom. It is asked to go on at `Xon` or less, once all headroom is there
//! again.
//!
//! *Exhaustion* has rungs ([`Rung`]): the longest queues are asked to pause, then the driver is
//! asked to pause the packet's application, then its peer, and at last a packet is not taken
//! ([`Outcome::Hold`]): the driver keeps it and polls its source no more. A driver that cannot,
//! because the packet is on a link already, drops it, and reports the loss ([`FlowQueues::lose`]).
//!
//! *Service* is deficit round robin (Shreedhar, Varghese: Efficient fair queuing using deficit
//! round robin, SIGCOMM 1995) over queues that have data and may send. Control packets go first,
//! are exempt from pause, and are bounded by 64 a queue.
//!
//! The segment of 64 slots, growth at 7/8, the cap of 7/8 of 4096 packets, and the idle time of
//! 100 ms follow the authors' release. The rest is this project's: the release has three queues
//! that each have a part of it.
//!
//! Invariants: packets of a flow leave in the order in which they came, but for control, which
//! overtakes data; all memory is given back when nothing waits; the order of everything follows
//! from calls and random stream alone.

mod flows;
pub mod headroom;
mod list;
mod pool;
mod terms;
#[cfg(test)]
mod tests;

use crate::flow_table::FlowTable;
use crate::random::Random;
use crate::units::{Bytes, Time};
use flows::Member;
use list::{Links, List};
use pool::{Budget, Fifo, Segments, Slot};
use std::collections::VecDeque;

pub use pool::SLOTS;
pub use terms::{Arrival, Class, Config, Counters, Departure, Outcome, Rung, Signal, Verdict};

const NONE: u32 = u32::MAX;

/// Which list a queue is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It has data, and the first may leave.
    Active,
    /// It has nothing, and nobody waits for word from it.
    Idle,
    /// It is paused, or its flows are and it is empty.
    Apart,
}

#[derive(Clone, Debug)]
struct Queue {
    data: Fifo,
    control: Fifo,
    bytes: u64,
    deficit: u64,
    /// It has got the quantum of its present turn.
    in_turn: bool,
    place: Place,
    /// The flows that are assigned to it, and how many of them were asked to pause.
    members: List,
    member_count: u32,
    notified: u32,
    /// It is among those that wait for headroom to be asked to go on.
    is_waiting: bool,
    idle_since: Time,
    /// Bytes that it sent since `since`, and in the last whole feedback time.
    since: Time,
    sent: u64,
    drain: u64,
}

/// The flow queues of one egress port. `F` identifies a flow, `P` a packet.
#[derive(Debug)]
pub struct FlowQueues<F, P> {
    config: Config,
    random: Random,
    segments: Budget,
    reserved: u64,
    bytes: Budget,
    pool: Segments<P>,
    flows: FlowTable<F, Member>,
    /// Neighbours among the flows of a queue.
    member_links: Links,
    queues: Vec<Queue>,
    links: Links,
    active: List,
    /// In the order in which they became empty.
    idle: List,
    vacant: Vec<u32>,
    /// Queues with control packets, each once.
    control: VecDeque<u32>,
    /// Queues that may go on when all headroom is there.
    waiting: VecDeque<u32>,
    signals: VecDeque<Signal<F>>,
    /// When the longest queues were last looked for.
    looked: Option<Time>,
    counters: Counters,
}

impl<F: Copy + Eq, P: Copy + Default> FlowQueues<F, P> {
    /// Empty. `random` chooses queues for flows that have to share one.
    pub fn new(config: Config, random: Random) -> FlowQueues<F, P> {
        FlowQueues {
            random,
            segments: Budget::new(config.segments, config.headroom_segments),
            reserved: config.reserved,
            bytes: Budget::new(config.bytes.0, config.headroom.0),
            config: Config {
                quantum: config.quantum.max(1),
                max_queues: config.max_queues.max(1),
                ..config
            },
            pool: Segments::default(),
            flows: FlowTable::default(),
            member_links: Links::default(),
            queues: Vec::new(),
            links: Links::default(),
            active: List::default(),
            idle: List::default(),
            vacant: Vec::new(),
            control: VecDeque::new(),
            waiting: VecDeque::new(),
            signals: VecDeque::new(),
            looked: None,
            counters: Counters::default(),
        }
    }

    /// Offers a packet to its flow's queue.
    pub fn enqueue(&mut self, now: Time, arrival: &Arrival<F, P>) -> Verdict<P> {
        let (flow, is_new) = self.open(arrival.hash, arrival.flow);
        let queue = self.queue_of(flow);
        let slot = Slot {
            packet: arrival.packet,
            len: arrival.len,
            flow,
            is_ack: arrival.class == Class::Ack,
        };
        let outcome = match arrival.class {
            Class::Data => self.enqueue_data(now, queue, slot),
            Class::Ack | Class::Control => self.enqueue_control(queue, slot),
        };
        let is_taken = !matches!(outcome, Outcome::Hold);
        if is_taken {
            self.counters.arrived += 1;
        } else {
            self.counters.held += 1;
            self.settle_notified(queue);
        }
        self.place(now, queue);
        let rung = if is_taken { self.rung() } else { Rung::Source };
        Verdict { outcome, rung, is_new, is_notified: self.flows[flow].is_notified }
    }

    fn enqueue_data(&mut self, now: Time, queue: u32, slot: Slot<P>) -> Outcome<P> {
        let flow = slot.flow;
        let len = u64::from(slot.len);
        // Asked before memory is taken, so that only flows that were asked to pause take headroom.
        if !self.flows[flow].is_notified {
            let q = &self.queues[queue as usize];
            let is_short =
                len > self.bytes.shared() || (q.data.room() == 0 && self.segments.shared() == 0);
            if is_short {
                self.notify_longest(now);
            }
            if is_short || self.queues[queue as usize].notified > 0 || self.reaches_xoff(queue, len)
            {
                self.notify(queue, flow);
            }
        }
        let is_notified = self.flows[flow].is_notified;
        if !self.bytes.take(len, is_notified) {
            return Outcome::Hold;
        }
        let q = &mut self.queues[queue as usize];
        if q.data.is_nearly_full() && self.segments.take(1, is_notified && q.data.room() == 0) {
            q.data.extend(&mut self.pool);
        }
        if q.data.room() == 0 {
            self.bytes.give(len);
            return Outcome::Hold;
        }
        q.data.push(&mut self.pool, slot);
        q.bytes += len;
        self.flows[flow].count += 1;
        self.counters.peak_bytes = self.counters.peak_bytes.max(self.bytes.used());
        self.counters.peak_segments = self.counters.peak_segments.max(self.segments.used());
        Outcome::Queued
    }

    fn enqueue_control(&mut self, queue: u32, slot: Slot<P>) -> Outcome<P> {
        let q = &mut self.queues[queue as usize];
        if q.control.len() < SLOTS && q.control.room() == 0 {
            // Control never waits for the memory of data.
            let is_reserved = self.reserved > 0;
            self.reserved -= u64::from(is_reserved);
            if is_reserved || self.segments.take(1, false) {
                q.control.extend(&mut self.pool);
            }
        }
        if q.control.len() == SLOTS || q.control.room() == 0 {
            let replaced =
                if slot.is_ack { q.control.replace_ack(&mut self.pool, slot) } else { None };
            let Some(older) = replaced else { return Outcome::Hold };
            self.counters.coalesced += 1;
            return Outcome::Coalesced(older);
        }
        if q.control.is_empty() {
            self.control.push_back(queue);
        }
        q.control.push(&mut self.pool, slot);
        self.flows[slot.flow].count += 1;
        Outcome::Queued
    }

    /// The next packet that leaves, if any may.
    pub fn dequeue(&mut self, now: Time) -> Option<Departure<F, P>> {
        let (queue, slot) = match self.control.pop_front() {
            Some(queue) => (queue, self.dequeue_control(queue)),
            None => self.dequeue_data(now)?,
        };
        let departure =
            Departure { flow: self.flows.flow(slot.flow), packet: slot.packet, len: slot.len };
        self.counters.departed += 1;
        self.left(queue, slot.flow);
        self.settle_notified(queue);
        self.place(now, queue);
        self.resume_waiting(now);
        Some(departure)
    }

    /// Queues with control packets take turns, a packet each.
    fn dequeue_control(&mut self, queue: u32) -> Slot<P> {
        let q = &mut self.queues[queue as usize];
        let (slot, freed) = q.control.pop(&mut self.pool);
        if !q.control.is_empty() {
            self.control.push_back(queue);
        }
        let to_reserve = u64::from(freed).min(self.config.reserved - self.reserved);
        self.reserved += to_reserve;
        self.segments.give(u64::from(freed) - to_reserve);
        slot
    }

    fn dequeue_data(&mut self, now: Time) -> Option<(u32, Slot<P>)> {
        loop {
            let queue = self.active.first();
            if queue == NONE {
                return None;
            }
            let q = &mut self.queues[queue as usize];
            if !q.in_turn {
                q.in_turn = true;
                q.deficit += u64::from(self.config.quantum);
            }
            let len = u64::from(q.data.front(&self.pool).len);
            if len > q.deficit {
                q.in_turn = false;
                self.active.remove(&mut self.links, queue);
                self.active.push(&mut self.links, queue);
                continue;
            }
            let (slot, freed) = q.data.pop(&mut self.pool);
            q.deficit -= len;
            q.bytes -= len;
            q.note(now, len, self.config.feedback);
            self.bytes.give(len);
            self.segments.give(u64::from(freed));
            return Some((queue, slot));
        }
    }

    /// Puts a queue where it belongs after something changed.
    fn place(&mut self, now: Time, queue: u32) {
        let q = &self.queues[queue as usize];
        let place = if !q.data.is_empty() {
            let first = q.data.front(&self.pool).flow;
            if self.flows[first].is_held { Place::Apart } else { Place::Active }
        } else if q.control.is_empty() && q.notified == 0 {
            Place::Idle
        } else {
            Place::Apart
        };
        if place == q.place {
            return;
        }
        match q.place {
            Place::Active => self.active.remove(&mut self.links, queue),
            Place::Idle => self.idle.remove(&mut self.links, queue),
            Place::Apart => (),
        }
        match place {
            Place::Active => self.active.push(&mut self.links, queue),
            Place::Idle => self.idle.push(&mut self.links, queue),
            Place::Apart => (),
        }
        let q = &mut self.queues[queue as usize];
        (q.place, q.deficit, q.in_turn, q.idle_since) = (place, 0, false, now);
    }

    /// Forgets flows that were silent for long. To be called now and then.
    pub fn expire(&mut self, now: Time) {
        loop {
            let queue = self.idle.first();
            if queue == NONE || self.queues[queue as usize].idle_since + self.config.idle > now {
                break;
            }
            self.vacate(queue);
        }
        self.resume_waiting(now);
    }

    /// The driver could not hold a packet that was not taken.
    pub fn lose(&mut self, len: u32) {
        self.counters.loss_pool += 1;
        self.counters.loss_pool_bytes += u64::from(len);
    }

    /// The next signal to a flow.
    pub fn next_signal(&mut self) -> Option<Signal<F>> {
        self.signals.pop_front()
    }
    pub fn counters(&self) -> Counters {
        self.counters
    }
    /// Bytes of data that wait.
    pub fn queued(&self) -> Bytes {
        Bytes(self.bytes.used())
    }
    pub fn segments_used(&self) -> u64 {
        self.segments.used() + self.config.reserved - self.reserved
    }
    /// Packets of a flow that wait.
    pub fn waiting(&self, hash: u32, flow: F) -> u32 {
        self.flows.find(hash, flow).map_or(0, |at| self.flows[at].count)
    }
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }
    /// Bytes that lie in memory for all of this: segments, queues, flows and lists, in use or not.
    pub fn memory(&self) -> usize {
        self.pool.memory()
            + self.flows.memory()
            + self.member_links.memory()
            + self.links.memory()
            + self.queues.capacity() * size_of::<Queue>()
            + (self.vacant.capacity() + self.control.capacity() + self.waiting.capacity())
                * size_of::<u32>()
            + self.signals.capacity() * size_of::<Signal<F>>()
    }

    fn rung(&self) -> Rung {
        if self.segments.shared() > 0 && self.bytes.shared() >= u64::from(self.config.mtu) {
            return Rung::Calm;
        }
        match self.segments.headroom_quarters().min(self.bytes.headroom_quarters()) {
            0 | 1 => Rung::Peer,
            2 => Rung::Application,
            _ => Rung::Flows,
        }
    }

    /// Where a queue is asked to pause.
    fn xoff(&self) -> u64 {
        let mtu = u64::from(self.config.mtu);
        let cap = u64::from(self.config.cap) * mtu;
        let share = self.bytes.shared().saturating_mul(self.config.alpha_eighths) / 8;
        share.max(2 * u64::from(self.config.batch) * mtu).min(cap)
    }
    fn reaches_xoff(&self, queue: u32, len: u64) -> bool {
        self.queues[queue as usize].bytes + len >= self.xoff()
    }
    /// Where a queue may go on: at an eighth of that, or where what it sends while the word travels
    /// would empty it; in any case below.
    fn xon(&self, queue: u32) -> u64 {
        let xoff = self.xoff();
        (xoff / 8).max(self.queues[queue as usize].drain).min(xoff / 2)
    }
}

impl Queue {
    /// `len` bytes leave: how much left in the last whole feedback time.
    fn note(&mut self, now: Time, len: u64, feedback: Time) {
        let passed = now.saturating_sub(self.since);
        if passed >= feedback {
            // Longer ago than two of them: the queue has stood still in between.
            self.drain = if passed >= feedback + feedback { 0 } else { self.sent };
            (self.since, self.sent) = (now, 0);
        }
        self.sent += len;
    }
}
