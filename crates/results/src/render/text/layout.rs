//! Columns and paragraphs of plain text.
//!
//! Invariant: no line is longer than 100 columns, but for a word that is.

use crate::model::clean;
use std::collections::BTreeSet;

/// Longest name in a table; a longer one loses its middle.
pub(crate) const NAME: usize = 20;

/// Shortest that a name is made where columns are wide.
pub(crate) const NAME_LEAST: usize = 8;

/// Columns of a table at most.
pub(crate) const WIDTH: usize = 100;

pub(crate) fn widest(rows: &[Vec<String>], column: usize) -> usize {
    rows.iter().map(|row| row.get(column).map_or(0, |cell| cell.chars().count())).max().unwrap_or(0)
}

/// Rows of at most 100 columns: names lose of their middle what is too much.
pub(crate) fn fitted(rows: Vec<Vec<String>>) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let others: usize = (1..columns).map(|at| widest(&rows, at) + 1).sum();
    let limit = NAME.min(WIDTH.saturating_sub(others).max(NAME_LEAST));
    let names: Vec<&str> = rows.iter().map(|row| row.first().map_or("", String::as_str)).collect();
    let shortened = distinct(&names, limit).into_iter().zip(&rows).map(|(name, row)| {
        row.first().map(|_| name).into_iter().chain(row.iter().skip(1).cloned()).collect()
    });
    aligned(&shortened.collect::<Vec<Vec<String>>>())
}

/// Columns of equal width: the first to the left, the others to the right, one or two spaces apart.
pub(crate) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns).map(|at| widest(rows, at)).collect();
    let wide = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
    let gap = if wide <= WIDTH { "  " } else { " " };
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join(gap).trim_end().to_string()
    };
    rows.iter().map(line).collect()
}

/// `name      a, b, c`, broken before column 100.
pub(crate) fn listed(name: &str, parts: &[String]) -> Vec<String> {
    match parts.split_last() {
        None => vec![format!("{name:<9} none")],
        Some((last, others)) => {
            let others = others.iter().map(|part| format!("{part},"));
            fill(name, others.chain([last.clone()]))
        }
    }
}

/// `name      text`, broken at spaces before column 100.
pub(crate) fn wrapped(name: &str, text: &str) -> Vec<String> {
    fill(name, text.split_whitespace())
}

fn fill(name: &str, parts: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    filled(&format!("{name:<9} "), &" ".repeat(10), parts, WIDTH - 1)
}

/// Words behind a beginning, in lines of at most so many columns; further lines begin with an
/// indent.
pub fn filled(
    first: &str,
    indent: &str,
    words: impl IntoIterator<Item = impl AsRef<str>>,
    most: usize,
) -> Vec<String> {
    let (mut lines, mut line, mut is_bare) = (Vec::new(), first.to_string(), true);
    for word in words {
        let word = word.as_ref();
        if !is_bare && line.chars().count() + 1 + word.chars().count() > most {
            lines.push(std::mem::replace(&mut line, indent.to_string()));
            is_bare = true;
        }
        line.push_str(if is_bare { "" } else { " " });
        line.push_str(word);
        is_bare = false;
    }
    lines.push(line);
    lines
}

/// The descriptions of a scenario and of its variants, a paragraph each, with its name before it.
pub fn about_text<'a>(
    scenario: &str,
    about: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let described: Vec<(&str, &str)> =
        about.into_iter().filter(|(_, about)| !about.is_empty()).collect();
    let mut lines = match scenario {
        "" => Vec::new(),
        text => filled("", "", clean(text).split_whitespace(), WIDTH),
    };
    let width = described.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(NAME);
    for (name, about) in described {
        let (name, indent) = (format!("{:<width$}  ", clean(name)), " ".repeat(width + 2));
        lines.extend(filled(&name, &indent, clean(about).split_whitespace(), WIDTH));
    }
    lines.join("\n")
}

/// How many warnings a table prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Warnings {
    /// The first three, and a line with the number of the others.
    #[default]
    First,
    All,
}

impl Warnings {
    /// Warnings to print, and the line that counts the others.
    pub fn of<T>(self, warnings: &[T]) -> (&[T], Option<String>) {
        const FIRST: usize = 3;
        let (first, others) = match self {
            Warnings::First => warnings.split_at(warnings.len().min(FIRST)),
            Warnings::All => (warnings, &warnings[..0]),
        };
        let noun = if others.len() == 1 { "warning" } else { "warnings" };
        let count = others.len();
        (first, (count > 0).then(|| format!("{count} more {noun}: --verbose, or the report")))
    }

    /// The same as lines of a table.
    pub(crate) fn lines(self, warnings: &[String]) -> Vec<String> {
        let (first, others) = self.of(warnings);
        let first = first.iter().flat_map(|warning| wrapped("warning", &clean(warning)));
        first.chain(others.iter().flat_map(|others| wrapped("note", others))).collect()
    }
}

/// Names without the beginning that all have in common, and that beginning. It is left out only if
/// a name would be cut, and ends where a word or a key does.
pub(crate) fn without_prefix(names: Vec<String>) -> (Vec<String>, Option<String>) {
    let is_cut = names.iter().any(|name| name.chars().count() > NAME);
    let Some(first) = names.first().filter(|_| is_cut && names.len() > 1) else {
        return (names, None);
    };
    let common = names.iter().fold(first.as_str(), |common, name| {
        let same = common.char_indices().zip(name.chars()).take_while(|((_, a), b)| a == b);
        let end = same.last().map_or(0, |((at, c), _)| at + c.len_utf8());
        &common[..end]
    });
    // A point behind a digit is a number's.
    let ends = |(at, c): &(usize, char)| match c {
        '.' => !common[..*at].ends_with(|before: char| before.is_ascii_digit()),
        c => [' ', '=', '-', '_', '/'].contains(c),
    };
    let end = common.char_indices().rev().find(ends).map_or(0, |(at, _)| at + 1);
    let prefix = common[..end].to_string();
    if prefix.is_empty() || names.iter().any(|name| name.len() == end) {
        return (names, None);
    }
    (names.iter().map(|name| name[end..].to_string()).collect(), Some(prefix))
}

/// A name of at most [`NAME`] characters: both ends of a longer one.
pub(crate) fn short(name: &str) -> String {
    shortened(&clean(name), NAME)
}

/// Names of at most so many characters. Different names stay different: where both ends are the
/// same, more of one end is kept, and at last a number takes the place of the end.
pub(crate) fn distinct(names: &[&str], limit: usize) -> Vec<String> {
    let count = |all: &[String]| all.iter().collect::<BTreeSet<_>>().len();
    let different = names.iter().collect::<BTreeSet<_>>().len();
    let middle = limit / 2;
    let mut fronts: Vec<usize> = (2..limit.saturating_sub(2)).collect();
    fronts.sort_by_key(|front| front.abs_diff(middle));
    let cut_at = |front: usize| names.iter().map(|name| cut(name, front, limit)).collect();
    let mut ways = fronts.into_iter().map(cut_at).map(|all: Vec<String>| (count(&all), all));
    if let Some((_, all)) = ways.find(|(found, _)| *found == different) {
        return all;
    }
    let mut seen: Vec<&str> = Vec::new();
    let numbered = names.iter().map(|name| {
        let number = seen.iter().position(|other| other == name).unwrap_or_else(|| {
            seen.push(name);
            seen.len() - 1
        });
        if name.chars().count() <= limit {
            return name.to_string();
        }
        let number = format!("…{}", number + 1);
        let front = limit.saturating_sub(number.chars().count());
        name.chars().take(front).chain(number.chars()).collect()
    });
    numbered.collect()
}

fn shortened(name: &str, limit: usize) -> String {
    cut(name, limit / 2, limit)
}

/// The first `front` characters of a longer name, and as many of its last as there is room for.
fn cut(name: &str, front: usize, limit: usize) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= limit {
        return name.to_string();
    }
    let back = limit.saturating_sub(front + 1);
    let mut text: String = chars[..front].iter().collect();
    text.push('…');
    text.extend(&chars[chars.len() - back..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_warnings_are_printed_and_the_others_counted() {
        let warnings = |count: usize| (1..=count).map(|n| format!("w{n}")).collect::<Vec<_>>();
        assert_eq!(Warnings::First.lines(&warnings(3)).len(), 3);
        let five = Warnings::First.lines(&warnings(5));
        assert_eq!(five.len(), 4, "{five:?}");
        assert!(five[3].contains("2 more warnings: --verbose, or the report"), "{five:?}");
        assert!(Warnings::First.lines(&warnings(4))[3].contains("1 more warning:"));
        assert_eq!(Warnings::All.lines(&warnings(5)).len(), 5);
        assert!(Warnings::First.lines(&[]).is_empty());
    }

    #[test]
    fn common_beginning_is_left_out_where_names_would_be_cut() {
        let of =
            |names: &[&str]| without_prefix(names.iter().map(|name| name.to_string()).collect());
        let (names, prefix) =
            of(&["go-back-n switch.pause.watchdog=off", "go-back-n switch.pause.watchdog=1ms"]);
        assert_eq!(names, ["off", "1ms"]);
        assert_eq!(prefix.as_deref(), Some("go-back-n switch.pause.watchdog="));
        let (names, prefix) = of(&["dctcp-small-buffer-a", "dctcp-small-buffer-b"]);
        assert_eq!((names[0].as_str(), prefix), ("dctcp-small-buffer-a", None), "they fit");
        for names in [
            ["a name that is far too long", "another name that is too long"],
            ["a very long name of a variant", "a very long name of a "],
        ] {
            assert_eq!(of(&names), (names.map(String::from).to_vec(), None));
        }
    }

    #[test]
    fn numbers_are_not_cut_at_their_points() {
        let key = "with-bulk transport.dctcp-g=";
        let names = ["0.0625", "0.07"].map(|value| format!("{key}{value}")).to_vec();
        let (cut, prefix) = without_prefix(names);
        assert_eq!((cut, prefix.as_deref()), (vec!["0.0625".into(), "0.07".into()], Some(key)));
    }

    #[test]
    fn different_names_stay_different_at_any_width() {
        let of = ["go-back-n", "go-back-n-pfc"].iter().flat_map(|name| {
            ["off", "1ms"].map(|value| format!("{name} switch.pause.watchdog={value}"))
        });
        let by = ["by-server", "by-rail"].iter().flat_map(|name| {
            ["ring", "halving-doubling", "recursive-doubling"]
                .map(|value| format!("{name} traffic.reduce.algorithm={value}"))
        });
        let many = (0..40).map(|i| format!("{}{i}{}", "a".repeat(30), "b".repeat(30)));
        for all in [of.collect::<Vec<_>>(), by.collect(), many.collect()] {
            let names: Vec<&str> = all.iter().map(String::as_str).collect();
            for limit in [NAME_LEAST, 12, NAME] {
                let cut = distinct(&names, limit);
                assert!(cut.iter().all(|name| name.chars().count() <= limit), "{cut:?}");
                let found: BTreeSet<&String> = cut.iter().collect();
                assert_eq!(found.len(), names.len(), "{limit}: {cut:?}");
            }
        }
        assert_eq!(distinct(&["dctcp", "", "dctcp", ""], NAME), ["dctcp", "", "dctcp", ""]);
    }
}
