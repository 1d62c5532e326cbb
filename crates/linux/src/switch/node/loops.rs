//! Loops that the switch is part of: probes of its ports, and those that come back.
//!
//! Workers report probes to the first one, which decides what is blocked (`dataplane::loops`).

use super::Node;
use crate::dataplane::frame::{Offload, View};
use crate::dataplane::loops::{Probe, RETRY};
use crate::dataplane::port::Port;
use crate::dataplane::vlan::Vlans;
use crate::switch::table::Place;
use millpond_core::Time;
use std::io::IoSlice;

/// Frames to groups between two looks, from which on a loop is suspected.
const STORM: usize = 200;

/// A probe, and where it has come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub probe: Probe,
    pub place: Place,
    /// The VLAN that it is in there.
    pub vlan: Option<u16>,
}

#[derive(Default)]
pub struct Loops {
    /// The process's number; 0: it sends no probes.
    pub own: u64,
    /// Probes that have come in, and were not looked at.
    seen: Vec<Seen>,
    /// Frames to groups since the last look.
    pub(super) groups: usize,
}

impl Node {
    /// Notes a probe. Whether the frame is one of this switch, and goes no further.
    #[inline]
    pub(super) fn is_own_probe(&mut self, frame: &[u8], view: &View, place: Place) -> bool {
        let Some(probe) = Probe::read(frame, view) else { return false };
        self.loops.seen.push(Seen { probe, place, vlan: view.vlan });
        probe.sender == self.loops.own
    }

    /// Returns the probes that have come in.
    pub fn take_probes(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.loops.seen)
    }

    /// When a probe of a port is due.
    pub fn probes_due(&self) -> Option<Time> {
        let probed = self.slots.iter().filter(|slot| slot.port.as_ref().is_some_and(is_probed));
        probed.map(|slot| slot.watch.due()).min().filter(|_| self.loops.own != 0)
    }

    /// Sends the probes that are due. Returns the ports that are blocked no more.
    pub fn probe_loops(&mut self, now: Time) -> Vec<usize> {
        let mut ended = Vec::new();
        let is_storm = std::mem::take(&mut self.loops.groups) >= STORM;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let Some(port) = slot.port.as_mut().filter(|port| is_probed(port)) else { continue };
            if is_storm {
                slot.watch.hurry(now);
            }
            if slot.watch.due() > now || self.loops.own == 0 {
                continue;
            }
            let vlans: &[u16] =
                if let Vlans::Trunk(vlans) = &slot.vlans { vlans.numbers() } else { &[] };
            let (frame, ends) = slot.watch.probe(now, self.loops.own, index as u16, vlans);
            // A port that takes nothing now is part of no loop now.
            let _ = port.send(&Offload::default(), &[IoSlice::new(&frame)]);
            ended.extend(ends.then_some(index));
        }
        ended
            .iter()
            .for_each(|port| log::info!("port {}: no loop any more", self.slots[*port].name));
        ended
    }

    /// Looks at a probe. Returns the port that is blocked now, and was not before.
    pub fn judge_probe(&mut self, now: Time, seen: Seen, peers: &[String]) -> Option<usize> {
        let Seen { probe, place, vlan } = seen;
        if probe.sender != self.loops.own {
            if let Place::Port(port) = place {
                self.slots.get_mut(port)?.watch.on_foreign(now, probe.sender < self.loops.own);
            }
            return None;
        }
        let from = usize::from(probe.port);
        let sender = self.slots.get(from)?;
        // Somebody who bridges two VLANs makes no loop in either.
        (sender.watch.is_recent(probe.number) && sender.vlans.carries(vlan)).then_some(())?;
        let (port, at) = match place {
            Place::Port(at) if at == from => (from, "the same port".to_string()),
            Place::Port(at) => {
                let [first, later] = [at.min(from), at.max(from)];
                (later, format!("port {}", self.slots.get(first)?.name))
            }
            Place::Peer(peer) if self.slots[from].watch.returned(now) => {
                (from, format!("peer {}", peers.get(peer)?))
            }
            Place::Peer(_) => return None,
        };
        let slot = self.slots.get_mut(port)?;
        slot.watch.block(now, &at).then_some(())?;
        log::warn!(
            "port {}: a loop: its frames come back at {at}; blocked until {} s after the loop's \
             end",
            slot.name,
            RETRY.as_us_f64() / 1e6
        );
        self.table.forget(Place::Port(port));
        Some(port)
    }
}

/// Whether others may be bridged to a port: an application or a file is an end.
fn is_probed(port: &Port) -> bool {
    matches!(port, Port::Tap(_) | Port::AfPacket(_) | Port::Vhost(_))
}
