//! The longest segment that a connection's ends ask for, lowered to what lies between them.
//!
//! The SYN of an end has the longest segment that it takes (RFC 9293 §3.7.1): that of its own
//! interface, without a tunnel behind it.
//!
//! Invariant: a checksum that was right stays right, and one that was wrong stays wrong.

use super::checksum::updated;
use super::parse::{Layers, Version, tcp};

/// The least that Linux takes from an option (`tcp_min_snd_mss`): less would leave no room for
/// TCP's own options.
const LEAST: u16 = 48;

/// Bytes of headers that a longest segment leaves room for: IP's and TCP's without options.
pub fn headers(version: Version) -> usize {
    match version {
        Version::V4 => 40,
        Version::V6 => 60,
    }
}

/// Lowers what a SYN asks for to `most`, and to no less than [`LEAST`]; whether it asked for more.
/// `is_partial`: its checksum is yet to be completed, from the bytes that it then has.
pub fn clamp(frame: &mut [u8], layers: &Layers, most: u16, is_partial: bool) -> bool {
    if tcp::flags(frame, layers) & tcp::SYN == 0 {
        return false;
    }
    let most = most.max(LEAST);
    let Some(at) = option(&frame[..layers.payload], layers.transport + 20) else { return false };
    if u16::from_be_bytes([frame[at], frame[at + 1]]) <= most {
        return false;
    }
    // The 16-bit words of the checksum that hold it: two if it begins at an odd byte.
    let odd = (at - layers.transport) % 2;
    let span = at - odd..at + 2 + odd;
    let mut before = [0; 4];
    let before = &mut before[..span.len()];
    before.copy_from_slice(&frame[span.clone()]);
    frame[at..at + 2].copy_from_slice(&most.to_be_bytes());
    if !is_partial {
        let word = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
        let place = layers.transport + 16;
        let words = before.chunks_exact(2).zip(frame[span].chunks_exact(2));
        let new =
            words.fold(word(&frame[place..]), |sum, (from, to)| updated(sum, word(from), word(to)));
        frame[place..place + 2].copy_from_slice(&new.to_be_bytes());
    }
    true
}

/// Where the number of the option is, in a header that ends with the slice.
fn option(header: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *header.get(at)? {
            0 => return None,
            1 => at += 1,
            2 if header.get(at + 1) == Some(&4) => {
                return (at + 4 <= header.len()).then_some(at + 2);
            }
            _ => at += usize::from(*header.get(at + 1)?).max(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::tests::{Build, frame_of};
    use super::super::{checksum, parse};
    use super::*;

    /// A SYN that ends with its options.
    fn syn(version: Version, options: &[u8]) -> (Vec<u8>, Layers) {
        let length = options.len().next_multiple_of(4);
        let build = Build { version, flags: tcp::SYN, options: length, ..Build::default() };
        let mut frame = frame_of(&build);
        let layers = *parse(&frame).unwrap().layers().unwrap();
        frame[layers.transport + 20..].fill(0);
        frame[layers.transport + 20..][..options.len()].copy_from_slice(options);
        let at = layers.transport + 16;
        frame[at..at + 2].fill(0);
        let sum = checksum::pseudo(&frame, &layers, layers.end - layers.transport);
        let sum = sum.bytes(&frame[layers.transport..layers.end]).checksum();
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        (frame, layers)
    }

    #[test]
    fn what_is_asked_for_is_lowered_and_never_raised() {
        for version in [Version::V4, Version::V6] {
            for before in [&[][..], &[1], &[1, 1], &[4, 2], &[3, 3, 7]] {
                let (frame, layers) = syn(version, &[before, &[2, 4, 0x05, 0xb4]].concat());
                assert!(checksum::is_right(&frame, &layers));
                let at = layers.transport + 20 + before.len() + 2;
                let mut lower = frame.clone();
                assert!(
                    clamp(&mut lower, &layers, 1410, false)
                        && lower[at..at + 2] == 1410u16.to_be_bytes()
                );
                assert!(checksum::is_right(&lower, &layers), "{version:?} {before:?}");
                let mut same = frame.clone();
                assert!(!clamp(&mut same, &layers, 1460, false) && same == frame);
                let mut wrong = frame.clone();
                wrong[layers.transport + 16] ^= 1;
                clamp(&mut wrong, &layers, 1410, false);
                assert!(!checksum::is_right(&wrong, &layers));
                let mut partial = frame.clone();
                clamp(&mut partial, &layers, 1410, true);
                assert_eq!(
                    partial[layers.transport + 16..][..2],
                    frame[layers.transport + 16..][..2]
                );
            }
        }
    }

    /// A header without timestamps, window scale and SACK ends with the number, and so may the
    /// frame.
    #[test]
    fn clamps_a_segment_size_at_the_end_of_the_frame() {
        for version in [Version::V4, Version::V6] {
            for before in [&[][..], &[4, 2, 1, 1], &[4, 2, 1, 1, 1, 1, 1, 1]] {
                let (mut frame, layers) = syn(version, &[before, &[2, 4, 0x05, 0xb4]].concat());
                assert!(clamp(&mut frame, &layers, 1410, false));
                assert_eq!(frame[frame.len() - 2..], 1410u16.to_be_bytes());
                assert!(checksum::is_right(&frame, &layers), "{version:?} {before:?}");
            }
        }
    }

    #[test]
    fn a_path_without_room_asks_for_the_least() {
        for most in [0, 47, 48] {
            let (mut frame, layers) = syn(Version::V4, &[2, 4, 0x05, 0xb4]);
            assert!(clamp(&mut frame, &layers, most, false));
            assert_eq!(frame[layers.transport + 22..][..2], LEAST.to_be_bytes());
            assert!(checksum::is_right(&frame, &layers));
        }
    }

    #[test]
    fn odd_options_are_left_alone() {
        for options in [&[0][..], &[2, 3, 5], &[9, 0, 2, 4, 0xff, 0xff], &[1; 40], &[5, 255]] {
            let (frame, layers) = syn(Version::V4, options);
            let mut after = frame.clone();
            if !clamp(&mut after, &layers, 100, false) {
                assert_eq!(after, frame);
            }
        }
        let (mut data, layers) = syn(Version::V4, &[2, 4, 0x05, 0xb4]);
        data[layers.transport + 13] = tcp::ACK;
        assert!(!clamp(&mut data, &layers, 100, false), "no SYN");
    }
}
