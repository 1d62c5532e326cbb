//! A frame on its way out of the switch: pieces of buffers, and what is still to be done to them.
//!
//! Invariant: cut into packets, a frame has the same payload, and checksums that are whole.

use super::counters::Drop;
use super::frame::{Checksums, Header, Offload, Segmenter, View, fragment};
use super::port::shared::Sender;
use std::io::IoSlice;

/// A frame on its way out.
pub struct Outgoing<'a> {
    pub view: View,
    /// The work that is still to be done to it.
    pub offload: Offload,
    /// Its bytes, [`PIECES_MAX`](super::port::PIECES_MAX) pieces at most.
    pub pieces: &'a [IoSlice<'a>],
    /// How many bytes that is.
    pub length: usize,
    /// The sender that can be notified that it waits.
    pub sender: Sender<'a>,
}

impl<'a> Outgoing<'a> {
    /// A frame that waits for nobody who could be notified.
    pub fn of(view: View, offload: Offload, pieces: &'a [IoSlice<'a>]) -> Outgoing<'a> {
        let length = pieces.iter().map(|piece| piece.len()).sum();
        Outgoing { view, offload, pieces, length, sender: Sender::Elsewhere }
    }

    /// Its first bytes, so many at most.
    #[cold]
    pub fn front(&self, most: usize) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.iter().copied()).take(most).collect()
    }

    /// Whether the frame is one packet. A sender may claim segments for a payload that fits into
    /// one.
    #[inline]
    pub fn is_lone(&self) -> bool {
        let most = usize::from(self.offload.gso_size);
        most == 0 || self.view.layers().is_none_or(|layers| layers.end - layers.payload <= most)
    }

    /// Returns the frame as packets of at most `mtu` bytes with whole checksums, cut into fragments
    /// where a packet is longer.
    ///
    /// # Errors
    /// [`Drop::Oversized`] if a packet is longer and must not be cut; else as [`whole`].
    #[cold]
    pub fn fragments(&self, mtu: usize) -> Result<Vec<Vec<u8>>, Drop> {
        let ethernet = self.view.ethernet;
        let front = self.pieces.first().ok_or(Drop::Runt)?;
        if !fragment::may_be_cut(front, ethernet) {
            return Err(Drop::Oversized);
        }
        let (mut all, mut flat) = (Vec::new(), Vec::new());
        whole(self, &mut flat, |_, pieces| {
            let packet: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            match packet.len() <= ethernet + mtu {
                true => all.push(packet),
                false => {
                    all.extend(fragment::cut(&packet, ethernet, mtu).ok_or(Drop::Oversized)?);
                }
            }
            Ok(())
        })?;
        Ok(all)
    }
}

/// A frame in one piece, which waits.
#[derive(Debug)]
pub struct Kept {
    pub view: View,
    /// The work that is still to be done to it.
    pub offload: Offload,
    pub bytes: Vec<u8>,
}

impl Kept {
    pub fn of(frame: &Outgoing<'_>) -> Kept {
        Kept { view: frame.view, offload: frame.offload, bytes: frame.front(frame.length) }
    }
}

/// Cuts the frame into packets and completes their checksums.
///
/// # Errors
/// [`Drop::BadOffload`] if the offload names bytes that the frame lacks, and the errors of `send`.
pub fn whole(
    frame: &Outgoing<'_>,
    flat: &mut Vec<u8>,
    mut send: impl FnMut(&Offload, &[IoSlice<'_>]) -> Result<(), Drop>,
) -> Result<(), Drop> {
    flat.clear();
    frame.pieces.iter().for_each(|piece| flat.extend_from_slice(piece));
    let cut = frame.view.layers().filter(|l| frame.offload.gso_size > 0 || frame.offload.is_at(l));
    let Some(layers) = cut else {
        let mut offload = frame.offload;
        offload.fill(flat).map_err(|_| Drop::BadOffload)?;
        return send(&offload, &[IoSlice::new(flat)]);
    };
    let mut segmenter =
        Segmenter::new(flat, *layers, frame.offload.gso_size.into(), Checksums::Full);
    let mut header = Header::default();
    while let Some(payload) = segmenter.next(&mut header) {
        send(&Offload::default(), &[IoSlice::new(header.bytes()), IoSlice::new(&flat[payload])])?;
    }
    Ok(())
}
