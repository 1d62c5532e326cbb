//! Merges what comes from peers, and hands it to the switch as super-segments in order, as far as the receive offload restores it.
//!
//! Time is when a packet left the fabric, not when it is looked at: else a poll loop that was held up would look like reordering. For
//! the same reason waits end only after all that has arrived was looked at.
//!
//! A partial checksum says that the sender's kernel made the packet and that what carried it vouches for its bytes. A packet with
//! a whole one merges only after that was found right, since a super-segment says that it is.
//!
//! Invariant: every packet that comes in goes to the switch once, or is counted as dropped; a flow's state is its own, whatever
//! labels and flowcells another one claims.

use super::flow::{FlowKey, Keys, merge_digest};
use super::packet::Packet;
use crate::encapsulation::Encapsulation;
use crate::frame::checksum::pseudo;
use crate::frame::parse::tcp;
use crate::frame::{Inner, Layers, Offload, Version, View, coalesce, parse_head};
use crate::port::PIECES_MAX;
use crate::switch::buffers::Buffers;
use crate::switch::counters::Drop;
use crate::switch::node::{Node, Outgoing};
use millpond_core::Time;
use millpond_core::edge::gro::{self, Arrival, OffloadParams, Released};
use std::io::IoSlice;

/// A packet that may merge.
struct Held {
    packet: Packet,
    view: View,
    layers: Layers,
    /// Whether its checksum may be taken for a partial one.
    trusted: bool,
}

/// A packet that has come.
struct Arrived {
    at: Time,
    peer: usize,
    stamp: Encapsulation,
    packet: Packet,
    view: View,
}

/// Held packets by number.
#[derive(Default)]
struct Packets {
    slots: Vec<Option<Held>>,
    free: Vec<u32>,
}

impl Packets {
    #[inline]
    fn insert(&mut self, held: Held) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = Some(held);
                id
            }
            None => {
                self.slots.push(Some(held));
                self.slots.len() as u32 - 1
            }
        }
    }
    #[inline]
    fn get(&self, id: u32) -> &Held {
        self.slots[id as usize].as_ref().expect("a number that the offload has was inserted and not removed")
    }
    #[inline]
    fn remove(&mut self, id: u32) -> Option<Held> {
        let held = self.slots[id as usize].take();
        self.free.push(id);
        held
    }
}

/// The receiving half of an edge.
pub struct Receiver {
    offload: gro::Offload<FlowKey, u32>,
    packets: Packets,
    keys: Keys,
    /// Why frames went no further than this.
    pub dropped: crate::switch::counters::Counters,
}

impl Receiver {
    /// With this receive offload.
    pub fn new(params: &OffloadParams) -> Receiver {
        Receiver {
            offload: gro::Offload::new(params),
            packets: Packets::default(),
            keys: Keys::default(),
            dropped: Default::default(),
        }
    }

    /// A packet has arrived at `at`.
    #[inline]
    pub fn arrive(
        &mut self,
        at: Time,
        peer: usize,
        stamp: Encapsulation,
        packet: Packet,
        buffers: &mut Buffers,
        node: &mut Node,
    ) {
        let Some(view) = parse_head(packet.header.bytes(), packet.length()) else {
            packet.end(buffers);
            return self.dropped.drop(Drop::BadInner);
        };
        self.dropped.received += 1;
        self.dropped.received_bytes += packet.length() as u64;
        let arrived = Arrived { at, peer, stamp, packet, view };
        match view.tcp() {
            // Padding behind the segment would become payload if it was merged.
            Some(layers)
                if layers.end == arrived.packet.length() && layers.payload == arrived.packet.header.bytes().len() =>
            {
                self.merge(arrived, *layers, buffers, node);
            }
            _ => self.pass(arrived, buffers, node),
        }
    }

    fn merge(&mut self, arrived: Arrived, layers: Layers, buffers: &mut Buffers, node: &mut Node) {
        let Arrived { at, peer, stamp, packet, view } = arrived;
        let header = packet.header.bytes();
        let flow = FlowKey::of(header, &layers, peer as u16);
        let plain = layers.transport - layers.network == if layers.version == Version::V4 { 20 } else { 40 };
        let trusted = stamp.partial || is_right(&packet, &layers, buffers);
        let arrival = Arrival {
            flow,
            hash: flow.hash(&self.keys),
            path: stamp.label.into(),
            seq: tcp::seq(header, &layers),
            len: (layers.end - layers.payload) as u32,
            merge: merge_digest(header, &layers, &self.keys),
            headers: (layers.payload - layers.network) as u16,
            flowcell: stamp.flowcell,
            flags: tcp::flags(header, &layers),
            is_whole: !plain || !trusted,
        };
        let id = self.packets.insert(Held { packet, view, layers, trusted });
        let Receiver { offload, packets, dropped, .. } = self;
        offload.receive(at, &arrival, id, &mut |released| {
            if let Err(reason) = push(at, released, packets, buffers, node) {
                dropped.drop(reason);
            }
        });
    }

    /// Hands over what does not merge.
    fn pass(&mut self, arrived: Arrived, buffers: &mut Buffers, node: &mut Node) {
        let Arrived { at, peer, stamp, packet, view } = arrived;
        let offload = match (stamp.partial, view.layers()) {
            (true, Some(layers)) => Offload::of(&Layers { end: layers.payload, ..*layers }, 0),
            (true, None) => {
                packet.end(buffers);
                return self.dropped.drop(Drop::BadInner);
            }
            (false, _) => Offload::default(),
        };
        if let Err(reason) = single(at, peer, &packet, view, offload, buffers, node) {
            self.dropped.drop(reason);
        }
        packet.end(buffers);
    }

    /// A poll has ended; `now` is no later than what has not been looked at yet.
    #[inline]
    pub fn flush(&mut self, now: Time, buffers: &mut Buffers, node: &mut Node) {
        let Receiver { offload, packets, dropped, .. } = self;
        offload.flush(now, &mut |released| {
            if let Err(reason) = push(now, released, packets, buffers, node) {
                dropped.drop(reason);
            }
        });
    }
    /// When [`Receiver::flush`] is due without a packet.
    pub fn deadline(&mut self) -> Option<Time> {
        self.offload.deadline()
    }
    /// Forgets some of the flows that are idle.
    pub fn evict(&mut self, now: Time) {
        self.offload.evict(now);
    }
    /// What the receive offload has counted.
    pub fn counters(&self) -> &gro::Counters {
        self.offload.counters()
    }
    /// Hands over everything.
    pub fn drain(&mut self, now: Time, buffers: &mut Buffers, node: &mut Node) {
        let Receiver { offload, packets, dropped, .. } = self;
        offload.drain(&mut |released| {
            if let Err(reason) = push(now, released, packets, buffers, node) {
                dropped.drop(reason);
            }
        });
    }
}

fn is_right(packet: &Packet, layers: &Layers, buffers: &Buffers) -> bool {
    let header = packet.header.bytes();
    let sum = pseudo(header, layers, layers.end - layers.transport);
    sum.bytes(&header[layers.transport..]).bytes(packet.payload(buffers)).fold() == 0xffff
}

fn single(
    at: Time,
    peer: usize,
    packet: &Packet,
    view: View,
    offload: Offload,
    buffers: &Buffers,
    node: &mut Node,
) -> Result<(), Drop> {
    let pieces = [IoSlice::new(packet.header.bytes()), IoSlice::new(packet.payload(buffers))];
    node.from_peer(at, peer, &Outgoing { view, offload, pieces: &pieces, length: packet.length() })
}

/// Hands a released segment to the switch, in as many frames as it takes.
fn push(
    now: Time,
    released: Released<'_, FlowKey, u32>,
    packets: &mut Packets,
    buffers: &mut Buffers,
    node: &mut Node,
) -> Result<(), Drop> {
    let mut result = Ok(());
    let peer = usize::from(released.flow.peer());
    for part in released.packets.chunks(PIECES_MAX - 1) {
        let sent = match part {
            [id] if !packets.get(*id).trusted => {
                let held = packets.get(*id);
                single(now, peer, &held.packet, held.view, Offload::default(), buffers, node)
            }
            _ => merged(now, peer, part, released.mss as usize, packets, buffers, node),
        };
        result = result.and(sent);
        for id in part {
            if let Some(held) = packets.remove(*id) {
                held.packet.end(buffers);
            }
        }
    }
    result
}

/// One frame of several packets, or of one whose checksum is partial.
fn merged(
    now: Time,
    peer: usize,
    part: &[u32],
    mss: usize,
    packets: &Packets,
    buffers: &Buffers,
    node: &mut Node,
) -> Result<(), Drop> {
    let first = packets.get(part[0]);
    let mut header = first.packet.header;
    let (mut payload, mut flags) = (0, 0);
    for id in part {
        let held = packets.get(*id);
        payload += held.layers.end - held.layers.payload;
        flags |= tcp::flags(held.packet.header.bytes(), &held.layers);
    }
    let offload = coalesce(header.bytes_mut(), &first.layers, payload, mss.max(1), flags);
    let end = first.layers.payload + payload;
    let view = View { inner: Inner::Transport(Layers { end, ..first.layers }), ..first.view };
    let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
    pieces[0] = IoSlice::new(header.bytes());
    for (piece, id) in pieces[1..].iter_mut().zip(part) {
        *piece = IoSlice::new(packets.get(*id).packet.payload(buffers));
    }
    node.from_peer(now, peer, &Outgoing { view, offload, pieces: &pieces[..=part.len()], length: end })
}
