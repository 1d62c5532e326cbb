//! TLT at the hosts: which packets are important, and the packets that it sends itself.
//!
//! A connection's [`Marker`] sees each acknowledgement before the transport does and each data packet as it is cut from its
//! segment. In a recovery it may put what it knows to be lost in the place of the transport's next segment; and when the
//! transport has sent what it may and the clock would stop, it forces a packet out, whatever window and NIC say.
//!
//! Invariant: a connection that is marked has an important packet in flight, or its echo, while anything of it is
//! unacknowledged; and the transport's own state knows nothing of what was forced.

use super::sending::{fill_packet, first_packet};
use super::*;
use millpond_core::importance::{Forced, Sent, Standing};

/// What hosts that run TLT have counted. Bytes are payload.
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
    /// Adds another's.
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

    /// A connection's, as it ends.
    pub fn add(&mut self, marker: &Marker) {
        self.merge(&MarkingCounters { sent: marker.sent, echoes: [0; 2], masked: u64::from(marker.masked) });
    }
}

/// Shows an acknowledgement to a connection's marker; whether the transport may see it.
#[inline(never)]
pub(super) fn sees(it: &mut Sending, packet: &Packet, ack: &AckIn<'_>) -> bool {
    let Some(marker) = &mut it.marker else { return true };
    let blocks = ack.sack.map_or(&[][..], |sack| &sack.blocks[..usize::from(sack.count)]);
    marker.on_ack(packet.class.importance(), ack.ack, blocks, it.sender.acked())
}

impl Hosts {
    /// Data that TLT has marked has arrived, and these are the acknowledgements to send: the one that answers it is its
    /// echo, if it is important, and leaves at once.
    #[inline(never)]
    pub(super) fn echo(
        &mut self,
        now: Time,
        slot: u32,
        importance: Importance,
        acks: [Option<AckOut>; 2],
        fabric: &mut Fabric,
    ) {
        let echo = importance.echo();
        if echo == Importance::Control {
            for ack in acks.into_iter().flatten() {
                self.acknowledge(now, slot, &ack, Importance::Control, fabric);
            }
            return;
        }
        self.counters.marking.echoes[usize::from(echo == Importance::ForcedEcho)] += 1;
        let [first, second] = acks;
        if let (Some(before), Some(_)) = (&first, &second) {
            self.acknowledge(now, slot, before, Importance::Control, fabric);
        }
        let it = self.receivers.at(slot);
        if let Some(ack) = second.or(first).or_else(|| it.receiver.acknowledge(&self.shared.transport)) {
            self.acknowledge(now, slot, &ack, echo, fabric);
        }
    }

    /// Whether the place of the transport's next segment, of at most `room` bytes, is taken by what is known to be lost.
    #[inline(never)]
    pub(super) fn sends_instead(&mut self, now: Time, slot: u32, room: u32, fabric: &mut Fabric) -> bool {
        let it = self.senders.at(slot);
        let transport = &self.shared.transport;
        if !it.sender.is_recovering() {
            return false;
        }
        let Some(next) = it.sender.peek(now, room, transport) else { return false };
        let Some(marker) = &mut it.marker else { return false };
        let Some(forced) = marker.instead(next.seq, self.shared.mss) else { return false };
        it.sender.displaced(forced.len);
        self.force_out(now, slot, forced, fabric);
        true
    }

    /// The transport has sent what it may: forces a packet out if the clock would stop.
    #[inline(never)]
    pub(super) fn keep_clock(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let it = self.senders.at(slot);
        let Some(marker) = &mut it.marker else { return };
        let standing = Standing {
            una: it.sender.acked(),
            nxt: it.sender.sent(),
            more: it.sender.would_send(&self.shared.transport),
            recovering: it.sender.is_recovering(),
        };
        let forced = marker.after_ack(standing, self.shared.mss);
        if let Some(forced) = forced {
            self.force_out(now, slot, forced, fabric);
        }
    }

    /// Sends one packet of what was sent before. It asks for no room in the NIC, as an acknowledgement does not.
    fn force_out(&mut self, now: Time, slot: u32, forced: Forced, fabric: &mut Fabric) {
        let shared = &*self.shared;
        let it = self.senders.at(slot);
        let Some(segment) = it.sender.forced(forced.seq, forced.len, &shared.transport) else { return };
        let mut packet = first_packet(now, slot, it, &segment);
        fill_packet(now, it, &mut packet, segment.len, shared);
        packet.class = packet.class.with_importance(forced.importance);
        let host = it.host;
        self.put(now, host, packet, fabric);
    }
}
