//! TLT, in two parts: for TCP and for RDMA's queue pairs.

mod rdma;
mod tcp;

use crate::claim::Claim;
use crate::experiment::{Experiment, Paper};
use crate::statistic::{Of, Statistic};

/// The paper.
pub const TLT: Paper = Paper {
    name: "tlt",
    title: "TLT: transport without timeouts",
    experiments: &EXPERIMENTS,
    claims: &CLAIMS,
    emulated: &[],
};

static EXPERIMENTS: [Experiment; tcp::EXPERIMENTS.len() + rdma::EXPERIMENTS.len()] =
    joined(tcp::EXPERIMENTS, rdma::EXPERIMENTS);
static CLAIMS: [Claim; tcp::CLAIMS.len() + rdma::CLAIMS.len()] = joined(tcp::CLAIMS, rdma::CLAIMS);

const fn joined<T: Copy, const N: usize>(first: &[T], second: &[T]) -> [T; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

const SLIDES: &str = "TLT, EuroSys 2021, slides";

type Name = &'static str;

const TAIL: Statistic = Statistic::Flows("foreground", Of::P999);
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
