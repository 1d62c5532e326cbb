//! `lab`, `limit` and `switch` of a build without its Linux part: they refuse, whatever their
//! arguments.

use crate::args::{LabArgs, LimitArgs, SwitchArgs};
use crate::failure::Failure;
use crate::worlds::REMEDY;

pub fn limit(_: &LimitArgs) -> Result<(), Failure> {
    Err(Failure::Usage(format!("this build has no Linux part; {REMEDY}")))
}

pub fn switch(args: &SwitchArgs) -> Result<(), Failure> {
    limit(args)
}

pub fn lab(args: &LabArgs) -> Result<(), Failure> {
    limit(args)
}
