//! Marking: *does this packet get CE?*
//!
//! A policy is asked once a packet, at enqueue or at dequeue as it declares; the caller sets the
//! codepoint, and only on packets whose transport declared that it reacts (RFC 3168 §5).

mod ecn;
mod none;
mod red;

pub use ecn::{Ecn, EcnParams, MarkAt, Threshold};
pub use none::{Unmarked, UnmarkedParams};
pub use red::{Red, RedParams};

use crate::context::Context;
use crate::switch::QueueView;
use crate::switch::buffer::Capacity;
use crate::switch::site::PortSite;

crate::registry! {
    place: "switch.marking", question: "does it get CE?", default: Ecn,
    params: MarkingParams, policy: Marking as pub(super) trait Marks {
        /// Whether a packet that finds the queue as in the view at its enqueue is marked.
        fn at_enqueue(&mut self, context: &Context<'_, QueueView>) -> bool = false;
        /// Whether a packet is marked that leaves the queue; the view still counts it.
        fn at_dequeue(&self, context: &Context<'_, QueueView>) -> bool = false;
        /// The least queue, in packets or in bytes, that it has to be notified of at an enqueue.
        fn asked_from(&self) -> QueueView = QueueView::default();
        /// The packet leaves the queue, of which the view still counts it. Only general ports call
        /// it.
        fn on_dequeue(&mut self, context: &Context<'_, QueueView>) -> () = ();
        /// Whether it must be notified of departures (then a port must hold packets until they
        /// leave).
        fn watches_departures(&self) -> bool = false;
        /// Whether it may mark at dequeue (then a port must hold packets until they leave).
        fn marks_at_dequeue(&self) -> bool = false;
    };
    "none" => None { UnmarkedParams, Unmarked; none::ABOUT },
    "ecn" => Ecn { EcnParams, Ecn; ecn::ABOUT },
    "red" => Red { RedParams, Red; red::ABOUT },
}

impl MarkingParams {
    /// Their meaning at a port that can hold `capacity`: what follows tier and rate as plain
    /// numbers.
    pub fn at_port(&self, site: &PortSite, capacity: Capacity) -> MarkingParams {
        match self {
            MarkingParams::Ecn(params) => MarkingParams::Ecn(params.at_port(site, capacity)),
            MarkingParams::Red(params) => MarkingParams::Red(params.at_port(site)),
            MarkingParams::None(_) => self.clone(),
        }
    }

    /// From where on such a port marks; `None`: never.
    pub fn threshold(&self, site: &PortSite, capacity: Capacity) -> Option<Threshold> {
        match self {
            MarkingParams::Ecn(params) => Some(params.threshold(site, capacity)),
            MarkingParams::Red(params) => Some(params.threshold(site)),
            MarkingParams::None(_) => None,
        }
    }
}
