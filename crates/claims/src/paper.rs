//! A paper: its experiments, its claims, and what they are judged on.

use crate::baseline::Baselines;
use crate::claim::Claim;
use crate::experiment::Experiment;

/// A paper.
pub struct Paper {
    /// Its name on the command line; claims' names start with it.
    pub name: &'static str,
    /// As a heading.
    pub title: &'static str,
    /// Of its publication.
    pub year: u16,
    /// The experiments that are run.
    pub experiments: &'static [Experiment],
    /// The claims of the paper.
    pub claims: &'static [Claim],
    /// The schemes with the mechanism off, on which claims are judged as well.
    pub baselines: Baselines,
}
