//! Judging a claim with its mechanism off.
//!
//! A claim that also holds without its mechanism is no evidence for the mechanism. So
//! a paper names, for each variant, the variant in which its mechanism is off. A claim is then
//! judged a second time: the runs of that variant stand in the place of the claim's own. Both are
//! in the same experiment, so the second judgement costs no run.
//!
//! Invariant: a claim has a baseline or a stated reason why it has none; a test of the crate fails
//! otherwise.

use crate::claim::{Claim, is_of_group};
use crate::experiment::Experiment;
use crate::found::Off;
use serde::Deserialize;

/// A claim or a group of them, and its own pairs.
pub type OffOf = (String, Vec<Off>);

/// The baselines of a paper's claims.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Baselines {
    /// Variants, each with the one in which its mechanism is off, for the claims of all experiments
    /// that have both.
    pub off: Vec<Off>,
    /// For single claims, or groups of them as `--only` takes them, instead of `off`.
    pub of: Vec<OffOf>,
    /// Claims or groups that have no baseline, each with the reason.
    pub none: Vec<(String, String)>,
}

/// The substitute for a claim's schemes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// These variants stand for the claim's.
    Variants(Vec<Off>),
    /// There is none, for this reason.
    None(String),
    /// The paper's table has neither; a test finds such claims.
    Missing,
}

const OF_THE_BASELINE: &str = "the claim is about the baseline itself";

impl Baselines {
    /// The baseline of a claim of this experiment.
    ///
    /// A single entry for the claim decides first, then a reason for having none, then the paper's
    /// pairs. A claim of a variant that is itself a baseline has none.
    pub fn of(&self, experiment: &Experiment, claim: &Claim) -> Baseline {
        if let Some((_, pairs)) = self.of.iter().find(|(group, _)| is_of_group(group, &claim.id)) {
            return Baseline::Variants(pairs.clone());
        }
        if let Some((_, why)) = self.none.iter().find(|(group, _)| is_of_group(group, &claim.id)) {
            return Baseline::None(why.clone());
        }
        let subjects = claim.measure.subjects(experiment);
        let pair = |subject: &&str| {
            self.off.iter().find(|(on, off)| on == subject && experiment.has(off)).cloned()
        };
        let mut pairs: Vec<Off> = subjects.iter().filter_map(pair).collect();
        pairs.dedup();
        if !claim.measure.groups.is_empty() {
            pairs.truncate(1);
        }
        let is_off = |subject: &&str| self.off.iter().any(|(_, off)| off == subject);
        match pairs.is_empty() {
            false => Baseline::Variants(pairs),
            true if !subjects.is_empty() && subjects.iter().all(is_off) => {
                Baseline::None(OF_THE_BASELINE.to_string())
            }
            true => Baseline::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::{EXPERIMENT, arm, found, less, measure, pairs};
    use crate::measure::{Kind, Measure};
    use crate::statistic::Statistic;

    fn claim(id: &str, measure: Measure) -> Claim {
        Claim { id: id.into(), at_most: Some(-40.0), measure, ..Claim::default() }
    }
    fn plain(of: &str) -> Measure {
        Measure { of: of.into(), ..measure(Kind::Plain, Statistic::Mean) }
    }
    fn table() -> Baselines {
        Baselines {
            off: pairs(&[("a", "b"), ("b", "elsewhere")]),
            of: vec![("S2".into(), pairs(&[("b", "a")]))],
            none: pairs(&[("S3", "a reason")]),
        }
    }
    fn of_variants(of: &[(&str, &str)]) -> Baseline {
        Baseline::Variants(pairs(of))
    }

    #[test]
    fn a_claims_own_entry_decides_before_the_papers() {
        let of = |id, measure| table().of(&EXPERIMENT, &claim(id, measure));
        assert_eq!(of("S1", less(Statistic::Mean)), of_variants(&[("a", "b")]));
        assert_eq!(of("S2a", less(Statistic::Mean)), of_variants(&[("b", "a")]));
        assert_eq!(of("S3", less(Statistic::Mean)), Baseline::None("a reason".into()));
        assert_eq!(of("S31", less(Statistic::Mean)), of_variants(&[("a", "b")]), "another number");
    }

    #[test]
    fn a_baselines_own_claim_has_none_and_an_unknown_variant_is_missing() {
        let of = |table: Baselines, variant| table.of(&EXPERIMENT, &claim("S1", plain(variant)));
        assert_eq!(
            of(table(), "b"),
            Baseline::None(OF_THE_BASELINE.into()),
            "`elsewhere` is not in the experiment"
        );
        assert_eq!(of(Baselines::default(), "a"), Baseline::Missing);
    }

    #[test]
    fn the_baselines_runs_stand_for_the_mechanisms() {
        let all = found(vec![arm("a", 90.0, &[(1.0, 3.0)]), arm("b", 90.0, &[(2.0, 8.0)])]);
        let off = all.without(&pairs(&[("a", "b")]));
        assert_eq!(plain("a").of(&EXPERIMENT, &off).unwrap().0, 2e6);
        assert_eq!(
            less(Statistic::Mean).of(&EXPERIMENT, &off).unwrap().0,
            0.0,
            "no change without the mechanism"
        );
        let lost = all.without(&pairs(&[("a", "c")]));
        assert!(
            plain("a").of(&EXPERIMENT, &lost).is_err(),
            "a baseline that was not run decides nothing"
        );
    }
}
