//! The controller's output for the edges and the switches of a run: lists of labels by pair of
//! leaves, anew after each failure, and each switch's entries.
//!
//! The controller is [`millpond_core::edge::controller`], a pure function; when its lists change
//! follows from the plan's failures, so they are worked out before the run and no message is
//! exchanged. Switches keep the entries that they were given at first: what a failure changes is
//! over which trees hosts send.
//!
//! Where switches do not follow labels they hash, and the edge writes a hash of flow and flowcell
//! instead (the paper's Presto + ECMP).
//!
//! Invariant: a list depends on the plan and the time alone.

use millpond_core::edge::controller::{Entries, FabricLink, Network, Tree};
use millpond_core::edge::flowcell::{LoadBalancingParams, Rule};
use millpond_core::registry::Choice;
use millpond_core::switch::path::PathParams;
use millpond_core::{HostId, Time};
use millpond_scenario::plan::{FailurePlan, Plan};
use millpond_scenario::topology::{End, Topology};
use std::collections::BTreeMap;

/// The lists from some time on.
#[derive(Debug)]
struct Epoch {
    from: Time,
    classes: Vec<u32>,
    count: u32,
    /// By pair of classes: which list.
    of_classes: Vec<u32>,
}

/// The plan of labels that all edges of a run share.
#[derive(Debug)]
pub struct LabelPlan {
    /// The rule that opens a flowcell, and the order of labels.
    pub rule: Rule,
    pub is_followed: bool,
    /// Of the run, for flows' keys.
    pub seed: u64,
    leaf_of: Vec<u16>,
    /// In the order of time; the first from the beginning.
    epochs: Vec<Epoch>,
    /// All lists that any pair has at any time; the first is that of a leaf and itself. None is
    /// empty.
    lists: Vec<Vec<u16>>,
}

/// The part of a plan that the controller sees.
pub(crate) struct Controller {
    /// The switches and the links between them.
    pub network: Network,
    /// By label: disjoint trees for who spreads each flow, all paths for who picks one.
    pub trees: Vec<Tree>,
    /// By link of the network: its number in the plan.
    pub links: Vec<u32>,
}

impl Controller {
    pub fn new(plan: &Plan) -> Controller {
        let (network, links) = network(&plan.topology);
        let trees = match plan.edge.load_balancing {
            LoadBalancingParams::Hedera(_) => network.paths(),
            _ => network.trees(),
        };
        Controller { network, trees, links }
    }
}

fn network(topology: &Topology) -> (Network, Vec<u32>) {
    let (mut links, mut numbers) = (Vec::new(), Vec::new());
    for (number, link) in topology.links.iter().enumerate() {
        if let (End::Switch { switch: a, port: pa }, End::Switch { switch: b, port: pb }) =
            (link.a, link.b)
        {
            links.push(FabricLink { ends: [(a, pa), (b, pb)], rate: link.rate });
            numbers.push(number as u32);
        }
    }
    (
        Network { leaves: topology.leaves(), switches: topology.switches.len() as u32, links },
        numbers,
    )
}

pub fn entries(plan: &Plan) -> Vec<Entries> {
    if plan.switch.path.kind() != "labels" {
        return Vec::new();
    }
    let Controller { network, trees, .. } = Controller::new(plan);
    network.entries(&trees)
}

impl LabelPlan {
    /// Of a plan whose hosts spread what they send.
    pub fn new(plan: &Plan) -> Option<LabelPlan> {
        let rule = plan.edge.load_balancing.rule()?;
        let is_followed = matches!(plan.switch.path, PathParams::Labels(_));
        let Controller { network, mut trees, links: numbers } = Controller::new(plan);
        trees.truncate(if is_followed { trees.len() } else { 0 });
        let mut labels = LabelPlan {
            rule,
            is_followed,
            seed: plan.seed,
            leaf_of: plan.topology.attachment.hosts.iter().map(|(leaf, _)| *leaf).collect(),
            epochs: Vec::new(),
            lists: vec![vec![0]],
        };
        let mut known = BTreeMap::from([(vec![0], 0)]);
        for from in changes(plan) {
            let delay = plan.edge.load_balancing.controller_delay();
            let is_alive = |link: u32| {
                !plan
                    .failures
                    .iter()
                    .any(|f| f.link == numbers[link as usize] && is_known(f, delay, from))
            };
            labels.epoch(from, &network, &trees, is_alive, &mut known);
        }
        Some(labels)
    }

    fn epoch(
        &mut self,
        from: Time,
        network: &Network,
        trees: &[Tree],
        is_alive: impl Fn(u32) -> bool,
        known: &mut BTreeMap<Vec<u16>, u32>,
    ) {
        let classes = network.classes(trees, &is_alive);
        // The first two leaves of each class stand for it.
        let mut members: Vec<Vec<u32>> = Vec::new();
        for (leaf, class) in (0..).zip(&classes) {
            members.resize(members.len().max(*class as usize + 1), Vec::new());
            if members[*class as usize].len() < 2 {
                members[*class as usize].push(leaf);
            }
        }
        let mut of_classes = Vec::with_capacity(members.len() * members.len());
        for a in &members {
            for b in &members {
                let other = b.iter().find(|leaf| **leaf != a[0]);
                let list = other.map(|leaf| network.labels(trees, a[0], *leaf, &is_alive));
                // A packet to a leaf that cannot be reached is lost with any label.
                let list = list.filter(|list| !list.is_empty()).unwrap_or_else(|| vec![0]);
                let number = *known.entry(list).or_insert_with_key(|list| {
                    self.lists.push(list.clone());
                    self.lists.len() as u32 - 1
                });
                of_classes.push(number);
            }
        }
        self.epochs.push(Epoch { from, classes, count: members.len() as u32, of_classes });
    }

    /// The times from which lists are others than before; the first is zero.
    pub fn changes(&self) -> impl Iterator<Item = Time> + '_ {
        self.epochs.iter().map(|epoch| epoch.from)
    }

    /// The labels from one host to another, at a time. Hosts of one leaf need none.
    #[inline]
    pub fn between(&self, now: Time, src: HostId, dst: HostId) -> &[u16] {
        let (src, dst) = (self.leaf_of[src as usize], self.leaf_of[dst as usize]);
        if src == dst {
            return &self.lists[0];
        }
        let epoch = &self.epochs[self.epochs.partition_point(|epoch| epoch.from <= now) - 1];
        let class = |leaf: u16| epoch.classes[usize::from(leaf)];
        let pair = class(src) * epoch.count + class(dst);
        &self.lists[epoch.of_classes[pair as usize] as usize]
    }
}

/// When the lists change: at the beginning, and whenever the controller has learned of a link.
fn changes(plan: &Plan) -> Vec<Time> {
    let mut times = vec![Time::ZERO];
    if let Some(delay) = plan.edge.load_balancing.controller_delay() {
        let known =
            plan.failures.iter().flat_map(|f| [f.at, f.until]).filter(|at| *at != Time::MAX);
        times.extend(known.map(|at| at.saturating_add(delay)));
    }
    times.sort();
    times.dedup();
    times
}

/// Whether the controller takes the link to be down at a time.
pub(crate) fn is_known(failure: &FailurePlan, delay: Option<Time>, at: Time) -> bool {
    let Some(delay) = delay else { return false };
    failure.at.saturating_add(delay) <= at && at < failure.until.saturating_add(delay)
}
