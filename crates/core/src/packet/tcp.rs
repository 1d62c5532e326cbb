//! TCP's packets: what their headers take, what they are called, and what a capture shows of them.
//!
//! Sequence numbers in a capture are those of a connection whose first one is 0: SYN takes it, and
//! byte o of the stream is 1 + o, cut to 32 bits (RFC 9293 §3.4). The simulator acknowledges on a
//! connection of its own each way, so data always acknowledges 1. It has no FIN.
//!
//! Invariant: a header's length follows from the packet's size, plus 12 bytes where
//! timestamps are shown.

use super::{Body, Mapping, NONE, Packet, Protocol, Record, flags};
use crate::units::Time;

/// IP's header and TCP's, without options.
pub const HEADERS: u32 = 40;

/// TCP, as a capture shows it.
pub const PROTOCOL: Protocol = Protocol {
    name: "tcp",
    number: 6,
    checksum_at: 16,
    header,
    has_entropy_port: false,
    control_priority: None,
    late: |packet| Body::Ack { ack: packet.seq() + u64::from(packet.payload), slot: NONE, hops: 0 },
};

const HEADER: usize = 20;
/// The most that TCP options can take.
const OPTIONS_MAX: usize = 40;
/// The first of the ports that stand for a flow.
const PORT: u32 = 1 << 15;
/// From one subflow's port to the next: a prime, so that subflows meet the ports of few flows.
const SUBFLOW_PORTS: u32 = 4099;

/// TCP's bits.
mod bit {
    pub const SYN: u8 = 2;
    pub const PSH: u8 = 8;
    pub const ACK: u8 = 16;
    pub const ECE: u8 = 64;
    pub const CWR: u8 = 128;
}

/// Up to four received ranges beyond the cumulative acknowledgement, most recent first (RFC 2018
/// §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sack {
    /// `[from, to)` each.
    pub blocks: [(u64, u64); 4],
    pub count: u8,
}

impl Sack {
    /// Bytes that the option takes (RFC 2018 §3): two and eight a block, padded to a multiple of
    /// four.
    #[inline]
    pub fn option_len(&self) -> u32 {
        if self.count == 0 { 0 } else { 4 + 8 * u32::from(self.count) }
    }
}

/// Puts a packet's header behind `out`, with a checksum of zero. `at`: when it passes, if its
/// timestamps are to be shown.
fn header(out: &mut Vec<u8>, packet: &Packet, records: &[Record], at: Option<Time>) {
    let mut options = [0u8; OPTIONS_MAX];
    let used = put_options(&mut options, at.map(|at| stamps(packet, at)), Record::find(records));
    // Each subflow of an MPTCP has a port of its own.
    let subflow = Record::find::<Mapping>(records).map_or(0, |mapping| u32::from(mapping.subflow));
    let low = (packet.flow.wrapping_add(subflow * SUBFLOW_PORTS) % PORT) + PORT;
    let high = (packet.flow / PORT % PORT) + PORT;
    let (mut bits, seq, ack, is_by_sender) = match packet.body {
        Body::Data { seq, .. } => (bit::ACK, 1 + seq, 1, true),
        Body::Ack { ack, .. } => (bit::ACK, 1, 1 + ack, false),
        Body::Syn { .. } => (bit::SYN, 0, 0, true),
        Body::SynAck { .. } => (bit::SYN | bit::ACK, 0, 1, false),
        _ => (0, 0, 0, true), // none of TCP's
    };
    let shown = [
        (flags::ECE, bit::ECE),
        (flags::CWR, bit::CWR),
        (if packet.is_data() { flags::LAST } else { 0 }, bit::PSH),
    ];
    for (flag, bit) in shown {
        bits |= if packet.has(flag) { bit } else { 0 };
    }
    let (source, destination) = if is_by_sender { (low, high) } else { (high, low) };
    out.extend_from_slice(&(source as u16).to_be_bytes());
    out.extend_from_slice(&(destination as u16).to_be_bytes());
    out.extend_from_slice(&(seq as u32).to_be_bytes());
    out.extend_from_slice(&(ack as u32).to_be_bytes());
    out.extend_from_slice(&[(((HEADER + used) / 4) << 4) as u8, bits, 0xFF, 0xFF, 0, 0, 0, 0]);
    out.extend_from_slice(&options[..used]);
}

/// TSval and TSecr in microseconds: data shows when it was handed down, an answer now and the echo.
fn stamps(packet: &Packet, at: Time) -> (u32, u32) {
    let us = |time: Time| (time.as_ps() / 1_000_000) as u32;
    match packet.body {
        Body::Ack { .. } | Body::SynAck { .. } => (us(at), us(packet.stamp)),
        _ => (us(packet.stamp), 0),
    }
}

/// Timestamps (RFC 7323 §3.2) and SACK blocks (RFC 2018 §3), padded in front as hosts do; returns
/// their length.
fn put_options(
    out: &mut [u8; OPTIONS_MAX],
    stamps: Option<(u32, u32)>,
    sack: Option<&Sack>,
) -> usize {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    if let Some((value, echo)) = stamps {
        put(&[1, 1, 8, 10]);
        put(&value.to_be_bytes());
        put(&echo.to_be_bytes());
    }
    let room = if stamps.is_some() { 3 } else { 4 };
    if let Some(sack) = sack.filter(|sack| sack.count > 0) {
        let count = (sack.count as usize).min(room);
        put(&[1, 1, 5, 2 + 8 * count as u8]);
        for (from, to) in &sack.blocks[..count] {
            put(&(1 + *from as u32).to_be_bytes());
            put(&(1 + *to as u32).to_be_bytes());
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(packet: &Packet, records: &[Record], at: Option<Time>) -> Vec<u8> {
        let mut out = Vec::new();
        header(&mut out, packet, records, at);
        out
    }

    #[test]
    fn data_by_hand() {
        let body = Body::Data { seq: (1 << 32) + 9, slot: 77, flowcell: 3 };
        let flags = flags::LAST | flags::CWR;
        let header =
            built(&Packet { body, flow: (3 << 15) + 5, flags, ..Packet::default() }, &[], None);
        // Ports 32773 and 32771, sequence 1 + 9 after 2^32, acknowledgement 1.
        assert_eq!(header[..12], [0x80, 5, 0x80, 3, 0, 0, 0, 10, 0, 0, 0, 1]);
        assert_eq!(header[12..], [0x50, bit::ACK | bit::PSH | bit::CWR, 0xFF, 0xFF, 0, 0, 0, 0]);
    }

    #[test]
    fn an_acknowledgement_shows_its_blocks_and_the_other_direction() {
        let body = Body::Ack { ack: 2920, slot: 1234, hops: 3 };
        let packet = Packet { body, flow: 5, flags: flags::ECE, ..Packet::default() };
        let sack = Sack { blocks: [(4380, 5840), (7300, 8760), (0, 0), (0, 0)], count: 2 };
        let header = built(&packet, &[Record::Sack(sack)], None);
        assert_eq!(header.len() as u32, HEADERS - 20 + sack.option_len());
        assert_eq!(header[..12], [0x80, 0, 0x80, 5, 0, 0, 0, 1, 0, 0, 0x0B, 0x69]);
        assert_eq!(header[12..14], [0xA0, bit::ACK | bit::ECE]);
        assert_eq!(header[20..32], [1, 1, 5, 18, 0, 0, 0x11, 0x1D, 0, 0, 0x16, 0xD1]);
        let full = Sack { blocks: [(1, 2); 4], count: 4 };
        assert_eq!(built(&packet, &[Record::Sack(full)], Some(Time::ZERO)).len(), 20 + 12 + 28);
    }

    #[test]
    fn handshakes_take_the_first_number() {
        let numbers = |body| {
            let header = built(&Packet { body, ..Packet::default() }, &[], None);
            (header[7], header[11], header[13])
        };
        assert_eq!(numbers(Body::Syn { slot: 98, flowcell: 1 }), (0, 0, bit::SYN));
        assert_eq!(numbers(Body::SynAck { slot: 98 }), (0, 1, bit::SYN | bit::ACK));
    }
}
