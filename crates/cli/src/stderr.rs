//! What is told on stderr.
//!
//! Invariant: that nobody can be told (a full disk, a reader that has gone away) changes nothing.

use std::fmt::Display;
use std::io::{self, Write};

/// Tells a text and ends its line.
pub fn tell(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
