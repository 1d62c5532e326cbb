//! Packets in flight on links: a FIFO a link, all in one slab of chunks.
//!
//! A queue that has once been long would keep a long ring for ever, and there are many links; chunks go back to the slab
//! as soon as they are empty, so the memory is that of the packets that are in flight now.
//!
//! Invariant: what is pushed on a link comes out of it once, in order.

use millpond_core::packet::push_tight;
use millpond_core::{PacketId, Time};

const ENTRIES: usize = 10;
const END: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Chunk {
    arrives: [Time; ENTRIES],
    id: [PacketId; ENTRIES],
    next: u32,
}

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
    /// The next entry to take from the head, and the next to fill in the tail.
    take: u8,
    fill: u8,
}

impl Default for Flight {
    fn default() -> Self {
        Flight { head: END, tail: END, take: 0, fill: ENTRIES as u8 }
    }
}

impl Chunks {
    fn allocate(&mut self) -> u32 {
        if let Some(chunk) = self.free.pop() {
            self.chunks[chunk as usize].next = END;
            return chunk;
        }
        push_tight(&mut self.chunks, Chunk { arrives: [Time::ZERO; ENTRIES], id: [0; ENTRIES], next: END });
        (self.chunks.len() - 1) as u32
    }
}

impl Flight {
    /// Whether no packet is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == END
    }

    /// A packet is sent.
    #[inline]
    pub fn push(&mut self, arrives: Time, id: PacketId, chunks: &mut Chunks) {
        if self.fill as usize == ENTRIES {
            let chunk = chunks.allocate();
            if self.head == END {
                self.head = chunk;
                self.take = 0;
            } else {
                chunks.chunks[self.tail as usize].next = chunk;
            }
            self.tail = chunk;
            self.fill = 0;
        }
        let chunk = &mut chunks.chunks[self.tail as usize];
        chunk.arrives[self.fill as usize] = arrives;
        chunk.id[self.fill as usize] = id;
        self.fill += 1;
    }

    /// The first packet arrives: its id, and when the next one does.
    #[inline]
    pub fn pop(&mut self, chunks: &mut Chunks) -> Option<(PacketId, Option<Time>)> {
        if self.head == END {
            return None;
        }
        let chunk = &chunks.chunks[self.head as usize];
        let id = chunk.id[self.take as usize];
        self.take += 1;
        if self.head == self.tail {
            if self.take < self.fill {
                return Some((id, Some(chunk.arrives[self.take as usize])));
            }
            chunks.free.push(self.head);
            *self = Flight::default();
            return Some((id, None));
        }
        if (self.take as usize) < ENTRIES {
            return Some((id, Some(chunk.arrives[self.take as usize])));
        }
        let next = chunk.next;
        chunks.free.push(self.head);
        self.head = next;
        self.take = 0;
        Some((id, Some(chunks.chunks[next as usize].arrives[0])))
    }

    /// All packets, first to last.
    pub fn ids(&self, chunks: &Chunks) -> Vec<PacketId> {
        let mut ids = Vec::new();
        let (mut chunk, mut from) = (self.head, self.take as usize);
        while chunk != END {
            let it = &chunks.chunks[chunk as usize];
            let to = if chunk == self.tail { self.fill as usize } else { ENTRIES };
            ids.extend_from_slice(&it.id[from..to]);
            from = 0;
            chunk = it.next;
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
        fn equals_two_queues(steps in prop::collection::vec((any::<bool>(), 0u8..3), 0..500)) {
            let mut chunks = Chunks::default();
            let mut flights = [Flight::default(), Flight::default()];
            let mut model = [VecDeque::new(), VecDeque::new()];
            for (i, (which, action)) in steps.iter().enumerate() {
                let w = *which as usize;
                if *action > 0 {
                    flights[w].push(Time::from_ps(i as u64), i as u32, &mut chunks);
                    model[w].push_back(i);
                } else {
                    let expected = model[w].pop_front().map(|id| (id as u32, model[w].front().map(|t| Time::from_ps(*t as u64))));
                    prop_assert_eq!(flights[w].pop(&mut chunks), expected);
                }
                prop_assert_eq!(flights[w].ids(&chunks), model[w].iter().map(|id| *id as u32).collect::<Vec<_>>());
                prop_assert_eq!(flights[w].is_empty(), model[w].is_empty());
            }
            for flight in &mut flights {
                while flight.pop(&mut chunks).is_some() {}
            }
            prop_assert_eq!(chunks.free.len(), chunks.chunks.len());
        }
    }
}
