//! `summary.json`: the numbers of one run.
//!
//! Invariant: the fields come in a fixed order, every class and every drop reason is present even
//! at zero, a statistic of nothing is `null`, and only the object `run` may differ between two runs
//! of one scenario and seed.

use std::collections::BTreeMap;
use std::path::Path;

use millpond_core::counters::DropReason;
use serde::{Deserialize, Serialize};

use crate::model::checksum;
use crate::model::error::{At, Result};
use crate::model::goodput::GoodputOverTime;
use crate::model::ordered::Ordered;
use crate::model::program::Program;
use crate::model::record::FlowShare;
use crate::model::size_bin::SizeBin;
use crate::model::words::words;

/// Version of the results folder's form.
pub const SCHEMA: u32 = 1;

/// Every reason for which a packet may be dropped, in the order of reports.
pub const DROP_REASONS: [&str; DropReason::ALL.len()] = {
    let mut names = [""; DropReason::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = DropReason::ALL[i].name();
        i += 1;
    }
    names
};

words! {
    /// Where a run took place.
    #[derive(Default)]
    pub enum World {
        /// The simulator.
        #[default]
        Sim = "sim",
        /// The lab: a scenario's hosts as network namespaces with kernel TCP.
        Lab = "lab",
        /// A scenario's hosts as Linux kernels in virtual time.
        Virtual = "virtual",
    }
}

impl World {
    /// How a page names it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            World::Sim => "simulated",
            World::Lab => "the lab: kernel TCP",
            World::Virtual => "Linux kernels in virtual time",
        }
    }
}

words! {
    /// How a run ended.
    #[derive(Default)]
    pub enum Status {
        /// It came to its end.
        #[default]
        Complete = "complete",
        /// It ended since no open flow could end any more; a warning names the cause. The results
        /// are of what there was.
        Stalled = "stalled",
        /// It came to its end, but the machine was too slow for the network that it had to be; a
        /// warning names what was late. The results are not those of the scenario.
        Invalid = "invalid",
        /// It was stopped before; the results are of what there was.
        Interrupted = "interrupted",
        /// The audit failed, or something else that makes the results unusable.
        Failed = "failed",
    }
}

impl Status {
    /// Whether another run of the same scenario and seed would have the same results: the run came
    /// to its end, or stalled.
    pub fn is_final(self) -> bool {
        matches!(self, Status::Complete | Status::Stalled)
    }
}

/// The cost of the run. The one part of a summary that differs from run to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Seconds by the wall clock, from the network's making to the run's end.
    pub wall_s: f64,
    /// Seconds by the wall clock before that: reading the scenario and planning its network.
    pub setup_s: f64,
    /// Seconds of virtual time.
    pub simulated_s: f64,
    /// Events handled.
    pub events: u64,
    /// Packet-hops made.
    pub packet_hops: u64,
    /// Packet-hops a second of the wall clock.
    pub packet_hops_per_s: f64,
    /// Largest resident memory; `None` where the system does not report it. See
    /// [`peak_rss_bytes`](crate::peak_rss_bytes).
    pub peak_rss_bytes: Option<u64>,
    /// Threads used.
    pub threads: u32,
}

/// How many counted flows, and what they delivered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flows {
    /// Flows that count (those started after the warm-up).
    pub started: u64,
    /// Of these, completed.
    pub completed: u64,
    /// Flows that were to start when others are delivered, and never did; they are not among those
    /// started.
    pub not_started: u64,
    /// Application bytes delivered in the measured time.
    pub bytes_delivered: u64,
    /// The same over the measured time, in Gb/s; `null` if there was none.
    pub goodput_gbps: Option<f64>,
}

/// The percentiles of a statistic and its largest value; `null` of nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

impl Percentiles {
    /// Of the number at each place, from the median to the largest.
    pub(crate) fn of(at: impl FnMut(usize) -> Option<f64>) -> Percentiles {
        let [p50, p90, p95, p99, p999, max] = std::array::from_fn(at);
        Percentiles { p50, p90, p95, p99, p999, max }
    }

    /// From the median to the largest.
    #[cfg(test)]
    pub(crate) fn each(&self) -> [Option<f64>; 6] {
        [self.p50, self.p90, self.p95, self.p99, self.p999, self.max]
    }
}

/// Flow completion times of one class, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fct {
    /// Completed flows.
    pub count: u64,
    /// Flows that did not complete.
    pub unfinished: u64,
    /// The share that completed; `null` if none started.
    pub completed_fraction: Option<f64>,
    /// Mean of the completed ones.
    pub mean: Option<f64>,
    /// Mean where an unfinished flow counts as if it ended at the horizon.
    pub mean_restricted: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Percentiles where an open one counts with its age: those of all that started are not below.
    pub at_least: Percentiles,
    /// Percentiles where an open one never ends: those of all that started are not above; `null`
    /// where nothing bounds them.
    pub at_most: Percentiles,
    /// The Kaplan-Meier estimate of the percentiles of all that started; `null` where it does not
    /// come so far.
    pub kaplan_meier: Percentiles,
}

/// Slowdown of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowdown {
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Percentiles where an open one counts with its age: those of all that started are not below.
    pub at_least: Percentiles,
    /// Percentiles where an open one never ends: those of all that started are not above; `null`
    /// where nothing bounds them.
    pub at_most: Percentiles,
}

/// The traffics of one application together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Application {
    /// Flow completion times.
    pub fct_us: Fct,
    /// Slowdown.
    pub slowdown: Slowdown,
    /// Query completion times.
    pub qct_us: Qct,
}

/// Query completion times, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Qct {
    /// Counted queries.
    pub started: u64,
    /// Of these, completed.
    pub completed: u64,
    /// The ratio; `null` if none started.
    pub completed_fraction: Option<f64>,
    /// Mean of the completed ones.
    pub mean: Option<f64>,
    /// Mean where an unfinished query counts as if it ended at the horizon.
    pub mean_restricted: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Percentiles where an open one counts with its age: those of all that started are not below.
    pub at_least: Percentiles,
    /// Percentiles where an open one never ends: those of all that started are not above; `null`
    /// where nothing bounds them.
    pub at_most: Percentiles,
    /// The Kaplan-Meier estimate of the percentiles of all that started; `null` where it does not
    /// come so far.
    pub kaplan_meier: Percentiles,
}

/// Round-trip times of probes, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rtt {
    /// How many were measured.
    pub count: u64,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
}

/// Latencies of a class of calls on persistent connections, in microseconds. A percentile is `null`
/// where fewer than ten calls took longer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Calls answered.
    pub count: u64,
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// The contents of a port at its fullest sample, of several the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuePeak {
    /// The switch, or the host whose NIC it is.
    pub node: String,
    /// Its port.
    pub port: u16,
    /// The node at the other end of the port's link.
    pub peer: String,
    /// When, in microseconds of virtual time.
    pub at_us: f64,
    /// Bytes that waited.
    pub bytes: u64,
    /// Packets that waited.
    pub packets: u32,
    /// The same bytes by flow and direction, the most first.
    pub flows: Vec<FlowShare>,
}

/// Times in microseconds; `null` of nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// The rounds of one job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Collectives {
    /// The operation of the ranks.
    pub operation: String,
    /// How.
    pub algorithm: String,
    /// How many they are.
    pub ranks: u32,
    /// A rank's buffer.
    pub bytes: u64,
    /// Rounds that all ranks have ended.
    pub rounds: u64,
    /// Rounds that some ranks have ended, and others not.
    pub unfinished: u64,
    /// From the first rank's first message to the last rank's end.
    pub time_us: Times,
    /// The same from the first rank's computation.
    pub iteration_us: Times,
    /// An iteration less the longest computation of a rank.
    pub exposed_us: Times,
    /// From the first rank's end to the last rank's.
    pub skew_us: Times,
    /// A rank's buffer over the mean time, in GB/s; `null` where there is no buffer.
    pub algbw_gbytes: Option<f64>,
    /// The same times the operation's factor (nccl-tests).
    pub busbw_gbytes: Option<f64>,
    /// Mean of the time over that without contention.
    pub ratio: Option<f64>,
}

/// The actions of a limit in one direction, over all of its hosts and the whole run, warm-up
/// included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Its name.
    pub name: String,
    /// `egress` or `ingress`.
    pub direction: String,
    /// Its kind.
    pub kind: String,
    /// The rate that each of its hosts is held to, in Gb/s.
    pub limit_gbps: f64,
    /// Hosts that have it.
    pub hosts: u32,
    /// The rate that passed in the measured time, as it was charged, in Gb/s over all hosts; `null`
    /// if there was none.
    pub rate_gbps: Option<f64>,
    /// Segments (arriving: packets) that were charged to it.
    pub packets: u64,
    /// Bytes that they were charged.
    pub bytes: u64,
    /// Decisions that were its own.
    pub decided: u64,
    /// Given CE.
    pub marked: u64,
    /// Bytes of them.
    pub marked_bytes: u64,
    /// Senders asked to reduce their window.
    pub reduced: u64,
    /// Refused before they were sent: no loss, the sender keeps them. (Acknowledgements are gone.)
    pub local_drops: u64,
    /// Bytes of them.
    pub local_drop_bytes: u64,
    /// Dropped on arrival: losses, which `packets.dropped_by.limit` counts as well.
    pub dropped: u64,
    /// Bytes of them.
    pub dropped_bytes: u64,
    /// Let through beyond the drop threshold.
    pub bypassed: u64,
    /// Mean credit in bytes, after each decision; negative: behind.
    pub credit_mean_bytes: Option<f64>,
    /// Mean smoothed round-trip time of the flows at its decisions, in microseconds.
    pub rtt_mean_us: Option<f64>,
    /// Mean time that segments waited for their departure (htb, edt), in microseconds.
    pub wait_mean_us: Option<f64>,
}

/// The outcome of the packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Packets {
    /// Put on the wire by hosts, data and ACK.
    pub sent: u64,
    /// Taken off the wire by hosts.
    pub delivered: u64,
    /// The sum of `dropped_by`.
    pub dropped: u64,
    /// Drops by reason: all of [`DROP_REASONS`].
    pub dropped_by: Ordered<u64>,
    /// Drops by kind of packet, by the world's names. Empty where it does not count them.
    pub dropped_kinds: Ordered<u64>,
    /// Marked "congestion experienced".
    pub ecn_marked: u64,
    /// Sent to another port than the path's.
    pub deflected: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Data packets that arrived before an earlier one, which was late or lost.
    pub out_of_order: u64,
}

/// A number of packets and of bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The conservation of packets and bytes over the whole run, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Whether everything injected was delivered, dropped for a reason, or is in flight.
    pub conserved: bool,
    /// Put into the network.
    pub injected: Amount,
    /// Taken out of it.
    pub delivered: Amount,
    /// Dropped, for whatever reason.
    pub dropped: Amount,
    /// Still in it at the end.
    pub in_flight: Amount,
    /// Bytes that switches have cut off packets.
    #[serde(default, skip_serializing_if = "is_none_trimmed")]
    pub trimmed_bytes: u64,
}

fn is_none_trimmed(bytes: &u64) -> bool {
    *bytes == 0
}

impl Audit {
    /// Adds up the amounts. A world that checks more (buffers) clears `conserved` itself.
    pub fn of(injected: Amount, delivered: Amount, dropped: Amount, in_flight: Amount) -> Audit {
        Audit { injected, delivered, dropped, in_flight, ..Audit::default() }.with_trimmed(0)
    }

    /// The same where switches have cut so many bytes off packets.
    pub fn with_trimmed(mut self, bytes: u64) -> Audit {
        self.trimmed_bytes = bytes;
        let all = [&self.delivered, &self.dropped, &self.in_flight];
        let sum =
            |part: fn(&Amount) -> u64| all.iter().map(|it| u128::from(part(it))).sum::<u128>();
        self.conserved = sum(|a| a.packets) == u128::from(self.injected.packets)
            && sum(|a| a.bytes) + u128::from(bytes) == u128::from(self.injected.bytes);
        self
    }
}

/// Of the flows of a class that have measured a round-trip time: what their estimators held at
/// their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timers {
    /// Such flows.
    pub count: u64,
    /// Smoothed round-trip time.
    pub srtt: Spread,
    /// Retransmission timeout.
    pub rto: Spread,
}

/// Percentiles, in microseconds; `null` of nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

/// The content of `summary.json`: the statistics of one run. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The scenario's name.
    pub name: String,
    /// Where it ran.
    pub world: World,
    /// The seed.
    pub seed: u64,
    /// The variant, if the scenario has any.
    pub variant: Option<String>,
    /// How it ended.
    pub status: Status,
    /// Whether the run was to end with its flows (`until = "flows-complete"`); absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_complete: bool,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The cost of the run.
    pub run: RunInfo,
    /// Counted flows.
    pub flows: Flows,
    /// By class: `all`, `mice`, `elephants`, then the header's.
    pub fct_us: Ordered<Fct>,
    /// By class, as above.
    pub slowdown: Ordered<Slowdown>,
    /// Slowdown of all flows by their size, from the smallest up; see
    /// [`SizeBins`](crate::SizeBins).
    pub slowdown_by_size: Ordered<SizeBin>,
    /// The same in bins whose edges all runs share: 1, 2 and 5 times a power of ten bytes. Absent
    /// where the scenario gives the edges.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub slowdown_by_fixed_size: Ordered<SizeBin>,
    /// Queries.
    pub qct_us: Qct,
    /// Queries by the traffic that makes them; absent where there are none.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub qct_by_class_us: Ordered<Qct>,
    /// The traffics of each application together; absent where there are no applications.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub applications: Ordered<Application>,
    /// The numbers that the scenario's `shows` names; absent if it names none.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub shows: Ordered<Option<f64>>,
    /// Probes.
    pub rtt_us: Rtt,
    /// Calls on persistent connections, by class; absent where there are none.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub latency_us: Ordered<Latency>,
    /// Rounds of jobs, by class; absent where there are none.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub collectives: Ordered<Collectives>,
    /// The timers that flows ended with, by class; absent unless asked for.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub timers_us: Ordered<Timers>,
    /// Goodput over time; absent unless asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_over_time: Option<GoodputOverTime>,
    /// The contents of ports at their fullest samples; absent unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue_peaks: Vec<QueuePeak>,
    /// Packets.
    pub packets: Packets,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// PAUSE frames of switches.
    pub pause_frames: u64,
    /// Pauses of the overlay.
    pub overlay_pauses: u64,
    /// Jain's index; `null` if no pair was active.
    pub fairness_jain: Option<f64>,
    /// The counters of each mechanism.
    pub mechanisms: BTreeMap<String, BTreeMap<String, u64>>,
    /// Limits, by limit and direction; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// Programs that ran on hosts of the lab; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// Conservation.
    pub audit: Audit,
}

impl Summary {
    /// Reads `DIR/summary.json`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read,
    /// [`Error::Malformed`](crate::Error::Malformed) if it is no summary.
    pub fn read(dir: &Path) -> Result<Summary> {
        let path = dir.join("summary.json");
        serde_json::from_slice(&std::fs::read(&path).at("read", &path)?).at("read", &path)
    }

    /// A checksum of what happened, in 16 hexadecimal digits: packets, drops, timeouts, pauses, and
    /// the completion times of flows and queries. It changes with a result, and not with the form
    /// of this file.
    pub fn digest(&self) -> String {
        let Summary { flows, qct_us: qct, packets, audit, .. } = self;
        let amount = |of: &Amount| [of.packets, of.bytes];
        let counts = [
            flows.started,
            flows.completed,
            flows.bytes_delivered,
            qct.started,
            qct.completed,
            packets.dropped,
            packets.ecn_marked,
            packets.deflected,
            packets.retransmitted,
            packets.out_of_order,
            self.timeouts,
            self.pause_frames,
            self.overlay_pauses,
        ];
        let amounts = [&audit.injected, &audit.delivered, &audit.dropped, &audit.in_flight];
        let fct = self.fct_us.get("all").cloned().unwrap_or_default();
        let times = [
            [fct.mean, fct.p50, fct.p90, fct.p99, fct.max],
            [qct.mean, qct.p50, qct.p90, qct.p99, qct.max],
        ];
        let mut bytes = self.status.name().as_bytes().to_vec();
        let counts = counts.into_iter().chain(amounts.into_iter().flat_map(amount));
        let times = times.into_iter().flatten().map(|time| time.map_or(u64::MAX, f64::to_bits));
        bytes.extend(counts.chain(times).flat_map(u64::to_le_bytes));
        checksum::of_bytes(&bytes)
    }

    /// As in the file: indented JSON with a newline at its end.
    pub fn to_json(&self) -> String {
        crate::model::files::json_text(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::totals::Totals;

    /// Equal objects have equal keys in the same order, and values are found by key.
    #[test]
    fn objects_keep_their_order() {
        let of = |pairs: &[(&str, u32)]| {
            pairs.iter().map(|(k, v)| (k.to_string(), *v)).collect::<Ordered<u32>>()
        };
        let object = of(&[("b", 1), ("a", 2)]);
        assert_eq!(object.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["b", "a"]);
        assert!(
            object.get("a") == Some(&2)
                && object != of(&[("a", 2), ("b", 1)])
                && object == object.clone()
        );
        assert_eq!(serde_json::to_string(&object).unwrap(), r#"{"b":1,"a":2}"#);
    }

    #[test]
    fn every_reason_is_present_and_summed() {
        let dropped_by = BTreeMap::from([("ttl", 2), ("queue-full", 5), ("zebra", 1)]);
        let packets = Packets::of(&Totals { dropped_by, ..Totals::default() });
        assert_eq!(packets.dropped, 8);
        assert_eq!(packets.dropped_by.0.len(), DROP_REASONS.len() + 1);
        assert_eq!(packets.dropped_by.get("ttl"), Some(&2));
        assert_eq!(packets.dropped_by.get("color"), Some(&0));
        assert_eq!(packets.dropped_by.iter().next().map(|(name, _)| name), Some("queue-full"));
    }

    #[test]
    fn json_has_the_contracts_fields_in_order_and_reads_back() {
        let mut summary = Summary { schema: SCHEMA, world: World::Virtual, ..Summary::default() };
        summary.fct_us.0.insert("all".into(), Fct { mean: Some(0.1 + 0.2), ..Fct::default() });
        summary.fct_us.0.insert("Ärger \"x\"".into(), Fct::default());
        let text = summary.to_json();
        let fields = [
            "schema",
            "name",
            "world",
            "seed",
            "variant",
            "status",
            "warnings",
            "run",
            "flows",
            "fct_us",
            "slowdown",
            "slowdown_by_size",
            "qct_us",
            "rtt_us",
            "packets",
            "timeouts",
            "pause_frames",
            "overlay_pauses",
            "fairness_jain",
            "mechanisms",
            "audit",
        ];
        let places: Vec<_> =
            fields.iter().map(|f| text.find(&format!("\n  \"{f}\":")).unwrap()).collect();
        assert!(places.is_sorted());
        assert!(text.contains("\"virtual\""));
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    }

    #[test]
    fn a_percentile_of_calls_needs_ten_that_exceed_it() {
        let some = Some(1.0);
        let fct = |count| Fct {
            count,
            p50: some,
            p90: some,
            p95: some,
            p99: some,
            p999: some,
            ..Fct::default()
        };
        let known = |count| {
            let latency = Latency::of(&fct(count));
            [latency.p50, latency.p90, latency.p95, latency.p99, latency.p999]
                .iter()
                .flatten()
                .count()
        };
        assert_eq!([known(19), known(20), known(99), known(100)], [0, 1, 1, 2]);
        assert_eq!([known(199), known(200), known(999), known(1000)], [2, 3, 3, 4]);
        assert_eq!([known(9_999), known(10_000)], [4, 5]);
    }

    #[test]
    fn the_audit_adds_up() {
        let amount = |packets, bytes| Amount { packets, bytes };
        assert!(Audit::of(amount(10, 100), amount(7, 70), amount(2, 20), amount(1, 10)).conserved);
        assert!(!Audit::of(amount(10, 100), amount(7, 70), amount(2, 20), amount(1, 9)).conserved);
        assert!(!Audit::of(amount(10, 100), amount(7, 70), amount(2, 30), amount(0, 0)).conserved);
        let short = Audit::of(amount(10, 100), amount(7, 50), amount(2, 20), amount(1, 10));
        assert!(!short.conserved && short.with_trimmed(20).conserved);
    }
}
