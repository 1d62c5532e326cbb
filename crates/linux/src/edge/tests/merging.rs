//! Which packets merge: the cases that the kernel's own test of its GRO asks about (Linux 6.18,
//! tools/testing/selftests/net/gro.c), and those in which this offload had differed.
//!
//! Each case is a few packets of one poll, and how many segments they become. Both offloads answer
//! alike: Presto's has the rules of the kernel's within a flowcell.

use super::{Bench, Edge, rule};
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::segment::tests::{Build, frame_of};
use crate::dataplane::frame::{Layers, Version, checksum, parse};
use millpond_core::edge::gro::{OffloadParams, PrestoGroParams, StockGroParams};

/// A packet: where it begins in the stream, how long it is, and what is changed of it.
type Piece = (u32, usize, fn(&mut [u8], &Layers));

fn same(_: &mut [u8], _: &Layers) {}
fn set(frame: &mut [u8], at: usize, bits: u8) {
    frame[at] |= bits;
}
fn psh(frame: &mut [u8], l: &Layers) {
    set(frame, l.transport + 13, tcp::PSH);
}
fn fin(frame: &mut [u8], l: &Layers) {
    set(frame, l.transport + 13, tcp::FIN);
}
fn syn(frame: &mut [u8], l: &Layers) {
    set(frame, l.transport + 13, tcp::SYN);
}
fn rst(frame: &mut [u8], l: &Layers) {
    set(frame, l.transport + 13, tcp::RST);
}
fn urg(frame: &mut [u8], l: &Layers) {
    set(frame, l.transport + 13, tcp::URG);
}
fn cwr(frame: &mut [u8], l: &Layers) {
    set(frame, l.transport + 13, tcp::CWR);
}
fn ece(frame: &mut [u8], l: &Layers) {
    set(frame, l.transport + 13, tcp::ECE);
}
fn accurate_ecn(frame: &mut [u8], l: &Layers) {
    set(frame, l.transport + 12, 1);
}
fn window(frame: &mut [u8], l: &Layers) {
    frame[l.transport + 15] ^= 1;
}
fn acknowledgement(frame: &mut [u8], l: &Layers) {
    frame[l.transport + 11] ^= 1;
}
fn option(frame: &mut [u8], l: &Layers) {
    frame[l.transport + 30] ^= 1;
}
fn ports(frame: &mut [u8], l: &Layers) {
    frame[l.transport + 1] ^= 1;
}
fn tos(frame: &mut [u8], l: &Layers) {
    match l.version {
        Version::V4 => frame[l.network + 1] ^= 0x10,
        Version::V6 => frame[l.network] ^= 0x01,
    }
}
fn ecn(frame: &mut [u8], l: &Layers) {
    match l.version {
        Version::V4 => frame[l.network + 1] ^= 3,
        Version::V6 => frame[l.network + 1] ^= 0x30,
    }
}
fn ttl(frame: &mut [u8], l: &Layers) {
    frame[l.network + if l.version == Version::V4 { 8 } else { 7 }] -= 1;
}
fn source(frame: &mut [u8], l: &Layers) {
    frame[l.network + if l.version == Version::V4 { 15 } else { 23 }] ^= 1;
}
fn ethernet(frame: &mut [u8], _: &Layers) {
    frame[11] ^= 1;
}

fn data(place: u32) -> Piece {
    (place * 100, 100, same)
}

/// For both versions of IP: what it is about, the packets, how many segments they become.
fn cases() -> Vec<(&'static str, Vec<Piece>, u64)> {
    let second = |change| vec![data(0), (100, 100, change)];
    vec![
        ("equal lengths", vec![data(0), data(1)], 1),
        ("a shorter last one", vec![data(0), (100, 40, same)], 1),
        ("a longer one", vec![(0, 40, same), (40, 100, same)], 2),
        ("behind a shorter one nothing", vec![data(0), (100, 40, same), (140, 100, same)], 2),
        ("pure acknowledgements", vec![(0, 0, same), (0, 0, same), (0, 0, same)], 3),
        ("data and an acknowledgement", vec![data(0), (100, 0, same)], 2),
        ("PSH ends it", vec![data(0), (100, 100, psh), data(2)], 2),
        ("FIN ends it", vec![data(0), (100, 100, fin)], 1),
        ("SYN", second(syn), 2),
        ("RST", second(rst), 2),
        ("URG", second(urg), 2),
        ("CWR behind", second(cwr), 2),
        ("CWR before", vec![(0, 100, cwr), data(1), data(2)], 2),
        ("ECE behind", second(ece), 2),
        ("ECE on both", vec![(0, 100, ece), (100, 100, ece)], 1),
        ("the AE bit", second(accurate_ecn), 2),
        ("another window", second(window), 2),
        ("another acknowledgement", second(acknowledgement), 2),
        ("another option", second(option), 2),
        ("a gap", vec![data(0), data(2)], 2),
        ("the same again", vec![data(0), data(0)], 2),
        ("other ports", second(ports), 2),
        ("another source", second(source), 2),
        ("another traffic class", second(tos), 2),
        ("another ECN field", second(ecn), 2),
        ("another TTL", second(ttl), 2),
        ("another hardware address", second(ethernet), 2),
    ]
}

/// How many segments the frames become, of one poll.
fn segments(frames: &[Vec<u8>]) -> [u64; 2] {
    let stock = OffloadParams::Stock(StockGroParams::default());
    let presto = OffloadParams::Presto(PrestoGroParams::default());
    [stock, presto].map(|offload| {
        let mut bench = Bench::new();
        let mut edge = Edge::new(rule(), vec![vec![0]], &offload);
        frames.iter().for_each(|frame| bench.arrive(&mut edge, 0, frame, 0, 0, false));
        bench.flush(&mut edge, 0);
        bench.drain(&mut edge);
        let counters = edge.offload_counters();
        assert_eq!(counters.packets, frames.len() as u64);
        counters.segments.iter().sum()
    })
}
/// Makes the checksums right for what was changed.
fn mend(frame: &mut [u8], layers: &Layers) {
    if layers.version == Version::V4 {
        frame[layers.network + 10..layers.network + 12].fill(0);
        let sum =
            checksum::Sum::default().bytes(&frame[layers.network..layers.transport]).checksum();
        frame[layers.network + 10..layers.network + 12].copy_from_slice(&sum.to_be_bytes());
    }
    let at = layers.transport + 16;
    frame[at..at + 2].fill(0);
    let sum = checksum::pseudo(frame, layers, layers.end - layers.transport)
        .bytes(&frame[layers.transport..]);
    frame[at..at + 2].copy_from_slice(&sum.checksum().to_be_bytes());
}

#[test]
fn packets_merge_as_in_the_kernel() {
    for version in [Version::V4, Version::V6] {
        for (what, pieces, expected) in cases() {
            let frames: Vec<Vec<u8>> = (5..)
                .zip(&pieces)
                .map(|(id, (seq, payload, change))| {
                    let mut frame = frame_of(&Build {
                        version,
                        seq: *seq,
                        payload: *payload,
                        id,
                        ..Build::default()
                    });
                    let layers = *parse(&frame).unwrap().layers().unwrap();
                    change(&mut frame, &layers);
                    mend(&mut frame, &layers);
                    frame
                })
                .collect();
            assert_eq!(segments(&frames), [expected; 2], "{version:?}, {what}");
        }
    }
}

/// IPv4's identifications: they count up, or are all the same where fragments are forbidden.
#[test]
fn identifications_merge_as_in_the_kernel() {
    for (what, ids, dont_fragment, expected) in [
        ("counting, DF", [7, 8, 9], true, 1),
        ("all the same, DF", [7, 7, 7], true, 1),
        ("counting, then the same, DF", [7, 8, 8], true, 2),
        ("the same, then counting, DF", [7, 7, 8], true, 2),
        ("random, DF", [7, 900, 13], true, 3),
        ("counting", [7, 8, 9], false, 1),
        ("counting over the end", [65_534, 65_535, 0], false, 1),
        ("all the same", [7, 7, 7], false, 3),
        ("random", [7, 900, 13], false, 3),
    ] {
        let frames: Vec<Vec<u8>> = (0..)
            .zip(ids)
            .map(|(place, id)| {
                let mut frame =
                    frame_of(&Build { seq: place * 100, payload: 100, id, ..Build::default() });
                let layers = *parse(&frame).unwrap().layers().unwrap();
                frame[layers.network + 6] = if dont_fragment { 0x40 } else { 0 };
                mend(&mut frame, &layers);
                frame
            })
            .collect();
        assert_eq!(segments(&frames), [expected; 2], "{what}");
    }
}

/// A wrong checksum, of IPv4's header or of TCP, stays wrong: it reaches whoever looks at it.
#[test]
fn a_wrong_checksum_is_passed_on_wrong() {
    for at in [24, 50] {
        let mut frames: Vec<Vec<u8>> = (0..3)
            .map(|place: u16| {
                let seq = u32::from(place) * 100;
                let mut frame =
                    frame_of(&Build { seq, payload: 100, id: place, ..Build::default() });
                if place == 1 {
                    frame[at] ^= 0x5a;
                }
                frame
            })
            .collect();
        let mut bench = Bench::new();
        let mut edge =
            Edge::new(rule(), vec![vec![0]], &OffloadParams::Stock(StockGroParams::default()));
        frames.iter().for_each(|frame| bench.arrive(&mut edge, 0, frame, 0, 0, false));
        bench.flush(&mut edge, 0);
        // A packet that does not merge goes up at once, before those of its poll.
        let mut out = bench.out();
        out.sort();
        frames.sort();
        assert!(out == frames, "as they came");
    }
}
