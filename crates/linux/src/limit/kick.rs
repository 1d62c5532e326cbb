//! The kick, from user space: runs the iterator over the TCP sockets of every network namespace in which limited cgroups have
//! processes. What it does to a socket is in `bpf/kick.bpf.c`.
//!
//! Invariant: a namespace that is gone, or may not be entered, is left out, and the others are served. What is loaded reads the maps that were
//! pinned then; where those were removed, and others made since, it is loaded anew.

use super::Error;
use super::object;
use super::store;
use libbpf_rs::{Iter, Link, MapCore, Object};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The loaded iterator. It enters namespaces: give it a thread of its own.
pub struct Kick {
    _object: Object,
    link: Link,
    /// Which map of attached cgroups it reads.
    attached: u32,
    /// By inode number.
    namespaces: BTreeMap<u64, File>,
}

/// The map of attached cgroups that is pinned now.
fn pinned(bpffs: &Path) -> Result<u32, Error> {
    let info = store::pinned(bpffs, "attached")?.info();
    Ok(info.map_err(|e| Error::kernel("map attached", "CAP_BPF", &e))?.info.id)
}

impl Kick {
    /// Loads it over the installed limits.
    pub fn load(bpffs: &Path) -> Result<Kick, Error> {
        let what = "the kick (it needs BTF, and iterators over TCP sockets that may set options: Linux 5.18)";
        let fail = |e: libbpf_rs::Error| Error::kernel(what, "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN", &e);
        let mut open = object::open(object::KICK, what)?;
        let attached = pinned(bpffs)?;
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if store::MAPS.contains(&name.as_str()) {
                map.reuse_pinned_map(store::map_path(&store::folder(bpffs), &name)).map_err(fail)?;
            }
        }
        let object = open.load().map_err(fail)?;
        let program = object.progs_mut().find(|p| p.name() == "kick");
        let program = program.ok_or_else(|| Error::Kernel { what: what.into(), reason: "no such program".into() })?;
        let link = program.attach().map_err(fail)?;
        Ok(Kick { _object: object, link, attached, namespaces: BTreeMap::new() })
    }

    /// Whether it reads the maps of the limits that are installed now.
    pub fn is_current(&self, bpffs: &Path) -> bool {
        pinned(bpffs).is_ok_and(|attached| attached == self.attached)
    }

    /// Looks for the namespaces of the processes in these cgroups and below.
    pub fn find_namespaces(&mut self, cgroups: &[PathBuf]) {
        let mut found = BTreeMap::new();
        let mut open: Vec<PathBuf> = cgroups.to_vec();
        while let Some(folder) = open.pop() {
            let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            for pid in processes.lines() {
                let Ok(file) = File::open(format!("/proc/{pid}/ns/net")) else { continue };
                if let Ok(meta) = file.metadata() {
                    found.entry(meta.ino()).or_insert(file);
                }
            }
            let below = fs::read_dir(&folder).into_iter().flatten().flatten();
            open.extend(below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        }
        self.namespaces = found;
    }

    /// One round over all of them.
    pub fn run(&mut self) {
        for namespace in self.namespaces.values() {
            let network = Some(rustix::thread::LinkNameSpaceType::Network);
            if rustix::thread::move_into_link_name_space(namespace.as_fd(), network).is_err() {
                continue;
            }
            if let Ok(mut sockets) = Iter::new(&self.link) {
                let _ = sockets.read_to_end(&mut Vec::new());
            }
        }
    }
}
