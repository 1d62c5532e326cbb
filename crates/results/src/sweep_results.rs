//! What is made of a sweep's runs: `sweep.parquet`, the statistics of each point, a table.
//!
//! Invariant: the bytes depend on the plan and the summaries alone, not on the order in which runs
//! ended or how often the sweep was interrupted. What a run cost (`run` of the summary) is
//! therefore left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use parquet::data_type::ByteArray;

use crate::bins;
use crate::censoring::{difference_of, shown};
use crate::columns::{self, Of, ROW_GROUP, Table};
use crate::compare::{
    Difference, Estimate, Json, Tree, each_once, estimates, numbers, paired_differences,
    warnings_over, worst,
};
use crate::error::Result;
use crate::folder::remove_if_there;
use crate::format::{NONE, percent};
use crate::html;
use crate::interval::{FEW, Resampler};
use crate::manifest::{Kind, MANIFEST, Manifest};
use crate::ordered::Ordered;
use crate::pool::pool_sweep;
use crate::shows::{self, Column, Form, columns_of_points};
use crate::sizes::SizeBin;
use crate::summary::{SCHEMA, Status, Summary};
use crate::sweep::{Axis, Point, RESULTS, Sweep, SweepFolder, summary_of};
use crate::table::{AT_LEAST, Marks, blocks, clean, difference_cell, wrapped};

/// Points that the table shows at most.
const SHOWN: usize = 100;

/// Ends a sweep whose runs are written: reads their summaries, writes `sweep.parquet`, pooled
/// `flows.parquet` and `queries.parquet` where all complete runs have kept theirs, `sweep.json`,
/// `report.html` and, last, `manifest.json`. `failures` are runs without a summary: their numbers
/// and why.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) or [`Error::Malformed`](crate::Error::Malformed) if a run's
/// files cannot be read or the results cannot be written.
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
    let bins_of = |of: &Option<Summary>| {
        of.as_ref().map_or_else(Ordered::default, |of| of.slowdown_by_size.clone())
    };
    let bins: Vec<Ordered<SizeBin>> = found.iter().map(bins_of).collect();
    let mut found = found.into_iter();
    for point in &mut sweep.points {
        let mut summaries: Vec<Summary> = Vec::new();
        for run in &mut point.runs {
            let summary = found.next().flatten();
            run.status = Some(summary.as_ref().map_or(Status::Failed, |summary| summary.status));
            let failure = failures
                .iter()
                .find(|(number, _)| *number == run.run)
                .map(|(_, reason)| reason.clone());
            run.reason = failure.filter(|_| !run.status.is_some_and(Status::is_final));
            let values = point.values.iter().map(|(_, value)| value.to_string()).collect();
            rows.push(Row {
                run: run.run,
                point: point.point,
                seed: run.seed,
                status: run.status,
                values,
                of: None,
            });
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
        let of: Vec<&Json> = rows[rows.len() - point.runs.len()..]
            .iter()
            .filter_map(|row| row.of.as_ref())
            .collect();
        let of: Vec<Option<&Json>> = of.into_iter().map(Some).collect();
        point.statistics = (!of.is_empty()).then(|| estimates(&of, &mut resampler));
    }
    compare_points(&mut sweep, &rows, &mut resampler);
    sweep.status = worst(sweep.runs().filter_map(|(_, run)| run.status));
    write_rows(&folder.path().join(RESULTS), &sweep.grid, &rows)?;
    pool_sweep(folder.path(), &sweep, &bins)?;
    folder.write(&sweep)?;
    let manifest = Manifest {
        kind: Kind::Sweep,
        status: sweep.status,
        warnings: warnings(&sweep),
        ..manifest
    };
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
    let mut columns: Vec<columns::Column<'_>> = vec![
        ("run", Of::U32, "number of the run"),
        ("point", Of::U32, "number of the grid's point"),
        ("seed", Of::U64, "the seed"),
        (
            "status",
            Of::Name,
            "how the run ended; statistics are null unless it is complete or stalled",
        ),
    ];
    for (axis, numeric) in grid.iter().zip(&numeric) {
        columns.push((
            &axis.key,
            if *numeric { Of::F64 } else { Of::Name },
            "the grid's value of this key",
        ));
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

/// The points beside each other: means over seeds, with half of the 95 % interval; then their
/// differences to the point that each is compared with.
pub fn sweep_table(sweep: &Sweep) -> String {
    let points: Vec<&Point> = sweep.points.iter().filter(|point| point.skipped.is_none()).collect();
    let columns = columns_of(sweep);
    let drawn = &points[..points.len().min(SHOWN)];
    let mut marks = Marks::default();
    let title = compared_with(sweep)
        .map_or(String::new(), |with| format!("\nDifference to {with}, seed by seed:"));
    let rows = |block: &[Column], is_first: bool, marks: &mut Marks| {
        point_rows(sweep, drawn, block, is_first, marks)
    };
    let mut lines = blocks(&columns, &title, &mut marks, &rows);
    if points.len() > drawn.len() {
        lines.push(format!("… and {} more points in sweep.json", points.len() - drawn.len()));
    }
    lines.push(String::new());
    let has_bound = |point: &&Point| {
        let bound =
            |tree: &Tree<Estimate>| columns.iter().any(|column| shown(tree, &column.at()).at_least);
        point.statistics.as_ref().is_some_and(bound)
    };
    if drawn.iter().any(has_bound) {
        lines.extend(wrapped("\u{2265}", AT_LEAST));
    }
    if sweep.seeds.len() > 1 && drawn.iter().any(|point| point.differences.is_some()) {
        lines.extend(marks.legend(sweep.seeds.len()));
    }
    lines.extend(notes(sweep));
    lines.join("\n") + "\n"
}

/// The numbers that a sweep shows.
pub(crate) fn columns_of(sweep: &Sweep) -> Vec<Column> {
    let trees: Vec<&Tree<Estimate>> =
        sweep.points.iter().filter_map(|point| point.statistics.as_ref()).collect();
    columns_of_points(&sweep.shows, &trees)
}

/// Rows of points, how many they are with their heads, and rows of differences.
fn point_rows(
    sweep: &Sweep,
    points: &[&Point],
    columns: &[Column],
    is_first: bool,
    marks: &mut Marks,
) -> (Vec<Vec<String>>, usize) {
    let mut rows = vec![heads(columns, is_first, 0), heads(columns, is_first, 1)];
    for point in points {
        let mut row = vec![label(sweep, point.values.iter())];
        if is_first {
            let done =
                point.runs.iter().filter(|run| run.status.is_some_and(Status::is_final)).count();
            row.extend([format!("{done}/{}", point.runs.len()), percent(share_of_flows(point))]);
        }
        for column in columns {
            let path = column.at();
            let number =
                point.statistics.as_ref().map(|tree| shown(tree, &path)).unwrap_or_default();
            row.push(number.text(|value| column.form.text(value)));
            row.extend(has_spread(column).then(|| half(&number.estimate, column.form)));
        }
        rows.push(row);
    }
    let values = rows.len();
    for (point, first) in points.iter().filter_map(|point| Some((point, base_of(sweep, point)?))) {
        let (Some(differences), Some(own), Some(first)) =
            (&point.differences, &point.statistics, &first.statistics)
        else {
            continue;
        };
        let mut row = vec![label(sweep, point.values.iter())];
        row.extend(is_first.then(|| [String::new(), String::new()]).into_iter().flatten());
        for column in columns {
            row.push(difference_cell((first, own, differences), column, marks));
            row.extend(
                has_spread(column)
                    .then(|| half_of(difference_of(first, own, differences, &column.at()))),
            );
        }
        rows.push(row);
    }
    (rows, values)
}

fn heads(columns: &[Column], is_first: bool, line: usize) -> Vec<String> {
    let start: Vec<String> =
        [["", "point"], ["", "runs"], ["flows", "done"]].map(|head| head[line].into()).into();
    let mut row: Vec<String> = start.into_iter().take(if is_first { 3 } else { 1 }).collect();
    for column in columns {
        row.push(column.head[line].clone());
        row.extend(has_spread(column).then(|| ["", "±"][line].to_string()));
    }
    row
}

/// Whether the interval stands beside the number.
fn has_spread(column: &Column) -> bool {
    matches!(column.form, Form::Time | Form::Ratio | Form::Rate)
}

/// Completed over started.
fn share_of_flows(point: &Point) -> Option<f64> {
    let mean = |key: &str| point.statistics.as_ref()?.leaf(&["flows", key])?.mean;
    let (completed, started): (f64, f64) = (mean("completed")?, mean("started")?);
    (started > 0.0).then(|| completed / started)
}

/// Half of the width of a difference's interval, as a share of what it is a difference to.
fn half_of(difference: Option<Difference>) -> String {
    let half = |difference: Difference| {
        let base = difference.mean? / difference.relative.filter(|relative| *relative != 0.0)?;
        let [low, high] = difference.interval?;
        Some((high - low) / 2.0 / base.abs())
    };
    difference.and_then(half).map_or(NONE.into(), |half| percent(Some(half)))
}

/// The key whose first value the points are compared with: variants, else the first kind, else the
/// first key that has several values.
fn compared_key(sweep: &Sweep) -> Option<usize> {
    let keys: Vec<usize> =
        (0..sweep.grid.len()).filter(|&key| sweep.grid[key].values.len() > 1).collect();
    let is = |of: fn(&str) -> bool| keys.iter().copied().find(|&key| of(&sweep.grid[key].key));
    is(|key| key == "variant")
        .or_else(|| is(|key| key.ends_with(".kind")))
        .or_else(|| keys.first().copied())
}

/// What points are compared with, in words; `None` if no point is.
pub(crate) fn compared_with(sweep: &Sweep) -> Option<String> {
    let key = &sweep.grid[compared_key(sweep)?];
    let others = sweep.grid.iter().filter(|axis| axis.values.len() > 1).count() > 1;
    let rest = if others { " at the same values of the other keys" } else { "" };
    Some(format!("{}={}{rest}", clean(&key.key), clean(key.values.first()?)))
}

/// The point that a point is compared with.
pub(crate) fn base_of<'a>(sweep: &'a Sweep, point: &Point) -> Option<&'a Point> {
    sweep.points.get(point.against?.checked_sub(1)? as usize)
}

/// Says of each point which one it is compared with.
fn pair_points(sweep: &mut Sweep) {
    let Some(key) = compared_key(sweep) else { return };
    let Some(base) = sweep.grid[key].values.first().cloned() else { return };
    let rest = |point: &Point| -> Vec<String> {
        let others = point.values.iter().enumerate().filter(|(place, _)| *place != key);
        others.map(|(_, (_, value))| value.clone()).collect()
    };
    let is_base =
        |point: &Point| point.values.0.get_index(key).is_some_and(|(_, value)| *value == base);
    let bases: BTreeMap<Vec<String>, u32> = sweep
        .points
        .iter()
        .filter(|point| is_base(point))
        .map(|point| (rest(point), point.point))
        .collect();
    for point in &mut sweep.points {
        point.against = if is_base(point) { None } else { bases.get(&rest(point)).copied() };
    }
}

/// The differences of each point to the one that it is compared with, and the numbers that are
/// shown.
fn compare_points(sweep: &mut Sweep, rows: &[Row], resampler: &mut Resampler) {
    pair_points(sweep);
    let mut runs: BTreeMap<u32, Vec<(u64, &Json)>> = BTreeMap::new();
    for row in rows {
        runs.entry(row.point).or_default().extend(row.of.as_ref().map(|json| (row.seed, json)));
    }
    let trees: Vec<Option<Tree<Estimate>>> =
        sweep.points.iter().map(|point| point.statistics.clone()).collect();
    let columns = columns_of(sweep);
    for point in &mut sweep.points {
        let Some(own) = &point.statistics else { continue };
        let first = point
            .against
            .and_then(|number| Some((number, trees.get(number as usize - 1)?.as_ref()?)));
        point.differences = first.and_then(|(number, first)| {
            let (a, b) = (runs.get(&number)?, runs.get(&point.point)?);
            Some(paired_differences((a, first), (b, own), resampler))
        });
        let base = first.map(|(_, first)| first).zip(point.differences.as_ref());
        point.shows = shows::numbers(&columns, own, base);
    }
}

/// A point's values; a key is said where there are several of them and its value does not say
/// enough.
pub(crate) fn label<'a>(
    sweep: &Sweep,
    values: impl Iterator<Item = (&'a str, &'a String)>,
) -> String {
    let parts = values.map(|(key, value)| {
        let short = key.rsplit('.').next().unwrap_or(key);
        let alone = sweep.grid.len() == 1 || short == "kind" || short == "variant";
        if alone { clean(value) } else { format!("{}={}", clean(short), clean(value)) }
    });
    let text = parts.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "base".into() } else { text }
}

/// Half of the interval's width.
fn half(estimate: &Estimate, form: Form) -> String {
    estimate.interval.map_or(NONE.into(), |[low, high]| form.text(Some((high - low) / 2.0)))
}

fn notes(sweep: &Sweep) -> Vec<String> {
    let axes: Vec<String> = sweep.grid.iter().map(|axis| clean(&axis.key)).collect();
    let of =
        if axes.is_empty() { "the scenario as it stands".to_string() } else { axes.join(" × ") };
    let mut lines = wrapped("points", &of);
    let seeds = sweep.seeds.len();
    let text = match seeds {
        0 | 1 => "one seed: no intervals; say --seeds 1..10".to_string(),
        _ if seeds < FEW => format!(
            "half of the interval of the mean over {seeds} seeds; below {FEW} seeds it is the \
             seeds' range, not 95 %"
        ),
        _ => format!(
            "half of the 95 % interval of the mean over {seeds} seeds (bootstrap); times are FCT \
             unless QCT"
        ),
    };
    lines.extend(wrapped("±", &text));
    for point in sweep.points.iter() {
        if let Some(reason) = &point.skipped {
            lines.extend(wrapped(
                "left out",
                &format!("{}: {}", label(sweep, point.values.iter()), clean(reason)),
            ));
        }
    }
    for (point, run) in sweep.runs().filter(|(_, run)| run.status == Some(Status::Failed)) {
        let reason = run.reason.as_deref().unwrap_or("its audit failed");
        let text = format!(
            "run {}, {}, seed {}: {}",
            run.run,
            label(sweep, point.values.iter()),
            run.seed,
            clean(reason)
        );
        lines.extend(wrapped("FAILED", &text));
    }
    for (point, run) in sweep.runs().filter(|(_, run)| run.status == Some(Status::Stalled)) {
        let text =
            format!("run {}, {}, seed {}", run.run, label(sweep, point.values.iter()), run.seed);
        lines.extend(wrapped("STALLED", &text));
    }
    let warnings = warnings(sweep);
    for warning in warnings.iter().take(WARNINGS) {
        lines.extend(wrapped("warning", &clean(warning)));
    }
    if warnings.len() > WARNINGS {
        lines.extend(wrapped(
            "warning",
            &format!("and {} more in sweep.json", warnings.len() - WARNINGS),
        ));
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
