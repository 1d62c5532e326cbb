//! Explanations: what a key, a kind, a place or a distribution means; and the list of all there is.

use crate::catalogue::{KeyInfo, KindInfo, PlaceInfo, places, tables};
use crate::cdf::{BUILTIN, Cdf};
use crate::error::nearest;
use crate::read::key_text;
use millpond_core::registry::PathProperty;
use std::fmt::Write;

const PROPERTIES: &[PathProperty] = &[
    PathProperty::FifoPerFlow,
    PathProperty::FifoPerFlowcell,
    PathProperty::LossIsSignal,
    PathProperty::NoLossAfterAdmission,
    PathProperty::ImportantSurvives,
    PathProperty::TimersRun,
    PathProperty::LabelFixesPath,
    PathProperty::SizeAtEdge,
    PathProperty::ControlNeverWaits,
];

/// What `name` means: a key ("transport.min-rto", or "min-rto" alone), a kind ("dctcp"), a place or table
/// ("switch.marking", "host"), a distribution ("web-search") or a path property ("fifo-per-flow"). Several things of one
/// name are all told. An unknown name gives the nearest ones.
pub fn explain(name: &str) -> Result<String, String> {
    let name = name.trim().trim_matches(['[', ']']);
    let mut out = String::new();
    let places = places();
    places.iter().filter(|p| p.place.path == name).for_each(|p| explain_place(&mut out, p));
    for table in tables().iter().filter(|t| t.path == name && !name.is_empty()) {
        let _ = writeln!(out, "[{}]\n  {}\n  keys: {}\n", table.path, table.about, names(&table.keys));
    }
    explain_keys(&mut out, &places, |key| key.path == name);
    for place in &places {
        for kind in place.kinds.iter().filter(|k| k.mechanism.kind == name && name != "none") {
            explain_kind(&mut out, place, kind);
        }
        if place.planned.contains(&name) {
            let _ = writeln!(out, "{} = {{ kind = \"{name}\" }} is not built yet in this version\n", place.place.path);
        }
    }
    explain_cdf(&mut out, name);
    explain_property(&mut out, &places, name);
    if out.is_empty() {
        // A key's name without its table, or a table within a table ("capture.queues",
        // "host-link").
        let group = format!("{name}.");
        let is_of = |key: &KeyInfo| key.name.starts_with(&group) || key.path.starts_with(&group);
        explain_keys(&mut out, &places, |key| {
            key.name == name || key.name.rsplit('.').next() == Some(name) || (!name.is_empty() && is_of(key))
        });
    }
    if out.is_empty() { Err(unknown(name, &places)) } else { Ok(out.trim_end().to_string() + "\n") }
}

fn names(keys: &[KeyInfo]) -> String {
    if keys.is_empty() {
        return "none".into();
    }
    keys.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn explain_place(out: &mut String, info: &PlaceInfo) {
    let _ = writeln!(out, "{}: {}", info.place.path, info.place.question);
    for kind in &info.kinds {
        let default = if kind.mechanism.kind == info.place.default { " (default)" } else { "" };
        let _ = writeln!(out, "  {:<16} {}{default}", kind.mechanism.kind, kind.mechanism.about.summary);
    }
    if !info.planned.is_empty() {
        let _ = writeln!(out, "  not built yet:   {}", info.planned.join(", "));
    }
    out.push('\n');
}

fn explain_kind(out: &mut String, place: &PlaceInfo, kind: &KindInfo) {
    let about = kind.mechanism.about;
    let _ = writeln!(out, "{} = {{ kind = \"{}\" }}: {}", place.place.path, kind.mechanism.kind, about.summary);
    if !about.source.is_empty() {
        let _ = writeln!(out, "  source:   {}", about.source);
    }
    for (what, list) in [("needs", about.needs), ("breaks", about.breaks), ("restores", about.restores)] {
        if !list.is_empty() {
            let list: Vec<&str> = list.iter().map(|p| p.name()).collect();
            let _ = writeln!(out, "  {:<9} {}", format!("{what}:"), list.join(", "));
        }
    }
    for key in &kind.keys {
        let _ = writeln!(out, "  {} = {}\n      {}", key.name, key.default, key.meaning().0);
    }
    out.push('\n');
}

/// All keys that satisfy `is`, those of several kinds once.
fn explain_keys(out: &mut String, places: &[PlaceInfo], is: impl Fn(&KeyInfo) -> bool) {
    for table in tables() {
        table.keys.iter().filter(|k| is(k)).for_each(|k| explain_key(out, k, &[]));
    }
    for place in places {
        let mut told: Vec<(&KeyInfo, Vec<&str>)> = Vec::new();
        for kind in &place.kinds {
            for key in kind.keys.iter().filter(|k| is(k)) {
                let same = |(k, _): &&mut (&KeyInfo, Vec<&str>)| {
                    k.path == key.path && k.default == key.default && k.key.text() == key.key.text()
                };
                match told.iter_mut().find(same) {
                    Some((_, kinds)) => kinds.push(kind.mechanism.kind),
                    None => told.push((key, vec![kind.mechanism.kind])),
                }
            }
        }
        told.iter().for_each(|(key, kinds)| explain_key(out, key, kinds));
    }
}

fn explain_key(out: &mut String, info: &KeyInfo, kinds: &[&str]) {
    let (meaning, source) = info.meaning();
    let off = if info.key.optional { ", or \"off\"" } else { "" };
    let _ = writeln!(out, "{}: {meaning}", info.path);
    let _ = writeln!(out, "  form:     {}{off}", key_text(&info.key));
    let _ = writeln!(out, "  default:  {}", info.default);
    if let Some(source) = source {
        let _ = writeln!(out, "  source:   {source}");
    }
    if !kinds.is_empty() {
        let _ = writeln!(out, "  of kind:  {}", kinds.join(", "));
    }
    out.push('\n');
}

fn explain_cdf(out: &mut String, name: &str) {
    let Some(builtin) = BUILTIN.iter().find(|b| b.name == name) else { return };
    let Some(cdf) = Cdf::builtin(name) else { return };
    let _ = writeln!(out, "sizes = \"{name}\": a distribution of flow sizes\n  source:   {}", builtin.source);
    let _ = writeln!(out, "  mean:     {:.0} bytes\n  form:     {}", cdf.mean(), cdf.shape().name());
    let points: Vec<String> = cdf.points().iter().map(|(x, p)| format!("{x}:{p:.4}")).collect();
    let _ = writeln!(out, "  points:   {}\n", points.join(" "));
}

fn explain_property(out: &mut String, places: &[PlaceInfo], name: &str) {
    let Some(property) = PROPERTIES.iter().find(|p| p.name() == name) else { return };
    let all = || places.iter().flat_map(|p| p.kinds.iter().map(move |k| (p.place.path, k.mechanism)));
    let with = |list: &dyn Fn(&millpond_core::registry::About) -> &'static [PathProperty]| {
        let found = all().filter(|(_, m)| list(m.about).contains(property));
        let found: Vec<String> = found.map(|(path, m)| format!("{path} \"{}\"", m.kind)).collect();
        if found.is_empty() { "nothing built yet".into() } else { found.join(", ") }
    };
    let _ = writeln!(out, "{name}: a property of the path; where it is broken, {}", property.consequence());
    let _ = writeln!(out, "  needed by:   {}", with(&|a| a.needs));
    let _ = writeln!(out, "  broken by:   {}", with(&|a| a.breaks));
    let _ = writeln!(out, "  restored by: {}\n", with(&|a| a.restores));
}

/// "there is no …", with what is near.
fn unknown(name: &str, places: &[PlaceInfo]) -> String {
    let mut known: Vec<String> = tables().into_iter().flat_map(|t| t.keys).flat_map(|k| [k.path, k.name]).collect();
    for place in places {
        known.push(place.place.path.into());
        for kind in &place.kinds {
            known.push(kind.mechanism.kind.into());
            known.extend(kind.keys.iter().flat_map(|k| [k.path.clone(), k.name.clone()]));
        }
    }
    known.extend(BUILTIN.iter().map(|b| b.name.to_string()));
    known.extend(PROPERTIES.iter().map(|p| p.name().to_string()));
    known.sort();
    known.dedup();
    let mut near = Vec::new();
    while near.len() < 3 {
        let left = known.iter().map(String::as_str).filter(|k| !near.contains(k));
        match nearest(name, left) {
            Some(found) => near.push(found),
            None => break,
        }
    }
    match near.is_empty() {
        true => format!("there is nothing called {name:?}; `millpond list` shows what there is"),
        false => format!("there is nothing called {name:?}; did you mean {}?", near.join(", ")),
    }
}

/// All places with their kinds, the traffic, the topologies and the distributions.
pub fn list() -> String {
    let mut out = String::new();
    for place in places() {
        explain_place(&mut out, &place);
    }
    out.push_str("sizes: built-in distributions of flow sizes\n");
    for b in BUILTIN {
        let mean = Cdf::builtin(b.name).map_or(0.0, |c| c.mean());
        let _ = writeln!(out, "  {:<22} mean {mean:>10.0} B   {}", b.name, b.source);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_kinds_places_and_distributions() {
        let has = |name: &str, what: &[&str]| {
            let text = explain(name).unwrap();
            what.iter().for_each(|w| assert!(text.contains(w), "{name}: {w} not in\n{text}"));
        };
        has("transport.min-rto", &["\"10ms\"", "RFC 6298", "a time such as"]);
        has("min-rto", &["transport.min-rto"]);
        has("dctcp", &["RFC 8257", "needs:", "fifo-per-flow", "dctcp-g = 0.0625"]);
        has("switch.marking", &["ecn", "none", "not built yet", "(default)"]);
        has("switch.marking.threshold-packets", &["65", "of kind:  ecn"]);
        has("topology.host-link.rate", &["10Gbps", "leaf-spine, fat-tree, single-switch, dumbbell"]);
        has("web-search", &["mean:     17"]);
        has("fifo-per-flow", &["switch.path \"spray\"", "transport \"dctcp\""]);
        has("[host]", &["mtu", "mss"]);
        has("capture.queues", &["capture.queues.every", "leaf0->spine1"]);
        has("queues", &["capture.queues.ports", "sp-pifo"]);
        has("host-link", &["topology.host-link.rate"]);
        has("bfc", &["not built yet"]);
        assert!(explain("min-rtto").unwrap_err().contains("min-rto"));
        assert!(explain("qqqqqq").unwrap_err().contains("list"));
        assert!(explain("").is_err());
    }

    #[test]
    fn the_list_has_every_kind() {
        let text = list();
        for what in ["leaf-spine", "dctcp", "spray", "incast", "cache-follower-intra", "traffic:", "topology:"] {
            assert!(text.contains(what), "{what}");
        }
    }
}
