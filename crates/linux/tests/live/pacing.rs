//! The pace of connections: over loopback none where limits do not hold there, and elsewhere as the
//! limits in force say, while they say it.

use crate::place::{Place, Running, Sink, ip};
use millpond_linux::limit::apply::{self, Session};
use millpond_linux::limit::show;
use millpond_worlds::needs;
use std::fs;
use std::io::Read;
use std::process::Child;
use std::time::{Duration, Instant};

/// No pace.
const NONE: u32 = u32::MAX;
/// The pace that an application asks for itself: between the two limits of the test.
const OWN: u32 = 2_000_000;

/// The child that plays that, and what it last wrote.
struct Connections {
    child: Child,
    file: std::path::PathBuf,
}

impl Connections {
    fn new(place: &Place) -> Connections {
        let file = place.folder.join("rates");
        let _ = fs::remove_file(&file);
        let child = place.sender("paces", &[file.to_str().unwrap()]);
        Connections { child, file }
    }
    /// Waits until the connections to another host have these paces, and each over loopback that
    /// one.
    fn expect(&self, remote: [u32; 2], local: u32, when: &str) {
        let expected = [&remote[..], &[local; 6]].concat();
        let (start, mut seen) = (Instant::now(), Vec::<u32>::new());
        while seen != expected {
            assert!(start.elapsed() < Duration::from_secs(5), "{when}: {seen:?}, not {expected:?}");
            std::thread::sleep(Duration::from_millis(20));
            let mut text = String::new();
            let Ok(mut file) = fs::File::open(&self.file) else { continue };
            file.read_to_string(&mut text).unwrap();
            seen = text.split(' ').map(|n| n.parse().unwrap()).collect();
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.file);
    }
}

fn set(place: &Place, key: &str, value: &str) {
    let mut session = Session::existing(&place.bpffs, &|_| {}).unwrap();
    let sources = session.set("t", &[(key.into(), value.into())]).unwrap();
    let done = session.install(sources, false).unwrap();
    assert_eq!(done.notes, Vec::<String>::new());
}

/// 10 Mb/s are 1,250,000 bytes a second, but for the last digits of a fixed point.
fn bytes(mbps: u64) -> u32 {
    let rate = ((u128::from(mbps) * 1_000_000) << 24) / 8_000_000_000;
    ((rate * 1_000_000_000) >> 24) as u32
}

#[test]
fn connections_are_paced_as_the_limits_in_force_say() {
    let place = needs!(Place::with_network("paces"));
    assert!(ip(&["-n", &place.networks[0], "link", "set", "lo", "up"]));
    let _sink = Sink::new(&place);
    let text = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"10Mbps\"\n";
    let file = place.file("a.toml", text);
    place.apply(&file).unwrap();
    let connections = Connections::new(&place);
    connections.expect([bytes(10), OWN], NONE, "made below a limit, then set by its application");
    set(&place, "rate", "20Mbps");
    connections.expect([bytes(20), OWN], NONE, "a higher limit");
    set(&place, "rate", "8Mbps");
    connections.expect([bytes(8), bytes(8)], NONE, "a lower limit than the application's");
    set(&place, "observe", "true");
    connections.expect([NONE, OWN], NONE, "the limit only observes");
    set(&place, "observe", "false");
    connections.expect([bytes(8), bytes(8)], NONE, "and holds again");
    set(&place, "pace", "false");
    connections.expect([NONE, OWN], NONE, "it paces no more");
    set(&place, "pace", "true");
    connections.expect([bytes(8), bytes(8)], NONE, "and does again");
    // The file's limit is gone, and another one stays: so the maps do, too.
    let inner = place.cgroup.join("inner");
    fs::create_dir(&inner).unwrap();
    place
        .apply(&place.file("a.toml", "[[limit]]\nname = \"i\"\ncgroup = \"CGROUP/inner\"\n"))
        .unwrap();
    connections.expect([NONE, OWN], NONE, "its limit was removed");
    place.apply(&place.file("a.toml", &text.replace("\"t\"", "\"again\""))).unwrap();
    connections.expect([bytes(10), bytes(10)], NONE, "and is there again, by another name");
    assert_eq!(apply::remove_all(&place.bpffs).unwrap(), Some(Vec::new()));
    connections.expect([NONE, OWN], NONE, "all were removed");
}

/// Of connections that were there before any limit, the same.
#[test]
fn connections_older_than_their_limit_are_paced_too() {
    let place = needs!(Place::with_network("paces-older"));
    assert!(ip(&["-n", &place.networks[0], "link", "set", "lo", "up"]));
    let _sink = Sink::new(&place);
    let connections = Connections::new(&place);
    connections.expect([NONE, OWN], NONE, "there is no limit");
    let limit = |more: &str| {
        format!("[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"8Mbps\"\n{more}")
    };
    place.apply(&place.file("a.toml", &limit("observe = true\n"))).unwrap();
    connections.expect([NONE, OWN], NONE, "it only observes");
    place.apply(&place.file("a.toml", &limit(""))).unwrap();
    connections.expect([bytes(8), bytes(8)], NONE, "it is in force");
    place.apply(&place.file("a.toml", &format!("loopback = true\n{}", limit("")))).unwrap();
    connections.expect([bytes(8), bytes(8)], bytes(8), "for loopback, too");
    assert_eq!(apply::remove_all(&place.bpffs).unwrap(), Some(Vec::new()));
    connections.expect([NONE, OWN], NONE, "all were removed");
}

#[test]
fn loopback_is_paced_where_limits_hold_for_it() {
    let place = needs!(Place::with_network("paces-local"));
    assert!(ip(&["-n", &place.networks[0], "link", "set", "lo", "up"]));
    let _sink = Sink::new(&place);
    let text = "loopback = true\n[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"10Mbps\"\n";
    place.apply(&place.file("a.toml", text)).unwrap();
    let connections = Connections::new(&place);
    connections.expect([bytes(10), OWN], bytes(10), "limits hold for loopback");
    set(&place, "rate", "8Mbps");
    connections.expect([bytes(8), bytes(8)], bytes(8), "and so does a change of one");
    set(&place, "rate", "10Mbps");
    place.apply(&place.file("a.toml", &text.replace("true", "false"))).unwrap();
    connections.expect([bytes(10), bytes(10)], NONE, "and no more");
}

/// Eight connections share a limit by their pace, and hardly a packet of theirs is refused, however
/// full their windows are. As published many are.
#[test]
fn connections_that_share_a_limit_are_not_refused() {
    let place = needs!(Place::with_network("shares"));
    let sink = Sink::new(&place);
    let limit = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"200Mbps\"\n";
    let run = |more: &str| {
        place.apply(&place.file("a.toml", &format!("{limit}{more}"))).unwrap();
        let (_, mean) = sink.watch(place.sender("tcp", &["8", "2500"]));
        let seen = show::read(&place.bpffs, None).unwrap().limits.remove(0);
        apply::remove_all(&place.bpffs).unwrap();
        eprintln!(
            "{more:?}: {mean:.1} of 200 Mb/s, {} of {} packets dropped",
            seen.dropped, seen.packets
        );
        seen
    };
    let (shared, published) = (run(""), run("profile = \"published\"\n"));
    assert!(shared.packets > 100 && published.dropped > 0, "{published:?}");
    let times_as_often =
        4 * shared.dropped * published.packets <= published.dropped * shared.packets;
    assert!(times_as_often, "{shared:?} {published:?}");
}

/// Fifty connections begin at once, and hear nothing of the queue that this makes: so their
/// segments stay as large as their share allows (30 KB on an idle machine).
#[test]
fn connections_that_begin_at_once_keep_large_segments() {
    let place = needs!(Place::with_network("storm"));
    let sink = Sink::new(&place);
    place
        .apply(
            &place
                .file("a.toml", "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"1Gbps\"\n"),
        )
        .unwrap();
    let (_, mean) = sink.watch(place.sender("tcp", &["50", "2500"]));
    let seen = show::read(&place.bpffs, None).unwrap().limits.remove(0);
    let segment = seen.bytes / seen.packets.max(1);
    eprintln!("{mean:.0} Mb/s by segments of {segment} bytes, {} reduced", seen.reduced);
    assert!(segment > 10_000 && seen.packets > 100, "{seen:?}");
}

/// A connection from before the limit follows a share of it, too, and is refused only until its
/// share is known. Before Linux 6.12 it cannot, and is notified of the queue long before it is
/// refused.
#[test]
fn connections_older_than_their_limit_share_it() {
    let place = needs!(Place::with_network("older"));
    let _sink = Sink::new(&place);
    let _sender = Running(place.sender("tcp", &["8", "60000"]));
    std::thread::sleep(Duration::from_millis(500));
    let file =
        place.file("a.toml", "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"200Mbps\"\n");
    let done = place.apply(&file).unwrap();
    let read = || show::read(&place.bpffs, None).unwrap().limits.remove(0);
    let [first, second] = [1000, 2000].map(|ms| {
        std::thread::sleep(Duration::from_millis(ms));
        read()
    });
    let (packets, dropped) = (second.packets - first.packets, second.dropped - first.dropped);
    eprintln!(
        "{:?}: {packets} packets, {dropped} dropped; {} reduced, {} dropped before",
        done.notes, first.reduced, first.dropped
    );
    assert!(packets > 100, "{second:?}");
    match done
        .notes
        .iter()
        .any(|note| note.starts_with("connections older") && note.ends_with(": 8"))
    {
        true => assert!(2 * second.reduced > 3 * second.dropped, "{second:?}"),
        false => assert!(20 * dropped < packets, "{second:?}"),
    }
}
