//! The numbers that variants are compared by.

use super::Variant;
use super::number::{count, gbps, percent, ratio, time};
use crate::model::estimate::Difference;
use crate::model::{IntervalKind, Noise};
use crate::statistics::censoring;
use crate::statistics::censoring::{Shown, shown};
use crate::statistics::shows::{Column, Form};

/// Variants as columns of a table, as long as they fit.
pub(crate) const COLUMNS: usize = 8;
/// One number that variants are compared by.
pub(crate) struct Figure<'a> {
    pub group: &'a str,
    pub name: &'a str,
    /// In the summary.
    pub path: &'a [&'a str],
    pub form: fn(Option<f64>) -> String,
    pub less_is_better: Option<bool>,
    pub term: &'a str,
}

macro_rules! figure {
    ($group:literal, $name:literal, $path:expr, $form:ident, $less:expr, $term:literal) => {
        Figure {
            group: $group,
            name: $name,
            path: &$path,
            form: $form,
            less_is_better: $less,
            term: $term,
        }
    };
}

pub(crate) const LESS: Option<bool> = Some(true);
pub(crate) const MORE: Option<bool> = Some(false);

pub(crate) const FIGURES: [Figure<'static>; 25] = [
    figure!("Queries", "completed", ["qct_us", "completed_fraction"], percent, MORE, "open"),
    figure!("Queries", "QCT mean", ["qct_us", "mean"], time, LESS, "QCT"),
    figure!(
        "Queries",
        "QCT mean, open at horizon",
        ["qct_us", "mean_restricted"],
        time,
        LESS,
        "mean, open at horizon"
    ),
    figure!("Queries", "QCT p50", ["qct_us", "p50"], time, LESS, "QCT"),
    figure!("Queries", "QCT p95", ["qct_us", "p95"], time, LESS, "QCT"),
    figure!("Queries", "QCT p99", ["qct_us", "p99"], time, LESS, "QCT"),
    figure!("Probes", "RTT p50", ["rtt_us", "p50"], time, LESS, ""),
    figure!("Probes", "RTT p99", ["rtt_us", "p99"], time, LESS, ""),
    figure!("Flows", "completed", ["fct_us", "all", "completed_fraction"], percent, MORE, "open"),
    figure!("Flows", "FCT mean", ["fct_us", "all", "mean"], time, LESS, "FCT"),
    figure!(
        "Flows",
        "FCT mean, open at horizon",
        ["fct_us", "all", "mean_restricted"],
        time,
        LESS,
        "mean, open at horizon"
    ),
    figure!("Flows", "mice p50", ["fct_us", "mice", "p50"], time, LESS, "mice"),
    figure!("Flows", "mice p95", ["fct_us", "mice", "p95"], time, LESS, "mice"),
    figure!("Flows", "mice p99", ["fct_us", "mice", "p99"], time, LESS, "mice"),
    figure!("Flows", "elephants p50", ["fct_us", "elephants", "p50"], time, LESS, "elephants"),
    figure!("Flows", "elephants p99", ["fct_us", "elephants", "p99"], time, LESS, "elephants"),
    figure!("Flows", "slowdown p99", ["slowdown", "all", "p99"], ratio, LESS, "slowdown"),
    figure!("Flows", "goodput", ["flows", "goodput_gbps"], gbps, MORE, "goodput"),
    figure!("Network", "drops", ["packets", "dropped"], count, LESS, "drops"),
    figure!("Network", "timeouts", ["timeouts"], count, LESS, "timeouts"),
    figure!("Network", "sent again", ["packets", "retransmitted"], count, LESS, "sent again"),
    figure!("Network", "out of order", ["packets", "out_of_order"], count, None, ""),
    figure!("Network", "marks", ["packets", "ecn_marked"], count, None, "marks"),
    figure!("Network", "deflected", ["packets", "deflected"], count, None, ""),
    figure!("Network", "PAUSE frames", ["pause_frames"], count, None, ""),
];

/// The group of the numbers that were asked for.
pub(crate) const SHOWN: &str = "Shown";

/// The numbers that were asked for, as figures. `names` (markup) and `paths` are the columns'.
pub(crate) fn asked_for<'a>(
    columns: &'a [Column],
    names: &'a [String],
    paths: &'a [Vec<&'a str>],
) -> Vec<Figure<'a>> {
    let figure = |((column, name), path): ((&'a Column, &'a String), &'a Vec<&'a str>)| {
        let form = match column.form {
            Form::Time => time,
            Form::Ratio => ratio,
            Form::Percent => percent,
            Form::Rate => gbps,
            Form::Count => count,
        };
        Figure { group: SHOWN, name, path, form, less_is_better: column.less_is_better, term: "" }
    };
    columns.iter().zip(names).zip(paths).map(figure).collect()
}

impl<'a> Figure<'a> {
    /// As it is shown of a variant; `None` if its runs do not have it.
    pub fn shown(&self, variant: &Variant) -> Option<Shown<'a>> {
        let statistics = &variant.result.statistics;
        statistics.leaf(self.path)?;
        Some(shown(statistics, self.path))
    }

    pub fn value(&self, variant: &Variant) -> Option<f64> {
        self.shown(variant)?.estimate.mean
    }

    pub fn text(&self, variant: &Variant) -> String {
        self.shown(variant).unwrap_or_default().text(self.form)
    }

    /// The difference of a variant to the first one.
    pub fn difference(&self, variants: &[Variant], at: usize) -> Option<Difference> {
        censoring::difference(&variants[0].result, &variants[at].result, self.path)
    }

    /// Whether there is anything to show of it.
    pub fn is_told(&self, variants: &[Variant]) -> bool {
        let values = || variants.iter().filter_map(|variant| self.value(variant));
        let some = if self.less_is_better == MORE {
            values().next().is_some()
        } else {
            values().any(|v| v != 0.0)
        };
        let share = match self.path {
            ["qct_us", "mean_restricted"] => Variant::share_of_queries,
            [.., "mean_restricted"] => {
                |variant: &Variant| variant.result.statistics.share_of_flows()
            }
            _ => return some,
        };
        some && variants.iter().any(|variant| share(variant).is_some_and(|share| share < 1.0))
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
    pub fn is_clear(&self, variants: &[Variant], best: usize) -> bool {
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
