//! Experiments of a paper, each a scenario under several schemes, loads and seeds, and their
//! results.
//!
//! Invariant: an experiment is a sweep like any other. Its folder can be read, exported and gone on
//! with as one.

use crate::design::{Design, Request, VARIANT, design};
use crate::error::Error;
use crate::found::{Arm, Found, Run};
use crate::lists::{list, settings};
use crate::statistic::Statistic;
use millpond_results::{
    Axis, Keep, LinkFailure, Manifest, Sweep, World, acknowledged_times, query_times,
};
use millpond_scenario::Scenario;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;

/// One experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name on the command line, and its folder's.
    pub name: &'static str,
    /// Its title, in a line.
    pub title: &'static str,
    /// The scenario's path in the repository.
    pub scenario: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Variants of the scenario, each with its name in papers.
    pub schemes: &'static [(&'static str, &'static str)],
    /// The meaning of loads, for the axis.
    pub load_axis: &'static str,
    /// The scenario's key that sets the load; `None` where the scenario has one load.
    pub load_key: Option<&'static str>,
    /// The runs.
    pub full: Runs,
    /// The runs with `--quick`; the reason, if they would decide nothing.
    pub quick: Result<Runs, &'static str>,
    /// Where it runs: in the simulator, or in the lab.
    pub world: World,
    /// The files that are kept of each run.
    pub keep: Keep,
    /// The statistics that are shown of each scheme, with a name; empty: its queries or calls.
    pub shows: &'static [(&'static str, Statistic)],
    /// The paper's curves.
    pub published: &'static [Published],
}

/// Loads and seeds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Runs {
    /// Each with the value of the experiment's key that makes it.
    #[serde(deserialize_with = "list")]
    pub loads: &'static [(f64, &'static str)],
    /// First and last.
    pub seeds: (u64, u64),
    /// Settings of every run: key and value.
    #[serde(default, deserialize_with = "settings")]
    pub set: &'static [(&'static str, &'static str)],
    /// A remark for the reader; may be empty.
    #[serde(default)]
    pub note: &'static str,
}

/// A published curve, in seconds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// The variant that it is of.
    pub variant: &'static str,
    /// Where it is published; what follows only from published numbers says so.
    pub source: &'static str,
    /// Loads.
    #[serde(deserialize_with = "list")]
    pub loads: &'static [f64],
    /// Mean QCT at each.
    #[serde(deserialize_with = "list")]
    pub mean_s: &'static [f64],
    /// 99th percentile of QCT at each.
    #[serde(deserialize_with = "list")]
    pub p99_s: &'static [f64],
}

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// All that the claims need.
    Full,
    /// The part that can be decided in minutes.
    Quick,
}

impl Effort {
    /// As in files.
    pub fn name(self) -> &'static str {
        match self {
            Effort::Full => "full",
            Effort::Quick => "quick",
        }
    }
}

/// An experiment that is ready to run.
pub struct Prepared {
    /// Which.
    pub of: &'static Experiment,
    /// Its loads and seeds with this effort.
    pub runs: Runs,
    /// Its scenario, read.
    pub scenario: Scenario,
    /// The sweep that it is.
    pub design: Design,
}

impl Experiment {
    /// Returns the runs of this effort.
    ///
    /// # Errors
    /// The paper's reason to leave the experiment out of a quick reproduction.
    pub fn runs(&self, effort: Effort) -> Result<Runs, &'static str> {
        match effort {
            Effort::Full => Ok(self.full),
            Effort::Quick => self.quick,
        }
    }

    /// A variant's name in papers.
    pub fn label<'a>(&self, variant: &'a str) -> &'a str {
        self.schemes.iter().find(|(other, _)| *other == variant).map_or(variant, |(_, label)| label)
    }

    /// Checks that so many seeds decide the experiment's claims: at least as many as this effort
    /// has of its own.
    ///
    /// # Errors
    /// The number of seeds there are, and the number needed.
    pub fn enough(&self, seeds: usize, effort: Effort) -> Result<(), String> {
        let needed = self
            .runs(effort)
            .map_or(0, |Runs { seeds: (first, last), .. }| (last - first + 1) as usize);
        let s = if seeds == 1 { "" } else { "s" };
        let why = || format!("{seeds} seed{s} of the {needed} that experiment {} needs", self.name);
        if seeds < needed { Err(why()) } else { Ok(()) }
    }

    /// Plans every run. `seeds` replaces the paper's.
    ///
    /// # Errors
    /// [`Error::Scenario`] if the scenario's text or one of its points is wrong, and the errors of
    /// [`design`](crate::design()).
    pub fn prepare(
        &'static self,
        runs: Runs,
        seeds: Option<(u64, u64)>,
        estimate: bool,
    ) -> Result<Prepared, Error> {
        let scenario = Scenario::parse(self.scenario, self.text)?;
        let values = runs.loads.iter().map(|(_, value)| value.to_string()).collect();
        let request = Request {
            grid: self
                .load_key
                .map(|key| Axis { key: key.to_string(), values })
                .into_iter()
                .collect(),
            seeds: Some(seeds.unwrap_or(runs.seeds)),
            variants: self.schemes.iter().map(|(variant, _)| variant.to_string()).collect(),
            set: runs.set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            skip_invalid: false,
            estimate,
        };
        let design = design(&scenario, &request)?;
        Ok(Prepared { of: self, runs, scenario, design })
    }
}

impl Prepared {
    /// Returns the complete runs of these points in a sweep's folder, whatever their seeds. A
    /// folder without a readable sweep of this version has none.
    ///
    /// # Errors
    /// [`Error::Results`] if the flows or queries of a complete run cannot be read.
    pub fn found(&self, folder: &Path) -> Result<Found, Error> {
        let old = Sweep::read(folder).ok().filter(|old| old.version == self.design.sweep.version);
        let mut arms = Vec::new();
        for point in &self.design.sweep.points {
            let value = |key: &str| point.values.get(key).map(String::as_str);
            let of_load = self.of.load_key.and_then(value);
            let load =
                self.runs.loads.iter().find(|(_, value)| of_load.is_none_or(|of| of == *value));
            let variant = value(VARIANT).unwrap_or_default().to_string();
            let points = old.iter().flat_map(|old| &old.points);
            let mut there = points
                .filter(|other| other.values == point.values && other.identity == point.identity);
            let listed = there.next().map_or(&point.runs, |other| &other.runs);
            let mut arm =
                Arm { variant, load: load.map_or(0.0, |(load, _)| *load), ..Arm::default() };
            arm.planned = listed.iter().map(|run| run.seed).collect();
            for run in listed {
                if old.is_some()
                    && let Some(summary) = run.finished(folder)
                {
                    let folder = folder.join(&run.folder);
                    let (queries, acknowledged) =
                        (query_times(&folder)?, acknowledged_times(&folder)?.map(Arc::new));
                    arm.runs.push(Run {
                        seed: run.seed,
                        summary: Arc::new(summary),
                        queries,
                        acknowledged,
                    });
                }
            }
            arms.push(arm);
        }
        // A sweep that grew and was stopped has seeds of some points only; schemes are compared
        // over the same seeds.
        let planned: Vec<Vec<u64>> = arms.iter().map(|arm| arm.planned.clone()).collect();
        let is_shared = |seed: u64| planned.iter().all(|planned| planned.contains(&seed));
        for arm in &mut arms {
            arm.planned.retain(|seed| is_shared(*seed));
            arm.runs.retain(|run| is_shared(run.seed));
        }
        Ok(Found { name: self.of.name, left_out: None, arms })
    }

    /// The links that fail, as the first finished run in the folder has them.
    pub fn failures(&self, folder: &Path) -> Vec<LinkFailure> {
        let mut runs = self.design.sweep.runs();
        runs.find_map(|(_, run)| Manifest::read(&folder.join(&run.folder)).ok())
            .map_or(Vec::new(), |run| run.failures)
    }
}
