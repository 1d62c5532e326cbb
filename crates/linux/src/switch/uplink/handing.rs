//! Frames for a peer that does not answer this worker, because it has fewer: the first worker sends
//! them.
//!
//! A reply comes to the first worker, then, whose queue of a tap writes it, so the kernel hands the
//! connection's frames to that worker from there on.
//!
//! Invariant: frames of one flow are handed over in their order; so many wait at most.

use super::Uplink;
use crate::dataplane::buffers::{Buffers, Frame};
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::parse;
use crate::dataplane::port::shared::Sender;
use crate::switch::node::{Node, Remote};
use crate::switch::order::Handed;
use millpond_core::Time;
use std::sync::Arc;

/// Frames that may be on their way to the first worker.
const WAITING: usize = 1024;

/// Frames of a round, for the first worker.
#[derive(Default)]
pub(super) struct Handing {
    frames: Vec<Handed>,
    /// Each frame under way has a copy of it.
    under_way: Arc<()>,
}

impl Uplink {
    /// Hands frames to the first worker from now on, if a peer does not answer this one.
    pub fn follow(&mut self) {
        self.handing.get_or_insert_default();
    }

    /// Whether frames for a peer are the first worker's to send.
    #[inline]
    pub(super) fn hands_over(&self, now: Time, peer: usize) -> bool {
        self.handing.is_some() && !self.paths.peers.get(peer).is_some_and(|peer| peer.answers(now))
    }

    #[cold]
    pub(super) fn hand_over(
        &mut self,
        buffers: &Buffers,
        frame: &Frame,
        peer: usize,
    ) -> Result<(), Drop> {
        let handing = self.handing.as_mut().ok_or(Drop::Nowhere)?;
        if Arc::strong_count(&handing.under_way) > WAITING {
            return Err(Drop::PathFull);
        }
        let (bytes, place) = (frame.bytes(buffers).to_vec(), handing.under_way.clone());
        handing.frames.push(Handed { peer, offload: frame.offload, bytes, place });
        Ok(())
    }

    /// Returns the frames of this round that are for the first worker.
    pub fn take_away(&mut self) -> Vec<Handed> {
        let frames = self.handing.as_mut().map(|handing| &mut handing.frames);
        frames.map(std::mem::take).unwrap_or_default()
    }

    /// Sends a frame of another worker, and answers one that is too long.
    pub fn take_handed(
        &mut self,
        now: Time,
        handed: Handed,
        buffers: &mut Buffers,
        node: &mut Node,
    ) {
        let Handed { peer, offload, bytes, .. } = handed;
        let Some(buffer) = buffers.take() else {
            return self.edge.counters.drop(Drop::NoBuffer);
        };
        let length = bytes.len();
        buffers.bytes_mut(buffer)[..length].copy_from_slice(&bytes);
        let frame = Frame { buffer, start: 0, length, offload };
        let sent = match parse(&bytes) {
            Some(view) => {
                let to = Some((peer, Sender::Elsewhere));
                let sent = self.transmit(now, buffers, &frame, &view, to);
                if sent == Err(Drop::Oversized) {
                    node.answer_too_big(now, &bytes, &view, self.frame_max(peer));
                }
                sent.map(|_| ())
            }
            None => Err(Drop::Runt),
        };
        buffers.release(buffer);
        if let Err(reason) = sent {
            self.edge.counters.drop(reason);
        }
    }
}
