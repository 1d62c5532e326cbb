//! The edge on real frames: the host node of `millpond_core::host` between this machine's ports and
//! the paths to other switches.
//!
//! ```text
//!  port ──► egress: cut ──► Host::send_staged ──► label ──► Link::transmit ──► Carrier ──► path
//!  port ◄── ingress: Outgoing ◄── Host::hand_up ◄── receive offload ◄── Host::on_arrival ◄── path
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `link` | what the host node asks of its driver, for packets that have bytes |
//! | `egress` | cuts a frame for a peer, and sends its packets through the node |
//! | `importance` | TLT of the host's own TCP: marks, forced packets and echoes at its port |
//! | `ingress` | takes packets from a peer through the node, and hands frames to the switch |
//!
//! The packets of the node are metadata, made from headers; their bytes lie beside them under the
//! same number. The NIC is the driver's: paths are its ports, each with a queue of its own.
//!
//! Follows Presto (He, Rozner, Agarwal, Felter, Carter, Akella: Presto: Edge-based Load Balancing
//! for Fast Datacenter Networks, SIGCOMM 2015).
//!
//! Invariant: payload is not copied between the port that it is read from and the port or path that
//! it is written to.

mod egress;
pub mod importance;
mod ingress;
mod link;
#[cfg(test)]
mod merging;
#[cfg(test)]
mod tests;

pub use egress::{Carrier, Sent};

use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Counters;
use crate::dataplane::flow::{FlowKey, Keys};
use egress::Sending;
use link::Driver;
use millpond_core::edge::flowcell::Rule;
use millpond_core::edge::gro::{self, OffloadParams};
use millpond_core::flow_table::FlowTable;
use millpond_core::host::{Host, HostConfig, Nic, ReceiveConfig};
use millpond_core::{PacketId, Time};

/// This machine as a host: its node, the flows that it sends, and what drives it.
pub struct Edge {
    host: Host<FlowKey>,
    driver: Driver,
    flows: FlowTable<FlowKey, Sending>,
    /// Of this edge, to draw flows' keys from.
    key: u64,
    /// The packets of a segment on its way up.
    segment: Vec<PacketId>,
    /// Counts of packets from peers, and why they went no further.
    pub counters: Counters,
}

impl Edge {
    /// By this rule, with these lists of labels, one a peer, and this receive offload.
    pub fn new(rule: Rule, labels: Vec<Vec<u16>>, offload: &OffloadParams) -> Edge {
        Edge::keyed(rule, labels, offload, Keys::default())
    }

    /// The same with hashes of these keys.
    pub fn keyed(rule: Rule, labels: Vec<Vec<u16>>, offload: &OffloadParams, keys: Keys) -> Edge {
        // The kernel has polled and waited already: the ring's poll is the driver's round.
        let receive = ReceiveConfig {
            offload: offload.clone(),
            budget: u32::MAX,
            coalescing: Time::ZERO,
            rings: 1,
            cores: None,
            measured_from: Time::ZERO,
        };
        let config = HostConfig {
            nic: Nic::Driver,
            limit: None,
            receive: Some(receive),
            virtual_switch: None,
            ordering: None,
        };
        let mut host = Host::new(config);
        host.bound_flows(egress::FLOWS_MAX);
        Edge {
            host,
            driver: Driver::new(rule, labels, keys),
            flows: FlowTable::default(),
            key: keys.drawn(),
            segment: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// From now on these labels lead to a peer; none: as before.
    pub fn set_labels(&mut self, peer: usize, labels: Vec<u16>) {
        if let Some(old) = self.driver.labels.get_mut(peer).filter(|_| !labels.is_empty()) {
            *old = labels;
        }
    }

    /// From now on there are these peers, to each of which these labels lead.
    pub fn set_peers(&mut self, labels: Vec<Vec<u16>>) {
        self.driver.labels = labels;
    }

    /// Forgets some of the flows that are idle: to be called each millisecond.
    pub fn evict(&mut self, now: Time) {
        self.forget_idle(now);
        self.host.age(now);
    }

    /// Ends the packets that it holds; it must not be used again.
    pub fn end(&mut self, buffers: &mut Buffers) {
        self.driver.end_all(buffers);
    }

    /// Flows of peers that receive offload knows.
    pub fn flows_received(&self) -> usize {
        self.host.receive().map_or(0, |receive| receive.flows())
    }

    /// The counts of receive offload.
    pub fn offload_counters(&self) -> gro::Counters {
        let mut all = gro::Counters::default();
        let rings = self.host.receive().into_iter().flat_map(|receive| receive.offloads());
        rings.for_each(|counters| all.merge(counters));
        all
    }
}
