//! The page of a reproduction: the claims with their status, then ours (solid, with intervals) beside the published
//! (dashed), and where the packets went.
//!
//! Invariant: nothing published is drawn without a dash, and no mean without the share that completed.

use std::fmt::Write;
use std::path::Path;

use super::axis::{Axis, Unit};
use super::chart::{Chart, Line, Read, swatch};
use super::figures::goodput_chart;
use super::number::{count, percent, time};
use super::page::{self, details, empty, end, escape, figures, note, section, table};
use crate::compare::Estimate;
use crate::error::Result;
use crate::format::digits;
use crate::reproduction::{Claim, Experiment, LoadPoint, Number, Published, Reproduction, Verdict};
use crate::reproduction_table::{accepted, number_text, short_id, tally, value, worlds};

/// One curve: a load and a number with its interval.
type Values = fn(&LoadPoint) -> &Estimate;
/// A curve of one variant: its series, its load points in order.
type Curve<'a> = (usize, &'a [LoadPoint]);

/// A time by load.
struct Times {
    caption: &'static str,
    ours: Values,
    theirs: fn(&Published) -> &[f64],
}

const TIMES: [Times; 2] = [
    Times { caption: "Mean QCT", ours: |p| &p.mean_us, theirs: |p| &p.mean_us },
    Times { caption: "QCT p99", ours: |p| &p.p99_us, theirs: |p| &p.p99_us },
];

/// Writes `DIR/report.html`.
pub(crate) fn write(dir: &Path, of: &Reproduction) -> Result<()> {
    super::replace(dir, &page_of(of))
}

fn page_of(of: &Reproduction) -> String {
    let mut text = String::new();
    let claims: Vec<&Claim> = of.claims.iter().collect();
    let facts = [format!("<b>{}</b>", escape(&of.effort)), worlds(&claims).into(), tally(&claims)];
    page::head(&mut text, &of.title, "reproduce", &facts);
    let names = labels(of);
    page::legend(&mut text, &names);
    section(&mut text, "claims", "Claims");
    claims_table(&mut text, of);
    end(&mut text);
    for experiment in &of.experiments {
        section(&mut text, &escape(&experiment.name), &escape(&experiment.title));
        one(&mut text, experiment, &names);
        end(&mut text);
    }
    page::foot_with(
        &mut text,
        "Solid lines and the column “measured” are simulated. Dashed lines and the columns of the paper are published numbers \
         from the sources named beside them. All of it is in reproduce.json and claims.json beside this page, and the runs \
         are in the folders of the experiments. – means that there is nothing to make a number of.",
    );
    text
}

/// The schemes of all experiments that have charts, each once: their places are the series.
fn labels(of: &Reproduction) -> Vec<&str> {
    let mut labels: Vec<&str> = Vec::new();
    for scheme in of.experiments.iter().filter(|experiment| has_charts(experiment)).flat_map(|e| &e.schemes) {
        if !labels.contains(&scheme.label.as_str()) {
            labels.push(&scheme.label);
        }
    }
    labels
}

fn has_charts(of: &Experiment) -> bool {
    let is_sampled = of.schemes.iter().flat_map(|scheme| &scheme.points).any(|p| !p.goodput_over_time.is_empty());
    is_sampled || !of.has_calls() && of.numbers().is_empty()
}

fn claims_table(page: &mut String, of: &Reproduction) {
    let head = ["claim", "statement", "paper", "measured", "accepted", "status", "source and note"].map(String::from);
    let signed = |text: String| text.replace('-', "−").replace('%', "\u{202f}%");
    let row = |claim: &Claim| {
        let (class, sign) = match claim.status {
            Verdict::Holds => ("better", "✓ "),
            Verdict::Fails => ("worse", "✗ "),
            Verdict::NotEvaluated => ("", ""),
        };
        let text = |text: String| format!("<td class=\"text\">{text}</td>");
        vec![
            escape(short_id(of, claim)),
            text(escape(&claim.statement)),
            signed(value(claim.paper, &claim.unit)),
            signed(value(claim.measured, &claim.unit)),
            signed(accepted(claim)),
            format!("<td class=\"{class}\">{sign}{}</td>", claim.status.name()),
            text(format!("{}<small>{}</small>", escape(&claim.source), escape(&claim.note))),
        ]
    };
    table(page, "claims", &head, &of.claims.iter().map(row).collect::<Vec<_>>());
}

fn one(page: &mut String, of: &Experiment, names: &[&str]) {
    let curves: Vec<Curve> = of
        .schemes
        .iter()
        .map(|s| (names.iter().position(|name| *name == s.label).unwrap_or(0), s.points.as_slice()))
        .collect();
    if !of.note.is_empty() {
        note(page, &escape(&of.note));
    }
    if curves.iter().all(|(_, points)| points.iter().all(|point| point.runs == 0)) {
        return empty(page, "Nothing was run.");
    }
    if !of.numbers().is_empty() {
        numbers_table(page, of, names);
        let line = |&(series, points): &Curve| {
            let course = points.iter().find(|point| !point.goodput_over_time.is_empty())?;
            Some(Line { series, points: course.goodput_over_time.clone(), ..Line::default() })
        };
        figures(page, &goodput_chart(curves.iter().filter_map(line).collect()).into_iter().collect::<Vec<_>>());
        let about = "Simulated here, means over seeds with their intervals.";
        return note(page, &format!("{about} Scenario: <code>{}</code>.", escape(&of.scenario)));
    }
    if of.has_calls() {
        let about = "Simulated here, means over seeds; a percentile is shown only where ten calls exceed it.";
        note(
            page,
            &format!("{about} Load: {}. Scenario: <code>{}</code>.", escape(&of.load_axis), escape(&of.scenario)),
        );
        return calls_table(page, of, names);
    }
    let published: Vec<(usize, &Published)> = of
        .published
        .iter()
        .filter_map(|p| Some((curves.get(of.schemes.iter().position(|s| s.variant == p.variant)?)?.0, p)))
        .collect();
    let mut charts: Vec<_> =
        TIMES.iter().filter_map(|times| times_by_load(times, of, &curves, &published, names)).collect();
    charts.extend(completion(of, &curves, &published));
    charts.extend(distribution(&curves));
    figures(page, &charts);
    let mut sources: Vec<&str> = of.published.iter().map(|published| published.source.as_str()).collect();
    sources.dedup();
    let theirs = match sources.is_empty() {
        true => String::new(),
        false => format!(" Dashed, hollow: {}.", escape(&sources.join("; "))),
    };
    note(
        page,
        &format!(
            "Solid: simulated here, means over seeds with their intervals, of the queries that completed; the share that did \
             is beside it, since what did not complete is in no mean.{theirs} Load: {}. Scenario: <code>{}</code>.",
            escape(&of.load_axis),
            escape(&of.scenario)
        ),
    );
    losses(page, of, names);
    details(page, "All points as a table", |page| points_table(page, of, names));
}

fn load_axis(of: &Experiment, curves: &[Curve], published: &[(usize, &Published)]) -> Axis {
    let ours = curves.iter().flat_map(|(_, points)| points.iter().map(|point| point.load));
    let loads: Vec<f64> = ours.chain(published.iter().flat_map(|(_, p)| p.loads.iter().copied())).collect();
    let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
    let most = loads.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let space = if most > least { 0.03 * (most - least) } else { 5.0 };
    Axis::linear(least - space, most + space, Unit::Percent, &escape(&of.load_axis))
}

fn times_by_load(
    times: &Times,
    of: &Experiment,
    curves: &[Curve],
    published: &[(usize, &Published)],
    names: &[&str],
) -> Option<(String, String, Chart)> {
    let Times { caption, ours, theirs } = *times;
    let mut values: Vec<f64> = published.iter().flat_map(|(_, p)| theirs(p).iter().copied()).collect();
    let estimates = || curves.iter().flat_map(|(_, points)| points.iter().map(ours));
    values.extend(estimates().filter_map(|estimate| estimate.mean));
    values.extend(estimates().filter_map(|estimate| estimate.interval).flatten());
    let y = Axis::log(values.into_iter(), Unit::Time, "time, logarithmic")?;
    let mut lines: Vec<Line> = curves.iter().map(|&(series, points)| line(series, points, ours, 1.0)).collect();
    for &(series, curve) in published {
        let points: Vec<(f64, f64)> = curve.loads.iter().copied().zip(theirs(curve).iter().copied()).collect();
        let marks = points.iter().map(|&(x, y)| (x, y, true)).collect();
        let name = format!("{}, published", escape(names.get(series).copied().unwrap_or_default()));
        lines.push(Line { series, points, marks, published: Some(name), ..Line::default() });
    }
    let below = if published.is_empty() { "" } else { "dashed: published" };
    let label = format!("{caption} by load");
    let chart = Chart { x: load_axis(of, curves, published), y, lines, read: Read::AtX, label };
    Some((caption.into(), below.into(), chart))
}

/// Means with their intervals; `scale` makes the axis' unit of theirs.
fn line(series: usize, points: &[LoadPoint], ours: Values, scale: f64) -> Line {
    let with = points.iter().filter_map(|p| Some((p.load, ours(p).mean? * scale)));
    let marks: Vec<_> = with.map(|(x, y)| (x, y, false)).collect();
    let interval = |p: &LoadPoint| ours(p).interval.map(|[low, high]| (p.load, low * scale, high * scale));
    Line {
        series,
        points: marks.iter().map(|&(x, y, _)| (x, y)).collect(),
        marks,
        whiskers: points.iter().filter_map(interval).collect(),
        ..Line::default()
    }
}

fn completion(of: &Experiment, curves: &[Curve], published: &[(usize, &Published)]) -> Option<(String, String, Chart)> {
    let lines: Vec<Line> =
        curves.iter().map(|&(series, points)| line(series, points, |p| &p.completed_fraction, 100.0)).collect();
    let least = lines.iter().flat_map(|line| &line.points).map(|&(_, share)| share).min_by(f64::total_cmp)?;
    let from = if least > 90.0 { libm::floor(least - 1.0) } else { 0.0 };
    let y = Axis::linear(from, 100.0, Unit::Percent, "queries completed, of those started");
    let label = "Completed queries by load".to_string();
    let chart = Chart { x: load_axis(of, curves, published), y, lines, read: Read::AtX, label };
    Some(("Completed queries".into(), "within the run".into(), chart))
}

/// At the highest load of which the queries were kept.
fn distribution(curves: &[Curve]) -> Option<(String, String, Chart)> {
    let kept = || curves.iter().flat_map(|(_, points)| points.iter()).filter(|p| !p.distribution.is_empty());
    let load = kept().map(|point| point.load).max_by(f64::total_cmp)?;
    let at = |points: &[LoadPoint]| points.iter().find(|p| p.load == load).map(|p| p.distribution.clone());
    let lines: Vec<Line> = curves
        .iter()
        .filter_map(|&(series, points)| Some(Line { series, points: at(points)?, ..Line::default() }))
        .collect();
    let all: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|&(time, _)| time)).collect();
    let least = lines.iter().filter_map(|line| line.points.last()).map(|&(_, share)| share).min_by(f64::total_cmp)?;
    let x = Axis::log(all.into_iter(), Unit::Time, "QCT, logarithmic")?;
    let y = Axis::tail(least, "percentile of the completed");
    let caption = format!("Distribution of QCT at {load}\u{202f}%");
    let label = caption.clone();
    Some((caption, "seeds pooled".into(), Chart { x, y, lines, read: Read::AtY, label }))
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
        .filter_map(|s| Some((names.iter().position(|name| *name == s.label)?, highest(&s.points)?)))
        .collect();
    let Some((_, first)) = tops.first() else { return };
    let mut reasons: Vec<&str> = Vec::new();
    for (reason, _) in tops.iter().flat_map(|(_, point)| point.dropped_by.iter()) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    let most = tops.iter().filter_map(|(_, point)| point.dropped.mean).fold(0.0, f64::max);
    let _ = writeln!(page, "<h3>Drops and deflections at {}\u{202f}%, packets a run</h3>", first.load);
    if most > 0.0 {
        page.push_str("<div class=\"reasons\">");
        for &(series, point) in &tops {
            stack(page, &name_of(names[series], names), series, point, &reasons, most);
        }
        page.push_str("</div>\n");
    }
    let mut head = vec!["scheme".to_string(), "sent".into(), "dropped".into(), "of sent".into()];
    head.extend(reasons.iter().enumerate().map(|(n, r)| format!("<i class=\"chip r{}\"></i>{}", n % 8, escape(r))));
    head.extend(["deflected".to_string(), "timeouts".into()]);
    let row = |&(series, point): &(usize, &LoadPoint)| {
        let share = point.dropped.mean.zip(point.sent.mean).filter(|(_, sent)| *sent > 0.0).map(|(a, b)| a / b);
        let mut row =
            vec![name_of(names[series], names), count(point.sent.mean), count(point.dropped.mean), percent(share)];
        row.extend(reasons.iter().map(|reason| count(Some(point.dropped_by.get(reason).copied().unwrap_or(0.0)))));
        row.extend([count(point.deflected.mean), count(point.timeouts.mean)]);
        row
    };
    table(page, "", &head, &tops.iter().map(row).collect::<Vec<_>>());
}

fn stack(page: &mut String, name: &str, series: usize, point: &LoadPoint, reasons: &[&str], most: f64) {
    let _ = write!(
        page,
        "<div data-v=\"{series}\"><span class=\"name\">{name}</span><span class=\"total\">{} dropped, {} deflected</span>\
         <span class=\"stack\">",
        count(point.dropped.mean),
        count(point.deflected.mean)
    );
    for (number, reason) in reasons.iter().enumerate() {
        if let Some(&n) = point.dropped_by.get(reason) {
            let (class, width) = (number % 8, n / most * 100.0);
            let title = format!("{}: {}", escape(reason), count(Some(n)));
            let _ = write!(page, "<i class=\"r{class}\" style=\"width:{width:.2}%\" title=\"{title}\"></i>");
        }
    }
    page.push_str("</span></div>");
}

/// An experiment of calls on persistent connections: a row a class.
fn calls_table(page: &mut String, of: &Experiment, names: &[&str]) {
    let head = ["scheme, load", "runs", "goodput, Gb/s", "class", "calls", "p50", "p99", "p99.9", "drops"];
    let mut rows = Vec::new();
    for scheme in &of.schemes {
        for point in scheme.points.iter().filter(|point| point.runs > 0) {
            for (class, calls) in point.calls.iter().filter(|(_, calls)| calls.count.mean > Some(0.0)) {
                rows.push(vec![
                    format!("{}, {}", name_of(&scheme.label, names), point.load),
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
    }
    table(page, "", &head.map(String::from), &rows);
}

/// An experiment of other numbers: each with its interval.
fn numbers_table(page: &mut String, of: &Experiment, names: &[&str]) {
    let mut head = vec!["scheme".to_string(), "runs".into()];
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
    for scheme in &of.schemes {
        for point in scheme.points.iter().filter(|point| point.runs > 0) {
            let mut row = vec![name_of(&scheme.label, names)];
            row.extend(of.has_loads().then(|| digits(point.load)));
            row.push(format!("{} of {}", point.runs, point.planned));
            for Number { unit, estimate, .. } in &point.numbers {
                let of = |x: Option<f64>| x.map_or("–".into(), |x| text(x, unit));
                let ends = estimate.interval.map(|[a, b]| format!("{} to {}", text(a, unit), text(b, unit)));
                row.extend([of(estimate.mean), ends.unwrap_or("–".into())]);
            }
            rows.push(row);
        }
    }
    table(page, "", &head, &rows);
}

/// The head of a column of intervals; points may have different numbers of runs.
const INTERVAL: &str = "95 % interval; below 6 runs, their range";

fn points_table(page: &mut String, of: &Experiment, names: &[&str]) {
    let head = [
        "scheme, load",
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
    for scheme in &of.schemes {
        for point in scheme.points.iter().filter(|point| point.runs > 0) {
            let paper = of.published.iter().filter(|p| p.variant == scheme.variant).find_map(|p| p.at(point.load));
            let interval = point.mean_us.interval;
            let interval = interval.map_or("–".into(), |[a, b]| format!("{} to {}", time(Some(a)), time(Some(b))));
            rows.push(vec![
                format!("{}, {}\u{202f}%", name_of(&scheme.label, names), point.load),
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
    }
    table(page, "", &head.map(String::from), &rows);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::Scheme;

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
        let scheme =
            Scheme { variant: "ecmp".into(), label: "ECMP <b>".into(), points: vec![point(55.0), point(95.0)] };
        let published = Published {
            variant: "ecmp".into(),
            source: "somewhere".into(),
            loads: vec![55.0, 95.0],
            mean_us: vec![1e6, 2e6],
            p99_us: vec![2e6, 4e6],
        };
        let mut claim = Claim { id: "canary-S1a".into(), unit: "percent".into(), ..Claim::default() };
        claim.judge(1.0);
        let experiment = Experiment {
            name: "headline".into(),
            schemes: vec![scheme],
            published: vec![published],
            ..Experiment::default()
        };
        let of = Reproduction {
            claims: vec![claim],
            experiments: vec![experiment, Experiment { name: "empty".into(), ..Experiment::default() }],
            ..Reproduction::new("canary", "Canary", "0", "quick")
        };
        let page = page_of(&of);
        assert_eq!(page.matches("class=\"line paper\"").count(), 2);
        assert_eq!(page.matches("<svg class=\"chart\"").count(), 4);
        assert!(page.contains("✓ holds") && page.contains("ECMP &lt;b&gt;, published") && !page.contains("ECMP <b>"));
        assert!(page.contains("Nothing was run.") && page.contains("class=\"whisker\""));
        assert_eq!(page, page_of(&of));
    }
}
