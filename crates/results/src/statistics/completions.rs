//! Completion times and slowdowns of one class while a run is written, and what is made of them at
//! its end.
//!
//! Invariant: what is open counts in no mean and percentile of the completed, and in every
//! restricted mean and bound.

use millpond_core::Time;

use crate::model::summary::{Fct, Qct, Slowdown};
use crate::model::{FlowRecord, Percentiles, Result};
use crate::statistics::samples::{Between, Samples};
use crate::statistics::survival::{Survival, survival};

pub(crate) const PS_PER_US: f64 = 1e6;

/// Completion times as they pass: of what completed, and the starts of what is open.
pub(crate) struct Completions {
    times: Samples,
    open: Vec<u64>,
}

impl Completions {
    pub(crate) fn new(times: Samples) -> Completions {
        Completions { times, open: Vec::new() }
    }

    pub(crate) fn push(&mut self, start: Time, time: Option<Time>) -> Result<()> {
        match time {
            Some(time) => self.times.push(time.as_ps()),
            None => {
                self.open.push(start.as_ps());
                Ok(())
            }
        }
    }

    pub(crate) fn end(self, horizon: Time) -> Result<Fct> {
        let (count, unfinished, sum) =
            (self.times.count(), self.open.len() as u64, self.times.sum());
        let ages: Vec<u64> =
            self.open.iter().map(|start| horizon.as_ps().saturating_sub(*start)).collect();
        let waited: u128 = ages.iter().map(|&age| u128::from(age)).sum();
        let started = count + unfinished;
        let Survival { ended, at_least, at_most, kaplan_meier } =
            survival(self.times, ages, |between| between.interpolate(PS_PER_US))?;
        let Percentiles { p50, p90, p95, p99, p999, max } = ended;
        Ok(Fct {
            count,
            unfinished,
            completed_fraction: (started > 0).then(|| count as f64 / started as f64),
            mean: mean_us(sum, count),
            mean_restricted: mean_us(sum + waited, started),
            p50,
            p90,
            p95,
            p99,
            p999,
            max,
            at_least,
            at_most,
            kaplan_meier,
        })
    }
}

impl From<Fct> for Qct {
    fn from(of: Fct) -> Qct {
        Qct {
            started: of.count + of.unfinished,
            completed: of.count,
            completed_fraction: of.completed_fraction,
            mean: of.mean,
            mean_restricted: of.mean_restricted,
            p50: of.p50,
            p90: of.p90,
            p95: of.p95,
            p99: of.p99,
            p999: of.p999,
            max: of.max,
            at_least: of.at_least,
            at_most: of.at_most,
            kaplan_meier: of.kaplan_meier,
        }
    }
}

/// Slowdowns as they pass: of what completed, and start and FCT alone of what is open.
pub(crate) struct Slowdowns {
    of: Samples,
    open: Vec<(Time, Time)>,
}

impl Slowdowns {
    pub(crate) fn new(of: Samples) -> Slowdowns {
        Slowdowns { of, open: Vec::new() }
    }

    pub(crate) fn push(&mut self, flow: &FlowRecord, slowdown: Option<f64>) -> Result<()> {
        match slowdown {
            Some(slowdown) => self.of.push_float(slowdown),
            None if flow.finish.is_none() => {
                self.open.push((flow.start, flow.ideal));
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(crate) fn end(self, horizon: Time) -> Result<Slowdown> {
        // No flow is faster than alone, however young it is, and whether or not its FCT alone is
        // known.
        let by_now = |&(start, ideal): &(Time, Time)| {
            let age = if ideal == Time::ZERO { Time::ZERO } else { horizon.saturating_sub(start) };
            (age.as_ps() as f64 / ideal.as_ps().max(1) as f64).max(1.0).to_bits()
        };
        let open = self.open.iter().map(by_now).collect();
        let Survival {
            ended: Percentiles { p50, p90, p95, p99, p999, max },
            at_least,
            at_most,
            ..
        } = survival(self.of, open, Between::interpolate_bits)?;
        Ok(Slowdown { p50, p90, p95, p99, p999, max, at_least, at_most })
    }
}

fn mean_us(sum_ps: u128, count: u64) -> Option<f64> {
    (count > 0).then(|| sum_ps as f64 / (count as f64 * PS_PER_US))
}
