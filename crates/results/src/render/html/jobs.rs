//! Jobs of ranks: bus bandwidth over the size of a collective, and the ranks over time.
//!
//! The first rounds of a job are drawn, of the first seed. Computations are those of
//! `ranks.parquet` before a round and of `computations.parquet` within it; messages are those of
//! `flows.parquet`.
//!
//! Invariant: memory is that of the rounds drawn, not of the messages.

use super::Variant;
use super::axis::Axis;
use super::chart::{Chart, Line, Read};
use super::gantt::{Bar, Gantt, STRETCHES};
use super::page::{Drawing, Figure, end, escape, figures, note, section};
use super::series::{COLOURS, SHAPES, swatch};
use super::unit::Unit;
use crate::model::summary::Summary;
use crate::model::{COMPUTATIONS, Estimate, FLOWS, RANKS, Result, Rows};
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
pub(crate) fn jobs(page: &mut String, variants: &[Variant]) -> Result<()> {
    let mut summaries = Vec::new();
    for variant in variants {
        summaries.push(variant.runs.first().map_or(Ok(None), |run| Summary::read(run).map(Some))?);
    }
    let is_job =
        |of: &Option<Summary>| of.as_ref().is_some_and(|of| of.collectives.iter().next().is_some());
    if !summaries.iter().any(is_job) {
        return Ok(());
    }
    section(page, "jobs", "Ranks and collectives");
    let sizes = bandwidth_by_size(variants, &summaries);
    figures(page, &sizes.iter().map(Figure::from).collect::<Vec<_>>());
    let (drawn, left, shared) = over_time(variants, &summaries)?;
    figures(page, &drawn);
    if !drawn.is_empty() {
        note(page, &words(variants, left, shared));
    }
    end(page);
    Ok(())
}

/// The meaning of the drawings of ranks.
fn words(variants: &[Variant], left: usize, shared: bool) -> String {
    let mut words = format!(
        "A row a rank, over the first {ROUNDS} rounds: above, grey, when it computes; below, \
         coloured, when a message from or to it is under way, with a gap where it sends the next \
         one. Bars are exact to one of {STRETCHES} parts of the time."
    );
    if shared {
        words += " A row of several ranks shows what any of them does.";
    }
    if variants.iter().any(|variant| variant.runs.len() > 1) {
        words += " Of the first seed alone.";
    }
    if left > 0 {
        words += &format!(" {left} further drawings are on the pages of single runs.");
    }
    words
}

/// The ranks of each variant's jobs: drawings, how many more there would be, and whether ranks
/// share rows.
fn over_time(
    variants: &[Variant],
    summaries: &[Option<Summary>],
) -> Result<(Vec<Figure>, usize, bool)> {
    let (mut drawn, mut left, mut shared) = (Vec::new(), 0, false);
    for (series, (variant, summary)) in variants.iter().zip(summaries).enumerate() {
        let (Some(run), Some(summary)) = (variant.runs.first(), summary) else { continue };
        for (class, job) in summary.collectives.iter() {
            if drawn.len() == DRAWINGS {
                left += 1;
                continue;
            }
            let Some(gantt) = read(run, class, job.ranks)? else { continue };
            shared |= gantt.of_row() > 1;
            let caption = format!("{}: ranks over time", escape(class));
            let name = match variants.len() {
                1 => String::new(),
                _ => swatch(series) + &escape(&variant.result.variant),
            };
            let svg = gantt.svg(series, &caption);
            drawn.push(Figure { caption, below: name, svg, otherwise: None });
        }
    }
    Ok((drawn, left, shared))
}

/// The ranks of a run's job; `None` if it has no record of them.
fn read(run: &Path, class: &str, ranks: u32) -> Result<Option<Gantt>> {
    let path = run.join(RANKS);
    if !path.is_file() {
        return Ok(None);
    }
    let (mut hosts, mut parts) = (BTreeMap::new(), Vec::new());
    let columns = ["class", "round", "rank", "host", "began_us", "ready_us", "ended_us"];
    Rows::open(&path)?.each(columns, |columns, count| {
        for row in 0..count {
            let [round, rank, host] = [1, 2, 3].map(|at| columns[at].whole(row).unwrap_or(0));
            if columns[0].text(row) == Some(class) && round < ROUNDS {
                hosts.insert(host, rank as u32);
                let times = [4, 5, 6].map(|at| columns[at].float(row).unwrap_or(0.0));
                parts.push((rank as u32, times));
            }
        }
        Ok(())
    })?;
    let begin = parts.iter().map(|(_, [began, ..])| *began).min_by(f64::total_cmp);
    let end = parts.iter().map(|(_, [.., ended])| *ended).max_by(f64::total_cmp);
    let (Some(begin), Some(end)) = (begin, end) else { return Ok(None) };
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

/// The computations within the rounds.
fn computations(run: &Path, class: &str, gantt: &mut Gantt) -> Result<()> {
    let path = run.join(COMPUTATIONS);
    if !path.is_file() {
        return Ok(());
    }
    let columns = ["class", "round", "rank", "begin_us", "end_us"];
    Rows::open(&path)?.each(columns, |columns, count| {
        for row in 0..count {
            let [round, rank] = [1, 2].map(|at| columns[at].whole(row).unwrap_or(0));
            if columns[0].text(row) == Some(class) && round < ROUNDS {
                let [from, to] = [3, 4].map(|at| columns[at].float(row).unwrap_or(0.0));
                gantt.mark(rank as u32, Bar::Computes, from, to);
            }
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
    Rows::open(&path)?.each(["class", "src", "dst", "start_us", "fct_us"], |columns, count| {
        for row in 0..count {
            let Some(start) = columns[3].float(row) else { continue };
            if columns[0].text(row) != Some(class) {
                continue;
            }
            let end = columns[4].float(row).map_or(f64::INFINITY, |fct| start + fct);
            let rank = |column: usize| hosts.get(&columns[column].whole(row)?).copied();
            let (from, to) = (rank(1), rank(2));
            for rank in [from, to].into_iter().flatten() {
                gantt.mark(rank, Bar::Sends, start, end);
            }
            if let Some(rank) = from {
                gantt.mark(rank, Bar::Begins, start, start);
            }
        }
        Ok(())
    })
}

/// A line of the chart by size: its name, and by size the bandwidth.
struct Series {
    job: String,
    variant: String,
    points: BTreeMap<u64, (f64, Estimate)>,
}

/// The chart of bus bandwidth by size; `None` if no job has two sizes.
pub(crate) fn bandwidth_by_size(
    variants: &[Variant],
    summaries: &[Option<Summary>],
) -> Option<Drawing> {
    let all = series(variants, summaries);
    if all.iter().all(|line| line.points.len() < 2) {
        return None;
    }
    let points = || all.iter().flat_map(|line| line.points.iter());
    let sizes: Vec<f64> = points().map(|(bytes, _)| *bytes as f64).collect();
    let highest = |(_, (mean, of)): (&u64, &(f64, Estimate))| of.interval.map_or(*mean, |it| it[1]);
    let most = points().map(highest).max_by(f64::total_cmp)?;
    let name = |line: &Series| match all.iter().filter(|it| it.job == line.job).count() {
        1 => escape(&line.job),
        _ => escape(&format!("{}, as {}", line.job, line.variant)),
    };
    let lines = all.iter().enumerate().map(|(at, line)| Line {
        series: NO_VARIANT + at,
        name: Some(name(line)),
        points: line.points.iter().map(|(x, (y, _))| (*x as f64, *y)).collect(),
        marks: line.points.iter().map(|(x, (y, _))| (*x as f64, *y, false)).collect(),
        whiskers: line
            .points
            .iter()
            .filter_map(|(x, (_, of))| of.interval.map(|[low, high]| (*x as f64, low, high)))
            .collect(),
        ..Line::default()
    });
    let names = all.iter().enumerate().map(|(at, line)| swatch(at) + &name(line));
    let caption = "Bus bandwidth by size".to_string();
    let chart = Chart {
        x: Axis::points(&sizes, Unit::Bytes, "a rank’s whole buffer")?,
        y: Axis::linear(0.0, most * 1.04, Unit::Ratio, "bus bandwidth, GB/s"),
        lines: lines.collect(),
        spans: Vec::new(),
        read: Read::AtX,
        label: caption.clone(),
    };
    let below = names.collect::<Vec<_>>().join(" ");
    Some(Drawing { name: "busbw-by-size".into(), caption, below, chart })
}

/// Variants whose jobs differ in size alone are a line. Where several have one size, the next one
/// is of the next line, so that variants in the order of their sizes are lines.
fn series(variants: &[Variant], summaries: &[Option<Summary>]) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (variant, summary) in variants.iter().zip(summaries) {
        for (class, job) in summary.iter().flat_map(|summary| summary.collectives.iter()) {
            let path = ["collectives", class, "busbw_gbytes"];
            let found = variant.result.statistics.leaf(&path).copied();
            let Some((mean, estimate)) = found.and_then(|of| Some((of.mean?, of))) else {
                continue;
            };
            let name = format!("{class}: {} {}, {} ranks", job.operation, job.algorithm, job.ranks);
            let has_room =
                |line: &&mut Series| line.job == name && !line.points.contains_key(&job.bytes);
            match all.iter_mut().find(has_room) {
                Some(line) => drop(line.points.insert(job.bytes, (mean, estimate))),
                None => all.push(Series {
                    job: name,
                    variant: variant.result.variant.clone(),
                    points: BTreeMap::from([(job.bytes, (mean, estimate))]),
                }),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests;
