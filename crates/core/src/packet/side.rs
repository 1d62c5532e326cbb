//! Side records: what few packets carry, beside the packet's line.
//!
//! A packet names the first of its records, and each record the next. A record is asked for by its
//! type, which alone selects the pool: no id can lead to another one.
//!
//! Invariant: a record belongs to one packet. It lives as long as that packet, whether that is in
//! the pool or in somebody's hands, and is freed with it.

use super::pool::Pool;
use super::{Packet, PacketId, Record, Sides};

/// A packet's list of side records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Side(u32);

impl Side {
    /// The number of no record.
    pub const NONE: Side = Side(u32::MAX);
    /// Bits of a slot; the rest is the type of the record.
    const SLOT: u32 = 28;

    fn new(tag: u32, slot: u32) -> Side {
        assert!(slot < 1 << Self::SLOT, "too many side records");
        Side(tag << Self::SLOT | slot)
    }
    #[inline]
    pub(super) fn tag(self) -> u32 {
        self.0 >> Self::SLOT
    }
    #[inline]
    pub(super) fn slot(self) -> u32 {
        self.0 & ((1 << Self::SLOT) - 1)
    }
    /// Whether there are none.
    #[inline]
    pub fn is_none(self) -> bool {
        self == Side::NONE
    }
}

impl Default for Side {
    fn default() -> Side {
        Side::NONE
    }
}

impl std::fmt::Debug for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.is_none() {
            true => f.write_str("none"),
            false => write!(f, "{}:{}", self.tag(), self.slot()),
        }
    }
}

/// A record and the packet's next one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linked<T> {
    pub(super) value: T,
    pub(super) next: Side,
}

/// The pool of side records of a type.
pub type Linkeds<T> = Pool<Linked<T>>;

/// A type that can be a side record.
#[warn(missing_docs)]
pub trait Sided: Copy + Default {
    /// Which of the pools is its.
    const TAG: u32;
    /// Its pool.
    fn pool(sides: &Sides) -> &Pool<Linked<Self>>;
    /// Its pool, to change.
    fn pool_mut(sides: &mut Sides) -> &mut Pool<Linked<Self>>;
    /// It, if the record is one.
    fn of(record: &Record) -> Option<&Self>;
    /// Itself as a record of whatever type.
    fn record(self) -> Record;
}

/// Declares the types of side records: a line each.
macro_rules! sides {
    ($($(#[$meta:meta])* $tag:literal: $Type:ident, $pool:ident;)+) => {
        /// A side record of whatever type: what crosses to another pool, or is captured.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Record { $($(#[$meta])* $Type($Type)),+ }

        /// The side records of a pool's packets.
        #[derive(Clone, Debug, Default)]
        pub struct Sides { $($pool: $crate::packet::side::Linkeds<$Type>),+ }

        $(impl Sided for $Type {
            const TAG: u32 = $tag;
            fn pool(sides: &Sides) -> &$crate::packet::side::Linkeds<$Type> { &sides.$pool }
            fn pool_mut(sides: &mut Sides) -> &mut $crate::packet::side::Linkeds<$Type> {
                &mut sides.$pool
            }
            #[allow(unreachable_patterns)]
            fn of(record: &Record) -> Option<&$Type> {
                match record { Record::$Type(value) => Some(value), _ => None }
            }
            fn record(self) -> Record { Record::$Type(self) }
        })+

        impl Sides {
            /// The record at the head of a list, and the rest of it.
            pub(super) fn look(&self, side: Side) -> (Record, Side) {
                match side.tag() {
                    $($tag => {
                        let linked = &self.$pool[side.slot()];
                        (Record::$Type(linked.value), linked.next)
                    })+
                    tag => unreachable!("there is no side record of type {tag}"),
                }
            }
            /// The record that follows the head of a list. A record can be large: it is not looked
            /// at. Out of line, so that callers whose packets have no records stay as short as they
            /// are.
            #[inline(never)]
            pub(super) fn next(&self, side: Side) -> Side {
                match side.tag() {
                    $($tag => self.$pool[side.slot()].next,)+
                    tag => unreachable!("there is no side record of type {tag}"),
                }
            }
            /// Lets another record follow the head of a list.
            pub(super) fn set_next(&mut self, side: Side, next: Side) {
                match side.tag() {
                    $($tag => self.$pool[side.slot()].next = next,)+
                    tag => unreachable!("there is no side record of type {tag}"),
                }
            }
            pub(super) fn free(&mut self, side: Side) {
                match side.tag() {
                    $($tag => self.$pool.remove(side.slot()),)+
                    tag => unreachable!("there is no side record of type {tag}"),
                }
            }
            /// Puts a record before a list.
            pub(super) fn put(&mut self, record: Record, next: Side) -> Side {
                match record { $(Record::$Type(value) => self.insert(value, next)),+ }
            }
            /// How many there are.
            pub fn live(&self) -> usize {
                0 $(+ self.$pool.live())+
            }
        }
    };
}
pub(super) use sides;

impl Record {
    /// The record of a type among a packet's.
    pub fn find<T: Sided>(records: &[Record]) -> Option<&T> {
        records.iter().find_map(T::of)
    }
}

impl Sides {
    pub(super) fn insert<T: Sided>(&mut self, value: T, next: Side) -> Side {
        Side::new(T::TAG, T::pool_mut(self).insert(Linked { value, next }))
    }
    /// Where a list's record of a type is.
    fn find<T: Sided>(&self, mut side: Side) -> Option<u32> {
        while !side.is_none() {
            if side.tag() == T::TAG {
                return Some(side.slot());
            }
            side = self.next(side);
        }
        None
    }
}

/// Packets in a page: 64 KB.
const PAGE: usize = 1024;

/// Packets with their side records. A plain packet costs what it would in a [`Pool`].
#[derive(Clone, Debug, Default)]
pub struct Packets {
    pool: Pool<Packet, PAGE>,
    sides: Sides,
}

impl Packets {
    /// Puts a packet in a free slot. Its side records, if it has some, are this pool's already.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        self.pool.insert(packet)
    }
    /// Frees a packet and its side records. The caller must not use the id again.
    #[inline]
    pub fn remove(&mut self, id: PacketId) {
        self.release(self.pool[id].side);
        self.pool.remove(id);
    }
    /// Takes a packet out. Its side records stay: whoever has it [releases](Packets::release) them.
    #[inline]
    pub fn take(&mut self, id: PacketId) -> Packet {
        let packet = self.pool[id];
        self.pool.remove(id);
        packet
    }
    /// Frees the side records of a packet that was taken out.
    #[inline]
    pub fn release(&mut self, side: Side) {
        if !side.is_none() {
            self.release_all(side);
        }
    }
    #[cold]
    fn release_all(&mut self, mut side: Side) {
        while !side.is_none() {
            let next = self.sides.next(side);
            self.sides.free(side);
            side = next;
        }
    }
    /// Takes a packet's side record of a type away from it.
    pub fn detach<T: Sided>(&mut self, packet: &mut Packet) -> Option<T> {
        let value = *self.side::<T>(packet)?;
        // Those before it are put back behind the rest.
        let mut before = Vec::new();
        loop {
            let (record, next) = self.sides.look(packet.side);
            self.sides.free(packet.side);
            packet.side = next;
            if T::of(&record).is_some() {
                break;
            }
            before.push(record);
        }
        for record in before {
            packet.side = self.sides.put(record, packet.side);
        }
        Some(value)
    }
    /// Takes a packet's side record of a type out of its list. The record stays where it is, to be
    /// [given](Packets::give) to another packet or [released](Packets::release).
    pub fn lift<T: Sided>(&mut self, packet: &mut Packet) -> Side {
        let side = packet.side;
        if side.is_none() || side.tag() != T::TAG {
            let value = self.detach::<T>(packet);
            return value.map_or(Side::NONE, |value| self.sides.insert(value, Side::NONE));
        }
        packet.side = self.sides.next(side);
        self.sides.set_next(side, Side::NONE);
        side
    }
    /// Gives a packet a record that was lifted off another. It must have none of that type.
    #[inline]
    pub fn give(&mut self, packet: &mut Packet, lifted: Side) {
        if !lifted.is_none() {
            self.sides.set_next(lifted, packet.side);
            packet.side = lifted;
        }
    }
    /// Gives a packet a side record. It must have none of that type.
    pub fn attach<T: Sided>(&mut self, packet: &mut Packet, value: T) {
        packet.side = self.sides.insert(value, packet.side);
    }
    /// A packet's side record of a type.
    #[inline]
    pub fn side<T: Sided>(&self, packet: &Packet) -> Option<&T> {
        if packet.side.is_none() {
            return None;
        }
        self.sides.find::<T>(packet.side).map(|slot| &T::pool(&self.sides)[slot].value)
    }
    /// A packet's side record of a type, to change.
    #[inline]
    pub fn side_mut<T: Sided>(&mut self, packet: &Packet) -> Option<&mut T> {
        self.record_mut(packet.side)
    }
    /// Where the record of a type is that is in a list.
    #[inline]
    pub fn slot_of<T: Sided>(&self, side: Side) -> Option<u32> {
        if side.is_none() { None } else { self.sides.find::<T>(side) }
    }
    /// The record of a type at a slot, which may be another packet's by now.
    #[inline]
    pub fn record_at_mut<T: Sided>(&mut self, slot: u32) -> &mut T {
        &mut T::pool_mut(&mut self.sides)[slot].value
    }
    /// The record of a type in a list, to change.
    #[inline]
    pub fn record_mut<T: Sided>(&mut self, side: Side) -> Option<&mut T> {
        if side.is_none() {
            return None;
        }
        let slot = self.sides.find::<T>(side)?;
        Some(&mut T::pool_mut(&mut self.sides)[slot].value)
    }
    /// All of a packet's side records.
    pub fn records(&self, packet: &Packet) -> Vec<Record> {
        let (mut side, mut records) = (packet.side, Vec::new());
        while !side.is_none() {
            let (record, next) = self.sides.look(side);
            records.push(record);
            side = next;
        }
        records
    }
    /// Takes a packet out for another pool. Its records go behind `records`; until
    /// [`Packets::bring`] the packet has their number.
    #[inline]
    pub fn send(&mut self, id: PacketId, records: &mut Vec<Record>) -> Packet {
        let mut packet = self.take(id);
        if !packet.side.is_none() {
            self.send_records(&mut packet, records);
        }
        packet
    }
    #[cold]
    fn send_records(&mut self, packet: &mut Packet, records: &mut Vec<Record>) {
        let (mut side, mut count, from) = (packet.side, 0, records.len());
        while !side.is_none() {
            let (record, next) = self.sides.look(side);
            self.sides.free(side);
            records.push(record);
            (side, count) = (next, count + 1);
        }
        // Each is put before those that follow it here, so the list is the same again.
        records[from..].reverse();
        packet.side = Side(count);
    }
    /// Puts in a packet that another pool has sent; `records` begins with its own.
    #[inline]
    pub fn bring(
        &mut self,
        mut packet: Packet,
        records: &mut impl Iterator<Item = Record>,
    ) -> PacketId {
        if !packet.side.is_none() {
            self.bring_records(&mut packet, records);
        }
        self.insert(packet)
    }
    #[cold]
    fn bring_records(&mut self, packet: &mut Packet, records: &mut impl Iterator<Item = Record>) {
        let count = packet.side.0;
        packet.side = Side::NONE;
        for _ in 0..count {
            let record = records.next().expect("a packet with side records brings them along");
            packet.side = self.sides.put(record, packet.side);
        }
    }
    /// How many packets are live.
    pub fn live(&self) -> usize {
        self.pool.live()
    }
    /// How many side records are live.
    pub fn live_records(&self) -> usize {
        self.sides.live()
    }
    /// How many slots for packets there are, live or free: the memory held.
    pub fn capacity(&self) -> usize {
        self.pool.capacity()
    }
}

impl std::ops::Index<PacketId> for Packets {
    type Output = Packet;
    #[inline]
    fn index(&self, id: PacketId) -> &Packet {
        &self.pool[id]
    }
}
impl std::ops::IndexMut<PacketId> for Packets {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.pool[id]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mapping, Sack};
    use super::*;

    fn sack(count: u8) -> Sack {
        Sack { count, ..Sack::default() }
    }

    #[test]
    fn a_record_is_freed_with_its_packet() {
        let mut packets = Packets::default();
        let mut packet = Packet::default();
        assert_eq!(packets.side::<Sack>(&packet), None);
        packets.attach(&mut packet, sack(2));
        let id = packets.insert(packet);
        assert_eq!(packets.side::<Sack>(&packets[id]), Some(&sack(2)));
        packets.side_mut::<Sack>(&packet).expect("its record").count = 3;
        assert_eq!(Record::find::<Sack>(&packets.records(&packet)), Some(&sack(3)));
        packets.remove(id);
        assert_eq!((packets.live(), packets.live_records()), (0, 0));
    }

    #[test]
    fn a_record_outlives_the_slot_of_a_packet_that_is_taken() {
        let mut packets = Packets::default();
        let mut packet = Packet::default();
        packets.attach(&mut packet, sack(1));
        let id = packets.insert(packet);
        let taken = packets.take(id);
        assert_eq!(packets.side::<Sack>(&taken), Some(&sack(1)));
        packets.release(taken.side);
        assert_eq!(packets.live_records(), 0);
    }

    #[test]
    fn a_lifted_record_belongs_to_the_packet_that_it_is_given_to() {
        for behind in [false, true] {
            let mut packets = Packets::default();
            let (mut from, mut to) = (Packet::default(), Packet::default());
            packets.attach(&mut from, sack(1));
            if behind {
                packets.attach(&mut from, Mapping::default());
            }
            packets.attach(&mut to, Mapping { subflow: 7, data: 8 });
            let lifted = packets.lift::<Sack>(&mut from);
            assert_eq!(packets.side::<Sack>(&from), None);
            packets.give(&mut to, lifted);
            assert_eq!(packets.side::<Sack>(&to), Some(&sack(1)));
            assert_eq!(packets.side::<Mapping>(&to).map(|mapping| mapping.data), Some(8));
            assert!(packets.lift::<Sack>(&mut from).is_none());
            packets.release(from.side);
            packets.release(to.side);
            assert_eq!(packets.live_records(), 0);
        }
    }

    #[test]
    fn records_cross_with_their_packets_in_order() {
        let (mut from, mut to) = (Packets::default(), Packets::default());
        let mut records = Vec::new();
        let mut mail = Vec::new();
        for count in [0, 3, 0, 4] {
            let mut packet = Packet { flow: u32::from(count), ..Packet::default() };
            if count > 0 {
                from.attach(&mut packet, sack(count));
            }
            let id = from.insert(packet);
            mail.push(from.send(id, &mut records));
        }
        assert_eq!((from.live(), from.live_records(), records.len()), (0, 0, 2));
        let mut records = records.into_iter();
        for packet in mail {
            let id = to.bring(packet, &mut records);
            let count = to.side::<Sack>(&to[id]).map_or(0, |sack| sack.count);
            assert_eq!(u32::from(count), to[id].flow);
        }
        assert_eq!(to.live_records(), 2);
    }

    #[test]
    fn a_packets_records_keep_their_order_when_they_cross() {
        let (mut from, mut to) = (Packets::default(), Packets::default());
        let mut packet = Packet::default();
        from.attach(&mut packet, sack(1));
        from.attach(&mut packet, Mapping { subflow: 3, data: 9 });
        let before = from.records(&packet);
        let (id, mut records) = (from.insert(packet), Vec::new());
        let sent = from.send(id, &mut records);
        let id = to.bring(sent, &mut records.into_iter());
        assert_eq!((to.records(&to[id]), before.len()), (before, 2));
    }
}
