//! `millpond sweep`: many runs, several at a time, that can be stopped and gone on with.

use crate::args::{Keep, SweepArgs};
use crate::execute::execute_into;
use crate::failure::Failure;
use crate::grid::{Design, Recipe, design};
use crate::run::{all_cores, default_out, load};
use crate::say;
use crate::watch::{catch_interrupts, interrupted, progress_bar};
use indicatif::ProgressBar;
use millpond_results::{Manifest, Point, RunWriter, Status, Sweep, SweepFolder, SweepRun, finish_sweep, sweep_table};
use millpond_scenario::Scenario;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Packet-hops a second and core that an estimate assumes where no run has been made yet.
const HOPS_PER_S: f64 = 1e7;

/// Sweeps.
pub fn sweep(args: &SweepArgs) -> Result<(), Failure> {
    let (scenario, text) = load(&args.scenario)?;
    let design = design(&scenario, args)?;
    let out = default_out(&args.output.out, &format!("{}-sweep", design.sweep.name));
    if args.dry_run {
        return dry_run(args, &design, &out);
    }
    if !args.output.quiet {
        design.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
    let folder = SweepFolder::open(&out, &design.sweep, args.output.force)?;
    let manifest = Manifest {
        name: design.sweep.name.clone(),
        seed: design.sweep.seeds.first().copied().unwrap_or_default(),
        overrides: design.sweep.overrides.clone(),
        ..Manifest::new(env!("CARGO_PKG_VERSION"), text)
    };
    catch_interrupts();
    let failures = run_all(args, &scenario, &design, &folder)?;
    let sweep = finish_sweep(&folder, &design.sweep, &failures, manifest)?;
    if args.output.json {
        let text = serde_json::to_string_pretty(&sweep).map_err(|e| Failure::Usage(e.to_string()))?;
        say(&text);
    } else if !args.output.quiet {
        say(&sweep_table(&sweep));
        say(&format!("results: {}  (sweep.parquet, sweep.json)", out.display()));
    }
    let failed = sweep.runs().filter(|(_, run)| run.status != Some(Status::Complete)).count();
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Runs(format!("{failed} of {} runs failed", sweep.runs().count()))),
    }
}

/// Runs what is not finished yet. Returns the failures: number of the run, and why.
fn run_all(
    args: &SweepArgs,
    scenario: &Scenario,
    design: &Design,
    folder: &SweepFolder,
) -> Result<Vec<(u32, String)>, Failure> {
    let all = design.sweep.runs().count();
    let jobs: Vec<(&Point, &SweepRun)> =
        design.sweep.runs().filter(|(_, run)| run.finished(folder.path()).is_none()).collect();
    let finished = all - jobs.len();
    if finished > 0 && !args.output.quiet {
        eprintln!("{finished} of {all} runs are finished already");
    }
    let bar = progress_bar(all as u64, args.output.quiet);
    bar.set_prefix("sweep");
    bar.set_position(finished as u64);
    bar.reset_eta();
    let sweeper =
        Sweeper { args, scenario, design, folder, bar: &bar, next: AtomicUsize::new(0), ended: Mutex::default() };
    let workers = args.threads.unwrap_or_else(all_cores).min(jobs.len());
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
        return Err(Failure::Stopped(text));
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
    args: &'a SweepArgs,
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
                    let values: Vec<String> =
                        point.values.iter().map(|(key, value)| format!("{key}={value}")).collect();
                    let what = format!("run {} ({}, seed {}) failed: {reason}", run.run, values.join(" "), run.seed);
                    self.bar.suspend(|| eprintln!("{what}"));
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
            |header| match self.args.keep {
                Keep::Summary => RunWriter::summary_only(&dir, header),
                Keep::All => RunWriter::new(&dir, header),
            },
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

/// Says what would be run, and how long it may take.
fn dry_run(args: &SweepArgs, design: &Design, out: &Path) -> Result<(), Failure> {
    let sweep = &design.sweep;
    let resumes = Sweep::read(out).is_ok_and(|old| sweep.change_from(&old).is_none());
    let (mut left, mut walls, mut hops) = (Vec::new(), Vec::new(), Some(0.0));
    for (point, run) in sweep.runs() {
        match run.finished(out).filter(|_| resumes) {
            Some(summary) => walls.push(summary.run.wall_s),
            None => {
                left.push(run.run);
                hops = hops.zip(design.hops[point.point as usize - 1]).map(|(a, b)| a + b);
            }
        }
    }
    let cores = args.threads.unwrap_or_else(all_cores).min(left.len()).max(1);
    let (seconds, basis) = match hops {
        _ if !walls.is_empty() => {
            let mean = walls.iter().sum::<f64>() / walls.len() as f64;
            (Some(mean * left.len() as f64 / cores as f64), "as long as the finished runs took".to_string())
        }
        Some(hops) => {
            let basis = format!(
                "{:.1} M packet-hops by the arrivals, at an assumed {} M/s a core",
                hops / 1e6,
                HOPS_PER_S / 1e6
            );
            (Some(hops / HOPS_PER_S / cores as f64), basis)
        }
        None => (None, "closed-loop traffic: only a run tells".to_string()),
    };
    if args.output.json {
        let value = serde_json::json!({
            "out": out, "sweep": sweep, "runs": sweep.runs().count(), "left": left,
            "estimate_s": seconds, "estimate_basis": basis, "threads": cores,
        });
        say(&value.to_string());
        return Ok(());
    }
    for (point, run) in sweep.runs() {
        let values: Vec<String> = point.values.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let state = if left.contains(&run.run) { "" } else { "  (finished)" };
        say(&format!("{:>6}  seed {:<4} {}{state}", run.run, run.seed, values.join("  ")));
    }
    for point in sweep.points.iter().filter(|point| point.skipped.is_some()) {
        let values: Vec<String> = point.values.iter().map(|(key, value)| format!("{key}={value}")).collect();
        say(&format!("left out: {}: {}", values.join("  "), point.skipped.as_deref().unwrap_or_default()));
    }
    let (points, all) = (sweep.points.iter().filter(|p| p.skipped.is_none()).count(), sweep.runs().count());
    say(&format!(
        "{points} points × {} seeds = {all} runs, {} to do, {cores} at a time",
        sweep.seeds.len(),
        left.len()
    ));
    let span = seconds.map_or("unknown".to_string(), span);
    say(&format!("estimate: {span} ({basis}); results would go to {}", out.display()));
    Ok(())
}

/// A rough span.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "about a second or less".to_string(),
        s if s < 90.0 => format!("about {s:.0} s"),
        s if s < 5_400.0 => format!("about {:.0} min", s / 60.0),
        s => format!("about {:.1} h", s / 3_600.0),
    }
}
