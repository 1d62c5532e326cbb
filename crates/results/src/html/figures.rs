//! The charts: completion times with their tails, times by flow size, queues over time.
//!
//! Invariant: every axis has a unit, every chart says what it is of, and what is too little for a percentile is marked.

use super::Variant;
use super::axis::{Axis, Unit};
use super::chart::{Chart, Line, Read, swatch};
use super::flows::{Bin, Distribution, P99_NEEDS, Times};
use super::number::{self, count, percent, ratio, time};
use super::page::{details, empty, end, escape, figures, note, section, table};
use super::queues::{Overview, Port, busiest};
use crate::error::Result;
use crate::goodput::GoodputOverTime;
use crate::summary::Summary;

/// Ports that have a chart of their own.
const PORTS: usize = 3;

/// Variants whose share of open ones is told.
const LISTED: usize = 8;

/// One of a variant's distributions.
type Pick = fn(&Times) -> &Distribution;

/// How completion times are distributed.
pub(crate) fn distributions(page: &mut String, variants: &[Variant]) {
    section(page, "times", "Completion times");
    let (mice, elephants) = variants.first().map_or((0, 0), |variant| variant.times.limits);
    let size = |bytes: u64| number::short(number::bytes(bytes as f64));
    let kinds: [(String, &str, Pick); 4] = [
        ("Queries".into(), "QCT", |times| &times.queries),
        ("All flows".into(), "FCT", |times| &times.all),
        (format!("Mice, flows below {}", size(mice)), "FCT", |times| &times.mice),
        (format!("Elephants, flows above {}", size(elephants)), "FCT", |times| &times.elephants),
    ];
    let charts: Vec<_> =
        kinds.into_iter().filter_map(|(caption, what, pick)| distribution(&caption, what, pick, variants)).collect();
    if charts.is_empty() {
        empty(page, "Nothing completed: no flow and no query.");
        return end(page);
    }
    figures(page, &charts);
    let seeds = variants.iter().map(|variant| variant.runs.len()).max().unwrap_or(1);
    let pooled = if seeds > 1 {
        format!(" The {seeds} seeds are pooled; a band spans the least and the most of the single seeds.")
    } else {
        String::new()
    };
    note(
        page,
        &format!(
            "How long the completed ones took, up to each percentile: each step of the vertical axis from p90 is ten times \
             rarer, and a curve ends at its slowest. Further left is better.{pooled}"
        ),
    );
    end(page);
}

fn distribution(caption: &str, what: &str, pick: Pick, variants: &[Variant]) -> Option<(String, String, Chart)> {
    let of = || variants.iter().map(|variant| pick(&variant.times));
    let x = Axis::log(
        of().flat_map(|d| d.curve.iter().map(|&(time, _)| time)).collect::<Vec<_>>().into_iter(),
        Unit::Time,
        &format!("{what}, logarithmic"),
    )?;
    let least = of().filter_map(|d| d.curve.last().map(|&(_, share)| share)).min_by(f64::total_cmp)?;
    let line = |(series, d): (usize, &Distribution)| {
        let low = d.band.iter().map(|&(low, _, share)| (low, share));
        let high = d.band.iter().rev().map(|&(_, high, share)| (high, share));
        Line { series, points: d.curve.clone(), band: low.chain(high).collect(), ..Line::default() }
    };
    let lines = of().enumerate().map(line).collect();
    let open = |(series, d): (usize, &Distribution)| {
        let share = percent((d.started > 0).then(|| (d.started - d.completed) as f64 / d.started as f64));
        if variants.len() > 1 { format!("<i data-v=\"{series}\">{}{share}</i>", swatch(series)) } else { share }
    };
    let below = if of().all(|d| d.completed == d.started) {
        "all completed".to_string()
    } else {
        let shares: Vec<String> = of().enumerate().take(LISTED).map(open).collect();
        format!("open and not in it: {}", shares.join(" "))
    };
    let y = Axis::tail(least, "percentile of the completed");
    let label = format!("{caption}: distribution of {what}");
    Some((caption.into(), below, Chart { x, y, lines, read: Read::AtY, label }))
}

/// Times and slowdowns by the size of flows.
pub(crate) fn sizes(page: &mut String, variants: &[Variant]) {
    section(page, "sizes", "By flow size");
    type Value = fn(&Bin) -> Option<f64>;
    let kinds: [(&str, Unit, Value); 4] = [
        ("Slowdown p99", Unit::Ratio, |bin| Some(bin.slowdown?[1])),
        ("Slowdown p50", Unit::Ratio, |bin| Some(bin.slowdown?[0])),
        ("FCT p99", Unit::Time, |bin| Some(bin.fct?[1])),
        ("FCT p50", Unit::Time, |bin| Some(bin.fct?[0])),
    ];
    let mut charts = Vec::new();
    for (caption, unit, value) in kinds {
        // The axes of one unit are the same, so that p50 and p99 can be compared by eye.
        let alike = kinds.iter().filter(|kind| kind.1 == unit).map(|kind| kind.2);
        let bins = || variants.iter().flat_map(|variant| &variant.times.bins);
        let all: Vec<f64> = alike.flat_map(|value| bins().filter_map(value)).collect();
        let places: Vec<f64> = bins().filter(|bin| value(bin).is_some()).map(middle).collect();
        let x = Axis::log(places.into_iter(), Unit::Bytes, "flow size, logarithmic");
        let what = if unit == Unit::Ratio { "times the FCT alone, logarithmic" } else { "time, logarithmic" };
        let y = Axis::log(all.into_iter(), unit, what);
        let (Some(x), Some(y)) = (x, y) else { continue };
        let is_tail = caption.ends_with("p99");
        let line = |(series, variant): (usize, &Variant)| {
            let of = |bin: &Bin| Some((middle(bin), value(bin)?, is_tail && bin.completed < P99_NEEDS));
            let marks: Vec<_> = variant.times.bins.iter().filter_map(of).collect();
            Line { series, points: marks.iter().map(|&(x, y, _)| (x, y)).collect(), marks, ..Line::default() }
        };
        let lines = variants.iter().enumerate().map(line).collect();
        let below = if is_tail { "hollow: fewer than 100 flows, the largest or nearly" } else { "" };
        let label = format!("{caption} by flow size");
        charts.push((caption.to_string(), below.to_string(), Chart { x, y, lines, read: Read::AtX, label }));
    }
    if charts.is_empty() {
        empty(page, "No flow completed.");
        return end(page);
    }
    figures(page, &charts);
    let pooled = if variants.iter().any(|variant| variant.runs.len() > 1) { ", seeds pooled" } else { "" };
    note(
        page,
        &format!(
            "Completed flows in bins of 1, 2 and 5 of each decade of size, drawn at the middle of the bin{pooled}."
        ),
    );
    details(page, "The bins as a table", |page| bins_table(page, variants));
    end(page);
}

/// Of a logarithmic bin.
fn middle(bin: &Bin) -> f64 {
    libm::sqrt(bin.from.max(1) as f64 * bin.to as f64)
}

fn bins_table(page: &mut String, variants: &[Variant]) {
    let head = ["size", "flows", "open", "FCT p50", "FCT p99", "slowdown p50", "slowdown p99"].map(String::from);
    let mut bins: Vec<(u64, u64)> = variants.iter().flat_map(|v| v.times.bins.iter().map(|b| (b.from, b.to))).collect();
    bins.sort_unstable();
    bins.dedup();
    let size = |bytes: u64| number::short(number::bytes(bytes as f64));
    let mut rows = Vec::new();
    for (from, to) in bins {
        let range = format!("{} to {}", size(from), size(to));
        if variants.len() > 1 {
            rows.push(vec![range.clone()]);
        }
        for (at, variant) in variants.iter().enumerate() {
            let Some(bin) = variant.times.bins.iter().find(|bin| bin.from == from) else { continue };
            let name = if variants.len() > 1 { swatch(at) + &escape(&variant.result.variant) } else { range.clone() };
            let [started, open] = [bin.started, bin.started - bin.completed].map(|n| count(Some(n as f64)));
            let of =
                |values: Option<[f64; 2]>, form: fn(Option<f64>) -> String| [0, 1].map(|p| form(values.map(|v| v[p])));
            let [fct50, fct99] = of(bin.fct, time);
            let [slow50, slow99] = of(bin.slowdown, ratio);
            rows.push(vec![name, started, open, fct50, fct99, slow50, slow99]);
        }
    }
    table(page, "", &head, &rows);
}

/// Goodput over time, where it was sampled.
pub(crate) fn goodput(page: &mut String, variants: &[Variant]) -> Result<()> {
    let mut lines = Vec::new();
    for (series, variant) in variants.iter().enumerate() {
        let mut runs = Vec::new();
        for run in &variant.runs {
            runs.extend(Summary::read(run)?.goodput_over_time);
        }
        lines.push(Line { series, points: GoodputOverTime::total(runs.iter()), ..Line::default() });
    }
    let Some(chart) = goodput_chart(lines) else { return Ok(()) };
    section(page, "goodput", "Goodput over time");
    figures(page, &[chart]);
    let several = variants.iter().any(|variant| variant.runs.len() > 1);
    let mean = if several { ", the mean over seeds" } else { "" };
    note(page, &format!("Application bytes delivered in order, all classes together, between two samples{mean}."));
    end(page);
    Ok(())
}

/// Of lines in microseconds and Gb/s; `None` if they have no points.
pub(crate) fn goodput_chart(mut lines: Vec<Line>) -> Option<(String, String, Chart)> {
    lines.retain(|line| !line.points.is_empty());
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let to = points().map(|&(at, _)| at).max_by(f64::total_cmp)?;
    let most = points().map(|&(_, rate)| rate).max_by(f64::total_cmp)?;
    let chart = Chart {
        x: Axis::linear(0.0, to, Unit::Time, "time since the start"),
        y: Axis::linear(0.0, most.max(1e-3) * 1.04, Unit::Rate, "goodput of all flows"),
        lines,
        read: Read::AtX,
        label: "Goodput over time".into(),
    };
    Some(("Goodput over time".into(), String::new(), chart))
}

/// Queue occupancy over time, where it was sampled.
pub(crate) fn queues(page: &mut String, variants: &[Variant]) -> Result<()> {
    let mut overviews = Vec::new();
    for variant in variants {
        overviews.push(variant.runs.first().map_or(Ok(None), |run| Overview::read(run))?);
    }
    if overviews.iter().all(Option::is_none) {
        return Ok(());
    }
    section(page, "queues", "Queues over time");
    let ports = busiest(overviews.iter().flatten(), PORTS);
    if ports.is_empty() {
        empty(page, "Every queue was empty at every sample.");
        end(page);
        return Ok(());
    }
    let mut tracks = Vec::new();
    for overview in &overviews {
        tracks.push(overview.as_ref().map_or(Ok(Vec::new()), |overview| overview.tracks(&ports))?);
    }
    let spans = || overviews.iter().flatten().map(|overview| overview.span);
    let from = spans().map(|span| span.0).fold(f64::INFINITY, f64::min);
    let to = spans().map(|span| span.1).fold(f64::NEG_INFINITY, f64::max);
    let most = overviews.iter().flatten().flat_map(|o| o.peaks.values()).copied().max().unwrap_or(0);
    let mut charts = Vec::new();
    for at in 0..=ports.len() {
        let lines = tracks
            .iter()
            .enumerate()
            .filter_map(|(series, tracks)| Some(Line { series, points: tracks.get(at)?.clone(), ..Line::default() }));
        let caption = if at == 0 { "The fullest queue anywhere".to_string() } else { port_name(&ports[at - 1]) };
        charts.push((
            caption.clone(),
            if at == 1 { "the highest peak of a single port".into() } else { String::new() },
            Chart {
                x: Axis::linear(from, to, Unit::Time, "time since the start"),
                y: Axis::linear(0.0, most as f64 * 1.04, Unit::Bytes, "waiting bytes, most in each bucket of time"),
                lines: lines.collect(),
                read: Read::AtX,
                label: format!("{caption}: bytes over time"),
            },
        ));
    }
    figures(page, &charts);
    let several = variants.iter().any(|variant| variant.runs.len() > 1);
    let seed = variants.first().and_then(|variant| variant.result.seeds.first()).copied().unwrap_or(0);
    let which = if several { format!(" Of seed {seed} alone.") } else { String::new() };
    note(
        page,
        &format!(
            "Bytes that wait, without the packet in transmission, as sampled: each point is the most of its bucket, \
             one of 300 or fewer. The ports are those with the highest peaks in any variant.{which}"
        ),
    );
    end(page);
    Ok(())
}

fn port_name((node, port): &Port) -> String {
    format!("{}, port {port}", escape(node))
}
