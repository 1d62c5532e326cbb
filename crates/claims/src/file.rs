//! A paper as a file: `paper.toml`, beside the scenarios of its experiments.
//!
//! The file is the only place of a paper's experiments and claims. The papers of this project are
//! compiled in from `papers/`; any other folder with a `paper.toml` is read in the same way.
//!
//! Invariant: a paper that is read has passed `checks`.

use crate::baseline::Baselines;
use crate::checks::{baselines_fit, cause_fits, fits, is_sound, named};
use crate::claim::Claim;
use crate::error::{Error, hinted};
use crate::experiment::Experiment;
use crate::paper::Paper;
use crate::statistic::Statistic;
use include_dir::{Dir, include_dir};
use millpond_results::Cause;
use millpond_scenario::{folder_of, nearest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use toml::Spanned;

/// The name of the file in a paper's folder.
pub const PAPER: &str = "paper.toml";

/// The characters of a reading, at most.
const READING: usize = 900;

static BUILT: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../papers");

/// The papers that are compiled in, by year.
///
/// # Panics
///
/// If one of them is not valid; a test reads all.
pub fn papers() -> &'static [Arc<Paper>] {
    static READ: OnceLock<Vec<Arc<Paper>>> = OnceLock::new();
    READ.get_or_init(|| {
        let read = |dir: &Dir<'static>| {
            let folder = format!("papers/{}", dir.path().display());
            let text = |name: &str| {
                dir.get_file(dir.path().join(name)).and_then(|file| file.contents_utf8())
            };
            let paper = text(PAPER)?;
            let scenario =
                |name: &str| text(name).map(String::from).ok_or_else(|| "is not there".to_string());
            Some(Arc::new(read(&folder, paper, scenario).unwrap_or_else(|e| panic!("{e}"))))
        };
        let mut all: Vec<Arc<Paper>> = BUILT.dirs().filter_map(read).collect();
        all.sort_by(|a, b| (a.year, &a.name).cmp(&(b.year, &b.name)));
        all
    })
}

/// A file of the folder of a paper that is compiled in.
pub(crate) fn built_file(paper: &Paper, name: &str) -> Option<&'static str> {
    let file = BUILT.get_file(Path::new(&paper.name).join(name))?;
    file.contents_utf8()
}

/// The paper of a name: one that is compiled in, or the one in a folder.
///
/// # Errors
///
/// If there is none of this name, with the nearest; or as [`read_paper`].
pub fn find_paper(name: &str) -> Result<Arc<Paper>, Error> {
    if let Some(paper) = papers().iter().find(|paper| paper.name == name) {
        return Ok(Arc::clone(paper));
    }
    let path = Path::new(name);
    let folder = if path.ends_with(PAPER) { folder_of(path) } else { path };
    if folder.is_dir() || folder.components().count() > 1 {
        return read_paper(folder).map(Arc::new);
    }
    let known: Vec<&str> = papers().iter().map(|paper| paper.name.as_str()).collect();
    let near = nearest(name, known.iter().copied());
    let hint = near.map_or(String::from("."), |nearest| format!(". Is it {nearest}?"));
    Err(Error::Usage(format!(
        "there is no paper {name}{hint} Built in are {}; a folder with a paper.toml is one, too",
        known.join(", ")
    )))
}

/// Reads the paper in a folder.
///
/// # Errors
///
/// If a file cannot be read, or `paper.toml` is not valid: the message has file and line.
pub fn read_paper(folder: &Path) -> Result<Paper, Error> {
    let file = folder.join(PAPER);
    let text = |path: &Path| std::fs::read_to_string(path).map_err(|e| e.to_string());
    let paper = text(&file).map_err(|e| Error::Usage(format!("{}: {e}", file.display())))?;
    let paper = read(&folder.display().to_string(), &paper, |name| text(&folder.join(name)))?;
    Ok(Paper { folder: Some(folder.to_path_buf()), ..paper })
}

/// The content of `paper.toml`: experiments and claims as tables, each with its place, for errors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    name: Spanned<String>,
    title: String,
    /// Of its publication: the order in which papers are listed.
    year: u16,
    /// Long texts by a short name, for the `source` of claims.
    #[serde(default)]
    sources: BTreeMap<String, String>,
    baselines: Option<Spanned<Baselines>>,
    experiment: Vec<Spanned<toml::Table>>,
    claim: Vec<Spanned<toml::Table>>,
    reading: Option<Spanned<String>>,
    #[serde(default)]
    cause: Vec<Spanned<toml::Table>>,
}

/// Reads a paper; `scenario` gives the text of a file beside it.
fn read(
    folder: &str,
    text: &str,
    scenario: impl Fn(&str) -> Result<String, String>,
) -> Result<Paper, Error> {
    let at = |offset: usize, what: &dyn Display| {
        let line = text.get(..offset).unwrap_or_default().matches('\n').count() + 1;
        Error::Usage(format!("{folder}/{PAPER}:{line}: {what}"))
    };
    let tree = toml::Deserializer::parse(text)
        .map_err(|e| at(e.span().map_or(0, |span| span.start), &e.message()))?;
    let file = File::deserialize(tree).map_err(|e| at(0, &e.message()))?;
    let mut paper = Paper {
        name: file.name.get_ref().clone(),
        title: file.title,
        year: file.year,
        ..Paper::default()
    };
    for table in file.experiment {
        let start = table.span().start;
        let wrong = |e: String| at(start, &e);
        let read: Experiment = entry(table, "name", "an experiment").map_err(wrong)?;
        let Experiment { name, scenario: file, .. } = &read;
        let own = scenario(file)
            .map_err(|e| at(start, &format!("{name}: scenario \"{file}\" in {folder}: {e}")))?;
        let experiment = Experiment { scenario: format!("{folder}/{file}"), text: own, ..read };
        is_sound(&experiment, &paper.experiments).map_err(wrong)?;
        for (_, statistic) in &experiment.shows {
            known_class(statistic, &experiment)
                .map_err(|e| at(place_of(text, start, statistic), &e))?;
        }
        paper.experiments.push(experiment);
    }
    for table in file.claim {
        let start = table.span().start;
        let wrong = |e: String| at(start, &e);
        let mut claim: Claim = entry(table, "id", "a claim").map_err(wrong)?;
        claim.is_grounded().map_err(|e| wrong(format!("{}: {e}", claim.id)))?;
        if let Some(long) = file.sources.get(&claim.source) {
            claim.source.clone_from(long);
        }
        fits(&claim, &paper).map_err(wrong)?;
        let experiment = paper.experiment(claim.experiment());
        for statistic in claim.measure.statistics() {
            let known = experiment.map_or(Ok(()), |of| known_class(statistic, of));
            known
                .map_err(|e| at(place_of(text, start, statistic), &format!("{}: {e}", claim.id)))?;
        }
        paper.claims.push(claim);
    }
    for table in file.cause {
        let start = table.span().start;
        let wrong = |e: String| at(start, &e);
        let cause: Cause = entry(table, "name", "a cause").map_err(wrong)?;
        cause_fits(&cause, &paper).map_err(wrong)?;
        paper.causes.push(cause);
    }
    if let Some(reading) = file.reading {
        let n = reading.get_ref().trim().chars().count();
        if n > READING {
            let text = format!("`reading` has at most {READING} characters (got {n})");
            return Err(at(reading.span().start, &text));
        }
        paper.reading = reading.get_ref().split_whitespace().collect::<Vec<_>>().join(" ");
    }
    named(&paper.name).map_err(|e| at(file.name.span().start, &e))?;
    if let Some(baselines) = file.baselines {
        let start = baselines.span().start;
        paper.baselines = baselines.into_inner();
        baselines_fit(&paper).map_err(|e| at(start, &e))?;
    }
    Ok(paper)
}

/// A table of the file; an error names it by its text under `key`, or as `otherwise`.
fn entry<T: DeserializeOwned>(
    table: Spanned<toml::Table>,
    key: &str,
    otherwise: &str,
) -> Result<T, String> {
    let table = table.into_inner();
    let name = table.get(key).and_then(toml::Value::as_str).unwrap_or(otherwise).to_string();
    table.try_into().map_err(|error| hinted(&name, &error))
}

/// Where a statistic's class stands behind the start of its table.
fn place_of(text: &str, start: usize, statistic: &Statistic) -> usize {
    let Some((key, class)) = statistic.class() else { return start };
    let behind = |from: usize, what: &str| Some(from + text.get(from..)?.find(what)?);
    let place = behind(start, key).and_then(|at| behind(at, &format!("\"{class}\"")));
    place.unwrap_or(start)
}

/// Whether the scenario of an experiment has a statistic's class; else the error with the nearest.
fn known_class(statistic: &Statistic, experiment: &Experiment) -> Result<(), String> {
    let (Some((key, class)), Some(known)) = (statistic.class(), classes(&experiment.text)) else {
        return Ok(());
    };
    if known.iter().any(|known| known == class) {
        return Ok(());
    }
    let near = nearest(class, known.iter().map(String::as_str))
        .map_or(String::new(), |nearest| format!("; is it {nearest}?"));
    Err(format!("`{key}`: there is no class {class} (of {}){near}", known.join(", ")))
}

/// The classes of a scenario's flows: those by size, and each traffic by its name or its kind.
/// `None` if it has no traffic, or is no TOML: other errors report that.
fn classes(scenario: &str) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Named {
        name: Option<String>,
        kind: Option<String>,
    }
    #[derive(Deserialize)]
    struct Traffics {
        #[serde(default)]
        traffic: Vec<Named>,
    }
    let traffics: Traffics = toml::from_str(scenario).ok()?;
    let own: Vec<String> =
        traffics.traffic.into_iter().filter_map(|Named { name, kind }| name.or(kind)).collect();
    let by_size = ["all", "mice", "elephants"].map(String::from);
    (!own.is_empty()).then(|| own.into_iter().chain(by_size).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;
    use millpond_results::Lies;

    const PAPER_TEXT: &str = r#"
name = "mine"
title = "A paper of mine"
year = 2026

[[experiment]]
name = "two"
title = "two flows"
scenario = "two.toml"
schemes = [["plain", "Plain"], ["fast", "Fast"]]
load-axis = "load"
full = { loads = [[100, ""]], seeds = [1, 2], set = ["duration=1ms"] }
quick = { seeds = [1, 1], note = "one seed" }

[[claim]]
id = "A1"
source = "page 1"
statement = "Fast is faster"
kind = "published"
at-most = 0
measure = { kind = "change", experiment = "two", load = 100, of = "fast", than = "plain",
            statistic = { flows = ["flows", "mean"] } }
"#;

    fn read_text(text: &str) -> Result<Paper, String> {
        let scenario = |name: &str| {
            let text = "[[traffic]]\nname = \"flows\"\n[[traffic]]\nkind = \"incast\"\n";
            if name == "two.toml" { Ok(text.into()) } else { Err("is not there".into()) }
        };
        read("mine", text, scenario).map_err(|e| e.to_string())
    }

    #[test]
    fn a_paper_is_a_file() {
        let paper = read_text(PAPER_TEXT).unwrap();
        let experiment = &paper.experiments[0];
        assert_eq!((paper.name.as_str(), experiment.scenario.as_str()), ("mine", "mine/two.toml"));
        let quick = experiment.runs(Effort::Quick).unwrap();
        assert_eq!(quick.set.0, [("duration".to_string(), "1ms".to_string())]);
        assert_eq!((quick.loads, quick.seeds), (vec![(100.0, String::new())], (1, 1)));
        assert_eq!(paper.claims[0].accept(), [None, Some(0.0)]);
    }

    /// A right text, a wrong one in its place, and how the error begins.
    const MISTAKES: &[(&str, &str, &str)] = &[
        (
            "title = \"two flows\"",
            "titel = \"two flows\"",
            "mine/paper.toml:6: two: is `titel` meant to be `title`? unknown field `titel`",
        ),
        (
            "two.toml",
            "three.toml",
            "mine/paper.toml:6: two: scenario \"three.toml\" in mine: is not there",
        ),
        (
            "set = [\"duration=1ms\"]",
            "set = [\"duration\"]",
            "mine/paper.toml:6: two: `set` has KEY=VALUE pairs",
        ),
        (
            "than = \"plain\"",
            "than = \"plian\"",
            "mine/paper.toml:15: A1: there is no scheme plian; is it plain?",
        ),
        (
            "flows = [\"flows\", ",
            "flows = [\"flowz\", ",
            "mine/paper.toml:22: A1: `flows`: there is no class flowz (of flows, incast, all, \
             mice, elephants); is it flows?",
        ),
        (
            "load-axis = \"load\"",
            "load-axis = \"load\"\nshows = [[\"p50\", { rounds = [\"insect\", \"p50\"] }]]",
            "mine/paper.toml:12: `rounds`: there is no class insect",
        ),
        (
            "experiment = \"two\",",
            "experiment = \"tow\",",
            "mine/paper.toml:15: A1: there is no experiment tow",
        ),
        ("load = 100,", "load = 50,", "mine/paper.toml:15: A1: experiment two has no load 50"),
        ("at-most = 0\n", "", "mine/paper.toml:15: A1 cannot fail"),
        (
            "kind = \"published\"",
            "kind = \"fitted\"",
            "mine/paper.toml:15: A1: a fitted claim needs the number `paper`",
        ),
        (
            "kind = \"change\"",
            "kind = \"chance\"",
            "mine/paper.toml:15: A1: is `chance` meant to be `change`?",
        ),
        ("than = \"plain\"", "than = \"fast\"", "mine/paper.toml:15: A1 compares fast with itself"),
        (
            "[\"fast\", \"Fast\"]",
            "[\"plain\", \"Fast\"]",
            "mine/paper.toml:6: two has the scheme plain twice",
        ),
        ("year = 2026", "year = ", "mine/paper.toml:4:"),
        (
            "name = \"mine\"",
            "name = \"../mine\"",
            "mine/paper.toml:2: a name has letters, digits and hyphens",
        ),
        (
            "seeds = [1, 1]",
            "seeds = [2, 1]",
            "mine/paper.toml:6: two: `seeds` are the first and the last (got 2, 1)",
        ),
        (
            "seeds = [1, 1]",
            "sets = [1, 1]",
            "mine/paper.toml:6: two: quick: is `sets` meant to be `set`?",
        ),
        (
            "loads = [[100, \"\"]]",
            "loads = []",
            "mine/paper.toml:6: two: without `load-key` there is one load",
        ),
        ("at-most = 0", "at-most = 0\nat-least = 5", "mine/paper.toml:15: A1 cannot hold"),
        (
            "[[experiment]]",
            "[baselines]\noff = [[\"fast\", \"plane\"]]\n[[experiment]]",
            "mine/paper.toml:6: baselines: there is no scheme plane; is it plain?",
        ),
    ];

    #[test]
    fn a_reading_and_causes_are_read_and_checked() {
        let cause = "[[cause]]\nname = \"stalls\"\ntitle = \"Stalls\"\nclaims = [\"A1\"]\n\
                     lies = \"ours\"\ntext = \"a timer\"\n";
        let with = |of: &str| format!("reading = \"What\\nholds.\"\n{PAPER_TEXT}{of}");
        let paper = read_text(&with(cause)).unwrap();
        assert_eq!((paper.reading.as_str(), paper.causes[0].lies), ("What holds.", Lies::Ours));
        assert_eq!(paper.cause("A1").map(|cause| cause.title.as_str()), Some("Stalls"));
        let second = cause.replace("stalls", "drops");
        for (text, expected) in [
            (cause.replace("A1", "A2"), "24: stalls: there is no claim A2"),
            (cause.replace("[\"A1\"]", "[]"), "24: stalls: `claims` is empty"),
            (cause.replace("\"A1\"", "\"A1\", \"A1\""), "24: stalls: claim A1 is in the cause"),
            (cause.replace("ours", "our"), "24: stalls: is `our` meant to be `ours`?"),
            (cause.replace("text", "texts"), "24: stalls: is `texts` meant to be `text`?"),
            (format!("{cause}{cause}"), "30: there are two causes stalls"),
            (format!("{cause}{second}"), "30: drops: claim A1 is in the cause stalls, too"),
        ] {
            let error = read_text(&with(&text)).map(|_| ()).unwrap_err();
            let expected = format!("mine/paper.toml:{expected}");
            assert!(error.starts_with(&expected), "{error}\nexpected: {expected}");
        }
        let long = with(cause).replace("What", &"long ".repeat(200));
        let error = read_text(&long).map(|_| ()).unwrap_err();
        assert!(error.starts_with("mine/paper.toml:1: `reading` has at most 900"), "{error}");
    }

    #[test]
    fn errors_name_the_line_of_the_claim_or_experiment() {
        for (right, wrong, expected) in MISTAKES {
            let error = read_text(&PAPER_TEXT.replacen(right, wrong, 1)).map(|_| ()).unwrap_err();
            assert!(error.starts_with(expected), "{error}\nexpected: {expected}");
        }
        let twice = format!("{PAPER_TEXT}{}", &PAPER_TEXT[PAPER_TEXT.find("[[claim]]").unwrap()..]);
        assert!(read_text(&twice).map(|_| ()).unwrap_err().contains("there are two claims A1"));
        let (experiment, claim) =
            (PAPER_TEXT.find("[[experiment]]").unwrap(), PAPER_TEXT.find("[[claim]]").unwrap());
        let twice = format!("{}{}", &PAPER_TEXT[..claim], &PAPER_TEXT[experiment..]);
        assert!(
            read_text(&twice).map(|_| ()).unwrap_err().contains("there are two experiments two")
        );
    }
}
