//! Whose a claim is, and how many of each kind hold.
//!
//! Invariant: claims of different kinds are never counted together. Only the first kind is the
//! paper's.

use serde::{Deserialize, Serialize};

use crate::model::estimate::Noise;
use crate::model::interval::{Interval, IntervalKind};
use crate::model::summary::World;
use crate::model::words::words;

words! {
    /// Whose a claim is: where its number, its order or its bound comes from.
    #[derive(Default)]
    pub enum ClaimKind {
        /// The paper's, as published.
        #[default]
        Published = "published",
        /// This project's run of the authors' released code gave it. The authors publish no such
        /// number.
        Released = "released",
        /// It follows by arithmetic from published or released numbers.
        Derived = "derived",
        /// A parameter was solved from the number: the claim asks whether the model gives it back.
        Fitted = "fitted",
        /// It is from memory, with no source at hand.
        Remembered = "remembered",
        /// This project's: its order may be in a paper's words, its bound is not.
        Ours = "ours",
    }
}

impl ClaimKind {
    /// The note in a claim's row on its kind; nothing where it is the paper's.
    pub(crate) fn note(self) -> Option<&'static str> {
        (self != ClaimKind::Published).then(|| self.name())
    }
}

words! {
    /// The outcome of a claim.
    #[derive(Default)]
    pub enum Verdict {
        /// The measured value is in the accepted interval.
        Holds = "holds",
        /// It is not.
        Fails = "fails",
        /// Nothing was measured that could decide; the note has the reason.
        #[default]
        NotEvaluated = "not-evaluated",
    }
}

impl Verdict {
    /// Of a number and the interval that is accepted, ends included.
    pub fn of(accept: [Option<f64>; 2], measured: f64) -> Verdict {
        let [low, high] = accept;
        let inside =
            low.is_none_or(|low| measured >= low) && high.is_none_or(|high| measured <= high);
        match () {
            () if !measured.is_finite() => Verdict::NotEvaluated,
            () if inside => Verdict::Holds,
            () => Verdict::Fails,
        }
    }
}

words! {
    /// Where the cause of a failure lies.
    #[derive(Default)]
    pub enum Lies {
        /// In this project: a model or a setting that differs from the paper's.
        Ours = "ours",
        /// In the paper: its own sources or arithmetic do not give the number.
        Paper = "paper",
        /// Public sources leave open what decides it.
        Sources = "sources",
        /// Nobody has found it yet.
        #[default]
        Open = "open",
    }
}

/// A cause of failing claims, as `[[cause]]` of a `paper.toml` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    pub name: String,
    pub title: String,
    /// The claims that fail by it, without the paper's name.
    pub claims: Vec<String>,
    pub lies: Lies,
    /// The experiment that turns it on, with its figures, or why there is none.
    pub text: String,
}

/// A claim of a paper, and what became of it: an element of `claims.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The paper's name and the claim's: `canary-S1a`.
    pub id: String,
    /// Where it is made.
    pub source: String,
    /// Its statement, in a sentence.
    pub statement: String,
    /// Whose it is; folders of older versions lack it.
    #[serde(default)]
    pub kind: ClaimKind,
    /// Where it was measured.
    pub world: World,
    /// The published number, also where a parameter was solved from it, or what follows from
    /// published numbers alone; `null` if there is none.
    pub paper: Option<f64>,
    /// Ours; `null` if it is not evaluated.
    pub measured: Option<f64>,
    /// The interval, ends included, in which the claim holds; `null` at an open end.
    pub accept: [Option<f64>; 2],
    /// Whether it holds.
    pub status: Verdict,
    /// The spread of `measured` over the seeds; `null` for one seed.
    pub interval: Option<[f64; 2]>,
    /// The kind of the interval's ends; `null` where there is none.
    pub interval_kind: Option<IntervalKind>,
    /// The effect of the spread on the verdict, in the words of `compare`.
    pub noise: Noise,
    /// How many seeds `measured` is of, and the version of their results; absent where nothing was
    /// measured, or before there were versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<u32>,
    /// The day of an earlier run that the values are kept from; empty if they are of this one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// The name of the cause, if it fails and the cause is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// Points of a sweep of which `measured` is the best; absent where it is of one point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_of: Option<u32>,
    /// The share of the flows or queries behind `measured` that completed, of the scheme that has
    /// the least; absent where the open ones hardly move it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<f64>,
    /// Whether it holds with its mechanism off.
    pub baseline: Verdict,
    /// The measured values with the mechanism off, in the claim's unit.
    pub baseline_measured: Option<f64>,
    /// Which scheme stands in the place of which, or why the claim has no baseline.
    pub baseline_note: String,
    /// How it was measured, what a value rests on, why it was not evaluated.
    pub note: String,
    /// The scenario that it was measured in.
    pub scenario: String,
    /// The unit of `paper`, `measured` and `accept`.
    pub unit: String,
    /// Of a claim whose percent is a share of cases: what they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// The experiment that it is about.
    pub experiment: String,
    /// The schemes of it that it is about, by their labels; empty: all.
    pub schemes: Vec<String>,
    /// The load that it is about; `null`: all of them.
    pub load: Option<f64>,
    /// The numbers that a relative one stands for; absent where there is nothing behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absolute: Option<Absolute>,
}

/// The numbers behind a relative one, in their own unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Absolute {
    /// `us`, `Gb/s`, `percent`, `count`, or empty.
    pub unit: String,
    /// The published number, where that is known.
    pub paper: Option<f64>,
    /// Ours.
    pub measured: f64,
    /// The number that ours is set against, if that is ours as well: the other scheme's.
    pub against: Option<f64>,
}

/// The cases in which a claim can hold, such as the seeds of an order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// `seeds` or `cells`.
    pub unit: String,
    /// How many there are; `null` if it is not evaluated.
    pub of: Option<u32>,
}

impl Counted {
    /// A percentage of the cases as their number: `4 of 5`.
    fn held(&self, percent: f64) -> Option<String> {
        let of = self.of?;
        Some(format!("{} of {of}", libm::round(percent / 100.0 * f64::from(of))))
    }

    /// The least accepted percentage as their number: `all seeds`, `≥ 4 seeds`.
    fn at_least(&self, percent: f64) -> String {
        let cases = |of: u32| libm::ceil(percent / 100.0 * f64::from(of) - 1e-9);
        match self.of.map(cases) {
            _ if percent >= 100.0 => format!("all {}", self.unit),
            Some(least) => format!("≥ {least} {}", self.unit),
            None => format!("≥ {percent}%"),
        }
    }
}

impl Claim {
    /// Whether it is about a scheme at a load of an experiment.
    pub fn is_about(&self, experiment: &str, label: &str, load: f64) -> bool {
        let is_of =
            |schemes: &[String]| schemes.is_empty() || schemes.iter().any(|scheme| scheme == label);
        self.experiment == experiment
            && is_of(&self.schemes)
            && self.load.is_none_or(|own| own == load)
    }

    /// Puts in what was measured, and decides.
    pub fn judge(&mut self, measured: f64) {
        self.status = Verdict::of(self.accept, measured);
        self.measured = Some(measured).filter(|measured| measured.is_finite());
    }

    /// Puts in the spread over seeds, and what it makes of the verdict: it is within the noise if
    /// another value of the interval has another verdict.
    pub fn spread(&mut self, interval: Option<Interval>) {
        self.interval = interval.map(|interval| interval.ends);
        self.interval_kind = interval.map(|interval| interval.kind);
        let Some(Interval { ends, kind }) = interval else { return };
        let [low, high] = self.accept;
        let is_apart =
            low.is_some_and(|low| ends[1] < low) || high.is_some_and(|high| ends[0] > high);
        let is_inside = ends.iter().all(|end| Verdict::of(self.accept, *end) == Verdict::Holds);
        self.noise = match kind {
            _ if !is_apart && !is_inside => Noise::Within,
            IntervalKind::Identical => Noise::Identical,
            IntervalKind::Range => Noise::Agreed,
            IntervalKind::Bootstrap95 | IntervalKind::Normal95 => Noise::Beyond,
        };
    }

    /// A percentage of its cases as their number, `4 of 5`, if it is a share of cases.
    pub fn held(&self, percent: f64) -> Option<String> {
        self.counted.as_ref()?.held(percent)
    }

    /// The least accepted number of its cases, `all seeds`, if it is a share of cases.
    pub fn least(&self) -> Option<String> {
        let [Some(low), None] = self.accept else { return None };
        Some(self.counted.as_ref()?.at_least(low))
    }

    /// The share that completed in percent, with one decimal.
    pub fn completed_percent(&self) -> Option<f64> {
        // Rounded down: a share below 100 % does not become it.
        self.completed.map(|share| libm::floor(share * 1000.0) / 10.0)
    }

    /// Whether it holds with its mechanism and without it: then it is no evidence for the
    /// mechanism.
    pub fn holds_anyway(&self) -> bool {
        self.status == Verdict::Holds && self.baseline == Verdict::Holds
    }
}

/// Claims as in `claims.json`.
pub fn claims_json(claims: &[Claim]) -> String {
    crate::model::files::json_text(&claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_say_the_kind_and_old_ones_are_of_published_claims() {
        for kind in ClaimKind::ALL {
            let text = serde_json::to_string(&Claim { kind, ..Claim::default() }).unwrap();
            assert!(text.contains(&format!("\"kind\":\"{}\"", kind.name())), "{text}");
            assert_eq!(serde_json::from_str::<Claim>(&text).unwrap().kind, kind);
            let old = text.replace(&format!("\"kind\":\"{}\",", kind.name()), "");
            assert!(!old.contains("\"kind\""), "{old}");
            assert_eq!(serde_json::from_str::<Claim>(&old).unwrap().kind, ClaimKind::Published);
        }
    }

    #[test]
    fn a_share_of_cases_is_their_number() {
        let seeds = |of| Counted { unit: "seeds".into(), of };
        let five = seeds(Some(5));
        assert_eq!([0.0, 80.0].map(|x| five.held(x).unwrap()), ["0 of 5", "4 of 5"]);
        let accepted = [100.0, 80.0, 61.0].map(|percent| five.at_least(percent));
        assert_eq!(accepted, ["all seeds", "≥ 4 seeds", "≥ 4 seeds"]);
        let open = seeds(None);
        assert_eq!((open.held(0.0), open.at_least(80.0)), (None, "≥ 80%".into()));
    }

    #[test]
    fn a_claim_is_judged_by_its_interval_with_its_ends() {
        let status = |accept, measured| {
            let mut claim = Claim { accept, ..Claim::default() };
            claim.judge(measured);
            claim.status
        };
        assert_eq!(Claim::default().status, Verdict::NotEvaluated);
        assert_eq!(status([None, Some(-40.0)], -40.0), Verdict::Holds);
        assert_eq!(status([None, Some(-40.0)], -39.9), Verdict::Fails);
        assert_eq!(status([Some(5.0), Some(25.0)], 4.9), Verdict::Fails);
        assert_eq!(status([Some(0.0), None], 1e9), Verdict::Holds);
        assert_eq!(status([None, None], f64::NAN), Verdict::NotEvaluated);
    }

    #[test]
    fn a_verdict_that_changes_within_the_spread_is_within_the_noise() {
        use IntervalKind::{Bootstrap95, Identical, Range};
        let noise = |accept, measured: f64, ends: [f64; 2], kind| {
            let mut claim = Claim { accept, ..Claim::default() };
            claim.judge(measured);
            claim.spread(Some(Interval { ends, kind }));
            claim.noise
        };
        let most = [None, Some(-40.0)];
        assert_eq!(noise(most, -50.0, [-60.0, -45.0], Bootstrap95), Noise::Beyond);
        assert_eq!(noise(most, -50.0, [-60.0, -45.0], Range), Noise::Agreed);
        assert_eq!(noise(most, -50.0, [-60.0, -35.0], Range), Noise::Within, "it would fail");
        assert_eq!(noise(most, -30.0, [-41.0, -20.0], Bootstrap95), Noise::Within, "it would hold");
        assert_eq!(
            noise(most, -30.0, [-39.0, -20.0], Bootstrap95),
            Noise::Beyond,
            "it fails anyway"
        );
        assert_eq!(
            noise([Some(5.0), Some(6.0)], 4.0, [3.0, 9.0], Range),
            Noise::Within,
            "both ends fail"
        );
        assert_eq!(noise(most, -50.0, [-50.0, -50.0], Identical), Noise::Identical);
        let mut one = Claim { accept: most, ..Claim::default() };
        one.judge(-50.0);
        one.spread(None);
        assert_eq!((one.noise, one.interval), (Noise::Unknown, None));
    }

    #[test]
    fn claims_have_the_contracts_fields_in_order() {
        let text = claims_json(&[Claim { accept: [None, Some(-40.0)], ..Claim::default() }]);
        let fields = [
            "id",
            "source",
            "statement",
            "kind",
            "world",
            "paper",
            "measured",
            "accept",
            "status",
            "note",
            "scenario",
            "unit",
        ];
        let places: Vec<usize> =
            fields.iter().map(|f| text.find(&format!("\"{f}\":")).unwrap()).collect();
        assert!(places.is_sorted() && text.contains("\"not-evaluated\""), "{text}");
        assert!(text.starts_with("[\n") && text.contains("\"paper\": null"), "{text}");
    }

    #[test]
    fn a_claim_is_about_its_schemes_at_its_load() {
        let claim = Claim {
            experiment: "x".into(),
            schemes: vec!["TLT".into()],
            load: Some(40.0),
            ..Claim::default()
        };
        assert!(claim.is_about("x", "TLT", 40.0));
        assert!(!claim.is_about("x", "TLT as released", 40.0) && !claim.is_about("x", "TLT", 80.0));
        assert!(!claim.is_about("y", "TLT", 40.0));
        assert!(Claim { schemes: Vec::new(), load: None, ..claim }.is_about("x", "any", 1.0));
    }
}
