//! The protocol. `crate::sync` is std's atomics, or loom's in the models.
//!
//! A queue's word has three bits, so that each transition is one operation and all of them are
//! totally ordered:
//!
//! | | who | what | answer |
//! |---|---|---|---|
//! | ring | producer, after it published data | sets ARMED | if it was not set, the token joins the ring |
//! | take | consumer, which holds the token | PAUSED: sets PARKED; else clears ARMED | parked, or to be served |
//! | more | consumer, which left data behind | sets ARMED | if it was not set, the token joins its list |
//! | pause | anyone | sets PAUSED | |
//! | resume | anyone | clears PAUSED and PARKED | if PARKED was set, the token joins the ring |
//!
//! ARMED is cleared before data is looked at, and by a read-modify-write: if a producer finds it
//! set, the consumer's operation comes later, reads what the producer's wrote, and with it sees the
//! data. A plain store would need a fence on both sides.
//!
//! Invariant: ARMED is set while exactly one token exists, in the ring, in the consumer's list, in
//! its hand before *take*, or as PARKED.

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, fence};
use std::collections::VecDeque;

const ARMED: u32 = 1;
const PAUSED: u32 = 2;
const PARKED: u32 = 4;
/// A place of the ring that nobody has written.
const EMPTY: u32 = 0;

/// What wakes the consumer: an eventfd on Linux.
pub trait Wake {
    /// The consumer sleeps, or is about to, and has something to do.
    fn wake(&self);
}

/// A consumer that never sleeps needs no waking.
impl Wake for () {
    fn wake(&self) {}
}

/// The doorbells of one consumer's queues. Any thread may ring, pause and resume.
#[derive(Debug)]
pub struct Doorbells<W> {
    queues: Box<[AtomicU32]>,
    /// Tokens: queue numbers plus one. As many places as queues, rounded up to a power of two.
    ring: Box<[AtomicU32]>,
    tail: AtomicUsize,
    is_sleeping: AtomicBool,
    wake: W,
}

/// The one consumer's side of [`Doorbells`].
#[derive(Debug, Default)]
pub struct Consumer {
    head: usize,
    /// Tokens of queues that had more than their turn.
    list: VecDeque<u32>,
    is_lists_turn: bool,
}

impl<W: Wake> Doorbells<W> {
    /// For queues 0 to `queues` − 1, of which none has anything.
    pub fn new(queues: u32, wake: W) -> Doorbells<W> {
        let words = |count: usize| (0..count).map(|_| AtomicU32::new(0)).collect();
        let places = (queues as usize).next_power_of_two();
        Doorbells {
            queues: words(queues as usize),
            ring: words(places),
            tail: AtomicUsize::new(0),
            is_sleeping: AtomicBool::new(false),
            wake,
        }
    }

    /// The producer has published data in `queue`.
    pub fn ring(&self, queue: u32) {
        if self.queues[queue as usize].fetch_or(ARMED, AcqRel) & ARMED == 0 {
            self.push(queue);
        }
    }
    /// From its next turn on `queue` is not served. Its producer may ring on.
    pub fn pause(&self, queue: u32) {
        self.queues[queue as usize].fetch_or(PAUSED, AcqRel);
    }
    /// `queue` is served again, if it has something.
    pub fn resume(&self, queue: u32) {
        if self.queues[queue as usize].fetch_and(!(PAUSED | PARKED), AcqRel) & PARKED != 0 {
            self.push(queue);
        }
    }
    /// Whether `queue` is paused.
    pub fn is_paused(&self, queue: u32) -> bool {
        self.queues[queue as usize].load(Acquire) & PAUSED != 0
    }

    /// A token joins the ring. There is a place: a queue has one token, and its place is free once
    /// the consumer has taken it.
    fn push(&self, queue: u32) {
        let at = self.tail.fetch_add(1, AcqRel) & (self.ring.len() - 1);
        self.ring[at].store(queue + 1, Release);
        // Either this sees that the consumer sleeps, or the consumer sees the token.
        fence(SeqCst);
        if self.is_sleeping.load(Relaxed) && self.is_sleeping.swap(false, AcqRel) {
            self.wake.wake();
        }
    }
    /// Whether the token may be served now; if not, it is parked.
    fn take(&self, queue: u32) -> bool {
        let word = &self.queues[queue as usize];
        let mut old = word.load(Relaxed);
        loop {
            let new = if old & PAUSED != 0 { old | PARKED } else { old & !ARMED };
            match word.compare_exchange_weak(old, new, AcqRel, Relaxed) {
                Ok(_) => return old & PAUSED == 0,
                Err(now) => old = now,
            }
        }
    }
}

impl Consumer {
    /// The next queue to be served, if any: to be emptied, or read as far as its turn goes and told
    /// of by [`Consumer::more`]. What is published from now on rings again. Costs the same however
    /// many queues there are.
    pub fn next<W: Wake>(&mut self, bells: &Doorbells<W>) -> Option<u32> {
        loop {
            self.is_lists_turn = !self.is_lists_turn;
            let queue = if self.is_lists_turn {
                self.list.pop_front().or_else(|| self.pop(bells))
            } else {
                self.pop(bells).or_else(|| self.list.pop_front())
            }?;
            if bells.take(queue) {
                return Some(queue);
            }
        }
    }
    /// The queue that was served has more.
    pub fn more<W: Wake>(&mut self, bells: &Doorbells<W>, queue: u32) {
        if bells.queues[queue as usize].fetch_or(ARMED, AcqRel) & ARMED == 0 {
            self.list.push_back(queue);
        }
    }
    /// Announces that the consumer is about to sleep. `false`: there is something, and it must not.
    /// After `true` it waits for [`Wake::wake`], and calls [`Consumer::awake`].
    pub fn may_sleep<W: Wake>(&self, bells: &Doorbells<W>) -> bool {
        bells.is_sleeping.store(true, Relaxed);
        fence(SeqCst);
        let is_empty = self.list.is_empty() && self.place(bells).load(Acquire) == EMPTY;
        if !is_empty {
            self.awake(bells);
        }
        is_empty
    }
    /// The consumer is awake, whatever woke it.
    pub fn awake<W: Wake>(&self, bells: &Doorbells<W>) {
        bells.is_sleeping.store(false, Relaxed);
    }

    fn place<'a, W: Wake>(&self, bells: &'a Doorbells<W>) -> &'a AtomicU32 {
        &bells.ring[self.head & (bells.ring.len() - 1)]
    }
    /// A producer that has claimed a place and not written it yet hides those behind: they are
    /// found when it has.
    fn pop<W: Wake>(&mut self, bells: &Doorbells<W>) -> Option<u32> {
        let place = self.place(bells);
        let token = place.load(Acquire);
        if token == EMPTY {
            return None;
        }
        place.store(EMPTY, Relaxed);
        self.head = self.head.wrapping_add(1);
        Some(token - 1)
    }
}
