//! Errors between a switch that was asked for and one that runs.

use crate::dataplane::port;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a switch was not changed or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the switch has errors")]
    Config(#[from] millpond_scenario::Errors),
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("port \"{name}\": {error}")]
    Port { name: String, error: port::Error },
    /// Another copy is changing the switch.
    #[error(
        "another millpond is changing the switch, for more than {0} s: try again when it is done"
    )]
    Busy(u64),
    /// The state folder is another user's.
    #[error(
        "{}: permission denied: the state of a switch is root's; run the command as root (sudo)",
        .0.display()
    )]
    Forbidden(PathBuf),
    #[error(
        "no switch is running here ({}): millpond switch apply CONFIG.toml starts one",
        .0.display()
    )]
    NotRunning(PathBuf),
    /// The switch ended while it was to start.
    #[error("the switch did not start: {0}")]
    Start(String),
    #[error("{0}")]
    Refused(String),
    #[error("{what}: {reason}")]
    Kernel { what: String, reason: String },
}

/// Runs `ip` or `tc`. Returns the output.
///
/// # Errors
/// The text in which the program names the reason, or why the program did not start.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let done = Command::new(program).args(arguments).output();
    let done = done.map_err(|e| format!("`{program}`: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

impl Error {
    pub fn file(path: &Path, error: impl std::fmt::Display) -> Error {
        Error::File { path: path.to_path_buf(), reason: error.to_string() }
    }
    /// Whether another process has what is wanted, which may be about to end.
    pub fn is_busy(&self) -> bool {
        matches!(self, Error::Port { error: port::Error::Busy { .. }, .. })
    }
    /// The system's error when asked to do `what`.
    pub fn kernel(what: impl Into<String>, error: impl std::fmt::Display) -> Error {
        Error::Kernel { what: what.into(), reason: error.to_string() }
    }
}
