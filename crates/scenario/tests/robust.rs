//! Whatever the text, there is a plan or an error, and never a panic.

use crate::bent::bent;
use millpond_scenario::{Ends, IdealTimes, Scenario};
use proptest::prelude::*;

/// Reads, plans every variant and draws some arrivals.
fn survive(text: &str, overrides: &[(String, String)]) {
    let Ok(scenario) = Scenario::parse("fuzz.toml", text) else { return };
    for variant in scenario.variants().into_iter().map(Some).chain([None]) {
        match scenario.plan(variant, overrides, None) {
            Ok(plan) => {
                assert!(plan.traffic.arrivals().take(200).count() <= 200);
                let ends = Ends { class: 0, src: 0, dst: plan.topology.hosts - 1 };
                let _ = IdealTimes::default().flow(&plan, ends, 12_345);
            }
            Err(e) => assert!(!e.errors.is_empty() && !e.to_string().is_empty()),
        }
    }
}

const SEEDS: &[&str] = &[
    include_str!("../../../scenarios/microburst.toml"),
    include_str!("../../../scenarios/incast.toml"),
    include_str!("../../../scenarios/rpc.toml"),
    include_str!("../../../scenarios/dumbbell.toml"),
    include_str!("../../../scenarios/shuffle.toml"),
];

/// Values that are awkward somewhere.
const VALUES: &[&str] = &[
    "0",
    "-1",
    "1",
    "2",
    "1.5",
    "-0.0",
    "1e308",
    "18446744073709551615",
    "\"\"",
    "\"off\"",
    "\"0\"",
    "\"0us\"",
    "\"1ps\"",
    "\"99999999s\"",
    "\"18446744073709551615\"",
    "\"1bps\"",
    "\"9999Tbps\"",
    "[]",
    "{}",
    "true",
    "\"none\"",
    "\"switch\"",
    "{ kind = \"shared\" }",
    "{ kind = \"none\" }",
    "{ points = [[1, 0], [5, 1]] }",
    "{ points = [] }",
    "[[0, 0, 1, 5]]",
    "1979-05-27",
    "\"é\"",
    "\"incast\"",
    "\"poisson\"",
    "\"rpc\"",
    "\"flows-complete\"",
    "\"fat-tree\"",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        survive(&text, &[]);
    }

    #[test]
    fn anything_like_toml(
        text in "([a-z\\-]{1,8}|\\[|\\]|\\{|\\}|=|\\.|,|\"|\n|#|[0-9]{1,3}| |'){0,60}",
    ) {
        survive(&text, &[]);
    }

    /// A shipped scenario with some values exchanged for awkward ones, and some lines gone or
    /// doubled.
    #[test]
    fn shipped_scenarios_bent(
        seed in 0..SEEDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..VALUES.len() + 2), 1..4),
    ) {
        survive(&bent(SEEDS[seed], changes, VALUES), &[]);
    }

    #[test]
    fn any_override(
        key in "(switch|traffic|topology|transport|host|seed|variant)?(\\.[a-z\\-\"]{0,8}){0,3}",
        value in "\\PC{0,20}",
    ) {
        survive(SEEDS[1], &[(key, value)]);
    }

    /// Known keys, awkward values.
    #[test]
    fn awkward_overrides(
        key in prop::sample::select(KEYS.to_vec()),
        value in prop::sample::select(VALUES.to_vec()),
    ) {
        survive(SEEDS[0], &[(key.to_string(), value.trim_matches('"').to_string())]);
    }
}

const KEYS: &[&str] = &[
    "seed",
    "duration",
    "warm-up",
    "mice",
    "until",
    "topology.kind",
    "topology.leaves",
    "topology.spines",
    "topology.hosts-per-leaf",
    "topology.host-link",
    "topology.host-link.rate",
    "topology.fabric-link.delay",
    "host.mtu",
    "host.mss",
    "host.frame-overhead",
    "host.segment-offload",
    "host.jitter",
    "host.jitter.packets",
    "host.jitter.size",
    "host.receive-cpu",
    "host.receive-cpu.per-byte",
    "host.receive-cpu.ring",
    "host.receive-cpu.cores",
    "host.nic",
    "host.nic.buffer",
    "host.nic.marking",
    "switch.buffer",
    "switch.buffer.size",
    "switch.buffer.packets",
    "switch.marking.threshold-bytes",
    "transport.kind",
    "transport.min-rto",
    "traffic.background.kind",
    "traffic.background.load",
    "traffic.background.sizes",
    "traffic.background.start",
    "traffic.background.stop",
    "traffic.background.count",
    "traffic.queries.degree",
    "traffic.queries.rate",
    "traffic.queries.period",
    "traffic.queries.receiver",
    "traffic.queries.kind",
    "traffic.queries.response",
    "traffic.queries.name",
];
