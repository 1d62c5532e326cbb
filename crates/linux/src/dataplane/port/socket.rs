//! The sockets at which applications and guests attach to their ports.
//!
//! Invariant: nobody connects who may not, and a socket at which somebody listens is never removed.

use super::{Error, option};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with,
};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// Removes a socket that nobody listens at. Anything else stays.
pub fn unlink(path: &Path) {
    use std::os::unix::fs::FileTypeExt;
    if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
        && !is_served(path)
    {
        let _ = std::fs::remove_file(path);
    }
}

fn is_served(path: &Path) -> bool {
    let socket = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)
    };
    // A full backlog is somebody's, and so is a socket of another type.
    matches!(socket(), Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE))
}

/// A socket at `path`, which its owner may connect to.
pub(super) fn listen(path: &Path, kind: SocketType, uid: Option<u32>) -> Result<OwnedFd, Error> {
    let name = path.display().to_string();
    if is_served(path) {
        return Err(Error::Busy { device: name });
    }
    unlink(path);
    let failed = |what: &str| {
        let what = format!("{what} {name}");
        move |e: std::io::Error| Error::Kernel { what, reason: e.to_string() }
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let open = || -> Result<OwnedFd, Errno> {
        let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(socket)
    };
    let socket = open().map_err(|e| failed("making the socket")(e.into()))?;
    // Before it listens, so that nobody connects who may not.
    let owned = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| uid.map_or(Ok(()), |uid| std::os::unix::fs::chown(path, Some(uid), None)));
    owned.map_err(failed("giving away the socket"))?;
    rustix::net::listen(&socket, BACKLOG).map_err(|e| failed("listening at")(e.into()))?;
    Ok(socket)
}

/// The events at what an epoll waits for, without waiting.
pub(super) fn happened(events: &OwnedFd) -> Vec<u64> {
    let room = &mut [const { std::mem::MaybeUninit::uninit() }; 8];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match epoll::wait(events, room, Some(&now)) {
        Ok((happened, _)) => happened.iter().map(|event| event.data.u64()).collect(),
        Err(_) => Vec::new(),
    }
}

/// The process at the other end, as the kernel noted when it connected.
pub(super) fn credentials(socket: &OwnedFd) -> Option<libc::ucred> {
    // Not by rustix: a process of a namespace that is not seen from here has the number 0, which
    // its type has no room for.
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let read = option::get(socket, (libc::SOL_SOCKET, libc::SO_PEERCRED), &mut peer);
    read.is_ok_and(|length| length == size_of::<libc::ucred>()).then_some(peer)
}

/// Whether a user could end the switch anyway.
pub(super) fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// Whether a user may attach: `owner`, beside root and the switch's own.
pub(super) fn may_attach(uid: u32, owner: Option<u32>) -> bool {
    is_trusted(uid) || owner == Some(uid)
}
