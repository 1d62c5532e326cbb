//! `millpond plot`: charts of runs, compares and sweeps as SVG files.

use crate::failure::Failure;
use crate::print;
use millpond_results::plots;
use std::fs;
use std::path::{Path, PathBuf};

pub fn plot(results: &[PathBuf], figures: &[String], out: &Path) -> Result<(), Failure> {
    let all = plots(results)?;
    let names = || all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    for wanted in figures {
        if !all.iter().any(|(name, _)| name == wanted) {
            let text = format!("--figure {wanted}: these results have {}", names());
            return Err(Failure::Usage(text));
        }
    }
    let refused =
        |path: &Path, error| Failure::Runs(format!("cannot write {}: {error}", path.display()));
    fs::create_dir_all(out).map_err(|error| refused(out, error))?;
    for (name, svg) in &all {
        if !figures.is_empty() && !figures.contains(name) {
            continue;
        }
        let path = out.join(format!("{name}.svg"));
        fs::write(&path, svg).map_err(|error| refused(&path, error))?;
        print(&path.display().to_string());
    }
    Ok(())
}
