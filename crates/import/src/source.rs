//! A text file by its lines and words.
//!
//! Lines may end as on Windows. A `#` begins a comment, and so does a word that begins with `//`,
//! unless it is a line's second word, which may be a path. Bytes that are no UTF-8 become the
//! replacement character: they matter in a value that is read, and nowhere else. A byte-order mark
//! chooses UTF-16.

use std::fmt;
use std::path::Path;

use crate::{Error, Result};

#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub name: String,
    text: String,
}

/// A line of a source, by its number from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'s> {
    source: &'s Source,
    pub number: usize,
}

impl Place<'_> {
    pub fn wrong(self, message: impl Into<String>) -> Error {
        let (file, line) = (self.source.name.clone(), self.number);
        Error::Wrong { file, line, message: message.into() }
    }

    /// The same in place of a result.
    pub fn fail<T>(self, message: impl Into<String>) -> Result<T> {
        Err(self.wrong(message))
    }

    pub fn whole(self, word: &str, what: &str) -> Result<u64> {
        word.parse().map_err(|_| self.wrong(format!("{what}: {word:?} is not a whole number")))
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source.name, self.number)
    }
}

/// A word with its line.
pub(crate) type Word<'s> = (Place<'s>, &'s str);

impl Source {
    pub fn read(path: &Path) -> Result<Source> {
        let bytes =
            std::fs::read(path).map_err(|source| Error::Unread { path: path.into(), source })?;
        Ok(Source::of(&path.display().to_string(), &decoded(&bytes)))
    }

    pub fn of(name: &str, text: &str) -> Source {
        Source { name: name.to_string(), text: text.trim_start_matches('\u{feff}').to_string() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn lines(&self) -> impl Iterator<Item = (Place<'_>, Vec<&str>)> {
        let lines = (1..).zip(self.text.lines()).map(|(at, line)| (self.at(at), words_of(line)));
        lines.filter(|(_, words)| !words.is_empty())
    }

    pub fn words(&self) -> Words<'_> {
        let words =
            self.lines().flat_map(|(line, words)| words.into_iter().map(move |word| (line, word)));
        Words { source: self, words: words.collect(), at: 0 }
    }

    pub fn at(&self, number: usize) -> Place<'_> {
        Place { source: self, number }
    }

    pub fn end(&self) -> Place<'_> {
        self.at(self.text.lines().count().max(1))
    }
}

/// The words of a line in front of its comment.
fn words_of(line: &str) -> Vec<&str> {
    let content = &line[..line.find('#').unwrap_or(line.len())];
    let mut words: Vec<&str> = content.split_whitespace().collect();
    let comment = words.iter().enumerate().position(|(at, word)| at != 1 && word.starts_with("//"));
    words.truncate(comment.unwrap_or(words.len()));
    words
}

/// The text of a file's bytes.
fn decoded(bytes: &[u8]) -> String {
    let units = |from: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes[2..].chunks_exact(2).map(|pair| from([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

pub(crate) struct Words<'s> {
    source: &'s Source,
    words: Vec<Word<'s>>,
    at: usize,
}

impl<'s> Words<'s> {
    /// The next word; the file may not end before it.
    pub fn next(&mut self, what: &str) -> Result<Word<'s>> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        let end = self.source.end();
        word.ok_or_else(|| end.wrong(format!("the file ends where {what} should be")))
    }

    pub fn whole(&mut self, what: &str) -> Result<u64> {
        let (line, word) = self.next(what)?;
        line.whole(word, what)
    }

    /// How many words the next word's line has from it on.
    pub fn left_in_line(&self) -> usize {
        let Some((line, _)) = self.words.get(self.at) else { return 0 };
        self.words[self.at..].iter().take_while(|(other, _)| other.number == line.number).count()
    }

    /// A word ahead; the next one is 0.
    pub fn ahead(&self, count: usize) -> Option<&'s str> {
        self.words.get(self.at + count).map(|(_, word)| *word)
    }

    /// The line of the next word.
    pub fn line(&self) -> Option<Place<'s>> {
        self.words.get(self.at).map(|(line, _)| *line)
    }

    /// Passes over the rest of a line. Returns how many words that are.
    pub fn skip_line(&mut self, line: Place<'_>) -> usize {
        let is_in = |(other, _): &&Word<'s>| other.number == line.number;
        let rest = self.words.iter().skip(self.at).take_while(is_in).count();
        self.at += rest;
        rest
    }

    /// The lines with their words, from the next word's on.
    pub fn lines_left(&self) -> impl Iterator<Item = (Place<'s>, Vec<&'s str>)> {
        let rest = self.words.get(self.at..).unwrap_or_default();
        let lines = rest.chunk_by(|(a, _), (b, _)| a.number == b.number);
        lines.map(|words| (words[0].0, words.iter().map(|(_, word)| *word).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_ending_without_comments() {
        let source = Source::of("x", "\u{feff}a b\r\n\r\n# c\r\nd #e\nf");
        let lines: Vec<_> = source.lines().map(|(line, words)| (line.number, words)).collect();
        assert_eq!(lines, [(1, vec!["a", "b"]), (4, vec!["d"]), (5, vec!["f"])]);
        let mut words = source.words();
        let left = words.left_in_line();
        let (line, word) = words.next("one").unwrap();
        assert_eq!((left, line.number, word), (2, 1, "a"));
        assert!(words.whole("two").unwrap_err().to_string().starts_with("x:1: two: \"b\" is not"));
        let left: Vec<_> = words.lines_left().map(|(line, words)| (line.number, words)).collect();
        assert_eq!(left, [(4, vec!["d"]), (5, vec!["f"])]);
        let (_, _) = (words.next("").unwrap(), words.next("").unwrap());
        assert_eq!(
            words.next("a link").unwrap_err().to_string(),
            "x:5: the file ends where a link should be"
        );
    }

    #[test]
    fn comments_of_cpp_are_no_words() {
        let source = Source::of("x", "// a\nKEY 1 // b\nFILE //share/x\n a //");
        let lines: Vec<_> = source.lines().map(|(line, words)| (line.number, words)).collect();
        assert_eq!(
            lines,
            [(2, vec!["KEY", "1"]), (3, vec!["FILE", "//share/x"]), (4, vec!["a", "//"])]
        );
    }

    #[test]
    fn bytes_of_any_encoding_are_read() {
        assert_eq!(decoded(b"A 1 # \xc8\xcf"), "A 1 # \u{fffd}\u{fffd}");
        assert_eq!(decoded(b"\xff\xfeA\0 \x001\0"), "A 1");
        assert_eq!(decoded(b"\xfe\xff\0A"), "A");
        assert_eq!(decoded(b"\xff\xfe"), "");
    }
}
