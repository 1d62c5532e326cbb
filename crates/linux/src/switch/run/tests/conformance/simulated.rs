//! The trace: what the simulator's hosts sent and received, and what its edges decided.

use super::Verdict;
use crate::tests::{graph, record, tcp_flags};
use millpond_core::edge::gro::Counters;
use millpond_core::packet::{Kind, NONE, flags};
use millpond_core::{FlowId, HostId, Packet, Time};
use millpond_results::{FlowRecord, PacketRecord};
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::End;
use millpond_sim::PollRecord;
use millpond_sim::labels::LabelPlan;
use std::collections::{BTreeMap, BTreeSet};

pub const HOSTS: u32 = 6;
/// Spines, and so paths between hosts of different leaves.
const SPINES: u32 = 4;

/// Two leaves of three hosts, and four spines at different distances: 30 us a spine are two thirds
/// of a flowcell at line rate. One of them loses packets. Elephants both ways that meet at hosts
/// and in the fabric, and requests with their answers over connections that stay.
fn scenario() -> String {
    let hosts = (0..HOSTS).map(|h| (format!("host{h}"), format!("leaf{}", h / 3), 1_000_000));
    let fabric = (0..2 * SPINES).map(|i| {
        let (leaf, spine) = (i / SPINES, u64::from(i % SPINES));
        (format!("leaf{leaf}"), format!("spine{spine}"), 1_000_000 * (1 + 15 * spine * spine))
    });
    let links: Vec<_> = hosts.chain(fabric).collect();
    let switches = ["leaf0", "leaf1", "spine0", "spine1", "spine2", "spine3"];
    let graph = graph(HOSTS, &switches, &links);
    let taps: Vec<String> = (0..HOSTS).map(|h| format!("\"host{h}\"")).collect();
    format!(
        r#"
        duration = "10ms"
        {graph}
        [host]
        receive-offload = {{ kind = "presto-gro" }}
        [switch]
        buffer = {{ kind = "shared", size = "1MB", alpha = 1.0 }}
        path = {{ kind = "labels" }}
        [edge]
        load-balancing = {{ kind = "presto" }}
        [transport]
        kind = "cubic"
        initial-window = 40
        min-rto = "1ms"
        initial-rto = "1ms"
        [[failure]]
        link = ["leaf0", "spine1"]
        at = "0us"
        loss = 0.005
        [capture]
        pcap = [{}]
        [[traffic]]
        name = "bulk"
        kind = "flows"
        rows = [
            ["0us", 0, 3, 100000000], ["10us", 1, 4, 100000000],
            ["20us", 2, 3, 100000000], ["30us", 5, 0, 100000000],
            ["2ms", 1, 3, 100000000], ["3ms", 0, 4, 100000000],
            ["3ms", 4, 2, 100000000], ["4ms", 2, 1, 100000000],
        ]
        [[traffic]]
        name = "small"
        kind = "rpc"
        pairs = ["3-0"]
        request = 300
        response = 30001
        [[traffic]]
        name = "large"
        kind = "rpc"
        pairs = ["1-5"]
        request = 200000
        response = 90000
        "#,
        taps.join(", "),
    )
}

/// A segment that a transport has handed down, or an acknowledgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub host: HostId,
    pub to: HostId,
    pub at: Time,
    pub flow: FlowId,
    /// Carries data, or opens the connection for it.
    pub is_data: bool,
    pub seq: u32,
    pub payload: u32,
    /// IP and TCP headers of each packet.
    pub headers: u32,
    pub flags: u8,
    pub paths: u16,
    /// The edge's stamp: the label's place in the list of labels, and of data the flowcell.
    pub place: u16,
    pub flowcell: u16,
}

#[derive(Clone)]
pub struct Trace {
    pub plan: Plan,
    pub polls: Vec<PollRecord>,
    /// The segments that hosts sent, each host's in order.
    pub sent: Vec<Sent>,
    pub end: Time,
    pub retransmitted: u64,
}

pub fn simulate(seed: u64, set: &[(&str, &str)]) -> Trace {
    let (plan, records, outcome) = record(&scenario(), seed, set, true);
    let is_kept = |flow: &FlowRecord| flow.class > 0 || flow.finish.is_none();
    assert!(records.flows.iter().all(is_kept), "a flow that is over is forgotten");
    let sent = sent(&plan, &records.packets);
    Trace {
        plan,
        polls: records.polls,
        sent,
        end: outcome.simulated,
        retransmitted: outcome.hosts.retransmitted,
    }
}

/// Puts the packets that left hosts together to what was handed down.
fn sent(plan: &Plan, packets: &[PacketRecord]) -> Vec<Sent> {
    let labels = LabelPlan::new(plan).expect("hosts spread what they send");
    let mut open: BTreeMap<FlowId, Sent> = BTreeMap::new();
    let mut all = Vec::new();
    for record in packets.iter().filter(|record| record.outgoing) {
        let (p, End::Host(host)) = (record.packet, plan.capture.taps[usize::from(record.tap)].end)
        else {
            continue;
        };
        let is_data = is_forward(&p);
        // The simulator's edge does not stamp these; see the header.
        if !is_data && (p.kind() == Kind::SynAck || p.slot() == NONE) {
            continue;
        }
        let list = labels.between(record.at, p.src, p.dst);
        let place = list
            .iter()
            .position(|label| u32::from(*label) == p.entropy)
            .expect("a label of the list");
        let segment = Sent {
            host,
            to: p.dst,
            at: if is_data { p.stamp } else { record.at },
            flow: p.flow,
            is_data,
            seq: sequence(&p),
            payload: 0,
            headers: u32::from(p.size - p.payload),
            flags: tcp_flags(&p),
            paths: list.len() as u16,
            place: place as u16,
            flowcell: cell(&p),
        };
        let it = open.entry(p.flow << 1 | u32::from(is_data)).or_insert(segment);
        it.payload += u32::from(p.payload);
        if !is_data || p.has(flags::LAST) {
            all.extend(open.remove(&(p.flow << 1 | u32::from(is_data))));
        }
    }
    all
}

/// A packet's flowcell.
pub fn cell(packet: &Packet) -> u16 {
    packet.flowcell()
}
/// The same packet in another flowcell.
pub fn with_cell(mut packet: Packet, cell: u16) -> Packet {
    packet.set_flowcell(cell);
    packet
}

/// Of data, and of what opens the way for it.
pub fn is_forward(packet: &Packet) -> bool {
    matches!(packet.kind(), Kind::Data | Kind::Syn)
}

/// A SYN takes a sequence number there and none here; an acknowledgement has none here.
pub fn sequence(packet: &Packet) -> u32 {
    let seq = if is_forward(packet) { packet.seq() as u32 } else { 1 };
    seq.wrapping_sub(u32::from(is_syn(packet)))
}

fn is_syn(packet: &Packet) -> bool {
    matches!(packet.kind(), Kind::Syn | Kind::SynAck)
}

/// The fields that distinguish packets beside their flow: the type of service, the time to live,
/// and the millisecond in which they were handed down.
pub fn merge_identity(packet: &Packet) -> (u8, u8, u32) {
    let tos = packet.class.bits();
    (tos, packet.ttl, (packet.stamp.as_ps() / 1_000_000_000) as u32)
}

impl Trace {
    /// The polls of a host's queue.
    pub fn polls_of(&self, host: HostId) -> impl Iterator<Item = &PollRecord> {
        self.polls.iter().filter(move |poll| poll.host == host)
    }
    /// The segments that went up at a host.
    pub fn verdicts_of(&self, host: HostId) -> Vec<Verdict> {
        let up =
            self.polls_of(host).flat_map(|poll| poll.up.iter().map(|packet| (poll.at, packet)));
        let of = |(at, p): (Time, &Packet)| Verdict {
            at,
            flow: p.flow,
            seq: sequence(p),
            bytes: u32::from(p.payload),
            flags: tcp_flags(p),
            identity: merge_identity(p),
        };
        up.map(of).collect()
    }
    /// Flows with data to a host.
    pub fn flows_to(&self, host: HostId) -> usize {
        let taken = self.polls_of(host).flat_map(|poll| &poll.taken);
        taken
            .filter(|packet| packet.is_data())
            .map(|packet| packet.flow)
            .collect::<BTreeSet<_>>()
            .len()
    }
    pub fn counters(&self) -> Counters {
        let mut all = Counters::default();
        for host in 0..HOSTS {
            self.polls_of(host).last().iter().for_each(|poll| all.merge(&poll.counters));
        }
        all
    }
}
