//! The identity of a scenario: what decides a run beside its seed, as a hash.
//!
//! It is taken of the resolved scenario without the keys that have their default, so a new key
//! whose default changes nothing leaves the identities of all scenarios as they were. A default
//! that is changed changes results, and so `millpond_core::RESULTS`.
//!
//! Invariant: two scenarios of one identity give the same runs; description, numbers that are shown
//! and seed have no part in it.

use crate::catalogue::{KeyInfo, places, tables};
use crate::plan::Plan;
use millpond_core::random::hash_name;
use std::collections::HashMap;
use std::sync::LazyLock;
use toml::{Table, Value};

/// Keys that change no run, and the seed.
const APART: [&str; 3] = ["about", "seed", "shows"];

/// By the path of a table and the kind in it (empty without one): each key's default.
type Defaults = HashMap<(&'static str, &'static str), HashMap<String, Value>>;

static DEFAULTS: LazyLock<Defaults> = LazyLock::new(|| {
    let values = |keys: Vec<KeyInfo>| {
        let value = |key: KeyInfo| {
            let text: Table = toml::from_str(&format!("it = {}", key.default)).ok()?;
            Some((key.name, text.get("it")?.clone()))
        };
        keys.into_iter().filter_map(value).collect::<HashMap<_, _>>()
    };
    let mut defaults = Defaults::new();
    for table in tables() {
        defaults.insert((table.path, ""), values(table.keys));
    }
    for place in places() {
        for kind in place.kinds {
            defaults.insert((place.place.path, kind.mechanism.kind), values(kind.keys));
        }
    }
    defaults
});

/// The place whose kinds a table has: a NIC has those of a switch, a traffic that of hosts.
fn place_of(path: &str) -> String {
    match path.strip_prefix("host.nic.") {
        Some(leaf @ ("buffer" | "marking")) => format!("switch.{leaf}"),
        _ if path == "traffic.transport" => "transport".to_string(),
        _ => path.to_string(),
    }
}

/// Removes the keys of a table that have their default.
fn strip(table: &mut Table, path: &str, group: &str) {
    let path = &*place_of(path);
    let kind = table.get("kind").and_then(Value::as_str).unwrap_or_default().to_string();
    let of_kind = DEFAULTS.get(&(path, kind.as_str()));
    let of_table = DEFAULTS.get(&(path, ""));
    table.retain(|name, value| {
        let name = if group.is_empty() { name.to_string() } else { format!("{group}.{name}") };
        let default = [of_kind, of_table].into_iter().flatten().find_map(|keys| keys.get(&name));
        if default == Some(value) {
            return false;
        }
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match value {
            // A group of keys is none of its own tables.
            Value::Table(inner) if !inner.contains_key("kind") && !is_table(&below) => {
                strip(inner, path, &name);
                return !inner.is_empty();
            }
            Value::Table(inner) => strip(inner, &below, ""),
            Value::Array(items) => {
                let tables = items.iter_mut().filter_map(Value::as_table_mut);
                tables.for_each(|inner| strip(inner, &below, ""));
            }
            _ => {}
        }
        true
    });
}

fn is_table(path: &str) -> bool {
    DEFAULTS.keys().any(|(known, _)| *known == path || known.starts_with(&format!("{path}.")))
}

/// The identity of a resolved scenario, in 16 hexadecimal digits.
pub fn identity(resolved: &str) -> String {
    let bare = match toml::from_str::<Table>(resolved) {
        Ok(mut table) => {
            APART.iter().for_each(|key| drop(table.remove(*key)));
            strip(&mut table, "", "");
            serde_json::to_string(&table).unwrap_or_default()
        }
        Err(_) => resolved.to_string(),
    };
    format!("{:016x}", hash_name(&bare))
}

impl Plan {
    /// The hash of all that decides its runs beside the seed, in 16 hexadecimal digits.
    pub fn identity(&self) -> String {
        identity(&self.resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    const TEXT: &str = "name = \"s\"\nduration = \"1ms\"\n[topology]\nkind = \"leaf-spine\"\n\
        leaves = 2\nspines = 2\nhosts-per-leaf = 2\n[host]\nmtu = 1500\n[[traffic]]\n\
        kind = \"incast\"\ndegree = 2\nresponse = \"10KB\"\nrate = 1000\n";

    fn identity_with(set: &[(&str, &str)]) -> String {
        let set: Vec<_> = set.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        let scenario = Scenario::parse("s.toml", TEXT).unwrap();
        scenario.plan(None, &set, Some(1)).unwrap().identity()
    }

    /// A key that an earlier program did not have is a line less of its resolved text.
    #[test]
    fn a_key_at_its_default_is_no_part_of_it() {
        let plan = Scenario::parse("s.toml", TEXT).unwrap().plan(None, &[], Some(1)).unwrap();
        let mut lines: Vec<&str> = plan.resolved.lines().collect();
        let before = lines.len();
        let starts = ["frame-overhead =", "memory =", "stack-delay =", "about =", "seed ="];
        lines.retain(|line| starts.iter().all(|start| !line.starts_with(start)));
        assert_eq!(before - lines.len(), starts.len());
        let text = lines.join("\n").replace(", interrupt-throttle = \"10us\"", "");
        assert_ne!(text, lines.join("\n"));
        assert_eq!(identity(&text), plan.identity());
    }

    #[test]
    fn every_other_value_is() {
        let plain = identity_with(&[]);
        assert_eq!(identity_with(&[("host.mtu", "1500")]), plain);
        let changes = [
            ("host.mtu", "9000"),
            ("host.nic.interrupt-throttle", "20us"),
            ("topology.host-link.delay", "3us"),
            ("switch.buffer.size", "50KB"),
            ("switch.path.kind", "power-of-n"),
            ("transport.min-rto", "1ms"),
            ("traffic.incast.degree", "3"),
            ("engine.ports", "general"),
        ];
        let mut all: Vec<String> = changes.iter().map(|change| identity_with(&[*change])).collect();
        all.push(plain);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), changes.len() + 1);
    }
}
