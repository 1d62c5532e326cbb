//! A paper's ledger: the numbers of runs that were made once, `runs.jsonl` beside `paper.toml`.
//!
//! A line is a run, in the order of experiments, points and seeds: its key (the scenario's
//! identity, the seed and the version of results), the digest of what happened, and of each
//! statistic that a claim of the paper uses the value, the samples beyond it, and how many flows or
//! queries completed of those that started. Nothing in it depends on the machine. Two ledgers are
//! joined by joining their lines.
//!
//! Invariant: a claim that is decided by the ledger has the verdict and the numbers that the runs
//! themselves give it.

use crate::error::Error;
use crate::experiment::{Experiment, Prepared};
use crate::file::built_file;
use crate::found::{Arm, Found};
use crate::paper::Paper;
use crate::statistic::{Number, Numbers, Run, Statistic};
use millpond_results::{Point, Status, Summary, SweepRun};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Beside `paper.toml`.
pub const LEDGER: &str = "runs.jsonl";

/// A run of the ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// [`Summary::digest`].
    pub digest: String,
    pub status: Status,
    /// The share of its queries that completed, and their mean with open ones at the horizon.
    pub queries: [Option<f64>; 2],
    pub numbers: Arc<Numbers>,
}

/// An experiment, the hash of a scenario, a seed. Experiments that share a scenario have their own
/// statistics.
type Key = (String, String, u64);

/// The runs of a paper's experiments that are recorded, of this version of results.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    runs: BTreeMap<Key, Entry>,
    /// Lines of another version of results, which decide nothing here.
    pub stale: usize,
}

/// A line of the file. Statistics are those of the line's experiment, in their order.
#[derive(Serialize, Deserialize)]
struct Line {
    experiment: String,
    scenario: String,
    seed: u64,
    results: u32,
    digest: String,
    status: Status,
    #[serde(default, skip_serializing_if = "is_none")]
    queries: [Option<f64>; 2],
    numbers: Vec<(Statistic, Number)>,
}

fn is_none(queries: &[Option<f64>; 2]) -> bool {
    queries.iter().all(Option::is_none)
}

impl Ledger {
    /// Reads the ledger of a paper's folder; an empty one where there is no file.
    ///
    /// # Errors
    /// If it cannot be read, or a line is none of a ledger's: the message has file and line.
    pub fn read(folder: &Path) -> Result<Ledger, Error> {
        let path = folder.join(LEDGER);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ledger::parse(&path.display().to_string(), &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Ledger::default()),
            Err(error) => Err(Error::Usage(format!("{}: {error}", path.display()))),
        }
    }

    /// The ledger of a paper: compiled in, or in its folder.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn of(paper: &Paper) -> Result<Ledger, Error> {
        match &paper.folder {
            Some(folder) => Ledger::read(folder),
            None => Ledger::parse(
                &format!("papers/{}/{LEDGER}", paper.name),
                built_file(paper, LEDGER).unwrap_or_default(),
            ),
        }
    }

    /// Reads a ledger's text; `name` stands in errors.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn parse(name: &str, text: &str) -> Result<Ledger, Error> {
        let mut ledger = Ledger::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let line: Line = serde_json::from_str(line)
                .map_err(|e| Error::Usage(format!("{name}:{}: {e}", at + 1)))?;
            if line.results != millpond_core::RESULTS {
                ledger.stale += 1;
                continue;
            }
            let Line { digest, status, queries, numbers, .. } = line;
            let numbers = Arc::new(numbers.into_iter().collect());
            let entry = Entry { digest, status, queries, numbers };
            ledger.runs.insert((line.experiment, line.scenario, line.seed), entry);
        }
        Ok(ledger)
    }

    /// Its run of an experiment, by the scenario's hash.
    pub fn run(&self, of: &Experiment, scenario: &str, seed: u64) -> Option<&Entry> {
        self.runs.get(&(of.name.clone(), scenario.to_string(), seed))
    }

    /// How many runs it has.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds what was found of an experiment and is not there. Returns how many runs that is.
    pub fn add(&mut self, paper: &Paper, prepared: &Prepared<'_>, found: &Found) -> usize {
        let before = self.len();
        let statistics = statistics(paper, prepared.of);
        for (point, arm) in prepared.design.sweep.points.iter().zip(&found.arms) {
            for run in arm.runs.iter().filter(|run| run.numbers.is_none()) {
                let key = (prepared.of.name.clone(), point.identity.clone(), run.seed);
                self.runs.entry(key).or_insert_with(|| Entry::of(run, &statistics));
            }
        }
        self.len() - before
    }

    /// Adds to what was found of an experiment the runs that are recorded and were not there. All
    /// that are planned count.
    pub fn fill(&self, prepared: &Prepared<'_>, found: &mut Found) {
        for (point, arm) in prepared.design.sweep.points.iter().zip(&mut found.arms) {
            let Arm { planned, runs, .. } = arm;
            // A sweep beside the ledger is planned without the runs that this has.
            let further = point.runs.iter().map(|run| run.seed);
            planned.extend(further.filter(|seed| !planned.contains(seed)).collect::<Vec<_>>());
            planned.sort_unstable();
            let is_missing = |seed: &&u64| runs.iter().all(|run| run.seed != **seed);
            let missing: Vec<u64> = planned.iter().filter(is_missing).copied().collect();
            for seed in missing {
                let entry = self.run(prepared.of, &point.identity, seed);
                runs.extend(entry.map(|entry| entry.run(seed)));
            }
            runs.sort_by_key(|run| run.seed);
        }
    }

    /// The digests of an experiment's runs: the scenario's hash, the seed, the digest.
    pub fn digests<'a>(
        &'a self,
        prepared: &'a Prepared<'_>,
    ) -> impl Iterator<Item = (&'a str, u64, &'a str)> {
        let of = move |(point, run): (&'a Point, &'a SweepRun)| {
            let entry = self.run(prepared.of, &point.identity, run.seed)?;
            Some((point.identity.as_str(), run.seed, entry.digest.as_str()))
        };
        prepared.design.sweep.runs().filter_map(of)
    }

    /// Its text, a line a run: by experiment in the order of the paper, scenario and seed.
    pub fn text(&self, paper: &Paper) -> String {
        let place = |name: &str| paper.experiments.iter().position(|own| own.name == name);
        let mut lines: Vec<_> = self.runs.iter().collect();
        lines.sort_by_key(|(key, _)| (place(&key.0), *key));
        let line = |((experiment, scenario, seed), entry): (&Key, &Entry)| {
            let Entry { digest, status, queries, numbers } = entry.clone();
            let line = Line {
                experiment: experiment.clone(),
                scenario: scenario.clone(),
                seed: *seed,
                results: millpond_core::RESULTS,
                digest,
                status,
                queries,
                numbers: numbers.iter().map(|(of, number)| (of.clone(), *number)).collect(),
            };
            serde_json::to_string(&line).expect("a line has no map with keys of another kind")
                + "\n"
        };
        lines.into_iter().map(line).collect()
    }

    /// Writes it into a paper's folder; a reader sees the old or the new one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, paper: &Paper, folder: &Path) -> Result<(), Error> {
        let (path, part) = (folder.join(LEDGER), folder.join(format!("{LEDGER}.partial")));
        std::fs::write(&part, self.text(paper))
            .and_then(|()| std::fs::rename(&part, &path))
            .map_err(|e| Error::Runs(format!("cannot write {}: {e}", path.display())))
    }
}

impl Entry {
    fn of(run: &Run, statistics: &BTreeSet<Statistic>) -> Entry {
        let qct = &run.summary.qct_us;
        let number = |of: &Statistic| Number(of.of_run(run), of.beyond(run), of.completed(run));
        Entry {
            digest: run.summary.digest(),
            status: run.summary.status,
            queries: [qct.completed_fraction, qct.mean_restricted],
            numbers: Arc::new(statistics.iter().map(|of| (of.clone(), number(of))).collect()),
        }
    }

    /// The run as claims see it.
    fn run(&self, seed: u64) -> Run {
        let mut summary = Summary { seed, status: self.status, ..Summary::default() };
        [summary.qct_us.completed_fraction, summary.qct_us.mean_restricted] = self.queries;
        let numbers = Some(Arc::clone(&self.numbers));
        Run { seed, summary: Arc::new(summary), numbers, ..Run::default() }
    }
}

/// The statistics of an experiment that the paper's claims use, and those that it shows.
fn statistics(paper: &Paper, experiment: &Experiment) -> BTreeSet<Statistic> {
    let of_claims = paper
        .claims
        .iter()
        .filter(|claim| claim.experiment() == experiment.name)
        .flat_map(|claim| claim.measure.statistics())
        .cloned();
    // Cells compare both with published curves.
    let of_curves = [Statistic::Mean, Statistic::P99];
    let of_curves = of_curves.into_iter().filter(|_| !experiment.published.is_empty());
    let shown = experiment.shows.iter().map(|(_, shown)| shown.clone());
    of_claims.chain(of_curves).chain(shown).collect()
}
