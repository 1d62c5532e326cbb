//! The best point of a sweep among those that keep other numbers within bounds.
//!
//! A bound is absolute ("timeouts <= 0", "queries.qct.p99 <= 2ms") or a share of the first point's
//! number ("bulk.fct.mean <= 105 %"). A number that is only known to be at least its value, since
//! flows are open, is within no upper bound.
//!
//! Invariant: the verdict follows from the sweep's statistics alone.

use crate::model::{Estimate, Point, Sweep, Tree, clean};
use crate::statistics::censoring::shown;
use crate::statistics::points::columns_of;
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
    is_share: bool,
    text: String,
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
    fn holds(&self, own: &Tree<Estimate>, first: &Tree<Estimate>) -> Option<bool> {
        let column = Column::of(&self.number, &[own, first])?;
        let value = |tree| shown(tree, &column.at());
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

/// The number by which points are ranked: the one that is asked for, or the first one shown.
fn ranked(sweep: &Sweep) -> Option<Column> {
    let columns = columns_of(sweep);
    let trees: Vec<_> = sweep.points.iter().filter_map(|p| p.statistics.as_ref()).collect();
    let asked_for = sweep.best.as_ref().and_then(|name| Column::of(name, &trees));
    asked_for.or_else(|| columns.into_iter().find(|column| column.less_is_better.is_some()))
}

/// A sentence with the best point, and how many points are within the bounds; `None` if nothing was
/// asked.
pub(crate) fn verdict(sweep: &Sweep) -> Option<String> {
    if sweep.subject.is_empty() && sweep.best.is_none() {
        return None;
    }
    let column = ranked(sweep)?;
    let bounds: Vec<Bound> =
        sweep.subject.iter().filter_map(|text| Bound::parse(text).ok()).collect();
    let measured: Vec<(&Point, &Tree<Estimate>)> =
        sweep.points.iter().filter_map(|p| Some((p, p.statistics.as_ref()?))).collect();
    let (base, first) = *measured.first()?;
    let is_within =
        |tree: &Tree<Estimate>| bounds.iter().all(|of| of.holds(tree, first) == Some(true));
    let within: Vec<_> = measured.iter().filter(|(_, tree)| is_within(tree)).collect();
    let name = |point: &Point| {
        let values = point.values.iter().map(|(key, value)| format!("{key}={value}"));
        clean(&values.collect::<Vec<_>>().join(" "))
    };
    let texts: Vec<&str> = bounds.iter().map(|bound| bound.text.as_str()).collect();
    let of_first = match bounds.iter().any(|bound| bound.is_share) {
        true => format!(" (of {})", name(base)),
        false => String::new(),
    };
    let bounds = match texts.is_empty() {
        true => String::new(),
        false => format!(" with {}{of_first}", texts.join(" and ")),
    };
    let less = column.less_is_better.unwrap_or(true);
    let value = |tree: &Tree<Estimate>| shown(tree, &column.at());
    let best = within
        .iter()
        .filter_map(|(point, tree)| Some((point, value(tree), value(tree).estimate.mean?)))
        .min_by(|a, b| if less { a.2.total_cmp(&b.2) } else { b.2.total_cmp(&a.2) });
    let (n, all) = (within.len(), measured.len());
    Some(match best {
        Some((point, shown, _)) => format!(
            "{} {} at {}, the {} of {n} points of {all}{bounds}",
            clean(&column.caption),
            shown.text(|value| column.form.text(value)),
            name(point),
            if less { "least" } else { "most" },
        ),
        None => format!("none of {all} points is one{bounds}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::summary::{Fct, Summary};
    use crate::model::{Axis, Ordered};
    use crate::statistics::numbers::statistics;

    /// Three points with these means of mice and of elephants, and timeouts.
    fn sweep(points: [(f64, f64, u64); 3]) -> Sweep {
        let values = ["a", "b", "c"].map(String::from);
        let axis = Axis { key: "variant".into(), values: values.to_vec() };
        let plan = values.map(|value| (vec![value], Ok(String::new()))).to_vec();
        let mut sweep = Sweep::new("s", "1", vec![axis], vec![1], plan);
        for (point, (mice, elephants, timeouts)) in sweep.points.iter_mut().zip(points) {
            let fct = |mean| Fct { count: 1, mean: Some(mean), p99: Some(mean), ..Fct::default() };
            let fct_us = Ordered::from(vec![
                ("mice".into(), fct(mice)),
                ("elephants".into(), fct(elephants)),
            ]);
            point.statistics =
                Some(statistics(&Summary { fct_us, timeouts, ..Summary::default() }));
        }
        sweep
    }

    fn verdict_of(best: &str, subject: &[&str]) -> Option<String> {
        let mut sweep = sweep([(900.0, 1000.0, 9), (300.0, 1060.0, 0), (500.0, 1040.0, 4)]);
        sweep.best = (!best.is_empty()).then(|| best.to_string());
        sweep.subject = subject.iter().map(|text| text.to_string()).collect();
        verdict(&sweep)
    }

    #[test]
    fn best_point_is_the_best_of_those_within_the_bounds() {
        let best = |subject: &[&str]| verdict_of("mice.fct.mean", subject).unwrap();
        assert!(
            best(&[]).contains("300us at variant=b, the least of 3 points of 3"),
            "{}",
            best(&[])
        );
        let within = best(&["elephants.fct.mean <= 105 %"]);
        assert!(within.contains("500us at variant=c, the least of 2 points of 3"), "{within}");
        assert!(within.ends_with("with elephants.fct.mean <= 105 % (of variant=a)"), "{within}");
        let both = best(&["elephants.fct.mean <= 105 %", "timeouts <= 3"]);
        assert!(both.starts_with("none of 3 points"), "{both}");
        assert!(best(&["elephants.fct.mean <= 1.05ms"]).contains("500us at variant=c"));
        assert!(best(&["mice.fct.mean >= 0.8ms"]).contains("900us at variant=a, the least of 1"));
        assert_eq!(verdict_of("", &[]), None);
    }

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
