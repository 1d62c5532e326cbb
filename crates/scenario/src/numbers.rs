//! Names of results: what `millpond explain` prints of a number in a summary, a table or a
//! comparison, and the page that defines it.

use crate::shows;

/// A result with the names that files and `shows` give it.
struct Number {
    names: &'static [&'static str],
    meaning: &'static str,
    page: &'static str,
}

const fn number(
    names: &'static [&'static str],
    meaning: &'static str,
    page: &'static str,
) -> Number {
    Number { names, meaning, page }
}

const NUMBERS: &[Number] = &[
    number(
        &["fct_us", "fct"],
        "flow completion time in microseconds, of a class's complete flows",
        "docs/results.md",
    ),
    number(
        &["qct_us", "qct", "qct_by_class_us"],
        "query completion time in microseconds, of the complete queries",
        "docs/results.md",
    ),
    number(
        &["slowdown", "slowdown_by_size", "slowdown_by_fixed_size"],
        "FCT over that of the same flow alone in the empty network",
        "docs/results.md",
    ),
    number(
        &["latency_us", "latency"],
        "microseconds from a call's request to its response",
        "docs/results-json.md",
    ),
    number(
        &["rtt_us", "rtt"],
        "round-trip times of a probe in microseconds",
        "docs/results-json.md",
    ),
    number(
        &["timers_us"],
        "round-trip times and retransmission timeouts at the flows' end, in microseconds",
        "docs/results-json.md",
    ),
    number(
        &["goodput", "goodput_gbps", "goodput_over_time"],
        "application bytes delivered over the measured time, in 10^9 bits a second",
        "docs/results.md",
    ),
    number(
        &["fairness_jain"],
        "Jain's index over the goodput of pairs of hosts",
        "docs/results.md",
    ),
    number(&["flows"], "counted flows: started, complete, and their bytes", "docs/results-json.md"),
    number(
        &["packets"],
        "packets of the whole run: sent, dropped by reason, marked, sent again",
        "docs/results-counters.md",
    ),
    number(
        &["timeouts", "pause_frames", "overlay_pauses"],
        "a count over the whole run",
        "docs/results-json.md",
    ),
    number(&["mechanisms"], "a counter of one mechanism", "docs/results-counters.md"),
    number(&["limits"], "a number of one limit over all of its hosts", "docs/results-json.md"),
    number(
        &["collectives", "busbw_gbytes", "algbw_gbytes", "exposed_us", "skew_us", "iteration_us"],
        "a number of a job's rounds",
        "docs/ai-traffic.md",
    ),
    number(
        &["collective"],
        "microseconds of a job's rounds, from the first message to the last rank's end",
        "docs/ai-traffic.md",
    ),
    number(
        &["iteration"],
        "microseconds of a job's rounds, from the first computation to the last rank's end",
        "docs/ai-traffic.md",
    ),
    number(
        &["exposed"],
        "microseconds of an iteration less the longest computation of a rank",
        "docs/ai-traffic.md",
    ),
    number(
        &["busbw"],
        "bus bandwidth of a job's rounds in 10^9 bytes a second",
        "docs/ai-traffic.md",
    ),
    number(&["ratio"], "time of a job's rounds over that without contention", "docs/ai-traffic.md"),
    number(
        &["unfinished", "completed_fraction", "mean_restricted", "at_least", "at_most"],
        "a number of the flows that were open at the end, or a bound that they set",
        "docs/concepts/censoring.md",
    ),
    number(
        &["difference", "difference_low", "difference_high", "relative", "low", "high"],
        "a column of a comparison: the difference to the first variant, seed by seed, and its 95 % \
         interval",
        "docs/guides/seeds.md",
    ),
    number(&["run"], "cost of the run: wall-clock time, events, memory", "docs/results-json.md"),
    number(&["audit"], "whether packets and bytes are conserved", "docs/results-json.md"),
];

/// Statistics that end the name of a distribution: "fct_us.mice.p99".
const STATISTICS: [&str; 10] =
    ["count", "mean", "p50", "p90", "p95", "p99", "p999", "max", "unfinished", "completed"];

/// All names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NUMBERS.iter().flat_map(|number| number.names.iter().copied())
}

/// Returns the sentence of a result: "fct_us.mice.p99", or as `shows` names it, "web.fct.p95".
pub(crate) fn explain(name: &str) -> Option<String> {
    let lower = name.trim().to_lowercase().replace('-', "_");
    let parts: Vec<&str> = lower.split('.').collect();
    let of = |part: &str| NUMBERS.iter().find(|number| number.names.contains(&part));
    let is_statistic = parts.last().is_some_and(|last| STATISTICS.contains(last));
    // A class can have the name of a number: in CLASS.METRIC.STAT the metric decides.
    let metric = parts.iter().rev().nth(1).filter(|part| is_statistic && shows::is_metric(part));
    let own = if is_statistic { &parts[..] } else { &parts[..1] };
    let number = metric.into_iter().chain(own).find_map(|part| of(part))?;
    Some(format!("{name}: {} ({})\n\n", number.meaning, number.page))
}
