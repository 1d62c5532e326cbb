//! What the kernel offers for a switch, and what a lack costs.
//!
//! Invariant: it leaves nothing behind; what can be tried is tried, not guessed from a version.

use crate::dataplane::port::tap::TapSettings;
use crate::dataplane::port::{AfPacket, Tap};
use crate::limit::doctor::{Finding, State};
use millpond_worlds::namespace;
use std::fs;
use std::process::Command;

fn finding(
    what: &'static str,
    fine: bool,
    bad: State,
    found: impl Into<String>,
    cost: &'static str,
) -> Finding {
    Finding { what, state: if fine { State::Ok } else { bad }, found: found.into(), cost }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

/// Looks at everything.
pub fn examine() -> Vec<Finding> {
    let name = format!("mpdoctor{}", std::process::id() % 100_000);
    let tap = Tap::open(&TapSettings { device: name, persistent: false, napi: false });
    let packet = AfPacket::open("lo");
    let ip = Command::new("ip").arg("-V").output();
    let own = namespace::within(Some("/proc/self/ns/net"), || ());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let default = read("/proc/sys/net/ipv4/tcp_congestion_control");
    let told = |result: Result<(), String>| result.map_or_else(|e| e, |()| "tried: yes".into());
    vec![
        finding(
            "TAP with offloads",
            tap.is_ok(),
            State::Fatal,
            told(tap.as_ref().map(|_| ()).map_err(|e| e.to_string())),
            "no tap port can be made: load the module tun, run as root or with CAP_NET_ADMIN",
        ),
        finding(
            "packet sockets",
            packet.is_ok(),
            State::Lacking,
            told(packet.as_ref().map(|_| ()).map_err(|e| e.to_string())),
            "no af-packet port can be attached: CAP_NET_RAW, and CONFIG_PACKET in the kernel",
        ),
        finding(
            "namespaces",
            own.is_ok(),
            State::Lacking,
            told(own.as_ref().map(|_| ()).map_err(|e| e.to_string())),
            "ports must be in the switch's own network namespace: entering others takes \
             CAP_SYS_ADMIN",
        ),
        finding(
            "ip",
            ip.as_ref().is_ok_and(|o| o.status.success()),
            State::Lacking,
            ip.map_or_else(
                |e| e.to_string(),
                |o| String::from_utf8_lossy(&o.stdout).trim().to_string(),
            ),
            "`addresses` of tap ports cannot be set: install iproute2, or set them otherwise",
        ),
        finding(
            "cores",
            cores > 1,
            State::Lacking,
            cores.to_string(),
            "the poll loop takes turns with who sends and receives",
        ),
        finding(
            "congestion control",
            default != "bbr",
            State::Lacking,
            default.clone(),
            "throughput over several paths was measured lower with BBR, whose model takes \
             reordering and batches amiss; use cubic",
        ),
    ]
}
