//! Packets that are too long for where they go, small paths, and checksums on a wire.

use super::peers::{four_paths, states};
use super::place::{Place, TWO, ip, soon, transfer};
use super::tap_and_wire;
use millpond_linux::dataplane::buffers::FRAME_MAX;
use millpond_linux::dataplane::frame::parse::tcp;
use millpond_linux::dataplane::frame::{checksum, parse};
use millpond_linux::dataplane::port::{AfPacket, Port, Received};
use millpond_linux::switch::show;
use millpond_worlds::{namespace, needs};
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery};
use std::net::UdpSocket;
use std::time::Duration;

/// Sends a datagram that may be cut from the first namespace to the second.
fn crosses(place: &Place, length: usize) {
    let open = |network: usize, at: &str| {
        namespace::within(Some(place.network(network)), || UdpSocket::bind(at)).unwrap().unwrap()
    };
    let (here, there) = (open(0, "10.98.8.1:0"), open(1, "10.98.8.2:7303"));
    there.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    sockopt::set_ip_mtu_discover(&here, Ipv4PathMtuDiscovery::DONT).unwrap();
    let datagram: Vec<u8> = (0..length as u64).map(super::place::byte).collect();
    here.send_to(&datagram, "10.98.8.2:7303").unwrap();
    let mut room = vec![0; length + 1];
    assert_eq!(there.recv(&mut room).unwrap(), length);
    assert_eq!(room[..length], datagram);
}

#[test]
fn a_packet_that_may_be_cut_crosses_a_narrow_port() {
    let place = needs!(Place::new("cut", &["a", "b"]));
    let narrow = TWO.replacen("name = \"b\"", "name = \"b\"\nmtu = 600", 1);
    place.apply("s", &narrow.replace("fd98::2/64", "10.98.8.12/24"));
    for length in [1472, 1000, 4000] {
        crosses(&place, length);
    }
}

#[test]
fn a_packet_that_may_be_cut_crosses_narrow_paths() {
    let place = needs!(Place::new("cut-paths", &["a", "b", "c", "d"]));
    let [left, right] = four_paths(&place).map(|text| text.replace("mtu = 1400", "mtu = 1500"));
    place.apply("left", &left);
    place.apply("right", &right);
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    for length in [1472, 4000] {
        crosses(&place, length);
    }
}

/// The frames that an interface gets until nothing came for so long.
fn frames(wire: &mut Port, patience: Duration) -> Vec<(Vec<u8>, bool, u16)> {
    let (mut buffer, mut all) = (vec![0; FRAME_MAX], Vec::new());
    let mut since = std::time::Instant::now();
    while since.elapsed() < patience {
        match wire.receive(&mut buffer) {
            Received::Frame { start, length, offload } => {
                let frame = buffer[start..start + length].to_vec();
                all.push((frame, offload.partial, offload.gso_size));
                since = std::time::Instant::now();
            }
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    all
}

#[test]
fn lone_packets_leave_a_wire_with_whole_checksums() {
    let place = needs!(Place::new("lone", &["a", "b", "c"]));
    tap_and_wire(&place, "");
    let open = |network: usize, device: &str| {
        let open = || Port::AfPacket(AfPacket::open(device).unwrap());
        namespace::within(Some(place.network(network)), open).unwrap()
    };
    let mut wire = open(1, "mpc");
    transfer(place.network(0), place.network(1), "10.98.8.2:7001", 1_000, || {});
    let mut lone = 0;
    for (frame, is_partial, gso) in frames(&mut wire, Duration::from_millis(300)) {
        let view = parse(&frame).unwrap();
        if let Some(layers) = view.tcp().filter(|_| gso == 0) {
            assert!(!is_partial && checksum::is_right(&frame, layers), "{frame:?}");
            lone += 1;
        }
    }
    assert!(lone >= 4, "a handshake, data, an end: {lone}");
}

/// The longest segment that a SYN to the second namespace asks for.
fn asked_for(place: &Place, address: &str) -> u16 {
    let open = || Port::AfPacket(AfPacket::open("mpb").unwrap());
    let mut tap = namespace::within(Some(place.network(1)), open).unwrap();
    transfer(place.network(0), place.network(1), address, 200_000, || {});
    let is_syn = |frame: &Vec<u8>| {
        let view = parse(frame).unwrap();
        let layers = *view.tcp()?;
        let flags = tcp::flags(frame, &layers);
        (flags & (tcp::SYN | tcp::ACK) == tcp::SYN).then_some(layers)
    };
    let all = frames(&mut tap, Duration::from_millis(300));
    let (frame, layers) = all.iter().find_map(|(it, ..)| Some((it, is_syn(it)?))).unwrap();
    // The option is the first of Linux's.
    let at = layers.transport + 20;
    assert_eq!(frame[at..at + 2], [2, 4]);
    u16::from_be_bytes([frame[at + 2], frame[at + 3]])
}

#[test]
fn connections_over_small_paths_ask_for_what_fits() {
    let place = needs!(Place::new("small", &["a", "b", "c", "d"]));
    let [left, right] = four_paths(&place).map(|text| {
        let second = text.match_indices("[[path]]").nth(1).unwrap().0;
        text[..second].replace("mtu = 1400", "mtu = 1500")
    });
    place.apply("left", &left);
    place.apply("right", &right);
    assert!(soon(|| states(&place, "left") == ["used"]));
    for (mtu, port) in [1500u16, 700, 576, 300].into_iter().zip(7501..) {
        for (network, device) in [(2, "mpc0"), (3, "mpd0")] {
            let mtu = mtu.to_string();
            assert!(ip(&["-n", place.network(network), "link", "set", device, "mtu", &mtu]));
        }
        // Outer headers, those of the encapsulation, Ethernet's, and IP's and TCP's.
        let fits = mtu - 28 - 8 - 14 - 40;
        // The switch reads MTUs once a second.
        std::thread::sleep(Duration::from_millis(2500));
        assert_eq!(asked_for(&place, &format!("10.98.8.2:{port}")), fits, "MTU {mtu}");
    }
}

/// The switch chooses the MTU of a tap that its file says nothing of, for as long as it runs.
#[test]
fn taps_follow_their_paths_after_a_change_of_the_file() {
    let place = needs!(Place::new("follows", &["a", "b", "c", "d"]));
    let [left, right] = four_paths(&place).map(|text| text.replace("mtu = 1400\n", ""));
    place.apply("left", &left);
    place.apply("right", &right);
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    assert_eq!(place.apply("left", &format!("spin = \"60us\"\n{left}")).ports[0].mtu, 1450);
    for i in 0..4 {
        for (network, device) in [(2, format!("mpc{i}")), (3, format!("mpd{i}"))] {
            let change = ["link", "set", &device, "mtu", "1400"];
            assert!(ip(&[&["-n", place.network(network)][..], &change].concat()));
        }
    }
    let mtu = || show::read(&place.state("left")).unwrap().ports[0].mtu;
    assert!(soon(|| mtu() == 1350), "{}", mtu());
}
