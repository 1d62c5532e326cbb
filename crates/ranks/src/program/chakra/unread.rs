//! Contents of traces that a run does not follow, each with the first node that has it.
//!
//! Invariant: each is a note once, whatever the number of its nodes.

use super::super::{Action, RankProgram};
use super::message::{Node, kind};
use std::collections::BTreeMap;

/// Attributes that are read; of computations these two only where there is no duration.
const READ: [&str; 10] = [
    "is_cpu_op",
    "comm_type",
    "comm_size",
    "comm_src",
    "comm_dst",
    "comm_tag",
    "pg_name",
    "involved_dim",
    "num_ops",
    "tensor_size",
];
/// Attributes that would change times, and how.
const EFFECTS: [(&str, &str); 2] = [
    ("comm_priority", "the lowest id goes first, whatever its priority"),
    (START, "nodes begin when those that they wait for have ended"),
];
/// The field of `start_us`.
const START: &str = "start_time_micros";
/// So many attributes without an effect are named.
const NAMED: usize = 6;

/// Where something was first met, and how often.
#[derive(Debug)]
struct Met {
    place: String,
    count: u64,
}

/// Things met that are not followed, by name.
#[derive(Debug, Default)]
pub(super) struct Unread(BTreeMap<String, Met>);

impl Unread {
    pub fn add(&mut self, file: &str, node: &Node) {
        let attributes = node.attributes.iter().map(|attribute| attribute.name.as_str());
        let starts = (node.start_us > 0).then_some(START);
        let gives = (node.outputs.is_some()).then_some("outputs");
        let takes = (node.inputs.is_some() && node.kind != kind::METADATA).then_some("inputs");
        for name in attributes.chain(starts).chain(gives).chain(takes) {
            if READ.contains(&name) {
                continue;
            }
            if let Some(met) = self.0.get_mut(name) {
                met.count += 1;
                continue;
            }
            let place = format!("{file}: node {} {:?}", node.id, node.name);
            self.0.insert(name.into(), Met { place, count: 1 });
        }
    }

    /// A note for each that would change times, and one for all others.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for (name, effect) in EFFECTS {
            if let Some(Met { place, count }) = self.0.get(name) {
                let nodes = if *count == 1 { "node" } else { "nodes" };
                notes.push(format!("{place}: {name} ({count} {nodes}) is not followed: {effect}"));
            }
        }
        let others: Vec<_> =
            self.0.iter().filter(|(name, _)| EFFECTS.iter().all(|(own, _)| own != name)).collect();
        if let Some((_, Met { place, .. })) = others.first() {
            let names: Vec<_> = others.iter().take(NAMED).map(|(name, _)| name.as_str()).collect();
            let more = match others.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} others"),
            };
            let names = names.join(", ");
            notes.push(format!("{place}: not read, and without effect on times: {names}{more}"));
        }
        notes
    }
}

/// A note on messages that no rank receives; each passes the network, and its send ends.
pub(super) fn never_received(programs: &[(&str, &RankProgram)]) -> Option<String> {
    let mut left: BTreeMap<(u32, u32, u32), Vec<(u32, u32)>> = BTreeMap::new();
    let operations = || {
        (0..).zip(programs).flat_map(|(rank, (_, program))| {
            (0..).zip(&program.operations).map(move |(number, work)| (rank, number, work))
        })
    };
    for (rank, number, work) in operations() {
        if let Action::Send { to } = work.action {
            left.entry((rank, to, work.tag)).or_default().push((rank, number));
        }
    }
    for (rank, _, work) in operations() {
        if let Action::Receive { from } = work.action {
            left.get_mut(&(from, rank, work.tag)).and_then(Vec::pop);
        }
    }
    let sends = || left.values().flatten();
    let (rank, number) = *sends().next()?;
    let (file, program) = programs[rank as usize];
    let (name, count) = (program.name(number), sends().count());
    Some(format!("{file}: {name}: no rank receives this message ({count} in all)"))
}
