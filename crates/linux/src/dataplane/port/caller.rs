//! A port whose frames its caller takes: the world `virtual` gives them to a kernel when their time
//! has come.
//!
//! Invariant: frames are taken in the order in which they were sent, and none is lost here.

use super::Refusal;
use crate::dataplane::frame::offload::{GsoType, Offload};
use std::io::IoSlice;

#[derive(Debug, Default)]
pub struct Caller {
    /// In the order in which they were sent.
    pub frames: Vec<(Offload, Vec<u8>)>,
    pub merges: bool,
}

impl Caller {
    pub(super) fn send(
        &mut self,
        offload: &Offload,
        pieces: &[IoSlice<'_>],
    ) -> Result<(), Refusal> {
        let mut bytes = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
        pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
        self.frames.push((*offload, bytes));
        Ok(())
    }

    /// Whether it takes what is still to be done to a frame.
    pub fn takes(&self, offload: &Offload) -> bool {
        self.merges || offload.gso == GsoType::None
    }
}
