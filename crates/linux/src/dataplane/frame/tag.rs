//! The fabric's tag: what a switch decides by and no header of the Internet has room for.
//!
//! | bytes | what |
//! |---|---|
//! | 0, 1 | EtherType `0x88b5`: IEEE 802's first for local experiments |
//! | 2 | version (high four bits), flags (low four): 1 there is a label, 2 it was deflected |
//! | 3 | 0 |
//! | 4 to 7 | rank: smaller is more important |
//! | 8 to 11 | label: what the fabric distinguishes flows by, in the place of the ports' hash |
//! | 12, 13 | the EtherType of what follows |
//!
//! It stands behind the VLAN tags. Vertigo's switches serve by such a rank (Abdous et al., CoNEXT
//! 2021, section 3: a header between Ethernet and IP), Presto's follow such a label. A frame
//! without the tag has rank 0.
//!
//! Invariant: what is read was written by this version, or is refused.

/// Which EtherType it is.
pub const ETHERTYPE: u16 = 0x88b5;
/// Bytes that it makes a frame longer.
pub const LENGTH: usize = 12;

const VERSION: u8 = 1;
const HAS_LABEL: u8 = 1;
const DEFLECTED: u8 = 2;

/// A tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Scheduling rank.
    pub rank: u32,
    /// The stand-in for the flow's hash, if there is one.
    pub label: Option<u32>,
    /// It was deflected at least once.
    pub deflected: bool,
}

impl Tag {
    /// As bytes, before a frame's EtherType.
    pub fn write(&self) -> [u8; LENGTH] {
        let label = if self.label.is_some() { HAS_LABEL } else { 0 };
        let flags = label | if self.deflected { DEFLECTED } else { 0 };
        let mut bytes = [0; LENGTH];
        bytes[..2].copy_from_slice(&ETHERTYPE.to_be_bytes());
        bytes[2] = VERSION << 4 | flags;
        bytes[4..8].copy_from_slice(&self.rank.to_be_bytes());
        bytes[8..].copy_from_slice(&self.label.unwrap_or(0).to_be_bytes());
        bytes
    }

    /// The tag whose EtherType is at `at`. `None`: there is none, or one of another version.
    pub fn read(frame: &[u8], at: usize) -> Option<Tag> {
        let bytes = frame.get(at..)?.first_chunk::<LENGTH>()?;
        let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let is_ours = bytes[..2] == ETHERTYPE.to_be_bytes() && bytes[2] >> 4 == VERSION;
        let label = (bytes[2] & HAS_LABEL != 0).then(|| word(8));
        is_ours.then(|| Tag { rank: word(4), label, deflected: bytes[2] & DEFLECTED != 0 })
    }

    /// Writes into the tag at `at`, which was read, that its frame was deflected.
    pub fn deflect(frame: &mut [u8], at: usize) {
        if let Some(flags) = frame.get_mut(at + 2) {
            *flags |= DEFLECTED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::frame::parse;
    use crate::dataplane::frame::segment::tests::{Build, frame_of};
    use proptest::prelude::*;

    #[test]
    fn a_tag_is_looked_behind() {
        for tags in 0..=2 {
            let plain = frame_of(&Build { tags, payload: 100, ..Build::default() });
            let at = 12 + 4 * tags;
            let tag = Tag { rank: 7, label: Some(9), deflected: false };
            let mut frame = [&plain[..at], &tag.write(), &plain[at..]].concat();
            let view = parse(&frame).unwrap();
            assert_eq!((view.tag, view.ethernet), (Some(at), at + LENGTH + 2));
            assert_eq!(view.layers().unwrap().end, frame.len());
            assert_eq!(Tag::read(&frame, at), Some(tag));
            Tag::deflect(&mut frame, at);
            assert_eq!(Tag::read(&frame, at), Some(Tag { deflected: true, ..tag }));
            frame[at + 2] = 0x20;
            assert_eq!(
                (Tag::read(&frame, at), parse(&frame).unwrap().tag),
                (None, None),
                "of another version"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rank: u32, label: Option<u32>, deflected: bool) {
            let tag = Tag { rank, label, deflected };
            prop_assert_eq!(Tag::read(&tag.write(), 0), Some(tag));
        }
        #[test]
        fn any_bytes_are_a_tag_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            at in 0..50usize,
        ) {
            if let Some(tag) = Tag::read(&bytes, at) {
                prop_assert_eq!(Tag::read(&tag.write(), 0), Some(tag));
            }
        }
    }
}
