//! Ingress: what comes from peers passes the host node, and goes up as super-segments in order,
//! as far as receive offload restores it.
//!
//! Packets wait in the node's ring until the driver's round ends, and are polled then. Their time
//! is that at which they left the fabric, and waits for a missing packet end only up to the time by
//! which all that has arrived was looked at: else a loop that was held up would look like
//! reordering, or hide it.
//!
//! A partial checksum says that the sender's kernel made the packet and that what carried it
//! vouches for its bytes. A packet with a whole one merges only after that was found right, since a
//! super-segment says that it is.
//!
//! Invariant: every packet that comes in goes up once, or is counted as dropped; a
//! flow's state is its own, whatever labels and flowcells another one claims.

use super::Edge;
use super::link::{Arrived, Driver, Link};
use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Drop;
use crate::dataplane::flow::FlowKey;
use crate::dataplane::frame::checksum::{Sum, pseudo};
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Inner, Layers, Offload, Version, View, coalesce};
use crate::dataplane::metadata;
use crate::dataplane::outgoing::Outgoing;
use crate::dataplane::packet::Packet as Bytes;
use crate::dataplane::port::PIECES_MAX;
use crate::dataplane::port::shared::Sender;
use crate::encapsulation::Encapsulation;
use millpond_core::host::{Call, Expecting, Flows};
use millpond_core::packet::{Body, NONE};
use millpond_core::{FlowId, HostId, Packet, PacketId, Time};
use std::io::IoSlice;

/// Connections end in the kernel: the node knows none.
struct Kernel;

impl Flows for Kernel {
    fn class(&self, _: &Packet) -> Option<u16> {
        None
    }
    fn expecting(&mut self, _: &Packet) -> Option<Expecting<'_>> {
        None
    }
    fn receiving(&mut self, _: FlowId) -> Option<Expecting<'_>> {
        None
    }
}

impl Edge {
    /// Takes a packet that has left the fabric at `at`, and what its header says, if that is a
    /// frame's. [`Edge::flush`] follows when the round ends.
    pub fn arrive(
        &mut self,
        at: Time,
        peer: usize,
        stamp: Encapsulation,
        (mut bytes, view): (Bytes, Option<View>),
        buffers: &mut Buffers,
    ) {
        let Some(view) = view.filter(|view| !stamp.partial || view.layers().is_some()) else {
            bytes.end(buffers);
            return self.counters.drop(Drop::BadInner);
        };
        self.counters.received += 1;
        self.counters.received_bytes += bytes.length() as u64;
        let header = bytes.header.bytes();
        // Padding behind the segment would become payload if it was merged.
        let segment = view.tcp().copied().filter(|l| {
            l.end == bytes.length()
                && l.payload == bytes.header.bytes().len()
                && is_header_right(header, l)
        });
        let is_trusted =
            stamp.partial || segment.is_some_and(|layers| is_right(&bytes, &layers, buffers));
        let flow = segment.map(|l| FlowKey::of(header, &l, view.vlan, peer as u16));
        let packet = Packet {
            body: Body::Data {
                seq: segment.map_or(0, |layers| tcp::seq(header, &layers).into()),
                slot: NONE,
                flowcell: stamp.flowcell,
            },
            stamp: at,
            flow: flow.map_or(0, |flow| flow.hash(&self.driver.keys)),
            src: peer as HostId,
            dst: NONE,
            entropy: stamp.label.into(),
            size: bytes.length() as u16,
            payload: segment.map_or(0, |layers| (layers.end - layers.payload) as u16),
            class: metadata::class(header, &view),
            ..Packet::default()
        };
        let is_partial = stamp.partial;
        let arrived = Arrived { bytes, view, is_trusted, flow, is_partial, next: NONE, mss: 0 };
        let id = self.driver.insert(packet, arrived);
        let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
        self.host.on_arrival(at, id, &mut link);
    }

    /// A round has ended; `has_seen` is no later than what has not been looked at yet. `up` takes
    /// the frames that leave, each with the peer that it came from.
    #[inline]
    pub fn flush(
        &mut self,
        now: Time,
        has_seen: Time,
        buffers: &mut Buffers,
        up: impl FnMut(usize, &Outgoing<'_>) -> Result<(), Drop>,
    ) {
        self.driver.has_seen = has_seen;
        if self.driver.deadline().is_none_or(|due| due > now) {
            return;
        }
        for call in self.driver.due(now) {
            let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
            match call {
                Call::Poll(ring) => self.host.on_poll(now, ring, &mut link),
                Call::Held(ring) => self.host.on_held(now, ring, &mut link),
                Call::Worked(core) => self.host.on_worked(core),
                // Of limits, a NIC's queue, ordering buffers, endpoints and the simulator's virtual
                // switch: those are the kernel's, or this switch itself.
                Call::Ready
                | Call::Release(_)
                | Call::Order(_)
                | Call::Room(_)
                | Call::Switch(_)
                | Call::Application(_)
                | Call::Overlay => {
                    debug_assert!(false, "{call:?} of a host that has nothing to call for");
                }
            }
        }
        self.hand_up(now, buffers, up);
    }
    /// When [`Edge::flush`] is due without a packet.
    pub fn deadline(&self) -> Option<Time> {
        self.driver.deadline()
    }
    /// Hands `up` everything.
    pub fn drain(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        up: impl FnMut(usize, &Outgoing<'_>) -> Result<(), Drop>,
    ) {
        self.driver.has_seen = now;
        let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
        self.host.drain(now, &mut link);
        self.hand_up(now, buffers, up);
    }

    /// The flow that this packet says is over, if it says so.
    fn ended(&self, id: PacketId) -> Option<(u32, FlowKey)> {
        let arrived = self.driver.arrived(id)?;
        let (header, layers) = (arrived.bytes.header.bytes(), arrived.view.tcp()?);
        let packet = &self.driver.packets[id];
        let is_over = tcp::flags(header, layers) & (tcp::FIN | tcp::RST) != 0;
        is_over.then(|| {
            (packet.flow, FlowKey::of(header, layers, arrived.view.vlan, packet.src as u16))
        })
    }

    /// Hands `up` the frames that the node lets through, each with its peer.
    fn hand_up(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        mut up: impl FnMut(usize, &Outgoing<'_>) -> Result<(), Drop>,
    ) {
        loop {
            let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
            let Some(first) = self.host.hand_up(now, &mut Kernel, &mut link) else { return };
            self.segment.clear();
            self.segment.extend(self.driver.segment(first));
            // In as many frames as a port takes, which may take the tag out of the headers.
            for part in self.segment.chunks(PIECES_MAX - 2) {
                if let Err(reason) = deliver(part, &self.driver, buffers, &mut up) {
                    self.counters.drop(reason);
                }
            }
            if let Some((hash, key)) = self.segment.last().and_then(|last| self.ended(*last)) {
                self.host.over(hash, key);
            }
            for id in &self.segment {
                self.driver.end(*id, buffers);
            }
        }
    }
}

/// Whether IPv4's checksum of its header is right: a packet whose is wrong stays as it is, since
/// what it merged into would have a right one.
fn is_header_right(header: &[u8], layers: &Layers) -> bool {
    layers.version == Version::V6
        || Sum::default().bytes(&header[layers.network..layers.transport]).fold() == 0xffff
}

fn is_right(bytes: &Bytes, layers: &Layers, buffers: &Buffers) -> bool {
    let header = bytes.header.bytes();
    let sum = pseudo(header, layers, layers.end - layers.transport);
    sum.bytes(&header[layers.transport..]).bytes(bytes.payload(buffers)).fold() == 0xffff
}

/// Hands over packets as one frame.
fn deliver(
    part: &[PacketId],
    driver: &Driver,
    buffers: &Buffers,
    up: &mut impl FnMut(usize, &Outgoing<'_>) -> Result<(), Drop>,
) -> Result<(), Drop> {
    let Some(first) = part.first().and_then(|id| driver.arrived(*id)) else { return Ok(()) };
    let peer = driver.packets[part[0]].src as usize;
    let whole =
        first.view.tcp().filter(|_| first.flow.is_some() && (first.is_trusted || part.len() > 1));
    let Some(layers) = whole else { return single(peer, first, buffers, up) };

    let mut header = first.bytes.header;
    let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
    let (mut payload, mut flags) = (0, 0);
    for (piece, id) in pieces[1..].iter_mut().zip(part) {
        let Some(arrived) = driver.arrived(*id) else { continue };
        let bytes = arrived.bytes.payload(buffers);
        payload += bytes.len();
        flags |=
            arrived.view.tcp().map_or(0, |layers| tcp::flags(arrived.bytes.header.bytes(), layers));
        *piece = IoSlice::new(bytes);
    }
    let offload = coalesce(header.bytes_mut(), layers, payload, first.mss.max(1) as usize, flags);
    let end = layers.payload + payload;
    let view = View { inner: Inner::Transport(Layers { end, ..*layers }), ..first.view };
    pieces[0] = IoSlice::new(header.bytes());
    let pieces = &pieces[..=part.len()];
    up(peer, &Outgoing { view, offload, pieces, length: end, sender: Sender::Peer(peer as u16) })
}

/// A packet as it came.
fn single(
    peer: usize,
    arrived: &Arrived,
    buffers: &Buffers,
    up: &mut impl FnMut(usize, &Outgoing<'_>) -> Result<(), Drop>,
) -> Result<(), Drop> {
    let Arrived { bytes, view, .. } = arrived;
    let offload = match view.layers().filter(|_| arrived.is_partial) {
        Some(layers) => Offload::of(&Layers { end: layers.payload, ..*layers }, 0),
        None => Offload::default(),
    };
    let pieces = [IoSlice::new(bytes.header.bytes()), IoSlice::new(bytes.payload(buffers))];
    let length = bytes.length();
    up(
        peer,
        &Outgoing {
            view: *view,
            offload,
            pieces: &pieces,
            length,
            sender: Sender::Peer(peer as u16),
        },
    )
}
