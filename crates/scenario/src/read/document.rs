//! Documents of tables with declared keys that are no scenarios, such as the file of `millpond
//! limit`: the same values, the same messages with file, line and column, the same nearest names.
//!
//! Invariant: as for scenarios, a key that nobody asks for is an error, and all errors are found at
//! once.

pub use crate::toml_text::value_text;

use super::{Reader, Section};
use crate::error::{Errors, Problem, Report, suggestion};
use crate::source::{Sources, Span};
use crate::tree::{Datum, Table, parse, parse_value};
use millpond_core::params::{Params, Value};
use millpond_core::registry::Choice;

/// A parsed text, and what is wrong with it so far.
pub struct Document {
    sources: Sources,
    root: Table,
    report: Report,
}

/// One `[[table]]` of a document, or what stands outside of any.
pub struct Item<'a> {
    section: Section<'a>,
    span: Span,
}

/// Reads the tables of one document.
pub struct DocumentReader<'a> {
    reader: Reader<'a>,
    top: Item<'a>,
}

impl Document {
    /// Parses `text`; messages call it `name`.
    pub fn parse(name: &str, text: &str) -> Document {
        let (mut sources, mut report) = (Sources::default(), Report::default());
        let source = sources.add(name, text);
        let root = parse(source, text, &mut report);
        Document { sources, root, report }
    }

    /// A document with one table `[[key]]` that has these keys, as typed on a command line: texts
    /// need no quotes.
    pub fn assignments(name: &str, key: &str, pairs: &[(String, String)]) -> Document {
        let mut text = format!("[[{key}]]\n");
        for (key, value) in pairs {
            let value = match parse_value(0, value) {
                Some(_) => value.clone(),
                None => value_text(&Value::Text(value.clone())),
            };
            text += &format!("{key} = {value}\n");
        }
        Document::parse(name, &text)
    }

    /// Reads the document by `read`.
    ///
    /// # Errors
    /// All errors together: those of the syntax, those that `read` reports, and the keys that it
    /// did not ask for.
    pub fn read<T>(
        &mut self,
        read: impl FnOnce(&mut DocumentReader<'_>) -> T,
    ) -> Result<T, Errors> {
        let mut report = std::mem::take(&mut self.report);
        let top = Item { section: Section::new("", Some(&self.root)), span: Span::default() };
        let mut reader = DocumentReader { reader: Reader { report: &mut report }, top };
        let done = read(&mut reader);
        let DocumentReader { mut reader, top } = reader;
        reader.finish(top.section, None);
        if report.is_clean() { Ok(done) } else { Err(report.into_errors(&self.sources)) }
    }
}

impl<'a> DocumentReader<'a> {
    /// Reads the keys that stand outside of any table.
    pub fn top(&mut self, params: &mut dyn Params) {
        self.reader.params(&mut self.top.section, params, &[]);
    }

    /// Reads the choice `key`, which stands outside of any table; `None` where it is not written. A
    /// word alone is a kind as it is by default.
    pub fn choice<C: Choice>(&mut self, key: &str) -> Option<C> {
        let entry = self.top.section.take(key)?;
        match &entry.node.datum {
            Datum::Text(kind) => {
                self.reader.report.found(key.to_string(), entry.node.span);
                self.reader.of_kind(kind, key, entry.node.span)
            }
            _ => Some(self.reader.choice(&mut self.top.section, key, key)),
        }
    }

    /// Whether a key is written: one outside of any table, or `table.key` of what was read.
    pub fn has(&self, path: &str) -> bool {
        self.top.section.table.is_some_and(|t| t.get(path).is_some())
            || self.reader.report.places.get(path).is_some()
    }

    /// Reports an error of a key that was read, at its value.
    pub fn wrong_at(&mut self, path: &str, message: impl Into<String>, help: Option<String>) {
        let span = self.reader.report.places.get(path).unwrap_or_default();
        self.reader.report.push(
            span,
            Problem::Value { key: path.to_string(), message: message.into() },
            help,
        );
    }

    /// The tables `[[key]]`, in order.
    pub fn tables(&mut self, key: &str) -> Vec<Item<'a>> {
        self.reader.each(&mut self.top.section, key, |_, _, node, table| {
            let span = table.entries.first().map_or(node.span, |e| e.key_span);
            Some(Item { section: Section::new(key, Some(table)), span })
        })
    }

    /// Reads those keys of `item` that `params` declares.
    pub fn params(&mut self, item: &mut Item<'a>, params: &mut dyn Params) {
        self.reader.params(&mut item.section, params, &[]);
    }

    /// Reports the keys of `item` that nobody has read.
    pub fn finish(&mut self, item: &Item<'a>) {
        self.reader.finish(item.section.clone(), None);
    }

    /// Reports an error of a key of `item`, at its value; at the table, where the key is not
    /// written.
    pub fn wrong(
        &mut self,
        item: &Item<'a>,
        key: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        let entry = item.section.table.and_then(|t| t.get(key));
        let problem = Problem::Value { key: key.to_string(), message: message.into() };
        self.reader.report.push(entry.map_or(item.span, |e| e.node.span), problem, help);
    }

    /// Reports that `item` lacks a key.
    pub fn missing(&mut self, item: &Item<'a>, key: &str) {
        let problem =
            Problem::Missing { table: format!("[[{}]]", item.section.path), key: key.to_string() };
        self.reader.report.push(item.span, problem, None);
    }

    /// Reports that there is no `what` of this `name`, which `key` of `item` asks for; names the
    /// nearest of `known`.
    pub fn unknown(&mut self, item: &Item<'a>, key: &str, what: &str, name: &str, known: &[&str]) {
        let entry = item.section.table.and_then(|t| t.get(key));
        let problem = Problem::Unknown { what: what.to_string(), name: name.to_string() };
        self.reader.report.push(
            entry.map_or(item.span, |e| e.node.span),
            problem,
            suggestion(name, known),
        );
    }
}

impl Item<'_> {
    pub fn has(&self, key: &str) -> bool {
        self.section.table.is_some_and(|t| t.get(key).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_core::limit::LimitParams;

    fn read(document: &mut Document) -> Result<Vec<LimitParams>, Errors> {
        document.read(|r| {
            let items = r.tables("limit");
            items
                .into_iter()
                .map(|mut item| {
                    let mut params = LimitParams::default();
                    r.params(&mut item, &mut params);
                    r.finish(&item);
                    params
                })
                .collect()
        })
    }

    #[test]
    fn tables_of_declared_keys() {
        let mut document =
            Document::parse("a.toml", "[[limit]]\nrate = \"10gbps\"\n[[limit]]\ncwr = false\n");
        let limits = read(&mut document).unwrap();
        assert_eq!((limits[0].rate.bps(), limits[1].cwr), (10_000_000_000, false));
        let wrong =
            Document::parse("a.toml", "x = 1\n[[limit]]\nrate = \"10 furlongs\"\nframming = 3\n");
        let text = read(&mut { wrong }).unwrap_err().to_string();
        assert!(text.contains("a.toml:3:8: `limit.rate`: \"10 furlongs\""), "{text}");
        assert!(
            text.contains(
                "a.toml:4:1: unknown key `framming` in [limit] (did you mean `framing`?)"
            ),
            "{text}"
        );
        assert!(text.contains("a.toml:1:1: unknown key `x`"), "{text}");
    }

    #[test]
    fn assignments_of_a_command_line() {
        let pairs = [("rate".to_string(), "5Mbps".to_string()), ("bypass".into(), "1.5".into())];
        let limits = read(&mut Document::assignments("set", "limit", &pairs)).unwrap();
        assert_eq!((limits[0].rate.bps(), limits[0].bypass), (5_000_000, 1.5));
    }
}
