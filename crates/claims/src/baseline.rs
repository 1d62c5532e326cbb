//! Judging a claim with its mechanism off.
//!
//! A claim that also holds without the mechanism that it is about says nothing of the mechanism. So
//! a paper names, for each variant, the variant in which its mechanism is off. A claim is then
//! judged a second time: the runs of that variant stand in the place of the claim's own. Both are
//! in the same experiment, so the second judgement costs no run.
//!
//! Invariant: a claim has a baseline or a stated reason why it has none; a test of the crate fails
//! otherwise.

use crate::claim::{Claim, is_of_group};
use crate::experiment::Experiment;
use crate::lists::list;
use serde::{Deserialize, Deserializer};

/// A variant, and the variant in which its mechanism is off.
pub type Off = (&'static str, &'static str);

/// A claim or a group of them, and its own pairs.
pub type OffOf = (&'static str, &'static [Off]);

/// The baselines of a paper's claims.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baselines {
    /// For the claims of all experiments that have both variants.
    #[serde(borrow, default, deserialize_with = "list")]
    pub off: &'static [Off],
    /// For single claims, or groups of them as `--only` knows them, instead of `off`.
    #[serde(borrow, default, deserialize_with = "pairs_of_groups")]
    pub of: &'static [OffOf],
    /// Claims or groups that have no baseline, each with the reason.
    #[serde(borrow, default, deserialize_with = "list")]
    pub none: &'static [(&'static str, &'static str)],
}

/// Groups of claims, each with pairs of variants.
fn pairs_of_groups<'de: 'static, D: Deserializer<'de>>(
    from: D,
) -> Result<&'static [OffOf], D::Error> {
    let groups = Vec::<(&'static str, Vec<Off>)>::deserialize(from)?;
    Ok(groups.into_iter().map(|(group, pairs)| (group, &*pairs.leak())).collect::<Vec<_>>().leak())
}

/// The substitute for a claim's schemes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// These variants stand for the claim's.
    Variants(Vec<Off>),
    /// There is none, for this reason.
    None(&'static str),
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
        if let Some((_, pairs)) = self.of.iter().find(|(group, _)| is_of_group(group, claim.id)) {
            return Baseline::Variants(pairs.to_vec());
        }
        if let Some((_, why)) = self.none.iter().find(|(group, _)| is_of_group(group, claim.id)) {
            return Baseline::None(why);
        }
        let has = |variant: &str| experiment.schemes.iter().any(|(name, _)| *name == variant);
        let subjects = claim.measure.subjects(experiment);
        let pair =
            |subject: &&str| self.off.iter().find(|(on, off)| on == subject && has(off)).copied();
        let mut pairs: Vec<Off> = subjects.iter().filter_map(pair).collect();
        pairs.dedup();
        if claim.measure.is_order() {
            pairs.truncate(1);
        }
        let is_off = |subject: &&str| self.off.iter().any(|(_, off)| off == subject);
        match pairs.is_empty() {
            false => Baseline::Variants(pairs),
            true if !subjects.is_empty() && subjects.iter().all(is_off) => {
                Baseline::None(OF_THE_BASELINE)
            }
            true => Baseline::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Value;
    use crate::measure::Measure;
    use crate::measure::tests::{EXPERIMENT, arm, found, less};
    use crate::statistic::Statistic;

    const fn claim(id: &'static str, measure: Measure) -> Claim {
        let accept = [None, Some(-40.0)];
        Claim {
            id,
            source: "x",
            statement: "y",
            paper: Value::Shape,
            accept,
            measure,
            quick: None,
            note: "",
        }
    }
    const fn plain(of: &'static str) -> Measure {
        Measure::Plain { experiment: "x", load: 90.0, statistic: Statistic::Mean, of }
    }
    const TABLE: Baselines = Baselines {
        off: &[("a", "b"), ("b", "elsewhere")],
        of: &[("S2", &[("b", "a")])],
        none: &[("S3", "a reason")],
    };

    #[test]
    fn a_claims_own_entry_decides_before_the_papers() {
        let of = |id, measure| TABLE.of(&EXPERIMENT, &claim(id, measure));
        assert_eq!(of("S1", less(Statistic::Mean)), Baseline::Variants(vec![("a", "b")]));
        assert_eq!(of("S2a", less(Statistic::Mean)), Baseline::Variants(vec![("b", "a")]));
        assert_eq!(of("S3", less(Statistic::Mean)), Baseline::None("a reason"));
        assert_eq!(
            of("S31", less(Statistic::Mean)),
            Baseline::Variants(vec![("a", "b")]),
            "another number"
        );
    }

    #[test]
    fn a_baselines_own_claim_has_none_and_an_unknown_variant_is_missing() {
        let of = |table: Baselines, variant| table.of(&EXPERIMENT, &claim("S1", plain(variant)));
        assert_eq!(
            of(TABLE, "b"),
            Baseline::None(OF_THE_BASELINE),
            "`elsewhere` is not in the experiment"
        );
        assert_eq!(of(Baselines::default(), "a"), Baseline::Missing);
    }

    #[test]
    fn the_baselines_runs_stand_for_the_mechanisms() {
        let all = found(vec![arm("a", 90.0, &[(1.0, 3.0)]), arm("b", 90.0, &[(2.0, 8.0)])]);
        let off = all.without(&[("a", "b")]);
        assert_eq!(plain("a").of(&EXPERIMENT, &off).unwrap().0, 2e6);
        assert_eq!(
            less(Statistic::Mean).of(&EXPERIMENT, &off).unwrap().0,
            0.0,
            "no change without the mechanism"
        );
        let lost = all.without(&[("a", "c")]);
        assert!(
            plain("a").of(&EXPERIMENT, &lost).is_err(),
            "a baseline that was not run decides nothing"
        );
    }
}
