//! `millpond compare`: the variants of a scenario (and of `--vary`), one run each a seed, spread over the cores.
//!
//! Invariant: a compare that is stopped, in whatever way, keeps its finished runs beside its place,
//! and the same command goes on with the others. A run is known by its scenario as resolved, and by
//! the program's version and revision.

use crate::args::CompareArgs;
use crate::execute::execute;
use crate::failure::Failure;
use crate::revision::{self, REVISION, VERSION};
use crate::run::{default_out, load, shows};
use crate::say;
use crate::tell;
use crate::threads;
use crate::values::values;
use crate::watch::{catch_interrupts, interrupted, progress_bar};
use millpond_claims::check_runs;
use millpond_results::{
    Folder, Kind, Manifest, Owner, Status, Summary, VariantResult, compare_table, finish_compare, run_folder,
    sizes_table, without_shows,
};
use millpond_scenario::plan::Plan;
use millpond_scenario::{Errors, Scenario};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One arm: a variant of the scenario with the values of `--vary`.
struct Arm {
    name: String,
    variant: Option<String>,
    overrides: Vec<(String, String)>,
    /// How many of the overrides, the last, are of `--vary`.
    varied: usize,
    seeds: Vec<u64>,
}

impl Arm {
    fn new(name: String, variant: Option<String>, overrides: Vec<(String, String)>) -> Arm {
        Arm { name, variant, overrides, varied: 0, seeds: Vec::new() }
    }

    fn plan(&self, scenario: &Scenario, seed: Option<u64>) -> Result<Plan, Errors> {
        let plan = scenario.plan(self.variant.as_deref(), &self.overrides, seed);
        let plan = plan.map_err(|errors| errors.given_by("--vary", self.overrides.len() - self.varied))?;
        Ok(Plan { variant: Some(self.name.clone()), ..plan })
    }
}

/// What is to be compared. Plans are made when their runs begin: there may be many, and large ones.
struct Comparison<'a> {
    args: &'a CompareArgs,
    scenario: Scenario,
    /// As it was given.
    text: String,
    name: String,
    arms: Vec<Arm>,
    /// The numbers that are shown; empty: those that suit the traffic.
    shows: Vec<String>,
    /// Whether an arm has several seeds, and so a folder for each.
    several: bool,
}

/// Compares.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let comparison = Comparison::new(args)?;
    let out = default_out(&args.output.out, &comparison.name, Some("compare"));
    let owner = Owner::new(Kind::Compare, &comparison.name);
    let jobs = comparison.jobs().map(|(arm, seed)| (comparison.place(Path::new(""), arm, seed), (arm, seed)));
    let jobs: BTreeMap<PathBuf, (&Arm, u64)> = jobs.collect();
    let is_ours =
        |place: &Path, manifest: &Manifest| jobs.get(place).is_some_and(|job| comparison.made(*job, manifest));
    let folder = Folder::resume(&out, &owner, args.output.force, &is_ours)?;
    for what in folder.damaged() {
        tell(format_args!("warning: {what}; what is damaged is run again"));
    }
    catch_interrupts();
    let runs = comparison.run_all(&folder);
    if let Some(error) = runs.error {
        if runs.finished > 0 {
            let (partial, all) = (folder.path().display(), comparison.jobs().count());
            tell(format_args!(
                "{} of {all} runs are finished and kept in {partial}; the same command goes on",
                runs.finished
            ));
        }
        return Err(error);
    }
    if runs.finished < comparison.jobs().count() {
        return Err(comparison.stopped(folder, runs.finished)?);
    }
    let results = comparison.finish(&folder, &comparison.seeds(|_, _| true), Status::Complete, Vec::new())?;
    let written = folder.commit()?;
    if args.output.json {
        let text = serde_json::to_string_pretty(&results).map_err(|e| Failure::Usage(e.to_string()))?;
        say(&text);
    } else if !args.output.quiet {
        say(&compare_table(&results));
        if args.by_size {
            say(&sizes_table(&results));
        }
        say(&format!("results: {}\nreport:  {}", written.display(), written.join("report.html").display()));
    }
    match runs.failed {
        Some(failed) => Err(Failure::Audit(format!("{:?}", failed.audit))),
        None => stalled(&results),
    }
}

/// Fails if a run of some variant stalled.
fn stalled(results: &[VariantResult]) -> Result<(), Failure> {
    let stalled = results.iter().filter(|result| result.status == Status::Stalled);
    let names: Vec<&str> = stalled.map(|result| result.variant.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let what = "no open flow could end any more; the results are written";
    Err(Failure::Stalled(format!("stalled: {}: {what}", names.join(", "))))
}

/// How the runs of this call ended.
#[derive(Default)]
struct Runs {
    /// Those that are whole, with those that were before.
    finished: usize,
    /// One that failed its audit.
    failed: Option<Summary>,
    /// The first that could not be made at all.
    error: Option<Failure>,
}

impl<'a> Comparison<'a> {
    /// Plans every arm once, so that a wrong value is told before anything runs.
    fn new(args: &'a CompareArgs) -> Result<Comparison<'a>, Failure> {
        let (scenario, text) = load(&args.scenario)?;
        let mut arms = arms(&scenario, args)?;
        check_runs(arms.len(), args.seeds.range)?;
        let (mut name, mut shown) = (String::new(), Vec::new());
        for arm in &mut arms {
            let first = arm.plan(&scenario, args.seeds.range.map(|seeds| seeds.0))?;
            let (from, to) = args.seeds.range.unwrap_or((first.seed, first.seed));
            arm.seeds = (from..=to).collect();
            if !args.output.quiet {
                first.warnings.iter().for_each(|warning| tell(format_args!("warning: {}: {warning}", arm.name)));
            }
            if name.is_empty() {
                name = first.name;
                shown = first.shows;
            }
        }
        let several = arms.iter().any(|arm| arm.seeds.len() > 1);
        if let (false, Some(first)) = (args.shows.names.is_empty(), arms.first()) {
            shown = shows(&scenario, first.variant.as_deref(), &first.overrides, &args.shows)?;
        }
        Ok(Comparison { args, scenario, text, name, arms, shows: shown, several })
    }

    /// All runs, by arm and seed.
    fn jobs(&self) -> impl Iterator<Item = (&Arm, u64)> {
        self.arms.iter().flat_map(|arm| arm.seeds.iter().map(move |seed| (arm, *seed)))
    }

    /// Where a run is, within `root`.
    fn place(&self, root: &Path, arm: &Arm, seed: u64) -> PathBuf {
        run_folder(root, &arm.name, seed, self.several)
    }

    /// Whether a finished run is what this program would make again.
    fn made(&self, (arm, seed): (&Arm, u64), manifest: &Manifest) -> bool {
        let same_program = manifest.version == VERSION && manifest.revision == REVISION;
        same_program
            && arm
                .plan(&self.scenario, Some(seed))
                .is_ok_and(|plan| without_shows(&plan.resolved) == without_shows(&manifest.scenario))
    }

    /// The arms with those of their seeds that are asked for, without arms that have none of them.
    fn seeds(&self, of: impl Fn(&Arm, u64) -> bool) -> Vec<(String, Vec<u64>)> {
        let seeds = |arm: &Arm| arm.seeds.iter().copied().filter(|seed| of(arm, *seed)).collect::<Vec<u64>>();
        let all = self.arms.iter().map(|arm| (arm.name.clone(), seeds(arm)));
        all.filter(|(_, seeds)| !seeds.is_empty()).collect()
    }

    /// Runs what is not finished, several at a time, each on one thread (a single one gets all).
    fn run_all(&self, folder: &Folder) -> Runs {
        let all = self.jobs().count();
        let left: Vec<(&Arm, u64)> = self.jobs().filter(|(arm, seed)| !self.is_finished(folder, arm, *seed)).collect();
        let before = all - left.len();
        if before > 0 && !self.args.output.quiet {
            tell(format_args!("{before} of {all} runs are finished already"));
        }
        let cores = self.args.threads.count();
        let workers = cores.min(left.len()).max(1);
        let bar = progress_bar(all as u64, self.args.output.quiet);
        bar.set_prefix("compare");
        bar.set_position(before as u64);
        bar.reset_eta();
        let next = AtomicUsize::new(0);
        let runs = Mutex::new(Runs { finished: before, ..Runs::default() });
        let work = || {
            while !interrupted() {
                let Some((arm, seed)) = left.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let result = self.run_one(folder, arm, *seed, cores / workers);
                bar.inc(1);
                bar.set_message(format!("{} (seed {seed})", arm.name));
                let mut runs = runs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                match result {
                    Ok(summary) if summary.status == Status::Interrupted => {
                        let _ = std::fs::remove_dir_all(self.place(folder.path(), arm, *seed));
                        break;
                    }
                    Ok(summary) => {
                        runs.finished += 1;
                        if summary.status == Status::Failed {
                            runs.failed.get_or_insert(summary);
                        }
                    }
                    Err(error) => {
                        runs.error.get_or_insert(error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
        bar.finish_and_clear();
        runs.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn run_one(&self, folder: &Folder, arm: &Arm, seed: u64, threads: usize) -> Result<Summary, Failure> {
        let plan = arm.plan(&self.scenario, Some(seed))?;
        let dir = self.place(folder.path(), arm, seed);
        let threads = match self.args.threads.given {
            None if threads > 1 => threads.min(threads::choose(&plan).threads),
            _ => threads,
        };
        Ok(execute(&plan, threads, &dir, None, None, &arm.overrides)?)
    }

    fn is_finished(&self, folder: &Folder, arm: &Arm, seed: u64) -> bool {
        let manifest = Manifest::read(&self.place(folder.path(), arm, seed));
        manifest.is_ok_and(|manifest| manifest.status.is_final())
    }

    /// Writes what is made of these runs.
    fn finish(
        &self,
        folder: &Folder,
        variants: &[(String, Vec<u64>)],
        status: Status,
        warnings: Vec<String>,
    ) -> Result<Vec<VariantResult>, Failure> {
        let changed = self.args.overrides.set.iter().chain(&self.args.vary);
        let manifest = Manifest {
            name: self.name.clone(),
            seed: self.arms[0].seeds[0],
            overrides: changed.map(|(key, value)| format!("{key}={value}")).collect(),
            status,
            warnings,
            shows: self.shows.clone(),
            ..revision::manifest(self.text.clone())
        };
        Ok(finish_compare(folder, variants, self.several, manifest)?)
    }

    /// Reports on the runs that are finished, and leaves them for the same command.
    fn stopped(&self, folder: Folder, finished: usize) -> Result<Failure, Failure> {
        let text = format!(
            "{finished} of {} runs are finished; the same command goes on with the others",
            self.jobs().count()
        );
        let variants = self.seeds(|arm, seed| self.is_finished(&folder, arm, seed));
        if variants.is_empty() {
            return Ok(Failure::Stopped(text));
        }
        let warning = format!("interrupted: {finished} of {} runs are finished", self.jobs().count());
        self.finish(&folder, &variants, Status::Interrupted, vec![warning])?;
        let page = folder.leave().join("report.html");
        Ok(Failure::Stopped(format!("{text}; report of what there is: {}", page.display())))
    }
}

/// The scenario's variants (or the scenario as it is), each with every combination of the varied values.
fn arms(scenario: &Scenario, args: &CompareArgs) -> Result<Vec<Arm>, Failure> {
    let mut arms: Vec<Arm> = scenario
        .variants()
        .into_iter()
        .map(|name| Arm::new(name.to_string(), Some(name.to_string()), args.overrides.set.clone()))
        .collect();
    if arms.is_empty() {
        arms.push(Arm::new("base".to_string(), None, args.overrides.set.clone()));
    }
    for (at, (key, list)) in args.vary.iter().enumerate() {
        if args.vary[..at].iter().any(|(other, _)| other == key) {
            return Err(Failure::Usage(format!("--vary {key}: the key is there twice; write {key}=a,b,c")));
        }
        let values = values(list).map_err(|message| Failure::Usage(format!("--vary {key}: {message}")))?;
        if values.iter().any(String::is_empty) {
            return Err(Failure::Usage(format!("--vary {key}: an empty value; write {key}=a,b,c")));
        }
        let short = key.rsplit('.').next().unwrap_or(key);
        let combined = |arm: &Arm, value: &str| {
            let label = if short == "kind" { value.to_string() } else { format!("{short}={value}") };
            let mut overrides = arm.overrides.clone();
            overrides.push((key.clone(), value.to_string()));
            let name = match (&arm.variant, arm.varied) {
                (None, 0) => label,
                _ => format!("{} {label}", arm.name),
            };
            Arm { varied: arm.varied + 1, ..Arm::new(name, arm.variant.clone(), overrides) }
        };
        arms = arms.iter().flat_map(|arm| values.iter().map(|value| combined(arm, value))).collect();
    }
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    if let Some(twice) = names.iter().enumerate().find_map(|(at, name)| names[..at].contains(name).then_some(name)) {
        return Err(Failure::Usage(format!("{twice:?} is there twice; give each value of --vary once")));
    }
    if arms.len() < 2 && args.seeds.range.is_none() {
        let hint = "the scenario has no variants; add [[variant]] tables, --vary KEY=A,B, or --seeds N";
        return Err(Failure::Usage(hint.to_string()));
    }
    Ok(arms)
}
