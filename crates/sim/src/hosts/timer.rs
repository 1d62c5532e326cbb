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
    /// One that is not set.
    pub(super) const UNSET: Timer = Timer { at: Time::MAX, behind: Time::MAX };

    /// The next event.
    #[inline]
    pub(super) fn at(&self) -> Time {
        self.at
    }

    /// Brings it forward to `at`. The event that was the next stays if it `stays`, and if there is
    /// none behind it.
    pub(super) fn hasten(&mut self, at: Time, stays: bool, key: Key, events: &mut Cells) {
        if stays && self.behind == Time::MAX {
            self.behind = self.at;
        } else {
            events.cancel(self.at, key);
        }
        self.at = at;
        if at == self.behind {
            self.behind = Time::MAX; // it is scheduled
        } else {
            events.push(at, key);
        }
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

    /// Takes its events back.
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
