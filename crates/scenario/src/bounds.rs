//! Amounts that can never act: each threshold beside the buffer, the rate or the time that bounds
//! it.
//!
//! An amount that is left to a rule ("auto") is compared as the rule has it at each port.
//!
//! Invariant: a warning names the key, its amount and the amount that bounds it; thresholds in the
//! wrong order are an error.

use crate::error::Report;
use crate::host::HostPlan;
use crate::limit::LimitPlan;
use crate::ports::{self, PortKind};
use crate::rdma::RecoveryParams;
use crate::settings::traffic::TrafficParams;
use crate::settings::{NicChoice, Settings};
use crate::topology::Topology;
use crate::transport::TransportKind;
use millpond_core::host::virtual_switch::VirtualSwitchParams;
use millpond_core::registry::Choice;
use millpond_core::switch::admission::{AdmissionParams, AifoParams, Around};
use millpond_core::switch::buffer::BufferParams;
use millpond_core::switch::marking::MarkingParams;
use millpond_core::switch::pause::PauseParams;
use millpond_core::switch::site::{Auto, PortSite};
use millpond_core::{Bytes, Rate, Time};
use std::collections::BTreeSet;

/// The facts that the amounts are compared with.
pub(crate) struct Bounds<'a> {
    pub s: &'a Settings,
    pub topology: &'a Topology,
    pub host: &'a HostPlan,
    /// The longest round trip of the empty network.
    pub round_trip: Time,
    pub horizon: Time,
}

pub(crate) fn check(bounds: &Bounds<'_>, limits: &[LimitPlan], report: &mut Report) {
    let kinds = bounds.kinds();
    marking_order(bounds, &kinds, report);
    admission(bounds, &kinds, report);
    rank_window(bounds, &kinds, report);
    pause(bounds, &kinds, report);
    timers(bounds, report);
    delayed_acks(bounds.s, report);
    swift(bounds, report);
    handshakes(bounds, &kinds, report);
    rates(bounds, limits, report);
    times(bounds, report);
}

impl Bounds<'_> {
    fn packet_max(&self) -> u64 {
        self.host.packet_max()
    }

    fn kinds(&self) -> Vec<PortKind> {
        ports::kinds(self.topology, self.host, &self.s.switch)
    }

    fn around(&self, kind: &PortKind) -> Around {
        Around {
            site: kind.site,
            capacity: kind.capacity,
            marks: kind.threshold,
            round_trip: self.round_trip,
        }
    }
}

/// "leaf ports of 10Gbps".
fn ports_of(kind: &PortKind) -> String {
    format!("{} ports of {}", kind.tier, kind.rate)
}

/// RED that marks has its minimum below its maximum at each port.
fn marking_order(bounds: &Bounds<'_>, kinds: &[PortKind], report: &mut Report) {
    let s = bounds.s;
    let mut check = |marking: &MarkingParams, path: &str, sites: &[PortSite]| {
        let MarkingParams::Red(p) = marking else { return };
        let wrong = sites.iter().map(|site| (p.min_threshold.at(site), p.max_threshold.at(site)));
        if let Some((least, most)) = wrong.into_iter().find(|(least, most)| least > most) {
            let key = format!("{path}.min-threshold");
            report.wrong(&key, format!("{least} is above max-threshold ({most})"));
        }
    };
    let sites: Vec<PortSite> = kinds.iter().map(|kind| kind.site).collect();
    check(&s.switch.marking, "switch.marking", &sites);
    if let NicChoice::Own(marking) = &s.nic.marking {
        let hosts = bounds.topology.host_links();
        let rates: BTreeSet<Rate> = hosts.iter().map(|link| link.rate).collect();
        let site = |rate: Rate| PortSite { rate, tier: 0, packet_max: bounds.packet_max() };
        check(marking, "host.nic.marking", &rates.into_iter().map(site).collect::<Vec<_>>());
    }
}

/// Thresholds of an admission in their order at each port, the least below what the port can hold.
fn admission(bounds: &Bounds<'_>, kinds: &[PortKind], report: &mut Report) {
    let s = bounds.s;
    for kind in kinds {
        let around = bounds.around(kind);
        let mut ordered = |min: Auto<Bytes>, max: Auto<Bytes>, prefix: &str| {
            if let (Auto::Given(min), Auto::Given(max)) = (min, max)
                && min > max
            {
                let path = format!("switch.admission.{prefix}min-threshold");
                let text = format!("{min} is above {prefix}max-threshold ({max})");
                report.wrong(&path, text);
            }
        };
        match s.switch.admission.at_port(&around) {
            AdmissionParams::Red(p) => ordered(p.min_threshold, p.max_threshold, ""),
            AdmissionParams::Wred(p) => {
                ordered(p.min_threshold, p.max_threshold, "");
                ordered(p.important_min_threshold, p.important_max_threshold, "important-");
            }
            _ => {}
        }
    }
    let refuses_nobody = |kind: &&PortKind| {
        let around = bounds.around(kind);
        let is_bounded = kind.capacity.bytes != u64::MAX || kind.capacity.packets != u32::MAX;
        // A full packet that finds more than this has no room.
        let most = around.held().saturating_sub(bounds.packet_max());
        is_bounded && s.switch.admission.refuses_from(&around).is_some_and(|(_, from)| from > most)
    };
    if let Some(kind) = kinds.iter().find(refuses_nobody)
        && let Some((key, from)) = s.switch.admission.refuses_from(&bounds.around(kind))
    {
        report.warn(format!(
            "switch.admission \"{}\" refuses nobody: {key} means a queue of {:#}, and {} hold up \
             to {:#}",
            s.switch.admission.kind(),
            Bytes(from),
            ports_of(kind),
            Bytes(bounds.around(kind).held())
        ));
    }
}

/// AIFO's quantiles mean something when its window is full.
fn rank_window(bounds: &Bounds<'_>, kinds: &[PortKind], report: &mut Report) {
    let (window, period) = match &bounds.s.switch.admission {
        AdmissionParams::Aifo(AifoParams { window, sample_period, .. }) => {
            (*window, *sample_period)
        }
        AdmissionParams::Probabilistic(p) => (p.window, p.sample_period),
        _ => return,
    };
    let arrivals = u64::from(window) * u64::from(period);
    let Some(rate) = kinds.iter().map(|kind| kind.rate).max() else { return };
    let takes = rate.transmission_time(arrivals.saturating_mul(bounds.packet_max()));
    if takes > bounds.horizon {
        report.warn(format!(
            "switch.admission \"{}\" fills its window of {window} ranks with {arrivals} packets, \
             which take {takes:#} on a link of {rate}, and the run ends at {}",
            bounds.s.switch.admission.kind(),
            bounds.horizon
        ));
    }
}

/// A pause comes before the memory is full.
fn pause(bounds: &Bounds<'_>, kinds: &[PortKind], report: &mut Report) {
    match &bounds.s.switch.pause {
        PauseParams::Pfc(p) if p.alpha > 0.0 => pfc(bounds, p.alpha, report),
        PauseParams::Bfc(p) => {
            let time = p.reaction();
            for kind in kinds.iter().filter(|kind| kind.capacity.bytes != u64::MAX) {
                let threshold = kind.rate.bytes_in(time);
                if threshold > kind.capacity.bytes {
                    report.warn(format!(
                        "switch.pause \"bfc\" stops nobody at {}: hop-rtt and interval ({time:#}) \
                         mean a queue of {:#}, and such a port holds up to {:#}",
                        ports_of(kind),
                        Bytes(threshold),
                        Bytes(kind.capacity.bytes)
                    ));
                    return;
                }
            }
        }
        _ => {}
    }
}

/// The first switch whose memory is full, but for a packet, before one ingress alone is paused.
fn pfc(bounds: &Bounds<'_>, alpha: f64, report: &mut Report) {
    for (index, site) in bounds.topology.switches.iter().enumerate() {
        let facts = bounds.host.switch_facts(bounds.topology, index, true);
        let size = match &bounds.s.switch.buffer {
            BufferParams::Pools(p) => p.pools(&facts).1.max(0) as f64,
            _ => return,
        };
        if size / (1.0 + alpha) < bounds.packet_max() as f64 {
            let (from, size) = (Bytes((size * alpha / (1.0 + alpha)) as u64), Bytes(size as u64));
            report.warn(format!(
                "switch.pause \"pfc\" stops nobody before the pool is full: alpha {alpha} means \
                 {from:#} of one ingress, and {} has {size:#} for all",
                site.name
            ));
            return;
        }
    }
}

/// Timeouts that end before an answer can be there.
fn timers(bounds: &Bounds<'_>, report: &mut Report) {
    let (s, round_trip) = (bounds.s, bounds.round_trip);
    let mut too_short = |key: &str, timeout: Time| {
        if timeout < round_trip {
            report.warn(format!(
                "{key} is {timeout:#}, and the longest round trip of the empty network \
                 {round_trip:#}: what is not lost is sent again"
            ));
        }
    };
    if s.runs_tcp() {
        too_short("transport.initial-rto", s.transport.initial_rto);
        s.transport.fixed_rto.into_iter().for_each(|rto| too_short("transport.fixed-rto", rto));
    }
    if s.has_queue_pairs() {
        match &s.rdma_choices.recovery {
            RecoveryParams::GoBackN(p) => too_short("rdma.recovery.timeout", p.timeout),
            RecoveryParams::Selective(p) => {
                let (low, high) = p.timeouts(s.rdma.base_rtt.or(|| round_trip));
                too_short("rdma.recovery.timeout-low", low);
                too_short("rdma.recovery.timeout-high", high);
            }
        }
    }
    let homa = s.kinds().find_map(|kind| match kind {
        TransportKind::Homa(p) => Some(p.homa_resend_interval),
        _ => None,
    });
    homa.into_iter().for_each(|interval| too_short("transport.homa-resend-interval", interval));
    let uet = s.kinds().find_map(|kind| match kind {
        TransportKind::Uet(p) => match p.uet_rto {
            Auto::Given(rto) => Some(rto),
            Auto::Auto => None,
        },
        _ => None,
    });
    uet.into_iter().for_each(|rto| too_short("transport.uet-rto", rto));
    let feedback = match &s.edge.virtual_switch {
        VirtualSwitchParams::Backdraft(p) => Some(p.feedback(round_trip)),
        VirtualSwitchParams::Credits(p) => Some(p.feedback(round_trip)),
        _ => None,
    };
    if let Some(feedback) = feedback.filter(|feedback| *feedback < round_trip) {
        report.warn(format!(
            "edge.virtual-switch.feedback is {feedback:#}, and the longest round trip of the empty \
             network {round_trip:#}: memory beyond what it reckons with can be needed"
        ));
    }
}

/// An acknowledgement that waits longer than the sender does.
fn delayed_acks(s: &Settings, report: &mut Report) {
    let t = &s.transport;
    let least = t.fixed_rto.unwrap_or(t.min_rto);
    if s.runs_tcp() && t.delayed_ack > 1 && t.delayed_ack_timeout > least {
        let key = if t.fixed_rto.is_some() { "fixed-rto" } else { "min-rto" };
        report.warn(format!(
            "transport.delayed-ack-timeout is {}, and {key} {least}: a single segment can time \
             out while its acknowledgement waits",
            t.delayed_ack_timeout
        ));
    }
}

/// Swift's target above what the empty network takes.
fn swift(bounds: &Bounds<'_>, report: &mut Report) {
    let s = bounds.s;
    for p in
        s.kinds().filter_map(|kind| if let TransportKind::Swift(p) = kind { Some(p) } else { None })
    {
        let hops = bounds.topology.most_switches();
        let target = p.target(hops);
        if target < bounds.round_trip {
            report.warn(format!(
                "transport \"swift\" steers to {target:#} over {hops} switches, and the longest \
                 round trip of the empty network is {:#}: its window shrinks whatever it does; \
                 raise swift-base-target",
                bounds.round_trip
            ));
        }
        let waits = s.transport.delayed_ack_timeout;
        if s.transport.delayed_ack > 1 && target < waits {
            report.warn(format!(
                "transport \"swift\" steers to {target:#}, and a single segment's acknowledgement \
                 waits {waits} (delayed-ack-timeout): it counts that as delay; write delayed-ack \
                 = 1"
            ));
        }
    }
}

/// Connections that open in a burst which a port cannot hold lose SYNs, and a SYN waits for its
/// first timeout.
fn handshakes(bounds: &Bounds<'_>, kinds: &[PortKind], report: &mut Report) {
    let (s, t) = (bounds.s, &bounds.s.transport);
    let is_lossless = s.switch.pause.kind() != "none";
    if !t.handshake || is_lossless || t.initial_rto <= t.min_rto.saturating_mul(10) {
        return;
    }
    let Some(held) = kinds.iter().map(|kind| bounds.around(kind).held()).min() else { return };
    for (traffic, kind) in
        s.traffic.iter().zip(s.kinds()).filter(|(_, kind)| kind.demands().family.is_tcp())
    {
        let TrafficParams::Incast(p) = &traffic.kind else { continue };
        let window = u64::from(t.initial_window) * bounds.packet_max();
        let flows = u64::from(p.degree) * u64::from(p.flows_per_server);
        let burst = flows.saturating_mul(p.response.get().min(window));
        if burst > held {
            report.warn(format!(
                "traffic {:?}: {flows} connections of transport \"{}\" can send {:#} at once, and \
                 a port holds up to {:#}: SYNs can be lost, each of which waits initial-rto ({}, \
                 {} times min-rto)",
                traffic.name(),
                kind.kind(),
                Bytes(burst),
                Bytes(held),
                t.initial_rto,
                t.initial_rto.as_ps() / t.min_rto.as_ps().max(1)
            ));
        }
    }
}

/// Limits above the link that they are for.
fn rates(bounds: &Bounds<'_>, limits: &[LimitPlan], report: &mut Report) {
    // By limit: the fastest link of the hosts that are charged to it.
    let mut fastest = vec![None; limits.len()];
    for limit in limits {
        let links = limit.hosts.iter().map(|host| bounds.topology.links[*host as usize].rate);
        let own = links.max();
        for scope in &limit.scopes {
            fastest[usize::from(*scope)] = fastest[usize::from(*scope)].max(own);
        }
    }
    for (limit, fastest) in limits.iter().zip(fastest) {
        if let Some(link) = fastest.filter(|link| limit.rate() > *link) {
            report.warn(format!(
                "limit {:?} limits nothing: its rate is {}, and its hosts' links have {link} at \
                 most",
                limit.name,
                limit.rate()
            ));
        }
    }
}

/// Samples, failures and programs that the run does not live to see.
fn times(bounds: &Bounds<'_>, report: &mut Report) {
    let (s, end) = (bounds.s, bounds.horizon);
    let c = &s.capture;
    let periods = [
        ("capture.queues.every", c.queues_every),
        ("capture.connections.every", c.connections_every),
        ("capture.goodput", c.goodput),
    ];
    for (key, period) in periods {
        if let Some(period) = period.filter(|period| *period >= end) {
            report
                .warn(format!("{key} is {period}, and the run ends at {end}: there is no sample"));
        }
    }
    for f in s.failures.iter().filter(|f| f.at >= end) {
        let ends = f.site();
        report.warn(format!("failure of {ends} begins at {}, and the run ends at {end}", f.at));
    }
    for p in s.programs.iter().filter(|p| p.start >= end && !p.awaits) {
        let (name, start) = (p.name(), p.start);
        report.warn(format!("program {name} starts at {start}, and the run ends at {end}"));
    }
    if let Some((program, duration)) = s.programs.iter().find(|p| p.awaits).zip(s.run.duration) {
        report.warn(format!(
            "program {} has awaits, and the run a duration: the run lasts until the later of its \
             exit and {duration}; to end with the program, write until = \"flows-complete\"",
            program.name()
        ));
    }
    let last = s.traffic.iter().map(|t| t.common.stop.map_or(end, |stop| stop.min(end))).max();
    if let Some(last) = last.filter(|last| *last <= s.run.warm_up) {
        report.warn(format!(
            "warm-up is {}, and the last flow starts before {last}: no flow is counted",
            s.run.warm_up
        ));
    }
}
