//! Rows of differences with their intervals, about a line that means no difference.

use super::axis::Axis;
use super::chart::WIDTH;
use super::chart::{LETTER, LETTER_ON_PHONE, RIGHT, brief, letters};
use super::series::{colour, shape};
use std::fmt::Write;

/// One row of a [`forest`]: its name, and for each series its ratio, the ratio's interval, and
/// whether it is doubtful.
pub(crate) struct Row {
    /// Escaped.
    pub name: String,
    /// Series, ratio, interval, doubtful.
    pub dots: Vec<(usize, f64, Option<[f64; 2]>, bool)>,
}

/// The part of a forest's width that the names of its rows may take.
const NAMES: [f64; 2] = [126.0, 200.0];

/// A row's name as a text at a height, cut to what its column holds on a screen and on a phone. The
/// whole name is its title.
pub(crate) fn row_name(name: &str, room: f64, y: f64) -> String {
    let on_screen = cut(name, (room / LETTER) as usize);
    let on_phone = cut(name, (room / LETTER_ON_PHONE) as usize);
    let text = |class: &str, text: &str| {
        let title = if text == name { String::new() } else { format!("<title>{name}</title>") };
        format!("<text class=\"row{class}\" x=\"0\" y=\"{y:.1}\">{text}{title}</text>")
    };
    match on_screen == on_phone {
        true => text("", &on_screen),
        false => text(" wide", &on_screen) + &text(" narrow", &on_phone),
    }
}

/// A name's first letters, if it has more than `most`; an escaped letter is one.
pub(crate) fn cut(name: &str, most: usize) -> String {
    if letters(name) as usize <= most {
        return name.to_string();
    }
    let (mut end, mut taken, mut inside) = (0, 0, false);
    for (at, letter) in name.char_indices() {
        taken += usize::from(!inside);
        inside = (inside || letter == '&') && letter != ';';
        if taken == most {
            end = at;
            break;
        }
    }
    format!("{}…", &name[..end])
}

/// Ratios around one, a row a figure, a dot a series, with intervals: beyond `axis` they end in its
/// edge.
pub(crate) fn forest(rows: &[Row], axis: &Axis, label: &str) -> String {
    let longest = rows.iter().map(|row| letters(&row.name)).fold(0.0, f64::max);
    let (left, width, top) = ((longest * LETTER + 14.0).clamp(NAMES[0], NAMES[1]), WIDTH, 6.0);
    let at = |ratio: f64| left + axis.place(ratio) * (width - left - RIGHT);
    let heights: Vec<f64> =
        rows.iter().map(|row| 12.0 + 9.0 * row.dots.len().max(1) as f64).collect();
    let bottom = top + heights.iter().sum::<f64>();
    let mut svg = format!(
        "<svg class=\"forest\" viewBox=\"0 0 {width} {}\" role=\"img\" aria-label=\"{label}\">",
        bottom + 42.0
    );
    for (value, name) in &axis.ticks {
        let class = if *value == 1.0 { "axis" } else { "grid" };
        let x = at(*value);
        let _ = write!(svg, "<path class=\"{class}\" d=\"M{x:.1} {top}V{bottom}\"/>");
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
            bottom + 16.0
        );
    }
    let _ = write!(
        svg,
        "<text class=\"title\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        width - RIGHT,
        bottom + 35.0,
        axis.title
    );
    let mut y = top;
    for (row, height) in rows.iter().zip(&heights) {
        let _ = write!(svg, "<path class=\"grid\" d=\"M0 {y:.1}H{}\"/>", width - RIGHT);
        svg.push_str(&row_name(&row.name, left - 4.0, y + height / 2.0 + 4.0));
        for (at_dot, &(series, ratio, interval, doubtful)) in row.dots.iter().enumerate() {
            let (x, line) = (at(ratio), y + 10.5 + 9.0 * at_dot as f64);
            let class = if doubtful { " doubtful" } else { "" };
            let ends = interval
                .map_or(String::new(), |[low, high]| format!(" {} {}", brief(low), brief(high)));
            let _ = write!(
                svg,
                "<g data-v=\"{series}\" class=\"{}{class}\" data-figure=\"{}\" \
                 data-ratio=\"{}{ends}\">",
                colour(series),
                row.name,
                brief(ratio)
            );
            if let Some([low, high]) = interval {
                let _ = write!(
                    svg,
                    "<path class=\"line\" d=\"M{:.1} {line:.1}H{:.1}\"/>",
                    at(low),
                    at(high)
                );
            }
            let half = axis.to * 1.0001;
            if ratio <= 0.0 || libm::fabs(libm::log10(ratio)) > half {
                let (x, tip) = if ratio > 1.0 { (x - 5.0, 5.0) } else { (x + 5.0, -5.0) };
                let _ = write!(
                    svg,
                    "<path class=\"line\" d=\"M{x:.1} {:.1}l{tip} 4l{} 4\"/></g>",
                    line - 4.0,
                    -tip
                );
                continue;
            }
            let hollow = if doubtful { "mark hollow" } else { "mark" };
            let _ = write!(svg, "<path class=\"{hollow}\" d=\"{}\"/></g>", shape(series, x, line));
        }
        y += height;
    }
    svg.push_str("</svg>");
    svg
}
