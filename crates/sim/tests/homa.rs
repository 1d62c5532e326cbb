//! Homa in whole networks: a message alone, the order of service, overcommitment, losses, slowdown,
//! and the same bytes for any threads and partitions.

mod common;

use common::{assert_nothing_changes, exact, fcts, plan, simulate};
use millpond_core::packet::{Body, Kind};
use millpond_core::{FlowId, Time};
use millpond_results::FlowRecord;
use proptest::prelude::*;

/// Hosts behind one switch, which serves by priority.
const STAR: &str = r#"
    name = "homa-star"
    duration = "20ms"
    [topology]
    kind = "single-switch"
    hosts = 8
    host-link = { rate = "10Gbps", delay = "500ns" }
    [switch]
    buffer = { kind = "per-port", size = "1MB" }
    queue = { kind = "strict-priority" }
    [transport]
    kind = "homa"
    [[traffic]]
    name = "m"
    kind = "flows"
    rows = [["0us", 0, 1, 1460]]
"#;

fn rows(list: &[(&str, u32, u32, u64)]) -> String {
    let row = |(at, src, dst, bytes): &(&str, u32, u32, u64)| format!("[\"{at}\", {src}, {dst}, {bytes}]");
    format!("[{}]", list.iter().map(row).collect::<Vec<_>>().join(", "))
}

/// A message alone takes the time that is its lower bound, granted or not, to the picosecond: the
/// grants are always ahead of the link.
#[test]
fn a_message_alone_takes_the_ideal_time() {
    for bytes in [1, 1_459, 1_460, 1_461, 10_000, 14_600, 14_601, 100_000, 1_000_000] {
        let rows = rows(&[("3us", 0, 1, bytes)]);
        let (outcome, records) = simulate(&exact(STAR, &[("traffic.m.rows", &rows)]), 1);
        let flow = &records.flows[0];
        assert_eq!(flow.fct(), Some(flow.ideal), "{bytes}");
        assert_eq!((outcome.hosts.retransmitted, outcome.hosts.timeouts), (0, 0));
    }
    // By hand: 10 packets of 1.2 us on the first link, one more on the second; 1 us of delays.
    let plan = exact(STAR, &[("traffic.m.rows", r#"[["0us", 0, 1, 14600]]"#)]);
    assert_eq!(simulate(&plan, 1).1.flows[0].fct(), Some(Time::from_ns(11 * 1_200 + 1_000)));
}
