//! Records of a run beside its flows (`[capture]`), and which links fail when (`[[failure]]`).
//!
//! Both name nodes as the topology does ("host3", "leaf0"); `ports.rs` names ports.
//!
//! Invariant: recording changes no other result, and a plan names only ports, flows and links that
//! exist.

mod connections;
pub(crate) mod failures;
mod ports;

pub(crate) use failures::failures;

use crate::error::{Problem, Report, nearest};
use crate::settings::Settings;
use crate::topology::{End, Node, SwitchSite, Topology};
use crate::traffic::TrafficPlan;
use millpond_core::{Bytes, FlowId, HostId, Time};

/// Records of a run beside its flows.
#[derive(Clone, Debug, Default)]
pub struct CapturePlan {
    pub queues: Option<QueueCapture>,
    pub connections: Option<ConnectionCapture>,
    /// Period of the samples of what has been delivered.
    pub goodput: Option<Time>,
    /// Where packets are captured, in both directions.
    pub taps: Vec<Tap>,
    /// Bytes of each captured packet that are kept.
    pub snaplen: u32,
    /// Whether captured packets show TCP timestamps.
    pub tcp_timestamps: bool,
    /// Whether the summary reports round-trip times and timeouts.
    pub timers: bool,
    /// Whether a trace of flows and queues is written.
    pub trace: bool,
    /// Whether the observer gets what each poll of a receive queue did. No scenario asks for it:
    /// it is for tests that hold other drivers of the edge against the simulator's.
    pub polls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueCapture {
    /// From one sample to the next.
    pub every: Time,
    /// Switch ports and NICs, in ascending order; `None`: all ports of all switches.
    pub ports: Option<Vec<End>>,
    /// Whether the fullest sample of each port has its contents by flow.
    pub flows: bool,
}

/// Which connections are sampled: those for which all of this holds. Probes, and requests that are
/// not named by their number, make no flows and are none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionCapture {
    /// From one sample to the next.
    pub every: Time,
    /// Their flows, in ascending order; `None`: any.
    pub flows: Option<Vec<FlowId>>,
    /// Their classes; `None`: any.
    pub classes: Option<Vec<u16>>,
    /// Where their data comes from, in ascending order; `None`: anywhere.
    pub src: Option<Vec<HostId>>,
    /// Where it goes, in ascending order; `None`: anywhere.
    pub dst: Option<Vec<HostId>>,
    /// How many: the first that are found open at a sample, of several the lowest numbers.
    pub max: usize,
}

impl ConnectionCapture {
    /// Whether it means connections of this class that send from `src` to `dst`, by whatever
    /// number.
    pub fn means(&self, class: u16, src: HostId, dst: HostId) -> bool {
        let has = |hosts: &Option<Vec<HostId>>, host| {
            hosts.as_ref().is_none_or(|hosts| hosts.binary_search(&host).is_ok())
        };
        self.classes.as_ref().is_none_or(|classes| classes.contains(&class))
            && has(&self.src, src)
            && has(&self.dst, dst)
    }
}

/// A place where packets are captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// The name of its file, without the extension: "host3", "leaf0-4".
    pub name: String,
    /// The host or the switch's port.
    pub end: End,
    /// Its node and the one at the other end of its link: "leaf0 → host4".
    pub link: String,
}

impl Tap {
    /// The places of a name: a host's NIC, a port of a switch, all its ports, those that lead to a
    /// node, or both ends of a link.
    ///
    /// # Errors
    /// A sentence that names what is not there, and the nearest name that is.
    pub fn named(topology: &Topology, name: &str) -> Result<Vec<Tap>, String> {
        ports::named(topology, name)
            .map(|ends| ends.into_iter().map(|end| Tap::at(topology, end)).collect())
            .map_err(|(problem, help)| format!("{problem}: {help}"))
    }

    fn at(topology: &Topology, end: End) -> Tap {
        Tap { name: ports::file_name(topology, end), end, link: ports::link(topology, end) }
    }
}

/// Shorter periods would make more samples than packets.
const PERIOD_MIN: Time = Time::from_ns(10);
/// More samples than this have no place in a summary.
const GOODPUT_SAMPLES: u64 = 10_000;

/// The node of a name; a joint has none for scenarios.
fn node(topology: &Topology, name: &str) -> Option<Node> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| n.to_string() == text);
    if let Some(host) = name.strip_prefix("host").and_then(number) {
        return (host < topology.hosts).then_some(Node::Host(host));
    }
    let is = |switch: &SwitchSite| switch.name == name && !switch.is_joint;
    topology.switches.iter().position(is).map(|i| Node::Switch(i as u32))
}

/// The error on a name that no node has.
fn unknown(topology: &Topology, name: &str) -> (Problem, String) {
    let problem = Problem::Unknown { what: "node".into(), name: name.into() };
    let switches = topology.switches.iter().filter(|switch| !switch.is_joint);
    let switches: Vec<&str> = switches.map(|switch| switch.name.as_str()).collect();
    let hosts = format!("there are host0 to host{}", topology.hosts - 1);
    let help = match (nearest(name, switches.iter().copied()), switches.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => hosts,
        (None, [first, ..]) => {
            format!("{hosts} and switches from {first} to {}", switches[switches.len() - 1])
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
        report.wrong("capture.snaplen", message);
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
        report.value(report.at(&path), table, message);
    }
    let other = others.iter().map(|key| format!("{table}.{key}")).find(|key| s.is_written(key));
    if let Some(other) = other
        && every.is_none()
        && !s.is_written(&path)
    {
        let problem = Problem::Missing { table: table.into(), key: "every".into() };
        report.help(
            report.at(&other),
            problem,
            "write every = \"100us\", or as often as it is to be sampled",
        );
    }
    every
}

fn queues(s: &Settings, topology: &Topology, report: &mut Report) -> Option<QueueCapture> {
    let path = "capture.queues.ports";
    let mut ports: Vec<End> = Vec::new();
    for name in &s.capture.queues_ports {
        match ports::named(topology, name) {
            Ok(ends) => ports.extend(ends),
            Err((problem, help)) => report.help(report.at(path), problem, help),
        }
    }
    ports.sort_unstable();
    ports.dedup();
    let every = every(s, "capture.queues", s.capture.queues_every, &["ports", "flows"], report)?;
    let ports = (!s.capture.queues_ports.is_empty()).then_some(ports);
    Some(QueueCapture { every, ports, flows: s.capture.queues_flows })
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
    message.into_iter().for_each(|message| report.wrong("capture.goodput", message));
}

/// Where packets are captured; each place has a file.
fn taps(s: &Settings, topology: &Topology, report: &mut Report) -> Vec<Tap> {
    let mut taps: Vec<Tap> = Vec::new();
    for name in &s.capture.pcap {
        match ports::named(topology, name) {
            Ok(ends) => {
                for end in ends {
                    if !taps.iter().any(|tap| tap.end == end) {
                        taps.push(Tap::at(topology, end));
                    }
                }
            }
            Err((problem, help)) => report.help(report.at("capture.pcap"), problem, help),
        }
    }
    if taps.len() > u16::MAX as usize {
        report.wrong("capture.pcap", "names more than 65535 places");
    }
    taps
}
