//! The interface that datagrams to an address leave by, as the routing table has it (rtnetlink,
//! `RTM_GETROUTE`).
//!
//! Routers' reports of a path (ICMP) are in the kernel's route cache and not in the table: an
//! answer from here is the host's own.
//!
//! Invariant: an answer takes no lock that somebody who makes or removes interfaces holds.

use crate::netlink::{ACK, Netlink, attribute, find};
use rustix::io::Errno;
use std::net::{IpAddr, SocketAddr};

/// Of `struct rtmsg`.
const ROUTE_HEADER: usize = 12;
const GET_ROUTE: u16 = 26;
const DESTINATION: u16 = 1;
const SOURCE: u16 = 2;
const INTERFACE: u16 = 4;

/// Asks for one path's route, in the namespace that it was opened in.
#[derive(Debug)]
pub(super) struct Route {
    netlink: Netlink,
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
    body
}

/// The index of the interface in an answer.
fn interface(answer: &[u8]) -> Option<i32> {
    let index = find(answer.get(ROUTE_HEADER..)?, INTERFACE)?.first_chunk()?;
    Some(i32::from_ne_bytes(*index))
}

impl Route {
    /// For datagrams between these addresses, in the calling thread's namespace.
    pub(super) fn open(local: SocketAddr, remote: SocketAddr) -> Result<Route, Errno> {
        Ok(Route { netlink: Netlink::open(None)?, request: request(local, remote) })
    }

    /// Returns the index of the interface.
    ///
    /// # Errors
    /// [`Errno::NETUNREACH`] and the like if there is no route.
    pub(super) fn interface(&self) -> Result<i32, Errno> {
        let mut index = None;
        self.netlink.ask(GET_ROUTE, ACK, &self.request, |answer| index = interface(answer))?;
        index.ok_or(Errno::NETUNREACH)
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

    proptest::proptest! {
        #[test]
        fn any_answer(answer: Vec<u8>) {
            let _ = interface(&answer);
        }
    }
}
