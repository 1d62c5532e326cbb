//! The places of a lab: a namespace a host, with a TAP that the lab's process holds.
//!
//! Invariant: all of it belongs to one [`World`], so it is gone when that ends, however it ends.

use crate::address::{PREFIX, ip, mac};
use crate::kernel::Kernel;
use crate::{Error, kernel};
use millpond_linux::dataplane::port::tap::{Tap, TapSettings};
use millpond_linux::dataplane::port::{Port, within};
use millpond_linux::dataplane::slot::Slot;
use millpond_scenario::plan::Plan;
use millpond_worlds::{Namespace, World};

/// The name of a host's interface.
const DEVICE: &str = "eth0";
/// Packets that wait in the kernel while the lab's thread is busy; beyond, the kernel drops.
const QUEUE: u32 = 20_000;

/// A plan's namespaces, by host, and the ports to them.
pub struct Places {
    pub world: World,
    pub namespaces: Vec<Namespace>,
}

/// Makes the namespaces of a plan in a world, and a port to each. Their TCP has this congestion
/// control.
pub fn make(plan: &Plan, world: World, congestion: &str) -> Result<(Places, Vec<Slot>), Error> {
    let labels: Vec<String> = (0..plan.topology.hosts).map(|host| format!("host{host}")).collect();
    let namespaces = world.namespaces(&labels)?;
    let mut slots = Vec::new();
    for (host, namespace) in (0..).zip(&namespaces) {
        slots.push(host_place(plan, congestion, host, namespace)?);
    }
    Ok((Places { world, namespaces }, slots))
}

impl Places {
    /// Packets that hosts' interfaces have dropped: on their way out, since the lab's thread did
    /// not read them in time, and on their way in.
    pub fn dropped(&self) -> u64 {
        self.texts("dev").map(|text| drops(&text)).sum()
    }

    /// The counts of hosts' TCP, as `nstat` has it: expiries of retransmission timers, and segments
    /// sent again.
    pub fn counters(&self) -> [u64; 2] {
        let of = |file, group, name| self.texts(file).map(|text| counter(&text, group, name)).sum();
        [of("netstat", "TcpExt:", "TCPTimeouts"), of("snmp", "Tcp:", "RetransSegs")]
    }

    /// A file of `/proc/net` in each namespace.
    fn texts(&self, file: &str) -> impl Iterator<Item = String> {
        let path = format!("/proc/thread-self/net/{file}");
        let read = move |it: &Namespace| it.run(|| std::fs::read_to_string(&path)).ok()?.ok();
        self.namespaces.iter().filter_map(read)
    }
}

/// A counter in the text of `/proc/net/netstat` or `/proc/net/snmp`: a line of names, and one of
/// numbers, begin with the group.
fn counter(text: &str, group: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.split_whitespace().next() == Some(group));
    let (names, numbers) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut both = names.split_whitespace().zip(numbers.split_whitespace());
    both.find(|(other, _)| *other == name).map_or(0, |(_, number)| number.parse().unwrap_or(0))
}

/// The drops, either way, of a host's interface in the text of `/proc/net/dev`.
fn drops(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
    let numbers = line.unwrap_or_default().split_whitespace().map(|word| word.parse().unwrap_or(0));
    // Columns: bytes, packets, errors, drops, and four more; then the same for what it sent.
    numbers
        .enumerate()
        .filter(|(column, _)| [3, 11].contains(column))
        .map(|(_, n): (_, u64)| n)
        .sum()
}

fn host_place(
    plan: &Plan,
    congestion: &str,
    host: u32,
    namespace: &Namespace,
) -> Result<Slot, Error> {
    let keys = kernel::settings(plan);
    let set = || -> std::io::Result<bool> {
        // For programs.
        let default = std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", congestion);
        // No router and no neighbour speaks IPv6 here.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        keys.iter().try_for_each(|(key, value)| {
            std::fs::write(format!("/proc/sys/net/ipv4/{key}"), value).or_else(|e| {
                // A kernel without this key has no other behaviour to switch off.
                if e.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(e) }
            })
        })?;
        Ok(default.is_ok())
    };
    let what = || format!("setting TCP's keys in {}", namespace.name());
    let set = namespace.run(set).and_then(|done| done).map_err(|e| Error::system(what(), e))?;
    // A kernel that restricts a namespace's default to others does not restrict a route's.
    let control = if set { String::new() } else { format!(" congctl {congestion}") };
    let settings = TapSettings { device: DEVICE.into(), ..TapSettings::default() };
    let tap = within(Some(namespace.name()), || Tap::open(&settings))?;
    let mtu = kernel::mtu(plan);
    let (own, route) = (ip(host), kernel::route(plan, &Kernel::of_lab()));
    let subnet = ip(0).octets();
    namespace.ip(&format!(
        "link set {DEVICE} address {} mtu {mtu} txqueuelen {QUEUE}\n\
         addr add {own}/{PREFIX} dev {DEVICE} noprefixroute\n\
         link set {DEVICE} up\n\
         route add {}.{}.0.0/{PREFIX} dev {DEVICE} scope link src {own} {route}{control}\n",
        mac(host),
        subnet[0],
        subnet[1],
    ))?;
    Ok(Slot::new(format!("host{host}"), Some(Port::Tap(tap)), mtu as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_the_interface_are_counted_either_way() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop ...\n\
                    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    eth0: 100 2 0 5 0 0 0 0 900 7 0 6 0 0 0 0\n";
        assert_eq!(drops(text), 11);
        assert_eq!(drops("no such interface"), 0);
    }

    #[test]
    fn counters_are_found_by_group_and_name() {
        let text = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 4 17\nIpExt: TCPTimeouts\n\
                    IpExt: 5\n";
        assert_eq!(counter(text, "TcpExt:", "TCPTimeouts"), 17);
        assert_eq!(counter(text, "IpExt:", "TCPTimeouts"), 5);
        assert_eq!(counter(text, "TcpExt:", "RetransSegs"), 0);
    }
}
