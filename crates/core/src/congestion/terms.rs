//! The vocabulary of control laws: acknowledgements, cuts, windows, and demands on the network.

use super::*;

/// The two numbers that a law with a window steers, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub cwnd: u64,
    /// The slow-start threshold; `u64::MAX` at first.
    pub ssthresh: u64,
}

/// An acknowledgement, as a control law gets it.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    pub now: Time,
    /// Newly acknowledged bytes.
    pub bytes: u64,
    pub ece: bool,
    /// The first byte that is not acknowledged.
    pub una: u64,
    /// The first byte never sent.
    pub nxt: u64,
    /// Since the data that it answers was handed down.
    pub delay: Time,
    /// Switches that this data has crossed.
    pub hops: u8,
}

/// New data was acknowledged while nothing is being repaired and the window is what limits.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    pub now: Time,
    /// Newly acknowledged bytes.
    pub bytes: u64,
    pub srtt: Time,
    /// The most that slow start may add for this acknowledgement (RFC 3465's L), in bytes.
    pub limit: u64,
    /// Whether slow start ends at the threshold, as in Linux; RFC 5681 lets its last step pass it.
    pub is_bounded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Loss,
    Timeout,
    Mark,
}

/// A reason to reduce the window, its time and the bytes in flight.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub now: Time,
    /// Its sign: a loss, a timeout or a mark.
    pub cause: Cause,
    /// FlightSize, without what limited transmit has added (RFC 5681 §3.2).
    pub flight: u64,
}

/// How a receiver echoes congestion marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// Not at all: the connection declares no ECN.
    #[default]
    Off,
    /// RFC 8257 §3.2: the acknowledgement of marked bytes, and no other.
    Precise,
    /// RFC 3168 §6.1.3: every acknowledgement until the sender's CWR.
    Latch,
    /// By notifications of congestion (CNP), which the receiver sends.
    Notify,
}

/// The family of endpoints that runs a law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    #[default]
    Tcp,
    /// Several TCPs a connection, which share its stream.
    Mptcp {
        subflows: u8,
        /// Whether what one had in flight at a timeout is sent by others, too.
        reinjection: bool,
    },
    Rdma,
    Homa,
    /// Packets that take any path and come in any order.
    Uet,
}

impl Family {
    /// Whether its connections are TCPs, which open by handshakes and read the common keys of
    /// `[transport]`.
    pub fn is_tcp(self) -> bool {
        matches!(self, Family::Tcp | Family::Mptcp { .. })
    }
}

/// Facts that a queue pair's law gets when its connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The rate of its host's link.
    pub line: Rate,
    /// The longest round trip of the empty network.
    pub base_rtt: Time,
    /// Bytes that it may have in flight at line rate.
    pub window: u64,
}

/// A linked law's view of one of its connection's subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The congestion window, in bytes.
    pub cwnd: u64,
    /// Smoothed round-trip time, zero before the first sample.
    pub rtt: Time,
    /// [`Control::quality`].
    pub quality: u64,
}

/// A law's demands on the connection's two ends. By default: a TCP without ECN and without a pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    pub family: Family,
    /// How marks are echoed; `Off`: the connection declares no ECN.
    pub echo: Echo,
    /// Whether retransmissions are marked, too, which RFC 3168 §6.1.5 forbids.
    pub marks_retransmissions: bool,
    /// Whether an acknowledgement with an echo may grow the window.
    pub grows_on_echo: bool,
    /// Whether an echo may cut a window that a loss or a timeout has cut.
    pub cuts_after_loss: bool,
    /// Whether [`Control::window`] or [`Control::next_departure`] has a value.
    pub paces: bool,
    /// Whether TCP's packets leave one at a time, each at its own [`Control::next_departure`].
    pub spaces: bool,
    /// Whether its data collects telemetry ([`Control::on_telemetry`]).
    pub telemetry: bool,
    /// Whether a queue pair has a window in proportion to its rate, unless the scenario sets
    /// another.
    pub window: bool,
}

/// A quantity that a control law steers by, beside its window: a column of `connections.parquet`.
/// The end of its name is its unit (`_us`, `_bytes`, `_gbps`); without one it is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    pub name: &'static str,
    pub meaning: &'static str,
}

/// A quantity that a law steers by beside the window, and its value; `None` before there is one.
pub type Metric = (Quantity, Option<f64>);
