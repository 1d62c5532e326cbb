//! A packet's headers, in room of their own.
//!
//! Invariant: it has at most [`HEADER_MAX`] bytes.

/// The longest header that is kept: Ethernet, two tags, IPv4 and TCP with all options, and room for
/// IPv6 with a few extension headers.
pub const HEADER_MAX: usize = 160;

/// A packet's headers, Ethernet to transport.
#[derive(Clone, Copy)]
pub struct Header {
    length: u8,
    bytes: [u8; HEADER_MAX],
}

impl Default for Header {
    fn default() -> Self {
        Header { length: 0, bytes: [0; HEADER_MAX] }
    }
}

impl Header {
    /// Takes over the first bytes of a frame, [`HEADER_MAX`] at most.
    #[inline]
    pub fn set(&mut self, bytes: &[u8]) {
        let length = bytes.len().min(HEADER_MAX);
        self.bytes[..length].copy_from_slice(&bytes[..length]);
        self.length = length as u8;
    }
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
    /// The bytes, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.length)]
    }
}
