//! A paper: its experiments, its claims, and what they are judged on.

use crate::baseline::Baselines;
use crate::claim::Claim;
use crate::experiment::Experiment;
use std::path::PathBuf;

#[derive(Clone, Debug, Default)]
pub struct Paper {
    /// Its name on the command line; claims' names start with it.
    pub name: String,
    pub title: String,
    pub year: u16,
    pub experiments: Vec<Experiment>,
    pub claims: Vec<Claim>,
    /// The schemes with the mechanism off, on which claims are judged as well.
    pub baselines: Baselines,
    /// Where its files are; `None` of a paper that is compiled in.
    pub folder: Option<PathBuf>,
}

impl Paper {
    pub fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }
}
