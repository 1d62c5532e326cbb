//! Claims on emulated Linux (world `linux-vm`): decided by what `make bench-limit-vm` has measured,
//! in the place of the simulator's runs.
//!
//! The rig's cases are laid beside a paper's experiments by name, and what it measured is brought
//! into the form of a run's summary; so a claim is measured by the same function in both worlds.
//!
//! Invariant: a case that was not measured leaves its claims undecided, with the reason.

use crate::claim::Claim;
use crate::error::Error;
use crate::found::{Arm, Found, Run};
use crate::paper::{Case, Paper};
use millpond_results::{Latency, Limit, Summary, World};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The given results, in the results folder: the claims are decided anew from them.
const KEPT: &str = "linux-vm.json";
/// The ending of these claims' names.
pub const SUFFIX: &str = "-vm";
/// The name of all of them in `--only`.
pub const ALL: &str = "linux-vm";
/// The rig that measures it.
pub const RIG: &str = "benches/limit/vm.py";
const ABSENT: &str = "no results of the emulated Linux are there: make bench-limit-vm \
                      ARGS=\"--table t1 --json FILE\" makes them, --vm FILE gives them";
/// 1 MiB, as the rig has it.
const LARGE: u64 = 1 << 20;

/// A file of the rig.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct File {
    world: World,
    results: Vec<serde_json::Value>,
}

/// One result, as far as claims need it.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    case: Named,
    #[serde(default)]
    kernel: String,
    mbps: Option<f64>,
    srtt_us: Option<f64>,
    #[serde(default)]
    classes: Vec<Class>,
}

#[derive(Clone, Debug, Deserialize)]
struct Named {
    name: String,
    duration_s: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Class {
    size: u64,
    count: u64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    p999_ms: Option<f64>,
}

/// The measurements of the rig.
#[derive(Debug, Default)]
pub struct Emulated {
    results: Vec<Measured>,
}

impl Emulated {
    /// Takes `given` into a results folder, in the place of what was there; without any, what is
    /// there.
    pub fn open(given: &[PathBuf], out: &Path) -> Result<Emulated, Error> {
        let kept = out.join(KEPT);
        let mut all = File { world: World::LinuxVm, results: Vec::new() };
        if given.is_empty() {
            if kept.is_file() {
                all = read(&kept)?;
            }
            return Emulated::of(&all, &kept);
        }
        for path in given {
            let file = read(path)?;
            Emulated::of(&file, path)?;
            all.results.extend(file.results);
        }
        let text = serde_json::to_string_pretty(&all).map_err(|e| Error::Runs(e.to_string()))?;
        std::fs::write(&kept, text + "\n")
            .map_err(|e| Error::Runs(format!("cannot write {}: {e}", kept.display())))?;
        Emulated::of(&all, &kept)
    }

    /// Keeps the measured cases, and leaves out those that were skipped or failed.
    fn of(file: &File, path: &Path) -> Result<Emulated, Error> {
        let wrong = |e: serde_json::Error| {
            Error::Usage(format!("{}: no result of {RIG}: {e}", path.display()))
        };
        let is_measured = |result: &&serde_json::Value| result.get("mbps").is_some();
        let results = file.results.iter().filter(is_measured).map(Measured::deserialize);
        Ok(Emulated { results: results.collect::<Result<_, _>>().map_err(wrong)? })
    }

    /// The longest run of a case.
    fn measured(&self, name: &str) -> Option<&Measured> {
        let of = self.results.iter().filter(|result| result.case.name == name);
        of.max_by(|a, b| a.case.duration_s.total_cmp(&b.case.duration_s))
    }

    /// The findings on an experiment.
    pub fn found(&self, cases: &[Case], experiment: &'static str) -> Found {
        let arm = |case: &Case| {
            let run = self
                .measured(case.name)
                .map(|m| Run { summary: Arc::new(m.summary()), ..Run::default() });
            Arm {
                variant: case.variant.into(),
                load: case.load,
                planned: vec![0],
                runs: run.into_iter().collect(),
            }
        };
        let arms = cases.iter().filter(|case| case.experiment == experiment).map(arm).collect();
        Found { name: experiment, left_out: None, arms }
    }

    /// Why a claim is undecided, or what its numbers rest on.
    pub fn conditions(&self, paper: &Paper, claim: &Claim) -> Result<String, String> {
        if self.results.is_empty() {
            return Err(ABSENT.into());
        }
        let (mut lengths, mut kernel) = (Vec::new(), "");
        for case in needed(paper, claim) {
            let Some(measured) = self.measured(case.name) else {
                return Err(format!("case \"{}\" was not measured", case.name));
            };
            lengths.push(format!("{} s", measured.case.duration_s));
            kernel = &measured.kernel;
        }
        lengths.dedup();
        Ok(format!("Linux {kernel} in virtual time, one run of {}", lengths.join(" and ")))
    }
}

/// The cases that a claim needs; empty if the rig does not have them all.
pub fn needed<'a>(paper: &'a Paper, claim: &Claim) -> Vec<&'a Case> {
    let (variants, load) = claim.measure.needs();
    let case = |variant: &&str| {
        let is_it = |case: &&Case| {
            case.experiment == claim.experiment()
                && case.variant == *variant
                && Some(case.load) == load
        };
        paper.emulated.iter().find(is_it)
    };
    variants.iter().map(case).collect::<Option<_>>().unwrap_or_default()
}

fn read(path: &Path) -> Result<File, Error> {
    let wrong = |what: String| Error::Usage(format!("{}: {what}", path.display()));
    let text = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
    let file: File =
        serde_json::from_slice(&text).map_err(|e| wrong(format!("no results of {RIG}: {e}")))?;
    match file.world {
        World::LinuxVm => Ok(file),
        _ => Err(wrong(format!("its world is not linux-vm: claims take what {RIG} measured"))),
    }
}

impl Measured {
    fn summary(&self) -> Summary {
        let mut summary = Summary { world: World::LinuxVm, ..Summary::default() };
        summary.flows.goodput_gbps = self.mbps.map(|mbps| mbps / 1e3);
        summary.limits = vec![Limit { rtt_mean_us: self.srtt_us, ..Limit::default() }];
        let us = |ms: Option<f64>| ms.map(|ms| ms * 1e3);
        for class in &self.classes {
            let calls = Latency {
                // Numbers of calls are compared between runs of several lengths: those of a
                // thousand seconds.
                count: (class.count as f64 * 1e3 / self.case.duration_s).round() as u64,
                p50: us(class.p50_ms),
                p99: us(class.p99_ms),
                p999: us(class.p999_ms),
                ..Latency::default()
            };
            let name = if class.size >= LARGE { "large" } else { "small" };
            summary.latency_us.insert(name.to_string(), calls);
        }
        summary
    }
}
