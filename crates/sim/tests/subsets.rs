//! Every subset of the five systems runs on one network: each of its systems acts, the run drains,
//! the audit holds, and results do not depend on threads.

use crate::common::{assert_same, fingerprint, plan, simulate};
use millpond_core::Time;
use millpond_core::counters::DropReason;
use millpond_sim::Outcome;

/// Queries that overflow a port, a limited tenant, and a store slower than its clients.
const NETWORK: &str = r#"
    name = "subsets"
    until = "flows-complete"
    duration = "1s"
    [topology]
    kind = "leaf-spine"
    leaves = 3
    spines = 2
    hosts-per-leaf = 4
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "10Gbps", delay = "1us" }
    [switch]
    buffer = { kind = "per-port", size = "60KB" }
    marking = { kind = "ecn", threshold-packets = 20 }
    [transport]
    kind = "dctcp"
    min-rto = "1ms"
    initial-rto = "1ms"
    [edge]
    virtual-switch = { kind = "lossy" }
    [[application]]
    name = "store"
    traffic = ["writes"]
    hosts = 11
    per-byte = "2ns"
    ring = 64
    [[limit]]
    name = "tenant"
    kind = "htb"
    hosts = "0..3"
    traffic = ["bulk"]
    rate = "1Gbps"
    [[traffic]]
    name = "backup"
    kind = "bijection"
    size = "500KB"
    [[traffic]]
    name = "queries"
    kind = "incast"
    degree = 10
    response = "20KB"
    rate = 2000
    stop = "4ms"
    [[traffic]]
    name = "bulk"
    kind = "rpc"
    pairs = ["0-4", "1-5"]
    request = "200KB"
    response = "1B"
    stop = "4ms"
    [[traffic]]
    name = "writes"
    kind = "rpc"
    pairs = ["2-11", "5-11"]
    connections = 8
    request = "64KB"
    response = 100
    stop = "4ms"
"#;

type Settings = &'static [(&'static str, &'static str)];

const SYSTEMS: [(&str, Settings); 5] = [
    (
        "presto",
        &[
            ("edge.load-balancing.kind", "presto"),
            ("switch.path.kind", "labels"),
            ("host.receive-offload.kind", "presto-gro"),
        ],
    ),
    (
        "backdraft",
        &[
            ("edge.virtual-switch.kind", "backdraft"),
            ("edge.virtual-switch.memory", "48KB"),
            ("switch.queue.kind", "strict-priority"),
        ],
    ),
    ("tlt", &[("transport.importance.kind", "tlt"), ("switch.admission.kind", "color-aware")]),
    ("nrm", &[("limit.tenant.kind", "nrm")]),
    ("canary", &[("switch.deflection.kind", "canary"), ("transport.rank.kind", "remaining-bytes")]),
];

/// Whether a system did its part of a run. Without the system the number is zero.
fn acts(system: &str, outcome: &Outcome) -> bool {
    let of = |mechanism: &str, counter: &str| outcome.counters.get(mechanism, counter);
    match system {
        "presto" => of("presto-gro", "packets") > 0,
        "backdraft" => outcome.hosts.held > Time::ZERO,
        "tlt" => outcome.hosts.marking.sent[1].packets > 0,
        "nrm" => outcome.limits.values().any(|limit| limit.marked > 0),
        _ => outcome.deflected > 0,
    }
}

#[test]
fn every_subset_of_the_five_systems_runs() {
    for subset in 0..1u32 << SYSTEMS.len() {
        let of_subset = || {
            SYSTEMS
                .iter()
                .enumerate()
                .filter(|(i, _)| subset >> i & 1 != 0)
                .map(|(_, system)| system)
        };
        let names: Vec<&str> = of_subset().map(|(name, _)| *name).collect();
        let set: Vec<(&str, &str)> =
            of_subset().flat_map(|(_, settings)| settings.iter().copied()).collect();
        let plan = plan(NETWORK, &set);
        let (outcome, records) = simulate(&plan, 1);
        assert!(!records.flows.is_empty(), "{names:?}");
        let open = records.flows.iter().filter(|flow| flow.finish.is_none()).count();
        assert_eq!((open, outcome.standstill.is_none()), (0, true), "{names:?} leaves flows open");
        for (name, _) in of_subset() {
            assert!(acts(name, &outcome), "{name} of {names:?} does nothing");
        }
        assert_same(&fingerprint(&plan, 1), &fingerprint(&plan, 2), &format!("{names:?}"));
    }
}

/// A paused flow sends nothing, and TLT forces nothing out of it: the store's host drops no packet,
/// although Backdraft's headroom counts only what unpaused flows have under way.
#[test]
fn tlt_forces_no_packet_out_of_a_paused_flow() {
    let both = [SYSTEMS[1].1, SYSTEMS[2].1].concat();
    let (outcome, records) = simulate(&plan(NETWORK, &both), 1);
    let drops = &outcome.audit.dropped;
    let at_host = drops[DropReason::VirtualSwitch as usize];
    assert_eq!(at_host.packets, 0);
    assert!(outcome.hosts.held > Time::ZERO, "the store pauses its clients");
    assert!(outcome.hosts.marking.sent[2].packets > 0, "TLT forces packets out of other flows");
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()));
}
