//! Tests that need what a machine may lack.
//!
//! Invariant: a skipped test prints its name and the reason, past libtest's capture; where tests
//! must run it fails.

use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Whether a skipped test is a failure: `MILLPOND_NO_SKIP` is 1, or `CI` is set and the user is
/// root.
pub fn must_run() -> bool {
    let asked = std::env::var_os("MILLPOND_NO_SKIP").is_some_and(|value| value == "1");
    asked || std::env::var_os("CI").is_some_and(|value| !value.is_empty()) && is_root()
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// Whether this machine is known to lack that: `MILLPOND_MAY_LACK` has words of the reason, or
/// several such, with commas between them.
fn may_lack(reason: &str) -> bool {
    let known = std::env::var("MILLPOND_MAY_LACK").unwrap_or_default();
    known.split(',').map(str::trim).any(|words| !words.is_empty() && reason.contains(words))
}

/// Prints that the test `name` is skipped for `reason`, and counts it.
///
/// # Panics
/// If tests must run ([`must_run`]), unless the machine is known to lack that.
pub fn skip(name: &str, reason: impl Display) {
    let reason = reason.to_string();
    let is_skipped = !must_run() || may_lack(&reason);
    assert!(is_skipped, "{name} must not be skipped, and cannot run here: {reason}");
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    // Not `eprintln!`, which libtest captures and shows for failed tests alone.
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason} ({count} skipped so far)");
}

/// How many tests of this process were skipped.
pub fn count() -> usize {
    SKIPPED.load(Ordering::Relaxed)
}

/// The value of a `Result`, or the end of the test: `let place = needs!(Place::new("a"));`. With a
/// condition: `needs!(has_tc(), "tc with tbf")`.
///
/// The test that lacks it is [skipped](skip()).
#[macro_export]
macro_rules! needs {
    ($have:expr $(,)?) => {
        match $have {
            Ok(it) => it,
            Err(lack) => {
                $crate::skip::skip($crate::test_name!(), lack);
                return;
            }
        }
    };
    ($is:expr, $($lack:tt)+) => {
        if !$is {
            $crate::skip::skip($crate::test_name!(), format_args!($($lack)+));
            return;
        }
    };
}

/// The path of the function that this is written in.
#[doc(hidden)]
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        std::any::type_name_of_val(&here).trim_end_matches("::here")
    }};
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    #[test]
    fn a_test_ends_where_it_lacks_something() {
        if super::must_run() {
            return;
        }
        let (before, reached) = (super::count(), Cell::new(0));
        let lacks = |have: Result<u8, &str>| {
            reached.set(needs!(have));
        };
        lacks(Ok(1));
        assert_eq!((reached.get(), super::count()), (1, before));
        lacks(Err("a thing that no machine has (this line is of a test)"));
        assert_eq!((reached.get(), super::count()), (1, before + 1));
    }

    #[test]
    fn a_test_is_named_by_its_function() {
        let name = test_name!();
        assert!(name.ends_with("skip::tests::a_test_is_named_by_its_function"), "{name}");
    }
}
