//! The controller: a pure function from a network to its disjoint trees, and from them to the lists
//! of labels that hosts spread their flowcells over.
//!
//! Section 3.1 of Presto (SIGCOMM 2015). Each tree is rooted at a switch without hosts and uses
//! each of its links alone; in a leaf-spine network with γ links from each leaf to each of ν spines
//! there are νγ. A label names a tree. Switches have one entry for each label and leaf, as the
//! paper's have for each shadow MAC. A list of labels is that of a pair of leaves: all trees that
//! connect them, each as often as its narrowest link between the two allows ([`weighted`]); a tree
//! with a dead link between them is left out, and stays in the lists of other pairs.
//!
//! In networks of three tiers the trees are disjoint, too, and so fewer than there are paths.
//!
//! Nothing here grows as pairs of leaves or as switches times leaves. In a tree a switch's entries
//! are one port, up, but for the leaves below it. Lists are those of pairs of *classes*: leaves
//! that lie on the same side of every link that is dead or narrower than others, which in an intact
//! regular network is one class.
//!
//! Invariant: no two of [`Network::trees`] share a link; from every switch of a tree its entries
//! lead to the leaf, over links of the tree alone.

use super::schedule::weighted;
use crate::units::Rate;
use std::collections::{BTreeMap, VecDeque};

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

/// A switch's entries: by label and leaf, the port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// By label.
    rows: Vec<Row>,
    /// The rows' ports towards leaves that are not as the others.
    ports: Vec<u16>,
}

/// The entries of one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    /// The leaves from `first` on have the `count` ports from `from` on.
    first: u16,
    count: u16,
    from: u32,
    /// All others have this one.
    beyond: u16,
}

impl Entries {
    /// The port that leads to a leaf; [`NO_PORT`] where the label does not lead there.
    #[inline]
    pub fn port(&self, label: u32, leaf: u16) -> u16 {
        let Some(row) = self.rows.get(label as usize) else { return NO_PORT };
        let place = leaf.wrapping_sub(row.first);
        if place < row.count {
            self.ports[row.from as usize + usize::from(place)]
        } else {
            row.beyond
        }
    }

    /// One more label: by `beyond` to all leaves but those of `others`, which are in order.
    fn push(&mut self, beyond: u16, others: &[(u16, u16)]) {
        let (first, from) = (others.first().map_or(0, |(leaf, _)| *leaf), self.ports.len());
        let count = others.last().map_or(0, |(leaf, _)| leaf - first + 1);
        self.ports.resize(from + usize::from(count), beyond);
        for (leaf, port) in others {
            self.ports[from + usize::from(leaf - first)] = *port;
        }
        self.rows.push(Row { first, count, from: from as u32, beyond });
    }
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

    /// The disjoint trees, in the order of their roots, and of one root in that of its links. Trees
    /// of fewer than two leaves connect nothing and are left out.
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
        let mut heights: Vec<Option<u32>> =
            (0..self.switches).map(|it| (it < self.leaves).then_some(0)).collect();
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
    fn trees_of(
        &self,
        root: u32,
        links_at: &[Vec<u32>],
        is_used: &mut [bool],
        trees: &mut Vec<Tree>,
    ) {
        while let Some(tree) = self.tree(root, links_at, is_used) {
            tree.up.iter().flatten().for_each(|link| is_used[*link as usize] = true);
            trees.push(tree);
        }
    }

    /// The tree of shortest paths from `root` over links that are not used. A leaf is an end:
    /// nothing goes through it.
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

    /// By switch: its entries, a row a tree. A leaf has none to itself.
    pub fn entries(&self, trees: &[Tree]) -> Vec<Entries> {
        let mut entries = vec![Entries::default(); self.switches as usize];
        for tree in trees {
            let missing: Vec<(u16, u16)> = (0..self.leaves)
                .filter(|leaf| tree.up[*leaf as usize].is_none())
                .map(|leaf| (leaf as u16, NO_PORT))
                .collect();
            let mut below = vec![Vec::new(); self.switches as usize];
            for leaf in (0..self.leaves).filter(|leaf| tree.up[*leaf as usize].is_some()) {
                below[leaf as usize].push((leaf as u16, NO_PORT));
                for (link, at) in self.climb(tree, leaf) {
                    below[at as usize].push((leaf as u16, self.port(link, at)));
                }
            }
            for (at, mut others) in (0..).zip(below) {
                let up = tree.up[at as usize].map(|link| self.port(link, at));
                if up.is_none() && at != tree.root {
                    entries[at as usize].push(NO_PORT, &[]);
                    continue;
                }
                others.extend_from_slice(&missing);
                others.sort_unstable();
                entries[at as usize].push(up.unwrap_or(NO_PORT), &others);
            }
        }
        entries
    }

    /// The way up a tree: each link, and the switch at its upper end.
    fn climb<'a>(&'a self, tree: &'a Tree, from: u32) -> impl Iterator<Item = (u32, u32)> + 'a {
        let step = |at: u32| tree.up[at as usize].map(|link| (link, self.across(link, at)));
        std::iter::successors(step(from), move |(_, at)| step(*at))
    }

    /// By leaf: its class, numbered in the order of the leaves. The labels that [`Network::labels`]
    /// gives two leaves depend on their classes alone.
    ///
    /// Two leaves of a tree are connected by what the narrowest link between them carries, which
    /// the widest of all leaves' uplinks bounds. So a link matters only where it carries less than
    /// that, and then to the leaves below it.
    pub fn classes(&self, trees: &[Tree], is_alive: impl Fn(u32) -> bool) -> Vec<u32> {
        let rate = |link: u32| self.links[link as usize].rate.bps();
        let mut narrow = vec![false; self.links.len()];
        for tree in trees {
            let uplinks = tree.up[..self.leaves as usize].iter().flatten();
            let widest = uplinks.map(|link| rate(*link)).max().unwrap_or(0);
            for link in tree.up.iter().flatten() {
                narrow[*link as usize] |= rate(*link) < widest || !is_alive(*link);
            }
        }
        let mut known = BTreeMap::new();
        let class = |leaf: u32| {
            let narrow_of = |(label, tree): (usize, _)| {
                let links = self.climb(tree, leaf).map(|(link, _)| link);
                links
                    .filter(|link| narrow[*link as usize])
                    .map(|link| (label, link))
                    .collect::<Vec<_>>()
            };
            let above: Vec<(usize, u32)> = trees.iter().enumerate().flat_map(narrow_of).collect();
            let missing =
                |(label, tree): (usize, &Tree)| tree.up[leaf as usize].is_none().then_some(label);
            let missing: Vec<usize> = trees.iter().enumerate().filter_map(missing).collect();
            let next = known.len() as u32;
            *known.entry((above, missing)).or_insert(next)
        };
        (0..self.leaves).map(class).collect()
    }

    /// The tree's links from one switch to another, in order; `None` if it does not connect them.
    fn path(&self, tree: &Tree, from: u32, to: u32) -> Option<Vec<u32>> {
        let is_in = |at: u32| at == tree.root || tree.up[at as usize].is_some();
        if !is_in(from) || !is_in(to) {
            return None;
        }
        let links = |at: u32| self.climb(tree, at).map(|(link, _)| link).collect::<Vec<u32>>();
        let (mut there, mut back) = (links(from), links(to));
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

    /// The labels over which the leaf `from` reaches the leaf `to`, with their weights as
    /// repetitions. A link that is not `is_alive` is left out. Empty if no tree connects
    /// them, as for a leaf and itself.
    pub fn labels(
        &self,
        trees: &[Tree],
        from: u32,
        to: u32,
        is_alive: impl Fn(u32) -> bool,
    ) -> Vec<u16> {
        let weight = |tree: &Tree| {
            let path = self.path(tree, from, to)?;
            path.iter()
                .map(|link| if is_alive(*link) { self.links[*link as usize].rate.bps() } else { 0 })
                .min()
        };
        let weights =
            trees.iter().enumerate().map(|(label, tree)| (label as u16, weight(tree).unwrap_or(0)));
        weighted(&weights.collect::<Vec<_>>())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// `leaves` and `spines` with `parallel` links between any two; a leaf's first `hosts` ports
    /// are its hosts'.
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

    /// Edges, aggregations and cores of k ports.
    pub(in crate::edge) fn fat_tree(k: u32) -> Network {
        let half = k / 2;
        let (edges, mut links) = (k * half, Vec::new());
        let mut link = |a: u32, pa: u32, b: u32, pb: u32| {
            links.push(FabricLink {
                ends: [(a, pa as u16), (b, pb as u16)],
                rate: Rate::from_gbps(10),
            });
        };
        for edge in 0..edges {
            (0..half).for_each(|agg| {
                link(edge, half + agg, edges + edge / half * half + agg, edge % half)
            });
        }
        for agg in 0..edges {
            (0..half).for_each(|core| {
                link(edges + agg, half + core, 2 * edges + agg % half * half + core, agg / half)
            });
        }
        Network { leaves: edges, switches: 2 * edges + half * half, links }
    }

    /// Follows the entries from leaf to leaf; the links on the way.
    fn follow(net: &Network, trees: &[Tree], label: usize, from: u32, to: u32) -> Option<Vec<u32>> {
        let (mut at, mut way, entries) = (from, Vec::new(), net.entries(trees));
        while at != to {
            let port = entries[at as usize].port(label as u32, to as u16);
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
        let ports = |leaf| [0, 1, 2, 3].map(|label| net.entries(&trees)[0].port(label, leaf));
        assert_eq!((ports(0), ports(3)), ([NO_PORT; 4], [4, 5, 6, 7]));
        assert_eq!(net.labels(&trees, 0, 3, |_| true), [0, 1, 2, 3]);
        assert_eq!(net.labels(&trees, 2, 2, |_| true), []);
    }

    #[test]
    fn parallel_links_are_trees_of_their_own() {
        let net = clos(3, 2, 2, |_, _| 10);
        let trees = net.trees();
        assert_eq!(trees.len(), 4);
        let ways: BTreeSet<Vec<u32>> =
            (0..4).filter_map(|label| follow(&net, &trees, label, 0, 2)).collect();
        assert_eq!(ways.len(), 4);
        let links: BTreeSet<u32> = ways.into_iter().flatten().collect();
        assert_eq!(links.len(), 8, "they share no link");
    }

    #[test]
    fn a_dead_link_prunes_its_tree_for_the_pairs_that_used_it() {
        let net = clos(4, 4, 1, |_, _| 10);
        let trees = net.trees();
        let dead =
            net.links.iter().position(|l| l.ends[0].0 == 0 && l.ends[1].0 == 4).unwrap() as u32;
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
            let bound =
                counts.iter().zip(rates).map(|(count, rate)| rate * sum as f64 / *count as f64);
            bound.fold(f64::INFINITY, f64::min)
        };
        assert_eq!(whole(counts, [10.0, 10.0, 10.0, 2.0]), 32.0);
        assert_eq!(whole([1; 4], [10.0, 10.0, 10.0, 2.0]), 8.0);
    }

    /// A path for each core, and all labels of a pair arrive.
    #[test]
    fn paths_of_a_fat_tree_are_its_cores() {
        let net = fat_tree(4);
        let trees = net.paths();
        assert_eq!(trees.iter().map(|tree| tree.root).collect::<Vec<_>>(), [16, 17, 18, 19]);
        let ways: BTreeSet<Vec<u32>> =
            (0..4).filter_map(|label| follow(&net, &trees, label, 0, 7)).collect();
        assert!(ways.len() == 4 && ways.iter().all(|way| way.len() == 4), "{ways:?}");
        assert_eq!(
            follow(&net, &trees, 3, 0, 1).map(|way| way.len()),
            Some(2),
            "within a pod no core is needed"
        );
        assert_eq!(net.labels(&trees, 0, 7, |_| true), [0, 1, 2, 3]);
        let there = net.directed(&trees[0], 0, 7).unwrap();
        assert_eq!(
            there.iter().map(|(_, way)| *way).collect::<Vec<_>>(),
            [0, 0, 1, 1],
            "up twice and down twice"
        );
        assert_eq!(
            clos(3, 2, 2, |_, _| 10).paths().len(),
            4,
            "parallel links are paths of their own"
        );
    }

    #[test]
    fn a_fat_tree_has_as_many_as_an_edge_has_uplinks() {
        let net = fat_tree(4);
        let trees = net.trees();
        let whole = trees.iter().filter(|tree| tree.up[..8].iter().all(Option::is_some)).count();
        assert_eq!(whole, 2, "{:?}", trees.iter().map(|t| t.root).collect::<Vec<_>>());
        for label in net.labels(&trees, 0, 7, |_| true) {
            assert_eq!(
                follow(&net, &trees, usize::from(label), 0, 7).map(|way| way.len()),
                Some(4)
            );
        }
    }

    #[test]
    fn an_intact_regular_network_has_one_class() {
        for net in [fat_tree(8), clos(6, 4, 2, |_, _| 10)] {
            let trees = net.trees();
            assert_eq!(net.classes(&trees, |_| true), vec![0; net.leaves as usize]);
        }
        // Without a link from edge 5 (pod 1) up, that edge is a class of its own; without one from
        // a pod to its core, the pod is.
        let net = fat_tree(4);
        let trees = net.trees();
        let without = |link: Option<u32>| net.classes(&trees, |it| Some(it) != link);
        assert_eq!(without(trees[0].up[5]), [0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(without(trees[0].up[8 + 4]), [0, 0, 0, 0, 1, 1, 0, 0]);
        assert_eq!(trees[1].root, 9, "the first pod is the top of the trees");
    }

    /// Entries as the definition has them: the first link of the tree's way to the leaf.
    fn by_definition(net: &Network, tree: &Tree, at: u32, leaf: u32) -> u16 {
        let path = if at == leaf { None } else { net.path(tree, at, leaf) };
        path.and_then(|path| path.first().map(|link| net.port(*link, at))).unwrap_or(NO_PORT)
    }

    fn any_network() -> impl Strategy<Value = Network> {
        let clos = (2u32..5, 1u32..5, 1u32..3).prop_map(|(leaves, spines, parallel)| {
            clos(leaves, spines, parallel, |leaf, spine| 1 + u64::from(leaf + spine) % 3)
        });
        let whole = prop_oneof![clos, (1u32..5).prop_map(|half| fat_tree(2 * half))];
        let rates = prop::collection::btree_map(0usize..256, 1u64..20, 0..6);
        (whole, prop::collection::btree_set(0usize..256, 0..8), rates).prop_map(
            |(mut net, missing, rates)| {
                for (link, rate) in rates {
                    if let Some(link) = net.links.get_mut(link) {
                        link.rate = Rate::from_gbps(rate);
                    }
                }
                let mut number = 0..;
                net.links.retain(|_| !missing.contains(&number.next().unwrap_or(0)));
                net
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 48,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Entries are as the definition has them, and lists depend on classes alone, whatever is
        /// missing, dead or slow.
        #[test]
        fn entries_and_classes_equal_the_definition(
            net in any_network(),
            dead in prop::collection::btree_set(0u32..256, 0..6),
        ) {
            for trees in [net.trees(), net.paths()] {
                for (at, entries) in (0..).zip(net.entries(&trees)) {
                    for (label, tree) in (0..).zip(&trees) {
                        for leaf in 0..net.leaves {
                            prop_assert_eq!(
                                entries.port(label, leaf as u16),
                                by_definition(&net, tree, at, leaf)
                            );
                        }
                    }
                    prop_assert_eq!(
                        entries.port(trees.len() as u32, 0),
                        NO_PORT,
                        "an unknown label"
                    );
                }
                let is_alive = |link: u32| !dead.contains(&link);
                let classes = net.classes(&trees, is_alive);
                let mut lists = BTreeMap::new();
                for (from, to) in
                    (0..net.leaves).flat_map(|from| (0..net.leaves).map(move |to| (from, to)))
                {
                    let list = net.labels(&trees, from, to, is_alive);
                    let class = (classes[from as usize], classes[to as usize]);
                    if from != to {
                        prop_assert_eq!(&list, lists.entry(class).or_insert_with(|| list.clone()));
                    }
                }
            }
        }
    }

    proptest! {
        /// Whatever links are missing: trees share none, entries follow them, and every listed
        /// label arrives over links that are alive.
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
