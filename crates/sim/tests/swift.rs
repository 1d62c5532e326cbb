//! Swift in the network: what an incast does to one port's queue, and the switches that its target
//! counts.

use crate::common::{Records, plan, simulate};
use millpond_core::Time;
use millpond_sim::Outcome;

const FLOWS: u32 = 100;

/// A hundred servers answer one host at once, each from a window of one segment, through a port
/// that holds 500 KB: they start in step, so their second round is two segments each, which is 300
/// KB before any delay has spoken against it.
fn incast(kind: &str, set: &[(&str, &str)]) -> (Outcome, Records) {
    let text = format!(
        r#"
        name = "swift"
        duration = "60ms"
        [topology]
        kind = "single-switch"
        hosts = 101
        host-link = {{ rate = "10Gbps", delay = "1us" }}
        [switch]
        buffer = {{ kind = "per-port", size = "500KB" }}
        [transport]
        kind = "{kind}"
        initial-window = 1
        handshake = false
        [capture]
        queues = "50us"
        [[traffic]]
        kind = "incast"
        degree = {FLOWS}
        response = "400KB"
        request = "none"
        receiver = 0
        count = 1
        period = "100ms"
        "#
    );
    simulate(&plan(&text, set), 1)
}

/// The queue at the receiver's port from 5 ms on, while all flows are at it: (least, mean, most),
/// in bytes.
fn queue(records: &Records) -> (u64, u64, u64) {
    let settled = Time::from_ms(5)..Time::from_ms(25);
    let bytes: Vec<u64> = records
        .queues
        .iter()
        .filter(|q| q.port == 0 && settled.contains(&q.at))
        .map(|q| q.bytes)
        .collect();
    assert!(bytes.len() > 300, "{}", bytes.len());
    let sum: u64 = bytes.iter().sum();
    (
        bytes.iter().copied().min().unwrap(),
        sum / bytes.len() as u64,
        bytes.iter().copied().max().unwrap(),
    )
}

/// The delay d at which a hundred windows fill the port is where their target is: 100 w = 10 Gb/s ·
/// d, with d = 60 + 30 + 97.97 / √w − 9.80 us and segments of 1,500 bytes; so w = 1.42 and d = 171
/// us, of which some 166 us or 207 KB are queue.
#[test]
fn a_hundred_flows_keep_the_queue_near_the_target_and_lose_nothing_where_newreno_does() {
    let (outcome, records) = incast("swift", &[]);
    let (least, mean, most) = queue(&records);
    assert_eq!(
        (outcome.audit.dropped.iter().map(|d| d.packets).sum::<u64>(), outcome.hosts.timeouts),
        (0, 0)
    );
    assert!((160_000..230_000).contains(&mean), "{least} {mean} {most}");
    assert!(least > 0, "the link is never idle");
    assert_eq!(records.queries[0].completed, FLOWS);
    let (outcome, _) = incast("newreno", &[]);
    assert!(outcome.audit.dropped.iter().map(|d| d.packets).sum::<u64>() > 100);
}

/// Without flow scaling the target is 90 us, which a hundred segments of 1.2 us each exceed: the
/// windows go below one.
#[test]
fn windows_below_one_keep_a_target_that_a_segment_of_each_flow_exceeds() {
    let (outcome, records) = incast("swift", &[("transport.swift-fs-range", "0us")]);
    let (least, mean, most) = queue(&records);
    assert_eq!(
        (outcome.audit.dropped.iter().map(|d| d.packets).sum::<u64>(), outcome.hosts.timeouts),
        (0, 0)
    );
    assert!((85_000..135_000).contains(&mean), "{least} {mean} {most}");
}

/// Each switch on the way of the data adds to the target. At 1 Gb/s a round trip at a target of 100
/// us a switch is 12.5 KB through one and 25 KB through two, less what is on the wire; a window of
/// 43 segments would be 64 KB.
#[test]
fn the_target_counts_the_switches_that_the_data_crossed() {
    let queue = |topology: &str, rows: &str| {
        let text = format!(
            r#"
            name = "hops"
            duration = "30ms"
            {topology}
            [switch]
            buffer = {{ kind = "per-port", size = "10MB" }}
            [transport]
            kind = "swift"
            initial-window = 1
            handshake = false
            swift-base-target = "0us"
            swift-hop-target = "100us"
            swift-fs-range = "0us"
            [capture]
            queues = "50us"
            [[traffic]]
            kind = "flows"
            rows = [{rows}]
            "#
        );
        let (_, records) = simulate(&plan(&text, &[]), 1);
        let late = records.queues.iter().filter(|q| q.at > Time::from_ms(10)).map(|q| q.bytes);
        late.max().expect("something waits")
    };
    let one = queue(
        "[topology]\nkind = \"single-switch\"\nhosts = 3\nhost-link = { rate = \"1Gbps\", delay = \
         \"1us\" }",
        "[\"0us\", 0, 2, 100_000_000], [\"0us\", 1, 2, 100_000_000]",
    );
    let two = queue(
        "[topology]\nkind = \"dumbbell\"\nhosts-per-side = 1\nhost-link = { rate = \"10Gbps\", \
         delay = \"1us\" }\nbottleneck = { rate = \"1Gbps\", delay = \"1us\" }",
        "[\"0us\", 0, 1, 100_000_000]",
    );
    assert!((8_000..15_000).contains(&one) && (20_000..27_000).contains(&two), "{one} {two}");
}
