//! Addresses that move, loops, and senders that claim addresses of others.

use super::place::{Place, ip, soon};
use millpond_linux::dataplane::port::{AfPacket, Device, Port, Received};
use millpond_linux::switch::reading::Reading;
use millpond_linux::switch::{apply, connect, doctor, show};
use millpond_worlds::{namespace, needs};
use std::io::IoSlice;
use std::time::{Duration, Instant};

/// A station at the end of a tap or a veth pair.
struct End {
    wire: Port,
    own: [u8; 6],
}

const VIRTUAL: [u8; 6] = [0, 0, 0x5e, 0, 1, 0x32];
const TEST: u16 = 0x88b7;

impl End {
    fn open(network: &str, device: &str) -> End {
        let open = || {
            let own = Device::new(device).unwrap().mac().unwrap().0;
            End { wire: Port::AfPacket(AfPacket::open(device).unwrap()), own }
        };
        namespace::within(Some(network), open).unwrap()
    }
    fn send(&mut self, to: [u8; 6], from: [u8; 6], kind: u16, content: &[u8]) {
        let mut frame = [&to[..], &from, &kind.to_be_bytes(), content].concat();
        frame.resize(frame.len().max(60), 0);
        self.wire.send(&Default::default(), &[IoSlice::new(&frame)]).unwrap();
    }
    /// Gratuitous ARP of the virtual address, from `from`.
    fn announce(&mut self, from: [u8; 6]) {
        let content =
            [&[0, 1, 8, 0, 6, 4, 0, 1][..], &from, &[10, 77, 0, 254], &[0; 6], &[10, 77, 0, 254]];
        self.send([0xff; 6], from, 0x0806, &content.concat());
    }
    /// How many test frames have come, within `time`.
    fn count(&mut self, time: Duration) -> usize {
        let (start, mut room, mut count) = (Instant::now(), vec![0; 70_000], 0);
        while start.elapsed() < time {
            match self.wire.receive(&mut room) {
                Received::Frame { start, .. } => {
                    count += usize::from(room[start + 12..start + 14] == TEST.to_be_bytes());
                }
                _ => std::thread::sleep(Duration::from_micros(200)),
            }
        }
        count
    }
}

fn veth(place: &Place, ends: [(usize, &str); 2]) {
    let [(one, a), (two, b)] = ends;
    let other = ["type", "veth", "peer", "name", b, "netns", place.network(two)];
    assert!(ip(&[&["-n", place.network(one), "link", "add", a][..], &other].concat()));
    for (network, device) in ends {
        assert!(ip(&["-n", place.network(network), "link", "set", device, "up"]));
    }
}

/// A path between the namespaces, as the texts of its two ends.
fn path(place: &Place, ends: [usize; 2]) -> [String; 2] {
    veth(place, [(ends[0], "mpu1"), (ends[1], "mpu2")]);
    let end = |own: usize| {
        let (device, other) = (format!("mpu{own}"), 3 - own);
        let (network, address) = (ends[own - 1], format!("10.96.0.{own}/24"));
        assert!(ip(&["-n", place.network(network), "addr", "add", &address, "dev", &device]));
        format!(
            "[[path]]\npeer = \"other\"\nlocal = \"10.96.0.{own}:4799\"\n\
             remote = \"10.96.0.{other}:4799\"\nnamespace = \"NET{network}\"\n"
        )
    };
    [1, 2].map(end)
}

fn tap(name: &str, network: usize) -> String {
    format!("[[port]]\nname = \"{name}\"\ndevice = \"mp{name}\"\nnamespace = \"NET{network}\"\n")
}
fn wire(name: &str, network: usize) -> String {
    tap(name, network) + "kind = \"af-packet\"\n"
}

#[test]
fn virtual_router_address_follows_its_announcement_to_a_peer_and_back() {
    let place = needs!(Place::new("moves", &["c", "a", "b", "u", "v"]));
    let [left, right] = path(&place, [3, 4]);
    place.apply("left", &(tap("c", 0) + &tap("a", 1) + &left));
    place.apply("right", &(tap("b", 2) + &right));
    let mut client = End::open(place.network(0), "mpc");
    let mut routers = [End::open(place.network(1), "mpa"), End::open(place.network(2), "mpb")];
    let own = client.own;
    // A path takes a moment.
    assert!(soon(|| show::read(&place.state("left")).unwrap().paths[0].health.state == "used"));
    for (turn, master) in [0, 1, 0, 1].into_iter().enumerate() {
        // The former master is alive to the end, but for this address.
        routers[1 - master].send([0xff; 6], VIRTUAL, TEST, &[]);
        std::thread::sleep(Duration::from_millis(100));
        routers[master].announce(VIRTUAL);
        std::thread::sleep(Duration::from_millis(200));
        for router in &mut routers {
            router.count(Duration::from_millis(5));
        }
        (0..50).for_each(|_| client.send(VIRTUAL, own, TEST, &[]));
        let got = [0, 1].map(|at: usize| routers[at].count(Duration::from_millis(200)));
        assert_eq!((got[master], got[1 - master]), (50, 0), "turn {turn}");
        // A dispute is one of less than a second.
        std::thread::sleep(Duration::from_millis(1100));
    }
}

fn looped(reading: &Reading) -> Vec<String> {
    let ports = reading.ports.iter();
    ports.filter_map(|p| Some(format!("{}: {}", p.name, p.looped.as_ref()?))).collect()
}

/// A bridge in a namespace, with these ends on it.
fn bridge(place: &Place, network: usize, ends: &[&str]) {
    let network = place.network(network);
    assert!(ip(&["-n", network, "link", "add", "mpbr", "type", "bridge"]));
    assert!(ip(&["-n", network, "link", "set", "mpbr", "up"]));
    for end in ends {
        assert!(ip(&["-n", network, "link", "set", end, "master", "mpbr"]));
    }
}

#[test]
fn loop_of_two_switches_on_a_segment_is_blocked_and_named_until_it_is_gone() {
    let place = needs!(Place::new("segment", &["s", "t", "l", "h"]));
    for (network, wire, end) in [(0, "mpx", "px"), (1, "mpy", "py"), (3, "mpz", "pz")] {
        veth(&place, [(network, wire), (2, end)]);
    }
    bridge(&place, 2, &["px", "py", "pz"]);
    let [left, right] = path(&place, [0, 1]);
    place.apply("left", &(wire("x", 0) + &left));
    place.apply("right", &(wire("y", 1) + &right));
    let both = || ["left", "right"].map(|name| show::read(&place.state(name)).unwrap());
    let blocked = || both().iter().flat_map(looped).collect::<Vec<_>>();
    assert!(soon(|| !blocked().is_empty()), "{:?}", both());
    // No storm: a broadcast comes once or twice.
    let mut host = End::open(place.network(3), "mpz");
    std::thread::sleep(Duration::from_millis(1500));
    let before: u64 = both().iter().map(|it| it.ports[0].counters.sent).sum();
    (0..10).for_each(|_| host.send([0xff; 6], [2, 0, 0, 0, 0, 0x77], TEST, &[]));
    assert!(host.count(Duration::from_secs(1)) <= 20);
    let after: u64 = both().iter().map(|it| it.ports[0].counters.sent).sum();
    assert!(after - before < 200, "{before} {after}");
    assert_eq!(blocked().len(), 1, "one of the two is enough: {:?}", blocked());
    assert!(blocked()[0].ends_with(": peer other"), "{:?}", blocked());
    let name = if looped(&both()[0]).is_empty() { "right" } else { "left" };
    let reading = show::read(&place.state(name)).unwrap();
    assert!(reading.table(None).contains("a loop: its frames come back at peer other"));
    assert!(reading.prometheus().contains("millpond_switch_port_looped{port="));
    assert!(doctor::examine_ports(&reading).found.contains("peer other"));
    let config = apply::installed(&place.state(name)).unwrap().unwrap();
    let again = apply::apply(&place.state(name), &config, &|| unreachable!("it runs")).unwrap();
    assert!(again.notes.iter().any(|note| note.contains("a loop")), "{again:?}");
    // It is gone, and the port comes back.
    assert!(ip(&["-n", place.network(2), "link", "set", "py", "nomaster"]));
    assert!(soon(|| blocked().is_empty()), "{:?}", blocked());
}

#[test]
fn cable_between_two_ports_blocks_the_later_one() {
    let place = needs!(Place::new("cable", &["s", "h"]));
    veth(&place, [(0, "mpx"), (0, "mpy")]);
    place.apply("s", &(wire("x", 0) + &wire("y", 0) + &tap("h", 1)));
    let reading = || show::read(&place.state("s")).unwrap();
    assert!(soon(|| looped(&reading()) == ["y: port x"]), "{:?}", reading());
    let mut host = End::open(place.network(1), "mph");
    let before = reading().ports[0].counters.sent;
    (0..10).for_each(|_| host.send([0xff; 6], [2, 0, 0, 0, 0, 0x77], TEST, &[]));
    assert_eq!(host.count(Duration::from_secs(1)), 0, "nothing comes back");
    assert!(reading().ports[0].counters.sent - before < 100, "{:?}", reading());
}

/// Sends each frame that a container must not, and some that it may; which of them came.
fn claims(place: &Place, open: bool) -> Vec<&'static str> {
    let names = [0, 1].map(|at| place.network(at).to_string());
    let state = place.state(if open { "open" } else { "guarded" });
    let subnet = "10.95.0.0/24".parse().unwrap();
    connect::connect(&state, &names, subnet, !open, &|| super::program(&state)).unwrap();
    let [mut from, mut to] = [0, 1].map(|at| End::open(place.network(at), connect::DEVICE));
    let own = from.own;
    let arp = |mac: [u8; 6], ip: u8| {
        let ends = [&mac[..], &[10, 95, 0, ip], &[0; 6], &[10, 95, 0, 2]].concat();
        [&[0, 1, 8, 0, 6, 4, 0, 2][..], &ends].concat()
    };
    let four = |ip: u8| {
        [&[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 99, 0, 0, 10, 95, 0, ip][..], &[255; 4], &[0; 8]]
            .concat()
    };
    let six = |ip: u8| {
        let ends = [[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ip], [0xff; 16]].concat();
        [&[0x60, 0, 0, 0, 0, 8, 99, 64][..], &ends, &[0; 8]].concat()
    };
    let other = [2, 0, 0, 0, 0, 9];
    let claims: [(&str, [u8; 6], u16, Vec<u8>); 7] = [
        ("own ip", own, 0x0800, four(1)),
        ("own arp", own, 0x0806, arp(own, 1)),
        ("mac", other, TEST, vec![]),
        ("ip", own, 0x0800, four(7)),
        ("arp", own, 0x0806, arp(own, 7)),
        ("arp mac", own, 0x0806, arp(other, 1)),
        ("ipv6", own, 0x86dd, six(7)),
    ];
    let mut came = Vec::new();
    for (name, source, kind, mut content) in claims {
        // A mark at the end, to find it by.
        content.resize(46, 0);
        content.extend(b"claim");
        from.send([0xff; 6], source, kind, &content);
        let (start, mut room) = (Instant::now(), vec![0; 70_000]);
        while start.elapsed() < Duration::from_millis(300) {
            if let Received::Frame { start: at, length, .. } = to.wire.receive(&mut room)
                && room[at..at + length].ends_with(b"claim")
            {
                came.push(name);
                break;
            }
        }
    }
    let port = &show::read(&state).unwrap().ports[0];
    let dropped = |reason: &str| port.counters.dropped.get(reason).copied().unwrap_or(0);
    assert_eq!(dropped("source-guard") > 0 && dropped("foreign-source") > 0, !open);
    apply::remove_all(&state).unwrap();
    came
}

#[test]
fn container_sends_from_its_own_addresses_unless_it_is_opened() {
    let place = needs!(Place::new("guard", &["a", "b"]));
    assert_eq!(claims(&place, false), ["own ip", "own arp"]);
    let all = ["own ip", "own arp", "mac", "ip", "arp", "arp mac", "ipv6"];
    assert_eq!(claims(&place, true), all);
}
