//! Charts of how variants differ from the first.

use super::Variant;
use super::axis::{Axis, Scale};
use super::forest::{Row, forest};
use super::measures::{Figure, LESS};
use super::page::escape;
use super::unit::Unit;
use crate::model::Noise;
use std::fmt::Write;

/// Variants in one chart; the page draws the numbers of more of them one by one.
const DRAWN_MOST: usize = 6;

/// A dot of a chart of changes: series, ratio, interval, doubtful.
type Dot = (usize, f64, Option<[f64; 2]>, bool);

/// A variant's change against the first one as a ratio, with its interval.
fn dot(figure: &Figure<'_>, variants: &[Variant], at: usize) -> Option<Dot> {
    let difference = figure.difference(variants, at)?;
    let relative = difference.relative?;
    let interval = difference.relative_interval.map(|ends| ends.map(|end| 1.0 + end));
    let doubtful = matches!(difference.noise, Noise::Within | Noise::Open | Noise::Identical);
    Some((at, 1.0 + relative, interval, doubtful))
}

/// A chart of changes in its frame.
fn changes_figure(page: &mut String, class: &str, caption: &str, first: &str, rows: &[Row]) {
    let _ = writeln!(
        page,
        "<figure class=\"{class}\"><figcaption><b>{caption}</b><span>ratio to {}, less is \
         better</span></figcaption>{}</figure>",
        escape(first),
        forest(rows, &ratio_axis(rows), &format!("{caption}: ratios to the first variant"))
    );
}

/// The changes against the first variant as ratios, a row a figure, beside the table.
pub(crate) fn changes(page: &mut String, figures: &[&Figure<'_>], variants: &[Variant]) {
    if variants.len() > DRAWN_MOST {
        return;
    }
    let judged = figures.iter().filter(|figure| figure.less_is_better == LESS);
    let row = |figure: &&Figure| {
        let dots: Vec<Dot> =
            (0..variants.len()).filter_map(|at| dot(figure, variants, at)).collect();
        let name = figure.name.replace(", open at horizon", " at horizon");
        (!dots.is_empty()).then_some(Row { name, dots })
    };
    let rows: Vec<Row> = judged.filter_map(row).collect();
    if !rows.is_empty() {
        changes_figure(page, "changes", "Change", &variants[0].result.variant, &rows);
    }
}

/// Around one, the same distance to both sides, at most sixteen times.
pub(crate) fn ratio_axis(rows: &[Row]) -> Axis {
    let ends = rows.iter().flat_map(|row| {
        row.dots.iter().flat_map(|d| [d.1, d.2.map_or(d.1, |i| i[0]), d.2.map_or(d.1, |i| i[1])])
    });
    let far =
        ends.filter(|r| *r > 0.0).map(|r| libm::fabs(libm::log10(r))).fold(0.05, f64::max) * 1.06;
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
    let ticks = ticks
        .filter(|(r, _)| fine || (*r != 0.8 && *r != 1.25))
        .map(|(r, name)| (r, format!("{name}×")))
        .collect();
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
