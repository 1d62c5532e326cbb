//! All-to-all exchanges, and the dissemination barrier.
//!
//! Pairwise: in step k rank r sends to r + k (of a power of two: r xor k). Linear: all at once, in
//! the order r + 1, r + 2 … Bruck: in step k to r + 2^k, all blocks whose index has bit k. PXN: to
//! the rank of the own group that is on the destination's rail, which sends on what is for each
//! other group. The barrier sends a byte to r + 2^k.
//!
//! Invariant: step i + 1 waits for what is sent to it in step i.

use super::{Algorithm, Collective, Schedule, Send, Slot};

fn rounds(collective: &Collective) -> u32 {
    match collective.algorithm {
        Algorithm::Pairwise => collective.ranks - 1,
        Algorithm::Linear => 1,
        Algorithm::Pxn => 2,
        _ => u32::BITS - (collective.ranks - 1).leading_zeros(),
    }
}

pub(super) const EXCHANGE: Schedule = Schedule { awaits, sends };

/// Messages that a step waits for.
fn awaits(collective: &Collective, Slot { rank, step, .. }: Slot) -> Option<u32> {
    if step == 0 || step > rounds(collective) {
        return (step == 0).then_some(0);
    }
    // Of uneven blocks some may be empty, and are not sent.
    let comes = |from: u32| u32::from(collective.block(from, rank) > 0);
    Some(match (collective.algorithm, step) {
        (Algorithm::Linear, _) => {
            (0..collective.ranks).filter(|from| *from != rank).map(comes).sum()
        }
        (Algorithm::Pairwise, _) => comes(source(collective, rank, step)),
        (Algorithm::Pxn, 1) => collective.group - 1,
        (Algorithm::Pxn, _) => collective.ranks / collective.group - 1,
        _ => 1,
    })
}

/// The partner to whom a rank sends in step k of a pairwise exchange.
pub(super) fn partner(collective: &Collective, rank: u32, k: u32) -> u32 {
    match collective.ranks.is_power_of_two() {
        true => rank ^ k,
        false => (rank + k) % collective.ranks,
    }
}

/// The partner from whom a rank receives in step k of a pairwise exchange.
fn source(collective: &Collective, rank: u32, k: u32) -> u32 {
    match collective.ranks.is_power_of_two() {
        true => rank ^ k,
        false => (rank + collective.ranks - k) % collective.ranks,
    }
}

fn sends(collective: &Collective, Slot { rank, step, .. }: Slot, each: &mut dyn FnMut(Send)) {
    if step >= rounds(collective) {
        return;
    }
    let ranks = collective.ranks;
    let mut block = |to: u32| {
        let bytes = collective.block(rank, to);
        if bytes > 0 {
            each(Send { to, bytes, step: step + 1 });
        }
    };
    match collective.algorithm {
        Algorithm::Pairwise => block(partner(collective, rank, step + 1)),
        Algorithm::Linear => (1..ranks).for_each(|k| block((rank + k) % ranks)),
        Algorithm::Pxn => pxn(collective, rank, step, each),
        algorithm => {
            let to = ((u64::from(rank) + (1u64 << step)) % u64::from(ranks)) as u32;
            let blocks = (1..ranks).filter(|index| index >> step & 1 == 1);
            let bytes = match algorithm {
                Algorithm::Bruck => {
                    blocks.map(|index| collective.block(rank, (rank + index) % ranks)).sum()
                }
                _ => 1,
            };
            each(Send { to, bytes, step: step + 1 });
        }
    }
}

/// First to the own group, by rail; then to the same rail of all other groups.
fn pxn(collective: &Collective, rank: u32, step: u32, each: &mut dyn FnMut(Send)) {
    let (group, groups) = (collective.group, collective.ranks / collective.group);
    let (own, rail) = (rank / group, rank % group);
    if step == 0 {
        for other in (1..group).map(|k| (rail + k) % group) {
            let bytes = (0..groups).map(|at| collective.block(rank, at * group + other)).sum();
            each(Send { to: own * group + other, bytes, step: 1 });
        }
        return;
    }
    for at in (1..groups).map(|k| (own + k) % groups) {
        let to = at * group + rail;
        each(Send { to, bytes: u64::from(group) * collective.block(rank, to), step: 2 });
    }
}
