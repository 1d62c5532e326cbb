//! Which address is behind which port: learned from the frames' sources, as a bridge does (IEEE
//! 802.1Q §8.7). An address in one VLAN has nothing to do with the same one in another.
//!
//! Ports are tenants, who may forge any source, and a peer's key is in many hands. An address with
//! a frame within [`HOLD`] stays where it is, so nobody takes over the connections of one that
//! is alive: traffic moves an address that has been silent for longer. An announcement
//! (`neighbour`) moves it at once, such as of a router that takes over, or of a migrated machine.
//! If the former place sends again within its hold, the address is alive there: it goes back,
//! and announcements do not move it for [`DISPUTE`]. A port may have named addresses alone, which
//! then are nowhere else, in no VLAN.
//!
//! Each worker has a table. A worker reports what it learns to the first one, and again while the
//! address is alive. The first worker reports what its own table holds then, and the others take
//! that over. So two workers that learn an address at different places soon agree.
//!
//! A place is a port or a peer. Each has a reserve, an equal part of half of the table, and may
//! take of the rest up to its own bound.
//!
//! Invariant: never more than [`ADDRESSES_MAX`] entries, nor more of a place than its bound, and a
//! place always finds room for its reserve. So a flood of forged sources costs neither memory nor
//! time, and takes no other place's reserve: an address that is not learned is flooded.

use crate::dataplane::frame::{Mac, View};
use millpond_core::Time;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub const ADDRESSES_MAX: usize = 16_384;
/// The most of one port by default.
pub const ADDRESSES_OF_A_PORT: u32 = 1024;
pub const ADDRESSES_OF_A_PEER: u32 = 4096;
/// How long an address must have been silent before it is believed to have moved: longer than
/// anybody who is alive leaves a neighbour's question unanswered, shorter than a migration.
pub const HOLD: Time = Time::from_ms(1000);
/// How long announcements do not move an address that was alive at two places.
const DISPUTE: Time = Time::from_ms(60_000);
/// Between two reports of an address to other workers: well below [`HOLD`].
const REPORT: Time = Time::from_ms(250);
/// How long an address is remembered that sends nothing (IEEE 802.1Q's default).
const AGE: Time = Time::from_ms(300_000);

/// Where a frame can go to, or come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Port(usize),
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
    pub mac: Mac,
    pub vlan: Option<u16>,
}

impl Address {
    #[inline]
    pub fn source(view: &View) -> Address {
        Address { mac: view.source, vlan: view.vlan }
    }
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
    /// When it was last reported to other workers.
    reported: Time,
    /// The place that an announcement took it from.
    former: Option<Former>,
    /// Until when announcements do not move it.
    disputed: Time,
}

/// A place that an address has left, and when it was seen there last.
#[derive(Clone, Copy)]
struct Former {
    place: Place,
    seen: Time,
}

type Numbers<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// The addresses that a place may have.
#[derive(Clone, Copy, Debug)]
struct Rights {
    most: u32,
    has: u32,
    /// Whether it has named ones alone.
    named: bool,
}

/// A source that its port may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign;

/// An address and its place, from one worker to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    pub address: Address,
    pub place: Place,
    /// Whether it has announced itself there.
    pub is_announced: bool,
}

#[derive(Default)]
pub struct Table {
    entries: Numbers<Entry>,
    /// Those that are named: at which port.
    named: Numbers<usize>,
    ports: Vec<Rights>,
    peers: Vec<Rights>,
    /// Entries that each place finds room for.
    reserve: u32,
    /// Entries beyond the reserves of all places, and how many of these are taken.
    pool: u32,
    taken: u32,
    /// News for other workers; `None`: there are none.
    news: Option<Vec<News>>,
}

impl Table {
    /// The next port has `most` addresses at most, or if some are named these and no others.
    pub fn add_port(&mut self, most: u32, named: &[Mac]) {
        let port = self.ports.len();
        self.named.extend(named.iter().map(|mac| (mac.number(), port)));
        self.ports.push(Rights { most, has: 0, named: !named.is_empty() });
        self.share_out();
    }
    /// The next peer has `most` addresses at most.
    pub fn add_peer(&mut self, most: u32) {
        self.peers.push(Rights { most, has: 0, named: false });
        self.share_out();
    }
    /// Takes the entries of `old` that may be here, each at the place that `stays` returns.
    pub fn take_over(&mut self, old: &Table, stays: impl Fn(Place) -> Option<Place>) {
        for (number, entry) in &old.entries {
            if let Some(place) = stays(entry.place) {
                let _ = self.learn(entry.seen, Address::of_number(*number), place);
            }
        }
    }
    /// Divides the room among the places; before anything is learned.
    fn share_out(&mut self) {
        let places = || self.ports.iter().chain(&self.peers);
        let reserve = (ADDRESSES_MAX / 2 / places().count()) as u32;
        let reserved: u32 = places().map(|rights| rights.most.min(reserve)).sum();
        (self.reserve, self.pool) = (reserve, ADDRESSES_MAX as u32 - reserved);
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
                if let Some(news) = &mut self.news
                    && now.saturating_sub(entry.reported) >= REPORT
                {
                    entry.reported = now;
                    news.push(News { address, place, is_announced: false });
                }
                Ok(())
            }
            _ => self.settle(now, address, place, false),
        }
    }

    /// Moves an address that has announced itself at `place`, where [`Table::learn`] refuses it.
    ///
    /// # Errors
    /// [`Foreign`] if the address is named elsewhere, or was alive at two places of late.
    #[cold]
    pub fn follow(&mut self, now: Time, address: Address, place: Place) -> Result<(), Foreign> {
        let is_named = self.named(address.mac).is_some_and(|home| home != place);
        if is_named { Err(Foreign) } else { self.settle(now, address, place, true) }
    }

    /// An address is seen where it was not before.
    #[cold]
    fn settle(
        &mut self,
        now: Time,
        address: Address,
        place: Place,
        is_announced: bool,
    ) -> Result<(), Foreign> {
        let is_alive = |seen: Time| now.saturating_sub(seen) < HOLD;
        let (mut former, mut disputed) = (None, Time::ZERO);
        let before = self.entries.get(&address.number());
        if let Some(entry) = before {
            disputed = entry.disputed;
            if entry.former.is_some_and(|it| it.place == place && is_alive(it.seen)) {
                disputed = now + DISPUTE;
            } else if is_announced && disputed <= now {
                former = Some(Former { place: entry.place, seen: entry.seen });
            } else if is_alive(entry.seen) {
                return Err(Foreign);
            }
        }
        let from = before.map(|entry| entry.place);
        if self.rights(place).is_some_and(|rights| rights.named) {
            return Err(Foreign);
        }
        if !self.has_room(place) {
            return Ok(());
        }
        from.into_iter().for_each(|from| self.left(from));
        self.came(place);
        let entry = Entry { place, seen: now, reported: now, former, disputed };
        self.entries.insert(address.number(), entry);
        let news = News { address, place, is_announced };
        self.news.iter_mut().for_each(|all| all.push(news));
        Ok(())
    }

    /// Reports from now on what is learned ([`Table::take_news`]).
    pub fn report(&mut self) {
        self.news.get_or_insert_default();
    }
    /// Returns what other workers are to learn.
    pub fn take_news(&mut self) -> Vec<News> {
        self.news.as_mut().map(std::mem::take).unwrap_or_default()
    }
    /// The first worker's: learns from another worker. If the address is elsewhere, it reports that
    /// place.
    pub fn judge(&mut self, now: Time, news: News) {
        let News { address, place, is_announced } = news;
        let follows = |table: &mut Table| is_announced && table.follow(now, address, place).is_ok();
        if self.learn(now, address, place).is_err()
            && !follows(self)
            && let (Some(news), Some(entry)) = (&mut self.news, self.entries.get(&address.number()))
        {
            news.push(News { address, place: entry.place, is_announced: false });
        }
    }
    /// Another worker's: the address is where the first worker has it, wherever it was. The first
    /// worker has decided a dispute; this one takes no announcement that may be part of it.
    pub fn obey(&mut self, now: Time, News { address, place, is_announced }: News) {
        let (mut former, mut disputed) = (None, Time::ZERO);
        if self.entries.get(&address.number()).is_some_and(|entry| entry.place != place)
            && let Some(entry) = self.entries.remove(&address.number())
        {
            self.left(entry.place);
            match is_announced {
                true => former = Some(Former { place: entry.place, seen: entry.seen }),
                false => disputed = now + DISPUTE,
            }
        }
        let news = self.news.take();
        let _ = self.learn(now, address, place);
        if let Some(entry) = self.entries.get_mut(&address.number())
            && (former.is_some() || disputed > now)
        {
            (entry.former, entry.disputed) = (former, disputed);
        }
        self.news = news;
    }

    fn rights(&mut self, place: Place) -> Option<&mut Rights> {
        match place {
            Place::Port(port) => self.ports.get_mut(port),
            Place::Peer(peer) => self.peers.get_mut(peer),
        }
    }
    /// Whether a place may have one more address.
    fn has_room(&mut self, place: Place) -> bool {
        let (reserve, in_pool) = (self.reserve, self.taken < self.pool);
        let is_full = self.entries.len() >= ADDRESSES_MAX;
        self.rights(place).map_or(!is_full, |rights| {
            rights.has < rights.most && (rights.has < reserve || in_pool)
        })
    }
    fn came(&mut self, place: Place) {
        let reserve = self.reserve;
        if let Some(rights) = self.rights(place) {
            rights.has += 1;
            self.taken += u32::from(rights.has > reserve);
        }
    }
    fn left(&mut self, place: Place) {
        let reserve = self.reserve;
        if let Some(rights) = self.rights(place) {
            rights.has -= 1;
            self.taken -= u32::from(rights.has >= reserve);
        }
    }

    /// Forgets the addresses that are `is_gone`.
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
        if self.rights(place).is_some_and(|rights| rights.has == 0) {
            return;
        }
        self.remove(|entry| entry.place == place);
    }
    /// Every address: where it is, and when it last sent, unless the configuration names it. In no
    /// order.
    pub fn entries(&self) -> impl Iterator<Item = (Address, Place, Option<Time>)> + '_ {
        let learned = |(number, entry): (&u64, &Entry)| {
            (Address::of_number(*number), entry.place, Some(entry.seen))
        };
        let named = |(number, port): (&u64, &usize)| {
            (Address::of_number(*number), Place::Port(*port), None)
        };
        self.named.iter().map(named).chain(self.entries.iter().map(learned))
    }
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
        table.learn(HOLD, mac, Place::Port(2)).unwrap();
        assert_eq!(table.find(mac), Some(Place::Port(2)));
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
    fn traffic_moves_an_address_between_any_places_after_a_second_of_silence() {
        let places = [Place::Port(0), Place::Peer(0), Place::Peer(1), Place::Port(1)];
        let mac = Address::from(Mac([2, 0, 0, 0, 0, 1]));
        for (from, to) in places.into_iter().flat_map(|a| places.map(|b| (a, b))) {
            let mut table = Table::default();
            table.learn(Time::ZERO, mac, from).unwrap();
            let early = table.learn(HOLD - Time::from_ns(1), mac, to);
            assert_eq!(early.is_err(), from != to, "{from:?} to {to:?}");
            table.learn(HOLD, mac, to).unwrap();
            assert_eq!(table.find(mac), Some(to));
        }
    }

    #[test]
    fn announcement_moves_a_live_address_at_once() {
        let mut table = Table::default();
        let mac = Address::from(Mac([2, 0, 0, 0, 0, 1]));
        let places = [Place::Port(0), Place::Peer(0), Place::Port(1), Place::Peer(1)];
        table.learn(Time::ZERO, mac, places[0]).unwrap();
        for (second, place) in (1..).zip(places.into_iter().cycle().skip(1).take(9)) {
            // It was heard of just before; nothing of it comes from there afterwards.
            let now = Time::from_s(second);
            let _ = table.learn(now - Time::from_ms(1), mac, table.find(mac).unwrap());
            assert_eq!(table.learn(now, mac, place), Err(Foreign));
            table.follow(now, mac, place).unwrap();
            assert_eq!(table.find(mac), Some(place));
        }
    }

    /// A tenant announces the address of a neighbour who sends twice a second, as often as it can.
    #[test]
    fn live_address_comes_back_from_who_announces_it_and_stays() {
        let mut table = Table::default();
        let mac = Address::from(Mac([2, 0, 0, 0, 0, 1]));
        let [home, thief] = [Place::Port(0), Place::Peer(0)];
        let mut stolen = 0;
        for ms in 0..60_000 {
            let now = Time::from_ms(ms);
            if ms % 500 == 0 {
                table.learn(now, mac, home).unwrap();
            } else if table.learn(now, mac, thief).is_err() {
                let _ = table.follow(now, mac, thief);
            }
            stolen += u64::from(table.find(mac) == Some(thief));
        }
        assert_eq!(stolen, 499, "until its next frame, once a minute");
    }

    #[test]
    fn named_address_follows_no_announcement() {
        let mut table = Table::default();
        let [own, other] = [1, 2].map(|last| Mac([2, 0, 0, 0, 0, last]));
        table.add_port(1024, &[own]);
        table.add_port(1024, &[]);
        table.learn(Time::ZERO, other.into(), Place::Port(1)).unwrap();
        assert_eq!(table.follow(HOLD, own.into(), Place::Port(1)), Err(Foreign));
        assert_eq!(table.follow(HOLD, other.into(), Place::Port(0)), Err(Foreign));
        assert_eq!(table.find(other.into()), Some(Place::Port(1)));
    }

    #[test]
    fn addresses_of_places_that_stay_are_taken_over() {
        let mac = |last: u8| Address::from(Mac([2, 0, 0, 0, 0, last]));
        let mut old = Table::default();
        (0..3).for_each(|_| old.add_port(9, &[]));
        old.add_peer(9);
        let places = [Place::Port(0), Place::Port(1), Place::Port(2), Place::Peer(0)];
        for (last, place) in places.into_iter().enumerate() {
            old.learn(Time::from_s(5), mac(last as u8), place).unwrap();
        }
        // The first port goes; the address of the third is another port's by name.
        let mut table = Table::default();
        (0..2).for_each(|_| table.add_port(9, &[]));
        table.add_port(9, &[mac(2).mac]);
        table.add_peer(9);
        table.take_over(&old, |place| match place {
            Place::Port(port) => port.checked_sub(1).map(Place::Port),
            peer => Some(peer),
        });
        let found = [0, 1, 2, 3].map(|last| table.find(mac(last)));
        let named = Some(Place::Port(2));
        assert_eq!(found, [None, Some(Place::Port(0)), named, Some(Place::Peer(0))]);
        assert_eq!((table.ports[0].has, table.ports[1].has, table.peers[0].has), (1, 0, 1));
    }

    /// Workers that learn the same addresses at different places, with reports under way in any
    /// order: once all have arrived, all tables are the first one's.
    #[test]
    fn tables_of_workers_agree_once_reports_have_arrived() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        let mut disputed = 0;
        for round in 0..200 {
            let mut tables: Vec<Table> = (0..3).map(|_| Table::default()).collect();
            for table in &mut tables {
                (0..3).for_each(|_| table.add_port(9, &[]));
                table.report();
            }
            let mut under_way: Vec<(usize, usize, News)> = Vec::new();
            let mut now = Time::from_s(10);
            for step in 0..60 {
                now += Time::from_ms(draw(400));
                if step < 30 {
                    let mac = Address::from(Mac([2, 0, 0, 0, 0, draw(3) as u8]));
                    let place = Place::Port(draw(3) as usize);
                    let table = &mut tables[draw(3) as usize];
                    if table.learn(now, mac, place).is_err() {
                        disputed += 1;
                        if draw(2) == 0 {
                            let _ = table.follow(now, mac, place);
                        }
                    }
                }
                loop {
                    for (from, table) in tables.iter_mut().enumerate() {
                        for news in table.take_news() {
                            let others = (0..3).filter(|to| (*to == 0) != (from == 0));
                            under_way.extend(others.map(|to| (from, to, news)));
                        }
                    }
                    let some = step >= 30 || draw(2) == 0;
                    if under_way.is_empty() || !some {
                        break;
                    }
                    let (from, to, news) = under_way.remove(0);
                    match from {
                        0 => tables[to].obey(now, news),
                        _ => tables[to].judge(now, news),
                    }
                }
            }
            for last in 0..3 {
                let mac = Address::from(Mac([2, 0, 0, 0, 0, last]));
                let found: Vec<_> = tables.iter().map(|table| table.find(mac)).collect();
                assert!(found.iter().all(|it| *it == found[0]), "{round}: {found:?}");
            }
            let counts = tables.iter().map(|table| table.ports.iter().map(|r| r.has).sum::<u32>());
            assert!(counts.zip(&tables).all(|(has, table)| has as usize == table.len()));
        }
        assert!(disputed > 100, "{disputed}");
    }

    /// An address that only another worker hears is as safe here as one that is heard here.
    #[test]
    fn an_address_that_another_worker_hears_is_not_taken_over() {
        let mac = Address::from(Mac([2, 0, 0, 0, 0, 1]));
        let mut tables = [Table::default(), Table::default()];
        tables.iter_mut().for_each(Table::report);
        for ms in (0..5000).step_by(10) {
            let now = Time::from_ms(10_000 + ms);
            tables[1].learn(now, mac, Place::Port(0)).unwrap();
            for news in tables[1].take_news() {
                tables[0].judge(now, news);
            }
            assert_eq!(tables[0].learn(now, mac, Place::Port(1)), Err(Foreign), "{ms} ms");
        }
        let told = tables[0].take_news().len();
        assert!((10..=30).contains(&told), "once, and each 250 ms: {told}");
    }

    #[test]
    fn peers_that_flood_leave_others_their_reserve() {
        let mut table = Table::default();
        (0..2).for_each(|_| table.add_port(ADDRESSES_OF_A_PORT, &[]));
        (0..6).for_each(|_| table.add_peer(ADDRESSES_OF_A_PEER));
        let mac = |place: u32, i: u32| {
            let [_, a, b, c] = i.to_be_bytes();
            Address::from(Mac([2, place as u8, 0, a, b, c]))
        };
        // One peer has its bound; five have the table, but for reserves.
        for peer in 0..5 {
            for i in 0..20_000 {
                table.learn(Time::ZERO, mac(peer, i), Place::Peer(peer as usize)).unwrap();
            }
            assert!(table.peers[peer as usize].has <= ADDRESSES_OF_A_PEER);
        }
        assert_eq!(table.peers[0].has, ADDRESSES_OF_A_PEER);
        for (place, number) in [(Place::Peer(5), 10), (Place::Port(0), 11), (Place::Port(1), 12)] {
            for i in 0..1024 {
                table.learn(Time::ZERO, mac(number, i), place).unwrap();
            }
            assert_eq!(table.find(mac(number, 1023)), Some(place));
        }
        assert_eq!((table.len(), table.taken), (ADDRESSES_MAX, table.pool));
        table.forget(Place::Peer(0));
        table.forget(Place::Peer(5));
        assert_eq!(table.taken, table.pool - (ADDRESSES_OF_A_PEER - table.reserve));
        (0..5).for_each(|peer| table.forget(Place::Peer(peer)));
        assert_eq!((table.taken, table.len()), (0, 2048));
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
        assert_eq!((table.ports[0].has, table.ports[1].has), (2, 0));
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
