//! The counts of a run in a world, and what of them goes into the summary as it is.

use std::collections::BTreeMap;

use millpond_core::Time;

use super::goodput::GoodputOverTime;
use super::ordered::Ordered;
use super::program::Program;
use super::summary::{
    Audit, DROP_REASONS, Fct, Latency, Limit, Packets, QueuePeak, RunInfo, Status,
};

/// The totals that a world hands over at the end of a run, besides the records.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// How it ended. A broken audit makes it [`Status::Failed`] whatever is here.
    pub status: Status,
    /// Whether the run was to end with its flows.
    pub until_complete: bool,
    /// Where time ended: the horizon, or the instant at which the run stopped. Unfinished flows end
    /// here in `mean_restricted`.
    pub horizon: Time,
    /// The span in which `bytes_delivered` was counted: the horizon without the warm-up.
    pub measured: Time,
    /// Application bytes delivered in that span.
    pub bytes_delivered: u64,
    pub run: RunInfo,
    /// Goodput over time, if it was sampled.
    pub goodput_over_time: Option<GoodputOverTime>,
    /// The contents of ports at their fullest samples, if they were asked for.
    pub queue_peaks: Vec<QueuePeak>,
    /// Flows that never started because of those that they wait for.
    pub not_started: u64,
    /// Packets put on the wire by hosts.
    pub sent: u64,
    /// Packets taken off the wire by hosts.
    pub delivered: u64,
    /// Drops by reason. Absent reasons are zero; a reason that is none of [`DROP_REASONS`] is
    /// appended.
    pub dropped_by: BTreeMap<&'static str, u64>,
    /// Drops by kind of packet, in the order of reports.
    pub dropped_kinds: Vec<(&'static str, u64)>,
    /// Packets marked.
    pub ecn_marked: u64,
    /// Packets deflected.
    pub deflected: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Data packets that arrived before an earlier one, which was late or lost.
    pub out_of_order: u64,
    pub timeouts: u64,
    pub pause_frames: u64,
    pub overlay_pauses: u64,
    /// Jain's index over the goodput of pairs; see [`jain`](crate::jain).
    pub fairness_jain: Option<f64>,
    /// The counters of each mechanism, by name.
    pub mechanisms: BTreeMap<String, BTreeMap<String, u64>>,
    /// Classes whose flows are calls on persistent connections.
    pub calls: Vec<String>,
    /// The actions of limits, by limit and direction.
    pub limits: Vec<Limit>,
    pub programs: Vec<Program>,
    /// Files beside the scenario that decide the result, such as a kernel, each with its XXH64.
    pub inputs: Vec<(String, String)>,
    pub warnings: Vec<String>,
    pub audit: Audit,
}

impl Packets {
    /// From what the world counted, with every reason present.
    pub(crate) fn of(totals: &Totals) -> Packets {
        let count = |reason: &str| totals.dropped_by.get(reason).copied().unwrap_or(0);
        let known = DROP_REASONS.iter().map(|&reason| (reason.to_string(), count(reason)));
        let others = totals.dropped_by.iter().filter(|(reason, _)| !DROP_REASONS.contains(reason));
        let dropped_by: Vec<_> =
            known.chain(others.map(|(reason, &n)| (reason.to_string(), n))).collect();
        Packets {
            sent: totals.sent,
            delivered: totals.delivered,
            dropped: dropped_by.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n)),
            dropped_by: Ordered::from(dropped_by),
            dropped_kinds: totals
                .dropped_kinds
                .iter()
                .map(|&(kind, n)| (kind.to_string(), n))
                .collect(),
            ecn_marked: totals.ecn_marked,
            deflected: totals.deflected,
            retransmitted: totals.retransmitted,
            out_of_order: totals.out_of_order,
        }
    }
}

/// The largest resident memory of this process so far, where the system reports it (Linux's
/// `VmHWM`).
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

impl Latency {
    /// Of calls with these completion times.
    pub(crate) fn of(fct: &Fct) -> Latency {
        // A percentile that fewer than ten calls exceed is an anecdote.
        let known = |value: Option<f64>, one_in: u64| value.filter(|_| fct.count >= 10 * one_in);
        Latency {
            count: fct.count,
            mean: fct.mean,
            p50: known(fct.p50, 2),
            p90: known(fct.p90, 10),
            p95: known(fct.p95, 20),
            p99: known(fct.p99, 100),
            p999: known(fct.p999, 1000),
            max: fct.max,
        }
    }
}
