//! The numbers that charts of variants and of grids are of, and rows of dots for them: the mean,
//! its interval, each seed.
//!
//! Invariant: a mean is never drawn without the seeds that it is a mean of, where those are known.

use super::axis::Axis;
use super::chart::{Chart, Line, Read};
use super::page::{Figure, escape};
use super::unit::Unit;
use crate::model::{Estimate, Tree};
use crate::statistics::shows::{Column, Form, is_usual};

/// Values that span more than this are drawn on a logarithmic axis.
pub(crate) const WIDE: f64 = 20.0;

/// A number of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Headline {
    /// Its name.
    pub name: String,
    /// Where it is in `summary.json`.
    pub path: Vec<String>,
    /// The unit of the number.
    pub unit: Unit,
    /// Whether less of it is better.
    pub less_is_better: bool,
}

/// The usual numbers, in the order of charts, and whether less of each is better.
const HEADLINES: [(&str, &[&str], Unit, bool); 8] = [
    ("FCT p99 of mice", &["fct_us", "mice", "p99"], Unit::Time, true),
    ("Mean FCT", &["fct_us", "all", "mean"], Unit::Time, true),
    ("QCT p99", &["qct_us", "p99"], Unit::Time, true),
    ("Mean QCT", &["qct_us", "mean"], Unit::Time, true),
    ("Queries completed", &["qct_us", "completed_fraction"], Unit::Percent, false),
    ("Goodput", &["flows", "goodput_gbps"], Unit::Rate, false),
    ("Drops", &["packets", "dropped"], Unit::Count, true),
    ("Timeouts", &["timeouts"], Unit::Count, true),
];

/// The numbers that charts are of: those that tables show, or the usual ones.
pub(crate) fn headlines(
    is_given: bool,
    columns: &[Column],
    trees: &[&Tree<Estimate>],
) -> Vec<Headline> {
    if !is_given && is_usual(trees) {
        let of = |(name, path, unit, less_is_better): &(&str, &[&str], Unit, bool)| {
            let path = path.iter().map(|part| part.to_string()).collect();
            Headline { name: name.to_string(), path, unit: *unit, less_is_better: *less_is_better }
        };
        return HEADLINES.iter().map(of).collect();
    }
    let of = |column: &Column| {
        let unit = match column.form {
            Form::Time => Unit::Time,
            Form::Ratio => Unit::Ratio,
            Form::Percent => Unit::Percent,
            Form::Rate => Unit::Rate,
            Form::Count => Unit::Count,
        };
        let less_is_better = column.less_is_better.unwrap_or(true);
        Headline { name: column.caption.clone(), path: column.path.clone(), unit, less_is_better }
    };
    columns.iter().map(of).collect()
}

impl Headline {
    /// The path as the statistics' functions take it.
    pub fn at(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// Makes the axis' unit of the summary's.
    pub fn scale(&self) -> f64 {
        if self.unit == Unit::Percent { 100.0 } else { 1.0 }
    }
}

/// One row of dots, in the unit of its axis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strip {
    /// Fixes its colour.
    pub series: usize,
    /// Its name.
    pub name: String,
    /// The mean over seeds.
    pub mean: Option<f64>,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// Each seed with its value.
    pub seeds: Vec<(u64, f64)>,
    /// The published value.
    pub published: Option<f64>,
}

/// A figure of rows; `None` if no row has a value.
pub(crate) fn strips(
    caption: &str,
    below: &str,
    unit: Unit,
    title: &str,
    strips: &[Strip],
) -> Option<Figure> {
    let rows: Vec<&Strip> = strips.iter().filter(|strip| strip.mean.is_some()).collect();
    let ends = |strip: &&Strip| strip.interval.into_iter().flatten().collect::<Vec<_>>();
    let values: Vec<f64> = rows
        .iter()
        .flat_map(|strip| {
            let own = strip.mean.into_iter().chain(strip.published).chain(ends(strip));
            own.chain(strip.seeds.iter().map(|(_, value)| *value)).collect::<Vec<_>>()
        })
        .collect();
    let (least, most) = (
        values.iter().copied().min_by(f64::total_cmp)?,
        values.iter().copied().max_by(f64::total_cmp)?,
    );
    let x = match Axis::log(values.into_iter(), unit, title) {
        Some(log) if least > 0.0 && most > least * WIDE && unit != Unit::Percent => log,
        // Zero belongs to the picture unless that would press all rows together at the far end.
        _ => Axis {
            pad: 0.03,
            ..Axis::linear(
                if least > most / 2.0 { least } else { least.min(0.0) },
                most,
                unit,
                title,
            )
        },
    };
    let names: Vec<String> = rows.iter().map(|strip| escape(&strip.name)).collect();
    let mut lines = Vec::new();
    for (row, strip) in rows.iter().enumerate() {
        let row = row as f64;
        let Some(mean) = strip.mean else { continue };
        lines.push(Line {
            series: strip.series,
            points: vec![(mean, row)],
            marks: vec![(mean, row, false)],
            whiskers: strip.interval.iter().map(|[low, high]| (row, *low, *high)).collect(),
            dots: strip.seeds.iter().map(|&(seed, value)| (seed, value, row)).collect(),
            ..Line::default()
        });
        if let Some(theirs) = strip.published {
            let published = Some(format!("{}, published", names[row as usize]));
            let (points, marks) = (vec![(theirs, row)], vec![(theirs, row, true)]);
            lines.push(Line { series: strip.series, points, marks, published, ..Line::default() });
        }
    }
    let y = Axis::names(&names, "");
    let label = format!("{caption}: {title}");
    let chart = Chart { x, y, lines, spans: Vec::new(), read: Read::AtY, label };
    Some(Figure::of(caption, below, &chart))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_mean_its_seeds_and_what_is_published() {
        let of = |name: &str, mean: f64| Strip {
            name: name.into(),
            mean: Some(mean),
            interval: Some([mean * 0.9, mean * 1.1]),
            seeds: vec![(1, mean * 0.9), (2, mean * 1.1)],
            ..Strip::default()
        };
        let published = Strip { published: Some(12_400.0), ..of("b <c>", 6000.0) };
        let none = Strip { name: "nothing".into(), ..Strip::default() };
        let figure =
            strips("FCT", "", Unit::Time, "p99", &[of("a", 5000.0), published, none]).unwrap();
        assert_eq!(figure.svg.matches("class=\"seeds\"").count(), 2);
        assert_eq!(
            (
                figure.svg.matches("class=\"whisker\"").count(),
                figure.svg.matches("mark hollow").count()
            ),
            (2, 1)
        );
        assert!(
            figure.svg.contains("published 12.4\u{202f}ms")
                && figure.svg.contains("b &lt;c&gt;, published")
        );
        assert!(!figure.svg.contains("nothing"));
        assert!(strips("FCT", "", Unit::Time, "p99", &[]).is_none());
    }

    #[test]
    fn zero_is_on_the_axis_unless_the_rows_are_far_from_it() {
        let of = |values: [f64; 2]| {
            let strips: Vec<Strip> =
                values.iter().map(|v| Strip { mean: Some(*v), ..Strip::default() }).collect();
            super::strips("", "", Unit::Count, "", &strips).unwrap().svg
        };
        assert!(of([0.0, 44.0]).contains("data-x=\"linear -"), "room for the mark at zero");
        assert!(of([1.0, 900.0]).contains("data-x=\"log "));
        assert!(!of([90.0, 100.0]).contains(">0</text>"));
    }
}
