//! The exchange between endpoints and their drivers: segments, acknowledgements, data, counters.

use super::Form;
use millpond_core::packet::{Body, Kind, Packet, Packets, Selective};
use millpond_core::{Ecn, Mapping, Sack, Time};

/// A segment that a sender hands down; the host stamps it with the time. Up to 64 KB, for the NIC
/// to cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Offset of its first byte.
    pub seq: u64,
    /// Payload bytes; 0 for a SYN.
    pub len: u32,
    pub syn: bool,
    /// Was sent before (a SYN, too).
    pub retransmission: bool,
    /// The window has been reduced; of a segment that is cut, the first packet carries the flag
    /// (RFC 3168 §6.1.2).
    pub cwr: bool,
    pub ecn: Ecn,
    /// Of a subflow's segment: which, and where its first byte belongs in the stream.
    pub mapping: Option<Mapping>,
    /// The form of its packets.
    pub form: Form,
}

impl Outgoing {
    /// A segment of a stream that has not been sent before.
    pub fn new(seq: u64, len: u32, ecn: Ecn) -> Outgoing {
        let form = Form::Stream;
        let (syn, retransmission, cwr, mapping) = (false, false, false, None);
        Outgoing { seq, len, syn, retransmission, cwr, ecn, mapping, form }
    }

    /// Whether its packets carry a record for switches to write on.
    #[inline]
    pub fn collects_telemetry(&self) -> bool {
        matches!(self.form, Form::Rdma(asks) if asks.telemetry)
    }
}

/// A packet without payload that an end sends beside its data, at once.
pub struct Beside {
    pub body: Body,
    /// When it was handed down, or what it echoes.
    pub stamp: Time,
    /// Its entropy value, where it has one of its own.
    pub value: Option<u16>,
    pub flags: u16,
    /// The report that an acknowledgement has.
    pub selective: Option<Selective>,
}

impl Beside {
    /// One that has nothing but a body.
    pub fn new(now: Time, body: Body) -> Beside {
        Beside { body, stamp: now, value: None, flags: 0, selective: None }
    }
}

/// A packet of a receiver's as it reaches a sender that is none of a stream.
pub struct Incoming<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// The packets, for what is attached to it.
    pub packets: &'a Packets,
    pub ack: AckIn<'a>,
    /// Whether its flow is held and its timer stands still.
    pub is_frozen: bool,
}

/// An acknowledgement as it reaches the sender.
#[derive(Clone, Copy, Debug)]
pub struct AckIn<'a> {
    /// The next byte that the receiver expects.
    pub ack: u64,
    pub ece: bool,
    /// The data that it holds beyond; `None` where it holds nothing.
    pub sack: Option<&'a Sack>,
    /// When the data that caused it was handed down.
    pub stamp: Time,
    /// Switches that the data has crossed.
    pub hops: u8,
    /// Of a subflow's: which, and what of the stream has arrived.
    pub mapping: Option<Mapping>,
}

/// An acknowledgement as it leaves the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOut {
    /// The kind of packet: an acknowledgement, or an answer of a queue pair's.
    pub kind: Kind,
    /// The next byte expected.
    pub ack: u64,
    pub ece: bool,
    /// The data that is held beyond; a count of 0 means nothing.
    pub sack: Sack,
    /// Hand-down time of the data that it answers (RFC 7323 §4.3: the earliest that it newly
    /// acknowledges).
    pub stamp: Time,
}

/// A data packet as it reaches the receiver.
#[derive(Clone, Copy, Debug)]
pub struct DataIn {
    /// Offset of its first byte.
    pub seq: u64,
    /// Payload bytes.
    pub len: u32,
    pub ce: bool,
    /// Whether the sender has reduced its window.
    pub cwr: bool,
    pub stamp: Time,
    /// Whether it asks for an acknowledgement, where that is to be asked for.
    pub asks: bool,
    /// Of a subflow's: which, and where its first byte belongs in the stream.
    pub mapping: Option<Mapping>,
}

/// The effect of the arrival of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Bytes delivered in order to the application by now.
    pub in_order_upto: u64,
    /// Whether the packet came before bytes that precede it.
    pub out_of_order: bool,
    /// ACKs to send now, in this order: first one for what came before a change of CE, if there is
    /// any (RFC 8257 §3.2).
    pub acks: [Option<AckOut>; 2],
}

impl Arrived {
    /// Nothing new has come of what ends at an offset.
    pub fn so_far(in_order_upto: u64) -> Arrived {
        Arrived { in_order_upto, out_of_order: false, acks: [None, None] }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    pub retransmitted: u32,
    /// Expiries of the retransmission timer, those of SYNs included.
    pub timeouts: u32,
}

/// The state of a sender, seen from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Where its loss recovery stands, in Linux's words.
    pub state: &'static str,
    /// The congestion window in bytes.
    pub cwnd: u64,
    /// The slow-start threshold in bytes; `u64::MAX` at first.
    pub ssthresh: u64,
    /// Bytes believed to be in the network.
    pub in_flight: u64,
    /// The quantities that its control law steers by beside the window: names and values.
    pub law: Vec<(&'static str, f64)>,
}
