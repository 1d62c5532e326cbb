//! The policy of versions (`docs/versions.md`): what a release has promised is there in the next
//! one, or CHANGELOG.md says that it is gone.
//!
//! `tests/stable` lists keys of scenarios, and files and columns of results. The list of a release,
//! whose CHANGELOG.md has nothing "Unreleased", is complete; MILLPOND_BLESS=1 adds what is new. A
//! line goes only when CHANGELOG.md names it under "Removed".

use crate::common::{Dir, millpond, succeed};
use millpond_scenario::catalogue::{places, tables, whole_name};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

fn root(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(file)
}

/// Compares what there is with a list of what was promised.
fn held(file: &str, now: &BTreeSet<String>) {
    let list = root("tests/stable").join(file);
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    let promised: BTreeSet<String> = text.lines().map(str::to_string).collect();
    let log = std::fs::read_to_string(root("CHANGELOG.md")).unwrap();
    let removed: Vec<&str> = log
        .split("\n### ")
        .filter(|part| part.starts_with("Removed"))
        .flat_map(|part| part.split('`').skip(1).step_by(2))
        .collect();
    let gone: Vec<&String> =
        promised.difference(now).filter(|line| !removed.contains(&line.as_str())).collect();
    assert!(gone.is_empty(), "{file}: gone, and not in CHANGELOG.md under Removed: {gone:?}");
    if std::env::var_os("MILLPOND_BLESS").is_some() {
        let all: String = now.iter().map(|line| format!("{line}\n")).collect();
        return std::fs::write(&list, all).unwrap();
    }
    let new: Vec<&String> = now.difference(&promised).collect();
    let is_release = !log.contains("\n## Unreleased\n");
    assert!(new.is_empty() || !is_release, "{file}: new, add by MILLPOND_BLESS=1: {new:?}");
}

#[test]
fn keys_of_scenarios_stay() {
    let of_tables = tables().into_iter().flat_map(|table| table.keys).map(|key| key.path);
    let of_kinds = places().into_iter().flat_map(|place| {
        let kinds = place.kinds.into_iter();
        kinds.flat_map(|kind| {
            let name = whole_name(&kind.mechanism);
            let keys = kind.keys.iter().map(|key| format!("{name}: {}", key.name));
            keys.chain([name.clone()]).collect::<Vec<_>>()
        })
    });
    held("keys.txt", &of_tables.chain(of_kinds).collect());
}

#[test]
fn files_and_columns_of_results_stay() {
    let dir = Dir::new("versions");
    let out = dir.at("out");
    let mut run = millpond(["run"]);
    run.arg(root("scenarios/ai/all-reduce.toml")).args(["--quiet", "--set", "capture.queues=10us"]);
    succeed(run.arg("--out").arg(&out));
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".parquet") {
            let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            let columns = reader.metadata().file_metadata().schema().get_fields().iter();
            found.extend(columns.map(|column| format!("{name}: {}", column.name())));
        }
        if name.ends_with(".json") {
            let text = std::fs::read_to_string(&path).unwrap();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let keys = value.as_object().into_iter().flat_map(|object| object.keys());
            found.extend(keys.map(|key| format!("{name}: {key}")));
        }
        found.insert(name);
    }
    assert!(found.len() > 40, "{found:?}");
    held("results.txt", &found);
}
