//! What `reproduce` finds of a paper: its claims beside what was measured, and its published curves
//! beside ours.
//!
//! ```text
//! OUT/claims.json            the claims, each with its status
//! OUT/reproduce.json         the same with the curves of each experiment: all that the page shows
//! OUT/report.html            the page
//! OUT/manifest.json          last
//! OUT/scenarios/NAME.toml    the scenario of each experiment
//! OUT/NAME/                  the runs of each experiment: the folder of a sweep
//! OUT/linux-vm.json          what emulated Linux did, where that was given
//! ```
//!
//! Invariant: what is measured stands beside what is published and is never mixed with it; the
//! bytes depend on the runs' summaries and queries alone, but for `manifest.json`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::checksum::{read_sealed, sealed_text};
use crate::claim_kind::ClaimKind;
use crate::compare::{Estimate, Noise};
use crate::error::{At, Result};
use crate::goodput::GoodputOverTime;
use crate::html;
use crate::html::rows::Rows;
use crate::interval::{Interval, IntervalKind, Resampler};
use crate::manifest::{Kind, LinkFailure, Manifest};
use crate::ordered::Ordered;
use crate::summary::{Latency, SCHEMA, Summary, World};
use crate::writer::{FLOWS, QUERIES};

const CLAIMS: &str = "claims.json";
/// Its name in the folder.
pub const REPRODUCTION: &str = "reproduce.json";
/// Points of a distribution for each decade of the share that remains.
const PER_DECADE: f64 = 30.0;

/// What became of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// What was measured is in the accepted interval.
    Holds,
    /// It is not.
    Fails,
    /// Nothing was measured that could decide; the note says why.
    #[default]
    NotEvaluated,
}

impl Verdict {
    /// As in the files.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::NotEvaluated => "not-evaluated",
        }
    }

    /// Of a number and the interval that is accepted, ends included.
    pub fn of(accept: [Option<f64>; 2], measured: f64) -> Verdict {
        let [low, high] = accept;
        let inside =
            low.is_none_or(|low| measured >= low) && high.is_none_or(|high| measured <= high);
        match () {
            () if !measured.is_finite() => Verdict::NotEvaluated,
            () if inside => Verdict::Holds,
            () => Verdict::Fails,
        }
    }
}

/// A claim of a paper, and what became of it: an element of `claims.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The paper's name and the claim's: `canary-S1a`.
    pub id: String,
    /// Where it is made.
    pub source: String,
    /// What it says, in a sentence.
    pub statement: String,
    /// Whose it is; folders of older versions do not say.
    #[serde(default)]
    pub kind: ClaimKind,
    /// Where it was measured.
    pub world: World,
    /// The published number, also where a parameter was solved from it, or what follows from
    /// published numbers alone; `null` if there is none.
    pub paper: Option<f64>,
    /// Ours; `null` if it is not evaluated.
    pub measured: Option<f64>,
    /// The interval, ends included, in which the claim holds; `null` at an open end.
    pub accept: [Option<f64>; 2],
    /// Whether it holds.
    pub status: Verdict,
    /// The spread of `measured` over the seeds; `null` for one seed.
    #[serde(default)]
    pub interval: Option<[f64; 2]>,
    /// What the ends of the interval are; `null` where there is none.
    #[serde(default)]
    pub interval_kind: Option<IntervalKind>,
    /// What the spread makes of the verdict, in the words of `compare`.
    #[serde(default)]
    pub noise: Noise,
    /// Points of a sweep of which `measured` is the best; absent where it is of one point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_of: Option<u32>,
    /// Whether it holds with its mechanism off; folders of older versions do not have it.
    #[serde(default)]
    pub baseline: Verdict,
    /// What was measured with the mechanism off, in the claim's unit.
    #[serde(default)]
    pub baseline_measured: Option<f64>,
    /// Which scheme stands in the place of which, or why the claim has no baseline.
    #[serde(default)]
    pub baseline_note: String,
    /// How it was measured, what a value rests on, why it was not evaluated.
    pub note: String,
    /// The scenario that it was measured in.
    pub scenario: String,
    /// The unit of `paper`, `measured` and `accept`.
    pub unit: String,
    /// The experiment that it is about.
    #[serde(default)]
    pub experiment: String,
    /// The schemes of it that it is about, by their labels; empty: all.
    #[serde(default)]
    pub schemes: Vec<String>,
    /// The load that it is about; `null`: all of them.
    #[serde(default)]
    pub load: Option<f64>,
    /// What a relative number stands for; absent where there is nothing behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absolute: Option<Absolute>,
}

/// The numbers behind a relative one, in their own unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Absolute {
    /// `us`, `Gb/s`, `percent`, `count`, or empty.
    pub unit: String,
    /// What is published, where that is known.
    pub paper: Option<f64>,
    /// Ours.
    pub measured: f64,
    /// What ours is set against, if that is ours as well: the other scheme's number.
    pub against: Option<f64>,
}

impl Claim {
    /// Whether it is about a scheme at a load of an experiment.
    pub fn is_about(&self, experiment: &str, label: &str, load: f64) -> bool {
        let is_of =
            |schemes: &[String]| schemes.is_empty() || schemes.iter().any(|scheme| scheme == label);
        self.experiment == experiment
            && is_of(&self.schemes)
            && self.load.is_none_or(|own| own == load)
    }

    /// Puts in what was measured, and decides.
    pub fn judge(&mut self, measured: f64) {
        self.status = Verdict::of(self.accept, measured);
        self.measured = Some(measured).filter(|measured| measured.is_finite());
    }

    /// Puts in the spread over seeds, and what it makes of the verdict: it is within the noise if
    /// another value of the interval has another verdict.
    pub fn spread(&mut self, interval: Option<Interval>) {
        self.interval = interval.map(|interval| interval.ends);
        self.interval_kind = interval.map(|interval| interval.kind);
        let Some(Interval { ends, kind }) = interval else { return };
        let [low, high] = self.accept;
        let is_apart =
            low.is_some_and(|low| ends[1] < low) || high.is_some_and(|high| ends[0] > high);
        let is_inside = ends.iter().all(|end| Verdict::of(self.accept, *end) == Verdict::Holds);
        self.noise = match kind {
            _ if !is_apart && !is_inside => Noise::Within,
            IntervalKind::Identical => Noise::Identical,
            IntervalKind::Range => Noise::Agreed,
            IntervalKind::Bootstrap95 | IntervalKind::Normal95 => Noise::Beyond,
        };
    }

    /// Whether it holds with its mechanism and without it: then it says nothing of the mechanism.
    pub fn holds_anyway(&self) -> bool {
        self.status == Verdict::Holds && self.baseline == Verdict::Holds
    }
}

/// One scheme at one load: means over its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Load, in the unit of the experiment's axis.
    pub load: f64,
    /// Complete runs.
    pub runs: u32,
    /// Of so many.
    pub planned: u32,
    /// Simulated seconds of a run.
    pub simulated_s: f64,
    /// Queries completed over started.
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
    /// Means by reason.
    pub dropped_by: Ordered<f64>,
    /// Packets deflected.
    pub deflected: Estimate,
    /// Retransmission timeouts.
    pub timeouts: Estimate,
    /// QCT in microseconds and the share of the completed that took at least as long, seeds pooled;
    /// empty unless the queries were kept.
    pub distribution: Vec<(f64, f64)>,
    /// Application bytes delivered, in Gb/s.
    #[serde(default)]
    pub goodput_gbps: Estimate,
    /// Calls on persistent connections, by class; absent where there are none.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub calls: Ordered<Calls>,
    /// What the experiment is about, where that is not its queries.
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

/// The numbers of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OneRun {
    /// Its seed.
    pub seed: u64,
    /// By name: the fields of a [`LoadPoint`], those of its calls behind the class, and the
    /// experiment's own numbers.
    pub values: Ordered<f64>,
}

/// A number of a scheme.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Number {
    /// Its name, without the unit.
    pub name: String,
    /// `us`, `Gb/s`, `percent`, `count`, or empty.
    pub unit: String,
    /// Over runs.
    pub estimate: Estimate,
}

/// Latencies of a class of calls, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// Calls answered.
    pub count: Estimate,
    /// Median.
    pub p50_us: Estimate,
    /// 99th percentile.
    pub p99_us: Estimate,
    /// 99.9th percentile.
    pub p999_us: Estimate,
}

impl LoadPoint {
    /// Adds a number of what the runs have of it, by seed.
    pub fn add(&mut self, name: &str, unit: &str, values: &[(u64, f64)]) {
        let numbers: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        let estimate = Estimate::of(&numbers, &mut Resampler::new());
        self.numbers.push(Number { name: name.to_string(), unit: unit.to_string(), estimate });
        for (seed, value) in values {
            if let Some(run) = self.each.iter_mut().find(|run| run.seed == *seed) {
                run.values.0.insert(name.to_string(), *value);
            }
        }
    }

    /// A number of each run that has it, by its name in [`OneRun`].
    pub fn by_seed(&self, name: &str) -> Vec<(u64, f64)> {
        self.each.iter().filter_map(|run| Some((run.seed, *run.values.get(name)?))).collect()
    }

    /// Of complete runs, with the completion times of their queries where those were kept.
    pub fn of(load: f64, planned: u32, runs: &[(&Summary, Option<&[f64]>)]) -> LoadPoint {
        let mut resampler = Resampler::new();
        let mut over = |number: &dyn Fn(&Summary) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(|(summary, _)| number(summary)).collect();
            Estimate::of(&values, &mut resampler)
        };
        let mut point = LoadPoint {
            load,
            runs: runs.len() as u32,
            planned,
            simulated_s: runs.first().map_or(0.0, |(summary, _)| summary.run.simulated_s),
            completed_fraction: over(&|s| s.qct_us.completed_fraction),
            mean_us: over(&|s| s.qct_us.mean),
            mean_restricted_us: over(&|s| s.qct_us.mean_restricted),
            p99_us: over(&|s| s.qct_us.p99),
            sent: over(&|s| Some(s.packets.sent as f64)),
            dropped: over(&|s| Some(s.packets.dropped as f64)),
            deflected: over(&|s| Some(s.packets.deflected as f64)),
            timeouts: over(&|s| Some(s.timeouts as f64)),
            goodput_gbps: over(&|s| s.flows.goodput_gbps),
            goodput_over_time: GoodputOverTime::total(
                runs.iter().filter_map(|(s, _)| s.goodput_over_time.as_ref()),
            ),
            each: runs.iter().map(|(summary, _)| one_run(summary)).collect(),
            ..LoadPoint::default()
        };
        let classes = runs.first().map_or_else(Vec::new, |(summary, _)| {
            summary.latency_us.iter().map(|(name, _)| name).collect()
        });
        let calls = classes.into_iter().map(|class| {
            let mut of = |number: &dyn Fn(&Latency) -> Option<f64>| {
                over(&|s| s.latency_us.get(class).and_then(number))
            };
            let count = of(&|calls| Some(calls.count as f64));
            let (p50_us, p99_us, p999_us) =
                (of(&|calls| calls.p50), of(&|calls| calls.p99), of(&|calls| calls.p999));
            (class.to_string(), Calls { count, p50_us, p99_us, p999_us })
        });
        point.calls = calls.collect();
        let mut reasons: Vec<(String, f64)> = Vec::new();
        for (reason, &n) in runs.iter().flat_map(|(summary, _)| summary.packets.dropped_by.iter()) {
            let n = n as f64 / runs.len() as f64;
            match reasons.iter_mut().find(|(name, _)| name == reason) {
                Some((_, sum)) => *sum += n,
                None => reasons.push((reason.to_string(), n)),
            }
        }
        reasons.retain(|(_, n)| *n > 0.0);
        point.dropped_by = Ordered::from(reasons);
        let mut times: Vec<f64> =
            runs.iter().filter_map(|(_, times)| *times).flatten().copied().collect();
        times.sort_by(f64::total_cmp);
        point.distribution = distribution(&times);
        point
    }
}

/// What charts show of a run.
fn one_run(of: &Summary) -> OneRun {
    let queries = [
        ("mean_us", of.qct_us.mean),
        ("p99_us", of.qct_us.p99),
        ("completed_fraction", of.qct_us.completed_fraction),
        ("goodput_gbps", of.flows.goodput_gbps),
    ];
    let mut values: Vec<(String, Option<f64>)> =
        queries.map(|(name, value)| (name.to_string(), value)).to_vec();
    for (class, calls) in of.latency_us.iter() {
        let percentiles = [("p50_us", calls.p50), ("p99_us", calls.p99), ("p999_us", calls.p999)];
        values.extend(percentiles.map(|(name, value)| (format!("{class} {name}"), value)));
    }
    let values = values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    OneRun { seed: of.seed, values: Ordered(values) }
}

/// A value for each share that takes at least as long, from all down to one of them.
fn distribution(sorted: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted.len() as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for at in 0.. {
        let remaining = libm::round(libm::pow(10.0, -f64::from(at) / PER_DECADE) * n) as usize;
        if remaining < 1 {
            break;
        }
        let point = (sorted[sorted.len() - remaining], remaining as f64 / n);
        if points.last() != Some(&point) {
            points.push(point);
        }
        if remaining == 1 {
            break;
        }
    }
    points
}

/// One scheme of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scheme {
    /// The variant of the scenario.
    pub variant: String,
    /// Its name in papers.
    pub label: String,
    /// By load.
    pub points: Vec<LoadPoint>,
}

/// A published curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The variant that it is of.
    pub variant: String,
    /// Where it is published.
    pub source: String,
    /// Loads.
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
    /// In the number's unit.
    pub value: f64,
    /// Where it is published.
    pub source: String,
}

/// One experiment: a scenario under several schemes and loads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its name, and its folder's.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// The scenario's path in the repository.
    pub scenario: String,
    /// What the loads are.
    pub load_axis: String,
    /// What the reader must know: why there are no runs, what a quick look leaves out.
    pub note: String,
    /// Ours.
    pub schemes: Vec<Scheme>,
    /// The paper's.
    pub published: Vec<Published>,
    /// What is published of single numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published_numbers: Vec<PublishedNumber>,
    /// The links that fail in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<LinkFailure>,
}

impl Experiment {
    /// Whether it measures calls on persistent connections, and not queries.
    pub fn has_calls(&self) -> bool {
        self.schemes.iter().flat_map(|scheme| &scheme.points).any(|point| !point.calls.is_empty())
    }
    /// The numbers that it is about, with their units; none if that is queries or calls.
    pub fn numbers(&self) -> &[Number] {
        let mut points =
            self.schemes.iter().flat_map(|scheme| &scheme.points).filter(|point| point.runs > 0);
        points.next().map_or(&[], |point| &point.numbers)
    }
    /// Whether there is more than one load.
    pub fn has_loads(&self) -> bool {
        self.schemes.iter().any(|scheme| scheme.points.len() > 1)
    }
}

/// `reproduce.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// Version of the results folder's form.
    pub schema: u32,
    /// The paper's name on the command line.
    pub paper: String,
    /// Its title.
    pub title: String,
    /// The program's version.
    pub version: String,
    /// `full` or `quick`.
    pub effort: String,
    /// What was run.
    pub experiments: Vec<Experiment>,
    /// What the paper claims.
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

    /// Writes the reproduction into `dir`, which holds the sweeps of its experiments:
    /// `claims.json`, `reproduce.json`, the page and, last, the manifest.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a file cannot be written.
    pub fn write(&self, dir: &Path, manifest: Manifest) -> Result<()> {
        replace_json(&dir.join(CLAIMS), &self.claims)?;
        replace_json(&dir.join(REPRODUCTION), self)?;
        html::reproduction::write(dir, self)?;
        Manifest { kind: Kind::Reproduce, name: self.paper.clone(), ..manifest }.write(dir)
    }
}

/// Claims as in `claims.json`.
pub fn claims_json(claims: &[Claim]) -> String {
    crate::json_text(&claims)
}

/// A reader sees the old or the new file.
fn replace_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let next: PathBuf = path.with_extension("json.next");
    crate::write_file(&next, sealed_text(value).as_bytes())?;
    fs::rename(&next, path).at("replace", path)
}

/// Returns the times of a run's flows from the first byte sent to the last byte acknowledged, in
/// microseconds, sorted: of each class by its name, and of `all`. Flows without that
/// acknowledgement are left out. Returns `None` if the run did not keep its flows.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the table cannot be read,
/// [`Error::Malformed`](crate::Error::Malformed) if it is damaged.
pub fn acknowledged_times(run: &Path) -> Result<Option<Ordered<Vec<f64>>>> {
    let path = run.join(FLOWS);
    if !path.is_file() {
        return Ok(None);
    }
    let mut times: Vec<(String, Vec<f64>)> = vec![("all".to_string(), Vec::new())];
    Rows::open(&path)?.each(["class", "fct_sender_us"], |columns, count| {
        for row in 0..count {
            let (Some(class), Some(us)) = (columns[0].text(row), columns[1].float(row)) else {
                continue;
            };
            times[0].1.push(us);
            match times.iter_mut().skip(1).find(|(name, _)| name == class) {
                Some((_, of_class)) => of_class.push(us),
                None => times.push((class.to_string(), vec![us])),
            }
        }
        Ok(())
    })?;
    for (_, of_class) in &mut times {
        of_class.sort_by(f64::total_cmp);
    }
    Ok(Some(Ordered::from(times)))
}

/// Returns the completion times of a run's completed queries, in microseconds, in the order of
/// their ends. Returns `None` if the run did not keep its queries.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the table cannot be read,
/// [`Error::Malformed`](crate::Error::Malformed) if it is damaged.
pub fn query_times(run: &Path) -> Result<Option<Vec<f64>>> {
    let path = run.join(QUERIES);
    if !path.is_file() {
        return Ok(None);
    }
    let mut times = Vec::new();
    Rows::open(&path)?.each(["qct_us"], |columns, count| {
        times.extend((0..count).filter_map(|row| columns[0].float(row)));
        Ok(())
    })?;
    Ok(Some(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_judged_by_its_interval_with_its_ends() {
        let status = |accept, measured| {
            let mut claim = Claim { accept, ..Claim::default() };
            claim.judge(measured);
            claim.status
        };
        assert_eq!(Claim::default().status, Verdict::NotEvaluated);
        assert_eq!(status([None, Some(-40.0)], -40.0), Verdict::Holds);
        assert_eq!(status([None, Some(-40.0)], -39.9), Verdict::Fails);
        assert_eq!(status([Some(5.0), Some(25.0)], 4.9), Verdict::Fails);
        assert_eq!(status([Some(0.0), None], 1e9), Verdict::Holds);
        assert_eq!(status([None, None], f64::NAN), Verdict::NotEvaluated);
    }

    #[test]
    fn a_verdict_that_changes_within_the_spread_is_within_the_noise() {
        use IntervalKind::{Bootstrap95, Identical, Range};
        let noise = |accept, measured: f64, ends: [f64; 2], kind| {
            let mut claim = Claim { accept, ..Claim::default() };
            claim.judge(measured);
            claim.spread(Some(Interval { ends, kind }));
            claim.noise
        };
        let most = [None, Some(-40.0)];
        assert_eq!(noise(most, -50.0, [-60.0, -45.0], Bootstrap95), Noise::Beyond);
        assert_eq!(noise(most, -50.0, [-60.0, -45.0], Range), Noise::Agreed);
        assert_eq!(noise(most, -50.0, [-60.0, -35.0], Range), Noise::Within, "it would fail");
        assert_eq!(noise(most, -30.0, [-41.0, -20.0], Bootstrap95), Noise::Within, "it would hold");
        assert_eq!(
            noise(most, -30.0, [-39.0, -20.0], Bootstrap95),
            Noise::Beyond,
            "it fails anyway"
        );
        assert_eq!(
            noise([Some(5.0), Some(6.0)], 4.0, [3.0, 9.0], Range),
            Noise::Within,
            "both ends fail"
        );
        assert_eq!(noise(most, -50.0, [-50.0, -50.0], Identical), Noise::Identical);
        let mut one = Claim { accept: most, ..Claim::default() };
        one.judge(-50.0);
        one.spread(None);
        assert_eq!((one.noise, one.interval), (Noise::Unknown, None));
    }

    #[test]
    fn claims_have_the_contracts_fields_in_order() {
        let text = claims_json(&[Claim { accept: [None, Some(-40.0)], ..Claim::default() }]);
        let fields = [
            "id",
            "source",
            "statement",
            "kind",
            "world",
            "paper",
            "measured",
            "accept",
            "status",
            "note",
            "scenario",
            "unit",
        ];
        let places: Vec<usize> =
            fields.iter().map(|f| text.find(&format!("\"{f}\":")).unwrap()).collect();
        assert!(places.is_sorted() && text.contains("\"not-evaluated\""), "{text}");
        assert!(text.starts_with("[\n") && text.contains("\"paper\": null"), "{text}");
    }

    #[test]
    fn a_distribution_ends_at_its_slowest() {
        let times: Vec<f64> = (1..=1000).map(f64::from).collect();
        let points = distribution(&times);
        assert_eq!(points.first(), Some(&(1.0, 1.0)));
        assert_eq!(points.last(), Some(&(1000.0, 0.001)));
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(distribution(&[]), []);
        assert_eq!(distribution(&[7.0]), [(7.0, 1.0)]);
    }

    #[test]
    fn a_point_has_means_over_its_runs_and_only_reasons_that_occur() {
        let summary = |mean: f64, early: u64| {
            let mut summary = Summary::default();
            summary.qct_us.mean = Some(mean);
            summary.packets.dropped_by = vec![("early".into(), early), ("ttl".into(), 0)].into();
            summary
        };
        let (a, b) = (summary(10.0, 4), summary(30.0, 0));
        let point = LoadPoint::of(95.0, 3, &[(&a, Some(&[3.0, 1.0])), (&b, None)]);
        assert_eq!((point.runs, point.planned, point.mean_us.mean), (2, 3, Some(20.0)));
        assert_eq!(point.dropped_by, vec![("early".to_string(), 2.0)].into());
        assert_eq!(point.distribution, [(1.0, 1.0), (3.0, 0.5)]);
        assert_eq!(point.p99_us.mean, None);
    }

    #[test]
    fn each_run_keeps_its_numbers_by_seed() {
        let summary = |seed: u64, mean: Option<f64>| {
            let mut summary = Summary { seed, ..Summary::default() };
            summary.qct_us.mean = mean;
            summary
        };
        let (a, b) = (summary(7, Some(10.0)), summary(u64::MAX, None));
        let mut point = LoadPoint::of(95.0, 2, &[(&a, None), (&b, None)]);
        point.add("timeouts", "count", &[(7, 3.0), (u64::MAX, 5.0)]);
        assert_eq!(point.by_seed("mean_us"), [(7, 10.0)]);
        assert_eq!(point.by_seed("timeouts"), [(7, 3.0), (u64::MAX, 5.0)]);
        assert_eq!(point.numbers[0].estimate.mean, Some(4.0));
    }

    #[test]
    fn a_claim_is_about_its_schemes_at_its_load() {
        let claim = Claim {
            experiment: "x".into(),
            schemes: vec!["TLT".into()],
            load: Some(40.0),
            ..Claim::default()
        };
        assert!(claim.is_about("x", "TLT", 40.0));
        assert!(!claim.is_about("x", "TLT as released", 40.0) && !claim.is_about("x", "TLT", 80.0));
        assert!(!claim.is_about("y", "TLT", 40.0));
        assert!(Claim { schemes: Vec::new(), load: None, ..claim }.is_about("x", "any", 1.0));
    }
}
