//! The timer events of a sender.
//!
//! A queue pair's pace brings its timer forward for each packet, and its retransmission timer is
//! far off. So the far event stays where it is while a nearer one is due: it would be taken back
//! and scheduled anew for each packet.
//!
//! Invariant: an event is scheduled at [`Timer::at`], and at `behind` where that is a time; `at` is
//! earlier.

use super::*;
use crate::cells::Cells;

/// When events of one timer are scheduled; `Time::MAX`: none is.
pub(super) struct Timer {
    at: Time,
    behind: Time,
}

impl Timer {
    pub(super) const UNSET: Timer = Timer { at: Time::MAX, behind: Time::MAX };

    #[inline]
    pub(super) fn at(&self) -> Time {
        self.at
    }

    /// Brings it forward to `at`, before its next event, which is kept behind if it `stays` and
    /// none is there.
    pub(super) fn hasten(&mut self, at: Time, stays: bool, key: Key, events: &mut Cells) {
        if stays && self.behind == Time::MAX {
            self.behind = self.at;
        } else {
            events.cancel(self.at, key);
        }
        self.at = at;
        events.push(at, key);
    }

    /// Whether an event that is due is the one that counts. Others are left over.
    #[inline]
    pub(super) fn fires(&mut self, now: Time) -> bool {
        let fires = self.at == now;
        if fires {
            self.at = std::mem::replace(&mut self.behind, Time::MAX);
        }
        fires
    }

    pub(super) fn cancel(&self, key: Key, events: &mut Cells) {
        [self.at, self.behind].into_iter().for_each(|at| events.cancel(at, key));
    }

    /// Its events become those of another key.
    pub(super) fn rename(&self, from: Key, to: Key, events: &mut Cells) {
        for at in [self.at, self.behind].into_iter().filter(|at| *at < Time::MAX) {
            events.cancel(at, from);
            events.push(at, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Places;
    use crate::event::Class;
    use crate::events::EventQueue;

    fn key(host: u32) -> Key {
        Key::new(Class::SenderTimer, host, 7)
    }

    fn events() -> Cells {
        let mut events = Cells::new(vec![EventQueue::new(Time::from_ns(10), false)]);
        events.places = Places { inbound: vec![], outlinks: vec![], hosts: vec![0, 0] };
        events
    }

    /// The times of all events, with the timer's word on which of them count.
    fn drain(timer: &mut Timer, events: &mut Cells) -> Vec<(u64, bool)> {
        assert!(events.enter(0, Time::END));
        let due = std::iter::from_fn(|| events.pop_before(Time::END));
        let served = due.map(|(at, _)| (at.as_ps() / 1_000_000, timer.fires(at))).collect();
        events.leave();
        served
    }

    #[test]
    fn far_event_stays_behind_the_pace() {
        let (us, mut timer, mut events) = (Time::from_us, Timer::UNSET, events());
        timer.hasten(us(4_000), false, key(0), &mut events);
        timer.hasten(us(2), true, key(0), &mut events);
        assert_eq!(drain(&mut timer, &mut events), [(2, true), (4_000, true)]);
        assert_eq!(timer.at(), Time::MAX);
    }

    #[test]
    fn far_event_is_taken_back_unless_it_stays() {
        let (us, mut timer, mut events) = (Time::from_us, Timer::UNSET, events());
        timer.hasten(us(9_000), false, key(0), &mut events);
        timer.hasten(us(5_000), false, key(0), &mut events);
        timer.hasten(us(3_000), true, key(0), &mut events);
        timer.hasten(us(2_000), true, key(0), &mut events);
        assert_eq!(drain(&mut timer, &mut events), [(2_000, true), (5_000, true)]);
    }

    #[test]
    fn nothing_is_left_where_all_is_taken_back_or_renamed() {
        let (us, mut timer, mut events) = (Time::from_us, Timer::UNSET, events());
        timer.hasten(us(4_000), false, key(0), &mut events);
        timer.hasten(us(2_000), true, key(0), &mut events);
        timer.rename(key(0), key(1), &mut events);
        assert_eq!(events.next_time(), Some(us(2_000)));
        timer.cancel(key(1), &mut events);
        assert_eq!(events.next_time(), None);
    }
}
