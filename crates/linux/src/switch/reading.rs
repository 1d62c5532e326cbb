//! The report of the process that moves frames about itself; `show` asks for it and writes it.
//!
//! Invariant: a reading is of one instant between two rounds of the poll loop.

use super::importance;
use super::overlay;
use super::peer::Health;
use super::supervise::Restarts;
use crate::dataplane::counters;
use crate::dataplane::fault::Faults;
use crate::dataplane::loops::RETRY;
use crate::dataplane::port::{shared, vhost};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortState {
    Open,
    /// Its interface is not; it is tried every second.
    Waiting,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortReading {
    pub name: String,
    /// tap, af-packet, pcap, shared or vhost-user.
    pub kind: String,
    /// Its interface; empty if there is none.
    pub device: String,
    pub namespace: Option<String>,
    pub state: PortState,
    pub reason: Option<String>,
    /// In bytes of IP.
    pub mtu: usize,
    /// The VLAN of an access port.
    #[serde(default)]
    pub vlan: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trunk: Vec<u16>,
    /// The place where its frames come back, if a loop blocks it: another port, or a peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looped: Option<String>,
    /// How often a loop has blocked it.
    #[serde(default)]
    pub loops: u64,
    /// Whether senders behind it are made to wait.
    #[serde(default)]
    pub slowed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<shared::Reading>,
    /// Of a virtual machine: its guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<vhost::Reading>,
    /// The importance shim of its TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<importance::Reading>,
    #[serde(flatten)]
    pub counters: counters::Reading,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PathReading {
    pub peer: String,
    /// Its place among the peer's paths.
    pub label: u16,
    pub local: String,
    pub remote: String,
    pub reason: Option<String>,
    /// Whether it works, and how well.
    #[serde(default)]
    pub health: Health,
    /// Reports of routers and hosts (ICMP) that its socket was handed, and that changed nothing.
    #[serde(default)]
    pub reports_ignored: u64,
    /// Its actions so far; a frame is a packet here.
    #[serde(flatten)]
    pub counters: counters::Reading,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeerReading {
    pub name: String,
    /// The pauses that each asks of the other, where they do.
    pub overlay: Option<overlay::Reading>,
}

/// The edge's counts of packets from peers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EdgeReading {
    /// Packets that it has handed on.
    pub packets: u64,
    /// Segments that they were merged into.
    pub segments: u64,
    /// Segments that were held back for a gap before them.
    pub held: u64,
    /// Of them, those whose gap did not fill in time.
    pub timed_out: u64,
    /// Segments that had to go before their turn: a flow held more than it may.
    #[serde(default)]
    pub forced: u64,
    /// Why frames went no further, by reason.
    pub dropped: std::collections::BTreeMap<String, u64>,
}

/// A station behind a port or a peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddressReading {
    pub address: String,
    /// The VLAN that it is in.
    #[serde(default)]
    pub vlan: Option<u16>,
    /// The port that it is behind.
    pub port: Option<String>,
    /// The peer that it is behind.
    pub peer: Option<String>,
    /// For how long no frame of it came; the configuration's own addresses have none.
    pub silent_s: Option<f64>,
}

/// A TCP flow that goes to a peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowReading {
    pub peer: String,
    /// The VLAN that it is in.
    #[serde(default)]
    pub vlan: Option<u16>,
    pub source: String,
    pub destination: String,
    /// The path that its last segment took.
    pub label: u16,
    pub bytes: u64,
    pub silent_s: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reading {
    pub schema: u32,
    pub pid: u32,
    pub uptime_s: f64,
    pub ports: Vec<PortReading>,
    pub paths: Vec<PathReading>,
    #[serde(default)]
    pub peers: Vec<PeerReading>,
    /// The edge's counts of packets that came over them.
    pub edge: EdgeReading,
    pub addresses: usize,
    /// TCP flows that it sends to peers.
    #[serde(default)]
    pub flows: usize,
    /// Those of peers, whose order it keeps.
    #[serde(default)]
    pub flows_received: usize,
    pub buffers: usize,
    pub bursts: u64,
    /// Those that were ready to sleep.
    pub sleeps: u64,
    /// How often its supervisor has started it again; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
    /// The last time that its supervisor did so, and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted: Option<Restarts>,
    /// Panics that the process has caught.
    #[serde(default)]
    pub faults: Faults,
    /// Why the state folder has no copy of its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<String>,
    /// Its workers' shares, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerReading>,
}

/// One worker's share of its switch's work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReading {
    /// Frames that came in at ports.
    pub received: u64,
    /// Frames that it has written to ports.
    pub sent: u64,
    pub path_received: u64,
    /// Datagrams that it has sent over paths.
    pub path_sent: u64,
    /// Its paths that are used and answered: none, if the peers have fewer workers.
    pub paths: usize,
    pub bursts: u64,
}

impl PortReading {
    /// The loop that blocks the port.
    pub fn loop_note(&self) -> Option<String> {
        let at = self.looped.as_ref()?;
        Some(format!(
            "port {}: a loop: its frames come back at {at}; blocked until {} s after its end",
            self.name,
            RETRY.as_us_f64() / 1e6
        ))
    }
}

impl Reading {
    /// The share of the worker whose reading this is.
    pub fn share(&self) -> WorkerReading {
        let ports = || self.ports.iter().map(|port| &port.counters);
        let paths = || self.paths.iter().map(|path| &path.counters);
        WorkerReading {
            received: ports().map(|it| it.received).sum(),
            sent: ports().map(|it| it.sent).sum(),
            path_received: paths().map(|it| it.received).sum(),
            path_sent: paths().map(|it| it.sent).sum(),
            paths: self.paths.iter().filter(|path| path.health.state == "used").count(),
            bursts: self.bursts,
        }
    }

    /// Adds what another worker has done. How ports and paths stand is the first worker's.
    pub fn add(&mut self, other: &Reading) {
        for (own, other) in self.ports.iter_mut().zip(&other.ports) {
            own.counters.add(&other.counters);
        }
        for (own, other) in self.paths.iter_mut().zip(&other.paths) {
            own.counters.add(&other.counters);
            own.reports_ignored += other.reports_ignored;
        }
        let (own, its) = (&mut self.edge, &other.edge);
        own.packets += its.packets;
        own.segments += its.segments;
        own.held += its.held;
        own.timed_out += its.timed_out;
        own.forced += its.forced;
        for (reason, count) in &its.dropped {
            *own.dropped.entry(reason.clone()).or_default() += count;
        }
        self.flows += other.flows;
        self.flows_received += other.flows_received;
        self.buffers += other.buffers;
        self.bursts += other.bursts;
        self.sleeps += other.sleeps;
    }
}
