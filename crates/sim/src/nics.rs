//! Which NICs a connection takes where hosts have several, and when it takes others.
//!
//! Failures and the times at which hosts and routes follow them are in the plan, so the answer is a
//! function of the connection and the time. A host follows its own links when `detect` is over, as
//! the switch at the other end does. It follows other hosts' links, and links between switches,
//! when the routes have changed (`converge`).
//!
//! Invariant: the answer does not depend on what a connection did before, nor on partitions.

use crate::convergence::{Epoch, is_avoided};
use crate::failing;
use millpond_core::random::{hash_name, mix64};
use millpond_core::{FlowId, HostId, Time};
use millpond_scenario::nic::NicChoiceParams;
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::{End, Topology};
use millpond_scenario::traffic::SourceKind;

/// A pair of NICs: the addresses of the sender's and the receiver's.
pub type Pair = (u32, u32);

/// The end of a connection that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    Sender,
    Receiver,
}

impl Asks {
    pub fn other(self) -> Asks {
        if self == Asks::Sender { Asks::Receiver } else { Asks::Sender }
    }
}

/// A plan and its routes over time.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    pub plan: &'a Plan,
    pub epochs: &'a [Epoch],
}

/// The state that a choice of NICs depends on beside the plan.
#[derive(Debug)]
pub struct Nics {
    /// By address: when its host takes its link to be down.
    noticed: Vec<Vec<(Time, Time)>>,
}

impl Nics {
    /// Of a plan; `None`: each host has one NIC.
    pub fn new(plan: &Plan) -> Option<Nics> {
        let topology = &plan.topology;
        let noticed = |nic: u32| failing::noticed(plan, nic);
        topology
            .has_several_nics()
            .then(|| Nics { noticed: (0..topology.addresses()).map(noticed).collect() })
    }

    /// The pair that a connection between two hosts takes at a time, or `before` if none works.
    pub fn choose(
        &self,
        now: Time,
        world: World,
        flow: FlowId,
        class: u16,
        asks: Asks,
        before: Pair,
    ) -> Pair {
        let plan = world.plan;
        let topology = &plan.topology;
        let (src, dst) = (topology.host_of(before.0), topology.host_of(before.1));
        let working = self.working(now, world, asks, src, dst);
        let hash = hash(plan, src, dst, flow);
        let is_level = |pair: &&Pair| topology.nic_number(pair.0) == topology.nic_number(pair.1);
        let level: Vec<Pair> = working.iter().filter(is_level).copied().collect();
        let job = match &plan.traffic.sources[usize::from(class)].kind {
            SourceKind::Job(job) => Some(job),
            _ => None,
        };
        let count = topology.nics(src).count() as u32;
        let from = |rail: u32| {
            let turn = |pair: &&Pair| u32::from(topology.nic_number(pair.0)) >= rail;
            level.iter().find(turn).or(level.first()).copied()
        };
        let named = job.and_then(|job| job.nic(flow));
        let found = match (named, &plan.host.nic.choice) {
            (Some(nic), _) => from(nic),
            (None, NicChoiceParams::Plane(_)) => by_hash(&level, hash),
            (None, NicChoiceParams::Rail(_)) => {
                from(job.map_or(dst, |job| job.channel(flow)) % count)
            }
            (None, NicChoiceParams::Hash(_)) => None,
        };
        found.or_else(|| nearest(topology, &working, hash)).unwrap_or(before)
    }

    /// The pairs that a connection of subflows or flowcells takes in turn: from its own on one of
    /// each of the sender's NICs that work, with the receiver's NIC of the same number, or with
    /// the nearest where that one does not work.
    pub fn turn(&self, now: Time, world: World, flow: FlowId, asks: Asks, own: Pair) -> Vec<Pair> {
        let topology = &world.plan.topology;
        let (src, dst) = (topology.host_of(own.0), topology.host_of(own.1));
        let working = self.working(now, world, asks, src, dst);
        let hash = hash(world.plan, src, dst, flow);
        let (count, first) = (topology.nics(src).count(), topology.nic_number(own.0));
        let others = topology.nics(src).cycle().skip(usize::from(first) + 1).take(count - 1);
        let further = others.filter_map(|nic| {
            let pairs: Vec<Pair> = working.iter().filter(|pair| pair.0 == nic).copied().collect();
            let is_level = |pair: &&Pair| topology.nic_number(pair.1) == topology.nic_number(nic);
            pairs.iter().find(is_level).copied().or_else(|| nearest(topology, &pairs, hash))
        });
        std::iter::once(own).chain(further).collect()
    }

    /// The pairs of two hosts' NICs that work at a time, by the links that the asking host follows.
    fn working(
        &self,
        now: Time,
        World { plan, epochs }: World,
        asks: Asks,
        src: HostId,
        dst: HostId,
    ) -> Vec<Pair> {
        let topology = &plan.topology;
        let works = |pair: &Pair| {
            let (own, peer) = if asks == Asks::Sender { *pair } else { (pair.1, pair.0) };
            self.is_up(now, own)
                && !plan.failures.iter().any(|f| f.link == peer && is_avoided(f, now))
                && connects(topology, epochs, now, (own, peer))
        };
        let all = topology.nics(src).flat_map(|a| topology.nics(dst).map(move |b| (a, b)));
        all.filter(works).collect()
    }

    /// The last time after `from` and up to `to` at which a host's choice may have become another:
    /// routes changed, or it learned of a link of its own.
    pub fn last_change(
        &self,
        World { plan, epochs }: World,
        nic: u32,
        from: Time,
        to: Time,
    ) -> Option<Time> {
        let own = plan.topology.nics(plan.topology.host_of(nic));
        let own = own.flat_map(|nic| &self.noticed[nic as usize]);
        let own = own.flat_map(|(down, up)| [*down, *up]);
        let all = own.chain(epochs.iter().map(|epoch| epoch.from));
        all.filter(|at| from < *at && *at <= to).max()
    }

    /// Whether a host takes the link of its NIC to be up.
    fn is_up(&self, now: Time, nic: u32) -> bool {
        !self.noticed[nic as usize].iter().any(|(down, up)| *down <= now && now < *up)
    }
}

fn hash(plan: &Plan, src: HostId, dst: HostId, flow: FlowId) -> u64 {
    mix64(
        mix64(mix64(plan.seed) ^ hash_name("nics"))
            ^ mix64(u64::from(src) << 32 | u64::from(dst))
            ^ u64::from(flow),
    )
}

/// Whether routes lead from one NIC to another at a time.
fn connects(topology: &Topology, epochs: &[Epoch], now: Time, (from, to): Pair) -> bool {
    let (leaf, other) = (topology.leaf_of(from), topology.leaf_of(to));
    let past = epochs.iter().rev().skip_while(|epoch| epoch.from > now);
    let changed = past.filter_map(|epoch| epoch.changed.get(&leaf)).next();
    let ports = changed.and_then(|list| list.iter().find(|(to, _)| u32::from(*to) == other));
    match ports {
        Some((_, ports)) if leaf != other => !ports.is_empty(),
        _ => topology.connects(from, to),
    }
}

fn by_hash(pairs: &[Pair], hash: u64) -> Option<Pair> {
    pairs.get((hash % pairs.len().max(1) as u64) as usize).copied()
}

/// Of the pairs with the fewest switches between them: the sender's NIC by the hash, then the
/// receiver's.
fn nearest(topology: &Topology, pairs: &[Pair], hash: u64) -> Option<Pair> {
    let far: Vec<(u32, Pair)> =
        pairs.iter().filter_map(|pair| Some((switches(topology, *pair)?, *pair))).collect();
    let least = far.iter().map(|(far, _)| *far).min()?;
    let near = || far.iter().filter(|(far, _)| *far == least).map(|(_, pair)| *pair);
    let mut own: Vec<u32> = near().map(|(nic, _)| nic).collect();
    own.dedup();
    let nic = own[(hash % own.len() as u64) as usize];
    let others: Vec<Pair> = near().filter(|(own, _)| *own == nic).collect();
    by_hash(&others, mix64(hash))
}

/// How many switches a shortest path between two NICs has.
fn switches(topology: &Topology, (from, to): Pair) -> Option<u32> {
    let (mut at, leaf) = (topology.leaf_of(from), topology.leaf_of(to));
    let mut count = u32::from(!topology.switches[at as usize].is_joint);
    while at != leaf {
        let port = *topology.routes[at as usize].towards_leaf(leaf as u16).first()?;
        let link = &topology.links[topology.link_at(at, port) as usize];
        let here = End::Switch { switch: at, port };
        let End::Switch { switch, .. } = (if link.a == here { link.b } else { link.a }) else {
            return None;
        };
        at = switch;
        count += 1;
    }
    Some(count)
}
