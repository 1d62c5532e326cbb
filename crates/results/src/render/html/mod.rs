//! `report.html`: one page that needs nothing but itself. A run's page is that of a compare of one.
//!
//! Invariant: the bytes depend on results that are identical from run to run: no wall-clock time,
//! date or machine. The page reads well without its script, which only adds read-outs and hides
//! variants.

mod changes;
mod connections;
mod figures;
mod flows;
pub(crate) mod gallery;
mod headline;
mod jobs;
mod losses;
mod measures;
mod page;
pub(crate) mod plot;
mod programs;
mod queues;
pub(crate) mod reproduction;
mod reproduction_charts;
pub(crate) mod sweep;
mod sweep_tables;
mod timeline;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Deserialize;

use crate::model::summary::Summary;
use crate::model::{
    At, Estimate, Kind, LinkFailure, Manifest, Ordered, Result, Status, Tree, VariantResult,
    each_once,
};
use crate::render::document::{Block, details, empty, section};
use crate::render::draw::series::swatch;
use crate::render::markup::escape;
use crate::statistics::bins;
use crate::statistics::by_size::Edge;
use crate::statistics::compare::compare;
use crate::statistics::numbers::{Json, numbers};
use crate::statistics::shows::{self, Column};
use flows::Times;
use page::Page;

/// The data of the page on one variant.
struct Variant {
    result: VariantResult,
    /// The folders of its runs, in the order of its seeds.
    runs: Vec<PathBuf>,
    times: Times,
    /// Drops by place, all reasons together: means over the runs that have them.
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

    fn name(&self) -> String {
        escape(&self.result.variant)
    }

    /// The name behind the mark of a series.
    fn marked(&self, series: usize) -> String {
        swatch(series) + &self.name()
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

/// ` Of seed 3 alone.` where there are several.
fn of_one_seed(variants: &[Variant]) -> String {
    let seed = variants.first().and_then(|variant| variant.result.seeds.first()).unwrap_or(&0);
    let several = has_seeds(variants);
    if several { format!(" Of seed {seed} alone.") } else { String::new() }
}

fn has_seeds(variants: &[Variant]) -> bool {
    variants.iter().any(|variant| variant.runs.len() > 1)
}

/// The variant that one run is, whose Parquet files are in `dir`.
fn variants_of_run(dir: &Path, summary: &Summary, manifest: &Manifest) -> Result<Vec<Variant>> {
    let name = summary.variant.clone().unwrap_or_else(|| summary.name.clone());
    let mut variants = Vec::new();
    let summaries = std::slice::from_ref(summary);
    for mut result in compare(&[(name, summaries.to_vec())])? {
        let names: Vec<String> = summary.shows.iter().map(|(name, _)| name.to_string()).collect();
        if !names.is_empty() {
            let columns = shows::columns(&names, &[&result.statistics]);
            result.shows = shows::numbers(&columns, &result.statistics, None);
        }
        let (runs, failures) = (vec![dir.to_path_buf()], manifest.failures.clone());
        variants.push(Variant::read(result, runs, summaries, failures, None, dir)?);
    }
    Ok(variants)
}

/// The page of one run whose Parquet files are in `dir`.
pub(crate) fn run_page(dir: &Path, summary: &Summary, manifest: &Manifest) -> Result<String> {
    let variants = variants_of_run(dir, summary, manifest)?;
    let variant = summary.variant.iter().map(|v| format!("variant <b>{}</b>", escape(v)));
    let mut facts: Vec<String> = variant.chain([format!("seed {}", summary.seed)]).collect();
    facts.extend(run_facts(std::slice::from_ref(summary)));
    let ended = (summary.status != Status::Complete)
        .then(|| format!("This run is {}.", summary.status.name()));
    let warnings: Vec<String> = ended.into_iter().chain(summary.warnings.iter().cloned()).collect();
    page_of("run", &summary.name, facts, &warnings, &variants, manifest)
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
    page_of("compare", &manifest.name, facts, &warnings, &variants, manifest)
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

fn fact(is_good: bool, text: &str) -> String {
    let (class, sign) = if is_good { ("good", '✓') } else { ("bad", '✗') };
    format!("<span class=\"{class}\">{sign} {text}</span>")
}

fn run_facts(summaries: &[Summary]) -> Vec<String> {
    let world = summaries.first().map(|first| first.world.text().to_string());
    let is_complete = summaries.iter().all(|summary| summary.status == Status::Complete);
    let is_conserved = summaries.iter().all(|summary| summary.audit.conserved);
    let complete = if is_complete { "complete" } else { "not complete" };
    let conserved =
        if is_conserved { "packets and bytes conserved" } else { "packets or bytes NOT conserved" };
    let facts = [fact(is_complete, complete), fact(is_conserved, conserved)];
    world.into_iter().chain(facts).collect()
}

fn page_of(
    kind: &str,
    name: &str,
    mut facts: Vec<String>,
    warnings: &[String],
    variants: &[Variant],
    manifest: &Manifest,
) -> Result<String> {
    if !warnings.is_empty() {
        facts.push(format!("<a href=\"#warnings\">{}</a>", counted(warnings)));
    }
    let mut blocks = vec![verdict::verdict(variants)];
    blocks.extend(figures::numbers(variants));
    blocks.extend(jobs::jobs(variants)?);
    blocks.extend([figures::distributions(variants), figures::sizes(variants)]);
    blocks.extend(figures::goodput(variants)?);
    blocks.extend(connections::connections(variants)?);
    blocks.extend(figures::queues(variants)?);
    blocks.extend(losses::losses(variants));
    blocks.extend(programs::programs(variants));
    blocks.extend(warn(warnings));
    let inside = std::iter::once(verdict::classes(variants)).chain(scenario(manifest)).collect();
    blocks.push(section("scenario", "Scenario and numbers", inside));
    let page = Page {
        kind,
        name,
        facts,
        about: about(variants, manifest),
        names: variants.iter().map(|variant| variant.result.variant.as_str()).collect(),
        blocks,
        rests_on: "rests-on-run",
    };
    Ok(page.html())
}

fn counted(warnings: &[String]) -> String {
    match warnings.len() {
        1 => "1 warning".to_string(),
        n => format!("{n} warnings"),
    }
}

/// The descriptions of the scenario and of its variants.
fn about(variants: &[Variant], manifest: &Manifest) -> Vec<Block> {
    let texts = [&manifest.about, &manifest.variant_about].into_iter().filter(|t| !t.is_empty());
    let mut blocks: Vec<Block> = texts.map(|text| lead_about(escape(text))).collect();
    let described = variants.iter().enumerate().filter(|(_, of)| !of.result.about.is_empty());
    let pair = |(at, of): (usize, &Variant)| [of.marked(at), escape(&of.result.about)];
    let pairs: Vec<[String; 2]> = described.map(pair).collect();
    blocks.extend((!pairs.is_empty()).then_some(Block::Pairs { class: "about", pairs }));
    blocks
}

fn lead_about(text: String) -> Block {
    Block::Paragraph { class: "lead about", text }
}

fn warn(warnings: &[String]) -> Option<Block> {
    let items = warnings.iter().map(|warning| escape(warning)).collect();
    let inside = vec![Block::Items { class: "warnings", items }];
    (!warnings.is_empty()).then(|| section("warnings", &counted(warnings), inside))
}

fn scenario(manifest: &Manifest) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !manifest.overrides.is_empty() {
        let items =
            manifest.overrides.iter().map(|it| format!("<code>{}</code>", escape(it))).collect();
        blocks.push(Block::Heading("Changed on the command line".into()));
        blocks.push(Block::Items { class: "", items });
    }
    let is_run = manifest.kind == Kind::Run;
    let title = if is_run { "The scenario, as resolved" } else { "The scenario" };
    blocks.push(match manifest.scenario.as_str() {
        "" => empty("The scenario is not in the manifest."),
        text => details(title, vec![Block::Program(text.into())]),
    });
    blocks
}

/// The numbers that are shown of variants, and whether they were asked for rather than chosen by
/// the kinds of traffic.
fn shown_columns(variants: &[Variant]) -> (bool, Vec<Column>) {
    let trees = trees(variants);
    let shows = variants.iter().take(1).flat_map(|of| of.result.shows.iter());
    let names: Vec<String> = shows.map(|(name, _)| name.to_string()).collect();
    let usual = shows::columns(&[], &trees);
    let columns = shows::columns(&names, &trees);
    (columns != usual, columns)
}

fn trees(variants: &[Variant]) -> Vec<&Tree<Estimate>> {
    variants.iter().map(|variant| &variant.result.statistics).collect()
}

/// The keys of an object of the statistics, over all variants, each once.
fn keys(variants: &[Variant], object: &[&str]) -> Vec<String> {
    let objects = variants.iter().filter_map(|variant| variant.result.statistics.branch(object));
    each_once(objects.flat_map(Ordered::iter).map(|(key, _)| key.to_string()))
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
