//! The shipped scenarios, from text to arrivals.

use millpond_core::Time;
use millpond_scenario::traffic::Event;
use millpond_scenario::{Plan, Scenario};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn shipped() -> Vec<PathBuf> {
    toml_files(&folder())
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn plans(path: &Path) -> Vec<Plan> {
    let scenario = Scenario::load(path).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<Option<String>> = std::iter::once(None)
        .chain(scenario.variants().iter().map(|v| Some(v.to_string())))
        .collect();
    let plan = |v: &Option<String>| {
        scenario.plan(v.as_deref(), &[], None).unwrap_or_else(|e| panic!("{e}"))
    };
    names.iter().map(plan).collect()
}

fn first(plan: &Plan, n: usize) -> Vec<Event> {
    plan.traffic.arrivals().take(n).collect()
}

/// Everything in a plan but what names the variant.
fn content(plan: &Plan) -> String {
    let Plan { variant: _, warnings: _, resolved: _, traffic, topology, .. } = plan;
    let rest = (
        &plan.name,
        plan.seed,
        plan.horizon,
        plan.until_complete,
        plan.warm_up,
        plan.mice,
        plan.elephants,
    );
    let traffic = (
        &traffic.classes,
        &traffic.thinking,
        &traffic.sources,
        traffic.total_flows,
        first(plan, 20_000),
    );
    let transport = (&plan.transport, &plan.transport_kind, &plan.transport_choices);
    let parts = (&plan.host, &plan.switch, transport, &plan.edge, &plan.engine);
    format!("{rest:?} {parts:?} {topology:?} {traffic:?}")
}

#[test]
fn resolved_text_gives_the_same_plan_and_the_same_text() {
    for path in shipped() {
        for plan in plans(&path) {
            let again = Scenario::parse("resolved.toml", &plan.resolved)
                .and_then(|s| s.plan(None, &[], None))
                .unwrap_or_else(|e| panic!("{}: {e}\n{}", path.display(), plan.resolved));
            assert_eq!(again.resolved, plan.resolved, "{}", path.display());
            assert!(content(&again) == content(&plan), "{}", path.display());
        }
    }
}

/// The figures of `docs/enable` are of flows that all end: none is left out of a mean.
#[test]
fn scenarios_of_enable_compare_variants_and_wait_for_the_last_flow() {
    let files = toml_files(&folder().join("enable"));
    assert!(files.len() >= 9, "{}", files.len());
    for path in files {
        let plans = plans(&path);
        assert!(plans.len() > 2, "{}: variants", path.display());
        for plan in &plans {
            let of = format!("{} {:?}", path.display(), plan.variant);
            assert!(plan.until_complete, "{of}: until = \"flows-complete\"");
            assert!(!plan.traffic.sources.is_empty(), "{of}: traffic");
        }
    }
}

#[test]
fn variants_see_the_same_arrivals() {
    for path in shipped() {
        let plans = plans(&path);
        let reference = first(&plans[0], 50_000);
        let traffic =
            |plan: &Plan| plan.resolved.split_once("[[traffic]]").map(|(_, t)| t.to_string());
        // Some variants change the traffic itself.
        for plan in plans.iter().filter(|p| traffic(p) == traffic(&plans[0])) {
            assert!(first(plan, 50_000) == reference, "{} {:?}", path.display(), plan.variant);
        }
    }
}

#[test]
fn arrivals_are_sorted_and_numbered() {
    for path in shipped() {
        let plan = plans(&path).remove(0);
        let (mut flow, mut query, mut at) =
            (plan.traffic.first_open_flow, 0, millpond_core::Time::ZERO);
        let mut remaining = 0;
        for event in plan.traffic.arrivals().take(200_000) {
            match event {
                Event::Query(q) => {
                    assert_eq!((q.query, remaining), (query, 0));
                    assert!(q.at >= at);
                    (query, remaining, at) = (query + 1, q.degree, q.at);
                }
                Event::Flow(a) => {
                    assert_eq!(a.flow, flow);
                    assert!(a.at >= at && a.at < plan.horizon && a.src != a.dst && a.bytes > 0);
                    assert!(a.src < plan.topology.hosts && a.dst < plan.topology.hosts);
                    flow += if a.response > 0 { 2 } else { 1 };
                    at = a.at;
                    if a.query.is_some() {
                        assert_eq!(a.query, Some(query - 1));
                        remaining -= 1;
                    }
                }
            }
        }
        if let Some(total) = plan.traffic.total_flows {
            assert_eq!(total, flow as u64, "{}", path.display());
        }
    }
}

/// The hosts' edge reaches the plan from where a scenario writes it, and gives back what spraying
/// takes.
#[test]
fn ranks_and_ordering_are_part_of_the_transport() {
    use millpond_core::Time;
    use millpond_core::edge::{RankParams, Ranker};
    let of = |ordering: &str| {
        let text = format!(
            "duration = \"1ms\"\n[topology]\nleaves = 2\nspines = 2\nhosts-per-leaf = \
             2\n[switch]\npath = {{ kind = \"spray\" }}\n[transport]\nkind = \"dctcp\"\nrank = {{ \
             kind = \"remaining-bytes\", boost = 4 }}\nordering = {ordering}\n[[traffic]]\nkind = \
             \"stride\"\n"
        );
        Scenario::parse("t", &text).unwrap().plan(None, &[], None).unwrap_or_else(|e| panic!("{e}"))
    };
    let with = of("{ kind = \"timeout\", timeout = \"1200us\" }");
    assert_eq!(with.transport_choices.ordering.timeout(), Some(Time::from_us(1_200)));
    assert!(matches!(
        &with.transport_choices.rank,
        RankParams::RemainingBytes(p) if p.boost == 4 && p.idle == Time::from_us(360)
    ));
    assert!(
        Ranker::new(&with.transport_choices.rank).is_some()
            && with.warnings.iter().all(|warning| warning.contains("provides ranks")),
        "{:?}",
        with.warnings
    );
    let without = of("{ kind = \"none\" }");
    assert_eq!((without.transport_choices.ordering.timeout(), without.warnings.len()), (None, 2));
}

#[test]
fn a_think_time_without_a_request_is_warned_of() {
    let of = |keys: &str| {
        let text = format!(
            "duration = \"1ms\"\n[topology]\nleaves = 2\nspines = 2\nhosts-per-leaf = \
             2\n[[traffic]]\nkind = \"poisson\"\ncount = 10\nthink-time = \"20us\"\n{keys}"
        );
        Scenario::parse("t", &text).unwrap().plan(None, &[], None)
    };
    let (asked, unasked) = (of("request = 250").unwrap(), of("").unwrap());
    assert!(asked.warnings.is_empty(), "{:?}", asked.warnings);
    assert!(
        unasked.warnings.len() == 1 && unasked.warnings[0].contains("no request"),
        "{:?}",
        unasked.warnings
    );
    assert!(of("request = 0").is_err());
}

/// A table that is not there is not in the resolved text, by which runs on disk are known; nor is
/// one that is off.
#[test]
fn receiving_is_free_unless_it_is_written() {
    let text = "duration = \"1ms\"\n[topology]\nkind = \
                \"single-switch\"\n[host]\nHERE\n[[traffic]]\nkind = \"permutation\"\nsize = \
                1000\n";
    let plan = |host: &str, set: &[(&str, &str)]| {
        let set: Vec<(String, String)> =
            set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Scenario::parse("test", &text.replace("HERE", host))
            .unwrap()
            .plan(None, &set, None)
            .unwrap()
    };
    let without = plan("", &[]);
    assert!(without.host.receive_cpu.is_none() && !without.resolved.contains("receive-cpu"));
    let costs = plan("receive-cpu = { }", &[]);
    assert!(
        costs.resolved.contains("receive-cpu = { per-packet = \"400ns\", per-byte = \"250ps\""),
        "{}",
        costs.resolved
    );
    assert_eq!(costs.host.receive_cpu, Some(Default::default()));
    assert_eq!(plan("receive-cpu = \"off\"", &[]).resolved, without.resolved);
    assert_eq!(
        plan("receive-cpu = { ring = 7 }", &[("host.receive-cpu", "off")]).resolved,
        without.resolved
    );
    let ring = plan("", &[("host.receive-cpu.ring", "7")]).host.receive_cpu.expect("it is written");
    assert_eq!((ring.ring, ring.per_packet), (7, millpond_core::Time::from_ns(400)));
}

/// Hosts jitter unless that is turned off, by a packet's time on their own link or by what is
/// written.
#[test]
fn hosts_jitter_by_a_packet_unless_told_otherwise() {
    let text = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\n[host]\nframe-overhead \
                = 38\nHERE\n[[traffic]]\nkind = \"permutation\"\nsize = 1000\n";
    let plan = |host: &str, set: &[(&str, &str)]| {
        let set: Vec<(String, String)> =
            set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Scenario::parse("test", &text.replace("HERE", host))
            .unwrap()
            .plan(None, &set, None)
            .unwrap()
    };
    let size = |plan: &Plan| plan.host.jitter_size(plan.topology.links[0].rate);
    let usual = plan("", &[]);
    assert_eq!(size(&usual), Some(Time::from_ps(1538 * 800)), "10 Gb/s");
    assert!(
        usual.resolved.contains("jitter = { kind = \"uniform\", packets = 1.0, size = \"off\" }"),
        "{}",
        usual.resolved
    );
    let set = plan("jitter = { packets = 0.5 }", &[("host.jitter.size", "3us")]);
    assert_eq!(size(&set), Some(Time::from_us(3)));
    assert!(
        set.resolved.contains("jitter = { kind = \"uniform\", size = \"3us\" }"),
        "{}",
        set.resolved
    );
    for off in [
        plan("jitter = \"off\"", &[]),
        plan("", &[("host.jitter.kind", "none")]),
        plan("", &[("host.jitter", "off")]),
    ] {
        assert_eq!(size(&off), None);
        assert!(off.resolved.contains("jitter = { kind = \"none\" }"), "{}", off.resolved);
    }
    assert_eq!(
        size(&plan("jitter = \"off\"", &[("host.jitter.packets", "2")])),
        Some(Time::from_ps(2 * 1538 * 800))
    );
}
