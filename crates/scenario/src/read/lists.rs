//! Values that are lists: the points of a distribution and the rows of a list of flows.

use super::{Reader, Section};
use crate::cdf::{Cdf, Shape, SizeSpec};
use crate::settings::flows::{FlowRow, FlowRows, FlowTable, ListRow, check_id, parse_us};
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
            let at =
                table.and_then(|t| t.get("interpolation")).map_or(entry.node.span, |e| e.node.span);
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
                let cdf = points.ok_or("expected pairs [bytes, probability]".to_string()).and_then(
                    |points| Cdf::new(points, shape).map_err(|e| format!("point {}: {e}", e.line)),
                );
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
        for (at, item) in items.iter().enumerate() {
            match row(item) {
                Some(row) => rows.push(ListRow { line: at, ..row }),
                None => {
                    let message = "expected [start, src, dst, bytes] with an optional class at \
                                   the end, or { start = …, src = …, dst = …, bytes = … } with \
                                   class, id and after = [ids] if need be";
                    self.report.value(item.span, path, message);
                }
            }
        }
        match FlowTable::new(rows) {
            Ok(table) => FlowRows(Some(Arc::new(table))),
            Err(error) => {
                let at = items.get(error.line).map_or(entry.node.span, |item| item.span);
                self.report.value(at, path, error.message);
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

fn row(node: &Node) -> Option<ListRow> {
    match &node.datum {
        Datum::Array(items) if (4..=5).contains(&items.len()) => {
            let row = flow(&items[0], &items[1], &items[2], &items[3])?;
            let class = items.get(4).map(text).map_or(Some(None), |class| class.map(Some))?;
            Some(ListRow { row, class, id: None, after: Vec::new(), line: 0 })
        }
        Datum::Table(table) => {
            const KEYS: [&str; 8] =
                ["start", "src", "dst", "bytes", "class", "id", "after", "port"];
            if table.entries.iter().any(|entry| !KEYS.contains(&entry.key.as_str())) {
                return None;
            }
            let node = |key: &str| table.get(key).map(|entry| &entry.node);
            let optional = |key: &str| node(key).map_or(Some(None), |node| text(node).map(Some));
            let mut row = flow(node("start")?, node("src")?, node("dst")?, node("bytes")?)?;
            if let Some(port) = node("port") {
                row.port = Some(u16::try_from(whole(port)?).ok()?);
            }
            let after = match node("after").map(|node| &node.datum) {
                None => Vec::new(),
                Some(Datum::Array(ids)) => ids.iter().map(text).collect::<Option<_>>()?,
                Some(_) => return None,
            };
            let id = optional("id")?;
            if id.as_ref().is_some_and(|id| check_id(id).is_err()) {
                return None;
            }
            Some(ListRow { row, class: optional("class")?, id, after, line: 0 })
        }
        _ => None,
    }
}

fn text(node: &Node) -> Option<String> {
    match &node.datum {
        Datum::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

fn whole(node: &Node) -> Option<u64> {
    match node.datum {
        Datum::Int(i) => u64::try_from(i).ok(),
        _ => None,
    }
}

fn flow(start: &Node, src: &Node, dst: &Node, bytes: &Node) -> Option<FlowRow> {
    let start = match &start.datum {
        Datum::Text(text) => text.parse::<Time>().ok()?,
        Datum::Int(i) => parse_us(&i.to_string())?,
        Datum::Float(x) => parse_us(&x.to_string())?,
        _ => return None,
    };
    let host = |node| u32::try_from(whole(node)?).ok();
    let (src, dst, bytes) = (host(src)?, host(dst)?, whole(bytes)?);
    Some(FlowRow { start, src, dst, bytes, class: None, port: None })
}
