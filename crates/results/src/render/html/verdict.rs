//! The winners by figure: the figures of all variants, their change against the first one, and
//! whether it is more than noise.
//!
//! A variant is best in a figure if its value is the best and apart from every other: by the
//! [`Noise`] of the paired difference where one of the two is the first variant, else by 95 %
//! intervals of the means that do not overlap. A value that is only a lower bound, since flows or
//! queries are open, is best in nothing.
//!
//! Invariant: nothing is called a difference or best that the intervals do not bear out, and where
//! there are none the page says so.

use super::changes::changes;
use super::measures::{COLUMNS, FIGURES, Figure, SHOWN, asked_for};
use std::fmt::Write;

use super::Variant;
use super::number::{change, count, percent, ratio, time};
use super::page::{details, end, escape, note, section, table, term};
use super::series::{colour, swatch};
use crate::model::{Difference, FEW, IntervalKind, Noise};
use crate::statistics::censoring::{BY_FLOWS, BY_TIME, ENOUGH, shown};
use crate::statistics::shows::{Column, is_usual};

/// The section.
pub(crate) fn verdict(page: &mut String, variants: &[Variant]) {
    let (is_given, columns) = super::shown_columns(variants);
    let trees: Vec<_> = variants.iter().map(|variant| &variant.result.statistics).collect();
    let columns = if is_given || !is_usual(&trees) { columns } else { Vec::new() };
    let paths: Vec<Vec<&str>> = columns.iter().map(Column::at).collect();
    let names: Vec<String> = columns.iter().map(|column| escape(&column.caption)).collect();
    let asked_for = asked_for(&columns, &names, &paths);
    // A figure that is asked for is not named twice.
    let others =
        FIGURES.iter().filter(|figure| !paths.iter().any(|path| path.as_slice() == figure.path));
    let figures: Vec<&Figure<'_>> =
        asked_for.iter().chain(others).filter(|figure| figure.is_told(variants)).collect();
    section(page, "verdict", if variants.len() < 2 { "Key figures" } else { "Verdict" });
    if variants.len() < 2 {
        tiles(page, &figures, variants);
        open_at_the_end(page, variants);
        return end(page);
    }
    let best: Vec<Option<usize>> = figures.iter().map(|figure| figure.best(variants)).collect();
    lead(page, &figures, &best, variants);
    let is_narrow = variants.len() <= NARROW;
    page.push_str(if is_narrow { "<div class=\"split\">\n" } else { "" });
    matrix(page, &figures, &best, variants);
    changes(page, &figures, variants);
    page.push_str(if is_narrow { "</div>\n" } else { "" });
    if figures.iter().any(|figure| figure.group == SHOWN) {
        note(page, POOLED);
    }
    legend_of_marks(page, variants);
    end(page);
}

/// Variants whose table has room for a chart beside it.
const NARROW: usize = 3;

/// The note that names the figures of the terminal.
const POOLED: &str = "Rows below <i>Shown</i> are the columns of the terminal's table, by class. \
                      Rows below <i>Queries</i> and <i>Flows</i> pool the classes of traffic.";

/// The figures of a single run.
fn tiles(page: &mut String, figures: &[&Figure<'_>], variants: &[Variant]) {
    let mut group = "";
    for figure in figures {
        if figure.group != group {
            page.push_str(if group.is_empty() { "" } else { "</dl>\n" });
            let _ = write!(page, "<h3>{}</h3>\n<dl class=\"tiles\">", figure.group);
            group = figure.group;
        }
        let value = variants.first().map_or(String::new(), |variant| figure.text(variant));
        let _ =
            write!(page, "<div><dt>{}</dt><dd>{value}</dd></div>", term(figure.name, figure.term));
    }
    page.push_str(if group.is_empty() {
        "<p class=\"empty\">Nothing was measured.</p>\n"
    } else {
        "</dl>\n"
    });
}

/// One sentence on who wins, and by how much.
fn lead(page: &mut String, figures: &[&Figure<'_>], best: &[Option<usize>], variants: &[Variant]) {
    let wins: Vec<usize> = (0..variants.len())
        .map(|at| best.iter().filter(|best| **best == Some(at)).count())
        .collect();
    let most = wins.iter().copied().max().unwrap_or(0);
    if most == 0 {
        let _ = writeln!(page, "<p class=\"lead\">{}</p>", no_winner(figures, variants));
        return open_at_the_end(page, variants);
    }
    let judged = figures.iter().filter(|figure| figure.less_is_better.is_some()).count();
    let leaders: Vec<usize> = (0..variants.len()).filter(|&at| wins[at] == most).collect();
    let names: Vec<String> = leaders
        .iter()
        .map(|&at| format!("<b>{}</b>", escape(&variants[at].result.variant)))
        .collect();
    let verb = if leaders.len() == 1 { "is best" } else { "are each best" };
    let _ = write!(
        page,
        "<p class=\"lead\">{} {verb}, beyond the noise, in {most} of {judged} figures",
        names.join(" and ")
    );
    if let [leader] = leaders.as_slice()
        && *leader > 0
    {
        let of = |figure: &&Figure<'_>| {
            let difference =
                figure.difference(variants, *leader).filter(|d| d.noise == Noise::Beyond)?;
            Some(format!("{} {}", figure.name, change(Some(difference.relative?))))
        };
        let told: Vec<String> =
            leading(figures).into_iter().filter_map(|figure| of(&figure)).take(LEADING).collect();
        if !told.is_empty() {
            let _ = write!(
                page,
                "; against {}: {}",
                escape(&variants[0].result.variant),
                told.join(", ")
            );
        }
    }
    page.push_str(".</p>\n");
    open_at_the_end(page, variants);
}

/// Figures that the first sentence names at most.
const LEADING: usize = 3;

/// The figures that the first sentence may name: those of the terminal's table, where it has its
/// own, since the usual ones pool the classes of traffic.
fn leading<'f, 'a>(figures: &[&'f Figure<'a>]) -> Vec<&'f Figure<'a>> {
    if figures.iter().any(|figure| figure.group == SHOWN) {
        return figures.iter().copied().filter(|figure| figure.group == SHOWN).collect();
    }
    let of = |name: &str| figures.iter().copied().find(|figure| figure.name == name);
    ["QCT p99", "mice p99", "elephants p50"].into_iter().filter_map(of).collect()
}

/// Why nobody is called best.
fn no_winner(figures: &[&Figure<'_>], variants: &[Variant]) -> String {
    let differences = || {
        let of =
            |at: usize| figures.iter().filter_map(move |figure| figure.difference(variants, at));
        (1..variants.len()).flat_map(of)
    };
    let seeds = variants.iter().map(|variant| variant.result.seeds.len()).min().unwrap_or(0);
    let is_none =
        |d: Difference| d.mean == Some(0.0) && matches!(d.noise, Noise::Identical | Noise::Unknown);
    if differences().all(is_none) {
        return "The variants do not differ in any figure.".into();
    }
    match seeds {
        0 | 1 => "One seed cannot tell a difference from noise, so no variant is called best: \
                  compare with --seeds 1..10."
            .into(),
        n if n < FEW => format!(
            "{n} seeds are too few to tell a difference from noise, so no variant is called best: \
             compare with --seeds 1..10."
        ),
        n if differences().all(|difference| difference.noise == Noise::Identical) => format!(
            "All {n} seeds gave identical numbers: they vary nothing that could tell a difference \
             from noise, so no variant is called best."
        ),
        _ => "No variant is best in any figure by more than noise.".into(),
    }
}

/// Means and percentiles of the completed flatter who completes less: where classes did not
/// complete, that is said.
fn open_at_the_end(page: &mut String, variants: &[Variant]) {
    let kinds = [
        ("queries", ["qct_us", "completed_fraction"].as_slice()),
        ("flows", &["fct_us", "all", "completed_fraction"]),
        ("mice", &["fct_us", "mice", "completed_fraction"]),
        ("elephants", &["fct_us", "elephants", "completed_fraction"]),
    ];
    let mut uneven = false;
    let mut of = |(what, path): (&str, &[&str])| {
        let shares: Vec<f64> = variants.iter().filter_map(|variant| variant.number(path)).collect();
        let (least, most) = (
            shares.iter().copied().min_by(f64::total_cmp)?,
            shares.iter().copied().max_by(f64::total_cmp)?,
        );
        uneven |= most - least > 0.01;
        let [low, high] = [least, most].map(|share| percent(Some(share)));
        let range = if low == high { low } else { format!("{low} to {high}") };
        (least < ENOUGH).then(|| format!("{range} of the {what}"))
    };
    let told: Vec<String> = kinds.into_iter().filter_map(&mut of).collect();
    if told.is_empty() {
        return;
    }
    let says = |text: &&str| {
        variants.iter().any(|it| it.result.warnings.iter().any(|warning| warning.contains(text)))
    };
    let repair = [BY_FLOWS, BY_TIME].into_iter().find(says);
    let title = if uneven { "Unequal completion" } else { "Not all completed" };
    let who = if variants.len() > 1 { "Variants completed" } else { "The run completed" };
    let _ = writeln!(
        page,
        "<p class=\"caution\"><b>{title}.</b> {who} {} by the end. Means and percentiles of the \
         completed leave out what was still open, often the slowest: they flatter whoever leaves \
         most open. ≥ is a bound, in which what was open counts with its age.{}</p>",
        told.join(", "),
        repair.map_or(String::new(), |text| format!(" {text}."))
    );
}

/// The table: a row a figure, or a row a variant where there are many, with as many figures beside
/// each other as a screen has room for.
fn matrix(
    page: &mut String,
    figures: &[&Figure<'_>],
    best: &[Option<usize>],
    variants: &[Variant],
) {
    let wins = |at: usize| {
        let n = best.iter().filter(|best| **best == Some(at)).count();
        if n == 0 { String::new() } else { format!("<small>best in {n}</small>") }
    };
    let name =
        |at: usize| format!("{}{}{}", swatch(at), escape(&variants[at].result.variant), wins(at));
    let cell =
        |row: usize, at: usize| matrix_cell(figures[row], variants, best[row] == Some(at), at);
    if variants.len() <= COLUMNS {
        let head: Vec<String> =
            std::iter::once(String::new()).chain((0..variants.len()).map(name)).collect();
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
    let names: Vec<String> = names.collect();
    for from in (0..figures.len()).step_by(COLUMNS) {
        let block = from..figures.len().min(from + COLUMNS);
        let own = names[block.clone()].iter().cloned();
        let head: Vec<String> = std::iter::once("variant".to_string()).chain(own).collect();
        let row = |at: usize| {
            std::iter::once(name(at)).chain(block.clone().map(|row| cell(row, at))).collect()
        };
        table(page, "verdict", &head, &(0..variants.len()).map(row).collect::<Vec<_>>());
    }
}

fn matrix_cell(figure: &Figure<'_>, variants: &[Variant], is_best: bool, at: usize) -> String {
    let value = figure.text(&variants[at]);
    let star = if is_best {
        "<span class=\"star\" title=\"best, beyond the noise\">★</span>"
    } else {
        ""
    };
    let class = if is_best { " best" } else { "" };
    let Some(difference) = figure.difference(variants, at) else {
        return format!("<td class=\"{}\">{star}{value}</td>", class.trim());
    };
    let better =
        figure.less_is_better.zip(difference.mean).map(|(less, mean)| (mean < 0.0) == less);
    let unchanged = difference.mean == Some(0.0);
    let tone = match (difference.noise, better) {
        _ if unchanged => "same",
        (Noise::Within | Noise::Open, _) => "within",
        (Noise::Identical, _) => "same",
        (Noise::Beyond, Some(true)) => "better",
        (Noise::Beyond, Some(false)) => "worse",
        (Noise::Agreed | Noise::Unknown, Some(true)) => "maybe-better",
        (Noise::Agreed | Noise::Unknown, Some(false)) => "maybe-worse",
        (_, None) => "same",
    };
    let text = if unchanged { "=".to_string() } else { change(difference.relative) };
    let sign = match difference.noise {
        _ if unchanged => "",
        Noise::Within => "≈ ",
        Noise::Open => "? ",
        _ => "",
    };
    let ends =
        difference.interval.zip(difference.interval_kind).map(|([low, high], kind)| match kind {
            IntervalKind::Identical => {
                format!("difference {}, {}", signed(figure.form, low), kind.words())
            }
            _ => format!(
                "difference {} to {}, {}",
                signed(figure.form, low),
                signed(figure.form, high),
                kind.words()
            ),
        });
    let title = ends.map_or(String::new(), |ends| format!(" title=\"{ends}\""));
    format!("<td class=\"{tone}{class}\"{title}>{star}{value}<small>{sign}{text}</small></td>")
}

/// With its sign: forms are made for what is not negative.
fn signed(form: fn(Option<f64>) -> String, value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", form(Some(value.abs())))
}

/// The meaning of stars, tints and signs, in the words of what there is.
fn legend_of_marks(page: &mut String, variants: &[Variant]) {
    let seeds = variants.iter().map(|variant| variant.result.seeds.len()).max().unwrap_or(0);
    let first =
        format!("<span class=\"{}\">{}</span>", colour(0), escape(&variants[0].result.variant));
    let noises: Vec<Noise> = (1..variants.len())
        .flat_map(|at| {
            FIGURES.iter().filter_map(move |figure| Some(figure.difference(variants, at)?.noise))
        })
        .collect();
    let has = |noise: Noise| noises.contains(&noise);
    let means = format!(
        "Means over {seeds} seeds; below each, its change against {first}, paired by seed."
    );
    let (better, worse) =
        ("<span class=\"key better\">better</span>", "<span class=\"key worse\">worse</span>");
    let (perhaps_better, perhaps_worse) =
        (better.replace("key ", "key maybe-"), worse.replace("key ", "key maybe-"));
    let mut text = if seeds < 2 {
        format!(
            "Below each number is its change against {first}. One seed cannot tell \
             {perhaps_better} and {perhaps_worse} from noise: compare with --seeds 1..10."
        )
    } else if seeds >= FEW {
        format!(
            "{means} {better} and {worse} are beyond the noise: the 95 % interval of the paired \
             difference excludes zero (without any difference, one in 20 would be marked). ≈ and \
             hollow marks are within it. ★ is the best of a row and apart from every other, \
             beyond the noise. Lines in the chart are the intervals."
        )
    } else {
        format!(
            "{means} {perhaps_better} and {perhaps_worse}: all seeds agree on the sign, which \
             happens by chance one time in {}; fewer than {FEW} seeds are too few for 95 % \
             intervals, so compare with --seeds 1..10. ≈ and hollow marks: the seeds disagree. \
             Lines in the chart are the range of the seeds' differences.",
            1u64 << (seeds - 1).min(60)
        )
    };
    if has(Noise::Identical) {
        text.push_str(
            " A change without a tint is the same in every seed: the seeds' draws do not change \
             it, so it is exact for these flows, and may be another for others.",
        );
    }
    if has(Noise::Open) {
        text.push_str(" ? says that what was open at the end could undo a difference.");
    }
    note(page, &text);
}

/// All percentiles of all classes, on demand.
pub(crate) fn classes(page: &mut String, variants: &[Variant]) {
    const FIELDS: [(&str, &str); 8] = [
        ("mean", "mean"),
        ("mean, open at horizon", "mean_restricted"),
        ("p50", "p50"),
        ("p90", "p90"),
        ("p95", "p95"),
        ("p99", "p99"),
        ("p99.9", "p999"),
        ("max", "max"),
    ];
    const SLOWDOWNS: [&str; 5] = ["p50", "p90", "p95", "p99", "p999"];
    let mut head: Vec<String> = ["", "flows", "open", "completed"].map(String::from).to_vec();
    head.extend(FIELDS.map(|(name, _)| format!("FCT {name}")));
    head.extend(SLOWDOWNS.map(|name| format!("slowdown {}", name.replace("999", "99.9"))));
    let mut rows = Vec::new();
    for class in super::keys(variants, &["fct_us"]) {
        if variants.len() > 1 {
            rows.push(vec![escape(&class)]);
        }
        for (at, variant) in variants.iter().enumerate() {
            let statistics = &variant.result.statistics;
            let of = |field: &str| variant.number(&["fct_us", &class, field]);
            let name = if variants.len() > 1 {
                swatch(at) + &escape(&variant.result.variant)
            } else {
                escape(&class)
            };
            let mut row = vec![
                name,
                count(of("count")),
                count(of("unfinished")),
                percent(of("completed_fraction")),
            ];
            row.extend(
                FIELDS.map(|(_, field)| shown(statistics, &["fct_us", &class, field]).text(time)),
            );
            row.extend(
                SLOWDOWNS.map(|field| shown(statistics, &["slowdown", &class, field]).text(ratio)),
            );
            rows.push(row);
        }
    }
    let seeds = variants.first().map_or(1, |variant| variant.result.seeds.len());
    let what = if seeds > 1 {
        "All classes and percentiles (means over the seeds)"
    } else {
        "All classes and percentiles"
    };
    details(page, what, |page| table(page, "", &head, &rows));
}

#[cfg(test)]
mod tests {
    use super::super::changes::ratio_axis;
    use super::super::forest::Row;
    use super::*;
    use crate::model::summary::{Fct, Summary};
    use crate::model::{Flows, Ordered, Percentiles};

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
        let mut page = String::new();
        verdict(&mut page, &variants(p99s));
        page
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
        let usual: Vec<&Figure<'_>> = FIGURES.iter().collect();
        let names = |figures: &[&Figure<'_>]| -> Vec<String> {
            leading(figures).iter().map(|figure| figure.name.to_string()).collect()
        };
        assert_eq!(names(&usual), ["QCT p99", "mice p99", "elephants p50"]);
        let path = ["qct_by_class_us", "gets", "p99"];
        let gets = Figure { group: SHOWN, name: "gets QCT p99", path: &path, ..FIGURES[5] };
        let with: Vec<&Figure<'_>> = [&gets].into_iter().chain(FIGURES.iter()).collect();
        assert_eq!(names(&with), ["gets QCT p99"], "the pooled QCT is of all classes");

        let mut shown = variants(&[(&HIGH, false), (&LOW, false)]);
        let asked = ["mice.fct.p99".to_string()];
        for variant in &mut shown {
            let mut of = [variant.result.clone()];
            crate::statistics::compare::show(&mut of, &asked);
            [variant.result] = of;
        }
        let text = |variants: &[Variant]| {
            let mut page = String::new();
            verdict(&mut page, variants);
            page
        };
        assert!(text(&shown).contains(POOLED), "{}", text(&shown));
        assert!(text(&shown).contains("against first: mice: FCT p99 "), "{}", text(&shown));
        assert!(!page(&[(&HIGH, false), (&LOW, false)]).contains(POOLED));
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
