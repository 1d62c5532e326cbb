//! Abilities that the parts of a switch need together. Each key's own range is its declaration's
//! affair.
//!
//! Invariant: an error is what cannot be run, or what could only be meant otherwise; a warning is
//! what has no effect.

use crate::error::{Problem, Report};
use crate::host::HostPlan;
use crate::settings::{NicChoice, Settings};
use crate::topology::Topology;
use millpond_core::registry::Choice;
use millpond_core::switch::admission::{AdmissionParams, AifoForm};
use millpond_core::switch::buffer::{BufferParams, PerPortParams, PoolsParams, SharedParams};
use millpond_core::switch::deflection::{Deflection, DeflectionParams};
use millpond_core::switch::overflow::OverflowParams;
use millpond_core::switch::pause::{BfcParams, PauseParams};
use millpond_core::switch::queue::QueueParams;
use millpond_core::switch::site::Auto;
use millpond_core::{Bytes, Rate, Time};
use std::collections::BTreeSet;

pub(crate) fn check(s: &Settings, report: &mut Report) {
    buffers(s, report);
    displacement(s, report);
    measures(s, report);
    cells(s, report);
    pause(s, report);
    scheduler(s, report);
    trimming(s, report);
}

/// Demands that follow from the switches' places in the network: each one's minima and headroom
/// must leave something to share.
pub(crate) fn check_pools(s: &Settings, topology: &Topology, host: &HostPlan, report: &mut Report) {
    let BufferParams::Pools(params) = &s.switch.buffer else { return };
    let (packet_max, pauses) = (host.packet_max(), s.switch.pause.kind() != "none");
    let mut is_reported = false;
    for (index, site) in topology.switches.iter().enumerate() {
        let facts = host.switch_facts(topology, index, pauses);
        let (size, left) = (params.size(&facts), params.pools(&facts).1);
        if left <= 0 {
            let taken = i128::from(size) - left;
            let taken =
                u64::try_from(taken).map_or(format!("{taken}B"), |taken| Bytes(taken).to_string());
            let text = format!(
                "{} is not enough for {}, whose minima and headroom take {taken}",
                Bytes(size),
                site.name
            );
            return report.wrong("switch.buffer.size", text);
        }
        let lacks = |(rate, delay): &&(Rate, Time)| {
            facts.pauses && params.lacks(*rate, *delay, packet_max) > 0
        };
        if let Some((rate, delay)) = facts.links.iter().find(lacks)
            && !std::mem::replace(&mut is_reported, true)
        {
            let (has, lacks) = (
                params.headroom_of(*rate, *delay, packet_max),
                params.lacks(*rate, *delay, packet_max),
            );
            report.warn(format!(
                "switch.buffer: headroom of {:#} is {:#} less than what is on its way on a link of \
                 {rate} and {delay} while a PAUSE travels ({}): packets can be lost",
                Bytes(has),
                Bytes(lacks),
                site.name
            ));
        }
    }
}

/// The abilities that a buffer needs.
fn buffers(s: &Settings, report: &mut Report) {
    let mut check = |buffer: &BufferParams, path: &str| match buffer {
        BufferParams::Shared(SharedParams { alpha, .. })
        | BufferParams::Pools(PoolsParams { alpha, .. }) => {
            if !(*alpha > 0.0 && *alpha <= 1_000_000.0) {
                let path = format!("{path}.alpha");
                report.wrong(&path, format!("{alpha} is no share; above 0 is"));
            }
        }
        BufferParams::PerPort(p) => {
            let largest = s.host.mtu as u64 + s.host.frame_overhead as u64;
            let small = |size: &Auto<Option<Bytes>>| match size {
                Auto::Given(Some(size)) => size.get() < largest,
                _ => false,
            };
            let nothing = p.packets.amounts().any(|packets| *packets == Some(0));
            if p.per.is_none() && p.size.amounts().any(small) || nothing {
                report.warn(format!(
                    "{path} is smaller than one packet of {largest} bytes: nothing can wait"
                ));
            }
        }
    };
    check(&s.switch.buffer, "switch.buffer");
    match &s.nic.buffer {
        NicChoice::Own(buffer) => check(buffer, "host.nic.buffer"),
        NicChoice::Switch if !matches!(s.switch.buffer, BufferParams::PerPort(_)) => {
            let message = "\"switch\" is a shared buffer, and a NIC has nobody to share with";
            let problem = Problem::Value { key: "host.nic.buffer".into(), message: message.into() };
            report.help(report.at("host.nic.buffer"), problem, "give the NIC a buffer of its own");
        }
        _ => {}
    }
}

/// A deflection that moves packets out of a queue needs a queue that can give them up.
fn displacement(s: &Settings, report: &mut Report) {
    let (deflection, queue) = (s.switch.deflection.kind(), s.switch.queue.kind());
    let displaces = Deflection::new(&s.switch.deflection).nature().displaces;
    if displaces && matches!(s.switch.buffer, BufferParams::Pools(_)) {
        report.clash("switch.buffer", format!(
            "switch.deflection \"{deflection}\" makes room by what leaves the packet's own queue, \
             and in \"pools\" that need not make any"
        ), "use a buffer of kind \"shared\" or \"per-port\"");
    }
    if displaces && queue != "srpt" {
        let problem = Problem::Impossible(format!(
            "switch.deflection \"{deflection}\" takes the least important packets out of a full \
             queue, and \"{queue}\" gives none up"
        ));
        let help = "write queue = { kind = \"srpt\" }, with service = \"arrival\" to serve first \
                    come, first served";
        let at = if s.is_written("switch.queue") { "switch.queue" } else { "switch.deflection" };
        report.help(report.at(at), problem, help);
    }
}

/// An admission that compares a queue's bytes with its buffer's needs a buffer of bytes.
fn measures(s: &Settings, report: &mut Report) {
    let measures = match &s.switch.admission {
        AdmissionParams::Aifo(p) => p.form == AifoForm::Canary,
        AdmissionParams::Distribution(_) | AdmissionParams::Probabilistic(_) => true,
        _ => false,
    };
    let uncounted = |p: &PerPortParams| p.size.amounts().any(|size| *size == Auto::Given(None));
    if measures && matches!(&s.switch.buffer, BufferParams::PerPort(p) if uncounted(p)) {
        report.warn(format!(
            "switch.admission \"{}\" refuses nobody: it goes by the share of switch.buffer.size \
             that is free, and that is off",
            s.switch.admission.kind()
        ));
    }
}

/// A chip's cells are the buffer.
fn cells(s: &Settings, report: &mut Report) {
    let DeflectionParams::CanaryPisa(p) = &s.switch.deflection else { return };
    let cells = Bytes(u64::from(p.cells).saturating_mul(p.cell.get()));
    let is_cells = |p: &PerPortParams| p.per.is_none() && p.size == Auto::Given(Some(cells)).into();
    if !matches!(&s.switch.buffer, BufferParams::PerPort(p) if is_cells(p)) {
        let text = format!(
            "switch.deflection \"canary-pisa\" reckons with {cells} a port: make it \
             switch.buffer.size"
        );
        report.warn(text);
    }
}

/// A scheduler's paths are labels, which switches must follow.
fn scheduler(s: &Settings, report: &mut Report) {
    let (edge, path) = (s.edge.load_balancing.kind(), s.switch.path.kind());
    if edge == "hedera" && path != "labels" {
        let text = format!(
            "edge.load-balancing \"{edge}\" gives flows labels, and switch.path \"{path}\" \
             follows none"
        );
        let at = if s.is_written("switch.path") { "switch.path" } else { "edge.load-balancing" };
        report.clash(at, text, "write [switch] path = { kind = \"labels\" }");
    }
}

/// Trimmed packets go before data, and have room of their own.
fn trimming(s: &Settings, report: &mut Report) {
    let trims = !matches!(s.switch.overflow, OverflowParams::Drop(_));
    if trims && !matches!(s.switch.queue, QueueParams::StrictPriority(_)) {
        let text = format!(
            "switch.overflow \"trim\" sends headers on before data, and switch.queue \"{}\" does \
             not",
            s.switch.queue.kind()
        );
        let help = "write queue = { kind = \"strict-priority\" }";
        report.clash("switch.overflow", text, help);
    }
}

/// A pause of flows takes queues of flows, which NICs have by the same numbers.
fn bfc(s: &Settings, p: &BfcParams, report: &mut Report) {
    if !matches!(s.switch.queue, QueueParams::DynamicQueues(_)) {
        let text = format!(
            "switch.pause \"bfc\" stops flows, and switch.queue \"{}\" has none",
            s.switch.queue.kind()
        );
        report.clash("switch.pause", text, "write queue = { kind = \"dynamic-queues\" }");
    }
    if p.is_brief() {
        let text = "switch.pause.pause-time is below four intervals: a pause may end before it is \
                    repeated";
        report.warn(text);
    }
}

/// A pause goes by what ingresses hold of one memory, and needs headroom for what comes while its
/// frame travels.
fn pause(s: &Settings, report: &mut Report) {
    if let PauseParams::Bfc(p) = &s.switch.pause {
        bfc(s, p, report);
    }
    let PauseParams::Pfc(p) = &s.switch.pause else { return };
    if !(p.alpha > 0.0 && p.alpha <= 1_000_000.0) {
        let path = "switch.pause.alpha";
        report.wrong(path, format!("{} is no share; above 0 is", p.alpha));
    }
    if let (Some(pause), Some(recheck)) = (p.pause_time, p.recheck)
        && recheck >= pause
    {
        report.warn(format!(
            "switch.pause.recheck ({recheck}) is not below pause-time ({pause}): a pause ends \
             although its cause lasts, and packets can be lost"
        ));
    }
    match &s.switch.buffer {
        BufferParams::PerPort(_) => {
            let text = "switch.pause \"pfc\" goes by what an ingress holds of one memory, and \
                        each port has its own";
            report.clash("switch.pause", text, "write buffer = { kind = \"pools\" }");
        }
        BufferParams::Shared(_) => report.warn(
            "switch.pause \"pfc\" finds no headroom in a \"shared\" buffer: packets that come \
             while a PAUSE travels can be lost; use \"pools\"",
        ),
        BufferParams::Pools(p) => {
            let priorities: BTreeSet<u32> = s.traffic.iter().map(|t| t.common.priority).collect();
            if priorities.len() > p.lossless_priorities as usize {
                report.warn(format!(
                    "traffic has {} priorities, and switch.buffer keeps headroom for {}: packets \
                     can be lost; set lossless-priorities",
                    priorities.len(),
                    p.lossless_priorities
                ));
            }
        }
    }
}
