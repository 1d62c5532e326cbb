//! Connecting an application to a switch: a socket, over which the switch passes memory and pipes.
//! If it closes, the other side has ended.
//!
//! Pipes wake a sleeping side. The flags of an eventfd belong to the open file, which both sides
//! share: an application could make it blocking and fill its counter, and the switch would hang in
//! its write. A pipe's two ends are two open files.
//!
//! Invariant: the switch never waits for an application here.

use crate::layout::{HELLO_BYTES, Hello};
use millpond_doorbell::Wake;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::pipe::PipeFlags;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How many file descriptors go with a welcome.
const FDS: usize = 4;

/// The file descriptors that go with a welcome.
#[derive(Debug)]
pub struct Parts<T> {
    pub memory: T,
    /// The pipe that wakes the switch.
    pub switch: T,
    /// The pipe that wakes the application when there are frames.
    pub readable: T,
    /// The pipe that wakes it when buffers are free again.
    pub writable: T,
}

/// Wakes the reader of a pipe.
#[derive(Debug)]
pub struct Waker(pub OwnedFd);

impl Wake for Waker {
    fn wake(&self) {
        // A full pipe wakes as well; without a reader there is no sleeper.
        let _ = rustix::io::write(&self.0, &[1]);
    }
}

/// The end of a pipe that a [`Waker`] writes to.
#[derive(Debug)]
pub struct Sleeper(pub OwnedFd);

impl Sleeper {
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 64]);
    }
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns both ends of a pipe; neither blocks.
///
/// # Errors
/// The kernel's reason: no file descriptor is left for the process or the system.
pub fn pipe() -> Result<(Sleeper, Waker), Errno> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    Ok((Sleeper(read), Waker(write)))
}

/// Sends a hello; a welcome carries the file descriptors of `parts`.
///
/// # Errors
/// The kernel's reason: the socket is full or its other end is closed.
pub fn send(
    socket: impl AsFd,
    hello: &Hello,
    parts: Option<&Parts<BorrowedFd<'_>>>,
) -> Result<(), Errno> {
    let fds = parts.map(|p| [p.memory, p.switch, p.readable, p.writable]);
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut room);
    if let Some(fds) = &fds
        && !ancillary.push(SendAncillaryMessage::ScmRights(fds))
    {
        return Err(Errno::NOBUFS);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::sendmsg(socket, &[IoSlice::new(&hello.write())], &mut ancillary, flags).map(|_| ())
}

/// The switch's answer, with the memory and pipes if it accepts.
pub type Answer = (Hello, Option<Parts<OwnedFd>>);

/// Receives the switch's hello with its file descriptors. Returns `None` if the switch closed the
/// socket without one.
///
/// # Errors
/// The socket has no message or fails, or the message is no hello of this version.
pub fn receive(socket: impl AsFd) -> Result<Option<Answer>, String> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut room);
    let mut bytes = [0; HELLO_BYTES];
    let received = {
        let parts = &mut [IoSliceMut::new(&mut bytes)];
        rustix::net::recvmsg(socket, parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    };
    let length = received.map_err(|e| format!("the switch does not answer: {e}"))?.bytes;
    if length == 0 {
        return Ok(None);
    }
    let hello = Hello::read(&bytes[..length])?;
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            fds.extend(more);
        }
    }
    let parts = <[OwnedFd; FDS]>::try_from(fds).ok();
    let parts = parts.map(|[memory, switch, readable, writable]| Parts {
        memory,
        switch,
        readable,
        writable,
    });
    Ok(Some((hello, parts)))
}
