//! Messages on stderr.
//!
//! Invariant: a message that reaches nobody (a full disk, a reader that has gone away) changes
//! nothing.

use crate::pages::located;
use millpond_results::Warnings;
use std::fmt::Display;
use std::io::{self, Write};

/// Prints warnings: the first of them and the number of the others, or all.
pub fn warn(warnings: &[String], shown: Warnings) {
    let (first, others) = shown.of(warnings);
    first.iter().for_each(|warning| eprint(located(&format!("warning: {warning}"))));
    others.iter().for_each(|others| eprint(format_args!("note: {others}")));
}

/// Removes the warnings that were printed before.
pub fn keep_new(warnings: &mut Vec<String>, printed: &[String]) {
    warnings.retain(|warning| !printed.contains(warning));
}

/// Prints a text and ends its line.
pub fn eprint(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
