//! Pooled tables: the rows of several runs in one file, behind columns that tell the runs apart.
//!
//! Invariant: the rows are those of the runs' own files, in the order of the runs; memory is that
//! of a row group, however many runs there are, and the bytes depend on the runs' rows alone.

use std::fs;
use std::path::{Path, PathBuf};

use parquet::data_type::ByteArray;

use crate::columns::{Column, Lead, Of, ROW_GROUP, Table};
use crate::error::{At, Result};
use crate::sizes::{SIZE_COLUMNS, SIZES};
use crate::summary::SCHEMA;
use crate::sweep::{Axis, Sweep};
use crate::sweep_results::is_numeric;
use crate::writer::{FLOW_COLUMNS, FLOWS, QUERIES, QUERY_COLUMNS};

/// The variant of a run of the scenario as it stands.
const BASE: &str = "base";
const VARIANT: &str = "variant";
const VARIANT_COLUMN: Column<'static> = (VARIANT, Of::Name, "the variant; base: the scenario as it stands");
const SEED_COLUMN: Column<'static> = ("seed", Of::I64, "the seed");

/// One run's folder, and its values of the columns that tell runs apart.
type Run = (PathBuf, Vec<Lead>);

/// Pools the tables of a compare's runs, each of (variant, seed, folder), in this order.
pub(crate) fn pool_compare(dir: &Path, runs: &[(String, u64, PathBuf)]) -> Result<()> {
    let run = |(variant, seed, folder): &(String, u64, PathBuf)| -> Run {
        (folder.clone(), vec![Lead::Name(ByteArray::from(variant.as_str())), Lead::I64(*seed)])
    };
    let runs: Vec<Run> = runs.iter().map(run).collect();
    pool_all(dir, &[VARIANT_COLUMN, SEED_COLUMN], &runs)
}

/// Pools the tables of a sweep's complete runs, in the order of the sweep. Runs have the tables
/// that they were asked to keep; a table that one of them lacks is not pooled.
pub(crate) fn pool_sweep(dir: &Path, sweep: &Sweep) -> Result<()> {
    let has_variants = sweep.grid.iter().any(|axis| axis.key == VARIANT);
    let mut columns: Vec<Column<'_>> = Vec::new();
    if !has_variants {
        columns.push(VARIANT_COLUMN);
    }
    let of = |axis: &Axis| if is_numeric(axis) { Of::F64 } else { Of::Name };
    columns.extend(sweep.grid.iter().map(|axis| (axis.key.as_str(), of(axis), "the grid's value of this key")));
    columns.push(SEED_COLUMN);
    let mut runs: Vec<Run> = Vec::new();
    for (point, run) in sweep.runs().filter(|(_, run)| run.finished(dir).is_some()) {
        let mut lead = Vec::new();
        if !has_variants {
            lead.push(Lead::Name(ByteArray::from(BASE)));
        }
        for (axis, (_, value)) in sweep.grid.iter().zip(point.values.iter()) {
            lead.push(match value.parse::<f64>() {
                Ok(number) if is_numeric(axis) => Lead::F64(number),
                _ => Lead::Name(ByteArray::from(value.as_str())),
            });
        }
        lead.push(Lead::I64(run.seed));
        runs.push((dir.join(&run.folder), lead));
    }
    pool_all(dir, &columns, &runs)
}

fn pool_all(dir: &Path, lead: &[Column<'_>], runs: &[Run]) -> Result<()> {
    pool(dir, FLOWS, lead, &FLOW_COLUMNS, runs)?;
    pool(dir, QUERIES, lead, &QUERY_COLUMNS, runs)?;
    pool(dir, SIZES, lead, &SIZE_COLUMNS, runs)
}

/// Writes `DIR/NAME` of the runs' files of this name, in place of an older one. Where a run has no
/// such file, or no run has a row, there is none afterwards.
fn pool(dir: &Path, name: &str, lead: &[Column<'_>], own: &[Column<'_>], runs: &[Run]) -> Result<()> {
    let (next, path) = (dir.join(format!(".{name}")), dir.join(name));
    let mut rows = 0;
    if runs.iter().all(|(folder, _)| folder.join(name).is_file()) {
        let columns = [lead, own].concat();
        let mut table = Table::create(&next, &columns, &[("schema", SCHEMA.to_string())], ROW_GROUP)?;
        for (folder, lead) in runs {
            table.append(lead, &folder.join(name))?;
        }
        rows = table.rows;
        table.close()?;
    }
    if rows > 0 {
        return fs::rename(&next, &path).at("replace", &path);
    }
    crate::folder::remove_if_there(&next)?;
    crate::folder::remove_if_there(&path)
}
