//! The layout: which node is simulated in which partition, and how long a window may be.
//!
//! Nodes that speak most to each other stay together: a leaf with its hosts, a pod with its edges, aggregations and
//! hosts. Spines and core switches make partitions of their own. Packets cross from one partition to another only at a
//! window's edge, so a window is no longer than the smallest delay of a link between two groups.
//!
//! Invariant: layout and window follow from the topology alone, never from the number of threads; and since the order
//! of events does not depend on partitions either, one partition gives the same results as many.

use millpond_core::Time;
use millpond_scenario::topology::{End, Topology};

/// More partitions than this gain nothing: there are no more cores to run them, and every pair has a mailbox.
const PARTITIONS_MAX: usize = 48;
/// The window where nothing is cut: only progress and the end of the run are looked at there.
const WINDOW_UNCUT: Time = Time::from_us(100);

/// Who is where.
#[derive(Clone, Debug)]
pub struct Layout {
    /// How many partitions.
    pub partitions: usize,
    /// By host: (partition, number there).
    pub hosts: Vec<(u16, u32)>,
    /// By switch: (partition, number there).
    pub switches: Vec<(u16, u32)>,
    /// The length of a window.
    pub window: Time,
}

impl Layout {
    /// Of a topology; `one` puts all nodes in one partition (with the same windows).
    pub fn new(topology: &Topology, one: bool) -> Layout {
        let group_of_switch = groups(topology);
        let mut host_group = vec![0u32; topology.hosts as usize];
        for link in &topology.links {
            if let (End::Host(host), End::Switch { switch, .. }) | (End::Switch { switch, .. }, End::Host(host)) =
                (link.a, link.b)
            {
                host_group[host as usize] = group_of_switch[switch as usize];
            }
        }
        let group = |end: End| match end {
            End::Host(host) => host_group[host as usize],
            End::Switch { switch, .. } => group_of_switch[switch as usize],
        };
        let cut = topology.links.iter().filter(|link| group(link.a) != group(link.b));
        let lookahead = cut.map(|link| link.delay).min();
        let merge = one || lookahead.is_none_or(|delay| delay == Time::ZERO);
        let window = lookahead.filter(|delay| *delay != Time::ZERO).unwrap_or(WINDOW_UNCUT);

        let with_hosts = host_group.iter().max().map_or(0, |g| *g as usize + 1);
        let groups = group_of_switch.iter().max().map_or(0, |g| *g as usize + 1);
        let place = Places::new(with_hosts, groups - with_hosts);
        let partition_of = |group: u32| if merge { 0 } else { place.of(group as usize) };
        let partitions = if merge { 1 } else { place.count() };
        let mut taken = vec![(0u32, 0u32); partitions];
        let hosts = host_group.iter().map(|g| {
            let p = partition_of(*g);
            taken[p].0 += 1;
            (p as u16, taken[p].0 - 1)
        });
        let hosts = hosts.collect();
        let switches = group_of_switch.iter().map(|g| {
            let p = partition_of(*g);
            taken[p].1 += 1;
            (p as u16, taken[p].1 - 1)
        });
        Layout { partitions, hosts, switches: switches.collect(), window }
    }
}

/// Groups with hosts are numbered first (by pod), then each switch without a pod by itself.
fn groups(topology: &Topology) -> Vec<u32> {
    let pods = topology.switches.iter().filter_map(|s| s.pod).max().map_or(0, |p| p + 1);
    let mut alone = pods;
    let group = |s: &millpond_scenario::topology::SwitchSite| {
        s.pod.unwrap_or_else(|| {
            alone += 1;
            alone - 1
        })
    };
    topology.switches.iter().map(group).collect()
}

/// Spreads many groups over few partitions, consecutive ones together.
struct Places {
    pods: usize,
    pod_partitions: usize,
    cores: usize,
    core_partitions: usize,
}

impl Places {
    fn new(pods: usize, cores: usize) -> Places {
        let core_partitions = cores.min(PARTITIONS_MAX / 6);
        Places { pods, pod_partitions: pods.min(PARTITIONS_MAX - core_partitions), cores, core_partitions }
    }
    fn of(&self, group: usize) -> usize {
        if group < self.pods {
            group * self.pod_partitions / self.pods
        } else {
            self.pod_partitions + (group - self.pods) * self.core_partitions / self.cores
        }
    }
    fn count(&self) -> usize {
        self.pod_partitions + self.core_partitions
    }
}
