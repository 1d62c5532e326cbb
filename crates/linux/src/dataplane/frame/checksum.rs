//! The Internet checksum (RFC 1071), and the pseudo-header's share of it.
//!
//! Invariant: a sum is kept in the machine's own byte order, which ones' complement allows, and is
//! turned once, when it is written.

use super::ip::Version;
pub use super::ip::updated;
use super::parse::Layers;

/// A ones' complement sum of 16-bit words, not yet folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes that start at an even offset of what is summed; an odd last byte is padded, so it
    /// must be the last.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let mut sum = self.0;
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            sum += u64::from(u32::from_ne_bytes(*word));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Sum(sum + u64::from(u32::from_ne_bytes(last)))
    }
    /// Adds one word, given as a number.
    #[inline]
    pub fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word.to_be()))
    }
    /// The folded sum, as a number; not inverted.
    #[inline]
    pub fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        u16::from_be(sum as u16)
    }
    /// The checksum: the folded sum, inverted.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.fold()
    }
}

/// Writes the checksum of all of these bytes to where it is among them.
#[inline]
pub fn set(bytes: &mut [u8], at: usize) {
    bytes[at..at + 2].fill(0);
    let sum = Sum::default().bytes(bytes).checksum();
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The sum over the pseudo-header of a transport segment of `length` bytes, header included (RFC
/// 9293 §3.1, RFC 8200 §8.1). A partial checksum is this, folded and not inverted.
#[inline]
pub fn pseudo(frame: &[u8], layers: &Layers, length: usize) -> Sum {
    let network = layers.network;
    let addresses = match layers.version {
        Version::V4 => &frame[network + 12..network + 20],
        Version::V6 => &frame[network + 8..network + 40],
    };
    // A length of IP without jumbograms is below 2^16.
    Sum::default().bytes(addresses).word(layers.protocol.number().into()).word(length as u16)
}

/// Whether the transport checksum of a frame that claims a full one is right. A UDP checksum of 0
/// over IPv4 means none.
pub fn is_right(frame: &[u8], layers: &Layers) -> bool {
    let segment = &frame[layers.transport..layers.end];
    let at = layers.checksum_at();
    let none = layers.version == Version::V4
        && layers.protocol == super::Protocol::Udp
        && frame[at..at + 2] == [0, 0];
    none || pseudo(frame, layers, segment.len()).bytes(segment).fold() == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 1071 §3: 0001 f203 f4f5 f6f7 sum to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().bytes(&bytes).fold(), 0xddf2);
        assert_eq!(Sum::default().bytes(&bytes).checksum(), 0x220d);
        let words = [0x0001, 0xf203, 0xf4f5, 0xf6f7];
        assert_eq!(words.iter().fold(Sum::default(), |sum, w| sum.word(*w)).fold(), 0xddf2);
    }

    #[test]
    fn a_changed_word_changes_the_checksum_as_a_new_sum_would() {
        // RFC 1624 §4: 0x5555 becomes 0x3285 under 0xdd2f; the older way gives the other zero.
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0);
        let mut header =
            *b"\x45\x02\x05\xdc\x12\x34\x40\x00\x40\x06\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02";
        let before = Sum::default().bytes(&header).checksum();
        header[1] = 3;
        assert_eq!(updated(before, 0x4502, 0x4503), Sum::default().bytes(&header).checksum());
    }

    #[test]
    fn odd_lengths_are_padded() {
        assert_eq!(Sum::default().bytes(&[0x12]).fold(), 0x1200);
        assert_eq!(Sum::default().bytes(&[0x12, 0x34, 0x56]).fold(), 0x6834);
        assert_eq!(Sum::default().bytes(&[1, 2, 3, 4, 5]).fold(), 0x0406 + 0x0500);
    }

    #[test]
    fn carries_go_around() {
        assert_eq!(Sum::default().bytes(&[0xff; 40]).fold(), 0xffff);
        assert_eq!(Sum::default().bytes(&[0xff, 0xff, 0x00, 0x01]).fold(), 1);
    }
}
