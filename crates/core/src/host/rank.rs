//! Rank: how urgent a data packet is, by [`Ranker`], one a connection.

use super::{Stream, passes};
use crate::edge::{Outbound, Ranker};
use crate::packet::{Packet, flags};
use crate::units::Time;

/// Gives a data packet its rank.
#[inline]
pub(super) fn stamp(ranker: &mut Ranker, now: Time, packet: &mut Packet, stream: &impl Stream) {
    passes!(Rank);
    let (again, written, acked) =
        (packet.has(flags::RETRANSMISSION), stream.written(), stream.acked());
    packet.rank = ranker.rank(
        now,
        &Outbound { seq: packet.seq(), len: u32::from(packet.payload), again, written, acked },
    );
}
