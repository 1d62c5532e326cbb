//! `millpond run`: one scenario, one folder.

use crate::args::{RunArgs, Shows};
use crate::execute::execute;
use crate::failure::Failure;
use crate::say;
use crate::tell;
use crate::threads;
use crate::watch::{STEPS, catch_interrupts, progress_bar};
use millpond_results::{Folder, Kind, MANIFEST, Manifest, Owner, Status, folder_name, run_table};
use millpond_scenario::Scenario;
use std::path::{Path, PathBuf};

/// The results folder that a path means, if it is one or its manifest.
fn result_folder(path: &Path) -> Option<&Path> {
    if path.is_dir() {
        return Some(path);
    }
    path.file_name().is_some_and(|name| name == MANIFEST).then(|| path.parent().unwrap_or(Path::new(".")))
}

/// What a result's scenario does not say, since it is worked into it: the variant, and what the command line changed.
#[allow(clippy::type_complexity)] // (variant, overrides)
fn origin(path: &Path) -> Result<(Option<String>, Vec<(String, String)>), Failure> {
    let Some(folder) = result_folder(path) else { return Ok((None, Vec::new())) };
    let manifest = of_a_run(folder)?;
    let pairs = manifest.overrides.iter().filter_map(|text| text.split_once('='));
    Ok((manifest.variant, pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect()))
}

/// The manifest of a run: those of several runs hold the scenario as it was given, without what was changed for each.
fn of_a_run(folder: &Path) -> Result<Manifest, Failure> {
    if folder.is_dir() && !folder.join(MANIFEST).exists() {
        let what = "is a folder without a result's manifest.json: name a scenario file, or the folder of a run";
        return Err(Failure::Usage(format!("{} {what}", folder.display())));
    }
    let manifest = Manifest::read(folder)?;
    let of = match manifest.kind {
        Kind::Run => return Ok(manifest),
        Kind::Compare => "a compare",
        Kind::Sweep => "a sweep",
        Kind::Reproduce => "a reproduction",
    };
    let folder = folder.display();
    Err(Failure::Usage(format!("{folder} holds {of}: name one of the runs below it, or the scenario it was made of")))
}

/// Reads a scenario: a TOML file, standard input (`-`), or the scenario in a run's manifest. Gives its text, too.
pub fn load(path: &Path) -> Result<(Scenario, String), Failure> {
    if path == Path::new("-") {
        let text = std::io::read_to_string(std::io::stdin())
            .map_err(|e| Failure::Usage(format!("the scenario on standard input cannot be read: {e}")))?;
        return Ok((Scenario::parse("stdin", &text)?, text));
    }
    if let Some(folder) = result_folder(path) {
        let Manifest { scenario: text, base, .. } = of_a_run(folder)?;
        let scenario = Scenario::parse(&folder.join(MANIFEST).display().to_string(), &text)?;
        return Ok((scenario.with_base(&base.unwrap_or_default()), text));
    }
    let scenario = Scenario::load(path)?;
    // Read once: a pipe has nothing to give a second time.
    let text = scenario.text().to_string();
    Ok((scenario, text))
}

/// The numbers that `--shows` names. A name that means nothing is an error that names the nearest.
pub fn shows(
    scenario: &Scenario,
    variant: Option<&str>,
    overrides: &[(String, String)],
    given: &Shows,
) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = given.names.iter().map(|name| format!("{:?}", name.trim())).collect();
    let shows = ("shows".to_string(), format!("[{}]", names.join(", ")));
    let changed: Vec<_> = overrides.iter().cloned().chain([shows]).collect();
    let plan = scenario.plan(variant, &changed, None);
    Ok(plan.map_err(|errors| errors.given_by("--shows", overrides.len()))?.shows)
}

/// Where results go unless the user says: `out/<name>`, and after it what tells the command's
/// results from others of the same scenario.
pub fn default_out(out: &Option<PathBuf>, name: &str, suffix: Option<&str>) -> PathBuf {
    let name = suffix.map_or(name.to_string(), |suffix| format!("{name}-{suffix}"));
    out.clone().unwrap_or_else(|| Path::new("out").join(folder_name(&name)))
}

/// All cores.
pub fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Runs it.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let (scenario, _) = load(&args.scenario)?;
    let mut plan = scenario.plan(args.variant.as_deref(), &args.overrides.set, args.seed)?;
    if !args.shows.names.is_empty() {
        plan.shows = shows(&scenario, args.variant.as_deref(), &args.overrides.set, &args.shows)?;
    }
    let (variant, mut overrides) = origin(&args.scenario)?;
    plan.variant = plan.variant.or(variant);
    overrides.extend(args.overrides.set.iter().cloned());
    let quiet = args.output.quiet;
    if !quiet {
        for warning in scenario.idle(&args.overrides.set).iter().chain(&plan.warnings) {
            tell(format_args!("warning: {warning}"));
        }
    }
    let out = default_out(&args.output.out, &plan.name, plan.variant.as_deref());
    let owner = Owner { variant: plan.variant.clone(), ..Owner::new(Kind::Run, &plan.name) };
    let folder = Folder::create(&out, &owner, args.output.force)?;
    catch_interrupts();
    let bar = progress_bar(STEPS, quiet);
    bar.set_prefix(plan.name.clone());
    let threads = match args.threads.given {
        Some(threads) => threads,
        None => {
            let choice = threads::choose(&plan);
            if !quiet {
                tell(format_args!("{}", choice.reason));
            }
            choice.threads
        }
    };
    let done = execute(&plan, threads, folder.path(), Some(&folder), Some(&bar), &overrides);
    bar.finish_and_clear();
    let summary = done?;
    // A part of a run is no replacement for a whole one.
    let keeps_older = summary.status == Status::Interrupted && folder.would_replace_complete();
    let written = if keeps_older { folder.leave() } else { folder.commit()? };
    if args.output.json {
        say(&summary.to_json());
    } else if !quiet {
        say(&run_table(&summary));
        say(&format!("results: {}", written.display()));
    }
    match summary.status {
        Status::Complete => Ok(()),
        Status::Stalled => {
            Err(Failure::Stalled("stalled: no open flow can end any more; the results are written".into()))
        }
        Status::Interrupted if keeps_older => Err(Failure::Stopped(format!(
            "what there was is in {}; {} still holds the complete result of before",
            written.display(),
            out.display()
        ))),
        Status::Interrupted => Err(Failure::Interrupted),
        Status::Failed => Err(Failure::Audit(format!("{:?}", summary.audit))),
    }
}
