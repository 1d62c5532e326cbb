//! Rows of numbers above rows of differences, in as many blocks as the width asks for.

use crate::model::{Difference, Estimate, FEW, Noise, Tree};
use crate::render::format::{self, NONE, change, percent};
use crate::render::text::layout::{NAME_LEAST, WIDTH, fitted, widest, wrapped};
use crate::render::words::words;
use crate::statistics::censoring::{difference_of, shown};
use crate::statistics::shows::{Column, Form};

#[derive(Default)]
pub(crate) struct Marks(Vec<char>);

impl Marks {
    /// The mark of a difference; a blank without one.
    pub fn of(&mut self, difference: Option<&Difference>) -> char {
        let mark = match difference.map(|difference| difference.noise) {
            Some(Noise::Beyond) => '*',
            Some(Noise::Agreed) => '~',
            Some(Noise::Identical) => '=',
            Some(Noise::Open) => '?',
            Some(Noise::Within | Noise::Unknown) => ' ',
            None => return ' ',
        };
        self.0.push(mark);
        mark
    }

    pub fn legend(&self, seeds: usize) -> Vec<String> {
        let marks = [('*', "beyond"), ('~', "agreed"), ('=', "identical"), ('?', "undone")];
        let there = marks.into_iter().filter(|(mark, _)| self.0.contains(mark));
        let mut lines: Vec<String> =
            there.flat_map(|(mark, name)| wrapped(&mark.to_string(), &words(name, &[]))).collect();
        let note = match seeds {
            0 | 1 => words("note-one-seed", &[]),
            _ if seeds < FEW => {
                let odds = (1u32 << (seeds - 1)).to_string();
                words("note-few-seeds", &[&seeds.to_string(), &odds, &FEW.to_string()])
            }
            _ if !self.0.is_empty() && self.0.iter().all(|mark| *mark == '=') => {
                words("note-identical", &[])
            }
            _ if !self.0.contains(&'*') => words("note-within", &[]),
            _ => return lines,
        };
        lines.extend(wrapped("note", &note));
        lines
    }
}

/// A table of numbers and of the differences between its rows.
pub(crate) struct Table<'a> {
    /// The head of the rows' names.
    pub name: &'static str,
    /// The heads of the first block's own columns.
    pub heads: &'static [[&'static str; 2]],
    pub rows: Vec<Row<'a>>,
    pub title: String,
    /// Whether half of its interval stands beside a number that has one.
    pub has_spread: bool,
    /// Whether a row of halves stands below the only one.
    pub has_halves: bool,
}

/// A row, with the first block's own cells.
pub(crate) struct Row<'a> {
    pub name: String,
    pub cells: Vec<String>,
    pub statistics: Option<&'a Tree<Estimate>>,
    pub against: Option<Against<'a>>,
}

/// The row's difference to another one, with the first block's own cells and what they are marked
/// by.
pub(crate) struct Against<'a> {
    pub first: &'a Tree<Estimate>,
    pub differences: &'a Tree<Difference>,
    pub cells: Vec<(String, Option<&'a Difference>)>,
}

impl Table<'_> {
    /// Of these columns, in as many blocks as the width asks for.
    pub fn lines(&self, columns: &[Column], marks: &mut Marks) -> Vec<String> {
        let (mut lines, mut left, mut is_first) = (Vec::new(), columns, true);
        while is_first || !left.is_empty() {
            let fits = |count: &usize| {
                let columns = &left[..*count];
                let values = self.values(columns, is_first).into_iter();
                let differences = self.differences(columns, is_first, &mut Marks::default());
                *count <= 1 || fits(&values.chain(differences).collect::<Vec<_>>())
            };
            let count = (0..=left.len()).rev().find(fits).unwrap_or(0);
            let (block, rest) = left.split_at(count);
            let mut own = Marks::default();
            let mut rows = self.values(block, is_first);
            let values = rows.len();
            rows.extend(self.differences(block, is_first, &mut own));
            line_up(&mut rows, values, &own);
            let mut text = fitted(rows);
            if text.len() > values {
                text.insert(values, self.title.clone());
            }
            if !is_first {
                lines.push(String::new());
            }
            lines.extend(text);
            marks.0.extend(own.0);
            (left, is_first) = (rest, false);
        }
        lines
    }

    /// A cell a column, and one more where its spread is shown.
    fn cells(
        &self,
        columns: &[Column],
        mut cell: impl FnMut(&Column) -> String,
        spread: impl Fn(&Column) -> String,
    ) -> Vec<String> {
        let mut cells = Vec::new();
        for column in columns {
            cells.push(cell(column));
            cells.extend((self.has_spread && column.form.has_spread()).then(|| spread(column)));
        }
        cells
    }

    /// Two rows of heads, and the rows of numbers.
    fn values(&self, columns: &[Column], is_first: bool) -> Vec<Vec<String>> {
        let row = |name: &str, first: Vec<String>, cells: Vec<String>| {
            let first = first.into_iter().filter(|_| is_first);
            std::iter::once(name.to_string()).chain(first).chain(cells).collect()
        };
        let head = |line: usize| {
            let first = self.heads.iter().map(|head| head[line].to_string()).collect();
            let spread = |_: &Column| ["", "±"][line].to_string();
            let cells = self.cells(columns, |column| column.head[line].clone(), spread);
            row(["", self.name][line], first, cells)
        };
        let mut rows = vec![head(0), head(1)];
        for of in &self.rows {
            let number = |column: &Column| {
                let shown = of.statistics.map(|tree| shown(tree, &column.path)).unwrap_or_default();
                let text = shown.text(|value| format::of(column.form, value));
                (text, half(&shown.estimate, column.form))
            };
            let cells = self.cells(columns, |column| number(column).0, |column| number(column).1);
            rows.push(row(&of.name, of.cells.clone(), cells));
            if self.has_halves {
                let halves = columns.iter().map(|column| number(column).1).collect();
                rows.push(row("±", vec![String::new(); of.cells.len()], halves));
            }
        }
        rows
    }

    fn differences(
        &self,
        columns: &[Column],
        is_first: bool,
        marks: &mut Marks,
    ) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for of in &self.rows {
            let (Some(own), Some(against)) = (of.statistics, &of.against) else { continue };
            let Against { first, differences, cells } = against;
            let mut row = vec![of.name.clone()];
            for (text, difference) in cells.iter().filter(|_| is_first) {
                row.push(format!("{text}{}", marks.of(*difference)));
            }
            let of = |column: &Column| difference_of(first, own, differences, &column.path);
            let cell = |column: &Column| difference_cell(of(column), marks);
            row.extend(self.cells(columns, cell, |column| half_of(of(column))));
            rows.push(row);
        }
        rows
    }
}

/// Whether rows have room, if need be with names cut short.
fn fits(rows: &[Vec<String>]) -> bool {
    let columns = rows.first().map_or(0, Vec::len);
    (1..columns).map(|at| widest(rows, at) + 1).sum::<usize>() + NAME_LEAST <= WIDTH
}

/// Puts digits above those of differences, which have a mark or a blank behind them, where there is
/// room. The first `values` rows are no differences.
fn line_up(rows: &mut [Vec<String>], values: usize, marks: &Marks) {
    let (above, below) = rows.split_at_mut(values);
    if marks.0.is_empty() || below.is_empty() {
        below.iter_mut().flatten().for_each(|cell| cell.truncate(cell.trim_end().len()));
        return;
    }
    let cells = above.iter_mut().flat_map(|row| row.iter_mut().skip(1));
    cells.for_each(|cell| cell.push(' '));
    if narrowest(rows) > WIDTH {
        let (above, _) = rows.split_at_mut(values);
        above.iter_mut().flatten().for_each(|cell| cell.truncate(cell.trim_end().len()));
    }
}

/// The least width of a table, but for a name of some length.
fn narrowest(rows: &[Vec<String>]) -> usize {
    const NAME_WANTED: usize = 14;
    let columns = rows.first().map_or(0, Vec::len);
    let name = widest(rows, 0).min(NAME_WANTED);
    (1..columns).map(|at| widest(rows, at) + 1).sum::<usize>() + name
}

/// The change of a number between two, with its mark.
fn difference_cell(difference: Option<Difference>, marks: &mut Marks) -> String {
    // From nothing to something has no percentage; nothing to nothing is no change.
    let unchanged = difference.is_some_and(|d| d.mean == Some(0.0));
    let text = if unchanged { "0%".into() } else { change(difference.and_then(|d| d.relative)) };
    format!("{text}{}", marks.of(difference.filter(|d| d.mean.is_some()).as_ref()))
}

fn half(estimate: &Estimate, form: Form) -> String {
    estimate.interval.map_or(NONE.into(), |[low, high]| format::of(form, Some((high - low) / 2.0)))
}

/// Half of the width of a difference's interval, as a share of what it is a difference to.
fn half_of(difference: Option<Difference>) -> String {
    let ends = difference.and_then(|difference| difference.relative_interval);
    percent(ends.map(|[low, high]| (high - low) / 2.0))
}

/// The meaning of `≥`, if one of these has it.
pub(crate) fn bounds(trees: &[&Tree<Estimate>], columns: &[Column]) -> Vec<String> {
    let has = |tree: &&Tree<Estimate>| columns.iter().any(|it| shown(tree, &it.path).at_least);
    if trees.iter().any(has) { wrapped("\u{2265}", &words("bound", &[])) } else { Vec::new() }
}
