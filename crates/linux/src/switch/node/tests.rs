use super::*;
use crate::frame::segment::tests::{Build, frame_of};
use crate::frame::{Checksums, GsoType, Mac};
use crate::port::{Pcap, Tap};
use millpond_core::counters::DropReason;
use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn capture(path: &Path, frames: &[Vec<u8>]) {
    let mut writer = PcapWriter::new(File::create(path).unwrap()).unwrap();
    for frame in frames {
        let packet = PcapPacket::new(Duration::ZERO, frame.len() as u32, frame).unwrap();
        writer.write_packet(&packet).unwrap();
    }
}
fn frames(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    std::iter::from_fn(|| reader.next_packet().map(|p| p.unwrap().data().to_vec())).collect()
}
/// A switch of files: what comes in on each port, and where what goes out is found.
fn switch(name: &str, inputs: &[&[Vec<u8>]]) -> (Node, Vec<PathBuf>) {
    let folder = std::env::temp_dir().join(format!("millpond-node-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut node = Node::default();
    let mut outputs = Vec::new();
    for (i, input) in inputs.iter().enumerate() {
        let (read, write) = (folder.join(format!("{i}.in")), folder.join(format!("{i}.out")));
        capture(&read, input);
        let port = Pcap::open(Some(&read), Some(&write)).unwrap();
        let port = Some(Port::Pcap(Box::new(port)));
        node.slots.push(Slot::new(i.to_string(), port, 1500));
        outputs.push(write);
    }
    (node, outputs)
}
fn run(node: &mut Node) {
    let mut buffers = Buffers::new(16);
    for port in 0..node.slots.len() {
        while node.receive(Time::ZERO, port, BURST, &mut buffers, &mut Alone) > 0 {}
    }
    assert_eq!(buffers.in_use(), 0);
}
fn addressed(mut frame: Vec<u8>, to: u8, from: u8) -> Vec<u8> {
    (frame[5], frame[11]) = (to, from);
    frame
}

#[test]
fn floods_learns_and_never_returns() {
    let tcp = || frame_of(&Build { payload: 100, ..Build::default() });
    let unknown = addressed(tcp(), 2, 1);
    let (mut answer, mut own) = (addressed(tcp(), 1, 2), addressed(tcp(), 2, 9));
    answer.extend([0; 3]);
    own.truncate(40);
    let (mut node, outputs) = switch("learn", &[std::slice::from_ref(&unknown), &[answer.clone(), own], &[]]);
    run(&mut node);
    assert_eq!(frames(&outputs[2]), std::slice::from_ref(&unknown));
    assert_eq!(frames(&outputs[1]), [unknown]);
    assert_eq!(frames(&outputs[0]), [answer], "with its padding");
    assert_eq!(node.slots[1].counters.dropped(Drop::SamePort), 1);
    std::fs::remove_dir_all(outputs[0].parent().unwrap()).unwrap();
}

#[test]
fn odd_frames_pass_unharmed_or_have_a_reason() {
    let good = frame_of(&Build { payload: 1000, ..Build::default() });
    let mut fragment = good.clone();
    fragment[20] = 0x20;
    let mut group = good.clone();
    group[6] |= 1;
    let cut_off = good[..50].to_vec();
    let tagged = frame_of(&Build { payload: 1440, tags: 1, ..Build::default() });
    let six = frame_of(&Build { version: crate::frame::Version::V6, payload: 9, ..Build::default() });
    let long = frame_of(&Build { payload: 1500, ..Build::default() });
    let mut discovery = good.clone();
    discovery[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    let mut opaque = vec![0xaa; 60];
    opaque[..12].copy_from_slice(&good[..12]);
    let pass = [good, fragment, cut_off, tagged, six, opaque];
    let input = [&pass[..], &[group, long, discovery, vec![1; 13]]].concat();
    let (mut node, outputs) = switch("odd", &[&input, &[]]);
    run(&mut node);
    assert_eq!(frames(&outputs[1]), pass);
    let counters = &node.slots[0].counters;
    for reason in [Drop::SourceGroup, Drop::Oversized, Drop::Runt, Drop::LinkLocal] {
        assert_eq!(counters.dropped(reason), 1, "{reason:?}");
    }
    assert_eq!(counters.received, 10);
    std::fs::remove_dir_all(outputs[0].parent().unwrap()).unwrap();
}

#[test]
fn a_port_without_offload_gets_whole_packets() {
    let (mut node, outputs) = switch("whole", &[&[]]);
    let frame = frame_of(&Build { payload: 4000, ..Build::default() });
    let view = parse(&frame).unwrap();
    let offload = Offload::of(view.layers().unwrap(), 1448);
    assert_eq!(offload.gso, GsoType::Tcp4);
    let pieces = [IoSlice::new(&frame[..70]), IoSlice::new(&frame[70..])];
    let outgoing = Outgoing { view, offload, pieces: &pieces, length: frame.len(), sender: Sender::Elsewhere };
    node.from_peer(Time::ZERO, 0, &outgoing).unwrap();
    let packets = frames(&outputs[0]);
    assert_eq!(packets, crate::frame::segment::tests::cut(&frame, 1448, Checksums::Full));
    assert_eq!(node.table.find(Mac([2, 0, 0, 0, 0, 1])), Some(Place::Peer(0)));
    std::fs::remove_dir_all(outputs[0].parent().unwrap()).unwrap();
}

/// A tenant makes many packets of few bytes: it is refused, and what others may send ends their turn.
#[test]
fn super_segments_are_of_packets_in_earnest_and_a_turn_has_so_many() {
    use rustix::net::{SendFlags, send};
    let (mut node, device) = narrow();
    node.slots.push(Slot::new("sink", Some(Port::Pcap(Box::new(Pcap::open(None, None).unwrap()))), 65_000));
    let mut buffers = Buffers::new(8);
    let mut come = |node: &mut Node, payload: usize, gso: usize, count: usize| {
        let frame = frame_of(&Build { payload, ..Build::default() });
        let offload = Offload::of(parse(&frame).unwrap().layers().unwrap(), gso);
        for _ in 0..count {
            send(&device, &[&offload.write()[..], &frame].concat(), SendFlags::empty()).unwrap();
        }
        let handled = node.receive(Time::ZERO, 0, BURST, &mut buffers, &mut Alone);
        while node.receive(Time::ZERO, 0, BURST, &mut buffers, &mut Alone) > 0 {}
        (handled, node.slots[0].counters.dropped(Drop::SmallGso))
    };
    assert_eq!(come(&mut node, 9000, 1, 1), (1, 1), "9000 packets of a byte");
    assert_eq!(come(&mut node, 20_000, 255, 1), (1, 2), "79 packets");
    assert_eq!(come(&mut node, 6000, 100, 1), (1, 2), "60 packets of a connection with a small MSS");
    assert_eq!(come(&mut node, 20_000, 256, 1), (1, 2));
    // Three of some 200 packets, and others have their turn.
    node.slots[0].gso_least = 1;
    assert_eq!(come(&mut node, 8000, 40, 5), (3, 2));
    assert_eq!(come(&mut node, 8000, 1448, 5), (5, 2));
}

/// A switch with one port whose device takes a few frames, and that device.
fn narrow() -> (Node, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    sockopt::set_socket_send_buffer_size(&theirs, 4096).unwrap();
    let mut node = Node::default();
    node.slots.push(Slot::new("narrow", Some(Port::Tap(Tap::over(theirs).unwrap())), 1500));
    (node, ours)
}
fn read(device: &OwnedFd) -> Vec<Vec<u8>> {
    let mut room = vec![0; 2000];
    let one = || recv(device, &mut room[..], RecvFlags::DONTWAIT).ok().map(|(_, length)| room[10..length].to_vec());
    std::iter::from_fn(one).collect()
}
fn deliver(node: &mut Node, now: Time, frame: &[u8]) -> Result<(), Drop> {
    let view = parse(frame).unwrap();
    let pieces = [IoSlice::new(&frame[..60]), IoSlice::new(&frame[60..])];
    let (offload, length) = (Offload::default(), frame.len());
    node.from_peer(now, 0, &Outgoing { view, offload, pieces: &pieces, length, sender: Sender::Elsewhere })
}
/// With a number, and a priority.
fn numbered(number: u32, priority: u8) -> Vec<u8> {
    let mut frame = frame_of(&Build { seq: number, payload: 1000, ..Build::default() });
    frame[15] = priority << 5;
    frame
}
fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|i| frame[38 + i]))
}

#[test]
fn a_device_that_is_full_makes_frames_wait_and_loses_none() {
    let (mut node, device) = narrow();
    for i in 0..100 {
        deliver(&mut node, Time::ZERO, &numbered(i, u8::from(i == 99))).unwrap();
    }
    let waiting = node.slots[0].queue.view().packets;
    assert!(waiting > 50 && node.deadline() == Some(super::super::egress::PATIENCE), "{waiting}");
    let (mut got, mut now) = (Vec::new(), Time::ZERO);
    while let Some(due) = node.deadline() {
        assert!(due > now);
        now = due;
        got.extend(read(&device).iter().map(|frame| number(frame)));
        node.drain(now);
    }
    got.extend(read(&device).iter().map(|frame| number(frame)));
    // The last was urgent: it is behind what the device had, and the frame that it had refused.
    let urgent = got.iter().position(|number| *number == 99).unwrap();
    assert_eq!((got.remove(urgent), urgent as u32), (99, 99 - waiting + 1));
    assert_eq!(got, (0..99).collect::<Vec<_>>());
    let counters = &node.slots[0].counters;
    assert!(counters.sent == 100 && counters.reading().dropped.is_empty());
}

#[test]
fn a_device_that_is_stuck_costs_what_is_sent_to_it() {
    let (mut node, _device) = narrow();
    let frames = 2 * super::super::egress::BYTES_MAX / 1000;
    for i in 0..frames as u32 {
        deliver(&mut node, Time::ZERO, &numbered(i, 0)).unwrap();
    }
    let full = node.slots[0].counters.discarded(DropReason::QueueFull);
    let view = node.slots[0].queue.view();
    let counters = &node.slots[0].counters;
    assert!(full > 500 && view.bytes <= super::super::egress::BYTES_MAX, "{full}");
    assert_eq!(counters.sent + u64::from(view.packets) + 1 + full, frames);
    node.lose(0);
    assert_eq!(node.slots[0].counters.dropped(Drop::PortGone), u64::from(view.packets) + 1);
    assert_eq!(deliver(&mut node, Time::ZERO, &numbered(1, 0)), Err(Drop::PortGone));
    assert!(node.deadline().is_none());
}

#[test]
fn a_neighbour_that_pauses_is_obeyed_and_its_frame_goes_no_further() {
    let (mut node, device) = narrow();
    node.slots.push(Slot::new("other", Some(Port::Pcap(Box::new(Pcap::open(None, None).unwrap()))), 1500));
    let mut buffers = Buffers::new(4);
    let mut control = |node: &mut Node, quanta: &pause::Quanta| {
        let frame = pause::write(Mac([2, 0, 0, 0, 0, 9]), quanta);
        send(&device, &[&[0; 10][..], &frame].concat(), SendFlags::empty()).unwrap();
        assert_eq!(node.receive(Time::from_us(1), 0, 1, &mut buffers, &mut Alone), 1);
    };
    let mut stop = [None; 8];
    stop[0] = Some(1000);
    control(&mut node, &stop);
    node.table.learn(Time::ZERO, Mac([2, 0, 0, 0, 0, 2]), Place::Port(0)).unwrap();
    deliver(&mut node, Time::from_us(2), &numbered(1, 0)).unwrap();
    deliver(&mut node, Time::from_us(2), &numbered(2, 6)).unwrap();
    node.drain(Time::from_us(2));
    assert_eq!(read(&device).iter().map(|frame| number(frame)).collect::<Vec<_>>(), [2]);
    let due = node.deadline().unwrap();
    assert!(due > Time::from_us(52) && due < Time::from_us(53), "1000 quanta of 10 Gb/s: {due}");
    stop[0] = Some(0);
    control(&mut node, &stop);
    assert_eq!(read(&device).iter().map(|frame| number(frame)).collect::<Vec<_>>(), [1]);
    assert_eq!((node.slots[1].counters.sent, node.slots[0].counters.reading().dropped.len()), (0, 0));
    assert_eq!(deliver(&mut node, Time::ZERO, &pause::write(Mac::default(), &stop)), Err(Drop::BadControl));
}
