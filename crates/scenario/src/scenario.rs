//! A scenario: the text with its variants, read once, from which plans are made.
//!
//! The files that it names are read once, however many plans are made of it.
//!
//! Invariant: a scenario that parses has no unknown key and no value of a wrong form, in itself or
//! in any variant; what remains for [`Scenario::plan`] to find is what takes numbers together, or
//! files.

use crate::assemble::assemble;
use crate::composition::is_whole_in;
use crate::error::{Errors, Problem, Report, suggestion};
use crate::files::{Files, FilesAt, folder_of};
use crate::half::Half;
use crate::idle;
use crate::overrides::{Override, apply, flatten, from_table};
use crate::plan::Plan;
use crate::read::{Reader, Section, read};
use crate::settings::Settings;
use crate::source::{Sources, Span};
use crate::tree::{self, Datum, Layer, Node, Table, parse_path, parse_value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longer texts are refused: places are 32-bit.
const TEXT_MAX: usize = 256 << 20;

#[derive(Clone, Debug)]
pub struct Scenario {
    sources: Sources,
    /// Without the variants, so that making a plan of one costs the same however many there are.
    root: Table,
    variants: Vec<Variant>,
    numbers: BTreeMap<String, usize>,
    files: Arc<Files>,
    /// The folder that relative file names are relative to.
    base: PathBuf,
    /// The scenario's name where the text has none.
    stem: String,
}

#[derive(Clone, Debug)]
struct Variant {
    name: String,
    /// In a sentence or two; empty if it has none.
    about: String,
    set: Vec<Override>,
}

impl Scenario {
    /// Reads a scenario's text. `name` stands for the text in messages ("microburst.toml"); without
    /// its extension it is the scenario's name where the text gives none. Files that the text names
    /// are looked for in the current directory.
    ///
    /// # Errors
    /// All errors of syntax, keys and values, of the scenario and of each variant; or a text that
    /// is too long.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, Errors> {
        let mut sources = Sources::default();
        let mut report = Report::default();
        if text.len() > TEXT_MAX {
            sources.add(name, "");
            report.add(Span::default(), Problem::Syntax(format!("longer than {TEXT_MAX} bytes")));
            return Err(report.into_errors(&sources));
        }
        let source = sources.add(name, text);
        let mut root = tree::parse(source, text, &mut report);
        if !report.is_clean() {
            return Err(report.into_errors(&sources));
        }
        let stem = Path::new(name)
            .file_stem()
            .map_or("scenario".into(), |s| s.to_string_lossy().into_owned());
        let variants = read_variants(&root, &mut report);
        root.entries.retain(|entry| entry.key != "variant");
        // Of two that are called the same, which is an error, the first.
        let numbers = variants.iter().enumerate().rev().map(|(i, v)| (v.name.clone(), i)).collect();
        let files = Arc::default();
        let scenario =
            Scenario { sources, root, variants, numbers, files, base: PathBuf::new(), stem };
        for variant in scenario.all() {
            scenario.settings(variant, &[], &mut report);
        }
        if report.is_clean() { Ok(scenario) } else { Err(report.into_errors(&scenario.sources)) }
    }

    /// Reads a scenario's file. Files that it names are relative to its folder.
    ///
    /// # Errors
    /// The file cannot be read, or its text has the errors of [`Scenario::parse`].
    pub fn load(path: &Path) -> Result<Scenario, Errors> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| {
            let mut sources = Sources::default();
            let source = sources.add(&name, "");
            let mut report = Report::default();
            let problem =
                Problem::File { file: name.clone(), reason: format!("cannot be read: {e}") };
            report.add(Span { source, start: 0, end: 0 }, problem);
            report.into_errors(&sources)
        })?;
        let mut scenario = Scenario::parse(&name, &text)?;
        scenario.base = folder_of(path).to_path_buf();
        Ok(scenario)
    }

    /// The same scenario with its files relative to `base`.
    pub fn with_base(mut self, base: &Path) -> Scenario {
        self.base = base.to_path_buf();
        self.files = Arc::default();
        self
    }

    /// The text as it was read.
    pub fn text(&self) -> &str {
        self.sources.first()
    }

    /// The names of the variants, in order.
    pub fn variants(&self) -> Vec<&str> {
        self.variants.iter().map(|v| v.name.as_str()).collect()
    }

    pub fn name(&self) -> &str {
        self.root.text("name").unwrap_or(&self.stem)
    }

    /// Returns the plan of a variant (or of the scenario without any), changed by overrides `(key,
    /// value)`, in their order. Values are read as TOML; a value that is no TOML is a text. A seed
    /// given here wins over all others.
    ///
    /// # Errors
    /// There is no such variant; an override has an unknown key or a wrong value; or the parts do
    /// not fit each other, with the place of each error.
    pub fn plan(
        &self,
        variant: Option<&str>,
        overrides: &[(String, String)],
        seed: Option<u64>,
    ) -> Result<Plan, Errors> {
        let mut report = Report::default();
        let mut sources = self.sources.clone();
        let changes = read_overrides(overrides, &mut sources, &mut report);
        let index = match variant {
            None => None,
            Some(name) => match self.numbers.get(name) {
                Some(i) => Some(*i),
                None => {
                    let problem = Problem::Unknown { what: "variant".into(), name: name.into() };
                    report.push(Span::default(), problem, suggestion(name, &self.variants()));
                    return Err(report.into_errors(&sources));
                }
            },
        };
        let mut settings = self.settings(index, &changes, &mut report);
        self.demote_unused(index, &changes, &mut report);
        if let Some(seed) = seed {
            settings.run.seed = seed;
        }
        let files = FilesAt { files: &self.files, base: &self.base };
        let plan =
            if report.is_clean() { assemble(settings, files, variant, &mut report) } else { None };
        match plan {
            Some(mut plan) if report.is_clean() => {
                let halves = self.without_counterpart(index, &changes, &report.halves);
                report.warnings.extend(halves.iter().map(Half::text));
                plan.warnings = report.warnings;
                if let Some(at) = index {
                    plan.variant_about.clone_from(&self.variants[at].about);
                }
                Ok(plan)
            }
            _ => Err(report.into_errors(&sources)),
        }
    }

    /// A sentence for each key that is written somewhere and that neither the scenario nor any of
    /// its variants uses.
    pub fn idle(&self, overrides: &[(String, String)]) -> Vec<String> {
        let (mut report, mut sources) = (Report::default(), self.sources.clone());
        let changes = read_overrides(overrides, &mut sources, &mut report);
        let mut keys: BTreeMap<String, Option<String>> = BTreeMap::new();
        for variant in self.all() {
            for (key, why) in idle::written(&self.settings(variant, &changes, &mut report)) {
                let known = keys.entry(key).or_insert_with(|| why.clone());
                *known = known.take().and(why);
            }
        }
        let sentence =
            |(key, why): (String, Option<String>)| Some(format!("`{key}` has no effect: {}", why?));
        keys.into_iter().filter_map(sentence).collect()
    }

    /// A sentence for each override that replaces what a variant sets itself: the variant is then
    /// no other than the rest in it. An override that is wrong is an error of [`Scenario::plan`].
    pub fn masked(&self, variant: Option<&str>, overrides: &[(String, String)]) -> Vec<String> {
        let (mut report, mut sources) = (Report::default(), self.sources.clone());
        let changes = read_overrides(overrides, &mut sources, &mut report);
        let own = variant.and_then(|name| self.numbers.get(name)).map(|i| &self.variants[*i].set);
        let replaces =
            |change: &&Override| own.iter().copied().flatten().any(|o| o.path == change.path);
        let sentence = |change: &Override| {
            let key = change.path.join(".");
            format!("`{key}` is given for all variants and replaces this variant's own value")
        };
        changes.iter().filter(replaces).map(sentence).collect()
    }

    /// The scenario as it stands, and each of its variants.
    fn all(&self) -> impl Iterator<Item = Option<usize>> + use<> {
        std::iter::once(None).chain((0..self.variants.len()).map(Some))
    }

    /// The settings of a variant after all changes; problems go to the report.
    fn settings(
        &self,
        variant: Option<usize>,
        changes: &[Override],
        report: &mut Report,
    ) -> Settings {
        let mut root = self.root.clone();
        if let Some(i) = variant {
            apply(&mut root, &self.variants[i].set, Layer::Variant, report);
        }
        apply(&mut root, changes, Layer::Override, report);
        let mut settings = read(&root, Span::default(), report);
        if !settings.is_written("name") {
            settings.run.name = self.stem.clone();
        }
        settings
    }

    /// The halves of mechanisms that this variant or an override chooses itself, or that are whole
    /// in no other variant (or the scenario without any): what all share may be for another.
    fn without_counterpart(
        &self,
        variant: Option<usize>,
        changes: &[Override],
        halves: &[Half],
    ) -> Vec<Half> {
        let set = variant.map_or(&[][..], |i| &self.variants[i].set);
        let is_own = |half: &Half| {
            let place = |change: &Override| change.path.join(".");
            set.iter().chain(changes).any(|change| place(change).starts_with(half.place))
        };
        let (mut left, mut shared): (Vec<Half>, Vec<Half>) = halves.iter().partition(|h| is_own(h));
        let mut others = self.all().filter(|other| *other != variant);
        while let (false, Some(other)) = (shared.is_empty(), others.next()) {
            let mut report = Report::default();
            let other = self.settings(other, changes, &mut report);
            shared.retain(|half| !report.is_clean() || !is_whole_in(half, &other));
        }
        left.append(&mut shared);
        left
    }

    /// A `--set` that this variant does not use is no error if another one (or the scenario without
    /// any) does: then several variants were given the same overrides, and a note names it.
    fn demote_unused(&self, variant: Option<usize>, changes: &[Override], report: &mut Report) {
        let is_unused = |span: &Span, problem: &Problem| {
            span.source > 0
                && matches!(problem, Problem::Unused { .. } | Problem::UnknownKey { .. })
        };
        if !report.problems.iter().any(|(span, problem, _)| is_unused(span, problem)) {
            return;
        }
        // The overrides that no variant looked at so far uses. Most overrides are used by one of
        // the first.
        let mut unused: BTreeSet<Span> = report
            .problems
            .iter()
            .filter(|(span, problem, _)| is_unused(span, problem))
            .map(|p| p.0)
            .collect();
        let mut others = self.all().filter(|other| *other != variant);
        while let (false, Some(other)) = (unused.is_empty(), others.next()) {
            let mut report = Report::default();
            self.settings(other, changes, &mut report);
            let here = |at: &Span| {
                report.problems.iter().any(|(span, p, _)| span == at && is_unused(span, p))
            };
            unused.retain(here);
        }
        let problems = std::mem::take(&mut report.problems);
        for (span, problem, help) in problems {
            if is_unused(&span, &problem) && !unused.contains(&span) {
                report.warn(format!("{problem} in this variant"));
            } else {
                report.problems.push((span, problem, help));
            }
        }
    }
}

/// The variants of a scenario, of which no two have the same name.
fn read_variants(root: &Table, report: &mut Report) -> Vec<Variant> {
    let mut names = BTreeSet::new();
    let mut reader = Reader { report };
    reader.each(&mut Section::new("", Some(root)), "variant", |reader, _, node, table| {
        let variant = read_variant(node, table, reader.report);
        if let Some(name) = table.get("name")
            && !names.insert(variant.name.clone())
        {
            let text = format!("two variants are called {:?}", variant.name);
            reader.report.value(name.node.span, "variant.name", text);
        }
        Some(variant)
    })
}

fn read_variant(item: &Node, table: &Table, report: &mut Report) -> Variant {
    let mut variant = Variant { name: String::new(), about: String::new(), set: Vec::new() };
    for entry in &table.entries {
        match (entry.key.as_str(), &entry.node.datum) {
            ("name", Datum::Text(name)) => {
                if let Err(message) = crate::file_name::check_folder_name(name) {
                    report.value(entry.node.span, "variant.name", message);
                }
                variant.name = name.clone();
            }
            ("about", Datum::Text(about)) => variant.about = about.clone(),
            ("set", Datum::Table(set)) => variant.set = from_table(set, report),
            (key @ ("name" | "about"), _) => {
                report.value(entry.node.span, &format!("variant.{key}"), "expected a text");
            }
            ("set", _) => report.value(
                entry.node.span,
                "variant.set",
                "expected a table such as { \"seed\" = 2 }",
            ),
            (key, _) => {
                let problem = Problem::UnknownKey { key: key.into(), table: "[[variant]]".into() };
                report.push(entry.key_span, problem, suggestion(key, &["name", "about", "set"]));
            }
        }
    }
    if table.get("name").is_none() {
        report.add(item.span, Problem::Missing { table: "[[variant]]".into(), key: "name".into() });
    }
    variant
}

/// Reads `--set` pairs; each is a source of its own, so that messages point into it.
fn read_overrides(
    pairs: &[(String, String)],
    sources: &mut Sources,
    report: &mut Report,
) -> Vec<Override> {
    let mut list = Vec::new();
    for (key, value) in pairs {
        let source = sources.add("--set", &format!("{key}={value}"));
        let key_span = Span { source, start: 0, end: key.len() as u32 };
        let span =
            Span { source, start: key.len() as u32 + 1, end: (key.len() + 1 + value.len()) as u32 };
        let Some(path) = parse_path(key) else {
            let problem =
                Problem::Value { key: key.clone(), message: "is not a dotted key".into() };
            report.help(key_span, problem, "write KEY=VALUE, such as switch.path.kind=spray");
            continue;
        };
        let text = Node { datum: Datum::Text(value.clone()), span };
        let mut node = parse_value(source, value).unwrap_or(text);
        node.place_at(span, Layer::Override);
        let from = list.len();
        flatten(path, key_span, node, &mut list);
        list[from..].iter_mut().for_each(|c| c.key_span = key_span);
    }
    list
}
