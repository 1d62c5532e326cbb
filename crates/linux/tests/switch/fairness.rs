//! A tenant that floods, and what its neighbour's TCP has left on the same worker.

use super::figures::{Load, median};
use super::peers::{four_paths, states};
use super::place::{Place, TWO, soon};
use millpond_linux::dataplane::frame::Offload;
use millpond_linux::dataplane::frame::checksum::Sum;
use millpond_linux::dataplane::port::{AfPacket, Port};
use millpond_linux::switch::show;
use millpond_worlds::{namespace, needs};
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A tenant that floods, and one that it floods, in the namespaces with these numbers.
fn flooder(networks: [usize; 2]) -> [String; 2] {
    let port = |name: &str, last: usize, network: usize| {
        format!(
            "[[port]]\nname = \"{name}\"\ndevice = \"mp{name}\"\nnamespace = \"NET{network}\"\n\
             addresses = [\"10.98.8.{last}/24\"]\n"
        )
    };
    [port("c", 3, networks[0]), port("d", 4, networks[1])]
}

/// The traffic that a tenant floods with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Datagrams to a port that nobody has.
    Udp,
    /// Connections that begin, to a port that nobody has.
    Syn,
    /// Datagrams to an address that nobody has, which go to everybody.
    Unknown,
}

/// A frame of 64 bytes with its check sequence; `number` varies its source port.
fn frame(kind: Kind, to: [u8; 6], from: [u8; 6], number: u16) -> Vec<u8> {
    let port = (1024 + number % 60_000).to_be_bytes();
    let protocol = if kind == Kind::Syn { 6 } else { 17 };
    let mut ip =
        vec![0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 98, 8, 3, 10, 98, 8, 4];
    let sum = Sum::default().bytes(&ip).checksum();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut rest = vec![0; 26];
    rest[..2].copy_from_slice(&port);
    rest[2..4].copy_from_slice(&9999u16.to_be_bytes());
    let at = match kind {
        Kind::Syn => {
            rest[12..16].copy_from_slice(&[0x50, 2, 0xff, 0xff]);
            16
        }
        _ => {
            rest[4..6].copy_from_slice(&26u16.to_be_bytes());
            6
        }
    };
    let pseudo = Sum::default().bytes(&ip[12..20]).word(protocol.into()).word(26);
    let sum = pseudo.bytes(&rest).checksum();
    rest[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    [&to[..], &from, &[8, 0], &ip, &rest].concat()
}

/// The hardware address of an interface.
fn mac(place: &Place, network: usize, device: &str) -> [u8; 6] {
    let open = || millpond_linux::dataplane::port::Device::new(device).unwrap().mac().unwrap();
    namespace::within(Some(place.network(network)), open).unwrap().0
}

/// A thread that sends such frames as fast as it can, until it is dropped.
struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(place: &Place, kind: Kind, networks: [usize; 2]) -> Flood {
        let from = mac(place, networks[0], "mpc");
        let to = match kind {
            Kind::Unknown => [2, 0, 0, 0, 0x77, 0x77],
            _ => mac(place, networks[1], "mpd"),
        };
        let open = || Port::AfPacket(AfPacket::open("mpc").unwrap());
        let mut wire = namespace::within(Some(place.network(networks[0])), open).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ends = stop.clone();
        let thread = std::thread::spawn(move || {
            let frames: Vec<Vec<u8>> = (0..1000).map(|i| frame(kind, to, from, i)).collect();
            while !ends.load(Ordering::Relaxed) {
                for frame in &frames {
                    let _ = wire.send(&Offload::default(), &[IoSlice::new(frame)]);
                }
            }
        });
        Flood { stop, thread: Some(thread) }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A flood: of which kind, by how many threads, and from which namespace to which.
#[derive(Clone, Copy)]
struct Tenant {
    kind: Kind,
    threads: usize,
    networks: [usize; 2],
}

/// Throughput of connections from the first namespace to the second, alone and beside a flood, in
/// Gb/s: medians of `turns`, in turn.
fn beside(place: &Place, tenant: Tenant, port: u16, turns: usize) -> [f64; 2] {
    let second = Duration::from_secs(1);
    let load = Load::start(place, port);
    std::thread::sleep(second);
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        alone.push(load.rate(second));
        let start = |_| Flood::start(place, tenant.kind, tenant.networks);
        let floods: Vec<Flood> = (0..tenant.threads).map(start).collect();
        std::thread::sleep(Duration::from_millis(200));
        beside.push(load.rate(second));
        drop(floods);
        std::thread::sleep(Duration::from_millis(300));
    }
    load.end();
    [alone, beside].map(median)
}

/// Frames of a port that came, and those that were dropped by its kernel, in the switch's name.
fn counts(place: &Place, name: &str, port: &str) -> [u64; 3] {
    let reading = show::read(&place.state(name)).unwrap();
    let port = reading.ports.iter().find(|it| it.name == port).unwrap();
    let dropped = |reason: &str| port.counters.dropped.get(reason).copied().unwrap_or(0);
    [port.counters.received, dropped("device-full"), dropped("queue-full")]
}

fn print(what: &str, Tenant { kind, threads, .. }: Tenant, [alone, beside]: [f64; 2]) {
    println!(
        "{what}, {kind:?} by {threads} threads: neighbour alone {alone:.2} Gb/s, beside the flood \
         {beside:.2}, {:.2}",
        beside / alone
    );
}

/// Two switches, a tenant and its flooding neighbour at one, whom they send to at the other.
fn behind_peers(place: &Place) {
    let texts = four_paths(place);
    for ((name, text), port) in ["left", "right"].into_iter().zip(texts).zip(flooder([4, 5])) {
        place.apply(name, &format!("{port}{text}"));
    }
    assert!(soon(|| states(place, "left") == ["used"; 4]));
}

#[test]
fn a_flood_of_small_frames_leaves_the_neighbour_its_part() {
    let place = needs!(Place::new("flood", &["a", "b", "c", "d"]));
    place.apply("s", &format!("{TWO}{}", flooder([2, 3]).concat()));
    let tenant = Tenant { kind: Kind::Syn, threads: 1, networks: [2, 3] };
    let rates = beside(&place, tenant, 7701, 3);
    print("one switch", tenant, rates);
    // Half of the worker is its part. The flood takes processors, too, and others may.
    assert!(rates[1] >= 0.25 * rates[0], "{rates:?}");
    let [received, lost, _] = counts(&place, "s", "c");
    assert!(received > 0 && lost > 0, "the flood was more than its part: {received} {lost}");
    let [_, of_neighbour, _] = counts(&place, "s", "a");
    assert_eq!(of_neighbour, 0, "drops count where they were caused");
}

#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_of_a_flood() {
    let place = needs!(Place::new("floods", &["a", "b", "c", "d"]));
    place.apply("s", &format!("{TWO}{}", flooder([2, 3]).concat()));
    let kinds = [(Kind::Udp, 1), (Kind::Syn, 1), (Kind::Unknown, 1), (Kind::Syn, 4)];
    for ((kind, threads), port) in kinds.into_iter().zip(7710..) {
        let tenant = Tenant { kind, threads, networks: [2, 3] };
        print("one switch", tenant, beside(&place, tenant, port, 5));
    }
    println!("flooder's port: received, device-full, queue-full {:?}", counts(&place, "s", "c"));
}

#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_of_a_flood_to_a_peer() {
    let place = needs!(Place::new("floods-peer", &["a", "b", "c", "d", "e", "f"]));
    behind_peers(&place);
    for (kind, port) in [Kind::Udp, Kind::Syn].into_iter().zip(7720..) {
        let tenant = Tenant { kind, threads: 1, networks: [4, 5] };
        print("two switches", tenant, beside(&place, tenant, port, 5));
    }
    println!("flooder's port: received, device-full, queue-full {:?}", counts(&place, "left", "c"));
    println!("its target's port: the same {:?}", counts(&place, "right", "d"));
}
