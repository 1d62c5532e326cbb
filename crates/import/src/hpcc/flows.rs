//! The flow file: how many flows there are, and a line a flow, `source destination priority-group
//! port bytes seconds`, in ConWeave's fork without the port. What follows is not read, there as
//! here.

use millpond_core::Time;

use super::topology::Topology;
use crate::source::{Source, Words};
use crate::units::{seconds, us_text};
use crate::{Imported, Result};

/// The list of flows.
pub(super) struct Flows {
    pub csv: String,
    /// When the first one starts there: the beginning here.
    pub begin: Time,
    /// Whether they have several priority groups.
    pub several_groups: bool,
}

/// A flow: its start, source, destination and size.
type Flow = (Time, u32, u32, u64);

/// Reads it.
pub(super) fn read(source: &Source, topology: &Topology, imported: &mut Imported) -> Result<Flows> {
    let mut words = source.words();
    let count = words.whole("the number of flows")?;
    let mut flows: Vec<Flow> = Vec::new();
    let mut groups: Vec<u64> = Vec::new();
    for at in 1..=count {
        let (flow, group) = flow(source, topology, &mut words, &format!("flow {at} of {count}"))?;
        if !groups.contains(&group) {
            groups.push(group);
        }
        flows.push(flow);
    }
    if flows.is_empty() {
        return Err(source.wrong(1, "there are no flows"));
    }
    let rest = words.lines_left();
    if rest > 0 {
        imported
            .facts
            .push(format!("{}: {rest} lines behind the last of the {count} flows are not read, as there", source.name));
    }
    let begin = flows.iter().map(|flow| flow.0).min().unwrap_or_default();
    let mut csv = String::from("start_us,src,dst,bytes\n");
    for (start, src, dst, bytes) in &flows {
        csv += &format!("{},{src},{dst},{bytes}\n", us_text(start.saturating_sub(begin)));
    }
    let bytes: u128 = flows.iter().map(|flow| u128::from(flow.3)).sum();
    imported.facts.push(format!(
        "{count} flows of {:.3} GB in all; the first one's start, {begin} there, is zero here",
        bytes as f64 / 1e9
    ));
    Ok(Flows { csv, begin, several_groups: groups.len() > 1 })
}

/// One flow: its start, hosts and size, with its priority group.
fn flow(source: &Source, topology: &Topology, words: &mut Words<'_>, what: &str) -> Result<(Flow, u64)> {
    let fields = words.left_in_line();
    let (line, src) = words.next(what)?;
    if !(5..=6).contains(&fields) {
        let text = format!(
            "{what}: expected source, destination, priority group, port (not in ConWeave's), bytes and start, found {fields} values"
        );
        return Err(source.wrong(line, text));
    }
    let host = |word: &str| -> Result<(u32, u32)> {
        let number = source.whole((line, word), what)?;
        let host = u32::try_from(number).ok().and_then(|node| Some((node, *topology.network.hosts.get(&node)?)));
        let is_switch = u32::try_from(number).is_ok_and(|node| topology.network.switches.contains_key(&node));
        host.ok_or_else(|| {
            let what =
                if is_switch { "is a switch, and sends and receives no flows" } else { "is no host of the topology" };
            source.wrong(line, format!("node {number} {what}"))
        })
    };
    let (src, dst) = (host(src)?, host(words.next(what)?.1)?);
    if src == dst {
        return Err(source.wrong(line, format!("host {} sends to itself", src.0)));
    }
    let shared = |of: &u32| topology.nvswitches.get(&src.0).is_some_and(|list| list.contains(of));
    if topology.nvswitches.get(&dst.0).is_some_and(|list| list.iter().any(shared)) {
        let text = format!("the way from {} to {} is an NVSwitch, which is not modelled", src.0, dst.0);
        return Err(source.wrong(line, text));
    }
    let group = words.whole("the priority group")?;
    if fields == 6 {
        words.whole("the port")?;
    }
    // ConWeave's fork sends a byte where the file says none.
    let bytes = words.whole("the size in bytes")?.max(u64::from(fields == 5));
    if bytes == 0 || bytes > 1 << 48 {
        return Err(source.wrong(line, format!("{bytes} bytes is no size of a flow")));
    }
    let start = words.next("the start in seconds")?.1;
    let start = seconds(start)
        .ok_or_else(|| source.wrong(line, format!("start: {start:?} is not a time in seconds, from 0")))?;
    Ok(((start, src.1, dst.1, bytes), group))
}
