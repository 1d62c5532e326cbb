//! A network interface of a guest: the vhost-user protocol, served between two looks at the
//! calendar, and the rings in the guest's memory.
//!
//! Follows the vhost-user protocol as `arch/um/drivers/virtio_uml.c` speaks it: kicks come in the
//! band of the protocol's messages and are answered, so the guest stands still in one; an interrupt
//! is a message to the guest, which it answers when it has noted it.
//!
//! Invariant: nothing that the guest writes leads outside of its memory, and a frame is copied
//! before it is looked at.

use crate::error::Error;
use millpond_linux::dataplane::frame::{Mac, Offload};
use millpond_linux::dataplane::port::vhost::frames::{self, Format, Given, HEADER, Scratch, Taken};
use millpond_linux::dataplane::port::vhost::memory::Memory;
use millpond_linux::dataplane::port::vhost::ring::{Parts, Ring};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;
use vhost::vhost_user::message::VhostUserMemoryRegion;

/// The ring of frames to the guest, and the ring of its own.
pub const TO_GUEST: usize = 0;
/// The ring of the guest's own frames.
pub const FROM_GUEST: usize = 1;

/// Features of virtio: checksums are left to the other side both ways, an MTU and an address,
/// frames over several buffers, whether the link is up; of rings: tables elsewhere, event indices;
/// of the protocol; version 1.
const FEATURES: u64 =
    1 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 15 | 1 << 16 | 1 << 28 | 1 << 29 | 1 << 30 | 1 << 32;
/// The guest's super-segments of TCP, over IPv4 and IPv6 and with ECN, which its interface cuts.
const CUTS: u64 = 1 << 11 | 1 << 12 | 1 << 13;
const MERGES: u64 = 1 << 7 | 1 << 8 | 1 << 9;
const EVENT_INDEX: u64 = 1 << 29;
const MERGEABLE: u64 = 1 << 15;
/// Features of the protocol: answers on demand, requests to the guest, configuration, kicks in
/// band.
const PROTOCOL: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;

const GET_FEATURES: u32 = 1;
const SET_FEATURES: u32 = 2;
const SET_MEMORY: u32 = 5;
const SET_SIZE: u32 = 8;
const SET_ADDRESS: u32 = 9;
const SET_BASE: u32 = 10;
const GET_PROTOCOL: u32 = 15;
const ENABLE: u32 = 18;
const SET_REQUESTS: u32 = 21;
const GET_CONFIG: u32 = 24;
const KICK: u32 = 35;
/// To the guest: a ring has something for it.
const CALL: u32 = 4;

const HEAD: usize = 12;
const VERSION: u32 = 1;
const IS_ANSWER: u32 = 1 << 2;
const WANTS_ANSWER: u32 = 1 << 3;
/// No message of the guest's is longer.
const MESSAGE_MAX: usize = 512;
/// A guest that does not answer within this, by the wall clock, never will.
pub const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub mac: Mac,
    /// The most bytes of IP in a frame.
    pub mtu: u16,
    /// Whether it takes super-segments of the guest's and cuts them.
    pub cuts: bool,
    /// Whether frames for the guest may be super-segments.
    pub merges: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Nothing that is for the world.
    Nothing,
    /// It has put something into its ring, and stands still until [`Device::answer`].
    Kick(usize),
    Gone,
}

#[derive(Default)]
struct Queue {
    size: u16,
    base: u16,
    parts: Option<Parts>,
    ring: Option<Ring>,
}

pub struct Device {
    settings: Settings,
    listener: UnixListener,
    stream: Option<UnixStream>,
    requests: Option<UnixStream>,
    features: u64,
    memory: Option<Memory>,
    queues: [Queue; 2],
    scratch: Scratch,
    /// Bytes of messages that were read and not dealt with.
    unread: Vec<u8>,
    files: Vec<OwnedFd>,
    /// The head of the kick that is to be answered.
    kicked: Option<u32>,
    /// Requests that the guest has not answered.
    pub unanswered: u32,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// A message of the protocol: its request and flags, its length, and its body.
fn message(head: [u32; 2], body: &[u8]) -> Vec<u8> {
    let [request, flags] = head;
    let head = [request, flags, body.len() as u32].map(u32::to_ne_bytes);
    [head.as_flattened(), body].concat()
}

fn broken(what: impl Into<String>) -> Error {
    Error::Protocol(format!("its network interface sent an invalid message: {}", what.into()))
}

impl Device {
    /// Listens for the guest at a path.
    pub fn new(path: &Path, settings: Settings) -> Result<Device, Error> {
        let listener = UnixListener::bind(path);
        let listener = listener.map_err(|e| Error::system(path.display().to_string(), e))?;
        Ok(Device {
            settings,
            listener,
            stream: None,
            requests: None,
            features: 0,
            memory: None,
            queues: Default::default(),
            scratch: Scratch::default(),
            unread: Vec::new(),
            files: Vec::new(),
            kicked: None,
            unanswered: 0,
        })
    }

    /// Its socket: readable when the guest has connected or sent a message.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_ref().map_or(self.listener.as_fd(), UnixStream::as_fd)
    }

    /// Whether messages were read that [`Device::receive`] has not dealt with.
    pub fn has_unread(&self) -> bool {
        self.unread.len() >= HEAD
    }

    /// Takes the guest's next message. To be called when there is one.
    pub fn receive(&mut self) -> Result<Received, Error> {
        let Some(stream) = &self.stream else {
            let accepted = self.listener.accept();
            let (stream, _) = accepted.map_err(|e| Error::system("a guest's interface", e))?;
            self.stream = Some(stream);
            return Ok(Received::Nothing);
        };
        while self.unread.len() < HEAD || self.unread.len() < HEAD + word(&self.unread, 8) as usize
        {
            if word(&self.unread, 8) as usize > MESSAGE_MAX {
                return Err(broken("a message that is too long"));
            }
            let mut bytes = [0; MESSAGE_MAX];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC;
            let got = recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags);
            let got = match got {
                Ok(got) if got.bytes > 0 => got.bytes,
                Ok(_) | Err(rustix::io::Errno::CONNRESET) => return Ok(Received::Gone),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(Error::system("reading a guest's message", error)),
            };
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(files) = message {
                    self.files.extend(files);
                }
            }
            self.unread.extend_from_slice(&bytes[..got]);
        }
        let (request, flags) = (word(&self.unread, 0), word(&self.unread, 4));
        let end = HEAD + word(&self.unread, 8) as usize;
        let body: Vec<u8> = self.unread.drain(..end).skip(HEAD).collect();
        self.obey(request, flags, &body)
    }

    fn obey(&mut self, request: u32, flags: u32, body: &[u8]) -> Result<Received, Error> {
        let (index, number) = (word(body, 0) as usize, word(body, 4));
        let mut answer = None;
        match request {
            GET_FEATURES => answer = Some(self.offered().to_ne_bytes().to_vec()),
            SET_FEATURES => self.features = long(body, 0),
            GET_PROTOCOL => answer = Some(PROTOCOL.to_ne_bytes().to_vec()),
            SET_REQUESTS => {
                let file = self.files.pop().ok_or_else(|| broken("no socket for requests"))?;
                let stream = UnixStream::from(file);
                let set = stream.set_read_timeout(Some(PATIENCE));
                set.map_err(|e| Error::system("a guest's socket", e))?;
                self.requests = Some(stream);
            }
            SET_MEMORY => self.set_memory(body)?,
            GET_CONFIG => answer = Some(self.configuration(body)),
            SET_SIZE => self.queue(index, |queue| queue.size = number as u16),
            SET_BASE => self.queue(index, |queue| queue.base = number as u16),
            SET_ADDRESS => {
                let parts = Parts {
                    descriptors: long(body, 8),
                    used: long(body, 16),
                    available: long(body, 24),
                };
                self.queue(index, |queue| queue.parts = Some(parts));
            }
            ENABLE => self.enable(index, number != 0)?,
            KICK => {
                self.kicked = (flags & WANTS_ANSWER != 0).then_some(request);
                return Ok(Received::Kick(index));
            }
            _ => {}
        }
        self.files.clear();
        match answer {
            Some(answer) => self.reply(request, &answer)?,
            None if flags & WANTS_ANSWER != 0 => self.reply(request, &0u64.to_ne_bytes())?,
            None => {}
        }
        Ok(Received::Nothing)
    }

    fn offered(&self) -> u64 {
        let when = |is: bool, features: u64| if is { features } else { 0 };
        FEATURES | when(self.settings.cuts, CUTS) | when(self.settings.merges, MERGES)
    }

    /// Does something to a ring that this interface has; others are the guest's own matter.
    fn queue(&mut self, index: usize, work: impl FnOnce(&mut Queue)) {
        if let Some(queue) = self.queues.get_mut(index) {
            work(queue);
        }
    }

    fn set_memory(&mut self, body: &[u8]) -> Result<(), Error> {
        let count = word(body, 0) as usize;
        if count > 8 || body.len() < 8 + 32 * count {
            return Err(broken("regions of memory"));
        }
        let region = |at: usize| {
            let [guest, size, user, offset] = [0, 8, 16, 24].map(|i| long(body, 8 + 32 * at + i));
            VhostUserMemoryRegion::new(guest, size, user, offset)
        };
        let regions: Vec<_> = (0..count).map(region).collect();
        let files = self.files.drain(..).map(File::from).collect();
        self.memory = Some(Memory::map(&regions, files, true).map_err(broken)?);
        Ok(())
    }

    /// `struct virtio_net_config`: address, status, pairs of rings, MTU.
    fn configuration(&self, body: &[u8]) -> Vec<u8> {
        let mut all = vec![0; 256];
        all[..6].copy_from_slice(&self.settings.mac.0);
        all[6..8].copy_from_slice(&1u16.to_ne_bytes());
        all[8..10].copy_from_slice(&1u16.to_ne_bytes());
        all[10..12].copy_from_slice(&self.settings.mtu.to_ne_bytes());
        let (offset, size) = (word(body, 0) as usize, word(body, 4) as usize);
        let mut answer = body.to_vec();
        for (to, at) in answer.iter_mut().skip(HEAD).zip(offset..offset.saturating_add(size)) {
            *to = all.get(at).copied().unwrap_or(0);
        }
        answer
    }

    fn enable(&mut self, index: usize, is_on: bool) -> Result<(), Error> {
        let has_event_index = self.features & EVENT_INDEX != 0;
        let (Some(queue), Some(memory)) = (self.queues.get_mut(index), &self.memory) else {
            return Ok(());
        };
        queue.ring = None;
        let Some(parts) = queue.parts.filter(|_| is_on) else { return Ok(()) };
        let at = |address| memory.guest_address(address).ok_or_else(|| broken("a ring's place"));
        let parts = Parts {
            descriptors: at(parts.descriptors)?,
            available: at(parts.available)?,
            used: at(parts.used)?,
        };
        let ring = Ring::new(memory, parts, queue.size, queue.base, has_event_index);
        queue.ring = Some(ring.ok_or_else(|| broken("a ring's size or place"))?);
        Ok(())
    }

    fn reply(&mut self, request: u32, body: &[u8]) -> Result<(), Error> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        stream
            .write_all(&message([request, VERSION | IS_ANSWER], body))
            .map_err(|e| Error::system("answering a guest", e))
    }

    /// Answers the last kick: the guest goes on.
    pub fn answer(&mut self) -> Result<(), Error> {
        match self.kicked.take() {
            Some(request) => self.reply(request, &0u64.to_ne_bytes()),
            None => Ok(()),
        }
    }

    fn format(&self) -> Format {
        Format { header: HEADER, is_mergeable: self.features & MERGEABLE != 0 }
    }

    /// Takes the guest's next frame. Its buffers go back to the guest with [`Device::complete`].
    pub fn take(&mut self, frame: &mut [u8]) -> Result<Taken, Error> {
        let format = self.format();
        let (Some(memory), Some(ring)) = (&self.memory, &mut self.queues[FROM_GUEST].ring) else {
            return Ok(Taken::Nothing);
        };
        frames::take(ring, memory, format, &mut self.scratch, frame).map_err(|_| broken("a ring"))
    }

    /// Gives back the buffers of the guest's frames that were taken.
    pub fn complete(&mut self) -> Result<(), Error> {
        match &mut self.queues[FROM_GUEST].ring {
            Some(ring) => ring.publish().map_err(|_| broken("a ring")),
            None => Ok(()),
        }
    }

    /// The guest is to kick when it has another frame. Whether it has one already.
    pub fn arm(&mut self) -> Result<bool, Error> {
        match &mut self.queues[FROM_GUEST].ring {
            Some(ring) => ring.arm().map_err(|_| broken("a ring")),
            None => Ok(false),
        }
    }

    /// Gives the guest a frame; `false`: it has no buffer for it, or is not up.
    pub fn give(&mut self, offload: &Offload, frame: &[u8]) -> Result<bool, Error> {
        let format = self.format();
        let (Some(memory), Some(ring)) = (&self.memory, &mut self.queues[TO_GUEST].ring) else {
            return Ok(false);
        };
        let pieces = [IoSlice::new(frame)];
        let given = frames::give(ring, memory, format, &mut self.scratch, offload, &pieces);
        Ok(given.map_err(|_| broken("a ring"))? == Given::Done)
    }

    /// Interrupts the guest if it asked for interrupts of a ring. The guest waits, and
    /// [`Device::await_answers`] follows.
    pub fn interrupt(&mut self, which: usize) -> Result<(), Error> {
        let Some(ring) = &mut self.queues[which].ring else { return Ok(()) };
        if !ring.wants_signal().map_err(|_| broken("a ring"))? {
            return Ok(());
        }
        let Some(requests) = &mut self.requests else { return Ok(()) };
        let bytes = message([CALL, VERSION | WANTS_ANSWER], &(which as u64).to_le_bytes());
        requests.write_all(&bytes).map_err(|e| Error::system("interrupting a guest", e))?;
        self.unanswered += 1;
        Ok(())
    }

    /// Waits for the answers to interrupts.
    pub fn await_answers(&mut self) -> Result<(), Error> {
        let Some(requests) = &mut self.requests else { return Ok(()) };
        while self.unanswered > 0 {
            let mut bytes = [0; HEAD + 8];
            let done = requests.read_exact(&mut bytes);
            done.map_err(|e| Error::system("waiting for a guest's answer to an interrupt", e))?;
            self.unanswered -= 1;
        }
        Ok(())
    }
}
