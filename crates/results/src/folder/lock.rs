//! The lock of a results folder: a file in it, which the system unlocks when the process ends in
//! whatever way.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::model::{At, Error, Result};

/// The file's name in the folder.
pub(crate) const LOCK: &str = ".millpond-lock";

/// Opens the file in `dir`, made if need be.
pub(crate) fn open(dir: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(dir.join(LOCK))
}

/// Takes the lock of `dir`.
///
/// # Errors
/// [`Error::Busy`] with the holder's number if another process has it.
pub(crate) fn take(file: &mut File, dir: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            Err(Error::Busy { path: dir.to_path_buf(), holder: text.trim().parse().ok() })
        }
        // A file system without locks: its users must take care themselves.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(error).at("lock", &dir.join(LOCK)),
    }
}

/// Writes this process's number into the file.
pub(crate) fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}
