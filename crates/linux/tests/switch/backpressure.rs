//! What the kernel does to senders behind a tap, so that a kernel that does otherwise is noticed; and
//! what a switch makes of it.

use super::place::{Place, ip, soon};
use millpond_linux::namespace;
use millpond_linux::port::tap::{Tap, TapSettings};
use millpond_linux::switch::show::PortState;
use millpond_port::{Frame, Port};
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DATAGRAM: usize = 1000;

/// An interface in the first namespace, and who has it open.
fn tap(place: &Place, queue: u32) -> Tap {
    let network = place.network(0);
    let settings = TapSettings { device: "mpt".into(), persistent: false, napi: false };
    let tap = namespace::within(Some(network), || Tap::open(&settings)).unwrap().unwrap();
    for args in [
        &["addr", "add", "10.98.9.1/24", "dev", "mpt"][..],
        &["link", "set", "mpt", "txqueuelen", &queue.to_string(), "up"],
        &["neigh", "replace", "10.98.9.2", "lladdr", "02:00:00:00:00:99", "dev", "mpt", "nud", "permanent"],
    ] {
        assert!(ip(&[&["-n", network][..], args].concat()), "{args:?}");
    }
    tap
}
fn tc(place: &Place, args: &[&str]) -> bool {
    let all = [&["netns", "exec", place.network(0), "tc", "qdisc"][..], args].concat();
    Command::new("ip").args(all).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
fn counter(place: &Place, name: &str) -> u64 {
    let path = format!("/sys/class/net/mpt/statistics/{name}");
    // Of the namespace: its own view of /sys.
    let out = Command::new("ip").args(["netns", "exec", place.network(0), "cat", &path]).output().unwrap();
    String::from_utf8_lossy(&out.stdout).trim().parse().unwrap()
}
/// Sends so many datagrams without waiting: how many went, and how often the socket had no room.
fn send(place: &Place, count: usize) -> (usize, usize) {
    let socket = namespace::within(Some(place.network(0)), || UdpSocket::bind("10.98.9.1:0")).unwrap().unwrap();
    socket.set_nonblocking(true).unwrap();
    rustix::net::sockopt::set_socket_send_buffer_size(&socket, 64 << 10).unwrap();
    let (mut sent, mut full) = (0, 0);
    for _ in 0..count {
        match socket.send_to(&[7; DATAGRAM], "10.98.9.2:9") {
            Ok(_) => sent += 1,
            Err(e) if e.kind() == ErrorKind::WouldBlock => full += 1,
            // Some kernels say that the queue is full.
            Err(e) => panic!("{e}"),
        }
    }
    (sent, full)
}

#[test]
fn a_tap_takes_all_and_loses_what_its_queue_has_no_room_for() {
    let Some(place) = Place::new("bare", &["a"]) else { return };
    let _tap = tap(&place, 500);
    let before = counter(&place, "tx_dropped");
    let (sent, full) = send(&place, 3000);
    let lost = counter(&place, "tx_dropped") - before;
    // A kernel of 7.3 or later could stop the sender, if asked to (IFF_BACKPRESSURE), which nobody does.
    assert_eq!((sent, full), (3000, 0), "the sender is told nothing");
    assert!((2400..=2520).contains(&lost), "{lost} lost beyond the queue of 500");
}

#[test]
fn a_token_bucket_before_a_tap_makes_its_senders_wait_and_loses_nothing() {
    let Some(place) = Place::new("bucket", &["a"]) else { return };
    let _tap = tap(&place, 500);
    if !tc(&place, &["replace", "dev", "mpt", "root", "tbf", "rate", "8mbit", "burst", "4k", "limit", "16m"]) {
        return eprintln!("skipped: it needs `tc` and tbf");
    }
    let before = counter(&place, "tx_dropped");
    let (sent, full) = send(&place, 3000);
    assert_eq!(counter(&place, "tx_dropped"), before);
    // 64 KiB, which the kernel doubles, of skbs that are charged with more than they carry.
    assert!(full > 2000 && sent < 1000, "{sent} sent, {full} times no room");
}

/// A tap's datagrams to an application that rests for a second: how many of `count` arrive, if the
/// port has these keys; and whether its senders were seen to wait.
fn to_a_slow_application(name: &str, keys: &str, count: u32) -> Option<(u32, bool)> {
    let place = Place::new(name, &["a"])?;
    let socket = place.folder.join("app.sock");
    let text = format!(
        "[[port]]\nname = \"tap\"\ndevice = \"mpt\"\nnamespace = \"NET0\"\naddresses = [\"10.98.9.1/24\"]\n{keys}\n\
         [[port]]\nname = \"app\"\nkind = \"shared\"\nsocket = {socket:?}\nframes = 64\n\
         queue-memory = \"1MiB\"\n"
    );
    let reading = place.apply("switch", &text);
    assert!(reading.ports.iter().all(|port| port.state == PortState::Open), "{reading:?}");
    let network = place.network(0);
    let neighbour = ["neigh", "replace", "10.98.9.2", "lladdr", "02:00:00:00:00:99", "dev", "mpt", "nud", "permanent"];
    assert!(ip(&[&["-n", network][..], &neighbour].concat()));
    let mut app = Port::attach(&socket).unwrap();
    // It says where it is, until the switch has heard.
    let mut hello = [0; 64];
    hello[..6].copy_from_slice(&[0xff; 6]);
    hello[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 0x99, 0x88, 0xb6]);
    app.try_send(0, &hello).unwrap();
    let show = || millpond_linux::switch::show::read(&place.state("switch")).unwrap();
    assert!(soon(|| show().ports[1].counters.received > 0));
    let is_over = AtomicBool::new(false);
    let (mut arrived, mut waited) = (0, false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let bound = namespace::within(Some(network), || UdpSocket::bind("10.98.9.1:0"));
            let socket = bound.unwrap().unwrap();
            (0..count).for_each(|_| drop(socket.send_to(&[7; DATAGRAM], "10.98.9.2:9")));
            is_over.store(true, Ordering::Relaxed);
        });
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(1) {
            waited |= show().ports[0].slowed;
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut frames = vec![Frame::default(); 64];
        let mut last = Instant::now();
        // Until nothing has come for long after the last was sent.
        while !is_over.load(Ordering::Relaxed) || last.elapsed() < Duration::from_secs(2) {
            let read = app.recv(&mut frames);
            arrived += frames[..read].iter().filter(|frame| frame.bytes().len() > DATAGRAM).count() as u32;
            if read > 0 {
                last = Instant::now();
            } else {
                std::thread::sleep(Duration::from_micros(200));
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{arrived} arrived");
        }
    });
    Some((arrived, waited))
}

#[test]
fn a_shaped_port_loses_nothing_to_a_slow_application() {
    if !Command::new("tc").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: it needs `tc`");
    }
    const COUNT: u32 = 6_000;
    // The memory is four tenths of a second at this rate, and the bucket is changed far sooner. What
    // the tap's own queue takes while the switch waits for a processor is a fifth of a second.
    let Some((arrived, waited)) = to_a_slow_application("shaped", "shape = \"20Mbps\"", COUNT) else { return };
    assert_eq!((arrived, waited), (COUNT, true));
    let Some((arrived, waited)) = to_a_slow_application("unshaped", "", COUNT) else { return };
    assert!(arrived < COUNT && !waited, "{arrived}: without, the same is lost");
}
