//! The trace: what the links of each switch carried.

use super::{Counted, Left, Seen};
use crate::dataplane::frame::pause::QUANTUM_BYTES;
use crate::tests::{graph, record, tcp_flags};
use millpond_core::packet::{Body, flags};
use millpond_core::switch::Switch;
use millpond_core::switch::pause::PauseTarget;
use millpond_core::{Ecn, Packet, Rate, Time};
use millpond_results::{PacketRecord, PauseRecord};
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::End;
use millpond_sim::build::build;
use std::collections::BTreeMap;

const HOSTS: u32 = 8;

/// Two leaves of four hosts, and two spines. The fabric's links differ in length by odd amounts, so
/// that what left a leaf at one instant does not meet at the next one.
fn scenario() -> String {
    let hosts = (0..HOSTS).map(|h| (format!("host{h}"), format!("leaf{}", h / 4), 1_000_000));
    let fabric = [(0, 0, 101), (0, 1, 233), (1, 0, 367), (1, 1, 490)];
    let fabric = fabric.map(|(leaf, spine, odd)| {
        (format!("leaf{leaf}"), format!("spine{spine}"), 1_000_000 + odd)
    });
    let links: Vec<_> = hosts.chain(fabric).collect();
    let graph = graph(HOSTS, &["leaf0", "leaf1", "spine0", "spine1"], &links);
    format!("duration = \"2ms\"\n{graph}{REST}")
}

const REST: &str = r#"
    [switch]
    buffer = { kind = "per-port", size = "30KB" }
    marking = { kind = "ecn", threshold-packets = 5 }
    [transport]
    kind = "dctcp"
    initial-window = 20
    min-rto = "200us"
    initial-rto = "200us"
    [host]
    jitter = { kind = "uniform" }
    [capture]
    pcap = ["leaf0", "leaf1", "spine0", "spine1"]
    [[traffic]]
    name = "queries"
    kind = "incast"
    degree = 6
    response = "40KB"
    request = "none"
    period = "200us"
    receiver = "random"
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "cache-follower"
    load = 0.5
"#;

#[derive(Clone)]
pub struct Trace {
    pub plan: Plan,
    /// Packets that links carried to switches and from them, in the order of time.
    pub packets: Vec<PacketRecord>,
    pub pauses: Vec<PauseRecord>,
    pub counted: Counted,
    pub end: Time,
}

pub fn simulate(seed: u64, set: &[(&str, &str)]) -> Trace {
    let (plan, records, outcome) = record(&scenario(), seed, set, false);
    let (marked, deflected) = (outcome.marked, outcome.deflected);
    let counted =
        Counted { marked, deflected, dropped: outcome.audit.dropped.map(|tally| tally.packets) };
    Trace {
        plan,
        packets: records.packets,
        pauses: records.pauses,
        counted,
        end: outcome.simulated,
    }
}

/// The first so many runs in which no two ports of a switch have an arrival at the same picosecond:
/// which one came first is not recorded.
pub fn runs(count: usize, set: &[(&str, &str)]) -> Vec<Trace> {
    let runs: Vec<Trace> =
        (1..40).map(|seed| simulate(seed, set)).filter(Trace::is_ordered).take(count).collect();
    assert_eq!(runs.len(), count);
    runs
}

/// A packet or pause that arrives at a switch.
#[derive(Clone, Copy, Debug)]
pub enum Arrival {
    Packet(Packet),
    Pause(u8, u16),
}

impl Trace {
    fn is_ordered(&self) -> bool {
        let mut ports = BTreeMap::new();
        let mut arrivals = self.packets.iter().filter(|record| !record.outgoing);
        arrivals.all(|record| {
            let (switch, port) = self.place(record.tap);
            *ports.entry((switch, record.at)).or_insert(port) == port
        })
    }

    pub fn switches(&self) -> u32 {
        self.plan.topology.switches.len() as u32
    }

    /// The simulator's switch before its first packet.
    pub fn node(&self, switch: u32) -> Switch {
        let (_, partitions) = build(&self.plan, 1);
        let mut nodes = partitions.iter().flat_map(|partition| &partition.switches);
        nodes.find(|node| node.index == switch).expect("a switch of the network").switch.clone()
    }

    /// The rates of a switch's links, by port.
    pub fn rates(&self, switch: u32) -> Vec<Rate> {
        let links = &self.plan.topology.links;
        let ends = links.iter().flat_map(|link| [(link.a, link.rate), (link.b, link.rate)]);
        let mut rates: Vec<(u16, Rate)> = ends
            .filter_map(|(end, rate)| match end {
                End::Switch { switch: its, port } if its == switch => Some((port, rate)),
                _ => None,
            })
            .collect();
        rates.sort_by_key(|(port, _)| *port);
        rates.into_iter().map(|(_, rate)| rate).collect()
    }

    /// The switch and the port that a capture is of.
    fn place(&self, tap: u16) -> (u32, u16) {
        match self.plan.capture.taps[usize::from(tap)].end {
            End::Switch { switch, port } => (switch, port),
            End::Host(host) => unreachable!("host{host} is not captured"),
        }
    }

    /// Arrivals at a switch: when, and by which port. Of one instant, packets come before pauses.
    pub fn arrivals(&self, switch: u32) -> Vec<(Time, u16, Arrival)> {
        let packets = self.packets.iter().filter(|record| !record.outgoing);
        let packets = packets.map(|record| (record.at, record.tap, Arrival::Packet(record.packet)));
        let pauses = self.pauses.iter().filter(|record| !record.outgoing);
        let pauses = pauses.map(|record| {
            let (priority, quanta) = said(record);
            (record.at, record.tap, Arrival::Pause(priority, quanta))
        });
        let here = packets.chain(pauses).map(|(at, tap, what)| (at, self.place(tap), what));
        let here = here.filter(|(_, place, _)| place.0 == switch);
        let mut arrivals: Vec<_> = here.map(|(at, place, what)| (at, place.1, what)).collect();
        arrivals.sort_by_key(|(at, _, _)| *at);
        arrivals
    }

    /// Packets and pauses that left a switch.
    pub fn left(&self, switch: u32) -> Vec<Left> {
        let packets = self.packets.iter().filter(|record| record.outgoing);
        let packets = packets
            .map(|record| (record.tap, Left::Packet(seen(record, self.place(record.tap).1))));
        let pauses = self.pauses.iter().filter(|record| record.outgoing);
        let pauses = pauses.map(|record| {
            let (PauseRecord { at, tap, .. }, (priority, quanta)) = (*record, said(record));
            (tap, Left::Pause { at, port: self.place(tap).1, priority, quanta })
        });
        let mut left: Vec<Left> = packets
            .chain(pauses)
            .filter(|(tap, _)| self.place(*tap).0 == switch)
            .map(|(_, left)| left)
            .collect();
        left.sort_by_key(|left| match left {
            Left::Packet(seen) => seen.at,
            Left::Pause { at, .. } => *at,
        });
        left
    }

    pub fn ecn(&self, record: usize) -> Ecn {
        self.packets[record].packet.class.ecn()
    }
    pub fn set_ecn(&mut self, record: usize, ecn: Ecn) {
        let packet = &mut self.packets[record].packet;
        packet.class = packet.class.with_ecn(ecn);
    }
}

fn seen(record: &PacketRecord, port: u16) -> Seen {
    let p = &record.packet;
    let (seq, ack) = numbers(p);
    Seen {
        at: record.at,
        port,
        flow: p.flow,
        seq,
        ack,
        size: p.size,
        flags: tcp_flags(p),
        ecn: p.class.ecn(),
        ttl: p.ttl,
        rank: p.rank,
        deflected: p.has(flags::DEFLECTED),
    }
}

/// Two numbers by which packets of a flow are distinguished.
pub fn numbers(p: &Packet) -> (u32, u32) {
    match p.body {
        Body::Data { seq, .. } => (seq as u32, 0),
        Body::Ack { ack, .. } => (0, ack as u32),
        _ => (0, 0),
    }
}

/// The words of a pause's frame: which priority, and for how many quanta of its link.
fn said(record: &PauseRecord) -> (u8, u16) {
    let PauseTarget::Priority(priority) = record.frame.target else {
        panic!("no PFC frame: {record:?}")
    };
    let quantum = record.rate.time(QUANTUM_BYTES).as_ps();
    (priority, u16::try_from(record.frame.duration.as_ps().div_ceil(quantum)).unwrap_or(u16::MAX))
}
