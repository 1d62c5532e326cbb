//! `millpond compare`: the variants of a scenario (and of `--vary`), one run each a seed, spread over the cores.

use crate::args::CompareArgs;
use crate::execute::execute;
use crate::failure::Failure;
use crate::grid::check_runs;
use crate::run::{default_out, load};
use crate::say;
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

impl Arm {
    /// The plan of one of its runs; without a seed, the scenario's own.
    fn plan(&self, scenario: &Scenario, seed: Option<u64>) -> Result<Plan, Failure> {
        let plan = scenario.plan(self.variant.as_deref(), &self.overrides, seed)?;
        Ok(Plan { variant: Some(self.name.clone()), ..plan })
    }
}

/// One run. Its plan is made when it begins, so that as many are held as run at a time.
struct Job {
    arm: usize,
    seed: u64,
}

/// Compares.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let (scenario, text) = load(&args.scenario)?;
    let arms = arms(&scenario, args)?;
    check_runs(arms.len(), args.seeds.range)?;
    let (mut jobs, mut name) = (Vec::new(), None);
    for (index, arm) in arms.iter().enumerate() {
        // Each arm is planned once before anything runs: what is wrong with it is told now.
        let first = arm.plan(&scenario, args.seeds.range.map(|seeds| seeds.0))?;
        if !args.output.quiet {
            first.warnings.iter().for_each(|warning| eprintln!("warning: {}: {warning}", arm.name));
        }
        let seeds = args.seeds.range.unwrap_or((first.seed, first.seed));
        jobs.extend((seeds.0..=seeds.1).map(|seed| Job { arm: index, seed }));
        name.get_or_insert(first.name);
    }
    let several = jobs.len() > arms.len();
    let name = name.unwrap_or_default();
    let folder = Folder::create(&default_out(&args.output.out, &name), args.output.force)?;
    catch_interrupts();
    let summaries = run_all(args, &scenario, &arms, &jobs, &folder, several)?;

    let seeds_of = |arm: usize| jobs.iter().filter(|job| job.arm == arm).map(|job| job.seed).collect::<Vec<u64>>();
    let variants: Vec<(String, Vec<u64>)> =
        arms.iter().enumerate().map(|(i, arm)| (arm.name.clone(), seeds_of(i))).collect();
    if interrupted() {
        let text = "a compare is written only when all its runs are; `millpond sweep --variants` can be gone on with";
        return Err(Failure::Stopped(text.to_string()));
    }
    let manifest = Manifest {
        name,
        seed: jobs[0].seed,
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
    for (key, values) in &args.vary {
        let values: Vec<&str> = split_values(values);
        if values.iter().any(|value| value.is_empty()) {
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

/// Splits at commas that are outside of brackets, braces and quotes.
pub fn split_values(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut from, mut parts) = (0i32, false, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// Runs all jobs, several at a time, each on one thread (a single job gets all).
fn run_all(
    args: &CompareArgs,
    scenario: &Scenario,
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
                    let dir = run_folder(folder.path(), &arm.name, job.seed, several);
                    let result = arm
                        .plan(scenario, Some(job.seed))
                        .and_then(|plan| Ok(execute(&plan, cores / workers, &dir, None, None, &arm.overrides)?));
                    bar.inc(1);
                    bar.set_message(format!("{} (seed {})", arm.name, job.seed));
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

#[cfg(test)]
mod tests {
    use super::split_values;

    #[test]
    fn commas_within_tables_do_not_split() {
        assert_eq!(split_values("a, b,c"), ["a", "b", "c"]);
        assert_eq!(split_values("{ kind = \"x\", y = [1, 2] },off"), ["{ kind = \"x\", y = [1, 2] }", "off"]);
    }
}
