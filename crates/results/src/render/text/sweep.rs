//! The points of a sweep beside each other.

use crate::model::{Estimate, FEW, Point, Status, Sweep, Tree, clean};
use crate::render::best::verdict;
use crate::render::format::percent;
use crate::render::text::blocks::{Against, Marks, Row, Table, bounds};
use crate::render::text::compare::few;
use crate::render::text::layout::{NAME, Warnings, wrapped};
use crate::render::words::words;
use crate::statistics::points::{self, base_of, columns_of, compared_with, exceptions, label};

/// Points that the table shows at most.
const SHOWN: usize = 100;

/// The points beside each other: means over seeds, with half of the 95 % interval; then their
/// differences to the point that each is compared with.
pub fn sweep_table(sweep: &Sweep, warnings: Warnings) -> String {
    let points: Vec<&Point> = sweep.points.iter().filter(|point| point.skipped.is_none()).collect();
    let columns = columns_of(sweep);
    let drawn = &points[..points.len().min(SHOWN)];
    let mut marks = Marks::default();
    let table = Table {
        name: "point",
        heads: &[["", "runs"], ["flows", "done"]],
        rows: drawn.iter().map(|point| row(sweep, point)).collect(),
        title: compared_with(sweep)
            .map_or(String::new(), |with| format!("\nDifference to {with}, seed by seed:")),
        has_spread: true,
        has_halves: false,
    };
    let mut lines = table.lines(&columns, &mut marks);
    if points.len() > drawn.len() {
        lines.push(format!("… and {} more points in sweep.json", points.len() - drawn.len()));
    }
    lines.push(String::new());
    fn trees<'a>(points: &[&'a Point]) -> Vec<&'a Tree<Estimate>> {
        points.iter().filter_map(|point| point.statistics.as_ref()).collect()
    }
    lines.extend(bounds(&trees(drawn), &columns));
    if sweep.seeds.len() > 1 && drawn.iter().any(|point| point.differences.is_some()) {
        lines.extend(marks.legend(sweep.seeds.len()));
    }
    lines.extend(verdict(sweep).iter().flat_map(|text| wrapped("best", text)));
    lines.extend(notes(sweep));
    lines.extend(few(&trees(&points), sweep.seeds.len(), &columns));
    lines.extend(warnings.lines(&points::warnings(sweep)));
    lines.join("\n") + "\n"
}

fn row<'a>(sweep: &'a Sweep, point: &'a Point) -> Row<'a> {
    let done = point.runs.iter().filter(|run| run.status.is_some_and(Status::is_final)).count();
    let share = percent(point.statistics.as_ref().and_then(Tree::share_of_flows));
    let first = base_of(sweep, point).and_then(|first| first.statistics.as_ref());
    let against = first.zip(point.differences.as_ref()).map(|(first, differences)| Against {
        first,
        differences,
        cells: vec![(String::new(), None), (String::new(), None)],
    });
    Row {
        name: row_name(sweep, point),
        cells: vec![format!("{done}/{}", point.runs.len()), share],
        statistics: point.statistics.as_ref(),
        against,
    }
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

fn notes(sweep: &Sweep) -> Vec<String> {
    let axes: Vec<String> = sweep.grid.iter().map(|axis| clean(&axis.key)).collect();
    let of =
        if axes.is_empty() { "the scenario as it stands".to_string() } else { axes.join(" × ") };
    let order = if has_bare_names(sweep) { ", named by their values in this order" } else { "" };
    let mut lines = wrapped("points", &format!("{of}{order}"));
    let (seeds, most) = (sweep.seeds.len().to_string(), FEW.to_string());
    let spread = match sweep.seeds.len() {
        0 | 1 => words("spread-of-one", &[]),
        n if n < FEW => words("spread-of-few", &[&seeds, &most]),
        _ => words("spread", &[&seeds]),
    };
    lines.extend(wrapped("±", &spread));
    for exception in exceptions(sweep) {
        let text = clean(&exception.text);
        lines.extend(match exception.run {
            None => wrapped(exception.kind, &text),
            Some(run) => wrapped(&exception.kind.to_uppercase(), &format!("run {run}, {text}")),
        });
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
