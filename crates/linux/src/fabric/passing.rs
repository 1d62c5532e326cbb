//! Copies of frames that pass the ends of links which somebody watches.
//!
//! Invariant: watching changes no frame and no time, and an end that nobody watches costs a
//! comparison a frame.

use crate::dataplane::buffers::Buffers;
use crate::dataplane::frame::Offload;
use crate::dataplane::packet::Packet as Bytes;
use millpond_core::{Packet, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// A line: the port of a switch.
    Port(u32),
    Host(u32),
}

/// Which ends of a line's link are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Watched {
    pub port: bool,
    pub host: bool,
}

/// A frame that has passed an end which is watched.
pub struct Passed {
    /// When its last bit left there, or arrived.
    pub at: Time,
    pub end: LinkEnd,
    /// Whether it left the end, or came to it.
    pub outgoing: bool,
    pub packet: Packet,
    /// Its bytes, with a whole transport checksum.
    pub bytes: Vec<u8>,
}

/// A copy of a frame, with a whole transport checksum.
pub(super) fn copy(bytes: &Bytes, mut offload: Offload, buffers: &Buffers) -> Vec<u8> {
    let mut frame = Vec::with_capacity(bytes.length());
    frame.extend_from_slice(bytes.header.bytes());
    frame.extend_from_slice(bytes.payload(buffers));
    // A checksum beyond the frame's end stays as it is.
    let _ = offload.fill(&mut frame);
    frame
}
