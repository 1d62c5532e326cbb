//! The time of a collective without contention, and its bus bandwidth.
//!
//! The forms are those of the literature (α the time of an empty message, β that of a byte), with
//! T(c) for α + βc: the time of a message of c bytes alone in the empty network. Computation
//! is not in them, but for a pipeline's.
//!
//! Bus bandwidth follows nccl-tests' `PERFORMANCE.md`: a rank's buffer over the time, times a
//! factor that makes it comparable with a link's rate for any number of ranks.

use super::exchange::partner;
use super::{Algorithm, Collective, Operation, share};
use millpond_core::Time;

impl Collective {
    /// The time without contention through one NIC, of the time that a message of so many bytes
    /// takes.
    pub fn closed_form(&self, message: impl Fn(u64) -> Time) -> Time {
        let message = |bytes: u64| message(bytes.max(1));
        let times = |count: u32, bytes: u64| message(bytes).saturating_mul(count.into());
        let (ranks, bytes) = (self.ranks, self.bytes);
        match self.algorithm {
            Algorithm::Ring if self.operation != Operation::Broadcast => self.around(message),
            Algorithm::Ring => {
                // The first rank sends all; each between hands on the last pieces of all channels.
                let last = bytes.div_ceil(u64::from(self.lanes() / self.channels));
                times(ranks - 2, last).saturating_add(message(bytes))
            }
            Algorithm::DoubleBinaryTree => {
                let lanes = u64::from(self.lanes());
                let carried = 2 * bytes / u64::from(ranks) * u64::from(ranks - 1);
                let on_wire = message(carried).saturating_sub(message(1));
                times(2 * log(ranks), bytes.div_ceil(lanes)).saturating_add(on_wire)
            }
            Algorithm::OneForwardOneBackward => {
                let stages = self.micro_batches.saturating_add(ranks - 1);
                let (forward, backward) = self.stage;
                let computed = forward.saturating_add(backward).saturating_mul(stages.into());
                computed.saturating_add(times(2 * (ranks - 1), bytes))
            }
            _ => {
                let mut steps = self.steps();
                steps.retain(|(count, _)| *count > 0);
                let Some((_, last)) = steps.last() else { return Time::ZERO };
                let step = |bytes: u64| overlapped(message, self.channels.into(), bytes);
                let each =
                    steps.iter().map(|(count, bytes)| step(*bytes).saturating_mul((*count).into()));
                let all = each.fold(Time::ZERO, Time::saturating_add);
                all.saturating_sub(step(*last)).saturating_add(message(*last))
            }
        }
    }

    /// The longest messages of steps that follow each other, in their order: how many steps have
    /// one of so many bytes.
    fn steps(&self) -> Vec<(u32, u64)> {
        let (ranks, bytes) = (self.ranks, self.bytes);
        let block = (0..ranks).map(|to| self.block(0, to)).max().unwrap_or(0);
        match self.algorithm {
            Algorithm::HalvingDoubling | Algorithm::HalvingDoublingFar => {
                self.folded((1..=ranks.ilog2()).rev().map(|k| (2, bytes.div_ceil(1 << k))))
            }
            Algorithm::RecursiveDoubling => self.folded([(ranks.ilog2(), bytes)]),
            Algorithm::Hierarchical => {
                let (own, groups) = (share(bytes, self.group, 0), ranks / self.group);
                let outer = (2 * (groups - 1), share(own, groups, 0));
                vec![(self.group - 1, own), outer, (self.group - 1, own)]
            }
            Algorithm::Binomial => vec![(log(ranks), bytes)],
            Algorithm::Pairwise if self.matrix.is_some() => {
                let most = |k| (0..ranks).map(|r| self.block(r, partner(self, r, k))).max();
                (1..ranks).map(|k| (1, most(k).unwrap_or(0))).collect()
            }
            Algorithm::Linear if self.matrix.is_some() => {
                let others = |rank: u32| (0..ranks).filter(move |other| *other != rank);
                let sent = |r: u32| others(r).map(|to| self.block(r, to)).sum::<u64>();
                let received = |r: u32| others(r).map(|from| self.block(from, r)).sum::<u64>();
                let most = (0..ranks).map(|r| sent(r).max(received(r))).max();
                vec![(1, most.unwrap_or(0))]
            }
            Algorithm::Pairwise => vec![(ranks - 1, block)],
            Algorithm::Linear => vec![(1, u64::from(ranks - 1) * block)],
            Algorithm::Bruck => {
                let blocks = |k: u32| (1..ranks).filter(move |index| index >> k & 1 == 1).count();
                (0..log(ranks)).map(|k| (1, blocks(k) as u64 * block)).collect()
            }
            Algorithm::Pxn => {
                let (group, groups) = (u64::from(self.group), u64::from(ranks / self.group));
                vec![(1, (group - 1) * groups * block), (1, (groups - 1) * group * block)]
            }
            Algorithm::Dissemination => vec![(log(ranks), 1)],
            Algorithm::Auto
            | Algorithm::Ring
            | Algorithm::DoubleBinaryTree
            | Algorithm::OneForwardOneBackward => Vec::new(),
        }
    }

    fn around(&self, message: impl Fn(u64) -> Time) -> Time {
        let once = if self.operation == Operation::AllReduce { 2 } else { 1 } * (self.ranks - 1);
        let ranks = u64::from(self.ranks);
        let most = self.chunk.map_or(u64::MAX, |chunk| {
            chunk.max(1).saturating_mul(ranks).saturating_mul(self.channels.into())
        });
        let parts = u64::from(self.slices) * u64::from(self.channels);
        let turn = |bytes: u64| {
            let chunk = bytes.div_ceil(ranks);
            let step = overlapped(&message, parts, chunk);
            step.saturating_mul(u64::from(once) - 1).saturating_add(message(chunk))
        };
        let (whole, rest) = (self.bytes / most, self.bytes % most);
        let all = turn(most.min(self.bytes)).saturating_mul(whole);
        if rest > 0 { all.saturating_add(turn(rest)) } else { all }
    }

    /// Steps of a power of two of ranks, with the two of ranks beyond it.
    fn folded(&self, core: impl IntoIterator<Item = (u32, u64)>) -> Vec<(u32, u64)> {
        let extra = (!self.ranks.is_power_of_two()).then_some((1, self.bytes));
        extra.into_iter().chain(core).chain(extra).collect()
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

/// The logarithm of a number of ranks, rounded up.
fn log(ranks: u32) -> u32 {
    u32::BITS - (ranks - 1).leading_zeros()
}

/// From the beginning of a step to that of the next, of messages in parts that do not wait for each
/// other. The next begins when the link has carried the message, and its first part has arrived,
/// whichever is later. Of one part it is T(c).
fn overlapped(message: impl Fn(u64) -> Time, parts: u64, bytes: u64) -> Time {
    let whole = message(bytes);
    match parts {
        1 => whole,
        _ => {
            let carried = message(2 * bytes).saturating_sub(whole);
            carried.max(message(bytes.div_ceil(parts)))
        }
    }
}
