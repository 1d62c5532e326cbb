//! The header of a super-segment that is made of packets.
//!
//! It is the one that the kernel's `tcp_gro_complete` leaves: the first packet's headers with the
//! length of all, the last one's FIN and PSH, and a partial checksum.
//!
//! Invariant: cut again, a super-segment gives the packets that it was made of.

use super::checksum::pseudo;
use super::offload::Offload;
use super::parse::{Layers, Version, tcp};
use super::segment::{set_ipv4_checksum, set_length};

/// Makes the headers of the first packet those of `payload` bytes of several, or of the one that it
/// is, and gives the virtio header for it. `mss` is the payload of each packet but the last,
/// `flags` what all of them had set. `layers` are the first packet's. The sum is below 2^16: the
/// caller merges no more.
pub fn coalesce(
    header: &mut [u8],
    layers: &Layers,
    payload: usize,
    mss: usize,
    flags: u8,
) -> Offload {
    set_length(header, layers, payload);
    if layers.version == Version::V4 {
        set_ipv4_checksum(header, layers);
    }
    header[layers.transport + 13] |= flags & (tcp::FIN | tcp::PSH);
    let at = layers.checksum_at();
    let sum = pseudo(header, layers, layers.payload - layers.transport + payload).fold();
    header[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    let first = tcp::flags(header, layers);
    Offload {
        ecn: first & tcp::CWR != 0 && payload > mss,
        ..Offload::of(&Layers { end: layers.payload + payload, ..*layers }, mss)
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::tests::{Build, cut, frame_of};
    use super::super::{Checksums, parse};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cut_and_coalesced_is_the_same(
            payload in 1usize..60_000,
            mss in 500usize..9000,
            v6: bool,
            fin: bool,
        ) {
            let version = if v6 { Version::V6 } else { Version::V4 };
            let flags = tcp::ACK | tcp::PSH | if fin { tcp::FIN } else { 0 };
            let frame = frame_of(&Build { version, payload, flags, ..Build::default() });
            let packets = cut(&frame, mss, Checksums::Full);
            let layers = *parse(&packets[0]).unwrap().tcp().unwrap();
            let mut all = packets[0][..layers.payload].to_vec();
            let set = packets.iter().fold(0, |set, p| set | tcp::flags(p, &layers));
            let offload = coalesce(&mut all, &layers, payload, mss, set);
            packets.iter().for_each(|p| all.extend(&p[layers.payload..]));
            let view = parse(&all).unwrap();
            prop_assert_eq!(offload.check(&view, all.len()), Ok(()));
            prop_assert_eq!(offload.gso == super::super::GsoType::None, payload <= mss);
            prop_assert_eq!(cut(&all, offload.gso_size.into(), Checksums::Full), packets);
        }
    }
}
