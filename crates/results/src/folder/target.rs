//! Whether a results folder may be replaced: only by the command that wrote it, for the same
//! scenario, and only if nobody else has put anything into it. Everything else takes `--force`.
//!
//! Invariant: without force, no file that a run did not write is removed, and no result of another
//! command or scenario.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use crate::folder::lock::LOCK;
use crate::model::{At, Error, Kind, MANIFEST, Manifest, Result, is_result};

/// Foreign files that an error names.
const NAMED: usize = 3;
/// Files that commands leave in their folders beside those that the manifest lists.
const OWN: [&str; 3] = [MANIFEST, LOCK, ".replaced"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub kind: Kind,
    /// The scenario's name; of a reproduction, the paper's.
    pub name: String,
    /// The variant that was run alone, if any.
    pub variant: Option<String>,
}

impl Owner {
    pub fn new(kind: Kind, name: &str) -> Owner {
        Owner { kind, name: name.into(), variant: None }
    }

    pub(crate) fn of(manifest: &Manifest) -> Owner {
        Owner {
            kind: manifest.kind,
            name: manifest.name.clone(),
            variant: manifest.variant.clone(),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Run => "run",
            Kind::Compare => "compare",
            Kind::Sweep => "sweep",
            Kind::Reproduce => "reproduction",
        };
        write!(f, "a {kind} of {:?}", self.name)?;
        match &self.variant {
            Some(variant) => write!(f, ", variant {variant:?}"),
            None => Ok(()),
        }
    }
}

/// Whether `out` is free, or may be replaced by a result of `owner`.
pub(crate) fn check_target(out: &Path, owner: &Owner, force: bool) -> Result<()> {
    let meta = match fs::symlink_metadata(out) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).at("look at", out),
    };
    if !meta.is_dir() {
        return Err(Error::IsFile(out.to_path_buf()));
    }
    let is_result = is_result(out);
    if force && (is_result || !holds_us(out)) {
        return Ok(());
    }
    let manifest = match Manifest::read(out) {
        Ok(manifest) if is_result => manifest,
        _ if others(out, &[LOCK.to_string()])?.is_empty() => return Ok(()),
        _ => return Err(not_a_result(out)),
    };
    let holder = Owner::of(&manifest);
    if holder != *owner {
        let (path, holds, now) = (out.to_path_buf(), holder.to_string(), owner.to_string());
        return Err(Error::OtherResult { path, holds, now });
    }
    let foreign = foreign_files(out, &manifest)?;
    if foreign.is_empty() {
        Ok(())
    } else {
        Err(Error::ForeignFiles(out.to_path_buf(), listed(&foreign)))
    }
}

/// The error that `out` has something else in it, and what.
pub fn not_a_result(out: &Path) -> Error {
    Error::NotAResult(out.to_path_buf(), listed(&others(out, &[]).unwrap_or_default()))
}

/// Whether the process works within `out`: the ground under one's feet is not taken away even by
/// force.
fn holds_us(out: &Path) -> bool {
    match (std::env::current_dir(), fs::canonicalize(out)) {
        (Ok(here), Ok(out)) => here.starts_with(out),
        _ => false,
    }
}

/// The files below `out` that its command did not write, by name.
fn foreign_files(out: &Path, manifest: &Manifest) -> Result<Vec<String>> {
    let listed = manifest.files.iter().map(|file| file.name.clone());
    let mut own: Vec<String> = listed.chain(OWN.map(String::from)).collect();
    own.sort_unstable();
    others(out, &own)
}

/// The files below `out` whose names, relative to it, are not in the sorted list `own`; in order.
fn others(out: &Path, own: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(prefix) = folders.pop() {
        let dir = out.join(&prefix);
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            // Another command has just put its result in its place.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).at("read", &dir),
        };
        for entry in entries {
            let entry = entry.at("read", &dir)?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if own.binary_search(&name).is_ok() {
                continue;
            }
            match entry.file_type().at("look at", &entry.path())?.is_dir() {
                true => folders.push(format!("{name}/")),
                false => found.push(name),
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// `a, b, c and 4 more`.
fn listed(names: &[String]) -> String {
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_dir;

    #[test]
    fn a_result_makes_way_for_its_own_kind_alone() {
        let dir = test_dir("owner");
        let owner = Owner { variant: Some("v".into()), ..Owner::new(Kind::Run, "x") };
        check_target(&dir, &owner, false).expect("an empty folder is free");
        fs::create_dir(dir.join("sub")).unwrap();
        fs::write(dir.join("sub/flows.parquet"), "").unwrap();
        let manifest =
            Manifest { name: "x".into(), variant: Some("v".into()), ..Manifest::new("1", "") };
        manifest.clone().write(&dir).unwrap();
        check_target(&dir, &owner, false).unwrap();
        let others = [
            Owner::new(Kind::Run, "x"),
            Owner::new(Kind::Compare, "x"),
            Owner::new(Kind::Run, "y"),
        ];
        for other in others {
            let refused = check_target(&dir, &other, false).unwrap_err();
            assert!(
                refused.to_string().contains("holds a run of \"x\", variant \"v\""),
                "{refused}"
            );
            check_target(&dir, &other, true).unwrap();
        }
        // A file that the manifest does not list is somebody's, hidden or not, at any depth.
        for name in ["notes.txt", ".notes", "sub/plot.png"] {
            fs::write(dir.join(name), "").unwrap();
            let refused = check_target(&dir, &owner, false).unwrap_err();
            assert!(refused.to_string().contains(&format!("({name})")), "{refused}");
            check_target(&dir, &owner, true).unwrap();
            fs::remove_file(dir.join(name)).unwrap();
        }
        check_target(&dir, &owner, false).unwrap();
        let many: Vec<String> = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
        assert_eq!(listed(&many), "a, b, c and 2 more");
    }
}
