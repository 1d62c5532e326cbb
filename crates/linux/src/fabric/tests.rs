//! The switch by itself, between sockets and files.

mod conformance;

use super::*;
use crate::dataplane::buffers::FRAME_MAX;
use crate::dataplane::frame::segment::tests::{Build, frame_of};
use crate::dataplane::frame::{Mac, Offload, Protocol, checksum};
use crate::dataplane::metadata;
use crate::dataplane::port::tap::Tap;
use crate::dataplane::port::{Pcap, Port};
use crate::dataplane::slot::Slot;
use millpond_core::Rate;
use millpond_core::counters::DropReason;
use millpond_core::random::Stream;
use millpond_core::switch::SwitchConfig;
use millpond_core::switch::admission::{Admission, AdmissionParams};
use millpond_core::switch::buffer::{BufferParams, Capacity, Memory, PerPortParams, SwitchFacts};
use millpond_core::switch::marking::{Marking, MarkingParams};
use millpond_core::switch::port::PortConfig;
use millpond_core::switch::queue::{Queue, QueueParams, StrictPriorityParams};
use millpond_core::switch::route::{Attachment, Routes};
use millpond_core::switch::site::{Auto, PortSite};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair, sockopt};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Two hosts, 1 and 2, at ports 0 and 1 of a gigabit each, where so many packets may wait.
fn switch(ports: [Port; 2], packets: u32) -> Fabric {
    let buffer =
        PerPortParams { size: Auto::Given(None).into(), packets: Some(packets).into(), per: None };
    let buffer = BufferParams::PerPort(buffer);
    let port = PortConfig {
        rate: Rate::from_gbps(1),
        control: None,
        capacity: Capacity::new(&buffer, &PortSite::default()),
        marking: Marking::new(&MarkingParams::default()),
        admission: Admission::new(&AdmissionParams::default()),
        queue: Queue::new(&QueueParams::StrictPriority(StrictPriorityParams::default())),
    };
    let attachment = Arc::new(Attachment { hosts: vec![(0, 0), (0, 1)] });
    let node = Switch::new(SwitchConfig::plain(
        Routes::new(attachment, Some(0), &[vec![]]),
        vec![port.clone(), port],
        Memory::new(&buffer, &SwitchFacts::default()),
        Stream::new(1, "switch"),
    ));
    let line = |port| {
        Line::new(Slot::new("", Some(port), 1500), Rate::from_gbps(1), Mac([2, 0, 0, 0, 0, 9]))
    };
    let hosts = [(Mac([2, 0, 0, 0, 0, 1]), 0), (Mac([2, 0, 0, 0, 0, 2]), 1)];
    Fabric::new(node, Classifier::new(hosts, metadata::FRAMING), ports.map(line).into())
}

fn sink() -> Port {
    Port::Pcap(Box::new(Pcap::open(None, None).unwrap()))
}

/// A port, and what it writes.
fn open_port() -> (Port, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    sockopt::set_socket_send_buffer_size(&theirs, 4096).unwrap();
    (Port::Tap(Tap::over(theirs).unwrap()), ours)
}

fn arrive(
    switch: &mut Fabric,
    at: Time,
    frame: &[u8],
    offload: Offload,
    buffers: &mut Buffers,
) -> Result<(), Drop> {
    let buffer = buffers.take().unwrap();
    buffers.bytes_mut(buffer)[..frame.len()].copy_from_slice(frame);
    let result =
        switch.arrive(at, 0, &Frame { buffer, start: 0, length: frame.len(), offload }, buffers);
    buffers.release(buffer);
    result
}

fn read(end: &OwnedFd) -> Vec<Vec<u8>> {
    let mut room = vec![0; FRAME_MAX];
    let read = || {
        recv(end, &mut room[..], RecvFlags::DONTWAIT)
            .ok()
            .map(|(_, length)| room[..length].to_vec())
    };
    std::iter::from_fn(read).collect()
}

#[test]
fn a_super_segment_leaves_as_packets_at_line_rate() {
    let (port, end) = open_port();
    let mut switch = switch([sink(), port], 100);
    let mut buffers = Buffers::new(4);
    let frame = frame_of(&Build { payload: 4000, ..Build::default() });
    let offload = Offload::of(parse(&frame).unwrap().layers().unwrap(), 1448);
    arrive(&mut switch, Time::ZERO, &frame, offload, &mut buffers).unwrap();
    assert_eq!((switch.held(), buffers.in_use()), (3, 1));
    let mut lengths = Vec::new();
    while let Some(due) = switch.deadline() {
        switch.advance(due, &mut buffers);
        lengths.extend(read(&end).iter().map(|frame| (due, frame.len() - 10)));
    }
    // 1448 bytes, 52 of TCP and IP, and 38 of Ethernet, at 8 ns a byte.
    let ns = |ns| Time::from_ns(ns);
    assert_eq!(lengths, [(ns(12_304), 1514), (ns(24_608), 1514), (ns(34_160), 1170)]);
    assert_eq!((switch.held(), buffers.in_use()), (0, 0));
}

#[test]
fn what_has_no_room_is_dropped_for_its_reason_and_gives_its_buffer_back() {
    let mut switch = switch([sink(), sink()], 3);
    let mut buffers = Buffers::new(10);
    let frame = frame_of(&Build { payload: 1000, ..Build::default() });
    for _ in 0..10 {
        arrive(&mut switch, Time::ZERO, &frame, Offload::default(), &mut buffers).unwrap();
    }
    assert_eq!(
        (switch.held(), buffers.in_use()),
        (4, 4),
        "one in transmission and three that wait"
    );
    assert_eq!(switch.lines()[0].slot.counters.discarded(DropReason::QueueFull), 6);
    switch.advance(Time::from_ms(1), &mut buffers);
    assert_eq!((switch.held(), buffers.in_use(), switch.lines()[1].slot.counters.sent), (0, 0, 4));
}

#[test]
fn a_device_that_is_full_holds_up_its_line_and_loses_nothing() {
    let (port, end) = open_port();
    let mut switch = switch([sink(), port], 100);
    let mut buffers = Buffers::new(50);
    let frame = frame_of(&Build { protocol: Protocol::Udp, payload: 1000, ..Build::default() });
    for _ in 0..40 {
        arrive(&mut switch, Time::ZERO, &frame, Offload::default(), &mut buffers).unwrap();
    }
    let (mut got, mut rounds) = (0, 0);
    while got < 40 {
        switch.advance(Time::from_ms(1), &mut buffers);
        assert!(
            switch.held() == 0 || switch.lines()[1].is_held_up() && switch.deadline().is_none()
        );
        got += read(&end).len();
        rounds += 1;
        assert!(rounds < 40);
    }
    assert!(rounds > 2 && switch.lines()[1].slot.counters.reading().dropped.is_empty(), "{rounds}");
}

#[test]
fn a_watched_port_shows_its_packets_with_the_times_of_their_last_bits() {
    let mut switch = switch([sink(), sink()], 100);
    let mut buffers = Buffers::new(4);
    let frame = frame_of(&Build { payload: 2000, ..Build::default() });
    let offload = Offload::of(parse(&frame).unwrap().layers().unwrap(), 1448);
    arrive(&mut switch, Time::ZERO, &frame, offload, &mut buffers).unwrap();
    switch.watch(|end| end == LinkEnd::Port(1));
    let now = Time::from_us(1);
    arrive(&mut switch, now, &frame, offload, &mut buffers).unwrap();
    switch.advance(Time::from_ms(1), &mut buffers);
    let passed = switch.passed(Time::from_ms(1));
    let seen: Vec<_> = passed.iter().map(|it| (it.at, it.outgoing, it.bytes.len())).collect();
    // Before them two packets leave, the first of which was on the link already: 1538 and 642
    // bytes with their framing, at 8 ns a byte. Arrivals at the other port are not shown.
    let ns = Time::from_ns;
    let expected = [(ns(17_440), true, 618), (ns(29_744), true, 1514), (ns(34_880), true, 618)];
    assert_eq!(seen, expected);
    for packet in &passed {
        let view = parse(&packet.bytes).unwrap();
        assert!(checksum::is_right(&packet.bytes, view.layers().unwrap()));
    }
    switch.watch(|_| false);
    arrive(&mut switch, Time::from_ms(2), &frame, offload, &mut buffers).unwrap();
    switch.advance(Time::from_ms(3), &mut buffers);
    assert!(switch.passed(Time::from_ms(3)).is_empty());
}

#[test]
fn a_stopped_priority_waits_and_others_do_not() {
    let (port, end) = open_port();
    let mut switch = switch([port, sink()], 100);
    let mut buffers = Buffers::new(8);
    let mut back = frame_of(&Build { payload: 100, ..Build::default() });
    (back[5], back[11]) = (1, 2);
    let mut urgent = back.clone();
    urgent[15] = 5 << 5;
    let mut quanta = [None; 8];
    quanta[0] = Some(1000);
    let control = pause::write(Mac::default(), &quanta);
    arrive(&mut switch, Time::ZERO, &control, Offload::default(), &mut buffers).unwrap();
    for frame in [&back, &urgent] {
        arrive(&mut switch, Time::ZERO, frame, Offload::default(), &mut buffers).unwrap();
    }
    switch.advance(Time::from_us(500), &mut buffers);
    assert_eq!(read(&end).iter().map(|frame| frame[10 + 15] >> 5).collect::<Vec<_>>(), [5]);
    // 1000 quanta of 512 ns.
    switch.advance(Time::from_us(511), &mut buffers);
    assert!(read(&end).is_empty());
    switch.advance(Time::from_us(520), &mut buffers);
    assert_eq!(read(&end).len(), 1);
    assert_eq!(buffers.in_use(), 0);
}

#[test]
fn what_is_no_packet_has_a_reason() {
    let mut switch = switch([sink(), sink()], 3);
    let mut buffers = Buffers::new(2);
    let good = frame_of(&Build { payload: 100, ..Build::default() });
    let changed = |at: usize, byte: u8| {
        let mut frame = good.clone();
        frame[at] = byte;
        frame
    };
    let mut control = pause::write(Mac::default(), &[None; 8]).to_vec();
    control[15] = 7;
    let wrong = Offload {
        gso_size: 100,
        gso: crate::dataplane::frame::GsoType::Tcp6,
        ..Offload::default()
    };
    let cases = [
        (good[..13].to_vec(), Offload::default(), Drop::Runt),
        (changed(6, 3), Offload::default(), Drop::SourceGroup),
        (changed(5, 77), Offload::default(), Drop::Nowhere),
        (control, Offload::default(), Drop::BadControl),
        (good.clone(), wrong, Drop::BadOffload),
    ];
    for (frame, offload, reason) in cases {
        assert_eq!(arrive(&mut switch, Time::ZERO, &frame, offload, &mut buffers), Err(reason));
        assert_eq!((switch.held(), buffers.in_use()), (0, 0));
    }
    arrive(&mut switch, Time::ZERO, &changed(22, 1), Offload::default(), &mut buffers).unwrap();
    assert_eq!(
        switch.lines()[0].slot.counters.discarded(DropReason::Ttl),
        1,
        "the last switch that it may meet"
    );
}
