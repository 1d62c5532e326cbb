//! Messages that nobody has authenticated, sent by somebody in the underlay: reports of ICMP,
//! redirects, neighbours' answers. A keyed tunnel goes on.

use super::peers::{four_paths, states};
use super::place::{Place, ip, soon, transfer};
use millpond_linux::limit::doctor::State;
use millpond_linux::switch::{apply, doctor, show};
use millpond_worlds::{namespace, needs};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// One end of each path by its address: two paths of IPv4, two of IPv6.
fn ends(last: u8) -> [IpAddr; 4] {
    [0, 1, 2, 3].map(|i| match i {
        0 | 1 => format!("10.97.{i}.{last}").parse().unwrap(),
        _ => format!("fd97:{i}::{last}").parse().unwrap(),
    })
}

/// Two switches with a key and four wires; the file with the key.
fn keyed(place: &Place) -> String {
    let texts = four_paths(place);
    for i in 0..4 {
        for (network, device, last) in [(2, format!("mpc{i}"), 1), (3, format!("mpd{i}"), 2)] {
            let address = format!("fd97:{i}::{last}/64");
            let network = place.network(network);
            assert!(ip(&["-n", network, "addr", "add", &address, "dev", &device, "nodad"]));
        }
    }
    use std::os::unix::fs::PermissionsExt;
    let key = place.folder.with_extension("key");
    fs::write(&key, "a key of this test\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let peer = format!("[[peer]]\nname = \"other\"\nkey = {key:?}\ndead-after = \"500ms\"\n");
    for (name, mut text) in ["left", "right"].into_iter().zip(texts) {
        for (i, last) in [2, 3].into_iter().flat_map(|i| [(i, 1), (i, 2)]) {
            let (old, new) = (format!("10.97.{i}.{last}:"), format!("[fd97:{i}::{last}]:"));
            text = text.replace(&old, &new);
        }
        place.apply(name, &(text + &peer));
    }
    key.to_string_lossy().into_owned()
}

fn sum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| u32::from(*b)));
    let sum = words.fold(0u64, |sum, word| sum + u64::from(word));
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// The head of a datagram of a path, as a router that reports on it quotes it.
fn quoted(from: IpAddr, to: IpAddr) -> Vec<u8> {
    let length = 1200u16;
    let mut bytes = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut head = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
            head[2..4].copy_from_slice(&(length + 20).to_be_bytes());
            [&head[..], &from.octets(), &to.octets()].concat()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut head = [0x60, 0, 0, 0, 0, 0, 17, 64];
            head[4..6].copy_from_slice(&length.to_be_bytes());
            [&head[..], &from.octets(), &to.octets()].concat()
        }
        _ => unreachable!(),
    };
    for word in [4799, 4799, length, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.resize(bytes.len() + 64, 7);
    bytes
}

/// Sends a report about datagrams from `to` to `from`, out of the namespace of `from`.
fn report(from: IpAddr, to: IpAddr, [kind, code]: [u8; 2], word: u32) {
    let (family, protocol) = match to {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    let mut bytes = [&[kind, code, 0, 0][..], &word.to_be_bytes(), &quoted(to, from)].concat();
    if to.is_ipv4() {
        let checksum = sum(&bytes);
        bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
    let socket = socket(family, SocketType::RAW, Some(protocol)).unwrap();
    sendto(&socket, &bytes, SendFlags::empty(), &SocketAddr::new(to, 0)).unwrap();
}

/// Every report that changes a socket or a route, for each path, `count` times.
fn forge(place: &Place, count: usize) {
    let reports = || {
        for (from, to) in ends(2).into_iter().zip(ends(1)) {
            let four: &[([u8; 2], u32)] = &[
                ([3, 4], 552),         // fragmentation needed
                ([3, 0], 0),           // network unreachable
                ([3, 1], 0),           // host unreachable
                ([3, 2], 0),           // protocol unreachable
                ([3, 3], 0),           // port unreachable
                ([3, 13], 0),          // prohibited
                ([12, 0], 0),          // parameter problem
                ([5, 1], 0x0a61_0063), // redirect to 10.97.0.99
            ];
            let six: &[([u8; 2], u32)] =
                &[([2, 0], 1280), ([1, 0], 0), ([1, 1], 0), ([1, 3], 0), ([1, 4], 0), ([4, 0], 0)];
            for (what, word) in if to.is_ipv4() { four } else { six } {
                (0..count).for_each(|_| report(from, to, *what, *word));
            }
        }
    };
    namespace::within(Some(place.network(3)), reports).unwrap();
}

fn sizes(place: &Place) -> Vec<u32> {
    let reading = show::read(&place.state("left")).unwrap();
    reading.paths.iter().map(|path| path.health.size).collect()
}

fn lost(place: &Place) -> u64 {
    let reading = show::read(&place.state("left")).unwrap();
    let of = |dropped: &std::collections::BTreeMap<String, u64>| {
        ["oversized", "unreachable", "path-full", "port-refused"]
            .iter()
            .filter_map(|reason| dropped.get(*reason))
            .sum::<u64>()
    };
    let paths = reading.paths.iter().map(|path| of(&path.counters.dropped));
    paths.chain(reading.ports.iter().map(|port| of(&port.counters.dropped))).sum()
}

#[test]
fn four_forged_reports_of_a_smaller_path_do_not_stop_a_keyed_tunnel() {
    let place = needs!(Place::new("forged", &["a", "b", "c", "d"]));
    let key = keyed(&place);
    let all_used = || states(&place, "left") == ["used"; 4];
    assert!(soon(|| all_used() && sizes(&place).iter().all(|size| *size >= 1414)));
    let before = (sizes(&place), lost(&place));
    let too_big = || {
        for (from, to) in ends(2).into_iter().zip(ends(1)) {
            let what = if to.is_ipv4() { ([3, 4], 552) } else { ([2, 0], 1280) };
            report(from, to, what.0, what.1);
        }
    };
    transfer(place.network(0), place.network(1), "10.98.8.2:7401", 50_000_000, || {
        namespace::within(Some(place.network(3)), too_big).unwrap();
    });
    // The switch looks at its routes once a second.
    std::thread::sleep(Duration::from_millis(1500));
    transfer(place.network(0), place.network(1), "10.98.8.2:7402", 20_000_000, || {});
    assert_eq!((sizes(&place), lost(&place)), before);
    assert!(all_used(), "{:?}", states(&place, "left"));
    fs::remove_file(key).unwrap();
}

#[test]
fn forged_reports_and_redirects_change_no_path() {
    let place = needs!(Place::new("reports", &["a", "b", "c", "d"]));
    let key = keyed(&place);
    let all_used = || states(&place, "left") == ["used"; 4];
    assert!(soon(|| all_used() && sizes(&place).iter().all(|size| *size >= 1414)));
    let before = (sizes(&place), lost(&place));
    transfer(place.network(0), place.network(1), "10.98.8.2:7411", 100_000_000, || {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(3) {
            forge(&place, 20);
            assert_eq!(states(&place, "left"), ["used"; 4]);
        }
    });
    assert_eq!((sizes(&place), lost(&place)), before);
    let reading = show::read(&place.state("left")).unwrap();
    assert!(reading.paths.iter().all(|path| path.reports_ignored > 0), "{:?}", reading.paths);
    fs::remove_file(key).unwrap();
}

#[test]
fn redirects_of_the_underlay_are_a_finding() {
    let place = needs!(Place::new("redirects", &["a", "b", "c", "d"]));
    let key = keyed(&place);
    let config = apply::installed(&place.state("left")).unwrap().unwrap();
    let state = || {
        let found = doctor::examine_config(&config).into_iter().find(|it| it.what == "redirects");
        found.unwrap().state
    };
    assert_eq!(state(), State::Lacking, "the kernel's default");
    for interface in ["all", "default", "mpc0", "mpc1", "mpc2", "mpc3"] {
        for family in ["ipv4", "ipv6"] {
            place.set(2, &format!("{family}/conf/{interface}/accept_redirects"), "0");
        }
    }
    assert_eq!(state(), State::Ok);
    fs::remove_file(key).unwrap();
}

/// A neighbour's forged answer leads one path nowhere; the others carry, and an entry that is
/// permanent stays.
#[test]
fn a_forged_neighbour_costs_its_path_alone() {
    let place = needs!(Place::new("neighbour", &["a", "b", "c", "d"]));
    let key = keyed(&place);
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    let out = std::process::Command::new("ip")
        .args(["-n", place.network(3), "-br", "link", "show", "mpd1"])
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&out.stdout).into_owned();
    let mac = out.split_whitespace().nth(2).unwrap();
    let entry = ["neigh", "replace", "10.97.1.2", "lladdr", mac, "dev", "mpc1", "nud", "permanent"];
    assert!(ip(&[&["-n", place.network(2)][..], &entry].concat()));
    let answer = |i: u8| {
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0, 0, 0x99, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
        frame.extend([2, 0, 0, 0, 0, 0x99, 10, 97, i, 2]);
        frame.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 10, 97, i, 1]);
        frame.resize(60, 0);
        frame
    };
    use millpond_linux::dataplane::frame::Offload;
    use millpond_linux::dataplane::port::{AfPacket, Port};
    let mut wires = [0, 1].map(|i| {
        let open = || AfPacket::open(&format!("mpd{i}")).unwrap();
        Port::AfPacket(namespace::within(Some(place.network(3)), open).unwrap())
    });
    let mut forge = || {
        for (i, wire) in wires.iter_mut().enumerate() {
            let frame = answer(i as u8);
            wire.send(&Offload::default(), &[std::io::IoSlice::new(&frame)]).unwrap();
        }
    };
    let start = Instant::now();
    while states(&place, "left")[0] != "dead" {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", states(&place, "left"));
        forge();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(states(&place, "left")[1..], ["used"; 3]);
    transfer(place.network(0), place.network(1), "10.98.8.2:7421", 20_000_000, forge);
    assert_eq!(states(&place, "left")[1..], ["used"; 3]);
    fs::remove_file(key).unwrap();
}

/// A message of ICMPv6 to all nodes of a link, as a frame.
fn to_all_nodes(from: &str, mut body: Vec<u8>) -> Vec<u8> {
    use millpond_linux::dataplane::frame::checksum::Sum;
    let [from, to] = [from, "ff02::1"].map(|it| it.parse::<std::net::Ipv6Addr>().unwrap());
    let addresses = [from.octets(), to.octets()].concat();
    let sum = Sum::default().bytes(&addresses).word(body.len() as u16).word(58).bytes(&body);
    body[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
    let link = [0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x99, 0x86, 0xdd];
    let header = [0x60, 0, 0, 0, 0, body.len() as u8, 58, 255];
    [&link[..], &header, &addresses, &body].concat()
}

/// A router's advertisement: a default route, and this MTU.
fn advertisement(mtu: u32) -> Vec<u8> {
    let body = [134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0];
    to_all_nodes("fe80::99", [&body[..], &mtu.to_be_bytes()].concat())
}

/// A neighbour's advertisement that overrides what is known of an address.
fn neighbour(address: &str) -> Vec<u8> {
    let target = address.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let option = [2, 1, 2, 0, 0, 0, 0, 0x99];
    to_all_nodes(address, [&[136, 0, 0, 0, 0x20, 0, 0, 0][..], &target, &option].concat())
}

#[test]
fn a_forged_neighbour_advertisement_costs_its_path_alone() {
    use millpond_linux::dataplane::frame::Offload;
    use millpond_linux::dataplane::port::{AfPacket, Port};
    let place = needs!(Place::new("advertised", &["a", "b", "c", "d"]));
    let key = keyed(&place);
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    let open = || Port::AfPacket(AfPacket::open("mpd2").unwrap());
    let mut wire = namespace::within(Some(place.network(3)), open).unwrap();
    let frame = neighbour("fd97:2::2");
    let mut forge = || wire.send(&Offload::default(), &[std::io::IoSlice::new(&frame)]).unwrap();
    let start = Instant::now();
    while states(&place, "left")[2] != "dead" {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", states(&place, "left"));
        forge();
        std::thread::sleep(Duration::from_millis(50));
    }
    transfer(place.network(0), place.network(1), "10.98.8.2:7441", 20_000_000, forge);
    let states = states(&place, "left");
    assert_eq!([&states[0], &states[1], &states[3]], ["used"; 3]);
    fs::remove_file(key).unwrap();
}

/// A host of the underlay says that it is a router, and that the link carries little.
#[test]
fn a_forged_router_advertisement_costs_ipv6_paths_alone() {
    use millpond_linux::dataplane::frame::Offload;
    use millpond_linux::dataplane::port::{AfPacket, Port};
    let place = needs!(Place::new("router", &["a", "b", "c", "d"]));
    let key = keyed(&place);
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    let config = apply::installed(&place.state("left")).unwrap().unwrap();
    let finding = || {
        let found = doctor::examine_config(&config);
        found.into_iter().find(|it| it.what == "router advertisements").unwrap().state
    };
    assert_eq!(finding(), State::Lacking, "the kernel's default");
    let mut wires: Vec<Port> = (0..4)
        .map(|i| {
            let open = || AfPacket::open(&format!("mpd{i}")).unwrap();
            Port::AfPacket(namespace::within(Some(place.network(3)), open).unwrap())
        })
        .collect();
    let mut forge = || {
        for wire in &mut wires {
            let frame = advertisement(1280);
            wire.send(&Offload::default(), &[std::io::IoSlice::new(&frame)]).unwrap();
        }
    };
    transfer(place.network(0), place.network(1), "10.98.8.2:7431", 50_000_000, &mut forge);
    let mtu = || {
        let read = || fs::read_to_string("/proc/sys/net/ipv6/conf/mpc2/mtu").unwrap();
        namespace::within(Some(place.network(2)), read).unwrap()
    };
    assert!(soon(|| mtu().trim() == "1280"), "the kernel takes it: {}", mtu());
    forge();
    transfer(place.network(0), place.network(1), "10.98.8.2:7432", 20_000_000, || {});
    assert_eq!(states(&place, "left")[..2], ["used"; 2]);
    // Where it is not taken nothing changes.
    for interface in ["default", "all", "mpc0", "mpc1", "mpc2", "mpc3"] {
        place.set(2, &format!("ipv6/conf/{interface}/accept_ra"), "0");
    }
    assert_eq!(finding(), State::Ok);
    fs::remove_file(key).unwrap();
}
