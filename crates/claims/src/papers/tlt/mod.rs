//! TLT, in two parts: for TCP and for RDMA's queue pairs.

mod rdma;
mod tcp;

use super::joined;
use crate::baseline::Baselines;
use crate::claim::Claim;
use crate::experiment::{Experiment, Paper};
use crate::statistic::{Of, Statistic};

/// The paper.
pub const TLT: Paper = Paper {
    name: "tlt",
    title: "TLT: transport without timeouts",
    experiments: &EXPERIMENTS,
    claims: &CLAIMS,
    baselines: BASELINES,
    emulated: &[],
};

const NO_HARM: &str = "the claim asks for no harm, and without TLT there is none";

/// TLT off is the transport alone; TLT with PFC is PFC alone.
const BASELINES: Baselines = Baselines {
    off: &[
        ("tlt", "baseline"),
        ("tlt-released", "baseline"),
        ("pfc", "baseline"),
        ("pfc-released", "baseline"),
        ("pfc-tlt", "pfc"),
        ("pfc-tlt-released", "pfc-released"),
        ("rto-200us", "baseline"),
        ("tlp", "baseline"),
        ("fixed-rto", "baseline"),
        ("tcp-tlt", "tcp"),
        ("hpcc-tlt", "hpcc"),
        ("hpcc-pfc", "hpcc"),
        ("hpcc-pfc-tlt", "hpcc-pfc"),
        ("gbn-tlt", "gbn"),
        ("gbn-pfc", "gbn"),
        ("sack-tlt", "sack"),
        ("sack-pfc", "sack"),
        ("sack-pfc-tlt", "sack-pfc"),
        ("irn-tlt", "irn"),
        ("irn-pfc", "irn"),
        ("irn-pfc-tlt", "irn-pfc"),
    ],
    of: &[],
    none: &[
        ("5-hpcc", NO_HARM),
        ("5-sack", NO_HARM),
        ("5-irn", NO_HARM),
        ("R6", "without TLT no byte is important, so there is no share"),
    ],
};

static EXPERIMENTS: [Experiment; tcp::EXPERIMENTS.len() + rdma::EXPERIMENTS.len()] =
    joined(tcp::EXPERIMENTS, rdma::EXPERIMENTS);
static CLAIMS: [Claim; tcp::CLAIMS.len() + rdma::CLAIMS.len()] = joined(tcp::CLAIMS, rdma::CLAIMS);

const SLIDES: &str = "TLT, EuroSys 2021, slides";

type Name = &'static str;

const TAIL: Statistic = Statistic::Flows("foreground", Of::P999);
/// To the last acknowledgement, as the released simulators count: from the first byte sent.
const ACKED_TAIL: Statistic = Statistic::Acknowledged("foreground", Of::P999);
const MEDIAN: Statistic = Statistic::Flows("foreground", Of::P50);
const BACKGROUND: Statistic = Statistic::Flows("background", Of::Mean);

const fn most(x: f64) -> [Option<f64>; 2] {
    [None, Some(x)]
}
const fn least(x: f64) -> [Option<f64>; 2] {
    [Some(x), None]
}
const fn within(low: f64, high: f64) -> [Option<f64>; 2] {
    [Some(low), Some(high)]
}
