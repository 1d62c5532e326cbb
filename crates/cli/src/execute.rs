//! One plan, run into one folder: what `run` does once and `compare` many times.

use crate::watch::Watch;
use indicatif::ProgressBar;
use millpond_core::Time;
use millpond_core::counters::DropReason;
use millpond_results::{
    Amount, Audit, Captures, Error, Folder, Header, Manifest, RunInfo, RunWriter, Status, Summary, Totals, World, jain,
    peak_rss_bytes,
};
use millpond_scenario::plan::Plan;
use millpond_sim::Outcome;
use millpond_sim::audit::Tally;
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
        overrides: overrides.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        ..Manifest::new(env!("CARGO_PKG_VERSION"), plan.resolved.clone())
    };
    let mut writer = open(header)?;
    writer.capture(&Captures {
        queues: plan.capture.queues.is_some(),
        nodes: plan.topology.switches.iter().map(|s| s.name.clone()).collect(),
        taps: plan.capture.taps.iter().map(|tap| tap.name.clone()).collect(),
        snaplen: plan.capture.snaplen,
        tcp_timestamps: plan.capture.tcp_timestamps,
        trace: plan.capture.trace,
    })?;
    let mut watch = Watch::new(writer, folder, bar, plan.horizon.as_s_f64());
    let outcome = millpond_sim::run(plan, threads, &mut watch)?;
    let (writer, wall) = watch.end();
    writer.finish(totals(plan, &outcome, wall, threads), manifest)
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
        fairness_jain: if measured > Time::ZERO { jain(&goodput) } else { None },
        warnings: plan.warnings.clone(),
        audit: conserved,
        ..Totals::default()
    }
}
