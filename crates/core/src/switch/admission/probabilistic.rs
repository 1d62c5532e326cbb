//! Probabilistic: a rank's quantile is the chance of refusal, which grows with the queue.
//!
//! From `min-threshold` on a packet is refused with probability `(1−k) · quantile · (q − min)/(Q −
//! min)`: where AIFO draws a sharp line, this thins out. The lot lies drawn before the packet
//! comes, since a test must not change anything.
//!
//! Invariant: a rank that none in the window is below is never refused while there is room; a
//! refusal at one rank and length refuses every larger rank and every longer queue, window and lot
//! unchanged.

use super::window::RankWindow;
use super::{Admits, Around, CAPACITY_MAX, ONE, PortFacts, alpha};
use crate::context::Context;
use crate::counters::DropReason;
use crate::random::Stream;
use crate::registry::{About, Signal};
use crate::switch::QueueView;
use crate::switch::site::Auto;
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "refuses at random, by the rank's quantile and the queue's length",
    source: "Practical packet deflection in datacenters, CoNEXT 2023, artifact",
    reads: &[Signal::Ranks],
    ..About::PLAIN
};

crate::params! {
    /// The keys of admission with a probability.
    pub struct ProbabilisticParams {
        /// The queue from which packets are refused. "auto" is a quarter of what the port can hold.
        /// Source: 75 KB of 300 KB, the CoNEXT 2023 artifact.
        pub min_threshold: Auto<Bytes> = Auto::Auto,
        /// k: a rank above all others is refused at most with probability 1 - k. Source: 0.9, the
        /// same artifact.
        #[within(0..=1)]
        pub burst_headroom: f64 = 0.9,
        /// Ranks that are remembered. Source: 20, the same artifact.
        #[within(1..=2048)]
        pub window: u32 = 20,
        /// One of so many arrivals is remembered. Source: 20, the same artifact.
        #[within(1..)]
        pub sample_period: u32 = 20,
    }
}

impl ProbabilisticParams {
    /// Their values at one port.
    pub(super) fn at_port(&self, around: &Around) -> ProbabilisticParams {
        ProbabilisticParams {
            min_threshold: Auto::Given(self.min_threshold.or(|| around.quarters(1))),
            ..self.clone()
        }
    }

    /// The threshold in bytes, of parameters of one port.
    pub(super) fn at_least(&self) -> u64 {
        self.min_threshold.or(|| Bytes(0)).get()
    }
}

/// Admission with a probability: its state at one port.
#[derive(Clone, Debug)]
pub struct Probabilistic {
    window: RankWindow,
    min: u64,
    /// 1 − k.
    alpha: u64,
    /// Q in bytes.
    capacity: u64,
    /// Decides the next packet.
    lot: u32,
    /// Boxed, so that a port with another policy does not carry the space.
    random: Box<Stream>,
}

impl Probabilistic {
    pub(super) fn new(params: &ProbabilisticParams) -> Probabilistic {
        Probabilistic {
            window: RankWindow::new(params.window, params.sample_period),
            min: params.at_port(&Around::default()).at_least(),
            alpha: alpha(params.burst_headroom),
            capacity: CAPACITY_MAX,
            lot: 0,
            random: Box::new(Stream::from_key(0)),
        }
    }

    fn draw(&mut self) {
        self.lot = (self.random.bits() >> 32) as u32;
    }
}

impl Admits for Probabilistic {
    fn install(&mut self, port: &PortFacts, random: &mut Stream) {
        self.capacity = port.capacity.bytes.min(CAPACITY_MAX);
        *self.random = random.fork();
        self.draw();
    }

    fn test(&self, context: &Context<'_, QueueView>) -> Option<DropReason> {
        if context.view.bytes >= self.capacity {
            return Some(DropReason::Early);
        }
        if context.view.bytes <= self.min {
            return None;
        }
        // lot/2³² < alpha/2¹⁶ · below/W · (q − min)/(Q − min), multiplied out.
        let chance = u128::from(self.alpha * self.window.below(context.packet.rank))
            * u128::from(context.view.bytes - self.min);
        let lot = u128::from(u64::from(self.lot) * self.window.size())
            * u128::from(ONE * (self.capacity - self.min));
        (lot < chance << 32).then_some(DropReason::Early)
    }

    fn commit(&mut self, context: &Context<'_, QueueView>, _: bool) {
        self.window.note(context.packet.rank);
        if context.view.bytes > self.min {
            self.draw();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::switch::buffer::Capacity;
    use crate::switch::tests::seeing;
    use crate::units::Rate;

    #[test]
    fn the_chance_is_quantile_times_length() {
        let params = ProbabilisticParams {
            min_threshold: Auto::Given(Bytes(200)),
            burst_headroom: 0.5,
            window: 4,
            sample_period: 1,
        };
        let mut it = Probabilistic::new(&params);
        let capacity = Capacity { bytes: 1000, packets: u32::MAX };
        it.install(&PortFacts { capacity, rate: Rate::from_gbps(10) }, &mut Stream::new(1, "t"));
        [10, 20, 30, 40].into_iter().for_each(|rank| it.window.note(rank));
        let mut refusals = |bytes, rank| {
            let (view, packet) =
                (QueueView { packets: 1, bytes }, Packet { rank, ..Packet::default() });
            let refused = (0..10_000).filter(|_| {
                it.draw();
                seeing(view, &packet, |at| it.test(at)).is_some()
            });
            refused.count()
        };
        assert_eq!(
            [refusals(200, 50), refusals(999, 10), refusals(999, 0), refusals(1000, 0)],
            [0, 0, 0, 10_000]
        );
        // 0.5 · 1 · 400/800, and 0.5 · 2/4 · 400/800.
        assert!((2350..2650).contains(&refusals(600, 50)));
        assert!((1100..1400).contains(&refusals(600, 25)));
    }
}
