//! `report.html`: one page that needs nothing but itself. A run's page is that of a compare of one.
//!
//! Invariant: the bytes depend on results that are identical from run to run: no wall-clock time,
//! date or machine. The page reads well without its script, which only adds read-outs and hides
//! variants.

mod axis;
mod changes;
mod chart;
mod connections;
mod figures;
mod flows;
mod forest;
pub(crate) mod gallery;
mod gantt;
mod headline;
mod heat;
mod jobs;
mod losses;
mod measures;
mod number;
mod page;
pub(crate) mod plot;
mod programs;
mod queues;
pub(crate) mod reproduction;
mod reproduction_charts;
mod series;
pub(crate) mod sweep;
mod sweep_tables;
mod ticks;
mod timeline;
mod unit;
mod verdict;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Deserialize;

use crate::model::summary::Summary;
use crate::model::{
    At, Estimate, Kind, LinkFailure, Manifest, Ordered, Result, Status, Tree, VariantResult, World,
};
use crate::statistics::bins;
use crate::statistics::by_size::Edge;
use crate::statistics::compare::compare;
use crate::statistics::numbers::{Json, numbers};
use crate::statistics::shows::{self, Column};
use flows::Times;
pub(crate) use page::escape;

/// The data of the page on one variant.
struct Variant {
    result: VariantResult,
    /// The folders of its runs, in the order of its seeds.
    runs: Vec<PathBuf>,
    times: Times,
    /// Drops by place, all reasons together: means over the runs that tell.
    places: Vec<(String, f64)>,
    /// The numbers of each of its runs, with the seed.
    seeds: Vec<(u64, Json)>,
    /// The links that fail in its runs.
    failures: Vec<LinkFailure>,
    programs: Vec<programs::Ran>,
}

impl Variant {
    fn number(&self, path: &[&str]) -> Option<f64> {
        self.result.statistics.leaf(path)?.mean
    }

    fn share_of_queries(&self) -> Option<f64> {
        self.number(&["qct_us", "completed_fraction"])
    }

    /// Of its runs' folders, with the runs' summaries in their order.
    fn read(
        result: VariantResult,
        runs: Vec<PathBuf>,
        summaries: &[Summary],
        failures: Vec<LinkFailure>,
        edges: Option<&[Edge]>,
        scratch: &Path,
    ) -> Result<Variant> {
        let (times, places) = (Times::read(&runs, edges, scratch)?, places(&runs)?);
        let (seeds, programs) = (numbers(summaries)?, programs::of_runs(&runs, summaries, scratch));
        Ok(Variant { result, times, places, seeds, failures, programs, runs })
    }
}

/// The variant that one run is, whose Parquet files are in `dir`.
fn variants_of_run(dir: &Path, summary: &Summary, manifest: &Manifest) -> Result<Vec<Variant>> {
    let name = summary.variant.clone().unwrap_or_else(|| summary.name.clone());
    let mut variants = Vec::new();
    for mut result in compare(&[(name, vec![summary.clone()])])? {
        let names: Vec<String> = summary.shows.iter().map(|(name, _)| name.to_string()).collect();
        if !names.is_empty() {
            let columns = shows::columns(&names, &[&result.statistics]);
            result.shows = shows::numbers(&columns, &result.statistics, None);
        }
        let (runs, failures) = (vec![dir.to_path_buf()], manifest.failures.clone());
        variants.push(Variant::read(
            result,
            runs,
            std::slice::from_ref(summary),
            failures,
            None,
            dir,
        )?);
    }
    Ok(variants)
}

/// The page of one run whose Parquet files are in `dir`.
pub(crate) fn run_page(dir: &Path, summary: &Summary, manifest: &Manifest) -> Result<String> {
    let variants = variants_of_run(dir, summary, manifest)?;
    let mut facts: Vec<String> =
        summary.variant.iter().map(|v| format!("variant <b>{}</b>", escape(v))).collect();
    facts.push(format!("seed {}", summary.seed));
    facts.extend(run_facts(std::slice::from_ref(summary)));
    let ended = (summary.status != Status::Complete)
        .then(|| format!("This run is {}.", summary.status.name()));
    let warnings: Vec<String> = ended.into_iter().chain(summary.warnings.iter().cloned()).collect();
    page_of("run", &summary.name, &facts, &warnings, &variants, manifest)
}

/// The variants of a compare whose runs are below `dir`, and the summaries of all runs.
fn variants_of_compare(
    dir: &Path,
    results: &[VariantResult],
) -> Result<(Vec<Variant>, Vec<Summary>)> {
    let (mut variants, mut summaries) = (Vec::new(), Vec::new());
    let all: Vec<PathBuf> = results.iter().flat_map(|result| result.folders(dir)).collect();
    let edges = bins::edges(&all, dir)?.filter(|edges| !edges.is_empty());
    for result in results {
        let runs = result.folders(dir);
        let own: Vec<Summary> = runs.iter().map(|run| Summary::read(run)).collect::<Result<_>>()?;
        // A variant's failures are those of any of its seeds.
        let failures =
            runs.first().map_or(Ok(Vec::new()), |run| Ok(Manifest::read(run)?.failures))?;
        variants.push(Variant::read(result.clone(), runs, &own, failures, edges.as_deref(), dir)?);
        summaries.extend(own);
    }
    Ok((variants, summaries))
}

/// The page of a compare whose runs are below `dir`.
pub(crate) fn compare_page(
    dir: &Path,
    results: &[VariantResult],
    manifest: &Manifest,
) -> Result<String> {
    let (variants, summaries) = variants_of_compare(dir, results)?;
    let ended = results.iter().filter(|result| result.status != Status::Complete);
    let ended = ended.map(|result| format!("{}: {}", result.variant, result.status.name()));
    let warnings: Vec<String> = ended.chain(manifest.warnings.iter().cloned()).collect();
    let mut facts = vec![format!("{} variants", results.len())];
    facts.extend(results.first().map(|first| seeds_text(&first.seeds)));
    facts.extend(run_facts(&summaries));
    page_of("compare", &manifest.name, &facts, &warnings, &variants, manifest)
}

/// `seed 1`, `3 seeds: 1 to 3`, `2 seeds: 4, 9`.
fn seeds_text(seeds: &[u64]) -> String {
    match seeds {
        [only] => format!("seed {only}"),
        [first, .., last] if seeds.windows(2).all(|pair| pair[1] == pair[0] + 1) => {
            format!("{} seeds: {first} to {last}", seeds.len())
        }
        _ => {
            let all: Vec<String> = seeds.iter().take(12).map(u64::to_string).collect();
            let more = if seeds.len() > 12 { ", …" } else { "" };
            format!("{} seeds: {}{more}", seeds.len(), all.join(", "))
        }
    }
}

fn world_text(world: World) -> &'static str {
    match world {
        World::Sim => "simulated",
        World::Lab => "the lab: kernel TCP",
        World::Virtual => "Linux kernels in virtual time",
    }
}

/// World, status, audit.
fn run_facts(summaries: &[Summary]) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(first) = summaries.first() {
        facts.push(world_text(first.world).into());
    }
    let mut told = |good: bool, yes: &str, no: &str| {
        let (class, sign, text) = if good { ("good", '✓', yes) } else { ("bad", '✗', no) };
        facts.push(format!("<span class=\"{class}\">{sign} {text}</span>"));
    };
    let complete = summaries.iter().all(|summary| summary.status == Status::Complete);
    told(complete, "complete", "not complete");
    let conserved = summaries.iter().all(|summary| summary.audit.conserved);
    told(conserved, "packets and bytes conserved", "packets or bytes NOT conserved");
    facts
}

fn page_of(
    kind: &str,
    name: &str,
    facts: &[String],
    warnings: &[String],
    variants: &[Variant],
    manifest: &Manifest,
) -> Result<String> {
    let mut text = String::new();
    let warned =
        (!warnings.is_empty()).then(|| format!("<a href=\"#warnings\">{}</a>", counted(warnings)));
    let facts: Vec<String> = facts.iter().cloned().chain(warned).collect();
    page::head(&mut text, name, kind, &facts);
    about(&mut text, variants, manifest);
    let names: Vec<&str> = variants.iter().map(|variant| variant.result.variant.as_str()).collect();
    page::legend(&mut text, &names);
    verdict::verdict(&mut text, variants);
    figures::numbers(&mut text, variants);
    jobs::jobs(&mut text, variants)?;
    figures::distributions(&mut text, variants);
    figures::sizes(&mut text, variants);
    figures::goodput(&mut text, variants)?;
    connections::connections(&mut text, variants)?;
    figures::queues(&mut text, variants)?;
    losses::losses(&mut text, variants);
    programs::programs(&mut text, variants);
    warn(&mut text, warnings);
    page::section(&mut text, "scenario", "Scenario and numbers");
    verdict::classes(&mut text, variants);
    scenario(&mut text, manifest);
    page::end(&mut text);
    page::foot(&mut text);
    Ok(text)
}

fn counted(warnings: &[String]) -> String {
    match warnings.len() {
        1 => "1 warning".to_string(),
        n => format!("{n} warnings"),
    }
}

/// The descriptions of the scenario and of its variants.
fn about(page: &mut String, variants: &[Variant], manifest: &Manifest) {
    for text in [&manifest.about, &manifest.variant_about].into_iter().filter(|t| !t.is_empty()) {
        let _ = writeln!(page, "<p class=\"lead about\">{}</p>", escape(text));
    }
    let described = variants.iter().enumerate().filter(|(_, of)| !of.result.about.is_empty());
    let items: String = described
        .map(|(at, Variant { result, .. })| {
            let (name, about) = (escape(&result.variant), escape(&result.about));
            format!("<div><dt>{}{name}</dt><dd>{about}</dd></div>", series::swatch(at))
        })
        .collect();
    if !items.is_empty() {
        let _ = writeln!(page, "<dl class=\"about\">{items}</dl>");
    }
}

fn warn(page: &mut String, warnings: &[String]) {
    if warnings.is_empty() {
        return;
    }
    let items: String =
        warnings.iter().map(|warning| format!("<li>{}</li>", escape(warning))).collect();
    let _ = writeln!(
        page,
        "<section id=\"warnings\">\n<h2>{}</h2>\n<ul class=\"warnings\">{items}</ul>\n</section>",
        counted(warnings)
    );
}

fn scenario(page: &mut String, manifest: &Manifest) {
    let overrides: String =
        manifest.overrides.iter().map(|o| format!("<li><code>{}</code></li>", escape(o))).collect();
    if !overrides.is_empty() {
        let _ = writeln!(page, "<h3>Changed on the command line</h3>\n<ul>{overrides}</ul>");
    }
    if manifest.scenario.is_empty() {
        return page::empty(page, "The scenario is not in the manifest.");
    }
    let title =
        if manifest.kind == Kind::Run { "The scenario, as resolved" } else { "The scenario" };
    page::details(page, title, |page| {
        let _ = writeln!(page, "<pre tabindex=\"0\">{}</pre>", escape(&manifest.scenario));
    });
}

/// The numbers that are shown of variants, and whether they were asked for rather than chosen by
/// the kinds of traffic.
fn shown_columns(variants: &[Variant]) -> (bool, Vec<Column>) {
    let trees: Vec<&Tree<Estimate>> =
        variants.iter().map(|variant| &variant.result.statistics).collect();
    let names: Vec<String> = variants
        .iter()
        .take(1)
        .flat_map(|of| of.result.shows.iter())
        .map(|(name, _)| name.to_string())
        .collect();
    let usual = shows::columns(&[], &trees);
    let columns = shows::columns(&names, &trees);
    (columns != usual, columns)
}

/// The keys of an object of the statistics, over all variants, each once.
fn keys(variants: &[Variant], object: &[&str]) -> Vec<String> {
    let (mut keys, mut seen) = (Vec::new(), BTreeSet::new());
    let objects = variants.iter().filter_map(|variant| variant.result.statistics.branch(object));
    for (key, _) in objects.flat_map(Ordered::iter) {
        if seen.insert(key) {
            keys.push(key.to_string());
        }
    }
    keys
}

/// `drops_by_place` of the runs' summaries, which is optional.
fn places(runs: &[PathBuf]) -> Result<Vec<(String, f64)>> {
    #[derive(Deserialize)]
    struct Places {
        #[serde(default)]
        drops_by_place: Option<Ordered<Ordered<u64>>>,
    }
    let mut places = IndexMap::new();
    for run in runs {
        let path = run.join("summary.json");
        let summary: Places =
            serde_json::from_slice(&fs::read(&path).at("read", &path)?).at("read", &path)?;
        for (place, reasons) in summary.drops_by_place.iter().flat_map(Ordered::iter) {
            let n = reasons.iter().map(|(_, &n)| n as f64).sum::<f64>() / runs.len() as f64;
            *places.entry(place.to_string()).or_insert(0.0) += n;
        }
    }
    Ok(places.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_told_briefly() {
        assert_eq!(seeds_text(&[7]), "seed 7");
        assert_eq!(seeds_text(&[1, 2, 3]), "3 seeds: 1 to 3");
        assert_eq!(seeds_text(&[4, 9]), "2 seeds: 4, 9");
    }

    #[test]
    fn places_are_read_where_they_are() {
        let dir = crate::test_dir("places");
        let runs: Vec<PathBuf> = ["a", "b"].map(|name| dir.join(name)).to_vec();
        for (run, n) in runs.iter().zip([3, 5]) {
            fs::create_dir_all(run).unwrap();
            let text = format!(
                "{{\"name\":\"x\",\"drops_by_place\":{{\"leaf0\":{{\"queue-full\":{n},\"ttl\":\
                 1}}}}}}"
            );
            fs::write(run.join("summary.json"), text).unwrap();
        }
        assert_eq!(places(&runs).unwrap(), [("leaf0".to_string(), 5.0)]);
        fs::write(runs[0].join("summary.json"), "{}").unwrap();
        assert_eq!(places(&runs[..1]).unwrap(), []);
    }
}
