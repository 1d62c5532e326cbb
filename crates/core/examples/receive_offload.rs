//! The cost of receive offload: `cargo run --release -p millpond-core --example receive_offload`.
//!
//! One receive queue gets polls of 64 packets of 1448 bytes, of one flow or of sixteen that take
//! turns by flowcell. *In order* they come as they were sent; *reordered*, the flowcells travel
//! over four paths whose delays differ by 15 packets each. Each line is the time a packet, its
//! share of the polls' ends included: the fastest of interleaved rounds, and its ratio to the
//! kernel's rules in order. The last line has 100,000 idle flows beside the one, and says what
//! forgetting them took.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock; the mechanisms do not

use millpond_core::Time;
use millpond_core::edge::gro::{
    Arrival, Cause, Offload, OffloadParams, PrestoGroParams, Rules, StockGroParams, tcp,
};
use std::hint::black_box;
use std::time::Instant;

const MSS: u32 = 1448;
/// Packets of a flowcell.
const CELL: u32 = 45;
const POLL: usize = 64;
const PACKETS: u32 = 720_000;
const ROUNDS: usize = 15;
/// Between packets: 10 Gb/s.
const GAP: Time = Time::from_ns(1_200);

/// Packets in the order of their arrival; the number that each was sent with.
fn arrivals(flows: u32, skew: u32) -> Vec<Arrival<u32>> {
    let mut sent: Vec<(u32, u32)> = (0..PACKETS)
        .map(|number| {
            let delay = number / CELL % 4 * skew;
            (number + delay, number)
        })
        .collect();
    sent.sort();
    let arrival = |number: u32| {
        let (cell, flow) = (number / CELL / flows, number / CELL % flows);
        Arrival {
            flow,
            hash: flow.wrapping_mul(0x9E37_79B9),
            path: cell % 4,
            seq: (cell * CELL + number % CELL).wrapping_mul(MSS),
            len: MSS,
            merge: 1,
            headers: 52,
            flowcell: cell as u16,
            flags: tcp::ACK,
            id: millpond_core::edge::gro::IpId::NONE,
            is_whole: false,
        }
    };
    sent.into_iter().map(|(_, number)| arrival(number)).collect()
}

fn run(offload: &mut Offload<u32, u32>, arrivals: &[Arrival<u32>], now: &mut Time) -> f64 {
    let mut bytes = 0u64;
    let begin = Instant::now();
    for (poll, batch) in arrivals.chunks(POLL).enumerate() {
        for (i, arrival) in batch.iter().enumerate() {
            offload.receive(*now, arrival, (poll * POLL + i) as u32, &mut |r| {
                bytes += black_box(r.packets.len() as u64)
            });
        }
        *now += GAP * POLL as u64;
        offload.flush(*now, &mut |r| bytes += black_box(r.packets.len() as u64));
    }
    let ns = begin.elapsed().as_secs_f64() * 1e9 / arrivals.len() as f64;
    offload.drain(&mut |r| bytes += r.packets.len() as u64);
    assert_eq!(bytes, arrivals.len() as u64);
    ns
}

/// The time that the machine's other work disturbs least.
fn fastest(times: Vec<f64>) -> f64 {
    times.into_iter().fold(f64::INFINITY, f64::min)
}

fn main() {
    let stock = OffloadParams::Stock(StockGroParams::default());
    let presto =
        |rules| OffloadParams::Presto(PrestoGroParams { rules, ..PrestoGroParams::default() });
    let cases: [(&str, OffloadParams, u32, u32); 7] = [
        ("stock, in order", stock.clone(), 1, 0),
        ("Presto, in order", presto(Rules::Literal), 1, 0),
        ("Presto, reordered", presto(Rules::Literal), 1, 15),
        ("Presto safe, reordered", presto(Rules::Safe), 1, 15),
        ("stock, in order, 16 flows", stock, 16, 0),
        ("Presto, in order, 16 flows", presto(Rules::Literal), 16, 0),
        ("Presto, reordered, 16 flows", presto(Rules::Literal), 16, 15),
    ];
    let inputs: Vec<_> = cases.iter().map(|(_, _, flows, skew)| arrivals(*flows, *skew)).collect();
    let mut times = vec![Vec::new(); cases.len()];
    let mut merged = vec![0.0; cases.len()];
    for _ in 0..ROUNDS {
        for (i, (_, params, _, _)) in cases.iter().enumerate() {
            let mut offload = Offload::new(params);
            times[i].push(run(&mut offload, &inputs[i], &mut Time::from_us(1)));
            let segments: u64 = offload.counters().segments.iter().sum();
            merged[i] = PACKETS as f64 / segments as f64;
        }
    }
    let times: Vec<f64> = times.into_iter().map(fastest).collect();
    println!("{:<30} {:>10} {:>8} {:>16}", "", "ns/packet", "ratio", "packets/segment");
    for (i, (name, _, flows, _)) in cases.iter().enumerate() {
        let base = times[if *flows == 1 { 0 } else { 4 }];
        println!("{name:<30} {:>10.1} {:>8.2} {:>16.1}", times[i], times[i] / base, merged[i]);
    }
    idle(&inputs[1]);
}

/// The same beside a hundred thousand flows that are silent.
fn idle(input: &[Arrival<u32>]) {
    let mut offload = Offload::new(&OffloadParams::Presto(PrestoGroParams::default()));
    for flow in 1..=100_000u32 {
        let arrival = Arrival { flow, hash: flow.wrapping_mul(0x9E37_79B9), ..input[0] };
        offload.receive(Time::ZERO, &arrival, 0, &mut |_| ());
        offload.flush(Time::ZERO, &mut |_| ());
    }
    let mut now = Time::from_us(1);
    let times = (0..ROUNDS).map(|_| run(&mut offload, input, &mut now)).collect();
    let (begin, mut calls) = (Instant::now(), 0);
    let mut evicted = 0;
    while evicted < 100_000 {
        evicted += offload.evict(Time::from_s(60).saturating_add(now));
        calls += 1;
    }
    let each = begin.elapsed().as_secs_f64() * 1e6 / calls as f64;
    println!("{:<30} {:>10.1}", "Presto, in order, 100k idle", fastest(times));
    println!(
        "all forgotten in {calls} calls of {each:.1} us; timeouts {}",
        offload.counters().of(Cause::Timeout)
    );
}
