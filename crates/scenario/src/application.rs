//! Applications: which traffic goes to which cores of the receiving hosts, and what these cost
//! (`[[application]]`).
//!
//! A traffic belongs to the first application that has it. Traffic of no application goes up as
//! soon as the virtual switch has had it.
//!
//! Invariant: a plan's applications name only hosts and classes of traffic that exist.

use crate::error::{Report, near_or};
use crate::settings::Settings;
use crate::settings::application::ApplicationSettings;
use crate::topology::Topology;
use millpond_core::host::virtual_switch::ApplicationCosts;
use millpond_core::registry::Choice;
use std::collections::BTreeSet;

/// Cores of all applications that there may be at a host.
const CORES_MAX: u32 = 4096;

#[derive(Clone, Debug)]
pub struct ApplicationPlan {
    pub name: String,
    /// The hosts that have it, in ascending order; `None`: all.
    pub hosts: Option<Vec<u32>>,
    /// The classes of traffic that go to it; `None`: all.
    pub classes: Option<Vec<u16>>,
    pub costs: ApplicationCosts,
}

/// The applications of a plan; what is wrong with them, and with the virtual switch that they
/// need, is in the report.
pub(crate) fn applications(
    s: &Settings,
    topology: &Topology,
    classes: &[String],
    report: &mut Report,
) -> Vec<ApplicationPlan> {
    let mut names = BTreeSet::new();
    for a in &s.applications {
        if !names.insert(a.name()) {
            let text = format!("two applications are called {:?}", a.name());
            let place = format!("application.{}", a.name());
            report.clash(&place, text, "give each its own name");
        }
    }
    let cores: u32 = s.applications.iter().map(|a| a.costs.cores).sum();
    if cores > CORES_MAX {
        let message = format!(
            "{cores} cores of applications are more than a host has here; {CORES_MAX} are the most"
        );
        report.impossible("application", message);
    }
    check_switch(s, report);
    s.applications.iter().map(|a| one(a, topology, classes, report)).collect()
}

fn one(
    a: &ApplicationSettings,
    topology: &Topology,
    classes: &[String],
    report: &mut Report,
) -> ApplicationPlan {
    let place = |key: &str| format!("application.{}.{key}", a.name());
    let hosts = a.common.hosts.members(topology.hosts).unwrap_or_else(|message| {
        report.wrong(&place("hosts"), message);
        None
    });
    let mut numbers = Vec::new();
    for name in &a.common.traffic {
        match classes.iter().position(|class| class == name) {
            Some(at) => numbers.push(at as u16),
            None => {
                let known = classes.iter().map(String::as_str);
                let help = near_or(name, known, || format!("traffic here: {}", classes.join(", ")));
                report.unknown(&place("traffic"), "traffic", name, Some(help));
            }
        }
    }
    let classes = (!a.common.traffic.is_empty()).then_some(numbers);
    ApplicationPlan { name: a.name(), hosts, classes, costs: a.costs.clone() }
}

/// The conflicts of a virtual switch, and what cannot be without one.
fn check_switch(s: &Settings, report: &mut Report) {
    let kind = s.edge.virtual_switch.kind();
    if kind == "none" {
        if !s.applications.is_empty() {
            let text = "[[application]] has no effect: edge.virtual-switch is \"none\", and what \
                        arrives goes up at once";
            let help = "choose edge.virtual-switch = { kind = \"lossy\" }, or another of its kinds";
            report.clash("application", text, help);
        }
        return;
    }
    if s.applications.is_empty() {
        report.warn(format!(
            "no [[application]] is behind edge.virtual-switch \"{kind}\": nothing waits in it, and \
             no flow is held"
        ));
    }
    let mut refuse = |path: &str, what: String, why: &str| {
        let text = format!("{what} and edge.virtual-switch \"{kind}\" cannot be together: {why}");
        report.impossible(path, text);
    };
    if s.receive_cpu.is_some() {
        let why =
            "the receive ring is polled by the cores of the switch, which have costs of their own";
        refuse("host.receive-cpu", "host.receive-cpu".into(), why);
    }
}
