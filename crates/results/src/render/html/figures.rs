//! The charts: completion times with their tails, times by flow size, queues over time.
//!
//! Invariant: every axis has a unit, every chart says what it is of, and what is too little for a
//! percentile is marked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Variant;
use super::axis::Axis;
use super::chart::{Chart, Line, Read, Span};
use super::flows::{Distribution, P99_NEEDS, Times};
use super::headline::{Headline, Strip, headlines, strips};
use super::number::{self, count, percent, ratio, time};
use super::page::{Drawing, Figure, details, empty, end, escape, figures, note, section, table};
use super::queues::{Overview, Port, Track, busiest};
use super::series::swatch;
use super::unit::Unit;
use crate::model::goodput::Recovery;
use crate::model::summary::{QueuePeak, Summary};
use crate::model::{FlowShare, GoodputOverTime, LinkFailure, Ordered, Result, SizeBin};
use crate::render::format::digits;

/// Ports that have a chart of their own.
const PORTS: usize = 3;

/// Flows of a peak that are named.
const SHOWN: usize = 3;

/// The number of variants whose share of open ones is named.
const LISTED: usize = 8;

/// One of a variant's distributions.
type Pick = fn(&Times) -> &Distribution;

/// How completion times are distributed: a chart each of queries, all flows, mice and elephants.
pub(crate) fn times(variants: &[Variant]) -> Vec<Drawing> {
    let (mice, elephants) = variants.first().map_or((0, 0), |variant| variant.times.limits);
    let size = |bytes: u64| number::short(number::bytes(bytes as f64));
    let (small, large) = (size(mice), size(elephants));
    let kinds: [(&str, String, Pick); 4] = [
        ("qct", "Queries".into(), |times| &times.queries),
        ("fct", "All flows".into(), |times| &times.all),
        ("fct-mice", format!("Mice, flows below {small}"), |times| &times.mice),
        ("fct-elephants", format!("Elephants, flows above {large}"), |times| &times.elephants),
    ];
    let chart = |(name, caption, pick)| distribution(name, caption, pick, variants);
    kinds.into_iter().filter_map(chart).collect()
}

/// The section of these charts.
pub(crate) fn distributions(page: &mut String, variants: &[Variant]) {
    section(page, "times", "Completion times");
    let charts: Vec<Figure> = times(variants).iter().map(Figure::from).collect();
    if charts.is_empty() {
        empty(page, "Nothing completed: no flow and no query.");
        return end(page);
    }
    figures(page, &charts);
    let seeds = variants.iter().map(|variant| variant.runs.len()).max().unwrap_or(1);
    let pooled = if seeds > 1 {
        format!(
            " The {seeds} seeds are pooled; a band spans the least and the most of the single \
             seeds."
        )
    } else {
        String::new()
    };
    note(
        page,
        &format!(
            "How long the completed ones took, up to each percentile: each step of the vertical \
             axis from p90 is ten times rarer, and a curve ends at its slowest. Further left is \
             better.{pooled}"
        ),
    );
    end(page);
}

fn distribution(name: &str, caption: String, pick: Pick, variants: &[Variant]) -> Option<Drawing> {
    let what = if name == "qct" { "QCT" } else { "FCT" };
    let of = || variants.iter().map(|variant| pick(&variant.times));
    let x = Axis::log(
        of().flat_map(|d| d.curve.iter().map(|&(time, _)| time)).collect::<Vec<_>>().into_iter(),
        Unit::Time,
        what,
    )?;
    let least =
        of().filter_map(|d| d.curve.last().map(|&(_, share)| share)).min_by(f64::total_cmp)?;
    let line = |(series, d): (usize, &Distribution)| {
        let low = d.band.iter().map(|&(low, _, share)| (low, share));
        let high = d.band.iter().rev().map(|&(_, high, share)| (high, share));
        Line { series, points: d.curve.clone(), band: low.chain(high).collect(), ..Line::default() }
    };
    let lines = of().enumerate().map(line).collect();
    let open = |(series, d): (usize, &Distribution)| {
        let share =
            percent((d.started > 0).then(|| (d.started - d.completed) as f64 / d.started as f64));
        if variants.len() > 1 {
            format!("<i data-v=\"{series}\">{}{share}</i>", swatch(series))
        } else {
            share
        }
    };
    let below = if of().all(|d| d.completed == d.started) {
        "all completed".to_string()
    } else {
        let shares: Vec<String> = of().enumerate().take(LISTED).map(open).collect();
        format!("open and not in it: {}", shares.join(" "))
    };
    let y = Axis::tail(least, "percentile of the completed");
    let label = format!("{caption}: distribution of {what}");
    let chart = Chart { x, y, lines, spans: Vec::new(), read: Read::AtY, label };
    Some(Drawing { name: name.into(), caption, below, chart })
}

/// A chart for each number that is shown: its value of each variant, with the values of single
/// seeds where there are several.
pub(crate) fn numbers(page: &mut String, variants: &[Variant]) {
    let several = variants.iter().any(|variant| variant.seeds.len() > 1);
    if variants.len() < 2 && !several {
        return;
    }
    let trees: Vec<_> = variants.iter().map(|variant| &variant.result.statistics).collect();
    let (is_given, columns) = super::shown_columns(variants);
    let of = |headline: &Headline| {
        let strip = |(series, variant): (usize, &Variant)| {
            let estimate =
                variant.result.statistics.leaf(&headline.at()).copied().unwrap_or_default();
            let seeds = variant
                .seeds
                .iter()
                .filter_map(|(seed, json)| Some((*seed, json.at(&headline.path)?)));
            let scale = headline.scale();
            Strip {
                series,
                name: variant.result.variant.clone(),
                mean: estimate.mean.map(|mean| mean * scale),
                interval: estimate.interval.map(|ends| ends.map(|end| end * scale)),
                seeds: seeds.map(|(seed, value)| (seed, value * scale)).collect(),
                published: None,
            }
        };
        let rows: Vec<Strip> = variants.iter().enumerate().map(strip).collect();
        let is_something = rows.iter().any(|row| row.seeds.iter().any(|(_, value)| *value != 0.0));
        let title = match headline.unit {
            Unit::Percent => "of those started",
            _ if several => "by seed",
            _ => "",
        };
        is_something.then(|| strips(&escape(&headline.name), "", headline.unit, title, &rows))?
    };
    let all: Vec<Figure> = headlines(is_given, &columns, &trees).iter().filter_map(of).collect();
    if all.is_empty() {
        return;
    }
    section(page, "numbers", "Shown numbers");
    figures(page, &all);
    if several {
        note(page, "A pale dot is one seed, the mark their mean, the line its interval.");
    }
    end(page);
}

/// A chart by flow size: caption, unit, which bins, which of their numbers, and whether that is a
/// tail.
type BySize =
    (&'static str, Unit, fn(&Times) -> &Ordered<SizeBin>, fn(&SizeBin) -> Option<f64>, bool);

const BY_SIZE: [BySize; 5] = [
    ("Slowdown p99", Unit::Ratio, |times| &times.slowdown, |bin| bin.p99, true),
    ("Slowdown p95", Unit::Ratio, |times| &times.slowdown, |bin| bin.p95, false),
    ("Slowdown p50", Unit::Ratio, |times| &times.slowdown, |bin| bin.p50, false),
    ("FCT p99", Unit::Time, |times| &times.fct, |bin| bin.p99, true),
    ("FCT p50", Unit::Time, |times| &times.fct, |bin| bin.p50, false),
];

/// Slowdowns and times by the size of flows, a chart for each statistic.
pub(crate) fn by_sizes(variants: &[Variant]) -> Vec<Drawing> {
    BY_SIZE.iter().filter_map(|kind| by_size(kind, variants)).collect()
}

/// The section of these charts.
pub(crate) fn sizes(page: &mut String, variants: &[Variant]) {
    section(page, "sizes", "By flow size");
    let charts: Vec<Figure> = by_sizes(variants).iter().map(Figure::from).collect();
    if charts.is_empty() {
        empty(page, "No flow completed.");
        return end(page);
    }
    figures(page, &charts);
    let pooled =
        if variants.iter().any(|variant| variant.runs.len() > 1) { ", seeds pooled" } else { "" };
    note(
        page,
        &format!(
            "Completed flows in bins of size, each drawn amid its edges{pooled}. \
             <code>size-bins</code> of the scenario says how sizes are cut: by default into 20 \
             bins with as many flows each as sizes allow."
        ),
    );
    details(page, "The bins as a table", |page| bins_table(page, variants));
    end(page);
}

fn by_size(
    (caption, unit, bins, value, is_tail): &BySize,
    variants: &[Variant],
) -> Option<Drawing> {
    // The axes of one unit are the same, so that percentiles can be compared by eye.
    let alike = BY_SIZE.iter().filter(|kind| kind.1 == *unit).flat_map(|kind| {
        variants
            .iter()
            .flat_map(|variant| kind.2(&variant.times).iter())
            .filter_map(|(_, bin)| kind.3(bin))
    });
    let all: Vec<f64> = alike.collect();
    let own =
        || variants.iter().flat_map(|variant| bins(&variant.times).iter().map(|(_, bin)| bin));
    let places: Vec<f64> = own().filter(|bin| value(bin).is_some()).map(SizeBin::middle).collect();
    let x = Axis::log(places.into_iter(), Unit::Bytes, "flow size")?;
    let what = if *unit == Unit::Ratio { "times the FCT alone" } else { "time" };
    let y = Axis::log(all.into_iter(), *unit, what)?;
    let line = |(series, variant): (usize, &Variant)| {
        let of = |(_, bin): (&str, &SizeBin)| {
            Some((bin.middle(), value(bin)?, *is_tail && bin.completed < P99_NEEDS))
        };
        let marks: Vec<_> = bins(&variant.times).iter().filter_map(of).collect();
        Line {
            series,
            points: marks.iter().map(|&(x, y, _)| (x, y)).collect(),
            marks,
            ..Line::default()
        }
    };
    let lines = variants.iter().enumerate().map(line).collect();
    let below = if *is_tail { "hollow: fewer than 100 flows, the largest or nearly" } else { "" };
    let label = format!("{caption} by flow size");
    let chart = Chart { x, y, lines, spans: Vec::new(), read: Read::AtX, label };
    let name = format!("{}-by-size", caption.to_lowercase().replace(' ', "-"));
    Some(Drawing { name, caption: caption.to_string(), below: below.into(), chart })
}

fn bins_table(page: &mut String, variants: &[Variant]) {
    let head = [
        "flows by size",
        "above",
        "up to",
        "completed",
        "open",
        "slowdown mean",
        "p50",
        "p95",
        "p99",
        "FCT p50",
        "FCT p99",
    ];
    let size = |bytes: u64| number::short(number::bytes(bytes as f64));
    // A bin is known by its edges: variants that are cut by different rules may share a name.
    let mut keys: Vec<(u64, u64, &str)> = Vec::new();
    for (name, bin) in variants.iter().flat_map(|variant| variant.times.slowdown.iter()) {
        if !keys.iter().any(|(above, to, _)| (*above, *to) == (bin.above_bytes, bin.to_bytes)) {
            keys.push((bin.above_bytes, bin.to_bytes, name));
        }
    }
    let mut rows = Vec::new();
    for (above, to, bin_name) in keys {
        if variants.len() > 1 {
            rows.push(vec![escape(bin_name)]);
        }
        for (at, variant) in variants.iter().enumerate() {
            let is_it =
                |(_, bin): &(&str, &SizeBin)| (bin.above_bytes, bin.to_bytes) == (above, to);
            let Some((bin_name, bin)) = variant.times.slowdown.iter().find(is_it) else { continue };
            let fct = variant.times.fct.get(bin_name).copied().unwrap_or_default();
            let name = if variants.len() > 1 {
                swatch(at) + &escape(&variant.result.variant)
            } else {
                escape(bin_name)
            };
            let mut row = vec![name, size(bin.above_bytes), size(bin.to_bytes)];
            row.extend([bin.completed, bin.unfinished].map(|n| count(Some(n as f64))));
            row.extend([bin.mean, bin.p50, bin.p95, bin.p99].map(ratio));
            row.extend([fct.p50, fct.p99].map(time));
            rows.push(row);
        }
    }
    table(page, "", &head.map(String::from), &rows);
}

/// Goodput over time, where it was sampled.
pub(crate) fn rates(variants: &[Variant]) -> Result<Option<Drawing>> {
    let mut lines = Vec::new();
    for (series, variant) in variants.iter().enumerate() {
        let mut runs = Vec::new();
        for run in &variant.runs {
            runs.extend(Summary::read(run)?.goodput_over_time);
        }
        lines.push(goodput_line(series, &GoodputOverTime::total(runs.iter())));
    }
    Ok(goodput_drawing(lines, spans(variants.iter().flat_map(|variant| &variant.failures))))
}

/// The section of this chart.
pub(crate) fn goodput(page: &mut String, variants: &[Variant]) -> Result<()> {
    let Some(drawing) = rates(variants)? else { return Ok(()) };
    section(page, "goodput", "Goodput over time");
    figures(page, &[Figure::from(&drawing)]);
    let several = variants.iter().any(|variant| variant.runs.len() > 1);
    let mean = if several { ", the mean over seeds" } else { "" };
    note(
        page,
        &format!(
            "Application bytes delivered in order, all classes together, between two samples, or \
             over as many as eight full packets take{mean}. A receiver delivers all that waits \
             behind a lost packet at once, when that packet has come again: such a sample can lie \
             above the rate of the links, and those before it lie below."
        ),
    );
    recoveries(page, variants)?;
    end(page);
    Ok(())
}

/// How long the goodput took to come back after each failure, where it was sampled: of several
/// seeds the longest time.
fn recoveries(page: &mut String, variants: &[Variant]) -> Result<()> {
    let mut rows = Vec::new();
    for (series, variant) in variants.iter().enumerate() {
        let mut failures: BTreeMap<u64, Vec<Recovery>> = BTreeMap::new();
        for run in &variant.runs {
            let sampled = Summary::read(run)?.goodput_over_time;
            for recovery in sampled.into_iter().flat_map(|sampled| sampled.recovery) {
                // In picoseconds, for the order.
                failures.entry((recovery.at_us * 1e6) as u64).or_default().push(recovery);
            }
        }
        for seeds in failures.values() {
            let longest = seeds
                .iter()
                .try_fold(0.0_f64, |longest, seed| seed.recovery_us.map(|us| longest.max(us)));
            let before = seeds.iter().map(|seed| seed.before_gbps).sum::<f64>();
            rows.push(vec![
                swatch(series) + &escape(&variant.result.variant),
                time(Some(seeds[0].at_us)),
                format!("{} Gb/s", digits(before / seeds.len() as f64)),
                match longest {
                    Some(0.0) => "it stays there".into(),
                    Some(us) => time(Some(us)),
                    None => "not before the end".into(),
                },
            ]);
        }
    }
    if !rows.is_empty() {
        let head = ["variant", "failure at", "goodput before", "back at 95 % of that after"];
        table(page, "", &head.map(String::from), &rows);
    }
    Ok(())
}

/// Of the middles of periods in microseconds, and the rates of these periods: each from its
/// beginning to its end.
pub(crate) fn goodput_line(series: usize, rates: &[(f64, f64)]) -> Line {
    // The first period begins at zero.
    let half = rates.first().map_or(0.0, |&(middle, _)| middle);
    let begin = rates.iter().map(|&(middle, rate)| (middle - half, rate));
    let end = rates.last().map(|&(middle, rate)| (middle + half, rate));
    Line { series, points: begin.chain(end).collect(), steps: true, ..Line::default() }
}

/// Of lines in microseconds and Gb/s; `None` if they have no points.
pub(crate) fn goodput_drawing(mut lines: Vec<Line>, spans: Vec<Span>) -> Option<Drawing> {
    lines.retain(|line| !line.points.is_empty());
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let to = points().map(|&(at, _)| at).max_by(f64::total_cmp)?;
    let most = points().map(|&(_, rate)| rate).max_by(f64::total_cmp)?;
    let chart = Chart {
        x: Axis::linear(0.0, to, Unit::Time, "time since the start"),
        y: Axis::linear(0.0, most.max(1e-3) * 1.04, Unit::Rate, "goodput of all flows"),
        lines,
        spans: within(spans, to),
        read: Read::AtX,
        label: "Goodput over time".into(),
    };
    let (name, caption) = ("goodput".into(), "Goodput over time".into());
    Some(Drawing { name, caption, below: String::new(), chart })
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
pub(crate) fn waiting(variants: &[Variant]) -> Result<Option<Vec<Drawing>>> {
    let overviews = overviews(variants)?;
    if overviews.iter().all(Option::is_none) {
        return Ok(None);
    }
    let ports = busiest(overviews.iter().flatten(), PORTS);
    if ports.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut tracks = Vec::new();
    for overview in &overviews {
        tracks.push(overview.as_ref().map_or(Ok(Vec::new()), |overview| overview.tracks(&ports))?);
    }
    let to = overviews.iter().flatten().map(|overview| overview.end).fold(0.0, f64::max);
    let failures = within(spans(variants.iter().flat_map(|variant| &variant.failures)), to);
    let most =
        overviews.iter().flatten().flat_map(|o| o.peaks.values()).copied().max().unwrap_or(0);
    let peaks = peaks(variants)?;
    let mut charts = Vec::new();
    for at in 0..=ports.len() {
        let line = |(series, tracks): (usize, &Vec<Track>)| {
            Some(Line { series, points: tracks.get(at)?.clone(), steps: true, ..Line::default() })
        };
        let caption = if at == 0 {
            "The fullest queue anywhere".to_string()
        } else {
            let peer = overviews.iter().flatten().find_map(|it| it.peers.get(&ports[at - 1]));
            port_name(&ports[at - 1], peer)
        };
        let chart = Chart {
            x: Axis::linear(0.0, to, Unit::Time, "time since the start"),
            y: Axis::linear(0.0, most as f64 * 1.04, Unit::Bytes, "waiting bytes"),
            lines: tracks.iter().enumerate().filter_map(line).collect(),
            spans: failures.clone(),
            read: Read::AtX,
            label: format!("{caption}: bytes over time"),
        };
        let name = if at == 0 { "queue".to_string() } else { format!("queue-{at}") };
        let mut below = Vec::new();
        below.extend((at == 1).then(|| "the highest peak of a single port".to_string()));
        below.extend(at.checked_sub(1).and_then(|at| peaks.get(&ports[at])).map(contents));
        charts.push(Drawing { name, caption, below: below.join(": "), chart });
    }
    Ok(Some(charts))
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
    let size = number::short(number::bytes(peak.bytes as f64));
    format!("{size} at {}: {}", time(Some(peak.at_us)), parts.join(", "))
}

/// The section of these charts.
pub(crate) fn queues(page: &mut String, variants: &[Variant]) -> Result<()> {
    let Some(charts) = waiting(variants)? else { return Ok(()) };
    section(page, "queues", "Queues over time");
    if charts.is_empty() {
        empty(page, "Every queue was empty at every sample.");
        end(page);
        return Ok(());
    }
    figures(page, &charts.iter().map(Figure::from).collect::<Vec<_>>());
    let several = variants.iter().any(|variant| variant.runs.len() > 1);
    let seed =
        variants.first().and_then(|variant| variant.result.seeds.first()).copied().unwrap_or(0);
    let which = if several { format!(" Of seed {seed} alone.") } else { String::new() };
    note(
        page,
        &format!(
            "Bytes that wait, without the packet in transmission, as sampled: each step is the \
             most of the samples in its stretch of time, one of 300 or fewer. The ports are those \
             with the highest peaks in any variant.{which}"
        ),
    );
    end(page);
    Ok(())
}

/// Where a run ended, in microseconds.
fn end_of(run: &Path) -> Result<f64> {
    Ok(Summary::read(run)?.run.simulated_s * 1e6)
}

fn port_name((node, port): &Port, peer: Option<&String>) -> String {
    let peer = peer.map_or(String::new(), |peer| format!(" → {}", escape(peer)));
    format!("{}{peer}, port {port}", escape(node))
}
