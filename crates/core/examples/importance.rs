//! A sender's cost of TLT's decisions: `cargo run --release -p millpond-core --example importance`.
//!
//! A flow keeps a window of segments in flight. A round sends a window, one packet of it important,
//! and takes its acknowledgements in order, the echo at its place. Printed are nanoseconds a data
//! packet (is it important?) and an acknowledgement (what is forgotten, what must be forced?),
//! without losses and with every third unimportant packet lost and reported by SACK.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock; the mechanisms do not

use millpond_core::Importance;
use millpond_core::importance::{Standing, TltParams, WindowMarker};
use std::hint::black_box;
use std::time::{Duration, Instant};

const MSS: u32 = 1440;
const ROUNDS: u64 = 100_000;

/// Nanoseconds a data packet and an acknowledgement.
fn measure(window: u64, lossy: bool) -> (f64, f64) {
    let mut marker = WindowMarker::new(&TltParams::default());
    let (mut sending, mut hearing) = (Duration::ZERO, Duration::ZERO);
    let segment = u64::from(MSS);
    let mut classes = vec![Importance::Control; window as usize];
    for round in 0..ROUNDS {
        let base = round * window * segment;
        let began = Instant::now();
        for (n, class) in classes.iter_mut().enumerate() {
            *class = marker.on_packet(base + n as u64 * segment, MSS, n as u64 + 1 == window);
        }
        sending += began.elapsed();
        let nxt = base + window * segment;
        let began = Instant::now();
        let mut una = base;
        for (n, class) in classes.iter().enumerate() {
            let (from, to) = (base + n as u64 * segment, base + (n as u64 + 1) * segment);
            let lost = lossy && n % 3 == 1 && *class == Importance::Unimportant;
            if lost {
                continue;
            }
            // Without losses the cumulative acknowledgement moves; with losses SACK reports the
            // bytes held.
            let sack = [(from, to)];
            let blocks: &[(u64, u64)] = if una == from { &[] } else { &sack };
            una = if una == from { to } else { una };
            black_box(marker.on_ack(class.echo(), una, blocks, una));
            let standing = Standing { una, nxt, more: n as u64 + 1 < window, recovering: false };
            black_box(marker.after_ack(standing, MSS));
        }
        // Whatever was lost is repaired before the next round.
        marker.on_ack(Importance::Control, nxt, &[], nxt);
        hearing += began.elapsed();
    }
    let each = (ROUNDS * window) as f64;
    (sending.as_nanos() as f64 / each, hearing.as_nanos() as f64 / each)
}

fn main() {
    println!("window  losses  ns a data packet  ns an acknowledgement");
    for window in [10, 45, 300] {
        for lossy in [false, true] {
            let mut runs: Vec<(f64, f64)> = (0..5).map(|_| measure(window, lossy)).collect();
            runs.sort_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
            let (data, ack) = runs[2];
            println!(
                "{window:6}  {:6}  {data:16.1}  {ack:21.1}",
                if lossy { "third" } else { "none" }
            );
        }
    }
}
