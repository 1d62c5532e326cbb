//! Overrides: variants and `--set` change the tree before it is read.
//!
//! Overriding a `kind` resets its table: the old kind's keys go, so that none is left without
//! effect. Keys that do not belong to a kind stay: the transport's common keys, and a traffic's
//! name, start and stop. Within one variant (or all `--set` together) kinds are set first, so the
//! order of writing does not matter.

use crate::choices::{Choices, TransportChoices};
use crate::error::{Problem, Report, near_or};
use crate::keys::{GROUPS, SHORT};
use crate::settings::limit::LimitCommon;
use crate::source::Span;
use crate::transport::TransportParams;
use crate::tree::{Datum, Entry, Layer, Node, Table, parse_path};
use millpond_core::switch::site::{OTHERS, tier_of};

/// One change: a dotted key and its new value.
#[derive(Clone, Debug)]
pub(crate) struct Override {
    pub path: Vec<String>,
    pub key_span: Span,
    pub node: Node,
}

/// Reads a `set = { … }` table: dotted keys in quotes, or tables, which mean their keys.
pub(crate) fn from_table(set: &Table, report: &mut Report) -> Vec<Override> {
    let mut list = Vec::new();
    for entry in &set.entries {
        match parse_path(&entry.key) {
            Some(path) => flatten(path, entry.key_span, entry.node.clone(), &mut list),
            None => {
                let problem = Problem::Value {
                    key: entry.key.clone(),
                    message: "is not a dotted key".into(),
                };
                report.help(entry.key_span, problem, "write a key such as \"switch.path.kind\"");
            }
        }
    }
    list
}

/// A table means its keys, except where the table is a value by itself (sizes, graph).
pub(crate) fn flatten(path: Vec<String>, key_span: Span, node: Node, list: &mut Vec<Override>) {
    match node.datum {
        Datum::Table(table)
            if path.last().is_none_or(|last| last != "sizes" && last != "graph") =>
        {
            for entry in table.entries {
                let mut path = path.clone();
                path.push(entry.key);
                flatten(path, entry.key_span, entry.node, list);
            }
        }
        _ => list.push(Override { path, key_span, node }),
    }
}

/// Applies all changes of one layer, kinds first.
pub(crate) fn apply(root: &mut Table, changes: &[Override], layer: Layer, report: &mut Report) {
    let is_kind = |c: &Override| c.path.last().is_some_and(|last| last == "kind");
    let mut ordered: Vec<&Override> = changes.iter().collect();
    ordered.sort_by_key(|c| (!is_kind(c), if is_kind(c) { c.path.len() } else { 0 }));
    for change in ordered {
        let mut node = change.node.clone();
        node.set_layer(layer);
        let change = Override { node, ..change.clone() };
        match change.path.first().map(String::as_str) {
            Some(list @ ("traffic" | "limit" | "application" | "program")) => {
                set_named(root, list, &change, layer, report)
            }
            Some("variant") => {
                let message = "variants are chosen, not overridden";
                report.value(change.key_span, "variant", message);
            }
            _ => set(root, &change.path, 0, &change, layer),
        }
    }
}

/// The keys that a table keeps when its kind changes.
fn keeps(path: &[String], key: &str) -> bool {
    match path.first().map(String::as_str) {
        Some("transport") if path.len() == 1 => {
            TransportChoices::default().has(key)
                || TransportParams::KEYS.iter().any(|k| k.name() == key)
        }
        Some("traffic") if path.len() == 2 => ["name", "start", "stop", "transport"].contains(&key),
        // Both kinds have a rate.
        Some("limit") if path.len() == 2 => {
            key == "rate" || LimitCommon::KEYS.iter().any(|k| k.name() == key)
        }
        _ => false,
    }
}

/// Walks (and makes) tables down the path from component `from` on, and puts the value there.
fn set(table: &mut Table, path: &[String], from: usize, change: &Override, layer: Layer) {
    let Some((key, rest)) = path[from..].split_first() else { return };
    if rest.is_empty() {
        if key == "kind" {
            table.entries.retain(|e| keeps(&path[..from], &e.key));
        }
        table.put(key, change.key_span, layer, change.node.clone());
        return;
    }
    let old = table.get(key).cloned();
    if old.as_ref().is_none_or(|e| e.node.as_table().is_none()) {
        // One tier's amount where there was one for all: the other tiers keep that. A value that is
        // short for one member of the table stays that member.
        let one_tier = rest.len() == 1 && (tier_of(&rest[0]).is_some() || rest[0] == OTHERS);
        let is_short = path[0] == "capture" && GROUPS.contains(&key.as_str());
        let name = if one_tier { Some(OTHERS) } else { is_short.then_some(SHORT) };
        let kept = old.zip(name).map(|(entry, name)| Entry { key: name.to_string(), ..entry });
        let inner = Table { entries: kept.into_iter().collect() };
        table.put(
            key,
            change.key_span,
            layer,
            Node { datum: Datum::Table(inner), span: change.key_span },
        );
    }
    if let Some(Datum::Table(inner)) = table.get_mut(key).map(|e| &mut e.node.datum) {
        set(inner, path, from + 1, change, layer);
    }
}

/// `traffic.NAME.key`, `limit.NAME.key`, `application.NAME.key`, `program.NAME.key`: the table of
/// that name (or of that kind, if it has no name).
fn set_named(root: &mut Table, list: &str, change: &Override, layer: Layer, report: &mut Report) {
    let [_, name, _, ..] = change.path.as_slice() else {
        let problem = Problem::Value {
            key: change.path.join("."),
            message: format!("names no key of a {list}"),
        };
        report.help(change.key_span, problem, format!("write {list}.NAME.KEY"));
        return;
    };
    // A table of these without a name has that of its list.
    let is_named = ["application", "program"].contains(&list);
    let mut names = Vec::new();
    if let Some(Datum::Array(items)) = root.get_mut(list).map(|e| &mut e.node.datum) {
        for item in items {
            let Datum::Table(table) = &mut item.datum else { continue };
            let own = table.text("name").or(table.text("kind"));
            let own = own.unwrap_or(if is_named { list } else { "" }).to_string();
            if own == *name {
                set(table, &change.path, 2, change, layer);
                return;
            }
            names.push(own);
        }
    }
    let known = names.iter().map(String::as_str);
    let help = near_or(name, known, || format!("{list} here: {}", names.join(", ")));
    report.help(change.key_span, Problem::Unknown { what: list.into(), name: name.clone() }, help);
}
