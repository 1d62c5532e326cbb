//! How a frame travels between two switches: behind eight bytes with its path and its flowcell.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | `0x6d` |
//! | 1 | version (high four bits), flags (low four) |
//! | 2, 3 | label: the path |
//! | 4, 5 | flowcell |
//! | 6, 7 | 0 |
//!
//! Then the Ethernet frame. All of it is a datagram's content, so whatever carries it has a length
//! and a checksum of its own. Presto itself puts the label into the destination's address and the
//! flowcell somewhere that the published description leaves open; a header of its own needs neither
//! switches that read labels nor room among TCP's
//! options.
//!
//! Invariant: what is read was written by this version, or is refused.

/// How many bytes come before the frame.
pub const LENGTH: usize = 8;
const MARK: u8 = 0x6d;
const VERSION: u8 = 1;
/// The frame's transport checksum is partial: what carries the datagram vouches for it.
const PARTIAL: u8 = 1;

/// The header before a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// Which path.
    pub label: u16,
    /// Which flowcell of its flow.
    pub flowcell: u16,
    /// Whether the frame's transport checksum is the pseudo-header's share alone.
    pub partial: bool,
}

impl Encapsulation {
    /// As bytes.
    #[inline]
    pub fn write(&self) -> [u8; LENGTH] {
        let [a, b] = self.label.to_be_bytes();
        let [c, d] = self.flowcell.to_be_bytes();
        [MARK, VERSION << 4 | if self.partial { PARTIAL } else { 0 }, a, b, c, d, 0, 0]
    }
    /// From the first bytes of a datagram; the frame is what follows. `None`: it is none, or of
    /// another version.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<(Encapsulation, &[u8])> {
        let (header, frame) = bytes.split_first_chunk::<LENGTH>()?;
        let [MARK, kind, a, b, c, d, 0, 0] = *header else { return None };
        if kind & !PARTIAL != VERSION << 4 {
            return None;
        }
        let (label, flowcell) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Some((Encapsulation { label, flowcell, partial: kind & PARTIAL != 0 }, frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_read_as_it_was_written(label: u16, flowcell: u16, partial: bool, frame: Vec<u8>) {
            let header = Encapsulation { label, flowcell, partial };
            let bytes = [&header.write()[..], &frame].concat();
            prop_assert_eq!(Encapsulation::read(&bytes), Some((header, &frame[..])));
        }
        #[test]
        fn what_is_read_is_what_would_be_written(bytes: Vec<u8>, like in any::<bool>()) {
            let mut bytes = bytes;
            if like && bytes.len() > 1 {
                (bytes[0], bytes[1]) = (MARK, VERSION << 4);
            }
            if let Some((header, frame)) = Encapsulation::read(&bytes) {
                prop_assert_eq!([&header.write()[..], frame].concat(), bytes);
            }
        }
    }

    #[test]
    fn others_are_refused() {
        let good = Encapsulation { label: 1, flowcell: 2, partial: true }.write();
        for (at, byte) in [(0, 0), (1, 0x21), (1, 0x13), (6, 1), (7, 1)] {
            let mut bytes = good;
            bytes[at] = byte;
            assert_eq!(Encapsulation::read(&bytes), None, "{at} {byte}");
        }
        assert_eq!(Encapsulation::read(&good[..7]), None);
    }
}
