//! The papers, a table of experiments and a table of claims each.

mod canary;
mod hpcc;
mod nrm;
mod presto;
mod tlt;

use crate::experiment::Paper;

/// The papers whose tables are written.
pub const BUILT: [&Paper; 5] = [&presto::PRESTO, &nrm::NRM, &hpcc::HPCC, &tlt::TLT, &canary::CANARY];
/// Every paper's name, in the order of their years.
pub const PAPERS: [&str; 6] = ["presto", "nrm", "hpcc", "tlt", "backdraft", "canary"];
