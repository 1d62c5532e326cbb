//! NRM: what its slides claim of virtual queues against HTB, for closed loops of 1 MiB and 10 KiB calls.
//!
//! The tables T1 to T5 of the slides, in the simulator. T1: what a shorter probe timer does. T2: beside HTB at 1 Gb/s, of
//! which the slides give conclusions and plots without numbers. T3: at 10 ms. T4: at 5 Gb/s. T5: on arrival. One flow is a run
//! without the small class. The same tables on emulated Linux are `make bench-limit-vm`; docs/reproduce-nrm.md has both
//! beside the slides.

mod cells;
mod claims;

use super::joined;
use crate::baseline::Baselines;
use crate::claim::Claim;
use crate::emulated::Case;
use crate::experiment::{Experiment, Paper, Runs};
use millpond_results::Keep;

/// The slides.
pub const NRM: Paper = Paper {
    name: "nrm",
    title: "NRM: virtual queues for cgroups",
    experiments: EXPERIMENTS,
    claims: &CLAIMS,
    baselines: BASELINES,
    emulated: CASES,
};

/// NRM off is HTB; the short probe timer off is the kernel's; pacing off is a qdisc that does not pace.
const BASELINES: Baselines = Baselines {
    off: &[
        ("cubic-fast", "cubic"),
        ("dctcp-fast", "dctcp"),
        ("cubic-fq", "cubic"),
        ("dctcp-fq", "dctcp"),
        ("dctcp", "htb"),
        ("cubic", "htb"),
        ("cubic-ecn", "htb"),
    ],
    of: &[],
    none: &[
        ("T1e", "the claim asks for no effect, and without the timer there is none"),
        ("T5", "the experiment has no run without the limit"),
    ],
};
static CLAIMS: [Claim; claims::CLAIMS.len() + cells::CELLS.len()] = joined(claims::CLAIMS, cells::CELLS);

const FLOWS: &str = "flows: all but one of 1 MiB calls, one of 10 KiB; one flow is of 1 MiB calls";
const LARGE: Option<&str> = Some("traffic.large.connections");
/// Several flows, by the large ones among them.
const SEVERAL: &[(f64, &str)] = &[(2.0, "1"), (5.0, "4"), (9.0, "8")];
const NINE: &[(f64, &str)] = &[(9.0, "8")];
/// One flow: the small class never begins.
const ALONE: &[(f64, &str)] = &[(1.0, "1")];
const NO_SMALL: (&str, &str) = ("traffic.small.stop", "1us");

const fn runs(loads: &'static [(f64, &'static str)], set: &'static [(&'static str, &'static str)]) -> Runs {
    Runs { loads, seeds: (1, 3), set, note: "" }
}

const fn quick(loads: &'static [(f64, &'static str)], set: &'static [(&'static str, &'static str)]) -> Runs {
    Runs { loads, seeds: (1, 1), set, note: "--quick: 20 s and one seed" }
}

const SHORT: (&str, &str) = ("duration", "20s");

macro_rules! experiment {
    ($name:literal, $title:literal, $table:literal, $schemes:expr, $loads:expr, [$($set:expr),*]) => {
        Experiment {
            name: $name,
            title: $title,
            scenario: concat!("scenarios/papers/nrm/", $table, ".toml"),
            text: include_str!(concat!("../../../../../scenarios/papers/nrm/", $table, ".toml")),
            schemes: $schemes,
            load_axis: FLOWS,
            load_key: LARGE,
            full: runs($loads, &[$($set),*]),
            quick: Ok(quick($loads, &[SHORT $(, $set)*])),
            keep: Keep::Summary,
            shows: &[],
            published: &[],
        }
    };
}

const PROBES: &[(&str, &str)] = &[
    ("cubic", "Cubic"),
    ("cubic-fast", "Cubic, 20 ms probe"),
    ("dctcp", "DCTCP"),
    ("dctcp-fast", "DCTCP, 20 ms probe"),
];
const BESIDE_HTB: &[(&str, &str)] =
    &[("htb", "HTB, Cubic"), ("cubic", "NRM, Cubic"), ("cubic-ecn", "NRM, Cubic with ECN"), ("dctcp", "NRM, DCTCP")];
const FAR: &[(&str, &str)] = &[
    ("htb", "HTB, Cubic"),
    ("cubic", "NRM, Cubic"),
    ("cubic-fq", "NRM, Cubic, paced"),
    ("dctcp", "NRM, DCTCP"),
    ("dctcp-fq", "NRM, DCTCP, paced"),
];
const ARRIVING: &[(&str, &str)] = &[("1g", "DCTCP, 1 Gb/s"), ("5g", "DCTCP, 5 Gb/s")];

const EXPERIMENTS: &[Experiment] = &[
    experiment!("t1-one", "1 Gb/s, the probe timer, one flow", "t1", PROBES, ALONE, [NO_SMALL]),
    experiment!("t1", "1 Gb/s, the probe timer", "t1", PROBES, SEVERAL, []),
    experiment!("t2-one", "1 Gb/s beside HTB, one flow", "t2", BESIDE_HTB, ALONE, [NO_SMALL]),
    experiment!("t2", "1 Gb/s beside HTB", "t2", BESIDE_HTB, NINE, []),
    experiment!("t3-one", "1 Gb/s and 10 ms, one flow", "t3", FAR, ALONE, [NO_SMALL]),
    experiment!("t3", "1 Gb/s and 10 ms", "t3", FAR, NINE, []),
    experiment!("t4-one", "5 Gb/s, one flow", "t4", BESIDE_HTB, ALONE, [NO_SMALL]),
    experiment!("t4", "5 Gb/s", "t4", BESIDE_HTB, NINE, []),
    experiment!("t5-one", "limited on arrival, one flow", "t5", ARRIVING, ALONE, [NO_SMALL]),
    experiment!("t5", "limited on arrival", "t5", ARRIVING, SEVERAL, []),
];

type Name = &'static str;

const fn case(name: Name, experiment: Name, load: f64, variant: Name) -> Case {
    Case { name, experiment, load, variant }
}

/// What the virtual-time rig measures of the tables (`benches/limit/vm.py --list`). Its kick of 20 ms stands for the probe timer; the limits
/// at 10 ms are behind fq, as the slides'. It has no 5 Gb/s.
const CASES: &[Case] = &[
    case("nrm cubic 1x1MB", "t1-one", 1.0, "cubic"),
    case("nrm<20ms cubic 1x1MB", "t1-one", 1.0, "cubic-fast"),
    case("nrm dctcp 1x1MB", "t1-one", 1.0, "dctcp"),
    case("nrm<20ms dctcp 1x1MB", "t1-one", 1.0, "dctcp-fast"),
    case("nrm dctcp 1x1MB+1x10KB", "t1", 2.0, "dctcp"),
    case("nrm<20ms dctcp 1x1MB+1x10KB", "t1", 2.0, "dctcp-fast"),
    case("nrm dctcp 4x1MB+1x10KB", "t1", 5.0, "dctcp"),
    case("nrm<20ms dctcp 4x1MB+1x10KB", "t1", 5.0, "dctcp-fast"),
    case("nrm<20ms cubic 8x1MB+1x10KB", "t1", 9.0, "cubic-fast"),
    case("nrm dctcp 8x1MB+1x10KB", "t1", 9.0, "dctcp"),
    case("nrm<20ms dctcp 8x1MB+1x10KB", "t1", 9.0, "dctcp-fast"),
    case("htb cubic 8x1MB+1x10KB", "t2", 9.0, "htb"),
    case("nrm<20ms cubic 8x1MB+1x10KB", "t2", 9.0, "cubic"),
    case("nrm<20ms dctcp 8x1MB+1x10KB", "t2", 9.0, "dctcp"),
    case("htb cubic 1x1MB 10ms", "t3-one", 1.0, "htb"),
    case("nrm+bypass dctcp fq 10ms 1x1MB", "t3-one", 1.0, "dctcp-fq"),
    case("htb cubic 8x1MB+1x10KB 10ms", "t3", 9.0, "htb"),
    case("nrm+bypass cubic fq 10ms 8x1MB+1x10KB", "t3", 9.0, "cubic-fq"),
    case("nrm+bypass dctcp fq 10ms 8x1MB+1x10KB", "t3", 9.0, "dctcp-fq"),
    case("nrm+bypass dctcp ingress 8x1MB+1x10KB", "t5", 9.0, "1g"),
];
