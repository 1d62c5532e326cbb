//! Features that hosts with several NICs do not have.
//!
//! Invariant: hosts of a plan that passes can do all that it asks of their NICs.

use crate::error::Report;
use crate::plan::{FailurePlan, HostPlan};
use crate::settings::Settings;
use crate::topology::Topology;
use crate::transport::TransportKind;
use millpond_core::congestion::Family;
use millpond_core::host::virtual_switch::VirtualSwitchParams;
use millpond_core::registry::Choice;

/// Refuses keys that hosts with several NICs do not have.
pub(crate) fn check(
    s: &Settings,
    topology: &Topology,
    host: &HostPlan,
    failures: &[FailurePlan],
    report: &mut Report,
) {
    if !topology.has_several_nics() {
        return;
    }
    let mut refuse = |is_there: bool, key: &str, what: &str| {
        if is_there {
            let problem = format!("{what}; give each host one link, or leave it out");
            report.impossible(key, problem);
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
    refuse(
        host.stacks.is_some(),
        "host.linux",
        "kernels have no hosts with several NICs beside them",
    );
    let stays = |kind: &&TransportKind| matches!(kind.demands().family, Family::Homa | Family::Uet);
    let fails = |failure: &FailurePlan| topology.is_host_link(failure.link as usize);
    if let Some(kind) = s.kinds().find(stays) {
        let what = format!(
            "connections of \"{}\" do not move to another NIC when a host's link fails",
            kind.kind()
        );
        refuse(failures.iter().any(fails), "failure", &what);
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    const FAILS: &str = "[[failure]]\nlink = [\"host0\", \"tor1\"]\nat = \"10us\"\n";

    #[test]
    fn what_hosts_with_several_nics_do_not_have_is_refused() {
        let plan = |more: &str| {
            let text = format!(
                "duration = \"1ms\"\n[topology]\nkind = \"dual-tor\"\npairs = 2\nhosts-per-pair = \
                 2\nspines = 2\n[[traffic]]\nkind = \"permutation\"\n{more}"
            );
            Scenario::parse("d.toml", &text).unwrap().plan(None, &[], None)
        };
        assert!(plan("").is_ok());
        assert!(plan(&format!("[transport]\nkind = \"mptcp\"\n{FAILS}")).is_ok());
        for (more, part) in [
            ("[host.receive-cpu]\nper-packet = \"1us\"\n".to_string(), "cores for receiving"),
            ("[[limit]]\nkind = \"nrm\"\nhosts = [\"0\"]\n".to_string(), "a limit does not hold"),
            (format!("[transport]\nkind = \"uet\"\n{FAILS}"), "do not move to another NIC"),
            (format!("[transport]\nkind = \"homa\"\n{FAILS}"), "do not move to another NIC"),
        ] {
            let text = plan(&more).expect_err(&more).to_string();
            assert!(text.contains(part) && text.contains("d.toml"), "{more}: {text}");
        }
    }
}
