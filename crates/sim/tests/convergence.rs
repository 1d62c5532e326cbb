//! Links that fail and come back, as the whole network sees them: before its routes converge remote
//! switches go on sending into the hole, afterwards nobody does.

use crate::common::{Records, fingerprint, plan, simulate};
use millpond_core::Time;
use millpond_core::counters::DropReason;
use millpond_core::packet::flags;

const LEAF_SPINE: &str = r#"
    name = "hole"
    duration = "2s"
    until = "flows-complete"
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 3
    hosts-per-leaf = 6
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "20Gbps", delay = "2us" }
    [transport]
    kind = "dctcp"
    min-rto = "1ms"
    initial-rto = "2ms"
    max-rto = "50ms"
    [[failure]]
    link = ["leaf0", "spine1"]
    at = "300us"
    detect = "10us"
    [[traffic]]
    kind = "poisson"
    sizes = "50KB"
    load = 0.3
    stop = "3ms"
"#;

/// The same in a fat tree, where the hole is two tiers away from those who send into it.
fn fat_tree() -> String {
    let from = LEAF_SPINE.find("kind = \"leaf-spine\"").unwrap();
    let to = LEAF_SPINE.find("[transport]").unwrap();
    let tree = "kind = \"fat-tree\"\nk = 4\nhost-link = { rate = \"10Gbps\", delay = \"1us\" \
                }\nfabric-link = { rate = \"10Gbps\", delay = \"1us\" }\n";
    let text = format!("{}{tree}{}", &LEAF_SPINE[..from], &LEAF_SPINE[to..]);
    text.replace("[\"leaf0\", \"spine1\"]", "[\"edge0\", \"agg1\"]")
}

/// Every choice of paths, with what it needs to be one.
const PATHS: &[&[(&str, &str)]] = &[
    &[("switch.path.kind", "ecmp")],
    &[("switch.path.kind", "balanced")],
    &[("switch.path.kind", "spray"), ("transport.dupack-threshold", "off")],
    &[("switch.path.kind", "spray"), ("switch.path.order", "round-robin")],
    &[("switch.path.kind", "drill")],
    &[
        ("switch.path.kind", "ecmp"),
        ("switch.deflection.kind", "dibs"),
        ("switch.buffer.size", "30KB"),
    ],
    &[
        ("switch.path.kind", "labels"),
        ("edge.load-balancing.kind", "presto"),
        ("edge.load-balancing.controller-delay", "off"),
        ("host.receive-offload.kind", "presto-gro"),
    ],
    &[
        ("switch.path.kind", "labels"),
        ("edge.load-balancing.kind", "flowlet"),
        ("edge.load-balancing.controller-delay", "100us"),
        ("host.receive-offload.kind", "presto-gro"),
    ],
];

fn run(text: &str, sets: &[&[(&str, &str)]]) -> (u64, usize, Records) {
    let (outcome, records) = simulate(&plan(text, &sets.concat()), 2);
    let unfinished = records.flows.iter().filter(|flow| flow.finish.is_none()).count();
    (outcome.audit.dropped[DropReason::LinkDown as usize].packets, unfinished, records)
}

#[test]
fn all_flows_end_when_routes_have_converged() {
    for (network, text) in [("leaf-spine", LEAF_SPINE.to_string()), ("fat tree", fat_tree())] {
        for path in PATHS {
            let (dropped, unfinished, records) = run(&text, &[path]);
            assert!(records.flows.len() > 100, "{network} {path:?}: {} flows", records.flows.len());
            assert_eq!(unfinished, 0, "{network} {path:?}");
            assert!(dropped > 0, "{network} {path:?}: nobody has met the failure");
        }
        // Without convergence packets stay in the same hole: a flow that is hashed onto it never
        // ends.
        let never = &[("failure.0.converge", "never"), ("duration", "200ms")];
        let (dropped, unfinished, _) =
            run(&text.replace("detect", "converge = \"never\"\n    detect"), &[&never[1..]]);
        assert!(
            dropped > 100 && unfinished >= 10,
            "{network}: {dropped} drops, {unfinished} flows that never end"
        );
    }
}

/// The packets that leave leaf 0 for spine 1, and come from there.
fn at_the_link(records: &Records, from: Time, to: Time) -> usize {
    let data =
        records.packets.iter().filter(|p| p.packet.payload > 0 && !p.packet.has(flags::LOST));
    data.filter(|p| p.at >= from && p.at < to).count()
}

#[test]
fn a_repaired_link_is_used_again_when_routes_have_converged() {
    let text = LEAF_SPINE
        .replace("at = \"300us\"", "at = \"300us\"\n    until = \"2ms\"\n    converge = \"400us\"")
        .replace("stop = \"3ms\"", "stop = \"4ms\"\n    [capture]\n    pcap = [\"leaf0:7\"]");
    for path in PATHS {
        let (_, unfinished, records) = run(&text, &[path]);
        assert_eq!(unfinished, 0, "{path:?}");
        let us = Time::from_us;
        assert!(at_the_link(&records, us(0), us(300)) > 5, "{path:?}: before it fails");
        // Until routes follow, those who have not learned of the failure send; then nobody does,
        // although the link is up again before the routes are.
        let deflects = path.iter().any(|(key, _)| *key == "switch.deflection.kind");
        // A deflection takes any port that works.
        let between = at_the_link(&records, us(750), us(if deflects { 2_000 } else { 2_400 }));
        assert_eq!(between, 0, "{path:?}: while the routes avoid it");
        assert!(at_the_link(&records, us(2_400), us(4_000)) > 20, "{path:?}: after the repair");
    }
}

/// Failures of a link that overlap, end together or follow each other at once are the same as one.
#[test]
fn failures_that_touch_are_one() {
    for converge in ["never", "400us"] {
        let of = |times: &[(&str, &str)]| {
            let failure = |(at, until)| {
                format!(
                    "[[failure]]\n    link = [\"leaf0\", \"spine1\"]\n    at = \"{at}\"\n    \
                     until = \"{until}\"\n    detect = \"10us\"\n    converge = \"{converge}\"\n  \
                       "
                )
            };
            let failures: String = times.iter().copied().map(failure).collect();
            let (from, to) =
                (LEAF_SPINE.find("[[failure]]").unwrap(), LEAF_SPINE.find("[[traffic]]").unwrap());
            let text = format!("{}{failures}{}", &LEAF_SPINE[..from], &LEAF_SPINE[to..]);
            fingerprint(&plan(&text, &[("traffic.poisson.stop", "6ms")]), 2)
        };
        let one = of(&[("300us", "4ms")]);
        assert!(one == of(&[("300us", "4ms"), ("500us", "4ms")]), "{converge}: they end together");
        assert!(one == of(&[("300us", "1ms"), ("1ms", "4ms")]), "{converge}: one after the other");
        assert!(one == of(&[("2ms", "4ms"), ("300us", "3ms")]), "{converge}: they overlap");
        assert!(
            one == of(&[("300us", "4ms"), ("300us", "2ms")]),
            "{converge}: they begin together"
        );
        assert_ne!(one, of(&[("300us", "2ms"), ("3ms", "4ms")]), "{converge}");
    }
}

/// Two failures that overlap, of which the second cuts a leaf off: what is for it is dropped where
/// it enters the network, for the reason of its link, and what waits goes on when one of them is
/// mended.
#[test]
fn what_cannot_be_reached_is_dropped_as_link_down() {
    let cut = "[[failure]]\n    link = [\"leaf0\", \"spine1\"]\n    at = \"300us\"\n    until = \
               \"20ms\"\n    converge = \"200us\"\n[[failure]]\n    link = [\"leaf0\", \
               \"spine0\"]\n    at = \"400us\"\n    until = \"30ms\"\n    converge = \
               \"200us\"\n[[traffic]]";
    let from = LEAF_SPINE.find("[[failure]]").unwrap();
    let to = LEAF_SPINE.find("[[traffic]]").unwrap();
    let text = format!("{}{cut}{}", &LEAF_SPINE[..from], &LEAF_SPINE[to + "[[traffic]]".len()..])
        .replace("spines = 3", "spines = 2");
    let text = format!(
        "{text}    [capture]\n    pcap = [\"leaf0:6\", \"leaf0:7\", \"spine0:0\", \"spine1:0\"]\n"
    );
    let (outcome, records) = simulate(&plan(&text, &[]), 2);
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()), "in the end all are there");
    let dropped = |reason: DropReason| outcome.audit.dropped[reason as usize].packets;
    assert!(dropped(DropReason::LinkDown) > 100);
    assert_eq!(
        outcome.audit.dropped_total().packets,
        dropped(DropReason::LinkDown) + dropped(DropReason::QueueFull)
    );
    // From when both are known until one is mended nothing tries the way.
    let tried = records
        .packets
        .iter()
        .filter(|p| p.at > Time::from_us(620) && p.at < Time::from_us(20_200));
    assert_eq!(tried.count(), 0);
    let short = plan(&text, &[("until", "off"), ("duration", "15ms")]);
    let (outcome, records) = simulate(&short, 1);
    let waits = |f: &millpond_results::FlowRecord| f.finish.is_none();
    assert!(
        records.flows.iter().filter(|f| waits(f)).all(|f| (f.src < 6) != (f.dst < 6)),
        "only leaf 0's wait"
    );
    assert!(records.flows.iter().any(waits) && outcome.audit.is_conserved());
}

/// Parallel links of a file fail one by one, and a host's own link changes no route.
#[test]
fn parallel_links_fail_alone_and_host_links_change_no_route() {
    let text = r#"
        name = "parallel"
        duration = "500ms"
        until = "flows-complete"
        [topology]
        kind = "file"
        [topology.graph]
        hosts = 4
        switches = [{ name = "a" }, { name = "b" }, { name = "c", tier = 1 }]
        links = [{ a = "host0", b = "a", rate = "10Gbps", delay = "1us" },
                 { a = "host1", b = "a", rate = "10Gbps", delay = "1us" },
                 { a = "host2", b = "b", rate = "10Gbps", delay = "1us" },
                 { a = "host3", b = "b", rate = "10Gbps", delay = "1us" },
                 { a = "a", b = "b", rate = "10Gbps", delay = "1us" },
                 { a = "a", b = "c", rate = "10Gbps", delay = "1us" },
                 { a = "c", b = "b", rate = "10Gbps", delay = "1us" }]
        [transport]
        kind = "newreno"
        min-rto = "1ms"
        initial-rto = "1ms"
        [[failure]]
        link = ["a", "b"]
        at = "100us"
        detect = "20us"
        [[failure]]
        link = ["host3", "b"]
        at = "100us"
        until = "3ms"
        [[traffic]]
        kind = "poisson"
        sizes = "20KB"
        load = 0.2
        load-base = "host-links"
        stop = "4ms"
    "#;
    let (outcome, records) = simulate(&plan(text, &[]), 1);
    // The longer way, by the third switch, takes over.
    assert!(records.flows.len() > 20 && records.flows.iter().all(|flow| flow.finish.is_some()));
    assert!(outcome.audit.dropped[DropReason::LinkDown as usize].packets > 0);
    let without = text.replace("detect = \"20us\"", "converge = \"never\"");
    let (_, records) = simulate(&plan(&without, &[("duration", "50ms")]), 1);
    assert!(records.flows.iter().any(|flow| flow.finish.is_none()), "its ends have no other port");
}

#[test]
fn convergence_is_as_deterministic_as_all_else() {
    let more = "[[failure]]\n    link = [\"agg2\", \"core0\"]\n    at = \"500us\"\n    until = \
         \"900us\"\n    converge = \"100us\"\n[[failure]]\n    link = [\"edge0\", \"agg1\"]\n    \
         at = \"600us\"\n    until = \"700us\"\n    converge = \"100us\"\n    [[traffic]]";
    for path in PATHS {
        let text = fat_tree().replace("[[traffic]]", more);
        let with = |set: &[(&str, &str)]| plan(&text, &[path, set].concat());
        let one = fingerprint(&with(&[]), 1);
        assert_eq!(one, fingerprint(&with(&[]), 3), "{path:?}: threads");
        assert_eq!(
            one,
            fingerprint(&with(&[("engine.partitions", "one")]), 1),
            "{path:?}: one partition"
        );
        assert_eq!(
            one,
            fingerprint(&with(&[("engine.ports", "general")]), 2),
            "{path:?}: general ports"
        );
    }
}
