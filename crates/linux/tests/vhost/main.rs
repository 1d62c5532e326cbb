//! Ports of virtual machines: guests with a driver of their own (`driver`) at a switch that is a
//! process (`helpers`). Needs no privileges but for the tap.

#[path = "../attached/mod.rs"]
mod attached;
mod driver;
mod hostile;
mod speed;

use attached::{LONG, Place, Process, role, soon};
use driver::{ALL, EVENT_INDEX, Guest, INDIRECT, MERGEABLE, Options, PROTOCOL, VERSION_1};
use millpond_linux::switch::reading::Reading;
use millpond_worlds::{Namespace, World, needs};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Long enough for what must not come.
const SHORT: Duration = Duration::from_millis(100);
/// A header that says nothing.
const PLAIN: [u8; 10] = [0; 10];

impl Place {
    /// Applies a switch with these ports of virtual machines, and others.
    fn apply(&self, ports: &[&str], others: &str) -> Reading {
        let ports: Vec<_> = ports.iter().map(|name| (*name, "")).collect();
        self.apply_kind("vhost-user", &ports, others)
    }
    fn dropped(&self, name: &str, reason: &str) -> u64 {
        self.port(name).counters.dropped.get(reason).copied().unwrap_or(0)
    }
    fn attach(&self, name: &str, options: Options) -> Guest {
        let before = self.port(name).guest.unwrap().attachments;
        let guest = Guest::attach(&self.socket(name), options);
        let is_up =
            || self.port(name).guest.is_some_and(|g| g.is_up && g.attachments == before + 1);
        assert!(soon(is_up), "{:?}", self.port(name));
        guest
    }
    fn has_none(&self, name: &str) -> bool {
        soon(|| self.port(name).guest.unwrap().pid.is_none())
    }
}

const BROADCAST: u8 = 0xff;

fn mac(station: u8) -> [u8; 6] {
    if station == BROADCAST { [BROADCAST; 6] } else { [2, 0, 0, 0, 0, station] }
}

/// From one station to another, with a number.
fn frame(to: u8, from: u8, number: u32) -> Vec<u8> {
    long(to, from, number, 64)
}
fn long(to: u8, from: u8, number: u32, length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|at| (at as u32 ^ number) as u8).collect();
    frame[..6].copy_from_slice(&mac(to));
    frame[6..12].copy_from_slice(&mac(from));
    frame[12..14].copy_from_slice(&[0x88, 0xb6]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}
fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}

/// Makes the switch know who is where.
fn announce(guest: &mut Guest, own: u8, other: &mut Guest) {
    assert!(guest.send(&PLAIN, &frame(BROADCAST, own, u32::MAX)));
    while other.receive(LONG).expect("a station that makes itself known").1[11] != own {}
}

/// The Internet checksum of bytes, which begins with `sum`.
fn checksum(mut sum: u32, bytes: &[u8]) -> u16 {
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A super-segment of TCP from one station to another, as a kernel hands it over: its checksum is
/// the pseudo-header's. With its virtio header.
fn super_segment(to: u8, from: u8, payload: usize, mss: u16) -> ([u8; 10], Vec<u8>) {
    let mut frame = [&mac(to)[..], &mac(from), &[8, 0]].concat();
    let length = (40 + payload) as u16;
    let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    let sum = !checksum(0, &ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut tcp =
        vec![0x10, 0, 0x20, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0];
    let pseudo = checksum(6 + u32::from(length - 20), &ip[12..20]);
    tcp[16..18].copy_from_slice(&pseudo.to_be_bytes());
    frame.extend(ip);
    frame.extend(tcp);
    frame.extend((0..payload).map(|at| (at % 251) as u8));
    let mut header = [0; 10];
    header[..2].copy_from_slice(&[1, 1]);
    for (at, word) in [(2, 54u16), (4, mss), (6, 34), (8, 16)] {
        header[at..at + 2].copy_from_slice(&word.to_le_bytes());
    }
    (header, frame)
}

/// Whether a packet of TCP has a right checksum.
fn is_summed(packet: &[u8]) -> bool {
    let ip = &packet[14..];
    let end = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let pseudo = checksum(6 + (end as u32 - 20), &ip[12..20]);
    checksum(u32::from(pseudo), &ip[20..end]) == 0xffff && checksum(0, &ip[..20]) == 0xffff
}

#[test]
fn frames_cross_whole_between_guests_of_all_kinds() {
    let place = Place::new("whole");
    place.apply(&["a", "b"], "");
    let modern = ALL & !EVENT_INDEX & !INDIRECT;
    let plain = PROTOCOL | VERSION_1;
    for (features, parts, ring) in [
        (ALL, 1, 256),
        (ALL, 4, 64),
        (modern, 3, 128),
        (plain, 2, 16),
        (PROTOCOL, 1, 32),
        (0, 4, 256),
        (MERGEABLE, 1, 8),
    ] {
        let options = Options { features, parts, ring, is_early: parts > 1, ..Options::default() };
        let mut a = place.attach("a", options);
        let mut b = place.attach("b", Options { parts: 1, ..options });
        announce(&mut a, 1, &mut b);
        announce(&mut b, 2, &mut a);
        // Around both rings, and around their counts of 16 bits with the short ones.
        for n in 0..if ring == 8 { 70_000 } else { 600 } {
            let length = 60 + n as usize % 1400;
            let sent = long(2, 1, n, length);
            assert!(soon(|| a.send(&PLAIN, &sent)));
            let (header, got) =
                b.receive(LONG).unwrap_or_else(|| panic!("frame {n} of {features:x} is lost"));
            assert_eq!((header[..10].to_vec(), got), (PLAIN.to_vec(), sent), "{features:x}");
            if n % 50 == 0 {
                assert!(soon(|| b.send(&PLAIN, &long(1, 2, n, length))));
                assert_eq!(a.receive(LONG).unwrap().1, long(1, 2, n, length));
            }
        }
        let (of_a, of_b) = (place.port("a"), place.port("b"));
        assert_eq!(
            (of_a.counters.dropped.len(), of_b.counters.dropped.len()),
            (0, 0),
            "{of_a:?} {of_b:?}"
        );
        drop((a, b));
        assert!(place.has_none("a") && place.has_none("b"));
    }
    let guest = place.port("a").guest.unwrap();
    assert_eq!((guest.attachments, guest.broken), (7, 0));
}

#[test]
fn super_segments_cross_whole_or_as_packets() {
    let place = Place::new("super");
    place.apply(&["a", "b"], "");
    let mut a = place.attach("a", Options { parts: 4, ..Options::default() });
    let mut b = place.attach("b", Options::default());
    announce(&mut a, 1, &mut b);
    announce(&mut b, 2, &mut a);
    // In 40 and more buffers of the receiver.
    for payload in [1448 * 2, 30_000, 64_000, 65_495] {
        let (header, frame) = super_segment(2, 1, payload, 1448);
        assert!(soon(|| a.send(&header, &frame)));
        let (got, whole) = b.receive(LONG).expect("a super-segment");
        assert_eq!((&got[..10], whole.len()), (&header[..], frame.len()));
        assert!(whole == frame);
    }
    assert_eq!(place.port("b").counters.sent_large, 4);
    assert!(place.port("b").guest.unwrap().super_segments);
    drop(b);
    assert!(place.has_none("b"));
    // A guest that takes none gets packets with whole checksums, also while it has no buffers.
    let mut b = place
        .attach("b", Options { features: PROTOCOL | VERSION_1, ring: 16, ..Options::default() });
    announce(&mut b, 2, &mut a);
    b.posts = false;
    let (header, frame) = super_segment(2, 1, 40_000, 1448);
    assert!(soon(|| a.send(&header, &frame)));
    let (mut bytes, mut packets) = (Vec::<u8>::new(), 0);
    while bytes.len() < 40_000 {
        let (header, packet) = b.receive(LONG).expect("a packet");
        assert_eq!(header[..10], PLAIN, "nothing is left to be done");
        assert!(packet.len() <= 1514 && is_summed(&packet));
        bytes.extend(&packet[54..]);
        packets += 1;
        if packets % 5 == 0 {
            b.post(16);
        }
    }
    assert!(bytes == frame[54..] && packets == 28, "each once and in order: {packets}");
    // A checksum that is left to do, of one packet.
    b.post(16);
    let (mut header, frame) = super_segment(2, 1, 500, 0);
    header[1] = 0;
    assert!(soon(|| a.send(&header, &frame)));
    assert!(is_summed(&b.receive(LONG).unwrap().1));
}

#[test]
fn a_guest_without_buffers_loses_nothing_that_has_room_to_wait() {
    let place = Place::new("wait");
    place.apply(&["a", "b", "c"], "");
    let [mut a, mut b, mut c] = ["a", "b", "c"].map(|name| place.attach(name, Options::default()));
    announce(&mut a, 1, &mut b);
    announce(&mut b, 2, &mut a);
    announce(&mut c, 3, &mut a);
    while b.receive(SHORT).is_some() {}
    b.posts = false;
    // More than it has buffers, and less than the queue's megabyte.
    let (mut sent, count) = (0, 800);
    while sent < count {
        assert!(soon(|| a.send(&PLAIN, &long(2, 1, sent, 1000))));
        sent += 1;
    }
    assert!(soon(|| place.port("b").guest.unwrap().waiting_frames == u64::from(count) - 256));
    // Others go on, and the switch sleeps meanwhile.
    assert!(a.send(&PLAIN, &frame(3, 1, 5)));
    while c.receive(LONG).expect("others go on").1[11] != 1 {}
    let before = place.reading().bursts;
    std::thread::sleep(Duration::from_millis(500));
    let rounds = place.reading().bursts - before;
    assert!(rounds < 2500, "{rounds} rounds in half a second");
    // Nothing comes by itself; what the guest has room for comes at once, and in order.
    let mut expected = 0;
    while expected < count {
        match b.receive(if expected < 256 { LONG } else { Duration::from_millis(5) }) {
            Some((_, frame)) => {
                assert_eq!(number(&frame), expected);
                expected += 1;
            }
            None => b.post(7),
        }
    }
    assert_eq!(
        (place.dropped("b", "queue-full"), place.port("b").guest.unwrap().waiting_frames),
        (0, 0)
    );
    // Beyond the queue frames are dropped there, and counted.
    for n in 0..3000 {
        assert!(soon(|| a.send(&PLAIN, &long(2, 1, n, 1000))));
    }
    assert!(soon(|| place.dropped("b", "queue-full") > 500));
    // Frames that wait for a guest that goes are counted as well.
    drop(b);
    assert!(place.has_none("b"));
    assert!(place.dropped("b", "loss-guest-exit") > 500);
    assert!(a.send(&PLAIN, &frame(2, 1, 0)));
    assert!(soon(|| place.dropped("a", "no-guest") == 1));
}

#[test]
fn guests_come_and_go() {
    let place = Place::new("go");
    place.apply(&["a", "b"], "");
    let mut a = place.attach("a", Options::default());
    // A second one at the same port is sent away, and harms nobody.
    assert!(Guest::try_attach(&place.socket("a"), Options::default()).is_err());
    {
        let socket = place.socket("b");
        let process = Process::start(&mut role("guest", &socket));
        let is_heard = |a: &mut Guest| a.receive(LONG).is_some_and(|(_, frame)| frame[11] == 7);
        assert!(is_heard(&mut a));
        assert_eq!(place.port("b").guest.unwrap().pid, Some(process.0.id() as i32));
        assert!(
            Command::new("kill")
                .args(["-9", &process.0.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    }
    assert!(place.has_none("b"));
    while a.receive(SHORT).is_some() {}
    let mut b = place.attach("b", Options::default());
    announce(&mut b, 2, &mut a);
    announce(&mut a, 1, &mut b);
    // A driver that stops its rings, and starts them where they were.
    let base = a.front_base(1);
    assert!(soon(|| !place.port("a").guest.unwrap().is_up));
    a.start(1, base).unwrap();
    assert!(a.send(&PLAIN, &frame(2, 1, 9)));
    assert_eq!(number(&b.receive(LONG).unwrap().1), 9);
    // The switch is killed: its guests see the connection's end, and attach to the next.
    place.kill();
    assert!(a.send(&PLAIN, &frame(2, 1, 0)), "into the void");
    place.apply(&["a", "b"], "");
    let (mut a, mut b) =
        (place.attach("a", Options::default()), place.attach("b", Options::default()));
    announce(&mut a, 1, &mut b);
    announce(&mut b, 2, &mut a);
    // Another port is added: those that stay as they are keep their guests.
    place.apply(&["a", "b", "c"], "");
    assert!(a.send(&PLAIN, &frame(BROADCAST, 1, 3)));
    assert_eq!(number(&b.receive(LONG).unwrap().1), 3);
    place.apply(&["b"], "");
    assert!(!place.socket("a").exists() && place.socket("b").exists());
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(place.socket("b")).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Datagrams, both ways: the kernel leaves the checksum to the guest.
fn datagrams_cross(a: &mut Guest, host: &Namespace) {
    let socket = host.run(|| std::net::UdpSocket::bind("10.0.0.9:4000").unwrap()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket.send_to(b"to the guest", "10.0.0.1:5000").unwrap();
    let is_datagram = |frame: &[u8]| frame.len() > 42 && frame[12..14] == [8, 0] && frame[23] == 17;
    let (header, got) = loop {
        let (header, got) = a.receive(LONG).expect("a datagram");
        if is_datagram(&got) {
            break (header, got);
        }
    };
    assert_eq!((header[0], &got[42..]), (1, &b"to the guest"[..]));
    let mut answer = got.clone();
    answer.copy_within(6..12, 0);
    answer[6..12].copy_from_slice(&mac(1));
    for (to, from) in [(26..30, 30), (30..34, 26), (34..36, 36), (36..38, 34)] {
        answer[to].copy_from_slice(&got[from..from + if from < 34 { 4 } else { 2 }]);
    }
    assert!(a.send(header[..10].try_into().unwrap(), &answer));
    let mut room = [0; 100];
    let (length, from) = socket.recv_from(&mut room).unwrap();
    assert_eq!(
        (&room[..length], from.to_string()),
        (&b"to the guest"[..], "10.0.0.1:5000".to_string())
    );
}

/// A kernel's SYN has a whole checksum for a guest that completes none.
fn a_syn_arrives_whole(a: &mut Guest, host: &Namespace) {
    let connecting = std::thread::spawn({
        let host = host.clone();
        move || {
            let address = "10.0.0.1:80".parse().unwrap();
            let connect = || std::net::TcpStream::connect_timeout(&address, Duration::from_secs(2));
            drop(host.run(connect));
        }
    });
    let syn = loop {
        let (header, got) = a.receive(LONG).expect("a SYN");
        if got.len() > 54 && got[12..14] == [8, 0] && got[23] == 6 {
            break (header, got);
        }
    };
    assert!(syn.0[..10] == PLAIN && is_summed(&syn.1));
    connecting.join().unwrap();
}

#[test]
fn a_kernel_and_a_guest_reach_each_other() {
    let world = needs!(World::new("vhost"));
    let host = needs!(world.namespace("kernel"));
    let place = Place::new("tap");
    let network = host.name();
    place.apply(
        &["a"],
        &format!(
            "[[port]]\nname = \"t\"\ndevice = \"mpt\"\nnamespace = \"{network}\"\naddresses = \
             [\"10.0.0.9/24\"]\nhardware-addresses = [\"02:00:00:00:00:09\"]\n"
        ),
    );
    host.ip("link set mpt address 02:00:00:00:00:09\n\
         neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 dev mpt nud permanent")
        .unwrap();
    let mut a = place.attach("a", Options { parts: 2, ..Options::default() });
    assert!(a.send(&PLAIN, &frame(BROADCAST, 1, 0)));
    datagrams_cross(&mut a, &host);
    // A kernel's TCP: its SYN comes to the guest with a checksum to be done, and one that takes no
    // such thing gets it whole.
    drop(a);
    assert!(place.has_none("a"));
    let mut a = place
        .attach("a", Options { features: PROTOCOL | VERSION_1 | MERGEABLE, ..Options::default() });
    assert!(a.send(&PLAIN, &frame(BROADCAST, 1, 0)));
    a_syn_arrives_whole(&mut a, &host);
    // A super-segment of the guest's reaches the kernel, which takes it for one of no connection.
    drop(a);
    assert!(place.has_none("a"));
    let mut a = place.attach("a", Options::default());
    let (header, frame) = super_segment(9, 1, 20_000, 1448);
    let before = place.port("t").counters.sent_large;
    assert!(a.send(&header, &frame));
    assert!(soon(|| place.port("t").counters.sent_large == before + 1));
    let reset = loop {
        let (_, got) = a.receive(LONG).expect("a reset");
        if got.len() >= 54 && got[12..14] == [8, 0] && got[23] == 6 {
            break got;
        }
    };
    assert_eq!(reset[47] & 4, 4, "the kernel has found its checksum right, and answers");
    assert_eq!(place.dropped("a", "bad-offload") + place.dropped("t", "port-refused"), 0);
}
