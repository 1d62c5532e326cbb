//! The choice of NICs (`host.nic.choice`): which pair of NICs a connection of hosts with several of
//! them takes, and which one it moves to when a link of a host is down.

use millpond_core::registry::About;

millpond_core::params! {
    /// Nothing to set.
    pub struct HashedParams {}
}

millpond_core::params! {
    /// Nothing to set.
    pub struct PlaneParams {}
}

millpond_core::params! {
    /// Nothing to set.
    pub struct RailParams {}
}

const fn about(summary: &'static str, source: &'static str) -> About {
    About { summary, source, ..About::PLAIN }
}
const HASH: About = about(
    "by the connection's hash, among the pairs of NICs with the fewest switches between them",
    "IEEE 802.1AX link aggregation, which hashes flows onto a bond's links",
);
const PLANE: About = about(
    "by the connection's hash, and NICs of the same number at both ends: a flow stays in its plane",
    "Alibaba HPN, SIGCOMM 2024: dual-ToR with two planes that do not meet",
);
const RAIL: About = about(
    "NICs of the same number at both ends: that of the collective's channel, or else of the \
     destination's number",
    "NCCL, which gives each channel a NIC of its own",
);

millpond_core::registry! {
    /// Which NICs a connection takes.
    place: "host.nic.choice", question: "which NIC of a host with several takes a connection?",
    default: Hash,
    params: NicChoiceParams;
    "hash" => Hash { HashedParams; HASH },
    "plane" => Plane { PlaneParams; PLANE },
    "rail" => Rail { RailParams; RAIL },
}
