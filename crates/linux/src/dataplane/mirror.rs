//! Frames that cross a port, for somebody who looks on, as pcapng.
//!
//! Frames are shown as they cross: super-segments whole, checksums as partial as they are. They go
//! through a bounded queue to the thread that serves the viewer. Frames that find it full are not
//! shown, and the next one that is has their number (`epb_dropcount`).
//!
//! Invariant: no frame waits for who looks on, and a port that nobody looks at pays a comparison.

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use std::borrow::Cow;
use std::io::{self, IoSlice, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Frames that wait for who looks on: some 16 MB at most.
const WAITING: usize = 256;
/// How long nothing may come before it is asked whether somebody is there.
const PATIENCE: Duration = Duration::from_millis(500);

pub struct Shown {
    at: Duration,
    is_incoming: bool,
    /// Frames before it that are not.
    missed: u64,
    bytes: Vec<u8>,
}

#[cfg(test)]
impl Shown {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

pub struct Mirror {
    frames: SyncSender<Shown>,
    missed: u64,
}

impl Mirror {
    pub fn new() -> (Mirror, Receiver<Shown>) {
        let (frames, shown) = sync_channel(WAITING);
        (Mirror { frames, missed: 0 }, shown)
    }
    /// Another end for frames, of another worker's queue of the port.
    pub fn another(&self) -> Mirror {
        Mirror { frames: self.frames.clone(), missed: 0 }
    }

    /// Shows a frame, if there is room; whether anybody looks on.
    #[cold]
    pub fn show(&mut self, is_incoming: bool, pieces: &[IoSlice<'_>]) -> bool {
        let bytes = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        match self.frames.try_send(Shown { at, is_incoming, missed: self.missed, bytes }) {
            Ok(()) => self.missed = 0,
            Err(TrySendError::Full(_)) => self.missed += 1,
            Err(TrySendError::Disconnected(_)) => return false,
        }
        true
    }
}

/// Writes the frames that cross the port `name` as pcapng. Returns when the port goes, or when
/// `is_there` reports that nobody reads.
///
/// # Errors
/// The reason why `out` cannot be written.
pub fn write(
    name: &str,
    shown: &Receiver<Shown>,
    out: impl Write,
    is_there: impl Fn() -> bool,
) -> io::Result<()> {
    let failed = |e: &dyn std::fmt::Display| io::Error::other(e.to_string());
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
        ],
    };
    let mut writer = PcapNgWriter::new(out).map_err(|e| failed(&e))?;
    writer.write_pcapng_block(interface).map_err(|e| failed(&e))?;
    writer.get_mut().flush()?;
    loop {
        let frame = match shown.recv_timeout(PATIENCE) {
            Ok(frame) => frame,
            Err(RecvTimeoutError::Timeout) if is_there() => continue,
            Err(_) => return Ok(()),
        };
        let mut options = vec![EnhancedPacketOption::Flags(if frame.is_incoming { 1 } else { 2 })];
        if frame.missed > 0 {
            options.push(EnhancedPacketOption::DropCount(frame.missed));
        }
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: frame.at,
            original_len: frame.bytes.len() as u32,
            data: Cow::Borrowed(&frame.bytes),
            options,
        };
        writer.write_block(&block.into_block()).map_err(|e| failed(&e))?;
        writer.get_mut().flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcapng::{Block, PcapNgReader};

    #[test]
    fn what_is_shown_is_read_back_and_what_is_not_is_counted() {
        let (mut mirror, shown) = Mirror::new();
        for i in 0..WAITING + 10 {
            assert!(mirror.show(i % 2 == 0, &[IoSlice::new(&[i as u8; 60]), IoSlice::new(&[7])]));
        }
        let first: Vec<Shown> = shown.try_iter().collect();
        assert_eq!(first.len(), WAITING);
        assert!(mirror.show(true, &[IoSlice::new(&[1; 60])]));
        let mut file = Vec::new();
        write("web", &shown, &mut file, || false).unwrap();
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            if let (Block::EnhancedPacket(packet), _) = block.unwrap() {
                packets.push((packet.data.to_vec(), packet.options.len()));
            }
        }
        assert_eq!(packets, [(vec![1; 60], 2)], "its direction, and ten before it");
        drop(shown);
        assert!(!mirror.show(true, &[]), "nobody looks on");
    }
}
