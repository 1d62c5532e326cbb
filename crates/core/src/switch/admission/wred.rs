//! WRED: RED with two curves, of which important packets have one of their own.
//!
//! One average for the queue; a packet of a rank up to `rank-threshold` is judged by the
//! `important-` curve.
//!
//! Invariant: two tests without a commit between them agree.

use super::{Admits, Around, PortFacts};
use crate::context::Context;
use crate::counters::DropReason;
use crate::packet::Packet;
use crate::random::Stream;
use crate::registry::{About, Signal};
use crate::switch::QueueView;
use crate::switch::early::{Curve, Estimate};
use crate::switch::site::Auto;
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "RED with a curve of its own for important packets",
    source: "the weighted RED of routers; Practical packet deflection in datacenters, CoNEXT \
             2023, artifact",
    reads: &[Signal::Ranks],
    ..About::PLAIN
};

crate::params! {
    /// The keys of weighted RED: important packets have a curve of their own.
    pub struct WredParams {
        /// The average from which packets are refused. "auto" is a quarter of what the port can
        /// hold. Source: as red.
        pub min_threshold: Auto<Bytes> = Auto::Auto,
        /// The average from which every packet is refused. "auto" is three quarters of what the
        /// port can hold. Source: as red.
        #[within(1..)]
        pub max_threshold: Auto<Bytes> = Auto::Auto,
        /// Probability of refusal just below the maximum, before the spacing. Source: as red.
        #[within(0..=1)]
        pub max_probability: f64 = 0.1,
        /// The largest rank that is important. Source: 40000, the CoNEXT 2023 deflection artifact.
        pub rank_threshold: u32 = 40_000,
        /// The minimum for important packets. "auto" is half of what the port can hold. Source: a
        /// choice of this program, twice the others'.
        pub important_min_threshold: Auto<Bytes> = Auto::Auto,
        /// The maximum for important packets. "auto" is all that the port can hold. Source: a
        /// choice of this program: never.
        #[within(1..)]
        pub important_max_threshold: Auto<Bytes> = Auto::Auto,
        /// The probability for important packets. Source: a choice of this program, the others'.
        #[within(0..=1)]
        pub important_max_probability: f64 = 0.1,
        /// w: weight of an arrival's queue length in the average. Source: as red.
        #[within(0..=1)]
        pub weight: f64 = 0.002,
        /// Packets per second by which the average falls while the queue is empty. "auto" is as
        /// many full packets as the link sends. Source: as red.
        #[within(1..)]
        pub packet_rate: Auto<f64> = Auto::Auto,
    }
}

impl WredParams {
    /// Their values at one port.
    pub(super) fn at_port(&self, around: &Around) -> WredParams {
        WredParams {
            min_threshold: Auto::Given(self.min_threshold.or(|| around.quarters(1))),
            max_threshold: Auto::Given(self.max_threshold.or(|| around.quarters(3))),
            important_min_threshold: Auto::Given(
                self.important_min_threshold.or(|| around.quarters(2)),
            ),
            important_max_threshold: Auto::Given(
                self.important_max_threshold.or(|| around.quarters(4)),
            ),
            packet_rate: Auto::Given(self.packet_rate.or(|| around.site.packet_rate())),
            ..self.clone()
        }
    }

    /// The key that decides from where on packets are refused, and that queue; of parameters of one
    /// port.
    pub(super) fn at_least(&self) -> (&'static str, u64) {
        let bytes = |threshold: Auto<Bytes>| threshold.or(|| Bytes(0)).get();
        let of = |probability: f64,
                  min: (&'static str, Auto<Bytes>),
                  max: (&'static str, Auto<Bytes>)| {
            let (key, threshold) = if probability > 0.0 { min } else { max };
            (bytes(threshold), key)
        };
        let others = of(
            self.max_probability,
            ("min-threshold", self.min_threshold),
            ("max-threshold", self.max_threshold),
        );
        let important = of(
            self.important_max_probability,
            ("important-min-threshold", self.important_min_threshold),
            ("important-max-threshold", self.important_max_threshold),
        );
        let (least, key) = if important.0 < others.0 { important } else { others };
        (key, least)
    }
}

/// Weighted RED at one port: two curves and the estimate of the average queue.
#[derive(Clone, Debug)]
pub struct Wred {
    rank_threshold: u32,
    /// Boxed, so that a port with another policy does not carry the space.
    curves: Box<[Curve; 2]>,
    estimate: Box<Estimate>,
}

impl Wred {
    pub(super) fn new(params: &WredParams) -> Wred {
        let params = params.at_port(&Around::default());
        let curve = |min: Auto<Bytes>, max: Auto<Bytes>, probability| {
            Curve::new(min.or(|| Bytes(0)), max.or(|| Bytes(0)), probability)
        };
        let others = curve(params.min_threshold, params.max_threshold, params.max_probability);
        let important = curve(
            params.important_min_threshold,
            params.important_max_threshold,
            params.important_max_probability,
        );
        Wred {
            rank_threshold: params.rank_threshold,
            curves: Box::new([others, important]),
            estimate: Box::new(Estimate::new(params.weight, params.packet_rate.or(|| 0.0))),
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
            let (view, packet) =
                (QueueView { packets: 100, bytes }, Packet { rank, ..Packet::default() });
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
