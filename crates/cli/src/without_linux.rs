//! `lab`, `limit` and `switch` of a build without its Linux part: they refuse, whatever their arguments.

use crate::args::{LabArgs, LimitArgs, SwitchArgs, WorldName};
use crate::failure::Failure;
use millpond::{Sim, World};

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

/// Refuses.
pub fn lab(args: &LabArgs) -> Result<(), Failure> {
    limit(args)
}

/// The simulator, which is the only world of this build.
pub fn worlds(names: &[WorldName], _: Option<u32>) -> Result<Vec<Box<dyn World>>, Failure> {
    match names.contains(&WorldName::Lab) {
        true => Err(Failure::Usage(format!("this build has no lab; {REMEDY}"))),
        false => Ok(names.iter().map(|_| Box::new(Sim) as Box<dyn World>).collect()),
    }
}
