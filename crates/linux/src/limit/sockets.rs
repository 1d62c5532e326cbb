//! Iterators over TCP sockets, run in network namespaces: what an iterator sees is the sockets of
//! the namespace that its reader is in.
//!
//! Invariant: a namespace that is gone, or may not be entered, is left out, and the others are
//! served.

use super::cgroup::below;
use libbpf_rs::{Iter, Link};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Network namespaces by inode number, each with a process that was in it.
#[derive(Default)]
pub(super) struct Namespaces(BTreeMap<u64, (File, String)>);

impl Namespaces {
    fn add(&mut self, pid: &str) {
        if let Ok(file) = File::open(format!("/proc/{pid}/ns/net"))
            && let Ok(meta) = file.metadata()
        {
            self.0.entry(meta.ino()).or_insert_with(|| (file, pid.to_string()));
        }
    }

    /// Those in which the processes of these cgroups are, and of those below.
    pub(super) fn of(cgroups: &[PathBuf]) -> Namespaces {
        let mut found = Namespaces::default();
        let mut open: Vec<PathBuf> = cgroups.to_vec();
        while let Some(folder) = open.pop() {
            let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            processes.lines().for_each(|pid| found.add(pid));
            open.extend(below(&folder).map(|entry| entry.path()));
        }
        found
    }

    /// Those of all processes: a connection keeps the cgroup that it was opened in, wherever its
    /// process is now.
    pub(super) fn all() -> Namespaces {
        let mut found = Namespaces::default();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
            .for_each(|pid| found.add(&pid));
        found
    }

    /// A process of each of them.
    pub(super) fn processes(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|(_, pid)| pid.as_str())
    }

    /// One round over all of them; how many could not be entered. Leaves this thread in one of
    /// them.
    pub(super) fn run(&self, link: &Link) -> usize {
        let mut left_out = 0;
        for (number, (namespace, _)) in &self.0 {
            let here =
                fs::metadata("/proc/thread-self/ns/net").is_ok_and(|meta| meta.ino() == *number);
            let network = Some(rustix::thread::LinkNameSpaceType::Network);
            if !here
                && rustix::thread::move_into_link_name_space(namespace.as_fd(), network).is_err()
            {
                left_out += 1;
                continue;
            }
            if let Ok(mut sockets) = Iter::new(link) {
                let _ = sockets.read_to_end(&mut Vec::new());
            }
        }
        left_out
    }
}
