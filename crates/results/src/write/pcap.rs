//! A capture as pcapng: frames of kernels as they are, and for each packet that the simulator has
//! moved Ethernet and IPv4 headers and those of its protocol, which declares them
//! (`core::packet::tcp`).
//!
//! Of simulated packets: times are nanoseconds of virtual time (a picosecond's fraction is cut
//! off), from 1970 on as the format wants. Host h is 10.0.0.1 + h. A flow's sender has the port
//! 32768 + (flow mod 2^15) and its receiver 32768 + (flow / 2^15 mod 2^15), so flows of two hosts
//! are distinguished up to 2^30. Payload is zeros. A pause's frame is its family's (`pfc`).
//!
//! Invariant: the IP length is what the packet took on the simulated wire without framing (plus 12
//! bytes where TCP timestamps are asked for), checksums are right for the whole packet, and the
//! bytes depend on the records alone.

mod bfc;
mod pfc;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use millpond_core::switch::pause::PauseTarget;
use millpond_core::{Packet, Time};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriteError, PcapNgWriter};
use pcap_file::{DataLink, Endianness};

use crate::model::{At, PacketRecord, PauseRecord, Result};

const ETHERNET: usize = 14;
const IP: usize = 20;

/// A place where packets are captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its name: "host3", "leaf0-4".
    pub name: String,
    /// The nodes at the ends of its link: "leaf0 → host4".
    pub link: String,
}

/// A capture being written: a section with an interface for each place.
pub struct PacketWriter<W: Write> {
    writer: PcapNgWriter<W>,
    snaplen: u32,
    timestamps: bool,
    /// When the records' time zero was, since 1970.
    epoch: Duration,
    frame: Vec<u8>,
}

fn failed(error: PcapNgWriteError) -> io::Error {
    match error {
        PcapNgWriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl<W: Write> PacketWriter<W> {
    /// Writes the headers of a capture at these places. `snaplen` bytes of each packet are kept,
    /// and time zero of the records is `epoch` since 1970.
    ///
    /// # Errors
    /// The reason why `out` cannot be written.
    pub fn new<'n>(
        out: W,
        places: impl IntoIterator<Item = &'n Place>,
        snaplen: u32,
        epoch: Duration,
    ) -> io::Result<PacketWriter<W>> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed("millpond"))],
            ..SectionHeaderBlock::default()
        };
        let mut writer = PcapNgWriter::with_section_header(out, section).map_err(failed)?;
        for place in places {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: if snaplen == u32::MAX { 0 } else { snaplen },
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(&place.name)),
                    InterfaceDescriptionOption::IfDescription(Cow::Borrowed(&place.link)),
                    InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
                ],
            };
            writer.write_pcapng_block(interface).map_err(failed)?;
        }
        Ok(PacketWriter { writer, snaplen, timestamps: false, epoch, frame: Vec::new() })
    }

    /// Adds a packet at a place.
    ///
    /// # Errors
    /// The reason why the capture cannot be written.
    pub fn write(&mut self, place: u32, record: &PacketRecord) -> io::Result<()> {
        let (whole, missed) = match &record.frame {
            Some(frame) => {
                self.frame.clear();
                self.frame.extend_from_slice(&frame.bytes);
                (frame.length, frame.missed)
            }
            None => (frame(&mut self.frame, record, self.timestamps), 0),
        };
        self.put(place, record.at, record.outgoing, whole, missed)
    }

    /// Adds a PAUSE frame at a place.
    ///
    /// # Errors
    /// As [`PacketWriter::write`].
    pub fn write_pause(&mut self, place: u32, record: &PauseRecord) -> io::Result<()> {
        match record.frame.target {
            PauseTarget::Priority(priority) => pfc::frame(&mut self.frame, record, priority),
            PauseTarget::Flow(vfid) => bfc::frame(&mut self.frame, record, vfid),
        }
        let whole = self.frame.len() as u32;
        self.put(place, record.at, record.outgoing, whole, 0)
    }

    /// Adds the frame under construction, which is `whole` bytes long.
    fn put(
        &mut self,
        place: u32,
        at: Time,
        outgoing: bool,
        whole: u32,
        missed: u64,
    ) -> io::Result<()> {
        self.frame.resize((whole as usize).min(self.snaplen as usize), 0);
        let mut options = vec![EnhancedPacketOption::Flags(if outgoing { 2 } else { 1 })];
        if missed > 0 {
            options.push(EnhancedPacketOption::DropCount(missed));
        }
        let block = EnhancedPacketBlock {
            interface_id: place,
            timestamp: self.epoch + at.to_duration(),
            original_len: whole,
            data: Cow::Borrowed(&self.frame),
            options,
        };
        self.writer.write_block(&block.into_block()).map(|_| ()).map_err(failed)
    }

    /// The output that the capture is written to.
    pub fn get_mut(&mut self) -> &mut W {
        self.writer.get_mut()
    }
}

/// The capture of one place in a file.
pub(crate) struct Capture {
    path: PathBuf,
    packets: PacketWriter<BufWriter<File>>,
}

impl Capture {
    /// Creates the file for the place `name`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be created or its header written.
    pub fn create(path: &Path, place: &Place, snaplen: u32, timestamps: bool) -> Result<Capture> {
        let file = BufWriter::with_capacity(1 << 18, File::create(path).at("create", path)?);
        let packets =
            PacketWriter::new(file, [place], snaplen, Duration::ZERO).at("write", path)?;
        let packets = PacketWriter { timestamps, ..packets };
        Ok(Capture { path: path.to_path_buf(), packets })
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn write(&mut self, record: &PacketRecord) -> Result<()> {
        self.packets.write(0, record).at("write", &self.path)
    }

    /// Adds a PAUSE frame.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn write_pause(&mut self, record: &PauseRecord) -> Result<()> {
        self.packets.write_pause(0, record).at("write", &self.path)
    }

    /// Writes the rest, down to the disk.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written or synced to the disk.
    pub fn close(mut self) -> Result<()> {
        let file = self.packets.get_mut();
        file.flush().at("write", &self.path)?;
        file.get_ref().sync_all().at("write", &self.path)
    }
}

/// Puts the headers into `out` and returns the length of the whole frame, payload included.
fn frame(out: &mut Vec<u8>, record: &PacketRecord, timestamps: bool) -> u32 {
    let packet = &record.packet;
    let protocol = packet.kind().protocol();
    out.clear();
    out.extend_from_slice(&mac(packet.dst));
    out.extend_from_slice(&mac(packet.src));
    out.extend_from_slice(&[0x08, 0x00]);
    out.resize(ETHERNET + IP, 0);
    (protocol.header)(out, packet, &record.records, timestamps.then_some(record.at));
    let segment = out.len() - ETHERNET - IP + packet.payload as usize;
    let total = (IP + segment).min(65_535) as u16;
    let (below, transport) = out.split_at_mut(ETHERNET + IP);
    put_ip(&mut below[ETHERNET..], packet, protocol.number, total);
    // The pseudo-header (RFC 9293 §3.1) and the header; a payload of zeros adds nothing.
    let pseudo =
        add(add(add(0, &address(packet.src)), &address(packet.dst)), &[0, protocol.number])
            + segment as u32;
    let sum = checksum(add(pseudo, transport));
    transport[protocol.checksum_at..protocol.checksum_at + 2].copy_from_slice(&sum);
    (ETHERNET + total as usize) as u32
}

fn mac(host: u32) -> [u8; 6] {
    let [a, b, c, d] = host.to_be_bytes();
    [0x02, 0, a, b, c, d]
}

fn address(host: u32) -> [u8; 4] {
    (0x0A00_0000u32 | ((host + 1) & 0x00FF_FFFF)).to_be_bytes()
}

fn put_ip(out: &mut [u8], packet: &Packet, protocol: u8, total: u16) {
    let [high, low] = total.to_be_bytes();
    // No fragments: identification 0 and DF (RFC 6864 §4.1).
    out[..12].copy_from_slice(&[
        0x45,
        packet.ecn() as u8,
        high,
        low,
        0,
        0,
        0x40,
        0,
        packet.ttl,
        protocol,
        0,
        0,
    ]);
    out[12..16].copy_from_slice(&address(packet.src));
    out[16..20].copy_from_slice(&address(packet.dst));
    let sum = checksum(add(0, out));
    out[10..12].copy_from_slice(&sum);
}

/// Adds 16-bit words, an odd byte as if a zero followed (RFC 1071).
fn add(sum: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(2).fold(sum, |sum, pair| {
        sum + (u32::from(pair[0]) << 8) + pair.get(1).map_or(0, |b| u32::from(*b))
    })
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
    use crate::model::Frame;
    use millpond_core::packet::Body;
    use millpond_core::{Ecn, Sack};
    use pcap_file::pcapng::{Block, PcapNgReader};

    fn built(packet: Packet, records: Vec<millpond_core::packet::Record>) -> (Vec<u8>, u32) {
        let mut out = Vec::new();
        let record = PacketRecord {
            at: Time::from_ns(1_234),
            tap: 0,
            outgoing: true,
            packet,
            records,
            frame: None,
        };
        let whole = frame(&mut out, &record, false);
        (out, whole)
    }

    #[test]
    fn data_by_hand() {
        let body = Body::Data { seq: 9, slot: 77, flowcell: 0 };
        let packet = Packet {
            body,
            src: 2,
            dst: 258,
            payload: 1460,
            class: Ecn::Ce.into(),
            ttl: 64,
            ..Packet::default()
        };
        let (frame, whole) = built(packet, vec![]);
        assert_eq!((frame.len(), whole), (54, 1514));
        assert_eq!(frame[..14], [2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 0, 2, 8, 0]);
        assert_eq!(frame[14..24], [0x45, 3, 0x05, 0xDC, 0, 0, 0x40, 0, 64, 6]);
        assert_eq!(frame[26..34], [10, 0, 0, 3, 10, 0, 1, 3]);
        // A right checksum makes the sum of all that it covers zero.
        assert_eq!(checksum(add(0, &frame[14..34])), [0, 0]);
        let pseudo = add(add(0, &frame[26..34]), &[0, 6]) + 1480;
        assert_eq!(checksum(add(pseudo, &frame[34..])), [0, 0]);
    }

    #[test]
    fn a_frame_is_as_long_as_the_simulated_packet() {
        let packet = Packet {
            body: Body::Ack { ack: 2920, slot: 0, hops: 0 },
            size: 60,
            ..Packet::default()
        };
        let sack = Sack { blocks: [(4380, 5840), (7300, 8760), (0, 0), (0, 0)], count: 2 };
        let (frame, whole) = built(packet, vec![millpond_core::packet::Record::Sack(sack)]);
        assert_eq!((frame.len(), whole), (14 + 60, 14 + 60));
    }

    #[test]
    fn a_kernels_frame_is_written_as_it_is() {
        let frame = Frame { bytes: (0..60).collect(), length: 1514, missed: 7 };
        let record = PacketRecord {
            at: Time::from_ns(1_234),
            tap: 0,
            outgoing: false,
            packet: Packet::default(),
            records: vec![],
            frame: Some(frame),
        };
        let mut file = Vec::new();
        let place = |name: &str, link: &str| Place { name: name.into(), link: link.into() };
        let places = [place("host1", "host1 → leaf0"), place("leaf0-4", "leaf0 → host4")];
        let epoch = Duration::from_secs(9);
        let mut writer = PacketWriter::new(&mut file, &places, 60, epoch).unwrap();
        writer.write(1, &record).unwrap();
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let (mut packets, mut links) = (Vec::new(), Vec::new());
        while let Some(block) = reader.next_block() {
            match block.unwrap().0 {
                Block::EnhancedPacket(packet) => packets.push(packet.into_owned()),
                Block::InterfaceDescription(of) => {
                    links.extend(of.options.into_iter().filter_map(|option| match option {
                        InterfaceDescriptionOption::IfDescription(link) => Some(link.into_owned()),
                        _ => None,
                    }))
                }
                _ => {}
            }
        }
        assert_eq!(links, ["host1 → leaf0", "leaf0 → host4"]);
        let [packet] = &packets[..] else { panic!("{packets:?}") };
        assert_eq!((packet.interface_id, packet.original_len), (1, 1514));
        assert_eq!(packet.timestamp, Duration::new(9, 1_234));
        assert_eq!(packet.data[..], (0..60).collect::<Vec<u8>>());
        let options = [EnhancedPacketOption::Flags(1), EnhancedPacketOption::DropCount(7)];
        assert_eq!(packet.options, options);
    }
}
