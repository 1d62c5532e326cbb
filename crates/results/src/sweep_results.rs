//! What is made of a sweep's runs: `sweep.parquet`, the statistics of each point, a table.
//!
//! Invariant: the bytes depend on the plan and the summaries alone, not on the order in which runs ended or how often the
//! sweep was interrupted. What a run cost (`run` of the summary) is therefore left out.

use std::collections::BTreeSet;
use std::path::Path;

use parquet::data_type::ByteArray;

use crate::bins;
use crate::censoring::shown;
use crate::columns::{Column, Of, ROW_GROUP, Table};
use crate::compare::{Estimate, Json, Tree, each_once, estimates, numbers, warnings_over, worst};
use crate::error::Result;
use crate::folder::remove_if_there;
use crate::format::{NONE, count, percent, time};
use crate::html;
use crate::interval::{FEW, Resampler};
use crate::manifest::{Kind, MANIFEST, Manifest};
use crate::ordered::Ordered;
use crate::pool::pool_sweep;
use crate::sizes::SizeBin;
use crate::summary::{SCHEMA, Status, Summary};
use crate::sweep::{Axis, RESULTS, Sweep, SweepFolder, summary_of};
use crate::table::{AT_LEAST, clean, fitted, wrapped};

/// Points that the table shows at most.
const SHOWN: usize = 100;

/// Ends a sweep whose runs are written: reads their summaries, writes `sweep.parquet`, pooled
/// `flows.parquet` and `queries.parquet` where all complete runs have kept theirs, `sweep.json`,
/// `report.html` and, last, `manifest.json`. `failures` are runs without a summary: their numbers
/// and why.
pub fn finish_sweep(
    folder: &SweepFolder,
    sweep: &Sweep,
    failures: &[(u32, String)],
    manifest: Manifest,
) -> Result<Sweep> {
    // The older manifest has the checksums of files that are replaced now.
    remove_if_there(&folder.path().join(MANIFEST))?;
    let mut sweep = sweep.clone();
    let mut resampler = Resampler::new();
    let mut rows: Vec<Row> = Vec::new();
    let found = summaries(folder.path(), &sweep)?;
    let bins_of = |of: &Option<Summary>| of.as_ref().map_or_else(Ordered::default, |of| of.slowdown_by_size.clone());
    let bins: Vec<Ordered<SizeBin>> = found.iter().map(bins_of).collect();
    let mut found = found.into_iter();
    for point in &mut sweep.points {
        let mut summaries: Vec<Summary> = Vec::new();
        for run in &mut point.runs {
            let summary = found.next().flatten();
            run.status = Some(summary.as_ref().map_or(Status::Failed, |summary| summary.status));
            let failure = failures.iter().find(|(number, _)| *number == run.run).map(|(_, reason)| reason.clone());
            run.reason = failure.filter(|_| !run.status.is_some_and(Status::is_final));
            let values = point.values.iter().map(|(_, value)| value.to_string()).collect();
            rows.push(Row { run: run.run, point: point.point, seed: run.seed, status: run.status, values, of: None });
            if let Some(summary) = summary {
                if summary.status.is_final() {
                    let of = numbers(std::slice::from_ref(&summary))?.pop();
                    if let Some(row) = rows.last_mut() {
                        row.of = of.map(|(_, json)| json);
                    }
                }
                summaries.push(summary);
            }
        }
        point.warnings = warnings_over(&summaries);
        let of: Vec<&Json> = rows[rows.len() - point.runs.len()..].iter().filter_map(|row| row.of.as_ref()).collect();
        let of: Vec<Option<&Json>> = of.into_iter().map(Some).collect();
        point.statistics = (!of.is_empty()).then(|| estimates(&of, &mut resampler));
    }
    sweep.status = worst(sweep.runs().filter_map(|(_, run)| run.status));
    write_rows(&folder.path().join(RESULTS), &sweep.grid, &rows)?;
    pool_sweep(folder.path(), &sweep, &bins)?;
    folder.write(&sweep)?;
    let manifest = Manifest { kind: Kind::Sweep, status: sweep.status, warnings: warnings(&sweep), ..manifest };
    html::sweep::write(folder.path(), &sweep, &manifest)?;
    manifest.write(folder.path())?;
    folder.tidy();
    Ok(sweep)
}

/// The summaries of all runs in their order, `None` where there is none. The complete runs share
/// their bins of size.
fn summaries(out: &Path, sweep: &Sweep) -> Result<Vec<Option<Summary>>> {
    let mut all: Vec<Option<Summary>> = sweep.runs().map(|(_, run)| summary_of(out, run)).collect();
    let (mut folders, mut complete) = (Vec::new(), Vec::new());
    for ((_, run), summary) in sweep.runs().zip(&mut all) {
        if let Some(summary) = summary
            && summary.status.is_final()
        {
            folders.push(out.join(&run.folder));
            complete.push(summary);
        }
    }
    bins::share(&folders, &mut complete, out)?;
    Ok(all)
}

/// One run.
struct Row {
    run: u32,
    point: u32,
    seed: u64,
    status: Option<Status>,
    values: Vec<String>,
    /// Its statistics; `None` unless it is complete or stalled.
    of: Option<Json>,
}

fn write_rows(path: &Path, grid: &[Axis], rows: &[Row]) -> Result<()> {
    let (mut paths, mut seen) = (Vec::new(), BTreeSet::new());
    for json in rows.iter().filter_map(|row| row.of.as_ref()) {
        let mut own = Vec::new();
        // One value each: no interval is estimated for the sake of the names.
        leaves(&estimates(&[Some(json)], &mut Resampler::new()), &mut Vec::new(), &mut own);
        paths.extend(own.into_iter().filter(|path| seen.insert(path.clone())));
    }
    let names: Vec<String> = paths.iter().map(|path| path.join(".")).collect();
    let numeric: Vec<bool> = grid.iter().map(is_numeric).collect();
    let mut columns: Vec<Column<'_>> = vec![
        ("run", Of::U32, "number of the run"),
        ("point", Of::U32, "number of the grid's point"),
        ("seed", Of::U64, "the seed"),
        ("status", Of::Name, "how the run ended; statistics are null unless it is complete or stalled"),
    ];
    for (axis, numeric) in grid.iter().zip(&numeric) {
        columns.push((&axis.key, if *numeric { Of::F64 } else { Of::Name }, "the grid's value of this key"));
    }
    columns.extend(names.iter().map(|name| (name.as_str(), Of::OptionalF64, "as in summary.json")));
    let mut table = Table::create(path, &columns, &[("schema", SCHEMA.to_string())], ROW_GROUP)?;
    for row in rows {
        table.u32(row.run).u32(row.point).u64(row.seed);
        table.name(&ByteArray::from(row.status.unwrap_or(Status::Failed).name()));
        for (value, numeric) in row.values.iter().zip(&numeric) {
            match value.parse::<f64>() {
                Ok(number) if *numeric => table.f64(number),
                _ => table.name(&ByteArray::from(value.as_str())),
            };
        }
        for path in &paths {
            table.optional_f64(row.of.as_ref().and_then(|json| json.at(path)));
        }
        table.end_row()?;
    }
    table.close()
}

/// Whether all values of a key are numbers, so that its column is one.
pub(crate) fn is_numeric(axis: &Axis) -> bool {
    axis.values.iter().all(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
}

/// The paths of all numbers, in order.
fn leaves<L>(tree: &Tree<L>, at: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    match tree {
        Tree::Leaf(_) => paths.push(at.clone()),
        Tree::Branch(children) => {
            for (key, child) in children.iter() {
                at.push(key.to_string());
                leaves(child, at, paths);
                at.pop();
            }
        }
    }
}

/// What points are shown by: head, path, form, and whether the interval stands beside it.
type Shown = ([&'static str; 2], &'static [&'static str], fn(Option<f64>) -> String, bool);
const FIGURES: [Shown; 6] = [
    (["mice", "p99"], &["fct_us", "mice", "p99"], time, true),
    (["all", "mean"], &["fct_us", "all", "mean"], time, true),
    (["QCT", "p99"], &["qct_us", "p99"], time, true),
    (["QCT", "done"], &["qct_us", "completed_fraction"], percent, false),
    (["", "drops"], &["packets", "dropped"], count, false),
    (["time-", "outs"], &["timeouts"], count, false),
];

/// The points beside each other: means over seeds, with half of the 95 % interval.
pub fn sweep_table(sweep: &Sweep) -> String {
    let (mut rows, mut has_bounds) = (vec![heads(0), heads(1)], false);
    for point in sweep.points.iter().filter(|point| point.skipped.is_none()).take(SHOWN) {
        let done = point.runs.iter().filter(|run| run.status.is_some_and(Status::is_final)).count();
        let mut row = vec![label(sweep, point.values.iter()), format!("{done}/{}", point.runs.len())];
        let leaf = |path: &[&str]| point.statistics.as_ref()?.leaf(path).copied();
        let flows = match (leaf(&["flows", "completed"]), leaf(&["flows", "started"])) {
            (Some(a), Some(b)) => a.mean.zip(b.mean).filter(|(_, b)| *b > 0.0).map(|(a, b)| a / b),
            _ => None,
        };
        row.push(percent(flows));
        for (_, path, form, spread) in FIGURES {
            let shown = point.statistics.as_ref().map(|tree| shown(tree, path)).unwrap_or_default();
            has_bounds |= shown.at_least;
            row.push(shown.text(form));
            if spread {
                row.push(half(&shown.estimate, form));
            }
        }
        rows.push(row);
    }
    let valid = sweep.points.iter().filter(|point| point.skipped.is_none()).count();
    let hidden = valid.saturating_sub(SHOWN);
    let mut lines = fitted(rows);
    if hidden > 0 {
        lines.push(format!("… and {hidden} more points in sweep.json"));
    }
    lines.push(String::new());
    if has_bounds {
        lines.extend(wrapped("\u{2265}", AT_LEAST));
    }
    lines.extend(notes(sweep));
    lines.join("\n") + "\n"
}

fn heads(line: usize) -> Vec<String> {
    let mut row: Vec<String> = [["", "point"], ["", "runs"], ["flows", "done"]].map(|head| head[line].into()).into();
    for (head, _, _, spread) in FIGURES {
        row.push(head[line].to_string());
        if spread {
            row.push(["", "±"][line].to_string());
        }
    }
    row
}

/// A point's values; a key is said where there are several of them and its value does not say enough.
pub(crate) fn label<'a>(sweep: &Sweep, values: impl Iterator<Item = (&'a str, &'a String)>) -> String {
    let parts = values.map(|(key, value)| {
        let short = key.rsplit('.').next().unwrap_or(key);
        let alone = sweep.grid.len() == 1 || short == "kind" || short == "variant";
        if alone { clean(value) } else { format!("{}={}", clean(short), clean(value)) }
    });
    let text = parts.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "base".into() } else { text }
}

/// Half of the interval's width.
fn half(estimate: &Estimate, form: fn(Option<f64>) -> String) -> String {
    estimate.interval.map_or(NONE.into(), |[low, high]| form(Some((high - low) / 2.0)))
}

fn notes(sweep: &Sweep) -> Vec<String> {
    let axes: Vec<String> = sweep.grid.iter().map(|axis| clean(&axis.key)).collect();
    let of = if axes.is_empty() { "the scenario as it stands".to_string() } else { axes.join(" × ") };
    let mut lines = wrapped("points", &of);
    let seeds = sweep.seeds.len();
    let text = match seeds {
        0 | 1 => "one seed: no intervals; say --seeds 1..10".to_string(),
        _ if seeds < FEW => format!(
            "half of the interval of the mean over {seeds} seeds; below {FEW} seeds it is the seeds' range, not 95 %"
        ),
        _ => format!("half of the 95 % interval of the mean over {seeds} seeds (bootstrap); times are FCT unless QCT"),
    };
    lines.extend(wrapped("±", &text));
    for point in sweep.points.iter() {
        if let Some(reason) = &point.skipped {
            lines.extend(wrapped("left out", &format!("{}: {}", label(sweep, point.values.iter()), clean(reason))));
        }
    }
    for (point, run) in sweep.runs().filter(|(_, run)| run.status == Some(Status::Failed)) {
        let reason = run.reason.as_deref().unwrap_or("its audit failed");
        let text =
            format!("run {}, {}, seed {}: {}", run.run, label(sweep, point.values.iter()), run.seed, clean(reason));
        lines.extend(wrapped("FAILED", &text));
    }
    for (point, run) in sweep.runs().filter(|(_, run)| run.status == Some(Status::Stalled)) {
        let text = format!("run {}, {}, seed {}", run.run, label(sweep, point.values.iter()), run.seed);
        lines.extend(wrapped("STALLED", &text));
    }
    let warnings = warnings(sweep);
    for warning in warnings.iter().take(WARNINGS) {
        lines.extend(wrapped("warning", &clean(warning)));
    }
    if warnings.len() > WARNINGS {
        lines.extend(wrapped("warning", &format!("and {} more in sweep.json", warnings.len() - WARNINGS)));
    }
    lines
}

/// Warnings that the table shows at most.
const WARNINGS: usize = 10;
/// Points that a warning names at most.
const NAMED: usize = 3;

/// The warnings of all points, each once; one that is not of all says of which.
pub(crate) fn warnings(sweep: &Sweep) -> Vec<String> {
    let points: Vec<_> = sweep.points.iter().filter(|point| point.skipped.is_none()).collect();
    let of = |warning: &String| {
        let mut names: Vec<String> = Vec::new();
        for point in points.iter().filter(|point| point.warnings.contains(warning)) {
            names.push(label(sweep, point.values.iter()));
        }
        if names.len() == points.len() {
            return warning.clone();
        }
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        format!("{}{more}: {warning}", names[..names.len().min(NAMED)].join(", "))
    };
    each_once(points.iter().flat_map(|point| &point.warnings)).iter().map(of).collect()
}
