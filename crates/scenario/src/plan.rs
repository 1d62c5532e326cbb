//! The plan: a scenario after validation, ready to be run by either world. Nothing in it can be
//! wrong any more.
//!
//! `Scenario` (text and spans) becomes `Plan` (numbers and graphs) exactly once; whoever runs a
//! plan reads no text.

use crate::application::ApplicationPlan;
use crate::choices::{
    Choices, EdgeChoices, HostChoices, RdmaChoices, SwitchChoices, TransportChoices, Visit,
};
use crate::limit::LimitPlan;
use crate::ports;
pub use crate::ports::PortKind;
use crate::rdma::RdmaParams;
pub use crate::settings::ReceiveCpuParams;
pub use crate::settings::failure::Losable;
pub use crate::sizes::SizeBins;
use crate::topology::{End, Topology};
use crate::traffic::TrafficPlan;
use crate::transport::{TransportKind, TransportParams};
use millpond_core::congestion::Family;
use millpond_core::switch::admission::Around;
use millpond_core::switch::buffer::{BufferParams, Capacity, SwitchFacts};
use millpond_core::switch::marking::MarkingParams;
use millpond_core::switch::pause::Pause;
use millpond_core::switch::site::PortSite;
use millpond_core::{Bytes, FlowId, HostId, Rate, Time};
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that a run needs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// The seed of every random stream.
    pub seed: u64,
    /// Which variant this is, if one was chosen.
    pub variant: Option<String>,
    /// Where virtual time ends; [`Time::END`] where the scenario gives no duration.
    pub horizon: Time,
    /// Stop at the first window edge after the last flow, if that is before the horizon.
    pub until_complete: bool,
    /// Flows that start before it carry load but are not counted.
    pub warm_up: Time,
    /// Flows below this are mice.
    pub mice: Bytes,
    /// Flows above this are elephants.
    pub elephants: Bytes,
    /// By which sizes slowdown is told.
    pub size_bins: SizeBins,
    /// The numbers that comparisons show; empty: those that suit the traffic.
    pub shows: Vec<String>,
    /// Hosts, switches, links and routes.
    pub topology: Arc<Topology>,
    /// The longest time from a full packet's departure to the arrival of an answer without payload,
    /// in the empty network.
    pub round_trip: Time,
    /// How hosts send and receive.
    pub host: HostPlan,
    /// How switches treat packets.
    pub switch: SwitchChoices,
    /// The transport's common parameters.
    pub transport: TransportParams,
    /// Which transport, with its own parameters.
    pub transport_kind: TransportKind,
    /// What is chosen at its places.
    pub transport_choices: TransportChoices,
    /// What all queue pairs have in common.
    pub rdma: RdmaParams,
    /// What is chosen at their places.
    pub rdma_choices: RdmaChoices,
    /// How the edge treats packets.
    pub edge: EdgeChoices,
    /// The flows.
    pub traffic: Arc<TrafficPlan>,
    /// What receives at the hosts, behind their virtual switch.
    pub applications: Vec<ApplicationPlan>,
    /// What holds hosts to a bandwidth.
    pub limits: Vec<LimitPlan>,
    /// What fails, and when.
    pub failures: Vec<FailurePlan>,
    /// What is recorded beside the flows; never changes another result.
    pub capture: CapturePlan,
    /// How the simulator should run it; never changes a result.
    pub engine: EnginePlan,
    /// What the user should know: load above one, composed mechanisms that break each other.
    pub warnings: Vec<String>,
    /// The whole scenario with every default written out, as TOML that gives the same plan.
    pub resolved: String,
    /// Where the files are that `resolved` still names (lists of flows too long to write out);
    /// `None` if it names none.
    pub base: Option<PathBuf>,
}

impl Plan {
    /// Shows what is chosen at the places of each table, along the packet's path.
    pub fn each_choice(&self, visitor: &mut impl Visit) {
        self.transport_choices.each(visitor);
        if self.transports().any(|kind| kind.demands().family == Family::Rdma) {
            self.rdma_choices.each(visitor);
        }
        self.edge.each(visitor);
        self.host.choices.each(visitor);
        self.switch.each(visitor);
    }

    /// The run's transports by their number: the scenario's, and those that some traffics have.
    pub fn transports(&self) -> impl Iterator<Item = &TransportKind> {
        std::iter::once(&self.transport_kind).chain(&self.traffic.other_transports)
    }

    /// Whether the connections of a class open by a handshake.
    pub fn opens_by_handshake(&self, class: u16) -> bool {
        let which = usize::from(self.traffic.transports[usize::from(class)]);
        let is_tcp = |kind: &TransportKind| kind.demands().family.is_tcp();
        self.transport.handshake && self.transports().nth(which).is_some_and(is_tcp)
    }

    /// Where a port is that has a link of this rate.
    pub fn port_site(&self, tier: u8, rate: Rate) -> PortSite {
        PortSite { rate, tier, packet_max: self.host.packet_max() }
    }

    /// What an admission's amounts follow from at a port that can hold so much.
    pub fn around(&self, site: &PortSite, capacity: Capacity) -> Around {
        let marks = self.switch.marking.threshold(site, capacity);
        Around { site: *site, capacity, marks, round_trip: self.round_trip }
    }

    /// The ports of the switches, by tier and rate, with what they hold and when they mark.
    pub fn port_kinds(&self) -> Vec<PortKind> {
        ports::kinds(&self.topology, (&self.switch.buffer, &self.switch.marking), |switch| {
            self.switch_facts(switch)
        })
    }

    /// What a switch's buffer follows from.
    pub fn switch_facts(&self, switch: usize) -> SwitchFacts {
        let pauses = Pause::new(&self.switch.pause).is_active();
        switch_facts(&self.topology, switch, self.host.packet_max(), &self.host, pauses)
    }
}

/// The same where there is no plan yet. A host's stack lies on its link.
pub(crate) fn switch_facts(
    topology: &Topology,
    switch: usize,
    packet_max: u64,
    host: &HostPlan,
    pauses: bool,
) -> SwitchFacts {
    let link = |link: &u32| {
        let site = &topology.links[*link as usize];
        let late =
            if topology.is_host_link(*link as usize) { host.late(site.rate) } else { Time::ZERO };
        (site.rate, site.delay + late)
    };
    let links = topology.wiring[switch].iter().map(link).collect();
    SwitchFacts { packet_max, links, pauses, tier: topology.switches[switch].tier }
}

/// A host.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// IP bytes of the largest packet.
    pub mtu: u32,
    /// Bytes of framing that each packet adds on the wire (38 counts preamble, Ethernet header, CRC
    /// and gap).
    pub frame_overhead: u32,
    /// The largest segment that the transport hands down; `None`: packet by packet.
    pub segment_offload: Option<Bytes>,
    /// Time between the wire and the transport, each way.
    pub stack_delay: Time,
    /// The NIC's transmit queue.
    pub nic: NicPlan,
    /// What is chosen at its places.
    pub choices: HostChoices,
    /// What receiving costs its core; `None`: nothing.
    pub receive_cpu: Option<ReceiveCpuParams>,
}

impl HostPlan {
    /// Bytes of the largest packet on the wire.
    pub fn packet_max(&self) -> u64 {
        u64::from(self.mtu) + u64::from(self.frame_overhead)
    }
    /// The most that the host adds to a packet's way over its link of this rate.
    pub fn late(&self, rate: Rate) -> Time {
        self.stack_delay + self.jitter_size(rate).unwrap_or_default()
    }

    /// Where the range of the jitter ends on a link of this rate; `None`: the host is exact.
    pub fn jitter_size(&self, rate: Rate) -> Option<Time> {
        let packet_bits = u128::from(self.packet_max()) * 8;
        let packet = packet_bits * 1_000_000_000_000 / u128::from(rate.bps()).max(1);
        self.choices.jitter.size(Time::from_ps(packet as u64))
    }
}

/// A host's NIC.
#[derive(Clone, Debug)]
pub struct NicPlan {
    /// What may wait there; `None`: as much as the transport sends.
    pub buffer: Option<BufferParams>,
    /// How it marks.
    pub marking: MarkingParams,
    /// What one flow may have waiting; `None`: no limit.
    pub per_flow_limit: Option<Bytes>,
}

/// How the simulator's engine runs the plan.
#[derive(Clone, Debug)]
pub struct EnginePlan {
    /// Use general ports even where fast ones can serve (the results are the same).
    pub general_ports: bool,
    /// Run all nodes as one partition (the results are the same).
    pub one_partition: bool,
}

/// A link that is down for a while or loses packets, in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailurePlan {
    /// Index in [`Topology::links`].
    pub link: u32,
    /// When it goes down.
    pub at: Time,
    /// When it is up again (`Time::MAX`: never).
    pub until: Time,
    /// How long the switches at its ends take to notice either.
    pub detect: Time,
    /// How long the routes of the whole network take to follow either; `None`: they never do.
    pub converge: Option<Time>,
    /// Share of the packets that are lost.
    pub loss: f64,
    /// Which may be.
    pub losable: Losable,
}

impl FailurePlan {
    /// Whether nothing gets through, so that the switches at its ends notice.
    pub fn is_outage(&self) -> bool {
        self.loss >= 1.0 && self.losable == Losable::All
    }
}

/// What a run records beside its flows.
#[derive(Clone, Debug, Default)]
pub struct CapturePlan {
    /// Samples of queues.
    pub queues: Option<QueueCapture>,
    /// Samples of connections.
    pub connections: Option<ConnectionCapture>,
    /// Period of the samples of what has been delivered.
    pub goodput: Option<Time>,
    /// Where packets are captured, in both directions.
    pub taps: Vec<Tap>,
    /// Bytes of each captured packet that are kept.
    pub snaplen: u32,
    /// Whether captured packets show TCP timestamps.
    pub tcp_timestamps: bool,
    /// Whether the summary tells of round-trip times and timeouts.
    pub timers: bool,
    /// Whether a trace of flows and queues is written.
    pub trace: bool,
    /// Whether the observer is told what each poll of a receive queue did. No scenario asks for it:
    /// it is for tests that hold other drivers of the edge against the simulator's.
    pub polls: bool,
}

/// Which queues are sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueCapture {
    /// From one sample to the next.
    pub every: Time,
    /// Switch ports and NICs, in ascending order; `None`: all ports of all switches.
    pub ports: Option<Vec<End>>,
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

/// A place where packets are captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// What its file is called, without the extension: "host3", "leaf0-4".
    pub name: String,
    /// The host or the switch's port.
    pub end: End,
}
