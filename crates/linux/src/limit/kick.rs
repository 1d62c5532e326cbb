//! The kick, from user space: runs the iterator over the TCP sockets of every network namespace in
//! which limited cgroups have processes. Its work on a socket is in `bpf/kick.bpf.c`.
//!
//! Invariant: what is loaded reads the maps that were pinned then; where those were removed, and
//! others made since, it is loaded anew.

use super::Error;
use super::capability::BPF;
use super::object::{self, Loaded};
use super::sockets::Namespaces;
use super::store;
use libbpf_rs::{Link, MapCore};
use std::path::{Path, PathBuf};

/// The loaded iterator. It enters namespaces: give it a thread of its own.
pub struct Kick {
    _loaded: Loaded,
    link: Link,
    /// Which map of attached cgroups it reads.
    attached: u32,
    namespaces: Namespaces,
}

/// The map of attached cgroups that is pinned now.
fn pinned(bpffs: &Path) -> Result<u32, Error> {
    let info = store::pinned(bpffs, "attached")?.info();
    Ok(info.map_err(|e| Error::kernel("map attached", &[BPF], &e))?.info.id)
}

impl Kick {
    /// Loads the kick over the installed limits.
    ///
    /// # Errors
    /// [`Error::Privilege`] without CAP_BPF, [`Error::Kernel`] if the kernel is older than Linux
    /// 5.18, has no BTF, or refuses the program.
    pub fn load(bpffs: &Path) -> Result<Kick, Error> {
        let what = "the kick (it needs BTF, and iterators over TCP sockets that may set options: \
                    Linux 5.18)";
        let attached = pinned(bpffs)?;
        let loaded =
            Loaded::new(object::KICK, what, |map, name| match store::MAPS.contains(&name) {
                true => map.reuse_pinned_map(store::map_path(&store::folder(bpffs), name)),
                false => Ok(()),
            })?;
        let link = loaded.attach("kick")?;
        Ok(Kick { _loaded: loaded, link, attached, namespaces: Namespaces::default() })
    }

    /// Whether it reads the maps of the limits that are installed now.
    pub fn is_current(&self, bpffs: &Path) -> bool {
        pinned(bpffs).is_ok_and(|attached| attached == self.attached)
    }

    /// Looks for the namespaces of the processes in these cgroups and below.
    pub fn find_namespaces(&mut self, cgroups: &[PathBuf]) {
        self.namespaces = Namespaces::of(cgroups);
    }

    /// One round over all of them.
    pub fn run(&mut self) {
        self.namespaces.run(&self.link);
    }
}
