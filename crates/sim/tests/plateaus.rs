//! The steps on which the published tails of Vertigo and Canary stand: the estimator of the
//! retransmission timeout makes them, and no switch.
//!
//! With INET's estimator a query that loses the tail of a young connection ends just above
//! (7/8)^n s, where n is the connection's number of round-trip samples; with RFC 6298's it ends at
//! the floor.

use crate::common::simulate;
use millpond_scenario::Scenario;

const TEXT: &str = include_str!("../../../papers/canary/plateaus.toml");

/// The times of all queries, in milliseconds and ascending.
fn times(estimator: &str) -> Vec<f64> {
    let scenario = Scenario::parse("plateaus.toml", TEXT).unwrap_or_else(|e| panic!("{e}"));
    let plan = scenario.plan(Some(estimator), &[], Some(1)).unwrap_or_else(|e| panic!("{e}"));
    let (_, records) = simulate(&plan, 1);
    let qct =
        |query: &millpond_results::QueryRecord| query.qct().expect("all complete").as_s_f64() * 1e3;
    let mut times: Vec<f64> = records.queries.iter().map(qct).collect();
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn inets_estimator_puts_every_query_on_the_plateau_of_seven_eighths() {
    let times = times("inet");
    assert_eq!(times.len(), 192);
    let (first, last) = (times[0], times[191]);
    assert!(first > 875.2 && last < 875.7, "{first} to {last} ms, not just above 875");
}

#[test]
fn rfc6298_leaves_no_plateau() {
    let times = times("rfc6298");
    assert_eq!(times.len(), 192);
    assert!(times[0] > 10.0 && times[191] < 12.0, "{} to {} ms", times[0], times[191]);
}
