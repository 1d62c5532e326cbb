//! Process groups: names of ordered ranks.
//!
//! PyTorch's traces have them as JSON in the inputs of a metadata node. ASTRA-sim has a file: an
//! object of names, each with its list of ranks.
//!
//! Invariant: a group that was read has ranks of the job, each of them once.

use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

pub(super) type Named = BTreeMap<String, Vec<u32>>;

/// Adds the groups that the inputs of a metadata node define; a node without any adds none.
pub(super) fn of_metadata(values: &str, ranks: u32, into: &mut Named) -> Result<(), String> {
    if !values.contains("pg_name") {
        return Ok(());
    }
    // The profiler's list has the JSON text as its only string.
    let (from, to) = (values.find("[{"), values.rfind("}]"));
    let text = from.zip(to).and_then(|(from, to)| values.get(from..to + 2));
    let text = text.ok_or("its inputs name process groups, but have no JSON list of them")?;
    let list: Vec<Json> = serde_json::from_str(text)
        .map_err(|error| format!("the process groups in its inputs are no JSON: {error}"))?;
    for group in &list {
        let name = match &group["pg_name"] {
            Json::String(name) => name.clone(),
            Json::Number(number) => number.to_string(),
            other => return Err(format!("a process group has the pg_name {other}")),
        };
        let listed = members(&name, &group["ranks"], ranks)?;
        // PyTorch leaves the list of the default group empty.
        let all = if listed.is_empty() { (0..ranks).collect() } else { listed };
        into.insert(name, all);
    }
    Ok(())
}

pub(super) fn of_file(bytes: &[u8], ranks: u32) -> Result<Named, String> {
    let wrong = |error| format!("expected a JSON object of group names, each with ranks: {error}");
    let groups: BTreeMap<String, Json> = serde_json::from_slice(bytes).map_err(wrong)?;
    groups
        .into_iter()
        .map(|(name, list)| {
            let listed = members(&name, &list, ranks)?;
            match listed.is_empty() {
                true => Err(format!("the group {name:?} has no ranks")),
                false => Ok((name, listed)),
            }
        })
        .collect()
}

/// The ranks of a group, in the list's order.
fn members(name: &str, list: &Json, ranks: u32) -> Result<Vec<u32>, String> {
    let list = list.as_array();
    let list = list.ok_or_else(|| format!("the group {name:?} has no list of ranks"))?;
    let mut seen = BTreeSet::new();
    list.iter()
        .map(|entry| {
            let rank = entry.as_u64().filter(|rank| *rank < u64::from(ranks)).ok_or_else(|| {
                format!("the group {name:?} has the rank {entry}; there are {ranks}, from 0")
            })? as u32;
            match seen.insert(rank) {
                true => Ok(rank),
                false => Err(format!("the group {name:?} has the rank {rank} twice")),
            }
        })
        .collect()
}
