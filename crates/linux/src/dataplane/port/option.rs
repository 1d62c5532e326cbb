//! Options and messages of sockets that rustix does not have.
//!
//! Invariant: the kernel reads and writes no byte beyond the value that it is given.

use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;

/// Which option, or which control message: its level and its kind.
pub(super) type Name = (libc::c_int, libc::c_int);

pub(super) fn set<T>(socket: &impl AsRawFd, (level, name): Name, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let at = (&raw const *value).cast();
    // SAFETY: the kernel reads as many bytes as the value has.
    #[allow(unsafe_code)]
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, at, size) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option into a value of integers. Returns how many of its bytes were written.
pub(super) fn get<T>(
    socket: &impl AsRawFd,
    (level, name): Name,
    value: &mut T,
) -> io::Result<usize> {
    let mut size = size_of::<T>() as libc::socklen_t;
    let at = (&raw mut *value).cast();
    // SAFETY: the kernel writes no more than the `size` bytes of the value, which are integers.
    #[allow(unsafe_code)]
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, at, &raw mut size) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(size as usize) }
}

fn message(ancillary: &mut [u64; 16]) -> libc::msghdr {
    // SAFETY: msghdr is plain data, for which zeros are a value.
    #[allow(unsafe_code)]
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = ancillary.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(ancillary) as _;
    message
}

/// Receives a message into two parts. Returns its whole length, and its control message of this
/// kind, whose value is integers.
pub(super) fn receive<T: Copy>(
    socket: &impl AsRawFd,
    parts: [&mut [u8]; 2],
    kind: Name,
) -> Result<(usize, Option<T>), Errno> {
    let mut parts =
        parts.map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
    // Aligned for the control message's header.
    let mut ancillary = [0u64; 16];
    let mut message = message(&mut ancillary);
    (message.msg_iov, message.msg_iovlen) = (parts.as_mut_ptr(), parts.len() as _);
    // SAFETY: the message points to the parts and the ancillary room above, which outlive the
    // call.
    #[allow(unsafe_code)]
    let read = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_TRUNC) };
    if read < 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    Ok((read as usize, control(&message, kind)))
}

/// The control message of a kind.
fn control<T: Copy>(message: &libc::msghdr, (level, kind): Name) -> Option<T> {
    // SAFETY: the kernel has written the control messages, and the macros stay within the length
    // that it gave; the data is copied out, whatever its alignment, if it is of this kind and long
    // enough.
    #[allow(unsafe_code)]
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = at.as_ref() {
            let is_long_enough = control.cmsg_len >= libc::CMSG_LEN(size_of::<T>() as u32) as _;
            if (control.cmsg_level, control.cmsg_type) == (level, kind) && is_long_enough {
                return Some(libc::CMSG_DATA(at).cast::<T>().read_unaligned());
            }
            at = libc::CMSG_NXTHDR(message, at);
        }
    }
    None
}

/// Sends a message of these pieces, with a control message.
pub(super) fn send(
    socket: &impl AsRawFd,
    pieces: &[IoSlice<'_>],
    (level, kind): Name,
    value: Option<u16>,
) -> io::Result<()> {
    let mut ancillary = [0u64; 16];
    let mut message = message(&mut ancillary);
    message.msg_controllen = 0;
    // An IoSlice is an iovec, as its documentation promises; the kernel only reads them.
    message.msg_iov = pieces.as_ptr() as *mut libc::iovec;
    message.msg_iovlen = pieces.len() as _;
    if let Some(value) = value {
        // SAFETY: the ancillary room is aligned for a control message's header and longer than one
        // with two bytes.
        #[allow(unsafe_code)]
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as _;
            let control = libc::CMSG_FIRSTHDR(&message);
            ((*control).cmsg_level, (*control).cmsg_type) = (level, kind);
            (*control).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            libc::CMSG_DATA(control).cast::<u16>().write_unaligned(value);
        }
    }
    // SAFETY: the message points to pieces and ancillary room that outlive the call.
    #[allow(unsafe_code)]
    let done = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, 0) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
