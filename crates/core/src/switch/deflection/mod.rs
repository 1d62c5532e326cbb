//! Deflection: *the queue refused it: where else?*

mod none;

pub use none::{Undeflected, UndeflectedParams};

use crate::packet::Packet;
use crate::random::Stream;
use crate::switch::PortView;

crate::registry! {
    /// Which deflection, with its parameters.
    place: "switch.deflection", question: "the queue refused it: where else?", default: None,
    params: DeflectionParams, policy: Deflection {
        /// Another port for a packet that `refused` would not take, or `None` to drop it.
        fn choose(&mut self, refused: u16, packet: &Packet, ports: &dyn PortView, random: &mut Stream) -> Option<u16>;
    };
    "none" => None { UndeflectedParams, Undeflected; none::ABOUT },
}
