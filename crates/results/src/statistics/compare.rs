//! The statistics of each variant over its seeds, and their differences to the first variant.
//!
//! Differences are paired: seed by seed, since the variants of one seed see the same arrivals.
//! Intervals are those of [`resampling`](super::resampling), and each
//! difference has its [`Noise`](crate::Noise) beside it.
//!
//! Invariant: a comparison depends on the summaries and their order alone.

use crate::model::{Difference, Estimate, Tree, VariantResult};
use crate::statistics::numbers::{Json, differences, estimates, numbers};

use crate::model::summary::Summary;
use crate::model::{Error, Ordered, Result, Status, each_once};
use crate::statistics::resampling::Resampler;
use crate::statistics::{censoring, shows};

/// Compares variants, each with the summaries of its seeds. The first variant is the baseline of
/// the others.
///
/// # Errors
/// [`Error::NothingToCompare`] if there is no variant, a variant has no runs, or a name is there
/// twice.
pub fn compare(variants: &[(String, Vec<Summary>)]) -> Result<Vec<VariantResult>> {
    let Some((_, first)) = variants.first() else {
        return Err(Error::NothingToCompare("no variants".into()));
    };
    let first: Vec<(u64, Json)> = numbers(first)?;
    let mut resampler = Resampler::new();
    let mut results: Vec<VariantResult> = Vec::new();
    for (name, summaries) in variants {
        if summaries.is_empty() {
            return Err(Error::NothingToCompare(format!("variant {name:?} has no runs")));
        }
        if results.iter().any(|other| &other.variant == name) {
            return Err(Error::NothingToCompare(format!("variant {name:?} is there twice")));
        }
        let own = numbers(summaries)?;
        let trees: Vec<Option<&Json>> = own.iter().map(|(_, json)| Some(json)).collect();
        let statistics = estimates(&trees, &mut resampler);
        let differences = match results.first() {
            Some(result) => {
                let (first, own) =
                    (Side::of(&first, &result.statistics), Side::of(&own, &statistics));
                Some(paired_differences(&first, &own, &mut resampler))
            }
            None => None,
        };
        results.push(VariantResult {
            variant: name.clone(),
            about: String::new(),
            seeds: summaries.iter().map(|summary| summary.seed).collect(),
            status: worst(summaries.iter().map(|summary| summary.status)),
            warnings: warnings_over(summaries),
            statistics,
            differences,
            shows: Ordered::default(),
        });
    }
    Ok(results)
}

/// The runs of one variant or point by seed, and the statistics of them all.
pub(crate) struct Side<'a> {
    pub runs: Vec<(u64, &'a Json)>,
    pub statistics: &'a Tree<Estimate>,
}

impl<'a> Side<'a> {
    fn of(runs: &'a [(u64, Json)], statistics: &'a Tree<Estimate>) -> Side<'a> {
        Side { runs: runs.iter().map(|(seed, json)| (*seed, json)).collect(), statistics }
    }
}

/// The differences of one variant's runs to the first one's of the same seeds, and their noise.
pub(crate) fn paired_differences(
    first: &Side<'_>,
    own: &Side<'_>,
    resampler: &mut Resampler,
) -> Tree<Difference> {
    let of_first =
        |seed: u64| first.runs.iter().find(|(other, _)| *other == seed).map(|(_, json)| *json);
    let pairs = own.runs.iter().filter_map(|(seed, b)| Some((Some(of_first(*seed)?), Some(*b))));
    let mut differences = differences(&pairs.collect::<Vec<_>>(), resampler);
    mark_open(&mut differences, [Some(first.statistics), Some(own.statistics)]);
    differences
}

/// Gives each variant the numbers that are shown of it: those of these names, or without names
/// those that suit the traffic.
pub(crate) fn show(results: &mut [VariantResult], names: &[String]) {
    let trees: Vec<&Tree<Estimate>> = results.iter().map(|result| &result.statistics).collect();
    let columns = shows::columns(names, &trees);
    let first = results.first().map(|result| result.statistics.clone());
    for result in results {
        let base = first.as_ref().zip(result.differences.as_ref());
        result.shows = shows::numbers(&columns, &result.statistics, base);
    }
}

/// Marks each difference that open flows could undo.
fn mark_open(differences: &mut Tree<Difference>, both: [Option<&Tree<Estimate>>; 2]) {
    let Tree::Branch(children) = differences else { return };
    let mark = |key: &str, tree: &mut Tree<Difference>| {
        if let Tree::Leaf(leaf) = tree {
            leaf.noise = censoring::noise_of(leaf.noise, key, both, leaf.mean);
        }
    };
    for (key, child) in &mut children.0 {
        match child {
            Tree::Leaf(_) => mark(key, child),
            // The bounds are of the class's own percentiles.
            Tree::Branch(bounds) if key == "at_least" => {
                bounds.0.iter_mut().for_each(|(key, bound)| mark(key, bound));
            }
            Tree::Branch(_) => mark_open(child, both.map(|tree| tree?.at(&[key]))),
        }
    }
}

/// The warnings of a variant's runs, each once. One warning names the classes that did not
/// complete, over all of them.
pub(crate) fn warnings_over(summaries: &[Summary]) -> Vec<String> {
    let mut own: Vec<String> = Vec::new();
    for summary in summaries {
        let shares = censoring::warnings(std::slice::from_ref(summary));
        own.extend(summary.warnings.iter().filter(|warning| !shares.contains(warning)).cloned());
    }
    own.extend(censoring::warnings(summaries));
    each_once(own)
}

/// The warnings of all variants, each text once, behind the names of the variants that it concerns.
pub(crate) fn grouped_warnings(results: &[VariantResult]) -> Vec<String> {
    grouped(results.iter().map(|result| (&*result.variant, &*result.warnings)))
}

/// The warnings of variants, each text once, behind the names of the variants that it concerns.
pub fn grouped<'a>(
    variants: impl ExactSizeIterator<Item = (&'a str, &'a [String])>,
) -> Vec<String> {
    let all = variants.len();
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (variant, warnings) in variants {
        for warning in warnings {
            match groups.iter_mut().find(|(text, _)| text == warning) {
                Some((_, names)) => names.push(variant),
                None => groups.push((warning, vec![variant])),
            }
        }
    }
    let of = |names: Vec<&str>| {
        if names.len() == all { "all".to_string() } else { names.join(", ") }
    };
    groups.into_iter().map(|(text, names)| format!("{}: {text}", of(names))).collect()
}

pub(crate) fn worst(of: impl Iterator<Item = Status>) -> Status {
    of.max_by_key(|status| match status {
        Status::Complete => 0,
        Status::Stalled => 1,
        Status::Invalid => 2,
        Status::Interrupted => 3,
        Status::Failed => 4,
    })
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::summary::{Fct, Limit};
    use crate::model::{IntervalKind, Noise, Percentiles};

    fn summary(seed: u64, p99: Option<f64>, timeouts: u64) -> Summary {
        let fct = Fct { count: 3, p99, ..Fct::default() };
        Summary { seed, timeouts, fct_us: vec![("all".into(), fct)].into(), ..Summary::default() }
    }

    #[test]
    fn differences_are_paired_by_seed() {
        let first = vec![summary(1, Some(10.0), 0), summary(2, Some(30.0), 0)];
        let second =
            vec![summary(2, Some(15.0), 4), summary(3, Some(1000.0), 2), summary(1, None, 0)];
        let results = compare(&[("a".into(), first), ("b".into(), second)]).unwrap();
        let path = ["fct_us", "all", "p99"];
        let of = |n: usize, path: &[&str]| *results[n].statistics.leaf(path).unwrap();
        let range = |mean, ends| {
            let (interval, interval_kind) = (Some(ends), Some(IntervalKind::Range));
            Estimate { mean: Some(mean), interval, interval_kind, n: 2 }
        };
        assert_eq!(of(0, &path), range(20.0, [10.0, 30.0]));
        assert_eq!(of(1, &path), range(507.5, [15.0, 1000.0]));
        assert_eq!(of(1, &["timeouts"]).mean, Some(2.0));
        let difference =
            |path: &[&str]| *results[1].differences.as_ref().unwrap().leaf(path).unwrap();
        let expected =
            Difference { mean: Some(-15.0), relative: Some(-0.5), n: 1, ..Difference::default() };
        assert_eq!(difference(&path), expected);
        let timeouts = Difference {
            mean: Some(2.0),
            interval: Some([0.0, 4.0]),
            interval_kind: Some(IntervalKind::Range),
            n: 2,
            noise: Noise::Within,
            ..Difference::default()
        };
        assert_eq!(difference(&["timeouts"]), timeouts);
        assert_eq!(results[0].differences, None);
        assert_eq!(results[0].statistics.leaf(&["audit", "conserved"]), None);
        let text = crate::model::files::json_text(&results);
        assert_eq!(serde_json::from_str::<Vec<VariantResult>>(&text).unwrap(), results);
    }

    #[test]
    fn limits_are_found_by_name_and_direction() {
        let of = |name: &str, marked| {
            let limit =
                Limit { name: name.into(), direction: "egress".into(), marked, ..Limit::default() };
            Summary { limits: vec![limit], ..Summary::default() }
        };
        let results =
            compare(&[("a".into(), vec![of("x", 3)]), ("b".into(), vec![of("x", 5)])]).unwrap();
        let difference =
            |path: &[&str]| results[1].differences.as_ref().unwrap().leaf(path).unwrap().mean;
        assert_eq!(difference(&["limits", "x egress", "marked"]), Some(2.0));
        assert_eq!(results[0].statistics.leaf(&["limits", "x egress", "name"]), None);
    }

    /// Seeds differ by 100, variants of one seed by some 3: unpaired, that would drown.
    #[test]
    fn pairing_reduces_the_variance() {
        let runs = |more: f64| -> Vec<Summary> {
            let noise = |seed: u64| (seed * 37 % 11) as f64 / 11.0;
            (1..=8)
                .map(|seed| {
                    summary(seed, Some(100.0 * seed as f64 + more * (1.0 + noise(seed))), 0)
                })
                .collect()
        };
        let results = compare(&[("a".into(), runs(0.0)), ("b".into(), runs(2.0))]).unwrap();
        let path = ["fct_us", "all", "p99"];
        let [low, high] = results[1].statistics.leaf(&path).unwrap().interval.unwrap();
        let difference = results[1].differences.as_ref().unwrap().leaf(&path).unwrap();
        let [from, to] = difference.interval.unwrap();
        assert!(high - low > 200.0 && to - from < 2.0, "{:?} {:?}", [low, high], [from, to]);
        assert!(difference.noise == Noise::Beyond && from > 2.0 && to < 4.0);
    }

    /// Eight seeds that give the same bytes are one sample, whatever the difference is.
    #[test]
    fn what_no_seed_varies_is_identical_and_not_beyond_the_noise() {
        let runs = |p99: f64, timeouts| {
            (1..=8).map(|seed| summary(seed, Some(p99), timeouts)).collect::<Vec<_>>()
        };
        let results =
            compare(&[("a".into(), runs(430.0, 3)), ("b".into(), runs(851.0, 3))]).unwrap();
        let difference =
            |path: &[&str]| *results[1].differences.as_ref().unwrap().leaf(path).unwrap();
        for (path, mean) in [(&["fct_us", "all", "p99"][..], 421.0), (&["timeouts"], 0.0)] {
            let found = difference(path);
            assert_eq!((found.mean, found.noise), (Some(mean), Noise::Identical));
            assert_eq!(found.interval_kind, Some(IntervalKind::Identical));
        }
        let few: Vec<_> = runs(1.0, 0).into_iter().take(3).collect();
        let more = (1..=3).map(|seed| summary(seed, Some(2.0 + seed as f64), 0)).collect();
        let results = compare(&[("a".into(), few), ("b".into(), more)]).unwrap();
        let found =
            *results[1].differences.as_ref().unwrap().leaf(&["fct_us", "all", "p99"]).unwrap();
        assert_eq!((found.noise, found.interval_kind), (Noise::Agreed, Some(IntervalKind::Range)));
        assert!(crate::model::files::json_text(&results).contains("\"interval_kind\": \"range\""));
    }

    /// Fifty-five timeouts less in each of two seeds, which have 1,540 and 1,797 of them.
    #[test]
    fn a_difference_that_is_the_same_by_chance_is_not_identical() {
        let runs = |less: u64| vec![summary(1, None, 1540 - less), summary(2, None, 1797 - less)];
        let results = compare(&[("a".into(), runs(0)), ("b".into(), runs(55))]).unwrap();
        let found = *results[1].differences.as_ref().unwrap().leaf(&["timeouts"]).unwrap();
        assert_eq!((found.noise, found.interval_kind), (Noise::Agreed, Some(IntervalKind::Range)));
        let same = compare(&[("a".into(), runs(7)), ("b".into(), runs(7))]).unwrap();
        let found = *same[1].differences.as_ref().unwrap().leaf(&["timeouts"]).unwrap();
        assert_eq!((found.mean, found.noise), (Some(0.0), Noise::Identical));
    }

    /// The variant with less is known or not: only then does its difference get a verdict.
    #[test]
    fn open_flows_on_the_lesser_side_undo_a_difference() {
        let runs = |p99: f64, open: bool| -> Vec<Summary> {
            let of = |seed: u64| {
                let p99 = Some(p99 + seed as f64);
                let bound = |p99| Percentiles { p99, ..Percentiles::default() };
                let at_most = bound(p99.filter(|_| !open));
                let fct = Fct { count: 90, p99, at_least: bound(p99), at_most, ..Fct::default() };
                Summary {
                    seed,
                    fct_us: Ordered::from(vec![("all".into(), fct)]),
                    ..Summary::default()
                }
            };
            (1..=8).map(of).collect()
        };
        // Seeds would be identical in each pair, were it not for this one.
        let more = |mut runs: Vec<Summary>| {
            if let Some((_, fct)) = runs[0].fct_us.0.first_mut() {
                (fct.p99, fct.at_least.p99) =
                    (fct.p99.map(|p| p + 1.0), fct.at_least.p99.map(|p| p + 1.0));
                fct.at_most.p99 = fct.at_most.p99.map(|p| p + 1.0);
            }
            runs
        };
        let noise = |first, own| {
            let results = compare(&[("a".into(), first), ("b".into(), more(own))]).unwrap();
            let differences = results[1].differences.as_ref().unwrap();
            let at = |path: &[&str]| differences.leaf(path).unwrap().noise;
            assert_eq!(at(&["fct_us", "all", "p99"]), at(&["fct_us", "all", "at_least", "p99"]));
            at(&["fct_us", "all", "p99"])
        };
        assert_eq!(noise(runs(500.0, false), runs(100.0, false)), Noise::Beyond);
        assert_eq!(
            noise(runs(500.0, true), runs(100.0, false)),
            Noise::Beyond,
            "what is open is more still"
        );
        assert_eq!(noise(runs(500.0, false), runs(100.0, true)), Noise::Open);
        assert_eq!(noise(runs(500.0, true), runs(100.0, true)), Noise::Open);
        assert_eq!(noise(runs(100.0, true), runs(500.0, false)), Noise::Open);
        assert_eq!(noise(runs(100.0, false), runs(500.0, true)), Noise::Beyond);
    }

    #[test]
    fn nothing_to_compare_is_an_error() {
        assert!(matches!(compare(&[]), Err(Error::NothingToCompare(_))));
        assert!(matches!(compare(&[("a".into(), vec![])]), Err(Error::NothingToCompare(_))));
        let one = ("a".to_string(), vec![summary(1, None, 0)]);
        assert!(matches!(compare(&[one.clone(), one]), Err(Error::NothingToCompare(_))));
    }
}
