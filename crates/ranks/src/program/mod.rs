//! Rank programs: what each rank of a job computes, sends and receives, and in which order.
//!
//! A program is a graph of operations for each rank. An operation may begin when those that it
//! requires have ended, or have begun. [`read`] reads GOAL, the form of LogGOPSim and its Schedgen,
//! as text or binary, [`simai`] SimAI's layers, and [`chakra`] execution traces. An [`Executor`]
//! runs one rank over any network; [`ideal`] runs all ranks over LogGOPS' network.
//!
//! Invariant: a program that was read has ranks 0 to n − 1, peers that are ranks, and no cycles.

mod binary;
mod call;
mod carrier;
pub mod chakra;
mod check;
mod executor;
mod ideal;
mod matching;
pub mod simai;
mod text;

pub use call::{Call, Groups};
pub use carrier::{Carrier, Costs, Piece, Unmatched};
pub use executor::{Event, Executor, Moment};
pub use ideal::{Network, ideal};
pub use matching::Arrival;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A rank, or a tag, that stands for any.
pub const ANY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends bytes to a rank.
    Send {
        to: u32,
    },
    /// Receives a message from a rank, or from [`ANY`].
    Receive {
        from: u32,
    },
    Compute,
    /// Does a collective with the other ranks of its group.
    Collective {
        call: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub action: Action,
    /// Bytes; of a computation nanoseconds.
    pub size: u64,
    /// The tag of a message; [`ANY`] where a receive takes any. Of a collective its number: ranks
    /// of a group meet in the collectives of the same number.
    pub tag: u32,
    pub cpu: u8,
    pub nic: u8,
    /// How many others it waits for.
    pub waits: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankProgram {
    pub operations: Vec<Operation>,
    /// By operation: its label, where the text has one; empty without labels.
    pub labels: Vec<String>,
    /// By operation: where its successors begin in `edges`, those after its end and those after its
    /// beginning.
    first: Vec<[u32; 2]>,
    edges: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// By rank; ranks that do the same share one.
    pub ranks: Vec<Arc<RankProgram>>,
    pub calls: Vec<Call>,
    /// The divisions of ranks that calls name.
    pub groups: Vec<Groups>,
    /// Whether the sends and collectives of a rank go one at a time, in the order of operations.
    pub one_at_a_time: bool,
    /// By rank with a send on another NIC than 0: the highest number, and the line or operation of
    /// the first such send.
    pub nics: BTreeMap<u32, (u8, String)>,
    /// Demands of the file that a run does not follow: place, key, and the likely effect.
    pub notes: Vec<String>,
}

impl Program {
    /// An operation of a rank is at this place of the file.
    fn note_nic(&mut self, rank: u32, operation: &Operation, place: impl FnOnce() -> String) {
        let is_send = matches!(operation.action, Action::Send { .. });
        let highest = self.nics.get(&rank).map_or(0, |(nic, _)| *nic);
        if is_send && operation.nic > highest {
            self.nics.insert(rank, (operation.nic, place()));
        }
    }

    /// How many NICs of a rank its sends name; 1 where none names any but 0.
    pub fn nics(&self) -> u32 {
        1 + u32::from(self.nics.values().map(|(nic, _)| *nic).max().unwrap_or(0))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ProgramError {
    /// Where: a line of the text, a byte of the binary, or a rank.
    pub place: String,
    pub message: String,
}

impl ProgramError {
    fn at(place: impl Into<String>, message: impl Into<String>) -> ProgramError {
        ProgramError { place: place.into(), message: message.into() }
    }
}

/// Reads a program in GOAL's binary form, if it begins as one, else in its text form.
///
/// # Errors
/// The first thing that is wrong, with its line or byte; or a cycle, with the rank and the labels
/// of its operations.
pub fn read(bytes: &[u8]) -> Result<Program, ProgramError> {
    let program = match binary::is_binary(bytes) {
        true => binary::read(bytes)?,
        false => {
            let text = std::str::from_utf8(bytes).map_err(|error| {
                let place = format!("byte {}", error.valid_up_to());
                ProgramError::at(place, "neither GOAL's binary form nor UTF-8 text")
            })?;
            text::read(text)?
        }
    };
    check::check(&program)?;
    Ok(program)
}

impl RankProgram {
    /// A rank's operations, with edges: the waiting one, the awaited one, and whether its beginning
    /// is enough.
    fn new(
        mut operations: Vec<Operation>,
        labels: Vec<String>,
        waits: &[(u32, u32, bool)],
    ) -> RankProgram {
        let mut order: Vec<(u32, bool, u32)> = waits
            .iter()
            .map(|(waiting, awaited, is_begin)| (*awaited, *is_begin, *waiting))
            .collect();
        order.sort_by_key(|(awaited, is_begin, _)| (*awaited, *is_begin));
        let mut first = Vec::with_capacity(operations.len() + 1);
        let mut at = 0;
        for operation in 0..operations.len() as u32 {
            let count = |is_begin: bool| {
                order[at..]
                    .iter()
                    .take_while(|edge| (edge.0, edge.1) <= (operation, is_begin))
                    .count()
            };
            let ends = count(false);
            let both = count(true);
            first.push([at as u32, (at + ends) as u32]);
            at += both;
        }
        first.push([at as u32, at as u32]);
        operations.iter_mut().for_each(|operation| operation.waits = 0);
        for (waiting, ..) in waits {
            operations[*waiting as usize].waits += 1;
        }
        let edges = order.into_iter().map(|(.., waiting)| waiting).collect();
        RankProgram { operations, labels, first, edges }
    }

    /// Operations that wait for the end of one.
    pub fn after_end(&self, operation: u32) -> &[u32] {
        let [from, to] = self.first[operation as usize];
        &self.edges[from as usize..to as usize]
    }

    /// Operations that wait for the beginning of one.
    pub fn after_begin(&self, operation: u32) -> &[u32] {
        let (from, to) = (self.first[operation as usize][1], self.first[operation as usize + 1][0]);
        &self.edges[from as usize..to as usize]
    }

    /// An operation for a reader: its label, or its number, and what it does.
    pub fn name(&self, operation: u32) -> String {
        let Operation { action, size, tag, .. } = self.operations[operation as usize];
        let any = |number: u32| match number {
            ANY => "-1".to_string(),
            number => number.to_string(),
        };
        let what = match action {
            Action::Send { to } => format!("send {size}b to {to} tag {}", any(tag)),
            Action::Receive { from } => format!("recv {size}b from {} tag {}", any(from), any(tag)),
            Action::Compute => format!("calc {size}"),
            Action::Collective { .. } => format!("collective of {size}b"),
        };
        let label = self.labels.get(operation as usize).filter(|label| !label.is_empty());
        match label {
            Some(label) => format!("{label} ({what})"),
            None => format!("operation {operation} ({what})"),
        }
    }
}

#[cfg(test)]
mod tests;
