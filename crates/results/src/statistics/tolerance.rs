//! Whether a number has become worse than is tolerated: against recorded results, or against the
//! first variant.
//!
//! Invariant: only numbers of which more or less is better are judged, and a number that has gone
//! is worse.

use crate::model::{Tree, VariantResult};
use crate::statistics::censoring::shown;
use crate::statistics::shows::{Column, Form};
use millpond_core::numbers::network;

/// How much worse a number may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Tolerance {
    /// Its name in `shows`, such as `queries.qct.p99`.
    pub number: String,
    pub percent: f64,
}

/// A variant's number beside the baseline's.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub number: String,
    pub variant: String,
    pub against: String,
    pub before: Option<f64>,
    pub now: Option<f64>,
    /// Whether each is only a lower bound, since flows or queries are open.
    pub at_least: [bool; 2],
    pub(crate) form: Form,
    /// The relative change; none where the baseline has no number, or zero.
    pub change: Option<f64>,
    pub tolerated: f64,
    /// Whether it is worse than that.
    pub is_worse: bool,
}

impl Tolerance {
    /// Judges each variant: by the variant of its name in the baseline, or without a baseline by
    /// the first variant.
    ///
    /// # Errors
    ///
    /// If neither more nor less of the number is better, if no variant of the baseline has it, or
    /// if the baseline has none of the variants.
    pub fn judge(
        &self,
        results: &[VariantResult],
        baseline: Option<&[VariantResult]>,
    ) -> Result<Vec<Judged>, String> {
        let name = &self.number;
        let before: Vec<&VariantResult> = match baseline {
            Some(baseline) => baseline.iter().collect(),
            None => results.iter().take(1).collect(),
        };
        let trees: Vec<&Tree<_>> = before.iter().map(|result| &result.statistics).collect();
        let column = self.column(&trees)?;
        let less = column.less_is_better.ok_or_else(|| undirected(name))?;
        let has = |result: &&VariantResult| {
            shown(&result.statistics, &column.path).estimate.mean.is_some()
        };
        if !before.iter().any(has) {
            return Err(format!("the baseline has no number {name}"));
        }
        let skipped = if baseline.is_some() { 0 } else { 1 };
        let pair = |result: &VariantResult| {
            let of = |one: &&&VariantResult| baseline.is_none() || one.variant == result.variant;
            let against = before.iter().find(of)?;
            Some(self.judged(&column, less, against, result))
        };
        let judged: Vec<Judged> = results.iter().skip(skipped).filter_map(pair).collect();
        if judged.is_empty() {
            let names: Vec<&str> = before.iter().map(|one| one.variant.as_str()).collect();
            return Err(match baseline {
                Some(_) => format!("the baseline has other variants: {}", names.join(", ")),
                None => "a comparison of one variant needs a baseline".to_string(),
            });
        }
        Ok(judged)
    }

    /// Whether the number's name is one that can be judged; to be asked before the runs.
    ///
    /// # Errors
    ///
    /// If there is no such metric, or if neither more nor less of it is better.
    pub fn check(&self) -> Result<(), String> {
        let column = self.column(&[])?;
        column.less_is_better.map(|_| ()).ok_or_else(|| undirected(&self.number))
    }

    fn column(&self, trees: &[&Tree<crate::model::Estimate>]) -> Result<Column, String> {
        Column::of(&self.number, trees).ok_or_else(|| {
            format!("no number is called {}; such names are queries.qct.p99, timeouts", self.number)
        })
    }

    fn judged(
        &self,
        column: &Column,
        less: bool,
        against: &VariantResult,
        result: &VariantResult,
    ) -> Judged {
        let of = |result: &VariantResult| shown(&result.statistics, &column.path);
        let (before, now) = (of(against), of(result));
        let (was, is) = (before.estimate.mean, now.estimate.mean);
        let share = self.percent / 100.0;
        let is_worse = match (was, is) {
            (Some(was), Some(is)) if less => is > was * (1.0 + share),
            (Some(was), Some(is)) => is < was * (1.0 - share),
            (Some(_), None) => true,
            (None, _) => false,
        };
        Judged {
            number: self.number.clone(),
            variant: result.variant.clone(),
            against: against.variant.clone(),
            before: was,
            now: is,
            at_least: [before.at_least, now.at_least],
            form: column.form,
            change: was.zip(is).filter(|(was, _)| *was != 0.0).map(|(was, is)| (is - was) / was),
            tolerated: self.percent,
            is_worse,
        }
    }
}

fn undirected(number: &str) -> String {
    let judged = network().filter(|number| number.less_is_better.is_some());
    let judged: Vec<&str> = judged.map(|number| number.name).collect();
    format!(
        "neither more nor less of {number} is better; judged are times, slowdowns, {}",
        judged.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::summary::Summary;
    use crate::statistics::compare::compare;

    fn results(variants: &[(&str, u64, f64)]) -> Vec<VariantResult> {
        let of = |&(name, timeouts, goodput): &(&str, u64, f64)| {
            let mut summary = Summary { seed: 1, timeouts, ..Summary::default() };
            summary.flows.goodput_gbps = Some(goodput);
            (name.to_string(), vec![summary])
        };
        compare(&variants.iter().map(of).collect::<Vec<_>>()).unwrap()
    }

    fn worse(
        tolerance: &Tolerance,
        now: &[VariantResult],
        old: Option<&[VariantResult]>,
    ) -> String {
        let judged = tolerance.judge(now, old).unwrap();
        let names = judged.iter().map(|one| format!("{}={}", one.variant, one.is_worse));
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_number_is_worse_beyond_its_tolerance_in_its_own_direction() {
        let of = |number: &str, percent| Tolerance { number: number.into(), percent };
        let old = results(&[("a", 100, 10.0), ("b", 0, 10.0)]);
        let now = results(&[("a", 105, 9.4), ("b", 1, 9.6), ("new", 7, 1.0)]);
        assert_eq!(worse(&of("timeouts", 5.0), &now, Some(&old)), "a=false b=true");
        assert_eq!(worse(&of("timeouts", 4.9), &now, Some(&old)), "a=true b=true");
        assert_eq!(worse(&of("flows.goodput", 5.0), &now, Some(&old)), "a=true b=false");
        assert_eq!(worse(&of("flows.goodput", 0.0), &old, Some(&now)), "a=false b=false");
        assert_eq!(worse(&of("timeouts", 0.0), &now, None), "b=false new=false");
        let first = &of("timeouts", 4.9).judge(&now, Some(&old)).unwrap()[0];
        assert_eq!((first.before, first.now, first.change), (Some(100.0), Some(105.0), Some(0.05)));
    }

    #[test]
    fn what_cannot_be_judged_is_an_error() {
        let of = |number: &str| Tolerance { number: number.into(), percent: 5.0 };
        let (a, b) = (results(&[("a", 1, 1.0)]), results(&[("b", 1, 1.0)]));
        let error = |number: &str, old| of(number).judge(&a, old).unwrap_err();
        assert!(error("packets.marked", Some(&b[..])).contains("neither more nor less"));
        assert!(error("tiemouts", Some(&b[..])).contains("no number is called tiemouts"));
        assert!(error("queries.qct.p99", Some(&a[..])).contains("has no number queries.qct.p99"));
        assert!(error("timeouts", Some(&b[..])).contains("other variants: b"));
        assert!(error("timeouts", None).contains("needs a baseline"));
        assert!(of("packets.marked").check().is_err() && of("x.fct.p99").check().is_ok());
    }
}
