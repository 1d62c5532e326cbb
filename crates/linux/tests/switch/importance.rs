//! TLT of kernels that know nothing of it, at the ports of a switch: a bottleneck that drops
//! unimportant packets early, kills of the switch, and changes of the configuration.
//!
//! The bottleneck is a node of the simulator (`fabric`) between two taps of the same switch, in a
//! VLAN each. It runs in the test's process.

use super::peers::four_paths;
use super::place::{Place, TWO, byte, connect, ip, transfer};
use millpond_core::counters::DropReason;
use millpond_core::random::Stream;
use millpond_core::switch::admission::{Admission, AdmissionParams, ColorParams};
use millpond_core::switch::buffer::{BufferParams, Capacity, Memory, PerPortParams, SwitchFacts};
use millpond_core::switch::marking::{Marking, MarkingParams};
use millpond_core::switch::port::PortConfig;
use millpond_core::switch::queue::{Queue, QueueParams, StrictPriorityParams};
use millpond_core::switch::route::{Attachment, Routes};
use millpond_core::switch::site::{Auto, PortSite};
use millpond_core::switch::{Switch, SwitchConfig};
use millpond_core::{Bytes, Rate, Time};
use millpond_linux::dataplane::buffers::Buffers;
use millpond_linux::dataplane::frame::Mac;
use millpond_linux::dataplane::metadata::{Classifier, FRAMING};
use millpond_linux::dataplane::port::{AfPacket, Port};
use millpond_linux::dataplane::slot::Slot;
use millpond_linux::fabric::{Fabric, Line};
use millpond_linux::switch::reading::Reading;
use millpond_linux::switch::{apply, show};
use millpond_worlds::{namespace, needs};
use rustix::net::sockopt;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Buffer of the bottleneck, and its threshold for unimportant packets.
const BUFFER: u64 = 64_000;
const RED: u64 = 16_000;
const RATE: Rate = Rate(200_000_000);
const FLOWS: usize = 24;
const ROUNDS: u64 = 12;
/// Bytes that each flow sends in a round.
const BURST: u64 = 40_000;
const MACS: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];

/// Hosts at VLAN 10 and 20, and in each VLAN a tap in the third namespace.
fn around_a_bottleneck(importance: &str) -> String {
    let end = |name: &str, network: usize, vlan: usize, rest: String| {
        format!(
            "[[port]]\nname = \"{name}\"\ndevice = \"mp{name}\"\nnamespace = \"NET{network}\"\n\
             vlan = {vlan}\nmtu = 1500\n{rest}"
        )
    };
    let host = |name: &str, number: usize| {
        let address = format!("10.98.8.{}/24", number + 1);
        let rest = format!("addresses = [\"{address}\"]\nimportance = \"{importance}\"\n");
        end(name, number, 10 * (number + 1), rest)
    };
    host("a", 0) + &host("b", 1) + &end("x", 2, 10, String::new()) + &end("y", 2, 20, String::new())
}

/// The bottleneck between two ports.
fn bottleneck(ports: [Port; 2]) -> Fabric {
    let size = Auto::Given(Some(Bytes(BUFFER))).into();
    let buffer = BufferParams::PerPort(PerPortParams { size, packets: None.into(), per: None });
    let color = ColorParams { threshold: Auto::Given(Bytes(RED)) };
    let port = PortConfig {
        rate: RATE,
        control: None,
        capacity: Capacity::new(&buffer, &PortSite::default()),
        marking: Marking::new(&MarkingParams::default()),
        admission: Admission::new(&AdmissionParams::Color(color)),
        queue: Queue::new(&QueueParams::StrictPriority(StrictPriorityParams::default())),
    };
    let attachment = Arc::new(Attachment { hosts: vec![(0, 0), (0, 1)] });
    let node = Switch::new(SwitchConfig::plain(
        Routes::new(attachment, Some(0), &[vec![]]),
        vec![port.clone(), port],
        Memory::new(&buffer, &SwitchFacts::default()),
        Stream::new(1, "switch"),
    ));
    let line = |port| Line::new(Slot::new("", Some(port), 1500), RATE, Mac([2, 0, 0, 0, 0, 9]));
    Fabric::new(
        node,
        Classifier::new([(MACS[0], 0), (MACS[1], 1)], FRAMING),
        ports.map(line).into(),
    )
}

/// Moves frames through the bottleneck until it is to stop.
fn relay(mut fabric: Fabric, stop: &AtomicBool) -> Fabric {
    let (start, mut buffers) = (Instant::now(), Buffers::new(1024));
    while !stop.load(Ordering::Relaxed) {
        let now = Time::from_ns(start.elapsed().as_nanos() as u64);
        let read: usize = (0..2).map(|line| fabric.receive(now, line, 64, &mut buffers)).sum();
        fabric.advance(now, &mut buffers);
        match read {
            0 => std::thread::sleep(Duration::from_micros(20)),
            _ => std::thread::yield_now(),
        }
    }
    fabric
}

/// A counter of a namespace's kernel, as `nstat` has it.
fn kernel_counter(network: &str, name: &str) -> u64 {
    let read = || fs::read_to_string("/proc/thread-self/net/netstat");
    let text = namespace::within(Some(network), read).unwrap().unwrap();
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    let of = |pair: &[Vec<&str>]| {
        let at = pair[0].iter().position(|it| *it == name)?;
        pair[1].get(at)?.parse().ok()
    };
    lines.chunks_exact(2).find_map(of).unwrap_or_else(|| panic!("no counter {name}"))
}

/// The retransmission timeouts of both kernels so far.
fn timeouts(networks: [&str; 2]) -> u64 {
    networks.iter().map(|network| kernel_counter(network, "TCPTimeouts")).sum()
}

/// Each flow sends a burst at once, and the next one when all have arrived. Each byte is checked.
/// Returns the timeouts from the first burst to the last, and how long they took.
fn incast([from, to]: [&str; 2]) -> (u64, Duration) {
    let address: SocketAddr = "10.98.8.2:7201".parse().unwrap();
    let listener = namespace::within(Some(to), || TcpListener::bind(address)).unwrap().unwrap();
    let (mut senders, mut receivers): (Vec<TcpStream>, Vec<TcpStream>) = (0..FLOWS)
        .map(|_| {
            let sender = connect(from, address);
            sockopt::set_socket_send_buffer_size(&sender, 200_000).unwrap();
            let receiver = listener.accept().unwrap().0;
            for stream in [&sender, &receiver] {
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                stream.set_nodelay(true).unwrap();
                // No FIN of it is left for the next run.
                sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
            }
            (sender, receiver)
        })
        .unzip();
    let mut burst = vec![0; BURST as usize];
    let (before, start) = (timeouts([from, to]), Instant::now());
    for round in 0..ROUNDS {
        let bytes: Vec<u8> = (round * BURST..(round + 1) * BURST).map(byte).collect();
        senders.iter_mut().for_each(|sender| sender.write_all(&bytes).unwrap());
        for receiver in &mut receivers {
            receiver.read_exact(&mut burst).unwrap();
            assert!(burst == bytes, "a byte of round {round} is wrong");
        }
    }
    (timeouts([from, to]) - before, start.elapsed())
}

/// Result of an incast.
struct Run {
    timeouts: u64,
    drops: u64,
    reading: Reading,
}

fn run(place: &Place, importance: &str) -> Run {
    place.apply("s", &around_a_bottleneck(importance));
    // The bottleneck floods nothing, so neighbours are named.
    for (network, device, there) in [(0, "mpa", 1), (1, "mpb", 0)] {
        let (address, mac) = (format!("10.98.8.{}", there + 1), MACS[there].to_string());
        let own = ["link", "set", device, "address", &MACS[1 - there].to_string()];
        assert!(ip(&[&["-n", place.network(network)][..], &own].concat()));
        let entry = ["neigh", "replace", &address, "lladdr", &mac, "dev", device];
        assert!(ip(&[&["-n", place.network(network)][..], &entry].concat()));
    }
    let open = |device: &str| {
        let opened = namespace::within(Some(place.network(2)), || AfPacket::open(device));
        Port::AfPacket(opened.unwrap().unwrap())
    };
    let fabric = bottleneck([open("mpx"), open("mpy")]);
    let stop = AtomicBool::new(false);
    let (fabric, (timeouts, took)) = std::thread::scope(|scope| {
        let relay = scope.spawn(|| relay(fabric, &stop));
        let networks = [0, 1].map(|index| place.network(index));
        let done = std::panic::catch_unwind(|| incast(networks));
        stop.store(true, Ordering::Relaxed);
        (relay.join().unwrap(), done.unwrap())
    });
    let counters = &fabric.lines()[0].slot.counters;
    let drops = DropReason::ALL.iter().map(|reason| counters.discarded(*reason)).sum();
    println!("importance {importance}: {timeouts} timeouts, {drops} drops, {took:.2?}");
    Run { timeouts, drops, reading: show::read(&place.state("s")).unwrap() }
}

#[test]
fn tlt_spares_an_unmodified_kernel_the_timeouts_of_an_incast() {
    let place = needs!(Place::new("tlt", &["a", "b", "c"]));
    // On a machine with four more busy loops one run of six had no timeout.
    let without = (0..4).map(|_| run(&place, "none")).find(|run| run.timeouts > 0);
    let without = without.expect("the kernels' own TCP has timeouts");
    assert!(without.drops > 0 && without.reading.ports[0].importance.is_none());
    let with = run(&place, "tlt");
    assert!(with.drops > 0, "unimportant packets were dropped");
    assert_eq!(with.timeouts, 0);
    let shim = with.reading.ports[0].importance.as_ref().unwrap();
    assert!(shim.forced.packets > 0 && shim.unimportant.packets > shim.important.packets);
    assert_eq!(shim.tracked, FLOWS as u64, "{shim:?}");
    assert!(shim.echoes_received > 0 && shim.consumed > 0, "{shim:?}");
}

/// Two ports with shims.
fn two(importance: &str) -> String {
    TWO.replace("[[port]]\n", &format!("[[port]]\nimportance = \"{importance}\"\n"))
}

#[test]
fn a_connection_outlives_a_killed_switch_and_changes_of_its_shim() {
    let place = needs!(Place::new("tlt-kill", &["a", "b"]));
    let [a, b] = [0, 1].map(|index| place.network(index));
    place.apply("s", &two("tlt"));
    transfer(a, b, "10.98.8.2:7211", 60_000_000, || {
        place.kill("s");
        std::thread::sleep(Duration::from_millis(300));
        place.apply("s", &two("tlt"));
    });
    let shim = |port: usize| {
        show::read(&place.state("s")).unwrap().ports[port].importance.clone().unwrap()
    };
    let killed = shim(0);
    assert!(killed.untracked_packets > 0 && killed.tracked == 0, "{killed:?}");
    // Flows that open afterwards are tracked, over IPv6, too.
    transfer(a, b, "[fd98::2]:7212", 30_000_000, || {});
    let [sender, receiver] = [shim(0), shim(1)];
    assert!(sender.tracked == 1 && sender.unimportant.bytes > 20_000_000, "{sender:?}");
    assert!(sender.untracked.is_empty() && receiver.untracked.is_empty(), "{receiver:?}");
    // Without the shim, and with it again, in the middle of a transfer.
    let before = show::read(&place.state("s")).unwrap();
    transfer(a, b, "10.98.8.2:7213", 60_000_000, || {
        let off = place.apply("s", &two("none"));
        assert!(off.ports[0].importance.is_none() && off.pid == before.pid);
        assert!(off.ports[0].counters.received > before.ports[0].counters.received);
        std::thread::sleep(Duration::from_millis(50));
        place.apply("s", &two("tlt"));
    });
    assert_eq!(shim(0).tracked, 0);
}

#[test]
fn importance_crosses_packet_sockets_and_paths_between_switches() {
    let place = needs!(Place::new("tlt-ways", &["a", "b", "c", "d"]));
    let [a, b] = [0, 1].map(|index| place.network(index));
    let both = |name: &str, port: usize| {
        let reading = show::read(&place.state(name)).unwrap();
        let shim = reading.ports[port].importance.clone().unwrap();
        assert!(shim.tracked == 1 && shim.untracked.is_empty(), "{shim:?}");
        (shim.important.packets, shim.echoes_received, shim.echoes_marked + shim.echoes_sent)
    };
    let is_marked = |sender: (u64, u64, u64), receiver: (u64, u64, u64)| {
        assert!(sender.0 > 10 && sender.1 > 10 && receiver.2 > 10, "{sender:?} {receiver:?}");
    };
    // A tap, and an interface.
    super::tap_and_wire(&place, "importance = \"tlt\"\n");
    transfer(a, b, "10.98.8.2:7221", 20_000_000, || {});
    is_marked(both("s", 0), both("s", 1));
    apply::remove_all(&place.state("s")).unwrap();
    assert!(ip(&["-n", place.network(2), "link", "del", "mpw"]));
    // Taps of two switches with four paths between them.
    let [left, right] = four_paths(&place)
        .map(|text| text.replace("[[port]]\n", "[[port]]\nimportance = \"tlt\"\n"));
    place.apply("left", &left);
    place.apply("right", &right);
    transfer(a, b, "10.98.8.2:7222", 20_000_000, || {});
    is_marked(both("left", 0), both("right", 0));
}
