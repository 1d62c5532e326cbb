//! The keys of the configurations of HPCC's family, in one table: those of HPCC's released
//! simulator, of TLT's and ConWeave's forks of it, and of SimAI's backend, which also accepts most
//! of them by their names in ns-3.

use millpond_scenario::built_in;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// A whole number, or true or false.
    Whole,
    Number,
    /// A data rate of ns-3.
    Rate,
    Word,
    /// How many pairs follow, and the pairs of a rate and a number.
    Map,
    Down,
}

/// The part that decides what becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    Read,
    /// It is a parameter of one congestion control or of queue pairs: `transport.rs` has it in a
    /// table.
    Transport,
    /// It names what the simulator writes, and where.
    Output,
    Unused,
    /// It is not modelled, unless it has the key's value.
    Unless,
}

#[derive(Clone, Debug)]
pub(super) struct Key {
    /// Its name, and others that it has.
    pub names: Vec<String>,
    pub form: Form,
    pub part: Part,
    /// The only value that is modelled; empty: none is.
    pub value: String,
    /// Why it has no effect, or what it means that it is not modelled.
    pub means: String,
}

impl Key {
    pub fn name(&self) -> &str {
        &self.names[0]
    }
}

#[derive(Deserialize)]
struct Group {
    part: Part,
    #[serde(default)]
    value: String,
    #[serde(default)]
    means: String,
    #[serde(flatten)]
    keys: BTreeMap<Form, Vec<String>>,
}

pub(super) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let groups: Vec<Group> = built_in("keys.toml", include_str!("keys.toml"));
    let keys = groups.into_iter().flat_map(|Group { part, value, means, keys }| {
        let lines = keys
            .into_iter()
            .flat_map(|(form, lines)| lines.into_iter().map(move |line| (form, line)));
        lines.map(move |(form, line)| {
            let names = line.split(' ').map(String::from).collect();
            Key { names, form, part, value: value.clone(), means: means.clone() }
        })
    });
    keys.collect()
});

pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.names.iter().any(|own| own == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_key() {
        let names: Vec<&String> = KEYS.iter().flat_map(|key| &key.names).collect();
        let once: std::collections::BTreeSet<&String> = names.iter().copied().collect();
        assert_eq!(names.len(), once.len());
    }
}
