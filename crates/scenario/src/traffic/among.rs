//! The hosts of one traffic (`traffic.hosts`). A pattern is drawn by places in their list, from 0
//! to one less than there are, and its flows then bear the hosts' own numbers.
//!
//! Invariant: a traffic among all hosts is drawn as if there were no list.

use super::emitted::Emitted;
use crate::topology::{End, Topology};
use millpond_core::switch::route::Attachment;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The hosts among which a traffic runs.
#[derive(Clone, Debug)]
pub(crate) struct Among {
    pub hosts: u32,
    /// Where each hangs, by its place.
    pub attachment: Arc<Attachment>,
    /// By place: the host; `None`: the same number.
    pub members: Option<Arc<[u32]>>,
}

impl Among {
    pub fn all(topology: &Topology) -> Among {
        Among { hosts: topology.hosts, attachment: topology.attachment.clone(), members: None }
    }

    /// These hosts of it, in ascending order.
    pub fn of(topology: &Topology, members: Vec<u32>) -> Among {
        let hosts = members.iter().map(|host| topology.attachment.hosts[*host as usize]);
        let attachment = Arc::new(Attachment { hosts: hosts.collect() });
        Among { hosts: members.len() as u32, attachment, members: Some(members.into()) }
    }

    pub fn host(&self, place: u32) -> u32 {
        self.members.as_ref().map_or(place, |members| members[place as usize])
    }

    /// The place of a host, if it is among them.
    pub fn place(&self, host: u32) -> Option<u32> {
        match &self.members {
            None => (host < self.hosts).then_some(host),
            Some(members) => members.binary_search(&host).ok().map(|place| place as u32),
        }
    }

    /// The leaves that they hang on.
    pub fn leaves(&self) -> usize {
        let leaves: BTreeSet<u16> = self.attachment.hosts.iter().map(|(leaf, _)| *leaf).collect();
        leaves.len()
    }

    /// The sum of their links, in bits a second.
    pub fn host_capacity(&self, topology: &Topology) -> u128 {
        let rate = |place| u128::from(topology.links[self.host(place) as usize].rate.bps());
        (0..self.hosts).map(rate).sum()
    }

    /// The sum of their leaves' uplinks, of each the share of its hosts that are among them.
    pub fn fabric_capacity(&self, topology: &Topology) -> u128 {
        if self.members.is_none() {
            return topology.fabric_capacity();
        }
        let count = |attachment: &Attachment, leaf: u16| {
            attachment.hosts.iter().filter(|(other, _)| *other == leaf).count() as u128
        };
        let uplinks = |leaf: u32| {
            let at_leaf = |end: End| matches!(end, End::Switch { switch, .. } if switch == leaf);
            let fabric = topology.links.iter().skip(topology.hosts as usize);
            let own = fabric.filter(|link| at_leaf(link.a) || at_leaf(link.b));
            own.map(|link| u128::from(link.rate.bps())).sum::<u128>()
        };
        let mut leaves: Vec<(u16, u32)> = (0..self.hosts)
            .map(|place| {
                let leaf = topology.leaf_of(self.host(place));
                (self.attachment.hosts[place as usize].0, leaf)
            })
            .collect();
        leaves.sort_unstable();
        leaves.dedup();
        let share = |(number, leaf): (u16, u32)| {
            let (own, all) = (count(&self.attachment, number), count(&topology.attachment, number));
            uplinks(leaf) * own / all.max(1)
        };
        leaves.into_iter().map(share).sum()
    }
}

/// A draw of a pattern, with the hosts' own numbers in the place of places.
pub(crate) fn named(emitted: Emitted, members: &[u32]) -> Emitted {
    let of = |place: u32| members[place as usize];
    match emitted {
        Emitted::Query { client, degree } => Emitted::Query { client: of(client), degree },
        Emitted::Flow { src, dst, bytes, response, class, of_query } => {
            Emitted::Flow { src: of(src), dst: of(dst), bytes, response, class, of_query }
        }
        numbered => numbered,
    }
}
