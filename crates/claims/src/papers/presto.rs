//! Presto: flowcells over disjoint paths against hashing, flowlets and one non-blocking switch.
//!
//! The workloads of the paper's section 5 on its testbed's shape, in the simulator, with what is known of its claims. Numbers
//! of the conference's slides count as published. What is only remembered of the paper's text (its identifiers begin with M)
//! has no number here, and what follows from the setting by arithmetic (A) counts as derived.
//!
//! Claims of processor time (P6 to P9) are of a model whose costs are solved from three of the slides' points. P6 and P9
//! are fitted: they ask whether it gives those three points back. P7 and P8 are what it predicts of a fourth. None of them is a
//! measurement of a processor.
//!
//! Accepted is what was laid down before anything was run. docs/reproduce-presto.md tells of the setting and the outcome.

use crate::baseline::Baselines;
use crate::claim::{Claim, Value};
use crate::experiment::{Experiment, Paper, Runs};
use crate::measure::Measure;
use crate::statistic::{Of, Statistic};
use millpond_results::Keep;

/// The paper.
pub const PRESTO: Paper = Paper {
    name: "presto",
    title: "Presto: edge-based load balancing",
    experiments: EXPERIMENTS,
    claims: CLAIMS,
    baselines: BASELINES,
    emulated: &[],
};

/// Spreading flowcells off is ECMP; where there is no ECMP, Presto's receive offload is off.
const BASELINES: Baselines = Baselines {
    off: &[
        ("presto", "ecmp"),
        ("presto", "presto-stock-gro"),
        ("presto-2", "ecmp-2"),
        ("presto-4", "ecmp-4"),
        ("presto-6", "ecmp-6"),
        ("presto-8", "ecmp-8"),
        ("mptcp", "ecmp"),
        ("presto-stock-gro", "stock-in-order"),
        ("none-in-order", "stock-in-order"),
        ("weighted", "failover"),
        ("failover", "symmetry"),
    ],
    of: &[
        ("P10b", &[("presto-stock-gro", "ecmp")]),
        ("M11", &[("presto", "presto-stock-gro")]),
        ("M12", &[("presto", "ecmp")]),
        ("M12d", &[("presto", "ecmp")]),
        ("M13", &[("presto", "presto-ecmp")]),
        ("M17b", &[("presto", "ecmp")]),
    ],
    none: &[],
};

const SLIDES: &str = "Presto, SIGCOMM 2015, slides";
const CALIBRATED: &str =
    "Presto, SIGCOMM 2015, slides; processor time here is calibrated on three of their points, not measured";
const MEMORY: &str = "Presto, SIGCOMM 2015, as remembered: no number is taken for the paper's";
const BESIDE: &str = "asked beside Presto's claims: the bound is ours";
const ARITHMETIC: &str = "max-min fair shares over all hash outcomes";

const LOAD: f64 = 100.0;
const ALL: &[(f64, &str)] = &[(LOAD, "")];
const SEEDS: (u64, u64) = (1, 20);
/// A tenth of a second in which what stalled at the beginning has gone on.
const SHORT: &[(&str, &str)] = &[("duration", "400ms")];
const QUICK: &str = "--quick: three seeds of twenty, and 100 ms of 500";

macro_rules! experiment {
    ($name:literal, $title:literal, $schemes:expr, $shows:expr) => {
        experiment!(
            $name,
            $name,
            $title,
            $schemes,
            $shows,
            Ok(Runs { loads: ALL, seeds: (1, 3), set: SHORT, note: QUICK })
        )
    };
    ($name:literal, $scenario:literal, $title:literal, $schemes:expr, $shows:expr, $quick:expr) => {
        Experiment {
            name: $name,
            title: $title,
            scenario: concat!("scenarios/papers/presto/", $scenario, ".toml"),
            text: include_str!(concat!("../../../../scenarios/papers/presto/", $scenario, ".toml")),
            schemes: $schemes,
            load_axis: "as the workload has it",
            load_key: None,
            full: Runs { loads: ALL, seeds: SEEDS, set: &[], note: "" },
            quick: $quick,
            keep: Keep::Summary,
            shows: $shows,
            published: &[],
        }
    };
}

/// As the scenario has it, which is short already or sets its own times.
const AS_IT_IS: Result<Runs, &str> =
    Ok(Runs { loads: ALL, seeds: (1, 3), set: &[], note: "--quick: three seeds of twenty" });

const MAIN: &[(&str, &str)] =
    &[("optimal", "Optimal"), ("presto", "Presto"), ("ecmp", "ECMP"), ("presto-ecmp", "Presto + ECMP")];
/// With what moves flows or parts of them over paths that the network hashes, or a scheduler picks.
const ELEPHANTS: &[(&str, &str)] = &[
    ("optimal", "Optimal"),
    ("presto", "Presto"),
    ("ecmp", "ECMP"),
    ("presto-ecmp", "Presto + ECMP"),
    ("mptcp", "MPTCP, 8 subflows"),
    ("hedera", "Hedera, 100 ms"),
];
const STRIDE: &[(&str, &str)] = &[
    ("optimal", "Optimal"),
    ("presto", "Presto"),
    ("ecmp", "ECMP"),
    ("presto-ecmp", "Presto + ECMP"),
    ("mptcp", "MPTCP, 8 subflows"),
    ("mptcp-lia", "MPTCP by LIA"),
    ("hedera", "Hedera, 100 ms"),
    ("flowlet-500us", "Flowlet, 500 us"),
    ("flowlet-100us", "Flowlet, 100 us"),
    ("letflow", "LetFlow, 500 us"),
    ("drill", "DRILL(2, 1)"),
    ("conga", "CONGA"),
    ("presto-stock-gro", "Presto, stock receive offload"),
    ("presto-floor-10us", "Presto, floor 10 us"),
];
const ABLATIONS: &[(&str, &str)] = &[
    ("presto", "Presto"),
    ("spray", "Spraying"),
    ("spray-ordered", "Spraying, ordering buffer"),
    ("spray-presto-gro", "Spraying, Presto's receive offload"),
    ("presto-safe", "Presto, safe rules"),
    ("presto-floor-10us", "Presto, floor 10 us"),
    ("presto-floor-40us", "Presto, floor 40 us"),
    ("presto-floor-100us", "Presto, floor 100 us"),
    ("presto-floor-250us", "Presto, floor 250 us"),
    ("presto-tolerant", "Presto, floor 10 us, tolerant TCP"),
    ("presto-random", "Presto, random order"),
    ("presto-shuffled", "Presto, shuffled order"),
    ("presto-first-path", "Presto, all begin alike"),
];
const MICE: &[(&str, &str)] = &[
    ("optimal", "Optimal"),
    ("presto", "Presto"),
    ("ecmp", "ECMP"),
    ("presto-ecmp", "Presto + ECMP"),
    ("mptcp", "MPTCP, 8 subflows"),
    ("flowlet-500us", "Flowlet, 500 us"),
    ("flowlet-100us", "Flowlet, 100 us"),
];
const PATHS: &[(&str, &str)] = &[
    ("optimal-2", "Optimal, 2 paths"),
    ("presto-2", "Presto, 2 paths"),
    ("ecmp-2", "ECMP, 2 paths"),
    ("optimal-4", "Optimal, 4 paths"),
    ("presto-4", "Presto, 4 paths"),
    ("ecmp-4", "ECMP, 4 paths"),
    ("optimal-6", "Optimal, 6 paths"),
    ("presto-6", "Presto, 6 paths"),
    ("ecmp-6", "ECMP, 6 paths"),
    ("optimal-8", "Optimal, 8 paths"),
    ("presto-8", "Presto, 8 paths"),
    ("ecmp-8", "ECMP, 8 paths"),
];
const OVERSUBSCRIBED: &[(&str, &str)] = &[
    ("optimal-2", "Optimal, 1:1"),
    ("presto-2", "Presto, 1:1"),
    ("ecmp-2", "ECMP, 1:1"),
    ("optimal-4", "Optimal, 2:1"),
    ("presto-4", "Presto, 2:1"),
    ("ecmp-4", "ECMP, 2:1"),
    ("optimal-8", "Optimal, 4:1"),
    ("presto-8", "Presto, 4:1"),
    ("ecmp-8", "ECMP, 4:1"),
];
const OUTSIDE: &[(&str, &str)] =
    &[("optimal", "Optimal"), ("presto", "Presto"), ("ecmp", "ECMP"), ("mptcp", "MPTCP, 8 subflows")];
const RECEIVER: &[(&str, &str)] = &[
    ("stock-in-order", "stock, in order"),
    ("none-in-order", "none, in order"),
    ("none-in-order-wide", "none, wide window"),
    ("presto-stock-gro", "stock, sprayed"),
    ("presto", "Presto's, sprayed"),
    ("presto-stock-gro-impatient", "stock, 3 duplicates"),
    ("presto-stock-gro-in-turn", "stock, in turn"),
    ("presto-in-turn", "Presto's, in turn"),
    ("presto-stock-gro-free", "stock, free"),
];
const FAILURE: &[(&str, &str)] =
    &[("symmetry", "before"), ("failover", "failed over"), ("weighted", "trees re-weighted")];

type Shows = &'static [(&'static str, Statistic)];

/// Over all hosts.
const RATE: (&str, Statistic) = ("goodput", Statistic::Goodput);
const JAIN: (&str, Statistic) = ("Jain's index", Statistic::Fairness);
const LOST: (&str, Statistic) = ("packets dropped", Statistic::Dropped);
const RATES: Shows = &[RATE, JAIN, ("out of order", Statistic::Disorder), LOST, ("timeouts", Statistic::Timeouts)];
const PROBED: Shows = &[
    RATE,
    JAIN,
    ("RTT p50", Statistic::ProbeP50),
    ("RTT p99.9", Statistic::ProbeP999),
    ("out of order", Statistic::Disorder),
    LOST,
    ("loss rate", Statistic::Lost),
];
const REQUESTS: Shows = &[
    ("requests p50", Statistic::Flows("requests", Of::P50)),
    ("requests p99", Statistic::Flows("requests", Of::P99)),
    ("requests p99.9", Statistic::Flows("requests", Of::P999)),
    RATE,
    LOST,
    ("timeouts", Statistic::Timeouts),
];
const SMALL: Shows = &[
    ("mice p50", Statistic::Flows("mice", Of::P50)),
    ("mice p99", Statistic::Flows("mice", Of::P99)),
    ("mice p99.9", Statistic::Flows("mice", Of::P999)),
    RATE,
    LOST,
];

/// The first two are of a model: see the claims.
const CORES: Shows = &[
    RATE,
    ("core busy", Statistic::Busy),
    ("segments out of order", Statistic::Disorder),
    ("ring drops", Statistic::Counter("receive-cpu", "ring-drops")),
    ("timeouts", Statistic::Timeouts),
];

const EXPERIMENTS: &[Experiment] = &[
    experiment!("stride", "stride, with probes", STRIDE, PROBED),
    experiment!(
        "ablations",
        "stride",
        "stride, with what is open in Presto",
        ABLATIONS,
        PROBED,
        Err("no claim is of it")
    ),
    experiment!("bijection", "random bijection", ELEPHANTS, RATES),
    experiment!("random", "random", ELEPHANTS, RATES),
    experiment!("shuffle", "shuffle", MAIN, RATES),
    experiment!("mice", "mice beside elephants", MICE, REQUESTS),
    experiment!("trace", "trace", "web search in the trace's place", MAIN, SMALL, AS_IT_IS),
    experiment!("north-south", "stride, and users outside", OUTSIDE, RATES),
    experiment!("paths", "two to eight paths", PATHS, RATES),
    experiment!("oversubscription", "two leaves, more and more pairs", OVERSUBSCRIBED, RATES),
    experiment!("receiver", "receiver", "what receiving costs", RECEIVER, CORES, AS_IT_IS),
    experiment!("failure-up", "failure-up", "a dead link, seen from the sending leaf", FAILURE, RATES, AS_IT_IS),
    experiment!("failure-down", "failure-down", "a dead link, seen from the receiving leaf", FAILURE, RATES, AS_IT_IS),
];

/// What a host's link carries of payload, in Gb/s: 1460 of 1538 bytes.
const LINK: f64 = 10.0 * 1460.0 / 1538.0;

type Name = &'static str;

const fn change(experiment: Name, statistic: Statistic, of: Name, than: Name) -> Measure {
    Measure::Change { experiment, load: LOAD, statistic, of, than }
}

const fn goodput(experiment: Name, of: Name, than: Name) -> Measure {
    change(experiment, Statistic::Goodput, of, than)
}

/// The goodput as a part of what so many hosts would have at this share of their links.
const fn share(experiment: Name, of: Name, hosts: f64, share: f64) -> Measure {
    Measure::Part { experiment, load: LOAD, statistic: Statistic::Goodput, of, whole: hosts * LINK * share }
}

/// The mean goodput of the receiver experiment's two hosts, as a part of this many Gb/s.
const fn pair(of: Name, gbps: f64) -> Measure {
    Measure::Part { experiment: "receiver", load: LOAD, statistic: Statistic::Goodput, of, whole: 2.0 * gbps }
}

/// How busy receiving hosts' cores were, on average.
const fn busy(of: Name) -> Measure {
    Measure::Part { experiment: "receiver", load: LOAD, statistic: Statistic::Busy, of, whole: 100.0 }
}

const fn order(experiment: Name, groups: &'static [&'static [&'static str]]) -> Measure {
    Measure::Order { experiment, load: LOAD, statistic: Statistic::Goodput, groups, slack: &[] }
}

const fn claim(
    (id, source): (Name, Name),
    statement: Name,
    paper: Value,
    accept: [Option<f64>; 2],
    measure: Measure,
) -> Claim {
    Claim { id, source, statement, paper, accept, measure, quick: None, note: "" }
}

/// With what the reader must know.
const fn noted(claim: Claim, note: Name) -> Claim {
    Claim { note, ..claim }
}

/// Not decided by few seeds.
const fn slow(claim: Claim) -> Claim {
    Claim { quick: Some("a mean over hash outcomes needs twenty seeds"), ..claim }
}

const NEAR: [Option<f64>; 2] = [Some(-5.0), None];
const ABOVE: [Option<f64>; 2] = [Some(25.0), Some(90.0)];
const MORE: [Option<f64>; 2] = [Some(5.0), None];
const SHARE: [Option<f64>; 2] = [Some(95.0), Some(105.0)];
const WHOLE: [Option<f64>; 2] = [Some(100.0), None];
const HALF: [Option<f64>; 2] = [None, Some(-50.0)];

const WITHIN: Name = "throughput is within 1 to 4 % of Optimal";
const OVER: Name = "throughput is 38 to 72 % above ECMP's";
const SUBFLOWS: Name = "throughput is 17 to 28 % above that of MPTCP with eight subflows";
const TRACKS: Name = "Presto tracks Optimal whatever the number of paths";

/// Why P5a comes out as it does.
const PHASES: Name = "flowcells of four senders meet on a full leaf's uplinks, 52 us each, at each of four hops of a round trip; hosts' \
                      own queues, which hide this in a testbed's tail, are short here";
/// Why P10a does.
const POLLS: Name = "polls take no time here, so each has what came in 20 us: 16 packets, of two flowcells or more";
/// Why P6a comes out as it does.
const FEWER: Name = "the costs are solved once, with the segments that come while receiving is free; a core that is behind makes \
                     fuller polls, and so longer segments";
/// What P6 and P9 are fitted to.
const COST_OUT_OF_ORDER: Name = "the cost of a segment out of order";
const COST_SEGMENT: Name = "the cost of a segment";
const COST_PACKET: Name = "the cost of a packet";
/// What P1 rests on.
const FLOOR: Name = "P1 rests on receive offload's floor (presto-gro.min) of 160 us, a rule of ours for real hosts; with 10 us \
                     stride has 81 of Optimal's 151 Gb/s: row \"Presto, floor 10 us\"";
/// Where a core is saturated.
const FULL: [Option<f64>; 2] = [Some(95.0), None];
/// Why P10b does.
const HALTED: Name = "TCP halts at each reordering, so flows have the paths for themselves most of the time; where it does not, in the \
                      experiment receiver, the median is one packet";
const SHORT_STAGE: Name = "of 4 hosts on 3 live uplinks, with all of them full";

const CLAIMS: &[Claim] = &[
    noted(claim(("P1a", SLIDES), WITHIN, Value::Published(-4.0), NEAR, goodput("stride", "presto", "optimal")), FLOOR),
    claim(("P1b", SLIDES), WITHIN, Value::Published(-4.0), NEAR, goodput("bijection", "presto", "optimal")),
    claim(("P1c", SLIDES), WITHIN, Value::Published(-4.0), NEAR, goodput("random", "presto", "optimal")),
    claim(("P1d", SLIDES), WITHIN, Value::Published(-4.0), NEAR, goodput("shuffle", "presto", "optimal")),
    slow(claim(("P2a", SLIDES), OVER, Value::Shape, ABOVE, goodput("stride", "presto", "ecmp"))),
    slow(claim(("P2b", SLIDES), OVER, Value::Shape, ABOVE, goodput("bijection", "presto", "ecmp"))),
    slow(claim(("P2c", SLIDES), OVER, Value::Shape, ABOVE, goodput("random", "presto", "ecmp"))),
    claim(("P3a", SLIDES), SUBFLOWS, Value::Shape, MORE, goodput("stride", "presto", "mptcp")),
    claim(("P3b", SLIDES), SUBFLOWS, Value::Shape, MORE, goodput("bijection", "presto", "mptcp")),
    claim(("P3c", SLIDES), SUBFLOWS, Value::Shape, MORE, goodput("random", "presto", "mptcp")),
    noted(
        claim(
            ("P4", SLIDES),
            "in shuffle all schemes are close to each other",
            Value::Shape,
            [Some(-15.0), Some(15.0)],
            goodput("shuffle", "ecmp", "presto"),
        ),
        "ECMP beside Presto is asked; Optimal and Presto + ECMP are in the table of its experiment",
    ),
    noted(
        claim(
            ("P5a", SLIDES),
            "the 99.9th percentile of the round-trip time is within 100 us of Optimal's",
            Value::Published(100.0),
            [None, Some(150.0)],
            Measure::Beyond {
                experiment: "stride",
                load: LOAD,
                statistic: Statistic::ProbeP999,
                of: "presto",
                than: "optimal",
            },
        ),
        PHASES,
    ),
    claim(
        ("P5b", SLIDES),
        "and an eighth of ECMP's",
        Value::Derived(-87.5, "8 times less"),
        [None, Some(-75.0)],
        change("stride", Statistic::ProbeP999, "presto", "ecmp"),
    ),
    noted(
        claim(
            ("P6a", CALIBRATED),
            "fitted: stock receive offload under Presto's spraying has 4.6 Gb/s",
            Value::Fitted(100.0, COST_OUT_OF_ORDER),
            [Some(90.0), Some(110.0)],
            pair("presto-stock-gro", 4.6),
        ),
        FEWER,
    ),
    claim(
        ("P6b", CALIBRATED),
        "fitted: and takes all of a core",
        Value::Fitted(100.0, COST_OUT_OF_ORDER),
        FULL,
        busy("presto-stock-gro"),
    ),
    claim(
        ("P7a", CALIBRATED),
        "predicted with calibrated costs: Presto's receive offload has 9.3 Gb/s; 9.0 are asked for",
        Value::Derived(103.3, "9.3 of 9.0 Gb/s"),
        WHOLE,
        pair("presto", 9.0),
    ),
    noted(
        claim(
            ("P7b", CALIBRATED),
            "predicted with calibrated costs: it takes 69 % of a core",
            Value::Published(69.0),
            [None, Some(78.75)],
            busy("presto"),
        ),
        "accepted is what P8's bound makes of the published 63 %",
    ),
    claim(
        ("P8", CALIBRATED),
        "predicted with calibrated costs: a core has 6 % more to do than with stock receive offload without reordering",
        Value::Published(6.0),
        [None, Some(25.0)],
        change("receiver", Statistic::Busy, "presto", "stock-in-order"),
    ),
    claim(
        ("P6c", CALIBRATED),
        "fitted: stock receive offload without reordering takes 63 % of a core",
        Value::Fitted(63.0, COST_SEGMENT),
        [Some(56.7), Some(69.3)],
        busy("stock-in-order"),
    ),
    claim(
        ("P9a", CALIBRATED),
        "fitted: without receive offload there are 6 Gb/s",
        Value::Fitted(100.0, COST_PACKET),
        [Some(90.0), Some(110.0)],
        pair("none-in-order", 6.0),
    ),
    claim(
        ("P9b", CALIBRATED),
        "fitted: and all of a core is taken",
        Value::Fitted(100.0, COST_PACKET),
        FULL,
        busy("none-in-order"),
    ),
    noted(
        claim(
            ("P10a", SLIDES),
            "most segments that go up are large: the median is 32 KiB or more",
            Value::Shape,
            WHOLE,
            Measure::Part {
                experiment: "stride",
                load: LOAD,
                statistic: Statistic::Counter("presto-gro", "segment-median-kib"),
                of: "presto",
                whole: 32.0,
            },
        ),
        POLLS,
    ),
    noted(
        claim(
            ("P10b", SLIDES),
            "and under the kernel's receive offload they are single packets: the median is 3 KiB or less",
            Value::Shape,
            [None, Some(100.0)],
            Measure::Part {
                experiment: "stride",
                load: LOAD,
                statistic: Statistic::Counter("stock-gro", "segment-median-kib"),
                of: "presto-stock-gro",
                whole: 3.0,
            },
        ),
        HALTED,
    ),
    claim(
        ("M11", MEMORY),
        "receive offload by flowcell hides the reordering that the kernel's shows to TCP",
        Value::Remembered,
        [None, Some(-95.0)],
        change("stride", Statistic::Disorder, "presto", "presto-stock-gro"),
    ),
    claim(
        ("M19b", MEMORY),
        "Presto is fair: Jain's index is 0.98 or more in stride",
        Value::Remembered,
        [Some(98.0), None],
        Measure::Part { experiment: "stride", load: LOAD, statistic: Statistic::Fairness, of: "presto", whole: 1.0 },
    ),
    claim(
        ("M19c", MEMORY),
        "and it loses no larger share of its packets than MPTCP in stride",
        Value::Remembered,
        [None, Some(0.0)],
        change("stride", Statistic::Lost, "presto", "mptcp"),
    ),
    claim(
        ("M12", MEMORY),
        "flowlets of 100 us have less than those of 500 us, and those less than Presto (4.3, 7.6, 9.3 Gb/s)",
        Value::Remembered,
        WHOLE,
        order("stride", &[&["flowlet-100us"], &["flowlet-500us"], &["presto"]]),
    ),
    claim(
        ("M12b", MEMORY),
        "the 99.9th percentile of the round-trip time with flowlets of 100 us is twice Presto's or more (2 to 3.6 times)",
        Value::Remembered,
        HALF,
        change("stride", Statistic::ProbeP999, "presto", "flowlet-100us"),
    ),
    claim(
        ("M12c", MEMORY),
        "and so is that with flowlets of 500 us",
        Value::Remembered,
        HALF,
        change("stride", Statistic::ProbeP999, "presto", "flowlet-500us"),
    ),
    noted(
        claim(
            ("M12d", BESIDE),
            "flowlets that switches place at random have less than Presto, as those that hosts place",
            Value::Ours,
            WHOLE,
            order("stride", &[&["letflow"], &["presto"]]),
        ),
        "the paper has flowlets at hosts, which have less than Presto (M12); LetFlow is of 2017",
    ),
    claim(
        ("M13", MEMORY),
        "paths of the controller's are no worse than paths by hash (9.3 and 8.9 Gb/s)",
        Value::Remembered,
        [Some(0.0), None],
        goodput("stride", "presto", "presto-ecmp"),
    ),
    claim(
        ("M13b", MEMORY),
        "and no worse in the 99.9th percentile of the round-trip time",
        Value::Remembered,
        [None, Some(0.0)],
        change("stride", Statistic::ProbeP999, "presto", "presto-ecmp"),
    ),
    claim(("M14a", MEMORY), TRACKS, Value::Remembered, NEAR, goodput("paths", "presto-2", "optimal-2")),
    claim(("M14b", MEMORY), TRACKS, Value::Remembered, NEAR, goodput("paths", "presto-4", "optimal-4")),
    claim(("M14c", MEMORY), TRACKS, Value::Remembered, NEAR, goodput("paths", "presto-6", "optimal-6")),
    claim(("M14d", MEMORY), TRACKS, Value::Remembered, NEAR, goodput("paths", "presto-8", "optimal-8")),
    claim(
        ("M15", MEMORY),
        "with a trace's sizes the mice's 99th percentile is below ECMP's (about half of it, as it is remembered)",
        Value::Remembered,
        [None, Some(0.0)],
        change("trace", Statistic::Flows("mice", Of::P99), "presto", "ecmp"),
    ),
    claim(
        ("M16", MEMORY),
        "elephants of such a trace end in Optimal's time, or nearly (within 2 % of its throughput)",
        Value::Remembered,
        [None, Some(5.0)],
        change("trace", Statistic::Flows("elephants", Of::Mean), "presto", "optimal"),
    ),
    claim(
        ("M18a", BESIDE),
        "mice beside elephants end earlier than with ECMP, at the 99th percentile",
        Value::Ours,
        [None, Some(0.0)],
        change("mice", Statistic::Flows("requests", Of::P99), "presto", "ecmp"),
    ),
    claim(
        ("M18b", MEMORY),
        "and at the 99.9th within 350 us of Optimal's",
        Value::Remembered,
        [None, Some(350.0)],
        Measure::Beyond {
            experiment: "mice",
            load: LOAD,
            statistic: Statistic::Flows("requests", Of::P999),
            of: "presto",
            than: "optimal",
        },
    ),
    claim(
        ("M17", MEMORY),
        "with traffic to users outside, Presto has most of what Optimal has (8.2 and 8.9 Gb/s; ECMP 5.7)",
        Value::Remembered,
        [Some(-15.0), None],
        goodput("north-south", "presto", "optimal"),
    ),
    claim(
        ("M17b", MEMORY),
        "there ECMP has less than MPTCP, and MPTCP less than Presto (5.7, 7.4, 8.2 Gb/s)",
        Value::Remembered,
        WHOLE,
        order("north-south", &[&["ecmp"], &["mptcp"], &["presto"]]),
    ),
    Claim {
        quick: Some("a request that waits for the least RTO, 200 ms, outlasts the 100 ms that are measured"),
        ..claim(
            ("M19", MEMORY),
            "MPTCP's losses make mice wait: beside elephants their 99.9th percentile is above Presto's",
            Value::Remembered,
            [Some(0.0), None],
            change("mice", Statistic::Flows("requests", Of::P999), "mptcp", "presto"),
        )
    },
    slow(claim(
        ("A1", ARITHMETIC),
        "ECMP in stride has 6.84 of 10",
        Value::Arithmetic,
        SHARE,
        share("stride", "ecmp", 16.0, 0.684),
    )),
    slow(claim(
        ("A2", ARITHMETIC),
        "ECMP in bijection has 5.75 of 10",
        Value::Arithmetic,
        SHARE,
        share("bijection", "ecmp", 16.0, 0.575),
    )),
    slow(claim(
        ("A3", ARITHMETIC),
        "ECMP in random has 4.74 of 10",
        Value::Arithmetic,
        SHARE,
        share("random", "ecmp", 16.0, 0.474),
    )),
    claim(
        ("A4s", ARITHMETIC),
        "before a link fails four hosts have all of four uplinks",
        Value::Arithmetic,
        SHARE,
        share("failure-up", "symmetry", 4.0, 1.0),
    ),
    noted(
        claim(
            ("A4a", ARITHMETIC),
            "a dead uplink whose flowcells the switch has moved leaves 5.0 of 10",
            Value::Arithmetic,
            [Some(90.0), Some(110.0)],
            share("failure-up", "failover", 4.0, 0.5),
        ),
        "the next uplink carries two of every four flowcells; between, flows wait for their timers, since what they send again \
         over the dead link is lost, too",
    ),
    noted(
        claim(
            ("A4b", ARITHMETIC),
            "and 7.5 of 10 once the controller has left its tree out",
            Value::Arithmetic,
            [Some(90.0), Some(110.0)],
            share("failure-up", "weighted", 4.0, 0.75),
        ),
        SHORT_STAGE,
    ),
    claim(
        ("A4c", ARITHMETIC),
        "the same of a dead downlink, by way of another leaf: 5.0 of 10",
        Value::Arithmetic,
        [Some(90.0), Some(110.0)],
        share("failure-down", "failover", 4.0, 0.5),
    ),
    noted(
        claim(
            ("A4d", ARITHMETIC),
            "and 7.5 of 10",
            Value::Arithmetic,
            [Some(90.0), Some(110.0)],
            share("failure-down", "weighted", 4.0, 0.75),
        ),
        SHORT_STAGE,
    ),
    slow(claim(
        ("A5a", ARITHMETIC),
        "ECMP with two flows on two paths has 7.50 of 10",
        Value::Arithmetic,
        [Some(90.0), Some(110.0)],
        share("paths", "ecmp-2", 4.0, 0.75),
    )),
    slow(claim(
        ("A5b", ARITHMETIC),
        "ECMP with eight flows on eight paths has 6.56 of 10",
        Value::Arithmetic,
        [Some(90.0), Some(110.0)],
        share("paths", "ecmp-8", 16.0, 0.656),
    )),
];
