//! The commands that need Linux: `lab`, `limit` and `switch`. `without_linux.rs` stands in for this
//! folder where the feature `linux` is off, or the target is another system.

mod doctor;
mod lab;
mod limit;
mod standing;
mod switch;

pub use lab::lab;
pub use limit::limit;
pub use switch::switch;

use crate::args::linux::ShowArgs;
use crate::failure::Failure;
use crate::{print, stdout};
use millpond_linux::limit::doctor::{Finding, is_able, table};
use serde::Serialize;
use std::io::IsTerminal;

/// Prints a reading, or with `--watch` one after another while somebody reads them.
fn follow<R: Serialize>(
    args: &ShowArgs,
    mut before: R,
    read: impl Fn(&R) -> Result<R, Failure>,
    table: impl Fn(&R, &R) -> String,
) -> Result<(), Failure> {
    let pause = args.pause();
    loop {
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let now = read(&before)?;
        match args.json {
            true => print(&serde_json::to_string(&now)?),
            // Home, and clear what is below: the table stays in its place.
            false if args.watch => print(&format!("\x1b[H\x1b[J{}", table(&now, &before))),
            false => print(&table(&now, &before)),
        }
        if !args.watch || stdout::is_lost() {
            return Ok(());
        }
        before = now;
    }
}

/// Prints the findings of `doctor`. The error `unable` if one of them is fatal.
fn examined(findings: &[Finding], json: bool, unable: &str) -> Result<(), Failure> {
    match json {
        true => print(&serde_json::to_string(findings)?),
        false => print(&table(findings)),
    }
    match is_able(findings) {
        true => Ok(()),
        false => Err(Failure::Usage(unable.into())),
    }
}

/// Refuses to write a capture to a terminal.
fn needs_reader() -> Result<(), Failure> {
    match std::io::stdout().is_terminal() {
        true => Err(Failure::Usage(
            "a capture is no text: give it a file (--write FILE), or a reader".into(),
        )),
        false => Ok(()),
    }
}

impl From<millpond_linux::limit::Error> for Failure {
    fn from(error: millpond_linux::limit::Error) -> Failure {
        use millpond_linux::limit::Error;
        match error {
            Error::Config(errors) => Failure::Scenario(errors),
            Error::Request(_) => Failure::Usage(error.to_string()),
            _ => Failure::Runs(error.to_string()),
        }
    }
}

impl From<millpond_linux::switch::Error> for Failure {
    fn from(error: millpond_linux::switch::Error) -> Failure {
        use millpond_linux::switch::Error;
        match error {
            Error::Config(errors) => Failure::Scenario(errors),
            _ => Failure::Runs(error.to_string()),
        }
    }
}
