//! Sockets of cgroups other than the load's own: those whose traffic is limited.
//!
//! The kernel gives a socket the cgroup of the thread that makes it, and an accepted one that of
//! its listener. To move a thread takes milliseconds, so a thread waits in each cgroup, with some
//! sockets that are ready.
//!
//! Invariant: when this is dropped, its threads have left the cgroups.

use super::Place;
use millpond_agent::socket;
use millpond_worlds::namespace;
use rustix::thread::gettid;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Sockets that are ready in a cgroup.
const READY: usize = 16;

/// A cgroup for sockets of one host. It is threaded (`cgroup.type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    pub host: u32,
    /// The classes of traffic that belong to it; `None`: all.
    pub classes: Option<Vec<u16>>,
    pub folder: PathBuf,
}

impl Cgroup {
    /// Whether sockets of a host, for a class of traffic, belong to it.
    pub fn covers(&self, host: u32, class: u16) -> bool {
        let covers = |classes: &Vec<u16>| classes.contains(&class);
        self.host == host && self.classes.as_ref().is_none_or(covers)
    }
}

struct Maker {
    ready: Option<Receiver<io::Result<OwnedFd>>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
pub(super) struct Makers {
    cgroups: Vec<Cgroup>,
    makers: Vec<Maker>,
}

/// Makes sockets until nobody takes them.
fn make(folder: &Path, network: &str, congestion: &str, ready: &SyncSender<io::Result<OwnedFd>>) {
    let id = gettid().as_raw_nonzero().to_string();
    let moved = fs::write(folder.join("cgroup.threads"), id);
    if let Err(error) = moved.and_then(|()| namespace::enter(network)) {
        let _ = ready.send(Err(error));
        return;
    }
    while ready.send(socket::tcp(Some(congestion))).is_ok() {}
}

impl Makers {
    /// Starts a thread in each cgroup.
    ///
    /// # Errors
    /// If the kernel has no more threads.
    pub fn new(cgroups: &[Cgroup], places: &[Place], congestion: &str) -> io::Result<Makers> {
        let start = |cgroup: &Cgroup| {
            let (send, ready) = sync_channel(READY);
            let (folder, congestion) = (cgroup.folder.clone(), congestion.to_string());
            let network = places[cgroup.host as usize].namespace.clone();
            let thread = std::thread::Builder::new().name("lab-sockets".into());
            let thread = thread.spawn(move || make(&folder, &network, &congestion, &send))?;
            Ok(Maker { ready: Some(ready), thread: Some(thread) })
        };
        let makers = cgroups.iter().map(start).collect::<io::Result<_>>()?;
        Ok(Makers { cgroups: cgroups.to_vec(), makers })
    }

    /// The cgroup of a host's sockets for a class of traffic, by number.
    pub fn of(&self, host: u32, class: u16) -> Option<usize> {
        self.cgroups.iter().position(|cgroup| cgroup.covers(host, class))
    }

    /// A new socket of a cgroup.
    ///
    /// # Errors
    /// The kernel's reason: the cgroup cannot be entered, or there are no more sockets.
    pub fn take(&self, cgroup: usize) -> io::Result<OwnedFd> {
        let ready = self.makers[cgroup].ready.as_ref();
        let taken = ready.map_or_else(
            || Err(io::ErrorKind::BrokenPipe.into()),
            |ready| ready.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())),
        );
        let folder = &self.cgroups[cgroup].folder;
        taken.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", folder.display())))
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        self.ready = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cgroup(host: u32, classes: Option<Vec<u16>>) -> Cgroup {
        Cgroup { host, classes, folder: PathBuf::new() }
    }

    #[test]
    fn each_class_of_a_host_has_its_cgroup() {
        let cgroups = vec![cgroup(0, Some(vec![1])), cgroup(2, None), cgroup(0, Some(vec![0]))];
        let makers = Makers { cgroups, makers: Vec::new() };
        let of = [makers.of(0, 1), makers.of(0, 0), makers.of(0, 2), makers.of(2, 7)];
        assert_eq!(of, [Some(0), Some(2), None, Some(1)]);
    }
}
