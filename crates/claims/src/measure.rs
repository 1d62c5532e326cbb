//! How a claim is measured: one number of what an experiment found, and how it came about.
//!
//! Invariant: a measure is a pure function of what the experiments found. It gives a number, or
//! the reason why there is none; a run that is missing makes it undecided.

mod finding;

use crate::experiment::Experiment;
use crate::found::{Arm, Found, Off};
use crate::statistic::Statistic;
use finding::{Cells, Side, seeds, span};
use millpond_results::{Absolute, Counted};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// How much less or more one scheme's statistic is than another's, of the means over seeds: −40
    /// is 40 % less.
    #[default]
    Change,
    /// The same of each seed; of these changes, the median.
    Paired,
    /// The same of means over seeds at the load where it is lowest; its cost in another statistic
    /// there is reported beside.
    Best,
    /// The lowest of several such changes, each of one scheme against another.
    BestOf,
    /// One scheme's statistic, of the mean over seeds, as a part of a number.
    Part,
    /// One scheme's statistic as it is, of the mean over seeds.
    Plain,
    /// One scheme's statistic as a part of a number, of the median over seeds.
    Median,
    /// One statistic of a scheme as a part of another, of the means over seeds.
    Ratio,
    /// One scheme's statistic at one load as a part of that at another, of the means over seeds.
    Growth,
    /// How many microseconds one scheme's statistic is above another's, of the means over seeds.
    Beyond,
    /// The share of seeds in which the schemes of each group are below those of the next one.
    Order,
    /// The share of the published cells (scheme × load × mean and p99) that ours are within a
    /// factor of.
    Cells,
    /// The largest difference over all loads between two schemes' means over seeds.
    Furthest,
}

impl Kind {
    /// The fields that a measure has, `slack` if it is given.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Change | Kind::Paired | Kind::Beyond => {
                &["experiment", "load", "statistic", "of", "than"]
            }
            Kind::Best => &["experiment", "statistic", "beside", "of", "than"],
            Kind::BestOf => &["experiment", "statistic", "pairs"],
            Kind::Part | Kind::Median => &["experiment", "load", "statistic", "of", "whole"],
            Kind::Plain => &["experiment", "load", "statistic", "of"],
            Kind::Ratio => &["experiment", "load", "statistic", "over", "of"],
            Kind::Growth => &["experiment", "statistic", "of", "from", "to"],
            Kind::Order => &["experiment", "load", "statistic", "groups", "slack"],
            Kind::Cells => &["experiment", "factor"],
            Kind::Furthest => &["experiment", "statistic", "of", "than"],
        }
    }
}

/// How a claim is measured. Fields that its kind does not have are empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(remote = "Self", default)]
pub struct Measure {
    pub kind: Kind,
    /// The experiment that it is of.
    pub experiment: String,
    /// The load that it is at.
    pub load: Option<f64>,
    /// The number of runs that it is of.
    pub statistic: Statistic,
    /// A scheme: a variant of the experiment's scenario.
    pub of: String,
    /// The scheme that it is compared with.
    pub than: String,
    /// The statistic that is reported beside the best.
    pub beside: Statistic,
    /// The statistic that another is a part of.
    pub over: Option<Statistic>,
    /// Schemes, each with the one that it is compared with.
    pub pairs: Vec<Off>,
    pub groups: Vec<Vec<String>>,
    /// For each step of the order, the factor that the next group is multiplied with before.
    pub slack: Vec<f64>,
    /// The number that a statistic is a part of, in the statistic's unit.
    pub whole: Option<f64>,
    /// The first load of a growth.
    pub from: f64,
    pub to: f64,
    /// How far from a published cell ours may be.
    pub factor: f64,
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Measure, D::Error> {
        let table = toml::Table::deserialize(from)?;
        let wrong = |error: toml::de::Error| D::Error::custom(error.message());
        let kind = table.get("kind").ok_or_else(|| D::Error::missing_field("kind"))?.clone();
        let fields = kind.try_into::<Kind>().map_err(wrong)?.fields();
        if let Some(key) = table.keys().find(|key| *key != "kind" && !fields.contains(&&***key)) {
            return Err(D::Error::unknown_field(key, fields));
        }
        if let Some(&field) = fields.iter().find(|f| **f != "slack" && !table.contains_key(**f)) {
            return Err(D::Error::missing_field(field));
        }
        Measure::deserialize(table).map_err(wrong)
    }
}

/// A measured number and how it came about, or why there is none.
pub type Measured = Result<(f64, String), String>;

/// The point of a sweep where a change is lowest.
struct Best<'a> {
    change: f64,
    sides: [Side<'a>; 2],
    /// The changes of each pair, at all points.
    all: Vec<String>,
}

impl Measure {
    /// The schemes that it is of.
    pub fn schemes(&self) -> impl Iterator<Item = &str> {
        let pairs = self.pairs.iter().flat_map(|(of, than)| [of, than]);
        let single = [&self.of, &self.than].into_iter().filter(|name| !name.is_empty());
        self.groups.iter().flatten().chain(pairs).chain(single).map(String::as_str)
    }

    /// The schemes whose mechanism it is about: not those that they are compared with.
    pub fn subjects<'a>(&'a self, experiment: &'a Experiment) -> Vec<&'a str> {
        if self.kind == Kind::Cells {
            return experiment.published.iter().map(|curve| curve.variant.as_str()).collect();
        }
        let ordered = self.groups.iter().flatten().map(String::as_str);
        let compared = self.compared().map(|(of, _)| of).filter(|of| !of.is_empty());
        ordered.chain(compared).collect()
    }

    /// The numbers of runs that it is of.
    pub fn statistics(&self) -> impl Iterator<Item = &Statistic> {
        let beside = Some(&self.beside).filter(|_| self.kind == Kind::Best);
        std::iter::once(&self.statistic).chain(&self.over).chain(beside)
    }

    /// Each scheme with the one that it is compared with.
    fn compared(&self) -> impl Iterator<Item = (&str, &str)> {
        let single = self.pairs.is_empty().then_some((self.of.as_str(), self.than.as_str()));
        self.pairs.iter().map(|(of, than)| (of.as_str(), than.as_str())).chain(single)
    }

    /// The number that is measured, and the one that it is set against.
    fn sides<'a>(&'a self, of: &'a str, than: &'a str, load: f64) -> [Side<'a>; 2] {
        let side = |statistic, variant, load| Side { statistic, variant, load };
        let own = &self.statistic;
        match self.kind {
            Kind::Growth => [side(own, of, self.to), side(own, of, self.from)],
            Kind::Ratio => [side(own, of, load), side(self.over.as_ref().unwrap_or(own), of, load)],
            _ => [side(own, of, load), side(own, than, load)],
        }
    }

    fn decided<'a>(&'a self, found: &'a Found) -> Result<[Side<'a>; 2], String> {
        match self.is_of_best() {
            true => Ok(self.best(found)?.sides),
            false => Ok(self.sides(&self.of, &self.than, self.load.unwrap_or_default())),
        }
    }

    fn is_of_best(&self) -> bool {
        matches!(self.kind, Kind::Best | Kind::BestOf)
    }

    /// Both sides at each load of the first scheme.
    fn at_loads<'a>(
        &'a self,
        found: &'a Found,
        of: &'a str,
        than: &'a str,
    ) -> impl Iterator<Item = [Side<'a>; 2]> {
        let arms = found.arms.iter().filter(move |arm| arm.variant == of);
        arms.map(move |arm| self.sides(of, than, arm.load))
    }

    /// The lowest change of its pairs over the loads.
    fn best<'a>(&'a self, found: &'a Found) -> Result<Best<'a>, String> {
        let (mut best, mut all): (Option<(f64, [Side<'_>; 2])>, _) = (None, Vec::new());
        for (of, than) in self.compared() {
            let (mut lowest, mut changes): (Option<(f64, [Side<'_>; 2])>, _) = (None, Vec::new());
            for sides in self.at_loads(found, of, than) {
                let load = sides[0].load;
                if finding::is_thin(found, &sides)? {
                    changes.push(format!(
                        "left out at {load}, where fewer than ten samples exceed the percentile"
                    ));
                    continue;
                }
                let (change, _) = finding::change(found, &sides)?;
                changes.push(format!("{change:+.0} % at {load}"));
                if lowest.as_ref().is_none_or(|(least, _)| change < *least) {
                    lowest = Some((change, sides));
                }
            }
            let (change, sides) = lowest.ok_or_else(|| match changes.first() {
                Some(_) => "at every point fewer than ten samples exceed the percentile".into(),
                None => format!("{of} is not run with this effort"),
            })?;
            let changes = changes.join(", ");
            all.push(match self.kind {
                Kind::BestOf => format!("{of} against {than}: {changes}"),
                _ => changes,
            });
            if best.as_ref().is_none_or(|(least, _)| change < *least) {
                best = Some((change, sides));
            }
        }
        let (change, sides) = best.ok_or("there is nothing to compare")?;
        Ok(Best { change, sides, all })
    }

    /// Points of a sweep of which it takes the best, without those that are left out; `None` where
    /// it is of one point.
    pub fn points(&self, found: &Found) -> Option<u32> {
        let counted = self.compared().flat_map(|(of, than)| self.at_loads(found, of, than));
        let counted = counted.filter(|sides| finding::is_thin(found, sides) == Ok(false));
        self.is_of_best().then(|| counted.count() as u32)
    }

    /// The cases of a share of cases, and how many `found` has.
    pub fn counted(&self, experiment: &Experiment, found: &Found) -> Option<Counted> {
        let (unit, of) = match self.kind {
            Kind::Order => {
                let [first, _] = self.sides(self.groups[0].first()?, "", self.load?);
                ("seeds", first.runs(found).ok().map(|runs| runs.len()))
            }
            Kind::Cells => {
                let cells = Cells::of(experiment, found, self.factor).ok();
                ("cells", cells.map(|cells| cells.all))
            }
            _ => return None,
        };
        Some(Counted { unit: unit.to_string(), of: of.map(|of| of as u32) })
    }

    /// The least share of flows or queries that completed, among the schemes and loads that decide
    /// it; `None` where so many did that the others hardly move it, or where it is of neither.
    pub fn completed(&self, experiment: &Experiment, found: &Found) -> Option<f64> {
        let decided = self.decided(found);
        let is_deciding = |arm: &&Arm| match (self.kind, &decided) {
            (Kind::Cells, _) => {
                let curves = experiment.published.iter();
                let mut of_arm = curves.filter(|curve| curve.variant == arm.variant);
                of_arm.any(|curve| curve.loads.contains(&arm.load))
            }
            (Kind::Order | Kind::Furthest, _) | (_, Err(_)) => {
                self.schemes().any(|scheme| scheme == arm.variant)
                    && self.load.is_none_or(|load| load == arm.load)
            }
            (_, Ok(sides)) => {
                sides.iter().any(|side| side.variant == arm.variant && side.load == arm.load)
            }
        };
        let statistics = match self.kind {
            Kind::Cells => vec![&Statistic::Mean, &Statistic::P99],
            _ => std::iter::once(&self.statistic).chain(&self.over).collect(),
        };
        let share = |arm: &Arm, statistic: &Statistic| {
            let runs = arm.runs.iter().filter_map(|run| statistic.completed(run));
            let [completed, started] = runs.fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
            let share = completed as f64 / started.max(1) as f64;
            (started > 0 && 1.0 - share > statistic.negligible()).then_some(share)
        };
        let arms = found.arms.iter().filter(is_deciding);
        let shares = arms.flat_map(|arm| statistics.iter().filter_map(move |one| share(arm, one)));
        shares.min_by(f64::total_cmp)
    }

    /// Whether it compares a scheme with itself if the second of a pair stands in the place of the
    /// first: then it is exactly 0.
    pub fn compares_itself(&self, pairs: &[Off]) -> bool {
        let stands_for = |(of, than): (&str, &str)| {
            pairs.iter().any(|(on, off)| on.as_str() == of && off.as_str() == than)
        };
        self.groups.is_empty() && self.compared().all(stands_for)
    }

    pub fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Beyond => "us",
            Kind::Plain => self.statistic.unit(),
            _ => "percent",
        }
    }

    /// The numbers behind a relative one: ours, and what it is set against. `paper` is the
    /// published one, in percent.
    pub fn absolute(&self, found: &Found, paper: Option<f64>) -> Option<Absolute> {
        if matches!(self.kind, Kind::Plain | Kind::Order | Kind::Cells | Kind::Furthest) {
            return None;
        }
        let [ours, theirs] = self.decided(found).ok()?;
        let number = |side: &Side<'_>| match self.kind {
            Kind::Median | Kind::Paired => Some(finding::median(side.values(found).ok()?)),
            _ => side.mean(found).ok(),
        };
        let against = || if self.whole.is_some() { Some(None) } else { number(&theirs).map(Some) };
        Some(Absolute {
            unit: self.statistic.unit().to_string(),
            paper: self.whole.zip(paper).map(|(whole, percent)| percent / 100.0 * whole),
            measured: number(&ours)?,
            against: against()?,
        })
    }

    /// Returns the measured number in [`Measure::unit`], and its derivation in words.
    ///
    /// # Errors
    /// The reason why the runs give no number: a run or a load is missing, a statistic has no
    /// value, or the number that others are compared to is zero.
    pub fn of(&self, experiment: &Experiment, found: &Found) -> Measured {
        let sides = self.sides(&self.of, &self.than, self.load.unwrap_or_default());
        let whole = self.whole.unwrap_or(100.0);
        match self.kind {
            Kind::Change => finding::change(found, &sides),
            Kind::Paired => finding::paired(found, &sides),
            Kind::Best => {
                let Best { change, sides, all } = self.best(found)?;
                let load = sides[0].load;
                let beside = sides.map(|side| Side { statistic: &self.beside, ..side });
                let (cost, _) = finding::change(found, &beside)?;
                let name = self.beside.name();
                let all = all.join("; ");
                Ok((change, format!("at {load}, where {name} changes by {cost:+.1} %; {all}")))
            }
            Kind::BestOf => {
                let Best { change, sides: [Side { variant, load, .. }, _], all } =
                    self.best(found)?;
                Ok((change, format!("{variant} at {load}; {}", all.join("; "))))
            }
            Kind::Part | Kind::Plain => {
                let n = sides[0].runs(found)?.len();
                let mean = sides[0].mean(found)?;
                Ok((self.whole.map_or(mean, |whole| mean / whole * 100.0), seeds(n)))
            }
            Kind::Median => {
                let values = sides[0].values(found)?.into_iter();
                let parts: Vec<f64> = values.map(|value| value / whole * 100.0).collect();
                let how = format!("median of {}: {} %", seeds(parts.len()), span(&parts));
                Ok((finding::median(parts), how))
            }
            Kind::Ratio => finding::ratio(found, &sides),
            Kind::Growth => finding::growth(found, &sides),
            Kind::Beyond => finding::beyond(found, &sides),
            Kind::Order => finding::order(found, self),
            Kind::Cells => finding::cells(experiment, found, self.factor),
            Kind::Furthest => finding::furthest(found, self),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::baseline::Baselines;
    use crate::experiment::{Published, Runs};
    use crate::found::Arm;
    use crate::paper::Paper;
    use crate::statistic::Run;
    use millpond_results::Status;
    use millpond_results::{Fct, Keep, Ordered, Summary, World};
    use std::sync::{Arc, LazyLock};

    pub fn pairs(pairs: &[(&str, &str)]) -> Vec<Off> {
        pairs.iter().map(|(of, than)| (of.to_string(), than.to_string())).collect()
    }

    fn curve(variant: &str, loads: &[f64], mean_s: &[f64], p99_s: &[f64]) -> Published {
        Published {
            variant: variant.into(),
            source: "x".into(),
            loads: loads.to_vec(),
            mean_s: mean_s.to_vec(),
            p99_s: p99_s.to_vec(),
        }
    }

    pub static EXPERIMENT: LazyLock<Experiment> = LazyLock::new(|| Experiment {
        name: "x".into(),
        title: String::new(),
        scenario: "x.toml".into(),
        text: String::new(),
        schemes: pairs(&[("a", "A"), ("b", "B")]),
        load_axis: "load".into(),
        load_key: Some("k".into()),
        full: Runs {
            loads: vec![(50.0, "1".into()), (90.0, "2".into())],
            seeds: (1, 2),
            ..Runs::default()
        },
        quick: Err("too short".into()),
        world: World::Sim,
        keep: Keep::Queries,
        shows: Vec::new(),
        published: vec![
            curve("a", &[50.0, 90.0], &[1.0, 2.0], &[3.0, 4.0]),
            curve("b", &[90.0], &[4.0], &[8.0]),
        ],
    });

    pub static PAPER: LazyLock<Paper> = LazyLock::new(|| Paper {
        year: 2026,
        name: "p".into(),
        title: "P".into(),
        experiments: vec![EXPERIMENT.clone()],
        baselines: Baselines { off: pairs(&[("a", "b")]), ..Baselines::default() },
        ..Paper::default()
    });

    /// Mean and p99 in seconds, by seed from 1.
    pub fn arm(variant: &str, load: f64, of: &[(f64, f64)]) -> Arm {
        let run = |(at, &(mean, p99)): (usize, &(f64, f64))| {
            let mut summary = Summary::default();
            summary.qct_us.mean = (mean > 0.0).then_some(mean * 1e6);
            summary.qct_us.p99 = Some(p99 * 1e6);
            summary.qct_us.mean_restricted = Some(mean * 2e6);
            (summary.qct_us.completed, summary.packets.dropped) =
                ((mean * 1e4) as u64, (p99 * 100.0) as u64);
            Run { seed: at as u64 + 1, summary: Arc::new(summary), ..Run::default() }
        };
        let runs: Vec<Run> = of.iter().enumerate().map(run).collect();
        Arm { variant: variant.into(), load, planned: (1..=of.len() as u64).collect(), runs }
    }

    pub fn found(arms: Vec<Arm>) -> Found {
        Found { name: "x".into(), left_out: None, arms }
    }

    fn measured(measure: Measure, found: &Found) -> Result<f64, String> {
        measure.of(&EXPERIMENT, found).map(|(measured, _)| (measured * 1e6).round() / 1e6)
    }

    /// Of scheme "a" at 90 %, and of others beside "b".
    pub fn measure(kind: Kind, statistic: Statistic) -> Measure {
        let than = if kind.fields().contains(&"than") { "b" } else { "" };
        Measure {
            kind,
            experiment: "x".into(),
            load: kind.fields().contains(&"load").then_some(90.0),
            statistic,
            of: "a".into(),
            than: than.into(),
            ..Measure::default()
        }
    }

    pub fn less(statistic: Statistic) -> Measure {
        measure(Kind::Change, statistic)
    }

    fn sorted(statistic: Statistic, groups: &[&[&str]], slack: &[f64]) -> Measure {
        let group = |group: &&[&str]| group.iter().map(|name| name.to_string()).collect();
        let (of, groups) = (String::new(), groups.iter().map(group).collect());
        Measure { of, groups, slack: slack.to_vec(), ..measure(Kind::Order, statistic) }
    }

    fn best_of(statistic: Statistic, of: &[(&str, &str)]) -> Measure {
        Measure { of: String::new(), pairs: pairs(of), ..measure(Kind::BestOf, statistic) }
    }

    fn cells(factor: f64) -> Measure {
        Measure { of: String::new(), factor, ..measure(Kind::Cells, Statistic::Mean) }
    }

    fn of_whole(kind: Kind, whole: f64) -> Measure {
        Measure { whole: Some(whole), ..measure(kind, Statistic::Mean) }
    }

    fn growth(statistic: Statistic, from: f64, to: f64) -> Measure {
        Measure { from, to, ..measure(Kind::Growth, statistic) }
    }

    fn ratio() -> Measure {
        Measure { over: Some(Statistic::Mean), ..measure(Kind::Ratio, Statistic::P99) }
    }

    fn best() -> Measure {
        Measure { beside: Statistic::P99, ..measure(Kind::Best, Statistic::Mean) }
    }

    #[test]
    fn a_run_that_stalled_decides_nothing() {
        let mut both =
            found(vec![arm("a", 90.0, &[(1.0, 3.0); 2]), arm("b", 90.0, &[(2.0, 8.0); 2])]);
        assert!(less(Statistic::Mean).of(&EXPERIMENT, &both).is_ok());
        std::sync::Arc::make_mut(&mut both.arms[1].runs[1].summary).status = Status::Stalled;
        let why = less(Statistic::Mean).of(&EXPERIMENT, &both).unwrap_err();
        assert!(why.starts_with("b at 90 % stalled with seed"), "{why}");
    }

    #[test]
    fn a_change_is_of_means_over_seeds_and_says_what_is_open() {
        let found = found(vec![
            arm("a", 90.0, &[(1.0, 3.0), (2.0, 5.0)]),
            arm("b", 90.0, &[(2.0, 8.0), (4.0, 8.0)]),
        ]);
        assert_eq!(measured(less(Statistic::Mean), &found), Ok(-50.0));
        assert_eq!(measured(less(Statistic::P99), &found), Ok(-50.0));
        assert_eq!(measured(less(Statistic::Completed), &found), Ok(-50.0));
        assert_eq!(measured(less(Statistic::Dropped), &found), Ok(-50.0));
        let (_, how) = less(Statistic::Mean).of(&EXPERIMENT, &found).unwrap();
        assert!(how.contains("2 seeds") && how.contains("up to the horizon -50.0 %"), "{how}");
    }

    #[test]
    fn what_is_missing_decides_nothing() {
        let mut found = found(vec![
            arm("a", 90.0, &[(1.0, 3.0), (2.0, 5.0)]),
            arm("b", 90.0, &[(2.0, 8.0), (0.0, 8.0)]),
        ]);
        let why = |found: &Found| measured(less(Statistic::Mean), found).unwrap_err();
        assert!(
            why(&found).contains("with b no query completed in the run of seed 2"),
            "{}",
            why(&found)
        );
        found.arms[0].runs.pop();
        assert!(why(&found).contains("a at 90 % has no complete run of seed 2"), "{}", why(&found));
        found.arms[0].runs.clear();
        assert!(why(&found).contains("no complete run of a"), "{}", why(&found));
        found.arms.clear();
        assert!(why(&found).contains("not run with this effort"), "{}", why(&found));
    }

    #[test]
    fn an_order_is_counted_by_seed() {
        let all = || {
            found(vec![
                arm("a", 90.0, &[(1.0, 0.0), (2.1, 0.0)]),
                arm("b", 90.0, &[(2.0, 0.0), (2.0, 0.0)]),
            ])
        };
        assert_eq!(measured(sorted(Statistic::Mean, &[&["a"], &["b"]], &[]), &all()), Ok(50.0));
        assert_eq!(measured(sorted(Statistic::Mean, &[&["a"], &["b"]], &[1.1]), &all()), Ok(100.0));
        let (_, how) =
            sorted(Statistic::Mean, &[&["a"], &["b"]], &[]).of(&EXPERIMENT, &all()).unwrap();
        assert_eq!(how, "in 1 of 2 seeds; broken: a < b");
        let mut found = all();
        found.arms.push(arm("c", 90.0, &[(9.0, 0.0), (9.0, 0.0)]));
        assert_eq!(
            measured(sorted(Statistic::Mean, &[&["a"], &["b", "c"]], &[]), &found),
            Ok(50.0)
        );
        assert_eq!(
            measured(sorted(Statistic::Mean, &[&["a", "b"], &["c"]], &[]), &found),
            Ok(100.0)
        );
        found.arms[2].runs.pop();
        assert!(measured(sorted(Statistic::Mean, &[&["a"], &["b", "c"]], &[]), &found).is_err());
    }

    #[test]
    fn cells_are_within_a_factor_on_either_side() {
        // Of a: 1 and 3 s published at 50 %, 2 and 4 at 90 %; of b: 4 and 8 at 90 %.
        let mut found = found(vec![
            arm("a", 50.0, &[(1.4, 1.9)]),
            arm("a", 90.0, &[(2.0, 4.0)]),
            arm("b", 90.0, &[(3.0, 8.0)]),
        ]);
        let cells = || cells(1.5);
        assert_eq!(measured(cells(), &found), Ok(83.333333));
        let (_, how) = cells().of(&EXPERIMENT, &found).unwrap();
        assert!(
            how.contains("5 of 6 cells; furthest, by a factor of 1.58: a p99 at 50 %"),
            "{how}"
        );
        found.arms.remove(0);
        let (_, how) = cells().of(&EXPERIMENT, &found).unwrap();
        assert!(how.contains("4 of 4 cells (of 6 published)"), "{how}");
        found.arms[0].runs.clear();
        assert!(measured(cells(), &found).is_err());
    }

    #[test]
    fn the_furthest_load_counts() {
        let found = found(vec![
            arm("a", 50.0, &[(1.1, 0.0)]),
            arm("b", 50.0, &[(1.0, 0.0)]),
            arm("a", 90.0, &[(1.5, 0.0)]),
            arm("b", 90.0, &[(2.0, 0.0)]),
        ]);
        let furthest = measure(Kind::Furthest, Statistic::Mean);
        assert_eq!(measured(furthest, &found), Ok(25.0));
    }

    #[test]
    fn medians_pairs_best_points_and_ratios() {
        let three = |a: [f64; 3], b: [f64; 3]| {
            let of = |values: [f64; 3]| values.map(|v| (v, v * 2.0));
            found(vec![arm("a", 90.0, &of(a)), arm("b", 90.0, &of(b))])
        };
        let all = three([1.0, 3.0, 1.0], [2.0, 2.0, 4.0]);
        let pair = || measure(Kind::Paired, Statistic::Mean);
        // By seed −50, +50 and −75 %: the mean of the means would say −38.
        assert_eq!(measured(pair(), &all), Ok(-50.0));
        let (_, how) = pair().of(&EXPERIMENT, &all).unwrap();
        assert_eq!(how, "median of 3 seeds: -75.0 to 50.0 %");
        let median = |whole| of_whole(Kind::Median, whole);
        assert_eq!(measured(median(2e6), &all), Ok(50.0));
        let two = found(vec![arm("a", 90.0, &[(1.0, 1.0), (2.0, 1.0)])]);
        assert_eq!(measured(median(1e6), &two), Ok(150.0), "between the two in the middle");
        assert_eq!(measured(ratio(), &all), Ok(200.0));
        let plain = || measure(Kind::Plain, Statistic::P99);
        assert_eq!(
            (measured(plain(), &all).map(f64::round), plain().unit()),
            (Ok(3_333_333.0), "us")
        );
        let mut lost = three([1.0, 3.0, 1.0], [2.0, 2.0, 4.0]);
        lost.arms[1].runs.remove(1);
        assert!(measured(pair(), &lost).unwrap_err().contains("no complete run of seed 2"));

        let loads = found(vec![
            arm("a", 50.0, &[(0.9, 5.0)]),
            arm("b", 50.0, &[(1.0, 4.0)]),
            arm("a", 90.0, &[(0.5, 3.0)]),
            arm("b", 90.0, &[(1.0, 2.0)]),
        ]);
        let (value, how) = best().of(&EXPERIMENT, &loads).unwrap();
        assert_eq!(
            (value.round(), how.as_str()),
            (-50.0, "at 90, where p99 changes by +50.0 %; -10 % at 50, -50 % at 90")
        );
    }

    /// 3,000 flows a seed, of which a p99.9 has three beyond it.
    fn flows(variant: &str, load: f64, p999: f64, seeds: u64) -> Arm {
        let run = |seed: u64| {
            let of = Fct { count: 3_000, p999: Some(p999), ..Fct::default() };
            let fct_us = Ordered::from(vec![("all".to_string(), of)]);
            Run {
                seed,
                summary: Arc::new(Summary { fct_us, ..Summary::default() }),
                ..Run::default()
            }
        };
        let planned: Vec<u64> = (1..=seeds).collect();
        Arm {
            variant: variant.into(),
            load,
            runs: planned.iter().map(|seed| run(*seed)).collect(),
            planned,
        }
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it_in_all_seeds() {
        let statistic = || Statistic::Flows("all".into(), crate::statistic::Of::P999);
        let pair = |seeds| found(vec![flows("a", 90.0, 2.0, seeds), flows("b", 90.0, 4.0, seeds)]);
        let why = measured(less(statistic()), &pair(3)).unwrap_err();
        assert_eq!(
            why,
            "with a 9.0 samples of 3 seeds exceed the percentile, of the ten that it takes"
        );
        assert_eq!(measured(less(statistic()), &pair(4)), Ok(-50.0));
        let order = || sorted(statistic(), &[&["a"], &["b"]], &[]);
        assert!(measured(order(), &pair(3)).is_err());
        assert_eq!(measured(order(), &pair(4)), Ok(100.0));
        assert!(measured(measure(Kind::Paired, statistic()), &pair(3)).is_err());
        let best = || best_of(statistic(), &[("a", "b")]);
        let mut sweep = pair(4);
        sweep.arms.extend([flows("a", 50.0, 1.0, 3), flows("b", 50.0, 9.0, 3)]);
        assert_eq!(measured(best(), &sweep), Ok(-50.0), "the point at 50 is left out");
        assert_eq!(best().points(&sweep), Some(1), "and not counted");
        assert!(measured(best(), &pair(3)).unwrap_err().contains("at every point"));
    }

    #[test]
    fn a_claim_has_the_least_share_that_completed_where_it_is_decided() {
        let flows = |variant: &str, load: f64, p50: f64, open: u64| {
            let of = Fct { count: 90, unfinished: open, p50: Some(p50), ..Fct::default() };
            let fct_us = Ordered::from(vec![("all".to_string(), of)]);
            let run = |seed| Run {
                seed,
                summary: Arc::new(Summary { fct_us: fct_us.clone(), ..Summary::default() }),
                ..Run::default()
            };
            Arm { variant: variant.into(), load, planned: vec![1, 2], runs: vec![run(1), run(2)] }
        };
        let statistic = || Statistic::Flows("all".into(), crate::statistic::Of::P50);
        let all = found(vec![
            flows("a", 90.0, 1.0, 10),
            flows("b", 90.0, 4.0, 0),
            flows("a", 50.0, 3.0, 90),
            flows("b", 50.0, 4.0, 0),
        ]);
        assert_eq!(less(statistic()).completed(&EXPERIMENT, &all), Some(0.9));
        let best = best_of(statistic(), &[("a", "b")]);
        assert_eq!(best.completed(&EXPERIMENT, &all), Some(0.9), "the best point is at 90");
        let growth = growth(statistic(), 50.0, 90.0);
        assert_eq!(growth.completed(&EXPERIMENT, &all), Some(0.5));
        let plain = Measure { of: "b".into(), ..measure(Kind::Plain, statistic()) };
        assert_eq!(plain.completed(&EXPERIMENT, &all), None, "all flows of b completed");
        assert_eq!(
            less(Statistic::Dropped).completed(&EXPERIMENT, &all),
            None,
            "a count is of no flows"
        );
    }

    #[test]
    fn a_claim_of_cells_has_the_share_that_completed_in_published_cells_alone() {
        let arm = |variant: &str, load: f64, unfinished: u64| {
            let mut arm = arm(variant, load, &[(1.0, 1.0)]);
            Arc::make_mut(&mut arm.runs[0].summary).qct_us.started = 10_000 + unfinished;
            arm
        };
        // Of a, 50 and 90 % are published; of b, 90 % alone. Each completed 10,000 queries.
        let all = found(vec![
            arm("a", 90.0, 2_500),
            arm("b", 90.0, 0),
            arm("b", 50.0, 10_000),
            arm("a", 70.0, 10_000),
            arm("c", 90.0, 10_000),
        ]);
        assert_eq!(cells(1.5).completed(&EXPERIMENT, &all), Some(0.8));
    }

    #[test]
    fn growth_is_of_one_load_to_another() {
        let found = found(vec![
            arm("a", 50.0, &[(1.0, 3.0), (3.0, 3.0)]),
            arm("a", 90.0, &[(5.0, 3.0), (3.0, 3.0)]),
        ]);
        let growth = |from, to| growth(Statistic::Mean, from, to);
        assert_eq!(
            (measured(growth(50.0, 90.0), &found), measured(growth(90.0, 50.0), &found)),
            (Ok(200.0), Ok(50.0))
        );
        let absolute = growth(50.0, 90.0).absolute(&found, None).unwrap();
        assert_eq!((absolute.measured, absolute.against), (4e6, Some(2e6)));
        assert!(measured(growth(50.0, 70.0), &found).unwrap_err().contains("a at 70 % is not run"));
    }

    #[test]
    fn the_best_of_several_pairs_says_which_it_is() {
        let all = |a: f64, b: f64| {
            let of = |variant, load, mean| arm(variant, load, &[(mean, 1.0)]);
            found(vec![of("a", 50.0, a), of("b", 50.0, 1.0), of("a", 90.0, b), of("b", 90.0, 1.0)])
        };
        let best = || best_of(Statistic::Mean, &[("a", "b"), ("b", "a")]);
        assert_eq!(measured(best(), &all(0.5, 1.25)), Ok(-50.0));
        let (_, how) = best().of(&EXPERIMENT, &all(2.0, 4.0)).unwrap();
        assert_eq!(
            how,
            "b at 90; a against b: +100 % at 50, +300 % at 90; b against a: -50 % at 50, -75 % at \
             90"
        );
        let absolute = best().absolute(&all(2.0, 4.0), None).unwrap();
        assert_eq!((absolute.measured, absolute.against), (1e6, Some(4e6)));
        assert_eq!(best().schemes().collect::<Vec<_>>(), ["a", "b", "b", "a"]);
        let missing = found(vec![arm("a", 50.0, &[(1.0, 1.0)]), arm("b", 50.0, &[])]);
        assert!(measured(best(), &missing).is_err(), "a pair that was not run decides nothing");
    }

    #[test]
    fn relative_numbers_know_what_they_stand_for() {
        let all = found(vec![
            arm("a", 90.0, &[(1.0, 2.0), (3.0, 6.0), (1.0, 2.0)]),
            arm("b", 90.0, &[(2.0, 1.0), (2.0, 1.0), (5.0, 1.0)]),
        ]);
        let of = |measure: Measure| {
            let absolute = measure.absolute(&all, Some(100.0)).unwrap();
            assert_eq!(absolute.unit, "us");
            (absolute.paper, absolute.measured.round(), absolute.against)
        };
        let whole = 12_400.0;
        assert_eq!(of(of_whole(Kind::Median, whole)), (Some(12_400.0), 1e6, None));
        let part = Measure { of: "b".into(), ..of_whole(Kind::Part, whole) };
        assert_eq!(of(part).1, 3e6);
        assert_eq!(of(less(Statistic::Mean)), (None, 1_666_667.0, Some(3e6)));
        assert_eq!(of(measure(Kind::Paired, Statistic::Mean)), (None, 1e6, Some(2e6)));
        assert_eq!(of(best()), (None, 1_666_667.0, Some(3e6)));
        assert_eq!(of(Measure { of: "b".into(), ..ratio() }), (None, 1e6, Some(3e6)));
        assert!(sorted(Statistic::Mean, &[&["a"], &["b"]], &[]).absolute(&all, None).is_none());
        let missing = found(vec![arm("a", 90.0, &[])]);
        assert!(
            less(Statistic::Mean).absolute(&missing, None).is_none(),
            "what was not run stands for nothing"
        );
    }
}
