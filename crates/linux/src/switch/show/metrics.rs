//! A switch's counts, for Prometheus.
//!
//! Invariant: a counter's name and labels stay; what a configuration does not have has no lines.

use crate::dataplane::port::{shared, vhost};
use crate::metrics::{Metric, Page, by};
use crate::switch::overlay;
use crate::switch::reading::{
    PathReading, PeerReading, PortReading, PortState, Reading, WorkerReading,
};

const SWITCH: [Metric<Reading>; 6] = [
    (
        "internal_errors_total",
        "Panics of the switch that cost a frame or a part of a round.",
        |it| it.faults.count as f64,
    ),
    ("addresses", "Addresses that are known.", |it| it.addresses as f64),
    ("flows", "TCP flows that are sent to peers.", |it| it.flows as f64),
    ("flows_received", "TCP flows of peers whose order is kept.", |it| it.flows_received as f64),
    ("buffers_in_use", "Frame buffers in use.", |it| it.buffers as f64),
    ("bursts_total", "Rounds of the poll loop.", |it| it.bursts as f64),
];

const WORKER: [Metric<WorkerReading>; 2] = [
    ("worker_received_frames_total", "Frames that came in at ports, by worker.", |it| {
        it.received as f64
    }),
    ("worker_path_packets_total", "Datagrams over paths, both ways, by worker.", |it| {
        (it.path_received + it.path_sent) as f64
    }),
];

const PORT: [Metric<PortReading>; 7] = [
    ("port_open", "Whether the port's interface is there.", |it| {
        f64::from(it.state == PortState::Open)
    }),
    ("port_looped", "Whether a loop blocks the port.", |it| f64::from(it.looped.is_some())),
    ("port_loops_total", "How often a loop has blocked it.", |it| it.loops as f64),
    ("received_frames_total", "Frames that came in.", |it| it.counters.received as f64),
    ("received_bytes_total", "Their bytes.", |it| it.counters.received_bytes as f64),
    ("sent_frames_total", "Frames that went out.", |it| it.counters.sent as f64),
    ("sent_bytes_total", "Their bytes.", |it| it.counters.sent_bytes as f64),
];

const APPLICATION: [Metric<shared::Reading>; 4] = [
    ("application_attached", "Whether an application is attached.", |it| {
        f64::from(it.pid.is_some())
    }),
    ("waiting_bytes", "Bytes that wait for an application.", |it| it.waiting_bytes as f64),
    ("flows_paused", "Flows to it that are paused.", |it| it.notified as f64),
    ("pauses_total", "Flows to it that were asked to pause.", |it| it.pauses as f64),
];

const GUEST: [Metric<vhost::Reading>; 4] = [
    ("guest_up", "Whether a guest is attached whose driver is up.", |it| f64::from(it.is_up)),
    ("guest_waiting_frames", "Frames that wait for a guest.", |it| it.waiting_frames as f64),
    ("guests_attached_total", "Guests that have attached.", |it| it.attachments as f64),
    ("guests_broken_total", "Guests that were sent away.", |it| it.broken as f64),
];

const PATH_PACKETS: [Metric<PathReading>; 2] = [
    ("path_received_packets_total", "Packets from a peer.", |it| it.counters.received as f64),
    ("path_sent_packets_total", "Packets to a peer.", |it| it.counters.sent as f64),
];
const PATH_USED: [Metric<PathReading>; 1] =
    [("path_used", "Whether a path carries data.", |it| f64::from(it.health.state == "used"))];
const PATH_HEALTH: [Metric<PathReading>; 4] = [
    ("path_delay_seconds", "Half of a path's least round trip of late.", |it| {
        it.health.delay_us.unwrap_or(f64::NAN) / 1e6
    }),
    ("path_probes_sent_total", "Probes of a path.", |it| it.health.probes_sent as f64),
    ("path_probes_heard_total", "Those that the peer heard.", |it| {
        it.health.probes_received as f64
    }),
    (
        "path_reports_ignored_total",
        "Reports of routers and hosts (ICMP), which change nothing.",
        |it| it.reports_ignored as f64,
    ),
];

const OVERLAY: [Metric<overlay::Reading>; 2] = [
    ("overlay_held", "Targets that a peer has paused here.", |it| it.held as f64),
    ("overlay_told", "Targets paused at a peer.", |it| it.notified as f64),
];
const HELD: [Metric<overlay::Reading>; 2] = [
    ("held_bytes", "Bytes that wait for a peer's pauses.", |it| it.waiting_bytes as f64),
    ("held_lost_frames_total", "Frames that found no memory to wait in.", |it| {
        (it.lost + it.failed) as f64
    }),
];

const EDGE: [Metric<Reading>; 4] = [
    ("edge_segments_total", "Segments that packets from peers became.", |it| {
        it.edge.segments as f64
    }),
    ("edge_held_total", "Segments that were held back.", |it| it.edge.held as f64),
    ("edge_timed_out_total", "Segments that were held back in vain.", |it| {
        it.edge.timed_out as f64
    }),
    ("edge_forced_total", "Segments that went before their turn.", |it| it.edge.forced as f64),
];

impl Reading {
    /// Returns the counts in Prometheus' text format.
    pub fn prometheus(&self) -> String {
        let mut page = Page::new("millpond_switch");
        let alone = [(String::new(), self)];
        let plain = |value: f64| (String::new(), value);
        page.metric("up_seconds", "Since the switch started.", [plain(self.uptime_s)]);
        let restarts = self.restarts.iter().map(|count| plain(f64::from(*count)));
        page.metric("restarts_total", "Restarts by the supervisor that apply starts.", restarts);
        page.all(&alone, &SWITCH);
        let worker = |(at, it)| (format!("worker=\"{at}\""), it);
        page.all(&self.workers.iter().enumerate().map(worker).collect::<Vec<_>>(), &WORKER);
        page.all(&self.by_port(Some), &PORT);
        page.some(&self.by_port(|port| port.shared.as_ref()), &APPLICATION);
        page.some(&self.by_port(|port| port.guest.as_ref()), &GUEST);
        super::importance::metrics(&self.by_port(|port| port.importance.as_ref()), &mut page);
        self.path_metrics(&mut page);
        self.overlay_metrics(&mut page);
        page.all(&alone, &EDGE);
        let dropped = self.ports.iter().flat_map(|port| {
            let labels = move |why: &str| format!("port=\"{}\",reason=\"{why}\"", port.name);
            port.counters.dropped.iter().map(move |(why, n)| (labels(why), *n as f64))
        });
        page.metric("dropped_frames_total", "Frames that were dropped.", dropped);
        page.text
    }

    /// Parts of ports, with the ports' labels.
    fn by_port<'r, T>(
        &'r self,
        of: impl Fn(&'r PortReading) -> Option<&'r T>,
    ) -> Vec<(String, &'r T)> {
        let one = |port: &'r PortReading| Some((format!("port=\"{}\"", port.name), of(port)?));
        self.ports.iter().filter_map(one).collect()
    }

    fn path_metrics(&self, page: &mut Page) {
        let labels = |it: &PathReading| format!("peer=\"{}\",label=\"{}\"", it.peer, it.label);
        let paths: Vec<_> = self.paths.iter().map(|it| (labels(it), it)).collect();
        page.all(&paths, &PATH_PACKETS);
        let refused = paths.iter().flat_map(|(labels, path)| {
            let all = path.counters.dropped.iter();
            all.map(move |(why, n)| (format!("{labels},reason=\"{why}\""), *n as f64))
        });
        let help = "Packets that a path did not take or give.";
        page.metric("path_dropped_packets_total", help, refused);
        page.all(&paths, &PATH_USED);
        let state = |(labels, path): &(String, &PathReading)| {
            (format!("{labels},state=\"{}\"", path.health.state), 1.0)
        };
        page.metric("path_state", "The state that a path has is 1.", paths.iter().map(state));
        page.all(&paths, &PATH_HEALTH);
    }

    fn overlay_metrics(&self, page: &mut Page) {
        let named = |it: &'_ PeerReading| format!("peer=\"{}\"", it.name);
        let overlays = self.peers.iter().filter_map(|it| Some((named(it), it.overlay.as_ref()?)));
        let peers: Vec<_> = overlays.collect();
        if peers.is_empty() {
            return;
        }
        page.all(&peers, &OVERLAY);
        let words = ["pause", "refresh", "resume"];
        let help = "Words of the overlay sent to a peer.";
        page.metric("overlay_said_total", help, by(&peers, "word", words, |it| it.sent));
        let help = "Words of the overlay received from a peer.";
        page.metric("overlay_heard_total", help, by(&peers, "word", words, |it| it.received));
        let causes = ["forged", "replayed", "foreign", "late"];
        let refused =
            by(&peers, "cause", causes, |it| [it.forged, it.replayed, it.foreign, it.late]);
        page.metric("overlay_refused_total", "Received words without effect.", refused);
        page.all(&peers, &HELD);
    }
}
