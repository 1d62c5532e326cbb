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
    #[serde(default)]
    pub packet_us: f64,
    /// Application bytes delivered in order, in Gb/s, by class.
    pub gbps: Ordered<Vec<f64>>,
}

/// A rate that is drawn is that of so many full packets at least. Over less than a packet's time a
/// rate says when the packet ended, and exceeds the link's.
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
        Some(GoodputOverTime { period_us: period.as_us_f64(), packet_us: packet.as_us_f64(), gbps })
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
