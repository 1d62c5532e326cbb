//! GOAL's binary form, as LogGOPSim's `txt2bin` writes it: little-endian, without alignment.
//!
//! A magic number; then, from byte 8 on which all offsets count, the number of ranks, the highest
//! cpu and nic, a table of each rank's begin and end, and the ranks: their roots, their operations
//! of 39 bytes each, and the operations' successors.
//!
//! Invariant: nothing is read beyond the bytes that there are, and memory is reserved for no more
//! than they hold.

use super::{ANY, Action, Operation, Program, ProgramError, RankProgram};
use std::sync::Arc;

/// The magic number at the beginning of a file.
const MAGIC: u64 = 4223;
/// The number that LogGOPSim leaves there after a run in place.
const RUN: u64 = 2342;
/// Bytes of an operation.
const OPERATION: u64 = 39;

/// Whether a file is one of these.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|first| {
        let magic = u64::from_le_bytes(*first);
        magic == MAGIC || magic == RUN
    })
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl Cursor<'_> {
    fn wrong(&self, message: impl Into<String>) -> ProgramError {
        ProgramError::at(format!("byte {}", self.at), message)
    }

    /// Takes a number of `N` bytes.
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ProgramError> {
        let from = usize::try_from(self.at).unwrap_or(usize::MAX);
        let found = self.bytes.get(from..).and_then(|rest| rest.first_chunk::<N>());
        let found = *found.ok_or_else(|| self.wrong("the file ends here"))?;
        self.at += N as u64;
        Ok(found)
    }

    fn byte(&mut self) -> Result<u8, ProgramError> {
        self.take::<1>().map(|[byte]| byte)
    }
    fn u32(&mut self) -> Result<u32, ProgramError> {
        self.take().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Result<u64, ProgramError> {
        self.take().map(u64::from_le_bytes)
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Program, ProgramError> {
    let mut head = Cursor { bytes, at: 0 };
    if head.u64()? == RUN {
        let text = "LogGOPSim has run this file in place, which spoils it: make it anew";
        return Err(ProgramError::at("byte 0", text));
    }
    let count = head.u32()?;
    let (_max_cpu, _max_nic) = (head.byte()?, head.byte()?);
    let mut program = Program::default();
    for rank in 0..count {
        let (begin, end) = (head.u64()?, head.u64()?);
        let size = bytes.len() as u64;
        let is_inside = begin <= end && end <= size - 8;
        if !is_inside {
            let text = format!("rank {rank} is at {begin} to {end}, outside of the file");
            return Err(head.wrong(text));
        }
        let own = one(bytes, begin + 8, end + 8, rank, count)?;
        for (number, operation) in own.operations.iter().enumerate() {
            program.note_nic(rank, operation, || format!("operation {number}"));
        }
        program.ranks.push(Arc::new(own));
    }
    Ok(program)
}

struct Successors {
    ends: (u32, u32),
    begins: (u32, u32),
    waits: u32,
}

/// A rank between two places of the file.
fn one(
    bytes: &[u8],
    begin: u64,
    end: u64,
    rank: u32,
    ranks: u32,
) -> Result<RankProgram, ProgramError> {
    let mut at = Cursor { bytes: &bytes[..end as usize], at: begin };
    let (count, roots) = (at.u32()?, at.u32()?);
    let needs = u64::from(roots) * 4 + u64::from(count) * OPERATION;
    if needs > end - at.at {
        return Err(at.wrong(format!("rank {rank}: {count} operations do not fit its block")));
    }
    let mut is_root = vec![false; count as usize];
    for _ in 0..roots {
        let root = at.u32()?;
        match is_root.get_mut(root as usize) {
            Some(is_root) => *is_root = true,
            None => return Err(at.wrong(format!("rank {rank}: there is no operation {root}"))),
        }
    }
    let (mut operations, mut successors) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (operation, of) = operation(&mut at, ranks)?;
        operations.push(operation);
        successors.push(of);
    }
    let appendix = at.at;
    let edges = successors.iter().map(|of| u64::from(of.ends.0) + u64::from(of.begins.0));
    if edges.sum::<u64>() * 4 > end - appendix {
        return Err(at.wrong(format!("rank {rank}: the successors do not fit its block")));
    }
    let mut waits = Vec::new();
    for (awaited, of) in (0..).zip(&successors) {
        for ((number, first), is_begin) in [(of.ends, false), (of.begins, true)] {
            at.at = appendix + 4 * u64::from(first);
            for _ in 0..number {
                let waiting = at.u32()?;
                if waiting >= count {
                    let text = format!("rank {rank}: there is no operation {waiting}");
                    return Err(at.wrong(text));
                }
                waits.push((waiting, awaited, is_begin));
            }
        }
    }
    let program = RankProgram::new(operations, Vec::new(), &waits);
    for (number, operation) in (0..).zip(&program.operations) {
        let listed = successors[number as usize].waits;
        if operation.waits != listed || (listed == 0) != is_root[number as usize] {
            let text = format!(
                "{} waits for {} others, and the file says {listed}{}",
                program.name(number),
                operation.waits,
                if is_root[number as usize] { ", and that it is a root" } else { "" },
            );
            return Err(ProgramError::at(format!("rank {rank}"), text));
        }
    }
    Ok(program)
}

fn operation(at: &mut Cursor<'_>, ranks: u32) -> Result<(Operation, Successors), ProgramError> {
    let waits = at.u32()?;
    let kind = at.byte()?;
    let (peer, size, tag) = (at.u32()?, at.u64()?, at.u32()?);
    let (cpu, nic) = (at.byte()?, at.byte()?);
    let (ends, begins) = ((at.u32()?, at.u32()?), (at.u32()?, at.u32()?));
    let action = match kind {
        1 => Action::Send { to: peer },
        2 => Action::Receive { from: peer },
        3 => Action::Compute,
        other => return Err(at.wrong(format!("type {other} of an operation; 1 to 3 are"))),
    };
    let is_any = peer == ANY && kind == 2;
    if kind != 3 && peer >= ranks && !is_any {
        return Err(at.wrong(format!("rank {peer}: there are {ranks}, from 0")));
    }
    let operation = Operation { action, size, tag, cpu, nic, waits: 0 };
    Ok((operation, Successors { ends, begins, waits }))
}
