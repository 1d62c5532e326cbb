//! Reading by a library that panics on some damaged files.
//!
//! Invariant: what a file holds ends in an error that names the file, never in a panic; a panic
//! that comes from anywhere else is passed on as it is.

use crate::model::error::{Error, Result};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

thread_local! {
    /// Whether this thread reads what may be damaged: then a panic is an answer, and not to be
    /// reported.
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// The result of `read` on the file at `path`; if it panics, that the file is damaged.
pub(crate) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !READING.get() {
                report(panic);
            }
        }));
    });
    READING.set(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    READING.set(false);
    read.unwrap_or_else(|_| {
        let reason = "is damaged: it is not what was written".to_string();
        Err(Error::Malformed { path: path.to_path_buf(), reason })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_the_files_error() {
        let path = Path::new("x.parquet");
        assert_eq!(guarded(path, || Ok(3)).unwrap(), 3);
        let error = guarded(path, || -> Result<()> { panic!("index out of range") }).unwrap_err();
        assert_eq!(error.to_string(), "x.parquet: is damaged: it is not what was written");
    }
}
