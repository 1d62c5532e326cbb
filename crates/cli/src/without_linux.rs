//! `limit` and `switch` of a build without its Linux part: they refuse, whatever their arguments.

use crate::args::{LimitArgs, SwitchArgs};
use crate::failure::Failure;

#[cfg(target_os = "linux")]
const REMEDY: &str = "build with --features linux (it needs clang and libelf)";
#[cfg(not(target_os = "linux"))]
const REMEDY: &str = "the command needs Linux";

/// Refuses.
pub fn limit(_: &LimitArgs) -> Result<(), Failure> {
    Err(Failure::Usage(format!("this build has no Linux part; {REMEDY}")))
}

/// Refuses.
pub fn switch(args: &SwitchArgs) -> Result<(), Failure> {
    limit(args)
}
