//! A segment on its way up: a packet, or those that receive offload merged into one.

use crate::packet::{Packet, PacketId};

/// The unit that goes up: a packet, or those that receive offload has merged into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its packet, with the payload of all.
    pub id: PacketId,
    /// Packets that it was.
    pub packets: u32,
    /// Their bytes on the wire.
    pub bytes: u32,
}

impl Received {
    /// A packet by itself.
    pub fn one(id: PacketId, packet: &Packet) -> Received {
        Received { id, packets: 1, bytes: u32::from(packet.size) }
    }
}
