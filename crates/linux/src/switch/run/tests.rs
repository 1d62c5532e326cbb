//! Rounds of the poll loop, with sockets of this process in the place of paths.

mod conformance;

use super::{Ready, Switch};
use crate::dataplane::buffers::{FRAME_MAX, Frame};
use crate::dataplane::fault::{self, Fault};
use crate::dataplane::frame::segment::tests::{Build, frame_of};
use crate::dataplane::frame::{Offload, Protocol, parse};
use crate::dataplane::port::shared::Sender;
use crate::dataplane::port::udp::Udp;
use crate::dataplane::port::{Pcap, Port};
use crate::dataplane::slot::Slot;
use crate::encapsulation::Encapsulation;
use crate::switch::config::{Config, PathParams, SwitchParams};
use crate::switch::control::Asking;
use crate::switch::node::Remote;
use crate::switch::state::State;
use crate::switch::uplink::Uplink;
use millpond_core::Time;
use millpond_core::edge::gro::Cause;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;

fn config(buffers: u32) -> Config {
    Config { switch: SwitchParams { buffers, ..SwitchParams::default() }, ..Config::default() }
}

/// A switch with so many buffers, a port that swallows what it gets, and a path to each of these
/// peers; the paths' other ends.
fn switch(buffers: u32, peers: &[&str]) -> (Switch, Vec<OwnedFd>) {
    let (_, requests, wake) = Asking::new().unwrap();
    let mut switch = Switch::new(State::at(Path::new("nowhere")), config(buffers), requests, wake);
    let paths = peers
        .iter()
        .map(|peer| PathParams { peer: peer.to_string(), ..PathParams::default() })
        .collect();
    switch.uplink = Uplink::new(&Config { paths, ..Config::default() });
    let mut ends = Vec::new();
    for path in 0..peers.len() {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        switch.uplink.put(path, Udp::over(theirs));
        ends.push(ours);
    }
    let port = Some(Port::Pcap(Box::new(Pcap::open(None, None).unwrap())));
    switch.node.slots.push(Slot::new("sink", port, 1500));
    (switch, ends)
}

/// A datagram with 100 bytes of a flow's stream.
fn arrives(end: &OwnedFd, port: u16, seq: u32, flowcell: u16) {
    let frame = frame_of(&Build { port, seq, payload: 100, ..Build::default() });
    let stamp = Encapsulation { label: 0, flowcell, partial: false };
    send(end, &[&stamp.write()[..], &frame].concat(), SendFlags::empty()).unwrap();
}

fn ready(paths: usize) -> Ready {
    Ready { paths: (0..paths).collect(), ..Ready::default() }
}

#[test]
fn what_is_held_gives_its_buffers_back_though_it_has_all() {
    let (mut switch, ends) = switch(16, &["a"]);
    arrives(&ends[0], 80, 1000, 0);
    switch.round(Time::ZERO, &ready(1));
    // Beyond a gap that nothing fills: more than there are buffers.
    (0..40).for_each(|i| arrives(&ends[0], 80, 1200 + 100 * i, 1));
    for us in (10..=500).step_by(10) {
        switch.round(Time::from_us(us), &ready(1));
    }
    assert_eq!(
        (switch.uplink.counters().0.packets, switch.buffers.in_use()),
        (1, 16),
        "it waits as long as it may"
    );
    for us in (510..=1000).step_by(10) {
        switch.round(Time::from_us(us), &ready(1));
    }
    let (counters, dropped) = switch.uplink.counters();
    assert_eq!(
        (counters.packets, counters.of(Cause::Timeout), switch.buffers.in_use()),
        (41, 1, 0)
    );
    assert!(dropped.reading().dropped.is_empty());
}

#[test]
fn packets_of_others_that_have_all_buffers_for_a_poll_end_no_wait() {
    let (mut switch, ends) = switch(16, &["a", "a"]);
    arrives(&ends[0], 80, 1000, 0);
    switch.round(Time::ZERO, &ready(2));
    arrives(&ends[0], 80, 1200, 2);
    switch.round(Time::from_us(10), &ready(2));
    assert_eq!(switch.buffers.in_use(), 1);
    // When the wait is over, what fills the gap is there, behind more than there are buffers for.
    (0..20).for_each(|i| arrives(&ends[0], 81, 100 * i, 0));
    arrives(&ends[1], 80, 1100, 1);
    while switch.round(Time::from_us(600), &ready(2)) {}
    let counters = switch.uplink.counters().0;
    assert_eq!((counters.packets, counters.filled, counters.of(Cause::Timeout)), (23, 1, 0));
    assert_eq!(switch.buffers.in_use(), 0);
}

#[test]
fn a_flooded_frame_with_a_partial_checksum_is_whole_for_every_peer() {
    let (mut switch, ends) = switch(16, &["a", "b", "c"]);
    let frame = frame_of(&Build { protocol: Protocol::Udp, payload: 100, ..Build::default() });
    let view = parse(&frame).unwrap();
    // Of a transport in a tunnel.
    let inner = view.layers().unwrap().payload + 20;
    let offload = Offload {
        partial: true,
        checksum_start: inner as u16,
        checksum_offset: 6,
        ..Offload::default()
    };
    let (mut whole, mut filled) = (frame.clone(), offload);
    filled.fill(&mut whole).unwrap();
    let buffer = switch.buffers.take().unwrap();
    switch.buffers.bytes_mut(buffer)[..frame.len()].copy_from_slice(&frame);
    let flooded = Frame { buffer, start: 0, length: frame.len(), offload };
    let Switch { uplink, buffers, .. } = &mut switch;
    uplink.transmit(Time::ZERO, buffers, &flooded, &view, None).unwrap();
    uplink.depart(Time::ZERO);
    buffers.release(buffer);
    let mut room = vec![0; FRAME_MAX];
    for end in &ends {
        let (_, length) = recv(end, &mut room[..], RecvFlags::DONTWAIT).unwrap();
        let (stamp, sent) = Encapsulation::read(&room[..length]).unwrap();
        assert!(!stamp.partial && sent == whole, "{sent:?}");
    }
    assert_eq!(switch.buffers.in_use(), 0);
}

#[test]
fn a_change_of_buffers_takes_effect() {
    let (mut switch, _) = switch(16, &[]);
    for buffers in [32, 16] {
        switch.change(config(buffers));
        let taken: Vec<_> = std::iter::from_fn(|| switch.buffers.take()).collect();
        assert_eq!(taken.len(), buffers as usize);
        taken.into_iter().for_each(|id| switch.buffers.release(id));
    }
}

#[test]
fn a_path_whose_socket_is_full_makes_packets_wait_without_their_buffers() {
    let (mut switch, ends) = switch(16, &["a"]);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    rustix::net::sockopt::set_socket_send_buffer_size(&theirs, 4096).unwrap();
    switch.uplink.put(0, Udp::over(theirs));
    drop(ends);
    for seq in 0..100 {
        let frame = frame_of(&Build { seq, payload: 1000, ..Build::default() });
        let view = parse(&frame).unwrap();
        let buffer = switch.buffers.take().unwrap();
        switch.buffers.bytes_mut(buffer)[..frame.len()].copy_from_slice(&frame);
        let frame = Frame { buffer, start: 0, length: frame.len(), offload: Offload::default() };
        let Switch { uplink, buffers, .. } = &mut switch;
        uplink.transmit(Time::ZERO, buffers, &frame, &view, Some((0, Sender::Elsewhere))).unwrap();
        uplink.depart(Time::ZERO);
        buffers.release(buffer);
    }
    assert_eq!(switch.buffers.in_use(), 0);
    let (mut got, mut rounds, mut room) = (Vec::new(), 0, vec![0; FRAME_MAX]);
    loop {
        while let Ok((_, length)) = recv(&ours, &mut room[..], RecvFlags::DONTWAIT) {
            let (_, frame) = Encapsulation::read(&room[..length]).unwrap();
            got.push(u32::from_be_bytes(std::array::from_fn(|i| frame[38 + i])));
        }
        let Some(due) = switch.uplink.paths_due() else { break };
        switch.round(due, &Ready::default());
        rounds += 1;
    }
    assert_eq!(got, (0..100).collect::<Vec<_>>());
    let path = &switch.uplink.reading(Time::ZERO, 0)[0].counters;
    assert!(rounds > 5 && path.sent == 100 && path.dropped.is_empty(), "{rounds} {path:?}");
}

/// Short packets of a round leave in one call and keep their place among others.
#[test]
fn short_packets_leave_together_and_in_order() {
    let (mut switch, ends) = switch(16, &["a"]);
    drop(ends);
    let [here, there] = Udp::pair();
    switch.uplink.put(0, here);
    let lengths: Vec<usize> = [vec![100; 70], vec![4000, 100, 60, 100]].concat();
    for (seq, payload) in (0..).zip(&lengths) {
        let frame = frame_of(&Build { seq, payload: *payload, ..Build::default() });
        let view = parse(&frame).unwrap();
        let buffer = switch.buffers.take().unwrap();
        switch.buffers.bytes_mut(buffer)[..frame.len()].copy_from_slice(&frame);
        let frame = Frame { buffer, start: 0, length: frame.len(), offload: Offload::default() };
        let Switch { uplink, buffers, .. } = &mut switch;
        uplink.transmit(Time::ZERO, buffers, &frame, &view, Some((0, Sender::Elsewhere))).unwrap();
        buffers.release(buffer);
        assert_eq!(switch.buffers.in_use(), 0, "a copy waits, if anything");
    }
    let sent = |switch: &Switch| switch.uplink.reading(Time::ZERO, 0)[0].counters.clone();
    // As many as one call takes, what the long one has sent before itself, and that one.
    assert_eq!((sent(&switch).sent, sent(&switch).sent_large), (71, 2));
    switch.round(Time::ZERO, &Ready::default());
    // Of one length but for the last, and the one behind that.
    assert_eq!((sent(&switch).sent, sent(&switch).sent_large), (74, 3));
    let (mut got, mut room, start) = (Vec::new(), vec![0; FRAME_MAX], std::time::Instant::now());
    while got.len() < lengths.len() && start.elapsed().as_secs() < 15 {
        while let Some((bytes, size)) = there.receive(&mut room).unwrap() {
            for datagram in room[..bytes].chunks(size) {
                // The round has probed the path, too.
                let Some((_, frame)) = Encapsulation::read(datagram) else { continue };
                let seq = u32::from_be_bytes(std::array::from_fn(|i| frame[38 + i]));
                got.push((seq, frame.len() - 66));
            }
        }
    }
    assert_eq!(got, (0..).zip(lengths).collect::<Vec<_>>());
}

/// Many ports have something for everybody: a round ends, and the next goes on behind it.
#[test]
fn a_round_of_floods_ends() {
    use crate::dataplane::port::Tap;
    let (mut switch, _) = switch(64, &[]);
    let frame = |i: usize| {
        let mut frame = frame_of(&Build { payload: 10, ..Build::default() });
        frame[..12].copy_from_slice(&[
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            2,
            0,
            0,
            0,
            (i >> 8) as u8,
            i as u8,
        ]);
        [&Offload::default().write()[..], &frame].concat()
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let count = 300;
    let ends: Vec<OwnedFd> = (0..count)
        .map(|i| {
            let (ours, theirs) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
            switch.node.slots.push(Slot::new(
                i.to_string(),
                Some(Port::Tap(Tap::over(theirs).unwrap())),
                1500,
            ));
            send(&ours, &frame(i), SendFlags::empty()).unwrap();
            ours
        })
        .collect();
    let ready = Ready { ports: (0..=count).collect(), ..Ready::default() };
    let handled = |switch: &Switch| {
        switch.node.slots.iter().filter(|slot| slot.counters.received > 0).count()
    };
    assert!(switch.round(Time::ZERO, &ready), "there is more");
    assert_eq!(handled(&switch), 4096 / count + 1);
    for us in 1..40 {
        switch.round(Time::from_us(us), &ready);
        ends.iter().for_each(|end| {
            while recv(end, &mut [0u8; 2000], RecvFlags::empty()).is_ok_and(|(n, _)| n > 0) {}
        });
    }
    assert_eq!(handled(&switch), count);
}

/// The frame arrives between two others of its flow and beside another's.
#[test]
fn a_panic_at_a_frame_of_a_path_costs_that_frame() {
    let (mut switch, ends) = switch(64, &["a", "b"]);
    let poisoned = |seq| {
        let mut frame = frame_of(&Build { port: 80, seq, payload: 100, ..Build::default() });
        let at = frame.len() - fault::INJECTED.len();
        frame[at..].copy_from_slice(&fault::INJECTED);
        let stamp = Encapsulation { label: 0, flowcell: 0, partial: false };
        send(&ends[0], &[&stamp.write()[..], &frame].concat(), SendFlags::empty()).unwrap();
        frame
    };
    arrives(&ends[0], 80, 1000, 0);
    let lost = poisoned(1100);
    arrives(&ends[0], 80, 1200, 0);
    arrives(&ends[1], 90, 1000, 0);
    for us in [0, 1000, 2000] {
        switch.round(Time::from_us(us), &ready(2));
    }
    let reading = switch.reading();
    let dropped = |path: usize| reading.paths[path].counters.dropped.clone();
    assert_eq!(dropped(0), BTreeMap::from([("internal-error".to_string(), 1)]));
    assert!(dropped(1).is_empty());
    assert_eq!((reading.edge.packets, switch.buffers.in_use()), (3, 0));
    let text: String = lost.iter().map(|byte| format!("{byte:02x}")).collect();
    let kept = |fault: &Fault| fault.work == "path 0 of a" && fault.frame.ends_with(&text);
    assert!(reading.faults.last.iter().any(kept), "{:?}", reading.faults);
}

/// A worker's thread in its loop: it goes on behind the frame, and so does the process.
#[test]
fn a_panic_at_a_frame_ends_no_worker() {
    use super::workers::{Team, spawn};
    use crate::dataplane::port::Tap;
    use crate::switch::order::Order;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let pair = || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let [(from, in_port), (to, out_port)] = [pair(), pair()];
    let (asking, requests, wake) = Asking::new().unwrap();
    let (first, orders, _) = Asking::new().unwrap();
    let thread = spawn(1, move || {
        let (state, team) = (State::at(Path::new("nowhere")), Team::follower(1, first));
        let mut worker = Switch::of_team(state, &config(16), requests, wake, team);
        for end in [in_port, out_port] {
            let port = Some(Port::Tap(Tap::over(end).unwrap()));
            worker.node.slots.push(Slot::new("port", port, 1500));
        }
        worker.run()
    });
    let frame = |seq: u32| frame_of(&Build { seq, payload: 100, ..Build::default() });
    for seq in 0..3 {
        let mut frame = frame(seq);
        if seq == 1 {
            let at = frame.len() - fault::INJECTED.len();
            frame[at..].copy_from_slice(&fault::INJECTED);
        }
        let bytes = [&Offload::default().write()[..], &frame].concat();
        send(&from, &bytes, SendFlags::empty()).unwrap();
    }
    let (mut got, mut room, start) = (Vec::new(), vec![0; 2000], std::time::Instant::now());
    while got.len() < 2 && start.elapsed().as_secs() < 20 {
        if let Ok((length, _)) = recv(&to, &mut room[..], RecvFlags::DONTWAIT) {
            got.push(room[10..length].to_vec());
        }
    }
    assert_eq!(got, [frame(0), frame(2)]);
    asking.order(Order::End);
    thread.unwrap().join().unwrap();
    drop(orders);
}

/// Packets behind a gap wait to be merged when the part fails.
#[test]
fn merging_begins_anew_after_a_panic() {
    let (mut switch, ends) = switch(16, &["a"]);
    switch.config.paths = vec![PathParams { peer: "a".into(), ..PathParams::default() }];
    arrives(&ends[0], 80, 1000, 0);
    switch.round(Time::ZERO, &ready(1));
    arrives(&ends[0], 80, 1200, 1);
    switch.round(Time::from_us(10), &ready(1));
    assert_eq!(switch.buffers.in_use(), 1);
    switch.part(super::PATHS, |_| panic!("once"));
    assert_eq!(switch.buffers.in_use(), 0);
    arrives(&ends[0], 80, 1300, 1);
    switch.round(Time::from_us(20), &ready(1));
    assert_eq!((switch.edge().packets, switch.buffers.in_use()), (1, 0));
}

#[test]
fn a_part_of_a_round_that_panics_costs_no_other_part() {
    let (mut switch, ends) = switch(64, &["a"]);
    assert!(switch.part("a test", |_| panic!("once")));
    arrives(&ends[0], 80, 1000, 0);
    switch.round(Time::ZERO, &ready(1));
    assert_eq!((switch.edge().packets, switch.failed), (1, 1));
}
