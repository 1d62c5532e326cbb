//! From settings to a plan: reads the files that a scenario names, checks what takes several
//! numbers together (of a switch in `switch.rs`), and builds the network and the traffic.

use crate::bounds::{self, Bounds};
use crate::cdf::SizeSpec;
use crate::error::{Problem, Report};
use crate::file_name::check_folder_name;
use crate::files::{FilesAt, ProgramForm};
use crate::host::{HostPlan, host};
use crate::plan::{CapturePlan, EnginePlan, FailurePlan, Plan};
use crate::settings::flows::{FlowRows, check_row};
use crate::settings::graph::Graph;
use crate::settings::job::{ChakraParams, GoalParams, ProgramFile, SimaiParams};
use crate::settings::topology::{FileParams, TopologyParams};
use crate::settings::traffic::TrafficParams;
use crate::settings::{Partitions, Ports, Settings, Until};
use crate::topology::Topology;
use crate::transport::{TransportKind, TransportParams};
use crate::{
    application, capture, composition, families, follow, limit, ports, program, resolved,
    several_nics, shows, stack, switch, traffic, unreached,
};
use millpond_core::Time;
use std::collections::BTreeSet;
use std::sync::Arc;

const NEVER_ENDS: &str = "a link fails for good and the run has no duration: a flow that can \
                          use no other link never ends, and the run ends as stalled when no \
                          other flow is open; give the failure an until, or the run a duration";

/// Builds the plan; `None` if something is wrong, which is then in the report.
pub(crate) fn assemble(
    mut s: Settings,
    files: FilesAt<'_>,
    variant: Option<&str>,
    report: &mut Report,
) -> Option<Plan> {
    check_run(&s, report);
    let mut host = host(&mut s, report);
    transport(&mut s, report);
    switch::check(&s, report);
    let topology = network(&mut s, files, report)?;
    switch::check_pools(&s, &topology, &host, report);
    ports::check(&s, &topology, &host, report);
    let round_trip = round_trip(&topology, &host);
    follow::network(&mut s, &topology, round_trip);
    load_files(&mut s, files, topology.hosts, report);
    let horizon = s.run.duration.unwrap_or(Time::END);
    let traffic = checked_traffic(&s, &topology, horizon, report);
    let applications = application::applications(&s, &topology, &traffic.classes, report);
    let programs = program::programs(&s, &topology, report);
    shows::check(&s, &traffic.classes, report);
    let limits = limit::limits(&s, &topology, &traffic.classes, report);
    host.stacks = stack::stacks(&s, &topology, &traffic, &programs, &limits, report);
    let failures = failures(&s, &topology, &host, report);
    let amounts = Bounds { s: &s, topology: &topology, host: &host, round_trip, horizon };
    bounds::check(&amounts, &limits, report);
    let capture = capture::capture(&s, &topology, &traffic, report);
    warn(&s, &topology, &traffic, report);
    if !report.is_clean() {
        return None;
    }
    settle(&mut s, &topology);
    let base = s.traffic.iter().any(|t| names_file(&t.kind));
    Some(Plan {
        base: base.then(|| files.absolute_base()),
        resolved: resolved::write(&s),
        settings: Arc::new(Settings { places: Arc::default(), ..s.clone() }),
        answers: composition::answers(&s, composition::Shape::of(&topology)),
        name: s.run.name,
        about: s.run.about,
        variant_about: String::new(),
        seed: s.run.seed,
        variant: variant.map(str::to_string),
        horizon,
        until_complete: s.run.until == Some(Until::FlowsComplete),
        warm_up: s.run.warm_up,
        mice: s.run.mice,
        elephants: s.run.elephants,
        size_bins: s.run.size_bins.clone(),
        shows: s.run.shows.clone(),
        topology: Arc::new(topology),
        round_trip,
        host,
        switch: s.switch,
        transport: s.transport,
        transport_kind: s.transport_kind,
        transport_choices: s.transport_choices,
        rdma: s.rdma,
        rdma_choices: s.rdma_choices,
        edge: s.edge,
        traffic: Arc::new(traffic),
        applications,
        programs,
        limits,
        failures,
        engine: engine(s.engine.ports, s.engine.partitions, &capture),
        capture,
        warnings: Vec::new(),
    })
}

fn engine(ports: Ports, partitions: Partitions, capture: &CapturePlan) -> EnginePlan {
    // A fast port computes departures in advance, and keeps no packets.
    let has_contents = capture.queues.as_ref().is_some_and(|queues| queues.flows);
    EnginePlan {
        general_ports: ports == Ports::General || has_contents,
        one_partition: partitions == Partitions::One,
    }
}

/// The traffic, and what is wrong with its end and its hosts' ways.
fn checked_traffic(
    s: &Settings,
    topology: &Topology,
    horizon: Time,
    report: &mut Report,
) -> traffic::TrafficPlan {
    let traffic = traffic::build(s, topology, horizon, report);
    check_end(s, &traffic, report);
    unreached::check(s, topology, &traffic, report);
    traffic
}

/// The failures, what hosts with several NICs do not have, and a warning of a failure that lasts
/// for ever in a run without a duration. `is_divided`: not all hosts are kernels.
fn failures(
    s: &Settings,
    topology: &Topology,
    host: &HostPlan,
    report: &mut Report,
) -> Vec<FailurePlan> {
    let failures = capture::failures(s, topology, report);
    several_nics::check(s, topology, host, &failures, report);
    let lasts = failures.iter().any(|failure| failure.is_outage() && failure.until == Time::MAX);
    if s.run.duration.is_none() && lasts {
        report.warn(NEVER_ENDS);
    }
    failures
}

/// The network; `None` if something is wrong with it, which is then in the report.
fn network(s: &mut Settings, files: FilesAt<'_>, report: &mut Report) -> Option<Topology> {
    load_topology(s, files, report)?;
    let topology = match Topology::build(&s.topology) {
        Ok(topology) => topology,
        Err(faults) => {
            for (key, message) in faults {
                let path = format!("topology.{key}");
                report.wrong(&path, message);
            }
            return None;
        }
    };
    if topology.hosts < 2 {
        report.impossible("topology", "a network of one host has nobody to talk to");
        return None;
    }
    Some(topology)
}

/// A run that ends with its flows needs traffic that ends.
fn check_end(s: &Settings, traffic: &traffic::TrafficPlan, report: &mut Report) {
    if s.run.duration.is_none() && s.run.until.is_some() && !traffic.is_finite {
        let text = "until = \"flows-complete\" needs traffic that ends";
        report.clash("until", text, "give the traffic a stop or a count, or the run a duration");
    }
}

/// Warns of a run without traffic, and of what mechanisms do to one another.
fn warn(s: &Settings, topology: &Topology, traffic: &traffic::TrafficPlan, report: &mut Report) {
    if traffic.sources.is_empty() && s.programs.is_empty() {
        report.warn("there is no traffic: nothing will happen");
    }
    let shape = composition::Shape::of(topology);
    report.warnings.extend(composition::check(&composition::chosen(s), shape));
    report.warnings.extend(composition::check_hosts(s));
    report.halves = composition::halves(s, shape);
}

/// Whether a source of traffic names a file.
fn names_file(kind: &TrafficParams) -> bool {
    match kind {
        TrafficParams::Flows(p) => p.file.is_some(),
        TrafficParams::Poisson(p) => matches!(p.sizes, SizeSpec::File { .. }),
        TrafficParams::Goal(_) | TrafficParams::Simai(_) | TrafficParams::Chakra(_) => true,
        _ => false,
    }
}

fn check_run(s: &Settings, report: &mut Report) {
    if let Err(message) = check_folder_name(&s.run.name) {
        report.wrong("name", message);
    }
    match s.run.duration {
        None if s.run.until.is_none() => {
            let problem = Problem::Missing { table: "the scenario".into(), key: "duration".into() };
            let help = "write duration = \"50ms\", or until = \"flows-complete\"";
            report.help(report.at("duration"), problem, help);
        }
        Some(Time::ZERO) => report.wrong("duration", "must be more than zero"),
        Some(duration) if s.run.warm_up >= duration => {
            let message = format!("{} leaves nothing of the duration {duration}", s.run.warm_up);
            report.wrong("warm-up", message);
        }
        _ => {}
    }
    if s.run.mice > s.run.elephants {
        let message = format!(
            "{} is above elephants ({}): a flow would be both",
            s.run.mice, s.run.elephants
        );
        report.wrong("mice", message);
    }
    check_names(s, report);
}

/// The transport's common keys, as far as something reads them, limits in their order, and the
/// conflicts of the transports' families.
fn transport(s: &mut Settings, report: &mut Report) {
    if !s.runs_tcp() {
        // They are TCP's, and for a scenario's other variants.
        s.transport = TransportParams::default();
    }
    s.transport.mss = s.host.mss;
    let p = &s.transport;
    if p.min_rto > p.max_rto {
        let message = format!("{} is above max-rto ({})", p.min_rto, p.max_rto);
        report.wrong("transport.min-rto", message);
    }
    let is_tcp = |kind: &TransportKind| kind.demands().family.is_tcp();
    if !s.kinds().all(is_tcp) {
        let own = [
            ("transport.timestamps", s.transport.timestamps),
            ("host.nic.interrupts", s.nic.params.interrupts),
        ];
        for (key, _) in own.into_iter().filter(|(_, is_on)| *is_on) {
            report.wrong(key, "is TCP's, and some traffic has another transport: leave it out");
        }
    }
    check_law("transport", &s.transport_kind, report);
    for t in &s.traffic {
        if let Some(own) = &t.transport {
            check_law(&format!("traffic.{}.transport", t.name()), own, report);
        }
    }
    families::check(s, report);
}

/// Keys of a control law that contradict each other.
fn check_law(path: &str, kind: &TransportKind, report: &mut Report) {
    if let Some((key, message)) = kind.check() {
        let key = format!("{path}.{key}");
        report.wrong(&key, message);
    }
}

fn check_names(s: &Settings, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for t in &s.traffic {
        let name = t.name();
        let path = format!("traffic.{name}.name");
        if let Err(message) = check_folder_name(&name) {
            report.wrong(&path, message);
        }
        if ["all", "mice", "elephants"].contains(&name.as_str()) {
            report.wrong(&path, format!("{name:?} is taken by the statistics"));
        }
        if !seen.insert(name.clone()) {
            report.clash(
                &path,
                format!("two traffics are called {name:?}"),
                "give each its own name",
            );
        }
    }
}

/// Reads the file that a topology names; `None` if it cannot be understood.
fn load_topology(s: &mut Settings, files: FilesAt<'_>, report: &mut Report) -> Option<()> {
    let TopologyParams::File(p) = &mut s.topology else { return Some(()) };
    match (p.path.clone(), &p.graph.0) {
        (Some(_), Some(_)) => {
            let message = "is given together with graph; give one of them";
            report.wrong("topology.path", message);
            None
        }
        (None, None) => {
            report.missing("topology", "[topology]", "path");
            None
        }
        (None, Some(_)) => Some(()),
        (Some(path), None) => {
            let at = report.at("topology.path");
            let list = files.graph(&path).map_err(|problem| report.add(at, problem)).ok()?;
            let p = FileParams { path: None, graph: Graph(Some(list)) };
            // An error on the network names its file.
            if let Err(faults) = Topology::build(&TopologyParams::File(p.clone())) {
                report.add(at, Problem::File { file: path, reason: faults[0].1.clone() });
                return None;
            }
            s.topology = TopologyParams::File(p);
            Some(())
        }
    }
}

/// The key of a traffic's file.
fn of_file(name: &str) -> String {
    format!("traffic.{name}.file")
}

/// The file of traffic by rank programs, its digest and its form.
fn program_of(
    kind: &mut TrafficParams,
) -> Option<(&mut ProgramFile, &mut Option<String>, ProgramForm)> {
    match kind {
        TrafficParams::Goal(GoalParams { file, digest, .. }) => {
            Some((file, digest, ProgramForm::Goal))
        }
        TrafficParams::Simai(SimaiParams { file, digest, iterations, .. }) => {
            Some((file, digest, ProgramForm::Simai(*iterations)))
        }
        TrafficParams::Chakra(ChakraParams { file, groups, digest, .. }) => {
            Some((file, digest, ProgramForm::Chakra(groups.clone())))
        }
        _ => None,
    }
}

fn load_program(
    file: &mut ProgramFile,
    digest: &mut Option<String>,
    form: ProgramForm,
    files: FilesAt<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), Problem> {
    let (program, now) = files.program(&file.path, form, digest.as_deref())?;
    warnings.extend(program.notes.iter().map(|note| format!("{}: {note}", file.path)));
    (file.program, *digest) = (Some(program), Some(now));
    Ok(())
}

/// Reads the files that traffic names, so that nothing after this touches a disk.
fn load_files(s: &mut Settings, files: FilesAt<'_>, hosts: u32, report: &mut Report) {
    let mut traffic = std::mem::take(&mut s.traffic);
    for t in &mut traffic {
        let name = t.name();
        if let Some((file, digest, form)) = program_of(&mut t.kind) {
            load_program(file, digest, form, files, &mut report.warnings)
                .unwrap_or_else(|wrong| report.add(report.at(&of_file(&name)), wrong));
            continue;
        }
        match &mut t.kind {
            TrafficParams::Poisson(p) => {
                let SizeSpec::File { path, shape, digest, points } = &mut p.sizes else { continue };
                match files.sizes(path, *shape, digest.as_deref()) {
                    Ok((cdf, now)) => (*points, *digest) = (Some(cdf), Some(now)),
                    Err(problem) => {
                        report.add(report.at(&format!("traffic.{name}.sizes")), problem)
                    }
                }
            }
            TrafficParams::Flows(p) => {
                match (&p.file, &p.rows.0) {
                    (Some(_), Some(_)) => {
                        let message = "is given together with rows; give one of them";
                        report.value(report.at(&of_file(&name)), "file", message);
                    }
                    (None, None) => {
                        let (path, table) =
                            (format!("traffic.{name}"), format!("traffic {name:?}"));
                        report.missing(&path, &table, "file");
                    }
                    (Some(path), None) => match files.flows(path, hosts, p.digest.as_deref()) {
                        Ok((table, now)) => (p.rows, p.digest) = (FlowRows(Some(table)), Some(now)),
                        Err(problem) => report.add(report.at(&of_file(&name)), problem),
                    },
                    (None, Some(table)) => {
                        let path = format!("traffic.{name}.rows");
                        let wrong: Vec<String> = table
                            .rows
                            .iter()
                            .filter_map(|row| check_row(row, hosts).err())
                            .collect();
                        // Whatever builds on the rows takes their hosts for granted.
                        if !wrong.is_empty() {
                            p.rows = FlowRows(None);
                        }
                        wrong.into_iter().for_each(|text| report.wrong(&path, text));
                    }
                }
            }
            _ => {}
        }
    }
    s.traffic = traffic;
}

/// Flows or points beyond this stay in their file, which the resolved scenario then names, with its
/// digest.
const ROWS_INLINE_MAX: usize = 10_000;

/// Writes out what was left to a rule, so that the resolved text has it: names, load
/// bases, file contents.
fn settle(s: &mut Settings, topology: &Topology) {
    for a in &mut s.applications {
        a.common.name = Some(a.name());
    }
    for p in &mut s.programs {
        p.name = Some(p.name());
    }
    for l in &mut s.limits {
        l.common.name = Some(l.name());
    }
    for t in &mut s.traffic {
        t.common.name = Some(t.name());
        match &mut t.kind {
            TrafficParams::Poisson(p) => {
                p.load_base = p.load_base.settled(topology.fabric_capacity());
                if let SizeSpec::File { points: Some(cdf), .. } = &p.sizes
                    && cdf.points().len() <= ROWS_INLINE_MAX
                {
                    p.sizes = SizeSpec::Points(cdf.clone());
                }
            }
            TrafficParams::Flows(p) => {
                let inline =
                    p.rows.0.as_ref().is_some_and(|table| table.rows.len() <= ROWS_INLINE_MAX);
                if inline {
                    (p.file, p.digest) = (None, None);
                } else if p.file.is_some() {
                    p.rows = FlowRows(None);
                }
            }
            _ => {}
        }
    }
}

/// The longest round trip of a full packet and an answer without payload.
fn round_trip(topology: &Topology, host: &HostPlan) -> Time {
    topology.longest_round_trip(host.packet_max(), host.wire_bytes(0), |rate| host.late(rate))
}
