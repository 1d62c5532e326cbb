//! Percentiles of what has ended, beside what is still open: completion times are right-censored
//! where the run ends.
//!
//! Of each percentile there are four numbers. The first is exact, and of the ended ones alone.
//! `at_least` counts an open one with its age, `at_most` as if it never ended: whatever becomes of
//! the open ones, the percentile of all lies between the two. `kaplan_meier` is the estimate in
//! which an open one goes on like those that were open at its age and ended (Kaplan and Meier, JASA
//! 53(282), 1958): the least time by which a share q has ended, of a survival that is the product
//! of (1 − 1/at risk) over the ended ones.
//!
//! From one open one's age to the next that product telescopes to (at risk, less ended) / at risk.
//! So the estimate needs how many had ended by each age, one pass over the times, and one value by
//! rank.
//!
//! Invariant: all four are the same where nothing is open. Memory grows with the open ones alone.

use std::collections::BTreeMap;

use crate::model::{Percentiles, Result};
use crate::statistics::samples::{Between, Quantile, Samples, WHOLE, place};

/// The percentiles of every statistic; the last is the largest.
pub(crate) const QUANTILES: [Quantile; 6] = [5_000, 9_000, 9_500, 9_900, 9_990, 10_000];

/// Percentiles of one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Survival {
    /// Of the ended ones.
    pub ended: Percentiles,
    /// An open one counts with its age.
    pub at_least: Percentiles,
    /// An open one never ends; `None` where that decides the percentile.
    pub at_most: Percentiles,
    /// The estimate; `None` where it does not come so far.
    pub kaplan_meier: Percentiles,
}

/// Percentiles of samples. `value` makes a number of what lies between two of them.
pub(crate) fn percentiles(samples: &mut Samples, value: fn(Between) -> f64) -> Result<Percentiles> {
    let found = samples.quantiles(&QUANTILES)?;
    Ok(Percentiles::of(|at| found.as_ref().map(|values| value(values[at]))))
}

/// Percentiles of `ended`, and with the ages of those that are open.
pub(crate) fn survival(
    mut ended: Samples,
    mut open: Vec<u64>,
    value: fn(Between) -> f64,
) -> Result<Survival> {
    let alone = percentiles(&mut ended, value)?;
    if open.is_empty() {
        let [at_least, at_most, kaplan_meier] = [alone; 3];
        return Ok(Survival { ended: alone, at_least, at_most, kaplan_meier });
    }
    open.sort_unstable();
    let worst = never_ending(ended.count(), open.len() as u64);
    let estimate = estimated_ranks(ended.count(), &ended.counts_to(&open)?);
    let both = worst.iter().flatten().flat_map(|&(rank, above, _)| [rank, above]);
    let mut ranks: Vec<u64> = both.chain(estimate.iter().flatten().copied()).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let found: BTreeMap<u64, u64> = ranks.iter().copied().zip(ended.at_ranks(&ranks)?).collect();
    let at = |rank: u64| found.get(&rank).copied();
    let at_most = Percentiles::of(|q| {
        let (rank, above, part) = worst[q]?;
        Some(value(Between { below: at(rank)?, above: at(above)?, part }))
    });
    let kaplan_meier = Percentiles::of(|q| {
        let exact = at(estimate[q]?)?;
        Some(value(Between { below: exact, above: exact, part: 0 }))
    });
    for age in open {
        ended.push(age)?;
    }
    Ok(Survival { ended: alone, at_least: percentiles(&mut ended, value)?, at_most, kaplan_meier })
}

/// Where each percentile of all lies among the ended ones if no open one ever ends: rank, next
/// rank, and how far towards it.
fn never_ending(ended: u64, open: u64) -> [Option<(u64, u64, u64)>; QUANTILES.len()] {
    QUANTILES.map(|q| {
        let (rank, part) = place(q, ended + open - 1);
        let above = if part == 0 { rank } else { rank + 1 };
        (above < ended).then_some((rank, above, part))
    })
}

/// The rank of each percentile's estimate among the ended ones. `ended_by` has how many had ended
/// by each age of an open one, in order.
fn estimated_ranks(ended: u64, ended_by: &[u64]) -> [Option<u64>; QUANTILES.len()] {
    let mut ranks = [None; QUANTILES.len()];
    let (mut at_risk, mut before, mut surviving) = (ended + ended_by.len() as u64, 0, 1.0);
    for &upto in ended_by.iter().chain([&ended]) {
        let events = upto - before;
        if events > 0 {
            let after = surviving * ((at_risk - events) as f64 / at_risk as f64);
            for (rank, q) in ranks.iter_mut().zip(QUANTILES) {
                let left = 1.0 - f64::from(q) / WHOLE as f64;
                if rank.is_none() && after <= left + ROUNDING {
                    let nth = (at_risk as f64 * (1.0 - left / surviving) - ROUNDING).ceil();
                    *rank = Some(before + (nth as u64).clamp(1, events) - 1);
                }
            }
            surviving = after;
        }
        // The open one of this age is no longer at risk; behind the last there is none.
        at_risk = (at_risk - events).saturating_sub(1);
        before = upto;
    }
    ranks
}

/// The error that products and quotients of shares may have.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    fn of(ended: &[u64], open: &[u64], limit: usize) -> Survival {
        let dir = crate::test_dir("survival");
        let mut samples = Samples::with_limit(dir.join("spill"), limit);
        ended.iter().for_each(|&time| samples.push(time).unwrap());
        survival(samples, open.to_vec(), |between| between.interpolate(1.0)).unwrap()
    }

    /// The 6-MP arm of Freireich et al. (Blood 21, 1963), the example of most textbooks: its median
    /// is 23 weeks, and the estimate ends at 0.448, before any higher percentile.
    #[test]
    fn the_textbooks_example() {
        let ended = [6, 6, 6, 7, 10, 13, 16, 22, 23];
        let open = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35];
        let found = of(&ended, &open, 4);
        let expected = Percentiles { p50: Some(23.0), ..Percentiles::default() };
        assert_eq!(found.kaplan_meier, expected);
        assert_eq!((found.ended.p50, found.at_most.p50), (Some(10.0), None), "12 of 21 are open");
        assert_eq!(found.at_least.p50, Some(16.0));
    }

    #[test]
    fn nothing_open_moves_nothing_and_all_open_is_a_bound() {
        let found = of(&[5, 1, 3], &[], 9);
        assert_eq!(found.ended.p50, Some(3.0));
        assert!(
            [found.at_least, found.at_most, found.kaplan_meier]
                .iter()
                .all(|other| *other == found.ended)
        );
        let found = of(&[], &[4, 8], 9);
        assert_eq!(
            (found.ended.p50, found.at_least.p50, found.at_most.p50),
            (None, Some(6.0), None)
        );
        assert_eq!(found.kaplan_meier, Percentiles::default());
        assert_eq!(
            survival(Samples::new(PathBuf::new()), vec![], |b| b.interpolate(1.0)).unwrap(),
            Survival::default()
        );
    }

    /// The estimate, straight from its definition.
    fn by_definition(ended: &[u64], open: &[u64], q: Quantile) -> Option<u64> {
        let mut times = ended.to_vec();
        times.sort_unstable();
        let mut surviving = 1.0;
        for (at, &time) in times.iter().enumerate() {
            // Equal times one after the other, and before an open one of that age.
            let at_risk = times.len() - at + open.iter().filter(|&&age| age >= time).count();
            surviving *= 1.0 - 1.0 / at_risk as f64;
            if surviving <= 1.0 - f64::from(q) / WHOLE as f64 + ROUNDING {
                return Some(time);
            }
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 300,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn the_estimate_is_the_product_and_bounds_hold_whatever_becomes_of_the_open(
            ended in prop::collection::vec(1u64..60, 0..80),
            open in prop::collection::vec((1u64..60, 0u64..90), 0..60),
            limit in 1usize..100,
        ) {
            let ages: Vec<u64> = open.iter().map(|&(age, _)| age).collect();
            let found = of(&ended, &ages, limit);
            if !open.is_empty() {
                let expected =
                    QUANTILES.map(|q| by_definition(&ended, &ages, q).map(|time| time as f64));
                prop_assert_eq!(found.kaplan_meier.each(), expected);
            }
            // One of the ways in which it may go on.
            let all: Vec<u64> =
                ended.iter().copied().chain(open.iter().map(|&(age, more)| age + more)).collect();
            let truth = of(&all, &[], 1000).ended.each();
            for (at, truth) in truth.into_iter().enumerate() {
                let (low, high) = (found.at_least.each()[at], found.at_most.each()[at]);
                prop_assert!(
                    low <= truth && high.is_none_or(|high| truth <= Some(high)),
                    "{low:?} {truth:?} {high:?}"
                );
            }
        }
    }
}
