//! Stacks (`host.linux`): in the world `virtual`, which hosts are Linux kernels. The others are
//! modelled, as all are in the simulator.
//!
//! Invariant: in a plan both ends of every flow have one stack, and what only a kernel can do is
//! asked of kernels alone.

use crate::error::Report;
use crate::limit::LimitPlan;
use crate::program::ProgramPlan;
use crate::settings::Settings;
use crate::topology::Topology;
use crate::traffic::{SourceKind, TrafficPlan};
use std::sync::Arc;

/// The hosts and traffics of Linux kernels, where others are modelled.
#[derive(Clone, Debug)]
pub struct Stacks {
    /// By host: whether it is a kernel.
    pub hosts: Vec<bool>,
    /// By class: whether kernels have its flows.
    pub classes: Vec<bool>,
}

/// A plan's stacks; `None`: all hosts are kernels. The report gets every pair of hosts and every
/// key that does not fit.
pub(crate) fn stacks(
    s: &Settings,
    topology: &Topology,
    traffic: &TrafficPlan,
    programs: &[ProgramPlan],
    limits: &[LimitPlan],
    report: &mut Report,
) -> Option<Arc<Stacks>> {
    let members = match s.host.linux.members(topology.hosts) {
        Ok(members) => members?,
        Err(message) => {
            report.wrong("host.linux", message);
            return None;
        }
    };
    if members.len() == topology.hosts as usize {
        return None;
    }
    let mut hosts = vec![false; topology.hosts as usize];
    members.iter().for_each(|host| hosts[*host as usize] = true);
    let classes = classes(traffic, &hosts).into_iter().map(|found| match found {
        Ok(linux) => linux,
        Err((class, (a, b))) => {
            let (kernel, model) = if hosts[a as usize] { (a, b) } else { (b, a) };
            let path = format!("traffic.{}.hosts", traffic.classes[class as usize]);
            let message = format!(
                "has flows between host {kernel}, a Linux kernel by host.linux, and host {model}, \
                 which is modelled: give it hosts that are all the one or all the other"
            );
            report.wrong(&path, message);
            false
        }
    });
    let classes = classes.collect();
    if traffic.dependencies.is_some() {
        let text = "traffic that waits for other traffic (after) runs where all hosts have one \
                    stack: leave host.linux out";
        report.impossible("host.linux", text);
    }
    for program in programs.iter().filter(|program| !hosts[program.host as usize]) {
        let path = format!("program.{}.host", program.name);
        let message = format!("{} is no Linux kernel by host.linux", program.host);
        report.wrong(&path, message);
    }
    for limit in limits {
        if let Some(host) = limit.hosts.iter().find(|host| !hosts[**host as usize]) {
            let path = format!("limit.{}.hosts", limit.name);
            let message = format!("{host} is no Linux kernel by host.linux");
            report.wrong(&path, message);
        }
    }
    Some(Arc::new(Stacks { hosts, classes }))
}

/// A class, and two hosts that a flow of it connects.
type Pair = (u16, (u32, u32));

/// By class: whether kernels have its flows, or a pair of hosts of different stacks.
fn classes(traffic: &TrafficPlan, linux: &[bool]) -> Vec<Result<bool, Pair>> {
    let hosts = linux.len() as u32;
    let mut pairs: Vec<Pair> = traffic.generators.iter().flat_map(|own| own.pairs(hosts)).collect();
    for source in &traffic.sources {
        let own = |pair: (u32, u32)| (source.class, pair);
        match &source.kind {
            SourceKind::Open => {}
            SourceKind::Rpc { connections, .. } => {
                pairs.extend(connections.iter().copied().map(own))
            }
            SourceKind::Probe { pairs: probes, .. } => {
                pairs.extend(probes.iter().map(|pair| own((pair.src, pair.dst))));
            }
            SourceKind::Shuffle { .. } => pairs.extend((0..hosts).map(|host| own((0, host)))),
            SourceKind::Job(job) => {
                let ranks = job.hosts.iter();
                pairs.extend(ranks.map(|host| own((job.hosts[0], *host))));
            }
        }
    }
    let mut classes = vec![Ok(false); traffic.classes.len()];
    for (class, (a, b)) in pairs {
        let known = &mut classes[class as usize];
        match (linux[a as usize], linux[b as usize]) {
            (true, true) if known.is_ok() => *known = Ok(true),
            (one, other) if one != other => *known = Err((class, (a, b))),
            _ => {}
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    const MIXED: &str = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 8\n\
                         [host]\nlinux = [\"0..3\"]\n[[traffic]]\n";

    fn plan(traffic: &str) -> Result<crate::plan::Plan, String> {
        let scenario = Scenario::parse("m.toml", &format!("{MIXED}{traffic}")).unwrap();
        scenario.plan(None, &[], None).map_err(|errors| errors.to_string())
    }

    #[test]
    fn both_ends_of_a_flow_have_one_stack() {
        let fits = [
            "kind = \"permutation\"\nhosts = [\"0..3\"]",
            "kind = \"poisson\"\nhosts = [\"4..7\"]\nsizes = \"10KB\"",
            "kind = \"incast\"\nhosts = [\"4..7\"]\ndegree = 3\nreceiver = 5",
            "kind = \"rpc\"\npairs = [\"0-1\", \"6-7\"]",
            "kind = \"probe\"\nhosts = [\"4..7\"]",
            "kind = \"collective\"\nop = \"all-reduce\"\nhosts = [\"4..7\"]",
        ];
        for traffic in fits {
            let plan = plan(traffic).unwrap_or_else(|text| panic!("{traffic}: {text}"));
            assert!(plan.host.is_linux(3) && !plan.host.is_linux(4));
        }
        let crosses = [
            "kind = \"permutation\"",
            "kind = \"poisson\"\nsizes = \"10KB\"",
            "kind = \"stride\"\nhosts = [\"2..5\"]",
            "kind = \"rpc\"\npairs = [\"0-7\"]",
            "kind = \"shuffle\"",
            "kind = \"collective\"\nop = \"all-reduce\"",
        ];
        for traffic in crosses {
            let text = plan(traffic).expect_err(traffic);
            assert!(text.contains("a Linux kernel by host.linux"), "{traffic}: {text}");
        }
    }

    #[test]
    fn a_traffic_draws_among_its_hosts_alone() {
        for traffic in [
            "kind = \"poisson\"\nhosts = [\"2\", \"5..7\"]\nsizes = \"1KB\"",
            "kind = \"permutation\"\nhosts = [\"2\", \"5..7\"]\nsize = 1",
            "kind = \"incast\"\nhosts = [\"2\", \"5..7\"]\ndegree = 2\ncount = 9\nreceiver = 6",
        ] {
            let text = format!("{MIXED}{traffic}").replace("linux = [\"0..3\"]", "");
            let plan = Scenario::parse("m.toml", &text).unwrap().plan(None, &[], None).unwrap();
            let mut arrivals = plan.traffic.arrivals();
            let flows: Vec<_> = std::iter::from_fn(|| arrivals.next_arrival()).collect();
            assert!(flows.len() >= 4, "{traffic}: {}", flows.len());
            let is_in = |host: u32| host == 2 || (5..8).contains(&host);
            assert!(flows.iter().all(|it| is_in(it.src) && is_in(it.dst) && it.src != it.dst));
            assert!(!traffic.contains("receiver") || flows.iter().all(|it| it.dst == 6));
        }
    }

    #[test]
    fn a_load_is_of_the_traffics_hosts() {
        let flows = |hosts: &str| {
            let text = format!(
                "duration = \"5ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\n\
                 hosts-per-leaf = 4\n[[traffic]]\nkind = \"poisson\"\nsizes = \"1KB\"\n{hosts}"
            );
            let plan = Scenario::parse("m.toml", &text).unwrap().plan(None, &[], None).unwrap();
            let mut arrivals = plan.traffic.arrivals();
            std::iter::from_fn(|| arrivals.next_arrival()).count() as f64
        };
        for base in ["fabric", "host-links"] {
            let all = flows(&format!("load-base = {base:?}"));
            let some = flows(&format!("load-base = {base:?}\nhosts = [\"0..3\", \"4..5\"]"));
            assert!((some / all - 6.0 / 16.0).abs() < 0.02, "{base}: {some} of {all}");
        }
    }

    #[test]
    fn hosts_that_a_traffic_cannot_have_are_refused() {
        for (traffic, part) in [
            ("kind = \"poisson\"\nsizes = 1\nhosts = [\"0..9\"]", "9 is no host"),
            ("kind = \"permutation\"\nhosts = [\"3\"]", "two hosts at least"),
            ("kind = \"shuffle\"\nhosts = [\"4..6\"]", "among all hosts"),
            ("kind = \"incast\"\ndegree = 1\nhosts = [\"4..6\"]\nreceiver = 7", "not among"),
            ("kind = \"rpc\"\nhosts = [\"4..6\"]\npairs = [\"4-7\"]", "not among"),
            ("kind = \"probe\"\nhosts = [\"4..6\"]\npairs = [\"4-7\"]", "not among"),
            ("kind = \"incast\"\ndegree = 3\nhosts = [\"4..6\"]", "of 3 hosts"),
        ] {
            let text = plan(traffic).expect_err(traffic);
            assert!(text.contains(part) && text.contains("m.toml"), "{traffic}: {text}");
        }
    }
}
