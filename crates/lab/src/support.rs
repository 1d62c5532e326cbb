//! The keys of a plan that this world lacks: checked before anything is made.
//!
//! Invariant: a plan that passes runs with every mechanism that it names. Keys of the transport
//! that the kernel decides by itself are in a warning ([`crate::kernel::ignored`]), never silent.

use crate::Error;
use crate::address::HOSTS_MAX;
use millpond_core::host::virtual_switch::Per;
use millpond_core::registry::Choice;
use millpond_core::switch::pause::Pause;
use millpond_scenario::limit::LimitPlan;
use millpond_scenario::plan::Plan;
use millpond_scenario::settings::limit::LimitKind;
use millpond_scenario::topology::{End, LinkSite};

/// Transports that the kernel, or this project's struct_ops program, has.
const TRANSPORTS: [&str; 3] = ["newreno", "cubic", "dctcp"];
/// Load balancing that needs nothing of the connection but its packets.
const BALANCING: [&str; 3] = ["none", "presto", "flowlet"];

/// A reason to refuse a plan: the key, and the text.
type Lack = (&'static str, String);

/// Refuses a plan that names something which this world lacks.
///
/// # Errors
/// [`Error::Unsupported`] with the first such key.
pub fn check(plan: &Plan) -> Result<(), Error> {
    refuse(
        plan,
        &[
            all_kernels,
            transports,
            edges,
            virtual_switches,
            switches,
            hosts,
            cores,
            kinds,
            limits,
            network,
        ],
    )
}

/// The same for hosts that are kernels in virtual time.
///
/// # Errors
/// As [`check`].
pub fn check_virtual(plan: &Plan) -> Result<(), Error> {
    refuse(plan, &[stacks, transports, edges, virtual_switches, pauses, hosts, limits, network])
}

fn refuse(plan: &Plan, lacks: &[fn(&Plan) -> Option<Lack>]) -> Result<(), Error> {
    match lacks.iter().find_map(|lack| lack(plan)) {
        Some((key, reason)) => Err(Error::unsupported(key, reason)),
        None => Ok(()),
    }
}

/// The first of these that holds.
fn first<const N: usize>(lacks: [(bool, &'static str, &str); N]) -> Option<Lack> {
    let found = lacks.into_iter().find(|(holds, ..)| *holds);
    found.map(|(_, key, reason)| (key, reason.to_string()))
}

fn all_kernels(plan: &Plan) -> Option<Lack> {
    let reason = "in the lab all hosts are Linux: leave it out";
    plan.host.stacks.is_some().then(|| ("host.linux", reason.to_string()))
}

/// Parts that take all hosts to be kernels.
fn stacks(plan: &Plan) -> Option<Lack> {
    plan.host.stacks.as_ref()?;
    first([
        (
            !plan.capture.taps.is_empty(),
            "capture.pcap",
            "packets of modelled hosts have no bytes: leave host.linux out to capture",
        ),
        (
            plan.edge.virtual_switch.kind() != "none",
            "edge.virtual-switch",
            "virtual switches of kernels and of modelled hosts do not speak with each other: leave \
             host.linux out",
        ),
    ])
}

fn transports(plan: &Plan) -> Option<Lack> {
    // Classes of modelled hosts have what the simulator has.
    let of_kernels = |class: &usize| plan.host.is_of_linux(*class as u16);
    let own = (0..plan.traffic.transports.len()).filter(of_kernels);
    let others: Vec<u8> = own.map(|class| plan.traffic.transports[class]).collect();
    let is_used = |(number, _): &(usize, _)| *number == 0 || others.contains(&(*number as u8));
    let mut used = plan.transports().enumerate().filter(is_used).map(|(_, kind)| kind);
    if let Some(kind) = used.find(|kind| !TRANSPORTS.contains(&kind.kind())) {
        let known = TRANSPORTS.map(|kind| format!("\"{kind}\"")).join(", ");
        let reason = format!("Linux has no \"{}\"; this world has {known}", kind.kind());
        return Some(("transport.kind", reason));
    }
    let choices = &plan.transport_choices;
    let restores = choices.ordering.kind() != "none";
    first([
        (
            plan.traffic.jobs().any(|(class, _)| of_kernels(&class.into())),
            "traffic.kind",
            "jobs of ranks, such as \"collective\", run in the simulator alone",
        ),
        (
            others.iter().any(|number| *number != 0),
            "traffic.transport",
            "all sockets of real kernels have the scenario's transport",
        ),
        (
            (0..).zip(&plan.traffic.priorities).any(|(class, it)| *it != 0 && of_kernels(&class)),
            "traffic.priority",
            "hosts' kernels do not mark priorities",
        ),
        (
            choices.rank.kind() == "remaining-bytes",
            "transport.rank",
            "only the application knows the size of its message: use \"attained-service\"",
        ),
        (
            restores && plan.host.choices.receive_offload.kind() != "none",
            "transport.ordering",
            "order is restored below receive offload: set that to \"none\"",
        ),
    ])
}

fn edges(plan: &Plan) -> Option<Lack> {
    let balancing = plan.edge.load_balancing.kind();
    let reason = format!("\"{balancing}\" needs the connection's own state, or a scheduler");
    (!BALANCING.contains(&balancing)).then_some(("edge.load-balancing", reason))
}

/// Parts that a virtual switch cannot be beside, and costs that it cannot charge for a kernel's
/// connections.
fn virtual_switches(plan: &Plan) -> Option<Lack> {
    let holds = plan.edge.virtual_switch.speaking().is_some();
    first([
        (
            holds && plan.transport_choices.importance.kind() != "none",
            "transport.importance",
            "a shim does not learn which flows a virtual switch holds: use a kind that holds none",
        ),
        (
            plan.applications.iter().any(|application| application.costs.per == Per::Message),
            "application.per",
            "packets of kernels do not say where messages end: use \"packet\"",
        ),
    ])
}

fn switches(plan: &Plan) -> Option<Lack> {
    let reason = "the lab's hosts do not pause: use lossy switches";
    first([(Pause::new(&plan.switch.pause).is_active(), "switch.pause", reason)])
}

/// Of the pauses hosts obey those of their whole link.
fn pauses(plan: &Plan) -> Option<Lack> {
    let kind = plan.switch.pause.kind();
    let reason = format!("hosts' interfaces obey \"pfc\", and not \"{kind}\"");
    (!["none", "pfc"].contains(&kind)).then_some(("switch.pause", reason))
}

fn cores(plan: &Plan) -> Option<Lack> {
    let (cost, real) = ("code costs what this machine needs for it", "kernels have their own");
    first([
        (plan.host.receive_cpu.is_some(), "host.receive-cpu", cost),
        (plan.host.nic.interrupts, "host.nic.interrupts", real),
    ])
}

fn hosts(plan: &Plan) -> Option<Lack> {
    let nic = &plan.host.nic;
    first([
        (nic.buffer.is_some(), "host.nic.buffer", "a host's NIC has no limit here"),
        (nic.marking.kind() != "none", "host.nic.marking", "a host's NIC does not mark here"),
        (
            plan.host.frame_overhead > 65_535 - plan.host.mtu,
            "host.frame-overhead",
            "with the MTU it exceeds 65535 bytes",
        ),
    ])
}

fn kinds(plan: &Plan) -> Option<Lack> {
    let is_htb = |limit: &&LimitPlan| matches!(limit.kind, LimitKind::Htb(_));
    let limit = plan.limits.iter().find(is_htb)?;
    let reason = format!("{:?} is of kind \"htb\"; the lab has \"nrm\" alone", limit.name);
    Some(("limit.kind", reason))
}

fn limits(plan: &Plan) -> Option<Lack> {
    // A cgroup has one limit of its own.
    let shares = |a: &LimitPlan, b: &LimitPlan| {
        let has = |class: &u16| b.classes.as_ref().is_none_or(|all| all.contains(class));
        a.hosts.iter().any(|host| b.hosts.binary_search(host).is_ok())
            && (a.classes.as_ref().is_none_or(|all| all.iter().any(has)))
    };
    let pairs = plan.limits.iter().enumerate();
    let mut pairs =
        pairs.flat_map(|(i, a)| plan.limits[i + 1..].iter().map(move |other| (a, other)));
    let (one, other) = pairs.find(|(a, b)| shares(a, b))?;
    let (one, other) = (&one.name, &other.name);
    let reason = format!(
        "{one:?} and {other:?} have the same traffic of a host: without hosts, one of them can be \
         a scope of the other"
    );
    Some(("limit.hosts", reason))
}

fn network(plan: &Plan) -> Option<Lack> {
    let topology = &plan.topology;
    if topology.hosts > HOSTS_MAX {
        let reason = format!("{} hosts; the lab has {HOSTS_MAX} at most", topology.hosts);
        return Some(("topology.hosts", reason));
    }
    let is_direct = |link: &LinkSite| matches!((link.a, link.b), (End::Host(_), End::Host(_)));
    let reason = "two hosts share a link without a switch";
    let several = "a host with several links; hosts of the lab have one NIC each";
    first([
        (topology.links.iter().any(is_direct), "topology.links", reason),
        (topology.has_several_nics(), "topology.links", several),
    ])
}
