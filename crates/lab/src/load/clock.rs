//! The lab's clock: CLOCK_MONOTONIC since the run began.
//!
//! Invariant: no time is before its cause: a moment that is due is never later than [`Clock::now`].

use millpond_core::Time;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::{Duration, Instant};

/// Reads the time since the run began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    began: Instant,
}

fn nanoseconds(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

impl Clock {
    pub fn new(began: Instant) -> Clock {
        Clock { began }
    }

    /// The time since the beginning; zero before it.
    pub fn now(&self) -> Time {
        let since = Instant::now().saturating_duration_since(self.began);
        Time::from_ns(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 1000))
    }

    /// How long it is until `at`; zero if `at` is due.
    pub fn until(&self, at: Time) -> Duration {
        let due = self.began.checked_add(Duration::from_nanos(at.as_ps().div_ceil(1000)));
        due.map_or(Duration::MAX, |due| due.saturating_duration_since(Instant::now()))
    }

    /// Converts a kernel time stamp, which is of CLOCK_REALTIME. A stamp from the future is now.
    pub fn at(&self, stamp: Timespec) -> Time {
        let age = nanoseconds(clock_gettime(ClockId::Realtime)) - nanoseconds(stamp);
        self.now().saturating_sub(Time::from_ns(u64::try_from(age).unwrap_or(0)))
    }
}
