//! A cgroup that is removed and made anew is limited again at once while `serve` runs.

use crate::place::Place;
use millpond_linux::limit::{serve, show};
use millpond_worlds::needs;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// On a busy machine a thread may wait for a processor for longer than all of it takes, so the
/// median counts.
#[test]
fn a_cgroup_made_anew_is_limited_within_50_ms_and_the_log_has_it() {
    let place = needs!(Place::new("soon"));
    let inner = place.cgroup.join("inner");
    fs::create_dir(&inner).unwrap();
    let text = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP/inner\"\ndirection = \"both\"\n";
    place.apply(&place.file("a.toml", text)).unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let (bpffs, lines) = (place.bpffs.clone(), log.clone());
    std::thread::spawn(move || {
        serve::serve(&bpffs, None, &|line| lines.lock().unwrap().push(line.to_string()))
    });
    std::thread::sleep(Duration::from_secs(1));
    let is_limited =
        || show::read(&place.bpffs, None).unwrap().limits[0].standing == show::Standing::Active;
    let mut took = Vec::new();
    for _ in 0..5 {
        fs::remove_dir(&inner).unwrap();
        fs::create_dir(&inner).unwrap();
        let start = Instant::now();
        while !is_limited() {
            let why = || format!("serve did not apply again: {:?}", log.lock().unwrap());
            assert!(start.elapsed() < Duration::from_secs(10), "{}", why());
            std::thread::sleep(Duration::from_millis(1));
        }
        took.push(start.elapsed());
        // The log has a line a second at most.
        std::thread::sleep(Duration::from_millis(1500));
    }
    took.sort_unstable();
    eprintln!("limited again after {took:?}");
    assert!(took[2] < Duration::from_millis(50), "{took:?}");
    let log = log.lock().unwrap();
    // On a busy machine it may see the cgroup gone, and log that in the second's line.
    let lines = ["in force on cgroups that were made: t", "waiting for cgroups that are gone: t"];
    assert!(log.len() >= 5 && log.iter().all(|line| lines.contains(&line.as_str())), "{log:?}");
    assert!(log.iter().filter(|line| *line == lines[0]).count() >= 3, "{log:?}");
    fs::remove_dir(&inner).unwrap();
}
