//! An experiment as tables and pages show it.

use crate::claim::Claim;
use crate::experiment::{Experiment, Published};
use crate::found::{Arm, Found, Run};
use millpond_results::{
    Experiment as Shown, LoadPoint, Published as ShownCurve, PublishedNumber, Scheme, Summary,
};

impl Experiment {
    /// For the table and the page; `claims` are the paper's.
    pub fn shown(&self, claims: &[Claim], found: &Found, note: &str) -> Shown {
        let scheme = |&(variant, label): &(&str, &str)| Scheme {
            variant: variant.to_string(),
            label: label.to_string(),
            points: found
                .arms
                .iter()
                .filter(|arm| arm.variant == variant)
                .map(|arm| self.point(arm))
                .collect(),
        };
        let us = |seconds: &[f64]| seconds.iter().map(|s| s * 1e6).collect();
        let curve = |p: &Published| ShownCurve {
            variant: p.variant.to_string(),
            source: p.source.to_string(),
            loads: p.loads.to_vec(),
            mean_us: us(p.mean_s),
            p99_us: us(p.p99_s),
        };
        Shown {
            name: self.name.to_string(),
            title: self.title.to_string(),
            scenario: self.scenario.to_string(),
            load_axis: self.load_axis.to_string(),
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
        let (statistic, variant, load, whole) =
            claim.measure.of_whole().filter(|_| claim.experiment() == self.name)?;
        let own = self
            .shows
            .iter()
            .find(|(_, shown)| *shown == statistic)
            .map(|(name, _)| name.to_string());
        Some(PublishedNumber {
            variant: variant.to_string(),
            load,
            number: own.or_else(|| statistic.of_calls().filter(|_| self.shows.is_empty()))?,
            value: claim.paper.number()? / 100.0 * whole,
            source: claim.source.to_string(),
        })
    }

    /// A scheme at a load.
    fn point(&self, arm: &Arm) -> LoadPoint {
        let runs: Vec<(&Summary, Option<&[f64]>)> =
            arm.runs.iter().map(|run| (&*run.summary, run.queries.as_deref())).collect();
        let mut point = LoadPoint::of(arm.load, arm.planned.len() as u32, &runs);
        for (name, statistic) in self.shows {
            if let Some(path) = statistic.path() {
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
