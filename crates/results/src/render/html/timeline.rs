//! A run in time: a bar for each flow from its start to its last byte, below the queue of the
//! busiest port where queues were sampled. Variants are below each other, on one axis.
//!
//! Invariant: every bar is a flow's own time; one that did not complete ends where the run does.
//! Of many flows every nth is drawn, and the drawing names both numbers.

use super::Variant;
use super::figures::overviews;
use super::queues::{Overview, busiest};
use crate::model::{FLOWS, Result, Rows};
use crate::render::draw::axis::Axis;
use crate::render::draw::chart::{LEFT, RIGHT, WIDTH};
use crate::render::draw::number::{bytes, count, short};
use crate::render::draw::svg::{Draw, t};
use crate::render::draw::unit::Unit;
use crate::render::markup::escape;
use std::fmt::Write;
use std::path::Path;

/// Flows of a variant that are drawn.
const MOST: usize = 120;
/// Height of all bars of a variant, where there are few flows and where there are many.
const BARS: [f64; 2] = [60.0, 300.0];
const QUEUE: f64 = 70.0;
const TITLE: f64 = 36.0;
const TICKS: f64 = 34.0;

struct Bar {
    from: f64,
    /// `None`: it did not complete.
    to: Option<f64>,
    colour: &'static str,
}

/// Colours of bars, with their meanings.
const COLOURS: [(&str, &str); 4] = [
    ("s0", "no packet lost"),
    ("s4", "packets sent again"),
    ("s1", "waited for a timer"),
    ("s6", "unfinished"),
];

/// The flows of a run by their end, every nth of many, and how many there are.
fn bars(run: &Path) -> Result<(Vec<Bar>, usize)> {
    let mut bars = Vec::new();
    let columns = ["start_us", "fct_us", "retransmitted", "timeouts"];
    Rows::open(&run.join(FLOWS))?.each(columns, |row| {
        let Some(from) = row.float(0) else { return Ok(()) };
        let to = row.float(1).map(|time| from + time);
        let is_some = |column: usize| row.whole(column).is_some_and(|n| n > 0);
        let kind = match to {
            None => 3,
            _ if is_some(3) => 2,
            _ if is_some(2) => 1,
            _ => 0,
        };
        bars.push(Bar { from, to, colour: COLOURS[kind].0 });
        Ok(())
    })?;
    let end = |bar: &Bar| bar.to.unwrap_or(f64::INFINITY);
    bars.sort_by(|a, b| end(a).total_cmp(&end(b)).then(a.from.total_cmp(&b.from)));
    let (all, every) = (bars.len(), bars.len().div_ceil(MOST).max(1));
    Ok((bars.into_iter().step_by(every).collect(), all))
}

/// The drawing without the element around it, and its height; `None` without flows.
pub(crate) fn timeline(variants: &[Variant]) -> Result<Option<(String, f64)>> {
    let overviews = overviews(variants)?;
    let mut runs = Vec::new();
    for variant in variants {
        runs.push(variant.runs.first().map_or(Ok((Vec::new(), 0)), |run| bars(run))?);
    }
    let ends = runs.iter().flat_map(|(bars, _)| bars).map(|bar| bar.to.unwrap_or(bar.from));
    let Some(end) = ends.max_by(f64::total_cmp) else { return Ok(None) };
    let open = |(bars, _): &(Vec<Bar>, usize)| bars.iter().any(|bar| bar.to.is_none());
    let longest = overviews.iter().flatten().map(|of| of.end).fold(end, f64::max);
    let end = if runs.iter().any(open) { longest } else { end };
    let x = Axis::linear(0.0, end, Unit::Time, "time since the start");
    let (mut svg, mut y) = (String::new(), 0.0);
    for ((variant, (bars, all)), overview) in variants.iter().zip(&runs).zip(&overviews) {
        let n = match bars.len() {
            drawn if drawn < *all => format!("{} of {} flows", drawn, count(Some(*all as f64))),
            _ => format!("{all} flows"),
        };
        svg.text("row", 12, t(y + 14.0), "", &variant.name());
        svg.text("", WIDTH - RIGHT, t(y + 14.0), "end", &n);
        y = variant_at(&mut svg, y + TITLE, &x, bars, overview.as_ref())?;
    }
    svg.text("title", WIDTH - RIGHT, t(y - 4.0), "end", &x.heading());
    legend(&mut svg, y + 16.0);
    Ok(Some((svg, y + 16.0 + 16.0 * COLOURS.len() as f64 / 2.0)))
}

/// One variant below `top`; returns where it ends.
fn variant_at(
    svg: &mut String,
    top: f64,
    x: &Axis,
    bars: &[Bar],
    overview: Option<&Overview>,
) -> Result<f64> {
    let at = |value: f64| LEFT + x.place(value.min(x.to)) * (WIDTH - RIGHT - LEFT);
    let mut y = top;
    if let Some(overview) = overview
        && let Some(port) = busiest(std::iter::once(overview), 1).pop()
        && let Some(track) = overview.tracks(std::slice::from_ref(&port))?.pop()
    {
        let peak = track.iter().map(|&(_, n)| n).fold(1.0, f64::max);
        let foot = y + QUEUE;
        let mut path = format!("M{LEFT} {foot:.1}");
        for &(time, waiting) in &track {
            let _ = write!(path, "H{:.1}V{:.1}", at(time), foot - QUEUE * waiting / peak);
        }
        let name = escape(&format!("{}, port {}", port.0, port.1));
        let _ = write!(svg, "<g class=\"s3\"><path fill=\"currentColor\" opacity=\".5\" ");
        let _ = write!(svg, "d=\"{path}V{foot:.1}Z\"/></g>");
        svg.text("", LEFT - 7.0, t(y + 9.0), "end", &short(bytes(peak)));
        svg.text("", LEFT, t(y - 2.0), "", &format!("{name}: bytes that wait"));
        y = foot + 10.0;
    }
    let height = (bars.len() as f64 * 6.0).clamp(BARS[0], BARS[1]) / bars.len().max(1) as f64;
    let foot = y + height * bars.len() as f64 + 4.0;
    for (time, name) in &x.ticks {
        let x = at(*time);
        svg.path("grid", format_args!("M{x:.1} {top:.1}V{foot:.1}"));
        svg.text("", t(x), t(foot + 14.0), "middle", name);
    }
    for (row, bar) in bars.iter().enumerate() {
        let (from, to) = (at(bar.from), at(bar.to.unwrap_or(x.to)));
        let look = format!("class=\"{}\" fill=\"currentColor\"", bar.colour);
        let (top, high) = (y + height * row as f64, (height * 0.8).max(0.5));
        let (top, high) = (format!("{top:.2}"), format!("{high:.2}"));
        svg.rect(&look, [&t(from), &top, &t((to - from).max(0.5)), &high]);
    }
    Ok(foot + TICKS)
}

fn legend(svg: &mut String, top: f64) {
    for (at, (colour, meaning)) in COLOURS.iter().enumerate() {
        let (x, y) = (12.0 + 230.0 * (at % 2) as f64, top + 16.0 * (at / 2) as f64);
        let look = format!("class=\"{colour}\" fill=\"currentColor\"");
        svg.rect(&look, [&x, &t(y - 6.0), &24, &6]);
        svg.text("", x + 30.0, t(y), "", meaning);
    }
}
