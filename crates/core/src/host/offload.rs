//! Receive offload: the packets of a poll are merged, and go to the transport as segments.
//!
//! What a segment's packets are to the transport is one packet as large as all of them: one
//! acknowledgement answers it, and order is counted in segments.
//!
//! Packets merge if ECN, importance, priority, TTL and the millisecond in which they were handed down
//! are the same: TOS, TTL and the timestamp option of a real one.
//!
//! Invariant: of a segment's packets one is left in the pool, which is the segment.

use super::HostWire;
use super::ingress::Received;
use crate::edge::gro::{self, Released, tcp};
use crate::packet::tcp::HEADERS;
use crate::packet::{FlowId, Kind, Packet, PacketId, flags};

/// A hash of a flow, to find it by.
#[inline]
pub(super) fn hash(flow: FlowId) -> u32 {
    flow.wrapping_mul(0x9E37_79B9)
}

/// What a packet's headers say to the offload.
pub(super) fn arrival(packet: &Packet) -> gro::Arrival<FlowId> {
    let is_syn = matches!(packet.kind(), Kind::Syn | Kind::SynAck);
    let same = [u64::from(packet.class.bits()), u64::from(packet.ttl)];
    let ms = packet.stamp.as_ps() / 1_000_000_000;
    gro::Arrival {
        flow: packet.flow,
        hash: hash(packet.flow),
        path: packet.entropy,
        // A SYN takes no sequence space here, and one number there.
        seq: (packet.seq() as u32).wrapping_sub(is_syn as u32),
        len: u32::from(packet.payload),
        merge: same.iter().fold(ms, |digest, field| digest << 8 | field),
        headers: HEADERS as u16,
        flowcell: packet.flowcell(),
        flags: tcp::ACK
            | if is_syn { tcp::SYN } else { 0 }
            | if packet.has(flags::CWR) { tcp::CWR } else { 0 }
            | if packet.has(flags::ECE) { tcp::ECE } else { 0 },
        is_whole: false,
    }
}

/// Makes one packet of a segment's. The handles that come back are free from now on: the offload has
/// forgotten them.
pub(super) fn merge<W: HostWire>(released: Released<'_, FlowId, PacketId>, wire: &mut W) -> Received {
    super::passes!(Offload);
    let packets = wire.packets();
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
