//! Drop-tail: what the buffer has room for is admitted.

use super::Admits;
use crate::registry::About;

pub(super) const ABOUT: About = About {
    summary: "admits whatever the buffer has room for",
    source: "the buffer's own rule; RFC 2309 §2 names it",
    ..About::PLAIN
};

crate::params! {
    /// Drop-tail has no keys.
    pub struct DropTailParams {}
}

/// Admits everything that fits.
#[derive(Clone, Debug)]
pub struct DropTail;

impl DropTail {
    pub(super) fn new(_: &DropTailParams) -> DropTail {
        DropTail
    }
}

impl Admits for DropTail {}
