//! Finds the layers of a frame. It reads, and copies nothing.
//!
//! Invariant: any bytes give a view; every offset that a view names lies within the frame, in the
//! order network < transport < payload ≤ end.

use super::header::HEADER_MAX;
use super::ip::Ip;
pub use super::ip::Version;
use super::tag::{self, Tag};
use super::vlan;
use std::fmt;

/// An Ethernet header without tags.
pub const ETHERNET: usize = 14;
/// Tags and extension headers beyond these are not looked behind: nobody nests deeper in earnest.
const TAGS_MAX: usize = 2;
const EXTENSIONS_MAX: usize = 8;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The address of everybody.
    pub const BROADCAST: Mac = Mac([0xff; 6]);
    /// As one number.
    #[inline]
    pub fn number(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
    /// The one that has this [`Mac::number`].
    pub fn of_number(number: u64) -> Mac {
        let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
        Mac([a, b, c, d, e, f])
    }
    /// Whether it is one of those that no bridge forwards: 01:80:c2:00:00:00 to 0f.
    pub fn is_link_local(self) -> bool {
        self.0[..5] == [0x01, 0x80, 0xc2, 0, 0] && self.0[5] < 16
    }
    /// Whether it names a group; no frame comes from one.
    pub fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl std::str::FromStr for Mac {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Mac, &'static str> {
        let (mut bytes, mut count) = ([0; 6], 0);
        for part in text.split(':') {
            let byte = bytes.get_mut(count).ok_or("more than six bytes")?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| "not a byte in hexadecimal")?;
            count += 1;
        }
        if count == 6 { Ok(Mac(bytes)) } else { Err("fewer than six bytes") }
    }
}

/// A transport that the edge reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// As IP headers have it.
    pub const fn number(self) -> u8 {
        match self {
            Protocol::Tcp => 6,
            Protocol::Udp => 17,
        }
    }
    /// Where its header keeps the checksum.
    pub const fn checksum_at(self) -> usize {
        match self {
            Protocol::Tcp => 16,
            Protocol::Udp => 6,
        }
    }
}

/// Where the layers of a TCP or UDP frame are, in bytes from the frame's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// The IP header.
    pub network: usize,
    /// The TCP or UDP header.
    pub transport: usize,
    /// Where the transport's payload begins.
    pub payload: usize,
    /// Its end by the IP header; Ethernet may have padded the frame beyond.
    pub end: usize,
    /// Of IP.
    pub version: Version,
    /// Of the transport.
    pub protocol: Protocol,
}

impl Layers {
    /// The IP header.
    /// The place of the transport's checksum.
    pub fn checksum_at(&self) -> usize {
        self.transport + self.protocol.checksum_at()
    }
    pub fn ip(&self) -> Ip {
        Ip { version: self.version, at: self.network }
    }
}

/// Why bytes that claim to be IP are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The frame ends within a header.
    Truncated,
    /// The IP header has a length of more bytes than there are.
    Length,
    /// A header length or version that no header has.
    Header,
    /// More headers than the edge can keep.
    TooLong,
}

/// The content of the Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// A whole TCP or UDP packet, or super-segment.
    Transport(Layers),
    /// A fragment of a packet: its ports cannot be known.
    Fragment,
    /// IP with another protocol, or with none that can be reached.
    OtherIp,
    /// Not IP.
    Opaque,
    /// Claims to be IP and is not. A switch passes it on; the edge leaves it alone.
    Malformed(Malformed),
}

/// A frame's Ethernet header, and what is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Whom it is for.
    pub destination: Mac,
    /// Whom it is from.
    pub source: Mac,
    /// The VLAN that its first tag names, if it begins with one of IEEE 802.1Q.
    pub vlan: Option<u16>,
    /// Where the fabric's tag is, if there is one.
    pub tag: Option<usize>,
    /// How long the Ethernet header is, with its tags.
    pub ethernet: usize,
    /// Its content.
    pub inner: Inner,
}

impl View {
    /// The layers, if it is TCP or UDP.
    pub fn layers(&self) -> Option<&Layers> {
        match &self.inner {
            Inner::Transport(layers) => Some(layers),
            _ => None,
        }
    }
    /// The layers, if it is TCP.
    pub fn tcp(&self) -> Option<&Layers> {
        self.layers().filter(|l| l.protocol == Protocol::Tcp)
    }
    /// Of the same frame without its first tag, which it must have.
    pub fn untagged(self) -> View {
        let less = |at: usize| at - vlan::LENGTH;
        let inner = match self.inner {
            Inner::Transport(l) => Inner::Transport(Layers {
                network: less(l.network),
                transport: less(l.transport),
                payload: less(l.payload),
                end: less(l.end),
                ..l
            }),
            other => other,
        };
        View { vlan: None, tag: self.tag.map(less), ethernet: less(self.ethernet), inner, ..self }
    }
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2).map(|w| u16::from_be_bytes([w[0], w[1]]))
}

/// The view of a frame; `None` if there are fewer bytes than an Ethernet header has.
#[inline]
pub fn parse(frame: &[u8]) -> Option<View> {
    parse_head(frame, frame.len())
}

/// As [`parse`], of a frame of `length` bytes of which `frame` has the first; a header that reaches
/// beyond them is truncated.
#[inline]
pub fn parse_head(frame: &[u8], length: usize) -> Option<View> {
    let header = frame.first_chunk::<ETHERNET>()?;
    let destination = Mac(std::array::from_fn(|i| header[i]));
    let source = Mac(std::array::from_fn(|i| header[i + 6]));
    let mut kind = u16::from_be_bytes([header[12], header[13]]);
    let (mut network, mut vlan) = (ETHERNET, None);
    for place in 0..TAGS_MAX {
        if !matches!(kind, vlan::ETHERTYPE | vlan::SERVICE) {
            break;
        }
        let (Some(tag), Some(next)) = (word(frame, network), word(frame, network + 2)) else {
            let inner = Inner::Malformed(Malformed::Truncated);
            return Some(View { destination, source, vlan, tag: None, ethernet: network, inner });
        };
        if place == 0 && kind == vlan::ETHERTYPE {
            vlan = vlan::number(tag);
        }
        (kind, network) = (next, network + 4);
    }
    let mut tag = None;
    if kind == tag::ETHERTYPE
        && Tag::read(frame, network - 2).is_some()
        && let Some(next) = word(frame, network - 2 + tag::LENGTH)
    {
        tag = Some(network - 2);
        (kind, network) = (next, network + tag::LENGTH);
    }
    let inner = match kind {
        IPV4 => ipv4(frame, length, network),
        IPV6 => ipv6(frame, length, network),
        _ => Ok(Inner::Opaque),
    };
    let inner = inner.unwrap_or_else(Inner::Malformed);
    Some(View { destination, source, vlan, tag, ethernet: network, inner })
}

fn ipv4(frame: &[u8], bytes: usize, network: usize) -> Result<Inner, Malformed> {
    let header = frame.get(network..network + 20).ok_or(Malformed::Truncated)?;
    let length = usize::from(header[0] & 15) * 4;
    if header[0] >> 4 != 4 || length < 20 {
        return Err(Malformed::Header);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if total < length {
        return Err(Malformed::Header);
    }
    if network + total > bytes {
        return Err(Malformed::Length);
    }
    // More fragments, or an offset.
    if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
        return Ok(Inner::Fragment);
    }
    transport(frame, Version::V4, network, network + length, network + total, header[9])
}

fn ipv6(frame: &[u8], bytes: usize, network: usize) -> Result<Inner, Malformed> {
    let header = frame.get(network..network + 40).ok_or(Malformed::Truncated)?;
    if header[0] >> 4 != 6 {
        return Err(Malformed::Header);
    }
    let end = network + 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if end > bytes {
        return Err(Malformed::Length);
    }
    let (mut next, mut at) = (header[6], network + 40);
    for _ in 0..EXTENSIONS_MAX {
        match next {
            // Hop-by-hop options, routing, destination options (RFC 8200 §4).
            0 | 43 | 60 => {
                let extension =
                    frame[..end.min(frame.len())].get(at..at + 8).ok_or(Malformed::Truncated)?;
                next = extension[0];
                at += 8 + usize::from(extension[1]) * 8;
            }
            44 => return Ok(Inner::Fragment),
            _ => return transport(frame, Version::V6, network, at, end, next),
        }
    }
    Ok(Inner::OtherIp)
}

fn transport(
    frame: &[u8],
    version: Version,
    network: usize,
    transport: usize,
    end: usize,
    protocol: u8,
) -> Result<Inner, Malformed> {
    let bytes = frame.get(transport..end.min(frame.len())).ok_or(Malformed::Truncated)?;
    let (protocol, length) = match protocol {
        6 => {
            let length = usize::from(bytes.get(12).ok_or(Malformed::Truncated)? >> 4) * 4;
            if length < 20 {
                return Err(Malformed::Header);
            }
            (Protocol::Tcp, length)
        }
        17 => (Protocol::Udp, 8),
        _ => return Ok(Inner::OtherIp),
    };
    if bytes.len() < length {
        return Err(Malformed::Truncated);
    }
    let payload = transport + length;
    if payload > HEADER_MAX {
        return Err(Malformed::TooLong);
    }
    Ok(Inner::Transport(Layers { network, transport, payload, end, version, protocol }))
}

/// Reads fields of a TCP header; `layers` must be the frame's own.
pub mod tcp {
    use super::Layers;

    /// The bits of [`flags`].
    pub const FIN: u8 = 1;
    /// Opens a connection.
    pub const SYN: u8 = 2;
    /// Breaks a connection.
    pub const RST: u8 = 4;
    /// Push.
    pub const PSH: u8 = 8;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 16;
    /// Urgent.
    pub const URG: u8 = 32;
    /// The receiver saw a mark.
    pub const ECE: u8 = 64;
    /// The sender has reduced its window.
    pub const CWR: u8 = 128;

    fn long(frame: &[u8], at: usize) -> u32 {
        let bytes = &frame[at..at + 4];
        u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
    /// The sequence number of the first byte.
    #[inline]
    pub fn seq(frame: &[u8], layers: &Layers) -> u32 {
        long(frame, layers.transport + 4)
    }
    /// The acknowledgement number.
    #[inline]
    pub fn ack(frame: &[u8], layers: &Layers) -> u32 {
        long(frame, layers.transport + 8)
    }
    /// The flags.
    #[inline]
    pub fn flags(frame: &[u8], layers: &Layers) -> u8 {
        frame[layers.transport + 13]
    }
    /// The options' bytes.
    #[inline]
    pub fn options<'a>(frame: &'a [u8], layers: &Layers) -> &'a [u8] {
        &frame[layers.transport + 20..layers.payload]
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::tests::{Build, frame_of};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_tagged_four_and_six() {
        for version in [Version::V4, Version::V6] {
            for tags in 0..=2 {
                let build = Build { version, tags, payload: 10, ..Build::default() };
                let frame = frame_of(&build);
                let view = parse(&frame).unwrap();
                let layers = view.tcp().unwrap_or_else(|| panic!("{version:?} {tags} {view:?}"));
                assert_eq!(layers.network, 14 + 4 * tags);
                assert_eq!((layers.end - layers.payload, layers.end), (10, frame.len()));
                assert_eq!(view.vlan, (tags > 0).then_some(7));
                assert!(super::super::checksum::is_right(&frame, layers));
            }
        }
    }

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let mac = Mac([2, 0xab, 0, 1, 0xff, 9]);
        assert_eq!(mac.to_string().parse(), Ok(mac));
        assert_eq!(Mac::of_number(mac.number()), mac);
        for wrong in ["", "02:00", "02:00:00:00:00:00:00", "02:00:00:00:00:0g"] {
            assert!(wrong.parse::<Mac>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn padding_is_not_payload() {
        let mut frame = frame_of(&Build { payload: 1, ..Build::default() });
        let end = frame.len();
        frame.extend([0; 9]);
        assert_eq!(parse(&frame).unwrap().tcp().unwrap().end, end);
    }

    #[test]
    fn fragments_and_others_are_told_apart() {
        let mut frame = frame_of(&Build::default());
        frame[14 + 6] = 0x20;
        assert_eq!(parse(&frame).unwrap().inner, Inner::Fragment);
        frame[14 + 6] = 0x40;
        assert!(parse(&frame).unwrap().tcp().is_some(), "do not fragment is no fragment");
        frame[14 + 9] = 47;
        assert_eq!(parse(&frame).unwrap().inner, Inner::OtherIp);
        frame[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(parse(&frame).unwrap().inner, Inner::Opaque);
        let mut six = frame_of(&Build { version: Version::V6, ..Build::default() });
        six[14 + 6] = 44;
        assert_eq!(parse(&six).unwrap().inner, Inner::Fragment);
    }

    #[test]
    fn lies_have_names() {
        let good = frame_of(&Build { payload: 100, ..Build::default() });
        let said = |at: usize, byte: u8| {
            let mut frame = good.clone();
            frame[at] = byte;
            parse(&frame).unwrap().inner
        };
        assert_eq!(said(14, 0x44), Inner::Malformed(Malformed::Header));
        assert_eq!(said(14, 0x65), Inner::Malformed(Malformed::Header));
        assert_eq!(said(16, 0xff), Inner::Malformed(Malformed::Length));
        assert_eq!(said(14 + 20 + 12, 0x40), Inner::Malformed(Malformed::Header));
        assert_eq!(parse(&good[..20]).unwrap().inner, Inner::Malformed(Malformed::Truncated));
        assert_eq!(parse(&good[..60]).unwrap().inner, Inner::Malformed(Malformed::Length));
        assert!(parse(&good[..13]).is_none());
    }

    #[test]
    fn extension_headers_are_looked_behind() {
        let plain = frame_of(&Build { version: Version::V6, payload: 5, ..Build::default() });
        let mut frame = plain.clone();
        frame[14 + 6] = 60;
        frame.splice(54..54, [6, 0, 1, 4, 0, 0, 0, 0]);
        let length = (frame.len() - 54) as u16;
        frame[18..20].copy_from_slice(&length.to_be_bytes());
        let view = parse(&frame).unwrap();
        assert_eq!(view.tcp().unwrap().transport, 62);
        // One that points behind the end.
        frame[55] = 255;
        assert_eq!(parse(&frame).unwrap().inner, Inner::Malformed(Malformed::Truncated));
    }

    proptest! {
        #[test]
        fn any_bytes_give_offsets_within(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            kind in 0..3u8,
        ) {
            let mut bytes = bytes;
            if bytes.len() > 15 && kind > 0 {
                bytes[12..14].copy_from_slice(&[[0x08, 0x00], [0x86, 0xdd]][usize::from(kind - 1)]);
                bytes[14] = [0x45, 0x60][usize::from(kind - 1)];
            }
            if let Some(layers) = parse(&bytes).and_then(|v| v.layers().copied()) {
                prop_assert!(
                    layers.network < layers.transport && layers.transport < layers.payload
                );
                prop_assert!(layers.payload <= layers.end && layers.end <= bytes.len());
            }
        }
    }
}
