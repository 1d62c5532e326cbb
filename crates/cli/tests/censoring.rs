//! Runs that end before their flows do: what is reported, and that the bounds hold.

use crate::common::Dir;
use serde_json::Value;
use std::fs;

/// Web search at 60 % on 32 hosts; `end` says when the run and its traffic end.
fn scenario(end: &str, stop: &str) -> String {
    format!(
        "name = \"cut\"\n{end}\n[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = \
         2\nhosts-per-leaf = 8\n[transport]\nkind = \"dctcp\"\n[[traffic]]\nname = \"web\"\nkind \
         = \"poisson\"\nsizes = \"web-search\"\nload = 0.6\n{stop}\n"
    )
}

fn folder(name: &str) -> Dir {
    let dir = Dir::new(name);
    fs::write(dir.at("cut.toml"), scenario("duration = \"6ms\"", "")).unwrap();
    fs::write(dir.at("drained.toml"), scenario("until = \"flows-complete\"", "stop = \"6ms\""))
        .unwrap();
    dir
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

const CLASSES: [&str; 3] = ["all", "mice", "elephants"];
const PERCENTILES: [&str; 6] = ["p50", "p90", "p95", "p99", "p999", "max"];

#[test]
fn the_drained_run_is_within_the_bounds_of_the_cut_one() {
    let dir = folder("bounds");
    let [cut, drained] = ["cut", "drained"].map(|name| {
        let file = format!("{name}.toml");
        json(&dir.run(&["run", &file, "--out", name, "--json", "-q"]).ends(0).out)
    });
    assert_eq!(cut["flows"]["started"], drained["flows"]["started"], "the same flows");
    assert!(cut["fct_us"]["elephants"]["completed_fraction"].as_f64().unwrap() < 0.7);
    let warnings = cut["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|w| w.as_str().unwrap().contains("of elephants")), "{warnings:?}");
    assert!(
        warnings.iter().any(|w| w.as_str().unwrap().contains("until = \"flows-complete\"")),
        "{warnings:?}"
    );
    assert_eq!(drained["warnings"], Value::Array(vec![]));
    let mut moved = 0;
    for class in CLASSES {
        let (of_cut, of_drained) = (&cut["fct_us"][class], &drained["fct_us"][class]);
        for key in PERCENTILES {
            let truth = of_drained[key].as_f64().unwrap();
            let (low, high) =
                (of_cut["at_least"][key].as_f64().unwrap(), of_cut["at_most"][key].as_f64());
            assert!(low <= truth * (1.0 + 1e-9), "{class} {key}: {low} > {truth}");
            assert!(
                high.is_none_or(|high| truth <= high * (1.0 + 1e-9)),
                "{class} {key}: {truth} > {high:?}"
            );
            assert_eq!(of_drained["at_least"][key], of_drained[key]);
            moved += usize::from(high != Some(low));
        }
        let slowdown = &cut["slowdown"][class];
        assert!(
            slowdown["at_least"]["p50"].as_f64() >= Some(1.0)
                && slowdown["at_most"]["max"].is_null(),
            "{slowdown}"
        );
    }
    assert!(moved > 10, "open flows move percentiles");
    let estimate = cut["fct_us"]["elephants"]["kaplan_meier"]["p50"].as_f64().unwrap();
    assert!(estimate > cut["fct_us"]["elephants"]["p50"].as_f64().unwrap());
}

#[test]
fn tables_and_the_page_show_bounds_and_tell_how_to_drain() {
    let dir = folder("told");
    let table = dir.run(&["run", "cut.toml", "--out", "x"]).ends(0).out;
    let elephants = table.lines().find(|line| line.starts_with("elephants")).unwrap();
    assert_eq!(elephants.matches('\u{2265}').count(), 10, "{table}");
    assert!(
        table.contains("until = \"flows-complete\"") && table.contains("% of elephants"),
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let page = fs::read_to_string(dir.at("x/report.html")).unwrap();
    assert!(page.contains("Not all completed") && page.contains("% of the elephants by the end"));

    let args = [
        "compare",
        "cut.toml",
        "--vary",
        "transport.kind=dctcp,newreno",
        "--seeds",
        "1..6",
        "--out",
        "y",
    ];
    let table = dir.run(&args).ends(0).out;
    assert!(
        table.contains("\u{2265}") && table.contains("%?") && table.contains("could undo it"),
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let results = json(&fs::read_to_string(dir.at("y/compare.json")).unwrap());
    let warnings: Vec<&str> =
        results[1]["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(
        warnings.iter().filter(|w| w.starts_with("only ")).count(),
        1,
        "one over all seeds: {warnings:?}"
    );
    assert_eq!(results[1]["differences"]["fct_us"]["elephants"]["p50"]["noise"], "open");
    assert!(
        results[1]["statistics"]["fct_us"]["elephants"]["completed_fraction"]["mean"]
            .as_f64()
            .unwrap()
            < 0.7
    );
    let page = fs::read_to_string(dir.at("y/report.html")).unwrap();
    assert!(page.contains("Variants completed") && page.contains("could undo a difference"));

    let args = [
        "sweep",
        "cut.toml",
        "--grid",
        "traffic.web.load=0.3,0.6",
        "--seeds",
        "1..2",
        "--out",
        "z",
    ];
    let table = dir.run(&args).ends(0).out;
    assert!(table.contains("\u{2265}") && table.contains("0.6: only "), "{table}");
    assert!(
        dir.run(&["run", "drained.toml", "--out", "d"]).ends(0).out.matches('\u{2265}').count()
            == 0
    );
}
