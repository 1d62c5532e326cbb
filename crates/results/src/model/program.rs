//! A real program that ran on a host of the lab.
//!
//! Invariant: the name of its files is a function of its own.

use crate::model::names::folder_name;
use serde::{Deserialize, Serialize};

/// The folder of programs' output, within that of a run.
pub(crate) const PROGRAMS: &str = "programs";

/// A real program that ran on a host of the lab.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name, and that of its files.
    pub name: String,
    /// Where it ran.
    pub host: u32,
    /// Its command, with addresses.
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

/// The file of a program's stream (`stdout` or `stderr`), relative to the folder of its run.
pub(crate) fn file_name(program: &str, stream: &str) -> String {
    format!("{PROGRAMS}/{}.{stream}", folder_name(program))
}
