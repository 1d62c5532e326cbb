//! The replay: the switch with this trace's times for its clock, between a file in the place of a
//! TAP and sockets of this process in the place of UDP's.

use super::simulated::{Sent, Trace, cell, merge_identity, sequence};
use super::{Stamped, Verdict};
use crate::dataplane::buffers::FRAME_MAX;
use crate::dataplane::frame::checksum;
use crate::dataplane::frame::offload::{self, Offload};
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Layers, parse};
use crate::dataplane::port::Port;
use crate::dataplane::port::tap::Tap;
use crate::dataplane::port::udp::Udp;
use crate::dataplane::slot::Slot;
use crate::encapsulation::Encapsulation;
use crate::switch::config::{Config, PathParams};
use crate::switch::control::Asking;
use crate::switch::run::{Ready, Switch};
use crate::switch::state::State;
use crate::switch::table::Place;
use crate::switch::uplink::Uplink;
use crate::tests::{Headers, flow, layers, mac, pair, tcp_flags};
use crate::tunnel::probe;
use millpond_core::edge::flowcell::Rule;
use millpond_core::edge::gro::{self, OffloadParams};
use millpond_core::{HostId, Packet, Time};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A payload byte depends on its flow and its place in the stream.
fn byte(flow: u32, seq: u32) -> u8 {
    (seq ^ seq >> 8 ^ seq >> 16).wrapping_add(flow) as u8
}

fn payload(flow: u32, seq: u32, bytes: u32) -> impl Iterator<Item = u8> {
    (0..bytes).map(move |i| byte(flow, seq.wrapping_add(i)))
}

/// A packet of the trace as it crosses a path.
fn datagram(p: &Packet) -> Vec<u8> {
    let (tos, ttl, ms) = merge_identity(p);
    // Every other flow's checksums are whole, as of a sender without offloads.
    let partial = p.flow.is_multiple_of(2);
    let (from, to, flags, length) = (p.src, p.dst, tcp_flags(p), u32::from(p.size - p.payload));
    let (flow, seq) = (p.flow, sequence(p));
    let headers = Headers { from, to, tag: None, flow, seq, ack: ms, flags, tos, ttl, length };
    let stamp = Encapsulation { label: p.entropy as u16, flowcell: cell(p), partial };
    [&stamp.write()[..], &headers.frame(payload(flow, seq, p.payload.into()), partial)].concat()
}

/// The flow, and whether each byte is in its place.
fn content(frame: &[u8], layers: &Layers) -> u32 {
    let (flow, seq) = (flow(frame, layers), tcp::seq(frame, layers));
    let bytes = &frame[layers.payload..layers.end];
    let is_right = bytes.iter().copied().eq(payload(flow, seq, bytes.len() as u32));
    assert!(is_right, "the bytes of flow {flow} from {seq} on");
    flow
}

/// The switch, with nothing but so many paths to each of `peers`, and what they are read and
/// written by, peer by peer.
fn switch(
    rule: Rule,
    offload: &OffloadParams,
    peers: &[(HostId, u16)],
    burst: usize,
) -> (Switch, Vec<Vec<OwnedFd>>) {
    let (_, requests, wake) = Asking::new().expect("an event");
    let mut switch =
        Switch::new(State::at(Path::new("nowhere")), Config::default(), requests, wake);
    let path = |peer: HostId| PathParams { peer: peer.to_string(), ..PathParams::default() };
    let paths = peers.iter().flat_map(|(peer, paths)| (0..*paths).map(|_| path(*peer))).collect();
    switch.uplink = Uplink::with(&Config { paths, ..Config::default() }, rule, offload, burst);
    let (mut ends, mut path) = (Vec::new(), 0..);
    for (at, (peer, paths)) in peers.iter().enumerate() {
        switch.node.table.learn(Time::ZERO, mac(*peer).into(), Place::Peer(at)).unwrap();
        let connected = path.by_ref().take(usize::from(*paths)).map(|path| {
            let (ours, theirs) = pair();
            switch.uplink.put(path, Udp::over(theirs));
            ours
        });
        ends.push(connected.collect());
    }
    (switch, ends)
}

fn plug(switch: &mut Switch, file: OwnedFd) {
    let port = Some(Port::Tap(Tap::over(file).expect("a port")));
    switch.node.slots.push(Slot::new("host", port, 1500));
}

/// The actions of a receiving half.
pub struct Received {
    pub verdicts: Vec<Verdict>,
    /// The counts, after each poll of the trace.
    pub counted: Vec<gro::Counters>,
}

/// Lets a host's switch receive what the simulator's host did, at the same times; what is held goes
/// up when the switch says.
pub fn receive(trace: &Trace, host: HostId) -> Received {
    let rule = trace.plan.edge.load_balancing.rule().expect("hosts spread what they send");
    let params = &trace.plan.host.choices.receive_offload;
    let budget = match params {
        OffloadParams::None(_) => usize::MAX,
        OffloadParams::Stock(p) => p.budget as usize,
        OffloadParams::Presto(p) => p.budget as usize,
    };
    let (mut switch, ends) = switch(rule, params, &[(u8::MAX.into(), 1)], budget);
    let file = memfd_create("tap", MemfdFlags::CLOEXEC).expect("a file");
    let mut out = Out { file: File::from(file.try_clone().expect("a file")), at: 0, packets: 0 };
    plug(&mut switch, file);
    let (mut verdicts, mut counted) = (Vec::new(), Vec::new());
    for poll in trace.polls_of(host).filter(|poll| !poll.taken.is_empty()) {
        alone(&mut switch, poll.at, &mut out, &mut verdicts);
        for packet in &poll.taken {
            send(&ends[0][0], &datagram(packet), SendFlags::empty()).expect("room in the socket");
        }
        while switch.round(poll.at, &Ready { paths: vec![0], ..Ready::default() }) {}
        out.read(poll.at, &mut verdicts);
        counted.push(switch.uplink.counters().0);
    }
    alone(&mut switch, trace.end, &mut out, &mut verdicts);
    let (counters, dropped) = switch.uplink.counters();
    assert!(
        dropped.reading().dropped.is_empty()
            && switch.node.slots[0].counters.reading().dropped.is_empty()
    );
    assert_eq!(out.packets, counters.packets, "super-frames say of how many packets they are");
    Received { verdicts, counted }
}

/// The switch's actions before `end` without a packet, when it wants to act.
fn alone(switch: &mut Switch, end: Time, out: &mut Out, verdicts: &mut Vec<Verdict>) {
    while let Some(due) = switch.uplink.deadline().filter(|due| *due < end) {
        switch.round(due, &Ready::default());
        out.read(due, verdicts);
    }
}

/// The frames that the switch wrote to the TAP.
struct Out {
    file: File,
    at: u64,
    packets: u64,
}

impl Out {
    /// All that has come since the last time.
    fn read(&mut self, at: Time, verdicts: &mut Vec<Verdict>) {
        let length = self.file.metadata().expect("a file").len();
        let mut bytes = vec![0; (length - self.at) as usize];
        self.file.read_exact_at(&mut bytes, self.at).expect("what was written");
        self.at = length;
        let mut rest = &bytes[..];
        while let Some((header, after)) = rest.split_first_chunk::<{ offload::LENGTH }>() {
            let length = 14 + usize::from(u16::from_be_bytes([after[16], after[17]]));
            let (frame, after) = after.split_at(length);
            verdicts.push(self.verdict(at, Offload::read(header).expect("a virtio header"), frame));
            rest = after;
        }
    }

    fn verdict(&mut self, at: Time, offload: Offload, frame: &[u8]) -> Verdict {
        let layers = layers(frame);
        let bytes = (layers.end - layers.payload) as u32;
        assert_eq!(offload.check(&parse(frame).expect("a frame"), frame.len()), Ok(()));
        self.packets += match offload.gso_size {
            0 => 1,
            size => u64::from(bytes.div_ceil(size.into())),
        };
        Verdict {
            at,
            flow: content(frame, &layers),
            seq: tcp::seq(frame, &layers),
            bytes,
            flags: tcp::flags(frame, &layers),
            identity: (frame[15], frame[22], tcp::ack(frame, &layers)),
        }
    }
}

/// Lets a host's switch send what the simulator's host did.
pub fn stamps(trace: &Trace, host: HostId) -> Vec<Stamped> {
    let sent: Vec<&Sent> = trace.sent.iter().filter(|sent| sent.host == host).collect();
    let mut peers: Vec<(HostId, u16)> = sent.iter().map(|sent| (sent.to, sent.paths)).collect();
    peers.sort_unstable();
    peers.dedup();
    let rule = trace.plan.edge.load_balancing.rule().expect("hosts spread what they send");
    let (mut switch, ends) = switch(rule, &OffloadParams::None(Default::default()), &peers, 16);
    let (stack, tap) = pair();
    plug(&mut switch, tap);
    let (mut now, mut all) = (Time::ZERO, Vec::new());
    for segment in sent {
        now = now.max(segment.at);
        let (from, to, flow, seq) = (host, segment.to, segment.flow, segment.seq);
        let (flags, length) = (segment.flags, segment.headers);
        let headers =
            Headers { from, to, tag: None, flow, seq, ack: 0, flags, tos: 0, ttl: 64, length };
        let frame = headers.frame(payload(flow, seq, segment.payload), true);
        let offload = Offload::of(&layers(&frame), 1460);
        send(&stack, &[&offload.write()[..], &frame].concat(), SendFlags::empty())
            .expect("room in the socket");
        switch.round(now, &Ready { ports: vec![0], ..Ready::default() });
        let peer = peers.iter().position(|peer| *peer == (to, segment.paths)).expect("a peer");
        let carried: Vec<_> = ends[peer].iter().map(read).collect();
        let took = carried.iter().position(|datagrams| !datagrams.is_empty()).expect("it was sent");
        assert!(
            carried
                .iter()
                .enumerate()
                .all(|(path, datagrams)| path == took || datagrams.is_empty())
        );
        all.push(stamped(segment, took, &carried[took]));
    }
    assert_eq!(switch.buffers.in_use(), 0);
    all
}

/// The stamp that all datagrams of one segment have alike.
fn stamped(segment: &Sent, took: usize, datagrams: &[Vec<u8>]) -> Stamped {
    let mut whole: Option<Stamped> = None;
    for datagram in datagrams {
        let (stamp, frame) = Encapsulation::read(datagram).expect("encapsulated");
        let layers = layers(frame);
        let (bytes, seq) = ((layers.end - layers.payload) as u32, tcp::seq(frame, &layers));
        let flow = content(frame, &layers);
        assert_eq!(usize::from(stamp.label), took, "the label's path");
        assert!(stamp.partial || checksum::is_right(frame, &layers));
        let it = whole.get_or_insert(Stamped {
            flow,
            is_data: segment.is_data,
            seq,
            bytes: 0,
            paths: segment.paths,
            place: stamp.label,
            flowcell: stamp.flowcell,
        });
        assert_eq!(
            (it.flow, it.flowcell, it.seq.wrapping_add(it.bytes)),
            (flow, stamp.flowcell, seq)
        );
        it.bytes += bytes;
    }
    whole.expect("it was sent")
}

/// All datagrams that wait in a socket; those that one call has written are apart.
fn read(end: &OwnedFd) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    let mut buffer = vec![0; FRAME_MAX];
    while let Ok((_, length)) = recv(end, &mut buffer[..], RecvFlags::DONTWAIT) {
        // Probes of the path are no part of the trace.
        let mut rest = if probe::is_probe(&buffer[..length]) { &[] } else { &buffer[..length] };
        while !rest.is_empty() {
            let length = 8 + 14 + usize::from(u16::from_be_bytes([rest[24], rest[25]]));
            let (one, after) = rest.split_at(length);
            datagrams.push(one.to_vec());
            rest = after;
        }
    }
    datagrams
}
