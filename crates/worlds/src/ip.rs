//! Runs `ip` of iproute2.

use crate::Error;
use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

fn done(what: String, output: io::Result<Output>) -> Result<(), Error> {
    let output = output.map_err(|e| Error::new(&what, e))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_string();
            Err(Error::new(what, io::Error::other(reason)))
        }
    }
}

/// Runs `ip` with these arguments.
///
/// # Errors
/// If it cannot be started, or fails.
pub fn ip(args: &[&str]) -> Result<(), Error> {
    done(format!("ip {}", args.join(" ")), Command::new("ip").args(args).output())
}

/// Runs a line of `ip` each, in one process, in a namespace or here.
///
/// # Errors
/// If it cannot be started, or a line fails; those behind it are not run.
pub fn batch(namespace: Option<&str>, lines: &str) -> Result<(), Error> {
    let inside: Vec<&str> = namespace.iter().flat_map(|name| ["-n", name]).collect();
    feed(&inside, lines)
}

/// The same here; lines that fail do not keep others from being run.
pub(crate) fn batch_of_all(lines: &str) -> Result<(), Error> {
    feed(&["-force"], lines)
}

fn feed(options: &[&str], lines: &str) -> Result<(), Error> {
    let run = || {
        let mut command = Command::new("ip");
        command.args(options).args(["-batch", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        // A command that has ended already has an error.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(lines.as_bytes()));
        child.wait_with_output()
    };
    let first = lines.lines().next().unwrap_or_default();
    done(format!("ip {} -batch, from \"{first}\"", options.join(" ")), run())
}
