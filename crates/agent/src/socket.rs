//! TCP sockets of a load, in a namespace or in a guest: opened, read, written, stamped and closed
//! without a wait.
//!
//! Connections end silently. Both ends are the load's, and a flow is over when its last byte is
//! acknowledged, so [`close`] drops a socket's state by TCP_REPAIR: no FIN, no RST, no TIME_WAIT.
//! The simulator sends nothing then, either.
//!
//! Invariant: no call blocks, and no byte is written into memory by what is received.

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, listen,
    recv, send, socket_with, sockopt,
};
use rustix::time::Timespec;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Accepted connections may wait up to this; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 65_535;
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Sets an option whose value is an integer.
fn set(socket: BorrowedFd<'_>, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value lives until the call returns, and `length` is its size.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a socket in the calling thread's namespace. `congestion`: its congestion control; `None`
/// leaves the namespace's.
///
/// # Errors
/// The kernel's reason.
pub fn tcp(congestion: Option<&str>) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, Some(ipproto::TCP))?;
    // Without it the last segment of a flow would wait for the acknowledgement of the others.
    sockopt::set_tcp_nodelay(&socket, true)?;
    if let Some(congestion) = congestion {
        sockopt::set_tcp_congestion(&socket, congestion)?;
    }
    Ok(socket)
}

/// The name of a socket's congestion control.
///
/// # Errors
/// The kernel's reason.
pub fn congestion(socket: &OwnedFd) -> io::Result<String> {
    Ok(sockopt::tcp_congestion(socket)?)
}

/// Makes a socket listen. Accepted sockets inherit its congestion control and its cgroup.
///
/// # Errors
/// The kernel's reason.
pub fn listen_at(socket: OwnedFd, at: SocketAddrV4) -> io::Result<OwnedFd> {
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &at)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Binds a socket to an address and port.
///
/// # Errors
/// `AddrInUse` if the port is taken; otherwise the kernel's reason.
pub fn bind_to(socket: &OwnedFd, at: SocketAddrV4) -> io::Result<()> {
    Ok(bind(socket, &at)?)
}

/// Begins to connect.
///
/// # Errors
/// The kernel's error, if there is no route.
pub fn begin_connecting(socket: &OwnedFd, to: SocketAddrV4) -> io::Result<()> {
    match connect(socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Accepts the next connection that waits; `None`: there is none.
///
/// # Errors
/// The kernel's reason.
pub fn accept(listener: &OwnedFd) -> io::Result<Option<(OwnedFd, SocketAddrV4)>> {
    loop {
        match rustix::net::acceptfrom_with(listener, FLAGS) {
            Ok((socket, Some(peer))) => match SocketAddrV4::try_from(peer) {
                Ok(peer) => return Ok(Some((socket, peer))),
                Err(_) => continue,
            },
            // Connections that ended while they waited.
            Ok((_, None)) | Err(Errno::CONNABORTED | Errno::INTR) => continue,
            Err(Errno::AGAIN) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends some of `bytes`; `None`: the socket takes none now.
///
/// # Errors
/// Why the connection is no more.
pub fn send_some(socket: &OwnedFd, bytes: &[u8]) -> io::Result<Option<usize>> {
    match send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(count) => Ok(Some(count)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Takes up to `buffer.len()` received bytes away and returns how many: MSG_TRUNC makes TCP drop
/// them without copying. `None`: there are none now; zero: the peer has closed.
///
/// # Errors
/// Why the connection is no more.
pub fn discard(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match recv(socket, buffer, RecvFlags::TRUNC | RecvFlags::DONTWAIT) {
        Ok((_, count)) => Ok(Some(count)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The error that the kernel has noted for a socket, if any.
pub fn error(socket: &OwnedFd) -> Option<io::Error> {
    sockopt::socket_error(socket).unwrap_or_else(Err).err().map(io::Error::from)
}

/// Bounds the bytes that wait in a socket's buffer before they are sent for the first time.
///
/// # Errors
/// The kernel's reason.
pub fn bound_unsent(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    set(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes as i32)
}

/// Asks for a time stamp of the acknowledgement of each later send's last byte.
///
/// # Errors
/// The kernel's reason.
pub fn stamp_acknowledgements(socket: &OwnedFd) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_TX_ACK
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)
}

/// Takes a socket's time stamps away and returns the last one, of CLOCK_REALTIME.
pub fn last_stamp(socket: &OwnedFd) -> Option<Timespec> {
    let mut last = None;
    while let Some(stamp) = next_stamp(socket) {
        last = stamp.or(last);
    }
    last
}

/// Room for the control messages of a time stamp and of the error that carries it, aligned as
/// `cmsghdr` is.
#[repr(C, align(8))]
struct Control([u8; 256]);

/// Takes a message from the error queue: its time stamp, if it has one. `None`: the queue is empty.
pub fn next_stamp(socket: &OwnedFd) -> Option<Option<Timespec>> {
    let mut control = Control([0; 256]);
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: a header of zeros is valid; it names no data and `control` with its length. The
    // control messages are read while `control` lives, and a time stamp only from one that is long
    // enough for it.
    #[allow(unsafe_code)]
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len();
        if libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) < 0 {
            return None;
        }
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            let length = libc::CMSG_LEN(size_of::<libc::timespec>() as u32) as usize;
            let of = ((*message).cmsg_level, (*message).cmsg_type);
            let is_stamp = of == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING);
            if is_stamp && (*message).cmsg_len >= length {
                let time: libc::timespec =
                    libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned();
                return Some(Some(Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec }));
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    Some(None)
}

/// Bytes that a socket has taken and the peer has not acknowledged (SIOCOUTQ).
pub fn unacknowledged(socket: &OwnedFd) -> u32 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes one integer, which lives until the call returns.
    #[allow(unsafe_code)]
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { bytes as u32 } else { 0 }
}

/// Reads TCP_INFO into `bytes`; what the kernel does not have stays as it is.
pub fn tcp_info(socket: impl AsFd) -> Vec<u8> {
    let mut bytes = vec![0; crate::wire::INFO];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which is the length of `bytes`.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    bytes.truncate(if result == 0 { length as usize } else { 0 });
    bytes
}

/// Closes a socket without a packet, or by a reset if the process lacks CAP_NET_ADMIN.
pub fn close(socket: OwnedFd) {
    if set(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_REPAIR, 1).is_err() {
        let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
    }
    drop(socket);
}

/// Waits for events, at most for `timeout`, to the nanosecond where the kernel has `epoll_pwait2`
/// (Linux 5.11).
///
/// # Errors
/// The kernel's reason.
pub fn wait(epoll: &OwnedFd, events: &mut [epoll::Event], timeout: Duration) -> io::Result<usize> {
    let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
    let time = libc::timespec { tv_sec: seconds, tv_nsec: timeout.subsec_nanos().into() };
    // SAFETY: `Event` has the kernel's layout, and the kernel writes at most `events.len()` of
    // them; the time lives until the call returns; there is no signal mask.
    #[allow(unsafe_code)]
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            events.len() as libc::c_int,
            &raw const time,
            std::ptr::null::<libc::sigset_t>(),
            0usize,
        )
    };
    match usize::try_from(count) {
        Ok(count) => Ok(count),
        Err(_) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENOSYS) => {
                let time = Timespec { tv_sec: seconds, tv_nsec: timeout.subsec_nanos().into() };
                Ok(epoll::wait(epoll, events, Some(&time))?)
            }
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        },
    }
}
