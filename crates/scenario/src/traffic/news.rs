//! News: how long a host takes to learn what has happened at another.
//!
//! News is there at once at its own host. At another it is after the propagation delay of the
//! quickest way.
//!
//! Invariant: a time depends on the network alone, and not on how it is simulated.

use crate::topology::{End, Topology};
use millpond_core::{HostId, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The quickest ways to some hosts.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// By the leaf where news is awaited: how long it takes from each leaf.
    ways: BTreeMap<u16, Vec<Time>>,
    /// By host: its leaf, and its link's delay.
    hosts: Vec<(u16, Time)>,
}

impl News {
    /// To these hosts, from any.
    pub(crate) fn to(awaiting: impl Iterator<Item = HostId>, topology: &Topology) -> News {
        let hosts = hosts(topology);
        let leaves: BTreeSet<u16> = awaiting.map(|host| hosts[host as usize].0).collect();
        let ways = leaves.into_iter().map(|leaf| (leaf, ways(topology, leaf))).collect();
        News { ways, hosts }
    }

    /// How long news takes from a host to one where it is awaited.
    pub fn way(&self, from: HostId, to: HostId) -> Time {
        if from == to {
            return Time::ZERO;
        }
        let ((leaf, up), (end, down)) = (self.hosts[from as usize], self.hosts[to as usize]);
        up + self.ways.get(&end).map_or(Time::ZERO, |ways| ways[leaf as usize]) + down
    }
}

/// By host: its leaf and its link's delay.
fn hosts(topology: &Topology) -> Vec<(u16, Time)> {
    let leaves = topology.attachment.hosts.iter().map(|(leaf, _)| *leaf);
    leaves.zip(&topology.links).map(|(leaf, link)| (leaf, link.delay)).collect()
}

/// The propagation delay of the quickest way to a leaf from each switch (Dijkstra).
fn ways(topology: &Topology, leaf: u16) -> Vec<Time> {
    let mut links: Vec<Vec<(u32, Time)>> = vec![Vec::new(); topology.switches.len()];
    for link in &topology.links {
        if let (End::Switch { switch: a, .. }, End::Switch { switch: b, .. }) = (link.a, link.b) {
            links[a as usize].push((b, link.delay));
            links[b as usize].push((a, link.delay));
        }
    }
    let mut known = vec![Time::MAX; topology.switches.len()];
    let mut next = BinaryHeap::from([Reverse((Time::ZERO, u32::from(leaf)))]);
    while let Some(Reverse((at, switch))) = next.pop() {
        if at >= known[switch as usize] {
            continue;
        }
        known[switch as usize] = at;
        next.extend(
            links[switch as usize]
                .iter()
                .map(|(other, delay)| Reverse((at.saturating_add(*delay), *other))),
        );
    }
    known
}
