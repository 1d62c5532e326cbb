//! Runs that stall: their status, exit code 3, and what is kept and reported of them.

use crate::common::{Dir, find};
use serde_json::Value;
use std::fs;

const CUT: &str = r#"
name = "cut-off"
until = "flows-complete"
[topology]
kind = "single-switch"
hosts = 3
[transport]
kind = "dctcp"
[[traffic]]
name = "bulk"
kind = "flows"
rows = [["0us", 0, 1, 1000000], ["0us", 2, 1, 1000000]]
[[failure]]
link = ["host0", "switch0"]
at = "100us"
[[variant]]
name = "for-good"
[[variant]]
name = "timed"
set = { "until" = "off", "duration" = "20ms" }
"#;

fn folder(name: &str) -> Dir {
    let dir = Dir::new(name);
    dir.write("cut.toml", CUT);
    dir
}

fn json(path: &std::path::Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_string()).collect()
}

#[test]
fn a_stalled_run_exits_with_3_and_keeps_its_results() {
    let dir = folder("run");
    let ran = dir.run(&["run", "cut.toml", "--variant", "for-good", "--out", "out"]).ends(3);
    assert!(ran.err.contains("stalled") && ran.out.contains("host0"), "{} {}", ran.err, ran.out);
    let (summary, manifest) =
        (json(&dir.at("out/summary.json")), json(&dir.at("out/manifest.json")));
    assert_eq!((&summary["status"], &manifest["status"]), (&"stalled".into(), &"stalled".into()));
    assert_eq!(
        (&summary["flows"]["started"], &summary["flows"]["completed"]),
        (&2.into(), &1.into())
    );
    assert_eq!(summary["audit"]["conserved"], true);
    let warnings = texts(&summary["warnings"]);
    assert!(
        warnings.iter().any(|text| text.contains("1 flow has no working link left")),
        "{warnings:?}"
    );
    // Its advice is not what the scenario has already.
    assert!(warnings.iter().all(|text| !text.contains("flows-complete")), "{warnings:?}");
    let page = fs::read_to_string(dir.at("out/report.html")).unwrap();
    assert!(page.contains("This run is stalled.") && page.contains("host0"));
    assert!(!page.contains("write until ="), "nor is that of the page");
    // A stalled result is whole: the next run replaces it, and `report` reads it.
    dir.run(&["report", "out"]).ends(0);
    dir.run(&["run", "cut.toml", "--variant", "for-good", "--out", "out", "-q"]).ends(3);
}

#[test]
fn compare_and_sweep_name_the_runs_that_stalled() {
    let dir = folder("many");
    let ran = dir.run(&["compare", "cut.toml", "--out", "both", "--seeds", "2"]).ends(3);
    assert!(ran.out.contains("for-good: stalled") && ran.out.contains("host0"), "{}", ran.out);
    assert!(!ran.out.contains("timed: stalled"), "{}", ran.out);
    let compared = json(&dir.at("both/compare.json"));
    assert_eq!(
        (&compared[0]["status"], &compared[1]["status"]),
        (&"stalled".into(), &"complete".into())
    );
    assert_eq!(compared[0]["statistics"]["fct_us"]["all"]["completed_fraction"]["mean"], 0.5);
    assert!(fs::read_to_string(dir.at("both/report.html")).unwrap().contains("for-good: stalled"));
    assert_eq!(json(&dir.at("both/manifest.json"))["status"], "stalled");

    let sweep = ["sweep", "cut.toml", "--variants", "--seeds", "2", "--out", "grid"];
    let ran = dir.run(&sweep).ends(3);
    assert!(
        ran.out.contains("STALLED") && ran.err.contains("2 of 4 runs stalled"),
        "{} {}",
        ran.out,
        ran.err
    );
    assert!(fs::read_to_string(dir.at("grid/report.html")).unwrap().contains("stalled: for-good"));
    let summaries = find(&dir.at("grid"), "summary.json");
    assert_eq!(summaries.len(), 4);
    // They are finished: nothing is run again, and the table is the same.
    let again = dir.run(&sweep).ends(3);
    assert!(again.err.contains("4 of 4 runs are finished already"), "{}", again.err);
    assert_eq!(again.out, ran.out);
}
