//! `sweep.json`: the plan of a sweep, and at its end its numbers.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::checksum::read_sealed;
use super::manifest::{Manifest, is_result};
use super::ordered::Ordered;
use super::summary::{SCHEMA, Status, Summary};
use crate::model::error::Result;
use crate::model::estimate::{Difference, Estimate, ShownNumber};
use crate::model::names::point_folder;
use crate::model::tree::Tree;

/// The plan's name in the folder.
pub const SWEEP: &str = "sweep.json";

pub(crate) const RUNS: &str = "runs";

/// The content of `sweep.json`: axes, points with their statistics, and runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Version of the results folder's form.
    pub schema: u32,
    pub name: String,
    pub version: String,
    /// [`millpond_core::RESULTS`]; 0 of a program that had no such number.
    #[serde(default)]
    pub results: u32,
    /// `complete` when all runs are, `stalled` or `failed` if one of them is, `interrupted` before
    /// the end.
    pub status: Status,
    /// The settings of the command line in every run, as `key=value`.
    pub overrides: Vec<String>,
    /// The varied keys. The last key varies fastest.
    pub grid: Vec<Axis>,
    pub seeds: Vec<u64>,
    /// The numbers that are shown; absent: those that suit the traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shows: Vec<String>,
    /// The number whose best point is named; absent: the first one that is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<String>,
    /// The bounds that the best point keeps, such as `bulk.fct.mean <= 105 %`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subject: Vec<String>,
    /// The points, in the order of the grid.
    pub points: Vec<Point>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The key; `variant` for the scenario's variants.
    pub key: String,
    pub values: Vec<String>,
}

impl Axis {
    /// Whether all values of a key are numbers, so that its column is one.
    pub(crate) fn is_numeric(&self) -> bool {
        self.values.iter().all(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// From 1.
    pub point: u32,
    pub values: Ordered<String>,
    /// Its scenario's identity, as in [`Manifest`].
    pub identity: String,
    /// Why it is left out, if it is.
    pub skipped: Option<String>,
    /// One for each seed; none if it is left out.
    pub runs: Vec<SweepRun>,
    /// The warnings of its runs, each once.
    pub warnings: Vec<String>,
    /// The summary's numbers over the complete runs; `null` before the end.
    pub statistics: Option<Tree<Estimate>>,
    /// The point that this one is compared with: the same values but of one key.
    pub against: Option<u32>,
    /// The differences to that point, paired by seed; `null` before the end and where there is
    /// none.
    pub differences: Option<Tree<Difference>>,
    /// The numbers that tables and pages show, by their names in `shows`.
    pub shows: Ordered<ShownNumber>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRun {
    /// From 1 over the whole sweep.
    pub run: u32,
    pub seed: u64,
    /// Its folder, relative to the sweep's.
    pub folder: String,
    /// How it ended; `null` if it has not been run to its end.
    pub status: Option<Status>,
    pub reason: Option<String>,
}

impl Sweep {
    /// The plan: a point for each element of `points`, which is (values, the scenario's identity or
    /// why it cannot be run).
    pub fn new(
        name: &str,
        version: &str,
        grid: Vec<Axis>,
        seeds: Vec<u64>,
        points: Vec<(Vec<String>, std::result::Result<String, String>)>,
    ) -> Sweep {
        let (mut number, mut planned) = (0, Vec::new());
        for (at, (values, identity)) in (1..).zip(points) {
            let values: Vec<_> = grid.iter().map(|axis| axis.key.clone()).zip(values).collect();
            let mut point = Point { point: at, values: Ordered::from(values), ..Point::default() };
            match identity {
                Ok(identity) => {
                    point.identity = identity;
                    let folder = format!("{RUNS}/{}", point_folder(&point.values));
                    for &seed in &seeds {
                        number += 1;
                        let (run, folder) = (number, format!("{folder}/seed-{seed}"));
                        point.runs.push(SweepRun { run, seed, folder, ..SweepRun::default() });
                    }
                }
                Err(reason) => point.skipped = Some(reason),
            }
            planned.push(point);
        }
        Sweep {
            schema: SCHEMA,
            name: name.into(),
            version: version.into(),
            results: millpond_core::RESULTS,
            status: Status::Interrupted,
            grid,
            seeds,
            points: planned,
            ..Sweep::default()
        }
    }

    /// Reads `DIR/sweep.json`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read,
    /// [`Error::Malformed`](crate::Error::Malformed) if its checksum is wrong.
    pub fn read(dir: &Path) -> Result<Sweep> {
        read_sealed(&dir.join(SWEEP))
    }

    /// All runs, each with its point.
    pub fn runs(&self) -> impl Iterator<Item = (&Point, &SweepRun)> {
        self.points.iter().flat_map(|point| point.runs.iter().map(move |run| (point, run)))
    }

    /// The plan, with the finished runs of `out` that are of its points but of other seeds: what it
    /// is when a sweep grows. Runs of another version or of a changed scenario are not among them.
    pub fn grown(mut self, out: &Path) -> Sweep {
        let Ok(old) = Sweep::read(out) else { return self };
        if old.results != self.results {
            return self;
        }
        let mut number = 0;
        for point in &mut self.points {
            let same =
                |other: &&Point| other.values == point.values && other.identity == point.identity;
            let runs = old.points.iter().find(same).map_or(&[][..], |other| &other.runs);
            for run in runs {
                let is_there = || is_complete(out, run) || run.is_damaged(out);
                if !point.runs.iter().any(|own| own.seed == run.seed) && is_there() {
                    point.runs.push(SweepRun { status: None, reason: None, ..run.clone() });
                    if !self.seeds.contains(&run.seed) {
                        self.seeds.push(run.seed);
                    }
                }
            }
            point.runs.sort_by_key(|run| run.seed);
            for run in &mut point.runs {
                number += 1;
                run.run = number;
            }
        }
        self.seeds.sort_unstable();
        self
    }

    /// The difference that makes this another sweep than `old`, in words; `None` if they are the
    /// same.
    pub fn change_from(&self, old: &Sweep) -> Option<String> {
        let keys = |sweep: &Sweep| {
            let axis = |axis: &Axis| format!("{}={}", axis.key, axis.values.join(","));
            sweep.grid.iter().map(axis).collect::<Vec<_>>().join(" ")
        };
        let seeds = |sweep: &Sweep| match sweep.seeds.as_slice() {
            [] => String::new(),
            [only] => only.to_string(),
            [first, .., last] => format!("{first}..{last}"),
        };
        let checks = [
            ("the version of results", old.results.to_string(), self.results.to_string()),
            ("the scenario's name", old.name.clone(), self.name.clone()),
            ("--grid", keys(old), keys(self)),
            ("--seeds", seeds(old), seeds(self)),
            ("--set", old.overrides.join(" "), self.overrides.join(" ")),
        ];
        for (what, old, new) in checks {
            if old != new {
                return Some(format!("{what} was {old:?}, now it is {new:?}"));
            }
        }
        let same = |(a, b): (&Point, &Point)| a.values == b.values && a.identity == b.identity;
        let scenario =
            self.points.len() == old.points.len() && self.points.iter().zip(&old.points).all(same);
        (!scenario).then(|| "the scenario has changed since".to_string())
    }
}

/// Whether a run is complete or stalled in a sweep's folder, whose files are as they were written.
pub(crate) fn is_complete(out: &Path, run: &SweepRun) -> bool {
    summary_of(out, run).is_some_and(|summary| summary.status.is_final())
}

/// The summary of a finished run in a sweep's folder; `None` if it must be run (again).
pub(crate) fn summary_of(out: &Path, run: &SweepRun) -> Option<Summary> {
    let dir = out.join(&run.folder);
    let summary = Summary::read(&dir).ok()?;
    (is_result(&dir) && summary.seed == run.seed && summary.status != Status::Interrupted)
        .then_some(summary)
}

impl SweepRun {
    /// The run's summary, if it is complete or stalled in the sweep's folder and its files are what
    /// was written. A failed run and a damaged one are run again.
    pub fn finished(&self, out: &Path) -> Option<Summary> {
        Manifest::verified(&out.join(&self.folder)).ok()?;
        summary_of(out, self).filter(|summary| summary.status.is_final())
    }

    /// Whether the run has a folder there, whose files are not what was written.
    fn is_damaged(&self, out: &Path) -> bool {
        let place = out.join(&self.folder);
        place.is_dir() && Manifest::verified(&place).is_err()
    }
}
