//! Reads and writes the importance of a frame's IP header.
//!
//! Encoding: the three DSCP bits below the class selector, as `dataplane::metadata` reads them.
//!
//! Invariant: a write changes these three bits and the IPv4 checksum, and no other bit. A right
//! IPv4 checksum stays right, and a wrong one stays wrong.

use crate::dataplane::frame::Layers;
use millpond_core::Importance;

/// The importance bits of the traffic class.
const BITS: u8 = 0b0001_1100;

/// Returns the importance that the code point names; [`Importance::Control`] for all others.
pub(super) fn importance(byte: u8) -> Importance {
    Importance::ALL.get(usize::from((byte & BITS) >> 2)).copied().unwrap_or_default()
}

/// Returns the traffic class with another importance; the class selector and ECN stay.
pub(super) fn with(byte: u8, importance: Importance) -> u8 {
    byte & !BITS | (importance as u8) << 2
}

/// Writes the importance. A header that names it already stays as it is.
pub(super) fn set(header: &mut [u8], layers: &Layers, to: Importance) {
    let old = layers.ip().class(header);
    if importance(old) != to {
        layers.ip().set_class(header, with(old, to));
    }
}
