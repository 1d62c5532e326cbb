//! A paper: its experiments, its claims, and what they are judged on.

use crate::baseline::Baselines;
use crate::claim::Claim;
use crate::experiment::Experiment;
use serde::Deserialize;

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
    /// The cases that `make bench-limit-vm` measures as well.
    pub emulated: &'static [Case],
}

/// A case of the rig, and which arm of an experiment it stands for.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name in the rig's tables.
    pub name: &'static str,
    /// The experiment.
    pub experiment: &'static str,
    /// The load.
    pub load: f64,
    /// The variant.
    pub variant: &'static str,
}
