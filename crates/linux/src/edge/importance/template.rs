//! Frames that the shim sends in the host's name, modelled on the host's last packet of the flow.
//!
//! Follows RFC 7323 §5 (a TSval never goes backwards) and RFC 9293 §3.1.
//!
//! Invariant: lengths and checksums of a frame are right; its TSval is the latest that the host has
//! sent, its acknowledgement and window are the host's own.

use super::class;
use super::options;
use super::segment::Segment;
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::segment::complete;
use crate::dataplane::frame::{Header, Layers};
use millpond_core::Importance;

/// Fields that differ between the frames of one flow.
pub(super) struct Fields<'a> {
    pub seq: u32,
    pub ack: u32,
    pub importance: Importance,
    /// The ranges that a shim's echo reports.
    pub echo: Option<&'a [(u32, u32)]>,
    pub payload: &'a [u8],
}

/// The host's last packet, without its payload.
#[derive(Clone)]
pub(super) struct Template {
    header: Header,
    layers: Layers,
    window: u16,
    /// ECE as the host last sent it.
    flags: u8,
    stamps: Option<(u32, u32)>,
    /// DSCP and ECN of its last packet with payload, and of its last without.
    data: Option<u8>,
    control: Option<u8>,
}

impl Template {
    /// Of the host's handshake packet.
    pub fn new(segment: &Segment<'_>) -> Template {
        let mut template = Template {
            header: Header::default(),
            layers: *segment.layers,
            window: 0,
            flags: 0,
            stamps: None,
            data: None,
            control: None,
        };
        template.header.set(segment.header);
        template
    }

    /// Its handshake is over. `window` is scaled, as after a handshake.
    pub fn open(&mut self, window: u16, stamps: Option<(u32, u32)>) {
        (self.window, self.stamps) = (window, stamps);
    }

    /// The host has sent another packet of the flow, with these timestamps.
    pub fn update(&mut self, segment: &Segment<'_>, stamps: Option<(u32, u32)>) {
        self.header.set(segment.header);
        self.layers = *segment.layers;
        self.window = segment.window;
        self.flags = segment.flags & tcp::ECE;
        // CE in a packet that the host sends would be an error of its own.
        let class = if segment.class & 3 == 3 { segment.class & !1 } else { segment.class };
        match segment.payload {
            [] => self.control = Some(class),
            _ => self.data = Some(class),
        }
        if let Some(new) = stamps
            && self.stamps.is_none_or(|old| new.0.wrapping_sub(old.0) as i32 >= 0)
        {
            self.stamps = Some(new);
        }
    }

    pub fn write(&self, fields: &Fields<'_>, out: &mut Vec<u8>) {
        let at = self.layers.transport;
        let mut list = Vec::with_capacity(40);
        if let Some((value, echo)) = self.stamps {
            options::write_stamps(&mut list, value, echo);
        }
        if let Some(ranges) = fields.echo {
            options::write_echo(&mut list, ranges.iter().copied());
        }
        out.clear();
        out.extend_from_slice(&self.header.bytes()[..at + 4]);
        out.extend(fields.seq.to_be_bytes());
        out.extend(fields.ack.to_be_bytes());
        out.extend([((20 + list.len()) << 2) as u8, tcp::ACK | self.flags]);
        out.extend(self.window.to_be_bytes());
        out.extend([0; 4]);
        out.extend(list);
        let payload = out.len();
        out.extend_from_slice(fields.payload);
        let layers = Layers { payload, end: out.len(), ..self.layers };
        let learned = if fields.payload.is_empty() { self.control } else { self.data };
        let class = learned.unwrap_or_else(|| layers.ip().class(out) & !3);
        layers.ip().set_class(out, class::with(class, fields.importance));
        complete(out, &layers);
    }
}
