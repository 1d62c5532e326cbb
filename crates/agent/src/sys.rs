//! System calls that neither the standard library nor `rustix` has.
//!
//! Invariant: no call waits but [`Poller::wait`], and each names its error.

#![allow(unsafe_code)]

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, netdevice, socket_with};
use std::io::{Error, Result};
use std::mem::{MaybeUninit, size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

fn checked(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

fn owned(fd: libc::c_int) -> Result<OwnedFd> {
    // SAFETY: the kernel has just made the descriptor, and nobody else has it.
    checked(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits for events of descriptors, each with a number of the caller's.
pub struct Poller(OwnedFd);

impl Poller {
    pub fn new() -> Result<Poller> {
        Ok(Poller(epoll::create(CreateFlags::CLOEXEC)?))
    }
    pub fn add(&self, fd: impl AsFd, events: EventFlags, data: u64) -> Result<()> {
        Ok(epoll::add(&self.0, fd, EventData::new_u64(data), events)?)
    }
    /// Waits for other events of a descriptor.
    pub fn change(&self, fd: impl AsFd, events: EventFlags, data: u64) -> Result<()> {
        Ok(epoll::modify(&self.0, fd, EventData::new_u64(data), events)?)
    }

    /// Waits, and returns numbers and events.
    pub fn wait(&self, into: &mut Vec<(u64, EventFlags)>) {
        let mut room = [MaybeUninit::<epoll::Event>::uninit(); 64];
        let events = epoll::wait(&self.0, &mut room, None);
        let events = events.map_or(&mut [][..], |(events, _)| events);
        into.clear();
        into.extend(events.iter().map(|it| (it.data.u64(), it.flags)));
    }
}

/// An address of the internet, as requests hold it.
fn internet(address: [u8; 4]) -> libc::sockaddr {
    // SAFETY: both are plain data of the same size, for which zeros are a value.
    unsafe {
        let mut place: libc::sockaddr_in = zeroed();
        place.sin_family = libc::AF_INET as u16;
        place.sin_addr.s_addr = u32::from_ne_bytes(address);
        std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(place)
    }
}

/// A descriptor that this process was started with.
pub fn inherited(number: RawFd) -> Result<OwnedFd> {
    // SAFETY: the call takes no pointer, and refuses what is no descriptor.
    owned(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) })
}

fn raw(family: AddressFamily, protocol: Option<Protocol>) -> Result<OwnedFd> {
    Ok(socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?)
}

/// A socket for frames of this type at an interface.
pub fn frames(interface: &str, kind: u16) -> Result<OwnedFd> {
    let kind = kind.to_be();
    let protocol = std::num::NonZeroU32::new(kind.into()).map(Protocol::from_raw);
    let socket = raw(AddressFamily::PACKET, protocol)?;
    // All orders of an instant wait in it.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 64 << 20)?;
    let index = index(interface)?;
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
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// Brings an interface up, with this MTU and, if there is one, an address.
pub fn bring_up(interface: &str, address: Option<([u8; 4], u8)>, mtu: Option<u16>) -> Result<()> {
    let socket = datagrams()?;
    if let Some(mtu) = mtu {
        let mut asked = request(interface);
        asked.ifr_ifru.ifru_mtu = mtu.into();
        ask(&socket, libc::SIOCSIFMTU, &mut asked)?;
    }
    if let Some((address, prefix)) = address {
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0).to_be_bytes();
        for (number, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
            let mut asked = request(interface);
            asked.ifr_ifru.ifru_addr = internet(value);
            ask(&socket, number, &mut asked)?;
        }
    }
    let mut asked = request(interface);
    ask(&socket, libc::SIOCGIFFLAGS, &mut asked)?;
    // SAFETY: the kernel has written this field of the union, and reads it.
    unsafe { asked.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
    ask(&socket, libc::SIOCSIFFLAGS, &mut asked)
}

/// Notes a neighbour's hardware address for good.
pub fn neighbour(interface: &str, address: [u8; 4], mac: [u8; 6]) -> Result<()> {
    let socket = datagrams()?;
    // SAFETY: it is plain data, for which zeros are a value; the kernel reads it during the call.
    let done = unsafe {
        let mut entry: libc::arpreq = zeroed();
        entry.arp_pa = internet(address);
        entry.arp_ha.sa_family = libc::ARPHRD_ETHER;
        for (to, from) in entry.arp_ha.sa_data.iter_mut().zip(mac) {
            *to = from as libc::c_char;
        }
        entry.arp_flags = libc::ATF_PERM | libc::ATF_COM;
        entry.arp_dev = request(interface).ifr_name;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSARP as _, &raw mut entry)
    };
    checked(done).map(drop)
}

/// Asks the kernel's routing by a message of rtnetlink; the kernel's error, if it refuses.
pub fn netlink(message: &[u8]) -> Result<()> {
    let socket = raw(AddressFamily::NETLINK, None)?;
    rustix::io::write(&socket, message)?;
    let mut answer = [0; 256];
    let got = rustix::io::read(&socket, &mut answer[..])?;
    // `nlmsghdr`, and then the error.
    let number = answer[..got].get(16..20).and_then(|it| it.first_chunk());
    match number.map_or(-libc::EIO, |it| i32::from_ne_bytes(*it)) {
        0 => Ok(()),
        number => Err(Error::from_raw_os_error(-number)),
    }
}

pub fn index(interface: &str) -> Result<u32> {
    Ok(netdevice::name_to_index(datagrams()?, interface)?)
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
