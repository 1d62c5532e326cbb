//! `compare.json`: the statistics of each variant over its seeds, and their differences to the
//! first variant.
//!
//! Differences are paired: seed by seed, since the variants of one seed see the same arrivals.
//! Intervals are those of [`crate::interval`], and what they bear out is said beside each
//! difference: its [`Noise`].
//!
//! Invariant: the form follows the summary's own, so a number that is added there appears here; the
//! bytes depend on the summaries and their order alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::bins;
use crate::censoring;
use crate::error::{At, Error, Result};
use crate::folder::{Folder, folder_name};
use crate::html;
use crate::interval::{IntervalKind, Resampler, excludes_zero};
use crate::manifest::{Kind, Manifest, check_files};
use crate::ordered::Ordered;
use crate::pool::pool_compare;
use crate::shows::{self, ShownNumber};
use crate::summary::{Status, Summary};

/// Its name in the folder.
pub(crate) const COMPARE: &str = "compare.json";
/// What of a summary is no statistic.
const NO_STATISTICS: [&str; 11] = [
    "schema",
    "name",
    "world",
    "seed",
    "variant",
    "status",
    "warnings",
    "run",
    "slowdown_by_fixed_size",
    "shows",
    "audit",
];

/// A statistic over the seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean over the seeds that have it; `null` if none has.
    pub mean: Option<f64>,
    /// The interval of the mean; `null` for fewer than two seeds.
    pub interval: Option<[f64; 2]>,
    /// What the interval's ends are; `null` where there is none.
    #[serde(default)]
    pub interval_kind: Option<IntervalKind>,
    /// Seeds that have it.
    pub n: u32,
}

impl Estimate {
    /// Of the values of the seeds that have one.
    pub fn of(values: &[f64], resampler: &mut Resampler) -> Estimate {
        let interval = resampler.interval(values);
        Estimate {
            mean: mean(values),
            interval: interval.map(|interval| interval.ends),
            interval_kind: interval.map(|interval| interval.kind),
            n: values.len() as u32,
        }
    }
}

/// What can be said of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// It is beyond the noise: the 95 % interval of the paired difference excludes zero.
    Beyond,
    /// All seeds agree on the sign, but they are too few for an interval that holds 95 %.
    Agreed,
    /// It is within the noise: the interval holds zero.
    Within,
    /// It is the same in every seed: the seeds do not vary it, so nothing tells it from noise.
    Identical,
    /// The variant that seems to be less has flows or queries open at the end, which could undo the
    /// difference.
    Open,
    /// There is no interval: one seed.
    #[default]
    Unknown,
}

impl Noise {
    /// As in the files.
    pub fn name(self) -> &'static str {
        match self {
            Noise::Beyond => "beyond",
            Noise::Agreed => "agreed",
            Noise::Within => "within",
            Noise::Identical => "identical",
            Noise::Open => "open",
            Noise::Unknown => "unknown",
        }
    }

    fn of(estimate: &Estimate) -> Noise {
        match (estimate.interval, estimate.interval_kind) {
            (None, _) | (_, None) => Noise::Unknown,
            (_, Some(IntervalKind::Identical)) => Noise::Identical,
            (Some(ends), _) if !excludes_zero(ends) => Noise::Within,
            (_, Some(IntervalKind::Range)) => Noise::Agreed,
            (_, Some(IntervalKind::Bootstrap95 | IntervalKind::Normal95)) => Noise::Beyond,
        }
    }
}

/// A statistic's difference to the first variant over the seeds that both have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Mean of this variant's value less the first one's, in the statistic's unit.
    pub mean: Option<f64>,
    /// The same over the first variant's mean: −0.5 is half of it; `null` if that is zero.
    pub relative: Option<f64>,
    /// The interval of the mean; `null` for fewer than two seeds.
    pub interval: Option<[f64; 2]>,
    /// What the interval's ends are; `null` where there is none.
    #[serde(default)]
    pub interval_kind: Option<IntervalKind>,
    /// Seeds that both have.
    pub n: u32,
    /// What can be said of it.
    #[serde(default)]
    pub noise: Noise,
}

/// Numbers in the form of the summary's objects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Tree<L> {
    /// A number.
    Leaf(L),
    /// An object.
    Branch(Ordered<Tree<L>>),
}

impl<L> Tree<L> {
    /// The number at a path such as `["fct_us", "mice", "p99"]`.
    pub fn leaf(&self, path: &[&str]) -> Option<&L> {
        match (self, path) {
            (Tree::Leaf(leaf), []) => Some(leaf),
            (Tree::Branch(children), [first, rest @ ..]) => children.get(first)?.leaf(rest),
            _ => None,
        }
    }

    /// What is at a path.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Tree<L>> {
        match (self, path) {
            (_, []) => Some(self),
            (Tree::Branch(children), [first, rest @ ..]) => children.get(first)?.at(rest),
            (Tree::Leaf(_), _) => None,
        }
    }

    /// The object at a path such as `["fct_us"]`.
    pub fn branch(&self, path: &[&str]) -> Option<&Ordered<Tree<L>>> {
        match (self, path) {
            (Tree::Branch(children), []) => Some(children),
            (Tree::Branch(children), [first, rest @ ..]) => children.get(first)?.branch(rest),
            (Tree::Leaf(_), _) => None,
        }
    }
}

/// One variant of a compare: an element of `compare.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantResult {
    /// Its name.
    pub variant: String,
    /// Its seeds, in the order of the runs.
    pub seeds: Vec<u64>,
    /// The worst of its runs.
    pub status: Status,
    /// The warnings of its runs, each once.
    pub warnings: Vec<String>,
    /// The summary's numbers.
    pub statistics: Tree<Estimate>,
    /// Their differences to the first variant; `null` for that one itself.
    pub differences: Option<Tree<Difference>>,
    /// The numbers that tables and pages show, by their names in `shows`.
    #[serde(default)]
    pub shows: Ordered<ShownNumber>,
}

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
                let [first, own] = [&first, &own].map(|runs| by_seed(runs));
                let (first, own) =
                    ((first.as_slice(), &result.statistics), (own.as_slice(), &statistics));
                Some(paired_differences(first, own, &mut resampler))
            }
            None => None,
        };
        results.push(VariantResult {
            variant: name.clone(),
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

/// The differences of one variant's runs to the first one's of the same seeds, and what can be said
/// of them.
pub(crate) fn paired_differences(
    (first, of_first): (&[(u64, &Json)], &Tree<Estimate>),
    (own, of_own): (&[(u64, &Json)], &Tree<Estimate>),
    resampler: &mut Resampler,
) -> Tree<Difference> {
    let seed_of = |seed: u64| first.iter().find(|(other, _)| *other == seed).map(|(_, json)| *json);
    let pairs: Vec<_> =
        own.iter().filter_map(|(seed, b)| Some((Some(seed_of(*seed)?), Some(*b)))).collect();
    let mut differences = differences(&pairs, resampler);
    tell(&mut differences, Some(of_first), Some(of_own));
    differences
}

fn by_seed(runs: &[(u64, Json)]) -> Vec<(u64, &Json)> {
    runs.iter().map(|(seed, json)| (*seed, json)).collect()
}

/// Gives each variant the numbers that are shown of it: those of these names, or without names
/// those that suit the traffic.
fn show(results: &mut [VariantResult], names: &[String]) {
    let trees: Vec<&Tree<Estimate>> = results.iter().map(|result| &result.statistics).collect();
    let columns = shows::columns(names, &trees);
    let first = results.first().map(|result| result.statistics.clone());
    for result in results {
        let base = first.as_ref().zip(result.differences.as_ref());
        result.shows = shows::numbers(&columns, &result.statistics, base);
    }
}

/// Says of each difference whether what is open at the end could undo it.
fn tell(
    differences: &mut Tree<Difference>,
    first: Option<&Tree<Estimate>>,
    own: Option<&Tree<Estimate>>,
) {
    let Tree::Branch(children) = differences else { return };
    for (key, child) in &mut children.0 {
        match child {
            Tree::Leaf(leaf) => {
                leaf.noise = censoring::told(leaf.noise, key, first, own, leaf.mean)
            }
            // The bounds are of the class's own percentiles.
            Tree::Branch(bounds) if key == "at_least" => {
                for (key, bound) in &mut bounds.0 {
                    if let Tree::Leaf(leaf) = bound {
                        leaf.noise = censoring::told(leaf.noise, key, first, own, leaf.mean);
                    }
                }
            }
            Tree::Branch(_) => {
                let [first, own] =
                    [first, own].map(|tree| tree.and_then(|tree| tree.at(&[key.as_str()])));
                tell(child, first, own);
            }
        }
    }
}

/// The warnings of a variant's runs, each once. Which classes did not complete is told over all of
/// them.
pub(crate) fn warnings_over(summaries: &[Summary]) -> Vec<String> {
    let mut own: Vec<String> = Vec::new();
    for summary in summaries {
        let shares = censoring::warnings(std::slice::from_ref(summary));
        own.extend(summary.warnings.iter().filter(|warning| !shares.contains(warning)).cloned());
    }
    own.extend(censoring::warnings(summaries));
    each_once(own.iter())
}

/// Texts in their order, without repetition.
pub(crate) fn each_once<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for text in texts {
        if !once.contains(text) {
            once.push(text.clone());
        }
    }
    once
}

/// Where the run of a variant and seed is, within the folder of a compare: `VARIANT`, or
/// `VARIANT/seed-N` where there are several seeds.
pub fn run_folder(root: &Path, variant: &str, seed: u64, several_seeds: bool) -> PathBuf {
    let folder = root.join(folder_name(variant));
    if several_seeds { folder.join(format!("seed-{seed}")) } else { folder }
}

/// Ends a compare whose runs are written: reads their summaries from their [`run_folder`]s, writes
/// `compare.json`, the pooled `flows.parquet` and `queries.parquet`, `report.html` and, last,
/// `manifest.json`, in which the caller has set name, world and seed, and of what there is not the
/// status and warnings.
///
/// `several_seeds` is that of the [`run_folder`]s; each variant is given with the seeds that it
/// has.
///
/// # Errors
/// [`Error::Io`] or [`Error::Malformed`] if a run's files cannot be read or the results cannot be
/// written, and the errors of [`compare`].
pub fn finish_compare(
    folder: &Folder,
    variants: &[(String, Vec<u64>)],
    several_seeds: bool,
    manifest: Manifest,
) -> Result<Vec<VariantResult>> {
    let root = folder.path();
    let (mut with_summaries, mut runs) = (Vec::new(), Vec::new());
    for (name, seeds) in variants {
        let run = |&seed: &u64| (name.clone(), seed, run_folder(root, name, seed, several_seeds));
        let own: Vec<_> = seeds.iter().map(run).collect();
        let summaries: Result<Vec<Summary>> =
            own.iter().map(|(_, _, folder)| Summary::read(folder)).collect();
        with_summaries.push((name.clone(), summaries?));
        runs.extend(own);
    }
    let folders: Vec<PathBuf> = runs.iter().map(|(_, _, folder)| folder.clone()).collect();
    let mut summaries: Vec<&mut Summary> =
        with_summaries.iter_mut().flat_map(|(_, own)| own).collect();
    bins::share(&folders, &mut summaries, root)?;
    let mut results = compare(&with_summaries)?;
    show(&mut results, &manifest.shows);
    crate::write_json(&root.join(COMPARE), &results)?;
    let summaries: Vec<&Summary> = with_summaries.iter().flat_map(|(_, own)| own).collect();
    pool_compare(root, &runs, &summaries)?;
    let manifest = Manifest {
        kind: if manifest.kind == Kind::Run { Kind::Compare } else { manifest.kind },
        status: worst(results.iter().map(|result| result.status).chain([manifest.status])),
        warnings: manifest.warnings.iter().cloned().chain(grouped_warnings(&results)).collect(),
        ..manifest
    };
    html::write_compare(root, &results, &manifest)?;
    manifest.write(root)?;
    Ok(results)
}

/// Reads `DIR/compare.json`.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read, [`Error::Malformed`] if it is damaged.
pub fn read_compare(dir: &Path) -> Result<Vec<VariantResult>> {
    check_files(dir, &|name| name == COMPARE)?;
    let path = dir.join(COMPARE);
    serde_json::from_slice(&std::fs::read(&path).at("read", &path)?).at("read", &path)
}

/// The warnings of all variants, each text once, behind the names of the variants that it concerns.
pub(crate) fn grouped_warnings(results: &[VariantResult]) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for result in results {
        for warning in &result.warnings {
            match groups.iter_mut().find(|(text, _)| text == warning) {
                Some((_, names)) => names.push(&result.variant),
                None => groups.push((warning, vec![&result.variant])),
            }
        }
    }
    let of = |names: Vec<&str>| {
        if names.len() == results.len() { "all".to_string() } else { names.join(", ") }
    };
    groups.into_iter().map(|(text, names)| format!("{}: {text}", of(names))).collect()
}

pub(crate) fn worst(of: impl Iterator<Item = Status>) -> Status {
    of.max_by_key(|status| match status {
        Status::Complete => 0,
        Status::Stalled => 1,
        Status::Interrupted => 2,
        Status::Failed => 3,
    })
    .unwrap_or_default()
}

/// JSON whose objects keep their order.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Json {
    Number(Option<f64>),
    Object(Ordered<Json>),
    Other(serde::de::IgnoredAny),
}

impl Json {
    /// The number at a path.
    pub(crate) fn at(&self, path: &[String]) -> Option<f64> {
        number(path.iter().try_fold(self, |json, key| child(Some(json), key)))
    }
}

/// The statistics of summaries, with their seeds.
pub(crate) fn numbers(summaries: &[Summary]) -> Result<Vec<(u64, Json)>> {
    let parse = |summary: &Summary| {
        let json: Json =
            serde_json::from_str(&summary.to_json()).at("read", Path::new("summary.json"))?;
        let Json::Object(Ordered(mut fields)) = json else { return Ok((summary.seed, json)) };
        fields.retain(|name, _| !NO_STATISTICS.contains(&name.as_str()));
        // A list has no names to pair by: a limit is found by its own, and its direction.
        let mut limits = IndexMap::new();
        for limit in &summary.limits {
            let numbers = serde_json::from_str(&crate::json_text(limit))
                .at("read", Path::new("summary.json"))?;
            limits.insert(format!("{} {}", limit.name, limit.direction), numbers);
        }
        if let Some(place) = fields.get_mut("limits") {
            *place = Json::Object(Ordered(limits));
        }
        Ok((summary.seed, Json::Object(Ordered(fields))))
    };
    summaries.iter().map(parse).collect()
}

/// The keys of all objects, each once, in the order in which they first appear.
fn keys<'a>(objects: impl Iterator<Item = &'a Json>) -> Vec<&'a str> {
    let (mut keys, mut seen) = (Vec::new(), BTreeSet::new());
    for object in objects {
        if let Json::Object(fields) = object {
            for (key, value) in fields.iter() {
                if !matches!(value, Json::Other(_)) && seen.insert(key) {
                    keys.push(key);
                }
            }
        }
    }
    keys
}

fn child<'a>(json: Option<&'a Json>, key: &str) -> Option<&'a Json> {
    match json? {
        Json::Object(fields) => fields.get(key),
        _ => None,
    }
}

fn number(json: Option<&Json>) -> Option<f64> {
    match json? {
        Json::Number(number) => *number,
        _ => None,
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The statistics of one run.
pub(crate) fn statistics(summary: &Summary) -> Tree<Estimate> {
    let numbers = numbers(std::slice::from_ref(summary)).unwrap_or_default();
    estimates(
        &numbers.iter().map(|(_, json)| Some(json)).collect::<Vec<_>>(),
        &mut Resampler::new(),
    )
}

pub(crate) fn estimates(of: &[Option<&Json>], resampler: &mut Resampler) -> Tree<Estimate> {
    if of.iter().flatten().any(|json| matches!(json, Json::Object(_))) {
        let branch = keys(of.iter().flatten().copied()).into_iter().map(|key| {
            let below: Vec<_> = of.iter().map(|json| child(*json, key)).collect();
            (key.to_string(), estimates(&below, resampler))
        });
        return Tree::Branch(branch.collect());
    }
    let values: Vec<f64> = of.iter().filter_map(|json| number(*json)).collect();
    Tree::Leaf(Estimate::of(&values, resampler))
}

fn differences(
    pairs: &[(Option<&Json>, Option<&Json>)],
    resampler: &mut Resampler,
) -> Tree<Difference> {
    let both = || pairs.iter().flat_map(|&(a, b)| [a, b]).flatten();
    if both().any(|json| matches!(json, Json::Object(_))) {
        let branch = keys(both()).into_iter().map(|key| {
            let below: Vec<_> =
                pairs.iter().map(|&(a, b)| (child(a, key), child(b, key))).collect();
            (key.to_string(), differences(&below, resampler))
        });
        return Tree::Branch(branch.collect());
    }
    let values: Vec<(f64, f64)> =
        pairs.iter().filter_map(|&(a, b)| Some((number(a)?, number(b)?))).collect();
    let mean_of = |part: fn(&(f64, f64)) -> f64| mean(&values.iter().map(part).collect::<Vec<_>>());
    let difference = mean_of(|(a, b)| b - a);
    let relative = match (difference, mean_of(|(a, _)| *a)) {
        (Some(difference), Some(base)) if base != 0.0 => Some(difference / base),
        _ => None,
    };
    let own: Vec<f64> = values.iter().map(|(a, b)| b - a).collect();
    let own = Estimate::of(&own, resampler);
    Tree::Leaf(Difference {
        mean: difference,
        relative,
        interval: own.interval,
        interval_kind: own.interval_kind,
        n: own.n,
        noise: Noise::of(&own),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Fct, Limit, Percentiles};

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
        let text = crate::json_text(&results);
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
        assert!(crate::json_text(&results).contains("\"interval_kind\": \"range\""));
    }

    /// The variant with less is known or not: only then is its difference told.
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
