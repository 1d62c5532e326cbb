//! Files of a results folder, written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::error::{At, Result};

pub(crate) const REPORT: &str = "report.html";

/// Indented JSON with a newline at its end.
pub(crate) fn json_text<T: serde::Serialize>(value: &T) -> String {
    // Our own types, with text keys: this cannot fail.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Writes a file as JSON, down to the disk.
pub(crate) fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<()> {
    write_file(path, json_text(value).as_bytes())
}

/// Writes a file, down to the disk: what is renamed into place must be whole even after a power
/// cut.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path).at("create", path)?;
    file.write_all(bytes).at("write", path)?;
    file.sync_all().at("write", path)
}

/// Puts a file in the place of an older one: a reader sees the old or the new.
pub(crate) fn replace_file(dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (next, path) = (dir.join(format!(".{name}")), dir.join(name));
    write_file(&next, bytes)?;
    fs::rename(&next, &path).at("replace", &path)
}

pub(crate) fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at("remove", path),
        _ => Ok(()),
    }
}
