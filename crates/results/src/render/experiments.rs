//! The table of a paper's experiment, for text and for pages: its numbers, or else its calls, or
//! else its queries.
//!
//! Invariant: a mean of queries never stands without the share of the queries that it is a mean of.

use crate::model::{Calls, Estimate, Experiment, LoadPoint, Scheme, clean};
use crate::render::claims::number_text;
use crate::render::draw::number;
use crate::render::format::{count, percent, time};
use crate::render::markup::escape;

/// A row: a class of calls where the experiment is of calls.
pub(crate) struct Row<'a> {
    pub scheme: &'a Scheme,
    pub point: &'a LoadPoint,
    class: &'a str,
    calls: Option<&'a Calls>,
}

/// A column, its heads in text (two lines) and on pages; an empty one is left out there.
struct Column<'a> {
    text: [String; 2],
    page: String,
    cell: Box<dyn Fn(&Row<'_>) -> Cell + 'a>,
}

enum Cell {
    Time(Option<f64>),
    Count(Option<f64>),
    Percent(Option<f64>),
    /// A number in a unit, and whether it is a bound.
    Number(Option<f64>, String, bool),
    /// An interval of numbers in a unit.
    Spread(Option<[f64; 2]>, String),
    Name(String),
    Runs(u32, u32),
}

/// The head of a column of intervals; points may have different numbers of runs.
const INTERVAL: &str = "95 % interval; below 6 runs, their range";

fn column<'a>(text: &str, page: &str, cell: impl Fn(&Row<'_>) -> Cell + 'a) -> Column<'a> {
    let (above, below) = text.split_once('|').unwrap_or_default();
    Column { text: [above.into(), below.into()], page: page.into(), cell: Box::new(cell) }
}

fn columns(of: &Experiment) -> Vec<Column<'_>> {
    let runs = column("|runs", "runs", |row| Cell::Runs(row.point.runs, row.point.planned));
    let own = match of {
        of if !of.numbers().is_empty() => of_numbers(of),
        of if of.has_calls() => of_calls(),
        of => of_queries(of),
    };
    std::iter::once(runs).chain(own).collect()
}

fn of_queries(of: &Experiment) -> Vec<Column<'_>> {
    let paper = |row: &Row<'_>| of.published_at(row.scheme, row.point);
    let us = |interval| Cell::Spread(interval, "us".into());
    vec![
        column("QCT|done", "completed", |row| Cell::Percent(row.point.completed_fraction.mean)),
        column("QCT|mean", "mean QCT", |row| Cell::Time(row.point.mean_us.mean)),
        column("|±", INTERVAL, move |row| us(row.point.mean_us.interval)),
        column("open at|horizon", "mean, open at horizon", |row| {
            Cell::Time(row.point.mean_restricted_us.mean)
        }),
        column("paper's|mean", "published mean", move |row| {
            Cell::Time(paper(row).map(|(mean, _)| mean))
        }),
        column("QCT|p99", "QCT p99", |row| Cell::Time(row.point.p99_us.mean)),
        column("paper's|p99", "published p99", move |row| {
            Cell::Time(paper(row).map(|(_, p99)| p99))
        }),
        column("|drops", "", |row| Cell::Count(row.point.dropped.mean)),
        column("defl-|ected", "", |row| Cell::Count(row.point.deflected.mean)),
        column("", "timeouts", |row| Cell::Count(row.point.timeouts.mean)),
    ]
}

fn of_calls<'a>() -> Vec<Column<'a>> {
    fn of(row: &Row<'_>, pick: fn(&Calls) -> Estimate) -> Estimate {
        row.calls.map(pick).unwrap_or_default()
    }
    let us = |interval| Cell::Spread(interval, "us".into());
    vec![
        column("goodput|Gb/s", "goodput, Gb/s", |row| {
            Cell::Number(row.point.goodput_gbps.mean, String::new(), false)
        }),
        column("|class", "class", |row| Cell::Name(row.class.into())),
        column("|calls", "calls", |row| Cell::Count(of(row, |calls| calls.count).mean)),
        column("|p50", "p50", |row| Cell::Time(of(row, |calls| calls.p50_us).mean)),
        column("|p99", "p99", |row| Cell::Time(of(row, |calls| calls.p99_us).mean)),
        column("|±", "", move |row| us(of(row, |calls| calls.p99_us).interval)),
        column("|p99.9", "p99.9", |row| Cell::Time(of(row, |calls| calls.p999_us).mean)),
        column("|drops", "drops", |row| Cell::Count(row.point.dropped.mean)),
    ]
}

/// Each number with its interval; text has that of the first alone.
fn of_numbers(of: &Experiment) -> Vec<Column<'_>> {
    let number = |(place, number): (usize, &crate::Number)| {
        let (name, unit) = (clean(&number.name), number.unit.as_str());
        // A rate's unit, or else the last word, is the second line.
        let (above, below) = match unit {
            "Gb/s" => (name.as_str(), "Gb/s"),
            _ => name.rsplit_once(' ').unwrap_or(("", &name)),
        };
        let page_unit = if unit == "Gb/s" { ", Gb/s" } else { "" };
        let page = format!("{}{page_unit}", escape(&number.name));
        let value = column(&format!("{above}|{below}"), &page, move |row| {
            let of = row.point.numbers.get(place).cloned().unwrap_or_default();
            Cell::Number(of.estimate.mean, of.unit, of.at_least)
        });
        let spread = column(if place == 0 { "|±" } else { "" }, INTERVAL, move |row| {
            let of = row.point.numbers.get(place).cloned().unwrap_or_default();
            Cell::Spread(of.estimate.interval, of.unit)
        });
        [value, spread]
    };
    of.numbers().iter().enumerate().flat_map(number).collect()
}

fn rows(of: &Experiment) -> Vec<Row<'_>> {
    let row = |(scheme, point)| Row { scheme, point, class: "", calls: None };
    if !of.numbers().is_empty() || !of.has_calls() {
        return of.rows().map(row).collect();
    }
    let calls = of.rows().flat_map(|(scheme, point): (_, &LoadPoint)| {
        let there = point.calls.iter().filter(|(_, calls)| calls.count.mean > Some(0.0));
        there.map(move |(class, calls)| Row { scheme, point, class, calls: Some(calls) })
    });
    calls.collect()
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Cell::Time(us) => time(*us),
            Cell::Count(n) => count(*n),
            Cell::Percent(share) => percent(*share),
            Cell::Number(of, unit, at_least) => {
                format!("{}{}", if *at_least { "\u{2265}" } else { "" }, number_text(*of, unit))
            }
            // Half of its width.
            Cell::Spread(ends, unit) => {
                number_text(ends.map(|[low, high]| (high - low) / 2.0), unit)
            }
            Cell::Name(name) => clean(name),
            Cell::Runs(runs, planned) => format!("{runs}/{planned}"),
        }
    }

    fn markup(&self) -> String {
        let of = |of: f64, unit: &str| match unit {
            "us" => number::time(Some(of)),
            _ => number::typeset(&number_text(Some(of), unit)),
        };
        match self {
            Cell::Time(us) => number::time(*us),
            Cell::Count(n) => number::count(*n),
            Cell::Percent(share) => number::percent(*share),
            Cell::Number(value, unit, at_least) => {
                let sign = if *at_least { "≥\u{202f}" } else { "" };
                format!("{sign}{}", value.map_or("–".into(), |value| of(value, unit)))
            }
            Cell::Spread(ends, unit) => number::ends(*ends, |end| of(end, unit)),
            Cell::Name(name) => escape(name),
            Cell::Runs(runs, planned) => format!("{runs} of {planned}"),
        }
    }
}

/// The table as text: the first cells of its two lines of heads and of rows, then its columns.
pub(crate) fn text_rows(
    of: &Experiment,
    heads: [Vec<String>; 2],
    first: impl Fn(&Row<'_>) -> Vec<String>,
) -> Vec<Vec<String>> {
    let is_there = |column: &Column<'_>| column.text.iter().any(|line| !line.is_empty());
    let columns: Vec<_> = columns(of).into_iter().filter(is_there).collect();
    let head = |(line, first): (usize, Vec<String>)| {
        first.into_iter().chain(columns.iter().map(|column| column.text[line].clone())).collect()
    };
    let row = |row: &Row<'_>| {
        first(row).into_iter().chain(columns.iter().map(|it| (it.cell)(row).text())).collect()
    };
    heads.into_iter().enumerate().map(head).chain(rows(of).iter().map(row)).collect()
}

/// The table as markup: its head and its rows behind their first cells.
pub(crate) fn page_rows(
    of: &Experiment,
    head: Vec<String>,
    first: impl Fn(&Row<'_>) -> Vec<String>,
) -> (Vec<String>, Vec<Vec<String>>) {
    let columns: Vec<_> = columns(of).into_iter().filter(|it| !it.page.is_empty()).collect();
    let row = |row: &Row<'_>| {
        first(row).into_iter().chain(columns.iter().map(|it| (it.cell)(row).markup())).collect()
    };
    let head = head.into_iter().chain(columns.iter().map(|column| column.page.clone()));
    (head.collect(), rows(of).iter().map(row).collect())
}
