//! Hosts: how they send and receive, and what that means for the switches that they hang on.

use crate::choices::HostChoices;
use crate::error::Report;
use crate::nic::NicChoiceParams;
use crate::settings::{NicChoice, Settings};
use crate::stack::Stacks;
use crate::topology::Topology;
use millpond_core::host::ReceiveCpuParams;
use millpond_core::switch::buffer::{BufferParams, SwitchFacts};
use millpond_core::switch::marking::{MarkingParams, UnmarkedParams};
use millpond_core::{Bytes, Rate, Time};
use std::sync::Arc;

/// IPv4 and TCP headers without options: what a packet has beside its payload.
pub const HEADER_BYTES: u32 = 40;
/// The option with TCP's time stamps, padded (RFC 7323 appendix A).
pub const TIMESTAMP_BYTES: u32 = 12;

/// The largest segment that a transport may hand down at a time: far beyond what any NIC cuts.
const SEGMENT_MAX: u64 = 1 << 30;

/// A kernel's memory: less does not boot, and more no machine of today has for several.
const MEMORY_MIN: u64 = 32 << 20;
const MEMORY_MAX: u64 = 64 << 30;

/// Refuses times and memory that no host has.
fn bounds(s: &Settings, report: &mut Report) {
    let h = &s.host;
    if h.stack_delay > Time::from_s(1_000) {
        report.wrong("host.stack-delay", format!("{} is more than 1000s", h.stack_delay));
    }
    if !(MEMORY_MIN..=MEMORY_MAX).contains(&h.memory.get()) {
        let message = format!("{} is not {} to {}", h.memory, Bytes(MEMORY_MIN), Bytes(MEMORY_MAX));
        report.wrong("host.memory", message);
    }
}

/// The host's plan; settles its segment size.
pub(crate) fn host(s: &mut Settings, report: &mut Report) -> HostPlan {
    let h = &s.host;
    if !(88..=65_535).contains(&h.mtu) {
        report.wrong("host.mtu", format!("{} is no packet size; 88 to 65535 is", h.mtu));
    } else if h.mtu.saturating_add(h.frame_overhead) > 65_535 {
        let message = format!("{} and an MTU of {} are more than 65535", h.frame_overhead, h.mtu);
        report.wrong("host.frame-overhead", message);
    }
    let headers = s.headers();
    let mss_max = h.mtu.saturating_sub(headers);
    let mss = h.mss.unwrap_or(mss_max);
    if (mss == 0 || mss > mss_max) && h.mss.is_some() {
        let message =
            format!("{mss} is no payload of a packet of {} bytes; 1 to {mss_max} is", h.mtu);
        report.wrong("host.mss", message);
    }
    if h.segment_offload.is_some_and(|segment| segment.get() > SEGMENT_MAX) {
        let message =
            format!("is more than a host hands down at a time; up to {} is", Bytes(SEGMENT_MAX));
        report.wrong("host.segment-offload", message);
    }
    if h.segment_offload.is_some_and(|segment| segment.get() < mss as u64) {
        let message = format!(
            "is smaller than one packet's payload ({mss}); \"off\" hands down packet by packet"
        );
        report.wrong("host.segment-offload", message);
    }
    if let Some(limit) = s.nic.params.per_flow_limit
        && limit.get() < u64::from(mss) + u64::from(headers)
    {
        let path = "host.nic.per-flow-limit";
        report.wrong(path, format!("{limit} is less than one packet; \"off\" is no limit"));
    }
    bounds(s, report);
    let plan = HostPlan {
        mtu: h.mtu,
        headers,
        frame_overhead: h.frame_overhead,
        segment_offload: h.segment_offload,
        stack_delay: h.stack_delay,
        kernel: h.kernel.clone(),
        memory: h.memory,
        stacks: None,
        nic: NicPlan {
            buffer: match &s.nic.buffer {
                NicChoice::Without => None,
                NicChoice::Switch => Some(s.switch.buffer.clone()),
                NicChoice::Own(buffer) => Some(buffer.clone()),
            },
            marking: match &s.nic.marking {
                NicChoice::Without => MarkingParams::None(UnmarkedParams {}),
                NicChoice::Switch => s.switch.marking.clone(),
                NicChoice::Own(marking) => marking.clone(),
            },
            per_flow_limit: s.nic.params.per_flow_limit,
            interrupt_throttle: s.nic.params.interrupt_throttle,
            interrupts: s.nic.params.interrupts,
            choice: s.nic.choices.choice.clone(),
        },
        choices: s.host_choices.clone(),
        receive_cpu: s.receive_cpu.clone(),
    };
    s.host.mss = Some(mss);
    plan
}

impl Settings {
    /// Bytes of IP and TCP headers of a packet with data.
    pub(crate) fn headers(&self) -> u32 {
        let has_stamps = self.transport.timestamps && self.runs_tcp();
        HEADER_BYTES + if has_stamps { TIMESTAMP_BYTES } else { 0 }
    }
}

#[derive(Clone, Debug)]
pub struct HostPlan {
    /// IP bytes of the largest packet.
    pub mtu: u32,
    /// Bytes of IP and TCP headers of a packet with data.
    pub headers: u32,
    /// Bytes of framing that each packet adds on the wire (38 counts preamble, Ethernet header, CRC
    /// and gap).
    pub frame_overhead: u32,
    /// The largest segment that the transport hands down; `None`: packet by packet.
    pub segment_offload: Option<Bytes>,
    /// Time between the wire and the transport, each way.
    pub stack_delay: Time,
    /// World virtual: each host's kernel, if not the usual one.
    pub kernel: Option<String>,
    pub memory: Bytes,
    /// World virtual: which hosts are Linux kernels, and not modelled; `None`: all are.
    pub stacks: Option<Arc<Stacks>>,
    pub nic: NicPlan,
    pub choices: HostChoices,
    /// The cost of receiving for its core; `None`: nothing.
    pub receive_cpu: Option<ReceiveCpuParams>,
}

impl HostPlan {
    /// World virtual: whether a host is a Linux kernel.
    pub fn is_linux(&self, host: u32) -> bool {
        self.stacks.as_ref().is_none_or(|stacks| stacks.hosts[host as usize])
    }
    /// World virtual: whether kernels have the flows of a class.
    pub fn is_of_linux(&self, class: u16) -> bool {
        self.stacks.as_ref().is_none_or(|stacks| stacks.classes[class as usize])
    }
    /// Bytes on the wire of a packet with this payload.
    pub fn wire_bytes(&self, payload: u64) -> u64 {
        payload + u64::from(self.headers) + u64::from(self.frame_overhead)
    }
    /// Bytes of the largest packet on the wire.
    pub fn packet_max(&self) -> u64 {
        u64::from(self.mtu) + u64::from(self.frame_overhead)
    }
    /// The most that the host adds to a packet's way over its link of this rate.
    pub fn late(&self, rate: Rate) -> Time {
        self.stack_delay + self.jitter_size(rate).unwrap_or_default()
    }

    /// Where the range of the jitter ends on a link of this rate; `None`: the host is exact.
    pub(crate) fn switch_facts(
        &self,
        topology: &Topology,
        switch: usize,
        pauses: bool,
    ) -> SwitchFacts {
        let link = |link: &u32| {
            let site = &topology.links[*link as usize];
            let is_hosts = topology.is_host_link(*link as usize);
            let late = if is_hosts { self.late(site.rate) } else { Time::ZERO };
            (site.rate, site.delay + late)
        };
        let (packet_max, tier) = (self.packet_max(), topology.switches[switch].tier);
        let links = topology.wiring[switch].iter().map(link).collect();
        SwitchFacts { packet_max, links, pauses, tier }
    }

    pub fn jitter_size(&self, rate: Rate) -> Option<Time> {
        let packet_bits = u128::from(self.packet_max()) * 8;
        let packet = packet_bits * 1_000_000_000_000 / u128::from(rate.bps()).max(1);
        self.choices.jitter.size(Time::from_ps(packet as u64))
    }
}

#[derive(Clone, Debug)]
pub struct NicPlan {
    /// The buffer there; `None`: as much as the transport sends.
    pub buffer: Option<BufferParams>,
    pub marking: MarkingParams,
    /// The bytes that one flow may have waiting; `None`: no limit.
    pub per_flow_limit: Option<Bytes>,
    /// The least time from an interrupt for packets to the next.
    pub interrupt_throttle: Time,
    /// Whether simulated hosts have interrupts.
    pub interrupts: bool,
    /// Which one of several takes a connection.
    pub choice: NicChoiceParams,
}
