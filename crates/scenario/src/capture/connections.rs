//! Which connections are sampled (`[capture] connections`).
//!
//! All conditions that are given must hold. Flows whose numbers are drawn as the run goes cannot be
//! checked in advance; a run reports at its end which of those that were named never began.
//!
//! Invariant: a plan names only hosts and classes that exist, and no more flows than are sampled.

use super::every;
use crate::capture::ConnectionCapture;
use crate::error::{Report, suggestion};
use crate::settings::Settings;
use crate::settings::capture::FlowSet;
use crate::settings::hosts::HostSet;
use crate::topology::Topology;
use crate::traffic::{SourceKind, TrafficPlan};
use millpond_core::{FlowId, HostId};

/// The keys beside `every`.
const CONDITIONS: &[&str] = &["flows", "traffic", "src", "dst", "max"];

pub(super) fn connections(
    s: &Settings,
    topology: &Topology,
    traffic: &TrafficPlan,
    report: &mut Report,
) -> Option<ConnectionCapture> {
    let c = &s.capture;
    let every = every(s, "capture.connections", c.connections_every, CONDITIONS, report);
    let flows = c.connections_flows.as_ref().map(|set| flows(s, set, traffic, report));
    let classes = classes(s, traffic, report);
    let mut hosts = |key: &str, set: &Option<HostSet>| -> Option<Vec<HostId>> {
        set.as_ref().and_then(|set| match set.members(topology.hosts) {
            Ok(hosts) => hosts,
            Err(message) => {
                let path = format!("capture.connections.{key}");
                report.wrong(&path, message);
                None
            }
        })
    };
    let (src, dst) = (hosts("src", &c.connections_src), hosts("dst", &c.connections_dst));
    Some(ConnectionCapture {
        every: every?,
        flows,
        classes,
        src,
        dst,
        max: c.connections_max as usize,
    })
}

/// The flows that are named, in ascending order.
fn flows(s: &Settings, set: &FlowSet, traffic: &TrafficPlan, report: &mut Report) -> Vec<FlowId> {
    let path = "capture.connections.flows";
    let mut wrong = |message: String| report.wrong(path, message);
    for (from, to) in &set.0 {
        if to < from {
            wrong(format!("{from}..{to} runs backwards"));
        }
        if let Some(total) = traffic.total_flows
            && u64::from(*to) >= total
        {
            wrong(format!("{to} is no flow; there are {total}, from 0"));
        }
    }
    let named: u64 = set.0.iter().map(|(from, to)| u64::from(to.saturating_sub(*from)) + 1).sum();
    let max = u64::from(s.capture.connections_max);
    if named > max {
        wrong(format!("names {named} flows, and {max} are sampled; set connections.max"));
        return Vec::new();
    }
    let mut flows: Vec<FlowId> = set.0.iter().flat_map(|(from, to)| *from..=*to).collect();
    flows.sort_unstable();
    flows.dedup();
    flows
}

/// The classes that are named; `None`: any.
fn classes(s: &Settings, traffic: &TrafficPlan, report: &mut Report) -> Option<Vec<u16>> {
    let path = "capture.connections.traffic";
    let mut found = Vec::new();
    for name in &s.capture.connections_traffic {
        let Some(class) = traffic.classes.iter().position(|class| class == name) else {
            let known: Vec<&str> = traffic.classes.iter().map(String::as_str).collect();
            report.unknown(path, "traffic", name, suggestion(name, &known));
            continue;
        };
        if traffic
            .sources
            .get(class)
            .is_some_and(|source| matches!(source.kind, SourceKind::Probe { .. }))
        {
            report.wrong(path, format!("{name:?} is a probe, which makes no flows"));
        }
        found.push(class as u16);
    }
    (!s.capture.connections_traffic.is_empty()).then_some(found)
}
