//! A watchdog of PFC at a switch's port: it ends a pause that lasts too long.
//!
//! A priority is stuck while it is paused, packets of it wait, and none leaves. One that is stuck
//! for the detection time has a storm: the port drops its packets, those that wait and those that
//! come, or sends them in spite of the pause. The storm is over when no frame has paused the
//! priority for the restoration time. The rule is that of SONiC's PFC watchdog (`config pfcwd
//! start`), which looks by polling; here the times are exact.
//!
//! Invariant: a priority without packets is never stuck, and a departure begins its time anew.

use crate::packet::PRIORITIES;
use crate::switch::queue::PausedSet;
use crate::units::Time;

crate::choice! {
    /// A watchdog's action on a priority that has a storm.
    pub enum WatchdogAction {
        /// Drops its packets, those that wait and those that come.
        Drop = "drop",
        /// Sends its packets in spite of the pause.
        Forward = "forward",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogTerms {
    /// How long a priority is stuck before it has a storm.
    pub detection: Time,
    /// How long no frame pauses it before the storm is over.
    pub restoration: Time,
    pub action: WatchdogAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barks {
    No,
    /// The priority has a storm from now on.
    Storm,
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Guard {
    waiting: u32,
    /// Since when it is stuck; [`Time::MAX`]: it is not.
    since: Time,
    /// When a frame paused it last.
    paused_at: Time,
    has_storm: bool,
    /// The call that the driver was asked for; [`Time::MAX`]: none.
    called_at: Time,
}

#[derive(Clone, Debug)]
pub struct Watchdog {
    terms: WatchdogTerms,
    guards: [Guard; PRIORITIES],
    pub storms: u64,
}

impl Watchdog {
    /// Of a port that is not paused.
    pub fn new(terms: WatchdogTerms) -> Watchdog {
        let guard = Guard {
            waiting: 0,
            since: Time::MAX,
            paused_at: Time::ZERO,
            has_storm: false,
            called_at: Time::MAX,
        };
        Watchdog { terms, guards: [guard; PRIORITIES], storms: 0 }
    }

    /// A packet of a priority waits from now on.
    pub fn joins(&mut self, priority: u8) {
        self.guards[usize::from(priority)].waiting += 1;
    }

    /// A packet of a priority leaves, by the link or by force.
    pub fn leaves(&mut self, priority: u8) {
        let guard = &mut self.guards[usize::from(priority)];
        guard.waiting -= 1;
        guard.since = Time::MAX;
    }

    /// A frame has paused a priority.
    pub fn on_pause(&mut self, now: Time, priority: u8) {
        self.guards[usize::from(priority)].paused_at = now;
    }

    /// Whether a priority has a storm: no pause counts for it.
    pub fn has_storm(&self, priority: u8) -> bool {
        self.guards[usize::from(priority)].has_storm
    }

    /// Whether a packet of a priority is to be dropped.
    pub fn drops(&self, priority: u8) -> bool {
        self.terms.action == WatchdogAction::Drop && self.has_storm(priority)
    }

    /// Looks which priorities are stuck: a call to ask for, of one whose call is not under way.
    pub fn look(&mut self, now: Time, paused: PausedSet) -> Option<(u8, Time)> {
        for (priority, guard) in (0..).zip(&mut self.guards) {
            let is_stuck = paused.has(priority) && guard.waiting > 0;
            guard.since = if is_stuck { guard.since.min(now) } else { Time::MAX };
            let due = match guard.has_storm {
                true => guard.paused_at.saturating_add(self.terms.restoration),
                false => guard.since.saturating_add(self.terms.detection),
            };
            if due < Time::MAX && guard.called_at == Time::MAX {
                guard.called_at = due.max(now);
                return Some((priority, guard.called_at));
            }
        }
        None
    }

    /// Whether a call is the one that was asked for, of a priority.
    pub fn expects(&self, now: Time, priority: u8) -> bool {
        self.guards[usize::from(priority)].called_at == now
    }

    /// The call's time has come. Follow with [`Watchdog::look`].
    pub fn on_call(&mut self, now: Time, priority: u8) -> Barks {
        let WatchdogTerms { detection, restoration, .. } = self.terms;
        let guard = &mut self.guards[usize::from(priority)];
        guard.called_at = Time::MAX;
        if guard.has_storm {
            let is_over = guard.paused_at.saturating_add(restoration) <= now;
            guard.has_storm = !is_over;
            return if is_over { Barks::Over } else { Barks::No };
        }
        if guard.since.saturating_add(detection) > now {
            return Barks::No;
        }
        guard.has_storm = true;
        self.storms += 1;
        Barks::Storm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_ms;

    fn watchdog() -> Watchdog {
        let terms = WatchdogTerms {
            detection: MS(200),
            restoration: MS(400),
            action: WatchdogAction::Drop,
        };
        Watchdog::new(terms)
    }

    #[test]
    fn a_priority_that_is_stuck_for_the_detection_time_has_a_storm() {
        let mut dog = watchdog();
        let paused = PausedSet::of(&[3]);
        dog.on_pause(MS(0), 3);
        assert_eq!(dog.look(MS(0), paused), None, "nothing waits");
        dog.joins(3);
        dog.joins(3);
        assert_eq!(dog.look(MS(10), paused), Some((3, MS(210))));
        assert_eq!(dog.look(MS(20), paused), None, "the call is under way");
        // A departure begins the time anew.
        dog.leaves(3);
        assert_eq!(dog.look(MS(100), paused), None);
        assert!(dog.expects(MS(210), 3) && !dog.expects(MS(210), 2));
        assert_eq!(
            (dog.on_call(MS(210), 3), dog.look(MS(210), paused)),
            (Barks::No, Some((3, MS(300))))
        );
        assert_eq!((dog.on_call(MS(300), 3), dog.storms), (Barks::Storm, 1));
        assert!(dog.drops(3) && !dog.drops(2));
    }

    #[test]
    fn a_storm_is_over_when_no_frame_pauses_for_the_restoration_time() {
        let mut dog = watchdog();
        let none = PausedSet::default();
        dog.joins(3);
        dog.on_pause(MS(0), 3);
        dog.look(MS(0), PausedSet::of(&[3]));
        dog.on_call(MS(200), 3);
        assert_eq!(dog.look(MS(200), none), Some((3, MS(400))));
        dog.on_pause(MS(350), 3);
        assert_eq!(
            (dog.on_call(MS(400), 3), dog.look(MS(400), none)),
            (Barks::No, Some((3, MS(750))))
        );
        assert_eq!((dog.on_call(MS(750), 3), dog.has_storm(3)), (Barks::Over, false));
        assert_eq!(dog.look(MS(750), none), None);
    }

    #[test]
    fn a_pause_that_ends_in_time_is_no_storm() {
        let mut dog = watchdog();
        dog.joins(3);
        dog.on_pause(MS(0), 3);
        dog.look(MS(0), PausedSet::of(&[3]));
        dog.look(MS(199), PausedSet::default());
        dog.look(MS(199), PausedSet::of(&[3]));
        assert_eq!((dog.on_call(MS(200), 3), dog.storms), (Barks::No, 0));
    }
}
