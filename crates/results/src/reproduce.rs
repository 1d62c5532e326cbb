//! Writing what `reproduce` has found.

use crate::model::{
    Kind, Manifest, REPORT, REPRODUCTION, Reproduction, Result, replace_file, sealed_text,
};
use crate::render::html;
use std::path::Path;

const CLAIMS: &str = "claims.json";

impl Reproduction {
    /// Writes the reproduction into `dir`, which holds the sweeps of its experiments:
    /// `claims.json`, `reproduce.json`, the page and, last, the manifest.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a file cannot be written.
    pub fn write(&self, dir: &Path, manifest: Manifest) -> Result<()> {
        replace_file(dir, CLAIMS, sealed_text(&self.claims).as_bytes())?;
        replace_file(dir, REPRODUCTION, sealed_text(self).as_bytes())?;
        replace_file(dir, REPORT, html::reproduction::page(self).as_bytes())?;
        Manifest { kind: Kind::Reproduce, name: self.paper.clone(), ..manifest }.write(dir)
    }
}
