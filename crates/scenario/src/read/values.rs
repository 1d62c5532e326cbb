//! Values of the tree as values for keys.

use crate::error::meant;
use crate::keys::{OFF_WORDS, form_text, key_text};
use crate::tree::{Datum, Entry, Node};
use millpond_core::params::{Form, Key, Value};
use millpond_core::switch::site::AUTO;
use millpond_core::{Bytes, Rate, Time};

/// A value of the tree as a value for a key, or what is wrong with it.
pub(super) fn value_of(key: &Key, node: &Node) -> Result<Value, String> {
    let bad_unit = |e: millpond_core::units::UnitError| e.to_string();
    Ok(match &node.datum {
        Datum::Bool(b) => Value::Bool(*b),
        Datum::Int(i) if *i < 0 => {
            return Err(format!("{i} is negative; expected {}", key_text(key)));
        }
        Datum::Int(i) => Value::Int(u64::try_from(*i).map_err(|_| format!("{i} is too large"))?),
        Datum::Float(x) => Value::Float(*x),
        Datum::Text(text) => match key.form {
            Form::Choice(words) if words.contains(&text.as_str()) => Value::Text(text.clone()),
            _ if key.optional && OFF_WORDS.contains(&text.as_str()) => Value::Off,
            _ if key.auto && text == AUTO => Value::Text(text.clone()),
            Form::Choice(words) => {
                let (form, near) = (form_text(key.form), meant(text, words.iter().copied()));
                return Err(format!("expected {form}, found {text:?}{near}"));
            }
            Form::Time => Value::Time(text.parse::<Time>().map_err(bad_unit)?),
            Form::Bytes => Value::Bytes(text.parse::<Bytes>().map_err(bad_unit)?),
            Form::Rate => Value::Rate(text.parse::<Rate>().map_err(bad_unit)?),
            _ => Value::Text(text.clone()),
        },
        Datum::Array(items) if key.form == Form::List => {
            let text = |node: &Node| match &node.datum {
                Datum::Text(text) => Ok(text.clone()),
                Datum::Int(number) => Ok(number.to_string()),
                _ => Err(format!("expected a text, found {}", node.describe())),
            };
            Value::List(items.iter().map(text).collect::<Result<_, _>>()?)
        }
        Datum::Table(table) if key.tiered => {
            let amount = |entry: &Entry| {
                let value = value_of(&Key { tiered: false, rated: false, ..*key }, &entry.node);
                value
                    .map(|value| (entry.key.clone(), value))
                    .map_err(|message| format!("{}: {message}", entry.key))
            };
            Value::Tiers(table.entries.iter().map(amount).collect::<Result<_, _>>()?)
        }
        Datum::Array(_) | Datum::Table(_) | Datum::Date => {
            return Err(format!("expected {}, found {}", key_text(key), node.describe()));
        }
    })
}

/// The size of ports whose packets are counted: off, where a count is given.
pub(super) fn counted(packets: &Value) -> Option<Value> {
    match packets {
        Value::Off => None,
        Value::Tiers(tiers) => {
            let counted = tiers.iter().filter(|(_, packets)| *packets != Value::Off);
            Some(Value::Tiers(counted.map(|(tier, _)| (tier.clone(), Value::Off)).collect()))
        }
        _ => Some(Value::Off),
    }
}
