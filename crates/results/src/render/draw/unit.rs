//! The units of an axis' numbers: their names and how a number is written in one.

use super::number;

/// The unit of an axis' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Time,
    /// Bytes.
    Bytes,
    /// Gb/s.
    Rate,
    /// A ratio, or a number that the axis' title explains.
    Ratio,
    /// The share that takes longer, named by the percentile.
    Share,
    Percent,
    Count,
    /// A place among names, which stand beside the axis.
    Name,
}

impl Unit {
    /// Its name in the page's script.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Time => "time",
            Unit::Bytes => "bytes",
            Unit::Rate => "rate",
            Unit::Ratio => "ratio",
            Unit::Share => "share",
            Unit::Percent => "percent",
            Unit::Count => "count",
            Unit::Name => "name",
        }
    }

    /// The unit of the numbers, for the head of a column.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Time => "us",
            Unit::Bytes => "bytes",
            Unit::Rate => "Gb/s",
            Unit::Percent => "%",
            Unit::Ratio | Unit::Share | Unit::Count | Unit::Name => "",
        }
    }

    /// A number as a reader wants it, to three digits.
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::Time => number::short(number::time(Some(value))),
            Unit::Bytes => number::short(number::bytes(value)),
            Unit::Rate => number::gbps(Some(value)),
            Unit::Percent => number::percent(Some(value / 100.0)),
            Unit::Count => number::count(Some(value)),
            Unit::Ratio | Unit::Share | Unit::Name => number::ratio(Some(value)),
        }
    }
}
