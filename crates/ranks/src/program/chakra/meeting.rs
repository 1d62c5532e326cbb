//! The collectives of all ranks, group by group.
//!
//! Invariant: the collectives of the same number in a group are the same at all of its ranks.

use super::super::{Action, Call, Groups, Program, ProgramError, RankProgram};
use super::Trace;
use super::node::Joined;
use crate::collective::{Collective, Operation as Op, algorithms};
use millpond_core::params::{Field, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// A group: its name, if it has one, and its ranks.
type Group = (Option<String>, Vec<u32>);

/// A group's collectives: by rank its operations, in the order of issue.
type Issued<'a> = BTreeMap<u32, Vec<(u32, &'a Joined)>>;

/// Gives each collective its number and its schedule.
pub(super) fn meet(mut traces: Vec<Trace<'_>>) -> Result<Program, ProgramError> {
    let ranks = traces.len() as u32;
    let collectives: Vec<Vec<(u32, Joined)>> =
        traces.iter_mut().map(|trace| std::mem::take(&mut trace.collectives)).collect();
    let mut groups: BTreeMap<Group, Issued<'_>> = BTreeMap::new();
    for (rank, (trace, own)) in (0..).zip(traces.iter().zip(&collectives)) {
        for (operation, joined) in in_order(&trace.program, own) {
            let key = (joined.group.clone(), joined.members.clone());
            groups.entry(key).or_default().entry(rank).or_default().push((operation, joined));
        }
    }
    for (group, issued) in &groups {
        agree(group, issued, &traces)?;
    }
    let mut program = Program { one_at_a_time: true, ..Program::default() };
    // By group and root, and by what a call is: their numbers.
    let mut divisions: BTreeMap<(&Group, u32), u32> = BTreeMap::new();
    let mut calls: BTreeMap<(u32, Op, u64), u32> = BTreeMap::new();
    for (group, issued) in &groups {
        for (rank, issued) in issued {
            for (number, (operation, joined)) in (0..).zip(issued) {
                let division = *divisions.entry((group, joined.root)).or_insert_with(|| {
                    program.groups.push(Groups::of(ranks, from_root(&group.1, joined.root)));
                    program.groups.len() as u32 - 1
                });
                let call = *calls.entry((division, joined.op, joined.bytes)).or_insert_with(|| {
                    let collective = schedule(joined, group.1.len() as u32);
                    program.calls.push(Call { collective, groups: division });
                    program.calls.len() as u32 - 1
                });
                let own = &mut traces[*rank as usize].program.operations[*operation as usize];
                (own.action, own.tag) = (Action::Collective { call }, number);
            }
        }
    }
    program.ranks = traces.into_iter().map(|trace| Arc::new(trace.program)).collect();
    Ok(program)
}

/// A group's ranks, the root first.
fn from_root(members: &[u32], root: u32) -> Vec<u32> {
    let others = members.iter().copied().filter(|rank| *rank != root);
    std::iter::once(root).chain(others).collect()
}

fn schedule(joined: &Joined, ranks: u32) -> Collective {
    Collective::plain(joined.op, algorithms(joined.op)[0], ranks, joined.bytes)
}

/// A rank's collectives in the order of issue: by dependencies, and by id where these leave it
/// open.
fn in_order<'a>(program: &RankProgram, own: &'a [(u32, Joined)]) -> Vec<(u32, &'a Joined)> {
    if own.is_empty() {
        return Vec::new();
    }
    let mut left: Vec<u32> = program.operations.iter().map(|operation| operation.waits).collect();
    let free = (0..left.len() as u32).filter(|at| left[*at as usize] == 0);
    let mut free: BinaryHeap<Reverse<u32>> = free.map(Reverse).collect();
    let mut order = Vec::with_capacity(own.len());
    while let Some(Reverse(at)) = free.pop() {
        if let Ok(found) = own.binary_search_by_key(&at, |(operation, _)| *operation) {
            order.push((at, &own[found].1));
        }
        for next in program.after_end(at) {
            left[*next as usize] -= 1;
            if left[*next as usize] == 0 {
                free.push(Reverse(*next));
            }
        }
    }
    order
}

/// Compares the collectives of a group between its ranks.
fn agree(group: &Group, issued: &Issued<'_>, traces: &[Trace<'_>]) -> Result<(), ProgramError> {
    let name = match &group.0 {
        Some(name) => format!("the group {name:?}"),
        None => "all ranks".to_string(),
    };
    let first = group.1[0];
    let none = Vec::new();
    let of = |rank: u32| issued.get(&rank).unwrap_or(&none);
    for rank in &group.1[1..] {
        let (own, other) = (of(*rank), of(first));
        let file = traces[*rank as usize].file;
        for (number, ((at, joined), (at_first, first_joined))) in (1..).zip(own.iter().zip(other)) {
            let is_same = (joined.op, joined.bytes, joined.root)
                == (first_joined.op, first_joined.bytes, first_joined.root);
            if !is_same {
                let node = traces[*rank as usize].program.name(*at);
                let node_first = traces[first as usize].program.name(*at_first);
                let text = format!(
                    "{node} is {}, collective {number} of {name}; rank {first} has {} there, \
                     {node_first}",
                    describe(joined),
                    describe(first_joined),
                );
                return Err(ProgramError::at(file, text));
            }
        }
        if own.len() != other.len() {
            let (longer, of_rank) =
                if own.len() > other.len() { (own, *rank) } else { (other, first) };
            let (at, _) = longer[own.len().min(other.len())];
            let text = format!(
                "rank {rank} has {} collectives of {name}, and rank {first} has {}; the first \
                 without a counterpart is {} of rank {of_rank}",
                own.len(),
                other.len(),
                traces[of_rank as usize].program.name(at),
            );
            return Err(ProgramError::at(file, text));
        }
    }
    Ok(())
}

fn describe(joined: &Joined) -> String {
    let word = match joined.op.to_value() {
        Value::Text(word) => word,
        _ => String::new(),
    };
    match joined.op {
        Op::Broadcast | Op::Reduce => {
            format!("a {word} of {}b with root {}", joined.bytes, joined.root)
        }
        Op::AllReduce | Op::AllGather | Op::AllToAll => format!("an {word} of {}b", joined.bytes),
        _ => format!("a {word} of {}b", joined.bytes),
    }
}
