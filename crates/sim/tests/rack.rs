//! RACK (RFC 8985 §6) in a network: an incast whose drops include retransmissions, and what else a
//! sender may have to do at the same time.

use crate::common::{assert_nothing_changes, plan, simulate};
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
    let (timeouts, _, _) = run(&[("transport.loss-detection", "dupack")]);
    let (racked, again, dropped) = run(&[("transport.loss-detection", "rack")]);
    assert!(timeouts >= 10, "{timeouts} timeouts by duplicate ACKs");
    assert!(10 * racked <= timeouts, "{racked} timeouts by RACK, {timeouts} by duplicate ACKs");
    let spurious = u64::from(again).abs_diff(dropped);
    assert!(100 * spurious <= dropped, "{again} sent again for {dropped} dropped");
}

/// A fifth of the packets of a link are lost, important ones too; queues overflow.
const LOSSY: &str = r#"
    duration = "3ms"
    [topology]
    kind = "leaf-spine"
    leaves = 3
    spines = 2
    hosts-per-leaf = 4
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "10Gbps", delay = "1us" }
    [switch]
    buffer = { kind = "per-port", size = "60KB" }
    [transport]
    kind = "cubic"
    loss-detection = "rack"
    min-rto = "300us"
    [[traffic]]
    kind = "incast"
    degree = 8
    response = "30KB"
    rate = 3000
    [[failure]]
    link = ["leaf0", "spine1"]
    at = "0us"
    loss = 0.2
"#;

#[test]
fn threads_and_partitions_change_nothing() {
    for set in [
        &[][..],
        &[("transport.tlp", "true"), ("transport.delayed-ack", "2")],
        &[("transport.pacing", "linux"), ("transport.tlp", "true")],
        &[("transport.kind", "swift"), ("switch.path.kind", "spray")],
        &[("transport.importance", "{ kind = \"tlt\" }")],
    ] {
        assert_nothing_changes(LOSSY, set, &[2, 4]);
    }
}

/// The most that TLT promises: no loss of unimportant packets costs a timeout. Its forced segments
/// are unknown to RACK.
#[test]
fn tlt_needs_no_timer_with_rack() {
    for (share, size) in [("0.1", "3MB"), ("0.5", "300KB"), ("1.0", "30KB")] {
        let text = LOSSY
            .replace("loss = 0.2", &format!("loss = {share}\nlosable = \"unimportant\""))
            .replace("\"60KB\"", "\"4MB\"")
            .replace("\"30KB\"", &format!("\"{size}\""))
            .replace("rate = 3000", "count = 4")
            .replace("min-rto = \"300us\"", "min-rto = \"20ms\"\ninitial-rto = \"20ms\"")
            .replace("duration = \"3ms\"", "duration = \"9s\"\nuntil = \"flows-complete\"");
        let text = text.replace("[[traffic]]", "importance = { kind = \"tlt\" }\n[[traffic]]");
        let (outcome, records) = simulate(&plan(&text, &[]), 1);
        assert!(records.flows.iter().all(|flow| flow.finish.is_some()));
        assert!(outcome.hosts.retransmitted > 0, "{share}");
        assert_eq!(outcome.hosts.timeouts, 0, "{share}");
    }
}

/// A refused segment was never sent: RACK must not wait for it, nor take it for lost.
#[test]
fn a_refusal_by_the_own_host_is_no_loss() {
    let text = r#"
        duration = "500ms"
        [topology]
        kind = "single-switch"
        hosts = 2
        host-link = { rate = "10Gbps", delay = "20us" }
        [switch]
        buffer = { kind = "per-port", size = "4MB" }
        [transport]
        kind = "cubic"
        loss-detection = "rack"
        probe-timer = "20ms"
        [[limit]]
        name = "batch"
        rate = "1Gbps"
        hosts = 0
        bypass = 0
        cwr = false
        [[traffic]]
        kind = "rpc"
        pairs = ["0-1"]
        connections = 8
        request = "1MB"
        response = 1
    "#;
    let (outcome, _) = simulate(&plan(text, &[]), 1);
    assert_eq!((outcome.hosts.retransmitted, outcome.hosts.timeouts), (0, 0));
    assert!(outcome.hosts.completed > 20);
}
