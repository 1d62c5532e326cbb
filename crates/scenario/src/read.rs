//! From a TOML tree to [`Settings`]: walks the tree against the declared keys and collects
//! everything that is wrong.
//!
//! Invariant: a key that no declaration reads is reported, with the nearest name there is; nothing
//! is silently ignored.

pub mod document;
mod lists;
mod tables;
mod values;

use crate::choices::{Choices, VisitMut, key_of};
use crate::error::{Problem, Report, nearest, suggestion};
use crate::keys::{MAY_BE_OFF, OFF_WORDS, RIVALS, SHORT, grouped, has_short};
use crate::names::{instead_of_key, instead_of_kind};
use crate::settings::graph::{EdgeList, Graph};
use crate::settings::topology::TopologyParams;
use crate::settings::{NicChoice, NicSettings, ReceiveCpuParams, Settings};
use crate::source::Span;
use crate::tree::{Datum, Entry, Node, Table};
use millpond_core::params::{Key, Params};
use millpond_core::registry::{Choice, Place};
use millpond_core::switch::buffer::BufferParams;
use std::sync::Arc;
use values::{counted, value_of};

/// One table while it is read: which of its keys have been asked for.
#[derive(Clone)]
pub(crate) struct Section<'a> {
    /// "switch.marking"; empty for the scenario itself.
    path: String,
    table: Option<&'a Table>,
    known: Vec<String>,
}

impl<'a> Section<'a> {
    pub(crate) fn new(path: impl Into<String>, table: Option<&'a Table>) -> Section<'a> {
        Section { path: path.into(), table, known: Vec::new() }
    }
    fn take(&mut self, key: &str) -> Option<&'a Entry> {
        self.known.push(key.to_string());
        self.table?.get(key)
    }
    /// Whether a key is there and no table.
    fn is_value(&self, key: &str) -> bool {
        self.table
            .and_then(|table| table.get(key))
            .is_some_and(|entry| entry.node.as_table().is_none())
    }
    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }
}

pub(crate) struct Reader<'r> {
    pub report: &'r mut Report,
}

/// Reads a whole tree. `at` is where the text begins.
pub(crate) fn read(root: &Table, at: Span, report: &mut Report) -> Settings {
    report.places = Arc::default();
    report.found("", at);
    let mut r = Reader { report };
    let mut s = Settings::default();
    let mut top = Section::new("", Some(root));
    r.params(&mut top, &mut s.run, &[]);
    s.topology = r.topology(&mut top);
    r.host(&mut top, &mut s);
    r.whole(&mut top, "switch", |r, table| r.choices(table, &mut s.switch));
    r.transport(&mut top, &mut s);
    r.whole(&mut top, "rdma", |r, table| {
        r.params(table, &mut s.rdma, &[]);
        r.choices(table, &mut s.rdma_choices);
    });
    r.whole(&mut top, "edge", |r, table| r.choices(table, &mut s.edge));
    r.whole(&mut top, "engine", |r, table| r.params(table, &mut s.engine, &[]));
    r.whole(&mut top, "capture", |r, table| r.params(table, &mut s.capture, &[]));
    s.failures = r.failures(&mut top);
    s.applications = r.applications(&mut top);
    s.programs = r.programs(&mut top);
    s.limits = r.limits(&mut top);
    s.traffic = r.traffic(&mut top);
    top.take("variant");
    r.finish(top, None);
    s.places = r.report.places.clone();
    s
}

impl<'r> Reader<'r> {
    /// The table under `key`, or an empty one.
    fn table<'a>(&mut self, parent: &mut Section<'a>, key: &str) -> Section<'a> {
        let path = parent.path_of(key);
        let table = parent.take(key).and_then(|entry| {
            self.report.found(path.clone(), entry.key_span);
            let table = entry.node.as_table();
            if table.is_none() {
                let message = format!("expected a table, found {}", entry.node.describe());
                self.report.value(entry.node.span, &path, message);
            }
            table
        });
        Section::new(path, table)
    }

    /// Reads the table under `key` and reports the keys that `read` did not ask for.
    fn whole(
        &mut self,
        parent: &mut Section<'_>,
        key: &str,
        read: impl FnOnce(&mut Self, &mut Section<'_>),
    ) {
        let mut table = self.table(parent, key);
        read(self, &mut table);
        self.finish(table, None);
    }

    /// Reads all keys of `params` but those in `skip`, which the caller reads itself.
    fn params(&mut self, section: &mut Section<'_>, params: &mut dyn Params, skip: &[&str]) {
        let mut groups: Vec<Section<'_>> = Vec::new();
        for (i, key) in params.keys().iter().enumerate() {
            let name = key.name();
            if skip.contains(&name.as_str()) {
                section.known.push(name);
                continue;
            }
            let (group, leaf) = grouped(&name);
            let entry = match group {
                None => section.take(leaf),
                Some(group) if has_short(params.keys(), group) && section.is_value(group) => {
                    if leaf == SHORT { section.take(group) } else { None }
                }
                Some(group) => {
                    let path = section.path_of(group);
                    let at = groups.iter().position(|g| g.path == path).unwrap_or_else(|| {
                        let sub = self.table(section, group);
                        groups.push(sub);
                        groups.len() - 1
                    });
                    groups[at].take(leaf)
                }
            };
            let Some(entry) = entry else { continue };
            let path = match group {
                None => section.path_of(leaf),
                Some(group) => format!("{}.{leaf}", section.path_of(group)),
            };
            self.report.found(path.clone(), entry.node.span);
            let set = value_of(key, &entry.node).and_then(|v| params.set(i, &v).map_err(|e| e.0));
            if let Err(message) = set {
                self.report.value(entry.node.span, &path, message);
            }
        }
        for group in groups {
            self.finish(group, None);
        }
    }

    /// Reports the keys that nobody asked for.
    fn finish(&mut self, section: Section<'_>, place: Option<(&Place, &str)>) {
        let known: Vec<&str> = section.known.iter().map(String::as_str).collect();
        for entry in section.table.into_iter().flat_map(|t| &t.entries) {
            if known.contains(&entry.key.as_str()) {
                continue;
            }
            let others = place.map(|(place, _)| kinds_with(place, &entry.key)).unwrap_or_default();
            if let Some((_, kind)) = place
                && !others.is_empty()
            {
                let problem = Problem::Unused {
                    key: entry.key.clone(),
                    place: section.path.clone(),
                    kind: kind.to_string(),
                };
                self.report.help(
                    entry.key_span,
                    problem,
                    format!("it belongs to kind {}", others.join(", ")),
                );
                continue;
            }
            let table = if section.path.is_empty() {
                "the scenario".into()
            } else {
                format!("[{}]", section.path)
            };
            let problem = Problem::UnknownKey { key: entry.key.clone(), table };
            let near = nearest(&entry.key, known.iter().copied()).is_some();
            let advice = instead_of_key(&entry.key).filter(|_| !near).map(String::from);
            self.report.push(
                entry.key_span,
                problem,
                advice.or_else(|| suggestion(&entry.key, &known)),
            );
        }
    }

    /// The kind under `key`, with its keys; the default where there is no such table. Messages name
    /// it `path`.
    fn choice<C: Choice>(&mut self, parent: &mut Section<'_>, key: &str, path: &str) -> C {
        let Some(entry) = parent.take(key) else { return C::default() };
        self.report.found(path.to_string(), entry.key_span);
        let Some(table) = entry.node.as_table() else {
            let message = format!("expected a table, found {}", entry.node.describe());
            let problem = Problem::Value { key: path.into(), message };
            let kind = match &entry.node.datum {
                Datum::Text(kind) => kind,
                _ => C::place().default,
            };
            self.report.help(
                entry.node.span,
                problem,
                format!("write {key} = {{ kind = {kind:?} }}"),
            );
            return C::default();
        };
        let mut section = Section::new(path, Some(table));
        let Some(mut choice) = self.kind::<C>(&mut section) else { return C::default() };
        self.keys(&mut section, &mut choice, &[]);
        self.finish(section, Some((C::place(), choice.kind())));
        choice
    }

    /// The choices at a table's places.
    fn choices<T: Choices>(&mut self, section: &mut Section<'_>, choices: &mut T) {
        struct Walk<'w, 'r, 'a> {
            reader: &'w mut Reader<'r>,
            section: &'w mut Section<'a>,
        }
        impl VisitMut for Walk<'_, '_, '_> {
            fn choice<C: Choice>(&mut self, choice: &mut C) {
                let (path, key) = (C::place().path, key_of(C::place().path));
                let off = C::of_kind("none").filter(|_| MAY_BE_OFF.contains(&path));
                *choice = match off.filter(|_| self.reader.is_off(self.section, key)) {
                    Some(none) => none,
                    None => self.reader.choice(self.section, key, path),
                };
            }
        }
        choices.each_mut(&mut Walk { reader: self, section });
    }

    /// The kind that a table names, with its defaults; `None` if there is no such kind, which is
    /// reported.
    fn kind<C: Choice>(&mut self, section: &mut Section<'_>) -> Option<C> {
        let Some(entry) = section.take("kind") else { return Some(C::default()) };
        let path = section.path_of("kind");
        self.report.found(path.clone(), entry.node.span);
        let Datum::Text(kind) = &entry.node.datum else {
            self.report.value(
                entry.node.span,
                &path,
                format!("expected a text, found {}", entry.node.describe()),
            );
            return None;
        };
        self.of_kind(kind, &section.path, entry.node.span)
    }

    /// A kind of `path` with its defaults; `None` if there is none of this name, which is reported.
    fn of_kind<C: Choice>(&mut self, kind: &str, path: &str, span: Span) -> Option<C> {
        let choice = C::of_kind(kind);
        if choice.is_none() {
            let place = C::place();
            let advice = instead_of_kind(place.path, kind).map(String::from);
            let kinds: Vec<&str> = place.mechanisms.iter().map(|m| m.kind).collect();
            let problem =
                Problem::Unknown { what: format!("kind of {path}"), name: kind.to_string() };
            self.report.push(span, problem, advice.or_else(|| suggestion(kind, &kinds)));
        }
        choice
    }

    fn keys<C: Choice>(&mut self, section: &mut Section<'_>, choice: &mut C, skip: &[&str]) {
        let mut skip = skip.to_vec();
        for (place, kind, key, other) in RIVALS {
            if *place == C::place().path && *kind == choice.kind() {
                skip.extend(self.rival(section, key, other));
            }
        }
        self.params(section, choice.params_mut(), &skip);
        // Packets in the place of bytes: a count of packets alone is meant to be the only limit.
        let has = |key: &str| section.table.is_some_and(|t| t.get(key).is_some());
        if C::place().path == "switch.buffer"
            && choice.kind() == "per-port"
            && has("packets")
            && !has("size")
        {
            let index = choice.params().keys().iter().position(|k| k.field == "size");
            let packets = choice.params().keys().iter().position(|k| k.field == "packets");
            if let (Some(size), Some(packets)) = (index, packets)
                && let Some(off) = counted(&choice.params().get(packets))
                && let Err(e) = choice.params_mut().set(size, &off)
            {
                self.report.value(self.report.at(&section.path), "size", e.0);
            }
        }
    }

    /// Of two keys of which `other` makes `key` ineffective: the one to leave out, where both are
    /// written.
    fn rival<'k>(
        &mut self,
        section: &Section<'_>,
        key: &'k str,
        other: &'k str,
    ) -> Option<&'k str> {
        let table = section.table?;
        let (a, b) = (table.get(key)?, table.get(other)?);
        if matches!(&b.node.datum, Datum::Text(t) if OFF_WORDS.contains(&t.as_str())) {
            return None;
        }
        if matches!(&b.node.datum, Datum::Array(items) if items.is_empty()) {
            return None;
        }
        match a.layer.cmp(&b.layer) {
            std::cmp::Ordering::Less => Some(key),
            std::cmp::Ordering::Greater => Some(other),
            std::cmp::Ordering::Equal => {
                let message =
                    format!("`{key}` has no effect: {other} is given, and takes its place");
                self.report.add(a.key_span, Problem::Impossible(message));
                Some(key)
            }
        }
    }

    /// As any choice, but a graph is a table by itself.
    fn topology(&mut self, top: &mut Section<'_>) -> TopologyParams {
        let table = top.table.and_then(|t| t.get("topology")).and_then(|e| e.node.as_table());
        let file = table.filter(|table| table.text("kind") == Some("file"));
        let graph = file.and_then(|t| t.get("graph")).filter(|e| e.node.as_table().is_some());
        let Some(graph) = graph else { return self.choice(top, "topology", "topology") };
        let mut section = self.table(top, "topology");
        let Some(mut choice) = self.kind::<TopologyParams>(&mut section) else {
            return TopologyParams::default();
        };
        self.report.found("topology.graph", graph.node.span);
        self.keys(&mut section, &mut choice, &["graph"]);
        self.finish(section, Some((TopologyParams::place(), choice.kind())));
        match (&mut choice, EdgeList::from_json(&graph.node.to_json())) {
            (TopologyParams::File(p), Ok(list)) => p.graph = Graph(Some(Arc::new(list))),
            (_, Err(message)) => self.report.value(graph.node.span, "topology.graph", message),
            _ => {}
        }
        choice
    }

    fn host(&mut self, top: &mut Section<'_>, s: &mut Settings) {
        let mut host = self.table(top, "host");
        self.params(&mut host, &mut s.host, &[]);
        self.choices(&mut host, &mut s.host_choices);
        s.receive_cpu = self.receive_cpu(&mut host);
        let mut nic = self.table(&mut host, "nic");
        let mut settings = NicSettings::default();
        self.params(&mut nic, &mut settings.params, &[]);
        settings.buffer = self.nic_choice(&mut nic, "buffer", "unlimited");
        settings.marking = self.nic_choice(&mut nic, "marking", "none");
        self.choices(&mut nic, &mut settings.choices);
        if let NicChoice::Own(BufferParams::Shared(_) | BufferParams::Pools(_)) = settings.buffer {
            let message = "a NIC has one port and nobody to share with; use kind \"per-port\"";
            let at = self.report.at("host.nic.buffer.kind");
            self.report.value(at, "host.nic.buffer", message);
        }
        s.nic = settings;
        self.finish(nic, None);
        self.finish(host, None);
    }

    /// Whether "off" stands in the place of a table.
    fn is_off(&mut self, section: &mut Section<'_>, key: &str) -> bool {
        let entry = section.table.and_then(|t| t.get(key));
        let Some(Entry { node: Node { datum: Datum::Text(word), span }, .. }) = entry else {
            return false;
        };
        let is_off = OFF_WORDS.contains(&word.as_str());
        if is_off {
            section.take(key);
            self.report.found(section.path_of(key), *span);
        }
        is_off
    }

    /// The cost of receiving; `None` where nothing is written, or "off".
    fn receive_cpu(&mut self, host: &mut Section<'_>) -> Option<ReceiveCpuParams> {
        if self.is_off(host, "receive-cpu") {
            return None;
        }
        let mut costs = None;
        self.whole(host, "receive-cpu", |r, table| {
            if table.table.is_some() {
                r.params(table, costs.insert(ReceiveCpuParams::default()), &[]);
            }
        });
        costs
    }

    fn nic_choice<C: Choice>(
        &mut self,
        nic: &mut Section<'_>,
        key: &str,
        without: &str,
    ) -> NicChoice<C> {
        let path = nic.path_of(key);
        match nic.table.and_then(|t| t.get(key)) {
            Some(Entry { node: Node { datum: Datum::Text(word), span }, .. }) => {
                nic.take(key);
                self.report.found(path.clone(), *span);
                if word == "switch" {
                    return NicChoice::Switch;
                }
                if word != without {
                    let message =
                        format!("expected \"{without}\", \"switch\" or a table, found {word:?}");
                    self.report.value(*span, &path, message);
                }
                NicChoice::Without
            }
            Some(_) => NicChoice::Own(self.choice(nic, key, &path)),
            None => {
                nic.take(key);
                NicChoice::Without
            }
        }
    }

    /// Common keys, the kind's own keys and the places share one table.
    fn transport(&mut self, top: &mut Section<'_>, s: &mut Settings) {
        let mut section = self.table(top, "transport");
        // The segment size follows from the host's MTU and is set there.
        self.params(&mut section, &mut s.transport, &["mss"]);
        section.known.retain(|key| key != "mss");
        self.choices(&mut section, &mut s.transport_choices);
        let Some(mut kind) = self.kind::<crate::transport::TransportKind>(&mut section) else {
            return;
        };
        self.keys(&mut section, &mut kind, &[]);
        let chosen = kind.kind();
        s.transport_kind = kind;
        if let Some(table) = section.table
            && let Some(named) = table.get("kind")
        {
            let is_tcps = |e: &&Entry| {
                s.transport.keys().iter().any(|key| key.name() == e.key) && e.layer >= named.layer
            };
            s.tcp_keys =
                table.entries.iter().filter(is_tcps).map(|e| (e.key.clone(), e.key_span)).collect();
        }
        if let Some(mss) = section.table.and_then(|t| t.get("mss")) {
            let problem = Problem::UnknownKey { key: "mss".into(), table: "[transport]".into() };
            self.report.help(mss.key_span, problem, "set it in [host]");
            section.known.push("mss".into());
        }
        self.finish(section, Some((crate::transport::TransportKind::place(), chosen)));
    }
}

/// The kinds of a place that have a key of this name.
fn kinds_with(place: &Place, key: &str) -> Vec<String> {
    let has = |keys: &[Key]| keys.iter().any(|k| grouped(&k.name()).0.unwrap_or(&k.name()) == key);
    place.mechanisms.iter().filter(|m| has(m.keys)).map(|m| format!("\"{}\"", m.kind)).collect()
}
