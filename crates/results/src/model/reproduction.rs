//! The findings of `reproduce` on a paper: its claims beside what was measured, and its published
//! curves beside ours.
//!
//! ```text
//! OUT/claims.json            the claims, each with its status
//! OUT/reproduce.json         the same with the curves of each experiment: all that the page shows
//! OUT/report.html            the page
//! OUT/manifest.json          last
//! OUT/scenarios/NAME.toml    the scenario of each experiment
//! OUT/NAME/                  the runs of each experiment: the folder of a sweep
//! ```
//!
//! Invariant: what is measured stands beside what is published and is never mixed with it; the
//! bytes depend on the runs' summaries and queries alone, but for `manifest.json`.

use crate::model::claim::{Cause, Claim};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::model::checksum::read_sealed;
use crate::model::error::Result;
use crate::model::estimate::Estimate;
use crate::model::manifest::LinkFailure;
use crate::model::ordered::Ordered;
use crate::model::summary::SCHEMA;

pub const REPRODUCTION: &str = "reproduce.json";

/// One scheme at one load: means over its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Load, in the unit of the experiment's axis.
    pub load: f64,
    pub runs: u32,
    pub planned: u32,
    /// Simulated seconds of a run.
    pub simulated_s: f64,
    pub completed_fraction: Estimate,
    /// QCT of the completed ones, in microseconds.
    pub mean_us: Estimate,
    /// The mean where an open query counts as if it ended at the horizon.
    pub mean_restricted_us: Estimate,
    /// 99th percentile of the completed ones.
    pub p99_us: Estimate,
    /// Packets put on the wire.
    pub sent: Estimate,
    /// Packets dropped.
    pub dropped: Estimate,
    pub dropped_by: Ordered<f64>,
    /// Packets deflected.
    pub deflected: Estimate,
    pub timeouts: Estimate,
    /// QCT in microseconds and the share of the completed that took at least as long, seeds pooled;
    /// empty unless the queries were kept.
    pub distribution: Vec<(f64, f64)>,
    /// Application bytes delivered, in Gb/s.
    pub goodput_gbps: Estimate,
    /// Calls on persistent connections, by class; absent where there are none.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub calls: Ordered<Calls>,
    /// The numbers that the experiment is about, where those are not its queries'.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<Number>,
    /// Goodput over time, where it was sampled, the mean over runs: microseconds since the start,
    /// Gb/s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goodput_over_time: Vec<(f64, f64)>,
    /// The numbers of each complete run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<OneRun>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OneRun {
    pub seed: u64,
    /// By name: the fields of a [`LoadPoint`], those of its calls behind the class, and the
    /// experiment's own numbers.
    pub values: Ordered<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Number {
    pub name: String,
    /// `us`, `Gb/s`, `percent`, `count`, or empty.
    pub unit: String,
    pub estimate: Estimate,
    /// Whether it is only a lower bound, since flows or queries are open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// Latencies of a class of calls, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    pub count: Estimate,
    pub p50_us: Estimate,
    /// 99th percentile.
    pub p99_us: Estimate,
    /// 99.9th percentile.
    pub p999_us: Estimate,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scheme {
    pub variant: String,
    pub label: String,
    pub points: Vec<LoadPoint>,
}

/// A published curve, with the figure that it was read from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The variant that it is of.
    pub variant: String,
    pub source: String,
    pub loads: Vec<f64>,
    /// Mean QCT at each, in microseconds.
    pub mean_us: Vec<f64>,
    /// The 99th percentile.
    pub p99_us: Vec<f64>,
}

impl Published {
    /// Mean and 99th percentile at a load.
    pub fn at(&self, load: f64) -> Option<(f64, f64)> {
        let at = self.loads.iter().position(|&other| other == load)?;
        Some((*self.mean_us.get(at)?, *self.p99_us.get(at)?))
    }
}

/// A published number of a scheme: a value of one of the experiment's numbers, or of its calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedNumber {
    /// The variant that it is of.
    pub variant: String,
    /// The load that it is at.
    pub load: f64,
    /// The number's name, as in [`OneRun`].
    pub number: String,
    pub value: f64,
    pub source: String,
}

/// One experiment: a scenario under several schemes and loads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    pub name: String,
    pub title: String,
    /// The scenario's path in the repository.
    pub scenario: String,
    pub load_axis: String,
    /// Notes for the reader: why there are no runs, what a quick look leaves out.
    pub note: String,
    pub schemes: Vec<Scheme>,
    pub published: Vec<Published>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published_numbers: Vec<PublishedNumber>,
    /// The links that fail in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<LinkFailure>,
}

impl Experiment {
    /// Each scheme at each load that has runs.
    pub(crate) fn rows<'a>(&'a self) -> impl Iterator<Item = (&'a Scheme, &'a LoadPoint)> {
        let rows = |scheme: &'a Scheme| scheme.points.iter().map(move |point| (scheme, point));
        self.schemes.iter().flat_map(rows).filter(|(_, point)| point.runs > 0)
    }

    /// The published mean and 99th percentile of a row.
    pub(crate) fn published_at(&self, scheme: &Scheme, point: &LoadPoint) -> Option<(f64, f64)> {
        let mut own = self.published.iter().filter(|published| published.variant == scheme.variant);
        own.find_map(|published| published.at(point.load))
    }

    /// Whether it measures calls on persistent connections, and not queries.
    pub fn has_calls(&self) -> bool {
        self.schemes.iter().flat_map(|scheme| &scheme.points).any(|point| !point.calls.is_empty())
    }
    /// The numbers that it is about, with their units; none if that is queries or calls.
    pub fn numbers(&self) -> &[Number] {
        self.rows().next().map_or(&[], |(_, point)| &point.numbers)
    }
    /// Whether one of its numbers is only a lower bound.
    pub fn has_bounds(&self) -> bool {
        self.rows().any(|(_, point)| point.numbers.iter().any(|number| number.at_least))
    }
    /// Whether there is more than one load.
    pub fn has_loads(&self) -> bool {
        self.schemes.iter().any(|scheme| scheme.points.len() > 1)
    }
}

/// The content of `reproduce.json`: a paper's experiments with their numbers and claims.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// Version of the results folder's form.
    pub schema: u32,
    /// The paper's name on the command line.
    pub paper: String,
    pub title: String,
    pub version: String,
    /// `full` or `quick`.
    pub effort: String,
    /// The paragraph that opens its page; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reading: String,
    /// The causes of the claims that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    pub experiments: Vec<Experiment>,
    pub claims: Vec<Claim>,
}

impl Reproduction {
    /// Of a paper, without experiments and claims.
    pub fn new(paper: &str, title: &str, version: &str, effort: &str) -> Reproduction {
        Reproduction {
            schema: SCHEMA,
            paper: paper.into(),
            title: title.into(),
            version: version.into(),
            effort: effort.into(),
            ..Reproduction::default()
        }
    }

    /// Reads `DIR/reproduce.json`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read,
    /// [`Error::Malformed`](crate::Error::Malformed) if its checksum is wrong.
    pub fn read(dir: &Path) -> Result<Reproduction> {
        read_sealed(&dir.join(REPRODUCTION))
    }
}
