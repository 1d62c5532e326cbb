//! Why flows can never end: hosts that no working link joins, and cycles of pauses.
//!
//! **A cut.** A link that is down for good joins nobody. Where no other links join the two hosts of
//! an open flow, the flow never ends.
//!
//! **A deadlock.** A switch that stops its neighbour waits until packets leave that came from
//! there. Some of them wait in queues that other switches have stopped. [`Deadlock::find`] begins
//! with all stops, takes away those that would end if all packets left but the held ones, and goes
//! on until nothing changes. The stops that are left wait for each other and never end.
//!
//! Invariant: what is found follows from the switches' state alone, and is in the order of
//! switches, ports and targets, whatever the partitions.

use crate::equip::pauses;
use crate::partition::Partition;
use crate::switch_node::SwitchNode;
use millpond_core::packet::Packets;
use millpond_core::switch::pause::PauseTarget;
use millpond_core::{FlowId, HostId, Packet, Time};
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::{End, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// A queue of a switch's port that a neighbour has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stop {
    /// The switch whose queue stands still, and the port.
    pub at: (u32, u16),
    /// The part of it that stands still.
    pub target: PauseTarget,
    /// The switch that has stopped it, and the port by which the packets come in there.
    pub by: (u32, u16),
}

/// Stops that wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlock {
    /// A cycle: each waits for packets that the next one holds, and the last one for the first.
    pub cycle: Vec<Stop>,
    /// All stops that never end.
    pub stops: usize,
    /// The flows whose packets are held.
    pub flows: Vec<FlowId>,
}

/// Open flows whose hosts no working link joins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    pub flows: u64,
    /// Their hosts that are apart from most others, in ascending order.
    pub hosts: Vec<HostId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standstill {
    pub at: Time,
    /// The run ended for it, since no open flow can end.
    pub is_end: bool,
    pub open: u64,
    pub cut: Cut,
    /// Stops that wait for each other.
    pub deadlock: Option<Deadlock>,
    /// Why the open flows that are not apart have no hope: of a run that ended without progress.
    pub silence: Option<Silence>,
}

/// The state of open flows in a run without progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// Since when no byte was delivered or acknowledged; `None`: nothing was due any more.
    pub since: Option<Time>,
    /// Flows that no timer of their own lets send again.
    pub waiting: u64,
    /// Flows that timed out in vain, each at least so often.
    pub timed_out: u64,
    pub rounds: u32,
    /// Flows whose timers are not timeouts, or are too far off.
    pub others: u64,
}

/// Which hosts the links join that are not down for good.
#[derive(Clone, Debug)]
pub struct Islands {
    /// By host: the lowest host of its island.
    of: Vec<u32>,
    /// The island of the most hosts.
    main: u32,
}

impl Islands {
    /// Of a plan; `None`: all hosts are joined.
    pub fn of(plan: &Plan) -> Option<Islands> {
        let dead: BTreeSet<u32> = plan
            .failures
            .iter()
            .filter(|f| f.is_outage() && f.until == Time::MAX)
            .map(|f| f.link)
            .collect();
        if dead.is_empty() {
            return None;
        }
        let topology = &plan.topology;
        let hosts = topology.hosts as usize;
        let node = |end: End| match end {
            End::Host(nic) => topology.host_of(nic) as usize,
            End::Switch { switch, .. } => hosts + switch as usize,
        };
        let mut parent: Vec<usize> = (0..hosts + topology.switches.len()).collect();
        for (_, link) in (0u32..).zip(&topology.links).filter(|(index, _)| !dead.contains(index)) {
            let (a, b) = (root(&mut parent, node(link.a)), root(&mut parent, node(link.b)));
            parent[a.max(b)] = a.min(b);
        }
        let of: Vec<u32> = (0..hosts).map(|host| root(&mut parent, host) as u32).collect();
        let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
        of.iter().for_each(|island| *sizes.entry(*island).or_insert(0) += 1);
        let main = sizes
            .iter()
            .max_by_key(|(island, size)| (**size, u32::MAX - **island))
            .map_or(0, |(it, _)| *it);
        (sizes.len() > 1).then_some(Islands { of, main })
    }

    /// Whether no working link leads from one host to the other.
    pub fn are_apart(&self, a: HostId, b: HostId) -> bool {
        self.of[a as usize] != self.of[b as usize]
    }

    /// Of open flows between these hosts, those that are cut.
    pub fn cut(&self, flows: impl Iterator<Item = (HostId, HostId)>) -> Cut {
        let mut hosts = BTreeSet::new();
        let mut count = 0;
        for (a, b) in flows.filter(|(a, b)| self.are_apart(*a, *b)) {
            count += 1;
            hosts.extend([a, b].into_iter().filter(|host| self.of[*host as usize] != self.main));
        }
        Cut { flows: count, hosts: hosts.into_iter().collect() }
    }
}

/// The lowest node that is joined with this one, as far as is known.
fn root(parent: &mut [usize], mut node: usize) -> usize {
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}

/// From when on no failure begins or ends, and the switches follow all of them.
pub fn settled(plan: &Plan) -> Time {
    let ends = plan.failures.iter().flat_map(|failure| {
        let known = failure.detect.max(failure.converge.unwrap_or_default());
        let until = Some(failure.until).filter(|until| *until < Time::MAX);
        [Some(failure.at), until].into_iter().flatten().map(move |at| at.saturating_add(known))
    });
    ends.max().unwrap_or_default()
}

/// The switches of all partitions, by number.
struct Network<'a> {
    topology: &'a Topology,
    /// Links that lose frames: a stop there is not renewed for certain.
    lossy: BTreeSet<u32>,
    switches: BTreeMap<u32, (&'a SwitchNode, &'a Packets)>,
}

/// The contents of each switch's port: packets, and what holds each.
type AllHeld<'a> = BTreeMap<(u32, u16), Vec<(&'a Packet, PauseTarget)>>;

impl<'a> Network<'a> {
    fn new(plan: &'a Plan, partitions: &'a [&mut Partition]) -> Network<'a> {
        let nodes =
            partitions.iter().flat_map(|p| p.switches.iter().map(|node| (node, &p.fabric.packets)));
        Network {
            topology: &plan.topology,
            lossy: plan.failures.iter().map(|failure| failure.link).collect(),
            switches: nodes.map(|(node, packets)| (node.index, (node, packets))).collect(),
        }
    }

    /// All stops of switches by switches.
    fn stops(&self) -> Vec<Stop> {
        let mut stops = Vec::new();
        for (&number, (node, _)) in &self.switches {
            for (port, target) in node.switch.stopped() {
                let link = self.topology.wiring[number as usize][port as usize];
                let site = &self.topology.links[link as usize];
                let here = End::Switch { switch: number, port };
                let other = if site.a == here { site.b } else { site.a };
                if let End::Switch { switch, port: out } = other
                    && !self.lossy.contains(&link)
                {
                    stops.push(Stop { at: (switch, out), target, by: (number, port) });
                }
            }
        }
        stops.sort_unstable();
        stops
    }

    /// The packets that these stops hold.
    fn held(&self, stops: &[Stop]) -> AllHeld<'a> {
        let mut targets: BTreeMap<(u32, u16), Vec<PauseTarget>> = BTreeMap::new();
        stops.iter().for_each(|stop| targets.entry(stop.at).or_default().push(stop.target));
        let of = |((switch, port), targets): (&(u32, u16), &Vec<PauseTarget>)| {
            let (node, packets) = self.switches[switch];
            let held = node.switch.held(*port, targets, packets);
            (
                (*switch, *port),
                held.into_iter().map(|(id, target)| (&packets[id], target)).collect(),
            )
        };
        targets.iter().map(of).collect()
    }

    /// Whether a stop lasts while these packets are held.
    fn lasts(&self, stop: &Stop, held: &AllHeld<'_>) -> bool {
        let (switch, port) = stop.by;
        let left = held
            .range((switch, 0)..=(switch, u16::MAX))
            .flat_map(|(_, held)| held.iter().map(|(it, _)| *it));
        self.switches[&switch].0.switch.stays_stopped(port, stop.target, left)
    }

    /// The first stop, of those that are left, for which this one waits.
    fn waits_for(&self, stop: &Stop, stops: &[Stop], held: &AllHeld<'_>) -> Option<Stop> {
        let (switch, ingress) = stop.by;
        let node = self.switches[&switch].0;
        let mut here = held.range((switch, 0)..=(switch, u16::MAX));
        let (at, target) = here.find_map(|(at, held)| {
            let own = held
                .iter()
                .find(|(packet, _)| node.switch.counts_for(packet, ingress, stop.target))?;
            Some((*at, own.1))
        })?;
        stops.iter().find(|next| next.at == at && next.target == target).copied()
    }
}

impl Deadlock {
    /// The stops that never end, if there are any.
    pub fn find(plan: &Plan, partitions: &[&mut Partition]) -> Option<Deadlock> {
        if !pauses(plan) {
            return None;
        }
        let network = Network::new(plan, partitions);
        let mut stops = network.stops();
        let held = loop {
            if stops.is_empty() {
                return None;
            }
            let held = network.held(&stops);
            let before = stops.len();
            stops.retain(|stop| network.lasts(stop, &held));
            if stops.len() == before {
                break held;
            }
        };
        let mut flows: Vec<FlowId> =
            held.values().flatten().map(|(packet, _)| packet.flow).collect();
        flows.sort_unstable();
        flows.dedup();
        Some(Deadlock { cycle: cycle(&network, &stops, &held), stops: stops.len(), flows })
    }
}

/// A cycle that the first stop leads into, from its first member on.
fn cycle(network: &Network<'_>, stops: &[Stop], held: &AllHeld<'_>) -> Vec<Stop> {
    let mut way: Vec<Stop> = Vec::new();
    let mut next = stops.first().copied();
    while let Some(stop) = next {
        if let Some(from) = way.iter().position(|earlier| *earlier == stop) {
            let mut cycle = way.split_off(from);
            let first = cycle
                .iter()
                .enumerate()
                .min_by_key(|(_, stop)| **stop)
                .map_or(0, |(place, _)| place);
            cycle.rotate_left(first);
            return cycle;
        }
        way.push(stop);
        next = network.waits_for(&stop, stops, held);
    }
    Vec::new()
}
