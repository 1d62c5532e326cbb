//! HPCC: what its authors say of it, on the network and the flows of their released simulator's example.
//!
//! No table of completion times is public, neither of the example nor of the paper's figures. So the example is held to
//! arithmetic (X), and web search and Hadoop on the same network to the orders that the authors state in words: in the
//! paper's abstract (A), and on the project's page of results (W, L, H), which has HPCC with eta of 99 % beside DCQCN and
//! TIMELY with a window and DCTCP. Intervals were laid down before anything was run.

use crate::baseline::Baselines;
use crate::claim::{Claim, Value};
use crate::experiment::{Experiment, Paper, Runs};
use crate::measure::Measure;
use crate::statistic::{Of, Statistic};
use Value::{Derived, Published as Given, Shape};
use millpond_results::Keep;

/// The paper.
pub const HPCC: Paper = Paper {
    name: "hpcc",
    title: "HPCC: high precision congestion control",
    experiments: EXPERIMENTS,
    claims: CLAIMS,
    baselines: BASELINES,
    emulated: &[],
};

/// HPCC off is DCTCP: windows of the same size by marks instead of telemetry.
const BASELINES: Baselines = Baselines {
    off: &[("hpcc", "dctcp"), ("hpcc-99", "dctcp"), ("dcqcn-w", "dcqcn"), ("timely-w", "timely")],
    of: &[("L30", &[("hpcc-99", "dctcp")])],
    none: &[],
};

const ABSTRACT: &str = "HPCC, SIGCOMM 2019, abstract";
const RESULTS: &str = "HPCC's key results, hpcc-group.github.io/results.html";
const PROJECT: &str = "HPCC's project page, liyuliang001.github.io/projects/hpcc";
const EXAMPLE: &str = "HPCC's released simulator, the two flows of its flow.txt";

const LAWS: &[(&str, &str)] = &[
    ("hpcc", "HPCC"),
    ("hpcc-99", "HPCC-99"),
    ("dcqcn", "DCQCN"),
    ("dcqcn-w", "DCQCN+w"),
    ("timely", "TIMELY"),
    ("timely-w", "TIMELY+w"),
    ("dctcp", "DCTCP"),
];

const FCT: Statistic = Statistic::Flows("flows", Of::Mean);
/// Flows of fewer than 200 KB.
const SHORT_P95: Statistic = Statistic::Slowdown("mice", Of::P95);
const SHORT_P99: Statistic = Statistic::Slowdown("mice", Of::P99);
/// Flows of more than a megabyte.
const LONG_P50: Statistic = Statistic::Slowdown("elephants", Of::P50);

const TWO_FLOWS: &[(&str, Statistic)] = &[
    ("FCT mean", FCT),
    ("FCT p50", Statistic::Flows("flows", Of::P50)),
    ("PAUSE frames", Statistic::Pauses),
    ("packets dropped", Statistic::Dropped),
];
const fn p95_of(sizes: &'static str) -> Statistic {
    Statistic::SlowdownOfSizes(sizes, Of::P95)
}
/// Slowdowns; few enough for a table of 100 columns.
const SLOWDOWNS: &[(&str, Statistic)] = &[
    ("p95 to 10KB", p95_of("0-10000")),
    ("p95 to 80KB", p95_of("30000-80000")),
    ("p95 to 1MB", p95_of("200000-1000000")),
    ("p95 to 5MB", p95_of("2000000-5000000")),
    ("short p95", SHORT_P95),
    ("short p99", SHORT_P99),
    ("long p50", LONG_P50),
];

const ONE: &[(f64, &str)] = &[(100.0, "")];
const LOADS: &[(f64, &str)] = &[(30.0, "0.3"), (50.0, "0.5")];

/// What the traffic generator of the released simulator draws, for less than its 100 ms.
const WEB_SEARCH: &[(&str, &str)] = &[
    (
        "traffic.flows",
        "{ kind = \"poisson\", sizes = \"web-search\", load = 0.3, load-base = \"host-links\", stop = \"2ms\" }",
    ),
    ("warm-up", "500us"),
];
const HADOOP: &[(&str, &str)] = &[
    (
        "traffic.flows",
        "{ kind = \"poisson\", sizes = \"hadoop\", load = 0.3, load-base = \"host-links\", stop = \"1500us\" }",
    ),
    ("warm-up", "500us"),
];

const fn on_fat_tree(
    name: &'static str,
    title: &'static str,
    load: (&'static str, Option<&'static str>),
    shows: &'static [(&'static str, Statistic)],
    full: Runs,
    quick: Runs,
) -> Experiment {
    Experiment {
        name,
        title,
        scenario: "scenarios/papers/hpcc/fat-tree.toml",
        text: include_str!("../../../../scenarios/papers/hpcc/fat-tree.toml"),
        schemes: LAWS,
        load_axis: load.0,
        load_key: load.1,
        full,
        quick: Ok(quick),
        keep: Keep::Summary,
        shows,
        published: &[],
    }
}

const fn runs(
    loads: &'static [(f64, &'static str)],
    last: u64,
    set: &'static [(&'static str, &'static str)],
    note: &'static str,
) -> Runs {
    Runs { loads, seeds: (1, last), set, note }
}

const FEW: &str = "--quick: one seed";
const LOAD: (&str, Option<&str>) = ("load, percent of the hosts' links", Some("traffic.flows.load"));

const EXPERIMENTS: &[Experiment] = &[
    on_fat_tree(
        "example",
        "the released example: two flows of 200 MB to one host",
        ("load, percent", None),
        TWO_FLOWS,
        runs(ONE, 3, &[], ""),
        runs(ONE, 1, &[], FEW),
    ),
    on_fat_tree(
        "web-search",
        "slowdowns of web search on the released network; HPCC-99 has an eta of 99 %",
        LOAD,
        SLOWDOWNS,
        runs(LOADS, 2, WEB_SEARCH, ""),
        runs(LOADS, 1, WEB_SEARCH, FEW),
    ),
    on_fat_tree(
        "hadoop",
        "slowdowns of Hadoop on the released network; HPCC-99 has an eta of 99 %",
        LOAD,
        SLOWDOWNS,
        runs(LOADS, 3, HADOOP, ""),
        runs(LOADS, 1, HADOOP, FEW),
    ),
];

type Name = &'static str;

const fn claim(id: Name, source: Name, statement: Name, paper: Value, measure: Measure) -> Claim {
    Claim { id, source, statement, paper, accept: [Some(100.0), None], measure, quick: None, note: "" }
}
/// Within 5 % of an example's time, in milliseconds.
const fn takes(id: Name, statement: Name, how: Name, of: Name, ms: f64) -> Claim {
    let measure = Measure::Part { experiment: "example", load: 100.0, statistic: FCT, of, whole: ms * 1000.0 };
    let claim = claim(id, EXAMPLE, statement, Derived(100.0, how), measure);
    Claim { accept: [Some(95.0), Some(105.0)], ..claim }
}
const fn at_most(most: f64, claim: Claim) -> Claim {
    Claim { accept: [None, Some(most)], ..claim }
}
const fn order(experiment: Name, load: f64, statistic: Statistic, groups: &'static [&'static [Name]]) -> Measure {
    Measure::Order { experiment, load, statistic, groups, slack: &[] }
}
const fn change(experiment: Name, load: f64, statistic: Statistic, of: Name, than: Name) -> Measure {
    Measure::Change { experiment, load, statistic, of, than }
}
const OTHERS: &[Name] = &["dcqcn-w", "timely-w", "dctcp"];
const BEST: &[&[Name]] = &[&["hpcc-99"], OTHERS];
const LAST: &[&[Name]] = &[OTHERS, &["hpcc-99"]];

const CLAIMS: &[Claim] = &[
    takes(
        "X1",
        "HPCC: the two flows take the 36.7 ms that eta = 95 % of the link gives them",
        "400 MB in packets of 1,090 bytes for 1,000, at 95 Gb/s",
        "hpcc",
        36.72,
    ),
    takes(
        "X2",
        "HPCC with eta of 99 %: the two flows take 35.2 ms",
        "400 MB in packets of 1,090 bytes for 1,000, at 99 Gb/s",
        "hpcc-99",
        35.23,
    ),
    at_most(
        -70.0,
        claim(
            "A1",
            ABSTRACT,
            "FCT is up to 95 % shorter than with DCQCN and TIMELY: p99 of flows below 200 KB, web search",
            Given(-95.0),
            Measure::BestOf {
                experiment: "web-search",
                statistic: Statistic::Flows("mice", Of::P99),
                pairs: &[("hpcc", "dcqcn"), ("hpcc", "timely")],
            },
        ),
    ),
    claim(
        "W30a",
        RESULTS,
        "Web search at 30 %: below 200 KB, HPCC's p95 slowdown is below that of DCQCN+w, TIMELY+w and DCTCP",
        Shape,
        order("web-search", 30.0, SHORT_P95, BEST),
    ),
    claim(
        "W30b",
        RESULTS,
        "Web search at 30 %: below 200 KB, HPCC's p99 slowdown is below that of DCQCN+w, TIMELY+w and DCTCP",
        Shape,
        order("web-search", 30.0, SHORT_P99, BEST),
    ),
    claim(
        "W50a",
        RESULTS,
        "Web search at 50 %: the trend is similar: p95",
        Shape,
        order("web-search", 50.0, SHORT_P95, BEST),
    ),
    claim(
        "W50b",
        RESULTS,
        "Web search at 50 %: the trend is similar: p99",
        Shape,
        order("web-search", 50.0, SHORT_P99, BEST),
    ),
    claim(
        "L30",
        RESULTS,
        "Web search at 30 %: HPCC's long flows take longer, since its telemetry takes 5 %: median above 1 MB",
        Shape,
        order("web-search", 30.0, LONG_P50, LAST),
    ),
    claim(
        "H30a",
        RESULTS,
        "Hadoop at 30 %: the trend is similar: p95 below 200 KB",
        Shape,
        order("hadoop", 30.0, SHORT_P95, BEST),
    ),
    claim(
        "H30b",
        RESULTS,
        "Hadoop at 30 %: the trend is similar: p99 below 200 KB",
        Shape,
        order("hadoop", 30.0, SHORT_P99, BEST),
    ),
    at_most(
        -25.0,
        claim(
            "H50a",
            PROJECT,
            "Hadoop at 50 %: DCQCN+w is much better than DCQCN: p95 slowdown below 200 KB",
            Shape,
            change("hadoop", 50.0, SHORT_P95, "dcqcn-w", "dcqcn"),
        ),
    ),
    at_most(
        -25.0,
        claim(
            "H50b",
            PROJECT,
            "Hadoop at 50 %: TIMELY+w is much better than TIMELY: p95 slowdown below 200 KB",
            Shape,
            change("hadoop", 50.0, SHORT_P95, "timely-w", "timely"),
        ),
    ),
];
