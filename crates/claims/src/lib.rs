//! Papers as experiments and claims: what is run, what is measured, what holds.
//!
//! A paper ([`Paper`]) is a table of experiments and a table of claims: a `paper.toml` in a folder,
//! with the scenarios of its experiments. An experiment is a sweep ([`design()`]) in a subfolder of
//! the results, so runs that were made are never made again. [`Reproducing`] has runs made by a
//! [`Runner`], and decides the claims anew from whatever is there.
//!
//! Invariant: this crate runs no simulation and prints nothing. Its decisions follow from the
//! summaries in the results folder.

mod baseline;
mod checks;
mod chosen;
mod claim;
mod counts;
mod design;
mod error;
mod experiment;
mod file;
mod found;
mod gallery;
mod judging;
mod ledger;
mod measure;
mod page;
mod paper;
mod reproducing;
mod shown;
mod spread;
mod statistic;
#[cfg(test)]
mod tests;

pub use baseline::{Baseline, Baselines};
pub use chosen::{Chosen, all_claims};
pub use claim::Claim;
pub use counts::{Counts, Kinds};
pub use design::{Design, Hops, Recipe, Request, VARIANT, check_runs, design, packet_hops};
pub use error::Error;
pub use experiment::{Effort, Experiment, Prepared, Published, QuickFile, Runs, Settings};
pub use file::{find_paper, papers, read_paper};
pub use found::{Arm, Found, Off};
pub use gallery::write_gallery;
pub use ledger::{Entry, LEDGER, Ledger};
pub use measure::{Kind, Measure, Measured};
pub use page::{PAGE, RESULTS, Recorded, page};
pub use paper::Paper;
pub use reproducing::{Ended, Planned, Recording, Repeated, Reproducing, Runner, is_of};
pub use statistic::{Number, Numbers, Of, Run, Statistic};

/// The version, which all crates of the workspace share.
const VERSION: &str = env!("CARGO_PKG_VERSION");
