//! `compare.json`: each variant of a compare with its numbers.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{At, Result};
use super::manifest::check_files;
use super::names::run_folder;
use super::ordered::Ordered;
use super::summary::Status;
use crate::model::estimate::{Difference, Estimate, ShownNumber};
use crate::model::tree::Tree;

pub(crate) const COMPARE: &str = "compare.json";

/// One variant of a compare: an element of `compare.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantResult {
    pub variant: String,
    /// Its description in the scenario; absent without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Its seeds, in the order of the runs.
    pub seeds: Vec<u64>,
    pub status: Status,
    /// The warnings of its runs, each once.
    pub warnings: Vec<String>,
    pub statistics: Tree<Estimate>,
    /// Their differences to the first variant; `null` for that one itself.
    pub differences: Option<Tree<Difference>>,
    /// The numbers that tables and pages show, by their names in `shows`.
    pub shows: Ordered<ShownNumber>,
}

impl VariantResult {
    /// The folders of its runs in a compare's folder, in the order of the seeds.
    pub(crate) fn folders(&self, root: &Path) -> Vec<PathBuf> {
        let folder = |seed: u64, several: bool| run_folder(root, &self.variant, seed, several);
        let several = !folder(0, false).join("summary.json").exists();
        self.seeds.iter().map(|&seed| folder(seed, several)).collect()
    }
}

/// Reads `DIR/compare.json`.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the file cannot be read,
/// [`Error::Malformed`](crate::Error::Malformed) if it is damaged.
pub fn read_compare(dir: &Path) -> Result<Vec<VariantResult>> {
    check_files(dir, &|name| name == COMPARE)?;
    let path = dir.join(COMPARE);
    serde_json::from_slice(&std::fs::read(&path).at("read", &path)?).at("read", &path)
}

/// Reads the variants of a compare: its folder, a copy of its `compare.json`, or what `compare
/// --json` has printed.
///
/// # Errors
/// [`Error::Io`](super::Error::Io) if the file cannot be read,
/// [`Error::Malformed`](super::Error::Malformed) if it is no such file.
pub fn read_results(path: &Path) -> Result<Vec<VariantResult>> {
    if path.is_dir() {
        return read_compare(path);
    }
    serde_json::from_slice(&std::fs::read(path).at("read", path)?).at("read", path)
}
