//! Rows of dots: the mean, its interval, each seed.
//!
//! Invariant: a mean is never drawn without the seeds that it is a mean of, where those are known.

use crate::render::document::Figure;
use crate::render::draw::axis::Axis;
use crate::render::draw::chart::{Chart, Line};
use crate::render::draw::number::extent;
use crate::render::draw::unit::Unit;
use crate::render::markup::escape;

/// Values that span more than this are drawn on a logarithmic axis.
pub(crate) const WIDE: f64 = 20.0;

/// One row of dots, in the unit of its axis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strip {
    pub series: usize,
    pub name: String,
    pub mean: Option<f64>,
    pub interval: Option<[f64; 2]>,
    pub seeds: Vec<(u64, f64)>,
    pub published: Option<f64>,
}

/// A figure of rows; `None` if no row has a value.
pub(crate) fn strips(caption: &str, unit: Unit, title: &str, strips: &[Strip]) -> Option<Figure> {
    let rows: Vec<&Strip> = strips.iter().filter(|strip| strip.mean.is_some()).collect();
    let of = |strip: &&Strip| {
        let seeds = strip.seeds.iter().map(|(_, value)| *value);
        let own = strip.mean.into_iter().chain(strip.published);
        own.chain(strip.interval.into_iter().flatten()).chain(seeds).collect::<Vec<_>>()
    };
    let values: Vec<f64> = rows.iter().flat_map(of).collect();
    let (least, most) = extent(values.iter().copied())?;
    // Zero belongs to the picture unless that would press all rows together at the far end.
    let from = if least > most / 2.0 { least } else { least.min(0.0) };
    let x = match Axis::log(values, unit, title) {
        Some(log) if least > 0.0 && most > least * WIDE && unit != Unit::Percent => log,
        _ => Axis { pad: 0.03, ..Axis::linear(from, most, unit, title) },
    };
    let names: Vec<String> = rows.iter().map(|strip| escape(&strip.name)).collect();
    let mut lines = Vec::new();
    for (at, (strip, name)) in rows.iter().zip(&names).enumerate() {
        let row = at as f64;
        let points = strip.mean.map(|mean| (mean, row)).into_iter().collect();
        lines.push(Line {
            whiskers: strip.interval.iter().map(|[low, high]| (row, *low, *high)).collect(),
            dots: strip.seeds.iter().map(|&(seed, value)| (seed, value, row)).collect(),
            ..Line::marked(strip.series, points)
        });
        let theirs = strip.published.map(|value| vec![(value, row)]);
        lines.extend(theirs.map(|points| Line::published(strip.series, points, name)));
    }
    let chart = Chart::new(x, Axis::names(&names, ""), lines, format!("{caption}: {title}"));
    Some(Figure::of(caption, "", chart))
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
        let rows = [of("a", 5000.0), published, none];
        let svg = strips("FCT", Unit::Time, "p99", &rows).unwrap().svg();
        assert_eq!(svg.matches("class=\"seeds\"").count(), 2);
        assert_eq!(
            (svg.matches("class=\"whisker\"").count(), svg.matches("mark hollow").count()),
            (2, 1)
        );
        assert!(svg.contains("published 12.4\u{202f}ms") && svg.contains("b &lt;c&gt;, published"));
        assert!(!svg.contains("nothing"));
        assert!(strips("FCT", Unit::Time, "p99", &[]).is_none());
    }

    #[test]
    fn zero_is_on_the_axis_unless_the_rows_are_far_from_it() {
        let of = |values: [f64; 2]| {
            let strips: Vec<Strip> =
                values.iter().map(|v| Strip { mean: Some(*v), ..Strip::default() }).collect();
            super::strips("", Unit::Count, "", &strips).unwrap().svg()
        };
        assert!(of([0.0, 44.0]).contains("data-x=\"linear -"), "room for the mark at zero");
        assert!(of([1.0, 900.0]).contains("data-x=\"log "));
        assert!(!of([90.0, 100.0]).contains(">0</text>"));
    }
}
