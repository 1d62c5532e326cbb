//! An experiment as tables and pages show it.

use crate::claim::Claim;
use crate::experiment::{Experiment, Published};
use crate::found::{Arm, Found};
use crate::measure::Measure;
use crate::statistic::Run;
use millpond_results::{
    Experiment as Shown, LoadPoint, Published as ShownCurve, PublishedNumber, Scheme, Summary,
};

impl Experiment {
    /// For the table and the page; `claims` are the paper's.
    pub fn shown(&self, claims: &[Claim], found: &Found, note: &str) -> Shown {
        let scheme = |(variant, label): &(String, String)| Scheme {
            variant: variant.clone(),
            label: label.clone(),
            points: found
                .arms
                .iter()
                .filter(|arm| arm.variant == *variant)
                .map(|arm| self.point(arm))
                .collect(),
        };
        let us = |seconds: &[f64]| seconds.iter().map(|s| s * 1e6).collect();
        let curve = |p: &Published| ShownCurve {
            variant: p.variant.clone(),
            source: p.source.clone(),
            loads: p.loads.clone(),
            mean_us: us(&p.mean_s),
            p99_us: us(&p.p99_s),
        };
        Shown {
            name: self.name.clone(),
            title: self.title.clone(),
            scenario: self.scenario.clone(),
            load_axis: self.load_axis.clone(),
            note: note.to_string(),
            schemes: self.schemes.iter().map(scheme).collect(),
            published: self.published.iter().map(curve).collect(),
            published_numbers: claims
                .iter()
                .filter_map(|claim| self.published_number(claim))
                .collect(),
            failures: Vec::new(),
        }
    }

    /// The number that a claim of this experiment gives, if the experiment shows it.
    fn published_number(&self, claim: &Claim) -> Option<PublishedNumber> {
        let Measure { statistic, of, load, whole, .. } = &claim.measure;
        let is_own = claim.experiment() == self.name;
        let whole = whole.filter(|_| is_own)?;
        let own = self.shows.iter().find(|(_, shown)| shown == statistic);
        let of_calls = || statistic.of_calls().filter(|_| self.shows.is_empty());
        Some(PublishedNumber {
            variant: of.clone(),
            load: (*load)?,
            number: own.map(|(name, _)| name.clone()).or_else(of_calls)?,
            value: claim.paper? / 100.0 * whole,
            source: claim.source.clone(),
        })
    }

    fn point(&self, arm: &Arm) -> LoadPoint {
        let is_recorded = arm.runs.iter().any(|run| run.numbers.is_some());
        let kept = arm.runs.iter().filter(|run| run.numbers.is_none());
        let runs: Vec<(&Summary, Option<&[f64]>)> =
            kept.map(|run| (&*run.summary, run.queries.as_deref())).collect();
        let mut point = LoadPoint::of(arm.load, arm.planned.len() as u32, &runs);
        point.runs = arm.runs.len() as u32;
        for (name, statistic) in &self.shows {
            if let Some(path) = statistic.path().filter(|_| !is_recorded) {
                let summaries = arm.runs.iter().map(|run| &*run.summary);
                point.add_shown(name, statistic.unit(), &path, summaries);
                continue;
            }
            let value = |run: &Run| Some((run.seed, statistic.of_run(run)?));
            let values: Vec<(u64, f64)> = arm.runs.iter().filter_map(value).collect();
            point.add(name, statistic.unit(), &values);
        }
        point
    }
}
