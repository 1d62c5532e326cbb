//! The winners by figure: the figures of all variants, their change against the first one, and
//! whether it is more than noise.
//!
//! A variant is best in a figure if its value is the best and apart from every other: by the
//! [`Noise`] of the paired difference where one of the two is the first variant, else by 95 %
//! intervals of the means that do not overlap. A value that is only a lower bound, since flows or
//! queries are open, is best in nothing.
//!
//! Invariant: nothing is called a difference or best that the intervals do not bear out, and where
//! there are none the page reports that.

use super::changes::changes;
use super::measures::{COLUMNS, Measure, SHOWN, asked_for, usual};
use super::page::term;
use super::{Variant, trees};
use crate::model::{Difference, FEW, IntervalKind, Noise};
use crate::render::document::{Block, details, empty, note, row, section, table};
use crate::render::draw::number::{self, change, count, percent, ratio, time};
use crate::render::draw::series::colour;
use crate::render::markup::escape;
use crate::render::words::words;
use crate::statistics::censoring::{BY_FLOWS, BY_TIME, ENOUGH, shown};
use crate::statistics::shows::is_usual;

pub(crate) fn verdict(variants: &[Variant]) -> Block {
    let (is_given, mut columns) = super::shown_columns(variants);
    columns.retain(|_| is_given || !is_usual(&trees(variants)));
    let mut measures = asked_for(&columns);
    // A figure that is asked for is not named twice.
    let is_new = |it: &Measure| measures.iter().all(|asked| asked.path != it.path);
    let others: Vec<_> = usual().into_iter().filter(is_new).collect();
    measures.extend(others);
    measures.retain(|measure| measure.is_shown(variants));
    if variants.len() < 2 {
        let mut blocks = tiles(&measures, variants);
        blocks.extend(open_at_the_end(variants));
        return section("verdict", "Key figures", blocks);
    }
    let best: Vec<Option<usize>> = measures.iter().map(|it| it.best(variants)).collect();
    let mut blocks = vec![lead(&measures, &best, variants)];
    blocks.extend(open_at_the_end(variants));
    let mut both = matrix(&measures, &best, variants);
    both.extend(changes(&measures, variants));
    match variants.len() <= NARROW {
        true => blocks.push(Block::Split(both)),
        false => blocks.append(&mut both),
    }
    blocks.extend(measures.iter().any(|it| it.group == SHOWN).then(|| note(words("pooled", &[]))));
    blocks.push(note(legend_of_marks(variants)));
    section("verdict", "Verdict", blocks)
}

/// Variants whose table has room for a chart beside it.
const NARROW: usize = 3;

/// The figures of a single run.
fn tiles(measures: &[Measure], variants: &[Variant]) -> Vec<Block> {
    let pair = |it: &Measure| {
        let value = variants.first().map_or(String::new(), |variant| it.text(variant));
        [term(&it.markup(), it.term), value]
    };
    let group = |all: &[Measure]| {
        let pairs = all.iter().map(pair).collect();
        [Block::Heading(all[0].group.into()), Block::Pairs { class: "tiles", pairs }]
    };
    match measures {
        [] => vec![empty("Nothing was measured.")],
        all => all.chunk_by(|a, b| a.group == b.group).flat_map(group).collect(),
    }
}

/// One sentence on who wins, and by how much.
fn lead(measures: &[Measure], best: &[Option<usize>], variants: &[Variant]) -> Block {
    let wins = |at: usize| best.iter().filter(|best| **best == Some(at)).count();
    let most = (0..variants.len()).map(wins).max().unwrap_or(0);
    if most == 0 {
        return Block::Paragraph { class: "lead", text: no_winner(measures, variants) };
    }
    let judged = measures.iter().filter(|it| it.less_is_better.is_some()).count();
    let leaders: Vec<usize> = (0..variants.len()).filter(|&at| wins(at) == most).collect();
    let names: Vec<String> =
        leaders.iter().map(|&at| format!("<b>{}</b>", variants[at].name())).collect();
    let verb = if leaders.len() == 1 { "is best" } else { "are each best" };
    let names = names.join(" and ");
    let mut text = format!("{names} {verb}, beyond the noise, in {most} of {judged} figures");
    if let [leader] = leaders.as_slice()
        && *leader > 0
    {
        let of = |it: &Measure| {
            let found = it.difference(variants, *leader).filter(|d| d.noise == Noise::Beyond)?;
            Some(format!("{} {}", it.markup(), change(Some(found.relative?))))
        };
        let named: Vec<String> =
            leading(measures).into_iter().filter_map(of).take(LEADING).collect();
        if !named.is_empty() {
            text += &format!("; against {}: {}", variants[0].name(), named.join(", "));
        }
    }
    Block::Paragraph { class: "lead", text: text + "." }
}

/// Figures that the first sentence names at most.
const LEADING: usize = 3;

/// The figures that the first sentence may name: those of the terminal's table, where it has its
/// own, since the usual ones pool the classes of traffic.
fn leading(measures: &[Measure]) -> Vec<&Measure> {
    if measures.iter().any(|it| it.group == SHOWN) {
        return measures.iter().filter(|it| it.group == SHOWN).collect();
    }
    let of = |name: &str| measures.iter().find(|it| it.name == name);
    ["QCT p99", "mice p99", "elephants p50"].into_iter().filter_map(of).collect()
}

fn no_winner(measures: &[Measure], variants: &[Variant]) -> String {
    let of = |at: usize| measures.iter().filter_map(move |it| it.difference(variants, at));
    let differences = || (1..variants.len()).flat_map(of);
    let seeds = variants.iter().map(|variant| variant.result.seeds.len()).min().unwrap_or(0);
    let is_none =
        |d: Difference| d.mean == Some(0.0) && matches!(d.noise, Noise::Identical | Noise::Unknown);
    let why = match seeds {
        _ if differences().all(is_none) => "no-difference",
        0 | 1 => "one-seed",
        n if n < FEW => "few-seeds",
        _ if differences().all(|it| it.noise == Noise::Identical) => "identical-seeds",
        _ => "no-winner",
    };
    words(why, &[&seeds.to_string()])
}

/// Means and percentiles of the completed flatter who completes less: where classes did not
/// complete, the page warns.
fn open_at_the_end(variants: &[Variant]) -> Option<Block> {
    let kinds = [
        ("queries", ["qct_us", "completed_fraction"].as_slice()),
        ("flows", &["fct_us", "all", "completed_fraction"]),
        ("mice", &["fct_us", "mice", "completed_fraction"]),
        ("elephants", &["fct_us", "elephants", "completed_fraction"]),
    ];
    let mut uneven = false;
    let mut of = |(what, path): (&str, &[&str])| {
        let shares = variants.iter().filter_map(|variant| variant.number(path));
        let (least, most) = number::extent(shares)?;
        uneven |= most - least > 0.01;
        let [low, high] = [least, most].map(|share| percent(Some(share)));
        let range = if low == high { low } else { format!("{low} to {high}") };
        (least < ENOUGH).then(|| format!("{range} of the {what}"))
    };
    let open: Vec<String> = kinds.into_iter().filter_map(&mut of).collect();
    let has = |text: &&str| {
        variants.iter().any(|it| it.result.warnings.iter().any(|warning| warning.contains(text)))
    };
    let repair = [BY_FLOWS, BY_TIME].into_iter().find(has);
    let repair = repair.map_or(String::new(), |text| format!(" {text}."));
    let title = if uneven { "Unequal completion" } else { "Not all completed" };
    let who = if variants.len() > 1 { "Variants completed" } else { "The run completed" };
    let text = words("open", &[title, who, &open.join(", "), &repair]);
    (!open.is_empty()).then_some(Block::Paragraph { class: "caution", text })
}

/// The table: a row a figure, or a row a variant where there are many, with as many figures beside
/// each other as a screen has room for.
fn matrix(measures: &[Measure], best: &[Option<usize>], variants: &[Variant]) -> Vec<Block> {
    let name = |at: usize| {
        let wins = best.iter().filter(|best| **best == Some(at)).count();
        let wins = if wins == 0 { String::new() } else { format!("<small>best in {wins}</small>") };
        variants[at].marked(at) + &wins
    };
    let cell = |of: usize, at: usize| matrix_cell(&measures[of], variants, best[of], at);
    if variants.len() <= COLUMNS {
        let (mut rows, mut group) = (Vec::new(), "");
        for (of, it) in measures.iter().enumerate() {
            rows.extend((it.group != group).then(|| vec![it.group.to_string()]));
            group = it.group;
            let cells = (0..variants.len()).map(|at| cell(of, at));
            rows.push(row(term(&it.markup(), it.term), cells));
        }
        return vec![table("verdict", row("", (0..variants.len()).map(name)), rows)];
    }
    let head = |it: &Measure| {
        let prefix = if it.name == "completed" { it.group } else { "" };
        term(format!("{prefix} {}", it.markup()).trim(), it.term)
    };
    let block = |from: usize| {
        let block = from..measures.len().min(from + COLUMNS);
        let cells = |at: usize| row(name(at), block.clone().map(|of| cell(of, at)));
        let head = row("variant", measures[block.clone()].iter().map(head));
        table("verdict", head, (0..variants.len()).map(cells).collect())
    };
    (0..measures.len()).step_by(COLUMNS).map(block).collect()
}

fn matrix_cell(of: &Measure, variants: &[Variant], best: Option<usize>, at: usize) -> String {
    let value = of.text(&variants[at]);
    let (star, class) = match best == Some(at) {
        true => ("<span class=\"star\" title=\"best, beyond the noise\">★</span>", " best"),
        false => ("", ""),
    };
    let Some(difference) = of.difference(variants, at) else {
        return format!("<td class=\"{}\">{star}{value}</td>", class.trim());
    };
    let better = of.less_is_better.zip(difference.mean).map(|(less, mean)| (mean < 0.0) == less);
    let is_same = difference.mean == Some(0.0);
    let tone = match (difference.noise, better) {
        _ if is_same => "same",
        (Noise::Within | Noise::Open, _) => "within",
        (Noise::Identical, _) => "same",
        (Noise::Beyond, Some(true)) => "better",
        (Noise::Beyond, Some(false)) => "worse",
        (Noise::Agreed | Noise::Unknown, Some(true)) => "maybe-better",
        (Noise::Agreed | Noise::Unknown, Some(false)) => "maybe-worse",
        (_, None) => "same",
    };
    let text = match difference.noise {
        _ if is_same => "=".to_string(),
        Noise::Within => format!("≈ {}", change(difference.relative)),
        Noise::Open => format!("? {}", change(difference.relative)),
        _ => change(difference.relative),
    };
    let signed = |value| number::signed(value, |size| number::of(of.form, Some(size)));
    let kind = difference.interval.zip(difference.interval_kind);
    let title = kind.map_or(String::new(), |(ends, kind)| {
        let ends = match kind {
            IntervalKind::Identical => signed(ends[0]),
            _ => number::ends(Some(ends), signed),
        };
        format!(" title=\"difference {ends}, {}\"", kind.words())
    });
    format!("<td class=\"{tone}{class}\"{title}>{star}{value}<small>{text}</small></td>")
}

/// The meaning of stars, tints and signs, in the words of what there is.
fn legend_of_marks(variants: &[Variant]) -> String {
    let seeds = variants.iter().map(|variant| variant.result.seeds.len()).max().unwrap_or(0);
    let first = format!("<span class=\"{}\">{}</span>", colour(0), variants[0].name());
    let has = |noise: Noise| {
        let measures = usual();
        let is_so = |at| measures.iter().filter_map(move |it| it.difference(variants, at));
        (1..variants.len()).flat_map(is_so).any(|it| it.noise == noise)
    };
    let n = seeds.to_string();
    let mut text = match seeds {
        0 | 1 => words("marks-of-one", &[&first]),
        _ if seeds >= FEW => words("marks", &[&n, &first]),
        _ => {
            let odds = (1u64 << (seeds - 1).min(60)).to_string();
            words("marks-of-few", &[&n, &first, &odds, &FEW.to_string()])
        }
    };
    for (noise, name) in [(Noise::Identical, "mark-identical"), (Noise::Open, "mark-open")] {
        if has(noise) {
            text += &format!(" {}", words(name, &[]));
        }
    }
    text
}

/// All percentiles of all classes, on demand.
pub(crate) fn classes(variants: &[Variant]) -> Block {
    const TIMES: [&str; 8] = ["mean", "mean_restricted", "p50", "p90", "p95", "p99", "p999", "max"];
    const SLOWDOWNS: [&str; 5] = ["p50", "p90", "p95", "p99", "p999"];
    let mut rows = Vec::new();
    let several = variants.len() > 1;
    for class in super::keys(variants, &["fct_us"]) {
        rows.extend(several.then(|| vec![escape(&class)]));
        for (at, variant) in variants.iter().enumerate() {
            let of = |field: &str| variant.number(&["fct_us", &class, field]);
            let shown = |of: &str, field: &str| {
                let form = if of == "fct_us" { time } else { ratio };
                shown(&variant.result.statistics, &[of, &class, field]).text(form)
            };
            let name = if several { variant.marked(at) } else { escape(&class) };
            let counts = ["count", "unfinished"].map(|field| count(of(field)));
            let mut row = row(name, counts.into_iter().chain([percent(of("completed_fraction"))]));
            row.extend(TIMES.map(|field| shown("fct_us", field)));
            row.extend(SLOWDOWNS.map(|field| shown("slowdown", field)));
            rows.push(row);
        }
    }
    let seeds = variants.first().map_or(1, |variant| variant.result.seeds.len());
    let over = if seeds > 1 { " (means over the seeds)" } else { "" };
    let head = "|flows|open|completed|FCT mean|FCT mean, open at horizon|FCT p50|FCT p90|FCT p95|\
                FCT p99|FCT p99.9|FCT max|slowdown p50|slowdown p90|slowdown p95|slowdown p99|\
                slowdown p99.9";
    let title = format!("All classes and percentiles{over}");
    details(&title, vec![table("", head, rows)])
}

#[cfg(test)]
mod tests {
    use super::super::changes::ratio_axis;
    use super::*;
    use crate::model::summary::{Fct, Summary};
    use crate::model::{Flows, Ordered, Percentiles};
    use crate::render::draw::forest::Row;

    /// Variants whose mice have these p99, by seed; each is complete, or has open ones that could
    /// be any longer.
    fn variants(p99s: &[(&[f64], bool)]) -> Vec<Variant> {
        let summary = |seed: u64, p99: f64, open: bool| {
            let bound = |p99| Percentiles { p99, ..Percentiles::default() };
            let (p99, share) = (Some(p99), if open { 0.9 } else { 1.0 });
            let (at_least, at_most) = (bound(p99), bound(p99.filter(|_| !open)));
            let (completed_fraction, unfinished) = (Some(share), u64::from(open));
            let fct = Fct {
                count: 9,
                unfinished,
                completed_fraction,
                p99,
                at_least,
                at_most,
                ..Fct::default()
            };
            let flows = Flows { started: 9, completed: 9, ..Flows::default() };
            Summary {
                seed,
                flows,
                fct_us: Ordered::from(vec![("mice".into(), fct)]),
                ..Summary::default()
            }
        };
        let runs = p99s.iter().enumerate().map(|(at, (values, open))| {
            let runs =
                (1u64..).zip(*values).map(|(seed, p99)| summary(seed, *p99, *open)).collect();
            (["first", "second", "third"][at].to_string(), runs)
        });
        let results = crate::compare(&runs.collect::<Vec<(String, Vec<Summary>)>>()).unwrap();
        let of = |result| Variant {
            result,
            runs: vec![],
            times: super::super::Times::default(),
            places: vec![],
            seeds: vec![],
            failures: vec![],
            programs: vec![],
        };
        results.into_iter().map(of).collect()
    }

    fn page(p99s: &[(&[f64], bool)]) -> String {
        super::super::page::markup(&verdict(&variants(p99s)))
    }

    const LOW: [f64; 8] = [1.0, 2.0, 3.0, 4.0, 2.5, 1.5, 3.5, 2.0];
    const HIGH: [f64; 8] = [11.0, 13.0, 12.0, 14.0, 11.5, 12.5, 13.5, 12.0];

    #[test]
    fn only_what_is_told_from_noise_wins() {
        let won = page(&[(&HIGH, false), (&LOW, false)]);
        assert_eq!(won.matches('★').count(), 2, "the cell and the legend: {won}");
        assert!(won.contains("<b>second</b> is best, beyond the noise, in 1 of"), "{won}");
        let nobody = |p99s: &[(&[f64], bool)], why: &str| {
            let page = page(p99s);
            assert!(
                page.contains(why)
                    && !page.contains("is best, beyond")
                    && !page.contains(">best in"),
                "{why}: {page}"
            );
            assert!(!page.contains('☆') && !page.contains("class=\"star\""), "{page}");
        };
        nobody(&[(&[5.0], false), (&[4.0], false)], "One seed cannot tell a difference from noise");
        nobody(
            &[(&HIGH[..5], false), (&LOW[..5], false)],
            "5 seeds are too few to tell a difference from noise",
        );
        nobody(&[(&[543.2; 8], false), (&[543.1; 8], false)], "All 8 seeds gave identical numbers");
        nobody(&[(&[543.0; 8], false), (&[543.0; 8], false)], "do not differ in any figure");
        let mixed = [4.0, 1.0, 3.5, 1.0, 2.5, 2.0, 3.0, 2.6];
        nobody(
            &[(&LOW, false), (&mixed, false)],
            "No variant is best in any figure by more than noise.",
        );
        // Flows that are open in the better one could undo it; in the worse one they could not.
        nobody(&[(&HIGH, false), (&LOW, true)], "No variant is best");
        assert!(
            page(&[(&HIGH, true), (&LOW, false)])
                .contains("<b>second</b> is best, beyond the noise")
        );
    }

    #[test]
    fn variants_that_are_not_the_first_are_told_apart_by_their_intervals() {
        let star = |p99s: &[(&[f64], bool)]| page(p99s).contains("<b>third</b> is best");
        let far: Vec<f64> = HIGH.iter().map(|p99| p99 * 9.0).collect();
        assert!(star(&[(&far, false), (&HIGH, false), (&LOW, false)]));
        assert!(
            !star(&[(&far, false), (&[5.0; 8], false), (&[4.0; 8], false)]),
            "neither of two varies"
        );
    }

    #[test]
    fn first_sentence_names_the_figures_of_the_terminals_table() {
        let names = |measures: &[Measure]| -> Vec<String> {
            leading(measures).iter().map(|measure| measure.name.to_string()).collect()
        };
        assert_eq!(names(&usual()), ["QCT p99", "mice p99", "elephants p50"]);
        let path = ["qct_by_class_us", "gets", "p99"].map(String::from).to_vec();
        let gets = Measure { group: SHOWN, name: "gets QCT p99".into(), path, ..usual().remove(5) };
        let with: Vec<Measure> = [gets].into_iter().chain(usual()).collect();
        assert_eq!(names(&with), ["gets QCT p99"], "the pooled QCT is of all classes");

        let mut shown = variants(&[(&HIGH, false), (&LOW, false)]);
        let asked = ["mice.fct.p99".to_string()];
        for variant in &mut shown {
            let mut of = [variant.result.clone()];
            crate::statistics::compare::show(&mut of, &asked);
            [variant.result] = of;
        }
        let text = |variants: &[Variant]| super::super::page::markup(&verdict(variants));
        assert!(text(&shown).contains("pool the classes"), "{}", text(&shown));
        assert!(text(&shown).contains("against first: mice: FCT p99 "), "{}", text(&shown));
        assert!(!page(&[(&HIGH, false), (&LOW, false)]).contains("pool the classes"));
    }

    #[test]
    fn what_did_not_complete_is_told_beside_the_figures() {
        let page = page(&[(&HIGH, true), (&LOW, true)]);
        assert!(
            page.contains("<b>Not all completed.</b> Variants completed 90.0\u{202f}% of the mice"),
            "{page}"
        );
        assert!(page.contains("until = \"flows-complete\"") && page.contains("≥12.4"), "{page}");
        assert!(page.contains("? says that what was open"), "{page}");
    }

    #[test]
    fn ratios_are_centred_on_one() {
        let rows = [Row {
            name: String::new(),
            dots: vec![(1, 0.5, Some([0.4, 0.6]), false), (2, 100.0, None, true)],
        }];
        let axis = ratio_axis(&rows);
        assert_eq!((axis.from, axis.place(1.0), axis.place(100.0)), (-axis.to, 0.5, 1.0));
        assert_eq!(axis.ticks.len(), 9);
    }
}
