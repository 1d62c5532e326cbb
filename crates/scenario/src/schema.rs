//! The JSON schema of a scenario (draft 2020-12), for editors.

use crate::catalogue::{KeyInfo, KindInfo, PlaceInfo, places, tables};
use crate::cdf::BUILTIN;
use crate::read::{OFF_WORDS, SHORT};
use millpond_core::params::Form;
use serde_json::{Map, Value, json};

const NUMBER: &str = r"[0-9][0-9_]*(\.[0-9_]*)?";

/// The schema.
pub fn schema() -> Value {
    let mut root = table("");
    let switch = ["buffer", "marking", "admission", "queue", "path", "deflection", "occupancy", "pause"];
    root.insert("topology".into(), kinds("topology", &Map::new()));
    root.insert("host".into(), host());
    let members = |prefix: &str, names: &[&str]| -> Map<String, Value> {
        names.iter().map(|n| (n.to_string(), kinds(&format!("{prefix}.{n}"), &Map::new()))).collect()
    };
    root.insert("switch".into(), object(members("switch", &switch)));
    let mut transport = table("transport");
    transport.extend(members("transport", &["importance", "rank", "ordering"]));
    root.insert("transport".into(), kinds("transport", &transport));
    root.insert("edge".into(), object(members("edge", &["load-balancing", "virtual-switch"])));
    root.insert("engine".into(), object(table("engine")));
    root.insert("capture".into(), object(table("capture")));
    let mut failure = object(table("failure"));
    failure["required"] = json!(["link", "at"]);
    root.insert("failure".into(), json!({ "type": "array", "items": failure }));
    root.insert("limit".into(), json!({ "type": "array", "items": kinds("limit", &table("limit")) }));
    let mut traffic = table("traffic");
    traffic.insert("transport".into(), kinds("transport", &Map::new()));
    root.insert("traffic".into(), json!({ "type": "array", "items": kinds("traffic", &traffic) }));
    let variant = json!({
        "type": "object",
        "description": "A named change of the scenario: dotted keys and their values.",
        "properties": { "name": { "type": "string" }, "set": { "type": "object" } },
        "required": ["name"],
        "additionalProperties": false,
    });
    root.insert("variant".into(), json!({ "type": "array", "items": variant }));
    let mut schema = object(root);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("millpond scenario");
    schema
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn table(path: &str) -> Map<String, Value> {
    let found = tables().into_iter().find(|t| t.path == path);
    properties(&found.map(|t| t.keys).unwrap_or_default())
}

fn host() -> Value {
    let mut host = table("host");
    let mut nic = table("host.nic");
    for (key, word, place) in [("buffer", "unlimited", "switch.buffer"), ("marking", "none", "switch.marking")] {
        let own = kinds(place, &Map::new());
        nic.insert(key.into(), json!({ "anyOf": [{ "enum": [word, "switch"] }, own], "default": word }));
    }
    host.insert("nic".into(), object(nic));
    host.insert("receive-offload".into(), kinds("host.receive-offload", &Map::new()));
    let cpu = object(table("host.receive-cpu"));
    host.insert("receive-cpu".into(), json!({ "anyOf": [{ "enum": OFF_WORDS }, cpu], "default": "off" }));
    object(host)
}

/// One alternative a kind, each with the keys that all share.
fn kinds(path: &str, shared: &Map<String, Value>) -> Value {
    let Some(info) = places().into_iter().find(|p| p.place.path == path) else { return json!({}) };
    let PlaceInfo { place, kinds, .. } = info;
    let alternative = |kind: &KindInfo| {
        let mut members = shared.clone();
        members.extend(properties(&kind.keys));
        members.insert("kind".into(), json!({ "const": kind.mechanism.kind }));
        let mut value = object(members);
        value["description"] = json!(kind.mechanism.about.summary);
        // A table without a kind is of the default one, but a traffic has none.
        if kind.mechanism.kind != place.default || path == "traffic" {
            value["required"] = json!(["kind"]);
        }
        value
    };
    let alternatives: Vec<Value> = kinds.iter().map(alternative).collect();
    json!({ "description": place.question, "oneOf": alternatives })
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
    let text = |unit: &str| json!({ "type": "string", "pattern": format!("^\\s*{NUMBER}\\s*{unit}\\s*$") });
    let mut value = match info.path.as_str() {
        "traffic.sizes" => sizes(),
        "topology.graph" => graph(),
        "traffic.rows" => json!({ "type": "array", "items": { "type": "array", "minItems": 4, "maxItems": 5 } }),
        "limit.hosts" | "capture.connections.flows" | "capture.connections.src" | "capture.connections.dst" => {
            let number = json!({ "type": "integer", "minimum": 0 });
            let member = json!({ "anyOf": [{ "type": "string" }, number] });
            json!({ "anyOf": [{ "type": "array", "items": member }, { "type": "string" }, number] })
        }
        "traffic.receiver" => json!({ "anyOf": [{ "const": "random" }, { "type": "integer", "minimum": 0 }] }),
        _ => match info.key.form {
            Form::Bool => json!({ "type": "boolean" }),
            Form::Int => number("integer", info.key.range),
            Form::Float => number("number", info.key.range),
            Form::Time => text("([pnuµm]?[sS]|[PNUM][sS])"),
            Form::Rate => text("[KMGTkmgt]?[bB][pP][sS]"),
            Form::Bytes => json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, text("([KMGTkmgt][iI]?)?[bB]?")] }),
            Form::Choice(words) => json!({ "enum": words }),
            Form::Text => json!({ "type": "string" }),
            Form::List => {
                json!({ "anyOf": [{ "type": "array", "items": { "type": "string" } }, { "type": "string" }] })
            }
        },
    };
    if info.key.optional {
        value = json!({ "anyOf": [value, { "enum": OFF_WORDS }] });
    }
    value["description"] = json!(info.key.text());
    value["default"] = match info.default.strip_prefix('"') {
        Some(text) => json!(text.trim_end_matches('"')),
        None => serde_json::from_str(&info.default).unwrap_or(Value::Null),
    };
    value
}

/// A number, from 0 unless its range says otherwise.
fn number(kind: &str, range: Option<(f64, f64)>) -> Value {
    let bound = |x: f64| if kind == "integer" { json!(x as u64) } else { json!(x) };
    let (least, most) = range.unwrap_or((0.0, f64::INFINITY));
    let mut value = json!({ "type": kind, "minimum": bound(least) });
    if most.is_finite() {
        value["maximum"] = bound(most);
    }
    value
}

fn graph() -> Value {
    let text = |keys: &[&str]| -> Map<String, Value> {
        keys.iter().map(|key| (key.to_string(), json!({ "type": "string" }))).collect()
    };
    let mut switch = text(&["name"]);
    switch.insert("tier".into(), json!({ "type": "integer", "minimum": 0, "maximum": 255 }));
    let list = |members: Map<String, Value>| json!({ "type": "array", "items": object(members) });
    let mut graph = Map::new();
    graph.insert("hosts".into(), json!({ "type": "integer", "minimum": 2 }));
    graph.insert("switches".into(), list(switch));
    graph.insert("links".into(), list(text(&["a", "b", "rate", "delay"])));
    object(graph)
}

fn sizes() -> Value {
    let names: Vec<&str> = BUILTIN.iter().map(|b| b.name).collect();
    let pair = json!({ "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 });
    let shape = json!({ "enum": ["linear", "steps"] });
    json!({ "anyOf": [
        { "enum": names },
        { "type": "string" },
        { "type": "integer", "minimum": 1 },
        { "type": "object", "properties": { "file": { "type": "string" }, "interpolation": shape },
          "required": ["file"], "additionalProperties": false },
        { "type": "object", "properties": { "points": { "type": "array", "items": pair }, "interpolation": shape },
          "required": ["points"], "additionalProperties": false },
    ] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_kind_is_in_the_schema() {
        let text = schema().to_string();
        for place in places() {
            for kind in place.kinds {
                assert!(text.contains(&format!("{{\"const\":\"{}\"}}", kind.mechanism.kind)));
                for key in kind.keys {
                    let leaf = key.name.rsplit('.').next().unwrap_or("").to_string();
                    assert!(text.contains(&format!("\"{leaf}\":{{")), "{}", key.path);
                }
            }
        }
        let schema = schema();
        assert_eq!(schema["properties"]["seed"]["default"], json!(1));
        assert_eq!(
            schema["properties"]["topology"]["oneOf"][0]["properties"]["host-link"]["properties"]["rate"]["default"],
            "10Gbps"
        );
        assert_eq!(schema["additionalProperties"], json!(false));
    }
}
