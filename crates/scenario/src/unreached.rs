//! Flows between hosts that no path joins. Networks whose parts do not meet have such hosts: hosts
//! forward no packets.
//!
//! Invariant: where a plan passes, each flow, request and message has a path, whatever is drawn.

use crate::error::Report;
use crate::settings::Settings;
use crate::topology::{End, Topology};
use crate::traffic::{Event, JobPlan, SourceKind, TrafficPlan};
use millpond_core::Time;
use millpond_ranks::Work;
use millpond_ranks::collective::Collective;
use millpond_ranks::program::{Action, Program};
use std::collections::{BTreeMap, BTreeSet};

/// Refuses traffic between hosts without a path: of each class the first pair, and how many more.
pub(crate) fn check(s: &Settings, topology: &Topology, traffic: &TrafficPlan, report: &mut Report) {
    if meets_everywhere(topology) {
        return;
    }
    let reaches = |a: u32, b: u32| {
        topology.nics(a).any(|nic| topology.nics(b).any(|other| topology.connects(nic, other)))
    };
    let mut reached: BTreeSet<(u32, u32)> = BTreeSet::new();
    let mut apart: BTreeMap<u16, Vec<(u32, u32)>> = BTreeMap::new();
    let mut flow = |class: u16, (src, dst): (u32, u32)| {
        if !reached.contains(&(src, dst)) {
            match reaches(src, dst) {
                true => drop(reached.insert((src, dst))),
                false => apart.entry(class).or_default().push((src, dst)),
            }
        }
    };
    let horizon = s.run.duration.unwrap_or(Time::END);
    if traffic.is_finite || s.run.duration.is_some() {
        let in_time = traffic.arrivals().map_while(|event| match event {
            Event::Flow(it) => (it.at < horizon).then_some(Some((it.class, (it.src, it.dst)))),
            Event::Query(it) => (it.at < horizon).then_some(None),
        });
        in_time.flatten().for_each(|(class, pair)| flow(class, pair));
    }
    let dependent = traffic.dependencies.iter().flat_map(|graph| &graph.flows);
    dependent.for_each(|it| flow(it.class, (it.src, it.dst)));
    for source in &traffic.sources {
        let mut flow = |pair| flow(source.class, pair);
        match &source.kind {
            SourceKind::Open => (),
            SourceKind::Shuffle { order, .. } => {
                for (src, all) in (0..).zip(order) {
                    all.iter().for_each(|dst| flow((src, *dst)));
                }
            }
            SourceKind::Probe { pairs, .. } => {
                pairs.iter().for_each(|pair| flow((pair.src, pair.dst)))
            }
            SourceKind::Rpc { connections, .. } => connections.iter().copied().for_each(flow),
            SourceKind::Job(job) => of_job(job, flow),
        }
    }
    for (class, mut pairs) in apart {
        let name = &traffic.classes[usize::from(class)];
        let (src, dst) = pairs[0];
        pairs.sort_unstable();
        pairs.dedup();
        let more = match pairs.len() - 1 {
            0 => String::new(),
            more => format!(", and between {more} more pairs of such hosts"),
        };
        let text = format!(
            "{name:?} sends from host{src} to host{dst}, which no path joins{more}; hosts forward \
             no packets"
        );
        let help = "give the two a link, or their switches one, or leave the flow out";
        let keys = ["rows", "file", "hosts", "kind"].map(|key| format!("traffic.{name}.{key}"));
        let at = keys.iter().find(|key| s.is_written(key)).unwrap_or(&keys[3]);
        report.clash(at, text, help);
    }
}

/// Whether one part of the network, whose switches all reach each other, has a NIC of each host.
fn meets_everywhere(topology: &Topology) -> bool {
    // By switch: a switch nearer to the one that stands for its part.
    let mut nearer: Vec<u32> = (0..topology.switches.len() as u32).collect();
    fn part(nearer: &mut [u32], mut at: u32) -> u32 {
        while nearer[at as usize] != at {
            nearer[at as usize] = nearer[nearer[at as usize] as usize];
            at = nearer[at as usize];
        }
        at
    }
    for link in &topology.links {
        if let (End::Switch { switch: a, .. }, End::Switch { switch: b, .. }) = (link.a, link.b) {
            let (a, b) = (part(&mut nearer, a), part(&mut nearer, b));
            nearer[a as usize] = b;
        }
    }
    let mut hosts: BTreeMap<u32, u32> = BTreeMap::new();
    for host in 0..topology.hosts {
        let own = topology.nics(host).map(|nic| part(&mut nearer, topology.leaf_of(nic)));
        for part in own.collect::<BTreeSet<u32>>() {
            *hosts.entry(part).or_default() += 1;
        }
    }
    hosts.values().any(|count| *count == topology.hosts)
}

/// The pairs of hosts between which a job sends.
fn of_job(job: &JobPlan, mut flow: impl FnMut((u32, u32))) {
    let host = |rank: u32| job.hosts[rank as usize];
    match &job.work {
        Work::Collective(work) => {
            for rank in 0..job.count() {
                of_collective(&work.collective, rank, |to| flow((host(rank), host(to))));
            }
        }
        Work::Program { program, .. } => {
            of_program(program, |src, dst| flow((host(src), host(dst))))
        }
    }
}

/// The pairs of ranks between which a program sends.
fn of_program(program: &Program, mut flow: impl FnMut(u32, u32)) {
    for (rank, own) in (0..).zip(&program.ranks) {
        for operation in &own.operations {
            match operation.action {
                Action::Send { to } if to != rank => flow(rank, to),
                Action::Collective { call } => {
                    let call = &program.calls[call as usize];
                    let groups = &program.groups[call.groups as usize];
                    of_collective(&call.collective, groups.place(rank), |to| {
                        flow(rank, groups.rank_at(rank, to));
                    });
                }
                _ => (),
            }
        }
    }
}

/// The ranks that one of a collective sends to.
fn of_collective(collective: &Collective, rank: u32, mut each: impl FnMut(u32)) {
    for lane in 0..collective.lanes() {
        let steps = (0..).take_while(|step| collective.step(rank, lane, *step).is_some());
        steps.for_each(|step| collective.sends(rank, lane, step, |_, send| each(send.to)));
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    /// A ring of four hosts without a switch.
    fn plan(traffic: &str) -> Result<crate::Plan, String> {
        let link = |a: u32| {
            let b = (a + 1) % 4;
            format!("{{ a = \"host{a}\", b = \"host{b}\", rate = \"10Gbps\", delay = \"1us\" }}")
        };
        let links: Vec<String> = (0..4).map(link).collect();
        let text = format!(
            "duration = \"1ms\"\n[topology]\nkind = \"file\"\n[topology.graph]\nhosts = 4\n\
             switches = []\nlinks = [{}]\n[[traffic]]\nname = \"t\"\n{traffic}\n",
            links.join(", ")
        );
        let scenario = Scenario::parse("ring.toml", &text).map_err(|e| e.to_string())?;
        scenario.plan(None, &[], None).map_err(|e| e.to_string())
    }

    #[test]
    fn neighbours_of_a_ring_reach_each_other() {
        for traffic in [
            "kind = \"flows\"\nrows = [[\"0us\", 0, 1, 1000], [\"0us\", 0, 3, 1000]]",
            "kind = \"collective\"\nsize = \"1MB\"",
            "kind = \"permutation\"\nsize = \"1KB\"\nhosts = [\"1..2\"]",
        ] {
            plan(traffic).unwrap_or_else(|error| panic!("{traffic}: {error}"));
        }
    }

    /// Rails that do not meet: traffic on a rail runs, and traffic between rails is refused.
    #[test]
    fn rails_without_spines_carry_the_traffic_of_a_rail() {
        let plan = |inner: bool, rows: &str| {
            let text = format!(
                "duration = \"1ms\"\n[topology]\nkind = \"rail-optimised\"\nsegments = \
                 1\nservers-per-segment = 4\nrails = 2\nspines = 0\ninner-switch = \
                 {inner}\n[[traffic]]\nname = \"t\"\nkind = \"flows\"\nrows = [{rows}]\n"
            );
            let scenario = Scenario::parse("rails.toml", &text).map_err(|e| e.to_string())?;
            scenario
                .plan(None, &[], None)
                .map(|plan| plan.topology.hosts)
                .map_err(|e| e.to_string())
        };
        let on_rails = "[\"0us\", 0, 2, 1000], [\"0us\", 1, 7, 1000], [\"0us\", 0, 1, 1000]";
        assert_eq!(plan(true, on_rails), Ok(8));
        assert_eq!(plan(false, "[\"0us\", 0, 3, 1000]"), Ok(4));
        let apart = "[\"0us\", 0, 3, 1000], [\"1us\", 1, 2, 1000], [\"2us\", 1, 2, 1000]";
        let error = plan(true, apart).unwrap_err();
        let text = "sends from host0 to host3, which no path joins, and between 1 more pairs";
        assert!(error.contains(text) && error.contains("rails.toml:12:"), "{error}");
    }

    #[test]
    fn a_flow_between_hosts_that_no_link_joins_is_an_error_that_names_both() {
        for (traffic, src, dst, line) in [
            ("kind = \"flows\"\nrows = [[\"0us\", 0, 1, 1000], [\"0us\", 3, 1, 1000]]", 3, 1, 11),
            ("kind = \"shuffle\"\nsize = \"1KB\"", 0, 2, 10),
            ("kind = \"collective\"\nalgorithm = \"halving-doubling\"\nsize = \"1MB\"", 0, 2, 10),
            ("kind = \"collective\"\nplacement = \"listed\"\nhosts = [\"0\", \"2\"]", 0, 2, 12),
        ] {
            let error = plan(traffic).unwrap_err();
            let text = format!("sends from host{src} to host{dst}, which no path joins");
            assert!(error.contains(&text), "{traffic}: {error}");
            assert!(error.contains(&format!("ring.toml:{line}:")), "{traffic}: {error}");
        }
    }
}
