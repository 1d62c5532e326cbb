//! Exact statistics of a stream of values that may be too long for memory.
//!
//! [`Samples`] takes 64-bit integers (picoseconds, or the bits of a non-negative float, which sort
//! the same way). Up to a limit they stay in memory; beyond it they are spilled to a nameless
//! temporary file. Ranks are then found by refinement: each pass over the file counts one digit of
//! the values that share the digits found so far, so memory does not depend on how many values
//! there are or how they are spread, and ten million equal values cost no more than ten million
//! different ones.
//!
//! Invariant: an answer is that of sorting everything, and does not depend on the order in which
//! values came.

use std::path::PathBuf;

use crate::model::Result;
use crate::statistics::spill::Spill;

/// How many values stay in memory: 2 MB a collector.
const IN_MEMORY: usize = 1 << 18;
const DIGIT_BITS: u32 = 12;
const DIGITS: usize = 1 << DIGIT_BITS;

/// A fraction between 0 and 1 in units of 1/10 000: 9 990 is p999. Whole, so that ranks are exact.
pub type Quantile = u32;

/// The denominator of [`Quantile`].
pub const WHOLE: u64 = 10_000;

/// A value at a rank that may lie between two values: `below + (above − below) × part / WHOLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// The value at the rank rounded down.
    pub below: u64,
    /// The next one.
    pub above: u64,
    /// How far towards it.
    pub part: u64,
}

impl Between {
    /// The value, for integers. In units of `1 / scale`.
    pub fn interpolate(self, scale: f64) -> f64 {
        let whole = u128::from(WHOLE) * u128::from(self.below)
            + u128::from(self.above - self.below) * u128::from(self.part);
        whole as f64 / (WHOLE as f64 * scale)
    }

    /// The value, where the integers are the bits of floats.
    pub fn interpolate_bits(self) -> f64 {
        let (below, above) = (f64::from_bits(self.below), f64::from_bits(self.above));
        below + (above - below) * (self.part as f64 / WHOLE as f64)
    }
}

/// A stream of values and their exact statistics.
#[derive(Debug)]
pub struct Samples {
    values: Vec<u64>,
    limit: usize,
    spill: Spill<8>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Samples {
    /// A spill file, where one is needed, is made at `path`. It has no name for longer than an
    /// instant, so nothing is left however the process ends.
    pub fn new(path: PathBuf) -> Samples {
        Samples::with_limit(path, IN_MEMORY)
    }

    /// As [`Samples::new`], keeping at most `limit` values in memory.
    pub fn with_limit(path: PathBuf, limit: usize) -> Samples {
        Samples {
            values: Vec::new(),
            limit: limit.max(1),
            spill: Spill::new(path),
            count: 0,
            sum: 0,
            max: 0,
        }
    }

    /// Adds a value. A full buffer spills to a file.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the spill file cannot be written.
    pub fn push(&mut self, value: u64) -> Result<()> {
        if self.values.len() == self.limit {
            self.spill()?;
        }
        self.values.push(value);
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
        Ok(())
    }

    /// Adds a non-negative finite float as its bits. Ignores any other value.
    ///
    /// # Errors
    /// As [`Samples::push`].
    pub fn push_float(&mut self, value: f64) -> Result<()> {
        // A negative zero would sort last.
        if value >= 0.0 && value.is_finite() { self.push((value + 0.0).to_bits()) } else { Ok(()) }
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact sum of the samples.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The largest; `None` of nothing.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns the values at `quantiles`: rank `q × (n − 1)`, between two values where it is not
    /// whole. Returns `None` if there are no values.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the spill file cannot be read.
    pub fn quantiles(&mut self, quantiles: &[Quantile]) -> Result<Option<Vec<Between>>> {
        let Some(last) = self.count.checked_sub(1) else { return Ok(None) };
        let places: Vec<(u64, u64)> = quantiles.iter().map(|&q| place(q, last)).collect();
        let mut ranks: Vec<u64> =
            places.iter().flat_map(|&(r, _)| [r, (r + 1).min(last)]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let found = self.at_ranks(&ranks)?;
        let value = |rank: u64| ranks.binary_search(&rank).map_or(0, |at| found[at]);
        let between = |&(r, part): &(u64, u64)| Between {
            below: value(r),
            above: value((r + 1).min(last)),
            part,
        };
        Ok(Some(places.iter().map(between).collect()))
    }

    /// The values at whole ranks, which must be below the count and sorted.
    pub(crate) fn at_ranks(&mut self, ranks: &[u64]) -> Result<Vec<u64>> {
        self.values.sort_unstable();
        if self.spill.is_empty() {
            return Ok(ranks.iter().map(|&r| self.values[r as usize]).collect());
        }
        let significant = u64::BITS - self.max.leading_zeros();
        let mut shift = significant.next_multiple_of(DIGIT_BITS);
        // Per rank: the digits found so far, and the rank among the values that share them.
        let mut targets: Vec<(u64, u64)> = ranks.iter().map(|&r| (0, r)).collect();
        while shift > 0 {
            shift -= DIGIT_BITS;
            let mut prefixes: Vec<u64> = targets.iter().map(|&(prefix, _)| prefix).collect();
            prefixes.dedup();
            let counts = self.count_digits(&prefixes, shift)?;
            for (prefix, rank) in &mut targets {
                let at = prefixes.binary_search(prefix).unwrap_or(0);
                let mut digit = 0;
                for &n in &counts[at * DIGITS..(at + 1) * DIGITS] {
                    if *rank < n {
                        break;
                    }
                    *rank -= n;
                    digit += 1;
                }
                *prefix = *prefix << DIGIT_BITS | digit;
            }
        }
        Ok(targets.iter().map(|&(value, _)| value).collect())
    }

    /// How many values are at most each of the sorted `limits`.
    pub(crate) fn counts_to(&mut self, limits: &[u64]) -> Result<Vec<u64>> {
        let mut counts = vec![0u64; limits.len() + 1];
        self.each(|value| counts[limits.partition_point(|&limit| limit < value)] += 1)?;
        counts.pop();
        let mut sum = 0;
        counts.iter_mut().for_each(|count| {
            sum += *count;
            *count = sum;
        });
        Ok(counts)
    }

    /// For each of the sorted prefixes, how often each digit at `shift` follows it.
    fn count_digits(&mut self, prefixes: &[u64], shift: u32) -> Result<Vec<u64>> {
        let mut counts = vec![0u64; prefixes.len() * DIGITS];
        self.each(|value| {
            let prefix = value.checked_shr(shift + DIGIT_BITS).unwrap_or(0);
            if let Ok(at) = prefixes.binary_search(&prefix) {
                counts[at * DIGITS + (value >> shift) as usize % DIGITS] += 1;
            }
        })?;
        Ok(counts)
    }

    /// Every value once, in no order.
    fn each(&mut self, mut visit: impl FnMut(u64)) -> Result<()> {
        self.values.iter().for_each(|&value| visit(value));
        self.spill.each(|&bytes| visit(u64::from_le_bytes(bytes)))
    }

    fn spill(&mut self) -> Result<()> {
        self.spill.append(self.values.iter().map(|value| value.to_le_bytes()))?;
        self.values.clear();
        Ok(())
    }
}

/// Where a quantile lies among values of ranks 0 to `last`: a whole rank, and the part of the way
/// to the next one.
pub(crate) fn place(quantile: Quantile, last: u64) -> (u64, u64) {
    let rank = u128::from(quantile).min(WHOLE.into()) * u128::from(last);
    ((rank / u128::from(WHOLE)) as u64, (rank % u128::from(WHOLE)) as u64)
}

/// Jain's fairness index of what each party got: 1 if all got the same, 1/n if one got everything.
/// `None` of nothing, or if nobody got anything. The caller fixes the order, which decides the last
/// bit.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    let index = sum * sum / (shares.len() as f64 * squares);
    index.is_finite().then_some(index)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::test_dir;

    /// The answer of sorting everything.
    fn sorted_answer(values: &[u64], q: Quantile) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let rank = f64::from(q) / WHOLE as f64 * (sorted.len() - 1) as f64;
        let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
        below as f64 + (above - below) as f64 * (rank - rank.floor())
    }

    const SOME: [Quantile; 7] = [0, 1, 2_500, 5_000, 9_900, 9_990, 10_000];

    fn check(values: &[u64], limit: usize) {
        let dir = test_dir("samples");
        let mut samples = Samples::with_limit(dir.join("spill"), limit);
        values.iter().for_each(|&v| samples.push(v).unwrap());
        let found = samples.quantiles(&SOME).unwrap().unwrap();
        for (between, q) in found.iter().zip(SOME) {
            let (got, expected) = (between.interpolate(1.0), sorted_answer(values, q));
            assert!((got - expected).abs() <= expected * 1e-9, "{q}: {got} is not {expected}");
        }
        let limits = [0, 7, 25, 1 << 40, u64::MAX];
        let counts = limits.map(|limit| values.iter().filter(|&&v| v <= limit).count() as u64);
        assert_eq!(samples.counts_to(&limits).unwrap(), counts);
        assert_eq!(samples.max(), values.iter().copied().max());
        assert_eq!(samples.sum(), values.iter().map(|&v| u128::from(v)).sum::<u128>());
        assert_eq!(fs::read_dir(&*dir).unwrap().count(), 0, "a spill file is left");
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 200,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn equals_sorting_everything(
            values in prop::collection::vec(
                prop_oneof![any::<u64>(), 0..50u64, Just(7u64), (1u64 << 40)..(1 << 41)],
                1..400,
            ),
            limit in 1..500usize,
        ) {
            check(&values, limit);
        }

        #[test]
        fn order_does_not_matter(mut values in prop::collection::vec(any::<u64>(), 1..300)) {
            let dir = test_dir("order");
            let mut answers = Vec::new();
            for _ in 0..2 {
                let mut samples = Samples::with_limit(dir.join("spill"), 16);
                values.iter().for_each(|&v| samples.push(v).unwrap());
                answers.push((samples.sum(), samples.quantiles(&SOME).unwrap()));
                values.reverse();
            }
            prop_assert_eq!(&answers[0], &answers[1]);
        }
    }

    #[test]
    fn a_spike_of_equal_values_stays_flat() {
        let mut values = vec![123_456_789_012u64; 300_000];
        values.extend(0..1_000);
        check(&values, 1_000);
    }

    #[test]
    fn nothing_has_no_statistics() {
        let mut samples = Samples::new(PathBuf::from("unused"));
        assert_eq!(samples.quantiles(&SOME).unwrap(), None);
        assert_eq!(samples.max(), None);
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn floats_sort_as_their_bits() {
        let mut samples = Samples::new(PathBuf::from("unused"));
        for x in [2.5, -0.0, 1e-300, 1.0, f64::NAN, f64::INFINITY, -1.0] {
            samples.push_float(x).unwrap();
        }
        let found = samples.quantiles(&[0, 5_000, 10_000]).unwrap().unwrap();
        let found: Vec<_> = found.into_iter().map(Between::interpolate_bits).collect();
        assert_eq!(found, [0.0, (1e-300 + 1.0) / 2.0, 2.5]);
    }

    #[test]
    fn jain_is_one_for_equals_and_one_nth_for_a_monopoly() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[0.0, 8.0, 0.0, 0.0]), Some(0.25));
    }
}
