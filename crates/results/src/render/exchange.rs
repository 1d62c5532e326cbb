//! Results as texts that other programs render: JUnit's XML for continuous integration, tables of
//! Markdown for issues and pull requests.
//!
//! Invariant: the texts have the numbers of the terminal's tables, in the same forms.

use crate::model::{Claim, Noise, Tree, VariantResult, Verdict, clean};
use crate::render::claims::{accepted, measured, value};
use crate::render::format::{self, change, percent};
use crate::render::markup::escape;
use crate::statistics::censoring::{difference_of, shown};
use crate::statistics::shows::{Column, columns};
use crate::statistics::tolerance::Judged;
use std::fmt::Write;

struct Case {
    /// Of which suite it is a part.
    class: String,
    name: String,
    outcome: Outcome,
    output: String,
}

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// Variants as JUnit's XML: a case each, which fails unless its runs came to their end.
pub fn compare_junit(name: &str, results: &[VariantResult]) -> String {
    let columns = columns_of(results);
    let case = |result: &VariantResult| {
        let status = result.status.name();
        let numbers = columns
            .iter()
            .map(|column| format!("{}: {}\n", column.caption, number(result, column)));
        Case {
            class: format!("millpond.compare.{name}"),
            name: result.variant.clone(),
            outcome: match result.status.is_final() {
                true => Outcome::Passed,
                false => Outcome::Failed(format!("its runs are {status}")),
            },
            output: numbers.chain(result.warnings.iter().map(|text| format!("{text}\n"))).collect(),
        }
    };
    junit(&format!("compare {name}"), &results.iter().map(case).collect::<Vec<_>>())
}

/// Claims as JUnit's XML: a case each, which fails if the claim fails, and is skipped if nothing
/// decided it.
pub fn claims_junit(claims: &[Claim]) -> String {
    let case = |claim: &Claim| {
        let outcome =
            format!("measured {}, accepted {}", measured(claim, claim.measured), accepted(claim));
        let paper = claim.id.split('-').next().unwrap_or_default();
        Case {
            class: format!("millpond.reproduce.{paper}"),
            name: format!("{}: {}", claim.id, claim.statement),
            outcome: match claim.status {
                Verdict::Holds => Outcome::Passed,
                Verdict::Fails => Outcome::Failed(outcome.clone()),
                Verdict::NotEvaluated => Outcome::Skipped(claim.note.clone()),
            },
            output: format!("{}\n{outcome}\n{}\n", claim.source, claim.note),
        }
    };
    junit("reproduce", &claims.iter().map(case).collect::<Vec<_>>())
}

fn junit(suite: &str, cases: &[Case]) -> String {
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" \
         tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n",
        escape(suite),
        cases.len()
    );
    for Case { class, name, outcome, output } in cases {
        let (class, name) = (escape(class), escape(&clean(name)));
        let _ = writeln!(text, "<testcase classname=\"{class}\" name=\"{name}\">");
        let _ = match outcome {
            Outcome::Passed => Ok(()),
            Outcome::Failed(why) => {
                writeln!(text, "<failure message=\"{}\"/>", escape(&clean(why)))
            }
            Outcome::Skipped(why) => {
                writeln!(text, "<skipped message=\"{}\"/>", escape(&clean(why)))
            }
        };
        let _ = writeln!(text, "<system-out>{}</system-out>\n</testcase>", escape(output));
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// Variants as a table of Markdown: the shown numbers, and in brackets each one's change from the
/// first variant, with a word where it is not beyond the noise.
pub fn compare_markdown(results: &[VariantResult]) -> String {
    let Some(first) = results.first() else { return "no variants\n".into() };
    let columns = columns_of(results);
    let head = ["variant", "flows done"].map(String::from);
    let head = head.into_iter().chain(columns.iter().map(|column| column.caption.clone()));
    let mut rows = vec![head.collect::<Vec<_>>()];
    for result in results {
        let mut row = vec![name_of(result), percent(result.statistics.share_of_flows())];
        row.extend(columns.iter().map(|column| match difference(first, result, column) {
            Some(difference) => format!("{} ({difference})", number(result, column)),
            None => number(result, column),
        }));
        rows.push(row);
    }
    table(&rows)
}

/// A judged number in a line.
pub fn judged_text(judged: &Judged) -> String {
    let Judged { number, variant, tolerated, .. } = judged;
    let [before, now] = judged_numbers(judged);
    let change = judged_change(judged);
    format!("{variant}: {number} {before} → {now} ({change}; {tolerated} % tolerated)")
}

/// Judged numbers as a table of Markdown.
pub fn judged_markdown(judged: &[Judged]) -> String {
    let head = ["variant", "number", "baseline", "now", "change", "tolerated", "verdict"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for one in judged {
        let [before, now] = judged_numbers(one);
        rows.push(vec![
            one.variant.clone(),
            one.number.clone(),
            format!("{before} ({})", one.against),
            now,
            judged_change(one),
            format!("{} %", one.tolerated),
            if one.is_worse { "worse" } else { "within" }.to_string(),
        ]);
    }
    table(&rows)
}

/// The baseline's number and the variant's; a bound has its sign.
fn judged_numbers(judged: &Judged) -> [String; 2] {
    let text = |value: Option<f64>, at_least: bool| {
        format!("{}{}", if at_least { "\u{2265}" } else { "" }, format::of(judged.form, value))
    };
    let [before, now] = judged.at_least;
    [text(judged.before, before), text(judged.now, now)]
}

/// The change, with so many digits that it does not read as the bound unless it is the bound.
fn judged_change(judged: &Judged) -> String {
    let Some(percent) = judged.change.map(|change| change * 100.0) else { return change(None) };
    // The change itself is rounded: ten digits of it decide whether it is the bound.
    let is_bound = (percent.abs() - judged.tolerated).abs() < 1e-10 * judged.tolerated;
    let reads_as_bound = |text: &str| {
        let number = text.trim_end_matches('%').parse::<f64>();
        !is_bound && number.is_ok_and(|number| number.abs() == judged.tolerated)
    };
    let more = (1..=6).map(|digits| format!("{percent:+.digits$}%"));
    let mut texts = std::iter::once(change(judged.change)).chain(more);
    texts.find(|text| !reads_as_bound(text)).unwrap_or_else(|| change(judged.change))
}

/// Claims as a table of Markdown.
pub fn claims_markdown(claims: &[Claim]) -> String {
    let head = ["claim", "statement", "paper", "measured", "accepted", "status"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for claim in claims {
        rows.push(vec![
            claim.id.clone(),
            claim.statement.clone(),
            value(claim.paper, &claim.unit),
            measured(claim, claim.measured),
            accepted(claim),
            claim.status.name().to_string(),
        ]);
    }
    table(&rows)
}

/// A table whose first row is its head.
fn table(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|cell| clean(cell).replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if at == 0 {
            let _ = writeln!(text, "|{}", "---|".repeat(row.len()));
        }
    }
    text
}

fn columns_of(results: &[VariantResult]) -> Vec<Column> {
    let trees: Vec<&Tree<_>> = results.iter().map(|result| &result.statistics).collect();
    let shows = results.iter().take(1).flat_map(|first| first.shows.iter());
    columns(&shows.map(|(name, _)| name.to_string()).collect::<Vec<_>>(), &trees)
}

fn number(result: &VariantResult, column: &Column) -> String {
    shown(&result.statistics, &column.path).text(|number| format::of(column.form, number))
}

/// The change from the first variant; `None` for that one itself and where both have no number.
fn difference(first: &VariantResult, own: &VariantResult, column: &Column) -> Option<String> {
    let differences = own.differences.as_ref()?;
    let of = difference_of(&first.statistics, &own.statistics, differences, &column.path)?;
    let relative = if of.mean? == 0.0 { "0%".into() } else { change(of.relative) };
    Some(match of.noise {
        Noise::Beyond | Noise::Identical => relative,
        Noise::Unknown => format!("{relative}, one seed"),
        noise => format!("{relative}, {}", noise.name()),
    })
}

/// The name, with the status unless it is complete.
fn name_of(result: &VariantResult) -> String {
    match result.status {
        crate::Status::Complete => result.variant.clone(),
        status => format!("{} ({})", result.variant, status.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Vec<Claim> {
        let claim = |id: &str, status| Claim {
            id: id.into(),
            statement: "a < b & \"c\" | d".into(),
            note: "only one seed\u{7}".into(),
            accept: [None, Some(-40.0)],
            measured: Some(-20.5),
            unit: "percent".into(),
            status,
            ..Claim::default()
        };
        vec![
            claim("tlt-S1a", Verdict::Holds),
            claim("tlt-S1b", Verdict::Fails),
            claim("nrm-T2", Verdict::NotEvaluated),
        ]
    }

    #[test]
    fn a_failing_claim_fails_and_an_open_one_is_skipped() {
        let text = claims_junit(&claims());
        assert!(text.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{text}");
        let case = "<testcase classname=\"millpond.reproduce.tlt\" name=\"tlt-S1b: a &lt; b &amp; \
                    &quot;c&quot; | d\">\n<failure message=\"measured -20.5%, accepted ≤ -40%\"/>";
        assert!(text.contains(case), "{text}");
        assert!(text.contains("<skipped message=\"only one seed?\"/>"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }

    #[test]
    fn a_change_beyond_its_bound_does_not_read_as_the_bound() {
        let text = |change: f64| {
            judged_change(&Judged {
                number: "timeouts".into(),
                variant: "a".into(),
                against: "a".into(),
                before: Some(100.0),
                now: Some(100.0 * (1.0 + change)),
                at_least: [false; 2],
                form: crate::statistics::shows::Form::Count,
                change: Some(change),
                tolerated: 10.0,
                is_worse: change > 0.1,
            })
        };
        assert_eq!([text(0.104), text(0.1003), text(0.1)], ["+10.4%", "+10.03%", "+10%"]);
        assert_eq!([text(0.2), text(-0.0996), text(0.05)], ["+20%", "-9.96%", "+5.0%"]);
    }

    #[test]
    fn a_cell_ends_no_row_of_a_table() {
        let text = claims_markdown(&claims()[..1]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "|---|---|---|---|---|---|");
        let row = "| tlt-S1a | a < b & \"c\" \\| d | – | -20.5% | ≤ -40% | holds |";
        assert_eq!(lines[2..], [row]);
    }
}
