//! The runs of a design, several at a time, into the folder of a sweep: what `sweep` and `reproduce` have in common.
//!
//! Invariant: a run that is finished in the folder is not made again, and one that fails stops no other.

use crate::execute::execute_into;
use crate::tell;
use crate::watch::{interrupted, progress_bar};
use indicatif::ProgressBar;
use millpond_claims::{Design, Error, Recipe};
use millpond_results::{Keep, Point, RunWriter, Status, SweepFolder, SweepRun};
use millpond_scenario::Scenario;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How runs are made.
pub struct Running<'a> {
    /// Before the progress.
    pub label: &'a str,
    /// Runs at a time.
    pub threads: usize,
    /// No progress.
    pub quiet: bool,
    /// What is kept of each.
    pub keep: Keep,
}

/// Runs what is not finished yet. Returns the failures: number of the run, and why.
pub fn run_all(
    running: &Running<'_>,
    scenario: &Scenario,
    design: &Design,
    folder: &SweepFolder,
) -> Result<Vec<(u32, String)>, Error> {
    for what in folder.damaged() {
        tell(format_args!("warning: {what}; what is damaged is run again"));
    }
    let all = design.sweep.runs().count();
    let jobs: Vec<(&Point, &SweepRun)> = design.sweep.runs().filter(|(_, run)| !folder.has(run)).collect();
    let finished = all - jobs.len();
    if finished > 0 && !running.quiet {
        let of = if running.label == "sweep" { String::new() } else { format!("{}: ", running.label) };
        tell(format_args!("{of}{finished} of {all} runs are finished already"));
    }
    let bar = progress_bar(all as u64, running.quiet);
    bar.set_prefix(running.label.to_string());
    bar.set_position(finished as u64);
    bar.reset_eta();
    let sweeper =
        Sweeper { running, scenario, design, folder, bar: &bar, next: AtomicUsize::new(0), ended: Mutex::default() };
    let workers = running.threads.min(jobs.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| sweeper.work(&jobs));
        }
    });
    bar.finish_and_clear();
    let mut ended = sweeper.ended.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if ended.complete + ended.failures.len() < jobs.len() {
        let finished = finished + ended.complete;
        let text = format!("{finished} of {all} runs are finished; the same command goes on with the others");
        return Err(Error::Stopped(text));
    }
    ended.failures.sort();
    Ok(ended.failures)
}

/// How the runs of this call ended.
#[derive(Default)]
struct Ended {
    complete: usize,
    failures: Vec<(u32, String)>,
}

/// What the threads share.
struct Sweeper<'a> {
    running: &'a Running<'a>,
    scenario: &'a Scenario,
    design: &'a Design,
    folder: &'a SweepFolder,
    bar: &'a ProgressBar,
    next: AtomicUsize,
    ended: Mutex<Ended>,
}

impl Sweeper<'_> {
    /// Runs one job after the other, until there are none or the user has enough.
    fn work(&self, jobs: &[(&Point, &SweepRun)]) {
        while !interrupted() {
            let Some((point, run)) = jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) else { break };
            let recipe = &self.design.recipes[point.point as usize - 1];
            // One run that panics is a bug to report, and no reason to lose the others.
            let result = catch_unwind(AssertUnwindSafe(|| self.run(recipe, run)))
                .unwrap_or_else(|_| Err("it panicked; this is a bug in millpond, please report it".to_string()));
            let mut ended = self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            match result {
                Ok(true) => ended.complete += 1,
                Ok(false) => break,
                Err(reason) => {
                    let what =
                        format!("run {} ({}, seed {}) failed: {reason}", run.run, values_text(point, " "), run.seed);
                    self.bar.suspend(|| tell(what));
                    ended.failures.push((run.run, reason));
                }
            }
            self.bar.set_message(match ended.failures.len() {
                0 => String::new(),
                n => format!("{n} failed"),
            });
            drop(ended);
            self.bar.inc(1);
        }
    }

    /// Whether the run came to its end; why not, if it failed.
    fn run(&self, recipe: &Recipe, run: &SweepRun) -> Result<bool, String> {
        let plan = self.scenario.plan(recipe.variant.as_deref(), &recipe.overrides, Some(run.seed));
        let plan = plan.map_err(|errors| errors.to_string())?;
        let dir = self.folder.begin(run).map_err(|e| e.to_string())?;
        let done = execute_into(
            &plan,
            1,
            |header| RunWriter::keeping(self.running.keep, &dir, header),
            None,
            None,
            &recipe.overrides,
        );
        match done.map(|summary| summary.status) {
            Ok(Status::Interrupted) => {
                let _ = self.folder.discard(&dir);
                Ok(false)
            }
            Ok(status) => {
                self.folder.end(run, &dir).map_err(|e| e.to_string())?;
                if status == Status::Failed {
                    Err("its audit failed; this is a bug in millpond".into())
                } else {
                    Ok(true)
                }
            }
            Err(error) => {
                let _ = self.folder.discard(&dir);
                Err(error.to_string())
            }
        }
    }
}

/// The values of a point: `KEY=VALUE KEY=VALUE`.
pub fn values_text(point: &Point, between: &str) -> String {
    let values: Vec<String> = point.values.iter().map(|(key, value)| format!("{key}={value}")).collect();
    values.join(between)
}
