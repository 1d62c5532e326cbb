//! A paper: its experiments, its claims, and what they are judged on.

use crate::baseline::Baselines;
use crate::claim::Claim;
use crate::experiment::Experiment;
use millpond_results::Cause;
use std::path::PathBuf;

#[derive(Clone, Debug, Default)]
pub struct Paper {
    /// Its name on the command line; claims' names start with it.
    pub name: String,
    pub title: String,
    pub year: u16,
    /// The paragraph that opens its page; may be empty.
    pub reading: String,
    /// The causes of claims that fail.
    pub causes: Vec<Cause>,
    pub experiments: Vec<Experiment>,
    pub claims: Vec<Claim>,
    /// The schemes with the mechanism off, on which claims are judged as well.
    pub baselines: Baselines,
    /// Where its files are; `None` of a paper that is compiled in.
    pub folder: Option<PathBuf>,
}

impl Paper {
    /// The cause of a claim that fails.
    pub fn cause(&self, claim: &str) -> Option<&Cause> {
        self.causes.iter().find(|cause| cause.claims.iter().any(|own| own == claim))
    }

    pub fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }
}
