//! Arguments of `lab`, `limit` and `switch` where a build has no Linux part: none is read.

use clap::Args;
use std::ffi::OsString;

/// Any arguments.
#[derive(Args, Debug)]
pub struct Unread {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// Arguments of `limit`.
pub type LimitArgs = Unread;
/// Arguments of `lab`.
pub type LabArgs = Unread;
/// Arguments of `switch`.
pub type SwitchArgs = Unread;
