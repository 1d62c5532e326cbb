//! The edge from frames to frames: what honest senders send arrives whole and in order, whatever
//! others forge.

mod merging;

use super::egress::FLOWS_MAX;
use super::*;
use crate::dataplane::buffers::Frame;
use crate::dataplane::buffers::{BufferId, Buffers};
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::segment::tests::{Build, cut, frame_of};
use crate::dataplane::frame::{Checksums, Offload, Protocol, Version, parse};
use crate::dataplane::packet::Packet;
use crate::dataplane::port::{Pcap, Port};
use crate::dataplane::slot::Slot;
use crate::encapsulation::Encapsulation;
use crate::switch::node::Node;
use millpond_core::edge::flowcell::{Opening, Rule};
use millpond_core::edge::gro::{Cause, OffloadParams, PrestoGroParams, StockGroParams};
use millpond_core::edge::schedule::Order;
use millpond_core::edge::{AttainedServiceParams, RankParams};
use millpond_core::{Bytes, Time};
use pcap_file::pcap::PcapReader;
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A switch with one port, which writes to a file.
pub(super) struct Bench {
    node: Node,
    buffers: Buffers,
    file: PathBuf,
}

impl Bench {
    pub(super) fn new() -> Bench {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "millpond-edge-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let file = std::env::temp_dir().join(name);
        let mut node = Node::default();
        let port = Some(Port::Pcap(Box::new(Pcap::open(None, Some(&file)).unwrap())));
        node.slots.push(Slot::new("out", port, 65_535));
        Bench { node, buffers: Buffers::new(10_000), file }
    }
    fn keep(&mut self, frame: &[u8]) -> BufferId {
        let buffer = self.buffers.take().unwrap();
        self.buffers.bytes_mut(buffer)[..frame.len()].copy_from_slice(frame);
        buffer
    }
    fn packet(&mut self, frame: &[u8]) -> Packet {
        let buffer = self.keep(frame);
        let (packet, view) = Packet::read(&self.buffers, buffer, 0..frame.len());
        assert_eq!(view, packet.view());
        self.buffers.retain(buffer, u32::from(packet.has_payload()));
        self.buffers.release(buffer);
        packet
    }
    pub(super) fn arrive(
        &mut self,
        edge: &mut Edge,
        us: u64,
        frame: &[u8],
        label: u16,
        flowcell: u16,
        partial: bool,
    ) {
        let packet = self.packet(frame);
        let stamp = Encapsulation { label, flowcell, partial };
        let view = packet.view();
        edge.arrive(Time::from_us(us), 0, stamp, packet, view, &mut self.buffers);
    }
    pub(super) fn flush(&mut self, edge: &mut Edge, us: u64) {
        let now = Time::from_us(us);
        let node = &mut self.node;
        edge.flush(now, now, &mut self.buffers, |peer, frame| node.from_peer(now, peer, frame));
    }
    pub(super) fn drain(&mut self, edge: &mut Edge) {
        let (at, node) = (Time::from_ms(1000), &mut self.node);
        edge.drain(at, &mut self.buffers, |peer, frame| node.from_peer(at, peer, frame));
        assert_eq!(self.buffers.in_use(), 0, "every packet has given its buffer back");
    }
    /// The frames that have gone out.
    pub(super) fn out(&self) -> Vec<Vec<u8>> {
        let mut reader = PcapReader::new(std::fs::File::open(&self.file).unwrap()).unwrap();
        std::iter::from_fn(|| reader.next_packet().map(|p| p.unwrap().data().to_vec())).collect()
    }
}

impl std::ops::Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Keeps what it is to carry.
#[derive(Default)]
struct Wire(Vec<(Encapsulation, Packet)>);

impl Carrier for Wire {
    fn carry(
        &mut self,
        _: Time,
        _: &mut Buffers,
        packets: &[millpond_core::Packet],
        frames: &mut Vec<Held>,
    ) -> Result<(), Drop> {
        let all = packets.iter().zip(frames.drain(..));
        self.0.extend(all.map(|(packet, held)| (Encapsulation::of(packet, &held), held.bytes)));
        Ok(())
    }
}

/// Of two frames, the first one's carrier panics before it has taken the packets.
#[test]
fn packets_that_a_panic_leaves_go_to_nobody() {
    struct Broken;
    impl Carrier for Broken {
        fn carry(
            &mut self,
            _: Time,
            _: &mut Buffers,
            _: &[millpond_core::Packet],
            _: &mut Vec<Held>,
        ) -> Result<(), Drop> {
            panic!("a carrier's")
        }
    }
    let (mut bench, mut edge, mut wire) = (Bench::new(), presto(), Wire(Vec::new()));
    let mut sent = |carrier: &mut dyn Carrier, seq: u32| {
        let bytes = frame_of(&Build { seq, payload: 100, ..Build::default() });
        let (buffer, view) = (bench.keep(&bytes), parse(&bytes).unwrap());
        let (length, offload) = (bytes.len(), Offload::default());
        let mut frame = Frame { buffer, start: 0, length, offload };
        let send = || edge.send(Time::ZERO, &mut bench.buffers, &mut frame, &view, 0, carrier);
        let sent = crate::dataplane::fault::caught(send);
        bench.buffers.disown(buffer);
        sent.is_ok()
    };
    assert!(!sent(&mut Broken, 1000));
    assert!(sent(&mut wire, 1100));
    assert_eq!(wire.0.len(), 1);
}

fn with(offload: OffloadParams) -> Edge {
    Edge::new(rule(), vec![vec![0, 1, 2, 3]], &offload)
}
fn presto() -> Edge {
    with(OffloadParams::Presto(PrestoGroParams { min: Time::from_us(250), ..Default::default() }))
}
pub(super) fn rule() -> Rule {
    Rule { opening: Opening::Bytes(64 << 10), order: Order::RoundRobin, is_first: true }
}
/// A super-segment goes to the peer.
fn send(
    bench: &mut Bench,
    edge: &mut Edge,
    segment: &[u8],
    gso_size: usize,
    now: Time,
    wire: &mut Wire,
) {
    let buffer = bench.keep(segment);
    let view = parse(segment).unwrap();
    let offload = Offload::of(view.layers().unwrap(), gso_size);
    let mut frame = Frame { buffer, start: 0, length: segment.len(), offload };
    edge.send(now, &mut bench.buffers, &mut frame, &view, 0, wire).unwrap();
    bench.buffers.release(buffer);
}
fn seqs(frames: &[Vec<u8>], port: u16) -> Vec<u32> {
    let of = |f: &Vec<u8>| {
        let view = parse(f).unwrap();
        let layers = view.tcp().copied()?;
        (f[layers.transport + 2..layers.transport + 4] == port.to_be_bytes())
            .then(|| tcp::seq(f, &layers))
    };
    frames.iter().filter_map(of).collect()
}

#[test]
fn super_segments_cross_whole_and_in_order() {
    for version in [Version::V4, Version::V6] {
        let mut bench = Bench::new();
        let (mut sender, mut wire) = (presto(), Wire::default());
        // The first one opens the flow in order; then eight cells, each on the next path.
        let segments: Vec<Vec<u8>> = (0..9u32)
            .map(|i| {
                frame_of(&Build {
                    version,
                    seq: i * 43_440,
                    payload: 43_440,
                    id: (i * 30) as u16,
                    ..Build::default()
                })
            })
            .collect();
        for segment in &segments {
            send(&mut bench, &mut sender, segment, 1448, Time::ZERO, &mut wire);
        }
        let stamps: Vec<_> = wire.0.chunks(30).map(|c| c[0].0).collect();
        assert!(
            wire.0.chunks(30).all(|c| c.iter().all(|(s, _)| *s == c[0].0)),
            "one stamp a super-segment"
        );
        assert!(stamps.windows(2).all(|w| w[1].flowcell == w[0].flowcell.wrapping_add(1)
            && w[1].label == (w[0].label + 1) % 4));
        let mut receiver = presto();
        // The skew turns cells around by pairs.
        let mut cells: Vec<Vec<(Encapsulation, Packet)>> = Vec::new();
        while !wire.0.is_empty() {
            cells.push(wire.0.drain(..30).collect());
        }
        cells[1..].chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
        for (us, cell) in cells.into_iter().enumerate() {
            for (stamp, packet) in cell {
                let (at, view) = (Time::from_us(us as u64), packet.view());
                receiver.arrive(at, 0, stamp, packet, view, &mut bench.buffers);
            }
            bench.flush(&mut receiver, us as u64);
        }
        bench.drain(&mut receiver);
        let expected: Vec<Vec<u8>> =
            segments.iter().flat_map(|s| cut(s, 1448, Checksums::Full)).collect();
        assert!(bench.out() == expected, "to the byte, {version:?}");
        assert_eq!(bench.node.slots[0].counters.sent, 9, "as super-segments");
    }
}

/// The edge ignores the flowcells that a receiver may remember: half of the flows look older.
#[test]
fn a_flow_that_was_forgotten_begins_with_any_number() {
    let mut bench = Bench::new();
    let mut edge = Edge::new(
        Rule { order: Order::Shuffled, is_first: false, ..rule() },
        vec![vec![0, 1]],
        &Default::default(),
    );
    let stamp = |edge: &mut Edge, bench: &mut Bench, s: u64| -> Vec<u16> {
        let mut wire = Wire::default();
        for port in 0..1_000 {
            let segment = frame_of(&Build { payload: 60_000, port, ..Build::default() });
            send(bench, edge, &segment, 0, Time::from_s(s), &mut wire);
        }
        wire.0
            .drain(..)
            .map(|(stamp, mut packet)| (stamp, packet.end(&mut bench.buffers)).0.flowcell)
            .collect()
    };
    let (first, before) = (stamp(&mut edge, &mut bench, 1), stamp(&mut edge, &mut bench, 31));
    assert!(
        first.iter().zip(&before).all(|(first, next)| *next == first.wrapping_add(1)),
        "known, they go on"
    );
    edge.evict(Time::from_s(31));
    assert_eq!(edge.flows(), 1_000);
    (0..4).for_each(|_| edge.evict(Time::from_s(62)));
    assert_eq!(edge.flows(), 0);
    let after = stamp(&mut edge, &mut bench, 62);
    let newer = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| (after.wrapping_sub(**before) as i16) > 0);
    assert!((400..600).contains(&newer.count()));
    bench.drain(&mut edge);
}

/// A loop that was held up has not looked at what it waits for: the wait goes on, however late it
/// is.
#[test]
fn a_wait_ends_when_all_that_came_was_looked_at() {
    let mut bench = Bench::new();
    let mut edge = presto();
    let packets = cut(
        &frame_of(&Build { payload: 3_000, port: 80, ..Build::default() }),
        1000,
        Checksums::Full,
    );
    bench.arrive(&mut edge, 0, &packets[0], 0, 0, false);
    bench.flush(&mut edge, 0);
    bench.arrive(&mut edge, 0, &packets[2], 2, 2, false);
    bench.flush(&mut edge, 0);
    let late = Time::from_ms(50);
    assert!(edge.deadline().is_some_and(|due| due < late));
    edge.flush(late, Time::from_us(1), &mut bench.buffers, |peer, frame| {
        bench.node.from_peer(late, peer, frame)
    });
    assert_eq!(seqs(&bench.out(), 80).len(), 1, "it may have come");
    assert!(edge.deadline().is_some_and(|due| due < late), "it is asked for again");
    bench.arrive(&mut edge, 50_000, &packets[1], 1, 1, false);
    edge.flush(late, Time::from_us(1), &mut bench.buffers, |peer, frame| {
        bench.node.from_peer(late, peer, frame)
    });
    assert_eq!(seqs(&bench.out(), 80), [1000, 2000, 3000]);
    // And one that has not come is not waited for.
    bench.arrive(
        &mut edge,
        50_000,
        &cut(
            &frame_of(&Build { seq: 9_000, payload: 500, port: 80, ..Build::default() }),
            1000,
            Checksums::Full,
        )[0],
        1,
        9,
        false,
    );
    bench.flush(&mut edge, 50_000);
    assert_eq!(seqs(&bench.out(), 80).len(), 3);
    bench.flush(&mut edge, 100_000);
    assert_eq!(seqs(&bench.out(), 80).len(), 4);
    bench.drain(&mut edge);
}

/// Presto's waits adapt to how far paths differ, which late rounds must not hide.
#[test]
fn time_is_when_a_packet_left_the_fabric() {
    let wait_ends = |round: u64| {
        let mut bench = Bench::new();
        let mut edge = presto();
        let packets = cut(
            &frame_of(&Build { payload: 3_000, port: 80, ..Build::default() }),
            1000,
            Checksums::Full,
        );
        bench.arrive(&mut edge, 0, &packets[0], 0, 0, false);
        bench.flush(&mut edge, 0);
        bench.arrive(&mut edge, 10, &packets[2], 2, 2, false);
        bench.flush(&mut edge, round);
        edge.deadline()
    };
    assert!(wait_ends(10).is_some(), "the later packet is held");
    assert_eq!(wait_ends(10), wait_ends(100), "from when it came, not from when it was looked at");
}

/// It has come in time, and a round that is late for the wait's end looks at it before it ends
/// waits.
#[test]
fn what_came_in_time_ends_its_wait_in_a_late_round() {
    let mut bench = Bench::new();
    let mut edge = presto();
    let packets = cut(
        &frame_of(&Build { payload: 3_000, port: 80, ..Build::default() }),
        1000,
        Checksums::Full,
    );
    for (us, packet, cell) in [(0, 0, 0), (10, 2, 2)] {
        bench.arrive(&mut edge, us, &packets[packet], cell, cell, false);
        bench.flush(&mut edge, us);
    }
    bench.arrive(&mut edge, 20, &packets[1], 1, 1, false);
    bench.flush(&mut edge, 90_000);
    assert_eq!(seqs(&bench.out(), 80), [1000, 2000, 3000]);
    assert_eq!(edge.offload_counters().of(Cause::Timeout), 0);
    bench.drain(&mut edge);
}

#[test]
fn what_does_not_merge_passes_as_it_is() {
    let mut bench = Bench::new();
    let mut receiver = presto();
    let udp = frame_of(&Build { protocol: Protocol::Udp, payload: 50, ..Build::default() });
    let mut padded = frame_of(&Build { payload: 2, port: 81, ..Build::default() });
    padded.extend([0; 4]);
    let mut broken = frame_of(&Build { payload: 100, port: 82, ..Build::default() });
    *broken.last_mut().unwrap() ^= 1;
    let mut arp = vec![0; 42];
    arp[..14].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6]);
    let tagged = frame_of(&Build { payload: 10, tags: 1, port: 83, ..Build::default() });
    let all = [udp, padded, broken, arp, tagged];
    all.iter().for_each(|frame| bench.arrive(&mut receiver, 0, frame, 0, 0, false));
    bench.flush(&mut receiver, 0);
    bench.drain(&mut receiver);
    let out = bench.out();
    assert_eq!(out.len(), all.len());
    all.iter().for_each(|frame| assert!(out.contains(frame)));
}

#[test]
fn a_wrong_checksum_does_not_become_right() {
    for params in [
        OffloadParams::Stock(StockGroParams::default()),
        OffloadParams::Presto(PrestoGroParams::default()),
    ] {
        let mut bench = Bench::new();
        let mut receiver = with(params);
        let packets: Vec<Vec<u8>> =
            cut(&frame_of(&Build { payload: 3000, ..Build::default() }), 1000, Checksums::Full);
        let mut broken = packets.clone();
        *broken[1].last_mut().unwrap() ^= 0x40;
        broken.iter().for_each(|p| bench.arrive(&mut receiver, 0, p, 0, 1, false));
        bench.flush(&mut receiver, 0);
        bench.drain(&mut receiver);
        let wrong = |f: &Vec<u8>| {
            !crate::dataplane::frame::checksum::is_right(f, parse(f).unwrap().layers().unwrap())
        };
        assert_eq!(bench.out().iter().filter(|f| wrong(f)).count(), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A forger sends what it likes, on any label and flowcell, as any flow but the honest one:
    /// that one stays in order and whole, what is held stays below the cap, and every packet leaves
    /// or is counted.
    #[test]
    fn forged_stamps_hurt_nobody_else(
        forged in prop::collection::vec(
            (any::<u16>(), any::<u16>(), any::<u32>(), any::<u8>(), 0usize..1500, any::<bool>()),
            1..200,
        ),
        gap in 1u64..40,
    ) {
        let mut bench = Bench::new();
        let cap = 64 << 10;
        let mut receiver = with(OffloadParams::Presto(PrestoGroParams {
            flow_held_max: Bytes(cap),
            held_max: Bytes(2 * cap),
            min: Time::from_us(250),
            ..Default::default()
        }));
        let honest = cut(
            &frame_of(&Build { payload: 30_000, port: 80, ..Build::default() }),
            1000,
            Checksums::Partial,
        );
        let mut turn = forged.iter().cycle();
        for (i, packet) in honest.iter().enumerate() {
            // Flowcells of five packets, and between any two packets as much of the forger's.
            bench.arrive(
                &mut receiver,
                i as u64 * gap,
                packet,
                (i / 5 % 4) as u16,
                (i / 5) as u16,
                true,
            );
            for _ in 0..forged.len().div_ceil(honest.len()) {
                let (label, flowcell, seq, flags, payload, partial) = *turn.next().unwrap();
                let frame = frame_of(&Build { seq, flags, payload, port: 666, ..Build::default() });
                bench.arrive(&mut receiver, i as u64 * gap, &frame, label, flowcell, partial);
            }
            bench.flush(&mut receiver, i as u64 * gap);
        }
        prop_assert!(receiver.offload_counters().held_bytes_max <= 3 * cap + 1500);
        let received = receiver.counters.received;
        bench.drain(&mut receiver);
        let out = bench.out();
        let expected: Vec<u32> = (0..30).map(|i| 1000 + i * 1000).collect();
        prop_assert_eq!(seqs(&out, 80), expected);
        prop_assert_eq!(receiver.offload_counters().packets, received);
    }

    /// The node makes as many packets of a segment as the frame was cut into, each with its own
    /// bytes.
    #[test]
    fn the_node_cuts_as_the_frame_was_cut(
        sent in prop::collection::vec(
            (0usize..9_000, prop::sample::select(vec![0usize, 1, 7, 536, 1448])),
            1..8,
        ),
        protocol in prop::sample::select(vec![Protocol::Tcp, Protocol::Udp]),
    ) {
        let mut bench = Bench::new();
        let (mut edge, mut wire) = (presto(), Wire::default());
        for (payload, gso_size) in sent {
            // The kernel has no super-segments without payload, and none of packets that are
            // larger.
            let gso_size =
                if gso_size < payload && protocol == Protocol::Tcp { gso_size } else { 0 };
            let segment = frame_of(&Build { protocol, payload, ..Build::default() });
            send(&mut bench, &mut edge, &segment, gso_size, Time::ZERO, &mut wire);
            let packets = if gso_size > 0 { payload.div_ceil(gso_size) } else { 1 };
            let carried: Vec<Packet> = wire.0.drain(..).map(|(_, packet)| packet).collect();
            prop_assert_eq!(carried.len(), packets);
            let bytes: usize =
                carried.iter().map(|packet| packet.payload(&bench.buffers).len()).sum();
            let whole = parse(&segment).unwrap();
            prop_assert_eq!(bytes, segment.len() - whole.layers().unwrap().payload);
            carried.into_iter().for_each(|mut packet| packet.end(&mut bench.buffers));
            prop_assert_eq!(bench.buffers.in_use(), 0);
        }
    }

    /// Any bytes behind an encapsulation.
    #[test]
    fn any_frame_is_passed_or_counted(
        frames in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..120), 0..4u8, any::<u16>(), any::<bool>()),
            1..50,
        ),
    ) {
        let mut bench = Bench::new();
        let mut receiver = presto();
        for (bytes, like, flowcell, partial) in &frames {
            let mut bytes = bytes.clone();
            if bytes.len() > 40 && *like > 0 {
                bytes[..6].copy_from_slice(&[2; 6]);
                bytes[6..12].copy_from_slice(&[4; 6]);
                bytes[12..15].copy_from_slice(
                    &[[8, 0, 0x45], [0x86, 0xdd, 0x60], [0x81, 0, 0]][usize::from(*like - 1)],
                );
                let (length, protocol) = if *like == 1 { (16, 23) } else { (18, 20) };
                bytes[length..length + 2].copy_from_slice(&[0, 26]);
                bytes[protocol] = 6;
            }
            bench.arrive(&mut receiver, 0, &bytes, 0, *flowcell, *partial);
            bench.flush(&mut receiver, 0);
        }
        bench.drain(&mut receiver);
    }
}

/// Requests that nobody answers cost nothing; connections that end are forgotten; of those that
/// stay there are no more than there is room for.
#[test]
fn tables_of_flows_are_bounded() {
    let (mut bench, mut edge, mut wire) = (Bench::new(), presto(), Wire::default());
    let of = |port: u32, flags: u8, payload: usize| {
        let mut frame = frame_of(&Build { payload, ..Build::default() });
        let layers = *parse(&frame).unwrap().layers().unwrap();
        frame[layers.network + 13] = (port >> 16) as u8;
        frame[layers.transport..layers.transport + 2].copy_from_slice(&(port as u16).to_be_bytes());
        frame[layers.transport + 13] = flags;
        frame
    };
    for port in 0..1000 {
        send(&mut bench, &mut edge, &of(port, tcp::SYN, 0), 1448, Time::ZERO, &mut wire);
    }
    assert_eq!(edge.flows(), 1000);
    (0..4).for_each(|ms| edge.evict(Time::from_ms(3001 + ms)));
    assert_eq!(edge.flows(), 0, "a flood of SYNs");
    send(&mut bench, &mut edge, &of(1, tcp::ACK, 100), 1448, Time::ZERO, &mut wire);
    assert_eq!(edge.flows(), 1);
    send(&mut bench, &mut edge, &of(1, tcp::ACK | tcp::FIN, 0), 1448, Time::ZERO, &mut wire);
    assert_eq!(edge.flows(), 0);
    for port in 0..FLOWS_MAX as u32 + 1000 {
        send(&mut bench, &mut edge, &of(port, tcp::ACK, 1), 1448, Time::ZERO, &mut wire);
        wire.0.drain(..).for_each(|(_, mut packet)| packet.end(&mut bench.buffers));
    }
    assert_eq!(edge.flows(), FLOWS_MAX);
    // Some milliseconds later those are gone that were silent for a second.
    for ms in 0..2 * FLOWS_MAX as u64 / 256 {
        edge.evict(Time::from_ms(1001 + ms));
    }
    assert!(edge.flows() <= FLOWS_MAX / 2, "{}", edge.flows());

    // The same of what comes from peers.
    let mut edge = presto();
    let mut arrive = |edge: &mut Edge, port: u32, flags: u8, payload: usize| {
        let frame = of(port, flags, payload);
        let mut frame = frame;
        let layers = *parse(&frame).unwrap().layers().unwrap();
        let at = layers.network + 10;
        frame[at..at + 2].fill(0);
        let sum = crate::dataplane::frame::checksum::Sum::default()
            .bytes(&frame[layers.network..layers.transport])
            .checksum();
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        bench.arrive(edge, 1, &frame, 0, 0, true);
        bench.flush(edge, 2);
    };
    for end in [tcp::FIN, tcp::RST] {
        arrive(&mut edge, 7, tcp::ACK, 100);
        assert_eq!(edge.flows_received(), 1);
        arrive(&mut edge, 7, tcp::ACK | end, 0);
        assert_eq!(edge.flows_received(), 0, "{end}");
    }
    for port in 0..FLOWS_MAX as u32 + 100 {
        arrive(&mut edge, port, tcp::SYN, 0);
    }
    assert_eq!(edge.flows_received(), FLOWS_MAX);
    bench.drain(&mut edge);
}

/// Keeps the ranks of what it is to carry.
#[derive(Default)]
struct Ranked(Vec<u32>);

impl Carrier for Ranked {
    fn carry(
        &mut self,
        _: Time,
        buffers: &mut Buffers,
        packets: &[millpond_core::Packet],
        frames: &mut Vec<Held>,
    ) -> Result<(), Drop> {
        self.0.extend(packets.iter().map(|packet| packet.rank));
        frames.drain(..).for_each(|mut held| held.bytes.end(buffers));
        Ok(())
    }
}

/// The ranks of packets of 1000 bytes that begin at these offsets of a connection from a port.
fn ranks(bench: &mut Bench, edge: &mut Edge, port: u16, offsets: &[u32]) -> Vec<u32> {
    let mut carrier = Ranked::default();
    for offset in offsets {
        // Sequence numbers wrap soon after the connection begins.
        let seq = (u32::MAX - 1500).wrapping_add(*offset);
        let bytes = frame_of(&Build { seq, payload: 1000, port, ..Build::default() });
        let (buffer, view) = (bench.keep(&bytes), parse(&bytes).unwrap());
        let (length, offload) = (bytes.len(), Offload::default());
        let mut frame = Frame { buffer, start: 0, length, offload };
        let at = Time::from_ms(1);
        edge.send(at, &mut bench.buffers, &mut frame, &view, 0, &mut carrier).unwrap();
        bench.buffers.release(buffer);
    }
    carrier.0
}

#[test]
fn each_connection_has_attained_what_it_has_sent_itself() {
    let rank = RankParams::AttainedService(AttainedServiceParams::default());
    let labels = vec![vec![0]];
    let mut edge = Edge::of(Stages { rank, labels, ..Stages::default() });
    let mut bench = Bench::new();
    assert_eq!(ranks(&mut bench, &mut edge, 1, &[0, 1000, 2000, 3000]), [0, 1, 2, 3]);
    assert_eq!(ranks(&mut bench, &mut edge, 2, &[0, 1000]), [0, 1], "another connection's");
    // A packet that is sent again is not one more.
    let again = ranks(&mut bench, &mut edge, 1, &[1000, 4000]);
    assert!(again[0] <= 1 && again[1] == 4, "{again:?}");
    edge.evict(Time::from_s(1));
    assert_eq!(edge.flows(), 2);
    edge.evict(Time::from_s(60));
    assert_eq!(edge.flows(), 0, "silence forgets");
}
