//! The audit: what was injected was delivered, dropped for a reason, or is in flight. In packets
//! and in bytes.
//!
//! Counted where it happens, checked at the end of every run; a difference is an error, never a
//! warning.

use millpond_core::counters::DropReason;
use millpond_core::packet::{Kind, Packet, flags};

/// The kinds of dropped packets, in the order of reports: what packets are for in any protocol, and
/// apart the data that was sent before.
pub const DROPPED: [&str; 9] =
    ["data", "retransmission", "ack", "syn", "syn-ack", "nack", "cnp", "grant", "overlay"];

/// Where a packet counts in [`DROPPED`].
fn dropped_as(packet: &Packet) -> usize {
    match packet.kind() {
        Kind::Data | Kind::RdmaData | Kind::HomaData | Kind::UetData => {
            usize::from(packet.has(flags::RETRANSMISSION))
        }
        Kind::Ack | Kind::RdmaAck | Kind::Done | Kind::UetAck => 2,
        Kind::Syn => 3,
        Kind::SynAck => 4,
        Kind::Nack | Kind::Resend | Kind::Unknown | Kind::UetNack => 5,
        Kind::Cnp => 6,
        Kind::Grant | Kind::Busy | Kind::Ping | Kind::UetPull | Kind::UetProbe => 7,
        Kind::Overlay => 8,
    }
}

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
    /// The same packets by [`DROPPED`].
    pub dropped_as: [u64; DROPPED.len()],
    /// Packets trimmed, and the bytes that were cut off them.
    pub trimmed: Tally,
    /// Packets on links and in queues, counted at the end.
    pub in_flight: Tally,
    /// Packets that have crossed any link: packet-hops.
    pub hops: u64,
    pub events: u64,
    /// Packets in a pool that are in no link, no queue and no host's hands, at the end. Must be
    /// zero.
    pub lost: u64,
}

impl Audit {
    pub fn drop(&mut self, packet: &Packet, reason: DropReason) {
        self.dropped[reason as usize].add(packet.size);
        self.dropped_as[dropped_as(packet)] += 1;
    }

    /// Counts a drop of what had reached its host: packets that were merged, of which this is the
    /// first.
    pub fn drop_delivered(&mut self, first: &Packet, packets: Tally, reason: DropReason) {
        self.delivered.take_back(packets);
        self.dropped[reason as usize].merge(packets);
        self.dropped_as[dropped_as(first)] += packets.packets;
    }

    pub fn dropped_total(&self) -> Tally {
        self.dropped.iter().fold(Tally::default(), |mut sum, t| {
            sum.merge(*t);
            sum
        })
    }

    pub fn merge(&mut self, other: &Audit) {
        self.injected.merge(other.injected);
        self.delivered.merge(other.delivered);
        self.in_flight.merge(other.in_flight);
        self.trimmed.merge(other.trimmed);
        for (mine, its) in self.dropped.iter_mut().zip(&other.dropped) {
            mine.merge(*its);
        }
        for (mine, its) in self.dropped_as.iter_mut().zip(&other.dropped_as) {
            *mine += its;
        }
        self.hops += other.hops;
        self.events += other.events;
        self.lost += other.lost;
    }

    /// Whether nothing was created or lost, and every drop has its reason and its kind.
    pub fn is_conserved(&self) -> bool {
        let (mut out, dropped) = (self.delivered, self.dropped_total());
        out.merge(dropped);
        out.merge(self.in_flight);
        out.bytes += self.trimmed.bytes;
        out == self.injected
            && self.lost == 0
            && self.dropped_as.iter().sum::<u64>() == dropped.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_core::packet::Body;

    #[test]
    fn what_is_dropped_counts_by_its_kind_and_data_that_was_sent_before_apart() {
        let packet = |body, flags| Packet { body, flags, size: 100, ..Packet::default() };
        let data = Body::default();
        let mut audit = Audit { injected: Tally { packets: 7, bytes: 700 }, ..Audit::default() };
        audit.drop(&packet(data, flags::LAST), DropReason::QueueFull);
        audit.drop(&packet(data, flags::RETRANSMISSION), DropReason::Early);
        audit.drop(&packet(Body::Ack { ack: 0, slot: 0, hops: 0 }, 0), DropReason::Early);
        audit.drop(
            &packet(Body::Syn { slot: 0, flowcell: 0 }, flags::RETRANSMISSION),
            DropReason::QueueFull,
        );
        audit.delivered = Tally { packets: 3, bytes: 300 };
        audit.drop_delivered(
            &packet(data, 0),
            Tally { packets: 2, bytes: 200 },
            DropReason::ReceiveRing,
        );
        let counted: Vec<(&str, u64)> =
            DROPPED.into_iter().zip(audit.dropped_as).filter(|(_, n)| *n > 0).collect();
        assert_eq!(counted, [("data", 3), ("retransmission", 1), ("ack", 1), ("syn", 1)]);
        assert!(audit.is_conserved());
        audit.dropped_as[4] += 1;
        assert!(!audit.is_conserved(), "a kind without a reason");
    }
}
