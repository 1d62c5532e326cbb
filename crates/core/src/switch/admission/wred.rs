//! WRED: RED with two curves, of which important packets have one of their own.
//!
//! One average for the queue; a packet of a rank up to `rank-threshold` is judged by the `important-` curve.
//!
//! Invariant: two tests without a commit between them agree.

use super::{Admits, PortFacts};
use crate::context::Context;
use crate::counters::DropReason;
use crate::packet::Packet;
use crate::random::Stream;
use crate::registry::{About, PathProperty};
use crate::switch::QueueView;
use crate::switch::early::{Curve, Estimate};
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "RED with a curve of its own for important packets",
    source: "the weighted RED of routers; Practical packet deflection in datacenters, CoNEXT 2023, artifact",
    needs: &[PathProperty::RanksAreSet],
    breaks: &[],
    restores: &[],
};

crate::params! {
    /// WRED.
    pub struct WredParams {
        /// The average from which packets are refused. Source: as red.
        pub min_threshold: Bytes = Bytes(75_000),
        /// The average from which every packet is refused. Source: as red.
        #[within(1..)]
        pub max_threshold: Bytes = Bytes(225_000),
        /// Probability of refusal just below the maximum, before the spacing. Source: as red.
        #[within(0..=1)]
        pub max_probability: f64 = 0.1,
        /// The largest rank that is important. Source: 40000, the CoNEXT 2023 deflection artifact.
        pub rank_threshold: u32 = 40_000,
        /// The minimum for important packets. Source: a choice of this program, twice the others'.
        pub important_min_threshold: Bytes = Bytes(150_000),
        /// The maximum for important packets. Source: a choice of this program, the usual buffer: never.
        #[within(1..)]
        pub important_max_threshold: Bytes = Bytes(300_000),
        /// The probability for important packets. Source: a choice of this program, the others'.
        #[within(0..=1)]
        pub important_max_probability: f64 = 0.1,
        /// w: weight of an arrival's queue length in the average. Source: as red.
        #[within(0..=1)]
        pub weight: f64 = 0.002,
        /// Packets per second by which the average falls while the queue is empty. Source: as red.
        #[within(1..)]
        pub packet_rate: f64 = 150.0,
    }
}

/// WRED.
#[derive(Clone, Debug)]
pub struct Wred {
    rank_threshold: u32,
    /// Boxed, so that a port with another policy does not carry the space.
    curves: Box<[Curve; 2]>,
    estimate: Box<Estimate>,
}

impl Wred {
    pub(super) fn new(params: &WredParams) -> Wred {
        let others = Curve::new(params.min_threshold, params.max_threshold, params.max_probability);
        let important = Curve::new(
            params.important_min_threshold,
            params.important_max_threshold,
            params.important_max_probability,
        );
        Wred {
            rank_threshold: params.rank_threshold,
            curves: Box::new([others, important]),
            estimate: Box::new(Estimate::new(params.weight, params.packet_rate)),
        }
    }

    fn curve(&self, packet: &Packet) -> Curve {
        self.curves[usize::from(packet.rank <= self.rank_threshold)]
    }
}

impl Admits for Wred {
    fn install(&mut self, _: &PortFacts, random: &mut Stream) {
        self.estimate.install(random);
    }

    fn test(&self, context: &Context<'_, QueueView>) -> Option<DropReason> {
        self.estimate.hits(context, &self.curve(context.packet)).then_some(DropReason::Early)
    }

    fn commit(&mut self, context: &Context<'_, QueueView>, _: bool) {
        let curve = self.curve(context.packet);
        self.estimate.commit(context, &curve);
    }

    fn on_dequeue(&mut self, context: &Context<'_, QueueView>) {
        self.estimate.on_dequeue(context);
    }

    fn watches_departures(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::tests::seeing;

    #[test]
    fn important_packets_have_their_own_curve() {
        let mut it = Wred::new(&WredParams { weight: 1.0, ..WredParams::default() });
        it.estimate.install(&mut Stream::new(1, "t"));
        let mut refusals = |bytes, rank| {
            let (view, packet) = (QueueView { packets: 100, bytes }, Packet { rank, ..Packet::default() });
            let refused = (0..500).filter(|_| {
                seeing(view, &packet, |at| {
                    let refused = it.test(at).is_some();
                    it.commit(at, !refused);
                    refused
                })
            });
            refused.count()
        };
        assert_eq!([refusals(230_000, 40_001), refusals(149_000, 40_000)], [500, 0]);
        assert!((10..100).contains(&refusals(230_000, 40_000)));
    }
}
