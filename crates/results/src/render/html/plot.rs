//! Charts of several results as SVG files of their own, for papers and slides.
//!
//! Invariant: a file needs nothing but itself: its colours are values, its style is in it, and it
//! has no script. Its bytes depend on the results alone.

use super::figures::{by_sizes, rates, times, waiting};
use super::sweep;
use super::timeline::timeline;
use super::{Variant, variants_of_compare, variants_of_run};
use crate::model::summary::Summary;
use crate::model::{Error, Kind, MANIFEST, Manifest, REPORT, Result, check_files, read_compare};
use crate::render::document::{Drawing, Figure};
use crate::render::draw::chart::WIDTH;
use crate::render::draw::series::swatch;
use crate::render::draw::svg::Draw;
use crate::render::markup::escape;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const CAPTION: f64 = 24.0;
const NAME: f64 = 16.0;

/// Draws the runs and compares in these folders, variants of all in one chart: each chart that they
/// have, with a name for its file (`fct`, `slowdown-p99-by-size`, `queue`). Of one sweep: its
/// numbers over its longest key.
///
/// # Errors
/// If a folder holds something else, or its files are damaged.
pub fn plots(results: &[PathBuf]) -> Result<Vec<(String, String)>> {
    if let Some(file) = results.iter().find(|path| path.is_file()) {
        let reason = "is a file: name a folder of results, such as out/incast".to_string();
        return Err(Error::Malformed { path: file.clone(), reason });
    }
    if let [dir] = results
        && Manifest::read(dir)?.kind == Kind::Sweep
    {
        let (figures, names) = sweep::drawings(dir)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return Ok(figures.iter().filter_map(|figure| file_of(figure, &names)).collect());
    }
    let mut variants = Vec::new();
    for dir in results {
        let own = read(dir)?;
        // Of several results, names alone need not distinguish variants.
        let folder = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
        variants.extend(own.into_iter().map(|mut variant| {
            if results.len() > 1 {
                variant.result.variant = format!("{folder}: {}", variant.result.variant);
            }
            variant
        }));
    }
    let mut figures = times(&variants);
    figures.extend(by_sizes(&variants));
    figures.extend(rates(&variants)?);
    figures.extend(waiting(&variants)?.unwrap_or_default());
    let names: Vec<&str> = variants.iter().map(|variant| variant.result.variant.as_str()).collect();
    let mut files: Vec<(String, String)> =
        figures.iter().filter_map(|figure| file_of(figure, &names)).collect();
    files.extend(timeline(&variants)?.map(|(drawing, height)| {
        let inside = format!("<g transform=\"translate(0 {CAPTION})\">{drawing}</g>\n");
        let label = "Flows over time";
        ("timeline".to_string(), file(label, label, height, &inside))
    }));
    Ok(files)
}

/// The variants of a results folder.
fn read(dir: &Path) -> Result<Vec<Variant>> {
    let manifest = Manifest::read(dir)?;
    let check = |run: &Path| check_files(run, &|name| name != REPORT);
    let reason = match manifest.kind {
        Kind::Run => {
            check(dir)?;
            return variants_of_run(dir, &Summary::read(dir)?, &manifest);
        }
        Kind::Compare => {
            let results = read_compare(dir)?;
            let mut runs = results.iter().flat_map(|result| result.folders(dir));
            runs.try_for_each(|run| check(&run))?;
            return Ok(variants_of_compare(dir, &results)?.0);
        }
        Kind::Sweep => "is of a sweep, which is drawn alone: name it and no other",
        Kind::Reproduce => {
            "is of many runs: name a sweep below it, such as its experiment's folder"
        }
    };
    Err(Error::Malformed { path: dir.join(MANIFEST), reason: reason.to_string() })
}

/// A file with its name: the caption, the legend, the chart.
fn file_of(of: &Figure, names: &[&str]) -> Option<(String, String)> {
    let Drawing::Chart(chart) = &of.drawing else { return None };
    let legend = if names.len() > 1 { names } else { &[] };
    let top = CAPTION + legend.len() as f64 * NAME;
    let mut inside = String::new();
    // The text that the page writes beneath a caption has marks of its script where there are
    // several.
    if names.len() == 1 && !of.below.is_empty() {
        inside.text("", WIDTH - 12.0, 16, "end", &of.below);
        inside.push('\n');
    }
    for (series, name) in legend.iter().enumerate() {
        let y = CAPTION + series as f64 * NAME;
        let place = format!("<svg x=\"12\" y=\"{}\" width=\"24\" height=\"10\" ", y + 3.0);
        inside.push_str(&swatch(series).replacen("<svg ", &place, 1));
        inside.text("name", 42, y + 12.0, "", &escape(name));
        inside.push('\n');
    }
    let _ = writeln!(inside, "<g transform=\"translate(0 {top})\">{}</g>", chart.drawing());
    let height = top - CAPTION + chart.height();
    Some((of.name.clone(), file(&chart.label, &of.caption, height, &inside)))
}

/// The element around a drawing that begins below the caption, or has room for it.
fn file(label: &str, caption: &str, height: f64, inside: &str) -> String {
    let height = height + CAPTION;
    // The light style of the page, as far as drawings use it.
    let style: String = include_str!("plot.css").lines().collect();
    let size = format!("width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\"");
    let mut head = String::new();
    head.text("caption", 12, 16, "", caption);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} role=\"img\" aria-label=\"{label}\">\n\
         <style>{style}</style>\n{head}\n{inside}</svg>\n"
    )
}
