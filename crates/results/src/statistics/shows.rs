//! The numbers that comparisons show: columns of a table, rows and charts of a page, `shows` in
//! JSON.
//!
//! A number's name is `CLASS.METRIC.STAT`, such as `queries.qct.p99`, or one of the network
//! ([`millpond_core::numbers`]).
//! `shows` in the scenario or `--shows` names them. Without either they follow the kinds of
//! traffic.
//!
//! Invariant: tables, JSON and pages show the same numbers in the same order.

use crate::model::ShownNumber;

use crate::model::{Difference, Estimate, Ordered, Tree, each_once};
use crate::statistics::censoring::{Shown, difference_of, shown};
pub(crate) use millpond_core::numbers::Form;
use millpond_core::numbers::{Number, metrics, network};

const BUILT_IN: [&str; 3] = ["all", "mice", "elephants"];
/// Traffics of which a table shows the median beside the tail.
const FEW_TRAFFICS: usize = 3;
/// The tail of a traffic: the first of these that it has.
const TAILS: [&str; 4] = ["p99", "p95", "p90", "p50"];
/// Traffics that a table shows by default.
const TRAFFICS: usize = 12;

/// The numbers that two variants, or points, are compared by, unless a scenario has `shows`.
const USUAL: [&str; 11] = [
    "all.fct.mean",
    "mice.fct.p50",
    "mice.fct.p99",
    "elephants.fct.p50",
    "all.qct.completed",
    "all.qct.mean",
    "all.qct.p99",
    "all.rtt.p99",
    "packets.dropped",
    "packets.marked",
    "timeouts",
];

/// The numbers that points of a sweep are compared by, unless a scenario has `shows`.
const USUAL_OF_POINTS: [&str; 6] = [
    "mice.fct.p99",
    "all.fct.mean",
    "all.qct.p99",
    "all.qct.completed",
    "packets.dropped",
    "timeouts",
];

/// The columns of a sweep's table.
pub(crate) fn columns_of_points(names: &[String], trees: &[&Tree<Estimate>]) -> Vec<Column> {
    match names.is_empty() && is_usual(trees) {
        true => with_values(USUAL_OF_POINTS.iter().copied(), trees),
        false => columns(names, trees),
    }
}

/// Columns of these names. Those that no tree has a value of are left out, but for the network's.
fn with_values<'a>(names: impl Iterator<Item = &'a str>, trees: &[&Tree<Estimate>]) -> Vec<Column> {
    let is_of_network = |column: &Column| network().any(|own| own.name == column.name);
    names
        .filter_map(|name| Column::of(name, trees))
        .filter(|column| is_of_network(column) || has_value(column, trees))
        .collect()
}

fn has_value(column: &Column, trees: &[&Tree<Estimate>]) -> bool {
    let value = |tree: &&Tree<Estimate>| tree.leaf(&column.path)?.mean;
    trees.iter().any(|tree| value(tree).is_some())
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    /// Its name in `shows`.
    pub name: String,
    pub head: [String; 2],
    pub caption: String,
    /// Where it is in the statistics.
    pub path: Vec<String>,
    pub form: Form,
    /// Whether less is better; `None`: neither is.
    pub less_is_better: Option<bool>,
}

impl Column {
    /// The number of this name. Of a class it is looked for in `trees`; where none has it, it is
    /// that of a traffic. `None` if there is no such metric.
    pub fn of(name: &str, trees: &[&Tree<Estimate>]) -> Option<Column> {
        if let Some(number) = network().find(|own| own.name == name) {
            let Number { head, caption, form, less_is_better, .. } = number;
            let path = number.places_of("").swap_remove(0);
            let (head, caption) = (head.map(String::from), caption.to_string());
            return Some(Column { name: name.into(), head, caption, path, form, less_is_better });
        }
        let (rest, stat) = name.rsplit_once('.')?;
        let (class, metric) = rest.rsplit_once('.')?;
        let number = metrics().find(|own| own.name == metric)?;
        let key = if stat == "completed" { "completed_fraction" } else { stat };
        let key = (!number.is_single()).then(|| key.to_string());
        let places = number.places_of(class).into_iter();
        let mut paths: Vec<Vec<String>> =
            places.map(|place| place.into_iter().chain(key.clone()).collect()).collect();
        let has = |path: &Vec<String>| trees.iter().any(|tree| tree.leaf(path).is_some());
        let path = paths.swap_remove(paths.iter().position(has).unwrap_or(0));
        let (form, less_is_better) = match stat {
            _ if number.is_single() => (number.form, number.less_is_better),
            "completed" => (Form::Percent, Some(false)),
            "count" | "unfinished" => (Form::Count, None),
            _ => (number.form, number.less_is_better),
        };
        let stat = match stat {
            _ if number.is_single() => "",
            "completed" => "done",
            "p999" => "p99.9",
            other => other,
        };
        let [_, short] = number.head;
        let head = match (class, metric) {
            ("all", "qct" | "rtt") => [short.to_string(), stat.to_string()],
            ("elephants", "fct") => ["eleph.".into(), stat.into()],
            _ => [cut(class), format!("{short} {stat}").trim().to_string()],
        };
        let of = if class == "all" { String::new() } else { format!("{class}: ") };
        let caption = format!("{of}{} {stat}", number.caption).trim_end().to_string();
        Some(Column { name: name.into(), head, caption, path, form, less_is_better })
    }
}

/// The beginning of a class's name, as a column has room for it.
fn cut(class: &str) -> String {
    const WIDTH: usize = 9;
    let class: String = class.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    match class.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}…", &class[..at]),
        None => class,
    }
}

/// The columns of these names; without names those that suit the traffic. Those that no tree has a
/// value of are left out then.
pub(crate) fn columns(names: &[String], trees: &[&Tree<Estimate>]) -> Vec<Column> {
    if !names.is_empty() {
        return names.iter().filter_map(|name| Column::of(name, trees)).collect();
    }
    let own = if is_usual(trees) { USUAL.map(String::from).to_vec() } else { by_traffic(trees) };
    with_values(own.iter().map(String::as_str), trees)
}

/// Whether mice, elephants and queries together are enough: one background with one kind of
/// queries.
pub(crate) fn is_usual(trees: &[&Tree<Estimate>]) -> bool {
    let queries = keys(trees, "qct_by_class_us");
    let is_empty = |object: &str| keys(trees, object).is_empty();
    is_empty("latency_us")
        && is_empty("collectives")
        && traffics(trees).len() <= 2
        && queries.len() <= 1
}

/// For each traffic the tail of what its users wait for: calls, queries, collectives or flows.
fn by_traffic(trees: &[&Tree<Estimate>]) -> Vec<String> {
    let (calls, queries) = (keys(trees, "latency_us"), keys(trees, "qct_by_class_us"));
    let collectives = keys(trees, "collectives");
    let mut traffics = traffics(trees);
    // Programs' calls are of no traffic.
    traffics.extend(
        calls.iter().filter(|class| !traffics.contains(class)).cloned().collect::<Vec<_>>(),
    );
    let has =
        |name: &String| Column::of(name, trees).is_some_and(|column| has_value(&column, trees));
    let mut names: Vec<String> = Vec::new();
    for class in traffics.iter().take(TRAFFICS) {
        let metric = match class {
            class if calls.contains(class) => "latency",
            class if queries.contains(class) => "qct",
            class if collectives.contains(class) => "collective",
            _ => "fct",
        };
        let name = |stat: &&str| format!("{class}.{metric}.{stat}");
        // Few calls have no far percentiles.
        let tail = TAILS.iter().map(name).find(has).unwrap_or_else(|| name(&"p99"));
        let median = name(&"p50");
        if traffics.len() <= FEW_TRAFFICS && tail != median {
            names.push(median);
        }
        names.push(tail);
        if collectives.contains(class) {
            names.push(format!("{class}.busbw.mean"));
            if traffics.len() <= FEW_TRAFFICS {
                names.push(format!("{class}.ratio.mean"));
            }
        }
    }
    names.extend(["all.rtt.p99", "packets.dropped", "timeouts"].map(String::from));
    names
}

/// The classes that the scenario has made, in its order.
fn traffics(trees: &[&Tree<Estimate>]) -> Vec<String> {
    let mut classes = keys(trees, "fct_us");
    classes.retain(|class| !BUILT_IN.contains(&class.as_str()));
    classes
}

/// The keys of an object of the statistics, each once.
fn keys(trees: &[&Tree<Estimate>], object: &str) -> Vec<String> {
    let objects = trees.iter().filter_map(|tree| tree.branch(&[object]));
    each_once(objects.flat_map(Ordered::iter).map(|(key, _)| key.to_string()))
}

/// The columns' numbers of one tree, with their differences to `first`.
pub(crate) fn numbers(
    columns: &[Column],
    own: &Tree<Estimate>,
    first: Option<(&Tree<Estimate>, &Tree<Difference>)>,
) -> Ordered<ShownNumber> {
    let number = |column: &Column| {
        let Shown { estimate, at_least, .. } = shown(own, &column.path);
        let difference = first
            .and_then(|(first, differences)| difference_of(first, own, differences, &column.path));
        (column.name.clone(), ShownNumber { estimate, at_least, difference })
    };
    columns.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::summary::{Collectives, Fct, Latency, Qct, Summary, Times};
    use crate::statistics::numbers::statistics;

    fn tree(classes: &[&str], calls: &[&str], queries: &[&str]) -> Tree<Estimate> {
        let some = Some(5.0);
        let fct = |name: &&str| {
            (name.to_string(), Fct { count: 1, mean: some, p50: some, p99: some, ..Fct::default() })
        };
        let mut summary = Summary {
            fct_us: BUILT_IN.iter().chain(classes).map(fct).collect(),
            ..Summary::default()
        };
        let latency = Latency { p50: some, p95: some, ..Latency::default() };
        summary.latency_us = calls.iter().map(|name| (name.to_string(), latency.clone())).collect();
        let qct = Qct { started: 1, p50: some, p99: some, ..Qct::default() };
        summary.qct_by_class_us =
            queries.iter().map(|name| (name.to_string(), qct.clone())).collect();
        statistics(&summary)
    }

    fn names(tree: &Tree<Estimate>) -> Vec<String> {
        columns(&[], &[tree]).into_iter().map(|column| column.name).collect()
    }

    #[test]
    fn names_lead_to_places_in_the_summary() {
        let tree = tree(&["web.v2", "q"], &[], &["q"]);
        let of = |name: &str| {
            Column::of(name, &[&tree]).map(|column| (column.path.join("/"), column.head.join("|")))
        };
        let found = |path: &str, head: &str| Some((path.to_string(), head.to_string()));
        assert_eq!(of("q.qct.p99"), found("qct_by_class_us/q/p99", "q|QCT p99"));
        assert_eq!(of("all.qct.completed"), found("qct_us/completed_fraction", "QCT|done"));
        assert_eq!(of("web.v2.slowdown.p999"), found("slowdown/web.v2/p999", "web.v2|slow p99.9"));
        assert_eq!(of("timeouts"), found("timeouts", "time-|outs"));
        assert_eq!([of("q.size.p99"), of("nothing"), of("a.b")], [None, None, None]);
    }

    #[test]
    fn points_without_queries_have_no_columns_of_queries() {
        let of = |tree: &Tree<Estimate>| -> Vec<String> {
            columns_of_points(&[], &[tree]).into_iter().map(|column| column.name).collect()
        };
        let expected = ["mice.fct.p99", "all.fct.mean", "packets.dropped", "timeouts"];
        assert_eq!(of(&tree(&["web"], &[], &[])), expected);
    }

    #[test]
    fn defaults_follow_the_kinds_of_traffic() {
        assert_eq!(
            names(&tree(&["web"], &[], &[])),
            [
                "all.fct.mean",
                "mice.fct.p50",
                "mice.fct.p99",
                "elephants.fct.p50",
                "packets.dropped",
                "packets.marked",
                "timeouts"
            ],
            "what nobody has is left out"
        );
        let mixed = tree(&["web", "ask", "rpc"], &["rpc"], &["ask"]);
        assert_eq!(
            names(&mixed),
            [
                "web.fct.p50",
                "web.fct.p99",
                "ask.qct.p50",
                "ask.qct.p99",
                "rpc.latency.p50",
                "rpc.latency.p95",
                "packets.dropped",
                "timeouts"
            ]
        );
        let mut job = Summary {
            fct_us: vec![("reduce".into(), Fct::default())].into(),
            ..Summary::default()
        };
        let time_us = Times { p50: Some(5.0), ..Times::default() };
        let rounds = Collectives { time_us, busbw_gbytes: Some(9.0), ..Collectives::default() };
        let rounds = Collectives { ratio: Some(1.1), ..rounds };
        job.collectives = vec![("reduce".into(), rounds)].into();
        assert_eq!(
            names(&statistics(&job)),
            [
                "reduce.collective.p50",
                "reduce.busbw.mean",
                "reduce.ratio.mean",
                "packets.dropped",
                "timeouts"
            ],
            "users wait for rounds, not for messages"
        );
        let six = tree(&["a", "b", "c", "d", "e", "f"], &[], &["f"]);
        assert_eq!(
            names(&six)[..7],
            [
                "a.fct.p99",
                "b.fct.p99",
                "c.fct.p99",
                "d.fct.p99",
                "e.fct.p99",
                "f.qct.p99",
                "packets.dropped"
            ]
        );
    }
}
