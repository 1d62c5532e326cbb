//! No marking: the queue signals by dropping alone.

use super::Marks;
use crate::registry::About;
use crate::switch::QueueView;

pub(super) const ABOUT: About =
    About { summary: "never marks", source: "RFC 3168 §5, not used", ..About::PLAIN };

crate::params! {
    /// A port that never marks has no keys.
    pub struct UnmarkedParams {}
}

/// Leaves every packet unmarked.
#[derive(Clone, Debug)]
pub struct Unmarked;

impl Unmarked {
    pub(super) fn new(_: &UnmarkedParams) -> Unmarked {
        Unmarked
    }
}

impl Marks for Unmarked {
    fn asked_from(&self) -> QueueView {
        QueueView { packets: u32::MAX, bytes: u64::MAX }
    }
}
