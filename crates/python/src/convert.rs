//! Arguments of Python as the façade takes them, and results as JSON.

use crate::error::raise;
use millpond::{Error, Keep};
use pyo3::prelude::*;
use serde::Serialize;
use std::ops::RangeInclusive;

/// The first and the last seed.
pub type Seeds = Option<(u64, u64)>;

/// As a range.
pub fn seeds(seeds: Seeds) -> Option<RangeInclusive<u64>> {
    seeds.map(|(first, last)| first..=last)
}

/// The parts of each run that a sweep keeps.
///
/// # Errors
/// If there is no such word.
pub fn keep(py: Python<'_>, word: &str) -> PyResult<Keep> {
    match word {
        "all" => Ok(Keep::All),
        "queries" => Ok(Keep::Queries),
        "summary" => Ok(Keep::Summary),
        _ => {
            let text = format!("keep is \"all\", \"queries\" or \"summary\", not {word:?}");
            Err(raise(py, Error::Usage(text)))
        }
    }
}

/// A result as JSON.
///
/// # Errors
/// If a key of a map is no text, which no result has.
pub fn json(py: Python<'_>, value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| raise(py, Error::Usage(error.to_string())))
}
