//! Importance (TLT): which packets must not be dropped.
//!
//! The machine is [`Marker`], one a connection. It sees each acknowledgement before the transport
//! does, and each data packet as it is cut from its segment. A packet that it forces out enters the
//! node by [`Host::force`](super::Host::force).
//!
//! Invariant: the transport's own state has no trace of what was forced.

use super::passes;
use crate::counters::Named;
use crate::importance::{Marker, Sent};
use crate::packet::Packet;

/// The counts of hosts that run TLT. Bytes are payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct MarkingCounters {
    /// Data packets: unimportant, important, forced.
    pub sent: [Sent; 3],
    /// Acknowledgements: of important packets, of forced ones.
    pub echoes: [u64; 2],
    /// Segments forced out to repair a loss that the congestion control may never see.
    pub masked: u64,
}

impl MarkingCounters {
    /// Adds the counts of another marker.
    pub fn merge(&mut self, other: &MarkingCounters) {
        for (ours, theirs) in self.sent.iter_mut().zip(other.sent) {
            ours.packets += theirs.packets;
            ours.bytes += theirs.bytes;
        }
        for (ours, theirs) in self.echoes.iter_mut().zip(other.echoes) {
            *ours += theirs;
        }
        self.masked += other.masked;
    }

    /// Adds each count to `named`, by its name.
    pub fn report(&self, named: &mut Named) {
        for (importance, sent) in ["unimportant", "important", "forced"].into_iter().zip(self.sent)
        {
            named.add(format!("{importance}_packets"), sent.packets);
            named.add(format!("{importance}_bytes"), sent.bytes);
        }
        let [echoes, forced_echoes] = self.echoes;
        named.add("echoes", echoes);
        named.add("forced_echoes", forced_echoes);
        named.add("masked_losses", self.masked);
    }

    pub fn add(&mut self, marker: &Marker) {
        let (sent, masked) = marker.counted();
        self.merge(&MarkingCounters { sent, echoes: [0; 2], masked: u64::from(masked) });
    }
}

/// Gives a data packet its importance. `is_last`: the transport has nothing to send behind it;
/// `ends_message`: nor has its message.
#[inline]
pub(super) fn stamp(marker: &mut Marker, packet: &mut Packet, is_last: bool, ends_message: bool) {
    passes!(Importance);
    let importance =
        marker.on_packet(packet.seq(), u32::from(packet.payload), is_last, ends_message);
    packet.class = packet.class.with_importance(importance);
}
