use super::super::config::PortParams;
use super::super::table::HOLD;
use super::*;
use crate::dataplane::budget::Budget;
use crate::dataplane::frame::segment::tests::{Build, frame_of};
use crate::dataplane::frame::vlan;
use crate::dataplane::frame::{Checksums, GsoType, Mac};
use crate::dataplane::mirror::Mirror;
use crate::dataplane::port::{Pcap, Tap};
use crate::dataplane::vlan::{VlanSet, Vlans};
use millpond_core::counters::DropReason;
use millpond_core::params::{Field, Value};
use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt,
};
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
        while node.receive(&mut Round::new(Time::ZERO, &mut buffers, &mut Alone), port, usize::MAX)
            > 0
        {}
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
    let (mut node, outputs) =
        switch("learn", &[std::slice::from_ref(&unknown), &[answer.clone(), own], &[]]);
    run(&mut node);
    assert_eq!(frames(&outputs[2]), std::slice::from_ref(&unknown));
    assert_eq!(frames(&outputs[1]), [unknown]);
    assert_eq!(frames(&outputs[0]), [answer], "with its padding");
    assert_eq!(node.slots[1].counters.dropped(Drop::SamePort), 1);
    std::fs::remove_dir_all(outputs[0].parent().unwrap()).unwrap();
}

/// A program without [`fault::caught`] ends here.
#[test]
fn a_panic_at_a_frame_costs_that_frame() {
    let sent: Vec<Vec<u8>> = (0..4)
        .map(|seq| addressed(frame_of(&Build { seq, payload: 100, ..Build::default() }), 2, 1))
        .collect();
    let mut input = sent.clone();
    let at = input[1].len() - fault::INJECTED.len();
    input[1][at..].copy_from_slice(&fault::INJECTED);
    let (mut node, outputs) = switch("panic", &[&input, &[]]);
    run(&mut node);
    let left: Vec<Vec<u8>> = [0, 2, 3].map(|at| sent[at].clone()).to_vec();
    assert_eq!(frames(&outputs[1]), left);
    let counters = &node.slots[0].counters;
    assert_eq!((counters.received, counters.dropped(Drop::InternalError)), (4, 1));
    std::fs::remove_dir_all(outputs[0].parent().unwrap()).unwrap();
}

#[test]
fn a_panic_of_a_ports_reader_costs_a_frame_of_that_port() {
    let sent: Vec<Vec<u8>> = (0..3)
        .map(|seq| addressed(frame_of(&Build { seq, payload: 100, ..Build::default() }), 2, 1))
        .collect();
    let mut input = sent.clone();
    let at = input[0].len() - fault::AT_READER.len();
    input[0][at..].copy_from_slice(&fault::AT_READER);
    let (mut node, outputs) = switch("reader", &[&input, &[]]);
    let mut buffers = Buffers::new(16);
    assert_eq!(
        node.receive(&mut Round::new(Time::ZERO, &mut buffers, &mut Alone), 0, usize::MAX),
        0
    );
    run(&mut node);
    assert_eq!(frames(&outputs[1]), sent[1..]);
    let counters = &node.slots[0].counters;
    assert_eq!((counters.received, counters.dropped(Drop::InternalError)), (2, 1));
    assert_eq!(buffers.in_use(), 0);
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
    let six = frame_of(&Build {
        version: crate::dataplane::frame::Version::V6,
        payload: 9,
        ..Build::default()
    });
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

/// With a tag of this second word, before others.
fn in_vlan(frame: &[u8], control: u16) -> Vec<u8> {
    let mut room = [&[0; vlan::LENGTH][..], frame].concat();
    vlan::insert(&mut room, vlan::ETHERTYPE, control);
    room
}

/// Takes frames for peers, and keeps them.
#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Remote for Kept {
    fn transmit(
        &mut self,
        _: Time,
        buffers: &mut Buffers,
        frame: &Frame,
        view: &View,
        _: Option<(usize, Sender<'_>)>,
    ) -> Result<Fate, Drop> {
        assert_eq!(parse(frame.bytes(buffers)), Some(*view));
        self.0.push(frame.bytes(buffers).to_vec());
        Ok(Fate::Left)
    }
}

#[test]
fn a_vlan_is_a_switch_of_its_own() {
    let plain = addressed(frame_of(&Build { payload: 100, ..Build::default() }), 0xff, 1);
    let [ten, twenty, thirty, urgent] =
        [10, 20, 30, 0x6000].map(|control| in_vlan(&plain, control));
    let mut provider = in_vlan(&plain, 10);
    provider[12..14].copy_from_slice(&vlan::SERVICE.to_be_bytes());
    // Two access ports of 10 and one of 20, a trunk of both, and one that carries all.
    let to_all = [plain.clone(), ten.clone(), twenty.clone(), thirty.clone(), provider.clone()];
    let odd = [urgent.clone(), ten.clone(), provider.clone(), twenty[..16].to_vec()];
    let inputs = [
        &odd[..],
        &[],
        &[addressed(plain.clone(), 0xff, 2)],
        &[thirty.clone(), plain.clone()],
        &to_all,
    ];
    let (mut node, outputs) = switch("vlans", &inputs);
    let trunk = PortParams {
        trunk: Some(VlanSet::from_value(&Value::Text("10, 20".into())).unwrap()),
        ..Default::default()
    };
    let of = [Vlans::Access(10), Vlans::Access(10), Vlans::Access(20), trunk.vlans(), Vlans::All];
    node.slots.iter_mut().zip(of).for_each(|(slot, vlans)| slot.vlans = vlans);
    // Whoever is not heard for long may be elsewhere.
    let (mut buffers, mut kept) = (Buffers::new(4), Kept::default());
    for port in 0..node.slots.len() {
        while node.receive(&mut Round::new(HOLD * port as u64, &mut buffers, &mut kept), port, 1)
            > 0
        {}
    }
    let told = in_vlan(&plain, 0x600a);
    let second = in_vlan(&addressed(plain.clone(), 0xff, 2), 20);
    // As each port has it: what has come from 0, from 2, and from 4.
    assert_eq!(frames(&outputs[1]), [plain.clone(), plain.clone()]);
    assert_eq!(frames(&outputs[0]), std::slice::from_ref(&plain));
    assert_eq!(frames(&outputs[2]), std::slice::from_ref(&plain));
    assert_eq!(frames(&outputs[3]), [told.clone(), second.clone(), ten.clone(), twenty.clone()]);
    assert_eq!(frames(&outputs[4]), [told.clone(), second.clone()]);
    assert_eq!(kept.0, [told, second, plain.clone(), ten, twenty, thirty, provider]);
    let dropped = |port: usize| node.slots[port].counters.dropped(Drop::ForeignVlan);
    assert_eq!([0, 1, 2, 3, 4].map(dropped), [3, 0, 0, 2, 0]);
    let counters = &node.slots[0].counters;
    assert_eq!(
        (counters.received_bytes, counters.sent_bytes),
        (odd.iter().map(|f| f.len() as u64).sum(), plain.len() as u64)
    );
    std::fs::remove_dir_all(outputs[0].parent().unwrap()).unwrap();
}

/// Known addresses, super-segments and who looks on.
#[test]
fn a_tag_comes_and_goes_with_a_super_segment() {
    let (mut node, device) = narrow();
    node.slots[0].vlans = Vlans::Access(10);
    let (ours, theirs) = pair();
    node.slots.push(Slot::new("other", Some(Port::Tap(Tap::over(theirs).unwrap())), 1500));
    node.slots[1].vlans = Vlans::Access(10);
    node.slots.push(Slot::new(
        "elsewhere",
        Some(Port::Pcap(Box::new(Pcap::open(None, None).unwrap()))),
        1500,
    ));
    node.slots[2].vlans = Vlans::Access(20);
    node.table.add_port(9, &[]);
    node.table.add_port(9, &[Mac([2, 0, 0, 0, 0, 2])]);
    node.table.add_port(9, &[]);
    let frame = frame_of(&Build { payload: 3000, ..Build::default() });
    let offload = Offload::of(parse(&frame).unwrap().layers().unwrap(), 1448);
    let sent = [&offload.write()[..], &frame].concat();
    let (mirror, shown) = Mirror::new();
    node.slots[0].mirror = Some(mirror);
    send(&device, &sent, SendFlags::empty()).unwrap();
    let mut buffers = Buffers::new(4);
    assert_eq!(node.receive(&mut Round::new(Time::ZERO, &mut buffers, &mut Alone), 0, 1), 1);
    let mut room = vec![0; 5000];
    let (_, length) = recv(&ours, &mut room[..], RecvFlags::DONTWAIT).unwrap();
    assert!(room[..length] == sent, "as it was: no port has seen the tag");
    assert!(shown.try_recv().unwrap().bytes() == frame);
    let source = Address { mac: Mac([2, 0, 0, 0, 0, 1]), vlan: Some(10) };
    assert_eq!(
        (node.table.find(source), node.table.find(source.mac.into())),
        (Some(Place::Port(0)), None)
    );
    // It is behind a peer once the port has lost it.
    node.table.forget(Place::Port(0));
    // From a peer, in pieces; and for an address that is in another VLAN.
    let inside = |vlan: u16| in_vlan(&frame, vlan);
    let from_peer = |node: &mut Node, frame: &[u8]| {
        let view = parse(frame).unwrap();
        let pieces = [
            IoSlice::new(&frame[..70]),
            IoSlice::new(&frame[70..900]),
            IoSlice::new(&frame[900..]),
        ];
        let (offload, length) = (Offload::of(view.layers().unwrap(), 1448), frame.len());
        node.from_peer(
            HOLD,
            0,
            &Outgoing { view, offload, pieces: &pieces, length, sender: Sender::Peer(0) },
        )
    };
    from_peer(&mut node, &inside(10)).unwrap();
    let (_, length) = recv(&ours, &mut room[..], RecvFlags::DONTWAIT).unwrap();
    assert!(room[..length] == sent);
    assert_eq!(from_peer(&mut node, &inside(20)), Err(Drop::ForeignVlan));
    assert_eq!(from_peer(&mut node, &addressed(inside(30), 9, 1)), Err(Drop::Nowhere));
}

#[test]
fn a_port_without_offload_gets_whole_packets() {
    let (mut node, outputs) = switch("whole", &[&[]]);
    let frame = frame_of(&Build { payload: 4000, ..Build::default() });
    let view = parse(&frame).unwrap();
    let offload = Offload::of(view.layers().unwrap(), 1448);
    assert_eq!(offload.gso, GsoType::Tcp4);
    let pieces = [IoSlice::new(&frame[..70]), IoSlice::new(&frame[70..])];
    let outgoing =
        Outgoing { view, offload, pieces: &pieces, length: frame.len(), sender: Sender::Elsewhere };
    node.from_peer(Time::ZERO, 0, &outgoing).unwrap();
    let packets = frames(&outputs[0]);
    assert_eq!(
        packets,
        crate::dataplane::frame::segment::tests::cut(&frame, 1448, Checksums::Full)
    );
    assert_eq!(node.table.find(Mac([2, 0, 0, 0, 0, 1]).into()), Some(Place::Peer(0)));
    std::fs::remove_dir_all(outputs[0].parent().unwrap()).unwrap();
}

/// A tenant makes many packets of few bytes: it is refused, and what others may send ends their
/// turn.
#[test]
fn super_segments_are_of_packets_in_earnest_and_a_turn_has_so_many() {
    use rustix::net::{SendFlags, send};
    let (mut node, device) = narrow();
    node.slots.push(Slot::new(
        "sink",
        Some(Port::Pcap(Box::new(Pcap::open(None, None).unwrap()))),
        65_000,
    ));
    let mut buffers = Buffers::new(8);
    let mut come = |node: &mut Node, payload: usize, gso: usize, count: usize| {
        let frame = frame_of(&Build { payload, ..Build::default() });
        let offload = Offload::of(parse(&frame).unwrap().layers().unwrap(), gso);
        for _ in 0..count {
            send(&device, &[&offload.write()[..], &frame].concat(), SendFlags::empty()).unwrap();
        }
        node.slots[0].entrance = Budget::default();
        let handled =
            node.receive(&mut Round::new(Time::ZERO, &mut buffers, &mut Alone), 0, usize::MAX);
        while node.receive(&mut Round::new(Time::ZERO, &mut buffers, &mut Alone), 0, usize::MAX) > 0
        {
        }
        (handled, node.slots[0].counters.dropped(Drop::SmallGso))
    };
    assert_eq!(come(&mut node, 9000, 1, 1), (1, 1), "9000 packets of a byte");
    assert_eq!(come(&mut node, 20_000, 255, 1), (1, 2), "79 packets");
    assert_eq!(
        come(&mut node, 6000, 100, 1),
        (1, 2),
        "60 packets of a connection with a small MSS"
    );
    assert_eq!(come(&mut node, 20_000, 256, 1), (1, 2));
    // Five of some 200 packets, and others have their turn.
    node.slots[0].gso_least = 1;
    assert_eq!(come(&mut node, 8000, 40, 8), (5, 2));
    assert_eq!(come(&mut node, 8000, 1448, 8), (8, 2));
}

/// Two ends that keep messages apart.
fn pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}
/// A switch with one port whose device takes a few frames, and that device.
fn narrow() -> (Node, OwnedFd) {
    let (ours, theirs) = pair();
    sockopt::set_socket_send_buffer_size(&theirs, 4096).unwrap();
    let mut node = Node::default();
    node.slots.push(Slot::new("narrow", Some(Port::Tap(Tap::over(theirs).unwrap())), 1500));
    (node, ours)
}
fn read(device: &OwnedFd) -> Vec<Vec<u8>> {
    let mut room = vec![0; 2000];
    let one = || {
        recv(device, &mut room[..], RecvFlags::DONTWAIT)
            .ok()
            .map(|(_, length)| room[10..length].to_vec())
    };
    std::iter::from_fn(one).collect()
}
fn deliver(node: &mut Node, now: Time, frame: &[u8]) -> Result<(), Drop> {
    let view = parse(frame).unwrap();
    let pieces = [IoSlice::new(&frame[..60]), IoSlice::new(&frame[60..])];
    let (offload, length) = (Offload::default(), frame.len());
    node.from_peer(
        now,
        0,
        &Outgoing { view, offload, pieces: &pieces, length, sender: Sender::Elsewhere },
    )
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
fn who_is_behind_a_peer_is_told_what_fits_a_port() {
    let (mut node, device) = narrow();
    node.table.learn(Time::ZERO, Mac([2, 0, 0, 0, 0, 2]).into(), Place::Port(0)).unwrap();
    let mut long = frame_of(&Build { payload: 1500, ..Build::default() });
    long[14 + 6] |= 0x40; // not to be cut
    let sent = |node: &mut Node, now: u64| deliver(node, Time::from_us(now), &long);
    assert_eq!(sent(&mut node, 0), Err(Drop::Oversized));
    let expected = too_big::answer(&long, &parse(&long).unwrap(), 1500).unwrap();
    assert_eq!(node.take_answers(), [(0, expected.clone())]);
    // A notice has just left.
    assert_eq!((sent(&mut node, 999), node.take_answers().len()), (Err(Drop::Oversized), 0));
    assert_eq!(
        (sent(&mut node, 1000), node.take_answers()),
        (Err(Drop::Oversized), vec![(0, expected)])
    );
    // A frame for everybody has no one destination to answer in the name of.
    node.table.forget(Place::Port(0));
    assert_eq!((sent(&mut node, 9000), node.take_answers().len()), (Err(Drop::Oversized), 0));
    assert!(read(&device).is_empty());
}

#[test]
fn a_device_that_is_full_makes_frames_wait_and_loses_none() {
    let (mut node, device) = narrow();
    for i in 0..100 {
        deliver(&mut node, Time::ZERO, &numbered(i, u8::from(i == 99))).unwrap();
    }
    let waiting = node.slots[0].queue.view().packets;
    assert!(
        waiting > 50 && node.deadline() == Some(crate::dataplane::egress::PATIENCE),
        "{waiting}"
    );
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
    let frames = 2 * crate::dataplane::egress::BYTES_MAX / 1000;
    for i in 0..frames as u32 {
        deliver(&mut node, Time::ZERO, &numbered(i, 0)).unwrap();
    }
    let full = node.slots[0].counters.discarded(DropReason::QueueFull);
    let view = node.slots[0].queue.view();
    let counters = &node.slots[0].counters;
    assert!(full > 500 && view.bytes <= crate::dataplane::egress::BYTES_MAX, "{full}");
    assert_eq!(counters.sent + u64::from(view.packets) + 1 + full, frames);
    node.lose(0);
    assert_eq!(node.slots[0].counters.dropped(Drop::PortGone), u64::from(view.packets) + 1);
    assert_eq!(deliver(&mut node, Time::ZERO, &numbered(1, 0)), Err(Drop::PortGone));
    assert!(node.deadline().is_none());
}

/// The frame has waited for its port, behind another and before a third.
#[test]
fn a_panic_at_a_frame_of_a_queue_costs_that_frame() {
    let (mut node, device) = narrow();
    node.table.learn(Time::ZERO, Mac([2, 0, 0, 0, 0, 2]).into(), Place::Port(0)).unwrap();
    let control = |node: &mut Node, at: u64, quanta: u16| {
        let frame = pause::write(Mac([2, 0, 0, 0, 0, 9]), &[Some(quanta); 8]);
        node.slots[0].obey(Time::from_us(at), &frame, &mut Vec::new()).unwrap();
    };
    control(&mut node, 1, 1000);
    for number in 1..4 {
        let mut frame = numbered(number, 0);
        if number == 2 {
            let at = frame.len() - fault::AT_WRITER.len();
            frame[at..].copy_from_slice(&fault::AT_WRITER);
        }
        deliver(&mut node, Time::from_us(2), &frame).unwrap();
    }
    control(&mut node, 3, 0);
    let mut left = read(&device);
    node.drain(Time::from_us(200));
    left.extend(read(&device));
    assert_eq!(left.iter().map(|frame| number(frame)).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(node.slots[0].counters.dropped(Drop::InternalError), 1);
}

#[test]
fn a_neighbour_that_pauses_is_obeyed_and_its_frame_goes_no_further() {
    let (mut node, device) = narrow();
    node.slots.push(Slot::new(
        "other",
        Some(Port::Pcap(Box::new(Pcap::open(None, None).unwrap()))),
        1500,
    ));
    let mut buffers = Buffers::new(4);
    let mut control = |node: &mut Node, quanta: &pause::Quanta| {
        let frame = pause::write(Mac([2, 0, 0, 0, 0, 9]), quanta);
        send(&device, &[&[0; 10][..], &frame].concat(), SendFlags::empty()).unwrap();
        assert_eq!(
            node.receive(&mut Round::new(Time::from_us(1), &mut buffers, &mut Alone), 0, 1),
            1
        );
    };
    let mut stop = [None; 8];
    stop[0] = Some(1000);
    control(&mut node, &stop);
    node.table.learn(Time::ZERO, Mac([2, 0, 0, 0, 0, 2]).into(), Place::Port(0)).unwrap();
    deliver(&mut node, Time::from_us(2), &numbered(1, 0)).unwrap();
    deliver(&mut node, Time::from_us(2), &numbered(2, 6)).unwrap();
    node.drain(Time::from_us(2));
    assert_eq!(read(&device).iter().map(|frame| number(frame)).collect::<Vec<_>>(), [2]);
    let due = node.deadline().unwrap();
    assert!(due > Time::from_us(52) && due < Time::from_us(53), "1000 quanta of 10 Gb/s: {due}");
    stop[0] = Some(0);
    control(&mut node, &stop);
    assert_eq!(read(&device).iter().map(|frame| number(frame)).collect::<Vec<_>>(), [1]);
    assert_eq!(
        (node.slots[1].counters.sent, node.slots[0].counters.reading().dropped.len()),
        (0, 0)
    );
    assert_eq!(
        deliver(&mut node, Time::ZERO, &pause::write(Mac::default(), &stop)),
        Err(Drop::BadControl)
    );
}
