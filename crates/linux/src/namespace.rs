//! Does something in another network namespace.
//!
//! Invariant: the caller's thread stays where it is: a thread of its own enters, and ends.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// Where a namespace's file is: a path as it is, a name where `ip netns` keeps it.
pub fn path(name: &str) -> PathBuf {
    match name.starts_with('/') {
        true => PathBuf::from(name),
        false => PathBuf::from("/run/netns").join(name),
    }
}

/// Enters the namespace for good; the calling thread's, and that of the processes that it starts.
pub fn enter(name: &str) -> io::Result<()> {
    let file = File::open(path(name))?;
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Does `work` in the namespace; in the caller's own if there is no name.
pub fn within<T: Send>(name: Option<&str>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let Some(name) = name else { return Ok(work()) };
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| enter(name).map(|()| work()));
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Which namespace a name stands for now; `None`: for none. One whose name was given to another lives on while sockets are in it.
pub fn identity(name: &str) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path(name)).ok().map(|m| (m.dev(), m.ino()))
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
}
