//! How late packets leave against their schedule: a histogram of fixed size.
//!
//! Invariant: a quantile is at most 1/16 above the true one, and never below it.

use millpond_core::Time;

/// Buckets an octave.
const STEPS: u32 = 16;
/// Octaves of nanoseconds: up to a minute and more.
const OCTAVES: u32 = 40;

/// Delays, counted by size.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    total: u64,
    max: Time,
}

/// What a histogram says of its delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// How many.
    pub count: u64,
    /// Half are below.
    pub p50: Time,
    /// 99 of 100 are below.
    pub p99: Time,
    /// None is above.
    pub max: Time,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { counts: vec![0; (STEPS * OCTAVES) as usize], total: 0, max: Time::ZERO }
    }
}

/// The bucket of a delay: linear below 16 ns, then 16 an octave.
fn bucket(ns: u64) -> usize {
    let octave = (ns | u64::from(STEPS - 1)).ilog2() - (STEPS.ilog2() - 1);
    let step = if octave <= 1 { ns } else { ns >> (octave - 1) };
    let at = if octave <= 1 { step } else { u64::from((octave - 1) * STEPS) + step };
    (at as usize).min((STEPS * OCTAVES) as usize - 1)
}

/// The largest delay of a bucket in nanoseconds.
fn top(bucket: usize) -> u64 {
    let (octave, step) = (bucket as u64 / u64::from(STEPS), bucket as u64 % u64::from(STEPS));
    match octave {
        0 => step,
        _ => ((u64::from(STEPS) + step + 1) << (octave - 1)) - 1,
    }
}

impl Lateness {
    /// Counts a delay.
    #[inline]
    pub fn add(&mut self, delay: Time) {
        self.counts[bucket(delay.as_ps() / 1000)] += 1;
        self.total += 1;
        self.max = self.max.max(delay);
    }

    fn quantile(&self, per_mille: u64) -> Time {
        let rank = (self.total * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Time::from_ns(top(at)).min(self.max);
            }
        }
        self.max
    }

    /// Median, 99th percentile and maximum.
    pub fn quantiles(&self) -> Quantiles {
        let (p50, p99) = (self.quantile(500), self.quantile(990));
        Quantiles { count: self.total, p50, p99, max: self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_meet_without_gap_or_overlap() {
        for at in 0..(STEPS * OCTAVES) as usize - 1 {
            assert_eq!((bucket(top(at)), bucket(top(at) + 1)), (at, at + 1));
        }
    }

    proptest! {
        #[test]
        fn a_quantile_is_no_less_than_the_true_one_and_a_sixteenth_more_at_most(
            mut delays in proptest::collection::vec(0u64..10_000_000_000, 1..500),
        ) {
            let mut lateness = Lateness::default();
            delays.iter().for_each(|ns| lateness.add(Time::from_ns(*ns)));
            delays.sort_unstable();
            let q = lateness.quantiles();
            for (told, rank) in [(q.p50, 500), (q.p99, 990)] {
                let exact = delays[(delays.len() * rank).div_ceil(1000).max(1) - 1];
                let told = told.as_ps() / 1000;
                prop_assert!(told >= exact && told <= exact + exact / 16 + 1, "{told} {exact}");
            }
            prop_assert_eq!(q.max, Time::from_ns(*delays.last().unwrap()));
        }
    }
}
