//! Counts of a run: flows, bytes, lateness and errors.
//!
//! Invariant: counts are of the whole run, but for what is measured, which begins after the
//! warm-up.

use millpond_core::{FlowId, Time};
use std::collections::BTreeMap;
use std::io;

/// Sums over a run.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Flows and calls that have started.
    pub started: u64,
    /// Flows and calls that are complete.
    pub completed: u64,
    /// Flows and calls that an error has ended.
    pub failed: u64,
    /// Bytes that receiving applications have read after the warm-up; probes do not count.
    pub bytes_measured: u64,
    /// The same by (sending host, receiving host), for Jain's index. Pairs that had something to
    /// send and delivered nothing have zero.
    pub pairs: BTreeMap<(u32, u32), u64>,
    /// How late flows have started.
    pub lateness: Lateness,
    /// Errors of single connections, by kind.
    pub errors: BTreeMap<String, Failure>,
    /// Segments sent again, of all sockets.
    pub retransmitted: u64,
    /// Expiries of retransmission timers, of all sockets.
    pub timeouts: u64,
    /// Data packets that arrived before an earlier one, of all sockets.
    pub out_of_order: u64,
    /// Flows whose last acknowledgement had no time stamp; their `sender_last` is up to 50 ms late.
    pub unstamped: u64,
    /// Dependent flows that wait for flows which were not delivered.
    pub waiting: Vec<FlowId>,
    /// Dependent flows whose start would have been after their stop or the end.
    pub late: Vec<FlowId>,
    /// When the run ended.
    pub ended: Time,
    /// Whether somebody stopped it before its end.
    pub interrupted: bool,
}

/// Errors of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How many.
    pub count: u64,
    /// The first one: which flow, and what happened.
    pub first: String,
}

impl Counts {
    pub(super) fn fail(&mut self, error: &io::Error, what: impl FnOnce() -> String) {
        let kind = error.kind().to_string();
        let first = || Failure { count: 0, first: format!("{}: {error}", what()) };
        self.errors.entry(kind).or_insert_with(first).count += 1;
    }
}

/// Buckets that a power of two is divided into.
const PARTS: u32 = 32;
/// Powers of two from 32 ns on; the last bucket holds all beyond.
const POWERS: u32 = 40;

/// A histogram of delays from a flow's scheduled start to its `connect`, exact to 1/32.
#[derive(Clone, Debug)]
pub struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    max: Time,
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
    pub(super) fn add(&mut self, late: Time) {
        self.buckets[bucket(late.as_ps() / 1000)] += 1;
        self.count += 1;
        self.max = self.max.max(late);
    }

    /// How many starts there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest delay.
    pub fn max(&self) -> Time {
        self.max
    }

    /// The delay that this share (from 0 to 1) of the starts does not exceed, rounded up by 1/32 at
    /// most; zero if nothing started.
    pub fn quantile(&self, share: f64) -> Time {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let found = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        });
        found.map_or(Time::ZERO, |at| Time::from_ns(upper(at)).min(self.max))
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
