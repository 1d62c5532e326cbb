//! Charts as inline SVG: lines, bands and marks of several series over two axes.
//!
//! The numbers stay in the drawing alone: the page's script reads them back from the lines and the axes' ends.
//!
//! Invariant: the bytes depend on the points alone.

use std::fmt::Write;

use super::axis::Axis;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 290.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 48.0;
/// How many colours the style sheet has; beyond them lines are dashed.
const COLOURS: usize = 8;

/// One series' part of a chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// Fixes its colour, dashes and marks.
    pub series: usize,
    /// In the axes' units, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Marks to set; hollow where true.
    pub marks: Vec<(f64, f64, bool)>,
    /// Outline of a band around it.
    pub band: Vec<(f64, f64)>,
    /// Intervals: place, low end, high end.
    pub whiskers: Vec<(f64, f64, f64)>,
    /// Whose it is if it is not ours: then it is dashed, its marks are hollow, and the read-out says so. Escaped.
    pub published: Option<String>,
}

/// Which axis the reader holds when pointing at a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Each series' height at this place.
    AtX,
    /// Each series' place at this height.
    AtY,
}

/// A chart.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// The series.
    pub lines: Vec<Line>,
    /// How it is read.
    pub read: Read,
    /// For those who do not see it; must be escaped.
    pub label: String,
}

impl Chart {
    /// The drawing.
    pub fn svg(&self) -> String {
        let read = if self.read == Read::AtX { "x" } else { "y" };
        let mut svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" data-read=\"{read}\" \
             data-x=\"{}\" data-y=\"{}\" data-box=\"{LEFT} {TOP} {} {}\">",
            self.label,
            self.x.data(),
            self.y.data(),
            WIDTH - RIGHT,
            HEIGHT - BOTTOM
        );
        self.draw_axes(&mut svg);
        for line in &self.lines {
            self.draw_line(&mut svg, line);
        }
        svg.push_str("</svg>");
        svg
    }

    fn draw_axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, name) in &self.y.ticks {
            let at = self.at_y(*value);
            let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>");
            let _ = write!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>", LEFT - 7.0, at + 4.0);
        }
        for (value, name) in &self.x.ticks {
            let at = self.at_x(*value);
            let anchor = if at > right - 16.0 { "end" } else { "middle" };
            let x = if at > right - 16.0 { right + RIGHT - 2.0 } else { at };
            let _ = write!(svg, "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/>");
            let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{name}</text>", bottom + 18.0);
        }
        let _ = write!(svg, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>");
        let _ = write!(svg, "<text class=\"title\" x=\"4\" y=\"13\">{}</text>", self.y.title);
        let _ = write!(
            svg,
            "<text class=\"title\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            HEIGHT - 8.0,
            self.x.title
        );
    }

    fn draw_line(&self, svg: &mut String, line: &Line) {
        if line.points.is_empty() && line.marks.is_empty() {
            return;
        }
        let name = line.published.as_ref().map_or(String::new(), |name| format!(" data-name=\"{name}\""));
        let _ = write!(svg, "<g data-v=\"{}\" class=\"{}\"{name}>", line.series, colour(line.series));
        if line.band.len() > 2 {
            let _ = write!(svg, "<path class=\"band\" d=\"{}Z\"/>", self.path(&line.band));
        }
        let dashes = if name.is_empty() { dashes(line.series) } else { " paper" };
        let _ = write!(svg, "<path class=\"line{dashes}\" d=\"{}\"/>", self.path(&line.points));
        for &(x, low, high) in &line.whiskers {
            let (x, low, high) = (self.at_x(x), self.at_y(low), self.at_y(high));
            let (left, right) = (x - 3.0, x + 3.0);
            let _ = write!(
                svg,
                "<path class=\"whisker\" d=\"M{left:.1} {low:.1}H{right:.1}M{x:.1} {low:.1}V{high:.1}M{left:.1} {high:.1}H{right:.1}\"/>"
            );
        }
        for &(x, y, hollow) in &line.marks {
            let class = if hollow { "mark hollow" } else { "mark" };
            let _ = write!(svg, "<path class=\"{class}\" d=\"{}\"/>", shape(line.series, self.at_x(x), self.at_y(y)));
        }
        svg.push_str("</g>");
    }

    /// Points that fall on the one before are left out.
    fn path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        let mut last = (-1, -1);
        for &(x, y) in points {
            let (x, y) = (self.at_x(x), self.at_y(y));
            let here = ((x * 10.0) as i64, (y * 10.0) as i64);
            if here != last {
                let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
            }
            last = here;
        }
        path
    }

    fn at_x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn at_y(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.place(value)) * (HEIGHT - TOP - BOTTOM)
    }
}

/// The class of a series' colour.
pub(crate) fn colour(series: usize) -> String {
    format!("s{}", series % COLOURS)
}

/// The class of its dashes, behind a space.
fn dashes(series: usize) -> &'static str {
    ["", " d1", " d2", " d3"][series / COLOURS % 4]
}

/// A mark's outline: circle, square, triangle, diamond in turn, so that colour is not all that tells series apart.
fn shape(series: usize, x: f64, y: f64) -> String {
    match series % 4 {
        0 => format!("M{:.1} {y:.1}a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0Z", x - 2.5),
        1 => format!("M{:.1} {:.1}h4.4v4.4h-4.4Z", x - 2.2, y - 2.2),
        2 => format!("M{x:.1} {:.1}l2.9 5h-5.8Z", y - 3.2),
        _ => format!("M{x:.1} {:.1}l3.1 3.1l-3.1 3.1l-3.1 -3.1Z", y - 3.1),
    }
}

/// A series' line and mark, for legends and heads of tables.
pub(crate) fn swatch(series: usize) -> String {
    format!(
        "<svg class=\"swatch {}\" viewBox=\"0 0 24 10\" aria-hidden=\"true\"><path class=\"line{}\" d=\"M0 5H24\"/>\
         <path class=\"mark\" d=\"{}\"/></svg>",
        colour(series),
        dashes(series),
        shape(series, 12.0, 5.0)
    )
}

/// One row of a [`forest`]: its name, and for each series its ratio, the ratio's interval, and whether it is doubtful.
pub(crate) struct Row {
    /// Escaped.
    pub name: String,
    /// Series, ratio, interval, doubtful.
    pub dots: Vec<(usize, f64, Option<[f64; 2]>, bool)>,
}

/// Ratios around one, a row a figure, a dot a series, with intervals: beyond `axis` they end in its edge.
pub(crate) fn forest(rows: &[Row], axis: &Axis, label: &str) -> String {
    let (left, width, top) = (126.0, WIDTH, 6.0);
    let at = |ratio: f64| left + axis.place(ratio) * (width - left - RIGHT);
    let heights: Vec<f64> = rows.iter().map(|row| 12.0 + 9.0 * row.dots.len().max(1) as f64).collect();
    let bottom = top + heights.iter().sum::<f64>();
    let mut svg =
        format!("<svg class=\"forest\" viewBox=\"0 0 {width} {}\" role=\"img\" aria-label=\"{label}\">", bottom + 42.0);
    for (value, name) in &axis.ticks {
        let class = if *value == 1.0 { "axis" } else { "grid" };
        let x = at(*value);
        let _ = write!(svg, "<path class=\"{class}\" d=\"M{x:.1} {top}V{bottom}\"/>");
        let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>", bottom + 16.0);
    }
    let _ = write!(
        svg,
        "<text class=\"title\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        width - RIGHT,
        bottom + 35.0,
        axis.title
    );
    let mut y = top;
    for (row, height) in rows.iter().zip(&heights) {
        let _ = write!(svg, "<path class=\"grid\" d=\"M0 {y:.1}H{}\"/>", width - RIGHT);
        let _ = write!(svg, "<text class=\"row\" x=\"0\" y=\"{:.1}\">{}</text>", y + height / 2.0 + 4.0, row.name);
        for (at_dot, &(series, ratio, interval, doubtful)) in row.dots.iter().enumerate() {
            let (x, line) = (at(ratio), y + 10.5 + 9.0 * at_dot as f64);
            let class = if doubtful { " doubtful" } else { "" };
            let _ = write!(svg, "<g data-v=\"{series}\" class=\"{}{class}\">", colour(series));
            if let Some([low, high]) = interval {
                let _ = write!(svg, "<path class=\"line\" d=\"M{:.1} {line:.1}H{:.1}\"/>", at(low), at(high));
            }
            let half = axis.to * 1.0001;
            if ratio <= 0.0 || libm::fabs(libm::log10(ratio)) > half {
                let (x, tip) = if ratio > 1.0 { (x - 5.0, 5.0) } else { (x + 5.0, -5.0) };
                let _ = write!(svg, "<path class=\"line\" d=\"M{x:.1} {:.1}l{tip} 4l{} 4\"/></g>", line - 4.0, -tip);
                continue;
            }
            let hollow = if doubtful { "mark hollow" } else { "mark" };
            let _ = write!(svg, "<path class=\"{hollow}\" d=\"{}\"/></g>", shape(series, x, line));
        }
        y += height;
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::super::axis::Unit;
    use super::*;

    #[test]
    fn a_chart_draws_what_it_is_given() {
        let points = vec![(1.0, 1.0), (10.0, 0.1), (10.0, 0.1)];
        let line = Line { series: 9, points, marks: vec![(1.0, 1.0, true)], ..Line::default() };
        let x = Axis::log([1.0, 10.0].into_iter(), Unit::Time, "FCT").unwrap();
        let chart = Chart { x, y: Axis::tail(0.1, ""), lines: vec![line], read: Read::AtY, label: "x".into() };
        let svg = chart.svg();
        assert!(svg.contains("class=\"line d1\"") && svg.contains("mark hollow") && svg.contains("data-v=\"9\""));
        assert_eq!(svg.matches('L').count(), 1, "a point on the one before is drawn once");
        assert_eq!(svg, chart.svg());
    }
}
