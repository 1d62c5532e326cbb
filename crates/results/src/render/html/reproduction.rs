//! The page of a reproduction: the claims with their status and the rows that they are about, then
//! each experiment's charts and tables.
//!
//! Invariant: no mean of queries stands without the share that completed, and each row names the
//! claims about it.

use crate::render::claims::{
    ANYWAY, about, absolutes, accepted, best_of, causes_text, completed, failing, measured,
    short_id, spread, tally, value, worlds,
};
use crate::render::document::{Block, Stack, details, empty, note, row, section, table};
use crate::render::experiments::{Row, page_rows};

use super::losses::{chip, parts};
use super::page::Page;
use super::reproduction_charts::charts;
use crate::model::{Claim, Experiment, LoadPoint, Noise, Reproduction, Verdict, each_once};
use crate::render::draw::number::{count, percent, typeset};
use crate::render::draw::series::swatch;
use crate::render::format::digits;
use crate::render::markup::escape;
use crate::render::words::words;

/// Charts of an experiment that are not behind a click.
const OPEN: usize = 4;

pub(crate) fn page(of: &Reproduction) -> String {
    let claims: Vec<&Claim> = of.claims.iter().collect();
    let names = labels(of);
    let facts = [format!("<b>{}</b>", escape(&of.effort)), worlds(&claims)];
    let experiment = |it: &Experiment| {
        section(&escape(&it.name), &escape(&it.title), experiment_blocks(of, it, &names))
    };
    let blocks = reading(of, &claims).into_iter().chain([claims_table(of)]).collect();
    let claims_of_all = section("claims", "Claims", blocks);
    let blocks = std::iter::once(claims_of_all).chain(of.experiments.iter().map(experiment));
    let page = Page {
        kind: "reproduce",
        name: &of.title,
        facts: facts.into_iter().chain(tally(&claims)).collect(),
        about: Vec::new(),
        names: names.clone(),
        blocks: blocks.collect(),
        rests_on: "rests-on-reproduction",
    };
    page.html()
}

/// The schemes of all experiments that were run, each once: their places are the series.
pub(crate) fn labels(of: &Reproduction) -> Vec<&str> {
    let was_run = |of: &&Experiment| of.rows().next().is_some();
    let schemes = of.experiments.iter().filter(was_run).flat_map(|experiment| &experiment.schemes);
    each_once(schemes.map(|scheme| scheme.label.as_str()))
}

/// The reading of a paper, and the causes of its failing claims.
pub(crate) fn reading(of: &Reproduction, claims: &[&Claim]) -> Vec<Block> {
    let text = escape(&of.reading);
    let text = (!text.is_empty()).then_some(Block::Paragraph { class: "", text });
    let failing = failing(&of.paper, claims, &of.causes);
    let rows = failing.iter().map(|group| {
        let name = |claim: &&Claim| escape(short_id(of, claim));
        let names = group.claims.iter().map(name).collect::<Vec<_>>().join(", ");
        let text = group.cause.map_or(String::new(), |cause| escape(&cause.text));
        let cell = |text: String| format!("<td class=\"text\">{text}</td>");
        row(escape(&group.title()), [cell(names), cell(text)])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let causes = (!rows.is_empty()).then(|| {
        [note(causes_text(&failing) + "."), table("causes", "cause|claims|reading", rows)]
    });
    text.into_iter().chain(causes.into_iter().flatten()).collect()
}

fn claims_table(of: &Reproduction) -> Block {
    let row = |claim: &Claim| {
        let id = escape(short_id(of, claim));
        let about = escape(&about(claim));
        let link = format!("<a href=\"#{}\">{about}</a>", escape(&claim.experiment));
        claim_row(claim, &id, &id, if about.is_empty() { "" } else { &link })
    };
    table("claims", CLAIMS_HEAD, of.claims.iter().map(row).collect())
}

/// The columns of a table of claims.
pub(crate) const CLAIMS_HEAD: &str =
    "claim|statement|paper|measured|accepted|status|source and note";

/// Lines below a cell's first.
fn small(lines: impl IntoIterator<Item = String>) -> String {
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    lines.map(|line| format!("<small>{line}</small>")).collect()
}

/// A claim's row: its anchor, its name, and as markup what it is about.
pub(crate) fn claim_row(claim: &Claim, anchor: &str, name: &str, about: &str) -> Vec<String> {
    let (class, sign) = match claim.status {
        Verdict::Holds => ("better", "✓ "),
        Verdict::Fails => ("worse", "✗ "),
        Verdict::NotEvaluated => ("", ""),
    };
    let text = |text: String| format!("<td class=\"text\">{text}</td>");
    let numbers = |lines: Vec<String>| {
        small(lines.iter().map(|line| typeset(&escape(line)).replace("us", "µs")))
    };
    let (theirs, ours) = absolutes(claim);
    let kind = small(claim.kind.note().map(String::from));
    let more = numbers(vec![spread(claim), best_of(claim), completed(claim)]);
    let below = small([noise(claim), baseline(claim)]);
    let (source, note) = (escape(&claim.source), escape(&claim.note));
    vec![
        format!("<span id=\"claim-{anchor}\">{name}</span>{kind}"),
        text(escape(&claim.statement) + &small([about.to_string()])),
        typeset(&value(claim.paper, &claim.unit)) + &numbers(theirs),
        typeset(&measured(claim, claim.measured)) + &numbers(ours) + &more,
        typeset(&accepted(claim)),
        format!("<td class=\"{class}\">{sign}{}{below}</td>", claim.status.name()),
        text(format!("{source}<small>{note}</small>")),
    ]
}

/// The effect of the spread over seeds on the verdict, in the words of `compare`.
fn noise(claim: &Claim) -> String {
    let words = match claim.noise {
        _ if claim.measured.is_none() => "",
        Noise::Beyond => "beyond the noise",
        Noise::Agreed => "all seeds agree, too few for a 95\u{202f}% interval",
        Noise::Within => "<b>within the noise</b>: the verdict changes within the spread",
        Noise::Identical => "identical in every seed",
        Noise::Open => "open flows could undo it",
        Noise::Unknown => "one seed: nothing separates it from noise",
    };
    words.into()
}

/// The outcome of the claim with its mechanism off, or why it has no baseline.
fn baseline(claim: &Claim) -> String {
    let note = escape(&claim.baseline_note);
    let measured = typeset(&measured(claim, claim.baseline_measured));
    match claim.baseline {
        _ if note.is_empty() => String::new(),
        Verdict::NotEvaluated => format!("no baseline: {note}"),
        _ if claim.holds_anyway() => format!("<b>{ANYWAY}</b>: {measured}; {note}"),
        verdict => format!("mechanism off: {}, {measured}; {note}", verdict.name()),
    }
}

/// The claims that are about a scheme at a load, as links.
fn claims_of(of: &Reproduction, experiment: &Experiment, label: &str, load: f64) -> String {
    let about = of.claims.iter().filter(|claim| claim.is_about(&experiment.name, label, load));
    let link =
        |claim: &Claim| format!("<a href=\"#claim-{0}\">{0}</a>", escape(short_id(of, claim)));
    about.map(link).collect::<Vec<_>>().join(" ")
}

fn experiment_blocks(all: &Reproduction, of: &Experiment, names: &[&str]) -> Vec<Block> {
    let note_of = (!of.note.is_empty()).then(|| note(escape(&of.note)));
    let mut blocks: Vec<Block> = note_of.into_iter().collect();
    if of.schemes.iter().flat_map(|scheme| &scheme.points).all(|point| point.runs == 0) {
        blocks.push(empty("Nothing was run."));
        return blocks;
    }
    let mut charts = charts(of, names);
    let rest = charts.split_off(charts.len().min(OPEN));
    blocks.push(Block::Figures(charts));
    if !rest.is_empty() {
        blocks.push(details("More charts", vec![Block::Figures(rest)]));
    }
    blocks.push(note(legend_of(of)));
    let table = points_table(all, of, names);
    if !of.numbers().is_empty() || of.has_calls() {
        blocks.push(table);
        return blocks;
    }
    blocks.extend(losses(of, names));
    blocks.push(details("All points as a table", vec![table]));
    blocks
}

/// Facts that must be known to read the charts and the tables.
fn legend_of(of: &Experiment) -> String {
    let curves = of.published.iter().map(|published| published.source.as_str());
    let numbers = of.published_numbers.iter().map(|published| published.source.as_str());
    let mut sources: Vec<&str> = curves.chain(numbers).collect();
    sources.dedup();
    let theirs = match sources.is_empty() {
        true => String::new(),
        false => format!(" Dashed, hollow: {}.", escape(&sources.join("; "))),
    };
    let what = match of {
        of if of.has_bounds() => words("of-bounds", &[]),
        of if !of.numbers().is_empty() => String::new(),
        of if of.has_calls() => words("of-calls", &[]),
        _ => words("of-queries", &[]),
    };
    let seeds =
        of.schemes.iter().flat_map(|scheme| &scheme.points).any(|point| point.each.len() > 1);
    let dots = if seeds { " A pale dot is one seed." } else { "" };
    let values = [&what, dots, &theirs, &escape(&of.load_axis), &escape(&of.scenario)];
    words("experiment", &values)
}

/// A scheme's name, with its colour if it is in a chart.
fn name_of(label: &str, names: &[&str]) -> String {
    let mark = names.iter().position(|name| *name == label).map_or(String::new(), swatch);
    mark + &escape(label)
}

/// Drops by reason and deflections of each scheme, at its highest load.
fn losses(of: &Experiment, names: &[&str]) -> Vec<Block> {
    let highest = |points: &[LoadPoint]| {
        let run = points.iter().filter(|point| point.runs > 0);
        run.max_by(|a, b| a.load.total_cmp(&b.load)).cloned()
    };
    let top = |scheme: &crate::Scheme| {
        Some((names.iter().position(|name| *name == scheme.label)?, highest(&scheme.points)?))
    };
    let tops: Vec<(usize, LoadPoint)> = of.schemes.iter().filter_map(top).collect();
    let Some((_, first)) = tops.first() else { return Vec::new() };
    let dropped = tops.iter().flat_map(|(_, point)| point.dropped_by.iter());
    let reasons: Vec<&str> = each_once(dropped.map(|(reason, _)| reason));
    let most = tops.iter().filter_map(|(_, point)| point.dropped.mean).fold(0.0, f64::max);
    let title = format!("Drops and deflections at {}\u{202f}%, packets a run", first.load);
    let stack = |(series, point): &(usize, LoadPoint)| {
        let [dropped, deflected] = [&point.dropped, &point.deflected].map(|of| count(of.mean));
        let of = |reason: &&'_ str| point.dropped_by.get(reason).copied();
        Stack {
            series: *series,
            name: name_of(names[*series], names),
            words: format!("{dropped} dropped, {deflected} deflected"),
            parts: parts(reasons.iter().map(|reason| (*reason, of(reason))), most),
        }
    };
    let cells = |(series, point): &(usize, LoadPoint)| {
        let (dropped, sent) = (point.dropped.mean, point.sent.mean);
        let share = dropped.zip(sent.filter(|sent| *sent > 0.0)).map(|(a, b)| a / b);
        let of = |reason: &&str| count(Some(point.dropped_by.get(reason).copied().unwrap_or(0.0)));
        let first = [count(sent), count(dropped), percent(share)].into_iter();
        let last = [count(point.deflected.mean), count(point.timeouts.mean)];
        row(name_of(names[*series], names), first.chain(reasons.iter().map(of)).chain(last))
    };
    let chips = reasons.iter().enumerate().map(|(number, reason)| chip(number, reason));
    let head = ["sent", "dropped", "of sent"].map(String::from).into_iter().chain(chips);
    let head = row("scheme", head.chain(["deflected", "timeouts"].map(String::from)));
    let mut blocks = vec![Block::Heading(title)];
    blocks.extend((most > 0.0).then(|| Block::Stacks(tops.iter().map(stack).collect())));
    blocks.push(table("", head, tops.iter().map(cells).collect()));
    blocks
}

fn points_table(all: &Reproduction, of: &Experiment, names: &[&str]) -> Block {
    let is_of_numbers = !of.numbers().is_empty();
    let percent = if of.has_calls() { "" } else { "\u{202f}%" };
    let load = of.has_loads() && is_of_numbers;
    let first = |row: &Row<'_>| {
        let (label, at) = (&row.scheme.label, row.point.load);
        let name = name_of(label, names);
        let name = if is_of_numbers { name } else { format!("{name}, {at}{percent}") };
        let load = load.then(|| digits(at));
        std::iter::once(name).chain(load).chain([claims_of(all, of, label, at)]).collect()
    };
    let scheme = if is_of_numbers { "scheme" } else { "scheme, load" };
    let load = load.then(|| escape(&of.load_axis));
    let head = std::iter::once(scheme.into()).chain(load).chain(["claims".into()]).collect();
    let (head, rows) = page_rows(of, head, first);
    table("", head, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::claim::Absolute;
    use crate::model::reproduction::PublishedNumber;
    use crate::model::{ClaimKind, Estimate, Published, Scheme};

    #[test]
    fn published_curves_are_dashed_and_claims_say_their_status() {
        let estimate = |mean: f64| {
            let interval = Some([mean * 0.9, mean * 1.1]);
            Estimate { mean: Some(mean), interval, n: 3, ..Estimate::default() }
        };
        let point = |load: f64| LoadPoint {
            load,
            runs: 3,
            planned: 3,
            mean_us: estimate(2e6),
            p99_us: estimate(3e6),
            completed_fraction: estimate(0.8),
            dropped: estimate(10.0),
            dropped_by: vec![("early".into(), 10.0)].into(),
            distribution: vec![(1e6, 1.0), (2e6, 0.1)],
            ..LoadPoint::default()
        };
        let scheme = Scheme {
            variant: "ecmp".into(),
            label: "ECMP <b>".into(),
            points: vec![point(55.0), point(95.0)],
        };
        let published = Published {
            variant: "ecmp".into(),
            source: "somewhere".into(),
            loads: vec![55.0, 95.0],
            mean_us: vec![1e6, 2e6],
            p99_us: vec![2e6, 4e6],
        };
        let mut claim =
            Claim { id: "canary-S1a".into(), unit: "percent".into(), ..Claim::default() };
        claim.judge(1.0);
        let experiment = Experiment {
            name: "headline".into(),
            schemes: vec![scheme],
            published: vec![published],
            ..Experiment::default()
        };
        let of = Reproduction {
            claims: vec![claim],
            experiments: vec![
                experiment,
                Experiment { name: "empty".into(), ..Experiment::default() },
            ],
            ..Reproduction::new("canary", "Canary", "0", "quick")
        };
        let page = super::page(&of);
        let drawn: String = page
            .split("<template>")
            .map(|part| part.split_once("</template>").map_or(part, |p| p.1))
            .collect();
        assert_eq!(drawn.matches("class=\"line paper\"").count(), 2);
        assert_eq!(drawn.matches("<svg class=\"chart\"").count(), 4);
        assert!(
            page.contains("✓ holds")
                && page.contains("ECMP &lt;b&gt;, published")
                && !page.contains("ECMP <b>")
        );
        assert!(page.contains("Nothing was run.") && page.contains("class=\"whisker\""));
        assert_eq!(page, super::page(&of));
    }

    fn numbers(label: &str, load: f64, value: f64) -> LoadPoint {
        let mut point = LoadPoint { load, runs: 2, planned: 2, ..LoadPoint::default() };
        point.each = [1, 2].map(|seed| crate::OneRun { seed, ..crate::OneRun::default() }).to_vec();
        point.add("timeouts", "count", &[(1, value), (2, value + 1.0)]);
        point.add(label, "us", &[(1, 1000.0), (2, 3000.0)]);
        point
    }

    /// Schemes A and B with two numbers at these loads, and a claim of A alone.
    fn of_numbers(loads: &[f64]) -> Reproduction {
        let scheme = |label: &str, value: f64| Scheme {
            variant: label.to_lowercase(),
            label: label.into(),
            points: loads.iter().map(|load| numbers("FCT p99", *load, value)).collect(),
        };
        let published = PublishedNumber {
            variant: "a".into(),
            load: loads[0],
            number: "FCT p99".into(),
            value: 2400.0,
            source: "the <slides>".into(),
        };
        let experiment = Experiment {
            name: "released".into(),
            schemes: vec![scheme("A", 0.0), scheme("B", 43.0)],
            published_numbers: vec![published],
            ..Experiment::default()
        };
        let mut claim = Claim {
            id: "x-R3".into(),
            unit: "percent".into(),
            experiment: "released".into(),
            schemes: vec!["A".into()],
            load: Some(loads[0]),
            absolute: Some(Absolute {
                unit: "us".into(),
                paper: Some(12_400.0),
                measured: 6140.0,
                against: None,
            }),
            ..Claim::default()
        };
        claim.judge(49.5);
        let (claims, experiments) = (vec![claim], vec![experiment]);
        Reproduction { claims, experiments, ..Reproduction::new("x", "X", "0", "quick") }
    }

    #[test]
    fn numbers_have_charts_with_their_seeds_and_what_is_published() {
        let page = super::page(&of_numbers(&[40.0]));
        assert!(
            page.matches("<figure>").count() == 2 && page.contains("data-y-names=\"A&#10;B\""),
            "a row a scheme"
        );
        assert!(
            page.contains("class=\"seeds\"")
                && page.contains("published 2.4\u{202f}ms")
                && page.contains("the &lt;slides&gt;")
        );
        assert!(!page.contains("−"), "one load is no axis");
        let page = super::page(&of_numbers(&[16.0, 32.0]));
        assert!(
            page.contains(">16</text>")
                && page.contains(">32</text>")
                && !page.contains(">25</text>")
        );
        assert!(page.contains("A, published"));
    }

    #[test]
    fn a_claim_says_its_rows_and_its_absolute_numbers_and_rows_say_their_claims() {
        let page = super::page(&of_numbers(&[40.0]));
        assert!(
            page.contains("<a href=\"#released\">released: A</a>")
                && page.contains("<section id=\"released\">")
        );
        assert!(
            page.contains("<small>12.4ms</small>") && page.contains("<small>6.14ms</small>"),
            "{page}"
        );
        let row = |name: &str| {
            page.split("<tr>").find(|row| row.contains(&format!("</svg>{name}</th>"))).unwrap()
        };
        assert!(page.contains("<li>published 1: 1 hold, 0 fail, 0 not evaluated</li>"), "{page}");
        assert!(
            row("A").contains("href=\"#claim-R3\"") && !row("B").contains("href=\"#claim-R3\""),
            "{page}"
        );
    }

    #[test]
    fn a_claim_that_holds_without_its_mechanism_is_flagged_on_the_page() {
        let mut of = of_numbers(&[40.0]);
        let off = Claim {
            baseline: Verdict::Fails,
            baseline_measured: Some(-3.0),
            baseline_note: "B in the place of A".into(),
            ..of.claims[0].clone()
        };
        let anyway = Claim { id: "x-R4".into(), baseline: Verdict::Holds, ..off.clone() };
        of.claims = vec![off, anyway];
        let page = super::page(&of);
        assert!(
            page.contains(
                "<small>mechanism off: fails, −3.0\u{202f}%; B in the place of A</small>"
            ),
            "{page}"
        );
        assert_eq!(page.matches("<b>also holds with the mechanism off</b>").count(), 1);
        assert!(page.contains("2 hold (1 also with the mechanism off)"));
    }

    #[test]
    fn claims_that_are_not_the_papers_say_so_and_are_counted_apart() {
        let mut of = of_numbers(&[40.0]);
        let fitted = Claim { id: "x-R4".into(), kind: ClaimKind::Fitted, ..of.claims[0].clone() };
        of.claims.push(fitted);
        let page = super::page(&of);
        let counts = ["published 1", "fitted 1"]
            .map(|of| format!("<li>{of}: 1 hold, 0 fail, 0 not evaluated</li>"));
        assert!(page.contains(&counts.concat()), "{page}");
        assert!(
            page.contains(">R4</span><small>fitted</small>") && page.contains(">R3</span></t"),
            "{page}"
        );
    }
}
