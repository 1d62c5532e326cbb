//! The audit: what was injected was delivered, dropped for a reason, or is in flight. In packets and in bytes.
//!
//! Counted where it happens, checked at the end of every run; a difference is an error, never a warning.

use millpond_core::counters::DropReason;

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Tally {
    /// One more packet.
    #[inline]
    pub fn add(&mut self, size: u16) {
        self.packets += 1;
        self.bytes += size as u64;
    }
    /// Without another tally, which is part of it.
    pub fn take_back(&mut self, other: Tally) {
        self.packets -= other.packets;
        self.bytes -= other.bytes;
    }
    /// All of another tally.
    pub fn merge(&mut self, other: Tally) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// One partition's counts, or the sum over all.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Packets that hosts gave to their NICs.
    pub injected: Tally,
    /// Packets that reached a host.
    pub delivered: Tally,
    /// Packets dropped, by reason.
    pub dropped: [Tally; DropReason::ALL.len()],
    /// Packets on links and in queues, counted at the end.
    pub in_flight: Tally,
    /// Packets that have crossed any link: packet-hops.
    pub hops: u64,
    /// Events served.
    pub events: u64,
    /// Packets in a pool that are in no link, no queue and no host's hands, at the end. Must be zero.
    pub lost: u64,
}

impl Audit {
    /// Counts a drop.
    pub fn drop(&mut self, size: u16, reason: DropReason) {
        self.dropped[reason as usize].add(size);
    }

    /// Counts a drop of what had reached its host.
    pub fn drop_delivered(&mut self, packets: Tally, reason: DropReason) {
        self.delivered.take_back(packets);
        self.dropped[reason as usize].merge(packets);
    }

    /// All drops.
    pub fn dropped_total(&self) -> Tally {
        self.dropped.iter().fold(Tally::default(), |mut sum, t| {
            sum.merge(*t);
            sum
        })
    }

    /// Adds another partition's counts.
    pub fn merge(&mut self, other: &Audit) {
        self.injected.merge(other.injected);
        self.delivered.merge(other.delivered);
        self.in_flight.merge(other.in_flight);
        for (mine, its) in self.dropped.iter_mut().zip(&other.dropped) {
            mine.merge(*its);
        }
        self.hops += other.hops;
        self.events += other.events;
        self.lost += other.lost;
    }

    /// Whether nothing was created or lost.
    pub fn is_conserved(&self) -> bool {
        let mut out = self.delivered;
        out.merge(self.dropped_total());
        out.merge(self.in_flight);
        out == self.injected && self.lost == 0
    }
}
