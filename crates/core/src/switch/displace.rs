//! Displacement: a packet takes the place of less important ones, which are deflected in its stead
//! (Vertigo, CoNEXT 2021).
//!
//! The packet's own queue gives up its least important packets, the newest among equals first,
//! until the packet fits; if all that are less important would not make enough room, the packet
//! itself is the one to go elsewhere. Whatever goes elsewhere joins the queue that the deflection
//! names even if that is full: there the least important is dropped, which may be another packet.
//!
//! Only room is made in this way. Whom the admission of its own queue refuses is dropped, full or
//! not, and who goes elsewhere is dropped where the admission there refuses it.
//!
//! Invariant: a packet is displaced only by one of a strictly smaller rank, and joins no queue
//! whose admission refuses it.

use super::buffer::Claim;
use super::port::set_ce;
use super::{Ports, Switch, Wire};
use crate::context::Context;
use crate::counters::DropReason;
use crate::packet::{Packet, PacketId, flags};
use crate::units::Time;

impl Switch {
    /// The queue of `port` has refused `id` for this reason: if it has no room, somebody must go
    /// elsewhere.
    pub(super) fn displace<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        id: PacketId,
        reason: DropReason,
        wire: &mut W,
    ) {
        let packet = wire.packets()[id];
        let early = match reason {
            // The admission has counted the packet, and was not asked.
            DropReason::QueueFull | DropReason::SharedBuffer => {
                let view = self.ports.view(now, port);
                self.ports.admission(port).test(&Context {
                    now,
                    packet: &packet,
                    view,
                    random: &self.random,
                })
            }
            reason => Some(reason),
        };
        if let Some(reason) = early {
            return wire.discard(id, reason);
        }
        let mut victims = std::mem::take(&mut self.victims);
        if self.can_displace(port, packet.rank, packet.size) {
            while self.lacks_room(port, &packet) {
                let Some(victim) = self.evict(now, port, packet.rank, wire) else { break };
                victims.push(victim);
            }
            self.join(now, port, id, wire);
        } else {
            victims.push(id);
        }
        for victim in victims.drain(..) {
            match self.elsewhere(now, port, victim, wire) {
                Some(other) => self.squeeze(now, other, victim, wire),
                None => wire.discard(victim, DropReason::NoDeflection),
            }
        }
        self.victims = victims;
    }

    /// Puts `id` in the queue of `port`, of which the least important are dropped until it fits.
    fn squeeze<W: Wire>(&mut self, now: Time, port: u16, id: PacketId, wire: &mut W) {
        let packet = wire.packets()[id];
        let view = self.ports.view(now, port);
        let admission = self.ports.admission(port);
        let context = Context { now, packet: &packet, view, random: &self.random };
        let refused = admission.test(&context).is_some();
        admission.commit(&context, false); // that it joins it learns when it does
        if refused {
            return wire.discard(id, DropReason::NoDeflection);
        }
        while self.lacks_room(port, &packet) {
            match self.evict(now, port, packet.rank, wire) {
                Some(worse) => wire.discard(worse, DropReason::Evicted),
                None => return wire.discard(id, DropReason::NoDeflection),
            }
        }
        self.deflected += 1;
        self.mark_deflected(id, wire);
        self.join(now, port, id, wire);
    }

    /// Writes on a packet that it goes elsewhere. Before it joins a queue: after that it may be on
    /// its way.
    pub(super) fn mark_deflected<W: Wire>(&self, id: PacketId, wire: &mut W) {
        let packet = &mut wire.packets()[id];
        packet.flags |= flags::DEFLECTED;
        if self.nature.marks {
            set_ce(packet);
        }
    }

    fn can_displace(&self, port: u16, rank: u32, size: u16) -> bool {
        let Ports::General(ports) = &self.ports else { return false };
        ports[port as usize].can_displace(rank, size as u64, &self.memory)
    }

    fn lacks_room(&self, port: u16, packet: &Packet) -> bool {
        let Ports::General(ports) = &self.ports else { return true };
        let queue = &ports[port as usize];
        queue.lacks_room(&queue.view(), &Claim::of(packet, port), &self.memory).is_some()
    }

    /// Takes the least important packet out of a queue, if it is less important than `rank`.
    fn evict<W: Wire>(
        &mut self,
        now: Time,
        port: u16,
        rank: u32,
        wire: &mut W,
    ) -> Option<PacketId> {
        self.occupancy.refresh(now, port, &mut self.ports);
        let Ports::General(ports) = &mut self.ports else { return None };
        let victim = ports[port as usize].evict(
            now,
            rank,
            wire.packets(),
            &mut self.memory,
            &self.random,
        )?;
        if !self.ingress_bytes.is_empty() {
            self.count_ingress(now, port, victim, false, wire);
        }
        Some(victim)
    }

    /// Queues a packet for which there is room, and which the admission has not refused.
    pub(super) fn join<W: Wire>(&mut self, now: Time, port: u16, id: PacketId, wire: &mut W) {
        self.occupancy.refresh(now, port, &mut self.ports);
        if let Ports::General(ports) = &mut self.ports {
            let packet = &mut wire.packets()[id];
            ports[port as usize].take(now, id, packet, &mut self.memory, &self.random);
        }
        self.joined(now, port, id, wire);
    }
}
