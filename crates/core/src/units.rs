//! Units as types: [`Time`] in picoseconds, [`Bytes`], [`Rate`] in bits per second, and the text
//! forms that users write.
//!
//! A picosecond is the largest step in which one byte takes a whole number of steps at every common
//! link rate (80 ps at 100 Gb/s, 20 ps at 400 Gb/s), so transmission times are exact and never
//! drift; a `u64` of them lasts 213 days.
//!
//! A quantity that is read as text has a largest value ([`Time::LONGEST`], [`Bytes::LARGEST`],
//! [`Rate::FASTEST`]), far below what the types hold: sums of a few quantities that were read
//! cannot wrap.
//!
//! Invariant: no conversion here uses floating point, except the `as_*_f64` functions, which are
//! for output only.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;
use std::time::Duration;

/// An instant or a span of virtual (or monotonic) time, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A number of bytes. Text: `1500`, `"64KiB"` (powers of 1024), `"300KB"` (powers of 1000).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A rate in bits per second. Text: `"10Gbps"` (decimal prefixes), or as tc(8) writes it,
/// `"10Gbit"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(pub u64);

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

impl Time {
    /// The start of virtual time, or no duration.
    pub const ZERO: Time = Time(0);
    /// Later than everything: the deadline of a timer that is off.
    pub const MAX: Time = Time(u64::MAX);

    /// The longest time that is read: eleven and a half days, of which eighteen fit the type.
    pub const LONGEST: Time = Time::from_s(1_000_000);
    /// Where a run without a duration ends: half of the type's range, so that what is scheduled
    /// before it, however late, has a time. Virtual time gets there by timers that back off for
    /// ever.
    pub const END: Time = Time(1 << 63);

    /// A time of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    /// A time of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * PS_PER_NS)
    }
    /// A time of `us` microseconds.
    pub const fn from_us(us: u64) -> Time {
        Time(us * PS_PER_US)
    }
    /// A time of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms * PS_PER_MS)
    }
    /// A time of `s` seconds.
    pub const fn from_s(s: u64) -> Time {
        Time(s * PS_PER_S)
    }
    /// The whole number of picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// The same as a span of the standard library, cut to nanoseconds.
    pub const fn to_duration(self) -> Duration {
        Duration::from_nanos(self.0 / PS_PER_NS)
    }
    /// In microseconds, for output.
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / PS_PER_US as f64
    }
    /// In seconds, for output.
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
    /// `self + other`, or [`Time::MAX`].
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
    /// `self * n`, or [`Time::MAX`].
    pub const fn saturating_mul(self, n: u64) -> Time {
        Time(self.0.saturating_mul(n))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}
impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}
impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}
impl SubAssign for Time {
    fn sub_assign(&mut self, other: Time) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Time {
    type Output = Time;
    fn mul(self, n: u64) -> Time {
        Time(self.0 * n)
    }
}
impl Div<u64> for Time {
    type Output = Time;
    fn div(self, n: u64) -> Time {
        Time(self.0 / n)
    }
}

impl Bytes {
    /// The most that is read: a petabyte, of which eighteen thousand fit the type.
    pub const LARGEST: Bytes = Bytes(1_000_000_000_000_000);

    /// As a `usize`-free integer, for arithmetic.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Rate {
    /// The highest that is read: a petabit per second, a hundred times what a byte a picosecond is.
    pub const FASTEST: Rate = Rate(1_000_000_000_000_000);

    /// The whole number of bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
    /// From gigabits per second.
    pub const fn from_gbps(g: u64) -> Rate {
        Rate(g * 1_000_000_000)
    }
    /// Time to put `bytes` on the wire, rounded up to a whole picosecond, so that a link never
    /// exceeds its rate. `Time::MAX` for a rate of zero.
    pub const fn transmission_time(self, bytes: u64) -> Time {
        if self.0 == 0 {
            return Time::MAX;
        }
        // The case of one packet or segment: a division of 64 bits costs a third of one of 128.
        if bytes <= u64::MAX / (8 * PS_PER_S) {
            return Time((bytes * 8 * PS_PER_S).div_ceil(self.0));
        }
        let bits_ps = bytes as u128 * 8 * PS_PER_S as u128;
        let ps = bits_ps.div_ceil(self.0 as u128);
        Time(if ps > u64::MAX as u128 { u64::MAX } else { ps as u64 })
    }
    /// Picoseconds per byte where that is a whole number (any rate that divides 8 Tb/s), for the
    /// fast path.
    pub const fn whole_ps_per_byte(self) -> Option<u64> {
        if self.0 == 0 || !(8 * PS_PER_S).is_multiple_of(self.0) {
            None
        } else {
            Some(8 * PS_PER_S / self.0)
        }
    }
    /// Bytes that fit in `time`, rounded down.
    pub const fn bytes_in(self, time: Time) -> u64 {
        let bytes = self.0 as u128 * time.0 as u128 / (8 * PS_PER_S as u128);
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

/// Why a text is not a quantity. The position is the caller's to add.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// No digits where a number should be.
    #[error("{0:?} does not start with a number")]
    NoNumber(String),
    /// A sign other than a leading digit.
    #[error("{0:?} is negative, which no {1} can be")]
    Negative(String, &'static str),
    /// The unit is none of this quantity.
    #[error("{text:?}: {unit:?} is not a unit of {what}; use one of {known}")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The part after the number.
        unit: String,
        /// "time", "size" or "rate".
        what: &'static str,
        /// The units that would do, comma-separated.
        known: &'static str,
    },
    /// A unit in letters of which some mean another one.
    #[error("{text:?}: {unit:?} can be read in two ways; {meant}")]
    TwoWays {
        /// The whole text.
        text: String,
        /// The part after the number.
        unit: String,
        /// The spelling to write.
        meant: &'static str,
    },
    /// No unit at all where one is required.
    #[error("{text:?} has no unit; write one of {known}")]
    NoUnit {
        /// The whole text.
        text: String,
        /// The units that would do.
        known: &'static str,
    },
    /// Larger than the type holds, or finer than its smallest step.
    #[error("{0:?} is out of range: {1}")]
    OutOfRange(String, &'static str),
}

/// Splits `"12.5us"` into 12.5 as (125, 1 decimal) and `"us"`.
fn split(text: &str, what: &'static str) -> Result<(u128, u32, String), UnitError> {
    let t = text.trim();
    if t.starts_with('-') {
        return Err(UnitError::Negative(text.into(), what));
    }
    let end = t.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(t.len());
    let digits: String = t[..end].chars().filter(|&c| c != '_').collect();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if whole.is_empty() || fraction.contains('.') {
        return Err(UnitError::NoNumber(text.into()));
    }
    let value = format!("{whole}{fraction}").parse::<u128>();
    let value = value.map_err(|_| UnitError::OutOfRange(text.into(), "too many digits"))?;
    Ok((value, fraction.len() as u32, t[end..].trim().to_string()))
}

/// How fine and how large a quantity may be, and the error beyond.
struct Extent {
    step: &'static str,
    most: u64,
    beyond: &'static str,
}

/// `value / 10^decimals × scale`, which must be a whole number within the extent.
fn scaled(
    text: &str,
    value: u128,
    decimals: u32,
    scale: u64,
    extent: &Extent,
) -> Result<u64, UnitError> {
    let too_large = || UnitError::OutOfRange(text.into(), extent.beyond);
    let divisor = 10u128.checked_pow(decimals).ok_or_else(too_large)?;
    let product = value.checked_mul(scale as u128).ok_or_else(too_large)?;
    if !product.is_multiple_of(divisor) {
        return Err(UnitError::OutOfRange(text.into(), extent.step));
    }
    u64::try_from(product / divisor)
        .ok()
        .filter(|amount| *amount <= extent.most)
        .ok_or_else(too_large)
}

macro_rules! quantity {
    (
        $type:ident, $what:literal, $known:literal, $extent:expr,
        bare: $bare:expr,
        two_ways: ($is:expr, $meant:literal),
        { $($unit:literal => $scale:expr),+ $(,)? }
    ) => {
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<$type, UnitError> {
                let (value, decimals, unit) = split(text, $what)?;
                let bare: Option<u64> = $bare;
                let is_two_ways: fn(&str) -> bool = $is;
                let scale = match unit.to_ascii_lowercase().as_str() {
                    "" => match bare {
                        Some(scale) => scale,
                        None if value == 0 => 1,
                        None => return Err(UnitError::NoUnit { text: text.into(), known: $known }),
                    },
                    $($unit if is_two_ways(&unit) => {
                        return Err(UnitError::TwoWays { text: text.into(), unit, meant: $meant });
                    })+
                    $($unit => $scale,)+
                    _ => {
                        let (text, what, known) = (text.into(), $what, $known);
                        return Err(UnitError::UnknownUnit { text, unit, what, known });
                    }
                };
                scaled(text, value, decimals, scale, &$extent).map($type)
            }
        }
    };
}

const TIMES: Extent = Extent {
    step: "finer than a picosecond",
    most: Time::LONGEST.0,
    beyond: "1000000s is the longest time",
};
const SIZES: Extent = Extent {
    step: "finer than a byte",
    most: Bytes::LARGEST.0,
    beyond: "1000TB is the largest size",
};
const SPEEDS: Extent = Extent {
    step: "finer than a bit per second",
    most: Rate::FASTEST.0,
    beyond: "1000Tbps is the highest rate",
};

quantity!(Time, "time", "ps, ns, us, ms, s", TIMES, bare: None, two_ways: (
    |unit| unit.contains(char::is_uppercase), "times are written ps, ns, us, ms, s"
), {
    "ps" => 1, "ns" => PS_PER_NS, "us" => PS_PER_US, "µs" => PS_PER_US, "ms" => PS_PER_MS,
    "s" => PS_PER_S,
});
quantity!(Bytes, "size", "B, KB, MB, GB, KiB, MiB, GiB", SIZES, bare: Some(1), two_ways: (
    |unit| unit.contains('b'),
    "b is a bit to some, and sizes are bytes: write B, KB, MB, GB, KiB, MiB, GiB"
), {
    "b" => 1, "kb" => 1_000, "mb" => 1_000_000, "gb" => 1_000_000_000, "tb" => 1_000_000_000_000,
    "kib" => 1 << 10, "mib" => 1 << 20, "gib" => 1 << 30, "tib" => 1 << 40,
});
// Bits, in tc(8)'s spelling as well. The bps of tc is bytes a second.
quantity!(
    Rate, "rate", "bps, Kbps, Mbps, Gbps, Tbps (bits; or bit, Kbit, Mbit, Gbit, Tbit)", SPEEDS,
    bare: None,
    two_ways: (
        |unit| unit.contains('B') && unit.ends_with(['s', 'S']),
        "B is a byte to some, and rates are bits a second: \
         write bps, Kbps, Mbps, Gbps, Tbps, and 8 for a byte"
    ),
    {
        "bps" => 1, "kbps" => 1_000, "mbps" => 1_000_000, "gbps" => 1_000_000_000,
        "tbps" => 1_000_000_000_000,
        "bit" => 1, "kbit" => 1_000, "mbit" => 1_000_000, "gbit" => 1_000_000_000,
        "tbit" => 1_000_000_000_000,
        "kibit" => 1 << 10, "mibit" => 1 << 20, "gibit" => 1 << 30, "tibit" => 1 << 40,
    }
);

/// The largest unit that gives a whole number, so that text and value always round-trip. The
/// alternate form (`{:#}`), for readers, rounds a number of five digits and more to three.
fn whole(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let last = &units[units.len() - 1];
    let exact = |(scale, _): &&(u64, &str)| value != 0 && value.is_multiple_of(*scale);
    let (scale, unit) = units.iter().find(exact).unwrap_or(last);
    if !f.alternate() || value / scale < 10_000 {
        return write!(f, "{}{unit}", value / scale);
    }
    let (scale, unit) = units.iter().find(|(scale, _)| value >= *scale).unwrap_or(last);
    let amount = value as f64 / *scale as f64;
    let decimals = if amount < 10.0 { 2 } else { usize::from(amount < 100.0) };
    write!(f, "{amount:.decimals$}{unit}")
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0us");
        }
        whole(
            f,
            self.0,
            &[(PS_PER_S, "s"), (PS_PER_MS, "ms"), (PS_PER_US, "us"), (PS_PER_NS, "ns"), (1, "ps")],
        )
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (1_000_000_000, "GB"),
            (1 << 30, "GiB"),
            (1_000_000, "MB"),
            (1 << 20, "MiB"),
            (1_000, "KB"),
            (1 << 10, "KiB"),
            (1, "B"),
        ];
        whole(f, self.0, &units)
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        whole(
            f,
            self.0,
            &[
                (PS_PER_S, "Tbps"),
                (PS_PER_MS, "Gbps"),
                (PS_PER_US, "Mbps"),
                (PS_PER_NS, "Kbps"),
                (1, "bps"),
            ],
        )
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_round_trip() {
        for t in ["1us", "50ms", "360us", "1s", "1500ns", "7ps"] {
            assert_eq!(t.parse::<Time>().unwrap().to_string(), t);
        }
        assert_eq!("1.5us".parse::<Time>().unwrap(), Time::from_ns(1500));
        for b in ["64KiB", "300KB", "9MB", "1B", "65KB"] {
            assert_eq!(b.parse::<Bytes>().unwrap().to_string(), b);
        }
        assert_eq!("1500".parse::<Bytes>().unwrap(), Bytes(1500));
        assert_eq!("10gbps".parse::<Rate>().unwrap(), Rate::from_gbps(10));
        assert_eq!("10Gbit".parse::<Rate>().unwrap(), Rate::from_gbps(10));
        assert_eq!("1.5mibit".parse::<Rate>().unwrap(), Rate(3 << 19));
        assert_eq!("2.5Gbps".parse::<Rate>().unwrap().to_string(), "2500Mbps");
    }

    #[test]
    fn alternate_form_rounds_long_numbers_alone() {
        assert_eq!(format!("{:#}", Time::from_ns(30_195_840)), "30.2ms");
        assert_eq!(format!("{:#}", Time::from_us(1_500)), "1500us");
        assert_eq!(format!("{:#}", Time(999_999_999_999)), "1000ms");
        assert_eq!(format!("{:#}", Bytes(373_761)), "374KB");
        assert_eq!(format!("{:#}", Bytes(1514)), "1514B");
        assert_eq!(format!("{:#}", Rate(1_234_567_891)), "1.23Gbps");
    }

    #[test]
    fn bad_text_says_what_would_do() {
        assert!(matches!("10 furlongs".parse::<Time>(), Err(UnitError::UnknownUnit { .. })));
        assert!(matches!("-1us".parse::<Time>(), Err(UnitError::Negative(..))));
        assert!(matches!("10".parse::<Rate>(), Err(UnitError::NoUnit { .. })));
        assert!(matches!("us".parse::<Time>(), Err(UnitError::NoNumber(..))));
        assert!(matches!("1.2.3us".parse::<Time>(), Err(UnitError::NoNumber(..))));
        assert!(matches!("0.1ps".parse::<Time>(), Err(UnitError::OutOfRange(..))));
        assert!(matches!(
            "99999999999999999999999s".parse::<Time>(),
            Err(UnitError::OutOfRange(..))
        ));
        assert_eq!("0".parse::<Time>().unwrap(), Time::ZERO);
    }

    /// Letters whose size distinguishes bits from bytes elsewhere: refused, with what to write.
    #[test]
    fn units_that_mean_two_things_are_refused() {
        let says =
            |error: UnitError, what: &str| assert!(error.to_string().contains(what), "{error}");
        for rate in ["10GBps", "1.5MBps", "10GBPS", "8 Bps"] {
            says(rate.parse::<Rate>().unwrap_err(), "write bps, Kbps, Mbps, Gbps");
        }
        for size in ["10Kb", "300kb", "64Kib", "1500b"] {
            says(size.parse::<Bytes>().unwrap_err(), "write B, KB, MB, GB, KiB");
        }
        for time in ["1MS", "1Us", "2S"] {
            says(time.parse::<Time>().unwrap_err(), "written ps, ns, us, ms, s");
        }
        assert_eq!("10GBit".parse::<Rate>().unwrap(), Rate::from_gbps(10));
        assert_eq!("10GbPS".parse::<Rate>().unwrap(), Rate::from_gbps(10));
        assert_eq!(
            ["1kB", "1KIB"].map(|size| size.parse::<Bytes>().unwrap()),
            [Bytes(1_000), Bytes(1_024)]
        );
    }

    #[test]
    fn what_is_read_leaves_room_for_sums() {
        assert_eq!("1000000s".parse::<Time>().unwrap(), Time::LONGEST);
        assert_eq!("1000TB".parse::<Bytes>().unwrap(), Bytes::LARGEST);
        assert_eq!("1000Tbps".parse::<Rate>().unwrap(), Rate::FASTEST);
        let says =
            |error: UnitError, most: &str| assert!(error.to_string().contains(most), "{error}");
        says("1000000000001us".parse::<Time>().unwrap_err(), "1000000s is the longest");
        says("18446744073709551615ps".parse::<Time>().unwrap_err(), "longest");
        says("4611686018427387904B".parse::<Bytes>().unwrap_err(), "1000TB is the largest");
        says("1001Tbps".parse::<Rate>().unwrap_err(), "highest");
        assert!((Time::END + Time::LONGEST * 9).as_ps() > Time::END.as_ps());
    }

    #[test]
    fn transmission_times_are_exact_at_common_rates() {
        for (gbps, ps) in [(1, 8000), (10, 800), (25, 320), (40, 200), (100, 80), (400, 20)] {
            assert_eq!(Rate::from_gbps(gbps).whole_ps_per_byte(), Some(ps));
            assert_eq!(Rate::from_gbps(gbps).transmission_time(1500), Time::from_ps(1500 * ps));
        }
        assert_eq!(Rate::from_gbps(3).whole_ps_per_byte(), None);
        assert_eq!(Rate::from_gbps(3).transmission_time(1), Time::from_ps(2667));
        assert_eq!(Rate(0).transmission_time(1), Time::MAX);
        // The largest for which 64 bits are enough, and the next.
        for bytes in [2_305_843, 2_305_844] {
            let ps = (bytes as u128 * 8 * u128::from(PS_PER_S)).div_ceil(3);
            assert_eq!(u128::from(Rate(3).transmission_time(bytes).as_ps()), ps);
        }
    }
}
