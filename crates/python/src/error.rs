//! Errors of the façade as exceptions of the package `millpond`, one to one.
//!
//! Invariant: an exception has every place, key and nearest name that its Rust error has.

use millpond::{Error, ScenarioErrors};
use pyo3::prelude::*;

/// Options of the command in messages, and the arguments of this package in their place.
const OPTIONS: [(&str, &str); 8] = [
    ("another --out", "another into="),
    ("with --out", "with into="),
    ("with --force", "with force=True"),
    ("--skip-invalid", "skip_invalid=True"),
    ("say --grid KEY=A,B, --variants or --seeds N", "give a grid, variants=True or seeds=N"),
    ("--seeds N or --seeds A..B", "seeds=N or seeds=range(A, B)"),
    ("--variants", "variants=True"),
    ("--set:", "with_:"),
];

/// A message as a user of this package understands it.
fn in_python(text: &str) -> String {
    OPTIONS.iter().fold(text.to_string(), |text, (command, python)| text.replace(command, python))
}

/// A problem of a scenario: file, line, column, key, nearest name and message.
pub type Problem = (String, usize, usize, Option<String>, Option<String>, String);

/// The exception `name` of the package, made of these arguments.
fn exception<'py, A>(py: Python<'py>, name: &str, arguments: A) -> PyErr
where
    A: pyo3::call::PyCallArgs<'py>,
{
    let made = py
        .import("millpond._errors")
        .and_then(|errors| errors.getattr(name))
        .and_then(|class| class.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The exception of an error.
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    let text = in_python(&error.to_string());
    match &error {
        Error::Scenario(errors) => exception(py, "ScenarioError", (text, problems(errors))),
        Error::Point(at, errors) => exception(py, "PointError", (text, problems(errors), at)),
        Error::Usage(_) => exception(py, "UsageError", (text,)),
        Error::Results(error) => exception(py, "ResultsError", (text, error.path())),
        Error::Runs(_) => exception(py, "RunsError", (text,)),
        Error::Stopped(_) => exception(py, "Interrupted", (text,)),
        _ => exception(py, "Error", (text,)),
    }
}

/// The exception of one problem in data that a caller gave.
pub fn in_data(py: Python<'_>, problem: Problem) -> PyErr {
    let (file, line, _, _, _, message) = &problem;
    let text = format!("{file}:{line}: {message}");
    exception(py, "ScenarioError", (text, vec![problem]))
}

/// The exception of a file that cannot be read.
pub fn in_file(py: Python<'_>, path: &std::path::Path, reason: &str) -> PyErr {
    exception(py, "ResultsError", (format!("{}: {reason}", path.display()), path))
}

fn problems(errors: &ScenarioErrors) -> Vec<Problem> {
    let mut problems = Vec::new();
    for error in &errors.errors {
        let file = if error.file == "--set" { "with_" } else { &error.file };
        let message = match &error.help {
            Some(help) => format!("{} ({help})", error.problem),
            None => error.problem.to_string(),
        };
        let (key, nearest) = (error.key().map(String::from), error.nearest().map(String::from));
        problems.push((file.to_string(), error.line, error.column, key, nearest, message));
    }
    problems
}
