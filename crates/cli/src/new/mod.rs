//! `millpond new`: five questions, and a scenario that explains itself.
//!
//! Invariant: nothing is written that `check` would refuse, and no file is replaced unasked.

mod answers;
mod mechanisms;
#[cfg(test)]
mod tests;
mod text;

use crate::args::NewArgs;
use crate::failure::{Failure, io_error};
use crate::{eprint, print};
use answers::Transport;
use millpond::Scenario;
use millpond_scenario::catalogue;
use std::fmt::{self, Display};
use std::fs::OpenOptions;
use std::io::{self, BufRead, ErrorKind, Write};
use std::path::Path;
use text::Answers;

/// A question: its number, its option, its words, the answers that there are, and the default.
struct Question {
    number: usize,
    option: &'static str,
    words: &'static str,
    choices: Vec<(String, &'static str)>,
    default: String,
}

/// Writes a scenario by options and answers.
pub fn new(args: &NewArgs) -> Result<(), Failure> {
    let file = &args.file;
    let to_stdout = file == Path::new("-");
    if !to_stdout && !args.force && file.exists() {
        return Err(Failure::is_there(file));
    }
    let answers = answer(args)?;
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = stem.filter(|_| !to_stdout).unwrap_or_else(|| "scenario".to_string());
    let shown = if to_stdout { "FILE".to_string() } else { file.display().to_string() };
    let text = answers.scenario(&name, &shown);
    sound(&text)?;
    if to_stdout {
        print(&text);
        return Ok(());
    }
    write(file, &text, args.force)?;
    print(&format!("written: {shown}\ncompare: millpond compare {shown} --seeds 6"));
    Ok(())
}

/// Options first, so that a wrong one is reported before any question; then questions.
fn answer(args: &NewArgs) -> Result<Answers, Failure> {
    let mut asking = Asking { input: io::stdin().lock(), asks: !args.yes };
    let topology = given("topology", &args.topology, answers::topology)?;
    let rate = given("rate", &args.rate, answers::rate)?;
    let transport = given("transport", &args.transport, answers::transport)?;
    let asked = question(1, answers::topologies(), &answers::networks()[0].to_string());
    let topology = asking.or_ask(topology, &asked, answers::topology)?;
    let read_traffic = |text: &str| answers::traffic(text, &topology);
    let traffic = given("traffic", &args.traffic, read_traffic)?;
    let rate = asking.or_ask(rate, &question(2, [], "25Gbps"), answers::rate)?;
    let transports = answers::transports();
    let asked = question(3, transports.iter().map(described), &transports[0].kind);
    let transport = asking.or_ask(transport, &asked, answers::transport)?;
    let read_mechanisms = |text: &str| mechanisms::chosen(text, &topology, transport);
    let mechanisms = given("mechanisms", &args.mechanisms, read_mechanisms)?;
    let asked = question(4, answers::traffics(), "web-search:0.5");
    let traffic = asking.or_ask(traffic, &asked, read_traffic)?;
    let fitting = mechanisms::fitting(&topology, transport);
    let choices = fitting.iter().map(|one| (one.name.clone(), &*one.about));
    let none = ("none".to_string(), "the plain network alone");
    let default = fitting.first().map_or("none", |first| &first.name);
    let asked = question(5, choices.chain([none]), default);
    let mechanisms = asking.or_ask(mechanisms, &asked, read_mechanisms)?;
    Ok(Answers { topology, rate, transport, traffic, mechanisms })
}

fn given<T>(
    option: &str,
    text: &Option<String>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Failure> {
    let wrong = |error| Failure::Usage(format!("--{option}: {error}"));
    text.as_deref().map(read).transpose().map_err(wrong)
}

/// The asker: prompts go to stderr, answers are lines of the input.
struct Asking<R> {
    input: R,
    asks: bool,
}

impl<R: BufRead> Asking<R> {
    /// The value that an option has given, or else an answer; asks again until one is valid.
    fn or_ask<T>(
        &mut self,
        given: Option<T>,
        question: &Question,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        if let Some(value) = given {
            return Ok(value);
        }
        if !self.asks {
            return read(&question.default).map_err(Failure::Usage);
        }
        eprint(question);
        loop {
            prompt(&question.default);
            let mut line = String::new();
            let length = self.input.read_line(&mut line).map_err(|e| {
                Failure::Usage(format!("an answer on standard input cannot be read: {e}"))
            })?;
            if length == 0 {
                eprint("");
                return Err(question.unanswered());
            }
            let answer = line.trim();
            match read(if answer.is_empty() { &question.default } else { answer }) {
                Ok(value) => return Ok(value),
                Err(error) => eprint(error),
            }
        }
    }
}

impl Question {
    fn unanswered(&self) -> Failure {
        let (number, option) = (self.number, self.option);
        Failure::Usage(format!(
            "standard input ended before the answer to question {number}: give --{option}, or \
             take the defaults with --yes"
        ))
    }
}

impl Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.choices.iter().map(|(form, _)| form.len()).filter(|len| *len <= 40).max();
        let width = width.unwrap_or(0);
        write!(f, "\n{} of 5: {}", self.number, self.words)?;
        for (form, about) in &self.choices {
            if form.len() > width {
                write!(f, "\n  {form}\n  {:width$}  {about}", "")?;
            } else {
                write!(f, "\n  {form:width$}  {about}")?;
            }
        }
        Ok(())
    }
}

/// The default, which an empty line takes.
fn prompt(default: &str) {
    let mut out = io::stderr().lock();
    let _ = write!(out, "[{default}] ").and_then(|()| out.flush());
}

/// The options of the questions, with their words.
const QUESTIONS: [(&str, &str); 5] = [
    ("topology", "Which network? KIND or KIND:SIZE"),
    ("rate", "Which rate has each link? 1Gbps to 800Gbps"),
    ("transport", "Which transport?"),
    ("traffic", "Which traffic? KIND or KIND:VALUE"),
    ("mechanisms", "Which mechanisms beside the plain network? NAME,…"),
];

fn question(
    number: usize,
    choices: impl IntoIterator<Item = (String, &'static str)>,
    default: &str,
) -> Question {
    let ((option, words), choices) = (QUESTIONS[number - 1], choices.into_iter().collect());
    Question { number, option, words, choices, default: default.to_string() }
}

/// A transport with what it is.
fn described(transport: &Transport) -> (String, &'static str) {
    let places = catalogue::places();
    let mut kinds = places.into_iter().flat_map(|place| place.place.mechanisms.iter());
    let found = kinds.find(|mechanism| mechanism.kind == transport.kind);
    (transport.kind.clone(), found.map_or("", |mechanism| mechanism.about.summary))
}

/// Plans every variant: an error here is one of this command.
fn sound(text: &str) -> Result<(), Failure> {
    let scenario = Scenario::parse("new", text)?;
    scenario.plan(None)?;
    for variant in scenario.variants() {
        scenario.plan(Some(variant))?;
    }
    Ok(())
}

/// Writes the file, which `force` may replace.
fn write(file: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let at = |doing: &'static str, source: io::Error| match source.kind() {
        ErrorKind::AlreadyExists => Failure::is_there(file),
        _ => io_error(doing, file, source).into(),
    };
    let mut options = OpenOptions::new();
    let options = options.write(true).truncate(true).create(force).create_new(!force);
    let mut opened = options.open(file).map_err(|e| at("create", e))?;
    opened.write_all(text.as_bytes()).map_err(|e| at("write", e))
}
