//! The receiver's ordering buffer: holds back what arrives too early, so that the transport above
//! does not take reordering for loss.
//!
//! Follows the ordering component of Vertigo's hosts (CoNEXT 2021 and its published simulations).
//! There a packet's place is known by the bytes that remain of its message, and messages by a
//! number; here both follow from the offset in the stream: messages of a connection lie one behind
//! the other in it, so ascending offsets are descending remaining bytes, message by message, and
//! the end of one message is followed by the first byte of the next.
//!
//! A packet at or before the expected offset is delivered at once: it is next in order, or a late
//! copy that the transport must see to answer it. One beyond waits for the gap to fill, `timeout`
//! at most. A packet that is held in front of another takes over the other's time of arrival, so
//! times ascend with offsets and one deadline, the first packet's, is enough. When it expires, that
//! packet and what follows it without a gap are delivered, as are all whose time is over; the
//! transport then sees the gap, and does about it what it does.
//!
//! Invariant: nothing is held longer than `timeout`; what goes in comes out once; with a timeout
//! that never expires the output is in order but for copies of what was delivered; input in order
//! passes through, and allocates nothing.

use crate::registry::{About, PathProperty, Reason};
use crate::units::Time;
use std::collections::VecDeque;

crate::params! {
    /// Packets reach the transport as they come.
    pub struct UnorderedParams {}
}
crate::params! {
    /// Early packets wait for the gap before them to fill.
    pub struct TimeoutParams {
        /// The longest that a packet is held back. Source: Vertigo's published simulations use
        /// 360us at 10 and 40 Gbps.
        pub timeout: Time = Time::from_us(360),
    }
}

const UNORDERED: About =
    About { summary: "packets reach the transport as they come", source: "", ..About::PLAIN };
const TIMEOUT: About = About {
    summary: "packets that arrive early wait for the gap before them, up to a timeout",
    source: "Abdous, Sharafzadeh, Ghorbani: Burst-tolerant datacenter networks with Vertigo, \
             CoNEXT 2021",
    restores: &[PathProperty::FifoPerFlow],
    answers: Some(Reason::Reordering),
    ..About::PLAIN
};

crate::registry! {
    /// Whether the receiver restores order.
    place: "transport.ordering",
    question: "does the receiver restore order below the transport?",
    default: None,
    params: OrderingParams;
    "none" => None { UnorderedParams; UNORDERED },
    "timeout" => Timeout { TimeoutParams; TIMEOUT },
}

impl OrderingParams {
    /// The longest that a packet is held back; `None`: none is.
    pub fn timeout(&self) -> Option<Time> {
        match self {
            OrderingParams::None(_) => None,
            OrderingParams::Timeout(p) => Some(p.timeout),
        }
    }
}

/// A packet that is held back.
#[derive(Clone, Debug)]
struct Waiting<T> {
    seq: u64,
    end: u64,
    /// When it arrived, or a packet behind it if that was earlier.
    since: Time,
    item: T,
}

#[derive(Clone, Debug)]
struct Held<T> {
    /// By offset, and in the order of arrival where several have the same. A window's worth at
    /// most, so moving a few is cheaper than a tree.
    waiting: VecDeque<Waiting<T>>,
    /// Bytes delivered although they were early: ranges from, to, ascending; apart from each other
    /// and beyond the expected offset.
    early: VecDeque<(u64, u64)>,
    /// While time-outs are served: where the run that is being delivered ends; 0: there is none.
    run: u64,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Held { waiting: VecDeque::new(), early: VecDeque::new(), run: 0 }
    }
}

/// One connection's ordering buffer. Its items are the driver's: packets, or frames.
///
/// After [`Ordering::arrive`] has given a packet back, [`Ordering::next`] is to be asked until it
/// gives none; from [`Ordering::deadline`] on, [`Ordering::expire`] is.
#[derive(Clone, Debug)]
pub struct Ordering<T> {
    /// The first byte not delivered in order.
    expected: u64,
    timeout: Time,
    /// Allocated with the first packet that comes early.
    held: Option<Box<Held<T>>>,
}

impl<T> Ordering<T> {
    /// Of a connection all of whose bytes before `expected` were delivered, and none behind it: a
    /// driver needs a buffer only from the first packet that is early to when it [holds
    /// nothing](Ordering::is_idle).
    pub fn new(timeout: Time, expected: u64) -> Ordering<T> {
        Ordering { expected, timeout, held: None }
    }

    /// Whether all that was delivered was in order, and nothing waits.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.held.is_none()
    }

    /// The bytes `[seq, seq + len)` arrive. Gives `item` back if it is to be delivered now.
    #[inline]
    pub fn arrive(&mut self, now: Time, seq: u64, len: u32, item: T) -> Option<T> {
        let end = seq + len as u64;
        if seq <= self.expected {
            self.expected = self.expected.max(end);
            return Some(item);
        }
        self.hold(now, seq, end, item)
    }

    /// The next packet that is in order by now.
    #[inline]
    #[allow(clippy::should_implement_trait)] // it is no iterator: arrivals come between
    pub fn next(&mut self) -> Option<T> {
        let held = self.held.as_deref_mut()?;
        while let Some((_, to)) = held.early.pop_front_if(|(from, _)| *from <= self.expected) {
            self.expected = self.expected.max(to);
        }
        let next = held.waiting.pop_front_if(|waiting| waiting.seq <= self.expected);
        if held.waiting.is_empty() && held.early.is_empty() {
            self.held = None; // most connections need it for a moment only
        }
        let next = next?;
        self.expected = self.expected.max(next.end);
        Some(next.item)
    }

    /// When [`Ordering::expire`] has something to give; `Time::MAX`: never. Never earlier than it
    /// was before, so that a driver may leave its timer as it is and look here when it fires.
    #[inline]
    pub fn deadline(&self) -> Time {
        let first = self.held.as_deref().and_then(|held| held.waiting.front());
        first.map_or(Time::MAX, |waiting| waiting.since.saturating_add(self.timeout))
    }

    /// The next packet whose time is over, or that follows such a one without a gap.
    pub fn expire(&mut self, now: Time) -> Option<T> {
        let held = self.held.as_deref_mut()?;
        let run = std::mem::take(&mut held.run);
        let due =
            |it: &mut Waiting<T>| it.seq <= run || it.since.saturating_add(self.timeout) <= now;
        let waiting = held.waiting.pop_front_if(due)?;
        held.run = insert(&mut held.early, waiting.seq, waiting.end);
        Some(waiting.item)
    }

    /// Gives back all that waits, of a stream that is over.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        let held = self.held.take().map(|held| held.waiting);
        held.into_iter().flatten().map(|waiting| waiting.item)
    }

    /// Packets that are held back.
    pub fn len(&self) -> usize {
        self.held.as_deref().map_or(0, |held| held.waiting.len())
    }

    /// Whether none is held back.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cold]
    fn hold(&mut self, now: Time, seq: u64, end: u64, item: T) -> Option<T> {
        let held = self.held.get_or_insert_default();
        let before = held.early.partition_point(|(from, _)| *from <= seq);
        if before > 0 && end <= held.early[before - 1].1 {
            return Some(item); // a copy of what the transport has
        }
        let place = held.waiting.partition_point(|waiting| waiting.seq <= seq);
        let since = held.waiting.get(place).map_or(now, |behind| behind.since.min(now));
        held.waiting.insert(place, Waiting { seq, end, since, item });
        None
    }
}

/// Adds `[from, to)` to ranges that lie apart. Returns where the range that it is now part of ends.
fn insert(ranges: &mut VecDeque<(u64, u64)>, from: u64, to: u64) -> u64 {
    let first = ranges.partition_point(|(_, end)| *end < from);
    let last = ranges.partition_point(|(begin, _)| *begin <= to);
    let range = match (ranges.get(first), last.checked_sub(1).and_then(|last| ranges.get(last))) {
        (Some((begin, _)), Some((_, end))) if first < last => (from.min(*begin), to.max(*end)),
        _ => (from, to),
    };
    ranges.drain(first..last.max(first));
    ranges.insert(first, range);
    range.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn us(n: u64) -> Time {
        Time::from_us(n)
    }

    /// Packets of ten bytes, known by their number.
    struct Bench {
        buffer: Ordering<u64>,
        out: Vec<u64>,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { buffer: Ordering::new(us(100), 0), out: Vec::new() }
        }
        fn arrive(&mut self, at: u64, number: u64) {
            assert!(us(at) < self.buffer.deadline(), "the timer comes first");
            let mut next = self.buffer.arrive(us(at), number * 10, 10, number);
            while let Some(number) = next {
                self.out.push(number);
                next = self.buffer.next();
            }
        }
        fn expire(&mut self) -> Time {
            let at = self.buffer.deadline();
            while let Some(number) = self.buffer.expire(at) {
                self.out.push(number);
            }
            at
        }
        fn take(&mut self) -> Vec<u64> {
            std::mem::take(&mut self.out)
        }
    }

    #[test]
    fn order_passes_through_and_allocates_nothing() {
        let mut b = Bench::new();
        (0..100).for_each(|n| b.arrive(n, n));
        assert_eq!(b.take(), (0..100).collect::<Vec<_>>());
        assert!(b.buffer.held.is_none());
    }

    #[test]
    fn the_gap_fills_and_what_waited_follows() {
        let mut b = Bench::new();
        for (at, number) in [(0, 0), (1, 3), (2, 2), (3, 5)] {
            b.arrive(at, number);
        }
        assert_eq!((b.take(), b.buffer.len()), (vec![0], 3));
        assert_eq!(b.buffer.deadline(), us(101), "2 has taken over the time of 3");
        b.arrive(4, 1);
        assert_eq!(b.take(), [1, 2, 3]);
        assert_eq!(b.buffer.deadline(), us(103));
        b.arrive(5, 4);
        assert_eq!((b.take(), b.buffer.deadline()), (vec![4, 5], Time::MAX));
    }

    #[test]
    fn a_timeout_delivers_the_run_and_leaves_what_is_behind_the_next_gap() {
        let mut b = Bench::new();
        for (at, number) in [(0, 0), (10, 2), (20, 3), (30, 5), (40, 6)] {
            b.arrive(at, number);
        }
        assert_eq!(b.expire(), us(110));
        assert_eq!(b.take(), [0, 2, 3], "3 although it came later");
        assert_eq!(b.buffer.deadline(), us(130));
        // The gap fills after all: what was delivered is not delivered again, and what waited is
        // not next yet.
        b.arrive(120, 1);
        assert_eq!(b.take(), [1]);
        assert_eq!(b.buffer.expected, 40);
        b.arrive(121, 4);
        assert_eq!(b.take(), [4, 5, 6]);
        assert!(b.buffer.is_empty() && b.buffer.held.is_none());
    }

    #[test]
    fn copies_of_what_was_delivered_pass_at_once() {
        let mut b = Bench::new();
        for (at, number) in [(0, 0), (1, 0), (10, 3)] {
            b.arrive(at, number);
        }
        b.expire();
        assert_eq!(b.take(), [0, 0, 3]);
        b.arrive(120, 3);
        assert_eq!(b.take(), [3], "delivered early, and again");
        b.arrive(121, 4);
        b.arrive(122, 4);
        assert_eq!((b.take(), b.buffer.len()), (vec![], 2), "a copy of what waits waits with it");
        b.arrive(123, 1);
        b.arrive(124, 2);
        assert_eq!(b.take(), [1, 2, 4, 4]);
    }

    #[test]
    fn a_packet_that_reaches_beyond_the_expected_byte_moves_it() {
        let mut b: Ordering<&str> = Ordering::new(us(100), 0);
        assert_eq!(b.arrive(us(0), 0, 10, "a"), Some("a"));
        assert_eq!(b.arrive(us(1), 25, 5, "c"), None);
        assert_eq!(b.arrive(us(2), 5, 20, "b"), Some("b"));
        assert_eq!((b.next(), b.next()), (Some("c"), None));
        assert_eq!(b.expected, 30);
    }

    #[test]
    fn ranges_merge() {
        let mut ranges = VecDeque::new();
        assert_eq!(insert(&mut ranges, 10, 20), 20);
        assert_eq!(insert(&mut ranges, 30, 40), 40);
        assert_eq!(insert(&mut ranges, 20, 25), 25);
        assert_eq!(insert(&mut ranges, 12, 15), 25);
        assert_eq!(insert(&mut ranges, 24, 30), 40);
        assert_eq!(ranges.into_iter().collect::<Vec<_>>(), [(10, 40)]);
    }

    proptest! {
        /// Whatever arrives in whatever order, with copies and losses: everything comes out once,
        /// and none later than the timeout after it came; each run that comes out is in order; the
        /// buffer holds no more than is missing.
        #[test]
        fn nothing_is_lost_doubled_or_late(
            arrivals in prop::collection::vec((0u64..60, 0u64..40, 1u32..4), 1..300),
            timeout in 0u64..200,
        ) {
            let timeout = us(timeout);
            let mut buffer: Ordering<(usize, Time)> = Ordering::new(timeout, 0);
            let mut now = Time::ZERO;
            let mut seen = vec![0; arrivals.len()];
            let mut deadline = Time::ZERO;
            for (i, (gap, number, packets)) in arrivals.iter().enumerate() {
                let arrives = now + us(*gap);
                while buffer.deadline() < arrives {
                    prop_assert!(buffer.deadline() >= deadline, "deadlines never move back");
                    deadline = buffer.deadline();
                    let mut any = false;
                    while let Some((which, came)) = buffer.expire(deadline) {
                        seen[which] += 1;
                        prop_assert!(deadline <= came + timeout);
                        any = true;
                    }
                    prop_assert!(any && buffer.deadline() > deadline);
                }
                now = arrives;
                let mut next = buffer.arrive(now, number * 10, packets * 10, (i, now));
                let mut expected = 0;
                while let Some((which, came)) = next {
                    seen[which] += 1;
                    prop_assert!(now <= came + timeout);
                    prop_assert!(arrivals[which].1 >= expected, "in order");
                    expected = arrivals[which].1;
                    next = buffer.next();
                }
                let arrived = seen[..=i].iter().filter(|count| **count == 0).count();
                prop_assert_eq!(buffer.len(), arrived, "all that has not come out is held");
                let first = buffer
                    .held
                    .as_ref()
                    .and_then(|held| held.waiting.front().map(|first| first.seq));
                prop_assert!(first.is_none_or(|first| first > buffer.expected));
            }
            while buffer.deadline() != Time::MAX {
                let at = buffer.deadline();
                while let Some((which, came)) = buffer.expire(at) {
                    seen[which] += 1;
                    prop_assert!(at <= came + timeout);
                }
            }
            prop_assert!(seen.iter().all(|count| *count == 1), "{:?}", seen);
        }

        /// Without a timeout a permutation comes out in order, whatever it was.
        #[test]
        fn without_a_timeout_order_is_restored(
            order in Just((0u64..100).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut buffer = Ordering::new(Time::MAX, 0);
            let mut out = Vec::new();
            for (at, number) in order.into_iter().enumerate() {
                let mut next = buffer.arrive(us(at as u64), number * 10, 10, number);
                prop_assert_eq!(buffer.deadline(), Time::MAX);
                while let Some(number) = next {
                    out.push(number);
                    next = buffer.next();
                }
            }
            prop_assert_eq!(out, (0..100).collect::<Vec<_>>());
            prop_assert!(buffer.is_empty());
        }
    }
}
