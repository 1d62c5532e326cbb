//! The layout: which node is simulated in which partition and cell, and how long a window may be.
//!
//! Nodes that speak most to each other stay together: a leaf with its hosts, a pod with its edges,
//! aggregations and hosts are a group; each spine and core switch is one by itself. Packets cross
//! from one partition to another only at a window's edge, so a window is no longer than the
//! smallest delay of a link between two groups. Groups are spread over as few partitions as keep
//! the threads busy, each with its share of the pods and of the cores, since what crosses is
//! copied. Within a partition each switch and its hosts are a cell ([`crate::cells`]), unless a
//! link between two of them is shorter than a window.
//!
//! Invariant: groups, cells and window follow from the topology alone, and no result depends on how
//! many partitions there are: what comes over a link is ordered by the link, whoever shares a
//! partition.

use millpond_core::Time;
use millpond_scenario::topology::{End, Topology};

/// More partitions than this gain nothing: there are no more cores to run them, and every pair has
/// a mailbox.
pub const PARTITIONS_MAX: usize = 48;
/// So many a thread, where there are several: one that is late leaves some of its own to others.
const PARTITIONS_A_THREAD: usize = 4;
/// The window where nothing is cut: only progress and the end of the run are looked at there.
const WINDOW_UNCUT: Time = Time::from_us(100);

/// How many partitions are worth having.
pub fn partitions(threads: usize) -> usize {
    if threads == 1 { 1 } else { (threads * PARTITIONS_A_THREAD).min(PARTITIONS_MAX) }
}

/// The partition and the cell of each node.
#[derive(Clone, Debug)]
pub struct Layout {
    pub partitions: usize,
    /// By NIC's address: (partition, number there).
    pub hosts: Vec<(u16, u32)>,
    pub switches: Vec<(u16, u32)>,
    /// By switch: its cell's number in its partition. A host's is that of its leaves.
    pub cells: Vec<u32>,
    pub window: Time,
}

impl Layout {
    /// Of a topology, in at most so many partitions. `one` puts all nodes in one partition and cell
    /// (with the same windows).
    pub fn new(topology: &Topology, partitions: usize, one: bool) -> Layout {
        let group_of_switch = groups(topology);
        let group = |end: End| match end {
            End::Host(host) => group_of_switch[topology.leaf_of(host) as usize],
            End::Switch { switch, .. } => group_of_switch[switch as usize],
        };
        let cut = topology.links.iter().filter(|link| group(link.a) != group(link.b));
        let lookahead = cut.map(|link| link.delay).min();
        let merge = one || lookahead.is_none_or(|delay| delay == Time::ZERO);
        let window = lookahead.filter(|delay| *delay != Time::ZERO).unwrap_or(WINDOW_UNCUT);

        let with_hosts = (0..topology.leaves())
            .map(|leaf| group_of_switch[leaf as usize] as usize + 1)
            .max()
            .unwrap_or(0);
        let groups = group_of_switch.iter().max().map_or(0, |g| *g as usize + 1);
        let place =
            Spread::new(with_hosts, groups - with_hosts, if merge { 1 } else { partitions });
        let mut taken = vec![(0u32, 0u32); place.partitions];
        let hosts = (0..topology.addresses()).map(|host| {
            let p = place.of(group(End::Host(host)) as usize);
            taken[p].0 += 1;
            (p as u16, taken[p].0 - 1)
        });
        let hosts = hosts.collect();
        let switches = group_of_switch.iter().map(|g| {
            let p = place.of(*g as usize);
            taken[p].1 += 1;
            (p as u16, taken[p].1 - 1)
        });
        let switches: Vec<(u16, u32)> = switches.collect();
        let cells = cells(topology, &switches, if one { Time::MAX } else { window });
        Layout { partitions: place.partitions, hosts, switches, cells, window }
    }

    /// Hosts for which `is_here` holds in partition 0, and all else in partition 1, each of one
    /// cell.
    pub fn of_hosts(topology: &Topology, is_here: impl Fn(u32) -> bool, window: Time) -> Layout {
        let mut taken = [0u32; 2];
        let mut place = |partition: u16| {
            taken[usize::from(partition)] += 1;
            (partition, taken[usize::from(partition)] - 1)
        };
        let hosts = (0..topology.hosts).map(|host| place(u16::from(!is_here(host)))).collect();
        let count = topology.switches.len();
        let switches = (0..count as u32).map(|switch| (1, switch)).collect();
        Layout { partitions: 2, hosts, switches, cells: vec![0; count], window }
    }

    /// The cell of a node in its partition.
    pub fn cell(&self, topology: &Topology, node: End) -> u32 {
        match node {
            End::Host(host) => self.cells[topology.leaf_of(host) as usize],
            End::Switch { switch, .. } => self.cells[switch as usize],
        }
    }
}

/// By switch: its cell's number in its partition, in the order of cells' first switches. Switches
/// that a link connects in less than a window share one, and so do those with a host in common.
fn cells(topology: &Topology, places: &[(u16, u32)], window: Time) -> Vec<u32> {
    let mut joined: Vec<u32> = (0..places.len() as u32).collect();
    for link in topology.links.iter().filter(|link| link.delay < window) {
        if let (End::Switch { switch: a, .. }, End::Switch { switch: b, .. }) = (link.a, link.b) {
            join(&mut joined, a, b);
        }
    }
    shared_leaves(topology).for_each(|(a, b)| join(&mut joined, a, b));
    let mut cells: Vec<u32> = Vec::with_capacity(places.len());
    let mut taken = vec![0; places.iter().map(|place| place.0 as usize + 1).max().unwrap_or(0)];
    for switch in 0..places.len() as u32 {
        let first = first(&mut joined, switch);
        let cell = if first < switch {
            cells[first as usize]
        } else {
            taken[places[switch as usize].0 as usize]
        };
        if first == switch {
            taken[places[switch as usize].0 as usize] += 1;
        }
        cells.push(cell);
    }
    cells
}

/// Groups with hosts are numbered first (by pod), then each switch without a pod by itself.
fn groups(topology: &Topology) -> Vec<u32> {
    let pods = topology.switches.iter().filter_map(|s| s.pod).max().map_or(0, |p| p + 1);
    let (pods, group_of_pod) = joined_pods(topology, pods);
    let mut alone = pods;
    let group = |s: &millpond_scenario::topology::SwitchSite| match s.pod {
        Some(pod) => group_of_pod[pod as usize],
        None => {
            alone += 1;
            alone - 1
        }
    };
    topology.switches.iter().map(group).collect()
}

/// How many groups pods make, and the group of each: pods with a host in common are one, since a
/// host's connections move between its NICs.
fn joined_pods(topology: &Topology, pods: u32) -> (u32, Vec<u32>) {
    if !topology.has_several_nics() {
        return (pods, (0..pods).collect());
    }
    let mut joined: Vec<u32> = (0..pods).collect();
    let pod = |leaf: u32| topology.switches[leaf as usize].pod;
    for (a, b) in shared_leaves(topology) {
        if let (Some(a), Some(b)) = (pod(a), pod(b)) {
            join(&mut joined, a, b);
        }
    }
    let mut groups = 0;
    let mut group_of_pod: Vec<u32> = Vec::with_capacity(joined.len());
    for pod in 0..pods {
        let first = first(&mut joined, pod);
        if first == pod {
            group_of_pod.push(groups);
            groups += 1;
        } else {
            group_of_pod.push(group_of_pod[first as usize]);
        }
    }
    (groups, group_of_pod)
}

/// Pairs of leaves that have a host in common.
fn shared_leaves(topology: &Topology) -> impl Iterator<Item = (u32, u32)> + '_ {
    let further = topology.hosts..topology.addresses();
    further.map(|nic| (topology.leaf_of(topology.host_of(nic)), topology.leaf_of(nic)))
}

/// The first member of a set of joined numbers.
fn first(joined: &mut [u32], mut of: u32) -> u32 {
    while joined[of as usize] != of {
        joined[of as usize] = joined[joined[of as usize] as usize];
        of = joined[of as usize];
    }
    of
}

fn join(joined: &mut [u32], a: u32, b: u32) {
    let (a, b) = (first(joined, a), first(joined, b));
    joined[a.max(b) as usize] = a.min(b);
}

/// Spreads groups over partitions: each has its share of those with hosts, and of those without.
struct Spread {
    pods: usize,
    cores: usize,
    partitions: usize,
}

impl Spread {
    fn new(pods: usize, cores: usize, most: usize) -> Spread {
        Spread { pods, cores, partitions: pods.max(cores).clamp(1, most) }
    }
    fn of(&self, group: usize) -> usize {
        match group.checked_sub(self.pods) {
            None => group * self.partitions / self.pods,
            Some(core) => core * self.partitions / self.cores,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_scenario::Scenario;
    use millpond_scenario::plan::Plan;

    fn plan(text: &str) -> Plan {
        let text = format!(
            "duration = \"1ms\"\n[[traffic]]\nkind = \"permutation\"\nsize = \
             \"1KB\"\n[topology]\n{text}"
        );
        Scenario::parse("t.toml", &text).unwrap().plan(None, &[], None).unwrap()
    }

    const FAT_TREE: &str =
        "kind = \"fat-tree\"\nk = 4\nhost-link.delay = \"100ns\"\nfabric-link.delay = \"1us\"\n";

    #[test]
    fn a_switch_and_its_hosts_are_a_cell() {
        let t = plan(FAT_TREE).topology;
        let one = Layout::new(&t, 1, false);
        assert_eq!((one.partitions, one.window), (1, Time::from_us(1)));
        assert_eq!(one.cells, (0..20).collect::<Vec<_>>());
        assert_eq!(one.cell(&t, End::Host(5)), 2);
        let two = Layout::new(&t, 2, false);
        assert_eq!(two.partitions, 2);
        assert!(two.hosts.iter().map(|place| place.0).eq((0..16).map(|host| host / 8)));
        let cores: Vec<u16> = two.switches[16..].iter().map(|place| place.0).collect();
        assert_eq!(cores, [0, 0, 1, 1], "cores are shared, too");
        // Edges 0-3 and aggregations 8-11 (by the whole network's numbers) come first, then two
        // cores.
        assert_eq!(
            [0, 3, 4, 7, 8, 15, 16, 19].map(|switch| two.cells[switch]),
            [0, 3, 0, 3, 4, 7, 8, 9]
        );
        assert!(Layout::new(&t, 48, true).cells.iter().all(|cell| *cell == 0));
    }

    #[test]
    fn what_is_nearer_than_a_window_shares_a_cell() {
        let links = "[topology.graph]\nhosts = 2\nswitches = [{ name = \"a\" }, { name = \"b\" }, \
                     { name = \"c\" }]\nlinks = [
            { a = \"host0\", b = \"a\", rate = \"1Gbps\", delay = \"1us\" }, { a = \"host1\", b = \
                     \"b\", rate = \"1Gbps\", delay = \"1us\" },
            { a = \"a\", b = \"c\", rate = \"1Gbps\", delay = \"0us\" }, { a = \"c\", b = \"b\", \
                     rate = \"1Gbps\", delay = \"200us\" }]\n";
        let t = plan(&format!("kind = \"file\"\n{links}")).topology;
        // Its switches: a, b, c. A link without delay cannot be cut.
        let layout = Layout::new(&t, 48, false);
        assert_eq!(
            (layout.partitions, layout.cells, layout.window),
            (1, vec![0, 1, 0], Time::from_us(100))
        );
    }
}
