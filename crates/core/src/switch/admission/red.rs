//! RED: random early detection (Floyd and Jacobson, IEEE/ACM ToN 1993), here refusing and not marking.
//!
//! The average and the lots are [`Estimate`]'s, as [marking by RED](crate::switch::marking) has them. A test must not change
//! anything, so it works out the average that the packet's arrival gives, and the lot that decides lies drawn; both become
//! real when the packet is committed.
//!
//! Invariant: two tests without a commit between them agree.

use super::{Admits, PortFacts};
use crate::context::Context;
use crate::counters::DropReason;
use crate::random::Stream;
use crate::registry::About;
use crate::switch::QueueView;
use crate::switch::early::{Curve, Estimate};
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "refuses at random, more often the longer the queue is on average",
    source: "Floyd, Jacobson: Random early detection gateways for congestion avoidance, IEEE/ACM ToN 1993",
    needs: &[],
    breaks: &[],
    restores: &[],
};

crate::params! {
    /// RED.
    pub struct RedParams {
        /// The average from which packets are refused. Source: 75 KB of 300 KB, the CoNEXT 2023 deflection artifact.
        pub min_threshold: Bytes = Bytes(75_000),
        /// The average from which every packet is refused. Source: 225 KB of 300 KB, the same artifact.
        #[within(1..)]
        pub max_threshold: Bytes = Bytes(225_000),
        /// Probability of refusal just below the maximum, before the spacing. Source: 0.1, the same artifact.
        #[within(0..=1)]
        pub max_probability: f64 = 0.1,
        /// w: weight of an arrival's queue length in the average. Source: 0.002, the same artifact; the paper simulates with it.
        #[within(0..=1)]
        pub weight: f64 = 0.002,
        /// Packets per second by which the average falls while the queue is empty, as if so many had come. Source: 150,
        /// the same artifact; a 10 Gb/s link could send some 800,000.
        #[within(1..)]
        pub packet_rate: f64 = 150.0,
    }
}

/// RED.
#[derive(Clone, Debug)]
pub struct Red {
    curve: Curve,
    /// Boxed, so that a port with another policy does not carry the space.
    estimate: Box<Estimate>,
}

impl Red {
    pub(super) fn new(params: &RedParams) -> Red {
        Red {
            curve: Curve::new(params.min_threshold, params.max_threshold, params.max_probability),
            estimate: Box::new(Estimate::new(params.weight, params.packet_rate)),
        }
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
