//! The driver as the host node sees it: [`HostWire`] over packets that have bytes.
//!
//! Invariant: a packet of the node and its bytes have one number, and end together.

use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Counters;
use crate::dataplane::flow::{FlowKey, Keys, merge_digest};
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Layers, Version, View};
use crate::dataplane::packet::Packet as Bytes;
use millpond_core::counters::DropReason;
use millpond_core::edge::flowcell::Rule;
use millpond_core::edge::gro::{Arrival, IpId, Released};
use millpond_core::host::{Call, HostWire, Labels, Received};
use millpond_core::packet::NONE;
use millpond_core::{HostId, Packet, PacketId, Packets, Time};

/// A packet that has come from a peer.
pub(super) struct Arrived {
    pub(super) bytes: Bytes,
    pub(super) view: View,
    /// Its checksum is partial, or was found right: it may be taken for a partial one.
    pub(super) is_trusted: bool,
    /// Its flow, if it is a packet of TCP and nothing else, which may merge.
    pub(super) flow: Option<FlowKey>,
    /// The sender has left its checksum partial.
    pub(super) is_partial: bool,
    /// The next packet of its segment, or [`NONE`].
    pub(super) next: PacketId,
    /// Of a segment's first packet: the payload of each but the last.
    pub(super) mss: u32,
}

/// The state that drives the node, but for buffers.
pub(super) struct Driver {
    pub(super) packets: Packets,
    /// By a packet's number: those that have come.
    arrived: Vec<Option<Arrived>>,
    /// The calls that the node waits for.
    calls: Vec<(Time, Call)>,
    pub(super) rule: Rule,
    /// By peer.
    pub(super) labels: Vec<Vec<u16>>,
    pub(super) keys: Keys,
    /// The bytes of the packets that the node makes of a segment. They stay where they are: nothing
    /// of this node holds back or drops what leaves, so it lets them out in this order.
    pub(super) cut: Vec<Bytes>,
    /// Packets that the node has let out.
    pub(super) leaving: Vec<PacketId>,
    /// Until when all that has come was looked at.
    pub(super) has_seen: Time,
}

impl Driver {
    pub(super) fn new(rule: Rule, labels: Vec<Vec<u16>>, keys: Keys) -> Driver {
        Driver {
            packets: Packets::default(),
            arrived: Vec::new(),
            calls: Vec::new(),
            rule,
            labels,
            keys,
            cut: Vec::new(),
            leaving: Vec::new(),
            has_seen: Time::ZERO,
        }
    }

    /// Keeps a packet that has come.
    pub(super) fn insert(&mut self, packet: Packet, arrived: Arrived) -> PacketId {
        let id = self.packets.insert(packet);
        let at = id as usize;
        if self.arrived.len() <= at {
            self.arrived.resize_with(at + 1, || None);
        }
        self.arrived[at] = Some(arrived);
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
    /// The packet that has come under this number.
    /// Forgets packets on their way out, whose buffers their frame has taken back.
    pub(super) fn forget_leaving(&mut self) {
        self.cut.clear();
        for id in self.leaving.drain(..) {
            self.packets.remove(id);
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
    /// The calls that are due, polls first: packets that have come count as looked at, and end
    /// waits.
    pub(super) fn due(&mut self, now: Time) -> Vec<Call> {
        let mut due: Vec<Call> =
            self.calls.extract_if(.., |(at, _)| *at <= now).map(|(_, call)| call).collect();
        due.sort_by_key(|call| !matches!(call, Call::Poll(_)));
        due
    }
    /// When the next is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.calls.iter().map(|(at, _)| *at).min()
    }
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
        self.driver.leaving.push(id);
    }
    fn departs(&mut self, _: &Packet, _: Time) {}
    fn call(&mut self, at: Time, call: Call) {
        self.driver.calls.push((at, call));
    }
    fn recall(&mut self, at: Time, call: Call) {
        self.driver.calls.retain(|asked| *asked != (at, call));
    }
    fn labels(&mut self, _: Time, _: HostId, peer: HostId) -> Labels<'_> {
        Labels {
            rule: &self.driver.rule,
            is_followed: true,
            list: &self.driver.labels[peer as usize],
        }
    }
    fn arrived(&mut self, _: PacketId) {}
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
        debug_assert!(self.driver.arrived(id).is_some(), "what leaves is not dropped by this node");
        self.counters.discard(reason);
        self.driver.end(id, self.buffers);
    }
    fn discard_received(&mut self, received: Received, reason: DropReason) {
        let segment: Vec<PacketId> = self.driver.segment(received.id).collect();
        segment.into_iter().for_each(|id| self.discard(id, reason));
    }
}
