//! Heat maps and tables of a sweep's points.

use super::measures::Measure;
use crate::model::{Difference, Estimate, FEW, Noise, Point, Status, Sweep};
use crate::render::document::{Block, Drawing, Figure, details, empty, note, section, table};
use crate::render::draw::heat::Heat;
use crate::render::draw::number::{change, ends, signed};
use crate::render::markup::escape;
use crate::render::words::words;
use crate::statistics::censoring::{difference_of, shown};
use crate::statistics::points::{base_of, compared_with};

/// Variants whose heat maps are drawn.
pub(crate) const MAPS: usize = 4;

/// Rows of a table that is not behind a click.
const ROWS: usize = 40;

/// ` 3 further ….` where some are left out.
pub(crate) fn further(left_out: usize, what: &str) -> String {
    if left_out == 0 { String::new() } else { format!(" {left_out} further {what} alone.") }
}

pub(crate) fn estimate(of: &Measure, point: &Point) -> Option<Estimate> {
    point.statistics.as_ref()?.leaf(&of.path).copied().filter(|estimate| estimate.mean.is_some())
}

/// Where two keys are varied, besides variants: each number for each pair of values, a map a
/// variant.
pub(crate) fn maps(sweep: &Sweep, measures: &[Measure]) -> Option<Block> {
    let is_varied =
        |key: &usize| sweep.grid[*key].values.len() > 1 && sweep.grid[*key].key != "variant";
    let keys: Vec<usize> = (0..sweep.grid.len()).filter(is_varied).collect();
    let [first, second] = keys[..] else { return None };
    let longer = sweep.grid[first].values.len() >= sweep.grid[second].values.len();
    let (x, y) = if longer { (first, second) } else { (second, first) };
    let named = sweep.grid.iter().find(|key| key.key == "variant");
    let variants: Vec<Option<&str>> = match named {
        Some(key) => key.values.iter().take(MAPS).map(|value| Some(value.as_str())).collect(),
        None => vec![None],
    };
    let key = |key: usize| {
        let axis = &sweep.grid[key];
        (escape(&axis.key), axis.values.iter().map(|value| escape(value)).collect::<Vec<_>>())
    };
    let map = |measure: &Measure, variant: Option<&str>| {
        let of = |row: &String, column: &String| {
            let is_it = |point: &&Point| {
                let value = |key: usize| point.values.0.get_index(key).map(|(_, value)| value);
                value(x) == Some(column)
                    && value(y) == Some(row)
                    && variant.is_none_or(|v| point.values.get("variant").is_some_and(|of| of == v))
            };
            Some(estimate(measure, sweep.points.iter().find(is_it)?)?.mean? * measure.scale())
        };
        let columns =
            |row| sweep.grid[x].values.iter().map(|column| of(row, column)).collect::<Vec<_>>();
        let cells: Vec<Vec<Option<f64>>> = sweep.grid[y].values.iter().map(columns).collect();
        let is_drawn = cells.iter().flatten().flatten().any(|value| *value != 0.0);
        let caption = measure.markup();
        let heat = Heat {
            label: format!("{caption} by {} and {}", key(x).0, key(y).0),
            x: key(x),
            y: key(y),
            cells,
            unit: measure.unit(),
            less_is_better: measure.less_is_better.unwrap_or(true),
        };
        let (below, drawing) = (variant.map_or(String::new(), escape), Drawing::Svg(heat.svg()));
        is_drawn.then(|| Figure { name: String::new(), caption, below, drawing })
    };
    let of = |measure| variants.iter().filter_map(move |variant| map(measure, *variant));
    let figures: Vec<Figure> = measures.iter().flat_map(of).collect();
    let left_out = named.map_or(0, |key| key.values.len().saturating_sub(MAPS));
    let text = "Means over seeds; the darker, the worse.".to_string();
    let text = text + &further(left_out, "variants are in the table");
    let title = format!("By {} and {}", key(x).0, key(y).0);
    let is_drawn = !figures.is_empty();
    is_drawn.then(|| section("maps", &title, vec![Block::Figures(figures), note(text)]))
}

/// Keys, these heads, and for each measure two columns: the number and its interval.
fn head(sweep: &Sweep, more: &[&str], measures: &[&Measure]) -> Vec<String> {
    let kind = if sweep.seeds.len() < FEW { "range of seeds" } else { "95 % interval" };
    let keys = sweep.grid.iter().map(|key| escape(&key.key));
    let keys = keys.chain(more.iter().map(|name| name.to_string()));
    keys.chain(measures.iter().flat_map(|of| [of.markup(), kind.into()])).collect()
}

/// A table, behind a click if it is long.
fn table_of(title: &str, head: Vec<String>, rows: Vec<Vec<String>>) -> Block {
    let is_long = rows.len() > ROWS;
    let table = table("", head, rows);
    if is_long { details(title, vec![table]) } else { table }
}

fn values(point: &Point) -> Vec<String> {
    point.values.iter().map(|(_, value)| escape(value)).collect()
}

/// The differences of points to those that they are compared with, paired by seed, with their
/// intervals.
pub(crate) fn differences(sweep: &Sweep, measures: &[Measure]) -> Option<Block> {
    let with = compared_with(sweep)?;
    let has = |of: &&Measure| {
        let of = |point: &Point| point.differences.as_ref()?.leaf(&of.path)?.mean;
        sweep.points.iter().any(|point| of(point).is_some())
    };
    let measures: Vec<&Measure> = measures.iter().filter(has).collect();
    let row = |point: &Point| {
        let (own, found) = (point.statistics.as_ref()?, point.differences.as_ref()?);
        let first = base_of(sweep, point)?.statistics.as_ref()?;
        let of = |of: &&Measure| {
            difference_cells(&difference_of(first, own, found, &of.path).unwrap_or_default(), of)
        };
        Some(values(point).into_iter().chain(measures.iter().flat_map(of)).collect())
    };
    let rows: Vec<Vec<String>> = sweep.points.iter().filter_map(row).collect();
    let few = match sweep.seeds.len() {
        0 | 1 => " One seed cannot tell a difference from noise: sweep with --seeds 1..10.",
        n if n < FEW => " So few seeds have no 95 % interval: sweep with --seeds 1..10.",
        _ => "",
    };
    let text = words("differences", &[&escape(&with)]) + few;
    let table = table_of("The differences as a table", head(sweep, &[], &measures), rows);
    let blocks = vec![table, note(text)];
    (!measures.is_empty()).then(|| section("differences", "Differences", blocks))
}

/// The relative change with its mark, and the interval of the difference.
fn difference_cells(difference: &Difference, of: &Measure) -> [String; 2] {
    if difference.mean.is_none() {
        return ["–".into(), "–".into()];
    }
    let mark = match difference.noise {
        Noise::Beyond => "★ ",
        Noise::Agreed => "~ ",
        Noise::Within => "≈ ",
        Noise::Identical => "= ",
        Noise::Open => "? ",
        Noise::Unknown => "",
    };
    let relative =
        if difference.mean == Some(0.0) { "0 %".into() } else { change(difference.relative) };
    let text = |value: f64| signed(value, |size| of.unit().text(size * of.scale()));
    [format!("{mark}{relative}"), ends(difference.interval, text)]
}

pub(crate) fn points(sweep: &Sweep, measures: &[Measure]) -> Block {
    let has = |of: &&Measure| sweep.points.iter().any(|point| estimate(of, point).is_some());
    let measures: Vec<&Measure> = measures.iter().filter(has).collect();
    if measures.is_empty() {
        return empty("No point has a complete run.");
    }
    let row = |point: &Point| {
        let done = point.runs.iter().filter(|run| run.status.is_some_and(Status::is_final)).count();
        let of = |of: &&Measure| {
            let tree = point.statistics.as_ref();
            let shown = tree.map(|tree| shown(tree, &of.path)).unwrap_or_default();
            let text = |value: f64| of.unit().text(value * of.scale());
            let mean = shown.text(|mean| mean.map_or("–".into(), text));
            [mean, ends(shown.estimate.interval, text)]
        };
        let runs = format!("{done} of {}", point.runs.len());
        values(point).into_iter().chain([runs]).chain(measures.iter().flat_map(of)).collect()
    };
    let rows = sweep.points.iter().filter(|point| point.skipped.is_none()).map(row).collect();
    table_of("The points as a table", head(sweep, &["runs"], &measures), rows)
}
