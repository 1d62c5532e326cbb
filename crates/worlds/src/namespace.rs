//! Does something in another network namespace.
//!
//! Invariant: the caller's thread stays where it is: a thread of its own enters, and ends.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

const OWN: &str = "/proc/thread-self/ns/net";

/// Where a namespace's file is: a path as it is, a name where `ip netns` keeps it.
pub fn path(name: &str) -> PathBuf {
    match name.starts_with('/') {
        true => PathBuf::from(name),
        false => PathBuf::from("/run/netns").join(name),
    }
}

/// Moves the calling thread, and the processes that it starts, into the network namespace for good.
///
/// # Errors
/// The kernel's reason: there is no such namespace, or the process lacks CAP_SYS_ADMIN.
pub fn enter(name: &str) -> io::Result<()> {
    let file = File::open(path(name))?;
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Runs `work` in the network namespace, or in the caller's own if there is no name. Returns the
/// result of `work`.
///
/// # Errors
/// As [`enter`]; `work` does not run then.
pub fn within<T: Send>(name: Option<&str>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let Some(name) = name else { return Ok(work()) };
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| enter(name).map(|()| work()));
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Which namespace it is, whatever it is called: its file's device and inode.
pub type Identity = (u64, u64);

fn of_file(file: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(file).ok().map(|m| (m.dev(), m.ino()))
}

/// Which namespace a name stands for now; `None`: for none. One whose name was given to another
/// lives on while sockets are in it.
pub fn identity(name: &str) -> Option<Identity> {
    of_file(&path(name))
}

/// Which namespace the calling thread is in.
pub fn own() -> Option<Identity> {
    of_file(Path::new(OWN))
}

/// A file by which a namespace can be entered: the caller's own, one that is mounted, or that of a
/// process which is in it. `None`: there is none, so its interfaces are gone or nobody can reach
/// them.
pub fn find(wanted: Identity) -> Option<PathBuf> {
    let is_it = |file: &PathBuf| of_file(file) == Some(wanted);
    let entries = |folder: &str| {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // The fifth field is where it is mounted; what follows " - " begins with the kind.
    let mounted = mounts
        .lines()
        .filter(|line| line.contains(" - nsfs "))
        .filter_map(|line| line.split(' ').nth(4));
    let named = [PathBuf::from(OWN)]
        .into_iter()
        .chain(entries("/run/netns"))
        .chain(mounted.map(PathBuf::from));
    named.chain(entries("/proc").map(|process| process.join("ns/net"))).find(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_an_error() {
        assert!(within(Some("no-such-namespace-of-millpond"), || ()).is_err());
        assert_eq!(within(None, || 3).unwrap(), 3);
        assert_eq!(path("a"), PathBuf::from("/run/netns/a"));
        assert_eq!(path("/proc/1/ns/net"), PathBuf::from("/proc/1/ns/net"));
    }

    #[test]
    fn a_namespace_is_found_by_what_it_is() {
        let own = own().unwrap();
        assert_eq!(identity("/proc/self/ns/net"), Some(own));
        assert_eq!(find(own), Some(PathBuf::from(OWN)));
        assert_eq!(find((own.0, 1)), None);
    }
}
