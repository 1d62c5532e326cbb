//! A split ring (virtio 1.2 §2.7), from the device's side.
//!
//! Not by the crate `virtio-queue`: that shows used buffers one by one, and a guest must see all
//! that a mergeable frame lies in at once. Layout and order of accesses are the specification's.
//!
//! Invariant: what the guest writes is read once, checked, and bounded; no walk is longer than
//! [`DESCRIPTORS_MAX`]. Numbers that cannot be are [`Broken`], and the ring is not looked at again.

use super::memory::{Area, Memory};
use std::sync::atomic::{Ordering, fence};
use vm_memory::GuestAddress;

/// Entries of a ring at most: what QEMU allows.
pub const SIZE_MAX: u32 = 1024;
/// Descriptors of a chain at most.
pub const DESCRIPTORS_MAX: usize = 1024;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// In the guest's flags: it wants no signal.
const NO_INTERRUPT: u16 = 1;
/// In the switch's flags: it wants no kick.
const NO_NOTIFY: u16 = 1;
const DESCRIPTOR: u64 = 16;
/// Of the two others: flags and index come before the entries.
const HEADER: u64 = 4;

/// A ring is in an impossible state: nothing of it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Where a ring's parts lie, in the guest's physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    pub descriptors: u64,
    /// The ring of chains that the guest makes available.
    pub available: u64,
    pub used: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub at: GuestAddress,
    /// How many bytes.
    pub length: u32,
    /// Whether the switch may write it, and not read.
    pub is_writable: bool,
}

/// A chain of buffers that was made available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// By which it is given back.
    pub head: u16,
    /// Whether it has a beginning and an end.
    pub is_whole: bool,
}

#[derive(Debug)]
pub struct Ring {
    size: u16,
    descriptors: Area,
    available: Area,
    used: Area,
    /// The next entry that the guest makes available.
    next: u16,
    /// Up to where entries are known to be available.
    seen: u16,
    given: u16,
    /// Noted and not shown yet, by [`Ring::defer`].
    deferred: u16,
    /// How many of them when it was last asked whether to signal.
    signalled: u16,
    has_event_index: bool,
    /// Whether it was stopped and goes on, and a signal may be owed.
    is_new: bool,
    /// Whether the guest was asked to kick.
    is_armed: bool,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

impl Ring {
    /// Over parts of the guest's memory, from the entry `base` on. `None`: they do not lie there.
    pub fn new(
        memory: &Memory,
        parts: Parts,
        size: u16,
        base: u16,
        has_event_index: bool,
    ) -> Option<Ring> {
        if !size.is_power_of_two() || u32::from(size) > SIZE_MAX {
            return None;
        }
        let entries = u64::from(size);
        let area = |at: u64, length: u64, align: u64| {
            memory.area(at, length).filter(|_| at.is_multiple_of(align))
        };
        let descriptors = area(parts.descriptors, entries * DESCRIPTOR, 16)?;
        let available = area(parts.available, HEADER + entries * 2 + 2, 2)?;
        let used = area(parts.used, HEADER + entries * 8 + 2, 4)?;
        let given = used.load(2, Ordering::Acquire)?;
        let (next, seen, signalled) = (base, base, given);
        let ring = Ring {
            size,
            descriptors,
            available,
            used,
            next,
            seen,
            given,
            deferred: 0,
            signalled,
            has_event_index,
            is_new: true,
            is_armed: true,
        };
        Some(ring)
    }

    pub fn next(&self) -> u16 {
        self.next
    }
    pub fn size(&self) -> u16 {
        self.size
    }
    /// Goes back to an entry that was had since something was last given back.
    pub fn go_back(&mut self, next: u16) {
        self.next = next;
    }

    /// The next chain; its buffers are appended to `into`.
    ///
    /// # Errors
    /// [`Broken`] if the ring has impossible numbers.
    #[inline]
    pub fn take(
        &mut self,
        memory: &Memory,
        into: &mut Vec<Buffer>,
    ) -> Result<Option<Chain>, Broken> {
        if self.next == self.seen {
            let available = self.available.load(2, Ordering::Acquire).ok_or(Broken)?;
            if available.wrapping_sub(self.next) > self.size {
                return Err(Broken);
            }
            if self.next == available {
                return Ok(None);
            }
            self.seen = available;
        }
        let place = HEADER + 2 * u64::from(self.next % self.size);
        let head = self.available.load(place, Ordering::Relaxed).ok_or(Broken)?;
        if head >= self.size {
            return Err(Broken);
        }
        self.next = self.next.wrapping_add(1);
        let before = into.len();
        let is_whole = self.walk(memory, head, into).is_some();
        if !is_whole {
            into.truncate(before);
        }
        Ok(Some(Chain { head, is_whole }))
    }

    /// Follows a chain; `None`: it leads nowhere, or for ever.
    fn walk(&self, memory: &Memory, head: u16, into: &mut Vec<Buffer>) -> Option<()> {
        // Where a chain goes on elsewhere: the address of the table and its entries.
        let mut table: Option<(u64, u32)> = None;
        let mut at = head;
        for _ in 0..DESCRIPTORS_MAX {
            let mut raw = [0; DESCRIPTOR as usize];
            let place = u64::from(at) * DESCRIPTOR;
            match table {
                None => self.descriptors.read(place, &mut raw)?,
                Some((table, _)) => {
                    memory.read(GuestAddress(table.checked_add(place)?), &mut raw)?
                }
            }
            let address = u64::from_le_bytes(raw[..8].try_into().ok()?);
            let length = u32::from_le_bytes(raw[8..12].try_into().ok()?);
            let (flags, next) = (word(&raw, 12), word(&raw, 14));
            if flags & INDIRECT != 0 {
                let entries = length / DESCRIPTOR as u32;
                if table.is_some()
                    || flags & NEXT != 0
                    || entries == 0
                    || length % DESCRIPTOR as u32 != 0
                {
                    return None;
                }
                (table, at) = (Some((address, entries)), 0);
                continue;
            }
            into.push(Buffer {
                at: GuestAddress(address),
                length,
                is_writable: flags & WRITE != 0,
            });
            if flags & NEXT == 0 {
                return Some(());
            }
            let entries = table.map_or(u32::from(self.size), |(_, entries)| entries);
            at = Some(next).filter(|next| u32::from(*next) < entries)?;
        }
        None
    }

    /// Notes that a chain is given back, `ahead` behind those that were; [`Ring::give`] shows it.
    ///
    /// # Errors
    /// [`Broken`] if the ring has impossible numbers.
    #[inline]
    pub fn note(&mut self, ahead: u16, head: u16, length: u32) -> Result<(), Broken> {
        let place = HEADER + 8 * u64::from(self.given.wrapping_add(ahead) % self.size);
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        entry[4..].copy_from_slice(&length.to_le_bytes());
        self.used.write(place, &entry).ok_or(Broken)
    }
    /// Shows the guest so many chains that were noted, at once.
    ///
    /// # Errors
    /// [`Broken`] if the ring has impossible numbers.
    #[inline]
    pub fn give(&mut self, count: u16) -> Result<(), Broken> {
        self.given = self.given.wrapping_add(count);
        self.used.store(2, self.given, Ordering::Release).ok_or(Broken)
    }

    /// Notes that a chain is given back; [`Ring::publish`] shows all such at once. A number that
    /// both sides look at costs the more the more often it is written.
    ///
    /// # Errors
    /// [`Broken`] if the ring has impossible numbers.
    #[inline]
    pub fn defer(&mut self, head: u16, length: u32) -> Result<(), Broken> {
        self.note(self.deferred, head, length)?;
        self.deferred += 1;
        if self.deferred == self.size { self.publish() } else { Ok(()) }
    }
    /// Shows the guest what was deferred.
    ///
    /// # Errors
    /// [`Broken`] if the ring has impossible numbers.
    #[inline]
    pub fn publish(&mut self) -> Result<(), Broken> {
        match std::mem::take(&mut self.deferred) {
            0 => Ok(()),
            count => self.give(count),
        }
    }

    /// Whether the guest is to be signalled what was given back since this was last asked.
    ///
    /// # Errors
    /// [`Broken`] if the ring has impossible numbers.
    #[inline]
    pub fn wants_signal(&mut self) -> Result<bool, Broken> {
        let before = std::mem::replace(&mut self.signalled, self.given);
        if std::mem::take(&mut self.is_new) {
            return Ok(true);
        }
        if before == self.given {
            return Ok(false);
        }
        // The given buffers are seen before the guest's wish is looked at (virtio 1.2 §2.7.7.2).
        fence(Ordering::SeqCst);
        if self.has_event_index {
            let event = HEADER + 2 * u64::from(self.size);
            let event = self.available.load(event, Ordering::Relaxed).ok_or(Broken)?;
            return Ok(
                self.given.wrapping_sub(event).wrapping_sub(1) < self.given.wrapping_sub(before)
            );
        }
        Ok(self.available.load(0, Ordering::Relaxed).ok_or(Broken)? & NO_INTERRUPT == 0)
    }

    /// Whether more is known to be available.
    pub fn has_more(&self) -> bool {
        self.next != self.seen
    }
    /// Asks the guest to kick when it makes more available than is known. Whether it has done so
    /// already.
    ///
    /// # Errors
    /// [`Broken`] if the ring has impossible numbers.
    pub fn arm(&mut self) -> Result<bool, Broken> {
        match self.has_event_index {
            true => {
                self.used.store(HEADER + 8 * u64::from(self.size), self.seen, Ordering::Relaxed)
            }
            false => self.used.store(0, 0, Ordering::Relaxed),
        }
        .ok_or(Broken)?;
        self.is_armed = true;
        // The wish is seen before what is available is looked at.
        fence(Ordering::SeqCst);
        let available = self.available.load(2, Ordering::Acquire).ok_or(Broken)?;
        if available.wrapping_sub(self.next) > self.size {
            return Err(Broken);
        }
        Ok(std::mem::replace(&mut self.seen, available) != available)
    }
    /// Notifies the guest that nobody waits for its kick; with event indices it kicks once at most.
    pub fn disarm(&mut self) {
        if std::mem::take(&mut self.is_armed) && !self.has_event_index {
            let _ = self.used.store(0, NO_NOTIFY, Ordering::Relaxed);
        }
    }
}
