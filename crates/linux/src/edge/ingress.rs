//! Ingress: what comes from peers passes the host node, and goes up as super-segments in order,
//! as far as receive offload restores it.
//!
//! Packets wait in the node's ring until the driver's round ends, and are polled then. Their time
//! is that at which they left the fabric, and waits for a missing packet end only up to the time by
//! which all that has arrived was looked at: else a loop that was held up would look like
//! reordering, or hide it.
//!
//! A partial checksum means that the sender's kernel made the packet and that what carried it
//! vouches for its bytes. A packet with a whole one merges only after that was found right, since a
//! super-segment claims that it is.
//!
//! Invariant: every packet that comes in goes up once, or is counted as dropped; a
//! flow's state is its own, whatever labels and flowcells another one claims.

use super::egress::FLOWS_MAX;
use super::link::{Arrived, Driver, Link};
use super::{ClassOf, Edge};
use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Drop;
use crate::dataplane::flow::FlowKey;
use crate::dataplane::frame::checksum::{Sum, pseudo};
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Inner, Layers, Offload, Version, View, coalesce};
use crate::dataplane::held::Held;
use crate::dataplane::metadata;
use crate::dataplane::outgoing::Outgoing;
use crate::dataplane::packet::Packet as Bytes;
use crate::dataplane::port::PIECES_MAX;
use crate::dataplane::port::shared::Sender;
use crate::encapsulation::Encapsulation;
use millpond_core::flow_table::FlowTable;
use millpond_core::host::{Call, Expecting, Flows, KernelReceiving};
use millpond_core::packet::{Body, Kind, NONE, Side, Words};
use millpond_core::{FlowId, HostId, Packet, PacketId, Time};
use std::io::IoSlice;

/// A connection that is silent for longer is forgotten.
const IDLE: Time = Time::from_s(30);
/// Connections that one call of [`Kernel::forget_idle`] looks at.
const STEPS: usize = 256;

/// The kernel's connections: those whose order is restored, and the class of a packet's traffic,
/// which stands in the place of the connection's slot ([`Packet::peer`]).
pub(super) struct Kernel {
    is_ordered: bool,
    flows: FlowTable<FlowId, KernelReceiving>,
    class_of: Option<ClassOf>,
}

impl Kernel {
    pub(super) fn new(is_ordered: bool, class_of: Option<ClassOf>) -> Kernel {
        Kernel { is_ordered, flows: FlowTable::default(), class_of }
    }

    pub(super) fn class_of(&self, held: &Held) -> Option<u16> {
        self.class_of.as_ref().and_then(|class_of| class_of(held))
    }

    /// A packet of TCP has come: its place in its stream, if order is restored.
    fn place(&mut self, now: Time, packet: &mut Packet, seq: u32) {
        let flow = packet.flow;
        let known = self.flows.find(flow, flow);
        match packet.kind() {
            // Its first byte of data follows. An older one of the same ends is over.
            Kind::Syn | Kind::SynAck
                if known.is_none_or(|at| self.flows[at].kept() == 0) && self.has_room(known) =>
            {
                known.into_iter().for_each(|at| self.flows.remove(at));
                let opened = KernelReceiving::new(now, seq.wrapping_add(1));
                self.flows.insert(flow, flow, opened);
            }
            Kind::Data if packet.payload > 0 && self.has_room(known) => {
                let new = || KernelReceiving::new(now, seq);
                let at = known.unwrap_or_else(|| self.flows.insert(flow, flow, new()));
                self.flows[at].arrived(now, packet);
            }
            _ => {}
        }
    }

    fn has_room(&self, known: Option<u32>) -> bool {
        self.is_ordered && (known.is_some() || self.flows.len() < FLOWS_MAX)
    }

    /// A packet goes up.
    fn takes(&mut self, packet: &Packet) {
        let flow = packet.flow;
        let is_placed = self.is_ordered && packet.payload > 0;
        if let Some(at) = self.flows.find(flow, flow).filter(|_| is_placed) {
            let end = packet.seq() + u64::from(packet.payload);
            self.flows[at].next = self.flows[at].next.max(end);
        }
    }

    /// Forgets some of the connections that are idle. One that holds packets is not.
    pub(super) fn forget_idle(&mut self, now: Time) {
        let is_idle =
            |flow: &KernelReceiving| flow.kept() == 0 && now.saturating_sub(flow.last) > IDLE;
        self.flows.evict(STEPS, is_idle);
    }
}

impl Flows for Kernel {
    fn class(&self, packet: &Packet) -> Option<u16> {
        (packet.peer != NONE).then_some(packet.peer as u16)
    }
    fn expecting(&mut self, packet: &Packet) -> Option<Expecting<'_>> {
        if packet.payload == 0 { None } else { self.receiving(packet.flow) }
    }
    fn receiving(&mut self, flow: FlowId) -> Option<Expecting<'_>> {
        let at = self.flows.find(flow, flow)?;
        let KernelReceiving { next, ingress, .. } = &mut self.flows[at];
        Some(Expecting { next: *next, ingress })
    }
}

impl Edge {
    /// Takes a packet that has left the fabric at `at`, and its headers, if that is a
    /// frame's. [`Edge::flush`] follows when the round ends.
    pub fn arrive(
        &mut self,
        at: Time,
        peer: usize,
        stamp: Encapsulation,
        mut bytes: Bytes,
        view: Option<View>,
        buffers: &mut Buffers,
    ) {
        let Some(view) = view.filter(|view| !stamp.partial || view.layers().is_some()) else {
            bytes.end(buffers);
            return self.counters.drop(Drop::BadInner);
        };
        let header = bytes.header.bytes();
        let key = view.tcp().map(|layers| FlowKey::of(header, layers, view.vlan, peer as u16));
        let layers = view.tcp().map_or(0, |layers| layers.end - layers.payload);
        let packet = Packet {
            body: Body::Data { seq: 0, slot: NONE, flowcell: stamp.flowcell },
            flow: key.map_or(0, |key| key.hash(&self.driver.keys)),
            src: peer as HostId,
            dst: NONE,
            peer: NONE,
            entropy: stamp.label.into(),
            size: bytes.length() as u16,
            payload: layers as u16,
            class: metadata::class(header, &view),
            ..Packet::default()
        };
        let offload = match view.layers().filter(|_| stamp.partial) {
            Some(layers) => Offload::of(&Layers { end: layers.payload, ..*layers }, 0),
            None => Offload::default(),
        };
        self.receive(at, at, packet, Held { bytes, view, offload }, buffers);
    }

    /// The same with a packet that is described, at `now` by the driver's clock.
    pub fn receive(
        &mut self,
        now: Time,
        at: Time,
        packet: Packet,
        held: Held,
        buffers: &mut Buffers,
    ) {
        self.driver.clock = now;
        self.call_switch(at, buffers);
        self.counters.receive(held.bytes.length());
        let header = held.bytes.header.bytes();
        // Padding behind the segment would become payload if it was merged.
        let segment = held.view.tcp().copied().filter(|l| {
            l.end == held.bytes.length() && l.payload == header.len() && is_header_right(header, l)
        });
        let is_partial = held.offload.partial;
        let is_trusted =
            is_partial || segment.is_some_and(|layers| is_right(&held.bytes, &layers, buffers));
        let flow = segment.map(|l| FlowKey::of(header, &l, held.view.vlan, packet.src as u16));
        let mut packet = Packet { stamp: at, side: Side::default(), ..packet };
        packet.peer = self.kernel.class_of(&held).map_or(packet.peer, u32::from);
        if let Some(layers) = held.view.tcp() {
            self.kernel.place(at, &mut packet, tcp::seq(header, layers));
        }
        let Held { bytes, view, offload } = held;
        let arrived = Arrived { bytes, view, offload, is_trusted, flow, next: NONE, mss: 0 };
        let id = self.driver.insert(packet, Some(arrived));
        let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
        self.host.on_arrival(at, id, &mut link);
    }

    /// Takes a packet of another host's virtual switch, with its records.
    pub fn receive_words(&mut self, at: Time, packet: Packet, words: Words, buffers: &mut Buffers) {
        self.call_switch(at, buffers);
        let mut packet = Packet { side: Side::default(), ..packet };
        self.driver.packets.attach(&mut packet, words);
        let id = self.driver.insert(packet, None);
        let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
        self.host.on_arrival(at, id, &mut link);
    }

    /// Makes the calls of the virtual switch that are due by then, each at its time.
    fn call_switch(&mut self, until: Time, buffers: &mut Buffers) {
        while let Some((at, call)) = self.driver.due_of_switch(until) {
            let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
            let has_news = self.host.on_switch(at, call, &mut self.kernel, &mut link);
            if let Some(backlog) = self.backlog.as_mut().filter(|_| has_news) {
                self.host.settle(at, backlog);
            }
        }
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
        (self.driver.has_seen, self.driver.clock) = (has_seen, now);
        if self.driver.deadline().is_none_or(|due| due > now) {
            return;
        }
        self.call_switch(has_seen, buffers);
        for call in self.driver.due(now) {
            let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
            match call {
                Call::Poll(ring) => self.host.on_poll(now, ring, &mut link),
                Call::Held(ring) => self.host.on_held(now, ring, &mut link),
                Call::Order(flow) => self.host.on_order(now, flow, &mut self.kernel, &mut link),
                // Of limits, cores, a NIC's queue and endpoints, which are the kernel's.
                Call::Worked(_) | Call::Ready | Call::Release(_) | Call::Room(_) => {
                    debug_assert!(false, "{call:?} of a host that has nothing to call for");
                }
                Call::Switch(_) | Call::Application(_) | Call::Overlay => {}
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

    /// The flow that this packet ends, if it ends one.
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
            let Some(first) = self.host.hand_up(now, &mut self.kernel, &mut link) else { return };
            self.kernel.takes(&self.driver.packets[first]);
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
    let sender = Sender::Peer(peer as u16);
    let Some(layers) = whole else {
        let Arrived { bytes, view, offload, .. } = first;
        let pieces = [IoSlice::new(bytes.header.bytes()), IoSlice::new(bytes.payload(buffers))];
        let (view, offload, length) = (*view, *offload, bytes.length());
        return up(peer, &Outgoing { view, offload, pieces: &pieces, length, sender });
    };

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
    up(peer, &Outgoing { view, offload, pieces, length: end, sender })
}
