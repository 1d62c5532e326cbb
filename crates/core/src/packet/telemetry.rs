//! In-network telemetry (INT): the state of each switch on a packet's way when it sent the packet.
//!
//! A sender whose control law asks for it gives its data an empty record. A switch adds itself to
//! it when the packet leaves its queue (HPCC, SIGCOMM 2019 §4.1), and the receiver copies the
//! hands the record on to its answer. Values are exact up to 2^48 bytes sent, 2^32 bytes waiting
//! and 2^48 bits a second; HPCC's header has them in 64 bits a switch, with times of 24 bits.
//!
//! Invariant: the record has the switches in the order of the way, and at most [`HOPS`] of them. It
//! takes two cache lines with its place in a packet's list, of which a way of two switches fills
//! one: every packet in flight has a record, so its size decides what caches hold.

use crate::units::{Rate, Time};

/// The most switches whose records one packet carries. Source: HPCC's released simulator.
pub const HOPS: usize = 5;

/// Bytes that it takes on the wire, however many switches are in it: eight for each of [`HOPS`],
/// and two. Source: HPCC, SIGCOMM 2019 §4.1.
pub const BYTES: u32 = 8 * HOPS as u32 + 2;

/// One switch's port, when a packet left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// When the packet's first bit left.
    pub at: Time,
    /// Bytes that the port had sent before it.
    pub sent: u64,
    /// Bytes that waited behind it.
    pub queue: u64,
    pub rate: Rate,
}

/// A [`Hop`] in 24 bytes: 64 bits of time, 32 of queue, 48 of bytes sent and 48 of rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Packed([u32; 6]);

impl Packed {
    fn new(hop: Hop) -> Packed {
        const MOST: u64 = (1 << 48) - 1;
        let [at, sent, rate] = [hop.at.as_ps(), hop.sent & MOST, hop.rate.bps().min(MOST)];
        let queue = u32::try_from(hop.queue).unwrap_or(u32::MAX);
        let high = (sent >> 32) as u32 | (rate >> 32 << 16) as u32;
        Packed([at as u32, (at >> 32) as u32, queue, sent as u32, rate as u32, high])
    }
    fn hop(self) -> Hop {
        let [at, at_high, queue, sent, rate, high] = self.0;
        let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        Hop {
            at: Time::from_ps(wide(at, at_high)),
            sent: wide(sent, high & 0xFFFF),
            queue: queue.into(),
            rate: Rate(wide(rate, high >> 16)),
        }
    }
}

/// An entry whose queue is not known yet: when its packet's first bit leaves, and the number of the
/// port, which stands in the queue's place. No other packet starts there then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// When the packet starts.
    pub at: Time,
    pub number: u32,
}

/// The entries that the switches on a packet's way have written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Telemetry {
    count: u8,
    /// Bit n: entry n is [`Late`].
    late: u8,
    hops: [Packed; HOPS],
}

const _: () = assert!(size_of::<super::side::Linked<Telemetry>>() == 128);

impl Telemetry {
    /// The telemetry that a packet begins with.
    pub const EMPTY: Telemetry = Telemetry { count: 0, late: 0, hops: [Packed([0; 6]); HOPS] };

    /// The next switch on the way adds itself; one for which there is no more room does not.
    pub fn push(&mut self, hop: Hop) {
        if let Some(free) = self.hops.get_mut(usize::from(self.count)) {
            *free = Packed::new(hop);
            self.count += 1;
        }
    }
    /// The same of a switch that learns later how much waits behind the packet; whether there was
    /// room.
    pub fn push_late(&mut self, hop: Hop, number: u32) -> bool {
        let place = self.count;
        self.push(Hop { queue: number.into(), ..hop });
        let has_room = self.count > place;
        self.late |= u8::from(has_room) << place.min(7);
        has_room
    }
    /// The first entry whose queue is not known yet.
    #[inline]
    pub fn first_late(&self) -> Option<Late> {
        if self.late == 0 { None } else { Some(self.late_at(self.late.trailing_zeros() as usize)) }
    }
    fn late_at(&self, place: usize) -> Late {
        let [at, at_high, number, ..] = self.hops[place].0;
        Late { at: Time::from_ps(u64::from(at) | u64::from(at_high) << 32), number }
    }
    /// Writes a queue that has become known, if the entry is here. It is not if the packet was
    /// dropped: the record may be another packet's by now.
    pub fn complete(&mut self, late: Late, queue: u64) {
        let places = 0..usize::from(self.count);
        let is_it = |place: &usize| self.late >> place & 1 != 0 && self.late_at(*place) == late;
        if let Some(place) = places.rev().find(is_it) {
            self.hops[place].0[2] = u32::try_from(queue).unwrap_or(u32::MAX);
            self.late &= !(1 << place);
        }
    }
    /// In the order of the way.
    pub fn hops(&self) -> impl ExactSizeIterator<Item = Hop> + '_ {
        self.hops[..usize::from(self.count)].iter().map(|hop| hop.hop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_first_switches_of_the_way() {
        let mut record = Telemetry::default();
        assert_eq!(record.hops().len(), 0);
        (0..7).for_each(|sent| record.push(Hop { sent, ..Hop::default() }));
        assert_eq!(record.hops().map(|hop| hop.sent).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_late_queue_is_written_where_it_belongs() {
        let mut record = Telemetry::default();
        let hop = |at| Hop { at: Time::from_ns(at), sent: at, ..Hop::default() };
        record.push(hop(1));
        assert!(record.push_late(hop(2), 7) && record.push_late(hop(3), 9));
        let late = |at, number| Late { at: Time::from_ns(at), number };
        record.complete(late(3, 7), 100);
        assert_eq!(record.first_late(), Some(late(2, 7)));
        record.complete(late(2, 7), 1 << 40);
        assert_eq!(record.first_late(), Some(late(3, 9)), "the one above is another packet's");
        record.complete(late(3, 9), 1_000);
        assert_eq!(record.first_late(), None);
        let queues: Vec<u64> = record.hops().map(|hop| hop.queue).collect();
        assert_eq!(queues, [0, u32::MAX.into(), 1_000]);
        (0..2).for_each(|_| record.push(hop(4)));
        assert!(!record.push_late(hop(5), 1) && record.first_late().is_none());
    }

    #[test]
    fn a_packed_hop_gives_back_its_parts() {
        let (at, queue) = (Time::from_ps(u64::MAX - 1), u64::from(u32::MAX));
        for (sent, rate) in [(0, (1 << 48) - 1), ((1 << 48) - 1, 0), (0x8765_4321_0FED, 1 << 47)] {
            let hop = Hop { at, sent, queue, rate: Rate(rate) };
            assert_eq!(Packed::new(hop).hop(), hop);
        }
    }
}
