//! Overflow: *there is no room: what becomes of the packet?*
//!
//! Asked when a buffer has refused a packet. Only packets of transports that repair by it can be
//! trimmed (Ultra Ethernet's); all others are dropped, or deflected, as ever.
//!
//! Invariant: a packet is trimmed once, and no packet that has no payload is.

mod trim;

pub use trim::{TrimChoice, TrimParams};

use crate::registry::About;
use crate::switch::site::Auto;

const DROP: About = About { summary: "it is dropped", source: "the usual switch", ..About::PLAIN };

crate::params! {
    /// Dropping has no keys.
    pub struct DropParams {}
}

crate::registry! {
    /// The outcome of a packet for which there is no room.
    place: "switch.overflow", question: "there is no room: what becomes of the packet?",
    default: Drop, params: OverflowParams;
    "drop" => Drop { DropParams; DROP },
    "trim" => Trim { TrimParams; trim::ABOUT },
}

/// The settings of a switch that trims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Bytes on the wire of what is left.
    pub size: u16,
    /// Whose payload is cut off.
    pub choice: TrimChoice,
}

impl OverflowParams {
    /// The settings that a switch trims by; `None`: it drops. `least` is what a packet without
    /// payload has on the wire.
    pub fn trim(&self, least: u16) -> Option<Trim> {
        let OverflowParams::Trim(p) = self else { return None };
        let size = p.size.get().min(u64::from(u16::MAX)) as u16;
        Some(Trim { size: size.max(least), choice: p.choice })
    }

    /// Bytes that packets of the highest priority may take at a port whose own buffer has so many;
    /// `None`: they share that.
    pub fn headers(&self, buffer: u64) -> Option<u64> {
        let OverflowParams::Trim(p) = self else { return None };
        Some(match p.headers {
            Auto::Given(bytes) => bytes.get(),
            Auto::Auto => buffer.saturating_mul(2),
        })
    }
}
