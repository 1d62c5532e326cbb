//! Rows of numbers above rows of differences, in as many blocks as the width asks for.

use crate::model::{Difference, Estimate, FEW, Noise, Tree};
use crate::render::format::{NONE, change};
use crate::render::text::layout::{NAME_LEAST, WIDTH, fitted, widest, wrapped};
use crate::statistics::censoring::difference_of;
use crate::statistics::shows::{Column, Form};

/// The meaning of `≥` in tables.
pub(crate) const AT_LEAST: &str =
    "at least: what was open at the end counts with its age, and takes longer";

/// Which marks a table has.
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

    /// The meaning of its marks.
    pub fn legend(&self, seeds: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let meanings = [
            (
                '*',
                "beyond the noise: the 95 % interval of the paired difference excludes zero \
                 (without any difference, one figure in 20 is marked)",
            ),
            ('~', "all seeds agree on the sign, but they are too few for a 95 % interval"),
            (
                '=',
                "the same in every seed: the seeds' draws do not change it, so it is exact for \
                 these flows, and may be another for others",
            ),
            ('?', "what was open at the end could undo it"),
        ];
        for (mark, meaning) in meanings {
            if self.0.contains(&mark) {
                lines.extend(wrapped(&mark.to_string(), meaning));
            }
        }
        if seeds < 2 {
            let text =
                "one seed: it cannot separate a difference from noise; run more with --seeds 1..10";
            lines.extend(wrapped("note", text));
        } else if seeds < FEW {
            let odds = 1u32 << (seeds - 1);
            let text = format!(
                "{seeds} seeds are few: they all agree by chance one time in {odds}; from {FEW} \
                 on, say --seeds 1..10, differences get 95 % intervals (bootstrap over seeds)"
            );
            lines.extend(wrapped("note", &text));
        } else if !self.0.is_empty() && self.0.iter().all(|mark| *mark == '=') {
            let text = "the seeds change nothing: each difference is that of these very flows";
            lines.extend(wrapped("note", text));
        } else if !self.0.contains(&'*') {
            lines.extend(wrapped(
                "note",
                "no difference is beyond the noise (95 % intervals, bootstrap over seeds)",
            ));
        }
        lines
    }
}

/// Rows of values and of differences below them, and how many there are of values with their heads.
pub(crate) type Rows = (Vec<Vec<String>>, usize);

/// A table of these columns, in as many blocks as the width asks for. `title` stands above the
/// differences.
pub(crate) fn blocks(
    columns: &[Column],
    title: &str,
    marks: &mut Marks,
    rows: &dyn Fn(&[Column], bool, &mut Marks) -> Rows,
) -> Vec<String> {
    let (mut lines, mut left, mut is_first) = (Vec::new(), columns, true);
    while is_first || !left.is_empty() {
        let mut count = left.len();
        while count > 1 && !fits(&rows(&left[..count], is_first, &mut Marks::default()).0) {
            count -= 1;
        }
        let (block, rest) = left.split_at(count);
        let mut own = Marks::default();
        let (mut rows, values) = rows(block, is_first, &mut own);
        line_up(&mut rows, values, &own);
        let mut text = fitted(rows);
        if text.len() > values {
            text.insert(values, title.to_string());
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
    let blank = |rows: &mut [Vec<String>]| {
        rows.iter_mut().for_each(|row| row.iter_mut().skip(1).for_each(|cell| cell.push(' ')));
    };
    blank(above);
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
pub(crate) fn difference_cell(
    (first, own, differences): (&Tree<Estimate>, &Tree<Estimate>, &Tree<Difference>),
    column: &Column,
    marks: &mut Marks,
) -> String {
    let difference = difference_of(first, own, differences, &column.at());
    // From nothing to something has no percentage; nothing to nothing is no change.
    let unchanged = difference.is_some_and(|d| d.mean == Some(0.0));
    let text = if unchanged { "0%".into() } else { change(difference.and_then(|d| d.relative)) };
    format!("{text}{}", marks.of(difference.filter(|d| d.mean.is_some()).as_ref()))
}

/// Half of the interval's width.
pub(crate) fn half(estimate: &Estimate, form: Form) -> String {
    estimate.interval.map_or(NONE.into(), |[low, high]| form.text(Some((high - low) / 2.0)))
}
