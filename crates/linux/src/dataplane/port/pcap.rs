//! Files as a port, for tests: what is in one comes in, and what goes out is written to another.
//!
//! It takes no super-segments, so the files hold packets as a wire would have them, with whole
//! checksums.
//!
//! Invariant: frames come in in the file's order, each once; then there is nothing more.

use super::{Error, Received, Refusal};
use crate::dataplane::frame::Offload;
use pcap_file::DataLink;
use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};
use std::fs::File;
use std::io::{BufReader, BufWriter, IoSlice};
use std::path::Path;
use std::time::Duration;

pub struct Pcap {
    input: Option<PcapReader<BufReader<File>>>,
    output: Option<PcapWriter<BufWriter<File>>>,
    written: u64,
}

impl Pcap {
    /// Opens the capture to read and makes the capture to write; either may be missing.
    ///
    /// # Errors
    /// [`Error::Kernel`] if a file cannot be opened or made, or the one to read is no capture of
    /// Ethernet frames.
    pub fn open(read: Option<&Path>, write: Option<&Path>) -> Result<Pcap, Error> {
        let failed = |path: &Path, e: &dyn std::fmt::Display| Error::Kernel {
            what: path.display().to_string(),
            reason: e.to_string(),
        };
        let input = match read {
            None => None,
            Some(path) => {
                let file = File::open(path).map_err(|e| failed(path, &e))?;
                let reader = PcapReader::new(BufReader::new(file)).map_err(|e| failed(path, &e))?;
                if reader.header().datalink != DataLink::ETHERNET {
                    return Err(failed(path, &"not a capture of Ethernet frames"));
                }
                Some(reader)
            }
        };
        let output = match write {
            None => None,
            Some(path) => {
                let file = File::create(path).map_err(|e| failed(path, &e))?;
                Some(PcapWriter::new(BufWriter::new(file)).map_err(|e| failed(path, &e))?)
            }
        };
        Ok(Pcap { input, output, written: 0 })
    }

    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Received {
        let Some(reader) = &mut self.input else { return Received::Nothing };
        match reader.next_packet() {
            // A file that was cut off ends where it was.
            None | Some(Err(_)) => {
                self.input = None;
                Received::Nothing
            }
            Some(Ok(packet)) => {
                let data = packet.data();
                match buffer.get_mut(..data.len()) {
                    None => Received::Refused(Refusal::TooLong),
                    Some(room) => {
                        room.copy_from_slice(data);
                        Received::Frame {
                            start: 0,
                            length: data.len(),
                            offload: Offload::default(),
                        }
                    }
                }
            }
        }
    }

    pub(super) fn send(&mut self, _: &Offload, pieces: &[IoSlice<'_>]) -> Result<(), Refusal> {
        let Some(writer) = &mut self.output else { return Ok(()) };
        let frame: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        // Their order is all that a test looks at.
        self.written += 1;
        let packet =
            PcapPacket::new(Duration::from_micros(self.written), frame.len() as u32, &frame);
        let packet = packet.map_err(|_| Refusal::Invalid)?;
        writer.write_packet(&packet).map_err(|_| Refusal::Full)?;
        writer.flush().map_err(|_| Refusal::Full)
    }

    /// Whether there is anything left to come in.
    pub fn is_drained(&self) -> bool {
        self.input.is_none()
    }
}
