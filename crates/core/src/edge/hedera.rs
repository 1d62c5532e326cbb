//! Hedera: one scheduler for the whole network gives each large flow a path that has room for what
//! the flow would get if only the hosts' NICs limited it.
//!
//! Follows Al-Fares, Radhakrishnan, Raghavan, Huang, Vahdat: Hedera: Dynamic flow scheduling for
//! data center networks, NSDI 2010: flows are found by the edge's counters, their natural demands
//! are estimated, and Global First Fit places them. Every other flow stays on the path that its
//! hash has drawn, as under ECMP.
//!
//! | function | step |
//! |---|---|
//! | [`Scheduler::round`] | finds large flows: over a share of their NIC since the last round |
//! | [`estimate`] | estimates demands: senders share evenly, receivers cap, until nothing changes |
//! | `Scheduler::place` | takes the first path whose links have that much left |
//!
//! A large flow stays large, and a flow that has a path keeps the path.
//!
//! A path is a label: it names a tree of [`super::controller`], of which each root has its own,
//! shared links or not. A full flow fits an empty link: what is left may be used up.
//!
//! Invariant: rates are whole bits a second and flows are taken in the order of their numbers, so a
//! round depends on what was counted alone.

use super::controller::{Network, Tree};
use super::rule::{Opening, Rule};
use super::schedule::Order;
use crate::counters::Named;
use crate::packet::{FlowId, HostId};
use crate::registry::{About, PathProperty, Signal};
use crate::units::{Rate, Time};
use std::collections::BTreeMap;

crate::params! {
    /// A central scheduler puts large flows on paths of their own.
    pub struct HederaParams {
        /// From one round of the scheduler to the next. Source: 5s is the paper's.
        #[within(1..)]
        pub period: Time = Time::from_s(5),
        /// A flow is large once it has taken this share of its NIC from one round to the next.
        /// Source: 10 % is the paper's.
        #[within(0..=1)]
        pub threshold: f64 = 0.1,
        /// From a failure until the scheduler uses no path over the broken link; off: never.
        /// Source: ours.
        pub controller_delay: Option<Time> = Some(Time::from_ms(200)),
    }
}

pub(super) const ABOUT: About = About {
    summary: "a flow keeps one path drawn at random, until a central scheduler finds it large and \
              gives it a path with room",
    source: "Al-Fares, Radhakrishnan, Raghavan, Huang, Vahdat: Hedera: Dynamic flow scheduling \
             for data center networks, NSDI 2010",
    needs: &[PathProperty::LabelFixesPath],
    breaks: &[PathProperty::FifoPerFlow],
    provides: &[Signal::Labels],
    reads: &[Signal::Paths],
    ..About::PLAIN
};

/// A flow keeps the label that it began with.
pub(super) const RULE: Rule =
    Rule { opening: Opening::Bytes(u64::MAX), order: Order::RoundRobin, is_first: false };

/// An edge's count of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Which.
    pub flow: FlowId,
    /// Its sender.
    pub src: HostId,
    /// Its receiver.
    pub dst: HostId,
    /// Bytes since it began.
    pub bytes: u64,
}

/// A flow that gets a path, or goes back to its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Which.
    pub flow: FlowId,
    /// Its sender.
    pub src: HostId,
    /// Its label; `None`: the one that it began with.
    pub label: Option<u16>,
}

/// The counts of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rounds with flows under way.
    pub rounds: u64,
    /// Times that a flow was found large.
    pub large: u64,
    /// Times that a flow was given a path.
    pub placed: u64,
    /// Times, once a round, that no path had room for a flow.
    pub crowded: u64,
}

impl Counts {
    /// Reports them by name.
    pub fn report(&self, named: &mut Named) {
        named.add("rounds", self.rounds);
        named.add("large", self.large);
        named.add("placed", self.placed);
        named.add("crowded", self.crowded);
    }
}

/// A flow whose demand is being estimated.
#[derive(Clone, Copy, Debug)]
struct Demand {
    bps: u64,
    /// Its receiver limits it: what it gets is known.
    is_converged: bool,
    /// While its receiver's rate is shared out: it would take more than an equal share.
    is_limited: bool,
}

/// The rate that each flow (sender, receiver) would get of NICs of these rates if nothing else
/// limited it, in bits a second.
pub fn estimate(flows: &[(HostId, HostId)], rate: impl Fn(HostId) -> Rate) -> Vec<u64> {
    let mut demands = vec![Demand { bps: 0, is_converged: false, is_limited: false }; flows.len()];
    let (mut by_src, mut by_dst) =
        (BTreeMap::<HostId, Vec<usize>>::new(), BTreeMap::<HostId, Vec<usize>>::new());
    for (at, (src, dst)) in flows.iter().enumerate() {
        by_src.entry(*src).or_default().push(at);
        by_dst.entry(*dst).or_default().push(at);
    }
    // A round that changes something has a receiver limit one more flow, or more; so there are no
    // more rounds than this.
    for _ in 0..=2 * flows.len() {
        let before: Vec<u64> = demands.iter().map(|demand| demand.bps).collect();
        by_src.iter().for_each(|(src, mine)| share_sender(&mut demands, mine, rate(*src).bps()));
        by_dst.iter().for_each(|(dst, mine)| cap_receiver(&mut demands, mine, rate(*dst).bps()));
        if demands.iter().map(|demand| demand.bps).eq(before) {
            break;
        }
    }
    demands.iter().map(|demand| demand.bps).collect()
}

/// A sender's flows that are not converged share evenly what it has left (the paper's EST-SRC).
fn share_sender(demands: &mut [Demand], mine: &[usize], rate: u64) {
    let taken: u64 =
        mine.iter().map(|at| demands[*at]).filter(|it| it.is_converged).map(|it| it.bps).sum();
    let open: Vec<usize> = mine.iter().copied().filter(|at| !demands[*at].is_converged).collect();
    let share = rate.saturating_sub(taken) / (open.len() as u64).max(1);
    open.iter().for_each(|at| demands[*at].bps = share);
}

/// A receiver of more than its rate gives those that want more than an equal share an equal share
/// of what the others leave (the paper's EST-DST).
fn cap_receiver(demands: &mut [Demand], mine: &[usize], rate: u64) {
    if mine.iter().map(|at| u128::from(demands[*at].bps)).sum::<u128>() <= u128::from(rate) {
        return;
    }
    mine.iter().for_each(|at| demands[*at].is_limited = true);
    let (mut left, mut limited) = (rate, mine.len() as u64);
    let mut share = left / limited;
    loop {
        let small: Vec<usize> = mine
            .iter()
            .copied()
            .filter(|at| demands[*at].is_limited && demands[*at].bps < share)
            .collect();
        if small.is_empty() {
            break;
        }
        for at in &small {
            demands[*at].is_limited = false;
            left -= demands[*at].bps;
        }
        limited -= small.len() as u64;
        share = left / limited.max(1);
    }
    for at in mine.iter().filter(|at| demands[**at].is_limited).copied().collect::<Vec<_>>() {
        demands[at] = Demand { bps: share, is_converged: true, is_limited: true };
    }
}

/// The scheduler's record of a flow.
#[derive(Clone, Copy, Debug)]
struct Known {
    bytes: u64,
    is_large: bool,
    label: Option<u16>,
}

/// Hedera's central scheduler: demands, and the tree of each large flow.
#[derive(Debug)]
pub struct Scheduler {
    network: Network,
    /// By label.
    trees: Vec<Tree>,
    /// By host: its leaf.
    leaves: Vec<u16>,
    /// By host: its NIC's.
    rates: Vec<Rate>,
    params: HederaParams,
    flows: BTreeMap<FlowId, Known>,
    /// The counts.
    pub counts: Counts,
}

impl Scheduler {
    /// Of a network with these paths; of each host its leaf and its NIC's rate.
    pub fn new(
        network: Network,
        trees: Vec<Tree>,
        hosts: &[(u16, Rate)],
        params: &HederaParams,
    ) -> Scheduler {
        let (leaves, rates) = hosts.iter().copied().unzip();
        Scheduler {
            network,
            trees,
            leaves,
            rates,
            params: params.clone(),
            flows: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    /// One round: `readings` are all flows that are under way, in ascending order. No path uses a
    /// link that is not `is_alive`. Returns the changes, in the order of flows.
    pub fn round(
        &mut self,
        readings: &[Reading],
        is_alive: impl Fn(u32) -> bool,
    ) -> Vec<Placement> {
        self.counts.rounds += u64::from(!readings.is_empty());
        let before = std::mem::take(&mut self.flows);
        let mut large = Vec::new();
        for it in readings {
            let known = before.get(&it.flow).copied();
            let known = known.unwrap_or(Known { bytes: 0, is_large: false, label: None });
            let is_large =
                known.is_large || self.is_large(it.src, it.bytes.saturating_sub(known.bytes));
            self.counts.large += u64::from(is_large && !known.is_large);
            self.flows.insert(it.flow, Known { bytes: it.bytes, is_large, ..known });
            if is_large {
                large.push(*it);
            }
        }
        let pairs: Vec<(HostId, HostId)> = large.iter().map(|it| (it.src, it.dst)).collect();
        let demands = estimate(&pairs, |host| self.rates[host as usize]);
        let labels = self.place(&large, &demands, is_alive);
        let mut changes = Vec::new();
        for (it, label) in large.iter().zip(labels) {
            self.counts.crowded += u64::from(label.is_none() && self.crosses(it));
            if let Some(known) = self.flows.get_mut(&it.flow)
                && std::mem::replace(&mut known.label, label) != label
            {
                self.counts.placed += u64::from(label.is_some());
                changes.push(Placement { flow: it.flow, src: it.src, label });
            }
        }
        changes
    }

    /// Whether a flow that took so many bytes since the last round is large.
    fn is_large(&self, src: HostId, bytes: u64) -> bool {
        let (rate, period) = (self.rates[src as usize].bps(), self.params.period.as_ps());
        let whole = u128::from(rate) * u128::from(period) / (8 * 1_000_000_000_000);
        let millionths = (self.params.threshold * 1e6) as u128;
        bytes > 0 && u128::from(bytes) * 1_000_000 >= whole * millionths
    }

    /// Global First Fit: a label a flow; `None`: no path has room, or the flow crosses no fabric.
    fn place(
        &self,
        flows: &[Reading],
        demands: &[u64],
        is_alive: impl Fn(u32) -> bool,
    ) -> Vec<Option<u16>> {
        let mut reserved = vec![[0u128; 2]; self.network.links.len()];
        let mut labels = vec![None; flows.len()];
        let path = |it: &Reading, label: u16| {
            let path = self.path(it, label)?;
            path.iter().all(|(link, _)| is_alive(*link)).then_some(path)
        };
        for (at, it) in flows.iter().enumerate() {
            let Some(label) = self.flows.get(&it.flow).and_then(|known| known.label) else {
                continue;
            };
            if let Some(path) = path(it, label) {
                path.iter().for_each(|(link, way)| {
                    reserved[*link as usize][*way] += u128::from(demands[at])
                });
                labels[at] = Some(label);
            }
        }
        for (at, it) in flows.iter().enumerate().filter(|(_, it)| self.crosses(it)) {
            if labels[at].is_some() {
                continue;
            }
            let fits = |(link, way): &(u32, usize)| {
                reserved[*link as usize][*way] + u128::from(demands[at])
                    <= u128::from(self.network.links[*link as usize].rate.bps())
            };
            let first = (0..self.trees.len() as u16).find_map(|label| {
                Some((label, path(it, label).filter(|path| path.iter().all(fits))?))
            });
            if let Some((label, path)) = first {
                path.iter().for_each(|(link, way)| {
                    reserved[*link as usize][*way] += u128::from(demands[at])
                });
                labels[at] = Some(label);
            }
        }
        labels
    }

    /// Whether a flow leaves its leaf.
    fn crosses(&self, it: &Reading) -> bool {
        self.leaves[it.src as usize] != self.leaves[it.dst as usize]
    }

    /// The links that a label leads a flow over, each with its way: 0 from its first end, 1 from
    /// its second.
    fn path(&self, it: &Reading, label: u16) -> Option<Vec<(u32, usize)>> {
        let (from, to) = (self.leaves[it.src as usize], self.leaves[it.dst as usize]);
        self.network.directed(&self.trees[usize::from(label)], u32::from(from), u32::from(to))
    }
}

#[cfg(test)]
mod tests {
    use super::super::controller;
    use super::*;
    use proptest::prelude::*;

    const NIC: Rate = Rate(3_000_000_000);

    /// The paper's example of four hosts: A sends to B, C and D; B twice to A and once to C; C to A
    /// and D; D twice to B. All converge to a third of a NIC but C's flow to D, which gets what C's
    /// other flow leaves, two thirds.
    #[test]
    fn demands_of_the_papers_example() {
        let (a, b, c, d) = (0, 1, 2, 3);
        let flows =
            [(a, b), (a, c), (a, d), (b, a), (b, a), (b, c), (c, a), (c, d), (d, b), (d, b)];
        let thirds: Vec<u64> =
            estimate(&flows, |_| NIC).iter().map(|bps| bps / 1_000_000_000).collect();
        assert_eq!(thirds, [1, 1, 1, 1, 1, 1, 1, 2, 1, 1]);
    }

    #[test]
    fn a_receiver_gives_small_senders_what_they_want() {
        // Host 0 sends to 9 and three others; hosts 1 and 2 send to 9 alone.
        let flows = [(0, 9), (0, 3), (0, 4), (0, 5), (1, 9), (2, 9)];
        let gbps = |it: u64| it * 1_000_000_000;
        let demands = estimate(&flows, |_| Rate(gbps(8)));
        assert_eq!(demands, [gbps(2), gbps(2), gbps(2), gbps(2), gbps(3), gbps(3)]);
        // A slow receiver leaves its sender's rest to the sender's other flow.
        let demands = estimate(&[(0, 1), (0, 2)], |host| Rate(gbps(if host == 1 { 2 } else { 8 })));
        assert_eq!(demands, [gbps(2), gbps(6)]);
    }

    fn fat_tree(params: &HederaParams) -> Scheduler {
        let network = controller::tests::fat_tree(4);
        let trees = network.paths();
        let hosts: Vec<(u16, Rate)> = (0..16).map(|host| (host / 2, Rate::from_gbps(10))).collect();
        Scheduler::new(network, trees, &hosts, params)
    }

    /// Each host to its like in the next pod, at full rate.
    fn next_pod(bytes: u64) -> Vec<Reading> {
        (0..16).map(|host| Reading { flow: host, src: host, dst: (host + 4) % 16, bytes }).collect()
    }

    fn second() -> HederaParams {
        HederaParams { period: Time::from_s(1), ..HederaParams::default() }
    }

    /// Of a pod's four flows the first takes core 0; the second shares its edge's link to
    /// aggregation 0, so the first core of aggregation 1; the third finds core 0 taken from
    /// aggregation 0, and takes core 1; what is left for the fourth is core 3.
    #[test]
    fn first_fit_in_a_fat_tree_of_four_pods() {
        let mut it = fat_tree(&second());
        assert_eq!(it.trees.iter().map(|tree| tree.root).collect::<Vec<_>>(), [16, 17, 18, 19]);
        assert_eq!(
            it.round(&next_pod(1_000_000), |_| true),
            [],
            "none has taken a tenth of its NIC"
        );
        let labels: Vec<Option<u16>> = it
            .round(&next_pod(1_250_000_000), |_| true)
            .iter()
            .map(|change| change.label)
            .collect();
        assert_eq!(labels, [Some(0), Some(2), Some(1), Some(3)].repeat(4));
        assert_eq!(
            it.round(&next_pod(1_250_000_001), |_| true),
            [],
            "who has a path keeps it, idle or not"
        );
    }

    #[test]
    fn a_flow_without_room_waits_for_one_that_ends() {
        let mut it = fat_tree(&second());
        let reading = |flow, src, dst| Reading { flow, src, dst, bytes: 1 << 30 };
        // Hosts 0 and 1 of edge 0, and a third flow that wants a third full path out of it: there
        // are two.
        it.leaves[4] = 0;
        let flows = [reading(0, 0, 8), reading(1, 1, 12), reading(2, 4, 14)];
        let label = |change: &Placement| (change.flow, change.label);
        assert_eq!(
            it.round(&flows, |_| true).iter().map(label).collect::<Vec<_>>(),
            [(0, Some(0)), (1, Some(2))]
        );
        assert_eq!(
            it.round(&flows[1..], |_| true).iter().map(label).collect::<Vec<_>>(),
            [(2, Some(0))]
        );
        assert_eq!(it.counts, Counts { rounds: 2, large: 3, placed: 3, crowded: 1 });
    }

    #[test]
    fn a_dead_path_is_left() {
        let mut it = fat_tree(&second());
        let flow = [Reading { flow: 7, src: 0, dst: 15, bytes: 1 << 30 }];
        assert_eq!(it.round(&flow, |_| true)[0].label, Some(0));
        let first = it.path(&flow[0], 0).unwrap();
        assert_eq!(first.len(), 4);
        let (up, core) = (first[0].0, first[1].0);
        assert_eq!(
            it.round(&flow, |link| link != core)[0].label,
            Some(1),
            "the same aggregation's other core"
        );
        assert_eq!(it.round(&flow, |link| link != up)[0].label, Some(2));
        assert_eq!(it.round(&flow, |_| false), [Placement { flow: 7, src: 0, label: None }]);
    }

    #[test]
    fn within_a_leaf_there_is_nothing_to_place() {
        let mut it = fat_tree(&second());
        assert_eq!(it.round(&[Reading { flow: 1, src: 0, dst: 1, bytes: 1 << 40 }], |_| true), []);
    }

    proptest! {
        /// Nobody gets more than its NICs have, and who is not limited by its receiver uses up its
        /// sender.
        #[test]
        fn demands_fit_the_nics(pairs in prop::collection::vec((0u32..8, 0u32..8), 1..40)) {
            let demands = estimate(&pairs, |_| NIC);
            for host in 0..8 {
                let sum = |is_mine: &dyn Fn(&(u32, u32)) -> bool| -> u64 {
                    pairs
                        .iter()
                        .zip(&demands)
                        .filter(|(pair, _)| is_mine(pair))
                        .map(|(_, bps)| bps)
                        .sum()
                };
                prop_assert!(
                    sum(&|pair| pair.0 == host) <= NIC.bps()
                        && sum(&|pair| pair.1 == host) <= NIC.bps()
                );
            }
            for (pair, bps) in pairs.iter().zip(&demands) {
                let of = |is_mine: &dyn Fn(&(u32, u32)) -> bool| -> u64 {
                    pairs
                        .iter()
                        .zip(&demands)
                        .filter(|(other, _)| is_mine(other))
                        .map(|(_, bps)| bps)
                        .sum()
                };
                let full = NIC.bps() - 10_000;
                prop_assert!(
                    *bps > 0
                        && (of(&|other| other.0 == pair.0) >= full
                            || of(&|other| other.1 == pair.1) >= full)
                );
            }
        }

        /// First fit places no more on a link than it can carry, unless demands have grown since.
        #[test]
        fn no_link_is_promised_twice(
            pairs in prop::collection::btree_set((0u32..16, 0u32..16), 1..30),
        ) {
            let mut it = fat_tree(&second());
            let flows: Vec<Reading> = (0..)
                .zip(&pairs)
                .filter(|(_, (src, dst))| src != dst)
                .map(|(flow, (src, dst))| Reading { flow, src: *src, dst: *dst, bytes: 1 << 40 })
                .collect();
            it.round(&flows, |_| true);
            let ends: Vec<(HostId, HostId)> = flows.iter().map(|it| (it.src, it.dst)).collect();
            let demands = estimate(&ends, |_| Rate::from_gbps(10));
            let mut used = BTreeMap::new();
            for (reading, bps) in flows.iter().zip(demands) {
                let Some(label) = it.flows[&reading.flow].label else { continue };
                for hop in it.path(reading, label).unwrap() {
                    *used.entry(hop).or_insert(0) += bps;
                }
            }
            prop_assert!(used.values().all(|bps| *bps <= 10_000_000_000));
        }
    }
}
