//! What the slides' tables and words claim, and what is accepted of it.
//!
//! The published numbers are of one run each. What the slides' analysis calls their shape is accepted
//! as it stands: of T1a, T1b, T1d, T1f2, T1f5, T2b, T2d, T2f, T2e1, T3c to T3e, T4a, T4b, T4g, T4h, T5a,
//! T5b, T5d and T5e, percentages as rounded. The other intervals are this project's: half of the
//! published effect or more (T1c, T2c, T3b, T4e, T4f), and a band around the number (T1e, T1f9, T2a, T3a,
//! T4c, T4d, the tails of T5).
//!
//! That they were laid down before anything was run cannot be seen in their history, which begins with
//! the first results. T1e, T1f, T2f, T3d, T3e, T4e to T4h, T5d, T5e and the tails of T5 but
//! one are younger than the first runs, whose tables had figures of theirs.

use super::Name;
use crate::claim::{Claim, Value};
use crate::measure::Measure;
use crate::statistic::{Of, Statistic};
use Value::{Derived, Ours, Published as Given, Shape};

const SLIDES: &str = "NRM, Linux Plumbers Conference 2018";
const BESIDE: &str = "asked beside the slides' tail: the bound is ours";
const P999: &str = "a p99.9 needs minutes";
const SEVERAL_SECONDS: &str = "what is not lost in 20 s may be lost later";

pub(super) const GOODPUT: Statistic = Statistic::Goodput;
const LARGE_P99: Statistic = Statistic::Calls("large", Of::P99);
pub(super) const LARGE_P999: Statistic = Statistic::Calls("large", Of::P999);
const SMALL_CALLS: Statistic = Statistic::Calls("small", Of::Count);
pub(super) const SMALL_P50: Statistic = Statistic::Calls("small", Of::P50);
pub(super) const SMALL_P999: Statistic = Statistic::Calls("small", Of::P999);

const fn change(experiment: Name, load: f64, statistic: Statistic, of: Name, than: Name) -> Measure {
    Measure::Change { experiment, load, statistic, of, than }
}

pub(super) const fn part(experiment: Name, load: f64, statistic: Statistic, of: Name, whole: f64) -> Measure {
    Measure::Part { experiment, load, statistic, of, whole }
}

const fn claim(id: Name, statement: Name, paper: Value, accept: [Option<f64>; 2], measure: Measure) -> Claim {
    Claim { id, source: SLIDES, statement, paper, accept, measure, quick: None, note: "" }
}

/// One whose number a short run does not have.
pub(super) const fn slow(id: Name, statement: Name, paper: Value, accept: [Option<f64>; 2], measure: Measure) -> Claim {
    Claim { id, source: SLIDES, statement, paper, accept, measure, quick: Some(P999), note: "" }
}

/// What the probe timer does to DCTCP where the slides show no effect.
const fn unmoved(id: Name, statement: Name, paper: Value, experiment: Name, load: f64) -> Claim {
    slow(id, statement, paper, within(-20.0, 20.0), change(experiment, load, LARGE_P999, "dctcp-fast", "dctcp"))
}

/// How many small calls NRM lets through at 5 Gb/s, against HTB: 5.6 times as many or more.
const fn small_calls(id: Name, statement: Name, paper: Value, of: Name) -> Claim {
    claim(id, statement, paper, least(460.0), change("t4", 9.0, SMALL_CALLS, of, "htb"))
}

/// And how long the slowest of them take: 3.4 times less or shorter.
const fn small_tail(id: Name, statement: Name, paper: Value, of: Name) -> Claim {
    slow(id, statement, paper, most(-70.0), change("t4", 9.0, SMALL_P999, of, "htb"))
}

/// A tail of T5, in microseconds, as a part of the slides'.
const fn tail(
    id: Name,
    statement: Name,
    experiment: Name,
    load: f64,
    statistic: Statistic,
    (of, whole): (Name, f64),
) -> Claim {
    slow(id, statement, Given(100.0), within(65.0, 150.0), part(experiment, load, statistic, of, whole))
}

/// Packets that are sent again where the slides have none.
const fn lossless(id: Name, statement: Name, experiment: Name, load: f64, of: Name) -> Claim {
    let measure = Measure::Plain { experiment, load, statistic: Statistic::Retransmitted, of };
    Claim { quick: Some(SEVERAL_SECONDS), ..claim(id, statement, Given(0.0), most(0.0), measure) }
}

/// With what the reader must know.
const fn noted(claim: Claim, note: Name) -> Claim {
    Claim { note, ..claim }
}

/// Why T1a comes out as it does.
const NO_OFFLOAD: Name = "the scenario has no receive offload: every packet has its ACK, so a lone flow keeps some packets in flight \
                          and never stalls";
/// How T3's flows are paced.
const PACED: Name = "paced as Linux paces behind fq, which the slides ran (transport.pacing)";

/// Why T4e and T4f do.
const NO_STALL: Name = "flows do not stall here; with a kernel's own TCP they do, and a stall is 200 ms";
/// Why T2e1 does.
const PROBE: Name =
    "one call in a thousand waits for the probe timer of 20 ms; the slides' percentile is not known to be p99.9";

const fn least(x: f64) -> [Option<f64>; 2] {
    [Some(x), None]
}

const fn most(x: f64) -> [Option<f64>; 2] {
    [None, Some(x)]
}

pub(super) const fn within(low: f64, high: f64) -> [Option<f64>; 2] {
    [Some(low), Some(high)]
}

pub(super) const CLAIMS: &[Claim] = &[
    noted(
        claim(
            "T1a1",
            "Cubic, 1 flow: the 20 ms probe timer raises the rate",
            Derived(60.1, "794 against 496 Mb/s"),
            least(40.0),
            change("t1-one", 1.0, GOODPUT, "cubic-fast", "cubic"),
        ),
        NO_OFFLOAD,
    ),
    noted(
        slow(
            "T1a2",
            "Cubic, 1 flow: it cuts the p99.9 of 1 MiB calls",
            Derived(-66.4, "84 against 250 ms"),
            most(-60.0),
            change("t1-one", 1.0, LARGE_P999, "cubic-fast", "cubic"),
        ),
        NO_OFFLOAD,
    ),
    claim(
        "T1b1",
        "DCTCP, 1 flow: rate, of the limit",
        Derived(95.3, "953 of 1000 Mb/s"),
        least(95.0),
        part("t1-one", 1.0, GOODPUT, "dctcp", 1.0),
    ),
    slow(
        "T1b2",
        "DCTCP, 1 flow: p99.9 of 1 MiB calls, of the 8.4 ms that one takes at 1 Gb/s",
        Derived(107.0, "9 ms"),
        most(130.0),
        part("t1-one", 1.0, LARGE_P999, "dctcp", 8_389.0),
    ),
    slow(
        "T1c",
        "DCTCP, 9 flows: the 20 ms probe timer cuts the p99.9 of 1 MiB calls",
        Derived(-74.7, "78 against 308 ms"),
        most(-50.0),
        change("t1", 9.0, LARGE_P999, "dctcp-fast", "dctcp"),
    ),
    claim(
        "T1d1",
        "Cubic, 9 flows, 20 ms probe timer: rate, of the limit",
        Derived(100.6, "1006 of 1000 Mb/s"),
        within(95.0, 103.0),
        part("t1", 9.0, GOODPUT, "cubic-fast", 1.0),
    ),
    claim(
        "T1d2",
        "DCTCP, 9 flows, 20 ms probe timer: rate, of the limit",
        Derived(102.0, "1020 of 1000 Mb/s"),
        within(95.0, 103.0),
        part("t1", 9.0, GOODPUT, "dctcp-fast", 1.0),
    ),
    unmoved(
        "T1e1",
        "DCTCP, 1 flow: the 20 ms probe timer does not change the p99.9 of 1 MiB calls, within a fifth",
        Derived(0.0, "9 and 9 ms"),
        "t1-one",
        1.0,
    ),
    unmoved(
        "T1e2",
        "DCTCP, 2 flows: the 20 ms probe timer does not change the p99.9 of 1 MiB calls, within a fifth",
        Derived(-4.5, "21 against 22 ms"),
        "t1",
        2.0,
    ),
    unmoved(
        "T1e5",
        "DCTCP, 5 flows: the 20 ms probe timer does not change the p99.9 of 1 MiB calls, within a fifth",
        Derived(-7.7, "48 against 52 ms"),
        "t1",
        5.0,
    ),
    slow(
        "T1f2",
        "Cubic, 2 flows: the 20 ms probe timer cuts the p99.9 of 1 MiB calls",
        Derived(-83.1, "44 against 260 ms"),
        most(-60.0),
        change("t1", 2.0, LARGE_P999, "cubic-fast", "cubic"),
    ),
    slow(
        "T1f5",
        "Cubic, 5 flows: the 20 ms probe timer cuts the p99.9 of 1 MiB calls",
        Derived(-80.2, "92 against 465 ms"),
        most(-60.0),
        change("t1", 5.0, LARGE_P999, "cubic-fast", "cubic"),
    ),
    slow(
        "T1f9",
        "Cubic, 9 flows: the 20 ms probe timer cuts the p99.9 of 1 MiB calls",
        Derived(-42.5, "345 against 600 ms"),
        within(-65.0, -20.0),
        change("t1", 9.0, LARGE_P999, "cubic-fast", "cubic"),
    ),
    claim(
        "T2a",
        "9 flows: aggregate rate under NRM (DCTCP) against HTB",
        Shape,
        within(-10.0, 10.0),
        change("t2", 9.0, GOODPUT, "dctcp", "htb"),
    ),
    claim(
        "T2b",
        "9 flows: mean round-trip time under NRM (DCTCP) against HTB",
        Shape,
        most(-80.0),
        change("t2", 9.0, Statistic::RoundTrip, "dctcp", "htb"),
    ),
    claim(
        "T2c",
        "9 flows: 10 KiB calls a second under NRM (DCTCP) against HTB: up to 20 times",
        Shape,
        least(400.0),
        change("t2", 9.0, SMALL_CALLS, "dctcp", "htb"),
    ),
    claim(
        "T2d",
        "9 flows: p99 of 1 MiB calls under NRM (Cubic) is worse than under HTB",
        Shape,
        least(0.0),
        change("t2", 9.0, LARGE_P99, "cubic", "htb"),
    ),
    claim(
        "T2f",
        "9 flows: p99 of 1 MiB calls under NRM (Cubic with ECN) is worse than under HTB",
        Shape,
        least(0.0),
        change("t2", 9.0, LARGE_P99, "cubic-ecn", "htb"),
    ),
    noted(
        slow(
            "T2e1",
            "9 flows: p99.9 of 10 KiB calls under NRM (DCTCP) against HTB: 10 to 80 times lower",
            Shape,
            most(-90.0),
            change("t2", 9.0, SMALL_P999, "dctcp", "htb"),
        ),
        PROBE,
    ),
    Claim {
        source: BESIDE,
        ..claim(
            "T2e2",
            "9 flows: p50 of 10 KiB calls under NRM (DCTCP) against HTB",
            Ours,
            most(-90.0),
            change("t2", 9.0, SMALL_P50, "dctcp", "htb"),
        )
    },
    claim(
        "T3a",
        "10 ms, 1 flow: rate under HTB, of the limit",
        Derived(43.7, "437 of 1000 Mb/s"),
        within(37.0, 50.0),
        part("t3-one", 1.0, GOODPUT, "htb", 1.0),
    ),
    noted(
        claim(
            "T3b",
            "10 ms, 1 flow: rate under NRM (DCTCP) against HTB",
            Derived(52.4, "666 against 437 Mb/s"),
            least(20.0),
            change("t3-one", 1.0, GOODPUT, "dctcp-fq", "htb"),
        ),
        PACED,
    ),
    noted(
        claim(
            "T3c",
            "10 ms, 9 flows: rate under NRM (DCTCP), of the limit",
            Derived(94.7, "947 of 1000 Mb/s"),
            within(85.5, 95.5),
            part("t3", 9.0, GOODPUT, "dctcp-fq", 1.0),
        ),
        PACED,
    ),
    noted(
        claim(
            "T3d",
            "10 ms, 9 flows: rate under NRM (Cubic), of the limit",
            Derived(91.5, "915 of 1000 Mb/s"),
            within(85.5, 95.5),
            part("t3", 9.0, GOODPUT, "cubic-fq", 1.0),
        ),
        PACED,
    ),
    claim(
        "T3e",
        "10 ms, 9 flows: rate under HTB, of the limit",
        Derived(94.5, "945 of 1000 Mb/s"),
        within(85.5, 95.5),
        part("t3", 9.0, GOODPUT, "htb", 1.0),
    ),
    small_calls(
        "T4a",
        "5 Gb/s, 9 flows: 10 KiB calls a second under NRM (DCTCP) against HTB",
        Derived(742.9, "295 against 35 Mb/s"),
        "dctcp",
    ),
    small_tail(
        "T4b",
        "5 Gb/s, 9 flows: p99.9 of 10 KiB calls under NRM (DCTCP) against HTB",
        Derived(-78.4, "0.8 against 3.7 ms"),
        "dctcp",
    ),
    slow(
        "T4c",
        "5 Gb/s, 9 flows: p99.9 of 1 MiB calls under NRM (DCTCP) against HTB: HTB is better here",
        Derived(50.0, "27 against 18 ms"),
        within(0.0, 150.0),
        change("t4", 9.0, LARGE_P999, "dctcp", "htb"),
    ),
    claim(
        "T4d",
        "5 Gb/s, 1 flow: rate under NRM (DCTCP), of the limit",
        Derived(92.0, "4.6 of 5 Gb/s"),
        within(85.0, 100.0),
        part("t4-one", 1.0, GOODPUT, "dctcp", 5.0),
    ),
    noted(
        slow(
            "T4e",
            "5 Gb/s, 9 flows: p99.9 of 1 MiB calls under NRM (Cubic): 3 times HTB's or more (6)",
            Derived(527.8, "113 against 18 ms"),
            least(200.0),
            change("t4", 9.0, LARGE_P999, "cubic", "htb"),
        ),
        NO_STALL,
    ),
    noted(
        slow(
            "T4f",
            "5 Gb/s, 9 flows: p99.9 of 1 MiB calls under NRM (Cubic with ECN): 6 times HTB's or more (12)",
            Derived(1161.1, "227 against 18 ms"),
            least(500.0),
            change("t4", 9.0, LARGE_P999, "cubic-ecn", "htb"),
        ),
        NO_STALL,
    ),
    small_calls(
        "T4g1",
        "5 Gb/s, 9 flows: 10 KiB calls a second under NRM (Cubic) against HTB",
        Derived(594.3, "243 against 35 Mb/s"),
        "cubic",
    ),
    small_tail(
        "T4g2",
        "5 Gb/s, 9 flows: p99.9 of 10 KiB calls under NRM (Cubic) against HTB",
        Derived(-78.4, "0.8 against 3.7 ms"),
        "cubic",
    ),
    small_calls(
        "T4h1",
        "5 Gb/s, 9 flows: 10 KiB calls a second under NRM (Cubic with ECN) against HTB",
        Derived(460.0, "196 against 35 Mb/s"),
        "cubic-ecn",
    ),
    small_tail(
        "T4h2",
        "5 Gb/s, 9 flows: p99.9 of 10 KiB calls under NRM (Cubic with ECN) against HTB",
        Derived(-70.3, "1.1 against 3.7 ms"),
        "cubic-ecn",
    ),
    claim(
        "T5a",
        "On arrival, 1 Gb/s, 9 flows: rate, of the limit",
        Derived(94.5, "945 of 1000 Mb/s"),
        within(91.5, 95.5),
        part("t5", 9.0, GOODPUT, "1g", 1.0),
    ),
    claim(
        "T5b",
        "On arrival, 5 Gb/s, 9 flows: rate, of the limit",
        Derived(92.6, "4.63 of 5 Gb/s"),
        within(91.5, 95.5),
        part("t5", 9.0, GOODPUT, "5g", 5.0),
    ),
    tail(
        "T5f1",
        "On arrival, 1 Gb/s, 1 flow: p99.9 of 1 MiB calls, of 9.5 ms",
        "t5-one",
        1.0,
        LARGE_P999,
        ("1g", 9_500.0),
    ),
    tail(
        "T5f2",
        "On arrival, 1 Gb/s, 2 flows: p99.9 of 1 MiB calls, of 19 ms",
        "t5",
        2.0,
        LARGE_P999,
        ("1g", 19_000.0),
    ),
    tail(
        "T5f5",
        "On arrival, 1 Gb/s, 5 flows: p99.9 of 1 MiB calls, of 47.9 ms",
        "t5",
        5.0,
        LARGE_P999,
        ("1g", 47_900.0),
    ),
    tail(
        "T5f9",
        "On arrival, 1 Gb/s, 9 flows: p99.9 of 1 MiB calls, of 336 ms",
        "t5",
        9.0,
        LARGE_P999,
        ("1g", 336_000.0),
    ),
    tail(
        "T5g1",
        "On arrival, 5 Gb/s, 1 flow: p99.9 of 1 MiB calls, of 4.1 ms",
        "t5-one",
        1.0,
        LARGE_P999,
        ("5g", 4_100.0),
    ),
    tail(
        "T5g2",
        "On arrival, 5 Gb/s, 2 flows: p99.9 of 1 MiB calls, of 4.7 ms",
        "t5",
        2.0,
        LARGE_P999,
        ("5g", 4_700.0),
    ),
    tail(
        "T5g5",
        "On arrival, 5 Gb/s, 5 flows: p99.9 of 1 MiB calls, of 12.4 ms",
        "t5",
        5.0,
        LARGE_P999,
        ("5g", 12_400.0),
    ),
    tail(
        "T5c",
        "On arrival, 5 Gb/s, 9 flows: p99.9 of 1 MiB calls, of 18.5 ms",
        "t5",
        9.0,
        LARGE_P999,
        ("5g", 18_500.0),
    ),
    tail("T5h2", "On arrival, 1 Gb/s, 2 flows: p99.9 of 10 KiB calls, of 0.7 ms", "t5", 2.0, SMALL_P999, ("1g", 700.0)),
    tail("T5h5", "On arrival, 1 Gb/s, 5 flows: p99.9 of 10 KiB calls, of 0.9 ms", "t5", 5.0, SMALL_P999, ("1g", 900.0)),
    tail(
        "T5h9",
        "On arrival, 1 Gb/s, 9 flows: p99.9 of 10 KiB calls, of 207 ms",
        "t5",
        9.0,
        SMALL_P999,
        ("1g", 207_000.0),
    ),
    tail("T5i2", "On arrival, 5 Gb/s, 2 flows: p99.9 of 10 KiB calls, of 0.6 ms", "t5", 2.0, SMALL_P999, ("5g", 600.0)),
    tail("T5i5", "On arrival, 5 Gb/s, 5 flows: p99.9 of 10 KiB calls, of 1 ms", "t5", 5.0, SMALL_P999, ("5g", 1_000.0)),
    tail("T5i9", "On arrival, 5 Gb/s, 9 flows: p99.9 of 10 KiB calls, of 0.8 ms", "t5", 9.0, SMALL_P999, ("5g", 800.0)),
    lossless("T5d1", "On arrival, 1 Gb/s, 1 flow: nothing is sent again", "t5-one", 1.0, "1g"),
    lossless("T5d2", "On arrival, 1 Gb/s, 2 flows: nothing is sent again", "t5", 2.0, "1g"),
    lossless("T5d5", "On arrival, 1 Gb/s, 5 flows: nothing is sent again", "t5", 5.0, "1g"),
    lossless("T5e1", "On arrival, 5 Gb/s, 1 flow: nothing is sent again", "t5-one", 1.0, "5g"),
    lossless("T5e2", "On arrival, 5 Gb/s, 2 flows: nothing is sent again", "t5", 2.0, "5g"),
    lossless("T5e5", "On arrival, 5 Gb/s, 5 flows: nothing is sent again", "t5", 5.0, "5g"),
    lossless("T5e9", "On arrival, 5 Gb/s, 9 flows: nothing is sent again", "t5", 9.0, "5g"),
];
