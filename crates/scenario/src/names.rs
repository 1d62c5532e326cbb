//! Names of the field that are no name of a key or a kind here: what they are called in a scenario,
//! or what comes nearest.
//!
//! `millpond explain` finds them, and where one is written as a kind or as a key, the error has
//! the same text.
//!
//! Invariant: what a line sends the reader on to exists.

use crate::toml_text::built_in;
use serde::Deserialize;
use std::sync::LazyLock;

/// One thing with the names that people give it.
#[derive(Deserialize)]
pub(crate) struct Name {
    /// All its names, in lower case with dashes.
    pub names: Vec<String>,
    /// Where somebody would write it as a kind; empty: it is no kind.
    #[serde(default)]
    pub place: String,
    pub advice: String,
    /// The text that `explain` goes on with; empty: nothing.
    #[serde(default)]
    pub see: String,
}

pub(crate) static NAMES: LazyLock<Vec<Name>> =
    LazyLock::new(|| built_in("names.toml", include_str!("names.toml")));

/// A name as it is written here.
fn normal(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', ' '], "-")
}

/// All that goes by a name.
pub(crate) fn named(name: &str) -> impl Iterator<Item = &'static Name> {
    let name = normal(name);
    NAMES.iter().filter(move |n| n.names.contains(&name))
}

/// The text to write in the place of a kind that is not there.
pub(crate) fn instead_of_kind(place: &str, kind: &str) -> Option<&'static str> {
    // A place of a NIC or of a traffic has its own path, and the same kinds.
    let leaf = |path: &str| path.rsplit('.').next().unwrap_or(path).to_string();
    let mut found: Vec<&Name> = named(kind).collect();
    found.sort_by_key(|n| (n.place != place, leaf(&n.place) != leaf(place), n.place.is_empty()));
    found.first().filter(|n| !n.place.is_empty()).map(|n| n.advice.as_str())
}

/// The text to write in the place of a key that is not there.
pub(crate) fn instead_of_key(key: &str) -> Option<&'static str> {
    named(key).find(|n| n.place.is_empty()).map(|n| n.advice.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::places;
    use crate::explain::explain;

    #[test]
    fn every_line_leads_somewhere() {
        for name in NAMES.iter() {
            assert!(name.names.iter().all(|n| *n == normal(n)), "{:?}", name.names);
            assert!(name.see.is_empty() || explain(&name.see).is_ok(), "{}", name.see);
            let Some(place) = places().into_iter().find(|p| p.place.path == name.place) else {
                assert!(name.place.is_empty(), "{} is no place", name.place);
                continue;
            };
            let shadowed =
                place.kinds.iter().find(|kind| name.names.iter().any(|n| n == kind.mechanism.kind));
            assert!(
                shadowed.is_none(),
                "{} is built",
                shadowed.map_or("", |kind| kind.mechanism.kind)
            );
        }
    }

    #[test]
    fn a_name_means_what_its_place_makes_of_it() {
        assert!(instead_of_kind("switch.queue", "pfabric").unwrap().contains("srpt"));
        assert!(instead_of_kind("transport", "pfabric").unwrap().contains("remaining-bytes"));
        for name in ["no congestion control", "fixed rate", "rate limit"] {
            assert!(explain(name).unwrap().contains("max-rate"), "{name}");
        }
        assert!(instead_of_kind("switch.path", "DRILL(d,m)").unwrap().contains("memory = m"));
        assert!(instead_of_kind("host.nic.marking", "wred").unwrap().contains("kind = \"red\""));
        assert_eq!(instead_of_kind("switch.path", "rto"), None);
        assert!(instead_of_key("bandwidth").unwrap().contains("topology.host-link.rate"));
    }
}
