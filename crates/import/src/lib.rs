//! Files of other simulators, made scenarios.
//!
//! [`htsim`] reads the connection matrices and topologies of htsim; [`hpcc`] the configuration,
//! topology and flow files of the HPCC family of ns-3 simulators. Either gives the texts of a
//! scenario and of the files that it names, and reports what became of every key of the input
//! ([`Outcome`]). Nothing is written here: what is wrong is found before anything is.
//!
//! Invariant: no key of an input is dropped silently. Each is reported with its fate, also an
//! unknown one; a value that cannot be read is an error with its file and line.

#[cfg(test)]
mod bad;
pub mod hpcc;
pub mod htsim;
mod network;
mod outcome;
mod program;
mod source;
mod units;

use source::Place;
use std::path::PathBuf;

pub use outcome::{Fate, Outcome};

#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Names and texts of the files; the scenario is the first.
    pub files: Vec<(String, String)>,
    /// Files to copy beside them: where each is, and its name there.
    pub copies: Vec<(PathBuf, String)>,
    /// The outcome of each key, in the order of the input.
    pub keys: Vec<Outcome>,
    /// The facts: hosts, links, flows, and what the input leaves open.
    pub facts: Vec<String>,
}

impl Imported {
    /// Reports what became of a line of a file, or of some of its words.
    fn record(&mut self, place: Place<'_>, text: impl Into<String>, fate: Fate) {
        self.keys.push(Outcome { place: place.to_string(), text: text.into(), fate });
    }
}

/// Why a file is not imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{file}:{line}: {message}")]
    Wrong {
        /// Its name as it was given.
        file: String,
        /// The line, from 1.
        line: usize,
        message: String,
    },
    #[error("cannot read {}: {source}", path.display())]
    Unread { path: PathBuf, source: std::io::Error },
    /// A file that another one names is nowhere.
    #[error("{file}:{line}: there is no file {named:?}, from here or from a folder above {file}")]
    Missing { file: String, line: usize, named: String },
}

/// The result of a file, or why there is none.
pub type Result<T> = std::result::Result<T, Error>;
