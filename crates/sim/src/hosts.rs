//! The hosts of one partition: applications and connections, and the driver of their nodes.
//!
//! The stages between a connection and the link are [`millpond_core::host`]. Here are its
//! endpoints, and the events and links that it is driven by (`wire`).
//!
//! A connection has a sending side at one host and a receiving side at the other, each in its
//! host's partition. The two sides exchange packets; facts of the simulation itself (that a
//! connection exists, that it is over) go by [`Note`]. Data packets carry the receiver's
//! slot and acknowledgements the sender's, so the per-packet path looks nothing up; only the
//! packets of the first round trip, which lack the slot, are found by flow id.
//!
//! Invariant: each flow that starts makes exactly one record, and a packet of a connection that is
//! over is answered or ignored as if the connection were still there, whatever partition its other
//! side is in.

mod answering;
mod counting;
mod ending;
mod holding;
mod homa;
mod making;
mod moving;
mod nic_paths;
mod opening;
mod pulling;
mod rank_connections;
mod ranks;
mod rdma;
mod receiving;
mod sampling;
mod scheduling;
mod sending;
mod staged;
mod standing;
mod timer;
mod uet;
mod waiting;
mod wire;

use crate::endpoint::uet::Pacer;
use crate::endpoint::{AckIn, AckOut, Arrived, DataIn, Incoming, Outgoing, Receiver, Sender};
use crate::event::{Due, HostEvent, Key};
use crate::fabric::Fabric;
use crate::mail::{Note, Opening, Role};
use crate::shared::Shared;
use crate::slab::Slab;
use answering::{Answer, Handshake};
use homa::Messages;
pub(crate) use making::Way;
use millpond_core::host::{
    self, Call, CoreCounts, Egress, Ingress, LimitCounts, MarkingCounters, Round,
};
use millpond_core::packet::{Body, Kind, NONE, Side, TTL, flags};
use millpond_core::random::mix64;
use millpond_core::switch::pause::PauseFrame;
use millpond_core::{
    Ecn, FlowId, HostId, Importance, Mapping, Packet, PacketId, Time, TrafficClass,
};
use millpond_results::{FlowRecord, QueryRecord};
use millpond_scenario::traffic::{Arrival, Query, SourceKind};
use nic_paths::NicPaths;
use ranks::Ranks;
pub(crate) use receiving::arm;
pub use standing::OpenFlow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use timer::Timer;
use uet::NicSenders;
pub use waiting::Waiting;
pub use wire::PollRecord;
use wire::{Departed, at_host};

/// A host, or one NIC of a host with several: each has a node of its own, and connections are at
/// one of them.
pub struct Host {
    /// Its NIC's address in the whole network: of a host's first NIC, the host's number.
    pub id: HostId,
    pub out: u32,
    /// The stages between its endpoints and the link.
    pub node: host::Host,
    /// Connections that wait for its NIC, in their order: slot and flow.
    pub turns: VecDeque<(u32, FlowId)>,
    /// Its queue pairs, as its NIC asks them.
    pub round: Round,
}

/// The sending side of a connection.
pub struct Sending {
    sender: Sender,
    pub(crate) host: u32,
    pub(crate) opening: Opening,
    /// The receiver's slot, once an acknowledgement has carried it.
    peer: u32,
    hash: u32,
    priority: u8,
    /// Whether lanes of a rank wait until a message of it has left.
    is_awaited: bool,
    timer: Timer,
    first_sent: Option<Time>,
    delivered: Option<Delivered>,
    egress: Option<Box<Egress>>,
    /// Its pairs of NICs, where it takes several.
    paths: Option<Box<NicPaths>>,
}

#[derive(Clone, Copy)]
struct Delivered {
    at: Time,
    out_of_order: u32,
    path_changes: u32,
}

/// The receiving side of a connection.
pub struct Receiving {
    pub(crate) receiver: Receiver,
    pub(crate) host: u32,
    pub(crate) opening: Opening,
    hash: u32,
    pub(crate) priority: u8,
    timer_at: Time,
    /// Bytes delivered in order.
    delivered: u64,
    /// Where the present flow or message ends.
    ends: u64,
    /// When the present message of a persistent connection was asked for; `Time::MAX`: none is
    /// under way.
    asked: Time,
    /// Bytes delivered in the measured time.
    measured: u64,
    out_of_order: u32,
    path_changes: u32,
    path: u8,
    /// Switches that the last data has crossed.
    pub(crate) hops: u8,
    any: bool,
    /// The accepting end's first sample of the round-trip time.
    handshake: Handshake,
    pub(crate) ingress: Option<Box<Ingress>>,
    /// Its pairs of NICs, where it takes several.
    paths: Option<Box<NicPaths>>,
}

/// A query that waits for responses.
struct Pending {
    query: Query,
    completed: u32,
}

/// The counts of a partition's hosts.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostCounters {
    pub started: u64,
    pub completed: u64,
    /// Flows started and not over; the sum over all partitions is what is under way (one
    /// partition's may be negative).
    pub active: i64,
    pub retransmitted: u64,
    pub timeouts: u64,
    /// Data packets that arrived before an earlier one, which was late or lost.
    pub out_of_order: u64,
    /// Application bytes delivered in the measured time.
    pub measured_bytes: u64,
    pub marking: MarkingCounters,
    /// How long flows were held by other hosts' virtual switches, summed over them.
    pub held: Time,
}

impl HostCounters {
    pub fn merge(&mut self, other: &HostCounters) {
        self.started += other.started;
        self.completed += other.completed;
        self.active += other.active;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.out_of_order += other.out_of_order;
        self.measured_bytes += other.measured_bytes;
        self.marking.merge(&other.marking);
        self.held += other.held;
    }
}

pub struct Hosts {
    /// The state that all partitions share.
    pub shared: Arc<Shared>,
    pub hosts: Vec<Host>,
    pub(crate) senders: Slab<Sending>,
    pub(crate) receivers: Slab<Receiving>,
    /// By host here, where messages are sent; empty otherwise.
    pub(crate) messages: Vec<Messages>,
    /// By kind: packets that ends have sent beside their data.
    beside: [u64; Kind::ALL.len()],
    aborted: u64,
    /// By host here, where receivers give credit; empty otherwise.
    pub(crate) pacers: Vec<Pacer>,
    /// By host here, where receivers give credit; empty otherwise.
    nic_senders: Vec<NicSenders>,
    queries: BTreeMap<u32, Pending>,
    /// By request: answers that servers here still think about.
    answers: BTreeMap<FlowId, Answer>,
    /// By shuffle (source index) and host here: how many of its flows have started.
    shuffled: BTreeMap<(u16, u32), u32>,
    pub waiting: Waiting,
    pub ranks: Ranks,
    /// Flows that are over, with the time at which they were.
    pub flow_records: Vec<(Time, FlowRecord)>,
    /// By flow that is open at the end: packets that its receiver got out of order, and changes of
    /// path.
    pub open_counts: Vec<(FlowId, u32, u32)>,
    pub query_records: Vec<(Time, QueryRecord)>,
    /// Probes answered in the measured time: (when, the answers' flow, round-trip time).
    pub rtts: Vec<(Time, FlowId, Time)>,
    /// The work of receive queues, if that is recorded.
    pub poll_records: Vec<PollRecord>,
    /// Bytes delivered in the measured time, by (source, destination), of the pairs that had some
    /// to send in it.
    pub pairs: BTreeMap<(HostId, HostId), u64>,
    /// By class: bytes that connections delivered which are gone; empty unless goodput is sampled.
    gone: Vec<u64>,
    pub counters: HostCounters,
    /// Segments whose last packets have just got their departure times; empty between events.
    pub(crate) departed: Vec<Departed>,
}

fn five_tuple_hash(src: HostId, dst: HostId, flow: FlowId) -> u32 {
    (mix64((src as u64) << 32 | dst as u64) ^ mix64(flow as u64)) as u32
}

/// The hash of the 5-tuple of a connection's subflow: the first has the connection's own.
#[inline]
fn of_subflow(hash: u32, mapping: Option<Mapping>) -> u32 {
    match mapping {
        Some(Mapping { subflow, .. }) if subflow > 0 => {
            mix64(u64::from(hash) << 8 | u64::from(subflow)) as u32
        }
        _ => hash,
    }
}

impl Hosts {
    pub fn new(shared: Arc<Shared>, hosts: Vec<Host>) -> Hosts {
        Hosts {
            gone: vec![
                0;
                if shared.plan.capture.goodput.is_some() {
                    shared.plan.traffic.classes.len()
                } else {
                    0
                }
            ],
            messages: Messages::of_hosts(&shared, hosts.len()),
            beside: [0; Kind::ALL.len()],
            aborted: 0,
            pacers: uet::of_hosts(&shared, hosts.len()),
            nic_senders: uet::of_hosts(&shared, hosts.len()),
            shared,
            hosts,
            senders: Slab::default(),
            receivers: Slab::default(),
            queries: BTreeMap::new(),
            answers: BTreeMap::new(),
            shuffled: BTreeMap::new(),
            waiting: Waiting::default(),
            ranks: Ranks::default(),
            flow_records: Vec::new(),
            open_counts: Vec::new(),
            query_records: Vec::new(),
            rtts: Vec::new(),
            poll_records: Vec::new(),
            pairs: BTreeMap::new(),
            counters: HostCounters::default(),
            departed: Vec::new(),
        }
    }

    /// All packets that wait in NICs, for the audit.
    pub fn queued(&self) -> impl Iterator<Item = PacketId> + '_ {
        self.hosts.iter().flat_map(|host| host.node.queued())
    }

    /// Packets marked by this partition's NICs.
    pub fn marked(&self) -> u64 {
        self.hosts.iter().map(|host| host.node.marked()).sum()
    }

    /// How long switches have paused priorities of this partition's NICs by `now`.
    pub fn paused_time(&self, now: Time) -> Time {
        self.hosts.iter().fold(Time::ZERO, |sum, host| sum + host.node.paused_time(now))
    }
}
