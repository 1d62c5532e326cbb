//! The one place where hosts make packets: what all of them have in common, and where they go.

use super::*;

/// The connection of a packet, and the way that it goes.
pub(crate) struct Way {
    flow: FlowId,
    src: HostId,
    dst: HostId,
    /// The hash by which switches choose its path.
    pub(crate) entropy: u32,
    /// The slot of the connection at the other end.
    peer: u32,
}

impl Way {
    /// From a sending end to its receiver.
    #[inline(always)]
    pub(crate) fn of_sender(it: &Sending) -> Way {
        let Opening { flow, src, dst, .. } = it.opening;
        Way { flow, src, dst, entropy: it.hash, peer: it.peer }
    }
    /// From a receiving end to its sender.
    #[inline(always)]
    pub(crate) fn of_receiver(it: &Receiving) -> Way {
        let Opening { flow, src, dst, sender_slot, .. } = it.opening;
        Way { flow, src: dst, dst: src, entropy: it.hash, peer: sender_slot }
    }
    /// Back to the sender of a packet whose connection is over, or not yet open, here.
    pub(crate) fn back(packet: &Packet) -> Way {
        let Packet { flow, src, dst, .. } = *packet;
        let entropy = five_tuple_hash(dst, src, flow);
        Way { flow, src: dst, dst: src, entropy, peer: packet.slot() }
    }
    /// The same way, by the path of a subflow.
    #[inline(always)]
    pub(crate) fn by(self, mapping: Option<Mapping>) -> Way {
        Way { entropy: of_subflow(self.entropy, mapping), ..self }
    }

    /// A packet without payload, of `size` bytes on the wire. `stamp` is when it was handed down,
    /// or what it echoes.
    #[inline(always)]
    pub(crate) fn packet(self, body: Body, stamp: Time, size: u32, class: TrafficClass) -> Packet {
        Packet {
            body,
            stamp,
            flow: self.flow,
            src: self.src,
            dst: self.dst,
            entropy: self.entropy,
            side: Side::NONE,
            peer: self.peer,
            rank: 0,
            size: size as u16,
            payload: 0,
            flags: 0,
            ingress: 0,
            class,
            ttl: TTL,
            path: 0,
        }
    }
}
