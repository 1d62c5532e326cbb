//! The runs of a design, several at a time, into the folder of a sweep: what sweeps and
//! reproductions have in common.
//!
//! Invariant: a run that is finished in the folder is not made again, and one that fails stops no
//! other.

use crate::control::share_out;
use crate::run::write;
use crate::{Options, Plan, Runs, Status};
use millpond_claims::{Design, Error, Recipe};
use millpond_results::{Keep, Point, RunWriter, SweepFolder, SweepRun};
use millpond_scenario::Scenario;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

/// Runs what is not finished yet, and keeps `keep` of each. Returns the failures: number of the
/// run, and why. `label` is `sweep`, or the experiment's name.
pub(crate) fn run_all(
    label: &str,
    keep: Keep,
    scenario: &Scenario,
    design: &Design,
    folder: &SweepFolder,
    options: &Options<'_>,
) -> Result<Vec<(u32, String)>, Error> {
    let control = options.control;
    for what in folder.damaged() {
        control.warn(&format!("warning: {what}; what is damaged is run again"));
    }
    let all = design.sweep.runs().count();
    let jobs: Vec<(&Point, &SweepRun)> =
        design.sweep.runs().filter(|(_, run)| !folder.has(run)).collect();
    let finished = all - jobs.len();
    if finished > 0 {
        let of = if label == "sweep" { String::new() } else { format!("{label}: ") };
        control.note(&format!("{of}{finished} of {all} runs are finished already"));
    }
    let state = Runs { label, all, ended: finished, ..Runs::default() };
    control.runs(&state);
    let ended = Mutex::default();
    let sweeper = Sweeper { keep, scenario, design, folder, options, state, ended };
    share_out(&jobs, options.at_once(jobs.len()), control, |(point, run)| sweeper.work(point, run));
    let mut ended = sweeper.ended.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    control.runs(&Runs { is_over: true, ..ended.of(&state) });
    if ended.complete + ended.failures.len() < jobs.len() {
        let finished = finished + ended.complete;
        let text = format!(
            "{finished} of {all} runs are finished; the same command goes on with the others"
        );
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

impl Ended {
    /// Added to what there was before.
    fn of<'a>(&self, before: &Runs<'a>) -> Runs<'a> {
        let failed = self.failures.len();
        Runs { ended: before.ended + self.complete + failed, failed, ..*before }
    }
}

/// State that the threads share.
struct Sweeper<'a> {
    keep: Keep,
    scenario: &'a Scenario,
    design: &'a Design,
    folder: &'a SweepFolder,
    options: &'a Options<'a>,
    /// Before this call.
    state: Runs<'a>,
    ended: Mutex<Ended>,
}

impl Sweeper<'_> {
    /// Makes a run. Returns false if it was interrupted.
    fn work(&self, point: &Point, run: &SweepRun) -> bool {
        let recipe = &self.design.recipes[point.point as usize - 1];
        // One run that panics is a bug to report, and no reason to lose the others.
        let result =
            catch_unwind(AssertUnwindSafe(|| self.run(recipe, run))).unwrap_or_else(|_| {
                Err("it panicked; this is a bug in millpond, please report it".to_string())
            });
        let mut ended = self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match result {
            Ok(true) => ended.complete += 1,
            Ok(false) => return false,
            Err(reason) => {
                let what = format!(
                    "run {} ({}, seed {}) failed: {reason}",
                    run.run,
                    values_text(point, " "),
                    run.seed
                );
                self.options.control.warn(&what);
                ended.failures.push((run.run, reason));
            }
        }
        self.options.control.runs(&ended.of(&self.state));
        true
    }

    /// Whether the run came to its end; why not, if it failed.
    fn run(&self, recipe: &Recipe, run: &SweepRun) -> Result<bool, String> {
        let began = Instant::now();
        let plan = self.scenario.plan(recipe.variant.as_deref(), &recipe.overrides, Some(run.seed));
        let plan = plan.map_err(|errors| errors.to_string())?;
        let dir = self.folder.begin(run).map_err(|e| e.to_string())?;
        let plan = Plan::new(plan, &recipe.overrides).on(Some(1)).since(began);
        let plan =
            plan.prepared(|plan| self.options.world.prepare(plan)).map_err(|e| e.to_string())?;
        let open = |header| RunWriter::keeping(self.keep, &dir, header);
        let done = write(&plan, open, None, None, self.options);
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
fn values_text(point: &Point, between: &str) -> String {
    let values: Vec<String> =
        point.values.iter().map(|(key, value)| format!("{key}={value}")).collect();
    values.join(between)
}
