//! A text file by its lines and words. Lines may end as on Windows; what follows a `#` is a
//! comment.

use std::path::Path;

use crate::{Error, Result};

/// A file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// As it was given.
    pub name: String,
    text: String,
}

/// A word with its line, from 1.
pub(crate) type Word<'s> = (usize, &'s str);

impl Source {
    pub fn read(path: &Path) -> Result<Source> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Unread { path: path.into(), source })?;
        Ok(Source::of(&path.display().to_string(), &text))
    }

    pub fn of(name: &str, text: &str) -> Source {
        Source { name: name.to_string(), text: text.trim_start_matches('\u{feff}').to_string() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Lines that have words.
    pub fn lines(&self) -> impl Iterator<Item = (usize, Vec<&str>)> {
        let words = |line: &'_ str| -> usize { line.find('#').unwrap_or(line.len()) };
        let lines = self.text.lines().enumerate();
        let split = lines.map(move |(at, line)| (at + 1, line[..words(line)].split_whitespace().collect::<Vec<_>>()));
        split.filter(|(_, words)| !words.is_empty())
    }

    /// All words, whatever their lines.
    pub fn words(&self) -> Words<'_> {
        let words = self.lines().flat_map(|(line, words)| words.into_iter().map(move |word| (line, word)));
        Words { source: self, words: words.collect(), at: 0 }
    }

    /// The last line's number.
    pub fn end(&self) -> usize {
        self.text.lines().count().max(1)
    }

    pub fn wrong(&self, line: usize, message: impl Into<String>) -> Error {
        Error::Wrong { file: self.name.clone(), line, message: message.into() }
    }

    /// A whole number.
    pub fn whole(&self, (line, word): Word<'_>, what: &str) -> Result<u64> {
        word.parse().map_err(|_| self.wrong(line, format!("{what}: {word:?} is not a whole number")))
    }
}

/// Words one after the other.
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
        word.ok_or_else(|| self.source.wrong(self.source.end(), format!("the file ends where {what} should be")))
    }

    pub fn whole(&mut self, what: &str) -> Result<u64> {
        let word = self.next(what)?;
        self.source.whole(word, what)
    }

    /// How many words the next word's line has from it on.
    pub fn left_in_line(&self) -> usize {
        let Some((line, _)) = self.words.get(self.at) else { return 0 };
        self.words[self.at..].iter().take_while(|(other, _)| other == line).count()
    }

    /// The lines, from the next word's on.
    pub fn lines_left(&self) -> usize {
        let mut lines: Vec<usize> = self.words.iter().skip(self.at).map(|(line, _)| *line).collect();
        lines.dedup();
        lines.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_ending_without_comments() {
        let source = Source::of("x", "\u{feff}a b\r\n\r\n# c\r\nd #e\nf");
        let lines: Vec<_> = source.lines().collect();
        assert_eq!(lines, [(1, vec!["a", "b"]), (4, vec!["d"]), (5, vec!["f"])]);
        let mut words = source.words();
        assert_eq!((words.left_in_line(), words.next("one").unwrap()), (2, (1, "a")));
        assert!(words.whole("two").unwrap_err().to_string().starts_with("x:1: two: \"b\" is not"));
        assert_eq!(words.lines_left(), 2);
        let (_, _) = (words.next("").unwrap(), words.next("").unwrap());
        assert_eq!(words.next("a link").unwrap_err().to_string(), "x:5: the file ends where a link should be");
    }
}
