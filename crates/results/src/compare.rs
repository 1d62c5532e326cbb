//! Ending a compare: what is made of its runs.

use crate::model::summary::{Summary, World};
use crate::model::{
    COMPARE, Kind, Manifest, REPORT, Result, VariantResult, replace_file, run_folder, write_json,
};
use crate::pool::pool_compare;
use crate::render::html;
use crate::statistics::bins::share;
use crate::statistics::compare::{compare, grouped_warnings, show, worst};
use millpond_core::registry::Reason;
use std::path::PathBuf;

use crate::folder::Folder;

/// A variant of a compare whose runs are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariantRuns {
    pub name: String,
    /// Its description in the scenario; empty without one.
    pub about: String,
    pub seeds: Vec<u64>,
    /// Its mechanisms, each with the event that it answers.
    pub answers: Vec<(String, Reason)>,
}

/// Adds to each variant a sentence for each mechanism that it has and the first variant lacks, or
/// the other way round, where the run without it has nothing that the mechanism answers.
fn note_idle(results: &mut [VariantResult], variants: &[VariantRuns]) {
    let Some((first, others)) = results.split_first_mut() else { return };
    for (result, own) in others.iter_mut().zip(&variants[1..]) {
        let notes = [idle(own, &variants[0], first), idle(&variants[0], own, result)].concat();
        result.warnings.extend(notes);
    }
}

fn idle(with: &VariantRuns, without: &VariantRuns, result: &VariantResult) -> Vec<String> {
    let is_zero = |path: &&[&str]| {
        result.statistics.leaf(path).is_some_and(|estimate| estimate.mean == Some(0.0))
    };
    let is_idle = |(_, reason): &&(String, Reason)| {
        without.answers.iter().all(|(_, other)| other != reason)
            && reason.counters().iter().all(is_zero)
    };
    let sentence = |(mechanism, reason): &(String, Reason)| {
        let (events, verb) = (reason.events(), reason.verb());
        format!("no {events} in {}: {mechanism} has nothing to {verb}", without.name)
    };
    with.answers.iter().filter(is_idle).map(sentence).collect()
}

/// Ends a compare whose runs are written: reads their summaries from their [`run_folder`]s, writes
/// `compare.json`, the pooled `flows.parquet` and `queries.parquet`, `report.html` and, last,
/// `manifest.json`, in which the caller has set name, world and seed, and of what there is not the
/// status and warnings.
///
/// `several_seeds` is that of the [`run_folder`]s.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) or [`Error::Malformed`](crate::Error::Malformed) if a run's
/// files cannot be read or the results cannot be written, and
/// [`Error::NothingToCompare`](crate::Error::NothingToCompare) if there is no variant, a variant
/// has no seeds, or a name is there twice.
pub fn finish_compare(
    folder: &Folder,
    variants: &[VariantRuns],
    several_seeds: bool,
    manifest: Manifest,
) -> Result<Vec<VariantResult>> {
    let root = folder.path();
    let (mut with_summaries, mut runs) = (Vec::new(), Vec::new());
    for VariantRuns { name, seeds, .. } in variants {
        let run = |&seed: &u64| (name.clone(), seed, run_folder(root, name, seed, several_seeds));
        let own: Vec<_> = seeds.iter().map(run).collect();
        let summaries: Result<Vec<Summary>> =
            own.iter().map(|(_, _, folder)| Summary::read(folder)).collect();
        with_summaries.push((name.clone(), summaries?));
        runs.extend(own);
    }
    let folders: Vec<PathBuf> = runs.iter().map(|(_, _, folder)| folder.clone()).collect();
    let mut summaries: Vec<&mut Summary> =
        with_summaries.iter_mut().flat_map(|(_, own)| own).collect();
    share(&folders, &mut summaries, root)?;
    let mut results = compare(&with_summaries)?;
    show(&mut results, &manifest.shows);
    for (result, own) in results.iter_mut().zip(variants) {
        result.about.clone_from(&own.about);
    }
    // Kernels count other events than the simulator does.
    if with_summaries.iter().flat_map(|(_, own)| own).all(|of| of.world == World::Sim) {
        note_idle(&mut results, variants);
    }
    write_json(&root.join(COMPARE), &results)?;
    let summaries: Vec<&Summary> = with_summaries.iter().flat_map(|(_, own)| own).collect();
    pool_compare(root, &runs, &summaries)?;
    let manifest = Manifest {
        kind: if manifest.kind == Kind::Run { Kind::Compare } else { manifest.kind },
        status: worst(results.iter().map(|result| result.status).chain([manifest.status])),
        warnings: manifest.warnings.iter().cloned().chain(grouped_warnings(&results)).collect(),
        ..manifest
    };
    replace_file(root, REPORT, html::compare_page(root, &results, &manifest)?.as_bytes())?;
    manifest.write(root)?;
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(timeouts: u64) -> VariantResult {
        let summary = Summary { timeouts, ..Summary::default() };
        compare(&[("a".into(), vec![summary])]).unwrap().remove(0)
    }

    #[test]
    fn a_mechanism_is_noted_whose_event_never_happens_in_the_run_without_it() {
        let runs = |name: &str, kind: Option<&str>| VariantRuns {
            name: name.into(),
            answers: kind.map(|kind| (kind.to_string(), Reason::Timeouts)).into_iter().collect(),
            ..VariantRuns::default()
        };
        let notes = |timeouts: [u64; 2], kinds: [Option<&str>; 2]| {
            let mut results = timeouts.map(result);
            let variants = [runs("plain", kinds[0]), runs("other", kinds[1])];
            note_idle(&mut results, &variants);
            assert!(results[0].warnings.is_empty());
            results[1].warnings.clone()
        };
        let told = "no timeouts in plain: tlt has nothing to prevent";
        assert_eq!(notes([0, 5], [None, Some("tlt")]), [told]);
        assert!(notes([1, 0], [None, Some("tlt")]).is_empty());
        assert!(notes([0, 0], [Some("tlt"), Some("tlt")]).is_empty(), "both have it");
        let told = "no timeouts in other: tlt has nothing to prevent";
        assert_eq!(notes([5, 0], [Some("tlt"), None]), [told]);
    }
}
