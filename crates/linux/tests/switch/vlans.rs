//! VLANs: who hears whom at one switch, over a trunk between two, and over paths.

use super::peers::{four_paths, states};
use super::place::{Place, connect, ip, soon, transfer};
use millpond_linux::dataplane::frame::{Mac, checksum, parse};
use millpond_linux::dataplane::port::{AfPacket, Port, Received};
use millpond_linux::switch::show;
use millpond_worlds::{namespace, needs};
use std::io::{IoSlice, Write};
use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

const THREE: &str = r#"
[[port]]
name = "a"
device = "mpa"
namespace = "NET0"
addresses = ["10.98.8.1/24", "fd98::1/64"]
vlan = 10
[[port]]
name = "b"
device = "mpb"
namespace = "NET1"
addresses = ["10.98.8.2/24", "fd98::2/64"]
vlan = 10
[[port]]
name = "c"
device = "mpc"
namespace = "NET2"
addresses = ["10.98.8.3/24"]
vlan = 20
"#;

/// Something on the trunk's end that has no IP, and sees and makes tags itself.
struct Trunk(Port);

const OURS: Mac = Mac([2, 0, 0, 0, 0, 9]);

impl Trunk {
    /// A frame that came to the trunk's end, and that `is_it` says is the one.
    fn expect(&mut self, what: &str, is_it: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let (start, mut room) = (Instant::now(), vec![0; 70_000]);
        while start.elapsed() < Duration::from_secs(15) {
            match self.0.receive(&mut room) {
                Received::Frame { start, length, .. } if is_it(&room[start..start + length]) => {
                    return room[start..start + length].to_vec();
                }
                Received::Nothing => std::thread::sleep(Duration::from_millis(1)),
                _ => {}
            }
        }
        panic!("{what} has not come");
    }
    /// Asks for an echo (RFC 792) in a VLAN, from 10.98.8.9.
    fn ask(&mut self, vlan: u16, to: Mac, last: u8) {
        let mut icmp = [&[8, 0, 0, 0, 0, 1, 0, 1][..], &[0x5a; 32]].concat();
        let sum = checksum::Sum::default().bytes(&icmp).checksum();
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut network = [0x45, 0, 0, 60, 0, 1, 0, 0, 64, 1, 0, 0, 10, 98, 8, 9, 10, 98, 8, last];
        let sum = checksum::Sum::default().bytes(&network).checksum();
        network[10..12].copy_from_slice(&sum.to_be_bytes());
        let [a, b] = vlan.to_be_bytes();
        let tagged = [0x81, 0, a, b, 0x08, 0];
        let frame = [&to.0[..], &OURS.0, &tagged, &network, &icmp].concat();
        self.0.send(&Default::default(), &[IoSlice::new(&frame)]).unwrap();
    }
}

/// Asks who has an address of the network, over and over.
fn look_for(network: &str, last: u8) {
    let socket =
        namespace::within(Some(network), || UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    let _ = socket.send_to(b"?", format!("10.98.8.{last}:9"));
}

fn is_question(frame: &[u8], vlan: u16) -> bool {
    let is_arp = frame.get(16..18) == Some(&[0x08, 0x06]);
    is_arp && parse(frame).is_some_and(|view| view.vlan == Some(vlan))
}

#[test]
fn two_vlans_share_a_switch_and_hear_nothing_of_each_other() {
    let place = needs!(Place::new("vlans", &["a", "b", "c", "d"]));
    let trunk =
        "[[port]]\nname = \"d\"\ndevice = \"mpd\"\nnamespace = \"NET3\"\ntrunk = [20, 10]\n";
    place.apply("s", &format!("{THREE}{trunk}"));
    let [a, b, c, d] = [0, 1, 2, 3].map(|i| place.network(i));
    let end = namespace::within(Some(d), || AfPacket::open("mpd")).unwrap().unwrap();
    let mut end = Trunk(Port::AfPacket(end));
    transfer(a, b, "10.98.8.2:7501", 30_000_000, || {});
    transfer(b, a, "[fd98::1]:7501", 10_000_000, || {});
    // A question of each VLAN comes with its tag.
    look_for(a, 77);
    look_for(c, 77);
    end.expect("a question of VLAN 10", |frame| is_question(frame, 10));
    let asked = end.expect("a question of VLAN 20", |frame| is_question(frame, 20));
    let their = parse(&asked).unwrap().source;
    // The trunk's end asks for an echo, in the VLAN that the address is in, and in the other.
    let known = [
        "-n",
        c,
        "neigh",
        "replace",
        "10.98.8.9",
        "lladdr",
        &OURS.to_string(),
        "dev",
        "mpc",
        "nud",
        "permanent",
    ];
    assert!(ip(&known));
    end.ask(10, their, 3);
    end.ask(30, their, 3);
    end.ask(20, their, 3);
    let is_echo = |frame: &[u8]| frame.get(27) == Some(&1) && frame.get(38) == Some(&0);
    let echo = end.expect("an echo", is_echo);
    assert_eq!((parse(&echo).unwrap().vlan, parse(&echo).unwrap().destination), (Some(20), OURS));
    let reading = show::read(&place.state("s")).unwrap();
    let port = |name: &str| reading.ports.iter().find(|port| port.name == name).unwrap();
    // Nothing but what the trunk's end has asked: not the broadcasts of the other two, nor what was
    // for another VLAN.
    assert_eq!(port("c").counters.sent, 1, "{reading:?}");
    assert!(port("d").counters.dropped["foreign-vlan"] >= 1, "VLAN 30: {reading:?}");
    assert_eq!(
        (port("a").vlan, port("c").vlan, &port("d").trunk[..]),
        (Some(10), Some(20), &[10, 20][..])
    );
    let table = show::read_addresses(&place.state("s")).unwrap();
    let of = |name: &str| {
        table
            .iter()
            .filter(|it| it.port.as_deref() == Some(name))
            .map(|it| it.vlan)
            .collect::<Vec<_>>()
    };
    assert_eq!((of("a"), of("c")), (vec![Some(10)], vec![Some(20)]), "{table:?}");
    assert_eq!(of("d"), [Some(10), Some(20)], "the same address in two");
    // A frame that comes with a tag of its own is nobody's, though it names the port's VLAN.
    let own = namespace::within(Some(c), || AfPacket::open("mpc")).unwrap().unwrap();
    Trunk(Port::AfPacket(own)).ask(20, Mac::BROADCAST, 2);
    let refused = || {
        show::read(&place.state("s")).unwrap().ports[2]
            .counters
            .dropped
            .get("foreign-vlan")
            .copied()
    };
    assert!(soon(|| refused() == Some(1)), "{:?}", refused());
}

/// Ends with the same addresses, of both kinds, in two VLANs.
fn both_cross(place: &Place, port: u16) {
    let [a, b, other_a, other_b] = [0, 1, 4, 5].map(|i| place.network(i));
    let address = format!("10.98.8.2:{port}");
    std::thread::scope(|scope| {
        scope.spawn(|| transfer(a, b, &address, 40_000_000, || {}));
        scope.spawn(|| transfer(other_a, other_b, &address, 40_000_000, || {}));
    });
    transfer(b, a, &format!("10.98.8.1:{port}"), 10_000_000, || {});
}

fn flows_have_their_vlan(place: &Place) {
    let address = "10.98.8.2:7600".parse().unwrap();
    let listener =
        namespace::within(Some(place.network(5)), || TcpListener::bind(address)).unwrap().unwrap();
    let mut stream = connect(place.network(4), address);
    stream.write_all(b"!").unwrap();
    let flows = show::read_flows(&place.state("left")).unwrap();
    assert!(
        flows.iter().any(|flow| flow.vlan == Some(20) && flow.destination == "10.98.8.2:7600"),
        "{flows:?}"
    );
    drop((stream, listener));
}

#[test]
fn vlans_with_the_same_addresses_cross_a_trunk_and_paths() {
    let place = needs!(Place::new("trunk", &["a", "b", "c", "d", "e", "f"]));
    let second = |name: &str, last: usize, network: usize| {
        format!(
            "[[port]]\nname = \"{name}\"\ndevice = \"mp{name}\"\nnamespace = \
             \"NET{network}\"\nvlan = 20\naddresses = [\"10.98.8.{last}/24\"]\n"
        )
    };
    let paths = four_paths(&place).map(|text| text.replace("mtu = 1400\n", "vlan = 10\n"));
    let [left, right] = &paths;
    let (left, right) =
        (format!("{}{left}", second("e", 1, 4)), format!("{}{right}", second("f", 2, 5)));
    place.apply("left", &left);
    place.apply("right", &right);
    // The four ends have two hardware addresses.
    for (network, device, last) in [(0, "mpa", 1), (4, "mpe", 1), (1, "mpb", 2), (5, "mpf", 2)] {
        let mac = format!("02:00:00:00:00:0{last}");
        assert!(ip(&["-n", place.network(network), "link", "set", device, "address", &mac]));
    }
    let used = || states(&place, "left") == ["used"; 4] && states(&place, "right") == ["used"; 4];
    assert!(soon(used), "{:?}", states(&place, "left"));
    let reading = |name: &str| show::read(&place.state(name)).unwrap();
    let port = |switch: &str, name: &str| {
        reading(switch).ports.into_iter().find(|port| port.name == name).unwrap()
    };
    let mtus = |name: &str| reading(name).ports.iter().map(|port| port.mtu).collect::<Vec<_>>();
    assert!(soon(|| mtus("left") == [1446; 2]), "room for a tag: {:?}", mtus("left"));
    both_cross(&place, 7601);
    let lost = |name: &str| -> Vec<String> {
        let now = reading(name);
        let ports = now.ports.iter().flat_map(|port| port.counters.dropped.keys().cloned());
        ports.chain(now.edge.dropped.keys().cloned()).collect()
    };
    for name in ["left", "right"] {
        assert!(
            !lost(name).iter().any(|reason| reason.ends_with("vlan") || reason == "foreign-source"),
            "{:?}",
            lost(name)
        );
    }
    flows_have_their_vlan(&place);
    // The same over a wire between two trunks, and its super-segments.
    let [c, d] = [place.network(2), place.network(3)];
    assert!(ip(&[
        "-n", c, "link", "add", "mpwl", "type", "veth", "peer", "name", "mpwr", "netns", d
    ]));
    assert!(
        ip(&["-n", c, "link", "set", "mpwl", "up"]) && ip(&["-n", d, "link", "set", "mpwr", "up"])
    );
    let without = |text: &str| text[..text.find("[[path]]").unwrap()].to_string();
    let wire = |device: &str, network: usize, trunk: &str| {
        format!(
            "[[port]]\nname = \"wire\"\nkind = \"af-packet\"\ndevice = \"{device}\"\nnamespace = \
             \"NET{network}\"\n{trunk}"
        )
    };
    let trunk = "trunk = [10, 20]\n";
    place.apply("left", &format!("{}{}", without(&left), wire("mpwl", 2, trunk)));
    place.apply("right", &format!("{}{}", without(&right), wire("mpwr", 3, trunk)));
    both_cross(&place, 7602);
    let large = port("left", "wire").counters.sent_large;
    assert!(large > 100, "super-segments cross with their tags: {large}");
    // A trunk that has lost a VLAN carries the other alone.
    place.apply("right", &format!("{}{}", without(&right), wire("mpwr", 3, "trunk = [10]\n")));
    transfer(place.network(0), place.network(1), "10.98.8.2:7603", 10_000_000, || {});
    let before = port("right", "f").counters.sent;
    look_for(place.network(4), 77);
    let refused = || port("right", "wire").counters.dropped.get("foreign-vlan").copied();
    assert!(soon(|| refused().is_some_and(|count| count > 0)), "{:?}", refused());
    assert_eq!(port("right", "f").counters.sent, before);
}
