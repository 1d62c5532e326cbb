//! How long a packet may be, between ports and paths to peers.
//!
//! Invariant: an MTU that a file or somebody else has chosen stays.

use super::Switch;
use crate::port::Port;
use crate::switch::slot::Slot;

/// The MTU of a tap that nothing is said of, and its Ethernet header.
const MTU: usize = 1500;
pub(super) const ETHERNET: usize = 14;

impl Switch {
    /// Gives ports whose MTU is the switch's to choose the one that paths to peers have room for.
    pub(super) fn fit(&mut self) {
        let frame = self.uplink.room()[1].unwrap_or(usize::MAX);
        // IPv6 needs no less.
        let fitting = (frame - ETHERNET.min(frame)).clamp(1280, MTU);
        for ((slot, params), _) in
            self.node.slots.iter_mut().zip(&self.config.ports).zip(&self.fits).filter(|(_, fits)| **fits)
        {
            let Some(device) = slot.port.as_ref().and_then(Port::device) else { continue };
            if slot.mtu != fitting {
                match device.set_mtu(fitting) {
                    Ok(()) => log::info!("port {}: MTU {fitting}, which paths to peers have room for", params.name),
                    Err(error) => log::warn!("port {}: {error}", params.name),
                }
                slot.mtu = device.mtu().unwrap_or(slot.mtu);
            }
        }
    }

    /// Ports whose packets may be too long for paths to peers.
    pub(super) fn misfits(&self) -> Vec<String> {
        let Some(frame) = self.uplink.room()[1] else { return Vec::new() };
        let room = frame - ETHERNET.min(frame);
        let says = |slot: &Slot| {
            format!(
                "port {}: MTU {}, and paths to peers have room for {room}: longer packets are refused",
                slot.name, slot.mtu
            )
        };
        let open = self.node.slots.iter().filter(|slot| slot.port.as_ref().is_some_and(|port| port.device().is_some()));
        open.filter(|slot| slot.mtu > room).map(says).collect()
    }

    /// The longest frame that a port may give a path, or would if paths carried it.
    pub(super) fn widest(&self) -> usize {
        let wanted = self.uplink.room()[0].unwrap_or(usize::MAX).clamp(1280 + ETHERNET, MTU + ETHERNET);
        let of = |(slot, fits): (&Slot, &bool)| if *fits { wanted } else { slot.mtu + ETHERNET };
        let open = self.node.slots.iter().zip(&self.fits).filter(|(slot, _)| slot.port.is_some());
        open.map(of).max().unwrap_or(0)
    }
}
