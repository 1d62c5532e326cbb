//! How a command fails, and with which exit code.

use millpond_scenario::Errors;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The scenario, an override, a variant, or a configuration file is wrong.
    #[error("the scenario has errors")]
    Scenario(#[from] Errors),
    /// The same of one point of a grid.
    #[error("the scenario has errors")]
    Point(String, Errors),
    /// Bad usage that only shows once files have been read.
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Import(#[from] millpond_import::Error),
    #[error("{0}")]
    Results(#[from] millpond_results::Error),
    /// The output did not get to its reader.
    #[error("cannot write to stdout: {0}")]
    Stdout(io::Error),
    /// The run's own check: packets or bytes were created or lost.
    #[error("the audit failed: {0}; this is a bug in millpond, please report it with the manifest")]
    Audit(String),
    /// Some of many runs, or what Linux refused.
    #[error("{0}")]
    Runs(String),
    /// Open flows that could not end any more. The results are written, with that status.
    #[error("{0}")]
    Stalled(String),
    /// The machine was too slow for a lab. The results are written, with that status.
    #[error("{0}")]
    Invalid(String),
    /// A number has become worse than is tolerated. The results are written.
    #[error("worse than tolerated: {0}")]
    Worse(String),
    #[error("interrupted; {0}")]
    Stopped(String),
    /// Ctrl-C. The results so far have been written.
    #[error("interrupted; what there was is written, with status \"interrupted\"")]
    Interrupted,
}

impl From<millpond::Error> for Failure {
    fn from(error: millpond::Error) -> Failure {
        use millpond::Error;
        match error {
            Error::Scenario(errors) => Failure::Scenario(errors),
            Error::Point(at, errors) => Failure::Point(at, errors),
            Error::Results(error) => Failure::Results(error),
            Error::Runs(text) => Failure::Runs(text),
            Error::Stopped(text) => Failure::Stopped(text),
            other => Failure::Usage(other.to_string()),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Usage(error.to_string())
    }
}

impl From<millpond_claims::Error> for Failure {
    fn from(error: millpond_claims::Error) -> Failure {
        millpond::Error::from(error).into()
    }
}

impl Failure {
    /// Of a file that only `--force` replaces.
    pub fn is_there(file: &Path) -> Failure {
        Failure::Usage(format!("{} is there already; --force replaces it", file.display()))
    }

    /// Of runs of a lab that are invalid, with the reason.
    pub fn invalid(why: &str) -> Failure {
        let what = "the results are written, and are not those of the scenario";
        Failure::Invalid(format!("{why}; {what}"))
    }

    /// 1 failed, 2 bad usage or scenario, 3 stalled, 4 invalid, 5 worse, 130 interrupted.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Scenario(_) | Failure::Point(..) | Failure::Usage(_) | Failure::Import(_) => 2,
            Failure::Results(_) | Failure::Stdout(_) => 1,
            Failure::Audit(_) | Failure::Runs(_) => 1,
            Failure::Stalled(_) => 3,
            Failure::Invalid(_) => 4,
            Failure::Worse(_) => 5,
            Failure::Interrupted | Failure::Stopped(_) => 130,
        })
    }
}

pub fn io_error(doing: &'static str, path: &Path, source: io::Error) -> millpond_results::Error {
    millpond_results::Error::Io { doing, path: path.to_path_buf(), source }
}
