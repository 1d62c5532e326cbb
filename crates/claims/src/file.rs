//! A paper as a file: `paper.toml`, beside the scenarios of its experiments.
//!
//! The file is the only place of a paper's experiments and claims. The papers of this project are
//! compiled in from `papers/`; any other folder with a `paper.toml` is read in the same way.
//!
//! Invariant: a paper that is read has passed `checks`, and lives as long as the process.

use crate::baseline::Baselines;
use crate::checks::{baselines_fit, fits, is_sound, named};
use crate::claim::{Claim, Value};
use crate::error::Error;
use crate::experiment::{Experiment, Published, Runs};
use crate::lists::{Settings, list, settings};
use crate::measure::Measure;
use crate::paper::Paper;
use crate::statistic::Statistic;
use include_dir::{Dir, include_dir};
use millpond_results::{ClaimKind, Keep, World};
use millpond_scenario::folder_of;
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The name of the file in a paper's folder.
pub const PAPER: &str = "paper.toml";

static BUILT: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../papers");

/// The papers that are compiled in, by year.
///
/// # Panics
///
/// If one of them is not valid; a test reads all.
pub fn papers() -> &'static [&'static Paper] {
    static READ: OnceLock<Vec<&'static Paper>> = OnceLock::new();
    READ.get_or_init(|| {
        let read = |dir: &'static Dir<'static>| {
            let folder = format!("papers/{}", dir.path().display());
            let text = |name: &str| {
                dir.get_file(dir.path().join(name)).and_then(|file| file.contents_utf8())
            };
            let paper = text(PAPER)?;
            let scenario =
                |name: &str| text(name).map(String::from).ok_or_else(|| "is not there".to_string());
            Some(read(&folder, paper, scenario).unwrap_or_else(|error| panic!("{error}")))
        };
        let mut all: Vec<&'static Paper> = BUILT.dirs().filter_map(read).collect();
        all.sort_by_key(|paper| (paper.year, paper.name));
        all
    })
}

/// A file of the folder of a paper that is compiled in.
pub(crate) fn built_file(paper: &Paper, name: &str) -> Option<&'static str> {
    let file = BUILT.get_file(Path::new(paper.name).join(name))?;
    file.contents_utf8()
}

/// The paper of a name: one that is compiled in, or the one in a folder.
///
/// # Errors
///
/// If there is none of this name, with the nearest; or as [`read_paper`].
pub fn find_paper(name: &str) -> Result<&'static Paper, Error> {
    if let Some(paper) = papers().iter().find(|paper| paper.name == name) {
        return Ok(*paper);
    }
    let path = Path::new(name);
    let folder = if path.ends_with(PAPER) { folder_of(path) } else { path };
    if folder.is_dir() || folder.components().count() > 1 {
        return read_paper(folder);
    }
    let known: Vec<&str> = papers().iter().map(|paper| paper.name).collect();
    let nearest = millpond_scenario::nearest(name, known.iter().copied());
    let hint = nearest.map_or(String::from("."), |nearest| format!(". Is it {nearest}?"));
    Err(Error::Usage(format!(
        "there is no paper {name}{hint} Built in are {}; a folder with a paper.toml is one, too",
        known.join(", ")
    )))
}

/// Reads the paper in a folder.
///
/// It stays in memory until the process ends, as claims and experiments refer to its names.
///
/// # Errors
///
/// If a file cannot be read, or `paper.toml` is not valid: the message has file and line.
pub fn read_paper(folder: &Path) -> Result<&'static Paper, Error> {
    let file = folder.join(PAPER);
    let text = |path: &Path| std::fs::read_to_string(path).map_err(|e| e.to_string());
    let paper = text(&file).map_err(|e| Error::Usage(format!("{}: {e}", file.display())))?;
    read(&folder.display().to_string(), &paper, |name| text(&folder.join(name)))
}

/// The content of `paper.toml` besides experiments and claims.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    name: &'static str,
    title: &'static str,
    /// Of its publication: the order in which papers are listed.
    year: u16,
    /// Long texts by a short name, for the `source` of claims.
    #[serde(default, borrow)]
    sources: BTreeMap<&'static str, &'static str>,
    #[serde(default)]
    baselines: Baselines,
    #[serde(rename = "experiment")]
    _experiments: Vec<IgnoredAny>,
    #[serde(rename = "claim")]
    _claims: Vec<IgnoredAny>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ExperimentFile {
    name: &'static str,
    title: &'static str,
    scenario: &'static str,
    #[serde(deserialize_with = "list")]
    schemes: &'static [(&'static str, &'static str)],
    load_axis: &'static str,
    load_key: Option<&'static str>,
    #[serde(default)]
    world: World,
    #[serde(default = "summary")]
    keep: Keep,
    full: Runs,
    /// A [`QuickFile`], or the reason why `--quick` leaves the experiment out.
    #[serde(rename = "quick")]
    _quick: IgnoredAny,
    #[serde(default, deserialize_with = "list")]
    shows: &'static [(&'static str, Statistic)],
    #[serde(default, deserialize_with = "list")]
    published: &'static [Published],
}

/// Of `--quick`: what is not given is as in full.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct QuickFile {
    #[serde(borrow)]
    loads: Option<Vec<(f64, &'static str)>>,
    seeds: (u64, u64),
    #[serde(default, deserialize_with = "some_settings")]
    set: Option<Settings>,
    #[serde(default)]
    note: &'static str,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ClaimFile {
    id: &'static str,
    source: &'static str,
    statement: &'static str,
    /// Whose the claim is.
    kind: ClaimKind,
    /// The number that it rests on; none: an order or a bound.
    paper: Option<f64>,
    /// How a derived number is computed, or which parameter a fitted one gave.
    how: Option<&'static str>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    measure: Measure,
    quick: Option<&'static str>,
    #[serde(default)]
    note: &'static str,
}

/// The files that are kept of runs unless an experiment needs more.
fn summary() -> Keep {
    Keep::Summary
}

fn some_settings<'de: 'static, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Settings>, D::Error> {
    settings(from).map(Some)
}

/// Reads a paper; `scenario` gives the text of a file beside it.
fn read(
    folder: &str,
    text: &str,
    scenario: impl Fn(&str) -> Result<String, String>,
) -> Result<&'static Paper, Error> {
    let file = format!("{folder}/{PAPER}");
    let at = |offset: usize, what: &dyn std::fmt::Display| {
        let line = text.get(..offset).unwrap_or_default().matches('\n').count() + 1;
        Error::Usage(format!("{file}:{line}: {what}"))
    };
    let tree = DeTable::parse(text)
        .map_err(|e| at(e.span().map_or(0, |span| span.start), &e.message()))?;
    let whole: &'static Json = Box::leak(Box::new(json_of_table(tree.get_ref())));
    let of = File::deserialize(whole).map_err(|e| at(0, &e))?;
    // Each experiment and each claim, with the place where it begins, for errors.
    let each = |key: &str| {
        let places = tables(tree.get_ref(), key).iter().map(|table| (table.span().start, table));
        whole[key].as_array().into_iter().flatten().zip(places)
    };
    let mut experiments = Vec::new();
    for (value, (start, place)) in each("experiment") {
        let name = value["name"].as_str().unwrap_or("an experiment");
        let read = ExperimentFile::deserialize(value).map_err(|e| at(start, &hinted(name, &e)))?;
        let file = read.scenario;
        let text = scenario(file)
            .map_err(|e| at(start, &format!("{name}: scenario \"{file}\" in {folder}: {e}")))?;
        let experiment =
            read.experiment(folder, text, &value["quick"]).map_err(|e| at(start, &e))?;
        is_sound(&experiment, &experiments).map_err(|e| at(start, &e))?;
        strange_class(place, experiment.text).map_or(Ok(()), |(start, e)| Err(at(start, &e)))?;
        experiments.push(experiment);
    }
    let mut claims = Vec::new();
    for (value, (start, place)) in each("claim") {
        let id = value["id"].as_str().unwrap_or("a claim");
        let read = ClaimFile::deserialize(value).map_err(|e| at(start, &hinted(id, &e)))?;
        let claim = read.claim(&of.sources).map_err(|e| at(start, &format!("{id}: {e}")))?;
        fits(&claim, &experiments, &claims).map_err(|e| at(start, &e))?;
        let text = experiments.iter().find(|of| of.name == claim.experiment()).map(|of| of.text);
        strange_class(place, text.unwrap_or_default())
            .map_or(Ok(()), |(start, e)| Err(at(start, &format!("{id}: {e}"))))?;
        claims.push(claim);
    }
    let place = |key: &str| tree.get_ref().get(key).map_or(0, |value| value.span().start);
    named(of.name).map_err(|e| at(place("name"), &e))?;
    baselines_fit(&of.baselines, &experiments, &claims).map_err(|e| at(place("baselines"), &e))?;
    Ok(Box::leak(Box::new(Paper {
        name: of.name,
        title: of.title,
        year: of.year,
        experiments: experiments.leak(),
        claims: claims.leak(),
        baselines: of.baselines,
    })))
}

impl ExperimentFile {
    fn experiment(
        self,
        folder: &str,
        text: String,
        quick: &'static Json,
    ) -> Result<Experiment, String> {
        let full = self.full;
        let quick = match quick {
            Json::String(why) => Err(why.as_str()),
            table => Ok(QuickFile::deserialize(table)
                .map_err(|e| hinted(&format!("{}: quick", self.name), &e))?
                .runs(full)),
        };
        Ok(Experiment {
            name: self.name,
            title: self.title,
            scenario: format!("{folder}/{}", self.scenario).leak(),
            text: text.leak(),
            schemes: self.schemes,
            load_axis: self.load_axis,
            load_key: self.load_key,
            full,
            quick,
            world: self.world,
            keep: self.keep,
            shows: self.shows,
            published: self.published,
        })
    }
}

impl QuickFile {
    fn runs(self, full: Runs) -> Runs {
        let loads = self.loads.map_or(full.loads, |loads| &*loads.leak());
        Runs { loads, seeds: self.seeds, set: self.set.unwrap_or(full.set), note: self.note }
    }
}

impl ClaimFile {
    fn claim(self, sources: &BTreeMap<&'static str, &'static str>) -> Result<Claim, String> {
        let how = |kind: &str| self.how.ok_or_else(|| format!("a {kind} number needs `how`"));
        let paper = match (self.kind, self.paper) {
            (ClaimKind::Published, Some(value)) => Value::Published(value),
            (ClaimKind::Published, None) => Value::Shape,
            (ClaimKind::Released, Some(value)) => Value::Released(value),
            (ClaimKind::Released, None) => {
                return Err("a released claim needs the number `paper`".into());
            }
            (ClaimKind::Derived, Some(value)) => Value::Derived(value, how("derived")?),
            (ClaimKind::Derived, None) => Value::Arithmetic,
            (ClaimKind::Fitted, Some(value)) => Value::Fitted(value, how("fitted")?),
            (ClaimKind::Fitted, None) => {
                return Err("a fitted claim needs the number `paper`".into());
            }
            (ClaimKind::Remembered, None) => Value::Remembered,
            (ClaimKind::Ours, None) => Value::Ours,
            (ClaimKind::Remembered | ClaimKind::Ours, Some(_)) => {
                return Err("a claim that is remembered or ours has no number `paper`".into());
            }
        };
        Ok(Claim {
            id: self.id,
            source: sources.get(self.source).copied().unwrap_or(self.source),
            statement: self.statement,
            paper,
            accept: [self.at_least, self.at_most],
            measure: self.measure,
            quick: self.quick,
            note: self.note,
        })
    }
}

/// The tables of an array of tables; none if there is no such array.
fn tables<'t, 'text>(of: &'t DeTable<'text>, key: &str) -> &'t [Spanned<DeValue<'text>>] {
    match of.get(key).map(Spanned::get_ref) {
        Some(DeValue::Array(tables)) => tables,
        _ => &[],
    }
}

/// Statistics of a class of traffic. Calls are missing here: programs name their own.
const OF_A_CLASS: [&str; 9] = [
    "flows",
    "acknowledged",
    "slowdown",
    "rounds",
    "bus-bandwidth",
    "over-closed-form",
    "timeouts-per-thousand",
    "rtt-p95",
    "rto-p95",
];

/// The first statistic below `value` whose class the scenario does not have: its place, and the
/// error with the nearest class.
fn strange_class(value: &Spanned<DeValue<'_>>, scenario: &str) -> Option<(usize, String)> {
    let known = classes(scenario)?;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value.get_ref() {
            DeValue::Array(values) => left.extend(values.iter().rev()),
            DeValue::Table(table) => {
                for (key, value) in table.iter() {
                    left.push(value);
                    let key: &str = key.get_ref();
                    let class = match value.get_ref() {
                        DeValue::String(class) => class,
                        DeValue::Array(parts) => match parts.first().map(Spanned::get_ref) {
                            Some(DeValue::String(class)) => class,
                            _ => continue,
                        },
                        _ => continue,
                    };
                    if OF_A_CLASS.contains(&key) && !known.iter().any(|known| known == class) {
                        let names = known.iter().map(String::as_str);
                        let nearest = millpond_scenario::nearest(class, names.clone())
                            .map_or(String::new(), |nearest| format!("; is it {nearest}?"));
                        let all = names.collect::<Vec<_>>().join(", ");
                        let error =
                            format!("`{key}`: there is no class {class} (of {all}){nearest}");
                        return Some((value.span().start, error));
                    }
                }
            }
            _ => {}
        }
    }
    None
}

/// The classes of a scenario's flows: those by size, and each traffic by its name or its kind.
/// `None` if it has no traffic, or is no TOML: other errors report that.
fn classes(scenario: &str) -> Option<Vec<String>> {
    let tree = DeTable::parse(scenario).ok()?;
    let name = |traffic: &Spanned<DeValue<'_>>| {
        let DeValue::Table(table) = traffic.get_ref() else { return None };
        match table.get("name").or(table.get("kind")).map(Spanned::get_ref) {
            Some(DeValue::String(name)) => Some(name.to_string()),
            _ => None,
        }
    };
    let own: Vec<String> = tables(tree.get_ref(), "traffic").iter().filter_map(name).collect();
    let by_size = ["all", "mice", "elephants"].map(String::from);
    (!own.is_empty()).then(|| own.into_iter().chain(by_size).collect())
}

/// An error of a table, with the nearest of the words that it lists for a wrong one.
fn hinted(name: &str, error: &serde_json::Error) -> String {
    let text = error.to_string();
    let mut words = text.split('`').skip(1).step_by(2);
    let wrong = words.next().unwrap_or_default();
    let nearest = millpond_scenario::nearest(wrong, words).filter(|_| text.starts_with("unknown"));
    match nearest {
        Some(nearest) => format!("{name}: is `{wrong}` meant to be `{nearest}`? {text}"),
        None => format!("{name}: {text}"),
    }
}

/// The same value without its places. Dates are texts.
fn json_of(value: &DeValue<'_>) -> Json {
    match value {
        DeValue::String(text) => Json::String(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Json::Null, Json::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Json::Null, Json::from),
        DeValue::Boolean(value) => Json::Bool(*value),
        DeValue::Datetime(time) => Json::String(time.to_string()),
        DeValue::Array(values) => values.iter().map(|value| json_of(value.get_ref())).collect(),
        DeValue::Table(table) => json_of_table(table),
    }
}

fn json_of_table(table: &DeTable<'_>) -> Json {
    let member = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let key: &std::borrow::Cow<'_, str> = key.get_ref();
        (key.to_string(), json_of(value.get_ref()))
    };
    Json::Object(table.iter().map(member).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn read_text(text: &str) -> Result<&'static Paper, String> {
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
        assert_eq!((paper.name, experiment.scenario), ("mine", "mine/two.toml"));
        let quick = experiment.quick.unwrap();
        assert_eq!(
            (quick.set, quick.loads, quick.seeds),
            (&[("duration", "1ms")][..], &[(100.0, "")][..], (1, 1))
        );
        assert_eq!(paper.claims[0].accept, [None, Some(0.0)]);
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
