//! Several frames through the edge, and through a switch with all kinds of ports.

use super::inputs::parts;
use super::split;
use crate::dataplane::buffers::{Buffers, Frame, ROOM};
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::neighbour::Guard;
use crate::dataplane::frame::{Layers, Mac, Offload, View, checksum, parse};
use crate::dataplane::held::Held;
use crate::dataplane::outgoing::Outgoing;
use crate::dataplane::packet::Packet;
use crate::dataplane::port::shared::{Fate, Sender};
use crate::dataplane::port::{Pcap, Port};
use crate::dataplane::slot::Slot;
use crate::dataplane::vlan::{VlanSet, Vlans};
use crate::edge::{Carrier, Edge};
use crate::encapsulation::Encapsulation;
use crate::switch::config::Config;
use crate::switch::node::{Node, Remote, Round};
use millpond_core::Time;
use millpond_core::params::{Field, Value};
use std::cell::RefCell;

/// Buffers of a body: more than an input has frames.
const BUFFERS: usize = 256;
/// The longest frame to the peer.
const FRAME_MAX: usize = 1400;

thread_local! {
    static ALL: RefCell<Buffers> = RefCell::new(Buffers::new(BUFFERS));
}

/// Datagrams on their way to the peer, which is this machine.
#[derive(Default)]
struct Carried(Vec<(Encapsulation, Vec<u8>)>);

impl Carrier for Carried {
    fn carry(
        &mut self,
        _: Time,
        buffers: &mut Buffers,
        packets: &[millpond_core::Packet],
        frames: &mut Vec<Held>,
    ) -> Result<(), Drop> {
        for (stamped, held) in packets.iter().zip(frames.drain(..)) {
            let stamp = Encapsulation::of(stamped, &held);
            let mut packet = held.bytes;
            let bytes = [packet.header.bytes(), packet.payload(buffers)].concat();
            // A port may have its checksum written into a header, and so lengthen it.
            let seen = layers(packet.view());
            assert!(seen.is_none() || seen == layers(parse(&bytes)));
            self.0.push((stamp, bytes));
            packet.end(buffers);
        }
        Ok(())
    }
}

fn layers(view: Option<View>) -> Option<Layers> {
    view.and_then(|view| view.layers().copied())
}

/// A machine's edge, and what it has sent.
struct Ends {
    edge: Edge,
    carried: Carried,
}

impl Ends {
    fn new() -> Ends {
        let params = Config::default().edge;
        let edge = Edge::new(params.rule(), vec![vec![0, 1]], &params.receive_offload.0);
        Ends { edge, carried: Carried::default() }
    }

    /// A packet of the peer.
    fn arrive(&mut self, now: Time, stamp: Encapsulation, frame: &[u8], buffers: &mut Buffers) {
        let Some(buffer) = buffers.take() else { return };
        if let Some(room) = buffers.bytes_mut(buffer).get_mut(..frame.len()) {
            room.copy_from_slice(frame);
            let (packet, view) = Packet::read(buffers, buffer, 0..frame.len());
            buffers.retain(buffer, u32::from(packet.has_payload()));
            self.edge.arrive(now, 0, stamp, packet, view, buffers);
        }
        buffers.release(buffer);
    }

    /// Packets that were sent arrive, and go up.
    fn turn(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        up: impl FnMut(usize, &Outgoing<'_>) -> Result<(), Drop>,
    ) {
        for (stamp, frame) in std::mem::take(&mut self.carried.0) {
            self.arrive(now, stamp, &frame, buffers);
        }
        self.edge.flush(now, now, buffers, up);
    }
}

impl Remote for Ends {
    fn transmit(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frame: &Frame,
        view: &View,
        peer: Option<(usize, Sender<'_>)>,
    ) -> Result<Fate, Drop> {
        if peer.is_some() && frame.offload.longest(view, frame.length) > FRAME_MAX {
            return Err(Drop::Oversized);
        }
        let (edge, carried) = (&mut self.edge, &mut self.carried);
        edge.send(now, buffers, &mut frame.clone(), view, 0, carried).map(|()| Fate::Left)
    }
    fn frame_max(&self, _: usize) -> Option<usize> {
        Some(FRAME_MAX)
    }
}

/// Puts a frame into a buffer, behind the room for a tag.
fn put(bytes: &[u8], buffers: &mut Buffers) -> Option<Frame> {
    let (header, frame) = split(bytes)?;
    let (offload, length) = (Offload::read(header).ok()?, frame.len());
    let buffer = buffers.take()?;
    let Some(room) = buffers.bytes_mut(buffer).get_mut(ROOM..ROOM + length) else {
        buffers.release(buffer);
        return None;
    };
    room.copy_from_slice(frame);
    Some(Frame { buffer, start: ROOM, length, offload })
}

/// The stamp that a part's control byte stands for.
fn stamp(control: u8) -> Encapsulation {
    let (label, flowcell) = (u16::from(control >> 2 & 1), u16::from(control >> 3 & 3));
    Encapsulation { label, flowcell, partial: control & 2 != 0 }
}

/// Frames of ports and of the peer through the edge: frames that go up are whole and have the view
/// that they were handed up with, and no buffer stays in use.
pub fn edge(bytes: &[u8]) {
    let up = |_: usize, frame: &Outgoing<'_>| {
        let flat: Vec<u8> = frame.pieces.iter().flat_map(|piece| piece.to_vec()).collect();
        assert_eq!(flat.len(), frame.length);
        assert_eq!(layers(parse(&flat)), layers(Some(frame.view)));
        assert_eq!(frame.offload.check(&frame.view, frame.length), Ok(()));
        if let (Some(layers), true) = (frame.view.tcp(), frame.offload.gso_size > 0) {
            let (mut one, mut offload) = (flat[..layers.end].to_vec(), frame.offload);
            (offload.gso, offload.gso_size) = Default::default();
            offload.fill(&mut one).expect("its checksum is partial");
            assert!(checksum::is_right(&one, layers));
        }
        Ok(())
    };
    ALL.with_borrow_mut(|buffers| {
        let (mut ends, mut now) = (Ends::new(), Time::from_us(1));
        for (control, part) in parts(bytes) {
            match control & 1 {
                0 => {
                    let Some(mut frame) = put(part, buffers) else { continue };
                    let view = parse(frame.bytes(buffers));
                    if let Some(view) = view
                        && frame.offload.check(&view, frame.length).is_ok()
                    {
                        let Ends { edge, carried } = &mut ends;
                        let _ = edge.send(now, buffers, &mut frame, &view, 0, carried);
                    }
                    buffers.release(frame.buffer);
                }
                _ => {
                    let Some((_, frame)) = split(part) else { continue };
                    ends.arrive(now, stamp(control), frame, buffers);
                }
            }
            if control & 32 != 0 {
                ends.turn(now, buffers, up);
                now += Time::from_us(1 << (control >> 6 << 2));
            }
            ends.edge.evict(now);
        }
        ends.turn(now, buffers, up);
        ends.edge.drain(now, buffers, up);
        assert_eq!(buffers.in_use(), 0);
    });
}

/// A port that swallows each frame.
fn port(name: &str, mtu: usize, vlans: Vlans, guard: Option<Guard>) -> Slot {
    let port = Pcap::open(None, None).expect("it opens no file");
    let slot = Slot::new(name, Some(Port::Pcap(Box::new(port))), mtu);
    Slot { vlans, guard, ..slot }
}

/// Ports of all kinds, one of them with a shim, and a peer.
fn node() -> Node {
    let trunk = Value::List(vec!["10".into(), "20-21".into()]);
    let trunk = VlanSet::from_value(&trunk).expect("a list of VLANs");
    let guard = Guard::new(vec![Mac([2, 0, 0, 0, 0, 1])], vec!["10.0.0.1".parse().expect("it")]);
    let mut node = Node::default();
    node.slots = vec![
        port("all", 1500, Vlans::All, None),
        port("access", 700, Vlans::Access(10), None),
        port("trunk", 9000, Vlans::Trunk(trunk), None),
        port("guarded", 1500, Vlans::All, Some(guard)),
    ];
    node.shims = vec![Some(Box::default()), Some(Box::default())];
    node.loops.own = 7;
    (0..4).for_each(|_| node.table.add_port(64, &[]));
    node.table.add_peer(64);
    node
}

/// Frames of ports and of the peer through a switch: no buffer stays in use.
pub fn switch(bytes: &[u8]) {
    ALL.with_borrow_mut(|buffers| {
        let (mut node, mut ends, mut now) = (node(), Ends::new(), Time::from_us(1));
        for (control, part) in parts(bytes) {
            match control & 1 {
                0 => {
                    let Some(frame) = put(part, buffers) else { continue };
                    let (port, sender) = (usize::from(control >> 1 & 3), Sender::Elsewhere);
                    let _ =
                        node.forward(&mut Round::new(now, buffers, &mut ends), port, frame, sender);
                    buffers.release(frame.buffer);
                }
                _ => {
                    let Some((_, frame)) = split(part) else { continue };
                    ends.arrive(now, stamp(control), frame, buffers);
                }
            }
            ends.turn(now, buffers, |peer, frame| node.forward_from_peer(now, peer, frame));
            node.serve_shims(&mut Round::new(now, buffers, &mut ends));
            node.drain(now);
            node.take_answers();
            for seen in node.take_probes() {
                node.judge_probe(now, seen, &["peer".into()]);
            }
            if control & 32 != 0 {
                now += Time::from_us(1 << (control >> 6 << 2));
            }
        }
        ends.carried.0.clear();
        ends.edge.drain(now, buffers, |peer, frame| node.forward_from_peer(now, peer, frame));
        assert_eq!(buffers.in_use(), 0);
    });
}
