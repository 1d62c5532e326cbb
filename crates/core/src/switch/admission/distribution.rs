//! Distribution: AIFO's inequality with a quantile that is guessed and not counted.
//!
//! Ranks are taken to be exponential, with the mean of those that wait: the share of packets more
//! important than rank r is 1 − exp(−r/mean). A chip that cannot count a window can look that up.
//! As in AIFO, a packet is refused where the queue is longer than `Q · (1 − (1−k) · share)`.
//!
//! Invariant: rank 0 is never refused, nor anything at an empty queue; a refusal at one rank and
//! length refuses every larger rank and every longer queue, the mean unchanged.

use super::{Admits, CAPACITY_MAX, ONE, PortFacts, alpha};
use crate::context::Context;
use crate::counters::DropReason;
use crate::random::Stream;
use crate::registry::{About, Signal};
use crate::switch::QueueView;

pub(super) const ABOUT: About = About {
    summary: "admits a rank while its share in an exponential distribution is at most the free \
              share of the buffer",
    source: "Practical packet deflection in datacenters, CoNEXT 2023 (distribution-based), \
             artifact",
    reads: &[Signal::Ranks],
    ..About::PLAIN
};

crate::choice! {
    /// The mean of the ranks.
    pub enum DistributionMean {
        /// Of the packets that wait now.
        Queue = "queue",
        /// Of the packets offered, each with weight 1/50, in whole numbers, as the chip's program:
        /// M ← ⌊(49·M + r)/50⌋.
        Ewma = "ewma",
    }
}

crate::params! {
    /// The keys of admission by the distribution of ranks.
    pub struct DistributionParams {
        /// k: the share of the buffer within which every rank is admitted. Source: 0.9, the CoNEXT
        /// 2023 artifact.
        #[within(0..=1)]
        pub burst_headroom: f64 = 0.9,
        /// Which mean: "queue", of the packets that wait now; "ewma", of those offered, each with
        /// weight 1/50. Source: "queue" is the artifact's simulator, "ewma" its program for a chip.
        pub mean: DistributionMean = DistributionMean::Queue,
    }
}

/// Weight of the past in the moving mean, in 1/50.
const PAST: u64 = 49;

/// Admission by the distribution of ranks: its state at one port.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// 1 − k.
    alpha: u64,
    /// Q in bytes.
    capacity: u64,
    by: DistributionMean,
    /// The ranks that wait, added up, and how many they are.
    sum: u64,
    waiting: u64,
    /// The moving mean.
    moving: u64,
}

impl Distribution {
    pub(super) fn new(params: &DistributionParams) -> Distribution {
        Distribution {
            alpha: alpha(params.burst_headroom),
            capacity: CAPACITY_MAX,
            by: params.mean,
            sum: 0,
            waiting: 0,
            moving: 0,
        }
    }

    /// (1−k) times the share of packets more important than this, in 1/65536.
    fn relative(&self, rank: u32) -> u64 {
        let mean = match self.by {
            DistributionMean::Queue if self.waiting == 0 => return 0,
            DistributionMean::Queue => self.sum as f64 / self.waiting as f64,
            DistributionMean::Ewma => self.moving as f64,
        };
        if rank == 0 || (self.by == DistributionMean::Ewma && self.moving == 0) {
            return 0;
        }
        // A mean of 0 (nothing but control packets waits) gives 1.
        (self.alpha as f64 * (1.0 - libm::exp(-f64::from(rank) / mean))) as u64
    }
}

impl Admits for Distribution {
    fn install(&mut self, port: &PortFacts, _: &mut Stream) {
        self.capacity = port.capacity.bytes.min(CAPACITY_MAX);
    }

    fn test(&self, context: &Context<'_, QueueView>) -> Option<DropReason> {
        let length = context.view.bytes.min(self.capacity);
        // Within the headroom no share is too large.
        if length * ONE <= (ONE - self.alpha) * self.capacity {
            return None;
        }
        let refuses = length * ONE > self.capacity * (ONE - self.relative(context.packet.rank));
        refuses.then_some(DropReason::Early)
    }

    fn commit(&mut self, context: &Context<'_, QueueView>, _: bool) {
        self.moving = (PAST * self.moving + u64::from(context.packet.rank)) / (PAST + 1);
    }

    fn on_enqueue(&mut self, context: &Context<'_, QueueView>) {
        self.sum += u64::from(context.packet.rank);
        self.waiting += 1;
    }

    fn on_dequeue(&mut self, context: &Context<'_, QueueView>) {
        self.sum -= u64::from(context.packet.rank);
        self.waiting -= 1;
    }

    fn watches_departures(&self) -> bool {
        self.by == DistributionMean::Queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::switch::buffer::Capacity;
    use crate::switch::tests::seeing;
    use crate::units::Rate;

    fn distribution(k: f64, mean: DistributionMean) -> Distribution {
        let mut it = Distribution::new(&DistributionParams { burst_headroom: k, mean });
        let capacity = Capacity { bytes: 1000, packets: u32::MAX };
        it.install(&PortFacts { capacity, rate: Rate::from_gbps(10) }, &mut Stream::new(1, "t"));
        it
    }
    fn ranked(rank: u32) -> Packet {
        Packet { rank, ..Packet::default() }
    }
    fn admits(it: &Distribution, bytes: u64, rank: u32) -> bool {
        seeing(QueueView { packets: 1, bytes }, &ranked(rank), |at| it.test(at)).is_none()
    }
    /// The longest queue that admits this rank.
    fn longest(it: &Distribution, rank: u32) -> u64 {
        (0..=1000).rev().find(|q| admits(it, *q, rank)).expect("an empty queue admits")
    }

    #[test]
    fn the_share_is_that_of_an_exponential_with_the_mean_of_those_that_wait() {
        let mut it = distribution(0.0, DistributionMean::Queue);
        assert_eq!(longest(&it, u32::MAX), 1000);
        [100, 300]
            .into_iter()
            .for_each(|rank| seeing(QueueView::default(), &ranked(rank), |at| it.on_enqueue(at)));
        // Mean 200: rank 200 has share 1 − 1/e.
        assert!((367..=369).contains(&longest(&it, 200)), "{}", longest(&it, 200));
        seeing(QueueView { packets: 2, bytes: 2 }, &ranked(300), |at| it.on_dequeue(at));
        assert!((135..=136).contains(&longest(&it, 200)), "{}", longest(&it, 200));
        assert_eq!([longest(&it, 0), longest(&it, u32::MAX)], [1000, 0]);
    }

    #[test]
    fn the_headroom_admits_every_rank() {
        let mut it = distribution(0.9, DistributionMean::Queue);
        seeing(QueueView::default(), &ranked(1), |at| it.on_enqueue(at));
        assert_eq!(longest(&it, 1_000_000), 899);
    }

    #[test]
    fn the_moving_mean_is_in_whole_numbers() {
        let mut it = distribution(0.0, DistributionMean::Ewma);
        assert!(admits(&it, 1000, 500));
        for expected in [20, 39, 58] {
            seeing(QueueView::default(), &ranked(1000), |at| it.commit(at, true));
            assert_eq!(it.moving, expected);
        }
        assert!(!admits(&it, 500, 100) && !it.watches_departures());
    }
}
