//! DCTCP's sawtooth against its analysis: Alizadeh et al., SIGCOMM 2010, §3.3, for N long flows in step on one link.
//!
//! With W* = (C·RTT + K) / N, the window at which the queue is at the threshold:
//!
//! - eq. 6: α² (1 − α/4) = (2 W* + 1) / (W* + 1)², so that α ≈ √(2 / W*);
//! - eq. 7: a window swings by D = (W* + 1) α / 2;
//! - eq. 8: the queue swings by A = N D; eq. 9: its top is K + N.
//!
//! The bands, chosen before the first run: the analysis has one marked window a period, and a cut at its end. Marks act a
//! round trip later, so there may be two, and α ≈ √(2 · 2 / W*), which is √2 as much, and so is D; windows are whole packets
//! besides, and small ones at that for N = 4. So α and D may be 0.85 to 1.5 times the analysis, A (whose ends are a packet a
//! flow each) 0.7 to 1.6 times; and the top may be above K + N by as much again as it is above K.

mod common;

use common::{plan, simulate};
use millpond_core::Time;
use std::fmt::Write;

const MSS: f64 = 1460.0;
const PACKET: f64 = 1500.0;
const K: f64 = 65.0;
/// When slow start is long over, and alpha has forgotten that it began at 1.
const STEADY: Time = Time::from_ms(15);

fn scenario(n: u32, reduce: &str) -> String {
    let mut rows = String::new();
    (0..n).for_each(|host| {
        let _ = write!(rows, "[\"0us\", {host}, {}, 1_000_000_000], ", n + host);
    });
    format!(
        r#"
        duration = "60ms"
        [topology]
        kind = "dumbbell"
        hosts-per-side = {n}
        host-link = {{ rate = "40Gbps", delay = "1us" }}
        bottleneck = {{ rate = "10Gbps", delay = "10us" }}
        [host]
        segment-offload = "off"
        [switch]
        buffer = {{ kind = "per-port", packets = 10_000 }}
        marking = {{ kind = "ecn", threshold-packets = {K} }}
        [transport]
        kind = "dctcp"
        dctcp-reduce = "{reduce}"
        handshake = false
        [[traffic]]
        name = "flows"
        kind = "flows"
        rows = [{rows}]
        [capture]
        connections = "2us"
        queues = {{ every = "500ns", ports = ["switch0->switch1"] }}
        "#
    )
}

/// Eq. 6, by bisection: its left side grows with alpha.
fn alpha_of(w: f64) -> f64 {
    let right = (2.0 * w + 1.0) / ((w + 1.0) * (w + 1.0));
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let alpha: f64 = (low + high) / 2.0;
        if alpha * alpha * (1.0 - alpha / 4.0) < right { low = alpha } else { high = alpha }
    }
    low
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn alpha_and_the_swing_of_window_and_queue_are_those_of_the_analysis() {
    // C·RTT of the empty network, in packets: 10 Gb/s and twice 12 µs, a data packet and an acknowledgement.
    let pipe = (2.0 * 12_000.0 + 300.0 + 1_200.0 + 300.0 + 8.0 + 32.0 + 8.0) / 1_200.0;
    for (n, reduce) in
        [(1u32, "window-end"), (2, "window-end"), (4, "window-end"), (1, "first-mark"), (2, "first-mark")]
    {
        let (_, records) = simulate(&plan(&scenario(n, reduce), &[]), 1);
        let flows = f64::from(n);
        let w = (pipe + K) / flows;
        let alpha = alpha_of(w);
        let swing = (w + 1.0) * alpha / 2.0;

        let steady = || records.connections.iter().filter(|row| row.at >= STEADY);
        let alphas: Vec<f64> = steady().map(|row| row.law[0].1).collect();
        let mut swings = Vec::new();
        for flow in 0..n {
            let windows: Vec<f64> = steady().filter(|row| row.flow == flow).map(|row| row.cwnd as f64 / MSS).collect();
            let falls = windows.windows(2).filter(|pair| pair[1] < pair[0] - 0.5);
            swings.extend(falls.map(|pair| pair[0] - pair[1]));
        }
        let queue: Vec<f64> =
            records.queues.iter().filter(|row| row.at >= STEADY).map(|row| row.bytes as f64 / PACKET).collect();
        let (top, bottom) =
            (queue.iter().copied().fold(0.0, f64::max), queue.iter().copied().fold(f64::INFINITY, f64::min));
        let found = [mean(&alphas) / alpha, mean(&swings) / swing, (top - bottom) / (flows * swing)];
        println!(
            "N = {n}, {reduce}: alpha {:.4} for {alpha:.4}, window swings by {:.2} for {swing:.2} ({} times), queue {bottom} to {top} for \
             {:.1} to {}: {found:.3?}",
            mean(&alphas),
            mean(&swings),
            swings.len(),
            K + flows - flows * swing,
            K + flows
        );
        assert!(swings.len() > 50 * n as usize, "{n} {reduce}: {} teeth", swings.len());
        assert!((0.85..=1.5).contains(&found[0]), "{n} {reduce}: alpha is {} of the analysis", found[0]);
        assert!((0.85..=1.5).contains(&found[1]), "{n} {reduce}: the window's swing is {} of the analysis", found[1]);
        assert!((0.7..=1.6).contains(&found[2]), "{n} {reduce}: the queue's swing is {} of the analysis", found[2]);
        assert!((K..=K + 2.0 * flows + 1.0).contains(&top), "{n} {reduce}: the queue's top is {top}");
    }
}
