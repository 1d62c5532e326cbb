//! Events of the distant future: timers, most of which are taken back before they are due.
//!
//! A million connections that wait for a second each have one, and an estimator whose timeout
//! shrinks with every sample moves it with every ACK. They lie in spans of about a millisecond,
//! each a hash set, so that putting one in and taking it back cost the same however many there are;
//! a span is put in order only when its time comes.
//!
//! Invariant: what is here is later than every span that was taken.

use super::event::Event;
use millpond_core::Time;
use millpond_core::random::mix64;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// log2 of a span in picoseconds.
const SHIFT: u32 = 30;

/// Hashes events the same way on every machine.
#[derive(Default)]
pub struct EventHasher(u64);

impl Hasher for EventHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only times and keys are hashed");
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = mix64(self.0 ^ word);
    }
}

type Span = HashSet<Event, BuildHasherDefault<EventHasher>>;

#[derive(Default)]
pub struct Distant {
    /// By number, counted from time zero; none is empty.
    spans: BTreeMap<u64, Span>,
    /// The last span that is not kept here any more.
    horizon: u64,
}

impl Distant {
    /// Whether an event at this time belongs here.
    #[inline]
    pub fn covers(&self, at: Time) -> bool {
        at.as_ps() >> SHIFT > self.horizon
    }

    /// Puts in an event that belongs here. Returns whether it is new.
    pub fn insert(&mut self, event: Event) -> bool {
        self.spans.entry(event.0.as_ps() >> SHIFT).or_default().insert(event)
    }

    /// Takes an event back. Returns whether it was here.
    pub fn remove(&mut self, event: &Event) -> bool {
        let number = event.0.as_ps() >> SHIFT;
        let Some(span) = self.spans.get_mut(&number) else { return false };
        let was_here = span.remove(event);
        if span.is_empty() {
            self.spans.remove(&number);
        }
        was_here
    }

    /// Moves the horizon on to `until` at least, and gives `take` what it passes, in no order.
    #[inline]
    pub fn pass(&mut self, until: Time, mut take: impl FnMut(Event)) {
        let until = until.as_ps() >> SHIFT;
        if until <= self.horizon {
            return;
        }
        self.horizon = until;
        while let Some(first) = self.spans.first_entry().filter(|first| *first.key() <= until) {
            first.remove().into_iter().for_each(&mut take);
        }
    }

    /// Where the first span after the horizon begins.
    pub fn passed(&self) -> Time {
        Time::from_ps((self.horizon + 1).saturating_mul(1 << SHIFT))
    }

    /// Where the first span begins, if there is one.
    pub fn begins(&self) -> Option<Time> {
        self.spans.first_key_value().map(|(number, _)| Time::from_ps(number << SHIFT))
    }

    /// The time of the first event.
    #[allow(clippy::disallowed_methods)] // a minimum does not depend on the order
    pub fn first(&self) -> Option<Time> {
        self.spans.first_key_value().and_then(|(_, span)| span.iter().map(|event| event.0).min())
    }
}
