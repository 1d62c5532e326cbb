//! Exchanges at doubling distances: halving-doubling and recursive doubling.
//!
//! Both are for a power of two, 2^n. Of other numbers the ranks from 2^n on first give their buffer
//! to a partner, and get the result back at the end: two more steps.
//!
//! Invariant: step i of a rank of the core sends to the partner whose step i + 1 waits for it, and
//! the two of a pair send what the other does not keep.

use super::{Algorithm, Collective, Schedule, Send, Slot};

/// The ranks that exchange, and the logarithm of their number.
fn core(collective: &Collective) -> (u32, u32) {
    let log = collective.ranks.ilog2();
    (1 << log, log)
}

/// Exchanges of a rank of the core.
fn exchanges(collective: &Collective) -> u32 {
    let (_, log) = core(collective);
    if collective.algorithm == Algorithm::RecursiveDoubling { log } else { 2 * log }
}

/// Whether a rank of the core has a partner beyond it.
fn has_extra(collective: &Collective, rank: u32) -> bool {
    rank + core(collective).0 < collective.ranks
}

pub(super) const DOUBLING: Schedule = Schedule { awaits, sends };

/// Messages that a step waits for.
fn awaits(collective: &Collective, Slot { rank, step, .. }: Slot) -> Option<u32> {
    if rank >= core(collective).0 {
        return (step < 2).then_some(step);
    }
    match step {
        0 => Some(u32::from(has_extra(collective, rank))),
        _ => (step <= exchanges(collective)).then_some(1),
    }
}

/// The bit in which the partners of an exchange of the first half differ.
fn bit(collective: &Collective, exchange: u32) -> u32 {
    let (_, log) = core(collective);
    match collective.algorithm {
        Algorithm::HalvingDoublingFar => log - 1 - exchange,
        _ => exchange,
    }
}

/// The share of the buffer that a rank keeps after so many exchanges of the first half, and the
/// share that it gave away in the last of them.
fn kept(collective: &Collective, rank: u32, exchanges: u32) -> (u64, u64) {
    (0..exchanges).fold((collective.bytes, 0), |(all, _), exchange| {
        let lower = all.div_ceil(2);
        match rank >> bit(collective, exchange) & 1 {
            0 => (lower, all - lower),
            _ => (all - lower, lower),
        }
    })
}

fn sends(collective: &Collective, Slot { rank, step, .. }: Slot, each: &mut dyn FnMut(Send)) {
    let (size, log) = core(collective);
    if rank >= size {
        if step == 0 {
            each(Send { to: rank - size, bytes: collective.bytes, step: 0 });
        }
        return;
    }
    if step == exchanges(collective) {
        if has_extra(collective, rank) {
            each(Send { to: rank + size, bytes: collective.bytes, step: 1 });
        }
        return;
    }
    let (exchange, bytes) = match collective.algorithm {
        Algorithm::RecursiveDoubling => (step, collective.bytes),
        _ if step < log => (step, kept(collective, rank, step + 1).1),
        _ => {
            let exchange = 2 * log - 1 - step;
            (exchange, kept(collective, rank, exchange + 1).0)
        }
    };
    each(Send { to: rank ^ 1 << bit(collective, exchange), bytes, step: step + 1 });
}
