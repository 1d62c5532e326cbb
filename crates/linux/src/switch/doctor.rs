//! The kernel's offers for a switch, and the cost of each lack; the access that an installed switch
//! leaves open to its tenants.
//!
//! Invariant: it leaves nothing behind; what can be tried is tried, not guessed from a version.

use super::config::{Config, PortKind, PortParams};
use super::error::run;
use super::reading::{PortReading, Reading};
use super::scheduling;
use super::supervise::Restarts;
use crate::dataplane::port::tap::TapSettings;
use crate::dataplane::port::{AfPacket, Tap};
use crate::limit::doctor::{Finding, State, read};
use chrono::{DateTime, SecondsFormat};
use millpond_worlds::namespace;
use std::fs;

pub fn examine() -> Vec<Finding> {
    let name = format!("mpdoctor{}", std::process::id() % 100_000);
    let tap = Tap::open(&TapSettings { device: name, persistent: false });
    let packet = AfPacket::open("lo");
    let ip = run("ip", &["-V"]);
    let own = namespace::within(Some("/proc/self/ns/net"), || ());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let default = read("/proc/sys/net/ipv4/tcp_congestion_control");
    let found = |result: Result<(), String>| result.map_or_else(|e| e, |()| "tried: yes".into());
    vec![
        Finding::new(
            "TAP with offloads",
            tap.is_ok(),
            State::Fatal,
            found(tap.as_ref().map(|_| ()).map_err(|e| e.to_string())),
            "no tap port can be made: load the module tun, run as root or with CAP_NET_ADMIN",
        ),
        Finding::new(
            "packet sockets",
            packet.is_ok(),
            State::Lacking,
            found(packet.as_ref().map(|_| ()).map_err(|e| e.to_string())),
            "no af-packet port can be attached: CAP_NET_RAW, and CONFIG_PACKET in the kernel",
        ),
        Finding::new(
            "namespaces",
            own.is_ok(),
            State::Lacking,
            found(own.as_ref().map(|_| ()).map_err(|e| e.to_string())),
            "ports must be in the switch's own network namespace: entering others takes \
             CAP_SYS_ADMIN",
        ),
        Finding::new(
            "ip",
            ip.is_ok(),
            State::Lacking,
            ip.unwrap_or_else(|e| e),
            "`addresses` of tap ports cannot be set: install iproute2, or set them otherwise",
        ),
        Finding::new(
            "cores",
            cores > 1,
            State::Lacking,
            cores.to_string(),
            "the poll loop takes turns with who sends and receives",
        ),
        Finding::new(
            "congestion control",
            default != "bbr",
            State::Lacking,
            default.clone(),
            "throughput over several paths was measured lower with BBR, whose model takes \
             reordering and batches amiss; use cubic",
        ),
    ]
}

/// Looks at a running switch for half a second: its group, and the processor time that it gets.
/// `None`: no such process runs.
pub fn examine_process(pid: u32) -> Option<Finding> {
    scheduling::examine(pid)
}

/// The restarts of a running switch by its supervisor; `None`: it has none.
pub fn examine_restarts(reading: &Reading) -> Option<Finding> {
    let count = reading.restarts?;
    let found = match &reading.restarted {
        Some(Restarts { unix_s, reason, .. }) => {
            let at = DateTime::from_timestamp(*unix_s as i64, 0).unwrap_or_default();
            let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
            format!("{count}; the last one at {at}, after {reason}")
        }
        None => "none".into(),
    };
    let cost = "a switch that ends by itself forwards nothing until its supervisor starts it \
                again: the log in the state folder has the reason";
    Some(Finding::new("restarts", count == 0, State::Lacking, found, cost))
}

/// Looks at the ports of a running switch for loops.
pub fn examine_ports(reading: &Reading) -> Finding {
    let notes: Vec<String> = reading.ports.iter().filter_map(PortReading::loop_note).collect();
    let found = if notes.is_empty() { "none".into() } else { notes.join("; ") };
    Finding::new(
        "loops",
        notes.is_empty(),
        State::Lacking,
        found,
        "nobody behind a blocked port is reached over it: remove the second way",
    )
}

/// Names a switch's ports or peers in a finding; so many.
const NAMED: usize = 5;

fn list(names: &[&str]) -> String {
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().checked_sub(NAMED).filter(|more| *more > 0) {
        Some(more) => format!("{first} and {more} more"),
        None => first,
    }
}

/// Whether one tenant is behind a port, of whom the file can name the address: a cable to other
/// hosts has many.
fn has_one_tenant(port: &PortParams) -> bool {
    match port.kind {
        PortKind::Tap | PortKind::Shared | PortKind::VhostUser => true,
        PortKind::AfPacket => port.gate,
        PortKind::Pcap => false,
    }
}

/// Looks at the configuration of an installed switch.
pub fn examine_config(config: &Config) -> Vec<Finding> {
    let open = |port: &&PortParams| has_one_tenant(port) && port.hardware_addresses.is_empty();
    let open: Vec<&str> = config.ports.iter().filter(open).map(|port| &port.name[..]).collect();
    let found = match open.is_empty() {
        true => "every tenant's port names its own".into(),
        false => format!("none at {}", list(&open)),
    };
    let addresses = Finding::new(
        "hardware addresses",
        open.is_empty(),
        State::Lacking,
        found,
        "a tenant can take over the address of a neighbour that is silent for a second: give the \
         port `hardware-addresses`, in the file or by the network's CNI plugin",
    );
    [addresses]
        .into_iter()
        .chain(underlay(
            config,
            "redirects",
            &["ipv4", "ipv6"],
            "accept_redirects",
            "whoever can forge a router's redirect (ICMP) can lead a path away: set \
             net.ipv4.conf.*.accept_redirects and net.ipv6.conf.*.accept_redirects to 0",
        ))
        .chain(underlay(
            config,
            "router advertisements",
            &["ipv6"],
            "accept_ra",
            "whoever can forge a router's advertisement (ICMPv6) can change routes and the MTU of \
             paths of IPv6: set net.ipv6.conf.*.accept_ra to 0 where addresses are fixed",
        ))
        .collect()
}

/// Interfaces of the calling thread's namespace that take such a message for the routes of paths.
fn accepting(families: &[&str], key: &str) -> Vec<String> {
    let accepts = |family: &str, name: &str| {
        !["", "0"].contains(&&read(&format!("/proc/sys/net/{family}/conf/{name}/{key}"))[..])
    };
    let names = |family: &str| fs::read_dir(format!("/proc/sys/net/{family}/conf"));
    let of_family = |family: &&str| {
        let found = names(family).into_iter().flatten().flatten();
        let found = found.map(|entry| entry.file_name().to_string_lossy().into_owned());
        // One that is made takes what `default` has; IPv4's `all` stands for every one.
        found.filter(|name| name != "lo" && accepts(family, name)).collect::<Vec<String>>()
    };
    let mut found: Vec<String> = families.iter().flat_map(of_family).collect();
    found.sort();
    found.dedup();
    found
}

/// Whether the kernel takes such messages of anybody in the underlay, where there are paths.
fn underlay(
    config: &Config,
    what: &'static str,
    families: &[&str],
    key: &str,
    cost: &'static str,
) -> Option<Finding> {
    let mut places: Vec<_> = config.paths.iter().map(|path| path.namespace.as_deref()).collect();
    places.sort();
    places.dedup();
    let look = |place: &Option<&str>| namespace::within(*place, || accepting(families, key));
    let found: Vec<String> =
        places.iter().flat_map(|place| look(place).unwrap_or_default()).collect();
    let names: Vec<&str> = found.iter().map(String::as_str).collect();
    let is_fine = names.is_empty();
    let found = if is_fine { "none taken".into() } else { format!("taken at {}", list(&names)) };
    (!places.is_empty()).then(|| Finding::new(what, is_fine, State::Lacking, found, cost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_without_hardware_addresses_are_a_finding() {
        let named = "[[port]]\nname = \"a\"\nhardware-addresses = [\"02:00:00:00:00:01\"]\n\
                     [[port]]\nname = \"wire\"\nkind = \"af-packet\"\n";
        let examine = |text: &str| {
            let found = examine_config(&Config::parse("a.toml", text).unwrap());
            found.into_iter().find(|it| it.what == "hardware addresses").unwrap()
        };
        assert_eq!(examine(named).state, State::Ok);
        let ports = |count: usize| {
            (0..count).map(|i| format!("[[port]]\nname = \"t{i}\"\n")).collect::<String>()
        };
        let found = examine(&format!("{named}{}", ports(2)));
        assert_eq!((found.state, &found.found[..]), (State::Lacking, "none at t0, t1"));
        assert!(examine(&ports(9)).found.ends_with("t4 and 4 more"));
    }
}
