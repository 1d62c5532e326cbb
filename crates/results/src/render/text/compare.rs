//! Variants beside each other.

use crate::model::{Difference, Estimate, FEW, Noise, Ordered, Tree, VariantResult, clean};
use crate::render::format::{NONE, bytes, change, count, percent, ratio};
use crate::render::text::blocks::{AT_LEAST, Marks, Rows, blocks, difference_cell, half};
use crate::render::text::layout::{NAME, Warnings, distinct, fitted, without_prefix, wrapped};
use crate::statistics::censoring::{difference_of, shown};
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
    let columns = columns(&names, &trees);
    let mut marks = Marks::default();
    let title = format!("\nDifference to {}, seed by seed:", clean(&first.variant));
    let (names, prefix) = without_prefix(results.iter().map(row_name).collect());
    let rows = |block: &[Column], is_first: bool, marks: &mut Marks| {
        compare_rows(results, &names, block, is_first, marks)
    };
    let mut lines = blocks(&columns, &title, &mut marks, &rows);
    let seeds: Vec<String> = first.seeds.iter().take(12).map(u64::to_string).collect();
    let more = if first.seeds.len() > 12 { ", …" } else { "" };
    let what = if first.seeds.len() == 1 { "seed" } else { "means over seeds" };
    lines.push(format!("\n{what} {}{more}; times are FCT unless QCT is said", seeds.join(", ")));
    if let Some(prefix) = prefix {
        lines.extend(wrapped("names", &format!("in the table are without their \"{prefix}\"")));
    }
    let has_bounds = |result: &VariantResult| {
        columns.iter().any(|column| shown(&result.statistics, &column.at()).at_least)
    };
    if results.iter().any(has_bounds) {
        lines.extend(wrapped("\u{2265}", AT_LEAST));
    }
    if results.len() > 1 {
        lines.extend(marks.legend(first.seeds.len()));
        lines.extend(needed(results, &columns));
    } else if first.seeds.len() > 1 {
        let of = if first.seeds.len() < FEW { "range" } else { "95 % interval" };
        lines.extend(wrapped("±", &format!("half of the {of} over {} seeds", first.seeds.len())));
    }
    lines.extend(few(&trees, first.seeds.len(), &columns));
    lines.extend(verdicts(results, &columns));
    for result in results {
        if result.status != crate::Status::Complete {
            lines.push(format!("{}: {}", clean(&result.variant), result.status.name()));
        }
    }
    lines.extend(warnings.lines(&grouped_warnings(results)));
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
            let Some(of) = of.filter(|of| of.noise == Noise::Beyond) else { continue };
            let Some(mean) = of.mean else { continue };
            let number = |tree: &Tree<Estimate>| shown(tree, &path).text(|n| column.form.text(n));
            let (was, is) = (number(&first.statistics), number(&result.statistics));
            let text = format!("{} {was} → {is} ({})", clean(&column.caption), change_within(&of));
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
            format!(
                "\nVerdict: changes from {} beyond the noise, with 95 % intervals over {} seeds",
                clean(&first.variant),
                first.seeds.len()
            ),
        );
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
        let (path, differences) = (column.at(), result.differences.as_ref()?);
        let of = difference_of(&first.statistics, &result.statistics, differences, &path)?;
        let ([low, high], base) = (of.interval?, shown(&first.statistics, &path).estimate.mean?);
        let is_measured = of.noise == Noise::Within && of.n >= FEW as u32 && base > 0.0;
        let needed = f64::from(of.n) * libm::pow((high - low) / 2.0 / (MATTERS * base), 2.0);
        (is_measured && needed > f64::from(of.n)).then_some(needed)
    };
    let trees: Vec<&Tree<Estimate>> = results.iter().map(|result| &result.statistics).collect();
    let judged = columns
        .iter()
        .filter(|column| column.form.has_spread() && too_few(&trees, column).is_none());
    let most = judged.filter_map(|column| {
        let most =
            others.iter().filter_map(|result| seeds(column, result)).max_by(f64::total_cmp)?;
        Some(format!("{} seeds ({})", count(Some(two_digits(most))), clean(&column.caption)))
    });
    let most: Vec<String> = most.collect();
    let text =
        format!("at a first estimate a difference of {} % would need about", MATTERS * 100.0);
    (!most.is_empty())
        .then(|| wrapped("within", &format!("the noise: {text} {}", most.join(", "))).join("\n"))
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
    let path = column.at();
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
    let rests = rests.join(", ");
    let text = format!(
        "{rests}{of}; a percentile takes ten beyond it: make runs, with a warm-up, some {} times \
         as long before you add seeds",
        if longer < 10.0 { tenths(longer) } else { count(Some(two_digits(longer))) }
    );
    wrapped("few", &text)
}

/// Rounded up to tenths.
fn tenths(n: f64) -> String {
    format!("{:.1}", libm::ceil(n * 10.0) / 10.0)
}

/// Rounded up to two digits.
fn two_digits(n: f64) -> f64 {
    let unit = libm::pow(10.0, (libm::floor(libm::log10(n)) - 1.0).max(0.0));
    libm::ceil(n / unit) * unit
}

/// A relative change and the ends of its interval: `-69%, -72 to -66%`. A change from zero has
/// neither.
fn change_within(difference: &Difference) -> String {
    let text = change(difference.relative);
    match difference.relative_interval.map(|ends| ends.map(|end| change(Some(end)))) {
        Some([low, high]) if high.ends_with('%') => {
            format!("{text}, {} to {high}", low.trim_end_matches('%'))
        }
        Some([low, high]) => format!("{text}, {low} to {high}"),
        None => text,
    }
}

fn compare_rows(
    results: &[VariantResult],
    names: &[String],
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
    for (result, name) in results.iter().zip(names) {
        let mut row = vec![name.clone()];
        row.extend(is_first.then(|| percent(result.statistics.share_of_flows())));
        let number =
            |column: &Column| shown(&result.statistics, &column.at()).text(|n| column.form.text(n));
        row.extend(columns.iter().map(number));
        rows.push(row);
    }
    if let [only] = results
        && only.seeds.len() > 1
    {
        let mut row = vec!["±".to_string()];
        row.extend(is_first.then(String::new));
        row.extend(
            columns
                .iter()
                .map(|column| half(&shown(&only.statistics, &column.at()).estimate, column.form)),
        );
        rows.push(row);
    }
    let values = rows.len();
    let Some((first, others)) = results.split_first() else { return (rows, values) };
    for (result, name) in others.iter().zip(&names[1..]) {
        let Some(differences) = &result.differences else { continue };
        let mut row = vec![name.clone()];
        row.extend(is_first.then(|| share_cell(first, result, differences, marks)));
        let of = (&first.statistics, &result.statistics, differences);
        row.extend(columns.iter().map(|column| difference_cell(of, column, marks)));
        rows.push(row);
    }
    (rows, values)
}

/// A variant's name, and whether its numbers are to be used.
fn row_name(result: &VariantResult) -> String {
    let name = clean(&result.variant);
    if result.status == crate::Status::Invalid { format!("{name} (invalid)") } else { name }
}

/// The change of the share of flows completed.
fn share_cell(
    first: &VariantResult,
    result: &VariantResult,
    differences: &Tree<Difference>,
    marks: &mut Marks,
) -> String {
    let share = match (result.statistics.share_of_flows(), first.statistics.share_of_flows()) {
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

/// Variants beside each other that a table by size has room for.
const BESIDE: usize = 3;

/// Slowdown by flow size, a block of variants after the other: means over seeds.
pub fn sizes_table(results: &[VariantResult]) -> String {
    let mut lines = vec!["slowdown by flow size (p50, p95, p99 of the completed)".to_string()];
    let (names, _) = without_prefix(results.iter().map(|result| clean(&result.variant)).collect());
    for (block, variants) in results.chunks(BESIDE).zip(names.chunks(BESIDE)) {
        let variants: Vec<&str> = variants.iter().map(String::as_str).collect();
        let heads = distinct(&variants, NAME).into_iter();
        let heads = heads.flat_map(|name| [name, String::new(), String::new()]);
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
