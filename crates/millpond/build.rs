//! Finds out which revision of the sources is built: `MILLPOND_REVISION`.
//!
//! It runs again when a source of the command changes, so that the command and the library are of
//! one revision. A clean revision stays true when HEAD moves and the sources do not. A release of
//! sources that no commit had is built anew when HEAD moves, since it may be a commit's then.
//!
//! Invariant: two builds of different sources in a repository have different revisions, since
//! `compare` takes finished runs of changed sources only if they are its own.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources of the command, relative to the repository.
const SOURCES: [&str; 4] = ["Cargo.toml", "Cargo.lock", "crates", "papers"];
/// Behind the commit where the sources differ from it; a hash of the sources follows.
const DIRTY: &str = "-dirty-";

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let revision = revision(&root).unwrap_or_else(|| "unknown".to_string());
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let mut watched = sources(&root);
    if is_release && revision.contains(DIRTY) {
        watched.extend(head(&root));
    }
    // A path that is not there would make this run at every build.
    for path in watched.iter().filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rustc-env=MILLPOND_REVISION={revision}");
}

/// The commit, with a hash of the sources if they differ from it; nothing where this is no
/// repository of its own.
fn revision(root: &Path) -> Option<String> {
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let commit = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let paths = sources(root)
        .into_iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect::<Vec<_>>();
    let of_paths = |words: &[&str]| {
        let paths = paths.iter().map(String::as_str);
        git(root, &words.iter().copied().chain(paths).collect::<Vec<_>>())
    };
    if of_paths(&["--no-optional-locks", "status", "--porcelain", "--"])?.is_empty() {
        return Some(commit);
    }
    let files = of_paths(&["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"])?;
    Some(format!("{commit}{DIRTY}{:012x}", hash(root, &files) >> 16))
}

/// A hash of the names and contents of files, whose names end with a zero byte.
fn hash(root: &Path, files: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for name in files.split_terminator('\0') {
        // A file that was removed has a name in the index alone.
        (name, std::fs::read(root.join(name)).ok()).hash(&mut hasher);
    }
    hasher.finish()
}

/// Where git writes when HEAD moves.
fn head(root: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = ["HEAD", "logs/HEAD"]
        .into_iter()
        .filter_map(|name| git(root, &["rev-parse", "--git-path", name]));
    paths.map(|path| root.join(path))
}

/// Of each crate its `src`, its build script and its manifest: tests and benchmarks are not in the
/// command.
fn sources(root: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for name in SOURCES {
        let path = root.join(name);
        match std::fs::read_dir(&path) {
            Ok(entries) if name == "crates" => {
                let crates = entries.filter_map(|entry| Some(entry.ok()?.path()));
                let parts = |dir: PathBuf| {
                    ["src", "bpf", "build.rs", "Cargo.toml"].map(|part| dir.join(part))
                };
                sources.extend(crates.flat_map(parts));
            }
            _ => sources.push(path),
        }
    }
    sources.sort();
    sources.retain(|path| path.exists());
    sources
}

fn git(root: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}
