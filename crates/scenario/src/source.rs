//! Texts and places in them: the scenario file and each override is a source, and a [`Span`] is a
//! stretch of one.

use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub source: u32,
    /// Byte offset of its start.
    pub start: u32,
    /// Byte offset just after its end.
    pub end: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct SourceText {
    pub name: String,
    pub text: Arc<str>,
}

impl SourceText {
    /// The span's offsets, forced into the text and onto character boundaries.
    pub fn clamp(&self, span: Span) -> (usize, usize) {
        let floor = |mut at: usize| {
            at = at.min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = floor(span.start as usize);
        (start, floor(span.end as usize).max(start))
    }
    /// Line and column of a byte offset, both from 1, columns in characters.
    pub fn line_column(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..at];
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}

/// All texts of a scenario: the file first, then the overrides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources(Vec<SourceText>);

impl Sources {
    pub fn add(&mut self, name: impl Into<String>, text: &str) -> u32 {
        self.0.push(SourceText { name: name.into(), text: text.into() });
        (self.0.len() - 1) as u32
    }
    pub fn first(&self) -> &str {
        self.0.first().map_or("", |source| &source.text)
    }
    pub fn get(&self, span: Span) -> &SourceText {
        &self.0[span.source as usize]
    }
}

/// The places of a scenario's keys, by their dotted paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(BTreeMap<String, Span>);

impl Places {
    pub fn put(&mut self, path: impl Into<String>, span: Span) {
        self.0.insert(path.into(), span);
    }
    pub fn get(&self, path: &str) -> Option<Span> {
        self.0.get(path).copied()
    }
    /// The place of a path, or of the nearest table around it that is written.
    pub fn near(&self, path: &str) -> Span {
        let above = path.rmatch_indices('.').map(|(dot, _)| &path[..dot]);
        let found = std::iter::once(path).chain(above).chain([""]).find_map(|path| self.get(path));
        found.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters() {
        let mut sources = Sources::default();
        let source = sources.add("t", "a = 1\nµ = é!\n");
        let s = sources.get(Span { source, start: 0, end: 0 });
        assert_eq!(s.line_column(0), (1, 1));
        assert_eq!(s.line_column(6), (2, 1));
        assert_eq!(s.line_column(s.text.find('!').unwrap()), (2, 6));
        assert_eq!(s.clamp(Span { source, start: 7, end: 900 }), (6, s.text.len()));
    }
}
