//! The standstill at a switch: which neighbours it has stopped, which packets its own pauses hold,
//! and whether a stop would end if nothing but these packets stayed.
//!
//! A driver, which has the links, asks all switches, and finds cycles of pauses.
//!
//! Invariant: nothing here changes the switch.

use super::buffer::IngressFacts;
use super::pause::{IngressView, PauseTarget};
use super::{Ports, Switch};
use crate::packet::{Packet, PacketId, Packets, flags};
use crate::units::Rate;

/// A packet that waits, and the pause that holds it.
pub type Held = (PacketId, PauseTarget);

impl Switch {
    /// The ingress ports whose neighbours the switch has stopped for as long as packets wait, and
    /// what it has stopped there. None where something else ends a pause, or moves what waits: a
    /// guaranteed rate, a watchdog, or a deflection that displaces.
    pub fn stopped(&self) -> Vec<(u16, PauseTarget)> {
        if self.nature.displaces { Vec::new() } else { self.pause.stopped() }
    }

    /// The packets at `port` that can never leave while these targets are paused there.
    pub fn held(&self, port: u16, paused: &[PauseTarget], packets: &Packets) -> Vec<Held> {
        match &self.ports {
            Ports::Fast(_) => Vec::new(),
            Ports::General(ports) => ports[port as usize].held(paused, packets),
        }
    }

    /// The packets that wait at `port`, in no order; none of a fast port, which keeps none.
    pub fn waiting(&self, port: u16) -> Vec<PacketId> {
        match &self.ports {
            Ports::Fast(_) => Vec::new(),
            Ports::General(ports) => ports[port as usize].waiting(),
        }
    }

    /// Whether a packet is among those for which the switch stops `target` at an ingress port.
    pub fn counts_for(&self, packet: &Packet, ingress: u16, target: PauseTarget) -> bool {
        packet.ingress == ingress
            && match target {
                PauseTarget::Priority(priority) => packet.priority() == priority,
                PauseTarget::Flow(vfid) => {
                    packet.has(flags::COUNTS) && self.vfid(packet) == Some(vfid)
                }
            }
    }

    /// Whether the stop of `target` at an ingress port would last if all packets left the switch
    /// but these.
    pub fn stays_stopped<'p>(
        &self,
        ingress: u16,
        target: PauseTarget,
        left: impl Iterator<Item = &'p Packet>,
    ) -> bool {
        let (mut all, mut own, mut count) = (0, 0, 0);
        for packet in left {
            let is_own = self.counts_for(packet, ingress, target);
            all += u64::from(packet.size);
            own += if is_own { u64::from(packet.size) } else { 0 };
            count += u32::from(is_own);
        }
        let priority = target.queue().unwrap_or_default();
        let facts: IngressFacts = self.memory.ingress_of(ingress, priority, own, all);
        let view = IngressView {
            port: ingress,
            egress: ingress,
            target,
            bytes: own,
            facts,
            load: None,
            rate: Rate(0),
        };
        self.pause.stays(&view, count)
    }

    fn vfid(&self, packet: &Packet) -> Option<u16> {
        match &self.ports {
            Ports::Fast(_) => None,
            Ports::General(ports) => ports.first()?.vfid(packet),
        }
    }
}
