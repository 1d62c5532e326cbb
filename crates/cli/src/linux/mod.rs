//! The commands that need Linux: `limit` and `switch`. `without_linux.rs` stands in for this folder
//! where the feature `linux` is off, or the target is another system.

mod args;
mod limit;
mod switch;

pub use args::{LimitArgs, SwitchArgs};
pub use limit::limit;
pub use switch::switch;

use millpond_scenario::Errors;

/// Why the Linux part failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A limit of a cgroup.
    #[error("{0}")]
    Limit(#[from] millpond_linux::limit::Error),
    /// The virtual switch.
    #[error("{0}")]
    Switch(#[from] millpond_linux::switch::Error),
}

impl Error {
    /// The errors of a configuration file, each with its place.
    pub fn of_file(&self) -> Option<&Errors> {
        match self {
            Error::Limit(millpond_linux::limit::Error::Config(errors))
            | Error::Switch(millpond_linux::switch::Error::Config(errors)) => Some(errors),
            _ => None,
        }
    }

    /// 1 failed, 2 bad usage or configuration.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Limit(millpond_linux::limit::Error::Request(_)) => 2,
            _ if self.of_file().is_some() => 2,
            _ => 1,
        }
    }
}

impl From<millpond_linux::limit::Error> for crate::failure::Failure {
    fn from(error: millpond_linux::limit::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<millpond_linux::switch::Error> for crate::failure::Failure {
    fn from(error: millpond_linux::switch::Error) -> Self {
        Error::from(error).into()
    }
}
