//! Pause: *whom do I stop, and until when?*
//!
//! A policy sees, per ingress port and priority, the bytes that the switch holds, and answers with a frame to send
//! upstream. What a paused port does is the port's part ([`super::port::GeneralPort`]) and exists whether or not any
//! policy sends pauses.

mod none;

pub use none::{Unpaused, UnpausedParams};

use crate::units::Time;

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
    /// Bytes that the shared buffer has free.
    pub free: u64,
}

crate::registry! {
    /// Which pause, with its parameters.
    place: "switch.pause", question: "whom do I stop, and until when?", default: None,
    params: PauseParams, policy: Pause {
        /// The frame to send upstream after a packet of this ingress was admitted.
        fn on_enqueue(&mut self, now: Time, view: &IngressView) -> Option<PauseFrame>;
        /// The frame to send upstream after a packet of this ingress left.
        fn on_dequeue(&mut self, now: Time, view: &IngressView) -> Option<PauseFrame>;
        /// Whether it ever sends anything (then ingress bytes must be counted).
        fn is_active(&self) -> bool;
    };
    "none" => None { UnpausedParams, Unpaused; none::ABOUT },
}
