//! Backdraft: what its authors say of it, and what this project asks of its parts.
//!
//! Of the paper its abstract, its slides' words and its authors' release are at hand, and no plot. So only the abstract's
//! number and the orders that the slides state in words count as published. What three points of the slides were solved
//! from is fitted. All other orders and bounds are this project's. Intervals were laid down before anything was run.

mod claims;

use crate::baseline::Baselines;
use crate::experiment::{Experiment, Paper, Runs};
use crate::statistic::{Of, OfSamples, Statistic};
use millpond_results::Keep;

/// The paper.
pub const BACKDRAFT: Paper = Paper {
    name: "backdraft",
    title: "Backdraft: a lossless virtual switch that prevents the slow receiver problem",
    experiments: EXPERIMENTS,
    claims: claims::CLAIMS,
    baselines: BASELINES,
    emulated: &[],
};

/// A virtual switch off is the lossy one; losses off are rings that hold all that comes.
const BASELINES: Baselines = Baselines {
    off: &[
        ("backdraft", "lossy"),
        ("backpressure", "lossy"),
        ("flow-queues", "lossy"),
        ("doorbells", "polled"),
        ("doorbells", "lossy"),
        ("credits", "lossy"),
        ("picnic", "lossy"),
        ("growing", "static"),
        ("pfc", "lossy"),
        ("bfc", "lossy"),
        ("background", "memcached"),
        ("lossy", "deep"),
        ("loss-1e-5", "lossy"),
        ("loss-1e-3", "lossy"),
        ("loss-1e-2", "lossy"),
    ],
    of: &[
        ("E6i", &[("credits", "lossy")]),
        ("E6n", &[("backdraft", "lossy")]),
        ("E6o", &[("backdraft", "lossy")]),
        ("E7b", &[("backpressure", "lossy")]),
    ],
    none: &[("E1", "the claim is about the application's speed, and no mechanism acts on it")],
};

type Name = &'static str;
type Schemes = &'static [(Name, Name)];
type Shows = &'static [(Name, Statistic)];
type Loads = &'static [(f64, Name)];

/// What hosts drop: in the NIC's ring, and behind it.
const AT_HOSTS: Statistic = Statistic::DroppedFor(&["receive-ring", "virtual-switch"]);
const MEDIAN: Statistic = Statistic::Samples("calls", OfSamples::P50);
const SPREAD: Statistic = Statistic::Samples("calls", OfSamples::Spread);
/// Within 100 us.
const SWING: Statistic = Statistic::Samples("calls", OfSamples::Swing(100));
const MESSAGES_P99: Statistic = Statistic::Flows("messages", Of::P99);
const MESSAGES_P999: Statistic = Statistic::Flows("messages", Of::P999);
const INCAST_P99: Statistic = Statistic::Flows("incast", Of::P99);
const STREAM_P50: Statistic = Statistic::Flows("victim", Of::P50);
const STREAM_P99: Statistic = Statistic::Flows("victim", Of::P99);
const VICTIM_P99: Statistic = Statistic::Calls("victim", Of::P99);
const VICTIM_CALLS: Statistic = Statistic::Calls("victim", Of::Count);
const VICTIM_GOODPUT: Statistic = Statistic::Samples("victim", OfSamples::Mean);
const NEIGHBOUR_GOODPUT: Statistic = Statistic::Samples("neighbour", OfSamples::Mean);
const BURST: Statistic = Statistic::Flows("burst", Of::Mean);
const CALLS: Statistic = Statistic::Calls("calls", Of::Count);

const fn counter(name: Name) -> Statistic {
    Statistic::Counter("flow-queues", name)
}
const STOPS: Statistic = counter("stops");
const LOOKS: Statistic = counter("polls-per-1000-packets");

const ONE: Loads = &[(100.0, "")];
const CORES: Loads = &[
    (1.0, "1"),
    (2.0, "2"),
    (4.0, "4"),
    (6.0, "6"),
    (8.0, "8"),
    (14.0, "14"),
    (16.0, "16"),
    (32.0, "32"),
    (64.0, "64"),
];
/// In percent of what the application can serve.
const WORK: Loads = &[(75.0, "1"), (150.0, "2"), (300.0, "4")];
const SMALL: Loads = &[(16.0, "16"), (64.0, "64"), (200.0, "200"), (400.0, "400")];
const LARGE: Loads = &[(1.0, "1"), (4.0, "4"), (8.0, "8"), (16.0, "16")];
const PACKETS: Loads = &[(32.0, "46720B"), (64.0, "93440B"), (512.0, "747520B"), (4096.0, "5980160B")];
const SILENT: Loads = &[(2.0, "1"), (128.0, "64"), (1024.0, "512"), (4096.0, "2048"), (10_000.0, "5000")];
const CONNECTIONS: Loads = &[(2.0, "2"), (32.0, "32")];

const APPLICATIONS: Schemes = &[("memcached", "memcached"), ("nginx", "nginx"), ("iperf3", "iperf3")];
const VARYING: Schemes = &[("memcached", "memcached"), ("background", "with another task")];
const HOMA: Schemes = &[("lossy", "Homa, ring of 256"), ("deep", "Homa, ring of 65,536")];
const LOSSES: Schemes = &[
    ("lossy", "no loss"),
    ("loss-1e-5", "loss 1e-5"),
    ("loss-1e-4", "loss 1e-4"),
    ("loss-1e-3", "loss 1e-3"),
    ("loss-1e-2", "loss 1e-2"),
];
const SWITCHES: Schemes = &[
    ("alone", "no neighbour"),
    ("lossy", "lossy"),
    ("backpressure", "backpressure"),
    ("flow-queues", "flow queues"),
    ("doorbells", "+ doorbells"),
    ("backdraft", "Backdraft"),
    ("timed", "its release, timed"),
    ("episode", "its release, episodes"),
];
/// Five bursts, so that ten messages of five seeds exceed a p99.
const MORE: (Name, Name) = ("traffic.incast.stop", "42ms");
/// The stack of the paper's applications.
const TAS: &[(Name, Name)] = &[
    ("transport.kind", "tas"),
    ("transport.sack", "false"),
    ("transport.rto-estimator", "tas"),
    ("transport.min-rto", "200us"),
    ("transport.initial-rto", "400us"),
];
const TAS_LARGE: &[(Name, Name)] = &[
    ("transport.kind", "tas"),
    ("transport.sack", "false"),
    ("transport.rto-estimator", "tas"),
    ("transport.min-rto", "200us"),
    ("transport.initial-rto", "400us"),
    ("transport.tas-initial-rate", "1Gbps"),
    MORE,
    ("traffic.incast.response", "100KB"),
    ("application.slow.per-byte", "800ps"),
    ("application.slow.mean", "0ns"),
];
const TAS_SWITCHES: Schemes = &[("alone", "no neighbour"), ("lossy", "lossy"), ("backdraft", "Backdraft")];
const ADMISSIONS: Schemes =
    &[("lossy", "lossy"), ("backdraft", "Backdraft"), ("credits", "credits"), ("picnic", "PicNIC's rates")];
const QUEUES: Schemes = &[("static", "64 packets"), ("growing", "growing")];
const LOOKING: Schemes = &[("polled", "polled"), ("doorbells", "doorbells"), ("counted", "counted doorbells")];
const PAUSES: Schemes =
    &[("alone", "no slow receiver"), ("lossy", "lossy"), ("pfc", "PFC"), ("bfc", "BFC"), ("backdraft", "Backdraft")];

const OF_INCAST: Shows = &[
    ("messages p50", Statistic::Flows("incast", Of::P50)),
    ("messages p99", INCAST_P99),
    ("victim p50", STREAM_P50),
    ("victim p99", STREAM_P99),
    ("dropped at the host", AT_HOSTS),
    ("timeouts", Statistic::Timeouts),
    ("goodput", Statistic::Goodput),
];
const OF_NEIGHBOUR: Shows = &[
    ("victim calls", VICTIM_CALLS),
    ("victim p50", Statistic::Calls("victim", Of::P50)),
    ("victim p99", VICTIM_P99),
    ("neighbour", NEIGHBOUR_GOODPUT),
    ("dropped at the host", AT_HOSTS),
    ("lost of sent", Statistic::Lost),
];
const OF_SPREADING: Shows = &[
    ("victim", VICTIM_GOODPUT),
    ("slow", Statistic::Samples("slow", OfSamples::Mean)),
    ("probe p50", Statistic::ProbeP50),
    ("probe p99.9", Statistic::ProbeP999),
    ("PAUSE frames", Statistic::Pauses),
    ("dropped", Statistic::Dropped),
];

/// What experiments differ in.
struct Table {
    scenario: (Name, Name),
    schemes: Schemes,
    axis: (Name, Option<Name>),
    loads: Loads,
    quick: Loads,
    set: &'static [(Name, Name)],
    shows: Shows,
}

/// Five seeds, and one with `--quick`.
const fn experiment(name: Name, title: Name, of: Table) -> Experiment {
    Experiment {
        name,
        title,
        scenario: of.scenario.0,
        text: of.scenario.1,
        schemes: of.schemes,
        load_axis: of.axis.0,
        load_key: of.axis.1,
        full: Runs { loads: of.loads, seeds: (1, 5), set: of.set, note: "" },
        quick: Ok(Runs { loads: of.quick, seeds: (1, 1), set: of.set, note: "--quick: one seed" }),
        keep: Keep::Summary,
        shows: of.shows,
        published: &[],
    }
}

macro_rules! scenario {
    ($name:literal) => {
        (
            concat!("scenarios/papers/backdraft/", $name, ".toml"),
            include_str!(concat!("../../../../../scenarios/papers/backdraft/", $name, ".toml")),
        )
    };
}

const NO_LOAD: (Name, Option<Name>) = ("load, percent", None);
const MESSAGES: (Name, Option<Name>) = ("messages of each client at once", Some("traffic.incast.flows-per-server"));

const EXPERIMENTS: &[Experiment] = &[
    experiment(
        "cores",
        "E1: throughput by cores of the application",
        Table {
            scenario: scenario!("cores"),
            schemes: APPLICATIONS,
            axis: ("cores", Some("application.server.cores")),
            loads: CORES,
            quick: CORES,
            set: &[],
            shows: &[("goodput", Statistic::Goodput)],
        },
    ),
    experiment(
        "variation",
        "E2, E3: throughput of memcached on 32 cores, in windows of 100 us",
        Table {
            scenario: scenario!("cores"),
            schemes: VARYING,
            axis: NO_LOAD,
            loads: ONE,
            quick: ONE,
            set: &[("capture.goodput", "100us")],
            shows: &[("median", MEDIAN), ("p10 to p90", SPREAD), ("largest swing", SWING)],
        },
    ),
    experiment(
        "homa-slow",
        "E4: messages over Homa to an application that is ever slower",
        Table {
            scenario: scenario!("homa"),
            schemes: HOMA,
            axis: ("work, percent of what the application can do", Some("application.server.slow-down")),
            loads: WORK,
            quick: WORK,
            set: &[],
            shows: &[
                ("p50", Statistic::Flows("messages", Of::P50)),
                ("p99", MESSAGES_P99),
                ("dropped at the host", AT_HOSTS),
                ("goodput", Statistic::Goodput),
                ("RESENDs and PINGs", Statistic::Timeouts),
            ],
        },
    ),
    experiment(
        "homa-loss",
        "E5: messages over Homa, and a link that loses packets",
        Table {
            scenario: scenario!("homa"),
            schemes: LOSSES,
            axis: NO_LOAD,
            loads: ONE,
            quick: ONE,
            set: &[("traffic.messages.stop", "200ms")],
            shows: &[
                ("p50", Statistic::Flows("messages", Of::P50)),
                ("p99", MESSAGES_P99),
                ("p99.9", MESSAGES_P999),
                ("dropped", Statistic::Dropped),
                ("RESENDs and PINGs", Statistic::Timeouts),
            ],
        },
    ),
    experiment(
        "incast-small",
        "E6: bursts of messages of 1,700 bytes, and a victim; least RTO 10 ms",
        Table {
            scenario: scenario!("incast"),
            schemes: SWITCHES,
            axis: MESSAGES,
            loads: SMALL,
            quick: SMALL,
            set: &[],
            shows: OF_INCAST,
        },
    ),
    experiment(
        "incast-large",
        "E6: bursts of messages of 100 KB, and a victim; least RTO 10 ms",
        Table {
            scenario: scenario!("incast"),
            schemes: SWITCHES,
            axis: MESSAGES,
            loads: LARGE,
            quick: LARGE,
            set: &[
                MORE,
                ("traffic.incast.response", "100KB"),
                ("application.slow.per-byte", "800ps"),
                ("application.slow.mean", "0ns"),
            ],
            shows: OF_INCAST,
        },
    ),
    experiment(
        "incast-tas",
        "E6: as incast-small, over TAS with its own timers",
        Table {
            scenario: scenario!("incast"),
            schemes: TAS_SWITCHES,
            axis: MESSAGES,
            loads: SMALL,
            quick: SMALL,
            set: TAS,
            shows: OF_INCAST,
        },
    ),
    experiment(
        "incast-tas-large",
        "E6: as incast-large, over TAS with its own timers",
        Table {
            scenario: scenario!("incast"),
            schemes: TAS_SWITCHES,
            axis: MESSAGES,
            loads: LARGE,
            quick: LARGE,
            set: TAS_LARGE,
            shows: OF_INCAST,
        },
    ),
    experiment(
        "incast-rto",
        "E6: as incast-small, least RTO 1 ms",
        Table {
            scenario: scenario!("incast"),
            schemes: SWITCHES,
            axis: MESSAGES,
            loads: SMALL,
            quick: SMALL,
            set: &[("transport.min-rto", "1ms"), ("transport.initial-rto", "1ms")],
            shows: OF_INCAST,
        },
    ),
    experiment(
        "incast-homa",
        "E6: as incast-small, messages over Homa; RESENDs after 12 ms",
        Table {
            scenario: scenario!("incast"),
            schemes: SWITCHES,
            axis: MESSAGES,
            loads: SMALL,
            quick: SMALL,
            set: &[("transport.kind", "homa"), ("transport.homa-resend-interval", "12ms")],
            shows: OF_INCAST,
        },
    ),
    experiment(
        "incast-homa-large",
        "E6: as incast-homa, messages of 100 KB",
        Table {
            scenario: scenario!("incast"),
            schemes: SWITCHES,
            axis: MESSAGES,
            loads: LARGE,
            quick: LARGE,
            set: &[
                ("transport.kind", "homa"),
                ("transport.homa-resend-interval", "12ms"),
                MORE,
                ("traffic.incast.response", "100KB"),
                ("application.slow.per-byte", "800ps"),
                ("application.slow.mean", "0ns"),
            ],
            shows: OF_INCAST,
        },
    ),
    experiment(
        "admission",
        "E6: as incast-small, with the two ways that the slides name beside Backdraft's",
        Table {
            scenario: scenario!("incast"),
            schemes: ADMISSIONS,
            axis: MESSAGES,
            loads: SMALL,
            quick: SMALL,
            set: &[],
            shows: OF_INCAST,
        },
    ),
    experiment(
        "neighbour",
        "E7: a memcached beside an application that has always more to do than it can",
        Table {
            scenario: scenario!("neighbour"),
            schemes: SWITCHES,
            axis: NO_LOAD,
            loads: ONE,
            quick: ONE,
            set: &[],
            shows: OF_NEIGHBOUR,
        },
    ),
    experiment(
        "neighbour-open",
        "E7: as neighbour, a victim that does not wait for its answers",
        Table {
            scenario: scenario!("neighbour"),
            schemes: SWITCHES,
            axis: NO_LOAD,
            loads: ONE,
            quick: ONE,
            set: &[(
                "traffic.victim",
                "{ kind = \"incast\", receiver = 0, degree = 1, response = 1000, rate = 500000 }",
            )],
            shows: &[
                ("victim p50", STREAM_P50),
                ("victim p99", STREAM_P99),
                ("neighbour", NEIGHBOUR_GOODPUT),
                ("dropped at the host", AT_HOSTS),
            ],
        },
    ),
    experiment(
        "bursts",
        "E8: bursts into a queue of 64 packets, and into one that grows",
        Table {
            scenario: scenario!("bursts"),
            schemes: QUEUES,
            axis: ("packets of a burst", Some("traffic.burst.response")),
            loads: PACKETS,
            quick: PACKETS,
            set: &[],
            shows: &[("mean", BURST), ("polling stopped", STOPS), ("dropped at the host", AT_HOSTS)],
        },
    ),
    experiment(
        "doorbells",
        "E9: calls in 3 ms beside queues that are silent",
        Table {
            scenario: scenario!("doorbells"),
            schemes: LOOKING,
            axis: ("silent queues", Some("traffic.silent.count")),
            loads: SILENT,
            quick: SILENT,
            set: &[],
            shows: &[("calls", CALLS), ("looks a 1,000 packets", LOOKS)],
        },
    ),
    experiment(
        "spreading",
        "E10: a victim that shares a link with flows to a slow receiver",
        Table {
            scenario: scenario!("spreading"),
            schemes: PAUSES,
            axis: ("connections of each of three senders", Some("traffic.slow.connections")),
            loads: CONNECTIONS,
            quick: CONNECTIONS,
            set: &[],
            shows: OF_SPREADING,
        },
    ),
];
