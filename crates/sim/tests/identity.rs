//! Determinism is law: the same records and counts for any number of threads, partitions, and either kind of port.

mod common;

use common::{fingerprint, plan, simulate};

/// Everything on at once: failures with and without detection, captures, samples, probes.
const EVERYTHING: &str = r#"
    name = "identity-everything"
    duration = "3ms"
    seed = 5
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 2
    hosts-per-leaf = 6
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "20Gbps", delay = "2us" }
    [switch]
    buffer = { kind = "per-port", size = "60KB" }
    path = { kind = "spray" }
    [transport]
    kind = "dctcp"
    min-rto = "500us"
    [capture]
    queues = "7us"
    pcap = ["host3", "leaf1:6", "spine0:2", "leaf0:3"]
    [[failure]]
    link = ["leaf0", "spine1"]
    at = "300us"
    until = "900us"
    detect = "50us"
    [[failure]]
    link = ["leaf1", "spine0"]
    at = "500us"
    [[failure]]
    link = ["host3", "leaf0"]
    at = "1ms"
    until = "1100us"
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "web-search"
    load = 0.7
    [[traffic]]
    name = "incast"
    kind = "incast"
    degree = 10
    response = "20KB"
    rate = 3000
    [[traffic]]
    name = "probe"
    kind = "probe"
    pairs = "inter-leaf"
    period = "40us"
"#;

const LEAF_SPINE: &str = r#"
    name = "identity"
    duration = "3ms"
    seed = 3
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 2
    hosts-per-leaf = 6
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "20Gbps", delay = "2us" }
    [switch]
    buffer = { kind = "per-port", size = "60KB" }
    [transport]
    kind = "dctcp"
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "web-search"
    load = 0.7
    [[traffic]]
    name = "incast"
    kind = "incast"
    degree = 10
    response = "20KB"
    rate = 3000
    request = 250
    [[traffic]]
    name = "rpc"
    kind = "rpc"
    clients = 2
    servers = 2
    request = 200
    response = "10KB"
    connections = 1
"#;

const FAT_TREE: &str = r#"
    name = "identity-fat-tree"
    duration = "100ms"
    until = "flows-complete"
    [topology]
    kind = "fat-tree"
    k = 4
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "10Gbps", delay = "1us" }
    [switch]
    path = { kind = "spray" }
    buffer = { kind = "per-port", size = "30KB" }
    [transport]
    kind = "cubic"
    [[traffic]]
    name = "shuffle"
    kind = "shuffle"
    size = "50KB"
    concurrency = 2
"#;

/// The hosts' edge: ranks, ordering buffers over sprayed paths, servers that think, losses to have packets sent again.
const EDGE: &str = r#"
    name = "identity-edge"
    duration = "4ms"
    seed = 11
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 3
    hosts-per-leaf = 6
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "10Gbps", delay = "2us" }
    [switch]
    buffer = { kind = "per-port", size = "40KB" }
    path = { kind = "spray" }
    [transport]
    kind = "dctcp"
    min-rto = "300us"
    rank = { kind = "remaining-bytes", idle = "100us" }
    ordering = { kind = "timeout", timeout = "60us" }
    [capture]
    pcap = ["host3", "leaf0:6"]
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "web-search"
    load = 0.7
    request = 250
    think-time = "20us"
    think-deviation = "15us"
    [[traffic]]
    name = "incast"
    kind = "incast"
    degree = 10
    response = "20KB"
    rate = 3000
    request = 250
    think-time = "20us"
    think-deviation = "3us"
    [[traffic]]
    name = "rpc"
    kind = "rpc"
    clients = 2
    servers = 2
    request = 200
    response = "10KB"
    connections = 1
"#;

/// Equal, or where they first are not.
fn assert_same(a: &str, b: &str, what: &str) {
    let differs = a.bytes().zip(b.bytes()).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
    let around = |text: &str| text[differs.saturating_sub(300)..(differs + 100).min(text.len())].to_string();
    assert!(a == b, "{what}: at {differs}:\n{}\n---\n{}", around(a), around(b));
}

#[test]
fn threads_do_not_change_a_result() {
    let swift = [("transport.kind", "swift"), ("transport.swift-window-max", "0.7")];
    for (text, set) in [(LEAF_SPINE, &[][..]), (FAT_TREE, &[]), (EVERYTHING, &[]), (EDGE, &[]), (FAT_TREE, &swift)] {
        let plan = plan(text, set);
        let one = fingerprint(&plan, 1);
        for threads in [2, 3] {
            assert_same(&one, &fingerprint(&plan, threads), &format!("{threads} threads"));
        }
    }
}

#[test]
fn partitions_do_not_change_a_result() {
    for text in [LEAF_SPINE, FAT_TREE, EVERYTHING, EDGE] {
        let many = fingerprint(&plan(text, &[]), 1);
        assert_same(&many, &fingerprint(&plan(text, &[("engine.partitions", "one")]), 1), "one partition");
    }
}

#[test]
fn the_kind_of_port_does_not_change_a_result() {
    for text in [LEAF_SPINE, FAT_TREE, EVERYTHING, EDGE] {
        let fast = fingerprint(&plan(text, &[]), 2);
        assert_same(&fast, &fingerprint(&plan(text, &[("engine.ports", "general")]), 2), "general ports");
    }
}

#[test]
fn seeds_change_a_result() {
    let a = fingerprint(&plan(LEAF_SPINE, &[]), 1);
    assert_ne!(a, fingerprint(&plan(LEAF_SPINE, &[("seed", "4")]), 1));
}

#[test]
fn everything_at_once_happens() {
    let (outcome, records) = simulate(&plan(EVERYTHING, &[]), 2);
    assert!(outcome.audit.dropped[millpond_core::counters::DropReason::LinkDown as usize].packets > 100);
    assert!(records.rtts.len() > 300, "{}", records.rtts.len());
    assert!(records.queues.len() > 300, "{}", records.queues.len());
    for tap in 0..4 {
        let of = |outgoing: bool| records.packets.iter().filter(|p| p.tap == tap && p.outgoing == outgoing).count();
        assert!(of(true) > 50 && of(false) > 50, "capture {tap}: {} out, {} in", of(true), of(false));
    }
    assert!(records.packets.iter().any(|p| p.sack.is_some()));
}

/// What is compared above is there. Where nothing is dropped, a patient buffer lets nothing through out of order, and an
/// impatient one less than none does.
#[test]
fn the_edge_does_something() {
    let disorder = |ordering: (&str, &str)| {
        let (outcome, _) = simulate(&plan(EDGE, &[("switch.buffer.size", "4MB"), ordering]), 2);
        assert_eq!(outcome.audit.dropped_total().packets, 0);
        outcome.hosts.out_of_order
    };
    let none = disorder(("transport.ordering.kind", "none"));
    let impatient = disorder(("transport.ordering.timeout", "5us"));
    let patient = disorder(("transport.ordering.timeout", "3ms"));
    assert!(patient == 0 && impatient > 0 && none > 2 * impatient, "{none} {impatient} {patient}");
    let (outcome, records) = simulate(&plan(EDGE, &[]), 2);
    assert!(outcome.hosts.retransmitted > 100, "{:?}", outcome.hosts);
    let ranks: std::collections::BTreeSet<u32> = records.packets.iter().map(|p| p.packet.rank).collect();
    assert!(ranks.len() > 100 && ranks.contains(&0));
    let control = records.packets.iter().filter(|p| !p.packet.is_data());
    assert!(control.clone().count() > 100 && control.clone().all(|p| p.packet.rank == 0));
    let service = [("transport.rank.kind", "attained-service")];
    assert_same(&fingerprint(&plan(EDGE, &service), 1), &fingerprint(&plan(EDGE, &service), 3), "attained service");
}

/// What is only recorded changes nothing else.
#[test]
fn captures_change_no_result() {
    let off = [("capture.queues", "off"), ("capture.pcap", "")];
    let with = simulate(&plan(EVERYTHING, &[]), 1);
    let without = simulate(&plan(EVERYTHING, &off), 1);
    assert!(without.1.queues.is_empty() && without.1.packets.is_empty());
    assert_eq!(with.1.flows, without.1.flows);
    assert_eq!(with.1.rtts, without.1.rtts);
    assert_eq!(format!("{:?}", with.0.audit.dropped), format!("{:?}", without.0.audit.dropped));
}
