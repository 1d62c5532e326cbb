//! The numbers of summaries: over the seeds of one variant, and as differences between two.
//!
//! Invariant: the form follows the summary's own, so a number that is added there appears here.

use std::collections::BTreeSet;
use std::path::Path;

use indexmap::IndexMap;
use serde::Deserialize;

use crate::model::summary::Summary;
use crate::model::{At, Difference, Estimate, IntervalKind, Noise, Ordered, Result, Tree};
use crate::statistics::resampling::Resampler;

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

impl Tree<Estimate> {
    pub(crate) fn share_of_flows(&self) -> Option<f64> {
        let number = |key| self.leaf(&["flows", key])?.mean;
        let (completed, started): (f64, f64) = (number("completed")?, number("started")?);
        (started > 0.0).then(|| completed / started)
    }
}

/// The parts of a summary that are no statistics.
const NO_STATISTICS: [&str; 12] = [
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
    "programs",
    "audit",
];

/// JSON whose objects keep their order.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Json {
    Number(Option<f64>),
    Object(Ordered<Json>),
    Other(serde::de::IgnoredAny),
}

impl Json {
    pub(crate) fn at(&self, path: &[impl AsRef<str>]) -> Option<f64> {
        number(self.below(path))
    }

    /// The object or number at a path.
    pub(crate) fn below(&self, path: &[impl AsRef<str>]) -> Option<&Json> {
        path.iter().try_fold(self, |json, key| child(Some(json), key.as_ref()))
    }
}

/// The statistics of summaries, with their seeds.
pub(crate) fn numbers<'a>(
    summaries: impl IntoIterator<Item = &'a Summary>,
) -> Result<Vec<(u64, Json)>> {
    let parse = |summary: &Summary| {
        let json: Json =
            serde_json::from_str(&summary.to_json()).at("read", Path::new("summary.json"))?;
        let Json::Object(Ordered(mut fields)) = json else { return Ok((summary.seed, json)) };
        fields.retain(|name, _| !NO_STATISTICS.contains(&name.as_str()));
        // A list has no names to pair by: a limit is found by its own, and its direction.
        let mut limits = IndexMap::new();
        for limit in &summary.limits {
            let numbers = serde_json::from_str(&crate::model::files::json_text(limit))
                .at("read", Path::new("summary.json"))?;
            limits.insert(format!("{} {}", limit.name, limit.direction), numbers);
        }
        if let Some(place) = fields.get_mut("limits") {
            *place = Json::Object(Ordered(limits));
        }
        Ok((summary.seed, Json::Object(Ordered(fields))))
    };
    summaries.into_iter().map(parse).collect()
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

pub(crate) fn differences(
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
    let mut own = Estimate::of(&own, resampler);
    let vary = values.iter().any(|(a, _)| *a != values[0].0);
    if own.interval_kind == Some(IntervalKind::Identical) && difference != Some(0.0) && vary {
        own.interval_kind = Some(IntervalKind::Range); // it is the same by chance
    }
    let relative_interval = relative.and_then(|_| resampler.relative(&values));
    Tree::Leaf(Difference {
        mean: difference,
        relative,
        relative_interval,
        interval: own.interval,
        interval_kind: own.interval_kind,
        n: own.n,
        noise: Noise::of(&own),
    })
}
