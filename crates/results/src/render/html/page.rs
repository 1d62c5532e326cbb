//! The parts that every section of the page is made of: head and foot, headings, tables, figures,
//! terms.
//!
//! Invariant: text from outside enters through [`escape`] alone. The page asks the network for
//! nothing, and says so to the browser.

use std::fmt::Write;

use super::chart::Chart;
use super::series::swatch;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Terms of the field as the page uses them, each with its definition.
pub(crate) const TERMS: [(&str, &str); 16] = [
    (
        "FCT",
        "Flow completion time: from a flow's start to its last byte delivered in order to the \
         receiving application.",
    ),
    (
        "QCT",
        "Query completion time: from a query's first request sent (or its start) to its last \
         response complete.",
    ),
    (
        "slowdown",
        "FCT over the FCT of the same flow alone in the empty network, which is computed, not \
         simulated.",
    ),
    ("mice", "Flows smaller than the scenario's key mice."),
    ("elephants", "Flows larger than the scenario's key elephants."),
    (
        "p50, p95, p99, p99.9",
        "Percentiles: half, 95 %, 99 % and 99.9 % of the completed ones took at most this long. \
         Exact, not estimated.",
    ),
    (
        "≥",
        "At least: what was open at the end counts with its age, and takes longer. Without the \
         sign, a number is that of the completed ones, and what is open could not move it.",
    ),
    (
        "open",
        "Flows or queries that had not completed when the run ended: counted, never averaged.",
    ),
    (
        "mean, open at horizon",
        "The mean where what is open counts as if it completed at the run's end.",
    ),
    ("goodput", "Application bytes delivered over the measured time, of all hosts together."),
    ("drops", "Packets dropped anywhere, for whatever reason."),
    ("timeouts", "Retransmission timeouts of senders."),
    ("sent again", "Data packets that were retransmitted."),
    ("marks", "Packets marked “congestion experienced” (ECN)."),
    (
        "fairness",
        "Jain's index over the goodput of the pairs of hosts that were active: 1 is equal shares.",
    ),
    ("queue occupancy", "Bytes that wait at a port, without the packet in transmission."),
];

/// Text for the page: markup becomes text; control characters and those that XML forbids vanish.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}

/// Words with the definition of a term behind them.
pub(crate) fn term(words: &str, term: &str) -> String {
    match TERMS.iter().find(|(name, _)| *name == term) {
        Some((_, meaning)) => format!("<abbr title=\"{}\">{words}</abbr>", escape(meaning)),
        None => words.into(),
    }
}

/// From the start to the title. `facts` are markup.
pub(crate) fn head(page: &mut String, name: &str, kind: &str, facts: &[String]) {
    let name = escape(name);
    // The policy forbids every request; the empty icon keeps browsers from asking for one.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<meta \
         http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" \
         href=\"data:,\">\n<title>{name} · \
         millpond</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<p \
         class=\"kind\">millpond · {kind}</p>\n<h1>{name}</h1>\n<ul class=\"facts\">"
    );
    for fact in facts {
        let _ = write!(page, "<li>{fact}</li>");
    }
    page.push_str("</ul>\n</header>\n");
}

/// Names of a legend that need no lid.
const CHIPS: usize = 8;

/// The legend of a compare: it stays in sight, and a click hides a variant. One of many names is
/// folded, and has buttons that hide and show all.
pub(crate) fn legend(page: &mut String, names: &[&str]) {
    if names.len() < 2 {
        return;
    }
    let is_folded = names.len() > CHIPS;
    if is_folded {
        let _ = write!(
            page,
            "<details class=\"legend-lid\"><summary>Legend: {} variants</summary>",
            names.len()
        );
    }
    page.push_str("<div class=\"legend\" role=\"group\" aria-label=\"Variants shown\">");
    if is_folded {
        page.push_str(
            "<button type=\"button\" data-toggle-all=\"true\">all</button><button type=\"button\" \
             data-toggle-all=\"false\">none</button>",
        );
    }
    for (series, name) in names.iter().enumerate() {
        let (mark, name) = (swatch(series), escape(name));
        let _ = write!(
            page,
            "<button type=\"button\" aria-pressed=\"true\" \
             data-toggle=\"{series}\">{mark}{name}</button>"
        );
    }
    page.push_str(if is_folded { "</div></details>\n" } else { "</div>\n" });
}

/// Definitions, script and end of a page that shows nothing but simulated results.
pub(crate) fn foot(page: &mut String) {
    foot_with(
        page,
        "Everything on this page is simulated or computed from simulated results, and is in the \
         files beside it: summary.json or compare.json, and Parquet. – means that there is \
         nothing to make a number of.",
    );
}

/// Definitions, what the page rests on, script and end.
pub(crate) fn foot_with(page: &mut String, rests_on: &str) {
    page.push_str("<section id=\"terms\">\n<h2>Terms</h2>\n<dl>\n");
    for (name, meaning) in TERMS {
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(meaning));
    }
    let _ = write!(
        page,
        "</dl>\n<p class=\"note\">{rests_on}</p>\n</section>\n</main>\n<script>\n{SCRIPT}</\
         script>\n</body>\n</html>\n"
    );
}

/// Opens a section.
pub(crate) fn section(page: &mut String, id: &str, title: &str) {
    let _ = writeln!(page, "<section id=\"{id}\">\n<h2>{title}</h2>");
}

/// Closes it.
pub(crate) fn end(page: &mut String) {
    page.push_str("</section>\n");
}

/// A paragraph in small print. Markup.
pub(crate) fn note(page: &mut String, text: &str) {
    let _ = writeln!(page, "<p class=\"note\">{text}</p>");
}

/// Where there is nothing to show. Markup.
pub(crate) fn empty(page: &mut String, text: &str) {
    let _ = writeln!(page, "<p class=\"empty\">{text}</p>");
}

/// A drawing with its words, which are markup.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Its content.
    pub caption: String,
    /// Facts that must be known to read it.
    pub below: String,
    /// The drawing.
    pub svg: String,
    /// The same drawing with the other scale of its values.
    pub otherwise: Option<String>,
}

impl Figure {
    /// Of a chart.
    pub fn of(caption: impl Into<String>, below: impl Into<String>, chart: &Chart) -> Figure {
        let otherwise = chart.otherwise().map(|chart| chart.svg());
        Figure { caption: caption.into(), below: below.into(), svg: chart.svg(), otherwise }
    }
}

/// A chart with its words, which are markup, and the name of its file.
#[derive(Clone, Debug)]
pub(crate) struct Drawing {
    /// Of the file, without its ending.
    pub name: String,
    /// Its content.
    pub caption: String,
    /// Facts that must be known to read it.
    pub below: String,
    /// The chart.
    pub chart: Chart,
}

impl From<&Drawing> for Figure {
    fn from(of: &Drawing) -> Figure {
        Figure::of(&of.caption, &of.below, &of.chart)
    }
}

/// Figures beside each other. The script offers the other scale of a drawing, which waits in a
/// template.
pub(crate) fn figures(page: &mut String, figures: &[Figure]) {
    if figures.is_empty() {
        return;
    }
    page.push_str("<div class=\"charts\">\n");
    for Figure { caption, below, svg, otherwise } in figures {
        let other =
            otherwise.as_ref().map_or(String::new(), |svg| format!("<template>{svg}</template>"));
        let _ = writeln!(
            page,
            "<figure><figcaption><b>{caption}</b><span>{below}</span></figcaption>{svg}{other}</\
             figure>"
        );
    }
    page.push_str("</div>\n");
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
/// list. The cells are markup: a row's first is its head, one that is `<td …` stays as it is, and a
/// row of one cell is a heading across.
pub(crate) fn table(page: &mut String, class: &str, head: &[String], rows: &[Vec<String>]) {
    let turned = if head.len() > NARROW { turned(page, head) } else { String::new() };
    let _ = write!(page, "<div class=\"box\"><table class=\"{class}{turned}\"><thead><tr>");
    for cell in head {
        let _ = write!(page, "<th scope=\"col\">{cell}</th>");
    }
    page.push_str("</tr></thead><tbody>\n");
    for row in rows {
        if let [only] = row.as_slice() {
            let _ = writeln!(
                page,
                "<tr class=\"group\"><th colspan=\"{}\"><span>{only}</span></th></tr>",
                head.len()
            );
            continue;
        }
        page.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = match at {
                0 => write!(page, "<th scope=\"row\">{cell}</th>"),
                _ if cell.starts_with("<td") => write!(page, "{cell}"),
                _ => write!(page, "<td>{cell}</td>"),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

/// Something that opens on demand.
pub(crate) fn details(page: &mut String, title: &str, inside: impl FnOnce(&mut String)) {
    let _ = writeln!(page, "<details><summary>{title}</summary>");
    inside(page);
    page.push_str("</details>\n");
}
