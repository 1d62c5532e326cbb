//! The document model: a command makes a list of blocks, and back ends lay them out.
//!
//! Invariant: texts of blocks are markup; text from outside enters through
//! [`escape`](super::markup::escape).

use crate::render::draw::chart::Chart;
use crate::render::draw::series::swatch;

pub(crate) enum Block {
    Section {
        id: String,
        title: String,
        blocks: Vec<Block>,
    },
    Details {
        title: String,
        is_open: bool,
        blocks: Vec<Block>,
    },
    Split(Vec<Block>),
    Heading(String),
    Paragraph {
        class: &'static str,
        text: String,
    },
    Figures(Vec<Figure>),
    Beside {
        class: &'static str,
        figure: Figure,
    },
    Table {
        class: &'static str,
        head: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    /// Names, each with a number or a text.
    Pairs {
        class: &'static str,
        pairs: Vec<[String; 2]>,
    },
    /// Bars of one scale, each of parts.
    Stacks(Vec<Stack>),
    Items {
        class: &'static str,
        items: Vec<String>,
    },
    /// Text of a program, which is not markup.
    Program(String),
}

/// A drawing with its words, and the name of its file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figure {
    /// Of the file, without its ending.
    pub name: String,
    pub caption: String,
    /// Facts that must be known to read it.
    pub below: String,
    pub drawing: Drawing,
}

#[derive(Clone, Debug)]
pub(crate) enum Drawing {
    Chart(Box<Chart>),
    Svg(String),
}

impl Default for Drawing {
    fn default() -> Drawing {
        Drawing::Svg(String::new())
    }
}

impl Figure {
    /// Of a chart; the chart's label is that of the figure's caption if it has none.
    pub fn of(caption: impl Into<String>, below: impl Into<String>, chart: Chart) -> Figure {
        let drawing = Drawing::Chart(Box::new(chart));
        Figure { name: String::new(), caption: caption.into(), below: below.into(), drawing }
    }

    pub fn named(self, name: impl Into<String>) -> Figure {
        Figure { name: name.into(), ..self }
    }

    pub fn svg(&self) -> String {
        match &self.drawing {
            Drawing::Chart(chart) => chart.svg(),
            Drawing::Svg(svg) => svg.clone(),
        }
    }
}

/// A bar: its name, the words beside it, its parts.
pub(crate) struct Stack {
    pub series: usize,
    pub name: String,
    pub words: String,
    /// Each with the number of its colour, its share of the longest bar in percent, and its title.
    pub parts: Vec<Part>,
}

pub(crate) struct Part {
    pub look: usize,
    pub percent: f64,
    pub title: String,
}

/// The columns of a table: a list, or names between bars.
pub(crate) struct Head(Vec<String>);

impl From<&str> for Head {
    fn from(names: &str) -> Head {
        Head(names.split('|').map(String::from).collect())
    }
}

impl From<Vec<String>> for Head {
    fn from(names: Vec<String>) -> Head {
        Head(names)
    }
}

pub(crate) fn section(id: &str, title: &str, blocks: Vec<Block>) -> Block {
    Block::Section { id: id.into(), title: title.into(), blocks }
}

pub(crate) fn details(title: &str, blocks: Vec<Block>) -> Block {
    Block::Details { title: title.into(), is_open: false, blocks }
}

pub(crate) fn note(text: impl Into<String>) -> Block {
    Block::Paragraph { class: "note", text: text.into() }
}

/// The sentence of a section without contents.
pub(crate) fn empty(text: &str) -> Block {
    Block::Paragraph { class: "empty", text: text.into() }
}

/// A row's first cell is its head, one that is `<td …` stays as it is, and a row of one cell is a
/// heading across.
pub(crate) fn table(class: &'static str, head: impl Into<Head>, rows: Vec<Vec<String>>) -> Block {
    Block::Table { class, head: head.into().0, rows }
}

/// A name with others behind it.
pub(crate) fn row(name: impl Into<String>, cells: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(name.into()).chain(cells).collect()
}

/// Names with the marks of their series.
pub(crate) fn legend<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names.into_iter().enumerate().map(|(at, name)| swatch(at) + name).collect()
}
