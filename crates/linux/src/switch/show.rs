//! A switch's counts, as a table, as JSON, as metrics (`metrics`).
//!
//! Invariant: a reading is of one instant between two rounds of the poll loop.

use super::control;
use super::error::Error;
use super::overlay;
use super::reading::{
    AddressReading, FlowReading, PathReading, PortReading, Reading, WorkerReading,
};
use super::state::{State, UNSAVED};
use crate::dataplane::counters;
use crate::dataplane::port::{shared, vhost};
use serde::de::DeserializeOwned;
use std::fmt::Write;

mod importance;
mod metrics;

/// Asks the running switch for the counters of its ports and paths.
///
/// # Errors
/// [`Error::NotRunning`] if no switch runs, and the errors of [`control::ask`].
pub fn read(state: &State) -> Result<Reading, Error> {
    asked(state, "show")
}

/// Asks the running switch for the port or peer behind which each address is.
///
/// # Errors
/// As [`read`].
pub fn read_addresses(state: &State) -> Result<Vec<AddressReading>, Error> {
    asked(state, "addresses")
}

/// Asks the running switch for the flows that go to peers.
///
/// # Errors
/// As [`read`].
pub fn read_flows(state: &State) -> Result<Vec<FlowReading>, Error> {
    asked(state, "flows")
}

fn asked<T: DeserializeOwned>(state: &State, verb: &str) -> Result<T, Error> {
    control::ask(state, verb, "")?.ok_or_else(|| state.absent())
}

/// Widths of columns; a negative one is of text, which begins at the left.
type Widths<const N: usize> = [isize; N];
const ADDRESSES: Widths<4> = [5, -17, -20, 9];
const FLOWS: Widths<7> = [-12, 5, -28, -28, 5, 14, 9];
const PORTS: Widths<10> = [-14, -10, -15, 6, 5, 12, 12, 10, 10, 9];
const PATHS: Widths<10> = [-10, 5, -21, -8, 9, 9, 6, 11, 11, 8];

/// Writes a line of a table.
fn line<const N: usize>(out: &mut String, widths: Widths<N>, cells: [String; N]) {
    let cell = |(width, cell): (isize, String)| match (width < 0, width.unsigned_abs()) {
        (true, width) => format!("{cell:<width$}"),
        (false, width) => format!("{cell:>width$}"),
    };
    let cells: Vec<String> = widths.into_iter().zip(cells).map(cell).collect();
    *out += &cells.join(" ");
    out.push('\n');
}

/// Writes the heads of a table's columns.
fn heads<const N: usize>(out: &mut String, widths: Widths<N>, heads: &str) {
    let mut heads = heads.split('|').map(String::from);
    line(out, widths, std::array::from_fn(|_| heads.next().unwrap_or_default()));
}

fn vlan_text(vlan: Option<u16>) -> String {
    vlan.map_or("-".into(), |vlan| vlan.to_string())
}

pub fn address_table(addresses: &[AddressReading]) -> String {
    let mut out = String::new();
    heads(&mut out, ADDRESSES, "vlan|address|behind|silent s");
    for it in addresses {
        let behind = match (&it.port, &it.peer) {
            (Some(port), _) => format!("port {port}"),
            (None, peer) => format!("peer {}", peer.as_deref().unwrap_or("?")),
        };
        let silent = it.silent_s.map_or("named".to_string(), |s| format!("{s:.1}"));
        line(&mut out, ADDRESSES, [vlan_text(it.vlan), it.address.clone(), behind, silent]);
    }
    out
}

pub fn flow_table(flows: &[FlowReading]) -> String {
    let mut out = String::new();
    heads(&mut out, FLOWS, "to|vlan|from|to|label|bytes|silent s");
    for f in flows {
        let [peer, from, to] = [&f.peer, &f.source, &f.destination].map(String::clone);
        let (label, bytes) = (f.label.to_string(), f.bytes.to_string());
        let silent = format!("{:.1}", f.silent_s);
        line(&mut out, FLOWS, [peer, vlan_text(f.vlan), from, to, label, bytes, silent]);
    }
    out
}

fn shared_lines(out: &mut String, shared: &shared::Reading) {
    let who = shared.pid.map_or("no application".to_string(), |pid| format!("application {pid}"));
    let shared::Reading { flows, notified: stopped, paused, .. } = shared;
    let shared::Reading { waiting_frames, waiting_bytes, .. } = shared;
    let shared::Reading { memory, peak_bytes, pauses, resumes, .. } = shared;
    let _ = writeln!(
        out,
        "  {who}; {flows} flows to it, {stopped} of them paused; {paused} of its own paused\n  \
         {waiting_frames} frames wait, {waiting_bytes} of {memory} bytes (at most {peak_bytes}); \
         {pauses} pauses, {resumes} resumes"
    );
}

/// The lines about a virtual machine.
fn guest_lines(out: &mut String, guest: &vhost::Reading) {
    let who = guest.pid.map_or("no guest".to_string(), |pid| format!("guest of process {pid}"));
    let state = match (guest.pid, guest.is_up) {
        (None, _) => "",
        (_, true) if guest.super_segments => ", up, takes super-segments",
        (_, true) => ", up, takes packets",
        (_, false) => ", its driver is not up",
    };
    let _ = writeln!(
        out,
        "  {who}{state}; attached {} times, {} sent away; {} frames wait, {} bytes",
        guest.attachments, guest.broken, guest.waiting_frames, guest.waiting_bytes
    );
}

/// The lines about the overlay with a peer.
fn overlay_lines(out: &mut String, name: &str, overlay: &overlay::Reading) {
    if !overlay.speaks {
        let _ = writeln!(out, "overlay with {name}: not met yet");
        return;
    }
    let ([pauses, refreshes, resumes], received) = (overlay.sent, overlay.received);
    let overlay::Reading { notified: stopped, held, paused, .. } = overlay;
    let overlay::Reading { waiting_frames, waiting_bytes, .. } = overlay;
    let overlay::Reading { peak_bytes, lost, failed, .. } = overlay;
    let _ = writeln!(
        out,
        "overlay with {name}: {stopped} paused there, {held} held here by it; sent {pauses} \
         pauses, {refreshes} refreshes, {resumes} resumes; heard {}, {}, {}\n  {paused} flows of \
         applications paused; {waiting_frames} frames wait, {waiting_bytes} bytes (at most \
         {peak_bytes}), {lost} lost, {failed} failed",
        received[0], received[1], received[2]
    );
    let refused = [
        ("forged", overlay.forged),
        ("replayed", overlay.replayed),
        ("foreign", overlay.foreign),
        ("late", overlay.late),
    ];
    for (what, count) in refused.into_iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(out, "  without effect, {what}: {count}");
    }
}

impl Reading {
    /// For people; rates over the time since `before`.
    pub fn table(&self, before: Option<&Reading>) -> String {
        let before = before.filter(|b| b.pid == self.pid);
        let mut out = format!(
            "switch {}, up {:.0} s, {} addresses, {} flows to peers, {} from them, {} buffers in \
             use\n",
            self.pid, self.uptime_s, self.addresses, self.flows, self.flows_received, self.buffers
        );
        let names = "port|kind|device|mtu|vlan|in frames|out frames|in Gb/s|out Gb/s|dropped";
        heads(&mut out, PORTS, names);
        let seconds = before.map_or(0.0, |b| self.uptime_s - b.uptime_s);
        for port in &self.ports {
            let old = before.and_then(|b| b.ports.iter().find(|p| p.name == port.name));
            port.line(&mut out, old.map(|old| &old.counters), seconds);
            port_lines(&mut out, port);
        }
        if let Some(reason) = &self.unsaved {
            let _ = writeln!(out, "{UNSAVED}: {reason}");
        }
        self.paths_table(before, &mut out);
        self.fault_lines(&mut out);
        self.workers.iter().enumerate().for_each(|(number, it)| worker_line(&mut out, number, it));
        out
    }

    fn fault_lines(&self, out: &mut String) {
        if let Some(count) = self.restarts.filter(|count| *count > 0) {
            let _ = writeln!(out, "RESTARTED {count} times by its supervisor: see the log");
        }
        if let Some(last) = self.faults.last.last() {
            let _ = writeln!(
                out,
                "INTERNAL ERRORS: {} frames or rounds failed in the switch itself; the last at {}: \
                 {} ({} bytes; `--json` has the frame)",
                self.faults.count, last.work, last.message, last.length
            );
        }
    }

    fn paths_table(&self, before: Option<&Reading>, out: &mut String) {
        if self.paths.is_empty() {
            return;
        }
        let names =
            "path to|label|from|state|delay us|answers %|frame|in packets|out packets|dropped";
        heads(out, PATHS, names);
        self.paths.iter().for_each(|path| path_lines(path, before, out));
        let mut open: Vec<&str> =
            self.paths.iter().filter(|p| !p.health.is_sealed).map(|p| &p.peer[..]).collect();
        open.dedup();
        for peer in open {
            let _ = writeln!(
                out,
                "NOT AUTHENTICATED: {peer}; whoever can forge its address can send frames \
                 ([[peer]] key)"
            );
        }
        for peer in &self.peers {
            peer.overlay.iter().for_each(|overlay| overlay_lines(out, &peer.name, overlay));
        }
        let e = &self.edge;
        let _ = writeln!(
            out,
            "{} packets in {} segments; {} held, {} in vain, {} forced out",
            e.packets, e.segments, e.held, e.timed_out, e.forced
        );
        for (reason, count) in &e.dropped {
            let _ = writeln!(out, "  dropped, {reason}: {count}");
        }
    }
}

impl PortReading {
    /// Writes the line of a port, with rates since an earlier reading.
    fn line(&self, out: &mut String, old: Option<&counters::Reading>, seconds: f64) {
        let rate = |now: u64, then: Option<u64>| match then {
            Some(then) if seconds > 0.0 => {
                format!("{:.3}", now.saturating_sub(then) as f64 * 8e-9 / seconds)
            }
            _ => "-".to_string(),
        };
        let (c, dropped) = (&self.counters, self.counters.dropped.values().sum::<u64>());
        let [name, kind, device] = [&self.name, &self.kind, &self.device].map(String::clone);
        let vlan = if self.trunk.is_empty() { vlan_text(self.vlan) } else { "trunk".into() };
        let [received, sent, dropped] = [c.received, c.sent, dropped].map(|n| n.to_string());
        let arrived = rate(c.received_bytes, old.map(|old| old.received_bytes));
        let left = rate(c.sent_bytes, old.map(|old| old.sent_bytes));
        let mtu = self.mtu.to_string();
        line(out, PORTS, [name, kind, device, mtu, vlan, received, sent, arrived, left, dropped]);
    }
}

/// The lines below a port's own.
fn port_lines(out: &mut String, port: &PortReading) {
    if let Some(reason) = &port.reason {
        let _ = writeln!(out, "  waits: {reason}");
    }
    if !port.trunk.is_empty() {
        let numbers: Vec<String> = port.trunk.iter().map(u16::to_string).collect();
        let _ = writeln!(out, "  a trunk of VLAN {}", numbers.join(", "));
    }
    if let Some(note) = port.loop_note() {
        let _ = writeln!(out, "  {note}");
    }
    if port.slowed {
        let _ = writeln!(out, "  its senders are made to wait");
    }
    if let Some(shared) = &port.shared {
        shared_lines(out, shared);
    }
    if let Some(guest) = &port.guest {
        guest_lines(out, guest);
    }
    importance::lines(out, port.importance.as_ref());
    for (reason, count) in &port.counters.dropped {
        let _ = writeln!(out, "  dropped, {reason}: {count}");
    }
}

fn worker_line(out: &mut String, number: usize, worker: &WorkerReading) {
    let WorkerReading { received, sent, path_received, path_sent, paths, .. } = worker;
    let _ = writeln!(
        out,
        "worker {number}: ports {received} frames in, {sent} out; paths {path_received} packets \
         in, {path_sent} out, {paths} used"
    );
}

/// A path's line, and its hints. `before` is an earlier reading of the same process.
fn path_lines(path: &PathReading, before: Option<&Reading>, out: &mut String) {
    let (c, health) = (&path.counters, &path.health);
    let dropped = c.dropped.values().sum::<u64>();
    let delay = health.delay_us.map_or("-".to_string(), |us| format!("{us:.0}"));
    let same = |p: &&PathReading| (&p.peer, p.label) == (&path.peer, path.label);
    let old = before.and_then(|b| b.paths.iter().find(same));
    let answers = old.and_then(|old| health.answered_since(&old.health));
    let answers = answers.map_or("-".to_string(), |part| format!("{:.0}", 100.0 * part));
    let [peer, local] = [&path.peer, &path.local].map(String::clone);
    let (label, state, size) = (path.label.to_string(), health.state.to_string(), health.size);
    let [received, sent, dropped] = [c.received, c.sent, dropped].map(|n| n.to_string());
    let size = size.to_string();
    line(out, PATHS, [peer, label, local, state, delay, answers, size, received, sent, dropped]);
    if let Some(reason) = &path.reason {
        let _ = writeln!(out, "  waits: {reason}");
    }
    if health.is_narrow {
        let _ = writeln!(
            out,
            "  carries frames of {} bytes at most, and a port has longer ones",
            health.size
        );
    }
    if path.reports_ignored > 0 {
        let _ = writeln!(out, "  ICMP reports, ignored: {}", path.reports_ignored);
    }
    for (reason, count) in &c.dropped {
        let _ = writeln!(out, "  dropped, {reason}: {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::peer::Health;
    use super::super::reading::{EdgeReading, PeerReading, PortState};
    use super::*;
    use crate::dataplane::counters;
    use crate::dataplane::fault::{Fault, Faults};

    fn fault() -> Fault {
        let [work, message, frame] = ["port a", "a.rs:7: broken", "0200"].map(String::from);
        Fault { unix_s: 1, work, message, length: 66, frame }
    }

    /// A reading with a port, a path and a peer that have something to report.
    fn reading() -> Reading {
        let counters = counters::Reading {
            received: 3,
            dropped: [("runt".to_string(), 2)].into_iter().collect(),
            ..counters::Reading::default()
        };
        let port = PortReading {
            name: "a".into(),
            kind: "tap".into(),
            device: "mpa".into(),
            namespace: None,
            state: PortState::Open,
            reason: None,
            mtu: 1500,
            vlan: None,
            trunk: vec![10, 20],
            looped: None,
            loops: 0,
            slowed: true,
            shared: Some(shared::Reading {
                pid: Some(9),
                notified: 2,
                ..shared::Reading::default()
            }),
            guest: Some(vhost::Reading {
                pid: Some(7),
                is_up: true,
                waiting_frames: 3,
                ..vhost::Reading::default()
            }),
            importance: Some(importance::sample()),
            counters,
        };
        let (ports, schema) = (vec![port], 1);
        let path = PathReading {
            peer: "p".into(),
            label: 1,
            local: "l".into(),
            remote: "r".into(),
            reason: None,
            health: Health {
                state: "dead".into(),
                delay_us: Some(51.25),
                is_sealed: true,
                ..Health::default()
            },
            reports_ignored: 5,
            counters: counters::Reading::default(),
        };
        let (paths, edge) = (vec![path], EdgeReading::default());
        let overlay = overlay::Reading { speaks: true, forged: 3, ..overlay::Reading::default() };
        Reading {
            schema,
            pid: 7,
            uptime_s: 2.0,
            ports,
            paths,
            peers: vec![PeerReading { name: "p".into(), overlay: Some(overlay) }],
            edge,
            addresses: 4,
            flows: 0,
            flows_received: 0,
            buffers: 0,
            bursts: 9,
            sleeps: 8,
            restarts: Some(2),
            restarted: None,
            faults: Faults { count: 3, last: vec![fault()] },
            unsaved: None,
            workers: vec![WorkerReading { sent: 17, ..WorkerReading::default() }; 2],
        }
    }

    #[test]
    fn is_read_as_written_and_shown() {
        let reading = reading();
        let back: Reading =
            serde_json::from_str(&serde_json::to_string(&reading).unwrap()).unwrap();
        assert_eq!(back.ports[0].counters, reading.ports[0].counters);
        let table = reading.table(None);
        assert!(
            table.contains("dropped, runt: 2")
                && table.contains("l                     dead            51"),
            "{table}"
        );
        assert!(!table.contains("NOT AUTHENTICATED"));
        let fault = "INTERNAL ERRORS: 3 frames or rounds failed in the switch itself; the last at \
                     port a: a.rs:7: broken (66 bytes";
        assert!(table.contains(fault), "{table}");
        assert_eq!(back.faults, reading.faults);
        assert!(table.contains("RESTARTED 2 times"), "{table}");
        let sound = Reading { faults: Faults::default(), restarts: Some(0), ..reading.clone() };
        let sound = sound.table(None);
        assert!(!sound.contains("INTERNAL") && !sound.contains("RESTARTED"), "{sound}");
        assert!(table.contains("worker 1: ports 0 frames in, 17 out; paths"), "{table}");
        assert!(
            table.contains(" trunk ") && back.table(None).contains("  a trunk of VLAN 10, 20\n"),
            "{table}"
        );
        assert_eq!(back.ports[0].importance, reading.ports[0].importance);
        assert!(back.table(None).contains("application 9; 0 flows to it, 2 of them paused"));
        assert!(
            table.contains("without effect, forged: 3") && !table.contains("replayed"),
            "{table}"
        );
        let metrics = reading.prometheus();
        let name = "millpond_switch_importance_data_packets_total";
        for line in [
            format!("# HELP {name} Data packets, by the mark of the port's shim.\n"),
            format!("# TYPE {name} counter\n{name}{{port=\"a\",kind=\"unimportant\"}} 70\n"),
            "\nmillpond_switch_internal_errors_total 3\n".to_string(),
            "millpond_switch_importance_consumed_total{port=\"a\"} 11\n".to_string(),
            "importance_untracked_flows_total{port=\"a\",reason=\"no-echo\"} 2\n".to_string(),
        ] {
            assert!(metrics.contains(&line), "{line:?} not in {metrics}");
        }
        let refused = "millpond_switch_overlay_refused_total{peer=\"p\",cause=\"forged\"} 3\n";
        assert!(metrics.contains(refused), "{metrics}");
        assert!(
            metrics
                .contains("millpond_switch_dropped_frames_total{port=\"a\",reason=\"runt\"} 2\n"),
            "{metrics}"
        );
    }
}
