//! Jobs of ranks: bus bandwidth over the size of a collective, and the ranks over time.
//!
//! The first rounds of a job are drawn, of the first seed. Computations are those of
//! `ranks.parquet` before a round and of `computations.parquet` within it; messages are those of
//! `flows.parquet`.
//!
//! Invariant: memory is that of the rounds drawn, not of the messages.

use super::{Variant, has_seeds};
use crate::model::summary::Summary;
use crate::model::{COMPUTATIONS, Estimate, FLOWS, RANKS, Result, Rows};
use crate::render::document::{Block, Drawing, Figure, legend, note, section};
use crate::render::draw::axis::Axis;
use crate::render::draw::chart::{Chart, Line};
use crate::render::draw::gantt::{Bar, Gantt, STRETCHES};
use crate::render::draw::number::extent;
use crate::render::draw::series::{COLOURS, SHAPES};
use crate::render::draw::unit::Unit;
use crate::render::markup::escape;
use crate::render::words::words;
use std::collections::BTreeMap;
use std::path::Path;

/// Rounds of a job that are drawn.
const ROUNDS: u64 = 4;
/// Drawings of ranks on a page.
const DRAWINGS: usize = 4;
/// Lines that are of no single variant have numbers from here on, and the looks of 0 and so on:
/// colours, outlines and four dashes come again.
const NO_VARIANT: usize = COLOURS * SHAPES * 4 * 1_000;

/// The section; nothing where no variant has a job.
pub(crate) fn jobs(variants: &[Variant]) -> Result<Option<Block>> {
    let mut summaries = Vec::new();
    for variant in variants {
        summaries.push(variant.runs.first().map_or(Ok(None), |run| Summary::read(run).map(Some))?);
    }
    if summaries.iter().flatten().all(|of| of.collectives.iter().next().is_none()) {
        return Ok(None);
    }
    let sizes = bandwidth_by_size(variants, &summaries);
    let mut ranks = Ranks::default();
    ranks.read(variants, &summaries)?;
    let words = (!ranks.figures.is_empty()).then(|| note(ranks.words(variants)));
    let figures = Block::Figures(sizes.into_iter().chain(ranks.figures).collect());
    let blocks = std::iter::once(figures).chain(words).collect();
    Ok(Some(section("jobs", "Ranks and collectives", blocks)))
}

/// The ranks of each variant's jobs: drawings, how many more there would be, and whether ranks
/// share rows.
#[derive(Default)]
struct Ranks {
    figures: Vec<Figure>,
    left: usize,
    is_shared: bool,
}

impl Ranks {
    fn read(&mut self, variants: &[Variant], summaries: &[Option<Summary>]) -> Result<()> {
        for (series, (variant, summary)) in variants.iter().zip(summaries).enumerate() {
            let (Some(run), Some(summary)) = (variant.runs.first(), summary) else { continue };
            for (class, job) in summary.collectives.iter() {
                if self.figures.len() == DRAWINGS {
                    self.left += 1;
                    continue;
                }
                let Some(gantt) = read(run, class, job.ranks)? else { continue };
                self.is_shared |= gantt.of_row() > 1;
                let caption = format!("{}: ranks over time", escape(class));
                let below = if variants.len() > 1 { variant.marked(series) } else { String::new() };
                let drawing = Drawing::Svg(gantt.svg(series, &caption));
                self.figures.push(Figure { name: String::new(), caption, below, drawing });
            }
        }
        Ok(())
    }

    fn words(&self, variants: &[Variant]) -> String {
        let (left, rounds) = (self.left.to_string(), ROUNDS.to_string());
        let mut text = words("ranks", &[&rounds, &STRETCHES.to_string()]);
        let more = [
            (self.is_shared, "ranks-shared"),
            (has_seeds(variants), "ranks-of-one-seed"),
            (self.left > 0, "ranks-left"),
        ];
        for (_, name) in more.into_iter().filter(|(is_so, _)| *is_so) {
            text += &words(name, &[&left]);
        }
        text
    }
}

/// The ranks of a run's job; `None` if it has no record of them.
fn read(run: &Path, class: &str, ranks: u32) -> Result<Option<Gantt>> {
    let path = run.join(RANKS);
    if !path.is_file() {
        return Ok(None);
    }
    let (mut hosts, mut parts) = (BTreeMap::new(), Vec::new());
    let columns = ["class", "round", "rank", "host", "began_us", "ready_us", "ended_us"];
    Rows::open(&path)?.each(columns, |row| {
        let [round, rank, host] = [1, 2, 3].map(|at| row.whole(at).unwrap_or(0));
        if row.text(0) == Some(class) && round < ROUNDS {
            hosts.insert(host, rank as u32);
            parts.push((rank as u32, [4, 5, 6].map(|at| row.float(at).unwrap_or(0.0))));
        }
        Ok(())
    })?;
    let begin = extent(parts.iter().map(|(_, [began, ..])| *began));
    let end = extent(parts.iter().map(|(_, [.., ended])| *ended));
    let (Some((begin, _)), Some((_, end))) = (begin, end) else { return Ok(None) };
    let mut gantt = Gantt::new(ranks, begin, end);
    for (rank, [began, ready, _]) in parts {
        if ready > began {
            gantt.mark(rank, Bar::Computes, began, ready);
        }
    }
    computations(run, class, &mut gantt)?;
    messages(run, class, &hosts, &mut gantt)?;
    Ok(Some(gantt))
}

fn computations(run: &Path, class: &str, gantt: &mut Gantt) -> Result<()> {
    let path = run.join(COMPUTATIONS);
    if !path.is_file() {
        return Ok(());
    }
    let columns = ["class", "round", "rank", "begin_us", "end_us"];
    Rows::open(&path)?.each(columns, |row| {
        let [round, rank] = [1, 2].map(|at| row.whole(at).unwrap_or(0));
        if row.text(0) == Some(class) && round < ROUNDS {
            let [from, to] = [3, 4].map(|at| row.float(at).unwrap_or(0.0));
            gantt.mark(rank as u32, Bar::Computes, from, to);
        }
        Ok(())
    })
}

/// The messages, at both of their ends; one that is unfinished goes on to the end.
fn messages(run: &Path, class: &str, hosts: &BTreeMap<u64, u32>, gantt: &mut Gantt) -> Result<()> {
    let path = run.join(FLOWS);
    if !path.is_file() {
        return Ok(());
    }
    Rows::open(&path)?.each(["class", "src", "dst", "start_us", "fct_us"], |row| {
        let Some(start) = row.float(3).filter(|_| row.text(0) == Some(class)) else {
            return Ok(());
        };
        let end = row.float(4).map_or(f64::INFINITY, |fct| start + fct);
        let rank = |column: usize| hosts.get(&row.whole(column)?).copied();
        let (from, to) = (rank(1), rank(2));
        from.into_iter().chain(to).for_each(|rank| gantt.mark(rank, Bar::Sends, start, end));
        from.into_iter().for_each(|rank| gantt.mark(rank, Bar::Begins, start, start));
        Ok(())
    })
}

/// A line of the chart by size: its name, and by size the bandwidth.
struct Series {
    job: String,
    variant: String,
    points: BTreeMap<u64, Estimate>,
}

/// The chart of bus bandwidth by size; `None` if no job has two sizes.
fn bandwidth_by_size(variants: &[Variant], summaries: &[Option<Summary>]) -> Option<Figure> {
    let all = series(variants, summaries);
    if all.iter().all(|line| line.points.len() < 2) {
        return None;
    }
    let points = || all.iter().flat_map(|line| line.points.iter());
    let sizes: Vec<f64> = points().map(|(bytes, _)| *bytes as f64).collect();
    let highest = points().filter_map(|(_, of)| of.interval.map_or(of.mean, |it| Some(it[1])));
    let (_, most) = extent(highest)?;
    let name = |line: &Series| match all.iter().filter(|it| it.job == line.job).count() {
        1 => escape(&line.job),
        _ => escape(&format!("{}, as {}", line.job, line.variant)),
    };
    let line = |(at, line): (usize, &Series)| {
        let points: Vec<_> = line.points.iter().map(|(x, of)| (*x as f64, *of)).collect();
        Line { name: Some(name(line)), ..Line::estimates(NO_VARIANT + at, &points, 1.0) }
    };
    let names: Vec<String> = all.iter().map(name).collect();
    let x = Axis::points(&sizes, Unit::Bytes, "a rank’s whole buffer")?;
    let y = Axis::linear(0.0, most * 1.04, Unit::Ratio, "bus bandwidth, GB/s");
    let caption = "Bus bandwidth by size";
    let chart = Chart::new(x, y, all.iter().enumerate().map(line).collect(), caption);
    let below = legend(names.iter().map(String::as_str)).join(" ");
    Some(Figure::of(caption, below, chart).named("busbw-by-size"))
}

/// Variants whose jobs differ in size alone are a line. Where several have one size, the next one
/// is of the next line, so that variants in the order of their sizes are lines.
fn series(variants: &[Variant], summaries: &[Option<Summary>]) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (variant, summary) in variants.iter().zip(summaries) {
        for (class, job) in summary.iter().flat_map(|summary| summary.collectives.iter()) {
            let path = ["collectives", class, "busbw_gbytes"];
            let found = variant.result.statistics.leaf(&path).copied();
            let Some(estimate) = found.filter(|of| of.mean.is_some()) else { continue };
            let name = format!("{class}: {} {}, {} ranks", job.operation, job.algorithm, job.ranks);
            let has_room =
                |line: &&mut Series| line.job == name && !line.points.contains_key(&job.bytes);
            match all.iter_mut().find(has_room) {
                Some(line) => drop(line.points.insert(job.bytes, estimate)),
                None => all.push(Series {
                    job: name,
                    variant: variant.result.variant.clone(),
                    points: BTreeMap::from([(job.bytes, estimate)]),
                }),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests;
