//! Packets that are too long for the paths to a peer, in fragments where they may be cut.
//!
//! Invariant: a frame that returns [`Drop::Oversized`] was not sent, not even in part.

use super::Uplink;
use crate::dataplane::buffers::{Buffers, Frame};
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::{Offload, View, parse};
use crate::dataplane::outgoing::Outgoing;
use crate::dataplane::port::shared::Sender;
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
        let (view, offload, length) = (*view, frame.offload, frame.length);
        let whole = Outgoing { view, offload, pieces: &pieces, length, sender: Sender::Elsewhere };
        for packet in whole.fragments(most.saturating_sub(view.ethernet))? {
            let view = parse(&packet).ok_or(Drop::Runt)?;
            let buffer = buffers.take().ok_or(Drop::NoBuffer)?;
            buffers.bytes_mut(buffer)[..packet.len()].copy_from_slice(&packet);
            let (length, offload) = (packet.len(), Offload::default());
            let mut part = Frame { buffer, start: 0, length, offload };
            let Uplink { paths, edge, .. } = self;
            let sent = edge.send(now, buffers, &mut part, &view, peer, paths);
            buffers.release(buffer);
            sent?;
        }
        Ok(())
    }
}
