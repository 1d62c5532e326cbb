//! Names of the field that are no name of a key or a kind here: what they are called in a scenario,
//! or what comes nearest.
//!
//! `millpond explain` finds them, and where one is written as a kind or as a key, the error says
//! the same.
//!
//! Invariant: what a line sends the reader on to exists.

/// One thing with the names that people give it.
pub(crate) struct Name {
    /// All its names, in lower case with dashes.
    pub names: &'static [&'static str],
    /// Where somebody would write it as a kind; empty: it is no kind.
    pub place: &'static str,
    /// The text to write instead.
    pub advice: &'static str,
    /// The text that `explain` goes on with; empty: nothing.
    pub see: &'static str,
}

const fn kind(
    place: &'static str,
    names: &'static [&'static str],
    advice: &'static str,
    see: &'static str,
) -> Name {
    Name { names, place, advice, see }
}
const fn key(names: &'static [&'static str], advice: &'static str, see: &'static str) -> Name {
    Name { names, place: "", advice, see }
}

/// All of them.
pub(crate) const NAMES: &[Name] = &[
    // Paths.
    kind(
        "switch.path",
        &["flowlet", "flowlets", "flowlet-switching"],
        "flowlets are switched at the sending edge: [edge] load-balancing = { kind = \"flowlet\" \
         }, with switch.path = { kind = \"labels\" }",
        "flowlet",
    ),
    kind(
        "switch.path",
        &["caver", "hula", "clove", "hermes"],
        "of congestion-aware flowlets (CONGA, SIGCOMM 2014, and its successors) only CONGA is \
         built; switch.path = { kind = \"power-of-n\" } goes by the switch's own queues",
        "power-of-n",
    ),
    kind(
        "switch.path",
        &["drill(2,1)", "drill(d,m)"],
        "DRILL(d, m) (SIGCOMM 2017) is switch.path = { kind = \"drill\", samples = d, memory = m }",
        "drill",
    ),
    kind(
        "switch.path",
        &["power-of-two", "power-of-two-choices", "po2", "pow2"],
        "it is switch.path = { kind = \"power-of-n\" }, choices = 2",
        "power-of-n",
    ),
    kind(
        "switch.path",
        &["rps", "packet-spray", "packet-spraying", "random-packet-spraying", "per-packet"],
        "random packet spraying is switch.path = { kind = \"spray\" }",
        "spray",
    ),
    kind(
        "switch.path",
        &["wcmp", "weighted-ecmp"],
        "WCMP (EuroSys 2014) is not built; hashes weigh all ports alike: the nearest are \
         switch.path of kind \"ecmp\", and \"power-of-n\", which avoids the fuller ports",
        "ecmp",
    ),
    kind(
        "switch.path",
        &["hedera", "mahout", "microte", "sdn"],
        "central scheduling of elephants (Hedera, NSDI 2010) is [edge] load-balancing = { kind = \
         \"hedera\" }",
        "hedera",
    ),
    kind(
        "switch.path",
        &["d-mod-k", "dmodk", "static", "deterministic"],
        "it is switch.path = { kind = \"balanced\" }",
        "balanced",
    ),
    kind(
        "switch.path",
        &["presto"],
        "Presto is of the sending edge: [edge] load-balancing = { kind = \"presto\" }, with \
         switch.path = { kind = \"labels\" }",
        "presto",
    ),
    kind(
        "edge.load-balancing",
        &["flowbender"],
        "FlowBender (CoNEXT 2014) is not built; the nearest is PLB, its successor: { kind = \
         \"plb\" }",
        "plb",
    ),
    kind(
        "switch.path",
        &["vlb", "valiant", "valiant-load-balancing"],
        "a way by chance (Valiant; VL2, SIGCOMM 2009) is switch.path = { kind = \"ecmp\" } for \
         each flow, and { kind = \"spray\" } for each packet",
        "ecmp",
    ),
    kind(
        "edge.load-balancing",
        &["flowcell", "flowcells"],
        "flowcells are Presto's: { kind = \"presto\" }",
        "presto",
    ),
    // Transports.
    kind(
        "transport",
        &["int", "inband-telemetry"],
        "transport.kind = \"hpcc\" and \"powertcp\" steer by switches' telemetry (INT)",
        "hpcc",
    ),
    kind(
        "transport",
        &["theta-powertcp", "θ-powertcp"],
        "PowerTCP by delays (NSDI 2022) is not built; by switches' telemetry it is \
         transport.kind = \"powertcp\"",
        "powertcp",
    ),
    kind(
        "transport",
        &["bolt"],
        "Bolt (NSDI 2023) is not built; the nearest that goes by what switches tell is \
         transport.kind = \"hpcc\"",
        "hpcc",
    ),
    kind(
        "transport",
        &["hull", "phantom-queue", "phantom-queues"],
        "HULL (NSDI 2012), which marks by phantom queues, is not built; the nearest is \
         transport.kind = \"dctcp\" with a low switch.marking.threshold-packets",
        "dctcp",
    ),
    kind(
        "transport",
        &["aeolus"],
        "Aeolus (SIGCOMM 2020) is not built; what it has of switches, selective dropping, is \
         switch.admission = { kind = \"color-aware\" }",
        "color-aware",
    ),
    kind(
        "host.receive-offload",
        &["juggler"],
        "Juggler (EuroSys 2016) is not built; the nearest that merges packets out of order is \
         host.receive-offload = { kind = \"presto-gro\" }",
        "presto-gro",
    ),
    kind(
        "transport",
        &["phost", "ndp", "expresspass", "eqds", "sird", "dcpim", "receiver-driven"],
        "it is not built; the receiver-driven transport that is there is Homa (SIGCOMM 2018), \
         transport.kind = \"homa\"",
        "homa",
    ),
    kind(
        "transport",
        &["multipath-tcp", "mp-tcp", "lia", "olia"],
        "it is transport.kind = \"mptcp\", with mptcp-coupling = \"lia\", \"olia\" or \
         \"uncoupled\"",
        "mptcp",
    ),
    kind(
        "transport",
        &[
            "no-congestion-control",
            "without-congestion-control",
            "no-cc",
            "congestion-control-off",
            "uncontrolled",
            "line-rate",
            "constant-rate",
            "fixed-rate",
            "cbr",
        ],
        "queue pairs without congestion control are transport.kind = \"dcqcn\" with switch.marking \
         = { kind = \"none\" }: they send at line rate, or at [rdma] max-rate",
        "max-rate",
    ),
    key(
        &["rate-limit", "rate-cap", "qp-rate", "queue-pair-rate", "static-rate", "pacing-rate"],
        "a queue pair's highest rate is [rdma] max-rate; the rate of a host's application is a \
         [[limit]]",
        "max-rate",
    ),
    kind(
        "transport",
        &["irn", "rdma", "roce", "rocev2", "selective", "go-back-n"],
        "queue pairs run \"dcqcn\", \"hpcc\", \"powertcp\", \"timely\" or \"rdma-dctcp\"; IRN is \
         their recovery, [rdma] recovery = { kind = \"selective\" }",
        "selective",
    ),
    kind(
        "transport",
        &["sack"],
        "TCPs have it by the key transport.sack; of queue pairs it is IRN, [rdma] recovery = { \
         kind = \"selective\" }",
        "",
    ),
    kind(
        "transport",
        &["reno", "new-reno", "tcp"],
        "it is transport.kind = \"newreno\"",
        "newreno",
    ),
    kind(
        "transport",
        &["bbr", "vegas", "bic", "d2tcp", "dctcp+", "l2dct", "xcp", "rcp", "d3", "pdq"],
        "it is not built; the nearest are \"dctcp\", which goes by marks, \"swift\", which goes \
         by delay, and \"cubic\", which goes by losses",
        "dctcp",
    ),
    kind(
        "transport",
        &["pfabric", "pias"],
        "it is a transport with ranks: transport.rank = { kind = \"remaining-bytes\" } (pFabric) \
         or \"attained-service\" (PIAS), with switch.queue = { kind = \"srpt\" }",
        "remaining-bytes",
    ),
    // Marking, admission, queues.
    kind(
        "switch.marking",
        &["wred"],
        "it drops: switch.admission = { kind = \"wred\" }; RED that marks is switch.marking = { \
         kind = \"red\" }",
        "switch.marking.red",
    ),
    kind(
        "switch.marking",
        &["step", "threshold", "dctcp"],
        "it is switch.marking = { kind = \"ecn\" }",
        "ecn",
    ),
    kind(
        "switch.admission",
        &["codel", "fq-codel", "pie", "aqm"],
        "CoDel and PIE, which go by the time in the queue, are not built; the nearest are \
         switch.admission = { kind = \"red\" } and switch.marking = { kind = \"ecn\" }",
        "red",
    ),
    kind(
        "switch.admission",
        &["droptail", "tail-drop", "taildrop"],
        "it is switch.admission = { kind = \"drop-tail\" }",
        "drop-tail",
    ),
    kind(
        "switch.admission",
        &["color", "colour-aware", "colored", "selective-dropping"],
        "it is switch.admission = { kind = \"color-aware\" }",
        "color-aware",
    ),
    kind(
        "switch.queue",
        &["pifo", "pfabric", "stfq"],
        "a queue in the order of ranks is switch.queue = { kind = \"srpt\" }, and its \
         approximation by FIFOs { kind = \"sp-pifo\" }",
        "srpt",
    ),
    kind(
        "switch.queue",
        &["priority", "strict", "sp", "prio"],
        "it is switch.queue = { kind = \"strict-priority\" }",
        "strict-priority",
    ),
    kind(
        "switch.queue",
        &["drr", "wfq", "fair-queueing", "fq", "round-robin", "wrr"],
        "flows that are served in turn, a packet each, are switch.queue = { kind = \
         \"dynamic-queues\" }",
        "dynamic-queues",
    ),
    kind(
        "switch.buffer",
        &["dynamic-threshold", "dynamic-thresholds", "dt", "abm"],
        "one memory under dynamic thresholds is switch.buffer = { kind = \"shared\" }",
        "shared",
    ),
    kind(
        "switch.buffer",
        &["static", "private", "dedicated"],
        "it is switch.buffer = { kind = \"per-port\" }",
        "per-port",
    ),
    kind(
        "switch.deflection",
        &["pabo", "deflect"],
        "it is not built; the nearest are switch.deflection = { kind = \"dibs\" } and { kind = \
         \"simple\" }",
        "dibs",
    ),
    kind(
        "switch.deflection",
        &["trimming", "packet-trimming", "cut-payload"],
        "packet trimming is switch.overflow = { kind = \"trim\" }, for transport \"uet\"",
        "dibs",
    ),
    kind(
        "switch.pause",
        &["backpressure-flow-control", "backpressure"],
        "BFC (NSDI 2022) is switch.pause = { kind = \"bfc\" }, with switch.queue = { kind = \
         \"dynamic-queues\" }",
        "bfc",
    ),
    kind(
        "switch.pause",
        &["lossless", "802.1qbb"],
        "it is switch.pause = { kind = \"pfc\" }",
        "pfc",
    ),
    kind(
        "edge.virtual-switch",
        &["credit", "receiver-credits", "end-host-credits"],
        "it is edge.virtual-switch = { kind = \"credits\" }",
        "credits",
    ),
    kind(
        "edge.virtual-switch",
        &["per-flow-queues", "dpfq", "pfq", "dynamic-per-flow-queues"],
        "it is edge.virtual-switch = { kind = \"flow-queues\" }",
        "flow-queues",
    ),
    kind("limit", &["tbf", "token-bucket", "tc"], "it is a [[limit]] of kind \"htb\"", "htb"),
    // Topologies and traffic.
    kind(
        "topology",
        &["clos", "spine-leaf", "two-tier", "leafspine", "folded-clos"],
        "it is topology.kind = \"leaf-spine\"",
        "leaf-spine",
    ),
    kind(
        "topology",
        &["fattree", "three-tier", "k-ary"],
        "it is topology.kind = \"fat-tree\"",
        "fat-tree",
    ),
    kind(
        "topology",
        &["star", "single", "tor", "rack"],
        "it is topology.kind = \"single-switch\"",
        "single-switch",
    ),
    kind(
        "topology",
        &["custom", "graph", "jellyfish", "dragonfly", "torus", "edge-list"],
        "any network is topology.kind = \"file\", from a list of its links",
        "file",
    ),
    kind(
        "traffic",
        &["all-to-all", "alltoall", "a2a"],
        "it is a [[traffic]] of kind \"shuffle\"",
        "shuffle",
    ),
    kind(
        "traffic",
        &["ping", "pingpong", "ping-pong", "latency"],
        "it is a [[traffic]] of kind \"probe\"",
        "probe",
    ),
    kind(
        "traffic",
        &["trace", "csv", "list"],
        "flows from a list or a file are a [[traffic]] of kind \"flows\"",
        "flows",
    ),
    kind(
        "traffic",
        &["open-loop", "background", "random-flows"],
        "it is a [[traffic]] of kind \"poisson\"",
        "poisson",
    ),
    kind(
        "traffic",
        &["query", "queries", "partition-aggregate", "fan-in"],
        "it is a [[traffic]] of kind \"incast\"",
        "incast",
    ),
    // Keys.
    key(
        &["k", "kmin", "ecn-threshold", "marking-threshold"],
        "DCTCP's K is switch.marking.threshold-packets, or threshold-bytes",
        "switch.marking.threshold-packets",
    ),
    key(
        &["rack", "rack-tlp"],
        "the loss detection RACK (RFC 8985) is transport.loss-detection = \"rack\"; its tail loss \
         probe is transport.tlp",
        "transport.loss-detection",
    ),
    key(&["edt", "earliest-departure-time"], "it is a limit of form = \"edt\"", "limit.form"),
    key(&["rto", "rtomin", "rto-min", "minrto"], "it is transport.min-rto", "transport.min-rto"),
    key(
        &["timeout", "timeouts", "retransmission-timeout"],
        "the least retransmission timeout is transport.min-rto; summary.json counts `timeouts`, \
         which `shows` takes",
        "transport.min-rto",
    ),
    key(
        &["loss", "losses", "packet-loss", "drop", "drops", "packet-drops"],
        "drops are packets.dropped and, by reason, drops of summary.json; [[failure]] loss makes \
         a link lose packets at random",
        "failure.loss",
    ),
    key(
        &["retransmission", "retransmissions", "retransmit", "retransmitted"],
        "packets sent again are packets.retransmitted of summary.json, which `shows` takes",
        "",
    ),
    key(
        &["load-balancing", "load-balancer", "spraying", "multipath", "multi-path"],
        "a switch chooses paths by switch.path, a sender by edge.load-balancing",
        "switch.path",
    ),
    key(
        &["oversubscription", "oversubscribed", "bisection"],
        "`check` prints it: the hosts' links of a leaf over its uplinks, by rates of host-link \
         and fabric-link and by hosts-per-leaf and spines",
        "",
    ),
    key(
        &["queue-depth", "queue-length", "queue-over-time", "occupancy", "microburst"],
        "[capture] queues = \"10us\" samples the bytes that wait at each port; `plot --figure \
         queue` draws them",
        "capture.queues",
    ),
    key(
        &["recovery", "recovery-time", "link-failure", "switch-failure", "outage"],
        "[[failure]] fails links or a switch; with [capture] goodput a run prints the time until \
         goodput is back (docs/scenario-time.md)",
        "failure.switch",
    ),
    key(
        &["pipeline", "pipeline-parallel", "pipeline-parallelism"],
        "traffic of kind \"chakra\" or \"goal\" runs stages as its traces have them; \"simai\" \
         runs each stage by itself (docs/ai-programs.md)",
        "chakra",
    ),
    key(
        &["nvlink", "nvswitch", "scale-up"],
        "topology \"rail-optimised\" has an inner switch in each server; in a file of topology an \
         inner switch or links between hosts",
        "rail-optimised",
    ),
    key(
        &["iw", "initcwnd", "init-cwnd", "initial-cwnd"],
        "it is transport.initial-window",
        "transport.initial-window",
    ),
    key(
        &["bandwidth", "link-rate", "capacity", "speed"],
        "it is the rate of a link: topology.host-link.rate, topology.fabric-link.rate",
        "topology.host-link.rate",
    ),
    key(
        &["latency", "propagation-delay", "link-delay"],
        "it is the delay of a link: topology.host-link.delay, topology.fabric-link.delay",
        "topology.host-link.delay",
    ),
    key(&["buffer-size", "queue-size", "qsize"], "it is switch.buffer.size", "switch.buffer.size"),
    key(&["tso", "gso"], "it is host.segment-offload", "host.segment-offload"),
    key(&["gro", "lro"], "it is host.receive-offload", "host.receive-offload"),
    key(&["tsq"], "TCP small queues are host.nic.per-flow-limit", "host.nic.per-flow-limit"),
    key(
        &["workload", "cdf", "flow-sizes", "size-distribution"],
        "it is the sizes of a [[traffic]] of kind \"poisson\"",
        "traffic.sizes",
    ),
    key(
        &["fanout", "fan-out", "incast-degree", "senders"],
        "it is the degree of a [[traffic]] of kind \"incast\"",
        "traffic.degree",
    ),
    key(
        &["dupack", "dupthresh", "reordering"],
        "it is transport.dupack-threshold",
        "transport.dupack-threshold",
    ),
    key(&["websearch"], "it is sizes = \"web-search\"", "web-search"),
    key(&["datamining"], "it is sizes = \"data-mining\"", "data-mining"),
    key(&["simulation-time", "sim-time", "stop-time", "time"], "it is duration", "duration"),
    // Results.
    key(
        &[
            "noise",
            "beyond",
            "within",
            "agreed",
            "confidence",
            "confidence-interval",
            "interval",
            "significance",
        ],
        "a comparison marks a difference by its noise: beyond (*) if its 95 % interval excludes \
         zero, within if not (docs/guides/seeds.md)",
        "",
    ),
    key(
        &["seeds", "replications", "repetitions"],
        "the commands take them: compare --seeds 6 runs each variant with six, and \
         docs/guides/seeds.md helps to choose how many",
        "seed",
    ),
    key(
        &["cwnd", "congestion-window", "window-over-time"],
        "it is cwnd_bytes of connections.parquet, which capture.connections makes",
        "capture.connections.every",
    ),
    key(
        &["rtt", "srtt", "round-trip-time"],
        "a connection's is srtt_us of connections.parquet, which capture.connections makes; \
         rtt_us of summary.json is that of a [[traffic]] of kind \"probe\"",
        "probe",
    ),
    key(
        &["fct", "flow-completion-time", "completion-time"],
        "it is fct_us of flows.parquet, and its statistics fct_us.CLASS of summary.json \
         (docs/results.md)",
        "",
    ),
    key(
        &["qct", "query-completion-time"],
        "it is qct_us of queries.parquet, and its statistics qct_us of summary.json \
         (docs/results.md)",
        "incast",
    ),
    key(
        &["ratio", "closed-form"],
        "ratio is a collective's time over its closed form through one NIC, so with k NICs the \
         best is 1/k; `shows` takes it (docs/ai-traffic.md)",
        "collective",
    ),
    key(
        &["busbw", "bus-bandwidth", "algbw", "algorithm-bandwidth"],
        "it is busbw_gbytes and algbw_gbytes of collectives.parquet, and `shows` takes busbw \
         (docs/ai-traffic.md)",
        "collective",
    ),
    key(
        &["eleph", "eleph.", "elephant", "elephants", "mouse", "mice", "classes"],
        "elephants and mice are classes of flows by size: class of flows.parquet, and of the \
         statistics of summary.json, such as fct_us.mice (docs/results.md)",
        "",
    ),
    key(
        &["partition"],
        "it is how a run is divided over threads, and no result depends on it: run --threads",
        "",
    ),
    key(
        &["slowdown", "stretch", "normalized-fct"],
        "it is slowdown of flows.parquet, FCT over that of the flow alone; its statistics are \
         slowdown.CLASS of summary.json, and by size those of sizes.parquet",
        "size-bins",
    ),
    key(
        &[
            "p50",
            "p90",
            "p95",
            "p99",
            "p999",
            "median",
            "percentile",
            "percentiles",
            "tail",
            "tail-latency",
        ],
        "percentiles are in summary.json, such as fct_us.mice.p99, slowdown.all.p99 and \
         qct_us.p99 (docs/results.md)",
        "",
    ),
    key(
        &["fairness", "jain", "jains-index"],
        "it is fairness_jain of summary.json: Jain's index over the goodput of pairs of hosts",
        "",
    ),
    key(
        &["variant", "variants", "variant.set", "variant.name", "set"],
        "[[variant]] names a change of the scenario: name = \"x\", set = { \"switch.path.kind\" = \
         \"spray\" }; the keys in set are those that --set takes",
        "",
    ),
];

/// A name as it is written here.
fn normal(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', ' '], "-")
}

/// All that goes by a name.
pub(crate) fn named(name: &str) -> impl Iterator<Item = &'static Name> {
    let name = normal(name);
    NAMES.iter().filter(move |n| n.names.contains(&name.as_str()))
}

/// The text to write in the place of a kind that is not there.
pub(crate) fn instead_of_kind(place: &str, kind: &str) -> Option<&'static str> {
    // A place of a NIC or of a traffic has its own path, and the same kinds.
    let leaf = |path: &str| path.rsplit('.').next().unwrap_or(path).to_string();
    let mut found: Vec<&Name> = named(kind).collect();
    found.sort_by_key(|n| (n.place != place, leaf(n.place) != leaf(place), n.place.is_empty()));
    found.first().filter(|n| !n.place.is_empty()).map(|n| n.advice)
}

/// The text to write in the place of a key that is not there.
pub(crate) fn instead_of_key(key: &str) -> Option<&'static str> {
    named(key).find(|n| n.place.is_empty()).map(|n| n.advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::places;
    use crate::explain::explain;

    #[test]
    fn every_line_leads_somewhere() {
        for name in NAMES {
            assert!(name.names.iter().all(|n| *n == normal(n)), "{:?}", name.names);
            assert!(name.see.is_empty() || explain(name.see).is_ok(), "{}", name.see);
            let Some(place) = places().into_iter().find(|p| p.place.path == name.place) else {
                assert!(name.place.is_empty(), "{} is no place", name.place);
                continue;
            };
            let shadowed =
                place.kinds.iter().find(|kind| name.names.contains(&kind.mechanism.kind));
            assert!(
                shadowed.is_none(),
                "{} is built",
                shadowed.map_or("", |kind| kind.mechanism.kind)
            );
        }
    }

    #[test]
    fn a_name_means_what_its_place_makes_of_it() {
        assert!(instead_of_kind("switch.queue", "pfabric").unwrap().contains("srpt"));
        assert!(instead_of_kind("transport", "pfabric").unwrap().contains("remaining-bytes"));
        for name in ["no congestion control", "fixed rate", "rate limit"] {
            assert!(explain(name).unwrap().contains("max-rate"), "{name}");
        }
        assert!(instead_of_kind("switch.path", "DRILL(d,m)").unwrap().contains("memory = m"));
        assert!(instead_of_kind("host.nic.marking", "wred").unwrap().contains("kind = \"red\""));
        assert_eq!(instead_of_kind("switch.path", "rto"), None);
        assert!(instead_of_key("bandwidth").unwrap().contains("topology.host-link.rate"));
    }
}
