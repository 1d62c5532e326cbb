//! Settings: a scenario as typed values, one struct a table, before any network is built or file is
//! read.
//!
//! Invariant: every key of every table is declared here or in a registry, so that the reader, the
//! resolved text, the schema and the reference can never disagree about what there is.

pub mod application;
pub mod capture;
pub mod failure;
pub mod flows;
pub mod graph;
pub mod hosts;
pub mod job;
pub mod limit;
pub mod program;
pub mod topology;
pub mod traffic;

use crate::choices::{
    Choices, EdgeChoices, HostChoices, NicChoices, RdmaChoices, SwitchChoices, TransportChoices,
    Visit, VisitMut,
};
use crate::rdma::RdmaParams;
use crate::settings::application::ApplicationSettings;
use crate::settings::capture::CaptureParams;
use crate::settings::failure::FailureParams;
use crate::settings::hosts::HostSet;
use crate::settings::limit::LimitSettings;
use crate::settings::program::ProgramParams;
use crate::settings::topology::TopologyParams;
use crate::settings::traffic::TrafficSettings;
use crate::sizes::SizeBins;
use crate::source::{Places, Span};
use crate::transport::{TransportKind, TransportParams};
use millpond_core::congestion::Family;
pub use millpond_core::host::ReceiveCpuParams;
use millpond_core::params::Params;
use millpond_core::registry::Choice;
use millpond_core::switch::buffer::BufferParams;
use millpond_core::switch::marking::MarkingParams;
use millpond_core::{Bytes, Time, choice, params};
use std::sync::Arc;

choice! {
    /// When a run may end before its duration.
    pub enum Until {
        /// At the first window edge after the last flow.
        FlowsComplete = "flows-complete",
    }
}

params! {
    /// The keys outside any table.
    pub struct RunParams {
        /// The name of the scenario; names the results folder. Where it is not written, the
        /// file's name without its extension.
        pub name: String = "scenario".to_string(),
        /// A sentence or two that describe the scenario: the first line that `run` and `compare`
        /// print, and of the report. A `[[variant]]` has an `about` of its own.
        pub about: String = String::new(),
        /// The seed of every random stream. One scenario and seed give one result, on any machine.
        pub seed: u64 = 1,
        /// Virtual time that is simulated; off means until the flows are complete.
        pub duration: Option<Time> = None,
        /// "flows-complete" stops at the first window edge after the last flow; needs a traffic
        /// that ends. Off means to go on to the duration.
        pub until: Option<Until> = None,
        /// Flows that start before it carry load but are not counted.
        pub warm_up: Time = Time::ZERO,
        /// Flows smaller than this are mice in the statistics.
        pub mice: Bytes = Bytes(100_000),
        /// Flows larger than this are elephants in the statistics.
        pub elephants: Bytes = Bytes(1_000_000),
        /// The sizes by which slowdown is reported: a number of bins with as many flows each as
        /// sizes allow, or sizes that ascend, such as ["10KB", "100KB", "1MB"], each of which ends
        /// a bin. Source: 20 bins, as in HPCC, SIGCOMM 2019, Fig. 11.
        pub size_bins: SizeBins = SizeBins::default(),
        /// The numbers that tables, JSON and reports of `compare`, `sweep` and `run` show:
        /// CLASS.METRIC.STAT, such as "queries.qct.p99", or one of the network, such as "timeouts".
        /// Empty means those that suit the traffic.
        pub shows: Vec<String> = Vec::new(),
    }
}

params! {
    /// The table `[host]`.
    pub struct HostParams {
        /// IP bytes of the largest packet. Source: Ethernet's 1500.
        pub mtu: u32 = 1500,
        /// Payload bytes of the largest packet; off means mtu - 40 (IPv4 and TCP headers without
        /// options).
        pub mss: Option<u32> = None,
        /// Bytes of framing that each packet adds on the wire; 38 counts preamble, Ethernet header,
        /// CRC and gap.
        pub frame_overhead: u32 = 0,
        /// The largest segment that the transport hands down, as a kernel with TSO does; off means
        /// packet by packet.
        pub segment_offload: Option<Bytes> = Some(Bytes(64 << 10)),
        /// Time between the wire and the transport, each way.
        pub stack_delay: Time = Time::ZERO,
        /// World virtual: the Linux kernel of each host, a program for User Mode Linux; off means
        /// the one that `make setup-virtual` builds. Relative to the scenario's file.
        pub kernel: Option<String> = None,
        /// World virtual: the memory of each kernel. Untouched memory costs nothing, and TCP may
        /// use 3/32 of it.
        pub memory: Bytes = Bytes(256 << 20),
        /// World virtual: the hosts that are Linux kernels: "all", or hosts and ranges such as
        /// ["0..7", "9"]. The others are modelled as in the simulator, on the same network. Both
        /// ends of a flow are of one kind.
        pub linux: HostSet = HostSet::All,
    }
}

params! {
    /// The scalar keys of host.nic.
    pub struct NicParams {
        /// Bytes that one flow may have waiting in the NIC; off means no limit. Source: Linux's TCP
        /// small queues, which hold back a flow whose bytes have not left the host.
        pub per_flow_limit: Option<Bytes> = Some(Bytes(128 << 10)),
        /// World virtual, and the simulator with `interrupts`: after an interrupt for packets that
        /// have arrived the next one comes no sooner, as with the throttle of a NIC. Source:
        /// rx-usecs of common drivers is 3 to 50.
        pub interrupt_throttle: Time = Time::from_us(10),
        /// Whether packets wait for an interrupt of their host, whose poll takes all that have
        /// come, and merges them as Linux does if receive-offload is none. False: the simulator
        /// hands each up as it arrives, or as receive-offload polls. Kernels of world virtual
        /// always have interrupts. Source: Linux's NAPI and GRO.
        pub interrupts: bool = false,
    }
}

choice! {
    /// Which ports the simulator uses.
    pub enum Ports {
        /// Fast ports wherever they can serve.
        Auto = "auto",
        /// General ports everywhere.
        General = "general",
    }
}
choice! {
    /// How the simulator divides the network.
    pub enum Partitions {
        /// By leaf or pod.
        Auto = "auto",
        /// All nodes in one.
        One = "one",
    }
}

params! {
    /// The table `[engine]`: how the simulator runs a plan. None of it changes a result.
    pub struct EngineParams {
        /// "general" uses general ports even where fast ones can serve; the results are the same.
        /// "auto" is fast ports wherever they can serve.
        pub ports: Ports = Ports::Auto,
        /// "one" runs all nodes as one partition; the results are the same. "auto" is a partition
        /// for each leaf or pod.
        pub partitions: Partitions = Partitions::Auto,
    }
}

/// Something that a NIC takes from the switches, or has of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum NicChoice<T> {
    /// `"unlimited"` or `"none"`.
    Without,
    /// `"switch"`: as the switches.
    Switch,
    /// A table of its own.
    Own(T),
}

/// The table host.nic.
#[derive(Clone, Debug, PartialEq)]
pub struct NicSettings {
    /// The buffer there.
    pub buffer: NicChoice<BufferParams>,
    /// How it marks.
    pub marking: NicChoice<MarkingParams>,
    /// Its scalar keys.
    pub params: NicParams,
    /// Which one of several.
    pub choices: NicChoices,
}

impl Default for NicSettings {
    fn default() -> Self {
        NicSettings {
            buffer: NicChoice::Without,
            marking: NicChoice::Without,
            params: NicParams::default(),
            choices: NicChoices::default(),
        }
    }
}

/// A whole scenario as typed values.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The keys outside any table.
    pub run: RunParams,
    /// The network.
    pub topology: TopologyParams,
    /// The hosts.
    pub host: HostParams,
    /// Their NICs.
    pub nic: NicSettings,
    /// The choices at their places.
    pub host_choices: HostChoices,
    /// The cost of receiving for them; `None`: nothing.
    pub receive_cpu: Option<ReceiveCpuParams>,
    /// The switches.
    pub switch: SwitchChoices,
    /// The transport's common keys.
    pub transport: TransportParams,
    /// Which transport.
    pub transport_kind: TransportKind,
    /// The choices at its places.
    pub transport_choices: TransportChoices,
    /// TCP's keys that `[transport]` writes where it names its kind, or above: key and place.
    pub(crate) tcp_keys: Vec<(String, Span)>,
    /// The parameters that all queue pairs have in common.
    pub rdma: RdmaParams,
    /// The choices at their places.
    pub rdma_choices: RdmaChoices,
    /// The edge.
    pub edge: EdgeChoices,
    /// How the simulator runs it.
    pub engine: EngineParams,
    /// The records beside the flows.
    pub capture: CaptureParams,
    /// The failures, in order.
    pub failures: Vec<FailureParams>,
    /// The applications, in order.
    pub applications: Vec<ApplicationSettings>,
    /// The programs, in order.
    pub programs: Vec<ProgramParams>,
    /// The limits, in order.
    pub limits: Vec<LimitSettings>,
    /// The traffic, in order.
    pub traffic: Vec<TrafficSettings>,
    /// Where each key stands: "topology.leaves", "traffic.background.load", "failure.0.link".
    pub(crate) places: Arc<Places>,
}

impl Settings {
    /// Shows what is chosen at the places of each table, along the packet's path.
    pub(crate) fn each_choice(&self, visitor: &mut impl Visit) {
        self.transport_choices.each(visitor);
        if self.has_queue_pairs() {
            self.rdma_choices.each(visitor);
        }
        self.edge.each(visitor);
        self.host_choices.each(visitor);
        if self.chooses_nics() {
            self.nic.choices.each(visitor);
        }
        self.switch.each(visitor);
    }
    /// Hands out the parameters that the resolved text has, in its order.
    pub(crate) fn each_params(&mut self, each: &mut dyn FnMut(&mut dyn Params)) {
        struct Walk<'a>(&'a mut dyn FnMut(&mut dyn Params));
        impl VisitMut for Walk<'_> {
            fn choice<C: Choice>(&mut self, choice: &mut C) {
                (self.0)(choice.params_mut());
            }
        }
        let (runs_tcp, has_queue_pairs) = (self.runs_tcp(), self.has_queue_pairs());
        let mut walk = Walk(each);
        (walk.0)(&mut self.run);
        walk.choice(&mut self.topology);
        (walk.0)(&mut self.host);
        if let NicChoice::Own(buffer) = &mut self.nic.buffer {
            walk.choice(buffer);
        }
        if let NicChoice::Own(marking) = &mut self.nic.marking {
            walk.choice(marking);
        }
        (walk.0)(&mut self.nic.params);
        self.nic.choices.each_mut(&mut walk);
        self.host_choices.each_mut(&mut walk);
        self.receive_cpu.iter_mut().for_each(|costs| (walk.0)(costs));
        self.switch.each_mut(&mut walk);
        if runs_tcp {
            (walk.0)(&mut self.transport);
        }
        walk.choice(&mut self.transport_kind);
        self.transport_choices.each_mut(&mut walk);
        if has_queue_pairs {
            (walk.0)(&mut self.rdma);
            self.rdma_choices.each_mut(&mut walk);
        }
        self.edge.each_mut(&mut walk);
        (walk.0)(&mut self.engine);
        (walk.0)(&mut self.capture);
        self.failures.iter_mut().for_each(|failure| (walk.0)(failure));
        for application in &mut self.applications {
            (walk.0)(&mut application.common);
            (walk.0)(&mut application.costs);
        }
        self.programs.iter_mut().for_each(|program| (walk.0)(program));
        for limit in &mut self.limits {
            (walk.0)(&mut limit.common);
            walk.choice(&mut limit.kind);
        }
        for traffic in &mut self.traffic {
            (walk.0)(&mut traffic.common);
            traffic.transport.iter_mut().for_each(|kind| walk.choice(kind));
            walk.choice(&mut traffic.kind);
        }
    }
    /// Whether the scenario chooses NICs otherwise than by default.
    pub(crate) fn chooses_nics(&self) -> bool {
        self.nic.choices != NicChoices::default()
    }
    /// Whether some traffic could run over TCPs.
    pub(crate) fn runs_tcp(&self) -> bool {
        let own = |t: &TrafficSettings| {
            t.transport.as_ref().is_some_and(|kind| kind.demands().family.is_tcp())
        };
        self.transport_kind.demands().family.is_tcp() || self.traffic.iter().any(own)
    }
    /// Whether some traffic runs over queue pairs.
    pub(crate) fn has_queue_pairs(&self) -> bool {
        let kinds = std::iter::once(&self.transport_kind)
            .chain(self.traffic.iter().filter_map(|t| t.transport.as_ref()));
        kinds.into_iter().any(|kind| kind.demands().family == Family::Rdma)
    }
    /// The transport of each traffic.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &TransportKind> {
        self.traffic.iter().map(|t| t.transport.as_ref().unwrap_or(&self.transport_kind))
    }
    /// Whether the scenario writes a key rather than leaving it to its default.
    pub(crate) fn is_written(&self, path: &str) -> bool {
        self.places.get(path).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arithmetic of docs/reproduce-presto.md. Three published points, each a rate and a core's
    /// share; what a packet and a byte cost apart is ours, for full packets tell nothing of it.
    #[test]
    fn costs_are_solved_from_three_published_points() {
        let ns_a_packet = |gbps: f64, share: f64| share * 1460.0 * 8.0 / gbps;
        let alone = ns_a_packet(6.0, 1.0); // no offload: every packet is a segment
        let merged = ns_a_packet(9.3, 0.63); // 45 packets, 64 KB, a segment
        let segment = (alone - merged) / (1.0 - 1.0 / 45.0);
        let packet = alone - segment;
        let costs = ReceiveCpuParams::default();
        let ns = |time: Time| time.as_ps() as f64 / 1000.0;
        assert_eq!(segment.round(), ns(costs.per_segment));
        assert_eq!(packet.round(), ns(costs.per_packet) + 1460.0 * ns(costs.per_byte));
        // Spraying with stock offload, in the simulator and with receiving free (variant
        // presto-stock-gro-free of papers/presto/receiver.toml, seeds 1 to 20): packets, segments,
        // and those out of order.
        let (packets, segments, late) = (6_501_939.0, 4_247_215.0, 2_033_416.0);
        let sprayed = ns_a_packet(4.6, 1.0);
        let order = ((sprayed - packet) * packets / segments - segment) / (late / segments);
        assert!((order - ns(costs.per_out_of_order)).abs() < 1.0, "{order}");
    }
}
