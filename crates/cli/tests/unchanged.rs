//! A command that fails leaves the results that it was to replace as they were, byte for byte.

use crate::common::Dir;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file below a folder with its bytes, without the locks of sweeps: these have the number of
/// the last process.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            all.extend(files(&entry));
        } else if entry.file_name().is_some_and(|name| name != ".millpond-lock") {
            all.insert(entry.clone(), fs::read(&entry).unwrap());
        }
    }
    all
}

/// A results folder each of a run, a compare and a sweep, a table, figures, and a scenario.
fn prepared() -> Dir {
    let dir = Dir::small("unchanged");
    let small = ["small.toml", "--set", "duration=1ms"];
    let grid = ["--grid", "traffic.queries.degree=4,8", "--seeds", "2", "--threads", "1"];
    dir.run(&[&["run"], &small[..], &["--out", "run"]].concat()).ends(0);
    dir.run(&[&["compare"], &small[..], &["--out", "compare", "--seeds", "2"]].concat()).ends(0);
    dir.run(&[&["sweep"], &small[..], &grid, &["--out", "sweep"]].concat()).ends(0);
    let shard = ["--grid", "traffic.queries.degree=4", "--seeds", "2", "--out", "other"];
    dir.run(&[&["sweep"], &small[..], &shard].concat()).ends(0);
    dir.run(&["plot", "run", "--out", "figures"]).ends(0);
    dir.run(&["export", "run", "--csv", "flows.csv"]).ends(0);
    dir.run(&["new", "made.toml", "--yes"]).ends(0);
    fs::create_dir(dir.at("empty")).unwrap();
    fs::create_dir(dir.at("damaged")).unwrap();
    dir.write("damaged/sweep.json", "{");
    dir
}

#[test]
fn failing_commands_leave_results_unchanged() {
    let dir = prepared();
    let before = files(dir.path());
    let sweep = "sweep small.toml --set duration=1ms --grid traffic.queries.degree=4,8 --seeds 2";
    let calls = [
        format!("{sweep} --out sweep --merge other"),
        format!("{sweep} --out sweep --merge nowhere"),
        format!("{sweep} --out sweep --merge empty"),
        format!("{sweep} --out sweep --merge damaged"),
        format!("{sweep} --out sweep --merge run"),
        format!("{sweep} --out sweep --merge sweep other"),
        format!("{sweep} --out sweep --shard 1/2"),
        format!("{sweep} --out sweep --set duration=2ms"),
        format!("{sweep} --out sweep --force --merge other"),
        format!("{sweep} --out sweep --shows none.such"),
        format!("{sweep} --out run"),
        "run small.toml --out run --set transport.kind=none-such".into(),
        "run small.toml --out run --variant none".into(),
        "run small.toml --out run --seed -1".into(),
        "run small.toml --out run --world virtual --set topology.hosts=0".into(),
        "run small.toml --out compare".into(),
        "run missing.toml --out run".into(),
        "compare small.toml --out compare --set duration=never".into(),
        "compare small.toml --out compare --vary transport.kind=dctcp,none-such".into(),
        "compare small.toml --out run".into(),
        "reproduce no-such-paper --out compare".into(),
        "reproduce presto --only no-such-claim --out sweep".into(),
        "report empty".into(),
        "report missing".into(),
        "plot run --figure none --out figures".into(),
        "plot empty --out figures".into(),
        "export run --table none --csv flows.csv".into(),
        "export empty --csv flows.csv".into(),
        "new made.toml --yes".into(),
        "new made.toml --yes --force --transport none".into(),
        "import hpcc missing.txt --out made.toml --force".into(),
        "import htsim small.toml --out made.toml --force".into(),
    ];
    for call in &calls {
        let ran = dir.run(&call.split(' ').collect::<Vec<_>>());
        assert_ne!(ran.code, Some(0), "{call} does not fail: {}", ran.out);
        let after = files(dir.path());
        assert!(before.keys().eq(after.keys()), "{call}: {:?}", after.keys());
        for (path, bytes) in &before {
            assert!(bytes == &after[path], "{call} changes {}: {}", path.display(), ran.err);
        }
    }
}
