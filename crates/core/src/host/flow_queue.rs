//! The segments that one flow has waiting in its host's NIC.
//!
//! The bound is Linux's TCP Small Queues: a flow that has as much in the NIC as it may is not asked
//! for more until one of its segments has left in full. So the queue pushes back before a segment
//! is made ([`FlowQueue::room`]), and the segment joins it when it has passed all stages above.
//! Segments are the transport's super-segments; the NIC cuts them.
//!
//! A virtual switch may hold a flow ([`FlowQueue::hold`]). Whoever sends asks for that first: it is
//! a switch's hosts alone that have to.
//!
//! The bound is a socket's, as in Linux, over all NICs that its flow takes. Segments of several
//! NICs leave in any order, so the queue keeps them in the order of their departures.
//!
//! Invariant: what a flow has waiting never exceeds the bound, and every segment handed down is
//! accounted for until its last packet has left.

use super::passes;
use crate::packet::HostId;
use crate::units::Time;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    bytes: u32,
    nic: HostId,
    /// When its last packet leaves (`Time::MAX` while unknown).
    departs: Time,
}

/// The packets of one flow that wait for the NIC.
#[derive(Debug)]
pub struct FlowQueue {
    limit: u64,
    waiting: u64,
    /// By departure, and those of unknown departure in the order in which they joined.
    segments: VecDeque<Waiting>,
    /// When the flow will be woken; `Time::MAX`: not at all.
    wake_at: Time,
    /// Since when it is held; `Time::MAX`: it is not.
    held_since: Time,
    pub is_wanted: bool,
    /// It is among those that wait for their host's NIC.
    pub is_queued: bool,
}

impl FlowQueue {
    /// An empty queue; without a bound it only reports what waits.
    pub fn new(limit: Option<u64>) -> FlowQueue {
        let limit = limit.unwrap_or(u64::MAX);
        let (wake_at, held_since) = (Time::MAX, Time::MAX);
        FlowQueue {
            limit,
            waiting: 0,
            segments: VecDeque::new(),
            wake_at,
            held_since,
            is_wanted: false,
            is_queued: false,
        }
    }

    /// How much the flow may hand down now, at most `whole`; less than a whole segment only where
    /// nothing waits.
    #[inline]
    pub fn room(&mut self, now: Time, whole: u32) -> Option<u32> {
        while let Some(&Waiting { bytes, departs, .. }) = self.segments.front() {
            if departs > now {
                break;
            }
            self.waiting -= bytes as u64;
            self.segments.pop_front();
        }
        let room = self.limit.saturating_sub(self.waiting);
        if room >= whole as u64 {
            Some(whole)
        } else if self.waiting == 0 {
            Some(room as u32)
        } else {
            None
        }
    }

    /// A segment is handed down by a NIC, of which it is known (or not: `Time::MAX`) when its last
    /// packet leaves. One of a known departure leaves after all others.
    #[inline]
    pub fn join(&mut self, bytes: u32, nic: HostId, departs: Time) {
        passes!(FlowQueue);
        self.segments.push_back(Waiting { bytes, nic, departs });
        self.waiting += u64::from(bytes);
    }

    /// The segment that joined last leaves then.
    #[inline]
    pub(super) fn settle(&mut self, departs: Time) {
        let last = self.segments.len().checked_sub(1);
        last.into_iter().for_each(|last| self.place(last, departs));
    }

    /// The first segment of a NIC whose departure was unknown leaves then.
    pub fn leaves(&mut self, nic: HostId, departs: Time) {
        let is_it = |it: &Waiting| it.departs == Time::MAX && it.nic == nic;
        if let Some(at) = self.segments.iter().position(is_it) {
            self.place(at, departs);
        }
    }

    /// Puts a segment before those that leave after it.
    fn place(&mut self, mut at: usize, departs: Time) {
        self.segments[at].departs = departs;
        while at > 0 && self.segments[at - 1].departs > departs {
            self.segments.swap(at - 1, at);
            at -= 1;
        }
    }

    /// The flow has found no room; `wants`: it has something to send. When to call it, if it has
    /// not asked to be called as early.
    pub fn wake(&mut self, wants: bool) -> Option<Time> {
        self.is_wanted = wants;
        let at = self.first_leaves();
        let asks = wants && at < self.wake_at;
        asks.then(|| {
            self.wake_at = at;
            at
        })
    }

    /// The flow is called; whether this is the call that it waits for.
    pub fn woken(&mut self, now: Time) -> bool {
        let is_due = self.wake_at == now;
        if is_due {
            self.wake_at = Time::MAX;
        }
        is_due
    }

    /// The flow may hand down nothing from now on.
    pub fn hold(&mut self, now: Time) {
        self.held_since = now;
    }
    pub fn release(&mut self) {
        self.held_since = Time::MAX;
    }
    /// Since when it is held, if it is.
    pub fn held_since(&self) -> Option<Time> {
        (self.held_since != Time::MAX).then_some(self.held_since)
    }
    #[inline]
    pub fn is_held(&self) -> bool {
        self.held_since != Time::MAX
    }

    /// When the first segment leaves (`Time::MAX`: nothing waits, or it is not known yet).
    fn first_leaves(&self) -> Time {
        self.segments.front().map_or(Time::MAX, |it| it.departs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_waits_for_a_whole_segment_to_leave() {
        let mut queue = FlowQueue::new(Some(128 << 10));
        let whole = 45 * 1448;
        for departs in [10, 20] {
            assert_eq!(queue.room(Time::ZERO, whole), Some(whole));
            queue.join(whole, 0, Time::from_us(departs));
        }
        assert_eq!(queue.room(Time::from_us(9), whole), None);
        assert_eq!(queue.wake(true), Some(Time::from_us(10)));
        assert_eq!(queue.wake(true), None, "it is asked for already");
        assert!(!queue.woken(Time::from_us(9)) && queue.woken(Time::from_us(10)));
        assert_eq!(queue.room(Time::from_us(10), whole), Some(whole));
    }

    #[test]
    fn a_limit_below_a_segment_still_lets_something_through() {
        let mut queue = FlowQueue::new(Some(3_000));
        assert_eq!(queue.room(Time::ZERO, 65_160), Some(3_000));
        queue.join(2_896, 0, Time::MAX);
        assert_eq!(queue.room(Time::from_us(5), 65_160), None);
        assert_eq!(queue.wake(true), None, "nobody knows when it leaves");
        queue.leaves(0, Time::from_us(6));
        assert_eq!(queue.room(Time::from_us(6), 65_160), Some(3_000));
    }

    #[test]
    fn segments_of_two_nics_leave_in_any_order() {
        let us = Time::from_us;
        let mut known = FlowQueue::new(Some(3_000));
        let mut late = FlowQueue::new(Some(3_000));
        for (nic, departs) in [(1, us(30)), (1, us(60)), (2, us(10))] {
            known.join(1_000, nic, Time::MAX);
            known.settle(departs);
            late.join(1_000, nic, Time::MAX);
        }
        late.leaves(1, us(30));
        assert_eq!(late.wake(true), Some(us(30)));
        late.leaves(2, us(10));
        assert_eq!((known.wake(true), late.wake(true)), (Some(us(10)), Some(us(10))));
        assert!(late.woken(us(10)) && !late.woken(us(30)));
        late.leaves(1, us(60));
        for (now, room) in [(9, None), (10, Some(1_000)), (30, Some(1_000)), (60, Some(1_000))] {
            assert_eq!(known.room(us(now), 1_000), room);
            assert_eq!(late.room(us(now), 1_000), room);
        }
        assert_eq!((known.waiting, late.waiting), (0, 0));
    }

    #[test]
    fn a_flow_knows_since_when_it_is_held() {
        let mut queue = FlowQueue::new(None);
        queue.hold(Time::from_us(3));
        assert_eq!((queue.is_held(), queue.held_since()), (true, Some(Time::from_us(3))));
        assert_eq!(queue.wake(true), None, "whoever lets it go on calls it");
        queue.release();
        assert_eq!((queue.is_held(), queue.held_since()), (false, None));
    }

    #[test]
    fn without_a_bound_there_is_always_room() {
        let mut queue = FlowQueue::new(None);
        for _ in 0..9 {
            assert_eq!(queue.room(Time::ZERO, 65_160), Some(65_160));
            queue.join(65_160, 0, Time::MAX);
        }
    }
}
