//! A packet's frame: its bytes, its headers as parsed, and the work that is still to be done to it.
//!
//! Invariant: the parts of a frame have its payload once and in order, and a reference each to its
//! buffer.

use super::buffers::{Buffers, Frame};
use super::frame::{Checksums, Header, Inner, Layers, Offload, Segmenter, View, parse};
use super::metadata;
use super::outgoing::Outgoing;
use super::packet::Packet;
use super::port::shared::Sender;
use millpond_core::packet::TrafficClass;
use std::io::IoSlice;

/// The frame of a packet.
pub struct Held {
    /// Its bytes.
    pub bytes: Packet,
    pub view: View,
    /// The work that is still to be done to it.
    pub offload: Offload,
}

impl Held {
    /// A copy of a frame; `None`: it is none, or no buffer is free.
    pub fn copy(frame: &[u8], buffers: &mut Buffers) -> Option<Held> {
        let view = parse(frame)?;
        let copied = Frame::copy(frame, Offload::default(), buffers)?;
        let mut parts = Vec::with_capacity(1);
        cut(&copied, &view, buffers, &mut parts);
        buffers.release(copied.buffer);
        parts.pop()
    }

    /// Its priority, its importance and its ECN field.
    pub fn class(&self) -> TrafficClass {
        metadata::class(self.bytes.header.bytes(), &self.view)
    }

    /// Hands it on as a frame on its way out.
    pub fn pass<T>(
        &self,
        buffers: &Buffers,
        sender: Sender<'_>,
        to: impl FnOnce(&Outgoing<'_>) -> T,
    ) -> T {
        let Held { bytes, view, offload } = self;
        let pieces = [IoSlice::new(bytes.header.bytes()), IoSlice::new(bytes.payload(buffers))];
        let (view, offload, length) = (*view, *offload, bytes.length());
        to(&Outgoing { view, offload, pieces: &pieces, length, sender })
    }
}

impl AsRef<Packet> for Held {
    fn as_ref(&self) -> &Packet {
        &self.bytes
    }
}

/// Cuts a super-segment into packets, as a NIC would on the way to a wire: switches decide of
/// packets. Packets with payload refer to the frame's buffer. `parts` is empty before.
pub fn cut(frame: &Frame, view: &View, buffers: &mut Buffers, parts: &mut Vec<Held>) {
    let range = frame.start..frame.start + frame.length;
    match view.layers().filter(|_| frame.offload.gso_size > 0) {
        Some(layers) => {
            let bytes = &buffers.bytes(frame.buffer)[range.clone()];
            let mss = frame.offload.gso_size.into();
            let mut segmenter = Segmenter::new(bytes, *layers, mss, Checksums::Partial);
            let mut header = Header::default();
            while let Some(payload) = segmenter.next(&mut header) {
                let offload = segmenter.offload(payload.len());
                let end = layers.payload + payload.len();
                let view = View { inner: Inner::Transport(Layers { end, ..*layers }), ..*view };
                let payload = payload.start + range.start..payload.end + range.start;
                let bytes = Packet::new(header, frame.buffer, payload);
                parts.push(Held { bytes, view, offload });
            }
        }
        None => {
            let headers = view.layers().map_or(range.len(), |layers| layers.payload);
            let bytes = Packet::of_frame(buffers, frame.buffer, range, headers);
            parts.push(Held { bytes, view: *view, offload: frame.offload });
        }
    }
    let payloads = parts.iter().filter(|part| part.bytes.has_payload()).count();
    buffers.retain(frame.buffer, payloads as u32);
}

#[cfg(test)]
impl From<Packet> for Held {
    fn from(bytes: Packet) -> Held {
        Held { view: bytes.view().unwrap(), bytes, offload: Offload::default() }
    }
}
