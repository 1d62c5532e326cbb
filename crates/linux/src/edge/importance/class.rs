//! Reads and writes the importance of a frame's IP header.
//!
//! Encoding: the three DSCP bits below the class selector, as `dataplane::metadata` reads them.
//!
//! Invariant: a write changes these three bits and the IPv4 checksum, and no other bit. A right
//! IPv4 checksum stays right, and a wrong one stays wrong.

use crate::dataplane::frame::{Layers, Version, checksum};
use millpond_core::Importance;

/// The importance bits of the traffic class.
const BITS: u8 = 0b0001_1100;

/// Returns the byte that holds DSCP and ECN.
pub(super) fn byte(header: &[u8], layers: &Layers) -> u8 {
    let at = layers.network;
    match layers.version {
        Version::V4 => header[at + 1],
        Version::V6 => header[at] << 4 | header[at + 1] >> 4,
    }
}

/// Returns the importance that the code point names; [`Importance::Control`] for all others.
pub(super) fn importance(header: &[u8], layers: &Layers) -> Importance {
    of_byte(byte(header, layers))
}

fn of_byte(byte: u8) -> Importance {
    Importance::ALL.get(usize::from((byte & BITS) >> 2)).copied().unwrap_or_default()
}

/// Returns the traffic class with another importance; the class selector and ECN stay.
pub(super) fn with(byte: u8, importance: Importance) -> u8 {
    byte & !BITS | (importance as u8) << 2
}

/// Writes the importance. A header that names it already stays as it is.
pub(super) fn set(header: &mut [u8], layers: &Layers, importance: Importance) {
    let old = byte(header, layers);
    if of_byte(old) != importance {
        write(header, layers, with(old, importance));
    }
}

/// Writes the byte that holds DSCP and ECN.
pub(super) fn write(header: &mut [u8], layers: &Layers, byte: u8) {
    let at = layers.network;
    match layers.version {
        Version::V4 => {
            let word = |a: usize| u16::from_be_bytes([header[at + a], header[at + a + 1]]);
            let to = u16::from_be_bytes([header[at], byte]);
            let sum = checksum::updated(word(10), word(0), to);
            header[at + 1] = byte;
            header[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
        }
        Version::V6 => {
            header[at] = header[at] & 0xf0 | byte >> 4;
            header[at + 1] = header[at + 1] & 0x0f | byte << 4;
        }
    }
}
