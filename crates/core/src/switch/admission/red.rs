//! RED: random early detection (Floyd and Jacobson, IEEE/ACM ToN 1993), here refusing and not
//! marking.
//!
//! The average and the lots are [`Estimate`]'s, as [marking by RED](crate::switch::marking) has
//! them. A test must not change anything, so it works out the average that the packet's arrival
//! gives, and the lot that decides lies drawn; both become real when the packet is committed.
//!
//! Invariant: two tests without a commit between them agree.

use super::{Admits, Around, PortFacts};
use crate::context::Context;
use crate::counters::DropReason;
use crate::random::Stream;
use crate::registry::About;
use crate::switch::QueueView;
use crate::switch::early::{Curve, Estimate};
use crate::switch::site::Auto;
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "refuses at random, more often the longer the queue is on average",
    source: "Floyd, Jacobson: Random early detection gateways for congestion avoidance, IEEE/ACM \
             ToN 1993",
    ..About::PLAIN
};

crate::params! {
    /// The keys of RED that drops (Floyd and Jacobson 1993).
    pub struct RedParams {
        /// The average from which packets are refused. "auto" is a quarter of what the port can
        /// hold. Source: 75 KB of 300 KB, the CoNEXT 2023 deflection artifact.
        pub min_threshold: Auto<Bytes> = Auto::Auto,
        /// The average from which every packet is refused. "auto" is three quarters of what the
        /// port can hold. Source: 225 KB of 300 KB, the same artifact.
        #[within(1..)]
        pub max_threshold: Auto<Bytes> = Auto::Auto,
        /// Probability of refusal just below the maximum, before the spacing. Source: 0.1, the same
        /// artifact.
        #[within(0..=1)]
        pub max_probability: f64 = 0.1,
        /// w: weight of an arrival's queue length in the average. Source: 0.002, the same artifact;
        /// the paper simulates with it.
        #[within(0..=1)]
        pub weight: f64 = 0.002,
        /// Packets per second by which the average falls while the queue is empty, as if so many
        /// had come. "auto" is as many full packets as the link sends. Source: the paper's s, the
        /// time that a packet takes (§4); 150 in the artifact, where a link of 10 Gb/s sends some
        /// 800,000.
        #[within(1..)]
        pub packet_rate: Auto<f64> = Auto::Auto,
    }
}

impl RedParams {
    /// Their values at one port.
    pub(super) fn at_port(&self, around: &Around) -> RedParams {
        RedParams {
            min_threshold: Auto::Given(self.min_threshold.or(|| around.quarters(1))),
            max_threshold: Auto::Given(self.max_threshold.or(|| around.quarters(3))),
            packet_rate: Auto::Given(self.packet_rate.or(|| around.site.packet_rate())),
            ..self.clone()
        }
    }

    /// The curve, of parameters of one port.
    fn curve(&self) -> Curve {
        let bytes = |threshold: Auto<Bytes>| threshold.or(|| Bytes(0));
        Curve::new(bytes(self.min_threshold), bytes(self.max_threshold), self.max_probability)
    }

    /// The key that decides from where on packets are refused, and that queue; of parameters of one
    /// port.
    pub(super) fn at_least(&self) -> (&'static str, u64) {
        let bytes = |threshold: Auto<Bytes>| threshold.or(|| Bytes(0)).get();
        match self.max_probability > 0.0 {
            true => ("min-threshold", bytes(self.min_threshold)),
            false => ("max-threshold", bytes(self.max_threshold)),
        }
    }
}

/// RED at one port: its curve and its estimate of the average queue.
#[derive(Clone, Debug)]
pub struct Red {
    curve: Curve,
    /// Boxed, so that a port with another policy does not carry the space.
    estimate: Box<Estimate>,
}

impl Red {
    pub(super) fn new(params: &RedParams) -> Red {
        let params = params.at_port(&Around::default());
        let packet_rate = params.packet_rate.or(|| 0.0);
        Red { curve: params.curve(), estimate: Box::new(Estimate::new(params.weight, packet_rate)) }
    }
}

impl Admits for Red {
    fn install(&mut self, _: &PortFacts, random: &mut Stream) {
        self.estimate.install(random);
    }

    fn test(&self, context: &Context<'_, QueueView>) -> Option<DropReason> {
        self.estimate.hits(context, &self.curve).then_some(DropReason::Early)
    }

    fn commit(&mut self, context: &Context<'_, QueueView>, _: bool) {
        self.estimate.commit(context, &self.curve);
    }

    fn on_dequeue(&mut self, context: &Context<'_, QueueView>) {
        self.estimate.on_dequeue(context);
    }

    fn watches_departures(&self) -> bool {
        true
    }
}
