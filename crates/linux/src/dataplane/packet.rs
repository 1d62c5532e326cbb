//! A packet on its way: headers of its own, payload in a shared buffer.
//!
//! Invariant: a packet holds one reference to its buffer, which whoever ends the packet gives back.

use crate::dataplane::buffers::{BufferId, Buffers, NONE};
use crate::dataplane::frame::{HEADER_MAX, Header, View, parse_head};
use std::ops::Range;

/// The packet.
#[derive(Clone)]
pub struct Packet {
    /// Its first bytes: all headers at least, where they are understood.
    pub header: Header,
    buffer: BufferId,
    start: u32,
    end: u32,
}

impl Packet {
    /// Of these first bytes and a range of a buffer. If that is not empty the caller adds a
    /// reference to the buffer.
    #[inline]
    pub fn new(header: Header, buffer: BufferId, payload: Range<usize>) -> Packet {
        let buffer = if payload.is_empty() { NONE } else { buffer };
        Packet { header, buffer, start: payload.start as u32, end: payload.end as u32 }
    }
    /// As [`Packet::new`], of a frame that lies in a buffer; `headers` of its bytes are kept apart,
    /// as far as there is room.
    pub fn of_frame(
        buffers: &Buffers,
        buffer: BufferId,
        frame: Range<usize>,
        headers: usize,
    ) -> Packet {
        let split = frame.start + headers.min(HEADER_MAX).min(frame.len());
        let mut header = Header::default();
        header.set(&buffers.bytes(buffer)[frame.start..split]);
        Packet::new(header, buffer, split..frame.end)
    }
    /// As [`Packet::of_frame`]; its headers are found. Returns their fields, too: no more than the
    /// header that is kept apart has, and `None` if that is no frame's.
    #[inline]
    pub fn read(
        buffers: &Buffers,
        buffer: BufferId,
        frame: Range<usize>,
    ) -> (Packet, Option<View>) {
        let bytes = &buffers.bytes(buffer)[frame.clone()];
        let view = parse_head(&bytes[..bytes.len().min(HEADER_MAX)], bytes.len());
        let headers = view.and_then(|v| v.layers().map(|l| l.payload)).unwrap_or(HEADER_MAX);
        (Packet::of_frame(buffers, buffer, frame, headers), view)
    }
    /// Parses the header; `None` if it is not that of a frame.
    pub fn view(&self) -> Option<View> {
        parse_head(self.header.bytes(), self.length())
    }
    /// Whether it refers to its buffer.
    #[inline]
    pub fn has_payload(&self) -> bool {
        self.buffer != NONE
    }
    /// The bytes that follow its headers.
    #[inline]
    pub fn payload<'a>(&self, buffers: &'a Buffers) -> &'a [u8] {
        match self.buffer {
            NONE => &[],
            buffer => &buffers.bytes(buffer)[self.start as usize..self.end as usize],
        }
    }
    /// How many bytes the frame has.
    #[inline]
    pub fn length(&self) -> usize {
        self.header.bytes().len() + (self.end - self.start) as usize
    }
    #[inline]
    pub fn end(&mut self, buffers: &mut Buffers) {
        if self.buffer != NONE {
            buffers.release(std::mem::replace(&mut self.buffer, NONE));
        }
    }
}
