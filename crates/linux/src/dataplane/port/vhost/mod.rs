//! A port of a virtual machine: a guest's virtio network device, over vhost-user. QEMU attaches at
//! a socket, or DPDK's virtio-user, without any code of millpond.
//!
//! Frames are copied out of the guest's memory and into it by the switch's thread. A guest without
//! buffers is a device whose queue is full: frames for it wait in the port's queue, and go on when
//! it kicks.
//!
//! | file | what |
//! |---|---|
//! | `control` | the protocol, on a thread a connection |
//! | `device` | features and rings, as both threads see them |
//! | `memory` | the guest's memory |
//! | `ring` | a split ring, from the device's side |
//! | `frames` | frames in a guest's buffers |
//!
//! Invariant: a guest's end, however it comes, frees all that it had; what it writes into its
//! memory harms its own port alone.

mod control;
mod device;
pub mod frames;
pub mod memory;
pub mod ring;
#[cfg(test)]
mod tests;

use super::{Error, Received, Refusal, socket};
use crate::dataplane::frame::offload::Offload;
use device::Device;
use frames::{Given, Taken};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, accept_with};
use serde::{Deserialize, Serialize};
use std::io::IoSlice;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

/// An event at one of the port's descriptors.
const LISTENER: u64 = 0;
const GUEST: u64 = 1;
/// And at one of a guest's.
const NEWS: u64 = 2;
const KICK: u64 = 3;

/// The settings of a port of a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostSettings {
    pub socket: PathBuf,
    /// The user who may, beside the switch's own.
    pub uid: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The front end's process, 0 if that is of a namespace that the switch does not see; none:
    /// none is attached.
    pub pid: Option<i32>,
    /// Whether the guest's driver is up: frames can pass both ways.
    pub is_up: bool,
    pub super_segments: bool,
    /// Whether a frame may be in several of its buffers.
    pub mergeable: bool,
    pub attachments: u64,
    /// How often one was rejected for an impossible ring or message.
    pub broken: u64,
    pub waiting_frames: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
}

/// The work that follows after the port was attended to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attended {
    /// A guest has gone: nothing waits for it any more.
    pub has_ended: bool,
    /// The guest may have buffers again.
    pub may_write: bool,
}

struct Guest {
    device: Arc<Device>,
    pid: i32,
    /// Its news, and its kicks as of this version of its rings.
    events: OwnedFd,
    version: u64,
    /// Ends the thread that serves it.
    stream: UnixStream,
}

pub struct Vhost {
    settings: VhostSettings,
    listener: OwnedFd,
    /// Of the listener, and of what a guest has.
    events: OwnedFd,
    guest: Option<Guest>,
    attachments: u64,
    broken: u64,
}

fn watch(events: &OwnedFd, fd: impl AsFd, what: u64, is_edge: bool) -> Result<(), Errno> {
    let edge = if is_edge { epoll::EventFlags::ET } else { epoll::EventFlags::empty() };
    epoll::add(events, fd, epoll::EventData::new_u64(what), epoll::EventFlags::IN | edge)
}

impl Guest {
    /// The descriptor to wait for, anew. Kicks come by their edge: a descriptor that the guest has
    /// as well is never read, since a read could wait.
    fn events(device: &Device) -> Result<(OwnedFd, u64), Errno> {
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        watch(&events, device.news(), NEWS, false)?;
        let state = device.lock();
        for kick in state.queues.iter().filter_map(|queue| queue.kick.as_ref()) {
            match watch(&events, kick.as_fd(), KICK, true) {
                // One for both rings.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok((events, state.version))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Vhost {
    /// Listens for a guest at the socket of `settings`.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the socket or its epoll cannot be made, [`Error::Busy`] if another
    /// process listens there.
    pub fn open(settings: VhostSettings) -> Result<Vhost, Error> {
        let listener = socket::listen(&settings.socket, SocketType::STREAM, settings.uid)?;
        let epoll = || {
            let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            watch(&events, &listener, LISTENER, false).map(|()| events)
        };
        let events = epoll().map_err(|e| Error::kernel("an epoll", e))?;
        Ok(Vhost { settings, listener, events, guest: None, attachments: 0, broken: 0 })
    }

    /// The descriptor to wait for; [`Vhost::attend`] follows.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Looks after what has happened at its descriptors.
    pub fn attend(&mut self) -> Attended {
        let mut attended = Attended::default();
        let happened_here = socket::happened(&self.events);
        if happened_here.contains(&GUEST) {
            self.attend_guest(&mut attended);
        }
        if happened_here.contains(&LISTENER) {
            self.accept();
        }
        attended
    }

    fn attend_guest(&mut self, attended: &mut Attended) {
        let Some(guest) = &mut self.guest else { return };
        let news = socket::happened(&guest.events);
        attended.may_write = !news.is_empty();
        if !news.contains(&NEWS) {
            return;
        }
        let _ = rustix::io::read(guest.device.news(), &mut [0u8; 8]);
        let state = guest.device.lock();
        let (version, end) = (state.version, state.end.clone());
        drop(state);
        if let Some(why) = end {
            self.end(&why);
            attended.has_ended = true;
            return;
        }
        if version != guest.version {
            let renewed = Guest::events(&guest.device).and_then(|(events, version)| {
                watch(&self.events, &events, GUEST, false)?;
                Ok((events, version))
            });
            match renewed {
                Ok((events, version)) => (guest.events, guest.version) = (events, version),
                Err(errno) => {
                    self.end(&errno.to_string());
                    attended.has_ended = true;
                }
            }
        }
    }

    /// The guest has gone, or must.
    fn end(&mut self, why: &str) {
        let Some(guest) = self.guest.take() else { return };
        let is_broken = why != control::GONE;
        self.broken += u64::from(is_broken);
        let socket = self.settings.socket.display();
        match is_broken {
            true => log::warn!("the guest at {socket} (process {}) is sent away: {why}", guest.pid),
            false => log::info!("the guest at {socket} has gone"),
        }
    }

    fn accept(&mut self) {
        let Ok(stream) = accept_with(&self.listener, SocketFlags::CLOEXEC) else { return };
        let Some(peer) = socket::credentials(&stream) else { return };
        // A front end that may not, or comes second, learns so by the connection's end.
        if !socket::may_attach(peer.uid, self.settings.uid) || self.guest.is_some() {
            return;
        }
        let attach = || -> std::io::Result<Guest> {
            let device = Arc::new(Device::new()?);
            let (events, version) = Guest::events(&device)?;
            watch(&self.events, &events, GUEST, false)?;
            let stream = control::serve(stream, device.clone(), socket::is_trusted(peer.uid))?;
            Ok(Guest { device, pid: peer.pid, events, version, stream })
        };
        match attach() {
            Ok(guest) => {
                log::info!("a guest at {} (process {})", self.settings.socket.display(), peer.pid);
                self.guest = Some(guest);
                self.attachments += 1;
            }
            Err(error) => log::warn!("a guest at {}: {error}", self.settings.socket.display()),
        }
    }

    pub fn detach(&mut self) {
        self.guest = None;
    }

    #[inline]
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Received {
        let Some(guest) = &self.guest else { return Received::Nothing };
        match guest.device.take(buffer) {
            Taken::Frame(length, offload) => Received::Frame { start: 0, length, offload },
            Taken::Bad => Received::Refused(Refusal::Descriptor),
            Taken::Nothing => Received::Nothing,
        }
    }

    /// Whether the guest takes what is still to be done to a frame.
    #[inline]
    pub fn takes(&self, offload: &Offload) -> bool {
        self.guest.as_ref().is_none_or(|guest| guest.device.takes(offload))
    }
    #[inline]
    pub(super) fn send(
        &mut self,
        offload: &Offload,
        pieces: &[IoSlice<'_>],
    ) -> Result<(), Refusal> {
        match self.guest.as_ref().and_then(|guest| guest.device.give(offload, pieces)) {
            Some(Given::Done) => Ok(()),
            Some(Given::Full) => Err(Refusal::Full),
            Some(Given::TooLong) => Err(Refusal::TooLong),
            None => Err(Refusal::NoGuest),
        }
    }

    /// Signals the guest what was done for it since the last time.
    pub fn flush(&mut self) {
        if let Some(guest) = &self.guest {
            guest.device.signal();
        }
    }
    /// Whether there is nothing to do until its descriptor is ready.
    pub fn may_sleep(&self) -> bool {
        self.guest.as_ref().is_none_or(|guest| guest.device.may_sleep())
    }
    pub fn awake(&self) {
        if let Some(guest) = &self.guest {
            guest.device.awake();
        }
    }

    /// The events so far; frames that wait are in the port's queue, elsewhere.
    pub fn reading(&self) -> Reading {
        let device = self.guest.as_ref().map(|guest| &guest.device);
        Reading {
            pid: self.guest.as_ref().map(|guest| guest.pid),
            is_up: device.is_some_and(|device| device.is_up()),
            super_segments: device.is_some_and(|device| device.takes_super_segments()),
            mergeable: device.is_some_and(|device| device.is_mergeable()),
            attachments: self.attachments,
            broken: self.broken,
            ..Reading::default()
        }
    }
}
