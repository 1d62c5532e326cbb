//! Trees: binomial ones, NCCL's double binary tree, and chains.
//!
//! The double binary tree follows NCCL's `trees.cc`. Tree 1 has root 0; the parent of r > 0, whose
//! lowest set bit is b, is (r − b) | 2b if that is a rank, else r − b. Tree 2 is its mirror image
//! if the number of ranks is even, else it is shifted by one rank. Each tree reduces half of the
//! buffer up and broadcasts it down, piece by piece; a piece is a lane.
//!
//! Invariant: a rank that is inside one tree is a leaf of the other, the roots aside.

use super::{Collective, Operation, Schedule, Send, Slot, share};

pub(super) const DOUBLE: Schedule = Schedule { awaits: awaits_double, sends: sends_double };
pub(super) const BINOMIAL: Schedule = Schedule { awaits: awaits_binomial, sends: sends_binomial };
pub(super) const CHAIN: Schedule = Schedule { awaits: awaits_chain, sends: sends_chain };

/// Pieces of a tree's or a chain's bytes.
pub(super) fn pieces(bytes: u64, chunk: Option<u64>) -> u32 {
    chunk.map_or(1, |chunk| bytes.div_ceil(chunk.max(1)).max(1) as u32)
}

/// The bytes of a lane of the double binary tree; `None`: the share of this channel has fewer
/// pieces than that of the first.
fn piece_double(collective: &Collective, lane: u32) -> Option<u64> {
    let pieces = pieces(share(collective.bytes, 2, 0), collective.chunk);
    let of_tree = share(collective.bytes, 2, lane % 2);
    (lane / 2 < pieces).then(|| share(of_tree, pieces, lane / 2))
}

/// The bytes of a lane of the chain, in the same way.
fn piece_chain(collective: &Collective, lane: u32) -> Option<u64> {
    let pieces = pieces(collective.bytes, collective.chunk);
    (lane < pieces).then(|| share(collective.bytes, pieces, lane))
}

/// The parent of a rank in NCCL's first tree; the root has none.
fn parent(ranks: u32, rank: u32) -> Option<u32> {
    if rank == 0 {
        return None;
    }
    let low = rank & rank.wrapping_neg();
    let up = (rank - low) | (low << 1);
    Some(if up < ranks { up } else { rank - low })
}

/// The children of a rank in NCCL's first tree.
fn children(ranks: u32, rank: u32) -> [Option<u32>; 2] {
    if rank == 0 {
        let top = if ranks > 1 { Some(1 << (ranks - 1).ilog2()) } else { None };
        return [top, None];
    }
    let half = (rank & rank.wrapping_neg()) >> 1;
    if half == 0 {
        return [None, None];
    }
    let mut right = half;
    while right > 0 && rank + right >= ranks {
        right >>= 1;
    }
    [Some(rank - half), (right > 0).then(|| rank + right)]
}

/// A rank's place in a tree of the two, as a place in the first.
fn place(ranks: u32, tree: u32, rank: u32) -> u32 {
    match (tree, ranks % 2) {
        (0, _) => rank,
        (_, 0) => ranks - 1 - rank,
        _ => (rank + ranks - 1) % ranks,
    }
}

/// The rank at a place of a tree.
fn rank_at(ranks: u32, tree: u32, place: u32) -> u32 {
    match (tree, ranks % 2) {
        (0, _) => place,
        (_, 0) => ranks - 1 - place,
        _ => (place + 1) % ranks,
    }
}

/// A rank's parent and children in a tree of the two.
pub(super) fn kin(ranks: u32, tree: u32, rank: u32) -> (Option<u32>, [Option<u32>; 2]) {
    let place = place(ranks, tree, rank);
    let back = |place: Option<u32>| place.map(|place| rank_at(ranks, tree, place));
    (back(parent(ranks, place)), children(ranks, place).map(back))
}

/// Messages that a step of the double binary tree waits for: those of the children, then that of
/// the parent.
fn awaits_double(collective: &Collective, slot: Slot) -> Option<u32> {
    let Slot { rank, lane, step } = slot;
    piece_double(collective, lane)?;
    let (parent, children) = kin(collective.ranks, lane % 2, rank);
    match step {
        0 => Some(children.iter().flatten().count() as u32),
        1 => parent.map(|_| 1),
        _ => None,
    }
}

/// The messages of a step of the double binary tree.
fn sends_double(collective: &Collective, slot: Slot, each: &mut dyn FnMut(Send)) {
    let Slot { rank, lane, step } = slot;
    let (parent, children) = kin(collective.ranks, lane % 2, rank);
    let Some(bytes) = piece_double(collective, lane) else { return };
    match parent {
        Some(parent) if step == 0 => each(Send { to: parent, bytes, step: 0 }),
        _ => children.iter().flatten().for_each(|child| each(Send { to: *child, bytes, step: 1 })),
    }
}

/// The binomial tree's parent of a rank: without its highest set bit.
fn binomial_parent(rank: u32) -> Option<u32> {
    (rank > 0).then(|| rank ^ 1 << rank.ilog2())
}

/// The binomial tree's children of a rank, in the order of a broadcast's rounds.
fn binomial_children(ranks: u32, rank: u32) -> impl DoubleEndedIterator<Item = u32> {
    let first = if rank == 0 { 0 } else { rank.ilog2() + 1 };
    (first..32)
        .map(move |k| u64::from(rank) + (1u64 << k))
        .filter_map(move |child| u32::try_from(child).ok().filter(|child| *child < ranks))
}

/// Messages that a step of a binomial tree waits for: a reduce's one step for those of all
/// children, a broadcast's first for that of the parent. It has a step for each child.
fn awaits_binomial(collective: &Collective, Slot { rank, step, .. }: Slot) -> Option<u32> {
    let children = binomial_children(collective.ranks, rank).count() as u32;
    match collective.operation {
        Operation::Reduce => (step == 0).then_some(children),
        _ => (step < children.max(1)).then_some(u32::from(rank > 0 && step == 0)),
    }
}

/// The message of a step of a binomial tree.
fn sends_binomial(collective: &Collective, slot: Slot, each: &mut dyn FnMut(Send)) {
    let Slot { rank, step, .. } = slot;
    let to = match collective.operation {
        Operation::Reduce => binomial_parent(rank),
        _ => binomial_children(collective.ranks, rank).nth(step as usize),
    };
    to.into_iter().for_each(|to| each(Send { to, bytes: collective.bytes, step: 0 }));
}

/// Messages that the one step of a chain's lane waits for.
fn awaits_chain(collective: &Collective, Slot { rank, lane, step }: Slot) -> Option<u32> {
    piece_chain(collective, lane)?;
    (step == 0).then_some(u32::from(rank > 0))
}

/// The message of a chain: each piece goes on to the next rank.
fn sends_chain(collective: &Collective, slot: Slot, each: &mut dyn FnMut(Send)) {
    let Slot { rank, lane, .. } = slot;
    if let Some(bytes) = piece_chain(collective, lane).filter(|_| rank + 1 < collective.ranks) {
        each(Send { to: rank + 1, bytes, step: 0 });
    }
}
