//! Any frames in both directions through a host's TLT shim: a packet keeps its length and its
//! payload, what is not TCP keeps every byte, and each frame that the shim sends is right and
//! repeats only bytes that the host sent at its sequence number.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use millpond_core::Time;
use millpond_linux::dataplane::buffers::Buffers;
use millpond_linux::dataplane::frame::parse::tcp;
use millpond_linux::dataplane::frame::{Checksums, Header, Segmenter, parse};
use millpond_linux::dataplane::packet::Packet;
use millpond_linux::edge::importance::{Shim, ShimParams, Verdict, checks};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Arbitrary, Debug)]
enum Step {
    Segment {
        leaves: bool,
        flags: u8,
        seq: u16,
        ack: u16,
        window: u16,
        class: u8,
        options: Vec<u8>,
        len: u8,
        salt: bool,
    },
    Raw {
        leaves: bool,
        bytes: Vec<u8>,
    },
    Later(u8),
    Evict,
}

#[derive(Arbitrary, Debug)]
struct Input {
    six: bool,
    /// Without options to begin with, or with those of Linux.
    has_options: bool,
    steps: Vec<Step>,
}

/// Close to a wrap.
const ISN: [u32; 2] = [u32::MAX - 300, 77];
const OFFER: [u8; 20] = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];

/// A frame of the host or its peer, with right lengths and checksums.
fn frame(
    six: bool,
    leaves: bool,
    fields: [u32; 2],
    flags: u8,
    rest: (u16, u8, &[u8], Vec<u8>),
) -> Vec<u8> {
    let (window, class, options, payload) = rest;
    let options = &options[..options.len().min(40) / 4 * 4];
    let ends: [u8; 2] = if leaves { [1, 2] } else { [2, 1] };
    let mut out = vec![2, 0, 0, 0, 0, ends[1], 2, 0, 0, 0, 0, ends[0]];
    let length = (20 + options.len() + payload.len()) as u16;
    if six {
        out.extend([0x86, 0xdd, 0x60 | class >> 4, class << 4, 0, 0]);
        out.extend(length.to_be_bytes());
        out.extend([6, 64]);
        ends.iter().for_each(|end| out.extend([&[0xfd; 15][..], &[*end]].concat()));
    } else {
        out.extend([8, 0, 0x45, class]);
        out.extend((20 + length).to_be_bytes());
        out.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, ends[0], 10, 0, 0, ends[1]]);
    }
    ends.iter().for_each(|end| out.extend([0, *end]));
    fields.iter().for_each(|field| out.extend(field.to_be_bytes()));
    out.extend([((20 + options.len()) << 2) as u8, flags]);
    out.extend(window.to_be_bytes());
    out.extend([0; 4]);
    out.extend(options);
    out.extend(payload);
    let layers = *parse(&out).and_then(|v| v.tcp().copied()).as_ref().expect("it is TCP");
    let (mut segmenter, mut header) =
        (Segmenter::new(&out, layers, 0, Checksums::Full), Header::default());
    let payload = segmenter.next(&mut header).expect("it is one packet");
    [header.bytes(), &out[payload]].concat()
}

struct Host {
    shim: Shim,
    buffers: Buffers,
    now: Time,
    sent: BTreeMap<u32, BTreeSet<u8>>,
}

impl Host {
    fn pass(&mut self, leaves: bool, bytes: &[u8]) {
        let Some(view) = parse(bytes) else { return };
        let Some(id) = self.buffers.take() else { return };
        self.buffers.bytes_mut(id)[..bytes.len()].copy_from_slice(bytes);
        let (mut packet, _) = Packet::read(&self.buffers, id, 0..bytes.len());
        let mut verdict = Verdict::Pass;
        if leaves {
            if let Some(layers) = view.tcp() {
                let seq = tcp::seq(bytes, layers);
                for (i, byte) in bytes[layers.payload..layers.end].iter().enumerate() {
                    self.sent.entry(seq.wrapping_add(i as u32)).or_default().insert(*byte);
                }
            }
            self.shim.outgoing(self.now, &mut packet, &view, &self.buffers);
        } else {
            verdict = self.shim.incoming(self.now, &mut packet, &view, &self.buffers);
        }
        let after = [packet.header.bytes(), packet.payload(&self.buffers)].concat();
        self.buffers.release(id);
        assert_eq!(after.len(), bytes.len());
        match view.tcp() {
            Some(layers) => assert_eq!(after[layers.payload..], bytes[layers.payload..]),
            None => assert!(after == bytes && verdict == Verdict::Pass),
        }
    }

    fn due(&mut self) {
        let sent = &self.sent;
        self.shim.due(self.now, &mut |bytes| {
            let view = parse(bytes).expect("it has an Ethernet header");
            let layers = view.tcp().expect("it is TCP");
            assert!(layers.end == bytes.len() && checks(bytes, layers));
            let seq = tcp::seq(bytes, layers);
            for (i, byte) in bytes[layers.payload..].iter().enumerate() {
                let known = sent.get(&seq.wrapping_add(i as u32));
                assert!(known.is_some_and(|known| known.contains(byte)), "never sent");
            }
        });
    }
}

fuzz_target!(|input: Input| {
    let params =
        ShimParams { cache_max: 2000, cache_total: 3000, flows_max: 2, ..ShimParams::default() };
    let mut host = Host {
        shim: Shim::new(&params),
        buffers: Buffers::new(1),
        now: Time::ZERO,
        sent: BTreeMap::new(),
    };
    let offer: &[u8] = if input.has_options { &OFFER } else { &[] };
    for leaves in [true, false] {
        let (own, other) = if leaves { (ISN[0], ISN[1]) } else { (ISN[1], ISN[0]) };
        let flags = if leaves { tcp::SYN } else { tcp::SYN | tcp::ACK };
        let rest = (60_000, 0, offer, Vec::new());
        let bytes = frame(input.six, leaves, [own, other.wrapping_add(1)], flags, rest);
        host.pass(leaves, &bytes);
    }
    assert_eq!(host.shim.counters().tracked, 1);
    for step in input.steps {
        match step {
            Step::Segment { leaves, flags, seq, ack, window, class, options, len, salt } => {
                let (own, other) = if leaves { (ISN[0], ISN[1]) } else { (ISN[1], ISN[0]) };
                let at = |isn: u32, by: u16| isn.wrapping_add(u32::from(by % 2048));
                let seq = at(own, seq);
                let payload =
                    (0..u32::from(len)).map(|i| seq.wrapping_add(i) as u8 ^ salt as u8).collect();
                let rest = (window, class, &options[..], payload);
                let bytes = frame(input.six, leaves, [seq, at(other, ack)], flags, rest);
                host.pass(leaves, &bytes);
            }
            Step::Raw { leaves, bytes } => host.pass(leaves, &bytes[..bytes.len().min(2000)]),
            Step::Later(by) => {
                host.now += Time::from_us(u64::from(by));
                host.due();
            }
            Step::Evict => host.shim.evict(host.now),
        }
        assert!(host.shim.cached() <= 3000 && host.shim.flows() <= 2);
    }
    host.now += Time::from_s(1);
    host.due();
    assert_eq!(host.shim.deadline(), None);
});
