//! The keys of a plan that this world lacks: checked before anything is made.
//!
//! Invariant: a plan that passes runs with every mechanism that it names; what the kernel does
//! otherwise is a note ([`crate::kernel`]), never silence.

use crate::Error;
use crate::address::HOSTS_MAX;
use millpond_core::registry::Choice;
use millpond_core::switch::pause::Pause;
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::End;

/// Transports that the kernel, or this project's struct_ops program, has.
const TRANSPORTS: [&str; 3] = ["newreno", "cubic", "dctcp"];

/// Refuses a plan that names something which this world lacks.
///
/// # Errors
/// [`Error::Unsupported`] with the first such key.
pub fn check(plan: &Plan) -> Result<(), Error> {
    let unsupported = |key: &str, reason: String| Err(Error::unsupported(key, reason));
    for kind in plan.transports() {
        if !TRANSPORTS.contains(&kind.kind()) {
            let reason = format!(
                "Linux has no \"{}\"; this world has {}",
                kind.kind(),
                TRANSPORTS.map(|kind| format!("\"{kind}\"")).join(", ")
            );
            return unsupported("transport.kind", reason);
        }
    }
    let balancing = plan.edge.load_balancing.kind();
    if !["none", "presto", "flowlet"].contains(&balancing) {
        let reason = format!("\"{balancing}\" needs the connection's own state, or a scheduler");
        return unsupported("edge.load-balancing", reason);
    }
    for (key, kind, instead) in
        [("edge.virtual-switch", plan.edge.virtual_switch.kind(), "run `millpond switch`")]
    {
        if kind != "none" {
            return unsupported(key, format!("this world does not have \"{kind}\" yet: {instead}"));
        }
    }
    if plan.transport_choices.rank.kind() == "remaining-bytes" {
        let reason = "only the application knows the size of its message: use \"attained-service\"";
        return unsupported("transport.rank", reason.to_string());
    }
    let restores = plan.transport_choices.ordering.kind() != "none";
    if restores && plan.host.choices.receive_offload.kind() != "none" {
        let reason = "the lab restores order below receive offload: set that to \"none\"";
        return unsupported("transport.ordering", reason.to_string());
    }
    if Pause::new(&plan.switch.pause).is_active() {
        let reason = "the lab's hosts do not pause: use lossy switches".to_string();
        return unsupported("switch.pause", reason);
    }
    if !plan.limits.is_empty() {
        let reason = "the lab does not limit hosts yet: use `millpond limit`".to_string();
        return unsupported("limit", reason);
    }
    if plan.host.receive_cpu.is_some() {
        return unsupported("host.receive-cpu", "the lab's hosts share the real CPU".to_string());
    }
    if !plan.failures.is_empty() {
        return unsupported("failure", "the lab's links do not fail yet".to_string());
    }
    if plan.capture.queues.is_some() || plan.capture.connections.is_some() {
        let reason = "the lab does not sample queues or connections yet".to_string();
        return unsupported("capture", reason);
    }
    if !plan.capture.taps.is_empty() {
        return unsupported("capture.pcap", "the lab captures no links yet".to_string());
    }
    network(plan)
}

fn network(plan: &Plan) -> Result<(), Error> {
    let topology = &plan.topology;
    if topology.hosts > HOSTS_MAX {
        let reason = format!("{} hosts; the lab has {HOSTS_MAX} at most", topology.hosts);
        return Err(Error::unsupported("topology.hosts", reason));
    }
    let direct = |link: &&millpond_scenario::topology::LinkSite| {
        matches!((link.a, link.b), (End::Host(_), End::Host(_)))
    };
    if topology.links.iter().any(|link| direct(&link)) {
        let reason = "two hosts share a link without a switch".to_string();
        return Err(Error::unsupported("topology.links", reason));
    }
    if plan.host.frame_overhead > 65_535 - plan.host.mtu {
        let reason = format!("{} bytes are no framing", plan.host.frame_overhead);
        return Err(Error::unsupported("host.frame-overhead", reason));
    }
    Ok(())
}
