//! A network as a list of hosts, switches and links.
//!
//! Invariant: an error names the place in the list (`links[3].b`).

use crate::error::suggestion;
use millpond_core::params::{Field, Form, Value, ValueError};
use millpond_core::{Rate, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeList {
    pub hosts: u32,
    /// By host: its number in the files that the network was imported from, which exports give
    /// back; empty: hosts have no other numbers.
    pub numbers: Vec<u32>,
    pub switches: Vec<SwitchEntry>,
    pub links: Vec<LinkEntry>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SwitchEntry {
    pub name: String,
    /// Its tier, where it is given.
    pub tier: Option<u8>,
}

/// One link of the list, each way the same.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkEntry {
    pub a: String,
    pub b: String,
    pub rate: Rate,
    pub delay: Time,
    /// Its own name, by which a failure or a capture can refer to it.
    pub name: Option<String>,
}

/// An edge list as a parameter: a table of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph(pub Option<Arc<EdgeList>>);

impl Field for Graph {
    const FORM: Form = Form::Text;
    const OPTIONAL: bool = true;
    fn to_value(&self) -> Value {
        if self.0.is_some() { Value::Text("graph".into()) } else { Value::Off }
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        match value {
            Value::Off => Ok(Graph(None)),
            _ => Err(ValueError(
                "expected a table { hosts = …, switches = […], links = […] }".into(),
            )),
        }
    }
}

impl EdgeList {
    /// Reads the JSON text of an edge list.
    ///
    /// # Errors
    /// The first error of the JSON's syntax, or the first node or link that has a missing, unknown
    /// or wrong member.
    pub fn parse(text: &str) -> Result<EdgeList, String> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        EdgeList::from_json(&value)
    }

    /// Reads a JSON value; a message names the place of what is wrong.
    pub(crate) fn from_json(value: &serde_json::Value) -> Result<EdgeList, String> {
        let top = Object::new(value, String::new(), &["hosts", "numbers", "switches", "links"])?;
        let hosts = top.get("hosts")?.as_u64().and_then(|n| u32::try_from(n).ok());
        let mut list = EdgeList {
            hosts: hosts.ok_or("hosts: expected a whole number")?,
            ..EdgeList::default()
        };
        if value.get("numbers").is_some() {
            let number = |item: &serde_json::Value| u32::try_from(item.as_u64()?).ok();
            let numbers = top.list("numbers")?.iter().map(number).collect::<Option<Vec<u32>>>();
            list.numbers = numbers.ok_or("numbers: expected whole numbers")?;
            let apart: BTreeSet<&u32> = list.numbers.iter().collect();
            if [list.numbers.len(), apart.len()] != [list.hosts as usize; 2] {
                return Err(format!("numbers: expected {} numbers, each once", list.hosts));
            }
        }
        for (i, item) in top.list("switches")?.iter().enumerate() {
            let object = Object::new(item, format!("switches[{i}]"), &["name", "tier"])?;
            let tier = match item.get("tier") {
                None => None,
                Some(tier) => {
                    let number = tier.as_u64().filter(|t| *t < 256);
                    Some(number.ok_or_else(|| {
                        format!("switches[{i}].tier: expected a number from 0 to 255")
                    })? as u8)
                }
            };
            list.switches.push(SwitchEntry { name: object.text("name")?, tier });
        }
        for (i, item) in top.list("links")?.iter().enumerate() {
            let object =
                Object::new(item, format!("links[{i}]"), &["a", "b", "rate", "delay", "name"])?;
            let rate = object.text("rate")?.parse().map_err(|e| format!("links[{i}].rate: {e}"))?;
            let delay =
                object.text("delay")?.parse().map_err(|e| format!("links[{i}].delay: {e}"))?;
            let name = item.get("name").map(|_| object.text("name")).transpose()?;
            list.links.push(LinkEntry {
                a: object.text("a")?,
                b: object.text("b")?,
                rate,
                delay,
                name,
            });
        }
        Ok(list)
    }
}

/// A JSON object with its place.
struct Object<'a> {
    value: &'a serde_json::Value,
    place: String,
}

impl<'a> Object<'a> {
    fn new(
        value: &'a serde_json::Value,
        place: String,
        keys: &[&str],
    ) -> Result<Object<'a>, String> {
        let object = Object { value, place };
        let map = value.as_object().ok_or_else(|| object.at("", "expected a table"))?;
        match map.keys().find(|key| !keys.contains(&key.as_str())) {
            None => Ok(object),
            Some(key) => {
                let help =
                    suggestion(key, keys).map(|help| format!(" ({help})")).unwrap_or_default();
                Err(object.at(key, &format!("unknown key{help}")))
            }
        }
    }
    fn at(&self, key: &str, message: &str) -> String {
        let dot = if self.place.is_empty() || key.is_empty() { "" } else { "." };
        let place = format!("{}{dot}{key}", self.place);
        if place.is_empty() { message.to_string() } else { format!("{place}: {message}") }
    }
    fn get(&self, key: &str) -> Result<&'a serde_json::Value, String> {
        self.value.get(key).ok_or_else(|| self.at(key, "is missing"))
    }
    fn text(&self, key: &str) -> Result<String, String> {
        let text = self.get(key)?.as_str();
        text.map(str::to_string).ok_or_else(|| self.at(key, "expected a text"))
    }
    fn list(&self, key: &str) -> Result<&'a Vec<serde_json::Value>, String> {
        self.get(key)?.as_array().ok_or_else(|| self.at(key, "expected a list"))
    }
}
