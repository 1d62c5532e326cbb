//! Values as TOML.

use millpond_core::params::Value;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml_writer::{ToTomlValue, TomlStringBuilder};

/// The tables of the only list `[[…]]` of a text that is built in; `file` is its name.
pub fn built_in<T: Deserialize<'static>>(file: &str, text: &'static str) -> Vec<T> {
    let lists: Result<BTreeMap<String, Vec<T>>, _> = toml::from_str(text);
    lists.unwrap_or_else(|error| unreachable!("{file}: {error}")).into_values().flatten().collect()
}

pub(crate) fn quote(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
}

pub fn value_text(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(x) => format!("{x:?}"),
        Value::Time(t) => quote(&t.to_string()),
        Value::Bytes(b) => quote(&b.to_string()),
        Value::Rate(r) => quote(&r.to_string()),
        Value::Text(t) => quote(t),
        Value::List(list) => {
            format!("[{}]", list.iter().map(|t| quote(t)).collect::<Vec<_>>().join(", "))
        }
        Value::Tiers(tiers) => {
            let name = |name: &str| if name.contains('.') { quote(name) } else { name.to_string() };
            let pair = |(tier, v): &(String, Value)| format!("{} = {}", name(tier), value_text(v));
            let pairs: Vec<String> = tiers.iter().map(pair).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Off => "\"off\"".into(),
    }
}
