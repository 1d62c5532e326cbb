//! A guest: a front end of vhost-user with a driver of a network device of its own. It has memory
//! in two regions, and writes descriptors and indices itself, as the specification says.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};
use vhost::vhost_user::message::VhostUserProtocolFeatures;
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

pub const CSUM: u64 = 1 << 0 | 1 << 1;
pub const TSO: u64 = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 11 | 1 << 12 | 1 << 13;
pub const MERGEABLE: u64 = 1 << 15;
pub const INDIRECT: u64 = 1 << 28;
pub const EVENT_INDEX: u64 = 1 << 29;
pub const PROTOCOL: u64 = 1 << 30;
pub const VERSION_1: u64 = 1 << 32;
/// The features that a Linux guest takes.
pub const ALL: u64 = CSUM | TSO | MERGEABLE | INDIRECT | EVENT_INDEX | PROTOCOL | VERSION_1;

pub const TO_GUEST: usize = 0;
pub const FROM_GUEST: usize = 1;

/// Where the guest has its rings and its buffers, and where its front end has them.
pub const RINGS: u64 = 0x10_0000;
pub const BUFFERS: u64 = 0x4000_0000;
const OURS: u64 = 0x7f00_0000_0000;
pub const RINGS_LENGTH: u64 = 1 << 20;
const SLOT: u64 = 70 << 10;
/// Descriptors of a frame that is sent.
const PARTS: u16 = 4;

#[derive(Clone, Copy)]
pub struct Options {
    pub features: u64,
    /// Entries of each ring.
    pub ring: u16,
    /// Bytes of a buffer for what comes.
    pub buffer: u32,
    /// In how many descriptors a frame is sent.
    pub parts: u16,
    /// Whether it switches its rings on before it says anything else, as QEMU does.
    pub is_early: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { features: ALL, ring: 256, buffer: 1526, parts: 1, is_early: false }
    }
}

struct Queue {
    descriptors: u64,
    available: u64,
    used: u64,
    /// The entry that is made available next, and the one when the device was kicked last.
    next: u16,
    kicked: u16,
    /// The number of used entries that were seen.
    seen: u16,
    free: Vec<u16>,
    kick: EventFd,
    call: EventFd,
}

pub struct Guest {
    pub front: Frontend,
    pub memory: GuestMemoryMmap,
    pub options: Options,
    queues: [Queue; 2],
    file: File,
    /// Bytes of the buffers' region.
    length: u64,
    /// Whether buffers are made available again when they were read.
    pub posts: bool,
    /// Whether all buffers that are flooded with are described.
    has_flooded: bool,
}

fn memory(file: &File, length: u64) -> GuestMemoryMmap {
    let region = |at, size: u64, offset| {
        (GuestAddress(at), size as usize, Some(FileOffset::new(file.try_clone().unwrap(), offset)))
    };
    let regions = [region(RINGS, RINGS_LENGTH, 0), region(BUFFERS, length, RINGS_LENGTH)];
    GuestMemoryMmap::from_ranges_with_files(regions).unwrap()
}

/// Says that a ring is on, and waits for the answer (SET_VRING_ENABLE; the crate's front end keeps
/// the order that it likes).
fn switch_on(mut stream: &UnixStream, ring: u32) {
    let message: Vec<u8> =
        [18u32, 1 | 1 << 3, 8, ring, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
    stream.write_all(&message).unwrap();
    let mut answer = [0; 20];
    stream.read_exact(&mut answer).unwrap();
    let expected: Vec<u8> =
        [18u32, 1 | 1 << 2, 8, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(answer[..], expected);
}

impl Guest {
    pub fn attach(socket: &Path, options: Options) -> Guest {
        Guest::try_attach(socket, options).expect("the switch takes the guest")
    }
    pub fn try_attach(socket: &Path, options: Options) -> vhost::Result<Guest> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("guest", flags).unwrap();
        let length =
            u64::from(options.ring) * u64::from(options.buffer) + u64::from(options.ring) * SLOT;
        let length = length.next_multiple_of(4096);
        ftruncate(&file, RINGS_LENGTH + length).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        let file = File::from(file);
        let memory = memory(&file, length);
        let queue = |which: u64| {
            let at = RINGS + which * 0x40000;
            let event =
                || EventFd::new(rustix::event::EventfdFlags::NONBLOCK.bits() as i32).unwrap();
            let free = match which as usize {
                TO_GUEST => (0..options.ring).collect(),
                _ => (0..options.ring / PARTS).collect(),
            };
            let (descriptors, available, used) = (at, at + 0x10000, at + 0x20000);
            Queue {
                descriptors,
                available,
                used,
                next: 0,
                kicked: 0,
                seen: 0,
                free,
                kick: event(),
                call: event(),
            }
        };
        let stream = UnixStream::connect(socket).map_err(vhost::vhost_user::Error::SocketError)?;
        if options.is_early {
            (0..2).for_each(|ring| switch_on(&stream, ring));
        }
        let front = Frontend::from_stream(stream, 2);
        let queues = [queue(0), queue(1)];
        let mut guest =
            Guest { front, memory, options, queues, file, length, posts: true, has_flooded: false };
        guest.set_up()?;
        guest.post(options.ring.into());
        Ok(guest)
    }

    pub fn regions(&self) -> [VhostUserMemoryRegionInfo; 2] {
        let region = |guest_phys_addr, memory_size, mmap_offset| VhostUserMemoryRegionInfo {
            guest_phys_addr,
            memory_size,
            userspace_addr: OURS + mmap_offset,
            mmap_offset,
            mmap_handle: self.file.as_raw_fd(),
        };
        // The switch sorts them itself.
        [region(BUFFERS, self.length, RINGS_LENGTH), region(RINGS, RINGS_LENGTH, 0)]
    }

    fn set_up(&mut self) -> vhost::Result<()> {
        let front = &mut self.front;
        front.set_owner()?;
        let offered = front.get_features()?;
        assert_eq!(
            offered & self.options.features,
            self.options.features,
            "it offers what is asked for"
        );
        front.set_features(self.options.features)?;
        if self.options.features & PROTOCOL != 0 {
            let offered = front.get_protocol_features()?;
            front.set_protocol_features(offered & VhostUserProtocolFeatures::REPLY_ACK)?;
            front.set_hdr_flags(vhost::vhost_user::message::VhostUserHeaderFlag::NEED_REPLY);
        }
        self.front.set_mem_table(&self.regions())?;
        (0..2).try_for_each(|which| self.start(which, 0))
    }

    /// Starts a ring at an entry.
    pub fn start(&mut self, which: usize, base: u16) -> vhost::Result<()> {
        let ours = |at: u64| OURS + (at - RINGS);
        let queue = &self.queues[which];
        let front = &mut self.front;
        front.set_vring_num(which, self.options.ring)?;
        front.set_vring_base(which, base)?;
        let addresses = VringConfigData {
            queue_max_size: self.options.ring,
            queue_size: self.options.ring,
            desc_table_addr: ours(queue.descriptors),
            avail_ring_addr: ours(queue.available),
            used_ring_addr: ours(queue.used),
            ..VringConfigData::default()
        };
        front.set_vring_addr(which, &addresses)?;
        front.set_vring_call(which, &queue.call)?;
        front.set_vring_kick(which, &queue.kick)?;
        if self.options.features & PROTOCOL != 0 {
            front.set_vring_enable(which, true)?;
        }
        Ok(())
    }

    /// Stops a ring. The entry that it would go on with.
    pub fn front_base(&mut self, which: usize) -> u16 {
        self.front.get_vring_base(which).unwrap() as u16
    }

    fn has(&self, feature: u64) -> bool {
        self.options.features & feature != 0
    }
    pub fn header(&self) -> usize {
        if self.has(VERSION_1 | MERGEABLE) { 12 } else { 10 }
    }
    fn load(&self, at: u64) -> u16 {
        self.memory.load(GuestAddress(at), Ordering::Acquire).unwrap()
    }
    fn store(&self, at: u64, value: u16) {
        self.memory.store(value, GuestAddress(at), Ordering::Release).unwrap();
    }

    /// Writes a descriptor of any table.
    pub fn describe(
        &self,
        table: u64,
        index: u16,
        address: u64,
        length: u32,
        flags: u16,
        next: u16,
    ) {
        let mut raw = [0; 16];
        raw[..8].copy_from_slice(&address.to_le_bytes());
        raw[8..12].copy_from_slice(&length.to_le_bytes());
        raw[12..14].copy_from_slice(&flags.to_le_bytes());
        raw[14..].copy_from_slice(&next.to_le_bytes());
        self.memory.write_slice(&raw, GuestAddress(table + 16 * u64::from(index))).unwrap();
    }
    /// Writes one of a ring's own.
    pub fn describe_in(
        &self,
        which: usize,
        index: u16,
        address: u64,
        length: u32,
        flags: u16,
        next: u16,
    ) {
        self.describe(self.queues[which].descriptors, index, address, length, flags, next);
    }

    /// Makes a chain available, without saying so.
    pub fn offer(&mut self, which: usize, head: u16) {
        let queue = &mut self.queues[which];
        let place = queue.available + 4 + 2 * u64::from(queue.next % self.options.ring);
        queue.next = queue.next.wrapping_add(1);
        self.store(place, head);
    }
    /// Says what is available, and kicks if the device wants that.
    pub fn show(&mut self, which: usize) {
        let (at, next) = (self.queues[which].available + 2, self.queues[which].next);
        self.store(at, next);
        fence(Ordering::SeqCst);
        let queue = &self.queues[which];
        let wants = match self.has(EVENT_INDEX) {
            true => {
                let event = self.load(queue.used + 4 + 8 * u64::from(self.options.ring));
                next.wrapping_sub(event).wrapping_sub(1) < next.wrapping_sub(queue.kicked)
            }
            false => self.load(queue.used) & 1 == 0,
        };
        self.queues[which].kicked = next;
        if wants {
            self.kick(which);
        }
    }
    pub fn kick(&self, which: usize) {
        self.queues[which].kick.write(1).unwrap();
    }
    /// Says that everything up to any entry is available.
    pub fn lie(&mut self, which: usize, next: u16) {
        self.queues[which].next = next;
        self.store(self.queues[which].available + 2, next);
        self.kick(which);
    }

    /// The entry that was used next: its head and its length.
    fn used(&mut self, which: usize) -> Option<(u16, u32)> {
        let queue = &self.queues[which];
        if self.load(queue.used + 2) == queue.seen {
            return None;
        }
        let mut entry = [0; 8];
        let place = queue.used + 4 + 8 * u64::from(queue.seen % self.options.ring);
        self.memory.read_slice(&mut entry, GuestAddress(place)).unwrap();
        self.queues[which].seen = queue.seen.wrapping_add(1);
        let number = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
        Some((number(0) as u16, number(4)))
    }

    /// Waits until something of a ring was used, by the device's signal alone.
    fn wait(&self, which: usize, until: Instant) -> bool {
        let queue = &self.queues[which];
        loop {
            let _ = queue.call.read();
            if self.has(EVENT_INDEX) {
                self.store(queue.available + 4 + 2 * u64::from(self.options.ring), queue.seen);
            }
            fence(Ordering::SeqCst);
            if self.load(queue.used + 2) != queue.seen {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // SAFETY: the descriptor lives as long as the guest.
            #[allow(unsafe_code)]
            let call = unsafe { BorrowedFd::borrow_raw(queue.call.as_raw_fd()) };
            let left =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let _ = poll(&mut [PollFd::new(&call, PollFlags::IN)], Some(&left));
        }
    }

    fn slot(&self, slot: u16) -> u64 {
        BUFFERS
            + u64::from(self.options.ring) * u64::from(self.options.buffer)
            + u64::from(slot) * SLOT
    }

    /// Sends a frame behind a header; whether there was room.
    pub fn send(&mut self, header: &[u8; 10], frame: &[u8]) -> bool {
        let is_sent = self.put(header, frame);
        if is_sent {
            self.show(FROM_GUEST);
        }
        is_sent
    }
    /// The same, without saying so.
    pub fn put(&mut self, header: &[u8; 10], frame: &[u8]) -> bool {
        while let Some((head, _)) = self.used(FROM_GUEST) {
            // Whoever scribbles into its rings may find any there.
            if head < self.options.ring {
                self.queues[FROM_GUEST].free.push(head / PARTS);
            }
        }
        let Some(slot) = self.queues[FROM_GUEST].free.pop() else { return false };
        let (at, split) = (self.slot(slot), self.header());
        let mut whole = vec![0; split + frame.len()];
        whole[..10].copy_from_slice(header);
        whole[split..].copy_from_slice(frame);
        self.memory.write_slice(&whole, GuestAddress(at)).unwrap();
        let parts = self.options.parts.clamp(1, PARTS);
        let is_indirect = self.has(INDIRECT) && parts > 1;
        let table = if is_indirect { at + SLOT - 64 } else { self.queues[FROM_GUEST].descriptors };
        let first = if is_indirect { 0 } else { slot * PARTS };
        // The header is cut as well.
        let cuts: Vec<usize> = (0..parts.into())
            .map(|n| if n == 0 { 0 } else { n * whole.len() / usize::from(parts) })
            .collect();
        for (n, from) in cuts.iter().enumerate() {
            let to = cuts.get(n + 1).copied().unwrap_or(whole.len());
            let next = first + n as u16 + 1;
            let flags = u16::from(n + 1 < cuts.len());
            self.describe(
                table,
                first + n as u16,
                at + *from as u64,
                (to - from) as u32,
                flags,
                next,
            );
        }
        if is_indirect {
            self.describe_in(FROM_GUEST, slot * PARTS, table, 16 * u32::from(parts), 4, 0);
        }
        self.offer(FROM_GUEST, slot * PARTS);
        true
    }

    /// Sends a short frame as often as there is room for, `count` times at most; how often. With as
    /// little ado as possible: buffers in turn, since the switch gives them back in turn, and their
    /// descriptors are written once.
    pub fn flood(&mut self, frame: &[u8; 64], count: usize) -> usize {
        let slots = self.options.ring / PARTS;
        self.has_flooded |= self.queues[FROM_GUEST].next >= slots;
        let is_first = !self.has_flooded;
        let queue = &self.queues[FROM_GUEST];
        let under_way = queue.next.wrapping_sub(self.load(queue.used + 2));
        let count = (slots - under_way).min(count as u16);
        let mut whole = [0; 76];
        whole[12..].copy_from_slice(frame);
        let mut entries = Vec::with_capacity(2 * usize::from(count));
        for n in 0..count {
            let slot = queue.next.wrapping_add(n) % slots;
            let at = self.slot(slot);
            self.memory.write_slice(&whole, GuestAddress(at)).unwrap();
            if is_first {
                self.describe_in(FROM_GUEST, slot * PARTS, at, 76, 0, 0);
            }
            entries.extend((slot * PARTS).to_le_bytes());
        }
        let place = queue.next % self.options.ring;
        let split = entries.len().min(2 * usize::from(self.options.ring - place));
        let available = queue.available + 4;
        for (at, part) in [(u64::from(place), &entries[..split]), (0, &entries[split..])] {
            self.memory.write_slice(part, GuestAddress(available + 2 * at)).unwrap();
        }
        self.queues[FROM_GUEST].next = self.queues[FROM_GUEST].next.wrapping_add(count);
        self.show(FROM_GUEST);
        count.into()
    }

    /// Makes so many buffers available.
    pub fn post(&mut self, count: usize) {
        for _ in 0..count {
            let Some(index) = self.queues[TO_GUEST].free.pop() else { break };
            let at = BUFFERS + u64::from(index) * u64::from(self.options.buffer);
            self.describe_in(TO_GUEST, index, at, self.options.buffer, 2, 0);
            self.offer(TO_GUEST, index);
        }
        self.show(TO_GUEST);
    }

    /// The next frame and its header, if it comes in time.
    pub fn receive(&mut self, within: Duration) -> Option<([u8; 12], Vec<u8>)> {
        if !self.wait(TO_GUEST, Instant::now() + within) {
            return None;
        }
        let (mut whole, mut count, mut taken) = (Vec::new(), 1, 0);
        while taken < count {
            let (head, length) =
                self.used(TO_GUEST).expect("all buffers of a frame are shown at once");
            let mut part = vec![0; length as usize];
            let at = BUFFERS + u64::from(head) * u64::from(self.options.buffer);
            self.memory.read_slice(&mut part, GuestAddress(at)).unwrap();
            whole.extend(part);
            if taken == 0 && self.has(MERGEABLE) {
                count = u16::from_le_bytes([whole[10], whole[11]]);
                assert!(count > 0);
            }
            self.queues[TO_GUEST].free.push(head);
            taken += 1;
        }
        if self.posts {
            self.post(count.into());
        }
        let mut header = [0; 12];
        let split = self.header();
        header[..split].copy_from_slice(&whole[..split]);
        Some((header, whole.split_off(split)))
    }
}
