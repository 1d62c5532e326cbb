//! Results that are damaged: the same command finds them, names them and runs them again; every
//! other command refuses them by the file's name. Nothing panics.

use crate::common::{Dir, Ran, names};
use std::fs;
use std::path::{Path, PathBuf};

const SCENARIO: &str = r#"
name = "damaged"
until = "flows-complete"
[topology]
kind = "single-switch"
hosts = 4
[[traffic]]
kind = "incast"
degree = 2
response = "10KB"
"#;

fn dir(name: &str) -> Dir {
    let dir = Dir::new(name);
    dir.write("damaged.toml", SCENARIO);
    dir
}

fn sweep(dir: &Dir) -> Ran {
    let words = ["sweep", "damaged.toml", "--grid", "traffic.incast.degree=2,3", "--seeds", "2"];
    dir.run(&[&words[..], &["--keep", "all", "--out", "s", "-q"]].concat())
}

/// Flips one bit of a file, the bit that many bytes into it.
fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    let place = at % bytes.len();
    bytes[place] ^= 1 << (at % 8);
    fs::write(path, bytes).unwrap();
}

fn files_of(dir: &Path) -> Vec<PathBuf> {
    names(dir).into_iter().map(|name| dir.join(name)).filter(|path| path.is_file()).collect()
}

#[test]
fn sweep_names_a_damaged_run_and_runs_it_again() {
    let dir = dir("damaged");
    sweep(&dir).ends(0);
    let pooled = [
        "flows.parquet",
        "queries.parquet",
        "sizes.parquet",
        "sweep.parquet",
        "sweep.json",
        "report.html",
    ];
    let read = |name: &str| fs::read(dir.at("s").join(name)).unwrap();
    let good: Vec<Vec<u8>> = pooled.iter().map(|name| read(name)).collect();
    let again = |what: &str| {
        let ran = sweep(&dir).ends(0);
        for (name, good) in pooled.iter().zip(&good) {
            assert!(read(name) == *good, "{what}: {name} differs");
        }
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        ran.err
    };
    let run = dir.at("s/runs/traffic.incast.degree=2/seed-2");
    assert_eq!(files_of(&run).len(), 6, "{:?}", names(&run));
    for path in files_of(&run) {
        for at in [0, 13, 258, 967, 1_258, 5_003] {
            flip(&path, at);
            let told = again(&path.display().to_string());
            assert!(
                told.contains("seed-2") && told.contains("is damaged"),
                "{}, byte {at}: {told}",
                path.display()
            );
        }
        fs::write(&path, "").unwrap();
        assert!(again("empty").contains("is damaged"), "{}", path.display());
    }
    fs::remove_file(run.join("flows.parquet")).unwrap();
    assert!(again("without flows").contains("flows.parquet"));
    // Files that are made of the runs are made again; the plan is the runs' own.
    for name in pooled.iter().chain(&["manifest.json"]) {
        for at in [5, 700] {
            flip(&dir.at("s").join(name), at);
            let told = again(name);
            assert!(!told.contains("seed-"), "{name}: {told}");
            assert_eq!(
                told.contains("sweep.json: is damaged"),
                *name == "sweep.json",
                "{name}: {told}"
            );
        }
    }
    assert_eq!(again("nothing"), "");
}

/// Every command that reads a folder, on a run, a compare and a sweep of which one file after the
/// other is damaged.
#[test]
fn commands_refuse_damaged_files_by_name() {
    let dir = dir("readers");
    sweep(&dir).ends(0);
    dir.run(&["run", "damaged.toml", "--out", "r", "-q"]).ends(0);
    dir.run(&[
        "compare",
        "damaged.toml",
        "--vary",
        "traffic.incast.degree=2,3",
        "--out",
        "c",
        "-q",
    ])
    .ends(0);
    for out in ["r", "c", "s"] {
        for path in files_of(&dir.at(out)).into_iter().filter(|path| path.extension().is_some()) {
            let good = fs::read(&path).unwrap();
            for cut in [false, true] {
                match cut {
                    true => fs::write(&path, &good[..good.len() / 2]).unwrap(),
                    false => flip(&path, good.len() / 2),
                }
                for words in [&["report", out][..], &["export", out], &["check", out]] {
                    let ran = dir.run(words);
                    let what = format!("{words:?} with {} damaged: {}", path.display(), ran.err);
                    assert!(
                        !ran.err.contains("panicked") && ran.code.is_some_and(|code| code < 3),
                        "{what}"
                    );
                    let names_a_file = ran.err.contains(".json") || ran.err.contains(".parquet");
                    assert!(ran.code == Some(0) || names_a_file || words[0] == "check", "{what}");
                }
                fs::write(&path, &good).unwrap();
                // The page and its checksum are made again.
                dir.run(&["report", out]).ends(0);
            }
        }
    }
}

/// Flows that are open at the end count what they have met until then.
#[test]
fn open_flows_have_the_counts_of_their_receivers() {
    let text = r#"
name = "open"
duration = "1ms"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts-per-leaf = 4
fabric-link = { rate = "10Gbps", delay = "1us" }
[switch]
path = { kind = "spray" }
[transport]
kind = "dctcp"
dupack-threshold = "off"
[[traffic]]
kind = "bijection"
size = "100MB"
[[traffic]]
kind = "rpc"
clients = 2
servers = 2
request = "1KB"
response = "1KB"
"#;
    let dir = Dir::new("open");
    dir.write("open.toml", text);
    let csv = |threads: &str, set: &str| {
        let words =
            ["run", "open.toml", "--threads", threads, "--set", set, "--out", "x", "--force", "-q"];
        dir.run(&words).ends(0);
        dir.run(&["export", "x"]).ends(0).out
    };
    let one = csv("1", "engine.partitions=auto");
    assert!(one == csv("2", "engine.partitions=auto") && one == csv("1", "engine.partitions=one"));
    let (mut open, mut calls) = (0, 0);
    for row in one.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>()) {
        // retransmitted, timeouts, out_of_order, path_changes
        if row[1] == "rpc" {
            assert_eq!(row[9..13], [""; 4], "a call shares its connection's counts: {row:?}");
            calls += 1;
        } else {
            assert_eq!(row[6], "", "{row:?}");
            assert!(row[11..13].iter().all(|count| count.parse::<u32>().unwrap() > 0), "{row:?}");
            open += 1;
        }
    }
    assert!(open == 8 && calls > 1, "{open} open flows, {calls} calls");
}
