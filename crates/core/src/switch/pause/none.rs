//! No pause: nobody is stopped.

use super::Pauses;
use crate::registry::About;

pub(super) const ABOUT: About =
    About { summary: "nobody is stopped", source: "Ethernet without IEEE 802.3x", ..About::PLAIN };

crate::params! {
    /// A switch that never pauses has no keys.
    pub struct UnpausedParams {}
}

/// Never sends a pause frame.
#[derive(Clone, Debug)]
pub struct Unpaused;

impl Unpaused {
    pub(super) fn new(_: &UnpausedParams) -> Unpaused {
        Unpaused
    }
}

impl Pauses for Unpaused {}
