//! Long runs against what papers derive for them: DCTCP's queue, fairness, the NIC's limit on one
//! flow, and the share of a shared buffer that one hot port may take.

use crate::common::{self, exact, plan, simulate};
use millpond_core::Time;
use millpond_results::{FlowRecord, jain};
use std::fmt::Write;

/// A dumbbell whose hosts are four times as fast as the link that they share: what waits, waits at
/// its switch.
fn dumbbell(
    hosts: u32,
    duration: &str,
    buffer_packets: u32,
    transport: &str,
    flows: &str,
) -> String {
    format!(
        r#"
        name = "dumbbell"
        duration = "{duration}"
        [topology]
        kind = "dumbbell"
        hosts-per-side = {hosts}
        host-link = {{ rate = "40Gbps", delay = "1us" }}
        bottleneck = {{ rate = "10Gbps", delay = "10us" }}
        [host]
        segment-offload = "off"
        [switch]
        buffer = {{ kind = "per-port", packets = {buffer_packets} }}
        marking = {{ kind = "ecn", threshold-packets = 65 }}
        [transport]
        kind = "{transport}"
        handshake = false
        [[traffic]]
        name = "flows"
        kind = "flows"
        rows = [{flows}]
        "#
    )
}

/// DCTCP holds the queue between a lower bound and K + N packets (Alizadeh et al., SIGCOMM 2010,
/// §3.3, eq. 5 and 9: the queue's top is K + N; its amplitude for one flow is ½ √(2 (C·RTT + K)),
/// eq. 8).
///
/// The thermometer is a flow of one packet each 100 µs between two hosts of their own: what its FCT
/// exceeds that of the first one by, before there is any other traffic, is what waited before it at
/// the shared link.
#[test]
fn dctcp_keeps_the_queue_near_its_marking_threshold() {
    for (n, spread) in [(1u32, 1.0f64), (2, 2.0), (4, 4.0)] {
        let mut rows = format!("[\"0us\", {n}, {}, 1460]", 2 * n + 1);
        for host in 0..n {
            let _ = write!(rows, ", [\"100us\", {host}, {}, 1_000_000_000]", n + 1 + host);
        }
        let (first, last) = (100, 400);
        for probe in first..last {
            let _ = write!(rows, ", [\"{}us\", {n}, {}, 1460]", probe * 100, 2 * n + 1);
        }
        let (outcome, records) =
            simulate(&exact(&dumbbell(n + 1, "45ms", 10_000, "dctcp", &rows), &[]), 1);

        let mut probes: Vec<&FlowRecord> = records.flows.iter().filter(|f| f.src == n).collect();
        probes.sort_by_key(|f| f.start);
        assert_eq!(probes.len(), 1 + (last - first));
        let alone = probes[0].fct().expect("the first probe is alone");
        assert_eq!(alone, Time::from_ns(300 + 1_000 + 1_200 + 10_000 + 300 + 1_000), "three links");
        let packet = 1_200.0;
        let waiting: Vec<f64> = probes[1..]
            .iter()
            .map(|f| {
                (f.fct().expect("no probe is lost").saturating_sub(alone)).as_ps() as f64
                    / 1e3
                    / packet
            })
            .collect();
        let most = waiting.iter().cloned().fold(0.0, f64::max);
        let least = waiting.iter().cloned().fold(f64::INFINITY, f64::min);
        let mean = waiting.iter().sum::<f64>() / waiting.len() as f64;

        let (k, flows) = (65.0, f64::from(n));
        // C·RTT of the empty network, in packets: 10 Gb/s and twice 12 µs, a data packet and an
        // ACK.
        let pipe = (2.0 * 12_000.0 + 300.0 + 1_200.0 + 300.0 + 8.0 + 32.0 + 8.0) / packet;
        let amplitude = 0.5 * (2.0 * flows * (pipe + k)).sqrt();
        // Above: K + N, one packet on the wire, the probe itself. Below: the amplitude, and a
        // packet a flow for rounding.
        assert!(
            most <= k + flows + 2.0,
            "{n} flows: {most} packets waited, {mean} on average, {least} at least"
        );
        assert!(
            least >= k - amplitude * spread.max(2.0) - 2.0 * flows,
            "{n} flows: {least} packets at least, {mean} on average"
        );
        // A queue that never empties is a link that never idles.
        assert!(least > 0.0);
        let carried: u64 = outcome.pairs.values().sum();
        let possible = 10e9 / 8.0 * 1460.0 / 1500.0 * (45e-3 - 100e-6);
        assert!(carried as f64 > 0.995 * possible, "{n} flows: {carried} of {possible} bytes");
        // Slow start: the first mark takes a round trip to act, in which the window that filled
        // pipe and queue may double.
        let overshoot = 2.0 * (pipe + k) * 1.2 + flows * 10.0;
        assert!(
            (outcome.queue_bytes_max as f64) < (k + overshoot) * 1500.0,
            "{}",
            outcome.queue_bytes_max
        );
    }
}

/// Long flows of one kind over one link get the same share of it.
#[test]
fn flows_of_one_kind_share_a_link_fairly() {
    for transport in ["newreno", "cubic", "dctcp"] {
        let n = 6u32;
        // They start apart, and not in step.
        let rows: Vec<String> = (0..n)
            .map(|i| format!("[\"{}us\", {i}, {}, 10_000_000_000]", i * 1_037, n + i))
            .collect();
        let text = dumbbell(n, "600ms", 250, transport, &rows.join(", "));
        let text =
            text.replacen("name = \"dumbbell\"", "name = \"dumbbell\"\nwarm-up = \"10ms\"", 1);
        let (outcome, _) = simulate(&plan(&text, &[]), 2);
        let shares: Vec<f64> = outcome.pairs.values().map(|bytes| *bytes as f64).collect();
        assert_eq!(shares.len(), n as usize);
        let fairness = jain(&shares).expect("there are shares");
        assert!(fairness > 0.9, "{transport}: {fairness} of {shares:?}");
        let possible = 10e9 / 8.0 * 1460.0 / 1500.0 * 0.590;
        let carried = shares.iter().sum::<f64>();
        assert!(carried > 0.9 * possible, "{transport}: {carried} of {possible} bytes");
    }
}

/// With a limit on what one flow may have waiting in its NIC (Linux's TCP small queues), a packet
/// of another flow of the same host waits for at most that; without one, it waits for all of the
/// first flow's window.
#[test]
fn the_per_flow_limit_bounds_what_another_flow_waits_for() {
    let text = r#"
        name = "limit"
        duration = "100ms"
        [topology]
        kind = "single-switch"
        hosts = 3
        host-link = { rate = "1Gbps", delay = "1us" }
        [switch]
        buffer = { kind = "per-port", size = "off", packets = 10000 }
        marking = { kind = "none" }
        [host]
        segment-offload = "off"
        [transport]
        kind = "newreno"
        handshake = false
        initial-window = 500
        [[traffic]]
        name = "flows"
        kind = "flows"
        rows = [["0us", 0, 1, 730_000], ["100us", 0, 2, 1460]]
        "#;
    // A packet takes 12 µs; alone it takes two links of 12 + 1 µs.
    let alone = Time::from_us(26);
    for (limit, packets) in [("30KB", 20), ("6KB", 4), ("1500", 1)] {
        let (_, records) = simulate(&exact(text, &[("host.nic.per-flow-limit", limit)]), 1);
        let small = common::fcts(&records)[1];
        let most = alone + Time::from_us(12 * packets);
        assert!(small > alone && small <= most, "limit {limit}: {small}, at most {most}");
    }
    let (_, records) = simulate(&exact(text, &[("host.nic.per-flow-limit", "off")]), 1);
    // 500 packets in the NIC since time zero: the small one leaves as the 501st.
    assert_eq!(
        common::fcts(&records)[1] + Time::from_us(100),
        Time::from_us(12 * 501) + Time::from_us(14)
    );
}

/// Dynamic thresholds let one hot port have α/(1+α) of a shared buffer (Choudhury and Hahne 1998,
/// eq. 2).
#[test]
fn one_hot_port_takes_its_share_of_a_shared_buffer() {
    for alpha in [0.25, 0.5, 1.0, 2.0, 8.0] {
        let text = format!(
            r#"
            name = "hot"
            duration = "2ms"
            [topology]
            kind = "single-switch"
            hosts = 33
            host-link = {{ rate = "10Gbps", delay = "1us" }}
            [switch]
            buffer = {{ kind = "shared", size = "1MB", alpha = {alpha:?} }}
            marking = {{ kind = "none" }}
            [transport]
            kind = "newreno"
            handshake = false
            initial-window = 100
            [[traffic]]
            kind = "incast"
            degree = 32
            response = "146KB"
            receiver = 0
            request = "none"
            "#
        );
        let (outcome, _) = simulate(&plan(&text, &[]), 1);
        // A packet of s bytes joins q others if q + s ≤ α (B - q): so q ≤ α (B + s) / (1 + α) ever,
        // and the next one is refused from q > (α B - s) / (1 + α) on.
        let (most, size, packet) = (outcome.queue_bytes_max as f64, 1e6, 1_500.0);
        let (below, above) =
            ((alpha * size - packet) / (1.0 + alpha), alpha * (size + packet) / (1.0 + alpha));
        assert!(
            most > below && most <= above,
            "alpha {alpha}: {most} is not in {below} to {above}"
        );
        assert!(outcome.audit.dropped_total().packets > 0);
    }
}

/// NewReno's window in flight over a link that loses nothing: slow start doubles it each round trip
/// (RFC 5681 §3.1), so on a long path the n-th round trip carries 10 · 2ⁿ packets.
#[test]
fn slow_start_doubles_each_round_trip() {
    let text = r#"
        name = "slow-start"
        duration = "1s"
        [topology]
        kind = "single-switch"
        hosts = 2
        host-link = { rate = "100Gbps", delay = "1ms" }
        [switch]
        buffer = { kind = "per-port", size = "off", packets = 100000 }
        marking = { kind = "none" }
        [host]
        segment-offload = "off"
        nic = { per-flow-limit = "off" }
        [transport]
        kind = "newreno"
        handshake = false
        min-rto = "100ms"
        [[traffic]]
        name = "flows"
        kind = "flows"
        rows = [["0us", 0, 1, 14_600]]
        "#;
    for rounds in 0..6u64 {
        // Exactly what fits into this many round trips and a last window.
        let packets = 10 * ((1 << (rounds + 1)) - 1);
        let rows = format!("[[\"0us\", 0, 1, {}]]", packets * 1460);
        let (_, records) =
            simulate(&exact(&text.replace("[[\"0us\", 0, 1, 14_600]]", &rows), &[]), 1);
        let fct = common::fcts(&records)[0];
        // Data there and an acknowledgement back: 2 · (120 ns + 1 ms) and 2 · (3.2 ns + 1 ms).
        let round = Time::from_ps(2 * (120_000 + 1_000_000_000) + 2 * (3_200 + 1_000_000_000));
        // The acknowledgements of a window come 120 ns apart and release two packets each. So the
        // last window begins after `rounds` round trips and is sent without a gap, two packets an
        // acknowledgement: 2ⁿ · 10 packets.
        let last_window = 10 << rounds;
        let expected =
            round * rounds + Time::from_ps(last_window * 120_000 + 120_000 + 2_000_000_000);
        assert_eq!(fct, expected, "{rounds} round trips");
    }
}
