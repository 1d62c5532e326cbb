//! Pause: *whom do I stop, and until when?*
//!
//! A policy sees, per ingress port and target, the bytes that the switch holds, and answers with a
//! frame to send upstream and a time at which it wants to look again. A frame names its target
//! ([`PauseTarget`]). The conduct of a paused port is the port's part
//! ([`super::port::GeneralPort`]) and exists whether or not any policy sends pauses.

mod bfc;
mod floor;
mod none;
mod pfc;
pub mod watchdog;

pub use bfc::{Bfc, BfcParams};
pub use floor::Floor;
pub use none::{Unpaused, UnpausedParams};
pub use pfc::{Pfc, PfcFrames, PfcParams};
pub use watchdog::{Watchdog, WatchdogAction, WatchdogTerms};

pub use super::pause_frame::{FRAME_BYTES, PauseFrame, PauseTarget};

use super::buffer::IngressFacts;
use super::queue::Load;
use crate::context::Context;
use crate::counters::Named;
use crate::units::{Rate, Time};

/// The counter of how long ports were paused, which switches and hosts report.
pub const PAUSED: &str = "paused_us";

/// The packets that the switch holds of what one ingress port's neighbour can be asked to stop.
#[derive(Clone, Copy, Debug)]
pub struct IngressView {
    pub port: u16,
    /// For which port the packet that is looked at is bound; of a check, none.
    pub egress: u16,
    /// Whom a frame to that neighbour would stop.
    pub target: PauseTarget,
    /// Bytes in the switch that came in there.
    pub bytes: u64,
    /// How they stand in the buffer.
    pub facts: IngressFacts,
    /// Of a packet in dynamic queues: how its own stands at the egress port.
    pub load: Option<Load>,
    pub rate: Rate,
}

/// The actions that a policy wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signal {
    pub frame: Option<PauseFrame>,
    /// Ask [`Pause::on_check`] of this ingress and target then.
    pub call_at: Option<Time>,
    /// The packet that joined counts against its flow until it leaves.
    pub counts: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseCounts {
    /// Frames sent that stop a target.
    pub frames: u64,
    /// Frames sent that let one go on.
    pub resumes: u64,
    /// Times that a target of an ingress port was stopped, until it was let go on.
    pub episodes: u64,
    /// Packets that arrived of a target that was to be stopped. One frame each is what TLT's
    /// simulators send.
    pub arrivals: u64,
}

impl PauseCounts {
    /// By name; `frames` every run reports.
    pub(super) fn report(&self, named: &mut Named) {
        named.add("episodes", self.episodes);
        named.add("arrivals_while_congested", self.arrivals);
        named.add("resume_frames", self.resumes);
    }
}

crate::registry! {
    place: "switch.pause", question: "whom do I stop, and until when?", default: None,
    params: PauseParams, policy: Pause as pub(super) trait Pauses {
        /// Gives the policy the facts of its ports: their links' rates.
        fn install(&mut self, ports: &[Rate]) -> () = ();
        /// A packet of this ingress was admitted.
        fn on_enqueue(&mut self, context: &Context<'_, IngressView>) -> Signal = Signal::default();
        /// A packet of this ingress left.
        fn on_dequeue(&mut self, context: &Context<'_, IngressView>) -> Signal = Signal::default();
        /// The time has come for which a [`Signal`] asked.
        fn on_check(&mut self, now: Time, view: &IngressView) -> Signal = Signal::default();
        fn counts(&self) -> PauseCounts = PauseCounts::default();
        /// A packet of this ingress was refused.
        fn on_refused(&mut self, context: &Context<'_, IngressView>) -> Signal = Signal::default();
        /// The targets that it has stopped until packets leave, by ingress port.
        fn stopped(&self) -> Vec<(u16, PauseTarget)> = Vec::new();
        /// Whether a target that is stopped stays so while no more than the view's packets wait.
        fn stays(&self, view: &IngressView, counted: u32) -> bool = false;
        /// Whether it ever sends anything (then ingress bytes must be counted).
        fn is_active(&self) -> bool = false;
        /// The rate at which each priority of a port is served although it is paused.
        fn min_rate(&self) -> Option<Rate> = None;
        /// The terms of the watchdog that ends a pause that lasts too long at a switch's ports, if
        /// there is one.
        fn watchdog(&self) -> Option<WatchdogTerms> = None;
        /// Whether it stops flows, which takes queues of flows at switches and NICs.
        fn stops_flows(&self) -> bool = false;
    };
    "bfc" => Bfc { BfcParams, Bfc; bfc::ABOUT },
    "none" => None { UnpausedParams, Unpaused; none::ABOUT },
    "pfc" => Pfc { PfcParams, Pfc; pfc::ABOUT },
}
