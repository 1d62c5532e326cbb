//! `millpond reproduce` as a user meets it: its output before anything is run. A tiny paper beside
//! the code tests that papers are run, decided and gone on with.

use crate::common::{self, Dir};
use millpond_claims::{Kinds, Ledger, Paper, all_claims, papers};
use std::fs;

/// How many claims of each kind are measured in an experiment; of all without one.
fn kinds(paper: &'static Paper, experiment: Option<&str>) -> Kinds {
    match experiment {
        None => Kinds::of(all_claims(paper).map(|(_, kind)| kind)),
        Some(of) => Kinds::of(
            paper.claims.iter().filter(|claim| claim.experiment() == of).map(|claim| claim.kind),
        ),
    }
}

fn named(paper: &str) -> &'static Paper {
    papers().iter().find(|built| built.name == paper).unwrap()
}

/// As JSON has them.
fn json(kinds: Kinds) -> serde_json::Value {
    kinds.iter().map(|(kind, n)| (kind.name().to_string(), serde_json::Value::from(n))).collect()
}

#[test]
fn what_there_is_is_listed() {
    let dir = Dir::small("list");
    let ran = dir.run(&["reproduce"]).ends(0);
    let listed: serde_json::Value =
        serde_json::from_str(&dir.run(&["reproduce", "--json"]).ends(0).out).unwrap();
    for paper in papers() {
        let of =
            listed.as_array().unwrap().iter().find(|listed| listed["paper"] == paper.name).unwrap();
        let of_kinds = kinds(paper, None);
        assert_eq!(of["kinds"], json(of_kinds));
        let n = |key: &str| of[key].as_array().unwrap().len();
        assert_eq!(of_kinds.all(), n("claims"), "{}: a claim has one kind", paper.name);
        assert!(
            ran.out.contains(&format!("{}: {} claims", paper.title, of_kinds.all())),
            "{}",
            ran.out
        );
        assert!(ran.out.contains(&format!("claims: {of_kinds}\n")), "{}", ran.out);
        // The pages that are named below a paper's table.
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for page in
            [format!("docs/reproduce-{}.md", paper.name), format!("papers/{}/page.md", paper.name)]
        {
            assert!(root.join(&page).is_file(), "{page}");
        }
    }
    let canary =
        listed.as_array().unwrap().iter().find(|paper| paper["paper"] == "canary").unwrap();
    assert!(canary["claims"].as_array().unwrap().contains(&"canary-S1a".into()), "{canary}");
}

/// A paper of somebody else's, in a folder, whose one link to a host fails for good.
#[test]
fn runs_that_stall_decide_no_claim_and_end_with_3() {
    let dir = Dir::small("stalls");
    dir.write(
        "net.toml",
        r#"duration = "1s"
until = "flows-complete"
topology = { kind = "single-switch", hosts = 4 }
traffic = [{ name = "web", kind = "poisson", sizes = "10KB", load = 0.3, stop = "1ms" }]
failure = [{ link = ["host3", "switch0"], at = "100us" }]
variant = [{ name = "plain" }, { name = "cubic", set = { "transport.kind" = "cubic" } }]
"#,
    );
    dir.write(
        "paper.toml",
        r#"name = "mine"
title = "A cut network"
year = 2026
[baselines]
off = [["cubic", "plain"]]
[[experiment]]
name = "cut"
title = "a host is cut off"
scenario = "net.toml"
schemes = [["plain", "DCTCP"], ["cubic", "CUBIC"]]
load-axis = "load"
full = { loads = [[30, ""]], seeds = [1, 2] }
quick = { seeds = [1, 1] }
[[claim]]
id = "A1"
source = "page 1"
statement = "CUBIC is no faster"
kind = "ours"
at-least = -50
measure = { kind = "change", experiment = "cut", load = 30, of = "cubic", than = "plain",
            statistic = { flows = ["web", "mean"] } }
"#,
    );
    let folder = dir.path().display().to_string();
    let out = dir.at("out").display().to_string();
    let ran = dir.run(&["reproduce", &folder, "--quick", "--out", &out]).ends(3);
    assert!(ran.err.contains("2 of 2 runs stalled, so they decide no claim"), "{}", ran.err);
    assert!(
        ran.out.contains("not-evaluated") && ran.out.contains("stalled with seed 1"),
        "{}",
        ran.out
    );
}

#[test]
fn a_quick_run_replaces_no_page_of_a_full_one() {
    let dir = Dir::small("pages");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/tlt");
    let ran = dir.run(&["reproduce", "tlt", "--quick", "--page", folder]).ends(2);
    assert!(
        ran.err.contains("has the results of a full run; --force replaces them"),
        "{}",
        ran.err
    );
}

/// Each time three other runs of a paper whose runs are short.
#[test]
fn runs_of_a_ledger_are_the_same_when_they_are_made_again() {
    let dir = Dir::small("ledger");
    let ran = dir.run(&["reproduce", "backdraft", "--check", "3", "--json", "--out", "x"]).ends(0);
    let runs: Vec<serde_json::Value> = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(runs.len(), 3);
    assert!(runs.iter().all(|run| run["same"] == true), "{runs:?}");
}

#[test]
fn ledgers_are_small_and_of_this_version_of_results() {
    let mut all = 0;
    for paper in papers() {
        let ledger = Ledger::of(paper).unwrap();
        assert_eq!(ledger.stale, 0, "{}: runs of another version of results", paper.name);
        let bytes = ledger.text(paper).len();
        assert!(bytes <= 1_000_000, "{}: {bytes} bytes", paper.name);
        all += bytes;
    }
    assert!(all <= 6_000_000, "{all} bytes");
}

#[test]
fn the_gallery_of_recorded_claims_is_written_without_a_run() {
    let dir = Dir::small("gallery");
    let ran = dir.run(&["reproduce", "all", "--page", "gallery", "--recorded"]).ends(0);
    assert!(ran.out.contains("gallery: gallery/gallery.html"), "{}", ran.out);
    let page = fs::read_to_string(dir.at("gallery/gallery.html")).unwrap();
    for paper in ["presto", "tlt", "canary", "nrm", "backdraft", "hpcc"] {
        assert!(page.contains(&format!("<section id=\"paper-{paper}\">")), "{paper}");
    }
    assert!(!dir.at("out").exists(), "a run was made");
    // The page is the same each time, and of one paper has that one alone.
    dir.run(&["reproduce", "all", "--page", "again", "--recorded", "--quiet"]).ends(0);
    assert_eq!(fs::read_to_string(dir.at("again/gallery.html")).unwrap(), page);
    dir.run(&["reproduce", "hpcc", "--page", "one", "--recorded"]).ends(0);
    let one = fs::read_to_string(dir.at("one/gallery.html")).unwrap();
    assert!(one.contains("id=\"paper-hpcc\"") && !one.contains("id=\"paper-tlt\""));
    let ran = dir.run(&["reproduce", "all", "--recorded"]).ends(2);
    assert!(ran.err.contains("--page <DIR>"), "{}", ran.err);
    let ran = dir.run(&["reproduce", "all", "--recorded", "--page", "x", "--quick"]).ends(2);
    assert!(ran.err.contains("cannot be used with"), "{}", ran.err);
    let ran = dir.run(&["reproduce", "--page", "x"]).ends(2);
    assert!(ran.err.contains("reproduce --page: of which paper?"), "{}", ran.err);
}

#[test]
fn a_wrong_name_is_told_with_the_nearest() {
    let dir = Dir::small("names");
    let ran = dir.run(&["reproduce", "canray"]).ends(2);
    assert!(ran.err.contains("Is it canary?"), "{}", ran.err);
    let ran = dir.run(&["reproduce", "canary", "--only", "S1x"]).ends(2);
    assert!(
        ran.err.contains("no such experiment or claim") && ran.err.contains("S1a"),
        "{}",
        ran.err
    );
    dir.run(&["reproduce", "canary", "--seeds", "3..1"]).ends(2);
    let ran = dir.run(&["reproduce", "canary", "--only", "one-gog"]).ends(2);
    assert!(ran.err.contains("did you mean `one-gig`?"), "{}", ran.err);
    for (words, says) in [
        (["canary", "--threads", "0"], "at least one thread"),
        (["canary", "--threads", "-1"], "a whole number of threads from 1"),
        (["canary", "--seeds", "0"], "0..0 for seed 0 alone"),
        (["canary", "--seeds", "-1"], "write how many"),
        (["canary", "--only", ""], "--only : canary has no such experiment"),
    ] {
        let ran = dir.run(&[&["reproduce"], &words[..]].concat()).ends(2);
        assert!(ran.err.contains(says), "{words:?}: {}", ran.err);
    }
    for option in ["--quick", "--dry-run", "--only=S1", "--seeds=1..2", "--out=x"] {
        let ran = dir.run(&["reproduce", option]).ends(2);
        assert!(
            ran.err.contains(
                "of which paper? There is: presto, nrm, hpcc, tlt, backdraft, canary, simai, ai, \
                 combinations, all"
            ),
            "{option}: {}",
            ran.err
        );
    }
    assert!(!dir.at("out").exists());
}

#[test]
fn a_dry_run_estimates_and_touches_nothing() {
    let dir = Dir::small("dry");
    let ran = dir
        .run(&[
            "reproduce",
            "canary",
            "--quick",
            "--only",
            "one-gig",
            "--seeds",
            "1..4",
            "--dry-run",
        ])
        .ends(0);
    assert!(
        ran.out.contains("6 schemes × 3 loads × 4 seeds = 72 runs, 72 to do: about"),
        "{}",
        ran.out
    );
    let of_one = kinds(named("canary"), Some("one-gig"));
    let first = format!("canary: {} claims ({of_one}), 1 experiment, 72 runs\n", of_one.all());
    assert!(ran.out.starts_with(&first), "{}", ran.out);
    let few = dir
        .run(&["reproduce", "canary", "--only", "one-gig", "--seeds", "1..4", "--dry-run"])
        .ends(0)
        .out;
    assert!(
        few.contains(
            "4 seeds of the 5 that experiment one-gig needs: its claims would not be decided"
        ),
        "{few}"
    );
    let told =
        dir.run(&["reproduce", "canary", "--only", "one-gig", "--dry-run", "--json"]).ends(0).out;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["papers"][0]["kinds"], json(of_one));
    assert_eq!(
        (&told["experiments"][0]["runs"], &told["experiments"][0]["left"]),
        (&150.into(), &150.into())
    );
    assert!(!dir.at("out").exists());
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let dir = Dir::small("foreign");
    std::fs::create_dir(dir.at("mine")).unwrap();
    std::fs::write(dir.at("mine/thesis.tex"), "").unwrap();
    let ran = dir.run(&["reproduce", "canary", "--quick", "--out", "mine"]).ends(1);
    assert!(ran.err.contains("is no millpond result"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(dir.at("mine")).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn interrupted_it_says_how_to_go_on_and_reports_on_what_there_is() {
    use std::time::{Duration, Instant};
    let dir = Dir::small("interrupted");
    let args = ["reproduce", "canary", "--only", "headline", "--threads", "1", "--json"];
    let mut child = dir.command(&args).spawn().unwrap();
    let running = dir.at("out/reproduce-canary/headline/.running/1");
    let deadline = Instant::now() + Duration::from_secs(120);
    while !running.exists() {
        assert!(
            Instant::now() < deadline && child.try_wait().unwrap().is_none(),
            "it has not begun a run"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let stopped = common::Ran::from(child.wait_with_output().unwrap()).ends(130);
    assert!(
        stopped.err.contains("headline: 0 of 5 runs are finished; the same command goes on"),
        "{}",
        stopped.err
    );
    assert!(
        stopped.out.is_empty() && stopped.err.contains("report of what there is"),
        "{}",
        stopped.err
    );
    let out = dir.at("out/reproduce-canary");
    let claims: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("claims.json")).unwrap()).unwrap();
    assert!(
        claims.as_array().unwrap().iter().all(|claim| claim["status"] == "not-evaluated"),
        "{claims}"
    );
    let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"status\": \"interrupted\""), "{manifest}");
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("interrupted"));
}
