//! Everything that can be wrong with a scenario, and where.
//!
//! All problems of a text are collected; each has its file, line and column and, where there is
//! one, the repair. The command line renders each through [`miette::Diagnostic`]; [`Errors`] as
//! plain text is `file:line:column: message`.
//!
//! Invariant: text from outside ends here or in a plan, never in a panic.

use crate::excerpt::Excerpt;
use crate::half::Half;
use crate::source::{Places, Sources, Span};
use miette::SourceSpan;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// More problems than this are counted and not listed: nobody reads them, and each repair ends
/// several.
pub const PROBLEMS_LISTED: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    Syntax(String),
    /// No table has such a key here.
    #[error("unknown key `{key}` in {table}")]
    UnknownKey {
        key: String,
        /// Where it stands: "the scenario", `[switch.marking]`.
        table: String,
    },
    /// A key of another kind, which the chosen one does not have.
    #[error("`{key}` has no effect: {place} of kind \"{kind}\" does not use it")]
    Unused { key: String, place: String, kind: String },
    /// A value of the wrong form, with the wrong unit or out of its type's range.
    #[error("`{key}`: {message}")]
    Value { key: String, message: String },
    /// A kind, class, distribution or variant that does not exist.
    #[error("there is no {what} \"{name}\"")]
    Unknown { what: String, name: String },
    /// A key that must be there.
    #[error("{table} needs `{key}`")]
    Missing { table: String, key: String },
    /// Values that are each of the right form but make no network or no traffic.
    #[error("{0}")]
    Impossible(String),
    /// A file that cannot be read or understood.
    #[error("{file}: {reason}")]
    File {
        /// Its name, with the line where there is one.
        file: String,
        reason: String,
    },
}

/// The longest text of a message: a name that is longer was hardly meant as one.
const TEXT_MAX: usize = 1_000;

/// The beginning of a text that is too long for a message.
fn brief(text: String) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

impl Problem {
    /// The same with every text cut to what a message can hold.
    fn brief(self) -> Problem {
        use Problem::*;
        match self {
            Syntax(text) => Syntax(brief(text)),
            UnknownKey { key, table } => UnknownKey { key: brief(key), table: brief(table) },
            Unused { key, place, kind } => Unused { key: brief(key), place: brief(place), kind },
            Value { key, message } => Value { key: brief(key), message: brief(message) },
            Unknown { what, name } => Unknown { what: brief(what), name: brief(name) },
            Missing { table, key } => Missing { table: brief(table), key },
            Impossible(text) => Impossible(brief(text)),
            File { file, reason } => File { file, reason: brief(reason) },
        }
    }
}

#[derive(Clone, Debug, thiserror::Error, miette::Diagnostic)]
#[error("{problem}")]
pub struct ScenarioError {
    pub problem: Problem,
    #[help]
    pub help: Option<String>,
    /// The file's name, or "--set" for an override.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    #[source_code]
    excerpt: Excerpt,
    #[label("here")]
    span: SourceSpan,
    /// Byte offsets in the whole text.
    range: (usize, usize),
    /// Which text: 0 is the scenario's, and then each override has one.
    text: u32,
}

impl ScenarioError {
    pub(crate) fn new(
        sources: &Sources,
        span: Span,
        problem: Problem,
        help: Option<String>,
    ) -> ScenarioError {
        let (source, text) = (sources.get(span), span.source);
        let (start, end) = source.clamp(span);
        let (line, column) = source.line_column(start);
        let (excerpt, span) = Excerpt::new(source, start, end, line, column);
        ScenarioError {
            problem: problem.brief(),
            help: help.map(brief),
            file: source.name.clone(),
            line,
            column,
            excerpt,
            span,
            range: (start, end),
            text,
        }
    }
    /// Byte offsets `[from, to)` in the text.
    pub fn range(&self) -> (usize, usize) {
        self.range
    }
    /// The key that is wrong, unknown or missing, as far as the problem is one of a key.
    pub fn key(&self) -> Option<&str> {
        use Problem::*;
        match &self.problem {
            UnknownKey { key, .. } | Unused { key, .. } => Some(key),
            Value { key, .. } | Missing { key, .. } => Some(key),
            Unknown { what, .. } => what.strip_prefix("kind of "),
            Syntax(_) | Impossible(_) | File { .. } => None,
        }
    }
    /// The name that the writer most likely meant, if one is near.
    pub fn nearest(&self) -> Option<&str> {
        self.help.as_deref()?.strip_prefix(DID_YOU_MEAN)?.strip_suffix("`?")
    }
}

/// All problems of a scenario, never empty. As text, one line each; to show them in their context,
/// render each of `errors` as the diagnostic that it is.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Errors {
    /// In the order of their places; the first [`PROBLEMS_LISTED`].
    pub errors: Vec<ScenarioError>,
    pub more: usize,
}

impl Errors {
    /// The same of overrides of which those from `first` on were given by another option than
    /// "--set".
    pub fn given_by(mut self, option: &str, first: usize) -> Errors {
        for error in self.errors.iter_mut().filter(|error| error.text as usize > first) {
            error.file = option.to_string();
            error.excerpt.name = option.to_string();
        }
        self
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.errors.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:{}:{}: {}", e.file, e.line, e.column, e.problem)?;
            if let Some(help) = &e.help {
                write!(f, " ({help})")?;
            }
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

/// Collects problems and warnings while a scenario is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub problems: Vec<(Span, Problem, Option<String>)>,
    pub warnings: Vec<String>,
    /// The mechanisms whose counterpart is missing.
    pub halves: Vec<Half>,
    /// Of the scenario that is read or was read last.
    pub places: Arc<Places>,
    /// The problems that have been pushed: each is reported once, though several variants meet it.
    seen: HashSet<(Span, Problem)>,
}

impl Report {
    pub fn add(&mut self, span: Span, problem: Problem) {
        self.push(span, problem, None);
    }
    pub fn help(&mut self, span: Span, problem: Problem, help: impl Into<String>) {
        self.push(span, problem, Some(help.into()));
    }
    pub fn push(&mut self, span: Span, problem: Problem, help: Option<String>) {
        if self.seen.insert((span, problem.clone())) {
            self.problems.push((span, problem, help));
        }
    }
    /// Values that make no network or no traffic.
    pub fn impossible(&mut self, path: &str, text: impl Into<String>) {
        self.add(self.at(path), Problem::Impossible(text.into()));
    }
    pub fn clash(&mut self, path: &str, text: impl Into<String>, help: impl Into<String>) {
        self.help(self.at(path), Problem::Impossible(text.into()), help);
    }
    pub fn wrong(&mut self, path: &str, message: impl Into<String>) {
        self.value(self.at(path), path, message);
    }
    pub fn missing(&mut self, path: &str, table: &str, key: &str) {
        self.add(self.at(path), Problem::Missing { table: table.into(), key: key.into() });
    }
    pub fn unknown(&mut self, path: &str, what: &str, name: &str, help: Option<String>) {
        let problem = Problem::Unknown { what: what.into(), name: name.into() };
        self.push(self.at(path), problem, help);
    }
    pub fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }
    /// The place of a key, or of the nearest table around it.
    pub fn at(&self, path: &str) -> Span {
        self.places.near(path)
    }
    /// Notes the place of a key.
    pub fn found(&mut self, path: impl Into<String>, span: Span) {
        Arc::make_mut(&mut self.places).put(path, span);
    }
    pub fn value(&mut self, span: Span, key: &str, message: impl Into<String>) {
        self.add(span, Problem::Value { key: key.to_string(), message: message.into() });
    }
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
    /// All problems, in the order of their places.
    pub fn into_errors(mut self, sources: &Sources) -> Errors {
        self.problems.sort_by_key(|(span, ..)| (span.source, span.start));
        let more = self.problems.len().saturating_sub(PROBLEMS_LISTED);
        let first = self.problems.into_iter().take(PROBLEMS_LISTED);
        Errors {
            errors: first.map(|(s, p, h)| ScenarioError::new(sources, s, p, h)).collect(),
            more,
        }
    }
}

/// The candidate that `name` most likely meant, if any is near.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Long input cannot be near anything, and the distance costs its length squared.
    if name.len() > 64 {
        return None;
    }
    let lower = name.to_lowercase().replace('_', "-");
    let scored = candidates.into_iter().map(|c| (strsim::damerau_levenshtein(&lower, c), c));
    let (distance, best) = scored.min()?;
    let prefix = lower.len() >= 3 && (best.starts_with(&lower) || lower.starts_with(best));
    (distance <= 1 + best.len().min(lower.len()) / 4 || prefix).then_some(best)
}

/// The same as an addition to a message: "; did you mean …?", or nothing.
pub fn meant<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}

/// The same as a help, or another one where none is near.
pub(crate) fn near_or<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    other: impl FnOnce() -> String,
) -> String {
    let near = nearest(name, candidates);
    near.map_or_else(other, |near| format!("{DID_YOU_MEAN}{near}`?"))
}

/// Before the nearest name in a help.
const DID_YOU_MEAN: &str = "did you mean `";

/// "did you mean …?", or the list of what there is.
pub(crate) fn suggestion(name: &str, candidates: &[&str]) -> Option<String> {
    match nearest(name, candidates.iter().copied()) {
        Some(best) => Some(format!("{DID_YOU_MEAN}{best}`?")),
        None if candidates.is_empty() => None,
        None => Some(format!("known here: {}", candidates.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_slips_and_refuses_strangers() {
        let known = ["threshold-packets", "threshold-bytes", "at"];
        assert_eq!(nearest("treshold-packets", known), Some("threshold-packets"));
        assert_eq!(nearest("threshold_bytes", known), Some("threshold-bytes"));
        assert_eq!(nearest("threshold", known), Some("threshold-bytes"));
        assert_eq!(nearest("zebra", known), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn an_error_names_its_key_and_the_nearest_name() {
        let of = |text: &str| crate::Scenario::parse("a.toml", text).unwrap_err().errors.remove(0);
        let slip = of("durration = \"1ms\"");
        assert_eq!((slip.key(), slip.nearest()), (Some("durration"), Some("duration")));
        let kind = of("[topology]\nkind = \"leaf-spin\"");
        assert_eq!((kind.key(), kind.nearest()), (Some("topology"), Some("leaf-spine")));
        assert_eq!((of("=").key(), of("=").nearest()), (None, None));
    }

    #[test]
    fn messages_are_short_whatever_they_name() {
        let name = "é".repeat(100_000);
        let mut sources = Sources::default();
        let source = sources.add("t", &name);
        let mut report = Report::default();
        let span = Span { source, start: 0, end: name.len() as u32 };
        report.push(
            span,
            Problem::Unknown { what: "kind".into(), name: name.clone() },
            suggestion("x", &[&name]),
        );
        let text = report.into_errors(&sources).to_string();
        assert!(text.len() < 6_000 && text.contains('…'), "{} bytes", text.len());
    }
}
