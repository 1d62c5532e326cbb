//! Determinism is law: for one scenario and seed every file of a results folder is the same byte
//! for byte at any number of threads, except `manifest.json` and the object `run` of
//! `summary.json`. The result's own manifest gives it again, and how the engine runs a plan (kind
//! of ports, partitions) changes no result.

use crate::common::{
    self, Dir, Shipped, contents, difference, millpond, shipped, succeed, with_default,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// Both folders hold the same files with the same bytes.
fn same(what: &str, a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) {
    if let Some(difference) = difference(a, b) {
        panic!("{what}: {difference}");
    }
}

/// One scenario, all of its variants.
fn identical(shipped: &Shipped) {
    for variant in shipped.arms() {
        let dir = Dir::new("identity");
        let what = |how: &str| format!("{} {} {how}", shipped.name, variant.unwrap_or(""));
        let run = |name: &str, more: &[&str]| {
            succeed(&mut shipped.run(variant, &dir.at(name), more));
            contents(&dir.at(name))
        };
        let one = run("one", &["--threads", "1"]);
        same(&what("--threads 2"), &one, &run("two", &["--threads", "2"]));
        same(&what("--threads 3"), &one, &run("three", &["--threads", "3"]));

        let again = dir.at("again");
        let mut rerun = millpond(["run"]);
        rerun.arg(dir.at("one").join("manifest.json")).arg("--out").arg(&again).arg("--quiet");
        succeed(&mut rerun);
        same(&what("from its manifest"), &one, &contents(&again));

        for (key, value) in [("engine.ports", "general"), ("engine.partitions", "one")] {
            let set = |value: &str| {
                run(
                    &format!("{key}-{value}"),
                    &["--threads", "2", "--set", &format!("{key}={value}")],
                )
            };
            same(&what(key), &set("auto"), &with_default(&set(value), key, value, "auto"));
        }
        same(
            &what("with general ports"),
            &without_report(&one),
            &without_report(&contents(&dir.at("engine.ports-general"))),
        );
    }
}

fn without_report(contents: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    contents
        .iter()
        .filter(|(name, _)| *name != "report.html")
        .map(|(n, b)| (n.clone(), b.clone()))
        .collect()
}

#[test]
fn dumbbell() {
    identical(shipped("dumbbell"));
}

#[test]
fn fat_tree_permutation() {
    identical(shipped("fat-tree-permutation"));
}

#[test]
fn flows() {
    identical(shipped("flows"));
}

#[test]
fn incast() {
    identical(shipped("incast"));
}

#[test]
fn limit() {
    identical(shipped("limit"));
}

#[test]
fn microburst() {
    identical(shipped("microburst"));
}

#[test]
fn rpc() {
    identical(shipped("rpc"));
}

#[test]
fn shuffle() {
    identical(shipped("shuffle"));
}

/// A whole `compare` is the same however its runs are spread over threads.
#[test]
fn comparisons_do_not_depend_on_how_many_run_at_a_time() {
    let dir = Dir::new("compare");
    let run = |threads: &str| {
        let out = dir.at(threads);
        let mut command = millpond(["compare"]);
        command.arg(common::scenario("incast")).args([
            "--set",
            "duration=50ms",
            "--seeds",
            "1..2",
            "--quiet",
        ]);
        succeed(command.args(["--threads", threads]).arg("--out").arg(&out));
        let mut all = BTreeMap::new();
        for name in ["compare.json", "report.html"] {
            all.insert(name.to_string(), std::fs::read(out.join(name)).unwrap());
        }
        for variant in &shipped("incast").variants {
            for seed in ["seed-1", "seed-2"] {
                for (name, bytes) in contents(&out.join(variant).join(seed)) {
                    all.insert(format!("{variant}/{seed}/{name}"), bytes);
                }
            }
        }
        all
    };
    let one = run("1");
    same("compare with two threads", &one, &run("2"));
    same("compare with three threads", &one, &run("3"));
}

/// A shown seed is the seed: another one gives another result.
#[test]
fn another_seed_is_another_result() {
    let dir = Dir::new("seed");
    let run = |name: &str, seed: &str| {
        succeed(&mut shipped("incast").run(
            None,
            &dir.at(name),
            &["--set", "traffic.incast.receiver=random", "--seed", seed],
        ));
        contents(&dir.at(name))
    };
    let (one, two, again) = (run("a", "1"), run("b", "2"), run("c", "1"));
    same("the same seed", &one, &again);
    assert_ne!(one["flows.parquet"], two["flows.parquet"]);
}

/// The facts of a flow before the network has touched it, by its number: class, source,
/// destination, bytes, start.
fn arrivals(dir: &Path, timed: impl Fn(&str) -> bool) -> BTreeMap<u32, Vec<String>> {
    let reader = SerializedFileReader::new(File::open(dir.join("flows.parquet")).unwrap()).unwrap();
    let mut flows = BTreeMap::new();
    for row in reader.get_row_iter(None).unwrap() {
        let columns: BTreeMap<String, Field> = row.unwrap().into_columns().into_iter().collect();
        let Field::UInt(flow) = columns["flow"] else { panic!("flow is {:?}", columns["flow"]) };
        let Field::Str(class) = &columns["class"] else {
            panic!("class is {:?}", columns["class"])
        };
        let keys = ["class", "src", "dst", "bytes", "start_us"];
        let keys = &keys[..if timed(class) { 5 } else { 4 }];
        let before = flows.insert(flow, keys.iter().map(|key| columns[*key].to_string()).collect());
        assert!(before.is_none(), "flow {flow} has two rows");
    }
    assert!(!flows.is_empty());
    flows
}

/// Variants are networks that meet the same arrivals: comparing them is comparing like with like.
#[test]
fn variants_see_the_same_arrivals() {
    for name in ["dumbbell", "fat-tree-permutation", "microburst"] {
        same_arrivals(name, |_| true);
    }
    // An asked server starts when the request has arrived, which is up to the network; what it
    // sends is not.
    same_arrivals("incast", |_| false);
}

fn same_arrivals(name: &str, timed: impl Fn(&str) -> bool) {
    let dir = Dir::new("arrivals");
    let shipped = shipped(name);
    let of = |variant: &str| {
        succeed(&mut shipped.run(Some(variant), &dir.at(variant), &[]));
        arrivals(&dir.at(variant), &timed)
    };
    let first = of(&shipped.variants[0]);
    for variant in &shipped.variants[1..] {
        assert_eq!(first, of(variant), "{name}: {} and {variant}", shipped.variants[0]);
    }
}
