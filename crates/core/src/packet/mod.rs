//! The packet: metadata in one cache line, held in [`Packets`], referred to by a 32-bit id.
//!
//! A packet has a kind, and what only that kind has is in its [`Body`]. Data that few packets carry
//! is a side record, reached by [`Packet::side`], so the common packet stays one line. A protocol
//! is one file: names of its kinds, lengths of their headers, and the headers that a capture shows
//! them ([`tcp`], [`rdma`], [`homa`], [`uet`], [`overlay`]). In the Linux world the same struct is
//! parsed from the frame and the bytes stay where they are.
//!
//! Invariant: `size_of::<Packet>() == 64`.

mod class;
pub mod conga;
pub mod homa;
pub mod mptcp;
pub mod overlay;
mod pool;
pub mod rdma;
mod side;
pub mod tcp;
pub mod telemetry;
pub mod uet;

pub use class::{Color, Ecn, Importance, TrafficClass};
pub use conga::CongaHeader;
pub use mptcp::Mapping;
pub use overlay::Words;
pub use pool::{Pool, push_tight};
pub use side::{Packets, Side, Sided};
pub use tcp::Sack;
pub use telemetry::{Hop, Telemetry};
pub use uet::Selective;

use crate::units::Time;

side::sides! {
    /// Of an acknowledgement: what arrived beyond it.
    0: Sack, sacks;
    1: CongaHeader, conga_headers;
    /// Of a subflow's packet: where it belongs in the stream.
    2: Mapping, mappings;
    /// The telemetry that switches write for the sender's control law, on its data and on what
    /// answers it.
    3: Telemetry, telemetry;
    /// Of virtual switches: whom to pause.
    4: Words, words;
    /// Of an acknowledgement of packets that may come in any order.
    5: Selective, selectives;
}

/// Index of a host, 0…H−1, leaf by leaf.
pub type HostId = u32;
/// Index of a connection, the same at both of its ends.
pub type FlowId = u32;
/// Where a packet sits in its pool.
pub type PacketId = u32;

/// The priorities that a packet can have (IEEE 802.1Q).
pub const PRIORITIES: usize = 8;

/// "No id": no side record, no peer slot known.
pub const NONE: u32 = u32::MAX;

/// Switches that a packet may meet: the last of them drops it. Source: the value of the Vertigo and
/// Canary artifacts' hosts.
pub const TTL: u8 = 250;

/// The bits of [`Packet::flags`].
pub mod flags {
    /// ECN echo: the receiver saw CE.
    pub const ECE: u16 = 1;
    /// The sender has reduced its window.
    pub const CWR: u16 = 2;
    pub const RETRANSMISSION: u16 = 4;
    /// The last packet of its segment.
    pub const LAST: u16 = 8;
    pub const DEFLECTED: u16 = 16;
    /// Its link is down while it travels: it will not arrive.
    pub const LOST: u16 = 32;
    /// It will not arrive since its link was ordered to lose it.
    pub const INJECTED: u16 = 64;
    /// Asks for an acknowledgement (the A bit of RDMA's header).
    pub const ASKS: u16 = 128;
    /// The switch that holds it counts it against its flow (BFC); on no wire.
    pub const COUNTS: u16 = 256;
    /// A switch has cut its payload off.
    pub const TRIMMED: u16 = 512;
    /// The switch that has cut it was the last of its way; an answer copies the bit.
    pub const LAST_HOP: u16 = 1024;
}

/// A transport protocol as a capture shows it. Each is declared in its own file.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    pub name: &'static str,
    /// Its number in the IP header.
    pub number: u8,
    /// Where its header has the checksum.
    pub checksum_at: usize,
    /// Puts a packet's header behind the bytes, with a checksum of zero; the time is given where
    /// timestamps are to be shown.
    pub header: fn(&mut Vec<u8>, &Packet, &[Record], Option<Time>),
    /// Whether the port of a connection's sender is its packet's entropy value.
    pub has_entropy_port: bool,
    /// The priority of answers and questions, where it is not that of the data.
    pub control_priority: Option<u8>,
    /// The answer to a packet of a connection that is over.
    pub late: fn(&Packet) -> Body,
}

/// The end of a connection that sends packets of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Sender,
    Receiver,
    /// A switch of a host, for no connection.
    Host,
}

/// Declares the kinds of packets, each in one place: its name, its protocol, the end that sends it,
/// and the fields that only it has. Makes [`Kind`] and [`Body`] of them.
macro_rules! kinds {
    ($(
        $(#[$meta:meta])*
        $Kind:ident = $name:literal, $protocol:ident, $end:ident {
            $($(#[$about:meta])* $field:ident: $type:ty),* $(,)?
        }
    )+) => {
        crate::named! {
            /// The kind of a packet.
            pub enum Kind { $($(#[$meta])* $Kind = $name),+ }
        }

        impl Kind {
            /// The protocol that declares this kind.
            pub const fn protocol(self) -> &'static Protocol {
                match self { $(Kind::$Kind => &$protocol::PROTOCOL),+ }
            }
            /// The end of a connection that sends it.
            #[inline]
            pub const fn end(self) -> End {
                match self { $(Kind::$Kind => End::$end),+ }
            }
        }

        /// The part that only one kind of packet has. Its tag is the kind. Slots locate a
        /// connection's end without a lookup; they stand for the lookup by ports that a host makes,
        /// and are on no wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Body {
            $($(#[$meta])* $Kind { $($(#[$about])* $field: $type),* }),+
        }

        impl Packet {
            /// The kind: data, acknowledgement, grant and so on.
            #[inline]
            pub fn kind(&self) -> Kind {
                match self.body { $(Body::$Kind { .. } => Kind::$Kind),+ }
            }
        }
    };
}

kinds! {
    Data = "data", tcp, Sender {
        /// Offset of the first payload byte in its stream.
        seq: u64,
        slot: u32,
        /// The flowcell, counted by the sender's edge.
        flowcell: u16,
    }
    Ack = "ack", tcp, Receiver {
        /// The next byte expected.
        ack: u64,
        slot: u32,
        /// How many switches the data crossed that it answers.
        hops: u8,
    }
    Syn = "syn", tcp, Sender {
        slot: u32,
        /// The flowcell, as of the data that follows.
        flowcell: u16,
    }
    SynAck = "syn-ack", tcp, Receiver { slot: u32 }
    /// Payload of a queue pair's message.
    RdmaData = "rdma-data", rdma, Sender {
        /// Offset of the first payload byte among all that the queue pair was given.
        seq: u64,
        slot: u32,
        /// The flowcell, counted by the sender's edge.
        flowcell: u16,
    }
    RdmaAck = "rdma-ack", rdma, Receiver {
        /// The next byte expected.
        ack: u64,
        slot: u32,
        /// How many switches the data crossed that it answers.
        hops: u8,
    }
    /// Reports a gap before what has arrived.
    Nack = "nack", rdma, Receiver {
        /// The next byte expected.
        ack: u64,
        slot: u32,
        /// How many switches the data crossed that it answers.
        hops: u8,
    }
    Cnp = "cnp", rdma, Receiver { slot: u32 }
    HomaData = "homa-data", homa, Sender {
        /// Offset of the first payload byte in the message.
        offset: u32,
        /// Bytes of the whole message.
        length: u32,
        slot: u32,
        /// Which of the connection's messages, counted from 0.
        number: u16,
    }
    Grant = "grant", homa, Receiver {
        /// The first byte that may not be sent yet.
        upto: u32,
        slot: u32,
        number: u16,
        /// The priority to send it with.
        priority: u8,
    }
    /// Asks for some of it once more.
    Resend = "resend", homa, Receiver {
        /// The first byte that is missing.
        from: u32,
        len: u32,
        slot: u32,
        number: u16,
        /// The priority to send it with.
        priority: u8,
    }
    /// Confirms that the message is still to be sent.
    Busy = "busy", homa, Sender { slot: u32, number: u16 }
    /// Confirms that the whole message has arrived.
    Done = "done", homa, Receiver { slot: u32, number: u16 }
    Ping = "ping", homa, Sender { slot: u32, number: u16 }
    /// Reports that nothing of the message has arrived.
    Unknown = "unknown", homa, Receiver { slot: u32, number: u16 }
    /// A packet of Ultra Ethernet transport, whole or trimmed.
    UetData = "uet-data", uet, Sender {
        /// Its number among the connection's packets.
        psn: u32,
        /// Up to where its sender wants credit, in units of credit from the beginning.
        target: u32,
        slot: u32,
        value: u16,
    }
    /// Acknowledges packets; a [`Selective`] has the rest.
    UetAck = "uet-ack", uet, Receiver { next: u32, cause: u32, slot: u32 }
    /// Reports a trimmed packet.
    UetNack = "uet-nack", uet, Receiver { psn: u32, slot: u32, value: u16 }
    UetPull = "uet-pull", uet, Receiver {
        /// All credit so far, in its units.
        credit: u32,
        slot: u32,
        is_slow: bool,
    }
    UetProbe = "uet-probe", uet, Sender { psn: u32, target: u32, slot: u32, value: u16 }
    /// Names flows to pause to a virtual switch; the records are in a side record.
    Overlay = "overlay", overlay, Host {}
}

impl Default for Body {
    fn default() -> Body {
        Body::Data { seq: 0, slot: 0, flowcell: 0 }
    }
}

/// One packet's metadata. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Packet {
    /// The part that only its kind has.
    pub body: Body,
    /// When the sender's transport handed it down; on an answer, the same of the packet that caused
    /// it (RFC 7323's echo).
    pub stamp: Time,
    pub flow: FlowId,
    pub src: HostId,
    pub dst: HostId,
    /// By what a fabric distinguishes flows: the hash of the 5-tuple without DSCP and ECN, or the
    /// label that an edge has given it.
    pub entropy: u32,
    pub side: Side,
    /// The connection's slot at the receiving host, or [`NONE`] while the sender has not learned
    /// it.
    pub peer: u32,
    /// Scheduling rank: smaller is more important.
    pub rank: u32,
    /// On the wire: headers, payload and framing overhead.
    pub size: u16,
    pub payload: u16,
    /// Bits of [`flags`].
    pub flags: u16,
    /// The port by which it entered the switch that holds it.
    pub ingress: u16,
    pub class: TrafficClass,
    /// Switches that it may still cross.
    pub ttl: u8,
    /// Which way it took where it had a choice: four bits a choice, exact for up to 256 ports at
    /// one tier or 16 at each of two.
    pub path: u8,
}

const _: () = assert!(size_of::<Packet>() == 64);

impl Packet {
    /// Whether it carries payload, as opposed to an answer or a handshake packet.
    #[inline]
    pub fn is_data(&self) -> bool {
        match self.body {
            Body::Data { .. } | Body::RdmaData { .. } | Body::HomaData { .. } => true,
            Body::UetData { .. } => self.payload > 0,
            _ => false,
        }
    }
    /// Offset of the first payload byte in its stream, or in its message, or the number of a packet
    /// that has one; 0 of what carries none.
    #[inline]
    pub fn seq(&self) -> u64 {
        match self.body {
            Body::Data { seq, .. } | Body::RdmaData { seq, .. } => seq,
            Body::HomaData { offset, .. } => u64::from(offset),
            Body::UetData { psn, .. } => u64::from(psn),
            _ => 0,
        }
    }
    /// The flowcell; 0 of what belongs to none.
    #[inline]
    pub fn flowcell(&self) -> u16 {
        match self.body {
            Body::Data { flowcell, .. }
            | Body::RdmaData { flowcell, .. }
            | Body::Syn { flowcell, .. } => flowcell,
            _ => 0,
        }
    }
    /// The flowcell of a packet of a kind that has one.
    #[inline]
    pub fn set_flowcell(&mut self, cell: u16) {
        if let Body::Data { flowcell, .. }
        | Body::RdmaData { flowcell, .. }
        | Body::Syn { flowcell, .. } = &mut self.body
        {
            *flowcell = cell;
        }
    }
    /// The slot of the end that sent it.
    #[inline]
    pub fn slot(&self) -> u32 {
        match self.body {
            Body::Data { slot, .. }
            | Body::Ack { slot, .. }
            | Body::Syn { slot, .. }
            | Body::SynAck { slot } => slot,
            Body::RdmaData { slot, .. } | Body::RdmaAck { slot, .. } => slot,
            Body::Nack { slot, .. } | Body::Cnp { slot } => slot,
            Body::HomaData { slot, .. } | Body::Grant { slot, .. } | Body::Resend { slot, .. } => {
                slot
            }
            Body::Busy { slot, .. } | Body::Done { slot, .. } => slot,
            Body::Ping { slot, .. } | Body::Unknown { slot, .. } => slot,
            Body::UetData { slot, .. } | Body::UetAck { slot, .. } => slot,
            Body::UetNack { slot, .. } | Body::UetPull { slot, .. } => slot,
            Body::UetProbe { slot, .. } => slot,
            Body::Overlay {} => NONE,
        }
    }
    /// The color that buffers drop by.
    #[inline]
    pub fn color(&self) -> Color {
        self.class.color()
    }
    /// Its priority, 0 (lowest) to 7.
    #[inline]
    pub fn priority(&self) -> u8 {
        self.class.priority()
    }
    /// The ECN field (RFC 3168).
    #[inline]
    pub fn ecn(&self) -> Ecn {
        self.class.ecn()
    }
    #[inline]
    pub fn mark(&mut self) {
        self.class = self.class.with_ecn(Ecn::Ce);
    }
    /// Whether a bit of [`flags`] is set.
    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traffic_class_holds_its_parts() {
        for priority in 0..8 {
            for importance in Importance::ALL {
                for ecn in [Ecn::NotEct, Ecn::Ect, Ecn::Ce] {
                    let class = TrafficClass::new(priority, importance, ecn);
                    assert_eq!(
                        (class.priority(), class.importance(), class.ecn()),
                        (priority, importance, ecn)
                    );
                    let other = class.with_ecn(Ecn::Ce).with_importance(Importance::Echo);
                    assert_eq!(other, TrafficClass::new(priority, Importance::Echo, Ecn::Ce));
                }
            }
        }
    }
}
