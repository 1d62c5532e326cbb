//! Heat maps and tables of a sweep's points.

use super::headline::Headline;
use super::heat::Heat;
use super::number::change;
use super::page::{Figure, details, empty, end, escape, figures, note, section, table};
use crate::model::estimate::{Difference, Estimate};
use crate::model::interval::FEW;
use crate::model::sweep::{Point, Sweep};
use crate::model::{Noise, Status};
use crate::statistics::censoring::{difference_of, shown};
use crate::statistics::points::{base_of, compared_with};

/// Variants whose heat maps are drawn.
pub(crate) const MAPS: usize = 4;

pub(crate) fn estimate(of: &Headline, point: &Point) -> Option<Estimate> {
    point.statistics.as_ref()?.leaf(&of.at()).copied().filter(|estimate| estimate.mean.is_some())
}

/// Where two keys are varied, besides variants: each number for each pair of values, a map a
/// variant.
pub(crate) fn maps(page: &mut String, sweep: &Sweep, headlines: &[Headline]) {
    let keys: Vec<usize> = (0..sweep.grid.len())
        .filter(|&key| sweep.grid[key].values.len() > 1 && sweep.grid[key].key != "variant")
        .collect();
    let [first, second] = keys[..] else { return };
    let longer = sweep.grid[first].values.len() >= sweep.grid[second].values.len();
    let (x, y) = if longer { (first, second) } else { (second, first) };
    let variants: Vec<Option<&str>> = match sweep.grid.iter().find(|key| key.key == "variant") {
        Some(key) => key.values.iter().take(MAPS).map(|value| Some(value.as_str())).collect(),
        None => vec![None],
    };
    let map = |headline: &Headline, variant: Option<&str>| {
        let of = |row: &String, column: &String| {
            let is_it = |point: &&Point| {
                let value = |key: usize| point.values.0.get_index(key).map(|(_, value)| value);
                value(x) == Some(column)
                    && value(y) == Some(row)
                    && variant.is_none_or(|v| point.values.get("variant").is_some_and(|of| of == v))
            };
            Some(estimate(headline, sweep.points.iter().find(is_it)?)?.mean? * headline.scale())
        };
        let key = |key: usize| {
            let axis = &sweep.grid[key];
            (escape(&axis.key), axis.values.iter().map(|value| escape(value)).collect::<Vec<_>>())
        };
        let columns =
            |row| sweep.grid[x].values.iter().map(|column| of(row, column)).collect::<Vec<_>>();
        let cells: Vec<Vec<Option<f64>>> = sweep.grid[y].values.iter().map(columns).collect();
        if cells.iter().flatten().flatten().all(|value| *value == 0.0) {
            return None;
        }
        let label = format!("{} by {} and {}", escape(&headline.name), key(x).0, key(y).0);
        let svg = Heat {
            x: key(x),
            y: key(y),
            cells,
            unit: headline.unit,
            less_is_better: headline.less_is_better,
            label,
        }
        .svg();
        let below = variant.map_or(String::new(), escape);
        Some(Figure { caption: escape(&headline.name), below, svg, otherwise: None })
    };
    let all: Vec<Figure> = headlines
        .iter()
        .flat_map(|headline| variants.iter().filter_map(move |variant| map(headline, *variant)))
        .collect();
    if all.is_empty() {
        return;
    }
    let title = format!("By {} and {}", escape(&sweep.grid[x].key), escape(&sweep.grid[y].key));
    section(page, "maps", &title);
    figures(page, &all);
    let more = sweep
        .grid
        .iter()
        .find(|key| key.key == "variant")
        .map_or(0, |key| key.values.len().saturating_sub(MAPS));
    let more = if more > 0 {
        format!(" {more} further variants are in the table alone.")
    } else {
        String::new()
    };
    note(page, &format!("Means over seeds; the darker, the worse.{more}"));
    end(page);
}

/// The differences of points to those that they are compared with, paired by seed, with their
/// intervals.
pub(crate) fn differences(page: &mut String, sweep: &Sweep, headlines: &[Headline]) {
    let Some(with) = compared_with(sweep) else { return };
    let has = |of: &&Headline| {
        let of = |point: &Point| point.differences.as_ref()?.leaf(&of.at())?.mean;
        sweep.points.iter().any(|point| of(point).is_some())
    };
    let told: Vec<&Headline> = headlines.iter().filter(has).collect();
    if told.is_empty() {
        return;
    }
    let mut head: Vec<String> = sweep.grid.iter().map(|key| escape(&key.key)).collect();
    let kind = if sweep.seeds.len() < FEW { "range of seeds" } else { "95 % interval" };
    head.extend(told.iter().flat_map(|of| [escape(&of.name), kind.into()]));
    let mut rows = Vec::new();
    for (point, first) in
        sweep.points.iter().filter_map(|point| Some((point, base_of(sweep, point)?)))
    {
        let (Some(own), Some(first), Some(found)) =
            (&point.statistics, &first.statistics, &point.differences)
        else {
            continue;
        };
        let mut row: Vec<String> = point.values.iter().map(|(_, value)| escape(value)).collect();
        for of in &told {
            let difference = difference_of(first, own, found, &of.at()).unwrap_or_default();
            row.extend(difference_cells(&difference, of));
        }
        rows.push(row);
    }
    section(page, "differences", "Differences");
    match rows.len() > 40 {
        true => details(page, "The differences as a table", |page| table(page, "", &head, &rows)),
        false => table(page, "", &head, &rows),
    }
    let few = match sweep.seeds.len() {
        0 | 1 => " One seed cannot tell a difference from noise: sweep with --seeds 1..10.",
        n if n < FEW => " So few seeds have no 95 % interval: sweep with --seeds 1..10.",
        _ => "",
    };
    let text = format!(
        "To {}, seed by seed: relative change, and the interval of the difference. ★ is beyond \
         the noise, ~ agrees in all of too few seeds, ≈ is within the noise, = is identical in \
         every seed, ? could be undone by what was open.{few}",
        escape(&with)
    );
    note(page, &text);
    end(page);
}

/// The relative change with its mark, and the interval of the difference.
fn difference_cells(difference: &Difference, of: &Headline) -> [String; 2] {
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
    let text = |value: f64| {
        let sign = if value < 0.0 { "−" } else { "+" };
        format!("{sign}{}", of.unit.text(value.abs() * of.scale()))
    };
    let ends = difference.interval.map(|[low, high]| format!("{} to {}", text(low), text(high)));
    let relative =
        if difference.mean == Some(0.0) { "0 %".into() } else { change(difference.relative) };
    [format!("{mark}{relative}"), ends.unwrap_or("–".into())]
}

pub(crate) fn points(page: &mut String, sweep: &Sweep, headlines: &[Headline]) {
    let told: Vec<&Headline> = headlines
        .iter()
        .filter(|of| sweep.points.iter().any(|point| estimate(of, point).is_some()))
        .collect();
    if told.is_empty() {
        return empty(page, "No point has a complete run.");
    }
    let mut head: Vec<String> = sweep.grid.iter().map(|key| escape(&key.key)).collect();
    head.push("runs".into());
    let kind = if sweep.seeds.len() < FEW { "range of seeds" } else { "95 % interval" };
    head.extend(told.iter().flat_map(|of| [escape(&of.name), kind.into()]));
    let row = |point: &Point| {
        let mut row: Vec<String> = point.values.iter().map(|(_, value)| escape(value)).collect();
        let done = point.runs.iter().filter(|run| run.status.is_some_and(Status::is_final)).count();
        row.push(format!("{done} of {}", point.runs.len()));
        for of in &told {
            let path = of.at();
            let shown =
                point.statistics.as_ref().map(|tree| shown(tree, &path)).unwrap_or_default();
            let text = |value: f64| of.unit.text(value * of.scale());
            row.push(shown.text(|mean| mean.map_or("–".into(), text)));
            let ends = shown.estimate.interval.map(|ends| ends.map(text));
            row.push(ends.map_or("–".into(), |[low, high]| format!("{low} to {high}")));
        }
        row
    };
    let rows: Vec<_> =
        sweep.points.iter().filter(|point| point.skipped.is_none()).map(row).collect();
    if rows.len() > 40 {
        return details(page, "The points as a table", |page| table(page, "", &head, &rows));
    }
    table(page, "", &head, &rows);
}
