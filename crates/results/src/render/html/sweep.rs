//! The page of a sweep: each number over the grid's longest key, a line for each combination of the
//! others; slowdown by flow size; heat maps where two keys are varied; then all points.
//!
//! Invariant: the page names what was left out or failed; a figure that no point has is not drawn.

use super::sweep_tables::{MAPS, differences, estimate, maps, points};
use crate::statistics::points::{columns_of, label, warnings};
use crate::statistics::subject::verdict;
use std::fmt::Write;
use std::path::Path;

use super::axis::Axis;
use super::chart::{Chart, Line, Read};
use super::headline::{Headline, WIDE, headlines};
use super::page::{self, Drawing, Figure, empty, end, escape, figures, note, section};
use super::seeds_text;
use super::unit::Unit;
use crate::model::{
    Axis as Key, Error, Estimate, FEW, MANIFEST, Manifest, Point, RESULTS, Result, Rows, Status,
    Sweep, Tree, World, middle,
};

/// Lines of a chart at most; further combinations are in the table.
const LINES: usize = 16;

/// By run: its number and the headlines that it has.
type Runs = Vec<(u32, Vec<Option<f64>>)>;

/// The page of the sweep in `dir`.
pub(crate) fn page(dir: &Path, sweep: &Sweep, manifest: &Manifest) -> Result<String> {
    let headlines = headlines_of(sweep);
    Ok(page_of(sweep, &headlines, &runs(&dir.join(RESULTS), &headlines)?, manifest))
}

/// The numbers of the charts.
fn headlines_of(sweep: &Sweep) -> Vec<Headline> {
    let trees: Vec<&Tree<Estimate>> =
        sweep.points.iter().filter_map(|point| point.statistics.as_ref()).collect();
    headlines(!sweep.shows.is_empty(), &columns_of(sweep), &trees)
}

/// The headlines of each run, from `sweep.parquet`. A sweep that was never ended has none.
fn runs(path: &Path, headlines: &[Headline]) -> Result<Runs> {
    let mut runs: Runs = Vec::new();
    if !path.is_file() {
        return Ok(runs);
    }
    let rows = Rows::open(path)?;
    for (place, headline) in headlines.iter().enumerate() {
        let column = headline.path.join(".");
        if !rows.has(&column) {
            continue;
        }
        rows.each(["run", column.as_str()], |columns, count| {
            for row in 0..count {
                let (Some(run), value) = (columns[0].whole(row), columns[1].float(row)) else {
                    continue;
                };
                let run = u32::try_from(run).unwrap_or(u32::MAX);
                match runs.iter_mut().find(|(other, _)| *other == run) {
                    Some((_, values)) => values[place] = value,
                    None => {
                        let mut values = vec![None; headlines.len()];
                        values[place] = value;
                        runs.push((run, values));
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(runs)
}

fn page_of(sweep: &Sweep, headlines: &[Headline], runs: &Runs, manifest: &Manifest) -> String {
    let mut text = String::new();
    let across = across(sweep);
    let lines = lines(sweep, across);
    let names: Vec<String> = lines.iter().take(LINES).map(|line| line.name.clone()).collect();
    page::head(&mut text, &sweep.name, "sweep", &facts(sweep, manifest.world));
    if let Some(best) = verdict(sweep) {
        let _ = writeln!(text, "<p class=\"lead about\">Best: {}.</p>", escape(&best));
    }
    page::legend(&mut text, &names.iter().map(String::as_str).collect::<Vec<_>>());
    if let Some(key) = across {
        section(&mut text, "figures", &format!("By {}", escape(&sweep.grid[key].key)));
        charts(&mut text, (sweep, headlines), runs, key, &lines);
        end(&mut text);
    }
    sizes(&mut text, sweep, across, &lines);
    differences(&mut text, sweep, headlines);
    maps(&mut text, sweep, headlines);
    super::warn(&mut text, &told(sweep));
    section(&mut text, "points", "All points");
    points(&mut text, sweep, headlines);
    end(&mut text);
    section(&mut text, "scenario", "Scenario");
    super::scenario(&mut text, manifest);
    end(&mut text);
    page::foot_with(
        &mut text,
        "Everything on this page is simulated or computed from simulated results, and is in the \
         files beside it: sweep.json has each point's statistics, sweep.parquet those of each \
         run. – means that there is nothing to make a number of.",
    );
    text
}

fn facts(sweep: &Sweep, world: World) -> Vec<String> {
    let mut facts = vec![
        format!("{} points", sweep.points.iter().filter(|point| point.skipped.is_none()).count()),
        seeds_text(&sweep.seeds),
        super::world_text(world).to_string(),
    ];
    let with = |status| sweep.runs().filter(|(_, run)| run.status == Some(status)).count();
    let (done, stalled, all) =
        (with(Status::Complete), with(Status::Stalled), sweep.runs().count());
    let (class, sign) = if done == all { ("good", '✓') } else { ("bad", '✗') };
    let rest = if stalled > 0 { format!(", {stalled} stalled") } else { String::new() };
    facts
        .push(format!("<span class=\"{class}\">{sign} {done} of {all} runs complete{rest}</span>"));
    facts
}

/// Notes on what was left out, what failed, and what runs warned of.
fn told(sweep: &Sweep) -> Vec<String> {
    let skipped = sweep.points.iter().filter_map(|point| Some((point, point.skipped.as_ref()?)));
    let skipped = skipped
        .map(|(point, why)| format!("left out: {}: {why}", label(sweep, point.values.iter())));
    let failed =
        sweep.runs().filter(|(_, run)| run.status == Some(Status::Failed)).map(|(point, run)| {
            let why = run.reason.as_deref().unwrap_or("its audit failed");
            format!("failed: {}, seed {}: {why}", label(sweep, point.values.iter()), run.seed)
        });
    let stalled =
        sweep.runs().filter(|(_, run)| run.status == Some(Status::Stalled)).map(|(point, run)| {
            format!("stalled: {}, seed {}", label(sweep, point.values.iter()), run.seed)
        });
    skipped.chain(failed).chain(stalled).chain(warnings(sweep)).collect()
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

fn charts(
    page: &mut String,
    (sweep, headlines): (&Sweep, &[Headline]),
    runs: &Runs,
    key: usize,
    groups: &[Group<'_>],
) {
    let places = Places { key: &sweep.grid[key], numeric: sweep.grid[key].is_numeric() };
    let drawn = &groups[..groups.len().min(LINES)];
    let of = |(number, headline): (usize, &Headline)| {
        chart((number, headline), &places, runs, key, drawn)
    };
    let charts: Vec<Drawing> = headlines.iter().enumerate().filter_map(of).collect();
    if charts.is_empty() {
        return empty(page, "No point has a complete run.");
    }
    figures(page, &charts.iter().map(Figure::from).collect::<Vec<_>>());
    let more = match groups.len() - drawn.len() {
        0 => String::new(),
        n => format!(" {n} further combinations are in the table alone."),
    };
    let means = match sweep.seeds.len() {
        0 | 1 => "One seed; times are of what completed.",
        n if n < FEW => {
            "Means over seeds, with the range of the seeds; times are of what completed. A pale \
             dot is one seed."
        }
        _ => {
            "Means over seeds, with their 95 % intervals; times are of what completed. A pale dot \
             is one seed."
        }
    };
    note(page, &format!("{means}{more}"));
}

fn chart(
    (number, of): (usize, &Headline),
    places: &Places<'_>,
    runs: &Runs,
    key: usize,
    groups: &[Group<'_>],
) -> Option<Drawing> {
    let scale = of.scale();
    let several = groups.iter().flat_map(|group| &group.points).any(|point| point.runs.len() > 1);
    let value = |run: u32| {
        runs.iter().find(|(other, _)| *other == run).and_then(|(_, values)| *values.get(number)?)
    };
    let line = |(series, group): (usize, &Group<'_>)| {
        let place = |point: &Point| places.of(point.values.0.get_index(key)?.1);
        let mut found: Vec<(f64, Estimate, &Point)> = group
            .points
            .iter()
            .filter_map(|point| Some((place(point)?, estimate(of, point)?, *point)))
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let points: Vec<(f64, f64)> =
            found.iter().filter_map(|(x, e, _)| Some((*x, e.mean? * scale))).collect();
        let whiskers = found
            .iter()
            .filter_map(|(x, e, _)| e.interval.map(|[a, b]| (*x, a * scale, b * scale)));
        let seeds = found.iter().filter(|_| several).flat_map(|(x, _, point)| {
            point.runs.iter().filter_map(|run| Some((run.seed, *x, value(run.run)? * scale)))
        });
        Line {
            series,
            marks: points.iter().map(|&(x, y)| (x, y, false)).collect(),
            whiskers: whiskers.collect(),
            dots: seeds.collect(),
            points,
            ..Line::default()
        }
    };
    let lines: Vec<Line> = groups.iter().enumerate().map(line).collect();
    let values: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter().map(|&(_, y)| y)).collect();
    let most = values.iter().copied().max_by(f64::total_cmp).filter(|most| *most > 0.0)?;
    let highest = lines
        .iter()
        .flat_map(|line| line.whiskers.iter().map(|w| w.2).chain(line.dots.iter().map(|d| d.2)));
    let highest = highest.fold(most, f64::max);
    let y = match of.unit {
        Unit::Time if values.iter().any(|value| *value * WIDE < most) => {
            Axis::log(values.into_iter(), Unit::Time, "time")?
        }
        Unit::Percent => Axis::linear(0.0, 100.0, Unit::Percent, "of those started"),
        unit => Axis::linear(0.0, highest * 1.04, unit, "mean of a run"),
    };
    let label = format!("{} by {}", escape(&of.name), escape(&places.key.key));
    let chart = Chart { x: places.axis()?, y, lines, spans: Vec::new(), read: Read::AtX, label };
    let name = file_name(&of.name);
    Some(Drawing { name, caption: escape(&of.name), below: String::new(), chart })
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
pub(crate) fn drawings(dir: &Path) -> Result<(Vec<Drawing>, Vec<String>)> {
    let sweep = Sweep::read(dir)?;
    let headlines = headlines_of(&sweep);
    let runs = runs(&dir.join(RESULTS), &headlines)?;
    let Some(key) = across(&sweep) else {
        let reason = "is of a sweep without a key of two values: name its runs".to_string();
        return Err(Error::Malformed { path: dir.join(MANIFEST), reason });
    };
    let groups = lines(&sweep, Some(key));
    let drawn = &groups[..groups.len().min(LINES)];
    let places = Places { key: &sweep.grid[key], numeric: sweep.grid[key].is_numeric() };
    let of = |(number, headline): (usize, &Headline)| {
        chart((number, headline), &places, &runs, key, drawn)
    };
    let drawings = headlines.iter().enumerate().filter_map(of).collect();
    Ok((drawings, drawn.iter().map(|group| group.name.clone()).collect()))
}

/// Slowdown by flow size: a chart for each of the charts' key's values, a line for each combination
/// of the others.
fn sizes(page: &mut String, sweep: &Sweep, across: Option<usize>, groups: &[Group<'_>]) {
    let values = across.map_or(vec![None], |key| sweep.grid[key].values.iter().map(Some).collect());
    let of = |(value, percentile): (Option<&String>, &str)| {
        let of_point = |point: &Point| Some(point.values.0.get_index(across?)?.1.clone());
        let at = |point: &&&Point| value.is_none() || of_point(point).as_ref() == value;
        let own = |group: &Group<'_>| {
            group.points.iter().find(at).map_or(Vec::new(), |point| by_size(point, percentile))
        };
        let lines: Vec<Line> = groups
            .iter()
            .take(LINES)
            .enumerate()
            .map(|(series, group)| by_size_line(series, own(group)))
            .collect();
        let points = || lines.iter().flat_map(|line| line.points.iter());
        let chart = Chart {
            x: Axis::log(
                points().map(|point| point.0).collect::<Vec<_>>().into_iter(),
                Unit::Bytes,
                "flow size",
            )?,
            y: Axis::log(
                points().map(|point| point.1).collect::<Vec<_>>().into_iter(),
                Unit::Ratio,
                "times the FCT alone",
            )?,
            lines,
            spans: Vec::new(),
            read: Read::AtX,
            label: format!("Slowdown {percentile} by flow size"),
        };
        let name = across
            .zip(value)
            .map_or(String::new(), |(key, value)| format!("{} = {}", sweep.grid[key].key, value));
        Some(Figure::of(format!("Slowdown {percentile}"), escape(&name), &chart))
    };
    let drawn = values
        .iter()
        .take(MAPS)
        .flat_map(|value| ["p99", "p50"].map(|percentile| (*value, percentile)));
    let charts: Vec<Figure> = drawn.filter_map(of).collect();
    if charts.is_empty() {
        return;
    }
    section(page, "sizes", "By flow size");
    figures(page, &charts);
    let more = match values.len().saturating_sub(MAPS) {
        0 => String::new(),
        n => format!(" {n} further values are in sweep.parquet alone."),
    };
    note(
        page,
        &format!(
            "Completed flows in bins of size, each drawn amid its edges: means over seeds, with \
             their intervals.{more}"
        ),
    );
    end(page);
}

/// A percentile of the slowdown of each bin, with where it is drawn.
fn by_size(point: &Point, percentile: &str) -> Vec<(f64, Estimate)> {
    let Some(bins) = point.statistics.as_ref().and_then(|tree| tree.branch(&["slowdown_by_size"]))
    else {
        return Vec::new();
    };
    let of = |(_, bin): (&str, &crate::model::tree::Tree<Estimate>)| {
        let edge = |key: &str| bin.leaf(&[key])?.mean;
        Some((middle(edge("above_bytes")?, edge("to_bytes")?), *bin.leaf(&[percentile])?))
    };
    let mut found: Vec<(f64, Estimate)> =
        bins.iter().filter_map(of).filter(|(_, of)| of.mean.is_some()).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

fn by_size_line(series: usize, bins: Vec<(f64, Estimate)>) -> Line {
    let points: Vec<(f64, f64)> = bins.iter().filter_map(|(x, of)| Some((*x, of.mean?))).collect();
    let whiskers =
        bins.iter().filter_map(|(x, of)| of.interval.map(|[low, high]| (*x, low, high))).collect();
    let marks = points.iter().map(|&(x, y)| (x, y, false)).collect();
    Line { series, points, marks, whiskers, ..Line::default() }
}

#[cfg(test)]
mod tests {
    use super::super::axis::Scale;
    use super::super::series::swatch;
    use super::*;
    use crate::model::{Ordered, SweepRun};

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
        page_of(sweep, &headlines_of(sweep), &Vec::new(), &Manifest::new("0", String::new()))
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
        let page = page_of(&of, &headlines_of(&of), &runs, &Manifest::new("0", String::new()));
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
