//! Flows by their identity: a hash table whose entries keep their numbers.
//!
//! A hash table whose entries lie in one slab and are chained, so that an entry's number stays what
//! it is while the table grows. The driver brings the hash (a NIC has computed it); the identity is
//! compared whole, so two flows of one hash stay two. Entries that have been idle are found by a
//! hand that goes round the slab, a bounded number of steps a call.
//!
//! Invariant: looking up costs the length of one chain, whatever else is in the table; nothing is
//! allocated while the number of flows stays below what it was at most.

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Entry<F, V> {
    hash: u32,
    /// The next of the chain, or [`NONE`].
    next: u32,
    live: bool,
    flow: F,
    value: V,
}

/// The known values of each flow. `F` is a flow's identity, such as its 5-tuple.
#[derive(Clone, Debug)]
pub struct FlowTable<F, V> {
    /// By the hash's upper bits: the chain's first entry. A power of two.
    chains: Vec<u32>,
    entries: Vec<Entry<F, V>>,
    free: Vec<u32>,
    /// Where the next search for idle entries begins.
    hand: usize,
}

impl<F: Copy + Eq, V> Default for FlowTable<F, V> {
    fn default() -> Self {
        FlowTable { chains: vec![NONE; 64], entries: Vec::new(), free: Vec::new(), hand: 0 }
    }
}

impl<F: Copy + Eq, V> FlowTable<F, V> {
    /// Flows that are known.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
    /// Whether the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The numbers of all flows that are known, in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.entries.len() as u32).filter(|at| self.entries[*at as usize].live)
    }
    /// Bytes that lie in memory for the table.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry<F, V>>()
            + (self.chains.capacity() + self.free.capacity()) * size_of::<u32>()
    }
    /// The flow's number, if it is known.
    #[inline]
    pub fn find(&self, hash: u32, flow: F) -> Option<u32> {
        let mut at = self.chains[self.chain(hash)];
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.hash == hash && entry.flow == flow {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }
    /// Adds a flow that is not known. Returns its number.
    pub fn insert(&mut self, hash: u32, flow: F, value: V) -> u32 {
        if self.len() == self.chains.len() {
            self.grow();
        }
        let chain = self.chain(hash);
        let entry = Entry { hash, next: self.chains[chain], live: true, flow, value };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.chains[chain] = at;
        at
    }
    /// The identity of entry `at`.
    #[inline]
    pub fn flow(&self, at: u32) -> F {
        self.entries[at as usize].flow
    }
    /// Looks at up to `steps` entries, from where the last call ended, and forgets those that are
    /// idle. Returns how many.
    pub fn evict(&mut self, steps: usize, mut is_idle: impl FnMut(&V) -> bool) -> usize {
        let mut evicted = 0;
        for _ in 0..steps.min(self.entries.len()) {
            self.hand = if self.hand + 1 < self.entries.len() { self.hand + 1 } else { 0 };
            let entry = &self.entries[self.hand];
            if entry.live && is_idle(&entry.value) {
                self.remove(self.hand as u32);
                evicted += 1;
            }
        }
        evicted
    }

    #[inline]
    fn chain(&self, hash: u32) -> usize {
        (hash.wrapping_mul(0x9E37_79B1) >> (32 - self.chains.len().trailing_zeros())) as usize
    }
    /// Frees entry `at`; its number may be given again.
    pub fn remove(&mut self, at: u32) {
        let (chain, next) =
            (self.chain(self.entries[at as usize].hash), self.entries[at as usize].next);
        let mut before = self.chains[chain];
        if before == at {
            self.chains[chain] = next;
        } else {
            while self.entries[before as usize].next != at {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        }
        self.entries[at as usize].live = false;
        self.free.push(at);
    }
    #[cold]
    fn grow(&mut self) {
        self.chains = vec![NONE; self.chains.len() * 2];
        for at in 0..self.entries.len() {
            if self.entries[at].live {
                let chain = self.chain(self.entries[at].hash);
                self.entries[at].next = std::mem::replace(&mut self.chains[chain], at as u32);
            }
        }
    }
}

impl<F, V> std::ops::Index<u32> for FlowTable<F, V> {
    type Output = V;
    #[inline]
    fn index(&self, at: u32) -> &V {
        &self.entries[at as usize].value
    }
}
impl<F, V> std::ops::IndexMut<u32> for FlowTable<F, V> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut V {
        &mut self.entries[at as usize].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn flows_of_one_hash_stay_apart() {
        let mut table = FlowTable::default();
        let (a, b) = (table.insert(7, 'a', 1), table.insert(7, 'b', 2));
        assert_eq!(
            (table.find(7, 'a'), table.find(7, 'b'), table.find(7, 'c')),
            (Some(a), Some(b), None)
        );
        assert_eq!((table.flow(a), table[b]), ('a', 2));
    }

    proptest! {
        /// The table and a map know the same, whatever is added and forgotten.
        #[test]
        fn it_knows_what_a_map_knows(
            steps in prop::collection::vec((0u32..300, any::<bool>()), 1..600),
        ) {
            let mut table = FlowTable::default();
            let mut map = BTreeMap::new();
            for (step, (flow, is_added)) in steps.into_iter().enumerate() {
                let hash = flow / 3;
                if !is_added {
                    let gone = table.evict(usize::MAX, |value: &(u32, usize)| value.0 == flow);
                    prop_assert_eq!(gone, usize::from(map.remove(&flow).is_some()));
                } else if table.find(hash, flow).is_none() {
                    table.insert(hash, flow, (flow, step));
                    prop_assert!(map.insert(flow, step).is_none());
                }
                prop_assert_eq!(table.len(), map.len());
            }
            for flow in 0..300u32 {
                prop_assert_eq!(
                    table.find(flow / 3, flow).map(|at| table[at].1),
                    map.get(&flow).copied()
                );
            }
        }
    }
}
