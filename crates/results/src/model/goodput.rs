//! Goodput over time: what each class had delivered at each sample, as rates between samples.
//!
//! Invariant: rates times the period add up to what was delivered at the last sample.

use millpond_core::Time;
use serde::{Deserialize, Serialize};

use crate::model::ordered::Ordered;

/// Goodput of each class that delivered anything, over the whole run, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GoodputOverTime {
    /// Time from one sample to the next, in microseconds: number n is of the time from n to n + 1
    /// periods.
    pub period_us: f64,
    /// The time of a full packet on the slowest link of a host, in microseconds.
    pub packet_us: f64,
    /// Application bytes delivered in order, in Gb/s, by class.
    pub gbps: Ordered<Vec<f64>>,
    /// Of each time at which links fail, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<Recovery>,
}

/// The fall of goodput after a failure, all classes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// When links failed, in microseconds of virtual time.
    pub at_us: f64,
    /// The level before: the mean of up to ten stretches until then, in Gb/s.
    pub before_gbps: f64,
    /// From the failure until the end of the first stretch with 95 % of that level, after one with
    /// less; 0: goodput never fell below it; `null`: it did not come back before the next failure
    /// or the end.
    pub recovery_us: Option<f64>,
}

/// Stretches whose mean is the level before a failure.
const LEVEL: usize = 10;
/// The share of the level before a failure that counts as recovered.
const RECOVERED: f64 = 0.95;

/// A rate that is drawn is that of so many full packets at least. Over less than a packet's time a
/// rate shows when the packet ended, and exceeds the link's.
const PACKETS_DRAWN: f64 = 8.0;

impl GoodputOverTime {
    /// Of the bytes that each class had delivered after 1, 2, … periods, and the time of a full
    /// packet on the slowest link of a host; `None` without a sample.
    pub fn of(
        period: Time,
        packet: Time,
        classes: &[String],
        delivered: &[Vec<u64>],
    ) -> Option<GoodputOverTime> {
        let last = delivered.last().filter(|_| period > Time::ZERO)?;
        let rates = |class: usize| {
            let upto = delivered.iter().map(|sample| sample[class]);
            let before = std::iter::once(0).chain(upto.clone());
            // Bits a picosecond are Tb/s.
            upto.zip(before)
                .map(|(upto, before)| (upto - before) as f64 * 8e3 / period.as_ps() as f64)
                .collect()
        };
        let active = classes
            .iter()
            .enumerate()
            .filter(|(class, _)| last.get(*class).is_some_and(|bytes| *bytes > 0));
        let gbps = active.map(|(class, name)| (name.clone(), rates(class))).collect();
        let (period_us, packet_us) = (period.as_us_f64(), packet.as_us_f64());
        Some(GoodputOverTime { period_us, packet_us, gbps, recovery: Vec::new() })
    }

    /// The same with the recovery from failures at these times, in microseconds and ascending. A
    /// failure before the first whole stretch, or without goodput before it, has none.
    pub fn with_failures(self, failures: &[f64]) -> GoodputOverTime {
        let rates = GoodputOverTime::total(std::iter::once(&self));
        let half = rates.first().map_or(0.0, |(middle, _)| *middle);
        let recovery = |(n, at_us): (usize, &f64)| {
            let before = rates.partition_point(|(middle, _)| middle + half <= *at_us);
            let level = &rates[before.saturating_sub(LEVEL)..before];
            let sum: f64 = level.iter().map(|(_, rate)| rate).sum();
            let before_gbps = sum / level.len().max(1) as f64;
            let next = failures.get(n + 1).copied().unwrap_or(f64::INFINITY);
            let mut after = rates[before..].iter().take_while(|(middle, _)| middle - half < next);
            let is_back = |rate: f64| rate >= RECOVERED * before_gbps;
            let fell = after.by_ref().any(|(_, rate)| !is_back(*rate));
            let back = after.find(|(_, rate)| is_back(*rate));
            let recovery_us = match fell {
                true => back.map(|(middle, _)| middle + half - at_us),
                false => Some(0.0),
            };
            (before_gbps > 0.0).then_some(Recovery { at_us: *at_us, before_gbps, recovery_us })
        };
        let recovery = failures.iter().enumerate().filter_map(recovery).collect();
        GoodputOverTime { recovery, ..self }
    }

    /// All classes together, the mean over runs: (the middle of a stretch in microseconds, Gb/s). A
    /// stretch is a period, or as many as eight full packets take. Runs of another period, and
    /// what is beyond the shortest run or the last whole stretch, are left out.
    pub(crate) fn total<'a>(runs: impl Iterator<Item = &'a GoodputOverTime>) -> Vec<(f64, f64)> {
        let mut runs = runs.peekable();
        let Some(first) = runs.peek() else { return Vec::new() };
        let (period, packet) = (first.period_us, first.packet_us);
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
        let merged = (libm::ceil(PACKETS_DRAWN * packet / period) as usize).max(1);
        let (stretch, runs) = (merged as f64 * period, n);
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / (rates.len() as f64 * runs);
        let stretches = sum.chunks_exact(merged).map(mean).enumerate();
        stretches.map(|(at, rate)| ((at as f64 + 0.5) * stretch, rate)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_and_silent_classes_are_left_out() {
        let classes = ["a", "b", "c"].map(String::from);
        let us = Time::from_us;
        let of =
            GoodputOverTime::of(us(1), Time::ZERO, &classes, &[vec![125, 0, 0], vec![125, 0, 500]])
                .unwrap();
        assert_eq!(
            of.gbps,
            vec![("a".to_string(), vec![1.0, 0.0]), ("c".to_string(), vec![0.0, 4.0])].into()
        );
        assert_eq!(GoodputOverTime::of(us(1), Time::ZERO, &classes, &[]), None);
        let other =
            GoodputOverTime { gbps: Ordered::from(vec![("a".into(), vec![3.0])]), ..of.clone() };
        assert_eq!(GoodputOverTime::total([&of, &other].into_iter()), [(0.5, 2.0)]);
        let slower = GoodputOverTime { period_us: 7.0, ..of.clone() };
        assert_eq!(GoodputOverTime::total([&of, &slower].into_iter()), [(0.5, 1.0), (1.5, 4.0)]);
    }

    /// Goodput of 10 Gb/s falls to 2 at 6 us, and is back at 9.6 from 8 us on.
    #[test]
    fn recovery_ends_with_95_percent_of_the_level_before() {
        let rates = |rates: &[f64]| GoodputOverTime {
            period_us: 1.0,
            gbps: vec![("a".to_string(), rates.to_vec())].into(),
            ..GoodputOverTime::default()
        };
        let falls = rates(&[10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 2.0, 9.0, 9.6, 10.0, 0.0]);
        let of = |failures: &[f64]| {
            let found = falls.clone().with_failures(failures).recovery;
            found.iter().map(|it| (it.before_gbps, it.recovery_us)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[5.0]), [(10.0, Some(4.0))]);
        assert_eq!(of(&[5.5]), [(10.0, Some(3.5))]);
        assert_eq!(of(&[5.0, 7.0]), [(10.0, None), (62.0 / 7.0, None)]);
        assert_eq!(of(&[6.0]), [(10.0, Some(3.0))]);
        assert_eq!(of(&[0.0]), []);
        let steady = rates(&[10.0; 8]).with_failures(&[4.0]).recovery;
        assert_eq!(steady[0].recovery_us, Some(0.0));
    }

    /// A packet of 120 ns ends in one of six periods of 20 ns: 6 times the link's rate, then
    /// nothing.
    #[test]
    fn periods_shorter_than_packets_are_drawn_together() {
        let packet = 1500u64;
        let delivered: Vec<Vec<u64>> = (1..=100).map(|n| vec![n / 6 * packet]).collect();
        let times = [20, 120].map(Time::from_ns);
        let of = GoodputOverTime::of(times[0], times[1], &["a".to_string()], &delivered).unwrap();
        let peak = |rates: &mut dyn Iterator<Item = f64>| rates.fold(0.0, f64::max);
        assert_eq!(peak(&mut of.gbps.iter().flat_map(|(_, rates)| rates.iter().copied())), 600.0);
        let drawn = GoodputOverTime::total([&of].into_iter());
        assert_eq!(drawn, [(0.48, 100.0), (1.44, 100.0)]);
    }
}
