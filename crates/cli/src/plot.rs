//! `millpond plot`: charts of runs, compares and sweeps as SVG files.

use crate::args::PlotArgs;
use crate::failure::Failure;
use crate::say;
use millpond_results::plots;
use std::fs;

pub fn plot(args: &PlotArgs) -> Result<(), Failure> {
    let all = plots(&args.results)?;
    let names = || all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    for wanted in &args.figures {
        if !all.iter().any(|(name, _)| name == wanted) {
            let text = format!("--figure {wanted}: these results have {}", names());
            return Err(Failure::Usage(text));
        }
    }
    let refused = |path: &std::path::Path, error| {
        Failure::Runs(format!("cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(&args.out).map_err(|error| refused(&args.out, error))?;
    for (name, svg) in &all {
        if !args.figures.is_empty() && !args.figures.contains(name) {
            continue;
        }
        let path = args.out.join(format!("{name}.svg"));
        fs::write(&path, svg).map_err(|error| refused(&path, error))?;
        say(&path.display().to_string());
    }
    Ok(())
}
