//! The numbers of measures: means, changes, orders and cells of what an experiment found.
//!
//! Invariant: a run that is missing leaves a measure without a number.

use super::{Measure, Measured};
use crate::experiment::Experiment;
use crate::found::{Arm, Found};
use crate::statistic::{Run, Statistic};
use millpond_results::Status;

/// So many samples must exceed a percentile, in all seeds together: with fewer it is a matter of
/// single flows.
const BEYOND: f64 = 10.0;

/// A statistic of a scheme at a load.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) statistic: &'a Statistic,
    pub(super) variant: &'a str,
    pub(super) load: f64,
}

impl Side<'_> {
    /// The runs, if they are all there.
    pub(super) fn runs<'f>(&self, found: &'f Found) -> Result<&'f [Run], String> {
        let Side { variant, load, .. } = self;
        let arm = found.arms.iter().find(|arm| arm.variant == *variant && arm.load == *load);
        whole(
            found,
            arm.ok_or_else(|| format!("{variant} at {load} % is not run with this effort"))?,
        )
    }

    pub(super) fn mean(&self, found: &Found) -> Result<f64, String> {
        mean_of(self.statistic, self.runs(found)?, self.variant)
    }

    fn each(&self, found: &Found) -> Result<Vec<(u64, f64)>, String> {
        let Side { statistic, variant, .. } = self;
        let runs = self.runs(found)?;
        let value = |run: &Run| {
            let value = statistic.of_run(run).map(|value| (run.seed, value));
            value.ok_or_else(|| missing(variant, statistic.absent(), run))
        };
        let values = runs.iter().map(value).collect::<Result<_, String>>()?;
        enough(statistic, runs, variant)?;
        Ok(values)
    }

    pub(super) fn values(&self, found: &Found) -> Result<Vec<f64>, String> {
        Ok(self.each(found)?.into_iter().map(|(_, value)| value).collect())
    }
}

fn whole<'a>(found: &Found, arm: &'a Arm) -> Result<&'a [Run], String> {
    if arm.runs.is_empty() {
        return Err(format!(
            "experiment {} has no complete run of {} at {} %",
            found.name, arm.variant, arm.load
        ));
    }
    let missing: Vec<String> = arm
        .planned
        .iter()
        .filter(|seed| arm.runs.iter().all(|run| run.seed != **seed))
        .map(u64::to_string)
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "{} at {} % has no complete run of seed {}",
            arm.variant,
            arm.load,
            missing.join(", ")
        ));
    }
    // A run that stalled has flows that can never end: its statistics are of those that did.
    match arm.runs.iter().find(|run| run.summary.status == Status::Stalled) {
        Some(run) => {
            Err(format!("{} at {} % stalled with seed {}", arm.variant, arm.load, run.seed))
        }
        None => Ok(&arm.runs),
    }
}

fn missing(variant: &str, absent: &str, run: &Run) -> String {
    format!("with {variant} {absent} in the run of seed {}", run.seed)
}

/// A number's mean over the seeds; each of them must have it; `absent` is the reason if one has
/// not.
fn mean(
    runs: &[Run],
    variant: &str,
    absent: &str,
    number: impl Fn(&Run) -> Option<f64>,
) -> Result<f64, String> {
    let mut sum = 0.0;
    for run in runs {
        sum += number(run).ok_or_else(|| missing(variant, absent, run))?;
    }
    Ok(sum / runs.len() as f64)
}

/// A statistic's mean over the seeds.
fn mean_of(statistic: &Statistic, runs: &[Run], variant: &str) -> Result<f64, String> {
    let mean = mean(runs, variant, statistic.absent(), |run| statistic.of_run(run))?;
    enough(statistic, runs, variant)?;
    Ok(mean)
}

/// The means of both sides, and the seeds that both have.
fn means(found: &Found, [ours, theirs]: &[Side<'_>; 2]) -> Result<([f64; 2], usize), String> {
    let (a, b) = (ours.runs(found)?, theirs.runs(found)?);
    Ok(([ours.mean(found)?, theirs.mean(found)?], a.len().min(b.len())))
}

/// How many samples of all seeds exceed a percentile, if they are fewer than it takes.
fn thin(statistic: &Statistic, runs: &[Run]) -> Option<f64> {
    let beyond: f64 = runs.iter().map(|run| statistic.beyond(run)).sum::<Option<f64>>()?;
    (beyond < BEYOND - 1e-9).then_some(beyond)
}

/// Whether a percentile of one of two schemes has too few samples beyond it.
pub(super) fn is_thin(found: &Found, [ours, theirs]: &[Side<'_>; 2]) -> Result<bool, String> {
    let thin = |side: &Side<'_>| Ok::<_, String>(thin(side.statistic, side.runs(found)?).is_some());
    Ok(thin(ours)? || thin(theirs)?)
}

/// Whether a percentile has enough samples beyond it, or why it decides nothing.
fn enough(statistic: &Statistic, runs: &[Run], variant: &str) -> Result<(), String> {
    let Some(beyond) = thin(statistic, runs) else { return Ok(()) };
    Err(format!(
        "with {variant} {beyond:.1} samples of {} exceed the percentile, of the ten that it takes",
        seeds(runs.len())
    ))
}

fn relative(of: f64, than: f64) -> Result<f64, String> {
    if than > 0.0 {
        Ok((of / than - 1.0) * 100.0)
    } else {
        Err("there is nothing to compare with: it is 0".into())
    }
}

pub(super) fn seeds(n: usize) -> String {
    if n == 1 { "one seed".to_string() } else { format!("{n} seeds") }
}

/// The middle one, or the mean of the two in the middle.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// The lowest and the highest, as text.
pub(super) fn span(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{low:.1} to {high:.1}")
}

pub(super) fn change(found: &Found, sides: &[Side<'_>; 2]) -> Measured {
    let ([a, b], n) = means(found, sides)?;
    let measured = relative(a, b)?;
    let mut how = seeds(n);
    let statistic = sides[0].statistic;
    // Of both sides, where they have it, a number of their queries.
    let both = |number: fn(&Run) -> Option<f64>| {
        sides.map(|side| mean(side.runs(found).unwrap_or(&[]), "", "", number))
    };
    if statistic.is_of_queries() {
        let shares = both(|run| run.summary.qct_us.completed_fraction);
        let done = sides.iter().zip(shares).map(|(side, share)| {
            let share = share.map_or("–".into(), |share| format!("{:.1}", share * 100.0));
            format!("{} {share} %", side.variant)
        });
        how += &format!("; queries completed: {}", done.collect::<Vec<_>>().join(", "));
    }
    if *statistic == Statistic::Mean
        && let [Ok(a), Ok(b)] = both(|run| run.summary.qct_us.mean_restricted)
        && let Ok(restricted) = relative(a, b)
    {
        how += &format!("; with open queries counted up to the horizon {restricted:+.1} %");
    }
    Ok((measured, how))
}

pub(super) fn paired(found: &Found, [ours, theirs]: &[Side<'_>; 2]) -> Measured {
    let (a, b) = (ours.each(found)?, theirs.each(found)?);
    let change = |(seed, of): &(u64, f64)| {
        let than = b.iter().find(|(other, _)| other == seed);
        relative(*of, than.ok_or_else(|| format!("no run of seed {seed}"))?.1)
    };
    let changes: Vec<f64> = a.iter().map(change).collect::<Result<_, _>>()?;
    let how = format!("median of {}: {} %", seeds(changes.len()), span(&changes));
    Ok((median(changes), how))
}

pub(super) fn ratio(found: &Found, sides: &[Side<'_>; 2]) -> Measured {
    let ([a, b], n) = means(found, sides)?;
    if b <= 0.0 {
        return Err("there is nothing to compare with: it is 0".into());
    }
    Ok((a / b * 100.0, format!("{}: {a:.1} over {b:.1}", seeds(n))))
}

pub(super) fn growth(found: &Found, [last, first]: &[Side<'_>; 2]) -> Measured {
    let ([a, b], n) = means(found, &[*first, *last])?;
    let percent = relative(b, a)? + 100.0;
    let (from, to) = (first.load, last.load);
    Ok((percent, format!("{}: {b:.1} at {to} over {a:.1} at {from}", seeds(n))))
}

pub(super) fn beyond(found: &Found, sides: &[Side<'_>; 2]) -> Measured {
    let ([a, b], n) = means(found, sides)?;
    let [of, than] = sides.map(|side| side.variant);
    Ok((a - b, format!("{}; {of} {a:.0} us, {than} {b:.0} us", seeds(n))))
}

pub(super) fn order(found: &Found, measure: &Measure) -> Measured {
    let Measure { statistic, groups, slack, load, .. } = measure;
    let load = load.unwrap_or_default();
    let runs = |variant: &str| Side { statistic, variant, load }.runs(found);
    let first = runs(&groups[0][0])?;
    for variant in groups.iter().flatten() {
        enough(statistic, runs(variant)?, variant)?;
    }
    let value = |variant: &str, seed: u64| -> Result<f64, String> {
        let run = runs(variant)?.iter().find(|run| run.seed == seed);
        let run = run.ok_or_else(|| format!("{variant} at {load} % has no run of seed {seed}"))?;
        let absent = || format!("with {variant} {} with seed {seed}", statistic.absent());
        statistic.of_run(run).ok_or_else(absent)
    };
    let (mut held, mut broken) = (0, Vec::new());
    for run in first {
        let mut fits = true;
        for (step, pair) in groups.windows(2).enumerate() {
            for (low, high) in
                pair[0].iter().flat_map(|low| pair[1].iter().map(move |high| (low, high)))
            {
                let allowed = value(high, run.seed)? * slack.get(step).copied().unwrap_or(1.0);
                if value(low, run.seed)? >= allowed {
                    fits = false;
                    let what = format!("{low} < {high}");
                    if !broken.contains(&what) {
                        broken.push(what);
                    }
                }
            }
        }
        held += usize::from(fits);
    }
    let mut how = format!("in {held} of {} seeds", first.len());
    if !broken.is_empty() {
        how.push_str(&format!("; broken: {}", broken.join(", ")));
    }
    Ok((held as f64 / first.len() as f64 * 100.0, how))
}

/// The published cells beside ours.
pub(super) struct Cells {
    within: usize,
    pub(super) all: usize,
    left_out: usize,
    /// The largest factor, and its cell.
    worst: (f64, String),
}

impl Cells {
    pub(super) fn of(experiment: &Experiment, found: &Found, factor: f64) -> Result<Cells, String> {
        let mut cells = Cells { within: 0, all: 0, left_out: 0, worst: (1.0, String::new()) };
        for curve in &experiment.published {
            let arms = found.arms.iter().filter(|arm| arm.variant == curve.variant);
            let place = |load: f64| curve.loads.iter().position(|own| *own == load);
            for (at, arm) in arms.filter_map(|arm| Some((place(arm.load)?, arm))) {
                let runs = whole(found, arm)?;
                for (statistic, name, theirs) in [
                    (&Statistic::Mean, "mean", curve.mean_s[at]),
                    (&Statistic::P99, "p99", curve.p99_s[at]),
                ] {
                    if thin(statistic, runs).is_some() {
                        cells.left_out += 1;
                        continue;
                    }
                    let ours = mean_of(statistic, runs, &curve.variant)? / 1e6;
                    let off = if ours > theirs { ours / theirs } else { theirs / ours };
                    cells.all += 1;
                    cells.within += usize::from(off <= factor);
                    if off > cells.worst.0 {
                        let Arm { variant, load, .. } = arm;
                        let ours = ours * 1e3;
                        let cell = format!("{variant} {name} at {load} %: ours {ours:.1} ms");
                        cells.worst = (off, cell);
                    }
                }
            }
        }
        match cells.all {
            0 => Err(format!("experiment {} has no cell that is published", found.name)),
            _ => Ok(cells),
        }
    }
}

pub(super) fn cells(experiment: &Experiment, found: &Found, factor: f64) -> Measured {
    let Cells { within, all, left_out, worst } = Cells::of(experiment, found, factor)?;
    let published: usize = experiment.published.iter().map(|curve| curve.loads.len() * 2).sum();
    let of = if all < published { format!(" (of {published} published)") } else { String::new() };
    let mut how = format!("{within} of {all} cells{of}");
    if left_out > 0 {
        how.push_str(&format!(
            "; {left_out} left out, where fewer than ten samples exceed the percentile"
        ));
    }
    if worst.0 > 1.0 {
        how.push_str(&format!("; furthest, by a factor of {:.2}: {}", worst.0, worst.1));
    }
    Ok((within as f64 / all as f64 * 100.0, how))
}

pub(super) fn furthest(found: &Found, measure: &Measure) -> Measured {
    let mut worst: Option<(f64, f64)> = None;
    let mut loads = 0;
    for [ours, theirs] in measure.at_loads(found, &measure.of, &measure.than) {
        let off = relative(ours.mean(found)?, theirs.mean(found)?)?.abs();
        loads += 1;
        if worst.is_none_or(|(most, _)| off > most) {
            worst = Some((off, ours.load));
        }
    }
    let (off, load) =
        worst.ok_or_else(|| format!("experiment {} has no run of {}", found.name, measure.of))?;
    Ok((off, format!("furthest of {loads} loads: at {load} %")))
}
