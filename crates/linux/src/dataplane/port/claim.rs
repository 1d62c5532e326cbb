//! Interfaces that are attached to, each by one switch of the host: the kernel lets several
//! processes attach packet sockets to an interface, and two switches would carry each frame twice.
//!
//! A claim is a locked file, named after the namespace and the interface's number. Its folder is
//! root's: tenants cannot claim anything.
//!
//! Invariant: a claim ends with its process, however that ends. A dropped claim leaves no file.

use super::Error;
use millpond_worlds::namespace;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const FOLDER: &str = "/run/millpond/interfaces";

/// The right to attach to an interface.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    _file: File,
}

impl Claim {
    /// Claims the interface with this index in the calling thread's namespace. `None`: the process
    /// may not write to the folder, so nobody's claims count for it.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process has the claim, [`Error::Kernel`] if the file cannot be
    /// locked.
    pub(super) fn of(device: &str, index: i32) -> Result<Option<Claim>, Error> {
        Claim::within(Path::new(FOLDER), device, index)
    }

    fn within(folder: &Path, device: &str, index: i32) -> Result<Option<Claim>, Error> {
        let (_, inode) = namespace::own().unwrap_or_default();
        let path = folder.join(format!("{inode}-{index}"));
        match lock(folder, &path) {
            Ok(Some(file)) => Ok(Some(Claim { path, _file: file })),
            Ok(None) => Err(Error::Busy { device: device.into() }),
            Err(e) if is_unwritable(e.kind()) => {
                log::warn!("{device} is not claimed: {}: {e}", path.display());
                Ok(None)
            }
            Err(e) => Err(Error::kernel(format!("claiming {device} by {}", path.display()), e)),
        }
    }
}

/// Whether the folder takes no file of this process: another switch may attach as well.
fn is_unwritable(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    [PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull].contains(&kind)
}

/// Removes the claims of processes that were killed, and the folder if no others are left.
pub fn sweep() {
    sweep_within(Path::new(FOLDER));
}

fn sweep_within(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // The lock ends with the file.
        if let Ok(file) = File::open(&path)
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
    // The folder around it, if nothing else is in it.
    if fs::remove_dir(folder).is_ok() {
        let _ = folder.parent().map(fs::remove_dir);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Whoever has opened it meanwhile finds that it is not the one at the path.
        let _ = fs::remove_file(&self.path);
    }
}

/// Locks a file, which is made where it is missing. `None`: another process has it.
fn lock(folder: &Path, path: &Path) -> io::Result<Option<File>> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
    loop {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(e) => return Err(e.into()),
        }
        let locked = file.metadata().map(identity)?;
        if fs::metadata(path).is_ok_and(|named| identity(named) == locked) {
            return Ok(Some(file));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_claimed_once_and_again_after_that() {
        let folder = std::env::temp_dir().join(format!("millpond-claims-{}", std::process::id()));
        let claim = |index: i32| Claim::within(&folder, "eth1", index);
        let first = claim(1).unwrap().expect("the folder can be written");
        let error = claim(1).unwrap_err().to_string();
        assert!(error.starts_with("eth1 is held by another process"), "{error}");
        let other = claim(2).unwrap();
        drop(first);
        assert!(claim(1).unwrap().is_some());
        drop(other);
        // One of a process that was killed.
        fs::write(folder.join("1-9"), "").unwrap();
        let held = claim(3).unwrap();
        sweep_within(&folder);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "the one that is held");
        drop(held);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "no file is left");
        sweep_within(&folder);
        assert!(!folder.exists());
    }
}
