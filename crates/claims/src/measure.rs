//! How a claim is measured: one number of what an experiment found, and how it came about.
//!
//! Invariant: a measure is a pure function of what the experiments found. It gives a number, or
//! says why there is none; a run that is missing makes it undecided.

mod finding;

use crate::experiment::Experiment;
use crate::found::{Arm, Found};
use crate::lists::{list, lists};
use crate::statistic::Statistic;
use finding::{
    Cells, best, best_of, best_pair, beyond, cells, change, each, furthest, growth, is_thin,
    lowest, mean_of, median, median_part, order, paired, part, plain, ratio, runs,
};
use millpond_results::{Absolute, Counted};
use serde::{Deserialize, Serialize};

/// How a claim is measured. The schemes (`of`, `than`, `groups`) are variants of the experiment's
/// scenario.
#[allow(missing_docs, reason = "a field means the same in every measure")]
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Measure {
    /// How much less or more one scheme's statistic is than another's, of the means over seeds: −40
    /// is 40 % less.
    Change {
        experiment: &'static str,
        load: f64,
        statistic: Statistic,
        of: &'static str,
        than: &'static str,
    },
    /// The same of each seed; of these changes, the median.
    Paired {
        experiment: &'static str,
        load: f64,
        statistic: Statistic,
        of: &'static str,
        than: &'static str,
    },
    /// The same of means over seeds at the load where it is lowest; its cost in another statistic
    /// there is reported beside.
    Best {
        experiment: &'static str,
        statistic: Statistic,
        beside: Statistic,
        of: &'static str,
        than: &'static str,
    },
    /// The lowest of several such changes, each of one scheme against another.
    BestOf {
        experiment: &'static str,
        statistic: Statistic,
        #[serde(deserialize_with = "list")]
        pairs: &'static [(&'static str, &'static str)],
    },
    /// One scheme's statistic, of the mean over seeds, as a part of a number.
    Part {
        experiment: &'static str,
        load: f64,
        statistic: Statistic,
        of: &'static str,
        /// The number, in the statistic's unit.
        whole: f64,
    },
    /// One scheme's statistic as it is, of the mean over seeds.
    Plain { experiment: &'static str, load: f64, statistic: Statistic, of: &'static str },
    /// One scheme's statistic as a part of a number, of the median over seeds.
    Median {
        experiment: &'static str,
        load: f64,
        statistic: Statistic,
        of: &'static str,
        whole: f64,
    },
    /// One statistic of a scheme as a part of another, of the means over seeds.
    Ratio {
        experiment: &'static str,
        load: f64,
        statistic: Statistic,
        over: Statistic,
        of: &'static str,
    },
    /// One scheme's statistic at one load as a part of that at another, of the means over seeds.
    Growth { experiment: &'static str, statistic: Statistic, of: &'static str, from: f64, to: f64 },
    /// How many microseconds one scheme's statistic is above another's, of the means over seeds.
    Beyond {
        experiment: &'static str,
        load: f64,
        statistic: Statistic,
        of: &'static str,
        than: &'static str,
    },
    /// The share of seeds in which the schemes of each group are below those of the next one.
    /// `slack` gives, for each step, the factor that the next one is multiplied with before.
    Order {
        experiment: &'static str,
        load: f64,
        statistic: Statistic,
        #[serde(deserialize_with = "lists")]
        groups: &'static [&'static [&'static str]],
        #[serde(default, deserialize_with = "list")]
        slack: &'static [f64],
    },
    /// The share of the published cells (scheme × load × mean and p99) that ours are within this
    /// factor of.
    Cells { experiment: &'static str, factor: f64 },
    /// The largest difference over all loads between two schemes' means over seeds.
    Furthest {
        experiment: &'static str,
        statistic: Statistic,
        of: &'static str,
        than: &'static str,
    },
}

/// A measured number and how it came about, or why there is none.
pub type Measured = Result<(f64, String), String>;

impl Measure {
    /// The experiment that it is of.
    pub fn experiment(&self) -> &'static str {
        match *self {
            Measure::Change { experiment, .. }
            | Measure::Paired { experiment, .. }
            | Measure::Best { experiment, .. }
            | Measure::BestOf { experiment, .. }
            | Measure::Part { experiment, .. }
            | Measure::Plain { experiment, .. }
            | Measure::Median { experiment, .. }
            | Measure::Ratio { experiment, .. }
            | Measure::Growth { experiment, .. }
            | Measure::Beyond { experiment, .. }
            | Measure::Order { experiment, .. }
            | Measure::Cells { experiment, .. }
            | Measure::Furthest { experiment, .. } => experiment,
        }
    }

    /// The schemes that it is of, and the load where it is of one.
    pub fn needs(&self) -> (Vec<&'static str>, Option<f64>) {
        match *self {
            Measure::Change { of, than, load, .. }
            | Measure::Paired { of, than, load, .. }
            | Measure::Beyond { of, than, load, .. } => (vec![of, than], Some(load)),
            Measure::Part { of, load, .. }
            | Measure::Plain { of, load, .. }
            | Measure::Median { of, load, .. }
            | Measure::Ratio { of, load, .. } => (vec![of], Some(load)),
            Measure::Order { groups, load, .. } => {
                (groups.iter().copied().flatten().copied().collect(), Some(load))
            }
            Measure::Cells { .. } => (Vec::new(), None),
            Measure::Growth { of, .. } => (vec![of], None),
            Measure::Best { of, than, .. } | Measure::Furthest { of, than, .. } => {
                (vec![of, than], None)
            }
            Measure::BestOf { pairs, .. } => {
                (pairs.iter().flat_map(|&(of, than)| [of, than]).collect(), None)
            }
        }
    }

    /// The schemes whose mechanism it is about: not those that they are compared with.
    pub fn subjects(&self, experiment: &Experiment) -> Vec<&'static str> {
        match *self {
            Measure::Change { of, .. }
            | Measure::Paired { of, .. }
            | Measure::Best { of, .. }
            | Measure::Part { of, .. }
            | Measure::Plain { of, .. }
            | Measure::Median { of, .. }
            | Measure::Ratio { of, .. }
            | Measure::Growth { of, .. }
            | Measure::Beyond { of, .. }
            | Measure::Furthest { of, .. } => vec![of],
            Measure::BestOf { pairs, .. } => pairs.iter().map(|(of, _)| *of).collect(),
            Measure::Order { groups, .. } => groups.iter().copied().flatten().copied().collect(),
            Measure::Cells { .. } => {
                experiment.published.iter().map(|curve| curve.variant).collect()
            }
        }
    }

    /// Points of a sweep of which it takes the best, without those that are left out; `None` where
    /// it is of one point.
    pub fn points(&self, found: &Found) -> Option<u32> {
        let counted = |statistic: Statistic, of: &str, than: &str| {
            let loads = found.arms.iter().filter(|arm| arm.variant == of).map(|arm| arm.load);
            loads.filter(|load| is_thin(found, statistic, *load, of, than) == Ok(false)).count()
                as u32
        };
        match *self {
            Measure::Best { statistic, of, than, .. } => Some(counted(statistic, of, than)),
            Measure::BestOf { statistic, pairs, .. } => {
                Some(pairs.iter().map(|(of, than)| counted(statistic, of, than)).sum())
            }
            _ => None,
        }
    }

    /// The cases of a share of cases, and how many `found` has.
    pub fn counted(&self, experiment: &Experiment, found: &Found) -> Option<Counted> {
        let (unit, of) = match *self {
            Measure::Order { load, groups, .. } => {
                ("seeds", runs(found, groups[0][0], load).ok().map(|runs| runs.len()))
            }
            Measure::Cells { factor, .. } => {
                ("cells", Cells::of(experiment, found, factor).ok().map(|cells| cells.all))
            }
            _ => return None,
        };
        Some(Counted { unit: unit.to_string(), of: of.map(|of| of as u32) })
    }

    /// The least share of flows or queries that completed, among the schemes and loads that decide
    /// it; `None` where so many did that the others hardly move it, or where it is of neither.
    pub fn completed(&self, experiment: &Experiment, found: &Found) -> Option<f64> {
        let (variants, loads) = self.deciding(found);
        let is_deciding = |arm: &&Arm| match self {
            Measure::Cells { .. } => {
                let curves = experiment.published.iter();
                let mut of_arm = curves.filter(|curve| curve.variant == arm.variant);
                of_arm.any(|curve| curve.loads.contains(&arm.load))
            }
            _ => {
                (variants.is_empty() || variants.contains(&arm.variant.as_str()))
                    && (loads.is_empty() || loads.contains(&arm.load))
            }
        };
        let statistics = self.statistics();
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

    /// The schemes and the loads that decide it; empty: all.
    fn deciding(&self, found: &Found) -> (Vec<&'static str>, Vec<f64>) {
        let (variants, load) = self.needs();
        match *self {
            Measure::Best { statistic, of, than, .. } => {
                let best = lowest(found, statistic, of, than);
                (variants, best.map_or_else(|_| Vec::new(), |(_, load, _)| vec![load]))
            }
            Measure::BestOf { statistic, pairs, .. } => match best_pair(found, statistic, pairs) {
                Ok((_, load, (of, than), _)) => (vec![of, than], vec![load]),
                Err(_) => (variants, Vec::new()),
            },
            Measure::Growth { from, to, .. } => (variants, vec![from, to]),
            _ => (variants, load.into_iter().collect()),
        }
    }

    /// The numbers of runs that it is of.
    fn statistics(&self) -> Vec<Statistic> {
        match *self {
            Measure::Change { statistic, .. }
            | Measure::Paired { statistic, .. }
            | Measure::Best { statistic, .. }
            | Measure::BestOf { statistic, .. }
            | Measure::Part { statistic, .. }
            | Measure::Plain { statistic, .. }
            | Measure::Median { statistic, .. }
            | Measure::Growth { statistic, .. }
            | Measure::Beyond { statistic, .. }
            | Measure::Order { statistic, .. }
            | Measure::Furthest { statistic, .. } => vec![statistic],
            Measure::Ratio { statistic, over, .. } => vec![statistic, over],
            Measure::Cells { .. } => vec![Statistic::Mean, Statistic::P99],
        }
    }

    /// Whether it compares a scheme with itself if the second of a pair stands in the place of the
    /// first: then it is exactly 0.
    pub fn compares_itself(&self, pairs: &[(&str, &str)]) -> bool {
        let stands_for =
            |of: &str, than: &str| pairs.iter().any(|(on, off)| *on == of && *off == than);
        match *self {
            Measure::Change { of, than, .. }
            | Measure::Paired { of, than, .. }
            | Measure::Best { of, than, .. }
            | Measure::Beyond { of, than, .. }
            | Measure::Furthest { of, than, .. } => stands_for(of, than),
            Measure::BestOf { pairs, .. } => pairs.iter().all(|(of, than)| stands_for(of, than)),
            _ => false,
        }
    }

    /// Whether it is an order of schemes.
    pub fn is_order(&self) -> bool {
        matches!(self, Measure::Order { .. })
    }

    /// The unit of its number.
    pub fn unit(&self) -> &'static str {
        match self {
            Measure::Beyond { .. } => "us",
            Measure::Plain { statistic, .. } => statistic.unit(),
            _ => "percent",
        }
    }

    /// The statistic, scheme and load of a measure that is a part of a given number, and that
    /// number.
    pub fn of_whole(&self) -> Option<(Statistic, &'static str, f64, f64)> {
        match *self {
            Measure::Part { load, statistic, of, whole, .. }
            | Measure::Median { load, statistic, of, whole, .. } => {
                Some((statistic, of, load, whole))
            }
            _ => None,
        }
    }

    /// The numbers behind a relative one: ours, and what it is set against. `paper` is the
    /// published one, in percent.
    pub fn absolute(&self, found: &Found, paper: Option<f64>) -> Option<Absolute> {
        let with = |statistic: Statistic, measured: f64, against: Option<f64>| {
            let unit = statistic.unit().to_string();
            Some(Absolute { unit, paper: None, measured, against })
        };
        let means = |statistic: Statistic, load: f64, of: &str, than: &str| {
            let mean = |variant| mean_of(statistic, runs(found, variant, load).ok()?, variant).ok();
            with(statistic, mean(of)?, Some(mean(than)?))
        };
        let middle = |statistic: Statistic, load: f64, of: &str| {
            let values = each(statistic, runs(found, of, load).ok()?, of).ok()?;
            Some(median(values.into_iter().map(|(_, value)| value).collect()))
        };
        let of_whole = |statistic: Statistic, measured: f64, whole: f64| {
            Some(Absolute {
                paper: paper.map(|percent| percent / 100.0 * whole),
                ..with(statistic, measured, None)?
            })
        };
        match *self {
            Measure::Change { load, statistic, of, than, .. }
            | Measure::Beyond { load, statistic, of, than, .. } => means(statistic, load, of, than),
            Measure::Best { statistic, of, than, .. } => {
                let (_, load, _) = lowest(found, statistic, of, than).ok()?;
                means(statistic, load, of, than)
            }
            Measure::BestOf { statistic, pairs, .. } => {
                let (_, load, (of, than), _) = best_pair(found, statistic, pairs).ok()?;
                means(statistic, load, of, than)
            }
            Measure::Paired { load, statistic, of, than, .. } => {
                with(statistic, middle(statistic, load, of)?, Some(middle(statistic, load, than)?))
            }
            Measure::Part { load, statistic, of, whole, .. } => of_whole(
                statistic,
                mean_of(statistic, runs(found, of, load).ok()?, of).ok()?,
                whole,
            ),
            Measure::Median { load, statistic, of, whole, .. } => {
                of_whole(statistic, middle(statistic, load, of)?, whole)
            }
            Measure::Ratio { load, statistic, over, of, .. } => {
                let mean = |statistic| mean_of(statistic, runs(found, of, load).ok()?, of).ok();
                with(statistic, mean(statistic)?, Some(mean(over)?))
            }
            Measure::Growth { statistic, of, from, to, .. } => {
                let mean = |load| mean_of(statistic, runs(found, of, load).ok()?, of).ok();
                with(statistic, mean(to)?, Some(mean(from)?))
            }
            Measure::Plain { .. }
            | Measure::Order { .. }
            | Measure::Cells { .. }
            | Measure::Furthest { .. } => None,
        }
    }

    /// Returns the measured number in [`Measure::unit`], and its derivation in words.
    ///
    /// # Errors
    /// The reason why the runs give no number: a run or a load is missing, a statistic has no
    /// value, or the number that others are compared to is zero.
    pub fn of(&self, experiment: &Experiment, found: &Found) -> Measured {
        match *self {
            Measure::Change { load, statistic, of, than, .. } => {
                change(found, load, statistic, of, than)
            }
            Measure::Paired { load, statistic, of, than, .. } => {
                paired(found, load, statistic, of, than)
            }
            Measure::Best { statistic, beside, of, than, .. } => {
                best(found, statistic, beside, of, than)
            }
            Measure::BestOf { statistic, pairs, .. } => best_of(found, statistic, pairs),
            Measure::Part { load, statistic, of, whole, .. } => {
                part(found, load, statistic, of, whole)
            }
            Measure::Plain { load, statistic, of, .. } => plain(found, load, statistic, of),
            Measure::Median { load, statistic, of, whole, .. } => {
                median_part(found, load, statistic, of, whole)
            }
            Measure::Ratio { load, statistic, over, of, .. } => {
                ratio(found, load, statistic, over, of)
            }
            Measure::Growth { statistic, of, from, to, .. } => {
                growth(found, statistic, of, from, to)
            }
            Measure::Beyond { load, statistic, of, than, .. } => {
                beyond(found, load, statistic, of, than)
            }
            Measure::Order { load, statistic, groups, slack, .. } => {
                order(found, load, statistic, groups, slack)
            }
            Measure::Cells { factor, .. } => cells(experiment, found, factor),
            Measure::Furthest { statistic, of, than, .. } => furthest(found, statistic, of, than),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::baseline::Baselines;
    use crate::experiment::{Published, Runs};
    use crate::found::{Arm, Run};
    use crate::paper::Paper;
    use millpond_results::Status;
    use millpond_results::{Fct, Keep, Ordered, Summary, World};
    use std::sync::Arc;

    const CURVE: [Published; 2] = [
        Published {
            variant: "a",
            source: "x",
            loads: &[50.0, 90.0],
            mean_s: &[1.0, 2.0],
            p99_s: &[3.0, 4.0],
        },
        Published { variant: "b", source: "x", loads: &[90.0], mean_s: &[4.0], p99_s: &[8.0] },
    ];
    pub const EXPERIMENT: Experiment = Experiment {
        name: "x",
        title: "",
        scenario: "x.toml",
        text: "",
        schemes: &[("a", "A"), ("b", "B")],
        load_axis: "load",
        load_key: Some("k"),
        full: Runs { loads: &[(50.0, "1"), (90.0, "2")], seeds: (1, 2), set: &[], note: "" },
        quick: Err("too short"),
        world: World::Sim,
        keep: Keep::Queries,
        shows: &[],
        published: &CURVE,
    };

    pub const PAPER: Paper = Paper {
        year: 2026,
        name: "p",
        title: "P",
        experiments: &[EXPERIMENT],
        claims: &[],
        baselines: Baselines { off: &[("a", "b")], of: &[], none: &[] },
    };

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
        Found { name: "x", left_out: None, arms }
    }

    fn measured(measure: Measure, found: &Found) -> Result<f64, String> {
        measure.of(&EXPERIMENT, found).map(|(measured, _)| (measured * 1e6).round() / 1e6)
    }

    pub const fn less(statistic: Statistic) -> Measure {
        Measure::Change { experiment: "x", load: 90.0, statistic, of: "a", than: "b" }
    }

    const fn sorted(groups: &'static [&'static [&'static str]], slack: &'static [f64]) -> Measure {
        Measure::Order { experiment: "x", load: 90.0, statistic: Statistic::Mean, groups, slack }
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
        assert_eq!(measured(sorted(&[&["a"], &["b"]], &[]), &all()), Ok(50.0));
        assert_eq!(measured(sorted(&[&["a"], &["b"]], &[1.1]), &all()), Ok(100.0));
        let (_, how) = sorted(&[&["a"], &["b"]], &[]).of(&EXPERIMENT, &all()).unwrap();
        assert_eq!(how, "in 1 of 2 seeds; broken: a < b");
        let mut found = all();
        found.arms.push(arm("c", 90.0, &[(9.0, 0.0), (9.0, 0.0)]));
        assert_eq!(measured(sorted(&[&["a"], &["b", "c"]], &[]), &found), Ok(50.0));
        assert_eq!(measured(sorted(&[&["a", "b"], &["c"]], &[]), &found), Ok(100.0));
        found.arms[2].runs.pop();
        assert!(measured(sorted(&[&["a"], &["b", "c"]], &[]), &found).is_err());
    }

    #[test]
    fn cells_are_within_a_factor_on_either_side() {
        // Of a: 1 and 3 s published at 50 %, 2 and 4 at 90 %; of b: 4 and 8 at 90 %.
        let mut found = found(vec![
            arm("a", 50.0, &[(1.4, 1.9)]),
            arm("a", 90.0, &[(2.0, 4.0)]),
            arm("b", 90.0, &[(3.0, 8.0)]),
        ]);
        let cells = || Measure::Cells { experiment: "x", factor: 1.5 };
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
        let furthest =
            Measure::Furthest { experiment: "x", statistic: Statistic::Mean, of: "a", than: "b" };
        assert_eq!(measured(furthest, &found), Ok(25.0));
    }

    #[test]
    fn medians_pairs_best_points_and_ratios() {
        let three = |a: [f64; 3], b: [f64; 3]| {
            let of = |values: [f64; 3]| values.map(|v| (v, v * 2.0));
            found(vec![arm("a", 90.0, &of(a)), arm("b", 90.0, &of(b))])
        };
        let all = three([1.0, 3.0, 1.0], [2.0, 2.0, 4.0]);
        let (load, statistic) = (90.0, Statistic::Mean);
        let pair = || Measure::Paired { experiment: "x", load, statistic, of: "a", than: "b" };
        // By seed −50, +50 and −75 %: the mean of the means would say −38.
        assert_eq!(measured(pair(), &all), Ok(-50.0));
        let (_, how) = pair().of(&EXPERIMENT, &all).unwrap();
        assert_eq!(how, "median of 3 seeds: -75.0 to 50.0 %");
        let median = |whole| Measure::Median { experiment: "x", load, statistic, of: "a", whole };
        assert_eq!(measured(median(2e6), &all), Ok(50.0));
        let two = found(vec![arm("a", 90.0, &[(1.0, 1.0), (2.0, 1.0)])]);
        assert_eq!(measured(median(1e6), &two), Ok(150.0), "between the two in the middle");
        let ratio = Measure::Ratio {
            experiment: "x",
            load,
            statistic: Statistic::P99,
            over: Statistic::Mean,
            of: "a",
        };
        assert_eq!(measured(ratio, &all), Ok(200.0));
        let plain = || Measure::Plain { experiment: "x", load, statistic: Statistic::P99, of: "a" };
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
        let beside = Statistic::P99;
        let best = Measure::Best { experiment: "x", statistic, beside, of: "a", than: "b" };
        let (value, how) = best.of(&EXPERIMENT, &loads).unwrap();
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
        let (experiment, load) = ("x", 90.0);
        let statistic = Statistic::Flows("all", crate::statistic::Of::P999);
        let pair = |seeds| found(vec![flows("a", 90.0, 2.0, seeds), flows("b", 90.0, 4.0, seeds)]);
        let change = || Measure::Change { experiment, load, statistic, of: "a", than: "b" };
        let why = measured(change(), &pair(3)).unwrap_err();
        assert_eq!(
            why,
            "with a 9.0 samples of 3 seeds exceed the percentile, of the ten that it takes"
        );
        assert_eq!(measured(change(), &pair(4)), Ok(-50.0));
        let order = || Measure::Order {
            experiment,
            load,
            statistic,
            groups: &[&["a"], &["b"]],
            slack: &[],
        };
        assert!(measured(order(), &pair(3)).is_err());
        assert_eq!(measured(order(), &pair(4)), Ok(100.0));
        let paired = || Measure::Paired { experiment, load, statistic, of: "a", than: "b" };
        assert!(measured(paired(), &pair(3)).is_err());
        let best = || Measure::BestOf { experiment, statistic, pairs: &[("a", "b")] };
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
        let statistic = Statistic::Flows("all", crate::statistic::Of::P50);
        let all = found(vec![
            flows("a", 90.0, 1.0, 10),
            flows("b", 90.0, 4.0, 0),
            flows("a", 50.0, 3.0, 90),
            flows("b", 50.0, 4.0, 0),
        ]);
        let experiment = "x";
        assert_eq!(less(statistic).completed(&EXPERIMENT, &all), Some(0.9));
        let best = Measure::BestOf { experiment, statistic, pairs: &[("a", "b")] };
        assert_eq!(best.completed(&EXPERIMENT, &all), Some(0.9), "the best point is at 90");
        let growth = Measure::Growth { experiment, statistic, of: "a", from: 50.0, to: 90.0 };
        assert_eq!(growth.completed(&EXPERIMENT, &all), Some(0.5));
        let plain = |statistic| Measure::Plain { experiment, load: 90.0, statistic, of: "b" };
        assert_eq!(plain(statistic).completed(&EXPERIMENT, &all), None, "all flows of b completed");
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
        let cells = Measure::Cells { experiment: "x", factor: 1.5 };
        assert_eq!(cells.completed(&EXPERIMENT, &all), Some(0.8));
    }

    #[test]
    fn growth_is_of_one_load_to_another() {
        let found = found(vec![
            arm("a", 50.0, &[(1.0, 3.0), (3.0, 3.0)]),
            arm("a", 90.0, &[(5.0, 3.0), (3.0, 3.0)]),
        ]);
        let growth = |from, to| Measure::Growth {
            experiment: "x",
            statistic: Statistic::Mean,
            of: "a",
            from,
            to,
        };
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
        let (experiment, statistic) = ("x", Statistic::Mean);
        let pairs = &[("a", "b"), ("b", "a")];
        let best = || Measure::BestOf { experiment, statistic, pairs };
        assert_eq!(measured(best(), &all(0.5, 1.25)), Ok(-50.0));
        let (_, how) = best().of(&EXPERIMENT, &all(2.0, 4.0)).unwrap();
        assert_eq!(
            how,
            "b at 90; a against b: +100 % at 50, +300 % at 90; b against a: -50 % at 50, -75 % at \
             90"
        );
        let absolute = best().absolute(&all(2.0, 4.0), None).unwrap();
        assert_eq!((absolute.measured, absolute.against), (1e6, Some(4e6)));
        assert_eq!(best().needs(), (vec!["a", "b", "b", "a"], None));
        let missing = found(vec![arm("a", 50.0, &[(1.0, 1.0)]), arm("b", 50.0, &[])]);
        assert!(measured(best(), &missing).is_err(), "a pair that was not run decides nothing");
    }

    #[test]
    fn relative_numbers_know_what_they_stand_for() {
        let (load, statistic) = (90.0, Statistic::Mean);
        let all = found(vec![
            arm("a", 90.0, &[(1.0, 2.0), (3.0, 6.0), (1.0, 2.0)]),
            arm("b", 90.0, &[(2.0, 1.0), (2.0, 1.0), (5.0, 1.0)]),
        ]);
        let of = |measure: Measure| {
            let absolute = measure.absolute(&all, Some(100.0)).unwrap();
            assert_eq!(absolute.unit, "us");
            (absolute.paper, absolute.measured.round(), absolute.against)
        };
        let (name, whole) = ("x", 12_400.0);
        let (ours, theirs) = ("a", "b");
        assert_eq!(
            of(Measure::Median { experiment: name, load, statistic, of: ours, whole }),
            (Some(12_400.0), 1e6, None)
        );
        assert_eq!(
            of(Measure::Part { experiment: name, load, statistic, of: theirs, whole }).1,
            3e6
        );
        assert_eq!(of(less(statistic)), (None, 1_666_667.0, Some(3e6)));
        let pair = Measure::Paired { experiment: name, load, statistic, of: ours, than: theirs };
        assert_eq!(of(pair), (None, 1e6, Some(2e6)));
        let best = Measure::Best {
            experiment: name,
            statistic,
            beside: Statistic::P99,
            of: ours,
            than: theirs,
        };
        assert_eq!(of(best), (None, 1_666_667.0, Some(3e6)));
        let ratio = Measure::Ratio {
            experiment: name,
            load,
            statistic: Statistic::P99,
            over: statistic,
            of: theirs,
        };
        assert_eq!(of(ratio), (None, 1e6, Some(3e6)));
        assert!(sorted(&[&["a"], &["b"]], &[]).absolute(&all, None).is_none());
        let missing = found(vec![arm("a", 90.0, &[])]);
        assert!(
            less(statistic).absolute(&missing, None).is_none(),
            "what was not run stands for nothing"
        );
    }
}
