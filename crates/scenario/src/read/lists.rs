//! Values that are lists: the points of a distribution and the rows of a list of flows.

use super::{Reader, Section};
use crate::cdf::{Cdf, Shape, SizeSpec};
use crate::traffic::flows::{FlowRow, FlowRows, FlowTable, parse_us};
use crate::tree::{Datum, Entry, Node};
use millpond_core::Time;
use std::sync::Arc;

impl Reader<'_> {
    /// `{ file = "x.txt" }`, with a `digest`, or `{ points = [[bytes, probability], …] }`; both
    /// with `interpolation`.
    pub(super) fn sizes(&mut self, path: &str, entry: &Entry) -> Option<SizeSpec> {
        let mut section = Section::new(path, entry.node.as_table());
        let (file, points) = (section.take("file"), section.take("points"));
        let digest = section.take("digest").map(|e| &e.node);
        let shape = section.take("interpolation").map(|e| match &e.node.datum {
            Datum::Text(word) => Shape::from_name(word),
            _ => None,
        });
        let table = section.table;
        self.finish(section, None);
        if shape == Some(None) {
            let at = table.and_then(|t| t.get("interpolation")).map_or(entry.node.span, |e| e.node.span);
            self.report.value(at, path, "interpolation is \"linear\" or \"steps\"");
        }
        let shape = shape.flatten().unwrap_or(Shape::Linear);
        let digest = match digest {
            Some(Node { datum: Datum::Text(digest), .. }) if file.is_some() => Some(digest.clone()),
            Some(node) => {
                self.report.value(node.span, path, "digest is a text, and of a file");
                None
            }
            None => None,
        };
        match (file.map(|e| &e.node), points.map(|e| &e.node)) {
            (Some(Node { datum: Datum::Text(file), .. }), None) => {
                Some(SizeSpec::File { path: file.clone(), shape, digest, points: None })
            }
            (None, Some(Node { datum: Datum::Array(items), span })) => {
                let points: Option<Vec<(f64, f64)>> = items.iter().map(pair).collect();
                let cdf = points
                    .ok_or("expected pairs [bytes, probability]".to_string())
                    .and_then(|points| Cdf::new(points, shape).map_err(|e| format!("point {}: {e}", e.line)));
                cdf.map_err(|message| self.report.value(*span, path, message))
                    .ok()
                    .map(|c| SizeSpec::Points(Arc::new(c)))
            }
            _ => {
                self.report.value(
                    entry.node.span,
                    path,
                    "expected one of file = \"…\" and points = [[bytes, probability], …]",
                );
                None
            }
        }
    }

    pub(super) fn rows(&mut self, path: &str, entry: &Entry) -> FlowRows {
        let Datum::Array(items) = &entry.node.datum else { return FlowRows(None) };
        let mut rows = Vec::with_capacity(items.len());
        for item in items {
            match row(item) {
                Some(row) => rows.push(row),
                None => {
                    let message = "expected [start, src, dst, bytes] with an optional class at the end";
                    self.report.value(item.span, path, message);
                }
            }
        }
        match FlowTable::new(rows) {
            Ok(table) => FlowRows(Some(Arc::new(table))),
            Err(message) => {
                self.report.value(entry.node.span, path, message);
                FlowRows(None)
            }
        }
    }
}

fn number(node: &Node) -> Option<f64> {
    match node.datum {
        Datum::Int(i) => Some(i as f64),
        Datum::Float(x) => Some(x),
        _ => None,
    }
}

fn pair(node: &Node) -> Option<(f64, f64)> {
    match &node.datum {
        Datum::Array(items) if items.len() == 2 => Some((number(&items[0])?, number(&items[1])?)),
        _ => None,
    }
}

fn row(node: &Node) -> Option<(FlowRow, Option<String>)> {
    let Datum::Array(items) = &node.datum else { return None };
    if !(4..=5).contains(&items.len()) {
        return None;
    }
    let whole = |node: &Node| match node.datum {
        Datum::Int(i) => u64::try_from(i).ok(),
        _ => None,
    };
    let start = match &items[0].datum {
        Datum::Text(text) => text.parse::<Time>().ok()?,
        Datum::Int(i) => parse_us(&i.to_string())?,
        Datum::Float(x) => parse_us(&x.to_string())?,
        _ => return None,
    };
    let class = match items.get(4).map(|n| &n.datum) {
        None => None,
        Some(Datum::Text(class)) if !class.is_empty() => Some(class.clone()),
        Some(_) => return None,
    };
    let host = |node| u32::try_from(whole(node)?).ok();
    let row = FlowRow { start, src: host(&items[1])?, dst: host(&items[2])?, bytes: whole(&items[3])?, class: None };
    Some((row, class))
}
