//! The answer to a packet that does not fit: "fragmentation needed" (RFC 792, RFC 1191) and "packet
//! too big" (RFC 4443 §3.2).
//!
//! Between two of a network's hosts there is no router here that could answer, so the answer comes
//! from the packet's own destination, as Linux's tunnels answer behind a bridge.
//!
//! Invariant: errors, groups and later fragments get no answer (RFC 1122 §3.2.2), nor does a packet
//! that may be cut on its way.

use super::checksum::{self, Sum};
use super::{Mac, View};

/// Bytes of an answer's IP packet: what any host takes.
const LONGEST_4: usize = 576;
const LONGEST_6: usize = 1280;
const ICMP: usize = 8;
/// No answer needs more of the packet than so many bytes.
pub const QUOTED: usize = LONGEST_6;

/// The frame that notifies the sender of `frame` (or of what begins with it) that its packets may
/// have `mtu` bytes; `None`: nobody is to be notified.
pub fn answer(frame: &[u8], view: &View, mtu: usize) -> Option<Vec<u8>> {
    if view.destination.is_group() || view.source.is_group() {
        return None;
    }
    let ethernet = frame.get(..view.ethernet)?;
    let packet = &frame[view.ethernet..];
    let answer = match (ethernet.get(view.ethernet - 2..)?, packet.first()? >> 4) {
        ([0x08, 0x00], 4) => answer_4(packet, mtu)?,
        ([0x86, 0xdd], 6) => answer_6(packet, mtu)?,
        _ => return None,
    };
    let (Mac(to), Mac(from)) = (view.source, view.destination);
    Some([&to[..], &from, &ethernet[12..], &answer].concat())
}

fn answer_4(packet: &[u8], mtu: usize) -> Option<Vec<u8>> {
    let header = packet.get(..20)?;
    let length = usize::from(header[0] & 15) * 4;
    let (cannot_be_cut, is_later) =
        (header[6] & 0x40 != 0, header[6] & 0x1f != 0 || header[7] != 0);
    // From nobody, this network, or a group.
    let is_odd = matches!(header[12], 0 | 127 | 224..) || header[16] >= 224;
    // Of ICMP: unreachable, quench, redirect, exceeded, parameter.
    let is_error = header[9] == 1 && matches!(packet.get(length)?, 3 | 4 | 5 | 11 | 12);
    if !cannot_be_cut || is_later || is_odd || is_error {
        return None;
    }
    let quote = &packet[..packet.len().min(LONGEST_4 - 20 - ICMP)];
    let mut icmp = [&[3, 4, 0, 0, 0, 0][..], &(mtu as u16).to_be_bytes(), quote].concat();
    checksum::set(&mut icmp, 2);
    let total = (20 + icmp.len()) as u16;
    let mut ip = [&[0x45, 0xc0][..], &total.to_be_bytes(), &[0, 0, 0x40, 0, 64, 1, 0, 0]].concat();
    ip.extend([&header[16..20], &header[12..16]].concat());
    checksum::set(&mut ip, 10);
    Some([ip, icmp].concat())
}

fn answer_6(packet: &[u8], mtu: usize) -> Option<Vec<u8>> {
    let header = packet.get(..40)?;
    let is_odd = header[8] == 0xff || header[24] == 0xff || header[8..24] == [0; 16];
    let is_error = header[6] == 58 && *packet.get(40)? < 128;
    if is_odd || is_error {
        return None;
    }
    let quote = &packet[..packet.len().min(LONGEST_6 - 40 - ICMP)];
    let mut icmp = [&[2, 0, 0, 0][..], &(mtu as u32).to_be_bytes(), quote].concat();
    let length = icmp.len() as u16;
    let addresses = [&header[24..40], &header[8..24]].concat();
    let sum = Sum::default().bytes(&addresses).word(length).word(58).bytes(&icmp).checksum();
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    let ip = [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[58, 64], &addresses].concat();
    Some([ip, icmp].concat())
}

#[cfg(test)]
mod tests {
    use super::super::segment::tests::{Build, frame_of};
    use super::super::{Inner, Version, parse};
    use super::*;

    #[test]
    fn the_sender_is_told_by_whom_it_sent_to() {
        for (version, tags) in
            [(Version::V4, 0), (Version::V4, 1), (Version::V6, 0), (Version::V6, 2)]
        {
            let mut frame = frame_of(&Build { version, tags, payload: 3000, ..Build::default() });
            let view = parse(&frame).unwrap();
            if version == Version::V4 {
                frame[view.ethernet + 6] |= 0x40;
            }
            let told = answer(&frame, &view, 1450).unwrap();
            let back = parse(&told).unwrap();
            assert_eq!(
                (back.destination, back.source, back.vlan),
                (view.source, view.destination, view.vlan)
            );
            assert_eq!((back.inner, back.ethernet), (Inner::OtherIp, view.ethernet));
            let (n, ours) = (view.ethernet, &told[view.ethernet..]);
            match version {
                Version::V4 => {
                    assert_eq!(
                        (&ours[12..16], &ours[16..20]),
                        (&frame[n + 16..n + 20], &frame[n + 12..n + 16])
                    );
                    assert_eq!(
                        (Sum::default().bytes(&ours[..20]).fold(), ours.len()),
                        (0xffff, 576)
                    );
                    assert_eq!(Sum::default().bytes(&ours[20..]).fold(), 0xffff);
                    assert_eq!(
                        (&ours[20..22], &ours[26..28]),
                        (&[3, 4][..], &1450u16.to_be_bytes()[..])
                    );
                    assert_eq!(ours[28..], frame[n..n + 548]);
                }
                Version::V6 => {
                    assert_eq!(
                        (&ours[8..24], &ours[24..40]),
                        (&frame[n + 24..n + 40], &frame[n + 8..n + 24])
                    );
                    let pseudo = Sum::default().bytes(&ours[8..40]).word(1240).word(58);
                    assert_eq!((pseudo.bytes(&ours[40..]).fold(), ours.len()), (0xffff, 1280));
                    assert_eq!((ours[40], &ours[44..48]), (2, &1450u32.to_be_bytes()[..]));
                }
            }
        }
    }

    #[test]
    fn what_gets_no_answer() {
        // Bytes of the frame, each with another value.
        let told = |changes: &[(usize, u8)]| {
            let mut frame = frame_of(&Build { payload: 3000, ..Build::default() });
            frame[14 + 6] = 0x40;
            changes.iter().for_each(|(at, byte)| frame[*at] = *byte);
            let view = parse(&frame).unwrap();
            answer(&frame, &view, 1450).is_some()
        };
        assert!(told(&[]));
        // It may be cut; a later fragment; a group, of either layer; an error of ICMP; not IP.
        for changes in
            [&[(20, 0)][..], &[(21, 1)], &[(0, 1)], &[(26, 224)], &[(23, 1), (34, 3)], &[(13, 6)]]
        {
            assert!(!told(changes), "{changes:?}");
        }
        for length in 14..80 {
            let mut short = frame_of(&Build::default());
            short.truncate(length);
            if let Some(view) = parse(&short) {
                let _ = answer(&short, &view, 100);
            }
        }
    }
}
