//! Frames for tests, built and read without the code under test.

use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Version, parse};
use crate::edge::importance::{checks, options};

#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub version: Version,
    pub stamps: bool,
    pub sack: bool,
    pub scale: Option<u8>,
    pub ecn: u8,
    /// The initial sequence numbers of either end.
    pub isn: [u32; 2],
}

pub const PLAIN: Style = Style {
    version: Version::V4,
    stamps: true,
    sack: true,
    scale: Some(7),
    ecn: 2,
    isn: [5000, 90_000],
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seg {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub stamps: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
    /// Further options, as bytes.
    pub extra: Vec<u8>,
    pub payload: Vec<u8>,
    pub class: u8,
}

impl Seg {
    pub fn end(&self) -> u32 {
        let counts = self.flags & (tcp::SYN | tcp::FIN) != 0;
        self.seq.wrapping_add(self.payload.len() as u32 + u32::from(counts))
    }
    pub fn importance(&self) -> u8 {
        self.class >> 2 & 7
    }
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0))).sum()
}
fn fold(mut sum: u32) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

pub fn syn_options(style: &Style) -> Vec<u8> {
    let mut list = vec![2, 4, 5, 180];
    if style.sack {
        list.extend([4, 2, 1, 1]);
    }
    if style.stamps {
        list.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]);
    }
    if let Some(scale) = style.scale {
        list.extend([1, 3, 3, scale]);
    }
    list
}

/// The frame of a segment that host `from` (0 or 1) sends.
pub fn frame(version: Version, from: usize, seg: &Seg) -> Vec<u8> {
    let mut list = Vec::new();
    if let Some((value, echo)) = seg.stamps {
        list.extend([1, 1, 8, 10]);
        list.extend(value.to_be_bytes());
        list.extend(echo.to_be_bytes());
    }
    if !seg.sack.is_empty() {
        list.extend([1, 1, 5, (2 + 8 * seg.sack.len()) as u8]);
        for (a, b) in &seg.sack {
            list.extend(a.to_be_bytes());
            list.extend(b.to_be_bytes());
        }
    }
    list.extend(&seg.extra);
    while !list.len().is_multiple_of(4) {
        list.push(1);
    }
    let end = |host: usize| host as u8 + 1;
    let mut out = vec![2, 0, 0, 0, 0, end(1 - from), 2, 0, 0, 0, 0, end(from)];
    let length = 20 + list.len() + seg.payload.len();
    let start = out.len() + 2;
    match version {
        Version::V4 => {
            out.extend([8, 0, 0x45, seg.class]);
            out.extend(((20 + length) as u16).to_be_bytes());
            out.extend([0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, end(from), 10, 0, 0, end(1 - from)]);
            let check = fold(sum(&out[start..start + 20]));
            out[start + 10..start + 12].copy_from_slice(&check.to_be_bytes());
        }
        Version::V6 => {
            out.extend([0x86, 0xdd, 0x60 | seg.class >> 4, seg.class << 4, 0, 0]);
            out.extend((length as u16).to_be_bytes());
            out.extend([6, 64]);
            for host in [from, 1 - from] {
                out.extend([0xfd; 15]);
                out.push(end(host));
            }
        }
    }
    let pseudo = match version {
        Version::V4 => sum(&out[start + 12..start + 20]),
        Version::V6 => sum(&out[start + 8..start + 40]),
    } + 6
        + length as u32;
    let at = out.len();
    let ports = [40_000u16, 80];
    out.extend(ports[from].to_be_bytes());
    out.extend(ports[1 - from].to_be_bytes());
    out.extend(seg.seq.to_be_bytes());
    out.extend(seg.ack.to_be_bytes());
    out.extend([((20 + list.len()) << 2) as u8, seg.flags]);
    out.extend(seg.window.to_be_bytes());
    out.extend([0; 4]);
    out.extend(list);
    out.extend(&seg.payload);
    let check = fold(pseudo + sum(&out[at..]));
    out[at + 16..at + 18].copy_from_slice(&check.to_be_bytes());
    out
}

/// Reads a frame, and checks its lengths and checksums.
pub fn read(frame: &[u8]) -> Seg {
    let view = parse(frame).unwrap();
    let layers = view.tcp().unwrap();
    assert_eq!(layers.end, frame.len(), "length");
    assert!(checks(frame, layers), "checksum");
    let at = layers.network;
    let class = match layers.version {
        Version::V4 => frame[at + 1],
        Version::V6 => frame[at] << 4 | frame[at + 1] >> 4,
    };
    let flags = tcp::flags(frame, layers);
    let window = u16::from_be_bytes([frame[layers.transport + 14], frame[layers.transport + 15]]);
    let options = (flags & tcp::SYN == 0).then(|| options::read(tcp::options(frame, layers)));
    let options = options.map(|options| options.unwrap()).unwrap_or_default();
    let mut extra = Vec::new();
    if let Some(echo) = options.echo {
        options::write_echo(&mut extra, echo.as_slice().iter().copied());
    }
    Seg {
        seq: tcp::seq(frame, layers),
        ack: tcp::ack(frame, layers),
        flags,
        window,
        stamps: options.stamps,
        sack: options.sack.as_slice().to_vec(),
        extra,
        payload: frame[layers.payload..layers.end].to_vec(),
        class,
    }
}
