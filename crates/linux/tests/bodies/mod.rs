//! Bodies of fuzz targets: each gives any bytes to some functions that read or write frames.
//!
//! | file | content |
//! |---|---|
//! | `frames` | one frame through functions of one frame |
//! | `datagrams` | messages between switches and hosts |
//! | `whole` | several frames through the edge and through a switch |
//! | `inputs` | valid inputs, and changes of them |
//!
//! An input is a virtio header and a frame or a datagram. `tests/frames.rs` runs all bodies with
//! seeded inputs, and a target of `fuzz/` each of them with libFuzzer's. `tests/frames.txt` names
//! the functions that each body reaches; a test compares it with the sources.
//!
//! Invariant: a body panics only if a function panics or breaks what its module promises.

mod datagrams;
mod frames;
pub mod inputs;
mod whole;

use crate::dataplane::frame::offload::LENGTH;

/// A body.
pub struct Body {
    /// Its name, which is its fuzz target's.
    pub name: &'static str,
    /// Runs it.
    pub run: fn(&[u8]),
    /// The inputs of which it takes one: cheap bodies take each.
    pub each: u64,
    /// Whether its input is several frames ([`inputs::Inputs::several`]).
    pub takes_several: bool,
}

const fn body(name: &'static str, each: u64, run: fn(&[u8])) -> Body {
    Body { name, run, each, takes_several: false }
}

/// All bodies.
pub const BODIES: &[Body] = &[
    body("frame", 1, frames::frame),
    body("headers", 1, frames::headers),
    body("fabric", 1, frames::fabric),
    body("fragment", 1, frames::fragment),
    body("neighbour", 1, frames::neighbour),
    body("merge", 1, frames::merge),
    body("encapsulation", 1, datagrams::encapsulation),
    body("netlink", 1, datagrams::netlink),
    body("peer", 64, datagrams::peer),
    body("tunnel", 256, datagrams::tunnel),
    body("overlay", 256, datagrams::overlay),
    body("notification", 256, datagrams::notification),
    Body { takes_several: true, ..body("edge", 64, whole::edge) },
    Body { takes_several: true, ..body("switch", 64, whole::switch) },
];

/// Runs the body of this name.
///
/// # Panics
/// If there is none, or if it fails.
pub fn run(name: &str, bytes: &[u8]) {
    let body = BODIES.iter().find(|body| body.name == name);
    (body.unwrap_or_else(|| panic!("no body is called {name}")).run)(bytes);
}

/// The virtio header, whose words are also the parameters of calls, and the frame.
fn split(bytes: &[u8]) -> Option<(&[u8; LENGTH], &[u8])> {
    bytes.split_first_chunk()
}

/// A parameter of calls.
fn word(header: &[u8; LENGTH], at: usize) -> usize {
    u16::from_ne_bytes([header[at], header[at + 1]]).into()
}
