//! What the kernel offers, and what a lack costs.
//!
//! Invariant: it changes nothing; what can be tried is tried, not guessed from a version.

use super::cgroup::{Hierarchy, mounted};
use super::folder::{self, Folder};
use super::{congestion, object};
use serde::Serialize;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Something does not work, or not as well.
    Lacking,
    /// Limits cannot work.
    Fatal,
}

/// One check.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub what: &'static str,
    /// How it came out.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What a lack costs, and what to do.
    pub cost: &'static str,
}

const CAPABILITIES: [(u32, &str, bool); 4] =
    [(39, "CAP_BPF", true), (12, "CAP_NET_ADMIN", true), (38, "CAP_PERFMON", false), (21, "CAP_SYS_ADMIN", false)];

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

fn capabilities() -> Finding {
    let status = read("/proc/self/status");
    let mask =
        status.lines().find_map(|l| l.strip_prefix("CapEff:")).and_then(|m| u64::from_str_radix(m.trim(), 16).ok());
    let mask = mask.unwrap_or(0);
    // What CAP_SYS_ADMIN includes since before there was CAP_BPF.
    let has = |bit: u32| mask >> bit & 1 == 1 || (matches!(bit, 38 | 39) && mask >> 21 & 1 == 1);
    let lacks: Vec<&str> = CAPABILITIES.iter().filter(|(bit, ..)| !has(*bit)).map(|(_, name, _)| *name).collect();
    let fatal = CAPABILITIES.iter().any(|(bit, _, needed)| *needed && !has(*bit));
    let state = if fatal {
        State::Fatal
    } else if lacks.is_empty() {
        State::Ok
    } else {
        State::Lacking
    };
    let found = if lacks.is_empty() { "all that is needed".into() } else { format!("lacks {}", lacks.join(", ")) };
    let cost = "CAP_BPF: maps and programs; CAP_NET_ADMIN: attaching; CAP_PERFMON: the kick and mp_dctcp; CAP_SYS_ADMIN: mounting a bpf file system, entering network namespaces for the kick";
    Finding { what: "capabilities", state, found, cost }
}

fn of(what: &'static str, good: bool, lack: State, found: impl Into<String>, cost: &'static str) -> Finding {
    Finding { what, state: if good { State::Ok } else { lack }, found: found.into(), cost }
}

/// Where limits are kept, and whether another user could be, or is, in the way.
fn file_system(bpffs: &Path) -> Finding {
    let lacking = |found, cost| of("bpf file system", false, State::Lacking, found, cost);
    let place = bpffs.display().to_string();
    if !folder::is_bpffs(bpffs) {
        return lacking("not mounted".to_string(), "apply mounts it, which needs CAP_SYS_ADMIN");
    }
    if let Err(error) = Folder::find(bpffs) {
        let cost = "apply, show and remove refuse to touch it";
        return of("bpf file system", false, State::Fatal, error.to_string(), cost);
    }
    match folder::is_open_to_all(bpffs) {
        true => lacking(
            format!("{place}, where every user may make files"),
            "any user can make a folder of millpond's name before apply does, which then refuses it: chmod 0700, or mount -o mode=0700",
        ),
        false => of("bpf file system", true, State::Ok, place, ""),
    }
}

/// Looks at everything.
pub fn examine(bpffs: &Path) -> Vec<Finding> {
    let cgroups = Hierarchy::find();
    let place = cgroups.as_ref().map_or("not mounted".into(), |h| h.root.display().to_string());
    let loads = object::open(object::LIMIT, "loading")
        .and_then(|open| open.load().map_err(|e| super::Error::kernel("loading", object::LOADING, &e)));
    let btf = Path::new("/sys/kernel/btf/vmlinux").exists();
    let controls = congestion::available();
    let default = read("/proc/sys/net/ipv4/tcp_congestion_control");
    let has = |name: &str| controls.iter().any(|c| c == name);
    let ecn = read("/proc/sys/net/ipv4/tcp_ecn");
    let qdisc = read("/proc/sys/net/core/default_qdisc");
    let jit = read("/proc/sys/net/core/bpf_jit_enable");
    let classes = mounted("cgroup").is_some()
        && fs::read_to_string("/proc/cgroups").unwrap_or_default().lines().any(|l| {
            let mut words = l.split_whitespace();
            matches!(words.next(), Some("net_cls" | "net_prio")) && words.next().is_some_and(|h| h != "0")
        });
    vec![
        capabilities(),
        of(
            "cgroup v2",
            cgroups.is_ok(),
            State::Fatal,
            place,
            "without it nothing can be limited: mount -t cgroup2 none /sys/fs/cgroup",
        ),
        of(
            "net_cls, net_prio",
            !classes,
            State::Lacking,
            if classes { "in use" } else { "not in use" },
            "old kernels take a socket's cgroup v2 from it where these controllers are used: its packets are then not limited",
        ),
        file_system(bpffs),
        of(
            "programs load",
            loads.is_ok(),
            State::Fatal,
            loads.as_ref().map_or_else(|e| e.to_string(), |_| "tried: yes".into()),
            "the kernel's verifier refused: Linux 5.15 or later is needed",
        ),
        of(
            "JIT",
            jit != "0",
            State::Lacking,
            if jit.is_empty() { "unknown" } else { &jit },
            "interpreted programs cost several times more a packet: sysctl net.core.bpf_jit_enable=1",
        ),
        of(
            "BTF",
            btf,
            State::Lacking,
            if btf { "/sys/kernel/btf/vmlinux" } else { "none" },
            "limits work without; the kick and mp_dctcp do not (CONFIG_DEBUG_INFO_BTF)",
        ),
        of(
            "ECN",
            ecn == "1",
            State::Lacking,
            format!("net.ipv4.tcp_ecn = {ecn}"),
            "connections without ECN are told by window reductions (CWR) alone: lower throughput for few flows, longer tails; sysctl net.ipv4.tcp_ecn=1 on both ends",
        ),
        of(
            "DCTCP",
            has("dctcp") || has(congestion::NAME),
            State::Lacking,
            controls.join(" "),
            "the published results use DCTCP: modprobe tcp_dctcp, or dctcp = true in the limits' file for millpond's own",
        ),
        of(
            "congestion control",
            default != "bbr",
            State::Lacking,
            default.clone(),
            "BBR ignores or misreads window reductions: 29 Mbps of 1000 were measured for one flow; use cubic or DCTCP for limited cgroups",
        ),
        of(
            "pacing qdisc",
            qdisc == "fq",
            State::Lacking,
            qdisc.clone(),
            "form = \"edt\" needs fq at the interface; the other forms need no qdisc",
        ),
    ]
}

/// As a table for people.
pub fn table(findings: &[Finding]) -> String {
    let mut out = String::new();
    for f in findings {
        let state = match f.state {
            State::Ok => "ok",
            State::Lacking => "lacks",
            State::Fatal => "FATAL",
        };
        let _ = writeln!(out, "{state:<6} {:<19} {}", f.what, f.found);
        if f.state != State::Ok {
            let _ = writeln!(out, "       {:<19} {}", "", f.cost);
        }
    }
    out
}

/// Whether limits can work at all.
pub fn is_able(findings: &[Finding]) -> bool {
    findings.iter().all(|f| f.state != State::Fatal)
}
