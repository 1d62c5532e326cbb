//! Importance: *is this packet important?* Hosts mark the few packets whose loss would cause a
//! timeout.
//!
//! | file | for |
//! |---|---|
//! | `window` | transports with a window (TCP, HPCC, IRN): one important packet in flight, always |
//! | `rate` | transports without an ACK clock: a message's last packet, the first of go-back-N |
//!
//! Follows TLT (Lim, Bai, Zhu, Jung, Han: Towards timeout-less transport in commodity datacenter
//! networks, EuroSys 2021) and its authors' published simulators. A drop causes a timeout only
//! where nothing that arrives later reveals it to the sender. So it is enough that one data packet
//! a flow, or the acknowledgement of one, is in the network and cannot be dropped: what was sent
//! before it and is not acknowledged by its echo is lost, and the sender learns of it within two
//! round trips. Switches with two colors ([`Importance::color`](crate::Importance::color)) drop the
//! others beyond a threshold and so keep room for these.
//!
//! A receiver needs no state: it answers an important packet at once, with an echo
//! ([`Importance::echo`](crate::Importance::echo)). Data on the way back never carries one.
//! Transports without an ACK clock have no echoes.
//!
//! TLT changes no window and no rate. It marks, sometimes forces out a packet that the transport
//! would not have sent, and reads echoes. All of it is free of clocks and I/O: the same machine can
//! mark the traffic of an unmodified TCP at the host's edge.
//!
//! Invariant: while a flow has data unacknowledged, an important data packet of it is in flight, or
//! its echo is, or the sender is about to send one.

mod rate;
mod window;

pub use rate::RateMarker;
pub use window::{First, Force, Forced, LostRounds, Sent, Standing, TltParams, WindowMarker};

use crate::packet;
use crate::registry::{About, PathProperty, Reason, Signal};

crate::params! {
    /// All packets are alike.
    pub struct AlikeParams {}
}

const ALIKE: About = About { summary: "all packets are alike", source: "", ..About::PLAIN };
const WINDOW: About = About {
    summary: "one data packet a flow is important, and its echo: what was sent before it and is \
              not echoed is lost",
    source: "Lim et al.: Towards timeout-less transport in commodity datacenter networks, EuroSys \
             2021",
    needs: &[PathProperty::FifoPerFlow, PathProperty::ImportantSurvives, PathProperty::TimersRun],
    provides: &[Signal::Colors],
    answers: Some(Reason::Timeouts),
    ..About::PLAIN
};

crate::registry! {
    /// Which packets are important.
    place: "transport.importance", question: "is this packet important?", default: None,
    params: ImportanceParams;
    "none" => None { AlikeParams; ALIKE },
    "tlt" => Tlt { TltParams; WINDOW },
}

/// One flow's machine at its sender, of the kind that its transport asks for.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // most are the large one
pub enum Marker {
    /// There is an ACK clock.
    Window(WindowMarker),
    /// There is none.
    Rate(RateMarker),
}

impl Marker {
    /// Of a new flow, if any of its packets is important. `has_clock`: acknowledgements let packets
    /// out.
    pub fn of(params: &ImportanceParams, has_clock: bool) -> Option<Marker> {
        match params {
            ImportanceParams::None(_) => None,
            ImportanceParams::Tlt(params) if has_clock => {
                Some(Marker::Window(WindowMarker::new(params)))
            }
            ImportanceParams::Tlt(params) => Some(Marker::Rate(RateMarker::new(params))),
        }
    }

    /// The same of a queue pair: its clock starts with its first packet, unless something else is
    /// written.
    pub fn of_queue_pair(params: &ImportanceParams, has_clock: bool) -> Option<Marker> {
        match params {
            ImportanceParams::Tlt(params) if params.first == First::Auto => {
                let first = TltParams { first: First::First, ..params.clone() };
                Marker::of(&ImportanceParams::Tlt(first), has_clock)
            }
            _ => Marker::of(params, has_clock),
        }
    }

    /// A data packet `[seq, seq + len)` leaves. `last`: the transport can send nothing after it for
    /// now.
    #[inline]
    pub fn on_packet(
        &mut self,
        seq: u64,
        len: u32,
        last: bool,
        ends_message: bool,
    ) -> packet::Importance {
        match self {
            Marker::Window(marker) => marker.on_packet(seq, len, last),
            Marker::Rate(marker) => marker.on_packet(len, ends_message),
        }
    }

    /// An acknowledgement has come ([`WindowMarker::on_ack`]); whether the transport may see it.
    #[inline]
    pub fn on_ack(
        &mut self,
        importance: packet::Importance,
        ack: u64,
        sacked: &[(u64, u64)],
        una: u64,
    ) -> bool {
        match self {
            Marker::Window(marker) => marker.on_ack(importance, ack, sacked, una),
            Marker::Rate(_) => true,
        }
    }

    /// The packet to send in the place of the next one of a recovery ([`WindowMarker::instead`]).
    pub fn instead(&mut self, seq: u64, mss: u32) -> Option<Forced> {
        match self {
            Marker::Window(marker) => marker.instead(seq, mss),
            Marker::Rate(_) => None,
        }
    }

    /// The packet to send so that the clock does not stop ([`WindowMarker::after_ack`]).
    #[inline]
    pub fn after_ack(&mut self, standing: Standing, mss: u32) -> Option<Forced> {
        match self {
            Marker::Window(marker) => marker.after_ack(standing, mss),
            Marker::Rate(_) => None,
        }
    }

    /// A packet to be forced out was refused at its own host, and never sent
    /// ([`WindowMarker::on_refusal`]).
    pub fn on_refusal(&mut self, forced: &Forced) {
        if let Marker::Window(marker) = self {
            marker.on_refusal(forced);
        }
    }

    /// The sender goes back to what is missing.
    pub fn on_rewind(&mut self) {
        if let Marker::Rate(marker) = self {
            marker.on_rewind();
        }
    }

    /// The retransmission timer has expired.
    pub fn on_timeout(&mut self) {
        match self {
            Marker::Window(marker) => marker.on_timeout(),
            Marker::Rate(marker) => marker.on_rewind(),
        }
    }

    /// Packets and bytes sent: unimportant, important, forced; and how many losses were repaired
    /// unseen.
    pub fn counted(&self) -> ([Sent; 3], u32) {
        match self {
            Marker::Window(marker) => (marker.sent, marker.masked),
            Marker::Rate(RateMarker { sent: [unimportant, important], .. }) => {
                ([*unimportant, *important, Sent::default()], 0)
            }
        }
    }
}

#[cfg(test)]
mod tests;
