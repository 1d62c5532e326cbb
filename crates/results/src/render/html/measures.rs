//! The numbers that variants and points are compared by, in tables and charts.

use super::Variant;
use crate::model::{Difference, Estimate, IntervalKind, Noise, Tree};
use crate::render::draw::number;
use crate::render::draw::unit::Unit;
use crate::render::markup::escape;
use crate::statistics::censoring::{self, Shown, shown};
use crate::statistics::shows::{Column, Form, is_usual};

/// Variants as columns of a table, as long as they fit.
pub(crate) const COLUMNS: usize = 8;

/// One number that variants are compared by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measure {
    pub group: &'static str,
    pub name: String,
    pub path: Vec<String>,
    pub form: Form,
    pub less_is_better: Option<bool>,
    pub term: &'static str,
}

pub(crate) const LESS: Option<bool> = Some(true);
pub(crate) const MORE: Option<bool> = Some(false);
/// The group of the numbers that were asked for.
pub(crate) const SHOWN: &str = "Shown";
/// The group of the usual numbers of charts.
const CHARTS: &str = "Charts";

/// The numbers of `measures.txt`: group, name, the number's name in `shows`, term.
fn listed() -> impl Iterator<Item = Measure> {
    include_str!("measures.txt").lines().filter_map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let mut next = || columns.next().unwrap_or_default();
        let (group, name, number, term) = (next(), next(), next(), next());
        let Column { path, form, less_is_better, .. } = Column::of(number, &[])?;
        Some(Measure { group, name: name.into(), path, form, less_is_better, term })
    })
}

/// The rows of tables of variants.
pub(crate) fn usual() -> Vec<Measure> {
    listed().filter(|measure| measure.group != CHARTS).collect()
}

/// The numbers that were asked for.
pub(crate) fn asked_for(columns: &[Column]) -> Vec<Measure> {
    let of = |column: &Column| {
        let Column { caption, path, form, less_is_better, .. } = column.clone();
        Measure { group: SHOWN, name: caption, path, form, less_is_better, term: "" }
    };
    columns.iter().map(of).collect()
}

/// The numbers that charts are of: those that tables show, or the usual ones.
pub(crate) fn of_charts(
    is_given: bool,
    columns: &[Column],
    trees: &[&Tree<Estimate>],
) -> Vec<Measure> {
    match !is_given && is_usual(trees) {
        true => listed().filter(|measure| measure.group == CHARTS).collect(),
        false => asked_for(columns),
    }
}

impl Measure {
    pub fn unit(&self) -> Unit {
        match self.form {
            Form::Time => Unit::Time,
            Form::Ratio => Unit::Ratio,
            Form::Percent => Unit::Percent,
            Form::Rate => Unit::Rate,
            Form::Count => Unit::Count,
        }
    }

    pub fn markup(&self) -> String {
        escape(&self.name)
    }

    /// Makes the axis' unit of the summary's.
    pub fn scale(&self) -> f64 {
        if self.form == Form::Percent { 100.0 } else { 1.0 }
    }

    /// As it is shown of a variant; `None` if its runs do not have it.
    pub fn shown(&self, variant: &Variant) -> Option<Shown> {
        let statistics = &variant.result.statistics;
        statistics.leaf(&self.path)?;
        Some(shown(statistics, &self.path))
    }

    pub fn value(&self, variant: &Variant) -> Option<f64> {
        self.shown(variant)?.estimate.mean
    }

    pub fn text(&self, variant: &Variant) -> String {
        self.shown(variant).unwrap_or_default().text(|value| number::of(self.form, value))
    }

    /// The difference of a variant to the first one.
    pub fn difference(&self, variants: &[Variant], at: usize) -> Option<Difference> {
        censoring::difference(&variants[0].result, &variants[at].result, &self.path)
    }

    /// Whether there is anything to show of it.
    pub fn is_shown(&self, variants: &[Variant]) -> bool {
        let mut values = variants.iter().filter_map(|variant| self.value(variant));
        let is_some = values.any(|value| self.less_is_better == MORE || value != 0.0);
        let share = |variant: &Variant| match self.path[0].as_str() {
            "qct_us" => variant.number(&["qct_us", "completed_fraction"]),
            _ => variant.result.statistics.share_of_flows(),
        };
        let is_open = |variant| share(variant).is_some_and(|share| share < 1.0);
        let needs_open = self.path.last().is_some_and(|key| key == "mean_restricted");
        is_some && (!needs_open || variants.iter().any(is_open))
    }

    /// The variant that is best beyond the noise.
    pub fn best(&self, variants: &[Variant]) -> Option<usize> {
        let less = self.less_is_better?;
        let values = variants.iter().map(|variant| self.shown(variant));
        let there = values
            .enumerate()
            .filter_map(|(at, shown)| Some((at, shown.as_ref()?.estimate.mean?, shown?.at_least)));
        let by = |a: &(usize, f64, bool), b: &(usize, f64, bool)| {
            let order = a.1.total_cmp(&b.1);
            if less { order } else { order.reverse() }
        };
        let (best, _, at_least) = there.min_by(by)?;
        (!at_least && self.is_clear(variants, best)).then_some(best)
    }

    /// Whether the best one differs from every other by more than noise.
    fn is_clear(&self, variants: &[Variant], best: usize) -> bool {
        let apart = |other: usize| {
            let (first, second) = (best.min(other), best.max(other));
            if first == 0 {
                return self.difference(variants, second).is_some_and(|d| d.noise == Noise::Beyond);
            }
            let interval = |at: usize| {
                let estimate = self.shown(&variants[at])?.estimate;
                let kind = estimate.interval_kind.filter(|kind| *kind != IntervalKind::Range)?;
                Some((estimate.interval?, kind))
            };
            let (Some((a, of_a)), Some((b, of_b))) = (interval(best), interval(other)) else {
                return false;
            };
            let varies = of_a != IntervalKind::Identical || of_b != IntervalKind::Identical;
            varies && (a[1] < b[0] || b[1] < a[0])
        };
        (0..variants.len()).filter(|&other| other != best).all(apart)
    }
}
