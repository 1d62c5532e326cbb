//! Every scenario that the questions can lead to passes `check` without a warning.

use super::*;
use answers::{networks, transports};
use millpond_core::switch::pause::PfcParams;

/// The warnings that `check` prints of all variants.
fn warnings(text: &str) -> Vec<String> {
    let scenario = Scenario::parse("new.toml", text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut warnings = scenario.idle();
    let variants = scenario.variants().into_iter().map(Some);
    for variant in std::iter::once(None).chain(variants) {
        let plan = scenario.plan(variant).unwrap_or_else(|e| panic!("{variant:?}: {e}\n{text}"));
        let of = |warning: &String| format!("{variant:?}: {warning}");
        warnings.extend(plan.warnings().iter().map(of));
    }
    warnings
}

#[test]
fn every_topology_transport_traffic_and_mechanism_passes_check() {
    let mut scenarios = 0;
    for topology in networks() {
        for transport in transports() {
            let fitting = mechanisms::fitting(&topology, transport);
            for kind in answers::traffic_kinds() {
                let traffic = answers::traffic(kind, &topology).unwrap();
                let rate = answers::rate("25Gbps").unwrap();
                let mechanisms = fitting.clone();
                let answers = Answers { topology, rate, transport, traffic, mechanisms };
                let text = answers.scenario("all", "all.toml");
                assert_eq!(warnings(&text), Vec::<String>::new(), "{text}");
                scenarios += 1;
            }
        }
    }
    let kinds = answers::traffic_kinds().len();
    assert_eq!(scenarios, networks().len() * transports().len() * kinds);
}

/// Each mechanism by itself changes what the plain scenario needs, such as limits.
#[test]
fn each_mechanism_alone_passes_check_at_each_rate() {
    let mut seen = Vec::new();
    for transport in transports() {
        for topology in networks().into_iter().take(2) {
            for mechanism in mechanisms::fitting(&topology, transport) {
                for rate in answers::RATES.into_iter().chain(["800Gbps"]) {
                    let rate = answers::rate(rate).unwrap();
                    let traffic = answers::traffic("incast", &topology).unwrap();
                    let mechanisms = vec![mechanism];
                    let answers = Answers { topology, rate, transport, traffic, mechanisms };
                    let text = answers.scenario("one", "one.toml");
                    assert_eq!(warnings(&text), Vec::<String>::new(), "{text}");
                }
                seen.push(&mechanism.name);
            }
        }
    }
    assert!(answers::mechanisms().iter().all(|mechanism| seen.contains(&&mechanism.name)));
}

#[test]
fn the_smallest_and_the_largest_networks_pass_check() {
    for size in [
        "single-switch:2",
        "single-switch:1024",
        "leaf-spine:2x2x1",
        "leaf-spine:64x64x16",
        "fat-tree:16",
        "dumbbell:2",
        "dumbbell:512",
        "rail-optimised:2x2",
        "rail-optimised:64x16",
    ] {
        let topology = answers::topology(size).unwrap();
        let transport = &transports()[0];
        for kind in ["web-search:0.95", "incast", "elephants", "all-reduce", "broadcast"] {
            let traffic = answers::traffic(kind, &topology).unwrap();
            let rate = answers::rate("100Gbps").unwrap();
            let mechanisms = vec![];
            let answers = Answers { topology, rate, transport, traffic, mechanisms };
            let text = answers.scenario("size", "size.toml");
            assert_eq!(warnings(&text), Vec::<String>::new(), "{text}");
        }
    }
}

#[test]
fn answers_are_read_back_as_they_are_written() {
    for topology in networks() {
        assert_eq!(answers::topology(&topology.to_string()), Ok(topology));
        for kind in answers::traffic_kinds() {
            let traffic = answers::traffic(kind, &topology).unwrap();
            assert_eq!(answers::traffic(&traffic.to_string(), &topology), Ok(traffic));
        }
    }
    assert_eq!(answers::topology(" leaf-spine 2x3x4 ").unwrap().to_string(), "leaf-spine:2x3x4");
}

#[test]
fn wrong_answers_get_the_nearest_name_or_the_limits() {
    let (leaf_spine, dumbbell) = (networks()[0], networks()[3]);
    let (tcp, rdma) = (&transports()[0], answers::transport("dcqcn").unwrap());
    let names = |text: &str, topology, transport| {
        let read = mechanisms::chosen(text, topology, transport);
        read.map(|of| of.iter().map(|one| &*one.name).collect::<Vec<_>>())
    };
    let errors = [
        (answers::topology("leafspine").unwrap_err(), "did you mean `leaf-spine`?"),
        (answers::topology("ring").unwrap_err(), "known here: leaf-spine, single-switch"),
        (answers::topology("leaf-spine:4x4").unwrap_err(), "LEAVESxSPINESxHOSTS-PER-LEAF"),
        (answers::topology("leaf-spine:64x4x64").unwrap_err(), "hosts: 2 to 1024 (got 4096)"),
        (answers::topology("fat-tree:5").unwrap_err(), "an even number (got 5)"),
        (answers::rate("25Gpbs").unwrap_err(), "did you mean `25Gbps`?"),
        (answers::rate("2Tbps").unwrap_err(), "1Gbps to 800Gbps (got 2Tbps)"),
        (answers::transport("dctpc").unwrap_err(), "did you mean `dctcp`?"),
        (answers::traffic("websearch", &leaf_spine).unwrap_err(), "did you mean `web-search`?"),
        (answers::traffic("web-search:2", &leaf_spine).unwrap_err(), "0.01 to 0.95 (got 2)"),
        (answers::traffic("web-search:NaN", &leaf_spine).unwrap_err(), "0.01 to 0.95 (got NaN)"),
        (answers::traffic("incast:16", &dumbbell).unwrap_err(), "1 to 15 servers"),
        (answers::traffic("elephants:0", &dumbbell).unwrap_err(), "1KB to 1GB (got 0B)"),
        (names("prest", &leaf_spine, tcp).unwrap_err(), "did you mean `presto`?"),
        (names("presto", &dumbbell, tcp).unwrap_err(), "needs several paths"),
        (names("nrm", &leaf_spine, rdma).unwrap_err(), "needs one of the transports dctcp"),
    ];
    for (error, part) in errors {
        assert!(error.contains(part), "{error}: {part}");
    }
    assert_eq!(names("tlt, tlt,canary,", &leaf_spine, tcp), Ok(vec!["tlt", "canary"]));
    assert_eq!(names("none", &leaf_spine, tcp), Ok(vec![]));
}

#[test]
fn thresholds_of_marks_and_pauses_are_written_where_the_transport_uses_them() {
    let text = |kind: &str, mechanisms: &str| {
        let (topology, rate) = (networks()[0], answers::rate("25Gbps").unwrap());
        let transport = transports().iter().find(|one| one.kind == kind).unwrap();
        let mechanisms = mechanisms::chosen(mechanisms, &topology, transport).unwrap();
        let traffic = answers::traffic("incast", &topology).unwrap();
        Answers { topology, rate, transport, traffic, mechanisms }.scenario("s", "s.toml")
    };
    assert!(text("dctcp", "none").contains("\nthreshold-packets = \"auto\""));
    assert!(!text("cubic", "none").contains("threshold"));
    let paused = text("dcqcn", "pfc");
    assert!(paused.contains("\"switch.pause.alpha\" = 0.0625") && paused.contains("min-threshold"));
    let alpha = PfcParams::default().alpha;
    assert!(paused.contains(&format!("\"switch.pause.alpha\" = {alpha}")), "the default");
}
