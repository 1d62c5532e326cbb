//! The kinds of topology and their keys.
//!
//! A link is a table of two keys in a scenario (`host-link = { rate = …, delay = … }`) and two
//! fields here (`host_link_rate`, `host_link_delay`); `keys::GROUPS` names the tables, those of
//! `[capture]` included.

use crate::settings::graph::Graph;
use millpond_core::registry::About;
use millpond_core::{Rate, Time, params, registry};

const fn about(summary: &'static str, source: &'static str) -> About {
    About { summary, source, ..About::PLAIN }
}
const LEAF_SPINE: About = about(
    "two tiers: each leaf has one link to each spine",
    "Al-Fares et al., SIGCOMM 2008 §2.1; Presto, SIGCOMM 2015 §4",
);
const FAT_TREE: About =
    about("three tiers of equal k-port switches", "Al-Fares, Loukissas, Vahdat, SIGCOMM 2008 §3");
const SINGLE_SWITCH: About = about("all hosts on one switch", "");
const FILE: About =
    about("any network, from a list of its links; routes are all shortest paths", "");
const RAIL_OPTIMISED: About = about(
    "a leaf for each rail of a segment's servers, and spines above all leaves",
    "NVIDIA Spectrum-X reference architecture; SimAI's template of it",
);
const DUAL_TOR: About = about(
    "each host on two top-of-rack switches, in one fabric or in two planes that do not meet",
    "Alibaba HPN, SIGCOMM 2024 §4",
);
const DUMBBELL: About = about("two switches with one link between them", "");

params! {
    /// Two tiers.
    pub struct LeafSpineParams {
        /// Leaf switches.
        pub leaves: u32 = 8,
        /// Spine switches; each leaf has one link to each.
        pub spines: u32 = 4,
        /// Hosts on each leaf.
        pub hosts_per_leaf: u32 = 40,
        /// Rate of each host's link, each way.
        pub host_link_rate: Rate = Rate::from_gbps(10),
        /// Propagation delay of each host's link, each way.
        pub host_link_delay: Time = Time::from_us(1),
        /// Rate of the links between switches, each way.
        pub fabric_link_rate: Rate = Rate::from_gbps(40),
        /// Propagation delay of the links between switches, each way.
        pub fabric_link_delay: Time = Time::from_us(5),
    }
}
params! {
    /// Three tiers.
    pub struct FatTreeParams {
        /// Ports of every switch, an even number: k³/4 hosts, k²/2 edge, k²/2 aggregation and k²/4
        /// core switches.
        pub k: u32 = 8,
        /// Rate of each host's link, each way.
        pub host_link_rate: Rate = Rate::from_gbps(10),
        /// Propagation delay of each host's link, each way.
        pub host_link_delay: Time = Time::from_us(1),
        /// Rate of the links between switches, each way.
        pub fabric_link_rate: Rate = Rate::from_gbps(10),
        /// Propagation delay of the links between switches, each way.
        pub fabric_link_delay: Time = Time::from_us(1),
    }
}
params! {
    /// One switch.
    pub struct SingleSwitchParams {
        /// Hosts, one a port.
        pub hosts: u32 = 16,
        /// Rate of each host's link, each way.
        pub host_link_rate: Rate = Rate::from_gbps(10),
        /// Propagation delay of each host's link, each way.
        pub host_link_delay: Time = Time::from_us(1),
    }
}
params! {
    /// Two switches.
    pub struct DumbbellParams {
        /// Hosts on each of the two switches; those on the left have the lower numbers.
        pub hosts_per_side: u32 = 8,
        /// Rate of each host's link, each way.
        pub host_link_rate: Rate = Rate::from_gbps(10),
        /// Propagation delay of each host's link, each way.
        pub host_link_delay: Time = Time::from_us(1),
        /// Rate of the link between the two switches, each way.
        pub bottleneck_rate: Rate = Rate::from_gbps(10),
        /// Propagation delay of the link between the two switches, each way.
        pub bottleneck_delay: Time = Time::from_us(10),
    }
}

params! {
    /// Rails.
    pub struct RailOptimisedParams {
        /// Groups of servers that share leaves.
        pub segments: u32 = 2,
        /// Servers of a segment, one a port of each of its leaves.
        pub servers_per_segment: u32 = 8,
        /// NICs of a server, each on a leaf of its own: a segment has so many leaves.
        pub rails: u32 = 8,
        /// Spine switches; each leaf has one link to each. 0: rails do not meet, and a flow
        /// between two is an error.
        pub spines: u32 = 8,
        /// Off: a server is one host with a NIC for each rail. On: each of its accelerators is a
        /// host, with NIC 0 on the leaf of its rail and NIC 1 on an inner switch of the server;
        /// host number is server times rails plus rail.
        pub inner_switch: bool = false,
        /// Rate of each link of a rail, each way.
        pub host_link_rate: Rate = Rate::from_gbps(400),
        /// Propagation delay of each link of a rail, each way.
        pub host_link_delay: Time = Time::from_ns(500),
        /// Rate of the links between switches, each way.
        pub fabric_link_rate: Rate = Rate::from_gbps(400),
        /// Propagation delay of the links between switches, each way.
        pub fabric_link_delay: Time = Time::from_ns(500),
        /// Rate of the links to inner switches, each way. Source: NVLink of SimAI's templates.
        pub inner_link_rate: Rate = Rate::from_gbps(2880),
        /// Propagation delay of the links to inner switches, each way. Source: SimAI's templates.
        pub inner_link_delay: Time = Time::from_ns(25),
    }
}
params! {
    /// Two switches for each host.
    pub struct DualTorParams {
        /// Pairs of top-of-rack switches: tor0 and tor1 are the first.
        pub pairs: u32 = 4,
        /// Hosts of a pair, each with NIC 0 on the first switch and NIC 1 on the second.
        pub hosts_per_pair: u32 = 16,
        /// Spine switches, each with one link to each top-of-rack switch; of two planes each has so
        /// many.
        pub spines: u32 = 4,
        /// Whether first and second switches of pairs have spines of their own: two planes, which
        /// do not meet.
        pub two_planes: bool = false,
        /// Rate of each link of a host, each way.
        pub host_link_rate: Rate = Rate::from_gbps(200),
        /// Propagation delay of each link of a host, each way.
        pub host_link_delay: Time = Time::from_ns(500),
        /// Rate of the links between switches, each way.
        pub fabric_link_rate: Rate = Rate::from_gbps(400),
        /// Propagation delay of the links between switches, each way.
        pub fabric_link_delay: Time = Time::from_ns(500),
    }
}
params! {
    /// Any network.
    pub struct FileParams {
        /// JSON file of hosts, switches and links, relative to the scenario file: { "hosts": 2,
        /// "switches": [{ "name": "s0", "tier": 0 }], "links": [{ "a": "host0", "b": "s0", "rate":
        /// "10Gbps", "delay": "1us" }, …] }. Hosts are host0, host1, …, and have a NIC for each of
        /// their links, in the order of the list; tiers may be left out. A link may have a "name"
        /// of its own, by which [[failure]] and [capture] refer to it. "numbers" gives hosts other
        /// numbers, which exports have.
        pub path: Option<String> = None,
        /// The same as a table in the scenario itself, instead of a file.
        pub graph: Graph = Graph::default(),
    }
}

registry! {
    /// Which network, with its parameters.
    place: "topology", question: "which network?", default: LeafSpine,
    params: TopologyParams;
    "leaf-spine" => LeafSpine { LeafSpineParams; LEAF_SPINE },
    "fat-tree" => FatTree { FatTreeParams; FAT_TREE },
    "single-switch" => SingleSwitch { SingleSwitchParams; SINGLE_SWITCH },
    "dumbbell" => Dumbbell { DumbbellParams; DUMBBELL },
    "rail-optimised" => RailOptimised { RailOptimisedParams; RAIL_OPTIMISED },
    "dual-tor" => DualTor { DualTorParams; DUAL_TOR },
    "file" => File { FileParams; FILE },
}
