//! Sockets that were made in another cgroup than their process is in: `apply` and `show` count
//! them.

use crate::place::{Place, Running};
use millpond_linux::limit::foreign::Foreign;
use millpond_linux::limit::show;
use millpond_worlds::needs;
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn sockets_of_a_process_that_moves_are_counted_both_ways() {
    needs!(std::path::Path::new("/sys/kernel/btf/vmlinux").exists(), "BTF");
    let place = needs!(Place::new("foreign"));
    let other = place.cgroup.join("other");
    let limited = place.cgroup.join("limited");
    [&other, &limited].iter().for_each(|cgroup| fs::create_dir(cgroup).unwrap());
    let said = place.folder.join("said");
    let args = [&limited, &other, &said].map(|path| path.display().to_string());
    let mut child = Running(place.child("wander", &args));
    let until = |wanted: &str| {
        let start = Instant::now();
        while fs::read_to_string(&said).unwrap_or_default() != wanted {
            assert!(start.elapsed() < Duration::from_secs(10), "it is not {wanted}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    until("in");
    let text = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP/limited\"\ndirection = \"both\"\n";
    let file = place.file("a.toml", text);
    place.apply(&file).unwrap();
    let read = || {
        let mut reading = show::read(&place.bpffs, None).unwrap();
        reading.find_foreign_sockets();
        reading
    };
    let mut notes = read().notes();
    // Beside a hint about loopback.
    notes.retain(|note| note.contains("socket"));
    assert_eq!(notes.len(), 1, "{notes:?}");
    for part in ["not limited: 1 socket", "to 127.0.0.1:9", "limit run t --"] {
        assert!(notes[0].contains(part), "{part} not in {notes:?}");
    }
    let counts = || {
        let reading = read();
        let sockets: Vec<Foreign> = reading.limits.into_iter().filter_map(|q| q.sockets).collect();
        assert_eq!(sockets.len(), 2, "of both directions");
        (sockets[0].made_elsewhere, sockets[1].taken_elsewhere)
    };
    assert_eq!(counts(), (1, 0));
    fs::write(said.with_extension("leave"), "").unwrap();
    until("out");
    assert_eq!(counts(), (0, 1), "the socket that was made there is limited still");
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    assert_eq!(counts(), (0, 0));
    [&other, &limited].iter().for_each(|cgroup| fs::remove_dir(cgroup).unwrap());
}
