//! The products of a sweep's runs: `sweep.parquet`, the statistics of each point, a table.
//!
//! Invariant: the bytes depend on the plan and the summaries alone, not on the order in which runs
//! ended or how often the sweep was interrupted. The cost of a run (`run` of the summary) is
//! therefore left out.

use crate::model::{Difference, Estimate, FEW, Point, Status, Sweep, Tree, clean};
use crate::render::format::{NONE, percent};
use crate::render::text::blocks::{AT_LEAST, Marks, blocks, difference_cell, half};
use crate::render::text::compare::few;
use crate::render::text::layout::{NAME, Warnings, wrapped};
use crate::statistics::censoring::{difference_of, shown};
use crate::statistics::points::{self, base_of, columns_of, compared_with, label};
use crate::statistics::shows::Column;
use crate::statistics::subject::verdict;

/// Points that the table shows at most.
const SHOWN: usize = 100;

/// The points beside each other: means over seeds, with half of the 95 % interval; then their
/// differences to the point that each is compared with.
pub fn sweep_table(sweep: &Sweep, warnings: Warnings) -> String {
    let points: Vec<&Point> = sweep.points.iter().filter(|point| point.skipped.is_none()).collect();
    let columns = columns_of(sweep);
    let drawn = &points[..points.len().min(SHOWN)];
    let mut marks = Marks::default();
    let title = compared_with(sweep)
        .map_or(String::new(), |with| format!("\nDifference to {with}, seed by seed:"));
    let rows = |block: &[Column], is_first: bool, marks: &mut Marks| {
        point_rows(sweep, drawn, block, is_first, marks)
    };
    let mut lines = blocks(&columns, &title, &mut marks, &rows);
    if points.len() > drawn.len() {
        lines.push(format!("… and {} more points in sweep.json", points.len() - drawn.len()));
    }
    lines.push(String::new());
    let has_bound = |point: &&Point| {
        let bound =
            |tree: &Tree<Estimate>| columns.iter().any(|column| shown(tree, &column.at()).at_least);
        point.statistics.as_ref().is_some_and(bound)
    };
    if drawn.iter().any(has_bound) {
        lines.extend(wrapped("\u{2265}", AT_LEAST));
    }
    if sweep.seeds.len() > 1 && drawn.iter().any(|point| point.differences.is_some()) {
        lines.extend(marks.legend(sweep.seeds.len()));
    }
    lines.extend(verdict(sweep).iter().flat_map(|text| wrapped("best", text)));
    lines.extend(notes(sweep));
    let trees: Vec<&Tree<Estimate>> =
        points.iter().filter_map(|point| point.statistics.as_ref()).collect();
    lines.extend(few(&trees, sweep.seeds.len(), &columns));
    lines.extend(warnings.lines(&points::warnings(sweep)));
    lines.join("\n") + "\n"
}

/// Rows of points, how many they are with their heads, and rows of differences.
fn point_rows(
    sweep: &Sweep,
    points: &[&Point],
    columns: &[Column],
    is_first: bool,
    marks: &mut Marks,
) -> (Vec<Vec<String>>, usize) {
    let mut rows = vec![heads(columns, is_first, 0), heads(columns, is_first, 1)];
    for point in points {
        let mut row = vec![row_name(sweep, point)];
        if is_first {
            let done =
                point.runs.iter().filter(|run| run.status.is_some_and(Status::is_final)).count();
            row.extend([
                format!("{done}/{}", point.runs.len()),
                percent(point.statistics.as_ref().and_then(Tree::share_of_flows)),
            ]);
        }
        for column in columns {
            let path = column.at();
            let number =
                point.statistics.as_ref().map(|tree| shown(tree, &path)).unwrap_or_default();
            row.push(number.text(|value| column.form.text(value)));
            row.extend(column.form.has_spread().then(|| half(&number.estimate, column.form)));
        }
        rows.push(row);
    }
    let values = rows.len();
    for (point, first) in points.iter().filter_map(|point| Some((point, base_of(sweep, point)?))) {
        let (Some(differences), Some(own), Some(first)) =
            (&point.differences, &point.statistics, &first.statistics)
        else {
            continue;
        };
        let mut row = vec![row_name(sweep, point)];
        row.extend(is_first.then(|| [String::new(), String::new()]).into_iter().flatten());
        for column in columns {
            row.push(difference_cell((first, own, differences), column, marks));
            row.extend(
                column
                    .form
                    .has_spread()
                    .then(|| half_of(difference_of(first, own, differences, &column.at()))),
            );
        }
        rows.push(row);
    }
    (rows, values)
}

/// Whether rows name points by their values alone, since names with keys would be cut.
fn has_bare_names(sweep: &Sweep) -> bool {
    let length = |point: &Point| label(sweep, point.values.iter()).chars().count();
    sweep.grid.len() > 1 && sweep.points.iter().any(|point| length(point) > NAME)
}

/// A point's name in the table.
fn row_name(sweep: &Sweep, point: &Point) -> String {
    if !has_bare_names(sweep) {
        return label(sweep, point.values.iter());
    }
    let values: Vec<String> = point.values.iter().map(|(_, value)| clean(value)).collect();
    values.join(" ")
}

fn heads(columns: &[Column], is_first: bool, line: usize) -> Vec<String> {
    let start: Vec<String> =
        [["", "point"], ["", "runs"], ["flows", "done"]].map(|head| head[line].into()).into();
    let mut row: Vec<String> = start.into_iter().take(if is_first { 3 } else { 1 }).collect();
    for column in columns {
        row.push(column.head[line].clone());
        row.extend(column.form.has_spread().then(|| ["", "±"][line].to_string()));
    }
    row
}

/// Half of the width of a difference's interval, as a share of what it is a difference to.
fn half_of(difference: Option<Difference>) -> String {
    let half = |difference: Difference| {
        let [low, high] = difference.relative_interval?;
        Some((high - low) / 2.0)
    };
    difference.and_then(half).map_or(NONE.into(), |half| percent(Some(half)))
}

fn notes(sweep: &Sweep) -> Vec<String> {
    let axes: Vec<String> = sweep.grid.iter().map(|axis| clean(&axis.key)).collect();
    let of =
        if axes.is_empty() { "the scenario as it stands".to_string() } else { axes.join(" × ") };
    let order = if has_bare_names(sweep) { ", named by their values in this order" } else { "" };
    let mut lines = wrapped("points", &format!("{of}{order}"));
    let seeds = sweep.seeds.len();
    let text = match seeds {
        0 | 1 => "one seed: no intervals; say --seeds 1..10".to_string(),
        _ if seeds < FEW => format!(
            "half of the interval of the mean over {seeds} seeds; below {FEW} seeds it is the \
             seeds' range, not 95 %"
        ),
        _ => format!(
            "half of the 95 % interval of the mean over {seeds} seeds (bootstrap); times are FCT \
             unless QCT"
        ),
    };
    lines.extend(wrapped("±", &text));
    for point in sweep.points.iter() {
        if let Some(reason) = &point.skipped {
            lines.extend(wrapped(
                "left out",
                &format!("{}: {}", label(sweep, point.values.iter()), clean(reason)),
            ));
        }
    }
    for (point, run) in sweep.runs().filter(|(_, run)| run.status == Some(Status::Failed)) {
        let reason = run.reason.as_deref().unwrap_or("its audit failed");
        let text = format!(
            "run {}, {}, seed {}: {}",
            run.run,
            label(sweep, point.values.iter()),
            run.seed,
            clean(reason)
        );
        lines.extend(wrapped("FAILED", &text));
    }
    for (point, run) in sweep.runs().filter(|(_, run)| run.status == Some(Status::Stalled)) {
        let text =
            format!("run {}, {}, seed {}", run.run, label(sweep, point.values.iter()), run.seed);
        lines.extend(wrapped("STALLED", &text));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Axis;

    fn names(keys: &[(&str, &[&str])]) -> (Vec<String>, String) {
        let axis = |(key, values): &(&str, &[&str])| Axis {
            key: key.to_string(),
            values: values.iter().map(|value| value.to_string()).collect(),
        };
        let mut points = vec![Vec::new()];
        for (_, values) in keys {
            let longer = |point: &Vec<String>| {
                let with = |value: &&str| [point.clone(), vec![value.to_string()]].concat();
                values.iter().map(with).collect::<Vec<_>>()
            };
            points = points.iter().flat_map(longer).collect();
        }
        let points = points.into_iter().map(|values| (values, Ok(String::new()))).collect();
        let sweep = Sweep::new("s", "1", keys.iter().map(axis).collect(), vec![1], points);
        let names = sweep.points.iter().map(|point| row_name(&sweep, point)).collect();
        (names, sweep_table(&sweep, Warnings::First))
    }

    /// With keys the names of many axes are longer than their column, and would be cut.
    #[test]
    fn points_of_many_axes_are_named_by_values() {
        let few = names(&[("traffic.a.degree", &["4", "8"]), ("x.load", &["0.5"])]).0;
        assert_eq!(few, ["degree=4 load=0.5", "degree=8 load=0.5"]);
        let (many, table) = names(&[
            ("traffic.gets.degree", &["4", "8"]),
            ("switch.buffer.size", &["100KB"]),
            ("transport.min-rto", &["1ms", "10ms"]),
        ]);
        assert_eq!(many, ["4 100KB 1ms", "4 100KB 10ms", "8 100KB 1ms", "8 100KB 10ms"]);
        assert!(many.iter().all(|name| table.contains(name.as_str())), "{table}");
        let order = "traffic.gets.degree × switch.buffer.size × transport.min-rto, named by their";
        assert!(table.contains(order), "{table}");
    }
}
