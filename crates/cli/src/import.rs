//! `millpond import`: another simulator's files made a scenario.
//!
//! The files are written into a folder of their own and the scenario is planned there; only then do
//! they take their places. So what is imported runs, and a failed import leaves nothing.

use crate::args::{ImportArgs, ImportFrom, ImportOutput};
use crate::failure::Failure;
use crate::say;
use millpond_import::{Fate, Imported, Told};
use millpond_results::Error;
use millpond_scenario::Scenario;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Columns of the report.
const WIDTH: usize = 100;

/// A kind of fate: which it is, what it is called, and the title of its keys.
type FateKind = (fn(&Fate) -> bool, &'static str, &'static str);

/// In the order of the report. The last is told of in any case.
const FATES: [FateKind; 4] = [
    (|fate| matches!(fate, Fate::Becomes(_)), "honoured", "honoured:"),
    (
        |fate| matches!(fate, Fate::Output),
        "about what is written there",
        "about what is written there; millpond writes its own results:",
    ),
    (|fate| matches!(fate, Fate::Unused(_)), "without effect there, too", "without effect there, too:"),
    (|fate| matches!(fate, Fate::Missing(_)), "not modelled", "not modelled:"),
];

/// Imports.
pub fn import(args: &ImportArgs) -> Result<(), Failure> {
    let (imported, output) = match &args.from {
        ImportFrom::Hpcc { config, output } => (millpond_import::hpcc::import(config)?, output),
        ImportFrom::Htsim { matrix, topology, output } => {
            (millpond_import::htsim::import(matrix, topology.as_deref())?, output)
        }
    };
    let missing = imported.told.iter().filter(|told| told.is_missing()).count();
    if output.strict && missing > 0 {
        say(&report(&imported, output.all));
        return Err(Failure::Usage(format!(
            "{missing} keys are not modelled, and --strict is given: nothing is written"
        )));
    }
    let places = write(&imported, output)?;
    say(&report(&imported, output.all));
    let names: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    say(&format!("written: {}\nrun it:  millpond run {}", names.join(", "), names[0]));
    Ok(())
}

/// What there is, and what became of the keys.
fn report(imported: &Imported, all: bool) -> String {
    let mut lines: Vec<String> = imported.facts.iter().flat_map(|fact| wrapped("", fact)).collect();
    let of = |is: fn(&Fate) -> bool| imported.told.iter().filter(move |told| is(&told.fate)).collect::<Vec<&Told>>();
    if !imported.told.is_empty() {
        let parts = FATES.iter().map(|(is, name, _)| (of(*is).len(), name)).filter(|(n, _)| *n > 0);
        let parts: Vec<String> = parts.map(|(n, name)| format!("{n} {name}")).collect();
        lines.push(format!("{} keys: {}", imported.told.len(), parts.join(", ")));
    }
    for (is, _, title) in FATES.iter().skip(if all { 0 } else { FATES.len() - 1 }) {
        let own = of(*is);
        if !own.is_empty() {
            lines.push(format!("\n{title}"));
            lines.extend(grouped(&own));
        }
    }
    lines.join("\n")
}

/// Keys with their places, and below them what became of them: once for all that share it.
fn grouped(all: &[&Told]) -> Vec<String> {
    let text = |told: &Told| match &told.fate {
        Fate::Becomes(text) | Fate::Unused(text) | Fate::Missing(text) => text.clone(),
        Fate::Output => String::new(),
    };
    let mut groups: Vec<(String, Vec<&Told>)> = Vec::new();
    for told in all {
        match groups.iter_mut().find(|(other, _)| *other == text(told)) {
            Some((_, keys)) => keys.push(told),
            None => groups.push((text(told), vec![told])),
        }
    }
    let mut lines = Vec::new();
    for (text, keys) in groups {
        for told in keys {
            let name = Path::new(&told.place).file_name().map(|name| name.to_string_lossy().into_owned());
            lines.extend(wrapped("  ", &format!("{}  {}", name.unwrap_or_else(|| told.place.clone()), told.text)));
        }
        if !text.is_empty() {
            lines.extend(wrapped("      ", &text));
        }
    }
    lines
}

/// Lines of a text, each behind this.
fn wrapped(indent: &str, text: &str) -> Vec<String> {
    let mut lines = vec![indent.to_string()];
    for word in text.split(' ') {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > indent.len() && last + 1 + word.chars().count() > WIDTH {
            lines.push(indent.to_string());
        }
        if let Some(line) = lines.last_mut() {
            if line.len() > indent.len() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Writes the files, all or none. Returns where they are, the scenario first.
fn write(imported: &Imported, output: &ImportOutput) -> Result<Vec<PathBuf>, Failure> {
    let places: Vec<PathBuf> = imported.files.iter().map(|(name, _)| output.out.join(name)).collect();
    if let Some(place) = places.iter().find(|place| !output.force && place.exists()) {
        return Err(Failure::Usage(format!("{} is there already; --force replaces it", place.display())));
    }
    let at =
        |doing: &'static str, path: &Path, source: io::Error| Error::Io { doing, path: path.to_path_buf(), source };
    fs::create_dir_all(&output.out).map_err(|e| at("create", &output.out, e))?;
    let partial = output.out.join(format!(".import-{}", std::process::id()));
    fs::create_dir(&partial).map_err(|e| at("create", &partial, e))?;
    let written = (|| -> Result<(), Failure> {
        for (name, text) in &imported.files {
            let path = partial.join(name);
            fs::write(&path, text).map_err(|e| at("write", &path, e))?;
        }
        Scenario::load(&partial.join(&imported.files[0].0))?.plan(None, &[], None)?;
        for ((name, _), place) in imported.files.iter().zip(&places) {
            fs::rename(partial.join(name), place).map_err(|e| at("replace", place, e))?;
        }
        Ok(())
    })();
    let _ = fs::remove_dir_all(&partial);
    written.map(|()| places)
}
