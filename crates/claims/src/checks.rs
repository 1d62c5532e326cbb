//! Whether a paper that was read can be run and its claims decided.
//!
//! Invariant: a paper that passes has unique names, and every experiment, scheme, load and variant
//! that a claim or a baseline names exists; every claim can hold and can fail.

use crate::claim::{Claim, is_of_group};
use crate::experiment::{Effort, Experiment};
use crate::measure::Kind;
use crate::paper::Paper;
use millpond_results::Cause;

/// Names are parts of paths and of other names.
pub(crate) fn named(name: &str) -> Result<(), String> {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if is_plain {
        Ok(())
    } else {
        Err(format!("a name has letters, digits and hyphens (got \"{name}\")"))
    }
}

/// Whether an experiment can be run, or why not.
pub(crate) fn is_sound(experiment: &Experiment, others: &[Experiment]) -> Result<(), String> {
    let name = &experiment.name;
    named(name)?;
    if others.iter().any(|other| other.name == *name) {
        return Err(format!("there are two experiments {name}"));
    }
    if experiment.schemes.is_empty() {
        return Err(format!("{name} needs at least one scheme"));
    }
    if let Some(variant) = twice(experiment.variants()) {
        return Err(format!("{name} has the scheme {variant} twice"));
    }
    for runs in [Effort::Full, Effort::Quick].into_iter().filter_map(|of| experiment.runs(of).ok())
    {
        let ((first, last), loads) = (runs.seeds, runs.loads.len());
        if first > last {
            return Err(format!(
                "{name}: `seeds` are the first and the last (got {first}, {last})"
            ));
        }
        if let Some(load) = twice(runs.loads.iter().map(|(load, _)| *load)) {
            return Err(format!("{name} has the load {load} twice"));
        }
        if loads == 0 || (loads > 1 && experiment.load_key.is_none()) {
            return Err(format!(
                "{name}: without `load-key` there is one load, with it at least one (got {loads})"
            ));
        }
    }
    for curve in &experiment.published {
        if !experiment.has(&curve.variant) {
            return Err(unknown(name, "scheme", &curve.variant, experiment.variants()));
        }
        let numbers = [curve.loads.len(), curve.mean_s.len(), curve.p99_s.len()];
        if numbers.iter().any(|n| *n != numbers[0]) {
            return Err(format!(
                "{name}: the curve of {} has {numbers:?} loads, means and p99s",
                curve.variant
            ));
        }
    }
    Ok(())
}

/// The first value that is there a second time.
fn twice<T: PartialEq + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let all: Vec<T> = values.collect();
    (1..all.len()).find(|at| all[..*at].contains(&all[*at])).map(|at| all[at])
}

/// Whether baselines name schemes and claims that there are, or why not.
pub(crate) fn baselines_fit(paper: &Paper) -> Result<(), String> {
    let Paper { experiments, claims, baselines, .. } = paper;
    let variants = || experiments.iter().flat_map(Experiment::variants);
    let single = baselines.of.iter().flat_map(|(_, pairs)| pairs);
    for variant in baselines.off.iter().chain(single).flat_map(|(on, off)| [on, off]) {
        if variants().all(|known| known != variant) {
            return Err(unknown("baselines", "scheme", variant, variants()));
        }
    }
    let single = baselines.of.iter().map(|(group, _)| group);
    for group in single.chain(baselines.none.iter().map(|(group, _)| group)) {
        if !claims.iter().any(|claim| is_of_group(group, &claim.id)) {
            let known = claims.iter().map(|claim| claim.id.as_str());
            return Err(unknown("baselines", "claim", group, known));
        }
    }
    Ok(())
}

/// Whether a claim fits its paper, or why not.
pub(crate) fn fits(claim: &Claim, paper: &Paper) -> Result<(), String> {
    let (id, measure) = (&claim.id, &claim.measure);
    named(id)?;
    if paper.claims.iter().any(|other| other.id == *id) {
        return Err(format!("there are two claims {id}"));
    }
    let experiment = paper.experiment(claim.experiment()).ok_or_else(|| {
        let known = paper.experiments.iter().map(|experiment| experiment.name.as_str());
        unknown(id, "experiment", claim.experiment(), known)
    })?;
    if let Some(strange) = measure.schemes().find(|scheme| !experiment.has(scheme)) {
        return Err(unknown(id, "scheme", strange, experiment.variants()));
    }
    let is_growth = measure.kind == Kind::Growth;
    let span = [measure.from, measure.to].into_iter().filter(|_| is_growth);
    let has = |load: &f64| experiment.full.loads.iter().any(|(other, _)| other == load);
    if let Some(load) = measure.load.into_iter().chain(span).find(|load| !has(load)) {
        return Err(format!("{id}: experiment {} has no load {load}", experiment.name));
    }
    let groups = &measure.groups;
    match claim.accept() {
        [None, None] => return Err(format!("{id} cannot fail: it needs `at-least` or `at-most`")),
        [Some(low), Some(high)] if low > high => {
            return Err(format!("{id} cannot hold: `at-least` {low} is above `at-most` {high}"));
        }
        _ => {}
    }
    match measure.kind {
        Kind::BestOf if measure.pairs.is_empty() => Err(format!("{id}: `pairs` is empty")),
        Kind::Order if groups.len() < 2 || groups.iter().any(Vec::is_empty) => {
            Err(format!("{id}: an order has at least two `groups`, each with a scheme"))
        }
        Kind::Growth if measure.from == measure.to => {
            Err(format!("{id}: `from` and `to` are one load, so the growth is always 100 %"))
        }
        _ => match measure.whole {
            Some(whole) if whole.is_nan() || whole <= 0.0 => {
                Err(format!("{id}: `whole` must be above 0 (got {whole})"))
            }
            _ if !measure.than.is_empty() && measure.of == measure.than => {
                Err(format!("{id} compares {} with itself", measure.of))
            }
            _ => Ok(()),
        },
    }
}

/// Whether a cause fits its paper, or why not.
pub(crate) fn cause_fits(cause: &Cause, paper: &Paper) -> Result<(), String> {
    let Cause { name, claims, .. } = cause;
    named(name)?;
    if paper.causes.iter().any(|other| other.name == *name) {
        return Err(format!("there are two causes {name}"));
    }
    if claims.is_empty() {
        return Err(format!("{name}: `claims` is empty"));
    }
    for (at, claim) in claims.iter().enumerate() {
        let known = || paper.claims.iter().map(|claim| claim.id.as_str());
        if !known().any(|id| id == claim) {
            return Err(unknown(name, "claim", claim, known()));
        }
        let other = paper.cause(claim).map(|cause| &cause.name);
        if let Some(other) = other.or(claims[..at].contains(claim).then_some(name)) {
            return Err(format!("{name}: claim {claim} is in the cause {other}, too"));
        }
    }
    Ok(())
}

/// A wrong name, with the nearest right one.
fn unknown<'a>(id: &str, what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let nearest = millpond_scenario::nearest(name, known.iter().copied())
        .map_or(String::new(), |near| format!("; is it {near}?"));
    format!("{id}: there is no {what} {name}{nearest}")
}
