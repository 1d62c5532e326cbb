//! The inputs of a command: standard input, counts of seeds, ranges of values, names of the field.

use crate::common::{Dir, Ran, SMALL};
use serde_json::Value;
use std::io::Write;

/// Runs a command with a text on its standard input.
fn piped(dir: &Dir, words: &[&str], text: &str) -> Ran {
    let mut command = dir.command(words);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn a_scenario_comes_from_standard_input() {
    let dir = Dir::new("stdin");
    let ran = piped(&dir, &["check", "-"], SMALL).ends(0);
    assert!(ran.out.contains("small (ecmp): 16 hosts"), "{}", ran.out);
    assert!(
        ran.out.contains("  leaf ports of 10Gbps: up to 300KB, CE from 65 packets on"),
        "{}",
        ran.out
    );
    let ran = piped(&dir, &["check", "-"], "duration = \"1ms\"\nsede = 2\n").ends(2);
    assert!(
        ran.err.contains("stdin:2:1") && ran.err.contains("did you mean `seed`?"),
        "{}",
        ran.err
    );
    // A run keeps the text, so that it can be made again.
    piped(&dir, &["run", "-", "--set", "duration=1ms", "--out", "x", "-q"], SMALL).ends(0);
    dir.run(&["run", "x/manifest.json", "--out", "y", "-q"]).ends(0);
    let read = |name: &str| std::fs::read(dir.at(name)).unwrap();
    assert_eq!(read("x/flows.parquet"), read("y/flows.parquet"));
    let ran =
        piped(&dir, &["compare", "-", "--set", "duration=1ms", "--out", "z", "--json"], SMALL)
            .ends(0);
    assert!(serde_json::from_str::<Value>(&ran.out).is_ok(), "{}", ran.out);
    // Without a name it has that of its source.
    let ran = piped(&dir, &["check", "-"], &SMALL.replace("name = \"small\"", "")).ends(0);
    assert!(ran.out.starts_with("stdin (as it stands)"), "{}", ran.out);
}

#[cfg(unix)]
#[test]
fn a_scenario_from_a_pipe_is_read_once() {
    let dir = Dir::new("pipe");
    let fifo = dir.at("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let writer = std::thread::spawn(move || std::fs::write(fifo, SMALL).unwrap());
    dir.run(&["run", "fifo", "--set", "duration=100us", "--out", "x", "-q"]).ends(0);
    writer.join().unwrap();
    let manifest = std::fs::read_to_string(dir.at("x/manifest.json")).unwrap();
    assert!(manifest.contains("queries"), "{manifest}");
}

#[test]
fn seeds_are_counted_and_ranges_are_exact() {
    let dir = Dir::small("seeds");
    let grid = "traffic.background.load=0.2..0.6/0.2";
    let ran = dir
        .run(&["sweep", "small.toml", "--grid", grid, "--seeds", "5", "--dry-run", "--json"])
        .ends(0);
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(value["sweep"]["seeds"], serde_json::json!([1, 2, 3, 4, 5]));
    assert_eq!(value["sweep"]["grid"][0]["values"], serde_json::json!(["0.2", "0.4", "0.6"]));
    assert_eq!(value["runs"], 15);
    let ran = dir.run(&["sweep", "small.toml", "--seeds", "3..3", "--dry-run"]).ends(0);
    assert!(ran.out.contains("1 points × 1 seeds = 1 runs"), "{}", ran.out);
    let refused =
        dir.run(&["sweep", "small.toml", "--grid", "traffic.background.load=0.2..0.8"]).ends(2);
    assert!(refused.err.contains("no step; write FROM..TO/STEP"), "{}", refused.err);
    let refused = dir.run(&["compare", "small.toml", "--vary", "seed=1us..2ms/1us"]).ends(2);
    assert!(
        refused.err.contains("--vary seed: ") && refused.err.contains("mixes units"),
        "{}",
        refused.err
    );
}

#[test]
fn names_of_the_field_are_found() {
    let dir = Dir::new("names");
    for (name, says) in [
        ("switch.marking.threshold-packets", "at least 20"),
        ("traffic.background.load", "traffic.load: "),
        ("po2", "power-of-n"),
        ("mahout", "edge.load-balancing = { kind = \"hedera\" }"),
        ("codel", "switch.admission = { kind = \"red\" }"),
    ] {
        let ran = dir.run(&["explain", name]).ends(0);
        assert!(ran.out.contains(says), "{name}: {}", ran.out);
    }
    let ran = dir.run(&["explain", "transport.min-rtt"]).ends(2);
    assert!(
        ran.out.is_empty() && ran.err.contains("did you mean transport.min-rto"),
        "{}",
        ran.err
    );
    let ran = dir.run(&["schema"]).ends(0);
    let schema: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(!ran.out.contains("oneOf") && schema["properties"]["switch"].is_object());
}
