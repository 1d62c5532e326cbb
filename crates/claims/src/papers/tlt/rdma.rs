//! TLT for RDMA's queue pairs: what the paper's slides claim, and what its authors' released simulator gives.
//!
//! The released simulator (ns-3) was run unmodified with 300 background flows and three seeds. Claims of that table begin
//! with Q: a number a row, a letter a column. Accepted is what was laid down with the table, before anything was run here:
//! no timeout and no green drop with TLT, a quarter to both sides for completion times, a fifth for timeouts, 40 % for PAUSE
//! frames. Its drops are no claims but where there are none.
//!
//! The slides' claims are numbered as in their order, like those of TCP, with the transport behind the number.

use super::{ACKED_TAIL, BACKGROUND, MEDIAN, Name, SLIDES, TAIL, least, most, within};
use crate::claim::{Claim, Value};
use crate::experiment::{Experiment, Runs};
use crate::measure::Measure;
use crate::statistic::{Of, Statistic};
use Value::{Published as Given, Released, Shape};
use millpond_results::Keep;

const RELEASED: &str = "TLT's released RDMA simulator, run unmodified, 300 background flows, three seeds";

/// The rows of the released simulator's table; labels fit a column of the results' table.
const TABLE: &[(&str, &str)] = &[
    ("hpcc", "HPCC"),
    ("hpcc-tlt", "HPCC+TLT"),
    ("hpcc-pfc", "HPCC+PFC"),
    ("hpcc-pfc-tlt", "HPCC+P+T"),
    ("gbn", "GBN"),
    ("gbn-tlt", "GBN+TLT"),
    ("gbn-pfc", "GBN+PFC"),
];
/// The transports of the slides.
const SLIDED: &[(&str, &str)] = &[
    ("hpcc", "HPCC"),
    ("hpcc-tlt", "HPCC+TLT"),
    ("hpcc-pfc", "HPCC+PFC"),
    ("hpcc-pfc-tlt", "HPCC+P+T"),
    ("sack", "SACK"),
    ("sack-tlt", "SACK+TLT"),
    ("sack-pfc", "SACK+PFC"),
    ("sack-pfc-tlt", "SACK+P+T"),
    ("irn", "IRN"),
    ("irn-tlt", "IRN+TLT"),
    ("irn-pfc", "IRN+PFC"),
    ("irn-pfc-tlt", "IRN+P+T"),
];
const PAIRED: &[(&str, &str)] = &[
    ("hpcc", "HPCC"),
    ("hpcc-tlt", "HPCC+TLT"),
    ("sack", "SACK"),
    ("sack-tlt", "SACK+TLT"),
    ("irn", "IRN"),
    ("irn-tlt", "IRN+TLT"),
];

const SHOWS: &[(&str, Statistic)] = &[
    ("timeouts /1000", TIMEOUTS),
    ("foreground p50", MEDIAN),
    ("foreground p99", NEAR_TAIL),
    ("foreground p99.9", TAIL),
    ("background mean", BACKGROUND),
    ("packets dropped", Statistic::Dropped),
    ("PAUSE frames", Statistic::Pauses),
    ("ACKed p99.9", ACKED_TAIL),
];
/// All times to the last acknowledgement.
const SHOWS_RELEASED: &[(&str, Statistic)] = &[
    ("timeouts /1000", TIMEOUTS),
    ("foreground p50", ACKED_MEDIAN),
    ("foreground p99", ACKED_NEAR_TAIL),
    ("foreground p99.9", ACKED_TAIL),
    ("background mean", ACKED_BACKGROUND),
    ("packets dropped", Statistic::Dropped),
    ("PAUSE frames", Statistic::Pauses),
];

const NEAR_TAIL: Statistic = Statistic::Flows("foreground", Of::P99);
/// The table counts them by all flows.
const TIMEOUTS: Statistic = Statistic::TimeoutsPerThousand("all");
/// The table's times end with the last acknowledgement.
const ACKED_MEDIAN: Statistic = Statistic::Acknowledged("foreground", Of::P50);
const ACKED_NEAR_TAIL: Statistic = Statistic::Acknowledged("foreground", Of::P99);
const ACKED_BACKGROUND: Statistic = Statistic::Acknowledged("background", Of::Mean);
/// What the color threshold has not dropped: the green drops are among it.
const GREEN: Statistic = Statistic::DroppedBut("color");
const EPISODES: Statistic = Statistic::Counter("pfc", "episodes");

const ONE_LOAD: &[(f64, &str)] = &[(50.0, "")];
const FLOWS: &[(f64, &str)] = &[(1.0, "1"), (2.0, "2"), (5.0, "5"), (8.0, "8")];

/// The released configuration's own number of flows: 16.7 ms of arrivals, 49 incasts.
const THOUSAND: &[(&str, &str)] = &[("traffic.background.count", "1000"), ("traffic.foreground.stop", "16734us")];

const fn of_leaf_spine(
    name: Name,
    title: Name,
    schemes: &'static [(&'static str, &'static str)],
    axis: (Name, Option<Name>),
    full: Runs,
    quick: Runs,
) -> Experiment {
    Experiment {
        name,
        title,
        scenario: "scenarios/papers/tlt/leaf-spine-rdma.toml",
        text: include_str!("../../../../../scenarios/papers/tlt/leaf-spine-rdma.toml"),
        schemes,
        load_axis: axis.0,
        load_key: axis.1,
        full,
        quick: Ok(quick),
        keep: Keep::Flows,
        shows: SHOWS,
        published: &[],
    }
}

const fn runs(loads: &'static [(f64, &'static str)], last: u64, note: Name) -> Runs {
    Runs { loads, seeds: (1, last), set: &[], note }
}

const FEW: Name = "--quick: fewer seeds";
const LOAD: (Name, Option<Name>) = ("load, percent of the uplinks", None);

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        shows: SHOWS_RELEASED,
        ..of_leaf_spine(
            "rdma-released",
            "RDMA as released: HPCC with SACK, DCQCN with go-back-N (GBN), P+T with PFC and TLT",
            TABLE,
            LOAD,
            runs(ONE_LOAD, 20, ""),
            runs(ONE_LOAD, 20, ""),
        )
    },
    of_leaf_spine(
        "rdma",
        "RDMA, 1,000 background flows: HPCC with SACK, DCQCN with SACK and with IRN",
        SLIDED,
        LOAD,
        Runs { set: THOUSAND, ..runs(ONE_LOAD, 3, "") },
        runs(ONE_LOAD, 2, "--quick: 300 background flows, two seeds"),
    ),
    of_leaf_spine(
        "rdma-degree",
        "RDMA, flows of each server in an incast",
        PAIRED,
        ("flows of each of 95 servers", Some("traffic.foreground.flows-per-server")),
        // A p99.9 of 14 incasts of 95 flows needs eight seeds.
        runs(FLOWS, 8, ""),
        runs(FLOWS, 1, FEW),
    ),
];

const fn change(statistic: Statistic, of: Name, than: Name) -> Measure {
    Measure::Change { experiment: "rdma", load: 50.0, statistic, of, than }
}
const fn slide(id: Name, statement: Name, paper: Value, accept: [Option<f64>; 2], measure: Measure) -> Claim {
    Claim { id, source: SLIDES, statement, paper, accept, measure, quick: None, note: "" }
}
const fn noted(claim: Claim, note: Name) -> Claim {
    Claim { note, ..claim }
}

/// Slide 35 away from five flows of each server.
const fn few(id: Name, statement: Name, load: f64, of: Name, than: Name) -> Claim {
    let measure = Measure::Change { experiment: "rdma-degree", load, statistic: TAIL, of, than };
    slide(id, statement, Shape, most(0.0), measure)
}
/// Slide 35's corner of a short foreground and a short background, beside PFC alone.
const fn corner(id: Name, statement: Name, statistic: Statistic, transport: Name) -> Claim {
    let (of, than) = match transport.as_bytes() {
        b"hpcc" => ("hpcc-tlt", "hpcc-pfc"),
        b"sack" => ("sack-tlt", "sack-pfc"),
        _ => ("irn-tlt", "irn-pfc"),
    };
    noted(slide(id, statement, Shape, most(0.0), change(statistic, of, than)), CORNER)
}

/// A number of the table, and by how much in a hundred ours may be off.
const fn cell(id: Name, statement: Name, statistic: Statistic, of: Name, theirs: f64, off: f64) -> Claim {
    let measure = Measure::Part { experiment: "rdma-released", load: 50.0, statistic, of, whole: theirs };
    let (paper, accept) = (Released(100.0), within(100.0 - off, 100.0 + off));
    Claim { id, source: RELEASED, statement, paper, accept, measure, quick: None, note: "" }
}
/// A zero of the table.
const fn none(id: Name, statement: Name, statistic: Statistic, of: Name) -> Claim {
    let measure = Measure::Part { experiment: "rdma-released", load: 50.0, statistic, of, whole: 1.0 };
    Claim { id, source: RELEASED, statement, paper: Released(0.0), accept: most(0.0), measure, quick: None, note: "" }
}
const fn timeouts(id: Name, statement: Name, of: Name, theirs: f64) -> Claim {
    cell(id, statement, TIMEOUTS, of, theirs, 20.0)
}
/// Milliseconds.
const fn fct(id: Name, statement: Name, statistic: Statistic, of: Name, theirs: f64) -> Claim {
    cell(id, statement, statistic, of, theirs * 1000.0, 25.0)
}
const fn pauses(id: Name, statement: Name, statistic: Statistic, of: Name, theirs: f64) -> Claim {
    cell(id, statement, statistic, of, theirs, 40.0)
}

const CORNER: Name = "the slide does not say where a completion time ends; the released simulator's ends with the last \
                      acknowledgement";
const ONE_CONFIG: Name = "which transport, sweep and point it is of is not published; ours is the best of three transports \
                          and four numbers of flows";

pub(super) const CLAIMS: &[Claim] = &[
    noted(
        slide(
            "5",
            "RDMA: foreground p99.9 falls by up to 69 %",
            Given(-69.0),
            most(-40.0),
            Measure::BestOf {
                experiment: "rdma-degree",
                statistic: TAIL,
                pairs: &[("hpcc-tlt", "hpcc"), ("sack-tlt", "sack"), ("irn-tlt", "irn")],
            },
        ),
        ONE_CONFIG,
    ),
    slide(
        "5-hpcc",
        "HPCC+SACK: TLT does not lengthen the foreground's p99.9",
        Shape,
        most(0.0),
        change(TAIL, "hpcc-tlt", "hpcc"),
    ),
    slide(
        "5-sack",
        "DCQCN+SACK: TLT does not lengthen the foreground's p99.9",
        Shape,
        most(0.0),
        change(TAIL, "sack-tlt", "sack"),
    ),
    slide(
        "5-irn",
        "DCQCN+IRN: TLT does not lengthen the foreground's p99.9",
        Shape,
        most(0.0),
        change(TAIL, "irn-tlt", "irn"),
    ),
    few("5-hpcc-1", "HPCC+SACK, one flow of each server: TLT does not lengthen the p99.9", 1.0, "hpcc-tlt", "hpcc"),
    few("5-sack-1", "DCQCN+SACK, one flow of each server: TLT does not lengthen the p99.9", 1.0, "sack-tlt", "sack"),
    few("5-irn-1", "DCQCN+IRN, one flow of each server: TLT does not lengthen the p99.9", 1.0, "irn-tlt", "irn"),
    few("5-hpcc-2", "HPCC+SACK, two flows of each server: TLT does not lengthen the p99.9", 2.0, "hpcc-tlt", "hpcc"),
    few("5-sack-2", "DCQCN+SACK, two flows of each server: TLT does not lengthen the p99.9", 2.0, "sack-tlt", "sack"),
    few("5-irn-2", "DCQCN+IRN, two flows of each server: TLT does not lengthen the p99.9", 2.0, "irn-tlt", "irn"),
    slide(
        "6-hpcc",
        "HPCC+SACK: timeouts are eliminated: TLT against the baseline",
        Given(-100.0),
        most(-99.9),
        change(Statistic::Timeouts, "hpcc-tlt", "hpcc"),
    ),
    slide(
        "6-sack",
        "DCQCN+SACK: timeouts are eliminated: TLT against the baseline",
        Given(-100.0),
        most(-99.9),
        change(Statistic::Timeouts, "sack-tlt", "sack"),
    ),
    slide(
        "6-irn",
        "DCQCN+IRN: timeouts are eliminated: TLT against the baseline",
        Given(-100.0),
        most(-99.9),
        change(Statistic::Timeouts, "irn-tlt", "irn"),
    ),
    slide(
        "7-hpcc",
        "HPCC+SACK: PAUSE frames fall: PFC with TLT against PFC",
        Shape,
        most(0.0),
        change(Statistic::Pauses, "hpcc-pfc-tlt", "hpcc-pfc"),
    ),
    slide(
        "7-sack",
        "DCQCN+SACK: PAUSE frames fall: PFC with TLT against PFC",
        Shape,
        most(0.0),
        change(Statistic::Pauses, "sack-pfc-tlt", "sack-pfc"),
    ),
    slide(
        "7-irn",
        "DCQCN+IRN: PAUSE frames fall: PFC with TLT against PFC",
        Shape,
        most(0.0),
        change(Statistic::Pauses, "irn-pfc-tlt", "irn-pfc"),
    ),
    slide(
        "8a-hpcc",
        "HPCC+SACK: PFC alone protects the foreground: its p99.9 against the baseline",
        Shape,
        most(0.0),
        change(TAIL, "hpcc-pfc", "hpcc"),
    ),
    slide(
        "8a-sack",
        "DCQCN+SACK: PFC alone protects the foreground: its p99.9 against the baseline",
        Shape,
        most(0.0),
        change(TAIL, "sack-pfc", "sack"),
    ),
    slide(
        "8a-irn",
        "DCQCN+IRN: PFC alone protects the foreground: its p99.9 against the baseline",
        Shape,
        most(0.0),
        change(TAIL, "irn-pfc", "irn"),
    ),
    slide(
        "8b-hpcc",
        "HPCC+SACK: PFC alone slows the background: its mean FCT against the baseline",
        Shape,
        least(0.0),
        change(BACKGROUND, "hpcc-pfc", "hpcc"),
    ),
    slide(
        "8b-sack",
        "DCQCN+SACK: PFC alone slows the background: its mean FCT against the baseline",
        Shape,
        least(0.0),
        change(BACKGROUND, "sack-pfc", "sack"),
    ),
    slide(
        "8b-irn",
        "DCQCN+IRN: PFC alone slows the background: its mean FCT against the baseline",
        Shape,
        least(0.0),
        change(BACKGROUND, "irn-pfc", "irn"),
    ),
    slide(
        "8c-hpcc",
        "HPCC+SACK: TLT spares the background: its mean FCT against PFC",
        Shape,
        most(0.0),
        change(BACKGROUND, "hpcc-tlt", "hpcc-pfc"),
    ),
    slide(
        "8c-sack",
        "DCQCN+SACK: TLT spares the background: its mean FCT against PFC",
        Shape,
        most(0.0),
        change(BACKGROUND, "sack-tlt", "sack-pfc"),
    ),
    slide(
        "8c-irn",
        "DCQCN+IRN: TLT spares the background: its mean FCT against PFC",
        Shape,
        most(0.0),
        change(BACKGROUND, "irn-tlt", "irn-pfc"),
    ),
    corner("8d-hpcc", "HPCC+SACK: TLT is ahead of PFC in the foreground's p99.9, to the last byte", TAIL, "hpcc"),
    corner("8d-sack", "DCQCN+SACK: TLT is ahead of PFC in the foreground's p99.9, to the last byte", TAIL, "sack"),
    corner("8d-irn", "DCQCN+IRN: TLT is ahead of PFC in the foreground's p99.9, to the last byte", TAIL, "irn"),
    corner("8e-hpcc", "HPCC+SACK: and to the last acknowledgement", ACKED_TAIL, "hpcc"),
    corner("8e-sack", "DCQCN+SACK: and to the last acknowledgement", ACKED_TAIL, "sack"),
    corner("8e-irn", "DCQCN+IRN: and to the last acknowledgement", ACKED_TAIL, "irn"),
    timeouts("Q1a", "HPCC+SACK: timeouts a thousand flows, of 455", "hpcc", 455.0),
    fct("Q1b", "HPCC+SACK: foreground p50, of 0.78 ms", ACKED_MEDIAN, "hpcc", 0.78),
    fct("Q1c", "HPCC+SACK: foreground p99, of 4.67 ms", ACKED_NEAR_TAIL, "hpcc", 4.67),
    fct("Q1d", "HPCC+SACK: foreground p99.9, of 5.01 ms", ACKED_TAIL, "hpcc", 5.01),
    fct("Q1e", "HPCC+SACK: background mean FCT, of 0.770 ms", ACKED_BACKGROUND, "hpcc", 0.770),
    none("Q2a", "HPCC+SACK+TLT: no timeout in any seed", TIMEOUTS, "hpcc-tlt"),
    fct("Q2b", "HPCC+SACK+TLT: foreground p50, of 0.82 ms", ACKED_MEDIAN, "hpcc-tlt", 0.82),
    fct("Q2c", "HPCC+SACK+TLT: foreground p99, of 1.04 ms", ACKED_NEAR_TAIL, "hpcc-tlt", 1.04),
    fct("Q2d", "HPCC+SACK+TLT: foreground p99.9, of 1.18 ms", ACKED_TAIL, "hpcc-tlt", 1.18),
    fct("Q2e", "HPCC+SACK+TLT: background mean FCT, of 0.728 ms", ACKED_BACKGROUND, "hpcc-tlt", 0.728),
    none("Q2f", "HPCC+SACK+TLT: no green packet is dropped in any seed", GREEN, "hpcc-tlt"),
    none("Q3a", "HPCC+SACK+PFC: no timeout in any seed", TIMEOUTS, "hpcc-pfc"),
    fct("Q3b", "HPCC+SACK+PFC: foreground p50, of 0.75 ms", ACKED_MEDIAN, "hpcc-pfc", 0.75),
    fct("Q3c", "HPCC+SACK+PFC: foreground p99, of 1.42 ms", ACKED_NEAR_TAIL, "hpcc-pfc", 1.42),
    fct("Q3d", "HPCC+SACK+PFC: foreground p99.9, of 1.62 ms", ACKED_TAIL, "hpcc-pfc", 1.62),
    fct("Q3e", "HPCC+SACK+PFC: background mean FCT, of 0.893 ms", ACKED_BACKGROUND, "hpcc-pfc", 0.893),
    none("Q3f", "HPCC+SACK+PFC: nothing is dropped in any seed", Statistic::Dropped, "hpcc-pfc"),
    pauses("Q3g", "HPCC+SACK+PFC: PAUSE frames, of 32,829", Statistic::Pauses, "hpcc-pfc", 32829.0),
    pauses("Q3h", "HPCC+SACK+PFC: PAUSE episodes, of 3,501", EPISODES, "hpcc-pfc", 3501.0),
    none("Q4a", "HPCC+SACK+PFC+TLT: no timeout in any seed", TIMEOUTS, "hpcc-pfc-tlt"),
    fct("Q4b", "HPCC+SACK+PFC+TLT: foreground p50, of 0.82 ms", ACKED_MEDIAN, "hpcc-pfc-tlt", 0.82),
    fct("Q4c", "HPCC+SACK+PFC+TLT: foreground p99, of 1.06 ms", ACKED_NEAR_TAIL, "hpcc-pfc-tlt", 1.06),
    fct("Q4d", "HPCC+SACK+PFC+TLT: foreground p99.9, of 1.18 ms", ACKED_TAIL, "hpcc-pfc-tlt", 1.18),
    fct("Q4e", "HPCC+SACK+PFC+TLT: background mean FCT, of 0.734 ms", ACKED_BACKGROUND, "hpcc-pfc-tlt", 0.734),
    none("Q4f", "HPCC+SACK+PFC+TLT: no green packet is dropped in any seed", GREEN, "hpcc-pfc-tlt"),
    pauses("Q4g", "HPCC+SACK+PFC+TLT: PAUSE frames, of 2,880", Statistic::Pauses, "hpcc-pfc-tlt", 2880.0),
    pauses("Q4h", "HPCC+SACK+PFC+TLT: PAUSE episodes, of 515", EPISODES, "hpcc-pfc-tlt", 515.0),
    timeouts("Q5a", "DCQCN, go-back-N: timeouts a thousand flows, of 447.7", "gbn", 447.7),
    fct("Q5b", "DCQCN, go-back-N: foreground p50, of 2.02 ms", ACKED_MEDIAN, "gbn", 2.02),
    fct("Q5c", "DCQCN, go-back-N: foreground p99, of 4.71 ms", ACKED_NEAR_TAIL, "gbn", 4.71),
    fct("Q5d", "DCQCN, go-back-N: foreground p99.9, of 5.05 ms", ACKED_TAIL, "gbn", 5.05),
    fct("Q5e", "DCQCN, go-back-N: background mean FCT, of 1.079 ms", ACKED_BACKGROUND, "gbn", 1.079),
    none("Q6a", "DCQCN, go-back-N, TLT: no timeout in any seed", TIMEOUTS, "gbn-tlt"),
    fct("Q6b", "DCQCN, go-back-N, TLT: foreground p50, of 1.32 ms", ACKED_MEDIAN, "gbn-tlt", 1.32),
    fct("Q6c", "DCQCN, go-back-N, TLT: foreground p99, of 1.69 ms", ACKED_NEAR_TAIL, "gbn-tlt", 1.69),
    fct("Q6d", "DCQCN, go-back-N, TLT: foreground p99.9, of 1.90 ms", ACKED_TAIL, "gbn-tlt", 1.90),
    fct("Q6e", "DCQCN, go-back-N, TLT: background mean FCT, of 1.116 ms", ACKED_BACKGROUND, "gbn-tlt", 1.116),
    none("Q6f", "DCQCN, go-back-N, TLT: no green packet is dropped in any seed", GREEN, "gbn-tlt"),
    none("Q7a", "DCQCN, go-back-N, PFC: no timeout in any seed", TIMEOUTS, "gbn-pfc"),
    fct("Q7b", "DCQCN, go-back-N, PFC: foreground p50, of 0.68 ms", ACKED_MEDIAN, "gbn-pfc", 0.68),
    fct("Q7c", "DCQCN, go-back-N, PFC: foreground p99, of 1.35 ms", ACKED_NEAR_TAIL, "gbn-pfc", 1.35),
    fct("Q7d", "DCQCN, go-back-N, PFC: foreground p99.9, of 1.51 ms", ACKED_TAIL, "gbn-pfc", 1.51),
    fct("Q7e", "DCQCN, go-back-N, PFC: background mean FCT, of 1.288 ms", ACKED_BACKGROUND, "gbn-pfc", 1.288),
    none("Q7f", "DCQCN, go-back-N, PFC: nothing is dropped in any seed", Statistic::Dropped, "gbn-pfc"),
    pauses("Q7g", "DCQCN, go-back-N, PFC: PAUSE frames, of 56,553", Statistic::Pauses, "gbn-pfc", 56553.0),
    pauses("Q7h", "DCQCN, go-back-N, PFC: PAUSE episodes, of 5,848", EPISODES, "gbn-pfc", 5848.0),
];
