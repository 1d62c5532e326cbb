//! Reasons why a limit that is in force carries less or more than its user expects, each with its
//! condition: BBR where nothing delays packets, and traffic over loopback.
//!
//! Invariant: reading changes nothing; where a condition cannot be read there is no hint.

use super::cgroup::Cgroup;
use super::config::Limit;
use super::store::DIRECTIONS;
use millpond_core::Rate;
use millpond_core::limit::Form;
use std::fs;
use std::path::Path;

/// From this rate down several BBR connections leave some of a limit (`notes/limit-figures.md`).
const BBR_RATE_MAX: Rate = Rate(100_000_000);
/// Processes of a cgroup that are looked at.
const PROCESSES: usize = 64;

/// Why one direction of a limit carries less or more than its user may expect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Several connections of BBR leave some of it.
    pub bbr: Option<String>,
    /// Traffic passes it by over loopback.
    pub loopback: Option<String>,
}

/// The hint about new connections by this congestion control, if it is BBR and the limit's queue of
/// this direction drops at a low rate.
fn of_bbr(limit: &Limit, direction: usize, control: &str) -> Option<String> {
    let queue = limit.queue(direction);
    let delays = queue.settings().form == Form::Edt as u32;
    if DIRECTIONS[direction] != "egress"
        || !control.starts_with("bbr")
        || queue.rate > BBR_RATE_MAX
        || delays
        || queue.observe
    {
        return None;
    }
    Some(format!(
        "limit \"{}\": new connections use {control}, several of which get about 0.7 of a limit of \
         {} Mb/s and less together; profile = \"edt\" (behind fq) or congestion = \"cubic\" gives \
         them all of it",
        limit.name(),
        BBR_RATE_MAX.bps() / 1_000_000
    ))
}

/// Packets that the loopback interface has received, in a table of `/proc/PID/net/dev`.
fn over_loopback(table: &str) -> u64 {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix("lo:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// The hint about a limit that has counted so many packets, whose processes have these tables.
fn of_loopback(name: &str, packets: u64, tables: impl Iterator<Item = String>) -> Option<String> {
    let over = tables.map(|table| over_loopback(&table)).max().unwrap_or(0);
    (packets == 0 && over > 0).then(|| {
        format!(
            "limit \"{name}\": 0 packets, and {over} over lo where its processes are: traffic \
             over loopback is not limited without loopback = true"
        )
    })
}

/// Returns the hints about one direction of a limit in force, which has counted so many packets.
pub(super) fn of(
    limit: &Limit,
    direction: usize,
    packets: u64,
    counts_loopback: bool,
    cgroup: &Cgroup,
) -> Hints {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let default = read(Path::new("/proc/sys/net/ipv4/tcp_congestion_control"));
    let control = limit.target.congestion.as_deref().unwrap_or(default.trim());
    let processes = read(&cgroup.path.join("cgroup.procs"));
    let table = |pid: &str| read(&Path::new("/proc").join(pid).join("net/dev"));
    let loopback = if packets > 0 || counts_loopback {
        None
    } else {
        of_loopback(limit.name(), packets, processes.lines().take(PROCESSES).map(table))
    };
    Hints { bbr: of_bbr(limit, direction, control), loopback }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::config::Config;

    fn limit(keys: &str) -> Limit {
        let text = format!("[[limit]]\nname = \"a\"\ncgroup = \"x\"\n{keys}\n");
        Config::parse("a.toml", &text, &[]).unwrap().limits.remove(0)
    }

    #[test]
    fn hint_of_bbr_needs_bbr_a_low_rate_egress_and_no_departure_times() {
        let low = limit("rate = \"15Mbps\"\ndirection = \"both\"");
        assert!(of_bbr(&low, 0, "bbr").unwrap().contains("limit \"a\": new connections use bbr"));
        assert_eq!(of_bbr(&low, 1, "bbr"), None);
        assert_eq!(of_bbr(&low, 0, "cubic"), None);
        assert_eq!(of_bbr(&limit("rate = \"1Gbps\""), 0, "bbr"), None);
        assert_eq!(of_bbr(&limit("rate = \"15Mbps\"\nprofile = \"edt\""), 0, "bbr"), None);
        assert_eq!(of_bbr(&limit("rate = \"15Mbps\"\nobserve = true"), 0, "bbr"), None);
    }

    #[test]
    fn hint_of_loopback_needs_packets_there_and_none_at_the_limit() {
        let table = |packets: u64| {
            let head = "Inter-|   Receive\n face |bytes    packets errs\n";
            format!("{head}  eth0: 900 9 0\n    lo: {} {packets} 0\n", 100 * packets)
        };
        let hint = |packets, lo: &[u64]| of_loopback("a", packets, lo.iter().map(|n| table(*n)));
        assert!(hint(0, &[0, 12]).unwrap().starts_with("limit \"a\": 0 packets, and 12 over lo"));
        assert_eq!([hint(0, &[0]), hint(0, &[]), hint(3, &[12])], [None, None, None]);
    }
}
