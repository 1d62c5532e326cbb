//! What the kernel says of an interface's NAPIs, and what they do: the generic netlink family
//! `netdev` (Documentation/netlink/specs/netdev.yaml), as far as the [`super::gate`] needs it.
//!
//! Three requests of whole numbers, so they are written here: a crate for it would be larger than
//! they.
//!
//! A NAPI is what polls a receive queue. One that is *deferred* does not wait for the queue's
//! signal after a poll: a timer polls next.
//!
//! Invariant: nothing that the kernel answers leads outside of the answer.

use rustix::io::Errno;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Of `struct nlmsghdr`, and of `struct genlmsghdr` behind it.
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;
/// The family that tells of families.
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
/// Room for an answer: a page is the most that the kernel sends at once, unless it is asked by
/// more.
const ROOM: usize = 64 << 10;

/// A socket of the namespace that it was opened in.
#[derive(Debug)]
pub(super) struct Netdev {
    socket: OwnedFd,
    family: u16,
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}

pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = value.len() as u16 + 4;
    [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &padded(value)].concat()
}

/// The value of an attribute, if it is there.
pub(super) fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    while let [l0, l1, k0, k1, ..] = *attributes {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = attributes.get(4..length)?;
        if u16::from_ne_bytes([k0, k1]) == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// What the messages of a datagram say: their attributes, or an error. `None`: it ends with the
/// last of them.
fn messages(mut datagram: &[u8]) -> Result<(Vec<&[u8]>, bool), Errno> {
    let mut all = Vec::new();
    while let Some(header) = datagram.get(..HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let body = datagram.get(HEADER..length).ok_or(Errno::PROTO)?;
        match kind {
            ERROR => {
                let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                return if code == 0 {
                    Ok((all, true))
                } else {
                    Err(Errno::from_raw_os_error(-code))
                };
            }
            DONE => return Ok((all, true)),
            _ => all.extend(body.get(GENERIC_HEADER..)),
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok((all, false))
}

impl Netdev {
    /// Of the calling thread's namespace.
    pub(super) fn open() -> Result<Netdev, Errno> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(GENERIC),
        )?;
        // The kernel answers at once; what does not come is not waited for.
        let patience = Some(Duration::from_secs(1));
        rustix::net::sockopt::set_socket_timeout(
            &socket,
            rustix::net::sockopt::Timeout::Recv,
            patience,
        )?;
        let mut netdev = Netdev { socket, family: CONTROL };
        let mut id = None;
        netdev.ask(GET_FAMILY, ACK, &[attribute(FAMILY_NAME, b"netdev\0")], |told| {
            id = find(told, FAMILY_ID)
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
        mut told: impl FnMut(&[u8]),
    ) -> Result<(), Errno> {
        let attributes = attributes.concat();
        let length = (HEADER + GENERIC_HEADER + attributes.len()) as u32;
        let [kind, flags] = [self.family, REQUEST | flags].map(u16::to_ne_bytes);
        let generic = [what, 1, 0, 0];
        // One request at a time, so numbers tell nothing.
        let request =
            [&length.to_ne_bytes()[..], &kind, &flags, &[0; 8], &generic, &attributes].concat();
        sendto(&self.socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut room = vec![0; ROOM];
        loop {
            let (length, _) = recv(&self.socket, &mut room[..], RecvFlags::empty())?;
            let (all, is_last) = messages(&room[..length])?;
            all.into_iter().for_each(&mut told);
            if is_last {
                return Ok(());
            }
        }
    }

    /// The NAPIs of an interface; none where its queues have none at the time.
    pub(super) fn napis(&self, index: i32) -> Result<Vec<u32>, Errno> {
        let mut all = Vec::new();
        self.ask(NAPI_GET, DUMP, &[attribute(NAPI_IFINDEX, &index.to_ne_bytes())], |told| {
            all.extend(
                find(told, NAPI_ID).and_then(<[u8]>::first_chunk).map(|id| u32::from_ne_bytes(*id)),
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
    use proptest::prelude::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let length = (HEADER + body.len()) as u32;
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], &padded(body)].concat()
    }

    #[test]
    fn attributes_are_found_as_they_were_written() {
        let told = [
            attribute(NAPI_IFINDEX, &[1, 2, 3, 4]),
            attribute(FAMILY_NAME, b"ab\0"),
            attribute(7, &[5; 8]),
        ];
        let told = told.concat();
        assert_eq!(find(&told, NAPI_IFINDEX), Some(&[1, 2, 3, 4][..]));
        assert_eq!(
            (find(&told, FAMILY_NAME), find(&told, 7)),
            (Some(&b"ab\0"[..]), Some(&[5; 8][..]))
        );
        assert_eq!(find(&told, 3), None);
    }

    #[test]
    fn an_answer_ends_with_an_error_or_when_it_says_so() {
        let data = |value: u8| message(20, &[&[0; 4][..], &attribute(1, &[value; 4])].concat());
        let both = [data(1), data(2)].concat();
        assert_eq!(messages(&both).map(|(all, is_last)| (all.len(), is_last)), Ok((2, false)));
        let ended = [data(1), message(DONE, &[0; 4])].concat();
        assert_eq!(messages(&ended).map(|(all, is_last)| (all.len(), is_last)), Ok((1, true)));
        assert_eq!(messages(&message(ERROR, &[0; 20])), Ok((vec![], true)), "an acknowledgement");
        assert_eq!(messages(&message(ERROR, &(-95i32).to_ne_bytes())), Err(Errno::OPNOTSUPP));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok((all, _)) = messages(&bytes) {
                let _ = all.iter().filter_map(|told| find(told, 2)).count();
            }
        }
    }

    #[test]
    fn loopback_has_no_napi() {
        let netdev = millpond_worlds::needs!(Netdev::open());
        assert!(netdev.napis(1).unwrap_or_default().is_empty());
    }
}
