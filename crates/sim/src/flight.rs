//! Packets in flight on links: a FIFO a link, all in one slab of chunks.
//!
//! A queue that has once been long would keep a long ring for ever, and there are many links;
//! chunks go back to the slab as soon as they are empty, so the memory is that of the packets that
//! are in flight now.
//!
//! Invariant: what is pushed on a link comes out of it once, in order.

use millpond_core::packet::push_tight;
use millpond_core::{PacketId, Time};

const ENTRIES: usize = 6;
const END: u32 = u32::MAX;

/// A packet in flight.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// How much later it arrives than the first of its chunk, in picoseconds; a packet that is too
    /// late for 32 bits begins a new chunk.
    later: u32,
    id: PacketId,
}

/// A cache line: a push touches one, and a pop.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Chunk {
    /// When the first packet arrives.
    first: Time,
    entries: [Entry; ENTRIES],
    next: u32,
    len: u32,
}

const _: () = assert!(size_of::<Chunk>() == 64);

/// All chunks of a partition.
#[derive(Default)]
pub struct Chunks {
    chunks: Vec<Chunk>,
    free: Vec<u32>,
}

/// One link's packets.
#[derive(Debug)]
pub struct Flight {
    head: u32,
    tail: u32,
    /// The next entry to take from the head.
    take: u32,
}

impl Default for Flight {
    fn default() -> Self {
        Flight { head: END, tail: END, take: 0 }
    }
}

impl Chunks {
    fn allocate(&mut self, first: Time, id: PacketId) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            push_tight(
                &mut self.chunks,
                Chunk { first, entries: [Entry::default(); ENTRIES], next: END, len: 1 },
            );
            (self.chunks.len() - 1) as u32
        });
        let chunk = &mut self.chunks[number as usize];
        (chunk.first, chunk.next, chunk.len) = (first, END, 1);
        chunk.entries[0] = Entry { later: 0, id };
        number
    }
}

impl Flight {
    /// Whether no packet is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == END
    }

    /// A packet is sent, to arrive no earlier than those before it.
    #[inline]
    pub fn push(&mut self, arrives: Time, id: PacketId, chunks: &mut Chunks) {
        if self.tail != END {
            let chunk = &mut chunks.chunks[self.tail as usize];
            let later = arrives.as_ps() - chunk.first.as_ps();
            if (chunk.len as usize) < ENTRIES && later <= u32::MAX as u64 {
                chunk.entries[chunk.len as usize] = Entry { later: later as u32, id };
                chunk.len += 1;
                return;
            }
        }
        self.push_chunk(arrives, id, chunks);
    }

    fn push_chunk(&mut self, arrives: Time, id: PacketId, chunks: &mut Chunks) {
        let chunk = chunks.allocate(arrives, id);
        if self.tail == END {
            self.head = chunk;
            self.take = 0;
        } else {
            chunks.chunks[self.tail as usize].next = chunk;
        }
        self.tail = chunk;
    }

    /// The first packet arrives: its id, and when the next one does, and which it is.
    #[inline]
    pub fn pop(&mut self, chunks: &mut Chunks) -> Option<(PacketId, Option<(Time, PacketId)>)> {
        if self.head == END {
            return None;
        }
        let chunk = &chunks.chunks[self.head as usize];
        let id = chunk.entries[self.take as usize].id;
        self.take += 1;
        if self.take < chunk.len {
            let Entry { later, id: next } = chunk.entries[self.take as usize];
            return Some((id, Some((chunk.first + Time::from_ps(u64::from(later)), next))));
        }
        let next = chunk.next;
        push_tight(&mut chunks.free, self.head);
        if next == END {
            *self = Flight::default();
            return Some((id, None));
        }
        self.head = next;
        self.take = 0;
        let next = &chunks.chunks[next as usize];
        Some((id, Some((next.first, next.entries[0].id))))
    }

    /// All packets, first to last.
    pub fn ids(&self, chunks: &Chunks) -> Vec<PacketId> {
        let mut ids = Vec::new();
        let (mut chunk, mut from) = (self.head, self.take as usize);
        while chunk != END {
            let part = &chunks.chunks[chunk as usize];
            ids.extend(part.entries[from..part.len as usize].iter().map(|entry| entry.id));
            from = 0;
            chunk = part.next;
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Two links in one slab behave as two queues, and the slab ends empty.
        #[test]
        fn equals_two_queues(
            gap in prop_oneof![Just(1u64), Just(1_000), Just(3_000_000_000)],
            steps in prop::collection::vec((any::<bool>(), 0u8..3), 0..500),
        ) {
            let at = |i: usize| Time::from_ps(i as u64 * gap);
            let mut chunks = Chunks::default();
            let mut flights = [Flight::default(), Flight::default()];
            let mut model = [VecDeque::new(), VecDeque::new()];
            for (i, (which, action)) in steps.iter().enumerate() {
                let w = *which as usize;
                if *action > 0 {
                    flights[w].push(at(i), i as u32, &mut chunks);
                    model[w].push_back(i);
                } else {
                    let first = model[w].pop_front();
                    let expected = first.map(|id| {
                        (id as u32, model[w].front().map(|next| (at(*next), *next as u32)))
                    });
                    prop_assert_eq!(flights[w].pop(&mut chunks), expected);
                }
                prop_assert_eq!(
                    flights[w].ids(&chunks),
                    model[w].iter().map(|id| *id as u32).collect::<Vec<_>>()
                );
                prop_assert_eq!(flights[w].is_empty(), model[w].is_empty());
            }
            for flight in &mut flights {
                while flight.pop(&mut chunks).is_some() {}
            }
            prop_assert_eq!(chunks.free.len(), chunks.chunks.len());
        }
    }
}
