//! The files that a scenario names: each is read and understood once, and all plans that are made
//! of the scenario share what was in it.
//!
//! Invariant: one scenario sees one content of a file, though the file changes while its plans are
//! made.

mod trace;

use crate::cdf::{Cdf, Shape};
use crate::error::Problem;
use crate::settings::flows::FlowTable;
use crate::settings::graph::EdgeList;
use millpond_core::random::{hash_name, mix64};
use millpond_ranks::program::{self, Program, ProgramError, chakra};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The folder of a file, also of one that is named without its folder.
pub fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The content of a file, with the digest of its text; or what is wrong with it.
type Content<T> = Result<(Arc<T>, String), Problem>;

/// Contents by name, and by what else decides them.
type Contents<K, T> = Mutex<BTreeMap<(String, K), Content<T>>>;

/// The files that have been read so far.
#[derive(Debug, Default)]
pub(crate) struct Files {
    sizes: Contents<Shape, Cdf>,
    /// A list is checked against the number of hosts.
    flows: Contents<u32, FlowTable>,
    graphs: Contents<(), EdgeList>,
    programs: Contents<ProgramForm, Program>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProgramForm {
    Goal,
    Simai(u32),
    /// Chakra's traces, with the file of their process groups.
    Chakra(Option<String>),
}

/// The same with the folder that the names are relative to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilesAt<'a> {
    pub files: &'a Files,
    pub base: &'a Path,
}

impl FilesAt<'_> {
    /// A distribution of two columns, with its digest, which must be `expected` where one is.
    pub fn sizes(&self, path: &str, shape: Shape, expected: Option<&str>) -> Content<Cdf> {
        let parse = |text: &str| Cdf::parse(text, shape).map_err(|e| (Some(e.line), e.message));
        unchanged(path, expected, once(&self.files.sizes, path, shape, || self.text(path, parse)))
    }

    /// A list of flows between so many hosts, in the same way.
    pub fn flows(&self, path: &str, hosts: u32, expected: Option<&str>) -> Content<FlowTable> {
        let parse =
            |text: &str| FlowTable::parse(text, hosts).map_err(|e| (Some(e.line), e.message));
        unchanged(path, expected, once(&self.files.flows, path, hosts, || self.text(path, parse)))
    }

    pub fn graph(&self, path: &str) -> Result<Arc<EdgeList>, Problem> {
        let parse = |text: &str| EdgeList::parse(text).map_err(|message| (None, message));
        once(&self.files.graphs, path, (), || self.text(path, parse)).map(|(list, _)| list)
    }

    /// Programs of ranks, with their digest, in the same way.
    pub fn program(
        &self,
        path: &str,
        form: ProgramForm,
        expected: Option<&str>,
    ) -> Content<Program> {
        let problem = |reason: String| Problem::File { file: path.into(), reason };
        if path.is_empty() {
            return Err(problem("rank programs need a file".into()));
        }
        let read = || {
            let (program, digest) = match &form {
                ProgramForm::Chakra(groups) => self.traces(path, groups.as_deref())?,
                ProgramForm::Goal => {
                    let bytes = self.bytes(path)?;
                    (
                        program::read(&bytes).map_err(|error| in_file(path, error)),
                        hash_bytes(&bytes),
                    )
                }
                ProgramForm::Simai(iterations) => {
                    let bytes = self.bytes(path)?;
                    let text = String::from_utf8_lossy(&bytes);
                    let program = program::simai::read(&text, *iterations);
                    (program.map_err(|error| in_file(path, error)), hash_bytes(&bytes))
                }
            };
            Ok((Arc::new(program?), format!("{digest:016x}")))
        };
        unchanged(path, expected, once(&self.files.programs, path, form.clone(), read))
    }

    /// The bytes of a file.
    fn bytes(&self, path: &str) -> Result<Vec<u8>, Problem> {
        std::fs::read(self.base.join(path)).map_err(|error| Problem::File {
            file: path.into(),
            reason: format!("cannot be read: {error}"),
        })
    }

    /// Chakra's traces, with the digest of all files.
    fn traces(
        &self,
        path: &str,
        groups: Option<&str>,
    ) -> Result<(Result<Program, Problem>, u64), Problem> {
        let names = trace::names(self.base, path)
            .map_err(|(file, reason)| Problem::File { file, reason })?;
        let files = names.iter().map(String::as_str).chain(groups).map(|name| self.bytes(name));
        let all: Vec<Vec<u8>> = files.collect::<Result<_, _>>()?;
        let digest = all.iter().fold(0, |digest, bytes| mix64(digest ^ hash_bytes(bytes)));
        let groups = groups.zip(all.get(names.len()));
        let groups = groups.map(|(name, bytes)| chakra::File { name, bytes });
        let traces: Vec<chakra::File<'_>> =
            names.iter().zip(&all).map(|(name, bytes)| chakra::File { name, bytes }).collect();
        let program = chakra::read(&traces, groups)
            .map_err(|error| Problem::File { file: error.place, reason: error.message });
        Ok((program, digest))
    }

    /// The folder as it is found from anywhere.
    pub fn absolute_base(&self) -> PathBuf {
        std::path::absolute(Path::new(".").join(self.base))
            .unwrap_or_else(|_| self.base.to_path_buf())
    }

    /// The content of a text, which is understood with this, and its digest.
    fn text<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, (Option<usize>, String)>,
    ) -> Content<T> {
        let problem = |file: String, reason: String| Problem::File { file, reason };
        let text = std::fs::read_to_string(self.base.join(path));
        let text = text.map_err(|e| problem(path.into(), format!("cannot be read: {e}")))?;
        let content = parse(&text).map_err(|(line, reason)| {
            problem(line.map_or(path.to_string(), |line| format!("{path}:{line}")), reason)
        })?;
        Ok((Arc::new(content), format!("{:016x}", hash_name(&text))))
    }
}

/// The content of a file, which is read once for each key.
fn once<K: Ord, T>(
    contents: &Contents<K, T>,
    path: &str,
    key: K,
    read: impl FnOnce() -> Content<T>,
) -> Content<T> {
    // While one thread reads, the others wait for it: they would read the same.
    let mut contents = contents.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    contents.entry((path.to_string(), key)).or_insert_with(read).clone()
}

/// An error of a program in one file.
fn in_file(path: &str, error: ProgramError) -> Problem {
    Problem::File { file: format!("{path}: {}", error.place), reason: error.message }
}

/// A hash of a file that need not be text.
fn hash_bytes(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix64(hash ^ u64::from_le_bytes(word))
    })
}

/// The content, if its digest is the expected one.
fn unchanged<T>(path: &str, expected: Option<&str>, content: Content<T>) -> Content<T> {
    match (content?, expected) {
        ((_, digest), Some(expected)) if digest != expected => {
            let reason =
                format!("it has changed: its digest is {digest}, and {expected} is asked for");
            Err(Problem::File { file: path.into(), reason })
        }
        (content, _) => Ok(content),
    }
}
