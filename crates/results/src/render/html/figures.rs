//! The charts: completion times with their tails, times by flow size, queues over time.
//!
//! Invariant: every axis has a unit, every chart names its subject, and what is too little for a
//! percentile is marked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::flows::{Distribution, P99_NEEDS, Times};
use super::headline::{Strip, strips};
use super::measures::{Measure, of_charts};
use super::queues::{Overview, Port, busiest};
use super::{Variant, has_seeds, of_one_seed, trees};
use crate::model::goodput::Recovery;
use crate::model::summary::{QueuePeak, Summary};
use crate::model::{FlowShare, GoodputOverTime, LinkFailure, Ordered, Result, SizeBin};
use crate::render::document::{Block, Figure, details, empty, note, row, section, table};
use crate::render::draw::axis::Axis;
use crate::render::draw::chart::{Chart, Line, Span};
use crate::render::draw::number::{count, extent, percent, ratio, size, time};
use crate::render::draw::series::swatch;
use crate::render::draw::unit::Unit;
use crate::render::format::digits;
use crate::render::markup::escape;
use crate::render::words::words;

/// Ports that have a chart of their own.
const PORTS: usize = 3;

/// Flows of a peak that are named.
const SHOWN: usize = 3;

/// The number of variants whose share of open ones is named.
const LISTED: usize = 8;

type Pick = fn(&Times) -> &Distribution;

/// A section of figures with words below them, or a sentence in their place.
fn section_of(id: &str, title: &str, all: Vec<Figure>, none: &str, below: Vec<Block>) -> Block {
    let blocks = match all.is_empty() {
        true => vec![empty(none)],
        false => std::iter::once(Block::Figures(all)).chain(below).collect(),
    };
    section(id, title, blocks)
}

/// How completion times are distributed: a chart each of queries, all flows, mice and elephants.
pub(crate) fn times(variants: &[Variant]) -> Vec<Figure> {
    let (mice, elephants) = variants.first().map_or((0, 0), |variant| variant.times.limits);
    let kinds: [(&str, String, Pick); 4] = [
        ("qct", "Queries".into(), |times| &times.queries),
        ("fct", "All flows".into(), |times| &times.all),
        ("fct-mice", format!("Mice, flows below {}", size(mice)), |times| &times.mice),
        ("fct-elephants", format!("Elephants, flows above {}", size(elephants)), |times| {
            &times.elephants
        }),
    ];
    let chart = |(name, caption, pick)| distribution(name, caption, pick, variants);
    kinds.into_iter().filter_map(chart).collect()
}

pub(crate) fn distributions(variants: &[Variant]) -> Block {
    let seeds = variants.iter().map(|variant| variant.runs.len()).max().unwrap_or(1).to_string();
    let pooled = if has_seeds(variants) { words("seeds-pooled", &[&seeds]) } else { String::new() };
    let none = "Nothing completed: no flow and no query.";
    let below = vec![note(words("times", &[&pooled]))];
    section_of("times", "Completion times", times(variants), none, below)
}

fn distribution(name: &str, caption: String, pick: Pick, variants: &[Variant]) -> Option<Figure> {
    let what = if name == "qct" { "QCT" } else { "FCT" };
    let of = || variants.iter().map(|variant| pick(&variant.times));
    let x = Axis::log(of().flat_map(|d| d.curve.iter().map(|&(time, _)| time)), Unit::Time, what)?;
    let (least, _) = extent(of().filter_map(|d| Some(d.curve.last()?.1)))?;
    let line = |(series, d): (usize, &Distribution)| {
        let low = d.band.iter().map(|&(low, _, share)| (low, share));
        let high = d.band.iter().rev().map(|&(_, high, share)| (high, share));
        Line { band: low.chain(high).collect(), ..Line::of(series, d.curve.clone()) }
    };
    let lines = of().enumerate().map(line).collect();
    let open = |(series, d): (usize, &Distribution)| {
        let share = (d.started - d.completed) as f64 / d.started as f64;
        let share = percent((d.started > 0).then_some(share));
        match variants.len() {
            1 => share,
            _ => format!("<i data-v=\"{series}\">{}{share}</i>", swatch(series)),
        }
    };
    let below = if of().all(|d| d.completed == d.started) {
        "all completed".to_string()
    } else {
        let shares: Vec<String> = of().enumerate().take(LISTED).map(open).collect();
        format!("open and not in it: {}", shares.join(" "))
    };
    let label = format!("{caption}: distribution of {what}");
    let chart = Chart::new(x, Axis::tail(least, "percentile of the completed"), lines, label);
    Some(Figure::of(caption, below, chart).named(name))
}

/// A chart for each number that is shown: its value of each variant, with the values of single
/// seeds where there are several.
pub(crate) fn numbers(variants: &[Variant]) -> Option<Block> {
    let several = variants.iter().any(|variant| variant.seeds.len() > 1);
    if variants.len() < 2 && !several {
        return None;
    }
    let (is_given, columns) = super::shown_columns(variants);
    let of = |of: &Measure| {
        let scale = of.scale();
        let strip = |(series, variant): (usize, &Variant)| {
            let estimate = variant.result.statistics.leaf(&of.path).copied().unwrap_or_default();
            let seeds = variant
                .seeds
                .iter()
                .filter_map(|(seed, numbers)| Some((*seed, numbers.at(&of.path)? * scale)));
            Strip {
                series,
                name: variant.result.variant.clone(),
                mean: estimate.mean.map(|mean| mean * scale),
                interval: estimate.interval.map(|ends| ends.map(|end| end * scale)),
                seeds: seeds.collect(),
                published: None,
            }
        };
        let rows: Vec<Strip> = variants.iter().enumerate().map(strip).collect();
        let is_something = rows.iter().any(|row| row.seeds.iter().any(|(_, value)| *value != 0.0));
        let title = match of.unit() {
            Unit::Percent => "of those started",
            _ if several => "by seed",
            _ => "",
        };
        is_something.then(|| strips(&of.markup(), of.unit(), title, &rows))?
    };
    let measures = of_charts(is_given, &columns, &trees(variants));
    let all: Vec<Figure> = measures.iter().filter_map(of).collect();
    let below = several.then(|| note(words("seeds", &[]))).into_iter().collect();
    (!all.is_empty()).then(|| section_of("numbers", "Shown numbers", all, "", below))
}

struct BySize {
    caption: &'static str,
    unit: Unit,
    bins: fn(&Times) -> &Ordered<SizeBin>,
    value: fn(&SizeBin) -> Option<f64>,
    is_tail: bool,
}

impl BySize {
    const fn slowdown(caption: &'static str, value: fn(&SizeBin) -> Option<f64>) -> BySize {
        BySize { caption, unit: Unit::Ratio, bins: |times| &times.slowdown, value, is_tail: false }
    }

    const fn fct(caption: &'static str, value: fn(&SizeBin) -> Option<f64>) -> BySize {
        let of = BySize::slowdown(caption, value);
        BySize { unit: Unit::Time, bins: |times| &times.fct, ..of }
    }

    fn figure(&self, variants: &[Variant]) -> Option<Figure> {
        let values = |of: &BySize| {
            let bins = variants.iter().flat_map(|variant| (of.bins)(&variant.times).iter());
            let values = bins.filter_map(|(_, bin)| Some((bin.middle(), (of.value)(bin)?)));
            values.collect::<Vec<(f64, f64)>>()
        };
        // The axes of one unit are the same, so that percentiles can be compared by eye.
        let alike = BY_SIZE.iter().filter(|kind| kind.unit == self.unit).flat_map(values);
        let what = if self.unit == Unit::Ratio { "times the FCT alone" } else { "time" };
        let places = values(self).into_iter().map(|(place, _)| place);
        let x = Axis::log(places, Unit::Bytes, "flow size")?;
        let y = Axis::log(alike.map(|(_, value)| value), self.unit, what)?;
        let line = |(series, variant): (usize, &Variant)| {
            let of = |(_, bin): (&str, &SizeBin)| {
                let is_few = self.is_tail && bin.completed < P99_NEEDS;
                Some((bin.middle(), (self.value)(bin)?, is_few))
            };
            let marks: Vec<_> = (self.bins)(&variant.times).iter().filter_map(of).collect();
            let points = marks.iter().map(|&(x, y, _)| (x, y)).collect();
            Line { marks, ..Line::of(series, points) }
        };
        let lines = variants.iter().enumerate().map(line).collect();
        let below =
            if self.is_tail { "hollow: fewer than 100 flows, the largest or nearly" } else { "" };
        let chart = Chart::new(x, y, lines, format!("{} by flow size", self.caption));
        let name = format!("{}-by-size", self.caption.to_lowercase().replace(' ', "-"));
        Some(Figure::of(self.caption, below, chart).named(name))
    }
}

const BY_SIZE: [BySize; 5] = [
    BySize { is_tail: true, ..BySize::slowdown("Slowdown p99", |bin| bin.p99) },
    BySize::slowdown("Slowdown p95", |bin| bin.p95),
    BySize::slowdown("Slowdown p50", |bin| bin.p50),
    BySize { is_tail: true, ..BySize::fct("FCT p99", |bin| bin.p99) },
    BySize::fct("FCT p50", |bin| bin.p50),
];

/// Slowdowns and times by the size of flows, a chart for each statistic.
pub(crate) fn by_sizes(variants: &[Variant]) -> Vec<Figure> {
    BY_SIZE.iter().filter_map(|kind| kind.figure(variants)).collect()
}

pub(crate) fn sizes(variants: &[Variant]) -> Block {
    let pooled = if has_seeds(variants) { ", seeds pooled" } else { "" };
    let bins = details("The bins as a table", vec![bins_table(variants)]);
    let below = vec![note(words("sizes", &[pooled])), bins];
    section_of("sizes", "By flow size", by_sizes(variants), "No flow completed.", below)
}

fn bins_table(variants: &[Variant]) -> Block {
    // A bin is known by its edges: variants that are cut by different rules may share a name.
    let edges = |bin: &SizeBin| (bin.above_bytes, bin.to_bytes);
    let mut keys: Vec<((u64, u64), &str)> = Vec::new();
    for (name, bin) in variants.iter().flat_map(|variant| variant.times.slowdown.iter()) {
        if !keys.iter().any(|(key, _)| *key == edges(bin)) {
            keys.push((edges(bin), name));
        }
    }
    let mut rows = Vec::new();
    let several = variants.len() > 1;
    for (key, name) in keys {
        rows.extend(several.then(|| vec![escape(name)]));
        for (at, variant) in variants.iter().enumerate() {
            let found = variant.times.slowdown.iter().find(|(_, bin)| edges(bin) == key);
            let Some((name, bin)) = found else { continue };
            let fct = variant.times.fct.get(name).copied().unwrap_or_default();
            let name = if several { variant.marked(at) } else { escape(name) };
            let mut row = row(name, [bin.above_bytes, bin.to_bytes].map(size));
            row.extend([bin.completed, bin.unfinished].map(|n| count(Some(n as f64))));
            row.extend([bin.mean, bin.p50, bin.p95, bin.p99].map(ratio));
            row.extend([fct.p50, fct.p99].map(time));
            rows.push(row);
        }
    }
    let head = "flows by size|above|up to|completed|open|slowdown mean|p50|p95|p99|FCT p50|FCT p99";
    table("", head, rows)
}

/// The goodput over time that the runs of a variant have sampled.
fn sampled(variant: &Variant) -> Result<Vec<GoodputOverTime>> {
    let mut all = Vec::new();
    for run in &variant.runs {
        all.extend(Summary::read(run)?.goodput_over_time);
    }
    Ok(all)
}

/// Goodput over time, where it was sampled.
pub(crate) fn rates(variants: &[Variant]) -> Result<Option<Figure>> {
    let mut lines = Vec::new();
    for (series, variant) in variants.iter().enumerate() {
        lines.push(goodput_line(series, &GoodputOverTime::total(sampled(variant)?.iter())));
    }
    Ok(goodput_drawing(lines, spans(variants.iter().flat_map(|variant| &variant.failures))))
}

pub(crate) fn goodput(variants: &[Variant]) -> Result<Option<Block>> {
    let Some(figure) = rates(variants)? else { return Ok(None) };
    let mean = if has_seeds(variants) { ", the mean over seeds" } else { "" };
    let mut below = vec![note(words("goodput", &[mean]))];
    below.extend(recoveries(variants)?);
    Ok(Some(section_of("goodput", "Goodput over time", vec![figure], "", below)))
}

/// How long the goodput took to come back after each failure, where it was sampled: of several
/// seeds the longest time.
fn recoveries(variants: &[Variant]) -> Result<Option<Block>> {
    let mut rows = Vec::new();
    for (series, variant) in variants.iter().enumerate() {
        let mut failures: BTreeMap<u64, Vec<Recovery>> = BTreeMap::new();
        for recovery in sampled(variant)?.into_iter().flat_map(|sampled| sampled.recovery) {
            // In picoseconds, for the order.
            failures.entry((recovery.at_us * 1e6) as u64).or_default().push(recovery);
        }
        for seeds in failures.values() {
            let mut times = seeds.iter().map(|seed| seed.recovery_us);
            let longest = times.try_fold(0.0_f64, |longest, us| us.map(|us| longest.max(us)));
            let before = seeds.iter().map(|seed| seed.before_gbps).sum::<f64>();
            let before = format!("{} Gb/s", digits(before / seeds.len() as f64));
            let after = match longest {
                Some(0.0) => "it stays there".into(),
                Some(us) => time(Some(us)),
                None => "not before the end".into(),
            };
            let at = time(Some(seeds[0].at_us));
            rows.push(row(variant.marked(series), [at, before, after]));
        }
    }
    let head = "variant|failure at|goodput before|back at 95 % of that after";
    Ok((!rows.is_empty()).then(|| table("", head, rows)))
}

/// Of the middles of periods in microseconds, and the rates of these periods: each from its
/// beginning to its end.
pub(crate) fn goodput_line(series: usize, rates: &[(f64, f64)]) -> Line {
    // The first period begins at zero.
    let half = rates.first().map_or(0.0, |&(middle, _)| middle);
    let begin = rates.iter().map(|&(middle, rate)| (middle - half, rate));
    let end = rates.last().map(|&(middle, rate)| (middle + half, rate));
    Line { steps: true, ..Line::of(series, begin.chain(end).collect()) }
}

/// Of lines in microseconds and Gb/s; `None` if they have no points.
pub(crate) fn goodput_drawing(mut lines: Vec<Line>, spans: Vec<Span>) -> Option<Figure> {
    lines.retain(|line| !line.points.is_empty());
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let (_, to) = extent(points().map(|&(at, _)| at))?;
    let (_, most) = extent(points().map(|&(_, rate)| rate))?;
    let x = Axis::linear(0.0, to, Unit::Time, "time since the start");
    let y = Axis::linear(0.0, most.max(1e-3) * 1.04, Unit::Rate, "goodput of all flows");
    let caption = "Goodput over time";
    let chart = Chart { spans: within(spans, to), ..Chart::new(x, y, lines, caption) };
    Some(Figure::of(caption, "", chart).named("goodput"))
}

/// Failures as charts over time show them, each once.
/// Links that fail and come back together are one.
pub(crate) fn spans<'a>(failures: impl Iterator<Item = &'a LinkFailure>) -> Vec<Span> {
    let mut groups: Vec<(&LinkFailure, Vec<&(String, String)>)> = Vec::new();
    for failure in failures {
        let kind = |of: &LinkFailure| (of.at_us, of.until_us, of.loss < 1.0);
        match groups.iter_mut().find(|(first, _)| kind(first) == kind(failure)) {
            Some((_, links)) if links.contains(&&failure.link) => {}
            Some((_, links)) => links.push(&failure.link),
            None => groups.push((failure, vec![&failure.link])),
        }
    }
    let span = |(failure, links): &(&LinkFailure, Vec<&(String, String)>)| {
        let what = if failure.loss < 1.0 { "lossy" } else { "down" };
        let label = format!("{} {what}", escape(&site(links)));
        Span { from: failure.at_us, to: failure.until_us, label }
    };
    groups.iter().map(span).collect()
}

/// The name of these links: their ends, the node that all of them have, or how many there are.
fn site(links: &[&(String, String)]) -> String {
    let (a, b) = links[0];
    let has = |name: &&String| links.iter().all(|link| link.0 == **name || link.1 == **name);
    match [a, b].into_iter().find(has) {
        _ if links.len() == 1 => format!("{a}–{b}"),
        Some(node) => node.clone(),
        None => format!("{} links", links.len()),
    }
}

/// Those that begin before the end; one that outlasts it has no end.
pub(crate) fn within(spans: Vec<Span>, end: f64) -> Vec<Span> {
    let begun = spans.into_iter().filter(|span| span.from < end);
    begun.map(|span| Span { to: span.to.filter(|to| *to < end), ..span }).collect()
}

/// The samples of queues of each variant's first run, where there are any.
pub(crate) fn overviews(variants: &[Variant]) -> Result<Vec<Option<Overview>>> {
    let read = |run: &PathBuf| Overview::read(run, end_of(run)?);
    variants.iter().map(|variant| variant.runs.first().map_or(Ok(None), read)).collect()
}

/// Queue occupancy over time, where it was sampled: the fullest queue anywhere, and the busiest
/// ports. `None` without samples.
pub(crate) fn waiting(variants: &[Variant]) -> Result<Option<Vec<Figure>>> {
    let overviews = overviews(variants)?;
    let sampled = || overviews.iter().flatten();
    if sampled().next().is_none() {
        return Ok(None);
    }
    let ports = busiest(sampled(), PORTS);
    if ports.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut tracks = Vec::new();
    for overview in &overviews {
        tracks.push(overview.as_ref().map_or(Ok(Vec::new()), |overview| overview.tracks(&ports))?);
    }
    let to = sampled().map(|overview| overview.end).fold(0.0, f64::max);
    let failures = within(spans(variants.iter().flat_map(|variant| &variant.failures)), to);
    let most = sampled().flat_map(|of| of.peaks.values()).copied().max().unwrap_or(0);
    let peaks = peaks(variants)?;
    let figure = |at: usize| {
        let line = |(series, tracks): (usize, &Vec<_>)| {
            Some(Line { steps: true, ..Line::of(series, Vec::clone(tracks.get(at)?)) })
        };
        let port = at.checked_sub(1).map(|at| &ports[at]);
        let caption = port.map_or("The fullest queue anywhere".to_string(), |port| {
            port_name(port, sampled().find_map(|it| it.peers.get(port)))
        });
        let x = Axis::linear(0.0, to, Unit::Time, "time since the start");
        let y = Axis::linear(0.0, most as f64 * 1.04, Unit::Bytes, "waiting bytes");
        let lines = tracks.iter().enumerate().filter_map(line).collect();
        let label = format!("{caption}: bytes over time");
        let chart = Chart { spans: failures.clone(), ..Chart::new(x, y, lines, label) };
        let name = if at == 0 { "queue".to_string() } else { format!("queue-{at}") };
        let highest = (at == 1).then(|| "the highest peak of a single port".to_string());
        let contents = port.and_then(|port| peaks.get(port)).map(contents);
        let below: Vec<String> = highest.into_iter().chain(contents).collect();
        Figure::of(caption, below.join(": "), chart).named(name)
    };
    Ok(Some((0..=ports.len()).map(figure).collect()))
}

/// The fullest sample of each port in the first run of any variant, where it has contents.
fn peaks(variants: &[Variant]) -> Result<BTreeMap<Port, QueuePeak>> {
    let mut peaks: BTreeMap<Port, QueuePeak> = BTreeMap::new();
    for run in variants.iter().filter_map(|variant| variant.runs.first()) {
        for peak in Summary::read(run)?.queue_peaks {
            let port = (peak.node.clone(), u64::from(peak.port));
            if peaks.get(&port).is_none_or(|highest| highest.bytes < peak.bytes) {
                peaks.insert(port, peak);
            }
        }
    }
    Ok(peaks)
}

/// The flows that made a peak, of many the largest ones.
fn contents(peak: &QueuePeak) -> String {
    let share = |bytes: u64| percent(Some(bytes as f64 / peak.bytes.max(1) as f64));
    let named = |it: &FlowShare| {
        format!("{} flow {} (host{} → host{})", share(it.bytes), it.flow, it.src, it.dst)
    };
    let (shown, others) = peak.flows.split_at(peak.flows.len().min(SHOWN));
    let mut parts: Vec<String> = shown.iter().map(named).collect();
    if !others.is_empty() {
        let bytes = others.iter().map(|it| it.bytes).sum();
        parts.push(format!("{} in {} others", share(bytes), others.len()));
    }
    format!("{} at {}: {}", size(peak.bytes), time(Some(peak.at_us)), parts.join(", "))
}

pub(crate) fn queues(variants: &[Variant]) -> Result<Option<Block>> {
    let Some(charts) = waiting(variants)? else { return Ok(None) };
    let below = vec![note(words("queues", &[&of_one_seed(variants)]))];
    let none = "Every queue was empty at every sample.";
    Ok(Some(section_of("queues", "Queues over time", charts, none, below)))
}

/// Where a run ended, in microseconds.
fn end_of(run: &Path) -> Result<f64> {
    Ok(Summary::read(run)?.run.simulated_s * 1e6)
}

fn port_name((node, port): &Port, peer: Option<&String>) -> String {
    let peer = peer.map_or(String::new(), |peer| format!(" → {}", escape(peer)));
    format!("{}{peer}, port {port}", escape(node))
}
