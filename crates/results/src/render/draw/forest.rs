//! Rows of differences with their intervals, about a line that means no difference.

use super::axis::Axis;
use super::chart::WIDTH;
use super::chart::{LETTER, LETTER_ON_PHONE, RIGHT, brief, letters};
use super::series::{colour, shape};
use super::svg::{Draw, t};
use std::fmt::Write;

/// A dot: series, ratio, the ratio's interval, and whether it is doubtful.
pub(crate) type Dot = (usize, f64, Option<[f64; 2]>, bool);

/// One row of a [`forest`].
pub(crate) struct Row {
    pub name: String,
    pub dots: Vec<Dot>,
}

/// The part of a forest's width that the names of its rows may take.
const NAMES: [f64; 2] = [126.0, 200.0];

/// A row's name as a text at a height, cut to what its column holds on a screen and on a phone. The
/// whole name is its title.
pub(crate) fn row_name(name: &str, room: f64, y: f64) -> String {
    let [on_screen, on_phone] =
        [LETTER, LETTER_ON_PHONE].map(|letter| cut(name, (room / letter) as usize));
    let mut svg = String::new();
    let mut add = |class: &str, text: &str| {
        let title = if text == name { String::new() } else { format!("<title>{name}</title>") };
        svg.text(class, 0, t(y), "", &format!("{text}{title}"));
    };
    if on_screen == on_phone {
        add("row", &on_screen);
    } else {
        add("row wide", &on_screen);
        add("row narrow", &on_phone);
    }
    svg
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
    let (left, right, top) =
        ((longest * LETTER + 14.0).clamp(NAMES[0], NAMES[1]), WIDTH - RIGHT, 6.0);
    let at = |ratio: f64| left + axis.place(ratio) * (right - left);
    let heights: Vec<f64> =
        rows.iter().map(|row| 12.0 + 9.0 * row.dots.len().max(1) as f64).collect();
    let bottom = top + heights.iter().sum::<f64>();
    let height = bottom + 42.0;
    let size = format!("viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{label}\"");
    let mut svg = format!("<svg class=\"forest\" {size}>");
    for (value, name) in &axis.ticks {
        let class = if *value == 1.0 { "axis" } else { "grid" };
        let x = at(*value);
        svg.path(class, format_args!("M{x:.1} {top}V{bottom}"));
        svg.text("", t(x), bottom + 16.0, "middle", name);
    }
    svg.text("title", right, bottom + 35.0, "end", &axis.title);
    let mut y = top;
    for (row, height) in rows.iter().zip(&heights) {
        svg.path("grid", format_args!("M0 {y:.1}H{right}"));
        svg.push_str(&row_name(&row.name, left - 4.0, y + height / 2.0 + 4.0));
        for (at_dot, dot) in row.dots.iter().enumerate() {
            draw(&mut svg, &row.name, dot, y + 10.5 + 9.0 * at_dot as f64, at, axis.to);
        }
        y += height;
    }
    svg + "</svg>"
}

/// A dot at a height; one beyond the axis is an arrow.
fn draw(
    svg: &mut String,
    name: &str,
    &(series, ratio, interval, is_doubtful): &Dot,
    y: f64,
    at: impl Fn(f64) -> f64,
    end: f64,
) {
    let (class, mark) = if is_doubtful { (" doubtful", "mark hollow") } else { ("", "mark") };
    let ends = interval.map(|[low, high]| format!(" {} {}", brief(low), brief(high)));
    let (ratio_text, ends) = (brief(ratio), ends.unwrap_or_default());
    let data = format!("data-figure=\"{name}\" data-ratio=\"{ratio_text}{ends}\"");
    let _ = write!(svg, "<g data-v=\"{series}\" class=\"{}{class}\" {data}>", colour(series));
    if let Some([low, high]) = interval {
        svg.path("line", format_args!("M{:.1} {y:.1}H{:.1}", at(low), at(high)));
    }
    let x = at(ratio);
    if ratio <= 0.0 || libm::fabs(libm::log10(ratio)) > end * 1.0001 {
        let (x, tip) = if ratio > 1.0 { (x - 5.0, 5.0) } else { (x + 5.0, -5.0) };
        svg.path("line", format_args!("M{x:.1} {:.1}l{tip} 4l{} 4", y - 4.0, -tip));
    } else {
        svg.path(mark, shape(series, x, y));
    }
    svg.push_str("</g>");
}
