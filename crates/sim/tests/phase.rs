//! Phase effects: equal senders share a link, whatever their packets' phases, and who gets nothing
//! is counted.

use crate::common::{plan, simulate};
use millpond_results::jain;
use std::fmt::Write;

/// The bytes that one sender has to send: more than it can in the time.
const BULK: u64 = 2_000_000_000;

fn scenario(topology: &str, duration: &str, rows: &str) -> String {
    format!(
        "name = \"phase\"\nduration = \"{duration}\"\n[topology]\n{topology}\n[[traffic]]\nname = \
         \"bulk\"\nkind = \"flows\"\nrows = [{rows}]\n"
    )
}

/// `flows` pairs over one link; all begin at time zero.
fn dumbbell(flows: u32, duration: &str) -> String {
    let mut rows = String::new();
    (0..flows).for_each(|i| write!(rows, "[\"0us\", {i}, {}, {BULK}],", flows + i).unwrap());
    scenario(&format!("kind = \"dumbbell\"\nhosts-per-side = {flows}"), duration, &rows)
}

/// `flows` senders into one port.
fn into_one_port(flows: u32, duration: &str) -> String {
    let mut rows = String::new();
    (1..=flows).for_each(|i| write!(rows, "[\"0us\", {i}, 0, {BULK}],").unwrap());
    scenario(&format!("kind = \"single-switch\"\nhosts = {}", flows + 1), duration, &rows)
}

/// The first sender has the port for itself and its NIC sends back to back, in step with the port,
/// when the second comes.
fn late_comer(duration: &str) -> String {
    let rows = format!("[\"0us\", 2, 0, {BULK}], [\"50ms\", 1, 0, {BULK}]");
    scenario("kind = \"single-switch\"\nhosts = 3", duration, &rows)
}

/// Jain's index of the pairs' goodput, and how many pairs there are.
fn fairness(text: &str, set: &[(&str, &str)]) -> (f64, usize) {
    let (outcome, _) = simulate(&plan(text, set), 1);
    let shares: Vec<f64> = outcome.pairs.values().map(|bytes| *bytes as f64).collect();
    (jain(&shares).expect("something arrives"), shares.len())
}

#[test]
fn equal_flows_share_a_link() {
    for transport in ["newreno", "cubic"] {
        for (name, text, flows) in [
            ("late comer", late_comer("1s"), 2),
            ("into one port", into_one_port(8, "1s"), 8),
            ("dumbbell", dumbbell(2, "1s"), 2),
            ("dumbbell", dumbbell(8, "1s"), 8),
            ("dumbbell", dumbbell(32, "1s"), 32),
        ] {
            let (index, pairs) = fairness(&text, &[("transport.kind", transport)]);
            assert_eq!(pairs, flows);
            assert!(index >= 0.9, "{transport}, {flows} flows, {name}: {index}");
        }
    }
}

/// Neither half of the cure is there for nothing: exact hosts are locked out, and without lots for
/// what arrives at one instant (no delay can be drawn here) so they would be.
#[test]
fn exact_hosts_lock_each_other_out() {
    let newreno = ("transport.kind", "newreno");
    for (text, flows) in
        [(late_comer("1s"), 2.0), (into_one_port(8, "200ms"), 8.0), (dumbbell(8, "200ms"), 8.0)]
    {
        let (index, _) = fairness(&text, &[newreno, ("host.jitter", "off")]);
        assert!(index < 1.3 / flows, "one of {flows} has nearly all: {index}");
    }
    let (index, _) = fairness(&into_one_port(8, "200ms"), &[newreno, ("host.jitter.packets", "0")]);
    assert!(index > 0.8, "{index}");
}

/// A pair counts that had something to send in the measured time; one that was done before does
/// not.
#[test]
fn who_gets_nothing_is_counted() {
    let starved = [("transport.kind", "newreno"), ("host.jitter", "off"), ("warm-up", "100ms")];
    let (index, pairs) = fairness(&into_one_port(8, "200ms"), &starved);
    assert_eq!(pairs, 8);
    assert!(index < 0.15, "{index}");

    let text = scenario(
        "kind = \"single-switch\"\nhosts = 4",
        "20ms",
        &format!("[\"0us\", 1, 0, 1460], [\"0us\", 2, 3, {BULK}]"),
    );
    assert_eq!(fairness(&text, &[("warm-up", "10ms")]), (1.0, 1));
    assert_eq!(fairness(&text, &[]).1, 2);
}
