//! The installed limits, and their statistics: as values, as a table, as JSON, as Prometheus text.
//!
//! Rates come from two readings, since the maps only count. Counters begin when a limit is first
//! applied and go on through changes of its settings. A floor that is in force has a queue of its
//! own, and is read as a limit is.
//!
//! Invariant: reading changes nothing, and needs no lock.

use super::Error;
use super::cgroup::Hierarchy;
use super::config::{FloorParams, Limit, Target, TargetParams};
use super::foreign::{self, Foreign};
use super::hints::{self, Hints};
use super::layout::Statistics;
use super::plan::{FLOOR, floor_label};
use super::store::{DIRECTIONS, Store};
use crate::metrics::{Metric, Page};
use millpond_core::limit::{Direction, Form, LimitParams, Settings};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// When a process of a limit is looked at after its start.
const LOOKS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(10)];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    #[default]
    Active,
    /// It has no cgroup; others name it.
    Scope,
    Waiting,
    /// Its cgroup was made anew since; apply again, or let `serve` do it.
    Recreated,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct QueueReading {
    pub name: String,
    pub file: String,
    pub direction: String,
    pub cgroup: Option<String>,
    pub standing: Standing,
    pub observe: bool,
    pub limit_bps: u64,
    /// Between this reading and the one before.
    pub rate_bps: Option<f64>,
    pub packets: u64,
    pub bytes: u64,
    pub dropped: u64,
    pub dropped_bytes: u64,
    pub marked: u64,
    pub marked_bytes: u64,
    pub reduced: u64,
    pub bypassed: u64,
    pub decided: u64,
    pub behind: u64,
    pub floored: u64,
    /// Returned 0 to 3: drop, pass, drop with CWR, pass with CWR.
    pub returned: [u64; 4],
    /// "bytes" or "ns": of the three credits.
    pub credit_unit: String,
    pub credit: i64,
    pub credit_mean: Option<f64>,
    pub credit_min: i64,
    pub rtt_us_mean: Option<f64>,
    pub cwnd_mean: Option<f64>,
    pub super_segments: u64,
    pub cas_retries: u64,
    pub kicks: u64,
    pub notifications: u64,
    /// From its first packet to its last.
    pub seconds: f64,
    /// Packets by how far behind they found the queue: not at all, by less than 1 us, 2 us, 4 us …
    pub backlog_us: Vec<u64>,
    /// Sockets in another cgroup than their process; `None`: not looked for, or not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sockets: Option<Foreign>,
    /// Reasons why it carries less or more than its user may expect.
    #[serde(skip)]
    pub hints: Hints,
    #[serde(skip)]
    read_ns: u64,
    #[serde(skip)]
    cgroup_id: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reading {
    /// In the order of the files; of each its limits, then those of its floors that are in force.
    pub limits: Vec<QueueReading>,
}

/// Nanoseconds of the clock that the programs read.
pub(super) fn now() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// How a limit stands. A unit or a container is looked for only where the cgroup that it had is
/// gone: asking for it costs more than all the rest.
fn standing(
    live: &BTreeSet<u64>,
    hierarchy: &Hierarchy,
    limit: &Limit,
    installed: u64,
) -> Standing {
    let Some(target) = limit.cgroup() else { return Standing::Scope };
    let is_live = live.contains(&installed);
    if is_live && !matches!(target, Target::Path(_)) {
        return Standing::Active;
    }
    match hierarchy.resolve(&target) {
        Err(_) => Standing::Waiting,
        Ok(found) if found.id == installed && is_live => Standing::Active,
        Ok(_) => Standing::Recreated,
    }
}

/// The credit that the queue would let pass now, or how far behind it is.
fn credit(state: millpond_core::limit::State, settings: &Settings, now: u64) -> i64 {
    let mut state = state;
    -millpond_core::limit::charge(&mut state, settings, now, 0).behind
}

/// A floor's queue as a limit's, and how it is labelled; `None`: its cgroup is not there.
fn of_floor(floor: &FloorParams, hierarchy: &Hierarchy) -> Option<(Limit, String)> {
    let found = hierarchy.resolve(&floor.target()?).ok()?;
    let [cgroup, unit, container, pod] = floor.names().map(Option::clone);
    // As names of limits are, which metrics need not quote.
    let of = floor.names().into_iter().flatten().next()?;
    let name =
        format!("{FLOOR}{}", of.replace(|c: char| c.is_control() || c == '"' || c == '\\', "?"));
    let direction = Some(Direction::Both);
    let target =
        TargetParams { name, cgroup, unit, container, pod, direction, ..TargetParams::default() };
    let queue = LimitParams { rate: floor.rate, ..LimitParams::default() };
    Some((Limit { target, queue }, floor_label(found.id)))
}

/// Reads all installed limits with their statistics. Rates, in bits a second, are over the time
/// since `before`.
///
/// # Errors
/// [`Error::Nothing`] if no limits are installed, [`Error::NoCgroups`] if no cgroup v2 is mounted,
/// [`Error::Layout`] if another version installed them, [`Error::Kernel`] if a map cannot be read.
pub fn read(bpffs: &Path, before: Option<&Reading>) -> Result<Reading, Error> {
    let store = Store::open(bpffs)?.ok_or(Error::Nothing)?;
    let hierarchy = Hierarchy::find()?;
    let bank = store.bank()?;
    let labels = store.labels(bank)?;
    let live = store.live();
    let mut limits = Vec::new();
    for source in store.sources(bank)? {
        let limits_of =
            source.config.limits.iter().map(|limit| (limit.clone(), limit.name().to_string()));
        let floors_of = source.config.floors.iter().filter_map(|floor| of_floor(floor, &hierarchy));
        for (limit, name) in limits_of.chain(floors_of) {
            for direction in (0..2).filter(|&d| limit.covers(d)) {
                let label =
                    labels.iter().find(|(_, l)| l.name == name && l.direction == direction as u32);
                let Some((id, label)) = label else { continue };
                let standing = standing(&live, &hierarchy, &limit, label.cgroup);
                let seen = store.statistics(*id)?;
                let settings = limit.queue(direction).settings();
                let at = now();
                let credit = credit(store.queue(*id)?, &settings, at);
                let mut reading =
                    reading(&limit, &source.file, direction, standing, &seen, &settings, credit);
                (reading.read_ns, reading.cgroup_id) = (at, label.cgroup);
                if standing == Standing::Active
                    && let Some(Ok(cgroup)) = limit.cgroup().map(|of| hierarchy.resolve(&of))
                {
                    let counts = source.config.host.loopback;
                    let packets = reading.packets;
                    reading.hints = hints::of(&limit, direction, packets, counts, &cgroup);
                }
                let same = |old: &&QueueReading| {
                    old.name == reading.name && old.direction == reading.direction
                };
                if let Some(old) = before.and_then(|b| b.limits.iter().find(same)) {
                    let passed = |r: &QueueReading| r.bytes.saturating_sub(r.dropped_bytes);
                    let bits = passed(&reading).saturating_sub(passed(old)) as f64 * 8.0;
                    reading.rate_bps =
                        Some(bits * 1e9 / at.saturating_sub(old.read_ns).max(1) as f64);
                }
                limits.push(reading);
            }
        }
    }
    Ok(Reading { limits })
}

fn reading(
    limit: &Limit,
    file: &str,
    direction: usize,
    standing: Standing,
    seen: &Statistics,
    settings: &Settings,
    credit: i64,
) -> QueueReading {
    let mean = |sum: f64, n: u64| (n > 0).then(|| sum / n as f64);
    let (t, c) = (&limit.target, &seen.counts);
    let is_credit = settings.form == Form::Credit as u32;
    QueueReading {
        name: limit.name().into(),
        file: file.into(),
        direction: DIRECTIONS[direction].into(),
        cgroup: t.names().into_iter().flatten().next().cloned(),
        standing,
        observe: limit.queue.observe,
        limit_bps: limit.queue.rate.bps(),
        packets: c.packets,
        bytes: c.bytes,
        dropped: c.dropped,
        dropped_bytes: c.dropped_bytes,
        marked: c.marked,
        marked_bytes: c.marked_bytes,
        reduced: c.reduced,
        bypassed: c.bypassed,
        decided: c.decided,
        behind: seen.behind,
        floored: seen.floored,
        returned: seen.returned,
        credit_unit: if is_credit { "bytes" } else { "ns" }.into(),
        credit,
        credit_mean: mean(seen.credit_sum as f64, c.packets),
        credit_min: seen.credit_min,
        rtt_us_mean: mean(seen.rtt_sum_us as f64, seen.rtt_packets),
        cwnd_mean: mean(seen.cwnd_sum as f64, seen.cwnd_packets),
        super_segments: seen.super_segments,
        cas_retries: seen.retries,
        kicks: seen.kicks,
        notifications: seen.notified,
        seconds: seen.last.saturating_sub(seen.first) as f64 / 1e9,
        backlog_us: seen.backlog.to_vec(),
        ..QueueReading::default()
    }
}

/// A rate with three digits: "1.02 Gbps".
pub fn rate_text(bps: f64) -> String {
    let units = [(1e12, "Tbps"), (1e9, "Gbps"), (1e6, "Mbps"), (1e3, "Kbps")];
    match units.iter().find(|(scale, _)| bps >= *scale * 0.9995) {
        Some((scale, unit)) => {
            let x = bps / scale;
            let digits = if x < 10.0 { 2 } else { usize::from(x < 100.0) };
            format!("{x:.digits$} {unit}")
        }
        None => format!("{bps:.0} bps"),
    }
}

fn share(part: u64, all: u64) -> String {
    match (part, all) {
        (0, _) | (_, 0) => "0".into(),
        _ => {
            let percent = part as f64 * 100.0 / all as f64;
            if percent < 0.1 { "<0.1 %".into() } else { format!("{percent:.1} %") }
        }
    }
}

const METRICS: [Metric<QueueReading>; 16] = [
    ("packets_total", "Packets offered.", |q| q.packets as f64),
    ("bytes_total", "Bytes offered.", |q| q.bytes as f64),
    ("dropped_packets_total", "Packets dropped.", |q| q.dropped as f64),
    ("dropped_bytes_total", "Bytes dropped.", |q| q.dropped_bytes as f64),
    ("marked_packets_total", "Packets given CE.", |q| q.marked as f64),
    ("marked_bytes_total", "Bytes given CE.", |q| q.marked_bytes as f64),
    ("cwr_total", "Senders asked to reduce their windows.", |q| q.reduced as f64),
    ("bypassed_packets_total", BYPASSED, |q| q.bypassed as f64),
    ("decided_packets_total", "Packets that this queue decided on.", |q| q.decided as f64),
    ("kicks_total", "Stalled connections restarted.", |q| q.kicks as f64),
    ("notifications_total", NOTIFICATIONS, |q| q.notifications as f64),
    ("super_segments_total", "Packets that are cut into several.", |q| q.super_segments as f64),
    ("credit", "Credit now, in bytes (timed forms: nanoseconds).", |q| q.credit as f64),
    ("limit_bits_per_second", "The limit.", |q| q.limit_bps as f64),
    ("rtt_microseconds", "Mean smoothed round-trip time.", |q| q.rtt_us_mean.unwrap_or(f64::NAN)),
    ("active", "1 where the limit is in force.", |q| {
        f64::from(matches!(q.standing, Standing::Active | Standing::Scope))
    }),
];
const BYPASSED: &str = "Packets let through since their flow had nothing in flight.";
const NOTIFICATIONS: &str = "Packets that ask for a notice to the remote sender.";

impl Reading {
    /// Queues whose limits are named by numbers, as those of a plan are, each with its number.
    pub fn numbered(self) -> impl Iterator<Item = (u16, QueueReading)> {
        let number = |it: &QueueReading| it.name.split('.').next()?.parse().ok();
        self.limits.into_iter().filter_map(move |it| Some((number(&it)?, it)))
    }

    /// Looks for sockets in other cgroups than their processes. Where the kernel cannot report
    /// it, the fields stay empty.
    pub fn find_foreign_sockets(&mut self) {
        let is_on = |q: &&QueueReading| q.standing == Standing::Active && q.cgroup_id != 0;
        let mut cgroups: Vec<u64> = self.limits.iter().filter(is_on).map(|q| q.cgroup_id).collect();
        cgroups.sort_unstable();
        cgroups.dedup();
        let Ok(found) = foreign::find(&cgroups) else { return };
        for q in &mut self.limits {
            let of = cgroups.binary_search(&q.cgroup_id);
            q.sockets = of.ok().map(|at| found[at].clone());
        }
    }

    /// Returns a line for each limit with sockets in other cgroups than their processes, and for
    /// each hint.
    pub fn notes(&self) -> Vec<String> {
        let of_sockets = |q: &QueueReading| q.sockets.as_ref()?.note(&q.name);
        let of = |q: &QueueReading| {
            let Hints { bbr, loopback } = q.hints.clone();
            of_sockets(q).into_iter().chain(bbr).chain(loopback)
        };
        let mut notes: Vec<String> = self.limits.iter().flat_map(of).collect();
        // Both directions of a limit have the same sockets and processes.
        let mut seen = BTreeSet::new();
        notes.retain(|note| seen.insert(note.clone()));
        notes
    }

    pub fn table(&self) -> String {
        let heads =
            "limit|direction|is|limit at|rate|packets|marked|CWR|dropped|bypassed|credit|RTT";
        let mut rows: Vec<Vec<String>> = vec![heads.split('|').map(String::from).collect()];
        for q in &self.limits {
            let standing = match q.standing {
                Standing::Active if q.observe => "observed",
                Standing::Active => "active",
                Standing::Scope => "scope",
                Standing::Waiting => "waiting",
                Standing::Recreated => "recreated",
            };
            rows.push(vec![
                q.name.clone(),
                q.direction.clone(),
                standing.into(),
                rate_text(q.limit_bps as f64),
                q.rate_bps.map_or("-".into(), rate_text),
                q.packets.to_string(),
                share(q.marked, q.packets),
                share(q.reduced, q.packets),
                share(q.dropped, q.packets),
                share(q.bypassed, q.packets),
                format!("{} {}", q.credit, q.credit_unit),
                q.rtt_us_mean.map_or("-".into(), |us| format!("{us:.0} us")),
            ]);
        }
        let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        let mut out = String::new();
        for row in &rows {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(|(i, (cell, &w))| match i < 3 {
                true => format!("{cell:<w$}"),
                false => format!("{cell:>w$}"),
            });
            let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        for q in &self.limits {
            let note = match q.standing {
                Standing::Waiting => {
                    "its cgroup is not there: nothing is limited until it is, and the limits are \
                     applied again (serve does it)"
                }
                Standing::Recreated => {
                    "its cgroup was made anew: apply again (serve does it), until then nothing of \
                     it is limited"
                }
                _ => continue,
            };
            let _ = writeln!(out, "{}: {note}", q.name);
        }
        for note in self.notes() {
            let _ = writeln!(out, "{note}");
        }
        out
    }

    pub fn prometheus(&self) -> String {
        let labels =
            |q: &QueueReading| format!("limit=\"{}\",direction=\"{}\"", q.name, q.direction);
        let queues: Vec<_> = self.limits.iter().map(|q| (labels(q), q)).collect();
        let mut page = Page::new("millpond_limit");
        page.all(&queues, &METRICS);
        let name = "backlog_seconds";
        page.head(name, "How far behind packets found the queue.", "histogram");
        for (labels, q) in &queues {
            let (mut sum, last) = (0, q.backlog_us.len().saturating_sub(1));
            for (slot, count) in q.backlog_us.iter().enumerate() {
                sum += count;
                let most = ((1u64 << slot) - u64::from(slot == 0)) as f64 / 1e6;
                let le = if slot == last { "+Inf".into() } else { most.to_string() };
                let labels = format!("{labels},le=\"{le}\"");
                page.value(&format!("{name}_bucket"), &labels, sum as f64);
            }
            page.value(&format!("{name}_count"), labels, sum as f64);
        }
        page.text
    }
}

/// Looks some times after a process has started in a limit's cgroup, for so long as it lives.
/// Returns the hint about loopback, if there is reason for it.
pub fn hint_of_process(bpffs: &Path, name: &str, process: u32) -> Option<String> {
    let process = Pid::from_raw(process.try_into().ok()?)?;
    let process = pidfd_open(process, PidfdFlags::empty()).ok()?;
    let start = Instant::now();
    LOOKS.into_iter().find_map(|look| {
        let left = look.saturating_sub(start.elapsed()).try_into().ok()?;
        let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)).ok()?;
        let reading = (ended == 0).then(|| read(bpffs, None).ok())??;
        let mut own = reading.limits.into_iter().filter(|limit| limit.name == name);
        own.find_map(|limit| limit.hints.loopback)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        assert_eq!(rate_text(1.0234e9), "1.02 Gbps");
        assert_eq!(rate_text(999.9e6), "1.00 Gbps");
        assert_eq!(rate_text(54.26e6), "54.3 Mbps");
        assert_eq!(rate_text(0.0), "0 bps");
    }

    #[test]
    fn a_floor_is_read_as_a_limit() {
        let root = std::env::temp_dir().join(format!("millpond-floor-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a\"b")).unwrap();
        let hierarchy = Hierarchy { root: root.clone() };
        let floor =
            |cgroup: &str| FloorParams { cgroup: Some(cgroup.into()), ..FloorParams::default() };
        let (limit, label) = of_floor(&floor("a\"b"), &hierarchy).unwrap();
        let id = hierarchy.at(Path::new("a\"b")).unwrap().id;
        assert_eq!((limit.name(), label), ("floor of a?b", format!("floor of {id}")));
        assert_eq!(
            (limit.queue.rate, limit.covers(0), limit.covers(1)),
            (floor("").rate, true, true)
        );
        assert!(of_floor(&floor("c"), &hierarchy).is_none());
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_table_and_prometheus() {
        let mut limit = Limit::default();
        limit.target.name = "batch".into();
        let mut seen = Statistics::default();
        seen.counts.packets = 1000;
        seen.counts.marked = 250;
        seen.backlog[0] = 600;
        seen.backlog[5] = 400;
        let settings = limit.queue.settings();
        let q = reading(&limit, "a.toml", 0, Standing::Scope, &seen, &settings, -5);
        let all = Reading { limits: vec![q] };
        let table = all.table();
        assert!(
            table.contains("25.0 %") && table.contains("1.00 Gbps") && table.contains("-5 bytes"),
            "{table}"
        );
        let text = all.prometheus();
        assert!(
            text.contains(
                "millpond_limit_marked_packets_total{limit=\"batch\",direction=\"egress\"} 250"
            ),
            "{text}"
        );
        assert!(
            text.contains("le=\"+Inf\"} 1000") && text.contains("le=\"0.000032\"} 1000"),
            "{text}"
        );
    }
}
