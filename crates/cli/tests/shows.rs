//! The content of comparisons: the numbers that a scenario names or that suit its traffic, bins of
//! size that all runs share, and the paired differences of a sweep.

use crate::common::Dir;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Small flows of one size and large ones of another: seeds differ in their shares.
const BINS: &str = r#"
name = "bins"
until = "flows-complete"
size-bins = 4
[topology]
kind = "single-switch"
hosts = 8
[[traffic]]
name = "small"
kind = "poisson"
sizes = "1KB"
load = 0.0035
stop = "3ms"
[[traffic]]
name = "large"
kind = "poisson"
sizes = "100KB"
load = 0.1
stop = "3ms"
"#;

/// Calls, queries and flows.
const MIXED: &str = r#"
name = "mixed"
duration = "20ms"
[topology]
kind = "single-switch"
hosts = 8
[[traffic]]
name = "web"
kind = "poisson"
sizes = "20KB"
load = 0.3
[[traffic]]
name = "queries"
kind = "incast"
degree = 4
response = "20KB"
rate = 3000
[[traffic]]
name = "calls"
kind = "rpc"
clients = 2
servers = 2
request = "1KB"
response = "4KB"
[[variant]]
name = "dctcp"
[[variant]]
name = "cubic"
set = { "transport.kind" = "cubic", "switch.marking.kind" = "none" }
"#;

fn read(dir: &Dir, path: &str) -> Value {
    serde_json::from_slice(&fs::read(dir.at(path)).unwrap()).unwrap()
}

/// The bins in some statistics: name, edges, and the mean of the completed flows over the seeds.
fn bins(statistics: &Value) -> Vec<(String, u64, u64, f64)> {
    let bins = statistics["slowdown_by_size"].as_object().unwrap();
    let number = |bin: &Value, key: &str| bin[key]["mean"].as_f64().unwrap();
    let of = |(name, bin): (&String, &Value)| {
        let edge = |key: &str| {
            let interval = bin[key]["interval"].as_array().map(|ends| ends[0] == ends[1]);
            assert_ne!(interval, Some(false), "{name}: {key} differs from seed to seed");
            number(bin, key) as u64
        };
        (name.clone(), edge("above_bytes"), edge("to_bytes"), number(bin, "completed"))
    };
    bins.iter().map(of).collect()
}

/// One row a range of sizes, of all seeds, and no flow is missing.
#[test]
fn runs_of_a_comparison_share_their_bins() {
    let dir = Dir::new("bins");
    dir.write("bins.toml", BINS);
    let ran = dir.run(&["compare", "bins.toml", "--seeds", "4", "--by-size", "--out", "c"]).ends(0);
    let rows =
        |end: &str| ran.out.lines().filter(|line| line.contains('%') && line.contains(end)).count();
    assert_eq!((rows(" 1.00 KB "), rows(" 100 KB ")), (1, 1), "{}", ran.out);
    let csv = dir.run(&["export", "c", "--table", "flows"]).ends(0).out;
    let sizes = csv.lines().skip(1).map(|line| line.split(',').nth(6).unwrap());
    let (small, all) =
        sizes.fold((0.0, 0.0), |(small, all), size| (small + f64::from(size == "1000"), all + 1.0));
    let check = |statistics: &Value| {
        let bins = bins(statistics);
        let of: Vec<_> = bins.iter().map(|(_, _, to, completed)| (*to, completed * 4.0)).collect();
        assert_eq!(of, [(1_000, small), (100_000, all - small)], "{bins:?}");
    };
    check(&read(&dir, "c/compare.json")[0]["statistics"]);
    for keep in ["summary", "all"] {
        let grid = [
            "sweep",
            "bins.toml",
            "--grid",
            "host.mtu=1500",
            "--seeds",
            "4",
            "--keep",
            keep,
            "--out",
            keep,
        ];
        dir.run(&grid).ends(0);
        check(&read(&dir, &format!("{keep}/sweep.json"))["points"][0]["statistics"]);
    }
    // A row of the pooled table is in the bins of all.
    for folder in ["c", "all"] {
        let csv = dir.run(&["export", folder, "--table", "sizes"]).ends(0).out;
        let ends: BTreeSet<String> = csv
            .lines()
            .skip(1)
            .map(|line| line.split(',').rev().skip(6).take(3).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(ends.len(), 2, "{csv}");
    }
}

/// Sizes that no two seeds share: the bins are those of all flows together.
#[test]
fn bins_of_many_sizes_are_of_all_seeds() {
    let dir = Dir::small("bins");
    dir.run(&["compare", "small.toml", "--seeds", "3", "--out", "c", "-q"]).ends(0);
    let results = read(&dir, "c/compare.json");
    let variants: Vec<Vec<(String, u64, u64, f64)>> =
        results.as_array().unwrap().iter().map(|of| bins(&of["statistics"])).collect();
    assert!(variants[0].len() >= 8, "{:?}", variants[0]);
    for other in &variants {
        let edges = |bins: &[(String, u64, u64, f64)]| -> Vec<_> {
            bins.iter().map(|(name, above, to, _)| (name.clone(), *above, *to)).collect()
        };
        assert_eq!(edges(other), edges(&variants[0]));
    }
}

#[test]
fn named_numbers_are_in_the_table_in_json_and_on_the_page() {
    let dir = Dir::new("shows");
    dir.write(
        "mixed.toml",
        &format!("shows = [\"queries.qct.p99\", \"calls.latency.p50\", \"timeouts\"]\n{MIXED}"),
    );
    let ran = dir.run(&["compare", "mixed.toml", "--seeds", "2", "--out", "c"]).ends(0);
    let heads: Vec<String> = ran
        .out
        .lines()
        .take(2)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        heads,
        ["flows queries calls time-", "variant done QCT p99 lat. p50 outs"],
        "{}",
        ran.out
    );
    let results = read(&dir, "c/compare.json");
    for (at, variant) in results.as_array().unwrap().iter().enumerate() {
        let shows = variant["shows"].as_object().unwrap();
        let names: BTreeSet<&str> = shows.keys().map(String::as_str).collect();
        assert_eq!(names, BTreeSet::from(["calls.latency.p50", "queries.qct.p99", "timeouts"]));
        let statistics = &variant["statistics"];
        assert_eq!(
            shows["calls.latency.p50"]["mean"],
            statistics["latency_us"]["calls"]["p50"]["mean"]
        );
        assert!(shows["queries.qct.p99"]["mean"].as_f64().unwrap() > 0.0);
        assert_eq!(shows["timeouts"]["difference"].is_object(), at > 0, "{variant}");
    }
    let page = fs::read_to_string(dir.at("c/report.html")).unwrap();
    assert!(page.contains("queries: QCT p99") && page.contains("calls: latency p50"));
    // The page is made again from what is in the folder.
    dir.run(&["report", "c"]).ends(0);
    assert!(fs::read_to_string(dir.at("c/report.html")).unwrap() == page);

    let run = dir
        .run(&["run", "mixed.toml", "--shows", "all.slowdown.p99,web.fct.mean", "--out", "r"])
        .ends(0);
    assert!(run.out.contains("shows     all.slowdown.p99 "), "{}", run.out);
    let summary = read(&dir, "r/summary.json");
    assert_eq!(summary["shows"]["web.fct.mean"], summary["fct_us"]["web"]["mean"]);
    assert!(summary["qct_by_class_us"]["queries"]["started"].as_u64().unwrap() > 0);
    assert_eq!(summary["qct_by_class_us"]["queries"]["p99"], summary["qct_us"]["p99"]);
}

/// Without names the columns follow the traffic, and every name that the scenario takes is shown.
#[test]
fn columns_follow_the_traffic_unless_they_are_named() {
    let dir = Dir::new("defaults");
    dir.write("mixed.toml", MIXED);
    let ran = dir.run(&["compare", "mixed.toml", "--out", "c"]).ends(0);
    for head in ["web", "queries", "calls", "QCT p99", "lat. p99", "drops"] {
        assert!(ran.out.lines().take(2).any(|line| line.contains(head)), "{head}: {}", ran.out);
    }
    let times = ["mean", "p50", "p90", "p95", "p99", "p999", "max", "completed"];
    let mut names: Vec<String> =
        millpond_core::numbers::network().map(|number| number.name.to_string()).collect();
    for (of, stats) in [
        ("all.fct", &times[..]),
        ("queries.qct", &times[..]),
        ("web.slowdown", &times[1..7]),
        ("calls.latency", &times[..7]),
        ("all.rtt", &times[1..6]),
    ] {
        names.extend(stats.iter().map(|stat| format!("{of}.{stat}")));
    }
    let ran = dir
        .run(&["compare", "mixed.toml", "--shows", &names.join(","), "--out", "c", "--json"])
        .ends(0);
    let results: Value = serde_json::from_str(&ran.out).unwrap();
    let shown: BTreeMap<String, Value> =
        serde_json::from_value(results[0]["shows"].clone()).unwrap();
    let missing: Vec<&String> = names.iter().filter(|name| !shown.contains_key(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // There are no probes, and calls are too few for their last percentile.
    let is_known = |name: &str| !name.contains("rtt") && name != "calls.latency.p999";
    let empty = |name: &&String| is_known(name) && shown[*name]["mean"].is_null();
    assert_eq!(names.iter().filter(empty).collect::<Vec<_>>(), Vec::<&String>::new());
    // Tables of many columns go on below each other.
    let ran =
        dir.run(&["compare", "mixed.toml", "--shows", &names.join(","), "--out", "c"]).ends(0);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    assert!(ran.out.matches("variant").count() > 2, "{}", ran.out);
}

#[test]
fn a_name_that_means_nothing_is_refused() {
    let dir = Dir::new("wrong");
    dir.write("mixed.toml", &format!("shows = [\"querys.qct.p99\"]\n{MIXED}"));
    let ran = dir.run(&["run", "mixed.toml"]).ends(2);
    assert!(
        ran.err.contains("mixed.toml:1:") && ran.err.contains("did you mean `queries.qct.p99`?"),
        "{}",
        ran.err
    );
    dir.write("mixed.toml", MIXED);
    for command in ["run", "compare", "sweep"] {
        let words = [command, "mixed.toml", "--shows", "calls.latncy.p99", "--out", "x"];
        let more: &[&str] = if command == "sweep" { &["--variants"] } else { &[] };
        let ran = dir.run(&[&words[..], more].concat()).ends(2);
        assert!(
            ran.err.contains("--shows") && ran.err.contains("calls.latency.p99"),
            "{}",
            ran.err
        );
        assert!(!dir.at("x").exists());
    }
}

/// A sweep over variants says of them what a compare does, and other columns make no run again.
#[test]
fn sweep_pairs_its_points_by_seed_as_compare_does() {
    let dir = Dir::new("pairs");
    dir.write("mixed.toml", MIXED);
    dir.run(&["compare", "mixed.toml", "--seeds", "3", "--out", "c", "-q"]).ends(0);
    let sweep = [
        "sweep",
        "mixed.toml",
        "--variants",
        "--grid",
        "mice=100KB,50KB",
        "--seeds",
        "3",
        "--out",
        "s",
    ];
    let ran = dir.run(&sweep).ends(0);
    let title = "Difference to variant=dctcp at the same values of the other keys, seed by seed:";
    assert!(ran.out.contains(title) && ran.out.contains("3 seeds are few"), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    let (results, of) = (read(&dir, "c/compare.json"), read(&dir, "s/sweep.json"));
    let points = of["points"].as_array().unwrap();
    let against: Vec<Option<u64>> = points.iter().map(|point| point["against"].as_u64()).collect();
    assert_eq!(against, [None, None, Some(1), Some(2)]);
    for path in ["/fct_us/all/p99", "/qct_us/mean", "/packets/dropped", "/latency_us/calls/p99"] {
        let (theirs, ours) = (&results[1]["differences"], &points[2]["differences"]);
        assert_eq!(ours.pointer(path), theirs.pointer(path), "{path}");
        assert!(ours.pointer(path).unwrap()["interval"].is_array());
    }
    let page = fs::read_to_string(dir.at("s/report.html")).unwrap();
    assert!(
        page.contains("id=\"differences\"") && page.contains("variant=dctcp at the same values"),
        "{page}"
    );

    let again = dir.run(&[&sweep[..], &["--shows", "calls.latency.p99"]].concat()).ends(0);
    assert!(again.err.contains("12 of 12 runs are finished already"), "{}", again.err);
    assert!(again.out.lines().next().unwrap().contains("calls"), "{}", again.out);
    let page = fs::read_to_string(dir.at("s/report.html")).unwrap();
    assert!(page.contains("calls: latency p99"));
}

#[test]
fn sampled_ports_name_the_node_at_the_other_end() {
    let dir = Dir::small("peers");
    let words = ["run", "small.toml", "--set", "capture.queues.every=10us", "--out", "out"];
    dir.run(&words).ends(0);
    dir.run(&["export", "out", "--table", "queues", "--csv", "queues.csv"]).ends(0);
    let table = fs::read_to_string(dir.at("queues.csv")).unwrap();
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let [node, port, peer] =
        ["node", "port", "peer"].map(|name| head.iter().position(|it| *it == name).unwrap());
    // Hosts 8 to 15 are behind ports 0 to 7 of leaf1.
    let host = |row: &&Vec<&str>| row[node] == "leaf1" && row[port].parse::<u32>().unwrap() < 8;
    let rows: Vec<Vec<&str>> = lines.collect();
    let of_hosts: Vec<_> = rows.iter().filter(host).collect();
    assert!(!of_hosts.is_empty() && rows.iter().all(|row| !row[peer].is_empty()));
    for row in of_hosts {
        assert_eq!(row[peer], format!("host{}", 8 + row[port].parse::<u32>().unwrap()));
    }
    let report = fs::read_to_string(dir.at("out/report.html")).unwrap();
    assert!(report.contains("leaf1 → host") || report.contains("leaf0 → host"));
}
