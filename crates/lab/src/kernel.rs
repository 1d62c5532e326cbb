//! The transport of a plan in the kernel: applied keys, and the kernel's own values.
//!
//! | key | in the kernel |
//! |---|---|
//! | `transport.kind` | `TCP_CONGESTION` of each socket |
//! | `transport.initial-window` | `initcwnd` of the route |
//! | `transport.min-rto` | `rto_min` of the route, a jiffy at least |
//! | `transport.mss`, `host.mtu` | the interface's MTU, `advmss` of the route |
//! | `transport.pacing` | the qdisc `fq`, where interfaces have it |
//! | `transport.delayed-ack` | `quickack` of the route, if every packet is acknowledged |
//! | `transport.sack`, `tlp`, `restart-after-idle`, ECN | sysctls of the namespace |
//!
//! Invariant: a key with a counterpart in the kernel is applied. Where the kernel has a constant,
//! the plan gets its value ([`constants`]). A warning names all other keys that a user has set
//! ([`ignored`]).

use millpond_core::congestion::{DctcpReduce, Echo};
use millpond_core::importance::{First, ImportanceParams};
use millpond_core::params::Params;
use millpond_core::registry::Choice;
use millpond_core::{Bytes, Time};
use millpond_scenario::plan::Plan;
use millpond_scenario::transport::{
    Deferral, LossDetection, Pacing, Reduction, TransportKind, TransportParams,
};
use millpond_scenario::{HEADER_BYTES, TIMESTAMP_BYTES};

/// The kernel's retransmission timeout before it has measured a round trip (RFC 6298 (2.1)).
pub const INITIAL_RTO: Time = Time::from_s(1);
/// The longest that the kernel delays an acknowledgement (`TCP_DELACK_MIN`).
pub const DELAYED_ACK: Time = Time::from_ms(40);

/// The kernel's shortest probe timer, which a sender waits for whose host refuses its packets.
pub const PROBE_TIMER: Time = Time::from_ms(200);

/// The share by which CUBIC's window grows a round trip before the first loss.
const FIRST_GROWTH: f64 = 0.05;

const PS_PER_MS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The world whose hosts have it, as messages name it.
    pub world: &'static str,
    /// The length of a jiffy, which timers count.
    pub jiffy: Time,
    /// Whether its CUBIC ends slow start by HyStart.
    pub has_hystart: bool,
    /// The bytes of a flow in its host's queue from which on TCP small queues hold it back; `None`:
    /// they never do.
    pub small_queue: Option<Bytes>,
    /// Whether the simulator beside it has the kernel's deferral of segments, its timers' ticks,
    /// its interrupts and its time stamps. Beside a lab their effect is not measured yet.
    pub has_ticks: bool,
    /// Whether its interfaces have the qdisc `fq`, which spaces segments by TCP's pacing rate.
    pub has_fq: bool,
}

impl Kernel {
    /// This machine's, in a lab: a jiffy at 250 Hz, the default of most distributions, since the
    /// kernel does not report its own. A TAP takes a socket's bytes off its account at once, so TCP
    /// small queues hold nothing back.
    pub fn of_lab() -> Kernel {
        Kernel {
            world: "lab",
            jiffy: Time::from_ms(4),
            has_hystart: has_hystart(),
            small_queue: None,
            has_ticks: false,
            has_fq: setting("/proc/sys/net/core/default_qdisc").is_some_and(|qdisc| qdisc == "fq"),
        }
    }

    /// One that `make setup-virtual` builds. Its TCP small queues hold what the pacing rate gives
    /// in 1/1024 s, `tcp_limit_output_bytes` at most. With a datacenter's round trips the latter is
    /// nearly always the less.
    pub const VIRTUAL: Kernel = Kernel {
        world: "virtual",
        jiffy: Time::from_ms(1),
        has_hystart: true,
        small_queue: Some(Bytes(1 << 20)),
        has_ticks: true,
        has_fq: false,
    };
}

/// The keys of `[transport]` that are applied, beside those that [`values`] has.
const APPLIED: [&str; 5] = ["mss", "initial-window", "tlp", "sack", "restart-after-idle"];

/// The kernel's name of a transport. Kernels without DCTCP have the project's, by struct_ops.
pub fn congestion(kind: &TransportKind, has_dctcp: bool) -> &'static str {
    match kind.kind() {
        "newreno" => "reno",
        "dctcp" if has_dctcp => "dctcp",
        "dctcp" => "mp_dctcp",
        _ => "cubic",
    }
}

/// Whether some transport of the plan reacts to marks.
pub fn uses_ecn(plan: &Plan) -> bool {
    plan.transports().any(|kind| !matches!(kind.demands().echo, Echo::Off))
}

/// Keys below `/proc/sys/net/ipv4` of a host's namespace, and their values.
pub fn settings(plan: &Plan) -> Vec<(&'static str, String)> {
    let transport = &plan.transport;
    let flag = |is_on: bool| u8::from(is_on).to_string();
    vec![
        // One run's knowledge of the path must not help or hurt the next.
        ("tcp_no_metrics_save", "1".into()),
        ("tcp_ecn", flag(uses_ecn(plan))),
        ("tcp_sack", flag(transport.sack)),
        ("tcp_early_retrans", if transport.tlp { "3" } else { "0" }.into()),
        ("tcp_slow_start_after_idle", flag(transport.restart_after_idle)),
        // Thousands of flows from one address, each with a port of its own.
        ("ip_local_port_range", "1024 65535".into()),
        ("tcp_tw_reuse", "1".into()),
        ("tcp_max_tw_buckets", "1024".into()),
        ("tcp_max_syn_backlog", "65536".into()),
        ("tcp_syncookies", "0".into()),
    ]
}

/// `rto_min` of a route in milliseconds: one jiffy at least.
pub fn rto_min(plan: &Plan, kernel: &Kernel) -> u64 {
    plan.transport.min_rto.max(kernel.jiffy).as_ps().div_ceil(PS_PER_MS)
}

/// Bytes of options that the kernel takes off the segment size that is advertised.
pub fn options(plan: &Plan) -> u32 {
    plan.host.headers - HEADER_BYTES
}

/// The attributes of a host's route to all others.
pub fn route(plan: &Plan, kernel: &Kernel) -> String {
    let transport = &plan.transport;
    let mut attributes =
        format!("initcwnd {} rto_min {}ms", transport.initial_window, rto_min(plan, kernel));
    if transport.delayed_ack == 1 {
        attributes += " quickack 1";
    }
    if let Some(mss) = transport.mss {
        attributes += &format!(" advmss {}", mss + options(plan));
    }
    attributes
}

/// Keys that have a value of the kernel's own: whether the plan has it, or means nothing by the
/// key; and the value.
fn values(plan: &Plan, kernel: &Kernel) -> Vec<(&'static str, bool, String)> {
    let (transport, host) = (&plan.transport, &plan.host);
    let min = Time::from_ms(rto_min(plan, kernel));
    let is_immediate = transport.delayed_ack == 1;
    let is_delayed = is_immediate || transport.delayed_ack_timeout == DELAYED_ACK;
    let probes = plan.limits.is_empty() || transport.probe_timer == PROBE_TIMER;
    let queue = kernel.small_queue.map_or("off".to_string(), |bytes| bytes.to_string());
    let ticks = !kernel.has_ticks || transport.jiffy == Some(kernel.jiffy);
    let is_tcp = plan.transports().all(|kind| kind.demands().family.is_tcp());
    let has_stamps = !kernel.has_ticks || transport.timestamps || !is_tcp;
    let interrupts = !kernel.has_ticks || host.nic.interrupts || !is_tcp;
    let room = host.mtu - HEADER_BYTES - TIMESTAMP_BYTES;
    let fits = has_stamps || transport.mss.is_none_or(|mss| mss <= room);
    let defers = !kernel.has_ticks || !transport.sack || transport.deferral == Deferral::Linux;
    // A kernel's timers go on while a virtual switch holds its flow.
    let freezes = plan.edge.virtual_switch.speaking().is_some_and(|it| it.freeze_timers);
    // Whether TCP finds a segment out of order is known to the kernel alone.
    let reorders = host.receive_cpu.as_ref().map(|cost| cost.per_out_of_order);
    let is_free = reorders.is_none_or(|cost| cost == Time::ZERO);
    let mut values = vec![
        ("transport.min-rto", transport.min_rto == min, min.to_string()),
        ("transport.initial-rto", transport.initial_rto == INITIAL_RTO, INITIAL_RTO.to_string()),
        ("transport.delayed-ack-timeout", is_delayed, DELAYED_ACK.to_string()),
        ("transport.delayed-ack", transport.delayed_ack <= 2, "2".into()),
        // The kernel has had no other since 6.17; before that it was the default.
        (
            "transport.loss-detection",
            !transport.sack || transport.loss_detection == LossDetection::Rack,
            "rack".into(),
        ),
        ("transport.probe-timer", probes, PROBE_TIMER.to_string()),
        (
            "transport.reduction",
            !transport.sack || transport.reduction == Reduction::Prr,
            "prr".into(),
        ),
        ("transport.fixed-rto", transport.fixed_rto.is_none(), "off".into()),
        ("transport.handshake", transport.handshake, "true".into()),
    ];
    match &plan.transport_kind {
        TransportKind::Cubic(cubic) => {
            let has = kernel.has_hystart;
            let grows = !kernel.has_ticks || cubic.cubic_first_growth == FIRST_GROWTH;
            values.push(("transport.cubic-hystart", cubic.cubic_hystart == has, has.to_string()));
            values.push(("transport.cubic-first-growth", grows, FIRST_GROWTH.to_string()));
        }
        TransportKind::Dctcp(dctcp) => {
            let first = dctcp.dctcp_reduce == DctcpReduce::FirstMark;
            values.push(("transport.dctcp-reduce", first, "first-mark".into()));
        }
        _ => {}
    }
    values.extend([
        ("host.nic.per-flow-limit", host.nic.per_flow_limit == kernel.small_queue, queue),
        ("host.nic.interrupts", interrupts, "true".into()),
        ("host.mss", fits, room.to_string()),
        ("transport.timestamps", has_stamps, "true".into()),
        ("transport.handshake-ack", !kernel.has_ticks || transport.handshake_ack, "true".into()),
        ("transport.jiffy", ticks, kernel.jiffy.to_string()),
        ("transport.deferral", defers, "linux".into()),
        ("transport.pacing", kernel.has_fq || transport.pacing == Pacing::Off, "off".into()),
        ("edge.virtual-switch.freeze-timers", !freezes, "false".into()),
        ("host.receive-cpu.per-out-of-order", is_free, "0us".into()),
        ("host.stack-delay", host.stack_delay == Time::ZERO, "0us".into()),
    ]);
    values
}

/// The values of the plan's keys that the kernel has instead of the plan's own: what a simulation
/// of the same hosts takes.
pub fn constants(plan: &Plan, kernel: &Kernel) -> Vec<(String, String)> {
    let other = values(plan, kernel).into_iter().filter(|(_, is, _)| !is);
    other.map(|(key, _, value)| (key.to_string(), value)).collect()
}

/// Whether the kernel's CUBIC ends slow start by HyStart: a setting of the machine, which the lab
/// leaves alone.
fn has_hystart() -> bool {
    setting("/sys/module/tcp_cubic/parameters/hystart").is_none_or(|value| value != "0")
}

/// The value of a setting of this machine, if its kernel has it.
fn setting(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

/// A sentence that names these constants; `None`: there are none.
pub fn note(constants: &[(String, String)], kernel: &Kernel) -> Option<String> {
    let text = |(key, value): &(String, String)| match key.as_str() {
        "transport.pacing" => format!("{key} is {value} (a kernel paces behind the qdisc fq)"),
        _ => format!("{key} is {value}"),
    };
    let list: Vec<String> = constants.iter().map(text).collect();
    (!list.is_empty())
        .then(|| format!("{}: as the kernel has it, {}", kernel.world, list.join(", ")))
}

/// A sentence that names the keys of `[transport]` which the kernel decides by itself although the
/// plan, as its user wrote it, sets them otherwise than by default; `None`: there are none.
pub fn ignored(plan: &Plan, kernel: &Kernel) -> Option<String> {
    let mut keys = set_keys(&plan.transport, &TransportParams::default());
    let kind = &plan.transport_kind;
    let default = TransportKind::of_kind(kind.kind()).unwrap_or_default();
    keys.extend(set_keys(kind.params(), default.params()));
    let own = values(plan, kernel);
    let has = |key: &str| own.iter().any(|(own, ..)| own.strip_prefix("transport.") == Some(key));
    keys.retain(|key| !APPLIED.contains(&key.as_str()) && !has(key));
    let first = match &plan.transport_choices.importance {
        ImportanceParams::Tlt(tlt) => tlt.first != First::First,
        ImportanceParams::None(_) => false,
    };
    if first {
        // It cannot find the last packet of a window.
        keys.push("importance.first (a shim marks the first packet)".into());
    }
    let keys: Vec<String> = keys.iter().map(|key| format!("transport.{key}")).collect();
    let world = kernel.world;
    (!keys.is_empty())
        .then(|| format!("{world}: the kernel decides by itself: {}", keys.join(", ")))
}

/// The keys whose values are not the default.
fn set_keys(of: &dyn Params, default: &dyn Params) -> Vec<String> {
    let is_set = |at: &usize| of.get(*at) != default.get(*at);
    (0..of.keys().len()).filter(is_set).map(|at| of.keys()[at].name()).collect()
}

/// The largest packet that a host's interface takes: the MTU, or one with the largest payload.
pub fn mtu(plan: &Plan) -> u32 {
    let by_mss = plan.transport.mss.map_or(u32::MAX, |mss| mss.saturating_add(plan.host.headers));
    plan.host.mtu.min(by_mss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_scenario::Scenario;

    const TEXT: &str = "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
                        [[traffic]]\nkind = \"permutation\"\nsize = 1\n[[limit]]\nname = \"a\"\n\
                        hosts = 0\n";

    #[test]
    fn pacing_without_fq_is_off_with_a_note_of_its_condition() {
        let set = [("transport.pacing".to_string(), "linux".to_string())];
        let plan = Scenario::parse("a", TEXT).unwrap().plan(None, &set, None).unwrap();
        let found = |kernel: &Kernel| note(&constants(&plan, kernel), kernel).unwrap();
        let has = "transport.pacing is off (a kernel paces behind the qdisc fq)";
        let without = found(&Kernel::VIRTUAL);
        assert!(without.contains(has) && ignored(&plan, &Kernel::VIRTUAL).is_none(), "{without}");
        assert!(!found(&Kernel { has_fq: true, ..Kernel::VIRTUAL }).contains("pacing"));
    }

    #[test]
    fn a_plan_with_the_kernels_constants_has_no_others() {
        for kind in ["newreno", "cubic", "dctcp"] {
            let kind = ("transport.kind".to_string(), kind.to_string());
            let mut set = vec![kind, ("transport.probe-timer".into(), "20ms".into())];
            let scenario = Scenario::parse("a", TEXT).unwrap();
            let found = constants(&scenario.plan(None, &set, None).unwrap(), &Kernel::of_lab());
            for key in ["transport.reduction", "transport.probe-timer", "host.nic.per-flow-limit"] {
                assert!(found.iter().any(|(name, _)| name == key), "{key} not in {found:?}");
            }
            set.retain(|(key, _)| key == "transport.kind");
            set.extend(found);
            let kernels = scenario.plan(None, &set, None).unwrap();
            assert_eq!(constants(&kernels, &Kernel::of_lab()), [], "{set:?}");
        }
    }
}
