//! Drop-tail: what the buffer has room for is admitted.

use super::PortFacts;
use crate::counters::DropReason;
use crate::packet::Packet;
use crate::random::Stream;
use crate::registry::About;
use crate::switch::QueueView;
use crate::units::Time;

pub(super) const ABOUT: About = About {
    summary: "admits whatever the buffer has room for",
    source: "the buffer's own rule; RFC 2309 §2 names it",
    needs: &[],
    breaks: &[],
    restores: &[],
};

crate::params! {
    /// Nothing to set.
    pub struct DropTailParams {}
}

/// Admits everything that fits.
#[derive(Clone, Debug)]
pub struct DropTail;

impl DropTail {
    pub(super) fn new(_: &DropTailParams) -> DropTail {
        DropTail
    }
    pub(super) fn install(&mut self, _: &PortFacts, _: &mut Stream) {}
    #[inline]
    pub(super) fn test(&self, _: Time, _: &QueueView, _: &Packet) -> Option<DropReason> {
        None
    }
    #[inline]
    pub(super) fn commit(&mut self, _: Time, _: &QueueView, _: &Packet, _: bool) {}
    #[inline]
    pub(super) fn on_enqueue(&mut self, _: Time, _: &Packet) {}
    #[inline]
    pub(super) fn on_dequeue(&mut self, _: Time, _: &QueueView, _: &Packet) {}
    pub(super) fn watches_departures(&self) -> bool {
        false
    }
}
