//! An operator's actions and views: removal from wherever, a start after a kill, what was lost.

use super::place::{Place, TWO, ip, program, soon, transfer};
use millpond_linux::dataplane::port::Tap;
use millpond_linux::dataplane::port::tap::TapSettings;
use millpond_linux::switch::config::Config;
use millpond_linux::switch::{apply, control, show};
use millpond_worlds::{namespace, needs};
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

/// A file that says nothing of namespaces means the namespace that it was applied in, whoever asks
/// later from wherever.
#[test]
fn what_was_made_is_removed_from_anywhere_and_nothing_of_that_name_elsewhere() {
    let place = needs!(Place::new("identity", &["a", "b"]));
    let (a, b) = (place.network(0), place.network(1));
    let config = Config::parse("test.toml", "[[port]]\nname = \"x\"\ndevice = \"mpx\"\n").unwrap();
    let state = place.state("s");
    let apply_in = |network: &str| {
        let apply = || apply::apply(&state, &config, &|| program(&state)).unwrap().waiting;
        assert_eq!(namespace::within(Some(network), apply).unwrap(), []);
    };
    apply_in(a);
    assert!(place.has(0, "mpx") && !place.has(1, "mpx"));
    // A stranger's of the same name, where the removal is asked for.
    assert!(ip(&["-n", b, "tuntap", "add", "mpx", "mode", "tap"]));
    place.kill("s");
    assert!(namespace::within(Some(b), || apply::remove_all(&state)).unwrap().unwrap());
    assert!(!place.has(0, "mpx") && place.has(1, "mpx") && !state.folder().exists());
    assert!(ip(&["-n", b, "link", "del", "mpx"]));
    // A switch that is started elsewhere takes its interface along.
    apply_in(a);
    place.kill("s");
    apply_in(b);
    assert!(!place.has(0, "mpx") && place.has(1, "mpx"));
    // One that went, and came as a stranger's while nobody looked, stays.
    place.kill("s");
    assert!(
        ip(&["-n", b, "link", "del", "mpx"])
            && ip(&["-n", b, "tuntap", "add", "mpx", "mode", "tap"])
    );
    apply::remove_all(&state).unwrap();
    assert!(place.has(1, "mpx"));
    assert!(ip(&["-n", b, "link", "del", "mpx"]));
    // One that was given another name is still the one that was made.
    apply_in(a);
    place.kill("s");
    assert!(
        ip(&["-n", a, "link", "set", "mpx", "down"])
            && ip(&["-n", a, "link", "set", "mpx", "name", "mpy"])
    );
    apply::remove_all(&state).unwrap();
    assert!(!place.has(0, "mpy"));
}

/// A process that is killed gives up its lock first and its interfaces later.
#[test]
fn a_start_waits_for_what_a_killed_process_still_has() {
    let place = needs!(Place::new("busy", &["a", "b"]));
    place.apply("s", TWO);
    place.kill("s");
    let settings = TapSettings { device: "mpa".into(), persistent: true };
    let held = namespace::within(Some(place.network(0)), || Tap::open(&settings)).unwrap().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(700));
            drop(held);
        });
        // Asserts that no port waits.
        place.apply("s", TWO);
    });
    for _ in 0..10 {
        let pid = place.state("s").process().unwrap().to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        place.apply("s", TWO);
    }
    transfer(place.network(0), place.network(1), "10.98.8.2:7001", 10_000_000, || {});
}

#[test]
fn what_the_kernel_loses_before_the_switch_is_counted_and_said() {
    let place = needs!(Place::new("losses", &["a", "b"]));
    let before = place.apply("s", TWO);
    let (a, b) = (place.network(0), place.network(1));
    transfer(a, b, "10.98.8.2:7001", 1_000_000, || {});
    let signal = |name: &str| {
        assert!(
            Command::new("kill").args([name, &before.pid.to_string()]).status().unwrap().success()
        );
    };
    let came = || {
        let reading = show::read(&place.state("s")).unwrap();
        let port = reading.ports.into_iter().next().unwrap();
        (port.counters.received, port.counters.dropped.get("device-full").copied().unwrap_or(0))
    };
    let start = came();
    let socket = namespace::within(Some(a), || UdpSocket::bind("10.98.8.1:0")).unwrap().unwrap();
    // More than the tap's queue holds, while nobody reads it.
    signal("-STOP");
    let sent =
        (0..4000).filter(|_| socket.send_to(&[0; 100], "10.98.8.2:7003").is_ok()).count() as u64;
    signal("-CONT");
    let all = || {
        let now = came();
        (now.0 - start.0) + (now.1 - start.1) >= sent && now.1 > 1000
    };
    assert!(soon(all), "{start:?} {:?} of {sent}", came());
    let log = || std::fs::read_to_string(place.state("s").file("log")).unwrap();
    assert!(soon(|| log().contains("frames lost before the switch could read them")), "{}", log());
    assert!(log().contains("port a is open"), "{}", log());
    // The place of each address.
    let table = show::read_addresses(&place.state("s")).unwrap();
    let behind: Vec<&str> = table.iter().filter_map(|it| it.port.as_deref()).collect();
    assert!(behind.contains(&"a") && behind.contains(&"b"), "{table:?}");
}

/// More than a shell allows a process descriptors for, made and removed; the process is killed
/// before.
#[test]
fn a_thousand_ports_are_removed() {
    let place = needs!(Place::new("thousand", &["a"]));
    // Each would tell all others of its addresses.
    let quiet = || std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    namespace::within(Some(place.network(0)), quiet).unwrap().unwrap();
    let port = |i: usize| {
        format!("[[port]]\nname = \"p{i}\"\ndevice = \"mpk{i}\"\nnamespace = \"NET0\"\n")
    };
    let count = || {
        let list =
            Command::new("ip").args(["-n", place.network(0), "-o", "link"]).output().unwrap();
        String::from_utf8_lossy(&list.stdout).matches(": mpk").count()
    };
    let reading = place.apply("s", &(0..1000).map(port).collect::<String>());
    assert_eq!((reading.ports.len(), count()), (1000, 1000));
    place.kill("s");
    assert!(apply::remove_all(&place.state("s")).unwrap());
    assert_eq!(count(), 0);
}

/// A capture of a port, while a connection crosses it; forwarding waits for nobody who looks on.
#[test]
fn a_port_is_mirrored() {
    use pcap_file::pcapng::{Block, PcapNgReader};
    use std::sync::{Arc, Mutex};
    /// Takes what is written, until it has enough.
    #[derive(Clone, Default)]
    struct Some100K(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Some100K {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut all = self.0.lock().unwrap();
            all.extend(bytes);
            if all.len() < 100_000 {
                Ok(bytes.len())
            } else {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let place = needs!(Place::new("mirror", &["a", "b"]));
    place.apply("s", TWO);
    let state = place.state("s");
    let refused = control::mirror(&state, "c", &mut Vec::new()).unwrap_err();
    assert!(refused.to_string().contains("there is no port \"c\""), "{refused}");
    let out = Some100K::default();
    std::thread::scope(|scope| {
        let (mut to, state) = (out.clone(), &state);
        let looks = scope.spawn(move || control::mirror(state, "a", &mut to));
        // Its heading is there: it is in force.
        assert!(soon(|| !out.0.lock().unwrap().is_empty()));
        transfer(place.network(0), place.network(1), "10.98.8.2:7001", 50_000_000, || {});
        looks.join().unwrap().unwrap();
    });
    let all = out.0.lock().unwrap();
    let mut reader = PcapNgReader::new(&all[..]).unwrap();
    let mut ways = [0, 0];
    while let Some(Ok((block, _))) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block {
            let view = millpond_linux::dataplane::frame::parse(&packet.data).unwrap();
            assert_eq!(packet.original_len as usize, packet.data.len());
            let is_in = packet.options.contains(
                &pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption::Flags(1),
            );
            ways[usize::from(!is_in)] += usize::from(view.tcp().is_some());
        }
    }
    assert!(ways[0] > 0 && ways[1] > 0, "both ways: {ways:?}");
}
