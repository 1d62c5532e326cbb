//! `millpond compare`: the variants of a scenario (and of `--vary`), one run each a seed, spread over the cores.

use crate::args::CompareArgs;
use crate::execute::execute;
use crate::failure::Failure;
use crate::run::{default_out, load};
use crate::say;
use crate::values::values;
use crate::watch::{catch_interrupts, interrupted, progress_bar};
use millpond_results::{Folder, Manifest, Status, Summary, compare_table, finish_compare, run_folder};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One arm: a variant of the scenario with the values of `--vary`.
struct Arm {
    name: String,
    variant: Option<String>,
    overrides: Vec<(String, String)>,
}

/// One run.
struct Job {
    arm: usize,
    plan: Plan,
}

/// Compares.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let (scenario, text) = load(&args.scenario)?;
    let arms = arms(&scenario, args)?;
    let mut jobs = Vec::new();
    for (index, arm) in arms.iter().enumerate() {
        let first = scenario.plan(arm.variant.as_deref(), &arm.overrides, args.seeds.range.map(|s| s.0))?;
        let seeds = args.seeds.range.unwrap_or((first.seed, first.seed));
        for seed in seeds.0..=seeds.1 {
            let plan = if seed == first.seed {
                first.clone()
            } else {
                scenario.plan(arm.variant.as_deref(), &arm.overrides, Some(seed))?
            };
            jobs.push(Job { arm: index, plan: Plan { variant: Some(arm.name.clone()), ..plan } });
        }
    }
    if !args.output.quiet {
        warn(&arms, &jobs);
    }
    let several = jobs.len() > arms.len();
    let name = jobs[0].plan.name.clone();
    let folder = Folder::create(&default_out(&args.output.out, &name), args.output.force)?;
    catch_interrupts();
    let summaries = run_all(args, &arms, &jobs, &folder, several)?;

    let seeds_of = |arm: usize| jobs.iter().filter(|job| job.arm == arm).map(|job| job.plan.seed).collect::<Vec<u64>>();
    let variants: Vec<(String, Vec<u64>)> =
        arms.iter().enumerate().map(|(i, arm)| (arm.name.clone(), seeds_of(i))).collect();
    if interrupted() {
        let text = "a compare is written only when all its runs are; `millpond sweep --variants` can be gone on with";
        return Err(Failure::Stopped(text.to_string()));
    }
    let manifest = Manifest {
        name,
        seed: jobs[0].plan.seed,
        overrides: args.overrides.set.iter().chain(&args.vary).map(|(key, value)| format!("{key}={value}")).collect(),
        ..Manifest::new(env!("CARGO_PKG_VERSION"), text)
    };
    let results = finish_compare(&folder, &variants, several, manifest)?;
    let written = folder.commit()?;
    if args.output.json {
        let text = serde_json::to_string_pretty(&results).map_err(|e| Failure::Usage(e.to_string()))?;
        say(&text);
    } else if !args.output.quiet {
        say(&compare_table(&results));
        say(&format!("results: {}\nreport:  {}", written.display(), written.join("report.html").display()));
    }
    match summaries.iter().find(|summary| summary.status == Status::Failed) {
        Some(failed) => Err(Failure::Audit(format!("{:?}", failed.audit))),
        None => Ok(()),
    }
}

/// The scenario's variants (or the scenario as it is), each with every combination of the varied values.
fn arms(scenario: &Scenario, args: &CompareArgs) -> Result<Vec<Arm>, Failure> {
    let mut arms: Vec<Arm> = scenario
        .variants()
        .into_iter()
        .map(|name| Arm {
            name: name.to_string(),
            variant: Some(name.to_string()),
            overrides: args.overrides.set.clone(),
        })
        .collect();
    if arms.is_empty() {
        arms.push(Arm { name: "base".to_string(), variant: None, overrides: args.overrides.set.clone() });
    }
    for (key, list) in &args.vary {
        let values = values(list).map_err(|message| Failure::Usage(format!("--vary {key}: {message}")))?;
        if values.iter().any(String::is_empty) {
            return Err(Failure::Usage(format!("--vary {key}: an empty value; write {key}=a,b,c")));
        }
        let short = key.rsplit('.').next().unwrap_or(key);
        let combined = |arm: &Arm, value: &str| {
            let label = if short == "kind" { value.to_string() } else { format!("{short}={value}") };
            let plain = arm.name == "base" && arm.variant.is_none();
            let mut overrides = arm.overrides.clone();
            overrides.push((key.clone(), value.to_string()));
            let name = if plain && arm.overrides.len() == args.overrides.set.len() {
                label
            } else {
                format!("{} {label}", arm.name)
            };
            Arm { name, variant: arm.variant.clone(), overrides }
        };
        arms = arms.iter().flat_map(|arm| values.iter().map(|value| combined(arm, value))).collect();
    }
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    if let Some(twice) = names.iter().enumerate().find_map(|(at, name)| names[..at].contains(name).then_some(name)) {
        return Err(Failure::Usage(format!("{twice:?} is there twice; give each value of --vary once")));
    }
    if arms.len() < 2 && args.seeds.range.is_none() {
        let hint = "the scenario has no variants; add [[variant]] tables or --vary KEY=A,B";
        return Err(Failure::Usage(hint.to_string()));
    }
    Ok(arms)
}

fn warn(arms: &[Arm], jobs: &[Job]) {
    for (index, arm) in arms.iter().enumerate() {
        if let Some(job) = jobs.iter().find(|job| job.arm == index) {
            for warning in &job.plan.warnings {
                eprintln!("warning: {}: {warning}", arm.name);
            }
        }
    }
}

/// Runs all jobs, several at a time, each on one thread (a single job gets all).
fn run_all(
    args: &CompareArgs,
    arms: &[Arm],
    jobs: &[Job],
    folder: &Folder,
    several: bool,
) -> Result<Vec<Summary>, Failure> {
    let cores = args.threads.count();
    let workers = cores.min(jobs.len()).max(1);
    let bar = progress_bar(jobs.len() as u64, args.output.quiet);
    bar.set_prefix("compare");
    bar.tick();
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Summary, Failure>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while !interrupted() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    let arm = &arms[job.arm];
                    let dir = run_folder(folder.path(), &arm.name, job.plan.seed, several);
                    let result =
                        execute(&job.plan, cores / workers, &dir, None, None, &arm.overrides).map_err(Failure::from);
                    bar.inc(1);
                    bar.set_message(format!("{} (seed {})", arm.name, job.plan.seed));
                    if let Ok(mut done) = done.lock() {
                        done.push((index, result));
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
