//! MPTCP in the network: what subflows take together where they meet, and what several paths give.

use crate::common::{assert_nothing_changes, plan, simulate};
use millpond_core::Time;

/// Two hosts at each end of one link, behind RED, so that all packets have the same loss. Host 0
/// sends to host 2 by MPTCP, host 1 to host 3 by NewReno.
/// Returns the MPTCP's bytes over the other's, once both are settled.
fn share(subflows: u32, coupling: &str) -> f64 {
    let text = format!(
        r#"
        name = "share"
        duration = "3s"
        warm-up = "500ms"
        [topology]
        kind = "dumbbell"
        hosts-per-side = 2
        host-link = {{ rate = "10Gbps", delay = "10us" }}
        bottleneck = {{ rate = "1Gbps", delay = "100us" }}
        [switch]
        buffer = {{ kind = "per-port", size = "60KB" }}
        marking = {{ kind = "none" }}
        admission = {{ kind = "red", min-threshold = "8KB", max-threshold = "50KB" }}
        [transport]
        kind = "newreno"
        handshake = false
        [[traffic]]
        name = "one"
        kind = "flows"
        rows = [["0us", 1, 3, 10000000000]]
        [[traffic]]
        name = "several"
        kind = "flows"
        rows = [["0us", 0, 2, 10000000000]]
        transport = {{ kind = "mptcp", mptcp-subflows = {subflows}, mptcp-coupling = "{coupling}" }}
        "#
    );
    let (outcome, _) = simulate(&plan(&text, &[]), 1);
    let bytes = |pair| {
        outcome.pairs.iter().find(|(of, _)| **of == pair).map_or(0, |(_, bytes)| *bytes) as f64
    };
    bytes((0, 2)) / bytes((1, 3))
}

/// RFC 6356 §2, goal 2: do no harm. Coupled subflows take about what one TCP takes; uncoupled ones
/// as many shares as they are. LIA's α follows the larger of windows that are never equal, so two
/// take a little more than one.
#[test]
fn coupled_subflows_share_a_link_as_one_tcp_and_uncoupled_ones_as_several() {
    for (subflows, coupling, expected) in [
        (1, "lia", 0.85..1.15),
        (1, "uncoupled", 0.85..1.15),
        (2, "lia", 0.85..1.4),
        (2, "olia", 0.85..1.3),
        (4, "olia", 0.85..1.4),
        (2, "uncoupled", 1.7..2.4),
        (4, "uncoupled", 3.3..4.5),
    ] {
        let share = share(subflows, coupling);
        assert!(expected.contains(&share), "{subflows} subflows, {coupling}: {share}");
    }
}

const STRIDE: &str = r#"
    name = "paths"
    duration = "12ms"
    warm-up = "2ms"
    [topology]
    kind = "leaf-spine"
    leaves = 2
    spines = 4
    hosts-per-leaf = 4
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "10Gbps", delay = "1us" }
    [switch]
    buffer = { kind = "per-port", size = "300KB" }
    marking = { kind = "none" }
    [transport]
    kind = "newreno"
    min-rto = "1ms"
    receive-buffer = "6MB"
    [capture]
    connections = { every = "1ms", max = 8 }
    [[traffic]]
    name = "stride"
    kind = "stride"
    offset = 4
    size = "1GB"
"#;

/// Four senders and four spines. By one path each, ECMP gives 6.84 of 10 Gb/s on average over hash
/// outcomes; with eight subflows each every spine has some of all of them.
#[test]
fn eight_subflows_use_the_paths_that_one_leaves_empty() {
    let goodput = |set: &[(&str, &str)], seed: &str| {
        let (outcome, _) = simulate(&plan(STRIDE, &[set, &[("seed", seed)]].concat()), 1);
        outcome.pairs.values().sum::<u64>() as f64 * 8.0 / 10e-3 / 1e9
    };
    let (mut one, mut eight) = (0.0, 0.0);
    for seed in ["1", "2", "3", "4"] {
        one += goodput(&[], seed) / 4.0;
        eight += goodput(&[("transport.kind", "mptcp")], seed) / 4.0;
    }
    // Of 8 senders' 80 Gb/s, headers included.
    assert!((40.0..66.0).contains(&one), "{one}");
    assert!(eight > one * 1.15 && eight > 62.0, "{eight} beside {one}");
}

/// Receive offload sees each subflow as a flow: segments merge, nothing is lost of the stream, and
/// where work is counted none is counted for an order that is the subflow's own.
#[test]
fn receive_offload_merges_each_subflows_packets() {
    let set = [("transport.kind", "mptcp"), ("host.receive-offload", "{ kind = \"stock-gro\" }")];
    let (outcome, records) = simulate(&plan(STRIDE, &set), 1);
    let offload = &outcome.counters.numbers()["stock-gro"];
    let segments: u64 = offload
        .iter()
        .filter(|(name, _)| name.starts_with("segments-"))
        .map(|(_, count)| count)
        .sum();
    assert!(offload["packets"] > 2 * segments, "{offload:?}");
    assert!(records.flows.iter().all(|flow| flow.timeouts < 20));
    let delivered: u64 = outcome.pairs.values().sum();
    assert!(delivered as f64 * 8.0 / 10e-3 > 50e9, "{delivered}");
}

#[test]
fn threads_partitions_and_ports_change_nothing() {
    for set in [
        &[("transport.kind", "mptcp"), ("duration", "4ms")][..],
        &[("transport.kind", "mptcp"), ("transport.mptcp-coupling", "olia"), ("duration", "4ms")],
        &[
            ("transport.kind", "mptcp"),
            ("transport.handshake", "false"),
            ("host.receive-offload", "{ kind = \"stock-gro\" }"),
            ("switch.buffer", "{ kind = \"per-port\", size = \"20KB\" }"),
            ("duration", "4ms"),
        ],
    ] {
        assert_nothing_changes(STRIDE, set, &[2]);
    }
}

/// A link dies and nobody routes around it. The data on it comes by other subflows after a timeout
/// of one, not of the connection.
#[test]
fn a_connection_outlives_the_path_of_some_of_its_subflows() {
    let text = STRIDE.replace("1GB", "4MB").replace("12ms", "2s")
        + "[[failure]]\nlink = [\"leaf0\", \"spine1\"]\nat = \"500us\"\nconverge = \"never\"\n";
    let (_, records) =
        simulate(&plan(&text, &[("transport.kind", "mptcp"), ("until", "flows-complete")]), 1);
    assert_eq!(records.flows.len(), 8);
    let done = records.flows.iter().filter_map(|flow| flow.finish).max().expect("some are over");
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()), "all are delivered");
    assert!(
        records.flows.iter().any(|flow| flow.timeouts > 0),
        "some subflow was on the dead link"
    );
    assert!(done < Time::from_ms(100), "{done:?}");
}
