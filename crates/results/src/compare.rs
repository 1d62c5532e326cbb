//! Ending a compare: what is made of its runs.

use crate::model::summary::Summary;
use crate::model::{
    COMPARE, Kind, Manifest, REPORT, Result, VariantResult, replace_file, run_folder, write_json,
};
use crate::pool::pool_compare;
use crate::render::html;
use crate::statistics::bins::share;
use crate::statistics::compare::{compare, grouped_warnings, show, worst};
use std::path::PathBuf;

use crate::folder::Folder;

/// Ends a compare whose runs are written: reads their summaries from their [`run_folder`]s, writes
/// `compare.json`, the pooled `flows.parquet` and `queries.parquet`, `report.html` and, last,
/// `manifest.json`, in which the caller has set name, world and seed, and of what there is not the
/// status and warnings.
///
/// `several_seeds` is that of the [`run_folder`]s; each variant is given with the seeds that it
/// has.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) or [`Error::Malformed`](crate::Error::Malformed) if a run's
/// files cannot be read or the results cannot be written, and
/// [`Error::NothingToCompare`](crate::Error::NothingToCompare) if there is no variant, a variant
/// has no seeds, or a name is there twice.
pub fn finish_compare(
    folder: &Folder,
    variants: &[(String, Vec<u64>)],
    several_seeds: bool,
    manifest: Manifest,
) -> Result<Vec<VariantResult>> {
    let root = folder.path();
    let (mut with_summaries, mut runs) = (Vec::new(), Vec::new());
    for (name, seeds) in variants {
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
