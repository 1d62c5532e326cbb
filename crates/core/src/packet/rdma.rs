//! RDMA over Converged Ethernet, version 2: what its packets' headers take, what they are called,
//! and what a capture shows of them (InfiniBand Architecture Specification 1.2.1, annexes A16 and
//! A17).
//!
//! A packet is IP, UDP to port 4791, and the base transport header. Acknowledgements have the AETH
//! behind it, which distinguishes them from a NACK, and a CNP 16 reserved bytes. The invariant CRC
//! at a packet's end counts as framing here, as Ethernet's does.
//!
//! A packet sequence number in a capture is the offset of the first byte, cut to 24 bits: a real
//! one counts packets. All data is shown as the middle of an RDMA WRITE, whose ends have a further
//! header. In-network telemetry follows the headers as HPCC's released simulator lays it out.
//!
//! Invariant: a header's length follows from the packet's size.

use super::telemetry::{self, Hop, Telemetry};
use super::{Body, NONE, Packet, Protocol, Record, flags};
use crate::units::Time;

/// The headers of data: IP's, UDP's and the base transport header.
pub const HEADERS: u32 = 40;
/// The bytes of an acknowledgement beside them: the AETH.
pub const ACK_BYTES: u32 = 4;
/// The bytes of a CNP beside them.
pub const CNP_BYTES: u32 = 16;

/// RoCEv2, as a capture shows it.
pub const PROTOCOL: Protocol = Protocol {
    name: "rocev2",
    number: 17,
    checksum_at: 6,
    header,
    has_entropy_port: false,
    control_priority: None,
    late: |packet| Body::RdmaAck {
        ack: packet.seq() + u64::from(packet.payload),
        slot: NONE,
        hops: 0,
    },
};

/// Where RoCEv2 listens.
const PORT: u16 = 4791;
/// The first of the ports that stand for a queue pair.
const EPHEMERAL: u32 = 49_152;

/// Operations of the base transport header.
mod operation {
    pub const WRITE_MIDDLE: u8 = 0x07;
    pub const ACKNOWLEDGE: u8 = 0x11;
    pub const CNP: u8 = 0x81;
}

/// The syndrome in the AETH: an acknowledgement without a limit of credits, or "sequence error".
const SYNDROME_ACK: u8 = 0x1F;
const SYNDROME_NACK: u8 = 0x60;

/// Puts a packet's header behind `out`, with a checksum of zero.
fn header(out: &mut Vec<u8>, packet: &Packet, records: &[Record], _: Option<Time>) {
    let begin = out.len();
    let (operation, number) = match packet.body {
        Body::RdmaAck { ack, .. } | Body::Nack { ack, .. } => (operation::ACKNOWLEDGE, ack),
        Body::Cnp { .. } => (operation::CNP, 0),
        _ => (operation::WRITE_MIDDLE, packet.seq()),
    };
    let port = (EPHEMERAL + packet.flow % (1 << 14)) as u16;
    out.extend_from_slice(&port.to_be_bytes());
    out.extend_from_slice(&PORT.to_be_bytes());
    out.extend_from_slice(&[0; 4]); // length and checksum
    // Migrated, no padding, version 0; the default partition; to the queue pair with the flow's
    // number.
    out.extend_from_slice(&[operation, 0x40, 0xFF, 0xFF, 0]);
    out.extend_from_slice(&packet.flow.to_be_bytes()[1..]);
    out.push(if packet.has(flags::ASKS) { 0x80 } else { 0 });
    out.extend_from_slice(&(number as u32).to_be_bytes()[1..]);
    match packet.body {
        Body::RdmaAck { .. } => out.extend_from_slice(&[SYNDROME_ACK, 0, 0, 0]),
        Body::Nack { .. } => out.extend_from_slice(&[SYNDROME_NACK, 0, 0, 0]),
        Body::Cnp { .. } => out.extend_from_slice(&[0; CNP_BYTES as usize]),
        _ => {}
    }
    if let Some(telemetry) = Record::find::<Telemetry>(records) {
        put_telemetry(out, telemetry);
    }
    let length = (out.len() - begin) as u32 + u32::from(packet.payload);
    out[begin + 4..begin + 6].copy_from_slice(&(length as u16).to_be_bytes());
}

/// How many switches there are, and eight bytes for each that there can be.
fn put_telemetry(out: &mut Vec<u8>, record: &Telemetry) {
    let end = out.len() + telemetry::BYTES as usize;
    out.extend_from_slice(&[(record.hops().len() << 4) as u8, 0]);
    for hop in record.hops() {
        out.extend_from_slice(&bits(&hop).to_be_bytes());
    }
    out.resize(end, 0);
}

/// The rate's number in 3 bits, nanoseconds in 24, units of 128 bytes sent in 20 and of 80 bytes
/// waiting in 17.
fn bits(hop: &Hop) -> u64 {
    let low = |value: u64, bits: u32| value & ((1 << bits) - 1);
    let gbps = hop.rate.bps() / 1_000_000_000;
    let rate =
        [25, 50, 100, 200, 400].into_iter().position(|known| known == gbps).unwrap_or(7) as u64;
    rate << 61
        | low(hop.at.as_ps() / 1_000, 24) << 37
        | low(hop.sent / 128, 20) << 17
        | low(hop.queue / 80, 17)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    fn built(packet: &Packet, records: &[Record]) -> Vec<u8> {
        let mut out = Vec::new();
        header(&mut out, packet, records, None);
        out
    }

    #[test]
    fn data_by_hand() {
        let body = Body::RdmaData { seq: (1 << 24) + 9, slot: 77, flowcell: 3 };
        let packet = Packet {
            body,
            flow: (1 << 24) + 5,
            payload: 1000,
            flags: flags::ASKS,
            ..Packet::default()
        };
        let header = built(&packet, &[]);
        assert_eq!(header.len() as u32, HEADERS - 20);
        // Port 49157 to 4791, 1020 bytes; the pair's number and the sequence number have 24 bits.
        assert_eq!(header[..8], [0xC0, 5, 0x12, 0xB7, 0x03, 0xFC, 0, 0]);
        assert_eq!(header[8..], [0x07, 0x40, 0xFF, 0xFF, 0, 0, 0, 5, 0x80, 0, 0, 9]);
    }

    #[test]
    fn answers_say_what_they_are() {
        let of = |body| built(&Packet { body, ..Packet::default() }, &[]);
        let ack = of(Body::RdmaAck { ack: 4000, slot: 1, hops: 3 });
        let nack = of(Body::Nack { ack: 4000, slot: 1, hops: 3 });
        let cnp = of(Body::Cnp { slot: 1 });
        assert_eq!([ack.len() as u32, nack.len() as u32], [HEADERS + ACK_BYTES - 20; 2]);
        assert_eq!((ack[8], ack[17..20].to_vec(), ack[20]), (0x11, vec![0, 0x0F, 0xA0], 0x1F));
        assert_eq!((nack[8], nack[20]), (0x11, 0x60));
        assert_eq!((cnp[8], cnp.len() as u32), (0x81, HEADERS + CNP_BYTES - 20));
    }

    #[test]
    fn telemetry_is_cut_to_its_bits() {
        let mut record = Telemetry::default();
        let at = Time::from_ns((1 << 24) + 3);
        record.push(Hop { at, sent: 256, queue: 240, rate: Rate::from_gbps(100) });
        let header = built(
            &Packet { body: Body::RdmaData { seq: 0, slot: 0, flowcell: 0 }, ..Packet::default() },
            &[Record::Telemetry(record)],
        );
        assert_eq!(header.len() as u32, HEADERS - 20 + telemetry::BYTES);
        assert_eq!(header[20..22], [0x10, 0]);
        let word = u64::from_be_bytes(header[22..30].try_into().unwrap());
        assert_eq!(
            (word >> 61, word >> 37 & 0xFF_FFFF, word >> 17 & 0xF_FFFF, word & 0x1_FFFF),
            (2, 3, 2, 3)
        );
    }
}
