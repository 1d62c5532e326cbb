//! A port of shared memory: an application attaches over a socket, and sends and receives frames
//! without the kernel (`millpond-port` is its side).
//!
//! A frame from the application is copied, and the copy is looked at. A frame to it is copied into
//! its buffers while it has some; else it waits in flow queues (`egress`). Another application's
//! flow that waits there too long is asked to pause: its further frames stay in its own memory, and
//! its other flows go on. Nothing is lost between two such ports.
//!
//! | file | what |
//! |---|---|
//! | `egress` | what waits for the application |
//! | `waiting` | one frame of that |
//! | `notices` | what other switches are to be notified of it |
//! | `link` | what other ports have of it |
//!
//! Invariant: an application's end, however it comes, frees all that it had, and nobody stays
//! paused; what it writes into its memory harms its own port alone.

mod egress;
mod link;
mod notices;
#[cfg(test)]
mod tests;
mod waiting;

pub use egress::{QueueKind, class};
pub use link::{Origin, Pause, Sender};
pub use notices::{Notice, What};

use super::{Error, Received, Refusal, socket};
use crate::dataplane::frame::View;
use egress::Egress;
use link::Link;
use millpond_core::Time;
use millpond_port::channel::{self, Parts};
use millpond_port::host::{Host, Next};
use millpond_port::layout::{Hello, Sizes};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, accept_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// An event at one of the port's descriptors.
const LISTENER: u64 = 0;
const APPLICATION: u64 = 1;
const WAKE: u64 = 2;
const FRAMING: u32 = 14 + 8;

/// The settings of a port of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSettings {
    pub socket: PathBuf,
    /// The user who may, beside the switch's own.
    pub uid: Option<u32>,
    /// The sizes that an application gets.
    pub sizes: Sizes,
    pub queue: QueueKind,
    /// The bytes that may wait for it.
    pub memory: u64,
    /// How much of that only flows may take that were asked to pause.
    pub headroom: u64,
}

/// The outcome of a frame that a port took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has left the switch, or is a copy in a queue.
    Left,
    /// It waits, with its sender's buffer.
    Waits,
    /// It was not taken: its sender keeps it.
    Held,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Its process, 0 if that is of a namespace that the switch does not see; none: no application
    /// is attached.
    pub pid: Option<i32>,
    pub attachments: u64,
    pub waiting_frames: usize,
    /// Their bytes.
    pub waiting_bytes: u64,
    pub peak_bytes: u64,
    /// The bytes that may wait.
    pub memory: u64,
    /// Flows to it that are known.
    pub flows: usize,
    /// Flows to it that are asked to pause.
    #[serde(rename = "told")]
    pub notified: usize,
    pub pauses: u64,
    /// How often one was asked to go on.
    pub resumes: u64,
    /// Flows from it that are paused.
    pub paused: usize,
}

struct Application {
    host: Host,
    link: Arc<Link>,
    pid: i32,
    /// The frame that was read last: its flow and its buffer.
    reading: Option<(u32, u32)>,
    _socket: OwnedFd,
    _pidfd: Option<OwnedFd>,
}

pub struct Shared {
    settings: SharedSettings,
    listener: OwnedFd,
    /// Of the listener, and of what an application has.
    events: OwnedFd,
    application: Option<Application>,
    queue: Egress,
    lost: usize,
    attachments: u64,
}

impl SharedSettings {
    /// The sizes for packets of `mtu` bytes.
    pub fn buffer_bytes(mtu: u32) -> u32 {
        (mtu + FRAMING).next_multiple_of(64).min(65_536)
    }
}

fn watch(events: &OwnedFd, fd: impl AsFd, what: u64) -> Result<(), Errno> {
    epoll::add(events, fd, epoll::EventData::new_u64(what), epoll::EventFlags::IN)
}

impl Shared {
    /// Listens for an application at the socket of `settings`.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the sizes are out of bounds, or the socket or its epoll cannot be made;
    /// [`Error::Busy`] if another process listens there.
    pub fn open(settings: SharedSettings) -> Result<Shared, Error> {
        let reason = |reason| Error::Kernel { what: "shared memory".into(), reason };
        settings.sizes.check().map_err(reason)?;
        let listener = socket::listen(&settings.socket, SocketType::SEQPACKET, settings.uid)?;
        let epoll = || {
            let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            watch(&events, &listener, LISTENER).map(|()| events)
        };
        let events = epoll().map_err(|e| Error::kernel("an epoll", e))?;
        let queue = Egress::new(
            settings.queue,
            settings.memory,
            settings.headroom,
            settings.sizes.buffer_bytes,
        );
        Ok(Shared { settings, listener, events, application: None, queue, lost: 0, attachments: 0 })
    }

    /// The descriptor to wait for; [`Shared::attend`] follows.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Looks after what has happened at its descriptors.
    pub fn attend(&mut self) {
        let happened = socket::happened(&self.events);
        if happened.contains(&WAKE)
            && let Some(application) = &self.application
        {
            application.host.clear();
        }
        // An application sends nothing after it has attached: the socket is readable at its end.
        if happened.contains(&APPLICATION) {
            self.detach();
        }
        if happened.contains(&LISTENER) {
            self.accept();
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let Ok(socket) = accept_with(&self.listener, flags) else { return };
        let Some(peer) = socket::credentials(&socket) else { return };
        let may = socket::may_attach(peer.uid, self.settings.uid);
        let refusal = match (may, &self.application) {
            (false, _) => Some(Hello::Denied),
            (true, Some(_)) => Some(Hello::Busy),
            (true, None) => None,
        };
        if let Some(hello) = refusal {
            // An application that does not listen has gone.
            let _ = channel::send(&socket, &hello, None);
            return;
        }
        if let Err(error) = self.attach(socket, peer.pid) {
            log::warn!("an application at {}: {error}", self.settings.socket.display());
        }
    }

    fn attach(&mut self, socket: OwnedFd, pid: i32) -> Result<(), Errno> {
        let (host, parts) = Host::new(self.settings.sizes)?;
        let Parts { memory, switch, readable, writable } = &parts;
        let borrowed = Parts {
            memory: memory.as_fd(),
            switch: switch.as_fd(),
            readable: readable.as_fd(),
            writable: writable.as_fd(),
        };
        // The socket may outlive the process in a child's hands.
        let process = Pid::from_raw(pid);
        let pidfd = process.and_then(|process| pidfd_open(process, PidfdFlags::empty()).ok());
        watch(&self.events, &socket, APPLICATION)?;
        pidfd.as_ref().map_or(Ok(()), |fd| watch(&self.events, fd, APPLICATION))?;
        watch(&self.events, host.fd(), WAKE)?;
        channel::send(&socket, &Hello::Welcome(self.settings.sizes), Some(&borrowed))?;
        let link = Link::new(self.settings.sizes.flows);
        let reading = None;
        self.application =
            Some(Application { host, link, pid, reading, _socket: socket, _pidfd: pidfd });
        self.attachments += 1;
        Ok(())
    }

    /// The application is gone, or is to be. Its flows' frames in other queues go on.
    pub fn detach(&mut self) {
        self.application = None;
        self.lost += self.queue.clear();
    }
    /// Frames that had waited for an application that has gone, since this was asked last.
    pub fn take_lost(&mut self) -> usize {
        std::mem::take(&mut self.lost)
    }

    /// Takes back the buffers that other ports have finished, and hands over what waits. Whether
    /// there was something.
    pub fn tend(&mut self, now: Time, mut sent: impl FnMut(usize)) -> bool {
        let Some(Application { host, link, .. }) = &mut self.application else { return false };
        let has_news = link.has_news();
        if has_news {
            settle(host, link);
        }
        if self.queue.is_empty() || !host.has_room() {
            return has_news;
        }
        self.queue.drain(now, host, &mut sent) > 0 || has_news
    }

    /// Reads the next frame. [`Shared::origin`] reports where it comes from, and
    /// [`Shared::conclude`] follows.
    #[inline]
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Received {
        let Some(application) = &mut self.application else { return Received::Nothing };
        match application.host.next(buffer) {
            Ok(Next::Frame { flow, buffer, length }) => {
                application.reading = Some((flow, buffer));
                Received::Frame { start: 0, length, offload: Default::default() }
            }
            Ok(Next::Bad) => Received::Refused(Refusal::Descriptor),
            Ok(Next::Again | Next::Nothing) => Received::Nothing,
            // Its counts cannot be: nothing that it has written can be trusted to be a frame.
            Err(_) => {
                self.detach();
                Received::Refused(Refusal::Descriptor)
            }
        }
    }
    /// Where the frame comes from that was read last.
    #[inline]
    pub fn origin(&self) -> Option<Origin> {
        let application = self.application.as_ref()?;
        let (flow, buffer) = application.reading?;
        Some(Origin { link: application.link.clone(), flow, buffer })
    }
    /// Takes in the fate of that frame.
    #[inline]
    pub fn conclude(&mut self, fate: Fate) {
        let Some(Application { host, link, reading, .. }) = &mut self.application else { return };
        let Some((_, buffer)) = reading.take() else { return };
        match fate {
            Fate::Left => {
                host.taken(buffer);
                host.finish(buffer);
            }
            Fate::Waits => {
                host.taken(buffer);
                settle(host, link);
            }
            Fate::Held => {
                settle(host, link);
                host.kept();
            }
        }
    }

    /// Takes charge of a whole frame. Returns whether it left, waits, or stays with its sender.
    ///
    /// # Errors
    /// The reason to drop the frame.
    pub fn send(
        &mut self,
        now: Time,
        view: &View,
        sender: Sender<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Result<Fate, Refused> {
        let Some(application) = &mut self.application else { return Err(Refused::NoApplication) };
        let header: &[u8] = pieces.first().map_or(&[], |piece| piece);
        let flow = self.queue.flow(sender, view, header);
        if self.queue.is_empty() && application.host.has_room() {
            return match application.host.deliver(pieces, flow.1 as u16) {
                true => Ok(Fate::Left),
                false => Err(Refused::TooLong),
            };
        }
        if pieces.iter().map(|piece| piece.len()).sum::<usize>()
            > self.settings.sizes.buffer_bytes as usize
        {
            return Err(Refused::TooLong);
        }
        match (self.queue.offer(now, flow, class(view, header), sender, pieces), sender) {
            (true, _) => Ok(Fate::Waits),
            (false, Sender::Application(_)) if self.queue.is_lossless() => Ok(Fate::Held),
            (false, _) => Err(Refused::NoMemory),
        }
    }
    /// Takes back the buffers that the application has read, while none of its frames is taken.
    pub fn take_back(&mut self) {
        if let Some(application) = &mut self.application
            && application.host.take_back().is_err()
        {
            self.detach();
        }
    }
    /// Ports from which a flow should pause.
    pub fn slowed(&self) -> impl Iterator<Item = u16> {
        self.queue.slowed()
    }
    /// Whether the switch is to take nothing from anywhere while so much waits here.
    pub fn is_stopped(&self) -> bool {
        self.queue.is_stopped()
    }
    /// The notices that are due to other switches of what they send to it.
    pub fn take_notices(&mut self, into: &mut Vec<Notice>) {
        self.queue.take_notices(into);
    }
    /// Shows the application what was done for it since the last time.
    pub fn flush(&mut self) {
        if let Some(application) = &mut self.application {
            application.host.flush();
        }
    }

    /// Whether it has nothing to do until its descriptor is ready.
    pub fn may_sleep(&self) -> bool {
        let Some(Application { host, link, .. }) = &self.application else { return true };
        let is_stuck = self.queue.is_empty() || !host.has_room();
        is_stuck && !link.has_news() && host.may_sleep()
    }
    pub fn awake(&self) {
        if let Some(application) = &self.application {
            application.host.awake();
        }
    }
    pub fn housekeeping(&mut self, now: Time) {
        self.queue.expire(now);
    }
    pub fn reading(&self) -> Reading {
        let (queue, counters) = (&self.queue, self.queue.counters());
        Reading {
            pid: self.application.as_ref().map(|application| application.pid),
            attachments: self.attachments,
            waiting_frames: queue.len(),
            waiting_bytes: queue.bytes(),
            peak_bytes: counters.peak_bytes,
            memory: self.settings.memory,
            flows: queue.flows(),
            notified: queue.notified(),
            pauses: counters.pauses,
            resumes: counters.resumes,
            paused: self.application.as_ref().map_or(0, |application| application.host.paused()),
        }
    }
}

/// Why a frame does not reach the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// None is attached.
    NoApplication,
    /// There is no memory for it to wait in, and its sender cannot keep it.
    NoMemory,
    /// It is longer than a buffer.
    TooLong,
}

/// Notifies an application of what has become of its frames and flows.
fn settle(host: &mut Host, link: &Link) {
    let (finished, changed) = link.take();
    finished.into_iter().for_each(|buffer| host.finish(buffer));
    for (flow, is_paused) in changed {
        match is_paused {
            true => host.pause(flow),
            false => host.resume(flow),
        }
    }
}
