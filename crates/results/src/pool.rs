//! Pooled tables: the rows of several runs in one file, behind columns that distinguish the runs.
//!
//! Rows of flows and queries are those of the runs' own files. Rows of sizes are made anew, for the
//! bins that all runs share.
//!
//! Invariant: rows are in the order of the runs; memory is that of a row group, however many runs
//! there are, and the bytes depend on the runs' rows alone.

use std::fs;
use std::path::{Path, PathBuf};

use parquet::data_type::ByteArray;

use crate::model::columns::{Cell, Column};
use crate::model::summary::Summary;
use crate::model::{
    At, Axis, FLOW_COLUMNS, FLOWS, Of, Ordered, QUERIES, QUERY_COLUMNS, ROW_GROUP, Result, SCHEMA,
    SIZE_COLUMNS, SIZES, SizeBin, Status, Sweep, Table, remove_if_there,
};

/// The variant of a run of the scenario as it stands.
const BASE: &str = "base";
const VARIANT: &str = "variant";
const VARIANT_COLUMN: Column<'static> =
    (VARIANT, Of::Name, "the variant; base: the scenario as it stands");
const SEED_COLUMN: Column<'static> = ("seed", Of::I64, "the seed");

/// One run's folder, its values of the columns that distinguish runs, and its bins of size.
type Run<'a> = (PathBuf, Vec<Cell>, &'a Ordered<SizeBin>);

/// Pools the tables of a compare's runs, each of (variant, seed, folder), in this order, with the
/// summaries of all.
pub(crate) fn pool_compare(
    dir: &Path,
    runs: &[(String, u64, PathBuf)],
    summaries: &[&Summary],
) -> Result<()> {
    let mut pooled: Vec<Run<'_>> = Vec::new();
    for ((variant, seed, folder), summary) in runs.iter().zip(summaries) {
        let lead = vec![Cell::Name(ByteArray::from(variant.as_str())), Cell::Whole(*seed)];
        pooled.push((folder.clone(), lead, &summary.slowdown_by_size));
    }
    pool_all(dir, &[VARIANT_COLUMN, SEED_COLUMN], &pooled)
}

/// Pools the tables of a sweep's complete runs, in the order of the sweep. Runs have the tables
/// that they were asked to keep; a table that one of them lacks is not pooled.
///
/// `bins` are those of all runs in their order.
pub(crate) fn pool_sweep(dir: &Path, sweep: &Sweep, bins: &[Ordered<SizeBin>]) -> Result<()> {
    let has_variants = sweep.grid.iter().any(|axis| axis.key == VARIANT);
    let mut columns: Vec<Column<'_>> = Vec::new();
    if !has_variants {
        columns.push(VARIANT_COLUMN);
    }
    let of = |axis: &Axis| if axis.is_numeric() { Of::F64 } else { Of::Name };
    columns.extend(
        sweep.grid.iter().map(|axis| (axis.key.as_str(), of(axis), "the grid's value of this key")),
    );
    columns.push(SEED_COLUMN);
    let mut runs: Vec<Run<'_>> = Vec::new();
    let complete =
        sweep.runs().zip(bins).filter(|((_, run), _)| run.status.is_some_and(Status::is_final));
    for ((point, run), bins) in complete {
        let mut lead = Vec::new();
        if !has_variants {
            lead.push(Cell::Name(ByteArray::from(BASE)));
        }
        for (axis, (_, value)) in sweep.grid.iter().zip(point.values.iter()) {
            lead.push(match value.parse::<f64>() {
                Ok(number) if axis.is_numeric() => Cell::Float(number),
                _ => Cell::Name(ByteArray::from(value.as_str())),
            });
        }
        lead.push(Cell::Whole(run.seed));
        runs.push((dir.join(&run.folder), lead, bins));
    }
    pool_all(dir, &columns, &runs)
}

fn pool_all(dir: &Path, lead: &[Column<'_>], runs: &[Run<'_>]) -> Result<()> {
    pool(dir, FLOWS, &[lead, FLOW_COLUMNS.columns].concat(), runs, |table, (folder, lead, _)| {
        table.append(lead, &folder.join(FLOWS))
    })?;
    pool(
        dir,
        QUERIES,
        &[lead, QUERY_COLUMNS.columns].concat(),
        runs,
        |table, (folder, lead, _)| table.append(lead, &folder.join(QUERIES)),
    )?;
    pool(dir, SIZES, &[lead, SIZE_COLUMNS.columns].concat(), runs, |table, (_, lead, bins)| {
        bins.iter().try_for_each(|(name, bin)| {
            table.lead(lead);
            table.row(&SIZE_COLUMNS, bin, &[name.into()])
        })
    })
}

/// Writes `DIR/NAME` with the rows that `append` makes of each run, in place of an older one. Where
/// a run has no file of this name, or no run has a row, there is none afterwards.
fn pool(
    dir: &Path,
    name: &str,
    columns: &[Column<'_>],
    runs: &[Run<'_>],
    append: impl Fn(&mut Table, &Run<'_>) -> Result<()>,
) -> Result<()> {
    let (next, path) = (dir.join(format!(".{name}")), dir.join(name));
    let mut rows = 0;
    if runs.iter().all(|(folder, ..)| folder.join(name).is_file()) {
        let mut table =
            Table::create(&next, columns, &[("schema", SCHEMA.to_string())], ROW_GROUP)?;
        runs.iter().try_for_each(|run| append(&mut table, run))?;
        rows = table.rows;
        table.close()?;
    }
    if rows > 0 {
        return fs::rename(&next, &path).at("replace", &path);
    }
    remove_if_there(&next)?;
    remove_if_there(&path)
}
