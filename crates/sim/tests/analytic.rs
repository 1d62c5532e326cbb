//! Cases that can be computed by hand, exact to the picosecond.

use crate::common::{exact as plan, simulate};
use millpond_core::Time;

/// Hosts on one switch: 10 Gb/s, 1 µs a link; 1,500-byte packets take 1.2 µs to send, 40-byte
/// packets 32 ns.
fn one_switch(hosts: u32, traffic: &str, transport: &str) -> String {
    format!(
        r#"
        name = "analytic"
        duration = "50ms"
        mice = "100KB"
        elephants = "1MB"
        [topology]
        kind = "single-switch"
        hosts = {hosts}
        host-link = {{ rate = "10Gbps", delay = "1us" }}
        [host]
        mtu = 1500
        segment-offload = "off"
        [switch]
        buffer = {{ kind = "per-port", size = "off", packets = 4 }}
        marking = {{ kind = "none" }}
        [transport]
        kind = "newreno"
        handshake = false
        initial-rto = "1s"
        {transport}
        {traffic}
        "#
    )
}

fn one_flow(bytes: u64) -> String {
    format!("[[traffic]]\nname = \"flow\"\nkind = \"flows\"\nrows = [[\"0us\", 0, 1, {bytes}]]\n")
}

#[test]
fn one_packet() {
    let text = one_switch(2, &one_flow(1460), "");
    let (_, records) = simulate(&plan(&text, &[]), 1);
    // Twice (send 1.2 µs, travel 1 µs).
    assert_eq!(records.flows[0].fct(), Some(Time::from_ns(4_400)));
    // The sender knows after the acknowledgement's two hops of 32 ns + 1 µs.
    assert_eq!(records.flows[0].fct_sender(), Some(Time::from_ns(4_400 + 2_064)));
}

#[test]
fn one_packet_after_a_handshake() {
    let text = one_switch(2, &one_flow(1460), "");
    let (_, records) = simulate(&plan(&text, &[("transport.handshake", "true")]), 1);
    // SYN and SYN-ACK: four hops of 32 ns + 1 µs.
    assert_eq!(records.flows[0].fct(), Some(Time::from_ns(4_128 + 4_400)));
}

#[test]
fn one_window() {
    let text = one_switch(2, &one_flow(14_600), "initial-window = 10");
    for offload in ["off", "64KiB"] {
        let (_, records) = simulate(&plan(&text, &[("host.segment-offload", offload)]), 1);
        // The NIC sends ten packets one after the other; the switch forwards each as it comes.
        assert_eq!(records.flows[0].fct(), Some(Time::from_ns(10 * 1_200 + 1_000 + 1_200 + 1_000)));
    }
}

/// Two windows: the first acknowledgement releases two more segments while the window's tail is
/// still being sent.
#[test]
fn slow_start_keeps_a_short_path_busy() {
    let text = one_switch(2, &one_flow(1460 * 30), "initial-window = 10");
    let (_, records) = simulate(&plan(&text, &[("switch.buffer.packets", "1000")]), 1);
    // The first acknowledgement is back after 6.464 µs, before ten packets have left (12 µs): the
    // link never idles.
    assert_eq!(records.flows[0].fct(), Some(Time::from_ns(30 * 1_200 + 1_000 + 1_200 + 1_000)));
}

/// Sixteen hosts send one packet each to the same host at once; four may wait and one is on the
/// wire.
#[test]
fn incast_into_drop_tail() {
    let traffic = r#"
        [[traffic]]
        name = "incast"
        kind = "incast"
        degree = 16
        response = 1460
        count = 1
        receiver = 0
        request = "none"
        start = "1us"
        "#;
    let (outcome, records) = simulate(&plan(&one_switch(17, traffic, ""), &[]), 1);
    let mut fct: Vec<u64> =
        records.flows.iter().filter_map(|f| f.fct()).map(|t| t.as_ps()).collect();
    fct.sort();
    let expected: Vec<u64> = (0..5).map(|i| 4_400_000 + i * 1_200_000).collect();
    assert_eq!(fct, expected);
    let dropped = outcome.audit.dropped_total().packets;
    assert_eq!(dropped, 11, "16 arrive at one instant: 1 is sent, 4 wait, 11 find the queue full");
    assert_eq!(records.queries.len(), 1);
    assert_eq!((records.queries[0].completed, records.queries[0].finish), (5, None));
}

/// The eleven that were dropped come again when their timer fires: 1 s for a connection without a
/// sample (RFC 6298 §2.1).
#[test]
fn a_lone_packet_that_is_lost_waits_for_the_initial_timeout() {
    let traffic = r#"
        [[traffic]]
        name = "incast"
        kind = "incast"
        degree = 6
        response = 1460
        count = 1
        receiver = 0
        request = "none"
        "#;
    let text = one_switch(7, traffic, "");
    let (_, records) = simulate(&plan(&text, &[("duration", "2s")]), 1);
    let last = records.queries[0].qct().expect("all are delivered in the end");
    assert_eq!(last, Time::from_s(1) + Time::from_ns(4_400));
    assert_eq!(records.flows.iter().map(|f| f.timeouts).sum::<u32>(), 1);
}

/// Two bulk flows fill a queue; a packet of higher priority passes it.
#[test]
fn strict_priority_lets_the_urgent_pass() {
    let traffic = r#"
        [[traffic]]
        name = "bulk"
        kind = "flows"
        rows = [["0us", 0, 3, 14600], ["0us", 1, 3, 14600]]
        [[traffic]]
        name = "urgent"
        kind = "flows"
        rows = [["5us", 2, 3, 1460]]
        priority = 7
        "#;
    let text = one_switch(4, traffic, "initial-window = 10");
    let fct = |queue| {
        let plan = plan(&text, &[("switch.buffer.packets", "100"), ("switch.queue.kind", queue)]);
        let (_, records) = simulate(&plan, 1);
        records.flows.iter().find(|f| f.class == 1).and_then(|f| f.fct())
    };
    // Two bulk packets arrive every 1.2 µs from 2.2 µs on, one leaves. At 7.2 µs, when the urgent
    // one arrives, ten have come, the fifth to leave is on the wire until 8.2 µs and five wait.
    assert_eq!(fct("fifo"), Some(Time::from_ns(8_200 + 5 * 1_200 + 1_200 + 1_000 - 5_000)));
    assert_eq!(fct("strict-priority"), Some(Time::from_ns(8_200 + 1_200 + 1_000 - 5_000)));
}
