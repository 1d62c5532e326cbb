//! The gallery: all papers' claims on one page, each beside its published number.
//!
//! Invariant: claims of different kinds are never counted together, but for the totals of a paper,
//! which stand beside the counts by kind. Nothing published is drawn as a filled mark.

use super::headline::{Strip, strips};
use super::page::{self, Figure, details, end, escape, figures, note, section, table};
use super::reproduction::{CLAIMS_HEAD, claim_row, labels};
use super::reproduction_charts::charts;
use super::series::swatch;
use super::unit::Unit;
use crate::model::{Claim, ClaimKind, Experiment, Noise, Reproduction, Verdict};
use crate::render::claims::{about, short_id, worlds};
use std::fmt::Write;

/// Figures of a paper that are not behind a click.
const OPEN: usize = 4;
/// Rows of a figure.
const ROWS: usize = 24;
/// Series of a figure: a claim that holds, and one that fails.
const HOLDS: usize = 0;
const FAILS: usize = 1;

/// A paper of the gallery. Experiments without runs have no charts of their own.
#[derive(Clone, Debug, Default)]
pub struct Exhibit {
    /// Of the publication.
    pub year: u16,
    /// The run that it was measured by: `full run of 2026-11-25, revision 28e457c7c6f2`.
    pub run: String,
    /// Its claims and experiments.
    pub reproduction: Reproduction,
}

/// The page.
pub fn gallery(papers: &[Exhibit]) -> String {
    let mut page = String::new();
    let claims: Vec<&Claim> = papers.iter().flat_map(|of| &of.reproduction.claims).collect();
    let s = if papers.len() == 1 { "" } else { "s" };
    let facts = [format!("<b>{} paper{s}, {} claims</b>", papers.len(), claims.len())];
    page::head(&mut page, "Published and measured", "gallery", &facts);
    section(&mut page, "papers", "Papers");
    overview(&mut page, papers);
    page.push_str("<h3>All claims by kind</h3>\n");
    kinds(&mut page, &claims);
    end(&mut page);
    for of in papers {
        paper(&mut page, of);
    }
    page::foot_with(
        &mut page,
        "The column “paper” and hollow marks are published numbers from the sources named beside \
         them. The column “measured” and filled marks are of the runs named below each title. \
         docs/reproduce.md describes how claims are judged. – means that there is nothing to make \
         a number of.",
    );
    page
}

fn anchor(of: &Exhibit) -> String {
    format!("paper-{}", escape(&of.reproduction.paper))
}

fn count(claims: &[Claim], status: Verdict) -> usize {
    claims.iter().filter(|claim| claim.status == status).count()
}

/// A row a paper.
fn overview(page: &mut String, papers: &[Exhibit]) {
    let head = ["paper", "claims", "hold", "fail", "not evaluated", "share"];
    let row = |of: &Exhibit| {
        let claims = &of.reproduction.claims;
        let title = escape(&of.reproduction.title);
        let n = |status| count(claims, status).to_string();
        vec![
            format!("<a href=\"#{}\">{title}</a>", anchor(of)),
            claims.len().to_string(),
            n(Verdict::Holds),
            n(Verdict::Fails),
            n(Verdict::NotEvaluated),
            format!("<td style=\"min-width:8rem\">{}</td>", bar(claims)),
        ]
    };
    let rows: Vec<Vec<String>> = papers.iter().map(row).collect();
    table(page, "gallery", &head.map(String::from), &rows);
}

/// The shares of claims that hold, fail, and are not evaluated.
fn bar(claims: &[Claim]) -> String {
    let all = claims.len().max(1) as f64;
    let part = |status: Verdict, colour: &str| {
        let n = count(claims, status);
        let width = n as f64 / all * 100.0;
        let title = format!("{n} {}", status.name());
        match n {
            0 => String::new(),
            _ => format!(
                "<i style=\"width:{width:.2}%;background:var(--{colour})\" title=\"{title}\"></i>"
            ),
        }
    };
    let parts =
        [(Verdict::Holds, "good"), (Verdict::Fails, "bad"), (Verdict::NotEvaluated, "rule")];
    let parts = parts.map(|(status, colour)| part(status, colour)).concat();
    format!("<span class=\"stack\">{parts}</span>")
}

fn paper(page: &mut String, of: &Exhibit) {
    let reproduction = &of.reproduction;
    let claims: Vec<&Claim> = reproduction.claims.iter().collect();
    section(page, &anchor(of), &format!("{}, {}", escape(&reproduction.title), of.year));
    note(page, &format!("{}, {}.", escape(&of.run), escape(&worlds(&claims))));
    kinds(page, &claims);
    let mut drawn = beside_published(reproduction);
    let rest = drawn.split_off(drawn.len().min(OPEN));
    if !drawn.is_empty() {
        let _ = writeln!(
            page,
            "<p>Filled: measured, with its interval over seeds ({}holds, {}fails). Hollow: \
             published.</p>",
            swatch(HOLDS),
            swatch(FAILS)
        );
    }
    figures(page, &drawn);
    if !rest.is_empty() {
        details(page, &format!("{} more figures of claims", rest.len()), |page| {
            figures(page, &rest);
        });
    }
    curves(page, reproduction);
    by_verdict(page, reproduction);
    end(page);
}

/// How many of each kind hold.
fn kinds(page: &mut String, claims: &[&Claim]) {
    let head = [
        "kind",
        "claims",
        "hold",
        "fail",
        "not evaluated",
        "within the noise",
        "hold without it, too",
    ];
    let mut rows = Vec::new();
    for kind in ClaimKind::ALL {
        let own: Vec<&&Claim> = claims.iter().filter(|claim| claim.kind == kind).collect();
        let n = |is: &dyn Fn(&Claim) -> bool| own.iter().filter(|claim| is(claim)).count();
        if !own.is_empty() {
            rows.push(vec![
                kind.name().to_string(),
                own.len().to_string(),
                n(&|claim| claim.status == Verdict::Holds).to_string(),
                n(&|claim| claim.status == Verdict::Fails).to_string(),
                n(&|claim| claim.status == Verdict::NotEvaluated).to_string(),
                n(&|claim| claim.noise == Noise::Within).to_string(),
                n(&Claim::holds_anyway).to_string(),
            ]);
        }
    }
    table(page, "", &head.map(String::from), &rows);
}

/// For each experiment and unit the claims with a published number, beside what was measured.
fn beside_published(of: &Reproduction) -> Vec<Figure> {
    let mut groups: Vec<(&str, &str)> = Vec::new();
    let has_both = |claim: &&Claim| claim.paper.is_some() && claim.measured.is_some();
    for claim in of.claims.iter().filter(has_both) {
        let group = (claim.experiment.as_str(), claim.unit.as_str());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let mut drawn = Vec::new();
    for (name, unit) in groups {
        let own = of.claims.iter().filter(has_both);
        let own: Vec<Strip> = own
            .filter(|claim| claim.experiment == name && claim.unit == unit)
            .map(|claim| strip(of, claim))
            .collect();
        let title = of.experiments.iter().find(|experiment| experiment.name == name);
        let title = escape(title.map_or(name, |experiment| &experiment.title));
        let parts = own.len().div_ceil(ROWS);
        for (at, rows) in own.chunks(ROWS).enumerate() {
            let part = if parts > 1 { format!(" ({} of {parts})", at + 1) } else { String::new() };
            let (unit, words) = axis_of(unit);
            drawn.extend(strips(&format!("{title}{part}"), "", unit, words, rows));
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
fn curves(page: &mut String, of: &Reproduction) {
    let names = labels(of);
    let was_run = |experiment: &&Experiment| experiment.rows().next().is_some();
    let run: Vec<&Experiment> = of.experiments.iter().filter(was_run).collect();
    if run.is_empty() {
        return;
    }
    details(page, &format!("Charts of {} experiments", run.len()), |page| {
        let mut key = String::new();
        for (series, name) in names.iter().enumerate() {
            let _ = write!(key, "{}{} \u{2003}", swatch(series), escape(name));
        }
        note(page, &key);
        for experiment in run {
            let _ = writeln!(page, "<h3>{}</h3>", escape(&experiment.title));
            figures(page, &charts(experiment, &names));
        }
    });
}

/// Claims in tables: those that fail in sight, the others behind a click.
fn by_verdict(page: &mut String, of: &Reproduction) {
    for (status, words) in [
        (Verdict::Fails, "fail"),
        (Verdict::Holds, "hold"),
        (Verdict::NotEvaluated, "are not evaluated"),
    ] {
        let row = |claim: &Claim| {
            let about = escape(&about(claim));
            claim_row(claim, &escape(&claim.id), &escape(short_id(of, claim)), &about)
        };
        let own = of.claims.iter().filter(|claim| claim.status == status);
        let rows: Vec<Vec<String>> = own.map(row).collect();
        let title = match rows.len() {
            0 => continue,
            1 => format!("1 claim: {}", status.name()),
            n => format!("{n} claims {words}"),
        };
        let head = CLAIMS_HEAD.map(String::from);
        let open = if status == Verdict::Fails { " open" } else { "" };
        let _ = writeln!(page, "<details{open}><summary>{title}</summary>");
        table(page, "claims", &head, &rows);
        page.push_str("</details>\n");
    }
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
