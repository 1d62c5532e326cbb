//! Bins of size that all runs of a comparison share.
//!
//! A run cuts its own flows into bins of equal count, so two seeds have different edges. A
//! comparison takes its edges from the flows of all its runs together. Where a run has not kept its
//! flows, or runs are cut by different rules, the bins are those with fixed edges, which every
//! summary has.
//!
//! Invariant: bins of the same name have the same edges in every run of a comparison.

use std::path::{Path, PathBuf};

use crate::model::summary::Summary;
use crate::model::{FLOWS, Result, Rows};
use crate::statistics::by_size::{BySize, Edge, SizeBins};
use crate::statistics::samples::Samples;

/// The note of a file of flows that has the rule of its bins.
pub(crate) const RULE: &str = "millpond.size_bins";

/// Gives the runs of a comparison the same bins. `runs` are their folders, `scratch` is one that
/// may be written to.
pub(crate) fn share(
    runs: &[PathBuf],
    summaries: &mut [&mut Summary],
    scratch: &Path,
) -> Result<()> {
    if summaries.len() < 2
        || summaries.iter().all(|summary| summary.slowdown_by_fixed_size.is_empty())
    {
        return Ok(());
    }
    let Some(edges) = edges(runs, scratch)? else {
        for summary in summaries {
            if !summary.slowdown_by_fixed_size.is_empty() {
                summary.slowdown_by_size = summary.slowdown_by_fixed_size.clone();
            }
        }
        return Ok(());
    };
    for (run, summary) in runs.iter().zip(summaries) {
        let mut sizes = BySize::new(scratch.join(".spill-bins"));
        each_flow(run, |bytes, slowdown| sizes.push(bytes, slowdown))?;
        summary.slowdown_by_size = sizes.at(edges.clone())?;
    }
    Ok(())
}

/// Edges of bins with as many flows each as sizes allow, over the flows of all runs together.
/// `None` if a run has not kept its flows, or runs are cut by different rules or at given edges.
pub(crate) fn edges(runs: &[PathBuf], scratch: &Path) -> Result<Option<Vec<Edge>>> {
    let mut rule: Option<SizeBins> = None;
    for run in runs {
        let path = run.join(FLOWS);
        if !path.is_file() {
            return Ok(None);
        }
        let own =
            Rows::open(&path)?.text_note(RULE).and_then(SizeBins::of_note).unwrap_or_default();
        if matches!(own, SizeBins::Edges(_)) || rule.as_ref().is_some_and(|rule| *rule != own) {
            return Ok(None);
        }
        rule = Some(own);
    }
    let Some(rule) = rule else { return Ok(None) };
    let mut sizes = Samples::new(scratch.join(".spill-edges"));
    for run in runs {
        each_flow(run, |bytes, _| sizes.push(bytes))?;
    }
    Ok(Some(rule.cut(&mut sizes)?))
}

/// Shows each flow of a run that has a slowdown or is open: its size and its slowdown.
fn each_flow(run: &Path, mut each: impl FnMut(u64, Option<f64>) -> Result<()>) -> Result<()> {
    Rows::open(&run.join(FLOWS))?.each(["bytes", "fct_us", "slowdown"], |row| {
        match (row.float(1), row.float(2)) {
            (Some(_), None) => Ok(()),
            (_, slowdown) => each(row.whole(0).unwrap_or(0), slowdown),
        }
    })
}
