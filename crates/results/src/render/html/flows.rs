//! Distributions of completion times, and times and slowdowns by size, from the Parquet files of a
//! variant's runs.
//!
//! Seeds are pooled; where there are several, the curve of each is kept for the band that shows how
//! far they differ.
//!
//! Invariant: values are exact, and memory does not grow with the files' rows.

use std::path::{Path, PathBuf};

use crate::model::{FLOWS, Ordered, QUERIES, Result, Rows, SizeBin};
use crate::render::draw::number::extent;
use crate::statistics::bins::RULE;
use crate::statistics::by_size::{BySize, Edge, SizeBins};
use crate::statistics::samples::Samples;

/// Points of a curve for each decade of the share that remains.
const PER_DECADE: f64 = 60.0;
/// Flows of which a p99 is more than the largest but one.
pub(crate) const P99_NEEDS: u64 = 100;

/// Completion times of a variant's runs together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distribution {
    pub started: u64,
    /// Those that completed: what the curve is made of.
    pub completed: u64,
    /// Microseconds, and the share of the completed that took at least as long: from all to one of
    /// them.
    pub curve: Vec<(f64, f64)>,
    /// The least and the most of the seeds' times, and the share; empty for one seed.
    pub band: Vec<(f64, f64, f64)>,
}

/// The contribution of one variant's flows and queries to the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub all: Distribution,
    /// Flows below the mice's limit, in bytes.
    pub mice: Distribution,
    pub elephants: Distribution,
    pub queries: Distribution,
    pub slowdown: Ordered<SizeBin>,
    /// FCT in microseconds by size, in the same bins.
    pub fct: Ordered<SizeBin>,
    /// Mice are smaller; elephants are larger.
    pub limits: (u64, u64),
}

/// One distribution while it is read.
struct Collector {
    pooled: Samples,
    seed: Samples,
    scratch: PathBuf,
    started: u64,
    curves: Vec<Vec<(f64, f64)>>,
}

impl Collector {
    fn new(scratch: &Path, name: &str) -> Collector {
        let scratch = scratch.join(format!(".spill-report-{name}"));
        let (pooled, seed) = (Samples::new(scratch.clone()), Samples::new(scratch.clone()));
        Collector { pooled, seed, scratch, started: 0, curves: Vec::new() }
    }

    fn push(&mut self, time: Option<f64>, several: bool) -> Result<()> {
        self.started += 1;
        let Some(time) = time else { return Ok(()) };
        if several {
            self.seed.push_float(time)?;
        }
        self.pooled.push_float(time)
    }

    fn end_run(&mut self) -> Result<()> {
        let mut seed = std::mem::replace(&mut self.seed, Samples::new(self.scratch.clone()));
        self.curves.push(curve(&mut seed)?);
        Ok(())
    }

    fn end(mut self) -> Result<Distribution> {
        let curve = curve(&mut self.pooled)?;
        let shared = self.curves.iter().map(Vec::len).min().unwrap_or(0);
        // Points of the same number are of the same share, but for rounding to whole flows.
        let band = |at: usize| {
            let (least, most) = extent(self.curves.iter().map(|curve| curve[at].0))?;
            Some((least, most, share(at)))
        };
        let band =
            if self.curves.len() > 1 { (0..shared).filter_map(band).collect() } else { Vec::new() };
        Ok(Distribution { started: self.started, completed: self.pooled.count(), curve, band })
    }
}

/// The share of a curve's point.
fn share(at: usize) -> f64 {
    libm::pow(10.0, -(at as f64) / PER_DECADE)
}

/// A value for each share, down to one of them all.
fn curve(samples: &mut Samples) -> Result<Vec<(f64, f64)>> {
    let n = samples.count();
    let remaining = |at: usize| ((share(at) * n as f64).round() as u64).clamp(1, n);
    let points = (0..).take_while(|&at| n > 0 && share(at) * n as f64 >= 1.0 - 1e-9).map(remaining);
    let mut remaining: Vec<u64> = points.collect();
    if remaining.last().is_some_and(|&last| last > 1) {
        remaining.push(1);
    }
    let ranks: Vec<u64> = remaining.iter().map(|k| n - k).collect();
    let values = samples.at_ranks(&ranks)?;
    Ok(values
        .into_iter()
        .map(f64::from_bits)
        .zip(remaining.iter().map(|&k| k as f64 / n as f64))
        .collect())
}

impl Times {
    /// Of all runs in these folders (the seeds of one variant). Spills to `scratch` if they are
    /// many. Sizes are cut at `edges` where there are any, and by the rule of the runs otherwise.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) or [`Error::Malformed`](crate::Error::Malformed) if a run's
    /// flows or queries cannot be read, [`Error::Io`](crate::Error::Io) if a spill file fails.
    pub fn read(runs: &[PathBuf], edges: Option<&[Edge]>, scratch: &Path) -> Result<Times> {
        let several = runs.len() > 1;
        let [mut all, mut mice, mut elephants, mut queries] =
            ["all", "mice", "elephants", "queries"].map(|name| Collector::new(scratch, name));
        let [mut slowdown, mut times] = ["slowdown", "fct"]
            .map(|name| BySize::new(scratch.join(format!(".spill-report-size-{name}"))));
        let (mut limits, mut rule) = ((0, 0), SizeBins::default());
        for run in runs {
            let rows = Rows::open(&run.join(FLOWS))?;
            limits = (rows.note("millpond.mice_bytes")?, rows.note("millpond.elephants_bytes")?);
            // A file of before there were bins has no note of them.
            rule = rows.text_note(RULE).and_then(SizeBins::of_note).unwrap_or_default();
            rows.each(["bytes", "fct_us", "slowdown"], |row| {
                let (bytes, fct, own) = (row.whole(0).unwrap_or(0), row.float(1), row.float(2));
                all.push(fct, several)?;
                if bytes < limits.0 {
                    mice.push(fct, several)?;
                }
                if bytes > limits.1 {
                    elephants.push(fct, several)?;
                }
                times.push(bytes, fct)?;
                if own.is_some() || fct.is_none() {
                    slowdown.push(bytes, own)?;
                }
                Ok(())
            })?;
            let rows = Rows::open(&run.join(QUERIES))?;
            rows.each(["qct_us"], |row| queries.push(row.float(0), several))?;
            let mut all = [&mut all, &mut mice, &mut elephants, &mut queries].into_iter();
            all.try_for_each(|of| if several { of.end_run() } else { Ok(()) })?;
        }
        let (all, mice, elephants, queries) =
            (all.end()?, mice.end()?, elephants.end()?, queries.end()?);
        let (slowdown, fct) = match edges {
            Some(edges) => (slowdown.at(edges.to_vec())?, times.at(edges.to_vec())?),
            None => (slowdown.by(&rule)?, times.by(&rule)?),
        };
        Ok(Times { all, mice, elephants, queries, slowdown, fct, limits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_the_least_to_the_most() {
        let mut samples = Samples::new(PathBuf::from("/nowhere"));
        (1..=1000).rev().for_each(|n| samples.push_float(f64::from(n)).unwrap());
        let points = curve(&mut samples).unwrap();
        assert_eq!((points[0], *points.last().unwrap()), ((1.0, 1.0), (1000.0, 0.001)));
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 >= b.1));
        // Of 1000, ten took at least 991.
        assert!(points.contains(&(991.0, 0.01)));
        assert_eq!(curve(&mut Samples::new(PathBuf::new())).unwrap(), []);
        samples = Samples::new(PathBuf::from("/nowhere"));
        samples.push_float(7.0).unwrap();
        assert_eq!(curve(&mut samples).unwrap(), [(7.0, 1.0)]);
    }
}
