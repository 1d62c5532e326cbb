//! Sockets as an experiment needs them: with a congestion control that is chosen for each, without
//! Nagle's delay, in a cgroup, and telling what TCP knows about them. A socket keeps the cgroup
//! that its process was in when the socket was created.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with, sockopt,
};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Why a socket is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The kernel has no such congestion control, or this user may not choose it.
    #[error("congestion control `{name}` is not to be had ({error}); available here: {available}")]
    Congestion {
        /// The request.
        name: String,
        /// The kernel's error.
        error: Errno,
        /// The congestion controls that it has.
        available: String,
    },
    /// A cgroup cannot be joined.
    #[error("cannot join the cgroup {}: {error}", path.display())]
    Cgroup {
        /// The cgroup's folder.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// Anything else that a socket call refuses.
    #[error("{what}: {error}")]
    Call {
        /// The attempted action.
        what: String,
        /// The kernel's error.
        error: Errno,
    },
}

fn call(what: impl Into<String>) -> impl FnOnce(Errno) -> SocketError {
    let what = what.into();
    move |error| SocketError::Call { what, error }
}

/// Moves this process into a cgroup, so that the sockets which it opens from now on belong to it.
pub fn join_cgroup(path: &Path) -> Result<(), SocketError> {
    std::fs::write(path.join("cgroup.procs"), std::process::id().to_string())
        .map_err(|error| SocketError::Cgroup { path: path.into(), error })
}

fn tcp_socket(address: &SocketAddr, congestion: Option<&str>) -> Result<OwnedFd, SocketError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(call("socket"))?;
    if let Some(name) = congestion {
        sockopt::set_tcp_congestion(&fd, name).map_err(|error| SocketError::Congestion {
            name: name.into(),
            error,
            available: std::fs::read_to_string(
                "/proc/sys/net/ipv4/tcp_available_congestion_control",
            )
            .map_or_else(|_| "unknown".into(), |names| names.trim().into()),
        })?;
    }
    Ok(fd)
}

/// Connects. While nobody listens yet it tries again, for five seconds. Requests are not held back
/// by Nagle's algorithm unless `nagle`.
pub fn connect_tcp(
    to: &SocketAddr,
    congestion: Option<&str>,
    nagle: bool,
) -> Result<TcpStream, SocketError> {
    let give_up = Instant::now() + Duration::from_secs(5);
    loop {
        let fd = tcp_socket(to, congestion)?;
        match connect(&fd, to) {
            Ok(()) => {
                sockopt::set_tcp_nodelay(&fd, !nagle).map_err(call("TCP_NODELAY"))?;
                return Ok(TcpStream::from(fd));
            }
            Err(Errno::CONNREFUSED) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(20))
            }
            Err(error) => return Err(call(format!("connect to {to}"))(error)),
        }
    }
}

/// Listens. Accepted connections have the same congestion control and belong to the cgroup that
/// this process is in now.
pub fn listen_tcp(at: &SocketAddr, congestion: Option<&str>) -> Result<TcpListener, SocketError> {
    let fd = tcp_socket(at, congestion)?;
    sockopt::set_socket_reuseaddr(&fd, true).map_err(call("SO_REUSEADDR"))?;
    bind(&fd, at).map_err(call(format!("bind to {at}")))?;
    listen(&fd, 1024).map_err(call("listen"))?;
    Ok(TcpListener::from(fd))
}

/// The beginning of the kernel's `struct tcp_info`, which has been the same since Linux 2.6; times
/// in microseconds. Newer kernels tell more and cut it to what is asked for.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpInfo {
    /// State, congestion-avoidance state, retransmissions, probes, backoff, options, window scales,
    /// rate flags.
    bytes: [u8; 8],
    /// From the timeout to the reordering degree.
    words: [u32; 21],
    /// Receiver's round-trip time and space.
    receiver: [u32; 2],
    /// Segments retransmitted since the connection began.
    pub total_retrans: u32,
}

impl TcpInfo {
    /// Smoothed round-trip time.
    pub fn srtt_us(&self) -> u32 {
        self.words[15]
    }

    /// Whether both ends agreed on ECN.
    pub fn ecn(&self) -> bool {
        const ECN: u8 = 8;
        self.bytes[5] & ECN != 0
    }
}

/// TCP's knowledge about a connection.
pub fn tcp_info<F: AsFd>(socket: &F) -> Result<TcpInfo, SocketError> {
    let mut info = TcpInfo::default();
    let mut length = size_of::<TcpInfo>() as libc::socklen_t;
    let (fd, at) = (socket.as_fd().as_raw_fd(), (&raw mut info).cast());
    // rustix has no TCP_INFO.
    // SAFETY: the kernel writes no more bytes than `length` says, and any bytes are a TcpInfo.
    #[allow(unsafe_code)]
    let done =
        unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut length) };
    match done {
        0 => Ok(info),
        _ => {
            let error = std::io::Error::last_os_error();
            Err(call("TCP_INFO")(Errno::from_io_error(&error).unwrap_or(Errno::INVAL)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_congestion_control_names_those_that_there_are() {
        let error = connect_tcp(&"127.0.0.1:9".parse().unwrap(), Some("furlong"), false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("furlong") && error.contains("reno"), "{error}");
    }

    #[test]
    fn a_cgroup_that_is_not_there_is_named() {
        let error = join_cgroup(Path::new("/nonexistent/cgroup")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/cgroup"), "{error}");
    }
}
