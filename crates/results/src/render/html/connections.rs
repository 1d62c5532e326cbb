//! Connections over time, from `connections.parquet`: the window, the round-trip time, and what the
//! control law steers by.
//!
//! A page of one run draws its first flows into one chart a quantity; one of several variants has
//! the same flow of all variants in a chart, since all see the same arrivals. Time is cut into
//! buckets, and of each the least and the most are drawn, so that no tooth of a sawtooth is lost.
//!
//! Invariant: memory is that of the flows drawn and the buckets, not of the samples.

use std::path::{Path, PathBuf};

use super::figures::{spans, within};
use super::{Variant, of_one_seed};
use crate::model::{CONNECTION_COLUMNS, CONNECTIONS, Result, Rows};
use crate::render::document::{Block, Figure, legend, note, section};
use crate::render::draw::axis::Axis;
use crate::render::draw::chart::{Chart, Line, Span};
use crate::render::draw::number::extent;
use crate::render::draw::unit::Unit;
use crate::render::markup::escape;
use crate::render::words::words;

/// Flows of one run that are drawn.
const FLOWS: usize = 4;
/// Flows that are drawn where several variants are.
const FLOWS_OF_SEVERAL: usize = 2;
/// Buckets of time; each has up to two points.
const BUCKETS: usize = 240;

/// A flow: its number, source and destination.
type Flow = (u64, u64, u64);
/// A quantity: its column, what it is called, its unit, and its meaning where that is not
/// elsewhere.
type Quantity = (String, String, Unit, String);

/// The least and the most of a bucket, each with its time.
type Ends = [(f64, f64); 2];

/// The findings of a first pass in one run.
struct Sampled {
    path: PathBuf,
    /// First and last sample of the flows, in microseconds.
    span: (f64, f64),
    flows: Vec<Flow>,
    quantities: Vec<Quantity>,
}

impl Sampled {
    /// Of a run's folder; `None` if it has no samples.
    fn read(run: &Path, most: usize) -> Result<Option<Sampled>> {
        let path = run.join(CONNECTIONS);
        if !path.exists() {
            return Ok(None);
        }
        let rows = Rows::open(&path)?;
        let (mut flows, mut span): (Vec<Flow>, _) =
            (Vec::new(), (f64::INFINITY, f64::NEG_INFINITY));
        rows.each(["time_us", "flow", "src", "dst"], |row| {
            let [Some(flow), Some(src), Some(dst)] = [1, 2, 3].map(|at| row.whole(at)) else {
                return Ok(());
            };
            if !flows.iter().any(|known| known.0 == flow) {
                if flows.len() == most {
                    return Ok(());
                }
                flows.push((flow, src, dst));
            }
            let time = row.float(0).unwrap_or(0.0);
            span = (span.0.min(time), span.1.max(time));
            Ok(())
        })?;
        let quantities = quantities(&rows);
        Ok((!flows.is_empty()).then_some(Sampled { path, span, flows, quantities }))
    }

    /// A second pass: of each flow the least and the most of a column in each bucket, in the order
    /// of time.
    fn tracks(&self, column: &str) -> Result<Vec<Vec<(f64, f64)>>> {
        let width = ((self.span.1 - self.span.0) / BUCKETS as f64).max(1e-6);
        let mut found: Vec<Vec<Option<Ends>>> = vec![vec![None; BUCKETS]; self.flows.len()];
        Rows::open(&self.path)?.each(["time_us", "flow", column], |row| {
            let (Some(time), Some(value)) = (row.float(0), row.float(2)) else { return Ok(()) };
            let flow = self.flows.iter().position(|flow| Some(flow.0) == row.whole(1));
            let Some(flow) = flow else { return Ok(()) };
            let at = (((time - self.span.0) / width) as usize).min(BUCKETS - 1);
            let [low, high] = found[flow][at].get_or_insert([(time, value); 2]);
            if value < low.1 {
                *low = (time, value);
            }
            if value > high.1 {
                *high = (time, value);
            }
            Ok(())
        })?;
        let in_order = |[a, b]: Ends| if a.0 <= b.0 { [a, b] } else { [b, a] };
        let points = |track: Vec<Option<Ends>>| track.into_iter().flatten().flat_map(in_order);
        Ok(found.into_iter().map(|track| points(track).collect()).collect())
    }
}

/// The quantities that are drawn of a file: the window, the round-trip time, and each column that a
/// control law has added.
fn quantities(rows: &Rows) -> Vec<Quantity> {
    let fixed = [("cwnd_bytes", "Congestion window"), ("srtt_us", "Smoothed round-trip time")];
    let fixed = fixed.map(|(column, caption)| {
        (column.to_string(), caption.to_string(), unit(column), String::new())
    });
    let is_fixed =
        |name: &str| CONNECTION_COLUMNS.columns.iter().any(|(column, ..)| *column == name);
    let own =
        rows.columns().into_iter().filter(|(name, _)| !is_fixed(name)).map(|(name, meaning)| {
            let unit = unit(&name);
            let words = match unit {
                Unit::Ratio => name.as_str(),
                _ => name.rsplit_once('_').map_or(name.as_str(), |(words, _)| words),
            };
            (name.clone(), escape(&words.replace('_', " ")), unit, escape(&meaning))
        });
    fixed.into_iter().chain(own).collect()
}

/// A column's unit is the end of its name.
fn unit(column: &str) -> Unit {
    match column.rsplit('_').next() {
        Some("us") => Unit::Time,
        Some("bytes") => Unit::Bytes,
        Some("gbps") => Unit::Rate,
        _ => Unit::Ratio,
    }
}

/// The section; nothing where no run has samples.
pub(crate) fn connections(variants: &[Variant]) -> Result<Option<Block>> {
    let several = variants.len() > 1;
    let most = if several { FLOWS_OF_SEVERAL } else { FLOWS };
    let mut runs = Vec::new();
    for variant in variants {
        runs.push(variant.runs.first().map_or(Ok(None), |run| Sampled::read(run, most))?);
    }
    let mut kinds: Vec<&Quantity> = Vec::new();
    for kind in runs.iter().flatten().flat_map(|run| &run.quantities) {
        if !kinds.iter().any(|known| known.0 == kind.0) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        return Ok(None);
    }
    let mut figures: Vec<Figure> = Vec::new();
    let failures = spans(variants.iter().flat_map(|variant| &variant.failures));
    let flows = runs.iter().flatten().map(|run| &run.flows).max_by_key(|flows| flows.len());
    for kind in &kinds {
        let tracks = tracks(&runs, kind)?;
        if several {
            for flow in flows.into_iter().flatten() {
                let of_flow = tracks.iter().filter(|track| track.flow.0 == flow.0);
                let lines = of_flow.map(|track| Line::of(track.variant, track.points.clone()));
                let caption = format!("{}, {}", kind.1, name(flow));
                figures.extend(figure(kind, &caption, "", lines.collect(), &failures));
            }
        } else {
            let names: Vec<String> = tracks.iter().map(|track| name(&track.flow)).collect();
            let below = legend(names.iter().map(String::as_str)).join(" ");
            let lines = tracks.into_iter().enumerate();
            let lines = lines.map(|(at, track)| Line::of(at, track.points)).collect();
            figures.extend(figure(kind, &kind.1, &below, lines, &failures));
        }
    }
    let meanings = kinds.iter().filter(|kind| !kind.3.is_empty());
    let meanings: Vec<String> =
        meanings.map(|kind| format!("<b>{}</b>: {}.", kind.1, kind.3)).collect();
    let meanings = meanings.join(" ");
    let (most, buckets) = (most.to_string(), BUCKETS.to_string());
    let text = words("connections", &[&most, &buckets, &meanings, &of_one_seed(variants)]);
    let blocks = vec![Block::Figures(figures), note(text)];
    Ok(Some(section("connections", "Connections over time", blocks)))
}

/// A quantity of a flow of a variant.
struct Track {
    variant: usize,
    flow: Flow,
    points: Vec<(f64, f64)>,
}

/// A quantity of all flows of all variants.
fn tracks(runs: &[Option<Sampled>], kind: &Quantity) -> Result<Vec<Track>> {
    let mut all = Vec::new();
    for (variant, run) in runs.iter().enumerate() {
        let has = |run: &&Sampled| run.quantities.iter().any(|own| own.0 == kind.0);
        let Some(run) = run.as_ref().filter(has) else { continue };
        let tracks = run.flows.iter().zip(run.tracks(&kind.0)?);
        all.extend(tracks.map(|(flow, points)| Track { variant, flow: *flow, points }));
    }
    Ok(all)
}

fn name((flow, src, dst): &Flow) -> String {
    format!("flow {flow}, host{src} to host{dst}")
}

/// One chart; `None` if no line has a point.
fn figure(
    kind: &Quantity,
    caption: &str,
    below: &str,
    lines: Vec<Line>,
    failures: &[Span],
) -> Option<Figure> {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let (from, to) = extent(points().map(|point| point.0))?;
    let (_, most) = extent(points().map(|point| point.1))?;
    let x = Axis::linear(from, to, Unit::Time, "time since the start");
    let y = Axis::linear(0.0, most.max(1e-9) * 1.04, kind.2, &kind.1.to_lowercase());
    let chart = Chart::new(x, y, lines, format!("{caption} over time"));
    Some(Figure::of(caption, below, Chart { spans: within(failures.to_vec(), to), ..chart }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ConnectionRecord;
    use crate::write::connections::Connections;
    use millpond_core::Time;
    use millpond_core::congestion::Quantity;

    /// Two flows of 5,000 samples each: a tooth of one sample, and a law's column.
    #[test]
    fn every_tooth_is_drawn_and_every_law_has_its_column() {
        let dir = crate::test_dir("connections");
        assert!(Sampled::read(&dir, FLOWS).unwrap().is_none());
        let laws = [
            Quantity { name: "alpha", meaning: "a & b" },
            Quantity { name: "target_delay_us", meaning: "" },
        ];
        let classes = ["a".to_string()];
        let mut table =
            Connections::create(&dir.join(CONNECTIONS), &classes, &laws, ("schema", "1".into()))
                .unwrap();
        for at in 1..=5_000u64 {
            for flow in [3, 8] {
                let record = ConnectionRecord {
                    at: Time::from_us(at),
                    flow,
                    class: 0,
                    src: 1,
                    dst: 2,
                    state: "open",
                    cwnd: if at == 1234 && flow == 8 { 1 } else { 1_000 + at },
                    ssthresh: (at > 9).then_some(7),
                    in_flight: 5,
                    acked: at,
                    srtt: Some(Time::from_us(30)),
                    rto: Time::from_ms(1),
                    retransmitted: 0,
                    timeouts: 0,
                    law: if flow == 8 { vec![("alpha", 0.5)] } else { Vec::new() },
                };
                table.add(&record).unwrap();
            }
        }
        table.close().unwrap();
        let sampled = Sampled::read(&dir, FLOWS).unwrap().unwrap();
        assert_eq!(
            (sampled.flows.as_slice(), sampled.span),
            ([(3, 1, 2), (8, 1, 2)].as_slice(), (1.0, 5_000.0))
        );
        let names: Vec<(&str, Unit)> =
            sampled.quantities.iter().map(|q| (q.1.as_str(), q.2)).collect();
        let fixed = [("Congestion window", Unit::Bytes), ("Smoothed round-trip time", Unit::Time)];
        assert_eq!(
            names,
            [fixed[0], fixed[1], ("alpha", Unit::Ratio), ("target delay", Unit::Time)]
        );
        assert_eq!(sampled.quantities[2].3, "a &amp; b");
        let tracks = sampled.tracks("cwnd_bytes").unwrap();
        assert_eq!((tracks[0].len(), tracks[1].len()), (2 * BUCKETS, 2 * BUCKETS));
        assert_eq!(
            tracks[1].iter().filter(|point| point.1 < 1_000.0).collect::<Vec<_>>(),
            [&(1234.0, 1.0)]
        );
        assert!(
            tracks.iter().all(|track| track.windows(2).all(|pair| pair[0].0 <= pair[1].0)),
            "in the order of time"
        );
        let alpha = sampled.tracks("alpha").unwrap();
        assert!(alpha[0].is_empty() && alpha[1].iter().all(|point| point.1 == 0.5));
        assert_eq!(Sampled::read(&dir, 1).unwrap().unwrap().flows, [(3, 1, 2)]);
    }
}
