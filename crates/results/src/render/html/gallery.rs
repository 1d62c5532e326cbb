//! The gallery: all papers' claims on one page, each beside its published number.
//!
//! Invariant: claims of different kinds are never counted together, but for the totals of a paper,
//! which stand beside the counts by kind. Nothing published is drawn as a filled mark.

use super::headline::{Strip, strips};
use super::page::Page;
use super::reproduction::{CLAIMS_HEAD, claim_row, labels, reading};
use super::reproduction_charts::charts;
use crate::model::{Claim, Experiment, Reproduction, Verdict};
use crate::render::claims::{KindCounts, about, kind_counts, short_id, worlds};
use crate::render::document::{Block, Figure, details, legend, note, row, section, table};
use crate::render::draw::series::swatch;
use crate::render::draw::unit::Unit;
use crate::render::markup::escape;

/// Figures of a paper that are not behind a click.
const OPEN: usize = 4;
const ROWS: usize = 24;
/// Series of a figure: a claim that holds, and one that fails.
const HOLDS: usize = 0;
const FAILS: usize = 1;

/// A paper of the gallery. Experiments without runs have no charts of their own.
#[derive(Clone, Debug, Default)]
pub struct Exhibit {
    pub year: u16,
    /// The run that it was measured by: `full run of 2026-11-25, revision 28e457c7c6f2`.
    pub run: String,
    pub reproduction: Reproduction,
}

pub fn gallery(papers: &[Exhibit]) -> String {
    let claims: Vec<&Claim> = papers.iter().flat_map(|of| &of.reproduction.claims).collect();
    let s = if papers.len() == 1 { "" } else { "s" };
    let heading = Block::Heading("All claims by kind".into());
    let all = section("papers", "Papers", vec![overview(papers), heading, kinds(&claims)]);
    let page = Page {
        kind: "gallery",
        name: "Published and measured",
        facts: vec![format!("<b>{} paper{s}, {} claims</b>", papers.len(), claims.len())],
        about: Vec::new(),
        names: Vec::new(),
        blocks: std::iter::once(all).chain(papers.iter().map(paper)).collect(),
        rests_on: "rests-on-gallery",
    };
    page.html()
}

fn anchor(of: &Exhibit) -> String {
    format!("paper-{}", escape(&of.reproduction.paper))
}

/// The verdicts, with the colours of their bars and the words on several claims.
const VERDICTS: [(Verdict, &str, &str); 3] = [
    (Verdict::Holds, "good", "hold"),
    (Verdict::Fails, "bad", "fail"),
    (Verdict::NotEvaluated, "rule", "are not evaluated"),
];

fn count(claims: &[Claim], status: Verdict) -> usize {
    claims.iter().filter(|claim| claim.status == status).count()
}

fn overview(papers: &[Exhibit]) -> Block {
    let cells = |of: &Exhibit| {
        let claims = &of.reproduction.claims;
        let title = escape(&of.reproduction.title);
        let counts = VERDICTS.map(|(status, ..)| count(claims, status).to_string());
        let bar = format!("<td style=\"min-width:8rem\">{}</td>", bar(claims));
        let name = format!("<a href=\"#{}\">{title}</a>", anchor(of));
        row(name, std::iter::once(claims.len().to_string()).chain(counts).chain([bar]))
    };
    let head = "paper|claims|hold|fail|not evaluated|share";
    table("gallery", head, papers.iter().map(cells).collect())
}

/// The shares of claims that hold, fail, and are not evaluated.
fn bar(claims: &[Claim]) -> String {
    let part = |(status, colour, _): &(Verdict, &str, &str)| {
        let (n, name) = (count(claims, *status), status.name());
        let width = n as f64 / claims.len() as f64 * 100.0;
        let style = format!("width:{width:.2}%;background:var(--{colour})");
        (n > 0).then(|| format!("<i style=\"{style}\" title=\"{n} {name}\"></i>"))
    };
    let parts: String = VERDICTS.iter().filter_map(part).collect();
    format!("<span class=\"stack\">{parts}</span>")
}

fn paper(of: &Exhibit) -> Block {
    let reproduction = &of.reproduction;
    let claims: Vec<&Claim> = reproduction.claims.iter().collect();
    let run = format!("{}, {}.", escape(&of.run), escape(&worlds(&claims)));
    let mut drawn = beside_published(reproduction);
    let rest = drawn.split_off(drawn.len().min(OPEN));
    let mut blocks = vec![note(run)];
    blocks.extend(reading(reproduction, &claims));
    blocks.push(kinds(&claims));
    if !drawn.is_empty() {
        let (holds, fails) = (swatch(HOLDS), swatch(FAILS));
        let text = format!(
            "Filled: measured, with its interval over seeds ({holds}holds, {fails}fails). Hollow: \
             published."
        );
        blocks.extend([Block::Paragraph { class: "", text }, Block::Figures(drawn)]);
    }
    if !rest.is_empty() {
        let title = format!("{} more figures of claims", rest.len());
        blocks.push(details(&title, vec![Block::Figures(rest)]));
    }
    blocks.extend(curves(reproduction));
    blocks.extend(by_verdict(reproduction));
    section(&anchor(of), &format!("{}, {}", escape(&reproduction.title), of.year), blocks)
}

/// How many of each kind hold.
fn kinds(claims: &[&Claim]) -> Block {
    let cells = |of: KindCounts| {
        let counts = [of.all].into_iter().chain(of.verdicts).chain([of.noise, of.anyway]);
        row(of.kind.name(), counts.map(|n| n.to_string()))
    };
    let head = "kind|claims|hold|fail|not evaluated|within the noise|hold without it, too";
    table("", head, kind_counts(claims).into_iter().map(cells).collect())
}

/// For each experiment and unit the claims with a published number, beside what was measured.
fn beside_published(of: &Reproduction) -> Vec<Figure> {
    let mut groups: Vec<((&str, &str), Vec<Strip>)> = Vec::new();
    let has_both = |claim: &&Claim| claim.paper.is_some() && claim.measured.is_some();
    for claim in of.claims.iter().filter(has_both) {
        let group = (claim.experiment.as_str(), claim.unit.as_str());
        match groups.iter_mut().find(|(other, _)| *other == group) {
            Some((_, strips)) => strips.push(strip(of, claim)),
            None => groups.push((group, vec![strip(of, claim)])),
        }
    }
    let mut drawn = Vec::new();
    for ((name, unit), own) in groups {
        let title = of.experiments.iter().find(|experiment| experiment.name == name);
        let title = escape(title.map_or(name, |experiment| &experiment.title));
        let parts = own.len().div_ceil(ROWS);
        for (at, rows) in own.chunks(ROWS).enumerate() {
            let part = if parts > 1 { format!(" ({} of {parts})", at + 1) } else { String::new() };
            let (unit, words) = axis_of(unit);
            drawn.extend(strips(&format!("{title}{part}"), unit, words, rows));
        }
    }
    drawn
}

/// The axis of a claim's unit. Percentages of claims are changes, too: they may be below zero and
/// above a hundred.
fn axis_of(unit: &str) -> (Unit, &'static str) {
    match unit {
        "us" => (Unit::Time, "time"),
        "count" => (Unit::Count, "count"),
        "percent" => (Unit::Ratio, "percent"),
        _ => (Unit::Ratio, "ratio"),
    }
}

fn strip(of: &Reproduction, claim: &Claim) -> Strip {
    Strip {
        series: if claim.status == Verdict::Fails { FAILS } else { HOLDS },
        name: short_id(of, claim).to_string(),
        mean: claim.measured,
        interval: claim.interval.filter(|[low, high]| low < high),
        seeds: Vec::new(),
        published: claim.paper,
    }
}

/// The charts of experiments that were run, with the names of their series.
fn curves(of: &Reproduction) -> Option<Block> {
    let names = labels(of);
    let was_run = |experiment: &&Experiment| experiment.rows().next().is_some();
    let run: Vec<&Experiment> = of.experiments.iter().filter(was_run).collect();
    let escaped: Vec<String> = names.iter().map(|name| escape(name)).collect();
    let key = legend(escaped.iter().map(String::as_str));
    let key = key.into_iter().map(|name| name + " \u{2003}").collect::<String>();
    let charts = run.iter().flat_map(|experiment| {
        let figures = Block::Figures(charts(experiment, &names));
        [Block::Heading(escape(&experiment.title)), figures]
    });
    let blocks = std::iter::once(note(key)).chain(charts).collect();
    let title = format!("Charts of {} experiments", run.len());
    (!run.is_empty()).then(|| details(&title, blocks))
}

/// Claims in tables: those that fail in sight, the others behind a click.
fn by_verdict(of: &Reproduction) -> Vec<Block> {
    let [holds, fails, open] = VERDICTS;
    let tables = [fails, holds, open].map(|(status, _, words)| {
        let row = |claim: &Claim| {
            let about = escape(&about(claim));
            claim_row(claim, &escape(&claim.id), &escape(short_id(of, claim)), &about)
        };
        let own = of.claims.iter().filter(|claim| claim.status == status);
        let rows: Vec<Vec<String>> = own.map(row).collect();
        let title = match rows.len() {
            0 => return None,
            1 => format!("1 claim: {}", status.name()),
            n => format!("{n} claims {words}"),
        };
        let (is_open, blocks) =
            (status == Verdict::Fails, vec![table("claims", CLAIMS_HEAD, rows)]);
        Some(Block::Details { title, is_open, blocks })
    });
    tables.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exhibit() -> Exhibit {
        let claim = |id: &str, measured: Option<f64>| {
            let mut claim = Claim {
                id: format!("paper-{id}"),
                statement: "a < b".into(),
                paper: Some(-50.0),
                accept: [None, Some(-40.0)],
                unit: "percent".into(),
                experiment: "one".into(),
                ..Claim::default()
            };
            if let Some(measured) = measured {
                claim.judge(measured);
                claim.interval = Some([measured - 5.0, measured + 5.0]);
            }
            claim
        };
        let mut reproduction = Reproduction::new("paper", "A & B", "0.1.0", "full");
        reproduction.claims =
            vec![claim("S1", Some(-60.0)), claim("S2", Some(-20.0)), claim("S3", None)];
        let title = "first experiment".to_string();
        reproduction.experiments =
            vec![Experiment { name: "one".into(), title, ..Experiment::default() }];
        Exhibit { year: 2026, run: "full run of 2026-11-25".into(), reproduction }
    }

    #[test]
    fn each_paper_has_its_counts_its_figure_and_its_claims() {
        let page = gallery(&[exhibit()]);
        for part in [
            "<b>1 paper, 3 claims</b>",
            "<th scope=\"row\">published</th><td>3</td><td>1</td><td>1</td><td>1</td>",
            "<a href=\"#paper-paper\">A &amp; B</a>",
            "<h2>A &amp; B, 2026</h2>",
            "<b>first experiment</b>",
            "S1, published",
            "<summary>1 claim: fails</summary>",
            "<span id=\"claim-paper-S2\">S2</span>",
            "a &lt; b",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        // A claim that was not evaluated is in no figure.
        assert_eq!(page.matches("mark hollow").count(), 2);
        assert!(!page.contains("S3, published") && !page.contains("://"));
    }

    #[test]
    fn a_figure_has_few_rows() {
        let mut of = exhibit();
        let first = of.reproduction.claims[0].clone();
        of.reproduction.claims =
            (0..50).map(|n| Claim { id: format!("paper-C{n}"), ..first.clone() }).collect();
        let drawn = beside_published(&of.reproduction);
        let captions: Vec<&str> = drawn.iter().map(|figure| figure.caption.as_str()).collect();
        let titles = [1, 2, 3].map(|n| format!("first experiment ({n} of 3)"));
        assert_eq!(captions, titles);
    }
}
