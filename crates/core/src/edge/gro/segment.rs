//! A segment that grows: packets of one flow, one behind the other, that will go up as one.
//!
//! Invariant: all packets but the last have the length of the first, as a segment that is cut again
//! (GSO) needs; headers and payload together fit the 16 bits of an IP length.

use super::{Arrival, Cause, Counters, IpId, Released, tcp};
use crate::units::Time;

pub(super) const NONE: u32 = u32::MAX;
const IP_MAX: u32 = 65_535;
/// Flags that end a segment with the packet that carries them.
const ENDING: u8 = tcp::URG | tcp::PSH | tcp::RST | tcp::SYN | tcp::FIN;
/// Flags in which the packets of a segment may differ. A packet with CWR stays by itself: none with
/// it may follow, and none without.
const FREE: u8 = tcp::FIN | tcp::PSH;

/// Whether the packet cannot be the beginning of anything: it goes up by itself.
#[inline]
pub(super) fn is_single<F>(arrival: &Arrival<F>) -> bool {
    arrival.len == 0 || arrival.is_whole || arrival.flags & ENDING != 0
}

#[derive(Clone, Debug)]
pub(super) struct Segment<P> {
    pub seq: u32,
    /// The first sequence number behind it; a FIN counts one.
    pub end: u32,
    pub bytes: u32,
    /// The payload that it still takes; 0 if nothing may follow its last packet.
    room: u32,
    /// The first packet's payload.
    mss: u32,
    merge: u64,
    pub path: u32,
    pub flowcell: u16,
    flags: u8,
    /// The first packet's, and whether all have the same.
    id: IpId,
    is_fixed_id: bool,
    /// Whether it has been kept at the end of a poll.
    pub is_held: bool,
    /// The next in its flow's list, or [`NONE`].
    pub next: u32,
    /// When its first packet came.
    pub first: Time,
    /// When its last packet came.
    pub last: Time,
    packets: Vec<P>,
}

/// Segments by number. A segment that has gone up leaves its list of packets to the next, so
/// nothing is allocated in steady state.
#[derive(Clone, Debug)]
pub(super) struct Segments<P> {
    slots: Vec<Segment<P>>,
    free: Vec<u32>,
}

impl<P> Default for Segments<P> {
    fn default() -> Self {
        Segments { slots: Vec::new(), free: Vec::new() }
    }
}

impl<P: Copy> Segments<P> {
    /// Begins a segment with this packet.
    #[inline]
    pub fn begin<F>(&mut self, now: Time, arrival: &Arrival<F>, packet: P) -> u32 {
        let at = match self.free.pop() {
            Some(at) => at,
            None => self.add(),
        };
        let segment = &mut self.slots[at as usize];
        let room = IP_MAX.saturating_sub(u32::from(arrival.headers) + arrival.len);
        segment.seq = arrival.seq;
        segment.end = arrival.end();
        segment.bytes = arrival.len;
        segment.room = if is_single(arrival) { 0 } else { room };
        segment.mss = arrival.len;
        segment.merge = arrival.merge;
        segment.path = arrival.path;
        segment.flowcell = arrival.flowcell;
        segment.flags = arrival.flags;
        (segment.id, segment.is_fixed_id) = (arrival.id, false);
        segment.is_held = false;
        segment.next = NONE;
        segment.first = now;
        segment.last = now;
        segment.packets.push(packet);
        at
    }

    /// Adds the packet, if it continues the segment and what must be equal is (with `BY_CELL` the
    /// flowcell, too). Returns whether its last packet is now its last for good: it was short, or
    /// its flags end it; or else the list's next segment.
    ///
    /// # Errors
    /// The number of the list's next segment, if the packet does not continue this one.
    #[inline]
    pub fn append<const BY_CELL: bool, F>(
        &mut self,
        at: u32,
        now: Time,
        arrival: &Arrival<F>,
        packet: P,
    ) -> Result<bool, u32> {
        let segment = &mut self.slots[at as usize];
        let fits = (!BY_CELL || arrival.flowcell == segment.flowcell)
            && arrival.seq == segment.end
            && arrival.merge == segment.merge
            && (arrival.flags ^ segment.flags) & !FREE == 0
            && arrival.flags & tcp::CWR == 0
            && arrival.len.wrapping_sub(1) < segment.mss.min(segment.room)
            && !arrival.is_whole;
        let id = arrival.id.follows(segment.id, segment.packets.len(), segment.is_fixed_id);
        let Some(is_fixed_id) = id.filter(|_| fits) else { return Err(segment.next) };
        segment.is_fixed_id = is_fixed_id;
        segment.end = arrival.end();
        segment.bytes += arrival.len;
        segment.room -= arrival.len;
        let is_closed = arrival.len < segment.mss || arrival.flags & ENDING != 0;
        if is_closed {
            segment.room = 0;
        }
        segment.flags |= arrival.flags;
        segment.last = now;
        segment.packets.push(packet);
        Ok(is_closed)
    }

    /// Gives the segment to `out` and forgets it.
    #[inline]
    pub fn release<F: Copy>(
        &mut self,
        at: u32,
        flow: F,
        cause: Cause,
        counters: &mut Counters,
        out: &mut impl FnMut(Released<'_, F, P>),
    ) {
        let segment = &mut self.slots[at as usize];
        counters.count(cause, segment.packets.len(), segment.bytes);
        out(Released {
            flow,
            path: segment.path,
            seq: segment.seq,
            bytes: segment.bytes,
            mss: segment.mss,
            flowcell: segment.flowcell,
            flags: segment.flags,
            first: segment.first,
            cause,
            packets: &segment.packets,
        });
        segment.packets.clear();
        self.free.push(at);
    }

    #[cold]
    fn add(&mut self) -> u32 {
        self.slots.push(Segment {
            seq: 0,
            end: 0,
            bytes: 0,
            room: 0,
            mss: 0,
            merge: 0,
            path: 0,
            flowcell: 0,
            flags: 0,
            id: IpId::NONE,
            is_fixed_id: false,
            is_held: false,
            next: NONE,
            first: Time::ZERO,
            last: Time::ZERO,
            packets: Vec::with_capacity(64),
        });
        self.slots.len() as u32 - 1
    }
}

/// Gives a packet up by itself.
#[inline]
pub(super) fn pass<F: Copy, P>(
    now: Time,
    arrival: &Arrival<F>,
    packet: P,
    counters: &mut Counters,
    out: &mut impl FnMut(Released<'_, F, P>),
) {
    counters.count(Cause::Single, 1, arrival.len);
    out(Released {
        flow: arrival.flow,
        path: arrival.path,
        seq: arrival.seq,
        bytes: arrival.len,
        mss: arrival.len,
        flowcell: arrival.flowcell,
        flags: arrival.flags,
        first: now,
        cause: Cause::Single,
        packets: &[packet],
    });
}

impl<P> std::ops::Index<u32> for Segments<P> {
    type Output = Segment<P>;
    #[inline]
    fn index(&self, at: u32) -> &Segment<P> {
        &self.slots[at as usize]
    }
}
impl<P> std::ops::IndexMut<u32> for Segments<P> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut Segment<P> {
        &mut self.slots[at as usize]
    }
}
