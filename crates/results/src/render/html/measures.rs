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
pub(crate) struct Measure<'a> {
    pub group: &'static str,
    pub name: String,
    pub path: Vec<&'a str>,
    pub form: Form,
    pub less_is_better: Option<bool>,
    pub term: &'static str,
}

pub(crate) const LESS: Option<bool> = Some(true);
pub(crate) const MORE: Option<bool> = Some(false);

/// Group, name, path, form, whether less is better, term.
type Row = (&'static str, &'static str, &'static str, Form, Option<bool>, &'static str);

const OPEN: &str = "mean, open at horizon";
const QUERIES: &str = "Queries";
const FLOWS: &str = "Flows";
const NETWORK: &str = "Network";

const ROWS: [Row; 25] = [
    (QUERIES, "completed", "qct_us.completed_fraction", Form::Percent, MORE, "open"),
    (QUERIES, "QCT mean", "qct_us.mean", Form::Time, LESS, "QCT"),
    (QUERIES, "QCT mean, open at horizon", "qct_us.mean_restricted", Form::Time, LESS, OPEN),
    (QUERIES, "QCT p50", "qct_us.p50", Form::Time, LESS, "QCT"),
    (QUERIES, "QCT p95", "qct_us.p95", Form::Time, LESS, "QCT"),
    (QUERIES, "QCT p99", "qct_us.p99", Form::Time, LESS, "QCT"),
    ("Probes", "RTT p50", "rtt_us.p50", Form::Time, LESS, ""),
    ("Probes", "RTT p99", "rtt_us.p99", Form::Time, LESS, ""),
    (FLOWS, "completed", "fct_us.all.completed_fraction", Form::Percent, MORE, "open"),
    (FLOWS, "FCT mean", "fct_us.all.mean", Form::Time, LESS, "FCT"),
    (FLOWS, "FCT mean, open at horizon", "fct_us.all.mean_restricted", Form::Time, LESS, OPEN),
    (FLOWS, "mice p50", "fct_us.mice.p50", Form::Time, LESS, "mice"),
    (FLOWS, "mice p95", "fct_us.mice.p95", Form::Time, LESS, "mice"),
    (FLOWS, "mice p99", "fct_us.mice.p99", Form::Time, LESS, "mice"),
    (FLOWS, "elephants p50", "fct_us.elephants.p50", Form::Time, LESS, "elephants"),
    (FLOWS, "elephants p99", "fct_us.elephants.p99", Form::Time, LESS, "elephants"),
    (FLOWS, "slowdown p99", "slowdown.all.p99", Form::Ratio, LESS, "slowdown"),
    (FLOWS, "goodput", "flows.goodput_gbps", Form::Rate, MORE, "goodput"),
    (NETWORK, "drops", "packets.dropped", Form::Count, LESS, "drops"),
    (NETWORK, "timeouts", "timeouts", Form::Count, LESS, "timeouts"),
    (NETWORK, "sent again", "packets.retransmitted", Form::Count, LESS, "sent again"),
    (NETWORK, "out of order", "packets.out_of_order", Form::Count, None, ""),
    (NETWORK, "marks", "packets.ecn_marked", Form::Count, None, "marks"),
    (NETWORK, "deflected", "packets.deflected", Form::Count, None, ""),
    (NETWORK, "PAUSE frames", "pause_frames", Form::Count, None, ""),
];

/// The usual numbers of charts, in their order.
const CHARTS: [Row; 8] = [
    ("", "FCT p99 of mice", "fct_us.mice.p99", Form::Time, LESS, ""),
    ("", "Mean FCT", "fct_us.all.mean", Form::Time, LESS, ""),
    ("", "QCT p99", "qct_us.p99", Form::Time, LESS, ""),
    ("", "Mean QCT", "qct_us.mean", Form::Time, LESS, ""),
    ("", "Queries completed", "qct_us.completed_fraction", Form::Percent, MORE, ""),
    ("", "Goodput", "flows.goodput_gbps", Form::Rate, MORE, ""),
    ("", "Drops", "packets.dropped", Form::Count, LESS, ""),
    ("", "Timeouts", "timeouts", Form::Count, LESS, ""),
];

/// The group of the numbers that were asked for.
pub(crate) const SHOWN: &str = "Shown";

fn of_rows(rows: &[Row]) -> Vec<Measure<'static>> {
    let of = |&(group, name, path, form, less_is_better, term): &Row| {
        let (name, path) = (name.to_string(), path.split('.').collect());
        Measure { group, name, path, form, less_is_better, term }
    };
    rows.iter().map(of).collect()
}

/// The rows of tables of variants.
pub(crate) fn usual() -> Vec<Measure<'static>> {
    of_rows(&ROWS)
}

/// The numbers that were asked for.
pub(crate) fn asked_for(columns: &[Column]) -> Vec<Measure<'_>> {
    fn of(column: &Column) -> Measure<'_> {
        let &Column { form, less_is_better, .. } = column;
        let (name, path) = (column.caption.clone(), column.at());
        Measure { group: SHOWN, name, path, form, less_is_better, term: "" }
    }
    columns.iter().map(of).collect()
}

/// The numbers that charts are of: those that tables show, or the usual ones.
pub(crate) fn of_charts<'a>(
    is_given: bool,
    columns: &'a [Column],
    trees: &[&Tree<Estimate>],
) -> Vec<Measure<'a>> {
    if !is_given && is_usual(trees) { of_rows(&CHARTS) } else { asked_for(columns) }
}

impl<'a> Measure<'a> {
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
    pub fn shown(&self, variant: &Variant) -> Option<Shown<'a>> {
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
        let share = |variant: &Variant| match self.path.as_slice() {
            ["qct_us", ..] => variant.number(&["qct_us", "completed_fraction"]),
            _ => variant.result.statistics.share_of_flows(),
        };
        let is_open = |variant| share(variant).is_some_and(|share| share < 1.0);
        let needs_open = self.path.last() == Some(&"mean_restricted");
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
