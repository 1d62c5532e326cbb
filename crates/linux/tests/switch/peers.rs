//! Two switches with four paths between them: what crosses, what dies, and who gets nothing
//! through.

use super::place::{Place, TWO, byte, ip, soon, transfer};
use millpond_linux::switch::show;
use millpond_worlds::{namespace, needs};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Two switches, four paths between them.
fn paths(local: usize, network: &str) -> String {
    let path = |i: u32| {
        let remote = 3 - local;
        format!(
            "[[path]]\npeer = \"other\"\nlocal = \"10.97.{i}.{local}:4799\"\nremote = \
             \"10.97.{i}.{remote}:4799\"\nnamespace = \"{network}\"\n"
        )
    };
    (0..4).map(path).collect()
}

/// Four wires between the namespaces 2 and 3; what the two switches are, each with its tap in a
/// namespace of its own.
pub fn four_paths(place: &Place) -> [String; 2] {
    for i in 0..4 {
        let (c, d) = (format!("mpc{i}"), format!("mpd{i}"));
        let ends = ["type", "veth", "peer", "name", &d, "netns", place.network(3)];
        assert!(ip(&[&["-n", place.network(2), "link", "add", &c][..], &ends].concat()));
        for (network, device, last) in [(2, &c, 1), (3, &d, 2)] {
            assert!(ip(&[
                "-n",
                place.network(network),
                "addr",
                "add",
                &format!("10.97.{i}.{last}/24"),
                "dev",
                device
            ]));
            assert!(ip(&["-n", place.network(network), "link", "set", device, "up"]));
        }
    }
    let (one, two) = TWO.split_at(TWO.rfind("[[port]]").unwrap());
    // Room for the outer headers.
    let [one, two] = [one, two].map(|text| text.replace("addresses", "mtu = 1400\naddresses"));
    [one + &paths(1, "NET2"), two + &paths(2, "NET3")]
}

/// How a switch finds its paths.
pub fn states(place: &Place, name: &str) -> Vec<String> {
    let reading = show::read(&place.state(name)).unwrap();
    reading.paths.iter().map(|path| path.health.state.clone()).collect()
}

/// New connections, one after another; how long each took that came up in time.
pub fn come_up(
    from: &str,
    to: &str,
    address: &str,
    count: usize,
    patience: Duration,
) -> Vec<Duration> {
    let address: SocketAddr = address.parse().unwrap();
    let listener = namespace::within(Some(to), || TcpListener::bind(address)).unwrap().unwrap();
    let one = |_: usize| {
        let start = Instant::now();
        let came = namespace::within(Some(from), || TcpStream::connect_timeout(&address, patience))
            .unwrap();
        let took = start.elapsed();
        came.is_ok_and(|_| listener.accept().is_ok()).then_some(took)
    };
    let up = (0..count).filter_map(one).collect();
    drop(listener);
    up
}

#[test]
fn a_path_that_dies_or_is_too_small_is_left_out() {
    let place = needs!(Place::new("dying", &["a", "b", "c", "d"]));
    let [left, right] = four_paths(&place);
    let [left, right] =
        [left, right].map(|text| text + "[[peer]]\nname = \"other\"\ndead-after = \"200ms\"\n");
    place.apply("left", &left);
    place.apply("right", &right);
    let (a, b) = (place.network(0), place.network(1));
    let are_used = || ["left", "right"].iter().all(|name| states(&place, name) == ["used"; 4]);
    assert!(soon(are_used), "{:?} {:?}", states(&place, "left"), states(&place, "right"));
    // The first path, which all that is no flow took: frames to its other end go nowhere, without a
    // word.
    let neighbour = [
        "neigh",
        "replace",
        "10.97.0.2",
        "lladdr",
        "02:00:00:00:00:99",
        "dev",
        "mpc0",
        "nud",
        "permanent",
    ];
    assert!(ip(&[&["-n", place.network(2)][..], &neighbour].concat()));
    let is_dead = |name: &str| states(&place, name) == ["dead", "used", "used", "used"];
    assert!(soon(|| is_dead("left") && is_dead("right")), "{:?}", states(&place, "left"));
    let took = come_up(a, b, "10.98.8.2:7101", 40, Duration::from_secs(5));
    // A quarter would have to ask again, which is after a second, if the dead path still got some;
    // few do on a busy machine.
    let again = took.iter().filter(|took| **took >= Duration::from_secs(1)).count();
    assert!(took.len() == 40 && again <= 4, "{took:?}");
    transfer(a, b, "10.98.8.2:7102", 30_000_000, || {});
    // Another one, by the interface, under a connection; and the first is there again.
    transfer(a, b, "10.98.8.2:7103", 100_000_000, || {
        assert!(ip(&["-n", place.network(3), "link", "set", "mpd2", "down"]));
    });
    assert!(ip(&["-n", place.network(2), "neigh", "del", "10.97.0.2", "dev", "mpc0"]));
    assert!(
        soon(|| states(&place, "left") == ["used", "used", "dead", "used"]),
        "{:?}",
        states(&place, "left")
    );
    // A small one carries what is small and nothing else: with others it carries nothing.
    for (network, device) in [(2, "mpc1"), (3, "mpd1")] {
        assert!(ip(&["-n", place.network(network), "link", "set", device, "mtu", "1300"]));
    }
    assert!(soon(
        || states(&place, "left")[1] == "narrow" && states(&place, "right")[1] == "narrow"
    ));
    transfer(b, a, "10.98.8.1:7104", 30_000_000, || {});
    let reading = show::read(&place.state("left")).unwrap();
    assert!(reading.table(None).contains("NOT AUTHENTICATED: other"), "{}", reading.table(None));
}

#[test]
fn with_a_key_only_the_peer_gets_frames_through() {
    let place = needs!(Place::new("sealed", &["a", "b", "c", "d"]));
    let key = place.folder.with_extension("key");
    let write = |text: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::write(&key, text).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("the first of our keys\n");
    let peer = format!("[[peer]]\nname = \"other\"\nkey = {key:?}\n");
    let [left, right] = four_paths(&place).map(|text| text + &peer);
    place.apply("left", &left);
    place.apply("right", &right);
    let (a, b) = (place.network(0), place.network(1));
    assert!(soon(|| states(&place, "left") == ["used"; 4]), "{:?}", states(&place, "left"));
    transfer(a, b, "10.98.8.2:7201", 60_000_000, || {
        // A new key, in three steps.
        let steps = [
            "the first of our keys\nthe second of our keys",
            "the second of our keys\nthe first of our keys",
            "the second of our keys",
        ];
        for step in steps {
            write(step);
            // Each switch looks once a second, and may be late on a busy machine.
            std::thread::sleep(Duration::from_secs(4));
        }
    });
    transfer(b, a, "[fd98::1]:7201", 30_000_000, || {});
    let stranger = |name: &str| -> u64 {
        let reading = show::read(&place.state(name)).unwrap();
        reading.paths.iter().filter_map(|path| path.counters.dropped.get("stranger")).sum()
    };
    assert_eq!((stranger("left"), stranger("right")), (0, 0), "no loss by a new key");
    // A switch that starts anew, under a connection.
    transfer(a, b, "10.98.8.2:7202", 60_000_000, || {
        place.kill("right");
        place.apply("right", &right);
    });
    // Somebody at the peer's address, with frames of the plain kind: they reach no tap.
    place.kill("right");
    let forger = namespace::within(Some(place.network(3)), || UdpSocket::bind("10.97.0.2:4799"))
        .unwrap()
        .unwrap();
    let before = show::read(&place.state("left")).unwrap();
    let frame: Vec<u8> =
        [&[0x6d, 0x10, 0, 0, 0, 0, 0, 0][..], &[0xff; 6], &[2; 6], &[0x08, 0], &[7; 60]].concat();
    (0..100).for_each(|_| drop(forger.send_to(&frame, "10.97.0.1:4799")));
    assert!(soon(|| stranger("left") >= 100));
    let after = show::read(&place.state("left")).unwrap();
    assert_eq!(after.ports[0].counters.sent, before.ports[0].counters.sent);
    drop(forger);
    place.apply("right", &right);
    transfer(a, b, "10.98.8.2:7203", 10_000_000, || {});
    assert!(!show::read(&place.state("left")).unwrap().table(None).contains("NOT AUTHENTICATED"));
    fs::remove_file(&key).unwrap();
}

#[test]
fn peers_over_four_paths() {
    let place = needs!(Place::new("peers", &["a", "b", "c", "d"]));
    let [left, right] = four_paths(&place);
    place.apply("left", &left);
    place.apply("right", &right);
    let (a, b) = (place.network(0), place.network(1));
    // Both know each path before the first frame: what is asked below is of four.
    for name in ["left", "right"] {
        assert!(soon(|| states(&place, name) == ["used"; 4]), "{name}: {:?}", states(&place, name));
    }
    transfer(a, b, "10.98.8.2:7001", 100_000_000, || {});
    transfer(b, a, "[fd98::1]:7001", 50_000_000, || {});
    let reading = show::read(&place.state("right")).unwrap();
    let share: Vec<u64> = reading.paths.iter().map(|p| p.counters.received_bytes).collect();
    // Not alike: super-segments of a write's end are short, and turns may give all of those to one
    // path.
    assert!(
        share.iter().all(|s| *s > share.iter().sum::<u64>() / 40),
        "all paths carry: {share:?}"
    );
    assert!(reading.edge.packets > 3 * reading.edge.segments, "merged: {:?}", reading.edge);
    assert_eq!(reading.buffers, 0);
    // A peer that does not answer, and comes back under the connection.
    transfer(a, b, "10.98.8.2:7002", 100_000_000, || {
        place.kill("right");
        std::thread::sleep(Duration::from_millis(300));
        place.apply("right", &right);
    });
    let left_now = show::read(&place.state("left")).unwrap();
    // Its host has reported closed ports.
    let reports: u64 = left_now.paths.iter().map(|path| path.reports_ignored).sum();
    assert!(reports > 0, "{left_now:?}");
    // Somebody at the peer's address who sends anything.
    place.kill("right");
    let forger = namespace::within(Some(place.network(3)), || UdpSocket::bind("10.97.0.2:4799"))
        .unwrap()
        .unwrap();
    for i in 0..5000u64 {
        let mut bytes: Vec<u8> = (i..i + 20 + i % 1300).map(|j| byte(j * 31)).collect();
        if i % 2 == 0 {
            bytes[..8].copy_from_slice(&[
                0x6d,
                0x10 | (i / 2 % 2) as u8,
                byte(i),
                byte(i + 1),
                byte(i + 2),
                byte(i + 3),
                0,
                0,
            ]);
        }
        let _ = forger.send_to(&bytes, "10.97.0.1:4799");
    }
    assert!(soon(|| show::read(&place.state("left"))
        .is_ok_and(|r| r.paths[0].counters.dropped.contains_key("bad-encapsulation"))));
    drop(forger);
    let before = left_now.pid;
    place.apply("right", &right);
    transfer(a, b, "10.98.8.2:7003", 50_000_000, || {});
    assert_eq!(show::read(&place.state("left")).unwrap().pid, before, "it has never fallen");
}

/// Taps of 1500 over paths of 1500: connections come up and carry, and a sender that may not cut is
/// notified.
#[test]
fn what_is_too_long_for_paths_is_refused_with_an_answer() {
    let place = needs!(Place::new("mtu", &["a", "b", "c", "d"]));
    let plain = four_paths(&place);
    // Nothing is said: the switch chooses what fits.
    let [left, right] = plain.clone().map(|text| text.replace("mtu = 1400\n", ""));
    place.apply("left", &left);
    assert_eq!(place.apply("right", &right).ports[0].mtu, 1450);
    let (a, b) = (place.network(0), place.network(1));
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    transfer(a, b, "10.98.8.2:7301", 20_000_000, || {});
    let narrow = |name: &str| {
        show::read(&place.state(name)).unwrap().paths.iter().any(|p| p.health.is_narrow)
    };
    assert!(!narrow("left"), "{}", show::read(&place.state("left")).unwrap().table(None));
    // A stated MTU stays, and is reported.
    let [left, right] = plain.map(|text| text.replace("mtu = 1400", "mtu = 1500"));
    place.apply("left", &left);
    assert_eq!(place.apply("right", &right).ports[0].mtu, 1500);
    assert!(soon(|| states(&place, "left") == ["used"; 4]) && narrow("left"));
    transfer(a, b, "10.98.8.2:7302", 20_000_000, || {});
    transfer(b, a, "[fd98::1]:7302", 20_000_000, || {});
    // Datagrams that may not be cut: the kernel learns, and says so.
    let exactly = |mtu: usize| {
        for (from, to, length) in [
            ("10.98.8.1:0", "10.98.8.2:7303", mtu - 28),
            ("[fd98::1]:0", "[fd98::2]:7303", mtu - 48),
        ] {
            let open = |network: &str, at: &str| {
                namespace::within(Some(network), || UdpSocket::bind(at)).unwrap().unwrap()
            };
            let (here, there) = (open(a, from), open(b, to));
            there.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            match from.starts_with('[') {
                true => sockopt::set_ipv6_mtu_discover(&here, Ipv6PathMtuDiscovery::DO).unwrap(),
                false => sockopt::set_ip_mtu_discover(&here, Ipv4PathMtuDiscovery::DO).unwrap(),
            }
            here.connect(to).unwrap();
            // The answer to an earlier datagram is an error of the next call: not that, but what is
            // known now.
            let send = |length: usize| {
                let _ = here.take_error();
                here.send(&vec![7; length]).map_err(|e| Errno::from_io_error(&e))
            };
            assert!(
                soon(|| send(length + 1) == Err(Some(Errno::MSGSIZE))),
                "{to}: the sender is never told"
            );
            assert!(soon(|| send(length) == Ok(length)), "{to}: what fits is refused");
            assert_eq!(there.recv(&mut [0; 2000]).unwrap(), length, "exactly so much fits");
        }
    };
    exactly(1450);
    // It fits the paths, and not the port at their end: the switch there answers.
    place.apply("right", &right.replace("mtu = 1500", "mtu = 1300"));
    exactly(1300);
}
