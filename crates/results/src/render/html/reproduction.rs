//! The page of a reproduction: the claims with their status and the rows that they are about, then
//! each experiment's charts and tables.
//!
//! Invariant: no mean of queries stands without the share that completed, and each row says which
//! claims are about it.

use crate::render::claims::{
    ANYWAY, about, absolutes, accepted, best_of, completed, measured, number_text, short_id,
    spread, tally, value, worlds,
};
use std::fmt::Write;

use super::number::{count, percent, time};
use super::page::{self, details, empty, end, escape, figures, note, section, table};
use super::reproduction_charts::charts;
use super::series::swatch;
use crate::model::{Claim, Experiment, LoadPoint, Noise, Number, Reproduction, Verdict};
use crate::render::format::digits;

/// Charts of an experiment that are not behind a click.
const OPEN: usize = 4;

/// The page.
pub(crate) fn page(of: &Reproduction) -> String {
    let mut text = String::new();
    let claims: Vec<&Claim> = of.claims.iter().collect();
    let mut facts = vec![format!("<b>{}</b>", escape(&of.effort)), worlds(&claims)];
    facts.extend(tally(&claims));
    page::head(&mut text, &of.title, "reproduce", &facts);
    let names = labels(of);
    page::legend(&mut text, &names);
    section(&mut text, "claims", "Claims");
    claims_table(&mut text, of);
    end(&mut text);
    for experiment in &of.experiments {
        section(&mut text, &escape(&experiment.name), &escape(&experiment.title));
        one(&mut text, of, experiment, &names);
        end(&mut text);
    }
    page::foot_with(
        &mut text,
        "Solid lines and the column “measured” are simulated. Dashed lines and the columns of the \
         paper are published numbers from the sources named beside them. All of it is in \
         reproduce.json and claims.json beside this page, and the runs are in the folders of the \
         experiments. – means that there is nothing to make a number of.",
    );
    text
}

/// The schemes of all experiments that were run, each once: their places are the series.
pub(crate) fn labels(of: &Reproduction) -> Vec<&str> {
    let mut labels: Vec<&str> = Vec::new();
    let was_run = |of: &&Experiment| of.rows().next().is_some();
    for scheme in of.experiments.iter().filter(was_run).flat_map(|experiment| &experiment.schemes) {
        if !labels.contains(&scheme.label.as_str()) {
            labels.push(&scheme.label);
        }
    }
    labels
}

fn claims_table(page: &mut String, of: &Reproduction) {
    let row = |claim: &Claim| {
        let id = escape(short_id(of, claim));
        let about = escape(&about(claim));
        let link = format!("<a href=\"#{}\">{about}</a>", escape(&claim.experiment));
        claim_row(claim, &id, &id, if about.is_empty() { "" } else { &link })
    };
    let rows: Vec<Vec<String>> = of.claims.iter().map(row).collect();
    table(page, "claims", &CLAIMS_HEAD.map(String::from), &rows);
}

/// The columns of a table of claims.
pub(crate) const CLAIMS_HEAD: [&str; 7] =
    ["claim", "statement", "paper", "measured", "accepted", "status", "source and note"];

/// A claim's row: its anchor, its name, and as markup what it is about.
pub(crate) fn claim_row(claim: &Claim, anchor: &str, name: &str, about: &str) -> Vec<String> {
    let (class, sign) = match claim.status {
        Verdict::Holds => ("better", "✓ "),
        Verdict::Fails => ("worse", "✗ "),
        Verdict::NotEvaluated => ("", ""),
    };
    let text = |text: String| format!("<td class=\"text\">{text}</td>");
    let small = |lines: Vec<String>| -> String {
        lines
            .into_iter()
            .filter(|line| !line.is_empty())
            .map(|line| format!("<small>{}</small>", signed(escape(&line)).replace("us", "µs")))
            .collect()
    };
    let rows = match about {
        "" => String::new(),
        rows => format!("<small>{rows}</small>"),
    };
    let (theirs, ours) = absolutes(claim);
    let kind = claim.kind.told().map_or(String::new(), |kind| format!("<small>{kind}</small>"));
    vec![
        format!("<span id=\"claim-{anchor}\">{name}</span>{kind}"),
        text(format!("{}{rows}", escape(&claim.statement))),
        signed(value(claim.paper, &claim.unit)) + &small(theirs),
        signed(measured(claim, claim.measured))
            + &small(ours)
            + &small(vec![spread(claim), best_of(claim), completed(claim)]),
        signed(accepted(claim)),
        format!(
            "<td class=\"{class}\">{sign}{}{}{}</td>",
            claim.status.name(),
            noise(claim),
            baseline(claim)
        ),
        text(format!("{}<small>{}</small>", escape(&claim.source), escape(&claim.note))),
    ]
}

fn signed(text: String) -> String {
    text.replace('-', "−").replace('%', "\u{202f}%")
}

/// The effect of the spread over seeds on the verdict, in the words of `compare`.
fn noise(claim: &Claim) -> String {
    if claim.measured.is_none() {
        return String::new();
    }
    let words = match claim.noise {
        Noise::Beyond => "beyond the noise",
        Noise::Agreed => "all seeds agree, too few for a 95\u{202f}% interval",
        Noise::Within => "<b>within the noise</b>: the verdict changes within the spread",
        Noise::Identical => "identical in every seed",
        Noise::Open => "open flows could undo it",
        Noise::Unknown => "one seed: nothing separates it from noise",
    };
    format!("<small>{words}</small>")
}

/// The outcome of the claim with its mechanism off, or why it has no baseline.
fn baseline(claim: &Claim) -> String {
    let note = match claim.baseline_note.as_str() {
        "" => return String::new(),
        note => escape(note),
    };
    let measured = signed(measured(claim, claim.baseline_measured));
    match claim.baseline {
        Verdict::NotEvaluated => format!("<small>no baseline: {note}</small>"),
        _ if claim.holds_anyway() => format!("<small><b>{ANYWAY}</b>: {measured}; {note}</small>"),
        verdict => format!("<small>mechanism off: {}, {measured}; {note}</small>", verdict.name()),
    }
}

/// The claims that are about a scheme at a load, as links.
fn claims_of(of: &Reproduction, experiment: &Experiment, label: &str, load: f64) -> String {
    let about = of.claims.iter().filter(|claim| claim.is_about(&experiment.name, label, load));
    let link =
        |claim: &Claim| format!("<a href=\"#claim-{0}\">{0}</a>", escape(short_id(of, claim)));
    about.map(link).collect::<Vec<_>>().join(" ")
}

fn one(page: &mut String, of: &Reproduction, experiment: &Experiment, names: &[&str]) {
    if !experiment.note.is_empty() {
        note(page, &escape(&experiment.note));
    }
    if experiment.schemes.iter().flat_map(|scheme| &scheme.points).all(|point| point.runs == 0) {
        return empty(page, "Nothing was run.");
    }
    let mut charts = charts(experiment, names);
    let rest = charts.split_off(charts.len().min(OPEN));
    figures(page, &charts);
    if !rest.is_empty() {
        details(page, "More charts", |page| figures(page, &rest));
    }
    words(page, experiment);
    if !experiment.numbers().is_empty() {
        return numbers_table(page, of, experiment, names);
    }
    if experiment.has_calls() {
        return calls_table(page, of, experiment, names);
    }
    losses(page, experiment, names);
    details(page, "All points as a table", |page| points_table(page, of, experiment, names));
}

/// Facts that must be known to read the charts and the tables.
fn words(page: &mut String, of: &Experiment) {
    let mut sources: Vec<&str> =
        of.published.iter().map(|published| published.source.as_str()).collect();
    sources.extend(of.published_numbers.iter().map(|published| published.source.as_str()));
    sources.dedup();
    let theirs = match sources.is_empty() {
        true => String::new(),
        false => format!(" Dashed, hollow: {}.", escape(&sources.join("; "))),
    };
    let what = if of.has_bounds() {
        "; ≥ is a lower bound, where open flows count with their age"
    } else if !of.numbers().is_empty() {
        ""
    } else if of.has_calls() {
        "; a percentile is shown only where ten calls exceed it"
    } else {
        ", of the queries that completed; the share that did is beside it, since what did not \
         complete is in no mean"
    };
    let seeds =
        of.schemes.iter().flat_map(|scheme| &scheme.points).any(|point| point.each.len() > 1);
    let dots = if seeds { " A pale dot is one seed." } else { "" };
    note(
        page,
        &format!(
            "Solid: simulated here, means over seeds with their intervals{what}.{dots}{theirs} \
             Load: {}. Scenario: <code>{}</code>.",
            escape(&of.load_axis),
            escape(&of.scenario)
        ),
    );
}

/// A scheme's name, with its colour if it is in a chart.
fn name_of(label: &str, names: &[&str]) -> String {
    let mark = names.iter().position(|name| *name == label).map_or(String::new(), swatch);
    format!("{mark}{}", escape(label))
}

/// The highest load at which a scheme has runs.
fn highest(points: &[LoadPoint]) -> Option<&LoadPoint> {
    points.iter().filter(|point| point.runs > 0).max_by(|a, b| a.load.total_cmp(&b.load))
}

/// Drops by reason and deflections of each scheme, at its highest load.
fn losses(page: &mut String, of: &Experiment, names: &[&str]) {
    let tops: Vec<(usize, &LoadPoint)> = of
        .schemes
        .iter()
        .filter_map(|s| {
            Some((names.iter().position(|name| *name == s.label)?, highest(&s.points)?))
        })
        .collect();
    let Some((_, first)) = tops.first() else { return };
    let mut reasons: Vec<&str> = Vec::new();
    for (reason, _) in tops.iter().flat_map(|(_, point)| point.dropped_by.iter()) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    let most = tops.iter().filter_map(|(_, point)| point.dropped.mean).fold(0.0, f64::max);
    let _ =
        writeln!(page, "<h3>Drops and deflections at {}\u{202f}%, packets a run</h3>", first.load);
    if most > 0.0 {
        page.push_str("<div class=\"reasons\">");
        for &(series, point) in &tops {
            stack(page, &name_of(names[series], names), series, point, &reasons, most);
        }
        page.push_str("</div>\n");
    }
    let mut head = vec!["scheme".to_string(), "sent".into(), "dropped".into(), "of sent".into()];
    head.extend(
        reasons
            .iter()
            .enumerate()
            .map(|(n, r)| format!("<i class=\"chip r{}\"></i>{}", n % 8, escape(r))),
    );
    head.extend(["deflected".to_string(), "timeouts".into()]);
    let row = |&(series, point): &(usize, &LoadPoint)| {
        let share = point
            .dropped
            .mean
            .zip(point.sent.mean)
            .filter(|(_, sent)| *sent > 0.0)
            .map(|(a, b)| a / b);
        let mut row = vec![
            name_of(names[series], names),
            count(point.sent.mean),
            count(point.dropped.mean),
            percent(share),
        ];
        row.extend(
            reasons
                .iter()
                .map(|reason| count(Some(point.dropped_by.get(reason).copied().unwrap_or(0.0)))),
        );
        row.extend([count(point.deflected.mean), count(point.timeouts.mean)]);
        row
    };
    table(page, "", &head, &tops.iter().map(row).collect::<Vec<_>>());
}

fn stack(
    page: &mut String,
    name: &str,
    series: usize,
    point: &LoadPoint,
    reasons: &[&str],
    most: f64,
) {
    let _ = write!(
        page,
        "<div data-v=\"{series}\"><span class=\"name\">{name}</span><span class=\"total\">{} \
         dropped, {} deflected</span><span class=\"stack\">",
        count(point.dropped.mean),
        count(point.deflected.mean)
    );
    for (number, reason) in reasons.iter().enumerate() {
        if let Some(&n) = point.dropped_by.get(reason) {
            let (class, width) = (number % 8, n / most * 100.0);
            let title = format!("{}: {}", escape(reason), count(Some(n)));
            let _ = write!(
                page,
                "<i class=\"r{class}\" style=\"width:{width:.2}%\" title=\"{title}\"></i>"
            );
        }
    }
    page.push_str("</span></div>");
}

/// An experiment of calls on persistent connections: a row a class.
fn calls_table(page: &mut String, all: &Reproduction, of: &Experiment, names: &[&str]) {
    let head = [
        "scheme, load",
        "claims",
        "runs",
        "goodput, Gb/s",
        "class",
        "calls",
        "p50",
        "p99",
        "p99.9",
        "drops",
    ];
    let mut rows = Vec::new();
    for (scheme, point) in of.rows() {
        for (class, calls) in point.calls.iter().filter(|(_, calls)| calls.count.mean > Some(0.0)) {
            rows.push(vec![
                format!("{}, {}", name_of(&scheme.label, names), point.load),
                claims_of(all, of, &scheme.label, point.load),
                format!("{} of {}", point.runs, point.planned),
                point.goodput_gbps.mean.map_or("–".into(), digits),
                escape(class),
                count(calls.count.mean),
                time(calls.p50_us.mean),
                time(calls.p99_us.mean),
                time(calls.p999_us.mean),
                count(point.dropped.mean),
            ]);
        }
    }
    table(page, "", &head.map(String::from), &rows);
}

/// An experiment of other numbers: each with its interval.
fn numbers_table(page: &mut String, all: &Reproduction, of: &Experiment, names: &[&str]) {
    let mut head = vec!["scheme".to_string(), "claims".into(), "runs".into()];
    if of.has_loads() {
        head.insert(1, escape(&of.load_axis));
    }
    for number in of.numbers() {
        let unit = if number.unit == "Gb/s" { ", Gb/s" } else { "" };
        head.extend([format!("{}{unit}", escape(&number.name)), INTERVAL.into()]);
    }
    let text = |x: f64, unit: &str| match unit {
        "us" => time(Some(x)),
        _ => number_text(Some(x), unit).replace('-', "−").replace('%', "\u{202f}%"),
    };
    let mut rows = Vec::new();
    for (scheme, point) in of.rows() {
        let mut row = vec![name_of(&scheme.label, names)];
        row.extend(of.has_loads().then(|| digits(point.load)));
        row.push(claims_of(all, of, &scheme.label, point.load));
        row.push(format!("{} of {}", point.runs, point.planned));
        for Number { unit, estimate, at_least, .. } in &point.numbers {
            let sign = if *at_least { "≥\u{202f}" } else { "" };
            let of = |x: Option<f64>| x.map_or("–".into(), |x| text(x, unit));
            let ends =
                estimate.interval.map(|[a, b]| format!("{} to {}", text(a, unit), text(b, unit)));
            row.extend([format!("{sign}{}", of(estimate.mean)), ends.unwrap_or("–".into())]);
        }
        rows.push(row);
    }
    table(page, "", &head, &rows);
}

/// The head of a column of intervals; points may have different numbers of runs.
const INTERVAL: &str = "95 % interval; below 6 runs, their range";

fn points_table(page: &mut String, all: &Reproduction, of: &Experiment, names: &[&str]) {
    let head = [
        "scheme, load",
        "claims",
        "runs",
        "completed",
        "mean QCT",
        INTERVAL,
        "mean, open at horizon",
        "published mean",
        "QCT p99",
        "published p99",
        "timeouts",
    ];
    let mut rows = Vec::new();
    for (scheme, point) in of.rows() {
        let paper = of.published_at(scheme, point);
        let interval = point.mean_us.interval;
        let interval = interval
            .map_or("–".into(), |[a, b]| format!("{} to {}", time(Some(a)), time(Some(b))));
        rows.push(vec![
            format!("{}, {}\u{202f}%", name_of(&scheme.label, names), point.load),
            claims_of(all, of, &scheme.label, point.load),
            format!("{} of {}", point.runs, point.planned),
            percent(point.completed_fraction.mean),
            time(point.mean_us.mean),
            interval,
            time(point.mean_restricted_us.mean),
            time(paper.map(|(mean, _)| mean)),
            time(point.p99_us.mean),
            time(paper.map(|(_, p99)| p99)),
            count(point.timeouts.mean),
        ]);
    }
    table(page, "", &head.map(String::from), &rows);
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
