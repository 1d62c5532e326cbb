//! News: how long a host takes to learn what has happened at another.
//!
//! News is there at once at its own host. At another it is after the propagation delay of the
//! quickest way.
//!
//! Invariant: a time depends on the network alone, and not on how it is simulated.

use crate::topology::Topology;
use millpond_core::{HostId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The quickest ways to some hosts.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// By the leaf where news is awaited: how long it takes from each leaf.
    ways: BTreeMap<u16, Vec<Time>>,
    /// By NIC's address: its leaf, and its link's delay.
    nics: Vec<(u16, Time)>,
    /// By host: its further NICs; empty where all hosts have one.
    further: BTreeMap<HostId, Vec<u32>>,
}

impl News {
    pub(crate) fn to(awaiting: impl Iterator<Item = HostId>, topology: &Topology) -> News {
        let nics = nics(topology);
        let at = awaiting.flat_map(|host| topology.nics(host));
        let leaves: BTreeSet<u16> = at.map(|nic| nics[nic as usize].0).collect();
        // A packet without bytes takes the delays alone.
        let ways = leaves
            .into_iter()
            .map(|leaf| (leaf, topology.soonest(u32::from(leaf), None, 0).0))
            .collect();
        let mut further: BTreeMap<HostId, Vec<u32>> = BTreeMap::new();
        for nic in topology.hosts..topology.addresses() {
            further.entry(topology.host_of(nic)).or_default().push(nic);
        }
        News { ways, nics, further }
    }

    /// How long news takes from a host to one where it is awaited.
    pub fn way(&self, from: HostId, to: HostId) -> Time {
        if from == to {
            return Time::ZERO;
        }
        let pairs = self.nics_of(from).flat_map(|a| self.nics_of(to).map(move |b| (a, b)));
        pairs.map(|(a, b)| self.between(a, b)).min().unwrap_or_default()
    }

    /// The addresses of a host's NICs.
    fn nics_of(&self, host: HostId) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(host).chain(self.further.get(&host).into_iter().flatten().copied())
    }

    /// How long news takes from one NIC to another.
    fn between(&self, from: u32, to: u32) -> Time {
        let ((leaf, up), (end, down)) = (self.nics[from as usize], self.nics[to as usize]);
        let way = self.ways.get(&end).map_or(Time::ZERO, |ways| ways[leaf as usize]);
        up.saturating_add(way).saturating_add(down)
    }
}

/// By NIC's address: its leaf and its link's delay.
fn nics(topology: &Topology) -> Vec<(u16, Time)> {
    let leaves = topology.attachment.hosts.iter().map(|(leaf, _)| *leaf);
    leaves.zip(&topology.links).map(|(leaf, link)| (leaf, link.delay)).collect()
}
