//! What a run records beside its flows (`[capture]`), and which links fail when (`[[failure]]`).
//!
//! Both name nodes as the topology does ("host3", "leaf0"); what a port is called is told in
//! `ports.rs`.
//!
//! Invariant: recording changes no other result, and a plan names only ports, flows and links that
//! exist.

mod connections;
mod failures;
mod ports;

pub use connections::FlowSet;
pub(crate) use failures::failures;

use crate::error::{Problem, Report, nearest};
use crate::limit::HostSet;
use crate::plan::{CapturePlan, QueueCapture, Tap};
use crate::settings::Settings;
use crate::topology::{End, Topology};
use crate::traffic::TrafficPlan;
use millpond_core::{Bytes, Time, choice, params};

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
        /// Whether summary.json tells, of each class, the smoothed round-trip time and the
        /// retransmission timeout that its flows ended with (`timers_us`).
        pub timers: bool = false,
        /// Whether to write trace.json, a trace of flows by host and (where there are samples) of
        /// queues, for ui.perfetto.dev or chrome://tracing.
        pub trace: bool = false,
    }
}

choice! {
    /// Which packets a lossy link may lose.
    pub enum Losable {
        /// All alike.
        All = "all",
        /// Those that a color-aware switch may drop early: TLT's unimportant packets.
        Unimportant = "unimportant",
    }
}

params! {
    /// One `[[failure]]`: a link that is down for a while, or loses packets. A packet is lost if
    /// its link is down at any time between the start of its transmission and its arrival.
    pub struct FailureParams {
        /// The two ends, as in ["leaf0", "spine1"] or ["host3", "leaf0"]: all links between them
        /// fail, or the one that `number` chooses. Or the name that a topology's list gives a link,
        /// as in "uplink3": that link alone fails.
        pub link: Vec<String> = Vec::new(),
        /// Which one of several parallel links fails: its place among the links between the two
        /// ends, from 0, in the order of the topology's list and of the ports. Off means all.
        pub number: Option<u32> = None,
        /// When it goes down.
        pub at: Time = Time::ZERO,
        /// When it is up again; off means never.
        pub until: Option<Time> = None,
        /// How long the switches at both ends take to notice, each time. From then on they choose
        /// no port whose link is down where a route has another. A link that is only lossy is not
        /// noticed.
        pub detect: Time = Time::ZERO,
        /// From the failure, and again from the repair, until the routes of the whole network are
        /// those of the links that are up; "never": switches further away learn nothing. Source:
        /// ours, the fast end of what is told of fabrics. By RFC 7938, section 7 a link's ends
        /// often see it within milliseconds and a BGP fabric follows in less than a second; tuned
        /// ones take tens of milliseconds.
        pub converge: Option<Time> = Some(Time::from_ms(1)),
        /// Share of the packets that are lost; below 1 each by chance, for itself.
        #[within(0..=1)]
        pub loss: f64 = 1.0,
        /// Which packets may be lost: all, or the unimportant ones.
        pub losable: Losable = Losable::All,
    }
}

/// Shorter periods would make more samples than packets.
const PERIOD_MIN: Time = Time::from_ns(10);
/// More samples than this have no place in a summary.
const GOODPUT_SAMPLES: u64 = 10_000;

/// A node by its name.
enum Node {
    Host(u32),
    Switch(u32),
}

fn node(topology: &Topology, name: &str) -> Option<Node> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| n.to_string() == text);
    if let Some(host) = name.strip_prefix("host").and_then(number) {
        return (host < topology.hosts).then_some(Node::Host(host));
    }
    topology.switches.iter().position(|s| s.name == name).map(|i| Node::Switch(i as u32))
}

/// What to say of a name that no node has.
fn unknown(topology: &Topology, name: &str) -> (Problem, String) {
    let problem = Problem::Unknown { what: "node".into(), name: name.into() };
    let help = match nearest(name, topology.switches.iter().map(|s| s.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let last = topology.switches.last().map_or("", |s| s.name.as_str());
            format!(
                "there are host0 to host{} and switches from {} to {last}",
                topology.hosts - 1,
                topology.switches[0].name
            )
        }
    };
    (problem, help)
}

/// The plan of what is recorded.
pub(crate) fn capture(
    s: &Settings,
    topology: &Topology,
    traffic: &TrafficPlan,
    report: &mut Report,
) -> CapturePlan {
    let c = &s.capture;
    check_goodput(s, report);
    let snaplen = c.snaplen.map_or(u32::MAX as u64, Bytes::get);
    if snaplen < 54 {
        let message = format!("{snaplen} bytes do not hold the headers; 54 is the least");
        report.value(s.place("capture.snaplen"), "capture.snaplen", message);
    }
    CapturePlan {
        queues: queues(s, topology, report),
        connections: connections::connections(s, topology, traffic, report),
        goodput: c.goodput,
        taps: taps(s, topology, report),
        snaplen: u32::try_from(snaplen).unwrap_or(u32::MAX),
        tcp_timestamps: c.tcp_timestamps,
        timers: c.timers,
        trace: c.trace,
        polls: false,
    }
}

/// The period of a table of samples such as `queues`, if there is one. `others` are the table's
/// other keys that are written: without a period they have no effect.
fn every(
    s: &Settings,
    table: &str,
    every: Option<Time>,
    others: &[&str],
    report: &mut Report,
) -> Option<Time> {
    let path = format!("{table}.every");
    if every.is_some_and(|period| period < PERIOD_MIN) {
        let message =
            format!("{} is too short; {PERIOD_MIN} is the least", every.unwrap_or_default());
        report.value(s.place(&path), table, message);
    }
    let other = others.iter().map(|key| format!("{table}.{key}")).find(|key| s.is_written(key));
    if let Some(other) = other
        && every.is_none()
        && !s.is_written(&path)
    {
        let problem = Problem::Missing { table: table.into(), key: "every".into() };
        report.help(
            s.place(&other),
            problem,
            "write every = \"100us\", or as often as it is to be sampled",
        );
    }
    every
}

/// Which queues are sampled.
fn queues(s: &Settings, topology: &Topology, report: &mut Report) -> Option<QueueCapture> {
    let path = "capture.queues.ports";
    let mut ports: Vec<End> = Vec::new();
    for name in &s.capture.queues_ports {
        match ports::named(topology, name) {
            Ok(ends) => ports.extend(ends),
            Err((problem, help)) => report.help(s.place(path), problem, help),
        }
    }
    ports.sort_unstable();
    ports.dedup();
    let every = every(s, "capture.queues", s.capture.queues_every, &["ports"], report)?;
    Some(QueueCapture { every, ports: (!s.capture.queues_ports.is_empty()).then_some(ports) })
}

fn check_goodput(s: &Settings, report: &mut Report) {
    let Some(period) = s.capture.goodput else { return };
    let least =
        s.run.duration.map(|duration| Time::from_ps(duration.as_ps().div_ceil(GOODPUT_SAMPLES)));
    let message = match least {
        Some(least) if period < least => {
            Some(format!("{period} is too short for this duration; {least} is the least"))
        }
        Some(_) => None,
        None => Some("needs a duration".to_string()),
    };
    message
        .into_iter()
        .for_each(|message| report.value(s.place("capture.goodput"), "capture.goodput", message));
}

/// Where packets are captured; each place has a file.
fn taps(s: &Settings, topology: &Topology, report: &mut Report) -> Vec<Tap> {
    let mut taps: Vec<Tap> = Vec::new();
    for name in &s.capture.pcap {
        match ports::named(topology, name) {
            Ok(ends) => {
                for end in ends {
                    if !taps.iter().any(|tap| tap.end == end) {
                        taps.push(Tap { name: ports::file_name(topology, end), end });
                    }
                }
            }
            Err((problem, help)) => report.help(s.place("capture.pcap"), problem, help),
        }
    }
    if taps.len() > u16::MAX as usize {
        report.value(s.place("capture.pcap"), "capture.pcap", "names more than 65535 places");
    }
    taps
}
