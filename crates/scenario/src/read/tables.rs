//! Tables of which there can be several: `[[failure]]`, `[[application]]`, `[[program]]` and
//! `[[limit]]`.

use super::{Reader, Section};
use crate::error::Problem;
use crate::settings::application::ApplicationSettings;
use crate::settings::failure::FailureParams;
use crate::settings::limit::{LimitCommon, LimitKind, LimitSettings};
use crate::settings::program::ProgramParams;
use crate::settings::traffic::TrafficCommon;
use crate::settings::traffic::TrafficParams;
use crate::settings::traffic::TrafficSettings;
use crate::transport::TransportKind;
use crate::tree::Table;
use crate::tree::{Datum, Node};
use millpond_core::registry::Choice;

impl Reader<'_> {
    /// Reads the tables `[[key]]` in their order; what is no table is reported.
    pub(crate) fn each<'a, T>(
        &mut self,
        top: &mut Section<'a>,
        key: &str,
        mut read: impl FnMut(&mut Self, usize, &'a Node, &'a Table) -> Option<T>,
    ) -> Vec<T> {
        let Some(entry) = top.take(key) else { return Vec::new() };
        self.report.found(key, entry.key_span);
        let Datum::Array(items) = &entry.node.datum else {
            let message = format!("expected [[{key}]] tables, found {}", entry.node.describe());
            self.report.value(entry.node.span, key, message);
            return Vec::new();
        };
        let mut list = Vec::new();
        for (i, node) in items.iter().enumerate() {
            match node.as_table() {
                Some(table) => list.extend(read(self, i, node, table)),
                None => {
                    let message = format!("expected a table, found {}", node.describe());
                    self.report.value(node.span, key, message);
                }
            }
        }
        list
    }

    /// One of several tables; its place is that of its first key.
    pub(super) fn item<'a>(&mut self, path: String, node: &Node, table: &'a Table) -> Section<'a> {
        self.report.found(path.clone(), table.entries.first().map_or(node.span, |e| e.key_span));
        Section::new(path, Some(table))
    }

    pub(super) fn failures(&mut self, top: &mut Section<'_>) -> Vec<FailureParams> {
        self.each(top, "failure", |reader, i, node, table| {
            let mut section = reader.item(format!("failure.{i}"), node, table);
            let mut failure = FailureParams::default();
            reader.params(&mut section, &mut failure, &[]);
            reader.finish(section, None);
            let place = if table.get("switch").is_some() { "switch" } else { "link" };
            reader.require("failure", [place, "at"], node, table);
            Some(failure)
        })
    }

    /// Reports the keys of a `[[list]]` table that are missing.
    fn require(&mut self, list: &str, keys: [&str; 2], node: &Node, table: &Table) {
        for key in keys.into_iter().filter(|key| table.get(key).is_none()) {
            let problem = Problem::Missing { table: format!("[[{list}]]"), key: key.into() };
            self.report.add(node.span, problem);
        }
    }

    pub(super) fn applications(&mut self, top: &mut Section<'_>) -> Vec<ApplicationSettings> {
        self.each(top, "application", |reader, _, node, table| {
            let name = table.text("name").unwrap_or("application");
            let mut section = reader.item(format!("application.{name}"), node, table);
            let mut application = ApplicationSettings::default();
            reader.params(&mut section, &mut application.common, &[]);
            reader.params(&mut section, &mut application.costs, &[]);
            reader.finish(section, None);
            Some(application)
        })
    }

    pub(super) fn programs(&mut self, top: &mut Section<'_>) -> Vec<ProgramParams> {
        self.each(top, "program", |reader, _, node, table| {
            let name = table.text("name").unwrap_or("program");
            let mut section = reader.item(format!("program.{name}"), node, table);
            let mut program = ProgramParams::default();
            reader.params(&mut section, &mut program, &[]);
            reader.finish(section, None);
            reader.require("program", ["host", "command"], node, table);
            Some(program)
        })
    }

    pub(super) fn limits(&mut self, top: &mut Section<'_>) -> Vec<LimitSettings> {
        self.each(top, "limit", |reader, _, node, table| {
            let name = table.text("name").or(table.text("kind")).unwrap_or("nrm");
            let mut section = reader.item(format!("limit.{name}"), node, table);
            let mut common = LimitCommon::default();
            reader.params(&mut section, &mut common, &[]);
            let mut kind = reader.kind::<LimitKind>(&mut section)?;
            reader.keys(&mut section, &mut kind, &[]);
            reader.finish(section, Some((LimitKind::place(), kind.kind())));
            Some(LimitSettings { common, kind })
        })
    }

    pub(super) fn traffic(&mut self, top: &mut Section<'_>) -> Vec<TrafficSettings> {
        self.each(top, "traffic", |reader, _, node, table| reader.one_traffic(node, table))
    }

    fn one_traffic(&mut self, node: &Node, table: &Table) -> Option<TrafficSettings> {
        let name = table.text("name").or(table.text("kind")).unwrap_or("poisson");
        let mut section = self.item(format!("traffic.{name}"), node, table);
        let mut common = TrafficCommon::default();
        self.params(&mut section, &mut common, &[]);
        let path = section.path_of("transport");
        let own = table.get("transport").is_some();
        let transport = self.choice::<TransportKind>(&mut section, "transport", &path);
        let transport = own.then_some(transport);
        if table.get("kind").is_none() {
            let problem = Problem::Missing { table: "[[traffic]]".into(), key: "kind".into() };
            self.report.add(node.span, problem);
        }
        let mut kind = self.kind::<TrafficParams>(&mut section)?;
        match &mut kind {
            TrafficParams::Poisson(p) => {
                let own = section.take("sizes").filter(|e| e.node.as_table().is_some());
                if let Some(e) = own {
                    let path = section.path_of("sizes");
                    self.report.found(path.clone(), e.node.span);
                    if let Some(sizes) = self.sizes(&path, e) {
                        p.sizes = sizes;
                    }
                }
                self.keys(&mut section, &mut kind, if own.is_some() { &["sizes"] } else { &[] });
            }
            TrafficParams::Flows(p) => {
                let rows = section.take("rows").filter(|e| matches!(e.node.datum, Datum::Array(_)));
                if let Some(e) = rows {
                    let path = section.path_of("rows");
                    self.report.found(path.clone(), e.node.span);
                    p.rows = self.rows(&path, e);
                }
                self.keys(&mut section, &mut kind, if rows.is_some() { &["rows"] } else { &[] });
            }
            _ => self.keys(&mut section, &mut kind, &[]),
        }
        self.finish(section, Some((TrafficParams::place(), kind.kind())));
        Some(TrafficSettings { common, kind, transport })
    }
}
