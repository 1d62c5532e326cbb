//! One plan, run into one folder: what `run` does once and `compare` many times.

use crate::revision;
use crate::watch::Watch;
use indicatif::ProgressBar;
use millpond_core::counters::DropReason;
use millpond_core::edge::gro::{Cause, Counters};
use millpond_core::registry::Choice;
use millpond_core::{HostId, Time};
use millpond_results::{
    Amount, Audit, Captures, Error, Folder, GoodputOverTime, Header, Limit, LinkFailure, Manifest, RunInfo, RunWriter,
    Status, Summary, Totals, World, jain, peak_rss_bytes,
};
use millpond_scenario::plan::{FailurePlan, Plan};
use millpond_scenario::topology::End;
use millpond_scenario::traffic::SourceKind;
use millpond_sim::Outcome;
use millpond_sim::audit::Tally;
use millpond_sim::hosts::{CoreCounts, MarkingCounters};
use millpond_sim::limiter::LimitCounts;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Runs a plan and writes its results into `dir`, which is `folder` or a folder within it.
pub fn execute(
    plan: &Plan,
    threads: usize,
    dir: &Path,
    folder: Option<&Folder>,
    bar: Option<&ProgressBar>,
    overrides: &[(String, String)],
) -> Result<Summary, Error> {
    execute_into(plan, threads, |header| RunWriter::new(dir, header), folder, bar, overrides)
}

/// The same with a writer that the caller opens.
pub fn execute_into(
    plan: &Plan,
    threads: usize,
    open: impl FnOnce(Header) -> Result<RunWriter, Error>,
    folder: Option<&Folder>,
    bar: Option<&ProgressBar>,
    overrides: &[(String, String)],
) -> Result<Summary, Error> {
    let header = Header {
        name: plan.name.clone(),
        seed: plan.seed,
        variant: plan.variant.clone(),
        world: World::Sim,
        classes: plan.traffic.classes.clone(),
        mice: plan.mice,
        elephants: plan.elephants,
    };
    let manifest = Manifest {
        base: plan.base.clone(),
        overrides: overrides.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        failures: link_failures(plan),
        ..revision::manifest(plan.resolved.clone())
    };
    let mut writer = open(header)?;
    writer.capture(&Captures {
        queues: plan.capture.queues.is_some(),
        connections: plan.capture.connections.as_ref().map(|_| millpond_sim::quantities(plan)),
        nodes: plan.topology.switches.iter().map(|s| s.name.clone()).collect(),
        taps: plan.capture.taps.iter().map(|tap| tap.name.clone()).collect(),
        snaplen: plan.capture.snaplen,
        tcp_timestamps: plan.capture.tcp_timestamps,
        timers: plan.capture.timers,
        trace: plan.capture.trace,
    })?;
    let mut watch = Watch::new(writer, folder, bar, plan.horizon.as_s_f64());
    let outcome = millpond_sim::run(plan, threads, &mut watch)?;
    let (writer, wall) = watch.end();
    writer.finish(totals(plan, &outcome, wall, threads), manifest)
}

/// The links that fail, by their ends' names; parallel links that fail together are one.
pub fn link_failures(plan: &Plan) -> Vec<LinkFailure> {
    let name = |end: End| match end {
        End::Host(host) => format!("host{host}"),
        End::Switch { switch, .. } => plan.topology.switches[switch as usize].name.clone(),
    };
    let of = |failure: &FailurePlan| {
        let link = &plan.topology.links[failure.link as usize];
        LinkFailure {
            link: (name(link.a), name(link.b)),
            at_us: failure.at.as_us_f64(),
            until_us: (failure.until != Time::MAX).then(|| failure.until.as_us_f64()),
            loss: failure.loss,
        }
    };
    let mut failures: Vec<LinkFailure> = plan.failures.iter().map(of).collect();
    failures.dedup();
    failures
}

fn totals(plan: &Plan, outcome: &Outcome, wall: Duration, threads: usize) -> Totals {
    let audit = &outcome.audit;
    let amount = |tally: Tally| Amount { packets: tally.packets, bytes: tally.bytes };
    let mut conserved = Audit::of(
        amount(audit.injected),
        amount(audit.delivered),
        amount(audit.dropped_total()),
        amount(audit.in_flight),
    );
    conserved.conserved &= audit.is_conserved();
    let measured = outcome.simulated.saturating_sub(plan.warm_up);
    let goodput: Vec<f64> = outcome.pairs.values().map(|bytes| *bytes as f64).collect();
    let wall_s = wall.as_secs_f64();
    Totals {
        status: if outcome.interrupted { Status::Interrupted } else { Status::Complete },
        horizon: outcome.simulated,
        measured,
        bytes_delivered: outcome.hosts.measured_bytes,
        goodput_over_time: plan
            .capture
            .goodput
            .and_then(|period| GoodputOverTime::of(period, &plan.traffic.classes, &outcome.delivered)),
        run: RunInfo {
            wall_s,
            simulated_s: outcome.simulated.as_s_f64(),
            events: audit.events,
            packet_hops: audit.hops,
            packet_hops_per_s: if wall_s > 0.0 { audit.hops as f64 / wall_s } else { 0.0 },
            peak_rss_bytes: peak_rss_bytes(),
            threads: threads as u32,
        },
        sent: audit.injected.packets,
        delivered: audit.delivered.packets,
        dropped_by: DropReason::ALL.iter().map(|r| (r.name(), audit.dropped[*r as usize].packets)).collect(),
        ecn_marked: outcome.marked,
        deflected: outcome.deflected,
        retransmitted: outcome.hosts.retransmitted,
        out_of_order: outcome.hosts.out_of_order,
        timeouts: outcome.hosts.timeouts,
        pause_frames: outcome.pauses.frames,
        mechanisms: mechanisms(plan, outcome),
        fairness_jain: if measured > Time::ZERO { jain(&goodput) } else { None },
        calls: calls(plan),
        limits: limits(plan, outcome, measured),
        warnings: plan.warnings.iter().cloned().chain(unsampled(plan, outcome)).collect(),
        audit: conserved,
        ..Totals::default()
    }
}

/// What to say of connections that were to be sampled and were not open at any sample.
fn unsampled(plan: &Plan, outcome: &Outcome) -> Option<String> {
    let capture = plan.capture.connections.as_ref()?;
    let missing = |flow: &&u32| !outcome.sampled.contains(flow);
    let every = capture.every;
    match &capture.flows {
        Some(flows) => {
            let missing: Vec<String> = flows.iter().filter(missing).map(u32::to_string).collect();
            let of = missing.join(", ");
            (!missing.is_empty())
                .then(|| format!("capture.connections: not open at any sample, every {every}: flow {of}"))
        }
        None if outcome.sampled.is_empty() => {
            Some(format!("capture.connections: no connection that it means was open at any sample, every {every}"))
        }
        None => None,
    }
}

/// What the mechanisms that the plan has chosen have counted, beside what every run counts.
fn mechanisms(plan: &Plan, outcome: &Outcome) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    if plan.transport_choices.importance.kind() != "none" {
        all.insert(plan.transport_choices.importance.kind().to_string(), marking(&outcome.hosts.marking));
    }
    if plan.switch.pause.kind() != "none" {
        all.insert(plan.switch.pause.kind().to_string(), pauses(outcome));
    }
    if let Some(offload) = outcome.offload.as_ref().filter(|_| plan.host.choices.receive_offload.kind() != "none") {
        all.insert(plan.host.choices.receive_offload.kind().to_string(), merging(offload));
    }
    if let Some(it) = outcome.scheduled {
        let counters = [("rounds", it.rounds), ("large", it.large), ("placed", it.placed), ("crowded", it.crowded)];
        all.insert(plan.edge.load_balancing.kind().to_string(), named(counters));
    }
    if plan.host.receive_cpu.is_some() {
        all.insert("receive-cpu".to_string(), cores(&outcome.cores, outcome.simulated.saturating_sub(plan.warm_up)));
    }
    all
}

fn named<const N: usize>(counters: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counters.map(|(name, count)| (name.to_string(), count)).into()
}

/// Frames and episodes.
fn pauses(outcome: &Outcome) -> BTreeMap<String, u64> {
    let p = &outcome.pauses;
    named([
        ("episodes", p.episodes),
        ("arrivals_while_congested", p.arrivals),
        ("resume_frames", p.resumes),
        ("paused_us", outcome.paused.as_us_f64().round() as u64),
    ])
}

/// Packets by importance; bytes are payload.
fn marking(counters: &MarkingCounters) -> BTreeMap<String, u64> {
    let [unimportant, important, forced] = counters.sent;
    let [echoes, forced_echoes] = counters.echoes;
    named([
        ("unimportant_packets", unimportant.packets),
        ("unimportant_bytes", unimportant.bytes),
        ("important_packets", important.packets),
        ("important_bytes", important.bytes),
        ("forced_packets", forced.packets),
        ("forced_bytes", forced.bytes),
        ("echoes", echoes),
        ("forced_echoes", forced_echoes),
        ("masked_losses", counters.masked),
    ])
}

/// Segments by why they were released, and what held them.
fn merging(offload: &Counters) -> BTreeMap<String, u64> {
    let by_cause = Cause::ALL.iter().map(|cause| (format!("segments-{}", cause.name()), offload.of(*cause)));
    let mut counters: BTreeMap<String, u64> = by_cause.filter(|(_, count)| *count > 0).collect();
    let us = |time: Time| time.as_us_f64() as u64;
    counters.extend(named([
        ("packets", offload.packets),
        ("bytes", offload.bytes),
        ("held", offload.held),
        ("filled", offload.filled),
        ("filled-wait-mean-us", us(offload.filled_wait.0) / offload.filled.max(1)),
        ("filled-wait-max-us", us(offload.filled_wait.1)),
        ("doubled", offload.doubled),
        ("held-bytes-max", offload.held_bytes_max),
        ("segment-median-kib", offload.by_kib.median_kib().unwrap_or(0)),
    ]));
    counters
}

/// What receiving cost in the measured time. Shares of a core are in parts per million: of hosts that received payload,
/// and the largest of the others, which received acknowledgements at most.
fn cores(cores: &[(HostId, CoreCounts)], measured: Time) -> BTreeMap<String, u64> {
    let share = |core: &CoreCounts| core.busy.as_ps() as u128 * 1_000_000 / measured.as_ps().max(1) as u128;
    let (receiving, others): (Vec<_>, Vec<_>) = cores.iter().map(|(_, core)| *core).partition(|core| core.bytes > 0);
    let shares = || receiving.iter().map(share);
    let sum = |count: fn(&CoreCounts) -> u64| receiving.iter().map(count).sum::<u64>();
    let (polls, packets) = (sum(|core| core.polls), sum(|core| core.packets));
    let drops: u64 = cores.iter().map(|(_, core)| core.ring_drops).sum();
    named([
        ("receiving-hosts", receiving.len() as u64),
        ("busy-ppm-mean", (shares().sum::<u128>() / receiving.len().max(1) as u128) as u64),
        ("busy-ppm-min", shares().min().unwrap_or(0) as u64),
        ("busy-ppm-max", shares().max().unwrap_or(0) as u64),
        ("busy-ppm-max-without-payload", others.iter().map(share).max().unwrap_or(0) as u64),
        ("polls", polls),
        ("packets", packets),
        ("batch-mean-packets", (packets + polls / 2) / polls.max(1)),
        ("segments", sum(|core| core.segments)),
        ("segments-out-of-order", sum(|core| core.out_of_order)),
        ("ring-drops", drops),
    ])
}

/// The classes of calls on persistent connections.
fn calls(plan: &Plan) -> Vec<String> {
    let sources = plan.traffic.sources.iter().filter(|source| matches!(source.kind, SourceKind::Rpc { .. }));
    sources.map(|source| plan.traffic.classes[source.class as usize].clone()).collect()
}

/// What each limit did in each direction.
fn limits(plan: &Plan, outcome: &Outcome, measured: Time) -> Vec<Limit> {
    let mean = |sum: f64, n: u64| (n > 0).then(|| sum / n as f64);
    let limit = |((index, ingress), c): (&(u16, bool), &LimitCounts)| {
        let limit = &plan.limits[*index as usize];
        let egress = u64::from(!ingress);
        let arriving = u64::from(*ingress);
        // A scope is on the hosts of those that name it.
        let names = plan.limits.iter().filter(|other| other.scopes.contains(index));
        let hosts: BTreeSet<u32> = names.flat_map(|other| other.hosts.iter().copied()).collect();
        Limit {
            name: limit.name.clone(),
            direction: if *ingress { "ingress" } else { "egress" }.to_string(),
            kind: limit.kind.kind().to_string(),
            limit_gbps: limit.rate().bps() as f64 / 1e9,
            hosts: hosts.len() as u32,
            // Bits a picosecond are Tb/s.
            rate_gbps: (measured > Time::ZERO).then(|| c.measured_bytes as f64 * 8e3 / measured.as_ps() as f64),
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
        }
    };
    outcome.limits.iter().map(limit).collect()
}
