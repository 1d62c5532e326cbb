//! Ending a sweep: `sweep.parquet`, the statistics of each point, the page.
//!
//! Invariant: the bytes depend on the plan and the summaries alone, not on the order in which runs
//! ended or how often the sweep was interrupted. The cost of a run (`run` of the summary) is
//! therefore left out.

use crate::model::summary::Summary;
use crate::model::{
    Axis, Kind, MANIFEST, Manifest, Of, Ordered, REPORT, RESULTS, ROW_GROUP, Result, SCHEMA,
    SizeBin, Status, Sweep, Table, Tree, columns, remove_if_there, replace_file, summary_of,
};
use crate::pool::pool_sweep;
use crate::render::html;
use crate::statistics::bins::share;
use crate::statistics::compare::{warnings_over, worst};
use crate::statistics::numbers::{Json, estimates, numbers};
use crate::statistics::points::{compare_points, warnings};
use crate::statistics::resampling::Resampler;
use crate::sweep::SweepFolder;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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
            let failure = failures.iter().find(|(number, _)| *number == run.run);
            let failure = failure.map(|(_, reason)| reason.clone());
            run.reason = failure.filter(|_| !run.status.is_some_and(Status::is_final));
            let values = point.values.iter().map(|(_, value)| value.to_string()).collect();
            let of = match &summary {
                Some(summary) if summary.status.is_final() => numbers([summary])?.pop(),
                _ => None,
            };
            rows.push(Row {
                run: run.run,
                point: point.point,
                seed: run.seed,
                status: run.status,
                values,
                of: of.map(|(_, json)| json),
            });
            summaries.extend(summary);
        }
        point.warnings = warnings_over(&summaries);
        let own = rows[rows.len() - point.runs.len()..].iter();
        let of: Vec<Option<&Json>> = own.filter_map(|row| row.of.as_ref()).map(Some).collect();
        point.statistics = (!of.is_empty()).then(|| estimates(&of, &mut resampler));
    }
    let mut runs: BTreeMap<u32, Vec<(u64, &Json)>> = BTreeMap::new();
    for row in &rows {
        runs.entry(row.point).or_default().extend(row.of.as_ref().map(|json| (row.seed, json)));
    }
    compare_points(&mut sweep, &runs, &mut resampler);
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
    replace_file(
        folder.path(),
        REPORT,
        html::sweep::page(folder.path(), &sweep, &manifest)?.as_bytes(),
    )?;
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
    share(&folders, &mut complete, out)?;
    Ok(all)
}

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
    let numeric: Vec<bool> = grid.iter().map(Axis::is_numeric).collect();
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
        table.cell(row.run);
        table.cell(row.point);
        table.cell(row.seed);
        table.cell(row.status.unwrap_or(Status::Failed).name());
        for (value, numeric) in row.values.iter().zip(&numeric) {
            match value.parse::<f64>() {
                Ok(number) if *numeric => table.cell(number),
                _ => table.cell(value.as_str()),
            }
        }
        for path in &paths {
            table.cell(row.of.as_ref().and_then(|json| json.at(path)));
        }
        table.end_row()?;
    }
    table.close()
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
