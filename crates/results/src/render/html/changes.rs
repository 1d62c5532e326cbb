//! The chart of how variants differ from the first.

use super::Variant;
use super::measures::{LESS, Measure};
use crate::model::Noise;
use crate::render::document::{Block, Drawing, Figure};
use crate::render::draw::axis::{Axis, Scale};
use crate::render::draw::forest::{Dot, Row, forest};
use crate::render::draw::unit::Unit;

/// Variants in one chart; the page draws the numbers of more of them one by one.
const DRAWN_MOST: usize = 6;

/// A variant's change against the first one as a ratio, with its interval.
fn dot(of: &Measure, variants: &[Variant], at: usize) -> Option<Dot> {
    let difference = of.difference(variants, at)?;
    let relative = difference.relative?;
    let interval = difference.relative_interval.map(|ends| ends.map(|end| 1.0 + end));
    let doubtful = matches!(difference.noise, Noise::Within | Noise::Open | Noise::Identical);
    Some((at, 1.0 + relative, interval, doubtful))
}

/// The changes against the first variant as ratios, a row a figure, beside the table.
pub(crate) fn changes(measures: &[Measure], variants: &[Variant]) -> Option<Block> {
    let row = |of: &Measure| {
        let dots = (0..variants.len()).filter_map(|at| dot(of, variants, at)).collect();
        Row { name: of.markup().replace(", open at horizon", " at horizon"), dots }
    };
    let rows = measures.iter().filter(|it| it.less_is_better == LESS).map(row);
    let rows: Vec<Row> = rows.filter(|row| !row.dots.is_empty()).collect();
    if variants.len() > DRAWN_MOST || rows.is_empty() {
        return None;
    }
    let svg = forest(&rows, &ratio_axis(&rows), "Change: ratios to the first variant");
    let below = format!("ratio to {}, less is better", variants[0].name());
    let (caption, drawing) = ("Change".into(), Drawing::Svg(svg));
    let figure = Figure { name: String::new(), caption, below, drawing };
    Some(Block::Beside { class: "changes", figure })
}

/// Around one, the same distance to both sides, at most sixteen times.
pub(crate) fn ratio_axis(rows: &[Row]) -> Axis {
    const TICKS: [(f64, &str); 11] = [
        (0.0625, "1/16×"),
        (0.125, "⅛×"),
        (0.25, "¼×"),
        (0.5, "½×"),
        (0.8, "0.8×"),
        (1.0, "1×"),
        (1.25, "1.25×"),
        (2.0, "2×"),
        (4.0, "4×"),
        (8.0, "8×"),
        (16.0, "16×"),
    ];
    let ends = rows.iter().flat_map(|row| &row.dots);
    let ends = ends.flat_map(|&(_, ratio, interval, _)| {
        std::iter::once(ratio).chain(interval.into_iter().flatten())
    });
    let far = |ratio: f64| libm::fabs(libm::log10(ratio));
    let most = ends.filter(|ratio| *ratio > 0.0).map(far).fold(0.05, f64::max) * 1.06;
    let most = most.min(libm::log10(16.0));
    let is_fine = most < libm::log10(3.0);
    let is_there = |(ratio, _): &(f64, &str)| {
        far(*ratio) <= most + 1e-9 && (is_fine || ![0.8, 1.25].contains(ratio))
    };
    let ticks = TICKS.into_iter().filter(is_there).map(|(r, name)| (r, name.to_string()));
    let title = "ratio, logarithmic; ‹ and › lie beyond";
    Axis { from: -most, ..Axis::new(Scale::Log, Unit::Ratio, title, most, ticks.collect()) }
}
