//! The marks that distinguish series: colours, dashes and shapes.

/// How many colours the style sheet has; beyond them lines are dashed.
pub(crate) const COLOURS: usize = 8;

/// How many outlines marks have. It has no factor in common with [`COLOURS`], so that the first 56
/// series differ in colour and outline.
pub(crate) const SHAPES: usize = 7;

/// The class of a series' colour.
pub(crate) fn colour(series: usize) -> String {
    format!("s{}", series % COLOURS)
}

/// The class of its dashes, behind a space.
pub(crate) fn dashes(series: usize) -> &'static str {
    ["", " d1", " d2", " d3"][series / COLOURS % 4]
}

/// A mark's outline, so that colour is not all that distinguishes series: circle, square, triangle,
/// diamond, falling triangle, plus, bow tie.
pub(crate) fn shape(series: usize, x: f64, y: f64) -> String {
    match series % SHAPES {
        0 => format!("M{:.1} {y:.1}a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0Z", x - 2.5),
        1 => format!("M{:.1} {:.1}h4.4v4.4h-4.4Z", x - 2.2, y - 2.2),
        2 => format!("M{x:.1} {:.1}l2.9 5h-5.8Z", y - 3.2),
        3 => format!("M{x:.1} {:.1}l3.1 3.1l-3.1 3.1l-3.1 -3.1Z", y - 3.1),
        4 => format!("M{x:.1} {:.1}l2.9 -5h-5.8Z", y + 3.2),
        5 => format!(
            "M{:.1} {:.1}h1.6v2.4h2.4v1.6h-2.4v2.4h-1.6v-2.4h-2.4v-1.6h2.4Z",
            x - 0.8,
            y - 3.2
        ),
        _ => format!("M{:.1} {:.1}v5.6l6 -5.6v5.6Z", x - 3.0, y - 2.8),
    }
}

/// A series' line and mark, for legends and heads of tables.
pub(crate) fn swatch(series: usize) -> String {
    format!(
        "<svg class=\"swatch {}\" viewBox=\"0 0 24 10\" aria-hidden=\"true\"><path \
         class=\"line{}\" d=\"M0 5H24\"/><path class=\"mark\" d=\"{}\"/></svg>",
        colour(series),
        dashes(series),
        shape(series, 12.0, 5.0)
    )
}
