//! The tag of IEEE 802.1Q: which VLAN a frame is in.
//!
//! | bytes | what |
//! |---|---|
//! | 0, 1 | `0x8100` |
//! | 2, 3 | priority (three bits), drop eligible (one), the VLAN's number (twelve) |
//!
//! It stands behind the two addresses (IEEE 802.1Q §9.6). The number 0 is a priority and no VLAN;
//! 4095 is nobody's. A tag of providers (`0x88a8`) is another one and names no VLAN of these.
//!
//! Invariant: a frame that was tagged and untagged is as it was, and its virtio header means the
//! same bytes before and after.

use std::ops::RangeInclusive;

/// Which EtherType it is.
pub const ETHERTYPE: u16 = 0x8100;
/// The EtherType of a provider's tag (IEEE 802.1ad).
pub const SERVICE: u16 = 0x88a8;
/// Bytes that it makes a frame longer.
pub const LENGTH: usize = 4;
/// Where it is in a frame.
pub const AT: usize = 12;
/// The numbers that VLANs have.
pub const NUMBERS: RangeInclusive<u16> = 1..=4094;

const NUMBER: u16 = 0xfff;

/// The tag that a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagging {
    /// No tag.
    Untagged,
    /// A tag without a VLAN.
    Priority,
    /// A tag of a VLAN, a provider's, or one that is cut off.
    Tagged,
}

/// The tag that a frame begins with, if the frame has an Ethernet header.
pub fn tagging(frame: &[u8]) -> Tagging {
    let word = |at: usize| frame.get(at..at + 2).map(|w| u16::from_be_bytes([w[0], w[1]]));
    match (word(AT), word(AT + 2)) {
        (Some(ETHERTYPE), Some(control)) if control & NUMBER == 0 => Tagging::Priority,
        (Some(ETHERTYPE | SERVICE), _) => Tagging::Tagged,
        _ => Tagging::Untagged,
    }
}

/// Which VLAN a tag's second word names, if any.
pub fn number(control: u16) -> Option<u16> {
    Some(control & NUMBER).filter(|number| *number != 0)
}

/// Puts a tag with these two words into the frame that begins [`LENGTH`] bytes behind `room`'s
/// first and has at least [`AT`] bytes; it then begins with `room`.
pub fn insert(room: &mut [u8], ethertype: u16, control: u16) {
    room.copy_within(LENGTH..LENGTH + AT, 0);
    room[AT..AT + 2].copy_from_slice(&ethertype.to_be_bytes());
    room[AT + 2..AT + 4].copy_from_slice(&control.to_be_bytes());
}

/// Writes a VLAN into the tag of a frame, which keeps its priority.
pub fn set_number(frame: &mut [u8], vlan: u16) {
    if let Some(word) = frame.get_mut(AT + 2..).and_then(|tag| tag.first_chunk_mut()) {
        *word = (u16::from_be_bytes(*word) & !NUMBER | vlan).to_be_bytes();
    }
}

/// The bytes before the tag of a frame and behind it, if there is room for one.
pub fn around(frame: &[u8]) -> Option<[&[u8]; 2]> {
    Some([frame.get(..AT)?, frame.get(AT + LENGTH..)?])
}

#[cfg(test)]
mod tests {
    use super::super::segment::tests::{Build, cut, frame_of};
    use super::super::{Checksums, Offload, Version, parse};
    use super::*;
    use proptest::prelude::*;

    fn tagged(frame: &[u8], vlan: u16) -> Vec<u8> {
        let mut room = [&[0; LENGTH][..], frame].concat();
        insert(&mut room, ETHERTYPE, vlan);
        room
    }
    fn untagged(frame: &[u8]) -> Vec<u8> {
        around(frame).unwrap().concat()
    }

    #[test]
    fn a_tag_is_told_from_others() {
        let plain = frame_of(&Build { payload: 20, ..Build::default() });
        assert_eq!((tagging(&plain), parse(&plain).unwrap().vlan), (Tagging::Untagged, None));
        let mut frame = tagged(&plain, 0x6000);
        assert_eq!((tagging(&frame), parse(&frame).unwrap().vlan), (Tagging::Priority, None));
        set_number(&mut frame, 4094);
        assert_eq!((tagging(&frame), parse(&frame).unwrap().vlan), (Tagging::Tagged, Some(4094)));
        assert_eq!(frame[14..16], [0x6f, 0xfe], "the priority stays");
        // A provider's tag before it: another network's frame.
        let mut outer = [&[0; LENGTH][..], &frame].concat();
        insert(&mut outer, SERVICE, 9);
        assert_eq!((tagging(&outer), parse(&outer).unwrap().vlan), (Tagging::Tagged, None));
        assert_eq!(tagging(&frame[..14]), Tagging::Tagged, "cut off");
        assert!(around(&frame[..15]).is_none());
    }

    #[test]
    fn what_names_the_tag_itself_does_not_fit() {
        let partial =
            |checksum_start| Offload { partial: true, checksum_start, ..Offload::default() };
        assert!(partial(11).tagged().is_err() && partial(65_534).tagged().is_err());
        assert!(partial(15).untagged().is_err() && partial(16).untagged().is_ok());
        assert_eq!(Offload { header: 13, ..Offload::default() }.untagged(), Ok(Offload::default()));
    }

    proptest! {
        /// The packets of a super-segment have the tag, and are else those that it gives without.
        #[test]
        fn a_tag_comes_and_goes(
            payload in 0usize..20_000,
            mss in 100usize..9000,
            v6: bool,
            tags in 0usize..2,
            vlan in 1u16..4095,
        ) {
            let version = if v6 { Version::V6 } else { Version::V4 };
            let frame = frame_of(&Build { version, payload, tags, ..Build::default() });
            let view = parse(&frame).unwrap();
            let offload = Offload::of(view.layers().unwrap(), mss);
            let with = tagged(&frame, vlan);
            let (inside, moved) = (parse(&with).unwrap(), offload.tagged().unwrap());
            prop_assert_eq!((inside.vlan, moved.check(&inside, with.len())), (Some(vlan), Ok(())));
            prop_assert_eq!(moved, Offload::of(inside.layers().unwrap(), mss));
            prop_assert_eq!(
                (inside.untagged().inner, inside.untagged().ethernet),
                (view.inner, view.ethernet)
            );
            prop_assert_eq!(moved.untagged(), Ok(offload));
            prop_assert_eq!(untagged(&with), frame.clone());
            let without: Vec<Vec<u8>> =
                cut(&with, mss, Checksums::Full).iter().map(|packet| untagged(packet)).collect();
            prop_assert_eq!(without, cut(&frame, mss, Checksums::Full));
        }
    }
}
