//! The kernel's account of an interface's NAPIs, and of what they do: the generic netlink family
//! `netdev` (Documentation/netlink/specs/netdev.yaml), as far as the [`super::gate`] needs it.
//!
//! Three requests of whole numbers, so they are written here: a crate for it would be larger than
//! they.
//!
//! A NAPI is what polls a receive queue. One that is *deferred* does not wait for the queue's
//! signal after a poll: a timer polls next.
//!
//! Invariant: nothing that the kernel answers leads outside of the answer.

use crate::netlink::{ACK, DUMP, Netlink, attribute, find};
use rustix::io::Errno;
use rustix::net::netlink::GENERIC;
use std::time::Duration;

/// Of `struct genlmsghdr`.
const GENERIC_HEADER: usize = 4;
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Of `netdev`.
const NAPI_GET: u8 = 11;
const NAPI_SET: u8 = 14;
const NAPI_IFINDEX: u16 = 1;
const NAPI_ID: u16 = 2;
const NAPI_DEFER: u16 = 5;
const NAPI_TIMEOUT: u16 = 6;

/// A socket of the namespace that it was opened in.
#[derive(Debug)]
pub(super) struct Netdev {
    netlink: Netlink,
    family: u16,
}

impl Netdev {
    pub(super) fn open() -> Result<Netdev, Errno> {
        let netlink = Netlink::open(Some(GENERIC))?;
        let mut netdev = Netdev { netlink, family: CONTROL };
        let mut id = None;
        netdev.ask(GET_FAMILY, ACK, &[attribute(FAMILY_NAME, b"netdev\0")], |answer| {
            id = find(answer, FAMILY_ID)
                .and_then(<[u8]>::first_chunk)
                .map(|id| u16::from_ne_bytes(*id));
        })?;
        netdev.family = id.ok_or(Errno::NOENT)?;
        Ok(netdev)
    }

    /// Asks, and takes all that is answered.
    fn ask(
        &self,
        what: u8,
        flags: u16,
        attributes: &[Vec<u8>],
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), Errno> {
        let body = [&[what, 1, 0, 0][..], &attributes.concat()].concat();
        self.netlink.ask(self.family, flags, &body, |answer| {
            answer.get(GENERIC_HEADER..).into_iter().for_each(&mut take);
        })
    }

    /// The NAPIs of an interface; none where its queues have none at the time.
    pub(super) fn napis(&self, index: i32) -> Result<Vec<u32>, Errno> {
        let mut all = Vec::new();
        self.ask(NAPI_GET, DUMP, &[attribute(NAPI_IFINDEX, &index.to_ne_bytes())], |answer| {
            all.extend(
                find(answer, NAPI_ID)
                    .and_then(<[u8]>::first_chunk)
                    .map(|id| u32::from_ne_bytes(*id)),
            );
        })?;
        Ok(all)
    }

    /// After how many polls without a packet a NAPI waits for its queue's signal again, and how
    /// long after a poll the timer polls until then.
    pub(super) fn defer(&self, napi: u32, polls: u32, timer: Duration) -> Result<(), Errno> {
        let timer = timer.as_nanos() as u64;
        let attributes = [
            attribute(NAPI_ID, &napi.to_ne_bytes()),
            attribute(NAPI_DEFER, &polls.to_ne_bytes()),
            attribute(NAPI_TIMEOUT, &timer.to_ne_bytes()),
        ];
        self.ask(NAPI_SET, ACK, &attributes, |_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_napi() {
        let netdev = millpond_worlds::needs!(Netdev::open());
        assert!(netdev.napis(1).unwrap_or_default().is_empty());
    }
}
