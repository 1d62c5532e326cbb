//! How far a claim's number strays with the seeds.
//!
//! A measure is worked out anew from seeds drawn with replacement, the same draws for all its
//! schemes: they see the same arrivals. So every measure has a spread, a median and an order as
//! well as a change of means.
//!
//! Invariant: the spread depends on what was found alone; the draws come from a stream of a fixed
//! name.

use crate::experiment::Experiment;
use crate::found::{Arm, Found};
use crate::measure::{Kind, Measure};
use crate::statistic::Run;
use millpond_results::{Interval, of_resamples};

/// The spread of a measure over the seeds; `None` for one seed, or where schemes have different
/// seeds.
pub fn spread(measure: &Measure, experiment: &Experiment, found: &Found) -> Option<Interval> {
    let is_of = |variant: &str| measure.schemes().any(|scheme| scheme == variant);
    let is_needed = |arm: &&Arm| {
        (measure.kind == Kind::Cells || is_of(&arm.variant))
            && measure.load.is_none_or(|load| load == arm.load)
    };
    let arms: Vec<&Arm> = found.arms.iter().filter(is_needed).collect();
    let seeds = arms.first()?.runs.len();
    if arms.iter().any(|arm| arm.runs.len() != seeds) {
        return None;
    }
    of_resamples(seeds, |drawn| {
        let arms = arms.iter().map(|arm| resample(arm, drawn)).collect();
        let resampled = Found { name: found.name.clone(), left_out: None, arms };
        measure.of(experiment, &resampled).ok().map(|(measured, _)| measured)
    })
}

/// The runs at these places, with seeds of their own: what is drawn twice counts twice.
fn resample(arm: &Arm, drawn: &[usize]) -> Arm {
    let run = |(seed, &at): (usize, &usize)| Run { seed: seed as u64, ..arm.runs[at].shared() };
    let runs: Vec<Run> = drawn.iter().enumerate().map(run).collect();
    Arm {
        variant: arm.variant.clone(),
        load: arm.load,
        planned: (0..drawn.len() as u64).collect(),
        runs,
    }
}
