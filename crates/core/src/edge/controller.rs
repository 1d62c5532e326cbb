//! The controller: a pure function from a network to its disjoint trees, and from them to the lists of labels that hosts
//! spread their flowcells over.
//!
//! Section 3.1 of Presto (SIGCOMM 2015). Each tree is rooted at a switch without hosts and uses each of its links alone;
//! in a leaf-spine network with γ links from each leaf to each of ν spines there are νγ. A label names a tree. Switches
//! have one entry for each label and leaf, as the paper's have for each shadow MAC. A list of labels is that of a pair of
//! leaves: all trees that connect them, each as often as its narrowest link between the two says ([`weighted`]); a tree
//! with a dead link between them is left out, and stays in the lists of other pairs.
//!
//! In networks of three tiers the trees are disjoint, too, and so fewer than there are paths.
//!
//! Invariant: no two trees share a link; from every switch of a tree its entries lead to the leaf, over links of the tree
//! alone.

use super::schedule::weighted;
use crate::units::Rate;
use std::collections::VecDeque;

/// No port: the label does not lead there.
pub const NO_PORT: u16 = u16::MAX;

/// A link between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricLink {
    /// Its ends: (switch, port there).
    pub ends: [(u32, u16); 2],
    /// Each way.
    pub rate: Rate,
}

/// The switches and the links between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Switches with hosts: those from 0 to this.
    pub leaves: u32,
    /// All switches.
    pub switches: u32,
    /// The links between switches.
    pub links: Vec<FabricLink>,
}

/// A tree that reaches some or all leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Its root.
    pub root: u32,
    /// By switch: the link towards the root, of those in the tree but the root.
    up: Vec<Option<u32>>,
}

impl Network {
    /// The far end of a link.
    fn across(&self, link: u32, from: u32) -> u32 {
        let [a, b] = self.links[link as usize].ends;
        if a.0 == from { b.0 } else { a.0 }
    }
    /// The port at which a switch has a link.
    fn port(&self, link: u32, at: u32) -> u16 {
        let [a, b] = self.links[link as usize].ends;
        if a.0 == at { a.1 } else { b.1 }
    }

    /// The disjoint trees, in the order of their roots, and of one root in that of its links. Trees of fewer than two
    /// leaves connect nothing and are left out.
    pub fn trees(&self) -> Vec<Tree> {
        let links_at = self.links_at();
        let mut is_used = vec![false; self.links.len()];
        let mut trees = Vec::new();
        for root in self.leaves..self.switches {
            self.trees_of(root, &links_at, &mut is_used, &mut trees);
        }
        trees
    }

    /// A tree for each shortest path between leaves that are farthest apart: those of the switches
    /// farthest from any leaf, as many a root as share none of its links. Trees of different roots
    /// may share links, so that a fat tree has one for each core, where it has fewer disjoint ones.
    pub fn paths(&self) -> Vec<Tree> {
        let links_at = self.links_at();
        let mut heights: Vec<Option<u32>> = (0..self.switches).map(|it| (it < self.leaves).then_some(0)).collect();
        let mut reached: VecDeque<u32> = (0..self.leaves).collect();
        while let Some(at) = reached.pop_front() {
            for link in &links_at[at as usize] {
                let next = self.across(*link, at) as usize;
                if heights[next].is_none() {
                    heights[next] = heights[at as usize].map(|height| height + 1);
                    reached.push_back(next as u32);
                }
            }
        }
        let highest = heights.iter().flatten().max().copied();
        let mut trees = Vec::new();
        for root in (self.leaves..self.switches).filter(|it| heights[*it as usize] == highest) {
            self.trees_of(root, &links_at, &mut vec![false; self.links.len()], &mut trees);
        }
        trees
    }

    /// By switch: its links.
    fn links_at(&self) -> Vec<Vec<u32>> {
        let mut links_at = vec![Vec::new(); self.switches as usize];
        for (link, it) in self.links.iter().enumerate() {
            it.ends.iter().for_each(|(switch, _)| links_at[*switch as usize].push(link as u32));
        }
        links_at
    }

    /// Adds the disjoint trees of `root` over links that are not used, and uses theirs.
    fn trees_of(&self, root: u32, links_at: &[Vec<u32>], is_used: &mut [bool], trees: &mut Vec<Tree>) {
        while let Some(tree) = self.tree(root, links_at, is_used) {
            tree.up.iter().flatten().for_each(|link| is_used[*link as usize] = true);
            trees.push(tree);
        }
    }

    /// The tree of shortest paths from `root` over links that are not used. A leaf is an end: nothing goes through it.
    fn tree(&self, root: u32, links_at: &[Vec<u32>], is_used: &[bool]) -> Option<Tree> {
        let mut up = vec![None; self.switches as usize];
        let (mut reached, mut leaves) = (VecDeque::from([root]), 0);
        while let Some(at) = reached.pop_front() {
            if at < self.leaves {
                leaves += 1;
                continue;
            }
            for link in links_at[at as usize].iter().filter(|link| !is_used[**link as usize]) {
                let next = self.across(*link, at);
                if next != root && up[next as usize].is_none() {
                    up[next as usize] = Some(*link);
                    reached.push_back(next);
                }
            }
        }
        (leaves >= 2).then_some(Tree { root, up })
    }

    /// By label and leaf: the port at switch `at` that leads to the leaf; [`NO_PORT`] where the tree does not, and at the
    /// leaf itself.
    pub fn entries(&self, trees: &[Tree], at: u32) -> Vec<u16> {
        let mut entries = Vec::with_capacity(trees.len() * self.leaves as usize);
        for tree in trees {
            for leaf in 0..self.leaves {
                let path = if at == leaf { None } else { self.path(tree, at, leaf) };
                entries.push(path.and_then(|path| path.first().map(|link| self.port(*link, at))).unwrap_or(NO_PORT));
            }
        }
        entries
    }

    /// The tree's links from one switch to another, in order; `None` if it does not connect them.
    fn path(&self, tree: &Tree, from: u32, to: u32) -> Option<Vec<u32>> {
        let climb = |mut at: u32| {
            let mut links = Vec::new();
            while at != tree.root {
                let link = tree.up[at as usize]?;
                links.push(link);
                at = self.across(link, at);
            }
            Some(links)
        };
        let (mut there, mut back) = (climb(from)?, climb(to)?);
        while !there.is_empty() && there.last() == back.last() {
            there.pop();
            back.pop();
        }
        there.extend(back.into_iter().rev());
        Some(there)
    }

    /// The tree's links from one switch to another, each with its way: 0 from its first end, 1 from
    /// its second.
    pub fn directed(&self, tree: &Tree, from: u32, to: u32) -> Option<Vec<(u32, usize)>> {
        let mut at = from;
        let way = |link: u32| {
            let way = usize::from(self.links[link as usize].ends[0].0 != at);
            at = self.across(link, at);
            (link, way)
        };
        Some(self.path(tree, from, to)?.into_iter().map(way).collect())
    }

    /// The labels over which the leaf `from` reaches the leaf `to`, with their weights as repetitions. A link for which
    /// `is_alive` says no is not gone over. Empty if no tree connects them, as for a leaf and itself.
    pub fn labels(&self, trees: &[Tree], from: u32, to: u32, is_alive: impl Fn(u32) -> bool) -> Vec<u16> {
        let weight = |tree: &Tree| {
            let path = self.path(tree, from, to)?;
            path.iter().map(|link| if is_alive(*link) { self.links[*link as usize].rate.bps() } else { 0 }).min()
        };
        let weights = trees.iter().enumerate().map(|(label, tree)| (label as u16, weight(tree).unwrap_or(0)));
        weighted(&weights.collect::<Vec<_>>())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// `leaves` and `spines` with `parallel` links between any two; a leaf's first `hosts` ports are its hosts'.
    fn clos(leaves: u32, spines: u32, parallel: u32, rates: impl Fn(u32, u32) -> u64) -> Network {
        let mut links = Vec::new();
        for leaf in 0..leaves {
            for up in 0..spines * parallel {
                let (spine, k) = (up / parallel, up % parallel);
                links.push(FabricLink {
                    ends: [(leaf, (4 + up) as u16), (leaves + spine, (leaf * parallel + k) as u16)],
                    rate: Rate::from_gbps(rates(leaf, spine)),
                });
            }
        }
        Network { leaves, switches: leaves + spines, links }
    }

    /// Follows the entries from leaf to leaf; the links on the way.
    fn follow(net: &Network, trees: &[Tree], label: usize, from: u32, to: u32) -> Option<Vec<u32>> {
        let (mut at, mut way) = (from, Vec::new());
        while at != to {
            let port = net.entries(trees, at)[label * net.leaves as usize + to as usize];
            let link = net.links.iter().position(|l| l.ends.contains(&(at, port)))? as u32;
            way.push(link);
            at = net.across(link, at);
            assert!(way.len() <= 8, "a loop");
        }
        Some(way)
    }

    #[test]
    fn the_papers_testbed_has_four_trees() {
        let net = clos(4, 4, 1, |_, _| 10);
        let trees = net.trees();
        assert_eq!(trees.iter().map(|tree| tree.root).collect::<Vec<_>>(), [4, 5, 6, 7]);
        assert_eq!(net.entries(&trees, 0).len(), 16, "trees times leaves");
        assert_eq!(net.labels(&trees, 0, 3, |_| true), [0, 1, 2, 3]);
        assert_eq!(net.labels(&trees, 2, 2, |_| true), []);
    }

    #[test]
    fn parallel_links_are_trees_of_their_own() {
        let net = clos(3, 2, 2, |_, _| 10);
        let trees = net.trees();
        assert_eq!(trees.len(), 4);
        let ways: BTreeSet<Vec<u32>> = (0..4).filter_map(|label| follow(&net, &trees, label, 0, 2)).collect();
        assert_eq!(ways.len(), 4);
        let links: BTreeSet<u32> = ways.into_iter().flatten().collect();
        assert_eq!(links.len(), 8, "they share no link");
    }

    #[test]
    fn a_dead_link_prunes_its_tree_for_the_pairs_that_used_it() {
        let net = clos(4, 4, 1, |_, _| 10);
        let trees = net.trees();
        let dead = net.links.iter().position(|l| l.ends[0].0 == 0 && l.ends[1].0 == 4).unwrap() as u32;
        let labels = |from, to| net.labels(&trees, from, to, |link| link != dead);
        assert_eq!(labels(0, 3), [1, 2, 3]);
        assert_eq!(labels(3, 0), [1, 2, 3]);
        assert_eq!(labels(1, 3), [0, 1, 2, 3]);
    }

    #[test]
    fn a_narrow_link_weighs_less() {
        // A path of 2 among three of 10: uniform spreading would hold the whole to four times 2.
        let net = clos(2, 4, 1, |_, spine| if spine == 3 { 2 } else { 10 });
        let trees = net.trees();
        let labels = net.labels(&trees, 0, 1, |_| true);
        let counts = [0, 1, 2, 3].map(|label| labels.iter().filter(|it| **it == label).count());
        assert_eq!(counts, [5, 5, 5, 1]);
        let whole = |counts: [usize; 4], rates: [f64; 4]| {
            let sum: usize = counts.iter().sum();
            let bound = counts.iter().zip(rates).map(|(count, rate)| rate * sum as f64 / *count as f64);
            bound.fold(f64::INFINITY, f64::min)
        };
        assert_eq!(whole(counts, [10.0, 10.0, 10.0, 2.0]), 32.0);
        assert_eq!(whole([1; 4], [10.0, 10.0, 10.0, 2.0]), 8.0);
    }

    /// Four pods of two edges and two aggregations, four cores: edges 0-7, aggregations 8-15, cores
    /// 16-19.
    pub(in crate::edge) fn fat_tree_of_four_pods() -> Network {
        let mut links = Vec::new();
        let mut link = |a: u32, pa: u32, b: u32, pb: u32| {
            links.push(FabricLink { ends: [(a, pa as u16), (b, pb as u16)], rate: Rate::from_gbps(10) });
        };
        for pod in 0..4 {
            for edge in 0..2 {
                (0..2).for_each(|agg| link(pod * 2 + edge, 2 + agg, 8 + pod * 2 + agg, edge));
            }
            for agg in 0..2 {
                (0..2).for_each(|core| link(8 + pod * 2 + agg, 2 + core, 16 + agg * 2 + core, pod));
            }
        }
        Network { leaves: 8, switches: 20, links }
    }

    /// A path for each core, and all labels of a pair arrive.
    #[test]
    fn paths_of_a_fat_tree_are_its_cores() {
        let net = fat_tree_of_four_pods();
        let trees = net.paths();
        assert_eq!(trees.iter().map(|tree| tree.root).collect::<Vec<_>>(), [16, 17, 18, 19]);
        let ways: BTreeSet<Vec<u32>> = (0..4).filter_map(|label| follow(&net, &trees, label, 0, 7)).collect();
        assert!(ways.len() == 4 && ways.iter().all(|way| way.len() == 4), "{ways:?}");
        assert_eq!(follow(&net, &trees, 3, 0, 1).map(|way| way.len()), Some(2), "within a pod no core is needed");
        assert_eq!(net.labels(&trees, 0, 7, |_| true), [0, 1, 2, 3]);
        let there = net.directed(&trees[0], 0, 7).unwrap();
        assert_eq!(there.iter().map(|(_, way)| *way).collect::<Vec<_>>(), [0, 0, 1, 1], "up twice and down twice");
        assert_eq!(clos(3, 2, 2, |_, _| 10).paths().len(), 4, "parallel links are paths of their own");
    }

    #[test]
    fn a_fat_tree_has_as_many_as_an_edge_has_uplinks() {
        let net = fat_tree_of_four_pods();
        let trees = net.trees();
        let whole = trees.iter().filter(|tree| tree.up[..8].iter().all(Option::is_some)).count();
        assert_eq!(whole, 2, "{:?}", trees.iter().map(|t| t.root).collect::<Vec<_>>());
        for label in net.labels(&trees, 0, 7, |_| true) {
            assert_eq!(follow(&net, &trees, usize::from(label), 0, 7).map(|way| way.len()), Some(4));
        }
    }

    proptest! {
        /// Whatever links are missing: trees share none, entries follow them, and every listed label arrives over links
        /// that are alive.
        #[test]
        fn labels_lead_where_they_should(
            (leaves, spines, parallel) in (2u32..5, 1u32..5, 1u32..3),
            missing in prop::collection::btree_set(0usize..40, 0..6),
            dead in prop::collection::btree_set(0u32..40, 0..6),
        ) {
            let mut net = clos(leaves, spines, parallel, |leaf, spine| 1 + u64::from(leaf + spine));
            let mut number = 0..;
            net.links.retain(|_| !missing.contains(&number.next().unwrap_or(0)));
            let trees = net.trees();
            let mut used = BTreeSet::new();
            for link in trees.iter().flat_map(|tree| tree.up.iter().flatten()) {
                prop_assert!(used.insert(*link), "two trees share a link");
            }
            for from in 0..leaves {
                for to in (0..leaves).filter(|to| *to != from) {
                    for label in net.labels(&trees, from, to, |link| !dead.contains(&link)) {
                        let way = follow(&net, &trees, usize::from(label), from, to).unwrap();
                        prop_assert_eq!(way.len(), 2);
                        prop_assert!(way.iter().all(|link| !dead.contains(link)));
                    }
                }
            }
        }
    }
}
