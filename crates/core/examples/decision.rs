//! Cost of one decision of a switch: `cargo run --release -p millpond-core --example decision`.
//!
//! A leaf of 40 host ports and 4 uplinks gets packets of random ranks for one host port; each line
//! is the time from a packet's arrival to the verdict, its queueing included, and what of it is not
//! spent with drop-tail and no deflection.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock; the mechanisms do not

use millpond_core::counters::DropReason;
use millpond_core::random::Stream;
use millpond_core::switch::admission::{Admission, AdmissionParams, AifoParams};
use millpond_core::switch::buffer::{BufferParams, Capacity, Memory, PerPortParams, SwitchFacts};
use millpond_core::switch::deflection::{Deflection, DeflectionParams};
use millpond_core::switch::marking::Marking;
use millpond_core::switch::occupancy::Occupancy;
use millpond_core::switch::path::{Path, Site};
use millpond_core::switch::pause::{Pause, PauseFrame, PauseTarget};
use millpond_core::switch::port::PortConfig;
use millpond_core::switch::queue::{Queue, QueueParams};
use millpond_core::switch::route::{Attachment, Routes};
use millpond_core::switch::site::{Auto, PortSite};
use millpond_core::switch::{Switch, SwitchConfig, Wire};
use millpond_core::{Bytes, Packet, PacketId, Packets, Rate, Time};
use std::sync::Arc;
use std::time::Instant;

const HOSTS: u16 = 40;
const UPLINKS: u16 = 4;
const PACKETS: u64 = 2_000_000;

/// A driver that forgets what it is given.
#[derive(Default)]
struct Sink {
    packets: Packets,
    dropped: u64,
}

impl Wire for Sink {
    fn packets(&mut self) -> &mut Packets {
        &mut self.packets
    }
    fn transmit(&mut self, _: u16, _: PacketId, _: Time) {}
    fn call_ready(&mut self, _: u16, _: Time) {}
    fn discard(&mut self, _: PacketId, _: DropReason) {
        self.dropped += 1;
    }
    fn send_pause(&mut self, _: u16, _: PauseFrame, _: Time) {}
    fn call_pause_check(&mut self, _: u16, _: PauseTarget, _: Time) {}
}

fn leaf(admission: &AdmissionParams, deflection: &DeflectionParams) -> Switch {
    let buffer = BufferParams::PerPort(PerPortParams {
        size: Auto::Given(Some(Bytes(300_000))).into(),
        ..Default::default()
    });
    let hosts = (0..HOSTS).map(|host| (0, host)).collect();
    let port = |rate| PortConfig {
        rate,
        capacity: Capacity::new(&buffer, &PortSite::default()),
        control: None,
        marking: Marking::new(&Default::default()),
        admission: Admission::new(admission),
        queue: Queue::new(&QueueParams::default()),
    };
    let ports = (0..HOSTS + UPLINKS)
        .map(|p| port(Rate::from_gbps(if p < HOSTS { 10 } else { 40 })))
        .collect();
    Switch::new(SwitchConfig {
        site: Site { tier: 0, salt: 1 },
        routes: Routes::new(Arc::new(Attachment { hosts }), Some(0), &[vec![]]),
        ports,
        fabric_ports: (HOSTS..HOSTS + UPLINKS).collect(),
        fast: true,
        memory: Memory::new(&buffer, &SwitchFacts::default()),
        path: Path::new(&Default::default()),
        deflection: Deflection::new(deflection),
        occupancy: Occupancy::new(&Default::default()),
        pause: Pause::new(&Default::default()),
        trim: None,
        telemetry: None,
        random: Stream::new(1, "switch/leaf0"),
    })
}

/// Nanoseconds a packet when one arrives each `gap`, and the share that was deflected.
fn measure(mut switch: Switch, gap: Time) -> (f64, f64) {
    let mut wire = Sink::default();
    let mut random = Stream::new(2, "ranks");
    let ids: Vec<PacketId> = (0..1024).map(|_| wire.packets.insert(Packet::default())).collect();
    let mut now = Time::ZERO;
    let mut arrive = |switch: &mut Switch, wire: &mut Sink, n: u64| {
        now += gap;
        let id = ids[n as usize % ids.len()];
        let rank = random.below(40_000) as u32;
        wire.packets[id] =
            Packet { dst: 7, size: 1500, payload: 1452, rank, ttl: 250, ..Packet::default() };
        switch.on_arrival(now, HOSTS, id, wire);
    };
    (0..100_000).for_each(|n| arrive(&mut switch, &mut wire, n));
    let (before, began) = (switch.deflected, Instant::now());
    (0..PACKETS).for_each(|n| arrive(&mut switch, &mut wire, n));
    let nanoseconds = began.elapsed().as_nanos() as f64 / PACKETS as f64;
    (nanoseconds, (switch.deflected - before) as f64 / PACKETS as f64)
}

fn best(make: impl Fn() -> Switch, gap: Time) -> (f64, f64) {
    (0..7)
        .map(|_| measure(make(), gap))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .expect("seven measurements")
}

fn main() {
    let tail = AdmissionParams::default();
    let aifo = |k| {
        AdmissionParams::Aifo(AifoParams {
            burst_headroom: k,
            window: 20,
            sample_period: 20,
            ..AifoParams::default()
        })
    };
    let (none, canary) =
        (DeflectionParams::None(Default::default()), DeflectionParams::Canary(Default::default()));
    println!("{:<42} {:>10} {:>12} {:>10}", "case", "ns/packet", "of decision", "deflected");
    // The host port sends a packet in 1.2 us.
    for (load, gap) in [
        ("below capacity", 1_250),
        ("full, at twice its capacity", 600),
        ("full, at ten times", 120),
    ] {
        let gap = Time::from_ps(gap * 1000);
        let (base, _) = best(|| leaf(&tail, &none), gap);
        println!("{:<42} {base:>10.1} {:>12} {:>10}", format!("drop-tail, {load}"), "-", "-");
        for (name, k) in [("Canary k = 0.9", 0.9), ("Canary k = 0.1", 0.1)] {
            let (ns, share) = best(|| leaf(&aifo(k), &canary), gap);
            println!(
                "{:<42} {ns:>10.1} {:>12.1} {:>9.1}%",
                format!("{name}, {load}"),
                ns - base,
                share * 100.0
            );
        }
    }
}
