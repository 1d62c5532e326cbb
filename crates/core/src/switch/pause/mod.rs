//! Pause: *whom do I stop, and until when?*
//!
//! A policy sees, per ingress port and priority, the bytes that the switch holds, and answers with a frame to send
//! upstream and a time at which it wants to look again. What a paused port does is the port's part
//! ([`super::port::GeneralPort`]) and exists whether or not any policy sends pauses.

mod none;
mod pfc;

pub use none::{Unpaused, UnpausedParams};
pub use pfc::{Pfc, PfcFrames, PfcParams};

use super::buffer::IngressFacts;
use crate::context::Context;
use crate::counters::Named;
use crate::units::{Rate, Time};

/// Bytes of a pause frame on the wire: the least that Ethernet has.
pub const FRAME_BYTES: u64 = 64;

/// The counter of how long ports were paused, which switches and hosts tell.
pub const PAUSED: &str = "paused_us";

/// A frame for the upstream neighbour of one ingress port (IEEE 802.1Qbb): stop this priority until then, or go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseFrame {
    /// Which priority.
    pub priority: u8,
    /// Until when, from the frame's arrival; zero resumes.
    pub duration: Time,
}

/// What the switch holds for one ingress port and priority.
#[derive(Clone, Copy, Debug)]
pub struct IngressView {
    /// The ingress port.
    pub port: u16,
    /// The priority.
    pub priority: u8,
    /// Bytes in the switch that came in there.
    pub bytes: u64,
    /// How they stand in the buffer.
    pub facts: IngressFacts,
}

/// What a policy wants done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signal {
    /// Send this upstream.
    pub frame: Option<PauseFrame>,
    /// Ask [`Pause::on_check`] of this ingress and priority then.
    pub call_at: Option<Time>,
}

/// What a policy has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseCounts {
    /// Frames sent that stop a priority.
    pub frames: u64,
    /// Frames sent that let one go on.
    pub resumes: u64,
    /// Times that a priority of an ingress port was stopped, until it was let go on.
    pub episodes: u64,
    /// Packets that arrived in a priority that was to be stopped. One frame each is what TLT's simulators send.
    pub arrivals: u64,
}

impl PauseCounts {
    /// By name; `frames` every run tells.
    pub(super) fn tell(&self, named: &mut Named) {
        named.add("episodes", self.episodes);
        named.add("arrivals_while_congested", self.arrivals);
        named.add("resume_frames", self.resumes);
    }
}

/// What a pause answers; one that stops nobody has nothing to say.
pub(super) trait Pauses {
    /// Tells the policy of its ports: their links' rates.
    fn install(&mut self, _: &[Rate]) {}
    /// A packet of this ingress was admitted.
    fn on_enqueue(&mut self, _: &Context<'_, IngressView>) -> Signal {
        Signal::default()
    }
    /// A packet of this ingress left.
    fn on_dequeue(&mut self, _: &Context<'_, IngressView>) -> Signal {
        Signal::default()
    }
    /// The time has come for which a [`Signal`] asked. It is no packet's doing.
    fn on_check(&mut self, _: Time, _: &IngressView) -> Signal {
        Signal::default()
    }
    /// What was counted.
    fn counts(&self) -> PauseCounts {
        PauseCounts::default()
    }
    /// Whether it ever sends anything (then ingress bytes must be counted).
    fn is_active(&self) -> bool {
        false
    }
}

crate::registry! {
    /// Which pause, with its parameters.
    place: "switch.pause", question: "whom do I stop, and until when?", default: None,
    params: PauseParams, policy: Pause {
        /// Tells the policy of its ports: their links' rates.
        fn install(&mut self, ports: &[Rate]) -> ();
        /// A packet of this ingress was admitted.
        fn on_enqueue(&mut self, context: &Context<'_, IngressView>) -> Signal;
        /// A packet of this ingress left.
        fn on_dequeue(&mut self, context: &Context<'_, IngressView>) -> Signal;
        /// The time has come for which a [`Signal`] asked.
        fn on_check(&mut self, now: Time, view: &IngressView) -> Signal;
        /// What was counted.
        fn counts(&self) -> PauseCounts;
        /// Whether it ever sends anything (then ingress bytes must be counted).
        fn is_active(&self) -> bool;
    };
    "none" => None { UnpausedParams, Unpaused; none::ABOUT },
    "pfc" => Pfc { PfcParams, Pfc; pfc::ABOUT },
}
