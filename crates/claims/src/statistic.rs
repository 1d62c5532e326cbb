//! The numbers of a run that claims are of.
//!
//! Invariant: a number is a pure function of a run's summary, and absent where the run has none.

use millpond_results::{Collectives, Ordered, Packets, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Run {
    pub seed: u64,
    /// Its numbers. Resamples of seeds share them.
    pub summary: Arc<Summary>,
    /// QCT of its completed queries in microseconds, where they were kept.
    pub queries: Option<Vec<f64>>,
    /// Times to the last acknowledgement by class, sorted, where flows were kept.
    pub acknowledged: Option<Arc<Ordered<Vec<f64>>>>,
    /// The numbers of a run of the ledger, which has no other.
    pub numbers: Option<Arc<Numbers>>,
}

impl Run {
    /// The same run without its queries, sharing all else.
    pub fn shared(&self) -> Run {
        let (summary, acknowledged) = (Arc::clone(&self.summary), self.acknowledged.clone());
        let numbers = self.numbers.clone();
        Run { seed: self.seed, summary, queries: None, acknowledged, numbers }
    }
}

/// A statistic of a run, with what decides how far it is to be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Number(
    /// Its value.
    pub Option<f64>,
    /// The samples beyond it, of a percentile.
    pub Option<f64>,
    /// The flows or queries that completed, and those that started; lines leave it out if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub Option<[u64; 2]>,
);

/// The numbers of a run, by statistic.
pub type Numbers = BTreeMap<Statistic, Number>;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Mean QCT of the completed queries.
    #[default]
    Mean,
    /// Its 99th percentile.
    P99,
    Completed,
    /// Dropped packets.
    Dropped,
    /// Packets dropped for another reason than this.
    DroppedBut(String),
    /// Packets dropped for one of these reasons.
    DroppedFor(Vec<String>),
    /// Of the packets that hosts sent, the share that was dropped, in percent.
    Lost,
    /// Data packets sent again, of the whole run.
    Retransmitted,
    /// Application bytes delivered, in Gb/s.
    Goodput,
    /// Of a class's goodput from sample to sample, this.
    Samples(String, OfSamples),
    /// Mean smoothed round-trip time that the first limit saw.
    RoundTrip,
    /// Of the calls of a class, this.
    Calls(String, Of),
    /// Of the flows of a class, this of their completion times.
    Flows(String, Of),
    /// Times of a class of flows from the first byte sent to the last byte acknowledged, in
    /// microseconds. The run keeps its flows.
    Acknowledged(String, Of),
    /// Of the flows of a class, this of their slowdowns.
    Slowdown(String, Of),
    /// Of the flows of a bin of sizes, this of their slowdowns.
    SlowdownOfSizes(String, Of),
    /// Of the rounds of a collective's class, this of their times. There is no 95th and no 99.9th
    /// percentile.
    Rounds(String, Of),
    /// Mean bus bandwidth of a collective's class (nccl-tests), in Gb/s.
    BusBandwidth(String),
    /// Mean of the times of a collective's rounds over those without contention.
    OverClosedForm(String),
    Timeouts,
    /// All of them, by a thousand completed flows of a class.
    TimeoutsPerThousand(String),
    Pauses,
    /// Median of the probes' round-trip times.
    ProbeP50,
    /// 99.9th percentile of the probes' round-trip times.
    ProbeP999,
    /// Jain's index of the pairs' goodput.
    Fairness,
    /// Segments that the transport saw before an earlier one.
    Disorder,
    /// A counter of a mechanism: its name, the counter's.
    Counter(String, String),
    /// Mean load of the receiving hosts' cores, in percent of a core.
    Busy,
    /// 95th percentile of the round-trip times that the flows of a class ended with.
    RttP95(String),
    /// The same of their retransmission timeouts.
    RtoP95(String),
    /// Share of the data that TLT sent as important or forced, in percent of the payload.
    Important,
}

/// A number of the calls or the flows of a class; not all have each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    Count,
    Mean,
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
}

/// A number of a class's goodput over time, in Gb/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfSamples {
    Mean,
    P50,
    /// From the 10th percentile to the 90th.
    Spread,
    /// The largest difference of two samples that are so many microseconds apart at most.
    Swing(u32),
}

impl OfSamples {
    /// Of the samples in their order, one each so many microseconds.
    fn of(self, samples: &[f64], period_us: f64) -> Option<f64> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |percent: usize| sorted[(last * percent + 50) / 100];
        match self {
            OfSamples::Mean => Some(samples.iter().sum::<f64>() / samples.len() as f64),
            OfSamples::P50 => Some(at(50)),
            OfSamples::Spread => Some(at(90) - at(10)),
            OfSamples::Swing(us) => {
                let apart = (f64::from(us) / period_us) as usize;
                let swings = samples.windows(apart + 1).map(|near| {
                    let most = near.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    most - near.iter().copied().fold(f64::INFINITY, f64::min)
                });
                swings.max_by(f64::total_cmp)
            }
        }
    }
}

impl Of {
    /// The share of samples that are beyond it; `None` for what is no percentile.
    fn beyond(self) -> Option<f64> {
        [None, None, Some(0.5), Some(0.05), Some(0.01), Some(0.001)][self as usize]
    }

    /// Its name in a summary; `None` for a count.
    fn key(self) -> Option<&'static str> {
        [None, Some("mean"), Some("p50"), Some("p95"), Some("p99"), Some("p999")][self as usize]
    }

    /// Of the numbers of a class: a count, a mean, and percentiles from the median up.
    fn pick(self, n: Option<u64>, mean: Option<f64>, percentiles: [Option<f64>; 4]) -> Option<f64> {
        let [p50, p95, p99, p999] = percentiles;
        [n.map(|n| n as f64), mean, p50, p95, p99, p999][self as usize]
    }

    /// Of sorted values, interpolated between ranks as in all results.
    fn of_sorted(self, values: &[f64]) -> Option<f64> {
        let last = values.len().checked_sub(1)?;
        let Some(beyond) = self.beyond() else {
            let n = values.len() as f64;
            return Some(if self == Of::Count { n } else { values.iter().sum::<f64>() / n });
        };
        let rank = (1.0 - beyond) * last as f64;
        let low = rank as usize;
        let next = values[(low + 1).min(last)];
        Some(values[low] + (next - values[low]) * (rank - low as f64))
    }
}

/// Of a class's flows those completed, and those started.
fn flows(run: &Run, class: &str) -> Option<[u64; 2]> {
    let flows = run.summary.fct_us.get(class)?;
    Some([flows.count, flows.count + flows.unfinished])
}

fn counted(summary: &Summary, mechanism: &str, counter: &str) -> Option<f64> {
    Some(summary.mechanisms.get(mechanism)?.get(counter).copied().unwrap_or(0) as f64)
}

/// The share of the data that TLT sent as important or forced, in percent.
fn important(summary: &Summary) -> Option<f64> {
    let tlt = summary.mechanisms.get("tlt")?;
    let bytes = |importance: &str| tlt.get(importance).copied().unwrap_or(0) as f64;
    let important = bytes("important_bytes") + bytes("forced_bytes");
    let all = important + bytes("unimportant_bytes");
    (all > 0.0).then(|| important / all * 100.0)
}

impl Statistic {
    /// Its numbers in a run of the ledger; without any where the ledger lacks the statistic.
    fn recorded(&self, run: &Run) -> Option<Number> {
        let numbers = run.numbers.as_ref()?;
        Some(numbers.get(self).copied().unwrap_or_default())
    }

    /// Its value in a run, if the run has it.
    pub fn of_run(&self, run: &Run) -> Option<f64> {
        if let Some(Number(value, ..)) = self.recorded(run) {
            return value;
        }
        match self {
            Self::Acknowledged(class, of) => of.of_sorted(run.acknowledged.as_ref()?.get(class)?),
            _ => self.of(&run.summary),
        }
    }

    /// How many samples of a run are beyond it, if it is a percentile; calls have their own rule,
    /// in each run.
    pub fn beyond(&self, run: &Run) -> Option<f64> {
        if let Some(Number(_, beyond, _)) = self.recorded(run) {
            return beyond;
        }
        let (count, share) = match self {
            Self::P99 => (run.summary.qct_us.completed, 0.01),
            Self::Flows(class, of) | Self::Slowdown(class, of) => {
                (flows(run, class)?[0], of.beyond()?)
            }
            Self::Acknowledged(class, of) => {
                (run.acknowledged.as_ref()?.get(class)?.len() as u64, of.beyond()?)
            }
            Self::SlowdownOfSizes(sizes, of) => {
                (run.summary.slowdown_by_size.get(sizes)?.completed, of.beyond()?)
            }
            Self::ProbeP50 => (run.summary.rtt_us.count, 0.5),
            Self::ProbeP999 => (run.summary.rtt_us.count, 0.001),
            _ => return None,
        };
        Some(count as f64 * share)
    }

    /// Of a run the flows or queries that it is a mean or a percentile of: those completed, those
    /// started.
    pub fn completed(&self, run: &Run) -> Option<[u64; 2]> {
        if let Some(Number(.., completed)) = self.recorded(run) {
            return completed;
        }
        match self {
            Self::Mean | Self::P99 => {
                Some([run.summary.qct_us.completed, run.summary.qct_us.started])
            }
            Self::Flows(class, of) | Self::Acknowledged(class, of) if *of != Of::Count => {
                flows(run, class)
            }
            Self::Slowdown(class, _) => flows(run, class),
            Self::SlowdownOfSizes(sizes, of) if *of != Of::Count => {
                let bin = run.summary.slowdown_by_size.get(sizes)?;
                Some([bin.completed, bin.completed + bin.unfinished])
            }
            _ => None,
        }
    }

    /// The share of open flows or queries that hardly moves it: 1 % of a mean, a tenth of those
    /// beyond a percentile.
    pub fn negligible(&self) -> f64 {
        match self {
            Self::P99 => 0.001,
            Self::Flows(_, of)
            | Self::Slowdown(_, of)
            | Self::Acknowledged(_, of)
            | Self::SlowdownOfSizes(_, of) => of.beyond().map_or(0.01, |beyond| beyond / 10.0),
            _ => 0.01,
        }
    }

    /// Its place in a summary, if it is a mean or a percentile that what is open could move.
    pub fn path(&self) -> Option<Vec<&str>> {
        match self {
            Self::Mean => Some(vec!["qct_us", "mean"]),
            Self::P99 => Some(vec!["qct_us", "p99"]),
            Self::Flows(class, of) => Some(vec!["fct_us", class, of.key()?]),
            Self::Slowdown(class, of) => Some(vec!["slowdown", class, of.key()?]),
            _ => None,
        }
    }

    /// The class of traffic that it is of, by the key of the file. Calls are missing here: programs
    /// name their own.
    pub fn class(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Flows(class, _) => Some(("flows", class)),
            Self::Acknowledged(class, _) => Some(("acknowledged", class)),
            Self::Slowdown(class, _) => Some(("slowdown", class)),
            Self::Rounds(class, _) => Some(("rounds", class)),
            Self::BusBandwidth(class) => Some(("bus-bandwidth", class)),
            Self::OverClosedForm(class) => Some(("over-closed-form", class)),
            Self::TimeoutsPerThousand(class) => Some(("timeouts-per-thousand", class)),
            Self::RttP95(class) => Some(("rtt-p95", class)),
            Self::RtoP95(class) => Some(("rto-p95", class)),
            _ => None,
        }
    }

    /// Its value in a summary, if the summary has it: [`Statistic::of_run`] has all of them.
    pub fn of(&self, summary: &Summary) -> Option<f64> {
        match self {
            Self::Acknowledged(..) => None,
            Self::Mean => summary.qct_us.mean,
            Self::P99 => summary.qct_us.p99,
            Self::Completed => Some(summary.qct_us.completed as f64),
            Self::Dropped => Some(summary.packets.dropped as f64),
            Self::DroppedBut(reason) => {
                let Packets { dropped, dropped_by, .. } = &summary.packets;
                Some(dropped.saturating_sub(dropped_by.get(reason).copied().unwrap_or(0)) as f64)
            }
            Self::DroppedFor(reasons) => {
                let by = &summary.packets.dropped_by;
                let of = |reason: &String| by.get(reason).copied().unwrap_or(0);
                Some(reasons.iter().map(of).sum::<u64>() as f64)
            }
            Self::Lost => {
                let p = &summary.packets;
                (p.sent > 0).then(|| p.dropped as f64 / p.sent as f64 * 100.0)
            }
            Self::Retransmitted => Some(summary.packets.retransmitted as f64),
            Self::Goodput => summary.flows.goodput_gbps,
            Self::Samples(class, of) => {
                let over_time = summary.goodput_over_time.as_ref()?;
                of.of(over_time.gbps.get(class)?, over_time.period_us)
            }
            Self::RoundTrip => summary.limits.first().and_then(|limit| limit.rtt_mean_us),
            Self::Calls(class, of) => {
                let c = summary.latency_us.get(class)?;
                of.pick(Some(c.count), c.mean, [c.p50, c.p95, c.p99, c.p999])
            }
            Self::Flows(class, of) => {
                let f = summary.fct_us.get(class)?;
                of.pick(Some(f.count), f.mean, [f.p50, f.p95, f.p99, f.p999])
            }
            Self::Slowdown(class, of) => {
                let s = summary.slowdown.get(class)?;
                of.pick(None, None, [s.p50, s.p95, s.p99, s.p999])
            }
            Self::SlowdownOfSizes(sizes, of) => {
                let bin = summary.slowdown_by_size.get(sizes)?;
                of.pick(Some(bin.completed), bin.mean, [bin.p50, bin.p95, bin.p99, None])
            }
            Self::Rounds(class, of) => {
                let Collectives { rounds, time_us: t, .. } = summary.collectives.get(class)?;
                of.pick(Some(*rounds), t.mean, [t.p50, None, t.p99, None])
            }
            Self::BusBandwidth(class) => Some(summary.collectives.get(class)?.busbw_gbytes? * 8.0),
            Self::OverClosedForm(class) => summary.collectives.get(class)?.ratio,
            Self::Timeouts => Some(summary.timeouts as f64),
            Self::TimeoutsPerThousand(class) => {
                let flows = summary.fct_us.get(class)?.count as f64;
                (flows > 0.0).then(|| summary.timeouts as f64 / flows * 1000.0)
            }
            Self::Pauses => Some(summary.pause_frames as f64),
            Self::ProbeP50 => summary.rtt_us.p50,
            Self::ProbeP999 => summary.rtt_us.p999,
            Self::Fairness => summary.fairness_jain,
            Self::Disorder => Some(summary.packets.out_of_order as f64),
            Self::Counter(mechanism, counter) => counted(summary, mechanism, counter),
            Self::Busy => counted(summary, "receive-cpu", "busy-ppm-mean").map(|ppm| ppm / 1e4),
            Self::RttP95(class) => summary.timers_us.get(class)?.srtt.p95,
            Self::RtoP95(class) => summary.timers_us.get(class)?.rto.p95,
            Self::Important => important(summary),
        }
    }

    /// Its unit, as [`millpond_results::Number`] names it.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Goodput | Self::Samples(..) | Self::BusBandwidth(_) => "Gb/s",
            Self::Important | Self::Busy | Self::Lost => "percent",
            Self::Calls(_, Of::Count)
            | Self::Flows(_, Of::Count)
            | Self::Rounds(_, Of::Count)
            | Self::Acknowledged(_, Of::Count)
            | Self::SlowdownOfSizes(_, Of::Count) => "count",
            Self::Fairness | Self::OverClosedForm(_) => "",
            Self::Slowdown(..) | Self::SlowdownOfSizes(..) => "",
            Self::Mean | Self::P99 | Self::RoundTrip => "us",
            Self::Calls(..) | Self::Flows(..) | Self::Rounds(..) => "us",
            Self::Acknowledged(..) | Self::RttP95(_) | Self::RtoP95(_) => "us",
            Self::ProbeP50 | Self::ProbeP999 => "us",
            _ => "count",
        }
    }

    /// Its name among the numbers of a run of calls, as [`millpond_results::OneRun`] has it.
    pub fn of_calls(&self) -> Option<String> {
        match self {
            Self::Goodput => Some("goodput_gbps".into()),
            Self::Calls(class, of @ (Of::P50 | Of::P99 | Of::P999)) => {
                Some(format!("{class} {}_us", of.key()?))
            }
            _ => None,
        }
    }

    /// Why a run has no such number.
    pub fn absent(&self) -> &'static str {
        match self {
            Self::Calls(..) => "fewer than ten calls exceeded it",
            Self::Mean | Self::P99 | Self::Completed | Self::Dropped => "no query completed",
            Self::Acknowledged(..) => "no flow of a kept table was acknowledged",
            Self::Flows(..)
            | Self::TimeoutsPerThousand(_)
            | Self::Slowdown(..)
            | Self::SlowdownOfSizes(..) => "no flow completed",
            Self::ProbeP50 | Self::ProbeP999 => "no probe was answered",
            Self::Rounds(..) | Self::BusBandwidth(_) | Self::OverClosedForm(_) => {
                "no round was completed"
            }
            _ => "nothing was measured",
        }
    }

    /// Its name where it is not what a claim is of.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Flows(_, Of::P50) | Self::Rounds(_, Of::P50) | Self::Acknowledged(_, Of::P50) => {
                "the median"
            }
            Self::Flows(_, Of::Mean) | Self::Acknowledged(_, Of::Mean) => "the mean",
            Self::P99 => "p99",
            _ => "the other",
        }
    }

    /// Whether it is of queries, so that the share that completed belongs beside it.
    pub fn is_of_queries(&self) -> bool {
        matches!(&self, Self::Mean | Self::P99 | Self::Completed | Self::Dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_results::{Fct, GoodputOverTime, Ordered, SizeBin, Slowdown, Times};
    use std::sync::Arc;

    #[test]
    fn what_is_sent_again_is_counted_and_none_is_a_number() {
        let mut summary = Summary::default();
        assert_eq!(
            (Statistic::Retransmitted.of(&summary), Statistic::Retransmitted.unit()),
            (Some(0.0), "count")
        );
        summary.packets.retransmitted = 597;
        assert_eq!(Statistic::Retransmitted.of(&summary), Some(597.0));
    }

    #[test]
    fn timeouts_are_counted_by_flows_of_a_class_and_drops_without_a_reason() {
        let mut summary = Summary::default();
        let timeouts = Statistic::TimeoutsPerThousand("foreground".into());
        assert_eq!((timeouts.of(&summary), timeouts.unit()), (None, "count"));
        let flows = |count: u64| Fct { count, ..Fct::default() };
        summary.fct_us =
            Ordered::from(vec![("all".to_string(), flows(700)), ("foreground".into(), flows(500))]);
        summary.timeouts = 20;
        assert_eq!(timeouts.of(&summary), Some(40.0));
        summary.fct_us = Ordered::from(vec![("foreground".to_string(), flows(0))]);
        assert_eq!(timeouts.of(&summary), None);
        summary.packets.dropped = 9;
        summary.packets.dropped_by =
            Ordered::from(vec![("color".to_string(), 7), ("shared-buffer".into(), 2)]);
        let of = |reason: &str| Statistic::DroppedBut(reason.to_string()).of(&summary);
        assert_eq!(
            (of("color"), of("shared-buffer"), of("ttl")),
            (Some(2.0), Some(7.0), Some(9.0))
        );
        let of = |reasons: &[&str]| {
            let reasons = reasons.iter().map(|reason| reason.to_string()).collect();
            Statistic::DroppedFor(reasons).of(&summary)
        };
        assert_eq!((of(&["color", "shared-buffer"]), of(&["ttl"])), (Some(9.0), Some(0.0)));
    }

    #[test]
    fn rounds_and_their_bus_bandwidth_are_of_a_class() {
        let (p50, count) =
            (Statistic::Rounds("job".into(), Of::P50), Statistic::Rounds("job".into(), Of::Count));
        let bandwidth = Statistic::BusBandwidth("job".into());
        let mut summary = Summary::default();
        assert_eq!((p50.of(&summary), bandwidth.of(&summary)), (None, None));
        let time_us = Times { p50: Some(1600.0), ..Times::default() };
        let job = Collectives {
            rounds: 4,
            time_us,
            busbw_gbytes: Some(9.5),
            ratio: Some(1.04),
            ..Collectives::default()
        };
        summary.collectives = Ordered::from(vec![("job".to_string(), job)]);
        assert_eq!((p50.of(&summary), count.of(&summary)), (Some(1600.0), Some(4.0)));
        assert_eq!((bandwidth.of(&summary), bandwidth.unit()), (Some(76.0), "Gb/s"));
        let ratio = Statistic::OverClosedForm("job".into());
        assert_eq!((ratio.of(&summary), ratio.unit()), (Some(1.04), ""));
        assert_eq!(Statistic::Rounds("job".into(), Of::P95).of(&summary), None);
    }

    #[test]
    fn samples_have_a_median_a_spread_and_a_swing() {
        let of = |of: OfSamples, samples: &[f64]| of.of(samples, 30.0);
        let samples = [5.0, 1.0, 9.0, 2.0, 40.0, 41.0, 42.0, 43.0, 44.0, 45.0, 46.0];
        assert_eq!(of(OfSamples::P50, &samples), Some(41.0));
        assert_eq!(of(OfSamples::Spread, &samples), Some(43.0));
        assert_eq!(of(OfSamples::Mean, &[1.0, 2.0, 6.0]), Some(3.0));
        // Two samples of 30 us are within 40 us of each other, and four within 90 us.
        assert_eq!(of(OfSamples::Swing(40), &samples), Some(38.0));
        assert_eq!(of(OfSamples::Swing(90), &samples), Some(40.0));
        assert_eq!((of(OfSamples::P50, &[]), of(OfSamples::Swing(40), &[1.0])), (None, None));
        let mut summary = Summary::default();
        let mean = Statistic::Samples("a".into(), OfSamples::Mean);
        assert_eq!((mean.of(&summary), mean.unit()), (None, "Gb/s"));
        let gbps = Ordered::from(vec![("a".to_string(), vec![2.0, 4.0])]);
        summary.goodput_over_time =
            Some(GoodputOverTime { period_us: 30.0, packet_us: 0.0, gbps, recovery: Vec::new() });
        assert_eq!(mean.of(&summary), Some(3.0));
        assert_eq!(Statistic::Samples("b".into(), OfSamples::Mean).of(&summary), None);
    }

    #[test]
    fn slowdowns_are_of_a_class_or_of_sizes() {
        let mut summary = Summary::default();
        let (mice, small) = (
            |of| Statistic::Slowdown("mice".into(), of),
            |of| Statistic::SlowdownOfSizes("0-10000".into(), of),
        );
        assert_eq!((mice(Of::P95).of(&summary), small(Of::P95).of(&summary)), (None, None));
        let of = Slowdown { p50: Some(1.5), p95: Some(4.0), ..Slowdown::default() };
        summary.slowdown = Ordered::from(vec![("mice".to_string(), of)]);
        let bin = SizeBin { completed: 7, mean: Some(2.0), p99: Some(9.0), ..SizeBin::default() };
        summary.slowdown_by_size = Ordered::from(vec![("0-10000".to_string(), bin)]);
        assert_eq!(
            (mice(Of::P50).of(&summary), mice(Of::P95).of(&summary)),
            (Some(1.5), Some(4.0))
        );
        assert_eq!((mice(Of::Mean).of(&summary), mice(Of::P95).unit()), (None, ""));
        assert_eq!((small(Of::Count).of(&summary), small(Of::Count).unit()), (Some(7.0), "count"));
        assert_eq!((small(Of::P99).of(&summary), small(Of::P99).unit()), (Some(9.0), ""));
    }

    #[test]
    fn times_to_the_last_acknowledgement_are_of_a_class() {
        let times = Ordered::from(vec![("foreground".to_string(), vec![1.0, 2.0, 3.0, 5.0, 9.0])]);
        let run = Run { acknowledged: Some(Arc::new(times)), ..Run::default() };
        let of = |of| Statistic::Acknowledged("foreground".into(), of).of_run(&run);
        assert_eq!((of(Of::P50), of(Of::Mean), of(Of::Count)), (Some(3.0), Some(4.0), Some(5.0)));
        assert!((of(Of::P95).unwrap() - 8.2).abs() < 1e-9, "interpolated between 5 and 9");
        assert_eq!(Statistic::Acknowledged("background".into(), Of::P50).of_run(&run), None);
        assert_eq!(
            Statistic::Acknowledged("foreground".into(), Of::P50).of_run(&Run::default()),
            None,
            "no flows were kept"
        );
        assert_eq!(Statistic::Acknowledged("foreground".into(), Of::P99).beyond(&run), Some(0.05));
    }

    #[test]
    fn the_loss_rate_is_of_what_hosts_sent() {
        let mut summary = Summary::default();
        assert_eq!(Statistic::Lost.of(&summary), None);
        (summary.packets.sent, summary.packets.dropped) = (4000, 10);
        assert_eq!((Statistic::Lost.of(&summary), Statistic::Lost.unit()), (Some(0.25), "percent"));
    }
}
