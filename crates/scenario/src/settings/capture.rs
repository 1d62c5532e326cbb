//! `[capture]`: its keys.

use crate::settings::hosts::{HostSet, ranges, ranges_value};
use millpond_core::params::{Field, Form, Value, ValueError};
use millpond_core::{Bytes, FlowId, Time, params};

params! {
    /// The table `[capture]`: what a run records beside its flows.
    pub struct CaptureParams {
        /// Time from one sample of the ports' queues to the next, for queues.parquet; off means
        /// none. A port has a row for each sample at which it holds a packet, and one with zeros
        /// for the first at which it holds none again. `queues = "10us"` is short for `queues = {
        /// every = "10us" }`.
        pub queues_every: Option<Time> = None,
        /// The ports that are sampled: "leaf0:4", "leaf0->spine1" or "leaf0->host3" (all ports of
        /// the first that lead to the second), "leaf0->spine1#2" (one of several parallel links,
        /// from 0), "leaf0" (all its ports), "host3" (a host's NIC), or the name that a topology's
        /// list gives a link (the ports at both its ends). Empty means all ports of all switches.
        pub queues_ports: Vec<String> = Vec::new(),
        /// Whether summary.json has, of each sampled port, the flows that held bytes in it at its
        /// fullest sample (`queue_peaks`). Ports are general ones then: the results are the same.
        pub queues_flows: bool = false,
        /// Time from one sample of the chosen connections to the next, for connections.parquet:
        /// window, round-trip time, retransmission timeout, and what the transport steers by
        /// (DCTCP's alpha, Swift's target). Off means none. `connections = "10us"` is short for
        /// `connections = { every = "10us" }`.
        pub connections_every: Option<Time> = None,
        /// The flows that are sampled, by their numbers in flows.parquet, such as 3 or ["0..7",
        /// "9"] (both ends count). Off means any.
        pub connections_flows: Option<FlowSet> = None,
        /// The traffics (or classes of a list of flows) whose flows are sampled; empty means any.
        pub connections_traffic: Vec<String> = Vec::new(),
        /// The hosts whose data is sampled where it is sent: a number, or ranges such as "0..7"
        /// (both ends count). Off means any.
        pub connections_src: Option<HostSet> = None,
        /// The hosts that the data is for. Off means any.
        pub connections_dst: Option<HostSet> = None,
        /// How many connections are sampled: those that are open at the first samples, of several
        /// the lowest numbers.
        #[within(1..=100000)]
        pub connections_max: u32 = 16,
        /// Time from one sample of what has been delivered to the next, for the goodput of each
        /// class over time in summary.json (`goodput_over_time`) and on the page; off means none.
        pub goodput: Option<Time> = None,
        /// Hosts and switch ports whose packets and PAUSE frames are written, in both directions,
        /// to a pcapng file each (host3.pcapng, leaf0-4.pcapng). They are named as in
        /// `queues.ports`.
        pub pcap: Vec<String> = Vec::new(),
        /// Bytes of each captured packet that are kept, from its Ethernet header on; off means all.
        pub snaplen: Option<Bytes> = Some(Bytes(96)),
        /// Whether captured packets show TCP timestamps (RFC 7323, in microseconds). The simulated
        /// packet has no room for them: each captured one is then 12 bytes longer than it was.
        pub tcp_timestamps: bool = false,
        /// Whether summary.json has, of each class, the smoothed round-trip time and the
        /// retransmission timeout that its flows ended with (`timers_us`).
        pub timers: bool = false,
        /// Whether to write trace.json, a trace of flows by host and (where there are samples) of
        /// queues, for ui.perfetto.dev or chrome://tracing.
        pub trace: bool = false,
    }
}

/// Flows by their numbers: from the first to the last of each pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSet(pub Vec<(FlowId, FlowId)>);

impl Field for FlowSet {
    const FORM: Form = Form::List;
    fn to_value(&self) -> Value {
        ranges_value(&self.0)
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        let message = "expected the number of a flow, or numbers and ranges such as [\"0..7\", \
                       \"9\"] (both ends count)";
        ranges(value, "flow").map(FlowSet).ok_or_else(|| ValueError(message.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_numbers_and_ranges() {
        let of = |value: Value| FlowSet::from_value(&value).map(|set| set.0).ok();
        assert_eq!(of(Value::Int(3)), Some(vec![(3, 3)]));
        assert_eq!(of(Value::Text("0..2, 9".into())), Some(vec![(0, 2), (9, 9)]));
        assert_eq!(
            of(Value::List(vec!["4".into(), "flow7..8".into()])),
            Some(vec![(4, 4), (7, 8)])
        );
        for wrong in ["x", "1..", "..3", "-1", "4294967296"] {
            assert_eq!(of(Value::Text(wrong.into())), None, "{wrong}");
        }
        assert_eq!(
            FlowSet(vec![(0, 2), (9, 9)]).to_value(),
            Value::List(vec!["0..2".into(), "9".into()])
        );
    }
}
