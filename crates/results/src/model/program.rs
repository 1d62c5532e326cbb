//! A real program that ran on a host of the lab.
//!
//! Invariant: it holds counts of output, and no output.

use serde::{Deserialize, Serialize};

/// A real program that ran on a host of the lab.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name, and that of its files.
    pub name: String,
    pub host: u32,
    pub command: String,
    /// How it ended: "exit status 0", "ended with the run".
    pub status: String,
    /// Bytes that it wrote to standard output.
    pub stdout_bytes: u64,
    /// Bytes that it wrote to standard error.
    pub stderr_bytes: u64,
    /// Bytes of both that were not kept.
    pub dropped_bytes: u64,
}
