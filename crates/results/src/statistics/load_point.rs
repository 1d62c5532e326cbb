//! The numbers of one scheme of a paper at one load.

use std::path::Path;

use crate::model::summary::{Latency, Summary};
use crate::model::{
    Calls, Estimate, FLOWS, GoodputOverTime, LoadPoint, Number, OneRun, Ordered, QUERIES, Result,
    Rows,
};
use crate::statistics::censoring::shown;
use crate::statistics::numbers::{Json, estimates, numbers};
use crate::statistics::resampling::Resampler;

impl LoadPoint {
    /// Adds a number of what the runs have of it, by seed.
    pub fn add(&mut self, name: &str, unit: &str, values: &[(u64, f64)]) {
        let numbers: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        let estimate = Estimate::of(&numbers, &mut Resampler::new());
        let number = Number { name: name.into(), unit: unit.into(), estimate, at_least: false };
        self.numbers.push(number);
        for (seed, value) in values {
            if let Some(run) = self.each.iter_mut().find(|run| run.seed == *seed) {
                run.values.0.insert(name.to_string(), *value);
            }
        }
    }

    /// Adds the number at a path of the runs' summaries, such as `["fct_us", "mice", "p99"]`, as
    /// every table shows it: a lower bound where open flows or queries could move it.
    pub fn add_shown<'a>(
        &mut self,
        name: &str,
        unit: &str,
        path: &[&str],
        runs: impl IntoIterator<Item = &'a Summary>,
    ) {
        let Some((key, class)) = path.split_last() else { return };
        let runs = numbers(runs).unwrap_or_default();
        let own: Vec<_> = runs.iter().map(|(_, run)| run.below(class)).collect();
        let tree = estimates(&own, &mut Resampler::new());
        let shown = shown(&tree, &[*key]);
        let value = |(seed, run): &(u64, Json)| Some((*seed, run.below(class)?.at(&shown.path)?));
        let values: Vec<(u64, f64)> = runs.iter().filter_map(value).collect();
        self.add(name, unit, &values);
        if let Some(number) = self.numbers.last_mut() {
            number.at_least = shown.at_least;
        }
    }

    /// A number of each run that has it, by its name in [`OneRun`].
    pub fn by_seed(&self, name: &str) -> Vec<(u64, f64)> {
        self.each.iter().filter_map(|run| Some((run.seed, *run.values.get(name)?))).collect()
    }

    /// Of complete runs, with the completion times of their queries where those were kept.
    pub fn of(load: f64, planned: u32, runs: &[(&Summary, Option<&[f64]>)]) -> LoadPoint {
        let mut resampler = Resampler::new();
        let mut over = |number: &dyn Fn(&Summary) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(|(summary, _)| number(summary)).collect();
            Estimate::of(&values, &mut resampler)
        };
        let mut point = LoadPoint {
            load,
            runs: runs.len() as u32,
            planned,
            simulated_s: runs.first().map_or(0.0, |(summary, _)| summary.run.simulated_s),
            completed_fraction: over(&|s| s.qct_us.completed_fraction),
            mean_us: over(&|s| s.qct_us.mean),
            mean_restricted_us: over(&|s| s.qct_us.mean_restricted),
            p99_us: over(&|s| s.qct_us.p99),
            sent: over(&|s| Some(s.packets.sent as f64)),
            dropped: over(&|s| Some(s.packets.dropped as f64)),
            deflected: over(&|s| Some(s.packets.deflected as f64)),
            timeouts: over(&|s| Some(s.timeouts as f64)),
            goodput_gbps: over(&|s| s.flows.goodput_gbps),
            goodput_over_time: GoodputOverTime::total(
                runs.iter().filter_map(|(s, _)| s.goodput_over_time.as_ref()),
            ),
            each: runs.iter().map(|(summary, _)| one_run(summary)).collect(),
            ..LoadPoint::default()
        };
        let classes = runs.first().map_or_else(Vec::new, |(summary, _)| {
            summary.latency_us.iter().map(|(name, _)| name).collect()
        });
        let calls = classes.into_iter().map(|class| {
            let mut of = |number: &dyn Fn(&Latency) -> Option<f64>| {
                over(&|s| s.latency_us.get(class).and_then(number))
            };
            let count = of(&|calls| Some(calls.count as f64));
            let (p50_us, p99_us, p999_us) =
                (of(&|calls| calls.p50), of(&|calls| calls.p99), of(&|calls| calls.p999));
            (class.to_string(), Calls { count, p50_us, p99_us, p999_us })
        });
        point.calls = calls.collect();
        let mut reasons: Vec<(String, f64)> = Vec::new();
        for (reason, &n) in runs.iter().flat_map(|(summary, _)| summary.packets.dropped_by.iter()) {
            let n = n as f64 / runs.len() as f64;
            match reasons.iter_mut().find(|(name, _)| name == reason) {
                Some((_, sum)) => *sum += n,
                None => reasons.push((reason.to_string(), n)),
            }
        }
        reasons.retain(|(_, n)| *n > 0.0);
        point.dropped_by = Ordered::from(reasons);
        let mut times: Vec<f64> =
            runs.iter().filter_map(|(_, times)| *times).flatten().copied().collect();
        times.sort_by(f64::total_cmp);
        point.distribution = distribution(&times);
        point
    }
}

/// The numbers of a run that charts show.
fn one_run(of: &Summary) -> OneRun {
    let queries = [
        ("mean_us", of.qct_us.mean),
        ("p99_us", of.qct_us.p99),
        ("completed_fraction", of.qct_us.completed_fraction),
        ("goodput_gbps", of.flows.goodput_gbps),
    ];
    let mut values: Vec<(String, Option<f64>)> =
        queries.map(|(name, value)| (name.to_string(), value)).to_vec();
    for (class, calls) in of.latency_us.iter() {
        let percentiles = [("p50_us", calls.p50), ("p99_us", calls.p99), ("p999_us", calls.p999)];
        values.extend(percentiles.map(|(name, value)| (format!("{class} {name}"), value)));
    }
    let values = values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    OneRun { seed: of.seed, values: Ordered(values) }
}

/// Points of a distribution for each decade of the share that remains.
const PER_DECADE: f64 = 30.0;

/// A value for each share that takes at least as long, from all down to one of them.
fn distribution(sorted: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted.len() as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for at in 0.. {
        let remaining = libm::round(libm::pow(10.0, -f64::from(at) / PER_DECADE) * n) as usize;
        if remaining < 1 {
            break;
        }
        let point = (sorted[sorted.len() - remaining], remaining as f64 / n);
        if points.last() != Some(&point) {
            points.push(point);
        }
        if remaining == 1 {
            break;
        }
    }
    points
}

/// Returns the times of a run's flows from the first byte sent to the last byte acknowledged, in
/// microseconds, sorted: of each class by its name, and of `all`. Flows without that
/// acknowledgement are left out. Returns `None` if the run did not keep its flows.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the table cannot be read,
/// [`Error::Malformed`](crate::Error::Malformed) if it is damaged.
pub fn acknowledged_times(run: &Path) -> Result<Option<Ordered<Vec<f64>>>> {
    let path = run.join(FLOWS);
    if !path.is_file() {
        return Ok(None);
    }
    let mut times: Vec<(String, Vec<f64>)> = vec![("all".to_string(), Vec::new())];
    Rows::open(&path)?.each(["class", "fct_sender_us"], |row| {
        let (Some(class), Some(us)) = (row.text(0), row.float(1)) else { return Ok(()) };
        times[0].1.push(us);
        match times.iter_mut().skip(1).find(|(name, _)| name == class) {
            Some((_, of_class)) => of_class.push(us),
            None => times.push((class.to_string(), vec![us])),
        }
        Ok(())
    })?;
    for (_, of_class) in &mut times {
        of_class.sort_by(f64::total_cmp);
    }
    Ok(Some(Ordered::from(times)))
}

/// Returns the completion times of a run's completed queries, in microseconds, in the order of
/// their ends. Returns `None` if the run did not keep its queries.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the table cannot be read,
/// [`Error::Malformed`](crate::Error::Malformed) if it is damaged.
pub fn query_times(run: &Path) -> Result<Option<Vec<f64>>> {
    let path = run.join(QUERIES);
    if !path.is_file() {
        return Ok(None);
    }
    let mut times = Vec::new();
    Rows::open(&path)?.each(["qct_us"], |row| {
        times.extend(row.float(0));
        Ok(())
    })?;
    Ok(Some(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_ends_at_its_slowest() {
        let times: Vec<f64> = (1..=1000).map(f64::from).collect();
        let points = distribution(&times);
        assert_eq!(points.first(), Some(&(1.0, 1.0)));
        assert_eq!(points.last(), Some(&(1000.0, 0.001)));
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(distribution(&[]), []);
        assert_eq!(distribution(&[7.0]), [(7.0, 1.0)]);
    }

    #[test]
    fn a_point_has_means_over_its_runs_and_only_reasons_that_occur() {
        let summary = |mean: f64, early: u64| {
            let mut summary = Summary::default();
            summary.qct_us.mean = Some(mean);
            summary.packets.dropped_by = vec![("early".into(), early), ("ttl".into(), 0)].into();
            summary
        };
        let (a, b) = (summary(10.0, 4), summary(30.0, 0));
        let point = LoadPoint::of(95.0, 3, &[(&a, Some(&[3.0, 1.0])), (&b, None)]);
        assert_eq!((point.runs, point.planned, point.mean_us.mean), (2, 3, Some(20.0)));
        assert_eq!(point.dropped_by, vec![("early".to_string(), 2.0)].into());
        assert_eq!(point.distribution, [(1.0, 1.0), (3.0, 0.5)]);
        assert_eq!(point.p99_us.mean, None);
    }

    #[test]
    fn a_number_of_a_class_with_open_flows_is_a_lower_bound() {
        use crate::model::summary::Fct;
        let run = |seed: u64, open: u64| {
            let fct = Fct {
                count: 90,
                unfinished: open,
                completed_fraction: Some(90.0 / (90 + open) as f64),
                mean: Some(5.0),
                mean_restricted: Some(if open > 0 { 7.0 } else { 5.0 }),
                ..Fct::default()
            };
            Summary { seed, fct_us: vec![("web".into(), fct)].into(), ..Summary::default() }
        };
        let (ended, open) = (run(1, 0), run(2, 10));
        let point = |runs: [&Summary; 2]| {
            let mut point = LoadPoint::of(1.0, 2, &runs.map(|run| (run, None)));
            point.add_shown("FCT mean", "us", &["fct_us", "web", "mean"], runs);
            point
        };
        let all = point([&ended, &ended]);
        assert_eq!((all.numbers[0].estimate.mean, all.numbers[0].at_least), (Some(5.0), false));
        let some = point([&ended, &open]);
        assert_eq!((some.numbers[0].estimate.mean, some.numbers[0].at_least), (Some(6.0), true));
        assert_eq!(some.by_seed("FCT mean"), [(1, 5.0), (2, 7.0)]);
    }

    #[test]
    fn each_run_keeps_its_numbers_by_seed() {
        let summary = |seed: u64, mean: Option<f64>| {
            let mut summary = Summary { seed, ..Summary::default() };
            summary.qct_us.mean = mean;
            summary
        };
        let (a, b) = (summary(7, Some(10.0)), summary(u64::MAX, None));
        let mut point = LoadPoint::of(95.0, 2, &[(&a, None), (&b, None)]);
        point.add("timeouts", "count", &[(7, 3.0), (u64::MAX, 5.0)]);
        assert_eq!(point.by_seed("mean_us"), [(7, 10.0)]);
        assert_eq!(point.by_seed("timeouts"), [(7, 3.0), (u64::MAX, 5.0)]);
        assert_eq!(point.numbers[0].estimate.mean, Some(4.0));
    }
}
