//! The papers, a table of experiments and a table of claims each.

mod canary;
mod nrm;
mod presto;
mod tlt;

use crate::experiment::Paper;

/// The papers whose tables are written.
pub const BUILT: [&Paper; 4] = [&presto::PRESTO, &nrm::NRM, &tlt::TLT, &canary::CANARY];
/// Every paper's name, in the order of their years.
pub const PAPERS: [&str; 5] = ["presto", "nrm", "tlt", "backdraft", "canary"];
