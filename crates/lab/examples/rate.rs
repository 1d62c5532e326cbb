//! Measures packet-hops a second of the lab's one thread, and the lateness of packets: bulk flows
//! of kernel TCP over a dumbbell, at link rates that double until the thread is late.
//!
//! `cargo run --release -p millpond-lab --example rate` prints a row a rate. A packet makes three
//! hops and its acknowledgement three more.

use millpond_lab::load::{Place, Settings, Sink, run};
use millpond_lab::{Lab, Role, prepare};
use millpond_results::{ConnectionRecord, FlowRecord, QueryRecord};
use millpond_scenario::{Plan, Scenario};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Hosts on each side.
const PAIRS: u32 = 4;

struct Nobody;

impl Sink for Nobody {
    fn flow(&mut self, _: FlowRecord) -> bool {
        true
    }
    fn query(&mut self, _: QueryRecord) -> bool {
        true
    }
    fn rtt(&mut self, _: millpond_core::Time) -> bool {
        true
    }
    fn connection(&mut self, _: ConnectionRecord) -> bool {
        true
    }
}

fn plan(mbps: u32) -> Plan {
    let rows: Vec<String> =
        (0..PAIRS).map(|pair| format!("[0, {pair}, {}, 10000000000]", pair + PAIRS)).collect();
    let text = format!(
        "duration = \"2s\"\n[topology]\nkind = \"dumbbell\"\nhosts-per-side = {PAIRS}\n\
         host-link = {{ rate = \"{mbps}Mbps\", delay = \"100us\" }}\n\
         bottleneck = {{ rate = \"{}Mbps\", delay = \"100us\" }}\n\
         [switch]\nbuffer = {{ kind = \"per-port\", size = \"400KB\" }}\n\
         [transport]\nkind = \"cubic\"\n[[traffic]]\nkind = \"flows\"\nrows = [{}]\n",
        mbps * PAIRS,
        rows.join(", ")
    );
    let scenario = Scenario::parse("rate.toml", &text).expect("a scenario");
    scenario.plan(None, &[], None).expect("a plan")
}

fn main() {
    println!(
        "{:>8} {:>12} {:>10} {:>10} {:>10}",
        "Mb/s", "hops/s", "late p50", "late p99", "Mb/s got"
    );
    for mbps in [25, 50, 100, 200, 400, 800, 1600] {
        let plan = plan(mbps);
        let mut lab = match Lab::up(&plan) {
            Ok(lab) => lab,
            Err(error) => return eprintln!("{error}"),
        };
        let place = |host: u32| Place {
            namespace: lab.namespaces()[host as usize].name().to_string(),
            address: lab.address(host),
        };
        let places: Vec<Place> = (0..2 * PAIRS).map(place).collect();
        let began = Instant::now() + Duration::from_millis(50);
        let settings = Settings {
            plan: &plan,
            places: &places,
            congestion: "cubic",
            began,
            port: 7100,
            cgroups: &[],
        };
        lab.measure();
        let hops = lab.hops();
        let stop = AtomicBool::new(false);
        let counts = std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                prepare(Role::Load);
                run(&settings, &stop, &mut Nobody)
            });
            load.join().expect("the load's thread")
        });
        let seconds = began.elapsed().as_secs_f64();
        let counts = counts.expect("a run");
        let counted = lab.stop();
        println!(
            "{:>8} {:>12.0} {:>7.1} us {:>7.1} us {:>10.0}",
            mbps * PAIRS,
            (counted.hops - hops) as f64 / seconds,
            counted.late.p50.as_us_f64(),
            counted.late.p99.as_us_f64(),
            counts.bytes_measured as f64 * 8e-6 / seconds,
        );
    }
}
