//! Numbers as the page shows them: [`format`](crate::render::format)'s, with a space before the
//! unit and typographic signs.
//!
//! Invariant: three significant digits; what does not exist is a dash.

use crate::render::format;
use crate::statistics::shows::Form;

/// Between a number and its unit: narrow, and no place to break a line.
const SPACE: char = '\u{202f}';

pub(crate) fn time(us: Option<f64>) -> String {
    spaced(&format::time(us)).replace("us", "µs")
}

/// Bytes, decimal.
pub(crate) fn bytes(n: f64) -> String {
    if n < 0.5 {
        return "0".into();
    }
    format::bytes(n as u64).replace(' ', "\u{202f}")
}

/// A count, or a mean of counts.
pub(crate) fn count(n: Option<f64>) -> String {
    spaced(&format::count(n)).replace('-', "−")
}

/// A ratio such as a slowdown.
pub(crate) fn ratio(x: Option<f64>) -> String {
    format::ratio(x).replace('-', "−")
}

pub(crate) fn of(form: Form, value: Option<f64>) -> String {
    match form {
        Form::Time => time(value),
        Form::Ratio => ratio(value),
        Form::Percent => percent(value),
        Form::Rate => gbps(value),
        Form::Count => count(value),
    }
}

/// The ends of an interval, or a dash.
pub(crate) fn ends(interval: Option<[f64; 2]>, text: impl Fn(f64) -> String) -> String {
    interval.map_or(format::NONE.into(), |[low, high]| format!("{} to {}", text(low), text(high)))
}

/// A number of either sign in a form that is made for what is not negative.
pub(crate) fn signed(value: f64, text: impl Fn(f64) -> String) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", text(value.abs()))
}

pub(crate) fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let ends = |ends: Option<(f64, f64)>, value: f64| {
        let (least, most) = ends.unwrap_or((value, value));
        let least = if value.total_cmp(&least).is_lt() { value } else { least };
        Some((least, if value.total_cmp(&most).is_lt() { most } else { value }))
    };
    values.into_iter().fold(None, ends)
}

/// The size of something, without needless zeros.
pub(crate) fn size(of: u64) -> String {
    short(bytes(of as f64))
}

/// A rate given in Gb/s.
pub(crate) fn gbps(x: Option<f64>) -> String {
    match x.filter(|x| x.is_finite()) {
        Some(x) => format!("{}{SPACE}Gb/s", format::digits(x)),
        None => format::NONE.into(),
    }
}

pub(crate) fn percent(fraction: Option<f64>) -> String {
    typeset(&format::percent(fraction))
}

/// A relative change, with its sign.
pub(crate) fn change(relative: Option<f64>) -> String {
    typeset(&format::change(relative))
}

/// A number of text with a typographic minus, and a space before its percent sign.
pub(crate) fn typeset(text: &str) -> String {
    text.replace('-', "−").replace('%', "\u{202f}%")
}

/// The percentile above which a share remains: `p99.9` of 0.001.
pub(crate) fn percentile(share: f64) -> String {
    if share >= 1.0 {
        return "min".into();
    }
    let nines = libm::ceil(-libm::log10(share) - 1e-9).max(2.0) as usize - 2;
    format!("p{:.nines$}", (1.0 - share) * 100.0)
}

/// A round number without needless zeros: `1 ms`, not `1.00 ms`.
pub(crate) fn short(text: String) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    format!("{number}{unit}")
}

/// A space before the letters at the end.
fn spaced(text: &str) -> String {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    if unit.is_empty() || number.is_empty() {
        text.into()
    } else {
        format!("{number}{SPACE}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stand_apart() {
        assert_eq!(time(Some(12.34)), "12.3\u{202f}µs");
        assert_eq!(time(None), "–");
        assert_eq!(count(Some(123_456.0)), "123\u{202f}k");
        assert_eq!(change(Some(-0.5)), "−50\u{202f}%");
        assert_eq!(
            [percentile(0.5), percentile(0.1), percentile(1e-3), percentile(1e-4)],
            ["p50", "p90", "p99.9", "p99.99"]
        );
        assert_eq!(short(time(Some(1000.0))), "1\u{202f}ms");
        assert_eq!(short(bytes(100.0)), "100\u{202f}B");
    }
}
