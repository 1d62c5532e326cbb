//! The papers, a table of experiments and a table of claims each.

mod backdraft;
mod canary;
mod hpcc;
mod nrm;
mod presto;
mod tlt;

use crate::experiment::Paper;

/// Every paper, in the order of their years.
pub const BUILT: [&Paper; 6] =
    [&presto::PRESTO, &nrm::NRM, &hpcc::HPCC, &tlt::TLT, &backdraft::BACKDRAFT, &canary::CANARY];

/// One table after another.
const fn joined<T: Copy, const N: usize>(first: &[T], second: &[T]) -> [T; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}
