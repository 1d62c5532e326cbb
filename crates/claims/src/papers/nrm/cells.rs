//! The cells of the slides' tables: T1's rates and tails, T4's, and T5's medians, each as a part of the
//! slides' number.
//!
//! Accepted are 90 to 110 % of a rate and 65 to 150 % of a time: the bands that this paper's other claims
//! of single cells have. All of these claims are younger than the first runs, whose tables had figures of theirs.

use super::Name;
use super::claims::{GOODPUT, LARGE_P999, SMALL_P50, SMALL_P999, part, slow, within};
use crate::claim::{Claim, Value};
use crate::measure::Measure;
use crate::statistic::{Of, Statistic};
use Value::Published as Given;

const LARGE_P50: Statistic = Statistic::Calls("large", Of::P50);
const SMALL_CALLS: Statistic = Statistic::Calls("small", Of::Count);
const RATE: [Option<f64>; 2] = within(90.0, 110.0);
const TIME: [Option<f64>; 2] = within(65.0, 150.0);
/// What a full run of T4 counts: 60 s less the warm-up of 1 s.
const T4_SECONDS: f64 = 59.0;
const COUNTED: Name = "the calls of a full run are counted";

/// A rate, in Gb/s; the slides' in Mb/s is `whole`.
const fn rate(id: Name, statement: Name, experiment: Name, load: f64, (of, whole): (Name, f64)) -> Claim {
    let measure = part(experiment, load, GOODPUT, of, whole / 1e3);
    Claim { quick: None, ..slow(id, statement, Given(100.0), RATE, measure) }
}

/// A tail, in milliseconds.
const fn tail(id: Name, statement: Name, experiment: Name, load: f64, (of, whole): (Name, f64)) -> Claim {
    slow(id, statement, Given(100.0), TIME, part(experiment, load, LARGE_P999, of, whole * 1e3))
}

/// A median, in milliseconds.
const fn median(id: Name, statement: Name, load: f64, statistic: Statistic, (of, whole): (Name, f64)) -> Claim {
    let experiment = if load == 1.0 { "t5-one" } else { "t5" };
    Claim { quick: None, ..slow(id, statement, Given(100.0), TIME, part(experiment, load, statistic, of, whole * 1e3)) }
}

/// The rate of T4's small calls, in Mb/s.
const fn small(id: Name, statement: Name, (of, whole): (Name, f64)) -> Claim {
    let calls = whole * 1e6 / 8.0 / 10_240.0 * T4_SECONDS;
    let measure = Measure::Part { experiment: "t4", load: 9.0, statistic: SMALL_CALLS, of, whole: calls };
    Claim { quick: Some(COUNTED), ..slow(id, statement, Given(100.0), TIME, measure) }
}

/// The tail of T4's small calls, in milliseconds.
const fn small_tail(id: Name, statement: Name, (of, whole): (Name, f64)) -> Claim {
    slow(id, statement, Given(100.0), TIME, part("t4", 9.0, SMALL_P999, of, whole * 1e3))
}

pub(super) const CELLS: &[Claim] = &[
    rate("T1g1a", "Cubic, 1 flow: rate, of 496 Mb/s", "t1-one", 1.0, ("cubic", 496.0)),
    rate("T1g2a", "Cubic, 2 flows: rate, of 856 Mb/s", "t1", 2.0, ("cubic", 856.0)),
    rate("T1g5a", "Cubic, 5 flows: rate, of 935 Mb/s", "t1", 5.0, ("cubic", 935.0)),
    rate("T1g9a", "Cubic, 9 flows: rate, of 999 Mb/s", "t1", 9.0, ("cubic", 999.0)),
    tail("T1h1a", "Cubic, 1 flow: p99.9 of 1 MiB calls, of 250 ms", "t1-one", 1.0, ("cubic", 250.0)),
    tail("T1h2a", "Cubic, 2 flows: p99.9 of 1 MiB calls, of 260 ms", "t1", 2.0, ("cubic", 260.0)),
    tail("T1h5a", "Cubic, 5 flows: p99.9 of 1 MiB calls, of 465 ms", "t1", 5.0, ("cubic", 465.0)),
    tail("T1h9a", "Cubic, 9 flows: p99.9 of 1 MiB calls, of 600 ms", "t1", 9.0, ("cubic", 600.0)),
    rate("T1g1b", "Cubic, 20 ms probe timer, 1 flow: rate, of 794 Mb/s", "t1-one", 1.0, ("cubic-fast", 794.0)),
    rate("T1g2b", "Cubic, 20 ms probe timer, 2 flows: rate, of 922 Mb/s", "t1", 2.0, ("cubic-fast", 922.0)),
    rate("T1g5b", "Cubic, 20 ms probe timer, 5 flows: rate, of 989 Mb/s", "t1", 5.0, ("cubic-fast", 989.0)),
    rate("T1g9b", "Cubic, 20 ms probe timer, 9 flows: rate, of 1006 Mb/s", "t1", 9.0, ("cubic-fast", 1006.0)),
    tail(
        "T1h1b",
        "Cubic, 20 ms probe timer, 1 flow: p99.9 of 1 MiB calls, of 84 ms",
        "t1-one",
        1.0,
        ("cubic-fast", 84.0),
    ),
    tail("T1h2b", "Cubic, 20 ms probe timer, 2 flows: p99.9 of 1 MiB calls, of 44 ms", "t1", 2.0, ("cubic-fast", 44.0)),
    tail("T1h5b", "Cubic, 20 ms probe timer, 5 flows: p99.9 of 1 MiB calls, of 92 ms", "t1", 5.0, ("cubic-fast", 92.0)),
    tail(
        "T1h9b",
        "Cubic, 20 ms probe timer, 9 flows: p99.9 of 1 MiB calls, of 345 ms",
        "t1",
        9.0,
        ("cubic-fast", 345.0),
    ),
    rate("T1g1c", "DCTCP, 1 flow: rate, of 953 Mb/s", "t1-one", 1.0, ("dctcp", 953.0)),
    rate("T1g2c", "DCTCP, 2 flows: rate, of 962 Mb/s", "t1", 2.0, ("dctcp", 962.0)),
    rate("T1g5c", "DCTCP, 5 flows: rate, of 1003 Mb/s", "t1", 5.0, ("dctcp", 1003.0)),
    rate("T1g9c", "DCTCP, 9 flows: rate, of 1029 Mb/s", "t1", 9.0, ("dctcp", 1029.0)),
    tail("T1h1c", "DCTCP, 1 flow: p99.9 of 1 MiB calls, of 9 ms", "t1-one", 1.0, ("dctcp", 9.0)),
    tail("T1h2c", "DCTCP, 2 flows: p99.9 of 1 MiB calls, of 22 ms", "t1", 2.0, ("dctcp", 22.0)),
    tail("T1h5c", "DCTCP, 5 flows: p99.9 of 1 MiB calls, of 52 ms", "t1", 5.0, ("dctcp", 52.0)),
    tail("T1h9c", "DCTCP, 9 flows: p99.9 of 1 MiB calls, of 308 ms", "t1", 9.0, ("dctcp", 308.0)),
    rate("T1g1d", "DCTCP, 20 ms probe timer, 1 flow: rate, of 953 Mb/s", "t1-one", 1.0, ("dctcp-fast", 953.0)),
    rate("T1g2d", "DCTCP, 20 ms probe timer, 2 flows: rate, of 962 Mb/s", "t1", 2.0, ("dctcp-fast", 962.0)),
    rate("T1g5d", "DCTCP, 20 ms probe timer, 5 flows: rate, of 1004 Mb/s", "t1", 5.0, ("dctcp-fast", 1004.0)),
    rate("T1g9d", "DCTCP, 20 ms probe timer, 9 flows: rate, of 1020 Mb/s", "t1", 9.0, ("dctcp-fast", 1020.0)),
    tail(
        "T1h1d",
        "DCTCP, 20 ms probe timer, 1 flow: p99.9 of 1 MiB calls, of 9 ms",
        "t1-one",
        1.0,
        ("dctcp-fast", 9.0),
    ),
    tail("T1h2d", "DCTCP, 20 ms probe timer, 2 flows: p99.9 of 1 MiB calls, of 21 ms", "t1", 2.0, ("dctcp-fast", 21.0)),
    tail("T1h5d", "DCTCP, 20 ms probe timer, 5 flows: p99.9 of 1 MiB calls, of 48 ms", "t1", 5.0, ("dctcp-fast", 48.0)),
    tail("T1h9d", "DCTCP, 20 ms probe timer, 9 flows: p99.9 of 1 MiB calls, of 78 ms", "t1", 9.0, ("dctcp-fast", 78.0)),
    rate("T4i1a", "5 Gb/s, 1 flow, HTB, Cubic: rate, of 4.5 Gb/s", "t4-one", 1.0, ("htb", 4500.0)),
    rate("T4i9a", "5 Gb/s, 9 flows, HTB, Cubic: rate, of 4.8 Gb/s", "t4", 9.0, ("htb", 4800.0)),
    tail("T4j1a", "5 Gb/s, 1 flow, HTB, Cubic: p99.9 of 1 MiB calls, of 2 ms", "t4-one", 1.0, ("htb", 2.0)),
    tail("T4j9a", "5 Gb/s, 9 flows, HTB, Cubic: p99.9 of 1 MiB calls, of 18 ms", "t4", 9.0, ("htb", 18.0)),
    small("T4ka", "5 Gb/s, 9 flows, HTB, Cubic: rate of 10 KiB calls, of 35 Mb/s", ("htb", 35.0)),
    small_tail("T4la", "5 Gb/s, 9 flows, HTB, Cubic: p99.9 of 10 KiB calls, of 3.7 ms", ("htb", 3.7)),
    rate("T4i1b", "5 Gb/s, 1 flow, NRM, Cubic: rate, of 4.2 Gb/s", "t4-one", 1.0, ("cubic", 4200.0)),
    rate("T4i9b", "5 Gb/s, 9 flows, NRM, Cubic: rate, of 4.7 Gb/s", "t4", 9.0, ("cubic", 4700.0)),
    tail("T4j1b", "5 Gb/s, 1 flow, NRM, Cubic: p99.9 of 1 MiB calls, of 6.5 ms", "t4-one", 1.0, ("cubic", 6.5)),
    tail("T4j9b", "5 Gb/s, 9 flows, NRM, Cubic: p99.9 of 1 MiB calls, of 113 ms", "t4", 9.0, ("cubic", 113.0)),
    small("T4kb", "5 Gb/s, 9 flows, NRM, Cubic: rate of 10 KiB calls, of 243 Mb/s", ("cubic", 243.0)),
    small_tail("T4lb", "5 Gb/s, 9 flows, NRM, Cubic: p99.9 of 10 KiB calls, of 0.8 ms", ("cubic", 0.8)),
    rate("T4i1c", "5 Gb/s, 1 flow, NRM, Cubic with ECN: rate, of 4.4 Gb/s", "t4-one", 1.0, ("cubic-ecn", 4400.0)),
    rate("T4i9c", "5 Gb/s, 9 flows, NRM, Cubic with ECN: rate, of 4.2 Gb/s", "t4", 9.0, ("cubic-ecn", 4200.0)),
    tail(
        "T4j1c",
        "5 Gb/s, 1 flow, NRM, Cubic with ECN: p99.9 of 1 MiB calls, of 4.7 ms",
        "t4-one",
        1.0,
        ("cubic-ecn", 4.7),
    ),
    tail(
        "T4j9c",
        "5 Gb/s, 9 flows, NRM, Cubic with ECN: p99.9 of 1 MiB calls, of 227 ms",
        "t4",
        9.0,
        ("cubic-ecn", 227.0),
    ),
    small("T4kc", "5 Gb/s, 9 flows, NRM, Cubic with ECN: rate of 10 KiB calls, of 196 Mb/s", ("cubic-ecn", 196.0)),
    small_tail("T4lc", "5 Gb/s, 9 flows, NRM, Cubic with ECN: p99.9 of 10 KiB calls, of 1.1 ms", ("cubic-ecn", 1.1)),
    rate("T4i1d", "5 Gb/s, 1 flow, NRM, DCTCP: rate, of 4.6 Gb/s", "t4-one", 1.0, ("dctcp", 4600.0)),
    rate("T4i9d", "5 Gb/s, 9 flows, NRM, DCTCP: rate, of 4.9 Gb/s", "t4", 9.0, ("dctcp", 4900.0)),
    tail("T4j1d", "5 Gb/s, 1 flow, NRM, DCTCP: p99.9 of 1 MiB calls, of 4 ms", "t4-one", 1.0, ("dctcp", 4.0)),
    tail("T4j9d", "5 Gb/s, 9 flows, NRM, DCTCP: p99.9 of 1 MiB calls, of 27 ms", "t4", 9.0, ("dctcp", 27.0)),
    small("T4kd", "5 Gb/s, 9 flows, NRM, DCTCP: rate of 10 KiB calls, of 295 Mb/s", ("dctcp", 295.0)),
    small_tail("T4ld", "5 Gb/s, 9 flows, NRM, DCTCP: p99.9 of 10 KiB calls, of 0.8 ms", ("dctcp", 0.8)),
    median("T5j1", "On arrival, 1 Gb/s, 1 flow: p50 of 1 MiB calls, of 9 ms", 1.0, LARGE_P50, ("1g", 9.0)),
    median("T5j2", "On arrival, 1 Gb/s, 2 flows: p50 of 1 MiB calls, of 13 ms", 2.0, LARGE_P50, ("1g", 13.0)),
    median("T5j5", "On arrival, 1 Gb/s, 5 flows: p50 of 1 MiB calls, of 43 ms", 5.0, LARGE_P50, ("1g", 43.0)),
    median("T5j9", "On arrival, 1 Gb/s, 9 flows: p50 of 1 MiB calls, of 54 ms", 9.0, LARGE_P50, ("1g", 54.0)),
    median("T5l2", "On arrival, 1 Gb/s, 2 flows: p50 of 10 KiB calls, of 0.2 ms", 2.0, SMALL_P50, ("1g", 0.2)),
    median("T5l5", "On arrival, 1 Gb/s, 5 flows: p50 of 10 KiB calls, of 0.5 ms", 5.0, SMALL_P50, ("1g", 0.5)),
    median("T5l9", "On arrival, 1 Gb/s, 9 flows: p50 of 10 KiB calls, of 0.8 ms", 9.0, SMALL_P50, ("1g", 0.8)),
    median("T5k1", "On arrival, 5 Gb/s, 1 flow: p50 of 1 MiB calls, of 1.7 ms", 1.0, LARGE_P50, ("5g", 1.7)),
    median("T5k2", "On arrival, 5 Gb/s, 2 flows: p50 of 1 MiB calls, of 1.9 ms", 2.0, LARGE_P50, ("5g", 1.9)),
    median("T5k5", "On arrival, 5 Gb/s, 5 flows: p50 of 1 MiB calls, of 7.7 ms", 5.0, LARGE_P50, ("5g", 7.7)),
    median("T5k9", "On arrival, 5 Gb/s, 9 flows: p50 of 1 MiB calls, of 15.5 ms", 9.0, LARGE_P50, ("5g", 15.5)),
    median("T5m2", "On arrival, 5 Gb/s, 2 flows: p50 of 10 KiB calls, of 0.2 ms", 2.0, SMALL_P50, ("5g", 0.2)),
    median("T5m5", "On arrival, 5 Gb/s, 5 flows: p50 of 10 KiB calls, of 0.2 ms", 5.0, SMALL_P50, ("5g", 0.2)),
    median("T5m9", "On arrival, 5 Gb/s, 9 flows: p50 of 10 KiB calls, of 0.2 ms", 9.0, SMALL_P50, ("5g", 0.2)),
];
