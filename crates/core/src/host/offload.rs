//! Receive offload: the packets of a poll are merged, and go to the transport as segments.
//!
//! The driver's answers ([`HostWire::headers`](super::HostWire::headers),
//! [`HostWire::merge`](super::HostWire::merge)) are a packet's headers and how one is made
//! of several. This file has the answers for packets without bytes.
//!
//! To the transport a segment's packets are one packet as large as all of them: one acknowledgement
//! answers it, and order is counted in segments.
//!
//! Packets merge if ECN, importance, priority, TTL and the millisecond in which they were handed
//! down are the same: TOS, TTL and the timestamp option of a real one. A subflow of an MPTCP is a
//! flow here, and its packets merge if they continue one another in the stream, too.
//!
//! Invariant: of a segment's packets one is left in the pool, which is the segment.

use super::received::Received;
use crate::edge::gro::{self, Released, tcp};
use crate::packet::tcp::HEADERS;
use crate::packet::{FlowId, Kind, Mapping, PacketId, Packets, flags};
use crate::random::mix64;

/// A simulated connection's flow, and which of its subflows.
pub type Flow = (FlowId, u8);

/// A hash of a flow, to find it by.
#[inline]
pub(super) fn hash((flow, subflow): Flow) -> u32 {
    flow.wrapping_mul(0x9E37_79B9).wrapping_add(u32::from(subflow).wrapping_mul(0x85EB_CA6B))
}

/// A packet's headers as the offload reads them.
pub fn headers(packets: &Packets, id: PacketId) -> gro::Arrival<Flow> {
    let packet = &packets[id];
    let mapping: Option<&Mapping> = packets.side(packet);
    let is_syn = matches!(packet.kind(), Kind::Syn | Kind::SynAck);
    let same = [u64::from(packet.class.bits()), u64::from(packet.ttl)];
    let ms = packet.stamp.as_ps() / 1_000_000_000;
    let place = mapping.map_or(0, |mapping| mix64(mapping.data.wrapping_sub(packet.seq())));
    let flow = (packet.flow, mapping.map_or(0, |mapping| mapping.subflow));
    gro::Arrival {
        flow,
        hash: hash(flow),
        path: packet.entropy,
        // A SYN takes no sequence space here, and one number there.
        seq: (packet.seq() as u32).wrapping_sub(is_syn as u32),
        len: u32::from(packet.payload),
        merge: same.iter().fold(ms, |digest, field| digest << 8 | field) ^ place,
        headers: HEADERS as u16,
        flowcell: packet.flowcell(),
        flags: tcp::ACK
            | if is_syn { tcp::SYN } else { 0 }
            | if packet.has(flags::CWR) { tcp::CWR } else { 0 }
            | if packet.has(flags::ECE) { tcp::ECE } else { 0 },
        id: gro::IpId::NONE,
        is_whole: false,
    }
}

/// Makes one packet of a segment's. The handles that come back are free from now on: the offload
/// has forgotten them.
pub fn merge(released: Released<'_, Flow, PacketId>, packets: &mut Packets) -> Received {
    let (first, others) = (released.packets[0], &released.packets[1..]);
    let (mut flags, mut bytes) = (packets[first].flags, u32::from(packets[first].size));
    for id in others {
        flags |= packets[*id].flags;
        bytes += u32::from(packets[*id].size);
        packets.remove(*id);
    }
    let whole = &mut packets[first];
    (whole.flags, whole.payload) = (flags, released.bytes as u16);
    Received { id: first, packets: released.packets.len() as u32, bytes }
}
