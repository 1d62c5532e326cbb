//! A switch's counts, for Prometheus.
//!
//! Invariant: a counter's name and labels stay; what a configuration does not have has no lines.

use super::importance::Metric;
use crate::dataplane::port::{shared, vhost};
use crate::switch::overlay;
use crate::switch::reading::{PathReading, PortReading, PortState, Reading, WorkerReading};
use std::fmt::Write;

/// Each path's state, as a label.
fn gauge_states(paths: &[PathReading]) -> Vec<(String, f64)> {
    let labels = |p: &PathReading| {
        format!("{{peer=\"{}\",label=\"{}\",state=\"{}\"}}", p.peer, p.label, p.health.state)
    };
    paths.iter().map(|p| (labels(p), 1.0)).collect()
}

impl Reading {
    /// For Prometheus.
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        let mut metric = |name: &str, help: &str, kind: &str, lines: Vec<(String, f64)>| {
            let _ = writeln!(
                out,
                "# HELP millpond_switch_{name} {help}\n# TYPE millpond_switch_{name} {kind}"
            );
            for (labels, value) in lines {
                let _ = writeln!(out, "millpond_switch_{name}{labels} {value}");
            }
        };
        self.switch_metrics(&mut metric);
        self.port_metrics(&mut metric);
        self.application_metrics(&mut metric);
        self.guest_metrics(&mut metric);
        super::importance::metrics(&self.ports, &mut metric);
        self.path_metrics(&mut metric);
        self.overlay_metrics(&mut metric);
        self.edge_metrics(&mut metric);
        let dropped = self.ports.iter().flat_map(|p| {
            p.counters
                .dropped
                .iter()
                .map(move |(r, n)| (format!("{{port=\"{}\",reason=\"{r}\"}}", p.name), *n as f64))
        });
        metric("dropped_frames_total", "Frames that were dropped.", "counter", dropped.collect());
        out
    }
}

impl Reading {
    fn switch_metrics(&self, metric: &mut Metric<'_>) {
        metric(
            "up_seconds",
            "Since the switch started.",
            "gauge",
            vec![(String::new(), self.uptime_s)],
        );
        metric(
            "restarts_total",
            "Restarts by the supervisor that apply starts.",
            "counter",
            self.restarts.iter().map(|count| (String::new(), f64::from(*count))).collect(),
        );
        metric(
            "internal_errors_total",
            "Panics of the switch that cost a frame or a part of a round.",
            "counter",
            vec![(String::new(), self.faults.count as f64)],
        );
        metric(
            "addresses",
            "Addresses that are known.",
            "gauge",
            vec![(String::new(), self.addresses as f64)],
        );
        metric(
            "flows",
            "TCP flows that are sent to peers.",
            "gauge",
            vec![(String::new(), self.flows as f64)],
        );
        let received = vec![(String::new(), self.flows_received as f64)];
        metric("flows_received", "TCP flows of peers whose order is kept.", "gauge", received);
        metric(
            "buffers_in_use",
            "Frame buffers in use.",
            "gauge",
            vec![(String::new(), self.buffers as f64)],
        );
        metric(
            "bursts_total",
            "Rounds of the poll loop.",
            "counter",
            vec![(String::new(), self.bursts as f64)],
        );
        let of = |f: &dyn Fn(&WorkerReading) -> u64| -> Vec<(String, f64)> {
            let worker = |(at, it)| (format!("{{worker=\"{at}\"}}"), f(it) as f64);
            self.workers.iter().enumerate().map(worker).collect()
        };
        metric(
            "worker_received_frames_total",
            "Frames that came in at ports, by worker.",
            "counter",
            of(&|it| it.received),
        );
        metric(
            "worker_path_packets_total",
            "Datagrams over paths, both ways, by worker.",
            "counter",
            of(&|it| it.path_received + it.path_sent),
        );
    }

    fn port_metrics(&self, metric: &mut Metric<'_>) {
        let of = |f: &dyn Fn(&PortReading) -> f64| -> Vec<(String, f64)> {
            self.ports.iter().map(|p| (format!("{{port=\"{}\"}}", p.name), f(p))).collect()
        };
        let open = |p: &PortReading| f64::from(u8::from(p.state == PortState::Open));
        metric("port_open", "Whether the port's interface is there.", "gauge", of(&open));
        let looped = |p: &PortReading| f64::from(u8::from(p.looped.is_some()));
        metric("port_looped", "Whether a loop blocks the port.", "gauge", of(&looped));
        let loops = |p: &PortReading| p.loops as f64;
        metric("port_loops_total", "How often a loop has blocked it.", "counter", of(&loops));
        metric(
            "received_frames_total",
            "Frames that came in.",
            "counter",
            of(&|p| p.counters.received as f64),
        );
        metric(
            "received_bytes_total",
            "Their bytes.",
            "counter",
            of(&|p| p.counters.received_bytes as f64),
        );
        metric(
            "sent_frames_total",
            "Frames that went out.",
            "counter",
            of(&|p| p.counters.sent as f64),
        );
        metric(
            "sent_bytes_total",
            "Their bytes.",
            "counter",
            of(&|p| p.counters.sent_bytes as f64),
        );
    }

    fn application_metrics(&self, metric: &mut Metric<'_>) {
        let shared = |f: fn(&shared::Reading) -> f64| -> Vec<(String, f64)> {
            let with = self.ports.iter().filter_map(|p| Some((p, p.shared.as_ref()?)));
            with.map(|(p, shared)| (format!("{{port=\"{}\"}}", p.name), f(shared))).collect()
        };
        if self.ports.iter().any(|p| p.shared.is_some()) {
            let attached = shared(|s| f64::from(u8::from(s.pid.is_some())));
            metric(
                "application_attached",
                "Whether an application is attached.",
                "gauge",
                attached,
            );
            metric(
                "waiting_bytes",
                "Bytes that wait for an application.",
                "gauge",
                shared(|s| s.waiting_bytes as f64),
            );
            metric(
                "flows_paused",
                "Flows to it that are paused.",
                "gauge",
                shared(|s| s.told as f64),
            );
            metric(
                "pauses_total",
                "Flows to it that were asked to pause.",
                "counter",
                shared(|s| s.pauses as f64),
            );
        }
    }

    fn guest_metrics(&self, metric: &mut Metric<'_>) {
        let guests = |f: fn(&vhost::Reading) -> f64| -> Vec<(String, f64)> {
            let with = self.ports.iter().filter_map(|p| Some((p, p.guest.as_ref()?)));
            with.map(|(p, guest)| (format!("{{port=\"{}\"}}", p.name), f(guest))).collect()
        };
        if self.ports.iter().any(|p| p.guest.is_some()) {
            let up = guests(|g| f64::from(u8::from(g.is_up)));
            metric("guest_up", "Whether a guest is attached whose driver is up.", "gauge", up);
            let waiting = guests(|g| g.waiting_frames as f64);
            metric("guest_waiting_frames", "Frames that wait for a guest.", "gauge", waiting);
            metric(
                "guests_attached_total",
                "Guests that have attached.",
                "counter",
                guests(|g| g.attachments as f64),
            );
            metric(
                "guests_broken_total",
                "Guests that were sent away.",
                "counter",
                guests(|g| g.broken as f64),
            );
        }
    }

    fn path_metrics(&self, metric: &mut Metric<'_>) {
        let path = |f: fn(&PathReading) -> u64| -> Vec<(String, f64)> {
            let labels = |p: &PathReading| format!("{{peer=\"{}\",label=\"{}\"}}", p.peer, p.label);
            self.paths.iter().map(|p| (labels(p), f(p) as f64)).collect()
        };
        metric(
            "path_received_packets_total",
            "Packets from a peer.",
            "counter",
            path(|p| p.counters.received),
        );
        metric(
            "path_sent_packets_total",
            "Packets to a peer.",
            "counter",
            path(|p| p.counters.sent),
        );
        let refused = self.paths.iter().flat_map(|p| {
            let labels = move |reason: &str| {
                format!("{{peer=\"{}\",label=\"{}\",reason=\"{reason}\"}}", p.peer, p.label)
            };
            p.counters.dropped.iter().map(move |(reason, n)| (labels(reason), *n as f64))
        });
        let refused = refused.collect();
        metric(
            "path_dropped_packets_total",
            "Packets that a path did not take or give.",
            "counter",
            refused,
        );
        let gauge = |f: fn(&PathReading) -> f64| -> Vec<(String, f64)> {
            let labels = |p: &PathReading| format!("{{peer=\"{}\",label=\"{}\"}}", p.peer, p.label);
            self.paths.iter().map(|p| (labels(p), f(p))).collect()
        };
        let used = gauge(|p| f64::from(u8::from(p.health.state == "used")));
        metric("path_used", "Whether a path carries data.", "gauge", used);
        let delay = gauge(|p| p.health.delay_us.unwrap_or(f64::NAN) / 1e6);
        let state = gauge_states(&self.paths);
        metric("path_state", "The state that a path has is 1.", "gauge", state);
        metric("path_delay_seconds", "Half of a path's least round trip of late.", "gauge", delay);
        metric(
            "path_probes_sent_total",
            "Probes of a path.",
            "counter",
            path(|p| p.health.probes_sent),
        );
        metric(
            "path_probes_heard_total",
            "Those that the peer heard.",
            "counter",
            path(|p| p.health.probes_heard),
        );
        metric(
            "path_reports_ignored_total",
            "Reports of routers and hosts (ICMP), which change nothing.",
            "counter",
            path(|p| p.reports_ignored),
        );
    }

    fn overlay_metrics(&self, metric: &mut Metric<'_>) {
        let peers: Vec<(&str, &overlay::Reading)> = self
            .peers
            .iter()
            .filter_map(|peer| Some((&peer.name[..], peer.overlay.as_ref()?)))
            .collect();
        if peers.is_empty() {
            return;
        }
        let all = |f: &dyn Fn(&overlay::Reading) -> f64| -> Vec<(String, f64)> {
            peers
                .iter()
                .map(|(name, overlay)| (format!("{{peer=\"{name}\"}}"), f(overlay)))
                .collect()
        };
        let by = |label: &str,
                  names: &[&str],
                  f: &dyn Fn(&overlay::Reading, usize) -> u64|
         -> Vec<(String, f64)> {
            let of = |(name, overlay): &(&str, &overlay::Reading)| {
                let line = |(at, word): (usize, &&str)| {
                    (format!("{{peer=\"{name}\",{label}=\"{word}\"}}"), f(overlay, at) as f64)
                };
                names.iter().enumerate().map(line).collect::<Vec<_>>()
            };
            peers.iter().flat_map(of).collect()
        };
        metric(
            "overlay_held",
            "Targets that a peer has paused here.",
            "gauge",
            all(&|o| o.held as f64),
        );
        metric("overlay_told", "Targets paused at a peer.", "gauge", all(&|o| o.told as f64));
        let words = ["pause", "refresh", "resume"];
        metric(
            "overlay_said_total",
            "Words of the overlay sent to a peer.",
            "counter",
            by("word", &words, &|o, at| o.said[at]),
        );
        metric(
            "overlay_heard_total",
            "Words of the overlay received from a peer.",
            "counter",
            by("word", &words, &|o, at| o.heard[at]),
        );
        let causes = ["forged", "replayed", "foreign", "late"];
        let refused = by("cause", &causes, &|o, at| [o.forged, o.replayed, o.foreign, o.late][at]);
        metric("overlay_refused_total", "Received words without effect.", "counter", refused);
        metric(
            "held_bytes",
            "Bytes that wait for a peer's pauses.",
            "gauge",
            all(&|o| o.waiting_bytes as f64),
        );
        let lost = all(&|o| (o.lost + o.failed) as f64);
        metric(
            "held_lost_frames_total",
            "Frames that found no memory to wait in.",
            "counter",
            lost,
        );
    }

    fn edge_metrics(&self, metric: &mut Metric<'_>) {
        let alone = |n: u64| vec![(String::new(), n as f64)];
        metric(
            "edge_segments_total",
            "Segments that packets from peers became.",
            "counter",
            alone(self.edge.segments),
        );
        metric(
            "edge_held_total",
            "Segments that were held back.",
            "counter",
            alone(self.edge.held),
        );
        metric(
            "edge_timed_out_total",
            "Segments that were held back in vain.",
            "counter",
            alone(self.edge.timed_out),
        );
        let forced = alone(self.edge.forced);
        metric("edge_forced_total", "Segments that went before their turn.", "counter", forced);
    }
}
