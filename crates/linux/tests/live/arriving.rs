//! Traffic that arrives from a host that knows of no limit.

use crate::place::{Place, Running, ip};
use millpond_linux::limit::{apply, show};
use millpond_worlds::needs;
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

/// The window that an application asks for itself.
const OWN: u32 = 50_000;
/// Less than any connection is offered here without a limit.
const HELD: u32 = 20_000;

/// The namespaces' loopback, and a cgroup for each end.
fn ends(place: &Place) -> [String; 2] {
    assert!(place.networks.iter().all(|network| ip(&["-n", network, "link", "set", "lo", "up"])));
    ["sender", "receiver"].map(|name| {
        let folder = place.cgroup.join(name);
        fs::create_dir(&folder).unwrap();
        folder.display().to_string()
    })
}

/// Lets connections send for so long.
fn send(place: &Place, cgroup: &str, flows: u32, ms: u32) -> Child {
    place.child(
        "tcp",
        &[cgroup.into(), place.networks[0].clone(), flows.to_string(), ms.to_string()],
    )
}

/// One connection without ECN, as fast as two namespaces are, into a limit at ingress: beyond
/// `drop` it loses some packets and others pass, and it gets no more than the limit. As published
/// none passes.
#[test]
fn a_connection_behind_a_limit_at_ingress_loses_one_packet_at_a_time() {
    let place = needs!(Place::with_network("arriving"));
    let [sender, receiver] = ends(&place);
    let limit = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP/receiver\"\ndirection = \
                 \"ingress\"\nrate = \"200Mbps\"\n";
    let run = |more: &str| {
        place.apply(&place.file("a.toml", &format!("{limit}{more}"))).unwrap();
        let sink = Running(place.child_at(1, "receive", &[receiver.clone(), String::new()]));
        assert!(send(&place, &sender, 1, 3000).wait().unwrap().success());
        drop(sink);
        let seen = show::read(&place.bpffs, None).unwrap().limits.remove(0);
        apply::remove_all(&place.bpffs).unwrap();
        let passed = (seen.bytes - seen.dropped_bytes) as f64 * 8e-6 / seen.seconds;
        eprintln!(
            "{more:?}: {passed:.1} of 200 Mb/s, {} of {} packets dropped",
            seen.dropped, seen.packets
        );
        assert!(seen.dropped > 0 && passed < 220.0, "{seen:?}");
        seen
    };
    let (spaced, published) = (run(""), run("profile = \"published\"\n"));
    assert!(spaced.bypassed > 0 && published.bypassed == 0, "{spaced:?} {published:?}");
}

/// A connection into a limit is offered little while the limit is behind, and again what it was, or
/// what its application has asked for, when the limit is gone. As published its window is its own.
#[test]
fn windows_are_held_while_a_limit_is_behind() {
    let place = needs!(Place::with_network("windows"));
    let [sender, receiver] = ends(&place);
    let limit = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP/receiver\"\ndirection = \
                 \"ingress\"\nrate = \"200Mbps\"\n";
    let file = place.folder.join("offered");
    let run = |more: &str, holds: &dyn Fn([u32; 4]) -> bool| {
        let _ = fs::remove_file(&file);
        let expect = |when: &str, is: &dyn Fn([u32; 4]) -> bool| {
            let (start, mut seen) = (Instant::now(), String::new());
            loop {
                let numbers: Vec<u32> =
                    seen.split_whitespace().map(|n| n.parse().unwrap()).collect();
                if <[u32; 4]>::try_from(numbers).is_ok_and(is) {
                    break eprintln!("{more:?}, {when}: {seen}");
                }
                assert!(start.elapsed() < Duration::from_secs(5), "{more:?}, {when}: {seen}");
                std::thread::sleep(Duration::from_millis(20));
                seen = fs::read_to_string(&file).unwrap_or_default();
            }
        };
        place.apply(&place.file("a.toml", &format!("{limit}{more}"))).unwrap();
        let args = [receiver.clone(), String::new(), file.display().to_string()];
        let _sink = Running(place.child_at(1, "windows", &args));
        let _sends = Running(send(&place, &sender, 2, 20_000));
        expect("while it is behind", holds);
        apply::remove_all(&place.bpffs).unwrap();
        expect("when it is gone", &|[_, plain, _, own]| plain > HELD && own == OWN);
    };
    run("", &|[plain, _, own, _]| plain < HELD && own < HELD);
    // Long enough for it to be far behind.
    let begun = Instant::now();
    run("profile = \"published\"\n", &|[plain, _, own, _]| {
        assert!(plain > HELD && own == OWN);
        begun.elapsed() > Duration::from_secs(2)
    });
    fs::remove_file(&file).unwrap();
}
