//! Experiments of a paper, each a scenario under several schemes, loads and seeds, and their
//! results.
//!
//! Invariant: an experiment is a sweep like any other. Its folder can be read, exported and gone on
//! with as one.

use crate::design::{Design, Request, VARIANT, design};
use crate::error::{Error, hinted};
use crate::found::{Arm, Found};
use crate::statistic::{Run, Statistic};
use millpond_results::{
    Axis, Keep, LinkFailure, Manifest, Point, Sweep, World, acknowledged_times, query_times,
};
use millpond_scenario::Scenario;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Experiment {
    /// Its name on the command line, and its folder's.
    pub name: String,
    pub title: String,
    /// The scenario's path in the repository; in the paper's file, beside that.
    pub scenario: String,
    #[serde(skip)]
    pub text: String,
    /// Variants of the scenario, each with its name in papers.
    pub schemes: Vec<(String, String)>,
    /// The meaning of loads, for the axis.
    pub load_axis: String,
    /// The scenario's key that sets the load; `None` where the scenario has one load.
    pub load_key: Option<String>,
    /// Where it runs: in the simulator, or in the lab.
    #[serde(default)]
    pub world: World,
    /// The files that are kept of each run.
    #[serde(default = "summary")]
    pub keep: Keep,
    pub full: Runs,
    /// The runs with `--quick`; the reason, if they would decide nothing.
    #[serde(deserialize_with = "quick")]
    pub quick: Result<QuickFile, String>,
    /// The statistics that are shown of each scheme, with a name; empty: its queries or calls.
    #[serde(default)]
    pub shows: Vec<(String, Statistic)>,
    #[serde(default)]
    pub published: Vec<Published>,
}

/// The files that are kept of runs unless an experiment needs more.
fn summary() -> Keep {
    Keep::Summary
}

/// Of `--quick`, what differs from the full runs; or the reason to leave the experiment out.
fn quick<'de, D: Deserializer<'de>>(from: D) -> Result<Result<QuickFile, String>, D::Error> {
    match toml::Value::deserialize(from)? {
        toml::Value::String(why) => Ok(Err(why)),
        table => table.try_into().map(Ok).map_err(|e| D::Error::custom(hinted("quick", &e))),
    }
}

/// Of `--quick`: what is not given is as in full.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QuickFile {
    /// As of [`Runs`], as all of them.
    pub loads: Option<Vec<(f64, String)>>,
    pub seeds: (u64, u64),
    /// In the place of those in full.
    pub set: Option<Settings>,
    /// A remark for the reader; may be empty.
    #[serde(default)]
    pub note: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Runs {
    /// Each with the value of the experiment's key that makes it.
    pub loads: Vec<(f64, String)>,
    pub seeds: (u64, u64),
    #[serde(default)]
    pub set: Settings,
    /// A remark for the reader; may be empty.
    #[serde(default)]
    pub note: String,
}

/// Keys and values, which a paper's file has as `KEY=VALUE` texts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct Settings(pub Vec<(String, String)>);

impl TryFrom<Vec<String>> for Settings {
    type Error = String;

    fn try_from(texts: Vec<String>) -> Result<Settings, String> {
        let pair = |text: &String| match text.split_once('=') {
            Some((key, value)) => Ok((key.to_string(), value.to_string())),
            None => Err(format!("`set` has KEY=VALUE pairs (got \"{text}\")")),
        };
        texts.iter().map(pair).collect::<Result<_, _>>().map(Settings)
    }
}

/// A published curve, in seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// The variant that it is of.
    pub variant: String,
    /// Where it is published, with a note if it only follows from published numbers.
    pub source: String,
    pub loads: Vec<f64>,
    pub mean_s: Vec<f64>,
    /// 99th percentile of QCT at each.
    pub p99_s: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Full,
    /// The part that can be decided in minutes.
    Quick,
}

impl Effort {
    pub fn name(self) -> &'static str {
        match self {
            Effort::Full => "full",
            Effort::Quick => "quick",
        }
    }
}

/// An experiment that is ready to run.
pub struct Prepared<'a> {
    pub of: &'a Experiment,
    /// Its loads and seeds with this effort.
    pub runs: Runs,
    pub scenario: Scenario,
    pub design: Design,
}

impl Experiment {
    /// Returns the runs of this effort.
    ///
    /// # Errors
    /// The paper's reason to leave the experiment out of a quick reproduction.
    pub fn runs(&self, effort: Effort) -> Result<Runs, &str> {
        let full = self.full.clone();
        let QuickFile { loads, seeds, set, note } = match (effort, &self.quick) {
            (Effort::Full, _) => return Ok(full),
            (Effort::Quick, quick) => quick.as_ref().map_err(String::as_str)?.clone(),
        };
        let (loads, set) = (loads.unwrap_or(full.loads), set.unwrap_or(full.set));
        Ok(Runs { loads, seeds, set, note })
    }

    pub fn has(&self, variant: &str) -> bool {
        self.variants().any(|own| own == variant)
    }

    pub fn variants(&self) -> impl Iterator<Item = &str> {
        self.schemes.iter().map(|(variant, _)| variant.as_str())
    }

    pub fn label<'a>(&'a self, variant: &'a str) -> &'a str {
        self.schemes.iter().find(|(other, _)| other == variant).map_or(variant, |(_, label)| label)
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
        &self,
        runs: Runs,
        seeds: Option<(u64, u64)>,
        estimate: bool,
    ) -> Result<Prepared<'_>, Error> {
        let scenario = Scenario::parse(&self.scenario, &self.text)?;
        let values: Vec<String> = runs.loads.iter().map(|(_, value)| value.clone()).collect();
        let request = Request {
            grid: self
                .load_key
                .iter()
                .map(|key| Axis { key: key.clone(), values: values.clone() })
                .collect(),
            seeds: Some(seeds.unwrap_or(runs.seeds)),
            variants: self.variants().map(String::from).collect(),
            set: runs.set.0.clone(),
            skip_invalid: false,
            estimate,
        };
        let design = design(&scenario, &request)?;
        Ok(Prepared { of: self, runs, scenario, design })
    }
}

impl Prepared<'_> {
    /// The plan's schemes, loads and seeds, without any run.
    pub fn planned(&self) -> Found {
        let arm = |point: &Point| {
            let planned = point.runs.iter().map(|run| run.seed).collect();
            Arm { planned, ..self.arm(point) }
        };
        let arms = self.design.sweep.points.iter().map(arm).collect();
        Found { name: self.of.name.clone(), left_out: None, arms }
    }

    /// The scheme and the load of a point.
    fn arm(&self, point: &Point) -> Arm {
        let value = |key: &str| point.values.get(key).map(String::as_str);
        let of_load = self.of.load_key.as_deref().and_then(value);
        let load = self.runs.loads.iter().find(|(_, value)| of_load.is_none_or(|of| of == value));
        let variant = value(VARIANT).unwrap_or_default().to_string();
        Arm { variant, load: load.map_or(0.0, |(load, _)| *load), ..Arm::default() }
    }

    /// Returns the complete runs of these points in a sweep's folder, whatever their seeds. A
    /// folder without a readable sweep of these results has none.
    ///
    /// # Errors
    /// [`Error::Results`] if the flows or queries of a complete run cannot be read.
    pub fn found(&self, folder: &Path) -> Result<Found, Error> {
        let old = Sweep::read(folder).ok().filter(|old| old.results == self.design.sweep.results);
        let mut arms = Vec::new();
        for point in &self.design.sweep.points {
            let points = old.iter().flat_map(|old| &old.points);
            let mut there = points
                .filter(|other| other.values == point.values && other.identity == point.identity);
            let listed = there.next().map_or(&point.runs, |other| &other.runs);
            let mut arm = self.arm(point);
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
                        numbers: None,
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
        Ok(Found { name: self.of.name.clone(), left_out: None, arms })
    }

    /// The links that fail, as the first finished run in the folder has them.
    pub fn failures(&self, folder: &Path) -> Vec<LinkFailure> {
        let mut runs = self.design.sweep.runs();
        runs.find_map(|(_, run)| Manifest::read(&folder.join(&run.folder)).ok())
            .map_or(Vec::new(), |run| run.failures)
    }
}
