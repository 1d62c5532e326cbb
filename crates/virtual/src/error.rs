//! Reasons why a world of kernels cannot run, or go on.

use std::path::PathBuf;

/// Why a world cannot run, or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key of the scenario asks for something that this world lacks.
    #[error("`{key}`: {reason}")]
    Unsupported {
        /// The key, such as `transport.kind`.
        key: String,
        /// The missing part, and a remedy.
        reason: String,
    },
    /// There is no kernel to run.
    #[error("{}: {reason}", path.display())]
    Kernel {
        path: PathBuf,
        /// The missing part, and a remedy.
        reason: String,
    },
    /// A guest sent an invalid message.
    #[error("{0}")]
    Protocol(String),
    /// A guest has ended, stands still, or cannot follow an order.
    #[error("host {host}: {reason}{}", if console.is_empty() { String::new() } else {
        format!("\nthe last lines of its console:\n{console}")
    })]
    Guest {
        host: u32,
        reason: String,
        /// The last lines of its console.
        console: String,
    },
    /// The hosts' memory is more than this machine has.
    #[error(
        "{hosts} kernels need {needed} MB of memory and this machine has {available} MB free: use \
         fewer hosts"
    )]
    Memory {
        hosts: u32,
        /// The memory that they touch by experience.
        needed: u64,
        available: u64,
    },
    /// A system call of the world's own failed.
    #[error("{what}: {source}")]
    System { what: String, source: std::io::Error },
}

impl Error {
    pub(crate) fn system(what: impl Into<String>, source: impl Into<std::io::Error>) -> Error {
        Error::System { what: what.into(), source: source.into() }
    }
}
