//! Ultra Ethernet transport: names of its packets, and the headers that a capture shows. Their
//! content follows the consortium's simulator, uet-htsim.
//!
//! A packet is IP, UDP to port 4793, and twelve bytes: 40 in all, as other transports have here.
//! With Ethernet's framing of 24 bytes that is the 64 of uet-htsim. Every packet that carries no
//! payload is as long, a trimmed one too.
//!
//! | type | packet | first word | second word |
//! |---|---|---|---|
//! | 1 | data, trimmed or whole | its sequence number | up to where the sender wants credit |
//! | 2 | ACK | the next number expected | the number that caused it |
//! | 3 | NACK | the number that was trimmed | |
//! | 4 | PULL | credit, counted from the beginning | |
//! | 5 | probe | the last number sent | as of data |
//!
//! Sequence numbers count packets. The entropy value, by which switches choose a path, is in the
//! UDP source port.
//!
//! Invariant: a header's length follows from the packet's size.

use super::{Body, NONE, Packet, Protocol, Record, flags};
use crate::units::Time;

/// The headers of any of its packets: IP's, UDP's and its own.
pub const HEADERS: u32 = 40;

/// The priority of all that has no payload: the highest.
pub const CONTROL_PRIORITY: u8 = 7;

/// Ultra Ethernet transport, as a capture shows it.
pub const PROTOCOL: Protocol = Protocol {
    name: "uet",
    number: 17,
    checksum_at: 6,
    header,
    has_entropy_port: true,
    control_priority: Some(CONTROL_PRIORITY),
    late: |packet| match packet.body {
        Body::UetData { psn, .. } | Body::UetProbe { psn, .. } => {
            Body::UetAck { next: psn + 1, cause: psn, slot: NONE }
        }
        other => other,
    },
};

const PORT: u16 = 4793;

/// The content of an ACK beside its two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selective {
    /// Bytes on the wire that have come so far, of whatever packets.
    pub bytes: u64,
    /// Bit i: packet `base + i` has come.
    pub bitmap: u64,
    /// The first number of the bitmap.
    pub base: u32,
    /// Packets that have come beyond the next one expected.
    pub ahead: u32,
    /// The entropy value of the packet that caused it.
    pub value: u16,
}

/// The UDP source port: the entropy value of what has one.
fn value(packet: &Packet) -> u16 {
    match packet.body {
        Body::UetData { value, .. } | Body::UetProbe { value, .. } => value,
        _ => packet.entropy as u16,
    }
}

/// Puts a packet's header behind `out`, with a checksum of zero.
fn header(out: &mut Vec<u8>, packet: &Packet, _: &[Record], _: Option<Time>) {
    let begin = out.len();
    let (kind, words) = match packet.body {
        Body::UetData { psn, target, .. } => (1, [psn, target]),
        Body::UetAck { next, cause, .. } => (2, [next, cause]),
        Body::UetNack { psn, .. } => (3, [psn, 0]),
        Body::UetPull { credit, .. } => (4, [credit, 0]),
        Body::UetProbe { psn, target, .. } => (5, [psn, target]),
        _ => (0, [0; 2]), // none of its
    };
    let asks = u8::from(packet.has(flags::ASKS));
    let again = u8::from(packet.has(flags::RETRANSMISSION)) << 1;
    let trimmed = u8::from(packet.has(flags::TRIMMED)) << 2;
    let slow = u8::from(matches!(packet.body, Body::UetPull { is_slow: true, .. })) << 3;
    out.extend_from_slice(&value(packet).to_be_bytes());
    out.extend_from_slice(&PORT.to_be_bytes());
    let length = (HEADERS - 20) as u16 + packet.payload;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&[0, 0, kind, asks | again | trimmed | slow, 0, 0]);
    words.into_iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    debug_assert_eq!((out.len() - begin) as u32, HEADERS - 20);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(body: Body, flags: u16) -> Vec<u8> {
        let mut out = Vec::new();
        let packet = Packet { body, flags, entropy: 0x0001_8002, ..Packet::default() };
        header(&mut out, &packet, &[], None);
        assert_eq!(out.len() as u32, HEADERS - 20);
        out
    }

    #[test]
    fn headers_by_hand() {
        let data =
            built(Body::UetData { psn: 258, target: 7, slot: 9, value: 0x8002 }, flags::ASKS);
        assert_eq!(data[..8], [0x80, 2, 0x12, 0xb9, 0, 20, 0, 0]);
        assert_eq!(data[8..], [1, 1, 0, 0, 0, 0, 1, 2, 0, 0, 0, 7]);
        let ack = built(Body::UetAck { next: 3, cause: 5, slot: 9 }, flags::RETRANSMISSION);
        assert_eq!(ack[8..], [2, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 5]);
        let slot = 9;
        let others = [
            Body::UetNack { psn: 1, slot, value: 4 },
            Body::UetPull { credit: 1, slot, is_slow: true },
            Body::UetProbe { psn: 1, target: 0, slot, value: 4 },
        ];
        assert_eq!(others.map(|body| built(body, 0)[8..10].to_vec()), [[3, 0], [4, 8], [5, 0]]);
    }
}
