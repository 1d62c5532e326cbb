//! Measurements of the load generator: run each by itself, with `--ignored --nocapture`.

use crate::compared::{UNTIL, plan};
use crate::lab::Lab;
use millpond_lab::load::Place;
use millpond_worlds::{namespace, needs};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How late flows start that come at random, and what a change of the namespace costs.
#[test]
#[ignore = "a measurement"]
fn lateness_of_starts() {
    let lab = needs!(Lab::new("late", 4));
    for (sizes, load) in [("1KB", 0.001), ("web-search", 0.02)] {
        let traffic = format!(
            "[[traffic]]\nkind = \"poisson\"\nsizes = \"{sizes}\"\nload = {load}\ncount = 4000"
        );
        let (_, counts) = lab.run(&plan(UNTIL, 4, &traffic));
        let late = &counts.lateness;
        let [p50, p99] = [0.5, 0.99].map(|share| late.quantile(share));
        println!("{sizes} in {}: p50 {p50} p99 {p99} max {}", counts.ended, late.max());
    }
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let open = |place: &Place| File::open(namespace::path(&place.namespace)).unwrap();
            let files: Vec<File> = lab.places.iter().map(open).collect();
            for i in 0..20_000 {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(files[i % 4].as_fd(), kind).unwrap();
            }
        });
    });
    println!("setns: {:?} each", begun.elapsed() / 20_000);
}

/// Goodput of two bulk flows, one each way.
#[test]
#[ignore = "a measurement"]
fn bulk_goodput() {
    let lab = needs!(Lab::new("bulk", 2));
    let traffic = "[[traffic]]\nkind = \"permutation\"\nsize = \"100GB\"";
    let (_, counts) = lab.run(&plan("duration = \"1s\"", 2, traffic));
    println!("{:.2} Gb/s", counts.bytes_measured as f64 * 8e-9);
}

/// Connections a second, as many as one thread and the kernel can make: run it by itself.
#[test]
#[ignore = "a measurement"]
fn connections_a_second() {
    let lab = needs!(Lab::new("rate", 4));
    let rows: Vec<String> = (0..9_000)
        .map(|i| format!("{{ start = 0, src = {}, dst = {}, bytes = 1000 }}", i % 4, (i + 1) % 4))
        .collect();
    let traffic = format!("[[traffic]]\nkind = \"flows\"\nrows = [{}]", rows.join(", "));
    let plan = plan(UNTIL, 4, &traffic);
    let begun = Instant::now();
    let usage = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    };
    let before = usage();
    let (records, counts) = lab.run(&plan);
    let spent = usage() - before;
    println!("{:?} wall, {spent:?} CPU, {} flows", begun.elapsed(), records.flows.len());
    println!("{:.0}/s a core", 9_000.0 / spent.as_secs_f64());
    println!("errors {:?}, retransmitted {}", counts.errors, counts.retransmitted);
}
