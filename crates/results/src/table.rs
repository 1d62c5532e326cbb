//! Results as text: one run, and variants beside each other, at most 100 columns wide.
//!
//! Invariant: plain text without colour or control characters, whatever names a scenario gives.

use crate::compare::{VariantResult, grouped_warnings};
use crate::format::{NONE, bytes, change, count, digits, percent, ratio, time, whole};
use crate::summary::{Fct, Summary};

/// Longest name in a table; a longer one loses its middle.
const NAME: usize = 20;

/// One column of the compare table: its head, the path of its number in the summary, and the form.
pub(crate) struct Figure {
    /// Two lines.
    pub head: [&'static str; 2],
    /// In the summary.
    pub path: &'static [&'static str],
    /// How it is shown.
    pub form: fn(Option<f64>) -> String,
}

const fn figure(head: [&'static str; 2], path: &'static [&'static str], form: fn(Option<f64>) -> String) -> Figure {
    Figure { head, path, form }
}

/// What variants are compared by. The share of flows completed comes first and is made of two numbers.
pub(crate) const FIGURES: [Figure; 10] = [
    figure(["mice", "p50"], &["fct_us", "mice", "p50"], time),
    figure(["mice", "p99"], &["fct_us", "mice", "p99"], time),
    figure(["eleph.", "p50"], &["fct_us", "elephants", "p50"], time),
    figure(["all", "mean"], &["fct_us", "all", "mean"], time),
    figure(["QCT", "mean"], &["qct_us", "mean"], time),
    figure(["QCT", "p99"], &["qct_us", "p99"], time),
    figure(["QCT", "done"], &["qct_us", "completed_fraction"], percent),
    figure(["", "drops"], &["packets", "dropped"], count),
    figure(["", "marks"], &["packets", "ecn_marked"], count),
    figure(["time-", "outs"], &["timeouts"], count),
];

/// The share of flows completed.
pub(crate) fn completed(result: &VariantResult) -> Option<f64> {
    let number = |key| result.statistics.leaf(&["flows", key])?.mean;
    let (completed, started): (f64, f64) = (number("completed")?, number("started")?);
    (started > 0.0).then(|| completed / started)
}

/// One run, as text.
pub fn run_table(summary: &Summary) -> String {
    let mut lines = vec![title(summary), String::new()];
    let head = ["class", "flows", "open", "mean", "p50", "p90", "p99", "p99.9", "max", "slow p50", "p99"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (class, fct) in summary.fct_us.iter() {
        rows.push(fct_row(class, fct, summary));
    }
    let qct = &summary.qct_us;
    if qct.started > 0 {
        let open = qct.started - qct.completed.min(qct.started);
        let mut row = vec!["queries".to_string(), whole(qct.completed), whole(open)];
        row.extend([time(qct.mean), time(qct.p50), String::new(), time(qct.p99), time(qct.p999), time(qct.max)]);
        row.extend([String::new(), String::new()]);
        rows.push(row);
    }
    lines.extend(aligned(&rows));
    lines.push(String::new());
    let packets = &summary.packets;
    lines.push(format!(
        "flows     {} started, {} completed ({}), {} delivered, goodput {}",
        whole(summary.flows.started),
        whole(summary.flows.completed),
        percent((summary.flows.started > 0).then(|| summary.flows.completed as f64 / summary.flows.started as f64)),
        bytes(summary.flows.bytes_delivered),
        summary.flows.goodput_gbps.map_or(NONE.into(), |g| format!("{} Gb/s", digits(g))),
    ));
    let of_packets = [
        ("sent", packets.sent),
        ("delivered", packets.delivered),
        ("dropped", packets.dropped),
        ("marked", packets.ecn_marked),
        ("deflected", packets.deflected),
        ("sent again", packets.retransmitted),
        ("out of order", packets.out_of_order),
    ];
    lines.extend(listed("packets", &of_packets.map(|(name, n)| format!("{} {name}", whole(n)))));
    let drops: Vec<String> =
        packets.dropped_by.iter().filter(|(_, n)| **n > 0).map(|(name, n)| format!("{} {name}", whole(*n))).collect();
    lines.extend(listed("drops", if drops.is_empty() { &[] } else { &drops }));
    lines.extend(other_lines(summary));
    lines.join("\n") + "\n"
}

fn title(summary: &Summary) -> String {
    let variant = summary.variant.as_ref().map_or(String::new(), |v| format!(" · {}", clean(v)));
    let world = serde_json::to_string(&summary.world).unwrap_or_default();
    let world = world.trim_matches('"');
    format!("{}{variant} · seed {} · {world} · {}", clean(&summary.name), summary.seed, summary.status.name())
}

fn fct_row(class: &str, fct: &Fct, summary: &Summary) -> Vec<String> {
    let slowdown = summary.slowdown.get(class);
    let times = [fct.mean, fct.p50, fct.p90, fct.p99, fct.p999, fct.max];
    let mut row = vec![short(class), whole(fct.count), whole(fct.unfinished)];
    row.extend(times.map(time));
    row.push(ratio(slowdown.and_then(|s| s.p50)));
    row.push(ratio(slowdown.and_then(|s| s.p99)));
    row
}

/// Timeouts, pauses, probes, mechanisms, cost, audit, warnings.
fn other_lines(summary: &Summary) -> Vec<String> {
    let mut lines = listed(
        "other",
        &[
            format!("{} timeouts", whole(summary.timeouts)),
            format!("{} PAUSE frames", whole(summary.pause_frames)),
            format!("{} overlay pauses", whole(summary.overlay_pauses)),
            format!("fairness (Jain) {}", ratio(summary.fairness_jain)),
        ],
    );
    let rtt = &summary.rtt_us;
    if rtt.count > 0 {
        let parts = [("p50", rtt.p50), ("p99", rtt.p99), ("p99.9", rtt.p999)].map(|(n, v)| format!("{n} {}", time(v)));
        lines.extend(listed("probes", &[vec![format!("{} round trips", whole(rtt.count))], parts.to_vec()].concat()));
    }
    for (name, counters) in &summary.mechanisms {
        let counters: Vec<_> = counters.iter().map(|(key, n)| format!("{} {}", whole(*n), clean(key))).collect();
        lines.extend(listed(&short(name), &counters));
    }
    let run = &summary.run;
    lines.extend(listed(
        "run",
        &[
            format!("{:.2} s wall", run.wall_s),
            format!("{} simulated", time(Some(run.simulated_s * 1e6))),
            format!("{} packet-hops", whole(run.packet_hops)),
            format!("{} packet-hops/s", count(Some(run.packet_hops_per_s.round()))),
            run.peak_rss_bytes.map_or("memory unknown".into(), |n| format!("{} of memory", bytes(n))),
            format!("{} thread{}", run.threads, if run.threads == 1 { "" } else { "s" }),
        ],
    ));
    let audit = if summary.audit.conserved { "packets and bytes are conserved" } else { "NOT CONSERVED" };
    lines.push(format!("audit     {audit}"));
    for warning in &summary.warnings {
        lines.extend(wrapped("warning", &clean(warning)));
    }
    lines
}

/// Variants beside each other, then their differences to the first one.
pub fn compare_table(results: &[VariantResult]) -> String {
    let Some(first) = results.first() else { return "no variants\n".into() };
    let heads = |line: usize| {
        let start = [["", "variant"][line].to_string(), ["flows", "done"][line].to_string()];
        start.into_iter().chain(FIGURES.iter().map(|f| f.head[line].to_string())).collect::<Vec<_>>()
    };
    let mut rows = vec![heads(0), heads(1)];
    for result in results {
        let mut row = vec![short(&result.variant), percent(completed(result))];
        row.extend(FIGURES.iter().map(|f| (f.form)(result.statistics.leaf(f.path).and_then(|e| e.mean))));
        rows.push(row);
    }
    let values = rows.len();
    for result in &results[1..] {
        let Some(differences) = &result.differences else { continue };
        let share = match (completed(result), completed(first)) {
            (Some(a), Some(b)) if b > 0.0 => Some(a / b - 1.0),
            _ => None,
        };
        let mut row = vec![short(&result.variant), change(share)];
        row.extend(FIGURES.iter().map(|f| {
            let difference = differences.leaf(f.path);
            // From nothing to something has no percentage; nothing to nothing is no change.
            let unchanged = difference.is_some_and(|d| d.mean == Some(0.0));
            if unchanged { "0%".into() } else { change(difference.and_then(|d| d.relative)) }
        }));
        rows.push(row);
    }
    let mut lines = aligned(&rows);
    if lines.len() > values {
        lines.insert(values, format!("\nDifference to {}, seed by seed:", clean(&first.variant)));
    }
    let seeds: Vec<String> = first.seeds.iter().take(12).map(u64::to_string).collect();
    let more = if first.seeds.len() > 12 { ", …" } else { "" };
    let what = if first.seeds.len() == 1 { "seed" } else { "means over seeds" };
    lines.push(format!("\n{what} {}{more}; times are FCT unless QCT is said", seeds.join(", ")));
    for result in results {
        if result.status != crate::Status::Complete {
            lines.push(format!("{}: {}", clean(&result.variant), result.status.name()));
        }
    }
    for warning in grouped_warnings(results) {
        lines.extend(wrapped("warning", &clean(&warning)));
    }
    lines.join("\n") + "\n"
}

/// Columns of equal width: the first to the left, the others to the right, one or two spaces apart.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().map(|row| row.get(at).map_or(0, |c| c.chars().count())).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let wide = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
    let gap = if wide <= 100 { "  " } else { " " };
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join(gap).trim_end().to_string()
    };
    rows.iter().map(line).collect()
}

/// `name      a, b, c`, broken before column 100.
fn listed(name: &str, parts: &[String]) -> Vec<String> {
    if parts.is_empty() {
        return vec![format!("{name:<9} none")];
    }
    let last = parts.len() - 1;
    let with_commas =
        parts.iter().enumerate().map(|(at, part)| if at < last { format!("{part},") } else { part.clone() });
    fill(name, with_commas)
}

/// `name      text`, broken at spaces before column 100.
fn wrapped(name: &str, text: &str) -> Vec<String> {
    fill(name, text.split_whitespace().map(String::from))
}

fn fill(name: &str, parts: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines = vec![format!("{name:<9}")];
    for part in parts {
        let current = lines.last_mut().map_or(0, |line| line.chars().count());
        if current > 10 && current + 1 + part.chars().count() > 99 {
            lines.push(" ".repeat(9));
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(&part);
        }
    }
    lines
}

/// A name without characters that would move the cursor or change colours.
pub(crate) fn clean(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A name of at most [`NAME`] characters: both ends of a longer one.
fn short(name: &str) -> String {
    let chars: Vec<char> = clean(name).chars().collect();
    if chars.len() <= NAME {
        return chars.into_iter().collect();
    }
    let (front, back) = (NAME / 2, NAME - NAME / 2 - 1);
    let mut text: String = chars[..front].iter().collect();
    text.push('…');
    text.extend(&chars[chars.len() - back..]);
    text
}
