//! A switch trims: what [`super::overflow`] chooses, done.
//!
//! Invariant: what is cut off is reported to the wire, so that bytes are conserved.

use super::overflow::{Trim, TrimChoice};
use super::{Ports, Switch, Wire};
use crate::counters::DropReason;
use crate::packet::uet::CONTROL_PRIORITY;
use crate::packet::{Body, Packet, PacketId, flags};
use crate::units::Time;

/// Whether a packet's transport repairs by what is left of it.
fn can_be_trimmed(packet: &Packet) -> bool {
    matches!(packet.body, Body::UetData { .. }) && packet.payload > 0
}

impl Switch {
    /// A buffer has refused `id` for this reason: trims it, or another in its stead. Whether it
    /// did.
    #[cold]
    pub(super) fn trims<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        reason: DropReason,
        wire: &mut W,
    ) -> bool {
        let Some(trim) = self.trim else { return false };
        let is_full = matches!(reason, DropReason::QueueFull | DropReason::SharedBuffer);
        if !is_full || !can_be_trimmed(&wire.packets()[id]) {
            return false;
        }
        let takes_place = match trim.choice {
            TrimChoice::Arriving => false,
            TrimChoice::Newest => true,
            TrimChoice::Lot => self.random.below(2) == 1,
        };
        let newest = if takes_place { self.newest(now, port, wire) } else { None };
        if newest.is_some() {
            self.join(now, port, id, wire);
        }
        self.trim_to(trim, now, port, newest.unwrap_or(id), wire);
        true
    }

    /// Takes the newest packet that can be trimmed out of a queue.
    fn newest<W: Wire>(&mut self, now: Time, port: u16, wire: &mut W) -> Option<PacketId> {
        let Ports::General(ports) = &mut self.ports else { return None };
        let port_of = &mut ports[port as usize];
        let newest = port_of.newest().filter(|id| can_be_trimmed(&wire.packets()[*id]))?;
        port_of.take_newest(now, wire.packets(), &mut self.memory, &self.random);
        if !self.ingress_bytes.is_empty() {
            self.count_ingress(now, port, newest, false, wire);
        }
        Some(newest)
    }

    /// Cuts a packet's payload off, and sends on what is left.
    fn trim_to<W: Wire>(&mut self, trim: Trim, now: Time, port: u16, id: PacketId, wire: &mut W) {
        let is_last = self.fabric_ports.binary_search(&port).is_err();
        let packet = &mut wire.packets()[id];
        let size = packet.size.min(trim.size);
        let cut = packet.size - size;
        (packet.size, packet.payload) = (size, 0);
        packet.flags |= flags::TRIMMED | if is_last { flags::LAST_HOP } else { 0 };
        packet.class = packet.class.with_priority(CONTROL_PRIORITY);
        self.trimmed += 1;
        wire.trimmed(cut);
        if let Err(reason) = self.offer(now, port, id, wire) {
            wire.discard(id, reason);
        }
    }
}
