//! Frame buffers: each as large as a frame can be, referred to by a 32-bit id, shared by the
//! packets that are cut from it.
//!
//! Invariant: a buffer is free, or somebody refers to it; memory grows to what was once in flight
//! together, and no further than the limit.

use super::frame::{Offload, vlan};

pub type BufferId = u32;
/// Bytes before a frame that was read: for a tag that it gets.
pub const ROOM: usize = vlan::LENGTH;
/// Room that a buffer must have: the longest frame that IP can have, with its tags.
pub const FRAME_MAX: usize = 65_536 + 64;
/// "No buffer": a packet without payload.
pub const NONE: BufferId = u32::MAX;

pub struct Buffers {
    buffers: Vec<Box<[u8]>>,
    references: Vec<u32>,
    /// The last that became free is taken first: it may still be in the cache.
    free: Vec<BufferId>,
    limit: usize,
}

impl Buffers {
    /// At most `limit` of them.
    pub fn new(limit: usize) -> Buffers {
        Buffers { buffers: Vec::new(), references: Vec::new(), free: Vec::new(), limit }
    }
    /// Another limit; memory beyond it is given back. A buffer in use stays, and so do those before
    /// it.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        while self.buffers.len() > limit && self.references.last() == Some(&0) {
            self.buffers.pop();
            self.references.pop();
        }
        let count = self.buffers.len() as BufferId;
        self.free.retain(|id| *id < count);
    }
    /// A buffer with one reference; `None` if all are in use.
    #[inline]
    pub fn take(&mut self) -> Option<BufferId> {
        if let Some(id) = self.free.pop() {
            self.references[id as usize] = 1;
            return Some(id);
        }
        if self.buffers.len() >= self.limit {
            return None;
        }
        self.buffers.push(vec![0; ROOM + FRAME_MAX].into_boxed_slice());
        self.references.push(1);
        Some((self.buffers.len() - 1) as BufferId)
    }
    #[inline]
    pub fn retain(&mut self, id: BufferId, count: u32) {
        self.references[id as usize] += count;
    }
    /// One less; the last one frees the buffer.
    #[inline]
    pub fn release(&mut self, id: BufferId) {
        let references = &mut self.references[id as usize];
        debug_assert!(*references > 0, "buffer {id} is free already");
        *references -= 1;
        if *references == 0 {
            self.free.push(id);
        }
    }
    /// Takes back all references but the caller's, after work has failed that had them.
    #[cold]
    pub fn disown(&mut self, id: BufferId) {
        self.references[id as usize] = 1;
    }
    /// Its bytes.
    #[inline]
    pub fn bytes(&self, id: BufferId) -> &[u8] {
        &self.buffers[id as usize]
    }
    /// Its bytes, to be written.
    #[inline]
    pub fn bytes_mut(&mut self, id: BufferId) -> &mut [u8] {
        &mut self.buffers[id as usize]
    }
    pub fn is_exhausted(&self) -> bool {
        self.free.is_empty() && self.buffers.len() >= self.limit
    }
    pub fn in_use(&self) -> usize {
        self.buffers.len() - self.free.len()
    }
}

/// A frame that was read: where it is.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub buffer: BufferId,
    /// From which byte on; where a port has read it no earlier than [`ROOM`].
    pub start: usize,
    /// How many bytes.
    pub length: usize,
    /// The work that is still to be done to it.
    pub offload: Offload,
}

impl Frame {
    /// A copy of a frame; `None`: no buffer is free, or it is longer than one.
    pub fn copy(bytes: &[u8], offload: Offload, buffers: &mut Buffers) -> Option<Frame> {
        let length = bytes.len();
        let buffer = if length <= FRAME_MAX { buffers.take()? } else { return None };
        buffers.bytes_mut(buffer)[ROOM..ROOM + length].copy_from_slice(bytes);
        Some(Frame { buffer, start: ROOM, length, offload })
    }
    /// Its bytes.
    pub fn bytes<'a>(&self, buffers: &'a Buffers) -> &'a [u8] {
        &buffers.bytes(self.buffer)[self.start..self.start + self.length]
    }
    /// A copy of its first bytes, to where a tag ends, and how many it has.
    pub fn front(&self, buffers: &Buffers) -> ([u8; vlan::AT + vlan::LENGTH], usize) {
        let mut front = [0; vlan::AT + vlan::LENGTH];
        let length = self.length.min(front.len());
        front[..length].copy_from_slice(&self.bytes(buffers)[..length]);
        (front, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reference_frees() {
        let mut buffers = Buffers::new(2);
        let (a, b) = (buffers.take().unwrap(), buffers.take().unwrap());
        assert_eq!(buffers.take(), None);
        buffers.retain(a, 1);
        buffers.release(a);
        assert_eq!(buffers.in_use(), 2);
        buffers.release(a);
        assert_eq!((buffers.in_use(), buffers.take()), (1, Some(a)));
        buffers.release(b);
        assert_eq!(buffers.in_use(), 1);
    }

    #[test]
    fn the_limit_can_change() {
        let mut buffers = Buffers::new(1);
        let a = buffers.take().unwrap();
        assert!(buffers.is_exhausted());
        buffers.set_limit(4);
        let more: Vec<BufferId> = (0..3).map(|_| buffers.take().unwrap()).collect();
        assert!(buffers.is_exhausted() && buffers.take().is_none());
        // The first is in use: those behind it go, and it stays.
        more.into_iter().for_each(|id| buffers.release(id));
        buffers.set_limit(0);
        assert_eq!((buffers.in_use(), buffers.buffers.len(), buffers.take()), (1, 1, None));
        buffers.set_limit(2);
        let b = buffers.take().unwrap();
        assert!(a != b && buffers.take().is_none());
    }
}
