//! Routes: the ports on shortest paths from a switch to a host, looked up in three small reads.
//!
//! A host is reached through the switch that it hangs on (its leaf), so a switch keeps what it
//! needs by leaf and not by host; at the leaf itself the host's own port is the answer. In a
//! network of tiers most leaves are reached alike, by all uplinks: these are *beyond*. The range
//! that is *near*, such as an aggregation switch's pod, is listed leaf by leaf. Switches in the
//! same place of their pods have the same two tables and differ in where the range begins, so a
//! whole tier shares them, and they stay in the cache.
//!
//! Invariant: a table's answer depends on the leaf alone, never on which switches share it.

use crate::packet::HostId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where each host hangs; one table for the whole network.
#[derive(Clone, Debug, Default)]
pub struct Attachment {
    /// By host: (the leaf's number among all switches with hosts, the port there).
    pub hosts: Vec<(u16, u16)>,
}

/// A list of ports: where it lies in [`Routes::ports`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    from: u32,
    len: u32,
}

/// One switch's routes: the ports on shortest paths to each host.
#[derive(Clone, Debug)]
pub struct Routes {
    attachment: Arc<Attachment>,
    /// This switch's own leaf number, or `u16::MAX` if no host hangs on it.
    own_leaf: u16,
    /// The first leaf that is near.
    first: u16,
    /// Towards leaves that are not near.
    beyond: Group,
    /// By leaf, from the first on. The own leaf's entry here, or beyond, means nothing.
    near: Arc<[Group]>,
    ports: Arc<[u16]>,
}

/// Lists of ports one after the other, each once.
#[derive(Default)]
struct Lists<'a> {
    ports: Vec<u16>,
    known: BTreeMap<&'a [u16], Group>,
}

impl<'a> Lists<'a> {
    fn group(&mut self, list: &'a [u16]) -> Group {
        *self.known.entry(list).or_insert_with(|| {
            let from = self.ports.len() as u32;
            self.ports.extend_from_slice(list);
            Group { from, len: list.len() as u32 }
        })
    }
}

impl Routes {
    /// Builds the table from the ports towards each leaf, in ascending order each; an empty list
    /// means "unreachable".
    pub fn new(attachment: Arc<Attachment>, own_leaf: Option<u16>, towards: &[Vec<u16>]) -> Routes {
        let mut lists = Lists::default();
        let groups: Vec<Group> = towards.iter().map(|ports| lists.group(ports)).collect();
        let is_other = |leaf: usize| own_leaf.is_none_or(|own| usize::from(own) != leaf);
        let mut users = BTreeMap::new();
        for (_, group) in groups.iter().enumerate().filter(|(leaf, _)| is_other(*leaf)) {
            *users.entry(*group).or_insert(0u32) += 1;
        }
        let beyond = users
            .into_iter()
            .max_by_key(|(_, users)| *users)
            .map_or(Group::default(), |(group, _)| group);
        let differs = |leaf: &usize| is_other(*leaf) && groups[*leaf] != beyond;
        let first = (0..groups.len()).find(differs).unwrap_or(0);
        let end = (first..groups.len()).rev().find(differs).map_or(first, |last| last + 1);
        Routes {
            attachment,
            own_leaf: own_leaf.unwrap_or(u16::MAX),
            first: first as u16,
            beyond,
            near: groups[first..end].into(),
            ports: lists.ports.into(),
        }
    }

    /// Of a switch in a regular network: towards the leaves from `first` on by one list of `near`
    /// each, towards all others by `beyond`.
    pub fn regular(
        attachment: Arc<Attachment>,
        first: u16,
        near: &[Vec<u16>],
        beyond: &[u16],
    ) -> Routes {
        let mut lists = Lists::default();
        let beyond = lists.group(beyond);
        let near = near.iter().map(|ports| lists.group(ports)).collect();
        Routes { attachment, own_leaf: u16::MAX, first, beyond, near, ports: lists.ports.into() }
    }

    /// The same routes of a switch in the same place elsewhere: its own leaf, and the first that is
    /// near.
    pub fn elsewhere(&self, own_leaf: Option<u16>, first: u16) -> Routes {
        Routes { own_leaf: own_leaf.unwrap_or(u16::MAX), first, ..self.clone() }
    }

    /// The same routes with other ports towards some leaves: `changes` has each leaf once.
    pub fn amended(&self, changes: &[(u16, Vec<u16>)]) -> Routes {
        let leaves = || changes.iter().map(|(leaf, _)| usize::from(*leaf));
        let own = (!self.near.is_empty()).then_some(usize::from(self.first));
        let first = leaves().chain(own).min().unwrap_or(0);
        let end = leaves()
            .map(|leaf| leaf + 1)
            .chain(own.map(|own| own + self.near.len()))
            .max()
            .unwrap_or(0);
        let mut near: Vec<Group> = (first..end).map(|leaf| self.group(leaf as u16)).collect();
        let mut lists = Lists { ports: self.ports.to_vec(), known: BTreeMap::new() };
        for (leaf, ports) in changes {
            near[usize::from(*leaf) - first] = lists.group(ports);
        }
        Routes { first: first as u16, near: near.into(), ports: lists.ports.into(), ..self.clone() }
    }

    /// Where each host hangs.
    pub fn attachment(&self) -> &Arc<Attachment> {
        &self.attachment
    }

    #[inline]
    fn group(&self, leaf: u16) -> Group {
        *self.near.get(usize::from(leaf.wrapping_sub(self.first))).unwrap_or(&self.beyond)
    }

    /// The ports on shortest paths to another leaf, by its number among the switches with hosts.
    #[inline]
    pub fn towards_leaf(&self, leaf: u16) -> &[u16] {
        let Group { from, len } = self.group(leaf);
        &self.ports[from as usize..(from + len) as usize]
    }

    /// The ports on shortest paths to `host`.
    #[inline]
    pub fn towards(&self, host: HostId) -> &[u16] {
        let (leaf, port) = &self.attachment.hosts[host as usize];
        if *leaf == self.own_leaf {
            return std::slice::from_ref(port);
        }
        self.towards_leaf(*leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one_host_a_leaf(leaves: u16) -> Arc<Attachment> {
        Arc::new(Attachment { hosts: (0..leaves).map(|leaf| (leaf, 0)).collect() })
    }

    #[test]
    fn amended_routes_change_where_they_are_told_to() {
        let lists = [vec![], vec![2, 3], vec![2, 3], vec![4], vec![2, 3]];
        let routes = Routes::new(one_host_a_leaf(5), Some(0), &lists);
        let amended = routes.amended(&[(1, vec![3]), (3, vec![]), (4, vec![3])]);
        let of = |routes: &Routes| [1, 2, 3, 4].map(|leaf| routes.towards(leaf).to_vec());
        assert_eq!(of(&amended), [vec![3], vec![2, 3], vec![], vec![3]]);
        assert_eq!(of(&routes), [vec![2, 3], vec![2, 3], vec![4], vec![2, 3]], "a new table");
        assert_eq!(amended.towards(0), &[0]);
        let all = routes.amended(&[(1, vec![5]), (2, vec![6]), (3, vec![7]), (4, vec![8])]);
        assert_eq!(of(&all), [vec![5], vec![6], vec![7], vec![8]]);
    }

    #[test]
    fn own_hosts_by_port_and_others_by_leaf() {
        let attachment = Arc::new(Attachment { hosts: vec![(0, 0), (0, 1), (1, 0), (2, 0)] });
        let routes = Routes::new(attachment, Some(0), &[vec![], vec![2, 3], vec![2, 3]]);
        assert_eq!(routes.towards(1), &[1]);
        assert_eq!(routes.towards(2), &[2, 3]);
        assert_eq!(routes.towards(3), &[2, 3]);
        assert!(routes.near.is_empty(), "all that is not its own is beyond");
    }

    #[test]
    fn a_tier_shares_its_tables() {
        let first = Routes::regular(one_host_a_leaf(6), 0, &[vec![0], vec![1]], &[2, 3]);
        let third = first.elsewhere(None, 4);
        assert_eq!(
            [0, 1, 2, 5].map(|leaf| first.towards(leaf)),
            [&[0][..], &[1], &[2, 3], &[2, 3]]
        );
        assert_eq!(
            [0, 3, 4, 5].map(|leaf| third.towards(leaf)),
            [&[2, 3][..], &[2, 3], &[0], &[1]]
        );
        assert!(Arc::ptr_eq(&first.near, &third.near) && Arc::ptr_eq(&first.ports, &third.ports));
    }

    proptest! {
        /// Whatever lists there are, and whatever is changed of them, again and again: each leaf
        /// has the last that it was given.
        #[test]
        fn routes_say_what_they_were_told(
            own in prop::option::of(0u16..12),
            towards in prop::collection::vec(prop::collection::vec(0u16..4, 0..4), 12),
            changes in prop::collection::vec(
                prop::collection::btree_map(0u16..12, prop::collection::vec(0u16..4, 0..4), 0..5),
                0..4,
            ),
        ) {
            let mut routes = Routes::new(one_host_a_leaf(12), own, &towards);
            let mut expected = towards;
            for changes in std::iter::once(BTreeMap::new()).chain(changes) {
                let changes: Vec<_> =
                    changes.into_iter().filter(|(leaf, _)| Some(*leaf) != own).collect();
                routes = routes.amended(&changes);
                for (leaf, ports) in changes {
                    expected[usize::from(leaf)] = ports;
                }
                for (leaf, ports) in expected.iter().enumerate() {
                    let said = routes.towards(leaf as HostId);
                    prop_assert_eq!(said, if own == Some(leaf as u16) { &[0][..] } else { ports });
                }
            }
        }
    }
}
