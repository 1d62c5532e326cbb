//! Names of results: what `millpond explain` prints of a number in a summary, a table or a
//! comparison, and the page that defines it.
//!
//! Invariant: `numbers.txt` has the only list: a line a result, with its names in files and in
//! `shows`, its meaning and its page.

use crate::shows;

/// Names, meaning and page of each result.
fn numbers() -> impl Iterator<Item = (std::str::Split<'static, char>, &'static str, &'static str)> {
    let lines = include_str!("numbers.txt").lines();
    lines.filter_map(|line| {
        let (names, rest) = line.split_once(" | ")?;
        let (meaning, page) = rest.split_once(" | ")?;
        Some((names.split(' '), meaning, page))
    })
}

/// Statistics that end the name of a distribution: "fct_us.mice.p99".
const STATISTICS: [&str; 10] =
    ["count", "mean", "p50", "p90", "p95", "p99", "p999", "max", "unfinished", "completed"];

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    numbers().flat_map(|(names, ..)| names)
}

/// Returns the sentence of a result: "fct_us.mice.p99", or as `shows` names it, "web.fct.p95".
pub(crate) fn explain(name: &str) -> Option<String> {
    let lower = name.trim().to_lowercase().replace('-', "_");
    let parts: Vec<&str> = lower.split('.').collect();
    let of = |part: &str| numbers().find(|(names, ..)| names.clone().any(|own| own == part));
    let is_statistic = parts.last().is_some_and(|last| STATISTICS.contains(last));
    // A class can have the name of a number: in CLASS.METRIC.STAT the metric decides.
    let metric = parts.iter().rev().nth(1).filter(|part| is_statistic && shows::is_metric(part));
    let own = if is_statistic { &parts[..] } else { &parts[..1] };
    let (_, meaning, page) = metric.into_iter().chain(own).find_map(|part| of(part))?;
    Some(format!("{name}: {meaning} ({page})\n\n"))
}
