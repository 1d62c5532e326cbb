//! Variants beside each other.

use crate::model::{
    Difference, Estimate, FEW, Noise, Ordered, Tree, VariantResult, clean, each_once,
};
use crate::render::format::{self, NONE, bytes, change, count, percent, ratio};
use crate::render::text::blocks::{Against, Marks, Row, Table, bounds};
use crate::render::text::layout::{NAME, Warnings, distinct, fitted, without_prefix, wrapped};
use crate::render::words::words;
use crate::statistics::censoring::{difference, shown};
use crate::statistics::compare::grouped_warnings;
use crate::statistics::shows::{Column, columns};

/// Variants beside each other, then their differences to the first one, marked where they are
/// beyond the noise.
///
/// The share of flows completed comes first; a mean stands behind the share that it is the mean of.
/// Names that would be cut lose the beginning that all have in common.
pub fn compare_table(results: &[VariantResult], warnings: Warnings) -> String {
    let Some(first) = results.first() else { return "no variants\n".into() };
    let trees: Vec<&Tree<Estimate>> = results.iter().map(|result| &result.statistics).collect();
    let names: Vec<String> = first.shows.iter().map(|(name, _)| name.to_string()).collect();
    let (columns, seeds) = (columns(&names, &trees), first.seeds.len());
    let mut marks = Marks::default();
    let (names, prefix) = without_prefix(results.iter().map(row_name).collect());
    let row = |(at, (result, name)): (usize, (&VariantResult, String))| Row {
        name,
        cells: vec![percent(result.statistics.share_of_flows())],
        statistics: trees.get(at).copied(),
        against: None,
    };
    let mut rows: Vec<Row<'_>> = results.iter().zip(names).enumerate().map(row).collect();
    for (row, result) in rows.iter_mut().zip(results).skip(1) {
        let of = |differences| Against {
            first: &first.statistics,
            differences,
            cells: vec![share_cell(first, result, differences)],
        };
        row.against = result.differences.as_ref().map(of);
    }
    let table = Table {
        name: "variant",
        heads: &[["flows", "done"]],
        rows,
        title: format!("\nDifference to {}, seed by seed:", clean(&first.variant)),
        has_spread: false,
        has_halves: results.len() == 1 && seeds > 1,
    };
    let mut lines = table.lines(&columns, &mut marks);
    let some: Vec<String> = first.seeds.iter().take(12).map(u64::to_string).collect();
    let more = if seeds > 12 { ", …" } else { "" };
    let what = if seeds == 1 { "seed" } else { "means over seeds" };
    lines.push(format!("\n{what} {}{more}; times are FCT unless QCT is said", some.join(", ")));
    if let Some(prefix) = prefix {
        lines.extend(wrapped("names", &format!("in the table are without their \"{prefix}\"")));
    }
    lines.extend(bounds(&trees, &columns));
    if results.len() > 1 {
        lines.extend(marks.legend(seeds));
        lines.extend(needed(results, &columns));
    } else if seeds > 1 {
        let of = if seeds < FEW { "range" } else { "95 % interval" };
        lines.extend(wrapped("±", &format!("half of the {of} over {seeds} seeds")));
    }
    lines.extend(few(&trees, seeds, &columns));
    lines.extend(verdicts(results, &columns));
    let ended = results.iter().filter(|result| result.status != crate::Status::Complete);
    lines.extend(ended.map(|it| format!("{}: {}", clean(&it.variant), it.status.name())));
    lines.extend(warnings.lines(&grouped_warnings(results)));
    lines.join("\n") + "\n"
}

/// A paragraph a variant: the shown numbers whose change is beyond the noise, the better ones
/// first. Fewer than six seeds give none, since they have no interval.
fn verdicts(results: &[VariantResult], columns: &[Column]) -> Vec<String> {
    let Some((first, others)) = results.split_first() else { return Vec::new() };
    let mut lines = Vec::new();
    for result in others {
        let of = |column: &Column| {
            let less_is_better = column.less_is_better?;
            let of =
                difference(first, result, &column.path).filter(|of| of.noise == Noise::Beyond)?;
            let number = |of: &VariantResult| {
                shown(&of.statistics, &column.path).text(|number| format::of(column.form, number))
            };
            let (was, is, change) = (number(first), number(result), change_within(&of));
            let text = format!("{} {was} → {is} ({change})", clean(&column.caption));
            Some(((of.mean? < 0.0) == less_is_better, text))
        };
        let changes: Vec<(bool, String)> = columns.iter().filter_map(of).collect();
        let sides = [("better", true), ("worse", false)].into_iter().filter_map(|(name, is)| {
            let own = changes.iter().filter(|(is_better, _)| *is_better == is);
            let own: Vec<&str> = own.map(|(_, text)| text.as_str()).collect();
            (!own.is_empty()).then(|| format!("{name}: {}", own.join(", ")))
        });
        let sides: Vec<String> = sides.collect();
        if !sides.is_empty() {
            lines.extend(wrapped(&clean(&result.variant), &sides.join("; ")));
        }
    }
    if !lines.is_empty() {
        let seeds = first.seeds.len().to_string();
        lines.insert(0, format!("\n{}", words("verdict", &[&clean(&first.variant), &seeds])));
    }
    lines
}

/// The difference, as a share of the first variant's number, that [`needed`] is about.
const MATTERS: f64 = 0.1;

/// About how many seeds separate a difference of a tenth from noise, of the numbers whose
/// difference is within the noise and whose interval is wider than that. A percentile of few
/// samples has none: its spread over six seeds is another over the next six.
fn needed(results: &[VariantResult], columns: &[Column]) -> Option<String> {
    let (first, others) = results.split_first()?;
    let seeds = |column: &Column, result: &VariantResult| {
        let of = difference(first, result, &column.path)?;
        let ([low, high], base) =
            (of.interval?, shown(&first.statistics, &column.path).estimate.mean?);
        let is_measured = of.noise == Noise::Within && of.n >= FEW as u32 && base > 0.0;
        let needed = f64::from(of.n) * libm::pow((high - low) / 2.0 / (MATTERS * base), 2.0);
        (is_measured && needed > f64::from(of.n)).then_some(needed)
    };
    let trees: Vec<&Tree<Estimate>> = results.iter().map(|result| &result.statistics).collect();
    let judged = columns
        .iter()
        .filter(|column| column.form.has_spread() && too_few(&trees, column).is_none());
    let most = judged.filter_map(|column| {
        let all = others.iter().filter_map(|result| seeds(column, result));
        let most = count(Some(two_digits(all.max_by(f64::total_cmp)?)));
        Some(format!("{most} seeds ({})", clean(&column.caption)))
    });
    let most: Vec<String> = most.collect();
    let text = words("needed", &[&(MATTERS * 100.0).to_string(), &most.join(", ")]);
    (!most.is_empty()).then(|| wrapped("within", &text).join("\n"))
}

/// Samples that a percentile takes: ten beyond it, or it is that of single ones. `None`: the key is
/// no percentile.
fn samples(key: &str) -> Option<f64> {
    let digits = key.strip_prefix('p')?;
    let tail = 1.0 - digits.parse::<f64>().ok()? / libm::pow(10.0, digits.len() as f64);
    Some(libm::round(10.0 / tail))
}

/// The samples of a seed that a column's percentile rests on, and their noun, where they are too
/// few; and by how much.
fn too_few(trees: &[&Tree<Estimate>], column: &Column) -> Option<(f64, &'static str, f64)> {
    let path: Vec<&str> = column.path.iter().map(String::as_str).collect();
    let (key, class) = path.split_last()?;
    let (of, noun) = match class {
        ["slowdown", class @ ..] => ([&["fct_us"], class, &["count"]].concat(), "flows"),
        [first, ..] if first.starts_with("qct") => ([class, &["completed"]].concat(), "queries"),
        ["rtt_us", ..] => ([class, &["count"]].concat(), "probes"),
        _ => ([class, &["count"]].concat(), "flows"),
    };
    let has = |tree: &&&Tree<Estimate>| tree.leaf(&path).is_some_and(|it| it.mean.is_some());
    let counts = trees.iter().filter(has).filter_map(|tree| tree.leaf(&of)?.mean);
    let (least, asked) = (counts.min_by(f64::total_cmp)?, samples(key)?);
    (least < asked).then(|| (least, noun, asked / least.max(1.0)))
}

/// How many flows, queries or probes a percentile of a seed rests on, where they are too few.
pub(super) fn few(trees: &[&Tree<Estimate>], seeds: usize, columns: &[Column]) -> Vec<String> {
    let mut longer = 1.0_f64;
    let text = |column: &Column| {
        let (least, noun, times) = too_few(trees, column)?;
        longer = longer.max(times);
        Some(format!("{} rests on {} {noun}", clean(&column.caption), count(Some(least.floor()))))
    };
    let rests: Vec<String> = columns.iter().filter_map(text).collect();
    if rests.is_empty() {
        return Vec::new();
    }
    let of = if seeds > 1 { " of a seed" } else { "" };
    let times = match longer {
        // Rounded up to tenths.
        few if few < 10.0 => format!("{:.1}", libm::ceil(few * 10.0) / 10.0),
        many => count(Some(two_digits(many))),
    };
    wrapped("few", &words("few", &[&rests.join(", "), of, &times]))
}

fn two_digits(n: f64) -> f64 {
    let unit = libm::pow(10.0, (libm::floor(libm::log10(n)) - 1.0).max(0.0));
    libm::ceil(n / unit) * unit
}

/// A relative change and the ends of its interval: `-69%, -72 to -66%`. A change from zero has
/// neither.
fn change_within(difference: &Difference) -> String {
    let text = change(difference.relative);
    let Some(ends) = difference.relative_interval else { return text };
    let [low, high] = ends.map(|end| change(Some(end)));
    let low = if high.ends_with('%') { low.trim_end_matches('%') } else { &low };
    format!("{text}, {low} to {high}")
}

/// A variant's name, and whether its numbers are to be used.
fn row_name(result: &VariantResult) -> String {
    let name = clean(&result.variant);
    if result.status == crate::Status::Invalid { format!("{name} (invalid)") } else { name }
}

/// The change of the share of flows completed, and the difference that marks it.
fn share_cell<'a>(
    first: &VariantResult,
    result: &VariantResult,
    differences: &'a Tree<Difference>,
) -> (String, Option<&'a Difference>) {
    let share = match (result.statistics.share_of_flows(), first.statistics.share_of_flows()) {
        (Some(a), Some(b)) if b > 0.0 => Some(a / b - 1.0),
        _ => None,
    };
    // The share is no statistic of the summary; where as many flows started, it follows from the
    // flows completed.
    let as_many =
        differences.leaf(&["flows", "started"]).is_some_and(|d| d.interval == Some([0.0, 0.0]));
    (change(share), differences.leaf(&["flows", "completed"]).filter(|_| as_many))
}

/// Variants beside each other that a table by size has room for.
const BESIDE: usize = 3;

const PERCENTILES: [&str; 3] = ["p50", "p95", "p99"];

/// Slowdown by flow size, a block of variants after the other: means over seeds.
pub fn sizes_table(results: &[VariantResult]) -> String {
    let mut lines = vec!["slowdown by flow size (p50, p95, p99 of the completed)".to_string()];
    let (names, _) = without_prefix(results.iter().map(|result| clean(&result.variant)).collect());
    for (block, variants) in results.chunks(BESIDE).zip(names.chunks(BESIDE)) {
        let variants: Vec<&str> = variants.iter().map(String::as_str).collect();
        let heads = distinct(&variants, NAME).into_iter();
        let heads = heads.flat_map(|name| [name, String::new(), String::new()]);
        let keys = ["flows", "up to"].into_iter().chain(block.iter().flat_map(|_| PERCENTILES));
        let mut rows: Vec<Vec<String>> = vec![
            [String::new(), String::new()].into_iter().chain(heads).collect(),
            keys.map(String::from).collect(),
        ];
        let bins = block.iter().filter_map(|of| of.statistics.branch(&["slowdown_by_size"]));
        let names = each_once(bins.flat_map(Ordered::iter).map(|(name, _)| name));
        for name in names {
            let number = |result: &VariantResult, key: &str| {
                result.statistics.leaf(&["slowdown_by_size", name, key])?.mean
            };
            let to = block.iter().find_map(|result| number(result, "to_bytes"));
            let to = to.map_or(NONE.into(), |to| bytes(to.round() as u64));
            let cells =
                block.iter().flat_map(|result| PERCENTILES.map(|key| ratio(number(result, key))));
            rows.push([name.to_string(), to].into_iter().chain(cells).collect());
        }
        lines.push(String::new());
        lines.extend(fitted(rows));
    }
    lines.join("\n") + "\n"
}
