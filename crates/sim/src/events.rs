//! The event queue: a timing wheel with exact order.
//!
//! Near events lie in buckets of a power of two picoseconds (a slab of nodes, a list a bucket, a
//! bit for each bucket that is not empty); the bucket that is due is sorted and served from its
//! end; what lies beyond the wheel waits in a sorted set, and what is later still in [`Distant`];
//! from both a timer that is no longer wanted can be taken back. The structure was chosen by `cargo
//! run --release --example event_queue` beside a binary heap.
//!
//! Arrivals at one instant leave in the order of links, or they draw lots, so that no link is
//! always the first into a queue with one place left: then their order is that of a hash of the
//! time and of the number that a link's key has for its sequence.
//!
//! Invariant: events leave in an order that is of times and keys alone, so it does not depend on
//! when or by whom an event was inserted.

use crate::distant::Distant;
use crate::event::{Class, Event, Key};
use millpond_core::Time;
use millpond_core::random::lot;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The order of events where arrivals at one instant draw lots.
#[inline]
fn cmp_lots(a: &Event, b: &Event) -> Ordering {
    if a.0 == b.0 { cmp_at_once(a, b) } else { a.0.cmp(&b.0) }
}

/// The same at one instant, which is rare where hosts jitter: by class, then by lot, then by key.
#[cold]
#[inline(never)]
fn cmp_at_once(a: &Event, b: &Event) -> Ordering {
    let rank = |&(at, key): &Event| {
        let lot = lot(at, key.sequence());
        (key.class() as u8, if key.class() == Class::Arrival { lot } else { 0 }, key)
    };
    rank(a).cmp(&rank(b))
}

const BUCKETS: usize = 1024;
const WORDS: usize = BUCKETS / 64;
const END: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    event: Event,
    next: u32,
}

/// The queue.
pub struct EventQueue {
    /// The due bucket, latest first: the next event is the last.
    due: Vec<Event>,
    /// Number of the due bucket, counted from time zero.
    cursor: u64,
    /// log2 of a bucket's width in picoseconds.
    shift: u32,
    nodes: Vec<Node>,
    free: u32,
    heads: Box<[u32; BUCKETS]>,
    occupied: [u64; WORDS],
    /// Arrivals at one instant draw lots.
    draws: bool,
    /// Beyond the wheel. A set, so that timers of connections that have ended do not stay until
    /// they would have fired: with short flows and long timeouts they would be most of a run's
    /// memory.
    far: BTreeSet<Event>,
    /// Beyond those.
    distant: Distant,
    /// The bucket from which on the wheel reaches into what is distant.
    pass_at: u64,
    len: usize,
}

impl EventQueue {
    /// An empty queue whose buckets are about `width` wide: a few times the mean gap between events
    /// is best. With `draws` arrivals at one instant draw lots.
    pub fn new(width: Time, draws: bool) -> EventQueue {
        EventQueue {
            due: Vec::new(),
            cursor: 0,
            shift: width.as_ps().max(1).ilog2(),
            nodes: Vec::new(),
            free: END,
            heads: Box::new([END; BUCKETS]),
            occupied: [0; WORDS],
            draws,
            far: BTreeSet::new(),
            distant: Distant::default(),
            pass_at: 0,
            len: 0,
        }
    }

    /// Events that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts an event, at any time from the last one popped on.
    #[inline]
    pub fn push(&mut self, at: Time, key: Key) {
        let bucket = at.as_ps() >> self.shift;
        self.len += 1;
        // Ahead of the cursor and within the wheel's reach: one comparison for both.
        if bucket.wrapping_sub(self.cursor + 1) < BUCKETS as u64 - 1 {
            self.link(bucket, (at, key));
        } else {
            self.push_elsewhere(at, key);
        }
    }

    /// An event that is due already, or beyond the wheel. Apart, so that the common path saves no
    /// registers.
    #[inline(never)]
    fn push_elsewhere(&mut self, at: Time, key: Key) {
        let event = (at, key);
        if at.as_ps() >> self.shift <= self.cursor {
            return self.insert_due(event);
        }
        let is_new = if self.distant.covers(at) {
            self.distant.insert(event)
        } else {
            self.far.insert(event)
        };
        debug_assert!(is_new, "an event is scheduled once");
    }

    /// Takes back an event that was pushed and has not been popped, if it is still beyond the
    /// wheel. A nearer event stays, and whoever it is for must not mind.
    pub fn cancel(&mut self, at: Time, key: Key) {
        if at == Time::MAX || at.as_ps() >> self.shift < self.cursor + BUCKETS as u64 {
            return;
        }
        let event = (at, key);
        let was_here = if self.distant.covers(at) {
            self.distant.remove(&event)
        } else {
            self.far.remove(&event)
        };
        self.len -= usize::from(was_here);
    }

    /// Takes the first event if it is before `end`.
    #[inline]
    pub fn pop_before(&mut self, end: Time) -> Option<Event> {
        if self.due.is_empty() && !self.advance(end) {
            return None;
        }
        match self.due.last() {
            Some(&event) if event.0 < end => {
                self.due.pop();
                self.len -= 1;
                Some(event)
            }
            _ => None,
        }
    }

    /// The time of the first event.
    pub fn next_time(&self) -> Option<Time> {
        if let Some(event) = self.due.last() {
            return Some(event.0);
        }
        let near = self.next_bucket().map(|bucket| {
            let mut node = self.heads[bucket as usize % BUCKETS];
            let mut first = Time::MAX;
            while node != END {
                first = first.min(self.nodes[node as usize].event.0);
                node = self.nodes[node as usize].next;
            }
            first
        });
        let far = self.far.first().map(|event| event.0);
        near.into_iter().chain(far).min().or_else(|| self.distant.first())
    }

    #[inline]
    fn insert_due(&mut self, event: Event) {
        // Most insertions are later than all that is due, or nearly so: they belong near the front
        // of the vector.
        let place = if self.draws {
            self.due.partition_point(|other| cmp_lots(other, &event).is_gt())
        } else {
            self.due.partition_point(|other| *other > event)
        };
        self.due.insert(place, event);
    }

    #[inline]
    fn link(&mut self, bucket: u64, event: Event) {
        let slot = bucket as usize % BUCKETS;
        let next = self.heads[slot];
        let id = self.free;
        let id = match self.nodes.get_mut(id as usize) {
            // Field by field: a node made on the stack and copied is read back in other pieces than
            // it was written in, which a processor cannot forward, and every hop would wait for it.
            Some(node) => {
                self.free = node.next;
                (node.event.0, node.event.1, node.next) = (event.0, event.1, next);
                id
            }
            None => self.new_node(event, next),
        };
        self.heads[slot] = id;
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    #[cold]
    #[inline(never)]
    fn new_node(&mut self, event: Event, next: u32) -> u32 {
        self.nodes.push(Node { event, next });
        (self.nodes.len() - 1) as u32
    }

    /// The next occupied bucket after the cursor.
    #[inline]
    fn next_bucket(&self) -> Option<u64> {
        let from = (self.cursor + 1) as usize % BUCKETS;
        let (word, bit) = (from / 64, from % 64);
        let first = self.occupied[word] & (!0u64 << bit);
        if first != 0 {
            return Some(self.absolute(word * 64 + first.trailing_zeros() as usize));
        }
        for step in 1..=WORDS {
            let w = (word + step) % WORDS;
            if self.occupied[w] != 0 {
                return Some(self.absolute(w * 64 + self.occupied[w].trailing_zeros() as usize));
            }
        }
        None
    }

    /// The bucket after the cursor that lies in `slot`.
    #[inline]
    fn absolute(&self, slot: usize) -> u64 {
        let from = self.cursor + 1;
        from + (slot as u64).wrapping_sub(from) % BUCKETS as u64
    }

    /// Takes over from [`Distant`] what comes within the wheel's reach from `bucket`, and notes
    /// when to ask again.
    #[cold]
    fn pass(&mut self, bucket: u64) {
        let span = Time::from_ps((BUCKETS as u64 + 1) << self.shift);
        let reach = Time::from_ps(bucket << self.shift).saturating_add(span);
        let (far, distant) = (&mut self.far, &mut self.distant);
        distant.pass(reach, |event| {
            far.insert(event);
        });
        self.pass_at = distant.passed().saturating_sub(span).as_ps() >> self.shift;
    }

    /// Makes the next bucket due, unless it begins at `end` or later. Returns whether there is
    /// anything due.
    fn advance(&mut self, end: Time) -> bool {
        let near = self.next_bucket();
        if near.is_none() && self.far.is_empty() {
            let Some(begins) = self.distant.begins() else { return false };
            if begins >= end {
                return false;
            }
            self.distant.pass(begins, |event| {
                self.far.insert(event);
            });
        }
        let far = self.far.first().map(|event| event.0.as_ps() >> self.shift);
        let bucket = match (near, far) {
            (Some(n), Some(f)) => n.min(f),
            (Some(n), None) => n,
            (None, Some(f)) => f,
            (None, None) => return false,
        };
        if bucket << self.shift >= end.as_ps() {
            return false;
        }
        self.cursor = bucket;
        let slot = bucket as usize % BUCKETS;
        if near == Some(bucket) {
            let mut node = std::mem::replace(&mut self.heads[slot], END);
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            while node != END {
                let Node { event, next } = self.nodes[node as usize];
                self.due.push(event);
                self.nodes[node as usize].next = self.free;
                self.free = node;
                node = next;
            }
        }
        if bucket >= self.pass_at {
            self.pass(bucket);
        }
        // An event that has come within the wheel's reach leaves the set.
        while let Some(&event) = self.far.first() {
            let its = event.0.as_ps() >> self.shift;
            if its - bucket >= BUCKETS as u64 {
                break;
            }
            self.far.pop_first();
            if its == bucket { self.due.push(event) } else { self.link(its, event) }
        }
        if self.due.len() > 1 {
            if self.draws {
                self.due.sort_unstable_by(|a, b| cmp_lots(b, a));
            } else {
                self.due.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cancelled_event_leaves_nothing_behind() {
        let mut wheel = EventQueue::new(Time::from_ns(10), true);
        let key = Key::new(Class::SenderTimer, 1, 2);
        wheel.push(Time::from_s(1), key);
        wheel.push(Time::from_s(2), key);
        wheel.cancel(Time::from_s(1), key);
        assert_eq!((wheel.len(), wheel.next_time()), (1, Some(Time::from_s(2))));
        assert_eq!(wheel.pop_before(Time::MAX), Some((Time::from_s(2), key)));
        assert!(wheel.is_empty());
    }

    /// Of several links whose packets arrive together again and again, each comes first about as
    /// often as any other where they draw lots, and the first one always where they do not.
    #[test]
    fn lots_favour_no_link() {
        const LINKS: u32 = 3;
        let first = |draws: bool| {
            let mut first = [0u32; LINKS as usize];
            let mut wheel = EventQueue::new(Time::from_ns(100), draws);
            for round in 1..=30_000 {
                // The times that a burst of full packets gives: one instant every 1.2 us.
                let at = Time::from_ns(1_200 * round);
                (0..LINKS)
                    .for_each(|link| wheel.push(at, Key::new(Class::Arrival, link, 7 + link)));
                wheel.push(at, Key::new(Class::Pause, 0, 0));
                wheel.push(at, Key::new(Class::PortReady, 9, 0));
                let served: Vec<Key> = std::iter::from_fn(|| wheel.pop_before(Time::MAX))
                    .map(|event| event.1)
                    .collect();
                assert_eq!(
                    (served[0].class(), served[LINKS as usize + 1].class()),
                    (Class::PortReady, Class::Pause)
                );
                first[served[1].source() as usize] += 1;
            }
            first
        };
        assert_eq!(first(false), [30_000, 0, 0]);
        assert!(first(true).iter().all(|n| (9_700..10_300).contains(n)), "{:?}", first(true));
    }

    proptest! {
        /// The wheel serves exactly as a sorted list would, whatever is pushed while it is served.
        #[test]
        fn equals_a_sorted_set(
            width in 1u64..5_000,
            steps in prop::collection::vec((0u64..2_000_000, 0u32..8, any::<bool>()), 1..400),
        ) {
            let mut wheel = EventQueue::new(Time::from_ps(width), false);
            let mut model = BTreeSet::new();
            let mut now = Time::ZERO;
            for (i, (gap, source, pop)) in steps.into_iter().enumerate() {
                // Gaps of all sizes: most near, some far beyond the wheel, some distant.
                let far = [gap * 1_000, gap * 100_000].get(source as usize).copied();
                let at = now + Time::from_ps(far.unwrap_or(gap >> (source * 2)));
                let key = Key::new(Class::Arrival, source, i as u32);
                wheel.push(at, key);
                model.insert((at, key));
                if gap % 3 == 0 {
                    // An event that is near may stay.
                    wheel.cancel(at, key);
                    if wheel.len() < model.len() {
                        model.remove(&(at, key));
                    }
                }
                prop_assert_eq!(
                    (wheel.len(), wheel.next_time()),
                    (model.len(), model.first().map(|e| e.0))
                );
                if pop {
                    let end = now + Time::from_ps(gap);
                    while let Some(event) = wheel.pop_before(end) {
                        prop_assert_eq!(Some(event), model.pop_first());
                        now = event.0;
                    }
                    prop_assert!(model.first().is_none_or(|e| e.0 >= end));
                    now = now.max(end);
                }
            }
            while let Some(event) = wheel.pop_before(Time::MAX) {
                prop_assert_eq!(Some(event), model.pop_first());
            }
            prop_assert!(model.is_empty() && wheel.is_empty());
        }
    }
}
