//! `millpond sweep`: resumed without a lost or repeated run, whatever ended it.

use crate::common::{Dir, Ran, find};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

/// Six points and two seeds: twelve runs, each long enough for the test to keep up with them.
const GRID: [&str; 9] = [
    "--set",
    "duration=40ms",
    "--grid",
    "traffic.queries.degree=4,8,12",
    "--grid",
    "transport.kind=dctcp,newreno",
    "--seeds",
    "3..4",
    "--threads=1",
];

fn sweep<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["sweep", "small.toml", "--out", out], &GRID[..], more].concat()
}

/// When each finished run was written.
fn finished(out: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let written = |path: PathBuf| {
        let at = fs::metadata(&path).unwrap().modified().unwrap();
        (path, at)
    };
    find(&out.join("runs"), "manifest.json").into_iter().map(written).collect()
}

fn wait_for(child: &mut Child, out: &Path, runs: usize) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while finished(out).len() < runs {
        assert!(Instant::now() < deadline, "the sweep makes no progress");
        assert!(child.try_wait().unwrap().is_none(), "the sweep ended before it could be stopped");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn assert_untouched(before: &BTreeMap<PathBuf, SystemTime>, after: &BTreeMap<PathBuf, SystemTime>) {
    for (path, at) in before {
        assert_eq!(after.get(path), Some(at), "{} was lost or repeated", path.display());
    }
}

#[test]
fn killed_and_interrupted_it_goes_on_without_a_lost_or_repeated_run() {
    let dir = Dir::small("resume");
    let whole = dir.run(&sweep("whole", &[])).ends(0);
    assert!(whole.out.lines().all(|line| line.chars().count() <= 100), "{}", whole.out);
    let out = dir.at("broken");

    let mut child = dir.command(&sweep("broken", &[])).spawn().unwrap();
    wait_for(&mut child, &out, 2);
    let busy = dir.run(&sweep("broken", &[])).ends(1);
    assert!(busy.err.contains("another run"), "{}", busy.err);
    child.kill().unwrap();
    child.wait().unwrap();
    let after_kill = finished(&out);
    assert!((2..12).contains(&after_kill.len()), "{after_kill:?}");
    assert!(!out.join("manifest.json").exists() && !out.join("sweep.parquet").exists());

    let mut child = dir.command(&sweep("broken", &[])).spawn().unwrap();
    wait_for(&mut child, &out, after_kill.len() + 2);
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let stopped = Ran::from(child.wait_with_output().unwrap()).ends(130);
    assert!(
        stopped.err.contains("of 12 runs are finished; the same command goes on"),
        "{}",
        stopped.err
    );
    let after_interrupt = finished(&out);
    assert!((after_kill.len() + 2..12).contains(&after_interrupt.len()));
    assert_untouched(&after_kill, &after_interrupt);
    assert_eq!(find(&out.join(".running"), "manifest.json"), Vec::<PathBuf>::new());

    let ended = dir.run(&sweep("broken", &[])).ends(0);
    assert!(
        ended.err.contains(&format!("{} of 12 runs are finished already", after_interrupt.len())),
        "{}",
        ended.err
    );
    let all = finished(&out);
    assert_eq!(all.len(), 12);
    assert_untouched(&after_interrupt, &all);
    for name in ["sweep.json", "sweep.parquet"] {
        assert!(
            fs::read(out.join(name)).unwrap() == fs::read(dir.at("whole").join(name)).unwrap(),
            "{name} differs"
        );
    }
    // Once more: nothing is left to do.
    dir.run(&sweep("broken", &["-q"])).ends(0);
    assert_eq!(finished(&out), all);
    assert!(!out.join(".running").exists());
}

#[test]
fn another_plan_is_refused_and_by_force_takes_over_what_both_share() {
    let dir = Dir::small("other-plan");
    let seeds = |seeds: &'static str| {
        [
            "sweep",
            "small.toml",
            "--out",
            "x",
            "--grid",
            "traffic.queries.degree=4,8",
            "--seeds",
            seeds,
        ]
    };
    dir.run(&seeds("1..2")).ends(0);
    let before = finished(&dir.at("x"));
    let refused = dir.run(&seeds("2..3")).ends(1);
    assert!(refused.err.contains("--seeds was \"1..2\", now it is \"2..3\""), "{}", refused.err);
    assert_eq!(finished(&dir.at("x")), before);
    let forced = dir.run(&[&seeds("2..3")[..], &["--force"]].concat()).ends(0);
    assert!(forced.err.contains("2 of 4 runs are finished already"), "{}", forced.err);
    let after = finished(&dir.at("x"));
    assert_eq!(after.len(), 4);
    assert_eq!(before.iter().filter(|(path, at)| after.get(*path) == Some(at)).count(), 2);

    // The same command, but the scenario says something else.
    let text = fs::read_to_string(dir.at("small.toml")).unwrap();
    fs::write(dir.at("small.toml"), text.replace("load = 0.5", "load = 0.4")).unwrap();
    let refused = dir.run(&seeds("2..3")).ends(1);
    assert!(refused.err.contains("the scenario has changed since"), "{}", refused.err);
    let forced = dir.run(&[&seeds("2..3")[..], &["--force"]].concat()).ends(0);
    assert!(!forced.err.contains("finished already"), "{}", forced.err);

    fs::create_dir(dir.at("mine")).unwrap();
    fs::write(dir.at("mine/thesis.tex"), "").unwrap();
    let foreign = dir.run(&["sweep", "small.toml", "--seeds", "1..2", "--out", "mine"]).ends(1);
    assert!(foreign.err.contains("is no millpond result"), "{}", foreign.err);
    assert_eq!(fs::read_dir(dir.at("mine")).unwrap().count(), 1);
}

/// A list of flows that is too long for the resolved scenario is known by its content, not by where
/// it is.
#[test]
fn a_long_list_of_flows_is_known_by_its_content() {
    let list = |bytes: u32| -> String {
        let rows = (0..10_001).map(|i| format!("{i},{},{},{bytes}\n", i % 4, (i + 1) % 4));
        std::iter::once("start_us,src,dst,bytes\n".to_string()).chain(rows).collect()
    };
    let scenario = "name = \"long\"\nduration = \"1ms\"\n[topology]\nkind = \
                    \"single-switch\"\nhosts = 4\n[[traffic]]\nkind = \"flows\"\nfile = \
                    \"list.csv\"\n";
    let (dir, other) = (Dir::new("list"), Dir::new("other"));
    for place in [&dir, &other] {
        place.write("long.toml", scenario);
        place.write("list.csv", &list(1_000));
        place.run(&["run", "long.toml", "--out", "one", "-q"]).ends(0);
    }
    let page = |place: &Dir| fs::read_to_string(place.at("one/report.html")).unwrap();
    assert!(
        page(&dir) == page(&other) && page(&dir).contains("list.csv"),
        "a page tells where it was made"
    );
    // The manifest finds the list from anywhere.
    let manifest = dir.at("one/manifest.json");
    other.run(&["run", manifest.to_str().unwrap(), "--out", "again", "-q"]).ends(0);
    assert_eq!(
        fs::read(other.at("again/flows.parquet")).unwrap(),
        fs::read(dir.at("one/flows.parquet")).unwrap()
    );
    // A sweep that has moved with its scenario goes on.
    let words = ["sweep", "long.toml", "--out", "x", "--seeds", "1..2"];
    dir.run(&words).ends(0);
    fs::rename(dir.at("x"), other.at("x")).unwrap();
    let moved = other.run(&words).ends(0);
    assert!(moved.err.contains("2 of 2 runs are finished already"), "{}", moved.err);
    // Another list is another scenario.
    other.write("list.csv", &list(2_000));
    let refused = other.run(&words).ends(1);
    assert!(refused.err.contains("the scenario has changed since"), "{}", refused.err);
    let changed = other.run(&["run", "one/manifest.json", "--out", "more", "-q"]).ends(2);
    assert!(
        changed.err.contains("list.csv") && changed.err.contains("has changed"),
        "{}",
        changed.err
    );
}

#[test]
fn some_variants_are_an_axis_like_any_other() {
    let dir = Dir::small("some");
    let words = ["sweep", "small.toml", "--out", "x", "--grid", "variant=cubic", "--seeds", "1..2"];
    let ran = dir.run(&[&words[..], &["--dry-run"]].concat()).ends(0);
    assert!(ran.out.contains("= 2 runs") && ran.out.contains("cubic"), "{}", ran.out);
    let both = dir.run(&[&words[..], &["--variants"]].concat()).ends(2);
    assert!(both.err.contains("--variants sweeps all"), "{}", both.err);
    let unknown = dir.run(&["sweep", "small.toml", "--grid", "variant=cubik"]).ends(2);
    assert!(unknown.err.contains("cubic"), "{}", unknown.err);
}

#[test]
fn a_failure_is_named_and_the_rest_goes_on() {
    let dir = Dir::small("failure");
    let args = [
        "sweep",
        "small.toml",
        "--out",
        "x",
        "--grid",
        "traffic.queries.degree=4,8",
        "--seeds",
        "1..2",
    ];
    dir.run(&args).ends(0);
    // A file where a point's runs should be; another run is gone altogether.
    let blocked = dir.at("x/runs/traffic.queries.degree=8");
    fs::remove_dir_all(&blocked).unwrap();
    fs::write(&blocked, "").unwrap();
    fs::remove_dir_all(dir.at("x/runs/traffic.queries.degree=4/seed-2")).unwrap();
    let ran = dir.run(&args).ends(1);
    assert!(
        ran.err.contains("run 3 (traffic.queries.degree=8, seed 1) failed: cannot create"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("error: 2 of 4 runs failed"), "{}", ran.err);
    assert!(ran.out.contains("FAILED    run 4, 8, seed 2"), "{}", ran.out);
    assert_eq!(finished(&dir.at("x")).len(), 2);
    let csv = dir.run(&["export", "x"]).ends(0).out;
    let status: Vec<&str> =
        csv.lines().skip(1).map(|line| line.split(',').nth(3).unwrap()).collect();
    assert_eq!(status, ["complete", "complete", "failed", "failed"]);
    fs::remove_file(&blocked).unwrap();
    let ran = dir.run(&args).ends(0);
    assert!(ran.err.contains("2 of 4 runs are finished already"), "{}", ran.err);
}

#[test]
fn rows_have_the_grid_and_the_statistics() {
    let dir = Dir::small("rows");
    let args = [
        "--grid",
        "traffic.queries.degree=4,8",
        "--grid",
        "host.mtu=1500,9000",
        "--seeds",
        "1..2",
        "--json",
    ];
    let ran = dir
        .run(
            &[&["sweep", "small.toml", "--out", "x", "--variants", "--keep=all"], &args[..]]
                .concat(),
        )
        .ends(0);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["status"], "complete");
    assert_eq!(json["points"].as_array().unwrap().len(), 8);
    let point = &json["points"][7];
    assert_eq!(
        (&point["values"]["variant"], &point["values"]["host.mtu"]),
        (&"cubic".into(), &"9000".into())
    );
    let mean = &point["statistics"]["fct_us"]["mice"]["p99"];
    assert!(
        mean["mean"].is_f64()
            && mean["interval"][1].as_f64() >= mean["interval"][0].as_f64()
            && mean["n"] == 2
    );
    let csv = dir.run(&["export", "x"]).ends(0).out;
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(
        head[..7],
        ["run", "point", "seed", "status", "variant", "traffic.queries.degree", "host.mtu"]
    );
    assert!(head.contains(&"fct_us.mice.p99") && head.contains(&"packets.dropped_by.queue-full"));
    assert!(!head.iter().any(|name| name.starts_with("run.")), "what a run cost is no statistic");
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 16);
    assert_eq!(rows[15][..7], ["16", "8", "2", "complete", "cubic", "8", "9000"]);
    let at = head.iter().position(|name| *name == "fct_us.mice.p99").unwrap();
    let both: f64 = rows[14..].iter().map(|row| row[at].parse::<f64>().unwrap()).sum();
    assert_eq!(mean["mean"].as_f64(), Some(both / 2.0));
    assert_eq!(find(&dir.at("x/runs"), "flows.parquet").len(), 16);
}

#[test]
fn queries_alone_are_kept_where_they_are_asked_for() {
    let dir = Dir::small("queries");
    dir.run(&["sweep", "small.toml", "--out", "x", "--seeds", "1..2", "--keep=queries", "-q"])
        .ends(0);
    assert_eq!(find(&dir.at("x"), "queries.parquet").len(), 3, "of each run, and pooled");
    assert_eq!(
        find(&dir.at("x"), "flows.parquet").len() + find(&dir.at("x/runs"), "report.html").len(),
        0
    );
    let page = std::fs::read(dir.at("x/report.html")).unwrap();
    dir.run(&["report", "x"]).ends(0);
    assert_eq!(std::fs::read(dir.at("x/report.html")).unwrap(), page);
}

#[test]
fn a_dry_run_touches_nothing_and_wrong_grids_are_told_first() {
    let dir = Dir::small("dry");
    let ran = dir.run(&sweep("x", &["--dry-run"])).ends(0);
    assert!(ran.out.contains("6 points × 2 seeds = 12 runs, 12 to do"), "{}", ran.out);
    assert!(ran.out.contains("estimate: about"), "{}", ran.out);
    assert!(!dir.at("x").exists());
    let usage = |args: &[&str], says: &str| {
        let ran = dir.run(&[&["sweep", "small.toml", "--out", "x"], args].concat()).ends(2);
        assert!(ran.err.contains(says), "{}", ran.err);
        assert!(!dir.at("x").exists());
    };
    usage(&[], "nothing to sweep");
    usage(&["--grid", "transport.kind=dctcp,cubik"], "cubik");
    usage(&["--grid", "transport.kind=dctcp,dctcp"], "twice");
    usage(&["--grid", "seed=1,2"], "--seeds");
    // Sixteen hosts cannot be asked sixty at a time.
    let grid = ["--grid", "traffic.queries.degree=4,60"];
    usage(&grid, "--skip-invalid");
    let ran = dir
        .run(&[&["sweep", "small.toml", "--out", "x", "--skip-invalid"], &grid[..]].concat())
        .ends(0);
    assert!(ran.out.contains("left out"), "{}", ran.out);
    assert_eq!(finished(&dir.at("x")).len(), 1);
}
