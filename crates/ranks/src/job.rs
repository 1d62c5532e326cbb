//! A job: a collective, how often its ranks do it, and how long they compute in between.
//!
//! Invariant: a rank's compute time is a function of the job's key, the rank and the round.

use crate::collective::Collective;
use millpond_core::Time;
use millpond_core::random::{Stream, hash_name, mix64};
use std::collections::BTreeSet;

/// Ranks that do a collective, again and again.
#[derive(Clone, Debug)]
pub struct Job {
    pub collective: Collective,
    pub rounds: u32,
    /// The time that each of them spends before a round.
    pub pace: Pace,
}

/// The time that a rank spends before each round's first message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pace {
    /// Pause between the end of a rank's round and its next round's compute.
    pub gap: Time,
    pub compute: Time,
    /// Standard deviation of the compute time, as a share of its mean.
    pub jitter: f64,
    pub stragglers: BTreeSet<u32>,
    /// How late they are in each round.
    pub straggler_delay: Time,
    /// The key that the compute times are drawn from.
    pub key: u64,
}

impl Pace {
    /// How long a rank computes before its messages of a round: a normal distribution, cut off at
    /// zero, and the delay of a straggler.
    pub fn compute(&self, rank: u32, round: u32) -> Time {
        let extra = match self.stragglers.contains(&rank) {
            true => self.straggler_delay,
            false => Time::ZERO,
        };
        let mean = self.compute.as_ps() as f64;
        if self.jitter == 0.0 || mean == 0.0 {
            return self.compute.saturating_add(extra);
        }
        const NAME: u64 = hash_name("compute-time");
        let number = u64::from(rank) << 32 | u64::from(round);
        let mut random = Stream::from_key(mix64(mix64(self.key) ^ NAME) ^ mix64(number));
        let drawn = random.normal(mean, mean * self.jitter);
        Time::from_ps((drawn.max(0.0) + 0.5) as u64).saturating_add(extra)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compute_times_are_drawn_by_rank_and_round_alone() {
        let compute = Time::from_us(100);
        let pace = Pace { compute, jitter: 0.1, key: 7, ..Pace::default() };
        let drawn: Vec<f64> = (0..4_000).map(|n| pace.compute(n % 8, n / 8).as_us_f64()).collect();
        assert_eq!(pace.compute(3, 5), pace.clone().compute(3, 5));
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let square = drawn.iter().map(|us| (us - mean).powi(2)).sum::<f64>();
        let deviation = (square / drawn.len() as f64).sqrt();
        assert!((mean - 100.0).abs() < 1.0 && (deviation - 10.0).abs() < 0.5, "{mean} {deviation}");
    }

    #[test]
    fn stragglers_alone_are_late() {
        let pace = Pace {
            compute: Time::from_us(5),
            stragglers: BTreeSet::from([2]),
            straggler_delay: Time::from_us(200),
            ..Pace::default()
        };
        let times: Vec<Time> = (0..4).map(|rank| pace.compute(rank, 0)).collect();
        let (normal, late) = (Time::from_us(5), Time::from_us(205));
        assert_eq!(times, [normal, normal, late, normal]);
    }
}
