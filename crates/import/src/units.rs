//! Amounts as other simulators write them: decimals and ns-3's units, made whole picoseconds and
//! bits a second.

use millpond_core::{Rate, Time};

/// ns-3's DataRate: the unit is bits or bytes a second, with decimal prefixes.
const RATES: [(&str, f64); 15] = [
    ("bps", 1.0),
    ("b/s", 1.0),
    ("Bps", 8.0),
    ("B/s", 8.0),
    ("kbps", 1e3),
    ("kb/s", 1e3),
    ("Kbps", 1e3),
    ("Kb/s", 1e3),
    ("Mbps", 1e6),
    ("Mb/s", 1e6),
    ("MBps", 8e6),
    ("MB/s", 8e6),
    ("Gbps", 1e9),
    ("Gb/s", 1e9),
    ("Tbps", 1e12),
];

/// ns-3's Time; without a unit it is seconds.
const TIMES: [(&str, f64); 6] = [("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12), ("", 1e12)];

/// A number with one of these units. Decimals of up to 15 digits are exact.
fn amount(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let from = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit = units.iter().find(|(unit, _)| *unit == &text[from..])?.1;
    let value = text[..from].parse::<f64>().ok()? * unit;
    (0.0..9e18).contains(&value).then(|| value.round() as u64)
}

/// A rate such as `100Gbps` or `5Mb/s`; not zero.
pub(crate) fn rate(text: &str) -> Option<Rate> {
    amount(text, &RATES).filter(|bps| *bps > 0).map(Rate)
}

/// A time such as `1000ns` or `0.001ms`.
pub(crate) fn time(text: &str) -> Option<Time> {
    amount(text, &TIMES).map(Time::from_ps).filter(|time| *time <= Time::LONGEST)
}

/// Decimal seconds, exact to the picosecond.
pub(crate) fn seconds(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 7 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction: String = fraction.chars().chain("000000000000".chars()).take(12).collect();
    let ps = whole.parse::<u64>().ok()?.checked_mul(1_000_000_000_000)?.checked_add(fraction.parse().ok()?)?;
    Some(Time::from_ps(ps)).filter(|time| *time <= Time::LONGEST)
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
    fn amounts_are_exact() {
        assert_eq!(
            ["100Gbps", "5Mb/s", "1.5Gbps"].map(rate),
            [100_000_000_000, 5_000_000, 1_500_000_000].map(|r| Some(Rate(r)))
        );
        assert_eq!(["0Gbps", "10", "x", "-1Gbps", "10Xbps"].map(rate), [None; 5]);
        assert_eq!(["1000ns", "0.001ms", "0.000001"].map(time), [Some(Time::from_us(1)); 3]);
        assert_eq!(["-1us", "1h", ""].map(time), [None; 3]);
        assert_eq!(seconds("2.000000123"), Some(Time::from_ps(2_000_000_123_000)));
        assert_eq!(seconds("2"), Some(Time::from_s(2)));
        assert_eq!(["-2", "1e3", ".", "40000000000000.0"].map(seconds), [None; 4]);
        assert_eq!([123, 2_500_000, 7_000_000].map(|ps| us_text(Time::from_ps(ps))), ["0.000123", "2.5", "7"]);
    }
}
