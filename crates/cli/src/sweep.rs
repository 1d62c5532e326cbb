//! `millpond sweep`: many runs, several at a time, that can be stopped and gone on with.

use crate::args::{Keep, SweepArgs};
use crate::eprint;
use crate::failure::Failure;
use crate::print;
use crate::run::{default_out, load};
use crate::span::span;
use crate::stderr::{keep_new, warn};
use crate::watch::{Terminal, catch_interrupts};
use millpond::{Estimate, Grid, Options, Status, Sweep, SweepResults};
use millpond_results::{Point, SweepRun, sweep_table};
use std::path::Path;

pub fn sweep(args: &SweepArgs) -> Result<(), Failure> {
    let scenario = load(&args.scenario, &args.overrides)?.shows(&args.shows.names);
    let grid = Grid {
        axes: args.grid.clone(),
        seeds: args.seeds.inclusive(),
        variants: args.variants,
        best: args.best.clone(),
        subject: args.subject.clone(),
        skip_invalid: args.skip_invalid,
        estimates: args.dry_run,
    };
    let planned = Sweep::new(&scenario, &grid)?.merge(&args.merge);
    let (planned, suffix) = match args.shard {
        Some((shard, of)) => (planned.shard(shard, of)?, format!("sweep-{shard}-of-{of}")),
        None => (planned, "sweep".to_string()),
    };
    let out = default_out(&args.output.out, planned.name(), Some(&suffix));
    let terminal = Terminal::new(args.output.quiet, "");
    let options = Options {
        threads: args.threads.given,
        force: args.output.force,
        control: &terminal,
        ..Options::default()
    };
    catch_interrupts();
    if args.dry_run {
        return dry_run(args, &planned, &out, &options);
    }
    if !args.output.quiet {
        warn(planned.warnings(), args.output.warnings());
    }
    let mut sweep = millpond::sweep(&planned, &out, args.keep.into(), &options)?;
    if args.output.json {
        print(&serde_json::to_string_pretty(&sweep)?);
    }
    if let Some((shard, of)) = args.shard {
        if !args.output.quiet && !args.output.json {
            let (runs, out) = (sweep.runs().count(), out.display());
            print(&format!(
                "shard {shard} of {of}: {runs} runs in {out}; --merge joins all shards"
            ));
        }
        return ended(&sweep);
    }
    let has_none = |run: &SweepRun| {
        run.status.is_some_and(Status::is_final)
            && !out.join(&run.folder).join("flows.parquet").exists()
    };
    if args.keep == Keep::All && !args.output.quiet && sweep.runs().any(|(_, run)| has_none(run)) {
        eprint(format_args!(
            "note: no pooled flows.parquet: runs that were finished before have kept less than \
             --keep all"
        ));
    }
    if !args.output.quiet && !args.output.json {
        for point in &mut sweep.points {
            keep_new(&mut point.warnings, planned.warnings());
        }
        print(&sweep_table(&sweep, args.output.warnings()));
        print(&format!("results: {}  (report.html, sweep.parquet, sweep.json)", out.display()));
    }
    ended(&sweep)
}

/// Fails if a run failed or stalled.
fn ended(sweep: &SweepResults) -> Result<(), Failure> {
    let stalled = sweep.runs().filter(|(_, run)| run.status == Some(Status::Stalled)).count();
    let failed = sweep.runs().filter(|(_, run)| !run.status.is_some_and(Status::is_final)).count();
    match failed {
        0 if stalled > 0 => Err(Failure::Stalled(format!(
            "{stalled} of {} runs stalled: no open flow could end any more; their results are \
             written",
            sweep.runs().count()
        ))),
        0 => Ok(()),
        _ => Err(Failure::Runs(format!("{failed} of {} runs failed", sweep.runs().count()))),
    }
}

/// Prints the runs, and how long they may take.
fn dry_run(
    args: &SweepArgs,
    planned: &Sweep,
    out: &Path,
    options: &Options<'_>,
) -> Result<(), Failure> {
    let sweep = planned.plan();
    let Estimate { left, cores, seconds, basis } = planned.estimate(out, options)?;
    if args.output.json {
        let value = serde_json::json!({
            "out": out, "sweep": sweep, "runs": sweep.runs().count(), "left": left,
            "estimate_s": seconds, "estimate_basis": basis, "threads": cores,
        });
        print(&value.to_string());
        return Ok(());
    }
    for (point, run) in sweep.runs() {
        let state = if left.contains(&run.run) { "" } else { "  (finished)" };
        print(&format!("{:>6}  seed {:<4} {}{state}", run.run, run.seed, values_text(point, "  ")));
    }
    for point in sweep.points.iter().filter(|point| point.skipped.is_some()) {
        let reason = point.skipped.as_deref().unwrap_or_default();
        print(&format!("left out: {}: {reason}", values_text(point, "  ")));
    }
    let (points, all) =
        (sweep.points.iter().filter(|p| p.skipped.is_none()).count(), sweep.runs().count());
    print(&format!(
        "{points} points × {} seeds = {all} runs, {} to do, {cores} at a time",
        sweep.seeds.len(),
        left.len()
    ));
    let span = seconds.map_or("unknown".to_string(), span);
    print(&format!("estimate: {span} ({basis}); results would go to {}", out.display()));
    Ok(())
}

/// The values of a point: `KEY=VALUE KEY=VALUE`.
fn values_text(point: &Point, between: &str) -> String {
    let values: Vec<String> =
        point.values.iter().map(|(key, value)| format!("{key}={value}")).collect();
    values.join(between)
}
