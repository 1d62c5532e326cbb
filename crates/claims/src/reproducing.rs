//! A paper's runs and claims in a results folder.
//!
//! Invariant: what is finished in the folder is not run again, and makes way only by force.

use crate::VERSION;
use crate::chosen::{Chosen, all_claims};
use crate::counts::{Counts, Kinds};
use crate::design::Design;
use crate::error::Error;
use crate::experiment::{Effort, Experiment, Prepared};
use crate::found::Found;
use crate::ledger::{LEDGER, Ledger};
use crate::paper::Paper;
use millpond_core::random::Stream;
use millpond_results::{
    Claim as Judged, Experiment as Shown, Manifest, Point, REPRODUCTION, Reproduction, Status,
    Sweep, SweepFolder, SweepRun, Verdict, World, finish_sweep, not_a_result,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// In a results folder of this kind from its start on.
const MARK: &str = ".millpond-reproduce";

/// An experiment that is ready to run, or why it is left out.
pub type Planned<'a> = (&'a Experiment, Result<Prepared<'a>, &'a str>);

/// Why the ledger leaves a claim undecided.
const NOT_RECORDED: &str = "runs not yet recorded";

/// The program that makes the runs and prints how a reproduction goes on.
pub trait Runner {
    /// The manifest of what this program runs of a scenario.
    fn manifest(&self, scenario: &str) -> Manifest;

    fn print(&self, line: &str);

    /// Runs the runs of `design` that are not finished in `folder`. Returns the failed runs: number
    /// and reason.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the user interrupts, and any error that keeps all runs from being
    /// made.
    fn run(
        &self,
        prepared: &Prepared<'_>,
        design: &Design,
        folder: &SweepFolder,
    ) -> Result<Vec<(u32, String)>, Error>;
}

pub struct Reproducing {
    pub paper: Arc<Paper>,
    pub effort: Effort,
    /// First and last seed, in the place of the table's.
    pub seeds: Option<(u64, u64)>,
    /// Whether finished runs of another version or of a changed scenario make way.
    pub force: bool,
    pub out: PathBuf,
    /// The parts of it that are run and shown.
    pub chosen: Chosen,
    pub recording: Recording,
}

/// The use of a paper's ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Recording {
    /// None: claims are decided by the runs of the results folder.
    #[default]
    None,
    /// Claims are decided by the ledger and by the runs of the results folder; nothing is run.
    Decide,
    /// Runs that the ledger of this paper's folder lacks are made and added to it.
    Add(PathBuf),
}

/// A run of the ledger that was made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Its folder, below that of the results.
    pub run: String,
    /// The digest that the ledger has.
    pub recorded: String,
    /// The digest of the run made now, or the reason why there is none.
    pub found: Result<String, String>,
}

impl Repeated {
    /// Whether both are the same.
    pub fn is_same(&self) -> bool {
        self.found.as_ref() == Ok(&self.recorded)
    }
}

#[derive(Debug)]
pub struct Ended {
    /// All that there is of it.
    pub reproduction: Reproduction,
    pub claims: Vec<Judged>,
    pub failed: usize,
    /// Runs that stalled: their experiments decide no claim.
    pub stalled: usize,
    /// The runs that were asked for; those of the ledger, if that decided.
    pub runs: usize,
}

impl Ended {
    /// Counts the runs of a sweep that has ended.
    fn count(&mut self, sweep: &Sweep) {
        let with = |of: fn(Status) -> bool| {
            sweep.runs().filter(move |(_, run)| run.status.is_some_and(of)).count()
        };
        let all = sweep.runs().count();
        self.runs += all;
        self.failed += all - with(Status::is_final);
        self.stalled += with(|status| status == Status::Stalled);
    }
}

impl Reproducing {
    pub fn is_chosen(&self, experiment: &Experiment) -> bool {
        self.chosen.experiments.contains(&experiment.name)
    }

    /// Runs the chosen experiments as far as they are not finished. Then decides all claims by all
    /// finished runs, even if the user interrupts.
    ///
    /// # Errors
    /// [`Error::Usage`] if the folder holds another paper or effort, [`Error::Runs`] if it cannot
    /// be made, [`Error::Results`] if it holds something else or a file cannot be read or written,
    /// and the errors of [`Reproducing::prepare`]. [`Error::Stopped`] if the user interrupts, after
    /// the results so far are written.
    pub fn run(&self, runner: &dyn Runner) -> Result<Ended, Error> {
        let mut ledger = self.ledger()?;
        if self.recording != Recording::Decide {
            self.take_folder()?;
        }
        let manifest = runner.manifest("");
        let paper = &self.paper;
        let of = Reproduction {
            reading: paper.reading.clone(),
            causes: paper.causes.clone(),
            ..Reproduction::new(&paper.name, &paper.title, VERSION, self.effort.name())
        };
        let mut ended =
            Ended { reproduction: of, claims: Vec::new(), failed: 0, stalled: 0, runs: 0 };
        let (mut all_found, mut stopped) = (Vec::new(), None);
        let prepared = self.prepare(false)?;
        runner.print(&format!("{}: {}", self.paper.name, self.counts(&prepared)));
        for (experiment, prepared) in prepared {
            let (found, failures, note) = match prepared {
                Ok(prepared) => {
                    let mut note = prepared.runs.note.to_string();
                    let is_run = self.is_chosen(experiment) && stopped.is_none();
                    if is_run && self.recording != Recording::Decide {
                        match self.run_one(&prepared, &ledger, runner) {
                            Ok(sweep) => ended.count(&sweep),
                            Err(Error::Stopped(text)) => {
                                let and = if note.is_empty() { "" } else { "; " };
                                note = format!("{note}{and}interrupted");
                                stopped = Some(text);
                            }
                            Err(other) => return Err(other),
                        }
                    }
                    let found = self.found(&prepared, &mut ledger, runner)?;
                    if self.recording == Recording::Decide {
                        ended.runs += found.arms.iter().map(|arm| arm.runs.len()).sum::<usize>();
                    }
                    (found, prepared.failures(&self.folder_of(experiment)), note)
                }
                Err(why) => {
                    let (name, left_out) = (experiment.name.clone(), Some(why.to_string()));
                    let found = Found { name, left_out, arms: Vec::new() };
                    (found, Vec::new(), format!("left out by --quick: {why}"))
                }
            };
            let shown = experiment.shown(&self.paper.claims, &found, &note);
            ended.reproduction.experiments.push(Shown { failures, ..shown });
            all_found.push((experiment, found));
        }
        ended.reproduction.claims = self.judge(&all_found);
        let status = match stopped {
            Some(_) => Status::Interrupted,
            None if ended.failed > 0 => Status::Failed,
            None => Status::Complete,
        };
        if self.recording != Recording::Decide {
            ended.reproduction.write(&self.out, Manifest { status, ..manifest })?;
        }
        if let Some(text) = stopped {
            let page = self.out.join("report.html");
            return Err(Error::Stopped(format!(
                "{text}; report of what there is: {}",
                page.display()
            )));
        }
        ended.claims =
            ended.reproduction.claims.iter().filter(|claim| self.shows(claim)).cloned().collect();
        Ok(ended)
    }

    /// Reads an experiment's runs from folder and ledger, and records those that the ledger lacks.
    fn found(
        &self,
        prepared: &Prepared<'_>,
        ledger: &mut Ledger,
        runner: &dyn Runner,
    ) -> Result<Found, Error> {
        let mut found = match self.recording {
            Recording::Decide => prepared.planned(),
            _ => prepared.found(&self.folder_of(prepared.of))?,
        };
        self.record(prepared, &found, ledger, runner)?;
        if self.recording != Recording::None {
            ledger.fill(prepared, &mut found);
        }
        Ok(found)
    }

    fn judge(&self, all: &[(&Experiment, Found)]) -> Vec<Judged> {
        let judged = self.paper.claims.iter().filter_map(|claim| {
            let (experiment, found) =
                all.iter().find(|(experiment, _)| experiment.name == claim.experiment())?;
            let judged = claim.judge(&self.paper, experiment, found, self.effort);
            let is_open = judged.status == Verdict::NotEvaluated && found.lacks_runs();
            let is_missing = is_open && self.recording == Recording::Decide;
            Some(if is_missing { Judged { note: NOT_RECORDED.into(), ..judged } } else { judged })
        });
        judged.collect()
    }

    /// Whether a claim is among the chosen.
    pub fn shows(&self, claim: &Judged) -> bool {
        let id =
            claim.id.strip_prefix(self.paper.name.as_str()).and_then(|id| id.strip_prefix('-'));
        id.is_some_and(|id| self.is_shown(id))
    }

    fn is_shown(&self, claim: &str) -> bool {
        self.chosen.claims.iter().any(|chosen| chosen == claim)
    }

    /// Plans all experiments. An experiment that this effort leaves out has the reason instead.
    ///
    /// # Errors
    /// The first error of [`Experiment::prepare`].
    pub fn prepare<'a>(&'a self, estimate: bool) -> Result<Vec<Planned<'a>>, Error> {
        let plan = |experiment: &'a Experiment| {
            let prepared = match experiment.runs(self.effort) {
                Ok(runs) => Ok(experiment.prepare(runs, self.seeds, estimate)?),
                Err(why) => Err(why),
            };
            Ok((experiment, prepared))
        };
        self.paper.experiments.iter().map(plan).collect()
    }

    /// The counts of the chosen part of what was planned.
    pub fn counts(&self, prepared: &[Planned<'_>]) -> Counts {
        let claims = all_claims(&self.paper).filter(|(id, _)| self.is_shown(id));
        let claims = Kinds::of(claims.map(|(_, kind)| kind));
        let mut counts = Counts { claims, ..Counts::default() };
        let chosen = prepared.iter().filter(|(experiment, _)| self.is_chosen(experiment));
        for (experiment, prepared) in
            chosen.filter_map(|(e, prepared)| Some((e, prepared.as_ref().ok()?)))
        {
            let out = self.folder_of(experiment);
            let design = prepared.design.grown(&out);
            let goes_on = is_of(&design.sweep, &out);
            counts.experiments += 1;
            counts.runs += design.sweep.runs().count();
            counts.finished += design
                .sweep
                .runs()
                .filter(|(_, run)| goes_on && run.finished(&out).is_some())
                .count();
        }
        counts
    }

    pub fn folder_of(&self, experiment: &Experiment) -> PathBuf {
        self.out.join(&experiment.name)
    }

    /// Makes the results folder, or goes on in it; refuses what is none of this command's.
    fn take_folder(&self) -> Result<(), Error> {
        let out = &self.out;
        let cannot =
            |e: std::io::Error| Error::Runs(format!("cannot create {}: {e}", out.display()));
        let is_ours = out.join(MARK).is_file();
        let is_empty = std::fs::read_dir(out).map_or(true, |mut entries| entries.next().is_none());
        if !is_ours && !is_empty && !self.force {
            return Err(not_a_result(out).into());
        }
        if out.join(REPRODUCTION).is_file() && !self.force {
            let old = Reproduction::read(out)?;
            let (was, is) = (
                (old.paper.as_str(), old.effort.as_str()),
                (self.paper.name.as_str(), self.effort.name()),
            );
            if was != is {
                let text = format!(
                    "{} holds {} ({}); choose another --out, or replace it with --force",
                    out.display(),
                    was.0,
                    was.1
                );
                return Err(Error::Usage(text));
            }
        }
        let scenarios = out.join("scenarios");
        std::fs::create_dir_all(&scenarios).map_err(cannot)?;
        std::fs::write(out.join(MARK), "").map_err(cannot)?;
        for experiment in &self.paper.experiments {
            std::fs::write(scenarios.join(format!("{}.toml", experiment.name)), &experiment.text)
                .map_err(cannot)?;
        }
        Ok(())
    }

    /// The ledger that decides, or that is added to; an empty one where neither is asked for.
    fn ledger(&self) -> Result<Ledger, Error> {
        match &self.recording {
            Recording::None => Ok(Ledger::default()),
            Recording::Decide => Ledger::of(&self.paper),
            Recording::Add(folder) => Ledger::read(folder),
        }
    }

    /// Repeats runs of the ledger, so many of the chosen experiments', in the results folder: all
    /// with `draw` choose the same. Runs of the lab are never the same again, and left out.
    ///
    /// # Errors
    /// As [`Reproducing::run`].
    pub fn check(&self, n: usize, draw: u64, runner: &dyn Runner) -> Result<Vec<Repeated>, Error> {
        let ledger = Ledger::of(&self.paper)?;
        let mut prepared = Vec::new();
        for (experiment, planned) in self.prepare(false)? {
            if self.is_chosen(experiment) && experiment.world != World::Lab {
                prepared.extend(planned.ok());
            }
        }
        let mut left: Vec<(usize, String, u64, String)> = Vec::new();
        for (at, prepared) in prepared.iter().enumerate() {
            let of = ledger.digests(prepared);
            left.extend(of.map(|(id, seed, digest)| (at, id.into(), seed, digest.into())));
        }
        let mut dice = Stream::new(draw, "ledger");
        let mut drawn = Vec::new();
        while drawn.len() < n && !left.is_empty() {
            drawn.push(left.swap_remove((dice.bits() % left.len() as u64) as usize));
        }
        let mut repeated = Vec::new();
        for (at, prepared) in prepared.iter().enumerate() {
            let own: Vec<_> = drawn.iter().filter(|(of, ..)| *of == at).collect();
            let mut design = prepared.design.clone();
            for point in &mut design.sweep.points {
                let is_drawn = |seed| {
                    own.iter().any(|(_, id, other, _)| (id, *other) == (&point.identity, seed))
                };
                point.runs.retain(|run| is_drawn(run.seed));
            }
            if own.is_empty() {
                continue;
            }
            let out = self.folder_of(prepared.of);
            let folder = SweepFolder::open(&out, &design.sweep, self.force)?;
            let failures = runner.run(prepared, &design, &folder)?;
            for (point, run) in design.sweep.runs() {
                let recorded =
                    own.iter().find(|(_, id, seed, _)| (id, *seed) == (&point.identity, run.seed));
                let failure = failures.iter().find(|(number, _)| *number == run.run);
                let found = run.finished(&out).map(|summary| summary.digest());
                repeated.push(Repeated {
                    run: format!("{}/{}", prepared.of.name, run.folder),
                    recorded: recorded.map(|of| of.3.clone()).unwrap_or_default(),
                    found: found.ok_or_else(|| {
                        failure.map_or("was not made".into(), |(_, why)| why.clone())
                    }),
                });
            }
        }
        Ok(repeated)
    }

    /// Adds to the ledger what was found and is not there, and writes it.
    fn record(
        &self,
        prepared: &Prepared<'_>,
        found: &Found,
        ledger: &mut Ledger,
        runner: &dyn Runner,
    ) -> Result<(), Error> {
        let Recording::Add(folder) = &self.recording else { return Ok(()) };
        let added = ledger.add(&self.paper, prepared, found);
        if added > 0 {
            ledger.write(&self.paper, folder)?;
            let (name, file) = (&prepared.of.name, folder.join(LEDGER));
            runner.print(&format!("{name}: {added} runs added to {}", file.display()));
        }
        Ok(())
    }

    /// Runs what is not finished of one experiment, and not in the ledger.
    fn run_one(
        &self,
        prepared: &Prepared<'_>,
        ledger: &Ledger,
        runner: &dyn Runner,
    ) -> Result<Sweep, Error> {
        let (experiment, out) = (prepared.of, self.folder_of(prepared.of));
        for warning in &prepared.design.warnings {
            runner.print(&format!("warning: {}: {warning}", experiment.name));
        }
        let mut design = prepared.design.clone();
        for point in &mut design.sweep.points {
            let is_left = |seed| ledger.run(experiment, &point.identity, seed).is_none();
            point.runs.retain(|run| is_left(run.seed));
        }
        let design = design.grown(&out);
        if design.sweep.runs().next().is_none() {
            return Ok(design.sweep);
        }
        if let Err(why) = experiment.enough(design.sweep.seeds.len(), self.effort) {
            runner.print(&format!("warning: {why}: its claims will not be decided"));
        }
        self.check_losses(&design.sweep, &out)?;
        // By force, since the plan may have grown; what would be lost by it has just been checked.
        let folder = SweepFolder::open(&out, &design.sweep, Sweep::read(&out).is_ok())?;
        let manifest = Manifest {
            name: design.sweep.name.clone(),
            seed: design.sweep.seeds.first().copied().unwrap_or_default(),
            overrides: design.sweep.overrides.clone(),
            ..runner.manifest(&experiment.text)
        };
        let failures = runner.run(prepared, &design, &folder).map_err(|error| match error {
            Error::Stopped(text) => Error::Stopped(format!("{}: {text}", experiment.name)),
            other => other,
        })?;
        Ok(finish_sweep(&folder, &design.sweep, &failures, manifest)?)
    }

    /// Finished runs of a changed scenario or of another version make way only with `--force`.
    fn check_losses(&self, sweep: &Sweep, out: &Path) -> Result<(), Error> {
        let Ok(old) = Sweep::read(out) else { return Ok(()) };
        let stays = |point: &Point, run: &SweepRun| {
            old.results == sweep.results
                && sweep.runs().any(|(p, r)| p.identity == point.identity && r.folder == run.folder)
        };
        let lost = old
            .runs()
            .filter(|(point, run)| !stays(point, run) && run.finished(out).is_some())
            .count();
        if lost == 0 || self.force {
            return Ok(());
        }
        let text = format!(
            "{} holds {lost} finished runs of another version of the experiment; choose another \
             --out, or replace them with --force",
            out.display()
        );
        Err(Error::Runs(text))
    }
}

/// Whether what is in `out` is of this sweep, if perhaps of fewer points or seeds.
pub fn is_of(sweep: &Sweep, out: &Path) -> bool {
    let Ok(old) = Sweep::read(out) else { return false };
    let same = |point: &Point| {
        old.points
            .iter()
            .filter(|other| other.values == point.values)
            .all(|other| other.identity == point.identity)
    };
    old.results == sweep.results && sweep.points.iter().all(same)
}
