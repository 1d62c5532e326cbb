//! The points of a sweep beside each other: which one each is compared with, and their differences.

use crate::model::{Estimate, Point, Status, Sweep, Tree, clean, each_once};
use crate::statistics::compare::{Side, paired_differences};
use crate::statistics::numbers::Json;
use crate::statistics::shows;
use crate::statistics::shows::{Column, columns_of_points};
use std::collections::BTreeMap;

use super::resampling::Resampler;

/// The numbers that a sweep shows.
pub(crate) fn columns_of(sweep: &Sweep) -> Vec<Column> {
    let trees: Vec<&Tree<Estimate>> =
        sweep.points.iter().filter_map(|point| point.statistics.as_ref()).collect();
    columns_of_points(&sweep.shows, &trees)
}

/// The key whose first value the points are compared with: variants, else the first kind, else the
/// first key that has several values.
fn compared_key(sweep: &Sweep) -> Option<usize> {
    let keys: Vec<usize> =
        (0..sweep.grid.len()).filter(|&key| sweep.grid[key].values.len() > 1).collect();
    let is = |of: fn(&str) -> bool| keys.iter().copied().find(|&key| of(&sweep.grid[key].key));
    is(|key| key == "variant")
        .or_else(|| is(|key| key.ends_with(".kind")))
        .or_else(|| keys.first().copied())
}

/// The baseline that points are compared with, in words; `None` if no point is.
pub(crate) fn compared_with(sweep: &Sweep) -> Option<String> {
    let key = &sweep.grid[compared_key(sweep)?];
    let others = sweep.grid.iter().filter(|axis| axis.values.len() > 1).count() > 1;
    let rest = if others { " at the same values of the other keys" } else { "" };
    Some(format!("{}={}{rest}", clean(&key.key), clean(key.values.first()?)))
}

/// The point that a point is compared with.
pub(crate) fn base_of<'a>(sweep: &'a Sweep, point: &Point) -> Option<&'a Point> {
    sweep.points.get(point.against?.checked_sub(1)? as usize)
}

/// Finds the point that each one is compared with.
fn pair_points(sweep: &mut Sweep) {
    let Some(key) = compared_key(sweep) else { return };
    let Some(base) = sweep.grid[key].values.first().cloned() else { return };
    let rest = |point: &Point| -> Vec<String> {
        let others = point.values.iter().enumerate().filter(|(place, _)| *place != key);
        others.map(|(_, (_, value))| value.clone()).collect()
    };
    let is_base =
        |point: &Point| point.values.0.get_index(key).is_some_and(|(_, value)| *value == base);
    let bases: BTreeMap<Vec<String>, u32> = sweep
        .points
        .iter()
        .filter(|point| is_base(point))
        .map(|point| (rest(point), point.point))
        .collect();
    for point in &mut sweep.points {
        point.against = if is_base(point) { None } else { bases.get(&rest(point)).copied() };
    }
}

/// The differences of each point to the one that it is compared with, and the numbers that are
/// shown.
///
/// `runs` are the numbers of each point's complete runs, with their seeds.
pub(crate) fn compare_points(
    sweep: &mut Sweep,
    runs: &BTreeMap<u32, Vec<(u64, &Json)>>,
    resampler: &mut Resampler,
) {
    pair_points(sweep);
    let trees: Vec<Option<Tree<Estimate>>> =
        sweep.points.iter().map(|point| point.statistics.clone()).collect();
    let columns = columns_of(sweep);
    for point in &mut sweep.points {
        let Some(own) = &point.statistics else { continue };
        let first = point
            .against
            .and_then(|number| Some((number, trees.get(number as usize - 1)?.as_ref()?)));
        point.differences = first.and_then(|(number, first)| {
            let side =
                |point: u32, statistics| Some(Side { runs: runs.get(&point)?.clone(), statistics });
            let (first, own) = (side(number, first)?, side(point.point, own)?);
            Some(paired_differences(&first, &own, resampler))
        });
        let base = first.map(|(_, first)| first).zip(point.differences.as_ref());
        point.shows = shows::numbers(&columns, own, base);
    }
}

/// A point's values; a key stands before its value where there are several and the value is not
/// enough.
pub(crate) fn label<'a>(
    sweep: &Sweep,
    values: impl Iterator<Item = (&'a str, &'a String)>,
) -> String {
    let parts = values.map(|(key, value)| {
        let short = key.rsplit('.').next().unwrap_or(key);
        let alone = sweep.grid.len() == 1 || short == "kind" || short == "variant";
        if alone { clean(value) } else { format!("{}={}", clean(short), clean(value)) }
    });
    let text = parts.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "base".into() } else { text }
}

/// A point that was left out, or a run that failed or stalled.
pub(crate) struct Exception {
    /// `left out`, `failed` or `stalled`.
    pub kind: &'static str,
    pub run: Option<u32>,
    /// `load=0.5, seed 1: its audit failed`.
    pub text: String,
}

/// Everything that was left out, then what failed, then what stalled.
pub(crate) fn exceptions(sweep: &Sweep) -> Vec<Exception> {
    let skipped = sweep.points.iter().filter_map(|point| {
        let text = format!("{}: {}", label(sweep, point.values.iter()), point.skipped.as_ref()?);
        Some(Exception { kind: "left out", run: None, text })
    });
    let ended = |status: Status, kind| {
        let runs = sweep.runs().filter(move |(_, run)| run.status == Some(status));
        runs.map(move |(point, run)| {
            let reason = match status {
                Status::Failed => run.reason.as_deref().unwrap_or("its audit failed"),
                _ => "",
            };
            let colon = if reason.is_empty() { "" } else { ": " };
            let (place, seed) = (label(sweep, point.values.iter()), run.seed);
            let text = format!("{place}, seed {seed}{colon}{reason}");
            Exception { kind, run: Some(run.run), text }
        })
    };
    let failed = ended(Status::Failed, "failed");
    skipped.chain(failed).chain(ended(Status::Stalled, "stalled")).collect()
}

/// Points that a warning names at most.
const NAMED: usize = 3;

/// The warnings of all points, each once; one that is not of all names its points.
pub(crate) fn warnings(sweep: &Sweep) -> Vec<String> {
    let points: Vec<_> = sweep.points.iter().filter(|point| point.skipped.is_none()).collect();
    let of = |warning: &String| {
        let mut names: Vec<String> = Vec::new();
        for point in points.iter().filter(|point| point.warnings.contains(warning)) {
            names.push(label(sweep, point.values.iter()));
        }
        if names.len() == points.len() {
            return warning.clone();
        }
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        format!("{}{more}: {warning}", names[..names.len().min(NAMED)].join(", "))
    };
    each_once(points.iter().flat_map(|point| &point.warnings)).into_iter().map(of).collect()
}
