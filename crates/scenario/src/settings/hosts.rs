//! Sets of hosts, and of other things with numbers.

use millpond_core::params::{Field, Form, Value, ValueError};

/// Hosts: all, or ranges of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostSet {
    All,
    /// From the first to the last of each pair.
    Ranges(Vec<(u32, u32)>),
}

impl Field for HostSet {
    const FORM: Form = Form::List;
    fn to_value(&self) -> Value {
        match self {
            HostSet::All => Value::Text("all".into()),
            HostSet::Ranges(list) => ranges_value(list),
        }
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        if matches!(value, Value::Text(text) if text == "all") {
            return Ok(HostSet::All);
        }
        let message = "expected \"all\", the number of a host, or hosts and ranges such as \
                       [\"0..7\", \"9\"] (both ends count)";
        ranges(value, "host").map(HostSet::Ranges).ok_or_else(|| ValueError(message.into()))
    }
}

/// Numbers and ranges of them ("0..7", both ends count), each of which may bear `word` before it
/// ("host3").
pub(crate) fn ranges(value: &Value, word: &str) -> Option<Vec<(u32, u32)>> {
    let number =
        |text: &str| text.trim().strip_prefix(word).unwrap_or(text.trim()).parse::<u32>().ok();
    let range = |text: &str| match text.split_once("..") {
        Some((a, b)) => Some((number(a)?, number(b)?)),
        None => number(text).map(|n| (n, n)),
    };
    match value {
        Value::Int(n) => u32::try_from(*n).ok().map(|n| vec![(n, n)]),
        Value::Text(text) => text.split(',').map(range).collect(),
        Value::List(list) => list.iter().map(|text| range(text)).collect(),
        _ => None,
    }
}

/// Numbers and ranges as a scenario has them.
pub(crate) fn ranges_value(list: &[(u32, u32)]) -> Value {
    let text = |(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}..{b}") };
    Value::List(list.iter().map(text).collect())
}

impl HostSet {
    /// Its hosts of the first `hosts`, in ascending order; `None`: all. An error where it names one
    /// that there is not.
    pub(crate) fn members(&self, hosts: u32) -> Result<Option<Vec<u32>>, String> {
        let HostSet::Ranges(ranges) = self else { return Ok(None) };
        for (from, to) in ranges {
            if to < from {
                return Err(format!("{from}..{to} runs backwards"));
            }
            if *to >= hosts {
                return Err(format!("{to} is no host; there are {hosts}, from 0"));
            }
        }
        Ok(Some(
            (0..hosts)
                .filter(|host| ranges.iter().any(|(from, to)| (from..=to).contains(&host)))
                .collect(),
        ))
    }
}
