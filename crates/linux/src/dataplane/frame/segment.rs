//! Cuts a super-segment as the kernel would, without touching its payload: each packet is a header
//! of its own and a range of the frame that was read.
//!
//! As `tcp_gso_segment` and `inet_gso_segment` do: the sequence number grows by the MSS, the IPv4
//! identification by one, FIN and PSH stay on the last packet only and CWR on the first, options
//! are the same in all.
//!
//! Invariant: the payload ranges lie one behind the other and make up the whole payload.

use super::checksum::{self, pseudo};
use super::header::Header;
use super::offload::Offload;
use super::parse::{Layers, Protocol, Version, tcp};
use std::ops::Range;

/// The kind of transport checksum that the packets are to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// The pseudo-header's share: whoever sends the packet adds the rest, or vouches for it.
    Partial,
    /// Whole, which reads the payload.
    Full,
}

/// A super-segment on its way to be cut.
pub struct Segmenter<'a> {
    frame: &'a [u8],
    layers: Layers,
    mss: usize,
    checksums: Checksums,
    at: usize,
    index: u16,
    /// The partial checksum of a packet of `mss` bytes.
    share: [u8; 2],
    done: bool,
}

impl<'a> Segmenter<'a> {
    /// Of a frame with these layers, which must be its own. `mss` is the payload of each packet but
    /// the last; 0 means that the frame is one packet.
    pub fn new(frame: &'a [u8], layers: Layers, mss: usize, checksums: Checksums) -> Segmenter<'a> {
        let mss = if mss == 0 { layers.end - layers.payload } else { mss };
        let (at, share) = (layers.payload, [0; 2]);
        Segmenter { frame, layers, mss, checksums, at, index: 0, share, done: false }
    }

    /// The virtio header of a packet with `payload` bytes that has come out of here.
    pub fn offload(&self, payload: usize) -> Offload {
        match self.checksums {
            Checksums::Full => Offload::default(),
            Checksums::Partial => {
                let end = self.layers.payload + payload;
                Offload::of(&Layers { end, ..self.layers }, payload)
            }
        }
    }

    /// Writes the next packet's headers, and reports where in the frame its payload is.
    #[inline]
    pub fn next(&mut self, header: &mut Header) -> Option<Range<usize>> {
        if self.done {
            return None;
        }
        let layers = &self.layers;
        let payload = self.at..(self.at + self.mss).min(layers.end);
        self.done = payload.end == layers.end;
        header.set(&self.frame[..layers.payload]);
        let bytes = header.bytes_mut();
        set_length(bytes, layers, payload.len());
        if layers.version == Version::V4 {
            let at = layers.network + 4;
            let id = u16::from_be_bytes([bytes[at], bytes[at + 1]]).wrapping_add(self.index);
            bytes[at..at + 2].copy_from_slice(&id.to_be_bytes());
            set_ipv4_checksum(bytes, layers);
        }
        if layers.protocol == Protocol::Tcp {
            let seq = tcp::seq(bytes, layers).wrapping_add((self.at - layers.payload) as u32);
            bytes[layers.transport + 4..layers.transport + 8].copy_from_slice(&seq.to_be_bytes());
            let clear = if self.done { 0 } else { tcp::FIN | tcp::PSH };
            bytes[layers.transport + 13] &= !(clear | if self.index > 0 { tcp::CWR } else { 0 });
        }
        let (at, content) = (layers.checksum_at(), &self.frame[payload.clone()]);
        match self.checksums {
            Checksums::Partial if self.index > 0 && content.len() == self.mss => {
                bytes[at..at + 2].copy_from_slice(&self.share);
            }
            checksums => set_transport_checksum(bytes, layers, content, checksums),
        }
        if self.index == 0 {
            self.share = [bytes[at], bytes[at + 1]];
        }
        self.at = payload.end;
        self.index = self.index.wrapping_add(1);
        Some(payload)
    }
}

/// Writes the lengths of IP and UDP headers for a payload.
pub(super) fn set_length(header: &mut [u8], layers: &Layers, payload: usize) {
    let total = layers.payload + payload - layers.network;
    let (at, length) = match layers.version {
        Version::V4 => (layers.network + 2, total),
        Version::V6 => (layers.network + 4, total - 40),
    };
    header[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
    if layers.protocol == Protocol::Udp {
        let at = layers.transport + 4;
        header[at..at + 2].copy_from_slice(&((8 + payload) as u16).to_be_bytes());
    }
}

/// Writes the lengths and the checksums of a whole packet.
pub fn complete(packet: &mut [u8], layers: &Layers) {
    set_length(packet, layers, layers.end - layers.payload);
    if layers.version == Version::V4 {
        set_ipv4_checksum(packet, layers);
    }
    let (header, payload) = packet[..layers.end].split_at_mut(layers.payload);
    set_transport_checksum(header, layers, payload, Checksums::Full);
}

/// Writes the IPv4 header's checksum.
pub(super) fn set_ipv4_checksum(header: &mut [u8], layers: &Layers) {
    let length = usize::from(header[layers.network] & 15) * 4;
    checksum::set(&mut header[layers.network..layers.network + length], 10);
}

fn set_transport_checksum(
    header: &mut [u8],
    layers: &Layers,
    payload: &[u8],
    checksums: Checksums,
) {
    let at = layers.checksum_at();
    let sum = pseudo(header, layers, layers.payload - layers.transport + payload.len());
    let value = match checksums {
        Checksums::Partial => sum.fold(),
        Checksums::Full => {
            header[at..at + 2].fill(0);
            match sum.bytes(&header[layers.transport..layers.payload]).bytes(payload).checksum() {
                // 0 would mean none (RFC 768).
                0 if layers.protocol == Protocol::Udp => 0xffff,
                other => other,
            }
        }
    };
    header[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::checksum::Sum;
    use super::super::parse;
    use super::*;
    use proptest::prelude::*;

    /// A frame for tests.
    #[derive(Clone, Copy, Debug)]
    pub struct Build {
        pub version: Version,
        pub protocol: Protocol,
        pub tags: usize,
        pub seq: u32,
        pub id: u16,
        pub flags: u8,
        pub options: usize,
        pub payload: usize,
        pub port: u16,
    }

    impl Default for Build {
        fn default() -> Self {
            let (version, protocol) = (Version::V4, Protocol::Tcp);
            Build {
                version,
                protocol,
                tags: 0,
                seq: 1000,
                id: 5,
                flags: tcp::ACK,
                options: 12,
                payload: 0,
                port: 80,
            }
        }
    }

    /// Its bytes, with whole checksums; the payload counts up.
    pub fn frame_of(b: &Build) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        (0..b.tags).for_each(|_| frame.extend([0x81, 0, 0x20, 7]));
        let transport = match b.protocol {
            Protocol::Tcp => 20 + b.options,
            Protocol::Udp => 8,
        };
        let network = frame.len() + 2;
        match b.version {
            Version::V4 => {
                frame.extend([0x08, 0x00, 0x45, 0]);
                frame.extend(((20 + transport + b.payload) as u16).to_be_bytes());
                frame.extend(b.id.to_be_bytes());
                frame.extend([0x40, 0, 64, b.protocol.number(), 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            }
            Version::V6 => {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                frame.extend(((transport + b.payload) as u16).to_be_bytes());
                frame.extend([b.protocol.number(), 64]);
                frame.extend([[0xfd; 16], [0xfc; 16]].concat());
            }
        }
        let at = frame.len();
        frame.extend(4321u16.to_be_bytes());
        frame.extend(b.port.to_be_bytes());
        match b.protocol {
            Protocol::Tcp => {
                frame.extend(b.seq.to_be_bytes());
                frame.extend(77u32.to_be_bytes());
                frame.extend([((20 + b.options) << 2) as u8, b.flags, 1, 0, 0, 0, 0, 0]);
                frame.extend((0..b.options).map(|i| if i < 2 { 1 } else { i as u8 }));
            }
            Protocol::Udp => {
                frame.extend([((8 + b.payload) >> 8) as u8, (8 + b.payload) as u8, 0, 0])
            }
        }
        let payload = frame.len();
        frame.extend((0..b.payload).map(|i| (i ^ (i >> 8)) as u8));
        let end = frame.len();
        let (version, protocol) = (b.version, b.protocol);
        let layers = Layers { network, transport: at, payload, end, version, protocol };
        if version == Version::V4 {
            set_ipv4_checksum(&mut frame, &layers);
        }
        let content = frame[payload..].to_vec();
        set_transport_checksum(&mut frame, &layers, &content, Checksums::Full);
        frame
    }

    /// All packets of a super-segment, whole.
    pub fn cut(frame: &[u8], mss: usize, checksums: Checksums) -> Vec<Vec<u8>> {
        let layers = *parse(frame).unwrap().layers().unwrap();
        let mut segmenter = Segmenter::new(frame, layers, mss, checksums);
        let mut header = Header::default();
        let mut packets = Vec::new();
        while let Some(payload) = segmenter.next(&mut header) {
            packets.push([header.bytes(), &frame[payload]].concat());
        }
        packets
    }

    #[test]
    fn as_the_kernel_cuts() {
        let flags = tcp::ACK | tcp::PSH | tcp::FIN | tcp::CWR | tcp::ECE;
        let build = Build {
            payload: 1448 * 2 + 100,
            flags,
            seq: u32::MAX - 1000,
            id: 0xffff,
            ..Build::default()
        };
        let frame = frame_of(&build);
        let packets = cut(&frame, 1448, Checksums::Full);
        assert_eq!(packets.iter().map(|p| p.len() - 66).collect::<Vec<_>>(), [1448, 1448, 100]);
        let views: Vec<Layers> =
            packets.iter().map(|p| *parse(p).unwrap().tcp().unwrap()).collect();
        let of = |f: fn(&[u8], &Layers) -> u32| -> Vec<u32> {
            packets.iter().zip(&views).map(|(p, l)| f(p, l)).collect()
        };
        assert_eq!(of(tcp::seq), [u32::MAX - 1000, 447, 1895]);
        assert_eq!(of(|p, _| u16::from_be_bytes([p[18], p[19]]).into()), [0xffff, 0, 1]);
        let (first, middle) = (tcp::ACK | tcp::CWR | tcp::ECE, tcp::ACK | tcp::ECE);
        let last = tcp::ACK | tcp::ECE | tcp::PSH | tcp::FIN;
        assert_eq!(of(|p, l| tcp::flags(p, l).into()), [first, middle, last].map(u32::from));
        for (packet, layers) in packets.iter().zip(&views) {
            assert_eq!(tcp::options(packet, layers), &frame[54..66]);
            assert_eq!(tcp::ack(packet, layers), 77);
        }
    }

    #[test]
    fn one_packet_stays_as_it_is() {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let frame = frame_of(&Build {
                protocol,
                payload: 99,
                flags: tcp::ACK | tcp::CWR | tcp::PSH,
                ..Build::default()
            });
            assert_eq!(cut(&frame, 0, Checksums::Full), std::slice::from_ref(&frame));
            assert_eq!(cut(&frame, 1448, Checksums::Full), [frame]);
        }
        let empty = frame_of(&Build::default());
        assert_eq!(cut(&empty, 1448, Checksums::Full), [empty]);
    }

    proptest! {
        #[test]
        fn whatever_is_cut_is_whole_and_right(
            payload in 0usize..60_000,
            mss in 1usize..9000,
            v6: bool,
            udp: bool,
            options in 0usize..=10,
            tags in 0usize..=2,
        ) {
            let version = if v6 { Version::V6 } else { Version::V4 };
            let protocol = if udp { Protocol::Udp } else { Protocol::Tcp };
            let mss = mss.max(payload / 500 + 1);
            let frame = frame_of(&Build {
                version,
                protocol,
                payload,
                tags,
                options: options * 4,
                ..Build::default()
            });
            let (mut bytes, mut seq) = (Vec::<u8>::new(), 1000);
            for packet in cut(&frame, mss, Checksums::Full) {
                let view = parse(&packet).unwrap();
                let layers = view.layers().unwrap();
                prop_assert!(checksum::is_right(&packet, layers));
                prop_assert_eq!(layers.end, packet.len());
                if !v6 {
                    prop_assert_eq!(
                        Sum::default().bytes(&packet[layers.network..layers.network + 20]).fold(),
                        0xffff
                    );
                }
                if !udp {
                    prop_assert_eq!(tcp::seq(&packet, layers), seq);
                }
                seq += (layers.end - layers.payload) as u32;
                bytes.extend(&packet[layers.payload..layers.end]);
            }
            prop_assert_eq!(&bytes[..], &frame[frame.len() - payload..]);
            // A partial checksum is what the rest is added to.
            for mut packet in cut(&frame, mss, Checksums::Partial) {
                let layers = *parse(&packet).unwrap().layers().unwrap();
                let mut offload = Offload {
                    partial: true,
                    checksum_start: layers.transport as u16,
                    checksum_offset: layers.protocol.checksum_at() as u16,
                    ..Offload::default()
                };
                offload.fill(&mut packet).unwrap();
                prop_assert!(checksum::is_right(&packet, &layers));
            }
        }
    }
}
