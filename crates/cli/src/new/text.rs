//! The text of a scenario, with comments that give the reasons.

use super::answers::{Family, Topology, Traffic, Transport, ranks};
use super::mechanisms::{Mechanism, Needs};
use millpond_core::units::Rate;
use std::fmt::Write as _;

/// The answers to the five questions.
#[derive(Clone, Debug)]
pub struct Answers {
    pub topology: Topology,
    pub rate: Rate,
    pub transport: Transport,
    pub traffic: Traffic,
    pub mechanisms: Vec<&'static Mechanism>,
}

/// Bytes of a run with a distribution: some tenths of a second on one core.
const VOLUME: f64 = 200e6;
/// The same of transports whose packets cost more.
const VOLUME_OF_OTHERS: f64 = 80e6;
/// Bytes of each answer of an incast.
const RESPONSE: u64 = 40_000;
/// Queries of an incast.
const QUERIES: u64 = 20;
/// The column of comments.
const COMMENT: usize = 34;

/// Appends a line with its comment.
fn put(text: &mut String, line: impl AsRef<str>, comment: impl AsRef<str>) {
    let (line, comment) = (line.as_ref(), comment.as_ref());
    let _ = match comment {
        "" => writeln!(text, "{line}"),
        _ => writeln!(text, "{line:<COMMENT$}  # {comment}"),
    };
}

impl Answers {
    fn needs(&self, needs: Needs) -> bool {
        self.mechanisms.iter().any(|mechanism| mechanism.needs == needs)
    }

    /// The scenario. `file` is how a command names it.
    pub fn scenario(&self, name: &str, file: &str) -> String {
        let mut text = String::new();
        self.head(&mut text, name, file);
        self.network(&mut text);
        self.host(&mut text);
        self.switch(&mut text);
        self.edge(&mut text);
        self.sender(&mut text);
        self.load(&mut text);
        self.variants(&mut text);
        text
    }

    fn head(&self, text: &mut String, name: &str, file: &str) {
        let names: Vec<&str> = self.mechanisms.iter().map(|one| one.name).collect();
        let beside = match &names[..] {
            [] => "without a mechanism".to_string(),
            names => format!("plain, and with {}", names.join(", ")),
        };
        let chosen = if names.is_empty() { "none".to_string() } else { names.join(",") };
        let (network, rate) = (self.topology.kind(), self.rate);
        let (traffic, transport) = (self.traffic.kind(), self.transport.kind);
        let commands = [
            (format!("check {file}"), "errors, warnings, and each port's amounts"),
            (format!("compare {file} --seeds 6"), "the variants beside each other"),
            ("explain min-rto".to_string(), "a key's meaning, default and source"),
        ];
        let width = commands.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
        let line = |(command, about): &(String, &str)| {
            format!("#     millpond {command:width$}  {about}\n")
        };
        let commands: String = commands.iter().map(line).collect();
        let _ = write!(
            text,
            "# {traffic} over {transport} on a {network} network of {hosts} hosts at {rate}: \
             {beside}.\n#\n\
             {commands}#\n\
             # `millpond new` has written this file with\n\
             #     --topology {topology} --rate {rate} --transport {transport}\n\
             #     --traffic {load} --mechanisms {chosen}\n\n",
            hosts = self.topology.hosts(),
            topology = self.topology,
            load = self.traffic,
        );
        put(text, format!("name = {name:?}"), "names the results folder, below out/");
        put(text, "until = \"flows-complete\"", "a run ends with its last flow,");
        let latest = format!("duration = \"{}ms\"", self.latest_ms());
        put(text, latest, "but not later than this: flows may then be open");
        text.push('\n');
    }

    fn network(&self, text: &mut String) {
        let rate = self.rate;
        let link = |name: &str, delay: &str| {
            format!("{name} = {{ rate = \"{rate}\", delay = \"{delay}\" }}")
        };
        put(text, "[topology]", "");
        put(text, format!("kind = \"{}\"", self.topology.kind()), "");
        match self.topology {
            Topology::SingleSwitch { hosts } => put(text, format!("hosts = {hosts}"), ""),
            Topology::LeafSpine { leaves, spines, hosts_per_leaf } => {
                put(text, format!("leaves = {leaves}"), "");
                put(text, format!("spines = {spines}"), "a link from each leaf to each spine");
                put(text, format!("hosts-per-leaf = {hosts_per_leaf}"), "");
            }
            Topology::FatTree { k } => put(text, format!("k = {k}"), "ports of each switch"),
            Topology::Dumbbell { hosts_per_side } => {
                let last = hosts_per_side - 1;
                let left = format!("hosts 0 to {last} are on the left");
                put(text, format!("hosts-per-side = {hosts_per_side}"), left);
            }
            Topology::Rails { servers, rails } => {
                put(text, "segments = 1", "");
                put(text, format!("servers-per-segment = {servers}"), "");
                put(text, format!("rails = {rails}"), "NICs of a server, each on its own leaf");
                put(text, "spines = 2", "");
                put(text, "inner-switch = true", "each accelerator is a host");
            }
        }
        put(text, link("host-link", "1us"), "");
        match self.topology {
            Topology::SingleSwitch { .. } => {}
            Topology::Dumbbell { .. } => put(text, link("bottleneck", "10us"), ""),
            _ => put(text, link("fabric-link", "1us"), ""),
        }
        text.push('\n');
    }

    fn host(&self, text: &mut String) {
        let mtu = |text: &mut String, mtu: &str, overhead: &str, about: &str| {
            put(text, "[host]", "");
            put(text, format!("mtu = {mtu}"), about);
            put(text, format!("frame-overhead = {overhead}\n"), "");
        };
        match self.transport.family {
            Family::Rdma => mtu(text, "1040", "8", "1000 bytes of payload"),
            Family::Uet => mtu(text, "4126", "24", "4 KB of payload"),
            Family::Tcp if self.needs(Needs::Offload) => {
                put(text, "[host]", "");
                let line = "receive-offload = { kind = \"stock-gro\" }";
                put(text, line, "merges packets as Linux does\n");
            }
            Family::Tcp | Family::Homa => {}
        }
    }

    fn switch(&self, text: &mut String) {
        put(text, "[switch]", "");
        let unmarked = "this transport does not use marks";
        match self.transport.family {
            Family::Tcp => {
                let about = "300 KB up to 10 Gb/s, in proportion beyond";
                put(text, "buffer = { kind = \"per-port\" }", about);
                if self.transport.marks {
                    put(text, "\n[switch.marking]\nkind = \"ecn\"", "");
                    let about = "65 for each 10 Gb/s; or a number for all ports";
                    put(text, "threshold-packets = \"auto\"", about);
                } else {
                    put(text, "marking = { kind = \"none\" }", unmarked);
                }
            }
            Family::Rdma => {
                put(text, self.pools(), "one memory for all ports");
                if self.transport.marks {
                    red(text, "100KB", "400KB", "0.2", Some("25Gbps"));
                } else {
                    put(text, "marking = { kind = \"none\" }", unmarked);
                }
            }
            Family::Homa => {
                put(text, self.pools(), "one memory for all ports");
                let about = "receivers set the priorities";
                put(text, "queue = { kind = \"strict-priority\" }", about);
                if self.topology.has_paths() {
                    put(text, "path = { kind = \"spray\" }", "Homa takes packets in any order");
                }
            }
            Family::Uet => {
                let size = (174_300.0 * self.rate.bps() as f64 / 100e9).max(49_800.0);
                let line = format!("buffer = {{ kind = \"per-port\", size = \"{size:.0}B\" }}");
                put(text, line, "1.5 round trips at 100 Gb/s");
                put(text, "queue = { kind = \"strict-priority\" }", "headers and answers first");
                let part = |share: f64| format!("{:.0}B", size * share);
                red(text, &part(37.35 / 174.3), &part(145.25 / 174.3), "1.0", None);
            }
        }
        text.push('\n');
    }

    /// A switch with one memory: 4.5 MB for 12 ports of 40 Gb/s, in proportion at other rates, but
    /// no less a port than at 10 Gb/s.
    fn pools(&self) -> String {
        let scale = (10_000_000_000.0 / self.rate.bps() as f64).max(1.0);
        let size = (9_600.0 * scale).ceil();
        format!("buffer = {{ kind = \"pools\", size = \"{size}B\", per = \"1Gbps\" }}")
    }

    fn edge(&self, text: &mut String) {
        if self.needs(Needs::Application) {
            let per_byte = (8e12 / (0.8 * self.rate.bps() as f64)).round().max(1.0);
            put(
                text,
                "# Backdraft is for applications that are slower than their link. Here the",
                "",
            );
            put(
                text,
                "# application of each host is; plain virtual switches drop what its ring",
                "",
            );
            put(text, "# does not hold.\n[edge]\nvirtual-switch = { kind = \"lossy\" }\n", "");
            put(text, "[[application]]\nname = \"server\"", "");
            put(text, format!("per-byte = \"{per_byte}ps\""), "80 % of the link's rate");
            put(text, "ring = 256\n", "");
        }
        if self.needs(Needs::Limit) {
            let half = Rate(self.rate.bps() / 2);
            put(
                text,
                "# NRM is a bandwidth limit. The plain network limits by a token bucket, in",
                "",
            );
            put(text, "# which packets wait.\n[[limit]]\nname = \"tenant\"\nkind = \"htb\"", "");
            put(text, "hosts = \"all\"", "each host has a limit of its own");
            put(text, format!("rate = \"{half}\""), "half of a host's link\n");
        }
    }

    fn sender(&self, text: &mut String) {
        put(text, "[transport]", "");
        put(text, format!("kind = \"{}\"", self.transport.kind), "");
        if self.transport.family == Family::Tcp {
            put(text, "min-rto = \"10ms\"", "a lost tail costs at least this");
        }
        text.push('\n');
    }

    /// Microseconds in which flows of a distribution start.
    fn stop_us(&self, load: f64) -> u64 {
        let capacity = self.rate.bps() as f64 * f64::from(self.topology.links_of_load());
        let volume = if self.transport.family == Family::Tcp { VOLUME } else { VOLUME_OF_OTHERS };
        ((volume * 8e6 / (capacity * load)).ceil() as u64).max(100).next_multiple_of(100)
    }

    /// Microseconds from one query to the next: twice what the receiver's link needs.
    fn period_us(&self, degree: u32) -> u64 {
        let bits = 2 * 8 * RESPONSE * u64::from(degree);
        (bits * 1_000_000 / self.rate.bps()).max(100).next_multiple_of(100)
    }

    /// The latest end of a run in milliseconds, with time for some timeouts.
    fn latest_ms(&self) -> u64 {
        let alone_us = |size: u64| size * 8_000_000 / self.rate.bps();
        let hosts = u64::from(self.topology.hosts());
        let busy_us = match self.traffic {
            Traffic::Sizes { load, .. } => self.stop_us(load) * 5,
            Traffic::Incast { degree } => self.period_us(degree) * QUERIES,
            Traffic::Elephants { size } | Traffic::Collective { size, .. } => {
                alone_us(size.get()) * hosts
            }
        };
        (busy_us / 1000 + 100).next_multiple_of(100)
    }

    fn load(&self, text: &mut String) {
        put(text, "[[traffic]]", "");
        match self.traffic {
            Traffic::Sizes { sizes, load } => {
                put(text, "name = \"flows\"", "its class in tables and in `shows`");
                put(text, "kind = \"poisson\"", "random hosts at random times");
                put(text, format!("sizes = \"{sizes}\""), "");
                let (base, of) = match self.topology {
                    Topology::LeafSpine { .. } => ("fabric", "the leaves' uplinks"),
                    Topology::Dumbbell { .. } => ("fabric", "the bottleneck, both ways"),
                    _ => ("host-links", "the hosts' links"),
                };
                put(text, format!("load = {load}"), format!("of the capacity of {of}"));
                put(text, format!("load-base = \"{base}\""), "");
                let about = "a longer time has steadier percentiles";
                put(text, format!("stop = \"{}us\"", self.stop_us(load)), about);
            }
            Traffic::Incast { degree } => {
                put(text, "name = \"queries\"", "its class in tables and in `shows`");
                put(text, "kind = \"incast\"", "");
                put(text, format!("degree = {degree}"), "servers that answer each query at once");
                put(text, format!("response = \"{}KB\"", RESPONSE / 1000), "of each server");
                put(text, "request = \"100B\"", "the receiver asks each of them first");
                let period = format!("period = \"{}us\"", self.period_us(degree));
                put(text, period, "loads the receiver's link by half or less");
                put(text, format!("count = {QUERIES}"), "queries, each to a random host");
            }
            Traffic::Elephants { size } => {
                let (kind, about) = match self.topology {
                    Topology::LeafSpine { .. } => ("bijection", "each flow goes to another leaf"),
                    _ => ("permutation", "each host sends one flow and receives one"),
                };
                put(text, "name = \"long\"", "its class in tables and in `shows`");
                put(text, format!("kind = \"{kind}\""), about);
                put(text, format!("size = \"{size}\""), "");
            }
            Traffic::Collective { op, size } => {
                put(text, "name = \"job\"", "its class in tables and in `shows`");
                put(text, "kind = \"collective\"", "");
                put(text, format!("op = \"{op}\""), "");
                let ranks = ranks(&self.topology);
                if ranks < self.topology.hosts() {
                    put(text, format!("ranks = {ranks}"), "a rank a host; the others are idle");
                    put(text, "placement = \"random\"", "");
                }
                put(text, format!("size = \"{size}\""), "a rank's whole buffer");
                put(text, "repeat = 2", "rounds");
            }
        }
        text.push('\n');
    }

    fn variants(&self, text: &mut String) {
        put(
            text,
            "# A variant changes keys of the network above. `compare` prints differences to",
            "",
        );
        put(text, "# the first one.\n[[variant]]\nname = \"plain\"", "");
        for mechanism in &self.mechanisms {
            put(text, format!("\n# Mechanism: {}.\n[[variant]]", mechanism.about), "");
            put(text, format!("name = \"{}\"\n[variant.set]", mechanism.name), "");
            for (key, value) in mechanism.set {
                put(text, format!("\"{key}\" = {value}"), "");
            }
        }
    }
}

/// Marking at random; with `per` in proportion to the link's rate.
fn red(text: &mut String, min: &str, max: &str, probability: &str, per: Option<&str>) {
    put(text, "\n[switch.marking]\nkind = \"red\"", "");
    put(text, "at = \"after-dequeue\"", "by the queue that a packet leaves behind");
    put(text, format!("min-threshold = \"{min}\""), "marks begin");
    put(text, format!("max-threshold = \"{max}\""), "from here on each packet is marked");
    put(text, format!("max-probability = {probability}"), "");
    if let Some(per) = per {
        put(text, format!("per = \"{per}\""), "thresholds grow with the link's rate");
    }
}
