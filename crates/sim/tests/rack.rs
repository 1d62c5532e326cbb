//! RACK (RFC 8985 §6) in a network: an incast whose drops include retransmissions.

mod common;

use common::{plan, simulate};
use millpond_core::counters::DropReason;

/// Twenty rounds of 16 flows of 32 KB into a drop-tail port of 256 KB.
const INCAST: &str = r#"
    name = "incast"
    duration = "100s"
    until = "flows-complete"
    [topology]
    kind = "single-switch"
    hosts = 17
    host-link = { rate = "100Mbps", delay = "100us" }
    [switch]
    buffer = { kind = "per-port", size = "256KB" }
    marking = { kind = "none" }
    [transport]
    kind = "cubic"
    min-rto = "1s"
    initial-rto = "1s"
    initial-window = 10
    [[traffic]]
    kind = "incast"
    degree = 16
    response = "32KB"
    receiver = 0
    period = "4s"
    count = 20
"#;

/// Timeouts, retransmitted segments and dropped packets.
fn run(set: &[(&str, &str)]) -> (u32, u32, u64) {
    let (outcome, records) = simulate(&plan(INCAST, set), 1);
    assert_eq!(records.flows.len(), 320);
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()));
    let dropped = DropReason::ALL.iter().map(|&why| outcome.audit.dropped[why as usize].packets);
    (
        records.flows.iter().map(|flow| flow.timeouts).sum(),
        records.flows.iter().map(|flow| flow.retransmitted).sum(),
        dropped.sum(),
    )
}

#[test]
fn rack_saves_nine_of_ten_timeouts_of_an_incast() {
    let (timeouts, again, dropped) = run(&[("transport.loss-detection", "dupack")]);
    eprintln!("dupack: {timeouts} timeouts, {again} again, {dropped} dropped");
    let (racked, racked_again, racked_dropped) = run(&[("transport.loss-detection", "rack")]);
    eprintln!("rack: {racked} timeouts, {racked_again} again, {racked_dropped} dropped");
    assert!(timeouts >= 10, "{timeouts} timeouts by duplicate ACKs");
    assert!(10 * racked <= timeouts, "{racked} timeouts by RACK, {timeouts} by duplicate ACKs");
}
