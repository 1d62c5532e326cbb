//! The page of a sweep: each figure over the grid's longest key, a line for each combination of the others; then all points.
//!
//! Invariant: what was left out or failed is told; a figure that no point has is not drawn.

use std::path::Path;

use super::axis::{Axis, Scale, Unit};
use super::chart::{Chart, Line, Read};
use super::number::{count, gbps, percent, time};
use super::page::{self, details, empty, end, escape, figures, note, section, table};
use super::seeds_text;
use crate::censoring::shown;
use crate::compare::Estimate;
use crate::error::Result;
use crate::interval::FEW;
use crate::manifest::Manifest;
use crate::summary::{Status, World};
use crate::sweep::{Axis as Key, Point, Sweep};
use crate::sweep_results::{is_numeric, label, warnings};

/// Lines of a chart at most; further combinations are in the table.
const LINES: usize = 16;
/// Values that span more than this are drawn on a logarithmic axis.
const WIDE: f64 = 20.0;

/// A figure: its name, where it is in `summary.json`, what it is a number of, how it is written.
struct Figure {
    name: &'static str,
    path: &'static [&'static str],
    unit: Unit,
    text: fn(Option<f64>) -> String,
}

const FIGURES: [Figure; 8] = [
    Figure { name: "FCT p99 of mice", path: &["fct_us", "mice", "p99"], unit: Unit::Time, text: time },
    Figure { name: "Mean FCT", path: &["fct_us", "all", "mean"], unit: Unit::Time, text: time },
    Figure { name: "QCT p99", path: &["qct_us", "p99"], unit: Unit::Time, text: time },
    Figure { name: "Mean QCT", path: &["qct_us", "mean"], unit: Unit::Time, text: time },
    Figure { name: "Queries completed", path: &["qct_us", "completed_fraction"], unit: Unit::Percent, text: percent },
    Figure { name: "Goodput", path: &["flows", "goodput_gbps"], unit: Unit::Rate, text: gbps },
    Figure { name: "Drops", path: &["packets", "dropped"], unit: Unit::Count, text: count },
    Figure { name: "Timeouts", path: &["timeouts"], unit: Unit::Count, text: count },
];

impl Figure {
    fn of(&self, point: &Point) -> Option<Estimate> {
        point.statistics.as_ref()?.leaf(self.path).copied().filter(|estimate| estimate.mean.is_some())
    }

    /// Makes the axis' unit of the summary's.
    fn scale(&self) -> f64 {
        if self.unit == Unit::Percent { 100.0 } else { 1.0 }
    }
}

/// Writes `DIR/report.html`.
pub(crate) fn write(dir: &Path, sweep: &Sweep, manifest: &Manifest) -> Result<()> {
    super::replace(dir, &page_of(sweep, manifest))
}

fn page_of(sweep: &Sweep, manifest: &Manifest) -> String {
    let mut text = String::new();
    let across = across(sweep);
    let lines = lines(sweep, across);
    let names: Vec<String> = lines.iter().take(LINES).map(|line| line.name.clone()).collect();
    page::head(&mut text, &sweep.name, "sweep", &facts(sweep, manifest.world));
    super::warn(&mut text, &told(sweep));
    page::legend(&mut text, &names.iter().map(String::as_str).collect::<Vec<_>>());
    if let Some(key) = across {
        section(&mut text, "figures", &format!("By {}", escape(&sweep.grid[key].key)));
        charts(&mut text, sweep, key, &lines);
        end(&mut text);
    }
    section(&mut text, "points", "All points");
    points(&mut text, sweep);
    end(&mut text);
    section(&mut text, "scenario", "Scenario");
    super::scenario(&mut text, manifest);
    end(&mut text);
    page::foot_with(
        &mut text,
        "Everything on this page is simulated or computed from simulated results, and is in the files beside it: sweep.json has \
         each point's statistics, sweep.parquet those of each run. – means that there is nothing to make a number of.",
    );
    text
}

fn facts(sweep: &Sweep, world: World) -> Vec<String> {
    let mut facts = vec![
        format!("{} points", sweep.points.iter().filter(|point| point.skipped.is_none()).count()),
        seeds_text(&sweep.seeds),
        super::world_text(world).to_string(),
    ];
    let done = sweep.runs().filter(|(_, run)| run.status == Some(Status::Complete)).count();
    let all = sweep.runs().count();
    let (class, sign) = if done == all { ("good", '✓') } else { ("bad", '✗') };
    facts.push(format!("<span class=\"{class}\">{sign} {done} of {all} runs complete</span>"));
    facts
}

/// What was left out, what failed, and what runs warned of.
fn told(sweep: &Sweep) -> Vec<String> {
    let skipped = sweep.points.iter().filter_map(|point| Some((point, point.skipped.as_ref()?)));
    let skipped = skipped.map(|(point, why)| format!("left out: {}: {why}", label(sweep, point.values.iter())));
    let failed = sweep.runs().filter(|(_, run)| run.status == Some(Status::Failed)).map(|(point, run)| {
        let why = run.reason.as_deref().unwrap_or("its audit failed");
        format!("failed: {}, seed {}: {why}", label(sweep, point.values.iter()), run.seed)
    });
    skipped.chain(failed).chain(warnings(sweep)).collect()
}

/// The key with the most values, which is the charts' axis; variants are lines, whatever their number.
fn across(sweep: &Sweep) -> Option<usize> {
    let keys = sweep.grid.iter().enumerate().filter(|(_, key)| key.values.len() > 1 && key.key != "variant");
    keys.rev().max_by_key(|(_, key)| key.values.len()).map(|(place, _)| place)
}

/// Points that differ in the charts' key alone.
struct Group<'a> {
    name: String,
    points: Vec<&'a Point>,
}

fn lines(sweep: &Sweep, across: Option<usize>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for point in sweep.points.iter().filter(|point| point.skipped.is_none()) {
        let rest = point.values.iter().enumerate().filter(|(place, _)| Some(*place) != across);
        let name = label(sweep, rest.map(|(_, pair)| pair));
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.points.push(point),
            None => groups.push(Group { name, points: vec![point] }),
        }
    }
    groups
}

/// Where values lie on the axis: numbers at themselves, anything else side by side in the order of the grid.
struct Places<'a> {
    key: &'a Key,
    numeric: bool,
}

impl Places<'_> {
    fn of(&self, value: &str) -> Option<f64> {
        if self.numeric {
            return value.parse().ok();
        }
        self.key.values.iter().position(|other| other == value).map(|place| place as f64)
    }

    fn axis(&self) -> Option<Axis> {
        let all: Vec<f64> = self.key.values.iter().filter_map(|value| self.of(value)).collect();
        let (least, most) = (all.iter().copied().min_by(f64::total_cmp)?, all.iter().copied().max_by(f64::total_cmp)?);
        let title = escape(&self.key.key);
        if !self.numeric {
            let ticks =
                self.key.values.iter().enumerate().map(|(place, value)| (place as f64, escape(value))).collect();
            let (from, to) = (-0.5, most + 0.5);
            return Some(Axis { scale: Scale::Linear, unit: Unit::Name, title, from, to, ticks });
        }
        if least > 0.0 && most / least > WIDE {
            return Axis::log(all.into_iter(), Unit::Ratio, &format!("{title}, logarithmic"));
        }
        let space = 0.03 * (most - least);
        Some(Axis::linear(least - space, most + space, Unit::Ratio, &title))
    }
}

fn charts(page: &mut String, sweep: &Sweep, key: usize, groups: &[Group<'_>]) {
    let places = Places { key: &sweep.grid[key], numeric: is_numeric(&sweep.grid[key]) };
    let drawn = &groups[..groups.len().min(LINES)];
    let of = |figure: &Figure| chart(figure, &places, key, drawn);
    let charts: Vec<_> = FIGURES.iter().filter_map(of).collect();
    if charts.is_empty() {
        return empty(page, "No point has a complete run.");
    }
    figures(page, &charts);
    let more = match groups.len() - drawn.len() {
        0 => String::new(),
        n => format!(" {n} further combinations are in the table alone."),
    };
    let intervals = match sweep.seeds.len() {
        0 | 1 => "One seed, what completed.",
        n if n < FEW => "Means over seeds of what completed, with the range of the seeds.",
        _ => "Means over seeds of what completed, with their 95 % intervals.",
    };
    note(page, &format!("{intervals}{more}"));
}

fn chart(figure: &Figure, places: &Places<'_>, key: usize, groups: &[Group<'_>]) -> Option<(String, String, Chart)> {
    let scale = figure.scale();
    let line = |(series, group): (usize, &Group<'_>)| {
        let mut found: Vec<(f64, Estimate)> = group
            .points
            .iter()
            .filter_map(|point| Some((places.of(&point.values.0.get_index(key)?.1)?, figure.of(point)?)))
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean = |(x, estimate): &(f64, Estimate)| Some((*x, estimate.mean? * scale));
        let interval = |(x, estimate): &(f64, Estimate)| {
            let [low, high] = estimate.interval?;
            Some((*x, low * scale, high * scale))
        };
        let points: Vec<(f64, f64)> = found.iter().filter_map(mean).collect();
        Line {
            series,
            marks: points.iter().map(|&(x, y)| (x, y, false)).collect(),
            points,
            whiskers: found.iter().filter_map(interval).collect(),
            ..Line::default()
        }
    };
    let lines: Vec<Line> = groups.iter().enumerate().map(line).collect();
    let values: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|&(_, y)| y)).collect();
    let most = values.iter().copied().max_by(f64::total_cmp).filter(|most| *most > 0.0)?;
    let highest = lines.iter().flat_map(|line| &line.whiskers).map(|&(_, _, high)| high).fold(most, f64::max);
    let y = match figure.unit {
        Unit::Time if values.iter().any(|value| *value * WIDE < most) => {
            Axis::log(values.into_iter(), Unit::Time, "time, logarithmic")?
        }
        Unit::Percent => Axis::linear(0.0, 100.0, Unit::Percent, "of those started"),
        unit => Axis::linear(0.0, highest * 1.04, unit, "mean of a run"),
    };
    let label = format!("{} by {}", figure.name, escape(&places.key.key));
    Some((figure.name.into(), String::new(), Chart { x: places.axis()?, y, lines, read: Read::AtX, label }))
}

fn points(page: &mut String, sweep: &Sweep) {
    let told: Vec<&Figure> =
        FIGURES.iter().filter(|figure| sweep.points.iter().any(|point| figure.of(point).is_some())).collect();
    if told.is_empty() {
        return empty(page, "No point has a complete run.");
    }
    let mut head: Vec<String> = sweep.grid.iter().map(|key| escape(&key.key)).collect();
    head.push("runs".into());
    let kind = if sweep.seeds.len() < FEW { "range of seeds" } else { "95 % interval" };
    head.extend(told.iter().flat_map(|figure| [figure.name.to_string(), kind.into()]));
    let row = |point: &Point| {
        let mut row: Vec<String> = point.values.iter().map(|(_, value)| escape(value)).collect();
        let done = point.runs.iter().filter(|run| run.status == Some(Status::Complete)).count();
        row.push(format!("{done} of {}", point.runs.len()));
        for figure in &told {
            let shown = point.statistics.as_ref().map(|tree| shown(tree, figure.path)).unwrap_or_default();
            row.push(shown.text(figure.text));
            let estimate = shown.estimate;
            let ends = estimate.interval.map(|ends| ends.map(|end| (figure.text)(Some(end))));
            row.push(ends.map_or("–".into(), |[low, high]| format!("{low} to {high}")));
        }
        row
    };
    let rows: Vec<_> = sweep.points.iter().filter(|point| point.skipped.is_none()).map(row).collect();
    if rows.len() > 40 {
        return details(page, "The points as a table", |page| table(page, "", &head, &rows));
    }
    table(page, "", &head, &rows);
}

#[cfg(test)]
mod tests {
    use super::super::chart::swatch;
    use super::*;
    use crate::compare::Tree;
    use crate::summary::Ordered;
    use crate::sweep::SweepRun;

    fn sweep(keys: &[(&str, &[&str])], p99: impl Fn(usize) -> Option<f64>) -> Sweep {
        let grid: Vec<Key> = keys
            .iter()
            .map(|(key, values)| Key { key: key.to_string(), values: values.iter().map(|v| v.to_string()).collect() })
            .collect();
        let mut all: Vec<Vec<String>> = vec![Vec::new()];
        for key in &grid {
            all = all
                .iter()
                .flat_map(|had| key.values.iter().map(|v| [had.as_slice(), std::slice::from_ref(v)].concat()))
                .collect();
        }
        let points = all.into_iter().map(|values| (values, Ok(String::new()))).collect();
        let mut sweep = Sweep::new("a <sweep>", "0", grid, vec![1, 2], points);
        for (place, point) in sweep.points.iter_mut().enumerate() {
            let Some(p99) = p99(place) else { continue };
            let interval = Some([p99 * 0.9, p99 * 1.1]);
            let estimate = Estimate { mean: Some(p99), interval, n: 2, ..Estimate::default() };
            let branch = |name: &str, inside| Tree::Branch(Ordered::from(vec![(name.to_string(), inside)]));
            point.statistics = Some(branch("fct_us", branch("mice", branch("p99", Tree::Leaf(estimate)))));
            point.runs.iter_mut().for_each(|run: &mut SweepRun| run.status = Some(Status::Complete));
        }
        sweep
    }

    fn page(sweep: &Sweep) -> String {
        page_of(sweep, &Manifest::new("0", String::new()))
    }

    #[test]
    fn numbers_are_an_axis_and_the_other_keys_are_lines() {
        let of =
            sweep(&[("variant", &["a<", "b"]), ("traffic.load", &["0.2", "0.5", "0.8"])], |n| Some(n as f64 + 1.0));
        let page = page(&of);
        assert_eq!(page.matches("<svg class=\"chart\"").count(), 1, "one figure was measured");
        assert_eq!(page.matches("data-toggle=\"").count(), 2, "a line each");
        assert!(page.contains("By traffic.load") && page.contains("12 of 12 runs complete"));
        assert!(!page.contains("a<\"") && page.contains("a &lt;sweep&gt;") && page.contains(&swatch(1)));
        assert_eq!(page, super::page_of(&of, &Manifest::new("0", String::new())));
    }

    #[test]
    fn sizes_lie_side_by_side_and_a_far_range_is_logarithmic() {
        let sizes = sweep(&[("size", &["40KB", "100KB"])], |_| Some(3.0));
        let axis = Places { key: &sizes.grid[0], numeric: false }.axis().unwrap();
        assert_eq!(axis.ticks, [(0.0, "40KB".to_string()), (1.0, "100KB".to_string())]);
        let key = Key { key: "n".into(), values: ["1", "1000"].map(String::from).to_vec() };
        assert_eq!(Places { key: &key, numeric: true }.axis().unwrap().scale, Scale::Log);
    }

    #[test]
    fn a_sweep_without_results_or_keys_has_a_page_as_well() {
        assert!(page(&sweep(&[("n", &["1", "2"])], |_| None)).contains("No point has a complete run."));
        let alone = sweep(&[], |_| Some(1.0));
        assert!(page(&alone).contains("All points") && !page(&alone).contains("<svg class=\"chart\""));
        let mut failed = sweep(&[("n", &["1", "2"])], |n| (n == 0).then_some(1.0));
        failed.points[1].runs[0].status = Some(Status::Failed);
        failed.points[1].runs[0].reason = Some("no <disk>".into());
        assert!(page(&failed).contains("failed: 2, seed 1: no &lt;disk&gt;"));
    }
}
