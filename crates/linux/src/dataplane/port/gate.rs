//! Senders behind a veth pair that are made to wait.
//!
//! A packet socket takes what comes and drops what it has no room for, and notifies nobody. A gate
//! keeps packets from coming: while it is closed nothing polls the receive queues of the switch's
//! end. Its ring fills, the other end's queueing discipline stops, and the sockets block that send
//! there. No packet is lost.
//!
//! Closing takes the NAPIs from their softirq: they are deferred by a timer, and one poll of ours,
//! by io_uring's busy polling, begins that. Opening takes the deferral back, and a poll hands the
//! NAPIs back. In between nothing changes: packets come by softirq, and the socket wakes the
//! switch. Packets behind the gate are one queue, so everybody waits there for the one flow that
//! should.
//!
//! It fails open. While it is closed the timer polls once in [`LEAK`], so a switch that dies lets
//! through that much; one that starts opens the gate. A poll without a packet ends the deferral.
//!
//! It needs a veth with generic receive offload (else it has no NAPI), Linux 6.16 (else veth drops
//! where it should stop), and a sender's end without segmentation offload (else its packets go past
//! the NAPI) and with a queueing discipline (else nothing can wait).
//!
//! Invariant: a gate that is dropped is open.

use super::Error;
use super::netdev::Netdev;
use rustix::io::Errno;
use rustix::io_uring::{
    IoringEnterFlags, IoringRegisterOp, io_uring_enter_arg, io_uring_getevents_arg,
    io_uring_params, io_uring_ptr, io_uring_register, io_uring_setup,
};
use rustix::thread::Timespec;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// While the gate is closed its queues are polled so seldom.
const LEAK: Duration = Duration::from_millis(200);
/// How long a poll of ours looks for packets, in microseconds: once.
const LOOK: u32 = 1;

/// `struct io_uring_napi`, by its operation.
#[repr(C)]
struct Napi {
    busy_poll_us: u32,
    prefers_busy_poll: u8,
    operation: u8,
    padding: [u8; 2],
    /// How NAPIs are found, or which one.
    parameter: u32,
    reserved: u32,
}

const BEGIN: u8 = 0;
const ADD: u8 = 1;
/// Those that are added, and no others.
const STATIC: u32 = 1;

#[derive(Debug)]
pub(super) struct Gate {
    netdev: Netdev,
    napis: Vec<u32>,
    /// Without requests: it is there to poll.
    ring: OwnedFd,
    is_closed: bool,
}

impl Gate {
    /// Of an interface of the calling thread's namespace; open, whatever it was.
    pub(super) fn of(device: &str, index: i32) -> Result<Gate, Error> {
        let failed = |what: &'static str| {
            move |e: Errno| {
                Error::kernel(format!("a gate for {device}: {what}"), std::io::Error::from(e))
            }
        };
        let netdev = Netdev::open().map_err(failed("netlink's family netdev"))?;
        let napis = netdev.napis(index).map_err(failed("asking for its NAPIs"))?;
        if napis.is_empty() {
            return Err(Error::Kernel {
                what: format!("a gate for {device}"),
                reason: format!(
                    "it has no NAPI: it must be a veth with `ethtool -K {device} gro on`"
                ),
            });
        }
        let mut params = io_uring_params::default();
        // SAFETY: the kernel fills the parameters in; the ring's memory is not mapped.
        #[allow(unsafe_code)]
        let ring =
            unsafe { io_uring_setup(1, &mut params) }.map_err(failed("a ring of io_uring"))?;
        let gate = Gate { netdev, napis, ring, is_closed: false };
        gate.register(BEGIN, STATIC).map_err(failed("busy polling by io_uring"))?;
        gate.napis
            .iter()
            .try_for_each(|napi| gate.register(ADD, *napi))
            .map_err(failed("polling its NAPI"))?;
        gate.defer(0, Duration::ZERO).map_err(failed("its NAPI's timer"))?;
        gate.poll();
        Ok(gate)
    }

    fn register(&self, operation: u8, parameter: u32) -> Result<(), Errno> {
        let napi = Napi {
            busy_poll_us: LOOK,
            prefers_busy_poll: 1,
            operation,
            padding: [0; 2],
            parameter,
            reserved: 0,
        };
        // SAFETY: the kernel reads and writes one such structure, during the call.
        #[allow(unsafe_code)]
        let done = unsafe {
            io_uring_register(
                &self.ring,
                IoringRegisterOp::RegisterNapi,
                (&raw const napi).cast(),
                1,
            )
        };
        done.map(drop)
    }

    fn defer(&self, polls: u32, timer: Duration) -> Result<(), Errno> {
        self.napis.iter().try_for_each(|napi| self.netdev.defer(*napi, polls, timer))
    }

    /// Polls the queues once, as whoever waits for a ring's requests does; there are none.
    fn poll(&self) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK) * 1000 };
        let ts = io_uring_ptr::new((&raw const timeout).cast_mut().cast());
        let arg = io_uring_getevents_arg { sigmask_sz: 8, ts, ..Default::default() };
        let flags = IoringEnterFlags::GETEVENTS | IoringEnterFlags::EXT_ARG;
        // SAFETY: nothing is submitted; the time lives as long as the call. It ends with ETIME.
        #[allow(unsafe_code)]
        let _ = unsafe { io_uring_enter_arg(&self.ring, 0, 1, flags, Some(&arg)) };
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Closes or opens it: two system calls and a poll, where that is a change. An error leaves it
    /// open.
    pub(super) fn set(&mut self, is_closed: bool) -> Result<(), Errno> {
        if is_closed == self.is_closed {
            return Ok(());
        }
        let done = if is_closed { self.defer(1, LEAK) } else { self.defer(0, Duration::ZERO) };
        self.is_closed = is_closed && done.is_ok();
        self.poll();
        done
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Its interface may have gone.
        let _ = self.set(false);
    }
}
