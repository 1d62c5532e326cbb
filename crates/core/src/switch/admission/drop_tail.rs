//! Drop-tail: what the buffer has room for is admitted.

use crate::counters::DropReason;
use crate::packet::Packet;
use crate::registry::About;
use crate::switch::QueueView;

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
    #[inline]
    pub(super) fn test(&self, _: &QueueView, _: &Packet) -> Option<DropReason> {
        None
    }
    #[inline]
    pub(super) fn commit(&mut self, _: &QueueView, _: &Packet) {}
}
