//! Who wins on what: the figures of all variants, their change against the first one, and whether it is more than noise.
//!
//! A change is beyond the noise if the 95 % interval of the paired difference over the seeds excludes zero. A best value is
//! clear if it differs from every other one: by that interval where one of the two is the first variant, else by intervals
//! of the means that do not overlap.
//!
//! Invariant: nothing is called a difference that the intervals do not bear out, and where there are none the page says so.

use std::fmt::Write;

use super::Variant;
use super::axis::{Axis, Scale, Unit};
use super::chart::{Row, colour, forest, swatch};
use super::number::{change, count, gbps, percent, ratio, time};
use super::page::{details, end, escape, note, section, table, term};
use crate::compare::{Difference, Estimate};

/// Below so many seeds no interval by resampling holds 95 %.
const FEW: u32 = crate::FEW as u32;
/// Variants as columns, as long as they fit.
const COLUMNS: usize = 6;

/// One number that variants are compared by.
struct Figure {
    group: &'static str,
    name: &'static str,
    /// In the summary.
    path: &'static [&'static str],
    form: fn(Option<f64>) -> String,
    less_is_better: Option<bool>,
    term: &'static str,
}

macro_rules! figure {
    ($group:literal, $name:literal, $path:expr, $form:ident, $less:expr, $term:literal) => {
        Figure { group: $group, name: $name, path: &$path, form: $form, less_is_better: $less, term: $term }
    };
}

const LESS: Option<bool> = Some(true);
const MORE: Option<bool> = Some(false);

const FIGURES: [Figure; 22] = [
    figure!("Queries", "completed", ["qct_us", "completed_fraction"], percent, MORE, "open"),
    figure!("Queries", "QCT mean", ["qct_us", "mean"], time, LESS, "QCT"),
    figure!("Queries", "QCT mean, open at horizon", ["qct_us", "mean_restricted"], time, LESS, "mean, open at horizon"),
    figure!("Queries", "QCT p50", ["qct_us", "p50"], time, LESS, "QCT"),
    figure!("Queries", "QCT p99", ["qct_us", "p99"], time, LESS, "QCT"),
    figure!("Probes", "RTT p50", ["rtt_us", "p50"], time, LESS, ""),
    figure!("Probes", "RTT p99", ["rtt_us", "p99"], time, LESS, ""),
    figure!("Flows", "completed", ["flows", "completed"], percent, MORE, "open"),
    figure!("Flows", "FCT mean", ["fct_us", "all", "mean"], time, LESS, "FCT"),
    figure!("Flows", "mice p50", ["fct_us", "mice", "p50"], time, LESS, "mice"),
    figure!("Flows", "mice p99", ["fct_us", "mice", "p99"], time, LESS, "mice"),
    figure!("Flows", "elephants p50", ["fct_us", "elephants", "p50"], time, LESS, "elephants"),
    figure!("Flows", "elephants p99", ["fct_us", "elephants", "p99"], time, LESS, "elephants"),
    figure!("Flows", "slowdown p99", ["slowdown", "all", "p99"], ratio, LESS, "slowdown"),
    figure!("Flows", "goodput", ["flows", "goodput_gbps"], gbps, MORE, "goodput"),
    figure!("Network", "drops", ["packets", "dropped"], count, LESS, "drops"),
    figure!("Network", "timeouts", ["timeouts"], count, LESS, "timeouts"),
    figure!("Network", "sent again", ["packets", "retransmitted"], count, LESS, "sent again"),
    figure!("Network", "out of order", ["packets", "out_of_order"], count, None, ""),
    figure!("Network", "marks", ["packets", "ecn_marked"], count, None, "marks"),
    figure!("Network", "deflected", ["packets", "deflected"], count, None, ""),
    figure!("Network", "PAUSE frames", ["pause_frames"], count, None, ""),
];

/// What can be said of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noise {
    /// The interval excludes zero.
    Beyond,
    /// All seeds agree on the sign, but they are too few for an interval that holds 95 %.
    Agreed,
    /// The interval holds zero.
    Within,
    /// There is none.
    Unknown,
}

impl Noise {
    fn of(difference: &Difference) -> Noise {
        match difference.interval {
            Some([low, high]) if low > 0.0 || high < 0.0 => {
                if difference.n < FEW {
                    Noise::Agreed
                } else {
                    Noise::Beyond
                }
            }
            Some(_) => Noise::Within,
            None => Noise::Unknown,
        }
    }
}

impl Figure {
    fn estimate(&self, variant: &Variant) -> Option<Estimate> {
        let estimate = *variant.result.statistics.leaf(self.path)?;
        if self.path != ["flows", "completed"] {
            return Some(estimate);
        }
        let started = variant.result.statistics.leaf(&["flows", "started"])?.mean.filter(|n| *n > 0.0)?;
        let interval = estimate.interval.map(|ends| ends.map(|end| end / started));
        Some(Estimate { mean: estimate.mean.map(|n| n / started), interval, ..estimate })
    }

    fn value(&self, variant: &Variant) -> Option<f64> {
        self.estimate(variant)?.mean
    }

    fn difference<'a>(&self, variant: &'a Variant) -> Option<&'a Difference> {
        variant.result.differences.as_ref()?.leaf(self.path)
    }

    /// Whether there is anything to show of it.
    fn is_told(&self, variants: &[Variant]) -> bool {
        let values = || variants.iter().filter_map(|variant| self.value(variant));
        let restricted = self.path.last() == Some(&"mean_restricted");
        let some = if self.less_is_better == MORE { values().next().is_some() } else { values().any(|v| v != 0.0) };
        some && (!restricted || variants.iter().any(|v| v.share_of_queries().is_some_and(|share| share < 1.0)))
    }

    /// The variants with the best value, where values differ.
    fn best(&self, variants: &[Variant]) -> Vec<usize> {
        let Some(less) = self.less_is_better else { return Vec::new() };
        let values: Vec<Option<f64>> = variants.iter().map(|variant| self.value(variant)).collect();
        let there = || values.iter().copied().flatten();
        let (Some(least), Some(most)) = (there().min_by(f64::total_cmp), there().max_by(f64::total_cmp)) else {
            return Vec::new();
        };
        let best = if less { least } else { most };
        let is_best = |at: &usize| least != most && values[*at] == Some(best);
        (0..variants.len()).filter(is_best).collect()
    }

    /// Whether the best one differs from every other by more than noise.
    fn is_clear(&self, variants: &[Variant], best: usize) -> bool {
        let apart = |other: usize| {
            let (first, second) = (best.min(other), best.max(other));
            if first == 0 {
                return self.difference(&variants[second]).is_some_and(|d| Noise::of(d) == Noise::Beyond);
            }
            let interval = |at: usize| self.estimate(&variants[at]).filter(|e| e.n >= FEW)?.interval;
            let (Some(a), Some(b)) = (interval(best), interval(other)) else { return false };
            a[1] < b[0] || b[1] < a[0]
        };
        (0..variants.len()).filter(|&other| other != best).all(apart)
    }
}

/// The section.
pub(crate) fn verdict(page: &mut String, variants: &[Variant]) {
    let figures: Vec<&Figure> = FIGURES.iter().filter(|figure| figure.is_told(variants)).collect();
    section(page, "verdict", if variants.len() < 2 { "Key figures" } else { "Verdict" });
    if variants.len() < 2 {
        tiles(page, &figures, variants);
        return end(page);
    }
    let best: Vec<Vec<usize>> = figures.iter().map(|figure| figure.best(variants)).collect();
    lead(page, &figures, &best, variants);
    page.push_str("<div class=\"split\">\n");
    matrix(page, &figures, &best, variants);
    changes(page, &figures, variants);
    page.push_str("</div>\n");
    legend_of_marks(page, variants);
    end(page);
}

/// The figures of a single run.
fn tiles(page: &mut String, figures: &[&Figure], variants: &[Variant]) {
    let mut group = "";
    for figure in figures {
        if figure.group != group {
            page.push_str(if group.is_empty() { "" } else { "</dl>\n" });
            let _ = write!(page, "<h3>{}</h3>\n<dl class=\"tiles\">", figure.group);
            group = figure.group;
        }
        let value = variants.first().and_then(|variant| figure.value(variant));
        let _ = write!(page, "<div><dt>{}</dt><dd>{}</dd></div>", term(figure.name, figure.term), (figure.form)(value));
    }
    page.push_str(if group.is_empty() { "<p class=\"empty\">Nothing was measured.</p>\n" } else { "</dl>\n" });
}

/// One sentence on who wins, and one on what it is worth.
fn lead(page: &mut String, figures: &[&Figure], best: &[Vec<usize>], variants: &[Variant]) {
    let contested = best.iter().filter(|winners| !winners.is_empty()).count();
    let wins: Vec<usize> =
        (0..variants.len()).map(|at| best.iter().filter(|winners| winners.contains(&at)).count()).collect();
    let most = wins.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return page.push_str("<p class=\"lead\">The variants do not differ in any figure.</p>\n");
    }
    let leaders: Vec<usize> = (0..variants.len()).filter(|&at| wins[at] == most).collect();
    let names: Vec<String> =
        leaders.iter().map(|&at| format!("<b>{}</b>", escape(&variants[at].result.variant))).collect();
    let verb = if leaders.len() == 1 { "is best in" } else { "are each best in" };
    let _ = write!(page, "<p class=\"lead\">{} {verb} {most} of {contested} figures", names.join(" and "));
    if let [leader] = leaders.as_slice()
        && *leader > 0
    {
        let told = ["QCT p99", "mice p99", "elephants p50"];
        let of = |name: &&str| {
            let figure = figures.iter().find(|figure| figure.name == *name)?;
            let difference = figure.difference(&variants[*leader])?;
            let sign = if Noise::of(difference) == Noise::Within { " (within the noise)" } else { "" };
            Some(format!("{name} {}{sign}", change(Some(difference.relative?))))
        };
        let told: Vec<String> = told.iter().filter_map(of).collect();
        if !told.is_empty() {
            let _ = write!(page, "; against {}: {}", escape(&variants[0].result.variant), told.join(", "));
        }
    }
    page.push_str(".</p>\n");
    uneven(page, variants);
}

/// Statistics of the completed flatter who completes less: that is said.
fn uneven(page: &mut String, variants: &[Variant]) {
    type Share = fn(&Variant) -> Option<f64>;
    let kinds: [(&str, Share); 2] = [("queries", Variant::share_of_queries), ("flows", Variant::share_of_flows)];
    let of = |(what, share): (&str, Share)| {
        let shares: Vec<f64> = variants.iter().filter_map(share).collect();
        let (least, most) =
            (shares.iter().copied().min_by(f64::total_cmp)?, shares.iter().copied().max_by(f64::total_cmp)?);
        let range = format!("{} to {} of the {what}", percent(Some(least)), percent(Some(most)));
        (most - least > 0.01).then_some(range)
    };
    let told: Vec<String> = kinds.into_iter().filter_map(of).collect();
    if !told.is_empty() {
        let _ = writeln!(
            page,
            "<p class=\"caution\"><b>Unequal completion.</b> Variants completed {}. Means and percentiles are of the completed \
             ones: they flatter whoever leaves slow ones open.</p>",
            told.join(" and ")
        );
    }
}

/// The table: a row a figure, or a row a variant where there are many.
fn matrix(page: &mut String, figures: &[&Figure], best: &[Vec<usize>], variants: &[Variant]) {
    let wins = |at: usize| {
        let n = best.iter().filter(|winners| winners.contains(&at)).count();
        if n == 0 { String::new() } else { format!("<small>best in {n}</small>") }
    };
    let name = |at: usize| format!("{}{}{}", swatch(at), escape(&variants[at].result.variant), wins(at));
    let cell = |row: usize, at: usize| matrix_cell(figures[row], variants, &best[row], at);
    if variants.len() <= COLUMNS {
        let head: Vec<String> = std::iter::once(String::new()).chain((0..variants.len()).map(name)).collect();
        let (mut rows, mut group) = (Vec::new(), "");
        for (row, figure) in figures.iter().enumerate() {
            if figure.group != group {
                group = figure.group;
                rows.push(vec![group.to_string()]);
            }
            let cells = (0..variants.len()).map(|at| cell(row, at));
            rows.push(std::iter::once(term(figure.name, figure.term)).chain(cells).collect());
        }
        return table(page, "verdict", &head, &rows);
    }
    let names = figures.iter().map(|figure| {
        let prefix = if figure.name == "completed" { figure.group } else { "" };
        term(format!("{prefix} {}", figure.name).trim(), figure.term)
    });
    let head: Vec<String> = std::iter::once("variant".to_string()).chain(names).collect();
    let row = |at: usize| std::iter::once(name(at)).chain((0..figures.len()).map(|row| cell(row, at))).collect();
    table(page, "verdict", &head, &(0..variants.len()).map(row).collect::<Vec<_>>());
}

fn matrix_cell(figure: &Figure, variants: &[Variant], best: &[usize], at: usize) -> String {
    let value = (figure.form)(figure.value(&variants[at]));
    let star = match best.contains(&at) {
        true if figure.is_clear(variants, at) => "<span class=\"star\" title=\"best, beyond the noise\">★</span>",
        true => "<span class=\"star\" title=\"best\">☆</span>",
        false => "",
    };
    let class = if best.contains(&at) { " best" } else { "" };
    let Some(difference) = figure.difference(&variants[at]) else {
        return format!("<td class=\"{}\">{star}{value}</td>", class.trim());
    };
    let noise = Noise::of(difference);
    let better = figure.less_is_better.zip(difference.mean).map(|(less, mean)| (mean < 0.0) == less);
    let tone = match (noise, better) {
        (_, _) if difference.mean == Some(0.0) => "same",
        (Noise::Within, _) => "within",
        (Noise::Beyond, Some(true)) => "better",
        (Noise::Beyond, Some(false)) => "worse",
        (Noise::Agreed | Noise::Unknown, Some(true)) => "maybe-better",
        (Noise::Agreed | Noise::Unknown, Some(false)) => "maybe-worse",
        (_, None) => "same",
    };
    let text = if difference.mean == Some(0.0) { "=".to_string() } else { change(difference.relative) };
    let sign = if noise == Noise::Within && difference.mean != Some(0.0) { "≈ " } else { "" };
    let title = difference.interval.map_or(String::new(), |[low, high]| {
        let [low, high] = [low, high].map(|end| signed(figure.form, end));
        let what = if difference.n < FEW { "of mean differences of resampled seeds" } else { "95 % interval" };
        format!(" title=\"difference {low} to {high}, {what}\"")
    });
    format!("<td class=\"{tone}{class}\"{title}>{star}{value}<small>{sign}{text}</small></td>")
}

/// With its sign: forms are made for what is not negative.
fn signed(form: fn(Option<f64>) -> String, value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", form(Some(value.abs())))
}

/// The changes against the first variant as ratios, with their intervals.
fn changes(page: &mut String, figures: &[&Figure], variants: &[Variant]) {
    if variants.len() > COLUMNS {
        return;
    }
    let (mut rows, mut group) = (Vec::new(), "");
    for figure in figures.iter().filter(|figure| figure.less_is_better == LESS) {
        let base = figure.value(&variants[0]).filter(|base| *base > 0.0);
        let dot = |(at, variant): (usize, &Variant)| {
            let difference = figure.difference(variant)?;
            let ratio = 1.0 + difference.relative?;
            let interval = base.zip(difference.interval).map(|(base, ends)| ends.map(|end| 1.0 + end / base));
            Some((at, ratio, interval, Noise::of(difference) == Noise::Within))
        };
        let dots: Vec<_> = variants.iter().enumerate().filter_map(dot).collect();
        if !dots.is_empty() {
            let name = figure.name.replace(", open at horizon", " at horizon");
            group = figure.group;
            rows.push(Row { name, dots });
        }
    }
    if group.is_empty() {
        return;
    }
    let axis = ratio_axis(&rows);
    page.push_str("<figure class=\"changes\"><figcaption><b>Change</b><span>ratio to ");
    let _ = write!(page, "{}, less is better</span></figcaption>", escape(&variants[0].result.variant));
    page.push_str(&forest(&rows, &axis, "Ratios to the first variant, by figure"));
    page.push_str("</figure>\n");
}

/// Around one, the same distance to both sides, at most sixteen times.
fn ratio_axis(rows: &[Row]) -> Axis {
    let ends = rows
        .iter()
        .flat_map(|row| row.dots.iter().flat_map(|d| [d.1, d.2.map_or(d.1, |i| i[0]), d.2.map_or(d.1, |i| i[1])]));
    let far = ends.filter(|r| *r > 0.0).map(|r| libm::fabs(libm::log10(r))).fold(0.05, f64::max) * 1.06;
    let far = far.min(libm::log10(16.0));
    let all = [
        (0.0625, "1/16"),
        (0.125, "⅛"),
        (0.25, "¼"),
        (0.5, "½"),
        (0.8, "0.8"),
        (1.0, "1"),
        (1.25, "1.25"),
        (2.0, "2"),
        (4.0, "4"),
        (8.0, "8"),
        (16.0, "16"),
    ];
    let fine = far < libm::log10(3.0);
    let ticks = all.into_iter().filter(|(r, _)| libm::fabs(libm::log10(*r)) <= far + 1e-9);
    let ticks =
        ticks.filter(|(r, _)| fine || (*r != 0.8 && *r != 1.25)).map(|(r, name)| (r, format!("{name}×"))).collect();
    Axis {
        scale: Scale::Log,
        unit: Unit::Ratio,
        title: "ratio, logarithmic; ‹ and › lie beyond".into(),
        shared: "",
        from: -far,
        to: far,
        pad: 0.0,
        ticks,
    }
}

/// What stars, tints and signs mean, in the words of what there is.
fn legend_of_marks(page: &mut String, variants: &[Variant]) {
    let seeds = variants.iter().map(|variant| variant.result.seeds.len()).max().unwrap_or(0);
    let first = format!("<span class=\"{}\">{}</span>", colour(0), escape(&variants[0].result.variant));
    let differences = || variants.iter().flat_map(|variant| FIGURES.iter().filter_map(|f| f.difference(variant)));
    let means = format!("Means over {seeds} seeds; below each, its change against {first}, paired by seed.");
    let (better, worse) = ("<span class=\"key better\">better</span>", "<span class=\"key worse\">worse</span>");
    let (perhaps_better, perhaps_worse) = (better.replace("key ", "key maybe-"), worse.replace("key ", "key maybe-"));
    let text = if seeds < 2 {
        format!(
            "Below each number is its change against {first}. One seed cannot tell {perhaps_better} and {perhaps_worse} from \
             noise: compare with --seeds 1..10. ☆ is the best of a row."
        )
    } else if differences().any(|d| d.interval.is_some() && d.n >= FEW) {
        format!(
            "{means} {better} and {worse} are beyond the noise: the 95 % interval of the paired difference excludes zero \
             (without any difference, one in 20 would be marked). ≈ and hollow marks are within it. ★ is the best of a row \
             and apart from every other; ☆ is the best, but perhaps by chance. Lines in the chart are the intervals."
        )
    } else if differences().any(|d| d.interval.is_some()) {
        format!(
            "{means} {perhaps_better} and {perhaps_worse}: all seeds agree on the sign, which happens by chance one time in \
             {}; fewer than {FEW} seeds are too few for 95 % intervals, so compare with --seeds 1..10. ≈ and hollow marks: the \
             seeds disagree. ☆ is the best of a row. Lines in the chart are the range of the seeds' differences.",
            1u64 << (seeds - 1).min(60)
        )
    } else {
        format!(
            "{means} This result has no intervals: {perhaps_better} and {perhaps_worse} may be noise. ☆ is the best of a row."
        )
    };
    note(page, &text);
}

/// All percentiles of all classes, on demand.
pub(crate) fn classes(page: &mut String, variants: &[Variant]) {
    const FIELDS: [(&str, &str); 7] = [
        ("mean", "mean"),
        ("mean, open at horizon", "mean_restricted"),
        ("p50", "p50"),
        ("p90", "p90"),
        ("p99", "p99"),
        ("p99.9", "p999"),
        ("max", "max"),
    ];
    let mut head: Vec<String> = ["", "flows", "open"].map(String::from).to_vec();
    head.extend(FIELDS.map(|(name, _)| format!("FCT {name}")));
    head.extend(["p50", "p99", "p99.9"].map(|name| format!("slowdown {name}")));
    let mut rows = Vec::new();
    for class in super::keys(variants, &["fct_us"]) {
        if variants.len() > 1 {
            rows.push(vec![escape(&class)]);
        }
        for (at, variant) in variants.iter().enumerate() {
            let of = |object: &str, field: &str| variant.result.statistics.leaf(&[object, &class, field])?.mean;
            let name = if variants.len() > 1 { swatch(at) + &escape(&variant.result.variant) } else { escape(&class) };
            let mut row = vec![name, count(of("fct_us", "count")), count(of("fct_us", "unfinished"))];
            row.extend(FIELDS.map(|(_, field)| time(of("fct_us", field))));
            row.extend(["p50", "p99", "p999"].map(|field| ratio(of("slowdown", field))));
            rows.push(row);
        }
    }
    let seeds = variants.first().map_or(1, |variant| variant.result.seeds.len());
    let what =
        if seeds > 1 { "All classes and percentiles (means over the seeds)" } else { "All classes and percentiles" };
    details(page, what, |page| table(page, "", &head, &rows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_what_the_interval_says() {
        let of = |n, interval| Noise::of(&Difference { mean: Some(1.0), relative: Some(0.1), interval, n });
        assert_eq!(
            [of(9, None), of(6, Some([0.5, 2.0])), of(6, Some([-2.0, -0.1]))],
            [Noise::Unknown, Noise::Beyond, Noise::Beyond]
        );
        assert_eq!([of(5, Some([0.5, 2.0])), of(6, Some([-0.1, 2.0]))], [Noise::Agreed, Noise::Within]);
    }

    #[test]
    fn ratios_are_centred_on_one() {
        let rows = [Row { name: String::new(), dots: vec![(1, 0.5, Some([0.4, 0.6]), false), (2, 100.0, None, true)] }];
        let axis = ratio_axis(&rows);
        assert_eq!((axis.from, axis.place(1.0), axis.place(100.0)), (-axis.to, 0.5, 1.0));
        assert_eq!(axis.ticks.len(), 9);
    }
}
