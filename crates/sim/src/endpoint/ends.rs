//! The questions of a host to the two ends of a connection.
//!
//! A family answers those that mean something to it. Each other question has the answer here that
//! changes nothing.

use super::{AckIn, AckOut, Arrived, Beside, Counters, DataIn, Incoming, Outgoing, Standing};
use millpond_core::packet::{Body, Kind, Packet};
use millpond_core::{Mapping, Time};

pub trait Endpoint {
    /// The configuration that the connections of its family share.
    type Config: ?Sized;

    /// The application appends `bytes` to what is to be sent.
    fn write(&mut self, now: Time, bytes: u64);
    /// The same, of an application that has received the answer to all that it has written.
    fn write_next(&mut self, now: Time, bytes: u64) {
        self.write(now, bytes);
    }
    /// The next segment that may leave now, of at most `most` bytes (at least one packet, or
    /// nothing but the end of the stream will fit). To be called until `None`, after everything
    /// that happens to the sender.
    fn poll_send(&mut self, now: Time, most: u32, cfg: &Self::Config) -> Option<Outgoing>;
    /// Whether [`Endpoint::poll_send`] would give a segment, if offered room for one of any size.
    fn would_send(&self, cfg: &Self::Config) -> bool;
    /// A packet of its own that leaves beside its data, at once; `slot` is its own.
    fn beside(&mut self, _now: Time, _slot: u32, _: &Self::Config) -> Option<Beside> {
        None
    }
    /// How urgently it would send now, smaller first, where its host decides whose turn it is;
    /// `None`: it may not. Where a pace alone keeps it, the deadline is its departure at the
    /// latest.
    fn urgency(&mut self, _now: Time, _: &Self::Config) -> Option<u64> {
        None
    }
    /// The same of one that has just sent.
    fn urgency_still(&self) -> Option<u64> {
        None
    }
    /// Subflows, as bits, that get nothing to send for now.
    fn pass_by(&mut self, _subflows: u64) {}
    /// How many senders share its NIC, itself included.
    fn shares_nic(&mut self, _senders: u32) {}

    /// An acknowledgement of a byte stream.
    fn on_ack(&mut self, _now: Time, _: &AckIn, _: &Self::Config) {}
    /// The answer to a SYN that was handed down at `stamp`, of a subflow or of the connection.
    fn on_syn_ack(&mut self, _now: Time, _stamp: Time, _: Option<Mapping>, _: &Self::Config) {}
    /// A packet of its receiver's that is none of these; what it answers at once.
    fn on_packet(&mut self, _now: Time, _: &Incoming, _: &Self::Config) -> Option<Body> {
        None
    }
    /// A round-trip time learned otherwise than by data: the accepting end's, from SYN-ACK to the
    /// ACK of it.
    fn on_rtt(&mut self, _rtt: Time, _: &Self::Config) {}

    /// When [`Endpoint::on_timer`] has something to do; `Time::MAX`: never.
    fn deadline(&self) -> Time;
    /// Time has come to `now`; does nothing before the deadline.
    fn on_timer(&mut self, now: Time, cfg: &Self::Config);
    /// Whether no timer of its own lets it send again: it waits for its peer or for room in its
    /// NIC.
    fn waits(&self) -> bool {
        self.deadline() == Time::MAX
    }
    /// Whether its timer can stand still while its flow is held.
    fn freezes(&self) -> bool {
        true
    }
    /// Its flow was held for so long, and its timers stood still.
    fn thaw(&mut self, _now: Time, _held: Time) {}

    /// Bytes acknowledged.
    fn acked(&self) -> u64;
    /// Bytes written.
    fn written(&self) -> u64;
    /// Bytes sent, the first byte never sent.
    fn sent(&self) -> u64;
    /// Whether something was written and all of it is acknowledged.
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.acked() == self.written() && self.written() > 0
    }
    /// The smoothed round-trip time, zero before the first sample.
    fn srtt(&self) -> Time {
        Time::ZERO
    }
    fn rto(&self) -> Time {
        Time::ZERO
    }
    /// Messages that it has given up.
    fn aborted(&self) -> u32 {
        0
    }
    fn counters(&self) -> Counters;
    fn standing(&self, cfg: &Self::Config) -> Standing;
}

/// The questions of limits at the sending host: a segment is looked at before it is sent, and may
/// be refused. `check` refuses limits to all families but TCP.
pub trait Limited: Endpoint {
    /// The segment that [`Endpoint::poll_send`] would give now, without giving it.
    fn peek(&mut self, _now: Time, _most: u32, _: &Self::Config) -> Option<Outgoing> {
        None
    }
    /// Packets that were sent and are not acknowledged, as Linux's packets_out counts them.
    fn packets_out(&self, _: &Self::Config) -> u32 {
        0
    }
    /// Whether only one segment may be tried, because the probe timer tries.
    fn is_probing(&self) -> bool {
        false
    }
    /// The segment that was looked at may leave.
    fn accepted(&mut self) {}
    /// The segment that was looked at was refused, with the order to reduce the window or without.
    fn refused(&mut self, _now: Time, _reduces: bool, _: &Self::Config) {}
    /// The local host is congested: the window is reduced, at most once a window of data.
    fn reduce(&mut self, _now: Time, _: &Self::Config) {}
}

/// TLT's questions: where the sender stands, and segments that its windows did not allow.
pub trait Marked: Endpoint {
    /// Bytes sent as TLT and virtual switches count them, by the offsets of one stream.
    fn sent_in_order(&self) -> u64 {
        self.sent()
    }
    /// Whether it repairs a loss, and what it sends may make way for what is known to be lost:
    /// TCP's alone, as in TLT's released simulators.
    fn is_recovering(&self) -> bool {
        false
    }
    /// Whether the pace alone keeps its next packet.
    fn is_held(&self) -> bool {
        false
    }
    /// Whether a message ends at an offset; a stream is one.
    fn ends_message(&self, at: u64) -> bool {
        at == self.written()
    }
    /// Times that it went back to what is missing.
    fn rewinds(&self) -> u32 {
        0
    }
    /// `len` bytes from `seq` on once more, whatever the windows. Once they have left,
    /// [`Marked::forced_out`] follows.
    fn forced(&self, _seq: u64, _len: u32, _: &Self::Config) -> Option<Outgoing> {
        None
    }
    fn forced_out(&mut self) {}
    /// The next segment's place was taken by one of `len` bytes.
    fn displaced(&mut self, _len: u32) {}
}

pub trait Receives {
    /// The configuration that the connections of its family share.
    type Config: ?Sized;

    fn on_data(&mut self, _now: Time, _: DataIn, _: &Self::Config) -> Arrived {
        Arrived::so_far(self.expected(None))
    }
    /// A packet arrives of a family whose data has no one sequence: what has come by now, if it is
    /// data, and the answer to it; `slot` is its own.
    fn on_packet(
        &mut self,
        _now: Time,
        _: &Packet,
        _slot: u32,
        _: &Self::Config,
    ) -> (Option<Arrived>, Option<Beside>) {
        (None, None)
    }
    /// The next byte that is expected of the sequence which a packet with this mapping is of.
    fn expected(&self, mapping: Option<Mapping>) -> u64;
    /// When [`Receives::on_timer`] has something to do; `Time::MAX`: never.
    fn deadline(&self) -> Time {
        Time::MAX
    }
    /// The ACK that was held back, if its time has come, and which subflow's it is.
    fn on_timer(&mut self, _now: Time, _: &Self::Config) -> Option<(AckOut, Option<u8>)> {
        None
    }
    /// An answer to all that has arrived, now, to a packet that was marked or not.
    fn acknowledge(&mut self, _is_marked: bool, _: &Self::Config) -> Option<AckOut> {
        None
    }
    /// Whether its answers to important data are echoes: there is an ACK clock.
    fn echoes(&self, _: &Self::Config) -> bool {
        true
    }
    /// Messages that it has given up.
    fn aborted(&self) -> u32 {
        0
    }
    /// The priority of an answer, where it is not that of the data.
    fn priority(&self, _: Kind, _: &Self::Config) -> Option<u8> {
        None
    }
}
