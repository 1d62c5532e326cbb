//! The state that all partitions of a run read and none writes.

use crate::convergence::{self, Epoch};
use crate::endpoint::{Config, Outgoing};
use crate::labels::LabelPlan;
use crate::layout::Layout;
use crate::mail::Opening;
use crate::nics::Nics;
use millpond_core::edge::Ranker;
use millpond_core::edge::flowcell::LoadBalancingParams;
use millpond_core::host::Cut;
use millpond_core::host::virtual_switch::{Language, VirtualSwitchParams};
use millpond_core::importance::Marker;
use millpond_core::{FlowId, HostId, Time};
use millpond_scenario::IdealTimes;
use millpond_scenario::plan::Plan;
use millpond_scenario::traffic::{JobPlan, ProbePair, SourceKind};
use std::sync::Arc;

/// The parameters that all pairs of a probe traffic share.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Bytes of a question and of an answer.
    pub size: u64,
    /// From one question to the next.
    pub period: Time,
    /// No question is asked from here on.
    pub stop: Time,
}

/// The plan, and what follows from it for every host.
pub struct Shared {
    pub plan: Plan,
    pub layout: Layout,
    pub transport: Config,
    /// Whether connections begin with a handshake, of those families that have one.
    pub handshake: bool,
    /// Bytes of payload in a full packet.
    pub mss: u32,
    /// Bytes of headers and framing on the wire.
    pub header: u32,
    cut: Cut,
    /// Bytes of the largest segment: a whole number of packets.
    pub segment_max: u32,
    /// Bytes that one flow may have waiting in its NIC.
    pub nic_limit: Option<u64>,
    /// The ranks of a new connection, if packets carry any.
    pub ranker: Option<Ranker>,
    /// By transport of the run: what marks a new connection's important packets, if any are.
    pub markers: Vec<Option<Marker>>,
    /// The labels that flowcells get, if hosts spread what they send.
    pub labels: Option<LabelPlan>,
    /// Whether virtual switches ask each other to pause.
    pub has_overlay: bool,
    /// Bytes that may wait in a NIC for such a switch to hand it more.
    pub switch_limit: u64,
    /// Whether retransmission timers stand still meanwhile.
    pub freezes: bool,
    /// Switches are asked before each segment whether it may leave.
    pub is_admitted: bool,
    /// Switches are notified of each segment that leaves.
    pub is_metered: bool,
    /// Completion times in the empty network.
    pub ideal: IdealTimes,
    /// The changes of the network's routes.
    pub epochs: Vec<Epoch>,
    /// Which NICs connections take; `None`: each host has one.
    pub nics: Option<Nics>,
    /// Whether flowcells take all NICs of a host in turn.
    pub sprays_nics: bool,
}

/// Whether a plan's virtual switches ask each other to pause.
pub(crate) fn has_overlay(plan: &Plan) -> bool {
    plan.edge.virtual_switch.speaking().is_some()
}

/// Whether senders keep rates as the first overlay of Backdraft's release has them.
fn is_timed(plan: &Plan) -> bool {
    match &plan.edge.virtual_switch {
        VirtualSwitchParams::Backdraft(p) => p.overlay == Language::Timed,
        _ => false,
    }
}

impl Shared {
    pub fn new(plan: &Plan, layout: Layout) -> Shared {
        let transport = Config::new(plan);
        let mss = transport.tcp.mss;
        let (header, headers) = (plan.host.wire_bytes(0) as u32, plan.host.headers);
        let speaking = plan.edge.virtual_switch.speaking();
        let is_admitted = plan.edge.virtual_switch.admits();
        let whole = plan
            .host
            .segment_offload
            .map_or(1, |bytes| (bytes.get() / u64::from(mss)).max(1) as u32);
        Shared {
            handshake: plan.transport.handshake,
            mss,
            header,
            cut: Cut { mss, header, headers },
            segment_max: whole * mss,
            nic_limit: plan.host.nic.per_flow_limit.map(|bytes| bytes.get()),
            ranker: Ranker::new(&plan.transport_choices.rank),
            markers: transport.markers(&plan.transport_choices.importance),
            labels: LabelPlan::new(plan),
            has_overlay: has_overlay(plan),
            switch_limit: speaking.map_or(u64::MAX, |it| it.nic_limit.get()),
            freezes: speaking.is_some_and(|it| it.freeze_timers),
            is_admitted,
            is_metered: is_admitted || is_timed(plan),
            ideal: IdealTimes::default(),
            epochs: convergence::epochs(plan),
            nics: Nics::new(plan),
            sprays_nics: plan.topology.has_several_nics()
                && matches!(plan.edge.load_balancing, LoadBalancingParams::Presto(_)),
            transport,
            layout,
            plan: plan.clone(),
        }
    }

    #[inline]
    pub fn cut(&self) -> Cut {
        self.cut
    }

    /// How a segment is cut: a family may have headers of its own.
    #[inline]
    pub fn cut_of(&self, segment: &Outgoing) -> Cut {
        segment.form.cut(self.cut())
    }

    /// The two hosts of a connection, of which its opening has the NICs' addresses.
    pub fn hosts_of(&self, opening: &Opening) -> (HostId, HostId) {
        let topology = &self.plan.topology;
        (topology.host_of(opening.src), topology.host_of(opening.dst))
    }

    /// The partition of a host, or of a NIC by its address.
    #[inline]
    pub fn partition_of_host(&self, host: HostId) -> u16 {
        self.layout.hosts[host as usize].0
    }

    /// The number in its partition of a host's first NIC, or of a NIC by its address.
    #[inline]
    pub fn local_host(&self, host: HostId) -> u32 {
        self.layout.hosts[host as usize].1
    }

    /// How long the server thinks before the answer that has this id.
    pub fn thinks(&self, class: u16, answer: FlowId) -> Time {
        self.plan.traffic.thinking[class as usize].draw(self.plan.seed, answer)
    }

    pub fn job(&self, class: u16) -> Option<&Arc<JobPlan>> {
        match &self.plan.traffic.sources.get(usize::from(class))?.kind {
            SourceKind::Job(job) => Some(job),
            _ => None,
        }
    }

    /// From when on the persistent connection of `flow` asks no more.
    pub fn rpc_stop(&self, flow: FlowId) -> Time {
        let stops = self.plan.traffic.sources.iter().filter_map(|source| match &source.kind {
            SourceKind::Rpc { connections, stop, first_flow, .. }
                if flow >= *first_flow && flow - first_flow < 2 * connections.len() as u32 =>
            {
                Some(*stop)
            }
            _ => None,
        });
        stops.min().unwrap_or(Time::MAX)
    }

    /// The class, the timing and the pair of the probe whose questions are `flow`.
    pub fn probe_of(&self, flow: FlowId) -> Option<(u16, Probe, ProbePair)> {
        self.plan.traffic.sources.iter().find_map(|source| match &source.kind {
            SourceKind::Probe { pairs, size, period, stop, first_flow, .. } => {
                let index = flow.checked_sub(*first_flow)? as usize / 2;
                let probe = Probe { size: *size, period: *period, stop: *stop };
                Some((source.class, probe, *pairs.get(index)?))
            }
            _ => None,
        })
    }

    /// Which source the flow of a shuffle belongs to.
    pub fn shuffle_of(&self, flow: FlowId) -> u16 {
        let mut sources = self.plan.traffic.sources.iter();
        let found = sources.position(|source| match &source.kind {
            SourceKind::Shuffle { order, first_flow, .. } => {
                let flows: usize = order.iter().map(Vec::len).sum();
                flow >= *first_flow && ((flow - first_flow) as usize) < flows
            }
            _ => false,
        });
        found.expect("a shuffle's flow ids are the shuffle's own") as u16
    }
}
