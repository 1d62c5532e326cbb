//! `millpond sweep --shard` and `--merge`: shards make the sweep of one machine, byte for byte,
//! also by the template for Slurm and after tasks were killed.

use crate::common::{Dir, MILLPOND, find, names, root};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Four points and three seeds: twelve runs.
const GRID: [&str; 8] = [
    "--set",
    "duration=10ms",
    "--grid",
    "traffic.queries.degree=4,8",
    "--grid",
    "transport.kind=dctcp,newreno",
    "--seeds",
    "3..5",
];

fn sweep<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["sweep", "small.toml", "--threads=1"], &GRID[..], more].concat()
}

/// The files of a sweep whose bytes follow from its plan, and each run's summary without the run's
/// cost.
fn results(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in ["sweep.json", "sweep.parquet", "queries.parquet"] {
        files.insert(PathBuf::from(name), fs::read(out.join(name)).unwrap());
    }
    for path in find(&out.join("runs"), "summary.json") {
        let mut summary: serde_json::Value =
            serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        summary.as_object_mut().unwrap().remove("run").unwrap();
        let place = path.strip_prefix(out).unwrap().to_path_buf();
        files.insert(place, summary.to_string().into_bytes());
    }
    files
}

fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (results(one), results(other));
    assert!(one.keys().eq(other.keys()), "{:?} and {:?}", one.keys(), other.keys());
    for (path, bytes) in &one {
        assert!(bytes == &other[path], "{} differs", path.display());
    }
    assert_eq!(one.len(), 3 + 12);
}

#[test]
fn merged_shards_are_the_sweep_of_one_machine() {
    let dir = Dir::small("shards");
    let keep = ["--keep=queries"];
    dir.run(&[&sweep(&["--out", "whole"])[..], &keep].concat()).ends(0);
    for shard in ["1/3", "2/3", "3/3"] {
        dir.run(&[&sweep(&["--shard", shard])[..], &keep].concat()).ends(0);
    }
    let shards = names(&dir.at("out"));
    assert_eq!(shards, ["small-sweep-1-of-3", "small-sweep-2-of-3", "small-sweep-3-of-3"]);
    for shard in &shards {
        let folder = dir.at("out").join(shard);
        assert_eq!(find(&folder, "summary.json").len(), 4);
        assert!(!folder.join("manifest.json").exists() && !folder.join(".running").exists());
    }
    let merge = ["--out", "merged", "--merge", "out/small-sweep-1-of-3", "out/small-sweep-2-of-3"];
    let merged = dir.run(&[&sweep(&keep)[..], &merge, &["out/small-sweep-3-of-3"]].concat());
    let merged = merged.ends(0);
    assert!(merged.err.contains("12 of 12 runs are finished already"), "{}", merged.err);
    assert_same(&dir.at("whole"), &dir.at("merged"));
    // The whole sweep keeps its statistics: a shard goes elsewhere.
    let refused = dir.run(&sweep(&["--out", "merged", "--shard", "1/3", "--keep=queries"])).ends(2);
    assert!(refused.err.contains("merged holds the whole sweep"), "{}", refused.err);
    assert_same(&dir.at("whole"), &dir.at("merged"));
}

#[test]
fn a_merge_makes_what_is_missing_or_damaged() {
    let dir = Dir::small("missing-shard");
    let keep = "--keep=queries";
    dir.run(&sweep(&["--out", "whole", keep])).ends(0);
    dir.run(&sweep(&["--out", "second", keep, "--shard", "2/2"])).ends(0);
    let damaged = &find(&dir.at("second"), "summary.json")[0];
    let text = fs::read_to_string(damaged).unwrap();
    fs::write(damaged, text.replacen("\"started\": ", "\"started\": 1", 1)).unwrap();
    let merged = dir.run(&sweep(&["--out", "merged", keep, "--merge", "second"])).ends(0);
    assert!(merged.err.contains("5 runs are taken from second"), "{}", merged.err);
    assert_same(&dir.at("whole"), &dir.at("merged"));
}

#[test]
fn shards_of_another_sweep_and_wrong_numbers_are_refused() {
    let dir = Dir::small("other-shard");
    dir.run(&sweep(&["--out", "first", "--shard", "1/2"])).ends(0);
    let other = ["sweep", "small.toml", "--seeds", "2", "--out", "merged", "--merge", "first"];
    let refused = dir.run(&other).ends(1);
    assert!(refused.err.contains("first holds runs of another sweep"), "{}", refused.err);
    for wrong in ["0/2", "3/2", "1", "a/b", "1/0"] {
        let refused = dir.run(&sweep(&["--shard", wrong])).ends(2);
        assert!(refused.err.contains("I/N"), "{}", refused.err);
    }
    dir.run(&sweep(&["--merge", "no-such-folder"])).ends(1);
}

/// Stands in for Slurm: an array's tasks run one after the other, each in the environment that
/// Slurm documents. `KILLED=I` kills task I before its end.
const SBATCH: &str = r#"#!/usr/bin/env bash
set -u
array= script= args=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --parsable) ;;
    --dependency=*) ;;
    --array=*) array=${1#--array=} ;;
    *) script=$1; shift; args=("$@"); break ;;
    esac
    shift
done
export SLURM_CPUS_PER_TASK=1
run() { bash "$script" "${args[@]}" >>slurm.log 2>&1; }
if [[ -z $array ]]; then
    run || exit
else
    export SLURM_ARRAY_TASK_COUNT=${array#*-} SLURM_ARRAY_TASK_ID
    for SLURM_ARRAY_TASK_ID in $(seq "${array%-*}" "${array#*-}"); do
        if [[ ${KILLED:-} == "$SLURM_ARRAY_TASK_ID" ]]; then
            bash "$script" "${args[@]}" >>slurm.log 2>&1 &
            echo $! >killed.pid
            wait
        else
            run
        fi
    done
fi
echo 4711
"#;

/// `sbatch` with the template, in a folder that has the stand-in.
fn sbatch(dir: &Dir, words: &[&str]) -> Command {
    let bin = Path::new(MILLPOND).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{path}", dir.path().display(), bin.display());
    let mut command = Command::new(dir.at("sbatch"));
    command.args(words).arg(root().join("packaging/slurm/sweep.sbatch"));
    command.args(["small.toml", "--keep=queries"]).args(GRID);
    command.current_dir(dir.path()).env("PATH", path).env("MILLPOND_OUT", "slurm");
    command
}

#[test]
fn the_template_for_slurm_goes_on_after_a_task_is_killed() {
    let dir = Dir::small("slurm");
    let stand_in = dir.write("sbatch", SBATCH);
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).unwrap();
    dir.run(&sweep(&["--out", "whole", "--keep=queries"])).ends(0);

    let array = ["--parsable", "--array=1-3"];
    let mut first = sbatch(&dir, &array).env("KILLED", "2").spawn().unwrap();
    let shard = dir.at("slurm.shard-2-of-3");
    let deadline = Instant::now() + Duration::from_secs(120);
    while find(&shard, "summary.json").is_empty() {
        assert!(Instant::now() < deadline, "the second task makes no progress");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = fs::read_to_string(dir.at("killed.pid")).unwrap();
    // The task may have come to its end just now.
    let _ = Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
    assert!(first.wait().unwrap().success());

    let again = sbatch(&dir, &array).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&again.stdout), "4711\n");
    let merged = sbatch(&dir, &["--dependency=afterany:4711"]).status().unwrap();
    let log = fs::read_to_string(dir.at("slurm.log")).unwrap();
    assert!(merged.success(), "{log}");
    assert_same(&dir.at("whole"), &dir.at("slurm"));
}
