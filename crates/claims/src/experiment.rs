//! What a paper is made of: experiments, each a scenario under several schemes, loads and seeds;
//! and what they found.
//!
//! Invariant: an experiment is a sweep like any other. Its folder can be read, exported and gone on
//! with as one.

use crate::baseline::Baselines;
use crate::claim::Claim;
use crate::design::{Design, Request, VARIANT, design};
use crate::emulated::Case;
use crate::error::Error;
use crate::file::{list, settings};
use crate::statistic::Statistic;
use millpond_results::{
    Axis, Experiment as Shown, Keep, LinkFailure, LoadPoint, Manifest, Ordered,
    Published as ShownCurve, PublishedNumber, Scheme, Summary, Sweep, acknowledged_times,
    query_times,
};
use millpond_scenario::Scenario;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;

/// A paper.
pub struct Paper {
    /// Its name on the command line; claims' names start with it.
    pub name: &'static str,
    /// As a heading.
    pub title: &'static str,
    /// Of its publication.
    pub year: u16,
    /// What is run.
    pub experiments: &'static [Experiment],
    /// What is claimed.
    pub claims: &'static [Claim],
    /// What claims are judged on beside their own schemes: the schemes with the mechanism off.
    pub baselines: Baselines,
    /// What of it `make bench-limit-vm` measures as well.
    pub emulated: &'static [Case],
}

/// One experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name on the command line, and its folder's.
    pub name: &'static str,
    /// What it is, in a line.
    pub title: &'static str,
    /// The scenario's path in the repository.
    pub scenario: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Variants of the scenario, each with its name in papers.
    pub schemes: &'static [(&'static str, &'static str)],
    /// What loads are, for the axis.
    pub load_axis: &'static str,
    /// The scenario's key that sets the load; `None` where the scenario has one load.
    pub load_key: Option<&'static str>,
    /// What is run.
    pub full: Runs,
    /// What is run with `--quick`; the reason, if it would decide nothing.
    pub quick: Result<Runs, &'static str>,
    /// What is kept of each run.
    pub keep: Keep,
    /// What is shown of each scheme, with a name; empty: its queries or calls.
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
    /// What can be decided in minutes.
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

/// One scheme at one load: what there is of it.
#[derive(Clone, Debug, Default)]
pub struct Arm {
    /// The scheme.
    pub variant: String,
    /// The load.
    pub load: f64,
    /// Seeds that are to be run.
    pub planned: Vec<u64>,
    /// Those that are complete.
    pub runs: Vec<Run>,
}

/// One complete run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// Its numbers. Resamples of seeds share them.
    pub summary: Arc<Summary>,
    /// QCT of its completed queries in microseconds, where they were kept.
    pub queries: Option<Vec<f64>>,
    /// Times to the last acknowledgement by class, sorted, where flows were kept.
    pub acknowledged: Option<Arc<Ordered<Vec<f64>>>>,
}

impl Run {
    /// The same run without its queries, sharing all else.
    pub fn shared(&self) -> Run {
        let (summary, acknowledged) = (Arc::clone(&self.summary), self.acknowledged.clone());
        Run { seed: self.seed, summary, queries: None, acknowledged }
    }
}

/// What an experiment found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The experiment.
    pub name: &'static str,
    /// Why nothing was to be run.
    pub left_out: Option<&'static str>,
    /// Every scheme at every load.
    pub arms: Vec<Arm>,
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

impl Experiment {
    /// For the table and the page; `claims` are the paper's.
    pub fn shown(&self, claims: &[Claim], found: &Found, note: &str) -> Shown {
        let scheme = |&(variant, label): &(&str, &str)| Scheme {
            variant: variant.to_string(),
            label: label.to_string(),
            points: found
                .arms
                .iter()
                .filter(|arm| arm.variant == variant)
                .map(|arm| self.point(arm))
                .collect(),
        };
        let us = |seconds: &[f64]| seconds.iter().map(|s| s * 1e6).collect();
        let curve = |p: &Published| ShownCurve {
            variant: p.variant.to_string(),
            source: p.source.to_string(),
            loads: p.loads.to_vec(),
            mean_us: us(p.mean_s),
            p99_us: us(p.p99_s),
        };
        Shown {
            name: self.name.to_string(),
            title: self.title.to_string(),
            scenario: self.scenario.to_string(),
            load_axis: self.load_axis.to_string(),
            note: note.to_string(),
            schemes: self.schemes.iter().map(scheme).collect(),
            published: self.published.iter().map(curve).collect(),
            published_numbers: claims
                .iter()
                .filter_map(|claim| self.published_number(claim))
                .collect(),
            failures: Vec::new(),
        }
    }

    /// The number that a claim of this experiment gives, if the experiment shows it.
    fn published_number(&self, claim: &Claim) -> Option<PublishedNumber> {
        let (statistic, variant, load, whole) =
            claim.measure.of_whole().filter(|_| claim.experiment() == self.name)?;
        let own = self
            .shows
            .iter()
            .find(|(_, shown)| *shown == statistic)
            .map(|(name, _)| name.to_string());
        Some(PublishedNumber {
            variant: variant.to_string(),
            load,
            number: own.or_else(|| statistic.of_calls().filter(|_| self.shows.is_empty()))?,
            value: claim.paper.number()? / 100.0 * whole,
            source: claim.source.to_string(),
        })
    }

    /// A scheme at a load.
    fn point(&self, arm: &Arm) -> LoadPoint {
        let runs: Vec<(&Summary, Option<&[f64]>)> =
            arm.runs.iter().map(|run| (&*run.summary, run.queries.as_deref())).collect();
        let mut point = LoadPoint::of(arm.load, arm.planned.len() as u32, &runs);
        for (name, statistic) in self.shows {
            let value = |run: &Run| Some((run.seed, statistic.of_run(run)?));
            let values: Vec<(u64, f64)> = arm.runs.iter().filter_map(value).collect();
            point.add(name, statistic.unit(), &values);
        }
        point
    }
}
