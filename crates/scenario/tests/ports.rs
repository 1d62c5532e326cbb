//! Thresholds and buffers that follow the tier of a switch or the rate of a link, and names of the
//! field in errors.

use millpond_scenario::Scenario;
use millpond_scenario::plan::{Plan, PortKind};

/// Leaves with ports of 10 and of 40 Gb/s.
const HEAD: &str = "duration = \"1ms\"\n[topology]\nleaves = 2\nspines = 2\nhosts-per-leaf = \
                    4\nfabric-link = { rate = \"40Gbps\", delay = \"1us\" }\n[[traffic]]\nkind = \
                    \"permutation\"\nsize = \"1MB\"\n";

fn plan(switch: &str, set: &[(&str, &str)]) -> Plan {
    let set: Vec<(String, String)> =
        set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let scenario = Scenario::parse("s", &format!("{HEAD}[switch]\n{switch}\n"))
        .unwrap_or_else(|e| panic!("{e}"));
    let plan = scenario.plan(None, &set, None).unwrap_or_else(|e| panic!("{e}"));
    // The resolved scenario means the same, and resolves to itself.
    let again =
        Scenario::parse("r", &plan.resolved).unwrap_or_else(|e| panic!("{e}\n{}", plan.resolved));
    let again = again.plan(None, &[], None).unwrap();
    assert_eq!((&again.resolved, again.port_kinds()), (&plan.resolved, plan.port_kinds()));
    plan
}

fn told(plan: &Plan) -> Vec<String> {
    plan.port_kinds().iter().map(PortKind::to_string).collect()
}

fn fails(switch: &str, says: &str) {
    let scenario = Scenario::parse("s", &format!("{HEAD}[switch]\n{switch}\n"));
    let error = scenario.and_then(|s| s.plan(None, &[], None)).unwrap_err().to_string();
    assert!(error.contains(says), "{switch}: {error}");
}

#[test]
fn thresholds_and_buffers_by_rate_and_tier() {
    // Nobody says anything: both follow the rate.
    assert_eq!(
        told(&plan("", &[])),
        [
            "leaf ports of 10Gbps: up to 300KB, CE from 65 packets on",
            "leaf ports of 40Gbps: up to 1200KB, CE from 260 packets on",
            "spine ports of 40Gbps: up to 1200KB, CE from 260 packets on",
        ]
    );
    // A number is that number everywhere.
    let flat = "buffer = { size = \"200KB\" }\nmarking = { threshold-packets = 65 }";
    let all = told(&plan(flat, &[]));
    assert!(all.iter().all(|kind| kind.ends_with("up to 200KB, CE from 65 packets on")), "{all:?}");
    // Unless it says of which rate it is.
    let per = "buffer = { size = \"100KB\", per = \"10Gbps\" }\nmarking = { threshold-bytes = \
               \"10KB\", per = \"5Gbps\" }";
    assert_eq!(
        told(&plan(per, &[]))[..2],
        [
            "leaf ports of 10Gbps: up to 100KB, CE from 20KB on",
            "leaf ports of 40Gbps: up to 400KB, CE from 80KB on"
        ]
    );
    // Or of which tier.
    let tiers = "buffer = { size = { leaf = \"100KB\", spine = \"1MB\" } }\nmarking = { \
                 threshold-packets = { spine = 30, others = 20 } }";
    assert_eq!(
        told(&plan(tiers, &[])),
        [
            "leaf ports of 10Gbps: up to 100KB, CE from 20 packets on",
            "leaf ports of 40Gbps: up to 100KB, CE from 20 packets on",
            "spine ports of 40Gbps: up to 1MB, CE from 30 packets on",
        ]
    );
    // A memory of the whole switch, by what its links carry together: 4 · 10 + 2 · 40 and 2 · 40
    // Gb/s.
    let shared = "buffer = { kind = \"shared\", size = \"20KB\", per = \"1Gbps\" }\nmarking = { \
                  kind = \"none\" }";
    assert_eq!(told(&plan(shared, &[]))[0], "leaf ports of 10Gbps: up to 1200KB");
    assert_eq!(told(&plan(shared, &[]))[2], "spine ports of 40Gbps: up to 800KB");
    // Packets of some tiers alone leave the others their bytes.
    let packets = "buffer = { packets = { spine = 100 } }\nmarking = { kind = \"none\" }";
    assert_eq!(
        told(&plan(packets, &[]))[1..],
        ["leaf ports of 40Gbps: up to 1200KB", "spine ports of 40Gbps: up to 100 packets"]
    );
}

#[test]
fn overrides_of_one_tier_leave_the_others_what_they_had() {
    let flat = "buffer = { size = \"200KB\" }";
    let p = plan(
        flat,
        &[("switch.buffer.size.spine", "1MB"), ("switch.marking.threshold-packets.spine", "9")],
    );
    assert!(
        p.resolved.contains("size = { spine = \"1MB\", others = \"200KB\" }"),
        "{}",
        p.resolved
    );
    let all = told(&p);
    assert!(
        all[1].contains("up to 200KB") && all[2].ends_with("up to 1MB, CE from 9 packets on"),
        "{all:?}"
    );
    // And one number takes the place of a table.
    let p = plan(
        "buffer = { size = { leaf = \"1MB\", spine = \"2MB\" } }",
        &[("switch.buffer.size", "3MB")],
    );
    assert!(told(&p).iter().all(|kind| kind.contains("up to 3MB")));
}

#[test]
fn slips_with_tiers_and_rates_are_told() {
    fails(
        "buffer = { size = { core = \"1MB\" } }",
        "s:11:19: `switch.buffer.size`: the network has no tier \"core\"",
    );
    fails(
        "buffer = { size = { roof = \"1MB\" } }",
        "there is no tier \"roof\"; there are leaf, spine",
    );
    fails(
        "buffer = { size = { edge = \"1MB\", leaf = \"2MB\" } }",
        "edge and leaf are the same tier",
    );
    fails("buffer = { size = { leaf = \"1 furlong\" } }", "leaf: ");
    fails("marking = { per = \"10Gbps\" }", "write threshold-packets or threshold-bytes as well");
    fails("marking = { threshold-packets = 65, per = \"0bps\" }", "switch.marking.per");
    fails("buffer = { per = \"10Gbps\" }", "write size or packets as well");
    fails("marking = { threshold-packets = \"many\" }", "a whole number");
}

#[test]
fn thresholds_that_full_packets_cannot_reach_are_warned_of() {
    let warns = |switch: &str| {
        plan(switch, &[]).warnings.iter().any(|w| w.contains("marks no full queue of leaf ports"))
    };
    assert!(warns("buffer = { size = \"100KB\" }\nmarking = { threshold-packets = 67 }"));
    assert!(warns("buffer = { packets = 50 }\nmarking = { threshold-packets = 51 }"));
    assert!(!warns("buffer = { size = \"100KB\" }\nmarking = { threshold-packets = 66 }"));
    assert!(!warns("buffer = { size = \"100KB\" }"));
    assert!(!warns(""));
}

#[test]
fn names_of_the_field_are_told_in_the_errors() {
    fails("path = { kind = \"power-of-two\" }", "power-of-n");
    fails("path = { kind = \"flowlet\" }", "[edge] load-balancing = { kind = \"flowlet\" }");
    fails("path = { kind = \"hula\" }", "congestion-aware");
    fails("path = { kind = \"spry\" }", "did you mean `spray`?");
    fails("buffer = { kind = \"dynamic-threshold\" }", "kind = \"shared\"");
    fails("bandwidth = \"1Gbps\"", "topology.host-link.rate");
}
