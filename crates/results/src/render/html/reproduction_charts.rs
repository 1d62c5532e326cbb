//! The charts of a reproduction's experiment: ours (solid, with intervals and seeds) beside the
//! published (dashed), by load, or a row a scheme where there is one load.
//!
//! Invariant: nothing published is drawn without a dash.

use super::figures::{goodput_drawing, goodput_line, spans};
use super::headline::{Strip, WIDE, strips};
use crate::model::{Calls, Estimate, Experiment, LoadPoint, Published, Scheme, each_once};
use crate::render::document::Figure;
use crate::render::draw::axis::Axis;
use crate::render::draw::chart::{Chart, Line};
use crate::render::draw::number::extent;
use crate::render::draw::unit::Unit;
use crate::render::markup::escape;

struct Quantity<'a> {
    caption: String,
    title: &'static str,
    unit: Unit,
    /// Its name in [`OneRun`](crate::OneRun).
    name: String,
    of: Box<dyn Fn(&LoadPoint) -> Estimate + 'a>,
    curves: Option<fn(&Published) -> &[f64]>,
}

impl<'a> Quantity<'a> {
    fn new(
        caption: &str,
        title: &'static str,
        unit: Unit,
        name: &str,
        of: impl Fn(&LoadPoint) -> Estimate + 'a,
    ) -> Quantity<'a> {
        let (caption, name) = (caption.to_string(), name.to_string());
        Quantity { caption, title, unit, name, of: Box::new(of), curves: None }
    }

    fn with_curves(self, curves: fn(&Published) -> &[f64]) -> Quantity<'a> {
        Quantity { curves: Some(curves), ..self }
    }

    /// Makes the axis' unit of the number's: a fraction is drawn in percent; a number that is in
    /// percent already stays as it is.
    fn scale(&self) -> f64 {
        if self.name == COMPLETED { 100.0 } else { 1.0 }
    }
}

const COMPLETED: &str = "completed_fraction";

/// All charts of an experiment; `names` fixes the series of its schemes.
pub(crate) fn charts(of: &Experiment, names: &[&str]) -> Vec<Figure> {
    let line = |scheme: &Scheme| {
        let point = scheme.points.iter().find(|point| !point.goodput_over_time.is_empty())?;
        Some(goodput_line(series(scheme, names), &point.goodput_over_time))
    };
    let lines = of.schemes.iter().filter_map(line).collect();
    let over_time = goodput_drawing(lines, spans(of.failures.iter()));
    let quantities = quantities(of);
    let own = quantities.iter().filter_map(|quantity| match of.has_loads() {
        true => by_load(of, quantity, names),
        false => by_scheme(of, quantity, names),
    });
    over_time.into_iter().chain(own).chain(distribution(of, names)).collect()
}

fn series(scheme: &Scheme, names: &[&str]) -> usize {
    names.iter().position(|name| *name == scheme.label).unwrap_or(0)
}

/// The subject of an experiment: its numbers, or else its calls, or else its queries.
fn quantities(of: &Experiment) -> Vec<Quantity<'_>> {
    if !of.numbers().is_empty() {
        let quantity = |(at, number): (usize, &crate::Number)| {
            let of = move |point: &LoadPoint| {
                point.numbers.get(at).map(|it| it.estimate).unwrap_or_default()
            };
            let caption = escape(&number.name);
            Quantity::new(&caption, "mean over seeds", unit(&number.unit), &number.name, of)
        };
        return of.numbers().iter().enumerate().map(quantity).collect();
    }
    if of.has_calls() {
        return of_calls(of);
    }
    let time = |caption, name, of: fn(&LoadPoint) -> Estimate| {
        Quantity::new(caption, "time", Unit::Time, name, of)
    };
    let completed = |point: &LoadPoint| point.completed_fraction;
    let (caption, title) = ("Completed queries", "of those started");
    vec![
        time("Mean QCT", "mean_us", |point| point.mean_us).with_curves(|curve| &curve.mean_us),
        time("QCT p99", "p99_us", |point| point.p99_us).with_curves(|curve| &curve.p99_us),
        Quantity::new(caption, title, Unit::Percent, COMPLETED, completed),
    ]
}

/// Goodput, and the percentiles of each class, the tails first.
fn of_calls(of: &Experiment) -> Vec<Quantity<'_>> {
    let goodput = |point: &LoadPoint| point.goodput_gbps;
    let mut all =
        vec![Quantity::new("Goodput", "of all calls", Unit::Rate, "goodput_gbps", goodput)];
    let points = of.schemes.iter().flat_map(|scheme| &scheme.points);
    let calls = points.flat_map(|point| point.calls.iter());
    let calls = calls.filter(|(_, calls)| calls.count.mean > Some(0.0));
    let classes: Vec<&str> = each_once(calls.map(|(class, _)| class));
    type Pick = fn(&Calls) -> Estimate;
    let picks: [(&str, &str, Pick); 3] = [
        ("p99.9", "p999_us", |calls| calls.p999_us),
        ("p99", "p99_us", |calls| calls.p99_us),
        ("p50", "p50_us", |calls| calls.p50_us),
    ];
    for (percentile, field, pick) in picks {
        all.extend(classes.iter().map(|&class| {
            let caption = format!("{percentile} of {} calls", escape(class));
            let of = move |point: &LoadPoint| point.calls.get(class).map(pick).unwrap_or_default();
            Quantity::new(&caption, "time", Unit::Time, &format!("{class} {field}"), of)
        }));
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

fn by_scheme(of: &Experiment, quantity: &Quantity<'_>, names: &[&str]) -> Option<Figure> {
    let scale = quantity.scale();
    let strip = |scheme: &Scheme| {
        let point = scheme.points.iter().find(|point| point.runs > 0)?;
        let estimate = (quantity.of)(point);
        Some(Strip {
            series: series(scheme, names),
            name: scheme.label.clone(),
            mean: estimate.mean.map(|mean| mean * scale),
            interval: estimate.interval.map(|ends| ends.map(|end| end * scale)),
            seeds: dots(point, quantity),
            published: theirs(of, scheme, quantity).first().map(|&(_, value)| value),
        })
    };
    let rows: Vec<Strip> = of.schemes.iter().filter_map(strip).collect();
    let is_something = rows.iter().any(|row| row.mean.is_some_and(|mean| mean != 0.0));
    is_something.then(|| strips(&quantity.caption, quantity.unit, quantity.title, &rows))?
}

/// Each seed of a point, where there are several.
fn dots(point: &LoadPoint, quantity: &Quantity<'_>) -> Vec<(u64, f64)> {
    let mut seeds = point.by_seed(&quantity.name);
    if seeds.len() < 2 {
        seeds.clear();
    }
    seeds.into_iter().map(|(seed, value)| (seed, value * quantity.scale())).collect()
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

fn by_load(of: &Experiment, quantity: &Quantity<'_>, names: &[&str]) -> Option<Figure> {
    let ours =
        of.schemes.iter().map(|scheme| line(series(scheme, names), &scheme.points, quantity));
    let mut lines: Vec<Line> = ours.collect();
    if lines.iter().all(|line| line.points.is_empty()) {
        return None;
    }
    let published = of.schemes.iter().filter_map(|scheme| {
        let points = theirs(of, scheme, quantity);
        let line =
            || Line::published(series(scheme, names), points.clone(), &escape(&scheme.label));
        (!points.is_empty()).then(line)
    });
    let published: Vec<Line> = published.collect();
    let below = if published.is_empty() { "" } else { "dashed, hollow: published" };
    lines.extend(published);
    let loads: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter().map(|&(load, _)| load)).collect();
    let x = Axis::points(&loads, Unit::Ratio, &escape(&of.load_axis))?;
    let y = values_axis(&lines, quantity)?;
    let chart = Chart::new(x, y, lines, format!("{} by load", quantity.caption));
    Some(Figure::of(quantity.caption.clone(), below, chart))
}

/// Logarithmic for times that lie far apart; shares of a whole end at the whole.
fn values_axis(lines: &[Line], quantity: &Quantity<'_>) -> Option<Axis> {
    let of = |line: &Line| {
        let points = line.points.iter().map(|&(_, y)| y);
        let points = points.chain(line.dots.iter().map(|&(_, _, y)| y));
        points
            .chain(line.whiskers.iter().flat_map(|&(_, low, high)| [low, high]))
            .collect::<Vec<_>>()
    };
    let values: Vec<f64> = lines.iter().flat_map(of).collect();
    let (least, most) = extent(values.iter().copied()).filter(|(_, most)| *most > 0.0)?;
    let Quantity { unit, title, .. } = quantity;
    if *unit == Unit::Time && least > 0.0 && most > least * WIDE {
        return Axis::log(values, *unit, title);
    }
    let (from, to) = match quantity.name.as_str() {
        // Close to the whole a tenth shows what the whole would hide.
        COMPLETED => (if least > 90.0 { 90.0 } else { 0.0 }, 100.0),
        _ => (least.min(0.0), most * 1.04),
    };
    Some(Axis::linear(from, to, *unit, title))
}

/// Means with their intervals and seeds.
fn line(series: usize, points: &[LoadPoint], quantity: &Quantity<'_>) -> Line {
    let there = points.iter().filter(|point| point.runs > 0);
    let there = there.map(|point| (point, (quantity.of)(point)));
    let there: Vec<_> = there.filter(|(_, estimate)| estimate.mean.is_some()).collect();
    let estimates: Vec<_> = there.iter().map(|(point, of)| (point.load, *of)).collect();
    let dots = there.iter().flat_map(|(point, _)| {
        dots(point, quantity).into_iter().map(|(seed, value)| (seed, point.load, value))
    });
    let dots = dots.collect();
    Line { dots, ..Line::estimates(series, &estimates, quantity.scale()) }
}

/// At the highest load of which the queries were kept.
fn distribution(of: &Experiment, names: &[&str]) -> Option<Figure> {
    let points = of.schemes.iter().flat_map(|scheme| &scheme.points);
    let kept = points.filter(|point| !point.distribution.is_empty());
    let (_, load) = extent(kept.map(|point| point.load))?;
    let line = |scheme: &Scheme| {
        let point = scheme.points.iter().find(|point| point.load == load)?;
        Some(Line::of(series(scheme, names), point.distribution.clone()))
    };
    let lines: Vec<Line> = of.schemes.iter().filter_map(line).collect();
    let times = lines.iter().flat_map(|line| line.points.iter().map(|&(time, _)| time));
    let (least, _) = extent(lines.iter().filter_map(|line| Some(line.points.last()?.1)))?;
    let x = Axis::log(times, Unit::Time, "QCT")?;
    let y = Axis::tail(least, "percentile of the completed");
    let at = if of.has_loads() { format!(" at load {load}") } else { String::new() };
    let caption = format!("Distribution of QCT{at}");
    let chart = Chart::new(x, y, lines, caption.clone());
    Some(Figure::of(caption, "seeds pooled", chart))
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
        let goodput = &charts(&one, &["DCTCP"])[0].svg();
        assert!(
            goodput.contains("data-d=\"1 0.91 0 2 0.92 0\"") && goodput.contains("published 0.945"),
            "{goodput}"
        );
        let goodput = &charts(&several, &["DCTCP"])[0].svg();
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
