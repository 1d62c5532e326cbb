//! `millpond import`: another simulator's files made a scenario.
//!
//! The files are written into a folder of their own and the scenario is planned there; only then do
//! they take their places. So what is imported runs, and a failed import leaves nothing.

use crate::args::{ImportFrom, ImportOutput};
use crate::failure::{Failure, io_error};
use crate::print;
use millpond_import::{Fate, Imported, Outcome};
use millpond_results::filled;
use millpond_scenario::{Errors, Problem, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

const WIDTH: usize = 100;

/// A kind of fate: its name, the title of its keys, and whether it is always reported.
struct FateKind {
    name: &'static str,
    title: &'static str,
    always: bool,
}

/// In the order of the report.
const FATES: [FateKind; 6] = [
    FateKind { name: "honoured", title: "honoured:", always: false },
    FateKind {
        name: "about what is written there",
        title: "about what is written there; millpond writes its own results:",
        always: false,
    },
    FateKind {
        name: "without effect there, too",
        title: "without effect there, too:",
        always: false,
    },
    FateKind { name: "left out", title: "left out:", always: true },
    FateKind {
        name: "unknown",
        title: "unknown, and not read; check whether one of them matters:",
        always: true,
    },
    FateKind {
        name: "not modelled",
        title: "warning: not modelled, and with an effect on results there:",
        always: true,
    },
];

/// The place of a fate's kind among [`FATES`], and its detail.
fn kind_and_detail(fate: &Fate) -> (usize, &str) {
    match fate {
        Fate::Becomes(text) => (0, text),
        Fate::Output => (1, ""),
        Fate::Unused(text) => (2, text),
        Fate::LeftOut(text) => (3, text),
        Fate::Unknown(text) => (4, text),
        Fate::Missing(text) => (5, text),
    }
}

pub fn import(from: &ImportFrom) -> Result<(), Failure> {
    let (imported, source, output) = match from {
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
    let report_on = |written: &[PathBuf]| match output.json {
        true => print(&as_json(&imported, written).to_string()),
        false => print(&report(&imported, output.all)),
    };
    if output.strict && imported.keys.iter().any(Outcome::is_missing) {
        report_on(&[]);
        let counts = counts(&imported, |kind| kind.always);
        return Err(Failure::Usage(format!(
            "the scenario lacks something of the input ({counts}), and --strict is given: nothing \
             is written"
        )));
    }
    let places = write(&imported, source, output)?;
    report_on(&places);
    if output.json {
        return Ok(());
    }
    let names: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    print(&format!("written: {}\nrun it:  millpond run {}", names.join(", "), names[0]));
    Ok(())
}

/// The same as JSON: the facts, every key with its fate, and the files that were written.
fn as_json(imported: &Imported, written: &[PathBuf]) -> serde_json::Value {
    let key = |known: &Outcome| {
        let (kind, detail) = kind_and_detail(&known.fate);
        serde_json::json!({
            "place": known.place, "text": known.text, "fate": FATES[kind].name, "detail": detail,
        })
    };
    serde_json::json!({
        "facts": imported.facts,
        "keys": imported.keys.iter().map(key).collect::<Vec<_>>(),
        "written": written,
    })
}

/// The facts of the input, and what became of the keys.
fn report(imported: &Imported, all: bool) -> String {
    let mut lines: Vec<String> = imported.facts.iter().flat_map(|fact| wrapped("", fact)).collect();
    if !imported.keys.is_empty() {
        let all = format!("{} keys and lines: {}", imported.keys.len(), counts(imported, |_| true));
        lines.extend(wrapped("", &all));
    }
    for (at, kind) in FATES.iter().enumerate().filter(|(_, kind)| all || kind.always) {
        let is_of = |known: &&Outcome| kind_and_detail(&known.fate).0 == at;
        let own: Vec<&Outcome> = imported.keys.iter().filter(is_of).collect();
        if !own.is_empty() {
            lines.push(format!("\n{}", kind.title));
            lines.extend(grouped(&own));
        }
    }
    if !imported.keys.is_empty() && !imported.keys.iter().any(Outcome::is_missing) {
        lines.push("\nnot modelled, and with an effect on results there: none".into());
    }
    lines.join("\n")
}

/// How many there are of each of these kinds: "3 honoured, 1 unknown".
fn counts(imported: &Imported, counted: impl Fn(&FateKind) -> bool) -> String {
    let of = |at: usize| {
        let own = imported.keys.iter().filter(|known| kind_and_detail(&known.fate).0 == at);
        Some(own.count()).filter(|n| *n > 0)
    };
    let kinds = FATES.iter().enumerate().filter(|(_, kind)| counted(kind));
    let parts = kinds.filter_map(|(at, kind)| Some(format!("{} {}", of(at)?, kind.name)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Keys with their places, and below them what became of them: once for all that share it.
fn grouped(all: &[&Outcome]) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&Outcome>)> = Vec::new();
    for known in all {
        let (_, text) = kind_and_detail(&known.fate);
        match groups.iter_mut().find(|(other, _)| *other == text) {
            Some((_, keys)) => keys.push(known),
            None => groups.push((text, vec![known])),
        }
    }
    let mut lines = Vec::new();
    for (text, keys) in groups {
        for known in keys {
            let name = Path::new(&known.place).file_name().map(|name| name.to_string_lossy());
            let name = name.unwrap_or(known.place.as_str().into());
            lines.extend(wrapped("  ", &format!("{name}  {}", known.text)));
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
        let origin = imported.keys.iter().find(|known| match &known.fate {
            Fate::Becomes(text) | Fate::Missing(text) => !key.is_empty() && text.contains(key),
            _ => false,
        });
        let problem = error.problem.to_string().replace(&folder, "");
        let help = error.help.as_ref().map(|help| format!(" ({})", help.replace(&folder, "")));
        let from = match origin {
            Some(known) => format!("{}: {} has become", known.place, known.text),
            None => format!("{}: the scenario made of it is refused:", source.display()),
        };
        lines.push(format!("{from} {problem}{}", help.unwrap_or_default()));
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
        return Err(Failure::is_there(place));
    }
    fs::create_dir_all(&output.out).map_err(|e| io_error("create", &output.out, e))?;
    let partial = output.out.join(format!(".import-{}", std::process::id()));
    fs::create_dir(&partial).map_err(|e| io_error("create", &partial, e))?;
    let written = (|| -> Result<(), Failure> {
        for (name, text) in &imported.files {
            let path = partial.join(name);
            fs::write(&path, text).map_err(|e| io_error("write", &path, e))?;
        }
        for (from, name) in &imported.copies {
            fs::copy(from, partial.join(name)).map_err(|e| io_error("copy", from, e))?;
        }
        let scenario = Scenario::load(&partial.join(&imported.files[0].0));
        let planned = scenario.and_then(|scenario| scenario.plan(None, &[], None));
        planned.map_err(|errors| refused(imported, source, &partial, &errors))?;
        for (name, place) in names.iter().zip(&places) {
            fs::rename(partial.join(name), place).map_err(|e| io_error("replace", place, e))?;
        }
        Ok(())
    })();
    let _ = fs::remove_dir_all(&partial);
    written.map(|()| places)
}
