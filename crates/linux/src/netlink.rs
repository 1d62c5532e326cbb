//! Requests to the kernel over netlink, and their answers: messages of attributes (RFC 3549,
//! `linux/netlink.h`).
//!
//! The requests here are small, so they are written by hand: a crate for them would be larger.
//!
//! Invariant: a parser of an answer reads nothing outside of the answer.

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto,
    socket_with,
};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
/// Flag of a request: the kernel acknowledges it.
pub(crate) const ACK: u16 = 4;
/// Flag of a request: the kernel lists all objects.
pub(crate) const DUMP: u16 = 0x300;
/// Room for an answer: a page is the most that the kernel sends at once, unless it is asked by
/// more.
const ROOM: usize = 64 << 10;

/// A socket of the namespace that it was opened in.
#[derive(Debug)]
pub(crate) struct Netlink(OwnedFd);

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}

/// Returns an attribute as the kernel reads it.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = value.len() as u16 + 4;
    [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &padded(value)].concat()
}

/// Returns the value of an attribute, if it is there.
pub(crate) fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
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

/// Returns the bodies of the messages of a datagram, and whether the last of the answer is among
/// them.
pub(crate) fn messages(mut datagram: &[u8]) -> Result<(Vec<&[u8]>, bool), Errno> {
    let mut all = Vec::new();
    while let Some(header) = datagram.get(..HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let body = datagram.get(HEADER..length).ok_or(Errno::PROTO)?;
        match kind {
            ERROR => {
                let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                // Other codes are no error of the kernel's.
                let error = code.checked_neg().filter(|e| (1..4096).contains(e));
                let error = error.unwrap_or(libc::EPROTO);
                return if code == 0 {
                    Ok((all, true))
                } else {
                    Err(Errno::from_raw_os_error(error))
                };
            }
            DONE => return Ok((all, true)),
            _ => all.push(body),
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok((all, false))
}

impl Netlink {
    /// Opens a socket in the calling thread's namespace. Without a protocol it is that of routes,
    /// interfaces and queueing disciplines.
    pub(crate) fn open(protocol: Option<Protocol>) -> Result<Netlink, Errno> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let socket = socket_with(family, SocketType::RAW, flags, protocol)?;
        // The kernel answers at once, so a missing answer is an error.
        let patience = Some(Duration::from_secs(1));
        let receiving = rustix::net::sockopt::Timeout::Recv;
        rustix::net::sockopt::set_socket_timeout(&socket, receiving, patience)?;
        Ok(Netlink(socket))
    }

    /// Sends a request, and passes the body of each message of the answer to `take`.
    pub(crate) fn ask(
        &self,
        kind: u16,
        flags: u16,
        body: &[u8],
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), Errno> {
        let length = (HEADER + body.len()) as u32;
        let [kind, flags] = [kind, REQUEST | flags].map(u16::to_ne_bytes);
        // One request at a time, so the sequence number stays 0.
        let request = [&length.to_ne_bytes()[..], &kind, &flags, &[0; 8], body].concat();
        sendto(&self.0, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut room = vec![0; ROOM];
        loop {
            let (length, _) = recv(&self.0, &mut room[..], RecvFlags::empty())?;
            let (all, is_last) = messages(&room[..length])?;
            all.into_iter().for_each(&mut take);
            if is_last {
                return Ok(());
            }
        }
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
        let take = [attribute(1, &[1, 2, 3, 4]), attribute(2, b"ab\0"), attribute(7, &[5; 8])];
        let take = take.concat();
        assert_eq!(find(&take, 1), Some(&[1, 2, 3, 4][..]));
        assert_eq!((find(&take, 2), find(&take, 7)), (Some(&b"ab\0"[..]), Some(&[5; 8][..])));
        assert_eq!(find(&take, 3), None);
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
                let _ = all.iter().filter_map(|take| find(take, 2)).count();
            }
        }
    }
}
