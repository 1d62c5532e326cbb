//! Which address is behind which port: learned from the frames' sources, as a bridge does (IEEE 802.1Q §8.7).
//!
//! Invariant: never more than [`ADDRESSES_MAX`] entries, so a flood of forged sources costs neither memory nor time: what is
//! not learned is flooded.

use crate::frame::Mac;
use millpond_core::Time;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The most addresses.
pub const ADDRESSES_MAX: usize = 16_384;
/// How long an address is remembered that sends nothing (IEEE 802.1Q's default).
const AGE: Time = Time::from_ms(300_000);

/// Where a frame can go to, or come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A port of this switch.
    Port(usize),
    /// Another switch, over the fabric.
    Peer(usize),
}

/// Spreads the six bytes of an address; a table that is bounded needs no more.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0.rotate_left(8) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

struct Entry {
    place: Place,
    seen: Time,
}

/// The table.
#[derive(Default)]
pub struct Table {
    entries: HashMap<u64, Entry, BuildHasherDefault<Spread>>,
}

impl Table {
    /// Notes where `mac` was seen; whether there was room.
    #[inline]
    pub fn learn(&mut self, now: Time, mac: Mac, place: Place) -> bool {
        if let Some(entry) = self.entries.get_mut(&mac.number()) {
            (entry.place, entry.seen) = (place, now);
            return true;
        }
        if self.entries.len() >= ADDRESSES_MAX {
            return false;
        }
        self.entries.insert(mac.number(), Entry { place, seen: now });
        true
    }
    /// Where to send what is for `mac`; `None`: to everybody.
    #[inline]
    pub fn find(&self, mac: Mac) -> Option<Place> {
        self.entries.get(&mac.number()).map(|entry| entry.place)
    }
    /// Forgets who has been silent for long.
    pub fn age(&mut self, now: Time) {
        self.entries.retain(|_, entry| now.saturating_sub(entry.seen) < AGE);
    }
    /// Forgets who was behind a place that is gone.
    pub fn forget(&mut self, place: Place) {
        self.entries.retain(|_, entry| entry.place != place);
    }
    /// How many addresses are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_moves_and_forgets() {
        let mut table = Table::default();
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        table.learn(Time::ZERO, mac, Place::Port(1));
        assert_eq!(table.find(mac), Some(Place::Port(1)));
        table.learn(Time::from_ms(1), mac, Place::Peer(0));
        assert_eq!(table.find(mac), Some(Place::Peer(0)));
        table.age(AGE);
        assert_eq!(table.len(), 1);
        table.age(AGE + Time::from_ms(1));
        assert!(table.is_empty());
    }

    #[test]
    fn a_flood_of_sources_is_bounded() {
        let mut table = Table::default();
        for i in 0..2 * ADDRESSES_MAX as u32 {
            let [a, b, c, d] = i.to_be_bytes();
            table.learn(Time::ZERO, Mac([2, 0, a, b, c, d]), Place::Port(0));
        }
        assert_eq!(table.len(), ADDRESSES_MAX);
    }
}
