//! Tables of which there can be several: `[[failure]]`, `[[application]]` and `[[limit]]`.

use super::{Reader, Section};
use crate::error::Problem;
use crate::settings::application::ApplicationSettings;
use crate::settings::failure::FailureParams;
use crate::settings::limit::{LimitCommon, LimitKind, LimitSettings};
use crate::tree::{Datum, Node};
use millpond_core::registry::Choice;

impl Reader<'_> {
    pub(super) fn failures(&mut self, top: &mut Section<'_>) -> Vec<FailureParams> {
        let Some(entry) = top.take("failure") else { return Vec::new() };
        self.places.insert("failure".into(), entry.key_span);
        let Datum::Array(items) = &entry.node.datum else {
            let message = format!("expected [[failure]] tables, found {}", entry.node.describe());
            self.report.value(entry.node.span, "failure", message);
            return Vec::new();
        };
        let mut list = Vec::new();
        for (i, node) in items.iter().enumerate() {
            let Some(table) = node.as_table() else {
                self.report.value(
                    node.span,
                    "failure",
                    format!("expected a table, found {}", node.describe()),
                );
                continue;
            };
            let mut section = Section::new(format!("failure.{i}"), Some(table));
            self.places.insert(
                section.path.clone(),
                table.entries.first().map_or(node.span, |e| e.key_span),
            );
            let mut failure = FailureParams::default();
            self.params(&mut section, &mut failure, &[]);
            self.finish(section, None);
            for key in ["link", "at"].into_iter().filter(|key| table.get(key).is_none()) {
                let problem = Problem::Missing { table: "[[failure]]".into(), key: key.into() };
                self.report.add(node.span, problem);
            }
            list.push(failure);
        }
        list
    }

    pub(super) fn applications(&mut self, top: &mut Section<'_>) -> Vec<ApplicationSettings> {
        let Some(entry) = top.take("application") else { return Vec::new() };
        self.places.insert("application".into(), entry.key_span);
        let Datum::Array(items) = &entry.node.datum else {
            let message =
                format!("expected [[application]] tables, found {}", entry.node.describe());
            self.report.value(entry.node.span, "application", message);
            return Vec::new();
        };
        let mut list = Vec::new();
        for node in items {
            let Some(table) = node.as_table() else {
                let message = format!("expected a table, found {}", node.describe());
                self.report.value(node.span, "application", message);
                continue;
            };
            let name = table.text("name").unwrap_or("application");
            let mut section = Section::new(format!("application.{name}"), Some(table));
            self.places.insert(
                section.path.clone(),
                table.entries.first().map_or(node.span, |e| e.key_span),
            );
            let mut application = ApplicationSettings::default();
            self.params(&mut section, &mut application.common, &[]);
            self.params(&mut section, &mut application.costs, &[]);
            self.finish(section, None);
            list.push(application);
        }
        list
    }

    pub(super) fn limits(&mut self, top: &mut Section<'_>) -> Vec<LimitSettings> {
        let Some(entry) = top.take("limit") else { return Vec::new() };
        self.places.insert("limit".into(), entry.key_span);
        let Datum::Array(items) = &entry.node.datum else {
            let message = format!("expected [[limit]] tables, found {}", entry.node.describe());
            self.report.value(entry.node.span, "limit", message);
            return Vec::new();
        };
        items.iter().filter_map(|node| self.one_limit(node)).collect()
    }

    fn one_limit(&mut self, node: &Node) -> Option<LimitSettings> {
        let Some(table) = node.as_table() else {
            self.report.value(
                node.span,
                "limit",
                format!("expected a table, found {}", node.describe()),
            );
            return None;
        };
        let name = table.text("name").or(table.text("kind")).unwrap_or("nrm");
        let mut section = Section::new(format!("limit.{name}"), Some(table));
        self.places
            .insert(section.path.clone(), table.entries.first().map_or(node.span, |e| e.key_span));
        let mut common = LimitCommon::default();
        self.params(&mut section, &mut common, &[]);
        let mut kind = self.kind::<LimitKind>(&mut section)?;
        self.keys(&mut section, &mut kind, &[]);
        self.finish(section, Some((LimitKind::place(), kind.kind())));
        Some(LimitSettings { common, kind })
    }
}
