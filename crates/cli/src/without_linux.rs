//! `limit` and `switch` of a build without its Linux part: they refuse, whatever their arguments.

use crate::failure::Failure;
use clap::Args;
use millpond_scenario::Errors;
use std::ffi::OsString;

/// Any arguments.
#[derive(Args, Debug)]
pub struct Unread {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// What `limit` takes.
pub type LimitArgs = Unread;
/// What `switch` takes.
pub type SwitchArgs = Unread;

/// This build has no Linux part.
#[derive(Debug, thiserror::Error)]
#[error("this build has no Linux part; {}", Error::REMEDY)]
pub struct Error;

impl Error {
    #[cfg(target_os = "linux")]
    const REMEDY: &str = "build with --features linux (it needs clang and libelf)";
    #[cfg(not(target_os = "linux"))]
    const REMEDY: &str = "the command needs Linux";

    /// None: no file is read.
    pub fn of_file(&self) -> Option<&Errors> {
        None
    }

    /// 2: bad usage.
    pub fn exit_code(&self) -> u8 {
        2
    }
}

/// Refuses.
pub fn limit(_: &LimitArgs) -> Result<(), Failure> {
    Err(Error.into())
}

/// Refuses.
pub fn switch(_: &SwitchArgs) -> Result<(), Failure> {
    Err(Error.into())
}
