//! The edge on real frames: the host node of `millpond_core::host` between this machine's ports and
//! the paths to other switches.
//!
//! ```text
//!  port ──► egress: cut ──► importance ──► Host::send_cut: rank, label ──► Carrier ──► path, link
//!  port ◄── ingress: Outgoing ◄── Host::hand_up: virtual switch, offload, order ◄── path, link
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
mod tests;

pub use egress::{Carrier, Departure, Sent};

use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Counters;
use crate::dataplane::flow::{FlowKey, Keys};
use crate::dataplane::held::Held;
use egress::Sending;
use importance::Shim;
use ingress::Kernel;
use link::Driver;
use millpond_core::edge::RankParams;
use millpond_core::edge::flowcell::Rule;
use millpond_core::edge::gro::{self, OffloadParams};
use millpond_core::flow_table::FlowTable;
use millpond_core::host::{Backlog, Host, HostConfig, Nic, ReceiveConfig, VirtualSwitchConfig};
use millpond_core::packet::Words;
use millpond_core::{Packet, PacketId, Time};

/// The stages of a machine whose TCP is its kernel's.
#[derive(Default)]
pub struct Stages {
    /// Marks the kernel's packets, and forces some out.
    pub shim: Option<Shim>,
    /// How ranks follow from what a connection has sent.
    pub rank: RankParams,
    /// The rule of flowcells, if what leaves has labels.
    pub rule: Option<Rule>,
    /// Whether a label takes the place of the flow's hash; else a hash of flow and flowcell does.
    pub is_followed: bool,
    /// By peer: the labels that lead there.
    pub labels: Vec<Vec<u16>>,
    /// How packets that arrive are merged.
    pub offload: OffloadParams,
    /// For how long an early packet waits for those before it.
    pub ordering: Option<Time>,
    /// The virtual switch before the kernel, with the class of a packet's traffic.
    pub virtual_switch: Option<(VirtualSwitchConfig, ClassOf)>,
    /// Bytes of a packet that its IP header does not count.
    pub framing: u16,
    pub keys: Keys,
}

/// The class of a frame's traffic, if it is known.
pub type ClassOf = Box<dyn Fn(&Held) -> Option<u16> + Send>;

/// This machine as a host: its node, the flows that it sends, and what drives it.
pub struct Edge {
    host: Host<FlowKey>,
    driver: Driver,
    flows: FlowTable<FlowKey, Sending>,
    kernel: Kernel,
    rank: RankParams,
    framing: u16,
    /// Of this edge, to draw flows' keys from.
    key: u64,
    /// Data that waits to leave; `None`: nobody holds senders back.
    backlog: Option<Backlog<(Packet, Held)>>,
    /// The frames of a segment that leaves.
    cut: Vec<Held>,
    /// The packets of a segment on its way up.
    segment: Vec<PacketId>,
    /// Counts of packets from peers, and why they went no further.
    pub counters: Counters,
}

impl Edge {
    /// By this rule, with these lists of labels, one a peer, and this receive offload.
    pub fn new(rule: Rule, labels: Vec<Vec<u16>>, offload: &OffloadParams) -> Edge {
        let (rule, offload) = (Some(rule), offload.clone());
        Edge::of(Stages { rule, labels, offload, is_followed: true, ..Stages::default() })
    }

    pub fn of(stages: Stages) -> Edge {
        // The kernel has polled and waited already: the ring's poll is the driver's round.
        let receive = ReceiveConfig {
            throttle: Time::ZERO,
            offload: stages.offload,
            budget: u32::MAX,
            coalescing: Time::ZERO,
            rings: 1,
            cores: None,
            measured_from: Time::ZERO,
        };
        let speaks = |(config, _): &(VirtualSwitchConfig, _)| config.params.speaking().is_some();
        let backlog = stages.virtual_switch.as_ref().is_some_and(speaks);
        let (virtual_switch, class_of) = stages.virtual_switch.unzip();
        let mut host = Host::new(HostConfig {
            nic: Nic::Driver,
            limit: None,
            receive: Some(receive),
            virtual_switch,
            ordering: stages.ordering,
        });
        host.bound_flows(egress::FLOWS_MAX);
        let key = stages.keys.drawn();
        let mut driver = Driver::new(stages.rule, stages.labels, stages.keys);
        (driver.shim, driver.is_followed) = (stages.shim, stages.is_followed);
        Edge {
            host,
            driver,
            flows: FlowTable::default(),
            kernel: Kernel::new(stages.ordering.is_some(), class_of),
            rank: stages.rank,
            framing: stages.framing,
            key,
            backlog: backlog.then(Backlog::default),
            cut: Vec::new(),
            segment: Vec::new(),
            counters: Counters::default(),
        }
    }

    pub fn host(&self) -> &Host<FlowKey> {
        &self.host
    }
    /// Its shim, if it has one.
    pub fn shim(&self) -> Option<&Shim> {
        self.driver.shim.as_ref()
    }
    /// How long flows were held that had packets, summed over them; `None`: none can be.
    pub fn held(&self) -> Option<Time> {
        self.backlog.as_ref().map(|backlog| backlog.held)
    }
    /// Whether data waits that may leave once there is room.
    pub fn has_turns(&self) -> bool {
        self.backlog.as_ref().is_some_and(Backlog::has_turns)
    }
    /// Packets that have arrived and were not handed up, and their bytes.
    pub fn kept(&self) -> (u64, u64) {
        self.driver.kept()
    }
    /// Bytes of the frames that stages have dropped.
    pub fn dropped_bytes(&self) -> u64 {
        self.driver.dropped_bytes
    }
    /// The next packet for another host's virtual switch, and its records.
    pub fn next_word(&mut self) -> Option<(Packet, Words)> {
        self.driver.words.pop_front()
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
        self.kernel.forget_idle(now);
        self.host.age(now);
        if let Some(shim) = &mut self.driver.shim {
            shim.evict(now);
        }
    }

    /// Ends the packets that it holds; it must not be used again.
    pub fn end(&mut self, buffers: &mut Buffers) {
        self.driver.end_all(buffers);
    }

    /// Flows of peers in receive offload.
    pub fn flows_received(&self) -> usize {
        self.host.receive().map_or(0, |receive| receive.flows())
    }

    pub fn offload_counters(&self) -> gro::Counters {
        let mut all = gro::Counters::default();
        let rings = self.host.receive().into_iter().flat_map(|receive| receive.offloads());
        rings.for_each(|counters| all.merge(counters));
        all
    }
}
