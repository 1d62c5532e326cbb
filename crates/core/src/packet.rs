//! The packet: metadata in one cache line, held in a [`Pool`], referred to by a 32-bit id.
//!
//! What only some protocols carry (SACK blocks today; INT, mappings and the like later) lives in a side record of its own
//! pool, reached by [`Packet::side`], so the common packet stays one line. In the Linux world the same struct is parsed
//! from the frame and the bytes stay where they are.
//!
//! Invariant: `size_of::<Packet>() == 64`, and an id is live from [`Pool::insert`] to [`Pool::remove`], never after.

use crate::units::Time;

/// Index of a host, 0…H−1, leaf by leaf.
pub type HostId = u32;
/// Index of a connection, the same at both of its ends.
pub type FlowId = u32;
/// Where a packet sits in its pool.
pub type PacketId = u32;

/// The priorities that a packet can have (IEEE 802.1Q).
pub const PRIORITIES: usize = 8;

/// "No id": no side record, no peer slot known.
pub const NONE: u32 = u32::MAX;

/// Switches that a packet may meet: the last of them drops it. Source: the value of the Vertigo and
/// Canary artifacts' hosts.
pub const TTL: u8 = 250;

/// The two ECN bits of the IP header (RFC 3168 §5). ECT(1) is not used: RFC 9331 owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not react to marks; a congested queue can only drop it.
    #[default]
    NotEct = 0,
    /// The transport reacts to marks.
    Ect = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// What a color-aware switch may do with the packet (srTCM's colors; TLT's unimportant packets are red).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Color {
    /// Dropped only when nothing else can be.
    #[default]
    Green = 0,
    /// Dropped beyond the color threshold.
    Red = 1,
}

/// What a packet is to TLT, and so its color. A host that does not run TLT sends [`Importance::Control`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Importance {
    /// Pure ACKs and handshakes; and everything of a transport that does not know of importance.
    #[default]
    Control = 0,
    /// Ordinary data: may be dropped early.
    Unimportant,
    /// The one protected data packet of a flow.
    Important,
    /// The acknowledgement that it caused.
    Echo,
    /// Data that was sent only to keep an important packet in flight.
    Forced,
    /// The acknowledgement that it caused.
    ForcedEcho,
}

impl Importance {
    /// All of them.
    pub const ALL: [Importance; 6] = [
        Importance::Control,
        Importance::Unimportant,
        Importance::Important,
        Importance::Echo,
        Importance::Forced,
        Importance::ForcedEcho,
    ];
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Importance::Control => "control",
            Importance::Unimportant => "unimportant",
            Importance::Important => "important",
            Importance::Echo => "echo",
            Importance::Forced => "forced",
            Importance::ForcedEcho => "forced-echo",
        }
    }
    /// What the acknowledgement is that a packet of this importance causes. It must leave at once where it is not
    /// [`Importance::Control`]. The packet counts before its place in the stream does: duplicates, late and early ones
    /// are answered alike; handshake packets are not.
    #[inline]
    pub const fn echo(self) -> Importance {
        match self {
            Importance::Important => Importance::Echo,
            Importance::Forced => Importance::ForcedEcho,
            _ => Importance::Control,
        }
    }
    /// What a color-aware switch sees.
    #[inline]
    pub const fn color(self) -> Color {
        match self {
            Importance::Unimportant => Color::Red,
            _ => Color::Green,
        }
    }
}

/// The bits of [`Packet::flags`].
pub mod flags {
    /// Opens a connection.
    pub const SYN: u8 = 1;
    /// The acknowledgement number is valid; without payload this is a pure ACK.
    pub const ACK: u8 = 2;
    /// ECN echo: the receiver saw CE.
    pub const ECE: u8 = 4;
    /// The sender has reduced its window.
    pub const CWR: u8 = 8;
    /// This range was sent before.
    pub const RETRANSMISSION: u8 = 16;
    /// Was deflected at least once.
    pub const DEFLECTED: u8 = 32;
    /// The last packet of its segment.
    pub const LAST: u8 = 64;
    /// Its link is down while it travels: it will not arrive.
    pub const LOST: u8 = 128;
}

/// One packet's metadata. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Packet {
    /// Offset of the first payload byte in its stream. On an acknowledgement, the receiver's slot, and in the
    /// upper 32 bits how many switches the data crossed that it answers.
    pub seq: u64,
    /// Cumulative acknowledgement: the next byte expected, where `flags::ACK` is set. On a data packet, the sender's slot.
    pub ack: u64,
    /// When the sender's transport handed it down; on an ACK, the same of the packet that caused it (RFC 7323's echo).
    pub stamp: Time,
    /// The connection.
    pub flow: FlowId,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Hash of the 5-tuple, without DSCP and ECN.
    pub hash: u32,
    /// Id of the side record, or [`NONE`].
    pub side: u32,
    /// The connection's slot at the receiving host, or [`NONE`] while the sender has not learned it.
    pub peer: u32,
    /// Scheduling rank: smaller is more important.
    pub rank: u32,
    /// On the wire: headers, payload and framing overhead.
    pub size: u16,
    /// Transport payload.
    pub payload: u16,
    /// Bits of [`flags`].
    pub flags: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// What it is to TLT; gives its color.
    pub importance: Importance,
    /// Priority, 0 (lowest) to 7.
    pub priority: u8,
    /// The port by which it entered the switch that holds it.
    pub ingress: u16,
    /// Switches that it may still cross.
    pub ttl: u8,
    /// Which way it took where it had a choice: four bits a choice, exact for up to 256 ports at one tier or 16 at each
    /// of two.
    pub path: u8,
}

const _: () = assert!(size_of::<Packet>() == 64);

impl Packet {
    /// Whether it carries payload (a data packet), as opposed to a pure ACK or a handshake packet.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.payload != 0
    }
    /// Its color.
    #[inline]
    pub fn color(&self) -> Color {
        self.importance.color()
    }
    /// Whether a bit of [`flags`] is set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Up to four received ranges beyond the cumulative acknowledgement, most recent first (RFC 2018 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sack {
    /// `[from, to)` each.
    pub blocks: [(u64, u64); 4],
    /// How many are used.
    pub count: u8,
}

/// Pushes, growing by an eighth instead of doubling: for the few vectors whose slack is most of a run's memory.
#[inline]
pub fn push_tight<T>(vector: &mut Vec<T>, value: T) {
    if vector.len() == vector.capacity() {
        vector.reserve_exact(vector.len() / 8 + 16);
    }
    vector.push(value);
}

/// Values in a page of a pool.
const PAGE: usize = 128;

/// A slab with a free list: constant-time insert and remove, no allocation once it has grown. It grows by pages, so that
/// growing moves nothing and leaves no slack.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    pages: Vec<Box<[T; PAGE]>>,
    /// Slots that were ever used.
    used: u32,
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool { pages: Vec::new(), used: 0, free: Vec::new() }
    }
}

impl<T: Copy + Default> Pool<T> {
    /// Puts `value` in a free slot (the one freed last, whose line is most likely cached).
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            if self.used as usize == self.pages.len() * PAGE {
                self.grow();
            }
            self.used += 1;
            self.used - 1
        });
        self[id] = value;
        id
    }
    #[cold]
    fn grow(&mut self) {
        self.pages.push(Box::new([T::default(); PAGE]));
    }
    /// Frees a slot. The caller must not use the id again.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        push_tight(&mut self.free, id);
    }
    /// How many are live.
    pub fn live(&self) -> usize {
        self.used as usize - self.free.len()
    }
    /// How many slots there are, live or free: the memory held.
    pub fn capacity(&self) -> usize {
        self.pages.len() * PAGE
    }
}

impl<T> std::ops::Index<u32> for Pool<T> {
    type Output = T;
    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.pages[id as usize / PAGE][id as usize % PAGE]
    }
}
impl<T> std::ops::IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.pages[id as usize / PAGE][id as usize % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_reuses_slots_and_counts_live() {
        let mut pool = Pool::default();
        let a = pool.insert(Packet::default());
        let b = pool.insert(Packet { seq: 7, ..Packet::default() });
        pool.remove(a);
        assert_eq!(pool.live(), 1);
        assert_eq!(pool.insert(Packet { seq: 9, ..Packet::default() }), a);
        assert_eq!((pool[a].seq, pool[b].seq), (9, 7));
    }
}
