//! A frame's metadata as the switch node's packet, and what was decided of the packet back into the
//! frame.
//!
//! | packet | frame |
//! |---|---|
//! | source, destination | Ethernet addresses, by the fabric's table |
//! | size | from the IP header on, and the framing that the switch counts |
//! | entropy | a hash of the 5-tuple, or the tag's label |
//! | priority, importance | DSCP: the class selector's three bits (RFC 2474), and the three below |
//! | ECN, hops left | of the IP header; ECT(1) is as ECT(0) (RFC 3168) |
//! | rank, deflected | the fabric's tag |
//! | kind, sequence | of TCP: SYN, payload, and else an acknowledgement |
//!
//! Written back: CE, the hops left, and that it was deflected. Frames that are not IP have all
//! their hops at each switch.
//!
//! Invariant: what is written changes no other bit, and an IPv4 header's checksum stays as right as
//! it was.

use crate::dataplane::counters::Drop;
use crate::dataplane::flow::{FlowKey, Keys};
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Inner, Ip, Mac, Tag, Version, View};
use millpond_core::packet::{Body, NONE, TTL, TrafficClass, flags};
use millpond_core::{Ecn, FlowId, HostId, Importance, Packet, Time};
use std::collections::HashMap;

/// Bytes of a packet that its IP length leaves out: header and check sequence of Ethernet, preamble
/// and gap.
pub const FRAMING: u16 = 14 + 4 + 8 + 12;

/// Makes packets of frames.
#[derive(Clone, Debug)]
pub struct Classifier {
    hosts: HashMap<Mac, HostId>,
    keys: Keys,
    framing: u16,
}

/// The IP header of a frame that is IP, whole or a fragment.
fn ip(header: &[u8], view: &View) -> Option<Ip> {
    let at = view.ethernet;
    let is_ip = matches!(view.inner, Inner::Transport(_) | Inner::Fragment | Inner::OtherIp);
    let (version, length) = match header.get(at).filter(|_| is_ip)? >> 4 {
        4 => (Version::V4, 20),
        _ => (Version::V6, 40),
    };
    (header.len() >= at + length).then_some(Ip { version, at })
}

/// The priority, the importance and the ECN field of an IP header's byte; what names no importance
/// is of none.
fn traffic_class(byte: u8) -> TrafficClass {
    let importance = Importance::ALL.get(usize::from(byte >> 2 & 7)).copied().unwrap_or_default();
    let ecn = match byte & 3 {
        0 => Ecn::NotEct,
        3 => Ecn::Ce,
        _ => Ecn::Ect,
    };
    TrafficClass::new(byte >> 5, importance, ecn)
}

/// The priority, the importance and the ECN field of a frame, of which `header` has the first
/// bytes.
pub fn class(header: &[u8], view: &View) -> TrafficClass {
    ip(header, view).map_or(TrafficClass::default(), |ip| traffic_class(ip.class(header)))
}

impl Classifier {
    /// For a fabric of these hosts, whose switches count `framing` bytes beside a packet's IP
    /// header and what follows it.
    pub fn new(hosts: impl IntoIterator<Item = (Mac, HostId)>, framing: u16) -> Classifier {
        Classifier { hosts: hosts.into_iter().collect(), keys: Keys::default(), framing }
    }

    /// The same with hashes of these keys.
    pub fn keyed(self, keys: Keys) -> Classifier {
        Classifier { keys, ..self }
    }

    /// Returns the packet of a frame of `length` bytes. `header` has the frame's first bytes: all
    /// headers that `view` names.
    ///
    /// # Errors
    /// [`Drop::Nowhere`] if no host has the destination address.
    pub fn read(
        &self,
        now: Time,
        header: &[u8],
        length: usize,
        view: &View,
    ) -> Result<Packet, Drop> {
        let dst = *self.hosts.get(&view.destination).ok_or(Drop::Nowhere)?;
        let src = self.hosts.get(&view.source).copied().unwrap_or(NONE);
        let tag = view.tag.and_then(|at| Tag::read(header, at)).unwrap_or_default();
        let flow = self.flow(header, view);
        let size = length.saturating_sub(view.ethernet) + usize::from(self.framing);
        let (body, bits) = transport(header, view);
        Ok(Packet {
            body,
            stamp: now,
            flow,
            src,
            dst,
            entropy: tag.label.unwrap_or(flow),
            peer: NONE,
            rank: tag.rank,
            size: u16::try_from(size).unwrap_or(u16::MAX),
            payload: view.layers().map_or(0, |layers| (layers.end - layers.payload) as u16),
            flags: bits | if tag.deflected { flags::DEFLECTED } else { 0 },
            class: class(header, view),
            ttl: ip(header, view).map_or(TTL, |ip| ip.hops(header)),
            ..Packet::default()
        })
    }

    /// Which flow it is of: a hash of the 5-tuple; of what has no ports, of the Ethernet addresses.
    fn flow(&self, header: &[u8], view: &View) -> FlowId {
        match view.layers() {
            Some(layers) => FlowKey::of(header, layers, view.vlan, 0).hash(&self.keys),
            None => self.keys.of_pair(view.source.number(), view.destination.number()),
        }
    }
}

/// The transport's kind, and its flags. A packet that is not TCP is data from the beginning of a
/// stream.
fn transport(header: &[u8], view: &View) -> (Body, u16) {
    let Some(layers) = view.tcp() else { return (Body::default(), 0) };
    let bits = tcp::flags(header, layers);
    let has = |bit: u8| bits & bit != 0;
    let body = match (has(tcp::SYN), has(tcp::ACK)) {
        (true, false) => Body::Syn { slot: NONE, flowcell: 0 },
        (true, true) => Body::SynAck { slot: NONE },
        (false, _) if layers.end > layers.payload => {
            Body::Data { seq: tcp::seq(header, layers).into(), slot: NONE, flowcell: 0 }
        }
        (false, _) => Body::Ack { ack: tcp::ack(header, layers).into(), slot: NONE, hops: 0 },
    };
    let flag = |bit: u8, flag: u16| if has(bit) { flag } else { 0 };
    (body, flag(tcp::ECE, flags::ECE) | flag(tcp::CWR, flags::CWR))
}

/// Writes what a switch has decided of a packet into its headers.
pub fn write(packet: &Packet, header: &mut [u8], view: &View) {
    if let Some(ip) = ip(header, view) {
        let class = ip.class(header);
        if packet.class.ecn() == Ecn::Ce && class & 3 != 3 {
            ip.set_class(header, class | 3);
        }
        if ip.hops(header) != packet.ttl {
            ip.set_hops(header, packet.ttl);
        }
    }
    if let Some(at) = view.tag.filter(|_| packet.has(flags::DEFLECTED)) {
        Tag::deflect(header, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::frame::segment::tests::{Build, frame_of};
    use crate::dataplane::frame::{Protocol, checksum, parse};
    use millpond_core::packet::Kind;
    use proptest::prelude::*;

    fn classifier() -> Classifier {
        Classifier::new([(Mac([2, 0, 0, 0, 0, 1]), 5), (Mac([2, 0, 0, 0, 0, 2]), 6)], FRAMING)
    }
    fn packet(frame: &[u8]) -> Packet {
        classifier().read(Time::ZERO, frame, frame.len(), &parse(frame).unwrap()).unwrap()
    }
    fn checks(frame: &[u8], view: &View) -> bool {
        let is_four = frame[view.ethernet] >> 4 == 4;
        !is_four
            || checksum::Sum::default().bytes(&frame[view.ethernet..view.ethernet + 20]).fold()
                == 0xffff
    }

    #[test]
    fn headers_become_fields() {
        for version in [Version::V4, Version::V6] {
            let mut frame = frame_of(&Build {
                version,
                payload: 100,
                flags: tcp::ACK | tcp::CWR,
                ..Build::default()
            });
            let class = 3 << 5 | 2 << 2 | 1;
            match version {
                Version::V4 => frame[15] = class,
                Version::V6 => (frame[14], frame[15]) = (0x60 | class >> 4, class << 4),
            }
            let p = packet(&frame);
            assert_eq!(
                (p.src, p.dst, p.priority(), p.class.importance()),
                (5, 6, 3, Importance::Important)
            );
            assert_eq!(
                (p.class.ecn(), p.payload, usize::from(p.size)),
                (Ecn::Ect, 100, frame.len() - 14 + 38)
            );
            assert!(
                p.is_data()
                    && p.seq() == 1000
                    && p.has(flags::CWR)
                    && p.ttl == 64
                    && p.entropy == p.flow
            );
        }
        let kind = |flags| packet(&frame_of(&Build { flags, ..Build::default() })).kind();
        assert_eq!(
            [kind(tcp::SYN), kind(tcp::SYN | tcp::ACK), kind(tcp::ACK)],
            [Kind::Syn, Kind::SynAck, Kind::Ack]
        );
        let udp =
            packet(&frame_of(&Build { protocol: Protocol::Udp, payload: 9, ..Build::default() }));
        assert_eq!((udp.payload, udp.flags), (9, 0));
    }

    #[test]
    fn who_is_unknown_is_nowhere_and_what_is_opaque_still_has_a_way() {
        let mut frame = frame_of(&Build::default());
        (frame[12], frame[13]) = (0x08, 0x06);
        let arp = packet(&frame);
        assert_eq!((arp.dst, arp.ttl, arp.class.ecn(), arp.payload), (6, TTL, Ecn::NotEct, 0));
        frame[5] = 9;
        let view = parse(&frame).unwrap();
        assert_eq!(classifier().read(Time::ZERO, &frame, frame.len(), &view), Err(Drop::Nowhere));
    }

    #[test]
    fn a_label_stands_for_the_hash_and_entropy_follows_the_five_tuple() {
        let classifier = classifier();
        let read = |frame: &[u8]| {
            classifier.read(Time::ZERO, frame, frame.len(), &parse(frame).unwrap()).unwrap()
        };
        let frame = frame_of(&Build::default());
        let tag = Tag { rank: 77, label: Some(3), deflected: true };
        let tagged = [&frame[..12], &tag.write(), &frame[12..]].concat();
        let (plain, labelled) = (read(&frame), read(&tagged));
        assert_eq!((labelled.entropy, labelled.rank, labelled.flow), (3, 77, plain.flow));
        assert!(
            labelled.has(flags::DEFLECTED) && labelled.size == plain.size,
            "the tag is not counted"
        );
        let mut marked = frame.clone();
        marked[15] = 0xb9;
        assert_eq!(read(&marked).entropy, plain.entropy, "DSCP and ECN are not in the hash");
        assert_ne!(read(&frame_of(&Build { port: 81, ..Build::default() })).entropy, plain.entropy);
    }

    proptest! {
        /// Whatever comes: the decision is read back, and what else was there stays.
        #[test]
        fn a_verdict_is_written_and_nothing_else(
            (six, tags, tagged) in (any::<bool>(), 0..3usize, any::<bool>()),
            (class, hops, rank) in (any::<u8>(), 2..=255u8, any::<u32>()),
            (marks, deflects) in (any::<bool>(), any::<bool>()),
        ) {
            let version = if six { Version::V6 } else { Version::V4 };
            let plain = frame_of(&Build { version, tags, payload: 10, ..Build::default() });
            let at = 12 + 4 * tags;
            let tag = Tag { rank, label: None, deflected: false }.write();
            let mut frame =
                [&plain[..at], if tagged { &tag[..] } else { &[] }, &plain[at..]].concat();
            let view = parse(&frame).unwrap();
            let ip = ip(&frame, &view).unwrap();
            ip.set_class(&mut frame, class);
            ip.set_hops(&mut frame, hops);
            prop_assert!(checks(&frame, &view));
            let mut p = packet(&frame);
            prop_assert_eq!((p.ttl, p.priority()), (hops, class >> 5));
            p.ttl -= 1;
            if marks && p.class.ecn() == Ecn::Ect {
                p.class = p.class.with_ecn(Ecn::Ce);
            }
            p.flags |= if deflects { flags::DEFLECTED } else { 0 };
            let before = frame.clone();
            write(&p, &mut frame, &view);
            prop_assert!(checks(&frame, &view));
            let after = packet(&frame);
            prop_assert_eq!((after.ttl, after.class, after.rank), (p.ttl, p.class, p.rank));
            prop_assert_eq!(after.has(flags::DEFLECTED), deflects && tagged);
            let changed = frame.iter().zip(&before).filter(|(a, b)| a != b).count();
            prop_assert!(changed <= 5, "{changed} bytes");
        }

        #[test]
        fn any_bytes_are_a_packet_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 14..200),
            kind in 0..4usize,
        ) {
            let mut bytes = bytes;
            bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
            let kinds = [[0x08, 0x00], [0x86, 0xdd], [0x88, 0xb5]];
            if let Some(kind) = kinds.get(kind) {
                bytes[12..14].copy_from_slice(kind);
            }
            let view = parse(&bytes).unwrap();
            let p = classifier().read(Time::ZERO, &bytes, bytes.len(), &view).unwrap();
            let before = bytes.len();
            write(
                &Packet { class: Ecn::Ce.into(), ttl: 1, flags: flags::DEFLECTED, ..p },
                &mut bytes,
                &view,
            );
            prop_assert_eq!(bytes.len(), before);
        }
    }
}
