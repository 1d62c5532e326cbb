//! The kernel's features, and what a lack costs.
//!
//! Invariant: it changes nothing; what can be tried is tried, not guessed from a version.

use super::Error;
use super::capability::{self, PROGRAMS, SYS_ADMIN};
use super::cgroup::{CGROUP1, Hierarchy, mounted};
use super::config::DCTCP;
use super::congestion;
use super::folder::{self, Folder};
use super::object::{self, Loaded};
use serde::Serialize;
use std::fmt::Write;
use std::fs;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Ok,
    /// Something does not work, or not as well.
    Lacking,
    Fatal,
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub what: &'static str,
    pub state: State,
    pub found: String,
    /// The cost of a lack, and what to do.
    pub cost: &'static str,
}

fn capabilities() -> Finding {
    let (needed, wanted) = (capability::lacking(PROGRAMS), capability::lacking(&[SYS_ADMIN]));
    let state = match (needed.is_empty(), wanted.is_empty()) {
        (false, _) => State::Fatal,
        (true, false) => State::Lacking,
        (true, true) => State::Ok,
    };
    let found = match state {
        State::Ok => "all that is needed".into(),
        _ => format!("lacks {}", [needed, wanted].concat().join(", ")),
    };
    let cost = "CAP_BPF and CAP_PERFMON: loading programs; CAP_NET_ADMIN: attaching them; \
                CAP_SYS_ADMIN: mounting a bpf file system, and entering network namespaces for \
                the kick and to change the pace of connections that exist";
    Finding { what: "capabilities", state, found, cost }
}

impl Finding {
    /// A check, what is found if it fails, and the cost of that.
    pub fn new(
        what: &'static str,
        is_fine: bool,
        lack: State,
        found: impl Into<String>,
        cost: &'static str,
    ) -> Finding {
        Finding { what, state: if is_fine { State::Ok } else { lack }, found: found.into(), cost }
    }
}

/// The text of a file of the kernel's, without the space around it; empty if it is not there.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

/// Where limits are kept, and whether another user could be, or is, in the way.
fn file_system(bpffs: &Path) -> Finding {
    let lacking = |found, cost| Finding::new("bpf file system", false, State::Lacking, found, cost);
    let place = bpffs.display().to_string();
    if !folder::is_bpffs(bpffs) {
        return lacking("not mounted".to_string(), "apply mounts it, which needs CAP_SYS_ADMIN");
    }
    if let Err(error) = Folder::find(bpffs) {
        let cost = "apply, show and remove refuse to touch it";
        return Finding::new("bpf file system", false, State::Fatal, error.to_string(), cost);
    }
    match folder::is_open_to_all(bpffs) {
        true => lacking(
            format!("{place}, where every user may make files"),
            "any user can make a folder of millpond's name before apply does, which then refuses \
             it: chmod 0700, or mount -o mode=0700",
        ),
        false => Finding::new("bpf file system", true, State::Ok, place, ""),
    }
}

/// From which value of `tcp_tso_rtt_log` on round trips of up to 16 ms leave segments at their full
/// size.
const RTT_LOG: u32 = 14;

/// How large the kernel makes segments of connections with a pace. Before Linux 5.18 it is unknown.
fn segments() -> Finding {
    let found = read("/proc/sys/net/ipv4/tcp_tso_rtt_log");
    let small = found.parse().is_ok_and(|log: u32| log < RTT_LOG);
    let cost = "over round trips of 0.5 ms and more connections with a share send small segments, \
                which takes up to 3 times the CPU: sysctl net.ipv4.tcp_tso_rtt_log=14, in each \
                network namespace";
    let found = if found.is_empty() {
        "fixed".into()
    } else {
        format!("net.ipv4.tcp_tso_rtt_log = {found}")
    };
    Finding::new("large segments", !small, State::Lacking, found, cost)
}

/// The kernel's features for limits, and what connections need of them.
pub fn examine(bpffs: &Path) -> Vec<Finding> {
    let mut findings = kernel(bpffs);
    findings.extend(connections());
    findings
}

/// Whether the kernel attaches and runs the programs.
fn kernel(bpffs: &Path) -> Vec<Finding> {
    let cgroups = Hierarchy::find();
    let place = cgroups.as_ref().map_or("not mounted".into(), |h| h.root.display().to_string());
    let loads = Loaded::plain(object::LIMIT, "loading");
    let btf = Path::new("/sys/kernel/btf/vmlinux").exists();
    let jit = read("/proc/sys/net/core/bpf_jit_enable");
    let classes = mounted("cgroup", CGROUP1).is_ok_and(|root| root.is_some())
        && fs::read_to_string("/proc/cgroups").unwrap_or_default().lines().any(|l| {
            let mut words = l.split_whitespace();
            matches!(words.next(), Some("net_cls" | "net_prio"))
                && words.next().is_some_and(|h| h != "0")
        });
    vec![
        capabilities(),
        Finding::new(
            "cgroup v2",
            cgroups.is_ok(),
            State::Fatal,
            place,
            "without it nothing can be limited: mount -t cgroup2 none /sys/fs/cgroup",
        ),
        Finding::new(
            "net_cls, net_prio",
            !classes,
            State::Lacking,
            if classes { "in use" } else { "not in use" },
            "old kernels take a socket's cgroup v2 from it where these controllers are used: its \
             packets are then not limited",
        ),
        file_system(bpffs),
        Finding::new(
            "programs load",
            loads.is_ok(),
            State::Fatal,
            loads.as_ref().map_or_else(|e| e.to_string(), |_| "tried: yes".into()),
            match &loads {
                Err(Error::Privilege { .. }) => "nothing can be limited without",
                _ => "the kernel's verifier refused: Linux 5.15 or later is needed",
            },
        ),
        Finding::new(
            "JIT",
            jit != "0",
            State::Lacking,
            if jit.is_empty() { "unknown" } else { &jit },
            "interpreted programs cost several times more a packet: sysctl \
             net.core.bpf_jit_enable=1",
        ),
        Finding::new(
            "BTF",
            btf,
            State::Lacking,
            if btf { "/sys/kernel/btf/vmlinux" } else { "none" },
            "limits hold without; connections older than their limits keep their pace, no receive \
             window is held, sockets of other cgroups are not found, and there is neither the kick \
             nor mp_dctcp nor a choice of congestion control (CONFIG_DEBUG_INFO_BTF)",
        ),
    ]
}

fn connections() -> Vec<Finding> {
    let controls = congestion::available();
    let default = read("/proc/sys/net/ipv4/tcp_congestion_control");
    let has = |name: &str| controls.iter().any(|c| c == name);
    let ecn = read("/proc/sys/net/ipv4/tcp_ecn");
    let qdisc = read("/proc/sys/net/core/default_qdisc");
    vec![
        Finding::new(
            "ECN",
            ecn == "1",
            State::Lacking,
            format!("net.ipv4.tcp_ecn = {ecn}"),
            "only with profile = \"published\": connections without ECN are slowed by window \
             reductions (CWR) alone, with lower throughput for few flows and longer tails; sysctl \
             net.ipv4.tcp_ecn=1 on both ends",
        ),
        Finding::new(
            "DCTCP",
            has("dctcp") || has(DCTCP),
            State::Lacking,
            controls.join(" "),
            "only with profile = \"published\", whose results are DCTCP's: modprobe tcp_dctcp, or \
             dctcp = true in the limits' file for millpond's own",
        ),
        Finding::new(
            "congestion control",
            default != "bbr",
            State::Lacking,
            default.clone(),
            "only with profile = \"published\": BBR ignores or misreads window reductions, 29 \
             Mbps of 1000 were measured for one flow; use cubic or DCTCP there",
        ),
        segments(),
        Finding::new(
            "pacing qdisc",
            qdisc == "fq",
            State::Lacking,
            qdisc.clone(),
            "profile = \"edt\" needs fq at the interface (tc qdisc replace dev NAME root fq); the \
             other profiles need no qdisc",
        ),
    ]
}

/// As a table for people, whose last line is the result.
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
    let count = |state: State| findings.iter().filter(|f| f.state == state).count();
    let _ = match (count(State::Fatal), count(State::Lacking)) {
        (0, 0) => writeln!(out, "works here"),
        (0, lacks) => writeln!(out, "works here; checks with a lack: {lacks}"),
        (fatal, _) => writeln!(out, "does not work here; fatal checks: {fatal}"),
    };
    out
}

/// Whether limits can work at all.
pub fn is_able(findings: &[Finding]) -> bool {
    findings.iter().all(|f| f.state != State::Fatal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_table_is_the_result() {
        let check = |state: State| Finding::new("a", state == State::Ok, state, "", "");
        let last = |states: &[State]| {
            let findings: Vec<Finding> = states.iter().map(|state| check(*state)).collect();
            table(&findings).lines().last().map(str::to_string).unwrap_or_default()
        };
        assert_eq!(last(&[State::Ok, State::Ok]), "works here");
        assert_eq!(last(&[State::Ok, State::Lacking]), "works here; checks with a lack: 1");
        let fatal = [State::Fatal, State::Lacking, State::Fatal];
        assert_eq!(last(&fatal), "does not work here; fatal checks: 2");
    }
}
