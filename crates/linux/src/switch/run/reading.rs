//! The report of a switch that runs.

use super::{PortStatus, Switch};
use crate::dataplane::fault;
use crate::dataplane::port::Port;
use crate::dataplane::slot::Slot;
use crate::dataplane::vlan::Vlans;
use crate::switch::config::PortParams;
use crate::switch::error::Error;
use crate::switch::importance::HostShim;
use crate::switch::reading::{AddressReading, EdgeReading, PortReading, PortState, Reading};
use crate::switch::supervise;
use crate::switch::table::{Address, Place};
use millpond_core::Time;
use millpond_core::edge::gro::Cause;
use std::iter;

/// A port: its keys, its place in the switch, and why it is not open.
type PortParts<'a> = ((&'a PortParams, &'a Slot), &'a PortStatus);

impl Switch {
    pub(super) fn edge(&self) -> EdgeReading {
        let (offload, dropped) = self.uplink.counters();
        EdgeReading {
            packets: offload.packets,
            segments: offload.segments.iter().sum(),
            held: offload.held,
            timed_out: offload.of(Cause::Timeout),
            forced: offload.of(Cause::Forced),
            dropped: dropped.reading().dropped,
        }
    }

    /// The stations behind each port or peer.
    pub(super) fn addresses(&self) -> Vec<AddressReading> {
        let (now, peers) = (self.now(), self.uplink.peer_names());
        let reading = |(address, place, seen): (Address, Place, Option<Time>)| {
            let slot = if let Place::Port(port) = place { self.node.slots.get(port) } else { None };
            let peer = if let Place::Peer(peer) = place { peers.get(peer) } else { None };
            AddressReading {
                address: address.mac.to_string(),
                vlan: address.vlan.or_else(|| slot?.vlans.access()),
                port: slot.map(|slot| slot.name.clone()),
                peer: peer.cloned(),
                silent_s: seen.map(|seen| now.saturating_sub(seen).as_us_f64() / 1e6),
            }
        };
        let mut all: Vec<AddressReading> = self.node.table.entries().map(reading).collect();
        all.sort_by(|a, b| (a.vlan, &a.address).cmp(&(b.vlan, &b.address)));
        all
    }

    pub(super) fn reading_of_all(&self) -> Reading {
        let mut all = self.reading();
        if !self.team.leads() || self.team.is_alone() {
            return all;
        }
        let others = self.team.readings();
        all.workers = [all.share()].into_iter().chain(others.iter().map(Reading::share)).collect();
        others.iter().for_each(|other| all.add(other));
        all
    }

    pub(super) fn reading(&self) -> Reading {
        let shims = self.node.shims.iter().map(Option::as_deref).chain(iter::repeat(None));
        let port =
            |(((params, slot), status), shim): (PortParts<'_>, Option<&HostShim>)| PortReading {
                name: params.name.clone(),
                kind: params.kind_name(),
                device: slot
                    .port
                    .as_ref()
                    .and_then(|p| p.device())
                    .map_or_else(String::new, |d| d.name().to_string()),
                namespace: params.namespace.clone(),
                state: if slot.port.is_some() { PortState::Open } else { PortState::Waiting },
                reason: status.waiting.as_ref().map(Error::to_string),
                mtu: slot.mtu,
                vlan: slot.vlans.access(),
                trunk: if let Vlans::Trunk(vlans) = &slot.vlans {
                    vlans.numbers().to_vec()
                } else {
                    Vec::new()
                },
                looped: slot.watch.back().map(str::to_string),
                loops: slot.watch.count(),
                slowed: self.shaper.is_slow(params)
                    || slot.port.as_ref().is_some_and(Port::is_gate_closed),
                shared: match &slot.port {
                    Some(Port::Shared(shared)) => Some(shared.reading()),
                    _ => None,
                },
                guest: slot.guest(),
                importance: shim.map(HostShim::reading),
                counters: slot.counters.reading(),
            };
        let open = self.node.slots.iter().filter(|slot| slot.port.is_some());
        let widest = open.map(|slot| slot.mtu + slot.ethernet()).max().unwrap_or(0);
        let ([flows, flows_received], restarts) =
            (self.uplink.flow_counts(), supervise::restarts());
        Reading {
            schema: 1,
            pid: std::process::id(),
            uptime_s: self.start.elapsed().as_secs_f64(),
            ports: self
                .config
                .ports
                .iter()
                .zip(&self.node.slots)
                .zip(&self.ports)
                .zip(shims)
                .map(port)
                .collect(),
            paths: self.uplink.reading(self.now(), widest),
            peers: self.uplink.peers(),
            edge: self.edge(),
            addresses: self.node.table.len(),
            flows,
            flows_received,
            buffers: self.buffers.in_use(),
            bursts: self.bursts,
            sleeps: self.sleeps,
            restarts: restarts.as_ref().map(|restarts| restarts.count),
            restarted: restarts.filter(|restarts| restarts.count > 0),
            faults: fault::faults(),
            unsaved: self.unsaved.clone(),
            workers: Vec::new(),
        }
    }
}
