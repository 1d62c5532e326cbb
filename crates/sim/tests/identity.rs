//! Determinism is law: the same records and counts for any number of threads, partitions, and
//! either kind of port.

use crate::common::{assert_nothing_changes, assert_same, fingerprint, plan, simulate};
use millpond_core::Time;
use millpond_core::counters::DropReason;
use millpond_core::edge::gro::Cause;
use millpond_results::Node;
use std::collections::BTreeSet;

/// Everything on at once: failures with and without detection and convergence, captures, samples,
/// probes.
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
    queues = { every = "7us", ports = ["leaf0", "leaf1->spine0", "spine0", "host3", "host9"] }
    connections = { every = "5us", traffic = "background", max = 7 }
    pcap = ["host3", "leaf1:6", "spine0:2", "leaf0:3"]
    [[failure]]
    link = ["leaf0", "spine1"]
    at = "300us"
    until = "900us"
    detect = "50us"
    [[failure]]
    link = ["leaf1", "spine0"]
    at = "500us"
    converge = "never"
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
    [capture]
    connections = { every = "11us", src = "0..11", max = 40 }
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
    [capture]
    connections = { every = "20us", max = 25 }
    [[traffic]]
    name = "shuffle"
    kind = "shuffle"
    size = "50KB"
    concurrency = 2
"#;

/// The hosts' edge: ranks, ordering buffers over sprayed paths, servers that think, losses to have
/// packets sent again.
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

/// The edge's other half: flowcells over labels, offload on arrival with timers, links that fail,
/// and lists that change.
const PRESTO: &str = r#"
    name = "identity-presto"
    duration = "4ms"
    seed = 17
    [topology]
    kind = "leaf-spine"
    leaves = 3
    spines = 4
    hosts-per-leaf = 4
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "10Gbps", delay = "2us" }
    [host]
    receive-offload = { kind = "presto-gro", min = "5us", initial = "20us", coalescing = "5us" }
    [switch]
    buffer = { kind = "per-port", size = "100KB" }
    path = { kind = "labels" }
    [edge]
    load-balancing = { kind = "presto", controller-delay = "300us" }
    [transport]
    kind = "cubic"
    min-rto = "500us"
    [capture]
    pcap = ["host3", "leaf0:6"]
    [[failure]]
    link = ["leaf0", "spine1"]
    at = "1ms"
    until = "2ms"
    detect = "50us"
    [[traffic]]
    name = "stride"
    kind = "stride"
    offset = 4
    size = "20MB"
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "web-search"
    load = 0.3
    request = 250
    [[traffic]]
    name = "probe"
    kind = "probe"
    pairs = "inter-leaf"
    period = "40us"
"#;

/// The same with cores that cannot keep up: rings overflow, and timers wait.
const BUSY: &[(&str, &str)] =
    &[("host.receive-cpu.per-packet", "700ns"), ("host.receive-cpu.ring", "40")];

/// Several of them a host.
const SEVERAL: &[(&str, &str)] = &[
    ("host.receive-cpu.per-packet", "2us"),
    ("host.receive-cpu.ring", "20"),
    ("host.receive-cpu.cores", "3"),
];

/// Bursts for ports that hold a quarter of them, so that packets go elsewhere.
const DEFLECTION: &str = r#"
    name = "identity-deflection"
    duration = "2ms"
    seed = 13
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 3
    hosts-per-leaf = 6
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "10Gbps", delay = "2us" }
    [switch]
    buffer = { kind = "per-port", size = "40KB" }
    marking = { kind = "ecn", threshold-packets = 10 }
    [transport]
    kind = "dctcp"
    min-rto = "300us"
    [capture]
    queues = "7us"
    pcap = ["host3", "leaf0:6"]
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "web-search"
    load = 0.5
    [[traffic]]
    name = "incast"
    kind = "incast"
    degree = 14
    response = "20KB"
    rate = 5000
"#;

/// Short flows whose segments wait in receive offload: many end in one window, and waits of several
/// run out at one instant.
const SHORT_FLOWS: &str = r#"
    name = "identity-short-flows"
    duration = "2ms"
    seed = 3
    [topology]
    kind = "leaf-spine"
    leaves = 3
    spines = 2
    hosts-per-leaf = 4
    host-link = { rate = "40Gbps", delay = "1us" }
    fabric-link = { rate = "40Gbps", delay = "5us" }
    [host]
    receive-offload = { kind = "presto-gro", rules = "safe", min = "1us", initial = "3us",
                        coalescing = "2us" }
    [switch]
    buffer = { kind = "shared", size = "60KB" }
    path = { kind = "ecmp" }
    [edge]
    load-balancing = { kind = "presto", threshold = 3000, order = "shuffled" }
    [transport]
    kind = "newreno"
    min-rto = "300us"
    [[traffic]]
    name = "short"
    kind = "poisson"
    sizes = 9999
    load = 0.6
    load-base = "host-links"
"#;

/// The keys that a variant of [`DEFLECTION`] sets.
type Set = &'static [(&'static str, &'static str)];

/// The keys that mechanisms which go by rank and reorder have in common.
const RANKED: Set = &[
    ("switch.path.kind", "power-of-n"),
    ("transport.rank.kind", "remaining-bytes"),
    ("transport.rank.idle", "100us"),
    ("transport.ordering.kind", "timeout"),
    ("transport.ordering.timeout", "60us"),
];
const AIFO: Set = &[
    ("switch.admission.kind", "aifo"),
    ("switch.admission.burst-headroom", "0.9"),
    ("switch.admission.sample-period", "20"),
];
const CANARY: Set = &[("switch.deflection.kind", "canary")];
const STALE: Set = &[("switch.occupancy.kind", "refreshed"), ("switch.occupancy.period", "3us")];

const POOLS: Set = &[
    ("switch.buffer.kind", "pools"),
    ("switch.buffer.size", "600KB"),
    ("switch.buffer.headroom", "10KB"),
];
const PFC: Set = &[
    ("switch.pause.kind", "pfc"),
    ("switch.pause.frames", "each-arrival"),
    ("switch.pause.pause-time", "5us"),
    ("switch.pause.recheck", "2us"),
    ("switch.pause.resume", "false"),
];

const LOW: (&str, &str) = ("switch.admission.min-threshold", "8KB");
const FRESH: (&str, &str) = ("switch.admission.weight", "0.1");
const HIGH: (&str, &str) = ("switch.admission.max-threshold", "24KB");

/// The variants: a name, and their sets.
const DEFLECTIONS: &[(&str, &[Set])] = &[
    ("canary, aifo", &[RANKED, AIFO, CANARY]),
    (
        "canary, aifo, quirks",
        &[RANKED, AIFO, CANARY, &[("switch.deflection.artifact-quirks", "true")]],
    ),
    (
        "vertigo, srpt",
        &[RANKED, &[("switch.queue.kind", "srpt"), ("switch.deflection.kind", "vertigo")]],
    ),
    ("dibs", &[&[("switch.deflection.kind", "dibs"), ("transport.dupack-threshold", "off")]]),
    (
        "simple, stale",
        &[STALE, &[("switch.deflection.kind", "simple"), ("transport.dupack-threshold", "off")]],
    ),
    ("canary, stale", &[RANKED, AIFO, CANARY, STALE]),
    (
        "canary-pisa, departures",
        &[
            RANKED,
            &[("switch.deflection.kind", "canary-pisa"), ("switch.deflection.cells", "500")],
            &[
                ("switch.occupancy.kind", "refreshed"),
                ("switch.occupancy.written-at", "departures"),
            ],
        ],
    ),
    ("pools, pfc", &[POOLS, &[("switch.pause.kind", "pfc")]]),
    ("pools, pfc as released", &[POOLS, PFC]),
    (
        "dibs, pools, pfc",
        &[
            POOLS,
            PFC,
            &[("switch.buffer.egress-limit", "always"), ("switch.buffer.alpha", "0.1")],
            &[("switch.deflection.kind", "dibs"), ("transport.dupack-threshold", "off")],
        ],
    ),
    ("distribution", &[RANKED, CANARY, &[("switch.admission.kind", "distribution")]]),
    (
        "distribution by ewma, stale",
        &[
            RANKED,
            CANARY,
            STALE,
            &[("switch.admission.kind", "distribution"), ("switch.admission.mean", "ewma")],
        ],
    ),
    (
        "aifo and sp-pifo without deflection",
        &[AIFO, &[RANKED[1], ("switch.queue.kind", "sp-pifo")]],
    ),
    ("red", &[CANARY, &[("switch.admission.kind", "red"), LOW, HIGH, FRESH]]),
    ("red that marks", &[CANARY, &[("switch.marking.kind", "red")]]),
    (
        "wred, stale",
        &[RANKED, CANARY, STALE, &[("switch.admission.kind", "wred"), LOW, HIGH, FRESH]],
    ),
    ("probabilistic", &[RANKED, CANARY, &[("switch.admission.kind", "probabilistic"), LOW]]),
    (
        "last-packet",
        &[
            RANKED,
            CANARY,
            &[("switch.admission.kind", "last-packet"), ("switch.admission.threshold", "8KB")],
        ],
    ),
];

#[test]
fn threads_do_not_change_a_result() {
    let swift = [("transport.kind", "swift"), ("transport.swift-window-max", "0.7")];
    for (text, set) in [
        (LEAF_SPINE, &[][..]),
        (FAT_TREE, &[]),
        (EVERYTHING, &[]),
        (EDGE, &[]),
        (PRESTO, &[]),
        (PRESTO, BUSY),
        (PRESTO, SEVERAL),
        (PRESTO, HEDERA),
        (FAT_TREE, &swift),
        (FAT_TREE, &[("transport.kind", "tas")]),
        (FAT_TREE, LOTS),
    ] {
        let plan = plan(text, set);
        let one = fingerprint(&plan, 1);
        for threads in [2, 3] {
            assert_same(&one, &fingerprint(&plan, threads), &format!("{threads} threads"));
        }
    }
}

/// The scenarios that are run in several ways.
const ALIKE: [(&str, &[(&str, &str)]); 17] = [
    (LEAF_SPINE, &[]),
    (FAT_TREE, &[]),
    (EVERYTHING, &[]),
    (EDGE, &[]),
    (PRESTO, &[]),
    (PRESTO, BUSY),
    (PRESTO, SEVERAL),
    (PRESTO, HEDERA),
    (LEAF_SPINE, NARROW_NIC),
    (EVERYTHING, EXACT),
    (FAT_TREE, EXACT),
    (FAT_TREE, LOTS),
    (SHORT_FLOWS, &[]),
    (SHORT_FLOWS, EXACT),
    (LEAF_SPINE, OFTEN),
    (LEAF_SPINE, SHARED),
    (EVERYTHING, SHARED_EXACT),
];
/// A memory that ports share and that overflows.
const SHARED: &[(&str, &str)] =
    &[("switch.buffer", "{ kind = \"shared\", size = \"60KB\", alpha = 0.5 }")];
/// The same with arrivals at one instant.
const SHARED_EXACT: &[(&str, &str)] = &[
    ("switch.buffer", "{ kind = \"shared\", size = \"60KB\", alpha = 2 }"),
    ("host.jitter", "off"),
];
/// Rounds that find, place and move flows; their period is no whole number of windows.
const HEDERA: &[(&str, &str)] = &[
    ("edge.load-balancing.kind", "hedera"),
    ("edge.load-balancing.period", "151us"),
    ("edge.load-balancing.controller-delay", "300us"),
];
/// Connections are looked at within a window, and some halves of them are in different partitions.
const OFTEN: &[(&str, &str)] = &[
    ("duration", "300us"),
    ("traffic.rpc.clients", "6"),
    ("traffic.rpc.servers", "6"),
    ("capture.connections", EVERY),
];
const EVERY: &str = r#"{ every = "500ns", traffic = "rpc", max = 80 }"#;
/// Hosts that are exact: arrivals at one instant come in the order of links.
const EXACT: &[(&str, &str)] = &[("host.jitter", "off")];
/// Exact hosts whose packets draw lots: much arrives at one instant.
const LOTS: &[(&str, &str)] = &[("host.jitter.packets", "0")];
/// Full packets of a segment are dropped by its NIC, and its tail may fit.
const NARROW_NIC: &[(&str, &str)] = &[
    ("host.nic.buffer", "{ kind = \"per-port\", size = \"10000\" }"),
    ("host.nic.per-flow-limit", "40KB"),
];

#[test]
fn partitions_do_not_change_a_result() {
    for (text, set) in ALIKE {
        let many = fingerprint(&plan(text, set), 1);
        let one = [set, &[("engine.partitions", "one")]].concat();
        assert_same(&many, &fingerprint(&plan(text, &one), 1), "one partition");
    }
}

#[test]
fn the_kind_of_port_does_not_change_a_result() {
    for (text, set) in ALIKE {
        let fast = fingerprint(&plan(text, set), 2);
        let general = [set, &[("engine.ports", "general")]].concat();
        assert_same(&fast, &fingerprint(&plan(text, &general), 2), "general ports");
    }
}

/// Each mechanism that decides who goes where, or who may stay, and with links that fail: for
/// threads, partitions and ports; and the audit holds.
#[test]
fn deflection_is_as_deterministic() {
    for ((_, sets), text) in DEFLECTIONS.iter().flat_map(|it| [(it, DEFLECTION), (it, EVERYTHING)])
    {
        assert_nothing_changes(text, &sets.concat(), &[2, 3]);
    }
}

/// The mechanisms compared above do something.
#[test]
fn deflection_does_something() {
    let mut seen_before = BTreeSet::new();
    for (name, sets) in DEFLECTIONS {
        let set: Vec<(&str, &str)> = sets.iter().flat_map(|set| set.iter()).copied().collect();
        let (outcome, records) = simulate(&plan(DEFLECTION, &set), 2);
        let dropped = |reason: DropReason| outcome.audit.dropped[reason as usize].packets;
        let counts = (outcome.deflected, outcome.audit.hops, DropReason::ALL.map(dropped));
        println!("{name}: {counts:?}");
        assert!(seen_before.insert(counts), "{name} is as another");
        let deflects = set.iter().any(|(key, _)| *key == "switch.deflection.kind");
        assert!(if deflects { outcome.deflected > 100 } else { outcome.deflected == 0 }, "{name}");
        let seen = |p: &millpond_core::Packet| p.has(millpond_core::packet::flags::DEFLECTED);
        assert_eq!(records.packets.iter().any(|p| seen(&p.packet)), deflects, "{name}");
        assert!(!name.contains("stale") || dropped(DropReason::OverflowStale) > 0, "{name}");
        assert!(
            !name.contains("aifo")
                || dropped(DropReason::Early) + dropped(DropReason::NoDeflection) > 0,
            "{name}"
        );
        assert!(records.queues.len() > 100 && !records.flows.is_empty(), "{name}");
    }
}

/// Jitter, lots and exact hosts, compared above, give three results.
#[test]
fn jitter_and_lots_do_something() {
    let of = |set: &[(&str, &str)]| fingerprint(&plan(FAT_TREE, set), 1);
    let (jitter, lots, exact) = (of(&[]), of(LOTS), of(EXACT));
    assert!(jitter != lots && lots != exact && exact != jitter);
    assert_ne!(lots, of(&[LOTS, &[("seed", "4")]].concat()), "lots are drawn anew for each seed");
}

/// The memory that is shared above overflows.
#[test]
fn a_shared_memory_overflows() {
    for (text, set) in [(LEAF_SPINE, SHARED), (EVERYTHING, SHARED_EXACT)] {
        let (outcome, _) = simulate(&plan(text, set), 2);
        let dropped = outcome.audit.dropped[DropReason::SharedBuffer as usize].packets;
        assert!(dropped > 20, "{dropped}");
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
    assert!(outcome.audit.dropped[DropReason::LinkDown as usize].packets > 100);
    assert!(records.rtts.len() > 300, "{}", records.rtts.len());
    assert!(records.queues.len() > 300, "{}", records.queues.len());
    let nics = |host| records.queues.iter().filter(|q| q.node == Node::Host(host)).count();
    assert!(nics(3) > 1 && nics(9) > 1, "{} {}", nics(3), nics(9));
    let sampled: BTreeSet<u32> = records.connections.iter().map(|c| c.flow).collect();
    assert!(sampled.len() == 7 && sampled == outcome.sampled, "{sampled:?}");
    assert!(
        records.connections.len() > 300 && records.connections.iter().any(|c| c.state != "open")
    );
    for tap in 0..4 {
        let of = |outgoing: bool| {
            records.packets.iter().filter(|p| p.tap == tap && p.outgoing == outgoing).count()
        };
        assert!(
            of(true) > 50 && of(false) > 50,
            "capture {tap}: {} out, {} in",
            of(true),
            of(false)
        );
    }
    assert!(records.packets.iter().any(|p| !p.records.is_empty()));
}

/// The mechanisms compared above do something. Where nothing is dropped, a patient buffer lets
/// nothing through out of order, and an impatient one less than none does.
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
    let ranks: BTreeSet<u32> = records.packets.iter().map(|p| p.packet.rank).collect();
    assert!(ranks.len() > 100 && ranks.contains(&0));
    let control = records.packets.iter().filter(|p| !p.packet.is_data());
    assert!(control.clone().count() > 100 && control.clone().all(|p| p.packet.rank == 0));
    let service = [("transport.rank.kind", "attained-service")];
    assert_same(
        &fingerprint(&plan(EDGE, &service), 1),
        &fingerprint(&plan(EDGE, &service), 3),
        "attained service",
    );
}

/// The events compared above do happen: flowcells reorder, receive offload waits and gives up,
/// links fail.
#[test]
fn presto_does_something() {
    let (outcome, records) = simulate(&plan(PRESTO, &[]), 2);
    let offload = |name: &str| outcome.counters.get("presto-gro", name);
    println!("{:?}", outcome.counters);
    for cause in [
        Cause::Single,
        Cause::SameCell,
        Cause::InOrder,
        Cause::Timeout,
        Cause::Older,
        Cause::Overlap,
    ] {
        assert!(offload(&format!("segments-{}", cause.name())) > 10, "{cause:?}");
    }
    assert!(offload("filled") > 100 && offload("packets") > 10_000);
    assert!(outcome.audit.dropped[DropReason::LinkDown as usize].packets > 10);
    let labels = |is_data: bool| {
        let of = records.packets.iter().filter(|p| p.packet.is_data() == is_data && p.outgoing);
        of.map(|p| p.packet.entropy).filter(|label| *label < 4).collect::<BTreeSet<u32>>()
    };
    assert_eq!(
        (labels(true).len(), labels(false).len()),
        (4, 4),
        "data and acknowledgements take all paths"
    );
}

/// The events compared above do happen: many flows end in one window, and waits run out.
#[test]
fn short_flows_do_something() {
    let (outcome, records) = simulate(&plan(SHORT_FLOWS, &[]), 2);
    let window = Time::from_us(5).as_ps();
    let windows: BTreeSet<u64> = records
        .flows
        .iter()
        .filter_map(|flow| flow.sender_last)
        .map(|last| last.as_ps() / window)
        .collect();
    println!("{} flows end in {} windows", records.flows.len(), windows.len());
    assert!(records.flows.len() > 4 * windows.len());
    assert!(outcome.counters.get("presto-gro", "segments-timeout") > 100);
}

#[test]
fn the_scheduler_does_something() {
    let (outcome, _) = simulate(&plan(PRESTO, HEDERA), 2);
    let [rounds, large, placed, crowded] =
        ["rounds", "large", "placed", "crowded"].map(|name| outcome.counters.get("hedera", name));
    assert!(
        rounds > 20 && large > 10 && placed > 10 && crowded > 0,
        "{rounds} {large} {placed} {crowded}"
    );
}

#[test]
fn busy_cores_do_something() {
    let (outcome, _) = simulate(&plan(PRESTO, BUSY), 2);
    assert!(outcome.audit.dropped[DropReason::ReceiveRing as usize].packets > 100);
    let busy =
        outcome.cores.iter().filter(|(_, core)| core.busy * 10 > outcome.simulated * 8).count();
    assert!(busy >= 4 && outcome.cores.len() == 12, "{:?}", outcome.cores);
    assert!(outcome.counters.get("presto-gro", "segments-timeout") > 10);
    let (outcome, _) = simulate(&plan(PRESTO, SEVERAL), 2);
    assert!(outcome.audit.dropped[DropReason::ReceiveRing as usize].packets > 100);
    assert!(
        outcome.cores.len() == 36
            && outcome.cores.iter().filter(|(_, core)| core.packets > 0).count() > 24
    );
}

/// Recording alone changes nothing else.
#[test]
fn captures_change_no_result() {
    let off = [("capture.queues", "off"), ("capture.connections", "off"), ("capture.pcap", "")];
    let with = simulate(&plan(EVERYTHING, &[]), 1);
    let without = simulate(&plan(EVERYTHING, &off), 1);
    assert!(
        without.1.queues.is_empty()
            && without.1.connections.is_empty()
            && without.1.packets.is_empty()
    );
    assert_eq!(with.1.flows, without.1.flows);
    assert_eq!(with.1.rtts, without.1.rtts);
    assert_eq!(format!("{:?}", with.0.audit.dropped), format!("{:?}", without.0.audit.dropped));
}
