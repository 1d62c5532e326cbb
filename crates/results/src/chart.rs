//! Distributions as inline SVG: fractions over a logarithmic axis of time, one line a series.
//!
//! Invariant: the bytes depend on the points alone. Logarithms are `libm`'s, the same on every machine.

use std::fmt::Write;

use crate::format;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 34.0;
/// How many colours the style sheet has; beyond them lines are dashed.
pub(crate) const COLOURS: usize = 8;

/// Points `(microseconds, fraction)`, and the number that fixes the series' colour.
pub(crate) type Series<'a> = (usize, &'a [(f64, f64)]);

/// The logarithmic axis.
struct Axis {
    from: f64,
    to: f64,
}

impl Axis {
    /// Spans all positive times; `None` if there is none.
    fn of(series: &[Series<'_>]) -> Option<Axis> {
        let times = || series.iter().flat_map(|(_, points)| points.iter().map(|&(time, _)| time));
        let least = times().filter(|&t| t > 0.0).min_by(f64::total_cmp)?;
        let most = times().max_by(f64::total_cmp)?;
        let (from, to) = (libm::log10(least), libm::log10(most));
        let space = if to - from < 0.1 { 0.3 } else { 0.0 };
        Some(Axis { from: from - space, to: to + space })
    }

    fn x(&self, time: f64) -> f64 {
        let at = if time > 0.0 { libm::log10(time).clamp(self.from, self.to) } else { self.from };
        LEFT + (at - self.from) / (self.to - self.from) * (WIDTH - LEFT - RIGHT)
    }

    /// Round times: 1, 2 and 5 of each decade, or decades alone where those would be too many.
    fn ticks(&self) -> Vec<f64> {
        let decades = (libm::floor(self.from) as i32..=libm::ceil(self.to) as i32).collect::<Vec<_>>();
        let inside = |steps: &[f64]| {
            let all = decades.iter().flat_map(|&d| steps.iter().map(move |s| s * libm::pow(10.0, f64::from(d))));
            let (from, to) = (self.from - 1e-9, self.to + 1e-9);
            all.filter(|&t| (from..=to).contains(&libm::log10(t))).collect::<Vec<f64>>()
        };
        let fine = inside(&[1.0, 2.0, 5.0]);
        if fine.len() <= 9 { fine } else { inside(&[1.0]) }
    }
}

fn y(fraction: f64) -> f64 {
    TOP + (1.0 - fraction) * (HEIGHT - TOP - BOTTOM)
}

/// The chart, or nothing if no series has a point. `label` is read to those who do not see it and must be escaped.
pub(crate) fn cdf(series: &[Series<'_>], label: &str) -> String {
    let Some(axis) = Axis::of(series) else { return String::new() };
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">");
    for percent in [0, 25, 50, 75, 99] {
        let at = y(f64::from(percent) / 100.0);
        let right = WIDTH - RIGHT;
        let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>");
        let _ = write!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{percent}%</text>", LEFT - 6.0, at + 4.0);
    }
    for time in axis.ticks() {
        let (at, bottom) = (axis.x(time), HEIGHT - BOTTOM);
        let name = tick(time);
        let _ = write!(svg, "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/>");
        let _ = write!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>", bottom + 18.0);
    }
    for &(number, points) in series {
        if points.is_empty() {
            continue;
        }
        let line: Vec<String> = points.iter().map(|&(t, f)| format!("{:.1} {:.1}", axis.x(t), y(f))).collect();
        let _ = write!(svg, "<path class=\"line {}\" d=\"M{}\"/>", class(number), line.join("L"));
    }
    svg.push_str("</svg>");
    svg
}

/// The style of a series.
pub(crate) fn class(number: usize) -> String {
    let dashes = ["", " d1", " d2", " d3"];
    format!("s{}{}", number % COLOURS, dashes[number / COLOURS % dashes.len()])
}

/// A round time without needless zeros: `1ms`, not `1.00ms`.
fn tick(time: f64) -> String {
    let text = format::time(Some(time));
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &text[..text.len() - unit.len()];
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let axis = |from: f64, to: f64| Axis::of(&[(0, &[(from, 0.0), (to, 1.0)])]).unwrap();
        let names = |axis: Axis| axis.ticks().into_iter().map(tick).collect::<Vec<_>>();
        assert_eq!(names(axis(90.0, 1200.0)), ["100us", "200us", "500us", "1ms"]);
        assert_eq!(names(axis(1.0, 1e6)), ["1us", "10us", "100us", "1ms", "10ms", "100ms", "1s"]);
        assert_eq!(names(axis(50.0, 50.0)), ["50us"]);
    }

    #[test]
    fn nothing_makes_no_chart() {
        assert_eq!(cdf(&[(0, &[])], ""), "");
        assert_eq!(cdf(&[(0, &[(0.0, 0.0), (0.0, 1.0)])], ""), "");
        assert!(cdf(&[(9, &[(0.0, 0.0), (7.0, 1.0)])], "").contains("class=\"line s1 d1\""));
    }
}
