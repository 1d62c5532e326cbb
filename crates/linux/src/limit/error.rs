//! The faults between a limit that was asked for and one that holds.

use super::capability::{self, Capability};
use std::path::{Path, PathBuf};

/// Why a limit was not changed or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the limits have errors")]
    Config(#[from] millpond_scenario::Errors),
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// The kernel refused for want of a privilege.
    #[error("{what} needs {capability}: run as root, or give the process that capability")]
    Privilege { what: String, capability: String },
    /// Somebody else has a hand in the folder where limits are kept.
    #[error(
        "{} {reason}: nothing of it is trusted, or touched; rm -r {} removes it, with the limits \
         that it holds, and mode 0700 of the bpf file system keeps other users from making another",
        path.display(),
        path.display()
    )]
    Foreign { path: PathBuf, reason: String },
    #[error("{what}: {reason}")]
    Kernel { what: String, reason: String },
    /// No cgroup v2 is mounted.
    #[error(
        "no cgroup v2 is mounted (/proc/mounts has none): limits need it. `ip netns exec` hides \
         it: write limit run NAME -- ip netns exec NETNS COMMAND. Where there is none: mount -t \
         cgroup2 none /sys/fs/cgroup"
    )]
    NoCgroups,
    #[error("limit \"{limit}\": {reason}")]
    Cgroup { limit: String, reason: String },
    #[error(
        "the limits on this host were installed by a millpond with layout {found} of its maps, \
         this one has {ours}: they hold; lift them by `millpond limit remove --all`, and apply \
         anew"
    )]
    Layout {
        found: u32,
        /// The layout that this program reads.
        ours: u32,
    },
    #[error("{0}: end it, or try again when it is done")]
    Busy(String),
    #[error("no limits are installed")]
    Nothing,
    /// A request that does not fit what is installed.
    #[error("{0}")]
    Request(String),
}

impl Error {
    pub fn file(path: &Path, error: impl std::fmt::Display) -> Error {
        Error::File { path: path.to_path_buf(), reason: error.to_string() }
    }

    /// The kernel's error when asked to do `what`; if this process lacks capabilities that it
    /// takes, these.
    pub fn kernel(
        what: impl Into<String>,
        needed: &[Capability],
        error: &libbpf_rs::Error,
    ) -> Error {
        use libbpf_rs::ErrorKind::{InvalidInput, PermissionDenied};
        let (what, lacking) = (what.into(), capability::lacking(needed));
        match error.kind() {
            // The verifier calls it invalid what it takes from who has CAP_PERFMON.
            PermissionDenied | InvalidInput if !lacking.is_empty() => {
                Error::Privilege { what, capability: lacking.join(" and ") }
            }
            _ => Error::Kernel { what, reason: format!("{error:#}") },
        }
    }
}
