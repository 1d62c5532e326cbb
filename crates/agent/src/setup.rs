//! The host's files, its interfaces and its route, as ordered.
//!
//! Invariant: each function does all that it is asked for, or returns the kernel's error.

use crate::sys;
use crate::wire::{LINK, OWN_FOLDERS};
use rustix::mount::MountFlags;
use std::ffi::CStr;
use std::io::Result;

/// Where the machine's files are, read-only.
pub const MACHINE: &str = "/host";

/// Mounts what a host's programs expect, beside the image's own files.
pub fn mounts() -> Result<()> {
    mount("proc", "/proc", c"")?;
    mount("sysfs", "/sys", c"")?;
    mount("devtmpfs", "/dev", c"")?;
    OWN_FOLDERS.iter().try_for_each(|place| mount("tmpfs", place, c""))?;
    // A kernel of the user's may lack these, which nothing but programs and limits needs.
    let _ = mount("cgroup2", "/sys/fs/cgroup", c"");
    let _ = mount("bpf", "/sys/fs/bpf", c"mode=0700");
    Ok(())
}

fn mount(kind: &str, place: &str, options: &CStr) -> Result<()> {
    std::fs::create_dir_all(place).ok();
    Ok(rustix::mount::mount(kind, place, kind, MountFlags::empty(), options)?)
}

/// Waits until an interface that is up sends: before, the kernel loses its frames.
pub fn await_carrier(interface: &str) -> Result<()> {
    let state = format!("/sys/class/net/{interface}/operstate");
    for _ in 0..1000 {
        if std::fs::read_to_string(&state)?.trim() == "up" {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Err(std::io::Error::other(format!("{interface} has no carrier")))
}

/// Shows programs the machine's files, read-only, with this host's own where they write.
pub fn machine() -> Result<()> {
    if std::fs::exists("/host/bin").unwrap_or(false) {
        return Ok(());
    }
    std::fs::create_dir_all(MACHINE).ok();
    rustix::mount::mount("hostfs", MACHINE, "hostfs", MountFlags::RDONLY, c"/")?;
    for place in ["/proc", "/sys", "/dev"].into_iter().chain(OWN_FOLDERS) {
        rustix::mount::mount_bind_recursive(place, format!("{MACHINE}{place}"))?;
    }
    Ok(())
}

fn attribute(kind: u16, body: &[u8], into: &mut Vec<u8>) {
    let length = 4 + body.len();
    into.extend_from_slice(&(length as u16).to_ne_bytes());
    into.extend_from_slice(&kind.to_ne_bytes());
    into.extend_from_slice(body);
    into.resize(into.len().next_multiple_of(4), 0);
}

/// The subnet of the link's interface.
#[derive(Clone, Copy, Debug)]
pub struct Subnet {
    pub address: [u8; 4],
    /// Its bits.
    pub prefix: u8,
}

/// The attributes of a route beside its way; zero and empty: the kernel's own.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub initial_window: u32,
    /// The least retransmission timeout, in milliseconds.
    pub rto_min: u32,
    pub quickack: bool,
    pub mss: u32,
    pub congestion: String,
}

/// Replaces the route to the subnet by one with these metrics (`RTM_NEWROUTE`).
pub fn route(subnet: Subnet, metrics: &Metrics) -> Result<()> {
    let address = u32::from_be_bytes(subnet.address);
    let mask = u32::MAX.checked_shl(32 - u32::from(subnet.prefix)).unwrap_or(0);
    let mut attributes = Vec::new();
    attribute(libc::RTA_DST, &(address & mask).to_be_bytes(), &mut attributes);
    attribute(libc::RTA_OIF, &sys::index(LINK)?.to_ne_bytes(), &mut attributes);
    attribute(libc::RTA_PREFSRC, &subnet.address, &mut attributes);
    let mut inner = Vec::new();
    // include/uapi/linux/rtnetlink.h: RTAX_*. TCP takes a least timeout from a locked metric alone.
    if metrics.rto_min > 0 {
        attribute(1, &(1u32 << 13).to_ne_bytes(), &mut inner);
    }
    let quick = u32::from(metrics.quickack);
    let numbers =
        [(8, metrics.mss), (11, metrics.initial_window), (13, metrics.rto_min), (15, quick)];
    for (kind, value) in numbers {
        if value > 0 {
            attribute(kind, &value.to_ne_bytes(), &mut inner);
        }
    }
    if !metrics.congestion.is_empty() {
        let mut name = metrics.congestion.clone().into_bytes();
        name.push(0);
        attribute(16, &name, &mut inner);
    }
    attribute(libc::RTA_METRICS, &inner, &mut attributes);
    // `struct rtmsg`: family, bits of the destination, the main table, a route of the kernel's
    // protocol and of the link.
    let mut body = vec![libc::AF_INET as u8, subnet.prefix, 0, 0, libc::RT_TABLE_MAIN];
    body.extend_from_slice(&[libc::RTPROT_KERNEL, libc::RT_SCOPE_LINK, libc::RTN_UNICAST]);
    body.extend_from_slice(&0u32.to_ne_bytes());
    body.extend_from_slice(&attributes);
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    let mut message = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
    message.extend_from_slice(&libc::RTM_NEWROUTE.to_ne_bytes());
    message.extend_from_slice(&(flags as u16).to_ne_bytes());
    message.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    message.extend_from_slice(&body);
    sys::netlink(&message)
}

/// Counters of TCP, of `/proc/net/netstat` and `/proc/net/snmp`.
pub fn counters() -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let wanted = [
        ("netstat", "TcpExt:", "TCPTimeouts"),
        ("netstat", "TcpExt:", "TCPLossProbes"),
        ("netstat", "TcpExt:", "TCPMemoryPressures"),
        ("netstat", "TcpExt:", "TCPAbortOnMemory"),
        ("netstat", "TcpExt:", "TCPDeliveredCE"),
        ("netstat", "TcpExt:", "TCPSpuriousRTOs"),
        ("netstat", "TcpExt:", "TCPOFOQueue"),
        ("snmp", "Tcp:", "RetransSegs"),
        ("snmp", "Tcp:", "OutSegs"),
    ];
    for (file, group, name) in wanted {
        let text = std::fs::read_to_string(format!("/proc/net/{file}")).unwrap_or_default();
        let mut lines = text.lines().filter(|line| line.starts_with(group));
        let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
        let mut both = names.split_whitespace().zip(values.split_whitespace());
        if let Some((_, value)) = both.find(|(other, _)| *other == name) {
            found.push((name.to_string(), value.parse().unwrap_or(0)));
        }
    }
    found
}
