//! Writing what `reproduce` has found.

use crate::model::{
    Kind, Manifest, REPORT, REPRODUCTION, Reproduction, Result, replace_file, sealed_text,
};
use crate::render::html;
use std::path::Path;

const CLAIMS: &str = "claims.json";

impl Reproduction {
    /// Writes it into `dir`, which holds the sweeps of its experiments, with `claims.json`, the
    /// page and the manifest.
    pub fn write(&self, dir: &Path, manifest: Manifest) -> Result<()> {
        replace_file(dir, CLAIMS, sealed_text(&self.claims).as_bytes())?;
        replace_file(dir, REPRODUCTION, sealed_text(self).as_bytes())?;
        replace_file(dir, REPORT, html::reproduction::page(self).as_bytes())?;
        Manifest { kind: Kind::Reproduce, name: self.paper.clone(), ..manifest }.write(dir)
    }
}
