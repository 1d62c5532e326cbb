//! Admission: *may this packet join this queue?*
//!
//! Asked after the buffer has found room for it, so a refusal here is an early one. With a
//! deflection, this is the test that makes a packet turn away before it enters a queue. Policies
//! test without changing and commit once, since a deflection probes several ports before one is
//! taken; a policy that draws lots has drawn before it is asked.
//!
//! Invariant: two tests without a commit between them give the same answer.

mod aifo;
mod around;
mod color;
mod distribution;
mod drop_tail;
mod last_packet;
mod probabilistic;
mod red;
mod window;
mod wred;

pub use aifo::{Aifo, AifoForm, AifoParams};
pub use around::Around;
pub use color::{Color, ColorParams};
pub use distribution::{Distribution, DistributionMean, DistributionParams};
pub use drop_tail::{DropTail, DropTailParams};
pub use last_packet::{LastPacket, LastPacketParams};
pub use probabilistic::{Probabilistic, ProbabilisticParams};
pub use red::{Red, RedParams};
pub use wred::{Wred, WredParams};

use crate::context::Context;
use crate::counters::DropReason;
use crate::random::Stream;
use crate::switch::QueueView;
use crate::switch::buffer::Capacity;
use crate::units::Rate;

/// The facts that a policy learns of its port before the first packet.
#[derive(Clone, Copy, Debug)]
pub struct PortFacts {
    /// The most that the port can hold.
    pub capacity: Capacity,
    pub rate: Rate,
}

crate::registry! {
    place: "switch.admission", question: "may this packet join this queue?", default: DropTail,
    params: AdmissionParams, policy: Admission as pub(super) trait Admits {
        /// Gives the policy the facts of its port. A policy that draws lots makes a stream of its
        /// own from `random`.
        fn install(&mut self, port: &PortFacts, random: &mut Stream) -> () = ();
        /// The reason to refuse the packet, or `None` to admit it. Changes nothing.
        fn test(&self, context: &Context<'_, QueueView>) -> Option<DropReason> = None;
        /// Records that the packet was offered to this queue, and whether it joins it then.
        fn commit(&mut self, context: &Context<'_, QueueView>, joins: bool) -> () = ();
        /// The packet joins the queue, of which the view does not count it yet: offered, or put
        /// there for another's sake. Only general ports call it.
        fn on_enqueue(&mut self, context: &Context<'_, QueueView>) -> () = ();
        /// The packet leaves the queue, of which the view still counts it. Only general ports call
        /// it.
        fn on_dequeue(&mut self, context: &Context<'_, QueueView>) -> () = ();
        /// Whether it must be notified of departures (then a port must hold packets until they
        /// leave).
        fn watches_departures(&self) -> bool = false;
    };
    "drop-tail" => DropTail { DropTailParams, DropTail; drop_tail::ABOUT },
    "aifo" => Aifo { AifoParams, Aifo; aifo::ABOUT },
    "color-aware" => Color { ColorParams, Color; color::ABOUT },
    "distribution" => Distribution { DistributionParams, Distribution; distribution::ABOUT },
    "last-packet" => LastPacket { LastPacketParams, LastPacket; last_packet::ABOUT },
    "probabilistic" => Probabilistic { ProbabilisticParams, Probabilistic; probabilistic::ABOUT },
    "red" => Red { RedParams, Red; red::ABOUT },
    "wred" => Wred { WredParams, Wred; wred::ABOUT },
}

/// One in 65536: shares are integers of it where they decide.
const ONE: u64 = 1 << 16;
/// Larger buffers count as this; it keeps products within 64 bits.
const CAPACITY_MAX: u64 = 1 << 36;

/// 1 − k of a burst headroom k, in 1/65536.
fn alpha(burst_headroom: f64) -> u64 {
    ONE - (burst_headroom.clamp(0.0, 1.0) * ONE as f64) as u64
}

#[cfg(test)]
mod tests;
