//! The protocol. `crate::sync` is std's atomics, or loom's in the models.
//!
//! A queue's word has three bits, so that each transition is one operation and all of them are
//! totally ordered:
//!
//! | | caller | change | answer |
//! |---|---|---|---|
//! | ring | producer, after it published data | sets ARMED | if new, the token joins the ring |
//! | take | consumer, with the token | PAUSED: sets PARKED; else clears ARMED | parked, or served |
//! | more | consumer, which left data | sets ARMED | if new, the token joins the consumer's list |
//! | pause | anyone | sets PAUSED | |
//! | resume | anyone | clears PAUSED and PARKED | if it was PARKED, the token joins the ring |
//!
//! ARMED is cleared before data is looked at, and by a read-modify-write: if a producer finds it
//! set, the consumer's operation comes later, reads what the producer's wrote, and with it sees the
//! data. A plain store would need a fence on both sides.
//!
//! Invariant: ARMED is set while exactly one token exists, in the ring, in the consumer's list, in
//! its hand before *take*, or as PARKED.

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU32, LINE, fence};
use std::collections::VecDeque;

const ARMED: u32 = 1;
const PAUSED: u32 = 2;
const PARKED: u32 = 4;
/// An empty place of the ring.
const EMPTY: u32 = 0;

/// Among the words: where the next token goes; whether the consumer sleeps; the queues' words. The
/// ring is behind those.
const TAIL: usize = 0;
const SLEEPING: usize = LINE;
const QUEUES: usize = 2 * LINE;

/// How often the consumer retries a word that changes meanwhile. Producers and pausers change it a
/// few times; a process that changes it without end must not hold the consumer.
const TRIES: u32 = 64;

/// Wakes the consumer: a pipe on Linux.
pub trait Wake {
    /// The consumer sleeps, or is about to, and has something to do.
    fn wake(&self);
}

/// A consumer that never sleeps needs no waking.
impl Wake for () {
    fn wake(&self) {}
}

/// The doorbells of one consumer's queues. Any thread may ring, pause and resume. All that threads
/// share is in words, which may lie in memory that processes share.
#[derive(Debug)]
pub struct Doorbells<W, M = Box<[AtomicU32]>> {
    words: M,
    queues: usize,
    places: usize,
    wake: W,
}

/// The one consumer's side of [`Doorbells`].
///
/// The words may be written by a process that is not trusted. Then it serves queues in vain, late
/// or never, and only queues that there are; its own memory and each of its calls stay bounded.
#[derive(Debug, Default)]
pub struct Consumer {
    head: u32,
    /// Tokens of queues that had more than their turn.
    list: VecDeque<u32>,
    /// By queue: whether it is in the list.
    is_listed: Vec<bool>,
    is_lists_turn: bool,
}

impl<W: Wake> Doorbells<W> {
    /// For queues 0 to `queues` − 1, of which none has anything.
    pub fn new(queues: u32, wake: W) -> Doorbells<W> {
        let words = (0..Doorbells::<W>::words(queues)).map(|_| AtomicU32::new(0)).collect();
        Doorbells::over(words, queues, wake)
    }
}

impl<W, M> Doorbells<W, M> {
    /// How many words so many queues take. Tokens are queue numbers plus one, and have as many
    /// places as there are queues, rounded up to a power of two.
    pub const fn words(queues: u32) -> usize {
        QUEUES + queues as usize + (queues as usize).next_power_of_two()
    }
}

impl<W: Wake, M: AsRef<[AtomicU32]>> Doorbells<W, M> {
    /// Over words that are zero, or that another thread or process rings with already.
    ///
    /// # Panics
    /// If there are fewer than [`Doorbells::words`].
    pub fn over(words: M, queues: u32, wake: W) -> Doorbells<W, M> {
        assert!(
            words.as_ref().len() >= Doorbells::<W, M>::words(queues),
            "words for {queues} queues"
        );
        let (queues, places) = (queues as usize, (queues as usize).next_power_of_two());
        Doorbells { words, queues, places, wake }
    }
    pub fn waker(&self) -> &W {
        &self.wake
    }
    fn word(&self, at: usize) -> &AtomicU32 {
        &self.words.as_ref()[at]
    }
    fn queue(&self, queue: u32) -> &AtomicU32 {
        debug_assert!((queue as usize) < self.queues);
        self.word(QUEUES + queue as usize)
    }
    fn place(&self, number: u32) -> &AtomicU32 {
        self.word(QUEUES + self.queues + (number as usize & (self.places - 1)))
    }

    /// The producer has published data in `queue`.
    pub fn ring(&self, queue: u32) {
        if self.queue(queue).fetch_or(ARMED, AcqRel) & ARMED == 0 {
            self.push(queue);
        }
    }
    /// From its next turn on `queue` is not served. Its producer may ring on.
    pub fn pause(&self, queue: u32) {
        self.queue(queue).fetch_or(PAUSED, AcqRel);
    }
    /// `queue` is served again, if it has something.
    pub fn resume(&self, queue: u32) {
        if self.queue(queue).fetch_and(!(PAUSED | PARKED), AcqRel) & PARKED != 0 {
            self.push(queue);
        }
    }
    /// Whether `queue` is paused.
    pub fn is_paused(&self, queue: u32) -> bool {
        self.queue(queue).load(Acquire) & PAUSED != 0
    }

    /// A token joins the ring. There is a place: a queue has one token, and its place is free once
    /// the consumer has taken it.
    fn push(&self, queue: u32) {
        let at = self.word(TAIL).fetch_add(1, AcqRel);
        self.place(at).store(queue + 1, Release);
        // Either this sees that the consumer sleeps, or the consumer sees the token.
        fence(SeqCst);
        let sleeping = self.word(SLEEPING);
        if sleeping.load(Relaxed) != 0 && sleeping.swap(0, AcqRel) != 0 {
            self.wake.wake();
        }
    }
    /// Whether the token may be served now; if not, it is parked.
    fn take(&self, queue: u32) -> bool {
        let word = self.queue(queue);
        let mut old = word.load(Relaxed);
        for _ in 0..TRIES {
            let new = if old & PAUSED != 0 { old | PARKED } else { old & !ARMED };
            match word.compare_exchange_weak(old, new, AcqRel, Relaxed) {
                Ok(_) => return old & PAUSED == 0,
                Err(now) => old = now,
            }
        }
        // A pause that comes now is one turn late, and no token is lost.
        word.fetch_and(!ARMED, AcqRel);
        true
    }
}

impl Consumer {
    /// The next queue to be served, if any: to be emptied, or read as far as its turn goes and
    /// named to [`Consumer::more`]. Data that is published from now on rings again. Costs the same
    /// however many queues there are.
    pub fn next<W: Wake, M: AsRef<[AtomicU32]>>(&mut self, bells: &Doorbells<W, M>) -> Option<u32> {
        // Each queue has one token. A process that writes at will can add more.
        for _ in 0..=bells.queues {
            self.is_lists_turn = !self.is_lists_turn;
            let queue = if self.is_lists_turn {
                self.unlist().or_else(|| self.pop(bells))
            } else {
                self.pop(bells).or_else(|| self.unlist())
            }?;
            if (queue as usize) < bells.queues && bells.take(queue) {
                return Some(queue);
            }
        }
        None
    }
    /// The queue that was served has more.
    pub fn more<W: Wake, M: AsRef<[AtomicU32]>>(&mut self, bells: &Doorbells<W, M>, queue: u32) {
        if bells.queue(queue).fetch_or(ARMED, AcqRel) & ARMED != 0 {
            return;
        }
        let at = queue as usize;
        if self.is_listed.len() <= at {
            self.is_listed.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.is_listed[at], true) {
            self.list.push_back(queue);
        }
    }
    /// Announces that the consumer is about to sleep. `false`: there is something, and it must not.
    /// After `true` it waits for [`Wake::wake`], and calls [`Consumer::awake`].
    pub fn may_sleep<W: Wake, M: AsRef<[AtomicU32]>>(&self, bells: &Doorbells<W, M>) -> bool {
        bells.word(SLEEPING).store(1, Relaxed);
        fence(SeqCst);
        let is_empty = self.list.is_empty() && bells.place(self.head).load(Acquire) == EMPTY;
        if !is_empty {
            self.awake(bells);
        }
        is_empty
    }
    /// The consumer is awake, whatever woke it.
    pub fn awake<W: Wake, M: AsRef<[AtomicU32]>>(&self, bells: &Doorbells<W, M>) {
        bells.word(SLEEPING).store(0, Relaxed);
    }

    /// A producer that has claimed a place and not written it yet hides those behind: they are
    /// found when it has.
    fn pop<W: Wake, M: AsRef<[AtomicU32]>>(&mut self, bells: &Doorbells<W, M>) -> Option<u32> {
        let place = bells.place(self.head);
        let token = place.load(Acquire);
        if token == EMPTY {
            return None;
        }
        place.store(EMPTY, Relaxed);
        self.head = self.head.wrapping_add(1);
        Some(token - 1)
    }
    #[cfg(test)]
    pub(crate) fn list_len(&self) -> usize {
        self.list.len()
    }
    fn unlist(&mut self) -> Option<u32> {
        let queue = self.list.pop_front()?;
        self.is_listed[queue as usize] = false;
        Some(queue)
    }
}
