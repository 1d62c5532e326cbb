//! Waits in a NIC: a short flow beside long ones of its host, by family.
//!
//! Nothing but the first link is full, so what a short flow takes beyond its time in the empty
//! network is its wait in its host's NIC. It comes at any phase of the long flows' packets.

use crate::common::{plan, simulate};

/// Full packets of 1500 bytes on links of 10 Gb/s, which take 1.2 us each; between the two sides is
/// room for all.
const NIC: &str = r#"
    name = "sharing"
    duration = "30ms"
    [topology]
    kind = "dumbbell"
    hosts-per-side = 10
    host-link = { rate = "10Gbps", delay = "1us" }
    bottleneck = { rate = "100Gbps", delay = "1us" }
    [host]
    jitter = "off"
    frame-overhead = 0
    [transport]
    kind = "dcqcn"
    [[traffic]]
    name = "flows"
    kind = "flows"
    rows = []
"#;
/// Microseconds that a full packet takes.
const PACKET: f64 = 1.2;
/// When the first short flow starts: the long ones have their share by then.
const FROM: u64 = 4_000_000;
/// Between two short flows, in nanoseconds.
const STEP: u64 = 44_917;
/// How much later the next of them starts, in nanoseconds: each begins the NIC's round anew, so
/// even distances would meet the same queue pairs.
const fn late(number: u64) -> u64 {
    number * number * 7_919 % 19_211
}
const SHORT: u32 = 380;

/// The mean wait of short flows of 100 bytes beside `long` others, in full packets.
fn wait(long: u32, set: &[(&str, &str)]) -> f64 {
    wait_in(NIC, long, set)
}

fn wait_in(text: &str, long: u32, set: &[(&str, &str)]) -> f64 {
    let mut rows: Vec<String> =
        (0..long).map(|i| format!(r#"["{i}us", 0, {}, 1000000000]"#, 10 + i)).collect();
    rows.extend((0..SHORT).map(|i| {
        format!(r#"["{}ns", 0, 19, 100]"#, FROM + u64::from(i) * STEP + late(u64::from(i)))
    }));
    let rows = format!("[{}]", rows.join(", "));
    let (_, records) =
        simulate(&plan(text, &[&[("traffic.flows.rows", &rows[..])], set].concat()), 1);
    let short = records.flows.iter().filter(|flow| flow.bytes == 100);
    let waits: Vec<f64> = short
        .map(|flow| (flow.fct().expect("it ends") - flow.ideal).as_us_f64() / PACKET)
        .collect();
    assert_eq!(waits.len(), SHORT as usize);
    waits.iter().sum::<f64>() / waits.len() as f64
}

/// A NIC asks its queue pairs in turn when it is free: a newcomer waits for what is being sent and,
/// in the mean, for half of the others. Source: HPCC's released simulator,
/// `RdmaEgressQueue::GetNextQindex`.
#[test]
fn newcomer_among_queue_pairs_waits_for_half_of_them() {
    let pools = ("switch.buffer.kind", "pools");
    let pfc = [pools, ("switch.pause.kind", "pfc"), ("switch.queue.kind", "strict-priority")];
    let bfc = [pools, ("switch.pause.kind", "bfc"), ("switch.queue.kind", "dynamic-queues")];
    let general = [("engine.ports", "general")];
    for (law, set) in [
        ("dcqcn", &[][..]),
        ("timely", &[]),
        ("rdma-dctcp", &[]),
        ("dcqcn", &general),
        ("dcqcn", &pfc),
        ("dcqcn", &bfc),
    ] {
        for (long, packets) in [(1, 0.5), (4, 2.0), (8, 4.0)] {
            let waited = wait(long, &[&[("transport.kind", law)], set].concat());
            println!("{law} {set:?}: {waited:.2} packets beside {long}");
            assert!(
                (waited / packets - 1.0_f64).abs() < 0.1,
                "{law} {set:?}: {waited} packets beside {long}"
            );
        }
    }
}

/// A TCP's packets wait in a FIFO, first come, first served, and each connection has up to two
/// segments there (TCP small queues): of 44 packets, 64 KiB. A newcomer waits for all of them, but
/// for half of one segment. Source: Linux' `pfifo_fast` with one band, `tcp_small_queue_check`.
#[test]
fn newcomer_among_tcps_waits_for_all_that_they_have_in_the_nic() {
    for (long, packets) in [(1, 1.5 * 44.0), (4, 7.5 * 44.0), (8, 15.5 * 44.0)] {
        let waited = wait(long, &[("transport.kind", "dctcp"), ("transport.handshake", "false")]);
        println!("dctcp: {waited:.1} packets beside {long}");
        assert!((waited / packets - 1.0_f64).abs() < 0.1, "{waited} packets beside {long}");
    }
}

/// The bound is the connection's, however many subflows it has.
#[test]
fn newcomer_among_mptcps_waits_as_among_tcps() {
    for (long, packets) in [(1, 1.5 * 44.0), (4, 7.5 * 44.0)] {
        let set = [
            ("transport.kind", "mptcp"),
            ("transport.mptcp-subflows", "4"),
            ("transport.handshake", "false"),
        ];
        let waited = wait(long, &set);
        println!("mptcp: {waited:.1} packets beside {long}");
        assert!((waited / packets - 1.0_f64).abs() < 0.1, "{waited} packets beside {long}");
    }
}

/// A message waits for what is in the NIC, which is one packet beside the one that is being sent:
/// the shortest is next, however many there are. Source: Homa, SIGCOMM 2018 §3.2 and §4.
#[test]
fn short_message_waits_for_what_the_nic_holds() {
    for long in [4, 8] {
        let waited = wait(long, &[("transport.kind", "homa")]);
        println!("homa: {waited:.2} packets beside {long}");
        assert!((waited / 1.5 - 1.0_f64).abs() < 0.1, "{waited} packets beside {long}");
    }
}

/// A limit that never binds leaves the order of the NIC as it is.
#[test]
fn limit_that_never_binds_leaves_the_order() {
    let tcp = [("transport.kind", "dctcp"), ("transport.handshake", "false")];
    let limit = "[[limit]]\nname = \"wide\"\nhosts = \"all\"\nrate = \"100Gbps\"\n";
    let (free, limited) = (wait(4, &tcp), wait_in(&format!("{NIC}{limit}"), 4, &tcp));
    println!("dctcp: {free:.1} packets, behind a limit {limited:.1}");
    assert!((limited / free - 1.0).abs() < 0.1, "{free} packets, behind a limit {limited}");
}
