//! Packets that are too long for the paths to a peer, in fragments where they may be cut.
//!
//! Invariant: a frame that returns [`Drop::Oversized`] was not sent, not even in part.

use super::Uplink;
use crate::dataplane::buffers::{Buffers, Frame};
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::{Offload, View, parse};
use crate::dataplane::outgoing::Outgoing;
use crate::switch::node::Remote;
use millpond_core::Time;
use std::io::IoSlice;

impl Uplink {
    /// Sends the fragments of a frame that is too long for a peer.
    #[cold]
    pub(super) fn send_cut(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frame: &Frame,
        view: &View,
        peer: usize,
    ) -> Result<(), Drop> {
        let most = self.frame_max(peer).ok_or(Drop::Oversized)?;
        let pieces = [IoSlice::new(frame.bytes(buffers))];
        let whole = Outgoing::of(*view, frame.offload, &pieces);
        for packet in whole.fragments(most.saturating_sub(view.ethernet))? {
            let view = parse(&packet).ok_or(Drop::Runt)?;
            let part = Frame::copy(&packet, Offload::default(), buffers);
            let mut part = part.ok_or(Drop::NoBuffer)?;
            let Uplink { paths, edge, .. } = self;
            let sent = edge.send(now, buffers, &mut part, &view, peer, paths);
            buffers.release(part.buffer);
            sent?;
        }
        Ok(())
    }
}
