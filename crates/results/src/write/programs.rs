//! Output of the programs on a lab's hosts: a file for each of their streams.
//!
//! Invariant: the files are in one folder, whatever programs are called.

use crate::model::names::{PROGRAMS, output_file};
use crate::model::{At, Result};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The files that are open, by their paths.
#[derive(Default)]
pub(crate) struct Outputs(BTreeMap<PathBuf, File>);

impl Outputs {
    /// Adds bytes to a program's stream. The first call makes the file.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the folder or the file cannot be created or written.
    pub fn write(&mut self, dir: &Path, program: &str, stream: &str, bytes: &[u8]) -> Result<()> {
        let path = dir.join(output_file(program, stream));
        if !self.0.contains_key(&path) {
            let folder = dir.join(PROGRAMS);
            fs::create_dir_all(&folder).at("create", &folder)?;
            self.0.insert(path.clone(), File::create(&path).at("create", &path)?);
        }
        self.0.get_mut(&path).map_or(Ok(()), |file| file.write_all(bytes)).at("write", &path)
    }

    pub fn remove(&mut self, dir: &Path) {
        let files = std::mem::take(&mut self.0);
        files.keys().for_each(|path| {
            let _ = fs::remove_file(path);
        });
        if !files.is_empty() {
            let _ = fs::remove_dir(dir.join(PROGRAMS));
        }
    }
}
