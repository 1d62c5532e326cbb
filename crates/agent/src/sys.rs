//! The system calls that the agent makes, with the library's own bindings: a static program of few
//! parts boots in a millisecond.
//!
//! Invariant: no call waits but [`Poller::wait`], and each names its error.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io::{Error, Result};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The result of a call, or the kernel's error.
fn checked(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// A path, or a name, for the kernel.
fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::from_raw_os_error(libc::EINVAL))
}

fn owned(fd: libc::c_int) -> Result<OwnedFd> {
    // SAFETY: the kernel has just made the descriptor, and nobody else has it.
    checked(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Mounts a file system; its folder is made.
pub fn mount(kind: &str, place: &str, flags: libc::c_ulong, options: &str) -> Result<()> {
    std::fs::create_dir_all(place).ok();
    let (kind, place, options) = (text(kind)?, text(place)?, text(options)?);
    // SAFETY: all are texts that end, and live until the call returns.
    let done = unsafe {
        libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    checked(done).map(drop)
}

/// Shows a folder at a second place.
pub fn bind_mount(from: &str, place: &str) -> Result<()> {
    let (from, place) = (text(from)?, text(place)?);
    // SAFETY: both are texts that end, and live until the call returns.
    let done = unsafe {
        libc::mount(
            from.as_ptr(),
            place.as_ptr(),
            std::ptr::null(),
            libc::MS_BIND | libc::MS_REC,
            std::ptr::null(),
        )
    };
    checked(done).map(drop)
}

/// Waits for events of descriptors, which stand until they are served.
pub struct Poller(OwnedFd);

impl Poller {
    /// Of no descriptor yet.
    pub fn new() -> Result<Poller> {
        // SAFETY: the call takes no pointer.
        owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(Poller)
    }

    fn control(&self, what: libc::c_int, fd: RawFd, events: u32, data: u64) -> Result<()> {
        let mut event = libc::epoll_event { events, u64: data };
        // SAFETY: the event lives until the call returns.
        checked(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, fd, &raw mut event) }).map(drop)
    }
    /// Watches a descriptor for these events; [`Poller::wait`] returns `data` with them.
    pub fn add(&self, fd: &impl AsRawFd, events: libc::c_int, data: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd.as_raw_fd(), events as u32, data)
    }
    /// Watches it for other events.
    pub fn change(&self, fd: &impl AsRawFd, events: libc::c_int, data: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd.as_raw_fd(), events as u32, data)
    }

    /// Waits for events. Fills `into` with the data of descriptors, and their events.
    pub fn wait(&self, into: &mut Vec<(u64, u32)>) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // SAFETY: the kernel writes no more events than the array has.
        let count = unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, -1)
        };
        into.clear();
        into.extend(events.iter().take(count.max(0) as usize).map(|it| (it.u64, it.events)));
    }
}

/// `sockaddr_in`.
fn internet(address: [u8; 4], port: u16) -> libc::sockaddr_in {
    // SAFETY: it is plain data, for which zeros are a value.
    let mut place: libc::sockaddr_in = unsafe { zeroed() };
    place.sin_family = libc::AF_INET as u16;
    place.sin_port = port.to_be();
    place.sin_addr.s_addr = u32::from_ne_bytes(address);
    place
}

/// Sets an integer option of a socket.
pub fn set(socket: &OwnedFd, level: i32, name: i32, value: libc::c_int) -> Result<()> {
    let length = size_of::<libc::c_int>() as u32;
    // SAFETY: the value lives until the call returns, and `length` is its size.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length)
    };
    checked(done).map(drop)
}

/// A socket of TCP at an address and port of this host.
pub fn tcp(address: [u8; 4], port: u16) -> Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes no pointer.
    let socket = owned(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    set(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    // Without it the last segment would wait for the acknowledgement of the others.
    set(&socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    let place = internet(address, port);
    let size = size_of::<libc::sockaddr_in>() as u32;
    // SAFETY: the address lives until the call returns, and `size` is its size.
    checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const place).cast(), size) })?;
    Ok(socket)
}

/// Has a socket listen.
pub fn listen(socket: &OwnedFd) -> Result<()> {
    // SAFETY: the call takes no pointer.
    checked(unsafe { libc::listen(socket.as_raw_fd(), 65_535) }).map(drop)
}

/// Begins to connect.
pub fn connect(socket: &OwnedFd, address: [u8; 4], port: u16) -> Result<()> {
    let place = internet(address, port);
    let size = size_of::<libc::sockaddr_in>() as u32;
    // SAFETY: the address lives until the call returns, and `size` is its size.
    let done = unsafe { libc::connect(socket.as_raw_fd(), (&raw const place).cast(), size) };
    match checked(done) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        done => done.map(drop),
    }
}

/// Accepts the next connection; its peer.
pub fn accept(listener: &OwnedFd) -> Result<(OwnedFd, [u8; 4], u16)> {
    let mut place = internet([0; 4], 0);
    let mut size = size_of::<libc::sockaddr_in>() as u32;
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the kernel writes no more than `size` bytes of the address.
    let socket = owned(unsafe {
        let place = (&raw mut place).cast();
        libc::accept4(listener.as_raw_fd(), place, &raw mut size, flags)
    })?;
    Ok((socket, place.sin_addr.s_addr.to_ne_bytes(), u16::from_be(place.sin_port)))
}

/// Sends some of these bytes; zero: the socket takes none now.
pub fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the pointer and the length are of one slice.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    match usize::try_from(sent) {
        Ok(count) => Ok(count),
        Err(_) => match Error::last_os_error() {
            error if error.kind() == std::io::ErrorKind::WouldBlock => Ok(0),
            error => Err(error),
        },
    }
}

/// Takes up to `most` received bytes away without copying them; `None`: there are none now.
pub fn discard(socket: &OwnedFd, most: usize) -> Result<Option<usize>> {
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: with MSG_TRUNC TCP writes nothing into the buffer.
    let got = unsafe { libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), most, flags) };
    match usize::try_from(got) {
        Ok(count) => Ok(Some(count)),
        Err(_) => match Error::last_os_error() {
            error if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            error => Err(error),
        },
    }
}

/// Reads what a socket or a pipe has; zero: its other side has ended.
pub fn read(fd: &OwnedFd, into: &mut [u8]) -> Result<usize> {
    // SAFETY: the pointer and the length are of one slice.
    let got = unsafe { libc::read(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) };
    usize::try_from(got).map_err(|_| Error::last_os_error())
}

/// The error that the kernel has noted for a socket, if any.
pub fn error(socket: &OwnedFd) -> Option<Error> {
    let (mut value, mut size): (libc::c_int, u32) = (0, size_of::<libc::c_int>() as u32);
    // SAFETY: the kernel writes one integer.
    let done = unsafe {
        let place = (&raw mut value).cast();
        let (level, name) = (libc::SOL_SOCKET, libc::SO_ERROR);
        libc::getsockopt(socket.as_raw_fd(), level, name, place, &raw mut size)
    };
    (done == 0 && value != 0).then(|| Error::from_raw_os_error(value))
}

/// `struct tcp_info` of a socket, as long as the kernel has it.
pub fn info(socket: &OwnedFd) -> Vec<u8> {
    let mut bytes = vec![0; crate::wire::INFO];
    let mut size = bytes.len() as u32;
    // SAFETY: the kernel writes no more than `size` bytes.
    let done = unsafe {
        let place = bytes.as_mut_ptr().cast();
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        libc::getsockopt(socket.as_raw_fd(), level, name, place, &raw mut size)
    };
    bytes.truncate(if done == 0 { size as usize } else { 0 });
    bytes
}

/// Bytes that a socket has taken and the peer has not acknowledged.
pub fn unacknowledged(socket: &OwnedFd) -> u32 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes one integer.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ as _, &raw mut bytes) };
    if done == 0 { bytes as u32 } else { 0 }
}

/// Asks for a time stamp of the acknowledgement of each later send's last byte.
pub fn stamp_acknowledgements(socket: &OwnedFd) -> Result<()> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_TX_ACK
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)
}

/// Room for the control messages of a time stamp, aligned as `cmsghdr` is.
#[repr(C, align(8))]
struct Control([u8; 256]);

/// Takes a message off a socket's error queue: its time stamp in nanoseconds, if it has one.
pub fn stamp(socket: &OwnedFd) -> Option<u64> {
    let mut control = Control([0; 256]);
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: a header of zeros is valid; it names `control` with its length. Messages are read
    // while `control` lives, and a time stamp only from one that is long enough for it.
    unsafe {
        let mut header: libc::msghdr = zeroed();
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
                let time = libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned();
                return Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
    }
    None
}

/// Closes a socket without a packet.
pub fn close(socket: OwnedFd) {
    let _ = set(&socket, libc::IPPROTO_TCP, libc::TCP_REPAIR, 1);
}

/// A descriptor that this process was started with.
pub fn inherited(number: RawFd) -> Result<OwnedFd> {
    // SAFETY: the call takes no pointer, and refuses what is no descriptor.
    owned(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) })
}

/// A socket for frames of this type at an interface.
pub fn frames(interface: &str, kind: u16) -> Result<OwnedFd> {
    let name = text(interface)?;
    // SAFETY: the name ends, and lives until the call returns.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(Error::last_os_error());
    }
    let kind = kind.to_be();
    let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes no pointer.
    let socket = owned(unsafe { libc::socket(libc::AF_PACKET, flags, kind.into()) })?;
    // All orders of an instant wait in it.
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 64 << 20)?;
    // SAFETY: it is plain data, for which zeros are a value; it lives until the call returns.
    let done = unsafe {
        let mut place: libc::sockaddr_ll = zeroed();
        place.sll_family = libc::AF_PACKET as u16;
        place.sll_protocol = kind;
        place.sll_ifindex = index as i32;
        let size = size_of::<libc::sockaddr_ll>() as u32;
        libc::bind(socket.as_raw_fd(), (&raw const place).cast(), size)
    };
    checked(done)?;
    Ok(socket)
}

/// A request about an interface, and what it is about.
fn request(interface: &str) -> libc::ifreq {
    // SAFETY: it is plain data, for which zeros are a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(15)) {
        *to = from as libc::c_char;
    }
    request
}

fn ask(socket: &OwnedFd, number: libc::c_ulong, request: &mut libc::ifreq) -> Result<()> {
    // SAFETY: every number used with this takes a pointer to an ifreq, which outlives the call.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), number as _, request as *mut libc::ifreq) })
        .map(drop)
}

fn datagrams() -> Result<OwnedFd> {
    // SAFETY: the call takes no pointer.
    owned(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })
}

/// Brings an interface up, with this MTU and, if there is one, an address.
pub fn bring_up(interface: &str, address: Option<([u8; 4], u8)>, mtu: Option<u16>) -> Result<()> {
    let socket = datagrams()?;
    if let Some(mtu) = mtu {
        let mut it = request(interface);
        it.ifr_ifru.ifru_mtu = mtu.into();
        ask(&socket, libc::SIOCSIFMTU, &mut it)?;
    }
    if let Some((address, prefix)) = address {
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0).to_be_bytes();
        for (number, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
            let mut it = request(interface);
            let place = internet(value, 0);
            // SAFETY: both are plain data of the same size.
            it.ifr_ifru.ifru_addr =
                unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(place) };
            ask(&socket, number, &mut it)?;
        }
    }
    let mut it = request(interface);
    ask(&socket, libc::SIOCGIFFLAGS, &mut it)?;
    // SAFETY: the kernel has written this field of the union, and reads it.
    unsafe { it.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
    ask(&socket, libc::SIOCSIFFLAGS, &mut it)
}

/// Notes a neighbour's hardware address for good.
pub fn neighbour(interface: &str, address: [u8; 4], mac: [u8; 6]) -> Result<()> {
    let socket = datagrams()?;
    // SAFETY: it is plain data, for which zeros are a value; the kernel reads it during the call.
    let done = unsafe {
        let mut it: libc::arpreq = zeroed();
        it.arp_pa = std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(internet(address, 0));
        it.arp_ha.sa_family = libc::ARPHRD_ETHER;
        for (to, from) in it.arp_ha.sa_data.iter_mut().zip(mac) {
            *to = from as libc::c_char;
        }
        it.arp_flags = libc::ATF_PERM | libc::ATF_COM;
        for (to, from) in it.arp_dev.iter_mut().zip(interface.bytes().take(15)) {
            *to = from as libc::c_char;
        }
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSARP as _, &raw mut it)
    };
    checked(done).map(drop)
}

/// Asks the kernel's routing by a message of rtnetlink; the kernel's error, if it refuses.
pub fn netlink(message: &[u8]) -> Result<()> {
    let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes no pointer.
    let socket = owned(unsafe { libc::socket(libc::AF_NETLINK, flags, libc::NETLINK_ROUTE) })?;
    let sent = send(&socket, message)?;
    if sent != message.len() {
        return Err(Error::from_raw_os_error(libc::EIO));
    }
    let mut answer = [0; 256];
    let got = read(&socket, &mut answer)?;
    // `nlmsghdr`, and then the error.
    let number = answer
        .get(16..20)
        .filter(|_| got >= 20)
        .map_or(-libc::EIO, |it| i32::from_ne_bytes([it[0], it[1], it[2], it[3]]));
    if number == 0 { Ok(()) } else { Err(Error::from_raw_os_error(-number)) }
}

/// The number of an interface.
pub fn index(interface: &str) -> Result<u32> {
    let name = text(interface)?;
    // SAFETY: the name ends, and lives until the call returns.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(Error::last_os_error()),
        index => Ok(index),
    }
}

/// Takes the next child that has ended: its process and status.
pub fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: the kernel writes one integer.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Sends a signal to a process group.
pub fn kill(group: i32, signal: u8) {
    // SAFETY: the call takes no pointer.
    unsafe { libc::kill(-group, signal.into()) };
}

/// Blocks SIGCHLD, and returns a descriptor that is readable when a child ends.
pub fn children() -> Result<OwnedFd> {
    // SAFETY: the set is made by the library's own calls, and lives until they return.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        owned(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
    }
}
