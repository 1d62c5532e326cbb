//! The output on stdout, and whether it got there.
//!
//! Invariant: output that is lost (a full disk) makes the command fail at its end, however well it
//! did otherwise; a reader that has gone away (`| head`) does not.

use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, MutexGuard};

/// The first error, after which nothing more is printed.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

fn lost() -> MutexGuard<'static, Option<io::Error>> {
    LOST.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Prints a text and ends its line.
pub fn print(text: &str) {
    let mut lost = lost();
    if lost.is_some() {
        return;
    }
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(end.as_bytes()));
    *lost = written.and_then(|()| out.flush()).err();
}

/// Whether nobody gets what is printed any more: a command that prints for ever can end.
#[cfg(all(feature = "linux", target_os = "linux"))]
pub fn is_lost() -> bool {
    lost().is_some()
}

/// The error that output was lost by, if it was; a reader that has gone away wants no more and has
/// lost nothing.
pub fn failure() -> Result<(), io::Error> {
    match lost().take() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
