//! The time of a collective without contention, and its bus bandwidth.
//!
//! The forms are those of the literature (α the time of an empty message, β that of a byte), with
//! T(c) for α + βc: the time of a message of c bytes alone in the empty network. Computation
//! is not in them, but for a pipeline's.
//!
//! Bus bandwidth follows nccl-tests' `PERFORMANCE.md`: a rank's buffer over the time, times a
//! factor that makes it comparable with a link's rate for any number of ranks.

use super::exchange::partner;
use super::{Algorithm, Collective, Operation, share, tree};
use millpond_core::Time;

impl Collective {
    /// The time without contention, of the time that a message of so many bytes takes.
    pub fn closed_form(&self, message: impl Fn(u64) -> Time) -> Time {
        let steps = |count: u32, bytes: u64| message(bytes.max(1)).saturating_mul(count.into());
        let (ranks, bytes) = (self.ranks, self.bytes);
        let log = u32::BITS - (ranks - 1).leading_zeros();
        let block = (0..ranks).map(|to| self.block(0, to)).max().unwrap_or(0);
        match self.algorithm {
            Algorithm::Auto => Time::ZERO,
            Algorithm::Ring if self.operation == Operation::Broadcast => {
                let pieces = tree::pieces(self, 1);
                steps((ranks - 2).saturating_add(pieces), share(bytes, pieces, 0))
            }
            Algorithm::Ring => self.around(|bytes| message(bytes.max(1))),
            Algorithm::HalvingDoubling | Algorithm::HalvingDoublingFar => {
                let halves = 1..=ranks.ilog2();
                let core = halves.map(|k| steps(2, bytes.div_ceil(1 << k)));
                core.fold(self.folded(steps), Time::saturating_add)
            }
            Algorithm::RecursiveDoubling => {
                self.folded(steps).saturating_add(steps(ranks.ilog2(), bytes))
            }
            Algorithm::DoubleBinaryTree => {
                let piece = bytes.div_ceil(2).div_ceil(tree::pieces(self, 2).into());
                let carried = 2 * bytes / u64::from(ranks) * u64::from(ranks - 1);
                let on_wire = steps(1, carried).saturating_sub(steps(1, 1));
                steps(2 * log, piece).saturating_add(on_wire)
            }
            Algorithm::Hierarchical => {
                let (own, groups) = (share(bytes, self.group, 0), ranks / self.group);
                let outer = steps(2 * (groups - 1), share(own, groups, 0));
                steps(2 * (self.group - 1), own).saturating_add(outer)
            }
            Algorithm::Binomial => steps(log, bytes),
            Algorithm::Pairwise if self.matrix.is_some() => (1..ranks)
                .map(|k| (0..ranks).map(|r| self.block(r, partner(self, r, k))).max())
                .fold(Time::ZERO, |sum, most| sum.saturating_add(steps(1, most.unwrap_or(0)))),
            Algorithm::Linear if self.matrix.is_some() => {
                let others = |rank: u32| (0..ranks).filter(move |other| *other != rank);
                let sent = |r: u32| others(r).map(|to| self.block(r, to)).sum::<u64>();
                let received = |r: u32| others(r).map(|from| self.block(from, r)).sum::<u64>();
                steps(1, (0..ranks).map(|r| sent(r).max(received(r))).max().unwrap_or(0))
            }
            Algorithm::Pairwise => steps(ranks - 1, block),
            Algorithm::Linear => steps(1, u64::from(ranks - 1) * block),
            Algorithm::Bruck => (0..log)
                .map(|k| (1..ranks).filter(|index| index >> k & 1 == 1).count() as u64)
                .fold(Time::ZERO, |sum, blocks| sum.saturating_add(steps(1, blocks * block))),
            Algorithm::Pxn => {
                let (group, groups) = (u64::from(self.group), u64::from(ranks / self.group));
                let inner = steps(1, (group - 1) * groups * block);
                inner.saturating_add(steps(1, (groups - 1) * group * block))
            }
            Algorithm::Dissemination => steps(log, 1),
            Algorithm::OneForwardOneBackward => {
                let stages = self.micro_batches.saturating_add(ranks - 1);
                let (forward, backward) = self.stage;
                let computed = forward.saturating_add(backward).saturating_mul(stages.into());
                computed.saturating_add(steps(2 * (ranks - 1), bytes))
            }
        }
    }

    /// A ring's turns. A step begins when the link has carried the chunk of the step before, and
    /// the first slice of that has arrived, whichever is later. So one slice costs K T(c).
    fn around(&self, message: impl Fn(u64) -> Time) -> Time {
        let once = if self.operation == Operation::AllReduce { 2 } else { 1 } * (self.ranks - 1);
        let ranks = u64::from(self.ranks);
        let most = self.chunk.map_or(u64::MAX, |chunk| {
            chunk.max(1).saturating_mul(ranks).saturating_mul(self.channels.into())
        });
        let parts = u64::from(self.slices) * u64::from(self.channels);
        let turn = |bytes: u64| {
            let chunk = bytes.div_ceil(ranks);
            let whole = message(chunk);
            let carried = message(2 * chunk).saturating_sub(whole);
            let step = match parts {
                1 => whole,
                _ => carried.max(message(chunk.div_ceil(parts))),
            };
            step.saturating_mul(u64::from(once) - 1).saturating_add(whole)
        };
        let (whole, rest) = (self.bytes / most, self.bytes % most);
        let all = turn(most.min(self.bytes)).saturating_mul(whole);
        if rest > 0 { all.saturating_add(turn(rest)) } else { all }
    }

    /// The two steps of ranks beyond a power of two.
    fn folded(&self, steps: impl Fn(u32, u64) -> Time) -> Time {
        if self.ranks.is_power_of_two() { Time::ZERO } else { steps(2, self.bytes) }
    }

    /// Bytes a second of the algorithm: a rank's buffer over the time; `None` of no time, and of
    /// collectives that carry no buffer.
    pub fn algorithm_bandwidth(&self, time: Time) -> Option<f64> {
        let is_measured = !matches!(self.operation, Operation::Barrier | Operation::Pipeline);
        (is_measured && time > Time::ZERO).then(|| self.bytes as f64 / time.as_s_f64())
    }

    /// The factor from algorithm bandwidth to bus bandwidth.
    pub fn bus_factor(&self) -> f64 {
        let ranks = f64::from(self.ranks);
        match self.operation {
            Operation::AllReduce => 2.0 * (ranks - 1.0) / ranks,
            Operation::ReduceScatter | Operation::AllGather | Operation::AllToAll => {
                (ranks - 1.0) / ranks
            }
            _ => 1.0,
        }
    }
}
