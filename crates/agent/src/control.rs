//! The way between the world and the agent: frames on an interface of their own, or messages on a
//! socket, for an agent that is a process of this machine's kernel.
//!
//! Invariant: a frame or message holds whole orders, or one report.

use crate::wire::{self, Report};
use crate::{setup, sys};
use millpond_agent::socket;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The interface of the world's frames.
pub const INTERFACE: &str = "eth1";

pub struct Control {
    fd: OwnedFd,
    header: Vec<u8>,
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Control {
    /// Frames on the interface, which comes up.
    pub fn interface() -> Result<Control> {
        sys::bring_up(INTERFACE, None, None)?;
        setup::await_carrier(INTERFACE)?;
        let fd = sys::frames(INTERFACE, wire::ETHERTYPE)?;
        let (to, from) = ([0xff; 6], [0x02, 0, 0, 0, 0, 2]);
        Ok(Control { fd, header: [&to[..], &from, &wire::ETHERTYPE.to_be_bytes()].concat() })
    }

    /// Messages on a socket (SOCK_SEQPACKET) that this process was started with.
    pub fn socket(number: &str) -> Result<Control> {
        let number = number.parse().map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        Ok(Control { fd: sys::inherited(number)?, header: Vec::new() })
    }

    /// Whether the agent is of a guest, whose `/sys` shows this network namespace.
    pub fn is_interface(&self) -> bool {
        !self.header.is_empty()
    }

    /// Takes the next frame's orders. None: the world has gone.
    pub fn take<'a>(&self, frame: &'a mut [u8]) -> Result<&'a [u8]> {
        let length = rustix::io::read(&self.fd, &mut *frame)?;
        Ok(frame.get(self.header.len()..length).unwrap_or_default())
    }

    /// Makes a report. A guest's kernel stands still until the world has it.
    pub fn report(&self, report: &Report) {
        let frame = [&self.header[..], &wire::bytes(report)].concat();
        loop {
            match socket::send_some(&self.fd, &frame) {
                // Its queue is full, which the world empties.
                Ok(None) => std::thread::yield_now(),
                Ok(_) => return,
                // The world has gone, and nobody needs this process.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
                Err(error) => return eprintln!("millpond-agent: a report: {error}"),
            }
        }
    }
}
