//! The queue of each flow, the senders that were asked to pause, and the flows that may not send.
//!
//! A flow has a queue of its own while there are queues. Beyond that it gets the queue that has
//! been empty for longest, or shares one that is drawn (the rule of Goyal and others: Backpressure
//! flow control, NSDI 2022). It keeps its queue while packets of it wait, so its order is kept.
//!
//! Two pauses meet here and are distinguished: a flow *is asked* to pause by this side, whose queue
//! is long; it *is held* because the other side paused it. Both are the flow's and not the queue's,
//! since a queue changes its flows. A queue whose first packet is of a held flow stands still.
//!
//! Invariant: a flow that was asked to pause is known until it was asked to go on.

use super::{Bytes, Fifo, FlowQueues, List, NONE, Place, Queue, Signal, Time};

#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Its queue, or [`NONE`].
    pub queue: u32,
    /// Its packets that wait.
    pub count: u32,
    pub is_notified: bool,
    pub is_held: bool,
}

impl Queue {
    fn new() -> Queue {
        Queue {
            data: Fifo::default(),
            control: Fifo::default(),
            bytes: 0,
            deficit: 0,
            in_turn: false,
            place: Place::Apart,
            members: List::default(),
            member_count: 0,
            notified: 0,
            is_waiting: false,
            idle_since: Time::ZERO,
            since: Time::ZERO,
            sent: 0,
            drain: 0,
        }
    }
}

impl<F: Copy + Eq, P: Copy + Default> FlowQueues<F, P> {
    /// The flow's number; and whether it was unknown.
    pub(super) fn open(&mut self, hash: u32, flow: F) -> (u32, bool) {
        match self.flows.find(hash, flow) {
            Some(at) => (at, false),
            None => {
                let member = Member { queue: NONE, count: 0, is_notified: false, is_held: false };
                (self.flows.insert(hash, flow, member), true)
            }
        }
    }

    /// The flow's queue, which it gets if it has none.
    pub(super) fn queue_of(&mut self, flow: u32) -> u32 {
        if self.flows[flow].queue != NONE {
            return self.flows[flow].queue;
        }
        if self.vacant.is_empty() && self.queues.len() as u64 >= u64::from(self.config.max_queues) {
            let idle = self.idle.first();
            if idle != NONE {
                self.vacate(idle);
            }
        }
        let queue = if let Some(vacant) = self.vacant.pop() {
            self.queues[vacant as usize] = Queue::new();
            vacant
        } else if (self.queues.len() as u64) < u64::from(self.config.max_queues) {
            self.queues.push(Queue::new());
            self.queues.len() as u32 - 1
        } else {
            // No queue is empty and unpaused.
            self.counters.shared += 1;
            self.random.below(self.queues.len() as u64) as u32
        };
        self.flows[flow].queue = queue;
        let q = &mut self.queues[queue as usize];
        q.members.push(&mut self.member_links, flow);
        q.member_count += 1;
        queue
    }

    /// A packet of the flow has left. A flow that shares its queue leaves it with its last packet.
    pub(super) fn left(&mut self, queue: u32, flow: u32) {
        self.flows[flow].count -= 1;
        if self.queues[queue as usize].member_count > 1 {
            self.part(queue, flow);
        }
    }

    /// The flow leaves its queue, and is forgotten, if nothing of it waits and nobody waits for
    /// word.
    fn part(&mut self, queue: u32, flow: u32) {
        let member = self.flows[flow];
        if member.count > 0 || member.is_notified {
            return;
        }
        let q = &mut self.queues[queue as usize];
        q.members.remove(&mut self.member_links, flow);
        q.member_count -= 1;
        if member.is_held {
            self.flows[flow].queue = NONE;
        } else {
            self.flows.remove(flow);
        }
    }

    /// An idle queue loses its flows, and is anybody's.
    pub(super) fn vacate(&mut self, queue: u32) {
        debug_assert_eq!(self.queues[queue as usize].place, Place::Idle);
        self.idle.remove(&mut self.links, queue);
        let mut flow = self.queues[queue as usize].members.first();
        while flow != NONE {
            let next = self.member_links.after(flow);
            self.part(queue, flow);
            flow = next;
        }
        debug_assert_eq!(self.queues[queue as usize].member_count, 0);
        self.queues[queue as usize].place = Place::Apart;
        self.vacant.push(queue);
    }

    /// Asks all flows of a queue to pause that have something in it, and `arriving`.
    pub(super) fn notify(&mut self, queue: u32, arriving: u32) {
        let queued = Bytes(self.queues[queue as usize].bytes);
        let mut flow = self.queues[queue as usize].members.first();
        while flow != NONE {
            let member = &mut self.flows[flow];
            if !member.is_notified && (member.count > 0 || flow == arriving) {
                member.is_notified = true;
                self.queues[queue as usize].notified += 1;
                self.counters.pauses += 1;
                self.signals.push_back(Signal {
                    flow: self.flows.flow(flow),
                    is_pause: true,
                    queued,
                });
            }
            flow = self.member_links.after(flow);
        }
    }

    /// Asks the longest queues to pause that were not asked: those of at least half the longest.
    /// All queues are looked at, so this happens no more than twice in a feedback time.
    pub(super) fn notify_longest(&mut self, now: Time) {
        if self.looked.is_some_and(|last| now < last + self.config.feedback / 2) {
            return;
        }
        self.looked = Some(now);
        let unnotified = |q: &Queue| if q.notified == 0 { q.bytes } else { 0 };
        let longest = self.queues.iter().map(unnotified).max().unwrap_or(0);
        for queue in 0..self.queues.len() as u32 {
            let bytes = unnotified(&self.queues[queue as usize]);
            if bytes > 0 && bytes * 2 >= longest {
                self.notify(queue, NONE);
            }
        }
    }

    /// A queue that is short and was asked to pause waits until all headroom is there.
    pub(super) fn settle_notified(&mut self, queue: u32) {
        let xon = self.xon(queue);
        let q = &mut self.queues[queue as usize];
        if q.notified == 0 || q.bytes > xon {
            return;
        }
        if !std::mem::replace(&mut q.is_waiting, true) {
            self.waiting.push_back(queue);
        }
    }

    /// Once all headroom is there, whoever waits for that is asked to go on.
    pub(super) fn resume_waiting(&mut self, now: Time) {
        while self.is_headroom_full() {
            let Some(queue) = self.waiting.pop_front() else { break };
            self.queues[queue as usize].is_waiting = false;
            if self.queues[queue as usize].bytes <= self.xon(queue) {
                self.withdraw(now, queue);
            }
        }
    }

    /// Whether all headroom is there: pauses of an application or a peer may end.
    pub fn is_headroom_full(&self) -> bool {
        self.segments.is_headroom_full() && self.bytes.is_headroom_full()
    }

    fn withdraw(&mut self, now: Time, queue: u32) {
        let queued = Bytes(self.queues[queue as usize].bytes);
        let mut flow = self.queues[queue as usize].members.first();
        while flow != NONE {
            let next = self.member_links.after(flow);
            if self.flows[flow].is_notified {
                self.flows[flow].is_notified = false;
                self.queues[queue as usize].notified -= 1;
                self.counters.resumes += 1;
                self.signals.push_back(Signal {
                    flow: self.flows.flow(flow),
                    is_pause: false,
                    queued,
                });
                if self.queues[queue as usize].member_count > 1 {
                    self.part(queue, flow);
                }
            }
            flow = next;
        }
        self.place(now, queue);
    }

    /// The other side has paused the flow. It need not be known.
    pub fn hold(&mut self, now: Time, hash: u32, flow: F) {
        let (at, _) = self.open(hash, flow);
        self.set_held(now, at, true);
    }
    pub fn release(&mut self, now: Time, hash: u32, flow: F) {
        if let Some(at) = self.flows.find(hash, flow) {
            self.set_held(now, at, false);
        }
    }
    /// Holds or releases all known flows that a wider pause covers. All flows are looked at.
    pub fn set_where(&mut self, now: Time, is_held: bool, is_covered: impl Fn(&F) -> bool) {
        let covered: Vec<u32> =
            self.flows.numbers().filter(|at| is_covered(&self.flows.flow(*at))).collect();
        for at in covered {
            self.set_held(now, at, is_held);
        }
    }
    fn set_held(&mut self, now: Time, flow: u32, is_held: bool) {
        self.flows[flow].is_held = is_held;
        match self.flows[flow].queue {
            NONE if is_held => (),
            NONE => self.flows.remove(flow),
            queue => self.place(now, queue),
        }
    }
    /// Whether the other side lets this flow send, as far as is known.
    pub fn is_held(&self, hash: u32, flow: F) -> bool {
        self.flows.find(hash, flow).is_some_and(|at| self.flows[at].is_held)
    }
}
