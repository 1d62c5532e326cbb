//! The best point of a sweep among those that keep other numbers within bounds.
//!
//! A bound is absolute ("timeouts <= 0", "queries.qct.p99 <= 2ms") or a share of the first point's
//! number ("bulk.fct.mean <= 105 %"). A number that is only known to be at least its value, since
//! flows are open, is within no upper bound.
//!
//! Invariant: the verdict follows from the sweep's statistics alone.

use crate::model::{Estimate, Tree};
use crate::statistics::censoring::shown;
use crate::statistics::shows::{Column, Form};

/// A number and the values that it may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The number's name, as in `shows`.
    pub number: String,
    /// Whether it may be at most, rather than at least, the limit.
    at_most: bool,
    limit: f64,
    /// Whether the limit is in percent of the first point's number.
    pub(crate) is_share: bool,
    pub(crate) text: String,
}

impl Bound {
    /// Reads `NAME <= LIMIT` or `NAME >= LIMIT`; a limit is a number, a time, or a percentage.
    ///
    /// # Errors
    /// The text has neither sign, no number is called NAME, or the limit is no such value.
    pub fn parse(text: &str) -> Result<Bound, String> {
        let sides = text.split_once("<=").map(|sides| (sides, true));
        let ((number, limit), at_most) = sides
            .or_else(|| text.split_once(">=").map(|sides| (sides, false)))
            .ok_or("write NAME <= LIMIT or NAME >= LIMIT, such as \"bulk.fct.mean <= 105 %\"")?;
        let (number, limit) = (number.trim().to_string(), limit.trim());
        let column = named(&number, &[])?;
        let units = [("ns", 1e-3), ("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6), ("%", 1.0)];
        let found =
            units.iter().find_map(|&(unit, scale)| Some((limit.strip_suffix(unit)?, unit, scale)));
        let (digits, unit, scale) = found.unwrap_or((limit, "", 1.0));
        let is_share = unit == "%";
        if !unit.is_empty() && !is_share && column.form != Form::Time {
            return Err(format!("{number} is no time: write its limit without {unit}"));
        }
        let value = digits.trim().parse::<f64>().ok().filter(|value| value.is_finite());
        let value = value.ok_or(format!(
            "{limit:?} is no number, time or percentage (of the number at the first point)"
        ))?;
        if unit.is_empty() && column.form == Form::Time {
            return Err(format!("{number} is a time: write its limit with a unit, such as 2ms"));
        }
        let limit = value * scale;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Bound { number, at_most, limit, is_share, text })
    }

    /// Whether a point is within it; `None` if one of the two numbers that it takes is missing.
    pub(crate) fn holds(&self, own: &Tree<Estimate>, first: &Tree<Estimate>) -> Option<bool> {
        let column = Column::of(&self.number, &[own, first])?;
        let value = |tree| shown(tree, &column.path);
        let limit = match self.is_share {
            true => value(first).estimate.mean? * self.limit / 100.0,
            false => self.limit,
        };
        let is = value(own);
        let mean = is.estimate.mean?;
        Some(if self.at_most { mean <= limit && !is.at_least } else { mean >= limit })
    }
}

/// The column of a number that has a better side.
///
/// # Errors
/// No number is called so.
fn named(number: &str, trees: &[&Tree<Estimate>]) -> Result<Column, String> {
    Column::of(number, trees).ok_or_else(|| {
        format!("no number is called {number:?}; such names are queries.qct.p99, timeouts")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_mean_nothing_are_refused() {
        for (text, part) in [
            ("mice.fct.mean < 3", "NAME <= LIMIT"),
            ("mice.size <= 3", "no number is called"),
            ("timeouts <= 3ms", "is no time"),
            ("mice.fct.mean <= 2", "write its limit with a unit"),
            ("mice.fct.mean <= fast", "is no number"),
        ] {
            let error = Bound::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
