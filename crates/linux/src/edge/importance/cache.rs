//! The unacknowledged payload of one flow, from which forced packets are built.
//!
//! Invariant: a byte that the cache returns is the byte that the host sent at that offset. Chunks
//! do not overlap. Memory is bounded: each chunk counts with its length and [`OVERHEAD`].

use std::collections::BTreeMap;

/// Memory that a chunk takes beside its bytes, in bytes.
pub(super) const OVERHEAD: usize = 64;

/// The reason why the cache did not take payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no room.
    Full,
    /// The host sent other bytes at these offsets before.
    Conflict,
}

/// Payload by stream offset.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    chunks: BTreeMap<u64, Box<[u8]>>,
    memory: usize,
}

impl Cache {
    /// Bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Keeps `bytes` at offset `from`, using at most `room` further bytes of memory. Bytes that the
    /// cache holds already are compared.
    pub fn insert(&mut self, from: u64, bytes: &[u8], room: usize) -> Result<(), Refusal> {
        let end = from + bytes.len() as u64;
        let mut missing: Vec<(u64, u64)> = Vec::new();
        let mut at = from;
        let first = self.chunks.range(..=from).next_back().map_or(from, |(start, _)| *start);
        for (&start, chunk) in self.chunks.range(first..end) {
            let stop = start + chunk.len() as u64;
            let (low, high) = (start.max(from), stop.min(end));
            if low >= high {
                continue;
            }
            let new = &bytes[(low - from) as usize..(high - from) as usize];
            if chunk[(low - start) as usize..(high - start) as usize] != *new {
                return Err(Refusal::Conflict);
            }
            if at < low {
                missing.push((at, low));
            }
            at = high;
        }
        if at < end {
            missing.push((at, end));
        }
        let needed: usize = missing.iter().map(|(a, b)| (b - a) as usize + OVERHEAD).sum();
        if needed > room {
            return Err(Refusal::Full);
        }
        for (a, b) in missing {
            let chunk = Box::from(&bytes[(a - from) as usize..(b - from) as usize]);
            self.chunks.insert(a, chunk);
        }
        self.memory += needed;
        Ok(())
    }

    /// Forgets the chunks that end at or below `una`.
    pub fn remove_below(&mut self, una: u64) {
        while let Some(first) = self.chunks.first_entry()
            && first.key() + first.get().len() as u64 <= una
        {
            self.memory -= first.remove().len() + OVERHEAD;
        }
    }

    /// Appends the bytes from offset `from` on to `to`: `len` of them, or fewer where a byte is
    /// missing. Returns how many.
    pub fn read(&self, from: u64, len: usize, to: &mut Vec<u8>) -> usize {
        let before = to.len();
        let mut at = from;
        let end = from + len as u64;
        let first = self.chunks.range(..=from).next_back().map_or(from, |(start, _)| *start);
        for (&start, chunk) in self.chunks.range(first..end) {
            let stop = start + chunk.len() as u64;
            if start > at {
                break;
            }
            if stop > at {
                let high = stop.min(end);
                to.extend_from_slice(&chunk[(at - start) as usize..(high - start) as usize]);
                at = high;
            }
        }
        to.len() - before
    }

    /// Returns the lowest offset at or above `from` that the cache holds.
    pub fn first_from(&self, from: u64) -> Option<u64> {
        let around = self.chunks.range(..=from).next_back();
        match around.filter(|(start, chunk)| *start + chunk.len() as u64 > from) {
            Some(_) => Some(from),
            None => self.chunks.range(from..).next().map(|(start, _)| *start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The cache holds the host's bytes, whatever overlaps, and its memory stays in bounds.
        #[test]
        fn cached_bytes_are_those_that_were_sent(
            steps in prop::collection::vec((0u64..300, 1usize..40, 0u8..10), 1..60),
        ) {
            let stream: Vec<u8> = (0..400u32).map(|i| ((i * 7) ^ (i >> 3)) as u8).collect();
            let (mut cache, mut held, mut una) = (Cache::default(), vec![false; 400], 0);
            for (from, len, what) in steps {
                let range = from as usize..from as usize + len;
                match what {
                    0 => {
                        una = una.max(from);
                        cache.remove_below(una);
                    }
                    1 if held[range.clone()].iter().any(|held| *held) && from >= una => {
                        let mut other = stream[range.clone()].to_vec();
                        let at = range.clone().position(|i| held[i]).unwrap_or(0);
                        other[at] ^= 1;
                        prop_assert_eq!(cache.insert(from, &other, 9999), Err(Refusal::Conflict));
                    }
                    _ if from >= una => match cache.insert(from, &stream[range.clone()], 500) {
                        Ok(()) => held[range].fill(true),
                        Err(refusal) => prop_assert_eq!(refusal, Refusal::Full),
                    },
                    _ => (),
                }
                held[..una as usize].fill(false);
                for at in una..340 {
                    let mut read = Vec::new();
                    cache.read(at, 30, &mut read);
                    let run = held[at as usize..].iter().take_while(|held| **held).count().min(30);
                    prop_assert_eq!(&read[..], &stream[at as usize..at as usize + run]);
                    let next = (at..400).find(|i| held[*i as usize]);
                    prop_assert_eq!(cache.first_from(at), next);
                }
                let kept: usize = cache.chunks.values().map(|chunk| chunk.len() + OVERHEAD).sum();
                prop_assert_eq!(kept, cache.memory());
            }
        }
    }
}
