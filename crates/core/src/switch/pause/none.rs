//! No pause: nobody is stopped.

use super::{IngressView, PauseCounts, Signal};
use crate::registry::About;
use crate::units::{Rate, Time};

pub(super) const ABOUT: About = About {
    summary: "nobody is stopped",
    source: "Ethernet without IEEE 802.3x",
    needs: &[],
    breaks: &[],
    restores: &[],
};

crate::params! {
    /// Nothing to set.
    pub struct UnpausedParams {}
}

/// Never pauses.
#[derive(Clone, Debug)]
pub struct Unpaused;

impl Unpaused {
    pub(super) fn new(_: &UnpausedParams) -> Unpaused {
        Unpaused
    }
    pub(super) fn install(&mut self, _: &[Rate]) {}
    #[inline]
    pub(super) fn on_enqueue(&mut self, _: Time, _: &IngressView) -> Signal {
        Signal::default()
    }
    #[inline]
    pub(super) fn on_dequeue(&mut self, _: Time, _: &IngressView) -> Signal {
        Signal::default()
    }
    pub(super) fn on_check(&mut self, _: Time, _: &IngressView) -> Signal {
        Signal::default()
    }
    pub(super) fn counts(&self) -> PauseCounts {
        PauseCounts::default()
    }
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        false
    }
}
