//! The kernel's treatment of senders behind a tap, so that a kernel that does otherwise is noticed;
//! and the switch's use of it.

use super::place::{Place, ip, soon};
use millpond_linux::dataplane::port::tap::{Tap, TapSettings};
use millpond_linux::switch::reading::PortState;
use millpond_port::{Frame, Port};
use millpond_worlds::{namespace, needs};
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DATAGRAM: usize = 1000;

/// An interface in the first namespace, and who has it open.
fn tap(place: &Place, queue: u32) -> Tap {
    let network = place.network(0);
    let settings = TapSettings { device: "mpt".into(), persistent: false };
    let tap = namespace::within(Some(network), || Tap::open(&settings)).unwrap().unwrap();
    for args in [
        &["addr", "add", "10.98.9.1/24", "dev", "mpt"][..],
        &["link", "set", "mpt", "txqueuelen", &queue.to_string(), "up"],
        &[
            "neigh",
            "replace",
            "10.98.9.2",
            "lladdr",
            "02:00:00:00:00:99",
            "dev",
            "mpt",
            "nud",
            "permanent",
        ],
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
    let out = Command::new("ip")
        .args(["netns", "exec", place.network(0), "cat", &path])
        .output()
        .unwrap();
    String::from_utf8_lossy(&out.stdout).trim().parse().unwrap()
}
/// Sends so many datagrams without waiting: how many went, and how often the socket had no room.
fn send(place: &Place, count: usize) -> (usize, usize) {
    let socket = namespace::within(Some(place.network(0)), || UdpSocket::bind("10.98.9.1:0"))
        .unwrap()
        .unwrap();
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
    let place = needs!(Place::new("bare", &["a"]));
    let _tap = tap(&place, 500);
    let before = counter(&place, "tx_dropped");
    let (sent, full) = send(&place, 3000);
    let lost = counter(&place, "tx_dropped") - before;
    // A kernel of 7.3 or later could stop the sender, if asked to (IFF_BACKPRESSURE), which nobody
    // does.
    assert_eq!((sent, full), (3000, 0), "the sender is notified nothing");
    assert!((2400..=2520).contains(&lost), "{lost} lost beyond the queue of 500");
}

#[test]
fn a_token_bucket_before_a_tap_makes_its_senders_wait_and_loses_nothing() {
    let place = needs!(Place::new("bucket", &["a"]));
    let _tap = tap(&place, 500);
    let bucket =
        ["replace", "dev", "mpt", "root", "tbf", "rate", "8mbit", "burst", "4k", "limit", "16m"];
    needs!(tc(&place, &bucket), "`tc` with tbf");
    let before = counter(&place, "tx_dropped");
    let (sent, full) = send(&place, 3000);
    assert_eq!(counter(&place, "tx_dropped"), before);
    // 64 KiB, which the kernel doubles, of skbs that are charged with more than they carry.
    assert!(full > 2000 && sent < 1000, "{sent} sent, {full} times no room");
}

const NEIGHBOUR: [&str; 9] = [
    "neigh",
    "replace",
    "10.98.9.2",
    "lladdr",
    "02:00:00:00:00:99",
    "dev",
    "mpt",
    "nud",
    "permanent",
];

/// A tap's datagrams to an application that rests for a second or longer: how many of `count`
/// arrive, if the port has these keys; and whether its senders were seen to wait.
fn from_a_tap(name: &str, keys: &str, count: u32) -> Result<(u32, bool), String> {
    let place = Place::new(name, &["a"])?;
    let port = format!(
        "[[port]]\nname = \"tap\"\ndevice = \"mpt\"\nnamespace = \"NET0\"\naddresses = \
         [\"10.98.9.1/24\"]\n{keys}\n"
    );
    Ok(to_a_slow_application(&place, &port, count))
}

fn show(place: &Place) -> millpond_linux::switch::reading::Reading {
    millpond_linux::switch::show::read(&place.state("switch")).unwrap()
}

/// An application at the switch's second port, which has heard where it is.
fn attach(place: &Place, socket: &Path) -> Port {
    let mut app = Port::attach(socket).unwrap();
    let mut hello = [0; 64];
    hello[..6].copy_from_slice(&[0xff; 6]);
    hello[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 0x99, 0x88, 0xb6]);
    app.try_send(0, &hello).unwrap();
    assert!(soon(|| show(place).ports[1].counters.received > 0));
    app
}

/// The same of what the first namespace sends by this port; each datagram is of 1000 bytes.
fn to_a_slow_application(place: &Place, port: &str, count: u32) -> (u32, bool) {
    let socket = place.folder.join("app.sock");
    let app = format!(
        "[[port]]\nname = \"app\"\nkind = \"shared\"\nsocket = {socket:?}\nframes = \
         64\nqueue-memory = \"1MiB\"\n"
    );
    let reading = place.apply("switch", &(port.to_string() + &app));
    assert!(reading.ports.iter().all(|port| port.state == PortState::Open), "{reading:?}");
    let network = place.network(0);
    assert!(ip(&[&["-n", network][..], &NEIGHBOUR].concat()));
    let mut app = attach(place, &socket);
    let show = || show(place);
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
        // At least for that second; beyond it until all are sent, or their sender has to wait for
        // who reads.
        while start.elapsed() < Duration::from_secs(1)
            || !waited && !is_over.load(Ordering::Relaxed)
        {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "they are neither sent nor made to wait"
            );
            waited |= show().ports[0].slowed;
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut frames = vec![Frame::default(); 64];
        let mut last = Instant::now();
        // Until nothing has come for long after the last was sent.
        while !is_over.load(Ordering::Relaxed) || last.elapsed() < Duration::from_secs(2) {
            let read = app.recv(&mut frames);
            arrived +=
                frames[..read].iter().filter(|frame| frame.bytes().len() > DATAGRAM).count() as u32;
            if read > 0 {
                last = Instant::now();
            } else {
                std::thread::sleep(Duration::from_micros(200));
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{arrived} arrived");
        }
    });
    (arrived, waited)
}

#[test]
fn a_shaped_port_loses_nothing_to_a_slow_application() {
    let tc = Command::new("tc").arg("-V").stdout(Stdio::null()).status();
    needs!(tc.is_ok_and(|status| status.success()), "`tc`");
    const COUNT: u32 = 6_000;
    // The memory is four tenths of a second at this rate, and the bucket is changed far sooner. The
    // tap's own queue takes a fifth of a second while the switch waits for a processor.
    let (arrived, waited) = needs!(from_a_tap("shaped", "shape = \"20Mbps\"", COUNT));
    assert_eq!((arrived, waited), (COUNT, true));
    let (arrived, waited) = needs!(from_a_tap("unshaped", "", COUNT));
    assert!(arrived < COUNT && !waited, "{arrived}: without, the same is lost");
}

/// Switches a feature of an interface on or off, as `ethtool -K` does.
fn feature(network: &str, device: &str, command: u32, is_on: bool) -> bool {
    let mut value = [command, u32::from(is_on)];
    let set = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // SAFETY: ifreq is plain data, for which zeros are a value.
        #[allow(unsafe_code)]
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request
            .ifr_name
            .iter_mut()
            .zip(device.bytes())
            .for_each(|(to, from)| *to = from as libc::c_char);
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        // SAFETY: the request and its two words outlive the call.
        #[allow(unsafe_code)]
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), 0x8946, &raw mut request) };
        done == 0
    };
    namespace::within(Some(network), set).unwrap_or(false)
}

/// A veth pair between two namespaces, as a gate needs it; `false`: there is none.
fn veth(place: &Place) -> bool {
    const TSO: u32 = 0x1f;
    const GRO: u32 = 0x2c;
    let (a, b) = (place.network(0), place.network(1));
    let there =
        ip(&["link", "add", "mpt", "netns", a, "type", "veth", "peer", "name", "mps", "netns", b])
            && ip(&["-n", a, "addr", "add", "10.98.9.1/24", "dev", "mpt"])
            && feature(a, "mpt", TSO, false)
            && feature(b, "mps", GRO, true)
            && ip(&["-n", a, "link", "set", "mpt", "up"])
            && ip(&["-n", b, "link", "set", "mps", "up"]);
    there && tc(place, &["replace", "dev", "mpt", "root", "pfifo", "limit", "1000"])
}

fn gated(is_gated: bool) -> String {
    let port =
        "[[port]]\nname = \"veth\"\nkind = \"af-packet\"\ndevice = \"mps\"\nnamespace = \"NET1\"\n";
    format!("{port}gate = {is_gated}\n")
}

/// A veth whose senders a gate can stop: io_uring polls it from Linux 6.16 on.
fn gates(place: &Place) -> Result<(), String> {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match version >= (6, 16) && veth(place) {
        true => Ok(()),
        false => Err(format!("Linux 6.16, veth and `tc`; this is {release}")),
    }
}

#[test]
fn a_gate_loses_nothing_to_a_slow_application() {
    const COUNT: u32 = 6_000;
    for is_gated in [true, false] {
        let place = needs!(Place::new("gate", &["a", "b"]));
        needs!(gates(&place));
        let (arrived, waited) = to_a_slow_application(&place, &gated(is_gated), COUNT);
        assert_eq!(waited, is_gated);
        match is_gated {
            true => assert_eq!(arrived, COUNT),
            false => assert!(arrived < COUNT, "{arrived}: without, the same is lost"),
        }
    }
}

/// A switch is killed while its gate is closed: what comes then still comes, in time, and its next
/// start opens the gate.
#[test]
fn a_gate_fails_open() {
    let place = needs!(Place::new("open", &["a", "b"]));
    needs!(gates(&place));
    let socket = place.folder.join("app.sock");
    let app = format!(
        "[[port]]\nname = \"app\"\nkind = \"shared\"\nsocket = {socket:?}\nqueue-memory = \
         \"64KiB\"\n"
    );
    place.apply("switch", &(gated(true) + &app));
    assert!(ip(&[&["-n", place.network(0)][..], &NEIGHBOUR].concat()));
    let _app = attach(&place, &socket);
    let show = || show(&place);
    // Nobody reads, so they wait; a switch that gets no core closes its gate later.
    assert!(soon(|| send(&place, 6_000).1 > 0), "there is room for all");
    assert!(soon(|| show().ports[0].slowed));
    place.kill("switch");
    // The other end hears the interface nevertheless, and so does the next switch.
    let network = place.network(1);
    let listener =
        namespace::within(Some(network), || millpond_linux::dataplane::port::AfPacket::open("mps"))
            .unwrap()
            .unwrap();
    let mut listener = millpond_linux::dataplane::port::Port::AfPacket(listener);
    let mut room = vec![0; millpond_linux::dataplane::buffers::FRAME_MAX];
    let start = Instant::now();
    let hears = |listener: &mut millpond_linux::dataplane::port::Port, room: &mut [u8]| {
        matches!(listener.receive(room), millpond_linux::dataplane::port::Received::Frame { .. })
    };
    while !hears(&mut listener, &mut room) {
        assert!(start.elapsed() < Duration::from_secs(2), "the interface is dead");
        std::thread::sleep(Duration::from_millis(5));
    }
    place.apply("switch", &(gated(true) + &app));
    assert!(soon(|| show().ports[0].counters.received > 0));
    let before = show().ports[0].counters.received;
    assert!(send(&place, 10).0 > 0 && soon(|| show().ports[0].counters.received >= before + 10));
}

#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_of_a_gate() {
    use millpond_linux::dataplane::buffers::FRAME_MAX;
    use millpond_linux::dataplane::port::{AfPacket, Port as SwitchPort, Received};
    let place = needs!(Place::new("figures", &["a", "b"]));
    needs!(gates(&place));
    assert!(ip(&[&["-n", place.network(0)][..], &NEIGHBOUR].concat()));
    let open = || AfPacket::open("mps").unwrap().gated().unwrap();
    let mut port = SwitchPort::AfPacket(namespace::within(Some(place.network(1)), open).unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let bound =
                namespace::within(Some(place.network(0)), || UdpSocket::bind("10.98.9.1:0"));
            let socket = bound.unwrap().unwrap();
            rustix::net::sockopt::set_socket_send_buffer_size(&socket, 64 << 10).unwrap();
            let mut sent = 0u64;
            while !is_over.load(Ordering::Relaxed) {
                sent += u64::from(socket.send_to(&[7; DATAGRAM], "10.98.9.2:9").is_ok());
            }
            sent
        });
        let mut room = vec![0; FRAME_MAX];
        let mut drain = |port: &mut SwitchPort, time: Duration| {
            let (start, mut count) = (Instant::now(), 0u64);
            while start.elapsed() < time {
                count += u64::from(matches!(port.receive(&mut room), Received::Frame { .. }));
            }
            count
        };
        let (mut closes, mut opens, mut leaks, mut received) =
            (Vec::new(), Vec::new(), Vec::new(), 0);
        for _ in 0..20 {
            received += drain(&mut port, Duration::from_millis(50));
            let start = Instant::now();
            port.close_gate(true);
            closes.push(start.elapsed());
            // Frames that had come by then are in the socket.
            received += drain(&mut port, Duration::from_millis(5));
            let leaked = drain(&mut port, Duration::from_millis(400));
            received += leaked;
            leaks.push(leaked);
            let start = Instant::now();
            port.close_gate(false);
            opens.push(start.elapsed());
        }
        is_over.store(true, Ordering::Relaxed);
        received += drain(&mut port, Duration::from_millis(500));
        let sent = sender.join().unwrap();
        let median = |all: &mut Vec<Duration>| {
            all.sort_unstable();
            all[all.len() / 2]
        };
        leaks.sort_unstable();
        println!(
            "closing {:?}, opening {:?}, medians of 20",
            median(&mut closes),
            median(&mut opens)
        );
        println!("packets in 400 ms of a closed gate: {} ({} at most)", leaks[10], leaks[19]);
        println!("sent {sent}, arrived {received}");
        assert!(received >= sent, "{received} of {sent}");
    });
}
