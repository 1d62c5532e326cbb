//! Homa: what its packets' headers take, what they are called, and what a capture shows of them
//! (Montazeri et al., SIGCOMM 2018 §3; PlatformLab/Homa and HomaModule for the opcodes).
//!
//! Homa's implementations do not agree on headers, and each has more than 20 bytes behind IP's.
//! Here every packet has 40 in all, as TCP's and RoCE's have, so that transports are compared by
//! what they send and not by their headers. They hold the fields of the simulated protocol: the
//! opcode, the priority, the message by its connection and number there, and two words.
//!
//! | opcode | packet | first word | second word |
//! |---|---|---|---|
//! | 0x10 | DATA | the message's length | offset of the first payload byte |
//! | 0x11 | GRANT | up to where may be sent | |
//! | 0x12 | RESEND | first byte that is missing | how many are |
//! | 0x13 | UNKNOWN | | |
//! | 0x14 | BUSY | | |
//! | 0x17 | DONE | | |
//! | 0x18 | PING | | |
//!
//! Invariant: a header's length follows from the packet's size.

use super::{Body, NONE, Packet, Protocol, Record};
use crate::units::Time;

/// The headers of any of its packets: IP's and its own.
pub const HEADERS: u32 = 40;

/// The priority of grants and all else that has no payload: the highest. Source: Homa, SIGCOMM
/// 2018 §3.4.
pub const CONTROL_PRIORITY: u8 = 7;

/// Homa, as a capture shows it: IANA's protocol number.
pub const PROTOCOL: Protocol = Protocol {
    name: "homa",
    number: 146,
    checksum_at: 2,
    header,
    has_entropy_port: false,
    control_priority: Some(CONTROL_PRIORITY),
    late: |packet| match packet.body {
        Body::HomaData { number, .. } | Body::Ping { number, .. } => {
            Body::Done { slot: NONE, number }
        }
        other => other,
    },
};

/// Puts a packet's header behind `out`, with a checksum of zero.
fn header(out: &mut Vec<u8>, packet: &Packet, _: &[Record], _: Option<Time>) {
    let (opcode, priority, number, words) = match packet.body {
        Body::HomaData { offset, length, number, .. } => {
            (0x10, packet.priority(), number, [length, offset])
        }
        Body::Grant { upto, number, priority, .. } => (0x11, priority, number, [upto, 0]),
        Body::Resend { from, len, number, priority, .. } => (0x12, priority, number, [from, len]),
        Body::Unknown { number, .. } => (0x13, 0, number, [0; 2]),
        Body::Busy { number, .. } => (0x14, 0, number, [0; 2]),
        Body::Done { number, .. } => (0x17, 0, number, [0; 2]),
        Body::Ping { number, .. } => (0x18, 0, number, [0; 2]),
        _ => (0, 0, 0, [0; 2]), // none of Homa's
    };
    out.extend_from_slice(&[opcode, priority, 0, 0]);
    out.extend_from_slice(&packet.flow.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    words.into_iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::TrafficClass;

    fn built(body: Body) -> Vec<u8> {
        let class = TrafficClass::default().with_priority(6);
        let mut out = Vec::new();
        header(
            &mut out,
            &Packet { body, class, flow: 0x0102_0304, ..Packet::default() },
            &[],
            None,
        );
        assert_eq!(out.len() as u32, HEADERS - 20);
        out
    }

    #[test]
    fn headers_by_hand() {
        let data = built(Body::HomaData { offset: 1460, length: 100_000, slot: 9, number: 5 });
        assert_eq!(data[..12], [0x10, 6, 0, 0, 1, 2, 3, 4, 0, 5, 0, 0]);
        assert_eq!(data[12..], [0, 1, 0x86, 0xA0, 0, 0, 0x05, 0xB4]);
        let grant = built(Body::Grant { upto: 258, slot: 9, number: 5, priority: 3 });
        assert_eq!(
            (grant[..2].to_vec(), grant[12..].to_vec()),
            (vec![0x11, 3], vec![0, 0, 1, 2, 0, 0, 0, 0])
        );
        let resend = built(Body::Resend { from: 1, len: 2, slot: 9, number: 5, priority: 7 });
        assert_eq!(
            (resend[..2].to_vec(), resend[12..].to_vec()),
            (vec![0x12, 7], vec![0, 0, 0, 1, 0, 0, 0, 2])
        );
        let (slot, number) = (9, 5);
        let others = [
            Body::Unknown { slot, number },
            Body::Busy { slot, number },
            Body::Done { slot, number },
            Body::Ping { slot, number },
        ];
        assert_eq!(others.map(|body| built(body)[0]), [0x13, 0x14, 0x17, 0x18]);
    }
}
