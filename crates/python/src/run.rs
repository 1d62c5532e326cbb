//! Runs, and results that are read back: the façade's functions, watched.

use crate::convert::{Seeds, json, keep, seeds};
use crate::error::raise;
use crate::scenario::Scenario;
use crate::watch::{Watch, watched};
use millpond::{
    Compared, Comparison, Control, Grid, Options, Reproduction, Sweep, SweepResults, Written,
    run_into,
};
use pyo3::prelude::*;
use std::path::PathBuf;

fn options(watch: &Watch, threads: Option<usize>, force: bool) -> Options<'_> {
    Options { threads, force, control: watch, ..Options::default() }
}

/// Runs a variant into a folder: summary, folder, and whether Ctrl-C ended it.
#[pyfunction]
pub fn run(
    listener: &Bound<'_, PyAny>,
    scenario: &Scenario,
    variant: Option<&str>,
    folder: PathBuf,
    threads: Option<usize>,
    force: bool,
) -> PyResult<(String, PathBuf, bool)> {
    let (py, scenario) = (listener.py(), &scenario.0);
    let (written, is_stopped) = watched(listener, |watch| {
        let plan = scenario.plan(variant)?;
        let warnings = scenario.idle();
        warnings.iter().chain(plan.warnings()).for_each(|warning| watch.warn(warning));
        run_into(&plan, folder, &options(watch, threads, force))
    })?;
    Ok((json(py, &written.summary)?, written.folder, is_stopped))
}

/// Compares variants: results, folder, and whether Ctrl-C ended it.
#[pyfunction]
pub fn compare(
    listener: &Bound<'_, PyAny>,
    scenario: &Scenario,
    vary: Vec<(String, String)>,
    of: Seeds,
    folder: PathBuf,
    threads: Option<usize>,
    force: bool,
) -> PyResult<(String, PathBuf, bool)> {
    let (py, scenario) = (listener.py(), &scenario.0);
    let vary: Vec<_> = vary.iter().map(|(key, values)| (key.as_str(), values.as_str())).collect();
    let (compared, is_stopped) = watched(listener, |watch| {
        let comparison = Comparison::new(scenario, &vary, seeds(of))?;
        comparison.warnings().iter().for_each(|warning| watch.warn(warning));
        millpond::compare(&comparison, folder, &options(watch, threads, force))
    })?;
    Ok((json(py, &compared.results)?, compared.folder, is_stopped))
}

/// How many runs a sweep has.
#[pyfunction]
pub fn sweep_runs(
    py: Python<'_>,
    scenario: &Scenario,
    axes: Vec<(String, String)>,
    of: Seeds,
    variants: bool,
    skip_invalid: bool,
) -> PyResult<usize> {
    let grid = Grid { axes, seeds: seeds(of), variants, skip_invalid, ..Grid::default() };
    let planned = py.detach(|| Sweep::new(&scenario.0, &grid)).map_err(|e| raise(py, e))?;
    Ok(planned.plan().points.iter().map(|point| point.runs.len()).sum())
}

/// Sweeps a grid, or a shard of it, after taking runs of `merged` folders: results, and whether
/// Ctrl-C ended it.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn sweep(
    listener: &Bound<'_, PyAny>,
    scenario: &Scenario,
    axes: Vec<(String, String)>,
    of: Seeds,
    variants: bool,
    skip_invalid: bool,
    kept: &str,
    shard: Option<(u32, u32)>,
    merged: Vec<PathBuf>,
    folder: PathBuf,
    threads: Option<usize>,
    force: bool,
) -> PyResult<(String, bool)> {
    let (py, scenario) = (listener.py(), &scenario.0);
    let keep = keep(py, kept)?;
    let grid = Grid { axes, seeds: seeds(of), variants, skip_invalid, ..Grid::default() };
    let (results, is_stopped) = watched(listener, |watch| {
        let mut planned = Sweep::new(scenario, &grid)?.merge(merged);
        if let Some((shard, of)) = shard {
            planned = planned.shard(shard, of)?;
        }
        planned.warnings().iter().for_each(|warning| watch.warn(warning));
        millpond::sweep(&planned, folder, keep, &options(watch, threads, force))
    })?;
    Ok((json(py, &results)?, is_stopped))
}

/// Reproduces a paper: its claims, and whether Ctrl-C ended it.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn reproduce(
    listener: &Bound<'_, PyAny>,
    paper: String,
    quick: bool,
    only: Vec<String>,
    of: Seeds,
    folder: PathBuf,
    threads: Option<usize>,
    force: bool,
) -> PyResult<(String, bool)> {
    let reproduction = Reproduction { paper, quick, only, seeds: seeds(of) };
    let (reproduced, is_stopped) = watched(listener, |watch| {
        millpond::reproduce(&reproduction, folder, &options(watch, threads, force))
    })?;
    Ok((json(listener.py(), &reproduced.claims)?, is_stopped))
}

/// The papers that are built in.
#[pyfunction]
pub fn papers() -> Vec<&'static str> {
    Reproduction::papers()
}

/// Reads a run: its summary.
#[pyfunction]
pub fn read_run(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let read = py.detach(|| Written::read(folder));
    json(py, &read.map_err(|error| raise(py, error))?.summary)
}

/// Reads a compare: its variants.
#[pyfunction]
pub fn read_compare(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    json(py, &Compared::read(folder).map_err(|error| raise(py, error))?.results)
}

/// Reads a sweep: its points.
#[pyfunction]
pub fn read_sweep(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    json(py, &SweepResults::read(&folder).map_err(|error| raise(py, error.into()))?)
}
