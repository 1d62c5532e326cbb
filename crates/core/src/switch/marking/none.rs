//! No marking: the queue signals by dropping alone.

use crate::registry::About;
use crate::switch::QueueView;

pub(super) const ABOUT: About =
    About { summary: "never marks", source: "RFC 3168 §5, not used", needs: &[], breaks: &[], restores: &[] };

crate::params! {
    /// Nothing to set.
    pub struct UnmarkedParams {}
}

/// Never marks.
#[derive(Clone, Debug)]
pub struct Unmarked;

impl Unmarked {
    pub(super) fn new(_: &UnmarkedParams) -> Unmarked {
        Unmarked
    }
    pub(super) fn at_enqueue(&self, _: &QueueView) -> bool {
        false
    }
    pub(super) fn at_dequeue(&self, _: &QueueView) -> bool {
        false
    }
    pub(super) fn marks_at_dequeue(&self) -> bool {
        false
    }
}
