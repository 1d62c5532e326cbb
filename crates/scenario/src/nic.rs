//! The choice of NICs (`host.nic.choice`): which pair of NICs a connection of hosts with several of
//! them takes, and which one it moves to when a link of a host is down.

use crate::error::{Problem, Report};
use crate::plan::FailurePlan;
use crate::settings::Settings;
use crate::topology::Topology;
use millpond_core::congestion::Family;
use millpond_core::host::virtual_switch::VirtualSwitchParams;
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
    About { summary, source, needs: &[], breaks: &[], restores: &[] }
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

/// Refuses keys that hosts with several NICs do not have.
pub(crate) fn check(
    s: &Settings,
    topology: &Topology,
    (failures, is_divided): (&[FailurePlan], bool),
    report: &mut Report,
) {
    if !topology.has_several_nics() {
        return;
    }
    let mut refuse = |is_there: bool, key: &str, what: &str| {
        if is_there {
            let problem = format!("{what}; give each host one link, or leave it out");
            report.add(s.place(key), Problem::Impossible(problem));
        }
    };
    let has_switch = !matches!(s.edge.virtual_switch, VirtualSwitchParams::None(_));
    refuse(!s.limits.is_empty(), "limit", "a limit does not hold hosts with several NICs");
    refuse(has_switch, "edge.virtual-switch", "a virtual switch serves no host with several NICs");
    refuse(
        s.receive_cpu.is_some(),
        "host.receive-cpu",
        "cores for receiving serve no host with several NICs",
    );
    refuse(is_divided, "host.linux", "kernels have no hosts with several NICs beside them");
    let stays = |kind: &&crate::transport::TransportKind| {
        matches!(kind.demands().family, Family::Homa | Family::Uet)
    };
    let fails = |failure: &FailurePlan| topology.is_host_link(failure.link as usize);
    if let Some(kind) = s.kinds().find(stays) {
        use millpond_core::registry::Choice;
        let what = format!(
            "connections of \"{}\" do not move to another NIC when a host's link fails",
            kind.kind()
        );
        refuse(failures.iter().any(fails), "failure", &what);
    }
}
