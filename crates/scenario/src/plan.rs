//! The plan: a scenario after validation, ready to be run by either world. Nothing in it can be
//! wrong any more.
//!
//! `Scenario` (text and spans) becomes `Plan` (numbers and graphs) exactly once; whoever runs a
//! plan reads no text.

use crate::application::ApplicationPlan;
pub use crate::capture::failures::FailurePlan;
pub use crate::capture::{CapturePlan, ConnectionCapture, QueueCapture, Tap};
use crate::choices::{Choices, EdgeChoices, RdmaChoices, SwitchChoices, TransportChoices, Visit};
use crate::composition::Answer;
pub use crate::host::{HostPlan, NicPlan};
use crate::limit::LimitPlan;
use crate::ports;
pub use crate::ports::PortKind;
pub use crate::program::ProgramPlan;
use crate::rdma::RdmaParams;
pub use crate::settings::ReceiveCpuParams;
use crate::settings::Settings;
pub use crate::settings::failure::Losable;
pub use crate::sizes::SizeBins;
use crate::topology::Topology;
use crate::traffic::TrafficPlan;
use crate::transport::{TransportKind, TransportParams};
use millpond_core::congestion::Family;
use millpond_core::edge::flowcell::LoadBalancingParams;
use millpond_core::switch::admission::Around;
use millpond_core::switch::buffer::{Capacity, SwitchFacts};
use millpond_core::switch::pause::Pause;
use millpond_core::switch::site::PortSite;
use millpond_core::{Bytes, Rate, Time};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Plan {
    pub name: String,
    /// The scenario's own description, a sentence or two; empty without one.
    pub about: String,
    pub variant_about: String,
    /// The mechanisms that answer an event.
    pub answers: Vec<Answer>,
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
    pub mice: Bytes,
    pub elephants: Bytes,
    /// By which sizes slowdown is reported.
    pub size_bins: SizeBins,
    /// The numbers that comparisons show; empty: those that suit the traffic.
    pub shows: Vec<String>,
    pub topology: Arc<Topology>,
    /// The longest time from a full packet's departure to the arrival of an answer without payload,
    /// in the empty network.
    pub round_trip: Time,
    pub host: HostPlan,
    /// How switches treat packets.
    pub switch: SwitchChoices,
    pub transport: TransportParams,
    /// Which transport, with its own parameters.
    pub transport_kind: TransportKind,
    pub transport_choices: TransportChoices,
    /// The parameters that all queue pairs have in common.
    pub rdma: RdmaParams,
    pub rdma_choices: RdmaChoices,
    /// How the edge treats packets.
    pub edge: EdgeChoices,
    pub traffic: Arc<TrafficPlan>,
    /// The applications that receive at the hosts, behind their virtual switch.
    pub applications: Vec<ApplicationPlan>,
    /// The real programs of a lab's hosts.
    pub programs: Vec<ProgramPlan>,
    /// The limits that hold hosts to a bandwidth.
    pub limits: Vec<LimitPlan>,
    /// The failures, and when they happen.
    pub failures: Vec<FailurePlan>,
    /// The records beside the flows; never changes another result.
    pub capture: CapturePlan,
    /// How the simulator should run it; never changes a result.
    pub engine: EnginePlan,
    /// Warnings for the user: load above one, composed mechanisms that break each other.
    pub warnings: Vec<String>,
    /// The whole scenario with every default written out, as TOML that gives the same plan.
    pub resolved: String,
    /// The typed values that `resolved` is written from.
    pub settings: Arc<Settings>,
    /// Where the files are that `resolved` still names (lists of flows too long to write out);
    /// `None` if it names none.
    pub base: Option<PathBuf>,
}

impl Plan {
    /// The same with the traffic of one stack alone: Linux kernels', or that of modelled hosts.
    /// Flows keep their numbers.
    pub fn part(&self, linux: bool) -> Plan {
        let hosts = 0..self.topology.hosts;
        let only = hosts.map(|host| self.host.is_linux(host) == linux).collect();
        let traffic = TrafficPlan { only: Some(only), ..(*self.traffic).clone() };
        Plan { traffic: Arc::new(traffic), ..self.clone() }
    }
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

    /// Whether the connections of a class take all NICs of their hosts in turn: subflows, and
    /// TCP's flowcells. A queue pair belongs to one NIC, which paces it.
    pub fn takes_several_nics(&self, class: u16) -> bool {
        let which = usize::from(self.traffic.transports[usize::from(class)]);
        let family = self.transports().nth(which).map(|kind| kind.demands().family);
        let sprays = matches!(self.edge.load_balancing, LoadBalancingParams::Presto(_));
        self.topology.has_several_nics()
            && family.is_some_and(|family| {
                matches!(family, Family::Mptcp { .. }) || (sprays && family.is_tcp())
            })
    }

    /// Where a port is that has a link of this rate.
    pub fn port_site(&self, tier: u8, rate: Rate) -> PortSite {
        PortSite { rate, tier, packet_max: self.host.packet_max() }
    }

    /// The facts that an admission's amounts follow from at a port that can hold so much.
    pub fn around(&self, site: &PortSite, capacity: Capacity) -> Around {
        let marks = self.switch.marking.threshold(site, capacity);
        Around { site: *site, capacity, marks, round_trip: self.round_trip }
    }

    /// The ports of the switches, by tier and rate, with what they hold and when they mark.
    pub fn port_kinds(&self) -> Vec<PortKind> {
        ports::kinds(&self.topology, &self.host, &self.switch)
    }

    /// The facts that a switch's buffer follows from.
    pub fn switch_facts(&self, switch: usize) -> SwitchFacts {
        let pauses = Pause::new(&self.switch.pause).is_active();
        self.host.switch_facts(&self.topology, switch, pauses)
    }
}

/// How the simulator's engine runs the plan.
#[derive(Clone, Debug)]
pub struct EnginePlan {
    /// Use general ports even where fast ones can serve (the results are the same).
    pub general_ports: bool,
    /// Run all nodes as one partition (the results are the same).
    pub one_partition: bool,
}
