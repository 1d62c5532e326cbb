//! Mechanisms that need each other: a half alone is a warning with the missing key, both halves are
//! none, and no shipped scenario has a half.

use millpond_core::registry::Signal;
use millpond_scenario::{Scenario, catalogue};
use std::path::{Path, PathBuf};

/// The warnings of a scenario about halves, in a network of two leaves and two spines.
fn halves(text: &str) -> Vec<String> {
    let network = match text.contains("topology") {
        true => "",
        false => "topology = { kind = \"leaf-spine\", leaves = 2, spines = 2 }\n",
    };
    let traffic = match text.contains("traffic = ") {
        true => "",
        false => "\n[[traffic]]\nname = \"p\"\nkind = \"permutation\"\nsize = 1000\n",
    };
    let text = format!("duration = \"1ms\"\n{network}{text}{traffic}");
    let scenario = Scenario::parse("test", &text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    of_plan(&scenario, None)
}

fn of_plan(scenario: &Scenario, variant: Option<&str>) -> Vec<String> {
    let plan = scenario.plan(variant, &[], None).unwrap_or_else(|e| panic!("{e:?}"));
    plan.warnings.into_iter().filter(|text| text.contains(", which nothing ")).collect()
}

/// A half, the other one, and words of the half's warning.
const PAIRS: [(&str, &str, &[&str]); 21] = [
    (
        "transport.importance.kind = \"tlt\"",
        "switch.admission.kind = \"color-aware\"",
        &["transport.importance \"tlt\"", "set switch.admission.kind = \"color-aware\""],
    ),
    (
        "switch.admission.kind = \"color-aware\"",
        "transport.importance.kind = \"tlt\"",
        &["switch.admission \"color-aware\"", "set transport.importance.kind = \"tlt\""],
    ),
    (
        "transport.rank.kind = \"remaining-bytes\"",
        "switch.queue.kind = \"srpt\"",
        &["transport.rank", "switch.queue.kind = \"srpt\""],
    ),
    (
        "transport.rank.kind = \"attained-service\"",
        "switch.deflection.kind = \"canary\"",
        &["transport.rank", "switch.deflection.kind = \"canary\""],
    ),
    (
        "switch.admission.kind = \"aifo\"",
        "transport.rank.kind = \"remaining-bytes\"",
        &["switch.admission \"aifo\"", "set transport.rank.kind"],
    ),
    (
        "switch.queue.kind = \"sp-pifo\"",
        "transport.rank.kind = \"remaining-bytes\"",
        &["switch.queue \"sp-pifo\"", "set transport.rank.kind"],
    ),
    (
        "host.receive-offload.kind = \"presto-gro\"",
        "edge.load-balancing.kind = \"presto\"",
        &["host.receive-offload \"presto-gro\"", "set edge.load-balancing.kind = \"presto\""],
    ),
    (
        "edge.load-balancing.kind = \"presto\"\nswitch.path.kind = \"labels\"",
        "host.receive-offload.kind = \"presto-gro\"",
        &["edge.load-balancing \"presto\"", "set host.receive-offload.kind = \"presto-gro\""],
    ),
    (
        "edge.load-balancing.kind = \"flowlet\"\nswitch.path.kind = \"spray\"",
        "switch.path.kind = \"labels\"",
        &["edge.load-balancing \"flowlet\"", "set switch.path.kind = \"labels\""],
    ),
    (
        "switch.path.kind = \"labels\"",
        "edge.load-balancing.kind = \"flowlet\"",
        &["switch.path \"labels\"", "set edge.load-balancing.kind"],
    ),
    (
        "switch.marking.kind = \"none\"",
        "switch.marking.kind = \"ecn\"",
        &["transport \"dctcp\"", "set switch.marking.kind = \"ecn\""],
    ),
    (
        "transport.kind = \"dcqcn\"\nswitch.marking.kind = \"none\"",
        "switch.marking.kind = \"red\"",
        &["transport \"dcqcn\"", "\"red\""],
    ),
    (
        "transport.kind = \"cubic\"\ntransport.cubic-ecn = true\nswitch.marking.kind = \"none\"",
        "switch.marking.kind = \"ecn\"",
        &["transport \"cubic\"", "set switch.marking.kind"],
    ),
    (
        "transport.kind = \"newreno\"\nswitch.marking.kind = \"ecn\"",
        "transport.newreno-ecn = true",
        &["switch.marking \"ecn\"", "transport.kind = \"dctcp\""],
    ),
    (
        "edge.load-balancing.kind = \"plb\"\ntransport.kind = \"swift\"\nswitch.marking.kind = \
         \"none\"",
        "switch.marking.kind = \"ecn\"",
        &["edge.load-balancing \"plb\"", "set switch.marking.kind"],
    ),
    (
        "switch.queue.kind = \"strict-priority\"",
        "traffic = [{ name = \"p\", kind = \"permutation\", size = 1000, priority = 3 }]",
        &["switch.queue \"strict-priority\"", "set priority in a [[traffic]]"],
    ),
    (
        "transport.kind = \"homa\"",
        "switch.queue.kind = \"strict-priority\"",
        &["transport \"homa\"", "set switch.queue.kind = \"strict-priority\""],
    ),
    (
        "edge.virtual-switch.kind = \"backdraft\"\napplication = [{ name = \"store\" }]",
        "switch.queue.kind = \"strict-priority\"",
        &["edge.virtual-switch \"backdraft\"", "set switch.queue.kind = \"strict-priority\""],
    ),
    (
        "switch.overflow.kind = \"trim\"\nswitch.queue.kind = \"strict-priority\"\ntraffic = [{ \
         name = \"p\", kind = \"permutation\", size = 1000, priority = 3 }]",
        "transport.kind = \"uet\"",
        &["switch.overflow \"trim\"", "set transport.kind = \"uet\""],
    ),
    (
        "topology = { kind = \"single-switch\", hosts = 4 }\nswitch.path.kind = \"drill\"",
        "topology = { kind = \"leaf-spine\" }",
        &["switch.path \"drill\"", "topology.kind = \"leaf-spine\""],
    ),
    (
        "topology = { kind = \"single-switch\", hosts = 4 }\nswitch.deflection.kind = \"dibs\"",
        "topology = { kind = \"dumbbell\", hosts-per-side = 2 }",
        &["switch.deflection \"dibs\"", "topology.kind = \"leaf-spine\""],
    ),
];

/// Lines of a scenario; a line of `more` replaces the one with its key.
fn with(lines: &str, more: &str) -> String {
    let key = |line: &str| line.split('=').next().unwrap_or("").trim().to_string();
    let kept = lines.lines().filter(|line| more.lines().all(|other| key(other) != key(line)));
    let all: Vec<&str> = kept.chain(more.lines()).collect();
    all.join("\n")
}

#[test]
fn a_half_is_warned_of_with_the_missing_key_and_both_halves_are_not() {
    for (half, other, words) in PAIRS {
        let warned = halves(half);
        assert!(
            warned.iter().any(|text| words.iter().all(|word| text.contains(word))),
            "{half}: {warned:?}"
        );
        let left = halves(&with(half, other));
        assert!(
            left.iter().all(|text| !words.iter().all(|word| text.contains(word))),
            "{half} with {other}: {left:?}"
        );
    }
    assert_eq!(halves(""), Vec::<String>::new(), "defaults are whole");
    assert_eq!(
        halves("transport.kind = \"newreno\""),
        Vec::<String>::new(),
        "nobody wrote marking"
    );
}

#[test]
fn a_failure_by_color_reads_colors_and_a_pause_replaces_marks() {
    let tlt = "transport.importance.kind = \"tlt\"\n";
    let failure =
        "failure = [{ link = [\"leaf0\", \"spine0\"], at = \"0us\", loss = 0.1, losable = ";
    let losing = |which: &str| halves(&format!("{tlt}{failure}\"{which}\" }}]"));
    assert_eq!(losing("unimportant"), Vec::<String>::new());
    assert_eq!(losing("all").len(), 1);
    let lossless = "switch.marking.kind = \"none\"\nswitch.buffer.kind = \"pools\"\n\
                    switch.pause.kind = \"pfc\"\ntransport.kind = \"dcqcn\"";
    assert_eq!(halves(lossless), Vec::<String>::new());
}

#[test]
fn a_half_for_another_variant_is_not_warned_of() {
    let text = |path: &str| {
        format!(
            "duration = \"1ms\"\ntopology = {{ kind = \"leaf-spine\" }}\nswitch.path.kind = \
             \"{path}\"\ntraffic = [{{ name = \"p\", kind = \"permutation\", size = 1000 }}]\n\
             [[variant]]\nname = \"plain\"\n[[variant]]\nname = \"presto\"\nset = {{ \
             \"edge.load-balancing.kind\" = \"presto\", \"host.receive-offload.kind\" = \
             \"presto-gro\" }}\n"
        )
    };
    let both = Scenario::parse("test", &text("labels")).unwrap();
    assert_eq!(of_plan(&both, Some("plain")), Vec::<String>::new());
    assert_eq!(of_plan(&both, Some("presto")), Vec::<String>::new());
    // One that the variant or an override chooses by itself is.
    let half =
        "[[variant]]\nname = \"half\"\nset = { \"edge.load-balancing.kind\" = \"presto\" }\n";
    let own = Scenario::parse("test", &(text("labels") + half)).unwrap();
    assert!(of_plan(&own, Some("half"))[0].contains("flowcells"));
    let given = [("edge.load-balancing.kind".to_string(), "presto".to_string())];
    let plan = both.plan(Some("plain"), &given, None).unwrap();
    assert!(plan.warnings.iter().any(|text| text.contains("flowcells")), "{:?}", plan.warnings);
    let neither = Scenario::parse("test", &text("spray")).unwrap();
    assert_eq!(of_plan(&neither, Some("plain")), Vec::<String>::new());
    assert!(of_plan(&neither, Some("presto"))[0].contains("labels"));
}

/// A signal without a provider or a reader could only ever be a warning.
#[test]
fn every_signal_of_the_registry_has_a_provider_and_a_reader() {
    let all: Vec<_> = catalogue::places().iter().flat_map(|p| p.place.mechanisms).collect();
    for signal in Signal::ALL {
        let provided = all.iter().any(|m| m.about.provides.contains(&signal));
        let read = all.iter().any(|m| m.about.reads.contains(&signal));
        assert!(
            provided || matches!(signal, Signal::Paths | Signal::Detours),
            "{} has no provider",
            signal.name()
        );
        assert!(read, "{} has no reader", signal.name());
        assert!(signal.unread().contains("set ") && signal.missing().contains("set "));
    }
    for m in all {
        let of = || m.about.provides.iter().chain(m.about.reads);
        assert!(m.about.alone.iter().all(|s| of().any(|own| own == s)), "{} {}", m.place, m.kind);
    }
}

fn scenarios(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => scenarios(&path, found),
            false if path.extension().is_some_and(|end| end == "toml") => found.push(path),
            false => {}
        }
    }
}

/// Variants of shipped scenarios that lack a half on purpose, to show what it does.
const ABLATIONS: &[(&str, &str)] = &[
    ("fabric.toml", "presto-canary.forwards"),
    ("fabric.toml", "presto-tlt.stock"),
    ("fabric.toml", "tlt-canary.test"),
    ("fabric.toml", "backdraft.fifo"),
    ("fabric.toml", "backdraft-canary.fifo"),
    ("fabric.toml", "all.test"),
    ("receiver.toml", "presto-stock-gro"),
    ("receiver.toml", "presto-stock-gro-impatient"),
    ("receiver.toml", "presto-stock-gro-in-turn"),
    ("receiver.toml", "presto-stock-gro-free"),
    ("stride.toml", "presto-stock-gro"),
    ("stride.toml", "spray-presto-gro"),
    ("presto-dctcp.toml", "presto-stock-gro"),
    ("presto-slow-link.toml", "presto-stock-gro"),
    ("presto-small.toml", "presto-stock-gro"),
    ("presto.toml", "presto-stock-gro"),
];

/// `papers/simai/ring.toml` is without congestion control, as the simulators that it follows.
#[test]
fn shipped_scenarios_have_halves_in_ablations_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    ["scenarios", "papers"].iter().for_each(|dir| scenarios(&root.join(dir), &mut found));
    found.retain(|path| !path.ends_with("paper.toml") && !path.ends_with("simai/ring.toml"));
    assert!(found.len() > 80, "{}", found.len());
    found.sort();
    let mut halves = Vec::new();
    for path in &found {
        let scenario = Scenario::load(path).unwrap();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let variants = scenario.variants().into_iter().map(Some);
        for variant in std::iter::once(None).chain(variants) {
            let Ok(plan) = scenario.plan(variant, &[], None) else { continue };
            if plan.warnings.iter().any(|text| text.contains(", which nothing ")) {
                halves.push((name.to_string(), variant.unwrap_or_default().to_string()));
            }
        }
    }
    let expected: Vec<_> = ABLATIONS.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    assert_eq!(halves, expected);
}
