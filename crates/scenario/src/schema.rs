//! The JSON schema of a scenario, for editors.
//!
//! A wrong key or value is one error, at its own place. So there are no alternatives whose branches
//! would each complain: the keys of a kind are required by `if kind = … then …`, with
//! `additionalProperties: false` in each branch; a value that may be a number or a word has one
//! list of types, with a bound for the numbers and a pattern for the words. Parts that several
//! branches share stand once, beside them. Draft 7, since the usual editors' TOML plug-ins support
//! that.
//!
//! Invariant: what the reader takes is valid here, and a key that no declaration reads is not.

use crate::catalogue::{KeyInfo, PlaceInfo, places, tables};
use crate::cdf::BUILTIN;
use crate::keys::{MAY_BE_OFF, OFF_WORDS, SHORT};
use millpond_core::params::{Form, Key};
use millpond_core::switch::site::{AUTO, OTHERS, TIER_NAMES};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The values of keys that are no amount, by the key's path.
static VALUES: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let values = serde_json::from_str(include_str!("schema/values.json"));
    values.unwrap_or_else(|error| unreachable!("values.json: {error}"))
});

const NUMBER: &str = r"[0-9][0-9_]*(\.[0-9_]*)?";

pub fn schema() -> Value {
    let mut root = table("");
    root.insert("topology".into(), kinds("topology", &Map::new()));
    root.insert("host".into(), host());
    root.insert("switch".into(), object(choices("switch")));
    let mut transport = table("transport");
    transport.extend(choices("transport"));
    root.insert("transport".into(), kinds("transport", &transport));
    let mut rdma = table("rdma");
    rdma.extend(choices("rdma"));
    root.insert("rdma".into(), object(rdma));
    root.insert("edge".into(), object(choices("edge")));
    root.insert("engine".into(), object(table("engine")));
    root.insert("capture".into(), object(table("capture")));
    root.insert("failure".into(), failures());
    root.insert("application".into(), list(object(table("application"))));
    root.insert("program".into(), list(requiring(table("program"), ["host", "command"])));
    root.insert("limit".into(), list(kinds("limit", &table("limit"))));
    let mut traffic = table("traffic");
    traffic.insert("transport".into(), kinds("transport", &Map::new()));
    root.insert("traffic".into(), list(kinds("traffic", &traffic)));
    let mut variant = object(Map::from_iter([
        ("name".to_string(), json!({ "type": "string", "description": "The variant's name." })),
        (
            "about".to_string(),
            json!({ "type": "string", "description": "A sentence or two that describe it." }),
        ),
        ("set".to_string(), changes()),
    ]));
    variant["description"] =
        json!("A named change of the scenario: dotted keys in quotes, and their values.");
    variant["required"] = json!(["name"]);
    root.insert("variant".into(), list(variant));
    let mut schema = object(root);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("millpond scenario");
    schema
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn requiring(properties: Map<String, Value>, keys: [&str; 2]) -> Value {
    let mut table = object(properties);
    table["required"] = json!(keys);
    table
}

fn failures() -> Value {
    let mut failure = object(table("failure"));
    failure["required"] = json!(["at"]);
    failure["anyOf"] = json!([{ "required": ["link"] }, { "required": ["switch"] }]);
    list(failure)
}

fn table(path: &str) -> Map<String, Value> {
    let found = tables().into_iter().find(|t| t.path == path);
    properties(&found.map(|t| t.keys).unwrap_or_default())
}

fn place(path: &str) -> PlaceInfo {
    places()
        .into_iter()
        .find(|p| p.place.path == path)
        .unwrap_or_else(|| unreachable!("{path} is no place"))
}

/// The places of a table, by their keys.
fn choices(table: &str) -> Map<String, Value> {
    let key = |path: &'static str| path.strip_prefix(table)?.strip_prefix('.');
    let all =
        places().into_iter().filter_map(|info| Some((info.place.path, key(info.place.path)?)));
    let value = |path: &str| match MAY_BE_OFF.contains(&path) {
        true => word_or(OFF_WORDS, kinds(path, &Map::new())),
        false => kinds(path, &Map::new()),
    };
    all.filter(|(_, key)| !key.contains('.'))
        .map(|(path, key)| (key.to_string(), value(path)))
        .collect()
}

fn host() -> Value {
    let mut host = table("host");
    let mut nic = table("host.nic");
    for (key, word, place) in
        [("buffer", "unlimited", "switch.buffer"), ("marking", "none", "switch.marking")]
    {
        nic.insert(key.into(), word_or(&[word, "switch"], kinds(place, &Map::new())));
    }
    nic.extend(choices("host.nic"));
    host.insert("nic".into(), object(nic));
    host.extend(choices("host"));
    host.insert("receive-cpu".into(), word_or(OFF_WORDS, object(table("host.receive-cpu"))));
    object(host)
}

/// One of these words, or a table.
fn word_or(words: &[&str], table: Value) -> Value {
    json!({
        "type": ["string", "object"], "default": words[0],
        "if": { "type": "string" }, "then": { "enum": words }, "else": table,
    })
}

/// A table of a place: its kind, the keys of that kind, and the keys that all kinds share.
fn kinds(path: &str, shared: &Map<String, Value>) -> Value {
    let PlaceInfo { place, kinds, .. } = place(path);
    let mut members = shared.clone();
    let names: Vec<&str> = kinds.iter().map(|kind| kind.mechanism.kind).collect();
    let about = |kind: &crate::catalogue::KindInfo| {
        format!("{}: {}", kind.mechanism.kind, kind.mechanism.about.summary)
    };
    let question =
        format!("{} {}", place.question, kinds.iter().map(about).collect::<Vec<_>>().join("; "));
    members.insert(
        "kind".into(),
        json!({ "enum": names, "default": place.default, "description": question }),
    );
    let mut branches = Vec::new();
    for kind in &kinds {
        let own = properties(&kind.keys);
        for (name, property) in &own {
            // Beside the branches a key is only described, so that a wrong value is an error once.
            members.entry(name).or_insert_with(|| described(property));
        }
        let mut all: Map<String, Value> =
            shared.keys().map(|name| (name.clone(), json!(true))).collect();
        all.insert("kind".into(), json!(true));
        all.extend(own);
        let mut condition = json!({ "properties": { "kind": { "const": kind.mechanism.kind } } });
        // A table without a kind is of the default one, but a traffic has none.
        if kind.mechanism.kind != place.default || path == "traffic" {
            condition["required"] = json!(["kind"]);
        }
        let then = json!({ "properties": all, "additionalProperties": false });
        branches.push(json!({ "if": condition, "then": then }));
    }
    let mut value = json!({
        "type": "object", "description": place.question, "properties": members, "allOf": branches,
    });
    if path == "traffic" {
        value["required"] = json!(["kind"]);
    }
    value
}

/// The description of a property, without what it asks for.
fn described(property: &Value) -> Value {
    let kept = ["description", "default"]
        .into_iter()
        .filter_map(|key| Some((key.to_string(), property.get(key)?.clone())));
    Value::Object(kept.collect())
}

/// The table `set` of a variant: the dotted keys there are, or tables, which mean their keys.
fn changes() -> Value {
    let mut set = Changes::default();
    for PlaceInfo { place, kinds, .. } in &places() {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.mechanism.kind).collect();
        let kind = json!({ "enum": names, "description": place.question });
        for path in [
            Some(place.path),
            in_nic(place.path),
            (place.path == "transport").then_some("traffic.transport"),
        ] {
            path.into_iter().for_each(|path| set.add(&format!("{path}.kind"), kind.clone()));
        }
        kinds.iter().flat_map(|kind| &kind.keys).for_each(|key| set.add_key(key));
        set.tables([place.path]);
    }
    // A failure has no name to set it by: all of them are set together.
    set.known.insert("failure".into(), failures());
    let tables = tables();
    tables
        .iter()
        .filter(|t| t.path != "failure")
        .flat_map(|t| &t.keys)
        .for_each(|key| set.add_key(key));
    set.tables([
        "host",
        "host.nic",
        "switch",
        "rdma",
        "edge",
        "engine",
        "capture",
        "traffic",
        "limit",
        "application",
        "program",
    ]);
    set.tables([
        "topology.host-link",
        "topology.fabric-link",
        "topology.inner-link",
        "topology.bottleneck",
    ]);
    for path in ["host.nic.buffer", "host.nic.marking", "host.receive-cpu"] {
        set.known.insert(path.into(), json!({ "type": ["string", "object"] }));
    }
    for pattern in ["^(traffic|limit|application|program)\\.[^.]+$", "^traffic\\..+\\.transport$"] {
        set.patterns.insert(pattern.into(), json!({ "type": "object" }));
    }
    let mut table = object(set.known);
    table["patternProperties"] = Value::Object(set.patterns);
    table["description"] =
        json!("Keys and their values, such as { \"switch.path.kind\" = \"spray\" }.");
    table
}

/// Dotted keys with their values, and patterns of those that have a name in them.
#[derive(Default)]
struct Changes {
    known: Map<String, Value>,
    patterns: Map<String, Value>,
}

impl Changes {
    /// A key; one that several kinds have is only described, unless it takes the same values in all
    /// of them.
    fn add(&mut self, path: &str, value: Value) {
        let (list, path) = match path.split_once('.') {
            Some((list @ ("traffic" | "limit" | "application" | "program"), key)) => {
                (&mut self.patterns, format!("^{list}\\..+\\.{}$", escaped(key)))
            }
            _ => (&mut self.known, path.to_string()),
        };
        let value = match list.get(&path) {
            Some(other) if *other != value => described(other),
            _ => value,
        };
        list.insert(path, value);
    }
    /// A key wherever it can stand.
    fn add_key(&mut self, info: &KeyInfo) {
        let (place, name) = info.path.rsplit_once('.').unwrap_or(("", &info.path));
        let own = (place == "transport").then(|| format!("traffic.transport.{name}"));
        let nic = in_nic(place).map(|nic| format!("{nic}.{name}"));
        for path in [Some(info.path.clone()), own, nic].into_iter().flatten() {
            if info.key.tiered {
                let tiers: Vec<&str> = TIER_NAMES.iter().copied().chain([OTHERS]).collect();
                let rates = if info.key.rated { format!("|{RATE}") } else { String::new() };
                let pattern =
                    format!("^{}\\.({}|tier-[0-9]+{rates})$", escaped(&path), tiers.join("|"));
                self.patterns.insert(pattern, amount(&info.key));
            }
            self.add(&path, property(info));
        }
    }
    fn tables<const N: usize>(&mut self, paths: [&str; N]) {
        self.known.extend(paths.map(|path| (path.to_string(), json!({ "type": "object" }))));
    }
}

/// A rate as the name of an entry of a table by rate.
const RATE: &str = "[0-9.]+[KMGT]?bps";

/// The place in a NIC that has the same kinds.
fn in_nic(place: &str) -> Option<&'static str> {
    match place {
        "switch.buffer" => Some("host.nic.buffer"),
        "switch.marking" => Some("host.nic.marking"),
        _ => None,
    }
}

fn escaped(path: &str) -> String {
    path.replace('.', "\\.")
}

/// The keys, with groups as objects.
fn properties(keys: &[KeyInfo]) -> Map<String, Value> {
    let mut out = Map::new();
    for key in keys {
        match key.name.split_once('.') {
            None => {
                out.insert(key.name.clone(), property(key));
            }
            Some((group, leaf)) => {
                let entry = out.entry(group).or_insert_with(|| object(Map::new()));
                entry["properties"][leaf] = property(key);
            }
        }
    }
    for group in out.values_mut().filter(|value| value["properties"][SHORT].is_object()) {
        *group = json!({ "anyOf": [group["properties"][SHORT], group] });
    }
    out
}

fn property(info: &KeyInfo) -> Value {
    let mut value = VALUES.get(&info.path).cloned().unwrap_or_else(|| amount(&info.key));
    if info.path == "traffic.sizes" {
        value["examples"] = BUILTIN.iter().map(|cdf| cdf.name).collect();
    }
    if info.key.tiered {
        let tiers = TIER_NAMES.iter().copied().chain([OTHERS]);
        value["type"].as_array_mut().into_iter().for_each(|types| types.push(json!("object")));
        value["properties"] = tiers.map(|tier| (tier.to_string(), amount(&info.key))).collect();
        value["patternProperties"] = json!({ "^tier-[0-9]+$": amount(&info.key) });
        if info.key.rated {
            value["patternProperties"][format!("^{RATE}$")] = amount(&info.key);
        }
        value["additionalProperties"] = json!(false);
    }
    value["description"] = json!(info.key.text());
    value["default"] = match info.default.strip_prefix('"') {
        Some(text) => json!(text.trim_end_matches('"')),
        None => serde_json::from_str(&info.default).unwrap_or(Value::Null),
    };
    value
}

/// One value of a key: its types, with a bound for numbers and a pattern for texts.
fn amount(key: &Key) -> Value {
    let words: Vec<&str> = OFF_WORDS
        .iter()
        .copied()
        .filter(|_| key.optional)
        .chain(key.auto.then_some(AUTO))
        .collect();
    let text = |forms: &[String]| {
        let all: Vec<&str> =
            forms.iter().map(String::as_str).chain(words.iter().copied()).collect();
        format!("^({})$", all.join("|"))
    };
    let unit = |unit: &str| text(&[format!("\\s*{NUMBER}\\s*{unit}\\s*")]);
    let mut value = match key.form {
        Form::Bool => json!({ "type": ["boolean"] }),
        Form::Int => number("integer", key.range),
        Form::Float => number("number", key.range),
        Form::Time => json!({ "type": ["string"], "pattern": unit("[pnuµm]?s") }),
        Form::Rate => {
            let speed = unit("([KMGTkmgt]?b[pP][sS]|([KMGTkmgt][iI]?)?[bB][iI][tT])");
            json!({ "type": ["string"], "pattern": speed })
        }
        Form::Bytes => {
            let mut value = number("integer", key.range);
            value["type"] = json!(["integer", "string"]);
            value["pattern"] = json!(unit("(([KMGTkmgt][iI]?)?B)?"));
            value
        }
        Form::Choice(choices) => {
            let all: Vec<&str> = choices.iter().copied().chain(words.iter().copied()).collect();
            return json!({ "type": ["string"], "enum": all });
        }
        Form::Text => return json!({ "type": ["string"] }),
        Form::List => {
            // Some lists may also be a number: so many of what they are of.
            let item = json!({ "type": ["string", "integer"] });
            return json!({ "type": ["array", "string", "integer"], "items": item });
        }
    };
    if !words.is_empty() && value.get("pattern").is_none() {
        value["type"].as_array_mut().into_iter().for_each(|types| types.push(json!("string")));
        value["pattern"] = json!(text(&[]));
    }
    value
}

/// A number, from 0 unless its range has another end.
fn number(kind: &str, range: Option<(f64, f64)>) -> Value {
    let bound = |x: f64| if kind == "integer" { json!(x as u64) } else { json!(x) };
    let (least, most) = range.unwrap_or((0.0, f64::INFINITY));
    let mut value = json!({ "type": [kind], "minimum": bound(least) });
    if most.is_finite() {
        value["maximum"] = bound(most);
    }
    value
}

#[cfg(test)]
mod tests;
