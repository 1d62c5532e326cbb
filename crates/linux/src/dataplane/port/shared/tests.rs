//! An application at a switch of this process, beside ports that cannot be paused.

mod conformance;

use super::*;
use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::segment::tests::{Build, frame_of};
use crate::dataplane::frame::{Mac, Offload, parse};
use crate::dataplane::port::{Pcap, Port};
use crate::dataplane::{outgoing::Outgoing, slot::Slot};
use crate::switch::node::{Alone, Node, Round};
use crate::switch::table::Place;
use millpond_port::{Frame, Unsent};
use proptest::prelude::*;
use std::time::{Duration, Instant};

const SIZES: Sizes = Sizes { flows: 4, places: 64, buffers: 64, buffer_bytes: 1536 };

/// A switch with a port that swallows what it gets, and applications at further ones; their ends.
struct Rig {
    node: Node,
    buffers: Buffers,
    ports: Vec<millpond_port::Port>,
    sockets: Vec<PathBuf>,
    now: Time,
}

impl std::ops::Drop for Rig {
    fn drop(&mut self) {
        self.sockets.iter().for_each(|socket| drop(std::fs::remove_file(socket)));
    }
}

fn mac(port: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, port as u8]
}

impl Rig {
    fn new(name: &str, applications: usize, memory: u64) -> Rig {
        Rig::with(name, applications, memory, QueueKind::FlowQueues)
    }
    fn with(name: &str, applications: usize, memory: u64, queue: QueueKind) -> Rig {
        let mut node = Node::default();
        node.slots.push(Slot::new(
            "sink",
            Some(Port::Pcap(Box::new(Pcap::open(None, None).unwrap()))),
            1500,
        ));
        node.table.add_port(1024, &[]);
        let mut place = Rig {
            node,
            buffers: Buffers::new(16),
            ports: Vec::new(),
            sockets: Vec::new(),
            now: Time::ZERO,
        };
        for index in 1..=applications {
            let socket = std::env::temp_dir()
                .join(format!("millpond-{name}-{index}-{}", std::process::id()));
            let settings = SharedSettings {
                socket: socket.clone(),
                uid: None,
                sizes: SIZES,
                queue,
                memory,
                headroom: memory / 8,
            };
            let port = Port::Shared(Box::new(Shared::open(settings).unwrap()));
            place.node.slots.push(Slot::new(format!("{index}"), Some(port), 1500));
            place.node.table.add_port(1024, &[]);
            place.node.table.learn(Time::ZERO, Mac(mac(index)).into(), Place::Port(index)).unwrap();
            place.sockets.push(socket.clone());
            place.attach(socket);
        }
        place
    }
    fn attach(&mut self, socket: PathBuf) {
        let attaching = std::thread::spawn(move || millpond_port::Port::attach(socket).unwrap());
        let start = Instant::now();
        while !attaching.is_finished() {
            assert!(start.elapsed() < Duration::from_secs(20));
            self.round(true);
        }
        self.ports.push(attaching.join().unwrap());
    }
    /// A round of the poll loop.
    fn round(&mut self, has_events: bool) {
        self.now += Time::from_us(1);
        let all: Vec<usize> = (1..self.node.slots.len()).collect();
        for port in &all {
            self.node.serve_attached(
                &mut Round::new(self.now, &mut self.buffers, &mut Alone),
                *port,
                has_events,
            );
        }
        self.node.flush_attached(&all);
        assert_eq!(self.buffers.in_use(), 0);
    }
    fn rounds(&mut self) {
        (0..4).for_each(|_| self.round(false));
    }
    /// A frame from a peer, which cannot be paused.
    fn arrive(&mut self, frame: &[u8], offload: Offload) -> Result<(), Drop> {
        let view = parse(frame).unwrap();
        let pieces = [IoSlice::new(&frame[..60]), IoSlice::new(&frame[60..])];
        let outgoing = Outgoing {
            view,
            offload,
            pieces: &pieces,
            length: frame.len(),
            sender: Sender::Elsewhere,
        };
        self.node.from_peer(self.now, 0, &outgoing)
    }
    fn reading(&mut self, port: usize) -> Reading {
        self.node.slots[port].shared().unwrap().reading()
    }
    fn dropped(&self, port: usize, reason: Drop) -> u64 {
        self.node.slots[port].counters.dropped(reason)
    }
}

fn received(port: &mut millpond_port::Port) -> Vec<Vec<u8>> {
    let mut frames = vec![Frame::default(); 256];
    let count = port.recv(&mut frames);
    frames[..count].iter().map(|frame| frame.bytes().to_vec()).collect()
}

/// Of station `from` to station `to`, with a number.
fn frame(to: usize, from: usize, number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![0; length.max(64)];
    frame[..6].copy_from_slice(&mac(to));
    frame[6..12].copy_from_slice(&mac(from));
    frame[12..14].copy_from_slice(&[0x88, 0xb6]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

/// In place of flow queues: one stops the switch, and its senders keep what they have; one drops.
#[test]
fn one_queue_stops_the_switch_or_drops() {
    for queue in [QueueKind::Backpressure, QueueKind::Lossy] {
        let is_lossy = queue == QueueKind::Lossy;
        let mut place = Rig::with(&format!("one-{queue:?}"), 2, 64 << 10, queue);
        // Beyond what its buffers hold, nine tenths of the queue.
        let taken = (0..123)
            .filter(|n| place.arrive(&frame(2, 9, *n, 1000), Offload::default()).is_ok())
            .count();
        let reading = place.reading(2);
        assert_eq!(
            (taken, reading.waiting_bytes, place.node.is_stopped()),
            (123, 59_000, !is_lossy)
        );
        assert_eq!(reading.pauses, u64::from(!is_lossy));
        // An application's frame stays where it is, or finds its place.
        place.ports[0].try_send(1, &frame(2, 1, 123, 1000)).unwrap();
        place.rounds();
        assert_eq!(place.reading(2).waiting_frames, if is_lossy { 60 } else { 59 });
        let lost = (200..300)
            .filter(|n| place.arrive(&frame(2, 9, *n, 1000), Offload::default()).is_err())
            .count();
        assert_eq!(lost, if is_lossy { 95 } else { 94 }, "what is on its way finds a tenth");
        // The application reads: it all goes on, also when nothing else comes.
        let (mut seen, mut rest) = (Vec::new(), 0);
        while rest < 20 {
            let frames = received(&mut place.ports[1]);
            rest = if frames.is_empty() { rest + 1 } else { 0 };
            seen.extend(
                frames.iter().map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap())),
            );
            place.rounds();
        }
        assert_eq!(seen.len() + lost, 224);
        assert!(seen.contains(&123) && seen.is_sorted() == is_lossy && !place.node.is_stopped());
        assert!(place.reading(1).paused == 0 && place.ports[0].in_flight() == 0);
    }
}

#[test]
fn what_cannot_be_paused_is_lost_only_without_memory() {
    let mut place = Rig::new("pool", 1, 64 << 10);
    let (mut taken, mut lost) = (0u64, 0u64);
    for number in 0..300 {
        match place.arrive(&frame(1, 9, number, 1000), Offload::default()) {
            Ok(()) => taken += 1,
            Err(Drop::LossPool) => lost += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    let reading = place.reading(1);
    // 64 in the application's buffers, and what 64 KiB hold.
    assert_eq!((taken, lost), (64 + 65, 300 - 129));
    assert_eq!((reading.waiting_frames, reading.waiting_bytes), (65, 65_000));
    let mut numbers = Vec::new();
    while numbers.len() < 129 {
        let frames = received(&mut place.ports[0]);
        assert!(!frames.is_empty() || numbers.is_empty());
        numbers.extend(
            frames.iter().map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap())),
        );
        place.rounds();
    }
    assert!(numbers.is_sorted() && place.reading(1).waiting_bytes == 0);
    assert_eq!(place.node.slots[1].counters.sent, 129);
}

/// A frame that is not taken stays in its flow's ring, and comes when there is memory again.
#[test]
fn a_frame_without_memory_stays_with_its_sender() {
    let mut rig = Rig::new("held", 2, 64 << 10);
    // Flows that cannot be paused have taken all, headroom as well.
    while rig.arrive(&frame(2, 9, 0, 1000), Offload::default()).is_ok() {}
    let lost = rig.dropped(2, Drop::LossPool);
    rig.ports[0].try_send(1, &frame(2, 1, 7, 1500)).unwrap();
    rig.ports[0].try_send(1, &frame(2, 1, 8, 1500)).unwrap();
    rig.rounds();
    assert_eq!(
        (rig.ports[0].in_flight(), rig.reading(1).paused, rig.reading(2).notified),
        (2, 1, 1)
    );
    assert!(rig.ports[0].paused(1) && rig.node.slots[1].counters.received == 0);
    let (start, mut own) = (Instant::now(), Vec::new());
    while own.len() < 2 {
        assert!(start.elapsed() < Duration::from_secs(20), "{own:?}");
        let frames = received(&mut rig.ports[1]);
        own.extend(frames.iter().filter(|frame| frame[11] == 1).map(|frame| frame[17]));
        rig.rounds();
    }
    assert_eq!((own, rig.ports[0].in_flight(), rig.reading(1).paused), (vec![7, 8], 0, 0));
    assert_eq!((rig.node.slots[1].counters.received, rig.dropped(2, Drop::LossPool)), (2, lost));
    assert_eq!(rig.node.slots[1].counters.reading().dropped.len(), 0);
}

#[test]
fn a_super_segment_comes_as_whole_packets() {
    let mut place = Rig::new("whole", 1, 1 << 20);
    let mut segment = frame_of(&Build { payload: 4000, ..Build::default() });
    segment[..6].copy_from_slice(&mac(1));
    segment[6..12].copy_from_slice(&mac(9));
    let offload = Offload::of(parse(&segment).unwrap().layers().unwrap(), 1448);
    place.arrive(&segment, offload).unwrap();
    place.rounds();
    let packets = crate::dataplane::frame::segment::tests::cut(
        &segment,
        1448,
        crate::dataplane::frame::Checksums::Full,
    );
    assert_eq!((received(&mut place.ports[0]), packets.len()), (packets, 3));
}

#[test]
fn an_application_that_goes_is_counted_and_frees_others() {
    let mut place = Rig::new("exit", 2, 64 << 10);
    // Without events, too: the port is lost as an interface is.
    let sent = |place: &mut Rig| {
        let mut count = 0;
        while place.ports[0].try_send(1, &frame(2, 1, 0, 1500)).is_ok() {
            count += 1;
            place.rounds();
        }
        count
    };
    // Of 64 buffers a flow has half, beyond the 64 that the other's end has taken.
    let count = sent(&mut place);
    assert_eq!((count, place.reading(2).waiting_frames), (64 + 32, 32));
    place.node.lose(2);
    place.rounds();
    assert_eq!((place.ports[0].in_flight(), place.dropped(2, Drop::LossAppExit)), (0, 32));
    assert_eq!(place.reading(1).paused, 0);
    place.rounds();
    assert_eq!(place.ports[0].try_send(1, &frame(2, 1, 0, 60)), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Two applications send to a third and to each other in any order, and read or not: each frame
    /// arrives once and in the order of its flow, and none is dropped.
    #[test]
    fn nothing_is_lost_between_applications(
        steps in proptest::collection::vec((0..8u8, 0..4u32, 60..1500usize), 1..600),
    ) {
        let mut place = Rig::new("model", 3, 64 << 10);
        // By source, flow, destination: what was sent, and what arrived.
        let mut sent = std::collections::BTreeMap::<(usize, u32, usize), (u32, u32)>::new();
        let take =
            |place: &mut Rig, sent: &mut std::collections::BTreeMap<_, (u32, u32)>, to: usize| {
                let frames = received(&mut place.ports[to - 1]);
                for frame in &frames {
                    let (from, flow) = (usize::from(frame[11]), u32::from(frame[18]));
                    let (_, arrived) = sent.get_mut(&(from, flow, to)).expect("it was sent");
                    assert_eq!(u32::from_be_bytes(frame[14..18].try_into().unwrap()), *arrived);
                    *arrived += 1;
                }
                frames.len()
            };
        for (what, flow, length) in steps {
            match what {
                0..=4 => {
                    let (from, to) = [(1, 3), (2, 3), (1, 2), (2, 1), (1, 3)][usize::from(what)];
                    let number = sent.entry((from, flow, to)).or_default();
                    let mut frame = frame(to, from, number.0, length);
                    frame[18] = flow as u8;
                    match place.ports[from - 1].try_send(flow, &frame) {
                        Ok(()) => number.0 += 1,
                        Err(error) => prop_assert_eq!(error, Unsent::WouldBlock),
                    }
                }
                5 => place.round(false),
                6 => {
                    take(&mut place, &mut sent, 1 + flow as usize % 2);
                }
                _ => {
                    take(&mut place, &mut sent, 3);
                }
            }
        }
        for _ in 0..400 {
            place.round(false);
            for to in 1..=3 {
                take(&mut place, &mut sent, to);
            }
        }
        prop_assert!(sent.values().all(|(sent, arrived)| sent == arrived), "{:?}", sent);
        for port in 1..=3 {
            prop_assert_eq!(place.node.slots[port].counters.reading().dropped.len(), 0);
            let reading = place.reading(port);
            prop_assert_eq!((reading.notified, reading.paused, reading.waiting_frames), (0, 0, 0));
            prop_assert_eq!(place.ports[port - 1].in_flight(), 0);
        }
    }
}
