//! The TOML tree with a place for every key and value, owned, in source order: what overrides
//! change and readers walk.

use crate::error::{Problem, Report};
use crate::source::Span;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The writer of a value: later layers win over earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    File,
    Variant,
    /// `--set`.
    Override,
}

#[derive(Clone, Debug)]
pub(crate) enum Datum {
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    Array(Vec<Node>),
    Table(Table),
    /// A date or time, which no key takes.
    Date,
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub datum: Datum,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_span: Span,
    pub layer: Layer,
    pub node: Node,
}

/// Keys with their values, in source order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|e| e.key == key)
    }
    /// The text of a key, if it is one.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.node.datum {
            Datum::Text(text) => Some(text),
            _ => None,
        }
    }
    /// Puts `node` in the place of what `key` had.
    pub fn put(&mut self, key: &str, key_span: Span, layer: Layer, node: Node) {
        let entry = Entry { key: key.to_string(), key_span, layer, node };
        match self.get_mut(key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }
}

impl Node {
    pub fn as_table(&self) -> Option<&Table> {
        match &self.datum {
            Datum::Table(table) => Some(table),
            _ => None,
        }
    }
    /// The same as JSON; a date is null.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.datum {
            Datum::Bool(b) => Value::Bool(*b),
            Datum::Int(i) => i64::try_from(*i).map_or(Value::Null, Value::from),
            Datum::Float(x) => Value::from(*x),
            Datum::Text(text) => Value::String(text.clone()),
            Datum::Array(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Datum::Table(table) => Value::Object(
                table.entries.iter().map(|e| (e.key.clone(), e.node.to_json())).collect(),
            ),
            Datum::Date => Value::Null,
        }
    }
    pub fn describe(&self) -> String {
        match &self.datum {
            Datum::Bool(b) => b.to_string(),
            Datum::Int(i) => i.to_string(),
            Datum::Float(x) => x.to_string(),
            Datum::Text(t) => format!("{t:?}"),
            Datum::Array(_) => "an array".into(),
            Datum::Table(_) => "a table".into(),
            Datum::Date => "a date".into(),
        }
    }
    /// Gives every place inside it the span `span`: a value that was typed on a command line is one
    /// place.
    pub fn place_at(&mut self, span: Span, layer: Layer) {
        self.mark(layer, Some(span));
    }
    /// Records the writer of every key inside it.
    pub fn set_layer(&mut self, layer: Layer) {
        self.mark(layer, None);
    }
    fn mark(&mut self, layer: Layer, span: Option<Span>) {
        self.span = span.unwrap_or(self.span);
        match &mut self.datum {
            Datum::Array(items) => items.iter_mut().for_each(|node| node.mark(layer, span)),
            Datum::Table(table) => {
                for entry in &mut table.entries {
                    (entry.layer, entry.key_span) = (layer, span.unwrap_or(entry.key_span));
                    entry.node.mark(layer, span);
                }
            }
            _ => {}
        }
    }
}

/// Reads a whole document; syntax errors go to the report, and what could be read is returned.
///
/// Where a bracket, a brace or a quote is left open, all that follows is misread: then only the
/// first error is one.
pub(crate) fn parse(source: u32, text: &str, report: &mut Report) -> Table {
    let (table, mut errors) = DeTable::parse_recoverable(text);
    errors.sort_by_key(|e| e.span().map_or(0, |range| range.start));
    let open = errors.iter().find(|e| is_left_open(e.message())).map(|e| e.message().to_string());
    if let (Some(message), Some(first)) = (open, errors.first()) {
        let at = first.span().unwrap_or(0..0);
        let help = "it is left open on a line before this one, or on this one";
        report.help(span_of(source, at), Problem::Syntax(message), help);
        return convert_table(source, table.into_inner(), &mut Report::default());
    }
    for e in errors {
        let range = e.span().unwrap_or(0..0);
        let span = Span { source, start: range.start as u32, end: range.end as u32 };
        report.add(span, Problem::Syntax(e.message().to_string()));
    }
    convert_table(source, table.into_inner(), report)
}

/// Whether an error is of something that was not closed.
fn is_left_open(message: &str) -> bool {
    message.starts_with("unclosed") || message.starts_with("invalid multi-line")
}

/// Reads one value, as on the right of an equals sign.
pub(crate) fn parse_value(source: u32, text: &str) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    let mut report = Report::default();
    let node = convert(source, value, &mut report);
    report.is_clean().then_some(node)
}

/// Reads a dotted key: `traffic."my incast".degree` is three parts.
pub(crate) fn parse_path(text: &str) -> Option<Vec<String>> {
    if text.contains(['\n', '\r', '=', '#']) {
        return None;
    }
    let document = format!("{text} = 0");
    let mut table = DeTable::parse(&document).ok()?.into_inner();
    let mut path = Vec::new();
    loop {
        let (key, value) = table.into_iter().next()?;
        path.push(key.into_inner().into_owned());
        match value.into_inner() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(path),
        }
    }
}

fn span_of(source: u32, range: std::ops::Range<usize>) -> Span {
    Span { source, start: range.start as u32, end: range.end as u32 }
}

fn convert_table(source: u32, table: DeTable<'_>, report: &mut Report) -> Table {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| Entry {
            key_span: span_of(source, key.span()),
            key: key.into_inner().into_owned(),
            layer: Layer::File,
            node: convert(source, value, report),
        })
        .collect();
    entries.sort_by_key(|e| e.key_span);
    Table { entries }
}

fn convert(source: u32, value: Spanned<DeValue<'_>>, report: &mut Report) -> Node {
    let span = span_of(source, value.span());
    let datum = match value.into_inner() {
        DeValue::String(text) => Datum::Text(text.into_owned()),
        DeValue::Integer(int) => match i128::from_str_radix(int.as_str(), int.radix()) {
            Ok(i) => Datum::Int(i),
            Err(_) => {
                report.add(span, Problem::Syntax(format!("{int} is too large")));
                Datum::Int(0)
            }
        },
        DeValue::Float(float) => match float.as_str().parse::<f64>() {
            Ok(x) if x.is_finite() => Datum::Float(x),
            _ => {
                report.add(
                    span,
                    Problem::Syntax(format!("{float} is not a number that can be computed with")),
                );
                Datum::Float(0.0)
            }
        },
        DeValue::Boolean(b) => Datum::Bool(b),
        DeValue::Datetime(_) => Datum::Date,
        DeValue::Array(items) => {
            Datum::Array(items.into_iter().map(|v| convert(source, v, report)).collect())
        }
        DeValue::Table(table) => Datum::Table(convert_table(source, table, report)),
    };
    Node { datum, span }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_places_and_order() {
        let mut report = Report::default();
        let t = parse(0, "b = 1\na = \"x\"\n[s]\nq = [1, 2.5]\nz.y = true\n", &mut report);
        assert!(report.is_clean());
        assert_eq!(t.entries.iter().map(|e| e.key.as_str()).collect::<Vec<_>>(), ["b", "a", "s"]);
        assert_eq!(t.get("a").unwrap().key_span.start, 6);
        assert_eq!(t.text("a"), Some("x"));
    }

    #[test]
    fn paths_and_values_of_overrides() {
        assert_eq!(parse_path("traffic.\"a b\".load").unwrap(), ["traffic", "a b", "load"]);
        assert_eq!(parse_path("switch.path.kind").unwrap().len(), 3);
        assert!(
            parse_path("").is_none() && parse_path("a..b").is_none() && parse_path("a=1").is_none()
        );
        assert!(matches!(parse_value(0, "65").unwrap().datum, Datum::Int(65)));
        assert!(parse_value(0, "10ms").is_none());
    }

    #[test]
    fn several_syntax_errors_are_found() {
        let mut report = Report::default();
        parse(0, "a = \nb = 2\nc = ]\n", &mut report);
        assert!(report.problems.len() >= 2, "{:?}", report.problems);
    }

    /// An opening that is left open takes the rest of the text with it, of which nothing is worth
    /// reporting.
    #[test]
    fn one_missing_bracket_brace_or_quote_is_one_error() {
        let rest = "\n[host]\nmtu = 1500\n[switch]\npath = { kind = \"ecmp\" }\n[[traffic]]\nrows \
                    = [[\"1us\", 0, 1, 5]]\n";
        for open in [
            "link = { rate = \"10Gbps\", delay = \"1us\"",
            "list = [1, 2",
            "text = \"\"\"x",
            "rows = [[1, 2], [3, 4]",
        ] {
            let mut report = Report::default();
            parse(0, &format!("a = 1\n{open}{rest}"), &mut report);
            let [(span, Problem::Syntax(message), Some(_))] = report.problems.as_slice() else {
                panic!("{open}: {:?}", report.problems);
            };
            assert!(is_left_open(message) && span.start >= 6, "{open}: {message} at {span:?}");
        }
    }
}
