//! A guest's clock: the schedule that it shares with this process, and the socket on which it
//! reports that it waits.
//!
//! Follows `include/uapi/linux/um_timetravel.h`. Each guest has a schedule of its own with one
//! client, so guests need not run one after another. A guest goes ahead by itself while its time is
//! before `free_until`; at that time it waits.
//!
//! Invariant: the guest's clock moves while the guest runs, and only this process moves it
//! otherwise.

use crate::error::Error;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::SeqCst;
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestRegionMmap, MemoryRegionAddress, MmapRegion,
};

const VERSION: u64 = 0;
const LENGTH: u64 = 4;
const FREE_UNTIL: u64 = 8;
const CURRENT: u64 = 16;
const RUNNING: u64 = 24;
const CLIENTS: u64 = 26;
/// Clients follow a page of head: this process, and the guest.
const FIRST: u64 = 4096;
const CLIENT: u64 = 128;
const SIZE: u64 = FIRST + 2 * CLIENT;
const CAPABILITIES: u64 = 0;
const FLAGS: u64 = 4;
const REQUEST: u64 = 8;
const NAME: u64 = 16;
/// The version that has a shared schedule.
const SHARED: u32 = 2;
/// A client's capability to share it, and the flag of a request.
const TIME_SHARE: u32 = 1;
const REQUESTS_RUN: u32 = 1;
/// The number of the guest in its schedule, and of this process.
const GUEST: u16 = 1;
const WORLD: u16 = 0;

const ACK: u32 = 0;
const START: u32 = 1;
const REQUESTED: u32 = 2;
const WAIT: u32 = 3;
const GET: u32 = 4;
const UPDATE: u32 = 5;
const RUN: u32 = 6;
const TIME_OF_DAY: u32 = 8;
const MESSAGE: usize = 16;

/// The time of day at the beginning of virtual time: 2020-01-01, in nanoseconds.
pub const EPOCH: u64 = 1_577_836_800_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// It has nothing to do before the time that it has asked for.
    Waits,
    Other,
    Gone,
}

pub struct Schedule {
    shared: GuestRegionMmap,
    socket: UnixStream,
}

fn message(operation: u32, sequence: u32, time: u64) -> [u8; MESSAGE] {
    let mut bytes = [0; MESSAGE];
    bytes[..4].copy_from_slice(&operation.to_ne_bytes());
    bytes[4..8].copy_from_slice(&sequence.to_ne_bytes());
    bytes[8..].copy_from_slice(&time.to_ne_bytes());
    bytes
}

fn parts(bytes: &[u8; MESSAGE]) -> (u32, u32, u64) {
    let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
    (word(0), word(4), u64::from(word(12)) << 32 | u64::from(word(8)))
}

impl Schedule {
    /// Answers a guest's first message with a schedule.
    pub fn new(socket: UnixStream) -> Result<Schedule, Error> {
        let failed = |e: Errno| Error::system("a guest's schedule", e);
        let file = memfd_create("millpond-schedule", MemfdFlags::CLOEXEC).map_err(failed)?;
        ftruncate(&file, SIZE).map_err(failed)?;
        let file = std::fs::File::from(file);
        let sent = file.try_clone().map_err(|e| Error::system("a guest's schedule", e))?;
        let shared = MmapRegion::from_file(FileOffset::new(file, 0), SIZE as usize)
            .map_err(|e| Error::system("a guest's schedule", std::io::Error::other(e)))?;
        let shared = GuestRegionMmap::new(shared, GuestAddress(0)).ok_or_else(|| {
            Error::system("a guest's schedule", std::io::Error::other("it cannot be mapped"))
        })?;
        let mut schedule = Schedule { shared, socket };
        schedule.put(VERSION, SHARED);
        schedule.put(LENGTH, SIZE as u32);
        schedule.put(CLIENTS, 2u16);
        schedule.put(FIRST + CAPABILITIES, TIME_SHARE);
        schedule.put(RUNNING, GUEST);
        let mut bytes = [0; MESSAGE];
        let done = schedule.socket.read_exact(&mut bytes);
        done.map_err(|e| Error::system("a guest's first message", e))?;
        let (operation, sequence, name) = parts(&bytes);
        if operation != START {
            return Err(Error::Protocol(format!("its first message is {operation}, not START")));
        }
        schedule.put(FIRST + CLIENT + NAME, name);
        // The second descriptor is for a log of system calls, which nobody reads.
        let log = std::fs::File::options().write(true).open("/dev/null");
        let log = log.map_err(|e| Error::system("/dev/null", e))?;
        schedule.begin(sequence, &[sent.as_fd(), log.as_fd()])?;
        Ok(schedule)
    }

    fn begin(&self, sequence: u32, files: &[BorrowedFd<'_>]) -> Result<(), Error> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(files));
        let answer = message(ACK, sequence, u64::from(GUEST));
        sendmsg(&self.socket, &[IoSlice::new(&answer)], &mut control, SendFlags::NOSIGNAL)
            .map_err(|e| Error::system("answering a guest", e))?;
        Ok(())
    }

    fn get<T: vm_memory::AtomicAccess + Default>(&self, at: u64) -> T {
        self.shared.load(MemoryRegionAddress(at), SeqCst).unwrap_or_default()
    }
    fn put<T: vm_memory::AtomicAccess>(&self, at: u64, value: T) {
        // The offsets are within the region and aligned.
        let _ = self.shared.store(value, MemoryRegionAddress(at), SeqCst);
    }

    /// Its socket: readable when the guest has sent a message.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
    /// The guest's time, in nanoseconds. It is right while a guest kicks, and when it waits.
    pub fn now(&self) -> u64 {
        self.get(CURRENT)
    }
    /// The time at which a guest that waits wants to go on, if it does at all.
    pub fn wanted(&self) -> Option<u64> {
        let asks = self.get::<u32>(FIRST + CLIENT + FLAGS) & REQUESTS_RUN != 0;
        asks.then(|| self.get(FIRST + CLIENT + REQUEST))
    }
    /// Moves the clock of a guest that waits.
    pub fn set(&self, time: u64) {
        self.put(CURRENT, time);
        self.put(RUNNING, WORLD);
    }
    /// The guest may go ahead by itself until this time.
    pub fn free_until(&self) -> u64 {
        self.get(FREE_UNTIL)
    }
    /// A guest that stands still, since it has kicked, may go ahead only until then.
    pub fn bound(&self, until: u64) {
        if until < self.free_until() {
            self.put(FREE_UNTIL, until);
        }
    }
    /// Lets the guest run from a time, and ahead until another.
    pub fn run(&mut self, time: u64, until: u64) -> Result<(), Error> {
        self.put(CURRENT, time);
        self.put(FREE_UNTIL, until);
        self.put(RUNNING, GUEST);
        let done = self.socket.write_all(&message(RUN, 0, time));
        done.map_err(|e| Error::system("letting a guest run", e))
    }

    pub fn receive(&mut self) -> Result<Message, Error> {
        let mut bytes = [0; MESSAGE];
        if self.socket.read_exact(&mut bytes).is_err() {
            return Ok(Message::Gone);
        }
        let (operation, sequence, time) = parts(&bytes);
        let answer = match operation {
            WAIT => {
                self.put(RUNNING, WORLD);
                return Ok(Message::Waits);
            }
            ACK => return Ok(Message::Other),
            TIME_OF_DAY => EPOCH,
            GET => self.now(),
            REQUESTED => {
                self.put(FIRST + CLIENT + REQUEST, time);
                self.put(FIRST + CLIENT + FLAGS, REQUESTS_RUN);
                time
            }
            UPDATE => {
                self.put(CURRENT, time);
                time
            }
            _ => time,
        };
        let done = self.socket.write_all(&message(ACK, sequence, answer));
        done.map(|()| Message::Other).map_err(|e| Error::system("answering a guest", e))
    }
}
