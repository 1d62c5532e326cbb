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
