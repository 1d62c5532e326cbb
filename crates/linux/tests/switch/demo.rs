//! A short run of `millpond switch demo backdraft`.

use super::place::Place;
use millpond_linux::demo::backdraft::{Arm, Plan, demo};
use millpond_worlds::needs;
use std::path::PathBuf;
use std::time::Duration;

/// Things that it has made and is to take away: namespaces and a folder of this process.
fn left() -> Vec<String> {
    let ours = format!("mp-demo-{}-", std::process::id());
    let names =
        [PathBuf::from("/run/netns"), std::env::temp_dir()].into_iter().flat_map(|folder| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
        });
    names.filter(|name| name.starts_with(&ours)).collect()
}

#[test]
fn backdraft_loses_nothing_where_a_ring_does_and_leaves_nothing() {
    // Namespaces are the demo's own; this is to know if there can be any.
    let _place = needs!(Place::new("demo", &["x"]));
    // A burst fits into flow queues, and not into a ring: whatever else the machine does.
    let plan = Plan {
        repetitions: 1,
        duration: Duration::from_millis(500),
        hosts: 2,
        loads: vec![0.9],
        burst: 1024,
        work: Duration::from_micros(100),
        rtos: vec![Duration::from_millis(200)],
        gap: Duration::from_millis(1),
        ring: 256 << 10,
        memory: 8 << 20,
    };
    let report = demo(&plan, &|| false, &mut |_| {}).unwrap();
    assert_eq!(report.runs.iter().map(|run| run.arm).collect::<Vec<_>>(), Arm::ALL);
    let of = |arm| report.runs.iter().find(|run| run.arm == arm).unwrap();
    assert!(report.runs.iter().all(|run| run.victim.count > 0));
    let (lossy, full) = (of(Arm::Lossy), of(Arm::Full));
    assert!(lossy.drops > 0 && lossy.pauses == 0, "{lossy:?}");
    assert!(full.drops == 0 && full.slow.count > 0 && full.goodput_mbps > 0.0, "{full:?}");
    assert!(of(Arm::Alone).slow.count == 0 && of(Arm::Alone).drops == 0);
    let table = report.table();
    assert!(table.contains("holds: frames dropped with flow queues and overlay"), "{table}");
    assert_eq!(left(), Vec::<String>::new());
}
