//! The kinds of topology and their keys.
//!
//! A link is a table of two keys in a scenario (`host-link = { rate = …, delay = … }`) and two
//! fields here (`host_link_rate`, `host_link_delay`); `keys::GROUPS` names the tables, those of
//! `[capture]` included.

use crate::settings::graph::Graph;
use millpond_core::registry::About;
use millpond_core::{Rate, Time, params, registry};

const fn about(summary: &'static str, source: &'static str) -> About {
    About { summary, source, needs: &[], breaks: &[], restores: &[] }
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
    /// Any network.
    pub struct FileParams {
        /// JSON file of hosts, switches and links, relative to the scenario file: { "hosts": 2,
        /// "switches": [{ "name": "s0", "tier": 0 }], "links": [{ "a": "host0", "b": "s0", "rate":
        /// "10Gbps", "delay": "1us" }, …] }. Hosts are host0, host1, …; tiers may be left out. A
        /// link may have a "name" of its own, by which [[failure]] and [capture] refer to it.
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
    "file" => File { FileParams; FILE },
}
