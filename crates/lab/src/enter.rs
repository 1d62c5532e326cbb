//! Entering a host of a lab that is up, from another process.
//!
//! Invariant: names of hosts are known to the process that entered, and to those that it starts,
//! and to nobody else.

use millpond_worlds::namespace;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs;
use std::io;
use std::net::Ipv4Addr;

/// Moves the calling thread, and the processes that it starts, to a host: into its network
/// namespace, with the names `host0`, `host1`, … of these addresses in a private `/etc/hosts`.
///
/// # Errors
/// If there is no such namespace, or the process lacks CAP_SYS_ADMIN.
pub fn enter(network: &str, hosts: &[Ipv4Addr]) -> io::Result<()> {
    namespace::enter(network)?;
    let own = fs::read_to_string("/etc/hosts").unwrap_or_default();
    let names = hosts.iter().enumerate();
    let names: String = names.map(|(host, address)| format!("{address} host{host}\n")).collect();
    let path = std::env::temp_dir().join(format!("millpond-hosts-{}", std::process::id()));
    fs::write(&path, own + "\n" + &names)?;
    let bound = private().and_then(|()| Ok(mount_bind(&path, "/etc/hosts")?));
    fs::remove_file(&path)?;
    bound
}

/// Mounts of this thread are its own from now on.
#[allow(unsafe_code)]
fn private() -> io::Result<()> {
    // SAFETY: a new mount namespace, unlike a new table of files, invalidates nothing that the
    // process holds.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}
