//! No deflection: what a queue refuses is dropped.

use super::Deflects;
use crate::packet::Packet;
use crate::random::Stream;
use crate::registry::About;
use crate::switch::PortView;

pub(super) const ABOUT: About = About {
    summary: "what a queue refuses is dropped",
    source: "every ordinary switch",
    needs: &[],
    breaks: &[],
    restores: &[],
};

crate::params! {
    /// Nothing to set.
    pub struct UndeflectedParams {}
}

/// Never deflects.
#[derive(Clone, Debug)]
pub struct Undeflected;

impl Undeflected {
    pub(super) fn new(_: &UndeflectedParams) -> Undeflected {
        Undeflected
    }
}

impl Deflects for Undeflected {
    #[inline]
    fn choose(&mut self, _: u16, _: &[u16], _: &Packet, _: &mut dyn PortView, _: &mut Stream) -> Option<u16> {
        None
    }
}
