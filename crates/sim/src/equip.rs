//! The equipment that a plan's hosts have between their endpoints and the link.

use crate::shared::has_overlay;
use millpond_core::congestion::Family;
use millpond_core::host::limit::{ClassConfig, LimitConfig, QueueConfig, SideConfig};
use millpond_core::host::virtual_switch::{ApplicationConfig, VirtualSwitchParams};
use millpond_core::host::{
    Host, HostConfig, LimiterConfig, Nic, ReceiveConfig, VirtualSwitchConfig,
};
use millpond_core::random::Stream;
use millpond_core::switch::admission::Admission;
use millpond_core::switch::buffer::{BufferParams, Capacity, Memory, PerPortParams, SwitchFacts};
use millpond_core::switch::marking::Marking;
use millpond_core::switch::pause::Pause;
use millpond_core::switch::port::PortConfig;
use millpond_core::switch::queue::{DynamicQueuesParams, Queue, QueueParams, StrictPriorityParams};
use millpond_core::switch::site::Auto;
use millpond_core::{Bytes, HostId, Rate};
use millpond_scenario::application::ApplicationPlan;
use millpond_scenario::limit::LimitPlan;
use millpond_scenario::plan::Plan;
use millpond_scenario::settings::limit::LimitKind;

/// A host whose link has this rate.
pub fn host(plan: &Plan, host: HostId, rate: Rate) -> Host {
    let (costs, nic_plan) = (plan.host.receive_cpu.as_ref(), &plan.host.nic);
    let interrupts = nic_plan.interrupts.then_some(nic_plan.interrupt_throttle);
    let offload = &plan.host.choices.receive_offload;
    Host::new(HostConfig {
        nic: nic(plan, host, rate),
        limit: limits(plan, host),
        receive: ReceiveConfig::new(offload, costs, interrupts, plan.warm_up),
        virtual_switch: virtual_switch(plan, host, rate),
        ordering: plan.transport_choices.ordering.timeout(),
    })
}

/// The parts of a host's virtual switch, whose link has this rate; `None`: it has none.
pub fn virtual_switch(plan: &Plan, host: HostId, rate: Rate) -> Option<VirtualSwitchConfig> {
    if matches!(plan.edge.virtual_switch, VirtualSwitchParams::None(_)) {
        return None;
    }
    let applications = plan.applications.iter().map(|application| ApplicationConfig {
        costs: application.costs.clone(),
        hosts: application.hosts.clone(),
    });
    let of_class = |class: u16| {
        let has = |it: &ApplicationPlan| {
            it.classes.as_ref().is_none_or(|classes| classes.contains(&class))
        };
        plan.applications.iter().position(has).map(|at| at as u16)
    };
    Some(VirtualSwitchConfig {
        host,
        params: plan.edge.virtual_switch.clone(),
        applications: applications.collect(),
        by_class: (0..plan.traffic.classes.len() as u16).map(of_class).collect(),
        rate,
        packet_max: plan.host.packet_max() as u32,
        segment: plan.host.segment_offload.unwrap_or(Bytes(plan.host.packet_max())),
        random: Stream::new(plan.seed, &format!("virtual-switch/host{host}")),
    })
}

fn nic(plan: &Plan, host: HostId, rate: Rate) -> Nic {
    let size = Auto::Given(None).into();
    let unlimited = BufferParams::PerPort(PerPortParams { size, ..PerPortParams::default() });
    let buffer = plan.host.nic.buffer.as_ref().unwrap_or(&unlimited);
    let site = plan.port_site(0, rate);
    let capacity = Capacity::new(buffer, &site);
    // A NIC that can be paused has a queue for each priority, or one would hold up the others, and
    // one for each flow where flows are paused; packets of virtual switches go before
    // data.
    let queue = match &plan.switch.queue {
        QueueParams::DynamicQueues(p) if Pause::new(&plan.switch.pause).stops_flows() => {
            QueueParams::DynamicQueues(DynamicQueuesParams { queues: None, ..p.clone() })
        }
        _ if pauses(plan) || has_overlay(plan) || has_headers(plan) => {
            QueueParams::StrictPriority(StrictPriorityParams::default())
        }
        _ => QueueParams::default(),
    };
    let config = PortConfig {
        rate,
        capacity,
        control: None,
        marking: Marking::new(&plan.host.nic.marking.at_port(&site, capacity)),
        admission: Admission::new(&Default::default()),
        queue: Queue::new(&queue),
    };
    let fast = config.fits_fast()
        && matches!(buffer, BufferParams::PerPort(_))
        && !plan.engine.general_ports;
    let random = Stream::new(plan.seed, &format!("nic/host{host}"));
    Nic::new(config, Memory::new(buffer, &SwitchFacts::default()), fast, random)
}

/// Whether packets without payload go before others in NICs.
fn has_headers(plan: &Plan) -> bool {
    plan.transports().any(|kind| kind.demands().family == Family::Uet)
}

/// The limits of a host; `None`: there are none.
fn limits(plan: &Plan, host: HostId) -> Option<LimiterConfig> {
    let here = |limit: &(u16, &LimitPlan)| limit.1.hosts.binary_search(&host).is_ok();
    let own: Vec<(u16, &LimitPlan)> =
        plan.limits.iter().enumerate().map(|(i, limit)| (i as u16, limit)).filter(here).collect();
    if own.is_empty() {
        return None;
    }
    let classes = own.iter().filter_map(|(number, limit)| match &limit.kind {
        LimitKind::Nrm(_) => None,
        LimitKind::Htb(p) => Some(ClassConfig {
            limit: *number,
            classes: limit.classes.clone(),
            settings: limit.integers(false),
            framing: p.framing.get() as u32,
            queue: p.queue as usize,
        }),
    });
    Some(LimiterConfig {
        egress: side(plan, &own, false),
        ingress: side(plan, &own, true),
        classes: classes.collect(),
        random: Stream::new(plan.seed, &format!("limit/host{host}")),
        measured_from: plan.warm_up,
        headers: plan.host.headers,
        frame: plan.host.frame_overhead,
    })
}

/// The virtual queues of one direction of a host with these limits: theirs, and those of their
/// scopes, each once.
fn side(plan: &Plan, own: &[(u16, &LimitPlan)], ingress: bool) -> SideConfig {
    let mut side = SideConfig::default();
    let sees = |limit: &LimitPlan| if ingress { limit.ingress } else { limit.egress };
    for (_, limit) in
        own.iter().filter(|(_, limit)| sees(limit) && matches!(limit.kind, LimitKind::Nrm(_)))
    {
        let mut queues = Vec::new();
        for &scope in &limit.scopes {
            let known = side.queues.iter().position(|queue| queue.limit == scope);
            let number = known.unwrap_or(side.queues.len());
            if known.is_none() {
                let of = &plan.limits[scope as usize];
                let LimitKind::Nrm(p) = &of.kind else { continue };
                let framing = p.framing.get().min(u64::from(u16::MAX)) as u32;
                let settings = of.integers(ingress);
                side.queues.push(QueueConfig { limit: scope, settings, length: p.length, framing });
            }
            queues.push(number as u16);
        }
        side.limits.push(LimitConfig { classes: limit.classes.clone(), queues });
    }
    side
}

pub(crate) fn pauses(plan: &Plan) -> bool {
    Pause::new(&plan.switch.pause).is_active()
}
