//! The fields of an IP header that switches and shims read and write.
//!
//! Invariant: a write changes its field and the IPv4 header's checksum, and no other bit; a
//! checksum stays as right or as wrong as it was.

/// Which Internet protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// Four.
    V4,
    /// Six.
    V6,
}

/// An IP header that begins at a byte of a frame, and is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    pub version: Version,
    /// Its first byte.
    pub at: usize,
}

impl Ip {
    /// Type of service, or traffic class: DSCP and ECN.
    pub fn class(self, header: &[u8]) -> u8 {
        let at = self.at;
        match self.version {
            Version::V4 => header[at + 1],
            Version::V6 => header[at] << 4 | header[at + 1] >> 4,
        }
    }
    /// Writes that byte.
    pub fn set_class(self, header: &mut [u8], class: u8) {
        let at = self.at;
        match self.version {
            Version::V4 => self.set_word(header, 0, |word| word & 0xff00 | u16::from(class)),
            Version::V6 => {
                header[at] = header[at] & 0xf0 | class >> 4;
                header[at + 1] = header[at + 1] & 0x0f | class << 4;
            }
        }
    }
    pub fn hops(self, header: &[u8]) -> u8 {
        header[self.at + if self.version == Version::V4 { 8 } else { 7 }]
    }
    pub fn set_hops(self, header: &mut [u8], hops: u8) {
        match self.version {
            Version::V4 => self.set_word(header, 8, |word| u16::from(hops) << 8 | word & 0xff),
            Version::V6 => header[self.at + 7] = hops,
        }
    }

    /// Changes sixteen bits of an IPv4 header, and its checksum with them.
    fn set_word(self, header: &mut [u8], at: usize, change: impl FnOnce(u16) -> u16) {
        let word = |header: &[u8], at: usize| {
            u16::from_be_bytes([header[self.at + at], header[self.at + at + 1]])
        };
        let from = word(header, at);
        let to = change(from);
        let sum = updated(word(header, 10), from, to);
        for (at, word) in [(at, to), (10, sum)] {
            header[self.at + at..self.at + at + 2].copy_from_slice(&word.to_be_bytes());
        }
    }
}

/// The checksum of what had `checksum` before one of its words changed (RFC 1624, equation 3).
#[inline]
pub fn updated(checksum: u16, from: u16, to: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!from) + u32::from(to);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
