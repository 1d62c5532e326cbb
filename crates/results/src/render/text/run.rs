//! Results as text: one run, and variants beside each other, at most 100 columns wide.
//!
//! Invariant: plain text without colour or control characters, whatever names a scenario gives.

use crate::model::ordered::Ordered;
use crate::model::summary::Summary;
use crate::render::format::{NONE, bytes, change, count, digits, percent, ratio, time, whole};
use crate::statistics::censoring::{difference_of, shown};
use crate::statistics::compare::{
    Difference, Estimate, Noise, Tree, VariantResult, grouped_warnings, statistics,
};
use crate::statistics::resampling::FEW;
use crate::statistics::shows::{Column, columns};

/// Longest name in a table; a longer one loses its middle.
const NAME: usize = 20;
/// Shortest that a name is made where columns are wide.
const NAME_LEAST: usize = 8;
/// Columns of a table at most.
const WIDTH: usize = 100;

/// What `≥` says in tables.
pub(crate) const AT_LEAST: &str =
    "at least: what was open at the end counts with its age, and takes longer";

/// The share of flows completed.
pub(crate) fn completed(result: &VariantResult) -> Option<f64> {
    let number = |key| result.statistics.leaf(&["flows", key])?.mean;
    let (completed, started): (f64, f64) = (number("completed")?, number("started")?);
    (started > 0.0).then(|| completed / started)
}

/// One run, as text.
pub fn run_table(summary: &Summary) -> String {
    let mut lines = vec![title(summary), String::new()];
    lines.extend(classes(summary));
    lines.extend(chosen(summary));
    lines.push(String::new());
    let packets = &summary.packets;
    let not_started = match summary.flows.not_started {
        0 => String::new(),
        n => format!("{} never started, ", whole(n)),
    };
    lines.push(format!(
        "flows     {} started, {} completed ({}), {}{} delivered, goodput {}",
        whole(summary.flows.started),
        whole(summary.flows.completed),
        percent(
            (summary.flows.started > 0)
                .then(|| summary.flows.completed as f64 / summary.flows.started as f64)
        ),
        not_started,
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
    let drops: Vec<String> = packets
        .dropped_by
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(name, n)| format!("{} {name}", whole(*n)))
        .collect();
    lines.extend(listed("drops", if drops.is_empty() { &[] } else { &drops }));
    lines.extend(other_lines(summary));
    lines.join("\n") + "\n"
}

fn title(summary: &Summary) -> String {
    let variant = summary.variant.as_ref().map_or(String::new(), |v| format!(" · {}", clean(v)));
    let world = serde_json::to_string(&summary.world).unwrap_or_default();
    let world = world.trim_matches('"');
    format!(
        "{}{variant} · seed {} · {world} · {}",
        clean(&summary.name),
        summary.seed,
        summary.status.name()
    )
}

/// The numbers that the scenario shows.
fn chosen(summary: &Summary) -> Vec<String> {
    if summary.shows.is_empty() {
        return Vec::new();
    }
    let tree = statistics(summary);
    let names: Vec<String> = summary.shows.iter().map(|(name, _)| name.to_string()).collect();
    let number = |column: &Column| {
        let value = shown(&tree, &column.at()).text(|number| column.form.text(number));
        format!("{} {value}", clean(&column.name))
    };
    let parts: Vec<String> = columns(&names, &[&tree]).iter().map(number).collect();
    [vec![String::new()], listed("shows", &parts)].concat()
}

/// Completion times by class, with the queries'.
fn classes(summary: &Summary) -> Vec<String> {
    const TIMES: [&str; 7] = ["mean", "p50", "p90", "p95", "p99", "p999", "max"];
    const SLOWDOWNS: [&str; 3] = ["p50", "p95", "p99"];
    let heads = |text: &str| text.split(' ').map(|cell| cell.replace('_', "")).collect::<Vec<_>>();
    let mut rows = vec![
        heads("_ _ _ _ _ _ _ _ _ _ slow slow slow"),
        heads("class flows open mean p50 p90 p95 p99 p99.9 max p50 p95 p99"),
    ];
    let of = |class: Option<&Tree<Estimate>>,
              keys: &[&str],
              form: fn(Option<f64>) -> String|
     -> Vec<String> {
        let text = |key: &&str| class.map_or(NONE.into(), |class| shown(class, &[key]).text(form));
        keys.iter().map(text).collect()
    };
    let numbers = statistics(summary);
    let branch = |object: &str| numbers.branch(&[object]).map(Ordered::iter).into_iter().flatten();
    let slowdowns =
        branch("slowdown").map(|(_, slowdown)| Some(slowdown)).chain(std::iter::repeat(None));
    for (((class, times), slowdown), (_, fct)) in
        branch("fct_us").zip(slowdowns).zip(summary.fct_us.iter())
    {
        let row = vec![short(class), whole(fct.count), whole(fct.unfinished)];
        rows.push([row, of(Some(times), &TIMES, time), of(slowdown, &SLOWDOWNS, ratio)].concat());
    }
    let qct = &summary.qct_us;
    if qct.started > 0 {
        let row = vec![
            "queries".to_string(),
            whole(qct.completed),
            whole(qct.started.saturating_sub(qct.completed)),
        ];
        rows.push(
            [row, of(numbers.at(&["qct_us"]), &TIMES, time), vec![String::new(); SLOWDOWNS.len()]]
                .concat(),
        );
    }
    fitted(rows)
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
        let parts = [
            ("p50", rtt.p50),
            ("p90", rtt.p90),
            ("p95", rtt.p95),
            ("p99", rtt.p99),
            ("p99.9", rtt.p999),
        ];
        let parts = parts.map(|(name, value)| format!("{name} {}", time(value)));
        lines.extend(listed(
            "probes",
            &[vec![format!("{} round trips", whole(rtt.count))], parts.to_vec()].concat(),
        ));
    }
    for (name, counters) in &summary.mechanisms {
        let counters: Vec<_> =
            counters.iter().map(|(key, n)| format!("{} {}", whole(*n), clean(key))).collect();
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
            run.peak_rss_bytes
                .map_or("memory unknown".into(), |n| format!("{} of memory", bytes(n))),
            format!("{} thread{}", run.threads, if run.threads == 1 { "" } else { "s" }),
        ],
    ));
    let audit =
        if summary.audit.conserved { "packets and bytes are conserved" } else { "NOT CONSERVED" };
    lines.push(format!("audit     {audit}"));
    for warning in &summary.warnings {
        lines.extend(wrapped("warning", &clean(warning)));
    }
    lines
}

/// Variants beside each other, then their differences to the first one, marked where they are
/// beyond the noise.
///
/// The share of flows completed comes first; a mean stands behind the share that it is the mean of.
pub fn compare_table(results: &[VariantResult]) -> String {
    let Some(first) = results.first() else { return "no variants\n".into() };
    let trees: Vec<&Tree<Estimate>> = results.iter().map(|result| &result.statistics).collect();
    let names: Vec<String> = first.shows.iter().map(|(name, _)| name.to_string()).collect();
    let columns = columns(&names, &trees);
    let mut marks = Marks::default();
    let title = format!("\nDifference to {}, seed by seed:", clean(&first.variant));
    let rows = |block: &[Column], is_first: bool, marks: &mut Marks| {
        compare_rows(results, block, is_first, marks)
    };
    let mut lines = blocks(&columns, &title, &mut marks, &rows);
    let seeds: Vec<String> = first.seeds.iter().take(12).map(u64::to_string).collect();
    let more = if first.seeds.len() > 12 { ", …" } else { "" };
    let what = if first.seeds.len() == 1 { "seed" } else { "means over seeds" };
    lines.push(format!("\n{what} {}{more}; times are FCT unless QCT is said", seeds.join(", ")));
    let has_bounds = |result: &VariantResult| {
        columns.iter().any(|column| shown(&result.statistics, &column.at()).at_least)
    };
    if results.iter().any(has_bounds) {
        lines.extend(wrapped("\u{2265}", AT_LEAST));
    }
    if results.len() > 1 {
        lines.extend(marks.legend(first.seeds.len()));
    }
    lines.extend(verdicts(results, &columns));
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

/// A paragraph a variant: the shown numbers whose change is beyond the noise, the better ones
/// first. Fewer than six seeds give none, since they have no interval.
fn verdicts(results: &[VariantResult], columns: &[Column]) -> Vec<String> {
    let Some((first, others)) = results.split_first() else { return Vec::new() };
    let mut lines = Vec::new();
    for result in others {
        let Some(differences) = &result.differences else { continue };
        let (mut better, mut worse) = (Vec::new(), Vec::new());
        for column in columns {
            let (path, Some(less_is_better)) = (column.at(), column.less_is_better) else {
                continue;
            };
            let of = difference_of(&first.statistics, &result.statistics, differences, &path);
            let Some(Difference { noise: Noise::Beyond, mean: Some(mean), relative, .. }) = of
            else {
                continue;
            };
            let number = |tree: &Tree<Estimate>| shown(tree, &path).text(|n| column.form.text(n));
            let (was, is) = (number(&first.statistics), number(&result.statistics));
            let text = format!("{} {was} → {is} ({})", clean(&column.caption), change(relative));
            if (mean < 0.0) == less_is_better { better.push(text) } else { worse.push(text) }
        }
        let side = |name: &str, of: &[String]| {
            (!of.is_empty()).then(|| format!("{name}: {}", of.join(", ")))
        };
        let sides: Vec<String> =
            [side("better", &better), side("worse", &worse)].into_iter().flatten().collect();
        if !sides.is_empty() {
            lines.extend(wrapped(&clean(&result.variant), &sides.join("; ")));
        }
    }
    if !lines.is_empty() {
        lines.insert(
            0,
            format!("\nVerdict: changes from {} beyond the noise", clean(&first.variant)),
        );
    }
    lines
}

/// Rows of values and of differences below them, and how many there are of values with their heads.
type Rows = (Vec<Vec<String>>, usize);

fn compare_rows(
    results: &[VariantResult],
    columns: &[Column],
    is_first: bool,
    marks: &mut Marks,
) -> Rows {
    let heads = |line: usize| {
        let start = [["", "variant"][line], ["flows", "done"][line]].map(String::from);
        let start = start.into_iter().take(if is_first { 2 } else { 1 });
        start.chain(columns.iter().map(|column| column.head[line].clone())).collect::<Vec<_>>()
    };
    let mut rows = vec![heads(0), heads(1)];
    for result in results {
        let mut row = vec![clean(&result.variant)];
        row.extend(is_first.then(|| percent(completed(result))));
        let number =
            |column: &Column| shown(&result.statistics, &column.at()).text(|n| column.form.text(n));
        row.extend(columns.iter().map(number));
        rows.push(row);
    }
    let values = rows.len();
    let Some((first, others)) = results.split_first() else { return (rows, values) };
    for result in others {
        let Some(differences) = &result.differences else { continue };
        let mut row = vec![clean(&result.variant)];
        row.extend(is_first.then(|| share_cell(first, result, differences, marks)));
        let of = (&first.statistics, &result.statistics, differences);
        row.extend(columns.iter().map(|column| difference_cell(of, column, marks)));
        rows.push(row);
    }
    (rows, values)
}

/// A table of these columns, in as many blocks as the width asks for. `title` stands above the
/// differences.
pub(crate) fn blocks(
    columns: &[Column],
    title: &str,
    marks: &mut Marks,
    rows: &dyn Fn(&[Column], bool, &mut Marks) -> Rows,
) -> Vec<String> {
    let (mut lines, mut left, mut is_first) = (Vec::new(), columns, true);
    while is_first || !left.is_empty() {
        let mut count = left.len();
        while count > 1 && !fits(&rows(&left[..count], is_first, &mut Marks::default()).0) {
            count -= 1;
        }
        let (block, rest) = left.split_at(count);
        let mut own = Marks::default();
        let (mut rows, values) = rows(block, is_first, &mut own);
        line_up(&mut rows, values, &own);
        let mut text = fitted(rows);
        if text.len() > values {
            text.insert(values, title.to_string());
        }
        if !is_first {
            lines.push(String::new());
        }
        lines.extend(text);
        marks.0.extend(own.0);
        (left, is_first) = (rest, false);
    }
    lines
}

/// Whether rows have room, if need be with names cut short.
fn fits(rows: &[Vec<String>]) -> bool {
    let columns = rows.first().map_or(0, Vec::len);
    (1..columns).map(|at| widest(rows, at) + 1).sum::<usize>() + NAME_LEAST <= WIDTH
}

/// Variants beside each other that a table by size has room for.
const BESIDE: usize = 3;

/// Slowdown by flow size, a block of variants after the other: means over seeds.
pub fn sizes_table(results: &[VariantResult]) -> String {
    let mut lines = vec!["slowdown by flow size (p50, p95, p99 of the completed)".to_string()];
    for block in results.chunks(BESIDE) {
        let heads =
            block.iter().flat_map(|result| [short(&result.variant), String::new(), String::new()]);
        let mut rows = vec![
            [String::new(), String::new()].into_iter().chain(heads).collect::<Vec<_>>(),
            ["flows", "up to"]
                .into_iter()
                .chain(block.iter().flat_map(|_| ["p50", "p95", "p99"]))
                .map(String::from)
                .collect(),
        ];
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in block
            .iter()
            .filter_map(|result| result.statistics.branch(&["slowdown_by_size"]))
            .flat_map(Ordered::iter)
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let number = |result: &VariantResult, key: &str| {
                result.statistics.leaf(&["slowdown_by_size", name, key])?.mean
            };
            let to = block.iter().find_map(|result| number(result, "to_bytes"));
            let mut row =
                vec![name.to_string(), to.map_or(NONE.into(), |to| bytes(to.round() as u64))];
            for result in block {
                row.extend(["p50", "p95", "p99"].map(|key| ratio(number(result, key))));
            }
            rows.push(row);
        }
        lines.push(String::new());
        lines.extend(fitted(rows));
    }
    lines.join("\n") + "\n"
}

/// Which marks a table has.
#[derive(Default)]
pub(crate) struct Marks(Vec<char>);

impl Marks {
    /// The mark of a difference; a blank without one.
    fn of(&mut self, difference: Option<&Difference>) -> char {
        let mark = match difference.map(|difference| difference.noise) {
            Some(Noise::Beyond) => '*',
            Some(Noise::Agreed) => '~',
            Some(Noise::Identical) => '=',
            Some(Noise::Open) => '?',
            Some(Noise::Within | Noise::Unknown) | None => return ' ',
        };
        self.0.push(mark);
        mark
    }

    /// What its marks mean.
    pub fn legend(&self, seeds: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let meanings = [
            (
                '*',
                "beyond the noise: the 95 % interval of the paired difference excludes zero \
                 (without any difference, one figure in 20 is marked)",
            ),
            ('~', "all seeds agree on the sign, but they are too few for a 95 % interval"),
            (
                '=',
                "identical in every seed: the seeds do not vary it, so nothing tells it from noise",
            ),
            ('?', "what was open at the end could undo it"),
        ];
        for (mark, meaning) in meanings {
            if self.0.contains(&mark) {
                lines.extend(wrapped(&mark.to_string(), meaning));
            }
        }
        if seeds < 2 {
            let text =
                "one seed: nothing tells a difference from noise; run more with --seeds 1..10";
            lines.extend(wrapped("note", text));
        } else if seeds < FEW {
            let odds = 1u32 << (seeds - 1);
            let text = format!(
                "{seeds} seeds are few: they all agree by chance one time in {odds}; from {FEW} \
                 on, say --seeds 1..10, differences get 95 % intervals (bootstrap over seeds)"
            );
            lines.extend(wrapped("note", &text));
        } else if !self.0.contains(&'*') {
            lines.extend(wrapped(
                "note",
                "no difference is beyond the noise (95 % intervals, bootstrap over seeds)",
            ));
        }
        lines
    }
}

/// Puts digits above those of differences, which have a mark or a blank behind them, where there is
/// room. The first `values` rows are no differences.
fn line_up(rows: &mut [Vec<String>], values: usize, marks: &Marks) {
    let (above, below) = rows.split_at_mut(values);
    if marks.0.is_empty() || below.is_empty() {
        below.iter_mut().flatten().for_each(|cell| cell.truncate(cell.trim_end().len()));
        return;
    }
    let blank = |rows: &mut [Vec<String>]| {
        rows.iter_mut().for_each(|row| row.iter_mut().skip(1).for_each(|cell| cell.push(' ')));
    };
    blank(above);
    if narrowest(rows) > WIDTH {
        let (above, _) = rows.split_at_mut(values);
        above.iter_mut().flatten().for_each(|cell| cell.truncate(cell.trim_end().len()));
    }
}

/// The least width of a table, but for a name of some length.
fn narrowest(rows: &[Vec<String>]) -> usize {
    const NAME_WANTED: usize = 14;
    let columns = rows.first().map_or(0, Vec::len);
    let name = widest(rows, 0).min(NAME_WANTED);
    (1..columns).map(|at| widest(rows, at) + 1).sum::<usize>() + name
}

fn widest(rows: &[Vec<String>], column: usize) -> usize {
    rows.iter().map(|row| row.get(column).map_or(0, |cell| cell.chars().count())).max().unwrap_or(0)
}

/// The change of the share of flows completed.
fn share_cell(
    first: &VariantResult,
    result: &VariantResult,
    differences: &Tree<Difference>,
    marks: &mut Marks,
) -> String {
    let share = match (completed(result), completed(first)) {
        (Some(a), Some(b)) if b > 0.0 => Some(a / b - 1.0),
        _ => None,
    };
    // The share is no statistic of the summary; where as many flows started, the flows completed
    // tell of it.
    let as_many =
        differences.leaf(&["flows", "started"]).is_some_and(|d| d.interval == Some([0.0, 0.0]));
    let flows = differences.leaf(&["flows", "completed"]).filter(|_| as_many);
    format!("{}{}", change(share), marks.of(flows))
}

/// The change of a number between two, with its mark.
pub(crate) fn difference_cell(
    (first, own, differences): (&Tree<Estimate>, &Tree<Estimate>, &Tree<Difference>),
    column: &Column,
    marks: &mut Marks,
) -> String {
    let difference = difference_of(first, own, differences, &column.at());
    // From nothing to something has no percentage; nothing to nothing is no change.
    let unchanged = difference.is_some_and(|d| d.mean == Some(0.0));
    let text = if unchanged { "0%".into() } else { change(difference.and_then(|d| d.relative)) };
    format!("{text}{}", marks.of(difference.filter(|d| d.mean.is_some()).as_ref()))
}

/// Rows of at most 100 columns: names lose of their middle what is too much.
pub(crate) fn fitted(rows: Vec<Vec<String>>) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let others: usize = (1..columns).map(|at| widest(&rows, at) + 1).sum();
    let limit = NAME.min(WIDTH.saturating_sub(others).max(NAME_LEAST));
    let shortened = rows.iter().map(|row| {
        let name = row.first().map(|name| shortened(name, limit));
        name.into_iter().chain(row.iter().skip(1).cloned()).collect()
    });
    aligned(&shortened.collect::<Vec<Vec<String>>>())
}

/// Columns of equal width: the first to the left, the others to the right, one or two spaces apart.
pub(crate) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns).map(|at| widest(rows, at)).collect();
    let wide = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
    let gap = if wide <= WIDTH { "  " } else { " " };
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
    let with_commas = parts
        .iter()
        .enumerate()
        .map(|(at, part)| if at < last { format!("{part},") } else { part.clone() });
    fill(name, with_commas)
}

/// `name      text`, broken at spaces before column 100.
pub(crate) fn wrapped(name: &str, text: &str) -> Vec<String> {
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
    shortened(&clean(name), NAME)
}

fn shortened(name: &str, limit: usize) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= limit {
        return name.to_string();
    }
    let (front, back) = (limit / 2, limit - limit / 2 - 1);
    let mut text: String = chars[..front].iter().collect();
    text.push('…');
    text.extend(&chars[chars.len() - back..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ordered::Ordered;
    use crate::model::summary::{Fct, Flows, Packets, Qct};

    fn summary(seed: u64, times: f64) -> Summary {
        let fct = Fct {
            count: 9,
            mean: Some(times),
            p50: Some(times),
            p99: Some(times * 9.9),
            ..Fct::default()
        };
        let qct = Qct {
            completed_fraction: Some(0.9996),
            mean: Some(times),
            p99: Some(times),
            ..Qct::default()
        };
        let packets =
            Packets { dropped: 99_000 + seed, ecn_marked: 123_456 * seed, ..Packets::default() };
        let flows = Flows { started: 100_000, completed: 99_999, ..Flows::default() };
        let fct_us = ["all", "mice", "elephants"].map(|class| (class.to_string(), fct.clone()));
        Summary {
            seed,
            flows,
            fct_us: Ordered::from(Vec::from(fct_us)),
            qct_us: qct,
            packets,
            timeouts: 70_001,
            ..Summary::default()
        }
    }

    fn table(seeds: u64, factor: impl Fn(u64) -> f64) -> String {
        let runs = |factor: &dyn Fn(u64) -> f64| {
            (1..=seeds).map(|s| summary(s, 1_230.0 * factor(s))).collect()
        };
        let one: (String, Vec<Summary>) =
            ("a name that is far too long".into(), runs(&|s| 1.0 + s as f64 / 10.0));
        let other = (
            "another name that is far too long".into(),
            runs(&|s| (1.0 + s as f64 / 10.0) * factor(s)),
        );
        compare_table(&crate::compare(&[one, other]).unwrap())
    }

    #[test]
    fn what_is_beyond_the_noise_is_marked_and_explained() {
        let clear = table(8, |_| 1.25);
        assert!(
            clear.contains("+25%*") && clear.contains("\n*         beyond the noise"),
            "{clear}"
        );
        let noise = table(8, |seed| if seed % 2 == 0 { 1.2 } else { 0.8 });
        assert!(
            !noise.contains('*') && noise.contains("no difference is beyond the noise"),
            "{noise}"
        );
        let few = table(3, |_| 1.25);
        assert!(few.contains("+25%~") && few.contains("one time in 4"), "{few}");
        assert!(
            few.contains("0%=") && few.contains("\n=         identical in every seed"),
            "{few}"
        );
        let one = table(1, |_| 1.25);
        assert!(!one.contains('~') && one.contains("one seed"), "{one}");
        for text in [clear, noise, few, one, table(6, |_| 98.765), table(6, |_| 12_345.0)] {
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        }
    }

    #[test]
    fn verdict_names_the_changes_beyond_the_noise_the_better_ones_first() {
        let worse = table(8, |_| 1.25);
        let (_, verdict) =
            worse.split_once("\nVerdict: changes from a name that is far too long").unwrap();
        assert!(verdict.contains("worse: ") && verdict.contains("(+25%)"), "{verdict}");
        assert!(!verdict.contains("better: ") && !verdict.contains("timeouts"), "{verdict}");
        assert!(table(8, |_| 0.5).contains("better: "), "half the time is better");
        for unclear in [table(8, |seed| if seed % 2 == 0 { 1.2 } else { 0.8 }), table(3, |_| 1.25)]
        {
            assert!(!unclear.contains("Verdict"), "{unclear}");
        }
    }
}
