//! The results of a run: as a table for people, as JSON for programs. Rates in Mb/s of payload at
//! the receiver, latencies in milliseconds. A percentile without enough samples beyond it is
//! `null`, and – in the table.

use crate::units::show_bytes;
use serde_json::{Value, json};
use std::fmt;

/// The results of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The flows, as written.
    pub flow_set: String,
    /// The congestion control's name.
    pub congestion: String,
    /// Whether all flows negotiated ECN.
    pub ecn: bool,
    /// How long was measured.
    pub seconds: f64,
    /// All flows' payload together.
    pub mbps: f64,
    /// The most in any one second.
    pub max_second_mbps: Option<f64>,
    /// Segments that TCP sent again.
    pub retransmissions: u64,
    /// Mean of the smoothed round-trip times, sampled every 10 ms.
    pub srtt_us: Option<f64>,
    /// By size of request.
    pub classes: Vec<ClassReport>,
    /// By flow, in order.
    pub flows: Vec<FlowReport>,
}

/// The results of the flows with one size of request.
#[derive(Debug, Clone, Default)]
pub struct ClassReport {
    /// Bytes of a request.
    pub size: u64,
    /// How many flows.
    pub flows: usize,
    /// Their payload together.
    pub mbps: f64,
    /// Requests that ended.
    pub count: usize,
    /// Median latency.
    pub p50_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// 99.9th percentile.
    pub p999_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
    /// Mean of the smoothed round-trip times.
    pub srtt_us: Option<f64>,
    /// Segments sent again.
    pub retransmissions: u64,
}

/// One flow's rate.
#[derive(Debug, Clone)]
pub struct FlowReport {
    /// Its class.
    pub class: usize,
    /// Payload.
    pub mbps: f64,
    /// The most in any one second.
    pub max_second_mbps: Option<f64>,
}

/// To a thousandth: what lies beyond is noise.
fn rounded(value: f64) -> Value {
    json!((value * 1e3).round() / 1e3)
}

fn optional(value: Option<f64>) -> Value {
    value.map_or(Value::Null, rounded)
}

impl Report {
    /// One object.
    pub fn json(&self) -> Value {
        json!({
            "kind": "rpc", "flow_set": self.flow_set, "cc": self.congestion, "ecn": self.ecn,
            "seconds": rounded(self.seconds), "mbps": rounded(self.mbps),
            "max_second_mbps": optional(self.max_second_mbps),
            "retransmissions": self.retransmissions, "srtt_us": optional(self.srtt_us),
            "classes": self.classes.iter().map(ClassReport::json).collect::<Vec<_>>(),
            "flows": self.flows.iter().map(|flow| json!({
                "class": flow.class, "mbps": rounded(flow.mbps),
                "max_second_mbps": optional(flow.max_second_mbps),
            })).collect::<Vec<_>>(),
        })
    }
}

impl ClassReport {
    fn json(&self) -> Value {
        json!({
            "size": self.size, "flows": self.flows, "mbps": rounded(self.mbps), "count": self.count,
            "p50_ms": optional(self.p50_ms), "p99_ms": optional(self.p99_ms),
            "p999_ms": optional(self.p999_ms), "max_ms": optional(self.max_ms),
            "srtt_us": optional(self.srtt_us),
            "retransmissions": self.retransmissions,
        })
    }
}

fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".into(), |v| format!("{v:.digits$}"))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ecn = if self.ecn { ", ECN" } else { "" };
        writeln!(
            f,
            "{} · {}{ecn} · {:.2} s measured",
            self.flow_set, self.congestion, self.seconds
        )?;
        writeln!(
            f,
            "{:>7} {:>5} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
            "request",
            "flows",
            "Mb/s",
            "count",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms",
            "srtt us",
            "retrans"
        )?;
        for class in &self.classes {
            writeln!(
                f,
                "{:>7} {:>5} {:>9.1} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
                show_bytes(class.size),
                class.flows,
                class.mbps,
                class.count,
                cell(class.p50_ms, 3),
                cell(class.p99_ms, 3),
                cell(class.p999_ms, 3),
                cell(class.max_ms, 3),
                cell(class.srtt_us, 0),
                class.retransmissions
            )?;
        }
        writeln!(
            f,
            "together {:.1} Mb/s; at most {} Mb/s in any one second; mean srtt {} us; {} \
             retransmissions",
            self.mbps,
            cell(self.max_second_mbps, 1),
            cell(self.srtt_us, 0),
            self.retransmissions
        )
    }
}
