//! The attachment of a program to a cgroup: a link, which is pinned.
//!
//! Invariant: a pin that is there is of a program on this cgroup, or of a cgroup that is gone.

use super::Error;
use super::capability::PROGRAMS;
use super::cgroup::Cgroup;
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, Object};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Attaches the program of this name, or puts it in the place of the one that the pin `path` has.
pub(super) fn attach(
    object: &Object,
    cgroup: &Cgroup,
    name: &str,
    path: &Path,
) -> Result<(), Error> {
    let what = || format!("attaching to {}", cgroup.path.display());
    let fail = |e: libbpf_rs::Error| Error::kernel(what(), PROGRAMS, &e);
    let program = super::object::program(object, &what(), name)?;
    if path.exists() {
        let mut link = Link::open(path).map_err(fail)?;
        if is_live(&link) {
            return link.update_prog(&program).map_err(fail);
        }
        fs::remove_file(path).map_err(|e| Error::file(path, e))?;
    }
    let folder = File::open(&cgroup.path).map_err(|e| Error::file(&cgroup.path, e))?;
    let mut link = program.attach_cgroup(folder.as_raw_fd()).map_err(fail)?;
    link.pin(path).map_err(fail)
}

/// Whether a link's cgroup is still there.
pub(super) fn is_live(link: &Link) -> bool {
    link.info().is_ok_and(
        |info| matches!(info.info, LinkTypeInfo::Cgroup(cgroup) if cgroup.cgroup_id != 0),
    )
}
