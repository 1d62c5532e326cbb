//! Writing what `reproduce` has found.

use crate::model::checksum::sealed_text;
use crate::model::error::Result;
use crate::model::files::{REPORT, replace_file};
use crate::model::manifest::{Kind, Manifest};
use crate::model::reproduction::{REPRODUCTION, Reproduction};
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
