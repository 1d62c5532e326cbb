//! The driver as the host node sees it: [`HostWire`] over packets that have bytes.
//!
//! Invariant: a packet of the node and its bytes have one number, and end together.

use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Counters;
use crate::dataplane::flow::{FlowKey, Keys, merge_digest};
use crate::dataplane::frame::parse::{ETHERNET, tcp};
use crate::dataplane::frame::{Layers, Offload, Version, View};
use crate::dataplane::packet::Packet as Bytes;
use crate::edge::importance::{Shim, Verdict};
use millpond_core::counters::DropReason;
use millpond_core::edge::flowcell::{Opening, Rule};
use millpond_core::edge::gro::{Arrival, IpId, Released};
use millpond_core::edge::schedule::Order;
use millpond_core::host::{Call, HostWire, Labels, Received};
use millpond_core::packet::{Kind, NONE, Side, Words};
use millpond_core::{HostId, Packet, PacketId, Packets, Time};
use std::collections::VecDeque;

/// Of a node that labels nothing.
static UNUSED: Rule =
    Rule { opening: Opening::Bytes(u64::MAX), order: Order::RoundRobin, is_first: true };

/// A packet that has come from a peer.
pub(super) struct Arrived {
    pub(super) bytes: Bytes,
    pub(super) view: View,
    /// Its checksum is partial, or was found right: it may be taken for a partial one.
    pub(super) is_trusted: bool,
    /// Its flow, if it is a packet of TCP and nothing else, which may merge.
    pub(super) flow: Option<FlowKey>,
    /// The work that is still to be done to it.
    pub(super) offload: Offload,
    /// The next packet of its segment, or [`NONE`].
    pub(super) next: PacketId,
    /// Of a segment's first packet: the payload of each but the last.
    pub(super) mss: u32,
}

/// The state that drives the node, but for buffers.
#[derive(Default)]
pub(super) struct Driver {
    pub(super) packets: Packets,
    /// By a packet's number: those that have come.
    arrived: Vec<Option<Arrived>>,
    /// The calls that the node waits for.
    calls: Vec<(Time, Call)>,
    /// `None`: packets have no labels.
    pub(super) rule: Option<Rule>,
    pub(super) is_followed: bool,
    pub(super) labels: Vec<Vec<u16>>,
    pub(super) keys: Keys,
    /// Packets that the node has let out, in the order of their frames.
    pub(super) leaving: Vec<Packet>,
    /// Packets for other hosts' virtual switches, and their records.
    pub(super) words: VecDeque<(Packet, Words)>,
    /// Marks what the kernel sends, and looks at what it is sent.
    pub(super) shim: Option<Shim>,
    /// The driver's clock, which may be later than the arrival of a packet.
    pub(super) clock: Time,
    /// Bytes of the frames that were dropped.
    pub(super) dropped_bytes: u64,
    /// Until when all that has come was looked at.
    pub(super) has_seen: Time,
}

impl Driver {
    pub(super) fn new(rule: Option<Rule>, labels: Vec<Vec<u16>>, keys: Keys) -> Driver {
        Driver { rule, is_followed: true, labels, keys, ..Driver::default() }
    }

    /// Keeps a packet that has come.
    pub(super) fn insert(&mut self, packet: Packet, arrived: Option<Arrived>) -> PacketId {
        let id = self.packets.insert(packet);
        let at = id as usize;
        if self.arrived.len() <= at {
            self.arrived.resize_with(at + 1, || None);
        }
        self.arrived[at] = arrived;
        id
    }
    /// Lets it go, and gives its buffer back. In place: it has three hundred bytes.
    pub(super) fn end(&mut self, id: PacketId, buffers: &mut Buffers) {
        self.packets.remove(id);
        if let Some(slot) = self.arrived.get_mut(id as usize)
            && let Some(arrived) = slot
        {
            arrived.bytes.end(buffers);
            *slot = None;
        }
    }
    /// Ends all packets that have arrived.
    pub(super) fn end_all(&mut self, buffers: &mut Buffers) {
        self.arrived.drain(..).flatten().for_each(|mut arrived| arrived.bytes.end(buffers));
    }

    #[inline]
    pub(super) fn arrived(&self, id: PacketId) -> Option<&Arrived> {
        self.arrived.get(id as usize)?.as_ref()
    }
    fn arrived_mut(&mut self, id: PacketId) -> Option<&mut Arrived> {
        self.arrived.get_mut(id as usize)?.as_mut()
    }
    /// The packets of the segment that begins with this one.
    pub(super) fn segment(&self, first: PacketId) -> impl Iterator<Item = PacketId> {
        std::iter::successors(Some(first), |id| {
            self.arrived(*id).map(|it| it.next).filter(|id| *id != NONE)
        })
    }
    /// The next call of the virtual switch that is due by then; of one time that which was asked
    /// for first.
    pub(super) fn due_of_switch(&mut self, until: Time) -> Option<(Time, Call)> {
        let own = (0..self.calls.len()).filter(|place| is_switchs(self.calls[*place].1));
        let next = own.min_by_key(|place| self.calls[*place].0)?;
        (self.calls[next].0 <= until).then(|| self.calls.remove(next))
    }
    /// The other calls that are due, polls first: packets that have come count as looked at, and
    /// end waits.
    pub(super) fn due(&mut self, now: Time) -> Vec<Call> {
        let mut due: Vec<Call> = self
            .calls
            .extract_if(.., |(at, call)| *at <= now && !is_switchs(*call))
            .map(|(_, call)| call)
            .collect();
        due.sort_by_key(|call| !matches!(call, Call::Poll(_)));
        due
    }
    /// Packets that have come and are here, and their bytes.
    pub(super) fn kept(&self) -> (u64, u64) {
        let lengths = self.arrived.iter().flatten().map(|it| it.bytes.length() as u64);
        lengths.fold((0, 0), |(packets, bytes), length| (packets + 1, bytes + length))
    }
    pub(super) fn deadline(&self) -> Option<Time> {
        self.calls.iter().map(|(at, _)| *at).min()
    }
}

/// Whether a call is the virtual switch's, which has a time of its own.
fn is_switchs(call: Call) -> bool {
    matches!(call, Call::Switch(_) | Call::Application(_) | Call::Overlay)
}

/// The driver with the buffers that bytes lie in.
pub(super) struct Link<'a> {
    pub(super) driver: &'a mut Driver,
    pub(super) buffers: &'a mut Buffers,
    pub(super) counters: &'a mut Counters,
}

/// Whether a packet may be part of a segment: no IPv4 options, no IPv6 extensions.
fn is_plain(layers: &Layers) -> bool {
    layers.transport - layers.network == if layers.version == Version::V4 { 20 } else { 40 }
}

/// The identification that numbers an IPv4 packet.
fn identification(header: &[u8], layers: &Layers) -> IpId {
    let at = layers.network;
    match layers.version {
        Version::V4 => IpId::new(
            u16::from_be_bytes([header[at + 4], header[at + 5]]),
            header[at + 6] & 0x40 != 0,
        ),
        Version::V6 => IpId::NONE,
    }
}

impl HostWire for Link<'_> {
    type Flow = FlowKey;

    fn packets(&mut self) -> &mut Packets {
        &mut self.driver.packets
    }
    fn inject(&mut self, packet: Packet) -> PacketId {
        self.driver.packets.insert(packet)
    }
    fn transmit(&mut self, id: PacketId, _: Time) {
        let Driver { packets, leaving, words, .. } = &mut *self.driver;
        let packet = packets[id];
        if packet.kind() == Kind::Overlay {
            let records = packets.side::<Words>(&packet).copied().unwrap_or_default();
            words.push_back((Packet { side: Side::default(), ..packet }, records));
        } else {
            leaving.push(packet);
        }
        packets.remove(id);
    }
    fn leave(&mut self, packet: Packet, _: Time) {
        self.driver.leaving.push(packet);
    }
    fn departs(&mut self, _: &Packet, _: Time) {}
    fn call(&mut self, at: Time, call: Call) {
        self.driver.calls.push((at, call));
    }
    fn recall(&mut self, at: Time, call: Call) {
        self.driver.calls.retain(|asked| *asked != (at, call));
    }
    fn labels(&mut self, _: Time, _: HostId, peer: HostId) -> Labels<'_> {
        let Driver { rule, is_followed, labels, .. } = &*self.driver;
        let list = &labels[peer as usize];
        Labels { rule: rule.as_ref().unwrap_or(&UNUSED), is_followed: *is_followed, list }
    }
    fn arrived(&mut self, _: PacketId) {}
    /// The shim's look at a packet for the kernel. Its time is the driver's: the kernel answers
    /// after it.
    fn passes_up(&mut self, now: Time, id: PacketId) -> bool {
        let Driver { packets, arrived, shim, clock, .. } = &mut *self.driver;
        packets[id].stamp = now;
        let (Some(shim), Some(Some(arrived))) = (shim, arrived.get_mut(id as usize)) else {
            return true;
        };
        let Arrived { bytes, view, .. } = arrived;
        let is_consumed = shim.incoming(*clock, bytes, view, self.buffers) == Verdict::Swallow;
        if is_consumed {
            self.driver.end(id, self.buffers);
        }
        !is_consumed
    }
    fn headers(&mut self, id: PacketId) -> Option<Arrival<FlowKey>> {
        let Driver { packets, keys, .. } = &*self.driver;
        let arrived = self.driver.arrived(id)?;
        let flow = arrived.flow?;
        let (packet, header, layers) =
            (&packets[id], arrived.bytes.header.bytes(), arrived.view.tcp()?);
        Some(Arrival {
            flow,
            hash: packet.flow,
            path: packet.entropy,
            seq: tcp::seq(header, layers),
            len: packet.payload.into(),
            merge: merge_digest(header, layers, keys),
            headers: (layers.payload - layers.network) as u16,
            flowcell: packet.flowcell(),
            flags: tcp::flags(header, layers),
            id: identification(header, layers),
            is_whole: !is_plain(layers) || !arrived.is_trusted,
        })
    }
    /// The packets stay, and are linked: the frame that they become is made when they go up.
    fn merge(&mut self, released: Released<'_, FlowKey, PacketId>) -> Received {
        let mut bytes = 0;
        for (i, id) in released.packets.iter().enumerate() {
            bytes += u32::from(self.driver.packets[*id].size);
            let next = released.packets.get(i + 1).copied().unwrap_or(NONE);
            if let Some(arrived) = self.driver.arrived_mut(*id) {
                (arrived.next, arrived.mss) = (next, released.mss);
            }
        }
        Received { id: released.packets[0], packets: released.packets.len() as u32, bytes }
    }
    fn came(&mut self, now: Time, id: PacketId) -> Time {
        self.driver.packets[id].stamp.min(now)
    }
    fn has_seen(&self, now: Time) -> Time {
        self.driver.has_seen.min(now)
    }
    fn discard(&mut self, id: PacketId, reason: DropReason) {
        self.counters.discard(reason);
        let size = u64::from(self.driver.packets[id].size);
        let length = self.driver.arrived(id).map(|arrived| arrived.bytes.length() as u64);
        self.driver.dropped_bytes += length.unwrap_or(ETHERNET as u64 + size);
        self.driver.end(id, self.buffers);
    }
    fn discard_received(&mut self, received: Received, reason: DropReason) {
        let segment: Vec<PacketId> = self.driver.segment(received.id).collect();
        segment.into_iter().for_each(|id| self.discard(id, reason));
    }
}
