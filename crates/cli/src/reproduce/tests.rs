//! A paper of two tiny experiments from the command's arguments to its files.

use super::*;
use crate::args::{Seeds, Threads};
use millpond_claims::{
    Baselines, Claim, Counts, Experiment, LEDGER, Measure, Published, QuickFile, Repeated, Runs,
    Settings,
};
use millpond_results::{
    Claim as Judged, ClaimKind, Keep, Reproduction, Status, Summary, Sweep, Verdict,
};
use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;
use std::time::SystemTime;

const TEXT: &str = r#"
name = "tiny"
duration = "2ms"
[topology]
kind = "single-switch"
hosts = 12
[switch]
buffer = { kind = "per-port", size = "100KB" }
[transport]
kind = "dctcp"
min-rto = "200us"
[[traffic]]
kind = "incast"
degree = 8
response = "40KB"
rate = 2000
receiver = "random"
[[variant]]
name = "small"
[[variant]]
name = "large"
set = { "switch.buffer.size" = "1MB" }
"#;

fn texts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
}

fn buffers() -> Experiment {
    let loads = vec![(50.0, "2000".to_string()), (90.0, "4000".to_string())];
    Experiment {
        name: "buffers".into(),
        title: "a test".into(),
        scenario: "tiny.toml".into(),
        text: TEXT.into(),
        schemes: texts(&[("small", "Small"), ("large", "Large")]),
        load_axis: "load".into(),
        load_key: Some("traffic.incast.rate".into()),
        full: Runs { loads, seeds: (1, 2), ..Runs::default() },
        quick: Ok(QuickFile {
            loads: Some(vec![(90.0, "4000".into())]),
            seeds: (1, 1),
            set: Some(Settings(texts(&[("duration", "1ms")]))),
            note: "half".into(),
        }),
        world: WorldKind::Sim,
        keep: Keep::Queries,
        shows: Vec::new(),
        published: vec![Published {
            variant: "small".into(),
            source: "s".into(),
            loads: vec![50.0],
            mean_s: vec![1e-3],
            p99_s: vec![2e-3],
        }],
    }
}

fn alone() -> Experiment {
    let (name, quick) = ("alone".into(), Err("no time".into()));
    Experiment { name, quick, published: Vec::new(), ..buffers() }
}

fn drops(id: &str, experiment: &str, accept: [Option<f64>; 2]) -> Claim {
    Claim {
        id: id.into(),
        source: "test".into(),
        statement: "less".into(),
        kind: ClaimKind::Published,
        paper: Some(-50.0),
        at_least: accept[0],
        at_most: accept[1],
        measure: Measure {
            experiment: experiment.into(),
            load: Some(90.0),
            of: "large".into(),
            than: "small".into(),
            ..Measure::default()
        },
        ..Claim::default()
    }
}

fn paper_of(first: Experiment) -> Paper {
    let fitted = drops("S1a", "buffers", [None, Some(0.0)]);
    let (kind, how) = (ClaimKind::Fitted, Some("a size".to_string()));
    Paper {
        year: 2026,
        name: "test".into(),
        title: "A test".into(),
        experiments: vec![first, alone()],
        claims: vec![
            Claim { kind, how, ..fitted },
            drops("S1b", "buffers", [Some(0.0), None]),
            drops("S2", "alone", [None, Some(0.0)]),
        ],
        baselines: Baselines { off: texts(&[("large", "small")]), ..Baselines::default() },
        ..Paper::default()
    }
}

static PAPER: LazyLock<Arc<Paper>> = LazyLock::new(|| Arc::new(paper_of(buffers())));
static CHANGED: LazyLock<Arc<Paper>> = LazyLock::new(|| {
    let buffers = buffers();
    let set = Settings(texts(&[("host.mtu", "9000")]));
    let full = Runs { set, ..buffers.full.clone() };
    Arc::new(paper_of(Experiment { full, ..buffers }))
});

/// A folder of a test's own, removed with it.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir =
            std::env::temp_dir().join(format!("millpond-reproduce-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn quiet() -> ReproduceArgs {
    ReproduceArgs { quiet: true, threads: Threads { given: Some(1) }, ..ReproduceArgs::default() }
}

fn only(words: &[&str]) -> ReproduceArgs {
    ReproduceArgs { only: words.iter().map(|word| word.to_string()).collect(), ..quiet() }
}

fn run_job(args: &ReproduceArgs, job: &Reproducing) -> Result<Ended, millpond::Error> {
    reproduce_paper(job, &options(args, &Terminal::new(args.quiet, "")))
}

fn run_paper(paper: &Arc<Paper>, args: &ReproduceArgs, out: &Path) -> Result<Ended, Failure> {
    Ok(run_job(args, &job(args, paper, out.to_path_buf())?)?)
}

/// When each finished run was written.
fn written(dir: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(written(&path));
        } else if path.ends_with("summary.json") {
            found.insert(path, entry.metadata().unwrap().modified().unwrap());
        }
    }
    found
}

fn statuses(claims: &[Judged]) -> Vec<(&str, &str)> {
    claims.iter().map(|claim| (claim.id.as_str(), claim.status.name())).collect()
}

#[test]
fn a_paper_is_run_decided_and_written() {
    let dir = Dir::new("whole");
    let out = dir.0.join("x");
    let ended = run_paper(&PAPER, &quiet(), &out).unwrap();
    assert_eq!(
        statuses(&ended.claims),
        [("test-S1a", "holds"), ("test-S1b", "fails"), ("test-S2", "holds")]
    );
    assert_eq!((ended.failed, ended.runs, written(&out).len()), (0, 16, 16));
    let mut total = Total::default();
    total.add(ended);
    total.result(false).unwrap();
    let strict = total.result(true).unwrap_err();
    assert_eq!(strict.to_string(), "--strict: 1 claim fails: test-S1b");
    assert!(matches!(strict, Failure::Runs(_)));

    let json: Vec<Judged> =
        serde_json::from_slice(&fs::read(out.join("claims.json")).unwrap()).unwrap();
    assert_eq!(json, total.claims);
    assert_eq!(fs::read_to_string(out.join("scenarios/buffers.toml")).unwrap(), TEXT);
    let of = Reproduction::read(&out).unwrap();
    assert_eq!((of.paper.as_str(), of.effort.as_str()), ("test", "full"));
    let point = &of.experiments[0].schemes[0].points[1];
    assert_eq!((point.load, point.runs, point.planned), (90.0, 2, 2));
    assert!(!point.distribution.is_empty() && point.mean_us.mean.is_some());
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("✓ holds") && page.contains("✗ fails") && page.contains("Small, published")
    );
    let counts = [
        "published 2: 1 hold, 1 fail, 0 not evaluated",
        "fitted 1: 1 hold, 0 fail, 0 not evaluated",
    ];
    assert!(page.contains(&counts.map(|of| format!("<li>{of}</li>")).concat()), "{page}");
    let table = reproduction_table(&of, |_| true);
    assert!(
        table.contains(&counts.join("\n")) && table.contains("· fitted · buffers: Large, Small"),
        "{table}"
    );
    // An experiment's folder is that of a sweep; the page can be made again.
    assert_eq!(Sweep::read(&out.join("buffers")).unwrap().status, Status::Complete);
    fs::remove_file(out.join("report.html")).unwrap();
    millpond_results::write_report(&out).unwrap();
    assert_eq!(fs::read_to_string(out.join("report.html")).unwrap(), page);
}

#[test]
fn runs_are_never_made_again_and_seeds_are_added() {
    let dir = Dir::new("resume");
    let out = dir.0.join("x");
    let of_one = only(&["buffers"]);
    run_paper(&PAPER, &of_one, &out).unwrap();
    let first = written(&out);
    assert_eq!(first.len(), 8);
    // A run is gone, as if it had not been made.
    let gone = out.join("buffers/runs/variant=small,traffic.incast.rate=4000/seed-2");
    fs::remove_dir_all(&gone).unwrap();
    let ended = run_paper(&PAPER, &only(&["S2"]), &out).unwrap();
    assert_eq!(statuses(&ended.claims), [("test-S2", "holds")]);
    assert!(!gone.exists(), "only what is asked for is run");
    let claims = Reproduction::read(&out).unwrap().claims;
    assert_eq!(claims[0].status, Verdict::NotEvaluated);
    assert!(
        claims[0].note.contains("small at 90 % has no complete run of seed 2"),
        "{}",
        claims[0].note
    );

    let kept = written(&out);
    run_paper(&PAPER, &of_one, &out).unwrap();
    let again = written(&out);
    assert_eq!(again.len(), 16);
    assert!(kept.iter().all(|(path, at)| again.get(path) == Some(at)));

    let more = ReproduceArgs { seeds: Seeds { range: Some((3, 3)) }, ..only(&["buffers"]) };
    run_paper(&PAPER, &more, &out).unwrap();
    let grown = written(&out);
    assert_eq!(grown.len(), 20);
    assert!(again.iter().all(|(path, at)| grown.get(path) == Some(at)));
    let sweep = Sweep::read(&out.join("buffers")).unwrap();
    assert_eq!((sweep.seeds, sweep.points[0].runs.len()), (vec![1, 2, 3], 3));
    let ended = run_paper(&PAPER, &only(&["S1"]), &out).unwrap();
    assert!(ended.claims[0].note.starts_with("3 seeds"), "{}", ended.claims[0].note);
    assert_eq!(written(&out), grown);
}

/// Of an experiment that is asked for, a damaged run is run again; of another, it does not count.
#[test]
fn a_damaged_run_is_run_again() {
    let dir = Dir::new("damaged");
    let out = dir.0.join("x");
    run_paper(&PAPER, &only(&["buffers"]), &out).unwrap();
    let before = Reproduction::read(&out).unwrap().claims;
    let run = out.join("buffers/runs/variant=small,traffic.incast.rate=4000/seed-2");
    for name in ["summary.json", "manifest.json", "queries.parquet"] {
        let good = fs::read(run.join(name)).unwrap_or_default();
        let mut bent = good.clone();
        let Some(byte) = bent.get_mut(good.len() / 2) else { continue };
        *byte ^= 4;
        fs::write(run.join(name), bent).unwrap();
        run_paper(&PAPER, &only(&["S2"]), &out).unwrap();
        let claims = Reproduction::read(&out).unwrap().claims;
        assert_eq!(claims[0].status, Verdict::NotEvaluated, "{name}");
        run_paper(&PAPER, &only(&["buffers"]), &out).unwrap();
        let after = Reproduction::read(&out).unwrap().claims;
        assert_eq!(statuses(&after[..2]), statuses(&before[..2]), "{name}");
        assert_eq!(after[0].measured, before[0].measured, "{name}");
        if name != "manifest.json" {
            assert!(fs::read(run.join(name)).unwrap().len().abs_diff(good.len()) < 64, "{name}");
        }
    }
    // A damaged report of the runs is refused by name, and made anew by force.
    let path = out.join("reproduce.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("test", "tesu", 1)).unwrap();
    let refused = run_paper(&PAPER, &only(&["buffers"]), &out).unwrap_err().to_string();
    assert!(refused.contains("reproduce.json: is damaged"), "{refused}");
    run_paper(&PAPER, &ReproduceArgs { force: true, ..only(&["buffers"]) }, &out).unwrap();
}

#[test]
fn seeds_that_only_some_schemes_have_do_not_count() {
    let dir = Dir::new("uneven");
    let out = dir.0.join("x");
    run_paper(
        &PAPER,
        &ReproduceArgs { seeds: Seeds { range: Some((1, 3)) }, ..only(&["buffers"]) },
        &out,
    )
    .unwrap();
    fs::remove_dir_all(out.join("buffers/runs/variant=small,traffic.incast.rate=4000/seed-3"))
        .unwrap();
    let ended = run_paper(&PAPER, &only(&["buffers"]), &out).unwrap();
    assert_eq!(written(&out).len(), 11);
    assert!(ended.claims[0].note.starts_with("2 seeds"), "{}", ended.claims[0].note);
    assert_eq!(ended.claims[0].status, Verdict::Holds);
}

/// The numbers are shown, and decide nothing.
#[test]
fn fewer_seeds_than_an_experiment_has_decide_nothing() {
    let dir = Dir::new("few");
    let out = dir.0.join("x");
    let one = ReproduceArgs { seeds: Seeds { range: Some((2, 2)) }, ..only(&["buffers"]) };
    let ended = run_paper(&PAPER, &one, &out).unwrap();
    assert_eq!(
        statuses(&ended.claims),
        [("test-S1a", "not-evaluated"), ("test-S1b", "not-evaluated")]
    );
    let note = &ended.claims[0].note;
    assert!(note.starts_with("1 seed of the 2 that experiment buffers needs"), "{note}");
    assert!(
        Reproduction::read(&out).unwrap().experiments[0].schemes[0].points[1]
            .mean_us
            .mean
            .is_some()
    );
    let quick = ReproduceArgs { quick: true, ..one };
    let ended = run_paper(&PAPER, &quick, &dir.0.join("quick")).unwrap();
    assert_eq!(ended.claims[0].status, Verdict::Holds, "--quick has one seed of its own");
}

#[test]
fn what_would_be_lost_is_refused() {
    let dir = Dir::new("refused");
    let out = dir.0.join("x");
    run_paper(&PAPER, &only(&["buffers"]), &out).unwrap();
    let before = written(&out);
    let refused = run_paper(&CHANGED, &only(&["buffers"]), &out).unwrap_err();
    assert!(refused.to_string().contains("holds 8 finished runs of another version"), "{refused}");
    let quick = ReproduceArgs { quick: true, ..quiet() };
    let refused = run_paper(&PAPER, &quick, &out).unwrap_err();
    assert!(
        refused.to_string().contains("holds test (full)") && matches!(refused, Failure::Usage(_)),
        "{refused}"
    );
    assert_eq!(written(&out), before);
    let forced =
        run_paper(&CHANGED, &ReproduceArgs { force: true, ..only(&["buffers"]) }, &out).unwrap();
    assert_eq!(forced.runs, 8);
    assert!(written(&out).iter().all(|(path, at)| before.get(path) != Some(at)));

    let mine = dir.0.join("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("thesis.tex"), "").unwrap();
    let refused = run_paper(&PAPER, &quiet(), &mine).unwrap_err();
    assert!(refused.to_string().contains("is no millpond result"), "{refused}");
    assert_eq!(fs::read_dir(&mine).unwrap().count(), 1);
}

#[test]
fn quick_leaves_out_what_it_cannot_decide() {
    let dir = Dir::new("quick");
    let out = dir.0.join("x");
    let ended = run_paper(&PAPER, &ReproduceArgs { quick: true, ..quiet() }, &out).unwrap();
    assert_eq!(ended.runs, 2);
    assert_eq!(ended.claims[2].status, Verdict::NotEvaluated);
    assert!(
        ended.claims[2].note.contains("--quick does not decide this: no time"),
        "{}",
        ended.claims[2].note
    );
    let summary =
        Summary::read(&out.join("buffers/runs/variant=small,traffic.incast.rate=4000/seed-1"))
            .unwrap();
    assert_eq!(summary.run.simulated_s, 1e-3);
    assert_eq!(
        Reproduction::read(&out).unwrap().experiments[1].note,
        "left out by --quick: no time"
    );
}

#[test]
fn only_takes_experiments_claims_and_groups() {
    let chosen = |words: &[&str]| Chosen::of(&PAPER, &only(words).only);
    let names = |words: &[&str]| chosen(words).unwrap().claims;
    assert_eq!(names(&[]), ["S1a", "S1b", "S2"]);
    assert_eq!(names(&["S1"]), ["S1a", "S1b"]);
    assert_eq!(names(&["test-S1b"]), ["S1b"]);
    assert_eq!(names(&["s2"]), ["S2"]);
    assert_eq!(names(&["alone"]), ["S2"]);
    assert_eq!(chosen(&["S2"]).unwrap().experiments, ["alone"]);
    for wrong in ["S3", "", "S", "test-"] {
        let error = chosen(&[wrong]).unwrap_err();
        assert!(error.to_string().contains("there are: buffers, alone, S1a"), "{wrong}: {error}");
    }
}

#[test]
fn what_is_announced_is_what_is_told_at_the_end() {
    let dir = Dir::new("counts");
    let all = [
        ("all", quiet()),
        ("one", only(&["S1", "S1a"])),
        ("quick", ReproduceArgs { quick: true, ..quiet() }),
    ];
    for (name, args) in all {
        let job = job(&args, &PAPER, dir.0.join(name)).unwrap();
        let counts = || job.counts(&job.prepare(false).unwrap());
        let before = counts();
        let ended = run_job(&args, &job).unwrap();
        assert_eq!(
            (before.claims.all(), before.runs, before.finished),
            (ended.claims.len(), ended.runs, 0),
            "{name}"
        );
        assert_eq!(counts(), Counts { finished: ended.runs, ..before }, "{name}");
    }
}

/// Claims by the ledger are those by the runs, nothing is run twice, and a repeated run has its
/// digest.
#[test]
fn a_ledger_decides_as_its_runs_do() {
    let dir = Dir::new("ledger");
    let folder = dir.0.join("paper");
    fs::create_dir(&folder).unwrap();
    let paper = Arc::new(Paper { folder: Some(folder.clone()), ..paper_of(buffers()) });
    let record = ReproduceArgs { record: Some(None), ..quiet() };
    let made = run_paper(&paper, &record, &dir.0.join("a")).unwrap();
    let path = folder.join(LEDGER);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!((text.lines().count(), made.runs), (16, 16));

    let decide = ReproduceArgs { from_ledger: true, ..quiet() };
    let decided = run_paper(&paper, &decide, &dir.0.join("b")).unwrap();
    assert_eq!((&decided.claims, decided.runs), (&made.claims, 16));
    assert!(!dir.0.join("b").exists(), "nothing is written");
    let again = run_paper(&paper, &record, &dir.0.join("c")).unwrap();
    assert_eq!((&again.claims, again.runs), (&made.claims, 0));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    // Half of it, and lines of other results: what is missing is run, and the text is the same.
    let lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
    let stale = lines[0].replace("\"results\":1,", "\"results\":0,");
    fs::write(&path, stale + &lines[8..].concat()).unwrap();
    let undecided = run_paper(&paper, &decide, &dir.0.join("d")).unwrap();
    assert!(undecided.claims.iter().any(|claim| claim.status == Verdict::NotEvaluated));
    let grown = run_paper(&paper, &record, &dir.0.join("e")).unwrap();
    assert_eq!((&grown.claims, grown.runs), (&made.claims, 8));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    let check = |name: &str| {
        let args = ReproduceArgs { check: Some(3), ..quiet() };
        let job = job(&args, &paper, dir.0.join(name)).unwrap();
        check_ledger(&job, 3, 7, &options(&args, &Terminal::new(true, ""))).unwrap()
    };
    let same = check("f");
    assert!(same.len() == 3 && same.iter().all(Repeated::is_same), "{same:?}");
    fs::write(&path, text.replace("\"digest\":\"", "\"digest\":\"x")).unwrap();
    let other = check("g");
    assert!(other.iter().all(|run| run.found.is_ok() && !run.is_same()), "{other:?}");
    fs::write(&path, lines[0].clone() + "{}\n").unwrap();
    let error = run_paper(&paper, &decide, &dir.0.join("h")).unwrap_err().to_string();
    assert!(error.contains("runs.jsonl:2: missing field"), "{error}");
}
