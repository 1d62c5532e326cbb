//! The back end of documents that writes HTML: one page that needs nothing but itself.
//!
//! Invariant: text from outside enters through [`escape`] alone. The page asks the network for
//! nothing, and forbids the browser every request.

use std::fmt::Write;

use crate::render::document::{Block, Drawing, Figure, Stack};
use crate::render::draw::series::swatch;
use crate::render::draw::svg::attribute;
use crate::render::markup::escape;
use crate::render::words::words;

/// A page: `facts` are markup, `names` are of the series that its legend shows and hides.
pub(crate) struct Page<'a> {
    pub kind: &'a str,
    pub name: &'a str,
    pub facts: Vec<String>,
    pub about: Vec<Block>,
    pub names: Vec<&'a str>,
    pub blocks: Vec<Block>,
    /// The name of the words on the sources of what the page shows.
    pub rests_on: &'a str,
}

/// Terms of the field as the page uses them, each with its definition.
fn terms() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("terms.txt").lines().filter_map(|line| line.split_once(": "))
}

/// Words with the definition of a term behind them.
pub(crate) fn term(words: &str, term: &str) -> String {
    match terms().find(|(name, _)| *name == term) {
        Some((_, meaning)) => format!("<abbr title=\"{}\">{words}</abbr>", escape(meaning)),
        None => words.into(),
    }
}

/// A template with values in the places of their names: `{{name}}`.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let part = |part: &str| {
        let Some((name, rest)) = part.split_once("}}") else { return part.to_string() };
        let value = values.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value);
        format!("{value}{rest}")
    };
    template.split("{{").map(part).collect()
}

impl Page<'_> {
    pub fn html(&self) -> String {
        let mut body = String::new();
        write_all(&mut body, &self.about);
        legend(&mut body, &self.names);
        write_all(&mut body, &self.blocks);
        let facts: String = self.facts.iter().map(|fact| format!("<li>{fact}</li>")).collect();
        let names = terms().map(|(name, meaning)| [name.to_string(), escape(meaning)]);
        let terms: String = names.map(|pair| pair_of(&pair) + "\n").collect();
        filled(
            include_str!("page.html"),
            &[
                ("style", include_str!("page.css")),
                ("script", include_str!("page.js")),
                ("kind", self.kind),
                ("name", &escape(self.name)),
                ("facts", &facts),
                ("body", &body),
                ("terms", &terms),
                ("rests_on", &words(self.rests_on, &[])),
            ],
        )
    }
}

/// Names of a legend that need no lid.
const CHIPS: usize = 8;

/// The legend of a compare: it stays in sight, and a click hides a variant. One of many names is
/// folded, and has buttons that hide and show all.
fn legend(page: &mut String, names: &[&str]) {
    if names.len() < 2 {
        return;
    }
    let (lid, all, end) = match names.len() > CHIPS {
        true => (words("lid", &[&names.len().to_string()]), words("all", &[]), "</details>"),
        false => (String::new(), String::new(), ""),
    };
    let open = "<div class=\"legend\" role=\"group\" aria-label=\"Variants shown\">";
    let _ = write!(page, "{lid}{open}{all}");
    for (series, name) in names.iter().enumerate() {
        *page += &words("chip", &[&series.to_string(), &swatch(series), &escape(name)]);
    }
    let _ = writeln!(page, "</div>{end}");
}

fn write_all(page: &mut String, blocks: &[Block]) {
    blocks.iter().for_each(|block| write_block(page, block));
}

fn inside(page: &mut String, open: &str, blocks: &[Block], close: &str) {
    let _ = writeln!(page, "{open}");
    write_all(page, blocks);
    let _ = writeln!(page, "{close}");
}

fn pair_of([name, text]: &[String; 2]) -> String {
    format!("<div><dt>{name}</dt><dd>{text}</dd></div>")
}

fn write_block(page: &mut String, block: &Block) {
    let _ = match block {
        Block::Section { id, title, blocks } => {
            let open = format!("<section id=\"{id}\">\n<h2>{title}</h2>");
            return inside(page, &open, blocks, "</section>");
        }
        Block::Details { title, is_open, blocks } => {
            let open = if *is_open { " open" } else { "" };
            let open = format!("<details{open}><summary>{title}</summary>");
            return inside(page, &open, blocks, "</details>");
        }
        Block::Split(blocks) => return inside(page, "<div class=\"split\">", blocks, "</div>"),
        Block::Heading(text) => writeln!(page, "<h3>{text}</h3>"),
        Block::Paragraph { class, text } => {
            writeln!(page, "<p{}>{text}</p>", attribute("class", class))
        }
        Block::Figures(all) if all.is_empty() => return,
        Block::Figures(all) => {
            let all: String = all.iter().map(|of| figure("", of)).collect();
            write!(page, "<div class=\"charts\">\n{all}</div>\n")
        }
        Block::Beside { class, figure: of } => write!(page, "{}", figure(class, of)),
        Block::Table { class, head, rows } => return table(page, class, head, rows),
        Block::Pairs { class, pairs } => {
            let pairs: String = pairs.iter().map(pair_of).collect();
            writeln!(page, "<dl class=\"{class}\">{pairs}</dl>")
        }
        Block::Stacks(stacks) => {
            let stacks: String = stacks.iter().map(stack).collect();
            writeln!(page, "<div class=\"reasons\">{stacks}</div>")
        }
        Block::Items { class, items } => {
            let items: String = items.iter().map(|item| format!("<li>{item}</li>")).collect();
            writeln!(page, "<ul{}>{items}</ul>", attribute("class", class))
        }
        Block::Program(text) => writeln!(page, "<pre tabindex=\"0\">{}</pre>", escape(text)),
    };
}

/// The script offers the other scale of a drawing, which waits in a template.
fn figure(class: &str, of: &Figure) -> String {
    let Figure { caption, below, drawing, .. } = of;
    let (class, svg) = (attribute("class", class), of.svg());
    let other = match drawing {
        Drawing::Chart(chart) => chart.otherwise(),
        Drawing::Svg(_) => None,
    };
    let other = other.map_or(String::new(), |it| format!("<template>{}</template>", it.svg()));
    let words = format!("<figcaption><b>{caption}</b><span>{below}</span></figcaption>");
    format!("<figure{class}>{words}{svg}{other}</figure>\n")
}

fn stack(Stack { series, name, words, parts }: &Stack) -> String {
    let parts = parts.iter().map(|part| {
        let (look, width, title) = (part.look % 8, part.percent, &part.title);
        format!("<i class=\"r{look}\" style=\"width:{width:.2}%\" title=\"{title}\"></i>")
    });
    let parts = parts.collect::<String>();
    format!(
        "<div data-v=\"{series}\"><span class=\"name\">{name}</span><span \
         class=\"total\">{words}</span><span class=\"stack\">{parts}</span></div>"
    )
}

/// Columns that a phone shows beside each other; a wider table is turned there.
const NARROW: usize = 4;

/// The rules by which a phone shows the name of its column before each cell of a wide table.
fn turned(page: &mut String, head: &[String]) -> String {
    let name = format!("t{}", page.matches("<table").count());
    let rule = |(at, cell): (usize, &String)| {
        let text = without_markup(cell).replace('\\', "\\5c ").replace('\'', "\\27 ");
        format!(".{name} td:nth-child({})::before{{content:'{text}'}}", at + 1)
    };
    let rules: String = head.iter().enumerate().skip(1).map(rule).collect();
    let _ = writeln!(page, "<style>@media(max-width:600px){{{rules}}}</style>");
    format!(" turned {name}")
}

/// The text of markup for a style sheet, in which nothing ends the sheet.
fn without_markup(markup: &str) -> String {
    let mut is_inside = false;
    let is_text = |c: &char| {
        let was_inside = is_inside;
        is_inside = *c == '<' || is_inside && *c != '>';
        !was_inside && !is_inside
    };
    let spaced = markup.replace("<small", " <small");
    let text: String = spaced.chars().filter(is_text).collect();
    let entities = [("&lt;", "\u{2039}"), ("&gt;", "\u{203a}"), ("&quot;", "\""), ("&#39;", "'")];
    let text = entities.into_iter().fold(text, |text, (from, to)| text.replace(from, to));
    text.replace("&amp;", "&")
}

/// A table in a box that scrolls by itself; on a phone a wide one is turned, so that each row is a
/// list.
fn table(page: &mut String, class: &str, head: &[String], rows: &[Vec<String>]) {
    let turned = if head.len() > NARROW { turned(page, head) } else { String::new() };
    let heads: String = head.iter().map(|cell| format!("<th scope=\"col\">{cell}</th>")).collect();
    let _ = write!(page, "<div class=\"box\"><table class=\"{class}{turned}\"><thead>");
    let _ = writeln!(page, "<tr>{heads}</tr></thead><tbody>");
    for row in rows {
        if let [only] = row.as_slice() {
            *page += &words("group", &[&head.len().to_string(), only]);
            page.push('\n');
            continue;
        }
        let cell = |(at, cell): (usize, &String)| match at {
            0 => format!("<th scope=\"row\">{cell}</th>"),
            _ if cell.starts_with("<td") => cell.clone(),
            _ => format!("<td>{cell}</td>"),
        };
        let cells: String = row.iter().enumerate().map(cell).collect();
        let _ = writeln!(page, "<tr>{cells}</tr>");
    }
    page.push_str("</tbody></table></div>\n");
}

#[cfg(test)]
pub(crate) fn markup(block: &Block) -> String {
    let mut page = String::new();
    write_block(&mut page, block);
    page
}
