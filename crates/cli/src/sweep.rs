//! `millpond sweep`: many runs, several at a time, that can be stopped and gone on with.

use crate::args::{Keep, SweepArgs};
use crate::estimate::{Estimate, estimate, span};
use crate::failure::Failure;
use crate::revision;
use crate::run::{default_out, load, shows};
use crate::runs::{Running, run_all, values_text};
use crate::say;
use crate::tell;
use crate::values::values;
use crate::watch::catch_interrupts;
use millpond_claims::{Design, Request, VARIANT, design};
use millpond_results::{Axis, Manifest, Status, Sweep, SweepFolder, SweepRun, finish_sweep, sweep_table};
use millpond_scenario::Scenario;
use std::path::Path;

/// Sweeps.
pub fn sweep(args: &SweepArgs) -> Result<(), Failure> {
    let (scenario, text) = load(&args.scenario)?;
    let request = Request {
        grid: grid_of(args)?,
        seeds: args.seeds.range,
        variants: if args.variants { scenario.variants().into_iter().map(String::from).collect() } else { Vec::new() },
        set: args.overrides.set.clone(),
        skip_invalid: args.skip_invalid,
        estimate: args.dry_run,
    };
    if args.variants && request.variants.is_empty() {
        return Err(Failure::Usage("--variants: the scenario has no [[variant]] tables".to_string()));
    }
    if request.grid.is_empty() && request.variants.is_empty() && request.seeds.is_none() {
        let hint = "nothing to sweep; say --grid KEY=A,B, --variants or --seeds N";
        return Err(Failure::Usage(hint.to_string()));
    }
    let mut design = design(&scenario, &request)?;
    if let (false, Some(recipe)) = (args.shows.names.is_empty(), design.recipes.first()) {
        design.sweep.shows = shows(&scenario, recipe.variant.as_deref(), &recipe.overrides, &args.shows)?;
    }
    let out = default_out(&args.output.out, &design.sweep.name, Some("sweep"));
    if args.dry_run {
        return dry_run(args, &scenario, &design, &out);
    }
    if !args.output.quiet {
        design.warnings.iter().for_each(|warning| tell(format_args!("warning: {warning}")));
    }
    let folder = SweepFolder::open(&out, &design.sweep, args.output.force)?;
    let manifest = Manifest {
        name: design.sweep.name.clone(),
        seed: design.sweep.seeds.first().copied().unwrap_or_default(),
        overrides: design.sweep.overrides.clone(),
        ..revision::manifest(text)
    };
    catch_interrupts();
    let running =
        Running { label: "sweep", threads: args.threads.count(), quiet: args.output.quiet, keep: args.keep.into() };
    let failures = run_all(&running, &scenario, &design, &folder)?;
    let sweep = finish_sweep(&folder, &design.sweep, &failures, manifest)?;
    let has_none = |run: &SweepRun| {
        run.status.is_some_and(Status::is_final) && !out.join(&run.folder).join("flows.parquet").exists()
    };
    if args.keep == Keep::All && !args.output.quiet && sweep.runs().any(|(_, run)| has_none(run)) {
        tell(format_args!(
            "note: no pooled flows.parquet: runs that were finished before have kept less than --keep all"
        ));
    }
    if args.output.json {
        let text = serde_json::to_string_pretty(&sweep).map_err(|e| Failure::Usage(e.to_string()))?;
        say(&text);
    } else if !args.output.quiet {
        say(&sweep_table(&sweep));
        say(&format!("results: {}  (report.html, sweep.parquet, sweep.json)", out.display()));
    }
    let stalled = sweep.runs().filter(|(_, run)| run.status == Some(Status::Stalled)).count();
    let failed = sweep.runs().filter(|(_, run)| !run.status.is_some_and(Status::is_final)).count();
    match failed {
        0 if stalled > 0 => Err(Failure::Stalled(format!(
            "{stalled} of {} runs stalled: no open flow could end any more; their results are written",
            sweep.runs().count()
        ))),
        0 => Ok(()),
        _ => Err(Failure::Runs(format!("{failed} of {} runs failed", sweep.runs().count()))),
    }
}

/// The axes of `--grid`.
fn grid_of(args: &SweepArgs) -> Result<Vec<Axis>, Failure> {
    let mut axes: Vec<Axis> = Vec::new();
    for (key, text) in &args.grid {
        let values = values(text).map_err(|message| Failure::Usage(format!("--grid {key}: {message}")))?;
        let twice = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value));
        let complaint = match () {
            () if key == "seed" => "seeds are given by --seeds N or --seeds A..B".to_string(),
            () if key == VARIANT && args.variants => "--variants sweeps all of them".to_string(),
            () if axes.iter().any(|axis| &axis.key == key) => "the key is there twice".to_string(),
            () if values.iter().any(String::is_empty) => format!("an empty value; write {key}=a,b,c"),
            () if twice.is_some() => format!("{} is there twice", twice.map_or("", |(_, value)| value)),
            () => String::new(),
        };
        if !complaint.is_empty() {
            return Err(Failure::Usage(format!("--grid {key}: {complaint}")));
        }
        axes.push(Axis { key: key.clone(), values });
    }
    Ok(axes)
}

/// Says what would be run, and how long it may take.
fn dry_run(args: &SweepArgs, scenario: &Scenario, design: &Design, out: &Path) -> Result<(), Failure> {
    let sweep = &design.sweep;
    let resumes = Sweep::read(out).is_ok_and(|old| sweep.change_from(&old).is_none());
    let cores = args.threads.count();
    catch_interrupts();
    let Estimate { left, cores, seconds, basis } =
        estimate(scenario, design, resumes.then_some(out), cores, args.output.quiet)?;
    if args.output.json {
        let value = serde_json::json!({
            "out": out, "sweep": sweep, "runs": sweep.runs().count(), "left": left,
            "estimate_s": seconds, "estimate_basis": basis, "threads": cores,
        });
        say(&value.to_string());
        return Ok(());
    }
    for (point, run) in sweep.runs() {
        let state = if left.contains(&run.run) { "" } else { "  (finished)" };
        say(&format!("{:>6}  seed {:<4} {}{state}", run.run, run.seed, values_text(point, "  ")));
    }
    for point in sweep.points.iter().filter(|point| point.skipped.is_some()) {
        let reason = point.skipped.as_deref().unwrap_or_default();
        say(&format!("left out: {}: {reason}", values_text(point, "  ")));
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
