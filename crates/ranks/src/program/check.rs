//! The conditions that a program must satisfy beyond its form: no operation waits for itself by way
//! of others.

use super::{Program, ProgramError, RankProgram};

/// Operations of a cycle that an error names.
const NAMED: usize = 8;

pub(super) fn check(program: &Program) -> Result<(), ProgramError> {
    for (rank, of) in program.ranks.iter().enumerate() {
        acyclic(of).map_err(|text| ProgramError::at(format!("rank {rank}"), text))?;
    }
    Ok(())
}

/// Looks for a cycle of one rank; the error names its operations.
pub(super) fn acyclic(of: &RankProgram) -> Result<(), String> {
    let Some(cycle) = cycle(of) else { return Ok(()) };
    let names: Vec<String> = cycle.iter().take(NAMED).map(|at| of.name(*at)).collect();
    let more = if cycle.len() > NAMED { " → …" } else { "" };
    Err(format!("operations wait for each other: {}{more}", names.join(" → ")))
}

/// The operations that come after one.
fn after(program: &RankProgram, operation: u32) -> impl Iterator<Item = u32> {
    program.after_end(operation).iter().chain(program.after_begin(operation)).copied()
}

/// A cycle, if there is one: each comes before the next.
fn cycle(program: &RankProgram) -> Option<Vec<u32>> {
    let mut left: Vec<u32> = program.operations.iter().map(|operation| operation.waits).collect();
    let mut free: Vec<u32> = (0..left.len() as u32).filter(|at| left[*at as usize] == 0).collect();
    while let Some(at) = free.pop() {
        for next in after(program, at) {
            left[next as usize] -= 1;
            if left[next as usize] == 0 {
                free.push(next);
            }
        }
    }
    // Operations that are left wait for one of a cycle: walk back from any of them.
    let start = left.iter().position(|left| *left > 0)? as u32;
    let mut before = vec![u32::MAX; left.len()];
    for at in (0..left.len() as u32).filter(|at| left[*at as usize] > 0) {
        after(program, at).for_each(|next| before[next as usize] = at);
    }
    let mut walk = vec![start];
    loop {
        let next = before[walk[walk.len() - 1] as usize];
        if let Some(from) = walk.iter().position(|at| *at == next) {
            let mut cycle = walk.split_off(from);
            cycle.reverse();
            return Some(cycle);
        }
        walk.push(next);
    }
}
