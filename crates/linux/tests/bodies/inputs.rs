//! Valid inputs, and changes of them.
//!
//! Invariant: the same seed gives the same inputs.

use crate::dataplane::frame::offload::LENGTH;
use crate::dataplane::frame::{
    Checksums, Header, Mac, Offload, Segmenter, Tag, parse, pause, vlan,
};
use crate::encapsulation::Encapsulation;
use crate::tunnel::Probe;
use millpond_core::overlay::wire::{Head, Key, encode};
use millpond_core::overlay::{Record, Target, Word};
use millpond_core::random::mix64;

/// Options of a handshake as Linux has them; with a list that ends within one; at odd places.
const OPTIONS: [&[u8]; 9] = [
    &[],
    &[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7],
    &[1, 2, 4, 5, 180, 1, 1, 0],
    &[1, 1, 1, 2],
    &[1, 1, 2, 4],
    &[1, 2, 4, 5],
    &[1, 1, 8, 10, 0, 0, 0, 10, 0, 0, 0, 9],
    &[1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 1, 0, 0, 0, 2, 0],
    &[1, 1, 8, 10, 0, 0, 0, 10, 0, 0, 0, 9, 254, 12, 0x54, 0x4c, 0, 0, 0, 1, 0, 0, 0, 9],
];
/// SYN; SYN and ACK; ACK; PSH and ACK; FIN and ACK; RST; CWR, ECE, URG and ACK.
const FLAGS: [u8; 7] = [2, 0x12, 0x10, 0x18, 0x11, 4, 0xf0];
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

fn address_6(end: usize) -> [u8; 16] {
    let mut address = [0; 16];
    (address[0], address[15]) = (0xfd, end as u8 + 1);
    address
}

/// A frame from an end to the other, with right lengths and checksums if it is TCP or UDP.
fn frame(from: usize, tags: &[u8], kind: u16, content: &[u8]) -> Vec<u8> {
    let kind = kind.to_be_bytes();
    sealed(&[&MACS[1 - from][..], &MACS[from], tags, &kind, content].concat())
}

/// The frame with right lengths and checksums, if it is TCP or UDP.
fn sealed(frame: &[u8]) -> Vec<u8> {
    let view = parse(frame);
    let Some(layers) = view.as_ref().and_then(|view| view.layers()) else { return frame.to_vec() };
    let mut header = Header::default();
    let payload = Segmenter::new(frame, *layers, 0, Checksums::Full).next(&mut header);
    [header.bytes(), &frame[payload.unwrap_or_default()]].concat()
}

fn ip(from: usize, is_four: bool, protocol: u8, options: &[u8], content: &[u8]) -> Vec<u8> {
    let length =
        ((content.len() + options.len()) as u16 + if is_four { 20 } else { 0 }).to_be_bytes();
    if is_four {
        let first = 0x45 + options.len() as u8 / 4;
        let head = [&[first, 0][..], &length, &[0, 9, 0, 0, 64, protocol, 0, 0]].concat();
        return [&head[..], &ADDRESSES[from], &ADDRESSES[1 - from], options, content].concat();
    }
    let next = if options.is_empty() { protocol } else { 60 };
    let head = [&[0x60, 0, 0, 0][..], &length, &[next, 255]].concat();
    let mut options = options.to_vec();
    options.iter_mut().take(1).for_each(|first| *first = protocol);
    [&head[..], &address_6(from), &address_6(1 - from), &options, content].concat()
}

fn tcp(from: usize, flags: u8, options: &[u8], payload: usize) -> Vec<u8> {
    let ports: [u8; 4] = if from == 0 { [0, 80, 1, 2] } else { [1, 2, 0, 80] };
    let (seq, ack) = ([0, 0, 1, from as u8], [0, 0, 1, 1 - from as u8]);
    let first = (20 + options.len() as u8) << 2;
    let head = [&ports[..], &seq, &ack, &[first, flags, 0xff, 0, 0, 0, 0, 0]].concat();
    [&head[..], options, &vec![7; payload]].concat()
}

/// The fabric's tag, a VLAN's, a priority, a provider's before a VLAN's.
fn tags() -> Vec<Vec<u8>> {
    let vlan = [&vlan::ETHERTYPE.to_be_bytes()[..], &[0x20, 10]].concat();
    let tag = Tag { rank: 5, label: Some(6), deflected: false }.write().to_vec();
    let service = [&vlan::SERVICE.to_be_bytes()[..], &[0, 9], &vlan].concat();
    vec![vec![], vlan.clone(), vec![0x81, 0, 0xe0, 0], tag.clone(), service, [vlan, tag].concat()]
}

fn transports(all: &mut Vec<Vec<u8>>) {
    for (number, tags) in tags().into_iter().enumerate() {
        for (from, is_four) in [(0, true), (1, true), (0, false), (1, false)] {
            let kind = if is_four { 0x0800 } else { 0x86dd };
            let mut add = |protocol: u8, options: &[u8], content: &[u8]| {
                all.push(frame(from, &tags, kind, &ip(from, is_four, protocol, options, content)));
            };
            for (at, options) in OPTIONS.iter().enumerate() {
                let flags = FLAGS[(at + number) % FLAGS.len()];
                let length = [0, 1, 33, 200][(at + number) % 4];
                add(6, &[], &tcp(from, flags, options, length));
                add(6, &[], &tcp(from, [2, 0x12][from], options, 0));
            }
            let length = if number == 0 { 2900 } else { 100 };
            add(6, &[1, 1, 1, 1, 1, 1, 1, 0], &tcp(from, 0x10, OPTIONS[6], length));
            add(17, &[], &[&[0, 68, 0, 67, 0, 0, 0, 0][..], &[5; 40]].concat());
            add(1, &[], &[8, 0, 0, 0, 0, 0, 0, 0]);
            add(47, &[7, 4, 4, 0], &[9; 64]);
        }
    }
}

/// ARP, neighbour discovery, pauses, a probe for loops, a fragment, a runt.
fn others(all: &mut Vec<Vec<u8>>) {
    for from in [0, 1] {
        for (kind, operation) in [(0x0806, 1), (0x0806, 2), (0x8035, 3)] {
            for to in [from, 1 - from] {
                let head = [0, 1, 8, 0, 6, 4, 0, operation];
                let [own, other] = [from, to].map(|end| [&MACS[end][..], &ADDRESSES[end]].concat());
                all.push(frame(from, &[], kind, &[&head[..], &own, &other, &[0; 18]].concat()));
            }
        }
        for kind in 133..=137u8 {
            let link = [&[if kind == 136 { 2 } else { 1 }, 1][..], &MACS[from]].concat();
            let target: &[u8] = if kind < 135 { &[] } else { &address_6(from) };
            let message = [&[kind, 0, 0, 0, 0, 0, 0, 0][..], target, &link].concat();
            all.push(frame(from, &[], 0x86dd, &ip(from, false, 58, &[0; 8], &message)));
        }
        let mut fragment = ip(from, true, 17, &[], &[3; 400]);
        fragment[6] = 0x20;
        all.push(frame(from, &[], 0x0800, &fragment));
    }
    let mut pause = pause::write(Mac(MACS[0]), &[Some(9); 8]).to_vec();
    all.push(pause.clone());
    pause[14..18].copy_from_slice(&[0, 1, 0x12, 0x34]);
    all.push(pause);
    let probe = [&[3, 0, 0, 0x6d, 0x70, 0x6c][..], &MACS[0], &[0x88, 0xb6], b"mpl1"].concat();
    all.push([&probe[..], &[0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 0, 0, 0], &[0; 28]].concat());
    all.push(vec![0xff; 14]);
}

/// Messages between switches, and an answer of the kernel.
fn datagrams(all: &mut Vec<Vec<u8>>) {
    let stamp = Encapsulation { label: 1, flowcell: 2, partial: true }.write();
    all.push([&stamp[..], &all[0]].concat());
    let nonces = Probe { from: [5; 16], ..Probe::default() };
    all.push(nonces.write(None));
    all.push(Probe { length: 300, ..nonces }.write(None));
    let words = [Word::Pause, Word::Refresh, Word::Resume];
    let record =
        |word| Record { word, target: Target::Peer, seq: 1, queued: 9, rate: 0, ttl: 50_000 };
    let head = Head { from: 2, to: 1, epoch: 3, to_epoch: 7, number: 4 };
    let key = Key::new(b"what others share").expect("it is long enough");
    all.push(encode(&head, &words.map(record), &key));
    let attribute = [8, 0, 2, 0, 1, 2, 3, 4];
    all.push([&[28, 0, 0, 0, 20, 0][..], &[0; 10], &attribute, &[4, 0, 1, 0]].concat());
}

/// Several parts as one input: of each a control byte, its length, and its bytes.
pub fn parts(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let ([control, high, low], rest) = bytes.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (part, rest) = rest.split_at(length);
        bytes = rest;
        Some((*control, part))
    })
}

/// Inputs from a seed.
pub struct Inputs {
    frames: Vec<Vec<u8>>,
    state: u64,
    one: Vec<u8>,
    several: Vec<u8>,
}

/// Bytes that mean something somewhere.
const BYTES: [u8; 16] = [0, 1, 2, 4, 5, 6, 8, 17, 40, 44, 58, 60, 0x40, 0x7f, 0x80, 0xff];

impl Inputs {
    /// Inputs from this seed.
    pub fn new(seed: u64) -> Inputs {
        let mut frames = Vec::new();
        transports(&mut frames);
        others(&mut frames);
        datagrams(&mut frames);
        Inputs { frames, state: mix64(seed) | 1, one: Vec::new(), several: Vec::new() }
    }

    /// Each frame without a change, as an input.
    pub fn valid(&self) -> impl Iterator<Item = Vec<u8>> {
        self.frames.iter().map(|frame| [&header(frame, 0)[..], frame].concat())
    }

    /// xorshift64* (Vigna: "An experimental exploration of Marsaglia's xorshift generators", 2016).
    fn drawn(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A valid frame with some changes, or none.
    pub fn one(&mut self) -> &[u8] {
        let drawn = self.drawn();
        let which = (drawn >> 32) as usize % self.frames.len();
        let header = header(&self.frames[which], drawn as u32);
        self.one.clear();
        self.one.extend_from_slice(&header);
        self.one.extend_from_slice(&self.frames[which]);
        for _ in 0..drawn >> 8 & 3 {
            self.change();
        }
        if drawn & 0xf0 == 0 {
            let frame = sealed(self.one.get(LENGTH..).unwrap_or_default());
            self.one.truncate(LENGTH);
            self.one.extend(frame);
        }
        &self.one
    }

    fn change(&mut self) {
        let drawn = self.drawn();
        let length = self.one.len();
        if length == 0 {
            return;
        }
        // Most bytes with a meaning are the first ones.
        let near = if drawn & 7 == 0 { length } else { length.min(LENGTH + 96) };
        let (at, value) = ((drawn >> 32) as usize % near, (drawn >> 16) as u8);
        match drawn >> 3 & 7 {
            0 | 1 => self.one[at] = value,
            2 => self.one[at] ^= 1 << (value & 7),
            3 | 4 => self.one[at] = BYTES[usize::from(value & 15)],
            5 => self.one.truncate(at),
            6 => drop(
                self.one.splice(at..at, [value; 4].into_iter().take(usize::from(value & 3) + 1)),
            ),
            _ => {
                let other = &self.frames[usize::from(value) % self.frames.len()];
                let (from, to) = (at.min(other.len()), (at + 8).min(other.len()).min(length));
                if from < to {
                    self.one[from..to].copy_from_slice(&other[from..to]);
                }
            }
        }
    }

    /// Some frames as one input ([`parts`]).
    pub fn several(&mut self) -> &[u8] {
        let mut several = std::mem::take(&mut self.several);
        several.clear();
        for _ in 0..1 + self.drawn() % 12 {
            let control = (self.drawn() >> 24) as u8;
            let part = self.one();
            several.push(control);
            several.extend((part.len() as u16).to_be_bytes());
            several.extend_from_slice(part);
        }
        self.several = several;
        &self.several
    }
}

/// A virtio header that fits the frame, or one that may not.
fn header(frame: &[u8], drawn: u32) -> [u8; LENGTH] {
    let mss = [88, 89, 536, 1448][drawn as usize >> 4 & 3];
    let fitting = parse(frame).and_then(|view| view.layers().map(|l| Offload::of(l, mss)));
    match (drawn >> 8 & 3, fitting) {
        (0 | 1, Some(offload)) => offload.write(),
        (0..=2, _) => Offload::default().write(),
        _ => {
            let mut bytes = [0; LENGTH];
            bytes[..8].copy_from_slice(&mix64(drawn.into()).to_ne_bytes());
            (bytes[0], bytes[1]) = (bytes[0] & 1, [0, 0, 1, 4, 5, 0x81][usize::from(bytes[1]) % 6]);
            (bytes[8], bytes[9]) = (16, 0);
            bytes
        }
    }
}
