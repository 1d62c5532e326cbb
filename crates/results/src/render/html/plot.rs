//! Charts of several results as SVG files of their own, for papers and slides.
//!
//! Invariant: a file needs nothing but itself: its colours are values, its style is in it, and it
//! has no script. Its bytes depend on the results alone.

use super::chart::WIDTH;
use super::figures::{by_sizes, rates, times, waiting};
use super::page::{Drawing, escape};
use super::series::swatch;
use super::sweep;
use super::timeline::timeline;
use super::{Variant, variants_of_compare, variants_of_run};
use crate::model::summary::Summary;
use crate::model::{Error, Kind, MANIFEST, Manifest, REPORT, Result, check_files, read_compare};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The light style of the page, as far as drawings use it.
const STYLE: &str = "\
text{font-family:system-ui,Roboto,'Noto Sans',sans-serif;font-size:11px;fill:#56626b}\
.caption{font-size:13px;font-weight:600;fill:#1a2126}.name{fill:#1a2126}\
.row{fill:#1a2126;font-weight:600}.title{font-style:italic}.narrow{display:none}\
.failure{fill:#a8400a;opacity:.09}.failure-name{fill:#a8400a;font-weight:600}\
.failure-edge{stroke:#a8400a;stroke-width:1.2;stroke-dasharray:2 3;fill:none}\
.grid{stroke:#dce1e4;fill:none;stroke-width:.8}.axis{stroke:#8b979f;fill:none;stroke-width:1}\
.line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
.steps{stroke-width:1.5;stroke-linejoin:miter;stroke-linecap:butt}\
.whisker{stroke:currentColor;stroke-width:1.4;fill:none}.band{fill:currentColor;opacity:.14}\
.mark{fill:currentColor;stroke:currentColor;stroke-width:1.4;stroke-linejoin:round}\
.seeds{stroke:currentColor;stroke-width:7;stroke-linecap:round;opacity:.32;fill:none}\
.hollow{fill:#fff}.d1{stroke-dasharray:7 4}.d2{stroke-dasharray:2 4}.d3{stroke-dasharray:9 3 2 3}\
.s0{color:#0072b2}.s1{color:#d55e00}.s2{color:#00835f}.s3{color:#b0508c}\
.s4{color:#b97f00}.s5{color:#3b8fc4}.s6{color:#5b666e}.s7{color:#7d4a1c}";

/// Above the legend.
const CAPTION: f64 = 24.0;
/// A name of the legend.
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
        let (drawings, names) = sweep::drawings(dir)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return Ok(drawings.iter().map(|of| (of.name.clone(), svg(of, &names))).collect());
    }
    let mut variants = Vec::new();
    for dir in results {
        let own = read(dir)?;
        // Of several results, names alone need not tell variants apart.
        let folder = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
        variants.extend(own.into_iter().map(|mut variant| {
            if results.len() > 1 {
                variant.result.variant = format!("{folder}: {}", variant.result.variant);
            }
            variant
        }));
    }
    let mut drawings = times(&variants);
    drawings.extend(by_sizes(&variants));
    drawings.extend(rates(&variants)?);
    drawings.extend(waiting(&variants)?.unwrap_or_default());
    let names: Vec<&str> = variants.iter().map(|variant| variant.result.variant.as_str()).collect();
    let mut files: Vec<(String, String)> =
        drawings.iter().map(|drawing| (drawing.name.clone(), svg(drawing, &names))).collect();
    files.extend(timeline(&variants)?.map(|(drawing, height)| {
        let label = "Flows over time";
        (
            "timeline".to_string(),
            file(
                label,
                label,
                height,
                &format!("<g transform=\"translate(0 {CAPTION})\">{drawing}</g>\n"),
            ),
        )
    }));
    Ok(files)
}

/// The variants of a results folder.
fn read(dir: &Path) -> Result<Vec<Variant>> {
    let manifest = Manifest::read(dir)?;
    let check = |run: &Path| check_files(run, &|name| name != REPORT);
    match manifest.kind {
        Kind::Run => {
            check(dir)?;
            variants_of_run(dir, &Summary::read(dir)?, &manifest)
        }
        Kind::Compare => {
            let results = read_compare(dir)?;
            results
                .iter()
                .flat_map(|result| result.folders(dir))
                .try_for_each(|run| check(&run))?;
            Ok(variants_of_compare(dir, &results)?.0)
        }
        Kind::Sweep => {
            let reason = "is of a sweep, which is drawn alone: name it and no other".to_string();
            Err(Error::Malformed { path: dir.join(MANIFEST), reason })
        }
        Kind::Reproduce => {
            let reason = "is of many runs: name a sweep below it, such as its experiment's folder";
            Err(Error::Malformed { path: dir.join(MANIFEST), reason: reason.to_string() })
        }
    }
}

/// A file: the caption, the legend, the chart.
fn svg(drawing: &Drawing, names: &[&str]) -> String {
    let Drawing { caption, below, chart, .. } = drawing;
    let legend = if names.len() > 1 { names.len() as f64 * NAME } else { 0.0 };
    let (top, height) = (CAPTION + legend, CAPTION + legend + chart.height());
    let mut inside = String::new();
    // The text that the page writes beneath a caption has marks of its script where there are
    // several.
    if names.len() == 1 && !below.is_empty() {
        let right = WIDTH - 12.0;
        let _ = writeln!(inside, "<text x=\"{right}\" y=\"16\" text-anchor=\"end\">{below}</text>");
    }
    if names.len() > 1 {
        for (series, name) in names.iter().enumerate() {
            let (y, name) = (CAPTION + series as f64 * NAME, escape(name));
            let swatch = swatch(series).replacen(
                "<svg ",
                &format!("<svg x=\"12\" y=\"{}\" width=\"24\" height=\"10\" ", y + 3.0),
                1,
            );
            let text = y + 12.0;
            let _ = writeln!(
                inside,
                "{swatch}<text class=\"name\" x=\"42\" y=\"{text}\">{name}</text>"
            );
        }
    }
    let _ = writeln!(inside, "<g transform=\"translate(0 {top})\">{}</g>", chart.drawing());
    file(&chart.label, caption, height - CAPTION, &inside)
}

/// The element around a drawing that begins below the caption, or has room for it.
fn file(label: &str, caption: &str, height: f64, inside: &str) -> String {
    let height = height + CAPTION;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{label}\">\n\
         <style>{STYLE}</style>\n<text class=\"caption\" x=\"12\" y=\"16\">{caption}</text>\n\
         {inside}</svg>\n"
    )
}
