//! The page of a sweep: each number over the grid's longest key, a line for each combination of the
//! others; slowdown by flow size; heat maps where two keys are varied; then all points.
//!
//! Invariant: the page names what was left out or failed; a figure that no point has is not drawn.

use super::sweep_tables::{MAPS, differences, estimate, further, maps, points};
use crate::render::best::verdict;
use crate::statistics::points::{columns_of, exceptions, label, warnings};
use crate::statistics::shows::Column;
use std::path::Path;

use super::headline::WIDE;
use super::measures::{Measure, of_charts};
use super::page::Page;
use super::{fact, lead_about, seeds_text};
use crate::model::{
    Axis as Key, Error, Estimate, FEW, MANIFEST, Manifest, Point, RESULTS, Result, Rows, Status,
    Sweep, Tree, World, middle,
};
use crate::render::document::{Block, Figure, empty, note, section};
use crate::render::draw::axis::Axis;
use crate::render::draw::chart::{Chart, Line};
use crate::render::draw::number::extent;
use crate::render::draw::unit::Unit;
use crate::render::markup::escape;
use crate::render::words::words;

/// Lines of a chart at most; further combinations are in the table.
const LINES: usize = 16;

/// By run: its number and the measures that it has.
type Runs = Vec<(u32, Vec<Option<f64>>)>;

/// The page of the sweep in `dir`.
pub(crate) fn page(dir: &Path, sweep: &Sweep, manifest: &Manifest) -> Result<String> {
    let columns = columns_of(sweep);
    let measures = measures_of(sweep, &columns);
    Ok(page_of(sweep, &measures, &runs(&dir.join(RESULTS), &measures)?, manifest))
}

fn measures_of(sweep: &Sweep, columns: &[Column]) -> Vec<Measure> {
    let trees: Vec<&Tree<Estimate>> =
        sweep.points.iter().filter_map(|point| point.statistics.as_ref()).collect();
    of_charts(!sweep.shows.is_empty(), columns, &trees)
}

/// The measures of each run, from `sweep.parquet`. A sweep that was never ended has none.
fn runs(path: &Path, measures: &[Measure]) -> Result<Runs> {
    let mut runs: Runs = Vec::new();
    if !path.is_file() {
        return Ok(runs);
    }
    let rows = Rows::open(path)?;
    for (place, measure) in measures.iter().enumerate() {
        let column = measure.path.join(".");
        if !rows.has(&column) {
            continue;
        }
        rows.each(["run", column.as_str()], |row| {
            let Some(run) = row.whole(0) else { return Ok(()) };
            let run = u32::try_from(run).unwrap_or(u32::MAX);
            let at = runs.iter().position(|(other, _)| *other == run).unwrap_or_else(|| {
                runs.push((run, vec![None; measures.len()]));
                runs.len() - 1
            });
            runs[at].1[place] = row.float(1);
            Ok(())
        })?;
    }
    Ok(runs)
}

fn page_of(sweep: &Sweep, measures: &[Measure], runs: &Runs, manifest: &Manifest) -> String {
    let across = across(sweep);
    let groups = groups(sweep, across);
    let mut blocks = Vec::new();
    if let Some(key) = across {
        let inside = charts_of(sweep, measures, runs, key, &groups);
        blocks.push(section("figures", &format!("By {}", escape(&sweep.grid[key].key)), inside));
    }
    blocks.extend(sizes(sweep, across, &groups));
    blocks.extend(differences(sweep, measures));
    blocks.extend(maps(sweep, measures));
    let exceptions = exceptions(sweep).into_iter().map(|it| format!("{}: {}", it.kind, it.text));
    blocks.extend(super::warn(&exceptions.chain(warnings(sweep)).collect::<Vec<_>>()));
    blocks.push(section("points", "All points", vec![points(sweep, measures)]));
    blocks.push(section("scenario", "Scenario", super::scenario(manifest)));
    let best = verdict(sweep).map(|best| lead_about(format!("Best: {}.", escape(&best))));
    let page = Page {
        kind: "sweep",
        name: &sweep.name,
        facts: facts(sweep, manifest.world),
        about: best.into_iter().collect(),
        names: groups.iter().take(LINES).map(|group| group.name.as_str()).collect(),
        blocks,
        rests_on: "rests-on-sweep",
    };
    page.html()
}

fn facts(sweep: &Sweep, world: World) -> Vec<String> {
    let points = sweep.points.iter().filter(|point| point.skipped.is_none()).count();
    let with = |status| sweep.runs().filter(|(_, run)| run.status == Some(status)).count();
    let (done, all) = (with(Status::Complete), sweep.runs().count());
    let stalled = match with(Status::Stalled) {
        0 => String::new(),
        stalled => format!(", {stalled} stalled"),
    };
    vec![
        format!("{points} points"),
        seeds_text(&sweep.seeds),
        world.text().to_string(),
        fact(done == all, &format!("{done} of {all} runs complete{stalled}")),
    ]
}

/// The key with the most values, which is the charts' axis; variants are lines, whatever their
/// number.
fn across(sweep: &Sweep) -> Option<usize> {
    let keys = sweep
        .grid
        .iter()
        .enumerate()
        .filter(|(_, key)| key.values.len() > 1 && key.key != "variant");
    keys.rev().max_by_key(|(_, key)| key.values.len()).map(|(place, _)| place)
}

/// Points that differ in the charts' key alone.
struct Group<'a> {
    name: String,
    points: Vec<&'a Point>,
}

fn groups(sweep: &Sweep, across: Option<usize>) -> Vec<Group<'_>> {
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

/// Where values lie on the axis: numbers at themselves, anything else side by side in the order of
/// the grid.
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
        let title = escape(&self.key.key);
        if !self.numeric {
            let names: Vec<String> = self.key.values.iter().map(|value| escape(value)).collect();
            return Some(Axis::names(&names, &title));
        }
        Axis::points(&all, Unit::Ratio, &title)
    }
}

fn charts_of(
    sweep: &Sweep,
    measures: &[Measure],
    runs: &Runs,
    key: usize,
    groups: &[Group<'_>],
) -> Vec<Block> {
    let charts = charts(sweep, measures, runs, key, groups);
    if charts.is_empty() {
        return vec![empty("No point has a complete run.")];
    }
    let means = match sweep.seeds.len() {
        0 | 1 => "one-seed-points",
        n if n < FEW => "few-seeds-points",
        _ => "seeds-points",
    };
    let more = further(groups.len().saturating_sub(LINES), "combinations are in the table");
    vec![Block::Figures(charts), note(words(means, &[]) + &more)]
}

fn charts(
    sweep: &Sweep,
    measures: &[Measure],
    runs: &Runs,
    key: usize,
    groups: &[Group<'_>],
) -> Vec<Figure> {
    let places = Places { key: &sweep.grid[key], numeric: sweep.grid[key].is_numeric() };
    let drawn = &groups[..groups.len().min(LINES)];
    let several = drawn.iter().flat_map(|group| &group.points).any(|point| point.runs.len() > 1);
    let of = |(number, of): (usize, &Measure)| {
        let value = |run: u32| *runs.iter().find(|(other, _)| *other == run)?.1.get(number)?;
        let line = |(series, group): (usize, &Group<'_>)| {
            let place = |point: &Point| places.of(point.values.0.get_index(key)?.1);
            let points = group.points.iter();
            let mut found: Vec<(f64, &Point)> = points
                .filter_map(|point| estimate(of, point).and(Some((place(point)?, *point))))
                .collect();
            found.sort_by(|a, b| a.0.total_cmp(&b.0));
            let seeds = found.iter().filter(|_| several).flat_map(|(x, point)| {
                point.runs.iter().filter_map(|run| Some((run.seed, *x, value(run.run)?)))
            });
            let dots = seeds.map(|(seed, x, value)| (seed, x, value * of.scale())).collect();
            let estimates = found.iter().filter_map(|(x, point)| Some((*x, estimate(of, point)?)));
            let estimates: Vec<_> = estimates.collect();
            Line { dots, ..Line::estimates(series, &estimates, of.scale()) }
        };
        chart(of, &places, drawn.iter().enumerate().map(line).collect())
    };
    measures.iter().enumerate().filter_map(of).collect()
}

fn chart(of: &Measure, places: &Places<'_>, lines: Vec<Line>) -> Option<Figure> {
    let values = || lines.iter().flat_map(|line| line.points.iter().map(|&(_, y)| y));
    let (least, most) = extent(values()).filter(|(_, most)| *most > 0.0)?;
    let highest = lines
        .iter()
        .flat_map(|line| line.whiskers.iter().map(|w| w.2).chain(line.dots.iter().map(|d| d.2)));
    let highest = highest.fold(most, f64::max);
    let y = match of.unit() {
        Unit::Time if least * WIDE < most => Axis::log(values(), Unit::Time, "time")?,
        Unit::Percent => Axis::linear(0.0, 100.0, Unit::Percent, "of those started"),
        unit => Axis::linear(0.0, highest * 1.04, unit, "mean of a run"),
    };
    let label = format!("{} by {}", of.markup(), escape(&places.key.key));
    let chart = Chart::new(places.axis()?, y, lines, label);
    Some(Figure::of(of.markup(), "", chart).named(file_name(&of.name)))
}

/// A caption as a file's name: letters and digits, one dash between others.
fn file_name(caption: &str) -> String {
    let words = caption.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}

/// The charts of the sweep in a folder over its longest key, and the names of their lines.
///
/// # Errors
/// If its files are missing or damaged, or no key has two values.
pub(crate) fn drawings(dir: &Path) -> Result<(Vec<Figure>, Vec<String>)> {
    let sweep = Sweep::read(dir)?;
    let columns = columns_of(&sweep);
    let measures = measures_of(&sweep, &columns);
    let runs = runs(&dir.join(RESULTS), &measures)?;
    let Some(key) = across(&sweep) else {
        let reason = "is of a sweep without a key of two values: name its runs".to_string();
        return Err(Error::Malformed { path: dir.join(MANIFEST), reason });
    };
    let groups = groups(&sweep, Some(key));
    let names = groups.iter().take(LINES).map(|group| group.name.clone()).collect();
    Ok((charts(&sweep, &measures, &runs, key, &groups), names))
}

/// Slowdown by flow size: a chart for each of the charts' key's values, a line for each combination
/// of the others.
fn sizes(sweep: &Sweep, across: Option<usize>, groups: &[Group<'_>]) -> Option<Block> {
    let values = across.map_or(vec![None], |key| sweep.grid[key].values.iter().map(Some).collect());
    let of = |value: Option<&String>, percentile: &str| {
        let of_point = |point: &Point| Some(point.values.0.get_index(across?)?.1.clone());
        let at = |point: &&&Point| value.is_none() || of_point(point).as_ref() == value;
        let line = |(series, group): (usize, &Group<'_>)| {
            let point = group.points.iter().find(at);
            let bins = point.map_or(Vec::new(), |point| by_size(point, percentile));
            Line::estimates(series, &bins, 1.0)
        };
        let lines: Vec<Line> = groups.iter().take(LINES).enumerate().map(line).collect();
        let points = || lines.iter().flat_map(|line| line.points.iter());
        let x = Axis::log(points().map(|point| point.0), Unit::Bytes, "flow size")?;
        let y = Axis::log(points().map(|point| point.1), Unit::Ratio, "times the FCT alone")?;
        let chart = Chart::new(x, y, lines, format!("Slowdown {percentile} by flow size"));
        let name = across.zip(value).map(|(key, of)| format!("{} = {of}", sweep.grid[key].key));
        let below = escape(&name.unwrap_or_default());
        Some(Figure::of(format!("Slowdown {percentile}"), below, chart))
    };
    let drawn = values.iter().take(MAPS);
    let figures: Vec<Figure> =
        drawn.flat_map(|value| ["p99", "p50"].map(|key| of(*value, key))).flatten().collect();
    let more = further(values.len().saturating_sub(MAPS), "values are in sweep.parquet");
    let text = words("sizes-points", &[]) + &more;
    let is_drawn = !figures.is_empty();
    let blocks = vec![Block::Figures(figures), note(text)];
    is_drawn.then(|| section("sizes", "By flow size", blocks))
}

/// A percentile of the slowdown of each bin, with where it is drawn.
fn by_size(point: &Point, percentile: &str) -> Vec<(f64, Estimate)> {
    let bins = point.statistics.as_ref().and_then(|tree| tree.branch(&["slowdown_by_size"]));
    let of = |(_, bin): (&str, &Tree<Estimate>)| {
        let edge = |key: &str| bin.leaf(&[key])?.mean;
        Some((middle(edge("above_bytes")?, edge("to_bytes")?), *bin.leaf(&[percentile])?))
    };
    let found = bins.into_iter().flat_map(|bins| bins.iter()).filter_map(of);
    let mut found: Vec<_> = found.filter(|(_, of)| of.mean.is_some()).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Ordered, SweepRun};
    use crate::render::draw::axis::Scale;
    use crate::render::draw::series::swatch;

    fn sweep(keys: &[(&str, &[&str])], p99: impl Fn(usize) -> Option<f64>) -> Sweep {
        let grid: Vec<Key> = keys
            .iter()
            .map(|(key, values)| Key {
                key: key.to_string(),
                values: values.iter().map(|v| v.to_string()).collect(),
            })
            .collect();
        let mut all: Vec<Vec<String>> = vec![Vec::new()];
        for key in &grid {
            all = all
                .iter()
                .flat_map(|had| {
                    key.values.iter().map(|v| [had.as_slice(), std::slice::from_ref(v)].concat())
                })
                .collect();
        }
        let points = all.into_iter().map(|values| (values, Ok(String::new()))).collect();
        let mut sweep = Sweep::new("a <sweep>", "0", grid, vec![1, 2], points);
        for (place, point) in sweep.points.iter_mut().enumerate() {
            let Some(p99) = p99(place) else { continue };
            let interval = Some([p99 * 0.9, p99 * 1.1]);
            let estimate = Estimate { mean: Some(p99), interval, n: 2, ..Estimate::default() };
            let branch =
                |name: &str, inside| Tree::Branch(Ordered::from(vec![(name.to_string(), inside)]));
            point.statistics =
                Some(branch("fct_us", branch("mice", branch("p99", Tree::Leaf(estimate)))));
            point
                .runs
                .iter_mut()
                .for_each(|run: &mut SweepRun| run.status = Some(Status::Complete));
        }
        sweep
    }

    fn page(sweep: &Sweep) -> String {
        page_with(sweep, &Vec::new())
    }

    fn page_with(sweep: &Sweep, runs: &Runs) -> String {
        let columns = columns_of(sweep);
        page_of(sweep, &measures_of(sweep, &columns), runs, &Manifest::new("0", String::new()))
    }

    #[test]
    fn numbers_are_an_axis_and_the_other_keys_are_lines() {
        let of =
            sweep(&[("variant", &["a<", "b"]), ("traffic.load", &["0.2", "0.5", "0.8"])], |n| {
                Some(n as f64 + 1.0)
            });
        let page = page(&of);
        assert_eq!(page.matches("<figure>").count(), 1, "one number was measured");
        assert_eq!(page.matches("data-toggle=\"").count(), 2, "a line each");
        assert!(page.contains("By traffic.load") && page.contains("12 of 12 runs complete"));
        assert!(
            !page.contains("a<\"") && page.contains("a &lt;sweep&gt;") && page.contains(&swatch(1))
        );
        assert_eq!(page, self::page(&of));
    }

    #[test]
    fn two_keys_have_a_map_of_every_pair_and_one_key_has_none() {
        let of = sweep(&[("load", &["0.2", "0.5", "0.8"]), ("size", &["1", "2"])], |n| {
            (n != 5).then_some(100.0 + n as f64)
        });
        let page = page(&of);
        assert_eq!(
            (page.matches("<svg class=\"heat\"").count(), page.matches("empty-cell\"").count()),
            (1, 1)
        );
        assert!(
            page.contains("By load and size")
                && page.contains("&quot;0.8&quot;,&quot;1&quot;,104&#10;"),
            "{page}"
        );
        assert!(
            !self::page(&sweep(&[("load", &["0.2", "0.5"])], |_| Some(1.0)))
                .contains("<svg class=\"heat\"")
        );
    }

    #[test]
    fn each_seed_is_a_dot_beside_its_mean() {
        let of = sweep(&[("n", &["16", "32"])], |_| Some(10.0));
        let values = |value: f64| (0..8).map(|at| (at == 0).then_some(value)).collect();
        let runs: Runs =
            of.runs().map(|(_, run)| (run.run, values(9.0 + run.seed as f64))).collect();
        let page = page_with(&of, &runs);
        assert!(page.contains("data-d=\"1 16 10 2 16 11 1 32 10 2 32 11\""), "{page}");
        assert!(
            page.contains(">16</text>")
                && page.contains(">32</text>")
                && !page.contains(">20</text>")
        );
    }

    #[test]
    fn sizes_lie_side_by_side_and_a_far_range_is_logarithmic() {
        let sizes = sweep(&[("size", &["40KB", "100KB"])], |_| Some(3.0));
        let axis = Places { key: &sizes.grid[0], numeric: false }.axis().unwrap();
        assert_eq!(axis.ticks, [(0.0, "40KB".to_string()), (1.0, "100KB".to_string())]);
        let key = Key { key: "n".into(), values: ["1", "1000"].map(String::from).to_vec() };
        assert_eq!(
            Places { key: &key, numeric: true }.axis().unwrap().scale,
            Scale::Linear,
            "two points have no scale"
        );
        let key = Key { key: "n".into(), values: ["1", "10", "1000"].map(String::from).to_vec() };
        assert_eq!(Places { key: &key, numeric: true }.axis().unwrap().scale, Scale::Log);
    }

    #[test]
    fn a_sweep_without_results_or_keys_has_a_page_as_well() {
        assert!(
            page(&sweep(&[("n", &["1", "2"])], |_| None)).contains("No point has a complete run.")
        );
        let alone = sweep(&[], |_| Some(1.0));
        assert!(
            page(&alone).contains("All points") && !page(&alone).contains("<svg class=\"chart\"")
        );
        let mut failed = sweep(&[("n", &["1", "2"])], |n| (n == 0).then_some(1.0));
        failed.points[1].runs[0].status = Some(Status::Failed);
        failed.points[1].runs[0].reason = Some("no <disk>".into());
        assert!(page(&failed).contains("failed: 2, seed 1: no &lt;disk&gt;"));
    }
}
