//! The keys of the configurations of HPCC's family, in one table: those of HPCC's released
//! simulator, of TLT's and ConWeave's forks of it, and of SimAI's backend, which also accepts most
//! of them by their names in ns-3.

use millpond_scenario::built_in;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// A whole number, or true or false.
    Whole,
    /// A number.
    Number,
    /// A data rate of ns-3.
    Rate,
    /// A word.
    Word,
    /// How many pairs follow, and the pairs of a rate and a number.
    Map,
    /// A time and two nodes.
    Down,
}

/// The part that decides what becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    /// The importer reads it.
    Read,
    /// It is a parameter of one congestion control or of queue pairs: `transport.rs` has it in a
    /// table.
    Transport,
    /// It names what the simulator writes, and where.
    Output,
    /// It has no effect there.
    Unused,
    /// It is not modelled, unless it has the key's value.
    Unless,
}

/// A key.
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

/// Keys of one part.
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

/// The table.
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

/// The key of a name.
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
