//! Everything that can go wrong with a results folder.
//!
//! Invariant: an error of the file system names the file that it happened to.

use std::io;
use std::path::{Path, PathBuf};

/// Why results could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused: disk full, no permission, no such folder.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The attempt: "write", "create", "rename" and the like.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is a file, not a folder; choose another folder for the results", .0.display())]
    IsFile(PathBuf),
    /// The target is a folder with something else in it.
    #[error(
        "{} exists and is no millpond result (it has {}); choose another folder, or replace it \
         with --force",
        .0.display(), .1
    )]
    NotAResult(PathBuf, String),
    /// The target is the result of another command or scenario.
    #[error(
        "{} holds {holds}, and this is {now}; choose another folder with --out, or replace it with \
         --force",
        path.display()
    )]
    OtherResult { path: PathBuf, holds: String, now: String },
    /// The target is a result of the same command, with files in it that no command wrote.
    #[error(
        "{} holds files that are not of its result ({}); move them, choose another folder with \
         --out, or replace it with --force",
        .0.display(), .1
    )]
    ForeignFiles(PathBuf, String),
    /// An interrupted command left finished runs, which this one cannot go on with.
    #[error(
        "{} holds {runs} finished runs of a compare that was interrupted and does not match this \
         command (scenario, values, seeds or version); go on with that compare, choose another \
         --out, or drop them with --force",
        path.display()
    )]
    Unfinished { path: PathBuf, runs: usize },
    /// The temporary name is taken by something that no run has made.
    #[error("{} is in the way: it was not made by a run; move it elsewhere", .0.display())]
    InTheWay(PathBuf),
    /// Another run is writing to the same folder now.
    #[error(
        "another run{} is writing {}; wait for it, or choose another folder",
        holder.map(|p| format!(" (process {p})")).unwrap_or_default(), path.display()
    )]
    Busy {
        /// The temporary folder that it holds.
        path: PathBuf,
        /// Its process, where it left its number.
        holder: Option<u32>,
    },
    /// The target cannot be a folder's name: `/`, `..` or empty.
    #[error("{:?} cannot name a results folder", .0.as_os_str())]
    BadName(PathBuf),
    /// A file of a results folder has other content than it should.
    #[error("{}: {reason}", path.display())]
    Malformed { path: PathBuf, reason: String },
    /// A class name is used twice, or is one of those that results give themselves.
    #[error("class name {0:?} {1}")]
    ClassName(String, &'static str),
    /// A record names a class that the header does not have.
    #[error("record {record} has class {class}, but there are only {classes}")]
    UnknownClass { record: u32, class: u16, classes: usize },
    /// A record ends before it starts.
    #[error("record {0} ends before it starts")]
    EndsEarly(u32),
    /// The folder holds the runs of another sweep.
    #[error(
        "{} holds another sweep: {change}; choose another --out, or go on with --force, which \
         keeps the runs that both share and removes the others",
        path.display()
    )]
    OtherSweep { path: PathBuf, change: String },
    /// The folder's runs are not those of the sweep that they were to be merged into.
    #[error(
        "{} holds runs of another sweep: {change}; merge shards of this command",
        path.display()
    )]
    OtherShard { path: PathBuf, change: String },
    /// The folder does not have such a table.
    #[error("{} has no table {table:?}: {reason}", path.display())]
    NoTable {
        path: PathBuf,
        table: String,
        /// The content that there is instead.
        reason: String,
    },
    /// There is nothing to compare or to report.
    #[error("nothing to compare: {0}")]
    NothingToCompare(String),
}

impl Error {
    /// The file or folder that it happened to, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        use Error::*;
        match self {
            IsFile(path) | NotAResult(path, _) | ForeignFiles(path, _) => Some(path),
            InTheWay(path) | BadName(path) => Some(path),
            Io { path, .. } | OtherResult { path, .. } | Unfinished { path, .. } => Some(path),
            Busy { path, .. } | Malformed { path, .. } | OtherSweep { path, .. } => Some(path),
            OtherShard { path, .. } | NoTable { path, .. } => Some(path),
            ClassName(..) | UnknownClass { .. } | EndsEarly(_) | NothingToCompare(_) => None,
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// Names the file in an error of the file system.
pub(crate) trait At<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { doing, path: path.to_path_buf(), source })
    }
}

impl<T> At<T> for parquet::errors::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T> {
        use parquet::errors::ParquetError;
        self.map_err(|error| match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => Error::Io { doing, path: path.to_path_buf(), source: *source },
                Err(other) => {
                    Error::Malformed { path: path.to_path_buf(), reason: other.to_string() }
                }
            },
            other => Error::Malformed { path: path.to_path_buf(), reason: other.to_string() },
        })
    }
}

impl<T> At<T> for serde_json::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|error| match error.io_error_kind() {
            Some(_) => Error::Io { doing, path: path.to_path_buf(), source: error.into() },
            None => Error::Malformed { path: path.to_path_buf(), reason: error.to_string() },
        })
    }
}
