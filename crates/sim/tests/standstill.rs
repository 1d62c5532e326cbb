//! A run whose open flows can never end stalls, at one time for any number of threads and
//! partitions; a run in which something can still happen does not.

use crate::common::{assert_same, fingerprint, plan, simulate};
use millpond_core::Time;
use millpond_core::registry::Choice;
use millpond_core::switch::pause::PauseTarget;
use millpond_scenario::plan::Plan;
use millpond_scenario::transport::TransportKind;
use millpond_sim::Outcome;
use millpond_sim::standstill::Standstill;

/// Three hosts at a switch. Host 0 loses its link amid its flow.
const CUT: &str = r#"
    until = "flows-complete"
    [topology]
    kind = "single-switch"
    hosts = 3
    [[traffic]]
    kind = "flows"
    rows = [["0us", 0, 1, 1000000], ["0us", 2, 1, 1000000]]
    [[failure]]
    link = ["host0", "switch0"]
    at = "100us"
"#;

/// Runs a plan that must stall before so long, on one thread and on two, with several partitions
/// and with one.
fn stalls(plan: &Plan, before: Time, what: &str) -> (Outcome, Standstill) {
    let (outcome, _) = simulate(plan, 1);
    let found =
        outcome.standstill.clone().unwrap_or_else(|| panic!("{what}: {:?}", outcome.simulated));
    assert!(found.is_end && outcome.is_stalled() && !outcome.interrupted, "{what}");
    assert!(outcome.simulated <= before, "{what}: at {}", outcome.simulated);
    assert_eq!(found.at, outcome.simulated, "{what}");
    assert_same(&fingerprint(plan, 1), &fingerprint(plan, 2), what);
    (outcome, found)
}

#[test]
fn every_transport_stalls_when_a_host_is_cut_off() {
    let kinds =
        TransportKind::place().mechanisms.iter().map(|it| vec![("transport.kind", it.kind)]);
    let others: [&[(&str, &str)]; 4] = [
        &[("transport.kind", "dctcp"), ("transport.fixed-rto", "1ms")],
        &[("transport.kind", "homa"), ("transport.homa-abort-after", "off")],
        &[("transport.kind", "dcqcn"), ("rdma.recovery.kind", "selective")],
        &[("transport.kind", "dctcp"), ("transport.handshake", "false")],
    ];
    for set in kinds.chain(others.iter().map(|set| set.to_vec())) {
        let (outcome, found) = stalls(&plan(CUT, &set), Time::from_s(1), &format!("{set:?}"));
        assert_eq!(
            (found.open, found.cut.flows, &found.cut.hosts[..]),
            (1, 1, &[0][..]),
            "{set:?}"
        );
        assert_eq!((outcome.hosts.started, outcome.hosts.completed), (2, 1), "{set:?}");
    }
}

/// Both hosts are joined, but the spine on the flow's way knows of no other.
#[test]
fn flows_that_routes_lead_into_a_dead_link_stall_when_they_have_tried_often_enough() {
    let text = r#"
        until = "flows-complete"
        [topology]
        kind = "leaf-spine"
        leaves = 2
        spines = 2
        hosts-per-leaf = 4
        [[traffic]]
        kind = "flows"
        rows = [["0us", 0, 4, 100000], ["0us", 1, 5, 100000],
                ["0us", 2, 6, 100000], ["0us", 3, 7, 100000],
                ["0us", 0, 5, 100000], ["0us", 1, 6, 100000],
                ["0us", 2, 7, 100000], ["0us", 3, 4, 100000]]
        [[failure]]
        link = ["leaf1", "spine0"]
        at = "0us"
        converge = "never"
    "#;
    let sets: [&[(&str, &str)]; 4] = [
        &[("transport.kind", "dctcp"), ("transport.fixed-rto", "1ms")],
        &[("transport.kind", "tas")],
        &[("transport.kind", "dcqcn")],
        &[("transport.kind", "homa"), ("transport.homa-abort-after", "off")],
    ];
    for set in sets {
        let (outcome, found) = stalls(&plan(text, set), Time::from_s(10_000), &format!("{set:?}"));
        assert_eq!((found.cut.flows, found.deadlock), (0, None), "{set:?}");
        assert!(
            found.silence.is_some_and(|it| it.timed_out > 0)
                && found.open > 0
                && outcome.hosts.completed > 0,
            "{set:?}"
        );
    }
    // With a back-off to two minutes the last of the timeouts comes after an hour.
    let backs_off = plan(text, &[("transport.kind", "dctcp")]);
    stalls(&backs_off, Time::from_s(10_000), "dctcp");
}

/// Five switches in a ring. Every flow crosses two links of it, which are too slow for it.
fn ring(set: &[(&str, &str)]) -> Plan {
    let hosts: String = (0..5)
        .map(|n| {
            format!("{{ a = \"host{n}\", b = \"ring{n}\", rate = \"40Gbps\", delay = \"1us\" }},\n")
        })
        .collect();
    let links: String = (0..5)
        .map(|n| {
            format!(
                "{{ a = \"ring{n}\", b = \"ring{}\", rate = \"10Gbps\", delay = \"1us\" }},\n",
                (n + 1) % 5
            )
        })
        .collect();
    let names: Vec<String> = (0..5).map(|n| format!("{{ name = \"ring{n}\" }}")).collect();
    let rows: String = (0..5).map(|n| format!("[0, {n}, {}, 5000000],\n", (n + 2) % 5)).collect();
    let text = format!(
        r#"
        until = "flows-complete"
        [topology]
        kind = "file"
        graph = {{ hosts = 5, switches = [{}], links = [
        {hosts}{links}] }}
        [switch]
        marking = {{ kind = "none" }}
        buffer = {{ kind = "pools", size = "200KB" }}
        pause = {{ kind = "pfc" }}
        [transport]
        kind = "dcqcn"
        [[traffic]]
        kind = "flows"
        rows = [{rows}]
        "#,
        names.join(", ")
    );
    plan(&text, set)
}

#[test]
fn a_ring_of_pauses_stalls_and_is_named() {
    let (outcome, found) = stalls(&ring(&[]), Time::from_s(2), "ring");
    let found = found.deadlock.expect("a deadlock");
    assert_eq!((found.stops, found.flows.len()), (5, 5));
    // Each queue leads to the next switch, whose own queue is the next one of the cycle.
    assert_eq!(found.cycle.len(), 5);
    for (stop, next) in found.cycle.iter().zip(found.cycle.iter().cycle().skip(1)) {
        assert_eq!(
            (stop.by.0, stop.target),
            (next.at.0, PauseTarget::Priority(0)),
            "{:?}",
            found.cycle
        );
    }
    assert_eq!(outcome.hosts.completed, 0);
    // Without pauses, or with fewer hops, all flows end.
    let set = [("switch.pause.kind", "none"), ("rdma.recovery.kind", "selective")];
    let (outcome, _) = simulate(&ring(&set), 1);
    assert_eq!((outcome.standstill, outcome.hosts.completed), (None, 5));
}

#[test]
fn a_run_with_a_duration_goes_on_and_tells_of_the_deadlock() {
    let timed = ring(&[("until", "off"), ("duration", "20ms")]);
    let (outcome, _) = simulate(&timed, 1);
    let found = outcome.standstill.clone().expect("a deadlock");
    assert_eq!(
        (found.is_end, outcome.is_stalled(), outcome.simulated),
        (false, false, Time::from_ms(20))
    );
    assert_eq!(found.deadlock.map(|found| found.cycle.len()), Some(5));
}

#[test]
fn a_watchdog_ends_a_ring_of_pauses() {
    for action in ["drop", "forward"] {
        let set = [("switch.pause.watchdog", "2ms"), ("switch.pause.watchdog-action", action)];
        let (outcome, _) = simulate(&ring(&set), 1);
        assert_eq!((&outcome.standstill, outcome.hosts.completed), (&None, 5), "{action}");
        assert!(outcome.counters.get("pfc", "watchdog_storms") > 0, "{action}");
        let dropped =
            outcome.audit.dropped[millpond_core::counters::DropReason::Watchdog as usize].packets;
        assert_eq!(dropped > 0, action == "drop", "{action}: {dropped}");
    }
}

/// Deflected packets wait in paused queues of other switches.
#[test]
fn bfc_beside_a_deflection_stalls_and_the_cycle_is_named() {
    let text = r#"
        until = "flows-complete"
        duration = "1s"
        [topology]
        kind = "leaf-spine"
        leaves = 2
        spines = 2
        hosts-per-leaf = 4
        fabric-link = { rate = "10Gbps", delay = "1us" }
        [switch]
        marking = { kind = "none" }
        buffer = { kind = "per-port", size = "20KB" }
        queue = { kind = "dynamic-queues" }
        pause = { kind = "bfc" }
        deflection = { kind = "dibs" }
        [transport]
        kind = "cubic"
        dupack-threshold = "off"
        [[traffic]]
        kind = "incast"
        degree = 7
        response = "50KB"
        receiver = 0
    "#;
    let (_, found) = stalls(&plan(text, &[]), Time::from_ms(999), "bfc and dibs");
    let found = found.deadlock.expect("a deadlock");
    assert!(found.cycle.len() >= 2 && !found.flows.is_empty(), "{found:?}");
    for (stop, next) in found.cycle.iter().zip(found.cycle.iter().cycle().skip(1)) {
        assert_eq!(stop.by.0, next.at.0, "{:?}", found.cycle);
        assert!(matches!(stop.target, PauseTarget::Flow(_)));
    }
    for set in [("switch.deflection.kind", "none"), ("switch.pause.kind", "none")] {
        let (outcome, _) = simulate(&plan(text, &[set]), 1);
        assert_eq!(
            (outcome.standstill, outcome.hosts.started - outcome.hosts.completed),
            (None, 0),
            "{set:?}"
        );
    }
}

/// Nothing moves for long, and then it does.
#[test]
fn a_run_in_which_something_can_still_happen_does_not_stall() {
    let slow = r#"
        until = "flows-complete"
        [topology]
        kind = "single-switch"
        hosts = 2
        host-link = { rate = "20Kbps", delay = "1us" }
        [[traffic]]
        kind = "flows"
        rows = [["0us", 0, 1, 15000]]
    "#;
    let later = CUT.replace("at = \"100us\"", "at = \"100us\"\nuntil = \"30s\"");
    let arrivals = CUT.replace("1000000]]", "1000000], [\"20s\", 2, 1, 1000]]");
    let lossy =
        CUT.replace("at = \"100us\"", "at = \"0us\"\nloss = 0.7").replace("1000000", "20000");
    let far = slow.replace("20Kbps", "1Gbps").replace("1us", "5s");
    /// A scenario, the keys set in it, and the flows that stay open.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u64);
    let cases: [Case<'_>; 8] = [
        (slow, &[("transport.fixed-rto", "20ms")], 0),
        (slow, &[("transport.kind", "dcqcn")], 0),
        (&later, &[("transport.kind", "dctcp")], 0),
        (&later, &[("transport.kind", "tas")], 0),
        (&later, &[("transport.kind", "dcqcn")], 0),
        (&arrivals, &[("transport.kind", "dctcp")], 1),
        (&lossy, &[("transport.kind", "dctcp")], 0),
        (&far, &[("transport.kind", "dctcp"), ("transport.fixed-rto", "200ms")], 0),
    ];
    for (text, set, open) in cases {
        let (outcome, _) = simulate(&plan(text, set), 1);
        let left = outcome.hosts.started - outcome.hosts.completed;
        assert_eq!(left, open, "{set:?}: {:?} at {}", outcome.standstill, outcome.simulated);
        assert_eq!(outcome.is_stalled(), open > 0, "{set:?}");
    }
}
