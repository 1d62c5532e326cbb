//! Columns and paragraphs of plain text.
//!
//! Invariant: no line is longer than 100 columns, but for a word that is.

use crate::model::clean;

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
    let shortened = rows.iter().map(|row| {
        let name = row.first().map(|name| shortened(name, limit));
        name.into_iter().chain(row.iter().skip(1).cloned()).collect()
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

pub(crate) fn shortened(name: &str, limit: usize) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= limit {
        return name.to_string();
    }
    let (front, back) = (limit / 2, limit - limit / 2 - 1);
    let mut text: String = chars[..front].iter().collect();
    text.push('…');
    text.extend(&chars[chars.len() - back..]);
    text
}
