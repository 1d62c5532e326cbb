//! The calling thread's way through the hosts' network namespaces.
//!
//! Invariant: the thread is back in the namespace that it came from when this is dropped.

use millpond_worlds::namespace;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// The namespaces' files by host, each opened once.
#[derive(Debug)]
pub(super) struct Namespaces {
    files: Vec<File>,
    home: File,
    /// The host whose namespace the thread is in.
    here: Option<u32>,
}

fn enter(file: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
}

impl Namespaces {
    /// Opens the namespaces' files.
    ///
    /// # Errors
    /// The name of the first one that cannot be opened, and the reason.
    pub fn open<'n>(
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Namespaces, (String, io::Error)> {
        let own = "/proc/thread-self/ns/net";
        let open = |name: &str| {
            File::open(namespace::path(name)).map_err(|error| (name.to_string(), error))
        };
        let home = open(own)?;
        Ok(Namespaces { files: names.map(open).collect::<Result<_, _>>()?, home, here: None })
    }

    /// Moves the calling thread into a host's namespace, if it is not there.
    ///
    /// # Errors
    /// The kernel's reason: the process lacks CAP_SYS_ADMIN.
    pub fn enter(&mut self, host: u32) -> io::Result<()> {
        if self.here != Some(host) {
            let file = self.files.get(host as usize).ok_or(io::ErrorKind::NotFound)?;
            enter(file)?;
            self.here = Some(host);
        }
        Ok(())
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        if self.here.is_some() {
            // Nobody is left to report it to.
            let _ = enter(&self.home);
        }
    }
}
