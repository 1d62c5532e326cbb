//! No pause: nobody is stopped.

use super::{IngressView, PauseFrame};
use crate::registry::About;
use crate::units::Time;

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
    #[inline]
    pub(super) fn on_enqueue(&mut self, _: Time, _: &IngressView) -> Option<PauseFrame> {
        None
    }
    #[inline]
    pub(super) fn on_dequeue(&mut self, _: Time, _: &IngressView) -> Option<PauseFrame> {
        None
    }
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        false
    }
}
