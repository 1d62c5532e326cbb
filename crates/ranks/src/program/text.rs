//! GOAL as text, as LogGOPSim's `txt2bin` reads it.
//!
//! `num_ranks N`, then a block for each rank in the order 0 … N − 1. A line of a block is an
//! operation, with a label or without, or a dependency between labels that are defined above it.
//! Numbers that do not fit their field are errors here; `txt2bin` wraps them.
//!
//! Invariant: an error names the line.

use super::{ANY, Action, Operation, Program, ProgramError, RankProgram};
use std::collections::HashMap;
use std::sync::Arc;

/// More ranks than this are taken for a slip of the pen.
const RANKS_MAX: u64 = 1 << 24;

const KEYWORDS: [&str; 12] = [
    "num_ranks",
    "rank",
    "send",
    "recv",
    "calc",
    "to",
    "from",
    "tag",
    "cpu",
    "nic",
    "requires",
    "irequires",
];

pub(super) fn read(text: &str) -> Result<Program, ProgramError> {
    let text = without_comments(text)?;
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(at, line)| Line { number: at + 1, words: words(line), at: 0 })
        .filter(|line| !line.words.is_empty());
    let mut first =
        lines.next().ok_or_else(|| ProgramError::at("line 1", "there is no num_ranks"))?;
    first.expect("num_ranks")?;
    let count = first.number(RANKS_MAX, "the number of ranks")?;
    first.end()?;
    let mut program = Program::default();
    while let Some(mut line) = lines.next() {
        line.expect("rank")?;
        let rank = line.number(RANKS_MAX, "a rank")?;
        let next = program.ranks.len() as u64;
        if rank != next || rank >= count {
            let expected = match next < count {
                true => format!("rank {next} comes next"),
                false => format!("num_ranks says {count}"),
            };
            return Err(line.wrong(format!("rank {rank}: {expected}")));
        }
        line.expect("{")?;
        let mut block = Block::default();
        let mut is_open = !line.takes("}");
        line.end()?;
        while is_open {
            let Some(mut line) = lines.next() else {
                let place = format!("rank {rank}");
                return Err(ProgramError::at(place, "its block has no end `}`"));
            };
            is_open = !line.takes("}");
            if is_open {
                let known = block.operations.len();
                block.line(&mut line, count)?;
                for operation in &block.operations[known..] {
                    program.note_nic(rank as u32, operation, || format!("line {}", line.number));
                }
            }
            line.end()?;
        }
        let own = RankProgram::new(block.operations, block.labels, &block.waits);
        program.ranks.push(Arc::new(own));
    }
    let found = program.ranks.len() as u64;
    if found < count {
        let text = format!("num_ranks says {count}, and {found} have a block");
        return Err(ProgramError::at(format!("rank {found}"), text));
    }
    Ok(program)
}

/// The text with spaces in place of comments; lines stay lines.
fn without_comments(text: &str) -> Result<String, ProgramError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if rest.starts_with("/*") {
            let line = out.matches('\n').count() + 1;
            let end = rest.find("*/").ok_or_else(|| {
                ProgramError::at(format!("line {line}"), "the comment has no end `*/`")
            })?;
            out.push(' ');
            out.extend(rest[..end].matches('\n'));
            rest = &rest[end + 2..];
        } else {
            out.push('/');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Words and signs of a line; digits end where letters begin.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let goes_on = |c: char| match is_number {
            true => c.is_ascii_digit(),
            false => c.is_ascii_alphanumeric() || c == '_',
        };
        let len = match goes_on(first) {
            true => rest.find(|c| !goes_on(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        words.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    words
}

/// A line and how far it is read.
struct Line<'a> {
    number: usize,
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Line<'a> {
    fn wrong(&self, message: impl Into<String>) -> ProgramError {
        ProgramError::at(format!("line {}", self.number), message)
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        self.at += 1;
        self.words.get(self.at - 1).copied()
    }

    /// Takes this word, if it comes next.
    fn takes(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.at += usize::from(found);
        found
    }

    fn found(&self) -> String {
        self.peek().map_or("the end of the line".into(), |word| format!("{word:?}"))
    }

    fn expect(&mut self, word: &str) -> Result<(), ProgramError> {
        match self.takes(word) {
            true => Ok(()),
            false => Err(self.wrong(format!("expected {word:?}, found {}", self.found()))),
        }
    }

    fn number(&mut self, max: u64, what: &str) -> Result<u64, ProgramError> {
        let found = self.found();
        let word = self.next().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let Some(word) = word else {
            return Err(self.wrong(format!("expected {what}, found {found}")));
        };
        let number = word.parse::<u64>().ok().filter(|number| *number <= max);
        number.ok_or_else(|| self.wrong(format!("{what} {word} is more than {max}")))
    }

    /// A number, or -1 for any.
    fn number_or_any(&mut self, max: u64, what: &str) -> Result<u32, ProgramError> {
        if self.takes("-") {
            self.expect("1")?;
            return Ok(ANY);
        }
        Ok(self.number(max.min(u64::from(ANY) - 1), what)? as u32)
    }

    fn end(&self) -> Result<(), ProgramError> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(self.wrong(format!("{word:?} is too much"))),
        }
    }
}

#[derive(Default)]
struct Block<'a> {
    operations: Vec<Operation>,
    labels: Vec<String>,
    numbers: HashMap<&'a str, u32>,
    /// The operation that waits, for whom, and whether for its beginning alone.
    waits: Vec<(u32, u32, bool)>,
}

impl<'a> Block<'a> {
    fn line(&mut self, line: &mut Line<'a>, ranks: u64) -> Result<(), ProgramError> {
        let word = line.peek().unwrap_or_default();
        if matches!(word, "send" | "recv" | "calc") {
            return self.operation(line, "", ranks);
        }
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let found = line.found();
            return Err(line.wrong(format!("expected an operation or a label, found {found}")));
        }
        if KEYWORDS.contains(&word) {
            return Err(line.wrong(format!("{word:?} is a keyword and no label")));
        }
        line.at += 1;
        if line.takes(":") {
            if self.numbers.contains_key(word) {
                return Err(line.wrong(format!("the label {word:?} is used twice in its rank")));
            }
            self.numbers.insert(word, self.operations.len() as u32);
            return self.operation(line, word, ranks);
        }
        let waiting = self.label(line, word)?;
        let is_begin = line.takes("irequires");
        if !is_begin {
            line.expect("requires")?;
        }
        let Some(word) = line.next() else {
            return Err(line.wrong("expected a label at the end of the line"));
        };
        let awaited = self.label(line, word)?;
        self.waits.push((waiting, awaited, is_begin));
        Ok(())
    }

    fn label(&self, line: &Line<'_>, word: &str) -> Result<u32, ProgramError> {
        let number = self.numbers.get(word).copied();
        number.ok_or_else(|| line.wrong(format!("the label {word:?} is not defined above")))
    }

    fn operation(
        &mut self,
        line: &mut Line<'_>,
        label: &str,
        ranks: u64,
    ) -> Result<(), ProgramError> {
        let kind = line.next().unwrap_or_default();
        let (action, size) = match kind {
            "calc" => (Action::Compute, line.number(u64::MAX, "a time in ns")?),
            "send" | "recv" => {
                let size = line.number(u64::MAX, "a size")?;
                line.expect("b")?;
                line.expect(if kind == "send" { "to" } else { "from" })?;
                let peer = line.number_or_any(u64::from(ANY), "a rank")?;
                if peer == ANY && kind == "send" {
                    return Err(line.wrong("a send names its rank; -1 is for receives"));
                }
                if peer != ANY && u64::from(peer) >= ranks {
                    return Err(line.wrong(format!("rank {peer}: there are {ranks}, from 0")));
                }
                let send = Action::Send { to: peer };
                (if kind == "send" { send } else { Action::Receive { from: peer } }, size)
            }
            other => {
                let text = format!("expected send, recv or calc, found {other:?}");
                return Err(line.wrong(text));
            }
        };
        let is_message = action != Action::Compute;
        let mut operation = Operation { action, size, tag: 0, cpu: 0, nic: 0, waits: 0 };
        if is_message && line.takes("tag") {
            operation.tag = line.number_or_any(u64::from(ANY), "a tag")?;
            if operation.tag == ANY && kind == "send" {
                return Err(line.wrong("a send has a tag; -1 is for receives"));
            }
        }
        if line.takes("cpu") {
            operation.cpu = line.number(255, "a cpu")? as u8;
        }
        if is_message && line.takes("nic") {
            operation.nic = line.number(255, "a nic")? as u8;
        }
        self.operations.push(operation);
        self.labels.push(label.to_string());
        Ok(())
    }
}
