//! The interface that datagrams to an address leave by, as the routing table has it (rtnetlink,
//! `RTM_GETROUTE`).
//!
//! Routers' reports of a path (ICMP) are in the kernel's route cache and not in the table: an
//! answer from here is the host's own.
//!
//! Invariant: an answer takes no lock that somebody who makes or removes interfaces holds.

use crate::netlink::{attribute, find};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// Of `struct nlmsghdr`, and of `struct rtmsg` behind it.
const HEADER: usize = 16;
const ROUTE_HEADER: usize = 12;
const ERROR: u16 = 2;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const REQUEST: u16 = 1;
const DESTINATION: u16 = 1;
const SOURCE: u16 = 2;
const INTERFACE: u16 = 4;

/// Asks for one path's route, in the namespace that it was opened in.
#[derive(Debug)]
pub(super) struct Route {
    socket: OwnedFd,
    request: Vec<u8>,
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A request for the route of datagrams between two addresses.
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let (from, to) = (octets(local.ip()), octets(remote.ip()));
    let family = if remote.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u8;
    let bits = 8 * to.len() as u8;
    let mut body = vec![family, bits, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    body.extend(attribute(DESTINATION, &to));
    body.extend(attribute(SOURCE, &from));
    if let SocketAddr::V6(remote) = remote
        && remote.scope_id() > 0
    {
        body.extend(attribute(INTERFACE, &remote.scope_id().to_ne_bytes()));
    }
    let [kind, flags] = [GET_ROUTE, REQUEST].map(u16::to_ne_bytes);
    let length = (HEADER + body.len()) as u32;
    [&length.to_ne_bytes()[..], &kind, &flags, &[0; 8], &body].concat()
}

/// The index of the interface in an answer.
fn interface(answer: &[u8]) -> Result<i32, Errno> {
    let header: &[u8; HEADER] = answer.first_chunk().ok_or(Errno::PROTO)?;
    let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
    let body = answer.get(HEADER..length).ok_or(Errno::PROTO)?;
    match u16::from_ne_bytes([header[4], header[5]]) {
        NEW_ROUTE => {}
        ERROR => {
            let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
            return Err(Errno::from_raw_os_error(code.checked_neg().unwrap_or(libc::EPROTO)));
        }
        _ => return Err(Errno::PROTO),
    }
    let attributes = body.get(ROUTE_HEADER..).ok_or(Errno::PROTO)?;
    let index = find(attributes, INTERFACE).and_then(<[u8]>::first_chunk);
    index.map(|index| i32::from_ne_bytes(*index)).ok_or(Errno::NETUNREACH)
}

impl Route {
    /// For datagrams between these addresses, in the calling thread's namespace.
    pub(super) fn open(local: SocketAddr, remote: SocketAddr) -> Result<Route, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // NETLINK_ROUTE is the protocol 0.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        Ok(Route { socket, request: request(local, remote) })
    }

    /// Returns the index of the interface.
    ///
    /// # Errors
    /// [`Errno::NETUNREACH`] and the like if there is no route.
    pub(super) fn interface(&self) -> Result<i32, Errno> {
        sendto(&self.socket, &self.request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = [0; 4096];
        // The kernel has answered before the call above returns.
        let (_, length) = recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        interface(answer.get(..length).ok_or(Errno::PROTO)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_reached_by_its_interface() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let lo = super::super::Device::new("lo").unwrap().index().unwrap();
        let route = Route::open(at("127.0.0.1:1"), at("127.0.0.1:2")).unwrap();
        assert_eq!((route.interface(), route.interface()), (Ok(lo), Ok(lo)));
    }

    #[test]
    fn an_error_of_the_kernel_is_one() {
        let code = (-libc::ENETUNREACH).to_ne_bytes();
        let kind = ERROR.to_ne_bytes();
        let answer = [&36u32.to_ne_bytes()[..], &kind, &[0; 10], &code, &[0; 16]].concat();
        assert_eq!(interface(&answer), Err(Errno::NETUNREACH));
    }

    proptest::proptest! {
        #[test]
        fn any_answer(bytes: Vec<u8>, like: bool) {
            let mut answer = bytes;
            if like && answer.len() > HEADER {
                let length = (answer.len() as u32).to_ne_bytes();
                answer[..4].copy_from_slice(&length);
                answer[4..6].copy_from_slice(&NEW_ROUTE.to_ne_bytes());
            }
            let _ = interface(&answer);
        }
    }
}
