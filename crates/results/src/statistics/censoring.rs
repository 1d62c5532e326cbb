//! The text of tables and pages where flows or queries are open at the end: a warning, and bounds
//! in place of numbers.
//!
//! A mean or percentile of the completed leaves out the slowest, which are the likeliest to be
//! open. So where open ones could move a number, a table shows another one, behind `≥`: of a
//! percentile its `at_least`, where an open one counts with its age; of a mean `mean_restricted`,
//! which is the same of the mean. Whatever becomes of what is open, the number of all that started
//! is not below. A number without `≥` is that of the completed.
//!
//! Open ones could move a percentile if it, `at_least` and `at_most` are not the same to three
//! digits; a mean if fewer than [`ENOUGH`] completed, since strictly a single open one could move
//! it.
//!
//! Invariant: what is shown follows from the statistics alone, and is the same in every table and
//! page.

use crate::model::summary::Summary;
use crate::model::{Difference, Estimate, Noise, Status, Tree, VariantResult};

/// The share of a class that must have completed.
pub(crate) const ENOUGH: f64 = 0.99;
/// Classes that a warning names at most.
const NAMED: usize = 8;
const PERCENTILES: [&str; 6] = ["p50", "p90", "p95", "p99", "p999", "max"];

/// The warnings of one or several runs: which classes did not complete, and how to let them.
pub(crate) fn warnings(runs: &[Summary]) -> Vec<String> {
    let mut shares: Vec<(String, u64, u64)> = Vec::new();
    let mut add = |name: &str, completed: u64, started: u64| match shares
        .iter_mut()
        .find(|share| share.0 == name)
    {
        Some(share) => (share.1, share.2) = (share.1 + completed, share.2 + started),
        None => shares.push((name.to_string(), completed, started)),
    };
    for run in runs {
        for (class, fct) in run.fct_us.iter().filter(|(_, fct)| fct.count + fct.unfinished > 0) {
            add(&flows_of(class), fct.count, fct.count + fct.unfinished);
        }
        if run.qct_us.started > 0 {
            add("queries (QCT)", run.qct_us.completed, run.qct_us.started);
        }
    }
    let whole = shares.first().map(|(_, completed, started)| (*completed, *started));
    let short: Vec<String> = shares
        .iter()
        .enumerate()
        // A class that is all there is has been named.
        .filter(|(at, (_, completed, started))| *at == 0 || whole != Some((*completed, *started)))
        .map(|(_, (name, completed, started))| (name, *completed as f64 / *started as f64))
        .filter(|(_, share)| *share < ENOUGH)
        // A share below 99 % does not round to it.
        .map(|(name, share)| {
            format!("{:.1}% of {name}", (share * 1000.0).round().min(989.0) / 10.0)
        })
        .collect();
    if short.is_empty() {
        return Vec::new();
    }
    let more = match short.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(", and less than {}% of {n} more classes", ENOUGH * 100.0),
    };
    vec![
        format!("only {} completed by the end{more}", short[..short.len().min(NAMED)].join(", ")),
        advice(runs),
    ]
}

/// How open flows are counted, and what lets them end, of what the runs do not have already. Of
/// runs that stalled their own warning names the repair.
fn advice(runs: &[Summary]) -> String {
    let mut text = COUNTED.to_string();
    let open = || runs.iter().filter(|run| run.status != Status::Stalled);
    if open().any(|run| !run.until_complete) {
        text += ". ";
        text += BY_FLOWS;
    } else if open().next().is_some() {
        text += ". ";
        text += BY_TIME;
    }
    text
}

const COUNTED: &str = "means and percentiles of the completed leave out what was still open, \
                       often the slowest; tables show a bound (\u{2265}) where it matters";
/// The advice that lets the flows of a run complete that ends by its duration.
pub(crate) const BY_FLOWS: &str = "To let all complete, give each [[traffic]] a stop and write \
                                   until = \"flows-complete\" in place of the duration";
/// The same of a run that was to end with its flows, and ended by its duration before.
pub(crate) const BY_TIME: &str = "To let all complete, give the run a longer duration, or none";

fn flows_of(class: &str) -> String {
    match class {
        "all" => "all flows".into(),
        "mice" | "elephants" => class.into(),
        traffic => format!("{traffic:?}"),
    }
}

/// A number as it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shown {
    pub estimate: Estimate,
    /// Whether it is a lower bound.
    pub at_least: bool,
    /// Where it is in the statistics.
    pub path: Vec<String>,
}

/// The number that is shown in the place of that at a path such as `["fct_us", "mice", "p99"]`.
pub(crate) fn shown(statistics: &Tree<Estimate>, path: &[impl AsRef<str>]) -> Shown {
    let mut path: Vec<String> = path.iter().map(|part| part.as_ref().to_string()).collect();
    let at_least = path.split_last().is_some_and(|(key, class)| {
        statistics.at(class).is_some_and(|class| could_move(class, key))
    });
    if at_least && let Some(key) = path.pop() {
        match key.as_str() {
            "mean" => path.push("mean_restricted".into()),
            _ => path.extend(["at_least".into(), key]),
        }
    }
    Shown { estimate: statistics.leaf(&path).copied().unwrap_or_default(), at_least, path }
}

/// The difference that is shown between two variants: of bounds where either has one.
pub(crate) fn difference(
    first: &VariantResult,
    own: &VariantResult,
    path: &[impl AsRef<str>],
) -> Option<Difference> {
    difference_of(&first.statistics, &own.statistics, own.differences.as_ref()?, path)
}

/// The same of the statistics of both and the differences.
pub(crate) fn difference_of(
    first: &Tree<Estimate>,
    own: &Tree<Estimate>,
    differences: &Tree<Difference>,
    path: &[impl AsRef<str>],
) -> Option<Difference> {
    let bounds =
        [first, own].map(|statistics| shown(statistics, path)).into_iter().find(|s| s.at_least);
    let found = match &bounds {
        Some(bound) => differences.leaf(&bound.path),
        None => differences.leaf(path),
    };
    let found = *found?;
    let Some((key, class)) = path.split_last() else { return Some(found) };
    let noise = noise_of(found.noise, key.as_ref(), [first.at(class), own.at(class)], found.mean);
    Some(Difference { noise, ..found })
}

/// The verdict on the difference of a class's number between two variants, if `noise` is that of
/// the seeds. The number that is less must be known: what is open could raise a bound.
pub(crate) fn noise_of(
    noise: Noise,
    key: &str,
    [first, own]: [Option<&Tree<Estimate>>; 2],
    difference: Option<f64>,
) -> Noise {
    let is_bound =
        |class: Option<&Tree<Estimate>>| class.is_some_and(|class| could_move(class, key));
    let less = match difference {
        Some(difference) if difference > 0.0 => is_bound(first),
        Some(difference) if difference < 0.0 => is_bound(own),
        _ => is_bound(first) || is_bound(own),
    };
    if less { Noise::Open } else { noise }
}

/// Whether what is open could move a number of a class.
fn could_move(class: &Tree<Estimate>, key: &str) -> bool {
    let mean = |path: &[&str]| class.leaf(path).and_then(|estimate| estimate.mean);
    match key {
        "mean" => mean(&["completed_fraction"]).is_some_and(|share| share < ENOUGH),
        _ if !PERCENTILES.contains(&key) => false,
        _ => {
            let (Some(low), Some(high)) =
                (class.leaf(&["at_least", key]), class.leaf(&["at_most", key]))
            else {
                return false;
            };
            let digits = |number: Option<f64>| number.map(|number| format!("{number:.2e}"));
            // A seed without an upper bound has none.
            let ends = [low.mean, high.mean.filter(|_| high.n == low.n), mean(&[key])].map(digits);
            ends[0].is_some() && ends.iter().any(|end| *end != ends[0])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::summary::{Fct, Qct};
    use crate::model::{Ordered, Percentiles};
    use crate::statistics::numbers::statistics;

    fn class(count: u64, unfinished: u64) -> Fct {
        let share = Some(count as f64 / (count + unfinished) as f64);
        Fct { count, unfinished, completed_fraction: share, ..Fct::default() }
    }

    fn run(classes: &[(&str, u64, u64)], queries: (u64, u64)) -> Summary {
        let fct_us: Vec<_> = classes
            .iter()
            .map(|&(name, count, open)| (name.to_string(), class(count, open)))
            .collect();
        let qct_us = Qct { started: queries.0, completed: queries.1, ..Qct::default() };
        Summary { fct_us: Ordered::from(fct_us), qct_us, ..Summary::default() }
    }

    #[test]
    fn advice_names_nothing_that_is_set_already() {
        let open = run(&[("all", 10, 10)], (0, 0));
        let until = Summary { until_complete: true, ..open.clone() };
        let stalled = Summary { status: Status::Stalled, ..until.clone() };
        let advice = |runs: &[Summary]| warnings(runs).pop().unwrap_or_default();
        assert!(advice(&[open.clone(), until.clone()]).ends_with(BY_FLOWS));
        assert!(advice(std::slice::from_ref(&until)).ends_with(BY_TIME));
        assert!(advice(&[stalled.clone(), until]).ends_with(BY_TIME));
        assert_eq!(advice(&[stalled]), COUNTED);
        assert!(!BY_TIME.contains("flows-complete"));
    }

    #[test]
    fn what_is_below_99_percent_is_told_over_all_seeds() {
        let told =
            warnings(&[run(&[("all", 990, 10), ("mice", 99, 1), ("elephants", 0, 0)], (0, 0))]);
        assert_eq!(told, Vec::<String>::new(), "99 % is enough");
        let told =
            warnings(&[run(&[("all", 9899, 101), ("mice", 500, 0), ("elephants", 5, 5)], (4, 1))]);
        assert!(
            told[0]
                .starts_with("only 98.9% of all flows, 50.0% of elephants, 25.0% of queries (QCT)"),
            "{told:?}"
        );
        assert!(
            told[1].contains("until = \"flows-complete\"") && told[1].contains("stop"),
            "{told:?}"
        );
        // Seeds are pooled; a class of all the flows is named once.
        let seed = |open| run(&[("all", 10, open), ("mice", 10, open), ("web", 10, open)], (0, 0));
        assert_eq!(
            warnings(&[seed(0), seed(20)])[0],
            "only 50.0% of all flows completed by the end"
        );
        let many: Vec<String> = (0..30).map(|n| format!("class {n}")).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), 1, 1)).collect();
        let told = warnings(&[run(&[&[("all", 30, 31)][..], &many].concat(), (0, 0))]);
        assert!(told[0].len() < 250 && told[0].contains("23 more classes"), "{told:?}");
    }

    /// The text of a table for a p99 and its bounds, and for a mean.
    fn text(p99: f64, low: f64, high: Option<f64>) -> String {
        let bound = |p99| Percentiles { p99, ..Percentiles::default() };
        let (at_least, at_most) = (bound(Some(low)), bound(high));
        let fct = Fct { p99: Some(p99), at_least, at_most, ..class(9, 1) };
        let summary =
            Summary { fct_us: Ordered::from(vec![("all".into(), fct)]), ..Summary::default() };
        shown(&statistics(&summary), &["fct_us", "all", "p99"]).text(crate::render::format::time)
    }

    #[test]
    fn a_bound_is_shown_where_three_digits_could_move() {
        assert_eq!(text(50.0, 50.0, Some(50.0)), "50.0us");
        assert_eq!(text(50.0, 50.001, Some(50.002)), "50.0us");
        assert_eq!(text(50.0, 50.0, Some(50.2)), "\u{2265}50.0us");
        assert_eq!(text(50.0, 70.0, None), "\u{2265}70.0us");
        assert_eq!(text(50.0, 40.0, None), "\u{2265}40.0us", "young ones could be fast");
        assert_eq!(
            text(50.0, 70.0, Some(70.0)),
            "\u{2265}70.0us",
            "known, but not that of the completed"
        );
    }

    #[test]
    fn a_mean_is_the_restricted_one_below_99_percent() {
        let of = |count, open| {
            let fct = Fct { mean: Some(5.0), mean_restricted: Some(7.0), ..class(count, open) };
            let summary =
                Summary { fct_us: Ordered::from(vec![("all".into(), fct)]), ..Summary::default() };
            shown(&statistics(&summary), &["fct_us", "all", "mean"])
                .text(crate::render::format::time)
        };
        assert_eq!([of(99, 1), of(98, 2)], ["5.00us", "\u{2265}7.00us"]);
    }
}
