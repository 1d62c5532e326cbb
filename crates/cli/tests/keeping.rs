//! Nothing is lost: results, other people's files, finished runs of what was stopped, and what is
//! printed.

#![cfg(unix)]

use crate::common::{Dir, Ran, SMALL, find, json, names};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const PATIENCE: Duration = Duration::from_secs(120);

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Waits until something is so; the child must not end before.
fn wait_for(child: &mut Child, what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} does not happen");
        assert!(child.try_wait().unwrap().is_none(), "the command ended before {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// When each finished run below a folder was written.
fn finished(out: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let runs =
        find(out, "summary.json").into_iter().map(|path| path.with_file_name("manifest.json"));
    let written = |path: PathBuf| {
        Some((
            path.strip_prefix(out).ok()?.to_path_buf(),
            fs::metadata(&path).ok()?.modified().ok()?,
        ))
    };
    runs.filter_map(written).collect()
}

#[test]
fn defaults_of_commands_do_not_collide() {
    let dir = Dir::small("defaults");
    let words: [&[&str]; 4] = [
        &["run", "small.toml"],
        &["run", "small.toml", "--variant", "cubic"],
        &["compare", "small.toml"],
        &["sweep", "small.toml", "--seeds", "1..2"],
    ];
    for _ in 0..2 {
        for words in words {
            dir.run(&[words, &["--quiet"]].concat()).ends(0);
        }
    }
    assert_eq!(names(&dir.at("out")), ["small", "small-compare", "small-cubic", "small-sweep"]);
    for (folder, kind) in [
        ("small", "run"),
        ("small-compare", "compare"),
        ("small-cubic", "run"),
        ("small-sweep", "sweep"),
    ] {
        let manifest = json(&fs::read(dir.at("out").join(folder).join("manifest.json")).unwrap());
        assert_eq!(manifest["kind"], kind, "{folder}");
    }
}

#[test]
fn second_command_prints_the_result_that_it_replaces() {
    let dir = Dir::small("replaces");
    for (words, of, out) in [
        (&["run", "small.toml"][..], "a run of \"small\"", "out/small"),
        (&["compare", "small.toml", "--out", "x"], "a compare of \"small\"", "x"),
    ] {
        let first = dir.run(words).ends(0);
        assert!(!first.err.contains("replaces the results"), "{}", first.err);
        let second = dir.run(words).ends(0);
        let note = format!("replaces the results of {of} in {out}");
        assert_eq!(second.err.matches(&note).count(), 1, "{}", second.err);
    }
    let forced = dir.run(&["run", "small.toml", "--out", "x", "--force"]).ends(0);
    assert!(forced.err.contains("replaces the results of a compare"), "{}", forced.err);
}

#[test]
fn a_result_makes_way_for_its_own_command_and_scenario_alone() {
    let dir = Dir::small("owners");
    dir.write("other.toml", &SMALL.replace("name = \"small\"", "name = \"other\""));
    let run: &[&str] = &["run", "small.toml", "--out", "x", "-q"];
    let compare: &[&str] = &["compare", "small.toml", "--out", "x", "-q"];
    let sweep: &[&str] = &["sweep", "small.toml", "--seeds", "1..2", "--out", "x", "-q"];
    let variant: &[&str] = &["run", "small.toml", "--variant", "cubic", "--out", "x", "-q"];
    let other: &[&str] = &["run", "other.toml", "--out", "x", "-q"];
    let holders: [(&[&str], &str); 3] = [
        (run, "holds a run of \"small\""),
        (compare, "holds a compare of \"small\""),
        (sweep, "holds a sweep of \"small\""),
    ];
    for (holder, holds) in holders {
        let _ = fs::remove_dir_all(dir.at("x"));
        dir.run(holder).ends(0);
        let before = finished(&dir.at("x"));
        for words in [run, compare, sweep, variant, other] {
            if words == holder {
                continue;
            }
            let refused = dir.run(words).ends(1);
            assert!(
                refused.err.contains(holds) && refused.err.contains("--force"),
                "{words:?}: {}",
                refused.err
            );
            assert_eq!(finished(&dir.at("x")), before);
        }
        dir.run(holder).ends(0);
        assert_eq!(names(dir.path()).iter().filter(|name| name.contains("partial")).count(), 0);
    }
    // A folder that has no manifest yet is nobody's to replace either: a sweep under way, say.
    fs::remove_file(dir.at("x/manifest.json")).unwrap();
    let refused = dir.run(run).ends(1);
    assert!(refused.err.contains("is no millpond result (it has "), "{}", refused.err);
    dir.run(&[run, &["--force"]].concat()).ends(0);
    assert!(!dir.at("x/sweep.json").exists());
}

#[test]
fn files_that_no_run_has_made_are_told_by_name_and_stay() {
    let dir = Dir::small("notes");
    for words in
        [["run", "small.toml", "--out", "x", "-q"], ["compare", "small.toml", "--out", "x", "-q"]]
    {
        dir.run(&words).ends(0);
        fs::write(dir.at("x/notes.md"), "of mine").unwrap();
        let refused = dir.run(&words).ends(1);
        assert!(refused.err.contains("not of its result (notes.md)"), "{}", refused.err);
        assert_eq!(fs::read_to_string(dir.at("x/notes.md")).unwrap(), "of mine");
        dir.run(&[&words[..], &["--force"]].concat()).ends(0);
        assert!(!dir.at("x/notes.md").exists());
        // A page that was made again is the result's own.
        dir.run(&["report", "x"]).ends(0);
        dir.run(&words).ends(0);
        fs::remove_dir_all(dir.at("x")).unwrap();
    }
    // A sweep goes on in its folder, and leaves what is not its own alone even by force.
    let sweep = ["sweep", "small.toml", "--seeds", "1..2", "--out", "x", "-q"];
    dir.run(&sweep).ends(0);
    fs::write(dir.at("x/notes.md"), "of mine").unwrap();
    dir.run(&sweep).ends(0);
    dir.run(&["sweep", "small.toml", "--seeds", "2..3", "--out", "x", "-q", "--force"]).ends(0);
    assert!(dir.at("x/notes.md").exists());
}

/// Sixteen runs of some tenths of a second.
const COMPARE: [&str; 7] =
    ["compare", "small.toml", "--set", "duration=40ms", "--seeds", "1..8", "--threads=1"];

fn compare_to(out: &str) -> Vec<&str> {
    [&COMPARE[..], &["--out", out]].concat()
}

#[test]
fn a_compare_that_was_killed_and_interrupted_goes_on() {
    let dir = Dir::small("compare-resume");
    dir.run(&[&compare_to("whole")[..], &["-q"]].concat()).ends(0);
    let partial = dir.at("x.partial");

    let mut child = dir.command(&compare_to("x")).spawn().unwrap();
    wait_for(&mut child, "a finished run", || finished(&partial).len() >= 2);
    let busy = dir.run(&compare_to("x")).ends(1);
    assert!(busy.err.contains("another run"), "{}", busy.err);
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = finished(&partial);
    assert!((2..16).contains(&killed.len()) && !dir.at("x").exists(), "{killed:?}");

    let mut child = dir.command(&compare_to("x")).spawn().unwrap();
    wait_for(&mut child, "another finished run", || finished(&partial).len() >= killed.len() + 2);
    signal(&child, "-INT");
    let stopped = Ran::from(child.wait_with_output().unwrap()).ends(130);
    assert!(
        stopped.err.contains("of 16 runs are finished; the same command goes on"),
        "{}",
        stopped.err
    );
    let interrupted = finished(&partial);
    assert!((killed.len() + 2..16).contains(&interrupted.len()), "{interrupted:?}");
    assert!(
        killed.iter().all(|(path, at)| interrupted.get(path) == Some(at)),
        "a run was lost or repeated"
    );
    // There is a page of what there is.
    let page = fs::read_to_string(partial.join("report.html")).unwrap();
    let told = format!("interrupted: {} of 16 runs are finished", interrupted.len());
    assert!(
        page.contains(&told) && stopped.err.contains("x.partial/report.html"),
        "{told}: {}",
        stopped.err
    );
    assert_eq!(json(&fs::read(partial.join("manifest.json")).unwrap())["status"], "interrupted");

    // Nobody else takes them away.
    for words in [
        vec!["run", "small.toml", "--out", "x", "-q"],
        vec!["compare", "small.toml", "--out", "x", "-q"],
        [&compare_to("x")[..], &["--set", "mice=50KB"]].concat(),
    ] {
        let refused = dir.run(&words).ends(1);
        let told = "finished runs of a compare that was interrupted";
        assert!(refused.err.contains(told) && refused.err.contains("--force"), "{}", refused.err);
        assert_eq!(finished(&partial), interrupted);
    }

    let ended = dir.run(&compare_to("x")).ends(0);
    assert!(
        ended.err.contains(&format!("{} of 16 runs are finished already", interrupted.len())),
        "{}",
        ended.err
    );
    assert!(!partial.exists());
    let all = finished(&dir.at("x"));
    assert_eq!(all.len(), 16);
    assert!(
        interrupted.iter().all(|(path, at)| all.get(path) == Some(at)),
        "a run was lost or repeated"
    );
    for name in [
        "compare.json",
        "flows.parquet",
        "queries.parquet",
        "report.html",
        "cubic/seed-3/flows.parquet",
    ] {
        let same = fs::read(dir.at("x").join(name)).unwrap()
            == fs::read(dir.at("whole").join(name)).unwrap();
        assert!(same, "{name} differs");
    }
}

#[test]
fn a_finished_compare_is_printed_again_without_a_run() {
    let dir = Dir::small("compare-again");
    let compare = |more: &[&str]| {
        let words = ["compare", "small.toml", "--out", "x", "--seeds"];
        dir.run(&[&words, more].concat()).ends(0)
    };
    let first = compare(&["2"]);
    assert!(!first.err.contains("finished already"), "{}", first.err);
    let made = finished(&dir.at("x"));
    let again = compare(&["2", "--json"]);
    assert!(again.err.contains("4 of 4 runs are finished already"), "{}", again.err);
    assert_eq!(json(again.out.as_bytes()), json(&fs::read(dir.at("x/compare.json")).unwrap()));
    assert_eq!(finished(&dir.at("x")), made);
    // More seeds and other numbers make the runs that are not there, another scenario makes all.
    let more = compare(&["3", "--shows", "timeouts"]);
    assert!(more.err.contains("4 of 6 runs are finished already"), "{}", more.err);
    let grown = finished(&dir.at("x"));
    assert!(grown.len() == 6 && made.iter().all(|(path, at)| grown.get(path) == Some(at)));
    // Fewer seeds or variants are those of the result, and the other runs stay.
    let fewer = compare(&["2"]);
    assert!(fewer.err.contains("4 of 4 runs are finished already"), "{}", fewer.err);
    let seeds = |of: &Ran| -> Vec<String> {
        let results = json(of.out.as_bytes());
        results.as_array().unwrap().iter().map(|one| one["seeds"].to_string()).collect()
    };
    assert_eq!(seeds(&compare(&["2..3", "--json"])), ["[2,3]", "[2,3]"]);
    assert_eq!(seeds(&compare(&["2", "--json", "--variant", "cubic"])), ["[1,2]"]);
    let pooled = dir.run(&["export", "x", "--table", "flows"]).ends(0).out;
    assert!(rows(&pooled).iter().all(|row| row[0] == "cubic" && ["1", "2"].contains(&row[1])));
    let back = compare(&["3", "--json"]);
    assert!(back.err.contains("6 of 6 runs are finished already"), "{}", back.err);
    assert_eq!(seeds(&back), ["[1,2,3]", "[1,2,3]"]);
    assert_eq!(finished(&dir.at("x")), grown);
    for other in [&["3", "--set", "mice=50KB"][..], &["3", "--set", "mice=50KB", "--force"]] {
        let other = compare(other);
        assert!(!other.err.contains("finished already"), "{}", other.err);
    }
}

#[test]
fn an_interrupted_run_does_not_replace_a_whole_one() {
    let dir = Dir::small("run-interrupted");
    dir.run(&["run", "small.toml", "--out", "x", "-q"]).ends(0);
    let before = finished(&dir.at("x"));
    let mut child = dir
        .command(&["run", "small.toml", "--out", "x", "--set", "duration=600s"])
        .spawn()
        .unwrap();
    let progress = dir.at("x.partial/progress.json");
    wait_for(&mut child, "progress", || progress.exists());
    signal(&child, "-INT");
    let stopped = Ran::from(child.wait_with_output().unwrap()).ends(130);
    assert!(
        stopped.err.contains("x.partial; x still holds the complete result"),
        "{}",
        stopped.err
    );
    assert_eq!(finished(&dir.at("x")), before);
    let part = json(&fs::read(dir.at("x.partial/summary.json")).unwrap());
    assert_eq!(part["status"], "interrupted");
    dir.run(&["run", "small.toml", "--out", "x", "-q"]).ends(0);
    assert!(!dir.at("x.partial").exists() && finished(&dir.at("x")) != before);
}

/// A window of ten milliseconds holds seconds of work.
#[test]
fn slow_links_delay_neither_progress_nor_an_interrupt() {
    let dir = Dir::new("slow-links");
    dir.write(
        "slow.toml",
        r#"
name = "slow"
duration = "600s"
[topology]
kind = "leaf-spine"
leaves = 8
spines = 4
hosts-per-leaf = 40
host-link = { rate = "10Gbps", delay = "1us" }
fabric-link = { rate = "100Gbps", delay = "10ms" }
[[traffic]]
kind = "poisson"
sizes = "1MB"
load = 0.9
load-base = "host-links"
"#,
    );
    let mut child =
        dir.command(&["run", "slow.toml", "--out", "x", "--threads", "1"]).spawn().unwrap();
    let progress = dir.at("x.partial/progress.json");
    let read = || fs::read(&progress).ok().map(|text| json(&text)["packet_hops"].as_u64().unwrap());
    wait_for(&mut child, "progress", || read().is_some());
    // It moves, second by second, long before 256 windows.
    let (first, began) = (read().unwrap(), Instant::now());
    wait_for(&mut child, "more progress", || read().unwrap() > first);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let asked = Instant::now();
    signal(&child, "-INT");
    let stopped = Ran::from(child.wait_with_output().unwrap()).ends(130);
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}: {}", asked.elapsed(), stopped.err);
    let summary = json(&fs::read(dir.at("x/summary.json")).unwrap());
    assert_eq!(
        (&summary["status"], &summary["audit"]["conserved"]),
        (&"interrupted".into(), &true.into())
    );
}

#[test]
fn a_table_goes_where_a_pipe_a_device_or_a_link_leads() {
    let dir = Dir::small("in-place");
    dir.run(&["run", "small.toml", "--out", "x", "-q"]).ends(0);
    let csv = dir.run(&["export", "x"]).ends(0).out;
    let links: [(&str, &str); 2] = [("link.csv", "target.csv"), ("dangling.csv", "later.csv")];
    fs::write(dir.at("target.csv"), "older").unwrap();
    for (link, target) in links {
        std::os::unix::fs::symlink(target, dir.at(link)).unwrap();
        // A table that is not there empties nothing.
        dir.run(&["export", "x", "--table", "sweep", "--csv", link]).ends(1);
        dir.run(&["export", "x", "--csv", link]).ends(0);
        assert!(
            fs::symlink_metadata(dir.at(link)).unwrap().is_symlink(),
            "{link} is no link any more"
        );
        assert_eq!(fs::read_to_string(dir.at(target)).unwrap(), csv, "{link}");
    }
    fs::write(dir.at("target.csv"), "older").unwrap();
    dir.run(&["export", "x", "--table", "sweep", "--csv", "link.csv"]).ends(1);
    assert_eq!(fs::read_to_string(dir.at("target.csv")).unwrap(), "older");

    assert!(Command::new("mkfifo").arg(dir.at("fifo")).status().unwrap().success());
    let mut child = dir.command(&["export", "x", "--csv", "fifo"]).spawn().unwrap();
    let mut text = String::new();
    fs::File::open(dir.at("fifo")).unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(text, csv);
    use std::os::unix::fs::FileTypeExt;
    assert!(fs::metadata(dir.at("fifo")).unwrap().file_type().is_fifo());
    assert_eq!(dir.run(&["export", "x", "--csv", "/dev/stdout"]).ends(0).out, csv);
    dir.run(&["export", "x", "--csv", "/dev/null"]).ends(0);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    // A plain file is replaced at once, and nothing is left beside it.
    fs::write(dir.at("plain.csv"), "older").unwrap();
    dir.run(&["export", "x", "--csv", "plain.csv"]).ends(0);
    assert_eq!(fs::read_to_string(dir.at("plain.csv")).unwrap(), csv);
    let all = names(dir.path());
    assert_eq!(all.iter().filter(|name| name.contains("plain")).count(), 1, "{all:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn lost_output_is_a_failure_and_a_closed_pipe_is_not() {
    let dir = Dir::small("stdout");
    dir.run(&["run", "small.toml", "--out", "x", "-q"]).ends(0);
    let commands: [&[&str]; 7] = [
        &["run", "small.toml", "--json"],
        &["compare", "small.toml", "--json"],
        &["sweep", "small.toml", "--seeds", "1..2", "--json"],
        &["check", "small.toml"],
        &["list"],
        &["schema"],
        &["export", "x"],
    ];
    for words in commands {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = dir.command(words).stdout(full).output().unwrap();
        let ran = Ran::from(output).ends(1);
        assert!(
            ran.err.contains("stdout") && ran.err.contains("No space left"),
            "{words:?}: {}",
            ran.err
        );
        let mut child = dir.command(words).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = Ran::from(child.wait_with_output().unwrap()).ends(0);
        assert!(!ran.err.contains("error"), "{words:?}: {}", ran.err);
    }
    assert!(dir.at("out/small/summary.json").exists(), "what was run is kept");
}

#[test]
fn the_revision_is_in_the_manifest_alone() {
    let dir = Dir::small("revision");
    let version = dir.run(&["--version"]).ends(0).out;
    let (_, rest) = version.split_once("(revision ").unwrap_or_else(|| panic!("{version}"));
    let revision = rest.trim_end().trim_end_matches(')').to_string();
    let is_commit = |text: &str| text.len() >= 12 && text.chars().all(|c| c.is_ascii_hexdigit());
    let (plain, dirty) = revision.split_once("-dirty-").unwrap_or((&revision, "0123456789ab"));
    assert!(plain == "unknown" || is_commit(plain) && is_commit(dirty), "{version}");
    dir.run(&["compare", "small.toml", "--out", "c", "-q"]).ends(0);
    dir.run(&["sweep", "small.toml", "--seeds", "1..2", "--keep", "all", "--out", "s", "-q"])
        .ends(0);
    for out in ["c", "s"] {
        let manifests = find(&dir.at(out), "manifest.json");
        assert_eq!(manifests.len(), 3);
        for path in manifests {
            let manifest = json(&fs::read(&path).unwrap());
            assert_eq!(manifest["revision"], revision.as_str(), "{}", path.display());
        }
        let others = ["summary.json", "compare.json", "sweep.json", "report.html"];
        for path in others.iter().flat_map(|name| find(&dir.at(out), name)) {
            let text = fs::read_to_string(&path).unwrap();
            assert!(
                plain == "unknown" || !text.contains(plain),
                "{} tells of the revision",
                path.display()
            );
        }
    }
}

/// The rows of a CSV after its head, each as its fields.
fn rows(csv: &str) -> Vec<Vec<&str>> {
    csv.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

#[test]
fn flows_and_queries_of_all_runs_are_pooled() {
    let dir = Dir::small("pooled");
    let export = |out: &str, table: &str| dir.run(&["export", out, "--table", table]).ends(0).out;
    dir.run(&["compare", "small.toml", "--seeds", "1..2", "--out", "c", "-q"]).ends(0);
    for table in ["flows", "queries"] {
        let pooled = export("c", table);
        let mut expected = Vec::new();
        for variant in ["ecmp", "cubic"] {
            for seed in ["1", "2"] {
                let own = export(&format!("c/{variant}/seed-{seed}"), table);
                let first = format!("variant,seed,{}", own.lines().next().unwrap());
                assert_eq!(pooled.lines().next(), Some(first.as_str()));
                expected.extend(own.lines().skip(1).map(|row| format!("{variant},{seed},{row}")));
            }
        }
        assert!(
            expected.len() > 10 && pooled.lines().skip(1).eq(expected.iter().map(String::as_str)),
            "{table}"
        );
    }
    // The same bytes on any number of threads.
    dir.run(&["compare", "small.toml", "--seeds", "1..2", "--out", "d", "-q", "--threads=1"])
        .ends(0);
    for name in ["flows.parquet", "queries.parquet", "sizes.parquet"] {
        assert!(
            fs::read(dir.at("c").join(name)).unwrap() == fs::read(dir.at("d").join(name)).unwrap(),
            "{name}"
        );
    }
    assert!(
        dir.run(&["export", "c"]).ends(0).out.starts_with("variant,statistic,"),
        "the default stays"
    );

    // A sweep pools what its runs have kept, behind the grid's keys.
    let sweep =
        ["sweep", "small.toml", "--grid", "traffic.queries.degree=4,8", "--seeds", "1..2", "-q"];
    dir.run(&[&sweep[..], &["--out", "s", "--keep=all", "--threads=1"]].concat()).ends(0);
    let pooled = export("s", "flows");
    assert!(
        pooled.starts_with("variant,traffic.queries.degree,seed,flow,class,"),
        "{}",
        &pooled[..80]
    );
    let all = rows(&pooled);
    let own = rows(&export("s/runs/traffic.queries.degree=8/seed-2", "flows")).len();
    assert_eq!(all.iter().filter(|row| row[..3] == ["base", "8", "2"]).count(), own);
    dir.run(&[&sweep[..], &["--out", "v", "--keep=queries", "--variants"]].concat()).ends(0);
    assert!(export("v", "queries").starts_with("variant,traffic.queries.degree,seed,query,"));
    assert!(!dir.at("v/flows.parquet").exists());
    // Of runs that have kept less there is none, and it is said.
    dir.run(&[&sweep[..], &["--out", "t"]].concat()).ends(0);
    assert!(!dir.at("t/queries.parquet").exists());
    let later =
        dir.run(&[&sweep[..sweep.len() - 1], &["--out", "t", "--keep=all"]].concat()).ends(0);
    assert!(later.err.contains("no pooled flows.parquet"), "{}", later.err);
}
