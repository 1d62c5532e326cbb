//! The charts of a reproduction's experiment: ours (solid, with intervals and seeds) beside the
//! published (dashed), by load, or a row a scheme where there is one load.
//!
//! Invariant: nothing published is drawn without a dash.

use super::axis::Axis;
use super::chart::{Chart, Line, Read};
use super::figures::{goodput_drawing, goodput_line, spans};
use super::headline::{Strip, WIDE, strips};
use super::page::{Figure, escape};
use super::unit::Unit;
use crate::model::{Estimate, Experiment, LoadPoint, Published, Scheme};

/// A number of load points.
struct Quantity<'a> {
    caption: String,
    /// The title of its axis.
    title: &'static str,
    unit: Unit,
    /// Its name in [`OneRun`](crate::OneRun).
    name: String,
    of: Box<dyn Fn(&LoadPoint) -> Estimate + 'a>,
    /// The published curves of it.
    curves: Option<fn(&Published) -> &[f64]>,
}

/// All charts of an experiment; `names` fixes the series of its schemes.
pub(crate) fn charts(of: &Experiment, names: &[&str]) -> Vec<Figure> {
    let mut charts: Vec<Figure> =
        quantities(of).iter().filter_map(|quantity| figure(of, quantity, names)).collect();
    charts.extend(distribution(of, names));
    let line = |scheme: &Scheme| {
        let point = scheme.points.iter().find(|point| !point.goodput_over_time.is_empty())?;
        Some(goodput_line(series(scheme, names), &point.goodput_over_time))
    };
    let lines = of.schemes.iter().filter_map(line).collect();
    let over_time = goodput_drawing(lines, spans(of.failures.iter()));
    charts.splice(0..0, over_time.as_ref().map(Figure::from));
    charts
}

fn series(scheme: &Scheme, names: &[&str]) -> usize {
    names.iter().position(|name| *name == scheme.label).unwrap_or(0)
}

/// The subject of an experiment: its numbers, or else its calls, or else its queries.
fn quantities(of: &Experiment) -> Vec<Quantity<'_>> {
    if !of.numbers().is_empty() {
        let quantity = |(at, number): (usize, &crate::model::reproduction::Number)| Quantity {
            caption: escape(&number.name),
            title: "mean over seeds",
            unit: unit(&number.unit),
            name: number.name.clone(),
            of: Box::new(move |point| {
                point.numbers.get(at).map_or_else(Estimate::default, |number| number.estimate)
            }),
            curves: None,
        };
        return of.numbers().iter().enumerate().map(quantity).collect();
    }
    if of.has_calls() {
        return of_calls(of);
    }
    let own = |caption: &str, unit, name: &str, of: fn(&LoadPoint) -> Estimate, curves| Quantity {
        caption: caption.to_string(),
        title: if unit == Unit::Percent { "of those started" } else { "time" },
        unit,
        name: name.to_string(),
        of: Box::new(of),
        curves,
    };
    vec![
        own("Mean QCT", Unit::Time, "mean_us", |p| p.mean_us, Some(|p: &Published| &p.mean_us)),
        own("QCT p99", Unit::Time, "p99_us", |p| p.p99_us, Some(|p: &Published| &p.p99_us)),
        own(
            "Completed queries",
            Unit::Percent,
            "completed_fraction",
            |p| p.completed_fraction,
            None,
        ),
    ]
}

/// Goodput, and the percentiles of each class, the tails first.
fn of_calls(of: &Experiment) -> Vec<Quantity<'_>> {
    let mut all = vec![Quantity {
        caption: "Goodput".into(),
        title: "of all calls",
        unit: Unit::Rate,
        name: "goodput_gbps".into(),
        of: Box::new(|point| point.goodput_gbps),
        curves: None,
    }];
    let mut classes: Vec<&str> = Vec::new();
    for (class, calls) in
        of.schemes.iter().flat_map(|s| &s.points).flat_map(|point| point.calls.iter())
    {
        if calls.count.mean > Some(0.0) && !classes.contains(&class) {
            classes.push(class);
        }
    }
    type Pick = fn(&crate::model::reproduction::Calls) -> Estimate;
    let picks: [(&str, &str, Pick); 3] = [
        ("p99.9", "p999_us", |c| c.p999_us),
        ("p99", "p99_us", |c| c.p99_us),
        ("p50", "p50_us", |c| c.p50_us),
    ];
    for (percentile, field, pick) in picks {
        for &class in &classes {
            all.push(Quantity {
                caption: format!("{percentile} of {} calls", escape(class)),
                title: "time",
                unit: Unit::Time,
                name: format!("{class} {field}"),
                of: Box::new(move |point| {
                    point.calls.get(class).map_or_else(Estimate::default, pick)
                }),
                curves: None,
            });
        }
    }
    all
}

fn unit(name: &str) -> Unit {
    match name {
        "us" => Unit::Time,
        "Gb/s" => Unit::Rate,
        "percent" => Unit::Percent,
        "count" => Unit::Count,
        _ => Unit::Ratio,
    }
}

/// By load where there are several, else a row a scheme.
fn figure(of: &Experiment, quantity: &Quantity<'_>, names: &[&str]) -> Option<Figure> {
    // A fraction is drawn in percent; a number that is in percent already stays as it is.
    let scale = if quantity.name == "completed_fraction" { 100.0 } else { 1.0 };
    if of.has_loads() {
        by_load(of, quantity, scale, names)
    } else {
        by_scheme(of, quantity, scale, names)
    }
}

fn by_scheme(
    of: &Experiment,
    quantity: &Quantity<'_>,
    scale: f64,
    names: &[&str],
) -> Option<Figure> {
    let strip = |scheme: &Scheme| {
        let point = scheme.points.iter().find(|point| point.runs > 0)?;
        let estimate = (quantity.of)(point);
        Some(Strip {
            series: series(scheme, names),
            name: scheme.label.clone(),
            mean: estimate.mean.map(|mean| mean * scale),
            interval: estimate.interval.map(|ends| ends.map(|end| end * scale)),
            seeds: dots(point, quantity, scale),
            published: theirs(of, scheme, quantity).first().map(|&(_, value)| value),
        })
    };
    let rows: Vec<Strip> = of.schemes.iter().filter_map(strip).collect();
    let is_something = rows.iter().any(|row| row.mean.is_some_and(|mean| mean != 0.0));
    is_something.then(|| strips(&quantity.caption, "", quantity.unit, quantity.title, &rows))?
}

/// Each seed of a point, where there are several.
fn dots(point: &LoadPoint, quantity: &Quantity<'_>, scale: f64) -> Vec<(u64, f64)> {
    let seeds = point.by_seed(&quantity.name);
    if seeds.len() < 2 {
        Vec::new()
    } else {
        seeds.into_iter().map(|(seed, value)| (seed, value * scale)).collect()
    }
}

/// The published points of a scheme: load and value.
fn theirs(of: &Experiment, scheme: &Scheme, quantity: &Quantity<'_>) -> Vec<(f64, f64)> {
    let curves = of.published.iter().filter(|curve| curve.variant == scheme.variant);
    let curves = curves.filter_map(|curve| Some((curve, quantity.curves?)));
    let points = curves
        .flat_map(|(curve, pick)| curve.loads.iter().copied().zip(pick(curve).iter().copied()));
    let numbers = of.published_numbers.iter();
    let numbers =
        numbers.filter(|number| number.variant == scheme.variant && number.number == quantity.name);
    points.chain(numbers.map(|number| (number.load, number.value))).collect()
}

fn by_load(of: &Experiment, quantity: &Quantity<'_>, scale: f64, names: &[&str]) -> Option<Figure> {
    let (mut ours, mut published) = (Vec::new(), Vec::new());
    for scheme in &of.schemes {
        let series = series(scheme, names);
        ours.push(line(series, &scheme.points, quantity, scale));
        let points = theirs(of, scheme, quantity);
        if !points.is_empty() {
            let marks = points.iter().map(|&(x, y)| (x, y, true)).collect();
            let name = Some(format!("{}, published", escape(&scheme.label)));
            published.push(Line { series, points, marks, published: name, ..Line::default() });
        }
    }
    if ours.iter().all(|line| line.points.is_empty()) {
        return None;
    }
    let below = if published.is_empty() { "" } else { "dashed, hollow: published" };
    let lines: Vec<Line> = ours.into_iter().chain(published).collect();
    let loads: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter().map(|&(load, _)| load)).collect();
    let x = Axis::points(&loads, Unit::Ratio, &escape(&of.load_axis))?;
    let y = values_axis(&lines, quantity)?;
    let label = format!("{} by load", quantity.caption);
    let chart = Chart { x, y, lines, spans: Vec::new(), read: Read::AtX, label };
    Some(Figure::of(quantity.caption.clone(), below, &chart))
}

/// Logarithmic for times that lie far apart; shares of a whole end at the whole.
fn values_axis(lines: &[Line], quantity: &Quantity<'_>) -> Option<Axis> {
    let of = |line: &Line| {
        let points =
            line.points.iter().map(|&(_, y)| y).chain(line.dots.iter().map(|&(_, _, y)| y));
        points
            .chain(line.whiskers.iter().flat_map(|&(_, low, high)| [low, high]))
            .collect::<Vec<_>>()
    };
    let values: Vec<f64> = lines.iter().flat_map(of).collect();
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let most = values.iter().copied().max_by(f64::total_cmp).filter(|most| *most > 0.0)?;
    if quantity.unit == Unit::Time && least > 0.0 && most > least * WIDE {
        return Axis::log(values.into_iter(), quantity.unit, quantity.title);
    }
    if quantity.name == "completed_fraction" {
        // Close to the whole a tenth shows what the whole would hide.
        let from = if least > 90.0 { 90.0 } else { 0.0 };
        return Some(Axis::linear(from, 100.0, quantity.unit, quantity.title));
    }
    Some(Axis::linear(least.min(0.0), most * 1.04, quantity.unit, quantity.title))
}

/// Means with their intervals and seeds; `scale` makes the axis' unit of theirs.
fn line(series: usize, points: &[LoadPoint], quantity: &Quantity<'_>, scale: f64) -> Line {
    let (mut line, there) =
        (Line { series, ..Line::default() }, points.iter().filter(|point| point.runs > 0));
    for point in there {
        let estimate = (quantity.of)(point);
        let Some(mean) = estimate.mean else { continue };
        line.points.push((point.load, mean * scale));
        line.marks.push((point.load, mean * scale, false));
        line.whiskers
            .extend(estimate.interval.map(|[low, high]| (point.load, low * scale, high * scale)));
        line.dots.extend(
            dots(point, quantity, scale).into_iter().map(|(seed, value)| (seed, point.load, value)),
        );
    }
    line
}

/// At the highest load of which the queries were kept.
fn distribution(of: &Experiment, names: &[&str]) -> Option<Figure> {
    let kept = || {
        of.schemes
            .iter()
            .flat_map(|scheme| &scheme.points)
            .filter(|point| !point.distribution.is_empty())
    };
    let load = kept().map(|point| point.load).max_by(f64::total_cmp)?;
    let line = |scheme: &Scheme| {
        let point = scheme.points.iter().find(|point| point.load == load)?;
        Some(Line {
            series: series(scheme, names),
            points: point.distribution.clone(),
            ..Line::default()
        })
    };
    let lines: Vec<Line> = of.schemes.iter().filter_map(line).collect();
    let all: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter().map(|&(time, _)| time)).collect();
    let least = lines
        .iter()
        .filter_map(|line| line.points.last())
        .map(|&(_, share)| share)
        .min_by(f64::total_cmp)?;
    let x = Axis::log(all.into_iter(), Unit::Time, "QCT")?;
    let y = Axis::tail(least, "percentile of the completed");
    let caption = if of.has_loads() {
        format!("Distribution of QCT at load {load}")
    } else {
        "Distribution of QCT".into()
    };
    let chart = Chart { x, y, lines, spans: Vec::new(), read: Read::AtY, label: caption.clone() };
    Some(Figure::of(caption, "seeds pooled", &chart))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Calls;
    use crate::model::reproduction::PublishedNumber;
    use crate::model::summary::{Latency, Summary};

    /// Two runs of calls of 1 MiB at a load.
    fn point(load: f64) -> LoadPoint {
        let run = |seed: u64| {
            let calls = Latency {
                count: 1000,
                p50: Some(9e3),
                p99: Some(20e3),
                p999: None,
                ..Latency::default()
            };
            let mut summary = Summary { seed, ..Summary::default() };
            summary.flows.goodput_gbps = Some(0.9 + seed as f64 / 100.0);
            summary.latency_us.insert("large".into(), calls);
            summary
        };
        let (a, b) = (run(1), run(2));
        LoadPoint::of(load, 2, &[(&a, None), (&b, None)])
    }

    fn experiment(loads: &[f64]) -> Experiment {
        let points: Vec<LoadPoint> = loads.iter().map(|load| point(*load)).collect();
        let scheme = Scheme { variant: "dctcp".into(), label: "DCTCP".into(), points };
        let published = PublishedNumber {
            variant: "dctcp".into(),
            load: loads[0],
            number: "goodput_gbps".into(),
            value: 0.945,
            ..PublishedNumber::default()
        };
        Experiment {
            schemes: vec![scheme],
            published_numbers: vec![published],
            ..Experiment::default()
        }
    }

    #[test]
    fn calls_have_charts_of_what_was_measured_of_them() {
        let captions = |of: &Experiment| {
            charts(of, &["DCTCP"]).into_iter().map(|c| c.caption).collect::<Vec<_>>()
        };
        // Nothing is drawn of a percentile that no run has.
        let all = ["Goodput", "p99 of large calls", "p50 of large calls"];
        let (one, several) = (experiment(&[9.0]), experiment(&[2.0, 5.0, 9.0]));
        assert_eq!(
            (captions(&one), captions(&several)),
            (all.map(String::from).to_vec(), all.map(String::from).to_vec())
        );
        let goodput = &charts(&one, &["DCTCP"])[0].svg;
        assert!(
            goodput.contains("data-d=\"1 0.91 0 2 0.92 0\"") && goodput.contains("published 0.945"),
            "{goodput}"
        );
        let goodput = &charts(&several, &["DCTCP"])[0].svg;
        assert!(
            [2, 5, 9].iter().all(|load| goodput.contains(&format!(">{load}</text>"))),
            "{goodput}"
        );
        assert!(goodput.contains("DCTCP, published") && goodput.contains("class=\"line paper\""));
    }

    #[test]
    fn classes_without_calls_are_left_out() {
        let mut of = experiment(&[9.0]);
        of.schemes[0].points[0].calls.insert("small".into(), Calls::default());
        assert!(charts(&of, &["DCTCP"]).iter().all(|chart| !chart.caption.contains("small")));
    }
}
