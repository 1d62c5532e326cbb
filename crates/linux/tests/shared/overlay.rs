//! Two switches with a key between them, and applications at both. Their frames to each other pass
//! a relay of this test, which loses, doubles, bends and repeats what the overlay says.
//!
//! Senders are slow enough that sockets hold what comes while a process of a busy machine waits for
//! its turn: what is tested is what the switches do, and not how fast.

use super::attached::{self, Place, soon};
use millpond_core::overlay::{FlowKey, Record, Target, Word, wire};
use millpond_linux::switch::overlay;
use millpond_linux::switch::reading::{PortReading, Reading};
use millpond_linux::switch::state::State;
use millpond_linux::switch::{apply, show};
use millpond_port::{Frame, Port, Unsent};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The relay's treatment of the overlay's datagrams; others pass.
#[derive(Default)]
struct Fate {
    /// Of a hundred, at most two in a row.
    loses: AtomicU32,
    /// Each comes with forged copies, and again later.
    bothers: AtomicBool,
    ends: AtomicBool,
}

/// Between the switches: two sockets, each of which stands for the other switch.
struct Relay {
    fate: Arc<Fate>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.fate.ends.store(true, Relaxed);
        let _ = self.thread.take().map(|thread| thread.join());
    }
}

/// Copies of a datagram that must not count: cut, bent, sent back, and made by somebody else.
fn forgeries(datagram: &[u8], turn: u32) -> Vec<Vec<u8>> {
    let mut bent = datagram.to_vec();
    let at = 5 + turn as usize % (bent.len() - 5);
    bent[at] ^= 1 << (turn % 8);
    let cut = datagram[..datagram.len() - 1 - turn as usize % 40].to_vec();
    let flow =
        FlowKey { source: 1, destination: 2, source_port: 3, destination_port: 4, protocol: 17 };
    let target = [Target::Peer, Target::Flow(flow), Target::application(&flow)][turn as usize % 3];
    let record =
        Record { word: Word::Pause, target, seq: u64::MAX, queued: 0, rate: 0, ttl: u32::MAX };
    let head = wire::Head { number: u64::MAX, ..wire::head(datagram).unwrap() };
    let key = wire::Key::new(b"of somebody else").unwrap();
    vec![bent, cut, wire::encode(&head, &[record], &key)]
}

fn relay(sockets: [UdpSocket; 2], switches: [SocketAddr; 2], fate: &Fate) {
    let mut room = vec![0; 65_536];
    let mut old: Vec<Vec<u8>> = Vec::new();
    let (mut turn, mut run) = (0u32, 0);
    while !fate.ends.load(Relaxed) {
        let mut is_idle = true;
        for from in 0..2 {
            while let Ok(length) = sockets[from].recv(&mut room) {
                is_idle = false;
                let (datagram, to) = (&room[..length], 1 - from);
                let send = |bytes: &[u8]| drop(sockets[to].send_to(bytes, switches[to]));
                if !wire::is_overlay(datagram) {
                    send(datagram);
                    continue;
                }
                turn = turn.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                let draw = turn >> 16;
                if draw % 100 < fate.loses.load(Relaxed) && run < 2 {
                    run += 1;
                    continue;
                }
                run = 0;
                if !fate.bothers.load(Relaxed) {
                    send(datagram);
                    continue;
                }
                forgeries(datagram, draw).iter().for_each(|forged| send(forged));
                let _ = sockets[from].send_to(datagram, switches[from]);
                send(datagram);
                send(datagram);
                old.push(datagram.to_vec());
                send(&old[draw as usize % old.len()]);
            }
        }
        if is_idle {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Two switches and what is between them.
struct Pair {
    place: Place,
    texts: [String; 2],
    relay: Relay,
}

const SIDES: [&str; 2] = ["left", "right"];

impl Pair {
    /// With these ports at either; `peer` are further keys of the peer, of either.
    fn new(name: &str, ports: [&[(&str, &str)]; 2], peer: [&str; 2]) -> Pair {
        use std::os::unix::fs::PermissionsExt;
        let place = Place::new(name);
        let key = place.folder.join("key");
        fs::write(&key, "what both of them know\n").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        // Of this process alone: nobody else draws a number that was free a moment ago.
        let own = Ipv4Addr::from(0x7f80_0000 | std::process::id());
        let socket = || {
            let socket = UdpSocket::bind((own, 0)).unwrap();
            socket.set_nonblocking(true).unwrap();
            let room = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20);
            let _ = room
                .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 16 << 20));
            socket
        };
        let address = |socket: &UdpSocket| socket.local_addr().unwrap();
        let relays = [socket(), socket()];
        // Of sockets that are closed, both at the end of this: their numbers are free then, and
        // two.
        let switches = [address(&socket()), address(&socket())];
        let text = |side: usize| {
            let port = |(name, keys): &(&str, &str)| {
                let socket = place.socket(name);
                format!(
                    "[[port]]\nname = \"{name}\"\nkind = \"shared\"\nsocket = {socket:?}\n{keys}\n"
                )
            };
            // Each knows the other by the relay's socket on its side.
            let (local, remote) = (switches[side], address(&relays[side]));
            let path =
                format!("[[path]]\npeer = \"other\"\nlocal = \"{local}\"\nremote = \"{remote}\"\n");
            let peer = format!("[[peer]]\nname = \"other\"\nkey = {key:?}\n{}\n", peer[side]);
            ports[side].iter().map(port).collect::<String>() + &path + &peer
        };
        let texts = [text(0), text(1)];
        let fate = Arc::new(Fate::default());
        let thread = std::thread::spawn({
            let fate = fate.clone();
            move || relay(relays, switches, &fate)
        });
        let pair = Pair { place, texts, relay: Relay { fate, thread: Some(thread) } };
        (0..2).for_each(|side| pair.apply(side));
        pair
    }
    fn state(&self, side: usize) -> State {
        State::at(&self.place.folder.join(SIDES[side]))
    }
    fn apply(&self, side: usize) {
        attached::apply(&self.state(side), &self.texts[side]);
    }
    fn kill(&self, side: usize) {
        attached::kill(&self.state(side));
    }
    fn reading(&self, side: usize) -> Reading {
        show::read(&self.state(side)).unwrap()
    }
    fn port(&self, side: usize, name: &str) -> PortReading {
        attached::port(&self.state(side), name)
    }
    fn overlay(&self, side: usize) -> overlay::Reading {
        self.reading(side).peers[0].overlay.clone().unwrap_or_default()
    }
    fn knows(&self, side: usize, address: &str) -> bool {
        show::read_addresses(&self.state(side))
            .unwrap()
            .iter()
            .any(|known| known.address == address)
    }
    fn meets(&self) {
        assert!(soon(|| (0..2).all(|side| self.overlay(side).speaks)));
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        (0..2).for_each(|side| drop(apply::remove_all(&self.state(side))));
    }
}

/// A packet of UDP from one station to another, with a number.
fn packet(to: u8, from: u8, port: u16, number: u32) -> Vec<u8> {
    let mut frame = vec![0; 1000];
    frame[..6].copy_from_slice(&if to == super::BROADCAST {
        [0xff; 6]
    } else {
        [2, 0, 0, 0, 1, to]
    });
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 1, from]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14..24].copy_from_slice(&[0x45, 0, 3, 0xda, 0, 0, 0x40, 0, 64, 17]);
    frame[26..30].copy_from_slice(&[10, 9, 0, from]);
    frame[30..34].copy_from_slice(&[10, 9, 0, to]);
    frame[34..36].copy_from_slice(&port.to_be_bytes());
    frame[36..38].copy_from_slice(&80u16.to_be_bytes());
    frame[38..40].copy_from_slice(&966u16.to_be_bytes());
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    frame
}
fn numbered(frame: &Frame) -> u32 {
    u32::from_be_bytes(frame.bytes()[42..46].try_into().unwrap())
}

/// Somebody who sends numbers to a station, a few at a time.
struct Sending {
    flow: u32,
    to: u8,
    next: u32,
}

impl Sending {
    fn new(flow: u32, to: u8) -> Sending {
        Sending { flow, to, next: 0 }
    }
    fn some(&mut self, port: &mut Port, wanted: u32) {
        for _ in 0..16 {
            if self.next == wanted {
                return;
            }
            match port.try_send(self.flow, &packet(self.to, 1, self.flow as u16, self.next)) {
                Ok(()) => self.next += 1,
                Err(Unsent::WouldBlock) => return,
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// Takes what has arrived: every number, in order.
fn pull(port: &mut Port, arrived: &mut u32) {
    let mut frames = vec![Frame::default(); 64];
    let count = port.recv(&mut frames);
    for frame in frames[..count].iter().filter(|frame| frame.bytes().len() == 1000) {
        assert_eq!(numbered(frame), *arrived);
        *arrived += 1;
    }
}

/// For as long as it takes, a turn a millisecond.
fn turns(what: &str, mut turn: impl FnMut() -> bool) {
    let start = Instant::now();
    while !turn() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// As stations of these tests, whose addresses [`packet`] has.
fn station(frame: &mut [u8]) {
    frame[10] = 1;
}

/// Of peers whose pauses are not to lapse while a switch waits for its turn on a busy machine.
const PATIENT: &str = "pause-ttl = \"1s\"";
const LEFT: [(&str, &str); 1] = [("a", "frames = 4096")];
const RIGHT: [(&str, &str); 2] = [("b", "queue-memory = \"4MiB\"\nframes = 64"), ("c", "")];

/// A sender on the left, and two receivers on the right that it knows.
fn three(pair: &Pair) -> [Port; 3] {
    pair.meets();
    let [mut a, mut b, mut c] = ["a", "b", "c"].map(|name| pair.place.attach(name));
    let mut frames = vec![Frame::default(); 64];
    for (own, port) in [(2, &mut b), (3, &mut c)] {
        turns("a station is heard of", || {
            let mut hello = super::frame(super::BROADCAST, own, u32::MAX);
            station(&mut hello);
            let _ = port.try_send(0, &hello);
            let count = a.recv(&mut frames);
            frames[..count].iter().any(|frame| frame.bytes()[11] == own)
        });
    }
    [a, b, c]
}

fn is_clean(reading: &Reading) -> bool {
    reading.ports.iter().all(|port| port.counters.dropped.is_empty())
        && reading.edge.dropped.is_empty()
}

#[test]
fn a_slow_application_pauses_its_senders_at_another_switch_and_loses_nothing() {
    let pair = Pair::new("over", [&LEFT, &RIGHT], [PATIENT, PATIENT]);
    let [mut a, mut b, mut c] = three(&pair);
    let (mut to_b, mut to_c, mut at_b, mut at_c) = (Sending::new(1, 2), Sending::new(2, 3), 0, 0);
    // B reads nothing for ten seconds, and C all.
    let start = Instant::now();
    let mut is_paused = false;
    while start.elapsed() < Duration::from_secs(10) {
        to_b.some(&mut a, u32::MAX);
        to_c.some(&mut a, u32::MAX);
        pull(&mut c, &mut at_c);
        is_paused |= a.paused(1);
        assert!(!a.paused(2));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(is_paused && a.paused(1), "{} sent to who reads nothing", to_b.next);
    let (left, right) = (pair.overlay(0), pair.overlay(1));
    assert!(left.held >= 1 && left.paused == 1 && left.received[1] > 10, "{left:?}");
    assert!(right.notified >= 1 && right.sent[0] >= 1, "{right:?}");
    assert!(at_c > 2 * to_b.next, "{at_c} and {}", to_b.next);
    // B reads, with rests.
    let (wanted, mut rest) = (to_b.next + 5_000, 0);
    turns("all arrive", || {
        to_b.some(&mut a, wanted);
        rest += 1;
        if rest % 100 < 60 {
            pull(&mut b, &mut at_b);
        }
        at_b == wanted
    });
    turns("nobody is paused", || {
        !a.paused(1) && pair.overlay(0).held == 0 && pair.overlay(1).notified == 0
    });
    let shared = pair.port(1, "b").shared.unwrap();
    assert!(shared.pauses == shared.resumes && shared.waiting_frames == 0, "{shared:?}");
    let readings = [pair.reading(0), pair.reading(1)];
    assert!(readings.iter().all(is_clean), "{readings:?}");
    let table = readings[0].table(None);
    assert!(table.contains("overlay with other: 0 paused there, 0 held here"), "{table}");
}

#[test]
fn what_is_lost_forged_or_repeated_changes_nothing() {
    let keys = format!("feedback = \"5ms\"\n{PATIENT}");
    let pair = Pair::new("forge", [&LEFT, &RIGHT], [&keys, &keys]);
    let [mut a, mut b, _c] = three(&pair);
    pair.relay.fate.loses.store(30, Relaxed);
    pair.relay.fate.bothers.store(true, Relaxed);
    let (mut to_b, mut at_b, mut rest) = (Sending::new(1, 2), 0, 0);
    const ALL: u32 = 30_000;
    turns("all arrive", || {
        to_b.some(&mut a, ALL);
        rest += 1;
        if rest % 1000 > 600 {
            (0..4).for_each(|_| pull(&mut b, &mut at_b));
        }
        at_b == ALL
    });
    let (left, right) = (pair.overlay(0), pair.overlay(1));
    assert!(left.received[0] > 0 && left.forged > 10 && left.replayed > 0, "{left:?}");
    assert!(right.sent[0] >= left.received[0] && right.forged > 0, "{right:?}");
    turns("nobody is paused", || !a.paused(1) && pair.overlay(0).held == 0);
    for side in 0..2 {
        let reading = pair.reading(side);
        assert!(is_clean(&reading), "{reading:?}");
        // They are counted with the path, too.
        let dropped = &reading.paths[0].counters.dropped;
        assert!(
            dropped
                .keys()
                .all(|why| ["stranger", "replayed", "bad-encapsulation"].contains(&&why[..]))
        );
    }
}

#[test]
fn whoever_is_killed_nobody_stays_paused() {
    let pair = Pair::new("kill", [&LEFT, &RIGHT], [PATIENT, PATIENT]);
    let [mut a, b, _c] = three(&pair);
    let mut to_b = Sending::new(1, 2);
    let mut stall = |a: &mut Port| {
        turns("it is paused", || {
            to_b.some(a, u32::MAX);
            a.is_attached() && a.paused(1)
        });
    };
    let free = |a: &mut Port, what: &str| turns(what, || a.is_attached() && !a.paused(1));
    stall(&mut a);
    assert!(pair.overlay(0).held > 0);
    // The application: its connection's end is what a kill gives, too.
    drop(b);
    free(&mut a, "without the application");
    turns("it is told so", || pair.overlay(0).held == 0);
    assert!(pair.port(1, "b").counters.dropped["loss-app-exit"] > 0);
    let mut b = pair.place.attach("b");
    stall(&mut a);
    // The receiver's switch, for longer than a pause holds.
    pair.kill(1);
    free(&mut a, "without the receiver's switch");
    pair.apply(1);
    pair.meets();
    // Said until the sender's switch has heard it: one that is new there drops what its peer seals
    // before it has noticed.
    let hello = |b: &mut Port| {
        turns("it is back", || {
            b.wait(Duration::from_millis(20));
            let mut hello = super::frame(super::BROADCAST, 2, u32::MAX);
            station(&mut hello);
            let is_said = b.is_attached() && b.try_send(0, &hello).is_ok();
            is_said && pair.knows(0, "02:00:00:00:01:02")
        });
    };
    hello(&mut b);
    stall(&mut a);
    // The sender's: the new process hears of the pause when it sends, and before B reads.
    pair.kill(0);
    pair.apply(0);
    turns("it is back", || {
        a.wait(Duration::from_millis(20));
        a.is_attached()
    });
    hello(&mut b);
    stall(&mut a);
    assert!(pair.overlay(0).received[0] + pair.overlay(0).received[1] > 0);
    // Both.
    (0..2).for_each(|side| pair.kill(side));
    (0..2).for_each(|side| pair.apply(side));
    pair.meets();
    turns("it is back", || {
        a.wait(Duration::from_millis(20));
        a.is_attached()
    });
    hello(&mut b);
    stall(&mut a);
    // B reads at last.
    let mut frames = vec![Frame::default(); 64];
    turns("it goes on", || {
        while b.recv(&mut frames) > 0 {}
        !a.paused(1) && pair.overlay(0).held == 0 && pair.overlay(1).notified == 0
    });
    assert!(
        !pair.reading(1).ports.iter().any(|port| port.counters.dropped.contains_key("loss-pool"))
    );
}

#[test]
fn a_switch_that_does_not_speak_it_gets_frames_as_before() {
    let pair = Pair::new("old", [&LEFT, &RIGHT], ["", "overlay = false"]);
    turns("the left one is ready", || pair.overlay(0).speaks);
    let mut a = pair.place.attach("a");
    let mut b = pair.place.attach("b");
    let mut frames = vec![Frame::default(); 64];
    turns("a station is heard of", || {
        let mut hello = super::frame(super::BROADCAST, 2, u32::MAX);
        station(&mut hello);
        let _ = b.try_send(0, &hello);
        a.recv(&mut frames) > 0
    });
    let mut to_b = Sending::new(1, 2);
    turns("what has no room is lost", || {
        to_b.some(&mut a, u32::MAX);
        pair.port(1, "b").counters.dropped.is_empty()
            && pair.reading(1).edge.dropped.contains_key("loss-pool")
    });
    assert!(!a.paused(1) && pair.reading(1).peers[0].overlay.is_none());
}
