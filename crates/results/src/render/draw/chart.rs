//! Charts as inline SVG: lines, steps, bands, marks and the dots of single seeds over two axes, or
//! a row a name.
//!
//! Each series carries its points as they were given (`data-p`), from which the page's script makes
//! read-outs and CSV; the drawing is whole without the script.
//!
//! Invariant: the bytes depend on the points alone. A value that was not measured is not drawn: a
//! line joins its own points, and a step ends where the next sample was taken.

use super::series::{colour, dashes, shape};
use std::fmt::Write;

use super::axis::{Axis, Scale};
use super::number::extent;
use super::svg::{Draw, attribute, t};
use super::unit::Unit;
use crate::model::Estimate;

pub(crate) const WIDTH: f64 = 480.0;
pub(crate) const HEIGHT: f64 = 290.0;
pub(crate) const LEFT: f64 = 62.0;
pub(crate) const RIGHT: f64 = 20.0;
pub(crate) const TOP: f64 = 30.0;
pub(crate) const BOTTOM: f64 = 48.0;
/// Of a row with its name.
pub(crate) const ROW: f64 = 38.0;
/// The width of a character of a label in the drawing's units: on a screen, and on a phone, where
/// the style sheet has larger letters.
pub(crate) const LETTER: f64 = 6.4;
pub(crate) const LETTER_ON_PHONE: f64 = 9.4;
/// An axis of values that span less is as good without its logarithms.
const WIDE: f64 = 3.0;

/// One series' part of a chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// Fixes its colour, dashes and marks.
    pub series: usize,
    /// In the axes' units, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether each point holds until the next one: samples, and no course between them.
    pub steps: bool,
    /// Marks to set; hollow where true.
    pub marks: Vec<(f64, f64, bool)>,
    /// Outline of a band around it.
    pub band: Vec<(f64, f64)>,
    /// Intervals: place, low end, high end.
    pub whiskers: Vec<(f64, f64, f64)>,
    pub dots: Vec<(u64, f64, f64)>,
    /// Its name, if that is not its variant's. Escaped.
    pub name: Option<String>,
    /// Whose it is if it is not ours: then it is dashed, its marks are hollow, and the read-out
    /// names the source. Escaped.
    pub published: Option<String>,
}

impl Line {
    pub fn of(series: usize, points: Vec<(f64, f64)>) -> Line {
        Line { series, points, ..Line::default() }
    }

    /// With a mark at each point.
    pub fn marked(series: usize, points: Vec<(f64, f64)>) -> Line {
        let marks = points.iter().map(|&(x, y)| (x, y, false)).collect();
        Line { marks, ..Line::of(series, points) }
    }

    /// Means with their intervals at these places; `scale` makes the axis' unit of theirs.
    pub fn estimates(series: usize, all: &[(f64, Estimate)], scale: f64) -> Line {
        let points = all.iter().filter_map(|(x, of)| Some((*x, of.mean? * scale))).collect();
        let there = all.iter().filter(|(_, of)| of.mean.is_some());
        let whiskers = there
            .filter_map(|(x, of)| of.interval.map(|[low, high]| (*x, low * scale, high * scale)));
        Line { whiskers: whiskers.collect(), ..Line::marked(series, points) }
    }

    pub fn published(series: usize, points: Vec<(f64, f64)>, of: &str) -> Line {
        let marks = points.iter().map(|&(x, y)| (x, y, true)).collect();
        Line { marks, published: Some(format!("{of}, published")), ..Line::of(series, points) }
    }
}

/// A time in which a link failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub from: f64,
    /// Its end, if it has one.
    pub to: Option<f64>,
    pub label: String,
}

/// Which axis the reader holds when pointing at a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Each series' height at this place.
    AtX,
    /// Each series' place at this height.
    AtY,
}

/// A chart. Where its vertical axis is of names, it is drawn as rows: the name above what lies at
/// it.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    /// Failures, where the horizontal axis is time.
    pub spans: Vec<Span>,
    pub read: Read,
    /// For those who do not see it; must be escaped.
    pub label: String,
}

struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    height: f64,
}

impl Chart {
    /// Read by its vertical axis if that is of names or of shares, and by the other one otherwise.
    pub fn new(x: Axis, y: Axis, lines: Vec<Line>, label: impl Into<String>) -> Chart {
        let is_read_at_y = matches!(y.unit, Unit::Name | Unit::Share);
        let read = if is_read_at_y { Read::AtY } else { Read::AtX };
        Chart { x, y, lines, spans: Vec::new(), read, label: label.into() }
    }

    fn is_rows(&self) -> bool {
        self.y.unit == Unit::Name
    }

    fn frame(&self) -> Frame {
        let (left, top, height) = match self.is_rows() {
            true => (12.0, 4.0, self.y.ticks.len() as f64 * ROW + 4.0 + BOTTOM),
            false => (LEFT, TOP, HEIGHT),
        };
        Frame { left, right: WIDTH - RIGHT, top, bottom: height - BOTTOM, height }
    }

    pub fn svg(&self) -> String {
        let Frame { left, right, top, bottom, height } = self.frame();
        let read = if self.read == Read::AtX { "x" } else { "y" };
        let (x, y, label) = (self.x.data(), self.y.data(), &self.label);
        let names = |axis: &Axis| {
            let names = axis.ticks.iter().map(|(_, name)| name.as_str());
            let names = names.filter(|_| axis.unit == Unit::Name).collect::<Vec<_>>();
            names.join("&#10;")
        };
        let x_names = attribute("data-x-names", &names(&self.x));
        let y_names = attribute("data-y-names", &names(&self.y));
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{label}\" data-read=\"{read}\" data-x=\"{x}\" data-y=\"{y}\" \
             data-x-column=\"{}\" data-y-column=\"{}\" data-box=\"{left} {top} {right} \
             {bottom}\"{x_names}{y_names}>{}</svg>",
            self.x.column(),
            self.y.column(),
            self.drawing()
        )
    }

    /// How high the drawing is, [`WIDTH`] wide.
    pub fn height(&self) -> f64 {
        self.frame().height
    }

    /// The drawing without the element around it.
    pub fn drawing(&self) -> String {
        let (mut svg, frame) = (String::new(), self.frame());
        self.draw_spans(&mut svg, &frame);
        self.draw_axes(&mut svg, &frame);
        self.lines.iter().for_each(|line| self.draw_line(&mut svg, &frame, line));
        self.name_spans(&mut svg, &frame);
        svg
    }

    /// The same chart with its values on the other scale: logarithmic if they are drawn evenly, and
    /// evenly if not. `None` where that shows nothing.
    pub fn otherwise(&self) -> Option<Chart> {
        let axis = if self.is_rows() { &self.x } else { &self.y };
        let of = |&(x, y): &(f64, f64)| if self.is_rows() { x } else { y };
        let values: Vec<f64> =
            self.lines.iter().flat_map(|line| line.points.iter().map(of)).collect();
        let (least, most) = extent(values.iter().copied().filter(|value| *value > 0.0))?;
        let other = match axis.scale {
            _ if axis.unit == Unit::Percent || most < least * WIDE => return None,
            Scale::Tail => return None,
            Scale::Log => Axis::linear(0.0, most * 1.04, axis.unit, &axis.title),
            Scale::Linear => {
                let has_zero = values.iter().any(|value| *value <= 0.0);
                let zero = if has_zero { " (0 at the edge)" } else { "" };
                Axis::log(values, axis.unit, &format!("{}{zero}", axis.title))?
            }
        };
        let mut chart = self.clone();
        *(if self.is_rows() { &mut chart.x } else { &mut chart.y }) = other;
        Some(chart)
    }

    fn draw_axes(&self, svg: &mut String, frame: &Frame) {
        let &Frame { left, right, top, bottom, height } = frame;
        for (value, name) in &self.y.ticks {
            let at = self.at_y(frame, *value);
            svg.path("grid", format_args!("M{left} {at:.1}H{right}"));
            if self.is_rows() {
                svg.text("row", left + 5.0, t(at - 11.0), "", name);
                svg.text("", right, t(at - 11.0), "end", &self.row_text(*value));
            } else {
                svg.text("", left - 7.0, t(at + 4.0), "end", name);
            }
        }
        for (at, name, class) in labelled(&self.x, |value| self.at_x(frame, value)) {
            svg.path("grid", format_args!("M{at:.1} {top}V{bottom}"));
            let Some(class) = class else { continue };
            let half = letters(name) * LETTER_ON_PHONE / 2.0;
            let (x, anchor) = match at {
                at if at + half > WIDTH => (WIDTH - 1.0, "end"),
                at if at - half < 0.0 => (1.0, "start"),
                at => (at, "middle"),
            };
            svg.text(class, t(x), bottom + 18.0, anchor, name);
        }
        svg.path("axis", format_args!("M{left} {top}V{bottom}H{right}"));
        if !self.is_rows() {
            svg.text("title", 4, 13, "", &self.y.heading());
        }
        svg.text("title", right, height - 8.0, "end", &self.x.heading());
    }

    /// The values that lie at a row, ours first.
    fn row_text(&self, row: f64) -> String {
        let mut texts = Vec::new();
        for line in &self.lines {
            let here = line.points.iter().filter(|(_, y)| *y == row);
            let of = if line.published.is_some() { "published " } else { "" };
            texts.extend(here.map(|(x, _)| format!("{of}{}", self.x.unit.text(*x))));
        }
        texts.join(", ")
    }

    fn draw_spans(&self, svg: &mut String, frame: &Frame) {
        let &Frame { top, bottom, .. } = frame;
        for span in &self.spans {
            let from = self.at_x(frame, span.from);
            let end = span.to.map(|to| self.at_x(frame, to));
            let width = end.unwrap_or(frame.right) - from;
            svg.rect("class=\"failure\"", [&t(from), &top, &t(width), &(bottom - top)]);
            for x in std::iter::once(from).chain(end) {
                svg.path("failure-edge", format_args!("M{x:.1} {top}V{bottom}"));
            }
        }
    }

    /// Above the lines, each span's name in a row of its own.
    fn name_spans(&self, svg: &mut String, frame: &Frame) {
        for (at, span) in self.spans.iter().enumerate() {
            let (x, y) = (self.at_x(frame, span.from), frame.top + 12.0 + 14.0 * at as f64);
            let fits = x + 5.0 + letters(&span.label) * LETTER_ON_PHONE < WIDTH;
            let (x, anchor) = if fits { (x + 5.0, "start") } else { (x - 5.0, "end") };
            svg.text("failure-name", t(x), t(y), anchor, &span.label);
        }
    }

    fn draw_line(&self, svg: &mut String, frame: &Frame, line: &Line) {
        if line.points.is_empty() && line.marks.is_empty() {
            return;
        }
        let name = line.published.as_ref().or(line.name.as_ref());
        let name = attribute("data-name", name.map_or("", String::as_str));
        let (series, class, data) = (line.series, colour(line.series), data(line));
        let _ = write!(svg, "<g data-v=\"{series}\" class=\"{class}\"{name}{data}>");
        if line.band.len() > 2 {
            svg.path("band", self.path(frame, &line.band) + "Z");
        }
        let dashes = if line.published.is_none() { dashes(line.series) } else { " paper" };
        let (thin, path) = match line.steps {
            true => (" steps", self.stairs(frame, &line.points)),
            false => ("", self.path(frame, &line.points)),
        };
        svg.path(&format!("line{dashes}{thin}"), path);
        if !line.dots.is_empty() {
            let at = |&(_, x, y): &(u64, f64, f64)| {
                format!("M{:.1} {:.1}h0", self.at_x(frame, x), self.at_y(frame, y))
            };
            svg.path("seeds", line.dots.iter().map(at).collect::<String>());
        }
        for &(place, low, high) in &line.whiskers {
            svg.path("whisker", self.whisker(frame, place, [low, high]));
        }
        for &(x, y, hollow) in &line.marks {
            let class = if hollow || line.published.is_some() { "mark hollow" } else { "mark" };
            svg.path(class, shape(line.series, self.at_x(frame, x), self.at_y(frame, y)));
        }
        svg.push_str("</g>");
    }

    /// An interval, along the axis of values.
    fn whisker(&self, frame: &Frame, place: f64, ends: [f64; 2]) -> String {
        if self.is_rows() {
            let y = self.at_y(frame, place);
            let [low, high] = ends.map(|end| self.at_x(frame, end));
            let end = |x| format!("M{x:.1} {:.1}V{:.1}", y - 3.0, y + 3.0);
            return format!("{}M{low:.1} {y:.1}H{high:.1}{}", end(low), end(high));
        }
        let x = self.at_x(frame, place);
        let [low, high] = ends.map(|end| self.at_y(frame, end));
        let end = |y| format!("M{:.1} {y:.1}H{:.1}", x - 3.0, x + 3.0);
        format!("{}M{x:.1} {low:.1}V{high:.1}{}", end(low), end(high))
    }

    /// Points that fall on the one before are left out.
    fn path(&self, frame: &Frame, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        let mut last = (-1, -1);
        for &(x, y) in points {
            let (x, y) = (self.at_x(frame, x), self.at_y(frame, y));
            let here = ((x * 10.0) as i64, (y * 10.0) as i64);
            if here != last {
                let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
            }
            last = here;
        }
        path
    }

    /// Each value until the next point; the last point is the end.
    fn stairs(&self, frame: &Frame, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        let mut level = None;
        for &(x, y) in points {
            let (x, y) = (self.at_x(frame, x), self.at_y(frame, y));
            let here = (y * 10.0) as i64;
            match level {
                None => drop(write!(path, "M{x:.1} {y:.1}")),
                Some(last) if last != here => drop(write!(path, "H{x:.1}V{y:.1}")),
                Some(_) => {}
            }
            level = Some(here);
        }
        if let Some(&(x, _)) = points.last() {
            let _ = write!(path, "H{:.1}", self.at_x(frame, x));
        }
        path
    }

    fn at_x(&self, frame: &Frame, value: f64) -> f64 {
        frame.left + self.x.place(value) * (frame.right - frame.left)
    }

    /// Rows go down from the first.
    fn at_y(&self, frame: &Frame, value: f64) -> f64 {
        let part = self.y.place(value);
        if self.is_rows() {
            return frame.top + part * (frame.bottom - frame.top) + 8.0;
        }
        frame.top + (1.0 - part) * (frame.bottom - frame.top)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Everywhere,
    Wide,
    Nowhere,
}

/// The ticks of an axis: places, names, and the classes of names that are shown.
pub(crate) fn labelled(
    axis: &Axis,
    place: impl Fn(f64) -> f64,
) -> Vec<(f64, &str, Option<&'static str>)> {
    let places: Vec<(f64, &str)> =
        axis.ticks.iter().map(|(value, name)| (place(*value), name.as_str())).collect();
    let class = |(&(at, name), shown)| match shown {
        Shown::Everywhere => (at, name, Some("")),
        Shown::Wide => (at, name, Some("wide")),
        Shown::Nowhere => (at, name, None),
    };
    places.iter().zip(shown(&places)).map(class).collect()
}

/// Letters of a label; an escaped one is one.
pub(crate) fn letters(markup: &str) -> f64 {
    let mut inside = false;
    let counts = |c: &char| {
        let is_one = !inside;
        inside = (inside || *c == '&') && *c != ';';
        is_one
    };
    markup.chars().filter(counts).count() as f64
}

/// Which labels are set so that none covers another: the first and the last of them first of all.
pub(crate) fn shown(places: &[(f64, &str)]) -> Vec<Shown> {
    let apart = |letter: f64| {
        let collide = |a: usize, b: usize| {
            let room = (letters(places[a].1) + letters(places[b].1)) * letter / 2.0 + letter;
            (places[a].0 - places[b].0).abs() < room
        };
        let last = places.len().saturating_sub(1);
        let mut kept: Vec<usize> = Vec::new();
        for at in 0..places.len() {
            let is_free = kept.iter().all(|&other| !collide(at, other));
            if is_free && (at == last || at == 0 || !collide(at, last)) {
                kept.push(at);
            }
        }
        kept
    };
    let (wide, phone) = (apart(LETTER), apart(LETTER_ON_PHONE));
    let of = |at: usize| match (phone.contains(&at), wide.contains(&at)) {
        (true, _) => Shown::Everywhere,
        (false, true) => Shown::Wide,
        (false, false) => Shown::Nowhere,
    };
    (0..places.len()).map(of).collect()
}

pub(crate) fn brief(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".into();
    }
    let digits = 5 - libm::floor(libm::log10(value.abs())) as i32;
    let factor = libm::pow(10.0, f64::from(digits.abs()));
    let rounded = if digits < 0 {
        libm::round(value / factor) * factor
    } else {
        libm::round(value * factor) / factor
    };
    format!("{rounded}")
}

/// The data of a series, for the page's script: points, intervals, seeds.
pub(crate) fn data(line: &Line) -> String {
    let list = |numbers: Vec<f64>| numbers.into_iter().map(brief).collect::<Vec<_>>().join(" ");
    let points = list(if line.points.is_empty() {
        line.marks.iter().flat_map(|&(x, y, _)| [x, y]).collect()
    } else {
        line.points.iter().flat_map(|&(x, y)| [x, y]).collect()
    });
    let ends = list(line.whiskers.iter().flat_map(|&(at, low, high)| [at, low, high]).collect());
    let dot = |&(seed, x, y): &(u64, f64, f64)| format!("{seed} {} {}", brief(x), brief(y));
    let dots = line.dots.iter().map(dot).collect::<Vec<_>>().join(" ");
    let (ends, dots) = (attribute("data-w", &ends), attribute("data-d", &dots));
    let steps = if line.steps { " data-steps=\"\"" } else { "" };
    format!(" data-p=\"{points}\"{ends}{dots}{steps}")
}

#[cfg(test)]
mod tests {
    use super::super::forest::{cut, row_name};
    use super::*;

    #[test]
    fn a_chart_draws_what_it_is_given() {
        let points = vec![(1.0, 1.0), (10.0, 0.1), (10.0, 0.1)];
        let line = Line { series: 9, points, marks: vec![(1.0, 1.0, true)], ..Line::default() };
        let x = Axis::log([1.0, 10.0], Unit::Time, "FCT").unwrap();
        let chart = of(x, Axis::tail(0.1, ""), line, Read::AtY);
        let svg = chart.svg();
        assert!(
            svg.contains("class=\"line d1\"")
                && svg.contains("mark hollow")
                && svg.contains("data-v=\"9\"")
        );
        assert!(svg.contains("data-p=\"1 1 10 0.1 10 0.1\""), "{svg}");
        assert_eq!(svg.matches('L').count(), 1, "a point on the one before is drawn once");
        assert_eq!(svg, chart.svg());
    }

    fn of(x: Axis, y: Axis, line: Line, read: Read) -> Chart {
        Chart { x, y, lines: vec![line], spans: Vec::new(), read, label: "x".into() }
    }

    #[test]
    fn samples_are_steps_and_never_a_ramp() {
        let points = vec![(0.0, 0.0), (50.0, 1000.0), (60.0, 0.0), (100.0, 0.0)];
        let line = Line { points, steps: true, ..Line::default() };
        let axes = || {
            (Axis::linear(0.0, 100.0, Unit::Time, ""), Axis::linear(0.0, 1000.0, Unit::Bytes, ""))
        };
        let (x, y) = axes();
        let svg = of(x, y, line, Read::AtX).svg();
        let path =
            svg.split("class=\"line steps\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        // Up at 50, down at 60, and level until the end; nothing slants.
        assert_eq!(path, "M62.0 242.0H261.0V30.0H300.8V242.0H460.0");
    }

    #[test]
    fn rows_have_their_names_and_values_and_intervals_lie_flat() {
        let names = ["a".to_string(), "b &amp; c".to_string()];
        let line = Line {
            points: vec![(1250.0, 1.0)],
            whiskers: vec![(1.0, 1000.0, 1500.0)],
            dots: vec![(3, 1000.0, 1.0), (u64::MAX, 1500.0, 1.0)],
            ..Line::default()
        };
        let svg = of(
            Axis::linear(0.0, 2000.0, Unit::Time, "FCT"),
            Axis::names(&names, ""),
            line,
            Read::AtY,
        )
        .svg();
        assert!(
            svg.contains(">b &amp; c</text>") && svg.contains(">1.25\u{202f}ms</text>"),
            "{svg}"
        );
        assert!(svg.contains("data-y-names=\"a&#10;b &amp; c\""));
        assert!(
            svg.contains("data-d=\"3 1000 1 18446744073709551615 1500 1\""),
            "a seed is told in full"
        );
        let whisker =
            svg.split("class=\"whisker\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(whisker.matches('H').count(), 1, "one line along the values: {whisker}");
    }

    #[test]
    fn the_other_scale_is_there_where_it_shows_something() {
        let with = |values: &[f64], unit| {
            let points = values.iter().enumerate().map(|(at, v)| (at as f64, *v)).collect();
            let most = values.iter().copied().fold(1.0, f64::max);
            let (x, y) =
                (Axis::linear(0.0, 9.0, Unit::Ratio, ""), Axis::linear(0.0, most, unit, "y"));
            of(x, y, Line { points, ..Line::default() }, Read::AtX).otherwise()
        };
        let log = with(&[0.0, 1.0, 100.0], Unit::Bytes).unwrap();
        assert_eq!(
            (log.y.scale, log.y.heading().as_str()),
            (Scale::Log, "y (0 at the edge), logarithmic")
        );
        assert_eq!(log.otherwise().unwrap().y.scale, Scale::Linear);
        assert!(with(&[9.0, 10.0], Unit::Bytes).is_none() && with(&[0.0], Unit::Bytes).is_none());
        assert!(with(&[1.0, 90.0], Unit::Percent).is_none());
    }

    #[test]
    fn a_failure_is_marked_from_its_beginning_to_its_end() {
        let line = Line { points: vec![(0.0, 1.0), (10.0, 1.0)], ..Line::default() };
        let axes =
            (Axis::linear(0.0, 10.0, Unit::Time, ""), Axis::linear(0.0, 1.0, Unit::Rate, ""));
        let mut chart = of(axes.0, axes.1, line, Read::AtX);
        let span = |from, to| Span { from, to, label: "a–b down".into() };
        chart.spans = vec![span(5.0, Some(10.0)), span(9.0, None)];
        let svg = chart.svg();
        assert_eq!(
            (svg.matches("failure-edge").count(), svg.matches(">a–b down</text>").count()),
            (3, 2)
        );
        assert!(
            svg.contains("class=\"failure\" x=\"261.0\"") && svg.contains("width=\"199.0\""),
            "{svg}"
        );
    }

    #[test]
    fn labels_do_not_cover_each_other_and_a_phone_has_fewer() {
        let places: Vec<(f64, &str)> =
            (0..9).map(|n| (62.0 + 49.0 * f64::from(n), "12345")).collect();
        let on = |what: Shown| shown(&places).iter().filter(|s| **s == what).count();
        assert_eq!((on(Shown::Everywhere) + on(Shown::Wide), on(Shown::Nowhere)), (9, 0));
        assert!((3..9).contains(&on(Shown::Everywhere)));
        assert_eq!((shown(&places)[0], shown(&places)[8]), (Shown::Everywhere, Shown::Everywhere));
        assert_eq!((letters("a&amp;b"), letters("&lt;&gt;")), (3.0, 2.0));
    }

    #[test]
    fn the_first_28_series_differ_in_colour_and_outline() {
        let looks = |series| (colour(series), shape(series, 0.0, 0.0));
        for series in 0..28 {
            assert!((0..series).all(|other| looks(other) != looks(series)), "{series}");
        }
    }

    #[test]
    fn long_names_of_rows_are_cut_between_letters() {
        assert_eq!(cut("short &amp; sweet", 13), "short &amp; sweet");
        assert_eq!(cut("a&lt;b-with-a-name", 9), "a&lt;b-with…");
        let name = row_name("a-name-of-18-lette", 126.0, 1.0);
        assert!(name.contains("row wide\" x=\"0\" y=\"1.0\">a-name-of-18-lette</text>"), "{name}");
        assert!(name.contains("narrow\"") && name.contains(">a-name-of-18…<title>"), "{name}");
    }

    #[test]
    fn numbers_are_brief_and_true_to_six_digits() {
        let all = [0.0, 1.0, 0.1 + 0.2, 123_456_789.0, -2.5e-7, 1e9].map(brief);
        assert_eq!(all, ["0", "1", "0.3", "123457000", "-0.00000025", "1000000000"]);
    }
}
