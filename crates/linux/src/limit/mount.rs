//! The bpf file system in which limits are kept: mounted where there is none, and unmounted with
//! the last limit.
//!
//! Invariant: a mount of others, or one in which others have pins, stays.

use super::Error;
use super::folder::{FOLDER, is_bpffs};
use std::fs;
use std::path::Path;

/// Mounts a bpf file system at `path` if there is none. Returns whether it did.
///
/// # Errors
/// [`Error::Privilege`] without CAP_SYS_ADMIN, [`Error::Kernel`] if the kernel refuses for another
/// reason.
pub fn mount_bpffs(path: &Path) -> Result<bool, Error> {
    if is_bpffs(path) {
        return Ok(false);
    }
    let flags = rustix::mount::MountFlags::NOSUID
        | rustix::mount::MountFlags::NODEV
        | rustix::mount::MountFlags::NOEXEC;
    match rustix::mount::mount(FOLDER, path, "bpf", flags, c"mode=0700") {
        Ok(()) => Ok(true),
        Err(e) if e == rustix::io::Errno::PERM => Err(Error::Privilege {
            what: format!("mounting a bpf file system at {}", path.display()),
            capability: "CAP_SYS_ADMIN".into(),
        }),
        Err(e) => Err(Error::Kernel {
            what: format!("mount -t bpf bpf {}", path.display()),
            reason: e.to_string(),
        }),
    }
}

/// Takes a bpf file system away that [`mount_bpffs`] has mounted and that nobody has pins in.
/// Returns whether it did. Its source in the table of mounts names who has mounted it.
pub fn unmount_bpffs(path: &Path) -> bool {
    // The kernel's own pins.
    let is_own = |name: &std::ffi::OsStr| name == "maps.debug" || name == "progs.debug";
    let is_empty = fs::read_dir(path)
        .is_ok_and(|entries| entries.flatten().all(|entry| is_own(&entry.file_name())));
    let flags = rustix::mount::UnmountFlags::empty();
    is_empty && is_mount_of_ours(path) && rustix::mount::unmount(path, flags).is_ok()
}

/// Whether the last mount at `path` is a bpf file system with our source.
pub fn is_mount_of_ours(path: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let last = mounts
        .lines()
        .rev()
        .find(|line| line.split(' ').nth(1).is_some_and(|at| Path::new(at) == path));
    last.is_some_and(|line| line.starts_with(FOLDER) && line.split(' ').nth(2) == Some("bpf"))
}
