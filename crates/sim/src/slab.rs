//! Slots for connections: recycled when they end, found by slot on the per-packet path and by flow
//! id elsewhere.
//!
//! Invariant: a flow id is in the table exactly while its slot is occupied.

use millpond_core::FlowId;
use millpond_core::random::mix64;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes flow ids the same way on every machine.
#[derive(Default)]
pub struct FlowHasher(u64);

impl Hasher for FlowHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only flow ids are hashed");
    }
    fn write_u32(&mut self, id: u32) {
        self.0 = mix64(id as u64);
    }
}

/// One side's connections of one partition.
pub struct Slab<T> {
    slots: Vec<Option<(FlowId, T)>>,
    free: Vec<u32>,
    by_flow: HashMap<FlowId, u32, BuildHasherDefault<FlowHasher>>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { slots: Vec::new(), free: Vec::new(), by_flow: HashMap::default() }
    }
}

impl<T> Slab<T> {
    /// Puts a connection in a free slot.
    pub fn insert(&mut self, flow: FlowId, value: T) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some((flow, value));
        let earlier = self.by_flow.insert(flow, slot);
        debug_assert!(earlier.is_none(), "flow {flow} is open already");
        slot
    }

    pub fn remove(&mut self, slot: u32) -> Option<T> {
        let (flow, value) = self.slots[slot as usize].take()?;
        self.by_flow.remove(&flow);
        self.free.push(slot);
        Some(value)
    }

    /// The connection in `slot`, if it is still this flow's.
    #[inline]
    pub fn get(&mut self, slot: u32, flow: FlowId) -> Option<&mut T> {
        match self.slots.get_mut(slot as usize) {
            Some(Some((its, value))) if *its == flow => Some(value),
            _ => None,
        }
    }

    #[inline]
    pub fn find(&self, slot: u32, flow: FlowId) -> Option<&T> {
        match self.slots.get(slot as usize) {
            Some(Some((its, value))) if *its == flow => Some(value),
            _ => None,
        }
    }

    pub fn slot_of(&self, flow: FlowId) -> Option<u32> {
        self.by_flow.get(&flow).copied()
    }

    /// The connection in an occupied slot.
    #[inline]
    pub fn at(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize].as_mut().expect("the caller holds an open slot").1
    }

    pub fn look(&self, slot: u32) -> &T {
        &self.slots[slot as usize].as_ref().expect("the caller holds an open slot").1
    }

    /// All that are open, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &T)> {
        self.slots.iter().flatten().map(|(flow, value)| (*flow, value))
    }

    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.by_flow.clear();
        self.free.clear();
        self.slots.drain(..).flatten().map(|(_, value)| value)
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycled_slot_is_not_mistaken_for_the_old_flow() {
        let mut slab = Slab::default();
        let slot = slab.insert(7, "seven");
        assert_eq!(slab.remove(slot), Some("seven"));
        assert_eq!(slab.insert(8, "eight"), slot);
        assert_eq!(slab.get(slot, 7), None);
        assert_eq!(slab.get(slot, 8), Some(&mut "eight"));
        assert_eq!((slab.slot_of(7), slab.slot_of(8), slab.len()), (None, Some(slot), 1));
    }
}
