//! Topologies: hosts, switches, links and routes as an explicit graph.
//!
//! Hosts are numbered leaf by leaf, and so are the links to them: link h is host h's. Ports are
//! numbered from the hosts upwards: a leaf's (edge's) host ports, then its uplinks in the order of
//! the switches above; a spine's (core's) port p leads to leaf (pod) p; an aggregation switch has
//! its edges' ports, then its cores'.
//!
//! A NIC has an *address*, by which packets name it. The first NIC of host h has the address h; the
//! further NICs of all hosts follow from `hosts` on, host by host. So in a network whose hosts have
//! one NIC each, addresses are the hosts' numbers.
//!
//! Invariant: every port has exactly one link, and [`Routes`] holds all ports on shortest paths, in
//! ascending order.

mod builder;
mod dual_tor;
mod dumbbell;
mod fat_tree;
pub mod file;
mod leaf_spine;
mod nics;
mod rail_optimised;
mod reroute;
mod round_trip;
mod single_switch;
pub(crate) mod ways;

pub use reroute::Detours;

use crate::settings::topology::TopologyParams;
use millpond_core::switch::route::{Attachment, Routes};
use millpond_core::{Rate, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Topology {
    /// How many hosts; numbered leaf by leaf.
    pub hosts: u32,
    /// By address from `hosts` on: the host of a NIC beyond its host's first, and the NIC's number,
    /// in ascending order.
    pub further: Vec<(u32, u16)>,
    /// The switches: those with hosts first (leaves, edges), then tier by tier.
    pub switches: Vec<SwitchSite>,
    /// The links, each in both directions: those of NICs first (link a is that of address a), then
    /// fabric links.
    pub links: Vec<LinkSite>,
    pub routes: Vec<Routes>,
    /// By address: where the NIC hangs; the table that all routes share. A leaf's number is its
    /// index in `switches`.
    pub attachment: Arc<Attachment>,
    /// By switch and port: the index of the link there.
    pub wiring: Vec<Vec<u32>>,
    /// Links that have names of their own: the index of each in `links`.
    pub link_names: BTreeMap<String, u32>,
    /// By host: its number in the files that the network was imported from; empty: it has no other.
    pub numbers: Vec<u32>,
    /// Whether all pairs of leaves of one pod are alike, and all pairs of leaves of two.
    pub is_regular: bool,
}

#[derive(Clone, Debug)]
pub struct SwitchSite {
    /// "leaf0", "spine3", "edge12", "agg4", "core0", "switch0".
    pub name: String,
    /// 0 for leaf and edge, 1 for spine and aggregation, 2 for core.
    pub tier: u8,
    /// The pod (fat tree) or the leaf's own number: switches of one pod are best simulated
    /// together.
    pub pod: Option<u32>,
    pub ports: u16,
    /// Whether it is a joint: the middle of a link between two hosts, which takes no time.
    pub is_joint: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A host's NIC, by its address.
    Host(u32),
    Switch {
        /// Index in [`Topology::switches`].
        switch: u32,
        port: u16,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    Host(u32),
    /// A switch, by its index in [`Topology::switches`].
    Switch(u32),
}

#[derive(Clone, Debug)]
pub struct LinkSite {
    /// The lower end (the host, or the switch nearer to the hosts).
    pub a: End,
    pub b: End,
    pub rate: Rate,
    pub delay: Time,
}

/// Why parameters make no network: the key, and what is wrong with it.
pub(crate) type Fault = (String, String);

impl Topology {
    /// Builds the network that the parameters describe.
    pub(crate) fn build(params: &TopologyParams) -> Result<Topology, Vec<Fault>> {
        match params {
            TopologyParams::LeafSpine(p) => leaf_spine::build(p),
            TopologyParams::FatTree(p) => fat_tree::build(p),
            TopologyParams::SingleSwitch(p) => single_switch::build(p),
            TopologyParams::Dumbbell(p) => dumbbell::build(p),
            TopologyParams::RailOptimised(p) => rail_optimised::build(p),
            TopologyParams::DualTor(p) => dual_tor::build(p),
            TopologyParams::File(p) => file::build(p),
        }
    }

    /// Whether a link leads to a host.
    pub fn is_host_link(&self, link: usize) -> bool {
        matches!(self.links[link].a, End::Host(_))
    }

    /// The link at a switch's port.
    pub fn link_at(&self, switch: u32, port: u16) -> u32 {
        self.wiring[switch as usize][port as usize]
    }

    /// A link; of one between two hosts both halves, the one that stands for both first.
    pub fn whole(&self, link: u32) -> Vec<u32> {
        match self.links[link as usize].b {
            End::Switch { switch, .. } if self.switches[switch as usize].is_joint => {
                self.wiring[switch as usize].clone()
            }
            _ => vec![link],
        }
    }

    /// The two ends of a link; of half a link between two hosts those of the whole link.
    pub fn ends(&self, link: u32) -> (End, End) {
        let end = |half: u32| self.links[half as usize].a;
        match self.whole(link).as_slice() {
            [first, second] => (end(*first), end(*second)),
            _ => (end(link), self.links[link as usize].b),
        }
    }

    /// The node at an end of a link.
    pub fn node(&self, end: End) -> Node {
        match end {
            End::Host(nic) => Node::Host(self.host_of(nic)),
            End::Switch { switch, .. } => Node::Switch(switch),
        }
    }

    /// The links between two nodes: a link's place is its number in scenarios. A link between two
    /// hosts is its first half.
    pub fn between(&self, a: Node, b: Node) -> Vec<u32> {
        let mut links: Vec<u32> = match (a, b) {
            (Node::Host(host), _) | (_, Node::Host(host)) => self.nics(host).collect(),
            (Node::Switch(switch), _) => self.wiring[switch as usize].clone(),
        };
        links.sort_unstable();
        let joins = |link: &u32| {
            let (from, to) = self.ends(*link);
            let ends = (self.node(from), self.node(to));
            ends == (a, b) || ends == (b, a)
        };
        links.into_iter().filter(joins).map(|link| self.whole(link)[0]).collect()
    }

    /// How many links there are, and how many switches: a link between two hosts is one, and its
    /// joint no switch.
    pub fn counts(&self) -> (usize, usize) {
        let joints = self.switches.iter().filter(|switch| switch.is_joint).count();
        (self.links.len() - joints, self.switches.len() - joints)
    }

    /// The leaf (edge switch) that a NIC hangs on: its index in `switches`. A host's number is the
    /// address of its first NIC.
    pub fn leaf_of(&self, address: u32) -> u32 {
        self.attachment.hosts[address as usize].0 as u32
    }

    pub fn leaves(&self) -> u32 {
        self.switches.iter().take_while(|s| s.tier == 0).count() as u32
    }

    /// Whether some switch has several ports towards some host.
    pub fn is_multipath(&self) -> bool {
        (0..self.leaves() as usize)
            .any(|leaf| (0..self.hosts).any(|h| self.routes[leaf].towards(h).len() > 1))
    }

    /// The sum of the leaves' uplinks: what "fabric" load refers to. Zero where leaves have none.
    pub fn fabric_capacity(&self) -> u128 {
        let is_leaf = |end: End| match end {
            End::Switch { switch, .. } => self.switches[switch as usize].tier == 0,
            End::Host(_) => false,
        };
        let fabric = self.links.iter().filter(|l| !matches!(l.a, End::Host(_)));
        fabric.map(|l| l.rate.bps() as u128 * (is_leaf(l.a) as u128 + is_leaf(l.b) as u128)).sum()
    }

    /// The sum of the host links.
    pub fn host_capacity(&self) -> u128 {
        self.host_links().iter().map(|l| l.rate.bps() as u128).sum()
    }

    /// A pair of leaves between which there are the same ways as between these.
    pub(crate) fn alike(&self, from: u32, to: u32) -> (u32, u32) {
        if !self.is_regular {
            return (from, to);
        }
        let pod = |leaf: u32| self.switches[leaf as usize].pod;
        let is_near = pod(from) == pod(to);
        let other = (1..self.leaves()).find(|leaf| (pod(*leaf) == pod(0)) == is_near);
        other.map_or((from, to), |other| (0, other))
    }
}
