//! Whether a paper that was read can be run and its claims decided.
//!
//! Invariant: a paper that passes has unique names, and every experiment, scheme, load and variant
//! that a claim or a baseline names exists; every claim can hold and can fail.

use crate::baseline::Baselines;
use crate::claim::{Claim, is_of_group};
use crate::experiment::Experiment;
use crate::measure::Measure;

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
    let name = experiment.name;
    named(name)?;
    if others.iter().any(|other| other.name == name) {
        return Err(format!("there are two experiments {name}"));
    }
    if experiment.schemes.is_empty() {
        return Err(format!("{name} needs at least one scheme"));
    }
    let twice = |at: &usize| {
        experiment.schemes[..*at].iter().any(|(variant, _)| *variant == experiment.schemes[*at].0)
    };
    if let Some(at) = (1..experiment.schemes.len()).find(twice) {
        return Err(format!("{name} has the scheme {} twice", experiment.schemes[at].0));
    }
    for runs in [Some(experiment.full), experiment.quick.ok()].into_iter().flatten() {
        let ((first, last), loads) = (runs.seeds, runs.loads.len());
        if first > last {
            return Err(format!(
                "{name}: `seeds` are the first and the last (got {first}, {last})"
            ));
        }
        let again =
            |at: &usize| runs.loads[..*at].iter().any(|(load, _)| *load == runs.loads[*at].0);
        if let Some(at) = (1..loads).find(again) {
            return Err(format!("{name} has the load {} twice", runs.loads[at].0));
        }
        if loads == 0 || (loads > 1 && experiment.load_key.is_none()) {
            return Err(format!(
                "{name}: without `load-key` there is one load, with it at least one (got {loads})"
            ));
        }
    }
    for curve in experiment.published {
        if experiment.schemes.iter().all(|(variant, _)| *variant != curve.variant) {
            let known = experiment.schemes.iter().map(|(variant, _)| *variant);
            return Err(unknown(name, "scheme", curve.variant, known));
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

/// Whether baselines name schemes and claims that there are, or why not.
pub(crate) fn baselines_fit(
    baselines: &Baselines,
    experiments: &[Experiment],
    claims: &[Claim],
) -> Result<(), String> {
    let variants = || {
        experiments.iter().flat_map(|experiment| experiment.schemes).map(|(variant, _)| *variant)
    };
    let single = baselines.of.iter().flat_map(|(_, pairs)| *pairs);
    for variant in baselines.off.iter().chain(single).flat_map(|(on, off)| [*on, *off]) {
        if variants().all(|known| known != variant) {
            return Err(unknown("baselines", "scheme", variant, variants()));
        }
    }
    let groups = baselines
        .of
        .iter()
        .map(|(group, _)| *group)
        .chain(baselines.none.iter().map(|(group, _)| *group));
    for group in groups {
        if !claims.iter().any(|claim| is_of_group(group, claim.id)) {
            return Err(unknown("baselines", "claim", group, claims.iter().map(|claim| claim.id)));
        }
    }
    Ok(())
}

/// Whether a claim fits its paper, or why not.
pub(crate) fn fits(
    claim: &Claim,
    experiments: &[Experiment],
    others: &[Claim],
) -> Result<(), String> {
    let id = claim.id;
    named(id)?;
    if others.iter().any(|other| other.id == id) {
        return Err(format!("there are two claims {id}"));
    }
    let named = experiments.iter().find(|experiment| experiment.name == claim.experiment());
    let experiment = named.ok_or_else(|| {
        let known = experiments.iter().map(|experiment| experiment.name);
        unknown(id, "experiment", claim.experiment(), known)
    })?;
    let (schemes, load) = claim.measure.needs();
    let known = || experiment.schemes.iter().map(|(variant, _)| *variant);
    if let Some(strange) =
        schemes.into_iter().find(|scheme| known().all(|variant| variant != *scheme))
    {
        return Err(unknown(id, "scheme", strange, known()));
    }
    let loads = match claim.measure {
        Measure::Growth { from, to, .. } => vec![from, to],
        _ => load.into_iter().collect(),
    };
    if let Some(load) =
        loads.iter().find(|load| experiment.full.loads.iter().all(|(other, _)| other != *load))
    {
        return Err(format!("{id}: experiment {} has no load {load}", experiment.name));
    }
    match (&claim.measure, claim.accept) {
        (_, [None, None]) => Err(format!("{id} cannot fail: it needs `at-least` or `at-most`")),
        (_, [Some(low), Some(high)]) if low > high => {
            Err(format!("{id} cannot hold: `at-least` {low} is above `at-most` {high}"))
        }
        (Measure::BestOf { pairs: [], .. }, _) => Err(format!("{id}: `pairs` is empty")),
        (Measure::Order { groups, .. }, _)
            if groups.len() < 2 || groups.iter().any(|group| group.is_empty()) =>
        {
            Err(format!("{id}: an order has at least two `groups`, each with a scheme"))
        }
        (Measure::Growth { from, to, .. }, _) if from == to => {
            Err(format!("{id}: `from` and `to` are one load, so the growth is always 100 %"))
        }
        (Measure::Part { whole, .. } | Measure::Median { whole, .. }, _)
            if whole.is_nan() || *whole <= 0.0 =>
        {
            Err(format!("{id}: `whole` must be above 0 (got {whole})"))
        }
        (
            Measure::Change { of, than, .. }
            | Measure::Paired { of, than, .. }
            | Measure::Best { of, than, .. }
            | Measure::Beyond { of, than, .. }
            | Measure::Furthest { of, than, .. },
            _,
        ) if of == than => Err(format!("{id} compares {of} with itself")),
        _ => Ok(()),
    }
}

/// A wrong name, with the nearest right one.
fn unknown(id: &str, what: &str, name: &str, known: impl Iterator<Item = &'static str>) -> String {
    let known: Vec<&str> = known.collect();
    let nearest = millpond_scenario::nearest(name, known.iter().copied())
        .map_or(String::new(), |near| format!("; is it {near}?"));
    format!("{id}: there is no {what} {name}{nearest}")
}
