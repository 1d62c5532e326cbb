//! The probes that were sent over one path: an answer counts only if it names one of them.
//!
//! Invariant: the memory is bounded; an answer from outside moves no counter beyond what was sent.

use millpond_core::Time;
use std::collections::VecDeque;

/// Probes that are remembered. The shortest interval is 1 ms, with a padded probe in each: an
/// answer may take a second.
const REMEMBERED: usize = 2048;

/// Probes in the order in which they were sent: when, in ns, and how long each datagram is.
#[derive(Debug, Default)]
pub struct Sent(VecDeque<(u64, u16)>);

impl Sent {
    /// Notes a probe of `length` bytes, which is newer than all before.
    pub fn note(&mut self, at: Time, length: u16) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((at.as_ps() / 1000, length));
    }

    /// Returns the length of the probe that was sent then, in bytes; `None`: none was.
    pub fn length(&self, at: Time) -> Option<u16> {
        let found = self.0.binary_search_by_key(&(at.as_ps() / 1000), |(at, _)| *at).ok()?;
        self.0.get(found).map(|(_, length)| *length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_newest_probes_alone() {
        let mut sent = Sent::default();
        let last = REMEMBERED as u64 + 10;
        (1..=last).for_each(|ms| sent.note(Time::from_ms(ms), ms as u16));
        assert_eq!(sent.length(Time::from_ms(last)), Some(last as u16));
        assert_eq!(sent.length(Time::from_ms(last) + Time::from_ns(1)), None);
        assert_eq!(
            (sent.length(Time::from_ms(10)), sent.length(Time::from_ms(11))),
            (None, Some(11))
        );
        assert_eq!(sent.length(Time::MAX), None);
    }
}
