//! 95 % intervals of a mean over seeds, by the bootstrap.
//!
//! The means of resamples drawn with replacement show how far the mean of so many seeds strays; the
//! interval is cut from them at two percentiles (Efron, Tibshirani: "An Introduction to the
//! Bootstrap", 1993, chapter 13). The plain 2.5 and 97.5 are too narrow for few seeds, so the
//! percentiles are *expanded* as Hesterberg proposes (The American Statistician 69(4), 2015, pages
//! 371 to 386): the tail is Φ(−√(n/(n−1)) · t(0.025, n−1)),
//! which for normal data gives the width of Student's interval and keeps the bootstrap's shape for
//! skewed data. Differences between variants are paired first, seed by seed, and their mean is
//! resampled like any other.
//!
//! No resample leaves the range of its data, and the whole range of n values misses the middle of
//! their distribution one time in 2^(n−1). So below [`FEW`] seeds no interval of this kind holds 95
//! %: it is the range. Values that are the same in every seed have no spread that could be
//! measured. So each interval has its [`IntervalKind`].
//!
//! Invariant: an interval depends on the values and their order alone. The draws come from a
//! [`Stream`] of a fixed name.

use std::collections::BTreeMap;

use millpond_core::random::Stream;

use crate::model::{FEW, Interval, IntervalKind};

/// Resamples of an interval, for as many seeds as [`DRAWS`] allows.
const RESAMPLES: usize = 10_000;
/// Resamples of a number that is worked out anew for each.
const RESAMPLES_OF_NUMBERS: usize = 1_000;
/// Draws of an interval at most: beyond 100 seeds there are fewer resamples (1,000 for 1,000
/// seeds).
const DRAWS: usize = 1_000_000;
/// Beyond so many seeds the bootstrap's distribution of a mean is the normal one, which is then
/// taken itself.
const NORMAL_FROM: usize = 1_000;
/// The 97.5th percentile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Intervals that are kept for values that come again, as those of a class without open flows do.
const KEPT: usize = 1 << 10;

/// Gives intervals; keeps the draws for each number of seeds, which serve all statistics.
#[derive(Debug, Default)]
pub struct Resampler {
    draws: BTreeMap<usize, Vec<u16>>,
    means: Vec<f64>,
    kept: BTreeMap<Vec<u64>, [f64; 2]>,
}

impl Resampler {
    /// A resampler that has drawn no sample yet.
    pub fn new() -> Resampler {
        Resampler::default()
    }

    /// The interval of the mean of `values`; `None` for fewer than two, which have no
    /// spread.
    pub fn interval(&mut self, values: &[f64]) -> Option<Interval> {
        let n = values.len();
        let first = *values.first()?;
        if n < 2 {
            return None;
        }
        let (ends, kind) = if values.iter().all(|value| *value == first) {
            ([first, first], IntervalKind::Identical)
        } else if n < FEW {
            (range(values), IntervalKind::Range)
        } else if n > NORMAL_FROM {
            (normal(values), IntervalKind::Normal95)
        } else {
            (self.bootstrap(values), IntervalKind::Bootstrap95)
        };
        Some(Interval { ends, kind })
    }

    fn bootstrap(&mut self, values: &[f64]) -> [f64; 2] {
        let key: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        if let Some(ends) = self.kept.get(&key) {
            return *ends;
        }
        self.resample(values);
        let tail = tail(values.len());
        let ends = [quantile(&mut self.means, tail), quantile(&mut self.means, 1.0 - tail)];
        if self.kept.len() == KEPT {
            self.kept.clear();
        }
        self.kept.insert(key, ends);
        ends
    }

    /// The interval of a relative change: of the mean of the second numbers over that of the first
    /// ones, less one. `None` for fewer than two pairs.
    ///
    /// It is made of the resamples that [`Resampler::interval`] gives the differences, so it
    /// excludes zero where their interval does. Where a first number is not above zero, a resample
    /// may have no ratio: then it is that interval over the mean of the first numbers, and −1 is
    /// its least.
    pub(crate) fn relative(&mut self, pairs: &[(f64, f64)]) -> Option<[f64; 2]> {
        let n = pairs.len();
        let differences: Vec<f64> = pairs.iter().map(|(first, second)| second - first).collect();
        let Interval { ends, kind } = self.interval(&differences)?;
        let has_ratios = pairs.iter().all(|&(first, second)| first > 0.0 && second >= 0.0);
        match kind {
            IntervalKind::Range if has_ratios => {
                let each = pairs.iter().map(|(first, second)| second / first - 1.0);
                return Some(range(&each.collect::<Vec<f64>>()));
            }
            IntervalKind::Bootstrap95 if has_ratios => {}
            _ => {
                let base = pairs.iter().map(|(first, _)| first).sum::<f64>() / n as f64;
                let [low, high] = ends.map(|end| end / base);
                // Of a negative number the lower end is the larger share.
                return Some([low.min(high).max(-1.0), low.max(high)]);
            }
        }
        let ratio = |of: &[u16]| {
            let add = |(first, second): (f64, f64), &at: &u16| {
                let pair = pairs[usize::from(at)];
                (first + pair.0, second + pair.1)
            };
            let (first, second) = of.iter().fold((0.0, 0.0), add);
            second / first - 1.0
        };
        self.means.clear();
        self.means.extend(draws(&mut self.draws, n).chunks_exact(n).map(ratio));
        let tail = tail(n);
        Some([quantile(&mut self.means, tail), quantile(&mut self.means, 1.0 - tail)])
    }

    /// Fills `means` with those of the resamples.
    fn resample(&mut self, values: &[f64]) {
        let n = values.len();
        let draws = draws(&mut self.draws, n);
        self.means.clear();
        let mean =
            |of: &[u16]| of.iter().map(|&at| values[usize::from(at)]).sum::<f64>() / n as f64;
        self.means.extend(draws.chunks_exact(n).map(mean));
    }
}

/// The places of the drawn seeds, resample by resample, for `n` seeds.
fn draws(kept: &mut BTreeMap<usize, Vec<u16>>, n: usize) -> &[u16] {
    kept.entry(n).or_insert_with(|| {
        let mut stream = Stream::new(n as u64, "results/bootstrap");
        (0..n * RESAMPLES.min(DRAWS / n)).map(|_| stream.below(n as u64) as u16).collect()
    })
}

/// The interval of a number that is worked out anew for each resample of `n` seeds, as a ratio of
/// means or a median is. `number` gets the places of the drawn seeds, and gives nothing where the
/// resample has no number.
///
/// Below [`FEW`] seeds it is the range over the seeds, each alone (drawn `n` times). `None` for
/// fewer than two seeds or numbers.
pub fn of_resamples(n: usize, number: impl Fn(&[usize]) -> Option<f64>) -> Option<Interval> {
    if n < 2 {
        return None;
    }
    let each: Vec<f64> = (0..n).filter_map(|seed| number(&vec![seed; n])).collect();
    let first = *each.first().filter(|_| each.len() > 1)?;
    if each.iter().all(|value| *value == first) {
        return Some(Interval { ends: [first, first], kind: IntervalKind::Identical });
    }
    if n < FEW {
        return Some(Interval { ends: range(&each), kind: IntervalKind::Range });
    }
    let mut stream = Stream::new(n as u64, "results/bootstrap-of-numbers");
    let mut draw = || (0..n).map(|_| stream.below(n as u64) as usize).collect::<Vec<usize>>();
    let mut numbers: Vec<f64> = (0..RESAMPLES_OF_NUMBERS).filter_map(|_| number(&draw())).collect();
    if numbers.is_empty() {
        return None;
    }
    let tail = tail(n);
    let ends = [quantile(&mut numbers, tail), quantile(&mut numbers, 1.0 - tail)];
    Some(Interval { ends, kind: IntervalKind::Bootstrap95 })
}

/// The share of resamples to cut off at each end.
fn tail(n: usize) -> f64 {
    let n = n as f64;
    let at = (n / (n - 1.0)).sqrt() * student(n - 1.0);
    0.5 * libm::erfc(at * std::f64::consts::FRAC_1_SQRT_2)
}

/// The 97.5th percentile of Student's distribution: Abramowitz and Stegun 26.7.5 from five degrees
/// of freedom on.
fn student(freedom: f64) -> f64 {
    const FIRST: [f64; 4] = [12.706_204_736, 4.302_652_730, 3.182_446_305, 2.776_445_105];
    if freedom < 4.5 {
        return FIRST[(freedom as usize).clamp(1, 4) - 1];
    }
    let z2 = Z * Z;
    let terms = [
        Z * (z2 + 1.0) / 4.0,
        Z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0,
        Z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0,
        Z * ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92_160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + Z
}

/// Interpolated between ranks, as all percentiles of the results.
fn quantile(values: &mut [f64], q: f64) -> f64 {
    let rank = q.clamp(0.0, 1.0) * (values.len() - 1) as f64;
    let low = rank as usize;
    let (_, &mut at, above) = values.select_nth_unstable_by(low, f64::total_cmp);
    let next = above.iter().copied().min_by(f64::total_cmp).unwrap_or(at);
    at + (next - at) * (rank - low as f64)
}

fn range(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &value| {
        [low.min(value), high.max(value)]
    })
}

fn normal(values: &[f64]) -> [f64; 2] {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    let half = Z * (squares / (n - 1.0) / n).sqrt();
    [mean - half, mean + half]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::interval::excludes_zero;

    fn gaussian(stream: &mut Stream) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
        radius * libm::cos(std::f64::consts::TAU * stream.unit())
    }

    #[test]
    fn students_percentiles_are_the_tables() {
        for (freedom, expected) in
            [(1.0, 12.706), (4.0, 2.776), (5.0, 2.571), (9.0, 2.262), (30.0, 2.042), (1e9, 1.96)]
        {
            assert!((student(freedom) - expected).abs() < 1e-3, "{freedom}: {}", student(freedom));
        }
    }

    /// Worked out from tables of t and Φ: n = 10 has t = 2.262 · √(10/9) = 2.385, and Φ(−2.385) =
    /// 0.0086.
    #[test]
    fn tails_shrink_for_few_seeds() {
        assert!((tail(5) - 0.00095).abs() < 2e-5, "{}", tail(5));
        assert!((tail(10) - 0.0086).abs() < 2e-4, "{}", tail(10));
        assert!((tail(20) - 0.0159).abs() < 2e-4, "{}", tail(20));
        assert!((tail(1000) - 0.025).abs() < 2e-4);
    }

    #[test]
    fn a_relative_change_agrees_in_sign_and_is_not_below_minus_one() {
        let mut resampler = Resampler::new();
        // One seed has almost all of it: the difference's interval over the mean is below −100 %.
        let skewed = [(1.0, 0.9), (1.2, 1.0), (9.0, 1.1), (0.8, 1.0), (1.1, 1.2), (1.0, 0.9)];
        let [low, high] = resampler.relative(&skewed).unwrap();
        assert!(-1.0 < low && low < -0.5 && 0.0 < high && high < 0.2, "{low} {high}");
        let clear = [(10.0, 4.0), (12.0, 5.0), (9.0, 4.0), (11.0, 5.0), (10.0, 5.0), (13.0, 5.0)];
        let [low, high] = resampler.relative(&clear).unwrap();
        assert!(-0.65 < low && low < high && high < -0.5, "{low} {high}");
        let few = resampler.relative(&clear[..2]).unwrap();
        assert_eq!(few.map(|end| (end * 1e3).round()), [-600.0, -583.0]);
        let zeros = [(0.0, 0.0), (0.0, 1.0), (9.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)];
        let [low, high] = resampler.relative(&zeros).unwrap();
        assert!(low == -1.0 && high > 0.0 && high.is_finite(), "{low} {high}");
        assert_eq!(resampler.relative(&clear[..1]), None);
    }

    /// The treated mice of Efron and Tibshirani, table 2.1: mean 86.86 and, for endless resamples,
    /// a standard error of its mean of 23.36.
    #[test]
    fn the_mice_of_the_book() {
        let mice = [94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0];
        let mut resampler = Resampler::new();
        resampler.resample(&mice);
        let n = resampler.means.len() as f64;
        let mean = resampler.means.iter().sum::<f64>() / n;
        let error =
            (resampler.means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / n).sqrt();
        assert!((mean - 86.86).abs() < 0.7, "{mean}");
        assert!((error - 23.36).abs() < 0.4, "{error}");
    }

    /// Against all 6^6 resamples there are.
    #[test]
    fn it_agrees_with_the_exact_bootstrap() {
        let values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        let mut all: Vec<f64> = (0..6usize.pow(6))
            .map(|code| {
                (0..6u32).map(|digit| values[code / 6usize.pow(digit) % 6]).sum::<f64>() / 6.0
            })
            .collect();
        let exact = [quantile(&mut all, tail(6)), quantile(&mut all, 1.0 - tail(6))];
        let Interval { ends: found, kind } = Resampler::new().interval(&values).unwrap();
        assert_eq!(kind, IntervalKind::Bootstrap95);
        assert!(
            (found[0] - exact[0]).abs() < 0.25 && (found[1] - exact[1]).abs() < 1.0,
            "{found:?} {exact:?}"
        );
    }

    #[test]
    fn it_covers_the_mean_95_times_in_100() {
        let mut stream = Stream::new(1, "test/coverage");
        let mut resampler = Resampler::new();
        for n in [8, 20] {
            let trials = 1_000;
            let mut covered = 0;
            for _ in 0..trials {
                let values: Vec<f64> = (0..n).map(|_| 5.0 + gaussian(&mut stream)).collect();
                let [low, high] = resampler.interval(&values).unwrap().ends;
                covered += usize::from(low <= 5.0 && 5.0 <= high);
            }
            let share = covered as f64 / trials as f64;
            assert!((0.925..0.97).contains(&share), "n = {n}: {share}");
        }
    }

    #[test]
    fn a_ratio_of_means_has_the_interval_of_its_resamples() {
        let (a, b) = ([2.0, 4.0, 6.0, 8.0, 10.0, 12.0], [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
        let ratio = |drawn: &[usize]| {
            let sum = |of: &[f64]| drawn.iter().map(|&at| of[at]).sum::<f64>();
            Some(sum(&a) / sum(&b))
        };
        let Interval { ends: [low, high], kind } = of_resamples(6, ratio).unwrap();
        assert_eq!(kind, IntervalKind::Bootstrap95);
        assert!(2.0 < low && low < 3.5 && 3.5 < high && high <= 4.0, "{low} to {high} about 3.5");
        assert_eq!(of_resamples(6, ratio), of_resamples(6, ratio));
        let few = of_resamples(3, ratio).unwrap();
        assert_eq!((few.ends, few.kind), ([2.0, 4.0], IntervalKind::Range));
        assert_eq!(of_resamples(9, |_| Some(1.0)).unwrap().kind, IntervalKind::Identical);
        assert_eq!((of_resamples(1, ratio), of_resamples(6, |_| None)), (None, None));
    }

    #[test]
    fn few_seeds_give_their_range_and_one_gives_nothing() {
        let mut resampler = Resampler::new();
        assert_eq!(resampler.interval(&[]), None);
        assert_eq!(resampler.interval(&[3.0]), None);
        let mut of =
            |values: &[f64]| resampler.interval(values).map(|found| (found.ends, found.kind));
        assert_eq!(of(&[3.0, 3.0, 3.0]), Some(([3.0, 3.0], IntervalKind::Identical)));
        assert_eq!(of(&[3.0; 9]), Some(([3.0, 3.0], IntervalKind::Identical)));
        assert_eq!(of(&[5.0, 3.0]), Some(([3.0, 5.0], IntervalKind::Range)));
        assert_eq!(of(&[5.0, 3.0, 4.0]), Some(([3.0, 5.0], IntervalKind::Range)));
        assert_eq!(of(&[5.0, 3.0, 4.0, 4.5]), Some(([3.0, 5.0], IntervalKind::Range)));
        assert_eq!(of(&[-1.0, 5.0, 5.0, 5.0, 5.0]), Some(([-1.0, 5.0], IntervalKind::Range)));
        assert!(excludes_zero([1.0, 2.0]) && excludes_zero([-2.0, -1.0]));
        assert!(
            !excludes_zero([-1.0, 1.0]) && !excludes_zero([0.0, 0.0]) && !excludes_zero([0.0, 2.0])
        );
    }

    #[test]
    fn large_samples_are_normal_and_the_same_values_give_the_same_bytes() {
        let mut stream = Stream::new(2, "test/large");
        let values: Vec<f64> = (0..1_001).map(|_| gaussian(&mut stream)).collect();
        let of = |values: &[f64]| Resampler::new().interval(values).unwrap();
        let ([low, high], [b_low, b_high]) = (of(&values).ends, of(&values[..1_000]).ends);
        assert_eq!(
            (of(&values).kind, of(&values[..1_000]).kind),
            (IntervalKind::Normal95, IntervalKind::Bootstrap95)
        );
        assert!((low - b_low).abs() < 0.012 && (high - b_high).abs() < 0.012);
        let mut used = Resampler::new();
        let _ = used.interval(&values[..7]);
        let _ = used.interval(&values[..9]);
        assert_eq!(used.interval(&values[..7]), Resampler::new().interval(&values[..7]));
    }
}
