//! Amounts as other simulators write them: decimals with exponents and ns-3's units, made whole
//! picoseconds and bits a second.
//!
//! Invariant: an amount is worked out in whole numbers, so no digit is lost; halves are rounded up.

use millpond_core::{Rate, Time};

/// Bits a second of ns-3's DataRate: bits or bytes a second, with decimal or binary prefixes;
/// without a unit it is bits a second.
fn rate_unit(unit: &str) -> Option<u128> {
    if unit.is_empty() {
        return Some(1);
    }
    let forms = [("bps", 1, false), ("Bps", 8, false), ("b/s", 1, true), ("B/s", 8, true)];
    let of = |(form, bits, is_binary)| Some((unit.strip_suffix(form)?, bits, is_binary));
    let (prefix, bits, is_binary): (&str, u128, bool) = forms.into_iter().find_map(of)?;
    let factor = match prefix {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" if is_binary => 1 << 10,
        "Mi" if is_binary => 1 << 20,
        "Gi" if is_binary => 1 << 30,
        _ => return None,
    };
    Some(bits * factor)
}

/// ns-3's Time; without a unit it is seconds. In femtoseconds.
const TIMES: [(&str, u128); 9] = [
    ("fs", 1),
    ("ps", 1_000),
    ("ns", 1_000_000),
    ("us", 1_000_000_000),
    ("ms", 1_000_000_000_000),
    ("s", 1_000_000_000_000_000),
    ("", 1_000_000_000_000_000),
    ("min", 60_000_000_000_000_000),
    ("h", 3_600_000_000_000_000_000),
];

/// A decimal: its digits, and how many of them are behind the point.
struct Decimal {
    digits: u128,
    behind: i32,
}

impl Decimal {
    /// So many wholes of a unit of `divisor` parts: the nearest whole number.
    fn times(&self, factor: u128, divisor: u128) -> Option<u64> {
        let mut amount = self.digits.checked_mul(factor)?;
        let mut divisor = divisor;
        for _ in 0..self.behind.unsigned_abs() {
            match self.behind > 0 {
                true if divisor > amount.saturating_mul(2) => return Some(0),
                true => divisor = divisor.checked_mul(10)?,
                false => amount = amount.checked_mul(10)?,
            }
        }
        u64::try_from(amount.checked_add(divisor / 2)? / divisor)
            .ok()
            .filter(|amount| *amount < 9 << 60)
    }
}

/// A number from 0 at the beginning of a text, as `double` is read there, and what follows it.
fn decimal(text: &str) -> Option<(Decimal, &str)> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (mut digits, mut behind, mut count, mut is_behind) = (0u128, 0i32, 0, false);
    let mut end = 0;
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' => {
                // A double holds 17 digits.
                if count < 18 {
                    digits = digits * 10 + u128::from(byte - b'0');
                    behind += i32::from(is_behind);
                } else {
                    behind -= i32::from(!is_behind);
                }
                count += i32::from(count > 0 || byte != b'0');
            }
            b'.' if !is_behind => is_behind = true,
            _ => break,
        }
        end += 1;
    }
    if !text[..end].bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let rest = &text[end..];
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let length = exponent[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if length > 0 {
            let exponent_value: i32 =
                exponent[..sign + length].parse().ok().filter(|e: &i32| e.abs() < 100)?;
            return Some((
                Decimal { digits, behind: behind - exponent_value },
                &exponent[sign + length..],
            ));
        }
    }
    Some((Decimal { digits, behind }, rest))
}

/// A rate such as `100Gbps`, `5Mb/s`, `12.5GBps` or `1e11`; it may be zero.
pub(crate) fn rate_or_zero(text: &str) -> Option<Rate> {
    let (number, unit) = decimal(text)?;
    number.times(rate_unit(unit)?, 1).map(Rate)
}

/// A rate that is not zero.
pub(crate) fn rate(text: &str) -> Option<Rate> {
    rate_or_zero(text).filter(|rate| rate.bps() > 0)
}

/// Whether a rate is written without a unit.
pub(crate) fn has_no_unit(text: &str) -> bool {
    decimal(text).is_some_and(|(_, rest)| rest.is_empty())
}

/// A time such as `1000ns`, `0.001ms` or `1e-6s`.
pub(crate) fn time(text: &str) -> Option<Time> {
    let (number, unit) = decimal(text)?;
    let factor = TIMES.iter().find(|(name, _)| *name == unit)?.1;
    number.times(factor, 1_000).map(Time::from_ps).filter(|time| *time <= Time::LONGEST)
}

/// Decimal seconds without a unit, exact to the picosecond.
pub(crate) fn seconds(text: &str) -> Option<Time> {
    time(text).filter(|_| has_no_unit(text))
}

/// A number from 0, as C++ reads a `double`.
pub(crate) fn number(text: &str) -> Option<f64> {
    let (_, rest) = decimal(text)?;
    text.parse().ok().filter(|number: &f64| rest.is_empty() && number.is_finite())
}

/// Microseconds as lists of flows have them.
pub(crate) fn us_text(time: Time) -> String {
    let ps = time.as_ps();
    let text = format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_exact_in_every_unit() {
        for text in [
            "100Gbps",
            "100000000000",
            "100000000000.0",
            "1e11",
            "12.5GBps",
            "12.5GB/s",
            "1E+11",
            "0.1Tbps",
        ] {
            assert_eq!(rate(text), Some(Rate(100_000_000_000)), "{text}");
        }
        assert_eq!(["2.5e10", "5Mb/s", "1.5kBps", "3KB/s"].map(rate), {
            [25_000_000_000, 5_000_000, 12_000, 24_000].map(|bps| Some(Rate(bps)))
        });
        assert_eq!(["0Gbps", "x", "-1Gbps", "10Xbps", "1e", "", ".", "1e300"].map(rate), [None; 8]);
        assert_eq!(rate_or_zero("0Mb/s"), Some(Rate(0)));
    }

    #[test]
    fn times_are_exact_in_every_unit() {
        assert_eq!(
            ["1000ns", "0.001ms", "0.000001", "1e-6s", "1e3ns"].map(time),
            [Some(Time::from_us(1)); 5]
        );
        assert_eq!(["-1us", "1x", "", "us", "1e-6 s"].map(time), [None; 5]);
        assert_eq!(["1h", "60min"].map(time), [Some(Time::from_s(3600)); 2]);
        assert_eq!(seconds("2.000000123"), Some(Time::from_ps(2_000_000_123_000)));
        assert_eq!(seconds("2.00001e+00"), Some(Time::from_us(2_000_010)));
        assert_eq!(["2", "2.", "+2", "0.2e1"].map(seconds), [Some(Time::from_s(2)); 4]);
        assert_eq!(["-2", ".", "40000000000000.0", "2s", "1e-"].map(seconds), [None; 5]);
        assert_eq!(seconds("1e-30"), Some(Time::ZERO));
        assert_eq!(seconds("0.00000000000000000000000000000000000000000001"), Some(Time::ZERO));
        assert_eq!(
            [123, 2_500_000, 7_000_000].map(|ps| us_text(Time::from_ps(ps))),
            ["0.000123", "2.5", "7"]
        );
    }

    #[test]
    fn numbers_are_those_of_a_double() {
        assert_eq!(
            ["2.00001e+00", "5", "1e3"].map(number),
            [Some(2.00001), Some(5.0), Some(1000.0)]
        );
        assert_eq!(["-1", "inf", "nan", "5x", ""].map(number), [None; 5]);
    }
}
