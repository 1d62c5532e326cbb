//! Data that results need of a plan before its run, and of the simulator's outcome after it.

use crate::standstill::warning;
use millpond_core::Time;
use millpond_core::counters::DropReason;
use millpond_core::host::LimitCounts;
use millpond_core::params::{Field, Value};
use millpond_core::registry::Choice;
use millpond_ranks::{Job, Work};
use millpond_results::{
    Amount, Audit, Captures, GoodputOverTime, Header, JobHeader, Limit, LinkFailure, Place,
    QueuePeak, RunInfo, SizeBins, Status, Totals, World, jain, peak_rss_bytes,
};
use millpond_scenario::application::ApplicationPlan;
use millpond_scenario::plan::{self, FailurePlan, Plan};
use millpond_scenario::topology::{LinkSite, Node, Topology};
use millpond_scenario::traffic::{JobPlan, SourceKind};
use millpond_sim::Outcome;
use millpond_sim::audit::{DROPPED, Tally};
use millpond_sim::samples::Peak;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The header of a run: facts known before it starts.
pub(crate) fn header(plan: &Plan, world: World) -> Header {
    Header {
        name: plan.name.clone(),
        seed: plan.seed,
        variant: plan.variant.clone(),
        world,
        classes: plan.traffic.classes.clone(),
        mice: plan.mice,
        elephants: plan.elephants,
        size_bins: size_bins(&plan.size_bins),
        jobs: plan.traffic.jobs().map(|(class, job)| job_header(class, job)).collect(),
    }
}

/// Facts known of a job before it runs.
fn job_header(class: u16, plan: &JobPlan) -> JobHeader {
    let Work::Collective(Job { collective, .. }) = &plan.work else {
        return JobHeader {
            class,
            operation: "program".into(),
            algorithm: "of ranks".into(),
            ranks: plan.count(),
            ..JobHeader::default()
        };
    };
    let word = |value: Value| match value {
        Value::Text(word) => word,
        _ => String::new(),
    };
    let has_buffer = collective.algorithm_bandwidth(Time::from_s(1)).is_some();
    JobHeader {
        class,
        operation: word(collective.operation.to_value()),
        algorithm: word(collective.algorithm.to_value()),
        ranks: plan.count(),
        bytes: collective.bytes,
        bus_factor: if has_buffer { collective.bus_factor() } else { 0.0 },
    }
}

/// Captures: records beside flows and queries.
pub(crate) fn captures(plan: &Plan) -> Captures {
    let topology = &plan.topology;
    let has_queues = plan.capture.queues.is_some();
    let sampled = |_: &(u32, &Vec<u32>)| has_queues;
    let of_switch = |(switch, links): (u32, &Vec<u32>)| {
        links.iter().map(|link| peer(topology, Node::Switch(switch), *link)).collect()
    };
    let of_host = |host: u32| match topology.nics(host).collect::<Vec<_>>().as_slice() {
        [link] => peer(topology, Node::Host(host), *link),
        _ => String::new(),
    };
    Captures {
        peers: (0..).zip(&topology.wiring).filter(sampled).map(of_switch).collect(),
        host_peers: (0..topology.hosts).filter(|_| has_queues).map(of_host).collect(),
        queues: plan.capture.queues.is_some(),
        connections: plan.capture.connections.as_ref().map(|_| millpond_sim::quantities(plan)),
        nodes: plan.topology.switches.iter().map(|s| s.name.clone()).collect(),
        taps: plan
            .capture
            .taps
            .iter()
            .map(|tap| Place { name: tap.name.clone(), link: tap.link.clone() })
            .collect(),
        snaplen: plan.capture.snaplen,
        tcp_timestamps: plan.capture.tcp_timestamps || plan.transport.timestamps,
        timers: plan.capture.timers,
        trace: plan.capture.trace,
    }
}

/// The classes of each application: a traffic belongs to the first that has it.
pub(crate) fn classes_of_applications(plan: &Plan) -> Vec<(String, Option<Vec<u16>>)> {
    let mut taken = BTreeSet::new();
    let mut of = |application: &ApplicationPlan| {
        let all = || (0..plan.traffic.classes.len() as u16).collect();
        let mut classes: Vec<u16> = application.classes.clone().unwrap_or_else(all);
        classes.retain(|class| taken.insert(*class));
        (application.name.clone(), Some(classes))
    };
    plan.applications.iter().map(&mut of).collect()
}

fn size_bins(bins: &plan::SizeBins) -> SizeBins {
    match bins {
        plan::SizeBins::Equal(count) => SizeBins::Equal(*count),
        plan::SizeBins::Edges(edges) => {
            SizeBins::Edges(edges.iter().map(|edge| edge.get()).collect())
        }
    }
}

fn name(topology: &Topology, node: Node) -> String {
    match node {
        Node::Host(host) => format!("host{host}"),
        Node::Switch(switch) => topology.switches[switch as usize].name.clone(),
    }
}

/// The links that fail, by their ends' names; all links of a bundle that fail together are one.
pub(crate) fn link_failures(plan: &Plan) -> Vec<LinkFailure> {
    let topology = &plan.topology;
    let mut failures: Vec<LinkFailure> = Vec::new();
    for failure in &plan.failures {
        if topology.whole(failure.link)[0] != failure.link {
            continue;
        }
        let (a, b) = topology.ends(failure.link);
        let (a, b) = (topology.node(a), topology.node(b));
        let bundle = topology.between(a, b);
        let alike = |link: &&u32| plan.failures.contains(&FailurePlan { link: **link, ..*failure });
        let is_whole = bundle.len() == 1 || bundle.iter().filter(alike).count() == bundle.len();
        let place = bundle.iter().position(|link| *link == failure.link);
        failures.push(LinkFailure {
            link: (name(topology, a), name(topology, b)),
            number: place.filter(|_| !is_whole).map(|place| place as u32),
            at_us: failure.at.as_us_f64(),
            until_us: (failure.until != Time::MAX).then(|| failure.until.as_us_f64()),
            loss: failure.loss,
        });
    }
    failures.dedup();
    failures
}

/// The totals of a run of the simulator.
pub(crate) fn totals(plan: &Plan, outcome: &Outcome, wall: Duration, threads: usize) -> Totals {
    let audit = &outcome.audit;
    let amount = |tally: Tally| Amount { packets: tally.packets, bytes: tally.bytes };
    let mut conserved = Audit::of(
        amount(audit.injected),
        amount(audit.delivered),
        amount(audit.dropped_total()),
        amount(audit.in_flight),
    )
    .with_trimmed(audit.trimmed.bytes);
    conserved.conserved &= audit.is_conserved();
    let measured = outcome.simulated.saturating_sub(plan.warm_up);
    let wall_s = wall.as_secs_f64();
    Totals {
        inputs: Vec::new(),
        status: match (outcome.interrupted, outcome.is_stalled()) {
            (true, _) => Status::Interrupted,
            (false, true) => Status::Stalled,
            (false, false) => Status::Complete,
        },
        until_complete: plan.until_complete,
        horizon: outcome.simulated,
        measured,
        bytes_delivered: outcome.hosts.measured_bytes,
        goodput_over_time: goodput_over_time(plan, &outcome.delivered),
        queue_peaks: outcome.peaks.values().map(|peak| queue_peak(&plan.topology, peak)).collect(),
        run: RunInfo {
            wall_s,
            setup_s: 0.0,
            simulated_s: outcome.simulated.as_s_f64(),
            events: audit.events,
            packet_hops: audit.hops,
            packet_hops_per_s: if wall_s > 0.0 { audit.hops as f64 / wall_s } else { 0.0 },
            peak_rss_bytes: peak_rss_bytes(),
            threads: threads as u32,
        },
        sent: audit.injected.packets,
        delivered: audit.delivered.packets,
        dropped_by: DropReason::ALL
            .iter()
            .map(|r| (r.name(), audit.dropped[*r as usize].packets))
            .collect(),
        dropped_kinds: DROPPED.into_iter().zip(audit.dropped_as).collect(),
        ecn_marked: outcome.marked,
        deflected: outcome.deflected,
        retransmitted: outcome.hosts.retransmitted,
        out_of_order: outcome.hosts.out_of_order,
        timeouts: outcome.hosts.timeouts,
        pause_frames: outcome.pause_frames,
        overlay_pauses: outcome.counters.get(plan.edge.virtual_switch.kind(), "pauses"),
        mechanisms: outcome.counters.numbers(),
        fairness_jain: fairness(&outcome.pairs, measured),
        calls: calls(plan),
        programs: Vec::new(),
        limits: limits(plan, outcome, measured),
        not_started: (outcome.not_started.waiting.len() + outcome.not_started.late.len()) as u64,
        warnings: plan
            .warnings
            .iter()
            .cloned()
            .chain(unsampled(plan, &outcome.sampled))
            .chain(not_started(plan, outcome))
            .chain(unmatched(plan, outcome))
            .chain(outcome.standstill.as_ref().map(|found| warning(plan, found)))
            .collect(),
        audit: conserved,
    }
}

fn queue_peak(topology: &Topology, Peak { sample, flows }: &Peak) -> QueuePeak {
    let (node, link) = match sample.node {
        millpond_results::Node::Switch(switch) => {
            (Node::Switch(switch), Some(topology.link_at(switch, sample.port)))
        }
        millpond_results::Node::Host(host) => {
            (Node::Host(host), topology.nics(host).nth(usize::from(sample.port)))
        }
    };
    QueuePeak {
        node: name(topology, node),
        port: sample.port,
        peer: link.map_or(String::new(), |link| peer(topology, node, link)),
        at_us: sample.at.as_us_f64(),
        bytes: sample.bytes,
        packets: sample.packets,
        flows: flows.clone(),
    }
}

/// The node at the other end of a node's link.
fn peer(topology: &Topology, node: Node, link: u32) -> String {
    let (a, b) = topology.ends(link);
    let (a, b) = (topology.node(a), topology.node(b));
    name(topology, if a == node { b } else { a })
}

/// The goodput of each class over time, from its bytes at each sample.
pub(crate) fn goodput_over_time(plan: &Plan, delivered: &[Vec<u64>]) -> Option<GoodputOverTime> {
    let links = plan.topology.links.iter().enumerate();
    let of_hosts = links.filter(|(at, _)| plan.topology.is_host_link(*at));
    let time = |link: &LinkSite| link.rate.transmission_time(plan.host.packet_max());
    let packet = of_hosts.map(|(_, link)| time(link)).max().unwrap_or_default();
    let mut failures: Vec<Time> = plan.failures.iter().map(|failure| failure.at).collect();
    failures.sort_unstable();
    failures.dedup();
    let failures: Vec<f64> = failures.into_iter().map(Time::as_us_f64).collect();
    let of = GoodputOverTime::of(plan.capture.goodput?, packet, &plan.traffic.classes, delivered)?;
    Some(of.with_failures(&failures))
}

/// Warning for requested connections that were never open at a sample; `sampled` are those that
/// were.
pub(crate) fn unsampled(plan: &Plan, sampled: &BTreeSet<u32>) -> Option<String> {
    let capture = plan.capture.connections.as_ref()?;
    let missing = |flow: &&u32| !sampled.contains(flow);
    let every = capture.every;
    match &capture.flows {
        Some(flows) => {
            let missing: Vec<String> = flows.iter().filter(missing).map(u32::to_string).collect();
            let of = missing.join(", ");
            (!missing.is_empty()).then(|| {
                format!("capture.connections: not open at any sample, every {every}: flow {of}")
            })
        }
        None if sampled.is_empty() => Some(format!(
            "capture.connections: no connection that it means was open at any sample, every \
             {every}"
        )),
        None => None,
    }
}

/// Warning for flows that were to start and did not.
fn not_started(plan: &Plan, outcome: &Outcome) -> Option<String> {
    const NAMED: usize = 3;
    let graph = plan.traffic.dependencies.as_deref()?;
    let name = |flow: &u32| match graph.node(*flow).and_then(|node| graph.id(node)) {
        Some(id) => format!("{flow} {id:?}"),
        None => flow.to_string(),
    };
    let counted = |flows: &[u32], why: &str| {
        let names: Vec<String> = flows.iter().take(NAMED).map(name).collect();
        let more = if flows.len() > NAMED { ", …" } else { "" };
        (!flows.is_empty())
            .then(|| format!("{} {why} (flow {}{more})", flows.len(), names.join(", ")))
    };
    let not = &outcome.not_started;
    let waiting = counted(&not.waiting, "wait for flows that were not delivered");
    let late = counted(&not.late, "would have started at their stop, at the end, or later");
    let parts: Vec<String> = waiting.into_iter().chain(late).collect();
    (!parts.is_empty()).then(|| {
        format!("{} flows never started: {}", not.waiting.len() + not.late.len(), parts.join("; "))
    })
}

/// Unfinished operations of programs of ranks.
fn unmatched(plan: &Plan, outcome: &Outcome) -> Option<String> {
    const NAMED: usize = 3;
    let left = &outcome.unmatched.ranks;
    let name = |(class, rank, what): &(u16, u32, String)| {
        format!("rank {rank} of {:?}: {what}", plan.traffic.classes[usize::from(*class)])
    };
    let names: Vec<String> = left.iter().take(NAMED).map(name).collect();
    let more = if left.len() > NAMED { "; …" } else { "" };
    let why = match outcome.unmatched.is_end {
        true => "can never end",
        false => "had not ended when the run was over",
    };
    (!left.is_empty())
        .then(|| format!("programs of {} ranks {why}: {}{more}", left.len(), names.join("; ")))
}

/// Jain's index over the goodput of pairs of hosts.
pub(crate) fn fairness(pairs: &BTreeMap<(u32, u32), u64>, measured: Time) -> Option<f64> {
    let goodput: Vec<f64> = pairs.values().map(|bytes| *bytes as f64).collect();
    if measured > Time::ZERO { jain(&goodput) } else { None }
}

/// The classes of calls on persistent connections.
pub(crate) fn calls(plan: &Plan) -> Vec<String> {
    let sources =
        plan.traffic.sources.iter().filter(|source| matches!(source.kind, SourceKind::Rpc { .. }));
    sources.map(|source| plan.traffic.classes[source.class as usize].clone()).collect()
}

/// A limit's place in the results, without what it did.
pub(crate) fn limit(plan: &Plan, index: u16, ingress: bool) -> Limit {
    let limit = &plan.limits[usize::from(index)];
    // A scope is on the hosts of those that name it.
    let names = plan.limits.iter().filter(|other| other.scopes.contains(&index));
    let hosts: BTreeSet<u32> = names.flat_map(|other| other.hosts.iter().copied()).collect();
    Limit {
        name: limit.name.clone(),
        direction: if ingress { "ingress" } else { "egress" }.to_string(),
        kind: limit.kind.kind().to_string(),
        limit_gbps: limit.rate().bps() as f64 / 1e9,
        hosts: hosts.len() as u32,
        ..Limit::default()
    }
}

/// Counts of each limit in each direction.
fn limits(plan: &Plan, outcome: &Outcome, measured: Time) -> Vec<Limit> {
    let mean = |sum: f64, n: u64| (n > 0).then(|| sum / n as f64);
    let limit = |((index, ingress), c): (&(u16, bool), &LimitCounts)| {
        let egress = u64::from(!ingress);
        let arriving = u64::from(*ingress);
        Limit {
            // Bits a picosecond are Tb/s.
            rate_gbps: (measured > Time::ZERO)
                .then(|| c.measured_bytes as f64 * 8e3 / measured.as_ps() as f64),
            packets: c.packets,
            bytes: c.bytes,
            decided: c.decided,
            marked: c.marked,
            marked_bytes: c.marked_bytes,
            reduced: c.reduced * egress,
            local_drops: c.dropped * egress,
            local_drop_bytes: c.dropped_bytes * egress,
            dropped: c.dropped * arriving,
            dropped_bytes: c.dropped_bytes * arriving,
            bypassed: c.bypassed,
            credit_mean_bytes: mean(c.credit_sum as f64, c.packets),
            rtt_mean_us: mean(c.rtt_sum as f64, c.rtts),
            wait_mean_us: mean(c.waited.as_us_f64(), c.timed),
            ..limit(plan, *index, *ingress)
        }
    };
    outcome.limits.iter().map(limit).collect()
}
