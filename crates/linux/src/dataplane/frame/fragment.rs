//! Cuts an IPv4 packet that is too long for the next link, as a router does (RFC 791 §3.2).
//!
//! Options without the copy bit stay in the first fragment; later ones have no-operations there.
//!
//! Invariant: the fragments carry the packet's payload once and in order. IPv6 packets, packets
//! with "don't fragment" and packets with a wrong header checksum are not cut.

use super::checksum::{self, Sum};

/// An IPv4 header's flags, in its seventh byte.
const DONT_FRAGMENT: u8 = 0x40;
const MORE_FRAGMENTS: u16 = 0x2000;
/// The bits of a fragment's offset, which counts units of eight bytes.
const OFFSET: u16 = 0x1fff;
const UNIT: usize = 8;
/// Options: the end of their list, and one that does nothing.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
/// The bit of an option that every fragment has.
const COPIED: u8 = 0x80;

/// Whether `frame` holds an IPv4 packet that may be cut; `ethernet` is the length of the Ethernet
/// header with its tags. The frame's headers are enough.
pub fn may_be_cut(frame: &[u8], ethernet: usize) -> bool {
    let Some((link, packet)) = frame.split_at_checked(ethernet) else { return false };
    link.ends_with(&[0x08, 0x00])
        && packet.len() >= 20
        && packet[0] >> 4 == 4
        && packet[6] & DONT_FRAGMENT == 0
}

/// Returns the fragments of the IPv4 packet in `frame`: frames whose packets have at most `mtu`
/// bytes. `None` if the packet must not be cut, is malformed, or `mtu` has no room for a fragment.
pub fn cut(frame: &[u8], ethernet: usize, mtu: usize) -> Option<Vec<Vec<u8>>> {
    if !may_be_cut(frame, ethernet) {
        return None;
    }
    let (link, packet) = frame.split_at(ethernet);
    let length = usize::from(packet[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let header = packet.get(..length).filter(|_| length >= 20)?;
    let payload = packet.get(length..total)?;
    if Sum::default().bytes(header).fold() != 0xffff {
        return None;
    }
    let room = mtu.checked_sub(length)? / UNIT * UNIT;
    let place = u16::from_be_bytes([header[6], header[7]]);
    let last = usize::from(place & OFFSET) + payload.len() / UNIT;
    if room == 0 || payload.is_empty() || last > usize::from(OFFSET) {
        return None;
    }
    let count = payload.chunks(room).len();
    let one = |(index, part): (usize, &[u8])| {
        let mut header = header.to_vec();
        if index > 0 {
            clear_options(&mut header[20..]);
        }
        let more = if index + 1 < count { MORE_FRAGMENTS } else { place & MORE_FRAGMENTS };
        let offset = (place & OFFSET) + (index * room / UNIT) as u16;
        header[2..4].copy_from_slice(&((length + part.len()) as u16).to_be_bytes());
        header[6..8].copy_from_slice(&(more | offset).to_be_bytes());
        checksum::set(&mut header, 10);
        [link, &header, part].concat()
    };
    Some(payload.chunks(room).enumerate().map(one).collect())
}

/// Replaces the options that only the first fragment has.
fn clear_options(options: &mut [u8]) {
    let mut at = 0;
    while let Some(&kind) = options.get(at).filter(|kind| **kind != END) {
        let length = match kind {
            NO_OPERATION => 1,
            _ => options.get(at + 1).map_or(1, |length| usize::from(*length).max(1)),
        };
        let end = (at + length).min(options.len());
        if kind & COPIED == 0 {
            options[at..end].fill(NO_OPERATION);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::tests::{Build, frame_of};
    use super::super::{Inner, Protocol, parse};
    use super::*;
    use proptest::prelude::*;

    /// A datagram that may be cut, with its IPv4 header's checksum.
    fn datagram(payload: usize, tags: usize) -> Vec<u8> {
        let build = Build { protocol: Protocol::Udp, payload, tags, ..Build::default() };
        let mut frame = frame_of(&build);
        frame[14 + 4 * tags + 6] = 0;
        sealed(&mut frame, 14 + 4 * tags, 20);
        frame
    }

    fn sealed(frame: &mut [u8], ethernet: usize, length: usize) {
        frame[ethernet + 10..ethernet + 12].fill(0);
        let sum = Sum::default().bytes(&frame[ethernet..ethernet + length]).checksum();
        frame[ethernet + 10..ethernet + 12].copy_from_slice(&sum.to_be_bytes());
    }

    /// The payload of these fragments, each put where it says.
    fn joined(fragments: &[Vec<u8>], ethernet: usize) -> Vec<u8> {
        let mut whole = Vec::new();
        for (index, fragment) in fragments.iter().enumerate() {
            let packet = &fragment[ethernet..];
            let length = usize::from(packet[0] & 15) * 4;
            assert_eq!(Sum::default().bytes(&packet[..length]).fold(), 0xffff);
            assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
            let place = u16::from_be_bytes([packet[6], packet[7]]);
            assert_eq!(usize::from(place & OFFSET) * UNIT, whole.len());
            assert_eq!(place & MORE_FRAGMENTS != 0, index + 1 < fragments.len());
            whole.extend(&packet[length..]);
        }
        whole
    }

    #[test]
    fn packets_that_must_not_be_cut_are_not() {
        let frame = datagram(3000, 0);
        assert_eq!(cut(&frame, 14, 1500).unwrap().len(), 3);
        // "Don't fragment", another version, a wrong checksum, no room, no IPv4.
        for (at, byte) in [(20, 0x40), (14, 0x65), (24, frame[24] ^ 1), (13, 0x06)] {
            let mut other = frame.clone();
            other[at] = byte;
            assert_eq!(cut(&other, 14, 1500), None, "{at}");
        }
        assert_eq!((cut(&frame, 14, 27), cut(&frame[..500], 14, 100)), (None, None));
        assert!(cut(&frame, 14, 28).is_some());
    }

    #[test]
    fn only_copied_options_are_in_later_fragments() {
        let mut frame = datagram(2000, 0);
        // Record route, which stays, and a stream number, which is copied.
        let options = [7, 3, 4, NO_OPERATION, 0x88, 4, 1, 2];
        frame.splice(34..34, options);
        frame[14] = 0x47;
        let total = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        sealed(&mut frame, 14, 28);
        let fragments = cut(&frame, 14, 1000).unwrap();
        assert_eq!(joined(&fragments, 14), frame[42..]);
        assert_eq!(fragments[0][34..42], options);
        for later in &fragments[1..] {
            assert_eq!(later[34..42], [1, 1, 1, 1, 0x88, 4, 1, 2]);
        }
    }

    proptest! {
        #[test]
        fn fragments_are_the_packet(
            payload in 0usize..20_000,
            mtu in 28usize..3000,
            again in 28usize..3000,
            tags in 0usize..3,
        ) {
            let frame = datagram(payload, tags);
            let ethernet = parse(&frame).unwrap().ethernet;
            let fragments = cut(&frame, ethernet, mtu).unwrap();
            prop_assert_eq!(&joined(&fragments, ethernet)[..], &frame[ethernet + 20..]);
            let is_short = |part: &Vec<u8>| part.len() <= ethernet + mtu;
            prop_assert!(fragments.iter().all(is_short));
            if fragments.len() > 1 {
                prop_assert_eq!(parse(&fragments[1]).unwrap().inner, Inner::Fragment);
            }
            // A fragment can meet a narrower link.
            let parts = fragments.iter().flat_map(|it| cut(it, ethernet, again).unwrap());
            let parts: Vec<Vec<u8>> = parts.collect();
            prop_assert_eq!(&joined(&parts, ethernet)[..], &frame[ethernet + 20..]);
        }

        #[test]
        fn any_bytes_are_cut_or_not(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            mtu in 0usize..200,
        ) {
            let mut bytes = bytes;
            if let Some(kind) = bytes.get_mut(12..14) {
                kind.copy_from_slice(&[0x08, 0x00]);
            }
            let _ = cut(&bytes, 14, mtu);
        }
    }
}
