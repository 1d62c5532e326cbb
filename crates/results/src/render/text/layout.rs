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
    if parts.is_empty() {
        return vec![format!("{name:<9} none")];
    }
    let last = parts.len() - 1;
    let with_commas = parts
        .iter()
        .enumerate()
        .map(|(at, part)| if at < last { format!("{part},") } else { part.clone() });
    fill(name, with_commas)
}

/// `name      text`, broken at spaces before column 100.
pub(crate) fn wrapped(name: &str, text: &str) -> Vec<String> {
    fill(name, text.split_whitespace().map(String::from))
}

pub(crate) fn fill(name: &str, parts: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines = vec![format!("{name:<9}")];
    for part in parts {
        let current = lines.last_mut().map_or(0, |line| line.chars().count());
        if current > 10 && current + 1 + part.chars().count() > 99 {
            lines.push(" ".repeat(9));
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(&part);
        }
    }
    lines
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
