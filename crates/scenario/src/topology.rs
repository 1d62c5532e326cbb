//! Topologies: hosts, switches, links and routes as an explicit graph.

use millpond_core::switch::route::Routes;
use millpond_core::{Rate, Time};

/// A network.
#[derive(Clone, Debug)]
pub struct Topology {
    /// How many hosts; numbered leaf by leaf.
    pub hosts: u32,
    /// The switches: those with hosts first (leaves, edges), then tier by tier.
    pub switches: Vec<SwitchSite>,
    /// The links, each in both directions: host links first (link h is host h's), then fabric links.
    pub links: Vec<LinkSite>,
    /// By switch: its routes.
    pub routes: Vec<Routes>,
}

/// A switch in its place.
#[derive(Clone, Debug)]
pub struct SwitchSite {
    /// "leaf0", "spine3", "edge12", "agg4", "core0", "switch0".
    pub name: String,
    /// 0 for leaf and edge, 1 for spine and aggregation, 2 for core.
    pub tier: u8,
    /// The pod (fat tree) or the leaf's own number: switches of one pod are best simulated together.
    pub pod: Option<u32>,
    /// How many ports.
    pub ports: u16,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A host's NIC.
    Host(u32),
    /// A switch's port.
    Switch {
        /// Index in [`Topology::switches`].
        switch: u32,
        /// Its port.
        port: u16,
    },
}

/// A link, full duplex.
#[derive(Clone, Debug)]
pub struct LinkSite {
    /// The lower end (the host, or the switch nearer to the hosts).
    pub a: End,
    /// The upper end.
    pub b: End,
    /// Each way.
    pub rate: Rate,
    /// Propagation, each way.
    pub delay: Time,
}

impl Topology {
    /// Whether a link leads to a host.
    pub fn is_host_link(&self, link: usize) -> bool {
        matches!(self.links[link].a, End::Host(_))
    }
}
