//! Flows that wait for others start to the picosecond when the news of the last can be there,
//! however the network is cut into partitions; what never starts is reported.

use crate::common::{self, exact, fingerprint, plan, simulate};
use millpond_core::Time;
use millpond_core::random::Stream;
use millpond_results::FlowRecord;
use millpond_scenario::plan::Plan;
use std::fmt::Write;

/// Four leaves with four hosts each. News takes 2 us within a leaf and 6 us between leaves.
const LEAVES: &str = r#"
    name = "dependencies"
    until = "flows-complete"
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 2
    hosts-per-leaf = 4
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "40Gbps", delay = "2us" }
    [transport]
    kind = "dctcp"
    min-rto = "1ms"
"#;

fn way(from: u32, to: u32) -> Time {
    match (from == to, from / 4 == to / 4) {
        (true, _) => Time::ZERO,
        (_, true) => Time::from_us(2),
        _ => Time::from_us(6),
    }
}

fn rows(rows: &str) -> String {
    format!("{LEAVES}\n[[traffic]]\nname = \"list\"\nkind = \"flows\"\nrows = [\n{rows}]\n")
}

/// By id of the list "list".
fn by_id<'r>(plan: &Plan, records: &'r [FlowRecord], id: &str) -> &'r FlowRecord {
    let graph = plan.traffic.dependencies.as_ref().unwrap();
    let node = (0..graph.flows.len() as u32).find(|node| graph.id(*node) == Some(id)).unwrap();
    records.iter().find(|record| record.flow == graph.first_flow + node).unwrap()
}

#[test]
fn a_flow_starts_when_the_news_of_the_last_is_there() {
    let text = rows(
        r#"{ start = "3us", src = 0, dst = 5, bytes = 40000, id = "a" },
        { start = 0, src = 5, dst = 9, bytes = 9000, id = "same-host", after = ["a"] },
        { start = 0, src = 6, dst = 9, bytes = 9000, id = "same-leaf", after = ["a"] },
        { start = 0, src = 0, dst = 5, bytes = 9000, id = "its-source", after = ["a"] },
        { start = 4, src = 12, dst = 1, bytes = 9000, id = "short-delay", after = ["a"] },
        { start = "1ms", src = 12, dst = 1, bytes = 9000, id = "long-delay", after = ["a"] },
        { start = 0.5, src = 9, dst = 3, bytes = 100, id = "of-two",
          after = ["same-host", "same-leaf"] },
        "#,
    );
    let plan = exact(&text, &[]);
    let (outcome, records) = simulate(&plan, 1);
    assert_eq!((records.flows.len(), outcome.not_started.waiting.len()), (7, 0));
    let of = |id: &str| *by_id(&plan, &records.flows, id);
    let finish = |id: &str| of(id).finish.unwrap();
    assert_eq!(of("a").start, Time::from_us(3));
    for (id, later) in [
        ("same-host", 0),
        ("same-leaf", 2),
        ("its-source", 6),
        ("short-delay", 6),
        ("long-delay", 1000),
    ] {
        assert_eq!(of(id).start, finish("a") + Time::from_us(later), "{id}");
    }
    let last = finish("same-host").max(finish("same-leaf"));
    assert_eq!(of("of-two").start, last + Time::from_ns(500));
}

/// A random list without cycles: a row waits for up to three of the rows before it.
fn random_list(seed: u64, count: u64) -> String {
    let mut random = Stream::new(seed, "dependencies");
    let mut text = String::new();
    for at in 0..count {
        let src = random.below(16);
        let dst = (src + 1 + random.below(15)) % 16;
        let (start, bytes) = (random.below(20_000) as f64 / 1000.0, 1 + random.below(60_000));
        let after: Vec<String> =
            (0..random.below(4).min(at)).map(|_| format!("\"f{}\"", random.below(at))).collect();
        let _ = writeln!(
            text,
            "{{ start = {start}, src = {src}, dst = {dst}, bytes = {bytes}, id = \"f{at}\", after \
             = [{}] }},",
            after.join(", ")
        );
    }
    rows(&text)
}

/// Every start of a random graph, by the definition, from what was delivered when.
#[test]
fn random_graphs_start_as_defined_for_any_partition() {
    for seed in 1..=4 {
        let plan = plan(&random_list(seed, 120), &[]);
        let graph = plan.traffic.dependencies.clone().unwrap();
        let (outcome, records) = simulate(&plan, 3);
        assert_eq!(records.flows.len(), 120);
        assert!(outcome.not_started.waiting.is_empty() && outcome.not_started.late.is_empty());
        let record =
            |node: u32| records.flows.iter().find(|r| r.flow == graph.first_flow + node).unwrap();
        let mut expected: Vec<Option<Time>> = vec![None; 120];
        for before in 0..120 {
            for &node in graph.successors(before) {
                let (done, flow) = (record(before), graph.flow(node).unwrap());
                let at = done.finish.unwrap() + flow.start.max(way(done.dst, flow.src));
                expected[node as usize] = expected[node as usize].max(Some(at));
            }
        }
        for node in 0..120 {
            let start = expected[node as usize].unwrap_or(graph.flow(node).unwrap().start);
            assert_eq!(record(node).start, start, "seed {seed}, node {node}");
        }
        let one = fingerprint(&plan, 1);
        for threads in [2, 4] {
            assert!(fingerprint(&plan, threads) == one, "seed {seed}, {threads} threads");
        }
        for set in [("engine.partitions", "one"), ("engine.ports", "general")] {
            let plan = common::plan(&random_list(seed, 120), &[set]);
            assert!(fingerprint(&plan, 2) == one, "seed {seed}, {set:?}");
        }
    }
}

/// A traffic waits for whole traffics: their last delivery, and the news of it by way of the
/// barrier.
#[test]
fn a_traffic_starts_after_others() {
    let text = format!(
        r#"{LEAVES}
        [[traffic]]
        name = "second"
        kind = "permutation"
        size = "20KB"
        after = ["map", "asked"]
        start = "10us"
        [[traffic]]
        name = "map"
        kind = "shuffle"
        size = "2KB"
        [[traffic]]
        name = "asked"
        kind = "incast"
        degree = 5
        count = 2
        period = "50us"
        response = "10KB"
        request = "100B"
        [[traffic]]
        name = "third"
        kind = "flows"
        after = ["second"]
        rows = [{{ start = 0, src = 1, dst = 2, bytes = 5000, id = "x" }},
                {{ start = 1, src = 2, dst = 3, bytes = 5000, after = ["x"] }}]
        "#
    );
    let plan = plan(&text, &[]);
    let (_, records) = simulate(&plan, 2);
    let of = |class: &str| {
        let number = plan.traffic.classes.iter().position(|name| name == class).unwrap() as u16;
        records.flows.iter().filter(move |record| record.class == number)
    };
    let last = |class: &str| of(class).map(|record| record.finish.unwrap()).max().unwrap();
    assert_eq!(
        [of("map").count(), of("asked").count(), of("second").count(), of("third").count()],
        [240, 10, 16, 2]
    );
    // The barriers count at host 0, whose news is 0 to 6 us away either way.
    for record in of("second") {
        let earliest = last("map").max(last("asked")) + Time::from_us(10);
        assert!(
            record.start >= earliest && record.start <= earliest + Time::from_us(6),
            "{record:?}"
        );
    }
    let starts: Vec<Time> = of("third").map(|record| record.start).collect();
    assert!(starts.iter().all(|start| *start >= last("second")), "{starts:?}");
    let one = fingerprint(&plan, 1);
    assert!([2, 4].iter().all(|threads| fingerprint(&plan, *threads) == one));
    assert!(fingerprint(&common::plan(&text, &[("engine.partitions", "one")]), 1) == one);
}

#[test]
fn what_never_starts_is_told_with_its_reason() {
    let list = r#"{ start = 0, src = 0, dst = 5, bytes = 900000000, id = "long" },
        { start = 0, src = 5, dst = 6, bytes = 1000, id = "waits", after = ["long"] },
        { start = 0, src = 6, dst = 7, bytes = 1000, id = "waits-too", after = ["waits"] },
        { start = 0, src = 1, dst = 2, bytes = 1000, id = "short" },
        { start = "3ms", src = 2, dst = 3, bytes = 1000, id = "late", after = ["short"] },
        { start = "5ms", src = 2, dst = 3, bytes = 1000, id = "later" },
    "#;
    let text = rows(list).replace("until = \"flows-complete\"", "duration = \"2ms\"");
    let plan = plan(&text, &[]);
    let (outcome, records) = simulate(&plan, 2);
    let graph = plan.traffic.dependencies.as_ref().unwrap();
    let ids = |flows: &[u32]| {
        flows.iter().map(|f| graph.id(graph.node(*f).unwrap()).unwrap()).collect::<Vec<_>>()
    };
    let mut waiting = ids(&outcome.not_started.waiting);
    waiting.sort_unstable();
    assert_eq!(
        (waiting, ids(&outcome.not_started.late)),
        (vec!["waits", "waits-too"], vec!["late", "later"])
    );
    assert_eq!((records.flows.len(), outcome.hosts.started), (2, 2));
}

/// A list without `after` is what it was: no flow has another number, and no graph is made.
#[test]
fn ids_alone_change_nothing() {
    let plain = "[0, 0, 5, 40000],\n[1, 5, 9, 9000],\n[\"2us\", 6, 9, 9000],\n";
    let named = "{ start = 0, src = 0, dst = 5, bytes = 40000, id = \"a\" },\n[1, 5, 9, \
                 9000],\n[\"2us\", 6, 9, 9000],\n";
    let (plain, named) = (plan(&rows(plain), &[]), plan(&rows(named), &[]));
    assert!(plain.traffic.dependencies.is_none() && named.traffic.dependencies.is_none());
    assert!(fingerprint(&plain, 2) == fingerprint(&named, 2));
}
