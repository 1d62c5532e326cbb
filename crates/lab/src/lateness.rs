//! Delays against a schedule, in a histogram of fixed size.
//!
//! Invariant: a quantile is at most 1/32 above the true one, and never below it.

use millpond_core::Time;

/// Quantiles of a histogram of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    pub count: u64,
    pub p50: Time,
    /// 99 of 100 are below.
    pub p99: Time,
    /// None is above.
    pub max: Time,
}

/// Buckets that a power of two is divided into.
const PARTS: u32 = 32;
/// Powers of two from 32 ns on; the last bucket holds all beyond.
const POWERS: u32 = 40;

/// A histogram of delays, exact to 1/32.
#[derive(Clone)]
pub struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    max: Time,
}

impl std::fmt::Debug for Lateness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.quantiles().fmt(f)
    }
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { buckets: vec![0; (PARTS * POWERS) as usize], count: 0, max: Time::ZERO }
    }
}

/// The bucket of a delay in nanoseconds.
fn bucket(ns: u64) -> usize {
    let power = ns.max(1).ilog2().max(PARTS.ilog2()) - PARTS.ilog2();
    let at = u64::from(power * PARTS) + (ns >> power);
    at.min(u64::from(PARTS * POWERS - 1)) as usize
}

/// The largest delay of a bucket, in nanoseconds.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let (parts, at) = (u64::from(PARTS), bucket);
    let power = (at / parts).saturating_sub(1);
    let mantissa = at - power * parts;
    ((mantissa + 1) << power) - 1
}

impl Lateness {
    pub fn add(&mut self, late: Time) {
        self.buckets[bucket(late.as_ps() / 1000)] += 1;
        self.count += 1;
        self.max = self.max.max(late);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn max(&self) -> Time {
        self.max
    }

    /// The delay that this share (from 0 to 1) of all does not exceed, rounded up by 1/32 at most;
    /// zero if there were none.
    pub fn quantile(&self, share: f64) -> Time {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let found = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        });
        found.map_or(Time::ZERO, |at| Time::from_ns(upper(at)).min(self.max))
    }

    /// Median, 99th percentile and maximum.
    pub fn quantiles(&self) -> Quantiles {
        let (p50, p99) = (self.quantile(0.5), self.quantile(0.99));
        Quantiles { count: self.count, p50, p99, max: self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_delays_that_differ_by_a_thirty_second_at_most() {
        let mut last = 0;
        for ns in (0..5_000).chain([123_456, 10_000_000, 3_000_000_000]) {
            let at = bucket(ns);
            assert!(at >= last && upper(at) >= ns, "{ns}: {at}, {}", upper(at));
            assert!((upper(at) - ns) * 32 <= ns.max(32), "{ns}: {at}, {}", upper(at));
            last = at;
        }
    }

    #[test]
    fn quantiles_are_those_of_the_delays() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.5), Time::ZERO);
        (1..=1000).for_each(|us| lateness.add(Time::from_us(us)));
        let within = |share, us: f64| {
            let ratio = lateness.quantile(share).as_us_f64() / us;
            assert!((1.0..1.04).contains(&ratio), "{share}: {ratio}");
        };
        within(0.5, 500.0);
        within(0.99, 990.0);
        assert_eq!(lateness.quantile(1.0), lateness.max());
        assert_eq!((lateness.max(), lateness.count()), (Time::from_ms(1), 1000));
    }
}
