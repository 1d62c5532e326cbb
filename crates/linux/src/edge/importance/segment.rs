//! A TCP packet's fields, its flow, and the repair of its checksum after its options have changed.
//!
//! Invariant: a checksum that was right stays right, whether it is whole or the pseudo-header's
//! share only.

use super::class;
use super::options;
use crate::dataplane::buffers::Buffers;
use crate::dataplane::flow::named;
use crate::dataplane::frame::checksum::{Sum, is_right, pseudo};
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Layers, Version};
use crate::dataplane::packet::Packet;
use millpond_core::Importance;

/// One connection of the host: addresses, ports and VLAN, the host's end first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    local: (u128, u16),
    remote: (u128, u16),
    is_four: bool,
    vlan: Option<u16>,
}

impl Key {
    /// Returns the key of a packet that leaves the host, or comes to it.
    pub fn of(header: &[u8], layers: &Layers, vlan: Option<u16>, leaves: bool) -> Key {
        let flow = named(header, layers);
        let ends = [(flow.source, flow.source_port), (flow.destination, flow.destination_port)];
        let [local, remote] = if leaves { ends } else { [ends[1], ends[0]] };
        Key { local, remote, is_four: layers.version == Version::V4, vlan }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    /// The four bits behind the header's length: AE of accurate ECN is the lowest.
    pub reserved: u8,
    pub window: u16,
    pub options: &'a [u8],
    pub payload: &'a [u8],
    /// The byte of the IP header that holds DSCP and ECN.
    pub class: u8,
    pub importance: Importance,
    pub header: &'a [u8],
    pub layers: &'a Layers,
}

impl<'a> Segment<'a> {
    /// Reads a packet whose headers are whole and end where its payload begins; else `None`.
    pub fn read(packet: &'a Packet, layers: &'a Layers, buffers: &'a Buffers) -> Option<Self> {
        let header = packet.header.bytes();
        let length = layers.end.checked_sub(layers.payload)?;
        if header.len() != layers.payload || header.len() < layers.transport + 20 {
            return None;
        }
        // Ethernet may have padded the frame.
        let payload = packet.payload(buffers).get(..length)?;
        let at = layers.transport;
        Some(Segment {
            seq: tcp::seq(header, layers),
            ack: tcp::ack(header, layers),
            flags: tcp::flags(header, layers),
            reserved: header[at + 12] & 15,
            window: u16::from_be_bytes([header[at + 14], header[at + 15]]),
            options: tcp::options(header, layers),
            payload,
            class: layers.ip().class(header),
            importance: class::importance(layers.ip().class(header)),
            header,
            layers,
        })
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether it is an acknowledgement and nothing else.
    pub fn is_pure_ack(&self) -> bool {
        let others = tcp::SYN | tcp::FIN | tcp::RST | tcp::URG;
        self.payload.is_empty() && self.flags & (others | tcp::ACK) == tcp::ACK
    }
}

/// The coverage of a TCP checksum at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    Whole,
    /// The pseudo-header's share, to be completed by whoever sends the packet.
    Partial,
    Wrong,
}

fn coverage(header: &[u8], layers: &Layers, payload: &[u8]) -> Coverage {
    let at = layers.transport;
    let length = layers.end - layers.transport;
    let sum = pseudo(header, layers, length);
    if sum.bytes(&header[at..layers.payload]).bytes(payload).fold() == 0xffff {
        Coverage::Whole
    } else if header[at + 16..at + 18] == sum.fold().to_be_bytes() {
        Coverage::Partial
    } else {
        Coverage::Wrong
    }
}

/// Takes the first SACK block out of a packet; whether it did. A packet with a wrong checksum stays
/// as it is.
pub(super) fn strip_dsack(packet: &mut Packet, layers: &Layers, buffers: &Buffers) -> bool {
    let (payload, length) = (packet.payload(buffers), layers.end - layers.payload);
    let payload = &payload[..length.min(payload.len())];
    let coverage = coverage(packet.header.bytes(), layers, payload);
    let (list, at) = (layers.transport + 20..layers.payload, layers.transport + 16);
    let header = packet.header.bytes_mut();
    let read = options::read(&header[list.clone()]);
    let Some((at_sack, length)) = read.and_then(|options| options.sack_at) else {
        return false;
    };
    if coverage == Coverage::Wrong {
        return false;
    }
    options::strip_first(&mut header[list], at_sack, length);
    if coverage == Coverage::Whole {
        header[at..at + 2].fill(0);
        let sum = pseudo(header, layers, layers.end - layers.transport);
        let sum = sum.bytes(&header[layers.transport..layers.payload]).bytes(payload).checksum();
        header[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    true
}

/// Whether the checksum of a whole frame is right.
pub(super) fn checks(frame: &[u8], layers: &Layers) -> bool {
    let at = layers.network;
    let is_right_four = layers.version == Version::V6
        || Sum::default().bytes(&frame[at..at + usize::from(frame[at] & 15) * 4]).fold() == 0xffff;
    is_right_four && is_right(frame, layers)
}
