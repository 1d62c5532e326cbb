//! The driver as the node sees it: [`HostWire`] over packets that have bytes.
//!
//! Invariant: a packet of the node and its bytes have one number, and end together. The node's own
//! packets, and those of other switches, have no bytes here.

use millpond_core::counters::DropReason;
use millpond_core::edge::flowcell::{Opening, Rule};
use millpond_core::edge::gro::{Arrival, Released};
use millpond_core::edge::schedule::Order;
use millpond_core::host::{Call, HostWire, Labels, Received};
use millpond_core::packet::{Side, Words};
use millpond_core::{HostId, Packet, PacketId, Packets, Time};
use millpond_linux::dataplane::buffers::Buffers;
use millpond_linux::dataplane::counters::Counters;
use millpond_linux::fabric::Left;
use std::collections::VecDeque;

/// Of a node that labels nothing.
static UNUSED: Rule =
    Rule { opening: Opening::Bytes(u64::MAX), order: Order::RoundRobin, is_first: true };

/// Bytes of a frame of which a packet does not count them: Ethernet's header.
const ETHERNET: u64 = 14;

/// The state that drives a node.
#[derive(Default)]
pub struct Link {
    packets: Packets,
    /// By a packet's number.
    left: Vec<Option<Left>>,
    /// The calls that the node waits for: one call a core, at most, and the overlay's.
    calls: Vec<(Time, Call)>,
    /// Packets for other switches, and what they say.
    pub said: VecDeque<(Packet, Words)>,
    /// Packets that were dropped, and still have their buffers.
    ended: Vec<Left>,
    /// Packets dropped, by reason.
    pub counters: Counters,
    /// The bytes of their frames.
    pub dropped_bytes: u64,
}

impl Link {
    /// Gives a packet that has arrived its number.
    pub fn keep(&mut self, left: Left) -> PacketId {
        let id = self.packets.insert(Packet { side: Side::default(), ..left.packet });
        let at = id as usize;
        if self.left.len() <= at {
            self.left.resize_with(at + 1, || None);
        }
        self.left[at] = Some(left);
        id
    }

    /// The same with a packet of another switch, and what that says.
    pub fn keep_words(&mut self, packet: Packet, words: Words) -> PacketId {
        let mut packet = Packet { side: Side::default(), ..packet };
        self.packets.attach(&mut packet, words);
        self.packets.insert(packet)
    }

    /// Takes a packet that goes up at a time.
    pub fn take(&mut self, at: Time, id: PacketId) -> Option<Left> {
        self.packets.remove(id);
        let left = self.left.get_mut(id as usize)?.take()?;
        Some(Left { at, ..left })
    }

    /// Gives back the buffers of what was dropped.
    pub fn free(&mut self, buffers: &mut Buffers) {
        self.ended.drain(..).for_each(|mut left| left.held.bytes.end(buffers));
    }

    /// Packets with bytes that are here, and their bytes.
    pub fn kept(&self) -> (u64, u64) {
        let lengths = self.left.iter().flatten().map(|left| left.held.bytes.length() as u64);
        lengths.fold((0, 0), |(packets, bytes), length| (packets + 1, bytes + length))
    }

    /// Takes the next call, if it is due by `until`; of one time that which was asked for first.
    pub fn due(&mut self, until: Time) -> Option<(Time, Call)> {
        let next = (0..self.calls.len()).min_by_key(|at| self.calls[*at].0)?;
        (self.calls[next].0 <= until).then(|| self.calls.remove(next))
    }

    /// When the next call is due.
    pub fn deadline(&self) -> Option<Time> {
        self.calls.iter().map(|(at, _)| *at).min()
    }
}

impl HostWire for Link {
    type Flow = ();

    fn packets(&mut self) -> &mut Packets {
        &mut self.packets
    }
    fn inject(&mut self, packet: Packet) -> PacketId {
        self.packets.insert(packet)
    }
    /// Of the node's own packets alone: data passes the NIC without the node.
    fn transmit(&mut self, id: PacketId, _: Time) {
        let packet = self.packets[id];
        let words = self.packets.side::<Words>(&packet).copied().unwrap_or_default();
        self.packets.remove(id);
        self.said.push_back((Packet { side: Side::default(), ..packet }, words));
    }
    fn departs(&mut self, _: &Packet, _: Time) {}
    fn call(&mut self, at: Time, call: Call) {
        self.calls.push((at, call));
    }
    fn recall(&mut self, at: Time, call: Call) {
        self.calls.retain(|asked| *asked != (at, call));
    }
    fn labels(&mut self, _: Time, _: HostId, _: HostId) -> Labels<'_> {
        Labels { rule: &UNUSED, is_followed: false, list: &[] }
    }
    fn arrived(&mut self, _: PacketId) {}
    fn discard(&mut self, id: PacketId, reason: DropReason) {
        self.counters.discard(reason);
        let size = u64::from(self.packets[id].size);
        self.packets.remove(id);
        let left = self.left.get_mut(id as usize).and_then(Option::take);
        let length = left.as_ref().map(|left| left.held.bytes.length() as u64);
        self.dropped_bytes += length.unwrap_or(ETHERNET + size);
        self.ended.extend(left);
    }
    fn discard_received(&mut self, received: Received, reason: DropReason) {
        self.discard(received.id, reason);
    }
    fn headers(&mut self, _: PacketId) -> Option<Arrival<()>> {
        None
    }
    /// The node has no receive offload: that lies behind it.
    fn merge(&mut self, released: Released<'_, (), PacketId>) -> Received {
        let id = released.packets[0];
        Received::one(id, &self.packets[id])
    }
}
