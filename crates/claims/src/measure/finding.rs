//! The numbers of measures: means, changes, orders and cells of what an experiment found.
//!
//! Invariant: a run that is missing leaves a measure without a number.

use super::Measured;
use crate::experiment::Experiment;
use crate::found::{Arm, Found, Run};
use crate::statistic::Statistic;
use millpond_results::Status;

/// So many samples must exceed a percentile, in all seeds together: with fewer it is a matter of
/// single flows.
const BEYOND: f64 = 10.0;

/// The runs of a scheme at a load, if they are all there.
pub(super) fn runs<'a>(found: &'a Found, variant: &str, load: f64) -> Result<&'a [Run], String> {
    let arm = found.arms.iter().find(|arm| arm.variant == variant && arm.load == load);
    let arm = arm.ok_or_else(|| format!("{variant} at {load} % is not run with this effort"))?;
    whole(found, arm)
}

pub(super) fn whole<'a>(found: &Found, arm: &'a Arm) -> Result<&'a [Run], String> {
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

/// A number's mean over the seeds; each of them must have it, and `absent` says why one has not.
pub(super) fn mean(
    runs: &[Run],
    variant: &str,
    absent: &str,
    number: impl Fn(&Run) -> Option<f64>,
) -> Result<f64, String> {
    let mut sum = 0.0;
    for run in runs {
        let missing = || format!("with {variant} {absent} in the run of seed {}", run.seed);
        sum += number(run).ok_or_else(missing)?;
    }
    Ok(sum / runs.len() as f64)
}

/// A statistic's mean over the seeds.
pub(super) fn mean_of(statistic: Statistic, runs: &[Run], variant: &str) -> Result<f64, String> {
    let mean = mean(runs, variant, statistic.absent(), |run| statistic.of_run(run))?;
    enough(statistic, runs, variant)?;
    Ok(mean)
}

/// How many samples of all seeds exceed a percentile, if they are fewer than it takes.
pub(super) fn thin(statistic: Statistic, runs: &[Run]) -> Option<f64> {
    let beyond: f64 = runs.iter().map(|run| statistic.beyond(run)).sum::<Option<f64>>()?;
    (beyond < BEYOND - 1e-9).then_some(beyond)
}

/// Whether a percentile has enough samples beyond it, or why it decides nothing.
pub(super) fn enough(statistic: Statistic, runs: &[Run], variant: &str) -> Result<(), String> {
    let Some(beyond) = thin(statistic, runs) else { return Ok(()) };
    Err(format!(
        "with {variant} {beyond:.1} samples of {} exceed the percentile, of the ten that it takes",
        seeds(runs.len())
    ))
}

pub(super) fn relative(of: f64, than: f64) -> Result<f64, String> {
    if than > 0.0 {
        Ok((of / than - 1.0) * 100.0)
    } else {
        Err("there is nothing to compare with: it is 0".into())
    }
}

pub(super) fn seeds(n: usize) -> String {
    if n == 1 { "one seed".to_string() } else { format!("{n} seeds") }
}

pub(super) fn change(
    found: &Found,
    load: f64,
    statistic: Statistic,
    of: &str,
    than: &str,
) -> Measured {
    let (a, b) = (runs(found, of, load)?, runs(found, than, load)?);
    let measured = relative(mean_of(statistic, a, of)?, mean_of(statistic, b, than)?)?;
    let mut how = seeds(a.len().min(b.len()));
    if statistic.is_of_queries() {
        let done = |runs: &[Run], name: &str| {
            let share = mean(runs, name, "", |run| run.summary.qct_us.completed_fraction);
            format!("{name} {} %", share.map_or("–".into(), |f| format!("{:.1}", f * 100.0)))
        };
        how.push_str(&format!("; queries completed: {}, {}", done(a, of), done(b, than)));
    }
    let restricted =
        |runs: &[Run], name: &str| mean(runs, name, "", |run| run.summary.qct_us.mean_restricted);
    if statistic == Statistic::Mean
        && let (Ok(a), Ok(b)) = (restricted(a, of), restricted(b, than))
        && let Ok(restricted) = relative(a, b)
    {
        how.push_str(&format!("; with open queries counted up to the horizon {restricted:+.1} %"));
    }
    Ok((measured, how))
}

pub(super) fn part(
    found: &Found,
    load: f64,
    statistic: Statistic,
    of: &str,
    whole: f64,
) -> Measured {
    let runs = runs(found, of, load)?;
    Ok((mean_of(statistic, runs, of)? / whole * 100.0, seeds(runs.len())))
}

pub(super) fn plain(found: &Found, load: f64, statistic: Statistic, of: &str) -> Measured {
    let runs = runs(found, of, load)?;
    Ok((mean_of(statistic, runs, of)?, seeds(runs.len())))
}

/// A statistic's value with each seed.
pub(super) fn each(
    statistic: Statistic,
    runs: &[Run],
    variant: &str,
) -> Result<Vec<(u64, f64)>, String> {
    let value = |run: &Run| {
        let missing =
            || format!("with {variant} {} in the run of seed {}", statistic.absent(), run.seed);
        statistic.of_run(run).map(|value| (run.seed, value)).ok_or_else(missing)
    };
    let values = runs.iter().map(value).collect::<Result<_, String>>()?;
    enough(statistic, runs, variant)?;
    Ok(values)
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

pub(super) fn paired(
    found: &Found,
    load: f64,
    statistic: Statistic,
    of: &str,
    than: &str,
) -> Measured {
    let a = each(statistic, runs(found, of, load)?, of)?;
    let b = each(statistic, runs(found, than, load)?, than)?;
    let change = |(seed, of): &(u64, f64)| {
        let (_, than) = b
            .iter()
            .find(|(other, _)| other == seed)
            .ok_or_else(|| format!("no run of seed {seed}"))?;
        relative(*of, *than)
    };
    let changes: Vec<f64> = a.iter().map(change).collect::<Result<_, _>>()?;
    let how = format!("median of {}: {} %", seeds(changes.len()), span(&changes));
    Ok((median(changes), how))
}

/// The lowest change over the loads, its load, and the changes at all of them.
pub(super) fn lowest(
    found: &Found,
    statistic: Statistic,
    of: &str,
    than: &str,
) -> Result<(f64, f64, Vec<String>), String> {
    let loads = found.arms.iter().filter(|arm| arm.variant == of).map(|arm| arm.load);
    let (mut lowest, mut all): (Option<(f64, f64)>, _) = (None, Vec::new());
    for load in loads {
        if is_thin(found, statistic, load, of, than)? {
            all.push(format!(
                "left out at {load}, where fewer than ten samples exceed the percentile"
            ));
            continue;
        }
        let (measured, _) = change(found, load, statistic, of, than)?;
        all.push(format!("{measured:+.0} % at {load}"));
        if lowest.is_none_or(|(least, _)| measured < least) {
            lowest = Some((measured, load));
        }
    }
    let nothing = || match all.first() {
        Some(_) => "at every point fewer than ten samples exceed the percentile".to_string(),
        None => format!("{of} is not run with this effort"),
    };
    let (measured, load) = lowest.ok_or_else(nothing)?;
    Ok((measured, load, all))
}

/// Whether a percentile of one of two schemes has too few samples beyond it.
pub(super) fn is_thin(
    found: &Found,
    statistic: Statistic,
    load: f64,
    of: &str,
    than: &str,
) -> Result<bool, String> {
    let thin =
        |variant: &str| Ok::<_, String>(thin(statistic, runs(found, variant, load)?).is_some());
    Ok(thin(of)? || thin(than)?)
}

pub(super) fn best(
    found: &Found,
    statistic: Statistic,
    beside: Statistic,
    of: &str,
    than: &str,
) -> Measured {
    let (measured, load, all) = lowest(found, statistic, of, than)?;
    let (cost, _) = change(found, load, beside, of, than)?;
    Ok((
        measured,
        format!("at {load}, where {} changes by {cost:+.1} %; {}", beside.name(), all.join(", ")),
    ))
}

/// The lowest change of these pairs over the loads, its load, which pair, and what each pair has at
/// all of them.
#[allow(clippy::type_complexity, reason = "a pair is a pair of names")]
pub(super) fn best_pair(
    found: &Found,
    statistic: Statistic,
    pairs: &'static [(&'static str, &'static str)],
) -> Result<(f64, f64, (&'static str, &'static str), Vec<String>), String> {
    let (mut best, mut all): (Option<(f64, f64, (&str, &str))>, _) = (None, Vec::new());
    for &(of, than) in pairs {
        let (measured, load, changes) = lowest(found, statistic, of, than)?;
        all.push(format!("{of} against {than}: {}", changes.join(", ")));
        if best.is_none_or(|(least, ..)| measured < least) {
            best = Some((measured, load, (of, than)));
        }
    }
    let (measured, load, pair) = best.ok_or("there is nothing to compare")?;
    Ok((measured, load, pair, all))
}

pub(super) fn best_of(
    found: &Found,
    statistic: Statistic,
    pairs: &'static [(&'static str, &'static str)],
) -> Measured {
    let (measured, load, (of, _), all) = best_pair(found, statistic, pairs)?;
    Ok((measured, format!("{of} at {load}; {}", all.join("; "))))
}

pub(super) fn median_part(
    found: &Found,
    load: f64,
    statistic: Statistic,
    of: &str,
    whole: f64,
) -> Measured {
    let values = each(statistic, runs(found, of, load)?, of)?;
    let parts: Vec<f64> = values.iter().map(|(_, value)| value / whole * 100.0).collect();
    let how = format!("median of {}: {} %", seeds(parts.len()), span(&parts));
    Ok((median(parts), how))
}

pub(super) fn ratio(
    found: &Found,
    load: f64,
    statistic: Statistic,
    over: Statistic,
    of: &str,
) -> Measured {
    let runs = runs(found, of, load)?;
    let (a, b) = (mean_of(statistic, runs, of)?, mean_of(over, runs, of)?);
    if b <= 0.0 {
        return Err("there is nothing to compare with: it is 0".into());
    }
    Ok((a / b * 100.0, format!("{}: {a:.1} over {b:.1}", seeds(runs.len()))))
}

pub(super) fn growth(
    found: &Found,
    statistic: Statistic,
    of: &str,
    from: f64,
    to: f64,
) -> Measured {
    let (a, b) = (runs(found, of, from)?, runs(found, of, to)?);
    let (first, last) = (mean_of(statistic, a, of)?, mean_of(statistic, b, of)?);
    let percent = relative(last, first)? + 100.0;
    Ok((
        percent,
        format!("{}: {last:.1} at {to} over {first:.1} at {from}", seeds(a.len().min(b.len()))),
    ))
}

pub(super) fn beyond(
    found: &Found,
    load: f64,
    statistic: Statistic,
    of: &str,
    than: &str,
) -> Measured {
    let (a, b) = (runs(found, of, load)?, runs(found, than, load)?);
    let (mean_a, mean_b) = (mean_of(statistic, a, of)?, mean_of(statistic, b, than)?);
    let how =
        format!("{}; {of} {mean_a:.0} us, {than} {mean_b:.0} us", seeds(a.len().min(b.len())));
    Ok((mean_a - mean_b, how))
}

pub(super) fn order(
    found: &Found,
    load: f64,
    statistic: Statistic,
    groups: &[&[&str]],
    slack: &[f64],
) -> Measured {
    let first = runs(found, groups[0][0], load)?;
    for variant in groups.iter().copied().flatten() {
        enough(statistic, runs(found, variant, load)?, variant)?;
    }
    let value = |variant: &str, seed: u64| -> Result<f64, String> {
        let run = runs(found, variant, load)?.iter().find(|run| run.seed == seed);
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
    /// Those within the factor.
    within: usize,
    /// Those that are compared.
    pub(super) all: usize,
    /// Those with too few samples.
    left_out: usize,
    /// The largest factor, and its cell.
    worst: (f64, String),
}

impl Cells {
    /// Of what an experiment found.
    pub(super) fn of(experiment: &Experiment, found: &Found, factor: f64) -> Result<Cells, String> {
        let mut cells = Cells { within: 0, all: 0, left_out: 0, worst: (1.0, String::new()) };
        for curve in experiment.published {
            let arms = found.arms.iter().filter(|arm| arm.variant == curve.variant);
            let place = |load: f64| curve.loads.iter().position(|own| *own == load);
            for (at, arm) in arms.filter_map(|arm| Some((place(arm.load)?, arm))) {
                let runs = whole(found, arm)?;
                for (statistic, name, theirs) in [
                    (Statistic::Mean, "mean", curve.mean_s[at]),
                    (Statistic::P99, "p99", curve.p99_s[at]),
                ] {
                    if thin(statistic, runs).is_some() {
                        cells.left_out += 1;
                        continue;
                    }
                    let ours = mean_of(statistic, runs, curve.variant)? / 1e6;
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

pub(super) fn furthest(found: &Found, statistic: Statistic, of: &str, than: &str) -> Measured {
    let mut worst: Option<(f64, f64)> = None;
    let mut loads = 0;
    for arm in found.arms.iter().filter(|arm| arm.variant == of) {
        let a = mean_of(statistic, whole(found, arm)?, of)?;
        let off = relative(a, mean_of(statistic, runs(found, than, arm.load)?, than)?)?.abs();
        loads += 1;
        if worst.is_none_or(|(most, _)| off > most) {
            worst = Some((off, arm.load));
        }
    }
    let (off, load) =
        worst.ok_or_else(|| format!("experiment {} has no run of {of}", found.name))?;
    Ok((off, format!("furthest of {loads} loads: at {load} %")))
}
