//! Routes around links that are out of use.
//!
//! Routes are all shortest paths in hops, with every link or without some, so a detour can lead
//! down and up again where no other way is as short. A host hangs on its leaf whatever happens: the
//! end of its own link changes no route.
//!
//! Invariant: what comes out depends on the topology and on which links are out of use, never on
//! what was out of use before.

use super::{End, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// Where routes differ from the topology's own: by switch, in the order of the leaves, a leaf and
/// the ports towards it; none means that it cannot be reached.
pub type Detours = BTreeMap<u32, Vec<(u16, Vec<u16>)>>;

const FAR: u32 = u32::MAX;

impl Topology {
    /// The changes of the routes while the links `down` are out of use.
    pub fn detours(&self, down: &BTreeSet<u32>) -> Detours {
        let mut detours = Detours::new();
        let fabric = down.iter().filter(|link| !self.is_host_link(**link as usize));
        let ends =
            fabric.flat_map(|link| [self.links[*link as usize].a, self.links[*link as usize].b]);
        let mut lost: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
        for end in ends {
            let End::Switch { switch, port } = end else { continue };
            lost.entry(switch).or_default().push(port);
        }
        for leaf in 0..self.leaves() {
            self.detours_to(leaf, down, &lost, &mut detours);
        }
        detours
    }

    /// The changes of the routes to one leaf. As long as each switch keeps a port that leads
    /// nearer, no distance changes, and so nothing does but at the ends of the links.
    fn detours_to(
        &self,
        leaf: u32,
        down: &BTreeSet<u32>,
        lost: &BTreeMap<u32, Vec<u16>>,
        detours: &mut Detours,
    ) {
        let own = |switch: u32| self.routes[switch as usize].towards_leaf(leaf as u16);
        let kept = |(switch, lost): (&u32, &Vec<u16>)| {
            let kept: Vec<u16> =
                own(*switch).iter().filter(|port| !lost.contains(port)).copied().collect();
            (*switch, kept)
        };
        let at_ends = lost.iter().filter(|(switch, _)| **switch != leaf).map(kept);
        let at_ends: Vec<_> =
            at_ends.filter(|(switch, kept)| kept.len() < own(*switch).len()).collect();
        let changes = if at_ends.iter().all(|(_, kept)| !kept.is_empty()) {
            at_ends
        } else {
            let hops = self.hops_to(leaf, down);
            let others = (0..self.switches.len() as u32).filter(|switch| *switch != leaf);
            let all = others.map(|switch| (switch, self.nearer(switch, down, &hops)));
            all.filter(|(switch, ports)| ports != own(*switch)).collect()
        };
        for (switch, ports) in changes {
            detours.entry(switch).or_default().push((leaf as u16, ports));
        }
    }

    /// By switch: how many links lead from it to the leaf at least.
    fn hops_to(&self, leaf: u32, down: &BTreeSet<u32>) -> Vec<u32> {
        let steps = self.flood(leaf, |link, _| !down.contains(&link));
        steps.into_iter().map(|step| step.map_or(FAR, |step| step.count)).collect()
    }

    /// The ports of a switch that lead nearer to the leaf of these hops.
    fn nearer(&self, switch: u32, down: &BTreeSet<u32>, hops: &[u32]) -> Vec<u16> {
        let here = hops[switch as usize];
        let is_nearer = |link: u32| {
            let next = self.across(link, switch).filter(|_| !down.contains(&link));
            next.is_some_and(|next| hops[next as usize] < here)
        };
        let ports = (0..).zip(&self.wiring[switch as usize]);
        ports.filter(|(_, link)| is_nearer(**link)).map(|(port, _)| port).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::topology::{FatTreeParams, LeafSpineParams, TopologyParams};
    use proptest::prelude::*;

    fn leaf_spine(leaves: u32, spines: u32) -> Topology {
        let p = LeafSpineParams { leaves, spines, hosts_per_leaf: 1, ..Default::default() };
        Topology::build(&TopologyParams::LeafSpine(p)).unwrap()
    }
    fn fat_tree(k: u32) -> Topology {
        Topology::build(&TopologyParams::FatTree(FatTreeParams { k, ..Default::default() }))
            .unwrap()
    }
    fn link(t: &Topology, a: &str, b: &str) -> u32 {
        let is = |end: End, name: &str| match end {
            End::Switch { switch, .. } => t.switches[switch as usize].name == name,
            End::Host(_) => false,
        };
        t.links.iter().position(|l| is(l.a, a) && is(l.b, b)).unwrap() as u32
    }

    #[test]
    fn a_leaf_spine_by_hand() {
        let t = leaf_spine(3, 2);
        assert_eq!(t.detours(&BTreeSet::new()), Detours::new());
        // Leaf 0 loses an uplink; the others lose it towards leaf 0 alone; its spine goes by way of
        // them.
        let detours = t.detours(&BTreeSet::from([link(&t, "leaf0", "spine1")]));
        let expected = [
            (0, vec![(1, vec![1]), (2, vec![1])]),
            (1, vec![(0, vec![1])]),
            (2, vec![(0, vec![1])]),
            (4, vec![(0, vec![1, 2])]),
        ];
        assert_eq!(detours, Detours::from(expected));
        // Without its other uplink nobody reaches it, nor it anybody.
        let both =
            t.detours(&BTreeSet::from([link(&t, "leaf0", "spine0"), link(&t, "leaf0", "spine1")]));
        assert_eq!(both[&0], [(1, vec![]), (2, vec![])]);
        assert!([1, 2, 3, 4].iter().all(|switch| both[switch] == [(0, vec![])]));
        // A host's link is no part of any route.
        assert_eq!(t.detours(&BTreeSet::from([0])), Detours::new());
    }

    #[test]
    fn a_fat_tree_avoids_what_no_longer_leads_down() {
        let t = fat_tree(4);
        // Edge 2 (pod 1) loses aggregation 2, the first of its pod (switch 10): no other edge sends
        // to it by first aggregation switches.
        let detours = t.detours(&BTreeSet::from([link(&t, "edge2", "agg2")]));
        for edge in [0, 1, 3, 4, 7] {
            assert_eq!(detours[&edge], [(2, vec![3])], "edge{edge}");
        }
        assert_eq!(detours[&2].len(), 7);
        // The aggregation switch itself goes by its other edge, which it shares with the second
        // one.
        assert_eq!(detours[&10], [(2, vec![1])]);
    }

    /// The same by the definition, from nothing.
    fn by_definition(t: &Topology, down: &BTreeSet<u32>) -> Detours {
        let mut detours = Detours::new();
        for leaf in 0..t.leaves() {
            let hops = t.hops_to(leaf, down);
            for switch in (0..t.switches.len() as u32).filter(|s| *s != leaf) {
                let ports = t.nearer(switch, down, &hops);
                if ports != t.routes[switch as usize].towards_leaf(leaf as u16) {
                    detours.entry(switch).or_default().push((leaf as u16, ports));
                }
            }
        }
        detours
    }

    #[test]
    fn routes_of_regular_networks_are_all_shortest_paths() {
        let trees = [2, 4, 6, 8, 12].map(fat_tree);
        let spines = [(1, 1), (1, 3), (2, 1), (7, 3), (3, 8)]
            .map(|(leaves, spines)| leaf_spine(leaves, spines));
        for t in trees.iter().chain(&spines) {
            assert_eq!(
                by_definition(t, &BTreeSet::new()),
                Detours::new(),
                "{} switches",
                t.switches.len()
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 60,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Whatever fails: all shortest paths over the links that are left, and amended routes are
        /// these.
        #[test]
        fn detours_are_all_shortest_paths_over_what_is_left(
            (leaves, spines, tree) in (2u32..5, 1u32..5, any::<bool>()),
            down in prop::collection::btree_set(0u32..64, 0..8),
        ) {
            let t = if tree { fat_tree(4) } else { leaf_spine(leaves, spines) };
            let down: BTreeSet<u32> =
                down.into_iter().filter(|link| (*link as usize) < t.links.len()).collect();
            let detours = t.detours(&down);
            prop_assert_eq!(&detours, &by_definition(&t, &down));
            for (switch, changes) in &detours {
                let routes = t.routes[*switch as usize].amended(changes);
                for leaf in (0..t.leaves() as u16).filter(|leaf| u32::from(*leaf) != *switch) {
                    let changed = changes.iter().find(|(l, _)| *l == leaf);
                    let own = t.routes[*switch as usize].towards_leaf(leaf);
                    prop_assert_eq!(
                        routes.towards_leaf(leaf),
                        changed.map_or(own, |(_, ports)| ports)
                    );
                }
            }
        }
    }

    /// A failure in the largest network: only the leaves that lose their way are searched for.
    #[test]
    fn sixty_five_thousand_hosts_are_rerouted() {
        let t = fat_tree(64);
        let detours =
            t.detours(&BTreeSet::from([link(&t, "edge0", "agg0"), link(&t, "agg1", "core32")]));
        assert!(detours.len() > 2_000);
    }
}
