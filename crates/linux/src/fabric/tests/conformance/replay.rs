//! The replay: a switch between sockets of this process, with the trace's times for its clock.

use super::simulated::{Arrival, Trace, numbers};
use super::{Counted, Left, Seen};
use crate::dataplane::buffers::{Buffers, FRAME_MAX};
use crate::dataplane::frame::checksum::Sum;
use crate::dataplane::frame::offload::{self, Offload};
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Tag, parse, pause};
use crate::dataplane::metadata::Classifier;
use crate::dataplane::port::Port;
use crate::dataplane::port::tap::Tap;
use crate::dataplane::slot::Slot;
use crate::fabric::{Fabric, Line};
use crate::tests::{Headers, flow, layers, mac, pair, tcp_flags};
use millpond_core::counters::DropReason;
use millpond_core::packet::flags;
use millpond_core::{Ecn, Packet, Time};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::OwnedFd;

/// A packet of the trace as its link carries it; its payload is ones.
pub fn frame(p: &Packet) -> Vec<u8> {
    let (seq, ack) = numbers(p);
    let headers = Headers {
        from: p.src,
        to: p.dst,
        tag: Some(Tag { rank: p.rank, label: Some(p.entropy), deflected: p.has(flags::DEFLECTED) }),
        flow: p.flow,
        seq,
        ack,
        flags: tcp_flags(p),
        tos: p.class.bits(),
        ttl: p.ttl,
        length: u32::from(p.size - p.payload),
    };
    let frame = headers.frame((0..p.payload).map(|_| 1), true);
    let offload = Offload::of(&layers(&frame), usize::from(p.payload));
    [&offload.write()[..], &frame].concat()
}

/// A packet or a pause as it leaves.
fn left(at: Time, port: u16, bytes: &[u8]) -> Left {
    let (header, frame) =
        bytes.split_first_chunk::<{ offload::LENGTH }>().expect("a virtio header");
    if let Some(quanta) = pause::read(frame) {
        let stopped: Vec<(usize, u16)> =
            quanta.iter().enumerate().filter_map(|(p, q)| Some((p, (*q)?))).collect();
        let [(priority, quanta)] = stopped[..] else {
            panic!("a frame of {} priorities", stopped.len())
        };
        return Left::Pause { at, port, priority: priority as u8, quanta };
    }
    let view = parse(frame).expect("a frame");
    assert_eq!(Offload::read(header).expect("a virtio header").check(&view, frame.len()), Ok(()));
    let (layers, tag) =
        (*view.tcp().expect("of TCP"), Tag::read(frame, view.tag.expect("a tag")).expect("a tag"));
    let network = &frame[view.ethernet..];
    assert_eq!(Sum::default().bytes(&network[..20]).fold(), 0xffff, "the header's checksum");
    assert!(frame[layers.payload..].iter().all(|byte| *byte == 1), "the payload");
    let ecn = match network[1] & 3 {
        0 => Ecn::NotEct,
        3 => Ecn::Ce,
        _ => Ecn::Ect,
    };
    Left::Packet(Seen {
        at,
        port,
        flow: flow(frame, &layers),
        seq: tcp::seq(frame, &layers),
        ack: tcp::ack(frame, &layers),
        size: (frame.len() - view.ethernet) as u16,
        flags: tcp::flags(frame, &layers),
        ecn,
        ttl: network[8],
        rank: tag.rank,
        deflected: tag.deflected,
    })
}

/// A switch and the other ends of its ports.
struct Rig {
    switch: Fabric,
    buffers: Buffers,
    ends: Vec<OwnedFd>,
    /// By port: what has been read there.
    read: Vec<u64>,
    left: Vec<Left>,
    room: Vec<u8>,
}

impl Rig {
    fn new(trace: &Trace, switch: u32) -> Rig {
        let hosts = (0..trace.plan.topology.hosts).map(|host| (mac(host), host));
        let mut ends = Vec::new();
        let line = |rate| {
            let (ours, theirs) = pair();
            ends.push(ours);
            let port = Some(Port::Tap(Tap::over(theirs).expect("a port")));
            Line::new(Slot::new("", port, 9000), rate, mac(250))
        };
        let lines: Vec<Line> = trace.rates(switch).into_iter().map(line).collect();
        let (read, left, room) = (vec![0; lines.len()], Vec::new(), vec![0; FRAME_MAX]);
        let switch = Fabric::new(trace.node(switch), Classifier::new(hosts, 0), lines);
        Rig { switch, buffers: Buffers::new(4096), ends, read, left, room }
    }

    fn advance(&mut self, now: Time) {
        self.switch.advance(now, &mut self.buffers);
        for (port, line) in self.switch.lines().iter().enumerate() {
            let sent = line.slot.counters.sent + line.pauses;
            for _ in self.read[port]..sent {
                let (_, length) = recv(&self.ends[port], &mut self.room[..], RecvFlags::DONTWAIT)
                    .expect("a frame");
                self.left.push(left(now, port as u16, &self.room[..length]));
            }
            self.read[port] = sent;
        }
    }

    /// Does what the switch does before `end` by itself, when it wants to.
    fn alone(&mut self, end: Time) {
        while let Some(due) = self.switch.deadline().filter(|due| *due < end) {
            self.advance(due);
        }
    }

    fn arrive(&mut self, at: Time, port: u16, what: &Arrival) {
        let bytes = match what {
            Arrival::Packet(packet) => frame(packet),
            Arrival::Pause(priority, quanta) => {
                let mut all = [None; 8];
                all[usize::from(*priority)] = Some(*quanta);
                [&Offload::default().write()[..], &pause::write(mac(251), &all)].concat()
            }
        };
        send(&self.ends[usize::from(port)], &bytes, SendFlags::empty())
            .expect("room in the socket");
        assert_eq!(self.switch.receive(at, port.into(), 1, &mut self.buffers), 1);
    }

    fn count(&self, counted: &mut Counted) {
        counted.marked += self.switch.node().marked();
        counted.deflected += self.switch.node().deflected;
        for line in self.switch.lines() {
            for reason in DropReason::ALL {
                counted.dropped[reason as usize] += line.slot.counters.discarded(reason);
            }
        }
    }
}

/// Lets a switch have what the simulator's had; what left, and adds what it has counted.
pub fn run(trace: &Trace, switch: u32, counted: &mut Counted) -> Vec<Left> {
    let mut rig = Rig::new(trace, switch);
    for (at, port, what) in trace.arrivals(switch) {
        rig.alone(at);
        rig.arrive(at, port, &what);
    }
    rig.alone(trace.end);
    rig.count(counted);
    // Packets that are still held hold their buffers, and nothing else does.
    assert!(rig.switch.held() >= rig.buffers.in_use());
    rig.advance(trace.end + Time::from_ms(100));
    assert_eq!((rig.switch.held(), rig.buffers.in_use()), (0, 0));
    rig.left.retain(|left| match left {
        Left::Packet(seen) => seen.at < trace.end,
        Left::Pause { at, .. } => *at < trace.end,
    });
    rig.left
}

/// The same with a poll loop that comes around only so often, but knows when frames arrived: each
/// leaves late by that at most, and otherwise as it did.
pub fn sleepily(trace: &Trace, period: Time) {
    for switch in 0..trace.switches() {
        let mut rig = Rig::new(trace, switch);
        let mut next = period;
        for (at, port, what) in trace.arrivals(switch) {
            while next < at {
                rig.advance(next);
                next += period;
            }
            rig.arrive(at, port, &what);
        }
        rig.advance(trace.end + Time::from_ms(100));
        let on_time = super::by_port(trace.left(switch));
        let late = super::by_port(rig.left);
        assert!(late.len() >= on_time.len());
        for port in 0..rig.switch.lines().len() as u16 {
            let of = |left: &[Left]| {
                left.iter().filter(|left| left.port() == port).copied().collect::<Vec<_>>()
            };
            for (ours, theirs) in of(&on_time).iter().zip(of(&late)) {
                let (Left::Packet(ours), Left::Packet(theirs)) = (ours, theirs) else {
                    panic!("nobody pauses")
                };
                assert_eq!(Seen { at: ours.at, ..theirs }, *ours);
                assert!(
                    theirs.at >= ours.at
                        && (theirs.at < ours.at + period || ours.at + period > trace.end)
                );
            }
        }
    }
}
