//! `millpond compare` with seeds, and what other programs take in: CSV, completions, manual pages.

use crate::common::{Dir, find};
use std::fs;

#[test]
fn differences_have_intervals_and_what_is_beyond_the_noise_is_marked() {
    let dir = Dir::small("compare");
    let ran = dir.run(&["compare", "small.toml", "--seeds", "1..6", "--out", "x"]).ends(0);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    // Without marks at switches, marks are gone for certain.
    let marks = ran.out.lines().filter(|line| line.starts_with("cubic")).nth(1).unwrap();
    assert!(
        marks.contains("-100%*") && ran.out.contains("beyond the noise: the 95 % interval"),
        "{}",
        ran.out
    );
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.at("x/compare.json")).unwrap()).unwrap();
    assert_eq!(json[0]["differences"], serde_json::Value::Null);
    let mean = &json[1]["statistics"]["packets"]["ecn_marked"];
    assert_eq!((&mean["mean"], &mean["interval"]), (&0.0.into(), &serde_json::json!([0.0, 0.0])));
    let difference = &json[1]["differences"]["packets"]["ecn_marked"];
    assert!(difference["interval"][1].as_f64().unwrap() < 0.0 && difference["n"] == 6);
    assert_eq!(
        (&difference["interval_kind"], &difference["noise"]),
        (&"bootstrap-95".into(), &"beyond".into())
    );
    assert_eq!(
        (&mean["interval_kind"], json[1]["statistics"]["fct_us"]["all"]["p95"]["n"].as_u64()),
        (&"identical".into(), Some(6))
    );

    let csv = dir.run(&["export", "x"]).ends(0).out;
    assert!(
        csv.lines().any(|line| line.starts_with("cubic,packets.ecn_marked,0,0,0,identical,6,-")),
        "{csv}"
    );
    // Again, on one thread: the same bytes.
    dir.run(&["compare", "small.toml", "--seeds", "1..6", "--out", "y", "--threads=1", "-q"])
        .ends(0);
    assert!(
        fs::read(dir.at("x/compare.json")).unwrap() == fs::read(dir.at("y/compare.json")).unwrap()
    );
}

#[test]
fn one_variant_has_intervals_and_some_variants_can_be_chosen() {
    let dir = Dir::small("chosen");
    let compare = |more: &[&str]| dir.run(&[&["compare", "small.toml"], more].concat());
    let one = compare(&["--variant", "cubic", "--seeds", "6", "--out", "x"]).ends(0);
    let rows: Vec<&str> = one.out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(rows.contains(&"cubic") && !rows.contains(&"ecmp"), "{}", one.out);
    let half: Vec<&str> = one.out.lines().filter(|line| line.starts_with('±')).collect();
    assert!(half[0].contains("us"), "{}", one.out);
    assert!(half.last().unwrap().ends_with("half of the 95 % interval over 6 seeds"), "{half:?}");
    assert!(one.out.contains("rests on"), "a p99 of few flows: {}", one.out);
    let wrong = compare(&["--variant", "cubik", "--out", "y"]).ends(2);
    assert!(wrong.err.contains("cubik") && wrong.err.contains("cubic"), "{}", wrong.err);
    // The first that is named is the one that others are compared with.
    let two = compare(&["--variant", "cubic,ecmp", "--seeds", "2", "--out", "x"]).ends(0);
    assert!(two.out.contains("Difference to cubic, seed by seed"), "{}", two.out);
}

#[test]
fn one_seed_has_no_interval_and_few_are_told_apart() {
    let dir = Dir::small("few");
    let one = dir.run(&["compare", "small.toml", "--out", "x"]).ends(0);
    assert!(
        one.out.contains("one seed: it cannot separate a difference from noise")
            && !one.out.contains('*'),
        "{}",
        one.out
    );
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.at("x/compare.json")).unwrap()).unwrap();
    assert_eq!(json[1]["statistics"]["fct_us"]["all"]["mean"]["interval"], serde_json::Value::Null);
    let three = dir.run(&["compare", "small.toml", "--out", "x", "--seeds", "1..3"]).ends(0);
    assert!(three.out.contains("-100%~") && three.out.contains("one time in 4"), "{}", three.out);
    // The interval of three seeds is called their range, not 95 %.
    let csv = dir.run(&["export", "x"]).ends(0).out;
    let head = csv.lines().next().unwrap();
    assert!(head.contains(",low,high,interval_kind,n,") && !head.contains("95"), "{head}");
    let row = csv.lines().find(|line| line.starts_with("cubic,fct_us.all.mean,")).unwrap();
    assert_eq!(row.split(',').nth(5), Some("range"), "{row}");
}

#[test]
fn tables_become_csv() {
    let dir = Dir::small("csv");
    dir.run(&["run", "small.toml", "--out", "x", "-q"]).ends(0);
    let ran = dir.run(&["export", "x", "--csv", "flows.csv"]).ends(0);
    assert!(ran.out.is_empty() && ran.err.contains("rows of flows"), "{}", ran.err);
    let csv = fs::read_to_string(dir.at("flows.csv")).unwrap();
    assert!(csv.starts_with("flow,class,src,dst,bytes,start_us,fct_us,"));
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.at("x/summary.json")).unwrap()).unwrap();
    assert_eq!(csv.lines().count() as u64 - 1, summary["flows"]["started"].as_u64().unwrap());
    // Unfinished flows have an empty field, and the largest FCT is the summary's to the last digit.
    let fct: Vec<&str> = csv.lines().skip(1).map(|line| line.split(',').nth(6).unwrap()).collect();
    let largest = fct.iter().filter_map(|text| text.parse::<f64>().ok()).fold(0.0, f64::max);
    assert_eq!(Some(largest), summary["fct_us"]["all"]["max"].as_f64());
    assert!(
        dir.run(&["export", "x", "--table", "queries"])
            .ends(0)
            .out
            .starts_with("query,class,client,")
    );
    let none = dir.run(&["export", "x", "--table", "sweep", "--csv", "s.csv"]).ends(1);
    assert!(none.err.contains("no table \"sweep\": it has flows, queries"), "{}", none.err);
    assert!(find(dir.path(), "s.csv").is_empty() && find(dir.path(), "s.csv.partial").is_empty());
    dir.run(&["export", "nowhere"]).ends(1);
}

/// The bins of the summary are those of the rows, in every table and for every number of threads.
#[test]
fn slowdown_is_told_by_size() {
    let dir = Dir::small("sizes");
    let edges = "size-bins=[\"5KB\",\"50KB\"]";
    for (out, more) in [("x", vec![]), ("y", vec!["--threads=1"]), ("z", vec!["--set", edges])] {
        dir.run(&[&["run", "small.toml", "--out", out, "-q"], &more[..]].concat()).ends(0);
    }
    let bytes = |path: &str| fs::read(dir.at(path)).unwrap();
    assert!(bytes("x/sizes.parquet") == bytes("y/sizes.parquet"));
    let flows: Vec<(u64, Option<f64>)> = dir
        .run(&["export", "x"])
        .ends(0)
        .out
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[4].parse().unwrap(), fields[8].parse().ok())
        })
        .collect();
    for out in ["x", "z"] {
        let csv = dir.run(&["export", out, "--table", "sizes"]).ends(0).out;
        assert!(
            csv.starts_with("sizes,above_bytes,to_bytes,completed,unfinished,mean,p50,p95,p99\n"),
            "{csv}"
        );
        let summary: serde_json::Value =
            serde_json::from_slice(&bytes(&format!("{out}/summary.json"))).unwrap();
        let bins = summary["slowdown_by_size"].as_object().unwrap();
        assert!(bins.len() == csv.lines().count() - 1 && bins.len() > 1, "{csv}");
        for (name, bin) in bins {
            let (above, to) =
                (bin["above_bytes"].as_u64().unwrap(), bin["to_bytes"].as_u64().unwrap());
            let own = || flows.iter().filter(|flow| flow.0 > above && flow.0 <= to);
            let done = own().filter(|flow| flow.1.is_some()).count() as u64;
            assert_eq!(
                (bin["completed"].as_u64(), bin["unfinished"].as_u64()),
                (Some(done), Some(own().count() as u64 - done))
            );
            let most = own().filter_map(|flow| flow.1).fold(0.0, f64::max);
            let [p50, p95, p99] = ["p50", "p95", "p99"].map(|key| bin[key].as_f64().unwrap());
            assert!(p50 <= p95 && p95 <= p99 && p99 <= most, "{name}: {bin}");
            assert!(csv.contains(&format!("\n{name},{above},{to},{done},")), "{csv}");
        }
    }
    let page = fs::read_to_string(dir.at("x/report.html")).unwrap();
    assert!(page.contains("Slowdown p95 by flow size"));

    let ran =
        dir.run(&["compare", "small.toml", "--seeds", "2", "--out", "c", "--by-size"]).ends(0);
    assert!(
        ran.out.contains("slowdown by flow size")
            && ran.out.lines().all(|line| line.chars().count() <= 100),
        "{}",
        ran.out
    );
    let pooled = dir.run(&["export", "c", "--table", "sizes"]).ends(0).out;
    assert!(pooled.starts_with("variant,seed,sizes,above_bytes,"), "{pooled}");
    assert!(dir.run(&["export", "c"]).ends(0).out.contains(",slowdown_by_size."));
    dir.run(&["sweep", "small.toml", "--variants", "--grid", "mice=50KB,60KB", "--out", "s", "-q"])
        .ends(0);
    let page = fs::read_to_string(dir.at("s/report.html")).unwrap();
    assert!(page.contains("Slowdown p99 by flow size") && page.contains("mice = 60KB"));
    let wrong = dir
        .run(&["run", "small.toml", "--set", "size-bins=[\"50KB\",\"5KB\"]", "--out", "w"])
        .ends(2);
    assert!(wrong.err.contains("sizes that ascend"), "{}", wrong.err);
}

/// Their scripts divide the seventh column by the eighth: that is the slowdown here.
#[test]
fn flows_become_the_hpcc_familys_fct_txt() {
    let dir = Dir::small("fct");
    dir.run(&["run", "small.toml", "--out", "x", "-q"]).ends(0);
    let ran = dir.run(&["export", "x", "fct.txt"]).ends(0);
    assert!(ran.out.is_empty() && ran.err.contains("rows of flows that completed"), "{}", ran.err);
    let fct = fs::read_to_string(dir.at("fct.txt")).unwrap();
    let csv = dir.run(&["export", "x"]).ends(0).out;
    let completed = csv.lines().skip(1).filter(|line| !line.split(',').nth(6).unwrap().is_empty());
    let mut seen = std::collections::BTreeSet::new();
    assert_eq!(fct.lines().count(), completed.clone().count());
    for (line, row) in fct.lines().zip(completed) {
        let of: Vec<&str> = line.split(' ').collect();
        let row: Vec<&str> = row.split(',').collect();
        let host = |address: &str| (u32::from_str_radix(address, 16).unwrap() - 0x0b000001) / 256;
        assert_eq!(
            [host(of[0]).to_string(), host(of[1]).to_string(), of[4].into()],
            [row[2], row[3], row[4]]
        );
        let number = |text: &str| text.parse::<f64>().unwrap();
        assert!(
            (number(of[5]) - number(row[5]) * 1e3).abs() <= 0.5
                && (number(of[6]) - number(row[6]) * 1e3).abs() <= 0.5
        );
        assert!((number(of[6]) / number(of[7]) / number(row[8]) - 1.0).abs() < 1e-3, "{line}");
        let pair = [of[0], of[1], of[2]].map(str::to_string);
        assert!(seen.insert(pair), "a port twice: {line}");
    }
    assert!(
        dir.run(&["export", "x", "t.csv", "--table", "sizes"])
            .ends(0)
            .err
            .contains("rows of sizes")
    );
    dir.run(&["compare", "small.toml", "--out", "c", "-q"]).ends(0);
    assert!(dir.run(&["export", "c", "fct.txt"]).ends(1).err.contains("the folder of a run"));
    dir.run(&["export", "x", "fct.txt", "--table", "flows"]).ends(2);
}

#[test]
fn shells_and_man_get_their_files() {
    let dir = Dir::small("man");
    for shell in ["bash", "zsh", "fish"] {
        let text = dir.run(&["completions", shell]).ends(0).out;
        assert!(text.contains("sweep") && text.contains("skip-invalid"), "{shell}");
    }
    dir.run(&["completions", "dos"]).ends(2);
    dir.run(&["man", "--out", "man"]).ends(0);
    let page = fs::read_to_string(dir.at("man/millpond-sweep.1")).unwrap();
    assert!(page.starts_with(".ie") && page.contains("SYNOPSIS"));
    assert!(dir.at("man/millpond.1").exists() && !dir.at("man/millpond-reference.1").exists());
}

#[test]
fn variants_times_values_name_the_one_baseline() {
    let dir = Dir::small("baseline");
    let vary = ["--vary", "transport.min-rto=5ms,10ms", "--out", "x", "--force"];
    let warned = |more: &[&str]| {
        let command = [&["compare", "small.toml"], &vary[..], more].concat();
        let err = dir.run(&command).ends(0).err;
        (err.contains("every row is compared with"), err)
    };
    let (is_warned, err) = warned(&[]);
    assert!(is_warned && err.contains("set transport.min-rto to it, such as 10ms"), "{err}");
    let (is_warned, err) = warned(&["-q"]);
    assert!(!is_warned, "{err}");
}
