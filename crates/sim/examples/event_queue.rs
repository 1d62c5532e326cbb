//! The event queue against a binary heap: push and pop at a steady number of pending events, as a
//! simulation does it.
//!
//! `cargo run --release -p millpond-sim --example event_queue [-- --json]`

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock; the simulator does not

use millpond_core::Time;
use millpond_core::random::Stream;
use millpond_sim::event::{Class, Key};
use millpond_sim::events::EventQueue;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Each popped event is pushed again a little later; most gaps are a packet's time, some a link's
/// delay, a few a timer's.
fn gap(random: &mut Stream, pending: u64) -> Time {
    let packet = 120_000 * (1 + pending / 400);
    Time::from_ps(match random.below(100) {
        0 => 10_000_000_000,
        1..=9 => 1_000_000 + random.below(packet),
        _ => packet + random.below(packet),
    })
}

/// Mean time of one push and one pop, in nanoseconds, with `pending` events waiting.
fn nanoseconds(
    pending: u64,
    mut push: impl FnMut(Time, Key),
    mut pop: impl FnMut() -> (Time, Key, bool),
) -> f64 {
    let mut random = Stream::new(1, "event-queue");
    for source in 0..pending {
        push(gap(&mut random, pending), Key::new(Class::Arrival, source as u32, 0));
    }
    let rounds = 4_000_000;
    let gaps: Vec<Time> = (0..4096).map(|_| gap(&mut random, pending)).collect();
    let began = Instant::now();
    for round in 0..rounds {
        let (at, key, _) = pop();
        push(at + gaps[round & 4095], key);
    }
    began.elapsed().as_nanos() as f64 / rounds as f64
}

fn main() {
    let json = std::env::args().any(|arg| arg == "--json");
    let mut rows = Vec::new();
    for pending in [100u64, 1_000, 10_000, 100_000] {
        // As `build` chooses it: twice the mean gap between events.
        let width = Time::from_ps(240_000 * (1 + pending / 400) / pending * 2);
        let wheel = std::cell::RefCell::new(EventQueue::new(width, false));
        let wheel_ns = nanoseconds(
            pending,
            |at, key| wheel.borrow_mut().push(at, key),
            || {
                wheel
                    .borrow_mut()
                    .pop_before(Time::MAX)
                    .map(|(at, key)| (at, key, true))
                    .expect("never empty")
            },
        );
        let heap = std::cell::RefCell::new(BinaryHeap::new());
        let heap_ns = nanoseconds(
            pending,
            |at, key| heap.borrow_mut().push(Reverse((at, key))),
            || {
                heap.borrow_mut()
                    .pop()
                    .map(|Reverse((at, key))| (at, key, true))
                    .expect("never empty")
            },
        );
        rows.push((pending, wheel_ns, heap_ns));
    }
    if json {
        let row = |r: &(u64, f64, f64)| {
            format!(r#"{{"pending":{},"wheel_ns":{:.1},"binary_heap_ns":{:.1}}}"#, r.0, r.1, r.2)
        };
        println!("[{}]", rows.iter().map(row).collect::<Vec<_>>().join(","));
    } else {
        println!("{:>9}  {:>12}  {:>12}   push + pop", "pending", "wheel", "binary heap");
        for (pending, wheel, heap) in rows {
            println!("{pending:>9}  {wheel:>9.1} ns  {heap:>9.1} ns");
        }
    }
}
