//! `millpond_core::RESULTS` changes when a result does, and only then.
//!
//! `tests/results.txt` has the number and, for each short run, the digest of what happened: every
//! variant of the shipped scenarios, the scenarios of `tests/drawn` (drawn at random once, and
//! kept), and the first milliseconds of every scheme of the papers' experiments. Where a digest
//! differs, a finished run of another revision would be taken for what this one does: the number is
//! raised, `CHANGELOG.md` says what moved (`Results 2: …`), and `MILLPOND_BLESS=1 cargo test
//! -p millpond-cli --test all results::` writes the file. A new line needs no new number.

use crate::common::{self, Dir, SHIPPED, millpond, root, succeed};
use millpond_claims::papers;
use millpond_core::RESULTS;
use millpond_results::{Summary, World};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const FILE: &str = "tests/results.txt";

/// Digests by the name of the run.
type Digests = BTreeMap<String, String>;

/// The short runs: a name, and the command without its folder.
fn runs(scenarios: &Dir) -> Vec<(String, Command)> {
    let mut runs = Vec::new();
    let mut add = |name: String, words: Vec<String>| {
        let mut command = millpond(["run"]);
        command.args(words).args(["--quiet", "--threads", "1"]);
        runs.push((name, command));
    };
    let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    for shipped in SHIPPED.iter() {
        for variant in shipped.arms() {
            let file = common::scenario(&shipped.name).display().to_string();
            let mut of = vec![file];
            of.extend(shipped.short.iter().flat_map(|set| words(&["--set", set])));
            of.extend(variant.iter().flat_map(|variant| words(&["--variant", variant])));
            add(format!("shipped {} {}", shipped.name, variant.unwrap_or("-")), of);
        }
    }
    for name in common::stems("tests/drawn", ".toml") {
        let file = root().join("tests/drawn").join(format!("{name}.toml"));
        add(format!("drawn {name}"), vec![file.display().to_string()]);
    }
    for paper in papers() {
        for experiment in paper.experiments.iter().filter(|of| of.world == World::Sim) {
            let file = format!("{}-{}.toml", paper.name, experiment.name);
            let lines = experiment.text.lines().filter(|line| !line.starts_with("until"));
            let text: String = lines.flat_map(|line| [line, "\n"]).collect();
            let file = scenarios.write(&file, &text).display().to_string();
            for variant in experiment.variants() {
                let of = words(&[&*file, "--variant", variant, "--set", "warm-up=0us"]);
                add(format!("paper {} {} {variant}", paper.name, experiment.name), of);
            }
        }
    }
    runs
}

/// Runs the first milliseconds: so many that something starts.
fn begin(command: &Command, name: &str) {
    let begins = ["1ms", "4ms", "40ms", "400ms"].iter().any(|duration| {
        let mut short = millpond(command.get_args());
        let output = short.args(["--set", &format!("duration={duration}")]).output().unwrap();
        output.status.code() != Some(2)
    });
    assert!(begins, "{name}: does not start within 400 ms");
}

/// Makes all runs, two at a time.
fn found() -> Digests {
    let dir = Dir::new("results");
    let (next, digests) = (AtomicUsize::new(0), Mutex::new(Digests::new()));
    let runs: Vec<_> = runs(&dir).into_iter().map(|run| Mutex::new(Some(run))).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (name, mut command): (String, Command) =
                        run.lock().unwrap().take().expect("a run is taken once");
                    let folder = dir.at(&name.replace(' ', "-"));
                    command.arg("--out").arg(&folder);
                    match name.starts_with("paper") {
                        true => begin(&command, &name),
                        false => drop(succeed(&mut command)),
                    }
                    let digest = Summary::read(&folder).unwrap().digest();
                    fs::remove_dir_all(&folder).unwrap();
                    digests.lock().unwrap().insert(name, digest);
                }
            });
        }
    });
    digests.into_inner().unwrap()
}

/// The number and the digests of the file.
fn recorded() -> (u32, Digests) {
    let text = fs::read_to_string(root().join(FILE)).unwrap_or_default();
    let mut lines = text.lines();
    let number = lines.next().and_then(|line| line.strip_prefix("results ")?.parse().ok());
    let digest = |line: &str| line.split_once("  ").map(|(a, b)| (b.to_string(), a.to_string()));
    (number.unwrap_or(0), lines.filter_map(digest).collect())
}

fn text(digests: &Digests) -> String {
    let lines = digests.iter().map(|(name, digest)| format!("{digest}  {name}\n"));
    format!("results {RESULTS}\n{}", lines.collect::<String>())
}

#[test]
fn a_result_that_changes_has_a_new_number() {
    let (found, (number, old)) = (found(), recorded());
    let moved: Vec<&str> = old
        .iter()
        .filter(|(name, digest)| found.get(*name).is_some_and(|new| new != *digest))
        .map(|(name, _)| name.as_str())
        .collect();
    assert!(
        moved.is_empty() || RESULTS > number,
        "{} of {} runs have other results than version {number} of results:\n{}\nA change that \
         is meant raises millpond_core::RESULTS and says in CHANGELOG.md what moved.",
        moved.len(),
        found.len(),
        moved.join("\n")
    );
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(
        RESULTS == 1 || changelog.contains(&format!("Results {RESULTS}:")),
        "CHANGELOG.md does not say what moved with results {RESULTS}"
    );
    if std::env::var_os("MILLPOND_BLESS").is_some_and(|v| v == "1") {
        fs::write(root().join(FILE), text(&found)).unwrap();
    } else {
        assert!(
            (number, &old) == (RESULTS, &found),
            "{FILE} lacks runs, or has some that are gone: MILLPOND_BLESS=1 writes it"
        );
    }
}
