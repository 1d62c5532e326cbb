//! No deflection: what a queue refuses is dropped.

use super::{Deflects, Elsewhere};
use crate::context::Context;
use crate::registry::About;

pub(super) const ABOUT: About = About {
    summary: "what a queue refuses is dropped",
    source: "every ordinary switch",
    ..About::PLAIN
};

crate::params! {
    /// A switch that never deflects has no keys.
    pub struct UndeflectedParams {}
}

/// Drops each refused packet.
#[derive(Clone, Debug)]
pub struct Undeflected;

impl Undeflected {
    pub(super) fn new(_: &UndeflectedParams) -> Undeflected {
        Undeflected
    }
}

impl Deflects for Undeflected {
    #[inline]
    fn choose(&mut self, _: &mut Context<'_, Elsewhere<'_>>) -> Option<u16> {
        None
    }
}
