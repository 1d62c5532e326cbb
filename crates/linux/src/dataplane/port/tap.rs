//! A TAP: an interface of the switch's own in a namespace, which hands over super-segments as TCP
//! made them, and takes them.
//!
//! A persistent TAP stays when the switch dies: whoever uses the interface keeps addresses, routes
//! and connections, and the switch that comes next opens it again. Meanwhile it has no carrier, and
//! the kernel drops what is sent to it.
//!
//! Traps that were met: the kernel ignores "checksum is right" of frames that are written to a TAP,
//! and drops single frames with a partial checksum that are not marked so. So every frame is marked
//! "partial" with the pseudo-header's sum in place; and a frame that has no more payload than
//! `gso_size` must not claim to be several. A full queue is no backpressure to the sender: what is
//! beyond the interface's `txqueuelen` is dropped by its qdisc.
//!
//! With several workers each has a queue of the TAP (`IFF_MULTI_QUEUE`). The kernel gives a flow's
//! frames to the queue by which the flow's other direction was written last, and those of a new
//! flow to one by hash. So both directions of a connection are one worker's.
//!
//! Invariant: read and write never block.

use super::claim::Claim;
use super::device::{Device, Presence, ioctl, request};
use super::{Error, Received, Refusal, gather};
use crate::dataplane::frame::offload::{self, Offload};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TapSettings {
    pub device: String,
    /// Whether it stays when this process ends.
    pub persistent: bool,
}

#[derive(Debug)]
pub struct Tap {
    file: OwnedFd,
    device: Device,
    /// The interface's number; `None`: it is none.
    index: Option<i32>,
    /// By which other switches take no queue of it.
    _claim: Option<Claim>,
}

/// By libc: rustix has no requests of TAPs.
fn control<T>(file: &OwnedFd, number: libc::Ioctl, argument: T) -> io::Result<()> {
    // SAFETY: the callers pass an integer, or a pointer to one that outlives the call, as the
    // number wants.
    #[allow(unsafe_code)]
    let done = unsafe { libc::ioctl(file.as_raw_fd(), number as _, argument) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Tap {
    /// Opens the TAP interface in the calling thread's namespace, and makes it if it is missing.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process has it open, [`Error::Privilege`] without CAP_NET_ADMIN,
    /// [`Error::Kernel`] if /dev/net/tun is missing or the kernel refuses an option.
    pub fn open(settings: &TapSettings) -> Result<Tap, Error> {
        match Tap::attach(settings, false) {
            // A switch with several workers has left it.
            Err(Error::OneQueue { .. }) => Tap::attach(settings, true)?.claimed(),
            opened => opened,
        }
    }

    /// The same with so many queues, each a TAP to read and to write.
    ///
    /// # Errors
    /// As [`Tap::open`], and [`Error::OneQueue`] if the interface is there and has one queue.
    pub fn open_queues(settings: &TapSettings, count: usize) -> Result<Vec<Tap>, Error> {
        if count <= 1 {
            return Ok(vec![Tap::open(settings)?]);
        }
        let first = Tap::attach(settings, true)?.claimed()?;
        let others = (1..count).map(|_| Tap::attach(settings, true));
        std::iter::once(Ok(first)).chain(others).collect()
    }

    /// Keeps other switches of the host from attaching queues of theirs, as the kernel does where
    /// there is one.
    fn claimed(self) -> Result<Tap, Error> {
        let claim = self.index.map_or(Ok(None), |index| Claim::of(self.device.name(), index))?;
        Ok(Tap { _claim: claim, ..self })
    }

    /// Attaches a queue; [`Error::OneQueue`]: the interface has one, and `several` needs more.
    fn attach(settings: &TapSettings, several: bool) -> Result<Tap, Error> {
        let name = &settings.device;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
            .map_err(|e| Error::kernel("opening /dev/net/tun", e))?;
        let mut wanted = request(name)?;
        let queues = if several { libc::IFF_MULTI_QUEUE } else { 0 };
        wanted.ifr_ifru.ifru_flags =
            (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | queues) as libc::c_short;
        ioctl(&file, libc::TUNSETIFF as libc::c_ulong, &mut wanted).map_err(|e| {
            match Errno::from_io_error(&e) {
                Some(Errno::BUSY) => Error::Busy { device: name.clone() },
                Some(Errno::INVAL) => Error::OneQueue { device: name.clone() },
                _ => Error::kernel(format!("making the TAP {name}"), e),
            }
        })?;
        let failed = |what: &str| {
            let what = format!("{what} of the TAP {name}");
            move |e: io::Error| Error::kernel(what, e)
        };
        let size = offload::LENGTH as libc::c_int;
        control(&file, libc::TUNSETVNETHDRSZ, &size).map_err(failed("the virtio header"))?;
        let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        control(&file, libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads))
            .map_err(failed("offloads"))?;
        control(&file, libc::TUNSETPERSIST, libc::c_ulong::from(settings.persistent))
            .map_err(failed("persistence"))?;
        let device = Device::new(name)?;
        let index = device.index().ok();
        Ok(Tap { file, device, index, _claim: None })
    }

    /// Over anything that is read and written as a TAP is.
    #[cfg(test)]
    pub(crate) fn over(file: OwnedFd) -> Result<Tap, Error> {
        Ok(Tap { file, device: Device::new("none")?, index: None, _claim: None })
    }

    /// Makes the interface end with the last process that has it open.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the kernel's reason.
    pub fn forget(&self) -> Result<(), Error> {
        let what = format!("removing the TAP {}", self.device.name());
        control(&self.file, libc::TUNSETPERSIST, 0 as libc::c_ulong)
            .map_err(|e| Error::kernel(what, e))
    }

    /// Looks for its interface, which stays the tap's in any namespace.
    pub(super) fn follow(&mut self) -> Presence {
        match self.index.map(|index| self.device.follow(index)) {
            Some(Presence::Renamed) => Presence::Renamed,
            _ => Presence::Same,
        }
    }

    pub fn device(&self) -> &Device {
        &self.device
    }
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    #[inline]
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Received {
        let mut header = [0; offload::LENGTH];
        let parts = &mut [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
        let read = match rustix::io::readv(&self.file, parts) {
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return Received::Nothing,
            // Down: there is nothing to read, and it may come up again.
            Err(Errno::IO) => return Received::Nothing,
            Err(errno) => match Refusal::of(errno) {
                Refusal::Gone => return Received::Gone,
                other => return Received::Refused(other),
            },
        };
        match (read.checked_sub(offload::LENGTH), Offload::read(&header)) {
            (Some(length), Ok(offload)) => Received::Frame { start: 0, length, offload },
            _ => Received::Refused(Refusal::Invalid),
        }
    }

    #[inline]
    pub(super) fn send(
        &mut self,
        offload: &Offload,
        pieces: &[IoSlice<'_>],
    ) -> Result<(), Refusal> {
        let header = offload.write();
        let (all, count) = gather(&header, pieces);
        rustix::io::writev(&self.file, &all[..count]).map(|_| ()).map_err(Refusal::of)
    }
}
