//! A capture as a pcapng file: Ethernet, IPv4 and TCP headers for each packet that the simulator has moved.
//!
//! Times are nanoseconds of virtual time (a picosecond's fraction is cut off), from 1970 on as the format wants. Host h
//! is 10.0.0.1 + h. A flow's sender has the port 32768 + (flow mod 2^15) and its receiver 32768 + (flow / 2^15 mod 2^15),
//! so flows of two hosts are told apart up to 2^30. Sequence numbers are those of a connection whose first one is 0: SYN
//! takes it, and byte o of the stream is 1 + o, cut to 32 bits. Payload is zeros. The simulator acknowledges on a
//! connection of its own each way, so data always acknowledges 1; it has no FIN. A pause's frame is its family's (`pfc`).
//!
//! Invariant: the IP length is what the packet took on the simulated wire without framing (plus 12 bytes where TCP
//! timestamps are asked for), checksums are right for the whole packet, and the bytes depend on the records alone.

mod pfc;

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use millpond_core::packet::flags;
use millpond_core::switch::pause::PauseTarget;
use millpond_core::{Packet, Sack, Time};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness};

use crate::error::{At, Error, Result};
use crate::record::{PacketRecord, PauseRecord};

const ETHERNET: usize = 14;
const IP: usize = 20;
const TCP: usize = 20;
/// The most that TCP options can take.
const OPTIONS_MAX: usize = 40;
const PORT: u16 = 1 << 15;

/// TCP's bits.
mod bit {
    pub const SYN: u8 = 2;
    pub const PSH: u8 = 8;
    pub const ACK: u8 = 16;
    pub const ECE: u8 = 64;
    pub const CWR: u8 = 128;
}

/// One capture being written.
pub(crate) struct Capture {
    path: PathBuf,
    writer: PcapNgWriter<BufWriter<File>>,
    snaplen: u32,
    timestamps: bool,
    /// The frame under construction.
    frame: Vec<u8>,
}

impl Capture {
    /// Creates the file for the interface `name`.
    pub fn create(path: &Path, name: &str, snaplen: u32, timestamps: bool) -> Result<Capture> {
        let file = BufWriter::with_capacity(1 << 18, File::create(path).at("create", path)?);
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed("millpond"))],
            ..SectionHeaderBlock::default()
        };
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: if snaplen == u32::MAX { 0 } else { snaplen },
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
            ],
        };
        let mut writer = PcapNgWriter::with_section_header(file, section).map_err(|e| wrong(path, e))?;
        writer.write_pcapng_block(interface).map_err(|e| wrong(path, e))?;
        Ok(Capture { path: path.to_path_buf(), writer, snaplen, timestamps, frame: Vec::new() })
    }

    /// Adds a packet.
    pub fn write(&mut self, record: &PacketRecord) -> Result<()> {
        let whole = frame(&mut self.frame, record, self.timestamps);
        self.put(record.at, record.outgoing, whole)
    }

    /// Adds a PAUSE frame.
    pub fn write_pause(&mut self, record: &PauseRecord) -> Result<()> {
        match record.frame.target {
            PauseTarget::Priority(priority) => pfc::frame(&mut self.frame, record, priority),
        }
        let whole = self.frame.len() as u32;
        self.put(record.at, record.outgoing, whole)
    }

    /// Adds the frame under construction, which is `whole` bytes long.
    fn put(&mut self, at: Time, outgoing: bool, whole: u32) -> Result<()> {
        self.frame.resize((whole as usize).min(self.snaplen as usize), 0);
        let direction = if outgoing { 2 } else { 1 };
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(at.as_ps() / 1_000),
            original_len: whole,
            data: Cow::Borrowed(&self.frame),
            options: vec![EnhancedPacketOption::Flags(direction)],
        };
        self.writer.write_block(&block.into_block()).map(|_| ()).map_err(|e| wrong(&self.path, e))
    }

    /// Writes the rest, down to the disk.
    pub fn close(mut self) -> Result<()> {
        let file = self.writer.get_mut();
        file.flush().at("write", &self.path)?;
        file.get_ref().sync_all().at("write", &self.path)
    }
}

fn wrong(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Malformed { path: path.to_path_buf(), reason: error.to_string() }
}

/// Puts the headers into `out` and returns the length of the whole frame, payload included.
fn frame(out: &mut Vec<u8>, record: &PacketRecord, timestamps: bool) -> u32 {
    let p = &record.packet;
    let mut options = [0u8; OPTIONS_MAX];
    let stamps = timestamps.then(|| stamps(p, record.at));
    let used = put_options(&mut options, stamps, record.sack.as_ref());
    let options = &options[..used];
    let segment = TCP + options.len() + p.payload as usize;
    let total = (IP + segment).min(65_535) as u16;
    out.clear();
    out.extend_from_slice(&mac(p.dst));
    out.extend_from_slice(&mac(p.src));
    out.extend_from_slice(&[0x08, 0x00]);
    put_ip(out, p, total);
    put_tcp(out, p, options, segment as u16);
    (ETHERNET + total as usize) as u32
}

fn mac(host: u32) -> [u8; 6] {
    let [a, b, c, d] = host.to_be_bytes();
    [0x02, 0, a, b, c, d]
}

fn address(host: u32) -> [u8; 4] {
    (0x0A00_0000u32 | ((host + 1) & 0x00FF_FFFF)).to_be_bytes()
}

fn put_ip(out: &mut Vec<u8>, p: &Packet, total: u16) {
    let from = out.len();
    let [high, low] = total.to_be_bytes();
    // No fragments: identification 0 and DF (RFC 6864 §4.1).
    out.extend_from_slice(&[0x45, p.ecn as u8, high, low, 0, 0, 0x40, 0, p.ttl, 6, 0, 0]);
    out.extend_from_slice(&address(p.src));
    out.extend_from_slice(&address(p.dst));
    let sum = checksum(add(0, &out[from..]));
    out[from + 10..from + 12].copy_from_slice(&sum);
}

fn put_tcp(out: &mut Vec<u8>, p: &Packet, options: &[u8], segment: u16) {
    let from = out.len();
    let (syn, ack) = (p.has(flags::SYN), p.has(flags::ACK));
    let by_sender = p.is_data() || (syn && !ack);
    let ports = [PORT + (p.flow % PORT as u32) as u16, PORT + (p.flow / PORT as u32 % PORT as u32) as u16];
    let [source, destination] = if by_sender { ports } else { [ports[1], ports[0]] };
    // Packets carry slots of connections where they have no sequence or acknowledgement number.
    let seq = if p.is_data() { 1 + p.seq } else { !syn as u64 };
    let next = match (syn, ack, p.is_data()) {
        (true, false, _) => 0,
        (true, true, _) | (_, _, true) => 1,
        _ => 1 + p.ack,
    };
    let mut bits = if syn && !ack { 0 } else { bit::ACK };
    for (have, set) in [
        (syn, bit::SYN),
        (p.has(flags::ECE), bit::ECE),
        (p.has(flags::CWR), bit::CWR),
        (p.is_data() && p.has(flags::LAST), bit::PSH),
    ] {
        bits |= if have { set } else { 0 };
    }
    out.extend_from_slice(&source.to_be_bytes());
    out.extend_from_slice(&destination.to_be_bytes());
    out.extend_from_slice(&(seq as u32).to_be_bytes());
    out.extend_from_slice(&(next as u32).to_be_bytes());
    out.extend_from_slice(&[(((TCP + options.len()) / 4) << 4) as u8, bits, 0xFF, 0xFF, 0, 0, 0, 0]);
    out.extend_from_slice(options);
    // The pseudo-header (RFC 9293 §3.1) and the header; a payload of zeros adds nothing.
    let pseudo = add(add(add(0, &address(p.src)), &address(p.dst)), &[0, 6]) + segment as u32;
    let sum = checksum(add(pseudo, &out[from..]));
    out[from + 16..from + 18].copy_from_slice(&sum);
}

/// TSval and TSecr in microseconds: data shows when it was handed down, an acknowledgement now and the echo.
fn stamps(p: &Packet, at: Time) -> (u32, u32) {
    let us = |time: Time| (time.as_ps() / 1_000_000) as u32;
    if p.has(flags::ACK) { (us(at), us(p.stamp)) } else { (us(p.stamp), 0) }
}

/// Timestamps (RFC 7323 §3.2) and SACK blocks (RFC 2018 §3), padded in front as hosts do; returns their length.
fn put_options(out: &mut [u8; OPTIONS_MAX], stamps: Option<(u32, u32)>, sack: Option<&Sack>) -> usize {
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

/// Adds 16-bit words, an odd byte as if a zero followed (RFC 1071).
fn add(sum: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(2).fold(sum, |sum, pair| sum + (u32::from(pair[0]) << 8) + pair.get(1).map_or(0, |b| u32::from(*b)))
}

fn checksum(mut sum: u32) -> [u8; 2] {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_core::Ecn;

    fn record(packet: Packet, sack: Option<Sack>) -> PacketRecord {
        PacketRecord { at: Time::from_ns(1_234), tap: 0, outgoing: true, packet, sack }
    }

    fn built(packet: Packet, sack: Option<Sack>, timestamps: bool) -> (Vec<u8>, u32) {
        let mut out = Vec::new();
        let whole = frame(&mut out, &record(packet, sack), timestamps);
        (out, whole)
    }

    #[test]
    fn data_by_hand() {
        let packet = Packet {
            seq: (1 << 32) + 9,
            ack: 77,
            flow: (3 << 15) + 5,
            src: 2,
            dst: 258,
            payload: 1460,
            ecn: Ecn::Ce,
            ttl: 64,
            flags: flags::LAST | flags::CWR,
            ..Packet::default()
        };
        let (frame, whole) = built(packet, None, false);
        assert_eq!((frame.len(), whole), (54, 1514));
        assert_eq!(frame[..14], [2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 0, 2, 8, 0]);
        assert_eq!(frame[14..24], [0x45, 3, 0x05, 0xDC, 0, 0, 0x40, 0, 64, 6]);
        assert_eq!(frame[26..34], [10, 0, 0, 3, 10, 0, 1, 3]);
        // Ports 32773 and 32771, sequence 1 + 9 after 2^32, acknowledgement 1.
        assert_eq!(frame[34..46], [0x80, 5, 0x80, 3, 0, 0, 0, 10, 0, 0, 0, 1]);
        assert_eq!(frame[46..50], [0x50, bit::ACK | bit::PSH | bit::CWR, 0xFF, 0xFF]);
        // A right checksum makes the sum of all that it covers zero.
        assert_eq!(checksum(add(0, &frame[14..34])), [0, 0]);
        let pseudo = add(add(0, &frame[26..34]), &[0, 6]) + 1480;
        assert_eq!(checksum(add(pseudo, &frame[34..])), [0, 0]);
    }

    #[test]
    fn an_acknowledgement_shows_its_blocks_and_the_other_direction() {
        let packet =
            Packet { seq: 1234, ack: 2920, flow: 5, flags: flags::ACK | flags::ECE, size: 60, ..Packet::default() };
        let sack = Sack { blocks: [(4380, 5840), (7300, 8760), (0, 0), (0, 0)], count: 2 };
        let (frame, whole) = built(packet, Some(sack), false);
        // As long as the simulated packet: 40 + 4 + 16.
        assert_eq!((frame.len(), whole), (74, 74));
        assert_eq!(frame[34..46], [0x80, 0, 0x80, 5, 0, 0, 0, 1, 0, 0, 0x0B, 0x69]);
        assert_eq!(frame[46..48], [0xA0, bit::ACK | bit::ECE]);
        assert_eq!(frame[54..66], [1, 1, 5, 18, 0, 0, 0x11, 0x1D, 0, 0, 0x16, 0xD1]);
        let full = Sack { blocks: [(1, 2); 4], count: 4 };
        assert_eq!(built(packet, Some(full), true).1, 14 + 40 + 12 + 28);
    }

    #[test]
    fn handshakes_take_the_first_number() {
        let numbers = |flags| {
            let (frame, _) = built(Packet { seq: 99, ack: 98, flags, ..Packet::default() }, None, false);
            (frame[41], frame[45], frame[47])
        };
        assert_eq!(numbers(flags::SYN), (0, 0, bit::SYN));
        assert_eq!(numbers(flags::SYN | flags::ACK), (0, 1, bit::SYN | bit::ACK));
    }
}
