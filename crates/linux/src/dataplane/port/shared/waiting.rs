//! A frame that waits for an application.
//!
//! Invariant: its sender's buffer comes back when the frame is gone.

use super::link::{Origin, Ticket};
use std::io::IoSlice;

#[derive(Debug)]
pub struct Waiting {
    pub bytes: Vec<u8>,
    /// The tag that the application finds beside it.
    pub tag: u16,
    _ticket: Option<Ticket>,
}

impl Waiting {
    /// Copies a frame; it has the buffer of `origin` until it is gone.
    pub fn new(pieces: &[IoSlice<'_>], tag: u16, origin: Option<&Origin>) -> Waiting {
        let bytes = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        Waiting { bytes, tag, _ticket: origin.map(Ticket::of) }
    }
}
