//! Goodput over time: what each class had delivered at each sample, as rates between samples.
//!
//! Invariant: rates times the period add up to what was delivered at the last sample.

use millpond_core::Time;
use serde::{Deserialize, Serialize};

use crate::ordered::Ordered;

/// Goodput of each class that delivered anything, over the whole run, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GoodputOverTime {
    /// Time from one sample to the next, in microseconds: number n is of the time from n to n + 1 periods.
    pub period_us: f64,
    /// Application bytes delivered in order, in Gb/s, by class.
    pub gbps: Ordered<Vec<f64>>,
}

impl GoodputOverTime {
    /// Of the bytes that each class had delivered after 1, 2, … periods; `None` without a sample.
    pub fn of(period: Time, classes: &[String], delivered: &[Vec<u64>]) -> Option<GoodputOverTime> {
        let last = delivered.last().filter(|_| period > Time::ZERO)?;
        let rates = |class: usize| {
            let upto = delivered.iter().map(|sample| sample[class]);
            let before = std::iter::once(0).chain(upto.clone());
            // Bits a picosecond are Tb/s.
            upto.zip(before).map(|(upto, before)| (upto - before) as f64 * 8e3 / period.as_ps() as f64).collect()
        };
        let active = classes.iter().enumerate().filter(|(class, _)| last.get(*class).is_some_and(|bytes| *bytes > 0));
        let gbps = active.map(|(class, name)| (name.clone(), rates(class))).collect();
        Some(GoodputOverTime { period_us: period.as_us_f64(), gbps })
    }

    /// All classes together, the mean over runs: (the period's middle in microseconds, Gb/s). Runs of another period, and
    /// what is beyond the shortest run, are left out.
    pub(crate) fn total<'a>(runs: impl Iterator<Item = &'a GoodputOverTime>) -> Vec<(f64, f64)> {
        let mut runs = runs.peekable();
        let Some(period) = runs.peek().map(|first| first.period_us) else { return Vec::new() };
        let (mut sum, mut n): (Vec<f64>, f64) = (Vec::new(), 0.0);
        for run in runs.filter(|run| run.period_us == period) {
            let length = run.gbps.iter().map(|(_, rates)| rates.len()).min().unwrap_or(0);
            if n == 0.0 {
                sum = vec![0.0; length];
            }
            sum.truncate(length);
            for (_, rates) in run.gbps.iter() {
                sum.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += rate);
            }
            n += 1.0;
        }
        sum.into_iter().enumerate().map(|(at, sum)| ((at as f64 + 0.5) * period, sum / n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_and_silent_classes_are_left_out() {
        let classes = ["a", "b", "c"].map(String::from);
        let us = Time::from_us;
        let of = GoodputOverTime::of(us(1), &classes, &[vec![125, 0, 0], vec![125, 0, 500]]).unwrap();
        assert_eq!(of.gbps, vec![("a".to_string(), vec![1.0, 0.0]), ("c".to_string(), vec![0.0, 4.0])].into());
        assert_eq!(GoodputOverTime::of(us(1), &classes, &[]), None);
        let other = GoodputOverTime { gbps: Ordered::from(vec![("a".into(), vec![3.0])]), ..of.clone() };
        assert_eq!(GoodputOverTime::total([&of, &other].into_iter()), [(0.5, 2.0)]);
        let slower = GoodputOverTime { period_us: 7.0, ..of.clone() };
        assert_eq!(GoodputOverTime::total([&of, &slower].into_iter()), [(0.5, 1.0), (1.5, 4.0)]);
    }
}
