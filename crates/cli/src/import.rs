//! `millpond import`: another simulator's files made a scenario.
//!
//! The files are written into a folder of their own and the scenario is planned there; only then do
//! they take their places. So what is imported runs, and a failed import leaves nothing.

use crate::args::{ImportArgs, ImportFrom, ImportOutput};
use crate::failure::Failure;
use crate::say;
use millpond_import::{Fate, Imported, Told};
use millpond_results::{Error, filled};
use millpond_scenario::{Errors, Problem, Scenario};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const WIDTH: usize = 100;

/// A kind of fate: which it is, what it is called, the title of its keys, and whether it is always
/// reported.
struct FateKind {
    is: fn(&Fate) -> bool,
    name: &'static str,
    title: &'static str,
    always: bool,
}

const fn kind(
    is: fn(&Fate) -> bool,
    name: &'static str,
    title: &'static str,
    always: bool,
) -> FateKind {
    FateKind { is, name, title, always }
}

/// In the order of the report.
const FATES: [FateKind; 6] = [
    kind(|fate| matches!(fate, Fate::Becomes(_)), "honoured", "honoured:", false),
    kind(
        |fate| matches!(fate, Fate::Output),
        "about what is written there",
        "about what is written there; millpond writes its own results:",
        false,
    ),
    kind(
        |fate| matches!(fate, Fate::Unused(_)),
        "without effect there, too",
        "without effect there, too:",
        false,
    ),
    kind(|fate| matches!(fate, Fate::LeftOut(_)), "left out", "left out:", true),
    kind(
        |fate| matches!(fate, Fate::Unknown(_)),
        "unknown",
        "unknown, and not read; check whether one of them matters:",
        true,
    ),
    kind(
        |fate| matches!(fate, Fate::Missing(_)),
        "not modelled",
        "warning: not modelled, and with an effect on results there:",
        true,
    ),
];

pub fn import(args: &ImportArgs) -> Result<(), Failure> {
    let (imported, source, output) = match &args.from {
        ImportFrom::Hpcc { config, topology, flows, workload, output } => {
            let instead = millpond_import::hpcc::Instead {
                topology: topology.as_deref(),
                flows: flows.as_deref(),
                workload: workload.as_deref(),
            };
            (millpond_import::hpcc::import(config, instead)?, config, output)
        }
        ImportFrom::Htsim { matrix, topology, output } => {
            (millpond_import::htsim::import(matrix, topology.as_deref())?, matrix, output)
        }
    };
    let print = |written: &[PathBuf]| match output.json {
        true => say(&as_json(&imported, written).to_string()),
        false => say(&report(&imported, output.all)),
    };
    if output.strict && imported.told.iter().any(Told::is_missing) {
        print(&[]);
        let counts = counts(&imported, |kind| kind.always);
        return Err(Failure::Usage(format!(
            "the scenario lacks something of the input ({counts}), and --strict is given: nothing \
             is written"
        )));
    }
    let places = write(&imported, source, output)?;
    print(&places);
    if output.json {
        return Ok(());
    }
    let names: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    say(&format!("written: {}\nrun it:  millpond run {}", names.join(", "), names[0]));
    Ok(())
}

/// The same as JSON: the facts, every key with its fate, and the files that were written.
fn as_json(imported: &Imported, written: &[PathBuf]) -> serde_json::Value {
    let key = |told: &Told| {
        let fate = FATES.iter().find(|kind| (kind.is)(&told.fate)).map(|kind| kind.name);
        serde_json::json!({
            "place": told.place, "text": told.text, "fate": fate, "detail": detail(&told.fate),
        })
    };
    serde_json::json!({
        "facts": imported.facts,
        "keys": imported.told.iter().map(key).collect::<Vec<_>>(),
        "written": written,
    })
}

/// The facts of the input, and what became of the keys.
fn report(imported: &Imported, all: bool) -> String {
    let mut lines: Vec<String> = imported.facts.iter().flat_map(|fact| wrapped("", fact)).collect();
    if !imported.told.is_empty() {
        let all = format!("{} keys and lines: {}", imported.told.len(), counts(imported, |_| true));
        lines.extend(wrapped("", &all));
    }
    for kind in FATES.iter().filter(|kind| all || kind.always) {
        let own: Vec<&Told> = imported.told.iter().filter(|told| (kind.is)(&told.fate)).collect();
        if !own.is_empty() {
            lines.push(format!("\n{}", kind.title));
            lines.extend(grouped(&own));
        }
    }
    if !imported.told.is_empty() && !imported.told.iter().any(Told::is_missing) {
        lines.push("\nnot modelled, and with an effect on results there: none".into());
    }
    lines.join("\n")
}

/// How many there are of each of these kinds: "3 honoured, 1 unknown".
fn counts(imported: &Imported, counted: impl Fn(&FateKind) -> bool) -> String {
    let of = |kind: &FateKind| imported.told.iter().filter(|told| (kind.is)(&told.fate)).count();
    let parts = FATES
        .iter()
        .filter(|kind| counted(kind))
        .map(|kind| (of(kind), kind.name))
        .filter(|(n, _)| *n > 0);
    parts.map(|(n, name)| format!("{n} {name}")).collect::<Vec<_>>().join(", ")
}

/// Detail of a fate, beyond its kind.
fn detail(fate: &Fate) -> &str {
    match fate {
        Fate::Becomes(text) | Fate::Unused(text) => text,
        Fate::Missing(text) | Fate::Unknown(text) | Fate::LeftOut(text) => text,
        Fate::Output => "",
    }
}

/// Keys with their places, and below them what became of them: once for all that share it.
fn grouped(all: &[&Told]) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&Told>)> = Vec::new();
    for told in all {
        let text = detail(&told.fate);
        match groups.iter_mut().find(|(other, _)| *other == text) {
            Some((_, keys)) => keys.push(told),
            None => groups.push((text, vec![told])),
        }
    }
    let mut lines = Vec::new();
    for (text, keys) in groups {
        for told in keys {
            let name =
                Path::new(&told.place).file_name().map(|name| name.to_string_lossy().into_owned());
            lines.extend(wrapped(
                "  ",
                &format!("{}  {}", name.unwrap_or_else(|| told.place.clone()), told.text),
            ));
        }
        if !text.is_empty() {
            lines.extend(wrapped("      ", text));
        }
    }
    lines
}

/// Lines of a text, each behind this.
fn wrapped(indent: &str, text: &str) -> Vec<String> {
    filled(indent, indent, text.split(' '), WIDTH)
}

/// Errors of the scenario, by the places of the input that they come from: nobody sees the files
/// that the scenario is planned in.
fn refused(imported: &Imported, source: &Path, partial: &Path, errors: &Errors) -> Failure {
    let folder = format!("{}{}", partial.display(), std::path::MAIN_SEPARATOR);
    let scenario: Vec<&str> = imported.files[0].1.lines().collect();
    let mut lines: Vec<String> = Vec::new();
    for error in &errors.errors {
        let written =
            scenario.get(error.line.wrapping_sub(1)).and_then(|line| line.split_once(" = "));
        let key = match &error.problem {
            Problem::Value { key, .. } => key.rsplit('.').next().unwrap_or(key),
            _ => written.map_or("", |(key, _)| key),
        };
        let origin = imported.told.iter().find(|told| match &told.fate {
            Fate::Becomes(text) | Fate::Missing(text) => !key.is_empty() && text.contains(key),
            _ => false,
        });
        let problem = error.problem.to_string().replace(&folder, "");
        let help = error
            .help
            .as_ref()
            .map(|help| format!(" ({})", help.replace(&folder, "")))
            .unwrap_or_default();
        lines.push(match origin {
            Some(told) => format!("{}: {} has become {problem}{help}", told.place, told.text),
            None => {
                format!("{}: the scenario made of it is refused: {problem}{help}", source.display())
            }
        });
    }
    Failure::Usage(lines.join("\n"))
}

/// Writes the files, all or none. Returns where they are, the scenario first.
fn write(
    imported: &Imported,
    source: &Path,
    output: &ImportOutput,
) -> Result<Vec<PathBuf>, Failure> {
    let written = imported.files.iter().map(|(name, _)| name);
    let names: Vec<&String> = written.chain(imported.copies.iter().map(|(_, name)| name)).collect();
    let places: Vec<PathBuf> = names.iter().map(|name| output.out.join(name)).collect();
    if let Some(place) = places.iter().find(|place| !output.force && place.exists()) {
        return Err(Failure::Usage(format!(
            "{} is there already; --force replaces it",
            place.display()
        )));
    }
    let at = |doing: &'static str, path: &Path, source: io::Error| Error::Io {
        doing,
        path: path.to_path_buf(),
        source,
    };
    fs::create_dir_all(&output.out).map_err(|e| at("create", &output.out, e))?;
    let partial = output.out.join(format!(".import-{}", std::process::id()));
    fs::create_dir(&partial).map_err(|e| at("create", &partial, e))?;
    let written = (|| -> Result<(), Failure> {
        for (name, text) in &imported.files {
            let path = partial.join(name);
            fs::write(&path, text).map_err(|e| at("write", &path, e))?;
        }
        for (from, name) in &imported.copies {
            fs::copy(from, partial.join(name)).map_err(|e| at("copy", from, e))?;
        }
        let scenario = Scenario::load(&partial.join(&imported.files[0].0));
        let planned = scenario.and_then(|scenario| scenario.plan(None, &[], None));
        planned.map_err(|errors| refused(imported, source, &partial, &errors))?;
        for (name, place) in names.iter().zip(&places) {
            fs::rename(partial.join(name), place).map_err(|e| at("replace", place, e))?;
        }
        Ok(())
    })();
    let _ = fs::remove_dir_all(&partial);
    written.map(|()| places)
}
