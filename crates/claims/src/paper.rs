//! A paper: its experiments, its claims, and what they are judged on.

use crate::baseline::Baselines;
use crate::claim::Claim;
use crate::experiment::Experiment;

/// A paper.
#[derive(Clone, Debug, Default)]
pub struct Paper {
    /// Its name on the command line; claims' names start with it.
    pub name: String,
    /// As a heading.
    pub title: String,
    /// Of its publication.
    pub year: u16,
    /// The experiments that are run.
    pub experiments: Vec<Experiment>,
    /// The claims of the paper.
    pub claims: Vec<Claim>,
    /// The schemes with the mechanism off, on which claims are judged as well.
    pub baselines: Baselines,
}

impl Paper {
    /// The experiment of a name.
    pub fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }
}
