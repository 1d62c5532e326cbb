//! Bytes that receiving applications have read, by class, at each multiple of a period.
//!
//! Invariant: a sample has all bytes that were read before its time, and no others, however late
//! the loop comes around.

use millpond_core::Time;
use millpond_sim::samples::Clock;

/// Samples of what has been read.
pub struct Goodput {
    clock: Clock,
    /// By class, since the beginning.
    read: Vec<u64>,
    samples: Vec<Vec<u64>>,
}

impl Goodput {
    /// Without a period it takes no samples.
    pub fn new(period: Option<Time>, classes: usize) -> Goodput {
        let clock = Clock::new(period, Time::ZERO);
        Goodput { clock, read: vec![0; classes], samples: Vec::new() }
    }

    /// Takes the samples that are due by `now`.
    fn settle(&mut self, now: Time) {
        while self.clock.due() <= now && self.clock.strikes(self.clock.due()) {
            self.samples.push(self.read.clone());
        }
    }

    /// Bytes of a class were read at `now`.
    pub fn add(&mut self, now: Time, class: u16, bytes: u64) {
        self.settle(now);
        self.read[usize::from(class)] += bytes;
    }

    /// All samples of a run that ends at `end`: of each, the bytes by class since the beginning.
    pub fn finish(&mut self, end: Time) -> Vec<Vec<u64>> {
        self.settle(end);
        std::mem::take(&mut self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_what_was_read_before_it() {
        let us = Time::from_us;
        let mut goodput = Goodput::new(Some(us(10)), 2);
        goodput.add(us(3), 0, 5);
        goodput.add(us(10), 1, 7);
        goodput.add(us(35), 0, 1);
        assert_eq!(goodput.finish(us(40)), [[5, 0], [5, 7], [5, 7], [6, 7]]);
        assert!(Goodput::new(None, 1).finish(us(40)).is_empty());
    }
}
