//! Judging a claim by what its experiment found.
//!
//! Invariant: a run that is missing makes a claim undecided, never true.

use crate::baseline::Baseline;
use crate::claim::Claim;
use crate::experiment::{Effort, Experiment};
use crate::found::{Arm, Found, Off};
use crate::measure::Measured;
use crate::paper::Paper;
use crate::spread::spread;
use millpond_results::{Claim as Judged, Verdict, World};

/// Why claims of the lab are undecided.
const NO_LAB: &str = "no valid runs of the lab are there: --lab makes them, as root on Linux and \
                      on an idle machine";

/// Why claims of world virtual are.
const NO_KERNELS: &str = "no runs of real kernels are there: --virtual makes them, on Linux with \
                          the kernel of `make setup-virtual`";

impl Claim {
    /// Decides it by what its experiment found, and once more with its mechanism off.
    pub fn judge(
        &self,
        paper: &Paper,
        experiment: &Experiment,
        found: &Found,
        effort: Effort,
    ) -> Judged {
        let undecided = match effort {
            Effort::Full => None,
            Effort::Quick => self
                .quick
                .as_ref()
                .or(found.left_out.as_ref())
                .map(|why| format!("--quick does not decide this: {why}")),
        };
        let absent = match experiment.world {
            World::Lab => Some(NO_LAB),
            World::Virtual => Some(NO_KERNELS),
            _ => None,
        };
        let absent = absent.filter(|_| found.arms.iter().all(Arm::is_empty));
        let undecided = undecided.or(absent.map(str::to_string));
        let decidable = undecided.map_or_else(|| has_seeds(experiment, found, effort), Err);
        let measured = decidable.clone().and_then(|()| self.measure.of(experiment, found));
        let absolute =
            measured.as_ref().ok().and_then(|_| self.measure.absolute(found, self.paper));
        let id = format!("{}-{}", paper.name, self.id);
        let judged = Judged {
            id,
            world: experiment.world,
            scenario: experiment.scenario.clone(),
            absolute,
            counted: self.measure.counted(experiment, found),
            ..self.rows(experiment)
        };
        let mut judged = self.judged(judged, measured, &self.note);
        if judged.measured.is_some() {
            judged.spread(spread(&self.measure, experiment, found));
            judged.best_of = self.measure.points(found);
            judged.completed = self.measure.completed(experiment, found);
            judged.seeds = found.arms.iter().map(|arm| arm.planned.len() as u32).min();
            judged.results = Some(millpond_core::RESULTS);
        }
        if judged.status == Verdict::Fails {
            judged.cause = paper.cause(&self.id).map_or(String::new(), |cause| cause.name.clone());
        }
        self.with_baseline(judged, paper, experiment, found, decidable.is_ok())
    }

    /// Adds what the claim comes to with its mechanism off.
    fn with_baseline(
        &self,
        judged: Judged,
        paper: &Paper,
        experiment: &Experiment,
        found: &Found,
        is_decidable: bool,
    ) -> Judged {
        let pairs = match paper.baselines.of(experiment, self) {
            Baseline::Variants(pairs) => pairs,
            Baseline::None(why) => return Judged { baseline_note: why, ..judged },
            Baseline::Missing => {
                return Judged {
                    baseline_note: "its paper names no baseline for it".to_string(),
                    ..judged
                };
            }
        };
        let place = |(on, off): &Off| {
            format!("{} in the place of {}", experiment.label(off), experiment.label(on))
        };
        let words = pairs.iter().map(place).collect::<Vec<_>>().join(", ");
        if !is_decidable {
            return Judged { baseline_note: words, ..judged };
        }
        match self.measure.of(experiment, &found.without(&pairs)) {
            Ok((measured, _)) => Judged {
                baseline: match self.measure.compares_itself(&pairs)
                    && self.accept().contains(&Some(0.0))
                {
                    // An interval that ends at 0 asks for a direction, and a comparison with itself
                    // has none.
                    true => Verdict::Fails,
                    false => Verdict::of(self.accept(), measured),
                },
                baseline_measured: Some(measured).filter(|measured| measured.is_finite()),
                baseline_note: words,
                ..judged
            },
            Err(why) => Judged { baseline_note: format!("{words}: {why}"), ..judged },
        }
    }

    /// The rows of the claim's experiment that decide it.
    fn rows(&self, experiment: &Experiment) -> Judged {
        let labels = self.measure.schemes().map(|variant| experiment.label(variant).to_string());
        let (schemes, load) = (labels.collect(), self.measure.load);
        Judged { experiment: experiment.name.clone(), schemes, load, ..Judged::default() }
    }

    /// Fills in a claim's words, and what was measured.
    fn judged(&self, judged: Judged, measured: Measured, note: &str) -> Judged {
        let mut judged = Judged {
            source: self.source.clone(),
            statement: self.statement.clone(),
            kind: self.kind,
            paper: self.paper,
            accept: self.accept(),
            unit: self.measure.unit().to_string(),
            ..judged
        };

        let mut notes: Vec<String> = vec![];
        match measured {
            Ok((measured, how)) => {
                judged.judge(measured);
                notes.push(how);
                notes.extend(self.origin());
            }
            Err(why) => notes.push(why),
        }
        notes.push(note.to_string());
        notes.retain(|note| !note.is_empty());
        judged.note = notes.join("; ");
        judged
    }
}

/// Whether what was found is of enough seeds; all schemes have the same.
fn has_seeds(experiment: &Experiment, found: &Found, effort: Effort) -> Result<(), String> {
    let seeds = found.arms.iter().map(|arm| arm.planned.len()).min();
    seeds.map_or(Ok(()), |seeds| experiment.enough(seeds, effort))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::{EXPERIMENT, PAPER, arm, found, less};
    use crate::statistic::Statistic;
    use millpond_results::{ClaimKind, IntervalKind, Noise};

    #[test]
    fn a_claim_holds_fails_or_says_why_not() {
        let claim = |at_most, paper, quick: Option<&str>| Claim {
            id: "S1".into(),
            paper,
            at_most,
            measure: less(Statistic::Mean),
            quick: quick.map(String::from),
            note: "n".into(),
            ..Claim::default()
        };
        let (a, b) = ([(1.0, 3.0), (1.0, 3.0)], [(2.0, 8.0), (2.0, 8.0)]);
        let found = found(vec![arm("a", 90.0, &a), arm("b", 90.0, &b)]);
        let judged = |claim: Claim, effort| claim.judge(&PAPER, &EXPERIMENT, &found, effort);
        let held = judged(claim(Some(-40.0), Some(-58.0), None), Effort::Full);
        assert_eq!(
            (held.status, held.measured, held.paper),
            (Verdict::Holds, Some(-50.0), Some(-58.0))
        );
        assert_eq!((held.id.as_str(), held.scenario.as_str()), ("p-S1", "x.toml"));
        assert!(held.note.ends_with("; n"), "{}", held.note);
        assert_eq!(
            (held.experiment.as_str(), held.schemes.join("+").as_str(), held.load),
            ("x", "A+B", Some(90.0))
        );
        let absolute = held.absolute.unwrap();
        assert_eq!(
            (absolute.measured, absolute.against, absolute.unit.as_str()),
            (1e6, Some(2e6), "us")
        );
        let (kind, how) = (ClaimKind::Derived, Some("by hand".to_string()));
        let derived = Claim { kind, how, ..claim(Some(-60.0), Some(-70.0), None) };
        let failed = judged(derived, Effort::Full);
        assert_eq!(failed.status, Verdict::Fails);
        assert!(failed.note.contains("the paper's number is derived: by hand"), "{}", failed.note);
        assert_eq!(judged(claim(None, None, None), Effort::Full).paper, None);
        let quick = judged(claim(Some(-40.0), None, Some("too short")), Effort::Quick);
        assert_eq!(
            (quick.status, quick.measured, quick.absolute),
            (Verdict::NotEvaluated, None, None)
        );
        assert!(
            quick.note.starts_with("--quick does not decide this: too short"),
            "{}",
            quick.note
        );
        assert_eq!(judged(claim(Some(-40.0), None, None), Effort::Quick).status, Verdict::Holds);
    }

    fn shape() -> Claim {
        let (id, measure) = ("S1".into(), less(Statistic::Mean));
        Claim { id, at_most: Some(-40.0), measure, ..Claim::default() }
    }

    #[test]
    fn a_claims_kind_goes_with_it_and_what_is_fitted_says_to_what() {
        let both = found(vec![arm("a", 90.0, &[(1.0, 3.0); 2]), arm("b", 90.0, &[(2.0, 8.0); 2])]);
        for (kind, number, how) in [
            (ClaimKind::Published, Some(-58.0), None),
            (ClaimKind::Released, Some(-58.0), None),
            (ClaimKind::Published, None, None),
            (ClaimKind::Derived, Some(-58.0), Some("by hand".to_string())),
            (ClaimKind::Derived, None, None),
            (ClaimKind::Fitted, Some(-58.0), Some("the slope".to_string())),
            (ClaimKind::Remembered, None, None),
            (ClaimKind::Ours, None, None),
        ] {
            let claim = Claim { kind, paper: number, how, ..shape() };
            let judged = claim.judge(&PAPER, &EXPERIMENT, &both, Effort::Full);
            assert_eq!((judged.kind, judged.paper, judged.status), (kind, number, Verdict::Holds));
            let is_told = judged.note.contains("the slope was fitted to this number");
            assert_eq!(is_told, kind == ClaimKind::Fitted, "{}", judged.note);
        }
    }

    #[test]
    fn a_verdict_comes_with_its_spread_over_seeds() {
        let mean = |of: &[f64]| of.iter().map(|mean| (*mean, 1.0)).collect::<Vec<_>>();
        let judged = |a: &[f64], b: &[f64]| {
            let found = found(vec![arm("a", 90.0, &mean(a)), arm("b", 90.0, &mean(b))]);
            shape().judge(&PAPER, &EXPERIMENT, &found, Effort::Full)
        };
        let agreed = judged(&[1.0, 1.0], &[2.0, 4.0]);
        assert_eq!((agreed.interval, agreed.noise), (Some([-75.0, -50.0]), Noise::Agreed));
        let within = judged(&[1.0, 1.0], &[1.5, 4.0]);
        assert_eq!((within.status, within.noise), (Verdict::Holds, Noise::Within), "{within:?}");
        let many =
            judged(&[1.0, 1.1, 0.9, 1.0, 1.0, 1.0, 1.05], &[4.0, 4.1, 3.9, 4.0, 4.2, 3.8, 4.0]);
        assert_eq!(
            (many.noise, many.interval_kind),
            (Noise::Beyond, Some(IntervalKind::Bootstrap95))
        );
    }

    #[test]
    fn a_claim_that_holds_without_its_mechanism_is_flagged() {
        let both = found(vec![arm("a", 90.0, &[(1.0, 3.0); 2]), arm("b", 90.0, &[(2.0, 8.0); 2])]);
        let judged = |accept| {
            Claim { at_most: accept, ..shape() }.judge(&PAPER, &EXPERIMENT, &both, Effort::Full)
        };
        let strict = judged(Some(-40.0));
        assert_eq!(
            (strict.status, strict.baseline, strict.baseline_measured),
            (Verdict::Holds, Verdict::Fails, Some(0.0))
        );
        assert_eq!(
            (strict.baseline_note.as_str(), strict.holds_anyway()),
            ("B in the place of A", false)
        );
        let direction = judged(Some(0.0));
        assert_eq!((direction.baseline, direction.holds_anyway()), (Verdict::Fails, false));
        let weak = judged(Some(5.0));
        assert_eq!(
            (weak.status, weak.baseline, weak.holds_anyway()),
            (Verdict::Holds, Verdict::Holds, true)
        );
        let open = Claim { quick: Some("too short".into()), ..shape() };
        let open = open.judge(&PAPER, &EXPERIMENT, &both, Effort::Quick);
        assert_eq!((open.baseline, open.holds_anyway()), (Verdict::NotEvaluated, false));
    }

    #[test]
    fn fewer_seeds_than_an_experiment_has_decide_nothing() {
        let one = found(vec![arm("a", 90.0, &[(1.0, 3.0)]), arm("b", 90.0, &[(2.0, 8.0)])]);
        let judged = shape().judge(&PAPER, &EXPERIMENT, &one, Effort::Full);
        assert_eq!((judged.status, judged.measured), (Verdict::NotEvaluated, None));
        assert_eq!(judged.note, "1 seed of the 2 that experiment x needs");
    }
}
