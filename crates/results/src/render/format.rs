//! Numbers as people read them: three significant digits and a fitting unit.
//!
//! Invariant: a number that does not exist is a dash, never a zero.

use crate::statistics::censoring::Shown;
use crate::statistics::shows::Form;

/// The mark of a value that is not there.
pub(crate) const NONE: &str = "–";

pub(crate) fn digits(value: f64) -> String {
    let size = value.abs();
    match () {
        () if size >= 99.95 || size == 0.0 => format!("{value:.0}"),
        () if size >= 9.995 => format!("{value:.1}"),
        () if size >= 0.9995 => format!("{value:.2}"),
        () => format!("{value:.3}"),
    }
}

pub(crate) fn time(us: Option<f64>) -> String {
    let Some(us) = us.filter(|us| us.is_finite()) else { return NONE.into() };
    let size = us.abs();
    match () {
        () if size == 0.0 => "0".into(),
        () if size < 0.9995 => format!("{}ns", digits(us * 1e3)),
        () if size < 999.5 => format!("{}us", digits(us)),
        () if size < 999.5e3 => format!("{}ms", digits(us / 1e3)),
        () => format!("{}s", digits(us / 1e6)),
    }
}

/// A count, or a mean of counts.
pub(crate) fn count(n: Option<f64>) -> String {
    let Some(n) = n.filter(|n| n.is_finite()) else { return NONE.into() };
    let size = n.abs();
    match () {
        () if size < 99_999.5 && n.fract() == 0.0 => thousands(n),
        () if size < 999.5 => digits(n),
        () if size < 99_999.5 => thousands(n),
        () if size < 999.5e3 => format!("{}k", digits(n / 1e3)),
        () if size < 999.5e6 => format!("{}M", digits(n / 1e6)),
        () => format!("{}G", digits(n / 1e9)),
    }
}

pub(crate) fn whole(n: u64) -> String {
    count(Some(n as f64))
}

fn thousands(n: f64) -> String {
    let text = format!("{:.0}", n.abs());
    let sign = if n < 0.0 { "-" } else { "" };
    match text.len() {
        0..=3 => format!("{sign}{text}"),
        len => format!("{sign}{},{}", &text[..len - 3], &text[len - 3..]),
    }
}

/// A ratio such as a slowdown.
pub(crate) fn ratio(x: Option<f64>) -> String {
    x.filter(|x| x.is_finite())
        .map_or(NONE.into(), |x| if x < 999.5 { digits(x) } else { count(Some(x)) })
}

/// A fraction as a percentage. Only all are 100 %.
pub(crate) fn percent(fraction: Option<f64>) -> String {
    let Some(x) = fraction.filter(|x| x.is_finite()) else { return NONE.into() };
    match () {
        () if x == 1.0 => "100%".into(),
        () if x == 0.0 => "0%".into(),
        () if (0.9995..1.0).contains(&x) => ">99.9%".into(),
        () => format!("{:.1}%", x * 100.0),
    }
}

/// A relative change, with its sign.
pub(crate) fn change(relative: Option<f64>) -> String {
    let Some(x) = relative.filter(|x| x.is_finite()) else { return NONE.into() };
    let x = x * 100.0;
    match () {
        () if x.abs() < 0.05 => "0%".into(),
        () if x.abs() < 9.95 => format!("{x:+.1}%"),
        () if x < 9_999.5 => format!("{x:+.0}%"),
        () => format!("×{}", digits(x / 100.0 + 1.0)),
    }
}

/// Bytes, decimal.
pub(crate) fn bytes(n: u64) -> String {
    let n = n as f64;
    match () {
        () if n < 999.5 => format!("{n:.0} B"),
        () if n < 999.5e3 => format!("{} KB", digits(n / 1e3)),
        () if n < 999.5e6 => format!("{} MB", digits(n / 1e6)),
        () if n < 999.5e9 => format!("{} GB", digits(n / 1e9)),
        () => format!("{} TB", digits(n / 1e12)),
    }
}

pub(crate) fn of(form: Form, value: Option<f64>) -> String {
    match form {
        Form::Time => time(value),
        Form::Ratio => ratio(value),
        Form::Percent => percent(value),
        Form::Rate => value.map_or(NONE.into(), |rate| format!("{}G", digits(rate))),
        Form::Count => count(value),
    }
}

impl Shown {
    /// As text: a bound has its sign.
    pub fn text(&self, form: impl Fn(Option<f64>) -> String) -> String {
        let sign = if self.at_least { "\u{2265}" } else { "" };
        format!("{sign}{}", form(self.estimate.mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        let times: Vec<_> = [0.0, 0.0123, 1.0, 99.96, 999.4, 999.6, 1234.5, 8.44e6]
            .into_iter()
            .map(|t| time(Some(t)))
            .collect();
        assert_eq!(times, ["0", "12.3ns", "1.00us", "100us", "999us", "1.00ms", "1.23ms", "8.44s"]);
        let counts: Vec<_> = [0.0, 7.0, 12345.0, 1.5, 1234.5, 123456.0, 9.87e6, 1e9]
            .into_iter()
            .map(|n| count(Some(n)))
            .collect();
        assert_eq!(counts, ["0", "7", "12,345", "1.50", "1,234", "123k", "9.87M", "1.00G"]);
        assert_eq!(time(None), NONE);
        assert_eq!(
            [percent(Some(1.0)), percent(Some(0.99999)), percent(Some(0.5))],
            ["100%", ">99.9%", "50.0%"]
        );
        assert_eq!(
            [change(Some(-0.5)), change(Some(0.012)), change(Some(500.0))],
            ["-50%", "+1.2%", "×501"]
        );
        assert_eq!([bytes(0), bytes(1_500_000)], ["0 B", "1.50 MB"]);
    }
}
