//! Segments of slots, the budgets that bound them, and the FIFOs that are made of them.
//!
//! A segment has 64 slots, as the authors' release has it. A [`Fifo`] is a chain of segments: the
//! producer goes on to the next one when the present one is full, and the consumer leaves one when
//! it has been read. The last of a chain may be spare. An empty FIFO has no segment, so a queue
//! costs memory by what waits in it.
//!
//! Invariant: what was taken from a [`Budget`] is given back once, and headroom is filled first.

use super::NONE;

pub const SLOTS: u32 = 64;
/// A segment that was read goes back to the pool if the chain has this many spare ones already.
const SPARES: u32 = 2;

/// An amount in two parts: what anybody may take, and headroom, which only those may take that were
/// asked to pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    shared: u64,
    headroom: u64,
    shared_size: u64,
    headroom_size: u64,
}

impl Budget {
    /// A budget of `shared` and `headroom` bytes, all of it free.
    pub const fn new(shared: u64, headroom: u64) -> Budget {
        Budget { shared, headroom, shared_size: shared, headroom_size: headroom }
    }
    /// The amount that anybody may take.
    pub const fn shared(&self) -> u64 {
        self.shared
    }
    /// The bytes taken from both parts.
    pub const fn used(&self) -> u64 {
        self.shared_size - self.shared + self.headroom_size - self.headroom
    }
    /// Whether all of the headroom is there.
    pub const fn is_headroom_full(&self) -> bool {
        self.headroom == self.headroom_size
    }
    /// How many quarters of the headroom are there, rounded up; 0 only where nothing is left.
    pub const fn headroom_quarters(&self) -> u64 {
        if self.headroom == 0 { 0 } else { (self.headroom * 4).div_ceil(self.headroom_size) }
    }
    /// Takes `amount`, from headroom too if `is_notified`; or nothing.
    pub fn take(&mut self, amount: u64, is_notified: bool) -> bool {
        let from_shared = amount.min(self.shared);
        let from_headroom = amount - from_shared;
        let is_there = from_headroom == 0 || (is_notified && from_headroom <= self.headroom);
        if is_there {
            self.shared -= from_shared;
            self.headroom -= from_headroom;
        }
        is_there
    }
    /// Gives `amount` back, to the headroom first.
    pub fn give(&mut self, amount: u64) {
        let to_headroom = amount.min(self.headroom_size - self.headroom);
        self.headroom += to_headroom;
        self.shared += amount - to_headroom;
        debug_assert!(self.shared <= self.shared_size, "more was given back than taken");
    }
}

/// One packet that waits: the driver's handle and what is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot<P> {
    pub packet: P,
    /// Its length in bytes.
    pub len: u32,
    pub flow: u32,
    /// A newer acknowledgement of the flow may take its place.
    pub is_ack: bool,
}

#[derive(Clone, Debug)]
struct Segment<P> {
    slots: [Slot<P>; SLOTS as usize],
    next: u32,
}

/// The segments themselves. They are made when they are first needed and used again afterwards; a
/// [`Budget`] bounds their number.
#[derive(Clone, Debug)]
pub struct Segments<P> {
    all: Vec<Segment<P>>,
    free: Vec<u32>,
}

impl<P> Default for Segments<P> {
    fn default() -> Self {
        Segments { all: Vec::new(), free: Vec::new() }
    }
}

impl<P: Copy + Default> Segments<P> {
    fn get(&mut self) -> u32 {
        if let Some(at) = self.free.pop() {
            self.all[at as usize].next = NONE;
            return at;
        }
        let slots =
            [Slot { packet: P::default(), len: 0, flow: NONE, is_ack: false }; SLOTS as usize];
        self.all.push(Segment { slots, next: NONE });
        self.all.len() as u32 - 1
    }
    /// Bytes that lie in memory for them.
    pub fn memory(&self) -> usize {
        self.all.capacity() * size_of::<Segment<P>>() + self.free.capacity() * size_of::<u32>()
    }
}

/// A queue of slots in a chain of segments, which may have none.
#[derive(Clone, Debug)]
pub struct Fifo {
    /// The segment that is read, the one that is written, and the end of the chain.
    head: u32,
    tail: u32,
    last: u32,
    head_at: u32,
    tail_at: u32,
    segments: u32,
    len: u32,
    /// Segments behind the one that is written.
    spare: u32,
}

impl Default for Fifo {
    fn default() -> Self {
        Fifo {
            head: NONE,
            tail: NONE,
            last: NONE,
            head_at: 0,
            tail_at: 0,
            segments: 0,
            len: 0,
            spare: 0,
        }
    }
}

impl Fifo {
    /// The number of packets that wait.
    pub fn len(&self) -> u32 {
        self.len
    }
    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Slots that can be written before another segment is needed.
    pub fn room(&self) -> u32 {
        if self.segments == 0 { 0 } else { self.spare * SLOTS + SLOTS - self.tail_at }
    }
    /// Whether more than 7/8 of the slots are used. Those that were read count as used until their
    /// segment is left.
    pub fn is_nearly_full(&self) -> bool {
        self.room() * 8 < self.segments * SLOTS || self.segments == 0
    }
    /// Adds a segment at the end of the chain.
    pub fn extend<P: Copy + Default>(&mut self, pool: &mut Segments<P>) {
        let at = pool.get();
        if self.segments == 0 {
            *self = Fifo { head: at, tail: at, last: at, segments: 1, ..Fifo::default() };
        } else {
            pool.all[self.last as usize].next = at;
            self.last = at;
            self.segments += 1;
            self.spare += 1;
        }
    }
    /// Appends; there must be room.
    pub fn push<P: Copy + Default>(&mut self, pool: &mut Segments<P>, slot: Slot<P>) {
        debug_assert!(self.room() > 0, "a packet joins a queue without room");
        if self.tail_at == SLOTS {
            self.tail = pool.all[self.tail as usize].next;
            self.tail_at = 0;
            self.spare -= 1;
        }
        pool.all[self.tail as usize].slots[self.tail_at as usize] = slot;
        self.tail_at += 1;
        self.len += 1;
    }
    /// The first, which must be there.
    pub fn front<P: Copy + Default>(&self, pool: &Segments<P>) -> Slot<P> {
        debug_assert!(self.len > 0);
        pool.all[self.head as usize].slots[self.head_at as usize]
    }
    /// Takes the first, which must be there. Returns also how many segments went back to the pool.
    pub fn pop<P: Copy + Default>(&mut self, pool: &mut Segments<P>) -> (Slot<P>, u32) {
        let slot = self.front(pool);
        self.head_at += 1;
        self.len -= 1;
        if self.len == 0 {
            return (slot, self.clear(pool));
        }
        let freed = if self.head_at == SLOTS { self.leave(pool) } else { 0 };
        (slot, freed)
    }
    /// The newest acknowledgement of `flow` that waits, if any, gives its place to `slot`.
    pub fn replace_ack<P: Copy + Default>(
        &self,
        pool: &mut Segments<P>,
        slot: Slot<P>,
    ) -> Option<P> {
        let (mut at, mut place, mut found) = (self.head, self.head_at, None);
        for _ in 0..self.len {
            if place == SLOTS {
                (at, place) = (pool.all[at as usize].next, 0);
            }
            let there = &pool.all[at as usize].slots[place as usize];
            if there.is_ack && there.flow == slot.flow {
                found = Some((at, place));
            }
            place += 1;
        }
        let (at, place) = found?;
        Some(std::mem::replace(&mut pool.all[at as usize].slots[place as usize], slot).packet)
    }
    /// An empty queue has no segment.
    fn clear<P: Copy + Default>(&mut self, pool: &mut Segments<P>) -> u32 {
        let freed = self.segments;
        while self.head != NONE {
            pool.free.push(self.head);
            self.head = pool.all[self.head as usize].next;
        }
        *self = Fifo::default();
        freed
    }
    /// The segment that was read becomes a spare one, or goes back if there are enough.
    fn leave<P: Copy + Default>(&mut self, pool: &mut Segments<P>) -> u32 {
        let read = self.head;
        self.head = std::mem::replace(&mut pool.all[read as usize].next, NONE);
        self.head_at = 0;
        if self.spare >= SPARES {
            pool.free.push(read);
            self.segments -= 1;
            return 1;
        }
        pool.all[self.last as usize].next = read;
        self.last = read;
        self.spare += 1;
        0
    }
}
