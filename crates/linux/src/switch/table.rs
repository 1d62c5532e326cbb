//! Which address is behind which port: learned from the frames' sources, as a bridge does (IEEE
//! 802.1Q §8.7). An address in one VLAN has nothing to do with the same one in another.
//!
//! Ports are tenants, who may forge any source. An address that was heard of within [`HOLD`] stays
//! where it is, so nobody takes over the connections of one that is alive; one that moves has been
//! silent for longer than that before. A port has a bounded number of addresses, and may have named
//! ones alone, which then are nowhere else, in no VLAN.
//!
//! Invariant: never more than [`ADDRESSES_MAX`] entries, nor more of a port than its bound, so a
//! flood of forged sources costs neither memory nor time, and takes no other port's room: what is
//! not learned is flooded.

use crate::dataplane::frame::{Mac, View};
use millpond_core::Time;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The most addresses.
pub const ADDRESSES_MAX: usize = 16_384;
/// The most of one port, unless its configuration says otherwise.
pub const ADDRESSES_OF_A_PORT: u32 = 1024;
/// How long an address must have been silent before it is believed to have moved: longer than
/// anybody who is alive leaves a neighbour's question unanswered, shorter than a migration.
pub const HOLD: Time = Time::from_ms(1000);
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

/// A hardware address in a VLAN, or in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The address.
    pub mac: Mac,
    /// The VLAN.
    pub vlan: Option<u16>,
}

impl Address {
    /// Whom a frame is from.
    #[inline]
    pub fn source(view: &View) -> Address {
        Address { mac: view.source, vlan: view.vlan }
    }
    /// Whom it is for.
    #[inline]
    pub fn destination(view: &View) -> Address {
        Address { mac: view.destination, vlan: view.vlan }
    }
    /// As one number; no VLAN has the number 0.
    #[inline]
    fn number(self) -> u64 {
        u64::from(self.vlan.unwrap_or(0)) << 48 | self.mac.number()
    }
    fn of_number(number: u64) -> Address {
        let vlan = Some((number >> 48) as u16).filter(|vlan| *vlan != 0);
        Address { mac: Mac::of_number(number), vlan }
    }
}

impl From<Mac> for Address {
    fn from(mac: Mac) -> Address {
        Address { mac, vlan: None }
    }
}

struct Entry {
    place: Place,
    seen: Time,
}

type Numbers<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// What a port may have.
#[derive(Clone, Copy, Debug)]
struct Rights {
    /// The most addresses.
    most: u32,
    /// How many it has now.
    has: u32,
    /// Whether it has named ones alone.
    named: bool,
}

/// A source that its port may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign;

/// The table.
#[derive(Default)]
pub struct Table {
    /// Those that were learned.
    entries: Numbers<Entry>,
    /// Those that are named: at which port.
    named: Numbers<usize>,
    /// By port.
    rights: Vec<Rights>,
}

impl Table {
    /// The next port has `most` addresses at most, or if some are named these and no others.
    pub fn add_port(&mut self, most: u32, named: &[Mac]) {
        let port = self.rights.len();
        self.named.extend(named.iter().map(|mac| (mac.number(), port)));
        self.rights.push(Rights { most, has: 0, named: !named.is_empty() });
    }

    /// The port that this one is named for, if it is.
    #[inline]
    fn named(&self, mac: Mac) -> Option<Place> {
        if self.named.is_empty() {
            None
        } else {
            self.named.get(&mac.number()).copied().map(Place::Port)
        }
    }

    /// Notes that an address was seen at `place`, if it may be there.
    ///
    /// # Errors
    /// [`Foreign`] if the address belongs to another place.
    #[inline]
    pub fn learn(&mut self, now: Time, address: Address, place: Place) -> Result<(), Foreign> {
        if let Some(home) = self.named(address.mac) {
            return if home == place { Ok(()) } else { Err(Foreign) };
        }
        match self.entries.get_mut(&address.number()) {
            Some(entry) if entry.place == place => {
                entry.seen = now;
                Ok(())
            }
            _ => self.settle(now, address, place),
        }
    }

    /// An address is seen where it was not before.
    #[cold]
    fn settle(&mut self, now: Time, address: Address, place: Place) -> Result<(), Foreign> {
        let before = self.entries.get(&address.number()).map(|entry| (entry.place, entry.seen));
        if before.is_some_and(|(_, seen)| now.saturating_sub(seen) < HOLD)
            || self.rights(place).is_some_and(|r| r.named)
        {
            return Err(Foreign);
        }
        let is_full = before.is_none() && self.entries.len() >= ADDRESSES_MAX;
        if is_full || self.rights(place).is_some_and(|rights| rights.has >= rights.most) {
            return Ok(());
        }
        if let Some((from, _)) = before {
            self.left(from);
        }
        if let Some(rights) = self.rights(place) {
            rights.has += 1;
        }
        self.entries.insert(address.number(), Entry { place, seen: now });
        Ok(())
    }

    fn rights(&mut self, place: Place) -> Option<&mut Rights> {
        match place {
            Place::Port(port) => self.rights.get_mut(port),
            Place::Peer(_) => None,
        }
    }

    fn left(&mut self, place: Place) {
        if let Some(rights) = self.rights(place) {
            rights.has -= 1;
        }
    }

    /// Forgets the addresses that `is_gone` says.
    fn remove(&mut self, is_gone: impl Fn(&Entry) -> bool) {
        let mut gone = Vec::new();
        self.entries.retain(|_, entry| {
            let goes = is_gone(entry);
            gone.extend(goes.then_some(entry.place));
            !goes
        });
        gone.into_iter().for_each(|place| self.left(place));
    }

    /// Where to send what is for an address; `None`: to everybody.
    #[inline]
    pub fn find(&self, address: Address) -> Option<Place> {
        let learned = self.entries.get(&address.number()).map(|entry| entry.place);
        learned.or_else(|| self.named(address.mac))
    }
    /// Forgets who has been silent for long.
    pub fn age(&mut self, now: Time) {
        self.remove(|entry| now.saturating_sub(entry.seen) >= AGE);
    }
    /// Forgets who was behind a place that is gone.
    pub fn forget(&mut self, place: Place) {
        self.remove(|entry| entry.place == place);
    }
    /// Every address: where it is, and when it was heard of last, unless the configuration names
    /// it. In no order.
    pub fn entries(&self) -> impl Iterator<Item = (Address, Place, Option<Time>)> + '_ {
        let learned = |(number, entry): (&u64, &Entry)| {
            (Address::of_number(*number), entry.place, Some(entry.seen))
        };
        let named = |(number, port): (&u64, &usize)| {
            (Address::of_number(*number), Place::Port(*port), None)
        };
        self.named.iter().map(named).chain(self.entries.iter().map(learned))
    }
    /// How many addresses are known.
    pub fn len(&self) -> usize {
        self.entries.len() + self.named.len()
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_moves_and_forgets() {
        let mut table = Table::default();
        let mac = Address::from(Mac([2, 0, 0, 0, 0, 1]));
        table.learn(Time::ZERO, mac, Place::Port(1)).unwrap();
        assert_eq!(table.find(mac), Some(Place::Port(1)));
        table.learn(HOLD, mac, Place::Peer(0)).unwrap();
        assert_eq!(table.find(mac), Some(Place::Peer(0)));
        table.age(AGE);
        assert_eq!(table.len(), 1);
        table.age(AGE + HOLD);
        assert!(table.is_empty());
    }

    #[test]
    fn an_address_that_is_alive_is_not_taken_over() {
        let mut table = Table::default();
        let mac = Address::from(Mac([2, 0, 0, 0, 0, 1]));
        for ms in 0..5 {
            table.learn(Time::from_ms(ms * 900), mac, Place::Port(0)).unwrap();
            for thief in [Place::Port(1), Place::Peer(0)] {
                assert_eq!(table.learn(Time::from_ms(ms * 900 + 899), mac, thief), Err(Foreign));
            }
            assert_eq!(table.find(mac), Some(Place::Port(0)));
        }
    }

    #[test]
    fn named_addresses_are_at_their_port_alone() {
        let mut table = Table::default();
        let [own, other] = [1, 2].map(|last| Mac([2, 0, 0, 0, 0, last]));
        table.add_port(1024, &[own]);
        table.add_port(1024, &[]);
        let [own, other] = [own, other].map(Address::from);
        let later = AGE + AGE;
        table.age(later);
        table.forget(Place::Port(0));
        assert_eq!(
            table.find(own),
            Some(Place::Port(0)),
            "before it has sent anything, and for ever"
        );
        assert_eq!(table.learn(later, own, Place::Port(0)), Ok(()));
        assert_eq!(table.learn(later, other, Place::Port(0)), Err(Foreign));
        assert_eq!(table.learn(later, own, Place::Port(1)), Err(Foreign));
        assert_eq!(table.learn(later, own, Place::Peer(0)), Err(Foreign));
        assert_eq!(table.learn(later, other, Place::Port(1)), Ok(()));
        // In every VLAN.
        let elsewhere = Address { vlan: Some(7), ..own };
        assert_eq!(
            (table.find(elsewhere), table.learn(later, elsewhere, Place::Port(1))),
            (Some(Place::Port(0)), Err(Foreign))
        );
    }

    #[test]
    fn the_same_address_in_two_vlans_is_two() {
        let mut table = Table::default();
        table.add_port(2, &[]);
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        let at = [None, Some(1), Some(4094)].map(|vlan| Address { mac, vlan });
        for (address, place) in at.into_iter().zip([Place::Port(0), Place::Port(1), Place::Peer(0)])
        {
            assert_eq!(table.find(address), None);
            table.learn(Time::ZERO, address, place).unwrap();
        }
        assert_eq!(
            at.map(|address| table.find(address)),
            [Place::Port(0), Place::Port(1), Place::Peer(0)].map(Some)
        );
        let mut all: Vec<Address> = table.entries().map(|(address, ..)| address).collect();
        all.sort();
        assert_eq!(all, at);
        // Each takes a port's room.
        table.learn(Time::ZERO, Address { mac, vlan: Some(2) }, Place::Port(0)).unwrap();
        table.learn(Time::ZERO, Address { mac, vlan: Some(3) }, Place::Port(0)).unwrap();
        assert_eq!((table.len(), table.find(Address { mac, vlan: Some(3) })), (4, None));
    }

    #[test]
    fn a_ports_flood_takes_its_own_room_alone() {
        let mut table = Table::default();
        table.add_port(100, &[]);
        table.add_port(100, &[]);
        let mac = |i: u32| {
            let [a, b, c, d] = i.to_be_bytes();
            Address::from(Mac([2, 0, a, b, c, d]))
        };
        for i in 0..20_000 {
            table.learn(Time::from_ns(i.into()), mac(i), Place::Port(0)).unwrap();
        }
        assert_eq!(table.len(), 100);
        table.learn(Time::ZERO, mac(50_000), Place::Port(1)).unwrap();
        assert_eq!(table.find(mac(50_000)), Some(Place::Port(1)));
        table.forget(Place::Port(0));
        table.learn(Time::ZERO, mac(1), Place::Port(0)).unwrap();
        assert_eq!(table.len(), 2, "what is forgotten makes room");
        // One that moves does so at the cost of where it goes.
        table.learn(HOLD, mac(50_000), Place::Port(0)).unwrap();
        assert_eq!((table.rights[0].has, table.rights[1].has), (2, 0));
    }

    #[test]
    fn a_flood_of_sources_is_bounded() {
        let mut table = Table::default();
        for i in 0..2 * ADDRESSES_MAX as u32 {
            let [a, b, c, d] = i.to_be_bytes();
            table.learn(Time::ZERO, Mac([2, 0, a, b, c, d]).into(), Place::Peer(0)).unwrap();
        }
        assert_eq!(table.len(), ADDRESSES_MAX);
    }
}
