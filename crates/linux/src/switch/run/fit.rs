//! How long a packet may be, between ports and paths to peers: a frame with its Ethernet header and
//! the tag of its port's VLAN.
//!
//! Invariant: an MTU that a file or somebody else has chosen stays.

use super::{PortStatus, Switch};
use crate::dataplane::port::Port;
use crate::dataplane::slot::Slot;
use millpond_core::Time;

/// The MTU of a tap by default.
const MTU: usize = 1500;
/// The least MTU of IPv6.
const MTU_LEAST: usize = 1280;

impl Switch {
    /// Gives ports whose MTU is the switch's to choose the one that paths to peers have room for.
    /// It grows only while each peer answers: the room to a peer that is lost is unknown.
    pub(super) fn fit(&mut self, now: Time) {
        let may_grow = self.uplink.reaches_all(now);
        let frame = self.uplink.room()[1].unwrap_or(usize::MAX);
        let slots = self.node.slots.iter_mut().zip(&self.ports);
        for (slot, _) in slots.filter(|(_, status)| status.fits) {
            let Some(device) = slot.port.as_ref().and_then(Port::device) else { continue };
            let fitting = frame.saturating_sub(slot.ethernet()).clamp(MTU_LEAST, MTU);
            if fitting < slot.mtu || (fitting > slot.mtu && may_grow) {
                match device.set_mtu(fitting) {
                    Ok(()) => log::info!(
                        "port {}: MTU {fitting}, which paths to peers have room for",
                        slot.name
                    ),
                    Err(error) => log::warn!("port {}: {error}", slot.name),
                }
                slot.mtu = device.mtu().unwrap_or(slot.mtu);
            }
        }
    }

    /// Ports whose packets may be too long for paths to peers.
    pub(super) fn misfits(&self) -> Vec<String> {
        let Some(frame) = self.uplink.room()[1] else { return Vec::new() };
        let room = |slot: &Slot| frame.saturating_sub(slot.ethernet());
        let note = |slot: &Slot| {
            format!(
                "port {}: MTU {}, and paths to peers have room for {}: longer packets are refused",
                slot.name,
                slot.mtu,
                room(slot)
            )
        };
        let open = self
            .node
            .slots
            .iter()
            .filter(|slot| slot.port.as_ref().is_some_and(|port| port.device().is_some()));
        open.filter(|slot| slot.mtu > room(slot)).map(note).collect()
    }

    /// The longest frame that a port may give a path, or would if paths carried it.
    pub(super) fn widest(&self) -> usize {
        let room = self.uplink.room()[0].unwrap_or(usize::MAX);
        let of = |(slot, status): (&Slot, &PortStatus)| match status.fits {
            true => room.clamp(MTU_LEAST + slot.ethernet(), MTU + slot.ethernet()),
            false => slot.mtu + slot.ethernet(),
        };
        let open = self.node.slots.iter().zip(&self.ports).filter(|(slot, _)| slot.port.is_some());
        open.map(of).max().unwrap_or(0)
    }
}
